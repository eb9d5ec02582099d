#!/bin/sh
# pdf.sh FOLDER WORD...: finds paragraphs in the PDF files below FOLDER, with the page that each stands on. The index,
# FOLDER.gpuir, keeps the texts; it is made when it is not there.
set -eu
folder=${1%/} index=${1%/}.gpuir
shift
[ -e "$index" ] || gpuir index --quiet --store --filter 'pdf=pdftotext - -' "$folder" -o "$index"

# A form feed stands before each page but the first: the page is one more than those above the line.
gpuir query --grep "$index" -- "$@" | while IFS=: read -r path line text; do
  case $path in
    *.[Pp][Dd][Ff])
      text=${text#'\x0c'}
      page=$(pdftotext "$path" - | head -n "$line" | tr -cd '\f' | wc -c)
      printf '%s, page %d: %s\n' "$path" $((page + 1)) "$text" ;;
    *) printf '%s:%s: %s\n' "$path" "$line" "$text" ;;
  esac
done
