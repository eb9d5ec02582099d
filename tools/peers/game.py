#!/usr/bin/env python3
"""game.py INDEX WORK: the search benchmark game's commands, by other engines beside gpuir, on one file of texts.

INDEX has positions (`gpuir index --positions`). Every engine gets the same file, a document a line: its tokens in their
order, as INDEX has them. So the order of the documents is INDEX's; after `gpuir reorder --order bisect` it is bisected
for all. Every engine answers COUNT, TOP_10, TOP_100, TOP_1000, TOP_10_COUNT and TOP_100_COUNT for queries of eight
kinds: the game's "phrase", +a +b, a b and +a b, single terms, +a +b and a b of 8 to 16 words, and +a +b of words that
all stand in at least one document of 16. What it cannot do is UNSUPPORTED. The engines take turns, round by round; a query's time is the median of its rounds. It is the processor
time of the thread that searches, and the clock's beside it. What engines count must be equal. What is built stands in
WORK and is reused.

  --queries N   drawn of each kind; of terms, phrases and long ones a third (1000)
  --rounds N    after those that warm up (3)
  --game FILE   and those of the game, a JSON object a line, that consist of the index's terms, as kinds of their own
  --engines L   of lucene,tantivy,pisa (all that are installed); gpuir is always measured, beside them
  --slow N      queries of each kind for tantivy and PISA, which are called through Python (100)
  --commands L  of the above (all)
  --simd LEVEL  avx2: gpuir and Lucene without AVX-512
  --tsv FILE    the table as TSV with its provenance
  --lucene JARS as peers.py has it
  --work FILE   only gpuir's counters, which any load leaves as they are, as TSV: the blocks of the queries' lists, those
                decoded and the postings scored, on average; "least": where the last hit's score is known before
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import peers
import phrases
from peers import gpuir, np

COMMANDS = ["COUNT", "TOP_10", "TOP_100", "TOP_1000", "TOP_10_COUNT", "TOP_100_COUNT"]
PLOT = (
    "# plot", "game_chunks", "bars", "log-y",
    "Ranked search beside gpuir: how many times as long a query takes, on average",
    "engine", "times as long as gpuir, which is 1 (logarithmic)", "",
    "engine", "mean_ratio", "asked",
)  # fmt: skip


class Program:
    """An engine that is a program: a request a line in, an answer and its nanoseconds a line out."""

    few = False

    def __init__(self, argv):
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def answer(self, command, query):
        """(answer, thread's ns, clock's ns), or None for what is not supported."""
        self.process.stdin.write(f"{command}\t{query}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"game.py: {self.name} ended at {command} {query}")
        return None if line.startswith("UNSUPPORTED") else tuple(map(int, line.split()))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Gpuir(Program):
    name, warm = "gpuir", 1

    def __init__(self, setup):
        path = os.path.join(setup.work, "game")
        with_utf8 = subprocess.run(
            [setup.cc, "-include", "utf8proc.h", "-E", "-x", "c", os.devnull], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, check=False,
        ).returncode == 0  # fmt: skip
        subprocess.check_call(
            [setup.cc, "-std=c99", "-O3", *(["-DGPUIR_WITH_UTF8PROC"] if with_utf8 else []), "-I" + peers.ROOT, "-o",
             path, os.path.join(peers.HERE, "game.c"), *(["-lutf8proc"] if with_utf8 else []), "-lm", "-pthread"]
        )  # fmt: skip
        super().__init__([path, setup.index, "2" if setup.simd == "avx2" else "0"] + ["work"] * bool(setup.work_file))

    def version(self):
        return subprocess.check_output([gpuir(), "--version"], text=True).split()[1]


class Lucene(Program):
    """A virtual machine needs more rounds to be warm."""

    name, warm = "Lucene", 4

    def __init__(self, setup):
        self.built = peers.Lucene(setup, "lucene-positions", "positions")
        simd = ["-XX:UseAVX=2"] if setup.simd == "avx2" else []
        super().__init__(
            ["java", "-Xmx4g", *simd, "--add-modules", "jdk.incubator.vector", "-cp",
             self.built.out + ":" + setup.lucene, "LuceneBench", "serve", self.built.path]
        )  # fmt: skip

    def version(self):
        return self.built.version()


class Module:
    """An engine that is a Python module. Its processor time is this process's, in which nothing else runs meanwhile."""

    few, warm = True, 1

    def timed(self, run):
        clock, thread = time.perf_counter_ns(), time.process_time_ns()
        found = run()
        thread = time.process_time_ns() - thread
        return found, thread, time.perf_counter_ns() - clock

    def close(self):
        pass


def clauses(query):
    """[(whether it must match, words)], a phrase having several."""
    found, at = [], 0
    while at < len(query):
        must = query[at] == "+"
        at += must
        quoted = query[at] == '"'
        end = query.index('"', at + 1) if quoted else (query + " ").index(" ", at)
        found.append((must, query[at + quoted : end].split()))
        at = end + quoted + 1
    return found


class Tantivy(Module):
    name = "tantivy"

    def __init__(self, setup):
        self.built = phrases.Tantivy(setup)

    def version(self):
        return self.built.version()

    def query(self, text):
        t, schema = self.built.t, self.built.schema
        parts = [
            (t.Occur.Must if must else t.Occur.Should,
             t.Query.term_query(schema, "body", words[0], "freq") if len(words) == 1 else
             t.Query.phrase_query(schema, "body", list(words)))
            for must, words in clauses(text)
        ]  # fmt: skip
        return parts[0][1] if len(parts) == 1 else t.Query.boolean_query(parts)

    def answer(self, command, text):
        """The binding has no collector that counts alone: its count comes with one hit."""
        query, search = self.query(text), self.built.searcher.search
        if command == "COUNT":
            return self.timed(lambda: search(query, 1, count=True).count)
        k, count = int(command.split("_")[1]), command.endswith("_COUNT")
        return self.timed(lambda: (lambda r: r.count if count else len(r.hits))(search(query, k, count=count)))


class Pisa(Module):
    """The binding neither counts nor knows phrases, nor words that must match beside others."""

    name = "PISA"

    def __init__(self, setup):
        self.built = peers.Pisa(setup)

    def version(self):
        return self.built.version()

    def answer(self, command, text):
        parts = clauses(text)
        musts = {must for must, _ in parts}
        if "COUNT" in command or len(musts) > 1 or any(len(words) > 1 for _, words in parts):
            return None
        k, weights = int(command.split("_")[1]), {words[0]: 1.0 for _, words in parts}
        arrays = [np.empty(k, t) for t in (np.int32, object, np.int32, np.float32)]
        return self.timed(lambda: self.built.p.retrieve(
            self.built.retriever._ctxt, self.built.algorithms["and" if musts == {True} else "or"], [(0, weights)], k=k,
            threads=1, query_weighted=0, pretokenised=True, result_qidxs=arrays[0], result_docnos=arrays[1],
            result_ranks=arrays[2], result_scores=arrays[3],
        ))  # fmt: skip


ENGINES = {"lucene": Lucene, "tantivy": Tantivy, "pisa": Pisa}


class Setup:
    def __init__(self, arguments):
        self.index, self.work, self.lucene = arguments.index, arguments.work, arguments.lucene
        self.rounds, self.simd, self.cc = arguments.rounds, arguments.simd, os.environ.get("CC", "gcc")
        self.work_file = arguments.work_file
        os.makedirs(self.work, exist_ok=True)
        path = os.path.join(self.work, "queries.json")
        if not os.path.exists(path):
            tokens = phrases.Tokens(self.index)
            tokens.text(self.text())
            queries = self.draw(arguments.queries, tokens)
            queries.update(self.game(arguments.game, set(tokens.terms)))
            with open(path, "w", encoding="ascii") as out:
                json.dump(queries, out)
        with open(path, encoding="ascii") as lines:
            self.queries = json.load(lines)
        self._collection = None

    def text(self):
        return os.path.join(self.work, "tokens")

    def collection(self):
        self._collection = self._collection or peers.Collection(self.index)
        return self._collection

    def sample(self, n, least, most):
        """Queries as `gpuir bench` draws them, of words that need no other spelling."""
        path = os.path.join(self.work, "sample.txt")
        subprocess.run(
            [gpuir(), "bench", "--sample", str(n), "--min-len", str(least), "--max-len", str(most), "--modes", "count",
             "--warmup", "0", "--repeat", "1", "--threads", "1", "--dump-queries", path, self.index],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        with open(path, "rb") as lines:
            found = [line.partition(b":")[2].split() for line in lines]
        return [[w.decode() for w in q] for q in found if all(peers.spelling(w) == w.decode("latin-1") for w in q)]

    def draw(self, n, tokens):
        short, long = self.sample(n, 2, 5), self.sample((n + 2) // 3, 8, 16)
        terms = list(dict.fromkeys(w for q in short for w in q))[: (n + 2) // 3]
        frequent = self.frequent()
        return {
            "and": [" ".join("+" + w for w in q) for q in short],
            "or": [" ".join(q) for q in short],
            "must": ["+" + " ".join(q) for q in short],
            "term": terms,
            "phrase": [f'"{" ".join(words)}"' for words in tokens.sample((n + 2) // 3)],
            "and-long": [" ".join("+" + w for w in q) for q in long],
            "or-long": [" ".join(q) for q in long],
            "and-frequent": [
                " ".join("+" + w for w in q) for q in self.sample(100 * n, 2, 5) if frequent.issuperset(q)
            ][: (n + 2) // 3],
        }

    def frequent(self):
        """The words that stand in at least one document of 16."""
        documents = json.loads(subprocess.check_output([gpuir(), "stats", "--json", self.index]))["documents"]
        with subprocess.Popen([gpuir(), "terms", "--tsv", self.index], stdout=subprocess.PIPE) as terms:
            rows = (line.split(b"\t", 2)[:2] for line in terms.stdout)
            return {word.decode() for word, df in rows if df.isdigit() and int(df) * 16 >= documents}

    def game(self, path, known):
        """The game's own queries, by its tags, of words that the index has."""
        found = {}
        if path:
            with open(path, encoding="utf-8") as lines:
                for entry in map(json.loads, lines):
                    query = entry["query"].lower()
                    if all(w in known for w in query.replace('"', " ").replace("+", " ").split()):
                        found.setdefault("game-" + entry["tags"][0], []).append(query)
        return found


def ask(engine, command, queries, rounds, times, right, warming):
    """Asks all queries once; keeps the times of each; returns 0 if the engine cannot answer."""
    for i, query in enumerate(queries[:rounds]):
        answer = engine.answer(command, query)
        if answer is None:
            return 0
        if right.setdefault(i, answer[0]) != answer[0]:
            sys.exit(f"game.py: {engine.name} answers {answer[0]}, not {right[i]}: {command} {query}")
        if not warming:
            times.setdefault(i, []).append(answer[1:])
    return 1


def measure(engines, command, queries, setup, few):
    """{engine: [each query's (thread, clock), microseconds]}, of those that can answer."""
    right, times = {}, {e: {} for e in engines}
    count = {e: few if e.few else len(queries) for e in engines}
    able = [e for e in engines for _ in range(e.warm) if ask(e, command, queries, count[e], times[e], right, 1)]
    able = [e for e in engines if e in able]
    for _ in range(setup.rounds):
        for e in able:
            ask(e, command, queries, count[e], times[e], right, 0)
    return {e: [tuple(statistics.median(t) / 1e3 for t in zip(*x)) for _, x in sorted(times[e].items())] for e in able}


def rows(kind, command, engines, measured, unsupported):
    """A row for each engine that can answer: its times, and their quotients by gpuir's on the same queries."""
    own = measured[engines[0]]
    unsupported += [f"{e.name} {command} {kind}" for e in engines if e not in measured]
    for e in measured:
        n = len(measured[e])
        thread, clock = (peers.figures([t[i] for t in measured[e]]) for i in (0, 1))
        base = peers.figures([t[0] for t in own[:n]])
        yield (e.name, e.version(), command, kind, str(n), *(f"{x:.1f}" for x in (*thread, *clock)),
               *(f"{x / y:.2f}" for x, y in zip(thread, base)), f"{command} {kind}")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("index")
    parser.add_argument("work")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slow", type=int, default=100)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--commands", default=",".join(COMMANDS))
    parser.add_argument("--simd", choices=["avx2"])
    parser.add_argument("--game")
    parser.add_argument("--tsv")
    parser.add_argument("--lucene")
    parser.add_argument("--work", dest="work_file")
    arguments = parser.parse_args()
    if not np:
        sys.exit("game.py: NumPy is needed (Debian's python3-numpy)")
    setup = Setup(arguments)
    engines = [Gpuir(setup)]
    if arguments.work_file:
        work(arguments, setup, engines[0])
        return
    for key in filter(None, arguments.engines.split(",")):
        try:
            engines.append(ENGINES[key](setup))
        except ImportError as error:
            print(f"{key}: left out: {error}", file=sys.stderr)
    table = [("engine", "version", "command", "kind", "queries", "mean_us", "p50_us", "p99_us", "clock_mean_us",
              "clock_p50_us", "clock_p99_us", "mean_ratio", "p50_ratio", "p99_ratio", "asked")]  # fmt: skip
    load, unsupported = os.getloadavg()[0], []
    for command in arguments.commands.split(","):
        for kind, queries in setup.queries.items():
            measured = measure(engines, command, queries, setup, arguments.slow)
            for row in rows(kind, command, engines, measured, unsupported):
                table.append(row)
                print("\t".join(row), flush=True)
    for e in engines:
        e.close()
    if arguments.tsv:
        write(arguments, setup, table, load, unsupported)


def work(arguments, setup, engine):
    """Writes the counters of each command and kind: means of the queries."""
    with open(arguments.work_file, "w", encoding="utf-8") as out:
        provenance(out, setup, os.getloadavg()[0])
        out.write("command\tkind\tqueries\tanswer\tblocks\tdecoded\tscored\tleast_decoded\tleast_scored\n")
        for command in arguments.commands.split(","):
            for kind, queries in setup.queries.items():
                told = list(filter(None, (engine.answer(command, q) for q in queries)))
                means = [f"{statistics.mean(column):.1f}" for column in zip(*told)]
                out.write("\t".join((command, kind, str(len(told)), *means)) + "\n")
    engine.close()


def provenance(out, setup, load):
    out.write(f"# machine\t{peers.machine()}, load {load:.0f} to {os.getloadavg()[0]:.0f}\n")
    out.write(f"# index\t{os.path.basename(setup.index)}\n# commit\t{peers.commit()}\n")
    out.write(f"# command\tgame.py {' '.join(sys.argv[1:])}\n")


def write(arguments, setup, table, load, unsupported):
    with open(arguments.tsv, "w", encoding="utf-8") as out:
        provenance(out, setup, load)
        out.write("# times\tmicroseconds of the searching thread's processor time, and of the clock\n")
        out.write("# ratios\tprocessor time by gpuir's on the same queries; all count the same documents\n")
        if unsupported:
            out.write(f"# UNSUPPORTED\t{', '.join(unsupported)}\n")
        out.write("\t".join(PLOT) + "\n")  # gpuir lab plot FILE draws it
        out.write("".join("\t".join(row) + "\n" for row in table))


if __name__ == "__main__":
    main()
