#!/usr/bin/env bats
# Values as folders of a mount: @ext=c, @-dir=vendor, @mtime=2024.., @where=, by/<column>/<value>/.
# shellcheck disable=SC2010,SC2012 # what ls shows is a subject of these tests
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test is a subshell of its own; ../support/mount sets variables

load ../support/mount

# mount_files: a mount, at $T/m, of five files with what files have
mount_files() {
  mkdir -p "$T/src/a" "$T/vendor" "$T/m"
  echo 'green tea fox' >"$T/src/a/x.c"
  echo 'green coffee fox' >"$T/src/y.h"
  echo 'green milk' >"$T/vendor/z.txt"
  echo 'green water' >"$T/Makefile"
  echo 'green juice' >"$T/x.conf"
  touch -d 2024-01-15T12:00:00Z "$T/src/a/x.c"
  touch -d 2023-06-15T12:00:00Z "$T/src/y.h" "$T/Makefile" "$T/x.conf"
  touch -d 2024-06-30T23:59:59Z "$T/vendor/z.txt"
  (cd "$T" && "$gpuir" index -q --no-names "${live[@]}" --fields ext,dir,size,mtime src vendor Makefile x.conf -o ix)
  "$fs" "$T/ix" "$T/m"
}

# names FOLDER: the names of all documents under it
names() { cut -f 4 "$T/m/$1/+.tsv" | sort | tr '\n' ' '; }

# mount_records: a mount, at $T/m, of records whose values are hard to name
mount_records() {
  mkdir "$T/m"
  cat >"$T/a.jsonl" <<'JSON'
{"id":"1","text":"tea","tag":["a/b","@k=3"],"who":"Smith, John"}
{"id":"2","text":"tea","tag":["..","x.conf"],"who":"Jones"}
{"id":"3","text":"tea","tag":["new\nline",".git"],"who":"a..b"}
{"id":"4","text":"tea","tag":["say \"x | y\"","-x"],"who":"caf\u00e9"}
JSON
  "$gpuir" index -q --jsonl --field tag=key --field who=key "$T/a.jsonl" -o "$T/ix"
  "$fs" "$T/ix" "$T/m"
}

@test "a value is a folder, which chooses among the hits" {
  mount_files
  [ "$(names query/@ext=c)" = 'src/a/x.c ' ]
  [ "$(names query/@ext=c,h)" = 'src/a/x.c src/y.h ' ]
  [ "$(names query/@-ext=..)" = 'Makefile ' ]
  [ "$(names query/@ext=conf)" = 'x.conf ' ]
  [ "$(names query/@dir=src)" = 'src/a/x.c src/y.h ' ]
  [ "$(names query/@dir=src%2Fa)" = 'src/a/x.c ' ]
  [ "$(names query/@mtime=2024-01..)" = 'src/a/x.c vendor/z.txt ' ]
  [ "$(names query/@mtime=2024-01../@-dir=vendor)" = 'src/a/x.c ' ]
  [ "$(names query/@k=2/@mtime=..2023/@or | wc -w)" -eq 2 ]
  [ "$(names query/@size=..12)" = 'Makefile vendor/z.txt x.conf ' ]
  [ "$(names 'query/@where=ext%3Dc+%7C+dir%3Dvendor')" = 'src/a/x.c vendor/z.txt ' ]
  [ "$(names 'query/@where=ext%3Dc+%7C+ext%3Dtxt/@where=mtime%3D2024-01+%7C+ext%3Dh')" = 'src/a/x.c ' ]
  cut -f 3 "$T/m/query/fox.tsv" | sort >"$T/all"
  cut -f 3 "$T/m/query/@ext=c/fox.tsv" >"$T/one"
  [ "$(wc -l <"$T/one")" -eq 1 ]
  grep -qxF "$(cat "$T/one")" "$T/all"
}

@test "every folder of queries takes values, and links lead home from any depth" {
  mount_files
  cd "$T/m"
  [ "$(ls files/@ext=c/fox)" = 000001-src_a_x.c ]
  grep -q 'tea fox' pass/@ext=c/fox
  [ "$(wc -l <grep/@ext=c,h/fox)" -eq 2 ]
  [ "$(cat query/@ext=c/fox.paths)" = "$T/src/a/x.c" ]
  deep=hits/@and/@k=3/@cpu/@rank=plain
  for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do deep+=/@mtime=..203$((i % 10)); done
  [ "$(cat "$deep"/@ext=c/fox/000001-src_a_x.c)" = 'green tea fox' ] && false
  stat_of last_error . | grep -q 'more is asked of fields'
  [ "$(cat "${deep%/*}"/@ext=c/fox/000001-src_a_x.c)" = 'green tea fox' ]
}

@test "by/: ls, cd and TAB" {
  mount_files
  cd "$T/m/by"
  [ "$(ls | tr '\n' ' ')" = 'dir ext mtime ' ]
  [ "$(ls ext | tr '\n' ' ')" = 'c conf h txt ' ]
  [ "$(ls dir | tr '\n' ' ')" = 'src vendor ' ]
  [ "$(ls mtime | tr '\n' ' ')" = '2023 2024 ' ]
  [ "$(ls size)" = '' ]
  [ "$(ls dir/src/by/ext | tr '\n' ' ')" = 'c h ' ]
  [ "$(ls ext/c | tr '\n' ' ')" = 'facet files grep hits pass query ' ]
  [ "$(compgen -f ext/co)" = ext/conf ]
  cd ext/c
  [ "$(cut -f 4 query/green.tsv)" = src/a/x.c ]
  [ "$(ls pass)" = '' ]
  [ "$(cut -f 4 by/mtime/..2024/query/@k=3/+.tsv)" = src/a/x.c ]
  [ "$(cat ../h/hits/fox/*)" = 'green coffee fox' ]
  cd "$T/m/by"
  [ "$(cut -f 4 size/..12/query/+.tsv | wc -l)" -eq 3 ]
  [ "$(cut -f 4 ext/c,h/query/+.tsv | wc -l)" -eq 2 ]
  [ ! -e ext/nope ]
  [ ! -e ext/c/by/ext/h ]
  [ ! -e nope ]
  [ ! -e ext/.git ]
  [ "$(compgen -f ext/c/pa)" = ext/c/pass ]
}

@test "values whose bytes mean something in names" {
  mount_records
  [ "$(names query/@who=Smith%2C+John)" = '1 ' ]
  [ "$(names 'query/@who="Smith,+John",Jones')" = '1 2 ' ]
  [ "$(names query/@who=a%2E%2Eb)" = '3 ' ]
  [ "$(names query/@who=b..d)" = '4 ' ] # a range
  [ "$(names query/@who=café)" = '4 ' ]
  [ "$(names query/@tag=a%2Fb)" = '1 ' ]
  [ "$(names by/tag/%40k%3D3/query)" = '1 ' ]
  [ "$(names by/tag/%2E%2E/query)" = '2 ' ]
  [ "$(names by/tag/x.conf/query)" = '2 ' ]
  [ "$(names query/@tag=x.conf)" = '2 ' ]
  [ "$(names by/tag/new%0Aline/query)" = '3 ' ]
  [ "$(names by/tag/%2Egit/query)" = '3 ' ]
  [ "$(names query/@tag=say+%22x+%7C+y%22/@who=..)" = '4 ' ]
  [ "$(names query/@tag=-x)" = '4 ' ]
  [ "$(names query/@-tag=-x)" = '1 2 3 ' ]
}

@test "every value that by/ lists can be entered" {
  mount_records
  cd "$T/m/by"
  ls tag who >"$T/listed"
  [ "$(grep -c . "$T/listed")" -eq 14 ]
  for value in tag/* who/*; do
    [ "$(wc -l <"$value/query/+")" -eq 1 ] || { echo "$value"; false; }
  done
  [ "$(ls who | tr '\n' ' ')" = 'Jones Smith%2C+John a.%2Eb café ' ]
}

@test "facet: counts of values, folders, ranges and months" {
  mount_files
  cd "$T/m/facet"
  [ "$(ls | tr '\n' ' ')" = 'dir ext mtime size ' ]
  [ "$(tr '\t\n' ': ' <dir/+)" = '1:src 1:src/a 1:vendor ' ]
  [ "$(tr '\t\n' ': ' <dir:/+)" = '2:src 1:vendor ' ]
  [ "$(tr '\t\n' ': ' <dir:src/fox)" = '1:src/a ' ]
  [ "$(tr '\t\n' ': ' <ext/@dir=src/green)" = '1:c 1:h ' ]
  [ "$(tr '\t\n' ': ' <../by/dir/src/facet/ext/green)" = '1:c 1:h ' ]
  [ "$(cut -f 1 mtime:month/+ | tr '\n' ' ')" = '3 1 1 ' ]
  [ "$(cut -f 2 mtime:year/+ | tr '\n' ' ')" = '2023 2024 ' ]
  [ "$(cut -f 2 mtime:month/+ | tr '\n' ' ')" = '2023-06 2024-01 2024-06 ' ]
  [ "$(cut -f 1 size:0,13/+ | tr '\n' ' ')" = '0 3 2 ' ]
  [ "$(wc -l <ext/@k=2/+)" -eq 2 ]
  [[ "$(stat_of last_note ..)" == *'2 more; @k=0 shows all' ]]
  [ "$(wc -l <ext/@k=0/+)" -eq 4 ]
  [ "$(tr -d ' \n' <ext/@ext=c/+.json)" = '[{"value":"c","count":1}]' ]
  [ ! -e ext/+.tsv ]
  [ ! -e nope ]
  [ ! -e ext:x/+ ]
  [[ "$(stat_of last_error ..)" == *'how many values'* ]]
}

@test "what is wrong with a value is said" {
  needs_python
  mount_files
  cd "$T/m"
  [ "$(errno_of query/@x=c/+ 'query/@ext=c|h/+' query/@mtime=2024-13/+ query/@ext=/+ query/@where=/+ query/@ext=%/+ \
    query/@ext=c%00/+ query/@mtime=2024..2023/+ doc/@ext=c query/+ by/mtime/soon by/ext/% | sort | uniq -c |
    tr -s ' \n' ' ')" = ' 11 EINVAL 1 ENOENT ' ]
  [ ! -e query/@x=c ]
  [[ "$(stat_of last_error .)" == "@x=c: where: there is no field 'x'; there are ext, dir, size, mtime" ]]
  [ ! -e 'query/@ext=c|h' ]
  [[ "$(stat_of last_error .)" == *'write name=a,b for either'* ]]
  [ ! -s query/@ext=c/coffee ]
  [[ "$(stat_of last_note .)" == *'no document with these values has this word' ]]
}

@test "an index without fields: no values, and no by/" {
  [ -z "$(ls -A "$mnt/by")" ]
  [ ! -e "$mnt/by/ext" ]
  [ ! -e "$mnt/query/@ext=c" ]
  [[ "$(stat_of last_error "$mnt")" == *'the index has no fields'* ]]
}

@test "find, du and grep -r of by/ end" {
  mount_files
  timeout 20 find "$T/m/by" >"$T/found"
  grep -q /ext$ "$T/found"
  timeout 20 du -s "$T/m/by" >/dev/null
  timeout 20 grep -r xyzzy "$T/m/by" && false
  [ "$(stat_of errors "$T/m")" -eq 0 ]
}

@test "a live index: a value comes and goes with its documents" {
  live=(--live)
  mount_files
  cd "$T"
  [ ! -e m/by/ext/md ]
  echo 'green notes' >src/n.md
  "$gpuir" update -q -o ix src vendor Makefile x.conf
  until_true 5 test -e m/by/ext/md
  [ "$(names by/ext/md/query)" = 'src/n.md ' ]
  rm src/n.md
  "$gpuir" update -q -o ix src vendor Makefile x.conf
  until_true 5 test ! -e m/by/ext/md
  [ "$(names query/@ext=c)" = 'src/a/x.c ' ]
}
