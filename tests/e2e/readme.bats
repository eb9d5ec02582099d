#!/usr/bin/env bats
# Everything that the README tells to type is run, and prints what it shows (readme.sh says how).

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  export root build=${GPUIR_BUILD:-$root/build} results=$BATS_FILE_TMPDIR/results
  "$root/tests/support/readme.sh" "$results"
}

# each FUNCTION: calls it with every command's number that has run
each() {
  local file
  for file in "$results"/*.status; do
    [ "$(cat "$file")" = skipped ] || "$1" "${file%.status}"
  done
}

succeeded() {
  [ "$(cat "$1.status")" = 0 ] && return
  echo "failed with status $(cat "$1.status"):"
  cat "$1.command" "$1.err" "$1.got"
  return 1
}

printed() {
  # A script's output is not shown in the README, a console command's is, to the letter.
  [ -s "$1.want" ] || return 0
  diff -u "$1.want" "$1.got" && return
  echo "by: $(cat "$1.command")"
  return 1
}

@test "there are commands, programs and scripts to run" {
  [ "$(cat "$results"/*.command | wc -l)" -gt 20 ]
  [ -n "$(find "$results/blocks" -name '*.c')" ]
}

@test "every command succeeds" {
  each succeeded
}

@test "every command prints what the README shows" {
  each printed
}

@test "no command says anything on standard error that it need not" {
  quiet() { ! grep -i 'warning\|error' "$1.err"; }
  each quiet
}

@test "the commands over the mount ran too" {
  ! grep -qx skipped "$results"/*.status || skip "nothing can be mounted here"
}

@test "the programs compile without a warning, as C99 and C11, and with clang" {
  for program in "$results"/blocks/*.c; do
    for how in "gcc -std=c99" "gcc -std=c11" "clang -std=c99"; do
      # shellcheck disable=SC2086
      $how -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -I"$root" -fsyntax-only "$program"
    done
  done
}

@test "the quick start in gpuir.h compiles and runs" {
  cd "$BATS_TEST_TMPDIR"
  sed -n '/^ \* 2  QUICK START/,/^ \* 3  CONTRACTS/p' "$root/gpuir.h" | sed -n 's/^ \*       \{0,1\}//p' >quick.c
  gcc -std=c99 -Wall -Wextra -Werror -I"$root" quick.c -o quick -lm -pthread
  ./quick
  [ "$(./quick | wc -l)" -eq 1 ]
}

@test "the two commands of the set-up are targets, and make demo runs and unmounts" {
  [ "$(cat "$results"/blocks/*.sh.setup)" = "make demo
make test" ]
  make -n -C "$root" test >/dev/null
  [ "$build" = "$root/build" ] || skip "the demo uses build/"
  before=$(grep -c fuse /proc/self/mounts || true)
  make --no-print-directory -C "$root" demo >"$BATS_TEST_TMPDIR/out"
  cat "$BATS_TEST_TMPDIR/out"
  grep -q '^\$ gpuir query' "$BATS_TEST_TMPDIR/out"
  [ "$(grep -c fuse /proc/self/mounts || true)" -eq "$before" ]
}

@test "files that the README links to exist" {
  grep -o '](\([^)#:]*\))' "$root/README.md" | sed 's/^](//; s/)$//' | while read -r file; do
    [ -e "$root/$file" ] || { echo "$file does not exist"; exit 1; }
  done
}
