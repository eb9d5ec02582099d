#!/usr/bin/env bats
# What the command does when nothing is said: the analyzer `text` for what is indexed, an answer instead of nothing for
# what is typed, and for runs, records and mounts what they had.

bats_require_minimum_version 1.5.0
root=${BATS_TEST_DIRNAME}/../..

setup() {
  PATH=${GPUIR_BUILD:-$root/build}:$PATH
  cd "$BATS_TEST_TMPDIR" || return 1
  mkdir -p d
  run ! grep -q '^stemmers: none' <(gpuir --version) || skip "built without libstemmer"
}

names() { gpuir query --tsv "$@" 2>/dev/null | cut -f 4 | xargs -r -n 1 basename | sort | paste -sd ' '; }

@test "folders: words as they are typed, names, stems of English, long files in chunks" {
  printf 'the Café of O'"'"'Reilly is for walking with getUserName\n' >d/note_one.txt
  { yes 'word of the day' | head -n 249 && echo 'and the last line'; } >d/long
  gpuir index -q -o x.gpuir d
  gpuir stats x.gpuir | grep -q '^analyzer *text stem=english$'
  for query in cafe Reilly walked name note 'user name'; do
    [ "$(names -m and x.gpuir "$query")" = note_one.txt ]
  done
  [ "$(names -m and x.gpuir last)" = long:201-250 ]
  gpuir index -q --live -o L d
  [ "$(names -m and L cafe)" = note_one.txt ]
  [ "$(names -m and L last)" = long:201-250 ]
}

@test "records: the same words, but no names; imports keep the terms that they are given" {
  printf "a\tthe café of O'Reilly\n" >r.tsv
  gpuir index -q --tsv -o x.gpuir r.tsv
  gpuir stats x.gpuir | grep -q '^analyzer *text stem=english$'
  [ "$(names x.gpuir cafe)" = a ]
  gpuir index -q --tsv --analyzer unicode -o u.gpuir r.tsv
  gpuir export -q u.gpuir u.ciff
  gpuir import -q u.ciff -o i.gpuir
  gpuir stats i.gpuir | grep -q '^analyzer *unicode$'
}

@test "a query that is typed: documents with all words, else with any, which a note, JSON and the exit status say" {
  echo 'green tea' >d/a
  echo 'black tea' >d/b
  gpuir index -q --lang none -o x.gpuir d
  run --separate-stderr -0 gpuir query --tsv -k 1 x.gpuir green tea
  [ "$(cut -f 4 <<<"$output")" = d/a ] && [ -z "$stderr" ]
  run --separate-stderr -0 gpuir query --tsv x.gpuir tea
  [ "${#lines[@]}" -eq 2 ] && [ -z "$stderr" ]
  run --separate-stderr -0 gpuir query --tsv x.gpuir green tea
  [ "${#lines[@]}" -eq 2 ]
  [[ $stderr == *"note: 1 document has all of these words; others"* ]]
  run --separate-stderr -1 gpuir query --tsv x.gpuir green black
  [ "${#lines[@]}" -eq 2 ]
  [[ $stderr == *"note: no document has all of these words"* ]]
  run --separate-stderr -1 gpuir query --tsv x.gpuir green qqqqqq
  [ "${#lines[@]}" -eq 1 ]
  [[ $stderr == *"no document has 'qqqqqq'"* ]]
  [[ $(gpuir query --json -k 1 x.gpuir green tea 2>&1) == *'"mode":"andor","any":false,'* ]]
  [[ $(gpuir query --json x.gpuir green black 2>/dev/null) == *'"mode":"andor","any":true,'* ]]
  printf 'green black\ntea\ngreen tea\n' >lines
  gpuir query --threads 2 x.gpuir <lines >out 2>said
  grep -q 'note: 2 queries have few documents with all words' said
  gpuir query --threads 2 --json x.gpuir <lines 2>/dev/null | grep -o '"any":[a-z]*' >marks
  [ "$(paste -sd ' ' marks)" = '"any":true "any":false "any":true' ]
  gpuir query --json x.gpuir <lines 2>/dev/null | grep -o '"any":[a-z]*' | cmp - marks
}

@test "AND, topics, runs, counts and the passages of a query are what they were" {
  echo 'green tea' >d/a
  echo 'black tea' >d/b
  gpuir index -q --lang none --store -o x.gpuir d
  run --separate-stderr -1 gpuir query -m and x.gpuir green black
  [ -z "$output" ]
  echo 'green black' >topics
  [ -z "$(gpuir query --tsv --topics topics x.gpuir)" ]
  [[ $(gpuir query --json --topics topics x.gpuir) == *'"mode":"and","k":'* ]]
  [ "$(gpuir query --trec --topics topics x.gpuir | wc -l)" -eq 2 ]
  [ "$(gpuir count x.gpuir green black)" -eq 0 ]
  [[ $(gpuir query --passages --json x.gpuir green black) == *'"mode":"or"'* ]]
}
