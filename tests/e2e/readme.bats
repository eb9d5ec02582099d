#!/usr/bin/env bats
# Everything that the READMEs tell to type is run, and prints what they show (support/readme.sh says how).

bats_require_minimum_version 1.5.0

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
  # Empty lines at the end may lack there, or part two commands.
  diff -u <(echo "$(cat "$1.want")") <(echo "$(cat "$1.got")") && return
  echo "by: $(cat "$1.command")"
  return 1
}

@test "there are commands, programs and scripts to run" {
  [ "$(cat "$results"/*.command | wc -l)" -gt 20 ]
  [ -n "$(find "$results/blocks" -name '[0-9]*.c')" ]
}

@test "every command succeeds" {
  each succeeded
}

@test "every command prints what its README shows" {
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
  for program in "$results"/blocks/*/[0-9]*.c; do
    for how in "gcc -std=c99" "gcc -std=c11" "clang -std=c99"; do
      [[ $how == clang* ]] || how+=" -Wno-misleading-indentation" # clang says the same, and takes no time for it
      # shellcheck disable=SC2086
      $how -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -I"$root" -fsyntax-only "$program"
    done
  done
}

@test "the quick start in gpuir.h compiles and runs" {
  cd "$BATS_TEST_TMPDIR"
  sed -n '/^ \* \[api-quick-start\]/,/^ \* \[api-contracts\]/p' "$root/gpuir.h" | sed -n 's/^ \*       \{0,1\}//p' >quick.c
  gcc -std=c99 -Wall -Wextra -Werror -Wno-misleading-indentation -I"$root" quick.c -o quick -lm -pthread
  ./quick
  [ "$(./quick | wc -l)" -eq 1 ]
}

@test "the two commands of the set-up are targets, and make demo runs and unmounts" {
  [ "$(cat "$results"/blocks/*/*.sh.setup)" = "make demo
make test" ]
  make -n -C "$root" test >/dev/null
  [ "$build" = "$root/build" ] || skip "the demo uses build/"
  before=$(grep -c fuse /proc/self/mounts || true)
  COMMIT=$(cat "$build/commit") make --no-print-directory -C "$root" demo >"$BATS_TEST_TMPDIR/out"
  cat "$BATS_TEST_TMPDIR/out"
  grep -q '^\$ gpuir query' "$BATS_TEST_TMPDIR/out"
  [ "$(grep -c fuse /proc/self/mounts || true)" -eq "$before" ]
}

@test "files and parts of files that the READMEs link to exist" {
  cd "$root"
  for readme in README.md .github/*.md examples/README.md fuse/README.md tools/README.md tools/*/README.md tools/cli/MCP.md; do
    grep -o '](\([^)]*\))' "$readme" | sed 's/^](//; s/)$//' | grep -v '^https\?:' | while read -r link; do
      file=$(dirname "$readme")/${link%%#*}
      [ -e "$file" ] || { echo "$readme: $link does not exist"; exit 1; }
      [[ $link != *#* ]] ||
        grep '^#' "$file" | sed 's/^#* //; s/[^A-Za-z0-9 -]//g; s/ /-/g' | grep -qix "${link#*#}" ||
        { echo "$readme: $link is no heading"; exit 1; }
    done
  done
}

@test "the walks of CONTRIBUTING.md lead to the code" {
  cd "$root"
  grep '^| .* | `[^`]*` | `\[[a-z0-9-]*\]` | `[^`]*` | `[^`]*` |$' .github/CONTRIBUTING.md | tr -d '`' \
    >"$BATS_TEST_TMPDIR/walks"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/walks")" -ge 7 ]
  while IFS='|' read -r _ what file tag start tested _; do
    read -r file <<<"$file" && read -r tag <<<"$tag" && read -r start <<<"$start" && read -r tested <<<"$tested"
    [ -f "$tested" ] || { echo "$what: there is no $tested"; return 1; }
    grep -qF "$tag" "$file" || { echo "$what: no $tag in $file"; return 1; }
    awk -v tag="$tag" -v start="^ *([A-Za-z].*)?${start}[[(].*([^;]|};)\$" '
      index($0, tag) && !/Uses/ { found = 1 }
      found && $0 ~ start { ok = 1 }
      END { exit !ok }' "$file" || { echo "$what: $start does not follow $tag in $file"; return 1; }
  done <"$BATS_TEST_TMPDIR/walks"
}

@test "figures in the READMEs are those of the logs" {
  cd "$root"
  python3 tools/scripts/quote.py --check README.md .github/SECURITY.md tools/README.md tools/*/README.md \
    tools/mpi/SCALE.md | tee "$BATS_TEST_TMPDIR/out"
  [ "$(sed 's/ .*//' "$BATS_TEST_TMPDIR/out")" -gt 200 ]
  # a figure that is not its log's is found
  mkdir -p "$BATS_TEST_TMPDIR/x"
  echo '7.00<!--lab/codecs.tsv; qs-table1; size; qs; .2f-->' >"$BATS_TEST_TMPDIR/x/a.md"
  run python3 tools/scripts/quote.py --check "$BATS_TEST_TMPDIR/x/a.md"
  [ "$status" -eq 1 ]
  python3 tools/scripts/quote.py "$BATS_TEST_TMPDIR/x/a.md"
  python3 tools/scripts/quote.py --check "$BATS_TEST_TMPDIR/x/a.md"
  run ! grep -q '^7.00' "$BATS_TEST_TMPDIR/x/a.md"
  # so is a verdict, and an interval
  sed 's/| ✗ did not hold |/| ✓ held |/' tools/lab/README.md >"$BATS_TEST_TMPDIR/x/b.md"
  run python3 tools/scripts/quote.py --check "$BATS_TEST_TMPDIR/x/b.md"
  [ "$status" -eq 1 ]
  [[ $output == *'the block of ding is not that of verdicts.tsv'* ]]
  sed 's/\(([0-9.]* to \)[0-9.]*)<!--tatikonda/\10)<!--tatikonda/' tools/lab/README.md >"$BATS_TEST_TMPDIR/x/c.md"
  run python3 tools/scripts/quote.py --check "$BATS_TEST_TMPDIR/x/c.md"
  [ "$status" -eq 1 ]
}

@test "the first page is two screens" {
  [ "$(wc -l <"$root/README.md")" -le 150 ]
  [ "$(awk '/^```/ { inside = !inside; next } !inside' "$root/README.md" | wc -w)" -lt 900 ]
}
