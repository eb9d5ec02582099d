#!/usr/bin/env bash
# passage.sh OLD_TREE SOURCES [ROUNDS] [QUERY]: what the first passage costs from text on disk on: the processor time of
# `gpuir index` and `gpuir query --passages QUERY` by this version, and that of `gpuir index --chunk-lines 50 --analyzer
# unicode --stem english` by the version whose tree, built, is in OLD_TREE, on the same files, by turns, ROUNDS (7)
# times. Prints a row for each way of indexing: the median seconds of both, the median of the rounds' quotients, and the
# quotients' least and greatest. The bound is 1.5.
set -euo pipefail
[[ $# -ge 2 && $# -le 4 ]] || { sed -n '2,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2; exit 2; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
old=$1/build/gpuir new=$root/build/gpuir sources=$2 rounds=${3:-7}
query=${4:-how are pages reclaimed when memory is short}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# seconds COMMAND...: its processor time, that of its children included
seconds() {
  local TIMEFORMAT='%3U %3S'
  { time "$@" >"$work/out" 2>"$work/err" || { cat "$work/err" >&2 && return 1; }; } 2>&1 | awk '{ print $1 + $2 }'
}

before() { "$old" index -q --chunk-lines 50 --analyzer unicode --stem english "$sources" -o "$work/old"; }

# after OPTION...: indexes, and prints the passages, of which there must be one
after() {
  "$new" index -q --no-ignore "$@" "$sources" -o "$work/new"
  # shellcheck disable=SC2086 # words of the query
  "$new" query --passages "$work/new" $query >"$work/passages"
  [[ -s $work/passages ]]
}

# row NAME OPTION...: times both by turns
row() {
  local name=$1 i
  shift
  for ((i = 0; i < rounds; i++)); do echo "$(seconds before) $(seconds after "$@")"; done |
    awk -v name="$name" '
      function median(a, n,    i, j, t) {
        for (i = 2; i <= n; i++) for (j = i; j > 1 && a[j] < a[j - 1]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
        return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
      }
      { old[NR] = $1; new[NR] = $2; ratio[NR] = $2 / $1 }
      END {
        printf "%s\t%.3f\t%.3f\t", name, median(old, NR), median(new, NR)
        m = median(ratio, NR)
        printf "%.3f\t%.3f\t%.3f\t%d\n", m, ratio[1], ratio[NR], NR
      }'
}

echo "# machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) processors"
echo "# commit: $(git -C "$root" describe --always --dirty --exclude='*' 2>/dev/null || echo unknown)"
echo "# command: tools/peers/passage.sh ${1##*/} ${2##*/} $rounds '$query'"
before # once, so that the files are in memory for all
printf 'index\told_s\tnew_s\tratio\tleast\tgreatest\trounds\n'
row 'as by default'
row 'chunks of 50 lines, stems' --chunk-lines 50 --analyzer unicode --stem english
row 'chunks of 50 lines, stems, positions' --chunk-lines 50 --analyzer unicode --stem english --positions
