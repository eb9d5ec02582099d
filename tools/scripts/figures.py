#!/usr/bin/env python3
"""figures.py [--check]: tools/results/figures.tsv, a line for each table and figure of each log of the laboratory.

A line has the figure, its log, the number of its rows and a checksum of them, the commit and the command that the head
of the log names. With --check it changes nothing, prints what differs and exits with 1: so no digit of a log can change
unseen. The folder is tools/results, or $RESULTS.
"""

import glob
import os
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
RESULTS = os.environ.get("RESULTS", os.path.join(HERE, "..", "results"))
COLUMNS = ["figure", "series", "x", "y", "unit"]


def read(path):
    """The head of a log, by key, and the rows of each figure; no rows if its columns are others."""
    head, rows, columns = {}, {}, None
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("#"):
                key, _, text = line[1:].strip().partition(": ")
                head.setdefault(key, text)
            elif not columns:
                columns = line.rstrip("\n").split("\t")
            elif columns[:5] == COLUMNS:
                rows.setdefault(line.split("\t", 1)[0], []).append(line)
    return head, rows


def main():
    table = ["# all tables and figures of the laboratory's logs, by tools/scripts/figures.py",
             "id\tlog\trows\tcrc32\tcommit\tcommand"]
    paths = glob.glob(os.path.join(RESULTS, "*.tsv")) + glob.glob(os.path.join(RESULTS, "*", "*.tsv"))
    for path in sorted(os.path.relpath(path, RESULTS) for path in paths):
        head, rows = read(os.path.join(RESULTS, path))
        commit = head.get("version", "").partition("commit ")[2] or "-"
        for figure, lines in sorted(rows.items()):
            crc = zlib.crc32("".join(lines).encode())
            table.append(f"{figure}\t{path}\t{len(lines)}\t{crc:08x}\t{commit}\t{head.get('command', '-')}")
    text, target = "\n".join(table) + "\n", os.path.join(RESULTS, "figures.tsv")
    if "--check" not in sys.argv[1:]:
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
        return 0
    with open(target, encoding="utf-8") as file:
        old = file.read().splitlines()
    differ = sorted(set(old) ^ set(table))
    for line in differ:
        print(("only in figures.tsv: " if line in old else "only in the logs: ") + line[:100], file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
