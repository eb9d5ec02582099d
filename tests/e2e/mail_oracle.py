"""Mail made by Python's email package: every word of its fields and texts is a term, and there are no others.

    mail_oracle.py GPUIR MESSAGES SEED [KEEP]

Writes a Maildir and an mbox of the same messages into a temporary folder (or KEEP), and the same words as plain text.
Prints the terms that one has and another lacks; exit status 1 if there are any. The messages have fields in encoded
words of several charsets, folded; bodies of every transfer encoding and of charsets of one and several bytes; parts,
alternatives, messages within messages, names of files after RFC 2231; and some are broken: boundaries that are not
closed, charsets that nobody knows, bytes beyond ASCII in fields, bodies without an empty line before
them.
"""

import email.charset
import email.header
import email.message
import email.utils
import mailbox
import os
import random
import subprocess
import sys
import tempfile

from email.mime.application import MIMEApplication
from email.mime.message import MIMEMessage
from email.mime.multipart import MIMEMultipart
from email.mime.nonmultipart import MIMENonMultipart

LETTERS = {"ascii": "abcdefghijklmnopqrstuvwxyz", "latin": "aeiouäöüéèñçåøß", "cyrillic": "абвгдежзиклмнопрстуфхцчшюя",
           "greek": "αβγδεζηθικλμνοπρτυφχω"}
CHARSETS = {"us-ascii": ["ascii"], "iso-8859-1": ["ascii", "latin"], "windows-1252": ["ascii", "latin"],
            "utf-8": list(LETTERS), "koi8-r": ["ascii", "cyrillic"], "windows-1251": ["ascii", "cyrillic"],
            "iso-8859-5": ["ascii", "cyrillic"], "iso-8859-7": ["ascii", "greek"], "gb2312": ["ascii", "cyrillic"],
            "gb18030": list(LETTERS), "shift_jis": ["ascii", "cyrillic", "greek"], "utf-16": list(LETTERS),
            "euc-jp": ["ascii", "cyrillic"], "iso-2022-jp": ["ascii", "greek"], "euc-kr": ["ascii", "greek"]}


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.said = []  # all that must be found
        self.number = 0

    def word(self, charset):
        script = self.random.choice(CHARSETS[charset])
        self.number += 1
        tail = "".join(LETTERS["ascii"][int(d)] for d in str(self.number)) if script != "greek" else ""
        return "".join(self.random.choice(LETTERS[script]) for _ in range(self.random.randint(3, 9))) + tail

    def words(self, charset, n):
        text = " ".join(self.word(charset) for _ in range(n))
        self.said.append(text)
        return text

    def some_charset(self, *without):
        return self.random.choice([c for c in CHARSETS if c not in without])

    def field(self, n=6):
        """A field's value: raw ASCII, or encoded words of a charset, folded."""
        charset = self.some_charset("utf-16")
        text = self.words(charset, n)
        if charset == "us-ascii":
            return text
        shape = email.charset.Charset(charset)
        shape.header_encoding = self.random.choice([email.charset.QP, email.charset.BASE64])
        shape.output_charset = charset
        return email.header.Header(text, shape, maxlinelen=self.random.choice([50, 76]))

    def text_part(self, subtype="plain", words=30):
        charset = self.some_charset()
        text = self.words(charset, words)
        lines = text.split(" ")
        body = "\n".join(" ".join(lines[i:i + 7]) for i in range(0, len(lines), 7)) + "\n"
        if subtype == "html":
            body = "<html><head><style>p { zebra: 1 }</style></head><body class=zebra><p>%s</body></html>" % body
        part = MIMENonMultipart("text", subtype, charset=charset)
        raw = body.encode(charset)
        how = self.random.choice(["base64", "quoted-printable", "8bit"])
        if charset == "utf-16" or (how == "8bit" and charset == "us-ascii"):
            how = "base64" if charset == "utf-16" else "7bit"
        self.set_payload(part, raw, how)
        return part

    @staticmethod
    def set_payload(part, raw, how):
        import base64
        import quopri
        part["Content-Transfer-Encoding"] = how
        if how == "base64":
            raw = base64.encodebytes(raw)
        elif how == "quoted-printable":
            raw = quopri.encodestring(raw)
        part.set_payload(raw.decode("ascii", "surrogateescape"))

    def file_part(self):
        part = MIMEApplication(self.random.randbytes(300))
        charset = self.some_charset("utf-16", "us-ascii")
        name = self.words(charset, 2)
        part.add_header("Content-Disposition", "attachment", filename=(charset, "", name))
        return part

    def any_part(self, depth=0):
        kind = self.random.randrange(8)
        if kind == 0:
            part = MIMEMultipart("alternative")
            part.attach(self.text_part())
            part.attach(self.text_part("html"))
        elif kind == 1 and depth < 4:
            part = MIMEMultipart("mixed")
            for _ in range(self.random.randint(1, 4)):
                part.attach(self.any_part(depth + 1))
            if self.random.random() < 0.3:
                part.preamble = "zebra"
        elif kind == 2 and depth < 4:
            part = MIMEMessage(self.message(depth + 1))
        elif kind == 3:
            part = self.file_part()
        elif kind == 4:
            part = self.text_part("html")
        else:
            part = self.text_part()
        return part

    def message(self, depth=0):
        m = self.any_part(depth) if self.random.random() < 0.7 else self.text_part()
        if isinstance(m, MIMEMessage):
            outer = MIMEMultipart("mixed")
            outer.attach(m)
            m = outer
        m["Subject"] = self.field(self.random.randint(1, 12))
        sender = self.words("us-ascii", 1)
        m["From"] = email.header.Header(str(self.field(2)) + " <%s@example.org>" % sender) \
            if self.random.random() < 0.1 else "%s@example.org" % sender
        m["To"] = "%s@example.org" % self.words("us-ascii", 1)
        m["Comments"] = self.field(3)
        m["Received"] = "from zebra by zebra; 1 Jan 2026 00:00:00 +0000"
        self.said.append("example org")
        return m

    def broken(self):
        """A message that is damaged so that its words stay."""
        kind = self.random.randrange(5)
        raw = self.message().as_bytes() if kind < 3 else b""
        if kind == 0:
            end = raw.rfind(b"--\n")
            return raw[:end].rstrip(b"-") + b"\n" if b"boundary=" in raw and end > 0 and raw.endswith(b"--\n") else raw
        if kind == 1:
            word = self.words("iso-8859-1", 3)
            return b"X-Label: " + word.encode(self.random.choice(["utf-8", "iso-8859-1"])) + b"\n" + raw
        if kind == 2:
            return raw.replace(b"\n", b"\r\n")
        if kind == 3:
            text = self.words("utf-8", 5)
            return b"Subject: x\nFrom: x\nContent-Type: text/plain; charset=zebra\n\n" + text.encode() + b"\n"
        text = self.words("us-ascii", 5)
        return b"Subject: x\nFrom: x\nContent-Type: multipart/mixed; boundary=zebra\n" + text.encode() + b"\n"


def terms(gpuir, *args):
    index = args[0] + ".gpuir"
    subprocess.run([gpuir, "index", "-q", "--no-names", *args, "-o", index], check=True)
    out = subprocess.run([gpuir, "terms", "--tsv", index], check=True, stdout=subprocess.PIPE).stdout
    return {line.split(b"\t")[0] for line in out.splitlines()}


def main():
    gpuir, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    maker = Maker(seed)
    with tempfile.TemporaryDirectory() as folder:
        folder = sys.argv[4] if len(sys.argv) > 4 else folder
        maildir = mailbox.Maildir(os.path.join(folder, "maildir"))
        mbox = mailbox.mbox(os.path.join(folder, "mbox"))
        for _ in range(count):
            raw = maker.broken() if maker.random.random() < 0.2 else maker.message().as_bytes()
            maildir.add(raw)
            mbox.add(raw)
        mbox.close()
        plain = os.path.join(folder, "plain")
        with open(plain, "w", encoding="utf-8") as f:
            f.write("\n".join(maker.said) + "\nx\n")
        want = terms(gpuir, plain)
        bad = 0
        for name in "maildir", "mbox":
            got = terms(gpuir, os.path.join(folder, name))
            for what, which in (want - got, "lacks"), (got - want, "has"):
                for term in sorted(what)[:20]:
                    print(name, which, term.decode("utf-8", "replace"))
                bad += len(what)
        print("%d messages, %d terms, %d differ" % (count, len(want), bad))
        return 1 if bad else 0


sys.exit(main())
