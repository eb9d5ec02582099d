#!/bin/sh
# mount-walk.sh MOUNT WORD...: walks through the hits, which are links in a folder. MOUNT is where gpuirfs shows an
# index whose documents can be read (made with --store, or from files that are still there).
set -eu
mnt=$1
shift
query=$(IFS=+ && echo "$*")

ls "$mnt/hits/$query"

# Whatever reads files reads documents: here the first words of each.
for hit in "$mnt/hits/$query"/*; do
  printf '%s: ' "${hit##*/}"
  head -c 60 "$hit" | head -n 1
  echo
done

echo "of them, these mention a pack:"
grep -lw pack "$mnt/hits/$query"/* | sed 's|.*/||'
