#!/bin/sh
# Generates the secrets of docker-compose.yml, once. Existing files stay unchanged: put your own secrets there before the first start.
# Each has 256 random bits, in characters that need no quoting in a URL.
#   /administrator  for Postgres, the migration and backups        /service  for the replicas
#   /backup         Postgres writes it as its own user, whose id depends on the image
set -eu
umask 022
secret() { head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n'; }
keep() { [ -s "$1" ] || { printf '%s\n' "$2" > "$1.new" && mv "$1.new" "$1"; }; }
keep /administrator/password "$(secret)"
keep /administrator/url "postgresql://vatproof_admin:$(cat /administrator/password)@postgres:5432/vatproof"
keep /administrator/service-password "$(secret)"
keep /service/url "postgresql://vatproof_login:$(cat /administrator/service-password)@postgres:5432/vatproof"
keep /service/jwt-secret "$(secret)"
keep /service/notary-key "$(secret)"
chmod 1777 /backup
