#!/usr/bin/env bats
# Each manual page has examples, and every one of them runs.

bats_require_minimum_version 1.5.0

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  export root build PATH="$BATS_FILE_TMPDIR/bin:$build:$PATH" HOME=$BATS_FILE_TMPDIR/home GPUIR_FILTER_SECONDS=20
  # What the examples name: notes, sources, papers, and a collection with topics.
  mkdir -p "$HOME"/{notes,src,papers} "$BATS_FILE_TMPDIR"/{given,bin}
  printf 'Green tea is brewed at 80 degrees.\n' >"$HOME/notes/tea.txt"
  printf 'Black coffee.\nNo tea.\n' >"$HOME/notes/coffee.txt"
  cp "$root"/examples/*.c "$HOME/src"
  cd "$BATS_FILE_TMPDIR/given" || return
  if command -v pdftotext >/dev/null && command -v python3 >/dev/null; then
    python3 "$root/tests/support/make_pdf.py" "$HOME/papers/tea.pdf" 'A paper on tea.'
  else
    printf '#!/bin/sh\nexec cat\n' >"$BATS_FILE_TMPDIR/bin/pdftotext"
    echo 'A paper on tea.' >"$HOME/papers/tea.pdf"
  fi
  # An editor that has no terminal: what it is given must be lines as it reads them.
  printf '#!/bin/sh\n[ "$1" = -q ] && grep -Eq "^[^:]*:[0-9]+:" "$2"\n' >"$BATS_FILE_TMPDIR/bin/vim"
  chmod +x "$BATS_FILE_TMPDIR"/bin/*
  gpuir index -q --store --positions "$HOME/notes" -o notes.gpuir
  head -n 4000 "$root/tests/data/wordnet.tsv" | gpuir index -q --tsv --store --stem porter --stop english - -o news.gpuir
  gpuir export news.gpuir news.ciff.gz 2>/dev/null || true
  printf '1: musical instrument\n2: domestic animal\n' >topics.txt
  printf '{"id": 1, "contents": "green tea"}\n' | gzip >corpus.jsonl.gz
}

teardown() {
  local mnt=$BATS_TEST_TMPDIR/here/mnt
  if grep -q " $mnt fuse" /proc/self/mounts; then fusermount3 -u "$mnt" || umount "$mnt" || fusermount3 -u -z "$mnt"; fi
}

# examples PAGE: its commands, one a line
examples() { sed -n '/^\.Sh EXAMPLES/,/^\.Sh [^E]/s/^\.Dl [$] //p' "$1" | sed 's/\\e/\\/g'; }

# may_run COMMAND: what it needs is here
may_run() {
  [[ $1 != *'--backend gpu'* ]] || gpuir --version | grep -q '^backends: .*device' || return 1
  [[ $1 != *'.ciff.gz'* ]] || [ -e "$BATS_FILE_TMPDIR/given/news.ciff.gz" ] || return 1
  [[ $1 != *jq* ]] || command -v jq >/dev/null
}

# run_page PAGE: its examples, one after the other in a folder of their own
run_page() {
  local line
  rm -rf "$BATS_TEST_TMPDIR/here"
  cp -r "$BATS_FILE_TMPDIR/given" "$BATS_TEST_TMPDIR/here"
  cd "$BATS_TEST_TMPDIR/here" || return
  while IFS= read -r line; do
    may_run "$line" || continue
    if [[ $line == *'&' ]]; then line+=' sleep 0.5; kill %%'; fi # what goes on until it is ended
    if ! timeout 60 bash -c "set -o pipefail; $line" >out 2>err </dev/null 3>&-; then
      echo "$1: $line"
      cat out err
      return 1
    fi
  done < <(examples "$1")
}

@test "each page has examples that can be run" {
  for page in "$root"/tools/man/*.1 "$root"/tools/synth/synth.1; do
    [ -n "$(examples "$page")" ] || { echo "$page has none"; false; }
  done
}

@test "every example of the commands runs" {
  for page in "$root"/tools/man/*.1; do
    [[ $page == *-lab.1 ]] || run_page "$page"
  done
}

@test "every example of the mount runs" {
  local page=$root/fuse/gpuirfs.1
  [ -n "$(examples "$page")" ]
  [ -x "$build/gpuirfs" ] || skip "gpuirfs was not built"
  [ -c /dev/fuse ] || skip "no /dev/fuse"
  mkdir "$BATS_TEST_TMPDIR/try"
  gpuirfs "$BATS_FILE_TMPDIR/given/notes.gpuir" "$BATS_TEST_TMPDIR/try" || skip "mounting is not allowed"
  fusermount3 -u "$BATS_TEST_TMPDIR/try"
  run_page "$page"
}

@test "every example of the laboratory runs" {
  if [ -z "${GPUIR_TEST_LONG:-${GPUIR_LONG:-}}" ]; then skip "a test of the long form"; fi
  run_page "$root/tools/man/gpuir-lab.1"
}
