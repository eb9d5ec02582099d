#!/usr/bin/env bats
# A log is believed only if the commit that it names can be looked at: it is an ancestor of this one.

setup() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  cd "$root" || return 1
  git rev-parse --verify -q HEAD >/dev/null 2>&1 || skip "no history: this is no clone"
  [[ $(git rev-parse --is-shallow-repository) == false ]] || skip "no history: the clone is shallow"
  table=tools/results/commits.tsv
}

# The commits that logs name, and files that do: `FILE:commit ID`.
named() { grep -rIoE 'commit:? [0-9a-f]{7,40}\b' tools/results --exclude=commits.tsv; }

# known ID [TABLE]: an ancestor, or one that the table has another for
known() {
  local stands
  git merge-base --is-ancestor "$1" HEAD 2>/dev/null && return
  stands=$(awk -F '\t' -v id="$1" '$1 == id { print $2 }' "$table")
  [ -n "$stands" ] && git merge-base --is-ancestor "$stands" HEAD 2>/dev/null
}

@test "each commit that a log names is an ancestor, or the table says which stands for it" {
  local id lost=()
  for id in $(named | grep -oE '[0-9a-f]+$' | sort -u); do
    known "$id" || lost+=("$id")
  done
  for id in "${lost[@]}"; do grep -rIlE "commit:? $id" tools/results | sed "s/^/$id: /"; done
  [ "$(named | wc -l)" -gt 100 ]
  [ "${#lost[@]}" -eq 0 ]
}

@test "a commit that nobody has is found out" {
  run known 0123456789abcdef
  [ "$status" -ne 0 ]
  known "$(git rev-parse HEAD)"
}

@test "no row of the table is idle" {
  local id
  for id in $(awk -F '\t' 'NR > 2 { print $1 }' "$table"); do
    grep -rqI "\b$id\b" tools/results --exclude=commits.tsv
    known "$id"
    run git merge-base --is-ancestor "$id" HEAD
    [ "$status" -ne 0 ]
  done
}

@test "the page tells how old each log is: a line for each, counted at a commit that all have" {
  local at count log commit stands counted=0
  at=$(sed -n '1s/.* at commit //p' tools/results/ages.tsv)
  known "$at"
  diff <(tail -n +3 tools/results/ages.tsv | cut -f 2 | sort) <(tail -n +3 tools/results/figures.tsv | cut -f 2 | sort -u)
  grep -qF '(ages.tsv)' tools/results/README.md
  # Those of the processor alone are counted again, a few of them.
  while IFS=$'\t' read -r count log commit; do
    stands=$(awk -F '\t' -v id="$commit" '$1 == id { print $2 }' "$table")
    [ "$(git rev-list --count "${stands:-$commit}..$at" -- gpuir.h tools/header tools/lab)" -eq "$count" ]
    counted=$((counted + 1))
  done < <(tail -n +3 tools/results/ages.tsv | grep -v 'gpu\|cuda' | grep -v '^-' | awk 'NR % 12 == 1')
  [ "$counted" -gt 3 ]
}
