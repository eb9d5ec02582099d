#!/usr/bin/env python3
"""updates.py SOURCES WORK: live indexes of gpuir, Lucene and SQLite FTS5 beside one another, while they change.

Every engine gets the same stream: files of SOURCES, as their ASCII words in lower case, added, replaced by what another
file holds, and deleted, at a steady rate, onto an index of some files. A thread, of SQLite a process, asks queries of
two words that must both match meanwhile. Measured are the time from the moment when a change is due until it is
visible to that thread, the latency of queries, the bytes that were written (those of the base and, a few, of the
measurement included) and the size in the end. Documents and matches in the end must be equal. What is built stands in WORK.

  --rate N      changes a second (1000)           --seconds N   of the stream (60)
  --warmup N    seconds at its beginning that do not count (10)
  --base N      files that are indexed first (20000)
  --refresh MS  least time between two refreshes (20); of SQLite, between two transactions
  --commit MS   time between two commits that survive a loss of power (1000); of SQLite, checkpoints
  --engines L   of gpuir,lucene,sqlite (all that are installed)
  --tsv FILE    the table as TSV with its provenance
  --lucene JARS as peers.py has it
"""

import argparse
import os
import platform
import random
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
NQUERIES = 200
COLUMNS = (
    "engine", "visible_mean_ms", "visible_p99_ms", "visible_max_ms", "query_mean_us", "query_p50_us", "query_p99_us", "queries",
    "written_bytes", "disk_bytes", "size_bytes", "documents", "matches",
)  # fmt: skip


def words_of(path):
    with open(path, "rb") as file:
        return re.findall(rb"[a-z0-9]+", file.read(1 << 16).lower())


def texts(folder, n):
    """The names and texts of n files, in an order that a seed gives; fewer, if there are no more."""
    paths = sorted(os.path.join(d, f) for d, _, files in os.walk(folder) for f in files)
    paths = [p for p in paths if os.path.isfile(p) and not os.path.islink(p)]
    random.Random(1).shuffle(paths)
    for path in paths[:n]:
        words = words_of(path)
        if words:
            yield os.path.relpath(path, folder).encode("ascii", "replace").replace(b"\t", b" "), b" ".join(words)


def make_stream(folder, work, base, changes):
    """Writes the stream and the queries; returns the number of lines that make the base."""
    draw = random.Random(2)
    docs = list(texts(folder, base + changes))
    base = min(base, len(docs) // 2)
    live, fresh = [name for name, _ in docs[:base]], docs[base:]
    with open(os.path.join(work, "stream"), "wb") as out:
        for name, text in docs[:base]:
            out.write(b"A\t" + name + b"\t" + text + b"\n")
        for _ in range(changes):
            kind = draw.random()
            if kind < 0.6 and fresh:
                name, text = fresh.pop()
                live.append(name)
                out.write(b"A\t" + name + b"\t" + text + b"\n")
            elif kind < 0.9 or len(live) < 2:
                out.write(b"R\t" + draw.choice(live) + b"\t" + draw.choice(docs)[1] + b"\n")
            else:
                i = draw.randrange(len(live))
                live[i], live[-1] = live[-1], live[i]
                out.write(b"D\t" + live.pop() + b"\n")
    with open(os.path.join(work, "queries"), "wb") as out:
        for _ in range(NQUERIES):
            words = draw.choice(docs)[1].split()
            out.write(b" ".join(draw.choice(words) for _ in range(2)) + b"\n")
    return base


def io_bytes():
    with open("/proc/self/io", encoding="ascii") as file:
        return {line.split(":")[0]: int(line.split(":")[1]) for line in file}


class Sqlite:
    """SQLite's part, which prints what updates.c prints: this program again, as `updates.py --sqlite ...`."""

    def __init__(self, folder, stream, queries, base, rate, refresh, commit):
        os.makedirs(folder)
        self.path = os.path.join(folder, "index.db")
        self.db = self.open()
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("PRAGMA wal_autocheckpoint=0")
        self.db.execute("CREATE VIRTUAL TABLE body USING fts5(text, detail=column, tokenize='ascii')")
        self.db.execute("CREATE TABLE names (name TEXT PRIMARY KEY, id INTEGER) WITHOUT ROWID")
        with open(stream, encoding="ascii") as file:
            self.lines = [line.rstrip("\n").split("\t", 2) for line in file]
        self.queries_path = queries
        self.base, self.rate, self.refresh, self.commit = int(base), float(rate), float(refresh) / 1e3, float(commit) / 1e3
        self.next_id = 0

    def open(self):
        db = sqlite3.connect(self.path, isolation_level=None)
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute("PRAGMA cache_size=-65536")
        return db

    def play(self, kind, name, text=None):
        if kind != "A":
            found = self.db.execute("SELECT id FROM names WHERE name = ?", (name,)).fetchone()
            self.db.execute("DELETE FROM body WHERE rowid = ?", found)
            self.db.execute("DELETE FROM names WHERE name = ?", (name,))
        if kind != "D":
            self.next_id += 1
            self.db.execute("INSERT INTO body (rowid, text) VALUES (?, ?)", (self.next_id, text))
            self.db.execute("INSERT INTO names VALUES (?, ?)", (name, self.next_id))

    def stream(self):
        """Plays the changes at their times; each transaction makes its changes visible."""
        lines, begin = self.lines[self.base :], time.monotonic()
        refreshed = committed = begin
        done = seen = 0
        while seen < len(lines):
            self.db.execute("BEGIN")
            while done < len(lines) and begin + done / self.rate <= time.monotonic():
                self.play(*lines[done])
                done += 1
            self.db.execute("COMMIT")
            refreshed = visible = time.monotonic()
            for i in range(seen, done):
                print("v", (visible - begin - i / self.rate) * 1e3)
            seen = done
            if time.monotonic() - committed >= self.commit:
                committed = time.monotonic()
                self.db.execute("PRAGMA wal_checkpoint(PASSIVE)")
            due = max(refreshed + self.refresh, begin + done / self.rate)
            time.sleep(max(0.0, due - time.monotonic()))

    def ask(self):
        """Asks until standard input ends; prints the latencies then."""
        stop, latencies, i = threading.Event(), [], 0
        threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
        queries = self.queries()
        while not stop.is_set():
            begin = time.perf_counter()
            sql = "SELECT rowid FROM body WHERE body MATCH ? ORDER BY rank LIMIT 10"
            self.db.execute(sql, (queries[i],)).fetchall()
            latencies.append((time.perf_counter() - begin) * 1e6)
            i = (i + 1) % len(queries)
        print("\n".join(f"q {x}" for x in latencies))

    def queries(self):
        with open(self.queries_path, encoding="ascii") as file:
            return [" AND ".join(f'"{word}"' for word in line.split()) for line in file]

    def run(self, arguments):
        self.db.execute("BEGIN")
        for line in self.lines[: self.base]:
            self.play(*line)
        self.db.execute("COMMIT")
        asker = subprocess.Popen([sys.executable, __file__, "--sqlite-ask", *arguments], stdin=subprocess.PIPE)
        self.stream()
        sys.stdout.flush()
        asker.communicate()
        self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        written = io_bytes()
        count = lambda sql, *values: self.db.execute(sql, values).fetchone()[0]
        print("documents", count("SELECT count(*) FROM names"))
        print("matches", sum(count("SELECT count(*) FROM body WHERE body MATCH ?", q) for q in self.queries()))
        self.db.close()
        print("wchar:", written["wchar"], "\nwrite_bytes:", written["write_bytes"])


def sqlite_ask(arguments):
    asker = Sqlite.__new__(Sqlite)
    asker.path, asker.queries_path = os.path.join(arguments[0], "index.db"), arguments[2]
    asker.db = asker.open()
    asker.ask()


def commands(setup):
    """What runs each engine, by its name."""
    result = {}
    program = os.path.join(setup.work, "updates")
    if "gpuir" in setup.engines:
        compiler = os.environ.get("CC", "cc")
        source = os.path.join(HERE, "updates.c")
        subprocess.check_call([compiler, "-std=gnu11", "-O3", "-DGPUIR_IMPLEMENTATION", "-I", ROOT, source, "-lm", "-pthread", "-o", program])
        result["gpuir"] = [program]
    if "lucene" in setup.engines and setup.lucene and shutil.which("javac"):
        source = os.path.join(HERE, "LuceneUpdates.java")
        subprocess.check_call(["javac", "-cp", setup.lucene, "-d", setup.work, source])
        result["lucene"] = ["java", "-Xmx4g", "-cp", setup.lucene + ":" + setup.work, "LuceneUpdates"]
    if "sqlite" in setup.engines:
        result["sqlite"] = [sys.executable, __file__, "--sqlite"]
    return result


def size_of(folder):
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(folder) for f in files)


def measure(engine, command, setup, base):
    """Runs an engine and returns its row of the table."""
    folder = os.path.join(setup.work, engine + ".index")
    shutil.rmtree(folder, ignore_errors=True)
    stream, queries = (os.path.join(setup.work, name) for name in ("stream", "queries"))
    settings = [base, setup.rate, setup.refresh, setup.commit]
    said = subprocess.run(command + [folder, stream, queries] + [str(x) for x in settings], stdout=subprocess.PIPE, check=True)
    visible, latency, facts = [], [], {}
    for line in said.stdout.decode().splitlines():
        key, value = line.split()
        if key == "v":
            visible.append(float(value))
        elif key == "q":
            latency.append(float(value))
        else:
            facts[key.rstrip(":")] = int(value)
    visible = visible[setup.rate * setup.warmup :]
    latency = latency[len(latency) * setup.warmup // setup.seconds :]
    at = lambda sorted_list, share: sorted_list[min(len(sorted_list) - 1, int(len(sorted_list) * share))]
    visible.sort()
    latency.sort()
    return (
        engine, *(f"{x:.3f}" for x in (statistics.mean(visible), at(visible, 0.99), visible[-1])),
        *(f"{x:.1f}" for x in (statistics.mean(latency), at(latency, 0.5), at(latency, 0.99))), len(latency),
        facts["wchar"], facts["write_bytes"], size_of(folder), facts["documents"], facts["matches"],
    )  # fmt: skip


def provenance(setup):
    model = next((x for x in open("/proc/cpuinfo", encoding="utf-8") if x.startswith("model name")), ": unknown").split(":")[1]
    git = subprocess.run(["git", "describe", "--always", "--dirty", "--exclude=*"], cwd=ROOT, stdout=subprocess.PIPE, check=False)
    return (
        f"# machine: {model.strip()}, {os.cpu_count()} processors, {platform.system()} {platform.release()}\n"
        f"# commit: {git.stdout.decode().strip() or 'unknown'}; SQLite {sqlite3.sqlite_version}\n"
        f"# command: tools/peers/updates.py --rate {setup.rate} --seconds {setup.seconds} --warmup {setup.warmup} "
        f"--base {setup.base} --refresh {setup.refresh} --commit {setup.commit} {os.path.basename(setup.sources.rstrip('/'))}\n"
    )


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--sqlite":
        return Sqlite(*sys.argv[2:]).run(sys.argv[2:])
    if len(sys.argv) > 1 and sys.argv[1] == "--sqlite-ask":
        return sqlite_ask(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources")
    parser.add_argument("work")
    for name, value in (("rate", 1000), ("seconds", 60), ("warmup", 10), ("base", 20000), ("refresh", 20), ("commit", 1000)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--engines", default="gpuir,lucene,sqlite", type=lambda text: text.split(","))
    parser.add_argument("--tsv")
    parser.add_argument("--lucene")
    setup = parser.parse_args()
    if setup.warmup >= setup.seconds:
        parser.error("--warmup leaves nothing to measure")
    os.makedirs(setup.work, exist_ok=True)
    base = make_stream(setup.sources, setup.work, setup.base, setup.rate * setup.seconds)
    rows = [COLUMNS]
    for engine, command in commands(setup).items():
        rows.append(measure(engine, command, setup, base))
        print("\t".join(str(x) for x in rows[-1]), flush=True)
    table = "".join("\t".join(str(x) for x in row) + "\n" for row in rows)
    print(provenance(setup) + table, end="")
    if setup.tsv:
        with open(setup.tsv, "w", encoding="utf-8") as out:
            out.write(provenance(setup) + table)
    if len({row[-2:] for row in rows[1:]}) > 1:
        sys.exit("updates.py: the engines do not hold the same documents")
    return None


if __name__ == "__main__":
    main()
