#!/usr/bin/env bats
# gpuir lab plot: charts are well-formed SVG that stands alone, show what their TSV holds, and bad files are refused.

bats_require_minimum_version 1.5.0

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  export root build PATH="$build:$PATH"
}

setup() {
  cd "$BATS_TEST_TMPDIR" || exit
}

# ---- helpers ----------------------------------------------------------------------------------------------------

# lab_file NAME LINE...: a TSV file of five columns; a line is written by printf %b
lab_file() {
  local name=$1
  shift
  { echo '# command: a test'; printf 'figure\tseries\tx\ty\tunit\n'; printf '%b\n' "$@"; } >"$name"
}

# refused CAUSE [FILE]: exit status 1, one message with the cause, no picture
refused() {
  rm -rf out
  run --separate-stderr gpuir lab plot -o out "${2:-bad.tsv}"
  # shellcheck disable=SC2154 # stderr is set by run
  if [ "$status" -ne 1 ] || [ -n "$output" ] || [[ $stderr != *"$1"* ]]; then
    printf 'status: %s\noutput: %s\nstderr: %s\nlacks: %s\n' "$status" "$output" "$stderr" "$1"
    return 1
  fi
  [ -z "$(ls out)" ]
}

# looks FILE: the classes of its lines, in order of appearance, each once
looks() { grep -o 'class="l s[0-6]"' "$1" | awk '!seen[$0]++' | grep -o 's[0-6]' | paste -sd ' '; }

# ---- what is drawn ----------------------------------------------------------------------------------------------

@test "the charts of all committed logs are well-formed and refer to nothing outside" {
  for log in "$root"/tools/results/lab*/; do
    gpuir lab plot -o "$(basename "$log")" "$log"
  done
  python3 - <<'END'
import glob, re, xml.etree.ElementTree as tree
files = glob.glob("*/*.svg")
assert len(files) > 80, len(files)
for name in files:
    text = open(name, encoding="utf-8").read()
    top = tree.fromstring(text)
    ns = "{http://www.w3.org/2000/svg}"
    assert top.tag == ns + "svg", name
    assert {e.tag for e in top.iter()} <= {ns + t for t in "svg title desc style rect text path circle".split()}, name
    for bad in ("href", "url(", "@import", "@font-face", "<script", "nan", "inf "):
        assert bad not in text.replace("http://www.w3.org/2000/svg", ""), (name, bad)
    assert "prefers-color-scheme:dark" in text, name
    width, height = float(top.get("width")), float(top.get("height"))
    for e in top.iter():
        numbers = [float(v) for v in re.findall(r"-?[0-9.]+", e.get("d") or "")]
        for x, y in zip(numbers[::2], numbers[1::2]):
            assert -1 <= x <= width + 1 and -1 <= y <= height + 1, (name, e.get("d"))
        for k in ("x", "y", "cx", "cy"):
            assert 0 <= float(e.get(k, 0)) <= max(width, height), (name, k)
END
}

@test "the pictures of the READMEs are those of the committed logs" {
  (cd "$root" && ls tools/results/*.svg tools/results/*/*.svg) >names
  [ "$(wc -l <names)" -ge 5 ]
  while read -r picture; do
    dir=$(dirname "$picture") name=$(basename "$picture" .svg)
    mkdir -p "out/$dir"
    gpuir lab plot -o "out/$dir" --figures "$name" "$root/$dir"
    cmp "$root/$picture" "out/$picture" || { echo "$picture is older than its log: make figures draws it"; return 1; }
  done <names
}

@test "the same file gives the same bytes, and the laboratory's own chart is that of its file" {
  gpuir index -q --tsv --analyzer unicode "$root/tests/data/wordnet.tsv" -o wordnet.gpuir
  gpuir lab codecs --backend cpu --sample 2 --repeat 1 --figures sizes,ding-fig4 -o lab wordnet.gpuir >/dev/null
  gpuir lab plot -o once lab
  gpuir lab plot -o twice lab/codecs.tsv
  [ "$(ls once)" = "$(printf 'ding-fig4.svg\nsizes.svg')" ]
  for figure in sizes ding-fig4; do
    cmp "once/$figure.svg" "twice/$figure.svg"
    cmp "once/$figure.svg" "lab/$figure.svg"
  done
  rm lab/*.svg
  gpuir lab plot --figures sizes lab/codecs.tsv # beside its file
  [ "$(ls lab)" = "$(printf 'codecs.tsv\nsizes.svg')" ]
}

@test "texts are escaped, and bytes that are no UTF-8 are replaced" {
  { printf '# plot\tf\tbars\t\t<b> & "quoted" \x27title\x27\tx\t<y>\t\n# corpus: a\x01b \xff \xed\xa0\x80 ]]> &amp;\n'
    printf 'figure\tseries\tx\ty\tunit\nf\t<s>\t<&>\t1\tu\nf\tt\t\xc3\xa9\xc3\t2\tu\n'; } >a.tsv
  gpuir lab plot a.tsv
  python3 - <<'END'
import xml.etree.ElementTree as tree
texts = [e.text for e in tree.parse("f.svg").iter() if e.text]
assert '<b> & "quoted" \'title\'' in texts, texts
for text in ("<y>", "<s>", "<&>", "\u00e9\ufffd"):
    assert text in texts, (text, texts)
assert any("corpus: a b \ufffd \ufffd\ufffd\ufffd ]]> &amp;" in t for t in texts), texts
END
}

@test "a caption tells the lists, the machine and the code, each once; commands stay in the file that it names" {
  { for _ in 1 2 3; do printf '# corpus: some texts\n# command: gpuir lab a very long line of options\n'; done
    printf '# machine: a processor\n# version: 1\n# corpus: %0500d\n' 0
    printf '# plot\tf\tlines\t\tt\tx\ty\t\nfigure\tseries\tx\ty\tunit\nf\tboth\t1\t2\tu\n'; } >a.tsv
  gpuir lab plot a.tsv
  [ "$(grep -c 'class="caption"' f.svg)" -eq 1 ]
  grep -q 'class="caption">corpus: some texts · machine: a processor · version: 1 · commands and more: a.tsv<' f.svg
}

@test "a line has one point a place, the mean of its runs, from left to right; names are in words" {
  { printf '# plot\tf\tlines\t\tt\tx\ty\t\nfigure\tseries\tx\ty\tunit\n'
    printf 'f\tparallel/p99\t%s\t%s\tu\n' 3 5 1 2 3 7 2 4 3 9; } >a.tsv
  gpuir lab plot a.tsv
  [ "$(grep -o 'class="l s0" d="[^"]*"' f.svg | grep -o '[ML]' | paste -sd '')" = MLL ]
  grep -o 'class="l s0" d="[^"]*"' f.svg | grep -o '[ML][0-9.]*' | tr -d ML | sort -gc
  grep -q '>both processors, 99th percentile</text>' f.svg
}

@test "at most five series are in colour: those that the file names, else the first ones" {
  for s in a b c d e f g h; do for x in 1 2 3; do printf 'f\t%s\t%s\t%s\tu\n' $s $x $((x * 2)); done; done >rows
  { printf '# plot\tf\tlines\t\tt\tx\ty\th,c,nothing\n'; printf 'figure\tseries\tx\ty\tunit\n'; cat rows; } >a.tsv
  gpuir lab plot a.tsv
  [ "$(looks f.svg)" = "s5 s1 s0" ]
  grep -q '<text[^>]*class="name f0">h</text>' f.svg
  grep -q '<text[^>]*class="name f1">c</text>' f.svg
  [ "$(grep -c '<text[^>]*class="small">[abdefg]</text>' f.svg)" -eq 6 ]
  { printf 'figure\tseries\tx\ty\tunit\n'; cat rows; } >a.tsv
  gpuir lab plot a.tsv
  [ "$(looks f.svg)" = "s5 s4 s3 s2 s1 s0" ]
  grep -q '<text[^>]*class="name f0">a</text>' f.svg
  sed -i 's/\tb\t/\tpaper\t/' a.tsv # what a paper printed is dashed and takes no colour
  gpuir lab plot a.tsv
  [ "$(looks f.svg)" = "s5 s6 s4 s3 s2 s1 s0" ]
  grep -q '<text[^>]*class="dim">paper</text>' f.svg
}

@test "labels at the ends of lines do not overlap" {
  for s in $(seq 60); do printf 'f\tseries-%s\t1\t5\tu\nf\tseries-%s\t2\t5.0%s\tu\n' "$s" "$s" "$s"; done >rows
  { printf 'figure\tseries\tx\ty\tunit\n'; cat rows; } >a.tsv
  gpuir lab plot a.tsv # of so many only those in colour have labels
  [ "$(grep -c '<text[^>]*>series-' f.svg)" -eq 5 ]
  { printf 'figure\tseries\tx\ty\tunit\n'; head -n 34 rows; } >a.tsv
  gpuir lab plot a.tsv
  python3 - <<'END'
import xml.etree.ElementTree as tree
top = tree.parse("f.svg").getroot()
labels = [e for e in top.iter() if (e.text or "").startswith("series-") and e.tag.endswith("text")]
assert len(labels) == 17, len(labels)
ys = sorted((float(e.get("y")), 14 if "name" in e.get("class") else 9.5) for e in labels)
assert all(b[0] - a[0] >= min(a[1], b[1]) - 1 for a, b in zip(ys, ys[1:])), ys
assert ys[0][0] > 0 and ys[-1][0] < float(top.get("height"))
END
}

@test "min and max make bands and whiskers; without them there are none" {
  printf 'figure\tseries\tx\ty\tunit\tmin\tmax\tn\nf\ta\t1\t2\tu\t1.5\t2.5\t3\nf\ta\t2\t3\tu\t3\t3\t3\n' >a.tsv
  gpuir lab plot a.tsv
  [ "$(grep -c 'class="band f0"' f.svg)" -eq 1 ]
  printf 'figure\tseries\tx\ty\tunit\tmin\tmax\tn\nf\ta\tone\t2\tu\t1.5\t2.5\t3\nf\ta\ttwo\t3\tu\t3\t3\t3\n' >a.tsv
  gpuir lab plot a.tsv
  [ "$(grep -c 'class="spread"' f.svg)" -eq 1 ]
  lab_file a.tsv 'f\ta\t1\t2\tu' 'f\ta\t2\t3\tu'
  gpuir lab plot a.tsv
  [ "$(grep -c 'class="band\|class="spread"' f.svg || true)" -eq 0 ]
}

@test "logarithmic axes end next to the data, and large numbers have a suffix" {
  { printf '# plot\tf\tlines\tlog-x,log-y\tt\tx\ty\t\n'
    printf 'figure\tseries\tx\ty\tunit\nf\ta\t1024\t3000\tu\nf\ta\t2000000\t80000\tu\n'; } >a.tsv
  gpuir lab plot a.tsv
  grep -o 'class="dim end">[^<]*' f.svg | sed 's/.*>//' | paste -sd ' ' >y
  grep -o 'class="dim mid">[^<]*' f.svg | sed 's/.*>//' | paste -sd ' ' >x
  [ "$(cat y)" = "2k 5k 10k 20k 50k 100k" ]
  [ "$(cat x)" = "10k 100k 1M x" ]
}

@test "a file of other columns tells by a comment which ones to draw, and - is no value" {
  printf '# plot\tpeers\tbars\tlog-y\tt\tengine\ttimes\t\tengine\tratio\tmode\n' >a.tsv
  printf 'engine\tmode\tratio\tmore\nA\tand\t2\tz\n' >>a.tsv
  printf 'A\tor\t4\tz\nB\tand\t-\tz\nB\tor\t8\tz\n' >>a.tsv
  gpuir lab plot a.tsv
  [ "$(grep -c '<rect class="f[01]"' peers.svg)" -eq 5 ] # three bars, two boxes of the key
  [ "$(grep -o 'class="value">[^<]*' peers.svg | sed 's/.*>//' | paste -sd ' ')" = "4.00 8.00 2.00" ]
}

# ---- what is refused --------------------------------------------------------------------------------------------

@test "bad rows are refused with the number of their line" {
  lab_file bad.tsv 'f\ta\t1\t2\tu' 'f\ta\t1\t2'
  refused 'bad.tsv: line 4: 4 columns, not 5'
  lab_file bad.tsv 'f\ta\t1\t2\tu\tmore'
  refused 'line 3: 6 columns, not 5'
  lab_file bad.tsv 'f\ta\t1\ttwo\tu'
  refused "line 3: y 'two' is no number"
  for y in nan inf 1e999 0x10 '' ' 1' 1,5; do
    lab_file bad.tsv "f\ta\t1\t$y\tu"
    refused "line 3: y '$y' is no number"
  done
  lab_file bad.tsv 'f\ta\t1\t1\tu' 'f\ta\tx\t1\tu'
  refused "line 4: x 'x' is no number"
  lab_file bad.tsv '../f\ta\t1\t1\tu'
  refused "line 3: the figure '../f' cannot name a file"
  for id in .f a/b '' 'a b' '\001'; do
    lab_file bad.tsv "$id\ta\t1\t1\tu"
    refused 'cannot name a file'
  done
  lab_file bad.tsv 'f\ta\t1\t1\t\000u'
  refused 'line 3: a NUL byte'
  lab_file bad.tsv ''
  refused 'line 3: 1 columns, not 5'
  printf 'figure\tseries\tx\ty\tunit\tmin\tmax\tn\nf\ta\t1\t2\tu\t3\t4\t1\n' >bad.tsv
  refused 'line 2: y is not between min and max'
  printf 'figure\tseries\tx\ty\tunit\tmin\nf\ta\t1\t2\tu\t3\n' >bad.tsv
  refused 'line 1: the columns are not figure, series, x, y, unit'
}

@test "logarithmic axes take positive numbers only" {
  printf '# plot\tf\tlines\tlog-y\tt\tx\ty\t\nfigure\tseries\tx\ty\tunit\nf\ta\t1\t0\tu\n' >bad.tsv
  refused 'line 3: y 0 is not positive'
  printf '# plot\tf\tlines\tlog-x\tt\tx\ty\t\nfigure\tseries\tx\ty\tunit\nf\ta\t-1\t5\tu\n' >bad.tsv
  refused 'line 3: x -1 is not positive'
}

@test "bad descriptions are refused with the number of their line" {
  description() { printf '%b\nfigure\tseries\tx\ty\tunit\nf\ta\t1\t5\tu\n' "$1" >bad.tsv; }
  description '# plot\tf\tlines\t\tt\tx'
  refused "line 1: a '# plot' line has 8 or 11 fields"
  description '# plot\tf\tpie\t\tt\tx\ty\t'
  refused "line 1: 'pie' is none of bars, lines, points"
  description '# plot\tf\tlines\tlog\tt\tx\ty\t'
  refused "line 1: 'log' is none of log-x, log-y and log-x,log-y"
  description '# plot\t../f\tlines\t\tt\tx\ty\t'
  refused "line 1: '../f' cannot name a file"
  printf '# plot\tf\tbars\t\tt\tx\ty\t\ta\tb\tc\na\tb\n1\t2\n' >bad.tsv
  refused "line 1: there is no column 'c'"
  printf '# plot\tf\tbars\t\tt\tx\ty\t\na\tb\n1\t2\n' >bad.tsv
  refused 'line 1: the columns of the chart are missing'
  printf '# plot\tf\tbars\t\tt\tx\ty\t\ta\tb\ta\na\tb\n1\t-\n' >bad.tsv
  refused 'no values for f'
}

@test "files that are empty, missing, without rows or too large for a chart are refused" {
  : >bad.tsv
  refused 'bad.tsv: no rows'
  lab_file bad.tsv 'f\ta\t1\t1\tu'
  sed -i 3d bad.tsv
  refused 'bad.tsv: no rows'
  refused 'nowhere.tsv: No such file' nowhere.tsv
  mkdir empty
  refused 'empty: no TSV files' empty
  printf 'a\tb\n1\t2\n' >empty/other.tsv # in a folder, other tables are passed over
  gpuir lab plot empty
  [ "$(ls empty)" = other.tsv ]
  { printf 'figure\tseries\tx\ty\tunit\n'; seq 201 | sed 's/^/f\ts/; s/$/\t1\t1\tu/'; } >bad.tsv
  refused 'line 202: more than 200 series'
  { printf 'figure\tseries\tx\ty\tunit\n'; seq 501 | sed 's/^/f\ts\tx/; s/$/\t1\tu/'; } >bad.tsv
  refused 'line 502: more than 500 texts'
  head -c 70000000 /dev/zero >bad.tsv
  refused 'bad.tsv: the file is larger than 64 MB'
}

@test "odd numbers make a chart all the same" {
  lab_file a.tsv 'f\ta\t1\t0\tu' 'g\ta\t1\t1e300\tu' 'g\ta\t2\t-1e300\tu' 'h\ta\tone\t-5\tu' 'h\ta\ttwo\t5\tu'
  gpuir lab plot -o out a.tsv
  for figure in f g h; do
    python3 -c 'import sys, xml.etree.ElementTree as t; t.parse(sys.argv[1])' "out/$figure.svg"
    run ! grep -q 'nan\|inf' "out/$figure.svg"
  done
}

@test "misuse and failures of writing" {
  run --separate-stderr gpuir lab plot --sample 3 a.tsv
  [ "$status" -eq 2 ]
  lab_file a.tsv 'f\ta\t1\t1\tu'
  : >file
  run --separate-stderr gpuir lab plot -o file a.tsv
  [ "$status" -eq 1 ]
  [[ $stderr == *'file/f.svg'* ]]
  run --separate-stderr gpuir lab plot --help
  [ "$status" -eq 0 ]
}
