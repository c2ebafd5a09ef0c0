# Validates a VAT ID: VATPROOF_KEY=svc_live_… python3 validate.py DE123456789
import json
import os
import sys
import time
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

BASE = os.environ.get("VATPROOF_URL", "http://127.0.0.1:8080")


# An outage of the sources is not retried: only three of them per VAT ID and hour are free. POST /v1/validations answers later.
def validate(vat_id, tries=3):
    headers = {"X-Api-Key": os.environ["VATPROOF_KEY"]}
    request = Request(f"{BASE}/v1/validate/{quote(vat_id, safe='')}", headers=headers)
    try:
        with urlopen(request, timeout=40) as response:
            return json.load(response)  # ["valid"] is a source's word
    except HTTPError as refused:
        error = json.load(refused)["error"]
        seconds = int(refused.headers.get("Retry-After", 0))  # only 429 and 503 have it
    except URLError as failure:
        sys.exit(f"The service cannot be reached: {failure.reason}")
    if error["code"] == "SOURCE_UNAVAILABLE" or tries <= 1 or seconds == 0 or seconds > 60:
        sys.exit(f"{error['code']}: {error['message']} (request {error['request_id']})")
    time.sleep(seconds)
    return validate(vat_id, tries - 1)


if len(sys.argv) != 2 or not os.environ.get("VATPROOF_KEY"):
    sys.exit("Usage: VATPROOF_KEY=svc_live_… python3 validate.py DE123456789")
answer = validate(sys.argv[1])
print(answer["vat_id"], "is", "valid" if answer["valid"] else "not valid")
