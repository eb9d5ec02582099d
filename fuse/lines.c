/* lines.c - lines of an open file. */
#include "lines.h"

#include <time.h>
#include <unistd.h>

void lines_init(line_memory *m) {
  memset(m, 0, sizeof *m);
  pthread_mutex_init(&m->lock, NULL);
}

void lines_destroy(line_memory *m) {
  size_t i;
  for (i = 0; i < LINE_FILES; i++) free(m->files[i].marks);
  pthread_mutex_destroy(&m->lock);
}

/* ---- what is remembered -------------------------------------------------------------------------------- */

static int same_moment(struct timespec a, struct timespec b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static int is_file(const line_file *f, const struct stat *st) {
  return f->used && f->device == st->st_dev && f->inode == st->st_ino && f->size == st->st_size &&
         same_moment(f->mtime, st->st_mtim) && same_moment(f->ctime, st->st_ctim);
}

/* Returns 1 if the file may change once more without a change of its times. */
static int is_racy(const struct stat *st) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return st->st_mtim.tv_sec + LINE_RACY_SECONDS >= now.tv_sec ||
         st->st_ctim.tv_sec + LINE_RACY_SECONDS >= now.tv_sec;
}

/* Finds the file, or NULL. Called with the lock. */
static line_file *memory_find(line_memory *m, const struct stat *st) {
  size_t i;
  for (i = 0; i < LINE_FILES; i++)
    if (is_file(&m->files[i], st)) {
      m->files[i].used = ++m->now;
      return &m->files[i];
    }
  return NULL;
}

/* Gives the file the place that was used least recently. Called with the lock; NULL without memory. */
static line_file *memory_add(line_memory *m, const struct stat *st) {
  line_file *f = &m->files[0];
  size_t i;
  for (i = 1; i < LINE_FILES; i++)
    if (m->files[i].used < f->used) f = &m->files[i];
  if (!f->marks) f->marks = malloc(LINE_MARKS * sizeof *f->marks);
  if (!f->marks) return NULL;
  f->device = st->st_dev;
  f->inode = st->st_ino;
  f->size = st->st_size;
  f->mtime = st->st_mtim;
  f->ctime = st->st_ctim;
  f->used = ++m->now;
  f->spacing = LINE_SPACING;
  f->n = 0;
  return f;
}

/* Writes the last mark before line `line` to *mark: the start of the file, if none is known. */
static void memory_before(line_memory *m, const struct stat *st, uint64_t line, line_mark *mark) {
  const line_file *f;
  size_t low = 0, high;
  mark->line = 1;
  mark->offset = 0;
  pthread_mutex_lock(&m->lock);
  f = memory_find(m, st);
  high = f ? f->n : 0;
  while (low < high) { /* marks[0..low) are before, marks[high..n) are not */
    size_t middle = low + (high - low) / 2;
    if (f->marks[middle].line < line)
      low = middle + 1;
    else
      high = middle;
  }
  if (low) *mark = f->marks[low - 1];
  pthread_mutex_unlock(&m->lock);
}

/* Remembers a mark that lies far enough behind the last. */
static void memory_note(line_memory *m, const struct stat *st, line_mark mark) {
  line_file *f;
  pthread_mutex_lock(&m->lock);
  f = memory_find(m, st);
  if (!f) f = memory_add(m, st);
  if (f && mark.offset >= (f->n ? f->marks[f->n - 1].offset : 0) + f->spacing) {
    if (f->n == LINE_MARKS) { /* every other one goes */
      size_t i;
      for (i = 0; i < LINE_MARKS / 2; i++) f->marks[i] = f->marks[2 * i + 1];
      f->n = LINE_MARKS / 2;
      f->spacing *= 2;
    }
    f->marks[f->n++] = mark;
  }
  pthread_mutex_unlock(&m->lock);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static uint64_t nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Returns why reading has to end before the next block, or 0. */
static int must_end(const line_range *range, uint64_t bytes) {
  if (range->stopped && range->stopped(range->stopped_arg)) return EINTR;
  if (range->deadline && nanoseconds() >= range->deadline) return ETIMEDOUT;
  return bytes >= range->max_bytes ? EFBIG : 0;
}

/* Takes the wanted lines out of a block whose first byte is in line *line, and counts on. */
static void take_lines(buf *b, const line_range *range, const char *block, size_t n, uint64_t *line) {
  size_t at = 0;
  while (at < n && *line <= range->last) {
    const char *newline = memchr(block + at, '\n', n - at);
    size_t end = newline ? (size_t)(newline - block) + 1 : n;
    if (*line >= range->first) buf_put(b, block + at, end - at);
    if (newline) ++*line;
    at = end;
  }
}

int lines_read(line_memory *m, buf *b, int fd, const struct stat *st, const line_range *range) {
  char block[LINE_SPACING];
  const size_t before = b->len;
  const int remember = st->st_size > LINE_SPACING && !is_racy(st);
  line_mark at;
  uint64_t start;
  int rc = 0;
  memory_before(m, st, range->first, &at);
  start = at.offset;
  while (at.line <= range->last && !b->error && at.offset < (uint64_t)st->st_size) {
    uint64_t left = (uint64_t)st->st_size - at.offset;
    ssize_t got;
    rc = must_end(range, at.offset - start);
    if (rc) break;
    got = pread(fd, block, left < sizeof block ? (size_t)left : sizeof block, (off_t)at.offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) rc = errno;
    if (got <= 0) break;
    take_lines(b, range, block, (size_t)got, &at.line);
    at.offset += (uint64_t)got;
    /* Past the last line, lines are no longer counted. */
    if (remember && at.line <= range->last) memory_note(m, st, at);
  }
  if (rc) return rc;
  if (b->error) return b->error;
  return b->len == before ? ENODATA : 0;
}
