#!/usr/bin/env bats
# gpuir lab: every figure has its rows, and what can be known without measuring is right.

bats_require_minimum_version 1.5.0

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  export root build PATH="$build:$PATH"
  export wordnet=$BATS_FILE_TMPDIR/wordnet.gpuir
  gpuir index -q --tsv --analyzer unicode --description WordNet "$root/tests/data/wordnet.tsv" -o "$wordnet"
  (cd "$BATS_FILE_TMPDIR" && for name in codecs intersect search linearity; do
    gpuir lab "$name" --sample 2 --pairs 3 --queries 20 --repeat 2 --backend cpu -o all "$wordnet" >"$name.txt" || exit
  done)
}

setup() {
  cd "$BATS_TEST_TMPDIR" || exit
}

# ---- helpers ----------------------------------------------------------------------------------------------------

# fails CODE CAUSE ARGUMENT...: gpuir lab exits with CODE, prints nothing and says CAUSE on standard error
fails() {
  local code=$1 cause=$2
  shift 2
  run --separate-stderr gpuir lab "$@"
  # shellcheck disable=SC2154 # stderr is set by run
  if [ "$status" -ne "$code" ] || [ -n "$output" ] || [[ $stderr != *"$cause"* ]]; then
    printf 'arguments: %s\nstatus: %s, not %s\noutput: %s\nstderr: %s\nlacks: %s\n' \
      "$*" "$status" "$code" "$output" "$stderr" "$cause"
    return 1
  fi
}

# column FILE N [FIGURE [SERIES]]: the values of a column in the rows of a figure, each once, in order
column() {
  awk -F '\t' -v n="$2" -v figure="$3" -v series="$4" '
    /^#/ || $1 == "figure" { next }
    (figure == "" || $1 == figure) && (series == "" || $2 == series) && !seen[$n]++ { print $n }' "$1"
}

# y FILE FIGURE SERIES X
y() {
  awk -F '\t' -v f="$2" -v s="$3" -v x="$4" '$1 == f && $2 == s && $3 == x { print $4 }' "$1"
}

# close A B: two numbers that are printed with six digits are the same
close() {
  awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(a != "" && b != "" && d * d <= 1e-10 * b * b) }' ||
    { echo "$1 is not $2"; return 1; }
}

# ---- what is written --------------------------------------------------------------------------------------------

@test "every table and figure has rows, a table and a chart" {
  local all=$BATS_FILE_TMPDIR/all name
  [ "$(column "$all/codecs.tsv" 1 | paste -sd ' ')" = "sizes cycles ding-fig3 ding-table1 ding-fig4 ao-table2 \
ao-fig7 ao-fig8 ao-table5 qs-table1 qs-table2 qs-fig6 qs-fig12 qs-fig13" ]
  [ "$(column "$all/intersect.tsv" 1 | LC_ALL=C sort | paste -sd ' ')" = "ao-fig5 ao-fig6 ao-table3 \
ao-table3-core ao-table4 ao-table7 ao-table7-ms ding-fig6 griffin-fig10 griffin-fig12 griffin-fig13 griffin-fig8 griffin-table1 pairs prepared \
query-time ratio-arrays ratio-lists" ]
  [ "$(column "$all/search.tsv" 1 | paste -sd ' ')" = "ding-table2 griffin-fig7" ]
  [ "$(column "$all/linearity.tsv" 1 | paste -sd ' ')" = "ao-fig1 ao-table1" ] # no list has 4,096 postings
  for name in codecs intersect search linearity; do
    for figure in $(column "$all/$name.tsv" 1); do
      [ "$figure" = ao-fig1 ] || grep -q "^$figure: " "$BATS_FILE_TMPDIR/$name.txt"
      grep -q '^</svg>$' "$all/$figure.svg"
      [ "$(grep -c "^# plot"$'\t'"$figure"$'\t' "$all/$name.tsv")" -eq 1 ]
    done
  done
}

@test "rows have eight columns and finite numbers; the head tells how they came about" {
  local all=$BATS_FILE_TMPDIR/all name key
  for name in codecs intersect search linearity; do
    for key in corpus order lists machine version clock command device; do grep -q "^# $key: ." "$all/$name.tsv"; done
    [ "$name" = linearity ] || grep -q '^# queries: 20 sets of ' "$all/$name.tsv"
    grep -q '^# corpus: WordNet, 1994 documents, ' "$all/$name.tsv"
    grep -q "^# order: original, as in $wordnet; " "$all/$name.tsv"
    grep -q "^# command: gpuir lab $name --sample 2 " "$all/$name.tsv"
    grep -q '^# device: CPU only$' "$all/$name.tsv"
    awk -F '\t' '
      /^#/ { next }
      !head++ { if ($0 != "figure\tseries\tx\ty\tunit\tmin\tmax\tn") exit 1; next }
      NF != 8 || $1 == "" || $2 == "" || $2 ~ / / || $3 == "" || $5 == "" || $8 !~ /^[1-9][0-9]*$/ { print; bad = 1 }
      { for (i = 4; i < 8; i += i == 4 ? 2 : 1) if ($i !~ /^[0-9.]+(e[-+][0-9]+)?$/) { print; bad = 1 } }
      $6 + 0 > $4 + 0 || $7 + 0 < $4 + 0 || ($8 == 1 && ($6 != $7)) { print; bad = 1 }
      END { exit bad || head < 2 }' "$all/$name.tsv"
  done
}

# ---- what is measured -------------------------------------------------------------------------------------------

@test "times have their spread over the repeats, counts have none" {
  local all=$BATS_FILE_TMPDIR/all
  awk -F '\t' '
    $1 == "ratio-lists" || $1 == "ding-fig4" { timed++; if ($8 != 2) bad = 1 }
    $1 == "query-time" { timed++; if ($8 != ($3 == "skip" ? 4 : 2)) bad = 1 } # the skip list is measured twice
    $1 == "ding-table2" { timed++; if ($8 != 20) bad = 1 } # over the queries
    $1 == "sizes" || $1 == "ao-table4" || $1 == "griffin-fig10" { counted++; if ($8 != 1) bad = 1 }
    END { exit bad || !timed || !counted }' "$all"/*.tsv
}

@test "a pass takes every query of the file once, and no more than there are" {
  printf '1:water dog\n2:dog cat\n3:memory computer\n4:unheardofword dog\n5:cat\n' >queries
  gpuir lab search --backend cpu --sample 1 --repeat 1 --figures ding-table2 -o out "$wordnet" queries >/dev/null
  grep -q '^# queries: 3 of those given, each once$' out/search.tsv
  gpuir lab search --backend cpu --sample 1 --repeat 1 --queries 2 --figures ding-table2 -o out "$wordnet" queries >/dev/null
  grep -q '^# queries: 2 of those given, each once$' out/search.tsv
  gpuir lab intersect --backend cpu --sample 1 --repeat 1 --figures ao-table4 -o out "$wordnet" queries >/dev/null
  grep -q '^# queries: 3 of those given, each once$' out/intersect.tsv
}

@test "a figure that is wanted alone has the rows that it has among all" {
  local all=$BATS_FILE_TMPDIR/all figure
  for figure in ao-table7 ao-table3 ao-fig5 prepared; do
    gpuir lab intersect --sample 2 --queries 20 --repeat 1 --backend cpu --figures "$figure" -o out "$wordnet" >/dev/null
    [ "$(column out/intersect.tsv 1)" = "$figure" ]
    [ "$(column out/intersect.tsv 3 "$figure" | sort)" = "$(column "$all/intersect.tsv" 3 "$figure" | sort)" ]
  done
}

@test "R by stage is what is left of the shortest list over the next list" {
  # one: 4 documents; two: 8, of which 2 have one; three: 16, of which one has the other two
  for i in $(seq 64); do
    echo "all $([ "$i" -le 4 ] && echo one) $([ "$i" -gt 2 ] && [ "$i" -le 10 ] && echo two)" \
      "$([ "$i" -ge 4 ] && [ "$i" -lt 20 ] && echo three)"
  done >lines
  gpuir index -q --lines --analyzer unicode lines -o toy.gpuir
  echo 'one two three' >queries
  gpuir lab intersect --backend cpu --figures ao-table4 -o out toy.gpuir queries >/dev/null
  close "$(y out/intersect.tsv ao-table4 R 3/1)" 50
  close "$(y out/intersect.tsv ao-table4 R 3/2)" 12.5
  close "$(y out/intersect.tsv ao-table4 left 3/1)" 0.004
  close "$(y out/intersect.tsv ao-table4 left 3/2)" 0.002
}

@test "hash buckets: their sizes in percent of those that are not empty" {
  # 8,192 documents; line is in each second one: 32 buckets of 256 documents hold 128 of its docIDs each
  for i in $(seq 8192); do [ $((i % 2)) -eq 0 ] && echo line || echo other; done >lines
  gpuir index -q --lines --analyzer unicode lines -o toy.gpuir
  echo line >queries
  gpuir lab linearity --figures ao-fig3 -o out toy.gpuir queries >/dev/null
  close "$(y out/linearity.tsv ao-fig3 index 128)" 100
  [ "$(column out/linearity.tsv 4 ao-fig3 index | paste -sd ' ')" = '0 100' ]
  awk -F '\t' '$1 == "ao-fig3" { sum[$2] += $4 }
    END { for (s in sum) if (sum[s] < 99.99 || sum[s] > 100.01) bad = 1; exit bad || !("random" in sum) }' out/linearity.tsv
}

@test "a hundred pairs a point, or all that there are" {
  gpuir lab intersect --backend cpu --repeat 1 --methods simd --figures ratio-arrays,ding-fig6,griffin-fig13,pairs \
    -o out "$wordnet" >/dev/null
  # classes of length: n lists make n (n - 1) / 2 pairs of one class
  gpuir terms --tsv "$wordnet" | awk -F '\t' '
    $2 > 7 { for (c = 16; c <= $2; c *= 2); n[c]++ }
    END { for (c in n) { if (n[c] > 100) n[c] = 100; p = n[c] * (n[c] - 1) / 2; if (p) print c, (p > 100 ? 100 : p) } }' |
    sort -n >right
  awk -F '\t' '$1 == "pairs" && $2 == "ding-fig6" { print $3, $4 }' out/intersect.tsv | diff - right
  [ "$(y out/intersect.tsv pairs ratio-arrays 2)" -ge 90 ]
  gpuir lab intersect --backend cpu --repeat 1 --pairs 5 --methods simd --figures ratio-lists,pairs -o out "$wordnet" >/dev/null
  [ "$(column out/intersect.tsv 4 pairs ratio-lists | sort -n | tail -n 1)" = 5 ]
}

@test "a CPU that scores every match stands beside the one that prunes" {
  local all=$BATS_FILE_TMPDIR/all
  [ "$(column "$all/search.tsv" 2 ding-table2 | paste -sd ' ')" = 'CPU CPU/exhaustive CPU/skip+exhaustive' ]
  [ "$(column "$all/search.tsv" 3 ding-table2 CPU/exhaustive | paste -sd ' ')" = 'OR AND+OR' ] # AND has one evaluator
  [ "$(column "$all/search.tsv" 3 ding-table2 CPU/skip+exhaustive)" = AND+OR ]
  # OR is asked where AND has fewer than ten hits: never, sometimes
  printf '1:of a\n2:the of\n' >queries
  gpuir lab search --backend cpu --sample 1 --repeat 1 --figures ding-table2 -o out "$wordnet" queries >/dev/null
  grep -q '^# AND+OR: 0 of 2 queries have fewer than 10 hits' out/search.tsv
  printf '1:of a\n2:water memory\n' >queries
  gpuir lab search --backend cpu --sample 1 --repeat 1 --figures ding-table2 -o out "$wordnet" queries >/dev/null
  grep -q '^# AND+OR: 1 of 2 queries have fewer than 10 hits' out/search.tsv
}

@test "throughput and response time of a core, batch after batch" {
  printf '1:water dog\n2:dog cat\n3:memory computer\n' >queries
  gpuir lab intersect --backend cpu --repeat 3 --figures ao-fig5,ao-fig6 -o out "$wordnet" queries >/dev/null
  [ "$(column out/intersect.tsv 2 ao-fig5 | paste -sd ' ')" = 'skip simd' ]
  # all queries are one batch, so its time tells the throughput
  [ "$(column out/intersect.tsv 3 ao-fig5)" = 16384 ]
  close "$(awk -v t="$(y out/intersect.tsv ao-fig6 simd 16384)" 'BEGIN { printf "%.6g", 3000 / t }')" \
    "$(y out/intersect.tsv ao-fig5 simd 16384)" ||
    awk -v a="$(y out/intersect.tsv ao-fig6 simd 16384)" -v b="$(y out/intersect.tsv ao-fig5 simd 16384)" \
      'BEGIN { d = a * b / 3000 - 1; exit d * d > 1e-8 }'
}

# ---- what can be known ------------------------------------------------------------------------------------------

@test "sizes of all lists are those of an index in that codec" {
  gpuir lab codecs --sample 1000000 --repeat 1 --codecs bp128,optpfd,qs:2 --figures sizes -o out "$wordnet" >/dev/null
  for codec in bp128 optpfd qs:2; do
    gpuir index -q --tsv --analyzer unicode --codec "$codec" "$root/tests/data/wordnet.tsv" -o other.gpuir
    close "$(y out/codecs.tsv sizes codec "$codec")" \
      "$(gpuir terms --tsv other.gpuir | awk -F '\t' '$2 > 1 { n += $2; b += $7 } END { printf "%.9g", 8 * b / n }')"
    # last docID, offset and width of each block, in lists of 128 postings and more
    close "$(y out/codecs.tsv sizes with-directory "$codec")" \
      "$(gpuir terms --tsv other.gpuir | awk -F '\t' '$2 > 1 { n += $2; b += $7 }
           $2 >= 128 { b += 9 * $10 } END { printf "%.9g", 8 * b / n }')"
  done
}

@test "what dense lists take is what an index grows by" {
  awk 'BEGIN { for (i = 0; i < 66000; i++) print "all " (i % 4 ? "" : "some ") (i % 14 ? "" : "few ") (i % 18 ? "" : "rare") }' >text
  gpuir index -q --lines --dense 0 text -o none.gpuir
  gpuir lab codecs --sample 2 --repeat 1 --codecs bp128 --figures sizes -o out none.gpuir >/dev/null
  for border in 12 16 20 32; do
    gpuir index -q --lines --dense $border text -o dense.gpuir
    gpuir stats --json none.gpuir >none.json
    python3 - "$(y out/codecs.tsv sizes dense 1/$border)" "$(stat -c %s dense.gpuir)" "$(stat -c %s none.gpuir)" <<'END'
import json, sys
bits, dense, none = map(float, sys.argv[1:])
aid = bits * json.load(open("none.json"))["postings"] / 8
assert aid > 0 and aid - 1 <= dense - none <= aid + 1000, (aid, dense - none)  # a page's rest, and rows of the layout
END
  done
}

@test "the bound of ef is that of all its partitions" {
  gpuir lab codecs --sample 1000000 --repeat 1 --codecs bp128,ef --figures sizes -o out "$wordnet" >/dev/null
  [ "$(column out/codecs.tsv 3 sizes bound)" = ef ]
  gpuir export --format pisa "$wordnet" lists
  python3 - >right <<'END'
from array import array
from math import comb, log2
numbers = array('I', open('lists.docs', 'rb').read())
at, postings, bits = 2, 0, 0
while at < len(numbers):
    docs = numbers[at + 1:at + 1 + numbers[at]]
    at += 1 + len(docs)
    if len(docs) > 1:
        postings += len(docs)
        for i in range(0, len(docs), 128):
            part = docs[i:i + 128]
            bits += log2(comb(part[-1] - (docs[i - 1] + 1 if i else 0), len(part) - 1))
print(repr(bits / postings))
END
  close "$(y out/codecs.tsv sizes bound ef)" "$(cat right)"
  gpuir lab codecs --sample 1 --repeat 1 --codecs bp128 --figures sizes -o out "$wordnet" >/dev/null
  run ! grep -q bound out/codecs.tsv
}

@test "the same seed gives the same sizes; another one gives others" {
  for run in 1-a 1-b 2-c; do
    gpuir lab codecs --sample 2 --repeat 1 --seed "${run%-*}" --figures sizes,ao-table2 -o out "$wordnet" >/dev/null
    grep -v '^#' out/codecs.tsv >"$run"
  done
  cmp 1-a 1-b
  run ! cmp -s 1-a 2-c
}

@test "lengths of lists: those of all terms, or of the queries' terms" {
  gpuir lab intersect --figures griffin-fig10 -o out "$wordnet" >/dev/null
  gpuir terms --tsv "$wordnet" | awk -F '\t' '
    $2 > 1 { n++; for (c = 4; c <= $2; c *= 2); count[c]++ }
    END { for (c in count) printf "%d %.6g\n", c, 100 * count[c] / n }' | sort -n >right
  awk -F '\t' '$1 == "griffin-fig10" { print $3, $4 }' out/intersect.tsv | diff - right
  # 300 documents: odd in every second one, all in each, last in one
  for i in $(seq 300); do echo "all $((i % 2 ? 0 : 1))even $([ "$i" -eq 300 ] && echo last)"; done >lines
  gpuir index -q --lines --analyzer unicode lines -o toy.gpuir
  printf '1:all 0even\n2:all last\nnowhere 1even\n' >queries
  gpuir lab intersect --figures griffin-fig10 -o out toy.gpuir queries >/dev/null
  awk -F '\t' '$1 == "griffin-fig10" { print $3, $4 }' out/intersect.tsv >lengths
  [ "$(paste -sd ';' lengths)" = "256 66.6667;512 33.3333" ]
}

@test "contraction ratio and coefficient of determination are those of a least-squares line" {
  # line: every second document; two: the first and the last hundred of a thousand
  for i in $(seq 1000); do
    echo "all $((i % 2 ? 0 : 1))line $([ "$i" -le 100 ] || [ "$i" -gt 900 ] && echo two)"
  done >lines
  gpuir index -q --lines --analyzer unicode lines -o toy.gpuir
  for term in 0line two; do
    echo "$term" >queries
    gpuir lab linearity -o "$term" toy.gpuir queries >/dev/null
  done
  python3 - >right <<'END'
docs = list(range(100)) + list(range(900, 1000))
n = len(docs)
mx, my = (n - 1) / 2, sum(docs) / n
sxx = sum((i - mx) ** 2 for i in range(n))
sxy = sum((i - mx) * (d - my) for i, d in enumerate(docs))
syy = sum((d - my) ** 2 for d in docs)
off = [(d - my) * sxx / sxy + mx - i for i, d in enumerate(docs)]
print(repr((max(off) + max(-o for o in off)) / n), repr(sxy ** 2 / (sxx * syy)))
END
  read -r ratio r2 <right
  close "$(y two/linearity.tsv ao-table1 index/global/ratio '[128,1K)')" "$ratio"
  close "$(y two/linearity.tsv ao-table1 index/global/R2 '[128,1K)')" "$r2"
  close "$(y two/linearity.tsv ao-table1 index/local/R2 '[128,1K)')" "$r2" # one segment
  close "$(y 0line/linearity.tsv ao-table1 index/global/R2 '[128,1K)')" 1
  awk -v r="$(y 0line/linearity.tsv ao-table1 index/global/ratio '[128,1K)')" 'BEGIN { exit !(r < 1e-9) }'
  awk -v r="$(y 0line/linearity.tsv ao-table1 random/global/ratio '[128,1K)')" 'BEGIN { exit !(r > 0.001 && r < 0.5) }'
}

@test "pfd and newpfd that are given the share of exceptions are those of the library at its own share, a tenth" {
  local all=$BATS_FILE_TMPDIR/all/codecs.tsv codec
  [ "$(column "$all" 2 ao-fig7 | head -n 2 | paste -sd ' ')" = "pfd newpfd" ]
  for codec in pfd newpfd; do
    close "$(y "$all" ao-fig7 $codec 0.1)" "$(y "$all" ao-table2 index $codec)"
  done
  close "$(y "$all" ao-fig7 pfd 0)" "$(y "$all" ao-fig7 newpfd 0)" # no exceptions: they are the same
  awk -v none="$(y "$all" ao-fig7 pfd 0)" -v tenth="$(y "$all" ao-fig7 pfd 0.1)" \
    -v most="$(y "$all" ao-fig7 pfd 0.6)" 'BEGIN { exit !(most < none && none < tenth) }'
}

# ---- options ----------------------------------------------------------------------------------------------------

@test "--codecs, --methods and --figures choose" {
  gpuir lab codecs --backend cpu --sample 1 --repeat 1 --codecs ef,parapfor:64,0.2,bp128,lrc:256,min \
    -o out "$wordnet" >table
  [ "$(column out/codecs.tsv 2 ding-fig4 | paste -sd ' ')" = "ef parapfor:64,0.2 bp128 lrc:256,min" ]
  [ "$(column out/codecs.tsv 2 ao-fig7 | paste -sd ' ')" = "parapfor:64 lrc:256" ]
  run ! grep -q '^qs-fig12' out/codecs.tsv
  gpuir lab intersect --backend cpu --sample 1 --repeat 1 --methods skip,merge --figures ratio-lists,ao-table3 \
    --codecs ef -o out "$wordnet" >table
  [ "$(column out/intersect.tsv 1 | paste -sd ' ')" = "ratio-lists ao-table3" ]
  [ "$(column out/intersect.tsv 2 ratio-lists | paste -sd ' ')" = "merge skip" ]
  [ "$(column out/intersect.tsv 3 ao-table3 arrays | paste -sd ' ')" = "merge skip" ]
  [ "$(column out/intersect.tsv 3 ao-table3 ef | paste -sd ' ')" = "merge skip" ]
  [ "$(grep -c ': ' table)" -eq 2 ]
}

@test "no figure loses a series, however many there are" {
  local specs
  specs=$(seq -f 'qs:%.2f' -s , 1 0.01 1.79) # 80
  gpuir lab codecs --backend cpu --sample 1 --repeat 1 --codecs "$specs" --figures ding-fig4 -o out "$wordnet" >table
  [ "$(column out/codecs.tsv 2 ding-fig4 | paste -sd ,)" = "$specs" ]
  [ "$(grep -o '^qs:[0-9.]*' table | paste -sd ,)" = "$specs" ]
  [ "$(grep -o '<title>qs:[0-9.]*<' out/ding-fig4.svg | sort -u | wc -l)" -eq 80 ] # grey ones, so many, by no label
}

@test "the first of all methods in the library is there, and the last" {
  local all=$BATS_FILE_TMPDIR/all
  [ "$(column "$all/intersect.tsv" 3 ao-table3 arrays | wc -l)" -ge 20 ]
  [ "$(column "$all/intersect.tsv" 3 ao-table3 arrays)" = "$(column "$all/intersect.tsv" 2 ratio-arrays)" ]
  [ "$(column "$all/codecs.tsv" 2 ding-fig4)" = "$(column "$all/codecs.tsv" 3 sizes codec)" ]
}

# gpu_columns NAME FIGURE...: of each figure there is a series of the CPU and one of the GPU over the same places
gpu_columns() {
  local name=$1 figure
  shift
  for figure; do
    [ -n "$(column "out/$name.tsv" 2 "$figure" | grep -v '^GPU\|/GPU')" ]
    [ -n "$(column "out/$name.tsv" 2 "$figure" | grep '^GPU\|/GPU')" ]
  done
}

@test "--backend: the GPU's columns beside the CPU's, or the cause, and CPU only" {
  if gpuir lab codecs --backend gpu --sample 1 --repeat 1 -o out "$wordnet" >/dev/null 2>&1; then
    gpuir lab intersect --sample 2 --repeat 1 -o out "$wordnet" >/dev/null
    gpuir lab search --sample 2 --repeat 1 -o out "$wordnet" >/dev/null
    grep -q '^# device: .*, driver .*, CUDA ' out/codecs.tsv
    gpu_columns codecs ding-table1 ding-fig4 ao-fig8 qs-table2 qs-fig13
    gpu_columns intersect ratio-arrays ratio-lists ding-fig6 ao-table3 query-time ao-fig5 ao-fig6 ao-table7 \
      ao-table7-ms griffin-fig8 griffin-fig12 griffin-fig13
    gpu_columns search ding-table2 griffin-fig7
    [ "$(column out/codecs.tsv 2 qs-fig8 | paste -sd ' ')" = 'count prefix-sum gather combine all' ]
    [ "$(column out/codecs.tsv 2 qs-fig10 | paste -sd ' ')" = 'count prefix-sum gather combine all' ]
    [ "$(column out/codecs.tsv 2 qs-fig11 | paste -sd ' ')" = 'naive steps one-kernel' ]
    [ "$(column out/codecs.tsv 2 qs-fig14 | paste -sd ' ')" = '256 512 1024' ]
    awk -F '\t' '$1 == "ding-table3" { sum[$2] += $4 }
      END { for (s in sum) if (sum[s] < 99.9 || sum[s] > 100.1) bad = 1; exit bad || length(sum) < 4 }' out/search.tsv
  else
    fails 1 '--backend gpu: ' codecs --backend gpu "$wordnet"
    run --separate-stderr gpuir lab codecs --sample 1 --repeat 1 --figures ding-table1 -o out "$wordnet"
    [ "$status" -eq 0 ]
    [[ $stderr == *'CPU only: '* ]]
    grep -q '^# device: CPU only: ' out/codecs.tsv
    [ "$(column out/codecs.tsv 2 | paste -sd ' ')" = 'CPU CPU/L1' ]
  fi
}

@test "gpuir query --backend gpu --intersection: the device's methods answer as the CPU does, or the cause" {
  local method
  printf '%s\n' 'n person' 'of the a' 'adj see' 'zebra' 'of -a the' >queries
  gpuir query --tsv --no-ids --topics queries "$wordnet" >right
  if gpuir query --backend gpu "$wordnet" person >/dev/null 2>&1; then
    for method in binary skip pmf0 pmf1 pmf2 pmf3 pmf4 mergepath; do
      gpuir query --tsv --no-ids --topics queries --backend gpu --intersection $method "$wordnet" | cmp - right
    done
    run --separate-stderr gpuir query --backend gpu --intersection algorithm1 "$wordnet" person
    [ "$status" -eq 1 ]
    [[ $stderr == *'--backend gpu --intersection: '*'algorithm1 does not search lists coded as bp128'* ]]
    run --separate-stderr gpuir query --backend gpu --intersection merge "$wordnet" person
    [[ $stderr == *'the device knows no such intersection'* ]]
  fi
  gpuir query --tsv --no-ids --topics queries --backend auto --intersection pmf3 "$wordnet" 2>/dev/null | cmp - right
}

@test "GPUIR_LAB_LOCK names a file, or the command ends" {
  GPUIR_LAB_LOCK=$PWD/lock gpuir lab linearity --backend cpu -o out "$wordnet" >/dev/null
  [ -f lock ]
  GPUIR_LAB_LOCK=$PWD/nowhere/lock fails 1 'GPUIR_LAB_LOCK: ' linearity --backend cpu -o out "$wordnet"
}

@test "queries: as many hits and candidates as there are" {
  printf '1:water dog\n2:dog cat\n3:memory of computer\n' >queries
  gpuir lab search --backend cpu --sample 1 --repeat 1 -o out "$wordnet" queries >/dev/null
  [ "$(column out/search.tsv 3 ding-table2 CPU | paste -sd ' ')" = 'AND OR AND+OR' ]
  # the classes of results of AND and OR, from 32 on
  for mode in and or; do
    sed 's/^[0-9]*://' queries | while read -r query; do gpuir count --mode "$mode" "$wordnet" "$query"; done
  done | awk '$1 >= 32 { for (c = 4; c <= $1; c *= 2); print c }' | sort -nu >right
  column out/search.tsv 3 griffin-fig7 heap/10 | diff - right
}

@test "a signal ends the measuring; what was measured until then is written, with a note" {
  gpuir lab intersect --backend cpu --sample 2 --repeat 1000 --figures ao-table4,griffin-fig13 -o out "$wordnet" >table &
  until grep -q "^ao-table4" table || ! kill -0 $!; do sleep 0.1; done
  kill -TERM $!
  wait $! && status=0 || status=$?
  [ "$status" -eq 143 ]
  grep -q '^# stopped: by signal 15; ' out/intersect.tsv
  grep -q "^ao-table4"$'\t' out/intersect.tsv
}

@test "misuse" {
  fails 2 'codecs, intersect, search, linearity, all, load, plot or report is missing'
  fails 2 "--backend" codecs --backend tpu "$wordnet"
  fails 2 "there is no 'nothing'" nothing "$wordnet"
  fails 2 'INDEX is missing' codecs
  fails 2 'one INDEX and one file of QUERIES' codecs "$wordnet" queries more
  fails 2 "'ao-fig1' is a figure of linearity" codecs --figures ao-fig1 "$wordnet"
  fails 2 "there is no 'sort'" intersect --methods merge,sort "$wordnet"
  fails 2 "unknown docID codec 'zip'" codecs --codecs bp128,zip "$wordnet"
  fails 2 'takes c' codecs --codecs qs:9 "$wordnet"
  fails 2 'one codec is wanted' codecs --codecs auto "$wordnet"
  fails 2 '--codecs names nothing' codecs --codecs= "$wordnet"
  fails 2 '--sample' codecs --sample 0 "$wordnet"
  fails 2 '--repeat' codecs --repeat 0 "$wordnet"
  fails 2 '--seed' codecs --seed x "$wordnet"
  fails 2 '--pairs' intersect --pairs 0 "$wordnet"
  fails 2 '--queries' search --queries 0 "$wordnet"
  fails 2 "unknown option '--gpu'" codecs --gpu "$wordnet"
}

@test "failures" {
  fails 1 'nowhere.gpuir' codecs nowhere.gpuir
  fails 1 'nowhere.txt' codecs -o out "$wordnet" nowhere.txt
  echo text >file
  fails 1 'file' codecs -o file/out "$wordnet"
  head -c 1000 "$wordnet" >damaged.gpuir
  fails 1 'damaged.gpuir' linearity -o out damaged.gpuir
  printf 'one two\nthree' >lines
  gpuir index -q --lines --analyzer unicode lines -o ones.gpuir
  fails 1 'no list has two postings' linearity -o out ones.gpuir
  echo unheard >queries
  fails 1 'no term of the queries' linearity -o out "$wordnet" queries
}

# ---- a collection by name ---------------------------------------------------------------------------------------

@test "lab --ciff makes an index of an export, runs every experiment with the topics, and makes the page" {
  gpuir export -q "$wordnet" wordnet.ciff.gz
  printf '<top>\n<num> Number: 1\n<title> dog wolf\n</top>\n<top>\n<num> Number: 2\n<title> red apple tree\n</top>\n' >topics
  gpuir lab --ciff wordnet.ciff.gz --topics topics --sample 1 --pairs 1 --repeat 1 --backend cpu --json -o out >json
  python3 - <<'END'
import csv, json
reports = [json.loads(line) for line in open("json", encoding="utf-8")]
assert [r["name"] for r in reports] == ["codecs", "intersect", "search", "linearity"]
for report in reports:
    lines = open(f"out/{report['name']}.tsv", encoding="utf-8").read().splitlines()
    rows = list(csv.DictReader((l for l in lines if l[0] != "#"), delimiter="\t", quoting=csv.QUOTE_NONE))
    assert rows and len(rows) == len(report["rows"])
    for a, b in zip(rows, report["rows"]):
        assert set(a) == set(b) and all(a[k] == b[k] for k in ("figure", "series", "x", "unit")), (a, b)
        assert all(float(a[k]) == float(b[k]) for k in ("y", "min", "max", "n")), (a, b)
    assert [l[2:] for l in lines if l[:2] == "# " and not l.startswith("# plot\t")] == report["notes"]
assert any("of topics, at most" in note for note in reports[0]["notes"])
END
  [ -s out/report.html ]
  [ "$(gpuir stats out/collection.gpuir | grep -E '^(documents|postings) ')" = "$(gpuir stats "$wordnet" |
    grep -E '^(documents|postings) ')" ]
  # one experiment, terms that were stemmed
  gpuir index -q --tsv --analyzer unicode --stem porter "$root/tests/data/wordnet.tsv" -o stemmed.gpuir
  gpuir export -q stemmed.gpuir stemmed.ciff
  printf 'dogs wolves\n' >topics
  gpuir lab search --ciff stemmed.ciff --topics topics --stem porter --sample 1 --repeat 1 --backend cpu -o two >/dev/null
  grep -q '^# queries: 1 of those given' two/search.tsv
  [ ! -e two/report.html ]
}

@test "what --ciff needs is said, and a figure of another experiment is named with it" {
  fails 2 '--topics FILE is missing' --ciff x.ciff
  fails 2 '--ciff is in place of INDEX' --ciff x.ciff --topics x codecs "$wordnet"
  fails 2 'belong to --ciff' --topics x codecs "$wordnet"
  fails 2 "'griffin-fig8' is a figure of intersect" codecs --figures griffin-fig8 "$wordnet"
  fails 2 "there is no 'fig8' here" all --figures fig8 "$wordnet"
  fails 1 'x.ciff: ' --ciff x.ciff --topics x -o out
  printf 'no collection' >x.ciff
  fails 1 'x.ciff' --ciff x.ciff --topics x -o out
  [ ! -e out/collection.gpuir ]
}
