/* io.c - import and export without their command line: files, order of terms, the index.
 *
 * An import scans the lists for their terms, gives the documents to the builder, and then the lists in byte order of
 * terms, one at a time.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_TMPFILE */
#endif
#include "exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef GPUIR_WITH_ZLIB
#include <zlib.h>
#endif

#define OUT_BYTES ((size_t)1 << 18)

/* ---- failures ------------------------------------------------------------------------------------- */

static int fail_with(ex_error *err, int code, const char *file, uint64_t offset, const char *prefix, const char *fmt,
    va_list ap) {
  size_t n = strlen(prefix);
  (void)snprintf(err->file, sizeof err->file, "%s", file);
  err->e.code = code;
  err->e.offset = offset;
  memcpy(err->e.msg, prefix, n + 1);
  (void)vsnprintf(err->e.msg + n, sizeof err->e.msg - n, fmt, ap);
  return code;
}

int ex_fail(ex_error *err, int code, const char *file, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  fail_with(err, code, file, 0, "", fmt, ap);
  va_end(ap);
  return code;
}

int ex_fail_at(ex_error *err, const char *file, uint64_t offset, const char *fmt, ...) {
  char prefix[40];
  va_list ap;
  (void)snprintf(prefix, sizeof prefix, "offset %llu: ", (unsigned long long)offset);
  va_start(ap, fmt);
  fail_with(err, GPUIR_E_FORMAT, file, offset, prefix, fmt, ap);
  va_end(ap);
  return GPUIR_E_FORMAT;
}

static int fail_errno(ex_error *err, const char *file) { return ex_fail(err, GPUIR_E_IO, file, "%s", strerror(errno)); }

static int fail_signal(ex_error *err) { return ex_fail(err, GPUIR_E_CANCELLED, "", "stopped"); }

/* ---- output ------------------------------------------------------------------------------------------ */

#define TRIES 8
#define MOST_LINKS 40 /* as many as Linux follows */

/* Returns the folder of `path`, as a string of the caller's. */
static char *folder_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? cli_copy(path, (size_t)(slash - path) + 1) : cli_copy(".", 1);
}

static int lock(int fd, const char *path, ex_error *err) {
  if (!flock(fd, LOCK_EX | LOCK_NB)) return 0;
  if (errno != EWOULDBLOCK) return fail_errno(err, path);
  return ex_fail(err, GPUIR_E_BUSY, path, "somebody else is writing this file");
}

/* Returns whether `name` names the file that is open as fd. */
static int is_file(int fd, const char *name) {
  struct stat mine, named;
  return !fstat(fd, &mine) && !lstat(name, &named) && mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
}

/* Removes what stands under the temporary name and is not locked: what a killed export left, or what somebody put
 * there. No link is followed, and the file of another user is left alone. */
static int remove_leftover(const ex_out *o, ex_error *err) {
  struct stat st;
  int fd, status;
  if (lstat(o->tmp, &st)) return errno == ENOENT ? 0 : fail_errno(err, o->tmp);
  if (!S_ISREG(st.st_mode)) return unlink(o->tmp) && errno != ENOENT ? fail_errno(err, o->tmp) : 0;
  if (st.st_uid != geteuid())
    return ex_fail(err, GPUIR_E_IO, o->tmp, "belongs to another user; remove it if no export is running");
  fd = open(o->tmp, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT || errno == ELOOP ? 0 : fail_errno(err, o->tmp);
  status = lock(fd, o->path, err);
  if (!status && is_file(fd, o->tmp) && unlink(o->tmp) && errno != ENOENT) status = fail_errno(err, o->tmp);
  (void)close(fd);
  return status;
}

/* Makes and locks PATH.tmp, as the library does. */
static int create_locked(ex_out *o, ex_error *err) {
  for (int tries = 0; tries < TRIES; tries++) {
    int status = 0;
    o->fd = open(o->tmp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (o->fd < 0) {
      if (errno != EEXIST) return fail_errno(err, o->path);
      status = remove_leftover(o, err);
      if (status) return status;
      continue;
    }
    status = lock(o->fd, o->path, err);
    if (!status && is_file(o->fd, o->tmp)) return 0;
    if (status == GPUIR_E_IO && is_file(o->fd, o->tmp)) (void)unlink(o->tmp); /* without locks nobody else's */
    (void)close(o->fd);
    o->fd = -1;
    if (status) return status;
  }
  return ex_fail(err, GPUIR_E_BUSY, o->tmp, "others keep taking this name");
}

static void out_init(ex_out *o, const char *path) {
  memset(o, 0, sizeof *o);
  o->fd = -1;
  o->path = cli_copy(path, strlen(path));
  o->tmp = (char *)cli_resize(NULL, strlen(path) + 8, 1);
  o->tmp[0] = 0;
  o->buf = (uint8_t *)cli_resize(NULL, OUT_BYTES, 1);
}

/* A file that never has a name leaves nothing behind. Where there are none, the name is new, and goes at once. */
int ex_out_spill(ex_out *o, const char *beside, ex_error *err) {
  out_init(o, beside);
#ifdef O_TMPFILE
  char *folder = folder_of(beside);
  o->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  free(folder);
  if (o->fd >= 0) return 0;
#endif
  (void)snprintf(o->tmp, strlen(beside) + 8, "%s.XXXXXX", beside);
  o->fd = mkstemp(o->tmp);
  if (o->fd >= 0) (void)unlink(o->tmp);
  o->tmp[0] = 0;
  return o->fd >= 0 ? 0 : fail_errno(err, beside);
}

/* Lets zlib write to the file. */
static int out_gzip(ex_out *o, ex_error *err) {
#ifdef GPUIR_WITH_ZLIB
  int fd = dup(o->fd);
  o->gz = fd < 0 ? NULL : gzdopen(fd, "wb");
  if (o->gz) return 0;
  if (fd >= 0) (void)close(fd);
  return fail_errno(err, o->path);
#else
  return ex_fail(err, GPUIR_E_UNSUPPORTED, o->path, "this build has no zlib, which .gz needs");
#endif
}

static int out_open(ex_out *o, const char *path, int gzip, ex_error *err) {
  struct stat st;
  int status;
  /* A file that is renamed over a device or a pipe would put an end to it. */
  if (!stat(path, &st) && !S_ISREG(st.st_mode))
    return ex_fail(err, GPUIR_E_IO, path, S_ISDIR(st.st_mode) ? "a folder, not a file" : "not a regular file");
  out_init(o, path);
  (void)snprintf(o->tmp, strlen(path) + 8, "%s.tmp", path);
  status = create_locked(o, err);
  if (status) {
    o->tmp[0] = 0;
    return status;
  }
  cli_temporary(o->tmp);
  return gzip ? out_gzip(o, err) : 0;
}

/* Puts the target of the link *path in its place, as a string of the caller's. As in the library, the links of other
 * users are not followed: they would choose the file that is replaced. */
static int follow(char **path, const struct stat *st, ex_error *err) {
  char target[4096];
  const char *slash = strrchr(*path, '/');
  cli_buf next = {NULL, 0, 0};
  ssize_t n;
  if (st->st_uid != geteuid() && st->st_uid != 0)
    return ex_fail(err, GPUIR_E_IO, *path, "a link that another user made is not followed");
  n = readlink(*path, target, sizeof target);
  if (n < 0) return fail_errno(err, *path);
  if ((size_t)n == sizeof target) return ex_fail(err, GPUIR_E_IO, *path, "a link that is too long");
  if (slash && target[0] != '/') cli_buf_add(&next, *path, (size_t)(slash - *path) + 1);
  cli_buf_add(&next, target, (size_t)n);
  cli_buf_char(&next, 0);
  free(*path);
  *path = next.p;
  return 0;
}

/* Opens what `given` leads to: a link stays when its target is replaced. */
int ex_out_open(ex_out *o, const char *given, int gzip, ex_error *err) {
  char *path = cli_copy(given, strlen(given));
  struct stat st;
  int status = 0, hops;
  for (hops = 0; !status && hops < MOST_LINKS && !lstat(path, &st) && S_ISLNK(st.st_mode); hops++)
    status = follow(&path, &st, err);
  if (!status && hops == MOST_LINKS) status = ex_fail(err, GPUIR_E_IO, given, "too many links");
  if (!status) status = out_open(o, path, gzip, err);
  free(path);
  return status;
}

static void out_flush(ex_out *o) {
  size_t done = 0;
#ifdef GPUIR_WITH_ZLIB
  if (o->gz && !o->error && o->n && gzwrite((gzFile)o->gz, o->buf, (unsigned)o->n) != (int)o->n)
    o->error = errno ? errno : EIO;
#endif
  while (!o->gz && !o->error && done < o->n) {
    ssize_t n = write(o->fd, o->buf + done, o->n - done);
    if (n >= 0) done += (size_t)n;
    else if (errno != EINTR) o->error = errno;
  }
  o->n = 0;
}

void ex_put(ex_out *o, const void *bytes, size_t n) {
  const uint8_t *p = (const uint8_t *)bytes;
  while (n) {
    size_t part = OUT_BYTES - o->n < n ? OUT_BYTES - o->n : n;
    memcpy(o->buf + o->n, p, part);
    o->n += part;
    p += part;
    n -= part;
    if (o->n == OUT_BYTES) out_flush(o);
  }
}

int ex_out_check(const ex_out *o, ex_error *err) {
  if (cli_signal) return fail_signal(err);
  if (!o->error) return 0;
  errno = o->error;
  return fail_errno(err, o->path);
}

int ex_out_finish(ex_out *o, ex_error *err) {
  out_flush(o);
#ifdef GPUIR_WITH_ZLIB
  if (o->gz) {
    errno = 0;
    if (gzclose((gzFile)o->gz) != Z_OK && !o->error) o->error = errno ? errno : EIO;
    o->gz = NULL;
  }
#endif
  if (!o->error && fsync(o->fd)) o->error = errno;
  return ex_out_check(o, err);
}

int ex_out_commit(ex_out *o, ex_error *err) {
  struct stat old;
  if (!stat(o->path, &old) && fchmod(o->fd, old.st_mode & 0777)) return fail_errno(err, o->path);
  if (!is_file(o->fd, o->tmp)) return ex_fail(err, GPUIR_E_BUSY, o->tmp, "it was replaced while it was written");
  if (rename(o->tmp, o->path)) return fail_errno(err, o->path);
  o->tmp[0] = 0;
  return 0;
}

int ex_sync_folder(const char *folder, const char *path, ex_error *err) {
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), failed = fd < 0 ? errno : 0;
  if (fd >= 0 && fsync(fd)) failed = errno;
  if (fd >= 0) (void)close(fd);
  if (!failed || (fd < 0 ? failed == EACCES : failed == EINVAL)) return 0;
  return ex_fail(err, GPUIR_E_IO, path, "the new file is in place, but may not survive a power loss: %s",
      strerror(failed));
}

void ex_out_close(ex_out *o) {
  if (!o->path) return;
#ifdef GPUIR_WITH_ZLIB
  if (o->gz) (void)gzclose((gzFile)o->gz);
#endif
  if (o->tmp[0] && o->fd >= 0 && is_file(o->fd, o->tmp)) (void)unlink(o->tmp);
  if (o->fd >= 0) (void)close(o->fd);
  free(o->path);
  free(o->tmp);
  free(o->buf);
  memset(o, 0, sizeof *o);
}

/* ---- input -------------------------------------------------------------------------------------------- */

/* Maps an open file. An empty one has bytes too, so that NULL is a file that is missing. */
static int file_map(ex_file *file, int fd, ex_error *err) {
  static const uint8_t none[1] = {0};
  struct stat st;
  if (fstat(fd, &st)) return fail_errno(err, file->path);
  if (!S_ISREG(st.st_mode)) return ex_fail(err, GPUIR_E_IO, file->path, "not a regular file");
  file->bytes = none;
  file->len = (uint64_t)st.st_size;
  if (!file->len) return 0;
  void *map = mmap(NULL, (size_t)file->len, PROT_READ, MAP_PRIVATE, fd, 0);
  if (map != MAP_FAILED) {
    file->bytes = (const uint8_t *)map;
    return 0;
  }
  file->bytes = NULL;
  return fail_errno(err, file->path);
}

static void file_close(ex_file *file) {
  if (file->bytes && file->len) (void)munmap((void *)(uintptr_t)file->bytes, (size_t)file->len);
  free(file->path);
  memset(file, 0, sizeof *file);
}

int ex_out_map(ex_out *o, ex_file *file, ex_error *err) {
  int status;
  out_flush(o);
  status = ex_out_check(o, err);
  if (status) return status;
  if (!file->path) file->path = cli_copy(o->path, strlen(o->path));
  return file_map(file, o->fd, err);
}

#ifdef GPUIR_WITH_ZLIB
/* What a file of `packed` bytes may unpack to: real lists of postings become about a third, so a file that grows a
 * hundredfold was made to fill a disk. */
static uint64_t unzip_most(uint64_t packed) { return ((uint64_t)64 << 20) + 100 * packed; }

/* Unpacks at most `most` bytes. */
static int unzip_to(ex_out *out, gzFile gz, const char *path, uint64_t most, ex_error *err) {
  int status = 0, n, code = Z_OK;
  uint8_t *bytes = (uint8_t *)cli_resize(NULL, OUT_BYTES, 1);
  while (!status && (n = gzread(gz, bytes, (unsigned)OUT_BYTES)) > 0) {
    if ((uint64_t)n > most)
      status = ex_fail(err, GPUIR_E_LIMIT, path, "unpacks to over 64 MiB and a hundred times its size");
    most -= (uint64_t)n;
    if (!status) ex_put(out, bytes, (size_t)n);
    if (!status) status = ex_out_check(out, err);
  }
  free(bytes);
  (void)gzerror(gz, &code);
  if (status || code == Z_OK || code == Z_STREAM_END) return status;
  return ex_fail_at(err, path, (uint64_t)gzoffset(gz), "%s",
      code == Z_ERRNO           ? strerror(errno)
          : code == Z_BUF_ERROR ? "the compressed data are cut off"
                                : "the compressed data are damaged");
}

/* Puts what the file holds in place of it. */
static int file_unzip(ex_file *file, int fd, const char *beside, ex_error *err) {
  int copy = dup(fd), status;
  gzFile gz = copy < 0 ? NULL : gzdopen(copy, "rb");
  ex_out out;
  ex_file plain;
  if (!gz) {
    if (copy >= 0) (void)close(copy);
    return fail_errno(err, file->path);
  }
  memset(&plain, 0, sizeof plain);
  status = ex_out_spill(&out, beside, err);
  if (!status) status = unzip_to(&out, gz, file->path, unzip_most(file->len), err);
  if (!status) status = ex_out_map(&out, &plain, err);
  ex_out_close(&out);
  (void)gzclose(gz);
  if (status) return status;
  free(plain.path);
  plain.path = file->path;
  file->path = NULL;
  file_close(file);
  *file = plain;
  return 0;
}
#endif

/* Opens `path`, which may lack if it is optional. What gzip has packed is unpacked beside the output. */
static int file_open(ex_file *file, char *path, int optional, const char *beside, ex_error *err) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), status;
  file->path = path;
  if (fd < 0) return optional && errno == ENOENT ? 0 : fail_errno(err, path);
  status = file_map(file, fd, err);
  if (!status && beside && file->bytes && file->len >= 2 && file->bytes[0] == 0x1f && file->bytes[1] == 0x8b)
#ifdef GPUIR_WITH_ZLIB
    status = file_unzip(file, fd, beside, err);
#else
    status = ex_fail(err, GPUIR_E_UNSUPPORTED, path, "packed by gzip, and this build has no zlib to unpack it");
#endif
  (void)close(fd);
  return status;
}

/* ---- lists ------------------------------------------------------------------------------------------------ */

int ex_postings_room(ex_postings *list, size_t n, ex_error *err) {
  size_t cap = list->cap ? list->cap : 1024;
  uint32_t *p;
  if (n <= list->cap) return 0;
  while (cap < n) cap += cap / 2;
  p = (uint32_t *)realloc(list->docids, cap * sizeof *p);
  if (p) list->docids = p;
  if (p && (p = (uint32_t *)realloc(list->tfs, cap * sizeof *p)) != NULL) list->tfs = p;
  if (!p) return ex_fail(err, GPUIR_E_NOMEM, "", "out of memory for a list of %zu postings", n);
  list->cap = cap;
  return 0;
}

void ex_postings_free(ex_postings *list) {
  free(list->docids);
  free(list->tfs);
  memset(list, 0, sizeof *list);
}

int ex_read_list(const gpuir_index *index, const char *name, uint64_t id, ex_postings *list, gpuir_term_info *info,
    ex_error *err) {
  int status = gpuir_term_get_info(index, id, info);
  if (!status && (status = ex_postings_room(list, info->df, err)) != 0) return status;
  if (!status) status = gpuir_term_postings(index, id, list->docids, list->tfs);
  list->df = info->df;
  if (!status) return 0;
  return ex_fail(err, status, name, "the list of term %llu: %s", (unsigned long long)id, gpuir_strerror(status));
}

/* ---- order of terms ------------------------------------------------------------------------------------------ */

static int compare_entries(const ex_entry *x, const ex_entry *y) {
  size_t n = x->term_len < y->term_len ? x->term_len : y->term_len;
  int order = memcmp(x->term, y->term, n);
  if (order) return order;
  if (x->term_len != y->term_len) return x->term_len < y->term_len ? -1 : 1;
  return x->list < y->list ? -1 : x->list > y->list;
}

static int compare_for_qsort(const void *x, const void *y) {
  return compare_entries((const ex_entry *)x, (const ex_entry *)y);
}

void ex_sorter_open(ex_sorter *s, const char *beside, uint64_t memory) {
  memset(s, 0, sizeof *s);
  s->beside = beside;
  s->most = (size_t)(memory / sizeof *s->entries);
}

static void sort_entries(ex_sorter *s) {
  for (size_t i = 1; i < s->n; i++)
    if (compare_entries(&s->entries[i - 1], &s->entries[i]) > 0) {
      qsort(s->entries, s->n, sizeof *s->entries, compare_for_qsort);
      return;
    }
}

/* Writes the entries as a run of the spill. */
static int sorter_spill(ex_sorter *s, ex_error *err) {
  int status = s->spill.path ? 0 : ex_out_spill(&s->spill, s->beside, err);
  if (status) return status;
  sort_entries(s);
  if (s->nruns == s->runs_cap) {
    s->runs_cap = s->runs_cap ? s->runs_cap * 2 : 16;
    s->run_end = (uint64_t *)cli_resize(s->run_end, s->runs_cap, sizeof *s->run_end);
  }
  s->run_end[s->nruns] = (s->nruns ? s->run_end[s->nruns - 1] : 0) + s->n;
  s->nruns++;
  ex_put(&s->spill, s->entries, s->n * sizeof *s->entries);
  s->n = 0;
  return ex_out_check(&s->spill, err);
}

int ex_sorter_add(ex_sorter *s, const ex_entry *entry, ex_error *err) {
  if (s->n == s->most) {
    int status = sorter_spill(s, err);
    if (status) return status;
  }
  if (s->n == s->cap) {
    s->cap = s->cap ? s->cap * 2 : 1024;
    if (s->cap > s->most) s->cap = s->most;
    s->entries = (ex_entry *)cli_resize(s->entries, s->cap, sizeof *s->entries);
  }
  s->entries[s->n++] = *entry;
  return 0;
}

/* Lets the run at the heap's place i sink to where it belongs. */
static void sink(ex_sorter *s, size_t i) {
  struct ex_run run = s->runs[i];
  for (size_t child; (child = 2 * i + 1) < s->nruns; i = child) {
    if (child + 1 < s->nruns && compare_entries(s->runs[child + 1].next, s->runs[child].next) < 0) child++;
    if (compare_entries(run.next, s->runs[child].next) <= 0) break;
    s->runs[i] = s->runs[child];
  }
  s->runs[i] = run;
}

int ex_sorter_finish(ex_sorter *s, ex_error *err) {
  int status = 0;
  if (s->nruns && s->n) status = sorter_spill(s, err);
  if (!status && s->nruns) status = ex_out_map(&s->spill, &s->spilled, err);
  if (status) return status;
  s->runs = (struct ex_run *)cli_resize(NULL, s->nruns + 1, sizeof *s->runs);
  if (s->nruns) {
    const ex_entry *all = (const ex_entry *)(const void *)s->spilled.bytes;
    free(s->entries);
    s->entries = NULL;
    for (size_t i = 0; i < s->nruns; i++) {
      s->runs[i].next = all + (i ? s->run_end[i - 1] : 0);
      s->runs[i].end = all + s->run_end[i];
    }
  } else if (s->n) {
    sort_entries(s);
    s->runs[0].next = s->entries;
    s->runs[0].end = s->entries + s->n;
    s->nruns = 1;
  }
  for (size_t i = s->nruns / 2; i-- > 0;) sink(s, i);
  return 0;
}

int ex_sorter_next(ex_sorter *s, ex_entry *entry) {
  if (!s->nruns) return 0;
  *entry = *s->runs[0].next++;
  if (s->runs[0].next == s->runs[0].end) s->runs[0] = s->runs[--s->nruns];
  if (s->nruns) sink(s, 0);
  return 1;
}

void ex_sorter_close(ex_sorter *s) {
  free(s->entries);
  free(s->runs);
  free(s->run_end);
  ex_out_close(&s->spill);
  file_close(&s->spilled);
}

int ex_note(ex_in *in, ex_sorter *sorter, const ex_entry *entry, ex_error *err) {
  if (cli_signal) return fail_signal(err);
  in->empty_terms += !entry->term_len;
  in->long_terms += entry->term_len > GPUIR_MAX_TERM;
  return entry->term_len && entry->term_len <= GPUIR_MAX_TERM ? ex_sorter_add(sorter, entry, err) : 0;
}

/* ---- import --------------------------------------------------------------------------------------------------- */

/* Gives the lists to the builder. */
static int add_lists(const ex_format *format, ex_in *in, ex_sorter *sorter, gpuir_builder *builder, ex_error *err) {
  ex_entry entry, before;
  ex_postings list;
  int status = 0;
  memset(&list, 0, sizeof list);
  memset(&before, 0, sizeof before);
  while (!status && ex_sorter_next(sorter, &entry)) {
    if (before.term_len == entry.term_len && !memcmp(before.term, entry.term, entry.term_len)) {
      status = ex_fail_at(err, in->files[0].path, (uint64_t)(entry.list - in->files[0].bytes),
          "a second list of the term '%.*s'; the first is at offset %llu",
          entry.term_len < 60 ? (int)entry.term_len : 60, (const char *)entry.term,
          (unsigned long long)(before.list - in->files[0].bytes));
      break;
    }
    before = entry;
    status = format->list(in, entry.list, &list, err);
    if (status) break;
    in->empty_lists += !list.df;
    err->file[0] = 0;
    if (list.df)
      status = gpuir_builder_add_list(builder, (const char *)entry.term, entry.term_len, list.docids, list.tfs, NULL,
          list.df, &err->e);
  }
  ex_postings_free(&list);
  return status;
}

static int build_index(const ex_format *format, ex_in *in, ex_sorter *sorter, const gpuir_builder_desc *desc,
    gpuir_build_report *report, ex_error *err) {
  gpuir_builder *builder = NULL;
  int status;
  err->file[0] = 0;
  status = gpuir_builder_create(desc, &builder, &err->e);
  if (status) return status;
  cli_temporary_index(desc->path);
  status = format->documents(in, builder, err);
  if (!status) status = add_lists(format, in, sorter, builder, err);
  if (!status) {
    err->file[0] = 0;
    status = gpuir_builder_write(builder, report, &err->e);
  }
  gpuir_builder_destroy(builder);
  cli_temporary(NULL);
  return status;
}

static int same_file(const char *x, const char *y) {
  struct stat a, b;
  return !stat(x, &a) && !stat(y, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int open_files(const ex_format *format, ex_in *in, const char *path, const char *beside, ex_error *err) {
  int status = 0;
  for (unsigned i = 0; i < format->nfiles && !status; i++) {
    cli_buf name = {NULL, 0, 0};
    cli_buf_text(&name, path);
    cli_buf_text(&name, format->suffix[i]);
    cli_buf_char(&name, 0);
    if (same_file(name.p, beside)) {
      status = ex_fail(err, GPUIR_E_ARGUMENT, beside, "an import cannot be its own input");
      free(name.p);
    } else {
      status = file_open(&in->files[i], name.p, format->optional >> i & 1, format == &ex_ciff ? beside : NULL, err);
    }
  }
  return status;
}

int ex_import(const ex_format *format, const char *path, gpuir_builder_desc *desc, ex_in *in,
    gpuir_build_report *report, ex_error *err) {
  uint64_t memory = desc->memory;
  ex_sorter sorter;
  int status;
  memset(in, 0, sizeof *in);
  memset(err, 0, sizeof *err);
  /* An eighth is for the order of terms, another for qsort; a quarter is left to the list that is at hand. */
  ex_sorter_open(&sorter, desc->path, memory / 8);
  desc->memory = memory / 2;
  status = open_files(format, in, path, desc->path, err);
  if (!status) status = format->scan(in, &sorter, err);
  if (!status) status = ex_sorter_finish(&sorter, err);
  if (!desc->description) desc->description = in->description;
  desc->order = in->order;
  if (!status) status = build_index(format, in, &sorter, desc, report, err);
  ex_sorter_close(&sorter);
  return status;
}

void ex_import_free(ex_in *in) {
  for (size_t i = 0; i < sizeof in->files / sizeof *in->files; i++) file_close(&in->files[i]);
  free(in->description);
}

/* ---- export ---------------------------------------------------------------------------------------------------- */

static int is_gzip(const ex_format *format, const char *path) {
  size_t n = strlen(path);
  return format == &ex_ciff && n > 3 && !strcmp(path + n - 3, ".gz");
}

/* Returns whether users that are not the caller may replace files in the folder: as gpuir_build_report says it. */
static int folder_shared(const char *folder) {
  struct stat st;
  int known = !stat(folder, &st);
  if (!known || st.st_mode & 01000) return 0;
  return (st.st_mode & S_IWOTH) || (st.st_mode & S_IWGRP && st.st_gid != getegid());
}

int ex_export(const ex_format *format, const gpuir_index *index, const char *name, const char *path, uint64_t *not_utf8,
    int *shared, ex_error *err) {
  char *folder[5] = {NULL, NULL, NULL, NULL, NULL}; /* nothing takes memory behind the first rename */
  ex_out out[5];
  int status = 0;
  memset(out, 0, sizeof out);
  memset(err, 0, sizeof *err);
  for (unsigned i = 0; i < format->nfiles && !status; i++) {
    cli_buf file = {NULL, 0, 0};
    cli_buf_text(&file, path);
    cli_buf_text(&file, format->suffix[i]);
    cli_buf_char(&file, 0);
    status = same_file(name, file.p) ? ex_fail(err, GPUIR_E_ARGUMENT, name, "the index cannot be its own export")
                                     : ex_out_open(&out[i], file.p, is_gzip(format, path), err);
    if (!status) folder[i] = folder_of(out[i].path);
    free(file.p);
  }
  if (!status) status = format->write(index, name, out, err);
  for (unsigned i = 0; i < format->nfiles && !status; i++) status = ex_out_finish(&out[i], err);
  for (unsigned i = 0; i < format->nfiles && !status; i++) status = ex_out_commit(&out[i], err);
  for (unsigned i = 0; i < format->nfiles && !status; i++) status = ex_sync_folder(folder[i], path, err);
  *not_utf8 = out[0].not_utf8;
  *shared = 0;
  for (unsigned i = 0; i < format->nfiles; i++) {
    *shared |= folder[i] && folder_shared(folder[i]);
    free(folder[i]);
    ex_out_close(&out[i]);
  }
  cli_temporary(NULL);
  return status;
}
