#!/usr/bin/env python3
"""found_oracle.py GPUIR TOKENS DOCUMENTS QUERIES [ROUNDS [SEED]]: all that stands between what people type and their
hits, at once: typing errors, words that say little, answers by any word, second looks and expansion.

A model of these rules, in other words than the header's, turns each query into one without typing errors and stop
words, which an index of the live documents alone answers by BM25; look_oracle.py looks at these hits again. Held
against that are documents, order and scores of `gpuir query --json`, and what it says of the query: of one file, by one
thread and three; of a live index to which documents were added, of which some were deleted and replaced, and which was
merged in part and whole; and of gpuir-mpi's shards, if it lies beside GPUIR. TOKENS is text_tokens. In the current
folder; prints how many answers were compared.
"""
import json
import os
import random
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import look_oracle  # noqa: E402
from text import Model, decode  # noqa: E402

GPUIR = sys.argv[1]
MPI = str(Path(GPUIR).parent / "gpuir-mpi")
ONE, K, LETTERS = 1 << 20, 10, "abcdefghijklmnopqrstuvwxyz"

WORDS = """parse parser parsing parsed token tokens request requests route router routing config spec format storage store
handle handler handles dependency dependencies merge merges merging segment segments index indexes indexing cursor query
queries engine overheats registration register running runner orchestral house housing many may whose whole
first last""".split()
STOPS = "what is the of and how do we which where it in why with".split()
FOLDERS = ["src", "tests", "docs", "examples", "src/http", "lib/router", "vendor/z"]
ENDINGS = [".py", ".go", ".c", ".md", "_test.go", ".rb"]

# The words that are never taken for typing errors, beside those that look_oracle.py has.
CORRECT = set("""
across against almost along already although always among amongst another anybody anyone anything anywhere around
aside away because become becomes becoming behind beneath beside besides beyond cannot despite done eight either
else elsewhere enough even ever every everybody everyone everything everywhere except first five four hence hereby
herein herself himself however inside instead last later latter least less likely likewise made make makes many
maybe might mine moreover mostly much must myself namely near nearly neither never nevertheless next nine nobody
none nothing nowhere often onto others otherwise ours ourselves outside past perhaps quite rather really seven
several shall since somebody somehow someone something sometime sometimes somewhere soon still thence thereby
therefore third though three throughout thus together toward towards twice unless unlike unto upon usually various
well went whatever whence whenever whereas whereby wherever whether whichever whoever whole whose yours yourself
yourselves
""".split())


def run(*arguments, text=None):
    done = subprocess.run([*arguments], input=text, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), (arguments, done.stderr)
    return done.stdout


def must(*arguments, text=None):
    done = subprocess.run([GPUIR, *arguments], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (arguments, done.stderr)


# ---- the model


def distance(a, b):
    """Of optimal string alignment."""
    d = [[max(i, j) if not i or not j else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d[i][j] = min(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]))
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                d[i][j] = min(d[i][j], d[i - 2][j - 2] + 1)
    return d[-1][-1]


def spellings(word):
    letters = sorted(set(LETTERS) | set(word))
    for i in range(len(word) + 1):
        if i + 1 < len(word):
            yield word[:i] + word[i + 1] + word[i] + word[i + 2:]
        yield from (word[:i] + c + word[i:] for c in letters)
        if i < len(word):
            yield from (word[:i] + c + word[i + 1:] for c in letters)
            yield word[:i] + word[i + 1:]


class Known:
    """What the live documents know: {term: df}, and a word that is written for each."""

    def __init__(self, model, texts):
        self.model, self.df, self.written = model, {}, {}
        for text in texts:
            terms = set(model.tokens_of(text))
            for term in terms:
                self.df[term] = self.df.get(term, 0) + 1
        for word in WORDS + STOPS:
            self.written.setdefault(model.term(word), word)

    def best(self, terms):
        return min((t for t in terms if t in self.df), key=lambda t: (-self.df[t], t.encode()), default=None)

    def near(self, word):
        """The term that is searched in place of a word, or None."""
        own = self.model.term(word)
        found = self.best({self.model.term(s) for s in spellings(word) if s} - {own})
        if found:
            return found
        ranked = [(distance(own, t), -n, t.encode()) for t, n in self.df.items()
                  if isinstance(t, str)]
        ranked = [x for x in ranked if x[0] <= 1]
        return min(ranked)[2].decode() if ranked and len(own) > 1 else None

    def instead(self, word, asked):
        """What is searched for a segment: itself, the word of another term, or nothing."""
        if self.model.term(word) in self.df:
            return word
        if not asked and (len(word) < 4 or word in CORRECT or word in look_oracle.STOP):
            return None
        found = self.near(word)
        return self.written.get(found, found)

    def spelled(self, typed, mode):
        """A positive word as it is searched."""
        asked = typed.endswith("~")
        word = typed.rstrip("~")
        if mode == "and" and not asked:
            return word
        required = self.model.required(word)
        if required <= set(self.df):
            return word
        parts = word.split(".")
        changed = [self.instead(p, asked) for p in parts]
        if None in changed or changed == parts:
            return word
        new = ".".join(changed)
        required = self.model.required(new)
        return new if required <= set(self.df) else word


def without_stops(words):
    others = [w for w in words if w[0] == "-" or w not in look_oracle.STOP]
    enough = sum(w[0] != "-" for w in others) > 1
    return others if enough and len(others) < len(words) else words


class Tokens(Model):
    def __init__(self, program):
        super().__init__(program)
        self.stemmer, self.no_fold, self.stops, self.dropped, self.possessive = "english", False, [], 0, True
        self.known_texts = {}

    def tokens_of(self, text):
        if text not in self.known_texts:
            self.known_texts[text] = [t for _, t in self.of(text, False)]
        return self.known_texts[text]

    def of(self, text, query):
        """Tokens: terms as text, what is private as bytes."""
        tokens = self.tokens(decode(text.encode()), query)
        return [(a, t if t[0] == 0xff else t.decode()) for a, t in tokens]

    def counted(self, text):
        return [t for a, t in self.of(text, False) if a]

    def required(self, word):
        return {t for a, t in self.of(word, True) if a}


# ---- what is asked, and of what


def misspelt(r, word):
    i = r.randrange(len(word))
    return r.choice([word[:i] + word[i + 1:], word[:i] + r.choice(LETTERS) + word[i:],
                     word[:i] + r.choice(LETTERS) + word[i + 1:], word[:i] + word[i:i + 2][::-1] + word[i + 2:]])


def a_word(r, wrong):
    word = r.choice(WORDS)
    if r.random() < 0.2:
        word += "." + r.choice(WORDS)
    parts = [misspelt(r, p) if r.random() < wrong else p for p in word.split(".")]
    return ".".join(p if len(p) > 1 else "xy" for p in parts)


def a_query(r):
    words = [r.choice(STOPS) if r.random() < 0.25 else a_word(r, 0.25) + "~" * (r.random() < 0.1)
             for _ in range(r.randint(1, 6))]
    if r.random() < 0.2:
        words.append("-" + r.choice(WORDS))
    return " ".join(words) if any(w.rstrip("~") not in STOPS and w[0] != "-" for w in words) else a_query(r)


def a_document(r, n):
    name = f"{r.choice(FOLDERS)}/{r.choice(WORDS)}_{r.choice(WORDS)}{r.choice(ENDINGS)}"
    common = r.sample(WORDS, 6)
    text = " ".join(r.choice(STOPS) if r.random() < 0.3 else r.choice(common) + ("." + r.choice(WORDS)) *
                    (r.random() < 0.1) for _ in range(r.randint(3, 40)))
    return f"{name}:{n}-{n + 9}", text


def tsv(documents):
    return "".join(f"{name}\t{text}\n" for name, text in documents)


def asked(index, queries, *options, command=(GPUIR,)):
    """The answers of many queries: {"hits": [(name, score, of BM25)] ...}."""
    lines = run(*command, "query", "--json", "--no-ids", "-k", "1000000", *options, index,
                text="".join(q + "\n" for q in queries)).splitlines()
    assert len(lines) == len(queries), (len(lines), len(queries))
    answers = [json.loads(line) for line in lines]
    for a in answers:
        a["hits"] = [(h["name"], round(h["score"] * ONE), round(h.get("bm25", h["score"]) * ONE)) for h in a["hits"]]
    return answers


# ---- what is compared


def model_answers(model, documents, queries, mode):
    """What each query is to find, as the index `plain` of the live documents ranks it."""
    known = Known(model, [text for _, text in documents])
    turned = [[w if w[0] == "-" else known.spelled(w, mode) for w in q.split()] for q in queries]
    stopped = []
    for q, words in zip(queries, turned):
        left = without_stops(q.split())
        kept = iter(q.split())
        stopped.append([w for w, typed in zip(words, kept) if typed in left])
    plain = ("--exact", "--stop-query", "none", "--rank", "plain")
    both = [" ".join(w) for w in turned]
    if mode == "or":
        return [a["hits"] for a in asked("plain.gpuir", [" ".join(w) for w in stopped], *plain, "-m", "or")]
    if mode == "and":
        return [a["hits"] for a in asked("plain.gpuir", both, *plain, "-m", "and")]
    all_of = asked("plain.gpuir", both, *plain, "-m", "and")
    any_of = asked("plain.gpuir", [" ".join(w) for w in stopped], *plain, "-m", "or")
    return [a["hits"] if len(a["hits"]) >= K else o["hits"] for a, o in zip(all_of, any_of)]


def looked(query, hits):
    ranked = look_oracle.look(query, [(i, name, score) for i, (name, score, _) in enumerate(hits)])
    return [(hits[i][0], score, plain) for i, score, plain in ranked]


def compare(what, queries, got, want):
    for q, g, w in zip(queries, got, want):
        if g["hits"] != w:
            at = next((i for i, (x, y) in enumerate(zip(g["hits"], w)) if x != y), min(len(g["hits"]), len(w)))
            sys.exit(f"{what}: {q!r}: hit {at + 1} is {g['hits'][at:at + 1]}, not {w[at:at + 1]}; "
                     f"{len(g['hits'])} and {len(w)} hits; {g.get('spelled')}")
    return len(queries)


def half_even(a, b):
    n, rest = divmod(a, b)
    return n + (2 * rest > b or (2 * rest == b and n % 2))


def expanded(model, hits, texts, known, documents):
    """The words that ten hits have in common, with their weights: RM3 by [api-look]."""
    counts = [model.counted(texts[name]) for name, _, _ in hits[:10]]
    total = sum(score for (_, score, _), c in zip(hits, counts) if c)
    sums = {}
    for (_, score, _), c in zip(hits, counts):
        for t in set(c):
            sums[t] = sums.get(t, 0) + score * half_even(c.count(t) << 24, len(c))
    weights = [(-half_even(s, total << 8), t) for t, s in sums.items() if len(t.encode()) > 1]
    weights = sorted(w for w in weights if w[0] and known.df[w[1]] * 10 <= documents)
    return [(t, round(-w / 65536, 7)) for w, t in weights[:20]]


def check(model, r, documents, count, indexes):
    """Compares the answers of some indexes, which hold the documents."""
    queries = [a_query(r) for _ in range(count)]
    texts = dict(documents)
    Path("plain.tsv").write_text(tsv(documents))
    must("index", "-q", "--tsv", "--lang", "en", "--store", "plain.tsv", "-o", "plain.gpuir")
    n = 0
    for mode in ("or", "and", "andor"):
        depth = ("-m", mode)
        want = model_answers(model, documents, queries, mode)
        for what, index, options, command in indexes:
            if mode != "andor":
                got = asked(index, queries, *depth, "--rank", "plain", *options, command=command)
                n += compare(f"{what}, {mode}", queries, got, want)
            # the first K of the look at the best 200, of which there are at least so many
            got = asked_first(index, queries, depth, options, command)
            n += compare(f"{what}, {mode}, looked at", queries, got, [looked(q, w)[:K] for q, w in zip(queries, want)])
    known = Known(model, texts.values())
    some = [q for q in queries if "~" not in q][:max(10, count // 10)]
    plain = [a for a in asked("plain.gpuir", some, "-m", "or", "--rank", "plain", "--expand")]
    first = model_answers(model, documents, some, "or")
    for q, a, hits in zip(some, plain, first):
        got = [(e["term"], round(e["weight"], 7)) for e in a["expanded"]]
        want = expanded(model, hits, texts, known, len(documents)) if hits else []
        if got != want:
            sys.exit(f"--expand: {q!r}: {got}, not {want}")
    for what, index, options, command in indexes:
        if command == (GPUIR,):
            got = asked(index, some, "-m", "or", "--rank", "plain", "--expand", *options)
            n += compare(f"{what}, --expand", some, got, [a["hits"] for a in plain])
            for x, y in zip(got, plain):
                assert x["expanded"] == y["expanded"], (what, x["query"])
    return n


def asked_first(index, queries, depth, options, command):
    """As people ask: the first hits, which got a second look, as most documents are source files."""
    if command != (GPUIR,):
        return mpi_first(index, queries, depth, command)
    lines = run(*command, "query", "--json", "--no-ids", "-k", str(K), *depth, *options, index,
                text="".join(q + "\n" for q in queries)).splitlines()
    answers = [json.loads(line) for line in lines]
    for a in answers:
        a["hits"] = [(h["name"], round(h["score"] * ONE), round(h["bm25"] * ONE)) for h in a["hits"]]
    return answers


def mpi_first(index, queries, depth, command):
    answers = [{"hits": []} for _ in queries]
    lines = run(*command, "query", "--tsv", "--scores", "--no-ids", "-k", str(K), *depth, index,
                text="".join(q + "\n" for q in queries))
    for line in lines.splitlines():
        number, _, _, score, plain, name = line.split("\t")
        answers[int(number) - 1]["hits"].append((name, round(float(score) * ONE), round(float(plain) * ONE)))
    return answers


def shards(documents):
    """The shards of one, two and three ranks, where they can be made."""
    if not os.access(MPI, os.X_OK):
        return []
    made = []
    Path("shards.tsv").write_text(tsv(documents))
    for ranks in (1, 2, 3):
        job = ("mpirun", "-n", str(ranks), MPI)
        if subprocess.run([*job, "index", "-q", "--tsv", "--lang", "en", "shards.tsv", "-o", f"s{ranks}"], check=False,
                          capture_output=True).returncode:
            return made
        made.append((f"{ranks} ranks", f"s{ranks}", (), job))
    return made


def main():
    model, rounds = Tokens(sys.argv[2]), int(sys.argv[5]) if len(sys.argv) > 5 else 4
    documents, count = int(sys.argv[3]), int(sys.argv[4])
    r = random.Random(int(sys.argv[6]) if len(sys.argv) > 6 else 1)
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1",
                      OMPI_MCA_rmaps_base_oversubscribe="1")
    must("index", "-q", "--live", "--tsv", "--lang", "en", "--store", "-o", "live")
    live, made, n = [], 0, 0
    for part in range(rounds):
        for _ in range(3):  # segments
            new = [a_document(r, made + i) for i in range(max(1, documents // rounds // 3))]
            made += len(new)
            gone = r.sample(live, len(live) // 8)
            if gone:
                must("delete", "-q", "live", *(name for name, _ in gone))
            live = [d for d in live if d not in gone] + new
            must("add", "-q", "--tsv", "-", "-o", "live", text=tsv(new))
        if part % 2:
            must("merge", "-q", *(["--all"] if part % 4 == 3 else []), "live")
        indexes = [("live", "live", (), (GPUIR,)), ("a file", "plain.gpuir", (), (GPUIR,)),
                   ("three threads", "plain.gpuir", ("--threads", "3"), (GPUIR,))]
        if part == rounds - 1:
            indexes += [x for x in shards(live)]
        n += check(model, r, live, count, [x for x in indexes if x[3] == (GPUIR,)])
        for what, index, options, command in indexes:
            if command != (GPUIR,):
                n += check_shards(model, r, live, count, what, index, command)
    print(f"{n} answers")


def check_shards(model, r, documents, count, what, index, command):
    queries = [a_query(r) for _ in range(count)]
    n = 0
    for mode in ("or", "and", "andor"):
        want = model_answers(model, documents, queries, mode)
        got = mpi_first(index, queries, ("-m", mode), command)
        n += compare(f"{what}, {mode}, looked at", queries, got, [looked(q, w)[:K] for q, w in zip(queries, want)])
    return n


if __name__ == "__main__":
    main()
