#!/usr/bin/env bats
# A second look at hits: program code by names. The formula is held against a second program of it, look_oracle.py.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  export root build PATH="$build:$PATH"
}

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

teardown() {
  ! mountpoint -q m || fusermount3 -u m
}

needs_fuse() {
  # shellcheck disable=SC2015 # one of the three is not there
  [ -x "$build/gpuirfs" ] && [ -c /dev/fuse ] && command -v fusermount3 >/dev/null || skip "no gpuirfs, or no FUSE here"
}

@test "hits, scores and order are those of the formula, of a file and a live index" {
  run python3 "$BATS_TEST_DIRNAME/look.py" "$build/gpuir"
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "typing errors, stop words, answers by any word, looks and expansion together are a model's, live and over shards" {
  [ -x "$build/tests/e2e/text_tokens" ] || skip "no text_tokens is built"
  run ! grep -q '^stemmers: none' <(gpuir --version) || skip "built without libstemmer"
  run python3 "$BATS_TEST_DIRNAME/found_oracle.py" "$build/gpuir" "$build/tests/e2e/text_tokens" "${GPUIR_LONG:+2}90" 24 4
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "an index of program code is looked at by itself; one of notes, and what is measured, is not" {
  mkdir code notes
  printf 'wolf wolf wolf cub\n' >code/a.c
  printf 'cub wolf\n' >code/wolf.c
  printf 'wolf wolf wolf cub\n' >notes/a.md
  printf 'cub wolf\n' >notes/wolf.md
  gpuir index -q --analyzer text code -o code.gpuir
  gpuir index -q --analyzer text notes -o notes.gpuir
  gpuir index -q --analyzer unicode code -o old.gpuir
  gpuir stats code.gpuir | grep -E '^source_files +2$'
  gpuir stats --json code.gpuir | grep -F '"source_files":2'
  first() { gpuir query --tsv "$@" -- wolf | head -n 1 | cut -f 4; }
  [ "$(first code.gpuir)" = code/wolf.c ]
  [ "$(first --rank plain code.gpuir)" = code/a.c ]
  [ "$(first notes.gpuir)" = notes/a.md ]
  [ "$(first old.gpuir)" = code/a.c ]
  [ "$(first --rank code old.gpuir)" = code/wolf.c ]
  [ "$(gpuir query --trec code.gpuir wolf | head -n 1 | cut -d ' ' -f 3)" = code/a.c ]
  printf '1\twolf\n' >topics
  [ "$(gpuir query --tsv --topics topics code.gpuir | head -n 1 | cut -f 5)" = code/a.c ]
  [ "$(gpuir query --tsv --topics topics --rank code code.gpuir | head -n 1 | cut -f 5)" = code/wolf.c ]
  fails 2 'rank' gpuir query --rank best code.gpuir wolf
}

@test "the search's score stands beside the look's" {
  mkdir code
  printf 'wolf wolf wolf cub\n' >code/a.c
  printf 'cub wolf\n' >code/wolf.c
  gpuir index -q --analyzer text code -o i.gpuir
  plain=$(gpuir query --rank plain --tsv i.gpuir wolf | grep wolf.c | cut -f 3)
  [ "$(gpuir query --tsv --scores i.gpuir wolf | head -n 1 | cut -f 4)" = "$plain" ]
  gpuir query --scores i.gpuir wolf | head -n 1 | grep -F " $plain "
  gpuir query --json i.gpuir wolf | grep -F "\"bm25\":$plain,\"name\":\"code/wolf.c\""
  run gpuir query --rank plain --json i.gpuir wolf
  [[ $output != *bm25* ]]
  [ "$(gpuir query --rank plain --tsv --scores i.gpuir wolf | awk -F '\t' '$3 != $4')" = "" ]
}

@test "what source files define comes first, also in a live index that was changed and merged" {
  mkdir code
  printf 'int get_wolf(int a) {\n  return a;\n}\n' >code/b.c
  for i in 1 2 3; do printf '/* get_wolf get_wolf get_wolf */\n' >code/a$i.c; done
  gpuir index -q --live --analyzer text code -o live
  first() { gpuir query --tsv "$@" -- get_wolf | head -n 1 | cut -f 4; }
  [ "$(first --rank plain live)" = code/a1.c ]
  [ "$(first live)" = code/b.c ]
  printf 'class Cub:\n  def get_wolf(self):\n    pass\n' >code/c.py
  rm code/b.c
  gpuir update -q -o live code
  [ "$(first live)" = code/c.py ]
  gpuir merge --all live
  [ "$(first live)" = code/c.py ]
}

@test "the look's depth does not change what is found: documents with all words, if there are as many as are asked for" {
  mkdir code
  for i in 1 2 3; do printf 'wolf cub %s\n' "$i" >code/a$i.c; done
  printf 'wolf\n' >code/wolf_cub.c
  gpuir index -q --analyzer text --no-names code -o i.gpuir
  [ "$(gpuir query --tsv -k 3 i.gpuir wolf cub 2>said | grep -c code/a)" -eq 3 ]
  [ ! -s said ]
  gpuir query --tsv -k 4 i.gpuir wolf cub 2>said | head -n 1 | grep wolf_cub.c
  grep -q '3 documents have all of these words' said
  needs_fuse
  mkdir m
  "$build/gpuirfs" "$PWD/i.gpuir" m
  [ "$(grep -c 'code/a' m/query/@andor/@k=3/wolf+cub.tsv)" -eq 3 ]
  [ "$(grep -c 'code/wolf' m/query/@andor/@k=4/wolf+cub.tsv)" -eq 1 ]
}

@test "in a mount all folders of queries agree with the command, and @rank says otherwise" {
  needs_fuse
  mkdir code m
  for i in 1 2 3 4 5; do printf 'wolf wolf wolf cub\n' >code/a$i.c; done
  printf 'cub wolf\n' >code/wolf.c
  gpuir index -q --analyzer text code -o i.gpuir
  "$build/gpuirfs" "$PWD/i.gpuir" m
  gpuir query --tsv i.gpuir wolf >want
  gpuir query --tsv --rank plain i.gpuir wolf >plain
  run ! cmp -s want plain
  cmp m/query/wolf.tsv want
  cmp m/query/@rank=code/@k=3/wolf.tsv <(head -n 3 want)
  cmp m/query/@rank=plain/wolf.tsv plain
  grep -F '"bm25": ' m/query/wolf.json | head -n 1 | grep -F '"name": "code/wolf.c"'
  run ! grep -F bm25 m/query/@rank=plain/wolf.json
  [ "$(head -n 1 m/query/wolf.paths)" = "$PWD/code/wolf.c" ]
  [ "$(ls m/hits/wolf | head -n 1)" = 000001-code_wolf.c ]
  [ "$(ls m/files/wolf | head -n 1)" = 000001-code_wolf.c ]
  [[ $(head -n 1 m/pass/wolf) == */code/wolf.c:1-1 ]]
  [[ $(head -n 1 m/grep/wolf) == */code/wolf.c:1:* ]]
  [[ $(head -n 1 m/pass/@rank=plain/wolf) == */code/a1.c:1-1 ]]
}
