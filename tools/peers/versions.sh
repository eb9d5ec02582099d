#!/usr/bin/env bash
# versions.sh OLD_TREE OLD_INDEX NEW_INDEX QUERIES [ROUNDS]: this gpuir.h beside another version's, in folder OLD_TREE.
#
# Both are compiled into one process (gcc -O3), which answers each query of QUERIES, one a line, by both in turn, ROUNDS
# (15) times after one to warm up: ten best of AND, OR and AND+OR, and the counts. OLD_INDEX and NEW_INDEX are of
# the same documents, or one file if both versions read it. Prints a row a mode: microseconds a query of the
# searching thread's processor time, of each query's least time (mean, median, 99th percentile), and how many times
# as fast this version is: by these, and by whole rounds the median, the least and the greatest. Where in the
# program a version's code happens to lie changes its times by some percent: so there are two programs, each with
# another version first, and the row has the means of both.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
[[ $# -ge 4 ]] || { sed -n '2,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2; exit 2; }
old=$1 old_index=$2 new_index=$3 queries=$4 rounds=${5:-15}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compile=("${CC:-gcc}" -std=c99 -O3) libraries=(-lm -pthread)
for with in UTF8PROC/utf8proc/utf8proc.h STEMMER/stemmer/libstemmer.h; do # indexes may need them
  IFS=/ read -r name library header <<<"$with"
  if "${CC:-gcc}" -include "$header" -E -x c /dev/null >/dev/null 2>&1; then
    compile+=("-DGPUIR_WITH_$name") libraries+=("-l$library")
  fi
done
before=()
grep -q 'gpuir_searcher \*\*searcher, gpuir_error' "$old/gpuir.h" ||
  before=(-DSEARCHER_HAS_NO_ERROR)
"${compile[@]}" -DVERSION=old "${before[@]}" -I"$old" -c -o "$work/old.o" tools/peers/versions.c
"${compile[@]}" -DVERSION=new -I. -c -o "$work/new.o" tools/peers/versions.c
"${compile[@]}" -o "$work/old-first" tools/peers/versions.c "$work/old.o" "$work/new.o" "${libraries[@]}"
"${compile[@]}" -o "$work/new-first" "$work/new.o" "$work/old.o" tools/peers/versions.c "${libraries[@]}"
echo "# machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) processors"
echo "# this version: $(git describe --always --dirty --exclude='*' 2>/dev/null || echo unknown)"
echo "# command: tools/peers/versions.sh ${old##*/} ${old_index##*/} ${new_index##*/} ${queries##*/} $rounds"
printf 'mode\tk\tqueries\trounds\told_us\tnew_us\tratio\tround_ratio\tleast\tgreatest\thits\told_p50\told_p99\t'
printf 'new_p50\tnew_p99\n'
for mode in and or andor count-and count-or; do
  for program in old-first new-first; do
    "$work/$program" "$old_index" "$new_index" "$queries" "$mode" 10 "$rounds"
  done | awk -F '\t' -v OFS='\t' '
    NR == 1 { split($0, first); next }
    {
      least = $9 < first[9] ? $9 : first[9]
      greatest = $10 > first[10] ? $10 : first[10]
      old = ($5 + first[5]) / 2
      new = ($6 + first[6]) / 2
      print $1, $2, $3, $4, sprintf("%.2f", old), sprintf("%.2f", new), sprintf("%.4f", old / new),
        sprintf("%.4f", ($8 + first[8]) / 2), least, greatest, $11 == first[11] ? $11 : "differ",
          sprintf("%.2f", ($12 + first[12]) / 2), sprintf("%.2f", ($13 + first[13]) / 2),
          sprintf("%.2f", ($14 + first[14]) / 2), sprintf("%.2f", ($15 + first[15]) / 2)
    }'
done
