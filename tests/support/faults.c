/* faults.c - a library to preload: lets system calls of a program fail, ends it after one, and keeps what it made last
 *
 *   cc -shared -fPIC -o faults.so tests/support/faults.c -ldl
 *   FAULTS_OP=fsync FAULTS_AT=2 LD_PRELOAD=./faults.so build/gpuir index ...     the second fsync fails with EIO
 *
 * FAULTS_OP     calls of one kind are counted: open, read, write, truncate, fsync, rename, unlink, stat, lock, mmap,
 *               malloc; `change` stands for all that alter files: open, write, truncate, fsync, rename, unlink
 * FAULTS_AT     the number, from 1, of the call that fails; FAULTS_ON=1: and all behind it
 * FAULTS_ERRNO  the error; EIO, and ENOMEM for malloc
 * FAULTS_KILL   1: the process is killed behind that call, which succeeds
 * FAULTS_COUNT  a file that gets the number of calls
 * FAULTS_LOG    a folder that gets `log`, a line for each of open (that creates), mkdir, fsync, rename, link and
 *               unlink, and for each fsync of a file a copy of it as it was, named by the line's number; `say` and the
 *               text, for what is written to standard output
 *
 * tests/e2e/faults.py drives it. Calls within the C library are not seen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static long calls, at;
static int on, error = EIO, must_kill, ready, log_fd = -1;
static long lines;
static const char *op, *log_folder;
static char log_path[4096];

#define REAL(f) \
  static __typeof__(&f) real; \
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, #f)

/* The calls themselves, uncounted. */
static int open_now(const char *path, int flags, int mode) {
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
static ssize_t write_now(int fd, const void *p, size_t n) { return (ssize_t)syscall(SYS_write, fd, p, n); }

static const char *setting(const char *name) {
  const char *value = getenv(name);
  return value && *value ? value : NULL;
}

__attribute__((constructor)) static void begin(void) {
  char path[4096];
  op = setting("FAULTS_OP");
  if (setting("FAULTS_AT")) at = atol(setting("FAULTS_AT"));
  on = setting("FAULTS_ON") != NULL;
  must_kill = setting("FAULTS_KILL") != NULL;
  if (op && !strcmp(op, "malloc")) error = ENOMEM;
  if (setting("FAULTS_ERRNO")) error = atoi(setting("FAULTS_ERRNO"));
  log_folder = setting("FAULTS_LOG");
  if (log_folder) {
    snprintf(log_path, sizeof log_path, "%s", log_folder);
    log_folder = log_path;
    (void)unsetenv("FAULTS_LOG"); /* programs that it starts would number lines of their own */
    snprintf(path, sizeof path, "%s/log", log_folder);
    log_fd = open_now(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  }
  ready = 1;
}

__attribute__((destructor)) static void end(void) {
  const char *path = setting("FAULTS_COUNT");
  char text[32];
  int fd, n;
  ready = 0;
  if (!path) return;
  fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  n = snprintf(text, sizeof text, "%ld\n", calls);
  if (fd < 0 || write(fd, text, (size_t)n) != n) abort();
  close(fd);
}

/* Counts a call of this kind; 1 if it is the one. */
static int is_it(const char *kind, int change) {
  long i;
  if (!ready || !op || (strcmp(op, kind) != 0 && !(change && !strcmp(op, "change")))) return 0;
  i = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
  return at > 0 && (i == at || (on && i > at));
}

/* Before a call: 1 if it fails, with errno set. */
static int fails(const char *kind, int change, int *kill_after) {
  const int it = is_it(kind, change);
  *kill_after = it && must_kill;
  if (!it || must_kill) return 0;
  errno = error;
  return 1;
}

static void after(int kill_after) {
  if (kill_after) raise(SIGKILL);
}

/* Appends a line to the log; returns its number. */
static long note(const char *format, ...) {
  char line[9000];
  va_list ap;
  int n, saved = errno;
  if (log_fd < 0) return 0;
  va_start(ap, format);
  n = vsnprintf(line, sizeof line, format, ap);
  va_end(ap);
  if (n <= 0 || (size_t)n >= sizeof line || write_now(log_fd, line, (size_t)n) != n) abort();
  errno = saved;
  return lines++;
}

static unsigned long inode_of(int fd) {
  struct stat st;
  return fstat(fd, &st) ? 0 : (unsigned long)st.st_ino;
}

/* Keeps what a file holds at this fsync. */
static void keep(int fd) {
  struct stat st;
  char path[4096], bytes[65536];
  long number;
  off_t done = 0;
  ssize_t n;
  int to, was = ready;
  if (log_fd < 0) return;
  ready = 0;
  if (fstat(fd, &st)) abort();
  number = note("%s %lu\n", S_ISDIR(st.st_mode) ? "fsync-folder" : "fsync", (unsigned long)st.st_ino);
  if (S_ISREG(st.st_mode)) {
    snprintf(path, sizeof path, "%s/%ld", log_folder, number);
    to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    fd = open(path, O_RDONLY | O_CLOEXEC); /* the program's own may be write-only */
    if (to < 0 || fd < 0) abort();
    for (; (n = pread(fd, bytes, sizeof bytes, done)) > 0; done += n)
      if (write(to, bytes, (size_t)n) != n) abort();
    close(fd);
    close(to);
  }
  ready = was;
}

static int opened(int fd, const char *path, int flags, int kill_after) {
  if (fd >= 0 && (flags & O_CREAT) && ready) note("create %lu %s\n", inode_of(fd), path);
  after(kill_after);
  return fd;
}

#define MODE(flags) \
  mode_t mode = 0; \
  if ((flags) & (O_CREAT | __O_TMPFILE)) { \
    va_list ap; \
    va_start(ap, flags); \
    mode = (mode_t)va_arg(ap, int); \
    va_end(ap); \
  }

int open(const char *path, int flags, ...) {
  int killed;
  REAL(open);
  MODE(flags)
  if (fails("open", flags & O_CREAT, &killed)) return -1;
  return opened(real(path, flags, mode), path, flags, killed);
}
int open64(const char *path, int flags, ...) {
  int killed;
  REAL(open64);
  MODE(flags)
  if (fails("open", flags & O_CREAT, &killed)) return -1;
  return opened(real(path, flags, mode), path, flags, killed);
}
int openat(int folder, const char *path, int flags, ...) {
  int killed;
  REAL(openat);
  MODE(flags)
  if (fails("open", flags & O_CREAT, &killed)) return -1;
  return opened(real(folder, path, flags, mode), path, flags, killed);
}
int mkstemp(char *path) {
  int killed;
  REAL(mkstemp);
  if (fails("open", 1, &killed)) return -1;
  return opened(real(path), path, O_CREAT, killed);
}

/* A call of a kind that returns -1 when it fails. */
#define CALL(type, name, parameters, arguments, kind, change, counted) \
  type name parameters { \
    int killed = 0; \
    type result; \
    REAL(name); \
    if ((counted) && fails(kind, change, &killed)) return (type)-1; \
    result = real arguments; \
    after(killed); \
    return result; \
  }
ssize_t write(int fd, const void *p, size_t n) {
  int killed = 0;
  ssize_t result;
  REAL(write);
  if (fd > 2 && fails("write", 1, &killed)) return -1;
  result = real(fd, p, n);
  if (fd == 1 && ready) note("say %.*s", (int)n, (const char *)p);
  after(killed);
  return result;
}
CALL(ssize_t, pwrite, (int fd, const void *p, size_t n, off_t o), (fd, p, n, o), "write", 1, 1)
CALL(ssize_t, pwrite64, (int fd, const void *p, size_t n, off64_t o), (fd, p, n, o), "write", 1, 1)
CALL(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n), "read", 0, fd > 2)
CALL(ssize_t, pread, (int fd, void *p, size_t n, off_t o), (fd, p, n, o), "read", 0, 1)
CALL(ssize_t, pread64, (int fd, void *p, size_t n, off64_t o), (fd, p, n, o), "read", 0, 1)
CALL(int, ftruncate, (int fd, off_t n), (fd, n), "truncate", 1, 1)
CALL(int, ftruncate64, (int fd, off64_t n), (fd, n), "truncate", 1, 1)
CALL(int, fstat, (int fd, struct stat *st), (fd, st), "stat", 0, 1)

int posix_fallocate(int fd, off_t from, off_t n) { /* returns the error instead */
  int killed, result;
  REAL(posix_fallocate);
  if (fails("truncate", 1, &killed)) return errno;
  result = real(fd, from, n);
  after(killed);
  return result;
}

int fsync(int fd) {
  int killed, result;
  REAL(fsync);
  if (fails("fsync", 1, &killed)) return -1;
  result = real(fd);
  if (!result && ready) keep(fd);
  after(killed);
  return result;
}

CALL(int, flock, (int fd, int how), (fd, how), "lock", 0, 1)

/* Of fcntl the locks alone are counted. */
#define FCNTL(name) \
  int name(int fd, int what, ...) { \
    int killed = 0; \
    void *argument; \
    va_list ap; \
    REAL(name); \
    va_start(ap, what); \
    argument = va_arg(ap, void *); \
    va_end(ap); \
    return what == F_OFD_SETLK && fails("lock", 0, &killed) ? -1 : real(fd, what, argument); \
  }
FCNTL(fcntl)
FCNTL(fcntl64)
CALL(int, faccessat, (int fd, const char *path, int how, int flags), (fd, path, how, flags), "stat", 0, 1)

int mkdir(const char *path, mode_t mode) {
  struct stat st;
  int killed, result;
  REAL(mkdir);
  if (fails("open", 1, &killed)) return -1;
  result = real(path, mode);
  if (!result && ready && !stat(path, &st)) note("mkdir %lu %s\n", (unsigned long)st.st_ino, path);
  after(killed);
  return result;
}

int rename(const char *from, const char *to) {
  int killed, result;
  REAL(rename);
  if (fails("rename", 1, &killed)) return -1;
  result = real(from, to);
  if (!result && ready) note("rename %s\t%s\n", from, to);
  after(killed);
  return result;
}

int unlink(const char *path) {
  int killed, result;
  REAL(unlink);
  if (fails("unlink", 1, &killed)) return -1;
  result = real(path);
  if (!result && ready) note("unlink %s\n", path);
  after(killed);
  return result;
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
  int killed, result;
  struct stat st;
  REAL(linkat);
  if (fails("rename", 1, &killed)) return -1;
  result = real(from_folder, from, to_folder, to, flags);
  if (!result && ready && !fstatat(to_folder, to, &st, AT_SYMLINK_NOFOLLOW))
    note("link %lu %s\n", (unsigned long)st.st_ino, to);
  after(killed);
  return result;
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
  int killed, result;
  REAL(renameat);
  if (fails("rename", 1, &killed)) return -1;
  result = real(from_folder, from, to_folder, to);
  if (!result && ready) note("rename %s\t%s\n", from, to);
  after(killed);
  return result;
}

int unlinkat(int folder, const char *path, int flags) {
  int killed, result;
  REAL(unlinkat);
  if (fails("unlink", 1, &killed)) return -1;
  result = real(folder, path, flags);
  if (!result && ready) note("unlink %s\n", path);
  after(killed);
  return result;
}

void *mmap(void *to, size_t n, int protection, int flags, int fd, off_t offset) {
  int killed;
  REAL(mmap);
  if (fd >= 0 && fails("mmap", 0, &killed)) return MAP_FAILED;
  return real(to, n, protection, flags, fd, offset);
}

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

static int malloc_fails(void) {
  int killed;
  return ready && fails("malloc", 0, &killed);
}
void *malloc(size_t n) { return malloc_fails() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return malloc_fails() ? NULL : __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { return malloc_fails() ? NULL : __libc_realloc(p, n); }
