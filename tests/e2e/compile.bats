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

# complaints COMPILER FLAGS...: shows its first complaints. For indentation gcc looks up the text of each line, which
# takes three quarters of a pass: its first pass asks for that, and all of clang's, to which it costs nothing.
complaints() {
  local compiler=$1
  shift
  [[ $compiler == clang* ]] || set -- -Wno-misleading-indentation "$@"
  "$compiler" "$@" >out 2>&1 || {
    grep -E 'error|warning' out | head -n 5
    return 1
  }
}

# parse COMPILER FLAGS...: the front end reads the implementation with the optional parts.
parse() {
  command -v "$1" >/dev/null || skip "no $1"
  # shellcheck disable=SC2086 # lists of flags
  complaints "$@" $warnings $text -I"$root" -fsyntax-only implementation.c
}

# digests COMPILER FLAGS...: the whole way, without the optional parts; prints what the program says, which is kept for
# the other tests.
digests() {
  local program std=-std=c99
  [[ $* != *-std=* ]] || std=
  program=$*
  program=$BATS_FILE_TMPDIR/${program// /_}
  if [ ! -e "$program.digests" ]; then
    # shellcheck disable=SC2086
    complaints "$1" $std "${@:2}" $warnings -I"$root" -I"$root/tests/support" \
      "$root/tests/support/digest.c" -o "$program" -lm -pthread || return
    "$program" "$root/tests/data/wordnet.tsv" >"$program.new" || return
    mv "$program.new" "$program.digests"
  fi
  cat "$program.digests"
}

# same COMPILER FLAGS...: an index and the scores of its hits have the bits that they have without optimisation. With
# GPUIR_STATIC the compiler leaves out what the program never calls.
same() {
  command -v "$1" >/dev/null || skip "no $1"
  digests "$@" >digests
  [ "$(wc -l <digests)" -eq 5 ]
  digests gcc -O0 -DGPUIR_STATIC | diff - digests
}

is_long() { [ -n "${GPUIR_LONG:-}" ] || skip "in the long form"; }

@test "gcc, C99" { text='' parse gcc -std=c99 -Wmisleading-indentation; }
@test "clang, C99" { text='' parse clang -std=c99; }
@test "gcc, C99, with the optional parts" { parse gcc -std=c99; }
@test "clang, C99, with the optional parts" { parse clang -std=c99; }
@test "gcc, C11" { parse gcc -std=c11; }
@test "gcc, C17 with GNU extensions" { parse gcc -std=gnu17; }
@test "gcc, C17 with GNU extensions, for a processor with AVX512-FP16" {
  gcc -march=sapphirerapids -E -x c /dev/null >/dev/null 2>&1 || skip "gcc does not know of such processors"
  [[ $(gcc -std=gnu17 -march=sapphirerapids -dM -E -x c /dev/null) == *'__FLT_EVAL_METHOD__ 16'* ]]
  parse gcc -std=gnu17 -march=sapphirerapids
}
@test "gcc, without columns" { parse gcc -std=c99 -DGPUIR_NO_COLUMNS; }
@test "clang, without columns and the laboratory" { parse clang -std=c99 -DGPUIR_NO_COLUMNS -DGPUIR_NO_LAB; }
@test "g++, C++17" { text='' parse g++ -x c++ -std=c++17; }
@test "g++, C++20, with the optional parts" { parse g++ -x c++ -std=c++20; }
@test "clang, C11" { parse clang -std=c11; }
@test "clang, C++17" { parse clang -x c++ -std=c++17; }
@test "gcc, -O3 -march=native" { parse gcc -std=c99 -O3 -march=native; }
@test "clang, -O3 -march=native" { parse clang -std=c99 -O3 -march=native; }
@test "gcc, -Wsign-conversion -Wvla" { parse gcc -std=c99 -Wsign-conversion -Wvla; }
@test "gcc, without SIMD" { parse gcc -std=c99 -DGPUIR_NO_SIMD; }
@test "clang, without SIMD" { parse clang -std=c99 -DGPUIR_NO_SIMD; }
@test "gcc, without the laboratory" { parse gcc -std=c99 -DGPUIR_NO_LAB; }
@test "gcc, without near terms, the analyzer text, the second look and stored texts" {
  parse gcc -std=c99 -DGPUIR_NO_NEAR -DGPUIR_NO_TEXT -DGPUIR_NO_RANK -DGPUIR_NO_STORE
}
@test "clang, without near terms, the analyzer text, stored texts and the laboratory" {
  parse clang -std=c99 -DGPUIR_NO_NEAR -DGPUIR_NO_TEXT -DGPUIR_NO_LAB -DGPUIR_NO_STORE
}
@test "gcc, without the reading of folders" { parse gcc -std=c99 -DGPUIR_NO_FOLDER; }
@test "gcc, without the table of letters" { parse gcc -std=c99 -DGPUIR_NO_FOLD; }
@test "clang, without the laboratory" { parse clang -std=c99 -DGPUIR_NO_LAB; }
@test "g++, without the laboratory and SIMD" { parse g++ -x c++ -std=c++17 -DGPUIR_NO_LAB -DGPUIR_NO_SIMD; }
@test "gcc, everything static" { parse gcc -std=c99 -DGPUIR_STATIC; }
@test "gcc, everything static, no index for a GPU" { parse gcc -std=c99 -DGPUIR_STATIC -DGPUIR_NO_CUDA; }
@test "clang, everything static" { parse clang -std=c99 -DGPUIR_STATIC; }
@test "g++, everything static" { parse g++ -x c++ -std=c++17 -DGPUIR_STATIC; }

# Optimisers complain of what front ends do not see, and may change a result.
fused="-march=native -ffp-contract=fast"
@test "gcc -O1, everything fused: the same bits" { same gcc -O1 $fused; }
@test "clang -O1, everything fused: the same bits" { same clang -O1 -DGPUIR_STATIC $fused; }
@test "gcc -Og, without SIMD: the same bits" { same gcc -Og -DGPUIR_STATIC -DGPUIR_NO_SIMD; }
@test "gcc -O1 with GNU extensions, where _Float16 has arithmetic of its own: the same bits" {
  [[ $(gcc -std=gnu17 -march=native -dM -E -x c /dev/null) == *'__FLT_EVAL_METHOD__ 16'* ]] || skip "no AVX512-FP16"
  same gcc -O1 -std=gnu17 -march=native
}
@test "g++ -Og: the same bits" { same g++ -x c++ -std=c++17 -Og -DGPUIR_STATIC; }
@test "gcc -Og: the same bits" { is_long && same gcc -Og; }
@test "gcc -O2 -mfma without -march: the same bits" {
  is_long
  grep -qw fma /proc/cpuinfo || skip "no FMA here"
  same gcc -O2 -mfma -ffp-contract=fast
}
@test "gcc -O3, everything fused: the same bits" { is_long && same gcc -O3 $fused; }
# Another libc has another logarithm: idf takes none. A GPU computes no idf, but has the weights that the host computed.
@test "musl, linked statically: the same bits" {
  mkdir xxhash
  ln -s /usr/include/xxhash.h xxhash/
  same musl-gcc -O0 -static -DGPUIR_STATIC -isystem xxhash
}
@test "clang -O0: the same bits" { is_long && same clang -O0; }
@test "clang -O3, everything fused: the same bits" { is_long && same clang -O3 $fused; }
@test "gcc -O2, everything static, with the optional parts" {
  is_long
  # shellcheck disable=SC2086
  complaints gcc -std=c99 -O2 -DGPUIR_STATIC $warnings $text -I"$root" -c implementation.c
}

@test "the implementation, included first, hides nothing from the rest of the file" {
  local compiler
  cat >first.c <<'END'
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"
#include <ftw.h>
#include <sys/mman.h>
int user(char *s);
int user(char *s) {
  (void)usleep(1);
  return strsep(&s, "/") != NULL && DT_DIR + MAP_ANONYMOUS + FTW_F + (int)random() > 0;
}
END
  for compiler in 'gcc -std=gnu99' 'gcc -std=gnu17' 'clang -std=gnu17' 'g++ -x c++ -std=gnu++17' \
    'gcc -std=c99 -D_DEFAULT_SOURCE' 'gcc -std=c99 -D_GNU_SOURCE' 'gcc -std=c99 -D_XOPEN_SOURCE=700 -D_DEFAULT_SOURCE'; do
    command -v "${compiler%% *}" >/dev/null || continue
    # shellcheck disable=SC2086
    complaints $compiler $warnings -I"$root" -fsyntax-only first.c
  done
}

@test "without xxhash.h the error names the package" {
  # All of the system's headers but this one.
  mkdir libc
  ln -s /usr/include/* libc/
  ln -sfn "/usr/include/$(gcc -print-multiarch)"/* libc/
  rm libc/xxhash.h
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
  cmp implementation.c "$build/libgpuir.c"
  cp "$build/libgpuir.o" implementation.o
  # shellcheck disable=SC2086
  gcc -std=c99 $warnings -I"$root" implementation.o user.c main.c -lutf8proc -lstemmer -lm -pthread -o program
  ./program
  printf '#include "gpuir.h"\nint main() { return gpuir_version_number() != GPUIR_VERSION_NUMBER; }\n' >main.cc
  g++ -std=c++17 -I"$root" main.cc implementation.o -lutf8proc -lstemmer -lm -pthread -o program
  ./program
}

@test "two files with static copies link and run" {
  printf '#define GPUIR_STATIC\n#define GPUIR_IMPLEMENTATION\n#include "gpuir.h"\n' >one.c
  cp one.c two.c
  printf 'int two(void);\nint main(void) { return gpuir_version()[0] != two(); }\n' >>one.c
  printf 'int two(void);\nint two(void) { return gpuir_version()[0]; }\n' >>two.c
  gcc -std=c99 -O1 -I"$root" one.c two.c -lm -pthread -o program
  ./program
}

@test "an implementation from which POSIX is hidden is refused, with the reason" {
  printf '#include <stdio.h>\n#define GPUIR_IMPLEMENTATION\n#include "gpuir.h"\n' >late.c
  printf '#include "gpuir.h"\n#define GPUIR_IMPLEMENTATION\n#include "gpuir.h"\n' >again.c
  for file in late.c again.c; do
    for compiler in gcc clang; do
      run $compiler -std=c99 -I"$root" -E $file
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

@test "what may change in any version is declared where a program asks for it, and defined in every library" {
  local name
  for name in gpuir_query_dfs gpuir_shard_get_info gpuir_searcher_set_backend gpuir_pool_complete gpuir_codec_get_info; do
    printf '#include "gpuir.h"\nint main(void) { return &%s == 0; }\n' "$name" >asks.c
    run gcc -std=c99 -I"$root" -fsyntax-only asks.c
    [ "$status" -ne 0 ]
    gcc -std=c99 -DGPUIR_EXPERIMENTAL -I"$root" -fsyntax-only asks.c
  done
  # The command alone asks for it, not what embedders are shown.
  run grep -rl GPUIR_EXPERIMENTAL "$root/examples" "$root/fuse" "$root/tools/common"
  [ "$status" -ne 0 ]
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

@test "scores need no logarithm of the machine's own" {
  cp "$build/libgpuir.o" make.o
  for compiler in ${GPUIR_LONG:+gcc clang}; do
    command -v "$compiler" >/dev/null || continue
    "$compiler" -std=c99 -O2 -I"$root" -c implementation.c -o "$compiler.o"
  done
  for object in *.o; do
    nm -u "$object" >calls
    grep -q pthread_create calls # nm tells the calls
    if grep -E ' (log|exp|pow|sin|cos|tan)' calls; then return 1; fi
  done
}

@test "the version is said once" {
  version=$(sed -n 's/^#define GPUIR_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' "$root/gpuir.h" | paste -sd.)
  grep -q "^Version: $version\$" "$build/gpuir.pc"
  [ -e "$build/libgpuir.so.$version" ]
  [[ $("$build/gpuir" --version) == *"$version"* ]]
}

# installed NAME [VARIABLE=VALUE...]: the files that make install puts below NAME/. The commit is that of the build:
# otherwise what other tests run might be linked anew meanwhile.
installed() {
  local into=$1
  shift
  COMMIT=$(cat "$build/commit") make --no-print-directory -C "$root" B="$(realpath --relative-to="$root" "$build")" DESTDIR="$PWD/$into" "$@"
}

@test "make install and uninstall: a program builds against what was installed, nothing stays behind" {
  command -v pkg-config >/dev/null || skip "no pkg-config"
  installed here install PREFIX=/usr
  for file in bin/gpuir include/gpuir.h lib/libgpuir.a lib/libgpuir.so lib/pkgconfig/gpuir.pc share/man/man1/gpuir.1 \
    share/bash-completion/completions/gpuir share/zsh/site-functions/_gpuir share/fish/vendor_completions.d/gpuir.fish; do
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

@test "make install to folders with blanks, quotes and other signs in their names" {
  command -v pkg-config >/dev/null || skip "no pkg-config"
  local prefix into="it's here"
  for prefix in "/opt/my apps|&'s" '/opt/the "best" of $them'; do
    installed "$into" install PREFIX="${prefix//\$/\$\$}" # make's own sign of variables is doubled
    [ -x "$into$prefix/bin/gpuir" ]
    export PKG_CONFIG_PATH=$into$prefix/lib/pkgconfig
    [ "$(pkg-config --cflags gpuir | xargs -n 1)" = "-I$prefix/include" ]
    [ "$(pkg-config --libs-only-L gpuir | xargs -n 1)" = "-L$prefix/lib" ]
    installed "$into" uninstall PREFIX="${prefix//\$/\$\$}"
    [ -z "$(find "$into" ! -type d)" ]
  done
}

@test "make install to folders of one's own, without symbols" {
  command -v pkg-config >/dev/null || skip "no pkg-config"
  folders=(PREFIX=/opt/g BINDIR=/b INCLUDEDIR=/i LIBDIR=/l/x86_64-linux-gnu MANDIR=/m SHAREDIR=/s)
  installed own install-strip "${folders[@]}"
  for file in b/gpuir i/gpuir.h l/x86_64-linux-gnu/libgpuir.a l/x86_64-linux-gnu/libgpuir.so \
    l/x86_64-linux-gnu/pkgconfig/gpuir.pc m/man1/gpuir.1 s/fish/vendor_completions.d/gpuir.fish; do
    [ -e "own/$file" ]
  done
  [ ! -e own/opt ]
  diff <(own/b/gpuir completion zsh) own/s/zsh/site-functions/_gpuir
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
