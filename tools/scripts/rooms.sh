#!/bin/sh
# rooms.sh header|join|split STAMP: keeps gpuir.h and gpuir_cuda.cu equal to their rooms, from the project's root.
#
#   header  makes each product that is older than its rooms; this is what `make` runs before anything else
#   join    makes both products from their rooms, whatever they held
#   split   takes both products over into their rooms
#
# A product is the plain concatenation of its rooms, the files of a folder in byte order of their names:
#
#   tools/header/*.h   -> gpuir.h
#   tools/cuda/*.cuh   -> gpuir_cuda.cu
#
# STAMP holds each product's hash of when it last agreed with its rooms. It tells which side was edited. Without it an
# edit of a product would be overwritten by its rooms. Exit status 1, and nothing written, where `header` cannot tell.
set -eu
LC_ALL=C
export LC_ALL

how=${1:-} stamp=${2:-}
case $how in
  header | join | split) ;;
  *) how= ;;
esac
if [ -z "$how" ] || [ -z "$stamp" ]; then
  echo "usage: rooms.sh header|join|split STAMP" >&2
  exit 2
fi

scratch=
trap '[ -z "$scratch" ] || rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
scratch=$(mktemp -d)

hash_of() { sha256sum <"$1" | cut -c 1-64; }

# put FROM TO: replaces TO at once, so that a compiler that reads it sees one of the two.
put() {
  cp "$1" "$2.new"
  mv "$2.new" "$2"
}

# sizes PRODUCT ROOM...: how many lines of PRODUCT belong to each room, `LINES ROOM`. diff tells which lines of the
# joined rooms became which lines of PRODUCT: what was added belongs to the room of the line before it, what was changed
# to the room of the first line that went.
sizes() {
  product=$1
  shift
  wc -l "$@" | awk '$2 != "total"' >"$scratch/sizes"
  { diff "$scratch/joined" "$product" || :; } | awk '
    function room(line,  i) {
      for (i = 1; i < rooms && line > end[i]; i++) continue
      return i
    }
    NR == FNR { name[++rooms] = $2; lines[rooms] = $1; end[rooms] = end[rooms - 1] + $1; next }
    !/^[0-9]/ { next }
    {
      kind = $0
      gsub(/[0-9,]/, "", kind)
      split($0, side, kind)
      n = split(side[1], old, ",")
      last = n > 1 ? old[2] : old[1]
      m = split(side[2], new, ",")
      if (kind != "a") for (i = old[1]; i <= last; i++) lines[room(i)]--
      if (kind != "d") lines[room(old[1])] += (m > 1 ? new[2] : new[1]) - new[1] + 1
    }
    END { for (i = 1; i <= rooms; i++) print lines[i], name[i] }' "$scratch/sizes" -
}

# take_over PRODUCT ROOM...: writes the product's lines to its rooms, and names those that change.
take_over() {
  taken=$1 at=1
  sizes "$@" >"$scratch/new"
  while read -r lines room; do
    tail -n "+$at" "$taken" | head -n "$lines" >"$scratch/room"
    at=$((at + lines))
    cmp -s "$scratch/room" "$room" && continue
    put "$scratch/room" "$room"
    echo "$room"
  done <"$scratch/new"
}

# differing PRODUCT ROOM...: names the rooms whose text is another in PRODUCT.
differing() {
  compared=$1 at=1
  sizes "$@" >"$scratch/new"
  while read -r lines room; do
    tail -n "+$at" "$compared" | head -n "$lines" | cmp -s - "$room" || echo "  $room"
    at=$((at + lines))
  done <"$scratch/new"
}

# refuse PRODUCT WHY ROOM...: says what to do where it is not known which side holds what is wanted.
refuse() {
  {
    echo "$1: $2. These rooms differ from it:"
    product=$1
    shift 2
    differing "$product" "$@"
    echo "'make split' takes $product over into its rooms; 'make join' makes it from them."
  } >&2
  exit 1
}

# agree PRODUCT ROOM...: makes them equal, and adds their line to the new stamp.
agree() {
  product=$1
  shift
  cat "$@" >"$scratch/joined"
  cmp -s "$scratch/joined" "$product" || mend "$product" "$@"
  echo "$product $(hash_of "$product")" >>"$scratch/stamp"
}

# mend PRODUCT ROOM...: makes them equal where they are not.
mend() {
  product=$1
  shift
  case $how in
    split) take_over "$product" "$@" ;;
    join) put "$scratch/joined" "$product" ;;
    header)
      agreed=$([ ! -f "$stamp" ] || sed -n "s/^$product //p" "$stamp")
      case $agreed in
        "") refuse "$product" "it is not what its rooms make, and nothing tells which was edited" "$@" ;;
        "$(hash_of "$product")") put "$scratch/joined" "$product" ;;
        "$(hash_of "$scratch/joined")") refuse "$product" "it was edited" "$@" ;;
        *) refuse "$product" "it was edited, and so were its rooms" "$@" ;;
      esac
      ;;
  esac
}

: >"$scratch/stamp"
agree gpuir.h tools/header/*.h
agree gpuir_cuda.cu tools/cuda/*.cuh

# A tree that cannot be written needs no stamp: nobody edits it.
if ! cmp -s "$scratch/stamp" "$stamp" && mkdir -p "$(dirname "$stamp")" 2>/dev/null; then
  { cp "$scratch/stamp" "$stamp.new" && mv "$stamp.new" "$stamp"; } 2>/dev/null || :
fi
