#!/bin/sh
# Copies the database, then the blobs, so that the blobs have everything the database names.
set -eu
folder=$1
/opt/windlass/bin/windlass db backup "$folder/windlass-$(date -u +%Y%m%dT%H%M%S.%3NZ).db" --store "$STORE"
cp --archive --update "${BLOBS#file://}" "$folder/"
find "$folder" -maxdepth 1 -name 'windlass-*.db' -mtime +14 -delete
