#!/usr/bin/env python3
"""quote.py [--check] FILE.md...: the figures in a text are those of the logs in tools/results.

A figure is followed by a comment, which names the place that it comes from:

  0.117<!--lab-web/intersect.tsv; ding-fig6; pmf3/GPU; 2097152; .3f-->    y of a row: figure; series; x; format
  1.04 (1.01 to 1.08)<!--... .tsv; FIGURE; SERIES; X / FIGURE; SERIES; X; .2f-->    the quotient of two rows, and its
                                                                         interval as in tools/lab/verdict.c
  538,455<!--bench_cuda-random.txt; ^and +cuda pruned.* (\\d+) queries; ,.0f-->    the group of a regular expression, which
                                                                         begins with ^ or with (?s)

A format is one of Python's; before it, *1000 multiplies. Between `<!-- verdicts KEY -->` and `<!-- end -->` stands the
table of a paper's claims, or with the key `sentences` what opens the report, both from verdicts.tsv, which
`gpuir lab report` writes. Writes each file anew with the values of today's logs. With --check it changes nothing, prints
what differs and exits with 1.
"""

import os
import re
import sys

RESULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "results")
BLOCK = re.compile(r"(<!-- verdicts ([a-z]+) -->\n).*?(<!-- end -->)", re.S)
MARKS = {"held": "✓", "held in part": "◐", "did not hold": "✗", "open": "?", "not judged": "–"}
ONCE = 0.12  # FORMULA_ONCE of tools/lab/claims.h
QUOTE = re.compile(r"(\?|[0-9][0-9.,]*(?: \([0-9., to]*\))?)<!--([\w./-]+\.(?:tsv|txt)); (.*?)-->")


def rows(name, cache={}):
    """The rows of a log of the laboratory: (figure, series, x) to y."""
    if name not in cache:
        cache[name] = {}
        with open(os.path.join(RESULTS, name), encoding="utf-8") as lines:
            for line in lines:
                cells = line.rstrip("\n").split("\t")
                if len(cells) >= 5 and not line.startswith("#"):
                    cache[name][tuple(cells[:3])] = cells[3:]
    return cache[name]


def interval(cells):
    """The value of a row, and its bounds."""
    y = float(cells[0])
    low, high = (float(cells[2]), float(cells[3])) if len(cells) > 3 else (y, y)
    return (y, low, high) if low < high else (y, y * (1 - ONCE), y * (1 + ONCE))


def value(name, source):
    """The value that a comment names, formatted."""
    source, form = source.rsplit("; ", 1)
    factor = 1.0
    if form.startswith("*"):
        times, form = form[1:].split(" ", 1)
        factor = float(times)
    if not source.startswith(("^", "(?s)")):
        values = [interval(rows(name)[tuple(cell.strip().split("; "))]) for cell in source.split(" / ")]
        number = values[0][0]
        if len(values) > 1:
            (a, least_a, most_a), (b, least_b, most_b) = values
            ends = [a / b, least_a / most_b, most_a / least_b]
            return "{} ({} to {})".format(*(format(end * factor, form) for end in ends))
    else:
        with open(os.path.join(RESULTS, name), encoding="utf-8") as log:
            number = float(re.search(source, log.read(), re.M).group(1).replace(",", ""))
    return format(number * factor, form)


def verdicts(cache=[]):
    """The rows of verdicts.tsv, each a dictionary."""
    if not cache:
        with open(os.path.join(RESULTS, "verdicts.tsv"), encoding="utf-8") as lines:
            cells = [line.rstrip("\n").split("\t") for line in lines if not line.startswith("#")]
        cache.extend(dict(zip(cells[0], row)) for row in cells[1:])
    return cache


def block(key):
    """The table of a paper's claims, or the sentences."""
    if key == "sentences":
        return "".join(f"- {MARKS[r['verdict']]} {r['measured']}\n" for r in verdicts() if r["claim"] == "sentence")
    mine = [r for r in verdicts() if r["key"] == key]
    lines = ["| what the paper found | holds? | what we measured | why |", "|---|---|---|---|"]
    for claim in dict.fromkeys(r["claim"] for r in mine):
        rows_of = [r for r in mine if r["claim"] == claim]
        first = rows_of[0]
        ours = "<br>".join(f"{MARKS[r['here']]} *{r['label']}*: {r['measured']}" for r in rows_of if r["log"] != "-")
        lines.append(f"| {first['place']}: {first['found']} | {MARKS[first['verdict']]} {first['verdict']} "
                     f"| {ours or 'see the chart'} | {first['why']} |")
    return "\n".join(lines) + "\n"


def main():
    names = [name for name in sys.argv[1:] if name != "--check"]
    check, wrong, quoted = "--check" in sys.argv, 0, 0
    for name in names:
        with open(name, encoding="utf-8") as file:
            old = file.read()

        def renew(match):
            nonlocal wrong, quoted
            quoted += 1
            try:
                new = value(match[2], match[3])
            except (KeyError, AttributeError, OSError) as error:
                print(f"{name}: {match[0]}: not in the log: {error!r}", file=sys.stderr)
                wrong += 1
                return match[0]
            if check and new != match[1]:
                print(f"{name}: {match[1]} is {new} in {match[2]}; {match[3]}", file=sys.stderr)
                wrong += 1
            return f"{new}<!--{match[2]}; {match[3]}-->"

        def rewrite(match):
            nonlocal wrong
            new = match[1] + block(match[2]) + match[3]
            if check and new != match[0]:
                print(f"{name}: the block of {match[2]} is not that of verdicts.tsv", file=sys.stderr)
                wrong += 1
            return new

        text = BLOCK.sub(rewrite, QUOTE.sub(renew, old))
        if not check and text != old:
            with open(name, "w", encoding="utf-8") as file:
                file.write(text)
    print(f"{quoted} figures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
