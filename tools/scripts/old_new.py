#!/usr/bin/env python3
"""old_new.py OLD NEW [-n ROUNDS] [-o FILE] [-- ARGUMENT...]: two builds of bench_cuda in turn, and how they compare.

Runs OLD, NEW, OLD, NEW ... ROUNDS (5) times each with the same arguments, in which {} becomes `old` or `new`, such as in
the path of an index whose format has changed, on a machine that does nothing else. Prints for each row of theirs the
median of OLD's and of NEW's medians and how many times as fast NEW is: the median of the ratios of neighbouring runs,
with the least and the greatest of them. For rates that is NEW / OLD, for times OLD / NEW. Of a build whose bench_cuda
printed lines for people it reads those. -o keeps all that the programs print. A program that fails ends the comparison.
"""
import argparse
import re
import statistics
import subprocess
import sys

KEY = ("mode", "processor", "evaluator", "threads", "k", "queries", "what", "unit")
OF = re.compile(r"(\w+): (\d+) queries, ")
LINE = re.compile(r"(\w+) +cuda +(\w+) +k (\d+) +(\d+) queries/s .* alone p50 +([\d.]+) us  p99 +([\d.]+) us")


def rows_of_lines(text):
    """{key: median} of the lines for people that bench_cuda once printed."""
    found, queries = {}, ""
    for line in text.splitlines():
        of, is_row = OF.match(line), LINE.match(line)
        if of:
            queries = of[2]
        if is_row:
            mode, evaluator, k, rate, p50, p99 = is_row.groups()
            for what, unit, value in ("batch", "queries/s", rate), ("alone-p50", "us", p50), ("alone-p99", "us", p99):
                found[mode, "cuda", evaluator, "1", k, queries, what, unit] = float(value)
    return found


def rows(text):
    """{key: median} of what bench_cuda printed."""
    found, columns = {}, None
    for line in text.splitlines():
        if line.startswith("#") or "\t" not in line:
            continue
        cells = line.split("\t")
        if columns is None:
            columns = cells
            continue
        row = dict(zip(columns, cells))
        found[tuple(row[k] for k in KEY)] = float(row["median"])
    return found


def run(program, arguments, log):
    done = subprocess.run([program] + arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if log:
        log.write(done.stdout)
        log.flush()
    if done.returncode:
        sys.exit("%s: status %d\n%s" % (program, done.returncode, done.stdout))
    return rows(done.stdout) or rows_of_lines(done.stdout)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("-n", type=int, default=5)
    parser.add_argument("-o")
    own, arguments = sys.argv[1:], []
    if "--" in own:
        own, arguments = own[:own.index("--")], own[own.index("--") + 1:]
    options = parser.parse_args(own)
    log = open(options.o, "w") if options.o else None
    runs = [[run(p, [a.replace("{}", name) for a in arguments], log)
             for p, name in ((options.old, "old"), (options.new, "new"))] for _ in range(max(options.n, 1))]
    keys = [k for k in runs[0][0] if all(k in one for pair in runs for one in pair)]
    if not keys:
        sys.exit("old_new.py: the programs have no row in common")
    print("# %s against %s, %d runs each in turn; arguments: %s" % (
        options.new, options.old, len(runs), " ".join(arguments)))
    print("\t".join(KEY[:-1]) + "\told\tnew\tunit\tratio\tmin\tmax\tn")
    least = None
    for key in keys:
        old, new = ([pair[i][key] for pair in runs] for i in (0, 1))
        ratios = [n / o if key[-1].endswith("/s") else o / n for o, n in zip(old, new)]
        ratio = statistics.median(ratios)
        least = min((ratio, key), least) if least else (ratio, key)
        print("\t".join(key[:-1]) + "\t%.6g\t%.6g\t%s\t%.4f\t%.4f\t%.4f\t%d" % (
            statistics.median(old), statistics.median(new), key[-1], ratio, min(ratios), max(ratios), len(ratios)))
    print("# least ratio: %.4f, %s" % (least[0], " ".join(least[1][:-1])))


main()
