#!/bin/sh
# setup.sh demo|test|dev: installs the packages that building and demo, the tests, or lint and coverage need and that
# are missing (Debian 12, Ubuntu 24.04). It looks for the commands and headers themselves, so it does nothing where
# they are there already, however they came. Without root, and without a sudo that asks no password, it names the
# packages and exits 1.
set -eu

level=${1:-demo}
case $level in
  demo | test | dev) ;;
  *)
    echo "usage: setup.sh demo|test|dev" >&2
    exit 2
    ;;
esac

missing=

# package LEVEL PACKAGE PROBE...: notes PACKAGE as missing if this level needs it and the probe fails
package() {
  case $level$1 in
    demotest | demodev | testdev) return 0 ;;
  esac
  name=$2
  shift 2
  "$@" >/dev/null 2>&1 || missing="$missing $name"
}
cmd() { command -v "$1"; }
header() { printf '#include <%s>\n' "$1" | ${CC:-cc} -D_FILE_OFFSET_BITS=64 -E -x c -; }
fuzzer() {
  echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | clang -x c - -fsanitize=fuzzer,address -o /dev/null
}

probe_all() {
  missing=
  package demo gcc cmd "${CC:-cc}"
  package demo libc6-dev header stdio.h
  package demo pkg-config cmd pkg-config
  package demo libxxhash-dev header xxhash.h
  package demo libutf8proc-dev header utf8proc.h
  package demo libstemmer-dev header libstemmer.h
  package demo zlib1g-dev header zlib.h
  package demo libfuse3-dev header fuse3/fuse_opt.h
  package demo fuse3 cmd fusermount3
  package test g++ cmd g++
  package test libcmocka-dev header cmocka.h
  package test bats cmd bats
  package test clang cmd clang
  package test libclang-rt-dev fuzzer
  package test binutils cmd nm
  package test python3 cmd python3
  package test procps cmd ps
  package test strace cmd strace
  package test less cmd less
  package test poppler-utils cmd pdftotext
  package test libopenmpi-dev cmd mpicc
  package test openmpi-bin cmd mpirun
  package test xz-utils cmd xz
  package test musl-tools cmd musl-gcc
  package dev clang-format cmd clang-format
  package dev clang-tidy cmd clang-tidy
  package dev shellcheck cmd shellcheck
  package dev mandoc cmd mandoc
  package dev valgrind cmd valgrind
  package dev lcov cmd lcov
}

probe_all
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
  echo "setup: missing, and there is no apt-get to install it (Debian's names):$missing" >&2
  exit 1
fi
root=
if [ "$(id -u)" -ne 0 ]; then
  if sudo -n true 2>/dev/null; then
    root="sudo -n"
  else
    echo "setup: some packages are missing; please run" >&2
    echo "  sudo apt-get install$missing" >&2
    exit 1
  fi
fi

echo "setup: installing$missing"
install() {
  # shellcheck disable=SC2086 # the lists are to be split
  $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o DPkg::Lock::Timeout=300 $missing </dev/null
}
# The package lists of a fresh system are empty, those of an old one may be stale.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! install >"$log" 2>&1; then
  $root apt-get update -qq </dev/null >>"$log" 2>&1 || true
  install >>"$log" 2>&1 || {
    cat "$log" >&2
    echo "setup: apt-get could not install$missing" >&2
    exit 1
  }
fi
probe_all
if [ -n "$missing" ]; then
  echo "setup: still missing after installing:$missing" >&2
  exit 1
fi
