
/* ========
 * [16-base]  status, allocator, buffers, time, files
 *
 * Uses      nothing but POSIX and xxHash.
 * Start at  gpuir__fail (every error is made there), gpuir__buf, gpuir__spool.
 * Tests     tests/unit/16_base.c
 * ======*/

/* Lists f(0) to f(255), for tables. */
#define GPUIR__4(f, i) f(i), f((i) + 1), f((i) + 2), f((i) + 3)
#define GPUIR__16(f, i) GPUIR__4(f, i), GPUIR__4(f, (i) + 4), GPUIR__4(f, (i) + 8), GPUIR__4(f, (i) + 12)
#define GPUIR__64(f, i) GPUIR__16(f, i), GPUIR__16(f, (i) + 16), GPUIR__16(f, (i) + 32), GPUIR__16(f, (i) + 48)
#define GPUIR__256(f) GPUIR__64(f, 0), GPUIR__64(f, 64), GPUIR__64(f, 128), GPUIR__64(f, 192)

#define GPUIR__STR2(x) #x
#define GPUIR__STR(x) GPUIR__STR2(x)

/* A number that threads share: where uint64_t is aligned to 4 bytes, atomic instructions want 8. */
typedef uint64_t gpuir__atomic64 __attribute__((aligned(8)));

GPUIR_API unsigned gpuir_version_number(void) { return GPUIR_VERSION_NUMBER; }

#define GPUIR__VERSION \
  GPUIR__STR(GPUIR_VERSION_MAJOR) "." GPUIR__STR(GPUIR_VERSION_MINOR) "." GPUIR__STR(GPUIR_VERSION_PATCH)
GPUIR_API const char *gpuir_version(void) { return GPUIR__VERSION; }

/* What the message of UNSUPPORTED adds: the macros that left something out of this build. */
#ifdef GPUIR_NO_LAB
#define GPUIR__SMALLER_LAB " GPUIR_NO_LAB"
#else
#define GPUIR__SMALLER_LAB ""
#endif
#ifdef GPUIR_NO_NEAR
#define GPUIR__SMALLER_NEAR " GPUIR_NO_NEAR"
#else
#define GPUIR__SMALLER_NEAR ""
#endif
#ifdef GPUIR_NO_TEXT
#define GPUIR__SMALLER_TEXT " GPUIR_NO_TEXT"
#else
#define GPUIR__SMALLER_TEXT ""
#endif
#ifdef GPUIR_NO_RANK
#define GPUIR__SMALLER_RANK " GPUIR_NO_RANK"
#else
#define GPUIR__SMALLER_RANK ""
#endif
#ifdef GPUIR_NO_FOLD
#define GPUIR__SMALLER_FOLD " GPUIR_NO_FOLD"
#else
#define GPUIR__SMALLER_FOLD ""
#endif
#ifdef GPUIR_NO_STORE
#define GPUIR__SMALLER_STORE " GPUIR_NO_STORE"
#else
#define GPUIR__SMALLER_STORE ""
#endif
#if defined(GPUIR_NO_LAB) || defined(GPUIR_NO_NEAR) || defined(GPUIR_NO_TEXT) || defined(GPUIR_NO_RANK) || \
    defined(GPUIR_NO_FOLD) || defined(GPUIR_NO_STORE)
#define GPUIR__SMALLER \
  ", made smaller by" GPUIR__SMALLER_LAB GPUIR__SMALLER_NEAR GPUIR__SMALLER_TEXT GPUIR__SMALLER_RANK \
      GPUIR__SMALLER_FOLD GPUIR__SMALLER_STORE
#else
#define GPUIR__SMALLER ""
#endif

GPUIR__COLD GPUIR_API const char *gpuir_strerror(int status) {
  switch (status) {
  case GPUIR_OK: return "no error";
  case GPUIR_E_ARGUMENT: return "invalid argument";
  case GPUIR_E_NOMEM: return "out of memory";
  case GPUIR_E_IO: return "input/output error";
  case GPUIR_E_FORMAT: return "not a gpuir index, or a damaged one";
  case GPUIR_E_VERSION: return "index of another format version";
  case GPUIR_E_CHECKSUM: return "checksum mismatch";
  case GPUIR_E_RANGE: return "score out of range";
  case GPUIR_E_QUERY: return "malformed query, or one without a positive term";
  case GPUIR_E_TERMS: return "too many distinct terms in the query";
  case GPUIR_E_DEADLINE: return "deadline exceeded";
  case GPUIR_E_CANCELLED: return "cancelled";
  case GPUIR_E_UNSUPPORTED: return "not supported by this build" GPUIR__SMALLER;
  case GPUIR_E_LIMIT: return "limit of the index format exceeded";
  case GPUIR_E_BUSY: return "busy: another writer, or too much at once";
  case GPUIR_E_NOT_FOUND: return "not found";
  case GPUIR_E_BACKEND: return "backend failure";
  case GPUIR_E_WHERE: return "malformed where";
  default: return "unknown status";
  }
}

static int gpuir__fail_with(gpuir_error *err, int code, uint64_t offset, const char *format, va_list arguments) {
  if (err) {
    err->code = code;
    err->offset = offset;
    (void)vsnprintf(err->msg, sizeof err->msg, format, arguments);
  }
  return code;
}

/* Fills *err, when there is one, and returns code, so that callers can `return gpuir__fail(...)`. */
GPUIR__PRINTF(4, 5)
GPUIR__COLD static int gpuir__fail(gpuir_error *err, int code, uint64_t offset, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  code = gpuir__fail_with(err, code, offset, format, ap);
  va_end(ap);
  return code;
}

/* Fails with GPUIR_E_ARGUMENT. */
GPUIR__PRINTF(2, 3)
GPUIR__COLD static int gpuir__refuse(gpuir_error *err, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  (void)gpuir__fail_with(err, GPUIR_E_ARGUMENT, 0, format, ap);
  va_end(ap);
  return GPUIR_E_ARGUMENT;
}

GPUIR__NOINLINE int gpuir__fail_nomem(gpuir_error *err) { return gpuir__fail(err, GPUIR_E_NOMEM, 0, "out of memory"); }

/* Tells the static analyzer, which does not look into variadic functions, what these return. */
#if defined(__clang_analyzer__)
#define gpuir__fail(err, code, ...) (gpuir__fail((err), (code), __VA_ARGS__), (code))
#define gpuir__refuse(...) (gpuir__refuse(__VA_ARGS__), GPUIR_E_ARGUMENT)
#endif

/* Returns the end of a path, so that a message names the file within its 160 bytes. */
static const char *gpuir__tail(const char *path) {
  size_t n = strlen(path);
  return n > 80 ? path + (n - 80) : path;
}

GPUIR__COLD static int gpuir__fail_errno(gpuir_error *err, const char *path, const char *what) {
  int e = errno;
  char reason[64];
  reason[0] = 0;
#if defined(__GLIBC__) && defined(_GNU_SOURCE)
  (void)snprintf(reason, sizeof reason, "%s", strerror_r(e, reason, sizeof reason));
#else
  if (strerror_r(e, reason, sizeof reason)) (void)snprintf(reason, sizeof reason, "errno %d", e);
#endif
  return gpuir__fail(err, e == ENOMEM ? GPUIR_E_NOMEM : GPUIR_E_IO, 0, "%s: %s: %s", gpuir__tail(path), what, reason);
}

static void *gpuir__default_resize(void *user, void *ptr, size_t old_size, size_t new_size) {
  (void)user;
  (void)old_size;
  if (new_size) return realloc(ptr, new_size);
  free(ptr);
  return NULL;
}

static gpuir_allocator gpuir__allocator(const gpuir_allocator *given) {
  gpuir_allocator a;
  a.resize = given && given->resize ? given->resize : gpuir__default_resize;
  a.user = given && given->resize ? given->user : NULL;
  return a;
}

/* Allocates uninitialised memory; of n = 0 one byte, so that NULL always means failure. */
static void *gpuir__alloc(const gpuir_allocator *a, size_t n) { return a->resize(a->user, NULL, 0, n ? n : 1); }

GPUIR__NOINLINE void *gpuir__alloc_zero(const gpuir_allocator *a, size_t n) {
  void *p = gpuir__alloc(a, n);
  if (p) memset(p, 0, n);
  return p;
}

/* Frees what gpuir__alloc(a, n) returned. */
GPUIR__NOINLINE void gpuir__free(const gpuir_allocator *a, void *p, size_t n) {
  if (p) (void)a->resize(a->user, p, n ? n : 1, 0);
}

/* Returns a copy of x[0..n) with y[0..m) behind it and a NUL, or NULL; *size becomes its memory. */
static char *gpuir__concat(const gpuir_allocator *a, const char *x, size_t n, const char *y, size_t m, size_t *size) {
  char *p = (char *)gpuir__alloc(a, n + m + 1);
  *size = n + m + 1;
  if (!p) return NULL;
  memcpy(p, x, n);
  memcpy(p + n, y, m);
  p[n + m] = 0;
  return p;
}

/* Returns the XXH3-64 of n bytes. */
GPUIR__NOINLINE uint64_t gpuir__hash(const void *bytes, size_t n, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, n, seed);
}

/* A growable byte array. data may move on every growth. */
typedef struct gpuir__buf {
  uint8_t *data;
  size_t len, cap;
} gpuir__buf;

/* Makes room for n more bytes and returns where they go, or NULL. Does not change len. */
static uint8_t *gpuir__buf_room(const gpuir_allocator *a, gpuir__buf *buf, size_t n) {
  if (GPUIR__UNLIKELY(n > buf->cap - buf->len)) {
    size_t want = buf->cap + buf->cap / 2 + 64;
    void *p;
    if (n > SIZE_MAX / 2 - buf->len) return NULL;
    if (want < buf->len + n) want = buf->len + n;
    p = a->resize(a->user, buf->data, buf->cap, want);
    if (!p) return NULL;
    buf->data = (uint8_t *)p;
    buf->cap = want;
  }
  return buf->data + buf->len;
}

/* Appends n bytes; 0, or GPUIR_E_NOMEM. */
static int gpuir__buf_put(const gpuir_allocator *a, gpuir__buf *buf, const void *bytes, size_t n) {
  uint8_t *to = gpuir__buf_room(a, buf, n);
  if (!to) return GPUIR_E_NOMEM;
  if (n) memcpy(to, bytes, n);
  buf->len += n;
  return GPUIR_OK;
}

GPUIR__NOINLINE void gpuir__buf_free(const gpuir_allocator *a, gpuir__buf *buf) {
  if (buf->data) (void)a->resize(a->user, buf->data, buf->cap, 0);
  buf->data = NULL;
  buf->len = buf->cap = 0;
}

GPUIR_HD uint32_t gpuir__min32(uint32_t a, uint32_t b) { return a < b ? a : b; }
GPUIR_HD uint32_t gpuir__max32(uint32_t a, uint32_t b) { return a > b ? a : b; }
GPUIR_HD uint64_t gpuir__min64(uint64_t a, uint64_t b) { return a < b ? a : b; }
GPUIR_HD uint64_t gpuir__max64(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Returns monotonic time in nanoseconds. */
GPUIR__NOINLINE uint64_t gpuir__now(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#define gpuir__peek(object) __atomic_load_n((object), __ATOMIC_RELAXED)
#define gpuir__poke(object, value) __atomic_store_n((object), (value), __ATOMIC_RELAXED)
#define gpuir__seq_load(object) __atomic_load_n((object), __ATOMIC_SEQ_CST)
#define gpuir__seq_add(object, n) __atomic_fetch_add((object), (n), __ATOMIC_SEQ_CST)

static void gpuir__lock(pthread_mutex_t *mutex) { (void)pthread_mutex_lock(mutex); }
static void gpuir__unlock(pthread_mutex_t *mutex) { (void)pthread_mutex_unlock(mutex); }

/* Writes or reads exactly n bytes at `offset`; 0, or -1 with errno: ENOSPC where nothing is written any more, EIO at
 * the end of a file that is read. */
static int gpuir__transfer_all(int fd, uint8_t *p, size_t n, uint64_t offset, int writing) {
  while (n) {
    const size_t some = n < 0x40000000u ? n : 0x40000000u;
    const ssize_t done = writing ? pwrite(fd, p, some, (off_t)offset) : pread(fd, p, some, (off_t)offset);
    if (done < 0 && errno == EINTR) continue;
    if (done == 0) errno = writing ? ENOSPC : EIO;
    if (done <= 0) return -1;
    p += done;
    n -= (size_t)done;
    offset += (uint64_t)done;
  }
  return 0;
}

static int gpuir__pwrite_all(int fd, const void *bytes, size_t n, uint64_t offset) {
  return gpuir__transfer_all(fd, (uint8_t *)(uintptr_t)bytes, n, offset, 1);
}

static int gpuir__pread_all(int fd, void *bytes, size_t n, uint64_t offset) {
  return gpuir__transfer_all(fd, (uint8_t *)bytes, n, offset, 0);
}

/* Allocates a file's first n bytes, zeros where it has none: writing to a mapped hole of a full disk would raise
 * SIGBUS. 0 or -1 with errno. */
static int gpuir__allocate(int fd, uint64_t n) {
  do {
    errno = posix_fallocate(fd, 0, (off_t)n);
  } while (errno == EINTR);
  return errno ? -1 : 0;
}

#define GPUIR__TRIES 8u /* at a name that others keep taking */

/* Opens `name` as a new, empty file; returns its descriptor, or -1 with errno. O_EXCL follows no link and opens no
 * file that somebody else made; what a killed build left under the name is removed. The owner is not compared: some
 * file systems (vfat, NFS with a squashed root) show another one than the process that made the file. */
static int gpuir__create_file(const char *name, mode_t mode) {
  unsigned tries;
  for (tries = 0; tries < GPUIR__TRIES; tries++) {
    const int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd >= 0 || errno != EEXIST) return fd;
    if (unlink(name) && errno != ENOENT) return -1;
  }
  errno = EEXIST;
  return -1;
}

/* Which file a name stands for, whatever it is called. */
typedef struct gpuir__identity {
  uint64_t dev, ino; /* both 0: none */
} gpuir__identity;

static gpuir__identity gpuir__identity_of(const struct stat *st) {
  gpuir__identity id;
  id.dev = (uint64_t)st->st_dev;
  id.ino = (uint64_t)st->st_ino;
  return id;
}

static int gpuir__identity_same(gpuir__identity a, gpuir__identity b) { return a.dev == b.dev && a.ino == b.ino; }

/* Returns 1 if `name` names the file that is open as fd, 0 if not, -1 with errno. */
static int gpuir__is_file(int fd, const char *name) {
  struct stat mine, named;
  if (fstat(fd, &mine)) return -1;
  if (lstat(name, &named)) return errno == ENOENT ? 0 : -1;
  return gpuir__identity_same(gpuir__identity_of(&mine), gpuir__identity_of(&named));
}

/* Gives the open file `name` the mode of another one, and its owner and group where the system allows it. Where the
 * group does not go with the file, the group gets what all users get. */
static int gpuir__take_mode(int fd, const struct stat *old, const char *name, gpuir_error *err) {
  mode_t mode = old->st_mode & 0777;
  struct stat now;
  if (fchown(fd, old->st_uid, old->st_gid) && fchown(fd, (uid_t)-1, old->st_gid)) errno = 0;
  if (fstat(fd, &now)) return gpuir__fail_errno(err, name, "cannot stat");
  if (now.st_gid != old->st_gid) mode = (mode & 0707) | (mode & 07) << 3;
  return fchmod(fd, mode) ? gpuir__fail_errno(err, name, "cannot change the mode") : GPUIR_OK;
}

/* Makes the names in a folder survive a loss of power; 0, or -1 with errno. A folder that may not be read, and one on a
 * file system that cannot sync folders, is left to the system. */
static int gpuir__sync_folder(const char *folder) {
  const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int failed;
  if (fd < 0) return errno == EACCES ? 0 : -1;
  failed = fsync(fd) && errno != EINVAL ? errno : 0;
  (void)close(fd);
  errno = failed;
  return failed ? -1 : 0;
}

/* A temporary file that is written from front to back through a buffer. There is none as long as the buffer, which
 * grows to its size, has room for all. It is unlinked as soon as it is open, so that nothing is left of it when the
 * process ends in whatever way. */
typedef struct gpuir__spool {
  int fd; /* -1: no file yet */
  uint64_t len; /* bytes given to gpuir__spool_put, buffered ones included */
  uint8_t *buf;
  size_t fill, room, cap; /* bytes of buf that are taken, there, and there at most */
  const char *path; /* for the file's name and messages, the caller's; NULL: closed */
  unsigned number;
  gpuir_allocator a;
} gpuir__spool;

/* Opens a spool whose file, if it gets one, is PATH.N, where N is `number`; `path` must outlive the spool. `cap` is its
 * buffer's size. */
static void gpuir__spool_open(const gpuir_allocator *a, gpuir__spool *spool, const char *path, unsigned number,
    size_t cap) {
  memset(spool, 0, sizeof *spool);
  spool->fd = -1;
  spool->cap = cap;
  spool->path = path;
  spool->number = number;
  spool->a = *a;
}

/* Makes the spool's file. 0, NOMEM, IO. */
static int gpuir__spool_file(gpuir__spool *spool, gpuir_error *err) {
  const size_t n = strlen(spool->path) + 16;
  char *name = (char *)gpuir__alloc(&spool->a, n);
  int status = GPUIR_OK;
  if (!name) return gpuir__fail_nomem(err);
  (void)snprintf(name, n, "%s.%u", spool->path, spool->number);
  spool->fd = gpuir__create_file(name, 0600);
  if (spool->fd < 0) status = gpuir__fail_errno(err, name, "cannot create temporary file");
  else (void)unlink(name);
  gpuir__free(&spool->a, name, n);
  return status;
}

/* Writes what the buffer has to the file, if there is one. */
static int gpuir__spool_flush(gpuir__spool *spool, gpuir_error *err) {
  if (spool->fd < 0) return GPUIR_OK;
  if (gpuir__pwrite_all(spool->fd, spool->buf, spool->fill, spool->len - spool->fill))
    return gpuir__fail_errno(err, spool->path, "cannot write temporary file");
  spool->fill = 0;
  return GPUIR_OK;
}

/* Makes room for n more bytes in the buffer, as far as it may grow. 0 or NOMEM. */
static int gpuir__spool_grow(gpuir__spool *spool, size_t n) {
  size_t room = 2 * spool->room + 256;
  void *p;
  if (n <= spool->room - spool->fill || spool->room == spool->cap) return GPUIR_OK;
  if (n > spool->cap - spool->fill || room > spool->cap) room = spool->cap;
  if (room < spool->fill + n && n <= spool->cap - spool->fill) room = spool->fill + n;
  p = spool->a.resize(spool->a.user, spool->buf, spool->room, room);
  if (!p) return GPUIR_E_NOMEM;
  spool->buf = (uint8_t *)p;
  spool->room = room;
  return GPUIR_OK;
}

static int gpuir__spool_put(gpuir__spool *spool, const void *bytes, size_t n, gpuir_error *err) {
  if (GPUIR__UNLIKELY(n > spool->room - spool->fill) && gpuir__spool_grow(spool, n)) return gpuir__fail_nomem(err);
  if (GPUIR__UNLIKELY(n > spool->cap - spool->fill)) {
    int status = spool->fd < 0 ? gpuir__spool_file(spool, err) : GPUIR_OK;
    if (!status) status = gpuir__spool_flush(spool, err);
    if (status) return status;
    if (n >= spool->cap) {
      if (gpuir__pwrite_all(spool->fd, bytes, n, spool->len))
        return gpuir__fail_errno(err, spool->path, "cannot write temporary file");
      spool->len += n;
      return GPUIR_OK;
    }
  }
  if (n) memcpy(spool->buf + spool->fill, bytes, n);
  spool->fill += n;
  spool->len += n;
  return GPUIR_OK;
}

/* Reads n bytes at `offset`. */
static int gpuir__spool_get(const gpuir__spool *spool, void *bytes, size_t n, uint64_t offset, gpuir_error *err) {
  const uint64_t flushed = spool->len - spool->fill;
  const size_t filed = offset < flushed ? (size_t)gpuir__min64(n, flushed - offset) : 0;
  if (n > spool->len || offset > spool->len - n) {
    errno = EIO;
    return gpuir__fail_errno(err, spool->path, "cannot read temporary file");
  }
  if (filed && gpuir__pread_all(spool->fd, bytes, filed, offset))
    return gpuir__fail_errno(err, spool->path, "cannot read temporary file");
  if (n > filed) memcpy((uint8_t *)bytes + filed, spool->buf + (offset + filed - flushed), n - filed);
  return GPUIR_OK;
}

/* Writes the buffer to the file, if there is one, and then does without it: nothing will be put any more. */
static int gpuir__spool_end(gpuir__spool *spool, gpuir_error *err) {
  int status = gpuir__spool_flush(spool, err);
  if (status || spool->fd < 0) return status;
  gpuir__free(&spool->a, spool->buf, spool->room);
  spool->buf = NULL;
  spool->room = 0;
  return GPUIR_OK;
}

static void gpuir__spool_close(gpuir__spool *spool) {
  if (spool->fd >= 0) (void)close(spool->fd);
  if (spool->buf) gpuir__free(&spool->a, spool->buf, spool->room);
  spool->fd = -1;
  spool->buf = NULL;
  spool->path = NULL;
}

/* Says whether `bytes` stand at `offset`. */
static int gpuir__spool_has(const gpuir__spool *spool, const void *bytes, size_t n, uint64_t offset, int *has,
    gpuir_error *err) {
  const uint8_t *p = (const uint8_t *)bytes;
  uint8_t chunk[256];
  *has = 1;
  while (n && *has) {
    size_t m = (size_t)gpuir__min64(n, sizeof chunk);
    int status = gpuir__spool_get(spool, chunk, m, offset, err);
    if (status) return status;
    *has = !memcmp(chunk, p, m);
    p += m;
    n -= m;
    offset += m;
  }
  return GPUIR_OK;
}

/* Scratch memory whose contents growing may lose. Beyond `most` bytes it is a mapped, unlinked
 * temporary file, which the kernel can write out, rather than anonymous memory. */
typedef struct gpuir__area {
  uint8_t *data;
  size_t cap;
  int mapped;
} gpuir__area;

GPUIR__NOINLINE void gpuir__area_free(const gpuir_allocator *a, gpuir__area *area) {
  if (area->mapped) (void)munmap(area->data, area->cap);
  else gpuir__free(a, area->data, area->cap);
  area->data = NULL;
  area->cap = 0;
  area->mapped = 0;
}

static int gpuir__area_map(const gpuir_allocator *a, gpuir__area *area, size_t n, const char *path, unsigned number,
    gpuir_error *err) {
  gpuir__spool file;
  void *p;
  int status;
  gpuir__spool_open(a, &file, path, number, 1);
  status = gpuir__spool_file(&file, err);
  if (status) return status;
  if (gpuir__allocate(file.fd, n)) {
    status = gpuir__fail_errno(err, path, "cannot reserve space for a temporary file");
  } else {
    p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
    if (p == MAP_FAILED) {
      status = gpuir__fail_errno(err, path, "cannot map a temporary file");
    } else {
      area->data = (uint8_t *)p;
      area->cap = n;
      area->mapped = 1;
    }
  }
  gpuir__spool_close(&file);
  return status;
}

/* Makes the area at least n bytes large; its contents are lost if it grows. */
static int gpuir__area_need(const gpuir_allocator *a, gpuir__area *area, uint64_t n, uint64_t most, const char *path,
    unsigned number, gpuir_error *err) {
  uint64_t want = n + n / 4 + 64;
  if (n <= area->cap && area->data) return GPUIR_OK;
  if (n > SIZE_MAX / 2) return gpuir__fail_nomem(err);
  gpuir__area_free(a, area);
  if (n > most) return gpuir__area_map(a, area, (size_t)want, path, number, err);
  if (want > most) want = n;
  area->data = (uint8_t *)gpuir__alloc(a, (size_t)want);
  if (!area->data) return gpuir__fail_nomem(err);
  area->cap = (size_t)want;
  return GPUIR_OK;
}
