#!/usr/bin/env python3
"""includes.py [--arch NAME] FOLDER: the graph of #include lines of C sources, for gpuir reorder --order pagerank:LINKS

Prints a line for each file that a file includes, with a tab between both names, which are those that
`gpuir index FOLDER` gives: they begin with the folder's own name. A quoted name is looked for beside the including
file first. All names are then looked for as in the kernel's sources: in include, of the architecture in whose folder
the including file stands (or NAME, x86 by default) and of all; as user programs see it (uapi); and as generated from
asm-generic. What is not found is left out, and a last line on standard error says how many these are.
"""

import os
import re
import sys

INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.M)
SOURCES = (".c", ".h", ".S", ".lds.S", ".dts", ".dtsi")


def candidates(name, quoted, folder, arch):
    """Paths, from the folder on, at which an included file may stand."""
    if quoted:
        yield os.path.normpath(os.path.join(folder, name))
    for include in ("arch/" + arch + "/include", "include", "arch/" + arch + "/include/uapi", "include/uapi"):
        yield os.path.normpath(os.path.join(include, name))
    if name.startswith("asm/"):
        yield "include/asm-generic/" + name[4:]
        yield "include/uapi/asm-generic/" + name[4:]
    yield os.path.normpath(name)


def main():
    arguments, default = sys.argv[1:], "x86"
    if len(arguments) == 3 and arguments[0] == "--arch":
        default = arguments[1]
        arguments = arguments[2:]
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.exit(__doc__.split("\n", 1)[0])
    root = arguments[0].rstrip("/") or "/"
    top = os.path.basename(os.path.abspath(root))
    files = {}
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            if name.endswith(SOURCES):
                path = os.path.join(folder, name)
                files[os.path.relpath(path, root)] = path
    lost = 0
    for relative, path in sorted(files.items()):
        parts = relative.split("/")
        arch = parts[1] if parts[0] == "arch" and len(parts) > 2 else default
        with open(path, "rb") as source:
            text = source.read()
        for quoted, angled in INCLUDE.findall(text):
            name = (quoted or angled).decode("utf-8", "surrogateescape")
            for place in candidates(name, bool(quoted), os.path.dirname(relative), arch):
                if place in files:
                    print(top + "/" + relative, top + "/" + place, sep="\t")
                    break
            else:
                lost += 1
    print(f"{lost} lines name files that are not below {root}", file=sys.stderr)


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="surrogateescape")
    main()
