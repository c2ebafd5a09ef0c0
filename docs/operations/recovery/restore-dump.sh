#!/bin/sh
# Restores a dump of dump.sh into a new database, all or nothing: restore-dump.sh /backup/dump-20261121 vatproof
# PGHOST, PGPORT, PGUSER and PGPASSWORD name the server; the role must be a superuser. Existing roles stay unchanged.
# Afterwards set the passwords of the login roles, and run: npm run vatproof -- audit verify
set -eu
folder=$1 database=$2
createdb --template=template0 --encoding=UTF8 "$database"
# Drops an incomplete database.
trap 'dropdb "$database"' EXIT
# An existing role is no error. Any other failure shows in the next step, which needs every role.
psql --no-psqlrc --quiet --dbname=postgres --file="$folder/roles.sql" 2>/dev/null || true
pg_restore --exit-on-error --single-transaction --dbname="$database" "$folder/database.dump"
trap - EXIT
