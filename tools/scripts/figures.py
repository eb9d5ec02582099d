#!/usr/bin/env python3
"""figures.py [--check|--ages]: tools/results/figures.tsv, a line for each figure of each log of the laboratory.

A line has the figure, its log, the number of its rows and a checksum of them, the commit and the command that the head
of the log names. With --check it changes nothing, prints what differs and exits with 1: so no digit of a log can change
unseen. With --ages it prints, and writes to ages.tsv, of each log how many commits have touched what it measures since
the commit that its head names: the header's rooms and tools/lab and, where its name says gpu or cuda, the CUDA unit's
rooms. The oldest come first; "-" stands for a commit that is not known here, unless commits.tsv has another for it. The
folder is tools/results, or $RESULTS.
"""

import glob
import os
import subprocess
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


def git(*words):
    """What git prints, or None if it fails."""
    command = ["git", "-C", os.path.join(HERE, "..", ".."), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def stand_ins():
    """{commit that no clone has: the one that stands for it}"""
    path = os.path.join(RESULTS, "commits.tsv")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")][1:]
    return {row[0]: row[1] for row in rows}


def age(commit, path):
    """How many commits since this one touched what a log measures; None if it is not known here."""
    measured = ["gpuir.h", "tools/header", "tools/lab"]
    if "gpu" in path or "cuda" in path:
        measured += ["gpuir_cuda.cu", "tools/cuda"]
    count = git("rev-list", "--count", commit + "..HEAD", "--", *measured)
    return None if count is None else int(count)


def ages():
    """Prints the age of each log of figures.tsv, the oldest first, and writes them to ages.tsv."""
    with open(os.path.join(RESULTS, "figures.tsv"), encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")][1:]
    instead = stand_ins()
    logs = sorted({(row[1], row[4].split("-")[0] or "-") for row in rows})
    known = [(age(instead.get(commit, commit), path) if commit != "-" else None, path, commit) for path, commit in logs]
    now = git("rev-parse", "--short", "HEAD") or "-"
    table = ["# commits to what a log measures since it was measured, at commit " + now, "commits\tlog\tmeasured at"]
    for count, path, commit in sorted(known, key=lambda k: (k[0] is not None, -(k[0] or 0), k[1])):
        table.append(f"{'-' if count is None else count}\t{path}\t{commit}")
    print("\n".join(table[1:]))
    with open(os.path.join(RESULTS, "ages.tsv"), "w", encoding="utf-8") as file:
        file.write("\n".join(table) + "\n")
    return 0


def main():
    if "--ages" in sys.argv[1:]:
        return ages()
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
