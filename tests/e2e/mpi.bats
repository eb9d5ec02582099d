#!/usr/bin/env bats
# build/gpuir-mpi: the ranks' hits are those of one index, shards join to its bytes, and what fails is told of and
# leaves nothing half done.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  export root PATH="$build:$PATH" text=$root/tests/data/wordnet.tsv one=$BATS_FILE_TMPDIR/one.gpuir
  export shards=$BATS_FILE_TMPDIR/shards queries=$BATS_FILE_TMPDIR/queries
  # Open MPI wants to be told that root may run it, and that ranks may be more than processors.
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
  export OMPI_MCA_mpi_yield_when_idle=1 # ranks that wait leave the processor to those that work
  command -v gpuir-mpi >/dev/null && command -v mpirun >/dev/null || return 0
  gpuir index -q --tsv --store --positions "$text" -o "$one"
  if [ -n "${GPUIR_LONG:-}" ]; then make_queries 1000 >"$queries"; else make_queries 120 >"$queries"; fi
  ranks 3 index -q --tsv --store --positions "$text" -o "$shards"
}

setup() {
  command -v gpuir-mpi >/dev/null || skip "no mpicc (libopenmpi-dev) to build gpuir-mpi with"
  command -v mpirun >/dev/null || skip "no mpirun (openmpi-bin)"
  cd "$BATS_TEST_TMPDIR" || exit
}

# make_queries N: words of one text or of several, phrases, prefixes, negations, unknown words, and what is refused
make_queries() {
  python3 - "$text" "$1" <<'PYTHON'
import random, sys
draw = random.Random(1)
texts = [line.split('\t')[1].split() for line in open(sys.argv[1], encoding='utf8')]
texts = [words for words in texts if len(words) > 3]
words = [word for text in texts for word in text if word.isalnum()]
for i in range(int(sys.argv[2])):
    text, kind = draw.choice(texts), i % 10
    if kind < 3:
        query = ' '.join(draw.choice(text) for _ in range(draw.randint(1, 4)))
    elif kind < 5:
        query = ' '.join(draw.choice(words) for _ in range(draw.randint(1, 3)))
    elif kind < 6:
        at = draw.randrange(len(text) - 2)
        query = '"%s" %s' % (' '.join(text[at:at + 2]).replace('"', ''), draw.choice(words))
    elif kind < 7:
        query = draw.choice(words)[:1 + i // 10 % 4] + '* ' + draw.choice(words)
    elif kind < 8:
        query = draw.choice(words) + ' -' + draw.choice(words)
    elif kind < 9:
        query = ('nosuchword ', '', '"open ', '- ')[i // 10 % 4] + draw.choice(words) + ' ' + draw.choice(words)
    else:
        query = (draw.choice(words) + ' ') * (1 + i // 10 * 37 % 120)
        if i % 20 == 19: # different ones: too many for AND, some too many for OR
            query += ' '.join(('-' if i % 60 == 59 else '') + draw.choice(words) for _ in range(i // 10 * 29 % 150))
    print(query)
PYTHON
}

# ranks P ARGUMENT...: runs gpuir-mpi on so many ranks
ranks() {
  local n=$1
  shift
  if [ "$n" -eq 1 ]; then gpuir-mpi "$@"; else mpirun -n "$n" gpuir-mpi "$@"; fi # mpirun ends failed jobs slowly
}

# answers FILE COMMAND...: hits to FILE, and what was said of queries, in order, to FILE.errors
answers() {
  local file=$1
  shift
  "$@" <"$queries" >"$file" 2>"$file.said" || true
  sed -n 's/.*: \(query [0-9]*\): .*/\1/p' "$file.said" >"$file.errors"
}

# same P MODE OPTION...: P ranks answer as the one index
same() {
  local n=$1 mode=$2
  shift 2
  answers want gpuir query --no-ids --tsv --mode "$mode" "$@" "$one"
  answers got ranks "$n" query --no-ids --tsv --mode "$mode" "$@" "shards$n"
  [ -s want ]
  cmp want got
  cmp want.errors got.errors
}

# built P: makes shards$P, and they join to the one index
built() {
  ranks "$1" index -q --tsv --store --positions "$text" -o "shards$1"
  [ "$(find "shards$1" -type f | wc -l)" -eq "$1" ]
  gpuir verify "shards$1"/*
  gpuir-mpi join "shards$1" -o joined.gpuir
  cmp joined.gpuir "$one"
}

@test "ranks answer as one index, and shards join to it" {
  local counts='2' modes='or andor'
  [ -z "${GPUIR_LONG:-}" ] || counts='1 2 3 8' modes='and or andor'
  for n in $counts; do
    built "$n"
    for mode in $modes; do same "$n" "$mode"; done
  done
  [ -z "${GPUIR_LONG:-}" ] || same 8 andor -k 300
}

@test "every k, k1 and b, in batches of any size, by several threads; hits of a TREC run" {
  cp -r "$shards" shards3
  same 3 and -k 1
  same 3 or -k 5000 --k1 1000 --b 1
  grep -q . want.errors # some leave the range of scores
  answers small ranks 3 query --no-ids --tsv --mode or --batch 7 --threads 2 shards3
  answers want gpuir query --no-ids --tsv --mode or "$one"
  cmp small want
  head -n 20 "$queries" >topics
  gpuir query --trec --topics topics --no-ids "$one" >want.trec
  ranks 3 query --trec --topics topics --no-ids shards3 >got.trec
  cmp want.trec got.trec
  [ "$(ranks 3 query --mode and shards3 wolf dog)" = "$(gpuir query --mode and "$one" wolf dog)" ]
}

@test "the postings of prefixes are bounded over all shards together" {
  local all
  all=$(gpuir terms "$one" | awk '$NF ~ /^(c|dog)/ { n += $1 } END { print n }')
  [ "$all" -gt 1000 ]
  gpuir query --tsv --mode or --prefix-postings "$all" "$one" 'c*' 'dog*' >want
  ranks 3 query --tsv --mode or --prefix-postings "$all" "$shards" 'c*' 'dog*' >got
  [ -s want ]
  cmp want got
  fails 1 'stand for terms of more than' gpuir query --prefix-postings $((all - 1)) "$one" 'c*' 'dog*'
  # no shard alone has so many, and yet the query is refused
  gpuir query --tsv --prefix-postings $((all - 1)) "$shards/shard-00000.gpuir" 'c*' 'dog*' >/dev/null
  fails 1 'stand for terms of too many postings' ranks 3 query --prefix-postings $((all - 1)) "$shards" 'c*' 'dog*'
}

@test "split makes the shards of an index that index makes of its documents" {
  ranks 3 split "$one" -o split
  for i in 0 1 2; do cmp "split/shard-0000$i.gpuir" "$shards/shard-0000$i.gpuir"; done
  gpuir index -q --lines --codec ef --stop english "$text" -o other.gpuir
  ranks 2 split other.gpuir -o other
  gpuir-mpi join other -o joined.gpuir
  cmp other.gpuir joined.gpuir
  # fewer documents than ranks: some have none
  head -n 2 "$text" >two
  gpuir index -q --tsv two -o two.gpuir
  ranks 3 index -q --tsv two -o three
  gpuir-mpi join three -o joined.gpuir
  cmp two.gpuir joined.gpuir
  ranks 3 query --tsv three the >/dev/null
  # a smaller division leaves nothing of a larger one
  ranks 2 index -q --tsv two -o three
  [ "$(find three -type f | wc -l)" -eq 2 ]
}

@test "a shard alone scores by the collection's statistics, and says what it is" {
  gpuir stats "$shards/shard-00001.gpuir" | grep -q '^shard  *1 of 3, documents from 664 on of 1994'
  gpuir stats --json "$shards/shard-00001.gpuir" | grep -q '"shard":{"number":1,"of":3,"first":664,'
  gpuir query --tsv --mode or -k 2000 "$one" wolf dog | awk '$2 >= 664 && $2 < 1329 { print $2 - 664, $3 }' >want
  gpuir query --tsv --mode or -k 2000 "$shards/shard-00001.gpuir" wolf dog | awk '{ print $2, $3 }' >got
  cmp want got
  [ -s got ]
  # nothing of that is in an index that is made of it
  gpuir reorder -q --order random:1 "$shards/shard-00001.gpuir" reordered.gpuir
  run -0 gpuir stats reordered.gpuir
  [[ $output != *'shard '* ]]
}

@test "bench prints a line a mode" {
  head -n 5 "$text" | cut -f 2 | cut -d ' ' -f 1-3 >words
  ranks 3 bench --modes and,or,andor --repeat 1 --alone 2 --times times --no-ids "$shards" words >lines
  [ "$(grep -cP '^(and|or)(\t[0-9.]+){3}$' times)" -eq 4 ]
  [ "$(grep -cP '^[a-z]*\t10\t3\t1\t5(\t[0-9.]+){5}\t[-0-9.]+\t[-0-9.]+$' lines)" -eq 3 ]
}

# refused CAUSE P ARGUMENT...: the job fails and says why
refused() {
  local cause=$1
  shift
  run --separate-stderr ranks "$@"
  # shellcheck disable=SC2154 # stderr is set by run
  if [ "$status" -eq 0 ] || [ -n "$output" ] || [[ $stderr != *"gpuir-mpi: $cause"* ]]; then
    printf '%s\n' "$*" "status: $status" "output: $output" "stderr: $stderr" "lacks: $cause"
    return 1
  fi
}

@test "ranks refuse shards of other statistics, of another division, damaged and missing ones" {
  head -n 1000 "$text" >half
  ranks 3 index -q --tsv half -o half3
  ranks 2 index -q --tsv --store --positions "$text" -o two
  cp -r "$shards" mixed
  refused 'rank 0: mixed: 3 shards, and 2 ranks: mpirun -n 3' 2 query mixed wolf
  cp half3/shard-00001.gpuir mixed/
  refused 'rank 1: mixed/shard-00001.gpuir: of other statistics than shard 0: identity' 3 query mixed wolf
  fails 1 'of other statistics' gpuir-mpi join mixed -o x.gpuir
  cp two/shard-00001.gpuir mixed/
  refused 'rank 1: mixed/shard-00001.gpuir: shard 1 of 2: of another division' 3 query mixed wolf
  head -c 1000 "$shards/shard-00001.gpuir" >mixed/shard-00001.gpuir
  refused 'rank 1: mixed/shard-00001.gpuir: truncated' 3 query mixed wolf
  cp "$one" mixed/shard-00001.gpuir
  refused 'rank 1: mixed/shard-00001.gpuir: an index, but no shard' 3 bench mixed half
  rm mixed/shard-00001.gpuir
  refused 'rank 1: mixed/shard-00001.gpuir: cannot open' 3 query mixed wolf
  fails 1 'cannot open' gpuir-mpi join mixed -o x.gpuir
  refused 'rank 0: nowhere/shard-00000.gpuir: not there' 2 query nowhere wolf
  [ ! -e x.gpuir ]
  # statistics that do not go with the documents before
  cp "$shards"/* mixed/
  python3 - mixed/shard-00001.gpuir <<'PYTHON'
import struct, sys
path = sys.argv[1]
data = bytearray(open(path, 'rb').read())
for i in range(struct.unpack_from('<I', data, 12)[0]):
    id, flags, offset = struct.unpack_from('<IIQ', data, 64 + 32 * i)
    if id == 30:
        struct.pack_into('<Q', data, offset + 16, 1)
open(path, 'wb').write(data)
PYTHON
  refused 'rank 1: mixed/shard-00001.gpuir: begins with document 1, and the shards before end with 664' \
    3 query mixed wolf
}

@test "a rank that fails to write, or is killed, leaves the old shards, and no new one" {
  cp -r "$shards" kept
  sum=$(cat kept/* | cksum)
  # the second rank may not write files of more than 20 KB
  run --separate-stderr mpirun -n 1 gpuir-mpi index -q --tsv "$text" -o kept : \
    -n 1 bash -c 'ulimit -f 20 && exec gpuir-mpi "$@"' - index -q --tsv "$text" -o kept : \
    -n 1 gpuir-mpi index -q --tsv "$text" -o kept
  [ "$status" -ne 0 ]
  [[ $stderr == *"gpuir-mpi: rank 1: kept/shard-00001.part: "*"too large"* ]]
  [ "$(cat kept/* | cksum)" = "$sum" ]
  [ "$(find kept -type f | wc -l)" -eq 3 ]
  # while the first rank waits for queries the second is killed: the job does not wait for it
  mkfifo queries
  run --separate-stderr timeout 60 mpirun -n 1 gpuir-mpi query kept : \
    -n 1 bash -c '(sleep 2 && kill -KILL $$) 3>&- & exec gpuir-mpi query kept' : \
    -n 1 gpuir-mpi query kept <>queries
  [ "$status" -ne 0 ]
  [ "$status" -ne 124 ]
  [[ $stderr == *"rank 1"*"signal 9"* ]]
  # what a killed build left goes with the next one
  touch kept/shard-00001.part kept/shard-00001.new
  ranks 3 index -q --tsv --store --positions "$text" -o kept
  [ "$(cat kept/* | cksum)" = "$sum" ]
  [ "$(find kept -type f | wc -l)" -eq 3 ]
}

@test "misuse, and input that is none" {
  run -0 gpuir-mpi --help
  [[ $output == *'gpuir-mpi join'* ]]
  refused "a command is missing" 1
  refused "there is no command 'x'" 1 x
  refused 'unknown option' 1 query --x
  refused "SHARDS is missing" 1 query
  refused "one folder of SHARDS" 1 join
  refused "one process writes the index" 2 join "$shards" -o x.gpuir
  refused 'one INDEX, and -o SHARDS' 1 split
  refused 'an INPUT is missing' 1 index -o x
  refused 'every rank reads the inputs' 2 index - -o x
  refused 'nowhere: No such file' 1 index nowhere -o x
  refused 'SHARDS and a file of QUERIES' 1 bench "$shards"
  refused '--topics and QUERY exclude each other' 1 query --topics x "$shards" wolf
  mkdir nothing
  : >empty
  refused 'nothing to index was found; x is not written' 1 index nothing -o x
  refused 'rank 1: empty: cannot make the folder' 2 index "$text" -o empty
  refused 'rank 0: empty: no queries' 3 bench "$shards" empty
  echo text | gpuir index -q --live -o live
  refused 'rank 0: live: a live index' 2 index "$text" -o live
  printf 'a\tb\nc\n' >bad
  refused 'bad:2: ' 1 index --tsv bad -o x
}

@test "ranks leave out of a question what one index does" {
  local question="what is the wolf of the forest"
  for i in {1..20}; do printf '%s\twhat is the way of it, and of the %s\n' "$i" "$i"; done >q.tsv
  printf '21\tthe wolf of the forest\n22\tforest\n23\tthe sheep\n' >>q.tsv
  gpuir index -q --tsv --lang en q.tsv -o q.gpuir
  ranks 2 index -q --tsv --lang en q.tsv -o q.shards
  for mode in or andor; do
    gpuir query --tsv --mode "$mode" q.gpuir "$question" >want || true
    [ "$(wc -l <want)" -eq 2 ]
    ranks 2 query --tsv --mode "$mode" q.shards "$question" | cmp - want
  done
  gpuir query --tsv --mode or --stop-query none -k 30 q.gpuir "$question" >want
  [ "$(wc -l <want)" -eq 23 ]
  ranks 2 query --tsv --mode or --stop-query none -k 30 q.shards "$question" | cmp - want
}

# make_records: records of the text, whose fields are of every kind, missing, or several
make_records() {
  python3 - "$text" <<'PYTHON'
import json, random, sys
draw = random.Random(7)
for number, line in enumerate(open(sys.argv[1], encoding='utf8')):
    record = {'id': str(number), 'text': line.split('\t')[1].strip()}
    if draw.random() < 0.8:
        record['who'] = [f'a{draw.randrange(40)}' for _ in range(draw.randint(1, 3))]
    if draw.random() < 0.8:
        record['at'] = draw.choice(['src', 'src/a', 'src/a/b', 'src-b', '/usr', 'src.c', 'doc/x y'])
    if draw.random() < 0.8:
        record['price'] = draw.randrange(-300, 300) / 10
    if draw.random() < 0.8:
        record['day'] = f'20{draw.randrange(10, 24)}-{draw.randrange(1, 13):02}-{draw.randrange(1, 29):02}'
    print(json.dumps(record))
PYTHON
}

@test "where, sort, collapse, values and facets over shards are those of one index" {
  local fields=(--jsonl --field who=key --field at=path --field price=number:1 --field day=date)
  make_records >r.jsonl
  gpuir index -q --positions "${fields[@]}" r.jsonl -o one.gpuir
  ranks 3 index -q --positions "${fields[@]}" r.jsonl -o sharded
  gpuir-mpi join sharded -o joined.gpuir
  cmp joined.gpuir one.gpuir
  head -n 30 "$queries" >some
  export queries=some one=one.gpuir
  ln -s sharded shards3
  while IFS='|' read -r mode options; do
    # shellcheck disable=SC2086 # words
    same 3 "$mode" $options
  done <<'CASES'
or|-w at=src --show who,at,price,day
andor|-k 3 --sort -day --show day
or|-k 40 --sort at -w day=2012..
and|--sort -price --collapse who
andor|-k 5 --collapse at
or|-k 300 --collapse day -w -who=a1,a2
CASES
  for options in '--sort day -k 7 -w at=src/a' '-w price=..-29.0' '--sort -who --collapse at --show at,who' '--sort price -k 9000'; do
    # shellcheck disable=SC2086 # words
    gpuir query --tsv $options one.gpuir >want
    # shellcheck disable=SC2086 # words
    ranks 3 query --tsv $options sharded >got
    [ -s want ]
    cmp want got
  done
  local facets=(-f who:3 -f who -f at: -f at:src -f at -f price:-10,0.5,20 -f price -f day:year -f day:month -f who:0)
  for words in '' 'wolf dog' 'of*'; do
    for form in --tsv --json; do
      # shellcheck disable=SC2086 # words
      gpuir facets $form -m or "${facets[@]}" -w '-who=a3' one.gpuir $words >want
      # shellcheck disable=SC2086 # words
      ranks 3 facets $form -m or "${facets[@]}" -w '-who=a3' sharded $words >got
      [ "$(wc -c <want)" -gt 500 ]
      cmp want got
    done
  done
  refused "sharded: where: there is no field 'x'" 3 facets -f who -w x=1 sharded wolf
  refused "sharded: facets: there is no field 'x'" 3 facets -f x sharded wolf
  refused "sharded: query 1: sort: there is no field 'x'" 3 query --sort x sharded wolf
  refused "sharded: there is no field 'x'" 3 query --show x sharded wolf
  refused '--sort and --trec' 3 query --sort day --trec sharded wolf
  refused '--facet COLUMN is missing' 3 facets sharded
}

@test "shards of files have the fields that files have, and filters and names of members hold" {
  mkdir -p s/a s/b
  for i in 1 2 3 4 5 6; do echo "green tea $i" >"s/a/x$i.c"; done
  echo 'black tea' >s/b/y.h
  printf 'Subject: of tea\n\ngreen\n' >s/q.up
  gpuir index -q --filter 'up=tr a-z A-Z' s -o one.gpuir
  ranks 2 index -q --filter 'up=tr a-z A-Z' s -o sharded
  gpuir-mpi join sharded -o joined.gpuir
  cmp joined.gpuir one.gpuir
  [ "$(ranks 2 facets --tsv -f ext sharded | tr '\t\n' ' ;')" = 'ext 6 c;ext 1 h;ext 1 up;' ]
  echo '{"n":"1","t":"tea","w":"x"}' >r.jsonl
  gpuir index -q --jsonl --id n --text t --field who=key@w r.jsonl -o one.gpuir
  ranks 2 index -q --jsonl --id n --text t --field who=key@w r.jsonl -o sharded
  gpuir-mpi join sharded -o joined.gpuir
  cmp joined.gpuir one.gpuir
}

# code_tree: a folder of files whose names, definitions and texts overlap, and queries to it, some of them misspelt
code_tree() {
  python3 - <<'PYTHON'
import os, random
draw = random.Random(7)
words = 'parse query token index merge shard posting cursor segment builder analyzer folder search reader writer'.split()
folders = ['src', 'src/core', 'tests', 'docs', 'examples', 'vendor/zlib']
for i in range(90):
    name = '%s/%s_%s.%s' % (draw.choice(folders), draw.choice(words), draw.choice(words), draw.choice('c h py md'.split()))
    os.makedirs(os.path.join('code', os.path.dirname(name)), exist_ok=True)
    with open(os.path.join('code', name), 'a') as f:
        for _ in range(draw.randint(1, 4)):
            a, b = draw.choice(words), draw.choice(words)
            f.write('int %s_%s(int a) {\n' % (a, b))
            f.write('  /* the %s of %s.%s */\n  return %s%s(a);\n}\n' % (draw.choice(words), a, b, b, a.capitalize()))
def misspelt(word):
    i = draw.randrange(1, len(word) - 1)
    return draw.choice([word[:i] + word[i + 1:], word[:i] + 'z' + word[i:], word[:i] + word[i + 1] + word[i] + word[i + 2:]])
with open('asked', 'w') as f:
    for i in range(64):
        a, b, c = draw.choice(words), draw.choice(words), draw.choice(words)
        f.write(draw.choice(['%s_%s' % (a, b), 'where is the %s of the %s' % (a, misspelt(b)), '%s %s' % (misspelt(a), c),
            '%s.%s' % (a, misspelt(b)), '%s%s %s' % (a, b.capitalize(), c), '%s~ -%s' % (misspelt(a), c),
            'test %s %s %s' % (a, b, misspelt(b)), misspelt(a) + ' ' + misspelt(a)]) + '\n')
PYTHON
}

@test "typing errors, answers by any word and second looks are those of the whole collection" {
  local n
  code_tree
  gpuir index -q code -o i.gpuir
  gpuir stats i.gpuir | grep -q '^source_files  *[1-9]'
  gpuir query --tsv --scores i.gpuir <asked >want 2>want.said
  grep -q 'queries have a word that no document has' want.said
  grep -q 'queries have few documents with all words' want.said
  gpuir query --tsv --rank plain --exact i.gpuir <asked >plain
  ! cmp -s want plain
  for n in 1 2 3; do
    ranks "$n" index -q code -o "s$n"
    ranks "$n" query --tsv --scores "s$n" <asked >got 2>got.said
    cmp want got
    diff <(sed 's/^gpuir: //' want.said) <(sed 's/^gpuir-mpi: //' got.said)
    ranks "$n" query --tsv --rank plain --exact "s$n" <asked 2>/dev/null | cmp - plain
  done
  for mode in and or andor; do
    gpuir query --tsv --mode "$mode" -k 3 i.gpuir <asked >want 2>/dev/null
    ranks 3 query --tsv --mode "$mode" -k 3 --batch 7 s3 <asked 2>/dev/null | cmp - want
  done
  head -n 9 asked >topics
  gpuir query --topics topics --no-ids --mode or --spell --rank code --tsv i.gpuir >want 2>/dev/null
  ranks 3 query --topics topics --no-ids --mode or --spell --rank code --tsv s3 2>/dev/null | cmp - want
}

@test "what is said of one query, and its exit code, are those of one index" {
  local asked
  code_tree
  gpuir index -q code -o i.gpuir
  ranks 2 index -q code -o s2
  for asked in 'the parze of serch' 'parse nosuchword' 'nosuchword' 'parse query token index merge shard posting'; do
    run --separate-stderr gpuir query --tsv i.gpuir "$asked"
    # shellcheck disable=SC2154 # stderr is set by run
    local want=$output code=$status said=$stderr
    run --separate-stderr ranks 2 query --tsv s2 "$asked"
    [ "$output" = "$want" ]
    [ "$((status != 0))" -eq "$((code != 0))" ]
    [ "$(grep '^gpuir-mpi: ' <<<"$stderr" | sed 's/^gpuir-mpi: //')" = "${said//gpuir: /}" ]
  done
  refused '--expand reads texts, which ranks do not' 1 query --expand s2 parse
  refused '--spell and --exact exclude each other' 1 query --spell --exact s2 parse
}
