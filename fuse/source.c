/* source.c - lines of a file on disk. */
#include "source.h"

#include <fcntl.h>
#include <unistd.h>

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

int source_path(const char *base, const char *forbidden, const char *path, size_t len, char *out,
                size_t cap) {
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

int source_stat(const char *path, struct stat *st) {
  if (stat(path, st) != 0) return errno;
  return S_ISREG(st->st_mode) ? 0 : EINVAL;
}

int source_lines(buf *b, const char *path, uint32_t first, uint32_t last) {
  char block[65536];
  uint64_t line = 1;
  size_t before = b->len;
  struct stat st;
  int rc = 0, fd;
  do fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  while (fd < 0 && errno == EINTR);
  if (fd < 0) return errno;
  if (fstat(fd, &st) != 0)
    rc = errno;
  else if (!S_ISREG(st.st_mode))
    rc = EINVAL;
  while (rc == 0 && line <= last && !b->error) {
    ssize_t got = read(fd, block, sizeof block);
    size_t at = 0, n;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) rc = errno;
    if (got <= 0) break;
    n = (size_t)got;
    while (at < n && line <= last) {
      char *newline = memchr(block + at, '\n', n - at);
      size_t end = newline ? (size_t)(newline - block) + 1 : n;
      if (line >= first) buf_put(b, block + at, end - at);
      if (newline) line++;
      at = end;
    }
  }
  close(fd);
  if (rc) return rc;
  if (b->error) return b->error;
  return b->len == before ? ENODATA : 0;
}
