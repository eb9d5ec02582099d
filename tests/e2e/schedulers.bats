#!/usr/bin/env bats
# The papers' schedulers for a CPU and a GPU in gpuir lab load, on a processor that stands for the device: hits are
# those of gpuir_search, each query is answered once, and what is reported adds up.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  export root build PATH="$build:$PATH"
  export index=$BATS_FILE_TMPDIR/wordnet.gpuir queries=$BATS_FILE_TMPDIR/queries
  index_wordnet "$root/tests/data/wordnet.tsv" "$index" "$queries"
}

setup() {
  cd "$BATS_TEST_TMPDIR" || exit
}

# follow POLICY OPTION...: a run on the stand-in; $file is what it wrote
follow() {
  local policy=$1
  shift
  gpuir lab load --stand-in --threads 2 "$@" -o . "$policy" "$index" "$queries" >out
  file=load-${policy//[:=]/-}.tsv
  grep -q '0 failed, 0 wrong$' "$file"
  grep -q '^# device: a processor stands for it' "$file"
}

# value FIGURE SERIES [X]: the last value of a series
value() {
  awk -F '\t' -v f="$1" -v s="$2" -v x="${3-}" \
    '$1 == f && $2 == s && (x == "" || $3 == x) { v = $4 } END { print v + 0 }' "$file"
}

# fails CAUSE POLICY ARGUMENT...: gpuir lab load refuses a policy with status 2
fails() {
  local cause=$1
  shift
  run --separate-stderr gpuir lab load --stand-in --queries 100 --closed -o . "$@" "$index" "$queries"
  # shellcheck disable=SC2154 # stderr is set by run
  [ "$status" = 2 ] && [[ $stderr == *"$cause"* ]]
}

@test "Ding: all modes answer all queries, each once, by whom the mode says" {
  local mode cpu gpu
  for mode in parallel cpu gpu serialized parallel:adaptive:steal=plain:theta=0:streams=3:batch=4 \
    parallel:scale=linear:passes=1:urgent=0; do
    follow ding:train=100:passes=2:mode=$mode --queries 400 --closed
    [ "$(awk -F '\t' '$1 == "load-histogram" { n += $4 } END { print n }' "$file")" = 400 ]
    cpu=$(sed -n 's/^# ding side: CPU: \([0-9]*\) .*/\1/p' "$file")
    gpu=$(sed -n 's/^# ding side: GPU: \([0-9]*\) .*/\1/p' "$file")
    [ $((cpu + gpu)) = 441 ] # with those that warm up, and the one that wakes the pool
    case $mode in
      cpu) [ "$gpu" = 0 ] ;;
      gpu) [ "$cpu" = 0 ] ;;
      *urgent=0) run ! grep -q '^# ding side.* [1-9][0-9]* own' "$file" ;; # urgent ones go first
    esac
    awk -F '\t' '/^# ding side/ { split($0, v, /[^0-9]+/); if (v[2] != v[3] + v[4] + v[5] + v[6]) exit 1 }' "$file"
  done
}

@test "Ding: costs are learned from queries that runs do not ask" {
  follow ding:train=300 --queries 2000 --closed
  grep -q '^# cost model: CPU: [0-9]* leaves; .* of 100 other queries, .* of the 300 it was grown from' "$file"
  grep -q ', 400 distinct;' "$file"
  awk -F '\t' '$1 == "ding-9-model" { n++ } END { exit n != 6 }' "$file"
  [ "$(awk -F '\t' '$1 == "ding-84-terms" && $2 == "CPU" { print $3 }' "$file" | sort -n | tr '\n' ' ')" = "1 2 3 4 " ]
  follow ding:train=100000:mode=cpu --queries 100 --closed
  grep -q 'of the 350 it was grown from' "$file"
}

@test "Ding: a query that misses its deadline fails the rate" {
  follow ding:train=50 --queries 3000 --closed --deadline 0.05 --mode or -k 1000
  sed -n 's/.*; \([0-9]*\) missed, 0 failed, 0 wrong$/\1/p' "$file" >missed
  [ "$(cat missed)" -gt 100 ]
  follow ding:train=50 --queries 3000 --rate 100000 --deadline 0.05 --mode or -k 1000
  awk -F '\t' '$1 == "ding-fig7" { print $2 }' "$file" >series
  [ "$(sort series | tr '\n' ' ')" = "parallel/mean/failed parallel/p99/failed " ]
}

@test "several modes, ratios or thresholds are runs of their own, with names" {
  follow ding:train=100:passes=1:mode=gpu,parallel,cpu --queries 300 --closed
  [ "$(awk -F '\t' '$1 == "ding-9-most" && $4 > 0 { print $3 }' "$file" | tr '\n' ' ')" = "gpu parallel cpu " ]
  [ "$(value ding-9-shares gpu/GPU 0)" = 100 ] && [ "$(value ding-9-shares cpu/CPU 0)" = 100 ]
  [ "$(grep -c '^ding/' out)" = 3 ] && grep -q '^ding/cpu *0 ' out
  [ "$(awk -F '\t' '$1 == "load-latency" && $2 ~ "^ding/.*/p50$" { n++ } END { print n }' "$file")" = 3 ]
  follow griffin:mode=cpu,griffin:ratio=128,1.5 --queries 300 --serial
  awk -F '\t' '$1 == "griffin-fig15" && $3 == 99 { print $2 }' "$file" >series
  [ "$(tr '\n' ' ' <series)" = "CPU/resident CPU/resident/1.5 Griffin/resident Griffin/resident/1.5 " ]
}

@test "Griffin: queries begin and move by the ratio, in every mode; one client at a time" {
  local mode gpu cpu moved
  for mode in griffin gpu cpu griffin:ratio=1.5:streams=3 griffin:lists=transfer:ratio=4 gpu:ratio=1e9; do
    follow griffin:mode=$mode --queries 400 --closed
    sed -n 's/^# griffin run: \([0-9]*\) .* GPU, \([0-9]*\) on the CPU, \([0-9]*\) moved; .*/\1 \2 \3/p' "$file" >begun
    read -r gpu cpu moved <begun
    [ $((gpu + cpu)) = 441 ]
    case $mode in
      griffin | *transfer*) [ "$gpu" -gt 0 ] && [ "$moved" -gt 0 ] ;;
      *=1.5*) [ "$cpu" -gt "$gpu" ] && [ "$gpu" -gt 0 ] ;;
      gpu*) [ "$cpu" = 0 ] && [ "$moved" = 0 ] ;;
      cpu) [ "$gpu" = 0 ] ;;
    esac
  done
  follow griffin --queries 400 --serial
  [ "$(value griffin-fig11 queries 2)" != 0 ]
  [ "$(value griffin-fig11 queries 1)" = 0 ] # there is no second list to compare with
  # a mean lies in its interval, which the queries have
  awk -F '\t' '($1 == "griffin-fig14" || $1 == "griffin-fig15") && $2 == "Griffin/resident" {
    n++; if (!($6 <= $4 && $4 <= $7 && $6 > 0 && $8 > 0)) bad++; if ($6 < $7) wide++ } END { exit n < 6 || bad || !wide }' "$file"
  awk -F '\t' '$1 == "griffin-fig15" && $2 == "Griffin/resident" { print $3 }' "$file" >percentiles
  [ "$(tr '\n' ' ' <percentiles)" = "80 90 95 99 " ]
}

@test "Ao: a batch is closed by its threshold or by its wait, and its parts are told" {
  local policy batches full
  for policy in ao ao:c=1 ao:c=50:method=binary ao:c=200:method=lr-global:wait=1 ao:c=5000:method=interpolation; do
    follow $policy --queries 400 --closed
    sed -n 's/^# ao run: .*: \([0-9]*\) batches .* docIDs, \([0-9]*\) closed .*/\1 \2/p' "$file" >batches
    read -r batches full <batches
    case $policy in
      ao) [ "$full" = 0 ] && [ "$batches" -lt 50 ] ;;
      ao:c=1) [ "$full" -gt 300 ] ;;
      *) [ "$full" -gt 0 ] && [ "$batches" -lt 400 ] ;;
    esac
    [ "$(awk -F '\t' '$1 == "ao-parts" { n++ } END { print n }' "$file")" = 2 ] # nothing is sent here
    [ "$(awk -F '\t' '$1 == "ao-fig9b" { print ($4 > 0 && $4 <= 100) }' "$file")" = 1 ]
  done
  follow ao:c=100:answer=documents --queries 400 --closed
  grep -q '^ao-throughput.hs16/documents.100' "$file"
  awk -F '\t' '$1 == "ao-response" { exit !($6 <= $4 && $4 <= $7 && $8 > 1) }' "$file"
  awk -F '\t' '$1 == "ao-batch" { exit !($4 > 1) }' "$file"
  follow ao:c=100 --queries 1000 --rate 3000 --deadline 500
  grep -q '^ao-live' "$file"
  follow ao:c=100:processors=8,2 --queries 200 --closed # which a processor that stands for the device has not
  [ "$(awk '/^ao\// { print $1 }' out | tr '\n' ,)" = ao/hs16/100/8,ao/hs16/100/2, ]
  run ! grep -q '^ao-fig9a' "$file"
  follow ao:c=100,1000:method=hs16,binary,hs256 --queries 200 --closed
  [ "$(awk -F '\t' '$1 == "ao-throughput" { print $2, $3 }' "$file" | tr '\n' ,)" = \
    "hs16 100,hs16 1000,binary 100,binary 1000,hs256 100,hs256 1000," ]
}

@test "energy is told, or why it is not known" {
  follow griffin:mode=cpu --queries 100 --closed
  grep -Eq '^# energy: GPU: not known, no GPU has a part in it; CPU: (not known, no counter|[0-9]+ packages)' "$file"
  [ "$(grep -c 'packages, by RAPL' "$file" || true)" = "$(grep -c '^load-energy' "$file" || true)" ]
}

@test "parameters that are none are refused, as is a missing device" {
  fails "theta=X" ding:theta=x
  fails "theta=X" ding:mode=both
  fails "theta=X" ding:mode=cpu,cpu
  fails "theta=X" ding:mode=cpu,
  fails "theta=X" ding:streams=0
  fails "theta=X" ding:adaptive=1
  fails "theta=X" ding:gpu=pmf3
  fails "theta=X" ding:
  fails "ratio=X" griffin:ratio=0
  fails "ratio=X" griffin:ratio=4,0
  fails "ratio=X" griffin:mode=serial
  fails "ratio=X" griffin:scores=none
  fails "c=N" ao:c=0
  fails "c=N" ao:method=guess
  fails "c=N" ao:method=hs16,
  fails "c=N" ao:c=5,,6
  fails "c=N" ao:processors=-1
  fails "c=N" ao:answer=none
  fails "c=N" ao:threshold=5
  gpuir --version | grep -q cuda && return
  run --separate-stderr gpuir lab load -o . ding "$index" "$queries"
  [ "$status" = 1 ] && [[ $stderr == *"--backend gpu"* ]]
  gpuir lab load -o . --queries 100 --closed ding:mode=cpu:train=50 "$index" "$queries" >out
}
