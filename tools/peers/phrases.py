#!/usr/bin/env python3
"""phrases.py INDEX WORK: phrases by other engines beside gpuir, on the same tokens and the same queries.

INDEX has positions (`gpuir index --positions`). Every engine gets each document as its tokens in their order, as INDEX
has them, so that text analysis plays no part; tokens that are not plain ASCII get a spelling that is. Measured are the
ten best documents and the number of all, of phrases that are parsed already, with one thread, warm: each phrase's
median over the rounds. What engines count must be equal. What is built stands in WORK and is reused.

  --bisected F  and those of F, INDEX after `gpuir reorder --order bisect`, whose files stand in WORK/bisected
  --queries N   phrases of 2 to 4 tokens that stand somewhere in the collection, drawn at random (1000)
  --game FILE   and those of the search benchmark game, a JSON object a line, that consist of the index's terms
  --rounds N    after one to warm up (3)
  --engines L   of tantivy,lucene (all that are installed); gpuir is always measured, beside each of them
  --tsv FILE    the table as TSV with its provenance
  --lucene JARS as peers.py has it
"""

import argparse
import ctypes
import json
import os
import random
import subprocess
import sys

import peers
from peers import K, figures, gpuir, np, rounds


class Tokens:
    """All tokens of an index in their order: numbers of terms, documents one behind the other."""

    def __init__(self, path):
        lib = ctypes.CDLL(os.path.join(peers.BUILD, "libgpuir.so"))
        c = peers.Collection(path)
        self.terms, self.ndocs = c.terms, c.ndocs
        self.starts = np.concatenate([[0], np.cumsum(c.lengths, dtype=np.int64)])
        self.tokens = np.empty(int(self.starts[-1]), np.uint32)
        index = ctypes.c_void_p()
        if lib.gpuir_open(os.fsencode(path), None, ctypes.byref(index), None):
            sys.exit(f"phrases.py: cannot open {path}")
        pointer = ctypes.POINTER(ctypes.c_uint32)
        lib.gpuir_term_positions.argtypes = [ctypes.c_void_p, ctypes.c_uint64, pointer, ctypes.c_uint64]
        for term in range(len(self.terms)):
            docs, tfs = (x[c.starts[term] : c.starts[term + 1]] for x in (c.docs, c.tfs))
            n = int(tfs.sum())
            positions = np.empty(n, np.uint32)
            if lib.gpuir_term_positions(index, term, positions.ctypes.data_as(pointer), n):
                sys.exit(f"phrases.py: {path} has no positions, or is damaged")
            self.tokens[np.repeat(self.starts[docs], tfs) + positions] = term
        lib.gpuir_close(index)

    def text(self, path):
        """One line of words a document, in a file."""
        names = np.array(self.terms, dtype=object)
        with open(path + ".new", "w", encoding="ascii") as out:
            for i in range(self.ndocs):
                out.write(" ".join(names[self.tokens[self.starts[i] : self.starts[i + 1]]]) + "\n")
        os.rename(path + ".new", path)

    def sample(self, n):
        """Phrases that stand in the collection, of terms that need no other spelling."""
        draw, found = random.Random(1), []
        while len(found) < n:
            length = draw.randint(2, 4)
            doc = draw.randrange(self.ndocs)
            room = int(self.starts[doc + 1] - self.starts[doc]) - length
            if room < 0:
                continue
            at = int(self.starts[doc]) + draw.randint(0, room)
            words = [self.terms[t] for t in self.tokens[at : at + length]]
            if all(not w.startswith("Z") for w in words):
                found.append(words)
        return found


class Gpuir:
    """gpuir by its own bench, and its counts by the library."""

    def __init__(self, setup):
        self.setup = setup

    def measure(self, mode, phrases):
        path, tsv = (os.path.join(self.setup.work, name) for name in ("gpuir.txt", "gpuir.tsv"))
        with open(path, "w", encoding="ascii") as out:
            out.write("".join(f'"{" ".join(words)}"\n' for words in phrases))
        subprocess.check_call(
            [gpuir(), "bench", "--queries", path, "--no-ids", "--modes", "and" if mode == "top" else "count", "-k", str(K),
             "--threads", "1", "--repeat", str(self.setup.rounds), "--tsv", tsv, self.setup.index],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        with open(tsv, encoding="utf-8") as lines:
            names, row = [line.rstrip("\n").split("\t") for line in lines if not line.startswith("#")][:2]
        return tuple(float(row[names.index(key)]) for key in ("mean_us", "p50_us", "p99_us"))

    def counts(self, phrases):
        lib = ctypes.CDLL(os.path.join(peers.BUILD, "libgpuir.so"))
        index, searcher = ctypes.c_void_p(), ctypes.c_void_p()
        lib.gpuir_open(os.fsencode(self.setup.index), None, ctypes.byref(index), None)
        lib.gpuir_searcher_create(index, None, ctypes.byref(searcher), None)
        found = []
        for words in phrases:
            query, n = ctypes.c_void_p(), ctypes.c_uint64()
            text = f'"{" ".join(words)}"'.encode()
            if lib.gpuir_query_parse(index, None, text, ctypes.c_size_t(len(text)), ctypes.byref(query), None):
                sys.exit(f"phrases.py: {text} is no query")
            lib.gpuir_count(searcher, query, ctypes.byref(n))
            lib.gpuir_query_destroy(query)
            found.append(n.value)
        lib.gpuir_searcher_destroy(searcher)
        lib.gpuir_close(index)
        return found


class Tantivy(peers.Tantivy):
    def __init__(self, setup):
        super().__init__(setup, "tantivy-positions", "position")

    def queries(self, phrases):
        return [self.t.Query.phrase_query(self.schema, "body", list(words)) for words in phrases]

    def measure(self, mode, phrases):
        """The binding has no collector that counts alone: its count comes with one hit."""
        k, count = (K, False) if mode == "top" else (1, True)
        return rounds(lambda q: self.searcher.search(q, k, count=count), self.queries(phrases), self.setup.rounds)

    def counts(self, phrases):
        return [self.searcher.search(q, 1, count=True).count for q in self.queries(phrases)]


class Lucene(peers.Lucene):
    def __init__(self, setup):
        super().__init__(setup, "lucene-positions", "positions")

    def report(self, phrases, mode, n):
        path = os.path.join(self.setup.work, "lucene.txt")
        with open(path, "w", encoding="ascii") as out:
            out.write("".join(" ".join(words) + "\n" for words in phrases))
        return [float(line) for line in self.java("search", self.path, path, mode, str(K), str(n), "5").splitlines()]

    def measure(self, mode, phrases):
        return figures(self.report(phrases, "phrase" if mode == "top" else "phrase-count", self.setup.rounds))

    def counts(self, phrases):
        return [int(x) for x in self.report(phrases, "phrase-number", 1)]


ENGINES = {"tantivy": Tantivy, "lucene": Lucene}


class Setup:
    def __init__(self, arguments, index, work):
        self.index, self.work = index, work
        self.rounds, self.lucene = arguments.rounds, arguments.lucene
        os.makedirs(self.work, exist_ok=True)
        path = os.path.join(self.work, "phrases.json")
        if not os.path.exists(path):
            tokens = Tokens(self.index)
            tokens.text(os.path.join(self.work, "tokens"))
            with open(path, "w", encoding="ascii") as out:
                json.dump({"sampled": tokens.sample(arguments.queries), "game": self.game(arguments.game, tokens)}, out)
        with open(path, encoding="ascii") as lines:
            self.phrases = {name: phrases for name, phrases in json.load(lines).items() if phrases}

    def game(self, path, tokens):
        known, found = set(tokens.terms), []
        if path:
            with open(path, encoding="utf-8") as lines:
                for query in (json.loads(line)["query"] for line in lines):
                    words = query.strip('"').split()
                    if query.startswith('"') and len(words) > 1 and all(w in known for w in words):
                        found.append(words)
        return found

    def text(self):
        return os.path.join(self.work, "tokens")


def measure(setup, engines, order, table):
    """Measures the engines beside gpuir on one index, whose documents are in this order."""
    own = Gpuir(setup)
    wanted = {name: own.counts(phrases) for name, phrases in setup.phrases.items()}
    for key in engines:
        try:
            engine = ENGINES[key](setup)
        except ImportError as error:
            print(f"{key}: left out: {error}", file=sys.stderr)
            continue
        for name, phrases in setup.phrases.items():
            if engine.counts(phrases) != wanted[name]:
                sys.exit(f"phrases.py: {engine.name} finds other documents than gpuir")
            for mode in ("top", "count"):
                base, times = own.measure(mode, phrases), engine.measure(mode, phrases)
                table.append(
                    (engine.name, engine.version(), name, mode, len(phrases), sum(wanted[name]),
                     *(f"{x:.1f}" for x in (*times, *base)), *(f"{x / y:.2f}" for x, y in zip(times, base)), order)
                )  # fmt: skip
                print("\t".join(map(str, table[-1])), flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("index")
    parser.add_argument("work")
    parser.add_argument("--bisected")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--game")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--tsv")
    parser.add_argument("--lucene")
    arguments = parser.parse_args()
    table = [("engine", "version", "phrases", "mode", "queries", "matches", "mean_us", "p50_us", "p99_us", "gpuir_mean_us",
              "gpuir_p50_us", "gpuir_p99_us", "mean_ratio", "p50_ratio", "p99_ratio", "order")]  # fmt: skip
    engines = arguments.engines.split(",")
    measure(Setup(arguments, arguments.index, arguments.work), engines, "given", table)
    if arguments.bisected:
        work = os.path.join(arguments.work, "bisected")
        measure(Setup(arguments, arguments.bisected, work), engines, "bisected", table)
    if arguments.tsv:
        with open(arguments.tsv, "w", encoding="utf-8") as out:
            out.write(f"# machine\t{peers.machine()}\n# index\t{os.path.basename(arguments.index)}\n")
            out.write(f"# commit\t{peers.commit()}\n")
            out.write(f"# command\tphrases.py {' '.join(sys.argv[1:])}\n")
            out.write("# ratios are to gpuir, measured beside each engine on the same phrases; all count the same documents\n")
            out.write("".join("\t".join(map(str, row)) + "\n" for row in table))


if __name__ == "__main__":
    main()
