#!/usr/bin/env python3
"""Tests of pyterrier_gpuir, for python.bats: python_terrier.py CACM, where pyterrier and ir_measures are
installed. CACM is the folder that tests/eval/cacm.py describes."""

import os
import re
import sys
import tarfile
import tempfile

import ir_measures
import pandas
import pyterrier as pt
from ir_measures import AP, nDCG

import gpuir
from pyterrier_gpuir import GpuirIndex

data = sys.argv[1]


def read(name):
    with open(os.path.join(data, name), encoding="latin-1") as f:
        return f.read()


with tarfile.open(os.path.join(data, "cacm.tar.gz")) as tar:
    documents = [
        {"docno": os.path.basename(m.name)[:-5], "text": tar.extractfile(m).read().decode("latin-1")}
        for m in sorted(tar, key=lambda m: m.name)
        if m.isfile() and m.name.endswith(".html")
    ]
topics = re.findall(r"<DOCNO>\s*(\S+)\s*</DOCNO>(.*?)</DOC>", read("topics.cacm.txt"), re.S)
topics = pandas.DataFrame([(qid, " ".join(text.split())) for qid, text in topics], columns=["qid", "query"])
qrels = list(ir_measures.read_trec_qrels(read("qrels.cacm.txt")))

with tempfile.TemporaryDirectory() as folder:
    index = GpuirIndex(os.path.join(folder, "cacm"))
    made = index.indexer(stem="porter", stop="english").index(iter(documents))
    assert made is index and len(index) == len(documents), len(index)
    assert sorted(index.docnos()) == sorted(d["docno"] for d in documents)

    # What is loaded from disk is of this class, and ranks alike.
    again = pt.Artifact.load(os.path.join(folder, "cacm"))
    assert isinstance(again, GpuirIndex)
    run = index.bm25()(topics)
    assert run.equals(again.retriever()(topics))
    assert {"qid", "query", "docid", "docno", "score", "rank"} <= set(run.columns), run.columns

    # Each row is a hit of the index, in order.
    with gpuir.open(index.file) as plain:
        for qid, rows in run.groupby("qid"):
            query = re.sub(r'["*~]|(^|(?<=\s))-+', " ", topics[topics.qid == qid]["query"].iloc[0])
            want = [(h.docid, str(h.id), h.score) for h in plain.search(query, 1000)]
            assert list(zip(rows.docid, rows.docno, rows.score)) == want
            assert list(rows["rank"]) == list(range(len(want)))

    # ir_measures takes the run; PyTerrier's experiment says the same.
    scored = run.rename(columns={"qid": "query_id", "docno": "doc_id"})
    measures = ir_measures.calc_aggregate([AP, nDCG @ 10], qrels, scored)
    assert 0.25 < measures[AP] < 0.45, measures
    frame = pandas.DataFrame([(q.query_id, q.doc_id, q.relevance) for q in qrels], columns=["qid", "docno", "label"])
    said = pt.Experiment([index.bm25()], topics, frame, [AP, nDCG @ 10])
    for measure in (AP, nDCG @ 10):
        assert abs(said[str(measure)][0] - measures[measure]) < 1e-9, (said, measures)

    # Cutting off, modes, and topics without a word.
    few = (index.bm25() % 3)(topics)
    assert few.groupby("qid").size().max() == 3
    assert few.docno.tolist() == run[run["rank"] < 3].docno.tolist()
    assert 0 < len(index.retriever(mode="and")(topics)) < len(run)
    assert len(index.bm25()(pandas.DataFrame([["1", '-" *'], ["2", "zzzzqq"]], columns=["qid", "query"]))) == 0
    print(f"{len(documents)} documents, {len(topics)} topics: AP {measures[AP]:.4f}, nDCG@10 {measures[nDCG @ 10]:.4f}")
