#!/usr/bin/env bats
# The programs and scripts of examples/ run and print what is expected.

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  export root build=${GPUIR_BUILD:-$root/build}
  export index=$BATS_FILE_TMPDIR/wordnet.gpuir mnt=$BATS_FILE_TMPDIR/mnt
  "$build/gpuir" index -q --tsv --store --stem english "$root/tests/data/wordnet.tsv" -o "$index"
  mkdir "$mnt"
  no_mount=
  if [ ! -x "$build/gpuirfs" ]; then
    no_mount="gpuirfs was not built"
  elif [ ! -c /dev/fuse ]; then
    no_mount="no /dev/fuse"
  elif ! "$build/gpuirfs" "$index" "$mnt" >/dev/null; then
    no_mount="mounting is not allowed"
  fi
  export no_mount
}

teardown_file() {
  if grep -q " $mnt fuse" /proc/self/mounts; then
    fusermount3 -u "$mnt" || umount "$mnt" || fusermount3 -u -z "$mnt"
  fi
}

needs_mount() { [ -z "$no_mount" ] || skip "$no_mount"; }

@test "minimal.c: scores and names" {
  run "$build/examples/minimal" "$index" "computer memory"
  [ "$status" -eq 0 ]
  [ "${#lines[@]}" -eq 10 ]
  [[ ${lines[0]} == *"  computer memory" ]]
  # The same hits as the command's, in the same order.
  "$build/gpuir" query --tsv -m and "$index" computer memory | cut -f 4 >"$BATS_TEST_TMPDIR/names"
  diff <(printf '%s\n' "${lines[@]}" | sed 's/^ *[0-9.]*  //') "$BATS_TEST_TMPDIR/names"
}

@test "minimal.c: what is wrong with a query or an index" {
  run "$build/examples/minimal" "$index" "-computer"
  [ "$status" -eq 1 ]
  [[ $output == "minimal: '-computer' only says what is not to be there: add a word that is" ]]
  run "$build/examples/minimal" "$root/README.md" computer
  [ "$status" -eq 1 ]
  [[ $output == "minimal: "*"README.md"*"not a gpuir index"* ]]
}

@test "pool.c: answers in order, with the command's hits, and what is wrong with a query" {
  local words
  for _ in {1..90}; do echo "computer memory"; echo '"open'; echo "free software"; done >"$BATS_TEST_TMPDIR/asked"
  "$build/examples/pool" "$index" <"$BATS_TEST_TMPDIR/asked" >"$BATS_TEST_TMPDIR/told"
  cut -d : -f 1 "$BATS_TEST_TMPDIR/told" | diff - "$BATS_TEST_TMPDIR/asked"
  for words in "computer memory" "free software"; do
    # shellcheck disable=SC2086 # words are parted
    "$build/gpuir" query --tsv -m and -k 3 "$index" $words | cut -f 4 | paste -sd ' ' >"$BATS_TEST_TMPDIR/names"
    grep "^$words:" "$BATS_TEST_TMPDIR/told" | sort -u | sed -E "s/^[^:]*: //; s/ [0-9.]+(,|$)//g" |
      diff - "$BATS_TEST_TMPDIR/names"
  done
  [ "$(grep -c ' the quote at byte 0 of the query is not closed$' "$BATS_TEST_TMPDIR/told")" -eq 90 ]
  run "$build/examples/pool" "$root/README.md" </dev/null
  [ "$status" -eq 1 ]
  [[ $output == "pool: "*"not a gpuir index"* ]]
}

@test "batch.c, count.c and explain.c say what the command says" {
  local first
  cd "$BATS_TEST_TMPDIR"
  printf 'computer memory\n"open\nfree software\n' | "$build/examples/batch" "$index" >told 2>wrong
  for first in "computer memory" "free software"; do
    # shellcheck disable=SC2086 # words are parted
    "$build/gpuir" query --tsv -m and -k 3 "$index" $first | cut -f 4 | paste -sd , | sed 's/,/, /g'
  done | sed 's/^/ /' >names
  cut -d : -f 2- told | diff - names
  [ "$(cat wrong)" = "batch: the quote at byte 0 of the query is not closed" ]
  "$build/examples/count" "$index" computer memory >told
  diff <(awk '{ print $NF }' told) <(
    "$build/gpuir" count "$index" computer
    "$build/gpuir" count "$index" memory
    "$build/gpuir" count "$index" computer memory
    "$build/gpuir" count -m or "$index" computer memory
  )
  "$build/examples/explain" "$index" "computer memory" >told
  awk 'END { last = $1 } { sum += $1 } END { d = sum - 2 * last; exit d > 0.001 || d < -0.001 }' told
  first=$("$build/gpuir" query --tsv -m or -k 1 "$index" computer memory | cut -f 3)
  grep -q "^ *$(printf %.4f "$first")  in a document" told
}

@test "cursor.c finds what AND finds, and passages.c shows every word" {
  cd "$BATS_TEST_TMPDIR"
  "$build/examples/cursor" "$index" comput memori | sed 's/: [0-9]* and [0-9]* times$//' | sort >told
  "$build/gpuir" query --tsv -m and -k 1000 "$index" computer memory | cut -f 4 | sort | diff - told
  run "$build/examples/cursor" "$index" comput nowhereatall
  [ "$status" -eq 1 ]
  run "$build/examples/passages" "$index" "computer memory"
  [ "$status" -eq 0 ]
  [[ $output == "lines "*"[computer]"*"[memory]"* ]]
  [[ $output != *"[computer] "*"lines "*"[computer]"*"lines "*"lines "* ]]
}

# by_its_comment FILE PROGRAM [REMOVED...]: compiles by the line in the comment, without the words REMOVED. With $with
# the implementation is that object or library, since compiling it again takes seconds.
by_its_comment() {
  local line file=$1 first=
  line=$(sed -nE '/^(\/\/|\/?\*| \*)? *(cc|c\+\+) -/{:a;/\\$/{N;s/ *\\\n(\/\/| \*) */ /;ba};s/^[^c]*//;s/ && .*//;p;q}' "$root/examples/$1")
  [ -n "$line" ]
  line=${line/-o $2/-o "$BATS_TEST_TMPDIR/$2"}
  shift 2
  for word in "$@"; do line=${line//$word/}; done
  if [ -n "${with:-}" ]; then
    first="${line%% -o *} -fsyntax-only && "
    line="${line/" examples/$file"/" examples/$file '$with'"} -DGPUIR_IMPLEMENTED"
  fi
  (cd "$root" && bash -c "$first$line -O0")
}

# plain_object: the implementation without the optional parts, compiled once for all tests
plain_object() {
  with=$BATS_FILE_TMPDIR/plain.o
  [ -e "$with" ] || gcc -std=c99 -O0 -I"$root" -c -x c - -o "$with" <<<'#define GPUIR_IMPLEMENTATION
#include "gpuir.h"'
}

@test "the examples compile by the lines in their comments, and read the README's index" {
  cd "$BATS_TEST_TMPDIR"
  by_its_comment minimal.c minimal
  run ./minimal "$index" wolf
  [ "$status" -eq 0 ]
  [[ ${lines[0]} == *"  wolf" ]]
  by_its_comment embed.cc embed
  run ./embed "$index" or wolf "computer memory"
  [ "$status" -eq 0 ]
  [[ ${lines[1]} == *"  wolf" ]]
  plain_object
  by_its_comment tokenizer.c tokenizer
  run ./tokenizer "$root/gpuir.h" "builder create"
  [ "$status" -eq 0 ]
  [[ $output == *gpuir_builder_create* ]]
  with=$build/libgpuir.a by_its_comment passages.c passages
  run ./passages "$index" wolf
  [ "$status" -eq 0 ]
}

@test "the examples say what a program that lacks a stemmer must define and link" {
  cd "$BATS_TEST_TMPDIR"
  plain_object
  head -n 9 "$root/tests/data/wordnet.tsv" | "$build/gpuir" index -q --tsv --analyzer ascii --stem english - -o stems
  by_its_comment minimal.c minimal -DGPUIR_WITH_STEMMER -lstemmer
  run ./minimal stems wolf
  [ "$status" -eq 1 ]
  [[ $output == "minimal: "*'stemmer "english"'*GPUIR_WITH_STEMMER*-lstemmer* ]]
  by_its_comment embed.cc embed -DGPUIR_WITH_STEMMER -lstemmer
  run ./embed stems or wolf
  [ "$status" -eq 1 ]
  [[ $output == *'stemmer "english"'*GPUIR_WITH_STEMMER*-lstemmer* ]]
}

# Names of chunks are put together when they are asked for.
@test "minimal.c and embed.cc name the chunks of files" {
  (cd "$root" && "$build/gpuir" index -q --chunk-lines 25 examples -o "$BATS_TEST_TMPDIR/chunks.gpuir")
  cd "$BATS_TEST_TMPDIR"
  "$build/gpuir" query --rank plain --tsv -m or -k 3 chunks.gpuir index | cut -f 4 >names
  [ "$(wc -l <names)" -eq 3 ]
  "$build/examples/embed" chunks.gpuir or index | sed '1d; s/^ *[0-9.e-]*  //' >embed
  diff embed names
  "$build/gpuir" query --rank plain --mode and --tsv -k 10 chunks.gpuir index | cut -f 4 >names
  "$build/examples/minimal" chunks.gpuir index | sed 's/^ *[0-9.]*  //' >minimal
  diff minimal names
}

@test "embed.cc: several queries at once" {
  run --separate-stderr "$build/examples/embed" "$index" and wolf "computer memory" "-dog" zzzz
  [ "$status" -eq 1 ]
  [ "${lines[0]}" = "wolf" ]
  [[ ${lines[1]} == *"  wolf" ]]
  [ "${lines[4]}" = "computer memory" ]
  [[ ${lines[5]} == *"  computer memory" ]]
  [ "${lines[8]}" = "-dog" ]
  [ "${lines[9]}" = "zzzz" ]
  [ "${#lines[@]}" -eq 10 ]
  # shellcheck disable=SC2154 # stderr is set by run
  [ "$stderr" = "embed: -dog: '-dog' only says what is not to be there: add a word that is" ]
  run "$build/examples/embed" "$index" and wolf
  [ "$status" -eq 0 ]
}

@test "embed.cc: names that are put together from two pieces" {
  cd "$BATS_TEST_TMPDIR"
  mkdir notes
  printf 'a wolf\nand a dog\n' >notes/animals
  "$build/gpuir" index -q --chunk-lines 1 notes -o chunks.gpuir
  for _ in 1 2 3; do
    run "$build/examples/embed" chunks.gpuir or wolf dog
    [ "$status" -eq 0 ]
    [[ ${lines[1]} == *"  notes/animals:1-1" ]]
    [[ ${lines[3]} == *"  notes/animals:2-2" ]]
  done
}

@test "tokenizer.c finds parts of identifiers" {
  cat >"$BATS_TEST_TMPDIR/source.c" <<'C'
int parse_query(const char *text);
void openIndexFile(void);
int query;
C
  run "$build/examples/tokenizer" "$BATS_TEST_TMPDIR/source.c" "parse query"
  [ "$output" = "1: int parse_query(const char *text);" ]
  run "$build/examples/tokenizer" "$BATS_TEST_TMPDIR/source.c" "index"
  [ "$output" = "2: void openIndexFile(void);" ]
  run "$build/examples/tokenizer" "$BATS_TEST_TMPDIR/source.c" "openindexfile"
  [ "$output" = "2: void openIndexFile(void);" ]
  run "$build/examples/tokenizer" "$BATS_TEST_TMPDIR/source.c" "query"
  [ "${#lines[@]}" -eq 2 ]
}

@test "search.py ranks as the command does" {
  command -v python3 >/dev/null || skip "no python3"
  GPUIR_LIBRARY=$build/libgpuir.so python3 "$root/examples/search.py" "$index" "stringed instrument" 7 |
    cut -f 1,3 >"$BATS_TEST_TMPDIR/python"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/python")" -eq 7 ]
  "$build/gpuir" query --tsv -m and -k 7 "$index" stringed instrument | cut -f 2,4 | diff - "$BATS_TEST_TMPDIR/python"
  run env GPUIR_LIBRARY="$build/libgpuir.so" python3 "$root/examples/search.py" /nowhere/x computer
  [ "$status" -eq 1 ]
  [[ $output == "search.py: "*"No such file"* ]]
}

@test "notes.c adds, searches and deletes in a live index" {
  cd "$BATS_TEST_TMPDIR"
  plain_object
  by_its_comment notes.c notes
  run ./notes diary <<'NOTES'
tea: green tea is good
cup: a cup of coffee
?tea
tea: black tea now
-cup
?cup
?"black tea"
?"
what
NOTES
  [ "$status" -eq 0 ]
  [ "$output" = 'tea: green tea is good
tea: black tea now
the quote at byte 0 of the query is not closed
NAME: TEXT, -NAME or ?QUERY' ]
  # what was committed is there for others, and the next time
  [ "$("$build/gpuir" query --tsv diary tea | cut -f 4)" = tea ]
  [ "$(echo '?tea' | "$build/examples/notes" diary)" = 'tea: black tea now' ]
  "$build/gpuir" verify diary
  run "$build/examples/notes" "$BATS_TEST_TMPDIR/nowhere/x" </dev/null
  [ "$status" -eq 1 ]
  [[ $output == "notes: "*"No such file"* ]]
}

# prints LINES FILE: it begins with these lines, or will within ten seconds
begins() {
  for _ in $(seq 100); do
    if [ "$(cat "$2")" = "$1" ]; then return; fi
    sleep 0.1
  done
  cat "$2"
  return 1
}

# follows FOLDER INDEX: watch.sh answers anew when a file was added and when one was removed, and ends by a signal
follows() {
  PATH=$build:$PATH "$root/examples/watch.sh" "$1" "$2" 'green tea' >out 2>err 3>&- &
  local pid=$! status=0
  begins "$1/a
--" out || { cat err; kill $pid; return 1; }
  echo 'more green tea, and green cups' >"$1/b"
  begins "$1/a
--
$1/b
$1/a
--" out || { kill $pid; return 1; }
  rm "$1/a"
  begins "$1/a
--
$1/b
$1/a
--
$1/b
--" out || { kill $pid; return 1; }
  kill $pid
  wait $pid || status=$?
  [ "$status" -eq 0 ]
  [ ! -s err ]
}

@test "watch.sh answers anew when files change" {
  cd "$BATS_TEST_TMPDIR"
  mkdir notes
  echo 'tea' >notes/a
  follows notes live
  "$build/gpuir" verify live
  # when the watch ends, so does the script
  run env PATH="$build:$PATH" "$root/examples/watch.sh" nowhere live tea
  [ "$status" -eq 1 ]
  [[ $output == *"the watch has ended"* ]]
}

@test "watch.sh answers from a mount of a live index" {
  needs_mount
  cd "$BATS_TEST_TMPDIR"
  mkdir notes m
  echo 'tea' >notes/a
  "$build/gpuir" index --live -q notes -o live
  "$build/gpuirfs" live m >mounting 2>&1 || skip "gpuirfs takes no live index: $(cat mounting)"
  local status=0
  MOUNT=m follows notes live || status=$?
  fusermount3 -u m || umount m || fusermount3 -u -z m
  [ "$status" -eq 0 ]
}

@test "mount-rank.sh ranks with cat" {
  needs_mount
  run "$root/examples/mount-rank.sh" "$mnt" computer memory
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = "documents with all words, best first:" ]
  diff <(printf '%s\n' "${lines[@]:1:3}") \
    <("$build/gpuir" query --tsv -m and -k 3 "$index" computer memory | cut -f 2)
  diff <(printf '%s\n' "${lines[@]:5:3}" | cut -f 2,4) \
    <("$build/gpuir" query --tsv -m or -k 3 "$index" computer memory | cut -f 2,4)
  [ "${lines[9]}" -eq "$("$build/gpuir" count "$index" computer memory)" ]
}

@test "mount-walk.sh walks the hits with ls" {
  needs_mount
  run "$root/examples/mount-walk.sh" "$mnt" wolf pack
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = "000001-wolf" ]
  [[ $output == *"000001-wolf: wolf n 1: any of various predatory carnivorous canine"* ]]
  [[ $output == *"of them, these mention a pack:"*"wolf pack"* ]]
}

@test "mount-join.sh joins two result lists with coreutils" {
  needs_mount
  run "$root/examples/mount-join.sh" "$mnt" @k=100/dog @k=100/wolf
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = "docIDs that both queries find:" ]
  both=$(comm -12 <(sort "$mnt/query/@k=100/dog") <(sort "$mnt/query/@k=100/wolf"))
  [ -n "$both" ]
  [[ $output == *"$both"* ]]
  [[ ${lines[-6]} == "both lists fused, best first:" ]]
  [[ ${lines[-5]} =~ ^0\.[0-9]{5}\ [0-9]+$ ]]
}

@test "mails.sh, mails.c: mails by sender and month" {
  cd "$BATS_TEST_TMPDIR"
  mkdir box
  mail() { printf 'From: %s\nTo: me@example.org\nSubject: %s\nDate: %s\n\n%s\n' "$@"; }
  mail 'Ann <ann@example.org>' 'The boat' 'Wed, 31 Jan 2024 23:30:00 +0000' 'the mooring is paid' >box/1.eml
  mail 'Ann <ann@example.org>' 'Tea' 'Thu, 01 Feb 2024 10:00:00 +0000' 'the mooring, again' >box/2.eml
  mail bob@example.org 'Boats' 'Fri, 02 Feb 2024 10:00:00 +0000' 'no mooring' >box/3.eml
  export MAILS=$PWD/mails.live PATH=$build:$PATH
  run "$root/examples/mails.sh" ann@example.org 2024-01 box mooring
  [ "$status" -eq 0 ]
  [ "$output" = $'2024-01-31T23:30:00Z\tann@example.org\t"The boat"' ]
  [ "$("$root/examples/mails.sh" '' 2024-02 box | wc -l)" -eq 2 ]
  mail bob@example.org 'Late' 'Fri, 29 Mar 2024 10:00:00 +0000' 'paid' >box/4.eml
  [ "$("$root/examples/mails.sh" bob@example.org '' box | wc -l)" -eq 2 ]
  run "$build/examples/mails" mails.live 'date=2024-02' mooring
  [ "$status" -eq 0 ]
  [ "${#lines[@]}" -eq 2 ]
  [[ $output == *'2024-02-01  ann@example.org  Tea'* ]]
  run "$build/examples/mails" mails.live 'from=bob@example.org'
  [ "$status" -eq 0 ]
  [ "${#lines[@]}" -eq 2 ]
  run "$build/examples/mails" mails.live 'sender=x'
  [ "$status" -eq 1 ]
  [[ $output == *"there is no field 'sender'"* ]]
}
