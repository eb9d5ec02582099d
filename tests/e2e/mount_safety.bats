#!/usr/bin/env bats
# gpuirfs among hostile files, folders, names and users. GPUIR_LONG=1 runs the full counts.
# shellcheck disable=SC2016 # what eval and until_true run is in single quotes
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test is a subshell of its own; ../support/mount sets variables

load ../support/mount

# chunks FOLDER LINES INDEX: indexes the files of a folder by chunks
chunks() { "$gpuir" index -q --chunk-lines "$2" "$1" -o "$3"; }

# docid INDEX SOURCE FIRST: the document that begins at that line
docid() { "$gpuir" query --tsv -k 10000 "$1" apple | awk -F '\t' -v name="$2:$3-" 'index($4, name) { print $2 }'; }

# ---- sources that lead back ----

refused_in_time() { # DOCUMENT ERROR: reading it, by the side of others, ends with that error
  ends 60 check errno "$T/m/doc/$1"
  [ "$(cat "$T/printed")" = "$2" ]
}

# ends_well: the daemon still answers, and a signal ends it
ends_well() {
  ends 60 cat "$T/m/.version"
  [ "$code" -eq 0 ]
  kill -TERM "$fs_pid"
  until_true 60 has_ended "$fs_pid"
  not_mounted "$T/m"
  fs_pid=
}

@test "a folder that was replaced by a link to the mount does not lock it" {
  needs_python
  mkdir -p "$T/src/sub"
  seq -f 'line %g apple' 1 9 >"$T/src/sub/0"
  chunks "$T/src" 3 "$T/i.gpuir"
  rm -r "$T/src/sub"
  ln -s ../m/doc "$T/src/sub"
  serve "$T/i.gpuir" "$T/m"
  refused_in_time 0 ELOOP
  rm "$T/src/sub"
  ln -s "$T/m/./query/../doc" "$T/src/sub"
  refused_in_time 1 ELOOP
  rm "$T/src/sub"
  ln -s "/proc/$fs_pid/root$T/m/doc" "$T/src/sub"
  refused_in_time 2 EACCES
  ends_well
}

@test "a source through /proc does not lock the mount, and shows nothing of the daemon" {
  needs_python
  mkdir "$T/src"
  printf 'apple\n' >"$T/src/0"
  chunks "/proc/self/root$T/src" 1 "$T/i.gpuir"
  serve "$T/i.gpuir" "$T/m"
  refused_in_time 0 EACCES
  rm -r "$T/src"
  ln -s m/doc "$T/src"
  refused_in_time 0 EACCES
  ends_well
  rm "$T/src"
  mkdir "$T/src"
  printf 'apple\n' >"$T/src/0"
  chunks "$T/src" 1 "$T/i.gpuir"
  rm "$T/src/0"
  ln -s /proc/self/environ "$T/src/0"
  serve "$T/i.gpuir" "$T/m"
  refused_in_time 0 EACCES
  ends_well
}

@test "a bind mount of the mount, or of another one, does not lock it" {
  needs_python
  needs_users
  mkdir "$T/src" "$T/other"
  printf 'apple\n' >"$T/src/0"
  chunks "$T/src" 1 "$T/i.gpuir"
  serve "$T/i.gpuir" "$T/m"
  mount --bind "$T/m/doc" "$T/src" || skip "bind mounts are not allowed"
  refused_in_time 0 ELOOP || failed=1
  umount "$T/src"
  [ -z "${failed:-}" ]
  # Two mounts whose documents lie in each other.
  "$fs" "$tmp/wordnet.gpuir" "$T/other"
  rm -r "$T/src"
  ln -s other/doc "$T/src"
  refused_in_time 0 ELOOP
  fusermount3 -u "$T/other"
  ends_well
}

# ---- long sources ----

@test "a source that has become long costs no more than its part, and is not taken for what was indexed" {
  needs_python
  mkdir "$T/src"
  printf 'apple\nb\nc\n' >"$T/src/a"
  chunks "$T/src" 1 "$T/i.gpuir"
  : >"$T/src/a" # without a line end for a long time
  truncate -s 400G "$T/src/a" || skip "no sparse file of 400 GB"
  serve "$T/i.gpuir" "$T/m"
  refused_in_time 1 ESTALE
  ends_well
}

@test "a chunk far into a file costs its bytes, not its distance" {
  mkdir "$T/src"
  seq -f 'line %g apple, and more to make it longer' 1 400000 >"$T/src/a"
  chunks "$T/src" 100 "$T/i.gpuir"
  serve "$T/i.gpuir" "$T/m"
  read_by_daemon() { awk '$1 == "rchar:" { print $2 }' "/proc/$fs_pid/io"; }
  diff "$T/m/doc/3999" <(tail -n 100 "$T/src/a")
  before=$(read_by_daemon)
  for i in 3998 3990 3980 3970 3960 2000 2001 1000 500 3; do
    diff "$T/m/doc/$i" <(sed -n "$((i * 100 + 1)),$((i * 100 + 100))p" "$T/src/a")
  done
  after=$(read_by_daemon)
  echo "# ten chunks of $(stat -c %s "$T/src/a") bytes: $((after - before)) bytes were read" >&3
  [ $((after - before)) -lt 300000 ]
}

@test "SIGTERM ends a daemon whose source lies on a file system that does not answer" {
  mkdir -p "$T/src" "$T/slow"
  seq -f 'line %g apple' 1 9 >"$T/src/7"
  chunks "$T/src" 9 "$T/i.gpuir"
  rm -r "$T/src"
  ln -s slow/doc "$T/src"
  # A FUSE file system of the same user that is stopped: a mount that does not say that it is one of gpuirfs.
  serve "$tmp/wordnet.gpuir" "$T/slow" -o subtype=slow || true
  slow_pid=$fs_pid
  until_true 60 grep -q " $T/slow fuse.slow " /proc/self/mounts
  serve "$T/i.gpuir" "$T/m"
  kill -STOP "$slow_pid"
  cat "$T/m/doc/0" >/dev/null 2>&1 3>&- &
  reader=$!
  sleep 0.5
  failed=
  has_ended $reader && failed="it did not wait"
  kill -TERM "$fs_pid"
  until_true 60 has_ended "$fs_pid" || failed="the daemon stays"
  not_mounted "$T/m" || failed+=", the mount stays"
  until_true 60 has_ended $reader || failed+=", the reader stays"
  kill -CONT "$slow_pid"
  kill -TERM "$slow_pid"
  until_true 60 has_ended "$slow_pid" || failed+=", the other daemon stays"
  fs_pid=
  echo "$failed"
  [ -z "$failed" ]
}

# ---- other users ----

# shared_folders: $T/d with a folder for everyone, one for root, one for group 64100; $mode is of their files
shared_folders() {
  mkdir -p "$T/d/public" "$T/d/private" "$T/d/group" "$T/m"
  local folder
  for folder in public private group; do
    seq -f "$folder %g apple" 1 60 >"$T/d/$folder/a.txt"
    chmod 644 "$T/d/$folder/a.txt"
  done
  chmod 755 "$T" "$T/d" "$T/d/public"
  chmod 700 "$T/d/private"
  chgrp 64100 "$T/d/group" "$T/d/group/a.txt"
  chmod 750 "$T/d/group"
  (cd "$T" && chunks d 25 i.gpuir)
  # The folders of bats lead there, and are closed to others.
  local dir=$T
  while [ "$dir" != / ]; do
    chmod o+x "$dir"
    dir=$(dirname "$dir")
  done
  for folder in public private group; do eval "$folder=$(docid "$T/i.gpuir" "d/$folder/a.txt" 26)"; done
}

may() { # USER DOCUMENT: that user reads it, and sees it as an own file
  as "$1" cat "$T/m/doc/$2" >"$T/got" && [ "$(head -n 1 "$T/got" | cut -d ' ' -f 2)" = 26 ] &&
    [ "$(as "$1" stat -c '%u %a' "$T/m/doc/$2")" = "$1 400" ]
}

may_not() { # USER DOCUMENT
  if as "$1" cat "$T/m/doc/$2" >"$T/got" 2>"$T/err"; then return 1; fi
  grep -q 'Permission denied' "$T/err" && [ ! -s "$T/got" ]
}

@test "allow_other: nobody reads through doc/ what they could not read themselves" {
  needs_users
  shared_folders
  "$fs" -o allow_other "$T/i.gpuir" "$T/m"
  may 64001 "$public"
  # A folder on the way that is closed, although the file is open to all.
  may_not 64001 "$private"
  may_not 64001 "$group"
  cat "$T/m/doc/$private" "$T/m/doc/$group" >/dev/null # root may, and
  may_not 64001 "$private"                             # what root has seen is not for the next
  may_not 64001 "$group"
  # Further groups of the caller count; its own group alone is another.
  setpriv --reuid=64002 --regid=64002 --groups=64100 cat "$T/m/doc/$group" | grep -q '^group 26'
  setpriv --reuid=64003 --regid=64100 --clear-groups cat "$T/m/doc/$group" | grep -q '^group 26'
  may_not 64002 "$group"
  # Between two users who may not, one who may.
  for _ in 1 2 3 4 5; do
    may 64001 "$public"
    may 64004 "$public"
    may_not 64001 "$group"
    setpriv --reuid=64002 --regid=64002 --groups=64100 cat "$T/m/doc/$group" >/dev/null
  done
  # Rights that were taken away are gone at once, for files and folders.
  may 64001 "$((public + 1))" || [ "$(head -n 1 "$T/got" | cut -d ' ' -f 2)" = 51 ]
  chmod 600 "$T/d/public/a.txt"
  may_not 64001 "$public"
  chmod 644 "$T/d/public/a.txt"
  may 64001 "$public"
  chmod 700 "$T/d"
  may_not 64001 "$public"
  chmod 755 "$T/d"
  # Queries and names are for all; the daemon still acts as root.
  as 64001 cat "$T/m/query/apple" >/dev/null
  as 64001 ls "$T/m/hits/apple" >/dev/null
  cat "$T/m/doc/$private" >/dev/null
  fusermount3 -u "$T/m"
}

@test "allow_other: access control lists count" {
  needs_users
  needs_python
  shared_folders
  chmod 600 "$T/d/public/a.txt"
  check acl "$T/d/public/a.txt" 64005 || skip "no access control lists here"
  "$fs" -o allow_other "$T/i.gpuir" "$T/m"
  may 64005 "$public"
  may_not 64001 "$public"
  fusermount3 -u "$T/m"
}

@test "allow_other: a file that is swapped for a link to a secret shows the secret to nobody" {
  needs_users
  needs_python
  n=300 seconds=3
  [ -z "$long" ] || n=1500 seconds=20
  shared_folders
  mkdir "$T/d/hostile"
  for i in $(seq $n); do echo "apple $i" >"$T/d/hostile/$i"; done
  (cd "$T" && chunks d/hostile 1 j.gpuir)
  # Every document is reached by a link to the one name that changes.
  printf 'harmless\n' >"$T/d/hostile/now"
  echo 'top secret' >"$T/d/private/secret"
  chmod 600 "$T/d/private/secret"
  ln -s ../private/secret "$T/d/hostile/other"
  for i in $(seq $n); do ln -sf now "$T/d/hostile/$i"; done
  chown -hR 64001:64001 "$T/d/hostile"
  "$fs" -o allow_other,cache=1 "$T/j.gpuir" "$T/m"
  check swap $seconds "$T/d/hostile/now" "$T/d/hostile/other" >"$T/swaps" 3>&- &
  swapper=$!
  check look-for 64001 "top secret" $seconds "$T/m/doc" $n >"$T/reads"
  wait $swapper
  echo "# $(cat "$T/swaps"), $(cat "$T/reads")" >&3
  fusermount3 -u "$T/m"
}

@test "allow_other of an ordinary user: sources are for that user and root alone" {
  needs_users
  command -v runuser >/dev/null || skip "no runuser"
  home=$(mktemp -d /tmp/gpuirfs-user-XXXXXX)
  mkdir -p "$home/m" "$home/src" "$home/dev"
  seq -f 'line %g apple' 1 60 >"$home/src/a.txt"
  cp "$fs" "$home/gpuirfs"
  (cd "$home" && "$gpuir" index -q --chunk-lines 25 src -o i.gpuir)
  chmod 755 "$home" "$home/src"
  chmod 644 "$home/src/a.txt" "$home/i.gpuir"
  chown -R nobody "$home"
  cat >"$home/root.sh" <<'END_OF_SCRIPT'
cd "$1" || exit 1
mount -t tmpfs -o mode=755 none dev && mknod -m 666 dev/fuse c 10 229 && mount --bind dev/fuse /dev/fuse || exit 77
echo user_allow_other >dev/fuse.conf
mount --bind dev/fuse.conf /etc/fuse.conf || exit 77
runuser -u nobody -- ./gpuirfs -o allow_other i.gpuir m || exit 77
head -n 1 m/doc/0 || exit 1
runuser -u nobody -- head -n 1 m/doc/0 || exit 2
# The source is open to all, but this daemon cannot tell for others.
setpriv --reuid=64001 --regid=64001 --clear-groups cat m/query/apple || exit 3
setpriv --reuid=64001 --regid=64001 --clear-groups cat m/doc/0 && exit 4
umount m
END_OF_SCRIPT
  run unshare -m bash "$home/root.sh" "$home"
  echo "$output"
  rm -rf "$home"
  [ "$status" -ne 77 ] || skip "an ordinary user cannot mount with allow_other here"
  [ "$status" -eq 0 ]
}

@test "-o nosource: stored text, and otherwise no document" {
  needs_python
  mkdir "$T/src" "$T/m"
  seq -f 'line %g apple' 1 60 >"$T/src/a.txt"
  (cd "$T" && "$gpuir" index -q src -o whole.gpuir && "$gpuir" index -q --chunk-lines 25 src -o chunks.gpuir &&
    "$gpuir" index -q --store src -o stored.gpuir)
  for kind in whole chunks; do
    "$fs" -o nosource "$T/$kind.gpuir" "$T/m"
    run errno_of "$T/m/doc/0" "$T/m/query/apple"
    [ "${lines[*]}" = "ENOENT OK" ]
    [ ! -L "$T/m/doc/0" ]
    fusermount3 -u "$T/m"
  done
  "$fs" -o nosource "$T/stored.gpuir" "$T/m"
  cmp "$T/m/doc/0" "$T/src/a.txt"
}

# ---- hostile names ----

hostile_names() {
  printf '%s\n' '{"id": "esc \u001b[31m bell \u0007 del \u007f", "contents": "strange"}' \
    '{"id": "c1 \u009b31m \u0085", "contents": "strange"}' \
    '{"id": "\u202eexe.txt \u2066x\u2069 \u200f \u061c \u2028", "contents": "strange"}' \
    '{"id": "new\nline\r\ttab \\ \" back", "contents": "strange"}' \
    '{"id": "..", "contents": "strange"}' '{"id": "-rf *", "contents": "strange"}' \
    '{"id": "$(touch pwned)`id`;x", "contents": "strange"}' '{"id": "a/../../etc", "contents": "strange"}' |
    "$gpuir" index -q --jsonl - -o "$T/a.gpuir"
  # Enough valid UTF-8 beside the invalid bytes that the file is not taken for Windows-1252.
  printf 'x\xff\xc3\x28\xed\xa0\x80 \x9b31m\tstrange\n\xe2\x80\xae\tstrange\n%s\tmany\n' "$(printf 'é%.0s' {1..60})" \
    >"$T/bad.tsv"
  "$gpuir" index -q --tsv "$T/bad.tsv" -o "$T/b.gpuir"
}

@test "names reach no terminal as they are: command and mount, every format, one dialect" {
  needs_python
  hostile_names
  for x in a b; do
    mkdir "$T/$x"
    "$fs" "$T/$x.gpuir" "$T/$x"
    cp "$T/$x/query/@or/strange.tsv" "$T/$x.mount.tsv"
    cp "$T/$x/query/@or/strange.json" "$T/$x.mount.json"
    ls "$T/$x/hits/strange" >"$T/$x.hits"
    find "$T/$x/hits/strange/" >"$T/$x.find"
    cat "$T/$x/term/strange" >"$T/$x.term"
    for form in tsv json trec; do "$gpuir" query --$form "$T/$x.gpuir" strange >"$T/$x.$form"; done
    "$gpuir" query "$T/$x.gpuir" strange >"$T/$x.text"
    "$gpuir" explain "$T/$x.gpuir" 0 strange >"$T/$x.explain"
    "$gpuir" explain --json "$T/$x.gpuir" 0 strange >"$T/$x.explain.json" || true
    check harmless "$T/$x".*.tsv "$T/$x".{tsv,json,trec,text,hits,find,term,explain} "$T/$x".*.json
    diff <(cut -f 4 "$T/$x.tsv") <(cut -f 4 "$T/$x.mount.tsv")
    check same-names "$T/$x.json" "$T/$x.mount.json"
    fusermount3 -u "$T/$x"
  done
  grep -qF 'c1 \xc2\x9b31m \xc2\x85' "$T/a.mount.tsv"
  grep -qF '\u202eexe.txt \u2066x\u2069 \u200f \u061c \u2028' "$T/a.mount.json"
  grep -qF 'x\xff\xc3(\xed\xa0\x80 \x9b31m' "$T/b.mount.tsv"
  [ "$(wc -l <"$T/a.hits")" -eq 8 ]
}

@test "doc/ serves bytes as they are" {
  printf 'a\t\x1b[31m\xc2\x9b\xe2\x80\xae\xff\x00z apple' >"$T/raw"
  mkdir "$T/src" "$T/m"
  cp "$T/raw" "$T/src/a.txt"
  head -c 20 /dev/zero | tr '\0' x >>"$T/src/a.txt"
  printf 'a\t\x1b[31m\xc2\x9b\xe2\x80\xae\xff apple ééé\nb\n' >"$T/src/a.txt"
  (cd "$T" && chunks src 1 i.gpuir && "$gpuir" index -q --store src -o s.gpuir)
  "$fs" "$T/i.gpuir" "$T/m"
  head -n 1 "$T/src/a.txt" | cmp - "$T/m/doc/0"
  fusermount3 -u "$T/m"
  "$fs" "$T/s.gpuir" "$T/m"
  cmp "$T/src/a.txt" "$T/m/doc/0"
}

@test "messages reach no terminal as they are" {
  needs_python
  evil=$(printf 'x\033[31m\302\233y\342\200\256z\377')
  mkdir "$T/m" "$T/$evil"
  printf 'no index' >"$T/$evil/$evil"
  n=0
  said() { # COMMAND...: it fails, and what it says is harmless
    n=$((n + 1))
    if "$@" >"$T/said.$n" 2>&1; then
      echo "succeeds: $n"
      return 1
    fi
    [ -s "$T/said.$n" ]
    check harmless "$T/said.$n"
  }
  said "$fs" -o "mode=$evil" "$tmp/wordnet.gpuir" "$T/m"
  said "$fs" -o "backend=$evil" "$tmp/wordnet.gpuir" "$T/m"
  said "$fs" -o "k=$evil" "$tmp/wordnet.gpuir" "$T/m"
  said "$fs" -o "$evil" "$tmp/wordnet.gpuir" "$T/m"
  said "$fs" "--$evil" "$tmp/wordnet.gpuir" "$T/m"
  said "$fs" "$T/$evil.gpuir" "$T/m"
  said "$fs" "$T/$evil/$evil" "$T/m"
  said "$fs" "$tmp/wordnet.gpuir" "$T/$evil/m"
  said "$fs" "$tmp/wordnet.gpuir" "$T/$evil/$evil"
  said "$gpuir" "$evil"
  said "$gpuir" query "--$evil" x
  said "$gpuir" query "$T/$evil" x
  said "$gpuir" verify "$T/$evil/$evil"
  said "$gpuir" index --codec "$evil" -o "$T/o.gpuir" "$T/$evil"
  said "$gpuir" stats "$T/$evil/$evil"
  # A daemon that is told to load one.
  cp "$tmp/wordnet.gpuir" "$T/$evil/live"
  serve "$T/$evil/live" "$T/m"
  printf 'no index' >"$T/$evil/new"
  mv "$T/$evil/new" "$T/$evil/live"
  until_true 60 eval '[ "$(stat_of refused "$T/m")" -eq 1 ]'
  cp "$T/m/.stats" "$T/stats"
  check harmless "$T/stats" "$T/fs.log"
}

# ---- files that are cut short, mounts that have died ----

@test "an index that is cut short or overwritten in place does not end the daemon" {
  needs_python
  cp "$tmp/wordnet.gpuir" "$T/live.gpuir"
  serve "$T/live.gpuir" "$T/m"
  cat "$T/m/query/@or/music" >"$T/want"
  exec 5<"$T/m/doc/7"
  truncate -s 4096 "$T/live.gpuir"
  run errno_of "$T/m/query/@or/computer" "$T/m/query/@or/@k=1000/the+of.json" "$T/m/doc/1900" "$T/m/term/night" \
    "$T/m/hits/water" "$T/m/query/@or/music"
  [ "${lines[*]}" = "EIO EIO EIO EIO EIO OK" ]
  cmp "$T/m/query/@or/music" "$T/want" # as it was answered before
  run cat <&5
  [ "$status" -ne 0 ]
  exec 5<&-
  [ "$(stat_of broken "$T/m")" -eq 1 ]
  until_true 60 eval '[ "$(stat_of refused "$T/m")" -eq 1 ]'
  [ "$(errno_of "$T/m/query/@or/water")" = EIO ]
  cp "$tmp/wordnet.gpuir" "$T/live.gpuir"
  until_true 60 eval '[ "$(stat_of broken "$T/m")" -eq 0 ]'
  diff "$T/m/query/water" "$mnt/query/water"
  cmp "$T/m/doc/7" "$mnt/doc/7"
  # Written over, again and again, under readers: they may fail or be wrong until it is whole again.
  head -n 1000 "$root/tests/data/wordnet.tsv" | "$gpuir" index -q --tsv --store - -o "$T/half.gpuir"
  rounds=10
  [ -z "$long" ] || rounds=200
  check disturb "$T/stop" "$T/m/query/@or" 3>&- &
  reader=$!
  for _ in $(seq $rounds); do
    cp "$T/half.gpuir" "$T/live.gpuir"
    sleep 0.0$((RANDOM % 10))
    truncate -s $((RANDOM * 20)) "$T/live.gpuir"
    sleep 0.0$((RANDOM % 10))
    cp "$tmp/wordnet.gpuir" "$T/live.gpuir"
    sleep 0.$((RANDOM % 4))
  done
  touch "$T/stop"
  wait $reader
  touch "$T/live.gpuir"
  until_true 60 eval '[ "$(stat_of broken "$T/m")" -eq 0 ] && cmp -s "$T/m/query/winter" "$mnt/query/winter"'
}

@test "a mount that has died is told of, even where the kernel still knows its attributes" {
  serve "$tmp/wordnet.gpuir" "$T/m"
  stat "$T/m" >/dev/null
  kill -KILL "$fs_pid"
  wait "$fs_pid" || true
  fs_pid=
  run "$fs" "$tmp/wordnet.gpuir" "$T/m"
  [ "$status" -eq 1 ]
  [[ "$output" == *"has died: fusermount3 -u $T/m" ]]
  [ "$(grep -c " $T/m fuse" /proc/self/mounts)" -eq 1 ]
  fusermount3 -u "$T/m"
  not_mounted "$T/m"
}

# ---- many readers ----

@test "64 processes read beside reloads: nothing wrong, no unexpected error" {
  [ -x "$build/tests/e2e/mount_reads" ] || skip "mount_reads was not built"
  reads=20000
  [ -z "$long" ] || reads=1000000
  "$root/tests/support/mount_reads.sh" "$reads" "$T/reads" >"$T/log" 2>&1 3>&- || {
    cat "$T/log"
    false
  }
  grep '^total' "$T/log" | sed 's/^/# /' >&3
}
