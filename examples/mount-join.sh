#!/usr/bin/env bash
# mount-join.sh MOUNT QUERY1 QUERY2: joins two ranked lists with coreutils. MOUNT is where gpuirfs shows an index. A
# query is written as in the path of its file: stringed+instrument, or with options @or/@k=100/stringed+instrument.
set -euo pipefail
mnt=$1 one=$2 two=$3

echo "docIDs that both queries find:"
comm -12 <(sort "$mnt/query/$one") <(sort "$mnt/query/$two")

echo "docIDs that only the first finds: $(comm -23 <(sort "$mnt/query/$one") <(sort "$mnt/query/$two") | wc -l)"

# The lists fused by the sum of reciprocal ranks: number each, join by docID (absent: rank 1000), add, sort.
ranks() { awk '{ print $1, NR }' "$mnt/query/$1" | sort -k 1,1; }
echo "both lists fused, best first:"
join -a 1 -a 2 -e 1000 -o 0,1.2,2.2 <(ranks "$one") <(ranks "$two") |
  awk '{ printf "%.5f %s\n", 1 / (60 + $2) + 1 / (60 + $3), $1 }' | sort -k 1,1nr -k 2,2n | head -n 5
