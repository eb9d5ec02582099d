#!/usr/bin/env python3
"""faults.py GPUIR FAULTS.so MODE [LIMIT [COMMAND...]]: commands that write, under failing calls, kills, power loss

MODE is one of:
faults  the n-th call of each kind fails, alone or with all behind it; LIMIT of them are tried a kind (0: all)
kills   the process is killed behind the n-th call that alters a file, or at a random moment; LIMIT times (0: 1000) in
        all, not counting commands that ended before their moment
calls   the n-th system call of each kind fails, once or with all behind it, by strace: of all kinds that the commands
        make, also those that FAULTS.so does not know; LIMIT: that many in all, each of another kind (0: all)
power   what a machine holds after power loss at any moment of a command: files as they were at their last fsync, or
        empty, and of the folder's changes since its last fsync any first few

COMMANDs are names from the table below (all); NAME:KIND is one kind of call alone, NAME:KIND+KIND two. After each run
the old file or the new one stands at the output, whole; a command that failed said why, ended within 60 seconds, and
left nothing, or, killed, nothing that the next run does not remove. Ends with `N tried, N of them killed, N wrong` and exit status 1 if
any was.
"""
import atexit
import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

GPUIR, FAULTS, MODE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
LIMIT = int(sys.argv[4]) if len(sys.argv) > 4 else 0
KINDS = ['open', 'read', 'write', 'truncate', 'fsync', 'rename', 'unlink', 'stat', 'lock', 'mmap', 'malloc']
SECONDS = 60
PACKED = ['new.' + tool for tool in ('gzip', 'bzip2', 'xz', 'zstd') if shutil.which(tool)]
COMMANDS = {
    'index': (['index', '-q', '--threads', '1', '--lines', 'new.txt', '-o', 't/out'], 'old.gpuir'),
    'index-spilled': (['index', '-q', '--threads', '2', '--memory', '1', '--store', '--lines', 'big.txt', '-o', 't/out'],
                      'old.gpuir'),
    'index-packed': (['index', '-q', '--threads', '1', *PACKED, '-o', 't/out'], 'old.gpuir'),
    'index-converted': (['index', '-q', '--threads', '1', 'new.mbox', 'new.html', 'new.1', 'new.ipynb', '-o', 't/out'],
                        'old.gpuir'),
    'index-filtered': (['index', '-q', '--threads', '1', '--filter', 'foo=cat', 'new.foo', '-o', 't/out'], 'old.gpuir'),
    'reorder': (['reorder', '-q', '--threads', '1', '--order', 'name', 'new.gpuir', 't/out'], 'old.gpuir'),
    'import': (['import', '-q', '--threads', '1', 'new.ciff', '-o', 't/out'], 'old.gpuir'),
    'export': (['export', '--format', 'ciff', 'new.gpuir', 't/out'], 'old.ciff'),
}
LEFT = {'execve', 'exit', 'exit_group', 'futex', 'arch_prctl', 'set_tid_address', 'set_robust_list', 'rseq', 'madvise',
        'rt_sigprocmask', 'rt_sigreturn', 'restart_syscall', 'brk'}  # the C library relies on them, or they do not fail so
MEMORY = {'mmap', 'mprotect', 'clone3', 'clone'}  # they fail with ENOMEM
ONLY = dict(name.partition(':')[::2] for name in sys.argv[5:])
NAMES = list(ONLY or COMMANDS)
tried = wrong = killed = 0


def text(path, lines, seed):
    numbers = random.Random(seed)
    with open(path, 'w') as out:
        for _ in range(lines):
            print(*('w%d' % int(numbers.paretovariate(0.5) % 3000) for _ in range(12)), file=out)


def marked():
    """Files of each kind of markup, and mail of parts and charsets."""
    with open('new.html', 'w') as out:
        print('<html><title>w1</title><p>w2 <b>w</b>3 &eacute;<script>w4</script></html>', file=out)
    with open('new.1', 'w') as out:
        print('.TH W 1\n.SH NAME\nw5 \\- \\fBw6\\fR\n.TP\n.B w7\nw8', file=out)
    with open('new.ipynb', 'w') as out:
        print('{"cells": [{"cell_type": "code", "source": ["w9\\n", "w10"]}]}', file=out)
    with open('new.mbox', 'w') as out:
        for n in range(3):
            print('From a 1:00\nFrom: =?koi8-r?q?=C9=CF?= w1%d\nSubject: =?utf-8?b?dzEx?=\nMIME-Version: 1.0\n'
                  'Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain; charset=koi8-r\n'
                  'Content-Transfer-Encoding: quoted-printable\n\nw=C9=\nx\n--b\n'
                  'Content-Type: text/html\n\n<p>w12\n--b\n'
                  "Content-Disposition: attachment; filename*=gbk''%%C4%%E3\nContent-Type: a/b\n\nx\n--b--\n" % n,
                  file=out)


def digest(path):
    try:
        with open(path, 'rb') as file:
            return hashlib.sha256(file.read()).hexdigest()
    except FileNotFoundError:
        return None


def prepare():
    text('old.txt', 100, 1)
    text('new.txt', 600, 2)
    text('big.txt', 12000, 3)
    text('new.foo', 600, 4)
    for name in PACKED:
        with open(name, 'wb') as out:
            subprocess.run([name.partition('.')[2], '-c', 'new.txt'], stdout=out, check=True)
    marked()
    run(['index', '-q', '--threads', '1', '--lines', 'old.txt', '-o', 'old.gpuir'])
    run(['index', '-q', '--threads', '1', '--lines', 'new.txt', '-o', 'new.gpuir'])
    run(['export', '--format', 'ciff', 'new.gpuir', 'new.ciff'])
    run(['export', '--format', 'ciff', 'old.gpuir', 'old.ciff'])


def run(command, **settings):
    """Runs a command; with settings, under the library. None: it did not end."""
    environment = dict(os.environ)
    for name, value in settings.items():
        environment['FAULTS_' + name.upper()] = str(value)
    if settings:
        environment['LD_PRELOAD'] = FAULTS
    try:
        done = subprocess.run([GPUIR] + command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None
    if not settings and done.returncode:
        sys.exit('%s: %s' % (' '.join(command), done.stderr.decode()))
    return done


def run_traced(command, options):
    """Runs a program with arguments under strace. None: it did not end."""
    try:
        return subprocess.run(['strace', '-f', '-qq'] + options + command, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None


def calls_of(command):
    """How many calls of each kind a command makes: {kind: (those of the loader of programs, all)}."""
    run_traced(command, ['-o', 'trace'])
    counts, loading, main = {}, {}, None
    with open('trace', errors='replace') as file:
        for process, kind in re.findall(r'(?m)^(\d+) +([a-z0-9_]+)\(', file.read()):
            main = main or process
            counts[kind, process] = counts.get((kind, process), 0) + 1  # strace counts for each thread
            if kind == 'munmap' and process == main and not loading:
                loading = {k: n for (k, p), n in counts.items()}  # the cache of libraries goes last
    result = {}
    for (kind, process), n in counts.items():
        if kind not in LEFT:
            result[kind] = loading.get(kind, 0), max(n, result.get(kind, (0, 0))[1])
    return result


def failing_calls(commands, begin):
    """(name, what, options of strace) of each call that is to fail. begin: makes the folder as it was, of a name."""
    found = []
    for name, command in commands.items():
        begin(name)
        for kind, (first, total) in sorted(calls_of(command).items()):
            if ONLY.get(name) and kind not in ONLY[name].split('+'):
                continue
            for number in range(first + 1, total + 1):
                for on in ('', '+'):
                    error = 'ENOMEM' if kind in MEMORY else 'EIO'
                    options = ['-o', '/dev/null', '-e', 'inject=%s:error=%s:when=%d%s' % (kind, error, number, on)]
                    found.append((kind, (name, '%s %d%s of %d' % (kind, number, on, total), options)))
    if not LIMIT:
        return [call for _, call in found]
    random.shuffle(found)
    return list(dict(found).values())[:LIMIT]  # one of each kind


def run_until(command, seconds):
    """Runs a command that is killed after so long, unless it has ended."""
    process = subprocess.Popen([GPUIR] + command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        said = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        said = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, *said)


def start(old):
    shutil.rmtree('t', ignore_errors=True)
    os.mkdir('t')
    shutil.copy(old, 't/out')


def finals():
    """The output of each command that is not disturbed, and how long it takes."""
    result = {}
    for name in NAMES:
        command, old = COMMANDS[name]
        start(old)
        begin = time.monotonic()
        run(command)
        result[name] = digest('t/out'), time.monotonic() - begin
    return result


def complain(name, what, why):
    global wrong
    wrong += 1
    print('%s: %s: %s' % (name, what, why), flush=True)


def count(command, old, kind):
    start(old)
    run(command, op=kind, count='count')
    with open('count') as file:
        return int(file.read())


def check(name, what, done, final, may_leave=False):
    """Judges what a disturbed run left in t/. What it may leave, the next run removes."""
    global tried, killed
    tried += 1
    command, old = COMMANDS[name]
    if done is None:
        return complain(name, what, 'it did not end within %d s' % SECONDS)
    now, message = digest('t/out'), done.stderr.decode(errors='replace')
    was_killed = done.returncode == -signal.SIGKILL
    killed += was_killed
    if now not in (digest(old), final):
        complain(name, what, 'the output is neither the old nor the new file')
    if done.returncode == 0 and now != final:
        complain(name, what, 'it succeeded, and the old file stands there')
    if done.returncode < 0 and not was_killed:
        complain(name, what, 'it died of signal %d' % -done.returncode)
    if done.returncode > 0 and not message.strip() and not (MODE == 'calls' and what.startswith('write')):
        complain(name, what, 'it failed without a word')
    if 'it took too long' in message:
        complain(name, what, 'the end of a filter was waited for in vain')
    if done.returncode > 0 and now == final and 'in place' not in message:
        complain(name, what, 'it failed, but the new file stands there: %s' % message.strip())
    if os.listdir('t') == ['out']:
        return None
    if not was_killed and not may_leave:
        complain(name, what, 'it left %s' % os.listdir('t'))
    else:
        run(command)
        if sorted(os.listdir('t')) != ['out'] or digest('t/out') != final:
            complain(name, what, 'the next run left %s' % os.listdir('t'))
    return None


def chosen(total):
    """Numbers of calls, all of them or LIMIT: the first and the last ones, and as many between."""
    if not LIMIT or total <= LIMIT:
        return list(range(1, total + 1))
    part = max(1, LIMIT // 3)
    ends = set(range(1, part + 1)) | set(range(total - part + 1, total + 1))
    between = [number for number in range(1, total + 1) if number not in ends]
    return sorted(ends | set(random.sample(between, max(0, LIMIT - len(ends)))))


def faults(final):
    for name in NAMES:
        command, old = COMMANDS[name]
        for kind in ONLY[name].split('+') if ONLY.get(name) else KINDS:
            total = count(command, old, kind)
            for number in chosen(total):
                for on in ({}, {'on': 1}):
                    start(old)
                    what = '%s %d of %d%s' % (kind, number, total, ' and all behind it' if on else '')
                    done = run(command, op=kind, at=number, **on)
                    check(name, what, done, final[name][0], kind in ('unlink', 'stat'))


def kills(final):
    for name in NAMES:
        command, old = COMMANDS[name]
        total = count(command, old, 'change')
        share, i = killed + (LIMIT or 1000) // len(NAMES), 0
        while killed < share:
            start(old)
            i += 1
            if i % 4 == 0:
                moment = random.uniform(0, final[name][1])
                done, what = run_until(command, moment), 'killed after %.4f s' % moment
            else:
                number = random.randint(1 if i % 4 == 1 else max(1, total - 8), total)
                done = run(command, op='change', at=number, kill=1)
                what = 'killed behind change %d of %d' % (number, total)
            check(name, what, done, final[name][0])


def calls(final):
    for name, what, options in failing_calls({name: [GPUIR] + COMMANDS[name][0] for name in NAMES},
                                             lambda name: start(COMMANDS[name][1])):
        start(COMMANDS[name][1])
        check(name, what, run_traced([GPUIR] + COMMANDS[name][0], options), final[name][0], 'unlink' in what or 'stat' in what)


class Disk:
    """The folder t/ as a machine holds it: names and files now, and what of them would survive."""

    def __init__(self, out):
        self.names = {'out': out}  # name -> key of a file
        self.safe = dict(self.names)  # at the folder's last fsync
        self.later = []  # changes of the folder since
        self.synced = {}  # key -> digest at its last fsync
        self.keys = {}  # inode -> key of the file that has it now

    def change(self, apply):
        apply(self.names)
        self.later.append(apply)

    def survivors(self):
        """Digests that `out` may have after a loss of power now."""
        names = dict(self.safe)
        found = [names.get('out')]
        for apply in self.later:
            apply(names)
            found.append(names.get('out'))
        return [self.synced.get(key, 'a file that was never synced') if key else 'no file' for key in found]


def power(final):
    global tried
    for name in NAMES:
        command, old = COMMANDS[name]
        start(old)
        shutil.rmtree('log', ignore_errors=True)
        os.mkdir('log')
        run(command, log='log')
        disk = Disk('old')
        disk.synced['old'] = digest(old)
        with open('log/log') as file:
            lines = file.read().splitlines()
        for number, line in enumerate(lines):
            verb, _, rest = line.partition(' ')
            if verb in ('create', 'link'):
                inode, _, path = rest.partition(' ')
                base, key = os.path.basename(path), '%s@%d' % (inode, number)
                if verb == 'link':
                    key = disk.keys[inode]
                elif disk.names.get(base) == disk.keys.get(inode, 0):
                    continue
                disk.keys[inode] = key
                disk.change(lambda names, b=base, k=key: names.__setitem__(b, k))
            elif verb == 'rename':
                a, b = (os.path.basename(path) for path in rest.split('\t'))
                disk.change(lambda names, a=a, b=b: names.__setitem__(b, names.pop(a, None)))
            elif verb == 'unlink':
                disk.change(lambda names, b=os.path.basename(rest): names.pop(b, None))
            elif verb == 'fsync':
                disk.synced[disk.keys.get(rest, rest)] = digest('log/%d' % number)
            elif verb == 'fsync-folder':
                disk.safe, disk.later = dict(disk.names), []
            for survivor in disk.survivors():
                tried += 1
                if survivor not in (digest(old), final[name][0]):
                    complain(name, 'power loss after %s' % line, 'what stands there: %s' % survivor)
        if disk.survivors() != [final[name][0]]:
            complain(name, 'power loss after the end', 'the new file may be lost')


def report_at_end():
    """Lets the last line be written also when the time of the run is over."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    atexit.register(lambda: print('%d tried, %d of them killed, %d wrong' % (tried, killed, wrong)))


def main():
    random.seed(11)
    os.environ['GPUIR_FILTER_SECONDS'] = '5'  # the programs take milliseconds
    prepare()
    report_at_end()
    {'faults': faults, 'kills': kills, 'calls': calls, 'power': power}[MODE](finals())
    sys.exit(wrong > 0)


if __name__ == '__main__':
    main()
