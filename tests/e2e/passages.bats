#!/usr/bin/env bats
# gpuir query --passages and its forms: what is printed, budgets, sources that changed, paths.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  export root build PATH="$build:$PATH"
}

setup() {
  cd "$BATS_TEST_TMPDIR" || exit
  mkdir notes
  printf 'The wolf sleeps.\nIt dreams of a fox.\n\nNothing here.\nA dog barks at the wolf.\n\nEnd.\n' >notes/animals.txt
  printf 'tea\n\n  green tea is\tbrewed\n' >notes/tea.txt
  gpuir index -q --analyzer ascii --positions notes -o notes.gpuir
}

@test "passages stand under their path and lines; any word will do" {
  prints $'notes/animals.txt:4-5\nNothing here.\nA dog barks at the wolf.' gpuir query --passages notes.gpuir dog at unicorn
  prints $'notes/animals.txt:1-5\nThe wolf sleeps.\nIt dreams of a fox.\n\nNothing here.\nA dog barks at the wolf.' \
    gpuir query --passages notes.gpuir sleeps fox barks
  { cat notes/animals.txt; seq 500; echo far wolf; } >far.txt
  gpuir index -q --analyzer ascii far.txt -o far.gpuir
  prints $'far.txt:1-5\nThe wolf sleeps.\nIt dreams of a fox.\n\nNothing here.\nA dog barks at the wolf.\n\nfar.txt:508-508\nfar wolf' \
    gpuir query --passages --context 0 far.gpuir far fox wolf
  prints $'notes/tea.txt:3-3\n  green tea is\tbrewed' gpuir query --passages notes.gpuir '"tea is"'
  prints $'notes/tea.txt:3-3\n  green tea is\tbrewed' gpuir query --passages notes.gpuir 'brew*'
  run --separate-stderr gpuir query --passages -m and notes.gpuir dog unicorn
  [ "$status" -eq 1 ]
  [ -z "$output" ]
}

@test "--context has so many lines around; 0 none" {
  prints $'notes/animals.txt:2-2\nIt dreams of a fox.' gpuir query --context 0 notes.gpuir fox
  prints $'notes/animals.txt:1-2\nThe wolf sleeps.\nIt dreams of a fox.' gpuir query --context 1 notes.gpuir fox
}

@test "--grep prints lines as grep does" {
  prints 'notes/animals.txt:2:It dreams of a fox.' gpuir query --grep notes.gpuir fox
  prints $'notes/animals.txt-1-The wolf sleeps.\nnotes/animals.txt:2:It dreams of a fox.' \
    gpuir query --grep --context 1 notes.gpuir dreams
  [ "$(printf 'fox\ngreen\n' | gpuir query --grep notes.gpuir)" = \
    $'notes/animals.txt:2:It dreams of a fox.\nnotes/tea.txt:3:  green tea is\tbrewed' ]
}

@test "budgets hold what is printed" {
  seq 400 | sed 's/$/ wolf and some words that follow it in the line/' >long.txt
  for i in 1 2 3; do cp long.txt notes/long$i.txt; done
  gpuir index -q --analyzer ascii --chunk-lines 20 notes -o many.gpuir
  [ "$(gpuir query --passages -k 50 many.gpuir wolf words | wc -c)" -le 3200 ]
  [ "$(gpuir query --passages -k 50 many.gpuir wolf words | wc -c)" -ge 1600 ]
  for n in 1 10 50 100 333; do
    [ "$(gpuir query --tokens $n -k 50 many.gpuir wolf words | wc -c)" -le $((4 * n)) ]
    [ "$(gpuir query --bytes $n -k 50 many.gpuir wolf words | wc -c)" -le $n ]
    [ "$(gpuir query --grep --bytes $((9 * n)) -k 50 many.gpuir wolf words | wc -c)" -le $((9 * n)) ]
  done
  # What stands before lines counts, and what one hit does not need goes to the others.
  n=$(gpuir query --grep --bytes 3200 -k 50 many.gpuir wolf words | wc -c)
  [ "$n" -ge 1600 ] && [ "$n" -le 3200 ]
  [ "$(gpuir query --grep --bytes 3200 -k 50 many.gpuir wolf words |
    awk -F : '{ print int(($2 - 1) / 20) }' | sort -u | wc -l)" -ge 4 ]
  line=$(gpuir query --grep --tokens 0 -k 1 many.gpuir wolf words | head -n 1)
  [ "$(gpuir query --grep --bytes $((${#line} + 1)) -k 1 many.gpuir wolf words | wc -c)" -le $((${#line} + 1)) ]
  [ "$(gpuir query --tokens 0 -k 50 many.gpuir wolf words | grep -c '^notes')" -eq 50 ]
}

@test "a budget without room for any passage is said to be too small" {
  for form in --passages --grep --json; do
    run --separate-stderr gpuir query $form --bytes 1 notes.gpuir fox
    [ "$status" -eq 0 ]
    [ "$stderr" = 'gpuir: no passage of a hit fits into 1 byte; --bytes 0 takes any length' ]
    [ -z "$output" ] || [[ $output == *'"passages":[]}]}' ]]
  done
  run --separate-stderr gpuir query --passages --tokens 2 notes.gpuir fox
  [ "$stderr" = 'gpuir: no passage of a hit fits into 2 tokens; --tokens 0 takes any length' ]
  run --separate-stderr gpuir query --passages --tokens 9 --bytes 11 notes.gpuir fox
  [ "$stderr" = 'gpuir: no passage of a hit fits into 11 bytes; --bytes 0 takes any length' ]
  run --separate-stderr gpuir query --passages --bytes 35 notes.gpuir fox # the path, 16 bytes and a part of a word
  [ "$stderr" = 'gpuir: no passage of a hit fits into 35 bytes; --bytes 0 takes any length' ]
  run --separate-stderr bash -c "printf 'fox\nunicorn\ntea\n' | gpuir query --grep --tokens 1 notes.gpuir"
  [ "$stderr" = $'gpuir: query 1: no passage of a hit fits into 1 token; --tokens 0 takes any length
gpuir: query 3: no passage of a hit fits into 1 token; --tokens 0 takes any length' ]
  run --separate-stderr gpuir query --passages --bytes 60 notes.gpuir fox
  [ -n "$output" ] && [ -z "$stderr" ]
}

@test "a hit may have as much below a long path as below a short one" {
  deep=$(printf 'd%.0s' {1..200})
  mkdir -p "deep/$deep/$deep/$deep"
  for i in {0..9}; do
    { printf 'wolf '; printf 'and a word %.0s' {1..5000}; } >"deep/$deep/$deep/$deep/$i.txt"
  done
  gpuir index -q --analyzer ascii deep -o deep.gpuir
  gpuir query --passages --bytes 3000 deep.gpuir wolf >answer
  [ "$(wc -c <answer)" -le 3000 ]
  [ "$(grep -c '^wolf and a word' answer)" -eq 3 ]
}

@test "a source that changed is named, and shows nothing" {
  sed -i s/fox/cow/ notes/animals.txt
  prints 'notes/animals.txt (changed since it was indexed)' gpuir query --passages notes.gpuir fox
  run --separate-stderr gpuir query --grep notes.gpuir fox
  [ -z "$output" ]
  # shellcheck disable=SC2154 # stderr is set by run
  [ "$stderr" = 'gpuir: notes/animals.txt: changed since it was indexed' ]
  [[ $(gpuir query --passages --json notes.gpuir fox) == *'"path":"notes/animals.txt","changed":true,"passages":[]'* ]]
  rm notes/animals.txt
  prints 'notes/animals.txt (No such file or directory)' gpuir query --passages notes.gpuir fox
  ln -s /proc/self/environ notes/animals.txt
  prints 'notes/animals.txt (Permission denied)' gpuir query --passages notes.gpuir fox
  rm notes/animals.txt
  mkfifo notes/animals.txt
  prints 'notes/animals.txt (Invalid argument)' timeout 10 gpuir query --passages notes.gpuir fox
}

@test "why texts are missing counts against the budget" {
  mkdir many
  for i in $(seq 400); do echo "a wolf" >many/$i.txt; done
  gpuir index -q --analyzer ascii many -o many.gpuir
  for i in $(seq 400); do echo "a cow" >many/$i.txt; done
  [ "$(gpuir query --tokens 0 -k 400 many.gpuir wolf | grep -c 'changed since')" -eq 400 ]
  for n in 1 15 20 50 100; do
    [ "$(gpuir query --tokens $n -k 400 many.gpuir wolf | wc -c)" -le $((4 * n)) ]
    [ $n -eq 1 ] || # which is said to be too small
      [ "$(gpuir query --grep --tokens $n -k 400 many.gpuir wolf 2>&1 | wc -c)" -le $((5 * n)) ] # with "gpuir: "
  done
  prints $'many/1.txt (changed since it was indexed)' gpuir query --tokens 20 -k 400 many.gpuir wolf
  rm many/*
  # JSON has every hit, and says why as often as there is room
  gpuir query --json --tokens 30 -k 400 many.gpuir wolf >answer
  [ "$(grep -o '"missing":"No such file or directory"' answer | wc -l)" -eq 4 ]
  [ "$(grep -o '"passages":\[\]' answer | wc -l)" -eq 400 ]
}

@test "stored text is shown whatever became of the source; records have their line" {
  printf 'a\tone fox\nb\tred fox\n' >t.tsv
  gpuir index -q --analyzer ascii --tsv --store t.tsv -o t.gpuir
  rm t.tsv
  prints $'t.tsv:2-2\nred fox' gpuir query --passages t.gpuir red
  printf '{"id":"x","contents":"one\\ntwo fox\\nthree"}\n' >t.jsonl
  gpuir index -q --analyzer ascii --jsonl --store t.jsonl -o j.gpuir
  prints 't.jsonl:1:two fox' gpuir query --grep j.gpuir fox
  printf 'a\tone fox\n' | gpuir index -q --analyzer ascii --tsv --store - -o s.gpuir
  prints $'a:1-1\none fox' gpuir query --passages s.gpuir fox
  printf 'a\tone fox\n' | gpuir index -q --analyzer ascii --tsv - -o s.gpuir
  prints 'a (its text is not in the index)' gpuir query --passages s.gpuir fox
}

@test "paths start here where they can, and are whole elsewhere" {
  cd notes
  prints 'tea.txt:3:  green tea is	brewed' gpuir query --grep ../notes.gpuir green
  cd /
  prints "$BATS_TEST_TMPDIR/notes/tea.txt:3:  green tea is	brewed" gpuir query --grep "$BATS_TEST_TMPDIR/notes.gpuir" green
  cd "$BATS_TEST_TMPDIR"
  run gpuir query --grep --base nowhere notes.gpuir green
  [ "$status" -eq 1 ]
}

@test "an index and the files below its folder move together, and it is the same bytes wherever it is built" {
  mkdir -p else/where
  cp -rp notes else/where/ # with its times, which the index has
  (cd else/where && gpuir index -q --analyzer ascii --positions notes -o notes.gpuir)
  cmp notes.gpuir else/where/notes.gpuir
  (cd else/where/notes && gpuir index -q --analyzer ascii --positions .. -o ../other.gpuir)
  rm -r notes
  prints 'else/where/notes/tea.txt:3:  green tea is	brewed' gpuir query --grep else/where/notes.gpuir green
  mv else moved
  prints 'moved/where/notes/tea.txt:3:  green tea is	brewed' gpuir query --grep moved/where/notes.gpuir green
  # not below: the path stays, whatever becomes of the index
  mkdir apart
  gpuir index -q --analyzer ascii moved -o apart/above.gpuir
  mv apart/above.gpuir .
  prints 'moved/where/notes/tea.txt:3:  green tea is	brewed' gpuir query --grep above.gpuir green
  # an index that went away from its files is told where they are
  mv moved/where/notes.gpuir .
  prints 'moved/where/notes/tea.txt:3:  green tea is	brewed' gpuir query --grep --base moved/where notes.gpuir green
  # with its documents in another order it finds them from where it is
  mkdir sub
  gpuir index -q --analyzer ascii moved -o m.gpuir
  gpuir reorder -q --order name m.gpuir sub/r.gpuir
  prints 'moved/where/notes/tea.txt:3:  green tea is	brewed' gpuir query --grep sub/r.gpuir green
  gpuir reorder -q --order name sub/r.gpuir back.gpuir
  gpuir reorder -q --order name m.gpuir named.gpuir
  cmp back.gpuir named.gpuir
}

@test "bench finds the files below the folder of an index from anywhere" {
  seq 200 | sed 's/$/ wolf dog fox tea/' >notes/many.txt
  gpuir index -q --analyzer ascii notes -o notes.gpuir
  cd /
  gpuir bench --sample 3 --min-df 1 --repeat 1 "$BATS_TEST_TMPDIR/notes.gpuir" >"$BATS_TEST_TMPDIR/bench"
}

@test "--timeout ends the making of passages, too" {
  mkdir large
  for i in $(seq 20); do seq -f "wolf %g lorem ipsum dolor sit amet" 1 30000 >large/$i.txt; done
  gpuir index -q --analyzer ascii large -o large.gpuir
  for _ in 1 2 3 4 5; do # where the machine is busy, the search may have taken all of the time
    run --separate-stderr gpuir query --passages --tokens 0 -k 20 --timeout 3 large.gpuir wolf lorem ipsum
    [ "$status" -eq 1 ]
    [[ $stderr != *'gpuir: large/'*'.txt: the search for passages exceeded its time limit'* ]] || return 0
  done
  return 1
}

@test "JSON has the passages of each hit, with their marks" {
  gpuir query --json --passages notes.gpuir green wolf >out
  python3 - out <<'END'
import json, sys
a = json.load(open(sys.argv[1]))
assert a["mode"] == "or"
texts = {h["name"]: h for h in a["hits"]}
p = texts["notes/tea.txt"]["passages"][0]
assert (p["first"], p["last"], p["text"]) == (3, 3, "  green tea is\tbrewed")
assert p["marks"] == [[2, 5]] and p["score"] > 0
assert texts["notes/animals.txt"]["changed"] is False
END
}

@test "colour on a terminal, control characters on none" {
  printf 'wolf \033[2J \001\n' >notes/evil.txt
  gpuir index -q --analyzer ascii notes/evil.txt -o e.gpuir
  prints $'notes/evil.txt:1-1\nwolf \\x1b[2J \\x01' gpuir query --passages e.gpuir wolf
  python3 - <<'END' >out
import os, pty, sys
pid, fd = pty.fork()
if not pid:
    os.environ.pop("NO_COLOR", None)
    os.execvp("gpuir", ["gpuir", "query", "--passages", "notes.gpuir", "green"])
data = b""
while True:
    try:
        got = os.read(fd, 4096)
    except OSError:
        break
    if not got:
        break
    data += got
sys.stdout.buffer.write(data)
END
  grep -q $'\033\[1;31mgreen\033\[m tea' out
}

@test "misuse" {
  for form in --trec --tsv '--json --grep'; do
    # shellcheck disable=SC2086 # two options
    run gpuir query --passages $form notes.gpuir fox
    [ "$status" -eq 2 ]
    [[ $output == *'passages are printed for people'* ]]
  done
  run gpuir query --tokens x notes.gpuir fox
  [ "$status" -eq 2 ]
}
