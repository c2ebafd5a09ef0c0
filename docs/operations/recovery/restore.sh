#!/bin/sh
# Prepares a data folder with the state of the database at a point in time, or at the end of the archive:
#   restore.sh /backup/base-20261121T020000Z /backup/wal /var/lib/postgresql/data ['2026-11-21 03:15:00+00']
# Run it as the user of Postgres, then start the server on the folder: it replays the archive and then accepts connections. Afterwards run:
#   npm run vatproof -- audit verify
set -eu
backup=$1 archive=$2 data=$3 moment=${4:-}
if [ -n "$(ls -A "$data" 2>/dev/null)" ]; then echo "$data is not empty: keep its content, and restore elsewhere" >&2; exit 1; fi
if [ -z "$(ls -A "$archive" 2>/dev/null)" ]; then echo "$archive has no archived log: changes after the backup would be missing" >&2; exit 1; fi
version=$(cat "$backup/PG_VERSION")
. "$(dirname "$0")/programs.sh"
# Postgres runs the command in the data folder.
archive=$(cd "$archive" && pwd)
pg_verifybackup --quiet "$backup"
mkdir -p "$data"
chmod 700 "$data"
cp -a "$backup/." "$data/"
# Debian keeps the configuration in /etc/postgresql, so it is not in the backup. These settings must not be lower than on the original server.
if [ ! -e "$data/postgresql.conf" ]; then
  pg_controldata "$data" | sed -n \
    -e 's/^max_connections setting: */max_connections = /p' -e 's/^max_worker_processes setting: */max_worker_processes = /p' \
    -e 's/^max_wal_senders setting: */max_wal_senders = /p' -e 's/^max_prepared_xacts setting: */max_prepared_transactions = /p' \
    -e 's/^max_locks_per_xact setting: */max_locks_per_transaction = /p' > "$data/postgresql.conf"
  echo "The backup has no postgresql.conf: $data/postgresql.conf has only the necessary settings. pg_ctlcluster uses the one in /etc/postgresql."
fi
[ -e "$data/pg_hba.conf" ] || printf 'local all all peer\nhost all all 127.0.0.1/32 scram-sha-256\nhost all all ::1/128 scram-sha-256\n' > "$data/pg_hba.conf"
[ -e "$data/pg_ident.conf" ] || : > "$data/pg_ident.conf"
# A restored server must not write to the archive of the original server until the operator decides that it replaces it.
{
  # A missing file is the end of the archive (1). A damaged file is an error, at which Postgres stops (255).
  printf '%s\n' "restore_command = 'if [ -e \"$archive/%f.gz\" ]; then gzip -dc \"$archive/%f.gz\" > \"%p\" || exit 255; else cp \"$archive/%f\" \"%p\"; fi'"
  printf "recovery_target_timeline = 'latest'\narchive_mode = off\n"
  # Also if no time is given: it replaces the setting of a server that was itself restored to a point in time.
  printf "recovery_target_time = '%s'\nrecovery_target_action = promote\n" "$moment"
} >> "$data/postgresql.auto.conf"
touch "$data/recovery.signal"
echo "Start Postgres on $data. When pg_is_in_recovery() is false, run: npm run vatproof -- audit verify"
