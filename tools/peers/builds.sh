#!/usr/bin/env bash
# builds.sh OLD_TREE SOURCES [ROUNDS]: how fast indexes are built by this version and by the one whose tree, built, is
# in OLD_TREE: whole files and chunks of 25 lines of SOURCES, with one thread, by turns, ROUNDS (7) times; and by this
# version with positions. Prints, a row each, the least seconds of processor time of both, and their quotient.
set -euo pipefail
[[ $# -ge 2 && $# -le 3 ]] || { sed -n '2,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2; exit 2; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
old=$1/build/gpuir new=$root/build/gpuir sources=$2 rounds=${3:-7}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# seconds OPTIONS... : the processor time of a build
seconds() {
  local TIMEFORMAT='%3U %3S'
  { time "$@" index -q --analyzer ascii --threads 1 "${form[@]}" "$sources" -o "$work/index" >"$work/out" 2>&1; } 2>&1 |
    awk '{ print $1 + $2 }'
}

# row NAME FORM OLD NEW OPTION: times OLD and NEW by turns, NEW with OPTION too
row() {
  local name=$1 before=$3 after=$4 i
  read -ra form <<<"$2"
  for ((i = 0; i < rounds; i++)); do
    echo "old $(seconds "$before")"
    if [[ -n $5 ]]; then form+=("$5"); fi
    echo "new $(seconds "$after")"
    if [[ -n $5 ]]; then unset 'form[-1]'; fi
  done | awk -v name="$name" '
    !($1 in least) || $2 < least[$1] { least[$1] = $2 }
    END { printf "%s\t%.3f\t%.3f\t%.3f\n", name, least["old"], least["new"], least["old"] / least["new"] }'
}

echo "# machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) processors"
echo "# commit: $(git -C "$root" describe --always --dirty --exclude='*' 2>/dev/null || echo unknown)"
echo "# command: tools/peers/builds.sh ${1##*/} ${2##*/} $rounds"
printf 'build\told_s\tnew_s\tratio\n'
row files '' "$old" "$new" ''
row chunks '--chunk-lines 25' "$old" "$new" ''
row 'files: without, with positions' '' "$new" "$new" --positions
row 'chunks: without, with positions' '--chunk-lines 25' "$new" "$new" --positions
