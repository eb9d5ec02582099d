#!/usr/bin/env bash
# wheels_run.sh FOLDER: runs the wheels that wheels.sh has built there. Debian's aarch64 Python, under qemu-user, and
# this machine's Python build an index of the same texts and search it: files and hits must have the same bytes. A C
# program under Debian's musl loads the library of the musl wheel. What cannot be run is said, with its reason.
set -euo pipefail
out=$(cd "$1" && pwd)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Debian's packages of aarch64, by an apt directory of its own; nothing of the system's is changed.
arm_python() {
  local archive suite key=/usr/share/keyrings/debian-archive-keyring.gpg
  # shellcheck disable=SC2016 # apt fills them in
  read -r archive suite < <(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' \
    'Label: Debian' | head -n 1) || return
  [[ -e $key ]] || key=
  mkdir -p "$work"/apt/{lists/partial,cache/archives/partial} "$work/arm" "$work/debs"
  echo "deb ${key:+[signed-by=$key]} $archive $suite main" >"$work/apt/sources.list"
  : >"$work/apt/status"
  apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::status="$work/apt/status"
    -o Dir::Etc::sourcelist="$work/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::State::lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" -o APT::Sandbox::User=root)
  "${apt[@]}" update || return
  (cd "$work/debs" && "${apt[@]}" download python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 \
    libgcc-s1 zlib1g libexpat1 libffi8 libssl3) || return
  for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$work/arm"; done
}

cat >"$work/index.py" <<'END'
import sys
import gpuir

with open(sys.argv[1], encoding="utf-8") as f:
    lines = f.read().splitlines()
index = gpuir.index(lines, sys.argv[2], stem="english", positions=True, threads=1)
print(len(index), index.analyzer)
for line in lines[::11]:
    for mode in ("or", "and", "andor"):
        for hit in index.search(" ".join(line.split()[:4]).replace('"', ""), 10, mode):
            print(mode, hit.docid, hit.score.hex(), hit.length)
END

# answers NAME TAG PYTHON...: what index.py prints with the wheel of this tag, and its index, go to NAME and NAME.gpuir
answers() {
  local name=$1 tag=$2
  shift 2
  mkdir -p "$work/$tag"
  python3 -m zipfile -e "$out"/gpuir-*-py3-none-"$tag".whl "$work/$tag"
  PYTHONPATH=$work/$tag "$@" "$work/index.py" "$root/tests/data/wordnet.tsv" "$work/$name.gpuir" >"$work/$name"
}

answers x86-64 manylinux2014_x86_64 python3
if ! qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64); then
  echo "aarch64: not run: no qemu-user"
elif ! arm_python; then
  echo "aarch64: not run: Debian's packages cannot be had"
else
  answers aarch64 manylinux2014_aarch64 "$qemu" -L "$work/arm" "$work/arm/usr/bin/python3.11"
  cmp "$work/x86-64" "$work/aarch64"
  cmp "$work/x86-64.gpuir" "$work/aarch64.gpuir"
  echo "aarch64: $(wc -l <"$work/aarch64") lines of hits and $(stat -c %s "$work/aarch64.gpuir") bytes of the index" \
    "are those of x86-64"
fi

if ! command -v musl-gcc >/dev/null; then
  echo "musl: not run: no musl-gcc (musl-tools)"
else
  python3 -m zipfile -e "$out"/gpuir-*-py3-none-musllinux_*_x86_64.whl "$work/musl"
  cat >"$work/load.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "gpuir.h"

static gpuir_builder_desc desc;

/* A function of the library; data and function pointers have the same representation in POSIX. */
#define TAKE(name) (memcpy(&name, &(void *){dlsym(library, #name)}, sizeof(void *)), name)

int main(int argc, char **argv) {
  void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
  int (*gpuir_builder_create)(const gpuir_builder_desc *, gpuir_builder **, gpuir_error *);
  int (*gpuir_builder_add_text)(gpuir_builder *, const gpuir_doc_desc *, const char *, size_t, gpuir_error *);
  int (*gpuir_builder_write)(gpuir_builder *, gpuir_build_report *, gpuir_error *);
  const char *(*gpuir_version)(void);
  gpuir_builder *builder;
  gpuir_error err;
  if (!library) return puts(dlerror()), 1;
  desc.path = argv[2];
  desc.analyzer.analyzer = "text";
  desc.analyzer.stem = "english";
  if (TAKE(gpuir_builder_create)(&desc, &builder, &err)) return puts(err.msg), 1;
  if (TAKE(gpuir_builder_add_text)(builder, NULL, "running dogs", 12, &err)) return puts(err.msg), 1;
  if (TAKE(gpuir_builder_write)(builder, NULL, &err)) return puts(err.msg), 1;
  return puts(TAKE(gpuir_version)()) < 0;
}
END
  musl-gcc -std=c99 -D_GNU_SOURCE -I"$root" -o "$work/load" "$work/load.c"
  "$work/load" "$work/musl/gpuir/libgpuir.so" "$work/musl.gpuir" >"$work/version"
  echo "musl: $(cat "$work/version") is loaded, and has made an index of $(stat -c %s "$work/musl.gpuir") bytes"
fi
