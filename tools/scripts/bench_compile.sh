#!/usr/bin/env bash
# bench_compile.sh [COMPILER...]: what it costs to compile gpuir.h, as a table: compiler, level, macros, user seconds
# (the least of RUNS, 3 by default) and bytes of code.
#
# Each line is the implementation alone; without compilers named, gcc and clang. A compiler that is not there is told
# of and left out. Times are a machine's own: compare lines of one run.
set -eu
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
printf '#define GPUIR_IMPLEMENTATION\n#include "gpuir.h"\n' >"$scratch/library.c"
export CCACHE_DISABLE=1 TIMEFORMAT=%U

# seconds COMMAND...: the least user seconds of its runs
seconds() {
  for _ in $(seq "${RUNS:-3}"); do { time "$@" 2>&3; } 3>&2 2>&1; done | sort -n | sed -n 1p
}

(($#)) || set -- gcc clang
printf 'compiler\tlevel\tmacros\tseconds\ttext\n'
for compiler; do
  command -v "$compiler" >/dev/null || { echo "bench_compile.sh: no $compiler" >&2 && continue; }
  for level in -fsyntax-only -O0 -O2; do
    for macros in '' -DGPUIR_NO_LAB '-DGPUIR_NO_LAB -DGPUIR_NO_SIMD' \
      '-DGPUIR_NO_LAB -DGPUIR_NO_FOLDER -DGPUIR_NO_NEAR -DGPUIR_NO_CUDA'; do
      # shellcheck disable=SC2086 # a list of macros
      took=$(seconds "$compiler" -std=c99 $level $macros -I"$root" -c "$scratch/library.c" -o "$scratch/library.o")
      text=-
      [[ $level == -fsyntax-only ]] ||
        text=$(size -A "$scratch/library.o" | awk '$1 ~ /^\.text/ { n += $2 } END { print n }')
      printf '%s\t%s\t%s\t%s\t%s\n' "$compiler" "$level" "${macros:--}" "$took" "$text"
    done
  done
done
