#!/usr/bin/env bash
# schedulers.sh: the papers' schedulers for CPU and GPU, on a machine of 16 processors with a GPU: all figures at once
#
#   schedulers.sh pack      on the machine that builds: gpuir, synth and a log of queries, linked so that they run
#                           elsewhere, go to build/carry/schedulers.tar.xz, with CHUNKS, an index, if that is given
#   schedulers.sh [run]     on the machine with the GPU, in the project's folder: unpacks that, makes synthetic indexes,
#                           checks for some seconds that all works, and measures
#
# Ding: Figure 7 with all cores and with 1, the deadline 57 times the mean of a core and 500 ms; a device that holds a
# part of the index; the dictionary (DICT, with its TOPICS). Griffin: one client, lists sent for each query and
# resident, at the paper's ratio and at others; then an open loop. Ao: thresholds from 2^13 to 2^24, parts of the
# device. The library's inter and auto, and the device alone, beside them, also by the highest rate with p99 of at
# most P99 ms (5). WEB is an index of 25.2 million synthetic documents, which serves where it is there; else, and for
# Griffin's and Ao's lists, DOCUMENTS are made. Logs go to the folder $OUT (build/session-logs): schedulers.txt, a
# table of figures beside those of the papers that is complete at any time, and schedulers/, all runs, of which `gpuir
# lab report` makes a page and verdicts. What BUDGET seconds (400) do not suffice for is left out, and said so: the
# most telling runs come first. QUICK=1 is one short run of everything. STAND_IN=1 DOCUMENTS=100000 QUERIES=300 tries
# the script where there is no GPU. Exit status 1: something failed. STEPS, such as '30:ao_arrays', are steps with the
# seconds that each needs to begin.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
source tools/scripts/session.bash
out=${OUT:-build/session-logs} work=${SCHEDULERS_WORK:-/tmp/schedulers} carry=${CARRY:-build/carry/schedulers.tar.xz}
budget=${BUDGET:-400} documents=${DOCUMENTS:-8000000} p99=${P99:-5} quick=${QUICK:-}
queries=${QUERIES:-10000} few=${FEW:-2000} train=3000
web=${WEB:-/tmp/dev/r.gpuir} dict=${DICT:-/tmp/dev/dict.gpuir} topics=${TOPICS:-/tmp/dev/dict.topics}
device=()
[ -z "${STAND_IN:-}" ] || device=(--stand-in)
failed=0

# broke NAME: says why a run failed; fails
broke() {
  failed=1
  say "FAILED: $1: $(tail -n 2 "$logs/$1.err")"
  return 1
}

pack() {
  static_make B=build/session GPU=1 CFLAGS=-O3 build/session/{gpuir,synth} || return
  gather gpuir synth || return
  [ -z "${CHUNKS:-}" ] || cp "$CHUNKS" build/session/carry/chunks.gpuir || return
  [ -z "${CHUNKS_QUERIES:-}" ] || cp "$CHUNKS_QUERIES" build/session/carry/chunks.txt || return
  pack_up
}

# load NAME POLICY INDEX QUERIES OPTION...: its lines go to NAME.txt, its rows to NAME/
load() {
  local name=$1 policy=$2 index=$3 log=$4 extra=("${device[@]}") start=$SECONDS
  shift 4
  case $policy in
    gpu* | auto*) [ -n "${device[*]}" ] || extra=(--backend gpu) ;;
    inter*) extra=() ;;
  esac
  if timeout $((budget - SECONDS > 10 ? budget - SECONDS : 10)) gpuir lab load "${extra[@]}" "$@" -o "$logs/$name" \
    "$policy" "$index" "$log" >"$logs/$name.txt" 2>"$logs/$name.err"; then
    say "$name: $((SECONDS - start)) s"
    return
  fi
  broke "$name"
}

# most NAME [VARIANT]: queries a second of the first run of a log, or of a variant, where all were submitted at once
most() { awk -v v="${2-}" '$2 == "0" && (v == "" || $1 == v) { print $3; exit }' "$logs/$1.txt"; }
# capacity NAME: the highest rate that held
capacity() { awk '$1 == "capacity" { x = $3 } END { print x + 0 }' "$logs/$1.txt"; }
# value NAME FIGURE SERIES X: the last value of a series
value() {
  cat "$logs/$1"/*.tsv 2>/dev/null | awk -F '\t' -v f="$2" -v s="$3" -v x="$4" \
    '$1 == f && $2 == s && $3 == x { v = $4 } END { print v + 0 }'
}
# row CLAIM FIGURES: one line of the table. What holds is said by tools/lab/verdict.c alone, over the runs' rows.
row() { printf '%s\t%s\n' "$1" "$2" | tee -a "$table"; }
# over X Y: X by Y
over() { awk -v x="$1" -v y="$2" 'BEGIN { printf "%.3g", (y > 0 ? x / y : 0) }'; }

self_check() {
  local policy check=$work/check.gpuir log=$work/check.txt
  synth --documents 50000 --terms 5000 --queries 300 "$check" "$log" >/dev/null 2>&1 || die "synth"
  for policy in ding:mode=parallel,gpu,serialized:train=50 griffin:mode=griffin,gpu \
    griffin:mode=griffin,gpu:lists=transfer ao:c=5000:method=hs16,binary \
    ao:c=5000:method=algorithm1:codec=hslrc ao:c=5000:method=algorithm1:codec=lrc; do
    load "check-${policy//:/-}" $policy "$check" "$log" --queries 300 --closed --threads 2 ||
      say "FAILED: $policy on a small index: see above"
  done
  say "self-check: exit status $failed"
}

# make_indexes STEP...: the indexes that these need. web is the large one, or the same as the other where that is not
# there.
make_indexes() {
  local all=$((queries + train))
  [[ -f $web && $* != *:ao* && $* != *griffin* && $* != *beside* && $* != *tables* && $* != *ands* ]] ||
    synth --documents "$documents" --queries $all "$work/mid.gpuir" "$work/mid.txt" >"$logs/synth.txt" 2>&1 ||
    die "synth"
  [[ $* != *griffin* ]] ||
    synth --documents "$documents" --queries $all --codec ef "$work/ef.gpuir" "$work/mid.txt" >>"$logs/synth.txt" \
      2>&1 || die "synth"
  if [ -f "$web" ]; then
    synth --queries $all - "$work/web.txt" 2>>"$logs/synth.txt" || die "synth"
  else
    say "no $web: $documents documents stand for it"
    web=$work/mid.gpuir
    cp "$work/mid.txt" "$work/web.txt"
  fi
  say "indexes are made"
}

# Tables 2 and 3: where the time of a query goes on the device, scores being added after each intersection.
ding_tables() {
  local name=ding-tables start=$SECONDS t=${TABLES:-60}
  [ -z "${STAND_IN:-}" ] || return
  ((budget - SECONDS >= t)) || t=$((budget - SECONDS))
  timeout -s TERM "$t" gpuir lab search --backend gpu --sample 1 --repeat 3 --queries 300 \
    --figures ding-table2,ding-table3 -o "$logs/$name" "$work/mid.gpuir" "$work/mid.txt" >"$logs/$name.txt" \
    2>"$logs/$name.err"
  say "$name: $((SECONDS - start)) s"
  [ -f "$logs/$name/search.tsv" ] || broke "$name" || return 0
  row "Ding, Table 3: of AND decoding and intersecting take 92 %, scoring and the best 8 % (%: score, select)" \
    "$(value $name ding-table3 AND/pmf3+tree/alone score), $(value $name ding-table3 AND/pmf3+tree/alone \
      select-top-k)"
}

# The library's own policies and the device beside the papers', on the same queries in AND; and one of its cores beside
# Griffin's.
beside() {
  local policy both
  load beside-core inter "$work/mid.gpuir" "$work/mid.txt" --queries "$queries" --threads 1 --serial
  both=$(value griffin-transfer load-latency griffin/Griffin/transfer/mean 0)
  row "Griffin, lists sent: 10 times a core of this library (ms: Griffin; core)" \
    "$both; $(value beside-core load-latency mean 0)"
  for policy in inter auto gpu; do
    load "beside-$policy" $policy "$web" "$work/web.txt" --queries "$few" --load 0.3,0.6,0.9 || continue
    say "$policy: $(most "beside-$policy") queries/s at once"
  done
}

# ding NAME INDEX QUERIES CORES DEADLINE N TRAIN: the four modes, at parts of what each answers at most
ding() {
  local name=$1 n=$6 loads=0.3,0.6,0.9,1.1 both
  [ -z "$quick" ] || loads=0.6,0.9
  load "$name" "ding:mode=parallel,cpu,gpu,serialized:$7" "$2" "$3" --threads "$4" --deadline "$5" --queries "$n" \
    --load "$loads" || return
  both=$(most "$name" ding/parallel)
  row "Ding, $name, $4 cores, $5 ms: a queue drained, both above the sum (queries/s: both; CPU, GPU, serialized)" \
    "$both; $(most "$name" ding/cpu), $(most "$name" ding/gpu), $(most "$name" ding/serialized)"
}

# held NAME MODE: the mean of the highest rates that five seeds hold
held() { awk -v v="ding/$2" '$1 == "held" && $2 == v { print $3; exit }' "$logs/$1.txt"; }
# Figure 7 as the paper has it, by arrivals: ding_held CORES; five minutes with a deadline of 500 ms, $HOLD.
ding_held() {
  local name=ding-held-$1 both
  load "$name" "ding:mode=parallel,cpu,gpu:train=$train" "$web" "$work/web.txt" --threads "$1" \
    --deadline "${HOLD:-500}" --queries "$few" --hold || return
  both=$(held "$name" parallel)
  row "Ding, Figure 7, $1 cores: both hold more arrivals than the sum (queries/s: both; CPU, GPU)" \
    "$both; $(held "$name" cpu), $(held "$name" gpu)"
}

# deadline NAME: 57 times the mean of a query on a core, ms, as the paper's 500 ms are
deadline() {
  sed -n 's/.*ding\/cpu, .*processing mean \([0-9.e-]*\) ms.*/\1/p' "$logs/$1"/*.tsv 2>/dev/null | head -n 1 |
    awk '{ m = $1 } END { printf "%.4g", 57 * (m > 0 ? m : 2) }'
}

ding_web() {
  local n=$queries
  [ -z "$quick" ] || n=$few
  ding ding-web "$web" "$work/web.txt" "$cores" 500 "$n" "train=$train"
}
ding_one() { ding ding-web-1 "$web" "$work/web.txt" 1 500 "$few" "train=1000:passes=3"; }
ding_short() { ding ding-web-57 "$web" "$work/web.txt" "$cores" "$(deadline ding-web)" "$queries" "train=$train"; }
# is_there FILE WHAT: 0, or says that what needs it is left out
is_there() {
  [ -f "$1" ] && return
  say "LEFT OUT: no $2"
  return 1
}
ding_dict() {
  is_there "$dict" dictionary && is_there "$topics" topics || return 0
  ding ding-dict "$dict" "$topics" "$cores" 500 "$queries" "train=$train"
  ding ding-dict-1 "$dict" "$topics" 1 500 "$few" "train=1000:passes=3"
}
ding_chunks() {
  is_there "$work/chunks.gpuir" chunks || return 0
  ding ding-chunks "$work/chunks.gpuir" "$work/chunks.txt" "$cores" 500 "$queries" "train=$train"
}
# Streams, batches, stealing and theta that differ.
ding_others() {
  local way
  for way in streams=4 batch=64 adaptive steal=plain; do
    left 12 "Ding with $way" || return
    load "ding-web-${way/=/-}" "ding:mode=parallel,gpu:$way:train=$train" "$web" "$work/web.txt" --threads "$cores" \
      --queries "$queries" --load 0.6,0.9 || continue
    row "Ding, $way: both above CPU and GPU alone (queries/s: both; CPU, GPU)" \
      "$(most "ding-web-${way/=/-}" ding/parallel); $(most ding-web ding/cpu), $(most "ding-web-${way/=/-}" ding/gpu)"
  done
}
# A device that holds a sixth of the index: lists are sent while others are searched.
ding_part() {
  [ -z "${STAND_IN:-}" ] || return
  load ding-part "ding:mode=parallel,gpu:memory=$(($(stat -c %s "$web") / 6291456 + 64)):train=$train" "$web" \
    "$work/web.txt" --threads "$cores" --queries "$queries" --load 0.3,0.6,0.9 || return
  row "Ding: 50 to 80 % of the lists are in the device's memory (%, at 0.9 of the most)" \
    "$(awk -F '\t' '$1 == "ding-9-cache" && $2 == "parallel" { v = $4 } END { print v + 0 }' "$logs"/ding-part/*.tsv)"
}

# griffin_client LISTS: one client, as the paper has it; a core takes long, and is measured once
griffin_client() {
  local lists=$1 n=$queries cpu gpu both p x modes=griffin,gpu
  [ -z "$quick" ] || n=$few
  [ "$lists" != transfer ] || modes=griffin,gpu,cpu
  load "griffin-$lists" "griffin:mode=$modes:lists=$lists" "$work/ef.gpuir" "$work/mid.txt" --queries "$n" \
    --threads 1 --serial || return
  cpu=$(value griffin-transfer load-latency griffin/CPU/transfer/mean 0)
  gpu=$(value "griffin-$lists" load-latency "griffin/Griffin-GPU/$lists/mean" 0)
  both=$(value "griffin-$lists" load-latency "griffin/Griffin/$lists/mean" 0)
  row "Griffin, lists $lists: 10 times its CPU, 1.5 times its GPU (ms: both; CPU, GPU)" "$both; $cpu, $gpu"
  for p in 80:6.6 90:8.3 95:10.4 99:16.1 99.9:26.8; do
    x=$(over "$(value griffin-transfer griffin-fig15 CPU/transfer "${p%:*}")" \
      "$(value "griffin-$lists" griffin-fig15 "Griffin/$lists" "${p%:*}")")
    row "Griffin, lists $lists: ${p#*:} times its CPU at the ${p%:*}th percentile" "$x"
  done
}
griffin_ratios() {
  load griffin-ratios griffin:ratio=16,1024,16384 "$work/ef.gpuir" "$work/mid.txt" --queries "$queries" --threads 1 \
    --serial
}
griffin_live() {
  load griffin-live griffin:mode=griffin,gpu,cpu:streams=2 "$work/ef.gpuir" "$work/mid.txt" --queries "$queries" \
    --threads "$cores" --load 0.3,0.6,0.9 || return
  row "Griffin, open loop, resident: both above CPU and GPU (queries/s: both; CPU, GPU)" \
    "$(most griffin-live griffin/Griffin/resident); $(most griffin-live griffin/CPU/resident), $(most \
      griffin-live griffin/Griffin-GPU/resident)"
}

ao_arrays() {
  local c=8192,32768,131072,524288,1048576,2097152,4194304,16777216 n=$((queries / 2))
  local m=hs16,binary,hs32,interpolation,lr-global
  [ -z "$quick" ] || c=131072,1048576,2097152 n=$few m=hs16,binary
  load ao "ao:c=$c:method=$m:wait=20" "$work/mid.gpuir" "$work/mid.txt" --queries "$n" --closed --threads "$cores" ||
    return
  # kernels and transfers alone: ranking is no part of the paper's
  row "Ao, c = 2^20: HS16 60 % above binary search (ms a batch)" \
    "$(value ao ao-response hs16 1048576); $(value ao ao-response binary 1048576)"
  row "Ao, HS16: queries/s of batches rise from c = 2^20 to 2^21 (ms for a million docIDs)" \
    "$(over "$(value ao ao-response hs16 1048576)" 1.048576), $(over "$(value ao ao-response hs16 2097152)" 2.097152)"
  row "Ao, HS16: at least 20 % of the time is CPU and transfers (GPU %, c = 2^17, 2^20, 2^21)" \
    "$(value ao ao-fig9b hs16 131072), $(value ao ao-fig9b hs16 1048576), $(value ao ao-fig9b hs16 2097152)"
}
# Figure 9a: kernels that are loaded at once need not wait for the blocks that take multiprocessors.
ao_part() {
  CUDA_MODULE_LOADING=EAGER load ao-part "ao:c=1048576:method=hs16,binary:processors=132,99,66,33,16,8,4,2,1:wait=20" \
    "$work/mid.gpuir" "$work/mid.txt" --queries "$few" --closed --threads "$cores" || return
  row "Ao, HS16: speed grows almost linearly with the multiprocessors (billion docIDs/s: 1, 33, 132)" \
    "$(value ao-part ao-fig9a hs16 1), $(value ao-part ao-fig9a hs16 33), $(value ao-part ao-fig9a hs16 132)"
}
ao_coded() {
  load ao-hslrc ao:c=1048576:method=algorithm1:codec=hslrc:wait=20 "$work/mid.gpuir" "$work/mid.txt" \
    --queries "$queries" --closed --threads "$cores"
}
# ao_table NAME INDEX QUERIES LIMIT METHODS FIGURES: tables of Ao's over the first LIMIT queries of a log
ao_table() {
  local t start=$SECONDS
  t=$((budget - SECONDS < ${TABLES:-60} ? budget - SECONDS : ${TABLES:-60}))
  timeout -s TERM "$t" gpuir lab intersect --backend gpu --sample 1 --repeat 3 --queries "$4" --figures "$6" \
    -o "$logs/$1" --methods "$5" "$2" "$3" >"$logs/$1.txt" 2>"$logs/$1.err"
  say "$1: $((SECONDS - start)) s"
  [ -f "$logs/$1/intersect.tsv" ] || broke "$1" || return 0
}
# Tables 3 and 7 over the dictionary's log, then over 1,000 queries: the device's columns first; a core's, which take
# minutes, as far as time goes ($TABLES seconds a table).
ao_tables() {
  local name=ao-tables methods=skip,binary,hs16,interpolation,lr-global,lr-local,mergepath
  local coded=algorithm1,algorithm1-without-h both=ao-table7,ao-table7-ms
  [ -z "${STAND_IN:-}" ] || return
  if [ -f "$dict" ] && [ -f "$topics" ]; then
    ao_table ao-tables-dict "$dict" "$topics" 50000 "$methods,$coded" "ao-table3,query-time,$both"
  fi
  ao_table $name "$work/mid.gpuir" "$work/mid.txt" 1000 "$coded,binary" "$both"
  ao_table $name-3 "$work/mid.gpuir" "$work/mid.txt" 1000 $methods ao-table3,query-time
  [ -f "$logs/$name/intersect.tsv" ] || return 0
  row "Ao, Table 7: HS256.LRC has the highest throughput on coded lists (queries/s: hslrc, lrc, seglrc)" \
    "$(value $name ao-table7 GPU hslrc:256,0/algorithm1), $(value $name ao-table7 GPU lrc:256,0/algorithm1), $(value \
      $name ao-table7 GPU seglrc:256,0/algorithm1)"
  row "Ao, 5.2: without H(t) Algorithm 1 takes half as long again (queries/s of lrc: with, without)" \
    "$(value $name ao-table7 GPU lrc:256,0/algorithm1), $(value $name ao-table7 GPU lrc:256,0/algorithm1-without-h)"
}
ao_live() {
  local most_
  most_=$(most ao "ao/hs16/1048576")
  load ao-live "ao:c=131072,1048576:wait=5" "$work/mid.gpuir" "$work/mid.txt" --queries "$queries" --threads "$cores" \
    --rate "$(awk -v m="$most_" 'BEGIN { printf "%.6g,%.6g,%.6g", 0.2 * m + 1, 0.5 * m + 1, 0.8 * m + 1 }')"
}

# The highest rates with p99 of at most $p99 ms, each policy with all processors: mixed load, then AND alone.
# capacities NAME INDEX QUERIES WITH-MIX POLICY...
capacities() {
  local name=$1 index=$2 log=$3 mix=() policy best=0 auto=0 c threads
  [ "$4" = - ] || mix=("$4")
  shift 4
  for policy; do
    left 25 "the highest rate of $policy ($name)" || break
    threads=$cores
    [ "$policy" != inter ] || threads=$((processors > 2 ? processors - 1 : 1))
    [ "$policy" != auto ] || threads=$((processors > 3 ? processors - 2 : 1))
    load "$name-${policy%%:*}" "$policy" "$index" "$log" "${mix[@]}" --threads "$threads" --queries "$queries" \
      --p99 "$p99" || continue
    c=$(capacity "$name-${policy%%:*}")
    say "$name: $policy holds $c queries/s within $p99 ms, $(most "$name-${policy%%:*}") at once"
    [ "$policy" = auto ] && auto=$c
    best=$(awk -v a="$best" -v b="$c" 'BEGIN { print (a > b ? a : b) }')
  done
  row "$name: auto is behind none by more than 3 % (queries/s with p99 of $p99 ms: auto; best)" "$auto; $best"
}
# mix_of NAME INDEX QUERIES: the mixed load on an index
mix_of() { capacities "$1" "$2" "$3" --mix auto gpu "ding:train=$train" inter; }
mixed() { mix_of mixed "$web" "$work/web.txt"; }
mixed_dict() {
  is_there "$dict" dictionary && is_there "$topics" topics || return 0
  mix_of mixed-dict "$dict" "$topics"
}
mixed_chunks() {
  is_there "$work/chunks.gpuir" chunks || return 0
  mix_of mixed-chunks "$work/chunks.gpuir" "$work/chunks.txt"
}
ands() {
  capacities and "$work/mid.gpuir" "$work/mid.txt" - auto gpu "ding:train=$train" griffin:streams=2 \
    ao:c=131072:wait=1 inter
}

run() {
  local step
  processors=$(nproc) table=$out/schedulers.txt cores=$((processors > 4 ? processors - 4 : 1)) logs=$out/schedulers
  [ -z "$quick" ] || queries=$few train=1000
  ((train <= queries / 2)) || train=$((queries / 2))
  unpack || die "no programs: run '$0 pack' where there is a compiler"
  rm -rf "$logs" && mkdir -p "$logs"
  {
    head_of schedulers.sh
    echo "# web: $([ -f "$web" ] && echo "$web" || echo "$documents documents"); lists of Griffin and Ao: $documents" \
      "synthetic documents in random order; runs of $queries queries in AND, one seed"
  } | tee "$table"
  lscpu -e >"$logs/lscpu.txt" 2>&1
  self_check
  local steps="50:ding_web 45:griffin_client:transfer 30:ao_arrays 45:griffin_client:resident 25:beside 45:mixed \
    45:mixed_dict 45:mixed_chunks 50:ao_tables 30:ding_tables 30:ding_dict 30:ding_one 25:ding_part 40:ands \
    25:ding_chunks 20:ao_live 25:griffin_live 25:ding_short 20:ding_others 20:griffin_ratios 12:ao_part 20:ao_coded \
    340:ding_held:$cores"
  [ -z "$quick" ] || steps="12:ding_web 10:griffin_client:resident 10:ao_arrays 10:griffin_client:transfer 10:beside \
    15:mixed 12:ding_part 10:ao_part 10:ao_coded"
  steps=${STEPS:-$steps}
  make_indexes "$steps"
  for step in $steps; do
    IFS=: read -r seconds what with <<<"$step"
    if left "$seconds" "$what $with"; then "$what" "$with"; fi
  done
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
