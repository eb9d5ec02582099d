#!/usr/bin/env bats
# tests/eval/effectiveness.py measures what it says: small judged sets, whose figures are worked out by hand.

load ../support/helpers

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  shared=${GPUIR_SHARED:-$root/../shared/data}
  export root build shared
}

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

# measure OPTION...: the figures, without their bounds
measure() { python3 "$root/tests/eval/effectiveness.py" "$build/gpuir" "$@" | cut -f 1-5; }

@test "code: the mean of the repositories' NDCG, over files and passages, and what is left out" {
  [ -f "$shared/codesearch/eval.py" ] || skip "shared/data/codesearch is not there"
  mkdir -p data/codesearch repos/one/src repos/one/tests repos/two
  cp "$shared/codesearch/eval.py" data/codesearch
  printf 'wolf cub\n' >repos/one/src/wolf.c
  printf 'wolf wolf cub\n' >repos/one/tests/test_wolf.c
  printf 'wolf dog\n' >repos/two/a.c
  printf 'dog wolf wolf wolf\n' >repos/two/b.c
  printf '%s\n' '{"repo":"one","query":"wolf cub","relevant":["src/wolf.c"],"secondary":[],"category":"semantic"}' \
    '{"repo":"two","query":"wolf","relevant":["a.c"],"secondary":[],"category":"symbol"}' \
    '{"repo":"two","query":"wolf","relevant":["gone.c"],"secondary":[],"category":"symbol"}' \
    >data/codesearch/queries.jsonl
  printf 'one\tdebian\t\t\tsrc\tc\ntwo\tdebian\t\t\t.\tc\n' >data/codesearch/sources.tsv
  measure data --repos repos --only code --index '--analyzer unicode' --query '--rank plain' >got
  grep -Fx '# code: 1 queries left out, none of whose files is there' got
  # one: rank 1; two: rank 2, 1 / log2(3) = 0.6309
  grep -Fx $'code\tfiles\tNDCG@10\t2\t0.8155' got
  grep -Fx $'code\tsymbol\tNDCG@10\t1\t0.6309' got
  # the whole tree has the test before it
  grep -Fx $'code\ttrees\tNDCG@10\t2\t0.6309' got
  measure data --repos repos --only code --index '--analyzer unicode' --query '--rank code' |
    grep -Fx $'code\ttrees\tNDCG@10\t2\t0.8155'
  # codesearch.py reads the same benchmark: both queries find their file within the budget, two's behind the other one
  python3 "$root/tests/eval/codesearch.py" "$build/gpuir" data/codesearch repos --index '--analyzer unicode' \
    --rank plain >tokens
  [ "$(head -n 4 tokens)" = $'queries\t2\nleft out\t1\nfound within 800 tokens\t1.000\npassages read\t1.50' ]
}

@test "weights of the second look: the formula's order is the command's, and what a rule gives by leaving it out" {
  [ -f "$shared/codesearch/eval.py" ] || skip "shared/data/codesearch is not there"
  mkdir -p data/codesearch repos/one/src repos/one/tests repos/two
  cp "$shared/codesearch/eval.py" data/codesearch
  printf 'wolf cub, and all that hunts in a wood at night, of which this tells\n' >repos/one/src/wood.c
  printf 'wolf wolf cub\n' >repos/one/tests/wolf_test.c
  printf 'howl wolf wolf\n' >repos/two/b.py
  printf 'def howl():\n  wolf\n' >repos/two/a.py
  printf '%s\n' '{"repo":"one","query":"wolf cub","relevant":["src/wood.c"],"secondary":[],"language":"c"}' \
    '{"repo":"two","query":"howl","relevant":["a.py"],"secondary":[],"language":"python"}' \
    >data/codesearch/queries.jsonl
  sed -i 's/}$/,"category":"symbol"}/' data/codesearch/queries.jsonl
  printf 'one\tdebian\t\t\tsrc\tc\ntwo\tdebian\t\t\t.\tpython\n' >data/codesearch/sources.tsv
  python3 "$root/tests/eval/look_weights.py" "$build/gpuir" data repos >got
  cat got
  grep -Fx $'command\t1.0000\t1.0000' got
  grep -Fx $'formula\t1.0000\t1.0000' got
  # the test of the whole tree comes first, half of two: (0.6309 - 1) / 2
  grep -Fx $'without tests\t0.0000\t-0.1845' got
  grep -Fx $'without together\t0.0000\t0.0000' got
  [ "$(grep -c '^# without ' got)" -eq 2 ]
  grep -q $'^fitted\t' got
}

@test "Cranfield: what trec_eval computes of the same run" {
  [ -f "$shared/cranfield/cran.all.1400" ] || skip "shared/data/cranfield is not there"
  python3 "$root/tests/eval/cranfield.py" "$shared/cranfield" cran all
  "$build/gpuir" index -q --analyzer unicode --tsv cran/docs.tsv -o c.gpuir
  "$build/gpuir" query --trec --topics cran/topics c.gpuir >run
  python3 "$root/tests/eval/trec_eval.py" cran/qrels run >want
  measure "$shared" --only cranfield --index '--analyzer unicode' >got
  [ "$(awk -F '\t' '$1 == "prose" && $3 == "MAP" { print $5 }' got)" = "$(awk '$1 == "map" { print $2 }' want)" ]
  [ "$(awk -F '\t' '$1 == "prose" && $3 == "NDCG@10" { print $5 }' got)" = \
    "$(awk '$1 == "ndcg_cut_10" { print $2 }' want)" ]
}

@test "a set that is not there is said, and nothing else is measured" {
  mkdir empty
  run measure empty
  [ "$status" -eq 0 ]
  [ "$(grep -c '^# .*: skipped: ' <<<"$output")" -eq 7 ]
  [ "$(wc -l <<<"$output")" -eq 8 ]
}
