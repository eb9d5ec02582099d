#!/usr/bin/env bash
# pool.sh INDEX QUERIES [DIR]: holds the policy auto against inter, with all processors of a quiet machine and no device
#
# Mixed load: of 100 queries 90 are short ANDs, 9 are as given, one is a long OR. It prints the throughput of both when
# all queries are submitted at once, the median of five runs in turn, and the p99 latency of the long queries at half of
# inter's, over three seeds. Logs go to DIR (default build/lab/pool). GPUIR names the command, QUERIES_N how many
# queries a run has.
set -euo pipefail
if [ $# -lt 2 ]; then
  sed -n 's/^# //p' "$0" | head -n 1 >&2
  exit 2
fi
gpuir=${GPUIR:-build/gpuir} index=$1 queries=$2 dir=${3:-build/lab/pool} n=${QUERIES_N:-20000} threads=$(nproc)
mkdir -p "$dir"

# load POLICY OPTION...: the lines of the runs
load() {
  local policy=$1
  shift
  "$gpuir" lab load --mix --threads "$threads" --queries "$n" -o "$dir" "$@" "$policy" "$index" "$queries" | tail -n +2
}

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

for _ in 1 2 3 4 5; do
  for policy in inter auto; do
    load $policy --closed | awk '{ print $3 }' >>"$dir/closed.$policy.new"
  done
done
for policy in inter auto; do
  mv "$dir/closed.$policy.new" "$dir/closed.$policy"
done
inter=$(median <"$dir/closed.inter") auto=$(median <"$dir/closed.auto")
awk -v a="$auto" -v i="$inter" 'BEGIN { printf "throughput: auto %.6g, inter %.6g queries/s: %.4f\n", a, i, a / i }'
half=$(awk -v i="$inter" 'BEGIN { print i / 2 }')
for policy in inter auto; do
  load $policy --rate "$half" --seed 1,2,3 >"$dir/half.$policy"
  cat "$dir/half.$policy"
done
inter=$(awk '{ print $7 }' "$dir/half.inter" | median) auto=$(awk '{ print $7 }' "$dir/half.auto" | median)
awk -v a="$auto" -v i="$inter" 'BEGIN { printf "p99 of long queries: auto %.6g, inter %.6g ms: %.4f\n", a, i, a / i }'
