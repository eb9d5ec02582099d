#!/usr/bin/env python3
"""peers.py INDEX WORK: other engines beside gpuir, on the same documents, the same terms and the same queries.

Every engine gets each document of INDEX as its bag of words, term by term as INDEX has it, so that text analysis plays
no part; terms that are not plain ASCII get a spelling that is. Queries are drawn by `gpuir bench --sample`. Measured is
the search alone, of queries that are parsed already: the ten best, BM25, one thread, warm, each query's median over
the rounds. What is built stands in WORK, a folder for this INDEX alone, and is reused.

  --queries N   queries in the sample (1000)      --rounds N   after one to warm up (3)
  --engines L   of gpuir,tantivy,pisa,lucene,xapian,sqlite,bm25s (all that are installed)
  --slow N      queries for engines that score every match (100)
  --tsv FILE    the table as TSV with its provenance
  --lucene JARS lucene-core and lucene-analysis-common of Lucene 10, parted by ':', for `javac` and `java` of 21 or later

NumPy is needed. tantivy, pyterrier-pisa and bm25s come from PyPI; Xapian's Python module is Debian's python3-xapian; SQLite is Python's.
"""

import argparse
import ctypes
import hashlib
import json
import os
import platform
import re
import sqlite3
import statistics
import subprocess
import sys
import time

try:
    import numpy as np
except ImportError:
    np = None

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
BUILD = os.path.join(ROOT, "build")
K = 10


PLOT = (
    "# plot", "peers_chunks", "bars", "log-y", "Ranked search beside gpuir: how many times as long a query takes, on average",
    "engine", "times as long as gpuir, which is 1 (logarithmic)", "and,or", "engine", "mean_ratio", "mode",
)  # fmt: skip


class TermInfo(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint64), ("term", ctypes.c_ubyte * 256), ("term_len", ctypes.c_size_t), ("df", ctypes.c_uint32),
        ("cf", ctypes.c_uint64), ("idf", ctypes.c_float), ("codec", ctypes.c_char_p), ("freq_codec", ctypes.c_char_p),
        ("bytes", ctypes.c_uint64 * 4), ("blocks", ctypes.c_uint32),
    ]  # fmt: skip


def spelling(term):
    """A term in at most 64 letters and digits, which every engine takes as one token."""
    if term.isalnum() and term.isascii() and len(term) <= 64:
        return term.decode()
    return "Z" + (term.hex() if len(term) < 32 else hashlib.sha256(term).hexdigest()[:60])


class Collection:
    """All postings of an index in memory."""

    def __init__(self, path):
        lib = ctypes.CDLL(os.path.join(BUILD, "libgpuir.so"))
        pointer = ctypes.POINTER(ctypes.c_uint32)
        lib.gpuir_term_postings.argtypes = [ctypes.c_void_p, ctypes.c_uint64, pointer, pointer]
        lib.gpuir_term_get_info.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(TermInfo)]
        index = ctypes.c_void_p()
        if lib.gpuir_open(os.fsencode(path), None, ctypes.byref(index), None):
            sys.exit(f"peers.py: cannot open {path}")
        stats = json.loads(subprocess.check_output([gpuir(), "stats", "--json", path]))
        self.ndocs, nterms, npostings = (stats[key] for key in ("documents", "terms", "postings"))
        self.docs = np.empty(npostings, np.uint32)
        self.tfs = np.empty(npostings, np.uint32)
        self.starts = np.zeros(nterms + 1, np.int64)
        self.terms = []
        at, info = 0, TermInfo()
        for term in range(nterms):
            lib.gpuir_term_get_info(index, term, ctypes.byref(info))
            self.terms.append(spelling(bytes(info.term[: info.term_len])))
            status = lib.gpuir_term_postings(
                index, term, self.docs[at:].ctypes.data_as(pointer), self.tfs[at:].ctypes.data_as(pointer)
            )
            if status:
                sys.exit(f"peers.py: {path}: damaged list of term {term}")
            at += info.df
            self.starts[term + 1] = at
        lib.gpuir_close(index)
        self.lengths = np.bincount(self.docs, weights=self.tfs, minlength=self.ndocs).astype(np.uint32)

    def bags(self):
        """Each document as [(term number, tf)], in docID order."""
        numbers = np.repeat(np.arange(len(self.terms), dtype=np.uint32), np.diff(self.starts))
        order = np.argsort(self.docs, kind="stable")
        numbers, tfs = numbers[order], self.tfs[order]
        ends = np.cumsum(np.bincount(self.docs, minlength=self.ndocs))
        begin = 0
        for end in ends.tolist():
            yield zip(numbers[begin:end].tolist(), tfs[begin:end].tolist())
            begin = end

    def text(self, path):
        """One line of words a document, in a file."""
        if not os.path.exists(path):
            with open(path + ".new", "w", encoding="ascii") as out:
                for bag in self.bags():
                    out.write(" ".join(" ".join([self.terms[t]] * tf) for t, tf in bag) + "\n")
            os.rename(path + ".new", path)
        return path


def gpuir():
    return os.path.join(BUILD, "gpuir")


def figures(times):
    """Mean, median and 99th percentile."""
    return statistics.mean(times), statistics.median(times), float(np.percentile(times, 99))


def rounds(run, queries, n):
    """The figures of each query's median over n rounds, in microseconds, after one to warm up."""
    times = [[] for _ in queries]
    for i in range(n + 1):
        for j, query in enumerate(queries):
            start = time.perf_counter_ns()
            run(query)
            if i:
                times[j].append((time.perf_counter_ns() - start) / 1e3)
    return figures([statistics.median(t) for t in times])


class Gpuir:
    name, kind = "gpuir", "C header; this project's own bench"

    def __init__(self, setup):
        self.setup = setup

    def version(self):
        return subprocess.check_output([gpuir(), "--version"], text=True).split()[1]

    def measure(self, mode, words):
        path = os.path.join(self.setup.work, "gpuir.txt")
        with open(path, "wb") as out:
            out.write(b"".join(b" ".join(w) + b"\n" for w in self.setup.raw[: len(words)]))
        tsv = os.path.join(self.setup.work, "gpuir.tsv")
        subprocess.check_call(
            [gpuir(), "bench", "--queries", path, "--no-ids", "--no-operators", "--modes", mode, "-k", str(K),
             "--threads", "1", "--repeat", str(self.setup.rounds), "--tsv", tsv, self.setup.index],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        with open(tsv, encoding="utf-8") as lines:
            names, row = [line.rstrip("\n").split("\t") for line in lines if not line.startswith("#")][:2]
        return tuple(float(row[names.index(key)]) for key in ("mean_us", "p50_us", "p99_us"))


class Tantivy:
    name, kind = "tantivy", "Rust library; Python binding"

    def __init__(self, setup, folder="tantivy", option="freq"):
        import tantivy

        self.t, self.setup = tantivy, setup
        path = os.path.join(setup.work, folder)
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("body", stored=False, tokenizer_name="whitespace", index_option=option)
        self.schema = schema.build()
        if not os.path.exists(path):
            os.mkdir(path + ".new")
            index = tantivy.Index(self.schema, path=path + ".new")
            writer = index.writer(1 << 30, 1)
            with open(setup.text(), encoding="ascii") as lines:
                for line in lines:
                    writer.add_document(tantivy.Document(body=line))
            writer.commit()
            writer.wait_merging_threads()
            os.rename(path + ".new", path)
        self.searcher = tantivy.Index.open(path).searcher()

    def version(self):
        from importlib.metadata import version

        return f"{version('tantivy')}, {self.searcher.num_segments} segments"

    def measure(self, mode, words):
        occur = self.t.Occur.Must if mode == "and" else self.t.Occur.Should
        queries = [
            self.t.Query.boolean_query([(occur, self.t.Query.term_query(self.schema, "body", w, "freq")) for w in q])
            for q in words
        ]
        return rounds(lambda q: self.searcher.search(q, K, count=False), queries, self.setup.rounds)


class Pisa:
    name, kind = "PISA", "C++ engine; Python binding"
    algorithms = {"or": "block_max_maxscore", "and": "block_max_ranked_and"}

    def __init__(self, setup):
        from pyterrier_pisa import PisaIndex, _pisathon

        self.p, self.setup = _pisathon, setup
        path = os.path.join(setup.work, "pisa")
        if not os.path.exists(path):
            self.write(setup.collection(), path + ".new")
            os.rename(path + ".new", path)
        index = PisaIndex(path, stemmer="none", stops="none", threads=1)
        self.retriever = index.bm25(k1=0.9, b=0.4, num_results=K, threads=1)
        self.encoding = index.index_encoding.value

    def write(self, c, path):
        """The binary collection: .docs, .freqs and .sizes, and the two word lists."""
        os.mkdir(path)
        dfs = np.diff(c.starts).astype(np.uint32)
        order = np.argsort(np.array(c.terms, dtype=object), kind="stable")
        for name, values, first in (("docs", c.docs, [1, c.ndocs]), ("freqs", c.tfs, [])):
            with open(f"{path}/inv.{name}", "wb") as out:
                np.array(first, np.uint32).tofile(out)
                for t in order.tolist():
                    dfs[t : t + 1].tofile(out)
                    values[c.starts[t] : c.starts[t + 1]].tofile(out)
        np.concatenate([np.array([c.ndocs], np.uint32), c.lengths]).tofile(f"{path}/inv.sizes")
        with open(f"{path}/fwd.terms", "w", encoding="ascii") as out:
            out.write("".join(c.terms[t] + "\n" for t in order.tolist()))
        with open(f"{path}/fwd.documents", "w", encoding="ascii") as out:
            out.write("".join(f"{i}\n" for i in range(c.ndocs)))
        self.p.build_binlex(f"{path}/fwd.documents", f"{path}/fwd.doclex")
        self.p.build_binlex(f"{path}/fwd.terms", f"{path}/fwd.termlex")
        with open(f"{path}/pt_meta.json", "w", encoding="ascii") as out:
            json.dump({"type": "sparse_index", "format": "pisa", "package_hint": "pyterrier-pisa", "stemmer": "none"}, out)

    def version(self):
        from importlib.metadata import version

        return f"pyterrier-pisa {version('pyterrier-pisa')}, {self.encoding}, {', '.join(self.algorithms.values())}"

    def measure(self, mode, words):
        n = K
        arrays = [np.empty(n, t) for t in (np.int32, object, np.int32, np.float32)]

        def run(query):
            return self.p.retrieve(
                self.retriever._ctxt, self.algorithms[mode], [(0, query)], k=K, threads=1, query_weighted=0,
                pretokenised=True, result_qidxs=arrays[0], result_docnos=arrays[1], result_ranks=arrays[2],
                result_scores=arrays[3],
            )  # fmt: skip

        return rounds(run, [{w: 1.0 for w in q} for q in words], self.setup.rounds)


class Lucene:
    name, kind = "Lucene", "Java library; a Java program"

    def __init__(self, setup, folder="lucene", positions=""):
        if not setup.lucene:
            raise ImportError("no --lucene JARS")
        self.setup, self.out = setup, os.path.join(setup.work, "java")
        os.makedirs(self.out, exist_ok=True)
        subprocess.check_call(
            ["javac", "-nowarn", "-cp", setup.lucene, "-d", self.out, os.path.join(HERE, "LuceneBench.java")]
        )
        self.path = os.path.join(setup.work, folder)
        if not os.path.exists(self.path):
            self.java("index", self.path + ".new", setup.text(), positions)
            os.rename(self.path + ".new", self.path)

    def java(self, *arguments):
        return subprocess.check_output(
            ["java", "-Xmx4g", "--add-modules", "jdk.incubator.vector", "-cp", self.out + ":" + self.setup.lucene,
             "LuceneBench", *arguments],
            text=True, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def version(self):
        return self.java("version").strip()

    def measure(self, mode, words):
        path = os.path.join(self.setup.work, "lucene.txt")
        with open(path, "w", encoding="ascii") as out:
            out.write("".join(" ".join(w) + "\n" for w in words))
        # a virtual machine needs more rounds to be warm
        report = self.java("search", self.path, path, mode, str(K), str(self.setup.rounds), "5")
        return figures([float(line) for line in report.splitlines()])


class Xapian:
    name, kind = "Xapian", "C++ library; Python binding"

    def __init__(self, setup):
        import xapian

        self.x, self.setup = xapian, setup
        path = os.path.join(setup.work, "xapian")
        if not os.path.exists(path):
            db = xapian.WritableDatabase(path + ".new", xapian.DB_CREATE)
            c = setup.collection()
            for i, bag in enumerate(c.bags()):
                doc = xapian.Document()
                for term, tf in bag:
                    doc.add_term(c.terms[term], tf)
                db.add_document(doc)
                if i % 100000 == 99999:
                    db.commit()
            db.close()
            xapian.Database(path + ".new").compact(path)
            subprocess.check_call(["rm", "-rf", path + ".new"])
        self.enquire = xapian.Enquire(xapian.Database(path))
        self.enquire.set_weighting_scheme(xapian.BM25Weight(0.9, 0, 1, 0.4, 0))

    def version(self):
        return self.x.version_string()

    def measure(self, mode, words):
        op = self.x.Query.OP_AND if mode == "and" else self.x.Query.OP_OR

        def run(query):
            self.enquire.set_query(query)
            return self.enquire.get_mset(0, K)

        return rounds(run, [self.x.Query(op, q) for q in words], self.setup.rounds)


class Sqlite:
    name, kind, slow = "SQLite FTS5", "C library; Python binding", True

    def __init__(self, setup):
        self.setup = setup
        path = os.path.join(setup.work, "fts5")
        if not os.path.exists(path):
            db = sqlite3.connect(path + ".new")
            db.execute("create virtual table t using fts5(body, content='', columnsize=1, detail=none)")
            with open(setup.text(), encoding="ascii") as lines:
                db.executemany("insert into t(rowid, body) values(?, ?)", ((i + 1, x) for i, x in enumerate(lines)))
            db.execute("insert into t(t) values('optimize')")
            db.commit()
            db.close()
            os.rename(path + ".new", path)
        self.db = sqlite3.connect(path)
        self.db.execute("pragma mmap_size=8000000000")

    def version(self):
        return sqlite3.sqlite_version

    def measure(self, mode, words):
        joint = " AND " if mode == "and" else " OR "
        sql = f"select rowid from t where t match ? order by rank limit {K}"
        return rounds(lambda q: self.db.execute(sql, (q,)).fetchall(), [joint.join(q) for q in words], self.setup.rounds)


class Bm25s:
    name, kind, slow = "bm25s", "Python and Numba, scores kept in a sparse matrix", True

    def __init__(self, setup):
        import bm25s

        self.b, self.setup = bm25s, setup
        path = os.path.join(setup.work, "bm25s")
        if not os.path.exists(path):
            c = setup.collection()
            retriever = bm25s.BM25(k1=0.9, b=0.4, method="lucene", backend="numba")
            ids = [[t for t, tf in bag for _ in range(tf)] for bag in c.bags()]
            retriever.index((ids, {w: i for i, w in enumerate(c.terms)}), show_progress=False)
            retriever.save(path + ".new")
            os.rename(path + ".new", path)
        self.retriever = bm25s.BM25.load(path, mmap=False)
        self.retriever.backend = "numba"
        self.retriever.activate_numba_scorer()

    def version(self):
        return self.b.__version__

    def measure(self, mode, words):
        if mode == "and":
            return None
        return rounds(
            lambda q: self.retriever.retrieve([q], k=K, show_progress=False, n_threads=1), words, self.setup.rounds
        )


ENGINES = {e.name.lower().split()[0]: e for e in (Gpuir, Tantivy, Pisa, Lucene, Xapian, Sqlite, Bm25s)}


class Setup:
    def __init__(self, arguments):
        self.index, self.work = arguments.index, arguments.work
        self.rounds, self.lucene = arguments.rounds, arguments.lucene
        os.makedirs(self.work, exist_ok=True)
        self.claim_work()
        path = os.path.join(self.work, "queries.txt")
        subprocess.run(
            [gpuir(), "bench", "--sample", str(arguments.queries), "--seed", "1", "--modes", "count", "--warmup", "0",
             "--repeat", "1", "--threads", "1", "--dump-queries", path, self.index],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        with open(path, "rb") as lines:
            self.raw = [re.sub(rb"^[0-9]+: *", b"", line).split() for line in lines]
        self.words = [[spelling(w) for w in q] for q in self.raw]
        self._collection = None

    def claim_work(self):
        """What other engines built of another index must not be measured beside this one."""
        path = os.path.join(self.work, "index.json")
        stats = subprocess.check_output([gpuir(), "stats", "--json", self.index])
        if os.path.exists(path):
            with open(path, "rb") as before:
                if before.read() != stats:
                    sys.exit(f"peers.py: {self.work} holds what was built of another index")
        with open(path, "wb") as out:
            out.write(stats)

    def collection(self):
        if not self._collection:
            self._collection = Collection(self.index)
        return self._collection

    def text(self):
        path = os.path.join(self.work, "text")
        return path if os.path.exists(path) else self.collection().text(path)


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{model}, {os.cpu_count()} cores"


def commit():
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--exclude=*"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("index")
    parser.add_argument("work")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slow", type=int, default=100)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--tsv")
    parser.add_argument("--lucene")
    arguments = parser.parse_args()
    for key in arguments.engines.split(","):
        if key not in ENGINES:
            parser.error(f"--engines: '{key}' is none of {','.join(ENGINES)}")
    if not np:
        sys.exit("peers.py: NumPy is needed (Debian's python3-numpy)")
    setup = Setup(arguments)
    table = [("engine", "version", "mode", "queries", "mean_us", "p50_us", "p99_us", "mean_ratio", "p50_ratio", "p99_ratio")]
    for key in arguments.engines.split(","):
        try:
            engine = ENGINES[key](setup)
        except ImportError as error:
            print(f"{key}: left out: {error}", file=sys.stderr)
            continue
        words = setup.words[: arguments.slow] if getattr(engine, "slow", False) else setup.words
        for mode in ("and", "or"):
            # gpuir beside it, in the same minute and on the same queries: the ratio of one run
            base, times = Gpuir(setup).measure(mode, words), engine.measure(mode, words)
            if not times:
                continue
            table.append(
                (engine.name, engine.version(), mode, len(words), *(f"{x:.1f}" for x in times),
                 *(f"{x / y:.2f}" for x, y in zip(times, base)))
            )  # fmt: skip
            print("\t".join(map(str, table[-1])), flush=True)
    if arguments.tsv:
        with open(arguments.tsv, "w", encoding="utf-8") as out:
            out.write(f"# machine\t{machine()}\n# index\t{os.path.basename(setup.index)}\n")
            out.write(f"# commit\t{commit()}\n")
            out.write(f"# command\tpeers.py {' '.join(sys.argv[1:])}\n")
            out.write("# ratios are to gpuir, measured beside each engine on the same queries\n")
            out.write("\t".join(PLOT) + "\n")  # gpuir lab plot FILE draws it
            out.write("".join("\t".join(map(str, row)) + "\n" for row in table))


if __name__ == "__main__":
    main()
