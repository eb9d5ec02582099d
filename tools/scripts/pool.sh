#!/usr/bin/env bash
# pool.sh [INDEX QUERIES [DIR]]: holds the policy auto against inter, with all processors and no device
#
# Mixed load: of 100 queries 90 are short ANDs, 9 are as given, one is a long OR. It measures the throughput of both
# when all queries are submitted at once, in seven runs in turn, and latencies at half of inter's, with five seeds in
# turn. Figures are medians, and a ratio is the median of those of the pairs. Without INDEX it makes one of 4 million
# synthetic documents (DOCUMENTS). The table goes to DIR/pool.txt (default build/lab/pool), the runs beside it. GPUIR
# and SYNTH name the programs, QUERIES_N how many queries a run of all at once has (20,000); one at half load has five
# times as many, so that 1,000 are long and their p99 is not the second of 200. It takes some five minutes on two quiet
# processors; where others work too, RUN='chrt -r 1' runs it ahead of them.
set -euo pipefail
if [ $# -eq 1 ]; then
  sed -n 's/^# //p' "$0" | head -n 1 >&2
  exit 2
fi
read -ra ahead <<<"${RUN-}"
gpuir=${GPUIR:-build/gpuir} dir=${3:-build/lab/pool} n=${QUERIES_N:-20000} threads=$(nproc)
rm -rf "$dir"
mkdir -p "$dir"
index=${1:-$dir/index} queries=${2:-$dir/queries}
if [ $# -eq 0 ]; then "${SYNTH:-build/synth}" --documents "${DOCUMENTS:-4000000}" "$index" "$queries" >/dev/null; fi

# load POLICY NAME OPTION...: a line of a run goes to NAME.POLICY, its rows to NAME/
load() {
  local policy=$1 name=$2
  shift 2
  "${ahead[@]}" "$gpuir" lab load --mix --threads "$threads" -o "$dir/$name" "$@" "$policy" "$index" \
    "$queries" | tail -n 1 >>"$dir/$name.$policy"
}
# median FILE COLUMN
median() { awk -v c="$2" '{ print $c }' "$1" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
# row GOAL LEAST MOST NAME COLUMN: what was reached; a ratio from LEAST to MOST is asked for
row() {
  awk -v c="$5" 'NR == FNR { auto[NR] = $c } NR > FNR { print auto[FNR] / $c }' "$dir/$4.auto" "$dir/$4.inter" \
    >"$dir/ratios"
  awk -F '\t' -v goal="$1" -v least="$2" -v most="$3" -v a="$(median "$dir/$4.auto" "$5")" \
    -v i="$(median "$dir/$4.inter" "$5")" -v q="$(median "$dir/ratios" 1)" 'BEGIN {
    reached = (q >= least && q <= most) ? "reached" : "not reached"
    printf "%-62s %10.5g %10.5g %8.3f  %s\n", goal, a, i, q, reached }'
}

for _ in 1 2 3 4 5 6 7; do
  for policy in inter auto; do load $policy closed --queries "$n" --closed; done
done
half=$(awk -v m="$(median "$dir/closed.inter" 3)" 'BEGIN { print m / 2 }')
for seed in 1 2 3 4 5; do
  for policy in inter auto; do load $policy half --queries $((5 * n)) --rate "$half" --seed $seed; done
done
{
  sed -n '/^# \(corpus\|load\|machine\|version\|queries\):/p' "$dir/half/load-auto.tsv"
  echo "# command: tools/scripts/pool.sh $*; $n queries a run, $((5 * n)) at half load, which is $half queries a second"
  printf '%-62s %10s %10s %8s\n' goal auto inter ratio
  row 'queries/s, all at once: auto at least 0.97 x inter' 0.97 99 closed 3
  row 'ms, p99 of long queries at half load: at most 0.6 x inter' 0 0.6 half 7
  row 'ms, p50 of all queries at half load: not above inter' 0 1 half 5
  row 'ms, p99 of all queries at half load (no goal)' 0 99 half 6 | sed 's/ [a-z ]*reached$//'
  echo "runs that are not valid, as the generator was late: $(cat "$dir"/half.* | grep -c INVALID) of 10"
} | tee "$dir/pool.txt"
