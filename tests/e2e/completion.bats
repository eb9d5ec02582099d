#!/usr/bin/env bats
# gpuir completion: the shells complete commands, options and values, all of those that the help has.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  export root build PATH="$build:$PATH"
  gpuir completion bash >"$BATS_FILE_TMPDIR/gpuir.bash"
  gpuir completion zsh >"$BATS_FILE_TMPDIR/_gpuir"
  gpuir completion fish >"$BATS_FILE_TMPDIR/gpuir.fish"
}

# completed WORD...: what bash offers for the last word
completed() {
  bash -c '
    source "$1"
    shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _gpuir
    echo "${COMPREPLY[*]}"
  ' bash "$BATS_FILE_TMPDIR/gpuir.bash" "$@" 2>&1
}

commands() { gpuir help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p' | grep -v '^gpuir$'; }

@test "bash completes commands, options and values" {
  [ "$(completed gpuir que)" = query ]
  [ "$(completed gpuir '' | wc -w)" -eq $(($(commands | wc -l) + 2)) ]
  [ "$(completed gpuir help ex)" = "explain export" ]
  [ "$(completed gpuir query --mo)" = --mode ]
  [ "$(completed gpuir query --no-)" = "--no-ids --no-operators" ]
  [ "$(completed gpuir query --mode a)" = "and andor" ]
  [ "$(completed gpuir query -m o)" = or ]
  [ "$(completed gpuir query --mode = a)" = "and andor" ]
  [ "$(completed gpuir query --mode = )" = "and andor" ] || [ "$(completed gpuir query --mode =)" = "and or andor" ]
  [ "$(completed gpuir index --analyzer u)" = unicode ]
  [ "$(completed gpuir query --intersection gal)" = gallop ]
  [ "$(completed gpuir lab lin)" = linearity ]
  [ "$(completed gpuir completion z)" = zsh ]
  # elsewhere bash itself completes files, and for numbers nobody does
  [ -z "$(completed gpuir query wordnet)" ]
  [ -z "$(completed gpuir index -o x)" ]
  [ -z "$(completed gpuir query --k 1)" ]
}

@test "bash completes every option of the help, and the command takes each" {
  local command option options
  for command in $(commands); do
    [ "$command" != help ] || continue
    options=$(completed gpuir "$command" -- | tr ' ' '\n')
    diff <(gpuir "$command" --help | grep -oE '^  -.*' | sed -E 's/ {2,}[^-].*//; s/^ *//' | grep -oE '(^|[ ,])--[a-z0-9-]+' |
      tr -d ' ,' | sort -u) <(sort -u <<<"$options")
    for option in $options; do
      run gpuir "$command" "$option" x x </dev/null
      [[ $output != *'unknown option'* ]] || { echo "$command $option"; false; }
    done
  done
}

@test "every option of the tables is completed" {
  local option all
  # shellcheck disable=SC2046 # words
  all=" $(for command in $(commands); do completed gpuir "$command" --; done | tr '\n' ' ') "
  for option in $(sed -nE "s/.*\{[A-Z_]+, \"([a-z0-9-]+)\", ('.'|0), [01]\}.*/\1/p" "$root"/tools/{cli,reorder,exchange}/*.c); do
    [[ $all == *" --$option "* ]] || { echo "$option"; false; }
  done
}

@test "the scripts are sound" {
  bash -n "$BATS_FILE_TMPDIR/gpuir.bash"
  ! command -v shellcheck >/dev/null || shellcheck -s bash "$BATS_FILE_TMPDIR/gpuir.bash"
  ! command -v zsh >/dev/null || zsh -n "$BATS_FILE_TMPDIR/_gpuir"
  ! command -v fish >/dev/null || fish --no-execute "$BATS_FILE_TMPDIR/gpuir.fish"
}

@test "fish completes them" {
  command -v fish >/dev/null || skip "no fish"
  cd "$BATS_TEST_TMPDIR"
  offered() { HOME=$PWD fish --no-config -c "source $BATS_FILE_TMPDIR/gpuir.fish; complete -C '$1'"; }
  [ "$(offered 'gpuir que')" = $'query\trank the documents for a query, or for many' ]
  offered 'gpuir query --' | grep -q "^--mode	"
  [ "$(offered 'gpuir query --mode a' | cut -f 1 | sort | paste -sd ' ')" = "and andor" ]
  : >some.gpuir
  offered 'gpuir query so' | grep -q 'some.gpuir'
}

@test "zsh completes them" {
  command -v zsh >/dev/null || skip "no zsh"
  zsh -fc 'zmodload zsh/zpty' || skip "zsh has no zpty"
  cd "$BATS_TEST_TMPDIR"
  cat >ask.zsh <<'ZSH'
zmodload zsh/zpty
zpty -b z zsh -f -i
zpty -w z "PS1=; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; echo rea''dy"
for i in {1..100}; do zpty -r -t z line && [[ $line == *ready* ]] && break; sleep 0.1; done
zpty -n -w z "$2"$'\t'
for i in {1..50}; do
  while zpty -r -t z part; do all+=$part; done
  [[ $all == *$3* ]] && break
  sleep 0.1
done
zpty -d z
[[ $all == *$3* ]]
ZSH
  # shellcheck disable=SC2016 # zsh expands
  for case in 'gpuir ind|gpuir index' 'gpuir query --mo|--mode' 'gpuir query -m o|-m or' 'gpuir completion f|completion fish'; do
    timeout 30 zsh -f ask.zsh "$BATS_FILE_TMPDIR" "${case%|*}" "${case#*|}" 3>&- || { echo "$case"; false; }
  done
}

@test "misuse" {
  fails 2 "the shell is missing" gpuir completion
  fails 2 "'tcsh' is none of" gpuir completion tcsh
  fails 2 "one shell only" gpuir completion bash zsh
  run gpuir completion bash -h
  [ "$status" -eq 0 ]
  [[ $output == 'usage: gpuir completion'* ]]
}
