#!/usr/bin/env bats
# What the header adds to a program: .text as gcc 12 makes it for x86-64 at -O2, held against tests/data/text_sizes.tsv.
#
# A build may differ by 3 % from its figure. A commit that goes beyond writes the new figure, and its message says what
# the bytes are for: `GPUIR_LONG=1 GPUIR_SIZES=FILE tests/run size` writes all of them to FILE.

setup() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  [[ $(gcc -dumpmachine 2>/dev/null) == x86_64-* ]] || skip "no gcc for x86-64"
  [[ $(gcc -dumpversion) == 12* ]] || skip "the figures are gcc 12's"
  cd "$BATS_TEST_TMPDIR" || return 1
  printf '#define GPUIR_IMPLEMENTATION\n#include "gpuir.h"\n' >library.c
  cat >search.c <<'END'
#define GPUIR_STATIC
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"
int main(int argc, char **argv) {
  gpuir_error err;
  gpuir_index *ix;
  gpuir_query *q;
  gpuir_searcher *s;
  gpuir_hit hits[10];
  size_t n, i;
  if (argc < 3 || gpuir_open(argv[1], NULL, &ix, &err)) return 1;
  if (gpuir_query_parse(ix, NULL, argv[2], strlen(argv[2]), &q, &err)) return 1;
  if (gpuir_searcher_create(ix, NULL, &s, &err) || gpuir_search(s, q, hits, 10, &n)) return 1;
  for (i = 0; i < n; i++) printf("%u\n", hits[i].docid);
  return 0;
}
END
}

# text_of FILE: the bytes of its code
text_of() { size -A "$1" | awk '$1 ~ /^\.text/ { n += $2 } END { print n }'; }

# held NAME FILE: the figure of a build
held() {
  local now stated
  now=$(text_of "$2")
  [ -z "${GPUIR_SIZES:-}" ] || printf '%s\t%s\n' "$1" "$now" >>"$GPUIR_SIZES"
  stated=$(awk -F '\t' -v name="$1" '$1 == name { print $2 }' "$root/tests/data/text_sizes.tsv")
  echo "$1: $now bytes of code, $stated stated"
  [ -n "$stated" ] && [ "$((now * 100))" -le "$((stated * 103))" ] && [ "$((now * 100))" -ge "$((stated * 97))" ]
}

is_long() { [ -n "${GPUIR_LONG:-}" ] || skip "in the long form"; }

@test "a program that only searches, without columns and what helps people ask: at most 160 KB" {
  gcc -w -std=gnu99 -O2 -DGPUIR_NO_LAB -DGPUIR_NO_CUDA -DGPUIR_NO_COLUMNS -DGPUIR_NO_RANK -DGPUIR_NO_STORE -I"$root" \
    search.c -o search -lm -pthread
  held search search
  [ "$(text_of search)" -le 160000 ]
}

@test "one with the optional parts, without near terms and the analyzer text: at most 160 KB" {
  is_long
  [ -e /usr/include/utf8proc.h ] && [ -e /usr/include/libstemmer.h ] || skip "no utf8proc or libstemmer"
  gcc -w -std=gnu99 -O2 -DGPUIR_NO_LAB -DGPUIR_NO_CUDA -DGPUIR_NO_COLUMNS -DGPUIR_NO_NEAR -DGPUIR_NO_TEXT \
    -DGPUIR_NO_RANK -DGPUIR_NO_STORE -DGPUIR_WITH_UTF8PROC -DGPUIR_WITH_STEMMER -I"$root" search.c -o search \
    -lutf8proc -lstemmer -lm -pthread
  held search-optional search
  [ "$(text_of search)" -le 160000 ]
}

@test "a program that only searches, with columns" {
  is_long
  gcc -w -std=gnu99 -O2 -DGPUIR_NO_LAB -DGPUIR_NO_CUDA -I"$root" search.c -o search -lm -pthread
  held search-columns search
}

@test "everything" {
  is_long
  gcc -w -std=gnu99 -O2 -I"$root" -c library.c
  held whole library.o
}

@test "without the laboratory" {
  is_long
  gcc -w -std=gnu99 -O2 -DGPUIR_NO_LAB -I"$root" -c library.c
  held no-lab library.o
}

@test "without the laboratory and SIMD" {
  is_long
  gcc -w -std=gnu99 -O2 -DGPUIR_NO_LAB -DGPUIR_NO_SIMD -I"$root" -c library.c
  held no-lab-no-simd library.o
}
