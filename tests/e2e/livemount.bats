#!/usr/bin/env bats
# gpuirfs on live indexes, and phrases and prefixes in names. GPUIR_LONG=1 runs the full counts.
# shellcheck disable=SC2016 # what eval and until_true run is in single quotes
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test is a subshell of its own; ../support/mount sets variables

load ../support/mount

live() { "$build/tests/e2e/live_mount" "$T/live" "$@"; }
write() { live write "$@"; }

needs_writer() { [ -x "$build/tests/e2e/live_mount" ] || skip "live_mount was not built"; }

# follows GENERATION: the mount shows that commit
follows() { until_true 10 eval "[ \"\$(stat_of generation \"\$T/m\")\" = $1 ]"; }

fails_with() { # ERROR PATH
  local got
  got=$(errno_of "$2")
  [ "$got" = "$1" ] || { echo "$2: $got, not $1"; false; }
}

maps() { grep -c '\.gpuir' "/proc/$fs_pid/maps"; }

# ---- live indexes ----

@test "live: a mount follows commits, and its links name their generation" {
  needs_writer
  needs_python
  write create add:a='apple tree' add:b='apple pie' commit
  serve "$T/live" "$T/m"
  cd "$T"
  [ "$(cat m/query/apple)" = $'0\n1' ]
  for link in m/hits/apple/*; do readlink "$link"; done | sort | diff - <(printf '../../doc/2.0\n../../doc/2.1\n')
  readlink m/hits/@or/@k=1/pie/000001-b | diff - <(echo ../../../../doc/2.1)
  [ "$(cat m/hits/apple/000002-b)" = 'apple pie' ]
  [ "$(stat -c %Y m/query/apple)" = "$(stat -c %Y live/manifest)" ]
  [ "$(stat_of documents m)" = 2 ]
  link=$(readlink -f m/hits/pie/000001-b)
  [ "$(write delete:a add:c='apple juice' commit)" = 3 ]
  follows 3
  [ "$(cat m/query/apple)" = $'1\n2' ]
  [ "$(readlink m/hits/juice/000001-c)" = ../../doc/3.2 ]
  [ "$(cat "$link")" = 'apple pie' ]
  [ "$(cat m/doc/2.0)" = 'apple tree' ] # as it was then
  [ "$(cat m/doc/1)" = 'apple pie' ]
  names=(0 3.0 3 3.3 4.1 0.1 03.1 3. .1 3.1.1)
  [ "$(errno_of "${names[@]/#/$T/m/doc/}" | sort | uniq -c | tr -s ' ')" = " ${#names[@]} ENOENT" ]
  fails_with ESTALE "$T/m/doc/1.0" # before the mount
  stat_of last_error m | grep -q '^1.0: the index has changed since'
  [ "$(stat_of expired m)" -gt 0 ]
  # A merge renumbers documents.
  [ "$(write merge-all commit)" = 4 ]
  follows 4
  [ "$(cat m/query/apple)" = $'0\n1' ]
  [ "$(cat m/doc/0)" = 'apple pie' ]
  [ "$(cat m/doc/3.1)" = 'apple pie' ]
  [ "$(cat m/doc/4.0)" = 'apple pie' ]
  [ "$(df --output=size -B 4096 m | tail -n 1 | tr -d ' ')" -eq $((($(stat_of file_bytes m) + 4095) / 4096)) ]
}

@test "live: commits are followed, and loaded at most once a second" {
  needs_writer
  write create add:a='apple tree' commit
  serve "$T/live" "$T/m"
  begun=$SECONDS
  for i in $(seq 30); do
    write add:"d$i"='apple' commit >"$T/generation"
    sleep 0.02
  done
  follows "$(cat "$T/generation")"
  [ "$(wc -l <"$T/m/query/@k=100/apple")" -eq 31 ]
  # $SECONDS counts whole ones, and the first load waits for none.
  [ "$(stat_of reloads "$T/m")" -le $((SECONDS - begun + 2)) ]
}

@test "live: a link that was read before a reload is right after it, or ESTALE" {
  needs_writer
  needs_python
  write create add:a='apple tree' add:b='apple pie' commit
  serve "$T/live" "$T/m"
  target=$(readlink "$T/m/hits/pie/000001-b")
  cd "$T/m/hits/pie"
  for i in $(seq 3 22); do
    write delete:a delete:c add:c="apple number $i" merge-all commit >"$T/generation"
    kill -HUP "$fs_pid"
    follows "$(cat "$T/generation")"
    got=$(cat "$target" 2>"$T/err") || grep -q 'Stale' "$T/err"
    [ -z "$got" ] || [ "$got" = 'apple pie' ]
    [ "$i" -ne 3 ] || [ "$got" = 'apple pie' ]
  done
  grep -q Stale "$T/err"
  [ "$(stat_of generations_kept "$T/m")" -eq 16 ]
  # A folder that is open keeps its answer. Its link is ESTALE too, rather than another document.
  [ "$(ls)" = 000001-b ]
  [ "$(readlink 000001-b)" = "$target" ]
  cd "$T"
  [ "$(cat "$T/m/hits/pie/000001-b")" = 'apple pie' ]
  # A SIGHUP without a commit is no generation.
  kill -HUP "$fs_pid"
  sleep 0.3
  [ "$(stat_of generation "$T/m")" = "$(cat "$T/generation")" ]
}

@test "live: a term's df and cf leave deleted documents out" {
  needs_writer
  write create add:a='apple apple tree' add:b='apple pie' commit add:c='apple' commit delete:b commit merge >/dev/null
  serve "$T/live" "$T/m"
  [ "$(stat_of segments "$T/m")" -gt 1 ]
  cp "$T/m/term/APPLE" "$T/term"
  write merge-all commit >/dev/null
  follows 5
  [ "$(stat_of segments "$T/m")" -eq 1 ]
  grep -E '^(term|df|cf|idf)	' "$T/m/term/apple" | diff - <(grep -E '^(term|df|cf|idf)	' "$T/term")
  grep -q '^lists	2$' "$T/term"
  [ ! -e "$T/m/term/pie" ]
  [ ! -e "$T/m/term/zzyzx" ]
}

@test "live: open files and maps over many reloads" {
  needs_writer
  rounds=50
  [ -z "$long" ] || rounds=1000
  write create add:always='w0 w1' commit
  serve "$T/live" "$T/m"
  ls "/proc/$fs_pid/fd" | wc -l >"$T/before"
  live reloads "$T/m" "$fs_pid" $rounds | tee "$T/out"
  # Sixteen generations, and those of eight open files: each has its own newest files, and some that merges made.
  read -r most descriptors < <(sed 's/.*at most \([0-9]*\) maps, \([0-9]*\) .*/\1 \2/' "$T/out")
  [ "$most" -le 120 ]
  [ "$descriptors" -le 30 ]
  [ "$(stat_of reloads "$T/m")" -ge $rounds ]
  [ -n "$long" ] || return 0
  # After a while the two newest are left.
  until_true 30 eval '[ "$(stat_of generations_kept "$T/m")" -eq 2 ]'
  until_true 5 eval '[ "$(maps)" -le $((2 * $(stat_of segments "$T/m"))) ]'
  [ "$(ls "/proc/$fs_pid/fd" | wc -l)" -le "$(cat "$T/before")" ]
}

@test "live: readers beside commits and merges get what their generation answers" {
  needs_writer
  reads=10000
  [ -z "$long" ] || reads=1000000
  write create add:always='w0 w1' commit
  serve "$T/live" "$T/m"
  live readers "$T/m" "$fs_pid" 6 $reads | tee "$T/out"
  grep -q ' 0 wrong, 0 errors$' "$T/out"
}

@test "live: a folder that vanishes leaves what was loaded, and another one takes its place" {
  needs_writer
  needs_python
  write create add:a='apple tree' add:b='apple pie' commit delete:a commit
  serve "$T/live" "$T/m"
  mv "$T/live" "$T/gone"
  [ "$(cat "$T/m/query/@k=3/apple")" = 1 ]
  [ "$(cat "$T/m/doc/3.1")" = 'apple pie' ]
  sleep 0.6
  [ "$(stat_of refused "$T/m")" -eq 0 ]
  # It has fewer commits. No number means two snapshots.
  "$build/tests/e2e/live_mount" "$T/new" write create add:x='another apple' add:y='pear' commit
  mv "$T/new" "$T/live"
  until_true 10 eval '[ "$(cat "$T/m/doc/0" 2>/dev/null)" = "another apple" ]'
  [ "$(stat_of generation "$T/m")" = 4 ]
  [ "$(cat "$T/m/doc/3.1")" = 'apple pie' ]
  [ "$(cat "$T/m/doc/4.1")" = pear ]
  fails_with ESTALE "$T/m/doc/2.0"
  # A file where the folder was
  mv "$T/live" "$T/second"
  cp "$tmp/wordnet.gpuir" "$T/file"
  mv -T "$T/file" "$T/live"
  until_true 10 eval '[ "$(stat_of documents "$T/m")" -eq 1994 ]'
  [ "$(readlink "$T/m/hits/music"/000001-*)" = "../../doc/$(head -n 1 "$T/m/query/music")" ]
}

@test "live: a damaged manifest is refused, and .stats says so" {
  needs_writer
  write create add:a='apple tree' commit
  serve "$T/live" "$T/m"
  cp "$T/live/manifest" "$T/good"
  head -c 50 "$T/good" >"$T/live/new"
  mv "$T/live/new" "$T/live/manifest"
  until_true 10 eval '[ "$(stat_of refused "$T/m")" -eq 1 ]'
  stat_of refused_reason "$T/m" | grep -q "$T/live.*manifest"
  grep -q "not reloaded, the index in use stays: $T/live" "$T/fs.log"
  [ "$(cat "$T/m/query/apple")" = 0 ]
  sleep 0.6 # it is not tried again until it changes
  [ "$(stat_of refused "$T/m")" -eq 1 ]
  rm "$T/live/manifest"
  [ "$(cat "$T/m/query/@or/apple")" = 0 ]
  mv "$T/good" "$T/live/manifest"
  [ "$(write add:b='apple pie' commit)" = 3 ]
  until_true 10 eval '[ "$(cat "$T/m/query/apple")" = $'"'0\n1'"' ]'
  [ -z "$(stat_of refused_reason "$T/m")" ]
}

@test "live: a file that is cut short is EIO until it is whole again" {
  needs_writer
  needs_python
  write create add:a='apple tree' commit
  serve "$T/live" "$T/m"
  file=$(echo "$T"/live/*.gpuir)
  cp "$file" "$T/whole"
  : >"$file"
  # Once a part of it is missed, all generations that share it are broken.
  until_true 5 eval '[ "$(errno_of "$T/m/query/apple$RANDOM" "$T/m/term/apple")" != $'"'OK\nOK'"' ]'
  [ "$(stat_of broken "$T/m")" = 1 ]
  fails_with EIO "$T/m/query/tree"
  stat_of last_error "$T/m" | grep -q '^tree: a file of the index was cut short$'
  cat "$T/whole" >"$file" # the manifest is the same
  until_true 10 eval '[ "$(stat_of broken "$T/m")" = 0 ]'
  [ "$(cat "$T/m/query/tree")" = 0 ]
  [ "$(stat_of refused "$T/m")" -le 1 ] # said once
}

@test "live: a source that changed is ESTALE" {
  needs_writer
  needs_python
  printf 'one apple\ntwo apples\n' >"$T/source"
  write create-bare "part:$T/source:10:11" commit
  serve "$T/live" "$T/m"
  [ "$(cat "$T/m/doc/0")" = 'two apples' ]
  [ "$(cat "$T/m/hits/apples/"*)" = 'two apples' ]
  printf 'one apple\nTWO APPLES\n' >"$T/source"
  sleep 1.1
  fails_with ESTALE "$T/m/doc/2.0"
  stat_of last_error "$T/m" | grep -q '^2.0: its source is no longer what was indexed$'
  [ "$(stat_of changed_sources "$T/m")" -gt 0 ]
}

@test "live: a file that changes is its old text or ESTALE in an older generation" {
  needs_python
  mkdir "$T/src"
  echo 'apple tree' >"$T/src/a"
  echo 'apple pie' >"$T/src/b"
  (cd "$T" && "$gpuir" index --live -q src -o live)
  serve "$T/live" "$T/m"
  first=$(stat_of generation "$T/m")
  [ "$(readlink "$T/m/doc/$first.0")" = "$T/src/a" ]
  [ "$(cat "$T/m/hits/tree/"*)" = 'apple tree' ]
  echo 'and more' >>"$T/src/b"
  (cd "$T" && "$gpuir" update -q src -o live)
  until_true 10 eval '[ -s "$T/m/query/more" ]'
  # b has changed, also if what it had still stands there
  [ "$(cat "$T/m/doc/$first.0")" = 'apple tree' ]
  fails_with ESTALE "$T/m/doc/$first.1"
  [ "$(cat "$T/m/hits/more/"*)" = $'apple pie\nand more' ]
  b=$(readlink "$T/m/hits/more/000001-src_b")
  echo 'another text' >"$T/src/a"
  (cd "$T" && "$gpuir" update -q src -o live)
  until_true 10 eval '[ -s "$T/m/query/another" ]'
  [ "$(cat "$T/m/hits/another/"*)" = 'another text' ]
  fails_with ESTALE "$T/m/doc/$first.0"
  [[ "$b" == "../../doc/"* && "$b" != "../../doc/$first."* ]]
  [ "$(cat "$T/m/doc/${b##*/}")" = $'apple pie\nand more' ]
  rm "$T/src/b"
  sleep 1.1
  fails_with ENOENT "$T/m/doc/$first.1"
}

@test "live: the CPU answers @gpu, and .stats counts it" {
  needs_writer
  write create add:a='apple tree' commit add:b='apple pie' commit
  serve "$T/live" "$T/m"
  diff "$T/m/query/@gpu/apple" "$T/m/query/@cpu/apple"
  [ "$(stat_of gpu_fallbacks "$T/m")" -eq 1 ]
  stat_of gpu_fallback_reason "$T/m" | grep -qx 'a live index is searched by the CPU'
  [ "$(stat_of backend "$T/m")" = cpu ]
  cat "$T/m/query/apple"
  [ "$(stat_of gpu_fallbacks "$T/m")" -eq 1 ] # which nobody asked for
}

@test "live: -o verify refuses a new file that is damaged where opening does not notice" {
  needs_writer
  write create add:a='apple tree' commit
  cp -r "$T/live" "$T/other"
  write add:b="$(seq -s ' ' 500)" commit
  file=$(find "$T/live" -name '*.gpuir' -newer "$T/other/manifest")
  printf '\xff\x00\xff' | dd of="$file" bs=1 seek=$(($(stat -c %s "$file") / 2)) conv=notrunc status=none
  mkdir "$T/m"
  run "$fs" -o verify "$T/live" "$T/m"
  [ "$status" -eq 1 ]
  [[ "$output" == *"$(basename "$file")"* ]]
  mv "$T/live" "$T/damaged"
  mv "$T/other" "$T/live"
  serve "$T/live/" "$T/m" -o verify
  mv "$T/live" "$T/other"
  mv "$T/damaged" "$T/live"
  until_true 10 eval '[ "$(stat_of refused "$T/m")" -eq 1 ]'
  [ "$(stat_of generation "$T/m")" = 2 ]
  [ "$(cat "$T/m/query/apple")" = 0 ]
  rm -r "$T/live"
  mv "$T/other" "$T/live"
  write add:b='apple pie' commit
  follows 3
  [ "$(cat "$T/m/query/pie")" = 1 ]
}

@test "live: what is no live index is refused in words" {
  mkdir "$T/live" "$T/m"
  run "$fs" "$T/live" "$T/m"
  [ "$status" -eq 1 ]
  [[ "$output" == *"$T/live: a folder without a manifest: not a live index" ]]
  echo garbage >"$T/live/manifest"
  run "$fs" "$T/live/." "$T/m"
  [ "$status" -eq 1 ]
  [[ "$output" == *manifest* ]]
}

# ---- phrases and prefixes in names ----

words_index() { "$gpuir" index -q --tsv --store --positions "$root/tests/data/wordnet.tsv" -o "$T/words.gpuir"; }

# phrases N: phrases that stand in WordNet, and queries with quotes and asterisks, one a line
phrases() {
  cut -f 2- "$root/tests/data/wordnet.tsv" | grep -oE '[a-z]+ [a-z]+( [a-z]+)?' | awk -v n="$1" '
    NR % 37 == 0 && made++ < n {
      form = made % 5
      if (form == 0) print "\"" $0 "\""
      if (form == 1) print "\"" $0 "\" " $1
      if (form == 2) print $1 " -\"" $0 "\""
      if (form == 3) print substr($1, 1, 4) "* \"" $0 "\""
      if (form == 4) print "a\"b " $1 "*"
    }'
  printf '%s\n' 'printf( *p "of the"' 'c++ 5" of' '"of"the' '""of' '-"zzyzx" of' 'of -the*' 'r&d 100% of' 'a~/of/the'
}

@test "names: phrases and prefixes find what gpuir query finds, as quote_plus writes them" {
  needs_python
  words_index
  mkdir "$T/m"
  "$fs" "$T/words.gpuir" "$T/m"
  n=60
  [ -z "$long" ] || n=300
  phrases $n >"$T/queries"
  python3 -c 'import sys, urllib.parse
for line in sys.stdin: print(urllib.parse.quote_plus(line.rstrip("\n")))' <"$T/queries" >"$T/names"
  [ "$(wc -l <"$T/names")" -gt $n ]
  while IFS= read -r query <&3 && IFS= read -r name <&4; do
    echo "$query" | "$gpuir" query --mode and --tsv -k 20 "$T/words.gpuir" >"$T/want" 2>"$T/err" || [ $? -eq 1 ]
    diff <(cut -f 3,5 "$T/want") <(cut -f 2,4 "$T/m/query/@k=20/$name.tsv") || { echo "$query: $name"; return 1; }
  done 3<"$T/queries" 4<"$T/names"
}

# In both shells, quoted as their users quote it.
shell_names='
cd "$1" || exit 1
same() { cmp "$1" "$2" || exit 1; [ -s "$1" ] || exit 1; }
same query/"\"musical+instrument\"" query/%22musical+instrument%22
same '"'"'query/"musical+instrument"'"'"' query/%22musical%20instrument%22
same "query/\"musical instrument\".tsv" query/%22musical+instrument%22.tsv
same '"'"'query/music*'"'"' query/music%2A
same "query/music* -\"musical instrument\"" query/music%2A+-%22musical+instrument%22
same query/instrument+-\"musical+instrument\" query/instrument+-%22musical+instrument%22
ls hits/%22musical+instrument%22/000001* >/dev/null || exit 1
'

@test "names: phrases and prefixes from bash" {
  words_index
  mkdir "$T/m"
  "$fs" "$T/words.gpuir" "$T/m"
  bash -c "$shell_names" - "$T/m"
}

@test "names: phrases and prefixes from zsh" {
  command -v zsh >/dev/null || skip "no zsh"
  words_index
  mkdir "$T/m"
  "$fs" "$T/words.gpuir" "$T/m"
  zsh -f -c "$shell_names" - "$T/m"
  # A bare asterisk is a pattern, and the folder lists empty.
  run zsh -f -c 'cd "$1" && cat query/music*' - "$T/m"
  [ "$status" -ne 0 ]
  [[ "$output" == *"no matches found"* ]]
}

@test "names: what is wrong with one is an error, and .stats says it in words" {
  needs_python
  words_index
  mkdir "$T/m"
  "$fs" "$T/words.gpuir" "$T/m"
  [ -z "$(stat_of last_error "$T/m")" ]
  says() { # ERROR WORDS NAME
    fails_with "$1" "$T/m/$3"
    stat_of last_error "$T/m" | grep -qF -- "${3##*/}: $2" || { stat_of last_error "$T/m"; return 1; }
  }
  says EINVAL 'the quote at byte 0 of the query is not closed' 'query/"musical+instrument'
  says EINVAL 'the quote at byte 7 of the query is not closed' 'hits/music+-%22of'
  says EINVAL "'-\"of the\"' only says what is not to be there: add a word that is" 'query/-"of+the"'
  says EINVAL "'>>>' holds no word: no letter, no digit" 'query/>>>'
  says EINVAL "a '%' without two hexadecimal digits behind it" 'query/"of%2"'
  says EINVAL "a '%' without two hexadecimal digits behind it" 'term/%G0'
  says EINVAL 'not an option' 'query/@nope'
  says E2BIG 'the query has more than 64 different words' "query/$(seq -f 'x%g' -s + 1 65)"
  many="music+$(seq -f '%g' -s + 1 60)+$(seq -f 'a%g' -s + 1 9)"
  [ "$(head -c 1 "$T/m/pass/$many")" = '(' ] # any word is enough there: the rarest are looked for, and it is said
  stat_of last_note "$T/m" | grep -qF '6 words are left out: a query has 64 different words at most, and keeps the rarest'
  "$gpuir" index -q --tsv --stem english "$root/tests/data/wordnet.tsv" -o "$T/stems.gpuir"
  "$gpuir" explain "$T/words.gpuir" 3 '"musical instrument' 2>"$T/err" && return 1
  grep -qF 'the quote at byte 0 of the query is not closed' "$T/err"
  name=$(printf '%%22%s%%22' "$(printf 'y+%.0s' $(seq 125))")
  [ ${#name} -eq 256 ]
  fails_with ENAMETOOLONG "$T/m/query/$name"
  stat_of last_error "$T/m" | grep -q 'over 255 bytes$'
  [ "$(stat_of errors "$T/m")" -gt 8 ]
  # An index without positions, or of stems
  fusermount3 -u "$T/m"
  "$fs" "$T/stems.gpuir" "$T/m"
  says ENOTSUP '' 'query/"of+the"'
  stat_of last_error "$T/m" | grep -q 'built without positions'
  [ "$(wc -l <"$T/m/query/musicians*")" -gt 0 ] # whose stem is "musician"
}

@test "names: the last error is that of the user who asks" {
  needs_users
  needs_python
  chmod 755 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "$BATS_TEST_TMPDIR" 2>/dev/null || true
  dir=$(mktemp -d /tmp/gpuirfs-errors-XXXXXX)
  chmod 755 "$dir"
  mkdir "$dir/m"
  "$fs" -o allow_other "$tmp/wordnet.gpuir" "$dir/m"
  as 12345 cat "$dir/m/query/%secret" 2>/dev/null && failed=1
  [ -z "$(stat_of last_error "$dir/m")" ] || failed=2
  as 12345 cat "$dir/m/.stats" | grep -q '^last_error	%secret: ' || failed=3
  fusermount3 -u "$dir/m"
  rm -rf "$dir"
  [ "${failed:-0}" -eq 0 ]
}
