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
  gpuir lab report Web="$root/tools/results/lab-web" Dictionary="$root/tools/results/lab-dict" \
    Linux="$root/tools/results/lab" -o report.html
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
claims = set(re.findall(r'^    \{"([\w.-]+)",\s*"', table[table.index("claims_claims[]"):], re.M))
assert {place for place, _ in places if not place.endswith(("drawings", "table6"))} == claims, claims
END
}

@test "claims are judged by the values, collection by collection" {
  sizes small 0.5 0.9 1.0 0.8 0.79 0.78
  sizes large 0.9 0.8 0.7 0.6 0.5 0.4
  gpuir lab report A=small B=./large/ -o report.html
  [ "$(plain report.html smaller.than.every)" = "1 The paper Rice codes are smaller than every PForDelta. Here \
✓ A bytes a docID: rice 0.500, smallest rice 0.500 ✗ B bytes a docID: rice 0.900, smallest pfd-list:4 0.400 \
$(plain report.html smaller.than.every | grep -o 'Why.*')" ]
  [[ $(plain report.html 'Without recursion') == '1 '*'✓ A pfd 0.900, pfd-list at level 0 1.000, at level 1 0.800 ✗ B'* ]]
  [[ $(plain report.html 'More levels') == '1 '*'✓ A'*'✗ B'* ]]
  gpuir lab report small -o report.html
  [[ $(plain report.html smaller.than.every) == '0 '*'✓ small'* ]]
  gpuir lab report large -o report.html
  [[ $(plain report.html smaller.than.every) == '2 '*'✗ large'* ]]
  # a value that the test needs is missing, so it is not judged, and what is known is shown
  sed -i '/pfd-list:0/d' small/codecs.tsv
  gpuir lab report small -o report.html
  [[ $(plain report.html 'Without recursion') == '3 '*'– small pfd 0.900, pfd-list at level 0 -, at level 1 0.800'* ]]
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

@test "files of one collection that have a figure in common make one chart of it, unless their series are the same" {
  mkdir load
  printf '# plot\tgriffin-fig14\tbars\t\tLatency\tterms\tms\t\nfigure\tseries\tx\ty\tunit\n' |
    tee load/a.tsv load/b.tsv >load/c.tsv
  printf 'griffin-fig14\tGriffin/transfer\t%s\t%s\tms\n' 2 5 3 10 >>load/a.tsv
  printf 'griffin-fig14\tCPU/transfer\t%s\t%s\tms\n' 3 40 '>6' 50 >>load/b.tsv
  printf 'griffin-fig14\tGriffin-GPU/transfer\t%s\t%s\tms\n' 3 13 >>load/c.tsv
  gpuir lab report load -o report.html
  [ "$(grep -c '<svg' report.html)" -eq 1 ]
  [[ $(plain report.html '10 times as fast') == '0 '*'✓ load ms of 3 terms, lists sent for each query: Griffin 10.0, CPU 40.0, GPU 13.0;'* ]]
  python3 - <<'END'
import html, re
page = open("report.html", encoding="utf-8").read()
rows = re.findall(r"<tr>(.*?)</tr>", page[page.index('class="values"'):page.index("</figure>")])
cells = [[html.unescape(c) for c in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in rows]
assert cells == [["terms", "Griffin/transfer", "CPU/transfer", "Griffin-GPU/transfer"], ["2", "5", "", ""],
    ["3", "10", "40", "13"], [">6", "", "50", ""]], cells
END
  cp load/a.tsv load/d.tsv # the same series: a chart of its own, with the names of the files
  gpuir lab report load -o report.html
  [ "$(grep -c '<svg' report.html)" -eq 2 ]
  grep -q '<figcaption class="dim"><code>a.tsv</code>' report.html
  grep -q '<figcaption class="dim"><code>d.tsv</code>' report.html
}

@test "the folder build/lab is the default, and the same logs give the same bytes" {
  sizes build/lab 0.5 0.9 1.0 0.8 0.79 0.78
  prints '' gpuir lab report -o a.html
  prints '' gpuir lab report lab=build/lab -o b.html
  cmp a.html b.html
  prints '' gpuir lab report lab=build/lab/codecs.tsv -o b.html # a file alone
  cmp a.html b.html
  prints '' gpuir lab report build/lab/codecs.tsv -o b.html
  grep -q '<dt>codecs.tsv, <code>codecs.tsv</code></dt>' b.html
}

# ---- what is refused ------------------------------------------------------------------------------------------------

@test "misuse, missing and damaged files are refused" {
  sizes logs 0.5 0.9 1.0 0.8 0.79 0.78
  fails 2 '-o FILE.html is missing' gpuir lab report logs
  fails 2 '--sample' gpuir lab report --sample 3 -o report.html logs
  fails 1 'none: No such file' gpuir lab report none -o report.html
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
