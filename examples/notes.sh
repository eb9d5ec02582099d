#!/bin/sh
# notes.sh FOLDER [WORD...]: finds the passages of FOLDER that answer WORD..., and brings the index up to date first.
# Without words it only does the latter. The index is FOLDER.live beside it. PDF files need pdftotext, or are left out.
set -eu
folder=${1%/}
shift
index=$folder.live

set_filter() { # the same filter for index, update and query; none without pdftotext
  if command -v pdftotext >/dev/null; then echo 'pdf=pdftotext - -'; else echo "pdf=cat"; fi
}
filter=$(set_filter)

if [ -e "$index" ]; then
  gpuir update --quiet --filter "$filter" "$folder" -o "$index"
else
  gpuir index --live --quiet --positions --filter "$filter" "$folder" -o "$index"
fi
[ $# -eq 0 ] || gpuir query --passages --filter "$filter" "$index" -- "$@"
