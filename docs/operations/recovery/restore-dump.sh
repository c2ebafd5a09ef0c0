#!/bin/sh
# Brings a copy of dump.sh into a new, empty database: restore-dump.sh /backup/dump-20261121 vatproof
# The server is named by PGHOST, PGPORT, PGUSER, PGPASSWORD; the role has to be a superuser. Roles that are there stay as they are. All or
# nothing is restored. Then set the passwords of the login roles, and prove it: npm run vatproof -- audit verify
set -eu
folder=$1 database=$2
createdb --template=template0 --encoding=UTF8 "$database"
# Half a database is none.
trap 'dropdb "$database"' EXIT
# A role that exists is no reason to stop; what else goes wrong here shows in the next step, which wants every role.
psql --no-psqlrc --quiet --dbname=postgres --file="$folder/roles.sql" 2>/dev/null || true
pg_restore --exit-on-error --single-transaction --dbname="$database" "$folder/database.dump"
trap - EXIT
