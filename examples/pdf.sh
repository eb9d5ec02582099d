#!/bin/sh
# pdf.sh FOLDER WORD...: finds paragraphs in the PDF files below FOLDER, with the page that each stands on. The index,
# FOLDER.gpuir, keeps the texts; it is made when it is not there.
set -eu
folder=${1%/} index=${1%/}.gpuir
shift
[ -e "$index" ] || gpuir index --quiet --store --filter 'pdf=pdftotext - -' "$folder" -o "$index"

# A form feed ends each page. What a filter wrote has no line in the file, so the page is the first that holds the text.
gpuir query --grep "$index" -- "$@" | while IFS= read -r hit; do
  path=${hit%%:*} text=${hit#*:}
  case $path in
    *.[Pp][Dd][Ff])
      text=${text#'\x0c'}
      page=$(pdftotext "$path" - | TEXT=$text awk 'BEGIN { RS = "\f" } index($0, ENVIRON["TEXT"]) { print NR; exit }')
      printf '%s, page %s: %s\n' "$path" "${page:-unknown}" "$text" ;;
    *) printf '%s:%s: %s\n' "$path" "${text%%:*}" "${text#*:}" ;;
  esac
done
