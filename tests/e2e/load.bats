#!/usr/bin/env bats
# gpuir lab load: queries arrive as the seed says, every policy answers them with the right hits, and what is reported
# is what was measured.

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

# rows FIGURE FILE: how many rows a figure has
rows() {
  awk -F '\t' -v f="$1" '$1 == f' "$2" | wc -l
}

# fails CODE CAUSE ARGUMENT...: gpuir lab load exits with CODE and says CAUSE on standard error
fails() {
  local code=$1 cause=$2
  shift 2
  run --separate-stderr gpuir lab load "$@"
  # shellcheck disable=SC2154 # stderr is set by run
  if [ "$status" -ne "$code" ] || [[ $stderr != *"$cause"* ]]; then
    printf 'arguments: %s\nstatus: %s, not %s\nstderr: %s\nlacks: %s\n' "$*" "$status" "$code" "$stderr" "$cause"
    return 1
  fi
}

@test "every policy answers all queries, with the hits of gpuir_search" {
  local policy file
  for policy in inter auto t-inter docp-ui docp-pi fgqp fgqp:beta=150:skip=128:scoring=document serve gpu gpu:batch=3 \
    auto:batch=2; do
    local device=()
    [[ $policy != gpu* && $policy != auto:* ]] || device=(--stand-in)
    gpuir lab load "${device[@]}" --queries 400 --threads 3 --rate 3000 -o . "$policy" "$index" "$queries" >out
    file=load-${policy//[:=]/-}.tsv
    grep -q '0 missed, 0 failed, 0 wrong$' "$file"
    [ "$(rows load-latency "$file")" -ge 7 ]
    [ "$(awk -F '\t' '$1 == "load-histogram" { n += $4 } END { print n }' "$file")" = 400 ] # 400 of all
    [ "$(wc -l <out)" = 2 ]
  done
}

@test "a mixed load has its kinds, in all modes" {
  gpuir lab load --queries 700 --threads 2 --mix --rate 2000 --raw raw.tsv -o . auto "$index" "$queries" >out
  [ "$(awk -F '\t' 'NR > 1 { n[$4]++ } END { print n["short"], n["sampled"], n["long"] }' raw.tsv)" = "630 63 7" ]
  [ "$(rows load-kind load-auto.tsv)" -gt 20 ]
  gpuir lab load --queries 200 --threads 2 --mode andor -k 100 --rate 2000 -o . inter "$index" "$queries" >out
  gpuir lab load --queries 200 --threads 2 --mode or -k 3 --closed -o . inter "$index" "$queries" >out
  [ "$(wc -l <out)" = 2 ]
}

@test "the highest rate at a p99 lies between one that holds and one that does not" {
  gpuir lab load --queries 500 --threads 1 --p99 1000 -o . inter "$index" "$queries" >out
  [ "$(wc -l <out)" -ge 10 ] # a run that is not valid is tried again
  grep -q '^capacity inter [0-9]' out
  [ "$(rows load-capacity load-inter.tsv)" = 1 ]
  gpuir lab load --queries 500 --threads 1 --p99 0.001 -o . inter "$index" "$queries" >out
  grep -q '^capacity inter 0$' out
}

@test "the highest rate that holds a deadline is found with one seed, and tried with five" {
  gpuir lab load --queries 500 --threads 1 --deadline 6 --hold -o . inter "$index" "$queries" >out
  grep -q '^held inter [0-9.e+]* \[[0-9.e+]*, [0-9.e+]*\]$' out
  [ "$(rows load-hold load-inter.tsv)" = 5 ]
  # the mean of the five lies in its interval, which lies in their range
  awk -F '\t' '$1 == "load-hold" { s += $4 / 5; if (!n++ || $4 < a) a = $4; if ($4 > b) b = $4 }
    $1 == "ding-fig7-held" { m = $4; lo = $6; hi = $7; n += $8 }
    END { e = 1e-5 * b; exit !(n == 10 && m - s <= e && s - m <= e && a - e <= lo && lo <= m + e && m <= hi + e && hi <= b + e) }
  ' load-inter.tsv
  fails 2 "--hold needs --deadline" --hold inter "$index" "$queries"
  fails 2 "--hold looks for the rate itself" --hold --deadline 5 --rate 100 inter "$index" "$queries"
}

@test "tasks of FGQP are counted: twice the postings, half the tasks" {
  local skip
  for skip in 128 256; do
    gpuir lab load --queries 100 --threads 2 --closed -o . fgqp:skip=$skip "$index" "$queries" >out
    awk -F '\t' '$1 == "load-tasks" { print $2 "\t" $4 }' load-fgqp-skip-$skip.tsv >tasks.$skip
    [ "$(wc -l <tasks.$skip)" = 5 ]
  done
  paste tasks.128 tasks.256 | awk -F '\t' '$1 == "tasks a query" || $1 == "skips a list" { n += $2 >= $4 && $2 < 2.1 * $4 }
    END { exit n != 2 }'
}

@test "a survey tells what a division permits: ranges of which one has all documents gain nothing" {
  local policy
  # the words stand in the last fifth of the documents
  awk 'BEGIN { for (i = 0; i < 5000; i++) print i "\t" (i < 4000 ? "other" : "red apple") }' >docs.tsv
  gpuir index -q --tsv --analyzer unicode docs.tsv -o skewed.gpuir
  yes 'red apple' | head -n 20 >topics
  for policy in docp-ui fgqp:skip=128; do
    gpuir lab load --closed --threads 4 -o . "$policy:survey=3" skewed.gpuir topics >/dev/null
  done
  grep -q '^# survey: 20 queries by one thread, the median of 3 times each: mean ' load-docp-ui-survey-3.tsv
  cat load-docp-ui-survey-3.tsv load-fgqp-skip-128-survey-3.tsv | awk -F '\t' '
    $1 == "load-divided" { v[++n] = $4; ends += $6 <= $4 && $4 <= $7 && $8 == 20 && $3 == 4 }
    END { exit !(n == 4 && ends == 4 && v[1] < 2 && v[2] < 2 && v[3] > 2 && v[4] > 1) }'
  # a run at a rate has none
  gpuir lab load --rate 1000 --threads 1 -o . docp-ui:survey=1 skewed.gpuir topics >/dev/null
  run ! grep -q '^load-divided' load-docp-ui-survey-1.tsv
}

@test "a seed decides when queries arrive; they come at the rate that was asked for" {
  local seed
  for seed in 1 1 2; do
    gpuir lab load --queries 1500 --threads 1 --rate 5000 --seed $seed --raw raw -o . inter "$index" "$queries" >out
    cut -f 2,3 raw >arrivals.$seed.new
    [ ! -e arrivals.$seed ] || cmp arrivals.$seed arrivals.$seed.new
    mv arrivals.$seed.new arrivals.$seed
  done
  run ! cmp -s arrivals.1 arrivals.2
  awk 'NR == 2 { first = $1 } { last = $1 } END {
    gap = (last - first) / (NR - 2); exit !(gap > 180000 && gap < 220000) }' arrivals.1 # 200 us, of 1,499 gaps
  awk 'NR > 2 { g = $1 - before; if (g > 200000) long++ } { before = $1 } END {
    exit !(long > 480 && long < 620) }' arrivals.1 # 1/e of exponential gaps exceed the mean
}

@test "percentiles are those of HdrHistogram for Python" {
  python3 -c 'import hdrh.histogram' 2>/dev/null || skip "no HdrHistogram for Python"
  gpuir lab load --queries 3000 --threads 2 --rate 20000 --raw raw -o . inter "$index" "$queries" >out
  python3 - <<'EOF'
from hdrh.histogram import HdrHistogram
h = HdrHistogram(1, 10**12, 3)
for line in open("raw").read().splitlines()[1:]:
    h.record_value(int(line.split("\t")[4]))
want = {f"p{p}": h.get_value_at_percentile(p) / 1e6 for p in (50, 80, 90, 95, 99)}
got = {r[1]: float(r[3]) for r in (l.rstrip("\n").split("\t") for l in open("load-inter.tsv"))
       if r[0] == "load-latency" and r[1] in want}
assert got.keys() == want.keys(), (got, want)
for p in want:
    assert f"{want[p]:.6g}" == f"{got[p]:.6g}", (p, want[p], got[p])
EOF
}

@test "a device that is held up shows in the latencies, and one that is lost costs no query and no hit" {
  local policy
  for policy in gpu auto; do
    gpuir lab load --queries 2000 --threads 1 --rate 2000 --stand-in --stall 200 -o . $policy "$index" "$queries" >out
    grep -q '0 failed, 0 wrong$' load-$policy.tsv
    # shellcheck disable=SC2016
    sed -n 's/.*: \([0-9]*\) queries were due then, \([0-9]*\) of them .*/\1 \2/p' load-$policy.tsv >held.$policy
    [ "$(wc -l <held.$policy)" = 1 ]
  done
  awk '{ exit !($1 > 300 && $1 < 500 && $2 > 0.4 * $1) }' held.gpu # half of them, or more on a busy machine
  grep -q '^load-histogram' load-gpu.tsv
  awk -F '\t' '$1 == "load-histogram" && $3 >= 100000000 { n += $4 } END { exit !(n > 120) }' load-gpu.tsv
  # more than one thread can answer, so that the device always has a batch
  gpuir lab load --queries 20000 --threads 1 --rate 200000 --mode or -k 1000 --stand-in --stall 2500 -o . auto "$index" "$queries" >out
  grep -q '0 missed, 0 failed, 0 wrong$' load-auto.tsv
  grep -q 'unanswered for 2000 ms' load-auto.tsv
}

@test "a clock stands for a device, with the hits that are known; threads answer what it would answer later" {
  local policy
  for policy in gpu auto; do
    gpuir lab load --queries 2000 --threads 1 --rate 4000 --device-time 1,0.1 -o . $policy "$index" "$queries" >out
    grep -q '0 missed, 0 failed, 0 wrong$' load-$policy.tsv
    grep -q '^# device: a clock stands for it' load-$policy.tsv
  done
  gpuir lab load --queries 2000 --threads 1 --rate 4000 --device-time 1000000,1 --raw raw -o . auto "$index" "$queries" >out
  awk -F '\t' 'NR > 1 { n += $10 } END { exit !(n < 200) }' raw
  fails 2 "is not BATCH,QUERY" --device-time 5 auto "$index" "$queries"
}

@test "a query that is not answered in time is missed, by a server too" {
  local policy
  for policy in inter serve; do
    gpuir lab load --queries 3000 --threads 1 --mode or -k 1000 --closed --deadline 1 -o . $policy "$index" "$queries" >out
    sed -n 's/.*; \([0-9]*\) missed, 0 failed, 0 wrong$/\1/p' load-$policy.tsv >missed
    [ "$(cat missed)" -gt 100 ]
  done
}

@test "answers that differ fail the load, as does a server that is gone" {
  cat >server.py <<'EOF'
import socket, subprocess, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind("socket")
listener.listen(1)
print("ready", flush=True)
peer, how = listener.accept()[0], sys.argv[1]
asked, answers = peer.makefile("r"), peer.makefile("w")
real = subprocess.Popen(["gpuir", "serve", "--stdio", sys.argv[2]], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                        text=True, bufsize=1)
for n, line in enumerate(asked):
    if how == "gone" and n == 50:
        break
    real.stdin.write(line)
    real.stdin.flush()
    answer = real.stdout.readline()
    answers.write("99999999\n" if how == "wrong" and n == 50 else answer)
    answers.flush()
real.stdin.close()
EOF
  local how server
  for how in right wrong gone; do
    rm -f socket
    mkfifo ready 2>/dev/null || true
    python3 server.py $how "$index" >ready 3>&- &
    server=$!
    read -r _ <ready
    run --separate-stderr timeout -k 1 30 gpuir lab load --queries 100 --rate 2000 --socket socket -o . serve "$index" "$queries"
    kill $server 2>/dev/null || true
    wait $server || true
    case $how in
      right) [ "$status" = 0 ] ;;
      wrong) [ "$status" = 1 ] && [[ $stderr == *"1 answers are not those of gpuir_search, and 0 queries failed"* ]] ;;
      gone) [ "$status" = 1 ] && [[ $stderr == *"queries failed"* ]] ;;
    esac
  done
}

@test "misuse and failure are told apart" {
  fails 2 "load needs POLICY, INDEX and QUERIES" inter "$index"
  fails 2 "one POLICY, INDEX and QUERIES" inter "$index" "$queries" more
  fails 2 "there is no policy 'lifo'" lifo "$index" "$queries"
  fails 2 "beta=N" fgqp:beta=x "$index" "$queries"
  fails 2 "beta=N" fgqp:skip=100 "$index" "$queries"
  fails 2 "survey=N" docp-pi:survey=2 "$index" "$queries"
  fails 2 "survey=N" fgqp:survey=0 "$index" "$queries"
  fails 2 "beta=N" fgqp:size=5 "$index" "$queries"
  fails 2 "is no list of positive numbers" --rate 100,-5 inter "$index" "$queries"
  fails 2 "is no list of positive numbers" --load 0.5,x inter "$index" "$queries"
  fails 2 "names nothing" --seed "" inter "$index" "$queries"
  fails 1 "no-such-index" inter no-such-index "$queries"
  fails 1 "no-such-file" inter "$index" no-such-file
  printf '"a phrase"\n-word other\n' >operators
  fails 1 "no query can be asked" t-inter "$index" operators
  fails 1 "no-folder/raw" --raw no-folder/raw inter "$index" "$queries"
  fails 1 "no server" --socket no-such-socket serve "$index" "$queries"
  fails 2 "batch=N" gpu:batch=0 "$index" "$queries"
  fails 2 "is none of cpu|gpu|auto" --backend fpga auto "$index" "$queries"
  fails 2 "--stall" --stall 0 auto "$index" "$queries"
  if ! gpuir --version | grep -q cuda; then
    fails 1 "--backend gpu" gpu "$index" "$queries"
    fails 1 "--backend gpu" --backend gpu auto "$index" "$queries"
  fi
}
