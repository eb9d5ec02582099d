#!/usr/bin/env python3
"""json_oracle.py READ SCRATCH COUNT - compares how records of JSON are read with Python's json module.

READ is the program json_read. COUNT records, most of which are damaged in one place or more, stand one a line in a file;
each line must be read as Python reads it, or be refused where Python refuses it. Then objects as json.dumps lays them
out: arrays, over several lines, without damage; and the same with one damaged, of which the others must come through.
"""
import json
import random
import subprocess
import sys

READ, SCRATCH, COUNT = sys.argv[1], sys.argv[2], int(sys.argv[3])
IDS = ["pid", "docid", "docno", "_id", "id"]
TEXTS = ["contents", "text", "body", "passage", "segment"]
random.seed(37)


def no_constant(name):
    raise ValueError(name)  # NaN and Infinity are Python's, and not JSON


def utf8(s):
    """The bytes of a string, U+FFFD in place of each lone surrogate; bytes that are no UTF-8 come back as they were."""
    out = b""
    for c in s:
        if 0xDC80 <= ord(c) <= 0xDCFF and c in RAW:
            out += bytes([ord(c) - 0xDC00])
        else:
            out += c.encode("utf-8", "surrogatepass") if not 0xD800 <= ord(c) <= 0xDFFF else b"\xef\xbf\xbd"
    return out


RAW = set()  # surrogates that stand for bytes of the line that are being read


def strings(value):
    """What a member has: the strings of a string or an array, however deep; None for anything else."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        out = []
        for v in value:
            if isinstance(v, (str, list)):
                out += strings(v)
        return out
    return None


class Number(str):
    pass


def wanted(record):
    """(id, text) as bytes, or None."""
    ids = [record[n] for n in IDS if n in record and (isinstance(record[n], Number) or strings(record[n]) is not None)]
    texts = [record[n] for n in TEXTS if n in record and not isinstance(record[n], Number) and strings(record[n]) is not None]
    if not ids or not texts:
        return None
    if isinstance(ids[0], list):  # numbers in an array are ids as well
        return "any"
    title = record.get("title")
    title = utf8(" ".join(strings(title))) if not isinstance(title, Number) and strings(title) is not None else b""
    text = utf8(" ".join(strings(texts[0])))
    return utf8(ids[0]), (title + b"\n" + text if title else text)


def oracle(line):
    RAW.clear()
    s = line.decode("utf-8", "surrogateescape")
    if any("\\ud" in part.lower() for part in [s]):  # an escape may look like a byte that is no UTF-8
        if any(0xDC80 <= ord(c) <= 0xDCFF for c in s):
            return "any"
    RAW.update(c for c in s if 0xDC80 <= ord(c) <= 0xDCFF)
    try:
        record = json.loads(s, parse_constant=no_constant, parse_int=Number, parse_float=Number)
    except (ValueError, RecursionError):
        return None
    return wanted(record) if isinstance(record, dict) else None


WORDS = ["wolf", "caf\u00e9", "\u043b\u0438\u0441\u0430", "\u6771\u4eac", "a\"b", "back\\slash", "tab\t", "line\nend", "\U0001f600", "x/y"]


def text():
    return " ".join(random.choice(WORDS) for _ in range(random.randrange(0, 7)))


def record(i):
    r = {random.choice(IDS): random.choice([str(i), i, f"d{i}", -i, i / 8])}
    if random.random() < 0.4:
        r["title"] = random.choice([text(), [text(), text()], None, 7])
    r[random.choice(TEXTS)] = random.choice([text(), text(), text(), [text(), text(), [text()]], None, {"text": text()}])
    if random.random() < 0.5:
        r["meta"] = {"contents": text(), "n": [1, 2.5e3, True, None, {"id": "no"}]}
    if random.random() < 0.2:
        r[random.choice(TEXTS)] = text()
    items = list(r.items())
    random.shuffle(items)
    return dict(items)


PIECES = [b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\\u", b"\\ud83d", b"\\ude00", b"\\udc00", b"0", b"-", b"1e5", b".",
          b"null", b"true", b"NaN", b" ", b"\t", b"\x01", b"\x7f", b"\xe9", b"\xff", b'"id":', b'"contents":"x",', b"//"]


def damage(line):
    for _ in range(random.choice([0, 1, 1, 1, 2, 3])):
        at, how = random.randrange(len(line) + 1), random.random()
        if how < 0.4:
            line = line[:at] + random.choice(PIECES) + line[at:]
        elif how < 0.7:
            line = line[:at] + line[at + random.randrange(1, 4):]
        elif how < 0.85:
            end = at + random.randrange(1, 12)
            line = line[:end] + line[at:end] + line[end:]
        else:
            line = line[:at]
    # a line that is indented may be taken for a part of the broken one before it
    line = line.replace(b"\n", b" ").replace(b"\r", b" ").lstrip()
    return b"{" if line.strip().startswith(b"[") else line  # an array would go on in the next line


def read(data):
    with open(SCRATCH, "wb") as f:
        f.write(data)
    out = subprocess.run([READ, SCRATCH], stdout=subprocess.PIPE, check=True).stdout.decode()
    documents, refused = [], set()
    for row in out.splitlines():
        line, name, rest = row.split("\t", 2)
        if name == "!":
            refused.add(int(line))
        else:
            documents.append((int(line), bytes.fromhex(name), bytes.fromhex(rest)))
    return documents, refused


def check_lines():
    anchor = "\u00e9" * 400000  # what is no ASCII is mostly UTF-8: the file is one
    lines = [json.dumps({"id": "anchor", "contents": anchor}, ensure_ascii=False).encode()]
    for i in range(COUNT):
        dumped = json.dumps(record(i), ensure_ascii=random.random() < 0.5, separators=random.choice([None, (",", ":")]))
        lines.append(damage(dumped.encode()))
    documents, refused = read(b"\n".join(lines) + b"\n")
    found = {line: (name, text) for line, name, text in documents}
    good, lost = 0, False
    for number, line in enumerate(lines, 1):
        want = oracle(line)
        got = found.get(number)
        if want == "any" or not line.strip():
            continue
        good += want is not None
        # a line that does not begin like an object may be told of with the broken one before it
        told = number in refused or lost
        lost = got is None
        joined = [oracle(b"\n".join(lines[number - 1 : number + n])) for n in (1, 2, 3)] if got and not want else []
        if got in joined:  # an object that goes on in the next line
            lost = True
            continue
        if want != got or (want is None and not told):
            sys.exit(f"line {number}: {line!r}\n  wanted {want}\n  got {got}, refused {number in refused}")
    assert good > COUNT // 8, good
    return good


def check_layouts():
    for indent in (None, 0, 1, 2, 4):
        for count in (1, 2, 30):
            records = [{"id": f"d{i}", "title": text(), "contents": [text(), f"w{i}"], "meta": {"id": [i]}} for i in range(count)]
            want = [wanted(r) for r in records]
            dumped = json.dumps(records, indent=indent).encode()
            for data in (dumped, b"\xef\xbb\xbf" + dumped, dumped.decode().encode("utf-16"),
                         b"\n".join(json.dumps(r, indent=indent).encode() for r in records)):
                documents, refused = read(data)
                assert not refused, (indent, count, refused)
                assert [d[1:] for d in documents] == want, (indent, count, documents[:2], want[:2])
            if count < 3 or not indent:
                continue
            broken = random.randrange(count)
            lines = dumped.split(b"\n")
            at = [i for i, line in enumerate(lines) if b'"id": "d%d"' % broken in line][0]
            lines[at] = lines[at].replace(b":", b"", 1)
            documents, refused = read(b"\n".join(lines))
            assert refused and [d[1:] for d in documents] == want[:broken] + want[broken + 1:], (indent, broken, refused)


good = check_lines()
check_layouts()
print(f"{COUNT} records, {good} of them read")
