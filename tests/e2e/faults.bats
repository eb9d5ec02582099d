#!/usr/bin/env bats
# What commands that write leave behind when system calls fail, when they are killed and when power is lost.
# The long form (GPUIR_LONG=1) lets every call fail, alone and with all behind it, and kills 1,000 times.

load ../support/helpers.bash

setup_file() {
  command -v python3 >/dev/null || export no_faults="no python3"
  cc -std=gnu99 -shared -fPIC -o "$BATS_FILE_TMPDIR/faults.so" "$GPUIR_ROOT/tests/support/faults.c" -ldl ||
    export no_faults="the library that lets calls fail cannot be built here"
}

setup() {
  [ -z "${no_faults-}" ] || skip "$no_faults"
  cd "$BATS_TEST_TMPDIR" || return 1
}

disturbed() { # disturbed MODE [LIMIT [COMMAND...]]: LIMIT and COMMANDs hold in the short form only
  [ -z "${GPUIR_LONG-}" ] || set -- "$1"
  python3 "$GPUIR_ROOT/tests/e2e/faults.py" "$GPUIR_BUILD/gpuir" "$BATS_FILE_TMPDIR/faults.so" "$@"
}

@test "any system call may fail, once or for good" { disturbed faults 2; }

@test "any allocation of a build may fail, once or for good" {
  [ -z "${GPUIR_LONG-}" ] || skip "the test before has tried them"
  disturbed faults 0 index:malloc index-packed:malloc index-converted:malloc
}

@test "a command that is killed leaves the old file or the new one" { disturbed kills 40; }

@test "any kind of system call may fail, as the kernel sees it" {
  needs_strace
  disturbed calls 40 index reorder import export
}

@test "calls that start, watch and end a filter may fail, and nobody waits for what will not come" {
  needs_strace
  disturbed calls 0 index-filtered:wait4+close+ppoll+pipe+dup2+poll
}

@test "power may be lost at any moment" { disturbed power; }
