#!/usr/bin/env bash
# schedulers.sh: the papers' schedulers for CPU and GPU, on a machine of 16 processors with a GPU: all figures at once
#
#   schedulers.sh pack      on the machine that builds: gpuir and synth, linked so that they run elsewhere, go to
#                           build/carry/schedulers.tar.xz
#   schedulers.sh [run]     on the machine with the GPU, in the project's folder: unpacks that, makes a synthetic index,
#                           checks for some seconds that all works, and measures
#
# Ding: Figure 7 with 1 core and with all, the deadline 500 ms and then 57 times the mean of a core; a device that holds
# a part of the index. Griffin: one client, lists sent for each query and resident, at the paper's ratio and at others;
# then an open loop. Ao: thresholds from 2^13 to 2^24. The library's inter and auto, and the device alone, beside them.
# Logs go to the folder $OUT (build/session-logs) as schedulers.txt, a table of claims and figures, and
# schedulers.tar.gz, all runs, of which `gpuir lab report` makes a page. What BUDGET seconds (400) do not suffice for is
# left out, and said so. STAND_IN=1 DOCUMENTS=100000 QUERIES=300 tries the script where there is no GPU. Exit status 1:
# something failed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
out=${OUT:-build/session-logs} work=${SCHEDULERS_WORK:-/tmp/schedulers} carry=build/carry/schedulers.tar.xz
budget=${BUDGET:-400} documents=${DOCUMENTS:-8000000} queries=${QUERIES:-5000}
device=()
[ -z "${STAND_IN:-}" ] || device=(--stand-in)
failed=0

say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }
die() {
  say "FAILED: $*"
  exit 1
}

pack() {
  local build=build/session libs='-l:libutf8proc.a -l:libstemmer.a -lm -pthread'
  make -j2 B="$build" GPU=1 GPU_ARCH="${GPU_ARCH:-90}" CFLAGS=-O3 LIBS="$libs" TOOL_LIBS="-l:libz.a $libs" \
    "$build/gpuir" "$build/synth" || return
  mkdir -p "$build/schedulers" "$(dirname "$carry")" || return
  cp "$build"/{gpuir,synth,commit} "$build/schedulers/" && strip "$build"/schedulers/{gpuir,synth} || return
  tar -c -C "$build/schedulers" . | xz -6 -T2 >"$carry" && ls -l "$carry"
}

unpack() {
  mkdir -p "$work" "$out" || return
  if [ -f "$carry" ]; then
    if command -v xz >/dev/null; then xz -dc "$carry"; else
      python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), sys.stdout.buffer)' "$carry"
    fi | tar -x -C "$work" || return
    export PATH=$work:$PATH
  else
    export PATH=${GPUIR_BUILD:-$PWD/build}:$PATH
  fi
  gpuir --version >/dev/null
}

# left SECONDS WHAT: whether so much time is left
left() {
  ((SECONDS + $1 <= budget)) && return
  say "LEFT OUT for lack of time: $2"
  return 1
}

# load NAME POLICY INDEX OPTION...: its lines go to NAME.txt, its rows to NAME/
load() {
  local name=$1 policy=$2 index=$3 extra=("${device[@]}")
  shift 3
  case $policy in
    gpu*) [ -n "${device[*]}" ] || extra=(--backend gpu) ;;
    auto*) [ -n "${device[*]}" ] || extra=(--backend gpu) ;;
    inter*) extra=() ;;
  esac
  timeout 100 gpuir lab load "${extra[@]}" "$@" -o "$work/logs/$name" "$policy" "$work/$index.gpuir" \
    "$work/web.txt" >"$work/logs/$name.txt" 2>"$work/logs/$name.err" && return
  failed=1
  say "FAILED: $name: $(tail -n 2 "$work/logs/$name.err")"
  return 1
}

# most NAME: queries a second of the first run of a log, where all were submitted at once
most() { awk 'NR == 2 { v = $3 } END { print v + 0 }' "$work/logs/$1.txt"; }
# value NAME FIGURE SERIES X: the last value of a series
value() {
  cat "$work/logs/$1"/*.tsv 2>/dev/null | awk -F '\t' -v f="$2" -v s="$3" -v x="$4" \
    '$1 == f && $2 == s && $3 == x { v = $4 } END { print v + 0 }'
}
# row CLAIM FIGURES CONDITION: one line of the table; CONDITION is awk's, and a figure of 0 was not measured
row() {
  local held
  held=$(awk "BEGIN { print ($3) ? \"reproduced\" : \"not reproduced\" }")
  [[ " ${2//[;,]/ } " != *" 0 "* ]] || held="not measured"
  printf '%s\t%s\t%s\n' "$1" "$2" "$held" | tee -a "$table"
}
# over X Y: X by Y
over() { awk -v x="$1" -v y="$2" 'BEGIN { printf "%.3g", (y > 0 ? x / y : 0) }'; }

self_check() {
  local policy
  synth --documents 50000 --terms 5000 --queries 300 "$work/check.gpuir" "$work/web.txt" >/dev/null || die "synth"
  for policy in ding:train=50 ding:mode=gpu:train=50:memory=1 griffin griffin:lists=transfer griffin:mode=gpu \
    ao:c=5000 ao:c=5000:method=algorithm1:codec=lrc; do
    load "check-${policy//:/-}" $policy check --queries 300 --closed --threads $((cores > 2 ? cores : 2)) ||
      die "$policy on a small index: see above"
  done
  say "self-check passed"
}

# What the library's own policies and the device do with the same queries.
beside() {
  local policy
  for policy in inter auto gpu; do
    load "beside-$policy" $policy web --queries "$queries" --load 0.3,0.6,0.9
    say "$policy: $(most "beside-$policy") queries/s at once"
  done
  load beside-inter-1 inter web --queries "$queries" --threads 1 --serial
}

# ding CORES DEADLINE NAME: the four modes, at parts of what each answers at most
ding() {
  local mode name=$3
  for mode in cpu gpu serialized parallel; do
    load "$name-$mode" "ding:mode=$mode:train=$train" web --threads "$1" --deadline "$2" --queries "$queries" \
      --load 0.3,0.6,0.9,1.1
  done
  row "Ding, $1 cores, $2 ms: both above the sum of both alone (queries/s: both; CPU, GPU, serialized)" \
    "$(most "$name-parallel"); $(most "$name-cpu"), $(most "$name-gpu"), $(most "$name-serialized")" \
    "$(most "$name-parallel") > $(most "$name-cpu") + $(most "$name-gpu")"
}

dings() {
  local mean
  ding 1 500 ding-1
  mean=$(sed -n 's/.*processing mean \([0-9.e-]*\) ms.*/\1/p' "$work"/logs/ding-1-cpu/*.tsv | head -n 1)
  left 60 "Ding with all cores" || return
  ding "$cores" "$(awk -v m="${mean:-0.1}" 'BEGIN { printf "%.4g", 57 * m }')" ding-all
  [ -z "${STAND_IN:-}" ] && left 20 "a device that holds a part of the index" || return
  load ding-part "ding:memory=$(($(stat -c %s "$work/web.gpuir") * 3 / 10485760 + 64)):train=$train" web \
    --threads "$cores" --queries "$queries" --load 0.3,0.6,0.9
}

# One client: CPU, GPU and both; then the same under load.
griffins() {
  local lists mode ratio cpu gpu both p
  load griffin-cpu griffin:mode=cpu ef --queries "$queries" --threads 1 --serial
  for lists in transfer resident; do
    for mode in gpu griffin; do
      load "griffin-$mode-$lists" "griffin:mode=$mode:lists=$lists" ef --queries "$queries" --threads 1 --serial
    done
    cpu=$(value griffin-cpu load-latency mean 0) gpu=$(value "griffin-gpu-$lists" load-latency mean 0)
    both=$(value "griffin-griffin-$lists" load-latency mean 0)
    row "Griffin, lists $lists: 10 times its CPU, 1.5 times its GPU (ms: both; CPU, GPU)" "$both; $cpu, $gpu" \
      "$cpu >= 10 * $both && $gpu >= 1.5 * $both"
    for p in 80:6.6 90:8.3 95:10.4 99:16.1; do
      cpu=$(value griffin-cpu load-latency "p${p%:*}" 0)
      both=$(value "griffin-griffin-$lists" load-latency "p${p%:*}" 0)
      row "Griffin, lists $lists: ${p#*:} times its CPU at the ${p%:*}th percentile" "$(over "$cpu" "$both")" \
        "$cpu >= ${p#*:} * $both"
    done
  done
  for ratio in 16 1024 16384; do
    left 15 "Griffin at a ratio of $ratio" || return
    load "griffin-ratio-$ratio" "griffin:ratio=$ratio" ef --queries "$queries" --threads 1 --serial
    say "Griffin, resident, ratio $ratio: mean $(value "griffin-ratio-$ratio" load-latency mean 0) ms"
  done
  left 25 "Griffin under load" || return
  load griffin-live griffin:streams=2 ef --queries "$queries" --threads "$cores" --load 0.3,0.6,0.9
}

aos() {
  local c=8192,32768,131072,524288,1048576,2097152,4194304,16777216 live
  load ao "ao:c=$c:method=hs16,hs32,binary,interpolation,lr-global" web --queries "$queries" --closed \
    --threads "$cores"
  # kernels and transfers alone: ranking is no part of the paper's
  row "Ao, c = 2^20: HS16 60 % above binary search (ms a batch)" \
    "$(value ao ao-response hs16 1048576); $(value ao ao-response binary 1048576)" \
    "1.6 * $(value ao ao-response hs16 1048576) <= $(value ao ao-response binary 1048576)"
  row "Ao, HS16: at least 20 % of the time is CPU and transfers (GPU %, c = 2^13, 2^20, 2^24)" \
    "$(value ao ao-fig9b hs16 8192), $(value ao ao-fig9b hs16 1048576), $(value ao ao-fig9b hs16 16777216)" \
    "$(value ao ao-fig9b hs16 1048576) <= 80"
  left 25 "Ao on coded lists" || return
  load ao-hslrc "ao:c=1048576:method=algorithm1:codec=hslrc" web --queries "$queries" --closed --threads "$cores"
  left 25 "Ao under load" || return
  live=$(awk -v m="$(most beside-gpu)" 'BEGIN { printf "%.6g,%.6g", 0.2 * m + 1, 0.5 * m + 1 }')
  load ao-live "ao:c=131072,1048576:wait=5" web --queries "$queries" --rate "$live" --threads "$cores"
}

run() {
  local processors
  processors=$(nproc) table=$out/schedulers.txt cores=$((processors > 3 ? processors - 3 : 1)) train=$((queries / 2))
  ((train < 3000)) || train=3000
  unpack || die "no programs: run '$0 pack' where there is a compiler"
  rm -rf "$work/logs" && mkdir -p "$work/logs"
  {
    echo "# $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $processors processors;" \
      "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo 'no GPU');" \
      "gpuir, commit $(cat "$work/commit" build/commit 2>/dev/null | head -n 1); command: tools/scripts/schedulers.sh"
    echo "# $documents synthetic documents in random order, runs of $queries queries in AND, one seed"
  } | tee "$table"
  self_check
  lscpu -e >"$work/logs/lscpu.txt" 2>&1
  synth --documents "$documents" --queries $((queries + train)) "$work/web.gpuir" "$work/web.txt" \
    >"$work/logs/synth.txt" || die "synth"
  synth --documents "$documents" --queries $((queries + train)) --codec ef "$work/ef.gpuir" "$work/web.txt" \
    >>"$work/logs/synth.txt" || die "synth"
  say "indexes are made"
  beside
  dings
  if left 60 Griffin; then griffins; fi
  if left 50 Ao; then aos; fi
  tar -czf "$out/schedulers.tar.gz" -C "$work/logs" .
  say "done; exit status $failed"
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
