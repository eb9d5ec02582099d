#!/usr/bin/env bats
# Indexes that earlier versions made (tests/data/make-old.sh) open, search, update and merge.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  PATH=${GPUIR_BUILD:-$root/build}:$PATH
  cd "$BATS_TEST_TMPDIR" || exit
  cp -r "$root/tests/data/old/." .
}

# names INDEX QUERY: of the documents that answer, sorted
names() { gpuir query --mode or -k 100 --tsv "$@" | cut -f 4 | LC_ALL=C sort | paste -sd ' '; }

# like_fresh FOLDER OPTION...: the live index answers as a file that is built of notes at once
like_fresh() {
  local folder=$1
  shift
  rm -f fresh
  gpuir index -q --analyzer unicode "$@" notes -o fresh
  gpuir verify "$folder" >/dev/null
  for query in tea green 'tea -green' 'coffee beer' hidden; do
    gpuir query --mode or -k 100 --tsv fresh "$query" | cut -f 1,3- | LC_ALL=C sort >a || true
    gpuir query --mode or -k 100 --tsv "$folder" "$query" | cut -f 1,3- | LC_ALL=C sort | diff a - || return 1
  done
}

@test "an index file opens, verifies, searches, shows texts" {
  gpuir verify file.gpuir
  [ "$(names file.gpuir tea)" = 'notes/a notes/b notes/sub/c' ]
  [ "$(names file.gpuir '"green tea"')" = notes/a ]
  [ "$(names file.gpuir 'mor*')" = notes/sub/c ]
  gpuir query --passages file.gpuir noon | grep -q 'coffee at noon'
  gpuir reorder -q --order name file.gpuir other.gpuir
  [ "$(names other.gpuir tea)" = 'notes/a notes/b notes/sub/c' ]
}

@test "an index file has the same sections, but for what it says of itself, dense lists and texts, which are packed" {
  "$root/tests/data/numbered.sh" >text
  grep -vE $'^(2|24|25)\t' sections >right # 2: META; 24 and 25: texts
  for dense in 0 16; do
    gpuir index -q --lines --positions --store --analyzer unicode --fields none --dense $dense text -o new.gpuir
    python3 "$root/tests/data/sections.py" new.gpuir >"new-$dense"
    grep -vE $'^(2|3[2-5]|5[0-2])\t' "new-$dense" | diff right -
  done
  [ "$(grep -cE $'^3[2-5]\t' new-0)" -eq 0 ]
  [ "$(grep -cE $'^3[2-5]\t' new-16)" -eq 4 ]
}

@test "a live index opens, verifies, searches" {
  gpuir verify live
  [ "$(names live tea)" = '1 3 4 notes/.d:1-1 notes/a:1-1 notes/b:1-1 notes/sub/c:1-2' ]
  [ "$(names live '"green tea"')" = notes/a:1-1 ]
  gpuir stats --json live | python3 -c 'import json, sys
s = json.load(sys.stdin)
assert s["documents"] == 8 and s["deleted"] == 1 and len(s["segments"]) == 2, s'
}

@test "a live index is updated, added to, deleted from and merged" {
  says='0 new, 4 changed, 0 vanished, 0 unchanged files; 5 documents added, 5 deleted, 8 in all'
  run --separate-stderr gpuir update notes -o live
  # shellcheck disable=SC2154 # stderr is set by run
  [ "$stderr" = "gpuir: live: $says" ]
  gpuir delete -q live 1 3 4
  like_fresh live --chunk-lines 2 --hidden
  echo 'white tea' >notes/a
  rm notes/b
  echo 'more tea' >notes/.e
  gpuir update -q notes -o live
  like_fresh live --chunk-lines 2 --hidden
  gpuir update notes -o live 2>&1 | grep -q ' 0 new, 0 changed, 0 vanished, 4 unchanged files'
  echo 'ginger tea' | gpuir add -q --name 4 - -o live
  gpuir merge -q --all live
  [ "$(gpuir stats --json live | grep -o '"first"' | wc -l)" -eq 1 ]
  [ "$(names live tea)" = '4 notes/.d:1-1 notes/.e:1-1 notes/a:1-1 notes/sub/c:1-2' ]
  gpuir delete -q live 4
  like_fresh live --chunk-lines 2 --hidden
}

@test "a live index is merged as it is" {
  before=$(gpuir query --mode or -k 100 --tsv live tea | cut -f 1,3-)
  gpuir merge -q --all live
  [ "$(gpuir query --mode or -k 100 --tsv live tea | cut -f 1,3-)" = "$before" ]
  gpuir verify live
}

@test "what a killed index --live had begun is taken over" {
  gpuir index --live -q --analyzer unicode notes -o begun
  like_fresh begun
  [ "$(ls begun)" = "$(printf '%s\n' "$(cd begun && echo 0*.gpuir)" lock manifest skipped update)" ]
  gpuir update -q notes -o untold
  like_fresh untold
}
