#!/usr/bin/env bats
# Whoever owns an indexed folder may swap its entries while it is read, and gets nothing from outside of it.
#
# The swap is no race here: a filter, which runs for the first file, swaps what was listed already and is opened later.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  export root build PATH="$build:$PATH"
}

setup() {
  cd "$BATS_TEST_TMPDIR" || exit
  mkdir -p home/sub/deeper private/deeper bin
  echo 'rootsecret password' >private/key
  echo 'rootsecret password' >private/deeper/key
  echo 'first file' >home/a.swap
  echo 'harmless file' >home/sub/deeper/key
  echo 'harmless file' >home/z.txt
  F="swap=$PWD/bin/swap"
  watcher=
  swaps true
}

teardown() {
  if [ -n "$watcher" ]; then kill "$watcher" 2>/dev/null || true; fi
}

# swaps COMMAND...: from now on the filter runs it in the folder `home`, before it writes its text
swaps() {
  printf '#!/bin/sh\ncat\n( cd %q && %s ) >&2\n' "$PWD/home" "$*" >bin/swap
  chmod +x bin/swap
}

# A file, a folder, and a folder above one become links that lead out.
file='mv z.txt ../z.old; ln -s ../private/key z.txt'
folder='mv sub/deeper ../old; ln -s ../../private/deeper sub/deeper'
above='mv sub ../old; ln -s ../private sub'

# back: undoes all of them
back() {
  rm -f home/z.txt
  if [ -e z.old ]; then mv z.old home/z.txt; else echo 'harmless file' >home/z.txt; fi
  rm -rf home/sub old
  mkdir -p home/sub/deeper
  echo 'harmless file' >home/sub/deeper/key
}

# safe INDEX: it has what the folder had, and nothing from outside
safe() {
  [ "$(gpuir query --tsv "$1" rootsecret | wc -l)" -eq 0 ]
  [ "$(gpuir query --tsv "$1" first | wc -l)" -eq 1 ]
}

@test "index: what is swapped for a link after it was listed is not followed" {
  local swap
  for swap in "$file" "$folder" "$above"; do
    swaps "$swap"
    gpuir index -q --store --filter "$F" home -o x.gpuir 2>err
    safe x.gpuir
    back
  done
}

@test "index --follow: links are followed, also those that came just now" {
  swaps "$file"
  gpuir index -q --follow --filter "$F" home -o x.gpuir
  [ "$(gpuir query --tsv x.gpuir rootsecret | wc -l)" -eq 1 ]
}

@test "index: a file that is swapped for a FIFO, a device or a folder is left out, and nobody is waited for" {
  local swap
  for swap in 'rm z.txt; mkfifo z.txt' 'rm z.txt; ln -s /dev/zero z.txt' 'rm -r sub; mkfifo sub'; do
    swaps "$swap"
    timeout 20 gpuir index -q --filter "$F" home -o x.gpuir 2>err
    safe x.gpuir
    back
  done
  swaps 'rm z.txt; mkdir z.txt; echo harmless >z.txt/one'
  gpuir index -q --filter "$F" home -o x.gpuir
  [ "$(gpuir query --tsv x.gpuir harmless | cut -f 4 | sort | paste -sd ' ')" = "home/sub/deeper/key home/z.txt/one" ]
}

@test "index: a file that is saved anew by renaming is read as it is then" {
  swaps 'echo "harmless and new" >new; mv new z.txt'
  gpuir index --filter "$F" home -o x.gpuir
  [ "$(gpuir query --tsv x.gpuir new | cut -f 4)" = home/z.txt ]
}

@test "update: what is swapped for a link is not followed, and counts as gone" {
  local swap
  for swap in "$file" "$folder" "$above"; do
    rm -rf live
    gpuir index -q --store --live --filter "$F" home -o live
    [ "$(gpuir query --tsv live harmless | wc -l)" -eq 2 ]
    echo 'first file again' >home/a.swap
    swaps "$swap"
    gpuir update -q --filter "$F" home -o live 2>err
    safe live
    gpuir verify live >/dev/null
    back
    swaps true
    echo 'first file' >home/a.swap
    gpuir update -q --filter "$F" home -o live
    [ "$(gpuir query --tsv live harmless | wc -l)" -eq 2 ]
  done
}

@test "watch: what is swapped for a link is not followed" {
  gpuir index -q --store --live --filter "$F" home -o live
  swaps "$file"
  gpuir watch --filter "$F" home -o live 2>watch.log 3>&- &
  watcher=$!
  for ((i = 0; i < 200; i++)); do
    if grep -q watching watch.log; then break; fi
    sleep 0.05
  done
  echo 'first file again' >home/a.swap
  for ((i = 0; i < 200; i++)); do
    if [ "$(gpuir query --tsv live again | wc -l)" -eq 1 ] && [ -L home/z.txt ]; then break; fi
    sleep 0.05
  done
  [ -L home/z.txt ]
  kill "$watcher"
  wait "$watcher"
  watcher=
  safe live
}

@test "passages and the mount's texts: a source that is swapped for a link counts as changed" {
  gpuir index -q home -o x.gpuir
  rm home/z.txt
  ln -s ../private/key home/z.txt
  gpuir query --passages x.gpuir harmless >out
  grep -q 'z.txt' out
  run ! grep -q rootsecret out
}

@test ".gitignore that is a link is not read" {
  echo 'z.txt' >private/rules
  ln -s ../private/rules home/.gitignore
  gpuir index -q home -o x.gpuir
  [ "$(gpuir query --tsv x.gpuir harmless | wc -l)" -eq 2 ]
}

@test "a tree deeper than the folders that are held open is read whole, and with few descriptors" {
  local i path=home/deep
  mkdir "$path"
  for ((i = 0; i < 200; i++)); do
    path+=/d
    mkdir "$path"
    if ((i % 10 == 0)); then echo "leaf leaf$i" >"$path/zz"; fi
  done
  (
    ulimit -n 90
    gpuir index -q home -o x.gpuir
  )
  [ "$(gpuir query -k 100 --tsv x.gpuir leaf | wc -l)" -eq 20 ]
  gpuir index -q --follow home -o y.gpuir
  [ "$(gpuir query -k 100 --tsv y.gpuir leaf | wc -l)" -eq 20 ]
}

@test "a folder that was renamed while folders far below it were read is not taken for another" {
  local i path=home/deep
  mkdir "$path"
  for ((i = 0; i < 100; i++)); do
    path+=/d
    mkdir "$path"
  done
  echo bottom >"$path/a.swap"
  mkdir -p private/d home/deep/d/e
  echo 'rootsecret password' >private/e
  echo 'rootsecret password' >private/d/zz
  echo 'harmless file' >home/deep/d/d/zz
  swaps 'if [ ! -L deep ]; then mv deep ../old; ln -s ../private deep; fi'
  gpuir index -q --filter "$F" home -o x.gpuir 2>err
  [ "$(gpuir query --tsv x.gpuir rootsecret | wc -l)" -eq 0 ]
}

@test "descriptors that run out are said" {
  mkdir -p home/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d
  run --separate-stderr bash -c 'ulimit -n 14; gpuir index home -o x.gpuir'
  # shellcheck disable=SC2154 # run sets it
  [[ $stderr == *"Too many open files"* ]]
}
