#!/usr/bin/env bash
# pool_gpu.sh: holds the policy auto against inter and a device alone, on a machine of 16 processors with a GPU
#
#   pool_gpu.sh pack        on the machine that builds: gpuir and synth, linked so that they run elsewhere, go to
#                           build/carry/pool.tar.xz
#   pool_gpu.sh [run]       on the machine with the GPU, in the project's folder: unpacks that, makes synthetic indexes,
#                           checks for some seconds that all works, and measures
#
# Mixed load: of 100 queries 90 are short ANDs, 9 as given, one is an OR of 6 to 16 words. T(X) is the highest rate with
# p99 of at most P99 ms (5). Every policy has all processors, generator and driver of the device included. Logs go to
# the folder $OUT (build/session-logs) as pool_gpu.txt, the table of goals and figures, which is printed last too, and
# pool_gpu.tar.gz, all runs. What BUDGET seconds (280) do not suffice for is left out, and said so. WEB=INDEX and
# WEB_QUERIES take a synthetic index that stands there, DICT=INDEX and DICT_QUERIES a dictionary with its topics,
# CHUNKS=INDEX and CHUNKS_QUERIES one of chunks; INDEXES (web dict chunks small) are measured in this order. pack adds
# CHUNKS and CHUNKS_QUERIES to the archive, if they are given there. STAND_IN=1 DOCUMENTS=200000 SMALL=100000 tries the
# script where there is no GPU. Exit status 1: something failed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
source tools/scripts/session.bash
out=${OUT:-build/session-logs} work=${POOL_WORK:-/tmp/pool-gpu} carry=${CARRY:-build/carry/pool.tar.xz}
budget=${BUDGET:-280} documents=${DOCUMENTS:-25200000} small=${SMALL:-1700000}
device=(--backend gpu)
[ -z "${STAND_IN:-}" ] || device=(--device-time '60,2')
AUTO_LESS=${AUTO_LESS:-2} # processors that are not for threads of auto: the generator's and the driver's
failed=0

pack() {
  static_make B=build/session GPU=1 CFLAGS=-O3 build/session/{gpuir,synth} || return
  gather gpuir synth || return
  [ -z "${CHUNKS:-}" ] || cp "$CHUNKS" build/session/carry/chunks.gpuir || return
  [ -z "${CHUNKS_QUERIES:-}" ] || cp "$CHUNKS_QUERIES" build/session/carry/chunks.txt || return
  pack_up
}

# load NAME POLICY INDEX OPTION...: the lines of its runs, which go to NAME.txt too; rows to NAME/
load() {
  local name=$1 policy=$2 index=$3 extra=()
  shift 3
  case $policy in
    gpu) extra=("${device[@]}") ;;
    auto) extra=("${device[@]}" --threads $((processors > 4 ? processors - AUTO_LESS : 1))) ;;
    *) extra=(--threads $((processors > 2 ? processors - 1 : 1))) ;;
  esac
  timeout 100 gpuir lab load --mix "${extra[@]}" "$@" -o "$work/logs/$name" "$policy" "$work/$index.gpuir" \
    "$work/$index.txt" >"$work/logs/$name.txt" 2>"$work/logs/$name.err" && return
  failed=1
  say "FAILED: $name: $(tail -n 2 "$work/logs/$name.err")"
  return 1
}

# column N NAME...: the median of column N of the runs of a log
column() { awk -v n="$1" 'NR > 1 && $1 != "capacity" { print $n }' "$work/logs/$2.txt" | sort -g |
  awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : 0 }'; }
capacity() { awk '$1 == "capacity" { v = $3 } END { print v + 0 }' "$work/logs/$1.txt" 2>/dev/null; }
# times X Y: their product
times() { awk -v x="$1" -v y="$2" 'BEGIN { printf "%.6g", x * y }'; }
# row GOAL FIGURE CONDITION: one line of the table; CONDITION is awk's
row() {
  printf '%s\t%s\t%s\n' "$1" "$2" "$(awk "BEGIN { print ($3) ? \"reached\" : \"not reached\" }")" | tee -a "$table"
}

self_check() {
  local policy
  synth --documents 100000 --terms 10000 --queries 1000 "$work/check.gpuir" "$work/check.txt" >/dev/null || die "synth"
  for policy in inter gpu auto; do
    load "check-$policy" $policy check --queries 3000 --closed || die "$policy on a small index: see above"
  done
  load check-stall gpu check --queries 3000 --rate 3000 --stall 100 || die "a device that is held up"
  say "self-check passed: queries/s (inter, gpu, auto)" \
    "$(column 3 check-inter), $(column 3 check-gpu), $(column 3 check-auto)"
}

# The machine's own scaling: what a loop that computes, and one that reads memory, gain by processes.
scaling() {
  python3 - "$processors" <<'PYTHON'
import multiprocessing as mp, sys, time
import numpy as np
def work(kind, seconds, start, result):
    small, large = np.ones(2048), np.ones(1 << 24)
    start.wait()
    n, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        if kind == 'compute':
            for _ in range(50): np.sqrt(small, out=small)
        else:
            large.sum()
        n += 1
    result.put(n)
for kind in 'compute', 'bandwidth':
    one = None
    for p in (1, 2, 4, 8, int(sys.argv[1])):
        start, result = mp.Barrier(p), mp.Queue()
        ps = [mp.Process(target=work, args=(kind, 0.6, start, result)) for _ in range(p)]
        for x in ps: x.start()
        n = sum(result.get() for _ in ps)
        for x in ps: x.join()
        one = one or n
        print(f'scaling\t{kind}\t{p} processes\t{n / one:.2f} times one')
PYTHON
}

# capacities INDEX: T of each policy, and what they have at half of auto's
capacities() {
  local index=$1 policy inter gpu auto half
  for policy in inter gpu auto; do load "$index-$policy-T" $policy "$index" --queries 10000 --p99 "${P99:-5}"; done
  inter=$(capacity "$index-inter-T") gpu=$(capacity "$index-gpu-T") auto=$(capacity "$index-auto-T")
  printf '%s: T(inter) %s, T(gpu) %s, T(auto) %s queries/s; all at once: %s, %s, %s\n' \
    "$index" "$inter" "$gpu" "$auto" \
    "$(head -n 2 "$work/logs/$index-inter-T.txt" | column_of 3)" \
    "$(head -n 2 "$work/logs/$index-gpu-T.txt" | column_of 3)" \
    "$(head -n 2 "$work/logs/$index-auto-T.txt" | column_of 3)" | tee -a "$table"
  row "$index: T(auto) at least 0.9 x (T(inter) + T(gpu))" "$(awk "BEGIN { print $auto / ($inter + $gpu + 1e-9) }")" \
    "$auto > 0 && $auto >= 0.9 * ($inter + $gpu)"
  row "$index: T(auto) above both" "$auto; $inter, $gpu" "$auto > $inter && $auto > $gpu"
  half=$(times "$auto" 0.5)
  awk "BEGIN { exit !($half > 0) }" || return
  left 25 "p99 at half of T(auto) on $index" || return
  for policy in inter gpu auto; do
    [ $policy != inter ] || [ "$inter" != 0 ] || continue # it is saturated there
    load "$index-$policy-half" $policy "$index" --rate "$half" --queries "$(seconds_of "$half" 2)" --seed 1,2,3
  done
  if [ -f "$work/logs/$index-inter-half.txt" ]; then inter=$(column 6 "$index-inter-half"); else inter=saturated; fi
  gpu=$(column 6 "$index-gpu-half") auto=$(column 6 "$index-auto-half")
  row "$index: p99 at half of T(auto) at most 1.05 x the better one's (ms: auto; inter, gpu)" "$auto; $inter, $gpu" \
    "$auto <= 1.05 * $gpu$([ "$inter" = saturated ] || echo " && $auto <= 1.05 * $inter")"
}
# seconds_of RATE N: the queries of N seconds, 1,000 at least and 100,000 at most
seconds_of() { awk -v r="$1" -v n="$2" 'BEGIN { q = r * n; print int(q < 1000 ? 1000 : q > 100000 ? 100000 : q) }'; }
column_of() { awk -v n="$1" 'NR == 2 { print $n }'; }

# tails INDEX: the far end of the latencies near inter's limit
tails() {
  local index=$1 rate policy inter auto
  rate=$(times "$(head -n 2 "$work/logs/$index-inter-T.txt" | column_of 3)" 0.9)
  left "$(awk -v r="$rate" 'BEGIN { print int(3 * 100000 * 1.15 / (r + 1) + 12) }')" "p99.9 on $index" || return
  for policy in inter auto gpu; do load "$index-$policy-tail" $policy "$index" --rate "$rate" --queries 100000; done
  inter=$(p999 "$index-inter-tail" inter) auto=$(p999 "$index-auto-tail" auto)
  row "$index: p99.9 at 0.9 of inter's saturation, inter's 50 x auto's (ms: auto; inter; a device alone)" \
    "$auto; $inter; $(p999 "$index-gpu-tail" gpu)" "$inter >= 50 * $auto"
}
p999() {
  awk -F '\t' '$1 == "load-latency" && $2 == "p99.9" { v = $4 } END { print v + 0 }' "$work/logs/$1/load-$2.tsv"
}

# deadlines INDEX: what auto misses at 0.9 of its T
deadlines() {
  local index=$1 rate mean ms
  rate=$(times "$(capacity "$index-auto-T")" 0.9)
  awk "BEGIN { exit !($rate > 0) }" && left 20 "deadlines on $index" || return
  mean=$(sed -n 's/.*processing mean \([0-9.e-]*\) ms.*/\1/p' "$work/logs/$index-inter-T/load-inter.tsv" | tail -n 1)
  for ms in 500 "$(times "${mean:-0.1}" 57)"; do
    load "$index-auto-deadline-$ms" auto "$index" --rate "$rate" --queries "$(seconds_of "$rate" 2)" --deadline "$ms"
    row "$index: no query misses a deadline of $ms ms at 0.9 x T(auto)" \
      "$(column 8 "$index-auto-deadline-$ms") missed" "$(column 8 "$index-auto-deadline-$ms") == 0"
  done
}

# stalls INDEX: a device that is held up for 100 ms at half of its limit
stalls() {
  local index=$1 rate policy line
  rate=$(times "$(head -n 2 "$work/logs/$index-gpu-T.txt" | column_of 3)" 0.5)
  left 12 "a device that is held up" || return
  for policy in gpu auto; do
    load "$index-$policy-stall" $policy "$index" --rate "$rate" --queries "$(seconds_of "$rate" 1)" --stall 100
    line=$(sed -n 's/.* waited \([0-9]*\)$/\1/p' "$work/logs/$index-$policy-stall.txt")
    [ $policy = gpu ] || { say "auto: ${line:-none} waited 50 ms or more"; continue; }
    row "$index: of gpu, at least rate x 0.05 s queries (- 20 %) wait 50 ms or more in a stall of 100 ms" \
      "${line:-0} of $(times "$rate" 0.05)" "${line:-0} >= 0.8 * $rate * 0.05"
  done
}

# lost INDEX: a device that answers nothing any more; load fails if a query does, or has other hits
lost() {
  local index=$1 rate what
  rate=$(times "$(head -n 2 "$work/logs/$index-inter-T.txt" | column_of 3)" 0.5)
  left 12 "a device that is lost" || return
  load "$index-auto-lost" auto "$index" --rate "$rate" --queries "$(seconds_of "$rate" 3)" --stall 20000
  what=$(sed -n 's/^# pool: //p' "$work/logs/$index-auto-lost/load-auto.tsv" | tail -n 1)
  row "$index: a device is lost, and no query or hit (${what:-no run})" \
    "$(column 8 "$index-auto-lost") missed" "$(grep -c unanswered <<<"$what") == 1"
}

# given INDEX FILE QUERIES: whether an index that stands there is to be measured
given() {
  if [ -n "$2" ]; then ln -sf "$2" "$work/$1.gpuir" && ln -sf "$3" "$work/$1.txt"; fi
  [ -e "$work/$1.gpuir" ] && left 30 "$1"
}

measure_web() {
  if ! given web "${WEB:-}" "${WEB_QUERIES:-}"; then
    synth --documents "$documents" "$work/web.gpuir" "$work/web.txt" >"$work/logs/synth.txt" || die "synth"
  fi
  capacities web
  say "rates and p99 are measured"
  tails web
  say "tails are measured"
  deadlines web
  stalls web
  lost web
}

measure_dict() { if given dict "${DICT:-}" "${DICT_QUERIES:-}"; then capacities dict; fi; }

measure_chunks() { if given chunks "${CHUNKS:-}" "${CHUNKS_QUERIES:-}"; then capacities chunks; fi; }

measure_small() {
  left 30 "the small index" || return
  synth --documents "$small" --length 20 "$work/small.gpuir" "$work/small.txt" >>"$work/logs/synth.txt" || die "synth"
  capacities small
}

run() {
  local index
  processors=$(nproc) table=$out/pool_gpu.txt
  unpack || die "no programs: run '$0 pack' where there is a compiler"
  rm -rf "$work/logs" && mkdir -p "$work/logs"
  {
    head_of pool_gpu.sh
    echo "# documents: $documents (web), $small (small), in random order; mixed load; runs of T: 1,000 queries at least"
  } >"$table"
  self_check
  lscpu -e >"$work/logs/lscpu.txt" 2>&1
  for index in ${INDEXES:-web dict chunks small}; do "measure_$index"; done
  if left 20 "the machine's scaling"; then scaling 2>"$work/logs/scaling.err" | tee -a "$table"; fi
  tar -czf "$out/pool_gpu.tar.gz" -C "$work/logs" .
  say "done; exit status $failed"
  cat "$table"
  return $failed
}

case ${1:-run} in
  pack) pack ;;
  run) run ;;
  *)
    sed -n 's/^# //p' "$0" | head -n 1 >&2
    exit 2
    ;;
esac
