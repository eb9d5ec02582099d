#!/usr/bin/env bash
# pool_tsan.sh BUILD [SECONDS [LOG]]: runs what is built with ThreadSanitizer over the queues of pools and servers
#
# In turn, until SECONDS (600) are over: the tests of pools (tests/unit/57_share, 30*, whose tasks have random
# deadlines and cancellations), and gpuir lab load by every policy, those of task pools among them, with a device that
# a processor stands for and that is held up, and against gpuir serve. A finding ends it with exit status 1. LOG
# (BUILD/pool_tsan.txt) gets a head, a line a round, and what was found.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
if [ $# -lt 1 ]; then
  sed -n 's/^# //p' "$0" | head -n 1 >&2
  exit 2
fi
build=$1 seconds=${2:-600} log=${3:-$1/pool_tsan.txt}
export TSAN_OPTIONS="halt_on_error=1 exitcode=66 ${TSAN_OPTIONS:-}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
  echo "# $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) processors;" \
    "gpuir, commit $(git describe --always --dirty --exclude='*' 2>/dev/null); command: tools/scripts/pool_tsan.sh $*"
} >"$log"

# step NAME COMMAND...: ends the script if the command fails
step() {
  local name=$1
  shift
  "$@" >"$work/out" 2>&1 && return
  { echo "$name: exit status $?"; cat "$work/out"; } >>"$log"
  tail -n 60 "$work/out"
  echo "pool_tsan.sh: $name failed; see $log"
  exit 1
}

index=$work/wordnet.gpuir
step index "$build/gpuir" index -q --tsv --analyzer unicode tests/data/wordnet.tsv -o "$index"
awk -F '\t' '{ n = split(tolower($2), w, /[^a-z]+/); if (n > 6) print w[2], w[4], w[5] }' \
  tests/data/wordnet.tsv >"$work/queries"
rounds=0 tasks=0
while ((SECONDS < seconds)); do
  rounds=$((rounds + 1))
  for test in 57_share 71_crew 72_device 73_pool; do
    step "$test, round $rounds" "$build/tests/unit/$test"
  done
  for policy in inter auto gpu t-inter docp-ui docp-pi fgqp fgqp:beta=50:scoring=document serve \
    ding:train=500:streams=3 griffin:ratio=8:streams=2 ao:c=500:wait=2; do
    device=()
    case $policy in auto | gpu | ding* | griffin* | ao*) device=(--stand-in --stall 50) ;; esac
    step "$policy, round $rounds" "$build/gpuir" lab load --mix --threads 4 --queries 3000 --rate 3000 \
      --seed "$rounds" "${device[@]}" -o "$work/lab" $policy "$index" "$work/queries"
    tasks=$((tasks + 3300))
  done
  echo "round $rounds: 12 policies and the tests of pools, $SECONDS s" >>"$log"
done
echo "$rounds rounds in $SECONDS s, $tasks queries under load beside those of the tests: 0 findings" | tee -a "$log"
