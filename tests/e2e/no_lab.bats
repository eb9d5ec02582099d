#!/usr/bin/env bats
# A program built with GPUIR_NO_LAB says which codec or method an index or a name needs, and that the macro left it out.

root=${BATS_TEST_DIRNAME}/../..
build=${GPUIR_BUILD:-$root/build}

@test "indexes of the full build, opened by a program without the laboratory" {
  dir=$BATS_TEST_TMPDIR
  for codec in ef auto bp128; do
    "$build/gpuir" index -q --lines "$root/tests/data/wordnet.tsv" --codec "$codec" -o "$dir/$codec"
  done
  "$build/gpuir" index -q --lines "$root/tests/data/wordnet.tsv" --freq-codec optpfd -o "$dir/optpfd"
  run "$build/tests/e2e/no_lab" "$dir"
  echo "$output"
  [ "$status" -eq 0 ]
  [ "$output" = ok ]
}

@test "the names of the methods that are left out are those of the table" {
  printf '#define GPUIR_STATIC\n#define GPUIR_IMPLEMENTATION\n#include "gpuir.h"\n' >"$BATS_TEST_TMPDIR/names.c"
  cat >>"$BATS_TEST_TMPDIR/names.c" <<'C'
int main(void) {
  size_t i;
  for (i = 0; gpuir_intersection_name(i); i++) puts(gpuir_intersection_name(i));
  return 0;
}
C
  gcc -O0 -w -I"$root" "$BATS_TEST_TMPDIR/names.c" -o "$BATS_TEST_TMPDIR/names" -lm -pthread
  "$BATS_TEST_TMPDIR/names" | grep -vx simd | sort >"$BATS_TEST_TMPDIR/table"
  sed -n '/^static int gpuir__no_method/,/^}/p' "$root/gpuir.h" | grep -o '"[a-z0-9-]*"' | tr -d '"' | sort >"$BATS_TEST_TMPDIR/left"
  diff "$BATS_TEST_TMPDIR/table" "$BATS_TEST_TMPDIR/left"
}
