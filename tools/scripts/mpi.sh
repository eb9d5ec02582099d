#!/usr/bin/env bash
# mpi.sh: what search over MPI costs on one machine: P ranks with a shard each beside one process of P threads with the
# whole index, on the synthetic collection and, if it is given, on an index of another.
#
#   mpi.sh pack
#       on a machine with mpicc: puts the programs, linked statically but for the C library and MPI, into
#       build/carry/mpi.tar.xz, for a machine that has Open MPI's mpirun but nothing to build them with.
#   mpi.sh run [RANKS [DOCUMENTS [INDEX QUERIES]]]
#       in the project's folder: makes DOCUMENTS (25200000) synthetic documents, splits them to RANKS (as many as
#       processors) shards, and prints the rates of both, their ratio, and whether their hits are the same. It takes
#       the programs from build/carry/mpi.tar.xz where that is, or else from build/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tools/scripts/session.bash
carry=build/carry/mpi.tar.xz

pack() {
  command -v mpicc >/dev/null || die "no mpicc: libopenmpi-dev and openmpi-bin"
  static_make B=build/session GPU=0 CFLAGS=-O3 build/session/{gpuir,gpuir-mpi,synth}
  gather gpuir gpuir-mpi synth
  pack_up
}

# rates INDEX SHARDS QUERIES RANKS: of both, by mode
rates() {
  local index=$1 shards=$2 queries=$3 n=$4 mode threads ranks rest
  for mode in and or; do
    threads=$(gpuir bench --modes $mode --threads "$n" --repeat 5 --warmup 1 --no-ids --queries "$queries" "$index" |
      awk -v mode=$mode '$1 == mode { print $13 }') # queries that are refused are told of behind it
    read -r _ _ _ _ _ _ ranks rest < <(mpirun -n "$n" "${flags[@]}" gpuir-mpi bench --modes $mode --repeat 5 --no-ids \
      "$shards" "$queries" | tail -n 1)
    awk -v name="$(basename "$index" .gpuir)" -v mode=$mode -v n="$n" -v t="$threads" -v r="$ranks" -v rest="$rest" \
      'BEGIN { printf "%-8s %-4s %5d %12.1f %12.1f %8.3f   %s\n", name, mode, n, t, r, r / t, rest }'
  done
}

# equal INDEX SHARDS QUERIES RANKS: whether the hits of the first 1,000 queries are
equal() {
  local mode
  head -n 1000 "$3" >"$work/some"
  for mode in and or andor; do
    gpuir query --mode $mode --tsv --no-ids --threads "$4" "$1" <"$work/some" >"$work/want"
    mpirun -n "$4" "${flags[@]}" gpuir-mpi query --mode $mode --tsv --no-ids "$2" <"$work/some" >"$work/got"
    cmp "$work/want" "$work/got" || die "other hits by $mode"
    echo "# $mode: $(wc -l <"$work/want") hits, the same"
  done
}

# measure INDEX QUERIES RANKS
measure() {
  local shards=$work/shards begin=$SECONDS
  rm -rf "$shards"
  mpirun -n "$3" "${flags[@]}" gpuir-mpi split "$1" -o "$shards" 2>"$work/said" ||
    die "split failed: $(cat "$work/said")"
  echo "# $1: $3 shards in $((SECONDS - begin)) s"
  equal "$1" "$shards" "$2" "$3"
  rates "$1" "$shards" "$2" "$3"
}

run() {
  local n=${1:-$(nproc)} documents=${2:-25200000} other=${3-} queries=${4-}
  work=$(mktemp -d "${TMPDIR:-/tmp}/mpi-XXXXXX")
  trap 'rm -rf "$work"' EXIT
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  command -v mpirun >/dev/null || die "no mpirun (openmpi-bin)"
  unpack || die "no gpuir: make all mpi synth, or mpi.sh pack elsewhere"
  for bin in gpuir gpuir-mpi synth; do
    command -v $bin >/dev/null || die "no $bin: make all mpi synth, or mpi.sh pack elsewhere"
  done
  [[ $(mpirun -n 2 --oversubscribe gpuir-mpi --help 2>&1 | grep -c 'gpuir-mpi - an index') -eq 1 ]] ||
    die "gpuir-mpi does not run here by mpirun as one job: is this another MPI ($(mpirun --version | head -n 1))?"
  # A rank has a processor, as a thread of the one process has; both are placed by the system, within the processors
  # that this script was given.
  flags=(--oversubscribe --use-hwthread-cpus --bind-to none)
  echo "# $(processor_name), $(nproc) processors;" \
    "$(gpuir --version | head -n 1)"
  echo "# work_us: processor time of all ranks a query; busy_us, busiest_us: by the clock, of a rank on average, and of"
  echo "# the busiest one; alone: one query at a time, p50 and p99"
  echo "# index  mode ranks threads/s    ranks/s     ratio   work_us busy_us busiest_us alone_p50_us alone_p99_us"
  synth --documents "$documents" "$work/web.gpuir" "$work/web.txt" 2>/dev/null
  measure "$work/web.gpuir" "$work/web.txt" "$n"
  if [[ -n $other ]]; then measure "$other" "$queries" "$n"; fi
}

case ${1-} in
  pack) pack ;;
  run)
    shift
    run "$@"
    ;;
  *) die "usage: mpi.sh pack | run [RANKS [DOCUMENTS [INDEX QUERIES]]]" ;;
esac
