#!/usr/bin/env bats
# A program built with GPUIR_NO_LAB, GPUIR_NO_NEAR, GPUIR_NO_TEXT, GPUIR_NO_RANK, GPUIR_NO_FOLD and GPUIR_NO_STORE says
# which codec, method, analyzer, near term, ranking or text an index, a name or a query needs, and that the macro left
# it out. One built from gpuir.h alone has all codecs, and says where the methods are.

root=${BATS_TEST_DIRNAME}/../..
build=${GPUIR_BUILD:-$root/build}

@test "indexes of the full build, opened by a program without the laboratory, near terms and the analyzer text" {
  dir=$BATS_TEST_TMPDIR
  for codec in ef auto bp128; do
    "$build/gpuir" index -q --lines --analyzer unicode "$root/tests/data/wordnet.tsv" --codec "$codec" -o "$dir/$codec"
  done
  "$build/gpuir" index -q --lines --analyzer unicode "$root/tests/data/wordnet.tsv" --freq-codec optpfd -o "$dir/optpfd"
  head -n 9 "$root/tests/data/wordnet.tsv" | "$build/gpuir" index -q --lines --analyzer text - -o "$dir/text" || true
  head -n 9 "$root/tests/data/wordnet.tsv" | "$build/gpuir" index -q --lines --analyzer basic - -o "$dir/basic"
  head -n 99 "$root/tests/data/wordnet.tsv" | "$build/gpuir" index -q --lines --analyzer ascii --store - -o "$dir/stored"
  run "$build/tests/e2e/no_lab" "$dir"
  echo "$output"
  [ "$status" -eq 0 ]
  [ "$output" = ok ]
}

# names FLAGS: the names of a program's methods, and what it says of each method that the command has.
names() {
  printf '#define GPUIR_STATIC\n#define GPUIR_IMPLEMENTATION\n#include "gpuir.h"\n' >"$BATS_TEST_TMPDIR/names.c"
  cat >>"$BATS_TEST_TMPDIR/names.c" <<'C'
int main(int argc, char **argv) {
  gpuir_error err = {0, 0, ""};
  gpuir_searcher_desc d;
  gpuir_searcher *s;
  gpuir_index *ix;
  int i;
  if (argc < 2 || gpuir_open(argv[1], NULL, &ix, &err)) return 1;
  for (i = 0; gpuir_intersection_name((size_t)i); i++) puts(gpuir_intersection_name((size_t)i));
  memset(&d, 0, sizeof d);
  for (i = 2; i < argc; i++) {
    d.intersection = argv[i];
    printf("%d ", gpuir_searcher_create(ix, &d, &s, &err));
    puts(err.msg);
  }
  gpuir_close(ix);
  return 0;
}
C
  mkdir -p "$BATS_TEST_TMPDIR/alone"
  cp "$root/gpuir.h" "$BATS_TEST_TMPDIR/alone"
  (cd "$BATS_TEST_TMPDIR" && gcc -O0 -w "$@" -Ialone names.c -o names -lm -pthread)
}

@test "a program built from gpuir.h alone has every method, one without the laboratory says that it was left out" {
  "$build/gpuir" index -q --lines --analyzer unicode "$root/tests/data/wordnet.tsv" -o "$BATS_TEST_TMPDIR/index"
  names
  mapfile -t methods < <("$BATS_TEST_TMPDIR/names" "$BATS_TEST_TMPDIR/index")
  [ "${#methods[@]}" -eq 22 ]
  names -DGPUIR_NO_LAB
  run "$BATS_TEST_TMPDIR/names" "$BATS_TEST_TMPDIR/index" "${methods[@]}" unknown
  echo "$output"
  [ "${lines[0]}" = simd ]
  [ "$(grep -c "^-[0-9]* the intersection method .* was left out by GPUIR_NO_LAB$" <<<"$output")" -eq 21 ]
  [[ ${lines[-1]} == *"no intersection method is called 'unknown'" ]]
}
