#!/usr/bin/env bats
# Fields: members of JSON that stay with documents, searches by them, and what becomes of them in live indexes.

bats_require_minimum_version 1.5.0

setup() {
  build=${GPUIR_BUILD:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)/build}
  gpuir=$build/gpuir
  cd "$BATS_TEST_TMPDIR" || exit
  cat >a.jsonl <<'JSON'
{"id":"1","text":"green tea","meta":{"author":["Smith, John","Jones"]},"price":12.5,"day":"2024-01-31","draft":true}
{"id":"2","text":"black tea","meta":{"author":"Jones"},"price":-3,"day":"2024-02-01T10:00:00+02:00","at":"src/a/x"}
{"id":"3","text":"green coffee","meta":{"author":"Doe"},"price":"7.25","day":1700000000,"at":"src-b"}
{"id":"4","text":"tea and coffee","meta":{"author":null},"price":1.005,"day":"soon","at":["src","lib/\u00e4"]}
JSON
  fields=(--field author=key@meta.author --field price=number:2 --field day=date --field at=path --field draft=key)
}

# names WHERE WORD...: the names of the hits, in order
names() {
  local where=$1
  shift
  "$gpuir" query --tsv -w "$where" ix "$@" | cut -f 4 | sort | tr '\n' ' ' || true
}

@test "a where chooses among the hits, or among all documents" {
  "$gpuir" index --jsonl "${fields[@]}" a.jsonl -q -o ix
  [ "$(names 'author=Jones' tea)" = '1 2 ' ]
  [ "$(names 'author="Smith, John",Doe')" = '1 3 ' ]
  [ "$(names '-author=..')" = '4 ' ]
  [ "$(names 'price=7.25..12.5')" = '1 3 ' ]
  [ "$(names 'price=..0 | author=Doe')" = '2 3 ' ]
  [ "$(names 'day=2024-01..2024-02')" = '1 2 ' ]
  [ "$(names 'day=..2023')" = '3 ' ]
  [ "$(names 'at=src')" = '2 4 ' ]
  [ "$(names 'at=lib/ä')" = '4 ' ]
  [ "$(names 'draft=true')" = '1 ' ]
  [ "$(names 'author=jones')" = '' ]
  [ "$("$gpuir" count -w author=Jones ix tea)" = 2 ]
  [ "$("$gpuir" count -w author=.. ix)" = 3 ]
}

@test "scores are those without a where" {
  "$gpuir" index --jsonl "${fields[@]}" a.jsonl -q -o ix
  "$gpuir" query --tsv ix green | cut -f 3,4 | sort >all
  "$gpuir" query --tsv -w author=Doe ix green | cut -f 3,4 >some
  [ "$(wc -l <some)" -eq 1 ]
  grep -qxF "$(cat some)" all
}

@test "values come back with --json" {
  "$gpuir" index --jsonl "${fields[@]}" a.jsonl -q -o ix
  run -0 "$gpuir" query --json -w author=Jones ix green
  [[ $output == *'"values":{"author":["Smith, John","Jones"],"price":12.50,"day":"2024-01-31T00:00:00Z","draft":["true"]}}'* ]]
  run -0 "$gpuir" query --json -w price=..0 ix
  [[ $output == *'"score":0.0000000'* ]]
  [[ $output == *'"values":{"author":["Jones"],"price":-3.00,"day":"2024-02-01T08:00:00Z","at":["src/a/x"]}}'* ]]
  "$gpuir" index --jsonl a.jsonl -q -o plain
  run -0 "$gpuir" query --json plain green
  [[ $output != *values* ]]
}

@test "what does not fit its field is left out and counted" {
  run -0 "$gpuir" index --jsonl "${fields[@]}" a.jsonl -q -o ix
  [[ $output == *'2 values were left out: not what the field holds'* ]]
  run -0 "$gpuir" index --jsonl "${fields[@]}" a.jsonl -q -o ix --json
  [[ $output == *'"misfits":2'* ]]
  run -0 "$gpuir" query --json -w 'at=lib' ix
  [[ $output == *'"values":{"at":["src","lib/ä"]}}'* ]]
}

@test "--show: values behind the name, as a where takes them" {
  "$gpuir" index --jsonl "${fields[@]}" a.jsonl -q -o ix
  "$gpuir" query --tsv -k 9 -w 'price=.. | -price=..' --show author,price,day,at ix | cut -f 4- >shown
  diff - shown <<'TSV'
1	"Smith, John",Jones	12.50	2024-01-31T00:00:00Z	
2	Jones	-3.00	2024-02-01T08:00:00Z	src/a/x
3	Doe	7.25	2023-11-14T22:13:20Z	src-b
4				src,lib/ä
TSV
  [ "$(names "author=$(head -n 1 shown | cut -f 2)")" = '1 2 ' ]
  run -0 "$gpuir" query --show author ix coffee
  [[ $output == *$'  3\tDoe'* ]]
  run -0 "$gpuir" query --json --show price,draft -w author=Jones ix green
  [[ $output == *'"values":{"price":12.50,"draft":["true"]}}'* ]]
  run "$gpuir" query --show color ix tea
  [ "$status" -eq 1 ]
  [[ $output == *"there is no field 'color'"* ]]
  run "$gpuir" query --show at,at ix tea
  [ "$status" -eq 1 ]
  run "$gpuir" query --show at --trec ix tea
  [ "$status" -eq 2 ]
  run "$gpuir" query --show at --grep ix tea
  [ "$status" -eq 2 ]
}

# five: an index ix, static or live, of five records whose author and day differ
five() {
  cat >b.jsonl <<'JSON'
{"id":"1","text":"green tea tea tea","author":"Smith, John","day":"2024-01-31"}
{"id":"2","text":"black tea the leaf","author":"Jones","day":"2024-03-01","price":3}
{"id":"3","text":"green coffee and one tea","author":"Jones","day":"2023-05-05","price":-1.5}
{"id":"4","text":"tea and coffee and green milk, a drink of no author"}
{"id":"5","text":"water","author":"Jones","day":"2024-03-31"}
JSON
  local by=(--analyzer basic --store --jsonl --field author=key --field day=date --field price=number:1)
  if [ "$1" = live ]; then
    "$gpuir" index --live "${by[@]}" -q -o ix
    head -n 2 b.jsonl | "$gpuir" add --jsonl -q -o ix -
    echo '{"id":"6","text":"tea, deleted","author":"Roe","day":"2025"}' | "$gpuir" add --jsonl -q -o ix -
    tail -n 3 b.jsonl | "$gpuir" add --jsonl -q -o ix -
    "$gpuir" delete -q ix 6
  else
    "$gpuir" index "${by[@]}" b.jsonl -q -o ix
  fi
}

# order ARGUMENT...: the names of the hits, as they come
order() { "$gpuir" query --tsv "$@" 2>/dev/null | cut -f 4 | tr '\n' ' ' || true; }

@test "--sort and --collapse, also of a live index" {
  for kind in static live; do
    rm -rf ix
    five "$kind"
    [ "$(order --sort -day ix tea)" = '2 1 3 4 ' ]
    [ "$(order --sort day ix tea)" = '3 1 2 4 ' ]
    [ "$(order --sort day -k 2 ix tea)" = '3 1 ' ]
    [ "$(order --sort -day ix)" = '5 2 1 3 4 ' ] # all documents
    [ "$(order --sort -day -w author=Jones ix)" = '5 2 3 ' ]
    [ "$(order --sort author ix tea)" = '2 3 1 4 ' ]
    [ "$(order --sort price ix tea)" = '3 2 1 4 ' ]
    [ "$(order --collapse author ix tea)" = '1 2 4 ' ]
    [ "$(order --collapse author --sort day ix tea)" = '3 1 4 ' ]
    [ "$(order --collapse author --sort -day -w day=..2024-03-15 ix tea)" = '2 1 ' ]
    # two have all words: with few of them any word will do, and the order holds for all hits
    [ "$(order --sort -day ix green coffee)" = '1 3 4 ' ]
    [ "$(order --sort -day -k 2 ix green coffee)" = '3 4 ' ]
    [ "$(order --sort -day -m and ix green coffee)" = '3 4 ' ]
    [ "$(order --collapse author -k 1 ix green coffee)" = '3 ' ]
    # words that say little are left out where any word will do, and do not bring their documents in
    [ "$(order --sort day -m or --stop-query en ix the green water)" = '3 1 5 4 ' ]
    [ "$(order --sort day -m or --stop-query none ix the green water)" = '3 1 2 5 4 ' ]
    # scores are those of the search
    diff <("$gpuir" query --tsv --sort day ix tea | cut -f 3,4 | sort) <("$gpuir" query --tsv ix tea | cut -f 3,4 | sort)
    # many queries, alone and together
    printf '1: tea\n2: water\n3: tea\n' >topics
    for threads in 1 2; do
      [ "$("$gpuir" query --tsv --sort -day --threads "$threads" --topics topics ix | cut -f 1,5 | tr -d '\t\n')" = \
        121113142532313334 ]
    done
  done
}

@test "--sort with passages, expansion, values and a second look" {
  five static
  [ "$("$gpuir" query --grep --sort day ix tea | cut -d : -f 2 | tr -d '\n')" = 3124 ]
  [ "$("$gpuir" query --passages --sort day --collapse author ix tea | grep -o ':[0-9]-' | tr -d ':\n')" = 3-1-4- ]
  # the words come from the best hits, whatever the order is
  for i in {10..20}; do
    printf '{"id":"%s","text":"green green zebra","day":"20%s","author":"a"}\n' "$i" "$i"
    printf '{"id":"o%s","text":"green yak of a herd with %s","day":"19%s","author":"b"}\n' "$i" "$i" "$i"
  done >many.jsonl
  for i in {1..200}; do echo "{\"id\":\"w$i\",\"text\":\"water\"}"; done >>many.jsonl
  "$gpuir" index --analyzer basic --store --jsonl --field author=key --field day=date many.jsonl -q -o many
  for more in --tsv '--sort day' '--sort day --collapse author' '--collapse author'; do
    # shellcheck disable=SC2086 # words
    run -0 "$gpuir" query -v --expand -m or $more many green
    [[ $output == *'expanded by:'*zebra* && $output != *'expanded by:'*yak* ]]
  done
  [ "$(order --expand --sort day -k 2 many green)" = 'o10 o11 ' ]
  run -0 "$gpuir" query --json --sort -day --show day ix tea
  [[ $output == *'"name":"2","values":{"day":"2024-03-01T00:00:00Z"}'*'"name":"1"'* ]]
  run -2 "$gpuir" query --trec --sort day ix tea
  [[ $output == *"order of a run is that of its scores"* ]]
  run -2 "$gpuir" query --rank code --sort day ix tea
  run -2 "$gpuir" query --scores --sort day ix tea
  run -1 "$gpuir" query --sort color ix tea
  [[ $output == *"sort: there is no field 'color'; there are author, day, price"* ]]
  run -1 "$gpuir" query --collapse -day ix tea
  [[ $output == *"collapse: there is no field '-day'"* ]]
}

@test "the second look leaves sorted hits alone, and looks at collapsed ones" {
  mkdir code
  for i in 1 2 3 4 5 6; do
    printf '/* a tree */\nint tree_%s(void) { return %s; }\nint leaf;\n' "$i" "$i" >"code/f$i.c"
    touch -d "2024-01-0${i}T00:00:00Z" "code/f$i.c"
  done
  printf 'int tree(void) { return 0; }\n/* tree tree tree */\n' >code/tree.c
  touch -d 2024-01-09T00:00:00Z code/tree.c
  "$gpuir" index code -q -o ix
  [ "$(order --sort mtime ix tree)" = 'code/f1.c code/f2.c code/f3.c code/f4.c code/f5.c code/f6.c code/tree.c ' ]
  [ "$(order ix tree | cut -d ' ' -f 1)" = code/tree.c ]
  [ "$(order --collapse dir ix tree)" = 'code/tree.c ' ]
  [ "$(order --collapse mtime ix tree | wc -w)" -eq 7 ]
}

@test "facets: values, folders, ranges and months, also of a live index" {
  for kind in static live; do
    rm -rf ix
    five "$kind"
    [ "$("$gpuir" facets -f author ix | tr -s ' ' | tr '\n' ';')" = ' 3 Jones; 1 Smith, John;' ]
    [ "$("$gpuir" facets -f author:1 ix tea | tr -s ' ')" = ' 2 Jones' ]
    [ "$("$gpuir" facets --tsv -f day:month -f author:1 -w day=2024.. ix | tr '\t\n' ' ;')" = \
      'day:month 1 2024-01;day:month 2 2024-03;author:1 2 Jones;' ]
    [ "$("$gpuir" facets --tsv -f price:0,2.5,9 ix | tr '\t\n' ' ;')" = \
      'price:0,2.5,9 1 ..-0.1;price:0,2.5,9 0 0.0..2.4;price:0,2.5,9 1 2.5..8.9;price:0,2.5,9 0 9.0..;' ]
    [ "$("$gpuir" facets --json -f author -m or ix green water)" = \
      '{"query":"green water","mode":"or","facets":[{"column":"author","values":[{"value":"Jones","count":2},{"value":"Smith, John","count":1}]}],"count":4}' ]
    [ "$("$gpuir" facets --json -f day:day ix nothing)" = \
      '{"query":"nothing","mode":"and","facets":[{"column":"day:day","values":[]}],"count":0}' ]
  done
  [ "$("$gpuir" facets -f author -f day:year ix | head -n 1)" = '# author' ]
  run -2 "$gpuir" facets ix
  [[ $output == *'--facet COLUMN is missing'* ]]
  run -2 "$gpuir" facets -f author
  run -2 "$gpuir" facets -f author --json --tsv ix
  run -1 "$gpuir" facets -f color ix
  [[ $output == *"facets: there is no field 'color'"* ]]
  run -1 "$gpuir" facets -f author:x ix
  [[ $output == *'how many values'* ]]
  run -1 "$gpuir" facets -f author -w 'author=a|b' ix
  run -1 "$gpuir" facets -f author nowhere
}

@test "explain says which predicate a document fails" {
  "$gpuir" index --jsonl "${fields[@]}" a.jsonl -q -o ix
  run -0 "$gpuir" explain -w 'author=.. price=..0' ix 0 tea
  [[ $output == *'where          fails price=..0'* ]]
  [[ $output == *'the document does not match'* ]]
  run -0 "$gpuir" explain -w 'author=.. price=..0' ix 1 tea
  [[ $output != *fails* ]]
  run -0 "$gpuir" explain --json -w '-at=src' ix 1
  [[ $output == *'"failed":"-at=src"'* ]]
  run "$gpuir" explain -w 'color=x' ix 1 tea
  [ "$status" -eq 1 ]
  run "$gpuir" explain ix 1
  [ "$status" -eq 2 ]
}

@test "serve takes a where behind the words" {
  "$gpuir" index --jsonl "${fields[@]}" a.jsonl -q -o ix
  printf '%s\n' $'COUNT\ttea' $'COUNT\ttea\tauthor=Jones' $'COUNT\t\tauthor=Jones' $'TOP_10_COUNT\t+tea +green\tprice=0..' \
    $'COUNT\t-green\tauthor=..' $'COUNT\t\t' $'COUNT\ttea\tcolor=x' $'COUNT\ttea\tauthor=Jones | at=lib' $'COUNT\ta:b\tat=lib' \
    $'COUNT\t-green' >asked
  "$gpuir" serve --stdio ix <asked >answered
  [ "$(tr '\n' ' ' <answered)" = '3 2 2 1 1 4 UNSUPPORTED 3 UNSUPPORTED UNSUPPORTED ' ]
}

@test "export says that the formats of others carry no fields" {
  "$gpuir" index --jsonl "${fields[@]}" a.jsonl -q -o ix
  run -0 "$gpuir" export ix ix.ciff
  [[ $output == *"ix.ciff: without the values of fields, which the format has no place for: author, price, day, at, draft"* ]]
  "$gpuir" index --jsonl a.jsonl -q -o plain
  run -0 "$gpuir" export plain plain.ciff
  [[ $output != *'values of fields'* ]]
}

@test "an index without fields takes no where" {
  "$gpuir" index --jsonl a.jsonl -q -o plain
  run "$gpuir" query -w price=1 plain tea
  [ "$status" -ne 0 ]
  [[ $output == *'the index has no fields'* ]]
}

@test "a live index keeps fields: add, replace, update, merge" {
  "$gpuir" index --live --jsonl "${fields[@]}" -q -o ix
  "$gpuir" add --jsonl -q -o ix a.jsonl
  [ "$(names 'author=Jones' tea)" = '1 2 ' ]
  echo '{"id":"2","text":"black tea","meta":{"author":"Roe"}}' >c.jsonl
  "$gpuir" add --jsonl --replace -q -o ix c.jsonl
  [ "$(names 'author=Jones' tea)" = '1 ' ]
  [ "$(names 'author=Roe' tea)" = '2 ' ]
  [ "$(names 'price=..0')" = '' ]
  "$gpuir" merge --all -q ix
  "$gpuir" verify ix
  [ "$(names 'author=Roe' tea)" = '2 ' ]
}

@test "reorder keeps values" {
  "$gpuir" index --jsonl "${fields[@]}" a.jsonl -q -o one
  "$gpuir" reorder -q --order random one ix
  "$gpuir" verify ix
  [ "$(names 'author=Jones' tea)" = '1 2 ' ]
  [ "$(names 'at=src')" = '2 4 ' ]
}

@test "a where that cannot be understood says so, and where" {
  "$gpuir" index --jsonl "${fields[@]}" a.jsonl -q -o ix
  run "$gpuir" query -w 'autor=x' ix tea
  [ "$status" -ne 0 ]
  [[ $output == *"no field 'autor'; there are author, price, day, at, draft"* ]]
  run "$gpuir" count -w 'author=a|b' ix tea
  [ "$status" -ne 0 ]
  [[ $output == *'write name=a,b'* ]]
}

@test "misuse of --field" {
  for bad in author x=key author=keys 'author=key@' and=key author=number:10; do
    run "$gpuir" index --jsonl --field "$bad" a.jsonl -o ix
    [ "$status" -eq 2 ]
  done
  run "$gpuir" index --lines --field author=key a.jsonl -o ix
  [ "$status" -eq 2 ]
  [[ $output == *'lines have none'* ]]
  run "$gpuir" index --jsonl --field author=key --field author=path a.jsonl -o ix
  [ "$status" -eq 2 ]
  [[ $output == *'was declared before'* ]]
}

@test "--fields: what files have, in update, too" {
  mkdir -p notes/src/a notes/src-b
  echo 'green tea' >notes/src/a/x.c
  echo 'green coffee' >notes/src/y.h
  echo 'green milk' >notes/src-b/z.tar.gz.txt
  echo 'green water' >notes/.hidden
  echo 'green juice' >notes/Makefile
  touch -d 2024-01-15T12:00:00Z notes/src/a/x.c
  touch -d 2023-06-15T12:00:00Z notes/src/y.h notes/src-b/* notes/Makefile
  "$gpuir" index --live --fields ext,dir,size,mtime notes -q -o ix
  [ "$(names ext=c,h green)" = 'notes/src/a/x.c notes/src/y.h ' ]
  [ "$(names ext=txt green)" = 'notes/src-b/z.tar.gz.txt ' ]
  [ "$(names -ext=.. green)" = 'notes/Makefile ' ]
  [ "$(names dir=notes/src green)" = 'notes/src/a/x.c notes/src/y.h ' ]
  [ "$(names dir=notes/src/a green)" = 'notes/src/a/x.c ' ]
  [ "$(names size=..11 green)" = 'notes/src-b/z.tar.gz.txt notes/src/a/x.c ' ]
  [ "$(names mtime=2024-01 green)" = 'notes/src/a/x.c ' ]
  run -0 "$gpuir" update -o ix notes
  [[ $output == *'0 changed,'*'4 unchanged files'* ]]
  touch -d 2022-06-15T12:00:00Z notes/src/y.h
  run -0 "$gpuir" update -o ix notes
  [[ $output == *'1 changed (1 in its time alone),'*'3 unchanged files'* ]]
  [ "$(names mtime=2022 green)" = 'notes/src/y.h ' ]
  [ "$(names mtime=2023 green | wc -w)" -eq 2 ]
  "$gpuir" verify ix
}

@test "--fields: the same files with the same times give the same bytes; without mtime a touched file stays" {
  mkdir notes
  echo 'green tea' >notes/x.c
  "$gpuir" index --fields ext,dir,size,mtime notes -q -o one
  "$gpuir" index --fields ext,dir,size,mtime --threads 1 notes -q -o two
  cmp one two
  "$gpuir" index --fields none notes -q -o three
  "$gpuir" index notes -q -o four
  cmp one four
  [ "$("$gpuir" query -w size=..100 --json four | grep -c '"values":{"ext":\["c"\],"dir":\["notes"\],"size":10,"mtime":')" -eq 1 ]
  run "$gpuir" query -w size=1 three
  [[ $output == *'the index has no fields'* ]]
  "$gpuir" index -q -o five - <notes/x.c
  run "$gpuir" query -w size=1 five
  [[ $output == *'the index has no fields'* ]]
  "$gpuir" index --live --fields ext notes -q -o ix
  touch -d 2022-06-15T12:00:00Z notes/x.c
  run -0 "$gpuir" update -o ix notes
  [[ $output == *'0 changed,'*'1 unchanged file;'* ]]
  run "$gpuir" index --fields ext,color notes -o no
  [ "$status" -eq 2 ]
  [[ $output == *"'color' is none of ext, dir, size and mtime"* ]]
}

# mails: an mbox of three messages whose headers are hard to read, and a page with front matter
mails() {
  mkdir -p mails
  cat >mails/box <<'MBOX'
From ann@example.org Fri Nov 21 09:55:06 1997
From: "Lee, Ann" <ann@example.org>
To: bob@example.org, Team: "c, d" <cy@example.org>, (a comment, here) di@example.org;
Subject: =?utf-8?q?Caf=C3=A9_at?= =?utf-8?q?_noon?=
Date: Fri, 21 Nov 1997 23:30:00 -0600
List-Id: Tea <tea.example.org>

green tea

From bob@example.org Sat Nov 22 09:55:06 1997
From: bob@example.org (Bob)
to: "Lee, Ann"
 <ann@example.org>
Subject: re: a
 folded subject
Date: 22 Nov 97 10:00 GMT

green coffee

From x Sat Nov 22 09:55:06 1997
From: nobody
Subject:
Date: soon

green nothing
MBOX
  { printf -- '---\ntitle: "Tea: a guide" # not this\ntags: [green, '"'black, strong'"', ~]\nauthors:\n'
    printf -- '  - Ann\n  # none\n  - "Bob \\"B\\""\ndate: 2024-01-31\nlong: |\n  text\nmeta:\n  title: no\nempty:\n---\ngreen page\n'
    seq -f 'line %g' 1 300; } >mails/page.md
  printf '+++\ntitle = "Toml"\ntags = ["green", "x"]\ndate = 2023-05-01T10:00:00Z\n[extra]\nauthors = "no"\n+++\ngreen toml\n' >mails/toml.md
  printf -- '---\ntitle: never closed\ngreen open\n' >mails/open.md
}

@test "mails by sender, receiver and date; pages by their front matter" {
  mails
  "$gpuir" index -q --field from=key --field to=key --field subject=key --field date=date --field list=key@List-Id \
    --field title=key --field tags=key --field authors=key --field long=key mails -o ix 2>said || true
  shown() { "$gpuir" query --tsv -k 99 -w "$1" --show "$2" ix green | cut -f 5- | sort; }
  [ "$(shown from=ann@example.org to,subject,date,list)" = \
    $'bob@example.org,cy@example.org,di@example.org\t"Café at noon"\t1997-11-22T05:30:00Z\t"Tea <tea.example.org>"' ]
  [ "$(shown from=bob@example.org to,subject,date)" = $'ann@example.org\t"re: a folded subject"\t1997-11-22T10:00:00Z' ]
  [ "$(shown from=nobody subject,date)" = $'\t' ]
  [ "$(shown date=1997-11 from | wc -l)" -eq 2 ]
  [ "$(shown to=cy@example.org from)" = ann@example.org ]
  [ "$(shown title=.. title,tags,authors,date,long)" = \
    $'"Tea: a guide"\tgreen,"black, strong"\tAnn,"Bob ""B"""\t2024-01-31T00:00:00Z\t\nToml\tgreen,x\t\t2023-05-01T10:00:00Z\t' ]
  [ "$("$gpuir" count -w tags=green ix)" -gt 6 ] # every chunk of the page
  [ "$("$gpuir" count -w ext=md ix)" -gt 6 ]
  grep -q '1 value was left out' said || "$gpuir" index --field date=date mails -o iy 2>&1 | grep '1 value was left out'
}

@test "headers of mail and front matter are what Python reads, and no mutation of them does harm" {
  command -v python3 >/dev/null || skip "no python3"
  run -0 python3 "$BATS_TEST_DIRNAME/heads_oracle.py" "$gpuir" docs "${GPUIR_LONG:+3}500" "$((RANDOM))"
  [[ $output == *' 0 wrong' ]]
}
# tables: a.csv and a.tsv, of rows as spreadsheets write them
tables() {
  printf '%s\r\n' 'id,author,title,body,price,extra' '1,"Smith, John",green,"tea' 'with ""milk""",12.5,x' \
    '2,Jones,,coffee,,y' '' '3,,"T, x",plain text,soon,z' >a.csv
  printf 'name\tabstract\tn\nx"y\ttea leaves\t3\n\tcoffee\t\n' >a.tsv
}

@test "--csv and --tsv-head: rows whose fields the head names" {
  tables
  run -0 "$gpuir" index --csv --field author=key --field price=number:1 a.csv -o ix
  [[ $output == *'id from id; title from title; text from body; other members are not kept: extra; fields author, price'* ]]
  [[ $output == *'1 value was left out'* ]]
  [ "$("$gpuir" query --tsv -w 'author=.. | -author=..' --show author,price ix | cut -f 4- | tr '\t\n' ' ;')" = \
    '1 "Smith, John" 12.5;2 Jones ;3  ;' ]
  [ "$(order -m or ix milk)" = '1 ' ]
  [ "$(order -m or ix x)" = '3 ' ] # of the title, and not of the field `extra`
  run -0 "$gpuir" query --grep -m or ix milk coffee x
  [ "$(sort <<<"$output")" = $'a.csv:3:with "milk"\na.csv:4:coffee\na.csv:6:T, x' ]
  "$gpuir" index --tsv-head --text abstract --field who=key@name --field num=number@n a.tsv -q -o ix
  [ "$("$gpuir" query --tsv -w 'num=.. | -num=..' --show who,num ix | cut -f 4- | tr '\t\n' ' ;')" = 'a.tsv:2 "x""y" 3;a.tsv:3  ;' ]
  [ "$("$gpuir" query --grep ix tea)" = 'a.tsv:2:tea leaves' ]
  [ "$(gzip <a.csv | "$gpuir" index --csv -q - -o ix; order -m or ix coffee)" = '2 ' ]
  # a live index is told once
  "$gpuir" index --live --csv --field author=key a.csv -q -o live
  printf 'id,body,author\r\n2,"cocoa",Doe\r\n' >b.csv
  "$gpuir" add --csv --replace -q -o live b.csv
  [ "$(order -w author=Doe live)" = '2 ' ]
  "$gpuir" update -q a.csv -o live
  "$gpuir" merge --all -q live
  "$gpuir" verify live
}

@test "--csv: every row as Python reads it, and its text as it was indexed" {
  command -v python3 >/dev/null || skip "no python3"
  python3 - <<'PYTHON'
import csv, random
draw = random.Random(3)
parts = ['tea', 'x', ' ', '"', '""', ',', '\n', '\r\n', '\t', "'", 'é', '|', '..', '\r', '']
with open('r.csv', 'w', newline='', encoding='utf8') as file:
    write = csv.writer(file)
    write.writerow(['skip', 'text', 'a,b', 'title', 'id', 'v"w'])
    for i in range(400):
        text = ''.join(draw.choice(parts) for _ in range(draw.randint(0, 8)))
        write.writerow([draw.choice(parts), 'word ' + text, draw.choice(parts), draw.choice(['', 'head, "of it"', text]), i,
                        draw.choice(['', 'k' + text + 'k'])])
PYTHON
  "$gpuir" index --csv --store --field kv=key@'v"w' r.csv -q -o stored
  "$gpuir" index --csv --field kv=key@'v"w' r.csv -q -o ix
  for index in stored ix; do
    "$gpuir" query --json -k 1000 --tokens 0 --context 1000 --threads 1 -m or "$index" word >"$index.json"
  done
  python3 - <<'PYTHON'
import csv, json
rows = {row[4]: row for row in csv.reader(open('r.csv', newline='', encoding='utf8'))}
for name in 'stored', 'ix':
    hits = json.load(open(name + '.json'))['hits']
    assert len(hits) == 400, len(hits)
    for hit in hits:
        row = rows[hit['name']]
        got = hit['values'].get('kv', [''])[0]
        assert got == row[5], (hit['name'], got, row[5])
        text = ''.join(passage['text'] for passage in hit['passages'])
        want = row[1] + ('\n' + row[3] if row[3] else '')
        assert text.split() == want.split(), (name, hit['name'], text, want)
PYTHON
}

@test "--csv: what is no table says so, and where" {
  printf 'id,a,text\n1,x,y\n3,"q"r,c\n4,d"e,f\n5,g\n6,h,i,j\n,k,l\n7,ok,"fine"\n8,"open,x\n' >bad.csv
  run "$gpuir" index --csv bad.csv -o bad
  [ "$status" -eq 1 ]
  [[ $output == *'bad.csv:3: something follows the quote that closes a field (byte 6 of the line)'* ]]
  run -0 --separate-stderr "$gpuir" index --csv --skip-errors bad.csv -q -o bad
  diff - <(head -n 6 <<<"$stderr") <<'SAID'
gpuir: bad.csv:3: something follows the quote that closes a field (byte 6 of the line)
gpuir: bad.csv:4: a quote within a field that has none around it (byte 4 of the line)
gpuir: bad.csv:5: fewer fields than the head has
gpuir: bad.csv:6: more fields than the head has
gpuir: bad.csv:7: an empty id
gpuir: bad.csv:9: the quote that opens here is not closed (byte 3 of the line)
SAID
  [ "$(order -m or bad fine y)" = '1 7 ' ] || [ "$(order -m or bad fine y)" = '7 1 ' ]
  for head in id,id,text a,b '"x' 'id,text,"'; do
    printf '%s\n1,2\n' "$head" >h.csv
    run "$gpuir" index --csv h.csv -o h
    [ "$status" -eq 1 ]
    [[ $output == *'h.csv:1: '* ]]
    run "$gpuir" index --csv --skip-errors h.csv -o h
    [ "$status" -eq 1 ]
  done
  run "$gpuir" index --csv --id no h.csv -o h
  [[ $output == *'h.csv:1: '* ]]
  run -2 "$gpuir" index --csv --jsonl h.csv -o h
  run -2 "$gpuir" index --csv --fields ext h.csv -o h
  # fields too far apart: found, and shown where the index has the text
  printf 'id,title,b,c,d,e,f,g,h,text\n1,green,2,3,4,5,6,7,8,tea\n' >far.csv
  "$gpuir" index --csv -q far.csv -o far
  [ "$(order far green tea)" = '1 ' ]
  run "$gpuir" query --grep far tea
  [[ $output == *'far.csv: its text is not in the index'* ]]
  "$gpuir" index --csv --store -q far.csv -o far
  run -0 "$gpuir" query --grep far tea
  [[ $output == *tea* ]]
}

@test "--fields auto: what the first records have, printed as options" {
  cat >m.jsonl <<'JSON'
{"id":"1","title":"of tea","text":"green tea","who":{"name":"Smith"},"Tags":["a","b"],"n":3,"cost":12.50,"day":"2024-01-31","at":"src/a","ok":true,"url":"http://x/y","note":null,"zip":"01234"}
{"id":"2","text":"black tea","who":{"name":"Jones"},"Tags":"c","n":-4,"cost":7,"day":"2024-02-01T10:00:00Z","at":"src/b","ok":false,"url":"http://x/z","sum":"LONG","zip":"x1"}
JSON
  sed -i "s/LONG/$(printf 'long %.0s' {1..80})/" m.jsonl
  run -0 --separate-stderr "$gpuir" index --jsonl --fields auto m.jsonl -q -o ix
  want="gpuir: fields: --field 'who.name=key@who.name' --field 'tags=key@Tags' --field 'f_n=number@n' --field 'cost=number:2@cost'"
  want+=" --field 'day=date@day' --field 'at=path@at' --field 'ok=key@ok' --field 'url=key@url' --field 'zip=key@zip'"
  [ "${stderr_lines[0]}" = "$want" ]
  [ "$(order -w 'cost=..10 tags=c ok=false at=src' ix)" = '2 ' ]
  eval "set -- ${want#*fields: }"
  "$gpuir" index --jsonl "$@" m.jsonl -q -o same
  cmp ix same
  # names that would do something in a terminal, or in a shell
  printf '%s\n' "{\"id\":\"1\",\"text\":\"t\",\"a';touch x;'\":1,\"b\\u001b[2J\":2,\"good one\":3}" >n.jsonl
  run -0 --separate-stderr "$gpuir" index --jsonl --fields auto n.jsonl -q -o no
  [ "${stderr_lines[0]}" = "gpuir: fields: --field 'good_one=number@good one'" ]
  tables
  run -0 --separate-stderr "$gpuir" index --csv --fields auto a.csv -q -o ix
  [ "${stderr_lines[0]}" = "gpuir: fields: --field 'author=key@author' --field 'price=key@price' --field 'extra=key@extra'" ]
  # only the first 1,000 records are looked at
  for i in {1..1000}; do echo "{\"id\":\"$i\",\"text\":\"t\",\"num\":$i}"; done >k.jsonl
  echo '{"id":"x","text":"t","num":"many","later":"z"}' >>k.jsonl
  run -0 --separate-stderr "$gpuir" index --jsonl --fields auto k.jsonl -q -o ix
  [ "$(printf '%s\n' "${stderr_lines[@]}")" = $'gpuir: fields: --field \'num=number@num\'\ngpuir: 1 value was left out: not what the field holds' ]
  run -2 "$gpuir" index --jsonl --fields auto - -o ix <k.jsonl
  [[ $output == *'standard input can be read once'* ]]
  run -2 "$gpuir" index --fields auto m.jsonl -o ix
  [[ $output == *'--fields auto is of records'* ]]
}

@test "dates are what Python makes of them, as values, ranges and months" {
  command -v python3 >/dev/null || skip "no python3"
  cat >dates.py <<'PYTHON'
import json, random, subprocess, sys
from datetime import datetime, timedelta, timezone
draw = random.Random(5)
gpuir, want = sys.argv[1], {}
with open('d.jsonl', 'w') as file:
    for i in range(600):
        zone = draw.choice([None, 0, draw.randrange(-14 * 60, 14 * 60 + 1)])
        at = datetime(draw.randrange(2, 9999), draw.randrange(1, 13), draw.randrange(1, 29), draw.randrange(24), draw.randrange(60), draw.randrange(60))
        form = draw.choice(['%Y', '%Y-%m', '%Y-%m-%d', '%Y-%m-%dT%H:%M', '%Y-%m-%d %H:%M:%S', '%Y-%m-%dT%H:%M:%S'])
        form = form.replace('%Y', f'{at.year:04}')
        text = at.strftime(form)
        kept = datetime.strptime(text, form.replace(f'{at.year:04}', '%Y', 1))
        if zone is not None and '%M' in form:
            text += 'Z' if zone == 0 else '%s%02d:%02d' % ('-' if zone < 0 else '+', abs(zone) // 60, abs(zone) % 60)
            kept -= timedelta(minutes=zone)
        want[str(i)] = kept
        print(json.dumps({'id': str(i), 'text': 'tea', 'day': text}), file=file)
ask = lambda *a: subprocess.run([gpuir, *a], check=True, capture_output=True, text=True).stdout
ask('index', '--jsonl', '--field', 'day=date', 'd.jsonl', '-q', '-o', 'ix')
hits = json.loads(ask('query', '--json', '-k', '600', 'ix', 'tea'))['hits']
iso = lambda at: f'{at.year:04}' + at.strftime('-%m-%dT%H:%M:%SZ')
assert len(hits) == 600 and all(h['values']['day'] == iso(want[h['name']]) for h in hits)
order = [h['name'] for h in json.loads(ask('query', '--json', '--sort', 'day', '-k', '600', 'ix', 'tea'))['hits']]
assert order == sorted(want, key=lambda name: (want[name], int(name)))
for unit, n in ('year', 4), ('month', 7), ('day', 10):
    counts = {}
    for at in want.values(): counts[iso(at)[:n]] = counts.get(iso(at)[:n], 0) + 1
    got = {f['value']: f['count'] for f in json.loads(ask('facets', '--json', '-f', 'day:' + unit, 'ix'))['facets'][0]['values']}
    assert got == counts, unit
for _ in range(40):
    low, high = sorted(iso(draw.choice(list(want.values())))[:draw.choice([4, 7, 10, 16, 19])] for _ in range(2))
    inside = sum(1 for at in want.values() if iso(at)[:len(low)] >= low and iso(at)[:len(high)] <= high)
    assert int(ask('count', '-w', f'day={low}..{high}', 'ix')) == inside, (low, high)
PYTHON
  python3 dates.py "$gpuir"
}
