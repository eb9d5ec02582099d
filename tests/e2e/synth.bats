#!/usr/bin/env bats
# build/synth: the same bytes from the same seed, figures that are near the published ones, and a report that a count
# over the documents themselves confirms.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  export root PATH="$build:$PATH"
  # shared by tests that only read them
  export web=$BATS_FILE_TMPDIR/web small=$BATS_FILE_TMPDIR/small
  synth --documents 1000000 "$web.gpuir" "$web.txt"
  synth --documents 3000 --terms 2000 --queries 300 "$small.gpuir" "$small.txt"
  synth --check "$web.gpuir" "$web.txt" >"$web.report"
}

setup() {
  cd "$BATS_TEST_TMPDIR" || exit
}

# figure NAME [REPORT]: of a report
figure() {
  awk -v name="$1" '$1 == name { sub(",", "", $2); print $2; found = 1 } END { exit !found }' "${2:-$web.report}"
}

# between LEAST X MOST
between() {
  echo "$1 <= $2 <= $3"
  awk -v a="$1" -v x="$2" -v b="$3" 'BEGIN { exit !(a <= x + 0 && x + 0 <= b) }'
}

df() { # INDEX TERM
  gpuir terms --tsv "$1" "$2" | cut -f 2
}

@test "the same seed gives the same bytes, whatever the threads" {
  for clustering in 0 0.7; do
    synth --documents 20000 --queries 500 --clustering $clustering --seed 7 --threads 1 a.gpuir a.txt
    synth --documents 20000 --queries 500 --clustering $clustering --seed 7 --threads 2 b.gpuir b.txt
    synth --documents 20000 --queries 500 --clustering $clustering --seed 7 --threads 5 c.gpuir c.txt
    cmp a.gpuir b.gpuir
    cmp a.txt b.txt
    cmp a.gpuir c.gpuir
    cmp a.txt c.txt
  done
}

@test "another seed gives another index and other queries" {
  synth --documents 20000 --queries 500 --seed 7 a.gpuir a.txt
  synth --documents 20000 --queries 500 --seed 8 b.gpuir b.txt
  run -1 cmp -s a.gpuir b.gpuir
  run -1 cmp -s a.txt b.txt
}

@test "the log alone is that of an index" {
  synth --documents 3000 --terms 2000 --queries 300 - log.txt
  cmp log.txt "$small.txt"
  [ ! -e ./- ]
}

@test "the index is sound" {
  gpuir verify "$web.gpuir" "$small.gpuir"
}

@test "every query has distinct terms, and each of them a list" {
  [ "$(wc -l <"$web.txt")" -eq 10000 ]
  awk '{ split("", seen); for (i = 1; i <= NF; i++) if (seen[$i]++) exit 1 }' "$web.txt"
  tr ' ' '\n' <"$web.txt" | sort -u | xargs gpuir terms --tsv "$web.gpuir" >/dev/null
}

@test "bits of a docID and postings of a query are the published ones" {
  [ "$(figure documents)" -eq 1000000 ]
  between 8.3 "$(figure docid_bits)" 9.3
  between 2.6 "$(figure freq_bits)" 3.6
  between 147000 "$(figure postings_a_query)" 149800 # 14.84 % of the documents, within one percent
}

@test "lengths of queries and ratios of lists are those of Ao et al., table 4" {
  awk '/^ *[2-6] / { n++; published = substr($3, 2) + 0; d = $2 - published; if (d > 0.3 || d < -0.3) exit 1 }
    END { exit n != 5 }' "$web.report"
  awk '/stage 1 / { n++; published = substr($7, 2) + 0; d = $6 - published; if (d > 3 || d < -3) exit 1 }
    END { exit n != 5 }' "$web.report"
}

@test "the report is what counting documents gives" {
  synth --check "$small.gpuir" "$small.txt" >report
  gpuir stats --json "$small.gpuir" >stats
  tr ' ' '\n' <"$small.txt" | sort -u >terms
  while read -r term; do
    echo "$term $(gpuir query -k 3000 --tsv "$small.gpuir" "$term" | cut -f 2 | paste -sd ' ')"
  done <terms >lists
  python3 - "$small.txt" lists report stats <<'EOF'
import json, re, sys
queries = [line.split() for line in open(sys.argv[1])]
lists = {f[0]: set(f[1:]) for f in map(str.split, open(sys.argv[2]))}
report = open(sys.argv[3]).read()
stats = json.load(open(sys.argv[4]))
said = {(int(k), int(x)): (float(r), float(l)) for k, x, r, l in
        re.findall(r"terms (\d) stage (\d)  R +([\d.]+) \([\d.]+\)  left ([\d.]+)", report)}
assert sorted(said) == [(k, x) for k in range(2, 7) for x in range(1, k)], said
for (k, x), (r, l) in said.items():
    sizes = []
    for q in queries:
        if len(q) == k:
            s = [lists[t] for t in sorted(q, key=lambda t: (len(lists[t]), t))]
            left = set.intersection(*s[:x])
            sizes.append((len(left) / len(s[x]), len(left)))
    assert sizes
    assert abs(100 * sum(a for a, _ in sizes) / len(sizes) - r) < 0.0006, (k, x, r)
    assert abs(100 * sum(b for _, b in sizes) / len(sizes) / 3000 - l) < 0.00006, (k, x, l)
mean = sum(len(lists[t]) for q in queries for t in q) / len(queries)
assert abs(float(re.search(r"postings_a_query (\d+)", report)[1]) - mean) <= 0.5
for k, share in re.findall(r"^ ?(\d+)  +([\d.]+)", report, re.M):
    assert abs(100 * sum(len(q) == int(k) for q in queries) / len(queries) - float(share)) < 0.006
bits = 8 * stats["docids_bytes"] / (stats["postings"] - stats["inline_postings"])
assert abs(float(re.search(r"docid_bits ([\d.]+)", report)[1]) - bits) < 0.006
EOF
}

@test "document frequencies follow the law, and the terms of a query occur together" {
  first=$(df "$web.gpuir" t0)
  between 0.32 "$(awk "BEGIN { print $(df "$web.gpuir" t160) / $first }")" 0.365 # 2^-1.55 = 0.341
  between 0.023 "$(awk "BEGIN { print $(df "$web.gpuir" t1600) / $first }")" 0.026 # 11^-1.55 = 0.0243
  # what is left of the shortest list of three at stage 2: independent terms would leave a third of that, or less
  between 0.12 "$(awk '/terms 3 stage 2/ { print $9 }' "$web.report")" 0.2
}

@test "clustering brings docIDs together" {
  for c in 0 0.5 1; do
    synth --documents 300000 --queries 2000 --clustering $c c.gpuir c.txt
    synth --check c.gpuir c.txt >"report.$c"
  done
  between 0 "$(figure docid_bits report.0.5)" "$(awk "BEGIN { print $(figure docid_bits report.0) - 0.1 }")"
  between 0 "$(figure docid_bits report.1)" "$(awk "BEGIN { print $(figure docid_bits report.0.5) - 0.5 }")"
  for c in 0.5 1; do # the queries keep their lists
    between 43600 "$(figure postings_a_query report.$c)" 45400
  done
}

@test "each option does what it says" {
  synth --documents 30000 --queries 1500 --postings 3000 --length 50 --codec vbyte --freq-codec optpfd \
    --terms=5000 a.gpuir a.txt
  synth --check a.gpuir a.txt >report
  between 2900 "$(figure postings_a_query report)" 3100
  [ "$(figure documents report)" -eq 30000 ]
  [ "$(figure lists report)" -eq 5000 ]
  [ "$(figure queries report)" -eq 1500 ]
  gpuir stats a.gpuir | grep -q '^codec  *vbyte$'
  gpuir stats a.gpuir | grep -q '^freq_codec  *optpfd$'
  between 48 "$(gpuir stats a.gpuir | awk '$1 == "average_length" { print $2 }')" 52
  synth --documents 30000 --zipf 3 b.gpuir b.txt
  between 0.11 "$(awk "BEGIN { print $(df b.gpuir t160) / $(df b.gpuir t0) }")" 0.14 # 2^-3
}

@test "the smallest collections" {
  for terms in 1 2 300; do
    synth --documents 2 --terms $terms --queries 20 --postings 1 a.gpuir a.txt
    gpuir verify a.gpuir
    [ "$(gpuir terms --tsv a.gpuir | wc -l)" -eq $terms ]
  done
  synth --documents 100 --terms 40 --queries 20 a.gpuir a.txt
  gpuir verify a.gpuir
  gpuir query --mode or a.gpuir "$(head -n 1 a.txt)" | grep -q .
}

@test "each option is in the help and in the manual page" {
  [ "$(synth --help)" = "$(synth -h)" ]
  options=$(synth --help | grep -oE '(^| )--[a-z0-9-]+' | tr -d ' ' | sort -u)
  [ "$(wc -l <<<"$options")" -eq 13 ]
  for option in $options; do
    grep -qE -- "Fl -${option#--}( |\$)" "$root/tools/synth/synth.1" || { echo "the page lacks $option"; false; }
  done
}

@test "misuse exits with 2, failure with 1" {
  fails 2 "INDEX and QUERIES are needed" synth
  fails 2 "INDEX and QUERIES are needed" synth a.gpuir
  fails 2 "'c': INDEX and QUERIES only" synth a b c
  fails 2 "unknown option '--frob'" synth --frob 1 a b
  fails 2 "Try 'synth --help'." synth --frob=1 a b
  fails 2 "--seed: unknown, or a value is missing" synth a b --seed
  for bad in 0 -1 1.5 x '' 4294967295; do
    fails 2 "--documents: '$bad' is not a whole number" synth --documents "$bad" a b
  done
  fails 2 "--clustering: '1.1' is not a number from 0 to 1" synth --clustering 1.1 a b
  fails 2 "--zipf: '1' is not a number" synth --zipf 1 a b
  fails 1 "lists longer than the collection" synth --documents 1000 --postings 100000 a b
  fails 1 "unknown docID codec 'nonesuch'" synth --documents 1000 --terms 10 --codec nonesuch a b
  fails 1 "No such file" synth --documents 1000 --terms 10 nowhere/a b
  fails 1 "nowhere/b: No such file" synth --documents 1000 --terms 10 a nowhere/b
  fails 1 "nowhere: No such file" synth --check "$small.gpuir" nowhere
  fails 1 "$small.txt: " synth --check "$small.txt" "$root/README.md"
  fails 1 "$root: Is a directory" synth --check "$small.gpuir" "$root"
  fails 2 "INDEX and QUERIES are two files" synth --documents 1000 --terms 10 a a
}
