#!/bin/sh
# Validates the VAT IDs of a CSV file with the columns custom_id and vat_id, and prints the results: VATPROOF_KEY=… sh batch.sh list.csv
set -eu
if [ -z "${VATPROOF_KEY:-}" ] || [ $# -ne 1 ]; then
  echo 'Usage: VATPROOF_KEY=svc_live_… sh batch.sh list.csv' >&2
  exit 2
fi
call() { curl -sS --fail-with-body --max-time 60 -H "X-Api-Key: $VATPROOF_KEY" "$@"; }
base="${VATPROOF_URL:-http://127.0.0.1:8080}/v1/batches"
batch=$(call "$base" -H 'content-type: text/csv' --data-binary "@$1")
id=$(printf '%s' "$batch" | sed 's/.*"batch_id":"\([^"]*\)".*/\1/')
# Each call waits for up to 30 seconds.
while case $batch in *'"status":"running"'* | *'"status":"paused"'*) true ;; *) false ;; esac do
  batch=$(call "$base/$id?wait=30")
done
call "$base/$id/results" -H 'Accept: text/csv'
