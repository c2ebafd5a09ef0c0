# Adds Postgres' programs to PATH, which Debian installs elsewhere: those of $version, else of the newest version, which also reads backups of
# older servers.
if ! command -v pg_verifybackup > /dev/null || ! command -v pg_archivecleanup > /dev/null; then
  programs=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -path "*/${version:-*}/bin" 2>/dev/null | sort -V | tail -n 1)
  if [ -z "$programs" ]; then echo "pg_verifybackup${version:+ $version} is neither in PATH nor in /usr/lib/postgresql" >&2; exit 1; fi
  PATH="$PATH:$programs"
fi
