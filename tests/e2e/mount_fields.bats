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

@test "@sort, @collapse and @show" {
  mount_files
  cd "$T/m"
  order() { cut -f 4 "$1.tsv" | tr '\n' ' '; }
  [ "$(order query/@sort=-mtime/green | cut -d ' ' -f 1,2)" = 'vendor/z.txt src/a/x.c' ]
  [ "$(order query/@sort=size/@k=2/green)" = "$("$gpuir" query --tsv --sort size -k 2 "$T/ix" green | cut -f 4 | tr '\n' ' ')" ]
  [ "$(order query/@sort=-size/+ | wc -w)" -eq 5 ] # all documents
  [ "$(order query/@sort=-size/+)" = "$(order query/@sort=-size/green)" ]
  [ "$(order query/@sort=mtime/@collapse=dir/@-dir=vendor/green)" = 'src/y.h Makefile x.conf src/a/x.c ' ]
  [ "$(order query/@collapse=mtime/@sort=-size/green)" = 'src/y.h src/a/x.c vendor/z.txt ' ]
  [ "$(order query/@dir=src/@collapse=dir/fox | wc -w)" -eq 2 ]
  [ "$(ls hits/@sort=-mtime/@k=2/green | cut -d - -f 2- | tr '\n' ' ')" = 'vendor_z.txt src_a_x.c ' ]
  [ "$(cat files/@sort=-mtime/@k=1/green/*)" = 'green milk' ]
  [ "$(cat query/@sort=-mtime/@k=1/green.paths)" = "$T/vendor/z.txt" ]
  [ "$(cut -d : -f 1 <grep/@sort=-mtime/green | sed 's|.*/||' | head -n 2 | tr '\n' ' ')" = 'z.txt x.c ' ]
  [ "$(order by/dir/src/query/@sort=mtime/fox)" = 'src/y.h src/a/x.c ' ]
  [ "$(cut -f 5- query/@show=ext,size/@ext=c/fox.tsv)" = $'c\t14' ]
  [ "$(cut -f 5- query/@show=mtime/@sort=-mtime/@k=1/green.tsv)" = 2024-06-30T23:59:59Z ]
  [[ "$(cat query/@show=dir,ext/@ext=c/fox.json)" == *'"name": "src/a/x.c", "values": {"dir":["src/a"],"ext":["c"]}}'* ]]
  [[ "$(cat query/@ext=c/fox.json)" != *values* ]]
  # an answer is remembered with all that was asked for
  [ "$(order query/@sort=mtime/green)" != "$(order query/@sort=-mtime/green)" ]
  [ "$(order query/@sort=mtime/green)" != "$(order query/green)" ]
  [ "$(order query/@sort=mtime/@collapse=dir/green)" != "$(order query/@sort=dir/@collapse=mtime/green)" ]
}

@test "what is wrong with an order is said" {
  needs_python
  mount_files
  cd "$T/m"
  [ "$(errno_of query/@sort=x/+ query/@sort=/+ query/@collapse=-ext/+ query/@sort=ext/@sort=dir/+ hits/@show=ext/+ \
    query/@show=ext,ext/+ query/@show=/+ facet/ext/@sort=ext/+ facet/ext/@collapse=ext/+ query/@collapse=ext/@collapse=dir/+ |
    sort | uniq -c | tr -s ' \n' ' ')" = ' 10 EINVAL ' ]
  [ ! -e query/@sort=x ]
  [[ "$(stat_of last_error .)" == "@sort=x: sort: there is no field 'x'; there are ext, dir, size, mtime" ]]
}

@test "where grep/ shows a text that was decoded leads to it in the order that was asked for" {
  mkdir -p "$T/src" "$T/m"
  for i in 1 2 3; do
    printf '<p>tea of year %s</p>' "$i" >"$T/src/f$i.html"
    touch -d "202$((4 - i))-01-15T12:00:00Z" "$T/src/f$i.html"
  done
  (cd "$T" && "$gpuir" index -q src -o ix)
  "$fs" "$T/ix" "$T/m"
  cat "$T/m/grep/@sort=mtime/@collapse=size/tea" "$T/m/grep/@sort=mtime/tea" >"$T/lines"
  [ "$(grep -c . "$T/lines")" -eq 4 ]
  while IFS=: read -r path _ line; do grep -qxF "$line" "$path"; done <"$T/lines"
}

@test "links at depth 30, and fields whose names look like files of servers" {
  mkdir "$T/m"
  echo '{"id":"1","text":"tea","a.conf":"v"}' >"$T/a.jsonl"
  "$gpuir" index -q --store --jsonl --field a.conf=key --field a.html=key@none "$T/a.jsonl" -o "$T/ix"
  "$fs" "$T/ix" "$T/m"
  cd "$T/m"
  [ "$(ls by/a.conf)" = v ]
  [ "$(cat facet/a.conf/+)" = $'1\tv' ]
  [ "$(cat query/@a.conf=v/tea)" = 0 ]
  [ -d by/a.html ]
  deep=by/a.conf/v
  for i in 1 2 3 4 5 6 7; do deep+=/by/a.conf/v; done
  for i in 1 2 3 4 5; do deep+=/@-a.conf=$i; [ "$i" != 1 ] || deep=${deep%/*}/hits/@-a.conf=1; done
  [ "$(tr -cd / <<<"$deep/tea" | wc -c)" -ge 30 ]
  [ "$(cat "$deep"/tea/000001-1)" = tea ]
}

# completed SHELL WORD: what TAB makes of a path in the mount
completed() {
  case $1 in
  bash) compgen -f "$2" ;;
  fish) fish -c "complete -C 'cat $2'" 2>/dev/null | cut -f 1 ;;
  zsh) python3 - "$2" <<'PYTHON'
import os, pty, re, select, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(PS1='> ', TERM='dumb', HISTFILE='', ZDOTDIR='/nonexistent')
    os.execvp('zsh', ['zsh', '-f', '-i'])
def until(mark, limit=10):
    seen, end = b'', time.time() + limit
    while mark not in seen and time.time() < end:
        if select.select([fd], [], [], 0.1)[0]:
            seen += os.read(fd, 65536)
    return seen
os.write(fd, b"unsetopt zle_bracketed_paste prompt_cr; autoload -Uz compinit; compinit -D -u; echo rea''dy\n")
until(b'ready\r')
os.write(fd, b"print -r -- FRO''M " + sys.argv[1].encode() + b"\t T''O\n")
print(re.search(rb'\nFROM (.*?) +TO\r', until(b' TO\r\n')).group(1).decode().replace('\\', ''))
os.write(fd, b'exit\n')
PYTHON
    ;;
  esac
}

@test "TAB completes values in bash, zsh and fish, and what they complete can be entered" {
  needs_python
  mount_records
  cd "$T/m"
  for shell in bash zsh fish; do
    command -v "$shell" >/dev/null || continue
    for value in by/tag/a%2:by/tag/a%2Fb by/tag/%40:by/tag/%40k%3D3 by/tag/x.:by/tag/x.conf by/tag/new:by/tag/new%0Aline \
      by/who/S:by/who/Smith%2C+John by/who/c:by/who/café by/tag/x.conf/qu:by/tag/x.conf/query; do
      made=$(completed "$shell" "${value%%:*}")
      [ "${made%/}" = "${value#*:}" ] || { echo "$shell: $value: $made"; false; }
      [ -d "$made" ]
    done
  done
}

@test "find, du and grep -r end where a field has very many values" {
  local n=20000
  [ -z "${GPUIR_LONG:-}" ] || n=1000000
  mkdir "$T/m"
  seq 1 "$n" | awk '{ printf "{\"id\":\"%d\",\"text\":\"tea\",\"num\":\"v%d\"}\n", $1, $1 }' |
    "$gpuir" index -q --jsonl --field num=key - -o "$T/ix"
  "$fs" "$T/ix" "$T/m"
  [ "$(timeout 60 ls "$T/m/by/num" | wc -l)" -eq 1000 ]
  [ "$(timeout 60 find "$T/m/by" | wc -l)" -eq 8002 ] # by/, num/, 1,000 values, six folders in each, and facet/num
  timeout 60 du -s "$T/m/by" >/dev/null
  timeout 60 grep -r xyzzy "$T/m/by" && false
  [ "$(timeout 60 cat "$T/m/by/num/v$n/query/+.tsv" | cut -f 4)" = "$n" ] # not listed, and there
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
