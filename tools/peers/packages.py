#!/usr/bin/env python3
"""packages.py [DOCUMENTS [QUERIES]]: what a query costs from Python, with gpuir and with three other packages.

All of them rank the same drawn texts for the same queries: the ten best documents, ids and scores, on one thread. The
first column is the C library's own time, measured within one call that answers all queries: what `search` and `batch`
take beyond it is Python's, of the median of each round's difference. Times are processor time in microseconds a query,
of the median of ROUNDS rounds in which the packages take turns.
"""

import datetime
import os
import platform
import random
import statistics
import signal
import subprocess
import sys
import threading
import time
from ctypes import byref, c_size_t

import numpy

import gpuir
from gpuir import rank_bm25 as mine
from gpuir._index import _mode
from gpuir._library import lib

ROUNDS = 15
K = 10
INTERRUPTS = 100
SLOW = 20  # queries of a package that takes milliseconds for each


def draw(documents, queries):
    """Texts of 40 words on average from 50,000, and queries of three, drawn by Zipf's law."""
    r = random.Random(1)
    words = [f"w{i}" for i in range(50000)]
    weights = [1 / (i + 3) for i in range(len(words))]
    lengths = [max(1, int(r.gauss(40, 15))) for _ in range(documents)]
    drawn = r.choices(words, weights, k=sum(lengths))
    texts, at = [], 0
    for n in lengths:
        texts.append(" ".join(drawn[at : at + n]))
        at += n
    return texts, [" ".join(r.choices(words[20:5000], weights[20:5000], k=3)) for _ in range(queries)]


def c_calls(index, queries):
    """Answers all queries by one call of the library."""
    searcher = index._searcher(index._here())
    text = "\n".join(queries).encode()
    hits, counts = numpy.zeros((len(queries), K, 2), numpy.uint32), numpy.zeros(len(queries), numpy.uint32)
    bad = c_size_t()

    def call():
        assert not lib.gpuir_python_batch(
            searcher.pointer,
            _mode("or"),
            text,
            len(text),
            len(queries),
            K,
            None,
            hits.ctypes.data,
            counts.ctypes.data,
            byref(bad),
        )

    return call


def each(ask, queries):
    """Asks one after the other. An answer is dropped before the next: to keep thousands would cost by itself."""

    def asked():
        for query in queries:
            ask(query)

    return asked


def packages(texts, queries):
    """(name, how many queries a round asks, what asks them)."""
    index = gpuir.index(texts, analyzer="ascii", store=False)
    yield "gpuir, in C", len(queries), c_calls(index, queries)
    yield "gpuir, search", len(queries), each(lambda q: [(h.docid, h.score) for h in index.search(q, K)], queries)
    yield "gpuir, batch", len(queries), lambda: index.batch(queries, K)
    words = [t.split() for t in texts]
    asked = [q.split() for q in queries]
    okapi, ids = mine.BM25Okapi(words), list(range(len(texts)))
    yield "gpuir.rank_bm25, get_top_n", len(queries), each(lambda q: okapi.get_top_n(q, ids, K), asked)
    try:
        import rank_bm25

        theirs = rank_bm25.BM25Okapi(words)
        few = asked[:SLOW]
        yield f"rank_bm25 {version('rank_bm25')}, get_top_n", len(few), each(lambda q: theirs.get_top_n(q, ids, K), few)
    except ImportError:
        pass
    try:
        import bm25s

        engine = bm25s.BM25()
        engine.index(words, show_progress=False)
        many = asked[: SLOW * 10]
        yield f"bm25s {version('bm25s')}, retrieve", len(many), lambda: engine.retrieve(many, k=K, show_progress=False)
    except ImportError:
        pass
    try:
        import tantivy

        schema = (
            tantivy.SchemaBuilder().add_text_field("text", stored=False).add_integer_field("id", stored=True).build()
        )
        other = tantivy.Index(schema)
        writer = other.writer(num_threads=1)
        for i, text in enumerate(texts):
            writer.add_document(tantivy.Document(text=text, id=i))
        writer.commit()
        writer.wait_merging_threads()
        other.reload()
        searcher = other.searcher()

        def ask(q):
            return [(address.doc, score) for score, address in searcher.search(other.parse_query(q, ["text"]), K).hits]

        yield f"tantivy {version('tantivy')}, search", len(queries), each(ask, queries)
    except ImportError:
        pass


def interrupts(texts):
    """How many milliseconds after Ctrl-C Python goes on, while searches run that take long."""
    index = gpuir.index(texts, analyzer="ascii", store=False)
    query = "w1* w2* w3* w4* w5*"
    found = []

    def send():
        time.sleep(0.05 + len(found) * 0.0037)  # at another moment of a search each time
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    for _ in range(INTERRUPTS):
        sent = []
        sender = threading.Thread(target=send)
        try:
            sender.start()
            while True:
                index.search(query, 1000)
        except KeyboardInterrupt:
            found.append((time.monotonic() - sent[0]) * 1e3)
        sender.join()
    begun = time.monotonic()
    index.search(query, 1000)
    return found, (time.monotonic() - begun) * 1e3


def version(name):
    from importlib import metadata

    return metadata.version(name)


def main():
    documents = int(sys.argv[1]) if len(sys.argv) > 1 else 50000
    number = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    texts, queries = draw(documents, number)
    rows = list(packages(texts, queries))
    times = {name: [] for name, _, _ in rows}
    for _ in range(ROUNDS):
        for name, n, ask in rows:
            begun = time.process_time()
            ask()
            times[name].append((time.process_time() - begun) / n * 1e6)
    commit = subprocess.run(
        ["git", "-C", os.path.dirname(os.path.abspath(__file__)), "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    cpu = next(
        (line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8") if "model name" in line), "?"
    )
    print(
        f"# command: tools/peers/packages.py {documents} {number}: us of processor time a query, of {ROUNDS} rounds"
    )
    print(
        f"# commit: {commit}; gpuir {gpuir.__version__}; Python {platform.python_version()}, numpy {numpy.__version__}"
    )
    print(f"# machine: {cpu}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; {datetime.date.today()}")
    waits, alone = interrupts(texts)
    print(
        f"# Ctrl-C ends a search that takes {alone:.0f} ms after {statistics.median(waits):.1f} ms (median),"
        f" {max(waits):.1f} (most) of {len(waits)}"
    )
    print("what\tmedian\tleast\tbeyond C")
    base = times["gpuir, in C"]
    for name, _, _ in rows:
        beyond = statistics.median(t - c for t, c in zip(times[name], base))
        said = f"{beyond:.2f}" if name in ("gpuir, search", "gpuir, batch") else ""
        print(f"{name}\t{statistics.median(times[name]):.2f}\t{min(times[name]):.2f}\t{said}")


if __name__ == "__main__":
    main()
