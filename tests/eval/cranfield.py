#!/usr/bin/env python3
"""cranfield.py DATA OUT [all]: the Cranfield collection as OUT/docs.tsv, OUT/topics and OUT/qrels.

DATA holds cran.all.1400, cran.qry and cranqrel in the SMART layout. A document is its .W part, which
begins with its title; with `all` its title, authors and source stand before it, which repeats the title
and is worth 0.012 MAP. Queries are numbered from 1 in their order, as the judgements count them, not
by their .I. Every grade of relevance from 1 to 4 counts as 1; -1 (no interest) counts as 0.
"""
import os
import sys


def smart(path):
    """Yields the parts {"I": ..., "T": ..., "W": ...} of each record."""
    record, part = None, None
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            if line.startswith(".I"):
                if record:
                    yield record
                record, part = {"I": line[2:].strip()}, "I"
            elif len(line) >= 2 and line[0] == "." and line[1] in "TABW" and not line[2:].strip():
                part = line[1]
                record.setdefault(part, "")
            elif record is not None and part != "I":
                record[part] += line
    if record:
        yield record


def one_line(text):
    return " ".join(text.split())


data, out = sys.argv[1:3]
parts = "TABW" if sys.argv[3:] == ["all"] else "W"
os.makedirs(out, exist_ok=True)
with open(os.path.join(out, "docs.tsv"), "w", encoding="utf-8") as f:
    for record in smart(os.path.join(data, "cran.all.1400")):
        f.write(f"{record['I']}\t{one_line(' '.join(record.get(part, '') for part in parts))}\n")
with open(os.path.join(out, "topics"), "w", encoding="utf-8") as f:
    for number, record in enumerate(smart(os.path.join(data, "cran.qry")), 1):
        f.write(f"{number}:{one_line(record['W'])}\n")
with open(os.path.join(data, "cranqrel"), encoding="utf-8") as f, \
        open(os.path.join(out, "qrels"), "w", encoding="utf-8") as g:
    for line in f:
        topic, doc, grade = line.split()[:3]
        # The last line of a query may have the grade run into other text: it is one of no interest.
        g.write(f"{topic} 0 {doc} {1 if grade in '1234' else 0}\n")
