#!/usr/bin/env bats
# Live indexes lose and leak nothing: folders of others, kills while one is made, files that cannot be read, disks that
# are not mounted, settings that somebody else may have written, other writers.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  export root build PATH="$build:$PATH"
}

setup() {
  cd "$BATS_TEST_TMPDIR" || exit
  umask 022
  mkdir notes
  echo 'green tea' >notes/a
  echo 'black tea' >notes/b
  printf 'tea at noon\nmore tea\n' >notes/c
}

# names FOLDER: of all documents with the word tea, sorted
names() { gpuir query --mode or -k 100000 --tsv "$1" tea | cut -f 4 | LC_ALL=C sort | paste -sd ' '; }

# facts FOLDER: all hits with their scores
facts() {
  for query in tea green old new 'tea old -w7' 'w1 w2 w3'; do
    gpuir query --mode or -k 100000 --tsv "$1" "$query" | cut -f 3,4 | LC_ALL=C sort || true
  done
}

preload() {
  [ -e "$BATS_FILE_TMPDIR/faults.so" ] ||
    cc -std=gnu99 -shared -fPIC -o "$BATS_FILE_TMPDIR/faults.so" "$root/tests/support/faults.c" -ldl ||
    skip "the library that lets calls fail cannot be built here"
  faults=$BATS_FILE_TMPDIR/faults.so
}

# bound COMMAND...: as who may not read what permissions forbid
bound() {
  if [ "$(id -u)" -ne 0 ]; then "$@"; else setpriv --bounding-set=-dac_override,-dac_read_search "$@"; fi
}

state() { (cd "$1" && find . -printf '%p %y %m %U %G %i\n' | LC_ALL=C sort && cat -- * | cksum); }

# ---- folders ---------------------------------------------------------------------------------------------------

@test "a folder with files that are named like an index's is not taken for one, and keeps all of them" {
  gpuir index -q notes -o ix
  head -c 1000 /dev/zero >zero
  for lock in mine ''; do
    rm -rf d
    mkdir d
    printf %s "$lock" >d/lock
    cp ix d/20261127.gpuir
    cp ix d/20261126.gpuir
    state d >before
    for input in notes zero nowhere; do
      run gpuir index -q --live $input -o d
      [ "$status" -eq 1 ]
      state d | diff before -
    done
    rm d/2*
    cp ix d/000001.gpuir # also the first segment's name, where documents are in it
    echo mine >d/update
    state d >before
    fails 1 'the folder has other files' gpuir index --live notes -o d
    rm d/update
    state d >before
    fails 1 'd: no live index' gpuir index --live notes -o d
    state d | diff before -
  done
  mkdir e
  for name in update manifest.tmp 000001.gpuir; do
    echo mine >e/$name
    fails 1 'other files' gpuir index --live notes -o e
    [ "$(cat e/$name)" = mine ]
    [ "$(ls e)" = $name ]
    rm e/$name
  done
}

@test "a prepared folder keeps its mode, owner and attributes; links, mount points and lost+found work" {
  mkdir -m 2700 private
  setfattr -n user.kept -v yes private 2>/dev/null || true
  stat -c '%i %a %u %g' private >before
  getfattr -n user.kept private >xattrs 2>/dev/null || true
  printf 'a\0b' >binary
  fails 1 'a binary file' gpuir index --live binary -o private
  [ -z "$(ls -A private)" ]
  gpuir index -q --live notes -o private
  stat -c '%i %a %u %g' private | diff before -
  getfattr -n user.kept private 2>/dev/null | diff xattrs -
  mkdir real
  ln -s real link
  gpuir index -q --live notes -o link
  [ -L link ]
  [ "$(names real)" = 'notes/a notes/b notes/c' ]
  mkdir disk
  if mount -t tmpfs -o size=4m none disk 2>/dev/null; then
    mkdir disk/lost+found
    run gpuir index -q --live notes -o disk
    found=$(names disk)
    umount disk
    [ "$status" -eq 0 ]
    [ "$found" = 'notes/a notes/b notes/c' ]
  fi
}

@test "index --live killed at any moment: its settings are there, and it can be made again" {
  preload
  mkdir notes/.d
  echo 'hidden tea' >notes/.d/e
  gpuir index -q --live --lines --hidden notes -o right
  names right >right.names
  FAULTS_OP=change FAULTS_COUNT=$PWD/count LD_PRELOAD="$faults" gpuir index -q --live --lines --hidden notes -o x
  for at in $(seq "$(cat count)"); do
    rm -rf x
    FAULTS_OP=change FAULTS_AT="$at" FAULTS_KILL=1 LD_PRELOAD="$faults" \
      gpuir index -q --live --lines --hidden notes -o x 2>/dev/null || true
    if [ -e x/manifest ]; then gpuir update -q notes -o x; else gpuir index -q --live --lines --hidden notes -o x; fi
    names x | diff right.names - || { echo "killed behind change $at"; false; }
    rm x/0*.gpuir
    [ "$(ls x)" = $'lock\nmanifest\nupdate' ] || { ls x; false; }
  done
}

# ---- what cannot be read -----------------------------------------------------------------------------------------

@test "a file that cannot be read to its end keeps its documents, wherever that happens" {
  preload
  seq -f 'tea old w%g' 1 10000 | sed 's/$/ some words to fill a line, so that it is read in many pieces: 0123456789/' >notes/long
  gpuir index -q --live --lines --memory 1 notes -o base
  facts base >before
  sed 's/old/new/' notes/long >long
  sed 's/old/new/' notes/long >>long # twice as many, so that runs are spilled
  cat long >notes/long
  cp -r base x
  FAULTS_OP=read FAULTS_COUNT=$PWD/count LD_PRELOAD="$faults" gpuir update -q --memory 1 --threads 1 notes -o x
  facts x >after
  some=$(cat count)
  [ "$some" -gt 8 ]
  failed=0
  for at in $(seq "$some"); do
    rm -rf x
    cp -r base x
    run env FAULTS_OP=read FAULTS_AT="$at" LD_PRELOAD="$faults" gpuir update -q --memory 1 --threads 1 notes -o x
    facts x >now
    case $status in
      0) diff -q after now ;;
      3)
        diff -q before now
        [[ $output == *'notes/'*'Input/output error'* ]]
        failed=$((failed + 1))
        gpuir update -q notes -o x
        facts x | diff -q after -
        ;;
      1) diff -q before now || diff -q after now ;;
      *) false ;;
    esac || { echo "read $at of $some: status $status, $output"; false; }
  done
  [ "$failed" -ge 3 ]
}

@test "a filter that fails once loses nothing; the next update takes the file" {
  printf '#!/bin/sh\n[ ! -e broken ] || { head -c 3; exit 1; }\nexec cat\n' >f
  chmod +x f
  gpuir index -q --live --filter "txt=$PWD/f" notes -o live
  echo 'more tea' >notes/d.txt
  echo 'tea' >notes/e.txt
  gpuir update -q --filter "txt=$PWD/f" notes -o live
  echo 'other tea' >notes/d.txt
  rm notes/e.txt
  touch broken
  run gpuir update --filter "txt=$PWD/f" notes -o live
  [ "$status" -eq 3 ]
  [[ $output == *'notes/d.txt: no text'* ]]
  [ "$(names live)" = 'notes/a notes/b notes/c notes/d.txt' ]
  [ "$(gpuir count live more)" = 2 ] # c and the old d
  rm broken
  gpuir update -q --filter "txt=$PWD/f" notes -o live
  [ "$(gpuir count live other)" = 1 ]
  # add --replace: what was to be replaced stays, too
  gpuir add -q --replace --filter "txt=$PWD/f" notes/d.txt -o live
  touch broken
  mkdir more
  echo 'new tea' >more/n.txt
  echo 'new tea' >more/m
  run gpuir add --replace --filter "txt=$PWD/f" more -o live
  [ "$status" -eq 3 ]
  [ "$(names live)" = 'more/m notes/a notes/b notes/c notes/d.txt' ]
}

@test "status 3: done, but not all could be read: ten are named, or all" {
  [ "$(id -u)" -ne 0 ] || command -v setpriv >/dev/null || skip "no setpriv"
  for i in $(seq -w 15); do echo "tea $i" >"notes/f$i"; done
  gpuir index -q --live notes -o live
  chmod 0 notes/f*
  if bound cat notes/f01 >/dev/null 2>&1; then skip "permissions do not bind this user"; fi
  for command in 'index -q notes -o file' 'index -q --live notes -o other' 'update -q notes -o live' 'add -q notes -o live'; do
    # shellcheck disable=SC2086
    run bound gpuir $command
    [ "$status" -eq 3 ]
    [ "$(grep -c 'Permission denied' <<<"$output")" -eq 10 ]
    [[ $output == *'5 more could not be read; -v names all'* ]]
    rm -rf other
    # shellcheck disable=SC2086
    run bound gpuir $command -v
    [ "$status" -eq 3 ]
    [ "$(grep -c 'Permission denied' <<<"$output")" -eq 15 ]
  done
  gpuir delete -q live x || true
  [ "$(gpuir count live 15)" = 1 ] # what was there stays
  chmod 644 notes/f*
  run gpuir update -q notes -o live
  [ "$status" -eq 0 ]
}

@test "an empty folder in place of a full one changes nothing, unless that is said" {
  gpuir index -q --live notes -o live
  mv notes away
  mkdir notes
  before=$(cksum live/*)
  fails 1 'notes: the folder is empty, and the index has files of it' gpuir update notes -o live
  [ "$(cksum live/*)" = "$before" ]
  fails 1 'notes: the folder is empty' gpuir update away notes -o live # all or nothing
  [ "$(cksum live/*)" = "$before" ]
  gpuir watch notes -o live 2>log 3>&- &
  watcher=$!
  sleep 1.3
  [ "$(grep -c 'nothing is changed until it is filled' log)" -eq 1 ] || { kill $watcher; cat log; false; }
  cp away/a away/b notes/
  for _ in $(seq 100); do
    [ "$(names live)" != 'notes/a notes/b' ] || break
    sleep 0.05
  done
  kill $watcher
  wait $watcher
  [ "$(names live)" = 'notes/a notes/b' ]
  rm notes/*
  gpuir update -q --yes-all-gone notes -o live
  [ -z "$(names live)" ]
  gpuir update -q notes -o live # nothing is there that could be lost
}

# ---- settings, locks ---------------------------------------------------------------------------------------------

@test "settings that widen what is read count only where nobody else may have written them" {
  echo 'hidden tea' >notes/.h
  echo 'outside tea' >o
  ln -s ../o notes/link
  gpuir index -q --live --hidden --follow notes -o live
  echo 'more tea' >notes/d
  before=$(cksum live/*)
  refused() {
    fails 1 "live: others may have written its settings, by which more is read: say --hidden --follow, or --trust-settings" \
      gpuir update notes -o live
    fails 1 "say --hidden --follow" gpuir watch notes -o live
    fails 1 "say --follow, or" gpuir update --hidden notes -o live
    [ "$(cksum live/*)" = "$before" ]
  }
  chmod o+w live
  refused
  chmod o-w live
  for name in manifest update; do
    chmod o+w live/$name
    refused
    chmod o-w live/$name
  done
  if [ "$(id -u)" -eq 0 ]; then
    chown 65534 live/update
    refused
    chown 0 live/update
    shared=$(awk -F : '$4 != 0 { print $4; exit }' /etc/passwd)
    chgrp "$shared" live
    chmod g+w live
    refused
    chmod g-w live
  fi
  gpuir update -q notes -o live
  [ "$(names live)" = 'notes/.h notes/a notes/b notes/c notes/d notes/link' ]
  chmod o+w live
  rm notes/d
  gpuir update -q --hidden --follow notes -o live
  echo 'last tea' >notes/e
  gpuir update -q --trust-settings notes -o live
  [ "$(names live)" = 'notes/.h notes/a notes/b notes/c notes/e notes/link' ]
  fails 1 'live: --no-ignore: it was made without, and that stays' gpuir update --trust-settings --no-ignore notes -o live
}

@test "who may only read an index keeps no writer out; writers wait for one another if they are asked to" {
  gpuir index -q --live notes -o live
  [ "$(stat -c %a live/lock)" = 600 ]
  if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    chmod 755 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" . .. 2>/dev/null || true
    run setpriv --reuid 65534 --regid 65534 --clear-groups flock -n live/lock true
    [ "$status" -ne 0 ]
  fi
  mkfifo pipe
  gpuir add -q --name slow - -o live <pipe 3>&- &
  pid=$!
  exec 9>pipe
  while ! grep -q "OFDLCK.*:$(stat -c %i live/lock) \|FLOCK .*:$(stat -c %i live/lock) " /proc/locks; do sleep 0.02; done
  echo 'red tea' >notes/d
  waiting=
  gpuir update -q --wait notes -o live 3>&- 9>&- &
  waiting="$waiting $!"
  echo 'blue tea' | gpuir add -q --wait --name blue - -o live 3>&- 9>&- &
  waiting="$waiting $!"
  gpuir delete -q --wait live notes/a 3>&- 9>&- &
  waiting="$waiting $!"
  gpuir merge -q --wait live 3>&- 9>&- &
  waiting="$waiting $!"
  sleep 0.2
  [ "$(names live)" = 'notes/a notes/b notes/c' ]
  echo 'slow tea' >&9
  exec 9>&-
  wait $pid
  for pid in $waiting; do wait "$pid"; done
  gpuir verify live >/dev/null
  [[ $(names live) =~ ^'blue '(notes/a )?'notes/b notes/c notes/d slow'$ ]] # the update may come behind the delete
}
