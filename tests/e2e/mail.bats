#!/usr/bin/env bats
# Mail: mboxes, folders of messages, single messages. Each message is a document, of the words that people read.

# shellcheck disable=SC2154 # build and here are set there
load ../support/texts

# Three messages: quoted-printable, base64, and one that quotes a line like those between messages.
make_mbox() {
  cat >box <<'END'
From anna@example.org Thu Jan  1 00:00:00 2026
From: =?utf-8?q?J=C3=A9r=C3=B4me?= <j@example.org>
Subject: =?UTF-8?B?w5xiZXI=?= =?utf-8?q?raschung?=
Received: zebra
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

The caf=C3=A9 is near the sta=
tion.

From bob@example.org Fri Jan  2 00:00:00 2026
From: bob@example.org
Subject: second
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: base64

VGhlIHNlY3JldCBwaW5lYXBwbGUgbWVldGluZwo=

From carl@example.org Sat Jan  3 00:00:00 2026
From: carl@example.org
Subject: third

the wolf
From here 12:00 on it is one message
>From zebra Sat Jan  3 00:00:00 2026
From now on, too.
END
}

@test "an mbox: each message is a document, whose words are decoded; passages have no line, headings those of the message" {
  make_mbox
  gpuir index -q --no-names box -o i.gpuir
  for word in station café überraschung jérôme; do
    [ "$(gpuir query --tsv i.gpuir "$word" | cut -f 4)" = box ]
    gpuir query --passages i.gpuir "$word" | grep -Fx box:1-10
  done
  gpuir query --passages --mode and i.gpuir 'wolf one now' | grep -Fx box:19-26
  for word in received vghlihnly3jldcbwaw5lyxbwbgugbwvldgluzwo content charset; do
    [ "$(gpuir count i.gpuir $word)" -eq 0 ]
  done
  prints 'box:The secret pineapple meeting' gpuir query --grep i.gpuir pineapple
  prints $'box:11-18\nThe secret pineapple meeting' gpuir query --passages i.gpuir pineapple
  [[ $(gpuir query --json --passages i.gpuir pineapple) == *'"passages":[{"text_line":4,'* ]]
  gpuir index -q --no-names --store box -o s.gpuir
  cmp <(gpuir query --passages i.gpuir pineapple) <(gpuir query --passages s.gpuir pineapple)
  gpuir index box -o j.gpuir 2>&1 | grep -F 'decoded: 1 file of mail; --raw reads files as they are'
  gzip -k box
  gpuir index -q --no-names box.gz -o z.gpuir
  prints 'box.gz:The secret pineapple meeting' gpuir query --grep z.gpuir pineapple
  gpuir index -q --no-names - <box -o p.gpuir
  [ "$(gpuir count p.gpuir pineapple)" -eq 1 ]
  gpuir index -q --no-names --raw box -o r.gpuir
  [ "$(gpuir count r.gpuir charset)" -eq 1 ]
}

@test "a message's parts: texts of each, HTML without tags, names of files, messages within; nothing of pictures" {
  {
    printf 'Subject: first\n =?koi8-r?q?=C9=CF?=\nX-Label: labelled\nX-Spam-Report: zebra\nFrom: a\n'
    printf 'Content-Type: multipart/mixed; boundary="b 1"\n\nzebra\n--b 1\n'
    printf 'Content-Type: multipart/alternative; boundary=b\n\n--b\n\nplain wolf\n--b\nContent-Type: text/html\n\n'
    printf '<p class=zebra>ht<b>ml</b> fox &eacute;\n--b--\nzebra\n--b 1\n'
    printf 'Content-Type: image/png; name="=?utf-8?q?pic=C3=A9?="\nContent-Transfer-Encoding: base64\n\nemVicmEK\n'
    printf -- "--b 1\nContent-Disposition: attachment; filename*0*=utf-8''re%%C3%%A9; filename*1=sume.pdf\n"
    printf 'Content-Type: a/b\n\nzebra\n--b 1\nContent-Type: message/rfc822\n\nSubject: inner owl\nFrom: x\n\ndeep fish\n'
    printf -- '--b 1\nContent-Type: text/plain; charset=iso-8859-2\n\nz\xb9bra bear\n--b 1--\nzebra\n'
  } >a
  gpuir index -q --no-names a -o i.gpuir
  [ "$(gpuir count i.gpuir 'first ио labelled plain wolf html fox é picé reésume pdf owl deep fish zšbra bear')" -eq 1 ]
  [ "$(gpuir count i.gpuir -- zebra)" -eq 0 ]
}

@test "what is mail: fields of a header decide; a text that begins like one is none" {
  mkdir d
  printf 'From here on\nFrom: zebra\n\nwolf\n' >d/text
  printf 'Note: zebra\nDate: today\n\nwolf\n' >d/note
  printf 'From: a\n\nzebra=\nwolf\n' >d/one
  printf 'From: a\r\nTo: b\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nwo=\r\nlf zebra\r\n' >d/mail
  gpuir index -q --no-names d -o i.gpuir
  [ "$(gpuir query --tsv i.gpuir wolf | wc -l)" -eq 4 ]
  gpuir index d -o i.gpuir 2>&1 | grep -F 'decoded: 1 file of mail;'
  gpuir index -q --no-names --lines d/mail -o l.gpuir # lines are those of the file
  [ "$(gpuir query --tsv l.gpuir zebra | cut -f 4)" = d/mail:6 ]
}

@test "mail of Python's email package: all words of fields and texts are terms, and no others" {
  python3 "$here/mail_oracle.py" "$build/gpuir" "$([ -n "${GPUIR_LONG-}" ] && echo 2000 || echo 150)" 7
}

@test "an mbox that grows keeps its messages; one that was changed is seen; the mount shows messages" {
  make_mbox
  gpuir index -q --live --no-names box -o live
  printf '\nFrom d@example.org Sun Jan  4 00:00:00 2026\nFrom: d\nSubject: fourth\n\nowl\n' >>box
  prints 'box:The secret pineapple meeting' gpuir query --grep live pineapple
  gpuir update -q box -o live
  gpuir query --passages live owl | grep -Fx box:28-32
  [ "$(gpuir count live example)" -eq 3 ]
  sed -i s/VGhl/VGhs/ box
  gpuir query --passages live pineapple | grep -F '(changed since it was indexed)'
  make_mbox
  gpuir index -q --no-names box -o i.gpuir
  needs_fuse
  mkdir m
  "$build/gpuirfs" "$PWD/i.gpuir" m
  [[ $(cat m/files/pineapple/*) == $'second\nbob@example.org\n\nThe secret pineapple meeting'* ]]
  [ "$(find m/files/example/ -type f | wc -l)" -eq 3 ]
  [[ $(cat m/grep/pineapple) == *'The secret pineapple meeting' ]]
}

@test "limits: nesting, parts and size end with a message, and the rest is there" {
  {
    printf 'From: a\nTo: b\n'
    for i in {1..40}; do printf 'Content-Type: multipart/mixed; boundary=b%s\n\n--b%s\n' "$i" "$i"; done
    printf '\nzebra\n'
  } >deep
  {
    printf 'From: a\nTo: b\nContent-Type: multipart/mixed; boundary=b\n\nx\n'
    for i in {1..1001}; do printf -- '--b\n\nwolf%s\n' "$i"; done
  } >many
  {
    printf 'From a 00:00\nFrom: a\nSubject: zebra\n\n'
    head -c 68000000 /dev/zero | tr '\0' '\n'
    printf 'x\n\nFrom a 00:00\nFrom: a\nSubject: owl\n\nfox\n'
  } >large
  gpuir index --no-names deep many large -o i.gpuir 2>err
  grep -F 'deep:1: parts within parts, more than 32 deep, are left out' err
  grep -F 'many:1: a message of more than 1,000 parts: the others are left out' err
  grep -F 'large:1: a message larger than 64 MiB is left out' err
  grep -F 'skipped: 3 mails in part' err
  [ "$(gpuir count i.gpuir zebra)" -eq 0 ]
  [ "$(gpuir count i.gpuir wolf1000)" -eq 1 ]
  [ "$(gpuir count i.gpuir wolf1001)" -eq 0 ]
  [ "$(gpuir count i.gpuir fox)" -eq 1 ]
  [ "$(gpuir query --grep i.gpuir wolf7 | grep -cx 'many:wolf7')" -eq 1 ]
  rm large
}

@test "hostile mail ends soon: words without end, boundaries, parameters, fields" {
  {
    printf 'From: a\nSubject: '
    yes '=?a?q?x' | tr -d '\n' | head -c 4000000
  } >a
  {
    printf 'From: a\nTo: b\nContent-Type: text/plain; '
    yes 'charset*1="a\"' | tr -d '\n' | head -c 4000000
  } >b
  {
    printf 'From: a\nTo: b\nContent-Type: multipart/mixed; boundary=-\n\n'
    yes -- '-' | tr -d '\n' | head -c 4000000
  } >c
  {
    printf 'From: a\nTo: b\nContent-Type: multipart/mixed; boundary=b\n\n'
    yes $'--b\nContent-Type: multipart/mixed; boundary=b\n' | head -c 4000000
  } >d
  {
    printf 'From: a\nTo: b\n'
    yes ' ' | head -c 2000000
    yes '=:' | head -c 2000000
  } >e
  {
    printf 'From: a\nTo: b\nContent-Type: text/plain; charset=utf-7\n\n'
    head -c 2000000 /dev/urandom
  } >f
  timeout 60 gpuir index -q --analyzer ascii a b c d e f -o i.gpuir
}
