#!/usr/bin/env python3
"""live_faults.py LIVE FAULTS.so MODE [LIMIT [GPUIR]]: a live index under failing calls, kills, loss of power

LIVE is the program that tests/e2e/live_history.c makes, whose history is disturbed twice: in a folder that it makes,
and in one that has an index. MODE is one of:
faults  the n-th call of each kind fails, alone or with all behind it, with EIO or, where that can be, ENOSPC; LIMIT of
        them are tried a kind (0: all)
readers the same of a process that opens the folder and reads it
kills   the process is killed behind the n-th call that alters a file, or at a random moment; LIMIT times (0: 1000)
power   what a machine holds after power loss at any moment: files as they were at their last fsync, or empty, and of
        the folder's changes since its last fsync any first few, or any single one; LIMIT of them a start (0: all)
update  the commands index --live, update, add, delete and merge of GPUIR: failing calls, kills behind calls, at most
        LIMIT a kind (0: all), and kills at random moments, 6 a command (0: 200)
killed  of these the kills alone
calls   the same commands; the n-th system call of each kind fails, once or with all behind it, by strace; LIMIT of them,
        each of another kind (0: all)

After each run a reader finds the documents of the last commit that was reported, or of the next one, and no others;
who opens the folder for writing removes all files that the manifest does not name; and the history, run whole, ends
as ever.
Ends with `N tried, N of them killed, N wrong` and exit status 1 if any was.
"""
import errno
import os
import random
import shutil
import signal
import sys
import time

import faults
from faults import FAULTS, KINDS, LIMIT, MODE, chosen, complain, digest, run, run_until

COMMITS = 4
EMPTY = '0000000000000001 0'  # an index that was made, and has no document yet
FOLDER = 't/live'
STARTS = ['none', 'old']  # what stands at FOLDER: nothing, or an index


def start(which):
    shutil.rmtree('t', ignore_errors=True)
    os.mkdir('t')
    if which == 'old':
        shutil.copytree('old', FOLDER)


def look():
    """What a reader finds: the digest and the number of documents, or what it says; None: no index was made yet."""
    if not os.path.exists(FOLDER + '/manifest'):
        return None
    return run(['look', FOLDER], count='count').stdout.decode().strip().rpartition(' ')[0]


def states():
    """What readers find before, and after each commit of, an undisturbed run; and how long that takes."""
    result = {}
    for which in STARTS:
        start(which)
        found = [look()]
        for commits in range(1, COMMITS + 1):
            start(which)
            run(['run', FOLDER, str(commits)])
            found.append(look())
        start(which)
        begin = time.monotonic()
        run(['run', FOLDER])
        result[which] = found, time.monotonic() - begin
    return result


def names_are_right():
    """Whether the folder has what the manifest names, and nothing else."""
    segments = int(run(['look', FOLDER], count='count').stdout.split()[-1])
    names = sorted(os.listdir(FOLDER))
    return names[-2:] == ['lock', 'manifest'] and len(names) == segments + 2


def judge(name, what, found, commits):
    """Judges what stands at FOLDER when `commits` were reported: found has the digests of all states."""
    now = look()
    if now not in found[commits:commits + 2] and (commits or now != EMPTY):
        complain(name, what, 'after %d commits, a reader finds %s' % (commits, now))
    if now is not None:
        tidied = run(['tidy', FOLDER], count='count')
        if tidied.returncode or not names_are_right():
            complain(name, what, 'opened for writing: %s; %s' % (tidied.stdout.decode(), os.listdir(FOLDER)))
        if look() != now:
            complain(name, what, 'to open it for writing changed it')
    again = run(['run', FOLDER], count='count')
    if again.returncode or look() != found[-1] or not names_are_right():
        complain(name, what, 'run again: %s; %s' % (again.stdout.decode(), os.listdir(FOLDER)))


def check(name, what, done, found):
    faults.tried += 1
    if done is None:
        return complain(name, what, 'it did not end')
    said = done.stdout.decode(errors='replace')
    was_killed = done.returncode == -signal.SIGKILL
    faults.killed += was_killed
    if done.returncode < 0 and not was_killed:
        complain(name, what, 'it died of signal %d' % -done.returncode)
    if done.returncode > 1 or 'broken' in said:
        complain(name, what, said.strip())
    if done.returncode == 1 and 'failed' not in said:
        complain(name, what, 'it failed without a word')
    return judge(name, what, found, said.count('committed'))


def count(which, kind, command):
    start(which)
    run([command, FOLDER], op=kind, count='count')
    with open('count') as file:
        return int(file.read())


def errors_of(kind):
    return [errno.EIO, errno.ENOSPC] if kind in ('open', 'write', 'truncate', 'fsync') else [0]


def disturbances(which, command):
    """(what, settings) of each call that is to fail."""
    for kind in KINDS:
        total = count(which, kind, command)
        for number in chosen(total):
            for on in ({}, {'on': 1}):
                for error in errors_of(kind):
                    settings = dict(on, op=kind, at=number, **({'errno': error} if error else {}))
                    yield '%s %d of %d%s, error %d' % (kind, number, total, ' and all behind it' if on else '',
                                                       error), settings


def try_faults(found):
    for which in STARTS:
        for what, settings in disturbances(which, 'run'):
            start(which)
            check(which, what, run(['run', FOLDER], **settings), found[which][0])


def try_readers(found):
    """A reader that fails says why, and does not call a good index damaged."""
    start('old')
    run(['run', FOLDER, '3'])
    run(['run', FOLDER, '2'])  # several segments, deleted documents
    right = run(['look', FOLDER], count='count').stdout.decode().strip()
    shutil.rmtree('old')
    shutil.copytree(FOLDER, 'old')
    for what, settings in disturbances('old', 'look'):
        faults.tried += 1
        done = run(['look', FOLDER], **settings)
        said = done.stdout.decode().strip() if done else 'nothing, and did not end'
        if done is None or (done.returncode == 0 and said != right) or done.returncode not in (0, 1):
            complain('reader', what, said)
        elif done.returncode and not said.startswith(('failed: -2: ', 'failed: -3: ')):  # no memory; input or output
            complain('reader', what, said)
    if run(['look', FOLDER], count='count').stdout.decode().strip() != right:
        complain('reader', 'all', 'reading changed the index')


def try_kills(found):
    total = {which: count(which, 'change', 'run') for which in STARTS}
    i = 0
    while faults.killed < (LIMIT or 1000):
        which = STARTS[i % 2]
        start(which)
        if i % 8 < 4:
            moment = random.uniform(0, 1.2 * found[which][1])
            done, what = run_until(['run', FOLDER], moment), 'killed after %.4f s' % moment
        else:
            number = i // 8 * 4 % total[which] + i % 4 + 1
            done, what = run(['run', FOLDER], op='change', at=number, kill=1), 'killed behind change %d' % number
        check(which, what, done, found[which][0])
        i += 1


def command(arguments, **settings):
    """Runs a command of gpuir under the library."""
    live, faults.GPUIR = faults.GPUIR, sys.argv[5]
    done = run(arguments, **(settings or {'count': 'count'}))
    faults.GPUIR = live
    return done


def command_until(arguments, seconds):
    """Runs a command of gpuir that is killed after so long, unless it has ended."""
    live, faults.GPUIR = faults.GPUIR, sys.argv[5]
    done = run_until(arguments, seconds)
    faults.GPUIR = live
    return done


def sources(version):
    """The folder that is indexed: some files stay, others change, come or go."""
    shutil.rmtree('src', ignore_errors=True)
    os.mkdir('src')
    for number in range(12):
        if number % 4 != version:
            with open('src/f%d' % number, 'w') as out:
                print('every word%d of version %d' % (number, version if number % 3 else 0), file=out)


UPDATES = {  # name -> arguments, and whether the folder is there before
    'index --live': (['index', '-q', '--live', '--positions', '--store', '--threads', '1', 'src', '-o', FOLDER], False),
    'update': (['update', '-q', '--threads', '1', 'src', '-o', FOLDER], True),
    'add': (['add', '-q', '--lines', 'more', '-o', FOLDER], True),
    'delete': (['delete', '-q', '--source', FOLDER, 'src/f2', 'src/f6', 'src/f7'], True),
    'merge': (['merge', '-q', '--all', FOLDER], True),
}


def documents():
    """What the index has: {path:line: text}."""
    if not os.path.exists(FOLDER + '/manifest'):
        return {}
    done = command(['query', '-k', '1000', '--mode', 'or', '--grep', '--tokens', '0', FOLDER, 'every', 'one', 'another'])
    lines = done.stdout.decode().splitlines()
    found = {line.rpartition(':')[0]: line.rpartition(':')[2] for line in lines}
    if done.returncode > 1 or len(found) != len(lines):
        complain('query', 'after a disturbed command', '%s; %s' % (lines, done.stderr.decode()))
    return found


def begin_update(there):
    start('none')
    if there:
        shutil.copytree('before', FOLDER)


class Undisturbed:
    """What stands there before and after a command that nothing disturbs, and how long it takes."""

    def __init__(self, name):
        arguments, there = UPDATES[name]
        sources(1)
        shutil.rmtree('before', ignore_errors=True)
        start('none')
        command(UPDATES['index --live'][0])
        command(['delete', '-q', '--source', FOLDER, 'src/f4'])
        shutil.copytree(FOLDER, 'before')
        sources(2)
        begin_update(there)
        self.before, self.documents_before = look(), documents()
        begin = time.monotonic()
        done = command(arguments)
        self.seconds = time.monotonic() - begin
        self.after, self.documents_after = look(), documents()
        same = self.documents_before == self.documents_after
        if done.returncode or self.after is None or same != (name == 'merge') or len(self.documents_after) < 5:
            complain(name, 'undisturbed', '%s; %s' % (done.stderr.decode(), self.documents_after))


def check_documents(name, what, code, is_unread, u):
    """Whether each file's documents are the old or the new ones, and, where the status does not tell of a file that was
    not read, all of them the old or all the new ones."""
    now, before, after = documents(), u.documents_before, u.documents_after
    right = {0: [after], 3: []}.get(code, [before, after])
    if code == 3 or (is_unread and code):
        places = set(now) | set(before) | set(after)
        right = [now] if all(now.get(p) in (before.get(p), after.get(p)) for p in places) else []
    if now not in right:
        complain(name, what, 'exit status %d, and the documents are %s' % (code, now))


def check_update(name, what, done, u):
    """Judges what a disturbed command left, and whether it ends well afterwards."""
    faults.tried += 1
    arguments, there = UPDATES[name]
    if done is None:
        return complain(name, what, 'it did not end')
    said = done.stderr.decode(errors='replace')
    was_killed = done.returncode == -signal.SIGKILL
    faults.killed += was_killed
    if done.returncode < 0 and not was_killed:
        complain(name, what, 'it died of signal %d' % -done.returncode)
    if done.returncode > 0 and not said.strip() and not (MODE == 'calls' and what.startswith('write')):
        complain(name, what, 'it failed without a word')
    now = look()
    is_unread = name in ('index --live', 'update') and 'src/' in said  # a file: the index is right without it
    if done.returncode == 3 and 'src' not in said and 'more' not in said:
        complain(name, what, 'what could not be read is not named: %s' % said)
    check_documents(name, what, done.returncode, is_unread, u)
    if not is_unread and now not in (u.before, u.after, None if there else EMPTY) and done.returncode != 3:
        complain(name, what, 'exit status %d, and a reader finds %s; %s' % (done.returncode, now, said))
    if name in ('index --live', 'update') or now == u.before:
        if name == 'index --live' and now is not None:
            arguments = UPDATES['update'][0]
        again = command(arguments)
        if again.returncode or documents() != u.documents_after:
            complain(name, what, 'run again: %d, %s' % (again.returncode, again.stderr.decode()))
    if (was_killed or 'stat' in what) and look() is not None:  # what is not known to be its own it leaves
        run(['tidy', FOLDER], count='count')
    names = [name for name in os.listdir(FOLDER) if not name.endswith('.gpuir')]
    if not set(names) <= {'lock', 'manifest', 'update'} or not digest(FOLDER + '/manifest'):
        return complain(name, what, 'left behind: %s' % names)
    return None


def disturb_update(name, kind, ways, u):
    """Runs a command from the folder as it stood before, again and again: something happens at its n-th call."""
    arguments, there = UPDATES[name]
    begin_update(there)
    command(arguments, op=kind, count='count')
    with open('count') as file:
        total = int(file.read())
    for number in chosen(total):
        for more in ways:
            begin_update(there)
            what = '%s %d of %d %s' % (kind, number, total, more)
            check_update(name, what, command(arguments, op=kind, at=number, **more), u)


def try_killed(_):
    """Commands that are killed, behind each call that alters a file and at random moments."""
    for name, (arguments, there) in UPDATES.items():
        u = Undisturbed(name)
        disturb_update(name, 'change', [{'kill': 1}], u)
        goal = faults.killed + (6 if LIMIT else 200)
        while faults.killed < goal:
            begin_update(there)
            moment = random.uniform(0, u.seconds)
            check_update(name, 'killed after %.4f s' % moment, command_until(arguments, moment), u)


def try_update(_):
    """Commands: the n-th call of each kind fails, alone or with all behind it; then they are killed."""
    for name in UPDATES:
        u = Undisturbed(name)
        for kind in KINDS:
            disturb_update(name, kind, [{}, {'on': 1}], u)
    try_killed(_)


def try_calls(_):
    """System calls that fail, as strace lets them."""
    undisturbed = {}

    def begin(name):
        sources(2)
        shutil.rmtree('before', ignore_errors=True)
        if name not in undisturbed:
            undisturbed[name] = Undisturbed(name)
            shutil.copytree('before', 'before ' + name)
        shutil.copytree('before ' + name, 'before', dirs_exist_ok=True)
        begin_update(UPDATES[name][1])

    commands = {name: [sys.argv[5]] + arguments for name, (arguments, _) in UPDATES.items()}
    for name, what, options in faults.failing_calls(commands, begin):
        begin(name)
        check_update(name, what, faults.run_traced(commands[name], options), undisturbed[name])


class Disk:
    """The folder as a machine holds it: names and files now, and what of them would survive."""

    def __init__(self, which):
        names = os.listdir(FOLDER) if which == 'old' else []
        self.names = {name: name for name in names}  # name -> key of a file
        self.synced = {name: 'old/' + name for name in names}  # key -> its bytes at the last fsync
        self.safe = dict(self.names)  # at the folder's last fsync
        self.later = []  # changes of the folder since
        self.keys = {str(os.stat(FOLDER + '/' + name).st_ino): name for name in names}  # inode -> key
        self.there = which == 'old'  # the folder itself would survive
        self.folder = str(os.stat(FOLDER).st_ino) if self.there else None
        self.acknowledged = 0

    def change(self, apply):
        apply(self.names)
        self.later.append(apply)

    def replay(self, number, line):
        """Takes a line of the log in."""
        verb, _, rest = line.partition(' ')
        if verb == 'mkdir':
            self.folder = rest.partition(' ')[0]
        elif verb == 'create':
            inode, _, path = rest.partition(' ')
            name = os.path.basename(path)
            if self.names.get(name) != self.keys.get(inode, 0):
                self.keys[inode] = key = '%s@%d' % (inode, number)
                self.change(lambda names: names.__setitem__(name, key))
        elif verb == 'rename':
            a, b = (os.path.basename(path) for path in rest.split('\t'))
            key = self.names[a]
            self.change(lambda names: (names.pop(a, None), names.__setitem__(b, key)))
        elif verb == 'unlink':
            self.change(lambda names: names.pop(os.path.basename(rest), None))
        elif verb == 'fsync':
            self.synced[self.keys.get(rest, rest)] = 'log/%d' % number
        elif verb == 'fsync-folder' and rest == self.folder:
            self.safe, self.later = dict(self.names), []
        elif verb == 'fsync-folder':
            self.there = True  # the one around it
        elif verb == 'say':
            self.acknowledged += 'committed' in rest

    def survivors(self):
        """What may be there after a loss of power now: {name: file with its bytes, or None for an empty one}."""
        if not self.there:
            yield None
        names = dict(self.safe)
        yield {name: self.synced.get(key) for name, key in names.items()}
        for apply in self.later:
            alone = dict(self.safe)
            for some in (names, alone):
                apply(some)
                yield {name: self.synced.get(key) for name, key in some.items()}


def known(files):
    """A key of what survives: two that have the same are judged alike."""
    if files is None:
        return None
    return tuple(sorted((name, origin and digest(origin)) for name, origin in files.items()))


def materialise(files):
    start('none')
    if files is None:
        return
    os.mkdir(FOLDER)
    for name, origin in files.items():
        if origin:
            shutil.copy(origin, FOLDER + '/' + name)
        else:
            open(FOLDER + '/' + name, 'wb').close()


def try_power(found):
    for which in STARTS:
        start(which)
        disk = Disk(which)
        shutil.rmtree('log', ignore_errors=True)
        os.mkdir('log')
        run(['run', FOLDER], log='log')
        with open('log/log') as file:
            lines = file.read().splitlines()
        moments = {}  # that differ
        for number, line in enumerate(lines):
            disk.replay(number, line)
            for files in disk.survivors():
                moments.setdefault((disk.acknowledged, known(files)), (line, files))
                faults.tried += not LIMIT
        chosen_moments = random.sample(sorted(moments.items(), key=str), min(LIMIT or len(moments), len(moments)))
        faults.tried += len(chosen_moments) if LIMIT else 0
        for (acknowledged, _), (line, files) in chosen_moments:
            materialise(files)
            judge(which, 'power loss after %s' % line, found[which][0], acknowledged)
        if disk.acknowledged != COMMITS:
            complain(which, 'power', 'the log has %d commits' % disk.acknowledged)


def main():
    random.seed(12)
    run(['run', 'old'])
    faults.report_at_end()
    with open('more', 'w') as out:
        print('one more\nand another', file=out)
    {'faults': try_faults, 'readers': try_readers, 'kills': try_kills, 'power': try_power,
     'update': try_update, 'killed': try_killed,
     'calls': try_calls}[MODE](states() if MODE not in ('update', 'killed', 'calls') else None)
    sys.exit(faults.wrong > 0)


main()
