# Validates a VAT ID at Vatproof. Copy this file into your program. VATPROOF_URL and VATPROOF_KEY come from the environment.
import json
import os
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen


def validate(vat_id, timeout=40):
    """Returns "valid" or "invalid" if a source said so, and "unknown" for anything else: an outage, a limit, a wrong key."""
    url = f"{os.environ['VATPROOF_URL']}/v1/validate/{quote(vat_id, safe='')}"
    try:
        with urlopen(Request(url, headers={"X-Api-Key": os.environ["VATPROOF_KEY"]}), timeout=timeout) as response:
            return "valid" if json.load(response)["valid"] else "invalid"
    except HTTPError as refused:
        # Such a text is the VAT ID of no member state: a typing error of the customer.
        return "invalid" if b'"INVALID_VAT_ID"' in refused.read() else "unknown"
    except (URLError, TimeoutError, ValueError, KeyError):
        return "unknown"
