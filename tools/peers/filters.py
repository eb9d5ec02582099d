#!/usr/bin/env python3
"""filters.py TREE WORK: filtered search, order and facets of gpuir, Lucene 10 and tantivy, on the same documents.

The documents are chunks of 25 lines of the files below TREE, each with its folder, its extension, the file's size, a
date that is made of the file's path, and a random number below 1,000, which is a key, too. Each engine answers the same
queries, 2 to 5 words of a document, with each filter: random ones that pass 50, 10, 1 and 0.1 %, and a folder, a month
and an extension. Measured is processor time of the thread that searches, the least of a few times; gpuir's blocks and
postings are counted. `deep` asks without the filter for so many hits that ten pass it. What engines find must be equal
in number. What is built stands in WORK, and is reused.

  --queries N   a filter (40)                 --rounds N    of which the least counts (5)
  --tsv FILE    the table, with its provenance
  --lucene JARS lucene-core and lucene-analysis-common of Lucene 10, parted by ':', for `javac` and `java` of 21 or later;
                LUCENE_COMPILE: others, for an older javac

tantivy comes from PyPI, and is left out where it is not installed.
"""

import argparse
import hashlib
import os
import random
import subprocess
import sys
import time

import peers

FILTERS = (
    ("none", "", ""), ("0.5", "rand=..499", "rand:0:499"), ("0.1", "rand=..99", "rand:0:99"),
    ("0.01", "rand=..9", "rand:0:9"), ("0.001", "rand=0", "rand:0:0"), ("key 0.001", "key=k7", "key:k7"),
    ("folder", "dir=drivers/net/ethernet", "dir:drivers/net/ethernet"), ("small folder", "dir=fs/ext4", "dir:fs/ext4"),
    ("month", "mtime=2020-03", "mtime:1583020800:1585699199"), ("extension", "ext=rst", "ext:rst"),
)  # fmt: skip
WORDS = ("return", "struct", "include", "mutex")
FACETS = ("dir", "ext", "key", "rand", "mtime:month")


def number(text):
    return int.from_bytes(hashlib.md5(text).digest()[:4], "big")


def chunks(tree, path):
    """Writes the documents, a line each."""
    keep = bytes(c if c < 128 and chr(c).isalnum() else 32 for c in range(256)).lower()
    with open(path + ".new", "wb") as out:
        n = 0
        for folder, folders, files in os.walk(tree):
            folders.sort()
            for name in sorted(files):
                file = os.path.join(folder, name)
                at = os.path.relpath(folder, tree).removeprefix(".").encode()
                if os.path.islink(file) or os.path.getsize(file) > 2000000:
                    continue
                with open(file, "rb") as f:
                    data = f.read()
                if b"\0" in data[:4096]:
                    continue
                ext = name.rsplit(".", 1)[1].encode() if "." in name[1:] else b""
                date = 1420070400 + number(os.path.relpath(file, tree).encode()) % 315532800
                lines = data.split(b"\n")
                for first in range(0, len(lines), 25):
                    text = b" ".join(b" ".join(lines[first : first + 25]).translate(keep).split())
                    if text:
                        out.write(b"%s\t%s\t%d\t%d\t%d\t%s\n" % (at, ext, len(data), date, number(b"%d" % n) % 1000, text))
                        n += 1
    os.rename(path + ".new", path)


def queries(path, n):
    """Draws words of documents."""
    draw = random.Random(41)
    size = os.path.getsize(path)
    found = []
    with open(path, "rb") as docs:
        while len(found) < n:
            docs.seek(draw.randrange(size - 5000))
            docs.readline()
            text = docs.readline().rstrip(b"\n").split(b"\t")[-1].split()
            words = sorted({w for w in text if len(w) > 1 and not w.isdigit()})
            count = draw.choice([2, 2, 3, 3, 4, 5])
            if len(words) >= 3 * count:
                found.append(b" ".join(draw.sample(words, count)).decode())
    return found


class Gpuir:
    name = "gpuir"

    def __init__(self, work, docs):
        self.program, self.index = os.path.join(work, "filters"), os.path.join(work, "docs.gpuir")
        cc = os.environ.get("CC", "gcc")
        source = os.path.join(peers.HERE, "filters.c")
        subprocess.check_call([cc, "-std=c99", "-O3", "-I" + peers.ROOT, "-o", self.program, source, "-lm", "-pthread"])
        if not os.path.exists(self.index):
            subprocess.check_call([self.program, "index", docs, self.index])

    def sizes(self):
        return subprocess.check_output([self.program, "sizes", self.index], text=True).split()

    def answers(self, requests, work, rounds):
        path = os.path.join(work, "requests")
        with open(path, "w", encoding="ascii") as out:
            out.writelines(f"{command}\t{where}\t{words}\n" for command, where, _, words in requests)
        out = subprocess.check_output([self.program, "search", self.index, path, str(rounds)], text=True)
        return [[int(x) for x in line.split("\t")[:4]] for line in out.splitlines()]


class Lucene:
    name = "Lucene"

    def __init__(self, work, docs, jars):
        out, self.index = os.path.join(work, "classes"), os.path.join(work, "lucene")
        compile_with = os.environ.get("LUCENE_COMPILE", jars)
        source = os.path.join(peers.HERE, "LuceneFilters.java")
        subprocess.check_call(["javac", "-nowarn", "-cp", compile_with, "-d", out, source])
        self.java = ["java", "-Xmx3g", "--add-modules", "jdk.incubator.vector", "-cp", jars + ":" + out, "LuceneFilters"]
        if not os.path.exists(self.index):
            subprocess.check_call([*self.java, "index", self.index, docs], stderr=subprocess.DEVNULL)

    def answers(self, requests, work, rounds):
        path = os.path.join(work, "requests-lucene")
        with open(path, "w", encoding="ascii") as out:
            out.writelines(f"{command}\t{only}\t{words}\n" for command, _, only, words in requests)
        arguments = ["search", self.index, path, str(rounds)]
        out = subprocess.check_output([*self.java, *arguments], text=True, stderr=subprocess.DEVNULL)
        return [[int(x) for x in line.split("\t")] for line in out.splitlines()]


class Tantivy:
    name = "tantivy"

    def __init__(self, work, docs):
        import tantivy

        self.t, path = tantivy, os.path.join(work, "tantivy")
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("body", stored=False, tokenizer_name="whitespace", index_option="freq")
        for field in ("dir", "ext", "key"):
            builder.add_text_field(field, stored=False, tokenizer_name="raw", index_option="basic")
        for field in ("size", "mtime", "rand"):
            builder.add_integer_field(field, indexed=True, fast=True)
        self.schema = builder.build()
        if not os.path.exists(path):
            self.build(path, docs)
        self.searcher = tantivy.Index.open(path).searcher()

    def build(self, path, docs):
        os.makedirs(path + ".new", exist_ok=True)
        writer = self.t.Index(self.schema, path=path + ".new").writer(heap_size=1000000000, num_threads=1)
        with open(docs, encoding="ascii") as lines:
            for line in lines:
                folder, ext, size, date, rand, text = line.rstrip("\n").split("\t", 5)
                doc = self.t.Document(body=text, ext=ext, key="k" + rand, size=int(size), mtime=int(date), rand=int(rand))
                while folder:
                    doc.add_text("dir", folder)
                    folder = folder.rpartition("/")[0]
                writer.add_document(doc)
        writer.commit()
        writer.wait_merging_threads()
        os.rename(path + ".new", path)

    def query(self, command, only, words):
        q, occur = self.t.Query, self.t.Occur
        how = occur.Must if command == "and" else occur.Should
        ranked = q.boolean_query([(how, q.term_query(self.schema, "body", w, "freq")) for w in words.split()])
        part = only.split(":")
        if not only:
            return ranked
        if len(part) == 2:
            passes = q.term_query(self.schema, part[0], part[1], "basic")
        else:
            passes = q.range_query(self.schema, part[0], self.t.FieldType.Integer, int(part[1]), int(part[2]))
        return q.boolean_query([(occur.Must, ranked), (occur.Must, q.const_score_query(passes, 0.0))])

    def answers(self, requests, work, rounds):
        found = []
        for command, _, only, words in requests:
            query = self.query(command, only, words)
            least, hits = 1 << 62, 0
            for _ in range(rounds):
                start = time.thread_time_ns()
                if command == "sort":
                    hits = len(self.searcher.search(query, 10, count=False, order_by_field="mtime").hits)
                else:
                    hits = len(self.searcher.search(query, 10, count=False).hits)
                least = min(least, time.thread_time_ns() - start)
            found.append([hits, least])
        return found


def rows(engines, work, asked, rounds):
    """The table: of each command and filter what the engines took, on average and at most."""
    requests = [(c, w, o, q) for c, w, o, _, q in asked]
    table = {}
    for engine in engines:
        mine = [i for i, r in enumerate(requests) if engine.name == "gpuir" or r[0] in ("and", "or", "sort")]
        for i, answer in zip(mine, engine.answers([requests[i] for i in mine], work, rounds)):
            table.setdefault((*asked[i][:1], asked[i][3]), {}).setdefault(engine.name, []).append(answer)
    for (command, name), of in table.items():
        base = table.get((command.removeprefix("cold "), "none"), {}).get("gpuir")
        for engine, answers in of.items():
            mean = [sum(a[i] for a in answers) / len(answers) for i in range(len(answers[0]))]
            plain = sum(a[1] for a in base) / len(base) if base else 0
            if engine != "gpuir" and [a[0] for a in answers] != [a[0] for a in of["gpuir"]]:
                print(f"filters.py: {command}, {name}: {engine} finds another number of hits", file=sys.stderr)
            own = sum(a[1] for a in of["gpuir"]) / len(of["gpuir"])
            yield (
                command, name, engine, f"{mean[0]:.1f}", f"{mean[1] / 1e3:.1f}", f"{max(a[1] for a in answers) / 1e3:.1f}",
                f"{mean[1] / plain:.2f}" if engine == "gpuir" and plain else "-", f"{mean[1] / own:.2f}" if own else "-",
                *((f"{mean[2]:.0f}", f"{mean[3]:.0f}") if engine == "gpuir" else ("-", "-")),
            )  # fmt: skip


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("tree")
    p.add_argument("work")
    p.add_argument("--queries", type=int, default=40)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--lucene")
    p.add_argument("--tsv")
    a = p.parse_args()
    os.makedirs(a.work, exist_ok=True)
    docs = os.path.join(a.work, "docs.tsv")
    if not os.path.exists(docs):
        chunks(a.tree, docs)
    engines = [Gpuir(a.work, docs)]
    if a.lucene:
        engines.append(Lucene(a.work, docs, a.lucene))
    try:
        engines.append(Tantivy(a.work, docs))
    except ImportError:
        print("filters.py: tantivy is not installed", file=sys.stderr)
    words = queries(docs, a.queries)
    asked = [(c, w, o, n, q) for c in ("and", "or") for n, w, o in FILTERS for q in words]
    asked += [("deep", w, o, n, q) for n, w, o in FILTERS[1:] for q in words]
    asked += [("cold " + c, w, o, n, q) for c in ("and", "or") for n, w, o in FILTERS for q in words[:12]]
    asked += [(c, "", "", w, w) for w in WORDS for c in ("all", "sort")]
    asked += [("count", "", "", "all documents", ""), *(("facet", f, "", f, "") for f in FACETS)]
    asked += [("count", "", "", "return struct", "return struct"), *(("facet", f, "", f + " of them", "return struct") for f in FACETS)]
    head = ("command", "filter", "engine", "found", "mean_us", "most_us", "of_unfiltered", "of_gpuir", "blocks", "postings")
    documents, columns = engines[0].sizes()
    lines = [
        f"# machine\t{peers.machine()}; load {os.getloadavg()[0]:.0f}",
        f"# commit: {peers.commit()}",
        f"# command\t{' '.join(sys.argv)}",
        f"# documents\t{documents} documents, {columns} bytes of columns, {a.queries} queries a filter, the least of {a.rounds} times",
        "\t".join(head),
        *("\t".join(row) for row in rows(engines, a.work, asked, a.rounds)),
    ]
    print("\n".join(lines))
    if a.tsv:
        with open(a.tsv, "w", encoding="ascii") as out:
            out.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
