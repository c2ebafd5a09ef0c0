#!/bin/sh
# Validates a VAT ID and prints the answer as JSON: VATPROOF_KEY=svc_live_… sh validate.sh DE123456789
set -eu
if [ -z "${VATPROOF_KEY:-}" ] || [ $# -ne 1 ]; then
  echo 'Usage: VATPROOF_KEY=svc_live_… sh validate.sh DE123456789' >&2
  exit 2
fi
ask() {
  curl -sS --fail-with-body --max-time 40 -w '\n%header{retry-after}' \
    -H "X-Api-Key: $VATPROOF_KEY" "${VATPROOF_URL:-http://127.0.0.1:8080}/v1/validate/$1"
}
# The last line of $reply is the number of seconds in Retry-After, or empty. An outage of the sources is not retried:
# only three of them per VAT ID and hour are free. POST /v1/validations answers later.
if reply=$(ask "$1"); then status=0; else status=$?; fi
seconds=$(printf '%s' "$reply" | tail -n 1)
case $reply in *SOURCE_UNAVAILABLE*) seconds='' ;; esac
if [ "$status" -eq 22 ] && [ "${#seconds}" -gt 0 ] && [ "${#seconds}" -le 2 ]; then
  sleep "$seconds"
  if reply=$(ask "$1"); then status=0; else status=$?; fi
fi
printf '%s\n' "$reply" | head -n 1
exit "$status"
