#!/usr/bin/env bash
# pool.sh [INDEX QUERIES [DIR]]: holds the policy auto against inter, with all processors and no device
#
# Run it on a quiet machine. Mixed load: of 100 queries 90 are short ANDs, 9 are as given, one is a long OR. It measures
# the throughput of both when all queries are submitted at once, the median of seven runs in turn, and the p99 latency
# of the long queries at half of inter's, the median of five seeds in turn. Without INDEX it makes one of 4 million
# synthetic documents (DOCUMENTS). The table of goals and figures goes to DIR/pool.txt (default build/lab/pool), the
# runs beside it. GPUIR and SYNTH name the programs, QUERIES_N how many queries a run has (20,000). It takes some three
# minutes on two processors.
set -euo pipefail
if [ $# -eq 1 ]; then
  sed -n 's/^# //p' "$0" | head -n 1 >&2
  exit 2
fi
gpuir=${GPUIR:-build/gpuir} dir=${3:-build/lab/pool} n=${QUERIES_N:-20000} threads=$(nproc)
rm -rf "$dir"
mkdir -p "$dir"
index=${1:-$dir/index} queries=${2:-$dir/queries}
if [ $# -eq 0 ]; then "${SYNTH:-build/synth}" --documents "${DOCUMENTS:-4000000}" "$index" "$queries" >/dev/null; fi

# load POLICY NAME OPTION...: a line of a run goes to NAME.POLICY, its rows to NAME/
load() {
  local policy=$1 name=$2
  shift 2
  "$gpuir" lab load --mix --threads "$threads" --queries "$n" -o "$dir/$name" "$@" "$policy" "$index" "$queries" |
    tail -n 1 >>"$dir/$name.$policy"
}
# median FILE COLUMN
median() { awk -v c="$2" '{ print $c }' "$1" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
# row GOAL LEAST MOST A I: what was reached; LEAST <= A / I <= MOST is asked for
row() {
  awk -F '\t' -v goal="$1" -v least="$2" -v most="$3" -v a="$4" -v i="$5" 'BEGIN {
    q = i ? a / i : 0
    reached = (q >= least && q <= most) ? "reached" : "not reached"
    printf "%-62s %10.5g %10.5g %8.3f  %s\n", goal, a, i, q, reached }'
}

for _ in 1 2 3 4 5 6 7; do
  for policy in inter auto; do load $policy closed --closed; done
done
half=$(awk -v m="$(median "$dir/closed.inter" 3)" 'BEGIN { print m / 2 }')
for seed in 1 2 3 4 5; do
  for policy in inter auto; do load $policy half --rate "$half" --seed $seed; done
done
{
  sed -n '/^# \(corpus\|load\|machine\|version\|queries\):/p' "$dir/half/load-auto.tsv"
  echo "# command: tools/scripts/pool.sh $*; $n queries a run, half load is $half queries a second"
  printf '%-62s %10s %10s %8s\n' goal auto inter ratio
  row 'queries/s, all at once: auto at least 0.97 x inter' 0.97 99 \
    "$(median "$dir/closed.auto" 3)" "$(median "$dir/closed.inter" 3)"
  row 'ms, p99 of long queries at half load: at most 0.6 x inter' 0 0.6 \
    "$(median "$dir/half.auto" 7)" "$(median "$dir/half.inter" 7)"
  row 'ms, p99 of all queries at half load (no goal)' 0 99 \
    "$(median "$dir/half.auto" 6)" "$(median "$dir/half.inter" 6)" | sed 's/ [a-z ]*reached$//'
  echo "runs that are not valid, as the generator was late: $(cat "$dir"/half.* | grep -c INVALID) of 10"
} | tee "$dir/pool.txt"
