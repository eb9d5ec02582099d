#!/usr/bin/env python3
"""look.py GPUIR [SEED]: the hits of `gpuir query` with and without a second look, over a tree of files with random
names, held against look_oracle.py: the same documents in the same order, with the same scores. In the current folder."""
import json
import os
import random
import re
import subprocess
import sys

import look_oracle

WORDS = "parse parser parsing token tokens http https request requests route router routing test spec config util mock " \
        "form format storage store handle handler dependency dependencies example docs vendor café ß 2fa v2".split()
FOLDERS = ["src", "tests", "docs", "examples", "vendor", "src/http", "lib/router", "Test", "a/third_party/b", "deps"]
ENDINGS = [".py", ".go", ".md", ".test.js", "_test.go", ".pb.go", ".min.js", ".d.ts", ".json", "", ".rb", ".T", ".bats",
           "."]


def gpuir(*arguments, text=None):
    run = subprocess.run([sys.argv[1], *arguments], input=text, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         text=True, check=False)
    assert run.returncode in (0, 1) and (run.stdout or arguments[0] != "query"), arguments
    return run.stdout


def name_of(rng):
    parts = [rng.choice(WORDS) for _ in range(rng.randrange(1, 4))]
    how = rng.randrange(5)
    if how == 0:
        return "".join(p.capitalize() for p in parts)
    return ("_" if how < 3 else "-" if how == 3 else ".").join(parts).upper() if how == 4 else "_".join(parts)


def make(rng):
    """Writes files, and returns {path: {line: names that it defines}}."""
    defined = {}
    for _ in range(160):
        folder = rng.choice(FOLDERS)
        path = f"{folder}/{name_of(rng)}{rng.choice(ENDINGS)}"
        os.makedirs(folder, exist_ok=True)
        if path in defined or os.path.isdir(path):
            continue
        lines = [" ".join(rng.choices(WORDS, k=rng.randrange(1, 9))) for _ in range(rng.randrange(1, 80))]
        at = {}
        for line in range(len(lines)):
            if rng.randrange(12) == 0:
                symbol = rng.choice(WORDS[:20]) + rng.choice(["", "Name", "_name", "_a_b"])
                lines[line] = f"  def {symbol}"
                at[line + 1] = symbol
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        defined[path] = at if look_oracle.is_source(path) else {}
    return defined


def queries(rng):
    yield from ("parseName", "router_name", "a::parse()", "the test of the router", "-vendor routing https",
                "what is this", '"http request" -"test spec" format', "HTTPRouter.parse requests", "config* rout~",
                "docs example", "é", "token_a_b and the handlerName")
    for _ in range(60):
        words = [rng.choice(WORDS) for _ in range(rng.randrange(1, 7))]
        if rng.randrange(3) == 0:
            words.append(rng.choice(WORDS[:20]) + rng.choice(["Name", "_name"]))
        yield " ".join(words)


def segments(name):
    return [s for s in re.split(r"_", name.lower()) if s]


def check(index, query, defined, flags):
    def ask(*arguments):
        answer = gpuir("query", "--json", "-m", "or", *flags, *arguments, index, "--", query)
        return json.loads(answer)["hits"]

    plain = [(h["docid"], h["name"], round(h["score"] * 2**20)) for h in ask("--rank", "plain", "-k", "1000")]

    def defines(symbol):
        found = set()
        for docid, name, _ in plain:
            lines = re.search(r":(\d+)-(\d+)$", name)
            first, last = (int(lines[1]), int(lines[2])) if lines else (1, 10**9)
            of = defined.get(look_oracle.path_of(name), {})
            if any(first <= at <= last and segments(s) == segments(symbol) for at, s in of.items()):
                found.add(docid)
        return found

    expected = look_oracle.look(query, plain, defines)
    for k in ("1000", "10"):
        hits = ask("--rank", "code", "-k", k)
        got = [(h["docid"], round(h["score"] * 2**20), round(h["bm25"] * 2**20)) for h in hits]
        want = expected[:int(k)]
        assert got == want, (query, k, [(g, w) for g, w in zip(got, want) if g != w][:3], len(got), len(want))
        assert all(a[1] >= b[1] for a, b in zip(got, got[1:])), query
    return len(plain)


def main():
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    defined = make(rng)
    tops = sorted({p.split("/")[0] for p in defined})
    common = ["index", "-q", "--analyzer", "text", "--lang", "none", "--chunk-lines", "10", "--positions"]
    gpuir(*common, *tops, "-o", "one.gpuir")
    gpuir(*common, "--live", *tops[:3], "-o", "live")
    gpuir("update", "-q", "-o", "live", *tops[3:])
    hits = 0
    for query in queries(rng):
        hits += check("one.gpuir", query, defined, [])
        if len(query) % 4 == 0:
            hits += check("live", query, defined, [])
    assert hits > 5000, hits
    print(f"{hits} hits")


if __name__ == "__main__":
    main()
