#!/usr/bin/env bats
# gpuirfs searches through a pool: searches that wait, are called off, come too late, are refused; threads that help.
# shellcheck disable=SC2016 # what until_true and eval run is in single quotes
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test is a subshell of its own; ../support/mount sets variables

load ../support/mount

# long_searches: an index where a query that asks for all documents takes long; $all is one
long_searches() {
  all=$(seq -f 'w%g' -s + 0 59)
  [ ! -e "$tmp/many.gpuir" ] || return 0
  awk 'BEGIN { srand(1); for (i = 0; i < 350000; i++) {
    line = ""; for (j = 0; j < 12; j++) line = line " w" int(60 * rand() * rand()); print line } }' >"$tmp/many.txt"
  "$gpuir" index -q --lines "$tmp/many.txt" -o "$tmp/many.gpuir"
  rm "$tmp/many.txt"
}

# at_once N: N programs ask at once, each in a folder of its own, as the kernel lets them in one after the other else;
# $T/said.1 and so on are what they say of it, nothing when all is well; $readers are their processes
at_once() {
  readers=()
  local i
  for i in $(seq "$1"); do
    cat "$T/m/query/@or/@k=$((400000 + i))/$all" >"$T/answer.$i" 2>"$T/said.$i" 3>&- &
    readers+=($!)
  done
}

came() { grep -lE "$1" "$T"/said.* | wc -l; } # ERROR: how many say so
went_well() { find "$T" -name 'said.*' -empty | wc -l; }

@test "a search that waits for its turn ends as soon as its reader does" {
  needs_python # for one look at the end
  long_searches
  serve "$tmp/many.gpuir" "$T/m" -o searchers=1
  at_once 40
  until_true 60 eval '[ "$(stat_of searches_waiting "$T/m")" -ge 6 ] && [ "$(stat_of searches_running "$T/m")" -eq 1 ]'
  kill -KILL "${readers[@]}" 2>/dev/null || true # some may have their answer
  for reader in "${readers[@]}"; do wait "$reader" || true; done
  until_true 60 eval '[ "$(stat_of searches_running "$T/m")" -eq 0 ]'
  cat "$T/m/.stats"
  [ "$(stat_of searches_waiting "$T/m")" -eq 0 ]
  [ "$(stat_of searches_cancelled "$T/m")" -ge 4 ]
  [ "$(stat_of interrupted "$T/m")" -ge "$(stat_of searches_cancelled "$T/m")" ]
  # The pool goes on.
  [ "$(errno_of "$T/m/query/w1+w2")" = OK ]
}

@test "a search that cannot begin within the time limit is late; -o timeout counts from when it is asked for" {
  long_searches
  serve "$tmp/many.gpuir" "$T/m" -o searchers=1,timeout=1
  at_once 60
  for reader in "${readers[@]}"; do wait "$reader" || true; done
  late=$(came 'Connection timed out')
  echo "# $late of 60 were late" >&3
  [ $((late + $(went_well))) -eq 60 ]
  [ "$(stat_of searches_late "$T/m")" -eq "$late" ]
  cat "$T/m/query/w1+w2" >/dev/null
  [ "$late" -ge 1 ] || skip "60 long searches take less than a second here"
}

@test "-o queue: searches beyond it fail with EAGAIN, and may be asked for again" {
  needs_python
  long_searches
  serve "$tmp/many.gpuir" "$T/m" -o searchers=1,queue=2
  at_once 30
  for reader in "${readers[@]}"; do wait "$reader" || true; done
  refused=$(came 'Resource temporarily unavailable')
  echo "# $refused of 30 were refused" >&3
  [ "$refused" -ge 1 ]
  [ "$(went_well)" -eq $((30 - refused)) ]
  [ "$(went_well)" -ge 3 ]
  [ "$(stat_of searches_refused "$T/m")" -eq "$refused" ]
  stat_of last_error "$T/m" | grep -q 'as many searches wait as may (queue=2)$'
  again=$(grep -l 'Resource temporarily unavailable' "$T"/said.* | head -n 1)
  [ "$(errno_of "$T/m/query/@or/@k=$((400000 + ${again##*.}))/$all")" = OK ]
  for wrong in 0 65 x; do
    run "$fs" -o "queue=$wrong" "$tmp/many.gpuir" "$T/n"
    [ "$status" -eq 2 ]
    [[ "$output" == *"queue=$wrong: not a number from 1 to 64"* ]]
  done
}

@test "threads that have nothing to do help with a long search, and its answer stays what it is" {
  long_searches
  serve "$tmp/many.gpuir" "$T/m" -o searchers=3
  serve_pid=$fs_pid
  serve "$tmp/many.gpuir" "$T/n" -o searchers=1
  other_pid=$fs_pid fs_pid=$serve_pid
  i=0
  until [ "$(stat_of searches_helped "$T/m")" -gt 0 ] && [ $i -ge 20 ]; do
    cmp "$T/m/query/@or/@k=$((1000 + i))/$all" "$T/n/query/@or/@k=$((1000 + i))/$all"
    i=$((i + 1))
    [ $i -lt 2000 ]
  done
  [ "$(stat_of searches_helped "$T/n")" -eq 0 ]
  # Nobody asks: no thread does anything but look at the index now and then.
  ticks() { awk '{ print $14 + $15 }' "/proc/$fs_pid/stat"; }
  until_true 60 eval 'before=$(ticks); sleep 0.5; [ $(($(ticks) - before)) -eq 0 ]'
  kill "$other_pid"
  until_true 60 has_ended "$other_pid"
}

@test "an index that is cut short under threads that search it together ends no daemon, and is read again" {
  needs_python
  long_searches
  cp "$tmp/many.gpuir" "$T/live.gpuir"
  rounds=3 readers=()
  [ -z "$long" ] || rounds=40
  serve "$T/live.gpuir" "$T/m" -o searchers=3
  for round in $(seq $rounds); do
    before=$(stat_of searches_helped "$T/m")
    for first in 20 3000 6000; do
      check ask "$T/stop.$round" "$T/m/query/@or" "$first" "$all" >"$T/asked.$first" 2>&1 3>&- &
      readers+=($!)
    done
    until_true 60 eval '[ "$(stat_of searches_helped "$T/m")" -gt "$before" ]'
    truncate -s $((4096 * (1 + RANDOM % 50))) "$T/live.gpuir"
    until_true 60 eval '[ "$(stat_of broken "$T/m")" -eq 1 ]'
    [ "$(errno_of "$T/m/query/@or/@k=$((round + 1))/$all")" = EIO ]
    touch "$T/stop.$round"
    for reader in "${readers[@]}"; do wait "$reader"; done
    readers=()
    cp "$tmp/many.gpuir" "$T/live.tmp"
    mv "$T/live.tmp" "$T/live.gpuir"
    until_true 60 eval '[ "$(stat_of broken "$T/m")" -eq 0 ]'
    "$gpuir" query --mode or -k 20 --tsv "$tmp/many.gpuir" "${all//+/ }" | cut -f 2 >"$T/want"
    cmp "$T/m/query/@or/@k=20/$all" "$T/want"
  done
}

# standin HOW: mounts with a processor that stands for a GPU, and asks until it has been opened or was found wanting
standin() {
  fs=$build/tests/gpuirfs_standin
  [ -x "$fs" ] || skip "gpuirfs_standin was not built"
  GPUIR_STANDIN=$1 serve "$tmp/wordnet.gpuir" "$T/m"
}

@test "a GPU beside the processors answers what is asked of it, and what is long" {
  standin ready
  i=0
  until [ "$(stat_of searches_by_gpu "$T/m")" -gt 0 ]; do
    i=$((i + 1))
    cat "$T/m/query/@gpu/night+-x$i" >/dev/null
  done
  before=$(stat_of searches_by_gpu "$T/m") fallbacks=$(stat_of gpu_fallbacks "$T/m")
  [ "$fallbacks" -lt "$i" ]
  cmp "$T/m/query/@gpu/@or/water+night.tsv" "$mnt/query/@or/water+night.tsv"
  cmp "$T/m/query/@cpu/@or/@k=20/water+night.tsv" "$mnt/query/@or/@k=20/water+night.tsv"
  cmp "$T/m/query/@or/@k=30/water+night.tsv" "$mnt/query/@or/@k=30/water+night.tsv"
  cmp "$T/m/query/@gpu/@k=0/water" "$mnt/query/@k=0/water" # nothing for a device
  [ "$(stat_of searches_by_gpu "$T/m")" -ge $((before + 1)) ]
  [ "$(stat_of gpu_fallbacks "$T/m")" -eq $((fallbacks + 1)) ]
  stat_of gpu_fallback_reason "$T/m" | grep -qx 'the GPU is not ready yet, or does not take such a query'
}

@test "without a GPU, or with one that fails, processors answer, and why is told" {
  for how in 'none:nothing stands for a device' 'fails:backend standin: backend failure'; do
    standin "${how%%:*}"
    i=0
    until stat_of gpu_fallback_reason "$T/m" | grep -qx "${how#*:}"; do
      i=$((i + 1))
      [ $i -le 500 ]
      cat "$T/m/query/@gpu/night+-x$i" >/dev/null
    done
    cmp "$T/m/query/@gpu/@or/water+night.tsv" "$mnt/query/@or/water+night.tsv"
    [ "$(stat_of gpu_fallbacks "$T/m")" -eq $((i + 1)) ]
    [ "$(stat_of searches_by_gpu "$T/m")" -eq 0 ]
    kill "$fs_pid"
    until_true 60 has_ended "$fs_pid"
  done
}
