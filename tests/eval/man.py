#!/usr/bin/env python3
"""man.py GPUIR INDEX [QUERY OPTION...]: how many questions of man.tsv have a right page first, and among the first ten.

INDEX holds the man pages of a Debian 12 system, a document a page, named after their files, as
`gpuir index /usr/share/man -o INDEX` makes it. A page counts whatever its name ends with behind its section.
"""
import collections
import pathlib
import subprocess
import sys


def questions(path):
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            number, question, pages, origin = line.split("\t")
            yield number, question, pages.split(), origin


def answers(gpuir, index, options, question):
    command = [gpuir, "query", "--mode", "or", "-k", "10", "--tsv", *options, index, question]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return [line.split("\t")[-1] for line in found.splitlines()]


def rank(names, pages):
    for i, name in enumerate(names, 1):
        if any(f"man/{page}." in f"{name}." for page in pages):
            return i
    return 0


def main():
    gpuir, index, *options = sys.argv[1:]
    first, ten, total = (collections.Counter() for _ in range(3))
    for number, question, pages, origin in questions(pathlib.Path(__file__).with_name("man.tsv")):
        names = answers(gpuir, index, options, question)
        place = rank(names, pages)
        total[origin] += 1
        first[origin] += place == 1
        ten[origin] += place > 0
        print(f"{number}\t{place or '-'}\t{question}\t{'' if place == 1 or not names else names[0]}")
    for origin in total:
        print(f"{origin}: {total[origin]} questions, {first[origin]} right first, {ten[origin]} in ten")
    print(f"all: {total.total()} questions, {first.total()} right first, {ten.total()} in ten")


if __name__ == "__main__":
    main()
