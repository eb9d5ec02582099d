#!/usr/bin/env bats
# What shows texts in a mount: pass/, grep/, files/ and query/<q>.paths; AGENTS.md, listed options, names that are no
# queries, and what .stats says.
# shellcheck disable=SC2016 # what eval and until_true run is in single quotes
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test is a subshell of its own; ../support/mount sets variables

load ../support/mount

# makes the index $T/i.gpuir of $T/notes, and the folder $T/m; what was indexed is said by OPTION...
notes() {
  mkdir "$T/notes" "$T/m"
  printf 'The wolf sleeps.\nIt dreams of a fox.\n\nNothing here.\nA dog barks at the wolf.\n\nEnd.\n' >"$T/notes/animals.txt"
  printf 'tea\n\n  green tea is\tbrewed\n' >"$T/notes/tea.txt"
  (cd "$T" && "$gpuir" index -q --positions "$@" notes -o i.gpuir)
}

mount_notes() {
  notes
  serve "$T/i.gpuir" "$T/m" "$@"
}

# prints TEXT FILE: the file has just this text
holds() { diff <(printf '%s\n' "$1") "$2"; }

# A name is asked for again a second after it was.
asked_again() { sleep 1.1; }

@test "pass: passages under absolute paths and lines; any word will do" {
  mount_notes
  holds "$T/notes/animals.txt:1-2
The wolf sleeps.
It dreams of a fox.
" "$T/m/pass/dreams+unicorn"
  holds "$T/notes/tea.txt:3-3
  green tea is	brewed
" "$T/m/pass/@context=0/%22tea+is%22"
  [ ! -s "$T/m/query/dreams+unicorn" ] # all of them must match there
  holds "(no document matches)" "$T/m/pass/@and/dreams+green"
  [ ! -s "$T/m/pass/@k=0/wolf" ] # none was asked for
  [ ! -s "$T/m/pass/@k=0/@and/dreams+green" ]
  [ "$(stat -c %s "$T/m/pass/dreams+unicorn")" -eq "$(wc -c <"$T/m/pass/dreams+unicorn")" ]
}

@test "pass and grep: what gpuir query prints, to the byte" {
  mount_notes
  for q in wolf 'fox green' 'brew*' '"tea is" dog' 'wolf -fox'; do
    name=$(sed 's/ /+/g' <<<"$q")
    for options in '' '--context 0' '--context 1' '--tokens 20' '--bytes 90' '-k 1' '-k 0' '-m and'; do
      folders=$(sed -e 's/--tokens /@tokens=/; s/--bytes /@bytes=/; s/--context /@context=/; s/-k /@k=/; s/-m /@/' <<<"$options")
      # shellcheck disable=SC2086 # options
      (cd / && "$gpuir" query --passages $options "$T/i.gpuir" "$q") >"$T/want" 2>/dev/null ||
        echo "(no document matches)" >"$T/want"
      diff "$T/want" "$T/m/pass/$folders/$name"
      # shellcheck disable=SC2086
      (cd / && "$gpuir" query --grep $options "$T/i.gpuir" "$q") >"$T/want" 2>/dev/null || true
      diff "$T/want" "$T/m/grep/$folders/$name"
    done
  done
}

@test "pass, grep: a budget without room for any passage is said to be too small" {
  mount_notes
  small='no passage of a hit fits into the budget'
  [ ! -s "$T/m/pass/@tokens=1/wolf" ]
  stat_of last_note "$T/m" | grep -qx "wolf: $small"
  [ ! -s "$T/m/grep/@bytes=3/dog" ]
  stat_of last_note "$T/m" | grep -qx "dog: $small"
}

@test "pass: 800 tokens unless the name says otherwise" {
  notes
  for i in 1 2 3 4; do
    seq 200 | sed 's/$/ wolf and some words that follow it in the line/' >"$T/notes/long$i.txt"
  done
  (cd "$T" && "$gpuir" index -q --chunk-lines 20 notes -o i.gpuir)
  serve "$T/i.gpuir" "$T/m"
  size=$(stat -c %s "$T/m/pass/@k=40/wolf+words")
  [ "$size" -le 3200 ]
  [ "$size" -gt 1500 ]
  [ "$(wc -c <"$T/m/pass/@k=40/@tokens=100/wolf+words")" -le 400 ]
  [ "$(wc -c <"$T/m/pass/@k=40/@bytes=1000/wolf+words")" -le 1000 ]
  [ "$(wc -c <"$T/m/pass/@k=40/@bytes=5000/wolf+words")" -gt 3200 ] # it takes the place of 800 tokens
  [ "$(grep -c '^/' "$T/m/pass/@tokens=0/@k=40/wolf+words")" -eq 40 ]
  [ "$(grep -c . "$T/m/grep/@tokens=0/@k=40/@context=1/wolf")" -gt 40 ]
}

@test "a source that changed is named without its text, and shown again when it is as it was" {
  mount_notes
  cp -p "$T/notes/animals.txt" "$T/was"
  cat "$T/m/pass/fox" >"$T/first"
  inode=$(stat -c %i "$T/m/pass/fox")
  asked_again
  [ "$(stat -c %i "$T/m/pass/fox")" = "$inode" ] # nothing was made anew
  sed -i s/fox/cow/ "$T/notes/animals.txt"
  asked_again
  holds "$T/notes/animals.txt (changed since it was indexed)
" "$T/m/pass/fox"
  holds "$T/notes/animals.txt:1:(changed since it was indexed)" "$T/m/grep/fox"
  run cat "$T/m/files/fox/000001-notes_animals.txt"
  [ "$status" -ne 0 ]
  [[ "$output" == *'Stale file handle'* ]]
  rm "$T/notes/animals.txt"
  asked_again
  holds "$T/notes/animals.txt (No such file or directory)
" "$T/m/pass/fox"
  mkfifo "$T/notes/animals.txt"
  asked_again
  holds "$T/notes/animals.txt (Invalid argument)
" "$T/m/pass/fox"
  ln -sf "$T/m/README" "$T/notes/animals.txt" # into the mount itself
  asked_again
  grep -q 'Too many levels of symbolic links' "$T/m/pass/fox"
  rm "$T/notes/animals.txt"
  cp -p "$T/was" "$T/notes/animals.txt"
  asked_again
  diff "$T/first" "$T/m/pass/fox"
  diff "$T/was" "$T/m/files/fox/000001-notes_animals.txt"
}

@test "why texts are missing counts against the budget" {
  mkdir "$T/m" "$T/d"
  for i in $(seq 100 499); do echo "a wolf" >"$T/d/$i.txt"; done
  (cd "$T" && "$gpuir" index -q d -o i.gpuir)
  for i in $(seq 100 499); do echo "a cow" >"$T/d/$i.txt"; done
  serve "$T/i.gpuir" "$T/m"
  for tree in pass grep; do
    [ "$(grep -c 'changed since' "$T/m/$tree/@tokens=0/@k=400/wolf")" -eq 400 ]
    [ "$(wc -c <"$T/m/$tree/@tokens=20/@k=400/wolf")" -le 80 ]
    [ "$(wc -c <"$T/m/$tree/@k=400/wolf")" -le 3200 ]
    [ "$(wc -c <"$T/m/$tree/@k=400/wolf")" -gt 2000 ]
    size=$(($(wc -c <"$T/m/$tree/wolf") / 10)) # of one
    [ "$(grep -c 'changed since' "$T/m/$tree/@bytes=$((3 * size))/@k=400/wolf")" -eq 3 ]
    [ ! -s "$T/m/$tree/@bytes=30/@k=400/wolf" ]
  done
  holds "$(cd / && "$gpuir" query -k 400 --tokens 300 "$T/i.gpuir" wolf)
" "$T/m/pass/@k=400/@tokens=300/wolf"
}

@test "files: the sizes of all hits are found in the time of one look-up" {
  [ -x "$build/tests/e2e/live_mount" ] || skip "live_mount was not built"
  needs_python
  mkdir "$T/m"
  echo wolf >"$T/large"
  truncate -s 16M "$T/large"
  for i in $(seq 5000); do hits+=(line:large=$'wolf\n'); done
  "$build/tests/e2e/live_mount" "$T/i" write create-bare "${hits[@]}" commit
  serve "$T/i" "$T/m" -o timeout=1
  # each is read in less, but not all of them
  run errno_of "$T/m/files/@k=1/wolf/000001-large" "$T/m/files/@k=5000/wolf"
  echo "$output"
  [ "$output" = $'OK\nETIMEDOUT' ]
  [ "$(cat "$T/m/files/@k=1/wolf/000001-large")" = wolf ]
}

@test "paths begin in the folder of the index that is shown, also when a link leads to another one" {
  local v
  for v in v1 v2; do
    mkdir -p "$T/$v/notes"
    echo "a fox in $v" >"$T/$v/notes/a.txt"
    (cd "$T/$v" && "$gpuir" index -q notes -o i.gpuir)
  done
  mkdir "$T/m" "$T/n"
  ln -s v1/i.gpuir "$T/now.gpuir"
  serve "$T/now.gpuir" "$T/m"
  serve "$T/now.gpuir" "$T/n" -o "source=$T/v2"
  [ "$(cat "$T/m/doc/0")" = 'a fox in v1' ]
  grep -q 'a fox in v1' "$T/m/pass/fox"
  [ "$(cat "$T/m/query/fox.paths")" = "$T/v1/notes/a.txt" ]
  [ "$(cat "$T/n/doc/0")" = 'a fox in v2' ] # as it was asked for
  ln -sfn v2/i.gpuir "$T/now.gpuir"
  until [ "$(stat_of reloads "$T/m")" -ge 1 ]; do sleep 0.05; done
  asked_again
  [ "$(cat "$T/m/doc/0")" = 'a fox in v2' ]
  grep -q 'a fox in v2' "$T/m/pass/fox"
  [ "$(cat "$T/m/query/fox.paths")" = "$T/v2/notes/a.txt" ]
  [ "$(cat "$T/m/files/fox/000001-notes_a.txt")" = 'a fox in v2' ]
}

@test "stored text is shown whatever became of the source, and remembered" {
  mkdir "$T/m"
  printf 'a\tone fox\nb\tred fox\n' >"$T/t.tsv"
  "$gpuir" index -q --tsv --store "$T/t.tsv" -o "$T/i.gpuir"
  printf 'no source fox\n' | "$gpuir" index -q --lines --store - -o "$T/j.gpuir"
  rm "$T/t.tsv"
  serve "$T/i.gpuir" "$T/m"
  holds "$T/t.tsv:2-2
red fox
" "$T/m/pass/red"
  [ "$(stat -c %a "$T/m/pass/red")" = 444 ]
  searches=$(stat_of searches "$T/m")
  asked_again
  cat "$T/m/pass/red" "$T/m/pass/red+" >/dev/null
  [ "$(stat_of searches "$T/m")" -eq "$searches" ]
  [ "$(cat "$T/m/files/red/000001-b")" = 'red fox' ]
  holds "$T/t.tsv" "$T/m/query/fox.paths"
  mkdir "$T/n"
  "$fs" "$T/j.gpuir" "$T/n"
  holds "$T/n/doc/0" "$T/n/query/fox.paths"
  [ "$(cat "$(cat "$T/n/query/fox.paths")")" = 'no source fox' ]
}

@test "a document whose text is nowhere says so" {
  mkdir "$T/m"
  printf 'a\tone fox\n' | "$gpuir" index -q --tsv - -o "$T/i.gpuir"
  serve "$T/i.gpuir" "$T/m"
  holds "a (its text is not in the index)
" "$T/m/pass/fox"
  run cat "$T/m/files/fox/000001-a"
  [[ "$output" == *'No data available'* ]]
}

@test "nosource: names in place of paths, stored text alone" {
  notes
  serve "$T/i.gpuir" "$T/m" -o nosource
  holds "notes/animals.txt (its text is not in the index)
" "$T/m/pass/fox"
  holds "$T/m/doc/0" "$T/m/query/fox.paths"
  run cat "$T/m/files/fox/000001-notes_animals.txt"
  [[ "$output" == *'No data available'* ]]
  kill "$fs_pid"
  until_true 5 has_ended "$fs_pid"
  (cd "$T" && "$gpuir" index -q --store notes -o i.gpuir)
  serve "$T/i.gpuir" "$T/m" -o nosource
  holds "notes/animals.txt:1-2
The wolf sleeps.
It dreams of a fox.
" "$T/m/pass/fox"
}

# makes the index $T/f.gpuir of a file whose text a program makes, which lies in $T/bin and notes each run in $T/runs
filtered() {
  mkdir "$T/bin" "$T/f" "$T/m"
  printf '#!/bin/sh\necho >>%s/runs\nexec tr a-z n-za-m\n' "$T" >"$T/bin/unrot"
  chmod +x "$T/bin/unrot"
  PATH=$T/bin:$PATH
  printf 'the wolf\nsleeps\n\nfar away\n' | tr a-z n-za-m >"$T/f/a.rot"
  (cd "$T" && "$gpuir" index -q --filter rot=unrot "$@" f -o f.gpuir)
  : >"$T/runs"
}

@test "filter=: a text that a program makes is shown where the user who mounted said so, and no other runs one" {
  filtered
  serve "$T/f.gpuir" "$T/m"
  holds "$T/f/a.rot (its text was made by a filter; -o filter= lets the mount make it again)
" "$T/m/pass/sleeps"
  [ -z "$(cat "$T/m/files/sleeps"/* 2>/dev/null)" ]
  [ ! -s "$T/runs" ]
  kill "$fs_pid"
  until_true 5 has_ended "$fs_pid"
  (cd "$T/bin" && "$fs" -o filter=rot=./unrot "$T/f.gpuir" "$T/m" 2>&1) | grep -qF "made with -o filter='rot=PROGRAM'; give the same"
  for bad in rot=cat auto pdf=unrot; do
    run "$fs" -o "filter=$bad" "$T/f.gpuir" "$T/m"
    [ "$status" -eq 1 ]
    [[ $output == *"f.gpuir: made with -o filter='rot=PROGRAM'; give the same, since no program is taken from an index"* ]]
  done
  run "$fs" -o filter=rot=no-such-program "$T/f.gpuir" "$T/m"
  [ "$status" -eq 2 ]
  [[ $output == *"filter='rot=no-such-program': no such program"* ]]
  run "$fs" -o nosource,filter=rot=unrot "$T/f.gpuir" "$T/m"
  [ "$status" -eq 1 ]
  [ ! -s "$T/runs" ]
  serve "$T/f.gpuir" "$T/m" -o filter=rot=unrot
  holds "$T/f/a.rot
the wolf
sleeps
" "$T/m/pass/@context=0/wolf+sleeps"
  holds "$T/m/files/sleeps/000001-f_a.rot:2:sleeps" "$T/m/grep/sleeps"
  diff <(tr n-za-m a-z <"$T/f/a.rot") "$T/m/files/sleeps/000001-f_a.rot"
  [ "$(readlink "$T/m/doc/0")" = "$T/f/a.rot" ] # a whole file, as it is
  [ "$(wc -l <"$T/runs")" -eq 1 ] # the text is kept
  printf 'the wolf\nsleepy\n\nfar away\n' | tr a-z n-za-m >"$T/f/a.rot"
  asked_again
  holds "$T/f/a.rot (changed since it was indexed)
" "$T/m/pass/sleeps"
}

@test "filter=: parts of a text that a program makes" {
  filtered --chunk-lines 2
  serve "$T/f.gpuir" "$T/m" -o filter=rot=unrot
  holds "$T/m/files/away/000001-f_a.rot:3-4:2:far away" "$T/m/grep/away"
  [ "$(cat "$T/m/doc/1")" = $'\nfar away' ]
  [ "$(cat "$T/m/files/away"/*)" = $'\nfar away' ]
  [ "$(wc -l <"$T/runs")" -eq 1 ]
}

@test "filter=: a program that fails or does not end is told in .stats, and waited for no longer than its user does" {
  filtered
  printf '#!/bin/sh\necho >>%s/runs\nif [ -e %s/slow ]; then exec sleep 36.5; fi\necho "cannot read it" >&2\nexit 3\n' "$T" "$T" >"$T/bin/unrot"
  serve "$T/f.gpuir" "$T/m" -o filter=rot=unrot
  holds "$T/f/a.rot (no text)
" "$T/m/pass/sleeps"
  stat_of last_note "$T/m" | grep -qx 'sleeps: unrot: exit status 3: cannot read it'
  holds "$T/f/a.rot (no text)
" "$T/m/pass/far"
  [ "$(wc -l <"$T/runs")" -eq 1 ] # the failure is kept, for a while
  touch "$T/slow" "$T/f/a.rot"
  run timeout 1 cat "$T/m/pass/wolf"
  [ "$status" -eq 124 ]
  until_true 5 eval '! pgrep -f "sleep 36.5"'
}

@test "filter=: a forged table runs nothing through the mount" {
  [ -x "$build/tests/e2e/forged_filters" ] || skip "forged_filters was not built"
  filtered
  local table
  for table in "rot=sh -c 'touch $T/ran'" 'rot=@sh -c touch' 'rot=@pdftotext' 'rot=#0123456789abcdef'; do
    "$build/tests/e2e/forged_filters" "$T/forged.gpuir" "$T/f/a.rot" "$table" wolf
    for how in auto rot=unrot rot=cat; do
      run "$fs" -o "filter=$how" "$T/forged.gpuir" "$T/m"
      [ "$status" -eq 1 ]
      [[ $output != *touch* ]]
    done
    serve "$T/forged.gpuir" "$T/m"
    cat "$T/m/pass/wolf" "$T/m/grep/wolf" "$T/m"/files/wolf/* "$T/m/doc/0" >/dev/null 2>&1 || true
    kill "$fs_pid"
    until_true 5 has_ended "$fs_pid"
  done
  # Nor does an index that takes the place of the one that was mounted.
  serve "$T/f.gpuir" "$T/m" -o filter=rot=unrot
  "$build/tests/e2e/forged_filters" "$T/forged.gpuir" "$T/f/a.rot" "rot=sh -c 'touch $T/ran'" wolf
  mv "$T/forged.gpuir" "$T/f.gpuir"
  until [ "$(stat_of reloads "$T/m")" -ge 1 ]; do sleep 0.05; done
  holds "$T/f/a.rot (its text was made by a filter; -o filter= lets the mount make it again)
" "$T/m/pass/wolf"
  [ ! -e "$T/ran" ]
  [ ! -s "$T/runs" ]
}

@test "grep: of a text that was decoded, the path and line are those of files/, whatever was asked for" {
  mkdir "$T/notes" "$T/m"
  printf '<html><head><title>Tea</title></head><body><p>one<p>the\twolf<p>two</body></html>\n' >"$T/notes/a.html"
  printf 'wolf wolf wolf\n' >"$T/notes/b.txt"
  printf 'From a Thu Jan  1 00:00:00 2026\nSubject: post\nFrom: a@b.c\n\nnone\nthe wolf\n' >"$T/notes/c.mbox"
  printf '1\nthe packed wolf\n' | gzip >"$T/notes/d.gz"
  (cd "$T" && "$gpuir" index -q --fields ext notes -o i.gpuir)
  serve "$T/i.gpuir" "$T/m"
  local folder path line text count=0
  for folder in '' @or @k=3/@and/ @rank=plain/@context=0/ @ext=html/ @-ext=txt/@k=2/ @k=2/@tokens=300/; do
    while IFS=: read -r path line text; do
      [ "$(sed -n "${line}p" "$path")" = "$text" ] || [[ $path == *d.gz ]]
      count=$((count + 1))
    done <"$T/m/grep/$folder/wolf"
  done
  [ "$count" -ge 15 ]
  grep -q "^$T/m/files/wolf/00000[1-4]-notes_a.html:3:" "$T/m/grep/wolf"
  grep -q "^$T/m/files/wolf/00000[1-4]-notes_c.mbox:5:the wolf" "$T/m/grep/wolf"
  grep -qx "$T/notes/d.gz:2:the packed wolf" "$T/m/grep/wolf" # as zless shows it
}

@test "query/<q>.paths: each file once, best first, from any folder" {
  notes --chunk-lines 2
  serve "$T/i.gpuir" "$T/m"
  cd /
  [ "$(cat "$T/m/query/@k=20/wolf+tea.paths" | sort)" = "$T/notes/animals.txt
$T/notes/tea.txt" ]
  xargs grep -l green <"$T/m/query/green+unicorn.paths" | diff - <(echo "$T/notes/tea.txt")
  [ -z "$(cat "$T/m/query/@and/green+unicorn.paths")" ]
  mkdir "$T/n"
  printf 'wolf\n' >"$T/notes/strange"$'\n'name
  (cd "$T" && "$gpuir" index -q notes -o j.gpuir)
  "$fs" "$T/j.gpuir" "$T/n"
  grep -qxF "$T/notes/strange\\nname" "$T/n/query/wolf.paths"
}

@test "files: regular files, which every tool takes" {
  mount_notes
  cd "$T/m"
  searches=$(stat_of searches .)
  [ "$(ls files/wolf+tea | sort)" = "000001-notes_animals.txt
000002-notes_tea.txt" ] || [ "$(ls files/wolf+tea | cut -d - -f 2 | sort | tr '\n' ' ')" = "notes_animals.txt notes_tea.txt " ]
  [ "$(find files/wolf+tea -type f | wc -l)" -eq 2 ]
  [ "$(find files/wolf+tea -type l | wc -l)" -eq 0 ]
  [ "$(grep -rl brewed files/wolf+tea)" = "$(ls -d files/wolf+tea/*tea.txt)" ]
  [ "$(cat files/wolf+tea/*animals.txt | sha256sum)" = "$(sha256sum <"$T/notes/animals.txt")" ]
  cp -a files/wolf+tea "$T/copy"
  diff "$T/copy"/*tea.txt "$T/notes/tea.txt"
  tar -C files -cf "$T/all.tar" wolf+tea
  tar -C "$T" -xf "$T/all.tar"
  diff -r "$T/copy" "$T/wolf+tea"
  [ "$(du -ab files/wolf+tea | tail -n 1 | cut -f 1)" -eq "$(cat "$T"/notes/*.txt | wc -c)" ]
  if command -v rg >/dev/null; then rg -q brewed files/wolf+tea; fi
  if command -v rsync >/dev/null; then rsync -a files/wolf+tea/ "$T/synced" && diff -r "$T/copy" "$T/synced"; fi
  [ "$(stat_of searches .)" -eq $((searches + 1)) ]
  [ "$(ls -i files/wolf+tea | awk '{ print $1 }' | sort)" = "$(stat -c %i files/wolf+tea/* | sort)" ]
  [ ! -e files/wolf+tea/000003-x ]
  [ ! -e files/wolf+tea/000001-x ]
  [ "$(ls files/@k=1/wolf+tea | wc -l)" -eq 1 ]
  needs_python
  check same "$T/m/files/tea/000001-notes_tea.txt" "$T/notes/tea.txt"
  [ "$(errno_of "$T/m/files/%" "$T/m/files/tea/x/y" "$T/m/pass/tea/x")" = $'EINVAL\nENOENT\nENOTDIR' ]
}

@test "chunks: files of their lines, passages with the file's line numbers" {
  notes --chunk-lines 2
  serve "$T/i.gpuir" "$T/m"
  holds "$T/notes/animals.txt:5:A dog barks at the wolf." "$T/m/grep/barks"
  [ "$(cat "$T/m/files/barks"/*)" = $'A dog barks at the wolf.' ] ||
    [ "$(cat "$T/m/files/barks"/*)" = $'A dog barks at the wolf.\n' ] || {
    cat -A "$T/m/files/barks"/*
    false
  }
}

@test "options are listed one level deep, valid, and list nothing themselves" {
  mount_notes -o max_k=50
  [ "$(ls "$T/m/query" | tr '\n' ' ')" = "@and @andor @cpu @gpu @k=10 @or @rank=code @rank=plain " ]
  [ "$(ls "$T/m/hits")" = "$(ls "$T/m/files")" ]
  for tree in pass grep; do
    [ "$(ls "$T/m/$tree" | tr '\n' ' ')" = "@and @andor @bytes=4000 @context=0 @context=3 @cpu @gpu @k=10 @or @rank=code @rank=plain @tokens=0 @tokens=2000 " ]
    for option in "$T/m/$tree"/@*; do
      [ -d "$option" ]
      [ -z "$(ls -A "$option")" ]
    done
  done
  [ "$(compgen -f "$T/m/pass/@to" | wc -l)" -eq 2 ] # as TAB finds them
  [ "$(stat_of searches "$T/m")" -eq 0 ]
  needs_python
  [ "$(errno_of "$T/m/query/@tokens=5/fox" "$T/m/files/@context=5/fox" "$T/m/pass/@tokens=1/@tokens=2/fox" "$T/m/pass/@bytes=x/fox" \
    "$T/m/doc/@or" | sort | uniq -c | tr -s ' \n' ' ')" = " 4 EINVAL 1 ENOENT " ]
}

@test "what servers and editors look for is not searched for; %2E asks literally" {
  mount_notes
  for tree in query hits files pass grep query/@or pass/@context=0; do
    for name in .git .hidden index.html index.htm index.php httpd.conf favicon.ico robots.txt index.csv notes.swp notes~ \
      package.json AGENTS.md Cargo.toml Thumbs.db; do
      [ ! -e "$T/m/$tree/$name" ] || { echo "$tree/$name"; false; }
    done
  done
  [ ! -e "$T/m/pass/fox.json" ]
  [ "$(stat_of searches "$T/m")" -eq 0 ]
  [ -e "$T/m/query/index%2Ehtml" ]
  [ -e "$T/m/pass/httpd%2Econf" ]
  [ -e "$T/m/query/Makefile" ]
  [ "$(stat_of searches "$T/m")" -eq 3 ]
}

@test "a page server with the mount as its folder shows answers, and no query of its own" {
  needs_python
  mount_notes
  cd "$T/m"
  python3 -u -m http.server --bind 127.0.0.1 0 >"$T/http.log" 2>&1 3>&- 4>&- &
  server=$!
  until_true 10 grep -q 'port [0-9]' "$T/http.log"
  port=$(sed -n 's/.*port \([0-9]*\).*/\1/p' "$T/http.log")
  fetch() { python3 -c 'import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1]).read().decode())' "http://127.0.0.1:$port/$1"; }
  fetch pass/fox >"$T/got"
  fetch query/ >"$T/listing"
  kill $server
  cd /
  grep -q 'dreams of a fox' "$T/got"
  grep -q '@andor' "$T/listing"
  [ "$(stat_of searches "$T/m")" -eq 1 ]
}

@test ".stats: the last error, and what the last answer does not show" {
  mount_notes
  run cat "$T/m/query/fox+OR+dog"
  [[ "$output" == *'Invalid argument'* ]]
  stat_of last_error "$T/m" | grep -q "^fox+OR+dog: 'OR' is no operator"
  for name in fox+AND+dog NOT+fox 'fox+||+dog'; do [ ! -e "$T/m/query/$name" ] && [ ! -e "$T/m/hits/$name" ]; done
  [ -e "$T/m/query/fox+or+dog" ]
  [ -e "$T/m/query/fox%2BAND%2Bdog" ]
  head -n 1 "$T/m/pass/fox+OR+dog" | grep -q "^('OR' is no operator"
  grep -q 'dreams of a fox' "$T/m/pass/fox+OR+dog"
  cat "$T/m/query/title:fox" >/dev/null
  stat_of last_note "$T/m" | grep -q "^title:fox: 'title:fox' is no operator"
  holds "(no document has 'fxo'; it has fox)" "$T/m/pass/fxo"
  [ ! -s "$T/m/grep/wlf" ]
  stat_of last_note "$T/m" | grep -q "^wlf: no document has 'wlf'; it has wolf"
  [ "$(head -n 1 "$T/m/pass/foxx")" = "(no document has 'foxx'; 'fox' is searched in its place)" ]
  grep -q 'dreams of a fox' "$T/m/pass/foxx"
  cmp "$T/m/grep/fox" "$T/m/grep/foxx"
  stat_of last_note "$T/m" | grep -q "^foxx: no document has 'foxx'; 'fox' is searched in its place"
  [ ! -s "$T/m/query/foxx" ]
  stat_of last_note "$T/m" | grep -q '^foxx: no document has this word'
  [ ! -s "$T/m/query/fox+foxx" ]
  stat_of last_note "$T/m" | grep -q '^fox+foxx: no document has all of these words; @andor takes any of them'
  [ -s "$T/m/query/@andor/fox+foxx" ]
  [ ! -e "$T/m/pass/%22fox" ]
  stat_of last_error "$T/m" | grep -q 'quote at byte 0'
  [ ! -d "$T/m/query/@tokens=3" ]
  stat_of last_error "$T/m" | grep -q '^@tokens=3: not an option here'
}

@test ".stats: what was left out of the index, and of a live one what the last update left out" {
  mkdir "$T/d" "$T/m" "$T/n"
  echo wolf >"$T/d/a"
  echo wolf >"$T/d/.h"
  "$gpuir" index -q "$T/d" -o "$T/x.gpuir"
  "$gpuir" index -q --live "$T/d" -o "$T/live"
  serve "$T/x.gpuir" "$T/m"
  [ "$(stat_of skipped "$T/m")" = '1 hidden; options that read more: --hidden' ]
  kill "$fs_pid"
  until_true 5 has_ended "$fs_pid"
  serve "$T/live" "$T/n"
  [ "$(stat_of skipped "$T/n")" = '1 hidden; options that read more: --hidden' ]
  rm "$T/d/.h"
  "$gpuir" update -q "$T/d" -o "$T/live"
  [ -z "$(stat_of skipped "$T/n")" ]
}

@test "AGENTS.md teaches a program the mount in twenty lines at most, and what it says works" {
  mount_notes
  [ "$(wc -l <"$T/m/AGENTS.md")" -le 20 ]
  [ "$(stat -c %s "$T/m/AGENTS.md")" -eq "$(wc -c <"$T/m/AGENTS.md")" ]
  [ "$(awk 'length > 120' "$T/m/AGENTS.md" | wc -l)" -eq 0 ]
  [ "$(grep -c '^    ' "$T/m/AGENTS.md")" -eq 4 ]
  cd "$T/m"
  sed -n 's/^    \([a-z -]*'"'"'[^'"'"']*'"'"'\|.*'"'"'\) .*/\1/p' AGENTS.md >"$T/commands"
  [ "$(grep -c . "$T/commands")" -eq 4 ]
  while read -r command; do
    eval "$command" >/dev/null || [[ $command == grep* ]] # grep finds nothing in these notes
  done <"$T/commands"
  stat pass/@tokens=3000/fox pass/@context=5/fox pass/@and/fox grep/@k=30/fox >/dev/null
  [ -z "$(stat_of last_error .)" ]
}

@test "somebody at a terminal is told what to type; nobody else" {
  needs_python
  notes
  [ -z "$("$fs" "$T/i.gpuir" "$T/m" 2>&1)" ]
  fusermount3 -u "$T/m"
  python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) != 0)' "$fs" "$T/i.gpuir" "$T/m" >"$T/said" 3>&- 4>&-
  grep -q "^Mounted. Try: cat '$T/m/pass/some+words'" "$T/said"
  fusermount3 -u "$T/m"
}

@test "a terminal gets nothing from texts and paths that acts on it" {
  needs_python
  mkdir "$T/m" "$T/d"
  printf 'wolf \033[2J \001 \xff \xe2\x80\xae %s\n' "$(printf 'é%.0s' {1..10})" >"$T/d/evil"$'\033'".txt"
  (cd "$T" && "$gpuir" index -q d -o i.gpuir)
  serve "$T/i.gpuir" "$T/m"
  check harmless "$T/m/pass/wolf" "$T/m/grep/wolf" "$T/m/query/wolf.paths"
  grep -qF '\x1b[2J' "$T/m/pass/wolf"
  cmp "$T/m/files/wolf"/* "$T/d"/evil*
}

@test "allow_other: what holds text of sources is the mounting user's alone" {
  needs_users
  local dir=$T # the folders of bats lead there, and are closed to others
  while [ "$dir" != / ]; do
    chmod o+x "$dir"
    dir=$(dirname "$dir")
  done
  notes
  printf 'a\tstored fox\n' >"$T/t.tsv"
  "$gpuir" index -q --tsv --store "$T/t.tsv" -o "$T/s.gpuir"
  mkdir "$T/n"
  "$fs" -o allow_other "$T/i.gpuir" "$T/m"
  "$fs" -o allow_other "$T/s.gpuir" "$T/n"
  as 64001 test -e "$T/m/query/fox"
  refused() { run as 64001 cat "$1" && [ "$status" -ne 0 ] && [[ "$output" == *'Permission denied'* ]]; }
  for turn in 1 2; do # before and after the owner has asked
    for name in pass/fox grep/fox files/fox/000001-notes_animals.txt; do refused "$T/m/$name"; done
    cat "$T/m/pass/fox" "$T/m/grep/fox" "$T/m/files/fox/000001-notes_animals.txt" >/dev/null
  done
  [ "$(stat -c '%a %u' "$T/m/pass/fox")" = "400 0" ]
  [ "$(stat -c '%a %u' "$T/m/files/fox/000001-notes_animals.txt")" = "400 0" ]
  as 64001 grep -q '^last_error.*for the user who mounted alone' "$T/m/.stats"
  as 64001 cat "$T/m/query/fox.paths" >/dev/null
  # stored text is for all who may enter
  as 64001 grep -q 'stored fox' "$T/n/pass/fox" "$T/n/grep/fox"
  as 64001 grep -rq 'stored fox' "$T/n/files/fox"
}

@test "a signal ends the making of passages" {
  needs_python
  mkdir "$T/m" "$T/d"
  for i in $(seq 40); do seq -f "wolf %g lorem ipsum dolor sit amet" 1 30000 >"$T/d/$i.txt"; done
  (cd "$T" && "$gpuir" index -q --whole-files d -o i.gpuir)
  serve "$T/i.gpuir" "$T/m"
  check interrupt "$T/m/pass/@k=40/@tokens=0/wolf+lorem" "$T/m/pass/@k=40/@tokens=0/wolf+ipsum" \
    "$T/m/pass/@k=40/@tokens=0/wolf+dolor" "$T/m/pass/@k=40/@tokens=0/wolf+amet"
}

@test "an index that is replaced, and a live one that changes" {
  mkdir "$T/m" "$T/n"
  printf 'a\told fox\n' | "$gpuir" index -q --tsv --store - -o "$T/i.gpuir"
  printf 'a\told fox\n' >"$T/old.tsv"
  "$gpuir" index -q --live --tsv --store "$T/old.tsv" -o "$T/live"
  serve "$T/i.gpuir" "$T/m"
  "$fs" "$T/live" "$T/n"
  cat "$T/m/pass/fox" "$T/n/pass/fox" >/dev/null
  exec 5<"$T/m/pass/fox" 6<"$T/n/files/fox/000001-a"
  cd "$T/n/files/fox"
  printf 'b\tnew fox\n' | "$gpuir" index -q --tsv --store - -o "$T/j.gpuir"
  mv "$T/j.gpuir" "$T/i.gpuir"
  printf 'b\tnew fox\n' | "$gpuir" add -q --tsv - -o "$T/live"
  until_true 10 grep -q 'new fox' "$T/m/pass/fox"
  until_true 10 grep -q 'new fox' "$T/n/pass/fox"
  grep -q 'old fox' "$T/n/pass/fox"
  [ "$(cat 000001-a)" = 'old fox' ] # the folder is of the commit before, which is kept
  cd /
  grep -q 'old fox' <&5
  grep -q 'old fox' <&6
  exec 5<&- 6<&-
  [ "$(ls "$T/n/files/fox" | wc -l)" -eq 2 ]
  # the one that was added has no file, and its place in doc/ names the commit
  [ "$(cat "$(grep /doc/ "$T/n/query/fox.paths")")" = 'new fox' ]
  grep -q "/doc/$(stat_of generation "$T/n")\.[01]$" "$T/n/query/fox.paths"
}

@test "a source that a filter turned into text is named, and its bytes are not taken for its text" {
  mkdir "$T/d" "$T/m"
  printf 'jbys naq sbk\n' >"$T/d/secret.rot"
  (cd "$T" && "$gpuir" index -q --filter 'rot=tr a-z n-za-m' --chunk-lines 1 d -o i.gpuir)
  serve "$T/i.gpuir" "$T/m"
  holds "$T/d/secret.rot (its text was made by a filter; -o filter= lets the mount make it again)
" "$T/m/pass/wolf"
  for name in files/wolf/000001-* doc/0; do
    run cat "$T/m/"$name
    [ "$status" -ne 0 ]
    [[ "$output" == *'No data available'* ]]
  done
  (cd "$T" && "$gpuir" index -q --store --filter 'rot=tr a-z n-za-m' --chunk-lines 1 d -o i.gpuir)
  until_true 10 grep -q 'wolf and fox' "$T/m/pass/wolf"
}

@test "without a budget passages show every word of a query that a document holds; passages.sh says what they cost" {
  [ -x "$build/tests/e2e/passage_costs" ] || skip "passage_costs was not built"
  needs_python
  cut -f 2- "$root/tests/data/wordnet.tsv" | awk 'NR % 7 == 0 { print $2, $5, $9, $14 }' | head -n 200 >"$T/queries"
  GPUIR_BUILD=$build "$root/tools/scripts/passages.sh" "$tmp/wordnet.gpuir" "$T/queries" 20 >"$T/log"
  cat "$T/log"
  grep -q '^queries 200, texts [0-9]*, terms [1-9][0-9]*, not shown 0$' "$T/log"
  grep -q '^new pass: 20 queries, ms: .*, failed 0$' "$T/log"
  # whole files, of which the passages are a small part
  mkdir "$T/d"
  for i in $(seq 20); do { seq 3000; sed -n "$((i * 90)),$((i * 90 + 90))p" "$root/tests/data/wordnet.tsv"; } >"$T/d/$i.txt"; done
  (cd "$T" && "$gpuir" index -q d -o d.gpuir)
  "$build/tests/e2e/passage_costs" "$T/d.gpuir" "$T/queries" | grep ', not shown 0$'
  # a source that is gone is an error, not a text that shows all
  rm "$T/d/1.txt" "$T/d/2.txt"
  run "$build/tests/e2e/passage_costs" "$T/d.gpuir" "$T/queries"
  [ "$status" -eq 2 ]
}

@test "a question to pass/, grep/ and files/ of an English index does without words that say little, and last_note names them" {
  ! grep -q '^stemmers: none' <("$gpuir" --version) || skip "built without libstemmer"
  mkdir "$T/d" "$T/m"
  echo "what is the way" >"$T/d/a.txt"
  echo "the wolf of the forest" >"$T/d/b.txt"
  (cd "$T" && "$gpuir" index -q --lang en d -o i.gpuir)
  serve "$T/i.gpuir" "$T/m"
  [ "$(ls "$T/m/files/what+is+the+wolf+forest")" = 000001-d_b.txt ]
  stat_of last_note "$T/m" | grep -q '^what+is+the+wolf+forest: left out, for they say little: what is the$'
  [ "$(grep -c : "$T/m/grep/what+is+the+wolf+forest")" -eq 1 ]
  [[ $(cat "$T/m/pass/what+is+the+wolf+forest") == *b.txt:1-1* ]]
  [[ $(cat "$T/m/pass/what+is+the+wolf+forest") != *a.txt* ]]
  [ "$(wc -l <"$T/m/query/@or/what+is+the+wolf+forest.tsv")" -eq 2 ] # what programs ask for is asked as it is
}

@test "in place of a stem notes have a word of the texts, wherever these are, and the stem where they cannot be had" {
  ! grep -q '^stemmers: none' <("$gpuir" --version) || skip "built without libstemmer"
  mkdir "$T/d" "$T/m"
  echo "orchestral music" >"$T/d/a.txt"
  echo "the house of music" >"$T/d/b.txt"
  (cd "$T" && "$gpuir" index -q --stem english d -o i.gpuir)
  serve "$T/i.gpuir" "$T/m"
  [ "$(head -n 1 "$T/m/pass/@k=1/music+orchestrl")" = "(no document has 'orchestrl'; 'orchestral' is searched in its place)" ]
  ls "$T/m/files/orchestrl+house" >/dev/null
  stat_of last_note "$T/m" | grep -q "^orchestrl+house: no document has 'orchestrl'; 'orchestral' is searched in its place"
  echo "changed" >"$T/d/a.txt"
  grep -q music "$T/m/grep/music+orchestrl"
  stat_of last_note "$T/m" | grep -q "^music+orchestrl: no document has 'orchestrl'; 'orchestr' is searched in its place"
}
