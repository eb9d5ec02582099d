#!/usr/bin/env bats
# The scripts of examples/ that people copy, over the folder examples/desk.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  export root build PATH="$build:$root/examples:$PATH" mnt=$BATS_FILE_TMPDIR/mnt
  cd "$BATS_FILE_TMPDIR" || return
  cp -r "$root/examples/desk" .
  rm -r desk/papers
  gpuir index -q --store --positions desk -o desk.gpuir
  mkdir "$mnt"
  no_mount=
  if [ ! -x "$build/gpuirfs" ]; then
    no_mount="gpuirfs was not built"
  elif [ ! -c /dev/fuse ]; then
    no_mount="no /dev/fuse"
  elif ! gpuirfs desk.gpuir "$mnt" >/dev/null; then
    no_mount="mounting is not allowed"
  fi
  export no_mount
}

setup() {
  cd "$BATS_FILE_TMPDIR" || exit
  server=
}

teardown() {
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
}

teardown_file() {
  if grep -q " $mnt fuse" /proc/self/mounts; then
    fusermount3 -u "$mnt" || umount "$mnt" || fusermount3 -u -z "$mnt"
  fi
}

needs_mount() { [ -z "$no_mount" ] || skip "$no_mount"; }
needs() { command -v "$1" >/dev/null || skip "no $1"; }

@test "notes.sh finds passages, also of what has changed" {
  cp -r desk notes
  run notes.sh notes mooring paid
  [ "$status" -eq 0 ]
  [[ ${lines[0]} == notes/notes/boat.md:*-* ]]
  [[ $output == *"The mooring is paid until the end of October."* ]]
  echo 'The mooring is paid until May.' >notes/notes/boat.md
  run notes.sh notes mooring paid
  [[ $output == *"The mooring is paid until May."* && $output != *October* ]]
  prints '' notes.sh notes
  run notes.sh nowhere mooring
  [ "$status" -eq 1 ]
}

@test "notes.sh reads PDF files" {
  needs pdftotext
  cp -r "$root/examples/desk/papers" papers
  run notes.sh papers bypass diodes
  [ "$status" -eq 0 ]
  [[ $output == *"unless bypass diodes lead around it."* ]]
}

@test "notes.sh without pdftotext leaves PDF files out, and reads them once it is there" {
  mkdir letters none
  cp "$root/examples/desk/papers/solar.pdf" letters
  echo 'bypass the harbour' >letters/notes.txt
  ln -s "$build/gpuir" none/gpuir
  without() { prints $'letters/notes.txt:1-1\nbypass the harbour' env PATH="$PWD/none" "$root/examples/notes.sh" "$@"; }
  for _ in 1 2; do without letters bypass; done
  [ -e letters.text.live ]
  [ ! -e letters.live ]
  # a program that writes a text, whatever the file is
  mkdir later
  printf '#!/bin/sh\necho bypass diodes\n' >later/pdftotext
  chmod +x later/pdftotext
  PATH=$PWD/later:$PATH run notes.sh letters diodes
  [ "$status" -eq 0 ]
  [[ $output == *'letters/solar.pdf'*'bypass diodes'* ]]
  without letters bypass
}

@test "pdf.sh says on which page a line stands" {
  needs pdftotext
  mkdir -p pdfs
  cp "$root/examples/desk/papers/solar.pdf" pdfs/one.pdf
  prints 'pdfs/one.pdf, page 1: current of its whole string, unless bypass diodes lead around it.' pdf.sh pdfs bypass diodes
  # a program that writes pages, whatever the file is
  mkdir bin
  printf '#!/bin/sh\nif [ "$1" = - ]; then cat; else cat "$1"; fi\n' >bin/pdftotext
  chmod +x bin/pdftotext
  mkdir pages
  printf 'a page\n\fanother\npage\n\fa wolf\n' >pages/some.pdf
  PATH=$PWD/bin:$PATH prints 'pages/some.pdf, page 3: a wolf' pdf.sh pages wolf
}

@test "vim.sh opens vim at the best line" {
  needs vim
  needs script
  printf 'call writefile([expand("%%") .. ":" .. line("."), len(getqflist()) .. ""], "where")\nqa!\n' >see.vim
  # the list is read before the commands of -c and VIMINIT are run
  mkdir -p vimbin
  printf '#!/bin/sh\nexec vim -u NONE -N "$@" -S see.vim\n' >vimbin/testvim
  chmod +x vimbin/testvim
  EDITOR=$PWD/vimbin/testvim TERM=xterm timeout 20 script -qec 'vim.sh desk.gpuir cache_evict' /dev/null </dev/null >/dev/null
  [ "$(sed -n 1p where)" = "$(gpuir query --grep desk.gpuir cache_evict | sed -n 1p | cut -d : -f 1,2)" ]
  [ "$(sed -n 1p where)" = desk/code/cache.c:22 ] || [ "$(sed -n 1p where | cut -d : -f 1)" = desk/code/cache.c ]
  [ "$(sed -n 2p where)" -eq "$(gpuir query --grep desk.gpuir cache_evict | wc -l)" ]
}

@test "vim.sh opens another editor at the line" {
  mkdir -p edbin
  printf '#!/bin/sh\necho "$@"\n' >edbin/ed
  chmod +x edbin/ed
  EDITOR=$PWD/edbin/ed prints '+14 desk/etc/backup.conf' vim.sh desk.gpuir compression
}

@test "fzf.sh prints the chosen line" {
  needs fzf
  needs script
  fzf --help 2>&1 | grep -q -- '--bind' || skip "an old fzf"
  printf 'x' | fzf --filter x --bind 'load:accept' >/dev/null 2>&1 || skip "this fzf has no event load"
  # fzf draws on the terminal; that the list is loaded chooses its first line
  FZF_DEFAULT_OPTS='--bind=load:accept' TERM=xterm timeout 20 script -qec 'fzf.sh desk.gpuir retention days >chosen' /dev/null \
    </dev/null >/dev/null
  [ "$(cat chosen)" = "$(gpuir query --grep desk.gpuir retention days | sed -n 1p | cut -d : -f 1,2)" ]
  [ -s chosen ]
}

# answers PORT: somebody listens there within ten seconds
answers() {
  for _ in $(seq 100); do
    if curl -s -o /dev/null "http://127.0.0.1:$1/"; then return; fi
    sleep 0.1
  done
  return 1
}

# asks PORT: what the mount has is served, and what it has not is not found
asks() {
  local at=http://127.0.0.1:$1
  curl -sf "$at/query/@or/@k=2/green+tea.json" | diff - "$mnt/query/@or/@k=2/green+tea.json"
  curl -sf "$at/query/@or/@k=2/green+tea.json" | grep -q 'desk/notes/tea.md'
  curl -sf "$at/pass/oolong+steep" | diff - "$mnt/pass/oolong+steep"
  curl -sf "$at/pass/oolong+steep" | grep -q 'The second steep'
  [ "$(curl -s -o /dev/null -w '%{http_code}' "$at/nothing")" = 404 ]
}

@test "http.sh serves the mount by busybox" {
  needs_mount
  needs busybox
  needs curl
  port=$((20000 + RANDOM % 20000))
  http.sh "$mnt" $port 3>&- &
  server=$!
  answers $port
  asks $port
}

@test "nginx.conf serves the mount by nginx" {
  needs_mount
  needs nginx
  needs curl
  port=$((20000 + RANDOM % 20000))
  mkdir -p web
  sed "s|/srv/gpuir|$mnt|; s|127.0.0.1:8080|127.0.0.1:$port|" "$root/examples/nginx.conf" >web/nginx.conf
  if [ "$(id -u)" -eq 0 ]; then echo 'user root;' >>web/nginx.conf; fi
  nginx -p "$PWD/web" -c "$PWD/web/nginx.conf" 2>web/err 3>&- &
  server=$!
  answers $port || { cat web/err; false; }
  asks $port
  [ "$(curl -s -o /dev/null -w '%{content_type}' "http://127.0.0.1:$port/query/tea.json")" = application/json ]
}

@test "ask.py answers by what a model reads in the mount" {
  needs_mount
  needs python3
  # without a model: the best passage
  run ask.py "$mnt" until when is the mooring paid
  [ "$status" -eq 0 ]
  [[ $output == *"The mooring is paid until the end of October."* ]]
  # a model that asks, reads, and answers with what it has read
  cat >model <<'MODEL'
#!/bin/sh
prompt=$(cat)
echo "$prompt" | grep -q '^Question: until when is the mooring paid' || { echo ANSWER no question; exit; }
echo "$prompt" | grep -q 'A search index as a folder' || { echo ANSWER no AGENTS.md; exit; }
if echo "$prompt" | grep -q 'end of October'; then
  echo; echo "ANSWER until the end of October ($(echo "$prompt" | grep -o 'desk/notes/boat.md:[0-9-]*' | head -n 1))"
elif echo "$prompt" | grep -q 'neither READ nor'; then
  echo 'READ pass/mooring+paid'
elif echo "$prompt" | grep -q 'outside the mount'; then
  echo 'I am not sure'
elif echo "$prompt" | grep -q 'No such file'; then
  echo 'READ ../desk.gpuir'
else
  echo 'READ nowhere/at/all'
fi
MODEL
  chmod +x model
  MODEL=./model run --separate-stderr ask.py "$mnt" until when is the mooring paid
  [ "$status" -eq 0 ]
  [[ $output == 'until the end of October (desk/notes/boat.md:'*')' ]]
  # shellcheck disable=SC2154 # stderr is set by run
  [[ $stderr == *'1. nowhere/at/all'*'2. ../desk.gpuir'*'4. pass/mooring+paid'* ]]
  # one that never answers is asked to
  MODEL='echo READ query' run --separate-stderr ask.py "$mnt" what
  [ "$output" = 'READ query' ]
  run ask.py "$mnt"
  [ "$status" -eq 1 ]
  MODEL=false run ask.py "$mnt" what
  [ "$status" -eq 1 ]
}

# words_of PICTURE: the lines of the terminal, but for those that tell times and sizes
words_of() {
  python3 -c 'import sys, xml.etree.ElementTree as tree
for line in tree.parse(sys.argv[1]).iter("{http://www.w3.org/2000/svg}text"):
    text = "".join(line.itertext())
    if not text.startswith("gpuir: "): print(text)' "$1"
}

@test "the picture of the first minute is what the commands print" {
  needs_mount
  needs python3
  needs pdftotext
  [ "$build" = "$root/build" ] || skip "terminal.py runs the programs in build/"
  python3 "$root/tools/scripts/terminal.py" -o picture.svg 3>&- 4>&-
  [ "$(words_of picture.svg | grep -c '^\$ ')" -eq 7 ]
  diff <(words_of picture.svg) <(words_of "$root/.github/first-minute.svg")
}
