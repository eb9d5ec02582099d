#!/usr/bin/env python3
"""rank_bm25_overlap.py DATA: how many of the first ten documents gpuir.rank_bm25 and the package rank-bm25 have in
common, on average, for the topics of CACM (DATA: see cacm.py). Both rank the same words: letters and digits, in small
letters. Needs the packages gpuir, rank-bm25 and numpy."""

import os
import re
import sys
import tarfile

import rank_bm25

import gpuir.rank_bm25

data = sys.argv[1]
words = lambda text: re.findall("[a-z0-9]+", text.lower())
corpus = []
with tarfile.open(os.path.join(data, "cacm.tar.gz")) as tar:
    for member in sorted(tar, key=lambda member: member.name):
        if member.isfile() and member.name.endswith(".html"):
            corpus.append(words(tar.extractfile(member).read().decode("latin-1")))
with open(os.path.join(data, "topics.cacm.txt"), encoding="latin-1") as f:
    topics = [words(text) for text in re.findall(r"</DOCNO>(.*?)</DOC>", f.read(), re.S)]
mine, theirs = gpuir.rank_bm25.BM25Okapi(corpus), rank_bm25.BM25Okapi(corpus)
ids = list(range(len(corpus)))
common = [len(set(mine.get_top_n(t, ids, 10)) & set(theirs.get_top_n(t, ids, 10))) for t in topics]
print(f"{len(corpus)} documents, {len(topics)} topics: {sum(common) / len(common):.2f} of the first ten in common")
