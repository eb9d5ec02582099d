#!/usr/bin/env bats
# Scores must not depend on how the header was compiled: the digest of a fixed set of hits is the
# same without optimisation, with all of it, with multiplications and additions fused, and from
# both compilers.

root=${BATS_TEST_DIRNAME}/../..

setup_file() {
  WORK=$(mktemp -d)
  export WORK
}

teardown_file() {
  rm -rf "$WORK"
}

digest() { # NAME COMPILER FLAGS...
  local name=$1 cc=$2
  shift 2
  "$cc" -std=c99 "$@" -I"$root" -I"$root/tests/support" "$root/tests/unit/09_postings.c" -o "$WORK/$name" -lcmocka -lm -pthread
  "$WORK/$name" --digest
}

same() { # NAME COMPILER FLAGS...
  command -v "$2" >/dev/null || skip "$2 is not installed"
  [ -f "$WORK/reference" ] || digest reference.bin cc -O0 >"$WORK/reference"
  run digest "$@"
  echo "$output against $(cat "$WORK/reference")"
  [ "$status" -eq 0 ]
  [ "${#output}" -eq 16 ]
  [ "$output" = "$(cat "$WORK/reference")" ]
}

@test "cc -O3 -march=native, everything fused" {
  same native cc -O3 -march=native -ffp-contract=fast
}

@test "cc -O2 -mfma without -march" {
  [ "$(uname -m)" = x86_64 ] && grep -qw fma /proc/cpuinfo || skip "no FMA here"
  same fma cc -O2 -mfma -ffp-contract=fast
}

@test "cc -O2 with GPUIR_NO_SIMD" {
  same nosimd cc -O2 -DGPUIR_NO_SIMD
}

@test "clang -O0" {
  same clang0 clang -O0
}

@test "clang -O3 -march=native, everything fused" {
  same clang3 clang -O3 -march=native -ffp-contract=fast
}
