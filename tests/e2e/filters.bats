#!/usr/bin/env bats
# --filter: files of other formats, turned into text by programs, in index, update, watch, add and query.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  export root build PATH="$build:$PATH"
}

# A file of the format "rot" is text in another order of letters.
setup() {
  cd "$BATS_TEST_TMPDIR" || exit
  mkdir bin docs
  printf '#!/bin/sh\nif [ "$1" = -f ]; then echo "cannot read it" >&2; exit 3; fi\nexec tr a-z n-za-m\n' >bin/unrot
  chmod +x bin/unrot
  PATH=$PWD/bin:$PATH
  printf 'the wolf\nsleeps\n' | unrot >docs/a.rot
  printf 'a dog and a wolf\n' >docs/plain.txt
  F='rot=unrot'
}

names() { gpuir query --tsv "$@" | cut -f 4 | paste -sd ' '; }

@test "what the program writes is the document; the index knows the filter" {
  gpuir index -q --filter "$F" docs -o x.gpuir
  [ "$(names x.gpuir wolf)" = "docs/a.rot docs/plain.txt" ]
  gpuir stats x.gpuir | grep -qx 'filters  *rot=#[0-9a-f]*'
  gpuir stats --json x.gpuir | grep -q '"filters":"rot=#[0-9a-f]*"'
  gpuir verify x.gpuir
  cp docs/a.rot docs/B.ROT
  gpuir index -q --chunk-lines 1 --filter "$F" docs -o x.gpuir
  [ "$(names x.gpuir sleeps)" = "docs/B.ROT:2-2 docs/a.rot:2-2" ]
  gpuir reorder -q --order random x.gpuir y.gpuir
  gpuir stats y.gpuir | grep -qx 'filters  *rot=#[0-9a-f]*'
}

@test "passages: the filter makes the text again, or it is said that there is none" {
  for how in '' '--chunk-lines 1' '--lines'; do
    # shellcheck disable=SC2086 # options are parted
    gpuir index -q $how --filter "$F" docs -o x.gpuir
    prints 'docs/a.rot:sleeps' gpuir query --grep --filter "$F" x.gpuir sleeps
    run --separate-stderr gpuir query --passages x.gpuir sleeps
    [ "$status" -eq 0 ]
    [[ $output == "docs/a.rot (its text was made by a filter; --filter 'rot=PROGRAM' makes it again)"* ]]
    gpuir query --passages --json x.gpuir sleeps |
      grep -qF "\"changed\":false,\"missing\":\"its text was made by a filter; --filter 'rot=PROGRAM' makes it again\",\"passages\":[]"
    run --separate-stderr gpuir query --grep x.gpuir sleeps
    [ -z "$output" ]
    # shellcheck disable=SC2154 # stderr is set by run
    [[ $stderr == *"docs/a.rot: its text was made by a filter"* ]]
    # stored texts need no filter
    # shellcheck disable=SC2086
    gpuir index -q --store $how --filter "$F" docs -o x.gpuir
    prints 'docs/a.rot:sleeps' gpuir query --grep x.gpuir sleeps
  done
}

@test "passages: a filter that fails for a file is run once, not for each hit of the file" {
  printf '#!/bin/sh\necho >>"%s"\n[ ! -e "%s" ] || exit 3\nexec tr a-z n-za-m\n' "$PWD/runs" "$PWD/fail" >bin/unrot
  printf 'wolf one\nwolf two\nwolf three\n' | unrot >docs/a.rot
  gpuir index -q --lines --filter "$F" docs -o x.gpuir
  rm runs
  touch fail
  run --separate-stderr gpuir query --passages --filter "$F" x.gpuir wolf
  [ "$(grep -c 'a.rot: no text: unrot: exit status 3' <<<"$stderr")" -eq 3 ] # each hit without a text is named
  [ "$(wc -l <runs)" -eq 1 ]
}

@test "passages: a filter that the index was not made with is refused" {
  gpuir index -q --filter "$F" docs -o x.gpuir
  for other in 'rot=cat' 'rot=unrot -f' 'pdf=unrot'; do
    fails 1 "x.gpuir: made with --filter 'rot=PROGRAM'; give the same" gpuir query --grep --filter "$other" x.gpuir sleeps
  done
  fails 1 'give the same' gpuir query --passages --filter "$F" --filter 'pdf=cat' x.gpuir sleeps
  gpuir index -q docs/plain.txt -o y.gpuir
  fails 1 'y.gpuir: made without --filter' gpuir query --passages --filter "$F" y.gpuir wolf
  gpuir index -q --live --filter "$F" docs -o live
  fails 1 "live: made with --filter 'rot=PROGRAM'; give the same" gpuir query --passages --filter 'rot=cat' live sleeps
  prints 'docs/a.rot:sleeps' gpuir query --grep --filter "$F" live sleeps
}

@test "passages: a source that changed, or whose filter makes another text, is said to have changed" {
  gpuir index -q --filter "$F" docs -o x.gpuir
  cp bin/unrot unrot
  printf '#!/bin/sh\nexec cat\n' >bin/unrot
  run gpuir query --passages --filter "$F" x.gpuir sleeps
  [[ $output == 'docs/a.rot (changed since it was indexed)'* ]]
  cp unrot bin/unrot
  printf 'the wolf\nwakes\n' | unrot >docs/a.rot
  run gpuir query --passages --filter "$F" x.gpuir sleeps
  [[ $output == 'docs/a.rot (changed since it was indexed)'* ]]
  rm docs/a.rot
  run gpuir query --passages --filter "$F" x.gpuir sleeps
  [[ $output == 'docs/a.rot (No such file or directory)'* ]]
  printf 'x' >docs/a.rot
  printf '#!/bin/sh\necho "cannot read it" >&2\nexit 3\n' >bin/unrot
  run gpuir query --passages --filter "$F" x.gpuir sleeps
  [[ $output == *'docs/a.rot: no text: unrot: exit status 3: cannot read it'*'docs/a.rot (no text)'* ]]
}

@test "records of filtered files: JSON lines packed by gzip" {
  printf '{"id": "one", "contents": "green tea"}\n{"id": "two", "contents": "black tea"}\n' | gzip >docs.jsonl.gz
  gpuir index -q --jsonl --filter 'jsonl.gz=gzip -dc' docs.jsonl.gz -o x.gpuir
  [ "$(names x.gpuir tea)" = "one two" ]
  [[ $(gpuir query --grep --filter 'jsonl.gz=gzip -dc' x.gpuir black) == *'docs.jsonl.gz:{"id": "two"'* ]]
}

@test "a file of which no text comes is warned of and counted; one that was named fails" {
  fails 3 'docs/a.rot: no text: unrot: exit status 3: cannot read it' gpuir index --filter 'rot=unrot -f' docs -o x.gpuir
  [[ $stderr == *'skipped: 1 unreadable'* ]]
  [ "$(names x.gpuir wolf)" = docs/plain.txt ]
  fails 1 'no text: unrot: exit status 3' gpuir index -q --filter 'rot=unrot -f' docs/a.rot -o y.gpuir
  [ ! -e y.gpuir ]
  printf '#!/nowhere/sh\n' >bin/broken
  printf '#!/bin/sh\nkill -9 $$\n' >bin/killed
  chmod +x bin/*
  fails 1 'no text: broken: cannot be run' gpuir index -q --filter 'rot=broken' docs/a.rot -o y.gpuir
  fails 1 'no text: killed: ended by signal 9' gpuir index -q --filter 'rot=killed' docs/a.rot -o y.gpuir
  # what has a NUL byte is no text, whoever wrote it
  fails 1 'a binary file' gpuir index -q --filter 'rot=head -c 9 /dev/zero' docs/a.rot -o y.gpuir
}

@test "a program that takes too long, or writes too much, ends with all that it has started" {
  printf '#!/bin/sh\nsleep 31.25 &\nsleep 31.25\n' >bin/slow
  printf '#!/bin/sh\nexec >&-\nexec 2>&-\nexec sleep 31.25\n' >bin/silent
  printf '#!/bin/sh\nyes\n' >bin/long
  chmod +x bin/*
  export GPUIR_FILTER_SECONDS=1
  fails 1 'no text: slow: it took too long' gpuir index -q --filter rot=slow docs/a.rot -o y.gpuir
  fails 1 'no text: silent: it took too long' gpuir index -q --filter rot=silent docs/a.rot -o y.gpuir
  GPUIR_FILTER_SECONDS=0
  fails 1 "GPUIR_FILTER_SECONDS: '0' is not a whole number" gpuir index -q --filter rot=long docs/a.rot -o y.gpuir
  unset GPUIR_FILTER_SECONDS
  fails 1 'no text: long: it writes too much text' gpuir index -q --filter rot=long docs/a.rot -o y.gpuir
  for _ in $(seq 50); do pgrep -f 'sleep 31.25' || break; sleep 0.1; done
  run ! pgrep -f 'sleep 31.25'
}

@test "what a program leaves behind is killed, also in a session of its own, after a good end and a bad one" {
  [ -e /proc/thread-self/children ] || skip "the kernel lists no children"
  local left="sleep 33.$$" beside
  printf '#!/bin/sh\n%s >&- 2>&- <&- &\n(setsid %s >&- 2>&- <&- &)\nexec unrot\n' "$left" "$left" >bin/leaves
  printf '#!/bin/sh\n(setsid %s &)\nsleep 0.2\nexit 3\n' "$left" >bin/fails
  chmod +x bin/*
  gpuir index -q --filter rot=leaves docs -o y.gpuir
  [ "$(names y.gpuir wolf)" = "docs/a.rot docs/plain.txt" ]
  run ! pgrep -f "$left"
  export GPUIR_FILTER_SECONDS=2
  run gpuir index -q --filter rot=fails docs -o y.gpuir
  run ! pgrep -f "$left"
  # A child that the command has from its shell is not the program's.
  (
    sleep 34 3>&- &
    echo $! >beside
    exec gpuir index -q --filter rot=leaves docs -o y.gpuir 3>&-
  )
  beside=$(cat beside)
  kill "$beside" # which fails if it was killed
  run ! pgrep -f "$left"
}

@test "a signal ends the program, and the command leaves nothing" {
  printf '#!/bin/sh\necho begun >begun\nexec sleep 32.25\n' >bin/slow
  chmod +x bin/slow
  gpuir index -q --filter rot=slow docs -o y.gpuir 3>&- &
  pid=$!
  for _ in $(seq 100); do if [ -e begun ]; then break; fi; sleep 0.1; done
  kill $pid
  status=0
  wait $pid || status=$?
  [ "$status" -eq 143 ]
  [ ! -e y.gpuir ]
  [ ! -e y.gpuir.tmp ]
  for _ in $(seq 50); do pgrep -f 'sleep 32.25' || break; sleep 0.1; done
  run ! pgrep -f 'sleep 32.25'
}

@test "no shell sees a file's name, and the program gets nothing of it" {
  printf 'the moon\n' | unrot >"docs/\$(touch HACK); touch HACK; '.rot"
  printf '#!/bin/sh\necho "$#:$*"\nexec unrot\n' >bin/args
  chmod +x bin/args
  gpuir index -q --filter 'rot=args  -x   $HOME' docs -o x.gpuir
  [ "$(gpuir query --tsv x.gpuir moon | wc -l)" -eq 1 ]
  [ ! -e HACK ]
  [ ! -e docs/HACK ]
  # its words are as they were given
  gpuir index -q --store --filter 'rot=args -x $HOME' docs/a.rot -o x.gpuir
  prints $'docs/a.rot:2:-x $HOME\ndocs/a.rot:the wolf' gpuir query --grep --context 0 x.gpuir home wolf
}

@test "misuse" {
  local bad
  for bad in rot =unrot 'rot=' 'rot=  ' .rot=unrot 'a/b=unrot' $'rot=un\trot'; do
    fails 2 '--filter' gpuir index --filter "$bad" docs -o y.gpuir
  done
  fails 2 "'rot=no/such/program': no such program" gpuir index --filter 'rot=no/such/program' docs -o y.gpuir
  fails 2 "'rot=no-such-program': no such program" gpuir query --filter 'rot=no-such-program' y.gpuir x
  fails 2 "the ending has a filter already" gpuir index --filter "$F" --filter "$F" docs -o y.gpuir
}

@test "a live index is updated with the filters it was made with, and no others" {
  gpuir index -q --live --filter "$F" docs -o live
  [ "$(names live wolf)" = "docs/a.rot docs/plain.txt" ]
  fails 1 "live: made with --filter 'rot=PROGRAM'; give the same" gpuir update -q docs -o live
  fails 1 "live: made with --filter 'rot=PROGRAM'" gpuir update -q --filter rot=cat docs -o live
  fails 1 "live: made with --filter 'rot=PROGRAM'" gpuir watch -q docs -o live
  fails 1 "live: made with --filter 'rot=PROGRAM'" gpuir add -q docs/a.rot -o live
  echo 'a fox' | gpuir add -q --name fox - -o live
  printf 'a fox\n' | unrot >docs/b.rot
  gpuir add -q --filter "$F" docs/b.rot -o live
  [ "$(names live fox)" = "fox docs/b.rot" ]
  [ "$(gpuir query --grep --filter "$F" live fox 2>/dev/null)" = docs/b.rot:a\ fox ]
  gpuir index -q --live docs/plain.txt -o other
  fails 1 "other: made without --filter" gpuir update -q --filter "$F" docs -o other
}

@test "update reads a filtered file again when its bytes have changed, and only then" {
  printf '#!/bin/sh\necho >>%s/runs\nexec unrot\n' "$PWD" >bin/counted
  chmod +x bin/counted
  runs() { wc -l <runs; }
  gpuir index -q --live --filter rot=counted docs -o live
  [ "$(runs)" -eq 1 ]
  gpuir update -q --filter rot=counted docs -o live
  [ "$(runs)" -eq 1 ]
  touch docs/a.rot
  gpuir update -q --filter rot=counted docs -o live
  [ "$(runs)" -eq 1 ]
  printf 'the wolf\nslaept\n' | unrot >docs/a.rot
  gpuir update -q --filter rot=counted docs -o live
  [ "$(runs)" -eq 2 ]
  [ "$(names live slaept)" = docs/a.rot ]
  # a filter that fails leaves what the index has, until it does not
  printf '#!/bin/sh\ntest ! -e %s/broken || exit 1\nexec unrot\n' "$PWD" >bin/counted
  : >broken
  printf 'a new wolf\n' | unrot >docs/a.rot
  fails 3 'docs/a.rot: no text' gpuir update -q --filter rot=counted docs -o live
  rm broken
  gpuir update -q --filter rot=counted docs -o live
  [ "$(names live new)" = docs/a.rot ]
  rm docs/a.rot
  gpuir update -q --filter rot=counted docs -o live
  [ -z "$(gpuir query --tsv live new 2>/dev/null)" ]
}

@test "watch filters" {
  [ "$(uname)" = Linux ] || skip "no inotify"
  gpuir index -q --live --filter "$F" docs -o live
  gpuir watch -q --filter "$F" docs -o live 2>err 3>&- &
  pid=$!
  sleep 0.3
  printf 'a walrus\n' | unrot >docs/w.rot
  for _ in $(seq 100); do
    if [ "$(names live walrus 2>/dev/null)" = docs/w.rot ]; then found=yes; break; fi
    sleep 0.1
  done
  kill $pid
  wait $pid
  [ "$found" = yes ]
  [ ! -s err ]
}

@test "a PDF" {
  command -v pdftotext >/dev/null || skip "no pdftotext"
  python3 "$root/tests/support/make_pdf.py" docs/tea.pdf 'Green tea is grown in shade.' 'Black tea is not.' ||
    skip "no python3"
  fails 1 "docs/tea.pdf: a PDF file, of which --filter 'pdf=pdftotext - -' makes a text" gpuir index -q docs/tea.pdf -o x.gpuir
  gpuir index docs -o x.gpuir 2>err
  grep -q "skipped: 1 PDF; options that read more: --filter 'pdf=pdftotext - -'" err
  gpuir index -q --filter 'pdf=pdftotext - -' docs -o x.gpuir
  prints 'docs/tea.pdf:Green tea is grown in shade.' gpuir query --grep --filter 'pdf=pdftotext - -' x.gpuir shade
}

@test "quotes hold blanks in a filter's words" {
  echo 'alpha beta' | gzip >docs/x.gz
  gpuir index -q --filter 'gz=sh -c "zcat | cat"' docs/x.gz -o x.gpuir
  prints 1 gpuir count x.gpuir alpha
  gpuir index -q --filter "gz=sh -c 'zcat | sed \"s/beta/gamma delta/\"'" docs/x.gz -o x.gpuir
  prints 1 gpuir count x.gpuir gamma delta
  gpuir index -q --filter 'gz=sh -c zcat\ |\ cat' docs/x.gz -o x.gpuir
  prints 1 gpuir count x.gpuir beta
  fails 2 'a quote is not closed' gpuir index -q --filter 'gz=sh -c "zcat' docs/x.gz -o y.gpuir
}

@test "what is left out is said, by kinds, with the option that would read it" {
  mkdir d
  for i in 1 2; do echo 'alpha beta' | gzip | gzip >d/x$i.gz; done
  printf '%%PDF-1.4\n' >d/a.pdf
  printf 'PK\003\004\000\000' >d/a.docx
  printf '\000\001' >d/b
  echo alpha >d/.h
  fails 1 "skipped: 1 binary, 1 PDF, 2 gzip, 1 zip, 1 hidden; options that read more: --filter 'pdf=pdftotext - -', --hidden" gpuir index -q d -o x.gpuir
  [[ $stderr == *'nothing to index was found'* ]]
  echo alpha >d/text
  gpuir index -v d -o x.gpuir 2>err
  for name in 'd/x1.gz: skipped: gzip' 'd/a.docx: skipped: zip' 'd/b: skipped: binary' 'd/.h: skipped: hidden'; do
    grep -qxF "gpuir: $name" err
  done
  gpuir index -q --live d/text -o live
  gpuir update d -o live 2>err
  grep -q 'skipped: 1 binary, 1 PDF, 2 gzip, 1 zip, 1 hidden' err
  fails 1 "d/a.pdf: a PDF file, of which --filter 'pdf=pdftotext - -' makes a text" gpuir index -q d/a.pdf -o y.gpuir
}

@test "an index keeps what was left out of it, reorder hands it on, and nothing takes no byte" {
  mkdir d
  echo alpha >d/text
  gpuir index -q d/text -o none.gpuir
  [ -z "$(gpuir stats none.gpuir | grep skipped)" ]
  gpuir stats --json none.gpuir | grep -qF '"skipped":{}'
  [ -z "$(grep -aF skipped none.gpuir)" ]
  printf '\000\001' >d/b
  echo alpha >d/.h
  gpuir index -q d -o x.gpuir
  gpuir reorder -q --order random x.gpuir y.gpuir
  for f in x y; do
    gpuir stats $f.gpuir | grep -qx 'skipped  *1 binary, 1 hidden; options that read more: --hidden'
    gpuir stats --json $f.gpuir | grep -qF '"skipped":{"binary":1,"hidden":1}'
  done
}

@test "a live index keeps what its last update left out, also of files that were not read again" {
  mkdir d
  echo alpha >d/text
  printf '\000\001' >d/b
  echo alpha >d/.h
  gpuir index -q --live d -o live
  said() { gpuir stats --json live | grep -o '"skipped":{[^}]*}'; }
  [ "$(said)" = '"skipped":{"binary":1,"hidden":1}' ]
  gpuir update d -o live 2>err
  grep -q 'skipped: 1 binary, 1 hidden; options' err
  grep -q '2 unchanged files' err
  [ "$(said)" = '"skipped":{"binary":1,"hidden":1}' ]
  rm d/.h
  gpuir update -q d -o live
  echo beta | gpuir add -q --lines - -o live
  gpuir merge -q --all live
  [ "$(said)" = '"skipped":{"binary":1}' ]
  printf 'now=x\tbinary=\tlinks=7x\thidden=99999999999999999999999\tother=5\033' >live/skipped # not what is written
  [ "$(said)" = '"skipped":{}' ]
  rm d/b
  gpuir update -q d -o live
  [ "$(said)" = '"skipped":{}' ]
  printf '\000\001' >d/b
  gpuir update -q d -o live
  rm live/skipped
  mkdir live/skipped
  fails 1 "live/skipped: Is a directory; 'gpuir stats' says what was left out before" gpuir update -q d -o live
  [ "$(said)" = '"skipped":{}' ]
  prints 1 gpuir count live alpha
}

@test "no program is taken from an index: a table that holds a command line runs nothing" {
  "$build/tests/e2e/forged_filters" forged.gpuir docs/a.rot "rot=sh -c 'touch ran'" wolf
  for how in '' '--filter auto' "--filter rot=cat"; do
    # shellcheck disable=SC2086 # options are parted
    run --separate-stderr gpuir query --passages $how forged.gpuir wolf
    [[ $output$stderr != *touch* ]]
  done
  "$build/tests/e2e/forged_filters" forged.gpuir docs/a.rot 'rot=@sh -c touch' wolf
  fails 1 'made with --filter auto; give the same' gpuir query --passages --filter auto forged.gpuir wolf
  [ ! -e ran ]
  "$build/tests/e2e/forged_filters" old.gpuir docs/a.rot 'rot=unrot' $'the wolf\nsleeps\n' # as an earlier version kept it
  prints 'docs/a.rot:the wolf' gpuir query --grep --filter "$F" old.gpuir wolf
}

@test "--filter auto takes known programs that are installed, says so, and the index keeps their names" {
  command -v pdftotext >/dev/null && [ -x /usr/bin/pdftotext ] || skip "no /usr/bin/pdftotext"
  python3 "$root/tests/support/make_pdf.py" docs/c.pdf 'the pdf wolf'
  printf '#!/bin/sh\ntouch ran\n' >bin/pdftotext # the path is fixed
  chmod +x bin/pdftotext
  gpuir index --filter auto docs -o x.gpuir 2>err
  grep -F 'filters: pdf by /usr/bin/pdftotext' err
  [ "$(names x.gpuir pdf)" = docs/c.pdf ]
  gpuir stats x.gpuir | grep 'filters  *pdf=@pdftotext'
  gpuir query --passages x.gpuir pdf | grep -F '(its text was made by a filter; --filter auto makes it again)'
  prints 'docs/c.pdf:the pdf wolf' gpuir query --grep --filter auto x.gpuir pdf
  gpuir index -q --live --filter auto docs -o live
  fails 1 'live: made with --filter auto; give the same' gpuir update -q docs -o live
  python3 "$root/tests/support/make_pdf.py" docs/d.pdf 'the owl'
  gpuir update -q --filter auto docs -o live
  [ "$(names live owl)" = docs/d.pdf ]
  [ ! -e ran ]
}

@test "--filter auto: the user's file has own filters; it must be writable by nobody else" {
  export XDG_CONFIG_HOME=$PWD/config
  mkdir -p -m 755 config/gpuir
  printf '# mine\n\nrot=unrot\n' >config/gpuir/filters
  chmod 644 config/gpuir/filters
  gpuir index --filter auto docs -o x.gpuir 2>err
  grep -F 'filters: rot by unrot' err
  prints 'docs/a.rot:sleeps' gpuir query --grep --filter auto x.gpuir sleeps
  prints 'docs/a.rot:sleeps' gpuir query --grep --filter "$F" --filter auto x.gpuir sleeps
  printf 'rot=unrot -f\n' >config/gpuir/filters
  fails 1 'x.gpuir: made with ' gpuir query --grep --filter auto x.gpuir sleeps
  printf 'rot=unrot -f\nzebra\n' >config/gpuir/filters
  fails 1 'filters:2: this is no ENDING=PROGRAM' gpuir index -q --filter auto docs -o y.gpuir
  chmod 664 config/gpuir/filters
  fails 1 'it names programs that run, so it and its folder must belong to you or root' \
    gpuir index -q --filter auto docs -o y.gpuir
  chmod 644 config/gpuir/filters
  chmod 777 config/gpuir
  fails 1 'nobody else may write there' gpuir index -q --filter auto docs -o y.gpuir
}
