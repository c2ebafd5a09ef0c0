#!/bin/sh
# Restores the newest base backup with the archive into a temporary folder, starts Postgres on it, and runs a command with its DATABASE_URL:
#   restore-test.sh /backup vatproof audit verify
# Run it as the user of Postgres. PGUSER (default postgres) and PGDATABASE (default vatproof) name role and database; TMPDIR needs the
# space of the database. The server listens on a socket in the temporary folder only, and does not archive.
set -eu
folder=$1
shift
backup=$(find "$folder" -maxdepth 1 -name 'base-*Z' | sort | tail -n 1)
if [ -z "$backup" ]; then echo "$folder has no base backup: run base-backup.sh first" >&2; exit 1; fi
version=$(cat "$backup/PG_VERSION")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/programs.sh"
work=$(mktemp -d)
trap 'pg_ctl -D "$work/data" -m immediate stop > /dev/null 2>&1 || true; rm -rf "$work"' EXIT
sh "$here/restore.sh" "$backup" "$folder/wal" "$work/data" > /dev/null
printf 'local all all peer\n' > "$work/pg_hba.conf"
# The command line takes precedence over the configuration in the backup.
pg_ctl -D "$work/data" -w -t 86400 -l "$work/log" start -o "-c listen_addresses='' -c unix_socket_directories='$work' -c port=5432 \
  -c hba_file='$work/pg_hba.conf' -c archive_mode=off -c synchronous_standby_names='' -c ssl=off -c shared_preload_libraries=''" > /dev/null ||
  { tail -n 20 "$work/log" >&2; exit 1; }
export PGUSER="${PGUSER:-postgres}" PGDATABASE="${PGDATABASE:-vatproof}"
unset PGHOST
export PGPORT=5432
while recovering=$(psql -h "$work" -XAtc 'SELECT pg_is_in_recovery()') || exit 1; [ "$recovering" != f ]; do sleep 1; done
DATABASE_URL="postgresql://$PGUSER@localhost/$PGDATABASE?host=$work" "$@"
