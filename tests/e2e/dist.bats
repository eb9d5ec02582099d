#!/usr/bin/env bats
# What others get of the project: the one file with xxHash's header in it, the tarball, the version that each part
# tells, and what CMake, Meson and Conan find.

bats_require_minimum_version 1.5.0

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  single=$BATS_FILE_TMPDIR/made/dist/gpuir-$(version)-single
  [ ! -e /usr/include/xxhash.h ] || made "$single".tar.gz "$BATS_FILE_TMPDIR/made/dist/gpuir.wrap" \
    LIBDIR=/usr/lib/x86_64 INCLUDEDIR=/usr/include "$BATS_FILE_TMPDIR"/made/cmake/gpuir-config{,-version}.cmake \
    XXHASH=/usr/include/xxhash.h "$BATS_FILE_TMPDIR/made/gpuir.pc"
}

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

# block LANGUAGE [N]: prints the first, or the Nth, block of a language on the page of packages
block() {
  awk -v language="$1" -v n="${2:-1}" '
    /^```/ { inside = !inside && $0 == "```" language && ++found == n; next }
    inside' "$root/tools/cmake/README.md" | grep .
}

# first: prints the program of the README; program writes it for a library that has the implementation
first() { awk '/^```c$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$root/README.md"; }

program() {
  first | sed 's|^#define GPUIR_IMPLEMENTATION$|#include <stdio.h>|; s|^#include "gpuir.h"$|&\n#include <string.h>|' \
    >first.c
}

version() { sed -n 's/^#define GPUIR_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' "$root/gpuir.h" | paste -sd.; }

@test "one file is enough: it compiles where there is no xxhash.h, and keeps xxHash's licence" {
  [ -e /usr/include/xxhash.h ] || skip "no xxhash.h to put in"
  mkdir empty none
  cp "$BATS_FILE_TMPDIR/made/dist/gpuir-$(version)-single/gpuir.h" empty/
  grep -q 'BSD 2-Clause License' empty/gpuir.h
  [ "$(grep -cx '#include <xxhash.h>' empty/gpuir.h)" -eq 0 ]
  echo '#error "xxhash.h is asked for"' >none/xxhash.h
  first >empty/first.c
  cd empty
  cc -O0 -I../none -I. first.c -lm -pthread -o first
  [[ $(./first) == *"document 2: a quick dog"* ]]
  printf '#define GPUIR_IMPLEMENTATION\n#include "gpuir.h"\n' >all.cc
  if [ -n "${GPUIR_LONG:-}" ]; then c++ -std=c++17 -fsyntax-only -I../none -I. all.cc; fi
  # The header as it is asks for it.
  run cc -fsyntax-only -I../none -I"$root" -DGPUIR_IMPLEMENTATION -x c "$root/gpuir.h"
  [ "$status" -ne 0 ]
}

@test "one version is told everywhere" {
  [ -e /usr/include/xxhash.h ] || skip "no xxhash.h to put in"
  v=$(version) made=$BATS_FILE_TMPDIR/made
  head -n 1 "$root/gpuir.h" | grep -q " version $v\$"
  "${GPUIR_BUILD:-$root/build}/gpuir" --version | grep -q "^gpuir $v\b"
  grep -qx "Version: $v" "$made/gpuir.pc"
  grep -qx "set(PACKAGE_VERSION $v)" "$made/cmake/gpuir-config-version.cmake"
  grep -q "version: '$v'" "$made/dist/gpuir-$v-single/meson.build"
  grep -qx "    version = \"$v\"" "$made/dist/gpuir-$v-single/conanfile.py"
  grep -qx "directory = gpuir-$v-single" "$made/dist/gpuir.wrap"
  grep -m 1 '^## ' "$root/CHANGELOG.md" | grep -q "^## $v\b"
  head -n 1 "$root/tools/debian/changelog" | grep -q "^gpuir ($v-[0-9]*) "
  grep -q "^Package: libgpuir${v%.*}\$" "$root/tools/debian/control"
  [ "$(grep -o '[0-9]\+\.[0-9]\+\.[0-9]\+' "$root/tools/cmake/README.md" | sort -u)" = "$v" ]
  if command -v python3 >/dev/null; then
    cd "$root/tools/python"
    [ "$(PYTHONDONTWRITEBYTECODE=1 python3 -c 'import backend; print(backend.version())')" = "$v" ]
  fi
}

@test "the tarball has the tracked files of this commit" {
  git -C "$root" rev-parse -q --verify HEAD >/dev/null 2>&1 || skip "this is no clone"
  made "$BATS_FILE_TMPDIR/made/dist/gpuir-$(version).tar.gz"
  tar -tzf "$BATS_FILE_TMPDIR/made/dist/gpuir-$(version).tar.gz" | grep -v '/$' | sed "s|^gpuir-$(version)/||" |
    sort >has
  git -C "$root" ls-tree -r --name-only -z HEAD | tr '\0' '\n' | sort | diff - has
}

@test "CMake finds the library, the archive and the header, wherever they were moved to, pkg-config the library" {
  command -v cmake >/dev/null || skip "no cmake"
  lib=$PWD/moved/lib/x86_64
  mkdir -p "$lib/cmake/gpuir" moved/include project
  [ -e "$BATS_FILE_TMPDIR/made/cmake" ] || skip "no xxhash.h to put in"
  from=$(library)
  cp "$BATS_FILE_TMPDIR"/made/cmake/*.cmake "$lib/cmake/gpuir/"
  cp -P "$from"/libgpuir.{a,so*} "$lib/"
  cp "$root/gpuir.h" moved/include/
  block cmake >project/CMakeLists.txt
  cat >>project/CMakeLists.txt <<'END'
add_executable(with_static first.c)
target_link_libraries(with_static gpuir::static)
add_library(with_header OBJECT first.c)
target_link_libraries(with_header gpuir::header)
END
  (cd project && program)
  cmake -S project -B out -Dgpuir_DIR="$lib/cmake/gpuir" >log
  cmake --build out >>log
  for made in first with_static; do [[ $(out/$made) == *"document 2: a quick dog"* ]]; done
  if command -v pkg-config >/dev/null; then
    sed "s|/usr/|$lib/../../|" "$BATS_FILE_TMPDIR/made/gpuir.pc" >project/gpuir.pc
    (cd project && PKG_CONFIG_PATH=. bash -ec "$(block sh)")
    [[ $(LD_LIBRARY_PATH=$lib project/first) == *"document 2: a quick dog"* ]]
  fi
  sed -i 's/gpuir [0-9.]* REQUIRED/gpuir 7.0 REQUIRED/' project/CMakeLists.txt
  run cmake -S project -B other -Dgpuir_DIR="$lib/cmake/gpuir"
  [ "$status" -ne 0 ]
  [[ $output == *"$(version)"* ]]
}

# tool NAME: puts it into PATH; the long form gets it from PyPI where it is missing
tool() {
  command -v "$1" >/dev/null && return
  [ -n "${GPUIR_LONG:-}" ] || skip "no $1; the long form installs it"
  python3 -m venv "$BATS_FILE_TMPDIR/env" && "$BATS_FILE_TMPDIR/env/bin/pip" install -q "$@" || skip "$1 cannot be had"
  PATH=$BATS_FILE_TMPDIR/env/bin:$PATH
}

@test "Meson builds a project that has the wrap file among its subprojects" {
  tool meson ninja
  [ -e "$BATS_FILE_TMPDIR/made/dist/gpuir.wrap" ] || skip "no xxhash.h to put in"
  mkdir -p subprojects/packagefiles
  cp "$BATS_FILE_TMPDIR/made/dist/gpuir.wrap" subprojects/
  cp "$BATS_FILE_TMPDIR/made/dist/gpuir-$(version)-single.tar.gz" subprojects/packagefiles/
  program
  block meson >meson.build
  PKG_CONFIG_LIBDIR=/nowhere meson setup out --buildtype=plain >log || { cat log; false; }
  ninja -C out >>log
  [[ $(out/first) == *"document 2: a quick dog"* ]]
}

@test "Conan makes a package of the recipe, by which CMake builds a program" {
  tool conan
  command -v cmake >/dev/null || skip "no cmake"
  [ -e "$BATS_FILE_TMPDIR/made/dist/gpuir.wrap" ] || skip "no xxhash.h to put in"
  export CONAN_HOME=$PWD/home
  conan profile detect >log 2>&1
  conan create "$BATS_FILE_TMPDIR/made/dist/gpuir-$(version)-single" >>log 2>&1 || { cat log; false; }
  first >first.c
  block ini >conanfile.txt
  block cmake 2 >CMakeLists.txt
  conan install . --output-folder=out >>log 2>&1 || { cat log; false; }
  cmake -S . -B out -DCMAKE_TOOLCHAIN_FILE=out/conan_toolchain.cmake -DCMAKE_C_FLAGS_RELEASE=-O0 \
    -DCMAKE_BUILD_TYPE=Release >>log 2>&1 || { cat log; false; }
  cmake --build out >>log 2>&1 || { cat log; false; }
  [[ $(out/first) == *"document 2: a quick dog"* ]]
}
