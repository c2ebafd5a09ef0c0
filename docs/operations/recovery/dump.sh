#!/bin/sh
# A logical copy of one database, which other versions of Postgres can read as well: dump.sh /backup/dump-20261121
# The server and the database are named by PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE. The role has to read every table: the
# service's own may today, but only a superuser is sure to.
set -eu
# It holds hashes of passwords, addresses and tokens.
umask 077
folder=$1
if [ -e "$folder" ]; then echo "$folder is there already" >&2; exit 1; fi
mkdir "$folder.new"
# Half a copy is none.
trap 'rm -rf "$folder.new"' EXIT
# Passwords stay out of it: login roles get new ones where it is restored.
pg_dumpall --roles-only --no-role-passwords > "$folder.new/roles.sql"
pg_dump --format=custom --file="$folder.new/database.dump"
sync
mv "$folder.new" "$folder"
