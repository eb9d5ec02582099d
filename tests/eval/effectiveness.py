#!/usr/bin/env python3
"""effectiveness.py GPUIR SHARED [--repos DIR] [--locale DIR] [--only SET,...] [--index OPTIONS] [--query OPTIONS]: how
good the hits of an installed command are.

GPUIR is asked as a person asks it, and nothing else of the project is used. SHARED holds the judged sets as
cacm/, cranfield/ and codesearch/; --repos is the folder into which codesearch/fetch brought the repositories, --locale
one with LANGUAGE/LC_MESSAGES/NAME.mo, such as usr/share/locale of Debian's evolution-common. A set that is not there is
skipped, which is said. --index and --query are given to `gpuir index` and `gpuir query` for each set; without them the
defaults of the command are measured.

  code      30 repositories, judged files: NDCG@10, the mean of the repositories' means. `files`: below the root that was
            judged; `units`: passages as results; `trees`: the whole repository, with tests, documents and vendored code;
            `unnamed`: queries that hold less than half of the words of each judged file's name
  prose     CACM, Cranfield with titles, authors and sources: MAP and NDCG@10, by a run of TREC
  typed     the same, their queries as a person gives them to `gpuir query`: NDCG@10
  misspelt  queries of two words of a judged document's topic, as they are and with one letter wrong: NDCG@10
  scripts   substrings of translations in Chinese, Japanese, Korean and Thai: recall and precision of AND, and the share
            that finds nothing; `quoted`: as a phrase, with positions

Prints a line for each: set, part, metric, number of queries, mean, and the bounds of its 95 % interval by the bootstrap
(1,000 samples; of repositories where the set has several, otherwise of queries).
"""
import argparse
import collections
import gettext
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

import benchmark

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = {"zh_CN": "Chinese", "ja": "Japanese", "ko": "Korean", "th": "Thai"}
DEPTH = 100  # hits asked for: chunks of one file count once


def mean(xs):
    xs = list(xs)
    return sum(xs) / len(xs) if xs else 0.0


def interval(xs):
    """The bounds of the mean's 95 % interval: percentiles of 1,000 samples' means, always the same ones."""
    rng = random.Random(1)
    means = sorted(mean(rng.choices(xs, k=len(xs))) for _ in range(1000))
    return means[24], means[974]


def report(name, part, metric, n, xs):
    low, high = interval(xs) if xs else (0.0, 0.0)
    print(f"{name}\t{part}\t{metric}\t{n}\t{mean(xs):.4f}\t{low:.4f}\t{high:.4f}", flush=True)


def skip(name, why):
    print(f"# {name}: skipped: {why}", flush=True)


class Command:
    """The installed command, with a folder for its indexes."""

    def __init__(self, options):
        self.gpuir = os.path.abspath(options.gpuir)
        self.index_options = options.index.split()
        self.query_options = options.query.split()
        self.work = tempfile.mkdtemp()

    def index(self, name, *arguments, cwd=None):
        """Returns the index, or None where there is nothing to index."""
        path = os.path.join(self.work, name)
        run = subprocess.run([self.gpuir, "index", "-q", *self.index_options, *arguments, "-o", path], cwd=cwd,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if run.returncode:
            print(f"# {name}: {run.stderr.strip()}", flush=True)
        return path if run.returncode == 0 else None

    def ask(self, index, queries, *arguments):
        """Returns {id: hits} of the queries {id: text}, each as one line of standard input."""
        asked = "".join(f"{i}:{' '.join(q.split())}\n" for i, q in queries.items())
        run = subprocess.run([self.gpuir, "query", "--json", "--ids", *self.query_options, *arguments, index],
                             input=asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        answers = (json.loads(line) for line in run.stdout.splitlines())
        return {a["id"]: a["hits"] for a in answers}


# ---- code

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
LINES = re.compile(r":(\d+)-(\d+)$")


def words(text):
    return {w.lower() for w in WORD.findall(text)}


def is_unnamed(query, targets):
    """Whether the query has less than half of the words of each target's name."""
    asked = words(query)
    for path, _ in targets:
        name = words(os.path.basename(path).split(".")[0])
        held = sum(any(a.startswith(n) or (len(a) > 2 and n.startswith(a)) for a in asked) for n in name)
        if name and held * 2 >= len(name):
            return False
    return True


def results_of(hits, folder):
    out = []
    for hit in hits:
        lines = LINES.search(hit["name"])
        path = hit["name"][:lines.start()] if lines else hit["name"]
        out.append((len(out) + 1, path[len(folder) + 1:] if path.startswith(folder + "/") else path,
                    (int(lines[1]), int(lines[2])) if lines else None))
    return out


def ndcg_of(bench, results, targets):
    ranks = [bench.rank_of(results[:10], path, span, False) for path, span in targets]
    return bench.ndcg([r for r in ranks if r], len(targets))


def code(command, options, bench, queries, roots):
    """{part: {repo: [NDCG@10 of each query]}}"""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    left_out = 0
    for repo, asked in queries.items():
        folder = os.path.join(options.repos, repo)
        if not os.path.isdir(folder):
            left_out += len(asked)
            continue
        root, here = benchmark.below(folder, roots[repo], bench, asked)
        left_out += len(asked) - len(here)
        texts = {str(q["index"]): q["query"] for q in here}
        for tree, part in ((root, "files"), (".", "trees")):
            index = command.index("code", tree, cwd=folder)
            answers = command.ask(index, texts, "-k", str(DEPTH)) if index else {}
            for q in here:
                results = results_of(answers.get(str(q["index"]), []), ".")
                score = ndcg_of(bench, bench.dedupe(results), bench.targets(q, False))
                found[part][repo].append(score)
                if part == "trees":
                    continue
                found[q["category"]][repo].append(score)
                found["units"][repo].append(ndcg_of(bench, results, bench.targets(q, True)))
                if is_unnamed(q["query"], bench.targets(q, False)):
                    found["unnamed"][repo].append(score)
    print(f"# code: {left_out} queries left out, none of whose files is there")
    return found


def measure_code(command, options):
    data = os.path.join(options.shared, "codesearch")
    if not os.path.isdir(data) or not options.repos or not os.path.isdir(options.repos):
        return skip("code", "no codesearch/ in SHARED, or no --repos")
    bench, queries, roots = benchmark.read(data)
    found = code(command, options, bench, queries, roots)
    for part in ("files", "architecture", "semantic", "symbol", "units", "unnamed", "trees"):
        each = found[part].values()
        report("code", part, "NDCG@10", sum(map(len, each)), [mean(x) for x in each])
    return None


# ---- prose

def read_topics(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        text = f.read()
    tagged = re.findall(r"<docno>\s*(\S+)\s*</docno>(.*?)</doc>", text, re.S | re.I)
    return {i: " ".join(q.split()) for i, q in tagged or (line.split(":", 1) for line in text.splitlines())}


def collection(command, options, name):
    """Makes a collection's files, and returns (index, topics, judgements)."""
    folder = os.path.join(command.work, name)
    subprocess.run([sys.executable, os.path.join(HERE, name + ".py"), os.path.join(options.shared, name), folder,
                    *(["all"] if name == "cranfield" else [])], check=True)
    trec = os.path.exists(os.path.join(folder, "docs.trec"))
    index = command.index(name + ".gpuir", *(["--trec", "docs.trec"] if trec else ["--tsv", "docs.tsv"]), cwd=folder)
    judged = collections.defaultdict(dict)
    with open(os.path.join(folder, "qrels"), encoding="utf-8") as f:
        for line in f:
            topic, _, doc, grade = line.split()
            # Judgements of CACM name documents without the zeros that the documents have.
            if re.fullmatch(r"CACM-\d+", doc):
                doc = f"CACM-{int(doc[5:]):04d}"
            judged[topic][doc] = int(grade)
    return index, read_topics(os.path.join(folder, "topics")), judged


def precision(judged, ranked):
    good, total = 0, 0.0
    for i, doc in enumerate(ranked, 1):
        if judged.get(doc, 0) > 0:
            good += 1
            total += good / i
    return total / sum(g > 0 for g in judged.values())


def gain(judged, ranked):
    dcg = sum(1 / math.log2(i + 2) for i, d in enumerate(ranked[:10]) if judged.get(d, 0) > 0)
    n = min(10, sum(g > 0 for g in judged.values()))
    return dcg / sum(1 / math.log2(i + 2) for i in range(n))


def measure_prose(command, options, name):
    if not os.path.isdir(os.path.join(options.shared, name)):
        return skip(name, "not in SHARED")
    index, topics, judged = collection(command, options, name)
    topics = {i: q for i, q in topics.items() if any(g > 0 for g in judged[i].values())}
    file = os.path.join(command.work, "topics")
    with open(file, "w", encoding="utf-8") as f:
        f.writelines(f"{i}\t{q}\n" for i, q in topics.items())
    run = subprocess.run([command.gpuir, "query", "--trec", "--topics", file, *command.query_options, index],
                         check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    ranked = collections.defaultdict(list)
    for line in run.stdout.splitlines():
        ranked[line.split()[0]].append(line.split()[2])
    report("prose", name, "MAP", len(topics), [precision(judged[i], ranked[i]) for i in topics])
    report("prose", name, "NDCG@10", len(topics), [gain(judged[i], ranked[i]) for i in topics])
    answers = command.ask(index, topics, "--no-operators")
    typed = [gain(judged[i], [h["name"] for h in answers.get(i, [])]) for i in topics]
    report("typed", name, "NDCG@10", len(topics), typed)
    measure_misspelt(command, name, index, topics, judged)
    return None


def misspell(word, rng):
    """One letter left out, doubled, replaced by the next of the alphabet, or swapped with the one behind it; the first
    stays, as it mostly does."""
    at = rng.randrange(1, len(word) - 1)
    how = rng.randrange(4)
    if how == 0:
        return word[:at] + word[at + 1:]
    if how == 1:
        return word[:at] + word[at] + word[at:]
    if how == 2:
        return word[:at] + chr(ord("a") + (ord(word[at]) - ord("a") + 1) % 26) + word[at + 1:]
    return word[:at] + word[at + 1] + word[at] + word[at + 2:]


def measure_misspelt(command, name, index, topics, judged):
    rng = random.Random(7)
    right, wrong = {}, {}
    for i, q in topics.items():
        long = sorted({w for w in re.findall(r"[a-z]+", q.lower()) if len(w) >= 5}, key=lambda w: (-len(w), w))[:2]
        if len(long) < 2:
            continue
        right[i] = " ".join(long)
        wrong[i] = misspell(long[0], rng) + " " + long[1]
    for part, asked in (("right", right), ("misspelt", wrong)):
        for mode in ("", "or"):
            answers = command.ask(index, asked, *(["-m", mode] if mode else []))
            report("misspelt", f"{name} {part} {mode or 'default'}", "NDCG@10", len(asked),
                   [gain(judged[i], [h["name"] for h in answers.get(i, [])]) for i in asked])


# ---- scripts

def strings_of(path):
    with open(path, "rb") as f:
        texts = gettext.GNUTranslations(f)._catalog.values()
    clean = {re.sub(r"\s+", " ", t.replace("_", "")).strip() for t in texts if isinstance(t, str)}
    return sorted(t for t in clean if 4 <= len(t) <= 80)


def is_of_script(text):
    return all(ord(c) > 0x0E00 for c in text)


def substrings(strings, rng):
    """150 substrings each of 2, 3, 4 and 6 characters, without Latin letters and blanks."""
    out = []
    for n in (2, 3, 4, 6):
        got = set()
        for _ in range(20000):
            text = rng.choice(strings)
            at = rng.randrange(max(1, len(text) - n + 1))
            part = text[at:at + n]
            if len(part) == n and is_of_script(part) and all(c.isalnum() or 0x0E30 <= ord(c) <= 0x0E4E for c in part):
                got.add(part)
            if len(got) == 150:
                break
        out += sorted(got)
    return out


def measure_script(command, strings, name, quoted):
    tsv = os.path.join(command.work, "strings.tsv")
    with open(tsv, "w", encoding="utf-8") as f:
        f.writelines(f"{i}\t{t}\n" for i, t in enumerate(strings))
    index = command.index("strings.gpuir", "--tsv", *(["--positions"] if quoted else []), tsv)
    if not index:
        return
    parts = substrings(strings, random.Random(3))
    asked = {str(i): f'"{p}"' if quoted else p for i, p in enumerate(parts)}
    answers = command.ask(index, asked, "-m", "and", "-k", str(len(strings)))
    recall, exact, none = [], [], []
    for i, part in enumerate(parts):
        truth = {str(n) for n, t in enumerate(strings) if part in t}
        got = {h["name"] for h in answers.get(str(i), [])}
        recall.append(len(truth & got) / len(truth))
        none.append(float(not got))
        if got:
            exact.append(len(truth & got) / len(got))
    part = name + (" quoted" if quoted else "")
    report("scripts", part, "recall", len(parts), recall)
    report("scripts", part, "precision", len(exact), exact)
    report("scripts", part, "nothing", len(parts), none)


def measure_scripts(command, options):
    for language, name in SCRIPTS.items():
        folder = os.path.join(options.locale or "", language, "LC_MESSAGES")
        files = sorted(os.listdir(folder)) if options.locale and os.path.isdir(folder) else []
        if not files:
            skip("scripts " + name, "no --locale with " + language)
            continue
        strings = sorted({t for f in files for t in strings_of(os.path.join(folder, f))})
        for quoted in (False, True):
            measure_script(command, strings, name, quoted)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gpuir")
    parser.add_argument("shared")
    parser.add_argument("--repos")
    parser.add_argument("--locale")
    parser.add_argument("--only", default="code,cacm,cranfield,scripts")
    parser.add_argument("--index", default="")
    parser.add_argument("--query", default="")
    options = parser.parse_args()
    sets = options.only.split(",")
    command = Command(options)
    print("set\tpart\tmetric\tqueries\tmean\tlow\thigh")
    try:
        if "code" in sets:
            measure_code(command, options)
        for name in ("cacm", "cranfield"):
            if name in sets:
                measure_prose(command, options, name)
        if "scripts" in sets:
            measure_scripts(command, options)
    finally:
        shutil.rmtree(command.work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
