#!/usr/bin/env bash
# scale.sh: simulates services of ten billion documents by build/scale, from times measured by gpuir-mpi bench --times.
#
#   scale.sh measure LARGE SMALL QUERIES
#       LARGE is the folder of one shard, SMALL that of ten of the same documents (10 million): writes
#       tools/results/scale_large.tsv and scale_small.tsv, the times of 500 queries a mode.
#   scale.sh simulate
#       writes tools/results/scale.tsv.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
results=tools/results
PATH=$PWD/build:$PATH

head_of() {
  echo "# $(gpuir --version | head -n 1), commit $(cat build/commit 2>/dev/null || git rev-parse --short HEAD)"
  echo "# machine: $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) processors"
  echo "# command: $*"
}

measure() {
  local some
  some=$(mktemp)
  head -n 500 "$3" >"$some"
  for size in large small; do
    local shards=$1 n=1 to=$results/scale_$size.tsv
    [[ $size = large ]] || shards=$2 n=10
    head_of "mpirun -n $n gpuir-mpi bench --modes and,or --repeat 1 --alone 500 --times FILE --no-ids SHARDS QUERIES" \
      >"$to"
    echo "# $n shards of 10 million synthetic documents: mode, microseconds of processor time on each shard" >>"$to"
    mpirun --oversubscribe -n $n gpuir-mpi bench --modes and,or --repeat 1 --alone 500 --times "$to" --no-ids \
      "$shards" "$some" >/dev/null
  done
  rm "$some"
}

# scale GROUP OPTION...: a line
one() {
  local group=$1
  shift
  printf '%s\t' "$group"
  scale large=$results/scale_large.tsv small=$results/scale_small.tsv "$@"
}

simulate() {
  local s r
  head_of "tools/scripts/scale.sh simulate"
  echo "# times: scale_large.tsv, scale_small.tsv; assumed: network 50 us each way, 0.1 % of messages 2 ms more," \
    "0.05 % of"
  echo "# searches paused for 10 ms, 16 cores a machine, price 1 an hour"
  scale --head | sed 's/^# /# group\t/'
  for s in 10 30 100 300 1000; do # one query at a time: how many shards; also where nothing pauses
    one shards mode=or shards=$s replicas=2 rate=0.1 timeout=1e9 queries=5000
    one quiet mode=or shards=$s replicas=2 rate=0.1 timeout=1e9 queries=5000 pause=0 slow=0
  done
  for r in 3000 12000 24000 30000 36000; do # load, with and without hedging
    one load mode=or shards=1000 replicas=2 rate=$r queries=5000
    one load mode=or shards=1000 replicas=2 rate=$r queries=5000 hedge=5000
  done
  for r in 1 2 3; do # replicas, at the same load of each machine
    one replicas mode=or shards=1000 replicas=$r rate=$((12000 * r)) queries=5000
    one replicas mode=or shards=1000 replicas=$r rate=$((12000 * r)) queries=5000 hedge=5000
  done
  for s in 1000 2000 5000 10000 20000; do # when to hedge
    one hedging mode=or shards=1000 replicas=2 rate=24000 queries=5000 hedge=$s
  done
  for s in 0 5000; do # one replica in a hundred is down, and no broker knows it yet
    one failure mode=or shards=1000 replicas=3 rate=24000 queries=5000 down=0.01 hedge=$s
  done
  for r in 3000 24000; do
    one and mode=and shards=1000 replicas=2 rate=$r queries=5000 hedge=5000
  done
}

case ${1-} in
  measure)
    [[ $# -eq 4 ]] || exit 2
    measure "$2" "$3" "$4"
    ;;
  simulate) simulate >$results/scale.tsv ;;
  *)
    echo "usage: scale.sh measure LARGE SMALL QUERIES | simulate" >&2
    exit 2
    ;;
esac
