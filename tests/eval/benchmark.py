"""benchmark.py: what codesearch.py and effectiveness.py read of a code-search benchmark.

A benchmark is a folder with queries.jsonl, sources.tsv (repo, ..., its root as the fifth column) and eval.py, which knows
the judgements. Its repositories lie in a folder each.
"""
import collections
import importlib.util
import os


def read(data):
    """Returns eval.py as a module, {repo: its queries} and {repo: its root}."""
    spec = importlib.util.spec_from_file_location("benchmark_eval", os.path.join(data, "eval.py"))
    judge = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(judge)
    queries = collections.defaultdict(list)
    for query in judge.load_queries(os.path.join(data, "queries.jsonl"), None).values():
        queries[query["repo"]].append(query)
    with open(os.path.join(data, "sources.tsv"), encoding="utf-8") as f:
        roots = {line.split("\t")[0]: line.rstrip("\n").split("\t")[4] for line in f}
    return judge, queries, roots


def is_there(folder, path):
    """Whether a judged file, whose path may lack its first folders, is below the folder."""
    if os.path.exists(os.path.join(folder, path)):
        return True
    end = "/" + path
    return any(("/" + os.path.relpath(os.path.join(at, f), folder)).endswith(end)
               for at, _, files in os.walk(folder) for f in files)


def below(folder, root, judge, queries):
    """Returns the root that was judged, or "." where it is not there, and the queries of which a judged file is there."""
    here = [q for q in queries if any(is_there(folder, path) for path, _ in judge.targets(q, False))]
    return (root if root and os.path.isdir(os.path.join(folder, root)) else "."), here
