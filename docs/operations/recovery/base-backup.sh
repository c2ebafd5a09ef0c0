#!/bin/sh
# Makes and verifies a base backup of the running server in <folder>/base-<time in UTC>: base-backup.sh /backup [backups to keep, default 2]
# PGHOST, PGPORT, PGUSER and PGPASSWORD name the server; the role needs REPLICATION. With the archive (archive-wal.sh) the database can be
# restored to any later point in time.
set -eu
folder=$1 keep=${2:-2}
version=
. "$(dirname "$0")/programs.sh"
target="$folder/base-$(date -u +%Y%m%dT%H%M%SZ)"
mkdir -p "$folder"
# Removes an incomplete backup.
trap 'rm -rf "$target.new"' EXIT
pg_basebackup --pgdata "$target.new" --checkpoint fast --wal-method stream --manifest-checksums SHA256 --label vatproof
pg_verifybackup --quiet "$target.new"
sync
mv "$target.new" "$target"
printf '%s\n' "$target"

# Removes older backups, and the segments that only those needed.
obsolete=$(find "$folder" -maxdepth 1 -name 'base-*Z' | sort -r | tail -n "+$((keep + 1))")
if [ -n "$obsolete" ]; then printf '%s\n' "$obsolete" | while read -r old; do rm -rf "$old"; done; fi
oldest=$(find "$folder" -maxdepth 1 -name 'base-*Z' | sort | head -n 1)
first=$(sed -n 's/^START WAL LOCATION: .*(file \([0-9A-F]*\))$/\1/p' "$oldest/backup_label")
# Handles FILE.gz and FILE.
if [ -d "$folder/wal" ] && [ -n "$first" ]; then pg_archivecleanup -x .gz "$folder/wal" "$first"; fi
