#!/bin/sh
# Validates a VAT ID and prints the answer as JSON: VATPROOF_KEY=svc_live_… sh validate.sh DE123456789
# curl retries 429 and 503 itself, after the seconds that Retry-After names.
set -eu
curl -sS --fail-with-body --max-time 40 --retry 2 --retry-max-time 60 \
  -H "X-Api-Key: $VATPROOF_KEY" "${VATPROOF_URL:-http://127.0.0.1:8080}/v1/validate/$1"
