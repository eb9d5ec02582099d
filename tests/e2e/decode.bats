#!/usr/bin/env bats
# How files become documents, and how the texts of documents are made again: records, encodings, what passages show.

# shellcheck disable=SC2154 # build and here are set there
load ../support/texts

needs_unicode() {
  gpuir --version | grep -q unicode || skip "built without the unicode analyzer"
}

@test "an oracle of passages: all that was indexed is shown, where it stands, by the command" {
  needs_unicode
  hits=50
  [ -z "${GPUIR_LONG:-}" ] || hits=2000
  python3 "$here/passage_oracle.py" "$PWD" "$hits"
  for kind in jsonl trec tsv chunks files; do
    for store in 0 1; do python3 "$here/passage_oracle.py" "$PWD" "$hits" $kind$store; done
  done
}

@test "an oracle of passages: the mount shows what the command shows" {
  needs_unicode
  needs_fuse
  hits=10
  [ -z "${GPUIR_LONG:-}" ] || hits=2000
  python3 "$here/passage_oracle.py" "$PWD" "$hits"
  mkdir m
  for kind in jsonl trec tsv chunks files; do
    for store in 0 1; do
      "$build/gpuirfs" "$PWD/$kind$store.gpuir" m
      python3 "$here/passage_oracle.py" "$PWD" "$hits" $kind$store || code=1
      fusermount3 -u m
      [ -z "${code:-}" ]
    done
  done
}

@test "JSON is read as Python reads it: damaged lines, arrays, objects over several lines" {
  [ -x "$build/tests/e2e/json_read" ] || skip "json_read was not built"
  count=3000
  [ -z "${GPUIR_LONG:-}" ] || count=100000
  python3 "$here/json_oracle.py" "$build/tests/e2e/json_read" "$PWD/scratch" "$count"
}

@test "bytes that begin no character are looked at once, however many follow one another" {
  head -c 4000000 /dev/zero | tr '\0' '\251' >high
  ulimit -t 20 # the square of their number took hours
  gpuir index -q high -o i.gpuir
}

@test "records of one line, however many, take as long as those of many lines" {
  python3 - <<'P'
def write(name, text):
    with open(name, 'w') as out:
        out.write(text)
n = 200000
write('array.json', '[' + ','.join('{"id":"k%d","contents":"tea %d"}' % (i, i % 7) for i in range(n)) + ']')
write('wide.json', '\ufeff[' + ','.join('{"id":"k%d","contents":"tea"}' % i for i in range(n)) + ']')
write('docs.trec', ''.join('<DOC><DOCNO>%d</DOCNO>tea</DOC>' % i for i in range(n)))
write('open.trec', '<doc>' * n)
write('tags.trec', '<doc ' * n)
P
  iconv -f UTF-8 -t UTF-16LE wide.json >wide16.json
  ulimit -t 20 # the square of their length took minutes
  for file in array.json wide16.json; do
    gpuir index -q --jsonl $file -o $file.gpuir
    [ "$(gpuir stats --json $file.gpuir | grep -o '"documents": *[0-9]*' | head -n 1 | tr -dc 0-9)" -eq 200000 ]
  done
  gpuir index -q --trec docs.trec -o docs.gpuir
  [ "$(gpuir count docs.gpuir tea)" -eq 200000 ]
  for file in open tags; do
    run gpuir index -q --skip-errors --trec $file.trec -o none.gpuir
    [ "$status" -ne 137 ] && [ "$status" -ne 152 ]
  done
  # each record is found where it stands
  cmp <(gpuir query --passages -k 1 --json wide16.json.gpuir tea | grep -o '"text":"[^"]*"') <(echo '"text":"tea"')
  gpuir verify array.json.gpuir
}

@test "a member whose name has a NUL is compared with others as it is" {
  python3 -c 'print("{\"id\":\"1\",\"contents\":\"tea\",\"a\":1,\"a\\u0000" + "b" * 30000000 + "\":2}")' >d.jsonl
  gpuir index -q --jsonl d.jsonl -o j.gpuir
  [ "$(gpuir count j.gpuir tea)" -eq 1 ]
}

@test "passages of records show their text, and the mount has it as files" {
  needs_unicode
  needs_fuse
  printf '%s\n' '{"id":"a","contents":"first line\nwolf howls"}' '{"id":"b","contents":"caf\u00e9 au lait"}' >d.jsonl
  printf '<DOC>\n<DOCNO>A1</DOCNO>\n<TEXT>\nfirst\ncaf&eacute; wolf\n</TEXT>\n</DOC>\n' >d.trec
  gpuir index -q --jsonl d.jsonl -o j.gpuir
  gpuir index -q --trec d.trec -o t.gpuir
  gpuir index -q --trec --store d.trec -o ts.gpuir
  prints $'d.jsonl:2-2\ncafé au lait' gpuir query --passages j.gpuir café
  prints 'd.jsonl:1:wolf howls' gpuir query --grep j.gpuir wolf
  prints 'd.trec:5:café wolf' gpuir query --grep t.gpuir café
  prints 'd.trec:5:café wolf' gpuir query --grep ts.gpuir café
  mkdir m
  "$build/gpuirfs" "$PWD/j.gpuir" m
  files=$(cat m/files/café/*) doc=$(cat m/doc/1)
  fusermount3 -u m
  [ "$files" = 'café au lait' ]
  [ "$doc" = 'café au lait' ]
  # a live index has it after merges, and by update
  gpuir index -q --live --jsonl d.jsonl -o live
  printf '%s\n' '{"id":"c","contents":"\u0432\u043e\u043b\u043a"}' >>d.jsonl
  gpuir update -q d.jsonl -o live
  gpuir merge -q -o live 2>/dev/null || gpuir merge live
  prints $'d.jsonl:3-3\nволк' gpuir query --passages live волк
  # in another order, too
  gpuir index -q --jsonl d.jsonl -o j.gpuir
  gpuir reorder -q --order name j.gpuir r.gpuir
  prints $'d.jsonl:3-3\nволк' gpuir query --passages r.gpuir волк
}

@test "records of a million letters beyond ASCII, and records that end a file, keep their places" {
  python3 - <<'END'
import json
with open("d.jsonl", "w") as f:
    f.write(json.dumps({"id": "a", "contents": "\u00e9" * 1000 + " needle " + "\u00e9 " * 1000000}) + "\n")
    f.write(json.dumps({"id": "b", "contents": "pin"}))
END
  gpuir index -q --jsonl d.jsonl -o j.gpuir
  gpuir query --grep --tokens 0 j.gpuir needle | grep -q '^d.jsonl:1:.*needle'
  prints 'd.jsonl:2:pin' gpuir query --grep j.gpuir pin
}

@test "--grep prints every line of a passage that has a word, and a long line once" {
  for i in $(seq 12); do echo "wolf line $i"; done >a.txt
  {
    printf 'The wolf begins. '
    printf 'Lorem ipsum dolor sit amet. %.0s' {1..100}
    printf 'The fox ends.\n'
  } >long.txt
  gpuir index -q --analyzer ascii a.txt -o a.gpuir
  gpuir index -q --analyzer ascii long.txt -o l.gpuir
  [ "$(gpuir query --grep a.gpuir wolf | wc -l)" -eq 12 ]
  [ "$(gpuir query --grep a.gpuir wolf | cut -d : -f 2 | paste -sd ' ')" = '1 2 3 4 5 6 7 8 9 10 11 12' ]
  [ "$(gpuir query --grep --tokens 0 l.gpuir wolf fox | wc -l)" -eq 1 ]
  [[ $(gpuir query --grep --tokens 0 l.gpuir wolf fox) == 'long.txt:1:The wolf begins.'*' … '*'The fox ends.' ]]
  [ "$(gpuir query --passages --tokens 0 l.gpuir wolf fox | grep -c '^long.txt:1-1')" -eq 2 ]
  # within budgets as well
  for n in 30 60 100 200 400; do
    [ "$(gpuir query --grep --bytes $n a.gpuir wolf | wc -c)" -le $n ]
    [ "$(gpuir query --grep --bytes $((4 * n)) l.gpuir wolf fox | wc -c)" -le $((4 * n)) ]
  done
}

@test "a file that grew has changed; a part of one whose bytes stand is shown" {
  echo 'wolf one' >a.txt
  gpuir index -q --analyzer ascii a.txt -o f.gpuir
  gpuir index -q --analyzer ascii --lines a.txt -o l.gpuir
  gpuir index -q --analyzer ascii --filter 'txt=cat' a.txt -o c.gpuir
  echo 'more wolf' >>a.txt
  prints 'a.txt (changed since it was indexed)' gpuir query --passages f.gpuir wolf
  prints 'a.txt (changed since it was indexed)' gpuir query --passages --filter 'txt=cat' c.gpuir wolf
  prints $'a.txt:1-1\nwolf one' gpuir query --passages l.gpuir wolf
  [[ $(gpuir query --json --passages f.gpuir wolf) == *'"changed":true,"passages":[]'* ]]
}

@test "a hit without a passage says why" {
  # the place of a record is known, but nobody said how its text was made: as earlier versions wrote it
  cat >old.c <<'END'
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"
#include <string.h>
int main(void) {
  gpuir_builder_desc d;
  gpuir_builder *b;
  gpuir_doc_desc doc;
  memset(&d, 0, sizeof d);
  memset(&doc, 0, sizeof doc);
  d.path = "o.gpuir";
  doc.name = "a"; doc.name_len = 1; doc.source = "d.jsonl"; doc.source_len = 7;
  doc.first_line = doc.last_line = 1; doc.source_bytes = 30;
  if (gpuir_builder_create(&d, &b, NULL) || gpuir_builder_add_text(b, &doc, "one\nwolf", 8, NULL)) return 1;
  return gpuir_builder_write(b, NULL, NULL);
}
END
  ${CC:-cc} -std=gnu99 -I"$root" old.c -o old -lm -pthread
  printf '%s\n' '{"id":"a","contents":"1\nwolf"}' >d.jsonl
  ./old
  prints $'d.jsonl (no word of the query is found in its text as it is read now)' gpuir query --passages o.gpuir wolf
  [[ $(gpuir query --json --passages o.gpuir wolf) == *'"changed":false,"missing":"no word of the query is found'*'"passages":[]'* ]]
}

@test "'*' behind a typographer's mark is no prefix" {
  needs_unicode
  echo dog >a1
  echo dogma >a2
  gpuir index -q a1 a2 -o g.gpuir
  prints 2 gpuir count -m or g.gpuir 'dog*'
  for mark in ')' '!' '”' '…' '—' '。' '€' $'\u00a0' '🐕'; do prints 1 gpuir count -m or g.gpuir "dog$mark*"; done
  prints 0 gpuir count -m or g.gpuir 'dogé*'
}

@test "a word that no document has is told of once, and not for a phrase that is unwanted" {
  echo dog >a1
  echo dogma >a2
  gpuir index -q --analyzer ascii --positions a1 a2 -o p.gpuir
  run --separate-stderr gpuir query p.gpuir 'zzq "zzq dog"'
  # shellcheck disable=SC2154 # stderr is set by run
  [ "$stderr" = "gpuir: no document has 'zzq'" ]
  run --separate-stderr gpuir query p.gpuir 'dog dogma -"zza zzb"'
  [[ $stderr != *zz* ]]
}

@test "elements of TREC: attributes, any case, tags over lines; one without an end takes nothing else with it" {
  cat >a.trec <<'END'
<DOC>
<DOCNO>A-1</DOCNO>
zebra one
</DOC>
<doc id="3" type='story'>
<DOCNO>A-3</DOCNO>
zebra three
</Doc >
<DOC id="A-4"
     type="story">
zebra four
</DOC>
<DOCUMENT>no zebra</DOCUMENT>
END
  gpuir index -q --trec a.trec -o x.gpuir
  prints 3 gpuir count x.gpuir zebra
  prints 0 gpuir count x.gpuir no
  [ "$(gpuir query --tsv x.gpuir four | cut -f 4)" = A-4 ]
  prints 'a.trec:11:zebra four' gpuir query --grep x.gpuir four
  printf '<DOC><DOCNO>1</DOCNO>\none zebra\n<DOC>\n<DOCNO>2</DOCNO>\ntwo zebra\n</DOC>\n<DOC><DOCNO>3</DOCNO> three' >b.trec
  fails 1 'b.trec:1: a <DOC> without </DOC>' gpuir index -q --trec b.trec -o y.gpuir
  run --separate-stderr gpuir index -q --skip-errors --trec b.trec -o y.gpuir
  [ "$status" -eq 0 ]
  [[ $stderr == *'b.trec:1: a <DOC> without </DOC>'*'b.trec:7: a <DOC> without </DOC>'* ]]
  [ "$(gpuir query --tsv y.gpuir zebra | cut -f 4)" = 2 ]
}

@test "UTF-16 and Windows-1252 are read as text, also for passages; a byte order mark is never shown" {
  needs_unicode
  python3 - <<'END'
text = "eins\nzwei caf\u00e9\ndrei \u201eWort\u201c\n"
open("cp.txt", "wb").write(text.encode("cp1252"))
open("u16.txt", "wb").write(text.encode("utf-16"))
open("u16be.txt", "wb").write(b"\xfe\xff" + (text + "\U0001f43a wolf\n").encode("utf-16-be"))
open("mark.txt", "wb").write(b"\xef\xbb\xbf" + text.encode())
open("d.tsv", "wb").write("x\tein caf\u00e9\ny\tzwei Wort\n".encode("cp1252"))
open("d.jsonl", "wb").write('{"id":"a","contents":"ein"}\n{"id":"b","contents":"zwei\u00e9 Wort"}\n'.encode("utf-16"))
open("d.trec", "wb").write("<DOC><DOCNO>1</DOCNO>\nein\nWort \u00e9t\u00e9\n</DOC>\n".encode("cp1252"))
END
  for f in cp u16 u16be mark; do
    gpuir index -q $f.txt -o x.gpuir
    gpuir index -q --lines $f.txt -o l.gpuir
    prints "$f.txt:2:zwei café" gpuir query --grep x.gpuir café
    # shellcheck disable=SC1111 # these quotes are text
    prints "$f.txt:3:drei „Wort“" gpuir query --grep l.gpuir Wort
    prints "$f.txt:1:eins" gpuir query --grep l.gpuir eins
    [ $f = u16be ] || prints "$f.txt:1-3"$'\neins\nzwei café\ndrei „Wort“' gpuir query --passages x.gpuir eins Wort
  done
  gpuir index -q --tsv d.tsv -o t.gpuir
  prints 'd.tsv:2:zwei Wort' gpuir query --grep t.gpuir Wort
  gpuir index -q --jsonl d.jsonl -o j.gpuir
  prints 'd.jsonl:2:zweié Wort' gpuir query --grep j.gpuir Wort
  gpuir index -q --trec d.trec -o t.gpuir
  prints 'd.trec:3:Wort été' gpuir query --grep t.gpuir été
  # a change within shows
  sed -i s/zwei/drei/ cp.txt
  gpuir index -q cp.txt -o x.gpuir
  sed -i s/drei/vier/ cp.txt
  prints 'cp.txt (changed since it was indexed)' gpuir query --passages x.gpuir café
  # bytes that no text has
  printf 'wolf \x01\x02\xff\xfe\n' >bin
  fails 1 'bin: a binary file' gpuir index -q bin -o b.gpuir
}

@test "a byte beyond ASCII is seen wherever it stands in a file" {
  needs_unicode
  mkdir files
  python3 - <<'END'
for before in range(600):
    with open("files/%d" % before, "wb") as f:
        f.write(b" " * before + b"\xe9t\xe9" + b" z" * 200)
END
  gpuir index -q --analyzer unicode files -o x.gpuir
  prints 600 gpuir count x.gpuir été
}

@test "topics of JSON: members of the trade are read, others are refused with their names" {
  printf '7\tzebra\n8\thorse\n' >c.tsv
  gpuir index -q --tsv c.tsv -o x.gpuir
  printf '{"id":"7","title":"zebra"}\n{"topic_id":8,"topic_title":"horse"}\n' >t.jsonl
  [ "$(gpuir query --trec --topics t.jsonl x.gpuir | cut -d ' ' -f 1,3)" = $'7 7\n8 8' ]
  printf '{"number":"7","words":"zebra"}\n' >u.jsonl
  fails 1 "u.jsonl:1: it has 'words'" gpuir query --trec --topics u.jsonl x.gpuir
  run --separate-stderr bash -c 'gpuir query --trec x.gpuir <u.jsonl'
  [ "$status" -eq 1 ]
}

@test "--id, --title and --text name members of JSON, and the index keeps the names" {
  cat >d.json <<'END'
[
  {"key": {"n": 7}, "head": "Wolves", "parts": [{"t": "gray wolf"}, {"t": "red wolf"}], "author": "Ann", "contents": "no"},
  {"key": {"n": "x"}, "parts": {"t": "caf\u00e9"}, "note": "late", "date": "2026"}
]
END
  gpuir index --jsonl --id key.n --title head --text parts.t,note d.json -o x.gpuir 2>err
  grep -q 'members: id from key.n; title from head; text from parts.t, note; other members are not kept: author, contents, date' err
  [ "$(gpuir query --tsv x.gpuir wolves | cut -f 4)" = 7 ]
  prints 0 gpuir count -m or x.gpuir no ann
  prints 'd.json:2:gray wolf red wolf' gpuir query --grep x.gpuir gray
  [ "$(gpuir query --grep -m or x.gpuir café late)" = $'d.json:3:café\nd.json:3:late' ]
  # a live index goes by them
  gpuir index -q --live --jsonl --id key.n --text parts.t d.json -o live
  sed -i 's/red/brown/' d.json
  gpuir update -q d.json -o live
  prints 'd.json:2:gray wolf brown wolf' gpuir query --grep live brown
  echo '{"key":{"n":8},"parts":{"t":"otter"}}' | gpuir add -q --jsonl - -o live
  [ "$(gpuir query --tsv live otter | cut -f 4)" = 8 ]
  # and of an array over several lines each word stands in its own
  printf '{"id":"a","contents":[\n"one wolf",\n"two foxes",\n"a wolf"]}' >p.json
  gpuir index -q --jsonl p.json -o p.gpuir
  [ "$(gpuir query --grep p.gpuir wolf)" = $'p.json:2:one wolf\np.json:4:a wolf' ]
  prints $'p.json:2-4\none wolf\ntwo foxes\na wolf' gpuir query --passages p.gpuir wolf
  run gpuir index -q --jsonl --text '' d.json -o y.gpuir
  [ "$status" -eq 2 ]
  run gpuir index -q --jsonl --id a --id b d.json -o y.gpuir
  [ "$status" -eq 2 ]
  fails 2 '--jsonl, --csv or --tsv-head is missing' gpuir index -q --tsv --id a d.json -o y.gpuir
}

@test "--encoding: files of encodings that nothing tells, by iconv, with lines; an index remembers it, a byte order mark wins" {
  mkdir d
  printf 'first\nзебра волк\nthird\n' | iconv -t koi8-r >d/a
  printf 'third\nволк\n' | iconv -t utf-16le | { printf '\xff\xfe' && cat; } >d/b
  printf '<html><p>волк</html>' | iconv -t koi8-r | gzip >d/c.gz
  printf 'GIF\0\1\2' >d/picture
  gpuir index -q --no-names d -o i.gpuir
  [ "$(gpuir count i.gpuir волк)" -eq 1 ]
  gpuir index -q --no-names --live --encoding KOI8-R d -o live
  [ "$(gpuir count live волк)" -eq 3 ]
  prints $'d/a:2:зебра волк' gpuir query --grep live зебра
  printf 'лиса\nсова\n' | iconv -t koi8-r >d/e
  gpuir update -q d -o live
  prints 'd/e:2:сова' gpuir query --grep live сова
  printf 'x' >>d/a
  gpuir query --passages live зебра | grep -F 'd/a (changed since it was indexed)'
  gpuir index -q --no-names --lines --encoding koi8-r d/e -o l.gpuir
  [ "$(gpuir query --tsv l.gpuir сова | cut -f 4)" = d/e:2 ]
  printf '{"id":"1","contents":"狐 sjis"}\n' | iconv -t shift_jis >j
  gpuir index -q --jsonl --encoding shift_jis j -o j.gpuir
  prints 'j:1:狐 sjis' gpuir query --grep j.gpuir sjis
  fails 2 "--encoding: 'zebra' is none of utf-8, us-ascii, " gpuir index --encoding zebra d -o x.gpuir
}

@test "--encoding utf-16: files without a byte order mark, of either order" {
  printf 'first\nзебра\n' | iconv -t utf-16le >a
  printf 'first\nзебра\n' | iconv -t utf-16be >b
  fails 1 'a: a binary file' gpuir index -q a -o i.gpuir
  gpuir index -q --no-names --encoding utf-16 a -o i.gpuir
  prints 'a:2:зебра' gpuir query --grep i.gpuir зебра
  gpuir index -q --no-names --encoding utf-16be b -o i.gpuir
  prints 'b:2:зебра' gpuir query --grep i.gpuir зебра
}

@test "collections.sh tells what becomes of sample collections: read, or refused with the reason" {
  mkdir -p c/json c/trec/one c/none
  printf '{"id": "1", "contents": "wolf", "field1": 2}\n' >c/json/a
  printf '<DOC><DOCNO>1</DOCNO>wolf</DOC>\n<DOC><DOCNO>2</DOCNO>dog</DOC>\n' >c/trec/one/b
  printf '[{"contents": "wolf"}]\n' >c/none/c.json
  "$root/tools/scripts/collections.sh" c gpuir >table
  [ "$(sed -n 2p table | cut -f 1-3)" = $'json\t1\tread 1' ]
  grep -q '^json.*other members are not kept: field1$' table
  grep -q $'^none\t1\trefused\t.*c.json:1: none of the members that may be its id is there' table
  [ "$(sed -n 4p table | cut -f 1-3)" = $'trec/one\t1\tread 2' ]
}
