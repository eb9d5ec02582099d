#!/usr/bin/env bats
# Live indexes by the command: index --live, update, watch, add, delete, merge, and the reading commands on a folder.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  export root build PATH="$build:$PATH"
}

setup() {
  cd "$BATS_TEST_TMPDIR" || exit
  mkdir notes notes/sub
  echo 'green tea' >notes/a
  echo 'black tea and green cups' >notes/b
  printf 'tea in the morning\ncoffee at noon\nbeer at night\n' >notes/sub/c
  watcher=
}

teardown() {
  if [ -n "$watcher" ]; then kill "$watcher" 2>/dev/null || true; fi
}

# ---- helpers ----------------------------------------------------------------------------------------------------

# facts INDEX: what does not depend on the order of documents: names and scores, terms
facts() {
  local mode
  for mode in or and; do
    printf '%s\n' tea 'green tea' 'tea -green' 'coffee beer tea word1 word2' word3 |
      gpuir query -m $mode -k 10000 --tsv "$1" | cut -f 1,4,5 | LC_ALL=C sort
  done
  gpuir terms --tsv "$1" | cut -f 1-4
}

# like_fresh FOLDER OPTION... INPUT...: the live index answers as one that is built at once, in the language that it was
# founded with
like_fresh() {
  local folder=$1 lang
  shift
  rm -f fresh.gpuir
  lang=$(gpuir stats --json "$folder" | grep -o '"language":"[a-z]*"' | cut -d '"' -f 4)
  gpuir index -q --lang "$lang" "$@" -o fresh.gpuir
  facts fresh.gpuir >fresh.facts
  facts "$folder" >live.facts
  diff fresh.facts live.facts
  gpuir verify "$folder" >/dev/null
}

# names FOLDER: of all documents with the word tea, sorted
names() { gpuir query --mode or -k 1000 --tsv "$1" tea | cut -f 4 | LC_ALL=C sort | paste -sd ,; }

# says TEXT COMMAND...: it succeeds with TEXT in what it says on standard error, and prints nothing
says() {
  local text=$1
  shift
  run --separate-stderr "$@"
  # shellcheck disable=SC2154 # stderr is set by run
  if [ "$status" -ne 0 ] || [ -n "$output" ] || [[ $stderr != *"$text"* ]]; then
    printf 'command: %s\nstatus: %s\noutput: %s\nstderr: %s\nlacks: %s\n' "$*" "$status" "$output" "$stderr" "$text"
    return 1
  fi
}

# eventually COMMAND...: it succeeds within ten seconds
eventually() {
  for _ in $(seq 200); do
    if "$@" 2>/dev/null; then return; fi
    sleep 0.05
  done
  echo "never: $*"
  return 1
}

# finds FOLDER NAMES: these documents have the word tea
finds() { [ "$(names "$1")" = "$2" ]; }

# locked FOLDER: a writer has it
locked() { grep -q "FLOCK .*:$(stat -c %i "$1/lock") " /proc/locks; }

# old FILE...: as if written long ago
old() { touch -d '2 hours ago' "$@"; }

# preload: the library that lets system calls fail and ends programs
preload() {
  [ -e "$BATS_FILE_TMPDIR/faults.so" ] ||
    cc -std=gnu99 -shared -fPIC -o "$BATS_FILE_TMPDIR/faults.so" "$root/tests/support/faults.c" -ldl ||
    skip "the library that lets calls fail cannot be built here"
  faults=$BATS_FILE_TMPDIR/faults.so
}

# watch ARGUMENT...: begins to watch, and waits until it does
watch() {
  gpuir watch "$@" 2>watch.log 3>&- &
  watcher=$!
  eventually grep -q watching watch.log
}

# unwatch: ends it by SIGTERM; it must end cleanly
unwatch() {
  local pid=$watcher
  watcher=
  kill -TERM "$pid"
  wait "$pid"
}

# ---- making one --------------------------------------------------------------------------------------------------

@test "index --live makes a folder that answers as an index file" {
  says '3 new, 0 changed, 0 vanished, 0 unchanged files; 3 documents added, 0 deleted, 3 in all' \
    gpuir index --live notes -o live
  like_fresh live notes
  says '' gpuir index --live -q --chunk-lines 1 --store --positions --stop english notes/ -o chunks
  like_fresh chunks --chunk-lines 1 --store --positions --stop english notes/
  [ "$(gpuir count chunks '"green tea"')" = 1 ]
  gpuir stats chunks | grep -q '^stored_text *yes$'
}

@test "index --live without inputs makes an empty index, in an empty folder too" {
  mkdir empty
  gpuir index --live -q -o empty
  [ "$(gpuir stats --json empty | python3 -c 'import json, sys; print(json.load(sys.stdin)["documents"])')" = 0 ]
  gpuir update -q notes -o empty
  like_fresh empty notes
}

@test "a live index is not built anew, nor written over, and what fails leaves nothing" {
  gpuir index --live -q notes -o live
  fails 1 "which 'gpuir update' and 'gpuir add' change" gpuir index --live notes -o live
  fails 1 "which 'gpuir update' and 'gpuir add' change" gpuir index notes -o live
  fails 1 'in the folder of a live index' gpuir index notes -o live/000077.gpuir
  fails 1 'in the folder of a live index' gpuir index notes -o "live/$(cd live && echo 0*.gpuir)"
  like_fresh live notes
  mkdir full
  touch full/x
  fails 1 'full: ' gpuir index --live notes -o full
  [ "$(ls full)" = x ]
  fails 1 'nowhere: No such file' gpuir index --live nowhere -o other
  printf 'a\0b' >binary
  fails 1 'a binary file' gpuir index --live binary -o other
  [ ! -e other ]
  fails 2 'exclude each other' gpuir index --live --json notes -o other
  fails 2 'standard input is none' gpuir index --live - -o other
  fails 1 'no stemmer' gpuir index --live --stem klingon notes -o other || fails 1 'stem' gpuir index --live --stem klingon notes -o other
  [ ! -e other ]
}

# ---- update -------------------------------------------------------------------------------------------------------

@test "update takes new, changed and vanished files" {
  gpuir index --live -q notes -o live
  says '0 new, 0 changed, 0 vanished, 3 unchanged files; 0 documents added, 0 deleted, 3 in all' \
    gpuir update notes -o live
  before=$(cksum live/manifest)
  gpuir update notes -o live
  [ "$(cksum live/manifest)" = "$before" ]
  echo 'white tea' >notes/a
  rm notes/b
  echo 'new tea' >notes/sub/d
  says '1 new, 1 changed, 1 vanished, 1 unchanged file; 2 documents added, 2 deleted, 3 in all' \
    gpuir update notes -o live
  like_fresh live notes
  rm -r notes/sub
  gpuir update -q notes -o live
  like_fresh live notes
}

@test "update of some files leaves all others alone" {
  gpuir index --live -q --no-names notes -o live # an operand below another one has other words of paths
  echo 'white tea' >notes/a
  echo 'red tea' >notes/b
  echo 'more tea' >notes/sub/d
  says '0 new, 1 changed, 0 vanished, 0 unchanged files' gpuir update notes/b -o live
  says '1 new, 0 changed, 0 vanished, 1 unchanged file' gpuir update notes/sub notes/sub/c -o live
  says '0 new, 1 changed, 0 vanished, 3 unchanged files' gpuir update notes -o live
  like_fresh live --no-names notes
  rm notes/b
  says '0 new, 0 changed, 1 vanished, 0 unchanged files' gpuir update notes/b -o live
  like_fresh live --no-names notes
  fails 1 'notes/b: No such file' gpuir update notes/b -o live
  mv notes away
  fails 1 'notes: No such file' gpuir update notes -o live
  mv away notes
  like_fresh live --no-names notes
}

@test "operands that lie in one another: each file is read once, what is left out is counted once, nothing goes" {
  mkdir notes/.hid
  echo 'hidden tea' >notes/.hid/x
  echo 'more tea' >notes/.env
  gpuir index --live -q notes -o live
  files=$(gpuir stats --json live | grep -o '"documents":[0-9]*')
  for operands in 'notes notes/sub' 'notes/sub notes' 'notes ./notes/ notes/sub/c'; do
    # shellcheck disable=SC2086 # operands are parted
    gpuir update $operands -o live 2>err
    grep -q 'skipped: 2 hidden;' err
    grep -q ' 0 new, 0 changed, 0 vanished' err
    # shellcheck disable=SC2086
    gpuir index -q $operands -o once.gpuir
    [ "$(gpuir stats --json once.gpuir | grep -o '"documents":[0-9]*')" = "$files" ]
    # shellcheck disable=SC2086
    gpuir index -q --live $operands -o "live$((++i))"
    [ "$(gpuir stats --json "live$i" | grep -o '"documents":[0-9]*')" = "$files" ]
  done
  gpuir index -q notes notes/.env notes/.hid -o named.gpuir # what an operand names is no hidden file
  prints 1 gpuir count named.gpuir hidden
  prints 1 gpuir count named.gpuir more
  rm -r notes/sub
  fails 1 'notes/sub: No such file' gpuir update notes notes/sub -o live # nothing is changed: see the next
  [ "$(gpuir stats --json live | grep -o '"documents":[0-9]*')" = "$files" ]
}

@test "update: new bytes under old times are found, as are old files over newer ones" {
  gpuir index --live -q notes -o live
  # in the second in which it was read: the same size, inode and modification time
  touch -r notes/a stamp
  printf 'dirty tea' | dd of=notes/a conv=notrunc status=none
  touch -r stamp notes/a
  says '0 new, 1 changed' gpuir update notes -o live
  like_fresh live notes
  old notes/sub/c
  gpuir update -q notes -o live
  echo 'older tea' >older
  old older
  cp -p older notes/a
  says '0 new, 1 changed' gpuir update notes -o live
  like_fresh live notes
}

@test "update: an inode that is another's, with the same size and times, is another file" {
  gpuir index --live -q notes -o live
  cp -p notes/a other
  printf 'dirty tea' | dd of=other conv=notrunc status=none
  touch -r notes/a other
  mv other notes/a
  says '0 new, 1 changed' gpuir update notes -o live
  like_fresh live notes
}

@test "update: files from the future are compared by their bytes" {
  touch -d '2 years' notes/a notes/b
  gpuir index --live -q notes -o live
  says '0 new, 0 changed, 0 vanished, 3 unchanged' gpuir update notes -o live
  stamp=$(stat -c %Y notes/a)
  echo 'mauve tea' >notes/a
  touch -d "@$stamp" notes/a
  says '0 new, 1 changed, 0 vanished, 2 unchanged' gpuir update notes -o live
  says '0 new, 0 changed, 0 vanished, 3 unchanged' gpuir update notes -o live
  like_fresh live notes
  echo 'plaid tea and green cups' >notes/b # the clock was set right: its time goes back
  says '0 new, 1 changed, 0 vanished, 2 unchanged' gpuir update notes -o live
  like_fresh live notes
}

@test "update: without mtime a file that is merely touched, or has another inode, is left alone" {
  old notes/* notes/sub/*
  gpuir index --live -q --fields ext,dir,size notes -o live
  touch notes/a
  cp notes/b copy
  mv copy notes/b
  before=$(cksum live/manifest)
  says '0 new, 0 changed, 0 vanished, 3 unchanged' gpuir update notes -o live
  [ "$(cksum live/manifest)" = "$before" ]
  old notes/a
  printf 'dirty tea' | dd of=notes/a conv=notrunc status=none
  says '0 new, 1 changed, 0 vanished, 2 unchanged' gpuir update notes -o live
  like_fresh live --fields ext,dir,size notes
}

@test "update replaces all chunks of a file that shrinks, grows or becomes binary" {
  seq -f 'tea word%g' 1 100 >notes/long
  gpuir index --live -q --chunk-lines 7 notes -o live
  like_fresh live --chunk-lines 7 notes
  seq -f 'tea word%g' 1 10 >notes/long
  says '2 documents added, 15 deleted' gpuir update notes -o live
  like_fresh live --chunk-lines 7 notes
  seq -f 'tea word%g' 1 1000 >notes/long
  gpuir update -q notes -o live
  like_fresh live --chunk-lines 7 notes
  printf 'tea\0tea' >notes/long
  gpuir update -q notes -o live
  like_fresh live --chunk-lines 7 notes
  says '4 unchanged' gpuir update notes -o live
}

@test "update keeps how files are read: records, hidden files, links" {
  printf '1\tgreen tea\n2\tblack tea\n' >notes/table
  rm -r notes/sub notes/a notes/b
  mkdir notes/.hidden
  printf '3\thidden tea\n' >notes/.hidden/table
  printf '4\tlinked tea\n' >elsewhere
  ln -s ../elsewhere notes/link
  gpuir index --live -q --tsv --hidden --follow notes -o live
  finds live 1,2,3,4
  printf '5\tother tea\n' >elsewhere
  printf '1\tgreen tea\n' >notes/table
  gpuir update -q notes -o live
  finds live 1,3,5
  like_fresh live --tsv --hidden --follow notes
  printf 'no tab, but tea\n6\ttea\n' >notes/table
  fails 1 'notes/table:1: no tab' gpuir update notes -o live
  finds live 1,3,5
  gpuir update -q --skip-errors notes -o live
  finds live 3,5,6
}

@test "update leaves the index's own folder out" {
  gpuir index --live -q notes -o notes/live
  says '0 new, 0 changed' gpuir update notes -o notes/live
  fails 1 'a live index, of which no documents are made' gpuir update notes/live -o notes/live
  mv notes/live live
  like_fresh live notes
}

@test "a crash between commit and table: all files are read again" {
  preload
  gpuir index --live -q notes -o live
  echo 'white tea' >notes/a
  rm notes/b
  echo 'new tea' >notes/d
  # the first rename is the manifest's, the second the table's
  run env FAULTS_OP=rename FAULTS_AT=1 FAULTS_KILL=1 LD_PRELOAD="$faults" gpuir update notes -o live
  [ "$status" -eq 137 ]
  like_fresh live notes # the commit stands
  echo 'black tea again' >notes/b
  rm notes/a
  says '0 new, 3 changed, 1 vanished, 0 unchanged' gpuir update notes -o live
  like_fresh live notes
  says '0 new, 0 changed, 0 vanished, 3 unchanged' gpuir update notes -o live
  # the first commit of all
  run env FAULTS_OP=rename FAULTS_AT=3 FAULTS_KILL=1 LD_PRELOAD="$faults" gpuir index --live --chunk-lines 1 notes -o new
  [ "$status" -eq 137 ]
  echo 'x tea' >>notes/sub/c
  gpuir update -q notes -o new
  like_fresh new --chunk-lines 1 notes
}

@test "update: killed after any rename, write, unlink or sync, the next one makes it right" {
  preload
  local last=2
  [ -z "${GPUIR_LONG-}" ] || last=30
  for op in rename fsync unlink write; do
    for at in $(seq $last); do
      rm -rf live notes/new
      echo 'green tea' >notes/a
      gpuir index --live -q --lines notes -o live
      echo "white tea $op $at" >notes/a
      echo "new tea" >notes/new
      FAULTS_OP=$op FAULTS_AT=$at FAULTS_KILL=1 LD_PRELOAD="$faults" gpuir update -q notes -o live 2>/dev/null || true
      gpuir verify live >/dev/null
      gpuir update -q notes -o live
      like_fresh live --lines notes
    done
  done
}

@test "update: what fails leaves the commit before, and the next one makes it right" {
  preload
  gpuir index --live -q notes -o live
  echo 'white tea' >notes/a
  # no table can be written
  mkdir live/update.tmp
  fails 1 'the next update reads all files again' gpuir update notes -o live
  like_fresh live notes
  rmdir live/update.tmp
  says '0 new, 3 changed' gpuir update notes -o live
  like_fresh live notes
  # no commit can be made
  facts live >before
  echo 'yellow tea' >notes/a
  for at in 1 2; do
    fails 1 'gpuir: live' env FAULTS_OP=fsync FAULTS_AT=$at LD_PRELOAD="$faults" gpuir update notes -o live
    gpuir verify live >/dev/null
  done
  gpuir update -q notes -o live
  like_fresh live notes
}

@test "update: whatever call fails, the commit before or the new one stands, and the next update makes it right" {
  preload
  local op n at some=2
  gpuir index --live -q --lines notes -o before
  echo 'white tea' >notes/a
  rm notes/b
  echo 'new tea' >notes/sub/d
  for op in open read write truncate fsync rename unlink stat lock mmap malloc; do
    rm -rf live && cp -a before live
    FAULTS_OP=$op FAULTS_COUNT=$PWD/count LD_PRELOAD="$faults" gpuir update -q notes -o live
    n=$(cat count)
    [ "$n" -gt 0 ] || continue
    [ -z "${GPUIR_LONG-}" ] || some=$n
    for at in $(seq "$n" | shuf -n "$some" --random-source="$root/tests/e2e/live.bats"); do
      rm -rf live && cp -a before live
      run --separate-stderr env FAULTS_OP=$op FAULTS_AT="$at" LD_PRELOAD="$faults" gpuir update -q notes -o live
      [ "$status" -eq 0 ] || { [ "$status" -eq 1 ] && [ -n "$stderr" ]; } || { echo "$op $at: $status"; false; }
      gpuir verify live >/dev/null
      gpuir update -q notes -o live
      like_fresh live --lines notes || { echo "after $op $at"; false; }
    done
  done
}

@test "update: a damaged table is refused with words; without it files are read whole" {
  gpuir index --live -q notes -o live
  for bad in 'printf x' 'head -c 20 live/update' 'head -c -9 live/update' 'tail -c +2 live/update'; do
    cp live/update kept
    $bad >bad
    cp bad live/update
    fails 1 'without this file' gpuir update notes -o live
    fails 1 'without this file' gpuir watch notes -o live
    cp kept live/update
  done
  echo 'white tea' >notes/a
  rm notes/b live/update
  says '0 new, 2 changed, 1 vanished' gpuir update notes -o live
  like_fresh live notes
}

@test "update: what cannot be read stays in the index" {
  [ "$(id -u)" -ne 0 ] || command -v setpriv >/dev/null || skip "no setpriv"
  bound() {
    if [ "$(id -u)" -ne 0 ]; then "$@"; else setpriv --bounding-set=-dac_override,-dac_read_search "$@"; fi
  }
  gpuir index --live -q notes -o live
  chmod 0 notes/sub notes/a
  fails 3 'Permission denied' bound gpuir update notes -o live
  finds live notes/a,notes/b,notes/sub/c
  chmod 755 notes/sub notes/a
  gpuir update -q notes -o live
  like_fresh live notes
}

@test "update: misuse and failures" {
  gpuir index --live -q notes -o live
  for command in update watch; do
    fails 2 '-o FOLDER is missing' gpuir $command notes
    fails 2 'an INPUT is missing' gpuir $command -o live
    fails 2 "'gpuir add' takes it" gpuir $command - -o live
    fails 2 'not a whole number' gpuir $command --memory x notes -o live
    fails 1 "which 'gpuir index --live' makes" gpuir $command notes -o nowhere
    fails 1 "which 'gpuir index --live' makes" gpuir $command notes -o notes
    gpuir index -q notes -o file.gpuir
    fails 1 "which 'gpuir index --live' makes" gpuir $command notes -o file.gpuir
    fails 1 'nothing: No such file' gpuir $command nothing -o live
  done
}

# Files are written, changed in place, cut, appended to, renamed, copied with their times and removed at random.
@test "histories of updates end as one build does" {
  local rounds=5 round
  [ -z "${GPUIR_LONG-}" ] || rounds=300
  for options in '' '--chunk-lines 3' '--lines --store --positions'; do
    rm -rf live tree
    mkdir tree tree/x tree/y
    # shellcheck disable=SC2086 # options are words
    gpuir index --live -q $options tree -o live
    for round in $(seq $rounds); do
      python3 - "$round" "$options" <<'PY'
import os, random, shutil, sys
r = random.Random(" ".join(sys.argv[1:]))
line = lambda: " ".join(r.choice(["tea", "green", "coffee", "beer", "word%d" % r.randrange(9)]) for _ in range(4)) + "\n"
files = lambda: sorted(os.path.join(d, f) for d, _, fs in os.walk("tree") for f in fs)
some = lambda: r.choice(files()) if files() else None
name = lambda: os.path.join("tree", r.choice(["", "x", "y", "x/z"]), "f%d" % r.randrange(20))
for _ in range(r.randrange(1, 9)):
    kind, old, new = r.randrange(7), some(), name()
    os.makedirs(os.path.dirname(new), exist_ok=True)
    if kind < 2 or not old: open(new, "w").writelines(line() for _ in range(r.randrange(9)))
    elif kind == 2: open(old, "a").write(line())
    elif kind == 3: os.truncate(old, r.randrange(os.path.getsize(old) + 1))
    elif kind == 4: os.remove(old)
    elif kind == 5: os.replace(old, new)
    elif old != new: shutil.copy2(old, new)
    if r.randrange(4) == 0 and os.path.exists(new): os.utime(new, (r.randrange(10**9, 3 * 10**9),) * 2)
PY
      gpuir update -q tree -o live
      if [ -z "$(find tree -type f -size +0)" ]; then continue; fi
      # shellcheck disable=SC2086
      like_fresh live $options tree
    done
    gpuir merge -q --all live
    # shellcheck disable=SC2086
    like_fresh live $options tree
  done
}

# ---- add, delete, merge --------------------------------------------------------------------------------------------

@test "add takes every format, names and replaces" {
  gpuir index --live -q --store -o live
  echo 'white tea' | gpuir add -q --name first - -o live
  echo 'red tea' | gpuir add -q --name first - -o live
  finds live first,first
  says '1 document added, 2 deleted, 1 in all' bash -c 'echo "blue tea" | gpuir add --name first --replace - -o live'
  [ "$(gpuir count live blue)" = 1 ]
  gpuir add -q --lines notes/sub/c -o live
  printf '1\tgreen tea\n2\tblack tea\n' | gpuir add -q --tsv - -o live
  printf '{"id":"3","contents":"json tea"}\n' | gpuir add -q --jsonl - -o live
  printf '<DOC><DOCNO>4</DOCNO>trec tea</DOC>\n' | gpuir add -q --trec - -o live
  gpuir add -q --chunk-lines 2 notes/sub/c -o live
  finds live 1,2,3,4,first,notes/sub/c:1,notes/sub/c:1-2
  printf '2\tcup of tea\n3\tno more\n' | gpuir add -q --replace --tsv - -o live
  finds live 1,2,4,first,notes/sub/c:1,notes/sub/c:1-2
  [ "$(gpuir count live black)" = 0 ]
  gpuir verify live
}

@test "what add --replace has replaced comes back when its file changes, unless update --replace makes names keys" {
  mkdir src
  printf '{"id":"k1","contents":"old tea"}\n{"id":"k2","contents":"green tea"}\n' >src/a.jsonl
  printf '{"id":"k3","contents":"black tea"}\n' >src/b.jsonl
  touch -d '1 hour ago' src/*
  gpuir index --live -q --jsonl --store src -o live
  echo '{"id":"k1","contents":"new tea"}' | gpuir add -q --replace --jsonl - -o live
  finds live k1,k2,k3
  # neither file has changed, so neither is read
  says '0 new, 0 changed, 0 vanished, 2 unchanged files' gpuir update src -o live
  finds live k1,k2,k3
  [ "$(gpuir count live new)" = 1 ]
  # of a file that was added by name all documents are replaced
  gpuir add -q --jsonl src/b.jsonl -o live
  finds live k1,k2,k3,k3
  says '1 changed, 0 vanished, 1 unchanged file' gpuir update src -o live
  finds live k1,k2,k3
  # names are no keys unless that is asked for
  cp -r live other
  printf '{"id":"k1","contents":"newest tea"}\n' >src/a.jsonl
  gpuir update -q src -o live
  finds live k1,k1,k3
  says '1 document added, 2 deleted, 2 in all' gpuir update --replace src -o other
  finds other k1,k3
  [ "$(gpuir count other newest)" = 1 ]
  # documents that were deleted come back, also where some were added later
  gpuir delete -q other k3
  echo tea | gpuir add -q --name k4 - -o other
  gpuir update -q src -o other
  finds other k1,k3,k4
  gpuir verify other
}

@test "a folder that others may write says nothing of files that documents were added beside" {
  gpuir index --live -q notes -o live
  chmod 777 live
  touch -d '1 hour ago' notes/* notes/sub/*
  gpuir update -q notes -o live
  echo tea | gpuir add -q - -o live
  says '0 unchanged' gpuir update notes -o live
  chmod 755 live
  echo tea | gpuir add -q - -o live
  says '0 new, 0 changed' gpuir update notes -o live
  # a damaged table stops no addition
  echo damage >>live/update
  echo tea | gpuir add -q - -o live
  fails 1 'its checksum is wrong' gpuir update notes -o live
}

@test "add: misuse and failures leave the index as it was" {
  gpuir index --live -q notes -o live
  facts live >before
  fails 2 'an INPUT is missing' gpuir add -o live
  fails 2 '-o FOLDER is missing' gpuir add notes
  fails 2 'the name is empty' gpuir add --name '' notes/a -o live
  fails 2 'another format' gpuir add --tsv --lines notes/a -o live
  fails 2 'given once' gpuir add - - -o live
  fails 1 "which 'gpuir index --live' makes" gpuir add notes -o nowhere
  [ ! -e nowhere ]
  fails 1 'cannot have one name' gpuir add --name x notes -o live
  fails 1 'no tab' gpuir add --tsv notes/a -o live
  fails 1 'no document was found' bash -c 'gpuir add - -o live --tsv </dev/null'
  facts live | diff before -
}

@test "delete by name and by source" {
  gpuir index --live -q --lines notes -o live
  says '0 documents added, 1 deleted, 4 in all' gpuir delete live notes/sub/c:1
  finds live notes/a:1,notes/b:1
  says '0 documents added, 2 deleted, 2 in all' gpuir delete --source live ./notes/sub/c
  fails 1 "no document has the name 'x'" gpuir delete live x notes/a:1
  finds live notes/b:1
  fails 1 "no document from 'notes/a'" gpuir delete --source live notes/a
  says '0 in all' bash -c 'printf "notes/b:1\n" | gpuir delete live -'
  finds live ''
  gpuir verify live >/dev/null
  fails 2 'FOLDER is missing' gpuir delete
  fails 2 'a NAME is missing' gpuir delete live
  fails 1 "which 'gpuir index --live' makes" gpuir delete notes a
  # the files are there: an update brings their documents back
  gpuir update -q notes -o live
  like_fresh live --lines notes
}

@test "merge keeps segments that are not worth it; --all makes one of all" {
  gpuir index --live -q --tsv -o live
  # each half as large as the one before and no smaller: they stay apart
  for n in 81 27 9 3 1; do
    seq $((n * 1000)) $((n * 1000 + n - 1)) | sed 's/.*/d&\ttea word&/' | gpuir add -q --tsv - -o live
  done
  [ "$(gpuir stats --json live | grep -o '"first"' | wc -l)" -eq 5 ]
  says '5 segments, 5 before; 0 deleted' gpuir merge live
  gpuir delete -q live d9001 d27002
  facts live >before
  gpuir verify live | grep -q '119 documents, .*, 5 segments, 2 deleted$'
  says '1 segment, 5 before; 0 deleted documents are left' gpuir merge --all --memory 8 live
  facts live | diff before -
  gpuir stats --json live | python3 -c 'import json, sys
s = json.load(sys.stdin)
assert s["documents"] == 119 and s["deleted"] == 0 and len(s["segments"]) == 1'
  for n in 81 27 9 3 1; do
    seq $((n * 1000)) $((n * 1000 + n - 1)) | grep -vxE '9001|27002' | sed 's/.*/d&\ttea word&/'
  done | gpuir index -q --tsv - -o built.gpuir
  gpuir query -k 200 --tsv built.gpuir tea | diff - <(gpuir query -k 200 --tsv live tea)
  says '1 segment, 1 before' gpuir merge --all live
  fails 2 'FOLDER is missing' gpuir merge
  fails 2 'one FOLDER only' gpuir merge live live
  fails 1 "which 'gpuir index --live' makes" gpuir merge built.gpuir
}

@test "one writer at a time; readers read on" {
  gpuir index --live -q notes -o live
  mkfifo pipe
  gpuir add -q --name slow - -o live <pipe 3>&- &
  pid=$!
  exec 9>pipe
  eventually locked live
  for command in 'update notes -o live' 'add notes -o live' 'delete live x' 'merge live'; do
    # shellcheck disable=SC2086
    fails 1 'gpuir: live: another writer has this live index' gpuir $command
  done
  finds live notes/a,notes/b,notes/sub/c
  echo 'slow tea' >&9
  exec 9>&-
  wait $pid
  finds live notes/a,notes/b,notes/sub/c,slow
}

@test "SIGTERM before the commit leaves the index as it was" {
  gpuir index --live -q notes -o live
  mkfifo pipe
  gpuir add --name slow - -o live <pipe 2>log 3>&- &
  pid=$!
  exec 9>pipe
  eventually locked live
  kill -TERM $pid
  status=0
  wait $pid || status=$?
  exec 9>&-
  [ "$status" -eq 143 ]
  grep -q 'live is as it was' log
  like_fresh live notes
  gpuir update -q notes -o live
}

# ---- reading commands -----------------------------------------------------------------------------------------------

# several: a live index of three segments, one document of which is deleted
several() {
  gpuir index --live -q --tsv --store --positions -o live
  seq 1 20 | sed 's/.*/d&\tgreen tea word& number&/' | gpuir add -q --tsv - -o live
  printf 'e1\tblack tea cups\ne2\tgreen cups\ne3\tmore\ne4\tmore\ne5\tmore\n' | gpuir add -q --tsv - -o live
  printf 'f1\ttea\n' | gpuir add -q --tsv - -o live
  gpuir delete -q live e1
  { seq 1 20 | sed 's/.*/d&\tgreen tea word& number&/'; printf 'e2\tgreen cups\ne3\tmore\ne4\tmore\ne5\tmore\nf1\ttea\n'; } |
    gpuir index -q --tsv --store --positions - -o built.gpuir
}

@test "query, count, explain, terms and serve answer for all segments" {
  several
  for query in tea 'green tea' 'tea -green' 'green cups' '"green tea"' 'wor*' black; do
    for mode in and or andor; do
      gpuir query -m $mode -k 30 --tsv live "$query" | cut -f 1,3,4 >a || true
      gpuir query -m $mode -k 30 --tsv built.gpuir "$query" | cut -f 1,3,4 | diff - a
    done
    [ "$(gpuir count live "$query")" = "$(gpuir count built.gpuir "$query")" ]
  done
  docid=$(gpuir query --tsv -m and live tea -green | cut -f 2)
  other=$(gpuir query --tsv -m and built.gpuir tea -green | cut -f 2)
  gpuir explain live "$docid" tea | sed "s/^document *[0-9]*/document/; /^plan/d" >a
  gpuir explain built.gpuir "$other" tea | sed "s/^document *[0-9]*/document/; /^plan/d" | diff - a
  fails 1 'there is no document 20' gpuir explain live 20 tea
  fails 1 'there is no document 26' gpuir explain live 26 tea
  gpuir terms --tsv live | cut -f 1-4 >a
  gpuir terms --tsv built.gpuir | cut -f 1-4 | diff - a
  for options in '--sort df' '--sort cf --limit 3' '--prefix wor' '--prefix word1 --sort df --limit 2' '--limit 0'; do
    # shellcheck disable=SC2086
    gpuir terms --tsv $options live | cut -f 1-4 >a
    # shellcheck disable=SC2086
    gpuir terms --tsv $options built.gpuir | cut -f 1-4 | diff - a
  done
  gpuir terms --json live tea | grep -q '^{"term":"tea","df":21,"cf":21,'
  fails 1 "no term 'black'" gpuir terms live black
  fails 1 "no term 'Tea' (the index's analyzer makes 'tea' of it)" gpuir terms live Tea
  [ -z "$(gpuir terms --prefix bla live || echo "$?" >code)" ]
  [ "$(cat code)" = 1 ]
  printf 'COUNT\t+tea\nTOP_10_COUNT\tgreen cups\nCOUNT\tblack\n' >requests
  gpuir serve --stdio live <requests >a
  gpuir serve --stdio built.gpuir <requests | diff - a
}

@test "stats, verify and bench of several segments" {
  several
  gpuir stats live >s
  grep -q '^documents  *25$' s
  grep -q '^deleted  *1$' s
  grep -q '^segment.1  *5 documents, 1 deleted, ' s
  gpuir stats --json live | python3 -c 'import json, sys
s = json.load(sys.stdin)
assert [(p["first"], p["documents"], p["deleted"]) for p in s["segments"]] == [(0, 20, 0), (20, 5, 1), (25, 1, 0)]
assert sum(p["terms"] for p in s["segments"]) == s["terms"]
assert sum(p["postings"] for p in s["segments"]) == s["postings"]
assert sum(p["file_bytes"] for p in s["segments"]) == s["file_bytes"]'
  [ "$(gpuir verify live)" = "live: ok, 25 documents, 140 postings, 3 segments, 1 deleted" ]
  gpuir bench --sample 50 --min-df 1 --repeat 1 --warmup 0 --modes and,or,count live | grep -q '^and  *50 '
}

@test "verify finds damage in the manifest and in each segment" {
  several
  for file in live/manifest live/0*.gpuir; do
    cp "$file" kept
    size=$(stat -c %s "$file")
    printf '\x55' | dd of="$file" bs=1 seek=$((size - 20)) conv=notrunc status=none
    if cmp -s "$file" kept; then printf '\xaa' | dd of="$file" bs=1 seek=$((size - 20)) conv=notrunc status=none; fi
    fails 1 'gpuir: live: ' gpuir verify live
    cp kept "$file"
    gpuir verify live
  done
  rm "$file"
  fails 1 'a file that the manifest names' gpuir verify live
  mkdir none
  fails 1 'not a live index' gpuir query none tea
}

@test "export, reorder, lab and the GPU name gpuir merge" {
  several
  for command in 'export live out.ciff' 'reorder --order name live out.gpuir' 'lab codecs -o out live'; do
    # shellcheck disable=SC2086
    run gpuir $command
    [ "$status" -eq 1 ]
    [[ $output == *"live: "*"'gpuir merge --all live'"* ]]
    [ ! -e out.ciff ]
    [ ! -e out.gpuir ]
  done
  fails 1 '--backend gpu: ' gpuir query --backend gpu live tea
  gpuir merge -q --all live
  gpuir export live out.ciff
  gpuir reorder -q --order name live out.gpuir
  gpuir verify out.gpuir
}

@test "readers beside a writer see one commit or the next" {
  gpuir index --live -q -o live
  for i in 1 2 3; do echo "tea t$i" | gpuir add -q --name "n$i" - -o live; done
  (for i in $(seq 40); do echo "tea t$i" | gpuir add -q --replace --name "n$((i % 3 + 1))" - -o live; done) 3>&- &
  pid=$!
  while kill -0 $pid 2>/dev/null; do
    finds live n1,n2,n3
    gpuir verify live >/dev/null
  done
  wait $pid
}

# ---- watch ----------------------------------------------------------------------------------------------------------

@test "watch follows new, changed, renamed and removed files and folders" {
  gpuir index --live -q notes -o notes/live
  watch notes -o notes/live
  echo 'new tea' >notes/n
  eventually finds notes/live notes/a,notes/b,notes/n,notes/sub/c
  mkdir -p notes/deep/er
  echo 'deep tea' >notes/deep/er/d
  eventually finds notes/live notes/a,notes/b,notes/deep/er/d,notes/n,notes/sub/c
  mv notes/deep notes/moved
  eventually finds notes/live notes/a,notes/b,notes/moved/er/d,notes/n,notes/sub/c
  echo 'deeper tea' >notes/moved/er/e # where it is watched by its new name
  eventually finds notes/live notes/a,notes/b,notes/moved/er/d,notes/moved/er/e,notes/n,notes/sub/c
  echo 'tea as editors save it' >notes/tmp
  mv notes/tmp notes/a
  rm -r notes/moved
  eventually finds notes/live notes/a,notes/b,notes/n,notes/sub/c
  eventually bash -c '[ "$(gpuir count notes/live editors)" = 1 ]'
  unwatch
  mv notes/live live
  like_fresh live notes
}

@test "watch: a .gitignore that changes lets folders in" {
  mkdir notes/left
  echo left >notes/.gitignore
  gpuir index --live -q notes -o live
  watch notes -o live
  grep -q 'watching 2 folders' watch.log
  : >notes/.gitignore
  sleep 0.3
  echo 'green again' >notes/left/new
  eventually bash -c "[ \"\$(gpuir count live again)\" = 1 ]"
  unwatch
}

@test "watch: after a change in its own folder there is quiet" {
  gpuir index --live -q notes -o notes/live
  watch notes -o notes/live
  echo 'new tea' >notes/n
  eventually grep -q '1 new' watch.log
  sleep 0.5
  [ "$(wc -l <watch.log)" -eq 3 ] # its own index is left out, which is said once
  unwatch
}

@test "watch: events that were lost mean a full update" {
  limit=$(cat /proc/sys/fs/inotify/max_queued_events)
  [ "$limit" -le 20000 ] || skip "the queue of inotify is long"
  gpuir index --live -q notes -o live
  watch notes -o live
  kill -STOP "$watcher"
  for ((i = 0; i < limit / 4; i++)); do
    : >notes/x
    : >notes/y
  done
  rm notes/x notes/y
  mkdir notes/late # too late for the queue
  echo 'late tea' >notes/late/l
  kill -CONT "$watcher"
  eventually finds live notes/a,notes/b,notes/late/l,notes/sub/c
  echo 'later tea' >notes/late/m
  eventually finds live notes/a,notes/b,notes/late/l,notes/late/m,notes/sub/c
  unwatch
}

@test "watch: a stream of changes is followed while it lasts" {
  gpuir index --live -q notes -o live
  watch notes -o live
  (while [ ! -e stop ]; do echo 'a stream of tea' >>notes/stream; sleep 0.02; done) 3>&- &
  pid=$!
  eventually finds live notes/a,notes/b,notes/stream,notes/sub/c
  touch stop
  wait $pid
  unwatch
}

@test "watch waits for another writer, and ends by signals" {
  gpuir index --live -q notes -o live
  watch notes -o live
  mkfifo pipe
  gpuir add -q --name slow - -o live <pipe 3>&- &
  pid=$!
  exec 9>pipe
  eventually locked live
  echo 'new tea' >notes/n
  sleep 0.3
  finds live notes/a,notes/b,notes/sub/c
  echo 'slow tea' >&9
  exec 9>&-
  wait $pid
  eventually finds live notes/a,notes/b,notes/n,notes/sub/c,slow
  kill -INT "$watcher" || true
  unwatch
}

@test "watch of one file, which comes and goes" {
  gpuir index --live -q notes/a notes/b -o live
  watch notes/a -o live
  rm notes/a
  eventually finds live notes/b
  touch notes/other
  echo 'tea again' >notes/a
  eventually finds live notes/a,notes/b
  unwatch
}

@test "watch ends when the folder has gone, and deletes nothing" {
  gpuir index --live -q notes -o live
  watch notes -o live
  mv notes away
  status=0
  wait "$watcher" || status=$?
  watcher=
  [ "$status" -eq 1 ]
  grep -q 'notes: No such file' watch.log
  finds live notes/a,notes/b,notes/sub/c
}

# ---- what is no operator ---------------------------------------------------------------------------------------------

@test "operators of other engines are words, which is said once" {
  gpuir index -q notes -o x.gpuir
  for word in AND OR NOT NEAR '&&' '||' +tea title:tea tea~2 tea^1.5 -field:x; do
    run --separate-stderr gpuir query -m or x.gpuir tea "$word"
    [ "$status" -eq 0 ]
    [[ $stderr == "gpuir: note: '$word' is no operator"* ]] || { echo "$word: $stderr"; false; }
    run --separate-stderr gpuir count -m or x.gpuir tea "$word"
    [[ $stderr == "gpuir: note: '$word' is no operator"* ]]
    run --separate-stderr gpuir explain x.gpuir 0 tea "$word"
    [[ $stderr == "gpuir: note: '$word' is no operator"* ]]
  done
  printf 'tea AND cups\ncoffee OR tea\n' >queries
  [ "$(gpuir query --mode and x.gpuir <queries 2>&1 >/dev/null | grep -c 'is no operator')" -eq 1 ]
  for word in and or not note: std::string 12:30 http://host a-b 5~6 -tea ~tea tea~ 'a+b' C++ 'x^' '(tea)'; do
    run --separate-stderr gpuir query -m or x.gpuir tea green "$word"
    [[ $stderr != *note:* ]] || { echo "$word: $stderr"; false; }
  done
  gpuir index -q --positions notes -o p.gpuir
  run --separate-stderr gpuir query -m or p.gpuir '"tea AND green" tea'
  [ -z "$stderr" ]
  run --separate-stderr gpuir query -m or --no-operators x.gpuir tea AND
  [ -z "$stderr" ]
}

@test "documents that cannot be found are told of, whatever is to be quiet" {
  cd "$BATS_TEST_TMPDIR"
  mkdir long
  printf 'x%.0s' $(seq 300) >long/a
  echo word >long/b
  gpuir index -q --no-names --live long -o longs 2>err
  grep -q '1 document has no words but some of more than 255 bytes' err
  printf 'y%.0s' $(seq 300) | gpuir add -q --name y - -o longs 2>err
  grep -q '1 document has no words but' err
  echo word | gpuir add -q --name z - -o longs 2>err
  [ ! -s err ]
  printf 'z%.0s' $(seq 300) >long/a
  gpuir update -q long -o longs 2>err
  grep -q '1 document has no words but' err
}
