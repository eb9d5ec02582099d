/* source.c - walks to a source file, opens it and reads a range of it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_PATH, statx */
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#if defined(__GLIBC__) && (__GLIBC__ < 2 || (__GLIBC__ == 2 && __GLIBC_MINOR__ < 28))
/* The C library has no statx yet: the kernel is asked itself, and says ENOSYS where it has none either. */
#include <linux/stat.h>
#include <sys/syscall.h>
#ifndef AT_STATX_DONT_SYNC
#define AT_STATX_DONT_SYNC 0x4000
#endif
static int statx(int fd, const char *path, int flags, unsigned mask, struct statx *st) {
  return (int)syscall(SYS_statx, fd, path, flags, mask, st);
}
#endif

/* ---- paths as text ------------------------------------------------------------------------------------- */

/* Resolves "//", "/./" and "/../" in place, without looking at the disk. */
static void tidy(char *path) {
  char *in = path, *out = path;
  while (*in) {
    size_t n;
    while (*in == '/') in++;
    n = strcspn(in, "/");
    if (n == 0) break;
    if (n == 2 && in[0] == '.' && in[1] == '.') {
      while (out > path && *--out != '/') {}
    } else if (n != 1 || in[0] != '.') {
      *out++ = '/';
      memmove(out, in, n);
      out += n;
    }
    in += n;
  }
  if (out == path) *out++ = '/';
  *out = 0;
}

int source_path(const char *base, const char *forbidden, const char *path, size_t len, char *out, size_t cap) {
  size_t n = 0, f = strlen(forbidden);
  if (len == 0 || memchr(path, 0, len)) return ENOENT;
  if (path[0] != '/') n = strlen(base) + 1;
  if (n + len + 1 > cap) return ENAMETOOLONG;
  if (n) {
    memcpy(out, base, n - 1);
    out[n - 1] = '/';
  }
  memcpy(out + n, path, len);
  out[n + len] = 0;
  tidy(out);
  if (f > 1 && strncmp(out, forbidden, f) == 0 && (out[f] == '/' || out[f] == 0)) return ELOOP;
  return 0;
}

enum { LINKS_FOLLOWED = 40 }; /* as many as the kernel follows */

/* Cuts the last component of a path off, and leaves the folder. */
static void cut_last(char *path) {
  char *slash = strrchr(path, '/');
  if (slash) slash[slash == path] = 0;
}

/* Puts in place of a path to a link the path that it leads to. 0; -1: it is none, or there is no room. */
static int follow(char *path, size_t size) {
  char target[PATH_MAX];
  const char *slash = strrchr(path, '/');
  const ssize_t n = readlink(path, target, sizeof target);
  const size_t at = n > 0 && target[0] != '/' && slash ? (size_t)(slash - path) + 1 : 0;
  if (n <= 0 || at + (size_t)n >= size) return -1;
  memcpy(path + at, target, (size_t)n);
  path[at + (size_t)n] = 0;
  return 0;
}

char *source_home(const char *index) {
  char *path = realpath(index, NULL), *folder;
  size_t n = strlen(index);
  unsigned links = 0;
  if (path) {
    cut_last(path);
    return path;
  }
  while (n > 1 && index[n - 1] == '/') n--;
  path = (char *)malloc(n + PATH_MAX);
  if (!path) return NULL;
  memcpy(path, index, n);
  path[n] = 0;
  while (n && links++ < LINKS_FOLLOWED && !follow(path, n + PATH_MAX)) {} /* to a file that will be there */
  if (strchr(path, '/')) cut_last(path);
  else path[0] = '.', path[1] = 0;
  folder = n ? realpath(path, NULL) : NULL;
  free(path);
  return folder;
}

/* Returns whether a path has the component "..". */
static int goes_up(const char *path) {
  for (; path; path = strchr(path, '/')) {
    path += strspn(path, "/");
    if (path[0] == '.' && path[1] == '.' && (path[2] == '/' || !path[2])) return 1;
  }
  return 0;
}

const char *source_stored(const char *home, const char *path) {
  const size_t n = strlen(home);
  if (n < 2 || strncmp(home, path, n) != 0 || (path[n] && path[n] != '/') || goes_up(path + n)) return path;
  return path[n] ? path + n + 1 : path + n;
}

/* ---- file systems -------------------------------------------------------------------------------------- */

/* Where a step of the walk has led. */
typedef struct place {
  dev_t device;
  uint64_t mount; /* the kernel's number of the mount; 0 where it does not say (before Linux 5.8) */
  mode_t type; /* S_IF bits */
} place;

/* Older C libraries and musl do not name the mount's number, but have the room for what the kernel writes. */
#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000u
#endif
#define MOUNT_OFFSET 0x90 /* of stx_mnt_id, in the 256 bytes that the kernel fills */

typedef char statx_has_room[sizeof(struct statx) >= 256 ? 1 : -1];

/* Looks at what fd is. The file system is not asked, as fstat would do over FUSE: the kernel knows all of this. */
static int place_of(int fd, place *p) {
  struct statx st;
  memset(p, 0, sizeof *p);
  if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MNT_ID, &st) != 0) return errno;
  p->device = makedev(st.stx_dev_major, st.stx_dev_minor);
  if (st.stx_mask & STATX_MNT_ID) memcpy(&p->mount, (const char *)&st + MOUNT_OFFSET, sizeof p->mount);
  p->type = st.stx_mode & S_IFMT;
  return 0;
}

int source_device(const char *path, dev_t *device) {
  place p;
  int rc, fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  rc = place_of(fd, &p);
  close(fd);
  if (rc == 0) *device = p.device;
  return rc;
}

static int is_one_of(const char *name, const char *const *names, size_t n) {
  size_t i;
  for (i = 0; i < n; i++)
    if (strcmp(name, names[i]) == 0) return 1;
  return 0;
}

/* Returns 0 if a file system of this type may be entered, with the options that the kernel shows of it. */
static int type_allowed(const char *type, const char *options) {
  static const char *const kernels[] = {"proc", "sysfs", "debugfs", "tracefs", "cgroup", "cgroup2", "configfs",
      "securityfs"};
  const char *owner = strstr(options, "user_id=");
  unsigned long uid;
  if (is_one_of(type, kernels, sizeof kernels / sizeof *kernels)) return EACCES;
  if (strcmp(type, "fuse.gpuirfs") == 0) return ELOOP;
  if (strncmp(type, "fuse", 4) != 0) return 0;
  uid = owner ? strtoul(owner + 8, NULL, 10) : ULONG_MAX;
  return uid == 0 || uid == (unsigned long)geteuid() ? 0 : EACCES;
}

/* Reads a line of mountinfo(5): "id parent major:minor root point options ... - type source options". Returns
 * 1 when it is the line of `p`, and then writes whether that may be entered to *allowed. */
static int mount_line(char *line, const place *p, int *allowed) {
  char *at, *type, *source, *options;
  const unsigned long id = strtoul(line, &at, 10);
  unsigned major_number, minor_number;
  (void)strtoul(at, &at, 10);
  major_number = (unsigned)strtoul(at, &at, 10);
  if (*at != ':') return 0;
  minor_number = (unsigned)strtoul(at + 1, &at, 10);
  if (p->mount ? id != p->mount : makedev(major_number, minor_number) != p->device) return 0;
  type = strstr(line, " - ");
  source = type ? strchr(type + 3, ' ') : NULL;
  options = source ? strchr(source + 1, ' ') : NULL;
  *allowed = EACCES;
  if (!options) return 1;
  type += 3;
  *source = 0;
  *allowed = type_allowed(type, options);
  return 1;
}

/* Returns 0 if the walk may enter the mount at `p`. */
static int mount_allowed(const place *p) {
  FILE *mounts = fopen("/proc/self/mountinfo", "re");
  char *line = NULL;
  size_t cap = 0;
  /* A mount that is not listed was unmounted just now. Without numbers, it may be a subvolume, which is
   * listed under another device. */
  int allowed = p->mount ? EACCES : 0;
  if (!mounts) return errno;
  while (getline(&line, &cap, mounts) > 0)
    if (mount_line(line, p, &allowed)) break;
  free(line);
  fclose(mounts);
  return allowed;
}

int source_is_gpuirfs(int fd) {
  place p;
  return place_of(fd, &p) == 0 && mount_allowed(&p) == ELOOP;
}

/* ---- the walk ------------------------------------------------------------------------------------------ */

typedef struct walk {
  dev_t own; /* the device that is never entered */
  int fd; /* where the walk is; -1: nowhere */
  place at;
  unsigned links;
  char rest[PATH_MAX]; /* what is still to be walked */
} walk;

static void walk_end(walk *w) {
  if (w->fd >= 0) close(w->fd);
  w->fd = -1;
}

/* Goes to the root folder. */
static int walk_start(walk *w) {
  walk_end(w);
  w->fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  return w->fd < 0 ? errno : place_of(w->fd, &w->at);
}

/* Puts the target of the link `fd` before the rest of the path. */
static int walk_link(walk *w, int fd) {
  char target[PATH_MAX];
  ssize_t n = readlinkat(fd, "", target, sizeof target);
  size_t rest = strlen(w->rest);
  if (n < 0) return errno;
  if (++w->links > LINKS_FOLLOWED) return ELOOP;
  if (n == 0) return ENOENT;
  if ((size_t)n + 1 + rest + 1 > sizeof w->rest) return ENAMETOOLONG;
  memmove(w->rest + n + 1, w->rest, rest + 1);
  memcpy(w->rest, target, (size_t)n);
  w->rest[n] = '/';
  return target[0] == '/' ? walk_start(w) : 0;
}

/* Opens a name where the walk is, without following links or opening devices. A folder that is to be walked
 * through is asked for as one, which mounts what is mounted on demand. */
static int step_open(int at, const char *name, int through, int *fd) {
  const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  *fd = openat(at, name, through ? flags | O_DIRECTORY : flags);
  if (*fd < 0 && through && errno == ENOTDIR) *fd = openat(at, name, flags);
  return *fd < 0 ? errno : 0;
}

/* Takes the first name off the rest and goes there. [source-walk] */
static int walk_step(walk *w) {
  char name[NAME_MAX + 1];
  place next;
  size_t n = strcspn(w->rest, "/"), after = n;
  int fd, rc;
  if (n > NAME_MAX) return ENAMETOOLONG;
  memcpy(name, w->rest, n);
  name[n] = 0;
  after += strspn(w->rest + n, "/");
  memmove(w->rest, w->rest + after, strlen(w->rest + after) + 1);
  rc = step_open(w->fd, n ? name : ".", w->rest[0] != 0, &fd);
  if (rc) return rc;
  rc = place_of(fd, &next);
  if (rc == 0 && next.device == w->own) rc = ELOOP;
  if (rc == 0 && (next.device != w->at.device || next.mount != w->at.mount)) rc = mount_allowed(&next);
  if (rc == 0 && next.type == S_IFLNK) {
    rc = walk_link(w, fd);
    close(fd);
    return rc;
  }
  if (rc == 0 && w->rest[0] && next.type != S_IFDIR) rc = ENOTDIR;
  if (rc) {
    close(fd);
    return rc;
  }
  close(w->fd);
  w->fd = fd;
  w->at = next;
  return 0;
}

/* Opens what the walk has come to for reading: that very file, whatever its name stands for by now. */
static int walk_open(const walk *w, int *fd, struct stat *st) {
  char self[64];
  int rc;
  if (w->at.type != S_IFREG) return EINVAL;
  snprintf(self, sizeof self, "/proc/self/fd/%d", w->fd);
  rc = gpuir_walk_open(AT_FDCWD, self, 1, fd, st);
  if (rc == 0 && S_ISREG(st->st_mode)) return 0;
  if (rc == 0) close(*fd);
  *fd = -1;
  return rc ? rc : EINVAL;
}

int source_open(const char *path, dev_t mount, int *fd, struct stat *st) {
  walk w;
  size_t n = strlen(path);
  int rc;
  *fd = -1;
  memset(&w, 0, offsetof(walk, rest));
  w.own = mount;
  w.fd = -1;
  if (n >= sizeof w.rest) return ENAMETOOLONG;
  memcpy(w.rest, path + strspn(path, "/"), n + 1 - strspn(path, "/"));
  rc = walk_start(&w);
  while (rc == 0 && w.rest[0]) rc = walk_step(&w);
  if (rc == 0) rc = walk_open(&w, fd, st);
  walk_end(&w);
  return rc;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

enum { READ_BLOCK = 1 << 16 };

/* Returns why reading has to end before the next block, or 0. */
static int must_end(const source_range *range) {
  struct timespec now;
  if (range->stopped && range->stopped(range->stopped_arg)) return EINTR;
  if (!range->deadline) return 0;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec >= range->deadline ? ETIMEDOUT : 0;
}

int source_must_end(const source_limits *limits) {
  source_range range;
  memset(&range, 0, sizeof range);
  range.deadline = limits->deadline;
  range.stopped = limits->stopped;
  range.stopped_arg = limits->stopped_arg;
  return must_end(&range);
}

/* Reads the range in blocks, which go to `put` and into the hash. [source-range] */
int source_read(int fd, const source_range *range, source_put put, void *sink) {
  char block[READ_BLOCK];
  uint64_t at = 0;
  XXH3_state_t hash;
  if (range->offset > (uint64_t)INT64_MAX - range->bytes) return ESTALE; /* no file is so long */
  XXH3_INITSTATE(&hash);
  (void)XXH3_64bits_reset(&hash);
  while (at < range->bytes) {
    const uint64_t left = range->bytes - at;
    ssize_t got;
    int rc = must_end(range);
    if (rc) return rc;
    got = pread(fd, block, left < sizeof block ? (size_t)left : sizeof block, (off_t)(range->offset + at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return ESTALE;
    rc = put(sink, block, (size_t)got);
    if (rc) return rc;
    if (range->hash) (void)XXH3_64bits_update(&hash, block, (size_t)got);
    at += (uint64_t)got;
  }
  return range->hash && XXH3_64bits_digest(&hash) != range->hash ? ESTALE : 0;
}

/* ---- texts of documents -------------------------------------------------------------------------------- */

/* Writes to memory that is large enough. */
static int put_memory(void *sink, const void *bytes, size_t n) {
  char **to = (char **)sink;
  memcpy(*to, bytes, n);
  *to += n;
  return 0;
}

/* Returns where line number `line`, counted from 1, begins in text[0..len). */
static size_t line_start(const char *text, size_t len, uint32_t line) {
  size_t at = 0;
  while (line > 1 && at < len) {
    const char *nl = (const char *)memchr(text + at, '\n', len - at);
    at = nl ? (size_t)(nl - text) + 1 : len;
    line--;
  }
  return at;
}

/* Finds the document's lines in a whole file, and compares these with what was indexed. */
static int find_lines(const gpuir_doc *doc, const char *text, size_t len, size_t *at, size_t *n) {
  *at = 0;
  *n = len;
  if (doc->first_line && doc->last_line < UINT32_MAX) {
    *at = line_start(text, len, doc->first_line);
    *n = line_start(text, len, doc->last_line + 1) - *at;
  }
  return doc->hash && XXH3_64bits(text + *at, *n) != doc->hash ? ESTALE : 0;
}

int source_is_whole(const gpuir_doc *doc) {
  return !doc->first_line && doc->source_offset <= 3; /* bytes of a byte order mark */
}

int source_part(const gpuir_doc *doc, const char *text, size_t len, size_t *at, size_t *n) {
  if (!doc->source_offset && !doc->source_bytes) return find_lines(doc, text, len, at, n);
  if (doc->source_offset > len || doc->source_bytes > len - doc->source_offset) return ESTALE;
  *at = (size_t)doc->source_offset;
  *n = (size_t)doc->source_bytes;
  if (source_is_whole(doc) && *at + *n != len) return ESTALE;
  return doc->hash && XXH3_64bits(text + *at, *n) != doc->hash ? ESTALE : 0;
}

/* ---- filters ------------------------------------------------------------------------------------------- */

int source_ends(const char *name, size_t len, const char *ending, size_t n) {
  return len > n && name[len - n - 1] == '.' && !strncasecmp(name + len - n, ending, n);
}

int source_filtered(const char *filters, const char *name, size_t len) {
  while (*filters) {
    if (source_ends(name, len, filters, strcspn(filters, "=\t"))) return 1;
    filters += strcspn(filters, "\t");
    filters += *filters == '\t';
  }
  return 0;
}

/* ---- texts, read --------------------------------------------------------------------------------------- */

int source_read_text(int fd, const struct stat *st, const gpuir_doc *doc, const source_limits *limits, char **text,
    size_t *len) {
  source_range range;
  const int placed = doc->source_offset || doc->source_bytes;
  char *to;
  size_t at;
  int rc;
  memset(&range, 0, sizeof range);
  range.offset = doc->source_offset;
  range.bytes = placed ? doc->source_bytes : (uint64_t)st->st_size;
  range.hash = placed ? doc->hash : 0;
  range.deadline = limits->deadline;
  range.stopped = limits->stopped;
  range.stopped_arg = limits->stopped_arg;
  if (range.bytes > (uint64_t)st->st_size) return ESTALE;
  if (placed && source_is_whole(doc) && range.offset + range.bytes < (uint64_t)st->st_size) return ESTALE; /* it grew */
  if (range.bytes > limits->most) return EFBIG;
  *text = to = (char *)malloc((size_t)range.bytes + 1);
  if (!to) return ENOMEM;
  *len = (size_t)range.bytes;
  rc = source_read(fd, &range, put_memory, &to);
  if (rc || placed) return rc;
  rc = find_lines(doc, *text, *len, &at, len);
  if (at) memmove(*text, *text + at, *len);
  return rc;
}
