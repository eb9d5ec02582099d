#!/usr/bin/env bash
# gpu_session.sh: all measurements and tests on a machine with a GPU, in steps of minutes each.
#
#   gpu_session.sh pack OLD DICT TOPICS [CHUNKS QUERIES]
#       on the machine that builds: puts what the steps need into build/carry, linked statically but for the C library,
#       so that it runs where none of the project's libraries are. OLD is a bench_cuda of another version, linked
#       so too:
#       this bench_cuda.c with that version's gpuir.h and gpuir_cuda.o. DICT and CHUNKS are indexes, TOPICS and QUERIES
#       queries for them.
#   gpu_session.sh STEP...
#       on the machine with the GPU, in the project's folder, with build/carry/tools.tar.xz and, by step, other files
#       of build/carry there, or of the folder $GPU_SESSION_CARRY. Logs go to the folder $OUT (build/session-logs) as
#       STEP.tar.gz, a summary to the screen.
#
#   check     test_cuda, test_lab, test_hostile and test_team: side by side, as nothing is timed
#   memcheck, synccheck, racecheck, initcheck
#             the tests under a tool of compute-sanitizer, twelve processes at once
#   compare   OLD's bench_cuda against this one's in turn: batches, single queries, the CPU with all threads
#   rates     bench_cuda by order, codec, memory and threshold: 100 s on 16 processors, where $GPU_SESSION_WORK has
#             random-new.gpuir already; the indexes of another order and codec are made beside the first of them
#   profiles  bench_cuda and bench_lab under the profiler; bench_lab
#   lab       gpuir lab on DICT and on 8 million synthetic documents: seven runs side by side, each on a core of its
#             own, which take turns on the device
#   chunks    gpuir bench on CHUNKS by the GPU and by the CPU, and the checksums of all hits
#
# Measurements of one step are kept if a later one fails; the exit status tells whether all went well.
# shellcheck disable=SC2317 # functions are called by the names of steps
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
source tools/scripts/session.bash
carried=${GPU_SESSION_CARRY:-build/carry}
carry=$carried/tools.tar.xz
work=${GPU_SESSION_WORK:-/tmp/gpu-session}
out=${OUT:-build/session-logs}
failed=0

# ---- on the machine that builds -----------------------------------------------------------------------------------

part_bytes=$((40 << 20)) # of one file that is carried

pack() {
  local old=$1 dict=$2 topics=$3 chunks=${4-} queries=${5-}
  local programs=(gpuir synth tests/gpu/{bench_cuda,bench_lab,test_cuda,test_team,test_lab,test_hostile})
  rm -rf "$carried" && mkdir -p "$carried" || return
  static_make B=build/session GPU=1 CFLAGS=-O3 "${programs[@]/#/build/session/}" || return
  gather "${programs[@]}" && cp "$old" build/session/carry/bench_cuda_old && strip build/session/carry/bench_cuda_old &&
    pack_up || return
  cp "$topics" "$carried/dict.topics"
  pack_index "$dict" dict || return
  if [[ -n $chunks ]]; then
    cp "$queries" "$carried/chunks.queries"
    pack_index "$chunks" chunks || return
  fi
  ls -l "$carried"
}

# pack_index INDEX NAME: in parts NAME.xz.00 and so on; a compressed copy beside INDEX is used if it is newer
pack_index() {
  [[ $1.xz -nt $1 ]] || xz -1 -k -f -T2 "$1" || return
  split -b "$part_bytes" -d "$1.xz" "$carried/$2.xz."
}

# ---- on the machine with the GPU ----------------------------------------------------------------------------------

# take_over: what was carried now, to a folder that outlasts this step
take_over() {
  mkdir -p "$work/bin" "$work/parts" "$out"
  if [[ -f $carry ]]; then decompress <"$carry" | tar -x -C "$work/bin" || return; fi
  cp -f "$carried"/*.xz.[0-9][0-9] "$carried"/*.topics "$carried"/*.queries "$work/parts/" 2>/dev/null
  export PATH=$work/bin:$PATH
  gpu=$(device_name)
  machine="${gpu:-no GPU}; $(processor_name), $(nproc) processors; commit $(cat "$work/bin/commit")"
  say "$machine"
}

# index NAME PARTS: unpacks an index that came in so many parts; fails if one is missing
index() {
  [[ -f $work/$1.gpuir ]] && return
  local parts=("$work/parts/$1".xz.[0-9][0-9])
  [[ -f ${parts[0]} ]] || { say "$1: not carried"; return 1; }
  cat "${parts[@]}" | decompress >"$work/$1.gpuir.part" && mv "$work/$1.gpuir.part" "$work/$1.gpuir"
}

# log FILE COMMAND...: standard output and error to FILE, behind a head; says how long it took
log() {
  local file=$1 start=$SECONDS status
  shift
  { printf '# %s; command: %s\n' "$machine" "$*"; "$@"; } >>"$file" 2>&1
  status=$?
  say "$((SECONDS - start)) s, status $status: ${*/$work\//}"
  ((status == 0)) || failed=1
  return "$status"
}

# sanitize TOOL: the tests under this tool, whose name is the step's
sanitize() {
  local dir=$work/$1 status
  mkdir -p "$dir"
  LIMIT=540 log "$dir/sanitize.txt" tools/scripts/sanitize_gpu.sh "$work/bin" "$dir" "$1"
  status=$?
  cat "$dir/sanitize.txt"
  return "$status"
}

check() {
  local dir=$work/check test pid pids=()
  mkdir -p "$dir"
  for test in test_hostile test_team test_cuda test_lab; do
    log "$dir/$test.txt" timeout 520 "$test" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
  grep -c '^ok' "$dir"/test_*.txt
  ! grep '^not ok\|^Bail' "$dir"/test_*.txt | head -n 20
}

random=$work/random-new.gpuir # 25.2 million synthetic documents in random order

compare() {
  local dir=$work/compare
  mkdir -p "$dir"
  log "$dir/write.txt" bench_cuda_old path="$work/random-old.gpuir" modes=and queries=10 cpu=0 || return
  log "$dir/write.txt" bench_cuda path="$random" modes=and queries=10 cpu=0 || return
  log "$dir/same.txt" cmp "$work/random-old.gpuir" "$random" || say 'the indexes of the two versions differ'
  log "$dir/old_new.tsv" tools/scripts/old_new.py bench_cuda_old bench_cuda -n 7 -o "$dir/runs.txt" -- \
    path="$work/random-{}.gpuir" modes=and,or,andor cpu=0 ceilings=0
  cat "$dir/old_new.tsv"
  log "$dir/old_new-cpu.tsv" tools/scripts/old_new.py bench_cuda_old bench_cuda -n 3 -o "$dir/runs-cpu.txt" -- \
    path="$work/random-{}.gpuir" modes=and,or,andor ways=pruned one=100 rounds=1 alone=0 ceilings=0
  cat "$dir/old_new-cpu.tsv"
  rm -f "$work/random-old.gpuir"
}

counters=smsp__inst_executed.sum,dram__bytes_read.sum,dram__bytes_write.sum,gpu__time_duration.sum

profile() { # TABLE PROGRAM ARGUMENT...
  local table=$1
  shift
  ncu --clock-control none --csv --print-units base --metrics "$counters" -k 'regex:gcl?_' "$@" >"$table.csv" &&
    { echo "# ncu --clock-control none; $machine"; tools/scripts/ncu_table.py "$table.csv"; } >"$table"
}

# made_beside FILE OPTION...: makes an index of 25.2 million documents, unless it is there, in the background
made_beside() {
  local file=$1
  shift
  [[ -f $file ]] || { nice synth "$@" "$file.part" "$file.queries" && mv "$file.part" "$file"; } &
}

rates() {
  local dir=$work/rates clustered=$work/clustered.gpuir ef=$work/ef.gpuir t pids=()
  local few=(one=0 cpu=1000 rounds=5 alone=1 ceilings=0)
  mkdir -p "$dir"
  made_beside "$clustered" --clustering 0.8
  pids+=($!)
  made_beside "$ef" --codec ef --freq-codec newpfd
  pids+=($!)
  for t in 10 100 1000 3500; do
    log "$dir/bench_cuda-threshold.txt" bench_cuda path="$random" modes=or "${few[@]}" threshold="$t"
  done
  for t in 2250 6900; do
    log "$dir/bench_cuda-in-place.txt" bench_cuda path="$random" modes=and,or "${few[@]}" memory="$t"
  done
  log "$dir/bench_cuda-cached.txt" bench_cuda path="$random" modes=and,or ways=pruned "${few[@]}" memory=1000
  for t in "${pids[@]}"; do wait "$t" || failed=1; done
  log "$dir/bench_cuda-random.txt" bench_cuda path="$random" modes=and,or,andor one=50 alone=2
  log "$dir/bench_cuda-random.txt" bench_cuda path="$random" modes=and,or ways=pruned "${few[@]}" k=100,1000
  log "$dir/bench_cuda-clustered.txt" bench_cuda path="$clustered" clustering=0.8 modes=and,or,andor one=50 alone=2
  log "$dir/bench_cuda-codecs.txt" bench_cuda path="$ef" codec=ef freq-codec=newpfd modes=and,or "${few[@]}"
  log "$dir/bench_cuda-codecs.txt" bench_cuda path="$ef" codec=ef freq-codec=newpfd modes=and,or ways=pruned \
    "${few[@]}" memory=1000
  rm -f "$clustered" "$ef"
  grep -h 'DIFFER\|hits of' "$dir"/*.txt | sort | uniq -c
}

profiles() {
  local dir=$work/profiles
  mkdir -p "$dir"
  log "$dir/ncu.log" profile "$dir/ncu_cuda.txt" "$(command -v bench_cuda)" path="$random" cpu=0 modes=or ways=pruned \
    rounds=1 alone=0 ceilings=0
  log "$dir/ncu.log" profile "$dir/ncu_lab.txt" "$(command -v bench_lab)" profile
  log "$dir/lab_gpu-decode.tsv" timeout 120 bash -c "bench_lab 2>$dir/lab_gpu-decode.txt"
}

# merged FILE...: TSV files of one subcommand as one
merged() {
  grep -h '^# ' "$1" | grep -v '^# \(plot\|command\|clock\|pairs\)'
  for key in command clock pairs plot; do grep -h "^# $key" "$@" | sort -u; done
  grep -v '^#' "$1" | head -n 1
  for file; do grep -v '^#\|^figure' "$file"; done
}

# one_lab NAME SUBCOMMAND ARGUMENT...: a run in the background on a core of its own; it keeps what it has measured
# when time is up
one_lab() {
  local name=$1
  shift
  log "$work/lab/$name.txt" timeout "$most" taskset -c "$core" gpuir lab "$@" -o "$work/lab/$name" &
  pids+=($!)
  core=$(((core + 2) % $(nproc)))
}

# labs CORPUS INDEX QUERIES N END: the runs on a corpus, each on every second processor, which is a core of its own,
# until the script is END seconds old
labs() {
  local corpus=$1 core=0 pid pids=() most=$(($5 - SECONDS)) of=("$2" "$3")
  local common=(--backend gpu --repeat 3 --sample 4 --queries "$4" --pairs 100)
  local ratio=merge,gallop,binary,interpolation,skip,simd,hs16,lr-local,mergepath,griffin
  local alike=merge,binary,skip,simd,pmf0,pmf1,pmf2,pmf3,pmf4,mergepath
  local queries=merge,binary,interpolation,skip,simd,hs16,hs256,lr-global,lr-local,pmf3,mergepath,algorithm1
  one_lab "$corpus-intersect0" intersect "${common[@]}" --methods $ratio --figures ratio-arrays,pairs "${of[@]}"
  one_lab "$corpus-intersect1" intersect "${common[@]}" --methods $ratio --figures ratio-lists,pairs "${of[@]}"
  one_lab "$corpus-intersect2" intersect "${common[@]}" \
    --figures griffin-fig8,griffin-table1,griffin-fig10,griffin-fig12,pairs "${of[@]}"
  one_lab "$corpus-intersect3" intersect "${common[@]}" --methods $alike --figures ding-fig6,griffin-fig13,pairs \
    "${of[@]}"
  one_lab "$corpus-intersect4" intersect "${common[@]}" --methods $queries \
    --figures ao-table3,ao-table4,ao-table7,ao-table7-ms,ao-fig5,ao-fig6,query-time,prepared "${of[@]}"
  one_lab "$corpus-codecs" codecs "${common[@]}" "${of[@]}"
  one_lab "$corpus-search" search "${common[@]}" "${of[@]}"
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
}

lab() {
  local dir=$work/lab corpus to file
  mkdir -p "$dir"
  export GPUIR_LAB_LOCK=$work/lab.lock
  index dict && labs dict "$work/dict.gpuir" "$work/parts/dict.topics" 10000 220
  [[ -f $work/web.gpuir ]] || log "$dir/synth.txt" synth --documents 8000000 "$work/web.gpuir" "$work/web.txt" || return
  labs web "$work/web.gpuir" "$work/web.txt" 1000 540
  for corpus in web dict; do
    to=$dir/lab-$corpus
    mkdir -p "$to"
    merged "$dir/$corpus"-intersect[0-9]/intersect.tsv >"$to/intersect.tsv"
    cat "$dir/$corpus"-intersect[0-9].txt >"$to/intersect.txt"
    cp "$dir/$corpus-codecs/codecs.tsv" "$dir/$corpus-search/search.tsv" "$to/"
    for file in "$to"/*.tsv; do
      sed -i '1i # runs: seven at once, each on a core of its own; they took turns on the device' "$file"
    done
    cp "$dir/$corpus-codecs.txt" "$to/codecs.txt"
    cp "$dir/$corpus-search.txt" "$to/search.txt"
    gpuir lab plot "$to" || failed=1
    grep -c . "$to"/*.tsv
  done
}

sum_of() { md5sum | cut -d ' ' -f 1; }

chunks() {
  local dir=$work/chunks b e m
  index chunks || return
  mkdir -p "$dir"
  {
    echo "# $machine; md5 of the index $(sum_of <"$work/chunks.gpuir")," \
      "of the queries $(sum_of <"$work/parts/chunks.queries")"
    for m in and andor or; do
      for b in cpu gpu; do
        for e in auto exhaustive; do
          echo "#   $m $b $e $(gpuir query --backend "$b" --evaluator "$e" --mode "$m" -k 10 --no-operators --ids \
            --threads "$(nproc)" --tsv --topics "$work/parts/chunks.queries" "$work/chunks.gpuir" | sum_of)"
        done
      done
    done
  } >"$dir/bench_cuda-chunks.txt"
  cat "$dir/bench_cuda-chunks.txt"
  for b in gpu cpu; do
    for e in auto exhaustive; do
      m=1
      [[ $b == gpu ]] || m=1,$(nproc)
      log "$dir/bench_cuda-chunks.txt" gpuir bench --backend "$b" --evaluator "$e" \
        --queries "$work/parts/chunks.queries" --ids --no-operators --modes and,or,andor --threads "$m" --repeat 5 \
        "$work/chunks.gpuir"
    done
  done
}

if [[ ${1-} == pack && $# -ge 4 ]]; then
  shift
  pack "$@"
  exit
fi
[[ $# -gt 0 ]] || { sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2; exit 2; }
for step; do
  [[ $step =~ ^(|mem|sync|race|init)check$|^(compare|rates|profiles|lab|chunks)$ ]] ||
    { echo "gpu_session.sh: no step $step" >&2; exit 2; }
done
take_over || exit
for step; do
  say "== $step"
  case $step in
    check) check ;;
    *check) sanitize "$step" ;;
    compare) compare ;;
    rates) rates ;;
    profiles) profiles ;;
    lab) lab ;;
    chunks) chunks ;;
  esac || failed=1
  find "$work/$step" \( -name '*.all' -o -name '*.csv' \) -size +2M -delete 2>/dev/null
  tar -czf "$out/$step.tar.gz" -C "$work" "$step" || failed=1
done
say "status $failed"
exit "$failed"
