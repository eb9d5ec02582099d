#!/usr/bin/env bash
# safety_session.sh: all fuzzers, damaged files through every command that reads, kills, failing calls, loss of power.
#
#   safety_session.sh all [SECONDS]
#       both of what follows, here.
#   safety_session.sh pack
#       on the machine that builds, with clang: puts what a run needs into build/safety/carry, linked statically but
#       for the C library, so that it runs where python3 is and none of the project's libraries are.
#   safety_session.sh run [SECONDS]
#       on the machine with the processors: where build/safety/carry is. It does the counts below, as many jobs at a
#       time as there are processors, and ends what is left after SECONDS (3600). The logs go to the folder $OUT
#       (build/safety/logs): fuzz.txt, commands.txt, faults.txt, what they were made from, and the corpora.
#   safety_session.sh keep FOLDER
#       makes tests/fuzz/corpus, with which the fuzzers begin, of the folders FOLDER/corpus-fuzz_*: the fewest files
#       that reach all that those reach. `make fuzzers` comes before. What it finds stays in build/fuzz.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
carry=$PWD/build/safety/carry
out=${OUT:-$PWD/build/safety/logs}

# Executions of each fuzzer, damaged files of all commands together, kills of each command.
declare -A runs=([open]=240000 [live]=80000 [query]=200000 [exchange]=120000 [records]=150000 [path]=250000
  [codecs]=120000)
files=50000 files_asan=1000 kills=200 kills_live=1000

# ---- on the machine that builds -----------------------------------------------------------------------------------

pack() {
  local build=build/safety libs='-l:libutf8proc.a -l:libstemmer.a -lm -pthread' bin name
  local settings=(GPU=0 "LIBS=$libs" "TOOL_LIBS=-l:libz.a $libs")
  make -j2 "${settings[@]}" B=$build CFLAGS=-O3 $build/{gpuir,tests/fuzz/commands,tests/e2e/live_history,commit} \
    fuzzers || return
  # To trace comparisons takes half of the time of these, and what their mutators write does not depend on them.
  make -j2 "${settings[@]}" B=$build/open CLANG='clang -fno-sanitize-coverage=trace-cmp' \
    $build/open/fuzz/{fuzz_open,fuzz_live} || return
  make -j2 "${settings[@]}" B=$build/asan CC=clang LDFLAGS=-fsanitize=address,undefined \
    CFLAGS='-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all' $build/asan/gpuir || return
  bin=$build/bin
  rm -rf "$bin" "$carry" && mkdir -p "$bin" "$carry" || return
  cc -std=gnu99 -O1 -shared -fPIC tests/support/faults.c -o $bin/preload.so -ldl || return
  cp $build/{gpuir,commit,tests/fuzz/commands,tests/e2e/live_history} tests/e2e/{faults,live_faults}.py $bin/ &&
    cp $build/asan/gpuir $bin/gpuir-asan && cp $build/fuzz/fuzz_*[a-z] $bin/ && rm -f $bin/*.d &&
    cp $build/open/fuzz/fuzz_{open,live} $bin/ || return
  # shellcheck disable=SC1090 # the functions lists and seeds of the script that runs the tests
  source <(sed -n '/^# lists:/,/^# fuzz NAME/p' tests/run)
  export GPUIR_BUILD=$build
  for name in "$bin"/fuzz_*; do seeds "${name##*/}" "$bin/seeds-${name##*/}"; done
  strip $bin/commands $bin/gpuir && strip -g $bin/fuzz_*[a-z] $bin/gpuir-asan
  tar -czf "$carry/safety.tar.gz" -C $bin . && ls -l "$carry"
}

# ---- on the machine that runs -------------------------------------------------------------------------------------

left() { echo $((end > SECONDS ? end - SECONDS : 1)); }

# fuzz NAME SEED [OPTION...]: a fuzzer with a corpus and seeds
fuzz() {
  local name=fuzz_$1 goal=${runs[$1]} seed=$2 log=$work/log/fuzz_$1.log
  shift 2
  mkdir -p "corpus-$name" "seeds-$name"
  timeout -k 5 $(($(left) + 25)) "$work/$name" -seed="$seed" -runs="$goal" -max_total_time="$(left)" -max_len=65536 \
    -timeout=20 -rss_limit_mb=4096 -malloc_limit_mb=300 -print_final_stats=1 -artifact_prefix="$work/found/$name-" \
    "$@" "corpus-$name" "seeds-$name" >"$log" 2>&1
  echo "exit status $?" >>"$log"
}

# disturbed MODE COMMAND: faults.py, or of `live` live_faults.py, as long as there is time
disturbed() {
  local log=$work/log/faults-$1-$2.log limit=0 script=(faults.py "$work/gpuir")
  [[ $1 != kills ]] || limit=$kills
  if [[ $2 == live ]]; then
    script=(live_faults.py "$work/live_history")
    [[ $1 != kills ]] || limit=$kills_live
  fi
  mkdir -p "$1-$2"
  (cd "$1-$2" && timeout -k 5 "$(left)" python3 "$work/${script[0]}" "${script[1]}" "$work/preload.so" "$1" "$limit" \
    "$([[ $2 == live ]] && echo "$work/gpuir" || echo "$2")") >"$log" 2>&1
  echo "exit status $?" >>"$log"
}

# commands KIND NUMBER FILES FIRST: damaged files through all commands
commands() {
  "$work/commands" "$work/gpuir$([[ $1 == release ]] || echo "-$1")" "$3" "$4" "$(left)" \
    >"log/commands-$1-$2.log" 2>&1
}

# job COMMAND...: runs it beside at most as many others as there are processors
job() {
  while (($(jobs -rp | wc -l) >= cores)); do wait -n; done
  "$@" &
}

do_all() {
  local first=$1 name mode i parts=$((cores * 2))
  job fuzz open 21 -reduce_inputs=0
  job fuzz live 22 -reduce_inputs=0
  job disturbed faults live
  job disturbed faults index-spilled
  job fuzz query 11
  job fuzz codecs 14
  job fuzz exchange 15
  job fuzz path 13
  job fuzz records 12 -close_fd_mask=2
  for mode in kills power readers update; do job disturbed $mode live; done
  for mode in kills power faults; do
    for name in index index-spilled reorder import export; do
      [[ $mode-$name == faults-index-spilled ]] || job disturbed $mode $name
    done
  done
  job commands asan 0 $files_asan $((first + 100000000))
  for ((i = 0; i < parts; i++)); do
    job commands release $i $(((files + parts - 1) / parts)) $((first + i * 1000000))
  done
  wait
}

# The edges of one fuzzer at each fifth of its executions, from its log.
edges() {
  awk '/^#[0-9]+/ && /cov: / { n++; at[n] = substr($1, 2) + 0; sub(/.*cov: /, ""); edge[n] = $1 + 0 }
    END {
      for (fifth = 1; fifth <= 5; fifth++) {
        for (i = 1; i <= n && at[i] <= at[n] * fifth / 5; i++) now = edge[i]
        printf " %6d", now
      }
    }' "$1"
}

executions() { sed -n 's/^stat::number_of_executed_units: //p' "$1"; }

findings() { grep -c '^==[0-9]*== ERROR\|^==[0-9]*==ERROR\|runtime error' "$1"; }

write_fuzz() {
  local log all=0 open live
  head_line "each fuzzer with -max_len=65536 -timeout=20 -rss_limit_mb=4096 -malloc_limit_mb=300"
  echo '# fuzzers under the address and undefined-behaviour sanitizers; edges at each fifth of the executions'
  printf '%-15s %10s  %-34s  %s\n' process executions '  edges at 1/5, 2/5 ... 5/5' findings
  for log in log/fuzz_*.log; do
    printf '%-15s %10d %s %10d\n' "$(basename "$log" .log)" "$(executions "$log")" "$(edges "$log")" \
      "$(findings "$log")"
    all=$((all + $(executions "$log")))
  done
  open=$(executions log/fuzz_open.log) live=$(executions log/fuzz_live.log)
  sed -n 's/^fuzz_live: /&/p' log/fuzz_live.log
  cat log/fuzz_open*.log | awk '/^fuzz_open: / { opened += $2; verified += $5; if ($10 > slowest) slowest = $10 }
    END {
      printf "fuzz_open: %d files opened, %d of them verified, the slowest took %s s\n", opened, verified, slowest
    }'
  echo "$all executions of the fuzzers, $open of fuzz_open, $live of fuzz_live and $((all - open - live)) of the" \
    "others," \
    "$(cat log/fuzz_*.log | findings /dev/stdin) findings"
}

write_commands() {
  head_line 'commands GPUIR FILES FIRST SECONDS'
  echo '# -asan: the command under the address and undefined-behaviour sanitizers; -release: built with -O3'
  for log in log/commands-*.log; do
    echo "$(basename "$log" .log): $(grep '^# [0-9]* files' "$log" | sed 's/^# //')"
    grep '^# file\|^Bail' "$log" | head -n 20
  done
  cat log/commands-*.log | awk '/^# [0-9]+ files/ {
      files += $2; runs += $6; findings += $11
      if ($16 > slowest) slowest = $16
      if ($20 > largest) largest = $20
    } END {
      printf "%d damaged files, %d runs, %d findings, ", files, runs, findings
      printf "the slowest took %s s, the largest %d KB of memory\n", slowest, largest
    }'
}

write_faults() {
  head_line "faults.py GPUIR preload.so kills $kills | faults 0 | power 0, for each command"
  for log in log/faults-*.log; do
    log_name=$(basename "$log" .log)
    echo "${log_name#faults-}: $(grep 'tried' "$log" || tail -n 1 "$log")"
    grep -v 'tried\|^exit' "$log" | head -n 20
  done
  echo '# the commands, without live indexes:'
  for name in faults kills power; do
    cat log/faults-$name-{index,index-spilled,reorder,import,export}.log |
      awk -v name="$name" '/tried/ { tried += $1; killed += $3; wrong += $7 }
      END { print name ":", tried + 0, "tried,", killed + 0, "killed,", wrong + 0, "wrong" }'
  done
}

head_line() {
  echo "# commit: $(cat "$work/commit")"
  echo "# machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) processors"
  echo "# command: tools/scripts/safety_session.sh run $seconds: $1"
}

run() {
  seconds=$1 cores=$(nproc)
  work=$(mktemp -d "${TMPDIR:-/tmp}/safety.XXXXXX")
  mkdir -p "$out" "$work/log" "$work/found" && tar -xf "$carry/safety.tar.gz" -C "$work" || return
  cd "$work" || return
  export TMPDIR=$work ASAN_OPTIONS=quarantine_size_mb=16:malloc_context_size=4
  end=$((SECONDS + seconds))
  do_all $(($(date +%s) % 1000 * 1000000))
  write_fuzz >"$out/fuzz.txt"
  write_commands >"$out/commands.txt"
  write_faults >"$out/faults.txt"
  tar -czf "$out/raw.tar.gz" log found
  tar -cf - corpus-fuzz_open corpus-fuzz_live | gzip -9 >"$out/corpus.tar.gz"
  cat "$out"/{fuzz,commands,faults}.txt
  cd / && rm -rf "$work"
}

# keep FOLDER: what is worth to be kept of each corpus there, as an archive
keep() {
  local from kept name files
  kept=$(mktemp -d "${TMPDIR:-/tmp}/keep.XXXXXX")
  mkdir -p tests/fuzz/corpus
  for from in "$1"/corpus-fuzz_*; do
    name=${from##*/corpus-}
    mkdir "$kept/$name"
    "build/fuzz/$name" -set_cover_merge=1 -max_len=65536 -rss_limit_mb=4096 -close_fd_mask=3 \
      -artifact_prefix="build/fuzz/$name-" "$kept/$name" "$from" || return
    files=$(find "$kept/$name" -type f | wc -l)
    tar -C "$kept/$name" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - . | xz -9e \
      >"tests/fuzz/corpus/$name.tar.xz" || return
    echo "$name: $files files, $(stat -c %s "tests/fuzz/corpus/$name.tar.xz") bytes"
  done
  rm -rf "$kept"
}

case ${1-} in
  all) pack && run "${2-3600}" ;;
  pack) pack ;;
  run) run "${2-3600}" ;;
  keep) keep "${2:?the folder of the corpora}" ;;
  *)
    sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | head -n -1
    exit 2
    ;;
esac
