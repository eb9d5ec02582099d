#!/usr/bin/env python3
"""ignore_oracle.py GPUIR PATTERNS: what .gitignore leaves out, beside `git check-ignore`, for drawn patterns

In the current folder, which is empty, it makes folders of the same files, each with a .gitignore of one to three drawn
lines. The files that gpuir indexes must be those that git does not ignore. Ends with `N patterns, M paths, K differ`
and exit status 1 if any does.
"""
import os
import random
import re
import subprocess
import sys

GPUIR, PATTERNS = os.path.abspath(sys.argv[1]), int(sys.argv[2])
FOLDERS = 40  # with a .gitignore each, of a round
NAMES = ['a', 'b', 'ab', 'aab', 'a.o', 'b.c', 'a b', '[a]', '#a', '!b', 'a*', 'b?', '\u00e9', 'B1', ']', 'a-']
random.seed(int(os.environ.get('SEED', '3')))


def tree():
    """Paths of files, some in folders; no name is both."""
    paths = set(NAMES)
    for depth in range(1, 5):
        for _ in range(6):
            folders = ['d' + random.choice(['', 'a', '.o', '1'])] + [random.choice('xyab') + 'z' for _ in range(depth - 1)]
            paths.add('/'.join(folders + [random.choice(NAMES)]))
    return sorted(paths)


def some_class():
    inside = random.choice(['a', 'a-c', 'b-', ']a', '-a', 'a\\-c', '\\]', '[:alpha:]', '[:digit:]x', '[:punct:]', 'x[:a', '[', '[:',
                            'a/b', '/', '', '[:no:]', 'z-a', 'a-\\c', '^', '!'])
    return '[' + random.choice(['', '', '!', '^']) + inside + random.choice([']', ']', ']', ']', ''])


def piece():
    if random.random() < 0.3:
        return random.choice(['*', '**', '***', 'd', 'da', 'd1', 'xz', 'az', '?z'])
    parts = []
    for _ in range(random.randint(1, 3)):
        part = random.choice(['*', '?', 'name', 'letter', 'letter', 'class', 'escape', '**'])
        name = random.choice(NAMES)
        parts.append({'name': name, 'letter': random.choice('abdoxz.B1'), 'class': some_class(),
                      'escape': '\\' + random.choice('ab*?[ #!\\')}.get(part, part))
    return ''.join(parts)


def pattern():
    """Git takes the letters that a pattern begins with away, and then a '**' behind them for one that stands alone, which
    gitignore(5) does not say: such patterns are not drawn."""
    while True:
        drawn = some_pattern()
        if not re.match(r'!?/?[^*?[\\]*[^*?[\\/]\*\*+\\?/', drawn):
            return drawn


def some_pattern():
    text = '/'.join(piece() for _ in range(random.choice([1, 1, 2, 2, 3, 4])))
    return (random.choice(['', '', '', '!', '#']) + random.choice(['', '', '/', '**/']) + text +
            random.choice(['', '', '', '/', '//', ' ', '\\ ', '\r', '\\', '/**', '/*']))


def indexed():
    """The paths of all files that gpuir takes."""
    subprocess.run([GPUIR, 'index', '-q', '--threads', '1', 't', '-o', 'ix'], check=True)
    done = subprocess.run([GPUIR, 'query', '--tsv', '-k', '100000', 'ix', 'word'], check=True, stdout=subprocess.PIPE)
    return {line.split('\t')[-1] for line in done.stdout.decode().splitlines()}


def ignored(paths):
    """Those of them that git ignores."""
    done = subprocess.run(['git', 'check-ignore', '--no-index', '-z', '--stdin'], cwd='t', stdout=subprocess.PIPE,
                          input='\0'.join(paths).encode())
    if done.returncode > 1:
        sys.exit('git check-ignore: %d' % done.returncode)
    return set(done.stdout.decode().split('\0'))


def main():
    files = tree()
    for folder in range(FOLDERS):
        for path in files:
            path = 't/%02d/%s' % (folder, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'w') as out:
                out.write('word\n')
    subprocess.run(['git', 'init', '-q', 't'], check=True)
    paths = ['%02d/%s' % (folder, path) for folder in range(FOLDERS) for path in files]
    drawn = compared = differ = 0
    while drawn < PATTERNS:
        rules = {}
        for folder in range(FOLDERS):
            rules[folder] = [pattern() for _ in range(random.randint(1, 3))]
            drawn += len(rules[folder])
            with open('t/%02d/.gitignore' % folder, 'w') as out:
                out.write(random.choice(['', '', '\ufeff']) + '\n'.join(rules[folder]) + random.choice(['', '\n']))
        taken, left = indexed(), ignored(paths)
        for path in paths:
            compared += 1
            if ('t/' + path in taken) == (path in left):
                differ += 1
                print('%s %s: git %s it' % (rules[int(path[:2])], path[3:], 'ignores' if path in left else 'takes'))
    print('%d patterns, %d paths, %d differ' % (drawn, compared, differ))
    sys.exit(differ > 0)


main()
