#!/usr/bin/env python3
"""terminal.py [-o FILE.svg]: draws .github/first-minute.svg, the first minute with gpuir in a terminal, from a real run.

It runs COMMANDS one after the other by bash on a terminal of its own, in an empty folder with a link to examples/desk,
by the programs in build/, and draws what a terminal would show; the folder is drawn as /home/you. It needs pdftotext and a machine that can mount."""

import argparse
import html
import os
import pty
import re
import select
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMMANDS = [
    "gpuir index --store --stem english --filter 'pdf=pdftotext - -' desk -o desk.gpuir",
    "gpuir query --grep -k 2 desk.gpuir how many days are backups kept",
    "gpuir query --passages -k 1 desk.gpuir why does the engine overheat",
    "mkdir mnt && gpuirfs desk.gpuir mnt",
    "cat mnt/pass/@k=1/degrees+for+green+tea",
    "grep -rl invoice mnt/files/invoice",
    "cat mnt/query/solar+panel.paths",
]
COLUMNS, CELL, LINE, SIZE = 106, 8.4, 20, 14
COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "35": "#d2a8ff", "36": "#79c0ff"}


def run(command, folder):
    """Returns what a terminal gets of the command, and its exit status."""
    pid, fd = pty.fork()
    if not pid:
        os.chdir(folder)
        os.environ.update(PATH=f"{ROOT}/build:{os.environ['PATH']}", TERM="xterm", COLUMNS=str(COLUMNS), LINES="50",
                          LC_ALL="C.UTF-8")
        os.execvp("bash", ["bash", "-c", command])
    shown = b""
    while select.select([fd], [], [], 60)[0]:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(fd)
    return shown.decode("utf-8", "replace"), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def unmount(folder):
    """Unmounts folder/mnt, if something is mounted there."""
    subprocess.run(["fusermount3", "-u", f"{folder}/mnt"], stderr=subprocess.DEVNULL, check=False)


def session():
    """Returns the lines of the session, as text with the codes of colours."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(f"{ROOT}/examples/desk", f"{folder}/desk")
        try:
            for command in COMMANDS:
                shown, status = run(command, folder)
                if status:
                    sys.exit(f"terminal.py: {command}: exit status {status}\n{shown}")
                lines.append("\x1b[32m$\x1b[m " + "\x1b[1m" + command + "\x1b[m")
                shown = re.sub(r"\r?\n", "\n", shown).rstrip("\n").replace(folder, "/home/you")
                # what a status line has overwritten is gone
                lines += [line.split("\r")[-1] for line in shown.split("\n")] if shown else []
        finally:
            unmount(folder)
    return lines


def pieces(line):
    """Cuts a line into texts of one look: (text, attributes)."""
    look, out = "", []
    for part in re.split(r"(\x1b\[[0-9;]*[A-Za-z])", line):
        code = re.fullmatch(r"\x1b\[([0-9;]*)([A-Za-z])", part)
        if not code:
            if part:
                out.append((part, look))
        elif code[2] == "m":
            look = ""
            for number in code[1].split(";"):
                if number == "1":
                    look += ' font-weight="bold"'
                elif number in COLOURS:
                    look += f' fill="{COLOURS[number]}"'
    return out


def draw(lines):
    """Returns the picture."""
    rows = []
    for line in lines:
        cut, width = [], 0
        for text, look in pieces(line):
            while text:
                room = COLUMNS - width
                cut.append((text[:room], look))
                width += len(text[:room])
                text = text[room:]
                if text:
                    rows.append(cut)
                    cut, width = [], 0
        rows.append(cut)
    width, height = COLUMNS * CELL + 32, len(rows) * LINE + 52
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}"'
        ' role="img">',
        "<title>The first minute with gpuir in a terminal</title>",
        f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#0d1117"/>',
        '<circle cx="20" cy="18" r="6" fill="#ff5f57"/><circle cx="40" cy="18" r="6" fill="#febc2e"/>'
        '<circle cx="60" cy="18" r="6" fill="#28c840"/>',
        f'<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="{SIZE}" fill="#e6edf3"'
        ' xml:space="preserve">',
    ]
    for number, row in enumerate(rows):
        spans, at = "", 0
        for text, look in row:
            spans += f'<tspan x="{16 + at * CELL:.1f}"{look}>{html.escape(text, quote=False)}</tspan>'
            at += len(text)
        if spans:
            out.append(f'<text y="{48 + number * LINE}">{spans}</text>')
    return "\n".join(out + ["</g>", "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("-o", default=f"{ROOT}/.github/first-minute.svg", help="the picture to write")
    picture = draw(session())
    with open(parser.parse_args().o, "w", encoding="utf-8") as file:
        file.write(picture)


if __name__ == "__main__":
    main()
