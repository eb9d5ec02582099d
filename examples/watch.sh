#!/bin/sh
# watch.sh FOLDER INDEX QUERY: prints the best documents of FOLDER for QUERY, and again whenever they become others,
# while `gpuir watch` keeps the live index INDEX up to date. With MOUNT=DIR, where gpuirfs shows INDEX, it reads the
# mount instead of asking the command. It ends by a signal, or when the watch does.
set -eu
folder=$1 index=$2 query=$3

[ -e "$index" ] || gpuir index --live --quiet "$folder" -o "$index"
gpuir watch --quiet "$folder" -o "$index" &
watch=$!
trap 'kill $watch 2>/dev/null' EXIT
trap 'exit 0' INT TERM HUP

answer() {
  if [ -n "${MOUNT-}" ]; then
    cut -f 4 "$MOUNT/query/@or/$(printf %s "$query" | tr ' ' +).tsv"
  else
    gpuir query --mode or --tsv "$index" "$query" | cut -f 4
  fi
}

before='no answer yet'
while kill -0 $watch 2>/dev/null; do
  now=$(answer)
  if [ "$now" != "$before" ]; then printf '%s\n--\n' "$now"; fi
  before=$now
  sleep 0.2
done
echo "watch.sh: the watch has ended" >&2
exit 1
