#!/bin/sh
# Runs once, when Postgres creates the database. The service logs in as vatproof_login, a member of vatproof_service: it can append
# to the log but not change it. Only migrations and backups use the administrator's role (POSTGRES_USER).
set -eu
psql --no-psqlrc --set=ON_ERROR_STOP=1 --set=password="$(cat "$SERVICE_PASSWORD_FILE")" \
  --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
CREATE ROLE vatproof_service NOLOGIN;
CREATE ROLE vatproof_auditor NOLOGIN;
CREATE ROLE vatproof_login LOGIN PASSWORD :'password';
GRANT vatproof_service TO vatproof_login;
REVOKE ALL ON DATABASE :"DBNAME" FROM PUBLIC;
GRANT CONNECT ON DATABASE :"DBNAME" TO vatproof_service, vatproof_auditor;
SQL
