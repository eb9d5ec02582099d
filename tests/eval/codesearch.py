#!/usr/bin/env python3
"""codesearch.py GPUIR DATA REPOS [--index OPTIONS] [--tokens N] [QUERY OPTION...]: how many tokens of passages are read
until the first relevant one.

DATA is the folder of a code-search benchmark: queries.jsonl (fields repo, query, relevant, secondary and, by lists,
spans: the lines that count), sources.tsv (repo, ..., its root as the fifth column) and eval.py, whose estimate of tokens
is used. REPOS holds a folder for each repo. Each is indexed alone, and its queries are asked with `gpuir query
--passages`, with a budget of N tokens (800). A passage is relevant if its file is, and its lines touch the lines that
count, where there are such. What is read counts as it is printed, with the line above each passage.

Prints the number of queries, of those that were left out because none of their files is there, the share of queries
with a relevant passage within the budget, and the expected tokens up to its end; a query without any counts with all
that was printed for it, or the budget if that is more. --tokens 0 reads all passages of the hits, and then such a query
counts with the 32,000 tokens of eval.py.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import benchmark


def answers(gpuir, folder, root, queries, options):
    """{index of the query: [(path, first, last, text)]}, as printed."""
    work = tempfile.mkdtemp()
    index = os.path.join(work, "x.gpuir")
    try:
        subprocess.run([gpuir, "index", "-q", *options.index.split(), root, "-o", index], cwd=folder, check=True,
                       stderr=subprocess.DEVNULL)
        asked = "".join(f"{q['index']}:{' '.join(q['query'].split())}\n" for q in queries)
        run = subprocess.run([gpuir, "query", "--json", "--passages", "--no-operators", "--tokens", str(options.tokens),
                              *options.rest, index], input=asked, capture_output=True, text=True, cwd=folder, check=True)
    finally:
        shutil.rmtree(work)
    found = {}
    for line in run.stdout.splitlines():
        answer = json.loads(line)
        found[int(answer["id"])] = [(h["path"], p.get("first"), p.get("last"), p.get("text", ""))
                                    for h in answer["hits"] for p in h["passages"]]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gpuir")
    parser.add_argument("data")
    parser.add_argument("repos")
    parser.add_argument("--index", default="--chunk-lines 50 --analyzer unicode --stem english")
    parser.add_argument("--tokens", type=int, default=800)
    options, options.rest = parser.parse_known_args()
    options.gpuir = os.path.abspath(options.gpuir)
    bench, by_repo, roots = benchmark.read(options.data)
    asked = left_out = hits = passages = 0
    cost = 0.0
    for repo, queries in by_repo.items():
        folder = os.path.join(options.repos, repo)
        if not os.path.isdir(folder):
            left_out += len(queries)
            continue
        root, here = benchmark.below(folder, roots[repo], bench, queries)
        left_out += len(queries) - len(here)
        found = answers(options.gpuir, folder, root, here, options)
        for query in here:
            read, hit = 0, False
            for path, first, last, text in found.get(query["index"], []):
                read += bench.est(f"{path}:{first}-{last}\n{text}\n\n")
                passages += 1
                hit = bool(first) and any(  # not of a hit by its name alone
                    bench.matches(path, t, False) and not (s and (last < s[0] or first > s[1]))
                    for t, s in bench.targets(query, True))
                if hit:
                    break
            asked += 1
            hits += hit
            cost += read if hit else max(read, options.tokens or bench.CAP)
    print(f"queries\t{asked}")
    print(f"left out\t{left_out}")
    print(f"found{f' within {options.tokens} tokens' if options.tokens else ''}\t{hits / asked:.3f}")
    print(f"passages read\t{passages / asked:.2f}")
    print(f"expected tokens\t{cost / asked:.0f}")
    return 0


sys.exit(main())
