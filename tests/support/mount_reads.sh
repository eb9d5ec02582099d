#!/usr/bin/env bash
# tests/support/mount_reads.sh READS FOLDER [PROCESSES]: READS reads of a mount by 64 processes, while its index is
# replaced every 200 ms. FOLDER is made and holds the indexes, the answers and the mount. Programs are those of
# GPUIR_BUILD (default build). What was run, where and what came of it goes to standard output; exit status 0 when
# nothing was wrong and no unexpected error came.
# shellcheck disable=SC2317 # what trap and await run
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
reads=$1 folder=$2 processes=${3:-64}
build=${GPUIR_BUILD:-build}
gpuir=$build/gpuir fs=$build/gpuirfs program=$build/tests/e2e/mount_reads
mnt=$folder/m fs_pid=

echo "command: tests/support/mount_reads.sh $*"
echo "commit: $(git describe --always --dirty --exclude='*' 2>/dev/null || echo unknown)"
echo "machine: $(sed -n 's/^model name[[:blank:]]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores," \
  "Linux $(uname -r)," \
  "$("$fs" -V)"
mkdir -p "$folder/old" "$folder/new" "$mnt"
finish() {
  touch "$folder/stop"
  [ -z "$fs_pid" ] || kill "$fs_pid" 2>/dev/null || true
  sleep 0.1
  fusermount3 -u "$mnt" 2>/dev/null || true
}
trap finish EXIT

# Two halves of WordNet, so that every answer and every document differs.
head -n 1000 tests/data/wordnet.tsv | "$gpuir" index -q --tsv --analyzer unicode --store - -o "$folder/old.gpuir"
tail -n 994 tests/data/wordnet.tsv | "$gpuir" index -q --tsv --analyzer unicode --store - -o "$folder/new.gpuir"

# Queries of every form, folders of links, documents and terms.
words=(of the in to a with or by as person water)
{
  for a in "${words[@]}"; do
    for b in "${words[@]}"; do
      echo "query/@or/$a+$b"
      echo "query/@or/@k=50/$a+$b.tsv"
      echo "query/$a+-$b.json"
      echo "hits/@or/$a+$b"
      echo "pass/$a+$b"
      echo "grep/@tokens=200/$a+$b"
    done
    echo "term/$a"
  done | grep -v -e '\(^\|/\)\([a-z]*\)+-\2\.'
  for i in $(seq 0 3 990); do echo "doc/$i"; done
} >"$folder/list"

await() { # COMMAND...: it succeeds within 10 s
  local end=$((SECONDS + 10))
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.05
  done
}
mounted() { grep -q " $mnt fuse.gpuirfs " /proc/self/mounts; }

for version in old new; do
  "$fs" "$folder/$version.gpuir" "$mnt"
  "$program" -record "$mnt" "$folder/list" "$folder/$version"
  fusermount3 -u "$mnt"
done

replace() { # VERSION
  cp "$folder/$1.gpuir" "$folder/live.tmp"
  mv "$folder/live.tmp" "$folder/live.gpuir"
}
replace old
"$fs" -f "$folder/live.gpuir" "$mnt" 2>"$folder/fs.log" &
fs_pid=$!
await mounted
(
  while [ ! -e "$folder/stop" ]; do
    replace new
    sleep 0.2
    replace old
    sleep 0.2
  done
) &
replacer=$!

start=$(date +%s.%N)
status=0
"$program" "$mnt" "$folder/list" "$folder/old" "$folder/new" "$processes" "$reads" || status=$?
end=$(date +%s.%N)
touch "$folder/stop"
wait "$replacer"
echo "processes $processes, paths $(wc -l <"$folder/list"), seconds $(awk "BEGIN { printf \"%.1f\", $end - $start }")"
grep -E '^(lookups|searches|memo_hits|errors|reloads|refused|evicted|invalidated)' "$mnt/.stats" | tr '\t\n' ' ;'
echo
grep -E '^(VmHWM|VmRSS|Threads)' "/proc/$fs_pid/status" | tr '\t\n' ' ;'
echo
exit $status
