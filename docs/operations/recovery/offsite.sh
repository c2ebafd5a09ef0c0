#!/bin/sh
# Copies the newest base backup and all archived segments to a folder of another place, encrypted for a public key of GnuPG:
#   offsite.sh /backup /mnt/offsite /etc/vatproof/backup-key.asc [base backups to keep there, default 7]
# The folder is a mounted one (NFS, SSHFS, rclone mount). This machine cannot read the copies: keep the secret key elsewhere, twice.
# To read them: gpg --decrypt base-….tar.gpg | tar -x, and for each segment gpg --output wal/NAME --decrypt wal/NAME.gpg, then restore.sh.
set -eu
umask 077
folder=$1 place=$2 key=$3 keep=${4:-7}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A copy has its name only when it is complete.
encrypt() {
  gpg --homedir "$work" --batch --quiet --yes --trust-model always --compress-algo none --recipient-file "$key" --output "$1.new" --encrypt
  if [ -e "$work/failed" ]; then echo "$1 could not be read completely" >&2; exit 1; fi
  sync "$1.new"
  mv "$1.new" "$1"
}
newest=$(find "$folder" -maxdepth 1 -name 'base-*Z' | sort | tail -n 1)
if [ -z "$newest" ]; then echo "$folder has no base backup: run base-backup.sh first" >&2; exit 1; fi
mkdir -p "$place/wal"
name=$(basename "$newest")
if [ ! -e "$place/$name.tar.gpg" ]; then
  { tar -C "$folder" -c "$name" || touch "$work/failed"; } | encrypt "$place/$name.tar.gpg"
fi
for segment in "$folder"/wal/*; do
  copy="$place/wal/$(basename "$segment").gpg"
  case $segment in *.new | *'*') continue ;; esac
  # base-backup.sh may remove a segment meanwhile, which is then no longer needed.
  if [ ! -e "$copy" ] && [ -e "$segment" ]; then encrypt "$copy" < "$segment"; fi
done
# Removes older copies, and the segments that were copied before the newest of them: a later base backup does not need them.
obsolete=$(find "$place" -maxdepth 1 -name 'base-*Z.tar.gpg' | sort -r | tail -n "+$((keep + 1))")
if [ -n "$obsolete" ]; then
  find "$place/wal" -name '*.gpg' ! -newer "$(printf '%s\n' "$obsolete" | head -n 1)" -exec rm -f {} +
  printf '%s\n' "$obsolete" | while read -r old; do rm -f "$old"; done
fi
printf '%s\n' "$place/$name.tar.gpg"
