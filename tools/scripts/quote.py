#!/usr/bin/env python3
"""quote.py [--check] FILE.md...: the figures in a text are those of the logs in tools/results.

A figure is followed by a comment, which names the place that it comes from:

  0.117<!--lab-web/intersect.tsv; ding-fig6; pmf3/GPU; 2097152; .3f-->    y of a row: figure; series; x; format
  1.04<!--... .tsv; FIGURE; SERIES; X / FIGURE; SERIES; X; .2f-->         the quotient of two rows
  538,455<!--bench_cuda-random.txt; ^and +cuda pruned.* (\\d+) queries; ,.0f-->    the group of a regular expression, which
                                                                         begins with ^ or with (?s)

A format is one of Python's; before it, *1000 multiplies. Writes each file anew with the values of today's logs. With
--check it changes nothing, prints what differs and exits with 1.
"""

import os
import re
import sys

RESULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "results")
QUOTE = re.compile(r"(\?|[0-9][0-9.,]*)<!--([\w./-]+\.(?:tsv|txt)); (.*?)-->")


def rows(name, cache={}):
    """The rows of a log of the laboratory: (figure, series, x) to y."""
    if name not in cache:
        cache[name] = {}
        with open(os.path.join(RESULTS, name), encoding="utf-8") as lines:
            for line in lines:
                cells = line.rstrip("\n").split("\t")
                if len(cells) >= 5 and not line.startswith("#"):
                    cache[name][tuple(cells[:3])] = cells[3]
    return cache[name]


def value(name, source):
    """The value that a comment names, formatted."""
    source, form = source.rsplit("; ", 1)
    factor = 1.0
    if form.startswith("*"):
        times, form = form[1:].split(" ", 1)
        factor = float(times)
    if not source.startswith(("^", "(?s)")):
        numbers = [float(rows(name)[tuple(cell.strip().split("; "))]) for cell in source.split(" / ")]
        number = numbers[0] / numbers[1] if len(numbers) > 1 else numbers[0]
    else:
        with open(os.path.join(RESULTS, name), encoding="utf-8") as log:
            number = float(re.search(source, log.read(), re.M).group(1).replace(",", ""))
    return format(number * factor, form)


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

        text = QUOTE.sub(renew, old)
        if not check and text != old:
            with open(name, "w", encoding="utf-8") as file:
                file.write(text)
    print(f"{quoted} figures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
