#!/bin/sh
# Copies the database. The bucket has the blobs: let it keep what was deleted for some days.
set -eu
folder=$1
pg_dump --format=custom --file="$folder/windlass-$(date -u +%Y%m%dT%H%M%S.%3NZ).dump" "$STORE"
find "$folder" -maxdepth 1 -name 'windlass-*.dump' -mtime +14 -delete
