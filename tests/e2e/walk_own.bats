#!/usr/bin/env bats
# What gpuir itself writes is no source of documents, and no reason to update: indexes, mounts, the log of a watch.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  export root build PATH="$build:$PATH"
}

setup() {
  cd "$BATS_TEST_TMPDIR" || exit
  mkdir src
  echo hello >src/f1
  watchers=()
}

teardown() {
  local pid
  for pid in "${watchers[@]}"; do kill "$pid" 2>/dev/null || true; done
  if [ -d src/mnt ] && mountpoint -q src/mnt; then fusermount3 -u src/mnt; fi
}

# watch ERRORS ARGUMENT...: begins to watch, and waits until it does
watch() {
  local errors=$1 i
  shift
  gpuir watch "$@" >"$errors" 2>&1 3>&- &
  watchers+=($!)
  for ((i = 0; i < 400; i++)); do
    if grep -q watching "$errors"; then return; fi
    sleep 0.05
  done
  return 1
}

# settles FILE...: within 20 s nothing is written to them for 1.5 s
settles() {
  local i before
  for ((i = 0; i < 13; i++)); do
    before=$(cat "$@" | wc -c)
    sleep 1.5
    if [ "$(cat "$@" | wc -c)" -eq "$before" ]; then return; fi
  done
  return 1
}

documents() { gpuir stats "$1" | awk '$1 == "documents" { print $2 }'; }

@test "a live index, or an index, within the folder gives no documents, and is counted" {
  gpuir index -q --live src -o src/n.live
  gpuir index -q src -o src/x.gpuir
  gpuir index src -o y.gpuir 2>err
  [ "$(documents y.gpuir)" = 1 ]
  grep -q 'skipped: 2 indexes' err
  [ "$(gpuir index --json src -o y.gpuir | grep -o '"indexes":[0-9]*')" = '"indexes":2' ]
  gpuir update src -o src/n.live 2>err
  grep -q '0 new, 0 changed, 0 vanished, 1 unchanged file;' err
  fails 1 'a live index, of which no documents are made' gpuir index -q src/n.live -o z.gpuir
}

@test "a table of files, and a manifest, that lie alone are no documents either" {
  gpuir index -q --live src -o n.live
  mkdir src/part
  cp n.live/update src/part
  cp n.live/manifest src/copy
  gpuir index -q src -o y.gpuir
  [ "$(documents y.gpuir)" = 1 ]
  gpuir index -q --live src -o m.live
  gpuir update src -o m.live 2>err
  grep -q ' 1 unchanged file;' err
}

@test "what standard output and error go to is left out" {
  gpuir index --json src -o y.gpuir >src/out.txt 2>src/err.txt
  [ "$(documents y.gpuir)" = 1 ]
  gpuir index -q --live src -o n.live >src/out.txt 2>src/err.txt
  [ "$(documents n.live)" = 1 ]
}

@test "a mount of gpuirfs within the folder gives no documents" {
  [ -x "$build/gpuirfs" ] || skip "gpuirfs is not built"
  [ -w /dev/fuse ] || skip "no /dev/fuse"
  gpuir index -q --store src -o x.gpuir
  mkdir src/mnt
  gpuirfs x.gpuir src/mnt 3>&- || skip "cannot mount"
  gpuir index -q src -o y.gpuir
  fusermount3 -u src/mnt
  [ "$(documents y.gpuir)" = 1 ]
}

@test "a watch whose log lies in the folder rests after a change" {
  gpuir index -q --live src -o n.live
  watch src/nohup.out src -o n.live
  echo more >>src/f1
  for ((i = 0; i < 200; i++)); do
    if grep -q '1 changed' src/nohup.out; then break; fi
    sleep 0.05
  done
  settles src/nohup.out
  [ "$(wc -l <src/nohup.out)" -eq 2 ]
  [ "$(documents n.live)" = 1 ]
}

@test "two watches, whose live indexes lie in the folder, rest after a change" {
  gpuir index -q --live src -o src/A.live
  gpuir index -q --live --lines src -o src/B.live
  watch a.log src -o src/A.live
  watch b.log src -o src/B.live
  echo more >>src/f1
  for ((i = 0; i < 200; i++)); do
    if grep -q '1 changed' a.log && grep -q '1 changed' b.log; then break; fi
    sleep 0.05
  done
  settles a.log b.log
  [ "$(wc -l <a.log)" -le 3 ]
  [ "$(wc -l <b.log)" -le 3 ]
  [ "$(documents src/B.live)" = 2 ]
}

@test "watch: descriptors that run out are said" {
  mkdir -p src/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d
  gpuir index -q --live src -o n.live
  run --separate-stderr timeout 20 bash -c 'ulimit -n 16; exec gpuir watch src -o n.live'
  [ "$status" -eq 1 ]
  # shellcheck disable=SC2154 # run sets it
  [[ $stderr == *'Too many open files'* ]]
}

@test "a current folder that was removed is said, and nothing gets a wrong path" {
  gpuir index -q --live src -o n.live
  mkdir gone
  fails 1 'the current folder has no path' bash -c "cd gone && rmdir ../gone && gpuir update ../src -o '$PWD/n.live'"
  [ "$(documents n.live)" = 1 ]
  mkdir gone
  bash -c "cd gone && rmdir ../gone && gpuir update -q '$PWD/src' -o '$PWD/n.live'"
}

@test "update with many operands: those that have gone, and no others, are dropped" {
  local i
  mkdir src/sub src/sub-x
  for ((i = 0; i < 300; i++)); do echo "n$i" >"src/sub/$i"; done
  echo beside >src/sub-x/a
  gpuir index -q --live src -o n.live
  find src -type f | sort >names
  rm src/sub/1? src/sub-x/a
  xargs gpuir update -o n.live <names 2>err
  grep -q '0 new, 0 changed, 11 vanished, 291 unchanged files' err
  rm src/sub/2*
  gpuir update src/f1 src/sub-x -o n.live 2>err
  grep -q '0 vanished, 1 unchanged file;' err
  gpuir update src/sub/ src/f1 -o n.live 2>err
  grep -q '111 vanished, 180 unchanged files\?;' err
}
