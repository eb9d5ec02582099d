#!/usr/bin/env python3
"""manuals.py FOLDER OUT: the HTML pages below a folder as OUT.tsv, their links as OUT.links, their dates as OUT.dates

OUT.tsv has a line for each page, its path below the folder, a tab and its text without marks, scripts and styles. Pages
without a word, and pages that are the same file under another name, are left out. OUT.links has both ends of each link
between two pages, for `gpuir reorder --order pagerank:OUT.links`. OUT.dates has the time of each file's last change, as
seconds of the epoch, for `--order score:OUT.dates`. Paths are in the order of their bytes.
"""

import html
import os
import re
import sys

DROPPED = re.compile(r"<!--.*?-->|<(script|style)\b.*?</\1\s*>", re.S | re.I)
TAG = re.compile(r"<[^>]*>")
HREF = re.compile(r"<a\b[^>]*?\bhref\s*=\s*[\"']?([^\"'#?\s>]+)", re.I)


def pages(folder):
    """Paths below the folder of HTML files that are no links to others, sorted."""
    found = []
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            if name.lower().endswith((".html", ".htm", ".xhtml")) and not os.path.islink(path):
                found.append(os.path.relpath(path, folder))
    return sorted(found, key=os.fsencode)


def read(path):
    """The page's text on one line, and the targets of its links."""
    with open(path, encoding="utf-8", errors="replace") as file:
        page = DROPPED.sub(" ", file.read())
    return " ".join(html.unescape(TAG.sub(" ", page)).split()), HREF.findall(page)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, out = sys.argv[1:]
    links, known = {}, set()
    with open(out + ".tsv", "w", encoding="utf-8") as tsv, open(out + ".dates", "w", encoding="utf-8") as dates:
        for name in pages(folder):
            path = os.path.join(folder, name)
            text, targets = read(path)
            if not text or any(c in name for c in "\t\n"):
                continue
            known.add(name)
            print(name, text, sep="\t", file=tsv)
            print(name, int(os.stat(path).st_mtime), sep="\t", file=dates)
            here = os.path.dirname(name)
            links[name] = {os.path.normpath(os.path.join(here, html.unescape(t))) for t in targets if ":" not in t}
    with open(out + ".links", "w", encoding="utf-8") as file:
        for name, targets in links.items():
            for target in sorted(targets & known):
                print(name, target, sep="\t", file=file)


if __name__ == "__main__":
    main()
