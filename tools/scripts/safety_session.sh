#!/usr/bin/env bash
# safety_session.sh: all fuzzers, damaged files through every command that reads, kills and failing calls, side by side.
#
#   safety_session.sh pack [CORPUS]
#       on the machine that builds, with clang: puts what a run needs into build/safety/carry, linked statically but
#       for the C library, so that it runs where python3 is and none of the project's libraries are. fuzz_open begins
#       with the files of the folder CORPUS too.
#   safety_session.sh run SECONDS
#       on the machine with the processors: where build/safety/carry is, for SECONDS and about half a minute more. The
#       logs go to the folder $OUT (build/safety/logs): fuzz.txt, commands.txt, faults.txt, what they were made from,
#       and the corpus of fuzz_open, for the next run.
#
# Of 16 processors fuzz_open gets five, which share a corpus, the other fuzzers three, the commands eight, two of these
# under the sanitizers; kills and faults come beside them.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
carry=$PWD/build/safety/carry
out=${OUT:-$PWD/build/safety/logs}

# ---- on the machine that builds -----------------------------------------------------------------------------------

pack() {
  local build=build/safety libs='-l:libutf8proc.a -l:libstemmer.a -lm -pthread' bin name
  local settings=(GPU=0 "LIBS=$libs" "TOOL_LIBS=-l:libz.a $libs")
  make -j2 "${settings[@]}" B=$build CFLAGS=-O3 $build/{gpuir,tests/fuzz/commands,commit} fuzzers || return
  # To trace comparisons takes half of the time of fuzz_open, and what its mutator writes does not depend on them.
  make -j2 "${settings[@]}" B=$build/open CLANG='clang -fno-sanitize-coverage=trace-cmp' \
    $build/open/fuzz/fuzz_open || return
  make -j2 "${settings[@]}" B=$build/asan CC=clang LDFLAGS=-fsanitize=address,undefined \
    CFLAGS='-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all' $build/asan/gpuir || return
  bin=$build/bin
  rm -rf "$bin" "$carry" && mkdir -p "$bin" "$carry" || return
  cc -std=gnu99 -O1 -shared -fPIC tests/support/faults.c -o $bin/faults.so -ldl || return
  cp $build/{gpuir,commit,tests/fuzz/commands} tests/e2e/faults.py $bin/ && cp $build/asan/gpuir $bin/gpuir-asan &&
    cp $build/fuzz/fuzz_*[a-z] $bin/ && rm -f $bin/*.d && cp $build/open/fuzz/fuzz_open $bin/ || return
  # shellcheck disable=SC1090 # the functions lists and seeds of the script that runs the tests
  source <(sed -n '/^# lists:/,/^# fuzz NAME/p' tests/run)
  export GPUIR_BUILD=$build
  for name in "$bin"/fuzz_*; do seeds "${name##*/}" "$bin/seeds-${name##*/}"; done
  [[ -z ${1-} ]] || find "$1" -type f -exec cp -t $bin/seeds-fuzz_open {} +
  strip $bin/commands $bin/gpuir && strip -g $bin/fuzz_*[a-z] $bin/gpuir-asan
  tar -czf "$carry/safety.tar.gz" -C $bin . && ls -l "$carry"
}

# ---- on the machine that runs -------------------------------------------------------------------------------------

# fuzz LOG NAME SECONDS SEED [OPTION...] FOLDER...: a fuzzer with a corpus and seeds
fuzz() {
  local log=$1 name=$2 seconds=$3 seed=$4
  shift 4
  timeout -k 5 $((seconds + 25)) "$work/$name" -seed="$seed" -max_total_time="$seconds" -max_len=65536 -timeout=20 \
    -rss_limit_mb=4096 -malloc_limit_mb=300 -print_final_stats=1 -artifact_prefix="$work/found/$log-" "$@" \
    >"$work/log/$log.log" 2>&1
  echo "exit status $?" >>"$work/log/$log.log"
}

# alone NAME SECONDS SEED [OPTION...]
alone() {
  local name=$1
  mkdir -p "corpus-$name" "seeds-$name"
  fuzz "$name" "$@" "corpus-$name" "seeds-$name"
}

# disturbed MODE COMMAND: faults.py, as long as there is time
disturbed() {
  local left=$((seconds + 10 - SECONDS)) log=$work/log/faults-$1-$2.log
  mkdir -p "$1-$2"
  (cd "$1-$2" && timeout -k 5 $((left > 0 ? left : 1)) python3 "$work/faults.py" "$work/gpuir" "$work/faults.so" "$1" \
    "$([[ $1 != kills ]] && echo 0 || echo 300)" "$2") >"$log" 2>&1
  echo "exit status $?" >>"$log"
}

start_all() { # with CORES processors
  local cores=$1 begin=$2 i name
  for ((i = 1; i <= (cores * 5 + 15) / 16; i++)); do
    fuzz "fuzz_open-$i" fuzz_open "$seconds" $((20 + i)) -reduce_inputs=0 corpus-fuzz_open seeds-fuzz_open &
  done
  alone fuzz_codecs $((seconds - 10)) 14 &
  (alone fuzz_exchange $((seconds / 2 - 5)) 15; alone fuzz_path $((seconds / 2 - 10)) 13) &
  (alone fuzz_query $((seconds / 2 - 5)) 11; alone fuzz_records $((seconds / 2 - 10)) 12 -close_fd_mask=2) &
  for ((i = 1; i <= (cores * 6 + 15) / 16; i++)); do
    "$work/commands" "$work/gpuir" 1000000 $((begin + i * 1000000)) "$seconds" >"log/commands-release-$i.log" 2>&1 &
  done
  for ((i = 1; i <= (cores + 7) / 8; i++)); do
    "$work/commands" "$work/gpuir-asan" 1000000 $((begin + (100 + i) * 1000000)) "$seconds" \
      >"log/commands-asan-$i.log" 2>&1 &
  done
  disturbed faults index-spilled &
  (disturbed kills index-spilled; disturbed power index-spilled) &
  for name in index reorder import export; do
    (disturbed kills $name; disturbed faults $name; disturbed power $name) &
  done
  wait
}

# merged K START: the edges that fuzz_open's corpus reached in the first K fifths of the time
merged() {
  mkdir -p "until-$1"
  find corpus-fuzz_open -type f ! -newermt "@$(($2 + seconds * $1 / 5))" -exec cp -t "until-$1" {} +
  timeout 60 "$work/fuzz_open" -runs=0 -max_len=65536 "until-$1" seeds-fuzz_open 2>&1 |
    sed -n 's/.*INITED cov: \([0-9]*\).*/\1/p' >"edges-$1"
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
  local log all=0 sum=0
  head_line "each fuzzer with -max_total_time -max_len=65536 -timeout=20 -rss_limit_mb=4096 -malloc_limit_mb=300"
  echo '# fuzzers under the address and undefined-behaviour sanitizers; edges at each fifth of the executions'
  printf '%-15s %10s  %-34s  %s\n' process executions '  edges at 1/5, 2/5 ... 5/5' findings
  for log in log/fuzz_*.log; do
    printf '%-15s %10d %s %10d\n' "$(basename "$log" .log)" "$(executions "$log")" "$(edges "$log")" \
      "$(findings "$log")"
    all=$((all + $(executions "$log")))
    [[ $log == *open* ]] && sum=$((sum + $(executions "$log")))
  done
  cat log/fuzz_open*.log | awk '/^fuzz_open: / { opened += $2; verified += $5; if ($10 > slowest) slowest = $10 }
    END {
      printf "fuzz_open: %d files opened, %d of them verified, the slowest took %s s\n", opened, verified, slowest
    }'
  echo "# edges of fuzz_open's common corpus at each fifth of the time: $(cat edges-[1-5] | paste -sd' ')"
  echo "$all executions of the fuzzers, $sum of fuzz_open and $((all - sum)) of the others," \
    "$(cat log/fuzz_*.log | findings /dev/stdin) findings"
}

write_commands() {
  head_line 'commands GPUIR 1000000 FIRST SECONDS, a process to a processor'
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
  head_line 'faults.py GPUIR faults.so kills 300 | faults 0 | power 0, for each command'
  for log in log/faults-*.log; do
    log_name=$(basename "$log" .log)
    echo "${log_name#faults-}: $(grep 'tried' "$log" || tail -n 1 "$log")"
    grep -v 'tried\|^exit' "$log" | head -n 20
  done
  for name in faults kills power; do
    cat log/faults-$name-*.log | awk -v name="$name" '/tried/ { tried += $1; killed += $3; wrong += $7 }
      END { print name ":", tried + 0, "tried,", killed + 0, "killed,", wrong + 0, "wrong" }'
  done
}

head_line() {
  echo "# commit: $(cat "$work/commit")"
  echo "# machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) processors"
  echo "# command: tools/scripts/safety_session.sh run $seconds: $1"
}

run() {
  local start i
  seconds=$1
  work=$(mktemp -d /tmp/safety.XXXXXX)
  mkdir -p "$out" "$work/log" "$work/found" "$work/corpus-fuzz_open" &&
    tar -xf "$carry/safety.tar.gz" -C "$work" || return
  cd "$work" || return
  export TMPDIR=$work ASAN_OPTIONS=quarantine_size_mb=16:malloc_context_size=4
  start=$(date +%s)
  start_all "$(nproc)" $((start % 1000 * 1000000))
  for i in 1 2 3 4 5; do merged $i "$start" & done
  wait
  write_fuzz >"$out/fuzz.txt"
  write_commands >"$out/commands.txt"
  write_faults >"$out/faults.txt"
  tar -czf "$out/raw.tar.gz" log found
  tar -cf - corpus-fuzz_open | gzip -9 >"$out/corpus.tar.gz"
  cat "$out"/{fuzz,commands,faults}.txt
  cd / && rm -rf "$work"
}

case ${1-} in
  pack) pack "${2-}" ;;
  run) run "${2-480}" ;;
  *)
    sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | head -n -1
    exit 2
    ;;
esac
