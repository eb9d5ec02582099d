#!/bin/sh
# fzf.sh INDEX [WORD...]: searches while you type: fzf shows the best lines, and prints the one that is chosen as
# path:line. It is gpuir that searches at each key; fzf only shows. This opens an editor there:
#   vim $(fzf.sh notes.gpuir | sed 's/\(.*\):\(.*\)/+\2 \1/')
set -eu
index=$1
shift
export GPUIR_INDEX="$index"
# shellcheck disable=SC2016 # fzf runs these, with what was typed in place of {q}
search='gpuir query --grep --bytes 0 "$GPUIR_INDEX" -- {q} 2>/dev/null || true' \
  show='gpuir query --passages "$GPUIR_INDEX" -- {q} 2>/dev/null'
{ [ $# -eq 0 ] || gpuir query --grep --bytes 0 "$index" -- "$@" || true; } |
  fzf --disabled --query "$*" --delimiter : --bind "change:reload:$search" --preview "$show" \
    --preview-window down:40%:wrap | cut -d : -f 1,2
