#!/bin/sh
# mount-rank.sh MOUNT WORD...: ranks with cat. MOUNT is where gpuirfs shows an index.
set -eu
mnt=$1
shift
query=$(IFS=+ && echo "$*") # `gpu cuda` becomes gpu+cuda

echo "documents with all words, best first:"
cat "$mnt/query/@k=3/$query"

echo "documents with any of them, as rank, docID, score, name:"
cat "$mnt/query/@or/@k=3/$query.tsv"

echo "how many have all:"
wc -l <"$mnt/query/@k=10000/$query"
