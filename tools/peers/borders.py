#!/usr/bin/env python3
"""borders.py GAME PLAIN DENSE WORDS LOW HIGH: what dense lists cost where their bits are emptiest.

GAME is the program that game.py leaves in its WORK. PLAIN and DENSE are one collection without and with dense lists.
200 ANDs of two or three of the words of the file WORDS that stand in one document of LOW to one of HIGH are asked of
both, by turns, 20 times after one to warm up. A row for k = 10 and k = 1,000: words, queries, how many of these take
over 1.3 times PLAIN's processor time, and the quotients of the times: median, 99 of 100, the greatest.
"""

import json
import random
import statistics
import subprocess
import sys

import peers

QUERIES, TURNS, TOO_LONG = 200, 20, 1.3


def main():
    if len(sys.argv) != 7:
        sys.exit(__doc__)
    game, plain, dense, words, low, high = sys.argv[1:]
    engines = [
        subprocess.Popen([game, index], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for index in (plain, dense)
    ]

    def ask(engine, command, query):
        engine.stdin.write(f"{command}\t{query}\n")
        engine.stdin.flush()
        return [int(x) for x in engine.stdout.readline().split()]

    n = json.loads(subprocess.check_output([peers.gpuir(), "stats", "--json", plain]))["documents"]
    with open(words, encoding="utf-8") as lines:
        every = sorted({w for line in lines for w in line.split() if w.isascii() and w.isalnum()})
    fit = [w for w in every if n / float(low) <= ask(engines[0], "COUNT", w)[0] <= n / float(high)]
    draw = random.Random(1)
    queries = [" ".join("+" + w for w in draw.sample(fit, draw.randint(2, 3))) for _ in range(QUERIES)]
    print(f"# machine: {peers.machine()}\n# commit: {peers.commit()}\n# command: borders.py {' '.join(sys.argv[1:])}")
    print("k\twords\tqueries\tover_1.3\tmedian\tp99\tgreatest\tplain_us\tdense_us")
    for k in (10, 1000):
        sums = [[0, 0] for _ in queries]
        for turn in range(TURNS + 1):
            for i, query in enumerate(queries):
                for j in (0, 1) if turn % 2 else (1, 0):
                    taken = ask(engines[j], f"TOP_{k}", query)[1]
                    sums[i][j] += taken if turn else 0
        ratio = sorted(new / old for old, new in sums)
        means = [sum(s[j] for s in sums) / (1e3 * TURNS * QUERIES) for j in (0, 1)]
        print(
            k, len(fit), QUERIES, sum(x > TOO_LONG for x in ratio), f"{statistics.median(ratio):.3f}",
            f"{ratio[QUERIES * 99 // 100 - 1]:.3f}", f"{ratio[-1]:.3f}", *(f"{x:.1f}" for x in means), sep="\t",
        )  # fmt: skip
    for engine in engines:
        engine.stdin.close()
        engine.wait()


if __name__ == "__main__":
    main()
