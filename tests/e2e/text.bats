#!/usr/bin/env bats
# The analyzer `text` against a model in Python: 4,000 random texts and query words; in the long form 100,000.

bats_require_minimum_version 1.5.0
root=${BATS_TEST_DIRNAME}/../..
bin=${GPUIR_BUILD:-$root/build}

@test "the tokens of random texts and query words are the model's" {
  local n=4000
  [ -z "${GPUIR_LONG-}" ] || n=100000
  run python3 "$root/tests/e2e/text.py" "$bin/tests/e2e/text_tokens" "$n"
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output == *compared ]]
}

setup() {
  PATH=$bin:$PATH
  cd "$BATS_TEST_TMPDIR" || return 1
  mkdir -p d
  run ! grep -q '^stemmers: none' <(gpuir --version) || skip "built without libstemmer"
}

# Builds i.gpuir of the files in d, unstemmed unless it is asked for.
build() {
  local lang=(--lang none)
  [[ "$*" != *--stem* && "$*" != *--lang* ]] || lang=()
  gpuir index -q --analyzer text --positions "${lang[@]}" -o i.gpuir "$@" d
}

names() { gpuir query --tsv "$@" | cut -f 4 | xargs -r -n 1 basename | sort | paste -sd ' '; }

# search CHECK...: see text_search.py.
search() {
  python3 "$root/tests/e2e/text_search.py" "$bin/gpuir" "$@"
}

@test "what people write is found by what they type, in AND, OR, counts and negation; what is not the same is not" {
  search rows
}

@test "hits, counts and scores of random queries are the model's, with positions and without" {
  search oracle "${GPUIR_LONG:+3}600" "$bin/tests/e2e/text_tokens"
}

@test "a split word excludes the documents that hold all of its pairs, of one segment and several" {
  search excluded
}

@test "each substring of texts in scripts without spaces is found, and none falsely between quotes" {
  search scripts "${GPUIR_LONG:+10}400"
}

@test "accented words of nine languages are found, typed with accents and without" {
  search sample
}

@test "accented words of each language are found, typed with accents and without" {
  [ -n "${GPUIR_LONG-}" ] || skip "a test of the long form"
  [ "$(find /usr/share/locale -name '*.mo' | wc -l)" -gt 500 ] || skip "no translations are installed"
  search accents
}

@test "terms and exports leave out what the analyzer makes beside words" {
  echo "O'Reilly café" >d/a
  build --no-names
  [ "$(gpuir terms --tsv i.gpuir | cut -f 1 | paste -sd ' ')" = "cafe o oreilly reilly" ]
  [ "$(gpuir terms --all --tsv i.gpuir | wc -l)" -eq 6 ]
  [ "$(gpuir terms --prefix $'\xff' --tsv i.gpuir | wc -l)" -eq 2 ]
  run -2 gpuir terms --all i.gpuir cafe
  gpuir export -q i.gpuir x.ciff
  gpuir export i.gpuir p 2>said
  grep -q '4 terms, without those of pairs' said
  [ "$(wc -l <p.terms)" -eq 4 ]
  gpuir import -q --analyzer text x.ciff -o back.gpuir
  [ "$(gpuir terms --all --tsv back.gpuir | cut -f 1 | paste -sd ' ')" = "cafe o oreilly reilly" ]
  gpuir index -q --analyzer unicode -o u.gpuir d
  gpuir terms --tsv u.gpuir | cut -f 1 >plain
  gpuir terms --all --tsv u.gpuir | cut -f 1 | cmp - plain
}

@test "a prefix behind a connector: the terms before it are stems, its name is as typed" {
  echo "error_handling x" >d/a
  echo "errors handling x" >d/b
  build --stem english
  [ "$(names i.gpuir 'errors_handl*')" = a ]
  [ "$(names i.gpuir 'error_handling*')" = a ]
  [ "$(names i.gpuir 'error_ha*')" = a ]
  [ -z "$(names i.gpuir 'error_x*')" ]
  gpuir explain i.gpuir 0 'errors_handl* x' >said
  grep -q 'errors_handl\*' said
  run ! grep -q $'\xff' said
}

@test "of more words than a query may have, pairs are named as they were typed" {
  echo w{1..70} kept-pair >d/a
  build
  gpuir query --json -m or i.gpuir "$(echo w{1..66} kept-pair lost-Pair)" >said
  grep -q '"left_out":\[.*"lost-Pair"' said
  run ! grep -q $'\xff' said
  gpuir query -m or i.gpuir "$(echo w{1..61} kept-pair lost-Pair e-mail)" >said 2>&1
  run ! grep -q $'\xff' said
}

@test "words of the path below the operand are searched behind the text, not over the gap, and never of records" {
  mkdir -p d/sub_dir/deep
  echo "plain words" >d/sub_dir/deep/invoice_2024.txt
  echo "an invoice" >d/other.txt
  build
  [ "$(names i.gpuir invoice)" = "invoice_2024.txt other.txt" ]
  [ "$(names i.gpuir sub_dir)" = invoice_2024.txt ]
  [ "$(names i.gpuir '"deep invoice"')" = invoice_2024.txt ]
  run -1 gpuir query i.gpuir '"words sub"'
  run -1 gpuir query i.gpuir d # the operand is not below itself
  [ "$(gpuir query --passages i.gpuir plain | head -n 1)" = d/sub_dir/deep/invoice_2024.txt:1-1 ]
  gpuir query --passages i.gpuir deep | grep -q '^d/sub_dir/deep/invoice_2024.txt (found by its name)$'
  gpuir query --passages --json i.gpuir deep | grep -q '"missing":"found by its name"'
  build --no-names
  [ "$(names i.gpuir invoice)" = other.txt ]
  gpuir index -q --analyzer unicode -o u.gpuir d
  [ "$(names u.gpuir invoice)" = other.txt ]
  gpuir index -q --analyzer text --lines d -o r.gpuir
  run -1 gpuir query r.gpuir deep
  gpuir index -q --analyzer text --chunk-lines 1 d/other.txt -o one.gpuir
  [ "$(names one.gpuir other)" = other.txt:1-1 ]
}

@test "update, watch's and add's files have their names, also where paths change; not where none are wanted" {
  echo "plain words" >d/first.txt
  gpuir index -q --live --analyzer text -o L d
  [ "$(names L first)" = first.txt ]
  mv d/first.txt d/second.txt
  gpuir update -q -o L d
  run -1 gpuir query L first
  [ "$(names L second)" = second.txt ]
  echo more >third.txt
  gpuir add -q -o L third.txt
  [ "$(names L third)" = third.txt ]
  gpuir add -q --no-names -o L --replace third.txt
  run -1 gpuir query L third
  gpuir add -q --name fourth -o L third.txt
  run -1 gpuir query L third
  gpuir merge -q --all L
  [ "$(names L second)" = second.txt ]
  gpuir index -q --live --analyzer text --no-names -o M d
  echo more >d/third.txt
  gpuir update -q -o M d
  gpuir add -q -o M third.txt
  run -1 gpuir query M third
  run -1 gpuir query M second
}

@test "a word that no document has is searched as the nearest one, where any word is enough; notes and JSON say so" {
  echo "the registration of a blueprint" >d/a
  echo "another blueprint" >d/b
  gpuir index -q --stem english -o i.gpuir d
  gpuir query --tsv -m or i.gpuir registraton >hits 2>said
  [ "$(wc -l <hits)" -eq 1 ]
  # of spellings with one stem the one that people know
  [[ $(gpuir query -m or i.gpuir blueprintt 2>&1 >two) == *"; 'blueprint' is searched"* ]]
  grep -q "note: no document has 'registraton'; 'registration' is searched in its place; --exact searches it" said
  gpuir query --json -m andor i.gpuir 'blueprint registraton' 2>said |
    grep -q '"spelled":\[{"word":"registraton","instead":"registration"}\]'
  gpuir explain -m or i.gpuir 0 registraton 2>&1 >out | grep -q "'registration' is searched"
  grep -q ' registr$' out
  gpuir explain --exact -m or i.gpuir 0 registraton 2>&1 | grep -q ' registraton$'
  run -1 gpuir query --exact -m or i.gpuir registraton
  [[ $output == *"no document has 'registraton'; it has registration"* ]]
  run -1 gpuir query -m and i.gpuir registraton
  [ "$(gpuir query --tsv -m and i.gpuir registraton~ 2>&1 | wc -l)" -eq 2 ]
  echo registraton >topics
  [ -z "$(gpuir query --trec -m or i.gpuir --topics topics)" ]
  [ -n "$(gpuir query --trec -m or --spell i.gpuir --topics topics)" ]
  [ "$(gpuir count -m or i.gpuir registraton)" -eq 0 ]
  printf 'registraton\nblueprint\nblueprnt\n' | gpuir query -m or i.gpuir 2>said >out
  grep -q '^gpuir: note: 2 queries have a word' said
  [ "$(wc -l <out)" -eq 8 ] # with a line above each answer
  run -2 gpuir query --spell --exact i.gpuir x
  # Of stems the note has a word of the text.
  mkdir s
  echo "the engine overheats" >s/a
  gpuir index -q --stem english -o s.gpuir s
  gpuir query s.gpuir overheating 2>&1 >out |
    grep -q "^gpuir: note: no document has 'overheating'; 'overheats' is searched in its place"
  gpuir query --json s.gpuir overheating 2>out | grep -qF '"spelled":[{"word":"overheating","instead":"overheats"}]'
  gpuir explain -m or s.gpuir 0 overheating 2>&1 >out | grep -q "'overheats' is searched"
  # Which folder the index lies in is asked for where its texts are needed, and not else.
  cp s.gpuir gone.gpuir
  exec 4<gone.gpuir
  rm gone.gpuir
  gpuir query --tsv /dev/fd/4 engine >out
  grep -q "'overh' is searched\|'overheats' is searched" <(gpuir query --tsv /dev/fd/4 overheating 2>&1)
  exec 4<&-
  # Words that sentences are made of are right as they are, and words are told as they were typed.
  echo "it may rain" >s/b
  gpuir index -q --stem english -o s.gpuir s
  run -1 gpuir query s.gpuir many Houses
  [[ $output == *"no document has 'many'"* && $output == *"no document has 'Houses'"* ]]
  # A word of questions is no typing error: "goes" is not meant by "does".
  echo "it goes" >d/c
  gpuir index -q --stem english -o i.gpuir d
  [ -z "$(gpuir query --tsv -m or i.gpuir does blueprint 2>&1 | grep goes)" ]
  gpuir query --passages i.gpuir registraton 2>&1 | grep -q 'the registration'
}

@test "the language is English where a tenth of the words are its commonest, or what is said; it is kept" {
  language() { gpuir stats --json "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["language"])'; }
  echo "the w1 w2 w3 w4 w5 w6 w7 w8 w9" >d/a
  gpuir index -q --analyzer text d -o x.gpuir
  [ "$(language x.gpuir)" = english ]
  gpuir stats x.gpuir | grep -q '^analyzer *text stem=english$'
  echo "The w1 w2 w3 w4 w5 w6 w7 w8 w9 w10" >d/a
  gpuir index -q --analyzer text d -o x.gpuir
  [ "$(language x.gpuir)" = none ]
  # files are taken in byte order of their paths, and only the first MiB of them counts
  printf 'word %.0s' {1..30000} >d/b
  yes 'the and of with' | head -n 70000 >d/c
  gpuir index -q --analyzer text d -o x.gpuir
  [ "$(language x.gpuir)" = english ]
  mv d/c d/z
  for i in {1..10}; do yes word | head -n 100000 >"d/y$i"; done
  gpuir index -q --analyzer text d/z d/a d/b d/y* -o x.gpuir
  [ "$(language x.gpuir)" = none ]
  for lang in de german; do
    gpuir index -q --analyzer text --lang $lang d/a -o x.gpuir
    [ "$(language x.gpuir)" = german ]
  done
  gpuir index -q --analyzer text --lang none d/z -o x.gpuir
  [ "$(language x.gpuir)" = none ]
  gpuir index -q --stem porter d/a -o x.gpuir
  [ "$(language x.gpuir)" = english ]
  gpuir index -q --analyzer unicode d/z -o x.gpuir # other analyzers stem what is said
  [ "$(language x.gpuir)" = none ]
  gpuir index -q --live --analyzer text d/z -o L
  gpuir add -q d/b -o L
  gpuir merge -q --all L
  [ "$(language L)" = english ]
  run -2 gpuir index --lang de --stem german d -o x.gpuir
  run -1 gpuir index --lang klingon d -o x.gpuir
  [[ $output == *'no stemmer "klingon"'* ]]
}

@test "files of folders with more than 200 lines are cut into chunks of 50; named ones stay whole" {
  chunks() {
    gpuir query -k 100 --tsv "$1" "$2" 2>/dev/null | cut -f 4 | sed 's,.*/,,' | sort -t: -k2n | paste -sd ' '
  }
  seq -f 'n%g every' 200 >d/short
  seq -f 'n%g every' 201 >d/long
  printf 'every' >d/none
  : >d/empty
  build
  [ "$(chunks i.gpuir n201)" = long:201-201 ]
  [ "$(chunks i.gpuir every)" = "none short long:1-50 long:51-100 long:101-150 long:151-200 long:201-201" ]
  [ "$(gpuir query --grep i.gpuir n120 | sort | paste -sd ' ')" = "d/long:120:n120 every d/short:120:n120 every" ]
  [ "$(gpuir stats --json i.gpuir | grep -o -m 1 '"documents":[0-9]*' | head -n 1)" = '"documents":8' ]
  build --whole-files
  [ "$(chunks i.gpuir every)" = "long none short" ]
  build --chunk-lines 150
  [ "$(chunks i.gpuir n1)" = "long:1-150 short:1-150" ]
  gpuir index -q --analyzer text d/long -o x.gpuir
  [ "$(chunks x.gpuir every)" = long ]
  gpuir index -q --analyzer unicode d -o x.gpuir # what other analyzers index stays as it was
  [ "$(chunks x.gpuir every)" = "long none short" ]
  run -2 gpuir index --whole-files --lines d -o x.gpuir
  gpuir index -q --live --analyzer text d -o L
  [ "$(chunks L n201)" = long:201-201 ]
  echo 'n202 every' >>d/long
  sed -i 1d d/short
  gpuir update -q d -o L
  [ "$(chunks L n202)" = long:201-202 ]
  [ "$(chunks L n200)" = "short long:151-200" ]
  cp d/long more
  mkdir e
  mv more e/more
  gpuir add -q e -o L
  [ "$(chunks L n202 | tr ' ' '\n' | sort | paste -sd ' ')" = "long:201-202 more:201-202" ]
  gpuir index -q --live --whole-files --analyzer text d -o M
  gpuir update -q d -o M
  [ "$(chunks M n202)" = long ]
}

@test "a question does without the words that say little, where any word is enough; only of English, unless asked" {
  echo "what is the way" >d/a
  echo "the wolf of the forest" >d/b
  gpuir index -q --lang en -o en.gpuir d
  gpuir index -q --lang none -o none.gpuir d
  [ "$(names -m or en.gpuir what is the wolf forest)" = b ]
  [ "$(names en.gpuir what is the wolf forest)" = b ]
  [ "$(names -m or none.gpuir what is the wolf forest)" = "a b" ]
  [ "$(names -m or --stop-query en none.gpuir what is the wolf forest)" = b ]
  [ "$(names -m or --stop-query none en.gpuir what is the wolf forest)" = "a b" ]
  [ "$(names -m or --stop-query fr en.gpuir le what is the wolf forest)" = "a b" ]
  [ -z "$(names -m and en.gpuir what is the wolf forest)" ]
  [ "$(gpuir count -m or en.gpuir what is the wolf forest)" -eq 2 ]
  [ "$(gpuir query --trec en.gpuir what is the wolf forest | wc -l)" -eq 1 ]
  gpuir query -v -m or en.gpuir what is the wolf forest 2>&1 >out |
    grep -q '^gpuir: note: left out, for they say little: what is the; --stop-query none looks for them, too'
  [ -z "$(gpuir query -m or en.gpuir what is the wolf forest 2>&1 >out)" ]
  gpuir query --json -m or en.gpuir what is the wolf forest | grep -qF '"stopped":["what","is","the"],"k"'
  [[ $(gpuir query --json -m or en.gpuir wolf forest) != *stopped* ]]
  gpuir explain -m or en.gpuir 1 what is the wolf forest 2>said >out
  grep -q 'left out, for they say little: what is the' said
  [ "$(grep -cE ' (the|wolf|forest)$' out)" -eq 2 ]
  run -2 gpuir query --stop-query klingon en.gpuir wolf
  [[ $output == *"there is no list of 'klingon'"* ]]
}

@test "--expand searches also what the ten best hits have in common, of files, records and a live index alike" {
  for i in {1..40}; do echo "filler number$i of the rest" >"d/f$i"; done
  for i in 1 2 3; do echo "wolf den cub pack$i" >"d/w$i"; done
  echo "den cub" >d/x
  gpuir index -q --lang none --no-names -o i.gpuir d
  gpuir index -q --live --lang none --no-names -o live d
  gpuir query --tsv -m or --expand i.gpuir wolf >hits 2>said
  [ ! -s said ]
  [ "$(cut -f 4 hits | paste -sd ' ')" = "d/w1 d/w2 d/w3 d/x" ]
  [ "$(gpuir query --tsv -m or i.gpuir wolf | wc -l)" -eq 3 ]
  gpuir query --tsv -m or --expand live wolf | cmp - hits
  [ "$(gpuir query --tsv -m and --expand i.gpuir wolf | wc -l)" -eq 3 ] # what is added need not match
  gpuir query -v -m or --expand i.gpuir wolf 2>&1 >out | grep -q '^gpuir: note: expanded by: cub den wolf pack1 pack2 pack3$'
  gpuir query --json -m or --expand i.gpuir wolf | grep -qF '"expanded":[{"term":"cub","weight":0.25'
  printf 'wolf\nnumber7\nnowhere\n' >asked
  gpuir query --tsv -m or --expand --threads 1 i.gpuir <asked >one 2>said
  gpuir query --tsv -m or --expand --threads 2 i.gpuir <asked | cmp - one
  find d -type f -exec sh -c 'printf "%s\t%s\n" "$1" "$(cat "$1")"' _ {} \; | LC_ALL=C sort >records.tsv
  gpuir index -q --lang none --no-names --tsv records.tsv -o r.gpuir
  [ "$(gpuir query --tsv -m or --expand r.gpuir wolf | cut -f 3 | paste -sd ' ')" = "$(cut -f 3 hits | paste -sd ' ')" ]
  rm d/w1 d/w2 d/w3
  gpuir query --tsv -m or --expand i.gpuir wolf 2>said | wc -l | grep -qx 3
  grep -q 'the best hits have no text' said
}

@test "passages mark words that are found by folding and in place of typing errors, and say what a name alone found" {
  printf 'The café has an orchestra.\nThe registration of a blueprint.\n' >d/a
  mkdir d/wolfden
  echo "nothing here" >d/wolfden/x
  gpuir index -q --lang en -o i.gpuir d
  gpuir query --passages --json i.gpuir cafe | grep -qF '"marks":[[4,5]]'
  gpuir query --passages --json i.gpuir registraton 2>said | grep -qF '"marks":[[32,12]]'
  gpuir query --passages --json i.gpuir orchestras | grep -qF '"marks":[[17,9]]'
  gpuir query --passages --json i.gpuir wolfden | grep -qF '"missing":"found by its name","passages":[]'
}
