#!/bin/sh
# Validates a VAT ID even if no source can answer now, and prints the final state: VATPROOF_KEY=svc_live_… sh later.sh DE123456789
set -eu
if [ -z "${VATPROOF_KEY:-}" ] || [ $# -ne 1 ]; then
  echo 'Usage: VATPROOF_KEY=svc_live_… sh later.sh DE123456789' >&2
  exit 2
fi
call() { curl -sS --fail-with-body --max-time 40 -H "X-Api-Key: $VATPROOF_KEY" "$@"; }
base="${VATPROOF_URL:-http://127.0.0.1:8080}/v1/validations"
state=$(call "$base" -H 'content-type: application/json' -H 'Prefer: respond-async' -d "{\"vat_id\":\"$1\"}")
id=$(printf '%s' "$state" | sed 's/.*"validation_id":"\([^"]*\)".*/\1/')
# Each call waits for up to 30 seconds. A pending validation costs nothing until its answer.
while case $state in *'"status":"pending"'*) true ;; *) false ;; esac do
  state=$(call "$base/$id?wait=30")
done
printf '%s\n' "$state"
