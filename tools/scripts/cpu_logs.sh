#!/usr/bin/env bash
# cpu_logs.sh [-c CORPORA] [-o LOGS] [-p PYTHON] [-q TOPICS] [-a CACM] STEP...: the logs of tools/results that need no
# GPU. Run it on a machine that does nothing else, after `make`. Each log names commit, machine and command.
#
#   index    the indexes that the other steps measure: linux-chunks; linux-blocks, the same without dense lists, for
#            the laboratory; dict (corpora: tools/scripts/fetch-corpora.sh)
#   bench    bench_cpu-chunks.tsv, bench_cpu-dict.tsv          3 minutes on 2 cores
#   lookups  lookups.tsv: terms looked up in linux-chunks and dict
#   prefixes prefixes.txt: prefixes of many terms, in both
#   build    build_linux.txt: four budgets of memory           3 minutes
#   lab      lab/codecs.tsv, intersect.tsv, linearity.tsv      15 minutes
#   costs    codec_costs.tsv: decoding by codec, beside the constants by which `auto` chooses
#   cacm     eval_cacm.txt
#   orders   codecs_orders.tsv: sizes as indexed, by PageRank, in random order and bisected; 40 minutes
#   peers    peers_chunks.tsv, in PYTHON's environment (tantivy, pyterrier-pisa, bm25s); an hour
#
#   -c   corpora and indexes (build/corpora)      -o   logs (build/cpu-logs)
#   -q   TREC 2005 efficiency topics              -a   folder with CACM (cacm.tar.gz, topics, judgements)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
corpora=build/corpora logs=build/cpu-logs python=python3 topics='' cacm=''
while getopts c:o:p:q:a: option; do
  case $option in
    c) corpora=$OPTARG ;;
    o) logs=$OPTARG ;;
    p) python=$OPTARG ;;
    q) topics=$OPTARG ;;
    a) cacm=$OPTARG ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
[[ $# -gt 0 ]] || { sed -n '2,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2; exit 2; }
mkdir -p "$logs/lab"
export PATH=$PWD/build:$PATH
chunks=$corpora/linux-chunks.gpuir blocks=$corpora/linux-blocks.gpuir
commit=$(git describe --always --dirty --exclude='*' 2>/dev/null || echo unknown)
machine="$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) processors"

head_of() {
  printf '# gpuir %s, commit %s\n# machine: %s\n' "$(gpuir --version | awk 'NR == 1 { print $2 }')" "$commit" "$machine"
}

# headed FILE: puts commit and machine above a log that has its command already
headed() {
  head_of | cat - "$1" >"$1.new"
  mv "$1.new" "$1"
}

index() {
  local description='the sources of Linux 6.1 in chunks of 25 lines'
  gpuir index -q --chunk-lines 25 --analyzer ascii --description "$description" "$corpora/linux" -o "$chunks"
  gpuir index -q --chunk-lines 25 --analyzer ascii --dense 0 --description "$description" "$corpora/linux" -o "$blocks"
  gpuir index -q --tsv --analyzer unicode --memory 2048 --description '1.74 million dictionary entries' \
    "$corpora/dict.tsv" -o "$corpora/dict.gpuir"
}

bench() {
  gpuir bench --sample 1000 --seed 1 --modes and,or,andor,count --tsv "$logs/bench_cpu-chunks.tsv" "$chunks"
  headed "$logs/bench_cpu-chunks.tsv"
  [[ -n $topics ]] || return 0
  gpuir bench --queries "$topics" --no-operators --require-and-hit --modes and,or,andor,count --threads 1 \
    --tsv "$logs/bench_cpu-dict.tsv" "$corpora/dict.gpuir"
  headed "$logs/bench_cpu-dict.tsv"
}

lookups() {
  local index
  "${CC:-cc}" -std=c99 -O3 -DGPUIR_IMPLEMENTATION -I . tools/peers/lookups.c -o "$logs/lookups" -lm -pthread
  {
    head_of
    for index in "$chunks" "$corpora/dict.gpuir"; do
      printf '# command: lookups %s\n' "${index##*/}"
      "$logs/lookups" "$index"
    done
  } >"$logs/lookups.tsv"
  rm "$logs/lookups"
}

prefixes() {
  local index
  "${CC:-cc}" -std=c99 -O3 -I . tools/peers/prefixes.c build/libgpuir.a -o "$logs/prefixes" -lutf8proc -lstemmer -lm \
    -pthread
  {
    head_of
    for index in "$chunks" "$corpora/dict.gpuir"; do
      printf '# command: prefixes %s\n' "${index##*/}"
      "$logs/prefixes" "$index"
    done
  } >"$logs/prefixes.txt"
  rm "$logs/prefixes"
}

build() {
  local memory
  head_of >"$logs/build_linux.txt"
  cat "$corpora"/linux/*/*.c >/dev/null # into the page cache, for the most part
  for memory in 512 512 512 128 128 128 32 32 32; do
    echo "\$ gpuir index --chunk-lines 25 --analyzer ascii --memory $memory linux -o X.gpuir"
    gpuir index --chunk-lines 25 --analyzer ascii --memory "$memory" "$corpora/linux" -o "$corpora/X.gpuir" 2>&1
  done >>"$logs/build_linux.txt"
  for memory in 512 512 512; do
    echo "\$ gpuir index --analyzer ascii --memory $memory linux -o X.gpuir"
    gpuir index --analyzer ascii --memory "$memory" "$corpora/linux" -o "$corpora/X.gpuir" 2>&1
  done >>"$logs/build_linux.txt"
  rm -f "$corpora/X.gpuir"
}

sampled() {
  [[ -f $corpora/sampled.txt ]] || gpuir bench --sample 1000 --seed 1 --modes count --warmup 0 --repeat 1 --threads 1 \
    --dump-queries "$corpora/sampled.txt" "$chunks" >/dev/null
}

lab() {
  sampled
  gpuir lab linearity --backend cpu -o "$logs/lab" "$blocks"
  gpuir lab codecs --backend cpu -o "$logs/lab" "$blocks" "$corpora/sampled.txt"
  gpuir lab intersect --backend cpu --repeat 5 -o "$logs/lab" "$blocks" "$corpora/sampled.txt"
}

# The table of codecs in gpuir.h has the constants: {"name", ..., cost}.
costs() {
  sampled
  gpuir lab codecs --backend cpu --repeat 9 --sample 64 --figures cycles -o "$logs/costs" "$blocks" \
    "$corpora/sampled.txt"
  {
    grep '^# ' "$logs/costs/codecs.tsv" | grep -v '^# plot'
    echo "# cycles a value of decoding docIDs, and the same over bp128's"
    printf 'codec\tL1\tlong\tall\tL1/bp128\tlong/bp128\tall/bp128\n'
    awk -F '\t' '$1 == "cycles" { y[$2, $3] = $4; if (!seen[$3]++) name[++n] = $3 }
      END { for (i = 1; i <= n; i++) { c = name[i]; printf "%s\t%s\t%s\t%s\t%.2f\t%.2f\t%.2f\n", c, y["L1", c],
        y["long", c], y["all", c], y["L1", c] / y["L1", "bp128"], y["long", c] / y["long", "bp128"],
        y["all", c] / y["all", "bp128"] } }' \
      "$logs/costs/codecs.tsv"
  } >"$logs/codec_costs.tsv"
}

cacm() {
  local dir=$logs/cacm
  rm -rf "$dir"
  python3 tests/eval/cacm.py "$cacm" "$dir"
  gpuir index -q --trec --analyzer unicode --stem porter --stop english --k1 0.9 --b 0.4 "$dir/docs.trec" \
    -o "$dir/cacm.gpuir"
  gpuir query --mode or -k 1000 --topics "$dir/topics" --trec "$dir/cacm.gpuir" >"$dir/run"
  awk '{ sub(/CACM-/, "", $3); printf "%s %s CACM-%04d %s\n", $1, $2, $3, $4 }' "$dir/qrels" >"$dir/padded"
  {
    head_of
    echo "# command: gpuir index --trec --analyzer unicode --stem porter --stop english --k1 0.9 --b 0.4 docs.trec" \
      "-o cacm.gpuir;" \
      "gpuir query --mode or -k 1000 --topics topics --trec cacm.gpuir >run; trec_eval.py QRELS run"
    echo "# judgements as they are, and with their names padded as the documents' are (CACM-756: CACM-0756)"
    paste <(python3 tests/eval/trec_eval.py "$dir/qrels" "$dir/run") \
      <(python3 tests/eval/trec_eval.py "$dir/padded" "$dir/run" | cut -f 2)
  } >"$logs/eval_cacm.txt"
}

# Bytes of the lists of two postings or more, bits a posting of theirs, and of lists of 128 or more.
sizes() { # ORDER CODEC INDEX
  gpuir terms --tsv "$3" | awk -F '\t' -v order="$1" -v codec="$2" '
    $2 > 1 { n += $2; b += $7 } $2 > 127 { ln += $2; lb += $7 }
    END { printf "%s\t%s\t%.0f\t%.3f\t%.3f\n", order, codec, b, 8 * b / n, 8 * lb / ln }'
}

orders() {
  local order from codec to=$logs/codecs_orders.tsv
  tools/scripts/includes.py "$corpora/linux" >"$corpora/includes"
  gpuir reorder --memory 1024 --order "pagerank:$corpora/includes" "$chunks" "$corpora/linux-pagerank.gpuir"
  gpuir reorder --order random:1 "$chunks" "$corpora/linux-random.gpuir"
  gpuir reorder --order bisect "$corpora/linux-random.gpuir" "$corpora/linux-bisect.gpuir"
  {
    head_of
    echo "# docIDs of the kernel sources in chunks of 25 lines, lists of 2 postings or more, without the directory"
    echo "# path: as indexed; random: gpuir reorder --order random:1; bisect: that by --order bisect;" \
      "pagerank: path by --order pagerank:LINKS over the #include lines of tools/scripts/includes.py"
    echo "# bound: of ef's partitions, by gpuir lab codecs --sample 1000000 --codecs ef --figures sizes INDEX"
    printf '# plot\tcodecs_orders\tbars\t\t%s\tcodec\tbits a docID\tpath,pagerank,random,bisect\tcodec\tbits\torder\n' \
      'Bits a docID by codec and order of the documents, without the block directory'
    printf 'order\tcodec\tbytes\tbits\tbits_long\n'
  } >"$to"
  for order in path pagerank random bisect; do
    from=$corpora/linux-$order.gpuir
    [[ $order == path ]] && from=$chunks
    gpuir stats --json "$from" | python3 -c \
      'import json, sys; print(*range(json.load(sys.stdin)["documents"], 0, -1), sep="\n")' >"$corpora/scores"
    for codec in vbyte bp128 pfd newpfd optpfd ef qs rice pfd-list parapfor lrc lrcseg seglrc hslrc auto; do
      gpuir reorder --order "score:$corpora/scores" --codec $codec "$from" "$corpora/X.gpuir"
      sizes $order $codec "$corpora/X.gpuir" >>"$to"
    done
    gpuir lab codecs --backend cpu --repeat 1 --sample 1000000 --codecs bp128,ef --figures sizes -o "$logs/bound" \
      "$from" >/dev/null
    awk -F '\t' -v order=$order '$2 == "bound" { printf "%s\tbound\t-\t%.3f\t-\n", order, $4 }' \
      "$logs/bound/codecs.tsv" >>"$to"
  done
  rm -f "$corpora/X.gpuir" "$corpora/scores"
}

peers() {
  "$python" tools/peers/peers.py --engines tantivy,pisa --rounds 3 --tsv "$logs/peers-fast.tsv" "$chunks" \
    "$logs/peers"
  "$python" tools/peers/peers.py --engines sqlite,bm25s --rounds 3 --slow 50 --tsv "$logs/peers-slow.tsv" "$chunks" \
    "$logs/peers"
  { # one table: the heads of both, then the rows of both
    head_of
    grep -h '^# command' "$logs"/peers-{fast,slow}.tsv
    grep '^#' "$logs/peers-fast.tsv" | grep -v '^# command'
    grep -v '^#' "$logs/peers-fast.tsv"
    grep -v '^#' "$logs/peers-slow.tsv" | tail -n +2
  } >"$logs/peers_chunks.tsv"
}

for step; do
  case $step in
    index) index ;;
    bench) bench ;;
    lookups) lookups ;;
    prefixes) prefixes ;;
    build) build ;;
    lab) lab ;;
    costs) costs ;;
    cacm) cacm ;;
    orders) orders ;;
    peers) peers ;;
    *) echo "cpu_logs.sh: no step $step" >&2; exit 2 ;;
  esac
done
