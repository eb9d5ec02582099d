#!/usr/bin/env python3
"""ask.py MOUNT QUESTION...: lets a program answer a question by what it finds in a mounted index, its only tool.

The program is the command in MODEL, which a shell runs: any language model that reads a prompt on standard input and
writes its reply to standard output. The prompt is the mount's AGENTS.md, the question, and what was read so far; the
reply is one line: READ and a path in the mount, or ANSWER and the answer. After MOST_STEPS it must answer. Without MODEL
the best passage is printed.

    MODEL='llm -m some-model' examples/ask.py mnt until when is the mooring paid
"""

import os
import subprocess
import sys
from urllib.parse import quote_plus

MOST_STEPS = 8
MOST_BYTES = 4000  # of what is read at once


def read(mount, path):
    """Returns what stands in a file of the mount, or the files of a folder there, cut after MOST_BYTES."""
    root = os.path.realpath(mount)
    full = os.path.normpath(os.path.join(root, path))
    if os.path.commonpath([root, full]) != root:
        return "(outside the mount)"
    try:
        if os.path.isdir(full):
            return "\n".join(sorted(os.listdir(full)))[:MOST_BYTES]
        with open(full, "rb") as file:
            return file.read(MOST_BYTES).decode("utf-8", "replace") or "(nothing was found)"
    except OSError as error:
        return f"({error.strerror})"


def ask(model, prompt):
    """Returns the first line of the model's reply to the prompt."""
    done = subprocess.run(model, shell=True, input=prompt, stdout=subprocess.PIPE, text=True, check=True)
    return next((line.strip() for line in done.stdout.splitlines() if line.strip()), "")


def answer(mount, question, model):
    """Returns the model's answer to the question."""
    prompt = read(mount, "AGENTS.md") + f"\n\nQuestion: {question}\n"
    prompt += "Reply with one line: READ and a path in this folder, or ANSWER and the answer with the path it stands at.\n"
    for step in range(MOST_STEPS):
        reply = ask(model, prompt)
        word, _, rest = reply.partition(" ")
        if word == "ANSWER":
            return rest
        if word == "READ":
            print(f"{step + 1}. {rest}", file=sys.stderr)
            prompt += f"\n{reply}\n{read(mount, rest.strip().strip('/'))}\n"
        else:
            prompt += f"\n{reply}\n(neither READ nor ANSWER)\n"
    return ask(model, prompt + "\nAnswer now.\n").removeprefix("ANSWER ")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    mount, question = sys.argv[1], " ".join(sys.argv[2:])
    model = os.environ.get("MODEL")
    if model:
        print(answer(mount, question, model))
    else:
        print(read(mount, "pass/@k=1/" + quote_plus(question)).rstrip("\n"))


main()
