#!/usr/bin/env bats
# Every codec x every intersection method x three docID orders give the documents of a plain merge: on the bundled
# collection, and in the long form on the kernel sources and the dictionary entries under build/corpora.

root=${BATS_TEST_DIRNAME}/../..
bin=${GPUIR_BUILD:-$root/build}

setup_file() {
  WORK=$(mktemp -d)
  export WORK
}

teardown_file() {
  rm -rf "$WORK"
}

# three_orders NAME INDEX: NAME-random and NAME-bisect beside it
three_orders() {
  "$bin/gpuir" reorder -q --order random:7 "$2" "$WORK/$1-random"
  "$bin/gpuir" reorder -q --order bisect "$WORK/$1-random" "$WORK/$1-bisect"
}

matrix() { # ARGUMENT...
  run env TMPDIR="$WORK" "$bin/tests/e2e/matrix" "$@"
  echo "$output" | tail -n 20
  [ "$status" -eq 0 ]
  [ "$(grep -c '^ok' <<<"$output")" -ge 90 ]
  ! grep -q '^not ok' <<<"$output"
}

@test "WordNet, 50 queries" {
  "$bin/gpuir" index -q --tsv "$root/tests/data/wordnet.tsv" -o "$WORK/wordnet"
  three_orders wordnet "$WORK/wordnet"
  "$bin/gpuir" bench --sample 50 --modes count --dump-queries "$WORK/queries" "$WORK/wordnet" >/dev/null
  matrix -n 50 "$WORK/queries" "$WORK/wordnet" "$WORK/wordnet-random" "$WORK/wordnet-bisect"
}

@test "kernel sources in chunks, 1,000 sampled queries" {
  [ -n "$GPUIR_LONG" ] || skip "in the long form"
  index=$root/build/corpora/linux-chunks.gpuir
  [ -f "$index" ] || skip "no $index: see tools/scripts/fetch-corpora.sh"
  three_orders linux "$index"
  "$bin/gpuir" bench --sample 1000 --modes count --dump-queries "$WORK/queries" "$index" >/dev/null
  matrix -n 1000 "$WORK/queries" "$index" "$WORK/linux-random" "$WORK/linux-bisect"
}

@test "dictionary entries, the first 1,000 TREC Terabyte 2005 topics" {
  [ -n "$GPUIR_LONG" ] || skip "in the long form"
  index=$root/build/corpora/dict.gpuir
  topics=$root/../shared/data/queries/trec-terabyte05-efficiency.txt
  [ -f "$index" ] || skip "no $index: see tools/scripts/fetch-corpora.sh"
  [ -f "$topics" ] || skip "no $topics"
  three_orders dict "$index"
  matrix -n 1000 "$topics" "$index" "$WORK/dict-random" "$WORK/dict-bisect"
}
