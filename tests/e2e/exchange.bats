#!/usr/bin/env bats
# import, export and serve: round trips, files written by hand, damaged files, the line protocol.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  export root PATH="$build:$PATH" shared=$root/../shared/data PYTHONPATH=$BATS_FILE_TMPDIR
  # shared by tests that only read it
  export wordnet=$BATS_FILE_TMPDIR/wordnet.gpuir
  gpuir index -q --tsv --analyzer unicode --description WordNet "$root/tests/data/wordnet.tsv" -o "$wordnet"
  python_module >"$BATS_FILE_TMPDIR/exchange.py"
}

setup() {
  cd "$BATS_TEST_TMPDIR" || exit
}

# Writers and readers of the two formats, apart from those of the command.
python_module() {
  cat <<'EOF'
import glob, os, struct, subprocess

def varint(n):
    n &= (1 << 64) - 1
    out = b''
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])

def number(field, n):  # written even if it is 0
    return varint(field << 3) + varint(n)

def text(field, s):
    s = s if isinstance(s, bytes) else s.encode()
    return varint(field << 3 | 2) + varint(len(s)) + s

def message(*fields):
    body = b''.join(fields)
    return varint(len(body)) + body

def header(lists, docs, version=1, average=None, description='by hand', more=b'', all_lists=None, all_docs=None):
    return message(number(1, version), number(2, lists), number(3, docs),
                   number(4, lists if all_lists is None else all_lists),
                   number(5, docs if all_docs is None else all_docs), number(6, 9),
                   b'' if average is None else b'\x39' + struct.pack('<d', average), text(8, description), more)

def posting(gap, tf):
    return text(4, number(1, gap) + number(2, tf))

def plist(term, postings, df=None, cf=None):
    """postings: (docID, tf)"""
    out, before = b'', 0
    for docid, tf in postings:
        out += posting(docid - before, tf)
        before = docid
    return message(text(1, term), number(2, len(postings) if df is None else df),
                   number(3, sum(tf for _, tf in postings) if cf is None else cf), out)

def record(docid, name, length):
    return message(number(1, docid), text(2, name), number(3, length))

def ciff(path, lists, docs, **how):
    """lists: [(term, [(docID, tf)])], docs: [(name, length)]"""
    save(path, header(len(lists), len(docs), **how), *(plist(*l) for l in lists),
         *(record(i, *d) for i, d in enumerate(docs)))

def save(path, *parts):
    with open(path, 'wb') as f:
        f.write(b''.join(parts))

def sequence(numbers):
    numbers = list(numbers)
    return struct.pack('<%dI' % (len(numbers) + 1), len(numbers), *numbers)

def pisa(path, lists, docs, terms=True, names=True):
    save(path + '.docs', sequence([len(docs)]), *(sequence(d for d, _ in p) for _, p in lists))
    save(path + '.freqs', *(sequence(tf for _, tf in p) for _, p in lists))
    save(path + '.sizes', sequence(n for _, n in docs))
    if terms:
        save(path + '.terms', *(t.encode() + b'\n' for t, _ in lists))
    if names:
        save(path + '.documents', *(n.encode() + b'\n' for n, _ in docs))

class Reader:
    def __init__(self, b):
        self.b, self.at = b, 0

    def varint(self):
        n = shift = 0
        while True:
            c = self.b[self.at]
            self.at += 1
            n |= (c & 127) << shift
            shift += 7
            if c < 128:
                return n

    def bytes(self):
        n = self.varint()
        assert self.at + n <= len(self.b)
        self.at += n
        return self.b[self.at - n:self.at]

def fields(b):
    """{field: [value]}"""
    r, out = Reader(b), {}
    while r.at < len(b):
        tag = r.varint()
        if tag & 7 == 0:
            v = r.varint()
        elif tag & 7 == 1:
            v, = struct.unpack_from('<d', b, r.at)
            r.at += 8
        else:
            assert tag & 7 == 2
            v = r.bytes()
        out.setdefault(tag >> 3, []).append(v)
    return out

def read_ciff(path):
    """header, [(term, df, cf, [(docID, tf)])], [(docID, name, length)]"""
    r = Reader(open(path, 'rb').read())
    h = {k: v[0] for k, v in fields(r.bytes()).items()}
    lists, docs = [], []
    for _ in range(h.get(2, 0)):
        m = fields(r.bytes())
        docid, postings = 0, []
        for p in m.get(4, []):
            p = fields(p)
            docid += p.get(1, [0])[0]
            postings.append((docid, p.get(2, [0])[0]))
        lists.append((m[1][0], m[2][0], m[3][0], postings))
    for _ in range(h.get(3, 0)):
        m = fields(r.bytes())
        docs.append((m.get(1, [0])[0], m.get(2, [b''])[0], m.get(3, [0])[0]))
    assert r.at == len(r.b)
    return h, lists, docs

def refused(cause, name='bad.ciff'):
    """The command does not import it, says why, and leaves nothing behind."""
    r = subprocess.run(['gpuir', 'import', '-q', name, '-o', 'refused.gpuir'], capture_output=True, text=True)
    assert r.returncode == 1 and not r.stdout and cause in r.stderr, (cause, r)
    assert not glob.glob('refused*'), cause

def accepted(name='bad.ciff'):
    subprocess.run(['gpuir', 'import', '-q', name, '-o', 'accepted.gpuir'], check=True)
    subprocess.run(['gpuir', 'verify', 'accepted.gpuir'], check=True, stdout=subprocess.DEVNULL)

DOCS = [('a', 3), ('b', 2), ('c', 4)]
LISTS = [('dog', [(0, 1), (2, 3)]), ('cat', [(0, 2), (1, 2)]), ('elk', [(2, 1)])]  # not in order of terms
EOF
}

py() { python3 -c "from exchange import *; $1"; }

# refused CAUSE IN: it cannot be imported, and nothing is left behind
refused() {
  fails 1 "$1" gpuir import -q "$2" -o refused.gpuir
  [ -z "$(find . -name 'refused*')" ]
}

has_zlib() { [[ $(gpuir export "$wordnet" probe.ciff.gz 2>&1) != *"no zlib"* ]]; }

# ---- round trips ------------------------------------------------------------------------------------------------

@test "CIFF: export, import and export give the same bytes and the same hits" {
  gpuir export "$wordnet" first.ciff
  gpuir import -q first.ciff -o again.gpuir
  gpuir verify again.gpuir
  gpuir export again.gpuir second.ciff
  cmp first.ciff second.ciff
  cut -f 2 "$root/tests/data/wordnet.tsv" | tr -cs 'a-zA-Z\n' ' ' | awk 'NR % 20 == 0 { print $1, $2, $4 }' >queries
  for mode in and or andor; do
    gpuir query --mode $mode --tsv "$wordnet" <queries >expected
    gpuir query --mode $mode --tsv again.gpuir <queries >got
    [ "$(wc -l <expected)" -gt 100 ]
    cmp expected got
  done
  gpuir stats again.gpuir | grep -q '^description  *WordNet$'
}

@test "PISA: export, import and export give the same bytes and the same hits" {
  gpuir export "$wordnet" first
  gpuir import -q first -o again.gpuir
  gpuir verify again.gpuir
  gpuir export again.gpuir second
  for file in docs freqs sizes terms documents; do cmp first.$file second.$file; done
  [ -z "$(find . -name '*.??????' ! -name '*.gpuir')" ] # no temporary file
  gpuir query --mode or -k 100 --tsv "$wordnet" of the sea >expected
  gpuir query --mode or -k 100 --tsv again.gpuir of the sea >got
  cmp expected got
}

@test "CIFF keeps the order that an index records; where none is told it is unknown" {
  order() { gpuir stats "$1" | awk '$1 == "order" { print $2 }'; }
  gpuir reorder -q --order random:7 "$wordnet" random.gpuir
  gpuir export random.gpuir random.ciff
  gpuir import -q random.ciff -o again.gpuir
  [ "$(order again.gpuir)" = random:7 ]
  gpuir export random.gpuir random
  gpuir import -q random -o again.gpuir
  [ "$(order again.gpuir)" = unknown ]
  # of others nothing is expected, and what is no order is left
  py 'ciff("x.ciff", [("dog", [(0, 1)])], [("a", 1)])'
  gpuir import -q x.ciff -o x.gpuir
  [ "$(order x.gpuir)" = unknown ]
  py 'ciff("y.ciff", [("dog", [(0, 1)])], [("a", 1)], more=text(50000, "z" * 64) + number(50000, 3))'
  gpuir import -q y.ciff -o y.gpuir
  cmp x.gpuir y.gpuir
  py 'ciff("z.ciff", [("dog", [(0, 1)])], [("a", 1)], more=text(50000, b"\n" + b"z" * 62))'
  gpuir import -q z.ciff -o z.gpuir
  gpuir verify z.gpuir
  [ "$(gpuir stats --json z.gpuir | python3 -c 'import json, sys; print(json.load(sys.stdin)["order"])')" = \
    " $(printf 'z%.0s' {1..62})" ]
}

@test "an export holds every posting, document and length" {
  gpuir export "$wordnet" w.ciff
  gpuir export "$wordnet" w
  python3 - <<'EOF'
import collections, re, struct
from exchange import *
import os
index, docs = collections.defaultdict(dict), []
for line in open(os.environ['root'] + '/tests/data/wordnet.tsv', 'rb'):
    name, text_ = line.rstrip(b'\n').split(b'\t', 1)
    words = re.findall(rb'[a-z0-9\x80-\xff]+', text_.lower())
    for w in words:
        index[w][len(docs)] = index[w].get(len(docs), 0) + 1
    docs.append((len(docs), name, len(words)))
lists = [(t, len(p), sum(p.values()), sorted(p.items())) for t, p in sorted(index.items())]
h, got, got_docs = read_ciff('w.ciff')
assert got == lists and got_docs == docs
tokens = sum(d[2] for d in docs)
assert h == {1: 1, 2: len(lists), 3: len(docs), 4: len(lists), 5: len(docs), 6: tokens, 7: tokens / len(docs),
             8: b'WordNet', 50000: b'original'}, h
pisa('own', [(t.decode(), p) for t, _, _, p in lists], [(n.decode(), l) for _, n, l in docs])
for e in ('docs', 'freqs', 'sizes', 'terms', 'documents'):
    assert open('own.' + e, 'rb').read() == open('w.' + e, 'rb').read(), e
EOF
}

@test "the order of lists, the memory and the threads leave no trace in the index" {
  gpuir export "$wordnet" w
  gpuir import -q --description WordNet w -o unordered.gpuir
  gpuir export unordered.gpuir w.ciff
  python3 - <<'EOF'
import random
from exchange import *
_, lists, docs = read_ciff('w.ciff')
lists = [(t.decode(), p) for t, _, _, p in lists]
random.Random(1).shuffle(lists)
ciff('shuffled.ciff', lists, [(n.decode(), l) for _, n, l in docs], description='WordNet')
pisa('shuffled', lists, [(n.decode(), l) for _, n, l in docs])
assert len(lists) > (1 << 17) / 24 * 2  # several runs in 1 MB
EOF
  gpuir import -q w.ciff -o expected.gpuir
  for in in w.ciff shuffled.ciff w shuffled; do
    for how in "--memory 1" "--memory 1 --threads 1" "--threads 3"; do
      # shellcheck disable=SC2086 # options
      gpuir import -q $how --description WordNet $in -o got.gpuir
      cmp expected.gpuir got.gpuir
    done
  done
}

@test "CIFF packed by gzip, in one piece or in several" {
  has_zlib || skip "built without zlib"
  gpuir export "$wordnet" w.ciff
  gpuir export "$wordnet" w.ciff.gz
  gzip -dc w.ciff.gz | cmp - w.ciff
  gpuir export "$wordnet" again.ciff.gz
  cmp w.ciff.gz again.ciff.gz # no time stamp
  gpuir import -q w.ciff -o plain.gpuir
  gpuir import -q w.ciff.gz -o packed.gpuir
  cmp plain.gpuir packed.gpuir
  { head -c 5000 w.ciff | gzip && tail -c +5001 w.ciff | gzip; } >two.ciff.gz
  gpuir import -q two.ciff.gz -o two.gpuir
  cmp plain.gpuir two.gpuir
  cp w.ciff.gz named-otherwise
  gpuir import -q --format ciff named-otherwise -o otherwise.gpuir
  cmp plain.gpuir otherwise.gpuir
  head -c 9000 w.ciff.gz >cut.ciff.gz
  refused "cut off" cut.ciff.gz
  { head -c 9000 w.ciff.gz && printf damage && tail -c +9007 w.ciff.gz; } >bad.ciff.gz
  refused "damaged" bad.ciff.gz
  { head -c -8 w.ciff.gz && printf 12345678; } >sum.ciff.gz
  refused "damaged" sum.ciff.gz
  head -c 100000000 /dev/zero | gzip -9 >bomb.ciff.gz
  refused "unpacks to over 64 MiB and a hundred times its size" bomb.ciff.gz
}

@test "an index without documents, one without names, one with empty documents" {
  printf '\x02\x08\x01' >header.ciff # version 1, and nothing else
  gpuir import -q header.ciff -o empty.gpuir
  gpuir verify empty.gpuir
  [ "$(gpuir count empty.gpuir all)" = 0 ]
  [ -z "$(gpuir query empty.gpuir all)" ]
  [ -z "$(gpuir terms empty.gpuir)" ]
  gpuir export empty.gpuir none
  gpuir import -q none -o none.gpuir
  gpuir export none.gpuir none.ciff
  [ "$(wc -c <none.ciff)" -eq 3 ] # a header that holds version 1
  for in in none.ciff none; do
    gpuir import -q $in -o again.gpuir
    cmp none.gpuir again.gpuir
  done
  py 'ciff("x.ciff", [("dog", [(1, 1)])], [("", 0), ("", 1), ("", 0)])'
  gpuir import -q x.ciff -o x.gpuir
  gpuir export x.gpuir y
  gpuir import -q --description 'by hand' y -o y.gpuir
  cmp x.gpuir y.gpuir
  [ "$(gpuir query --tsv y.gpuir dog | cut -f 2)" = 1 ]
}

# ---- what others write --------------------------------------------------------------------------------------------

@test "a file of Anserini's comes and goes byte for byte" {
  toy=$shared/ciff/toy-complete-20200309.ciff
  [ -f "$toy" ] || skip "no ../shared/data"
  gpuir import -q "$toy" -o toy.gpuir
  gpuir verify toy.gpuir
  [ "$(gpuir query --tsv toy.gpuir simpl | cut -f 2,4 | sort | paste -sd ' ')" = "$(printf '1\tTREC_DOC_1 2\tDOC222')" ]
  gpuir export toy.gpuir toy.ciff
  cmp "$toy" toy.ciff
}

@test "CIFF: any order of lists and of fields, unknown fields, zeros written or not" {
  py 'ciff("plain.ciff", LISTS, DOCS)'
  python3 - <<'EOF'
from exchange import *
def unknown():
    return number(99, 1 << 63) + text(100, 'what') + b'\xfd\x06abcd' + b'\xf9\x06abcdefgh'
def odd(gap, tf):
    return text(4, unknown() + number(2, tf) + (number(1, gap) if gap else b'') + unknown())
save('odd.ciff',
     message(unknown(), text(8, 'by hand'), number(3, 7), number(3, 3), number(2, 3), number(1, 1)),
     message(odd(0, 2), number(3, 4), unknown(), number(2, 7), number(2, 2), odd(1, 2), text(1, 'cat')),
     message(odd(2, 1), text(1, 'elk'), number(3, 1), number(2, 1)),
     message(text(1, 'dog'), odd(0, 1), number(2, 2), number(3, 4), odd(2, 3)),
     message(number(3, 3), text(2, 'a'), unknown()), message(number(3, 2), text(2, 'b'), number(1, 1)),
     message(text(2, 'c'), number(3, 4), number(1, 2)))
EOF
  gpuir import -q plain.ciff -o plain.gpuir
  gpuir import -q odd.ciff -o odd.gpuir
  cmp plain.gpuir odd.gpuir
  gpuir verify odd.gpuir
}

@test "CIFF: what is passed over is warned of" {
  py 'ciff("x.ciff", LISTS + [("", [(0, 1)]), ("x" * 256, [(0, 1)]), ("y" * 300, [(1, 1)]), ("fox", [])], DOCS)'
  run --separate-stderr gpuir import -q x.ciff -o x.gpuir
  [ "$status" -eq 0 ]
  [[ $stderr == *"left out: 1 list of an empty term"*"left out: 2 lists of terms of over 255 bytes"*"left out: 1 list without postings"* ]]
  py 'ciff("plain.ciff", LISTS, DOCS)'
  run --separate-stderr gpuir import -q plain.ciff -o plain.gpuir
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  cmp plain.gpuir x.gpuir
  py 'ciff("x.ciff", LISTS, DOCS, average=3.5)'
  gpuir import -q x.ciff -o x.gpuir 2>&1 | grep -q 'have 3.5 tokens on average; their lengths say 3,'
  cmp plain.gpuir x.gpuir
  py 'ciff("x.ciff", LISTS, DOCS, average=float("nan"))'
  gpuir import -q x.ciff -o x.gpuir 2>&1 | grep -q 'have nan tokens'
  py 'ciff("x.ciff", LISTS, DOCS, average=3.0)'
  [ -z "$(gpuir import -q x.ciff -o x.gpuir 2>&1)" ]
  py 'ciff("x.ciff", LISTS, DOCS, average=2.5, all_docs=4000, all_lists=5000)'
  gpuir import -q x.ciff -o x.gpuir 2>&1 | grep -q 'a part of a collection of 4,000 documents and 5,000 terms'
  cmp plain.gpuir x.gpuir
  py 'save("x.ciff", header(1, 2), plist("cat", [(0, 2), (1, 2)], cf=5), record(0, "a", 3), record(1, "b", 2))'
  gpuir import -q x.ciff -o x.gpuir 2>&1 | grep -q 'in 1 list cf is not the sum'
}

@test "CIFF: texts that are not UTF-8 come and go, with a warning" {
  py 'ciff("x.ciff", [(b"caf\xe9", [(0, 1)])], [(b"na\xefve", 1), (b"\xff", 1)])'
  gpuir import -q x.ciff -o x.gpuir
  gpuir export x.gpuir y.ciff 2>&1 | grep -q '3 terms and names are not UTF-8'
  gpuir import -q y.ciff -o y.gpuir
  cmp x.gpuir y.gpuir
}

@test "PISA: a collection without terms has their numbers, one without names none" {
  py 'pisa("x", [("t%d" % i, [(i % 3, 1)]) for i in range(12)], DOCS, terms=False, names=False)'
  gpuir import -q x -o x.gpuir
  [ "$(gpuir terms --tsv x.gpuir | cut -f 1 | paste -sd ' ')" = "0 1 10 11 2 3 4 5 6 7 8 9" ]
  [ "$(gpuir query --tsv x.gpuir 11 | cut -f 2)" = 2 ]
  gpuir export x.gpuir y
  [ "$(wc -c <y.documents)" -eq 3 ]
  py 'pisa("x", LISTS + [("fox", [])], DOCS)'
  gpuir import -q x -o x.gpuir 2>&1 | grep -q 'left out: 1 list without postings'
  py 'pisa("z", LISTS, DOCS)'
  gpuir import -q z -o z.gpuir
  cmp x.gpuir z.gpuir
}

@test "the options of an index" {
  py 'ciff("x.ciff", [("run", [(0, 1)]), ("the", [(1, 1)])], DOCS)'
  gpuir import -q --codec vbyte --freq-codec vbyte --k1 1.2 --b 0.75 --description mine --stop english x.ciff -o x.gpuir
  gpuir stats x.gpuir >stats
  analyzer=ascii
  if gpuir --version | grep -q '^analyzers:.*unicode'; then analyzer=unicode; fi
  for line in 'description mine' "analyzer $analyzer stop=english" 'k1 1.2' 'b 0.75' 'codec vbyte'; do
    tr -s ' ' <stats | grep -qx "$line" || { echo "lacks $line"; cat stats; false; }
  done
  if gpuir --version | grep -q '^stemmers:.*porter'; then
    gpuir import -q --stem porter x.ciff -o x.gpuir
    [ "$(gpuir query --tsv x.gpuir running | cut -f 2)" = 0 ]
  fi
  gpuir import x.ciff -o x.gpuir 2>&1 | grep -q 'x.gpuir: 3 documents, 2 terms, 2 postings'
}

# ---- damage ---------------------------------------------------------------------------------------------------------

@test "CIFF: what is wrong is refused with its offset and cause" {
  python3 - <<'EOF'
from exchange import *
pair = plist('cat', [(0, 2), (1, 2)])
records = record(0, 'a', 3) + record(1, 'b', 2)

def bad(cause, *parts):
    save('bad.ciff', *parts)
    refused(cause)

save('bad.ciff', header(1, 2), pair, records)
accepted()
bad('bad.ciff: offset 0: an empty file')
bad('bad.ciff: offset 0: the header has 110 bytes', b'not CIFF at all, but some text that is long enough')
bad('bad.ciff: offset 29: a list with two terms', header(1, 2), message(text(1, 'cat'), text(1, 'dog')), records)
bad('version 0', header(1, 2, version=0), pair, records)
bad('version 2', header(1, 2, version=2), pair, records)
bad('num_postings_lists is negative (-1)', header(-1, 2), pair, records)
bad('num_docs is negative (-5)', header(1, -5), pair, records)
bad('num_docs is 2147483648, more than its type holds', header(1, 1 << 31), pair, records)
bad('bad.ciff: offset', header(2, 2), pair, records)
bad('the file ends behind list 1 of 2', header(2, 2), pair)
bad('the file ends behind document 2 of 3', header(1, 3), pair, records)
bad('3 bytes follow the last document', header(1, 2), pair, records, b'xyz')
bad('document 0 says that its docID is 1', header(1, 2), pair, record(1, 'b', 2), record(0, 'a', 3))
bad('document 1 says that its docID is 0', header(1, 2), pair, record(0, 'a', 3), record(0, 'b', 2))
bad('doclength is negative (-3)', header(1, 2), pair, record(0, 'a', -3), record(1, 'b', 2))
bad("a second list of the term 'cat'", header(2, 2), pair, pair, records)
bad('a list of 2 postings says that df is 3', header(1, 2), plist('cat', [(0, 2), (1, 2)], df=3), records)
bad('df is 1152921504606846976', header(1, 2), plist('cat', [(0, 2), (1, 2)], df=1 << 60), records)
bad('df is negative (-1)', header(1, 2), plist('cat', [(0, 2)], df=-1), records)
bad('repeats the docID', header(1, 2), plist('cat', [(0, 2), (0, 1)]), records)
bad('docid is negative (-1)', header(1, 2), plist('cat', [(1, 2), (0, 1)]), records)
bad('a posting of docID 2, of 2 documents', header(1, 2), plist('cat', [(1, 2), (2, 1)]), records)
bad('tf 0', header(1, 2), plist('cat', [(0, 0)]), records)
bad('tf is negative (-7)', header(1, 2), plist('cat', [(0, -7)], cf=1), records)
bad('tf is 4294967297, more than', header(1, 2), plist('cat', [(0, 1 << 32 | 1)], cf=1), records)
bad('docID 0, of 0 documents', header(1, 0), plist('cat', [(0, 1)]))
bad('field 1 has wire type 0, not 2', header(1, 2), message(number(1, 5)), records)
bad('field 1 has wire type 3, not 2', header(1, 2), message(b'\x0b'), records)
bad('a type that proto3 does not have', header(1, 2), message(b'\x4b'), records)
bad('not a field', header(1, 2), message(b'\x02'), records)
bad('more than 64 bits', header(1, 2), message(b'\x10' + b'\xff' * 10 + b'\x01'), records)
bad('a list has 4611686018427387904 bytes, of which 3 are there', header(1, 2), varint(1 << 62), b'cat')
bad('the header has 1099511627776 bytes', varint(1 << 40))
EOF
}

@test "CIFF: cut off anywhere, it is refused" {
  python3 - <<'EOF'
from exchange import *
ciff('bad.ciff', LISTS, DOCS)
accepted()
whole = open('bad.ciff', 'rb').read()
for n in range(len(whole)):
    save('bad.ciff', whole[:n])
    refused('bad.ciff: ')
EOF
}

@test "PISA: what is wrong is refused with its offset and cause" {
  python3 - <<'EOF'
from exchange import *

def bad(cause, suffix, *parts):
    """One file of a collection is other than it should be."""
    pisa('bad', LISTS, DOCS)
    save('bad.' + suffix, *parts)
    refused(cause, 'bad')

pisa('bad', LISTS, DOCS)
accepted('bad')
whole = {s: open('bad.' + s, 'rb').read() for s in ('docs', 'freqs', 'sizes', 'terms', 'documents')}
for s in ('docs', 'freqs', 'sizes'):
    for n in range(len(whole[s])):
        bad('bad.', s, whole[s][:n])
    bad('bad.%s: offset 0: a sequence is cut off' % s, s)
    bad('cut off', s, whole[s][:-1])
    bad('bad.%s: ' % s, s, sequence([3]), b'\xff' * 16)
    os.remove('bad.' + s)
    refused('bad.%s: No such file' % s, 'bad')
    os.mkdir('bad.' + s)
    refused('not a regular file', 'bad')
    os.rmdir('bad.' + s)
bad('bad.sizes: offset 16: bytes follow the lengths', 'sizes', whole['sizes'], b'x')
bad('bad.sizes: it has 2 lengths, for 3 documents', 'sizes', sequence([1, 2]))
bad('bad.docs: offset 0: no collection: it does not begin with the number of documents', 'docs', sequence([3, 3]))
bad('bad.docs: offset 20: a sequence of 3 numbers is cut off: 8 bytes follow', 'docs', whole['docs'][:20],
    sequence([0, 1, 2])[:12])
bad('bad.freqs: offset 12: more lists of frequencies than of docIDs', 'docs', sequence([3]), sequence([0, 2]))
bad('bad.freqs: offset 12: a sequence is cut off', 'freqs', sequence([1, 3]))
bad('bad.freqs: offset 12: list 1 has 1 frequencies, for 2 docIDs', 'freqs', sequence([1, 3]), sequence([2]),
    sequence([1]))
bad('bad.terms: it ends behind 2 terms, but there are more lists', 'terms', b'dog\ncat\n')
bad('bad.terms: offset 12: more terms than lists', 'terms', b'dog\ncat\nelk\nfox\n')
bad("bad.docs: offset 32: a second list of the term 'dog'; the first is at offset 8", 'terms', b'dog\ncat\ndog\n')
bad('bad.documents: it has 2 names, for 3 documents', 'documents', b'a\nb\n')
bad('bad.documents: offset 6: more names than documents', 'documents', b'a\nb\nc\n\n')
pisa('bad', LISTS, DOCS)
save('bad.documents', b'a\nb\nc')
accepted('bad')  # the last line needs no end
for postings, cause in (([(0, 1), (3, 1)], 'bad.docs: offset 16: a posting of docID 3, of 3'),
                        ([(1, 1), (1, 1)], 'bad.docs: offset 16: docID 1 follows 1'),
                        ([(1, 1), (2, 0)], 'bad.freqs: offset 8: a frequency of 0')):
    pisa('bad', [('dog', postings)], DOCS)
    refused(cause, 'bad')
EOF
}

@test "what an export cannot hold is refused, and a failed one leaves nothing" {
  printf 'one' >'a
b'
  gpuir index -q . -o x.gpuir
  fails 1 "the name of document 0 has a line break" gpuir export x.gpuir out
  [ -z "$(find . -name 'out*')" ]
  py 'pisa("big", [("dog", [(0, 1 << 31)])], [("a", 1)])'
  gpuir import -q big -o big.gpuir
  fails 1 "a tf is 2147483648; CIFF holds at most 2147483647" gpuir export big.gpuir out.ciff
  py 'pisa("big", [("dog", [(0, 1)])], [("a", 1 << 31)])'
  gpuir import -q big -o big.gpuir
  fails 1 "a document's length is 2147483648" gpuir export big.gpuir out.ciff
  gpuir export big.gpuir back
  for file in docs freqs sizes terms documents; do cmp big.$file back.$file; done
  [ -z "$(find . -name 'out*')" ]
  fails 1 "No such file" gpuir export big.gpuir missing/out.ciff
  fails 1 "No such file" gpuir export missing.gpuir out.ciff
  cp big.gpuir self.ciff
  fails 1 "cannot be its own export" gpuir export self.ciff self.ciff
  cmp big.gpuir self.ciff
}

@test "an output that is the input, a folder or no regular file is refused, and stays" {
  gpuir export "$wordnet" in.ciff
  gpuir export "$wordnet" in
  cp in.ciff before.ciff
  mkfifo pipe pipe.docs
  mkdir folder
  fails 1 "cannot be its own input" gpuir import in.ciff -o in.ciff
  cmp in.ciff before.ciff
  ln in.terms link
  fails 1 "cannot be its own input" gpuir import in -o link
  fails 1 "pipe: not a regular file" gpuir import in -o pipe
  fails 1 "folder: a folder, not a file" gpuir import in -o folder
  fails 1 "pipe: not a regular file" gpuir export --format ciff "$wordnet" pipe
  fails 1 "pipe.docs: not a regular file" gpuir export "$wordnet" pipe
  fails 1 "folder: a folder, not a file" gpuir export --format ciff "$wordnet" folder
  fails 2 "OUT has no name" gpuir export "$wordnet" ''
  fails 2 "OUT has no name" gpuir export "$wordnet" folder/
  [ -p pipe ]
  [ -p pipe.docs ]
  [ -z "$(ls -A folder)" ]
  [ -z "$(find . -name '*.??????' ! -name 'in.*')" ]
}

@test "misuse" {
  fails 2 "IN is missing" gpuir import -o x
  fails 2 "one IN only" gpuir import a b -o x
  fails 2 "-o INDEX is missing" gpuir import a
  fails 2 "never a stream" gpuir import a -o -
  fails 2 "IN is a file" gpuir import - -o x
  fails 2 "'xml' is none of ciff|pisa" gpuir import --format xml a -o x
  fails 1 "unknown docID codec 'zip'" gpuir import -q --codec zip "$(py 'ciff("x.ciff", LISTS, DOCS); print("x.ciff")')" -o x
  fails 1 "a.ciff: No such file" gpuir import a.ciff -o x
  fails 1 "a.docs: No such file" gpuir import a -o x
  fails 2 "INDEX and OUT are needed" gpuir export "$wordnet"
  fails 2 "OUT is a file" gpuir export "$wordnet" -
  fails 2 "--stdio or --socket PATH is missing" gpuir serve "$wordnet"
  fails 2 "INDEX is missing" gpuir serve --stdio
  fails 2 "one INDEX only" gpuir serve --stdio "$wordnet" "$wordnet"
  fails 1 "No such file" gpuir serve --stdio missing
  [ -z "$(find . ! -name x.ciff ! -name 'separate-stderr-*' -type f)" ]
}

@test "an export through a link writes its target, and the link stays" {
  printf 'a cat\na dog\n' | gpuir index -q --lines - -o x.gpuir
  gpuir export x.gpuir plain.ciff
  mkdir sub sub/deep
  ln -s sub/second.ciff first.ciff # relative to the link's folder, and leads nowhere yet
  ln -s deep/target.ciff sub/second.ciff
  for round in new old; do
    gpuir export x.gpuir first.ciff
    cmp plain.ciff sub/deep/target.ciff
    [ "$(readlink first.ciff)" = sub/second.ciff ]
    [ "$(readlink sub/second.ciff)" = deep/target.ciff ]
    [ "$round" = old ] || echo other >sub/deep/target.ciff
  done
  ln -s sub/lists.docs pisa.docs # one of five
  gpuir export x.gpuir pisa
  [ -L pisa.docs ]
  [ -s sub/lists.docs ]
  gpuir import -q pisa -o y.gpuir
  [ "$(gpuir count y.gpuir cat)" = 1 ]
  ln -s loop.ciff loop.ciff
  fails 1 "too many links" gpuir export x.gpuir loop.ciff
  ln -s sub dir.ciff
  fails 1 "a folder, not a file" gpuir export x.gpuir dir.ciff
  ln -s x.gpuir itself.ciff # also through a link
  fails 1 "the index cannot be its own export" gpuir export x.gpuir itself.ciff
  if [ "$(id -u)" -eq 0 ]; then
    echo secret >secret
    ln -s secret foreign.ciff
    chown -h 12345 foreign.ciff
    fails 1 "another user" gpuir export x.gpuir foreign.ciff
    [ "$(cat secret)" = secret ]
  fi
  [ -z "$(find . -name '*.tmp')" ]
}

@test "a signal ends an import and leaves nothing" {
  python3 - <<'EOF'
from exchange import *
ciff('x.ciff', [('t%07d' % (i * 7919 % 200000), [(0, 1)]) for i in range(200000)], [('a', 1)])
EOF
  for delay in 0.02 0.1; do
    status=0
    timeout -s INT "$delay" gpuir import -q x.ciff -o x.gpuir 2>err || status=$?
    [ "$status" -eq 124 ] || [ -e x.gpuir ] # 124: timeout had to send it
    [ -z "$(find . -name 'x.*' ! -name x.ciff ! -name x.gpuir)" ]
    rm -f x.gpuir
  done
}

# ---- serve -----------------------------------------------------------------------------------------------------------

# answers REQUEST ANSWER: in $index
answers() {
  run --separate-stderr gpuir serve --stdio "$index" <<<"$1"
  if [ "$status" -ne 0 ] || [ "$output" != "$2" ] || [ -n "$stderr" ]; then
    printf 'request: %s\nstatus: %s\noutput: %s\nexpected: %s\nstderr: %s\n' "$1" "$status" "$output" "$2" "$stderr"
    return 1
  fi
}

@test "serve: every command and form of query" {
  printf 'a cat\na dog\na cat and a dog\nan elk\na dog and an elk\n' >toy
  gpuir index -q --lines --analyzer unicode toy -o toy.gpuir
  index=toy.gpuir tab=$'\t'
  for k in 10 100 1000; do
    answers "TOP_$k${tab}cat dog" 1
    answers "TOP_$k${tab}+cat +dog" 1
    answers "TOP_$k${tab}zebra" 1
    answers "TOP_${k}_COUNT${tab}cat dog" 4
    answers "TOP_${k}_COUNT${tab}+cat +dog" 1
    answers "TOP_${k}_COUNT${tab}+cat dog" 2
    answers "TOP_$k${tab}+cat dog" 1
  done
  answers "COUNT${tab}cat" 2
  answers "COUNT${tab}cat elk" 4
  answers "COUNT${tab}+cat" 2
  answers "COUNT${tab}+cat elk" 2
  answers "COUNT${tab}+cat elk -dog" 1
  answers "COUNT${tab}+dog -cat" 2
  answers "COUNT${tab}dog cat -elk" 3
  answers "COUNT${tab}zebra" 0
  answers "COUNT${tab}cat zebra" 2
  answers "COUNT${tab}+cat +zebra" 0
  answers "COUNT${tab}  CAT   Elk  " 4
  answers "COUNT${tab}cat_elk" 4
  answers "COUNT${tab}..." 0
  answers "COUNT${tab}cat"$'\r' 2
  for query in '"a cat"' '+"a cat" +dog' '-cat' '-cat -dog' '' ' ' + - '++cat' '--cat' '+-cat' '(cat dog)' 'cat*' 'cat~1' \
    'cat^2' 'name:cat' 'cat AND dog' 'cat OR dog' 'NOT cat' '!cat' 'cat && dog' 'c?t' '[a TO b]' 'c\at'; do
    answers "COUNT$tab$query" UNSUPPORTED
  done
  answers "COUNT${tab}$(seq -s ' ' 65)" UNSUPPORTED
  answers "COUNT${tab}$(seq -s ' ' 64)" 0
  answers "TOP_10_COUNT${tab}$(seq -s ' ' 65)" UNSUPPORTED
  answers "TOP_10${tab}$(seq -f '+%.0f' -s ' ' 65)" UNSUPPORTED
  # ranked are the rarest words, which is said once
  printf "TOP_10\t$(seq -s ' ' 65)\n%.0s" 1 2 | gpuir serve --stdio toy.gpuir >got 2>said
  printf '1\n1\n' | diff - got
  [ "$(cat said)" = "gpuir: note: a query has more than 64 different words: such queries are ranked by the rarest" ]
  for request in cat "TOP_5${tab}cat" "top_10${tab}cat" "COUNT cat" "${tab}cat" '' "TOP_10_COUNTS${tab}cat"; do
    answers "$request" UNSUPPORTED
  done
  gpuir index -q --lines --analyzer unicode --positions toy -o positions.gpuir
  index=positions.gpuir
  answers "COUNT${tab}\"a cat\"" 2
  answers "COUNT${tab}\"a dog\" \"an elk\"" 4
  answers "COUNT${tab}+\"a dog\" -elk" 2
  answers "COUNT${tab}+\"a dog\" -\"an elk\" +and" 1
  answers "TOP_10_COUNT${tab}+\"dog and an\"" 1
  answers "TOP_10${tab}\"cat a\"" 1
  answers "COUNT${tab}\"cat a\"" 0
  for query in '"a cat' '"cat' '"cat dog' 'cat"' '"a cat"dog' '"'; do answers "COUNT$tab$query" UNSUPPORTED; done
  index=toy.gpuir
  [ -z "$(gpuir serve --stdio toy.gpuir </dev/null)" ]
  [ "$(printf 'COUNT\tcat\n\nCOUNT\tdog' | gpuir serve --stdio toy.gpuir | paste -sd ' ')" = "2 UNSUPPORTED 3" ]
  gpuir index -q --lines --analyzer unicode --stop english toy -o stop.gpuir
  index=stop.gpuir
  answers "COUNT${tab}a" 0
  answers "TOP_10${tab}a" 1
  answers "COUNT${tab}+a +cat" 2
}

@test "serve: each answer comes before the next request" {
  python3 - <<'EOF'
import os, select, subprocess
p = subprocess.Popen(['gpuir', 'serve', '--stdio', os.environ['wordnet']], stdin=subprocess.PIPE,
                     stdout=subprocess.PIPE)
def get():
    assert select.select([p.stdout], [], [], 20)[0], 'no answer'
    return os.read(p.stdout.fileno(), 100)
for half in (b'COU', b'NT\tdo'):
    p.stdin.write(half)
    p.stdin.flush()
    assert not select.select([p.stdout], [], [], 0.05)[0]
p.stdin.write(b'g\n')
p.stdin.flush()
assert int(get()) > 0
for _ in range(100):
    p.stdin.write(b'TOP_10\tdog\n')
    p.stdin.flush()
    assert get() == b'1\n'
p.stdin.close()
assert p.wait() == 0
EOF
}

@test "serve: the game's queries, counted as by hand" {
  queries=$shared/queries/search-benchmark-game.jsonl
  [ -f "$queries" ] || skip "no ../shared/data"
  python3 - "$queries" <<'EOF'
import json, os, re, subprocess, sys
docs = [set(re.findall(rb'[a-z0-9\x80-\xff]+', l.split(b'\t', 1)[1].lower()))
        for l in open(os.environ['root'] + '/tests/data/wordnet.tsv', 'rb')]
queries = [json.loads(l)['query'] for l in open(sys.argv[1])]
def has(d, w):
    return w.lower().encode() in d
def expected(q):
    if '"' in q:
        return 'UNSUPPORTED', 'UNSUPPORTED'
    words = q.split()
    plus = [w[1:] for w in words if w[0] == '+']
    minus = [w[1:] for w in words if w[0] == '-']
    bare = [w for w in words if w[0] not in '+-']
    n = sum((all(has(d, w) for w in plus) if plus else any(has(d, w) for w in bare)) and
            not any(has(d, w) for w in minus) for d in docs)
    return str(n), str(n)
requests = [c + '\t' + q for q in queries for c in ('COUNT', 'TOP_10_COUNT')]
got = subprocess.run(['gpuir', 'serve', '--stdio', os.environ['wordnet']], input='\n'.join(requests) + '\n',
                     capture_output=True, text=True, check=True).stdout.split('\n')[:-1]
wanted = [a for q in queries for a in expected(q)]
assert len(queries) == 962 and len(set(wanted)) > 50
for r, g, w in zip(requests, got, wanted):
    assert g == w, (r, g, w)
assert len(got) == len(wanted)
EOF
}

@test "export says what it wrote, or not" {
  cd "$BATS_TEST_TMPDIR"
  run --separate-stderr gpuir export "$wordnet" said.ciff
  [ "$status" -eq 0 ]
  [ -z "$output" ]
  # shellcheck disable=SC2154 # stderr is set by run
  [[ $stderr =~ ^'gpuir: said.ciff: ciff, '[0-9,]*' documents, '[0-9,]*' terms, '[0-9,]*' postings'$ ]]
  run --separate-stderr gpuir export -q "$wordnet" said
  [ "$status" -eq 0 ]
  [ -z "$output$stderr" ]
}
