#!/bin/sh
# Dumps one database in a form that other versions of Postgres can read: dump.sh /backup/dump-20261121
# PGHOST, PGPORT, PGUSER, PGPASSWORD and PGDATABASE name server and database. The role must be able to read every table, as a
# superuser does.
set -eu
# The dump contains hashes of passwords, addresses and tokens.
umask 077
folder=$1
if [ -e "$folder" ]; then echo "$folder exists already" >&2; exit 1; fi
mkdir "$folder.new"
# Removes an incomplete dump.
trap 'rm -rf "$folder.new"' EXIT
# Without passwords: login roles get new ones after the restore.
pg_dumpall --roles-only --no-role-passwords > "$folder.new/roles.sql"
pg_dump --format=custom --file="$folder.new/database.dump"
sync
mv "$folder.new" "$folder"
