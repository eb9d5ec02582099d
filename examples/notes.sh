#!/bin/sh
# notes.sh FOLDER [WORD...]: finds the passages of FOLDER that answer WORD..., and brings the index up to date first.
# Without words it only does the latter. The index is FOLDER.live beside it. Without pdftotext it is FOLDER.text.live,
# which leaves PDF files out: an index stays with the filters that it was made with.
set -eu
folder=${1%/}
shift
if command -v pdftotext >/dev/null; then
  index=$folder.live filter='pdf=pdftotext - -'
else
  index=$folder.text.live filter=
fi

if [ -e "$index" ]; then
  gpuir update --quiet ${filter:+--filter "$filter"} "$folder" -o "$index"
else
  gpuir index --live --quiet --positions ${filter:+--filter "$filter"} "$folder" -o "$index"
fi
[ $# -eq 0 ] || gpuir query --passages ${filter:+--filter "$filter"} "$index" -- "$@"
