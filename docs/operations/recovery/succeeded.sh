#!/bin/sh
# Tells Prometheus that a backup succeeded now, through the folder of node_exporter's textfile collector:
#   succeeded.sh base|offsite|restore-test /var/lib/prometheus/node-exporter
set -eu
file=$2/vatproof-backup-$1.prom
printf 'vatproof_backup_success_time_seconds{vatproof_backup="%s"} %s\n' "$1" "$(date +%s)" > "$file.new"
chmod 644 "$file.new"
mv "$file.new" "$file"
