#!/usr/bin/env python3
"""passage_oracle.py FOLDER HITS [MOUNT] - checks what hits show against a model of the texts that were indexed.

For JSON lines, TREC, TSV, chunks of lines and whole files, with and without stored texts, each asked for HITS hits: each
word of the query that the indexed text has is shown, each line of --grep stands where it says, and has the words. The
mount at FOLDER/m, which the shell function of the test makes for MOUNT index by index, shows the same as the command.
Then sources change: they are named, and nothing of them is shown; a chunk whose own lines stand is shown.
"""
import json
import os
import random
import re
import subprocess
import sys
from urllib.parse import quote

FOLDER, HITS = sys.argv[1], int(sys.argv[2])
MOUNT = len(sys.argv) > 3
random.seed(7)
VOCABULARY = [f"{a}{b}{c}" for a in ("wolf", "caf\u00e9", "\u043b\u0438\u0441\u0430", "tea", "na\u00efve") for b in "abcdefgh"
              for c in ("", "x", "yz")]
KINDS = {"jsonl": ["--jsonl"], "trec": ["--trec"], "tsv": ["--tsv"], "chunks": ["--chunk-lines", "4"], "files": []}


def words(text):
    return re.findall(r"\w+", text.lower())


def some_text(lines):
    return "\n".join(" ".join(random.choices(VOCABULARY, k=random.randrange(1, 9))) for _ in range(lines))


class Model:
    """The lines of the sources, as indexed: {path: {line: set of words}}, and which lines each document has."""

    def __init__(self):
        self.lines, self.documents = {}, []

    def add(self, path, name, placed):
        """placed: [(line, text)]"""
        for line, text in placed:
            self.lines.setdefault(path, {}).setdefault(line, set()).update(words(text))
        self.documents.append((path, name, set(w for _, text in placed for w in words(text))))


def trec_escape(text):
    return text.replace("\u00e9", random.choice(["&eacute;", "&#233;", "\u00e9"])).replace("x", random.choice(["x", "&#120;"]))


def make(kind, model):
    os.makedirs(kind)
    for f in range(6):
        path, out, line = os.path.join(FOLDER, kind, f"f{f}"), [], 1
        for d in range(15):
            name = f"{kind}-{f}-{d}"
            if kind == "jsonl":
                title, text = some_text(1), some_text(random.randrange(1, 6))
                out.append(json.dumps({"id": name, "title": title, "x": {"contents": "no"}, "contents": text}))
                model.add(path, name, [(line, title + "\n" + text)])
                line += 1
            elif kind == "trec":
                text = some_text(random.randrange(1, 6)).split("\n")
                placed, rows = [], ["<DOC a='1'>", f"<DOCNO> {name}", "</DOCNO>", "<TEXT"]
                rows.append(f" class='no'> {trec_escape(text[0])} <!-- no")
                placed.append((line + 4, text[0]))
                rows.append("no -->")
                for t in text[1:]:
                    placed.append((line + len(rows), t))
                    rows.append(f"{trec_escape(t)}<b>.</b>")
                rows.append("</TEXT></DOC>")
                out += rows
                model.add(path, name, placed)
                line += len(rows)
            elif kind == "tsv":
                text = some_text(1)
                out.append(f"{name}\t{text}")
                model.add(path, name, [(line, text)])
                line += 1
            else:
                text = some_text(4).split("\n")
                out += text
                placed = [(line + i, t) for i, t in enumerate(text)]
                if kind == "chunks":
                    model.add(path, f"{kind}/f{f}:{line}-{line + 3}", placed)
                elif d:
                    for n, t in placed:
                        model.lines[path].setdefault(n, set()).update(words(t))
                    model.documents[-1][2].update(w for t in text for w in words(t))
                else:
                    model.add(path, f"{kind}/f{f}", placed)
                line += 4
        with open(path, "w", encoding="utf-8") as f_out:
            f_out.write("\n".join(out) + "\n")


def gpuir(*args, text=None, code=0):
    r = subprocess.run(["gpuir", *args], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert r.returncode == code, (args, r.returncode, r.stderr)
    return r.stdout, r.stderr


def check_json(model, index, queries):
    out, _ = gpuir("query", "--json", "--passages", "--tokens", "0", "-m", "or", "-k", "3", index, text="\n".join(queries) + "\n")
    hits = 0
    documents = {name: (path, has) for path, name, has in model.documents}
    for query, row in zip(queries, out.splitlines()):
        for hit in json.loads(row)["hits"]:
            path, has = documents[hit["name"]]
            assert hit["path"] == path and not hit["changed"] and "missing" not in hit, (query, hit)
            shown = set(w for p in hit["passages"] for w in words(p["text"]))
            assert shown <= has | {"no"} and "no" not in shown, (query, hit, shown - has)
            for w in set(words(query)) & has:
                assert w in shown, (index, query, w, hit)
            for p in hit["passages"]:
                within = set().union(*(model.lines[path].get(n, set()) for n in range(p["first"], p["last"] + 1)))
                assert set(words(p["text"])) <= within, (index, query, p)
                assert p["text"].encode()[p["marks"][0][0]:][:p["marks"][0][1]].decode().lower() in words(query), p
            hits += 1
    return hits


def check_grep(model, index, queries):
    """Lines of all hits of each query."""
    for query in queries:
        out, err = gpuir("query", "--grep", "--tokens", "0", "-m", "or", "-k", "2", index, query)
        assert not err and out, (index, query, err)
        names = json.loads(gpuir("query", "--json", "-m", "or", "-k", "2", index, query)[0])["hits"]
        asked, found, seen = set(words(query)), set(), set()
        for row in out.splitlines():
            path, line, text = row.split(":", 2)
            assert row not in seen or "jsonl" in index, (index, row)
            seen.add(row)
            marked = set(words(text)) & asked
            assert marked and marked <= model.lines[path].get(int(line), set()), (index, query, row)
            found |= marked
        for hit in names:
            has = next(h for _, name, h in model.documents if name == hit["name"])
            assert asked & has <= found, (index, query, asked & has - found)


def check_mount(index, queries):
    for query in queries:
        for tree, form in (("pass", "--passages"), ("grep", "--grep")):
            want, _ = gpuir("query", form, "--tokens", "0", "-m", "or", "-k", "2", index, query)
            with open(f"{FOLDER}/m/{tree}/@k=2/@tokens=0/{quote(query).replace('%20', '+')}", encoding="utf-8") as f:
                assert f.read() == want, (index, tree, query)


def change(kind, model):
    """One file grows, one loses its first word, one goes. Returns their paths, in that order."""
    paths = [os.path.join(FOLDER, kind, f"f{i}") for i in range(3)]
    with open(paths[0], "a", encoding="utf-8") as f:
        f.write("more wolfa\n")
    with open(paths[1], encoding="utf-8") as f:
        text = f.read()
    with open(paths[1], "w", encoding="utf-8") as f:
        f.write("Q" + text)
    os.remove(paths[2])
    return paths


def check_changed(kind, index, model, paths, stored):
    out, _ = gpuir("query", "--json", "--passages", "--tokens", "0", "-m", "or", "-k", "1000", index, *VOCABULARY[:50])
    for hit in json.loads(out)["hits"]:
        shown = bool(hit["passages"])
        if stored or hit["path"] not in paths:
            assert shown and not hit["changed"], (index, hit)
        elif hit["path"] == paths[2]:
            assert not shown and hit["missing"] == "No such file or directory", hit
        elif hit["path"] == paths[0] and kind != "files":  # the part's own bytes stand where they stood
            assert shown and not hit["changed"], (index, hit)
        else:
            assert not shown and hit["changed"], (index, hit)


def ask(model, n):
    queries = []
    for _ in range(n):
        _, _, has = random.choice(model.documents)
        queries.append(" ".join(random.sample(sorted(has), min(len(has), random.randrange(1, 4)))))
    return queries


def main():
    phase = sys.argv[3] if MOUNT else "make"
    os.chdir(FOLDER)
    if phase == "make":
        for kind, options in KINDS.items():
            model = Model()
            make(kind, model)
            for store in ([], ["--store"]):
                gpuir("index", "-q", "--analyzer", "unicode", *options, *store, kind, "-o", f"{kind}{len(store)}.gpuir")
            with open(f"{kind}.model", "w", encoding="utf-8") as f:
                state = {p: {str(n): sorted(w) for n, w in lines.items()} for p, lines in model.lines.items()}
                json.dump([state, [(p, n, sorted(w)) for p, n, w in model.documents]], f)
        return
    kind, stored = phase[:-1], phase[-1] == "1"
    with open(f"{kind}.model", encoding="utf-8") as f:
        lines, documents = json.load(f)
    model = Model()
    model.lines = {p: {int(n): set(w) for n, w in of.items()} for p, of in lines.items()}
    model.documents = [(p, n, set(w)) for p, n, w in documents]
    index = f"{FOLDER}/{phase}.gpuir"
    os.chdir("/")
    hits = 0
    while hits < HITS:
        hits += check_json(model, index, ask(model, 64))
    check_grep(model, index, ask(model, max(HITS // 8, 6)))
    if os.path.ismount(f"{FOLDER}/m"):
        check_mount(index, ask(model, max(HITS // 4, 12)))
    if stored:
        paths = change(kind, model)
        check_changed(kind, f"{FOLDER}/{kind}0.gpuir", model, paths, False)
        check_changed(kind, index, model, paths, True)
    print(f"{phase}: {hits} hits")


main()
