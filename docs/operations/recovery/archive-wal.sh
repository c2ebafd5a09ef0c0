#!/bin/sh
# Archives one segment of Postgres' write-ahead log, compressed: archive_command = '<here>/archive-wal.sh /backup/wal %p %f'
# Succeeds only when the copy is on the disk; until then Postgres keeps the segment and retries. The folder should be on another machine:
# an archive on the database's own disk is lost with it.
set -eu
archive=$1 segment=$2 name=$3
mkdir -p "$archive"
# After a crash Postgres archives a segment again. Different content under the same name means a second server on one archive: fails.
if [ -e "$archive/$name.gz" ]; then gzip -dc "$archive/$name.gz" | cmp "$segment" -; exit; fi
# Without .gz: a segment that another archive_command stored.
if [ -e "$archive/$name" ]; then exec cmp "$segment" "$archive/$name"; fi
gzip -1 -c "$segment" > "$archive/$name.new"
sync "$archive/$name.new"
mv "$archive/$name.new" "$archive/$name.gz"
sync "$archive"
