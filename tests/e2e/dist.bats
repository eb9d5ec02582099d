#!/usr/bin/env bats
# What others get of the project: the names that the shared library exports, the one file with xxHash's header in it,
# the tarball, and what CMake finds.

bats_require_minimum_version 1.5.0

setup() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  cd "$BATS_TEST_TMPDIR" || exit
}

# library: prints the folder of the libraries: those that are built or, where the build is one of rooms, others
library() {
  local folder=${GPUIR_BUILD:-$root/build}
  if [ ! -e "$folder/libgpuir.so.$(version)" ]; then
    folder=$BATS_FILE_TMPDIR/made
    made "$folder/libgpuir.a" "$folder/libgpuir.so.$(version)" >&2 || return
  fi
  echo "$folder"
}

# made TARGET...: made with a build folder of its own, without optimisation
made() { make -s --no-print-directory -C "$root" B="$BATS_FILE_TMPDIR/made" CFLAGS=-O0 GPU=0 "$@"; }

version() { sed -n 's/^#define GPUIR_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' "$root/gpuir.h" | paste -sd.; }

# Prints the functions that the header declares: what is experimental, too.
declared() {
  printf '#include "gpuir.h"\n' >declared.c
  cc -E -P -DGPUIR_API=GPUIR_API_ -DGPUIR_EXPERIMENTAL -I"$root" declared.c | tr '\n' ' ' |
    grep -oE 'GPUIR_API_ [^;(]*\(' | sed -E 's/.*[ *](gpuir_[a-z0-9_]+) *\($/\1/' | sort -u
}

@test "the shared library exports the functions that the header declares, and nothing else" {
  lib=$(library)
  declared >want
  [ "$(wc -l <want)" -gt 100 ]
  nm -D --defined-only "$lib/libgpuir.so" | awk '{ print $3 }' | sort -u | diff want -
}

@test "one file is enough: it compiles where there is no xxhash.h, and keeps xxHash's licence" {
  [ -e /usr/include/xxhash.h ] || skip "no xxhash.h to put in"
  made "$BATS_FILE_TMPDIR/made/dist/gpuir-$(version)-single/gpuir.h"
  mkdir empty none
  cp "$BATS_FILE_TMPDIR/made/dist/gpuir-$(version)-single/gpuir.h" empty/
  grep -q 'BSD 2-Clause License' empty/gpuir.h
  [ "$(grep -cx '#include <xxhash.h>' empty/gpuir.h)" -eq 0 ]
  echo '#error "xxhash.h is asked for"' >none/xxhash.h
  awk '/^```c$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$root/README.md" >empty/first.c
  cd empty
  cc -O0 -I../none -I. first.c -lm -pthread -o first
  [[ $(./first) == *"document 2: a quick dog"* ]]
  printf '#define GPUIR_IMPLEMENTATION\n#include "gpuir.h"\n' >all.cc
  if [ -n "${GPUIR_LONG:-}" ]; then c++ -std=c++17 -fsyntax-only -I../none -I. all.cc; fi
  # The header as it is asks for it.
  run cc -fsyntax-only -I../none -I"$root" -DGPUIR_IMPLEMENTATION -x c "$root/gpuir.h"
  [ "$status" -ne 0 ]
}

@test "the tarball has the tracked files of this commit" {
  git -C "$root" rev-parse -q --verify HEAD >/dev/null 2>&1 || skip "this is no clone"
  [ -e /usr/include/xxhash.h ] || skip "no xxhash.h to put in"
  made dist >said
  tar -tzf "$BATS_FILE_TMPDIR/made/dist/gpuir-$(version).tar.gz" | grep -v '/$' | sed "s|^gpuir-$(version)/||" |
    sort >has
  git -C "$root" ls-tree -r --name-only -z HEAD | tr '\0' '\n' | sort | diff - has
}

@test "CMake finds the library, the archive and the header, wherever they were moved to" {
  command -v cmake >/dev/null || skip "no cmake"
  lib=$PWD/moved/lib/x86_64
  mkdir -p "$lib/cmake/gpuir" moved/include project
  made LIBDIR=/usr/lib/x86_64 INCLUDEDIR=/usr/include "$BATS_FILE_TMPDIR"/made/cmake/gpuir-config{,-version}.cmake
  from=$(library)
  cp "$BATS_FILE_TMPDIR"/made/cmake/*.cmake "$lib/cmake/gpuir/"
  cp -P "$from"/libgpuir.{a,so*} "$lib/"
  cp "$root/gpuir.h" moved/include/
  cat >project/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.13)
project(user C)
find_package(gpuir 0.1 REQUIRED)
foreach(part gpuir static)
  add_executable(with_${part} main.c)
  target_link_libraries(with_${part} gpuir::${part})
endforeach()
add_library(with_header OBJECT main.c)
target_link_libraries(with_header gpuir::header)
END
  printf '#include <%s>\n' gpuir.h stdio.h >project/main.c
  echo 'int main(void) { return puts(gpuir_version()) < 0; }' >>project/main.c
  cmake -S project -B out -Dgpuir_DIR="$lib/cmake/gpuir" >log
  cmake --build out >>log
  [ "$(out/with_gpuir)" = "$(version)" ]
  [ "$(out/with_static)" = "$(version)" ]
  sed -i 's/gpuir 0.1 REQUIRED/gpuir 7.0 REQUIRED/' project/CMakeLists.txt
  run cmake -S project -B other -Dgpuir_DIR="$lib/cmake/gpuir"
  [ "$status" -ne 0 ]
  [[ $output == *"$(version)"* ]]
}
