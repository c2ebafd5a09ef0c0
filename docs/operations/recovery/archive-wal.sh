#!/bin/sh
# Keeps one segment of Postgres' write-ahead log, compressed: archive_command = '<here>/archive-wal.sh /backup/wal %p %f'
# Succeeds only when the copy is on the disk; Postgres keeps the segment and tries again until then. Point the folder at another machine:
# an archive on the disk that it protects protects nothing.
set -eu
archive=$1 segment=$2 name=$3
mkdir -p "$archive"
# A segment that was archived just before a crash comes again. Another one under the same name is a second server on one archive: refused.
if [ -e "$archive/$name.gz" ]; then gzip -dc "$archive/$name.gz" | cmp "$segment" -; exit; fi
# Without .gz: from the time before segments were compressed.
if [ -e "$archive/$name" ]; then exec cmp "$segment" "$archive/$name"; fi
gzip -1 -c "$segment" > "$archive/$name.new"
sync "$archive/$name.new"
mv "$archive/$name.new" "$archive/$name.gz"
sync "$archive"
