#!/usr/bin/env python3
"""trec_eval.py [-c] QRELS RUN: MAP, P@5, P@10, P@30, nDCG, nDCG@10 and recall@1000 as trec_eval defines them.

A run's documents are taken by descending score, and by descending name where scores are equal as
binary32 numbers; its ranks are not looked at. A judgement of 1 or more is relevant, and is the gain
for nDCG. Means are over the topics that the run and the judgements share; with -c over all judged
topics that have a relevant document.
"""
import math
import struct
import sys


def binary32(text):
    return struct.unpack("f", struct.pack("f", float(text)))[0]


def read_qrels(path):
    topics = {}
    with open(path, encoding="utf-8", errors="surrogateescape") as f:
        for number, line in enumerate(f, 1):
            fields = line.split()
            if not fields:
                continue
            if len(fields) != 4:
                sys.exit(f"{path}:{number}: not four fields")
            topics.setdefault(fields[0], {})[fields[2]] = int(fields[3])
    return topics


def read_run(path):
    topics = {}
    with open(path, encoding="utf-8", errors="surrogateescape") as f:
        for number, line in enumerate(f, 1):
            fields = line.split()
            if len(fields) != 6 or fields[1] != "Q0":
                sys.exit(f"{path}:{number}: not a line of a run")
            ranked = topics.setdefault(fields[0], {})
            if fields[2] in ranked:
                sys.exit(f"{path}:{number}: {fields[2]} twice")
            ranked[fields[2]] = binary32(fields[4])
    return {t: sorted(r, key=lambda d: (r[d], d), reverse=True) for t, r in topics.items()}


def dcg(gains):
    return sum(g / math.log2(i + 2) for i, g in enumerate(gains))


def evaluate(judged, ranked):
    relevant = sum(r > 0 for r in judged.values())
    gains = [max(0, judged.get(d, 0)) for d in ranked]
    ideal = sorted((r for r in judged.values() if r > 0), reverse=True)
    found, precisions = 0, 0.0
    for i, g in enumerate(gains, 1):
        if g:
            found += 1
            precisions += found / i
    result = {"map": precisions / relevant}
    for k in (5, 10, 30):
        result[f"P_{k}"] = sum(g > 0 for g in gains[:k]) / k
    result["ndcg"] = dcg(gains) / dcg(ideal)
    result["ndcg_cut_10"] = dcg(gains[:10]) / dcg(ideal[:10])
    result["recall_1000"] = sum(g > 0 for g in gains[:1000]) / relevant
    return result


def main(args):
    complete = args[:1] == ["-c"]
    if len(args) - complete != 2:
        sys.exit(__doc__)
    qrels, run = read_qrels(args[-2]), read_run(args[-1])
    topics = [t for t in qrels if any(r > 0 for r in qrels[t].values()) and (complete or t in run)]
    if not topics:
        sys.exit("no topic has judgements and a run")
    each = [evaluate(qrels[t], run.get(t, [])) for t in topics]
    print(f"topics\t{len(topics)}")
    for name in each[0]:
        print(f"{name}\t{sum(e[name] for e in each) / len(each):.4f}")


main(sys.argv[1:])
