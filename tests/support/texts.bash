# shellcheck shell=bash
# What the suites that read files of many kinds have in common. Load it instead of helpers.bash, which it loads.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  here=$root/tests/e2e
  export root build here PATH="$build:$PATH"
}

setup() {
  cd "$BATS_TEST_TMPDIR" || exit
}

teardown() {
  ! mountpoint -q m || fusermount3 -u m
}

needs_fuse() {
  # shellcheck disable=SC2015 # one of the three is not there
  [ -x "$build/gpuirfs" ] && [ -c /dev/fuse ] && command -v fusermount3 >/dev/null || skip "no gpuirfs, or no FUSE here"
}
