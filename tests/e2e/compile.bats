#!/usr/bin/env bats
# gpuir.h compiles without a warning, however it is included; the libraries export what the header declares.

setup() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  warnings="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"
  text="-DGPUIR_WITH_UTF8PROC -DGPUIR_WITH_STEMMER"
  cd "$BATS_TEST_TMPDIR" || return 1
  printf '#define GPUIR_IMPLEMENTATION\n#include "gpuir.h"\n' >implementation.c
  printf '#include "gpuir.h"\nint user(void);\nint user(void) { return gpuir_version()[0]; }\n' >user.c
  printf '#include <stdio.h>\n#include "gpuir.h"\nint user(void);\n' >main.c
  printf 'int main(void) { return user() == gpuir_version()[0] ? puts(gpuir_version()) < 0 : 1; }\n' >>main.c
}

# compile COMPILER FLAGS...: the implementation, with and without the optional parts. The first complaints are shown.
compile() {
  local compiler=$1 part
  shift
  command -v "$compiler" >/dev/null || skip "no $compiler"
  for part in "" "$text"; do
    # shellcheck disable=SC2086 # lists of flags
    "$compiler" "$@" $warnings $part -I"$root" -c implementation.c -o implementation.o >out 2>&1 || {
      grep -E 'error|warning' out | head -n 5
      return 1
    }
  done
}

# Optimisers find what front ends do not: both compilers go the whole way once, and with other flags in long runs.
parse() {
  if [ -n "${GPUIR_LONG:-}" ]; then compile "$@"; else compile "$@" -fsyntax-only; fi
}

@test "gcc, C99" { text='' compile gcc -std=c99 -O1; }
@test "clang, C99" { text='' compile clang -std=c99 -O1; }
@test "gcc, C99, with the optional parts" { parse gcc -std=c99 -O1; }
@test "clang, C99, with the optional parts" { parse clang -std=c99 -O1; }
@test "gcc, C11" { parse gcc -std=c11; }
@test "gcc, C17 with GNU extensions" { parse gcc -std=gnu17; }
@test "g++, C++17" { parse g++ -x c++ -std=c++17 -O1; }
@test "g++, C++20" { parse g++ -x c++ -std=c++20; }
@test "clang, C11" { parse clang -std=c11; }
@test "clang, C++17" { parse clang -x c++ -std=c++17 -O1; }
@test "gcc, -O3 -march=native" { parse gcc -std=c99 -O3 -march=native; }
@test "clang, -O3 -march=native" { parse clang -std=c99 -O3 -march=native; }
@test "gcc, -Wsign-conversion -Wvla" { parse gcc -std=c99 -Wsign-conversion -Wvla; }
@test "gcc, without SIMD" { parse gcc -std=c99 -O1 -DGPUIR_NO_SIMD; }
@test "clang, without SIMD" { parse clang -std=c99 -O1 -DGPUIR_NO_SIMD; }
@test "gcc, without the laboratory" { parse gcc -std=c99 -O1 -DGPUIR_NO_LAB; }
@test "clang, without the laboratory" { parse clang -std=c99 -O1 -DGPUIR_NO_LAB; }
@test "g++, without the laboratory and SIMD" { parse g++ -x c++ -std=c++17 -DGPUIR_NO_LAB -DGPUIR_NO_SIMD; }
@test "gcc, everything static" { compile gcc -std=c99 -O1 -DGPUIR_STATIC; }
@test "clang, everything static" { compile clang -std=c99 -O1 -DGPUIR_STATIC; }
@test "g++, everything static" { compile g++ -x c++ -std=c++17 -O1 -DGPUIR_STATIC; }

@test "without xxhash.h the error names the package" {
  # All of the system's headers but this one.
  mkdir libc
  for header in /usr/include/* "/usr/include/$(gcc -print-multiarch)"/*; do
    case ${header##*/} in
      xxhash.h | "$(gcc -print-multiarch)") ;;
      *) ln -sfn "$header" libc/ ;;
    esac
  done
  for compiler in gcc clang; do
    run $compiler -std=c99 -I"$root" -nostdinc -isystem "$($compiler -print-file-name=include)" \
      -isystem libc -fsyntax-only implementation.c
    [ "$status" -ne 0 ]
    [[ $output == *libxxhash-dev* ]]
  done
}

@test "the declarations alone, as C99 and C++17, included twice" {
  printf '#include "gpuir.h"\n#include "gpuir.h"\nextern int unused;\n' >declarations.c
  for compiler in gcc clang; do
    # shellcheck disable=SC2086
    $compiler -std=c99 $warnings -I"$root" -fsyntax-only declarations.c
    # shellcheck disable=SC2086
    $compiler -x c++ -std=c++17 $warnings -I"$root" -fsyntax-only declarations.c
  done
}

@test "two files, one with the implementation, link and run; C++ calls what was compiled as C" {
  # shellcheck disable=SC2086
  gcc -std=c99 -O0 $warnings -I"$root" -c implementation.c -o implementation.o
  # shellcheck disable=SC2086
  gcc -std=c99 $warnings -I"$root" implementation.o user.c main.c -lm -pthread -o program
  ./program
  printf '#include "gpuir.h"\nint main() { return gpuir_version_number() != GPUIR_VERSION_NUMBER; }\n' >main.cc
  g++ -std=c++17 -I"$root" main.cc implementation.o -lm -pthread -o program
  ./program
}

@test "two files with static copies link and run" {
  printf '#define GPUIR_STATIC\n#define GPUIR_IMPLEMENTATION\n#include "gpuir.h"\n' >one.c
  cp one.c two.c
  printf 'int two(void);\nint main(void) { return gpuir_version()[0] != two(); }\n' >>one.c
  printf 'int two(void);\nint two(void) { return gpuir_version()[0]; }\n' >>two.c
  gcc -std=c99 -I"$root" one.c two.c -lm -pthread -o program
  ./program
}

@test "an implementation from which POSIX is hidden is refused, with the reason" {
  printf '#include <stdio.h>\n#define GPUIR_IMPLEMENTATION\n#include "gpuir.h"\n' >late.c
  printf '#include "gpuir.h"\n#define GPUIR_IMPLEMENTATION\n#include "gpuir.h"\n' >again.c
  for file in late.c again.c; do
    for compiler in gcc clang; do
      run $compiler -std=c99 -I"$root" -fsyntax-only $file
      [ "$status" -ne 0 ]
      [[ $output == *"before any other header"* ]]
      $compiler -std=gnu99 -I"$root" -fsyntax-only $file
    done
  done
}

@test "-ffast-math is refused, with the reason" {
  for compiler in gcc clang; do
    run $compiler -std=c99 -ffast-math -I"$root" -fsyntax-only implementation.c
    [ "$status" -ne 0 ]
    [[ $output == *"scores must be exact"* ]]
  done
}

@test "optimisation and -march do not change a bit of an index or a score" {
  data=$root/tests/data/wordnet.tsv
  cat >scores.c <<'C'
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"
int main(int argc, char **argv) {
  static char line[1 << 20];
  gpuir_builder_desc desc = {0};
  gpuir_builder *builder;
  FILE *in = fopen(argv[1], "r");
  desc.path = argv[2];
  if (argc < 3 || !in || gpuir_builder_create(&desc, &builder, NULL)) return 1;
  while (fgets(line, sizeof line, in))
    if (gpuir_builder_add_text(builder, NULL, line, strlen(line), NULL)) return 1;
  if (gpuir_builder_write(builder, NULL, NULL)) return 1;
  gpuir_builder_destroy(builder);
  gpuir_index *index;
  gpuir_searcher *searcher;
  if (gpuir_open(argv[2], NULL, &index, NULL) || gpuir_searcher_create(index, NULL, &searcher, NULL)) return 1;
  const char *text[] = {"computer", "dog wolf", "the of in", "planet sun moon -star", "stringed instrument"};
  for (int i = 0; i < 5; i++)
    for (int mode = 0; mode < 3; mode++) {
      gpuir_query_desc how = {0};
      gpuir_query *query;
      gpuir_hit hits[50];
      size_t n;
      how.mode = mode;
      if (gpuir_query_parse(index, &how, text[i], strlen(text[i]), &query, NULL)) return 1;
      if (gpuir_search(searcher, query, hits, 50, &n)) return 1;
      for (size_t j = 0; j < n; j++) printf("%d %d %u %u\n", i, mode, hits[j].docid, hits[j].score);
      gpuir_query_destroy(query);
    }
  return 0;
}
C
  for how in "gcc -O0" "gcc -O3 -march=native" "gcc -O1 -DGPUIR_NO_SIMD" \
    "clang -O3 -march=native -ffp-contract=fast"; do
    # shellcheck disable=SC2086
    $how -std=c99 $warnings -I"$root" scores.c -lm -pthread -o scores
    ./scores "$data" index >out
    [ -s out ]
    sha256sum <index >>out
    [ -e first ] || cp out first
    cmp first out
  done
}

@test "libgpuir.so exports what the header declares and nothing else" {
  sed -n '/^#if.*GPUIR_IMPLEMENTATION.*GPUIR_IMPLEMENTED/q;p' "$root/gpuir.h" |
    sed -n 's/^GPUIR_API [^(]*[ *]\(gpuir_[a-z0-9_]*\)(.*/\1/p' | sort >declared
  [ -s declared ]
  nm -D --defined-only "$build/libgpuir.so" | awk '{ print $3 }' | sort >exported
  diff declared exported
}

@test "libgpuir.a defines only gpuir_ names and no writable data" {
  nm -g --defined-only "$build/libgpuir.a" | awk 'NF == 3 && $3 !~ /^gpuir_/' >others
  [ ! -s others ]
  # Tables of pointers lie in .data.rel.ro, which is read-only once the program runs.
  size -A "$build/libgpuir.a" | awk '($1 == ".data" || $1 == ".bss" || $1 == ".tbss") && $2 > 0' >data
  cat data
  [ ! -s data ]
}

@test "the library neither prints nor exits" {
  nm -u "$build/libgpuir.a" |
    awk '$2 ~ /^(exit|_exit|abort|printf|puts|putchar|perror|__printf_chk|__assert_fail)$/' >calls
  cat calls
  [ ! -s calls ]
}

@test "the version is said once" {
  version=$(sed -n 's/^#define GPUIR_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' "$root/gpuir.h" | paste -sd.)
  grep -q "^Version: $version\$" "$build/gpuir.pc"
  [ -e "$build/libgpuir.so.$version" ]
  [[ $("$build/gpuir" --version) == *"$version"* ]]
}

# installed NAME [VARIABLE=VALUE...]: the files that make install puts below NAME/
installed() {
  local into=$1
  shift
  make --no-print-directory -C "$root" B="$(realpath --relative-to="$root" "$build")" DESTDIR="$PWD/$into" "$@"
}

@test "make install and uninstall: a program builds against what was installed, nothing stays behind" {
  command -v pkg-config >/dev/null || skip "no pkg-config"
  installed here install PREFIX=/usr
  for file in bin/gpuir include/gpuir.h lib/libgpuir.a lib/libgpuir.so lib/pkgconfig/gpuir.pc share/man/man1/gpuir.1; do
    [ -e "here/usr/$file" ]
  done
  export PKG_CONFIG_PATH=$PWD/here/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$PWD/here
  # shellcheck disable=SC2046
  gcc user.c main.c $(pkg-config --cflags --libs gpuir) -o program
  LD_LIBRARY_PATH=$PWD/here/usr/lib ./program
  # shellcheck disable=SC2046
  gcc user.c main.c here/usr/lib/libgpuir.a $(pkg-config --cflags gpuir) -lutf8proc -lstemmer -lm -pthread -o program
  ./program
  installed here uninstall PREFIX=/usr
  [ -z "$(find here ! -type d)" ]
}

@test "make install to folders of one's own, without symbols" {
  command -v pkg-config >/dev/null || skip "no pkg-config"
  folders=(PREFIX=/opt/g BINDIR=/b INCLUDEDIR=/i LIBDIR=/l/x86_64-linux-gnu MANDIR=/m)
  installed own install-strip "${folders[@]}"
  for file in b/gpuir i/gpuir.h l/x86_64-linux-gnu/libgpuir.a l/x86_64-linux-gnu/libgpuir.so \
    l/x86_64-linux-gnu/pkgconfig/gpuir.pc m/man1/gpuir.1; do
    [ -e "own/$file" ]
  done
  [ ! -e own/opt ]
  own/b/gpuir --version
  [ "$(stat -c %s own/b/gpuir)" -lt "$(stat -c %s "$build/gpuir")" ]
  nm own/b/gpuir 2>&1 | grep -q 'no symbols'
  export PKG_CONFIG_PATH=$PWD/own/l/x86_64-linux-gnu/pkgconfig PKG_CONFIG_SYSROOT_DIR=$PWD/own
  [ "$(pkg-config --variable=libdir gpuir)" = "$PWD/own/l/x86_64-linux-gnu" ] ||
    [ "$(pkg-config --variable=libdir gpuir)" = /l/x86_64-linux-gnu ]
  # shellcheck disable=SC2046
  gcc user.c main.c $(pkg-config --cflags --libs gpuir) -o program
  LD_LIBRARY_PATH=$PWD/own/l/x86_64-linux-gnu ./program
  # shellcheck disable=SC2046
  gcc user.c main.c own/l/x86_64-linux-gnu/libgpuir.a $(pkg-config --cflags gpuir) -lutf8proc -lstemmer -lm -pthread \
    -o program
  ./program
  installed own uninstall "${folders[@]}"
  [ -z "$(find own ! -type d)" ]
}
