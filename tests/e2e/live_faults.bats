#!/usr/bin/env bats
# What a live index is after system calls have failed, its writer was killed, and power was lost.
# The long form (GPUIR_LONG=1) lets every call fail, alone and with all behind it, and kills 1,000 times.

load ../support/helpers.bash

setup_file() {
  [ -x "$GPUIR_BUILD/tests/e2e/live_history" ] || export no_faults="the program was not built"
  command -v python3 >/dev/null || export no_faults="no python3"
  cc -std=gnu99 -shared -fPIC -o "$BATS_FILE_TMPDIR/faults.so" "$GPUIR_ROOT/tests/support/faults.c" -ldl ||
    export no_faults="the library that lets calls fail cannot be built here"
}

setup() {
  [ -z "${no_faults-}" ] || skip "$no_faults"
  cd "$BATS_TEST_TMPDIR" || return 1
}

disturbed() { # disturbed MODE LIMIT: LIMIT holds in the short form only
  [ -z "${GPUIR_LONG-}" ] || set -- "$1" 0
  python3 "$GPUIR_ROOT/tests/e2e/live_faults.py" "$GPUIR_BUILD/tests/e2e/live_history" \
    "$BATS_FILE_TMPDIR/faults.so" "$@" "$GPUIR_BUILD/gpuir"
}

@test "any call of a writer may fail, once or for good: the last commit stands, snapshots stay usable" {
  disturbed faults 2
}

@test "any call of a reader may fail: it says so, and calls nothing damaged" { disturbed readers 0; }

@test "a writer that is killed leaves the last commit or the next one, and the next writer no garbage" {
  disturbed kills 40
}

@test "power may be lost at any moment" { disturbed power 60; }

@test "a command that changes a live index and fails, or is killed, leaves the index before or behind it" {
  disturbed update 1
}

@test "a command that changes a live index loses no document, whatever kind of system call fails" {
  needs_strace
  disturbed calls 40
}
