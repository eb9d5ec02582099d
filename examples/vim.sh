#!/bin/bash
# vim.sh INDEX WORD...: opens vim at the best line for WORD...; :cnext goes to the next one, :copen lists them all.
# EDITOR=emacs or another one that understands neither -q nor this list opens the file of the best line instead.
set -eu
index=$1
shift
lines=$(gpuir query --grep --bytes 0 "$index" -- "$@")
case ${EDITOR:-vim} in
  *vi | *vim) exec "${EDITOR:-vim}" -q <(printf '%s\n' "$lines") ;;
  *) IFS=: read -r path line _ <<<"$lines" && exec "$EDITOR" "+$line" "$path" ;;
esac
