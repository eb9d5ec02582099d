#!/usr/bin/env bash
# sanitize_gpu.sh TESTS DIR [TOOL...]: the tests of the device under compute-sanitizer, shared by processes
#
# TESTS is the folder of test_cuda, test_lab and test_hostile (build/tests/gpu). Each TOOL (memcheck, synccheck,
# racecheck and initcheck) runs the quick forms of the first two, in shares of like length, and memcheck 2,000 damaged
# indexes too. $JOBS shares (12) run at once, each for $LIMIT seconds at most, if that is set. DIR gets what each one
# prints, and `table`, a line a share. Ends with status 1 if one has a finding, fails or is stopped. All four take some
# 25 minutes on an H200 beside 16 processors.
#
# racecheck and initcheck take one launch after the other (--force-blocking-launches): the tests of live indexes launch
# from two threads at once, and there initcheck takes for unwritten what one of them has sent, and needs twenty times as
# long.
# shellcheck disable=SC2317 # a function is called by another process
set -uo pipefail
if [ $# -lt 2 ]; then
  sed -n 's/^# //p' "$0" | head -n 1 >&2
  exit 2
fi
tests=$(cd "$1" && pwd) || exit
mkdir -p "$2" && dir=$(cd "$2" && pwd) || exit
shift 2
[ $# -gt 0 ] || set -- memcheck synccheck racecheck initcheck
export tests dir limit=${LIMIT:-0}

# sanitized TOOL TEST ARGUMENT...: adds a line to the table
sanitized() {
  local options=(--tool "$1" --error-exitcode 9) out start=$SECONDS status
  case $1 in racecheck | initcheck) options+=(--force-blocking-launches) ;; esac
  out=$dir/$(tr '/ ' '.-' <<<"$*").txt
  timeout "$limit" compute-sanitizer "${options[@]}" "$tests/$2" "${@:3}" >"$out" 2>&1
  status=$?
  echo "$*: $(grep -c '^ok ' "$out") ok, $(grep -c '^not ok ' "$out") not ok, status $status," \
    "$((SECONDS - start)) s;$(sed -n '/SUMMARY/s/^=*//p' "$out" | tail -n 1)" >>"$dir/table"
  return "$status"
}
export -f sanitized

# shares TOOL: arguments of sanitized, those that take longest first
shares() {
  local share
  for share in quick\ {7,8}/12; do echo "$1 test_lab $share"; done
  for share in live-quick\ {1..8}/8 ranges-quick\ {1,4,2,6,3,5}/6 shapes-quick\ {1..8}/8 phrases-quick \
    codecs-quick\ {1..4}/4 text-quick; do
    echo "$1 test_cuda $share"
  done
  for share in quick\ {1,2,3,4,5,6,9,10,11,12}/12; do echo "$1 test_lab $share"; done
  [ "$1" != memcheck ] || echo memcheck test_hostile 2000
}

: >"$dir/table"
for tool; do shares "$tool"; done | xargs -P "${JOBS:-12}" -L 1 bash -c 'sanitized "$@"' _
status=$?
cat "$dir/table"
exit $((status != 0))
