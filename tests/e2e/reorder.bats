#!/usr/bin/env bats
# gpuir reorder from end to end: every order, round trips, determinism, bad files, budgets, damaged indexes.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  export root PATH="$build:$PATH"
  # shared by tests that only read them: five documents, one a line, and WordNet
  export toy=$BATS_FILE_TMPDIR/toy.gpuir wordnet=$BATS_FILE_TMPDIR/wordnet.gpuir
  printf 'b\tall the quick brown fox\na\tall the lazy dog\nd\tall quick dog\nc\tall\ne\tall last dog dog\n' \
    >"$BATS_FILE_TMPDIR/toy"
  gpuir index -q --tsv --store --description Toy --k1 1.2 --b 0.75 "$BATS_FILE_TMPDIR/toy" -o "$toy"
  gpuir index -q --tsv --store --stop english --description WordNet "$root/tests/data/wordnet.tsv" -o "$wordnet"
  gpuir reorder -q --order random "$wordnet" "$BATS_FILE_TMPDIR/random.gpuir"
}

setup() {
  cd "$BATS_TEST_TMPDIR" || exit
}

teardown() {
  if [ -d "$BATS_TEST_TMPDIR/small" ]; then umount "$BATS_TEST_TMPDIR/small" 2>/dev/null || true; fi
}

# ---- helpers ----------------------------------------------------------------------------------------------------

# order INDEX: the names of all documents in docID order, parted by commas; they all have the word `all`
order() {
  gpuir query --mode or -k 1000 --tsv "$1" all | sort -t "$(printf '\t')" -k 2n | cut -f 4 | paste -sd ,
}

# hits INDEX: score and name of all hits of some queries, in an order that does not depend on docIDs
hits() {
  local query
  for query in dog 'cat dog' 'the of a' 'adj see -bird' 'n 1 2 3' zebra; do
    echo "# $query"
    gpuir query --mode or -k 100000 --tsv "$1" "$query" | cut -f 3,4 | sort
    gpuir query --mode and -k 100000 --tsv "$1" "$query" | cut -f 3,4 | sort
  done
}

# stat INDEX KEY
stat_of() {
  gpuir stats --json "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$2"
}

# random_lines: 60,000 lines of 20 words
random_lines() {
  awk 'BEGIN { srand(1)
       for (d = 0; d < 60000; d++) { for (i = 0; i < 20; i++) printf "w%d ", int(rand() * rand() * 5000); print "" } }'
}

# ---- orders -------------------------------------------------------------------------------------------------------

@test "by name, ties by old docID" {
  gpuir reorder -q --order name "$toy" out.gpuir
  gpuir verify out.gpuir
  [ "$(order out.gpuir)" = a,b,c,d,e ]
  printf 'x\tall one\na b\tall\nx\tall two words\na\tall\nx\tall\n' >names
  gpuir index -q --tsv --store names -o names.gpuir 2>/dev/null # names it doubts
  before=$(gpuir query --mode or -k 9 --tsv names.gpuir all | sort -t "$(printf '\t')" -k 2n | cut -f 3,4 | grep x)
  gpuir reorder -q --order name names.gpuir names.gpuir
  [ "$(order names.gpuir)" = a,a\ b,x,x,x ]
  after=$(gpuir query --mode or -k 9 --tsv names.gpuir all | sort -t "$(printf '\t')" -k 2n | cut -f 3,4 | grep x)
  [ "$before" = "$after" ]
}

@test "as in a file; documents that are not listed stand behind, and are counted" {
  printf 'e\nd\nc\nb\na\n' >list
  gpuir reorder -q --order file:list "$toy" out.gpuir
  [ "$(order out.gpuir)" = e,d,c,b,a ]
  printf 'c\ne' >list # the last line may lack its end
  run --separate-stderr gpuir reorder -q --order file:list "$toy" out.gpuir
  [ "$status" -eq 0 ]
  [ "$stderr" = "gpuir: list: 3 documents are not listed: behind the others, in the old order" ]
  [ "$(order out.gpuir)" = c,e,b,a,d ]
  gpuir reorder -q --order file:/dev/null "$toy" out.gpuir
  [ "$(order out.gpuir)" = "$(order "$toy")" ]
}

@test "errors in a list of documents name the line" {
  printf 'a\nb\nnobody\n' >list
  fails 1 "/dev/zero: line 1: a line has more than 1,048,576 bytes" gpuir reorder --order file:/dev/zero "$toy" out.gpuir
  fails 1 "list: line 3: 'nobody' names no document" gpuir reorder --order file:list "$toy" out.gpuir
  printf 'a\nb\nc\na\n' >list
  fails 1 "list: line 4: 'a' is listed twice" gpuir reorder --order file:list "$toy" out.gpuir
  printf 'a\n\nb\n' >list
  fails 1 "list: line 2: '' names no document" gpuir reorder --order file:list "$toy" out.gpuir
  printf 'a\r\n' >list
  fails 1 "list: line 1: 'a\\r' names no document" gpuir reorder --order file:list "$toy" out.gpuir
  printf 'x\tall\ny\tall\nx\tall\n' >twice
  gpuir index -q --tsv twice -o twice.gpuir
  printf 'y\nx\n' >list
  fails 1 "list: line 2: 'x' is the name of several documents" gpuir reorder --order file:list twice.gpuir out.gpuir
  fails 1 "absent: No such file" gpuir reorder --order file:absent "$toy" out.gpuir
  fails 1 ".: line 1: Is a directory" gpuir reorder --order file:. "$toy" out.gpuir
  head -c 300000 /dev/urandom >list
  fails 1 "list: line 1: '" gpuir reorder --order file:list "$toy" out.gpuir
  [ ! -e out.gpuir ]
}

@test "by score, by name or in order of docID" {
  printf 'a\t1\nb\t-2.5\nc\t1e3\nd\t1.0\n' >scores
  run --separate-stderr gpuir reorder -q --order score:scores "$toy" out.gpuir
  [ "$status" -eq 0 ]
  [[ $stderr == *"scores: 1 document is not listed"* ]]
  [ "$(order out.gpuir)" = c,a,d,b,e ]
  printf '0\n1\n5\n5\n-1\n' >scores
  gpuir reorder -q --order score:scores "$toy" out.gpuir
  [ "$(order out.gpuir)" = d,c,a,b,e ]
}

@test "errors in a file of scores name the line" {
  printf '0\n1\n5\n5\n' >scores
  fails 1 "scores: line 4: the scores end, for 4 of 5 documents" gpuir reorder --order score:scores "$toy" out.gpuir
  printf '0\n1\n5\n5\n6\n7\n' >scores
  fails 1 "scores: line 6: '7' is a score without a document" gpuir reorder --order score:scores "$toy" out.gpuir
  for bad in '' ' 1' 1x nan inf 0x1 1e999 '1 2'; do
    printf '0\n%s\n' "$bad" >scores
    fails 1 "scores: line 2: '$bad' is not a number" gpuir reorder --order score:scores "$toy" out.gpuir
  done
  printf 'a\t1\nb 2\n' >scores
  fails 1 "scores: line 2: 'b 2' has no tab" gpuir reorder --order score:scores "$toy" out.gpuir
  printf 'a\t1\nq\t2\n' >scores
  fails 1 "scores: line 2: 'q' names no document" gpuir reorder --order score:scores "$toy" out.gpuir
  printf 'a\t1\na\t2\n' >scores
  fails 1 "scores: line 2: 'a' is listed twice" gpuir reorder --order score:scores "$toy" out.gpuir
  [ ! -e out.gpuir ]
}

@test "by PageRank, as a dense matrix has it; ties, chunks, documents without links" {
  # c: from a, b, d; a: from c; b and d: from a, twice in the file; e: none
  printf 'a\tc\nb\tc\nd\tc\nc\ta\na\tb\na\td\na\tb\na\ta\n' >links
  run --separate-stderr gpuir reorder -q --order pagerank:links "$toy" out.gpuir
  [ "$status" -eq 0 ]
  [ "$stderr" = "gpuir: links: 1 document has no links: ranked as pages to which nothing links" ]
  [ "$(order out.gpuir)" = c,a,b,d,e ]
  gpuir verify out.gpuir
  [ "$(stat_of out.gpuir order)" = pagerank ]
  run --separate-stderr gpuir reorder -q --order pagerank:/dev/null "$toy" out.gpuir
  [ "$(order out.gpuir)" = "$(order "$toy")" ]
  # graphs at random, some pages of which are no documents
  python3 - "$BATS_TEST_TMPDIR" <<'PYTHON'
import random, sys
draw = random.Random(1)
for graph in range(20):
    n = draw.randrange(2, 40)
    pages = [f"p{i}" for i in range(n)]
    edges = [(draw.randrange(n), draw.randrange(n)) for _ in range(draw.randrange(4 * n))]
    documents = [i for i in range(n) if draw.random() < 0.9] or [0]
    draw.shuffle(documents)
    with open(f"{sys.argv[1]}/links{graph}", "w") as f:
        for a, b in edges:
            print(pages[a], pages[b], sep="\t", file=f)
    with open(f"{sys.argv[1]}/docs{graph}", "w") as f:
        for i in documents:
            print(pages[i], "all", sep="\t", file=f)
    # the matrix of a surfer who jumps anywhere with probability 0.15, and from pages without links
    out = [{b for a, b in edges if a == i and b != i} for i in range(n)]
    column = [[0.15 / n + 0.85 * ((j in out[i]) / len(out[i]) if out[i] else 1 / n) for j in range(n)] for i in range(n)]
    rank = [1 / n] * n
    for _ in range(400):
        rank = [sum(rank[i] * column[i][j] for i in range(n)) for j in range(n)]
    with open(f"{sys.argv[1]}/right{graph}", "w") as f:
        print(*[pages[i] for i in sorted(documents, key=lambda i: -float(f"{rank[i]:.6e}"))], sep=",", file=f)
PYTHON
  for ((graph = 0; graph < 20; graph++)); do
    gpuir index -q --tsv docs$graph -o small.gpuir
    gpuir reorder -q --order pagerank:links$graph small.gpuir small.gpuir 2>/dev/null
    [ "$(order small.gpuir)" = "$(cat right$graph)" ]
  done
}

@test "chunks have the rank of their file; includes.py makes links of #include lines" {
  mkdir -p kernel/{include/linux,arch/x86/include/asm,drivers}
  printf '#include <linux/types.h>\n#include "own.h"\nall\nall\n' >kernel/drivers/a.c
  printf '# include <linux/types.h>\n#include <linux/none.h>\nall\nall\n' >kernel/drivers/b.c
  printf '#include <linux/types.h>\nall\n' >kernel/drivers/own.h
  printf '#include <asm/io.h>\nall\nall\n' >kernel/include/linux/types.h
  printf 'all\n' >kernel/arch/x86/include/asm/io.h
  "$root/tools/scripts/includes.py" kernel >links 2>lost
  [ "$(cat lost)" = "1 lines name files that are not below kernel" ]
  printf '%s\t%s\n' kernel/drivers/a.c kernel/include/linux/types.h kernel/drivers/a.c kernel/drivers/own.h \
    kernel/drivers/b.c kernel/include/linux/types.h kernel/drivers/own.h kernel/include/linux/types.h \
    kernel/include/linux/types.h kernel/arch/x86/include/asm/io.h | cmp - links
  fails 1 '--arch' "$root/tools/scripts/includes.py"
  gpuir index -q --chunk-lines 2 kernel -o chunks.gpuir
  prints '' gpuir reorder -q --order pagerank:links chunks.gpuir chunks.gpuir
  [ "$(order chunks.gpuir)" = "$(printf kernel/%s \
    arch/x86/include/asm/io.h:1-1, include/linux/types.h:1-2, include/linux/types.h:3-3, drivers/own.h:1-2, \
    drivers/a.c:3-4, drivers/b.c:3-4)" ]
}

@test "errors in a file of links name the line" {
  for bad in a '' 'a b'; do
    printf 'a\tb\n%s\n' "$bad" >links
    fails 1 "links: line 2: '$bad' has no tab between two names" gpuir reorder --order pagerank:links "$toy" out.gpuir
  done
  printf 'a\t\n' >links
  fails 1 "' has an empty name" gpuir reorder --order pagerank:links "$toy" out.gpuir
  printf '\tb\n' >links
  fails 1 "' has an empty name" gpuir reorder --order pagerank:links "$toy" out.gpuir
  printf 'a\tb\tc\n' >links
  fails 1 "' has more than two names" gpuir reorder --order pagerank:links "$toy" out.gpuir
  fails 1 "absent: No such file" gpuir reorder --order pagerank:absent "$toy" out.gpuir
  fails 1 ".: line 1: Is a directory" gpuir reorder --order pagerank:. "$toy" out.gpuir
  fails 2 "'pagerank:' is none of" gpuir reorder --order pagerank: "$toy" out.gpuir
  awk 'BEGIN { for (i = 0; i < 100000; i++) printf "page%d\tpage%d\n", i, i * 7 % 100000 }' >links
  fails 1 "the graph needs 2 MB, --memory allows 1" gpuir reorder --memory 1 --order pagerank:links "$toy" out.gpuir
  [ ! -e out.gpuir ]
}

@test "at random: each seed has an order of its own, 1 is the default" {
  for seed in 0 1 2 18446744073709551615; do
    gpuir reorder -q --order random:$seed "$wordnet" $seed.gpuir
    gpuir verify $seed.gpuir
  done
  cmp 1.gpuir "$BATS_FILE_TMPDIR/random.gpuir"
  for other in 0 2 18446744073709551615; do
    run cmp -s 1.gpuir $other.gpuir
    [ "$status" -eq 1 ]
  done
  # by the documented generators, written anew
  gpuir reorder -q --order random:7 "$toy" toy7.gpuir
  [ "$(order toy7.gpuir)" = "$(python3 - <<'PYTHON'
state, mask = 7, 2**64 - 1
def next64():
    global state
    state = (state + 0x9e3779b97f4a7c15) & mask
    z = state
    z = ((z ^ (z >> 30)) * 0xbf58476d1ce4e5b9) & mask
    z = ((z ^ (z >> 27)) * 0x94d049bb133111eb) & mask
    return z ^ (z >> 31)
def below(n):
    m = (next64() >> 32) * n
    while m % 2**32 < 2**32 % n:
        m = (next64() >> 32) * n
    return m >> 32
order = list("badce")
for i in range(5, 1, -1):
    j = below(i)
    order[j], order[i - 1] = order[i - 1], order[j]
print(",".join(order))
PYTHON
)" ]
}

@test "bisection makes docIDs smaller than a random order does" {
  # chapters, each with words of its own
  awk 'BEGIN { srand(3); for (d = 0; d < 4000; d++) { c = int(rand() * 8); printf "d%d\tall", d
       for (i = 0; i < 12; i++) printf " c%dw%d", c, int(rand() * 20); print "" } }' >chapters
  gpuir index -q --tsv chapters -o chapters.gpuir
  for codec in optpfd ef; do # a block of ef does not get below two bits
    gpuir reorder -q --order random --codec $codec chapters.gpuir random.gpuir
    gpuir reorder -q --order bisect random.gpuir bisect.gpuir
    gpuir verify bisect.gpuir
    [ "$(stat_of bisect.gpuir codec)" = $codec ]
    [ $codec = ef ] && most=8 || most=7
    [ $((10 * $(stat_of bisect.gpuir docids_bytes))) -lt $((most * $(stat_of random.gpuir docids_bytes))) ]
  done
}

# ---- what stays ---------------------------------------------------------------------------------------------------

@test "documents, scores, analyzer, parameters and description stay" {
  hits "$wordnet" >before
  [ "$(wc -l <before)" -gt 1000 ]
  for order in random:3 name bisect; do
    for codec in bp128 lrc; do
      gpuir reorder -q --order $order --codec $codec "$wordnet" out.gpuir
      gpuir verify out.gpuir
      hits out.gpuir >after
      cmp before after
    done
    for key in documents terms postings tokens description analyzer k1 b freq_codec stored_text; do
      [ "$(stat_of "$wordnet" $key)" = "$(stat_of out.gpuir $key)" ]
    done
    [ "$(stat_of out.gpuir codec)" = lrc ]
  done
  gpuir reorder -q --order name "$toy" out.gpuir
  [ "$(stat_of out.gpuir k1) $(stat_of out.gpuir b) $(stat_of out.gpuir description)" = "1.2 0.75 Toy" ]
}

@test "the index records which order it has" {
  [ "$(stat_of "$wordnet" order)" = original ]
  cut -f 1 "$root/tests/data/wordnet.tsv" | tac >list
  seq "$(wc -l <list)" >scores
  while read -r order recorded; do
    gpuir reorder -q --order "$order" "$wordnet" out.gpuir
    gpuir verify out.gpuir
    [ "$(stat_of out.gpuir order)" = "$recorded" ]
    gpuir stats out.gpuir | grep -q "^order  *$recorded\$"
  done <<'EOF'
random random:1
random:18446744073709551615 random:18446744073709551615
name name
file:list file
score:scores score
bisect bisect
EOF
}

@test "there and back again: the same bytes" {
  cut -f 1 "$root/tests/data/wordnet.tsv" >list
  gpuir reorder -q --order file:list "$wordnet" same.gpuir # which differs in the order that it records
  for order in random:5 name bisect; do
    gpuir reorder -q --order $order --codec optpfd "$wordnet" out.gpuir
    run cmp -s "$wordnet" out.gpuir
    [ "$status" -eq 1 ]
    gpuir reorder -q --order file:list --codec bp128 out.gpuir back.gpuir
    cmp same.gpuir back.gpuir
  done
  # lines of files, with their sources
  mkdir text
  for i in 1 2 3; do head -n $((i * 40)) "$root/tests/data/wordnet.tsv" >text/$i; done
  gpuir index -q --chunk-lines 7 text -o chunks.gpuir
  gpuir reorder -q --order random chunks.gpuir shuffled.gpuir
  gpuir verify shuffled.gpuir
  for i in 1 2 3; do
    for ((l = 1; l <= i * 40; l += 7)); do
      echo "text/$i:$l-$((l + 6 < i * 40 ? l + 6 : i * 40))"
    done
  done >list
  gpuir reorder -q --order file:list chunks.gpuir same.gpuir
  gpuir reorder -q --order file:list shuffled.gpuir back.gpuir
  cmp same.gpuir back.gpuir
  gpuir reorder -q --order name shuffled.gpuir names.gpuir
  gpuir export names.gpuir names
  LC_ALL=C sort list | cmp - names.documents
  # positions go with their documents
  gpuir index -q --positions --chunk-lines 7 text -o chunks.gpuir
  [ "$(stat_of chunks.gpuir positions)" = True ]
  gpuir reorder -q --order file:list chunks.gpuir same.gpuir
  for threads in 1 3; do
    gpuir reorder -q --order random --threads $threads chunks.gpuir moved.gpuir
    gpuir verify moved.gpuir
    [ "$(stat_of moved.gpuir positions)" = True ]
    gpuir reorder -q --order file:list --threads $threads moved.gpuir back.gpuir
    cmp same.gpuir back.gpuir
  done
  # what a source's path and the names of its lines share is stored once, in any order
  [ "$(stat_of shuffled.gpuir documents_bytes)" = "$(stat_of chunks.gpuir documents_bytes)" ]
}

@test "the same bytes with any number of threads and any budget that suffices" {
  for order in random bisect; do
    gpuir reorder -q --order $order --threads 1 "$BATS_FILE_TMPDIR/random.gpuir" 1.gpuir
    for threads in 2 3 8; do
      gpuir reorder -q --order $order --threads $threads "$BATS_FILE_TMPDIR/random.gpuir" $threads.gpuir
      cmp 1.gpuir $threads.gpuir
    done
    gpuir reorder -q --order $order --memory 4000 "$BATS_FILE_TMPDIR/random.gpuir" large.gpuir
    cmp 1.gpuir large.gpuir
  done
  gpuir reorder -q --order random --memory 2 "$BATS_FILE_TMPDIR/random.gpuir" small.gpuir
  gpuir reorder -q --order random --memory 512 "$BATS_FILE_TMPDIR/random.gpuir" large.gpuir
  cmp small.gpuir large.gpuir
}

@test "OUTPUT may be INDEX" {
  gpuir reorder -q --order random "$toy" same.gpuir
  gpuir reorder -q --order name same.gpuir other.gpuir
  gpuir reorder -q --order name same.gpuir same.gpuir
  cmp same.gpuir other.gpuir
  [ "$(ls)" = $'other.gpuir\nsame.gpuir' ]
}

@test "indexes without documents or without terms" {
  printf '\x02\x08\x01' >empty.ciff # a header of version 1, and nothing else
  gpuir import -q empty.ciff -o empty.gpuir
  printf '...\n,,,\n' >none
  gpuir index -q --lines none -o none.gpuir
  : >scores
  for order in random name file:/dev/null bisect; do
    for index in empty none; do
      gpuir reorder -q --order $order $index.gpuir out.gpuir
      gpuir verify out.gpuir
      [ "$(stat_of out.gpuir documents)" = "$(stat_of $index.gpuir documents)" ]
    done
  done
  gpuir reorder -q --order score:scores empty.gpuir out.gpuir
}

# ---- reports and failures -------------------------------------------------------------------------------------------

@test "the report tells time and bits; --quiet does not" {
  run --separate-stderr gpuir reorder --order random --codec vbyte "$wordnet" out.gpuir
  [ "$status" -eq 0 ]
  [ -z "$output" ]
  echo "$stderr" | grep -qE 'out.gpuir: 1,994 documents, [0-9,]+ postings; docIDs [0-9.]+ bits each \(vbyte\), '
  echo "$stderr" | grep -qE ', before [0-9.]+ \(bp128\); '
  echo "$stderr" | grep -qE 'ordered in [0-9.]+ s, written in [0-9.]+ s, peak memory [0-9]+ MB'
  run --separate-stderr gpuir reorder -q --order random "$wordnet" out.gpuir
  [ -z "$output$stderr" ]
}

@test "misuse" {
  fails 2 "INDEX is missing" gpuir reorder
  fails 2 "OUTPUT is missing" gpuir reorder --order name "$toy"
  fails 2 "--order is missing" gpuir reorder "$toy" out.gpuir
  fails 2 "one INDEX and one OUTPUT only" gpuir reorder --order name "$toy" a b
  for bad in '' x names file file: score: bisect:3; do
    fails 2 "'$bad' is none of random" gpuir reorder --order "$bad" "$toy" out.gpuir
  done
  for bad in '' x -1 18446744073709551616; do
    fails 2 "the seed '$bad' is not a whole number" gpuir reorder --order "random:$bad" "$toy" out.gpuir
  done
  fails 2 "not a whole number" gpuir reorder --order name --threads 1000 "$toy" out.gpuir
  fails 1 "unknown docID codec 'zip'" gpuir reorder --order name --codec zip "$toy" out.gpuir
  [ ! -e out.gpuir ]
}

@test "a budget that does not suffice is refused, with what would do" {
  awk 'BEGIN { for (d = 0; d < 100000; d++) print "all" }' >lines
  gpuir index -q --lines lines -o lines.gpuir
  for order in random name bisect file:/dev/null; do
    fails 1 "MB, --memory allows 1" gpuir reorder --order $order --memory 1 lines.gpuir out.gpuir
  done
  [ ! -e out.gpuir ]
  gpuir reorder -q --order name --memory 4 lines.gpuir out.gpuir
  gpuir verify out.gpuir
}

@test "bisection within a small budget leaves rare terms out, and says so" {
  random_lines >lines
  gpuir index -q --lines lines -o lines.gpuir
  run --separate-stderr gpuir reorder -q --order bisect --memory 4 lines.gpuir small.gpuir
  [ "$status" -eq 0 ]
  [[ $stderr == *"bisection left out terms of fewer than "*" documents; a larger --memory takes more in" ]]
  gpuir verify small.gpuir
  run --separate-stderr gpuir reorder -q --order bisect --memory 64 lines.gpuir large.gpuir
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
}

@test "a full disk leaves the old index" {
  [ "$(id -u)" -eq 0 ] || skip "only root mounts"
  mkdir small
  mount -t tmpfs -o size=400k none small 2>/dev/null || skip "a small file system cannot be mounted here"
  gpuir reorder -q --order name "$toy" small/x
  cp small/x before
  fails 1 "No space left on device" gpuir reorder --order random "$wordnet" small/x
  [[ $stderr == *"small/x"* ]]
  cmp small/x before
  [ "$(ls small)" = x ]
}

@test "not an index, none at all, no place for the new one" {
  fails 1 "absent" gpuir reorder --order name absent out.gpuir
  echo text >text
  fails 1 "text" gpuir reorder --order name text out.gpuir
  fails 1 "No such file" gpuir reorder --order name "$toy" absent/out.gpuir
  [ ! -e out.gpuir ]
}

@test "a wrong codec and no place for the output show before the order is looked for" {
  # a list of names that is wrong, too: what is said tells what was looked at first
  echo nobody >list
  mkdir folder
  mkfifo pipe
  fails 1 "unknown docID codec 'zip'" gpuir reorder --order file:list --codec zip "$toy" out.gpuir
  fails 1 "absent/out.gpuir" gpuir reorder --order file:list "$toy" absent/out.gpuir
  fails 1 "folder: a folder, not a file" gpuir reorder --order file:list "$toy" folder
  fails 1 "pipe: not a regular file" gpuir reorder --order file:list "$toy" pipe
  fails 1 "'nobody' names no document" gpuir reorder --order file:list "$toy" out.gpuir
  [ -p pipe ]
  [ -z "$(find . -name '*.tmp*' -o -name out.gpuir)" ]
}

@test "a damaged index is refused or reordered, and ends nothing by a signal" {
  size=$(stat -c %s "$wordnet")
  for ((i = 1; i <= 40; i++)); do
    python3 - "$wordnet" damaged.gpuir $i "$size" <<'PYTHON'
import random, sys
data, r = bytearray(open(sys.argv[1], "rb").read()), random.Random(int(sys.argv[3]))
for _ in range(r.choice([1, 10, 1000])):
    data[r.randrange(len(data))] = r.choice([0, 255, r.randrange(256)])
open(sys.argv[2], "wb").write(data)
PYTHON
    for order in name bisect; do
      run timeout 60 gpuir reorder --order $order --memory 64 damaged.gpuir out.gpuir
      [ "$status" -le 1 ] || { echo "seed $i, $order: status $status: $output"; false; }
      if [ "$status" -eq 1 ]; then [[ $output == *gpuir:* ]]; fi
      rm -f out.gpuir
    done
  done
}

@test "a signal ends it, and leaves nothing" {
  random_lines >lines
  gpuir index -q --lines lines -o lines.gpuir
  gpuir reorder --order bisect lines.gpuir out.gpuir 2>messages &
  pid=$!
  sleep 0.3
  kill -INT $pid 2>/dev/null || true
  code=0
  wait $pid || code=$?
  # a background job of a shell without job control ignores SIGINT: then it has run to its end
  [ $code -eq 130 ] || [ $code -eq 0 ]
  gpuir reorder --order bisect lines.gpuir out2.gpuir 2>messages &
  pid=$!
  sleep 0.3
  kill -TERM $pid
  code=0
  wait $pid || code=$?
  [ $code -eq 143 ]
  grep -q 'stopped; out2.gpuir is not written' messages
  [ ! -e out2.gpuir ]
  [ ! -e out2.gpuir.tmp ]
}
