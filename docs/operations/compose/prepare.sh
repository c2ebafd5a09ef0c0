#!/bin/sh
# Makes what the services of docker-compose.yml keep secret, once. A file that is there already is left alone: a secret of your own goes
# there before the first start. 256 random bits each, in letters that need no quoting in a URL.
#   /administrator  for Postgres, the migration and backups        /service  for the replicas
#   /backup         Postgres writes it as its own user, whose number depends on the image
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
