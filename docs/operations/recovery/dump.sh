#!/bin/sh
# A logical copy of one database, which other versions of Postgres can read as well: dump.sh /backup/dump-20261121
# The server and the database are named by PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE; the role has to be a superuser, or everything
# that only one may see or make is missing in the copy.
set -eu
folder=$1
mkdir "$folder"
# Passwords stay out of it: login roles get new ones where it is restored.
pg_dumpall --roles-only --no-role-passwords > "$folder/roles.sql"
pg_dump --format=custom --file="$folder/database.dump"
sync
