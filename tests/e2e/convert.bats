#!/usr/bin/env bats
# Files that are markup for people: man pages, HTML, notebooks. Their text is indexed and shown, not the markup.

# shellcheck disable=SC2154 # build and here are set there
load ../support/texts

# text FILE: the text that is indexed of it
text() {
  gpuir index -q --analyzer ascii --no-names --store "$1" -o text.gpuir
  gpuir query --passages --tokens 0 text.gpuir "${2:-the}" | tail -n +2
}

@test "HTML: tags, scripts, styles, comments and attributes are no text; references are characters; the title comes first" {
  cat >a.html <<'END'
<!-- zebra --><!DOCTYPE html>
<html><head><style>.zebra{color:red}</style><script>if (a</b) zebra="</p>";</script><title>The page</title></head>
<body class="zebra" title="a > zebra"><p>caf&eacute; <b>in</b>side, 1 &lt; 2<br>second
<!-- zebra --> > zebra --><ul><li>one<li>two</ul></body></html>
END
  sed -i 's/ > zebra -->/ /' a.html
  gpuir index -q --no-names a.html -o i.gpuir
  for word in café inside page second one two; do [ "$(gpuir count i.gpuir "$word")" -eq 1 ]; done
  for word in zebra color red eacute body class onetwo; do [ "$(gpuir count i.gpuir "$word")" -eq 0 ]; done
  [[ $(text a.html) == 'The page'* ]]
  prints 'a.html:café inside, 1 < 2' gpuir query --grep i.gpuir inside
  [[ $(gpuir query --json --passages i.gpuir inside) == *'"passages":[{"text_line":'*'"score"'* ]]
  prints 'a.html' bash -c 'gpuir query --passages i.gpuir inside | head -1'
}

@test "HTML is told by how it begins, or by its name; --raw reads files as they are, also when they are updated" {
  mkdir d
  printf '\n<?xml version="1.0"?>\n<HTML lang=en>wolf</HTML>\n' >d/a
  printf '<p>fragment wolf</p>\n' >d/b.htm
  printf '<p>fragment wolf</p>\n' | gzip >d/b.html.gz
  printf '{%% wolf %%}<p>\n' >d/c.html
  printf '<record>wolf</record>\n' >d/d.xml
  gpuir index -q --no-names d -o i.gpuir
  [ "$(gpuir count i.gpuir wolf)" -eq 5 ]
  [ "$(gpuir count i.gpuir p)" -eq 1 ]
  [ "$(gpuir count i.gpuir record)" -eq 1 ]
  [ "$(gpuir count i.gpuir lang)" -eq 0 ]
  gpuir index -q --live --raw --no-names d -o live
  [ "$(gpuir count live wolf)" -eq 4 ] # what is packed is no text
  [ "$(gpuir count live lang)" -eq 1 ]
  printf '<html class=new>wolf</html>\n' >d/e
  gpuir update -q d -o live
  [ "$(gpuir count live class)" -eq 1 ]
  gpuir index d -o j.gpuir 2>&1 | grep -F 'decoded: 1 gzip, 4 pages of HTML; --raw reads files as they are'
}

@test "a byte order mark before markup is none of its text, in UTF-8 and UTF-16" {
  printf '\xef\xbb\xbf<html>first<p>zebra</html>' >a.html
  printf '\xef\xbb\xbf<html>first<p>zebra</html>' | iconv -f utf-8 -t utf-16le >b.html
  gpuir index -q --no-names a.html b.html -o i.gpuir
  prints $'a.html:zebra\nb.html:zebra' gpuir query --grep i.gpuir zebra
  [ "$(gpuir query --grep --tokens 0 i.gpuir first | head -1)" = a.html:first ]
}

@test "man pages: man(7) and mdoc(7), fonts, escapes, conditions, tables; their NAME comes first" {
  cat >a.1 <<'END'
'\" t
.\" comment zebra
.de Zz
zebra
..
.ie n .ds Aq '
.el .ds Aq zebra
.TH WOLF 1 zebra
.SH "NAME"
wolf \- howls at the m\fBoo\fRn
.if t zebra
.if n .B shown
.ig
zebra
..
.if t \{\
zebra
zebra \}
.SH "SEE \*(lqALSO\*(rq"
.BR dog (1),
.I c\('et\('e \[u00E9]t\('e \(co
.TP
\fB\-\-flag\fP=\fI\,VALUE\/\fR
it\*(Aqs \s+2big\s0 \h'-1m'and \(aqquoted\(aq\" zebra
.TS
l l.
one	two
.TE
END
  cat >b.1 <<'END'
.Dd zebra
.Dt FOX 1
.Os
.Sh NAME
.Nm fox
.Nd runs
.Sh DESCRIPTION
.Nm
.Op Fl v Ar file
.Bl -tag -width zebra
.It Fl x Ns Ar n
see
.Xr wolf 1 ,
on
.Ux .
.El
END
  gpuir index -q --no-names a.1 b.1 -o i.gpuir
  [ "$(gpuir count i.gpuir zebra)" -eq 0 ]
  for word in wolf moon shown ALSO dog été côté flag VALUE big quoted one two; do
    [ "$(gpuir count i.gpuir "$word")" -ge 1 ] || [ "$word" = côté ]
  done
  [ "$(gpuir count i.gpuir runs unix file v)" -eq 1 ]
  [[ $(text a.1 howls) == 'wolf - howls at the moon'* ]]
  gpuir query --grep --tokens 0 i.gpuir howls | grep -Fx 'a.1:wolf - howls at the moon'
  gpuir query --grep --tokens 0 i.gpuir dog | grep -Fx 'a.1:dog(1),'
  gpuir query --grep --tokens 0 i.gpuir quoted | grep -Fx "a.1:it's big and 'quoted'"
  gpuir query --grep --tokens 0 i.gpuir value | grep -Fx 'a.1:--flag=VALUE'
  gpuir query --grep --tokens 0 i.gpuir wolf | grep -Fx 'b.1:wolf(1),'
  gpuir query --grep --tokens 0 i.gpuir file | grep -Fx 'b.1:-v file'
}

@test "notebooks are the text of their cells; one that is no JSON is said" {
  cat >n.ipynb <<'END'
{"cells": [{"cell_type": "markdown", "metadata": {"zebra": 1}, "source": ["# The wolf\n", "caf\u00e9"]},
 {"cell_type": "code", "outputs": [{"data": {"image/png": "zebra"}}], "source": "print('fox')"}], "nbformat": 4}
END
  gpuir index -q --no-names n.ipynb -o i.gpuir
  [ "$(gpuir count i.gpuir zebra)" -eq 0 ]
  [ "$(gpuir count i.gpuir wolf café fox print)" -eq 1 ]
  prints "n.ipynb:print('fox')" gpuir query --grep i.gpuir fox
  printf '{"cells": [{"cell_type": "code", "source": ["wolf"' >bad.ipynb
  fails 1 'bad.ipynb: the notebook is no object of JSON' gpuir index -q bad.ipynb -o b.gpuir
}

@test "a program that writes notebooks is none, though it begins with a brace" {
  mkdir code
  printf '{-# LANGUAGE CPP #-}\nwrite = object ["cells" .= wolf, "cell_type" .= code]\n' >code/Ipynb.hs
  gpuir index -q code -o i.gpuir
  prints 'code/Ipynb.hs:2:write = object ["cells" .= wolf, "cell_type" .= code]' gpuir query --grep i.gpuir wolf
}

@test "chunks and lines are those of the converted text; the mount has it as files; a change of the file is seen" {
  printf '<html><p>first wolf<p>second wolf<p>third</html>' >a.html
  printf '<html><p>packed wolf</html>' | gzip >b.gz
  gpuir index -q --analyzer ascii --no-names --lines a.html -o l.gpuir
  [ "$(gpuir query --tsv l.gpuir third | cut -f 4)" = a.html:3 ]
  prints 'a.html:second wolf' gpuir query --grep l.gpuir second
  gpuir index -q --analyzer ascii --no-names a.html b.gz -o i.gpuir
  needs_fuse
  mkdir m
  "$build/gpuirfs" "$PWD/i.gpuir" m
  [ "$(cat m/files/third/*)" = $'first wolf\nsecond wolf\nthird' ]
  [ "$(cat m/files/packed/*)" = 'packed wolf' ]
  [[ $(cat m/grep/third) == "$PWD"/m/files/third/000001-a.html:3:third ]]
  fusermount3 -u m
  printf '<html><p>first wolf<p>second wolf<p>third</html>\n' >a.html # whose text is as it was
  prints 'a.html (changed since it was indexed)' gpuir query --passages i.gpuir third
  printf 'a.html: changed since it was indexed' >want
  run gpuir query --grep i.gpuir third
  [[ $output == *'a.html: changed since it was indexed'* ]]
}

@test "hostile markup ends: signs without end, quotes, conditions, braces" {
  {
    printf '<html>'
    yes '<a "' | head -c 3000000
  } >a.html
  {
    printf '<html>'
    yes '<a x="' | head -c 3000000
  } >b.html
  {
    printf '<html>'
    yes '<script><!--<' | head -c 3000000
  } >c.html
  {
    printf '.TH A 1\n'
    yes '.if n ' | head -c 3000000 | tr '\n' ' '
    printf '\n'
    # shellcheck disable=SC1003 # it is a backslash
    yes '.ie t \{\' | head -c 3000000
  } >d.1
  {
    printf '.TH A 1\n.'
    yes '"" \*[' | head -c 3000000 | tr '\n' ' '
    yes '.de' | head -c 3000000
  } >e.1
  gpuir index -q --analyzer ascii a.html b.html c.html d.1 e.1 -o i.gpuir || true
}
