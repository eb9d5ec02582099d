#!/usr/bin/env bash
# mails.sh FROM MONTH FOLDER [WORD...]: the mails in FOLDER that FROM sent in MONTH, as in ann@example.org 2024-01, best
# first; without WORD all of them. FROM or MONTH is '' for any. The index lies in $MAILS, and is brought up to date
# first.
set -euo pipefail
from=$1 month=$2 folder=$3
shift 3
index=${MAILS:-${XDG_CACHE_HOME:-$HOME/.cache}/mails.live}

if [ ! -d "$index" ]; then
  gpuir index --live -q --field from=key --field to=key --field subject=key --field date=date "$folder" -o "$index"
fi
gpuir update -q "$folder" -o "$index"

where=${from:+from=$from}${month:+ date=$month}
gpuir query --tsv -k 20 -w "${where:-from=..}" --show date,from,subject "$index" "$@" | cut -f 5-
