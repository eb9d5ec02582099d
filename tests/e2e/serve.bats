#!/usr/bin/env bats
# gpuir serve: many requests in flight, answered in their order; windows, deadlines, sockets, clients that go, indexes
# that cannot be read. (What each request is answered is tested by exchange.bats.)

bats_require_minimum_version 1.5.0
load ../support/helpers

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  export root PATH="$build:$PATH" PYTHONPATH=$BATS_FILE_TMPDIR
  export wordnet=$BATS_FILE_TMPDIR/wordnet.gpuir
  gpuir index -q --tsv "$root/tests/data/wordnet.tsv" -o "$wordnet"
  python_module >"$BATS_FILE_TMPDIR/serving.py"
}

setup() {
  cd "$BATS_TEST_TMPDIR" || exit
}

# What the tests share.
python_module() {
  cat <<'EOF'
import fcntl, os, random, re, select, signal, socket, subprocess, threading, time
index = os.environ['wordnet']
words = sorted(set(re.findall(r'[a-z]+', open(os.environ['root'] + '/tests/data/wordnet.tsv').read())))

def start(*options, path=index):
    return subprocess.Popen(['gpuir', 'serve', *options, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)

def wait_for_socket():
    for _ in range(2000):
        try:
            return socket.socket(socket.AF_UNIX).connect('socket')
        except OSError:
            time.sleep(0.01)
    raise AssertionError('there is no socket')

def serve_clock(times):
    """A server for which time goes by so many times as fast."""
    env = dict(os.environ, LD_PRELOAD=os.getcwd() + '/clock.so', CLOCK_TIMES=str(times))
    server = subprocess.Popen(['gpuir', 'serve', '--socket', 'socket', '--threads', '1', index], env=env,
                              stderr=subprocess.PIPE)
    wait_for_socket()
    return server

def client():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect('socket')
    return s

def ask(s):
    s.sendall(b'TOP_10\twolf\n')
    return s.recv(10)

def answers(requests, *options):
    r = subprocess.run(['gpuir', 'serve', *options, index], input=requests, capture_output=True, text=True)
    assert r.returncode == 0 and not r.stderr, r
    return r.stdout.split('\n')[:-1]

def requests(n, seed):
    """Small ones, large ones and wrong ones in any order."""
    r = random.Random(seed)
    out = []
    for _ in range(n):
        k = r.choice((1, 2, 2, 3, 40))
        sign = r.choice(('', '+', 'mixed'))
        command = r.choice(('COUNT', 'TOP_10_COUNT', 'TOP_1000_COUNT', 'TOP_10', 'NONE'))
        signs = [r.choice(('', '+')) if sign == 'mixed' else sign for _ in range(k)]
        out.append(command + '\t' + ' '.join(s + r.choice(words) for s in signs))
    return out

def one_by_one(lines):
    """What a client gets that waits for each answer."""
    p = start('--stdio', '--policy', 'inter')
    got = []
    for line in lines:
        p.stdin.write(line.encode() + b'\n')
        p.stdin.flush()
        got.append(p.stdout.readline().decode().rstrip('\n'))
    p.stdin.close()
    assert p.wait() == 0
    return got
EOF
}

@test "answers come in the order of the requests, however many are in flight" {
  python3 - <<'EOF'
from serving import *
lines = requests(1500, 1)
right = one_by_one(lines)
assert len(set(right)) > 40 and 'UNSUPPORTED' in right
text = '\n'.join(lines) + '\n'
for options in ((), ('--threads', '1'), ('--threads', '5', '--in-flight', '1'), ('--in-flight', '3', '--threads', '4'),
                ('--policy', 'inter', '--threads', '3'), ('--deadline', '1000000')):
    assert answers(text, '--stdio', *options) == right, options
EOF
}

@test "a word without a plus ranks beside one with it, and is not asked for" {
  python3 - <<'EOF'
from serving import *
plain = answers('COUNT\tdog\nCOUNT\tdog wolf\nCOUNT\t+dog +wolf\n', '--stdio')
assert int(plain[1]) > int(plain[0]) > int(plain[2]) > 0, plain
for query in ('+dog wolf', 'wolf +dog', '+dog wolf nosuchword', 'wolf +dog wolf'):
    lines = [c + '\t' + query for c in ('COUNT', 'TOP_10_COUNT', 'TOP_100_COUNT', 'TOP_10')]
    assert answers('\n'.join(lines) + '\n', '--stdio') == [plain[0]] * 3 + ['1'], query
assert answers('TOP_10_COUNT\t+dog +dog wolf\nCOUNT\t+nosuchword dog\nTOP_10_COUNT\t+dog cat -wolf\n', '--stdio') == [
    plain[0], '0', str(int(plain[0]) - int(plain[2]))]
EOF
}

@test "nothing more is read while answers are not taken" {
  python3 - <<'EOF'
from serving import *
p = start('--stdio', '--in-flight', '8')
for f in (p.stdin, p.stdout):
    fcntl.fcntl(f, 1031, 8192)  # F_SETPIPE_SZ: two pages
os.set_blocking(p.stdin.fileno(), False)
line = b'TOP_10\tdog wolf\n'
sent = got = 0
while select.select([], [p.stdin], [], 0.5)[1]:
    try:
        sent += os.write(p.stdin.fileno(), (line * 64)[sent % len(line):])
    except BlockingIOError:
        time.sleep(0.01)
    assert sent < 64 << 20, 'it reads although nobody takes answers'
asked = -(-sent // len(line))
os.set_blocking(p.stdin.fileno(), True)
rest = line[sent % len(line):] if sent % len(line) else b''
writer = threading.Thread(target=lambda: os.write(p.stdin.fileno(), rest))
writer.start()
while got < 2 * asked:
    assert select.select([p.stdout], [], [], 20)[0], (got, asked)
    part = os.read(p.stdout.fileno(), 65536)
    assert part == (b'1\n' * 32769)[got % 2:got % 2 + len(part)]
    got += len(part)
writer.join()
assert got == 2 * asked > 4096
p.stdin.close()
assert p.wait() == 0
EOF
}

@test "a request that is not answered within the deadline says so; the others are right" {
  python3 - <<'EOF'
from serving import *
r = random.Random(2)
lines = ['TOP_1000_COUNT\t' + ' '.join(r.choice(words[:3000]) for _ in range(64)) for _ in range(2000)]
text = '\n'.join(lines) + '\n'
right = answers(text, '--stdio')
for attempt in range(20):  # on a busy machine requests may come no faster than they are answered
    got = answers(text, '--stdio', '--deadline', '1', '--threads', '1', '--in-flight', '2000')
    assert len(got) == len(right)
    assert all(g in ('DEADLINE', x) for g, x in zip(got, right))
    if 'DEADLINE' in got:
        break
assert 'DEADLINE' in got
EOF
}

@test "many clients of one socket each get their answers; those that go leave the others alone" {
  python3 - <<'EOF'
from serving import *
lines = requests(300, 3)
right = one_by_one(lines)
server = start('--socket', 'socket')
while True:
    try:
        socket.socket(socket.AF_UNIX).connect('socket')
        break
    except OSError:
        assert server.poll() is None
        time.sleep(0.01)
wrong = []
def client(number):
    for _ in range(2):
        s = socket.socket(socket.AF_UNIX)
        s.connect('socket')
        text = ('\n'.join(lines) + '\n').encode()
        if number % 4 == 0:  # it goes without taking its answers
            s.sendall(text + b'TOP_10\tha')
            s.close()
            continue
        threading.Thread(target=lambda: (s.sendall(text), s.shutdown(1))).start()
        got = s.makefile().read().split('\n')[:-1]
        if got != right:
            wrong.append((number, got))
threads = [threading.Thread(target=client, args=(i,)) for i in range(80)]  # more than are served at once
for t in threads: t.start()
for t in threads: t.join()
assert not wrong, wrong[0]
idle = socket.socket(socket.AF_UNIX)
idle.connect('socket')  # one that says nothing does not keep the server

def ticks():
    return sum(map(int, open(f'/proc/{server.pid}/stat').read().rsplit(')', 1)[1].split()[11:13]))
time.sleep(0.2)
before = ticks()
time.sleep(1)
assert ticks() == before, 'it uses the processor although nobody asks'
server.send_signal(signal.SIGTERM)
assert server.wait(20) == 143
assert not os.path.exists('socket')
EOF
}

@test "a socket that a killed server left is replaced; one at which a server listens is not" {
  python3 - <<'EOF'
from serving import *
def ask():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect('socket')
    s.sendall(b'COUNT\twolf\n')
    return s.makefile().readline()
def begin():
    server = start('--socket', 'socket')
    while True:
        try:
            ask()
            return server
        except OSError:
            assert server.poll() is None, server.stderr.read()
            time.sleep(0.01)
first = begin()
right = ask()
late = start('--socket', 'socket')
assert late.wait(20) == 1
assert b'socket: ' in late.stderr.read() and ask() == right
first.kill()
first.wait(20)
assert os.path.exists('socket')
second = begin()
assert ask() == right
os.unlink('socket')
third = begin()  # somebody removed the name: it is the third one's, and the second one leaves it alone
second.send_signal(signal.SIGTERM)
assert second.wait(20) == 143
assert ask() == right
third.kill()
third.wait(20)
several = [start('--socket', 'socket') for _ in range(8)]  # at once: one of them takes the name
for _ in range(2000):
    if sum(s.poll() is None for s in several) == 1: break
    time.sleep(0.01)
left = [s for s in several if s.poll() is None]
assert len(left) == 1 and ask() == right
left[0].send_signal(signal.SIGTERM)
assert left[0].wait(20) == 143
assert not os.path.exists('socket')
EOF
  touch taken
  fails 1 "taken: " gpuir serve --socket taken "$wordnet"
  [ -f taken ]
}

@test "an index that cannot be read ends the server, also while its input is open" {
  python3 - <<'EOF'
from serving import *
whole = open(index, 'rb').read()

def fails(data):
    open('damaged', 'wb').write(data)
    r = subprocess.run(['gpuir', 'query', '--exact', '--mode', 'or', 'damaged', 'dog', 'genus'], capture_output=True)
    return r.returncode == 1 and b'damaged: ' in r.stderr
r, n = random.Random(4), 0
for _ in range(400):  # somewhere in a list of these words
    at = r.randrange(4096, len(whole) - 4096)
    if fails(whole[:at] + bytes(255 - b for b in whole[at:at + 2048]) + whole[at + 2048:]):
        n += 1
        break
assert n, 'no damage was found that a query notices'
for many in (1, 500):
    p = start('--stdio', path='damaged')
    try:
        p.stdin.write(b'TOP_10\tdog genus\n' * many)
        p.stdin.flush()
    except BrokenPipeError:
        pass
    assert p.wait(20) == 1
    assert b'damaged: ' in p.stderr.read()
EOF
}

@test "a signal ends it while requests are in flight, as does a client that takes no answers" {
  python3 - <<'EOF'
from serving import *
for number in (signal.SIGINT, signal.SIGTERM):
    p = start('--stdio')
    p.stdin.write(b'COUNT\tdog\n')
    p.stdin.flush()
    assert int(p.stdout.readline()) > 0
    p.stdin.write(b'TOP_10\tdog wolf\n' * 2000)
    p.stdin.flush()
    p.send_signal(number)
    assert p.wait(20) == 128 + number
for options in ((), ('--in-flight', '1')):  # also where nobody reads its answers, and it reads no more for this reason
    p = start('--stdio', *options)
    fcntl.fcntl(p.stdin, fcntl.F_SETFL, os.O_NONBLOCK)
    refused = 0
    while refused < 20:
        try:
            os.write(p.stdin.fileno(), b'COUNT\tdog\n' * 400)
            refused = 0
        except BlockingIOError:
            refused += 1
            time.sleep(0.01)
    p.send_signal(signal.SIGTERM)
    assert p.wait(20) == 143
    assert not p.stderr.read()
p = start('--stdio')
p.stdout.close()
try:
    for _ in range(1000):
        p.stdin.write(b'TOP_10\tdog wolf\n' * 100)
        p.stdin.flush()
except BrokenPipeError:
    pass
assert p.wait(20) == 1
assert b'does not take answers' in p.stderr.read()
EOF
}

@test "where no thread can be started, it ends and says so" {
  cat >one_thread.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *x) {
  static int started;
  int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
  return started++ ? EAGAIN : real(t, a, f, x);
}
END
  cc -std=gnu99 -shared -fPIC -o one_thread.so one_thread.c -ldl || skip "nothing can be preloaded here"
  printf 'COUNT\tdog\nTOP_10\tdog wolf\nTOP_10\tdog wolf\n' >requests
  fails 1 "no thread can be started" timeout -s KILL 20 env LD_PRELOAD="$PWD/one_thread.so" gpuir serve --stdio "$wordnet" <requests
}

@test "where there is no descriptor for a client, the server does not ask for one without end" {
  cat >no_accept.c <<'END'
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>
int accept(int fd, struct sockaddr *address, socklen_t *length) {
  static int calls;
  (void)fd, (void)address, (void)length;
  if (++calls == 1000) _exit(99);
  errno = EMFILE;
  return -1;
}
END
  cc -std=gnu99 -shared -fPIC -o no_accept.so no_accept.c || skip "nothing can be preloaded here"
  python3 - <<'EOF'
from serving import *
server = subprocess.Popen(['env', 'LD_PRELOAD=' + os.getcwd() + '/no_accept.so', 'gpuir', 'serve', '--socket', 'socket',
                           index])
while not os.path.exists('socket'):
    time.sleep(0.01)
client = socket.socket(socket.AF_UNIX)
while client.connect_ex('socket'):  # it is made before it listens
    time.sleep(0.01)
time.sleep(0.5)  # enough for a million calls
server.send_signal(signal.SIGTERM)
try:
    assert server.wait(20) == 143
finally:
    server.kill()
EOF
}

# A preloaded library under which the clock of programs goes N times as fast.
fast_clock() {
  cat >clock.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *t) {
  static int (*real)(clockid_t, struct timespec *);
  static uint64_t times;
  if (!times) times = (uint64_t)atoi(getenv("CLOCK_TIMES"));
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
  const int status = real(id, t);
  if (id != CLOCK_MONOTONIC) return status;
  const uint64_t now = times * ((uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec);
  t->tv_sec = (time_t)(now / 1000000000);
  t->tv_nsec = (long)(now % 1000000000);
  return status;
}
END
  cc -std=gnu99 -shared -fPIC -o clock.so clock.c -ldl
}

@test "the client that is idle for longest makes room for one that waits, and nobody else has to go" {
  fast_clock || skip "nothing can be preloaded here"
  python3 - <<'EOF'
from serving import *
server = serve_clock(20)  # idle clients stay for half a second
try:
    first = [client() for _ in range(128)]  # as many as one user may have
    busy = first[40]
    order = list(range(128))
    random.Random(5).shuffle(order)
    begun = time.monotonic()
    for n, i in enumerate(order):
        assert ask(first[i]) == b'1\n', 'it is not served'
        if n < 4: time.sleep(0.05)  # a client is idle from when its thread notes that it has answered, which may be late
    late = [client() for _ in range(3)]
    for c in late: c.sendall(b'COUNT\twolf\n')
    while select.select(late, [], [], 0)[0] != late:  # it asks all the time, and so it is not idle
        assert ask(busy) == b'1\n'
        assert time.monotonic() - begun < 20
    assert time.monotonic() - begun > 0.5, 'they were not idle for ten seconds'
    closed = [i for i in order if first[i] is not busy and select.select([first[i]], [], [], 0)[0]]
    assert closed == [i for i in order if first[i] is not busy][:3], (closed, order[:5])
    assert all(first[i].recv(10) == b'' for i in closed)
    time.sleep(1.5)  # nobody waits: thirty seconds are not too long
    assert not select.select([first[i] for i in order if i not in closed], [], [], 0)[0]
finally:
    server.kill()
EOF
}

@test "one user's clients leave half of the places to the others" {
  [ "$(id -u)" = 0 ] || skip "not root: there is no other user"
  python3 - <<'EOF'
from serving import *
server = start('--socket', 'socket')
try:
    wait_for_socket()
    os.chmod('socket', 0o666)
    many = [client() for _ in range(128)]  # that are served
    for c in many: assert ask(c) == b'1\n'
    many += [client() for _ in range(64)]  # that wait
    over = client()
    assert over.recv(10) == b'', 'it is not told that it will not be served'
    folder = os.open('.', os.O_PATH)
    child = os.fork()
    if not child:  # to whom nothing but the socket is open
        os.fchdir(folder)
        os.setuid(65534)
        os._exit(ask(client()) != b'1\n')
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, 'another user is kept out'
    many[128].close()  # it leaves while it waits
    many[129].sendall(b'TOP_10\twolf\n')
    assert not select.select([many[129]], [], [], 0.3)[0]
    many[5].close()
    assert many[129].recv(10) == b'1\n', 'the first that waits does not get the place'
finally:
    server.kill()
EOF
}

@test "a client that takes no answers for half a minute is closed; one that takes some is not" {
  fast_clock || skip "nothing can be preloaded here"
  python3 - <<'EOF'
from serving import *
server = serve_clock(20)
try:
    stuck, slow = client(), client()
    def fill(c):
        while select.select([], [c], [], 0.1)[1]:
            try: c.send(b'TOP_10\twolf\n' * 1000)
            except BlockingIOError: time.sleep(0.01)
    for c in (stuck, slow):
        c.setblocking(False)
        fill(c)
    for _ in range(20):  # longer than the other may take
        assert select.select([slow], [], [], 5)[0] and len(slow.recv(4000)) > 1
        fill(slow)
    end = time.monotonic() + 20
    while time.monotonic() < end:  # what was written for it, and then its end
        select.select([stuck], [], [], 1)
        try: part = stuck.recv(1 << 20)
        except BlockingIOError: continue
        except ConnectionError: break
        if not part: break
    else:
        raise AssertionError('it is still served')
    assert len(slow.recv(20000)) > 1
    server.send_signal(signal.SIGTERM)
    assert server.wait(20) == 143
    told = server.stderr.read()
    assert b'1 took no answers for too long' in told, told
finally:
    server.kill()
EOF
}

@test "clients that vanish do not fill the log: one line a minute counts them" {
  fast_clock || skip "nothing can be preloaded here"
  python3 - <<'EOF'
from serving import *
server = serve_clock(60)
def vanish(n):
    for _ in range(n):
        c = client()
        c.sendall(b'TOP_1000\twolf dog\n' * 3000)
        c.close()
try:
    long = client()
    try: long.sendall(b'a' * (2 << 20))
    except OSError: pass
    vanish(50)
    time.sleep(2.5)  # two minutes and a half
    vanish(20)
    time.sleep(1)
    server.send_signal(signal.SIGTERM)
    assert server.wait(20) == 143
    lines = server.stderr.read().decode().splitlines()
    assert 2 <= len(lines) <= 5, lines
    assert all(line.startswith('gpuir: clients: ') for line in lines), lines
    text = ' '.join(lines)
    assert sum(map(int, re.findall(r'(\d+) went before they had their answers', text))) == 70, lines
    assert '1 sent what cannot be read (a line has more than 1,048,576 bytes)' in text, lines
finally:
    server.kill()
EOF
}

@test "it serves with descriptors beyond those that select() can take" {
  cat >no_select.c <<'END'
#include <signal.h>
#include <sys/select.h>
#include <unistd.h>
int pselect(int n, fd_set *r, fd_set *w, fd_set *e, const struct timespec *t, const sigset_t *s) {
  (void)n, (void)r, (void)w, (void)e, (void)t, (void)s;
  _exit(99);
}
int select(int n, fd_set *r, fd_set *w, fd_set *e, struct timeval *t) { return pselect(n, r, w, e, NULL, NULL) + !t; }
END
  cc -std=gnu99 -shared -fPIC -o no_select.so no_select.c || skip "nothing can be preloaded here"
  ulimit -n 1300 || skip "no 1,300 descriptors here"
  python3 - <<'EOF'
from serving import *
for _ in range(1100): os.set_inheritable(os.open('/dev/null', os.O_RDONLY), True)
server = subprocess.Popen(['env', 'LD_PRELOAD=' + os.getcwd() + '/no_select.so', 'gpuir', 'serve', '--socket', 'socket',
                           index], close_fds=False)
try:
    wait_for_socket()
    assert [ask(client()) for _ in range(3)] == [b'1\n'] * 3
    assert server.poll() is None
finally:
    server.kill()
EOF
}

@test "misuse and failure are told apart" {
  fails 2 "--stdio or --socket PATH is missing" gpuir serve "$wordnet"
  fails 2 "not both" gpuir serve --stdio --socket s "$wordnet"
  fails 2 "'lifo' is none of auto|inter" gpuir serve --stdio --policy lifo "$wordnet"
  fails 2 "--threads" gpuir serve --stdio --threads 0 "$wordnet"
  fails 2 "--in-flight" gpuir serve --stdio --in-flight 0 "$wordnet"
  fails 2 "--deadline" gpuir serve --stdio --deadline x "$wordnet"
  fails 1 "no-folder/s: " gpuir serve --socket no-folder/s "$wordnet"
  fails 1 "name too long" gpuir serve --socket "$(printf 'x%.0s' {1..200})" "$wordnet"
  head -c 2000000 /dev/zero | tr '\0' a >long
  fails 1 "a request cannot be read: a line has more than 1,048,576 bytes" gpuir serve --stdio "$wordnet" <long
}
