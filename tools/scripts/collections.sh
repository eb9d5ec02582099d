#!/usr/bin/env bash
# collections.sh FOLDER [GPUIR]: what becomes of sample collections
#
# Each folder below FOLDER that has files is a collection. Prints a line a collection, parted by tabs: its path below
# FOLDER; how many files it has; `read N` with the number of documents, or `refused`; and what `gpuir index` says of it:
# members that are not kept, what is left out, or why it is refused. Files that hold a <DOC are read by --trec, others by
# --jsonl. Nothing is written but a temporary folder.
set -u
folder=${1:?folder of collections} gpuir=${2:-gpuir}
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
cd "$folder" || exit 2
printf 'collection\tfiles\tresult\tsaid\n'
find . -type f -printf '%h\n' | LC_ALL=C sort -u | while IFS= read -r at; do
  format=--jsonl
  # shellcheck disable=SC2185 # the folder is given
  find "$at" -maxdepth 1 -type f -exec grep -qi '<DOC[ >]' {} + && format=--trec
  files=$(find "$at" -maxdepth 1 -type f | wc -l)
  if "$gpuir" index "$format" "$at" -o "$tmp/x.gpuir" 2>"$tmp/said"; then
    result="read $("$gpuir" stats "$tmp/x.gpuir" | awk '$1 == "documents" { print $2 }')"
    said=$(grep -E 'members:|skipped:' "$tmp/said" | sed 's/^gpuir: //' | paste -sd ' ')
  else
    result=refused
    said=$(sed -n 's/^gpuir: //; 1p' "$tmp/said")
  fi
  printf '%s\t%s\t%s\t%s\n' "${at#./}" "$files" "$result" "$said"
done
