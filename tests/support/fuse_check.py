#!/usr/bin/env python3
"""Checks of a mounted index that the shell has no tool for.

  fuse_check.py errno PATH...            what opening and reading each PATH comes to: OK or an error's name
  fuse_check.py write-errno FOLDER FILE  that every way of writing is refused with EROFS
  fuse_check.py same PATH FILE           read, pread, mmap, sendfile and copies of PATH all give FILE's bytes
  fuse_check.py readers N STOP OLD NEW PATH...
                                         N processes read each PATH again and again until the file STOP exists; each
                                         read must give what OLD/ or NEW/ holds under the PATH's name, none may fail
  fuse_check.py queries N FIRST FOLDER WORDS
                                         look up and read N different queries made of the WORDS file's lines
  fuse_check.py interrupt WARM PATH...   a signal in the middle of the look-up of PATH, which is as slow as WARM's,
                                         must end it with EINTR, and soon; the next PATH is for when it came too late
  fuse_check.py json FILE...             each is valid UTF-8 and a JSON array of hits; prints names as ASCII
  fuse_check.py same-names COMMAND MOUNT both files of JSON, of the command and of the mount, have the same names
  fuse_check.py harmless FILE...         nothing in them acts on a terminal: UTF-8, no controls but tabs and line ends
  fuse_check.py acl PATH USER            lets a user, by number, read PATH by an access control list
  fuse_check.py swap SECONDS A B         exchanges two names as fast as it can
  fuse_check.py look-for USER TEXT SECONDS FOLDER N
                                         reads FOLDER/0 to FOLDER/N-1 as that user, by number, for so long; TEXT must
                                         never be there
  fuse_check.py ask STOP FOLDER FIRST QUERY
                                         looks a query up for FIRST and more documents until STOP exists; only EIO may
                                         come of it
  fuse_check.py disturb STOP FOLDER      looks up different queries until STOP exists; only EIO may come of it
"""

import ctypes
import errno
import itertools
import json
import mmap
import multiprocessing
import os
import shutil
import signal
import struct
import sys
import tempfile
import time
import unicodedata


def name_of(error):
    return errno.errorcode.get(error.errno, str(error.errno))


def read_all(path):
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        data = b""
        while True:
            block = file.read(65536)
            if not block:
                return data, size
            data += block


def do_errno(*paths):
    for path in paths:
        try:
            if os.path.isdir(path):
                os.listdir(path)
            else:
                read_all(path)
            print("OK")
        except OSError as error:
            print(name_of(error))


def do_write_errno(folder, file):
    root = os.path.dirname(folder)
    attempts = {
        "open for writing": lambda: os.open(file, os.O_WRONLY),
        "open for both": lambda: os.open(file, os.O_RDWR),
        "append": lambda: os.open(file, os.O_WRONLY | os.O_APPEND),
        "truncate": lambda: os.truncate(file, 0),
        "open and truncate": lambda: os.open(file, os.O_RDWR | os.O_TRUNC),
        "create": lambda: os.open(root + "/new", os.O_CREAT | os.O_WRONLY),
        "chmod": lambda: os.chmod(file, 0o600),
        "utime": lambda: os.utime(file),
        "unlink": lambda: os.unlink(file),
        "rename": lambda: os.rename(file, root + "/new"),
        "mkdir": lambda: os.mkdir(root + "/new"),
        "rmdir": lambda: os.rmdir(folder),
        "symlink": lambda: os.symlink("x", root + "/new"),
        "link": lambda: os.link(file, root + "/new"),
        "mkfifo": lambda: os.mkfifo(root + "/new"),
        "setxattr": lambda: os.setxattr(file, "user.x", b"y"),
    }
    for what, attempt in attempts.items():
        try:
            attempt()
        except OSError as error:
            if error.errno != errno.EROFS:
                sys.exit(f"{what}: {name_of(error)}")
        else:
            sys.exit(f"{what}: succeeded")


def do_same(path, file):
    with open(file, "rb") as f:
        want = f.read()
    got, size = read_all(path)
    assert got == want, "read"
    assert size == len(want) == os.stat(path).st_size, "st_size"
    fd = os.open(path, os.O_RDONLY)
    for offset in {0, 1, len(want) // 2, max(len(want) - 1, 0), len(want), len(want) + 5000}:
        assert os.pread(fd, 100, offset) == want[offset : offset + 100], f"pread at {offset}"
    if want:
        with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as map_:
            assert map_[:] == want, "mmap"
            os.close(fd)
            assert map_[:] == want, "mmap after close"
        fd = os.open(path, os.O_RDONLY)
    with tempfile.TemporaryFile() as out:
        sent = 0
        while sent < len(want):
            n = os.sendfile(out.fileno(), fd, sent, len(want) - sent)
            assert n > 0, "sendfile ended early"
            sent += n
        assert os.sendfile(out.fileno(), fd, sent, 1) == 0, "sendfile after the end"
        out.seek(0)
        assert out.read() == want, "sendfile"
    os.close(fd)
    with tempfile.TemporaryDirectory() as folder:
        for copy in (shutil.copy, shutil.copyfile, shutil.copy2):
            copied = copy(path, os.path.join(folder, copy.__name__))
            with open(copied, "rb") as f:
                assert f.read() == want, copy.__name__


def read_until(stop, allowed, failures):
    reads = 0
    while not os.path.exists(stop):
        for path, contents in allowed.items():
            try:
                data, size = read_all(path)
                if data not in contents:
                    failures.put(f"{path}: neither the old nor the new answer ({len(data)} bytes)")
                    return
                if size != len(data):
                    failures.put(f"{path}: st_size {size}, but {len(data)} bytes")
                    return
            except OSError as error:
                failures.put(f"{path}: {name_of(error)} after {reads} reads")
                return
            reads += 1
    failures.put(reads)


def do_readers(n, stop, old, new, *paths):
    allowed = {}
    for path in paths:
        allowed[path] = []
        for folder in (old, new):
            with open(os.path.join(folder, os.path.basename(path)), "rb") as file:
                allowed[path].append(file.read())
    answers = multiprocessing.Queue()
    readers = [multiprocessing.Process(target=read_until, args=(stop, allowed, answers)) for _ in range(int(n))]
    for reader in readers:
        reader.start()
    answers = [answers.get(timeout=120) for _ in readers]
    for reader in readers:
        reader.join()
    failures = [answer for answer in answers if not isinstance(answer, int)]
    if failures:
        sys.exit("\n".join(failures))
    print(f"{sum(answers)} reads")


def do_queries(n, first, folder, words):
    with open(words, encoding="ascii") as file:
        words = file.read().split()
    pairs = itertools.combinations(words, 2)
    for a, b in itertools.islice(pairs, int(first), int(first) + int(n)):
        data, size = read_all(f"{folder}/{a}+{b}")
        assert len(data) == size


def do_interrupt(warm, *paths):
    libc = ctypes.CDLL(None, use_errno=True)
    start = time.monotonic()
    read_all(warm)
    whole = time.monotonic() - start
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.siginterrupt(signal.SIGALRM, True)
    for path in paths:
        signal.setitimer(signal.ITIMER_REAL, whole / 10)
        start = time.monotonic()
        fd = libc.open(path.encode(), os.O_RDONLY)
        error = ctypes.get_errno()
        taken = time.monotonic() - start
        signal.setitimer(signal.ITIMER_REAL, 0)
        if fd < 0:
            print(errno.errorcode[error], f"after {taken:.3f} s of {whole:.3f} s")
            sys.exit(error != errno.EINTR or taken > whole * 0.9)
        os.close(fd)
        print(f"not interrupted in {taken:.3f} s, {whole:.3f} s before")
    sys.exit(1)


def do_json(*files):
    for path in files:
        with open(path, "rb") as file:
            hits = json.loads(file.read().decode("utf-8", "strict"))
        assert isinstance(hits, list)
        for rank, hit in enumerate(hits, 1):
            assert hit["rank"] == rank and isinstance(hit["docid"], int) and hit["score"] > 0
            print(ascii(hit["name"]))


def do_same_names(command, mount):
    with open(command, encoding="utf-8") as file:
        of_command = [hit["name"] for hit in json.load(file)["hits"]]
    with open(mount, encoding="utf-8") as file:
        of_mount = [hit["name"] for hit in json.load(file)]
    assert of_command == of_mount and of_mount, (of_command, of_mount)


def do_harmless(*files):
    turns = set("\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    for path in files:
        with open(path, "rb") as file:
            text = file.read().decode("utf-8", "strict")
        for c in text:
            if c not in "\n\t" and (unicodedata.category(c) == "Cc" or c in turns):
                sys.exit(f"{path}: {ascii(c)} in {ascii(text)}")


def do_acl(path, user):
    # linux/posix_acl_xattr.h: version 2, then tag, permissions and id of owner, user, group, mask and others
    entries = [(1, 6, -1), (2, 4, int(user)), (4, 0, -1), (16, 4, -1), (32, 0, -1)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    os.setxattr(path, "system.posix_acl_access", acl)


def do_swap(seconds, a, b):
    libc = ctypes.CDLL(None, use_errno=True)
    a, b, swaps, end = a.encode(), b.encode(), 0, time.monotonic() + float(seconds)
    while time.monotonic() < end:
        for _ in range(100):
            if libc.renameat2(-100, a, -100, b, 2) != 0:  # AT_FDCWD, RENAME_EXCHANGE
                sys.exit(f"renameat2: {os.strerror(ctypes.get_errno())}")
        swaps += 100
    print(f"{swaps} swaps")


def do_look_for(user, text, seconds, folder, n):
    os.setgroups([])
    os.setgid(int(user))
    os.setuid(int(user))
    text, n, reads, refused, end = text.encode(), int(n), 0, 0, time.monotonic() + float(seconds)
    while time.monotonic() < end or reads <= n:
        for i in range(n):
            try:
                data, _ = read_all(f"{folder}/{i}")
                if text in data:
                    sys.exit(f"{folder}/{i} has it after {reads} reads")
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.ESTALE, errno.ENODATA):
                    sys.exit(f"{folder}/{i}: {name_of(error)}")
                refused += 1
            reads += 1
    print(f"{reads} reads, {refused} refused")


def do_ask(stop, folder, first, query):
    for k in itertools.count(int(first)):
        if os.path.exists(stop):
            break
        try:
            read_all(f"{folder}/@k={k}/{query}")
        except OSError as error:
            if error.errno not in (errno.EIO, errno.ESTALE):
                sys.exit(f"{k}: {name_of(error)}")


def do_disturb(stop, folder):
    for i in itertools.count():
        if i and os.path.exists(stop):
            break
        for name in (f"the+x{i}", f"of+a+y{i}.json", f"water+night+z{i}.tsv"):
            try:
                read_all(f"{folder}/{name}")
            except OSError as error:
                if error.errno not in (errno.EIO, errno.ESTALE):
                    sys.exit(f"{name}: {name_of(error)}")


if __name__ == "__main__":
    if len(sys.argv) < 2 or "do_" + sys.argv[1].replace("-", "_") not in globals():
        sys.exit(__doc__)
    globals()["do_" + sys.argv[1].replace("-", "_")](*sys.argv[2:])
