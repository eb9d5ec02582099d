#!/usr/bin/env python3
"""look_weights.py GPUIR SHARED REPOS: what each weight of the second look gives, and what the look gives where its
weights were fitted without the language that is judged.

GPUIR, SHARED and REPOS are those of effectiveness.py. The installed command is asked for the best 200 hits of each
query (-m or --rank code); the features of their files are computed again by tests/e2e/look_oracle.py, and whether a
file defines what is asked for is what its score says. The rows, each NDCG@10 as the mean of repositories' means, of the
judged folders and of whole trees:

  command      the command's own order
  formula      the formula's, with the weights of the command
  without X    the difference where a weight is 0, or a factor 1
  fitted       weights fitted to all languages but the judged one, from all at 50 %, by coordinate ascent
"""
import collections
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "e2e")]
import benchmark  # noqa: E402
import effectiveness  # noqa: E402
import look_oracle as oracle  # noqa: E402

ADDED = ("together", "asked", "named", "defines")
LOWERED = ("tests", "aside", "others")
GRID = {**dict.fromkeys(ADDED, (0, 20, 35, 50, 75, 100, 120, 150, 200)),
        **dict.fromkeys(LOWERED, (10, 20, 30, 50, 70, 100))}
SHIPPED = {**oracle.WEIGHTS, **oracle.LOWERED}
PARTS = ("files", "trees")


class Asked:
    """A query: its repository, language, number of targets, the features of each file, and the files of each target."""

    def __init__(self, query, hits, bench):
        self.repo, self.language = query["repo"], query["language"]
        targets = bench.targets(query, False)
        self.targets = len(targets)
        files = collections.OrderedDict()
        for hit in hits:
            files.setdefault(oracle.path_of(hit["name"]), []).append(hit)
        self.own = self.found(list(files), targets, bench)
        # the engine's order: a file stands where its best hit does
        order = sorted(files, key=lambda p: max((h["bm25"], -h["docid"]) for h in files[p]), reverse=True)
        self.of_targets = self.found(order, targets, bench)
        self.rows = rows_of(query["query"], [(p, files[p]) for p in order])

    @staticmethod
    def found(paths, targets, bench):
        clean = [p[2:] if p.startswith("./") else p for p in paths]
        return [[i for i, p in enumerate(clean) if bench.matches(p, t, False)] for t, _ in targets]

    def ndcg(self, weights, bench):
        if weights is None:
            ranks = [1 + min(at) for at in self.own if at]
        else:
            added = [weights[k] / 100 for k in ADDED]
            factors = [weights[k] / 100 for k in LOWERED]
            scores = [score_of(row, added, factors) for row in self.rows]
            order = sorted(range(len(scores)), key=lambda i: -scores[i])
            rank = {i: r + 1 for r, i in enumerate(order)}
            ranks = [min(rank[i] for i in at) for at in self.of_targets if at]
        return bench.ndcg([r for r in ranks if r <= 10], self.targets)


def score_of(row, added, factors):
    score, best, shares, lowered = row
    score += best * sum(a * s for a, s in zip(added, shares))
    for factor, low in zip(factors, lowered):
        if low:
            score *= factor
    return score


def rows_of(query, files):
    """[(score of the best hit, best of all, (shares and definition), (tests, aside, others))]"""
    every = list(dict.fromkeys(w for t in oracle.asked_of(query) for w in oracle.words(t)))[:oracle.WORDS]
    asked = [w for w in every if w.decode("utf-8", "replace") not in oracle.STOP] or every
    plain = {w.decode("utf-8", "replace") for w in every}
    sums = [sum(h["bm25"] for h in hits) for _, hits in files]
    best = max((h["bm25"] for _, hits in files for h in hits), default=0)
    rows = []
    for (path, hits), total in zip(files, sums):
        folders, base = oracle.parts(path)
        stem = oracle.words(base.split(".")[0])[:oracle.WORDS]
        near = stem + (oracle.words(folders[-1])[:oracle.WORDS] if folders else [])
        shares = [total / max(sums),
                  sum(any(oracle.alike(w, n) for n in near) for w in asked) / max(len(asked), 1),
                  sum(any(oracle.alike(w, n) for w in asked) for n in stem) / max(len(stem), 1), 0]
        lowered = (oracle.is_test(folders, base) and not plain & oracle.TEST_FOLDERS,
                   oracle.is_aside(folders, base) and not plain & oracle.ASIDE_FOLDERS, oracle.is_other(base))
        row = (max(h["bm25"] for h in hits), best, shares, lowered)
        without = score_of(row, [SHIPPED[k] / 100 for k in ADDED], [SHIPPED[k] / 100 for k in LOWERED])
        shares[3] = int(max(h["score"] for h in hits) > without * 1.01)
        rows.append(row)
    return rows


def mean_of(asked, weights, bench):
    by_repo = collections.defaultdict(list)
    for a in asked:
        by_repo[a.repo].append(a.ndcg(weights, bench))
    return effectiveness.mean(map(effectiveness.mean, by_repo.values()))


def fit(parts, bench):
    """Weights that are best for both parts together."""
    weights = dict.fromkeys(SHIPPED, 50)
    best = sum(mean_of(p, weights, bench) for p in parts)
    for _ in range(3):
        before = best
        for key, values in GRID.items():
            for value in values:
                tried = {**weights, key: value}
                got = sum(mean_of(p, tried, bench) for p in parts)
                if got > best:
                    best, weights = got, tried
        if best - before < 1e-4:
            break
    return weights


def ask_all(command, options, bench, queries, roots):
    """{part: [Asked]}"""
    asked = {part: [] for part in PARTS}
    for repo, of_repo in queries.items():
        folder = os.path.join(options.repos, repo)
        here = [q for q in of_repo if os.path.isdir(folder)
                and any(benchmark.is_there(folder, p) for p, _ in bench.targets(q, False))]
        root = roots[repo] if os.path.isdir(os.path.join(folder, roots[repo])) else "."
        for part, tree in zip(PARTS, (root, ".")):
            index = command.index("code", tree, cwd=folder) if here else None
            texts = {str(q["index"]): q["query"] for q in here}
            answers = command.ask(index, texts, "-k", str(oracle.HITS)) if index else {}
            asked[part] += [Asked(q, answers.get(str(q["index"]), []), bench) for q in here]
    return asked


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    options = effectiveness.argparse.Namespace(gpuir=sys.argv[1], shared=sys.argv[2], repos=sys.argv[3],
                                               index="--analyzer text --lang en", query="-m or --rank code")
    bench, queries, roots = benchmark.read(os.path.join(options.shared, "codesearch"))
    command = effectiveness.Command(options)
    try:
        asked = ask_all(command, options, bench, queries, roots)
    finally:
        effectiveness.shutil.rmtree(command.work)

    def row(name, of):
        print(name + "".join(f"\t{of(part):.4f}" for part in PARTS), flush=True)

    print("row\tfiles\ttrees")
    row("command", lambda part: mean_of(asked[part], None, bench))
    shipped = {part: mean_of(asked[part], SHIPPED, bench) for part in PARTS}
    row("formula", shipped.get)
    for key in SHIPPED:
        left = {**SHIPPED, key: 0 if key in ADDED else 100}
        row(f"without {key}", lambda part, left=left: mean_of(asked[part], left, bench) - shipped[part])
    languages = sorted({a.language for a in asked["files"]})
    fitted = {}
    for language in languages:
        fitted[language] = fit([[a for a in asked[part] if a.language != language] for part in PARTS], bench)
        print(f"# without {language}: " + " ".join(f"{k} {v}" for k, v in fitted[language].items()), flush=True)

    def held_out(part):
        by_repo = collections.defaultdict(list)
        for a in asked[part]:
            by_repo[a.repo].append(a.ndcg(fitted[a.language], bench))
        return effectiveness.mean(map(effectiveness.mean, by_repo.values()))
    row("fitted", held_out)


if __name__ == "__main__":
    main()
