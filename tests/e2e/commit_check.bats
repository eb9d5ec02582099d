#!/usr/bin/env bats
# What is looked at before a commit: layout, shell, rooms and the message; the hooks.

setup() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  command -v git >/dev/null || skip "no git"
  export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
  cd "$BATS_TEST_TMPDIR" || return 1
  git init -q tree
  cd tree || return 1
  git config user.name tester
  git config user.email tester@example.org
  mkdir -p tools/scripts tests/e2e
  cp "$root/.clang-format" "$root/gpuir.h" "$root/gpuir_cuda.cu" .
  cp -r "$root/tools/header" "$root/tools/cuda" tools
  cp "$root/tools/scripts/commit_check.sh" tools/scripts
  cp "$root/tests/e2e/house.py" tests/e2e
  git add . && git commit -qm first
}

check() { run tools/scripts/commit_check.sh "$@"; }

@test "nothing changed, nothing found" {
  check
  [ "$status" -eq 0 ]
  [ -z "$output" ]
}

@test "the layout of what is staged, and of what is not if nothing is" {
  command -v clang-format >/dev/null || skip "no clang-format"
  printf 'int  f(void){return 0;}\n' >tools/scripts/f.c
  git add tools/scripts/f.c
  check
  [ "$status" -eq 1 ]
  [[ $output == *"'make format'"* ]]
  printf 'int f(void) { return 0; }\n' >tools/scripts/f.c
  git add tools/scripts/f.c
  check
  [ "$status" -eq 0 ]
  git commit -qm 'f'
  printf 'int  f(void) { return 0; }\n' >tools/scripts/f.c
  check
  [ "$status" -eq 1 ]
}

@test "shell, and lines of over 120 columns" {
  command -v shellcheck >/dev/null || skip "no shellcheck"
  # shellcheck disable=SC2016 # the finding
  printf '#!/bin/sh\nls $1\n' >tools/scripts/a.sh
  git add tools/scripts/a.sh
  check
  [ "$status" -eq 1 ]
  [[ $output == *"shellcheck has findings"* ]]
  printf '#!/bin/sh\n# %0130d\nls "$1"\n' 0 >tools/scripts/a.sh
  git add tools/scripts/a.sh
  check
  [ "$status" -eq 1 ]
  [[ $output == *"a.sh:2: over 120 columns"* ]]
}

@test "a room without what it makes, and a banner that is not true" {
  printf '/* a comment */\n' >>tools/header/53-topk.h
  git add tools/header
  check
  [ "$status" -eq 1 ]
  [[ $output == *"gpuir.h is not what its rooms make"* ]]
  sed -i 's/^ \* Uses .*/ * Uses      [20-lab-unary]./' tools/header/53-topk.h
  LC_ALL=C cat tools/header/*.h >gpuir.h
  git add .
  check
  [ "$status" -eq 1 ]
  [[ $output == *"does not say"* ]]
}

@test "messages" {
  say() {
    printf "$@" >message
    check message message
  }
  say 'A subject\n\nAnd why.\n# a comment of git'
  [ "$status" -eq 0 ]
  say 'A subject\n'
  [ "$status" -eq 1 ] && [[ $output == *"no body"* ]]
  say 'A subject\n\n# a comment alone\n'
  [ "$status" -eq 1 ] && [[ $output == *"no body"* ]]
  say 'A subject\nand more\n\nWhy.\n'
  [ "$status" -eq 1 ] && [[ $output == *"not blank"* ]]
  say '%073d\n\nWhy.\n' 0
  [ "$status" -eq 1 ] && [[ $output == *"73 characters"* ]]
  say '\n\nWhy.\n'
  [ "$status" -eq 1 ] && [[ $output == *"no subject"* ]]
  say "Merge branch 'main'\n"
  [ "$status" -eq 0 ]
}

@test "hooks, which leave others' alone" {
  rm -f .git/hooks/*
  check install
  [ "$status" -eq 0 ]
  printf 'text\n' >file
  git add file
  run git commit -qm 'No body'
  [ "$status" -ne 0 ]
  git commit -qm 'A body' -m 'It says why.'
  printf '#!/bin/sh\n' >.git/hooks/pre-commit
  check install
  [ "$status" -eq 1 ]
  [[ $output == *"left as it is"* ]]
}
