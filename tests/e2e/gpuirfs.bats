#!/usr/bin/env bats
# gpuirfs with real tools on a real mount. GPUIR_TEST_LONG=1 (or GPUIR_LONG=1) runs the full counts.
# shellcheck disable=SC2010,SC2012 # what ls shows is a subject of these tests
# shellcheck disable=SC2016 # what eval and until_true run is in single quotes
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test is a subshell of its own; ../support/mount sets variables

load ../support/mount

# ---- the tree ----

@test "the root lists what there is, and nothing is writable" {
  [ "$(ls -A "$mnt" | LC_ALL=C sort | tr '\n' ' ')" = ".stats .version AGENTS.md README by doc facet files grep hits pass query term " ]
  [ "$(cat "$mnt/.version")" = "gpuirfs $("$fs" -V | cut -d ' ' -f 2)" ]
  grep -q 'cat query/' "$mnt/README"
  [ "$(stat -c '%s' "$mnt/README")" -eq "$(wc -c <"$mnt/README")" ]
  [ "$(stat -f -c '%l' "$mnt")" -eq 255 ]
  grep " $mnt " /proc/self/mounts | grep -q ' fuse.gpuirfs ro,nosuid,nodev,noexec,'
  grep " $mnt " /proc/self/mounts | grep -q 'default_permissions'
}

@test "query: the docIDs of gpuir query, best first" {
  for q in computer "computer science" "device -computer" "the of"; do
    name=${q// /+}
    "$gpuir" query --tsv -k 25 "$tmp/wordnet.gpuir" "$q" >"$T/want" || [ $? -eq 1 ]
    diff <(cut -f 2 "$T/want") "$mnt/query/@k=25/$name"
    diff <(cut -f 1,2,4 "$T/want") <(cut -f 1,2,4 "$mnt/query/@k=25/$name.tsv")
  done
  [ "$(wc -l <"$mnt/query/the+of")" -eq 10 ]
}

@test "query: modes, options in any order" {
  for mode in and or andor; do
    "$gpuir" query --tsv --mode $mode -k 40 "$tmp/wordnet.gpuir" "musical instrument" | cut -f 2 >"$T/want"
    diff "$T/want" "$mnt/query/@$mode/@k=40/musical+instrument"
    diff "$T/want" "$mnt/query/@k=40/@$mode/@cpu/musical+instrument"
    diff "$T/want" "$mnt/query/@cpu/@k=40/@$mode/musical+instrument"
    diff "$T/want" "$mnt/query/@$mode/@cpu/@k=40/musical+instrument"
  done
  [ ! -s "$mnt/query/@k=0/computer" ]
  [ "$(wc -l <"$mnt/query/@k=1000000/@or/a+the")" -gt 1000 ]
}

@test "query: spellings of one query give one answer and one search" {
  cat "$mnt/query/@k=7/dark+night" >"$T/want"
  searches=$(stat_of searches "$mnt")
  for name in 'dark%20night' 'dark night' '+dark++night+' '%64ark+night'; do
    diff "$T/want" "$mnt/query/@k=7/$name"
  done
  [ "$(stat_of searches "$mnt")" -eq "$searches" ]
}

@test "query: no hits is an empty file" {
  for name in zzyzx zzyzx.tsv zzyzx+computer; do
    run cat "$mnt/query/$name"
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    [ ! -s "$mnt/query/$name" ]
  done
  [ "$(cat "$mnt/query/zzyzx.json")" = "[]" ]
  [ -z "$(ls -A "$mnt/hits/zzyzx")" ]
}

@test "query: .json is valid whatever the names" {
  needs_python
  printf '{"id": "a\\u0001\\"\\\\\\t\\u0085/b", "contents": "strange"}\n{"id": "caf\\u00e9 \\ud83d\\ude00", "contents": "strange"}\n' >"$T/in.jsonl"
  printf 'x\xff\xc3\x28\xed\xa0\x80y\tstrange\nz\t%s\n' "$(printf 'é%.0s' {1..40})" >"$T/bad.tsv"
  "$gpuir" index -q --jsonl "$T/in.jsonl" -o "$T/a.gpuir"
  "$gpuir" index -q --tsv "$T/bad.tsv" -o "$T/b.gpuir"
  mkdir "$T/a" "$T/b"
  "$fs" "$T/a.gpuir" "$T/a"
  "$fs" "$T/b.gpuir" "$T/b"
  run check json "$T/a/query/strange.json" "$T/b/query/strange.json"
  echo "$output"
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = "'a\\x01\"\\\\\\t\\x85/b'" ]
  [ "${lines[1]}" = "'caf\\xe9 \\U0001f600'" ]
  [ "${lines[2]}" = "'x\\udcff\\udcc3(\\udced\\udca0\\udc80y'" ] # each byte
  # and one line for each hit in .tsv, whatever the names
  [ "$(wc -l <"$T/a/query/strange.tsv")" -eq 2 ]
  grep -qF 'a\x01"\\\t' "$T/a/query/strange.tsv"
  [ "$(ls "$T/a/hits/strange" | wc -l)" -eq 2 ]
  ls "$T/a/hits/strange" | grep -qF '000001-a_"\___b'
}

@test "hits: links in order, relative, that resolve" {
  cd "$mnt/hits/musical+instrument"
  [ "$(ls | head -n 1)" = "000001-$(sed -n 1p "$mnt/query/musical+instrument.tsv" | cut -f 4 | tr / _)" ]
  ls | while read -r name; do
    rank=$((10#${name%%-*}))
    docid=$(sed -n "${rank}p" "$mnt/query/musical+instrument")
    [ "$(readlink "$name")" = "../../doc/$docid" ]
    [ "$(readlink -f "$name")" = "$mnt/doc/$docid" ]
    cmp "$name" "$mnt/doc/$docid"
  done
  [ "$(ls | wc -l)" -eq "$(wc -l <"$mnt/query/musical+instrument")" ]
  cd "$mnt/hits/@or/@k=3/musical+instrument"
  [ "$(ls | wc -l)" -eq 3 ]
  for name in *; do
    [[ "$(readlink "$name")" == ../../../../doc/* ]]
    grep -qi -e musical -e instrument "$name"
  done
  # tools that follow links work on the folder
  [ "$(cat ./* | wc -l)" -eq 3 ] || [ "$(cat ./* | wc -c)" -gt 0 ]
  find -L . -type f | grep -c . | grep -qx 3
  [ ! -e 000001-nothing ]
  [ ! -e 000009-x ]
  [ ! -e 1 ]
}

@test "hits: names that do not fit are cut" {
  long_name=$(printf 'long%.0s' $(seq 100))
  printf '%s\tneedle\n%s\tneedle\n' "$long_name" "sub/dir/file" >"$T/in.tsv"
  "$gpuir" index -q --tsv --store "$T/in.tsv" -o "$T/i.gpuir"
  mkdir "$T/m"
  "$fs" "$T/i.gpuir" "$T/m"
  [ "$(ls "$T/m/hits/needle" | head -n 1 | tr -d '\n' | wc -c)" -eq 255 ]
  ls "$T/m/hits/needle" | grep -qx '000002-sub_dir_file'
  cat "$T/m/hits/needle"/* >/dev/null
}

@test "hits: a long folder lists completely" {
  [ "$(ls "$mnt/hits/@or/@k=1500/a+of+the+in" | wc -l)" -eq "$(wc -l <"$mnt/query/@or/@k=1500/a+of+the+in")" ]
  ls "$mnt/hits/@or/@k=1500/a+of+the+in" | sort -c
  [ "$(ls -l "$mnt/hits/@or/@k=1500/a+of+the+in" | grep -c -- '-> ../../../../doc/')" -gt 1000 ]
}

@test "doc: stored text" {
  cut -f 2- "$root/tests/data/wordnet.tsv" | sed -n 8p >"$T/want"
  diff <(cat "$mnt/doc/7") <(printf '%s' "$(cat "$T/want")")
  [ -f "$mnt/doc/7" ]
  [ ! -L "$mnt/doc/7" ]
  [ "$(stat -c %s "$mnt/doc/7")" -eq "$(wc -c <"$mnt/doc/7")" ]
  for name in 999999 4294967296 -1 07 x; do
    [ ! -e "$mnt/doc/$name" ]
  done
}

@test "doc: a file is a link, a chunk is a file of its lines" {
  mkdir "$T/src" "$T/m"
  seq -f 'line %g apple' 1 60 >"$T/src/a.txt"
  printf 'no newline at the end banana' >"$T/src/b.txt"
  (cd "$T" && "$gpuir" index -q src -o whole.gpuir && "$gpuir" index -q --chunk-lines 25 src -o chunks.gpuir)
  "$fs" "$T/whole.gpuir" "$T/m"
  [ -L "$T/m/doc/0" ]
  cmp "$T/m/doc/0" "$T/src/a.txt"
  cmp "$T/m/hits/banana/000001-"* "$T/src/b.txt"
  fusermount3 -u "$T/m"
  "$fs" "$T/chunks.gpuir" "$T/m"
  [ -f "$T/m/doc/1" ]
  [ ! -L "$T/m/doc/1" ]
  diff "$T/m/doc/1" <(sed -n 26,50p "$T/src/a.txt")
  diff "$T/m/doc/2" <(sed -n 51,60p "$T/src/a.txt")
  cmp "$T/m/doc/3" "$T/src/b.txt"
  [ "$(stat -c %s "$T/m/doc/1")" -eq "$(sed -n 26,50p "$T/src/a.txt" | wc -c)" ]
  # It is what was indexed, or nothing: not what stands there by now. It is gone with its source.
  cp "$T/src/a.txt" "$T/before"
  chmod 600 "$T/src/a.txt"
  [ "$(stat -c %a "$T/m/doc/1")" = 400 ]
  grep -q '^changed_sources	0$' "$T/m/.stats"
  printf 'ANOTHER' | dd of="$T/src/a.txt" bs=1 seek=400 conv=notrunc status=none # in lines 26 to 50
  sleep 1.1
  if cat "$T/m/doc/1" 2>"$T/err"; then return 1; fi
  grep -q 'Stale' "$T/err"
  if grep -q '^changed_sources	0$' "$T/m/.stats"; then return 1; fi
  diff "$T/m/doc/0" <(sed -n 1,25p "$T/before")
  cat "$T/before" "$T/before" >"$T/src/a.txt" # what follows does not count
  sleep 1.1
  diff "$T/m/doc/1" <(sed -n 26,50p "$T/before")
  rm "$T/src/b.txt"
  sleep 1.1
  [ ! -e "$T/m/doc/3" ]
  if [ -z "$no_python" ]; then
    : >"$T/src/a.txt" # the lines are no longer there
    sleep 1.1
    [ "$(errno_of "$T/m/doc/1")" = ESTALE ]
  fi
}

@test "doc: a record is its text as it was indexed" {
  mkdir "$T/src" "$T/m"
  printf '\xef\xbb\xbfa\tone apple\r\nb\ttwo apple\nc\tthree' >"$T/src/t"
  printf '{"id":"a","contents":"one apple"}\n\n{"id":"b", "contents":"two \\u0041pple"}\r\n' >"$T/src/j"
  printf 'x <DOC>\n<DOCNO> a </DOCNO>one\n</DOC> <doc><docno>b</docno>apple &amp; two</doc>\n' >"$T/src/d"
  (
    cd "$T"
    "$gpuir" index -q --tsv src/t -o t.gpuir
    "$gpuir" index -q --jsonl src/j -o j.gpuir
    "$gpuir" index -q --trec src/d -o d.gpuir
  )
  expect() { # NAME, and what its documents are
    local i=0 want
    "$gpuir" verify "$T/$1.gpuir"
    "$fs" "$T/$1.gpuir" "$T/m"
    shift
    for want; do
      printf '%b' "$want" >"$T/want"
      cmp "$T/m/doc/$((i++))" "$T/want"
    done
    fusermount3 -u "$T/m"
  }
  expect t 'one apple' 'two apple' three
  expect j 'one apple' 'two Apple'
  expect d '\n one\n' ' apple & two'
}

@test "term: statistics, by the term or a word that comes to it" {
  "$gpuir" terms --tsv "$tmp/wordnet.gpuir" >"$T/terms" 2>/dev/null || true
  df=$(awk -F '\t' '$1 == "df" { print $2 }' "$mnt/term/music")
  [ "$df" -eq "$(wc -l <"$mnt/query/@k=100000/music")" ]
  [ "$(awk -F '\t' '$1 == "term" { print $2 }' "$mnt/term/MUSICAL")" = music ]
  for key in df cf idf codec freq_codec blocks bytes; do grep -q "^$key	" "$mnt/term/music"; done
  [ ! -e "$mnt/term/zzyzx" ]
  [ ! -e "$mnt/term/two+words" ]
}

# ---- tools ----

@test "cat, head, tail, grep, wc, sort, cmp, diff" {
  f=$mnt/query/@or/@k=300/a+of.tsv
  cat "$f" >"$T/copy"
  [ "$(wc -l <"$T/copy")" -eq 300 ]
  diff <(head -n 5 "$f") <(head -n 5 "$T/copy")
  diff <(head -c 1000 "$f") <(head -c 1000 "$T/copy")
  diff <(tail -n 5 "$f") <(tail -n 5 "$T/copy")
  diff <(tail -c 100 "$f") <(tail -c 100 "$T/copy")
  diff <(tail -n +290 "$f") <(tail -n +290 "$T/copy")
  diff <(tac "$f") <(tac "$T/copy")
  [ "$(wc -c "$f" | cut -d ' ' -f 1)" -eq "$(wc -c <"$T/copy")" ]
  diff <(wc <"$f") <(wc <"$T/copy")
  diff <(grep -n 'a' "$f") <(grep -n 'a' "$T/copy")
  [ "$(grep -c . "$f")" -eq 300 ]
  sort -c -n "$f"
  cmp "$f" "$T/copy"
  [ "$(sha256sum <"$f")" = "$(sha256sum <"$T/copy")" ]
}

@test "less" {
  command -v less >/dev/null || skip "no less"
  less -F -X "$mnt/query/@k=100/@or/a+of" | cmp - "$mnt/query/@k=100/@or/a+of"
}

@test "cp, tar, install, rsync" {
  f=$mnt/query/@or/@k=500/a+of.json
  cat "$f" >"$T/want"
  for command in cp "cp -a" "cp --sparse=always" "cp --reflink=auto" "install -m 600"; do
    $command "$f" "$T/copy"
    cmp "$T/copy" "$T/want"
    rm -f "$T/copy"
  done
  tar -C "$mnt/query/@or/@k=500" -cf "$T/a.tar" a+of.json
  tar -xOf "$T/a.tar" a+of.json | cmp - "$T/want"
  tar -C "$mnt/hits" -chf "$T/b.tar" music
  mkdir "$T/b"
  tar -C "$T/b" -xf "$T/b.tar"
  cmp "$T/b/music/"000001-* "$mnt/hits/music/"000001-*
  cp -r "$mnt/hits/music" "$T/links"
  [ "$(ls "$T/links")" = "$(ls "$mnt/hits/music")" ]
  if command -v rsync >/dev/null; then
    rsync -a "$f" "$T/rsynced"
    cmp "$T/rsynced" "$T/want"
  fi
}

@test "dd at offsets, stat, test" {
  f=$mnt/query/@or/@k=500/a+of
  cat "$f" >"$T/want"
  for skip in 0 1 7 500 100000; do
    diff <(dd if="$f" bs=1 skip=$skip count=50 status=none) <(dd if="$T/want" bs=1 skip=$skip count=50 status=none)
  done
  dd if="$f" bs=64 iflag=fullblock status=none | cmp - "$T/want"
  dd if="$f" bs=4096 iflag=direct status=none | cmp - "$T/want"
  [ "$(stat -c '%s %a %F' "$f")" = "$(wc -c <"$T/want") 444 regular file" ]
  [ "$(stat -c '%Y' "$f")" -eq "$(stat -c '%Y' "$tmp/wordnet.gpuir")" ]
  [ -s "$f" ]
  [ -r "$f" ]
  [ -f "$f" ]
}

@test "mmap, sendfile, pread, shutil" {
  needs_python
  for name in music @or/@k=1500/a+of.json @or/@k=1500/a+of zzyzx; do
    cat "$mnt/query/$name" >"$T/want"
    check same "$mnt/query/$name" "$T/want"
  done
  cat "$mnt/doc/7" >"$T/want"
  check same "$mnt/doc/7" "$T/want"
  cat "$mnt/README" >"$T/want"
  check same "$mnt/README" "$T/want"
}

@test "listings, globs, find, grep -r and du run nothing" {
  searches=$(stat_of searches "$mnt")
  [ -z "$(ls -A "$mnt/doc")$(ls -A "$mnt/term")" ]
  [ "$(ls -A "$mnt/query" "$mnt/hits" | grep -c -v '^@\|^/\|^$')" -eq 0 ] # options alone
  [ -z "$(ls -A "$mnt/query/@or")$(ls -A "$mnt/query/@k=3/@or")$(ls -A "$mnt/hits/@or")" ]
  shopt -s nullglob
  globbed=("$mnt"/query/[!@]* "$mnt"/doc/*)
  [ ${#globbed[@]} -eq 0 ]
  [ "$(find "$mnt" -not -name '@*' | wc -l)" -eq 14 ]
  grep -rq 'quote_plus' "$mnt"
  du -s "$mnt" >/dev/null
  tar -C "$mnt" -cf "$T/all.tar" .
  for name in .git .hidden .DS_Store .tsv autorun.inf; do
    [ ! -e "$mnt/$name" ]
    [ ! -e "$mnt/query/$name" ]
    [ ! -e "$mnt/hits/$name" ]
    [ ! -e "$mnt/query/@or/$name" ]
  done
  [ "$(stat_of searches "$mnt")" -eq "$searches" ]
}

@test "unknown dotfiles are remembered by the kernel" {
  [ ! -e "$mnt/query/.probe" ]
  lookups=$(stat_of lookups "$mnt")
  for _ in $(seq 20); do [ ! -e "$mnt/query/.probe" ]; done
  [ "$(stat_of lookups "$mnt")" -le $((lookups + 2)) ]
}

@test ".stats changes between reads" {
  a=$(stat_of searches "$mnt")
  cat "$mnt/query/statistics+$RANDOM$RANDOM" >/dev/null
  b=$(stat_of searches "$mnt")
  [ "$b" -eq $((a + 1)) ]
}

# ---- errors ----

@test "errors: EINVAL, E2BIG, ENAMETOOLONG, ENOENT" {
  needs_python
  q=$mnt/query
  for name in % %4 %zz music+%G0 -music + @ @nope @k= @k=x @k=-1 @k=1000001 @k=99999999999999999999 @or/@and @or/@or \
    @k=1/@k=2 @cpu/@gpu @or/@k=5/@or @or/-music %40/../% music.tsv.%; do
    run errno_of "$q/$name"
    [ "$output" = EINVAL ] || { echo "$name: $output"; false; }
  done
  terms64=$(seq -f 'x%g' -s + 1 64) terms65=$(seq -f 'x%g' -s + 1 65)
  repeated=$(printf 'x1+%.0s' $(seq 80))
  name255=$(printf 'y%.0s' $(seq 255)) name256=${name255}y
  run errno_of "$q/$terms64" "$q/$terms65" "$q/$repeated" "$q/$name255" "$q/$name256" "$mnt/term/$name256" \
    "$mnt/hits/$name256" "$mnt/$name256" "$q/$name256$name256" "$mnt/hits/%" "$mnt/term/%" "$mnt/hits/$terms65"
  [ "${lines[*]}" = "OK E2BIG OK OK ENAMETOOLONG ENAMETOOLONG ENAMETOOLONG ENAMETOOLONG ENAMETOOLONG EINVAL EINVAL E2BIG" ]
  run errno_of "$mnt/nope" "$q/.x" "$q/autorun.inf" "$mnt/term/zzyzx" "$mnt/doc/999999" "$mnt/doc/x" \
    "$mnt/hits/music/nope" "$q/music/x"
  [ "${lines[*]}" = "ENOENT ENOENT ENOENT ENOENT ENOENT ENOENT ENOENT ENOTDIR" ]
  # literal characters by their escapes
  run errno_of "$q/%2Dmusic" "$q/%40or" "$q/music%2Etsv" "$q/caf%C3%A9" "$q/a%00music" "$q/%2Fmusic" "$q/%ffmusic"
  [ "${lines[*]}" = "OK OK OK OK OK OK OK" ]
  diff "$q/%2Dmusic" "$q/music"
}

@test "errors: writing of any kind is EROFS" {
  needs_python
  check write-errno "$mnt/query" "$mnt/query/music"
}

@test "errors: a document without any text is ENODATA" {
  needs_python
  printf '{"id": "a", "contents": "lonely"}\n' | "$gpuir" index -q --jsonl - -o "$T/i.gpuir"
  mkdir "$T/m"
  "$fs" "$T/i.gpuir" "$T/m"
  [ "$(errno_of "$T/m/doc/0")" = ENODATA ]
  [ "$(cat "$T/m/query/lonely")" = 0 ]
}

@test "usage: exit statuses and messages" {
  run "$fs" --help
  [ "$status" -eq 0 ]
  [[ "$output" == Usage:* ]]
  run "$fs" -V
  [ "$status" -eq 0 ]
  [[ "$output" == "gpuirfs "* ]]
  run bash -c '"$1" --help >&-' - "$fs"
  [ "$status" -eq 1 ]
  [ "$output" = "gpuirfs: standard output: Bad file descriptor" ]
  mkdir "$T/m"
  for arguments in "" "x" "x y z" "-o k=x a b" "-o k=2000000 a b" "-o mode=xor a b" "-o nonsense a b" "--nonsense a b" \
    "-o cache=0 a b" "-o max_k=2000000 a b" "-o backend=tpu a b" "-o devices=0:x a b"; do
    # shellcheck disable=SC2086
    run "$fs" $arguments
    [ "$status" -eq 2 ] || { echo "$arguments: $status $output"; false; }
    [ -n "$output" ]
  done
  run "$fs" -o nonsense a b # libfuse says it in three pieces
  [ "$output" = $'gpuirfs: unknown option(s): `-o nonsense\'\nTry \'gpuirfs --help\'.' ]
  echo "not an index" >"$T/bad"
  head -c 5000 "$tmp/wordnet.gpuir" >"$T/short"
  : >"$T/empty"
  for index in "$T/nowhere" "$T/bad" "$T/short" "$T/empty" "$T"; do
    run "$fs" "$index" "$T/m"
    [ "$status" -eq 1 ]
    [[ "$output" == *"$index"* ]]
  done
  run "$fs" "$tmp/wordnet.gpuir" "$T/nowhere"
  [ "$status" -eq 1 ]
  [[ "$output" == *nowhere* ]]
  run "$fs" "$tmp/wordnet.gpuir" "$T/bad"
  [ "$status" -eq 1 ]
  [[ "$output" == *"$T/bad"* ]]
  not_mounted "$T/m"
}

@test "-o verify refuses what opening does not notice" {
  cp "$tmp/wordnet.gpuir" "$T/flipped"
  size=$(stat -c %s "$T/flipped")
  mkdir "$T/m"
  printf '\xff\x00\xff' | dd of="$T/flipped" bs=1 seek=$((size / 2)) conv=notrunc status=none
  run "$fs" -o verify "$T/flipped" "$T/m"
  [ "$status" -eq 1 ]
  [[ "$output" == *"$T/flipped"* ]]
  not_mounted "$T/m"
  "$fs" -o verify "$tmp/wordnet.gpuir" "$T/m"
  [ -s "$T/m/query/music" ]
}

@test "-o k, mode, max_k, source" {
  mkdir "$T/m" "$T/src"
  "$fs" -o k=3,mode=or,max_k=20 "$tmp/wordnet.gpuir" "$T/m"
  diff "$T/m/query/dark+music" "$mnt/query/@or/@k=3/dark+music"
  [ ! -d "$T/m/query/@k=21" ]
  [ -d "$T/m/query/@k=20" ]
  grep -q '@or/@k=3' "$T/m/README"
}

@test "@gpu: the CPU answers where there is no GPU, and .stats counts it" {
  before=$(stat_of gpu_fallbacks "$mnt")
  diff "$mnt/query/@gpu/musical" "$mnt/query/@cpu/musical"
  diff "$mnt/query/@gpu/musical" "$mnt/query/musical"
  if grep -q 'without a GPU' "$mnt/.stats"; then
    [ "$(stat_of gpu_fallbacks "$mnt")" -eq $((before + 1)) ]
  fi
}

# ---- the index changes ----

two_indexes() { # old and new, with different answers, and what readers may see of either
  head -n 1000 "$root/tests/data/wordnet.tsv" | "$gpuir" index -q --tsv --store - -o "$T/old.gpuir"
  tail -n 994 "$root/tests/data/wordnet.tsv" | "$gpuir" index -q --tsv --store - -o "$T/new.gpuir"
  for version in old new; do
    mkdir -p "$T/$version" "$T/m"
    "$fs" "$T/$version.gpuir" "$T/m"
    for path in "${paths[@]}"; do cat "$T/m/$path" >"$T/$version/${path##*/}"; done
    fusermount3 -u "$T/m"
  done
  cp "$T/old.gpuir" "$T/live.gpuir"
}

replace() { # VERSION
  cp "$T/$1" "$T/live.tmp"
  mv "$T/live.tmp" "$T/live.gpuir"
}

shows() { # VERSION
  cmp -s "$T/m/query/of" "$T/$1/of" && cmp -s "$T/m/doc/7" "$T/$1/7"
}

paths=(query/of query/the+of.tsv query/@or/@k=300/a+the.json query/@or/in+on.tsv doc/7 term/the)

@test "replacing the index under 8 readers: no failed read, new results within 2 s" {
  needs_python
  two_indexes
  serve "$T/live.gpuir" "$T/m"
  check readers 8 "$T/stop" "$T/old" "$T/new" "${paths[@]/#/$T/m/}" >"$T/readers" 2>&1 3>&- &
  readers=$!
  version=old
  rounds=6
  [ -z "$long" ] || rounds=30
  for _ in $(seq $rounds); do
    [ $version = old ] && version=new || version=old
    replace $version.gpuir
    start=$(date +%s%N)
    until_true 5 shows $version
    [ $((($(date +%s%N) - start) / 1000000)) -lt 2000 ]
  done
  touch "$T/stop"
  wait $readers || { cat "$T/readers"; false; }
  echo "# $(cat "$T/readers")" >&3
  [ "$(stat_of refused "$T/m")" -eq 0 ]
  until_true 5 eval '[ "$(stat_of leaving_bytes "$T/m")" -eq 0 ]'
}

@test "open files keep what they had" {
  two_indexes
  serve "$T/live.gpuir" "$T/m"
  exec 5<"$T/m/doc/7" 6<"$T/m/query/@or/@k=300/a+the.json"
  cd "$T/m/hits/of"
  ls >"$T/names"
  replace new.gpuir
  until_true 5 shows new
  cmp - "$T/old/7" <&5
  cmp - "$T/old/a+the.json" <&6
  exec 5<&- 6<&-
  ls | diff - "$T/names"
  cd "$T"
}

@test "a broken index is refused and the old one stays" {
  two_indexes
  serve "$T/live.gpuir" "$T/m"
  echo "not an index" >"$T/garbage"
  head -c 3000 "$T/new.gpuir" >"$T/short"
  : >"$T/empty"
  n=0
  for broken in garbage short empty; do
    replace $broken
    n=$((n + 1))
    until_true 5 eval '[ "$(stat_of refused "$T/m")" -eq $n ]'
    stat_of refused_reason "$T/m" | grep -q "$T/live.gpuir"
    shows old
  done
  sleep 0.6 # it is not tried again until it changes
  [ "$(stat_of refused "$T/m")" -eq $n ]
  rm "$T/live.gpuir"
  sleep 0.6
  shows old
  [ "$(stat_of generation "$T/m")" -eq 1 ]
  replace new.gpuir
  until_true 5 shows new
  [ -z "$(stat_of refused_reason "$T/m")" ]
}

@test "SIGHUP reloads" {
  two_indexes
  serve "$T/live.gpuir" "$T/m"
  kill -HUP "$fs_pid"
  until_true 5 eval '[ "$(stat_of generation "$T/m")" -eq 2 ]'
  shows old
  replace new.gpuir
  kill -HUP "$fs_pid"
  until_true 5 shows new
}

@test "an index that is reached by a link follows the link" {
  two_indexes
  ln -s old.gpuir "$T/current"
  mkdir -p "$T/m"
  (cd "$T" && "$fs" current m)
  shows old
  ln -s new.gpuir "$T/next"
  mv -T "$T/next" "$T/current"
  until_true 5 shows new
}

# ---- coming and going ----

@test "SIGTERM and SIGINT unmount, also under load and with open files" {
  for signal in TERM INT; do
    serve "$tmp/wordnet.gpuir" "$T/m"
    exec 5<"$T/m/query/@or/a+of"
    (while cat "$T/m/query/@or/@k=100/a+$RANDOM" >/dev/null 2>&1; do :; done) 3>&- &
    sleep 0.2
    kill -$signal "$fs_pid"
    until_true 5 has_ended "$fs_pid"
    wait "$fs_pid"
    not_mounted "$T/m"
    exec 5<&-
    wait
  done
  fs_pid=
  [ ! -s "$T/fs.log" ] || { cat "$T/fs.log"; false; }
}

@test "fusermount3 -u ends the daemon" {
  serve "$tmp/wordnet.gpuir" "$T/m"
  [ -s "$T/m/query/music" ]
  fusermount3 -u "$T/m"
  until_true 5 has_ended "$fs_pid"
  wait "$fs_pid"
  fs_pid=
  [ ! -s "$T/fs.log" ] || { cat "$T/fs.log"; false; }
}

@test "a mount whose daemon was killed is told of, and mounted anew once it is unmounted" {
  serve "$tmp/wordnet.gpuir" "$T/m"
  kill -KILL "$fs_pid"
  wait "$fs_pid" || true
  fs_pid=
  dead() { ! stat "$T/m" >/dev/null 2>&1; }
  until_true 5 dead
  run "$fs" "$tmp/wordnet.gpuir" "$T/m"
  [ "$status" -eq 1 ]
  [[ "$output" == *"has died: fusermount3 -u $T/m" ]]
  fusermount3 -u "$T/m"
  serve "$tmp/wordnet.gpuir" "$T/m"
  [ -s "$T/m/query/music" ]
}

@test "a signal during a search ends it with EINTR" {
  needs_python
  n=1
  [ -z "$long" ] || n=3
  awk -v n=$((n * 400000)) 'BEGIN { srand(1); for (i = 0; i < n; i++) {
    line = ""; for (j = 0; j < 12; j++) line = line " w" int(60 * rand() * rand()); print line } }' >"$T/many.txt"
  "$gpuir" index -q --lines "$T/many.txt" -o "$T/many.gpuir"
  serve "$T/many.gpuir" "$T/m"
  all=$(seq -f 'w%g' -s + 0 59)
  slow=$T/m/query/@or/@k=1000000/$all
  run check interrupt "$slow+-a" "$slow+-b" "$slow+-c" "$slow+-d"
  echo "# $output" >&3
  [ "$status" -eq 0 ]
  [ "$(stat_of interrupted "$T/m")" -eq 1 ]
  # Asked again, it is answered.
  cmp "$slow+-a" "$slow+-b"
}

@test "8 processes cat a warm result" {
  n=100
  [ -z "$long" ] || n=1250
  f=$mnt/query/@or/@k=500/a+of+the.json
  cat "$f" >"$T/want"
  want=$(for ((i = 0; i < n; i++)); do cat "$T/want"; done | sha256sum)
  pids=()
  for p in 1 2 3 4 5 6 7 8; do
    (for ((i = 0; i < n; i++)); do cat "$f" || exit 1; done >"$T/out.$p") 3>&- &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid"; done
  for p in 1 2 3 4 5 6 7 8; do [ "$(sha256sum <"$T/out.$p")" = "$want" ]; done
}

@test "many different queries leave memory bounded" {
  needs_python
  n=6000
  [ -z "$long" ] || n=100000
  "$gpuir" terms --tsv "$tmp/wordnet.gpuir" | cut -f 1 | grep -E '^[a-z]{3,9}$' | head -n 1000 >"$T/words"
  [ "$(wc -l <"$T/words")" -gt 500 ]
  serve "$tmp/wordnet.gpuir" "$T/m" -o cache=4
  pids=()
  for p in 0 1 2 3; do
    check queries $((n / 4)) $((p * n / 4)) "$T/m/query/@or" "$T/words" 3>&- &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid"; done
  ls "$T/m/hits/@or/@k=1000/a+of" >/dev/null
  rss=$(awk '/^VmHWM/ { print $2 }' "/proc/$fs_pid/status")
  echo "# $n queries: at most $rss KB" >&3
  [ "$rss" -lt 40000 ]
  [ "$(stat_of evicted "$T/m")" -gt $((n / 3)) ]
  [ "$(stat_of cache_bytes "$T/m")" -le $((4 << 20)) ]
  until_true 10 eval '[ "$(stat_of nodes "$T/m")" -lt 4096 ]'
  [ "$(stat_of errors "$T/m")" -eq 0 ]
}

@test "large results, far beyond the cache" {
  needs_python
  serve "$tmp/wordnet.gpuir" "$T/m" -o cache=1
  "$gpuir" terms --tsv "$tmp/wordnet.gpuir" | cut -f 1 | grep -E '^[a-z]{3,9}$' | head -n 30 >"$T/words"
  for p in 1 2 3 4; do
    while read -r w; do
      [ "$(wc -l <"$T/m/query/@or/@k=199$p/the+a+of+in+$w.json")" -gt 1500 ] || exit 1
    done <"$T/words" 3>&- &
    pids[p]=$!
  done
  for pid in "${pids[@]}"; do wait "$pid"; done
  rss=$(awk '/^VmHWM/ { print $2 }' "/proc/$fs_pid/status")
  echo "# at most $rss KB" >&3
  [ "$rss" -lt 40000 ]
}

@test "a long answer is refused beyond max_result" {
  needs_python
  serve "$tmp/wordnet.gpuir" "$T/m" -o max_result=1
  yes "$(head -c 200 "$root/tests/data/wordnet.tsv" | tr -c 'a-z\n' x | head -n 1)" | head -c 2000000 >"$T/big.txt"
  "$gpuir" index -q --lines "$T/big.txt" -o "$T/big.gpuir"
  mkdir "$T/b"
  "$fs" -o max_result=1 "$T/big.gpuir" "$T/b"
  word=$(head -n 1 "$T/big.txt" | tr -c 'a-z\n' ' ' | cut -d ' ' -f 1)
  [ "$(errno_of "$T/b/query/@k=1000000/$word.json" "$T/b/query/$word.json" | tr '\n' ' ')" = "EFBIG OK " ]
}

# ---- users ----

@test "an ordinary user needs only fusermount3" {
  [ "$(id -u)" -eq 0 ] || skip "the whole of this file runs as an ordinary user"
  command -v runuser >/dev/null || skip "no runuser"
  home=$(mktemp -d /tmp/gpuirfs-user-XXXXXX)
  mkdir "$home/m"
  cp "$tmp/wordnet.gpuir" "$home/i.gpuir"
  cp "$fs" "$home/gpuirfs"
  chown -R nobody "$home"
  cat >"$home/test.sh" <<'END'
cd "$1" || exit 1
./gpuirfs i.gpuir m || exit 1
cmp m/query/music want && ls -l m/hits/music >/dev/null && cat m/.stats >/dev/null && [ "$(stat -c %U m/query)" = nobody ]
ok=$?
fusermount3 -u m || ok=1
exit $ok
END
  cat "$mnt/query/music" >"$home/want"
  # /dev/fuse is open to all where udev set it up. Where it is not, a node of one's own stands in for it, in a mount
  # namespace that ends with the test.
  cat >"$home/root.sh" <<'END'
if ! runuser -u nobody -- test -w /dev/fuse; then
  mount -t tmpfs -o mode=755 none "$1/dev" && mknod -m 666 "$1/dev/fuse" c 10 229 &&
    mount --bind "$1/dev/fuse" /dev/fuse || exit 77
fi
runuser -u nobody -- bash "$1/test.sh" "$1"
END
  mkdir "$home/dev"
  run unshare -m bash "$home/root.sh" "$home"
  echo "$output"
  rm -rf "$home"
  [ "$status" -ne 77 ] || skip "no /dev/fuse for ordinary users"
  [ "$status" -eq 0 ]
}

@test "others see the mount only with allow_other" {
  [ "$(id -u)" -eq 0 ] || skip "not root"
  command -v runuser >/dev/null || skip "no runuser"
  dir=$(mktemp -d /tmp/gpuirfs-other-XXXXXX)
  mkdir "$dir/a" "$dir/b"
  chmod 755 "$dir"
  seq -f 'line %g apple' 1 60 >"$dir/secret.txt"
  chmod 600 "$dir/secret.txt"
  "$gpuir" index -q --chunk-lines 25 "$dir/secret.txt" -o "$dir/i.gpuir"
  "$fs" "$dir/i.gpuir" "$dir/a"
  "$fs" -o allow_other "$dir/i.gpuir" "$dir/b"
  runuser -u nobody -- cat "$dir/a/query/apple" && failed=1
  runuser -u nobody -- cat "$dir/b/query/apple" || failed=2
  runuser -u nobody -- cat "$dir/b/doc/1" && failed=3 # its source is not theirs to read
  cat "$dir/b/doc/1" >/dev/null || failed=4
  fusermount3 -u "$dir/a"
  fusermount3 -u "$dir/b"
  rm -rf "$dir"
  [ "${failed:-0}" -eq 0 ]
}
