#!/usr/bin/env bats
# A program built with GPUIR_NO_LAB says which codec or method an index or a name needs, and that the macro left it out.
# One built from gpuir.h alone has all codecs, and says where the methods are.

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

# names FOLDER: the names of the methods of a program that is built from the gpuir.h there.
names() {
  printf '#define GPUIR_STATIC\n#define GPUIR_IMPLEMENTATION\n#include "gpuir.h"\n' >"$BATS_TEST_TMPDIR/names.c"
  cat >>"$BATS_TEST_TMPDIR/names.c" <<'C'
int main(int argc, char **argv) {
  gpuir_error err = {0, 0, ""};
  gpuir_searcher_desc d;
  gpuir_searcher *s;
  gpuir_index *ix;
  size_t i;
  for (i = 0; gpuir_intersection_name(i); i++) puts(gpuir_intersection_name(i));
  if (argc < 2) return 0;
  memset(&d, 0, sizeof d);
  d.intersection = "gallop";
  if (gpuir_open(argv[1], NULL, &ix, &err)) return 1;
  printf("%d ", gpuir_searcher_create(ix, &d, &s, &err) == GPUIR_E_UNSUPPORTED);
  puts(err.msg);
  gpuir_close(ix);
  return 0;
}
C
  (cd "$BATS_TEST_TMPDIR" && gcc -O0 -w -I"$1" names.c -o names -lm -pthread)
}

@test "the names of the methods that are left out are those of the table" {
  names "$root"
  "$BATS_TEST_TMPDIR/names" | grep -vx simd | sort >"$BATS_TEST_TMPDIR/table"
  sed -n '/^static int gpuir__no_method/,/^}/p' "$root/gpuir.h" | grep -o '"[a-z]\+[0-9]*\(-[a-z]*\)\?"' | tr -d '"' |
    sort >"$BATS_TEST_TMPDIR/left"
  [ -s "$BATS_TEST_TMPDIR/table" ]
  diff "$BATS_TEST_TMPDIR/table" "$BATS_TEST_TMPDIR/left"
}

@test "a program built from gpuir.h alone names the file that has a method" {
  mkdir "$BATS_TEST_TMPDIR/alone"
  cp "$root/gpuir.h" "$BATS_TEST_TMPDIR/alone"
  "$build/gpuir" index -q --lines "$root/tests/data/wordnet.tsv" --codec ef -o "$BATS_TEST_TMPDIR/ef"
  names "$BATS_TEST_TMPDIR/alone"
  run "$BATS_TEST_TMPDIR/names" "$BATS_TEST_TMPDIR/ef"
  echo "$output"
  [ "${lines[0]}" = simd ]
  [ "${#lines[@]}" -eq 2 ]
  [[ ${lines[1]} == "1 "*"gallop"*"tools/lab/gpuir_methods.h"* ]]
}
