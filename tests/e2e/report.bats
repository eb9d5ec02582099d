#!/usr/bin/env bats
# gpuir lab report: one file with every figure of the five papers, drawn or listed as missing, judged by the logs.

bats_require_minimum_version 1.5.0

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  export root build PATH="$build:$PATH"
}

setup() {
  cd "$BATS_TEST_TMPDIR" || exit
  load "$root/tests/support/helpers.bash"
}

# ---- helpers ----------------------------------------------------------------------------------------------------

# sizes FOLDER RICE PFD LEVEL0 LEVEL1 LEVEL2 LEVEL4: a log of Ding's Figure 3
sizes() {
  mkdir -p "$1"
  {
    printf '# corpus: a <test> & more\nfigure\tseries\tx\ty\tunit\n'
    local name value i=2
    for name in rice pfd pfd-list:0 pfd-list:1 pfd-list:2 pfd-list:4; do
      value=${!i}
      printf 'ding-fig3\tsize\t%s\t%s\tbytes/docID\n' "$name" "$value"
      i=$((i + 1))
    done
  } >"$1/codecs.tsv"
}

# plain FILE [PATTERN]: its text without marks, a line for each claim of an article; those with the pattern
plain() {
  python3 - "$1" "${2-}" <<'END'
import html, re, sys
page = open(sys.argv[1], encoding="utf-8").read()
for claim in re.findall(r'<div class="claim c(\d)">(.*?)</div>', page, re.S):
    line = " ".join((claim[0] + " " + html.unescape(re.sub("<[^>]*>", " ", claim[1]))).split())
    if re.search(sys.argv[2], line):
        print(line)
END
}

# ---- what stands in it --------------------------------------------------------------------------------------------

@test "formulas over charts give what they should" {
  prints '' "$build/tests/e2e/formula"
}

@test "the committed logs make one well-formed file that refers to nothing outside" {
  gpuir lab report "$root"/tools/results/lab-{web,dict} "$root/tools/results/lab" -o report.html
  python3 - "$root/tools/lab/claims.c" <<'END'
import html.parser, re, sys
page = open("report.html", encoding="utf-8").read()
void = {"meta", "br", "hr", "img", "link", "input", "wbr"}

class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.tags, self.drawn = [], [], [], set(), {}
    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        for name, value in attributes:
            assert name not in ("src", "srcset", "xlink:href", "onclick", "onload", "style"), (tag, name)
            if name == "id":
                self.ids.append(value)
            if name == "href":
                self.links.append(value)
        if tag == "article":
            self.article = dict(attributes).get("id")
        if tag == "svg" and self.article:
            self.drawn[self.article] = self.drawn.get(self.article, 0) + 1
        if tag not in void:
            self.open.append(tag)
    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)
    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (self.getpos(), tag, self.open[-3:])
        self.open.pop()

reader = Reader()
reader.feed(page)
assert not reader.open, reader.open
assert not reader.tags & {"script", "link", "img", "iframe", "object", "embed", "base", "image", "use"}, reader.tags
assert len(reader.ids) == len(set(reader.ids)), "an id stands twice"
for link in reader.links:
    assert link.startswith("#") and link[1:] in reader.ids, link
for outside in ("http:", "https:", "//", "url(", "@import", "@font-face"):
    assert outside not in re.sub(r"<dl>.*?</dl>", "", page, flags=re.S), outside
assert page.count("<style>") == 1 and "prefers-color-scheme:dark" in page
assert "nan" not in re.findall(r'd="[^"]*"', page)

table = open(sys.argv[1], encoding="utf-8").read()
places = re.findall(r'^    \{"([\w.-]+)",\s*"(?:ding|ao|griffin|qs|tatikonda)", "((?:Fig|Tab|Sec)[^"]*)"', table, re.M)
assert len(places) > 55, len(places)
for place, _ in places:
    drawn, missing = place in reader.drawn, "missing-" + place in reader.ids
    assert drawn != missing, (place, drawn, missing)
for place in "ding-fig3 ding-table2 ao-fig1 ao-table3 griffin-fig8 qs-fig14".split():
    assert place in reader.drawn, place
claims = set(re.findall(r'^    \{"([\w.-]+)/[\w-]+",\s*"', table[table.index("claims_claims[]"):], re.M))
assert {place for place, _ in places if not place.endswith(("drawings", "table6"))} == claims, claims
END
}

@test "claims are judged by the values, log by log" {
  sizes small 0.5 0.9 1.0 0.8 0.79 0.78
  sizes large 0.9 0.8 0.7 0.6 0.5 0.4
  gpuir lab report A=small B=./large/ -o report.html
  [ "$(plain report.html smaller.than.every)" = "1 The paper Rice codes are smaller than every PForDelta. Here: \
held in part ✓ A bytes a docID: rice 0.500, smallest rice 0.500 ✗ B bytes a docID: rice 0.900, smallest pfd-list:4 0.400 \
$(plain report.html smaller.than.every | grep -o 'Why.*')" ]
  [[ $(plain report.html 'Without recursion') == '1 '*'✓ A pfd 0.900, pfd-list at level 0 1.000, at level 1 0.800 ✗ B'* ]]
  [[ $(plain report.html 'More levels') == '1 '*'✓ A'*'✗ B'* ]]
  gpuir lab report small -o report.html
  [[ $(plain report.html smaller.than.every) == '0 '*'✓ small/codecs'* ]]
  gpuir lab report large -o report.html
  [[ $(plain report.html smaller.than.every) == '2 '*'✗ large/codecs'* ]]
  # a value that the test needs is missing, so it is not judged, and what is known is shown
  sed -i '/pfd-list:0/d' small/codecs.tsv
  gpuir lab report small -o report.html
  [[ $(plain report.html 'Without recursion') == '4 '*'– small/codecs pfd 0.900, pfd-list at level 0 -, at level 1 0.800'* ]]
}

# rates FILE GPU CORE [GPU-LEAST GPU-MOST]: of Ding's Figure 4, on short lists
rates() {
  { printf 'figure\tseries\tx\ty\tunit\tmin\tmax\tn\n'
    printf 'ding-fig4\tpfd-list/GPU\t64\t%s\tM/s\t%s\t%s\t3\n' "$2" "${4:-$2}" "${5:-$2}"
    printf 'ding-fig4\tpfd-list\t64\t%s\tM/s\t%s\t%s\t3\n' "$3" "$3" "$3"; } >"$1"
}

# verdict LOG CLAIM: of all logs that decide
verdict() {
  gpuir lab report -o v.tsv "$1"
  awk -F '\t' -v c="$2" '$1 == c { print $6; exit }' v.tsv
}

@test "a claim whose interval crosses its threshold is open; one log that fails it outweighs one that is open" {
  mkdir logs
  rates logs/a.tsv 50 100
  [ "$(verdict logs ding-fig4/short)" = held ]
  rates logs/a.tsv 90 100 # each was measured once, 12 % either way
  [ "$(verdict logs ding-fig4/short)" = open ]
  rates logs/a.tsv 80 100 40 87.9
  [ "$(verdict logs ding-fig4/short)" = held ]
  rates logs/a.tsv 80 100 40 88.1
  [ "$(verdict logs ding-fig4/short)" = open ]
  rates logs/a.tsv 150 100
  [ "$(verdict logs ding-fig4/short)" = 'did not hold' ]
  rates logs/b.tsv 90 100
  [ "$(verdict logs ding-fig4/short)" = 'did not hold' ]
  rates logs/a.tsv 50 100
  [ "$(verdict logs ding-fig4/short)" = open ]
  rates logs/c.tsv 150 100
  [ "$(verdict logs ding-fig4/short)" = 'held in part' ]
}

@test "a formula is over one file: rates of two runs are not mixed" {
  mkdir logs
  local at
  # the highest rates that five seeds hold, and the ends of their interval
  for at in 'a parallel 900 880 920' 'a gpu 500 490 510' 'a cpu 300 290 310' 'b parallel 100 90 110'; do
    read -r file mode y low high <<<"$at"
    [ -f "logs/$file.tsv" ] || printf '# plot\tding-fig7-held\tbars\t\tt\tx\ty\t\nfigure\tseries\tx\ty\tunit\tmin\tmax\tn\n' \
      >"logs/$file.tsv"
    printf 'ding-fig7-held\theld\t%s\t%s\tq/s\t%s\t%s\t5\n' "$mode" "$y" "$low" "$high" >>"logs/$file.tsv"
  done
  [ "$(verdict logs ding-fig7/both)" = held ]
  printf 'ding-fig7-held\theld\t%s\t500\tq/s\t490\t510\t5\n' cpu gpu >>logs/b.tsv
  [ "$(verdict logs ding-fig7/both)" = 'held in part' ]
  sed -i 's|parallel\t900\tq/s\t880|parallel\t900\tq/s\t810|' logs/a.tsv # the interval crosses the sum's
  rm logs/b.tsv
  [ "$(verdict logs ding-fig7/both)" = open ]
}

@test "logs that a claim names decide it, if they are there" {
  mkdir -p results/schedulers-more
  cp "$root/tools/results/schedulers-more/"ding-{part,web-57}.tsv results/schedulers-more
  [ "$(verdict results/schedulers-more ding-fig7/memory)" = 'did not hold' ] # 30 %; the other log has 100
  mv results mine
  [ "$(verdict mine/schedulers-more ding-fig7/memory)" = 'held in part' ]
}

@test "verdicts.tsv and figures.tsv are what the committed logs give, and a changed digit shows in them" {
  cp -r "$root/tools/results" .
  logs() { # as LAB_LOGS of the Makefile
    sed -n '/^LAB_LOGS/,/^$/p' "$root/Makefile" | grep -o '\blab[a-z-]*\|schedulers[a-z-]*\|tatikonda-[a-z]\+' | sort -u |
      sed 's|^|results/|'
    echo results/tatikonda*.tsv
  }
  # shellcheck disable=SC2046 # names without blanks
  gpuir lab report -o v.tsv $(logs)
  cmp v.tsv results/verdicts.tsv
  RESULTS=results python3 "$root/tools/scripts/figures.py" --check
  # a digit that decides
  grep -q $'^ding-fig3/rice\t.*\tdid not hold\tlab/codecs' results/verdicts.tsv
  sed -i '/^ding-fig3\tsize\trice\t/s/0\.8/0.1/g' results/lab/codecs.tsv
  # shellcheck disable=SC2046
  gpuir lab report -o v.tsv $(logs)
  grep -q $'^ding-fig3/rice\t.*\theld in part\tlab/codecs' v.tsv
  # any other digit
  sed -i '0,/^griffin-fig7\t/s/^\(griffin-fig7\t[^\t]*\t[^\t]*\t\)/\19/' results/lab-web/search.tsv
  run env RESULTS=results python3 "$root/tools/scripts/figures.py" --check
  [ "$status" -eq 1 ]
  [[ $output == *'only in the logs: griffin-fig7'* && $output == *'only in the logs: ding-fig3'* ]]
}

@test "figures.py --ages tells how many commits each log is old, and of unknown commits nothing" {
  git -C "$root" rev-parse HEAD >/dev/null 2>&1 || skip "no history"
  mkdir results
  printf '# head\nid\tlog\trows\tcrc32\tcommit\tcommand\na\tnew.tsv\t1\t0\t%s\t-\nb\tlost.tsv\t1\t0\t0000000\t-\nb\tbare.tsv\t1\t0\t-\t-\n' \
    "$(git -C "$root" rev-parse HEAD)" >results/figures.tsv
  RESULTS=results run python3 "$root/tools/scripts/figures.py" --ages
  [ "$status" -eq 0 ]
  [ "${lines[1]}" = $'-\tbare.tsv\t-' ]
  [ "${lines[2]}" = $'-\tlost.tsv\t0000000' ]
  [[ ${lines[3]} == $'0\tnew.tsv\t'* ]]
}

@test "verdicts come from one rule: scripts and logs have no word of their own" {
  run ! grep -rlE '\b(not )?reproduced\b' "$root"/tools/scripts "$root"/tools/results --include='*.sh' --include='*.txt'
}

@test "every log of the laboratory has a label in words" {
  # shellcheck disable=SC2046
  gpuir lab report -o v.html $(sed -n '/^LAB_LOGS/,/^$/p' "$root/Makefile" |
    grep -o '\blab[a-z-]*\|schedulers[a-z-]*\|tatikonda-[a-z]\+' | sort -u | sed "s|^|$root/tools/results/|") \
    "$root"/tools/results/tatikonda*.tsv
  run ! grep -E '<summary>(lab|schedulers|tatikonda)[a-z-]*(/[a-z0-9-]+)?( <code>|</summary>)' v.html
}

@test "heads of logs are quoted as text, and other charts stand behind those of the papers" {
  sizes logs 0.5 0.9 1.0 0.8 0.79 0.78
  printf 'figure\tseries\tx\ty\tunit\nother<b>\ta\t1\t2\tms\n' >logs/bad.tsv
  fails 1 "logs/bad.tsv: line 2: the figure 'other<b>' cannot name a file" gpuir lab report logs -o report.html
  printf 'figure\tseries\tx\ty\tunit\nother\ta<b>\t1\t2\tms\n' >logs/bad.tsv
  gpuir lab report logs -o report.html
  grep -q '<dd>corpus: a &lt;test&gt; &amp; more</dd>' report.html
  grep -q '<th scope="col">a&lt;b&gt;</th>' report.html
  [ "$(grep -c 'a<b>' report.html)" -eq 0 ]
  sed -n '/id="other"/,/id="logs"/p' report.html | grep -q '<h3>other</h3>'
}

@test "the folder build/lab is the default, and the same logs give the same bytes" {
  sizes build/lab 0.5 0.9 1.0 0.8 0.79 0.78
  prints '' gpuir lab report -o a.html
  prints '' gpuir lab report build/lab/ -o b.html
  cmp a.html b.html
  prints '' gpuir lab report build/lab/codecs.tsv -o b.html # a file alone
  cmp a.html b.html
  prints '' gpuir lab report 'A <b>=build/lab/codecs.tsv' -o b.html
  grep -q '<summary>A &lt;b&gt; <code>lab/codecs.tsv</code></summary>' b.html
}

# ---- what is refused ------------------------------------------------------------------------------------------------

@test "misuse, missing and damaged files are refused" {
  sizes logs 0.5 0.9 1.0 0.8 0.79 0.78
  : >no.txt
  fails 2 '-o FILE.html or -o FILE.tsv is missing' gpuir lab report logs
  fails 2 '--sample' gpuir lab report --sample 3 -o report.html logs
  fails 1 'none: No such file' gpuir lab report none -o report.html
  fails 1 'no.txt: the name does not end in .tsv' gpuir lab report no.txt -o report.html
  mkdir empty
  fails 1 'empty: no TSV files' gpuir lab report logs empty -o report.html
  fails 1 'none/report.html: No such file' gpuir lab report logs -o none/report.html
  printf 'ding-fig3\tsize\tx\n' >>logs/codecs.tsv
  fails 1 'logs/codecs.tsv: line 9: 3 columns' gpuir lab report logs -o report.html
  [ ! -e report.html ]
  run gpuir lab report --help
  [ "$status" -eq 0 ]
  [[ $output == *'gpuir lab report'* ]]
}

# ---- what researchers type and add ---------------------------------------------------------------------------------

@test "the reader of logs in the laboratory's README reads every log" {
  cd "$root"
  sed -n '/^```python$/,/^```$/p' tools/lab/README.md | sed '/^```/d' >"$BATS_TEST_TMPDIR/reader.py"
  [ "$(grep -c . "$BATS_TEST_TMPDIR/reader.py")" -le 10 ]
  cat >>"$BATS_TEST_TMPDIR/reader.py" <<'END'
import glob
for path in glob.glob("tools/results/lab*/*.tsv") + ["tools/results/verdicts.tsv", "tools/results/figures.tsv"]:
    head, rows = read(path)
    assert head and rows and all(None not in row and None not in row.values() for row in rows), path
head, rows = read("tools/results/lab/codecs.tsv")
assert [float(r["y"]) for r in rows if (r["figure"], r["x"]) == ("qs-table1", "rice")][0] > 6
assert any(line.startswith("machine: ") for line in head)
END
  python3 "$BATS_TEST_TMPDIR/reader.py"
}

@test "each part of the papers and each objection has an answer: with a commit or file that is there, and a reason" {
  cd "$root"
  python3 - <<'PY'
import os, re, subprocess
text = open("tools/lab/ANSWERS.md", encoding="utf-8").read()
answers = {"built", "in part", "mended", "refuted", "open", "not built"}
history = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, check=False).returncode == 0
parts = ""
for line in text.splitlines():
    if not line.startswith("| ") or line.startswith(("| part |", "| objection |")):
        continue
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert len(cells) == 4, line
    part, answer, where, why = cells
    assert answer in answers, line
    assert len(why.split()) >= 2 and why.endswith((".", ".)")), line
    files, commits = re.findall(r"`([^`]+)`", where), re.findall(r"\b[0-9a-f]{7}\b", where)
    assert files or commits, line
    assert all(os.path.exists(file) for file in files), line
    for commit in commits if history else []:
        assert not subprocess.run(["git", "merge-base", "--is-ancestor", commit, "HEAD"], check=False).returncode, line
    parts += f"\n{part}"
claims = open("tools/lab/claims.c", encoding="utf-8").read()
papers = {"ding": "Ding 2009", "ao": "Ao 2011", "griffin": "Griffin 2018", "qs": "Li 2014", "tatikonda": "Tatikonda 2011"}
places = re.findall(r'^    \{"[\w.-]+",\s*"(ding|ao|griffin|qs|tatikonda)", "((?:Fig|Tab|Sec)[^"]*)"', claims, re.M)
assert len(places) > 55, len(places)
for paper, place in places:
    section = text.split(f"\n## {papers[paper]}\n")[1].split("\n## ")[0]
    rows = "\n".join(row.split("|")[1] for row in section.splitlines() if row.startswith("| "))
    kind, numbers = place.split(" ", 1)
    number = re.escape(numbers)
    assert re.search(rf"\b{kind}s? [^:\n]*(?<![\w.]){number}(?![\w.])", rows), (paper, place)
PY
}

@test "manuals.py: pages without marks, links between pages that are there, dates of the files" {
  mkdir -p in/a in/b
  printf '<html><script>no()</script><p>Tea &amp; <b>milk</b>\n<a href="../b/two.html#part">two</a> <a href=none.html>none</a>' >in/a/one.html
  printf '<p>two <a href="https://example.org/a/one.html">out</a> <a class=x href=../a/one.html>in</a>' >in/b/two.html
  printf '<style>p{}</style><!-- no word -->' >in/b/empty.html
  ln -s two.html in/b/three.html
  touch -d @1000000000 in/a/one.html
  prints '' "$root/tools/scripts/manuals.py" in out
  prints $'a/one.html\tTea & milk two none\nb/two.html\ttwo out in' cat out.tsv
  prints $'a/one.html\tb/two.html\nb/two.html\ta/one.html' cat out.links
  prints $'a/one.html\t1000000000' head -n 1 out.dates
  gpuir index -q --tsv --analyzer unicode out.tsv -o out.gpuir
  gpuir reorder -q --order score:out.dates out.gpuir dated.gpuir
  gpuir export -q dated.gpuir dated
  prints $'b/two.html\na/one.html' cat dated.documents
}

@test "tatikonda.sh measures uneven orders of a given index" {
  local tree=$BATS_TEST_TMPDIR/tree
  mkdir -p "$tree/tools" work
  cp -r "$root/tools/scripts" "$tree/tools"
  ln -s "$build/gpuir" work/gpuir
  gpuir index -q --tsv --analyzer unicode "$root/tests/data/wordnet.tsv" -o wordnet.gpuir
  printf 'a of\nthe of\n' >topics
  INDEX=$PWD/wordnet.gpuir INDEX_QUERIES=$PWD/topics POOL_WORK=$PWD/work CORES='1 2' SURVEY=1 QUERIES_N=20 \
    FIGURES=uneven ORDERS='path random=random:1' "$tree/tools/scripts/tatikonda.sh" out >/dev/null
  [ "$(awk -F '\t' '/^tatikonda-uneven/ && NF == 8 { print $1, $2, $3 }' "$tree/out/tatikonda.tsv" | sort -u | wc -l)" -eq 8 ]
  [ "$(grep -c '^# plot' "$tree/out/tatikonda.tsv")" -eq 2 ]
  grep -q '^# random, FGQP-2: 2 queries by one thread, the median of 1 times each' "$tree/out/tatikonda.tsv"
  INDEX=$PWD/wordnet.gpuir INDEX_QUERIES=$PWD/topics POOL_WORK=$PWD/work CORES='1 2' QUERIES_N=20 ROUNDS=3 \
    FIGURES=balance ORDERS='path random=random:1' "$tree/tools/scripts/tatikonda.sh" out >/dev/null
  # four policies in two orders, twice: the median of three rounds, between the least and the greatest
  awk -F '\t' '/^tatikonda-balance/ { n++; if ($8 != 3 || $6 > $4 || $4 > $7 || $4 <= 0) exit 1 } END { exit n != 16 }' \
    "$tree/out/tatikonda.tsv"
}

# unnamed FOLDER: what CONTRIBUTING.md asks of a codec and the tree in the folder lacks, a line each
unnamed() {
  python3 - "$1" <<'END'
import re, sys
def text(name):
    return open(sys.argv[1] + "/" + name, encoding="utf-8").read()
ids = re.findall(r"GPUIR__ID_\w+", re.search(r"enum \{[^}]*GPUIR__ID_BP128[^}]*\}", text("tools/header/18-codecs.h"))[0])
rows = re.findall(r'ROW\("([\w-]+)", +(\w+), +(\d), .*?, +(\d*), +GPUIR__\w+\)', text("tools/header/23-codings.h"))
assert len(rows) >= 18, rows
for name, id_, docids, cost in rows:
    places = {"second decoder": ("tests/support/naive.h", f'"{name}"')}
    if docids == "1":
        places |= {"help": ("tools/cli/help.c", name), "completion": ("tools/cli/complete.c", name),
                   "manual": ("tools/man/gpuir-index.1", name), "list": ("tools/lab/README.md", f"`{name}")}
    for what, (file, word) in places.items():
        if not re.search(r"(?<![\w-])" + re.escape(word) + r"(?![\w-])", text(file)):
            print(f"{name}: {what}")
    if id_ not in ids:
        print(f"{name}: id")
    if not cost or not 20 < int(cost) < 1000:
        print(f"{name}: cost")
END
}

# add_toy FOLDER [decoder]: adds the codec of CONTRIBUTING.md to the tree in the folder, with its second decoder or not
add_toy() {
  python3 - "$@" <<'END'
import re, sys
folder, decoder = sys.argv[1] + "/", len(sys.argv) > 2
text = open(folder + ".github/CONTRIBUTING.md", encoding="utf-8").read()
toy = dict(re.findall(r"^```c toy (\w+)\n(.*?)^```$", text, re.M | re.S))
def edit(name, pattern, new):
    old = open(folder + name, encoding="utf-8").read()
    found, n = re.subn(pattern, lambda m: new.replace("\\0", m[0]), old, count=1, flags=re.M)
    assert n == 1, (name, pattern)
    open(folder + name, "w", encoding="utf-8").write(found)
edit("tools/header/18-codecs.h", r"^GPUIR__ENCODES\(gpuir__vbyte_encode\).*\n", "\\0\n" + toy["codec"])
edit("tools/header/18-codecs.h", r"GPUIR__ID_HSLRC$", "\\0,\n  GPUIR__ID_NIBBLE")
edit("tools/header/23-codings.h", r"^#define GPUIR__VBYTE_DOCIDS", toy["functions"] + "\\0")
edit("tools/header/23-codings.h", r'^  ROW\("pfd", ', toy["row"] + "\\0")
for name, word in (("tools/cli/help.c", "vbyte, pfd"), ("tools/cli/complete.c", "vbyte pfd"),
                   ("tools/man/gpuir-index.1", "pfd , newpfd"), ("tools/lab/README.md", "`pfd`, `newpfd`")):
    edit(name, re.escape(word), word.replace("pfd", "nibble", 1) +
         {"vbyte, pfd": ", pfd", "vbyte pfd": " pfd", "pfd , newpfd": " , pfd", "`pfd`, `newpfd`": ", `pfd`"}[word])
edit("tests/unit/18_codecs.c", r'part_codecs\[\] = \{"vbyte"', 'part_codecs[] = {"nibble"')
edit("tests/unit/18_codecs.c", r"^  return cmocka_run", '  cmocka_set_skip_filter("test_lanes"); /* it has no lane of a GPU */\n\\0')
edit("tests/unit/23_codings.c", r'tested\[\] = \{"vbyte"', '\\0, "nibble"')
if decoder:
    edit("tests/support/naive.h", r"^/\* Decodes a list to out", toy["decoder"] + "\n\\0")
    edit("tests/support/naive.h", r'^    naive_vbyte\(&r, out\);\n', '\\0  } else if (!strcmp(c, "nibble")) {\n    naive_nibble(&r, out);\n')
END
}

@test "a codec is named everywhere that CONTRIBUTING.md asks for, and a toy that is only in the table is found out" {
  cd "$root"
  prints '' unnamed .
  mkdir -p "$BATS_TEST_TMPDIR/copy/tests/support"
  cp -r tools "$BATS_TEST_TMPDIR/copy"
  cp tests/support/naive.h "$BATS_TEST_TMPDIR/copy/tests/support"
  cd "$BATS_TEST_TMPDIR/copy"
  sed -i 's|^  ROW("pfd", .*|  ROW("nibble",    GPUIR__ID_NIBBLE, 1, 1, NONE,    0,                   , GPUIR__NIBBLE) \\\n&|' \
    tools/header/23-codings.h
  prints 'nibble: second decoder
nibble: help
nibble: completion
nibble: manual
nibble: list
nibble: id
nibble: cost' unnamed .
}

@test "the toy codec of CONTRIBUTING.md, in a copy of the tree, compiles, is named everywhere and decodes as its picture says" {
  local tree=$BATS_TEST_TMPDIR/tree way
  mkdir -p "$tree"
  cp -r "$root"/{.github,tools,tests} "$tree"
  mkdir "$tree/private"
  printf '#define GPUIR_IMPLEMENTATION\n#include "gpuir.h"\n' >"$tree/private/private.h"
  add_toy "$tree"
  prints 'nibble: second decoder' unnamed "$tree"
  rm -r "$tree"/{.github,tools,tests}
  cp -r "$root"/{.github,tools,tests} "$tree"
  add_toy "$tree" decoder
  prints '' unnamed "$tree"
  cat "$tree"/tools/header/*.h >"$tree/gpuir.h"
  (cd "$tree" && cc -std=c99 -O0 -Wall -Wextra -Wno-unused -I. -Iprivate -Itests/support \
    -o codecs tests/unit/18_codecs.c -lcmocka -lm -pthread)
  (cd "$tree" && ./codecs)
  for way in help complete; do cc -std=c99 -fsyntax-only -I"$tree" "$tree/tools/cli/$way.c"; done
}
