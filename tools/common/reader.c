/* reader.c - reads an open file in pieces. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "reader.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define READ_BYTES ((size_t)1 << 20)
#define GUESS_BYTES ((size_t)64 << 10) /* from which the encoding is told, or all that there are */

void reader_open(text_reader *r, int fd, size_t most) {
  memset(r, 0, sizeof *r);
  r->fd = fd;
  r->most = most;
}

void reader_close(text_reader *r) {
  free(r->buf);
  free(r->raw);
  unpack_close(&r->packed);
  r->buf = r->raw = NULL;
}

/* ---- bytes of the file ------------------------------------------------------------------------- */

/* Waits until there is something to read. 0; -1: errno. */
static int wait_to_read(const text_reader *r) {
  struct pollfd fds[2] = {{r->fd, POLLIN, 0}, {r->wake, POLLIN, 0}};
  if (poll(fds, 2, -1) < 0) return -1;
  if (!fds[1].revents) return 0;
  errno = ECANCELED;
  return -1;
}

/* Reads what is there of the file, at most n bytes, which is not 0. Returns their number; 0 at the end; -1: errno. */
static ssize_t read_fd(void *reader, char *to, size_t n) {
  text_reader *r = (text_reader *)reader;
  for (;;) {
    const int stopped = r->stop && *r->stop;
    const ssize_t got = stopped || (r->wake && wait_to_read(r)) ? -1 : read(r->fd, to, n);
    if (r->stop && *r->stop) {
      errno = EINTR;
      return -1;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got > 0 && r->hash) (void)XXH3_64bits_update((XXH3_state_t *)r->hash, to, (size_t)got);
    if (got > 0) r->any = 1;
    return got;
  }
}

/* The same of what is packed in it, if it is. */
static ssize_t read_bytes(text_reader *r, char *to, size_t n) {
  const ssize_t got = r->packing ? unpack_read(&r->packed, to, n) : read_fd(r, to, n);
  if (got > 0) r->taken += (uint64_t)got;
  if (got < 0) r->why = r->packed.why;
  return got;
}

/* ---- the text in memory ------------------------------------------------------------------------ */

/* Makes room behind what is there for n more bytes. 0; -1: errno. */
static int make_room(text_reader *r, size_t n) {
  char *bigger;
  size_t cap = r->cap ? r->cap : READ_BYTES;
  if (r->begin && r->begin == r->end) r->begin = r->end = 0;
  if (r->buf && r->cap - r->end >= n) return 0;
  if (r->buf && r->begin > r->cap / 2) {
    memmove(r->buf, r->buf + r->begin, r->end - r->begin);
    r->end -= r->begin;
    r->begin = 0;
    if (r->cap - r->end >= n) return 0;
  }
  if (r->end - r->begin > r->most) {
    errno = EFBIG;
    return -1;
  }
  while (cap - r->end < n) cap *= 2;
  bigger = (char *)realloc(r->buf, cap);
  if (!bigger) return -1;
  r->buf = bigger;
  r->cap = cap;
  return 0;
}

/* Reads bytes that are not UTF-8, and appends their text. As fill. */
static int fill_decoded(text_reader *r) {
  byte_buf text;
  ssize_t got;
  size_t taken;
  if (!r->raw) r->raw = (char *)malloc(r->raw_cap = READ_BYTES / 8);
  if (!r->raw) return -1;
  got = read_bytes(r, r->raw + r->raw_n, r->raw_cap - r->raw_n);
  if (got < 0) return -1;
  r->eof = !got;
  r->raw_n += (size_t)got;
  memset(&text, 0, sizeof text);
  taken = encoding_decode(r->form, r->raw, r->raw_n, r->eof, &text);
  memmove(r->raw, r->raw + taken, r->raw_n - taken);
  r->raw_n -= taken;
  if (text.failed || make_room(r, text.n)) {
    if (text.failed) errno = ENOMEM;
    bytes_free(&text);
    return -1;
  }
  if (text.n) memcpy(r->buf + r->end, text.p, text.n);
  r->end += text.n;
  bytes_free(&text);
  return !r->eof;
}

/* Reads more behind what is there. 1; 0 at the end; -1: errno. */
static int fill(text_reader *r) {
  ssize_t got;
  if (r->eof) return 0;
  if (r->form != ENCODING_UTF8) return fill_decoded(r);
  if (make_room(r, READ_BYTES / 4)) return -1;
  got = read_bytes(r, r->buf + r->end, r->cap - r->end);
  if (got < 0) return -1;
  r->eof = !got;
  r->end += (size_t)got;
  return got > 0;
}

/* Finds how far the next n lines reach, `seen` bytes of which were looked at. 0; -1: errno. */
static int reach_lines(text_reader *r, uint64_t n, size_t *seen, uint64_t *found) {
  *found = 0;
  while (*found < n) {
    const char *from = r->buf ? r->buf + r->begin + *seen : NULL;
    const size_t have = r->end - r->begin - *seen;
    const char *nl = from && have ? (const char *)memchr(from, '\n', have) : NULL;
    int got;
    if (nl) {
      ++*found;
      *seen += (size_t)(nl - from) + 1;
      continue;
    }
    *seen += have;
    got = fill(r);
    if (got < 0) return -1;
    if (got || r->end - r->begin > *seen) continue;
    /* The last line may lack its end. */
    if (r->buf && *seen && r->buf[r->begin + *seen - 1] != '\n') ++*found;
    break;
  }
  if (*seen <= r->most) return 0;
  errno = EFBIG;
  return -1;
}

int reader_lines(text_reader *r, uint64_t n, char **text, size_t *len, uint64_t *lines) {
  size_t seen = 0;
  if (reach_lines(r, n, &seen, lines)) return -1;
  *text = r->buf + r->begin;
  *len = seen;
  r->begin += seen;
  r->passed += encoding_size(r->form, *text, seen);
  return seen > 0;
}

int reader_more(text_reader *r, uint64_t n, char **text, size_t *len) {
  const size_t had = *len;
  size_t seen = had;
  uint64_t lines;
  r->begin -= had;
  if (reach_lines(r, n, &seen, &lines)) return -1;
  *text = r->buf + r->begin;
  *len = seen;
  r->begin += seen;
  r->passed += encoding_size(r->form, *text + had, seen - had);
  return seen > had;
}

void reader_back(text_reader *r, size_t n) {
  r->begin -= n;
  r->passed -= encoding_size(r->form, r->buf + r->begin, n);
}

int reader_rest(text_reader *r, char **text, size_t *len) {
  int got;
  while ((got = fill(r)) > 0)
    if (r->end - r->begin > r->most) {
      errno = EFBIG;
      return -1;
    }
  *text = r->buf ? r->buf + r->begin : r->buf;
  *len = r->end - r->begin;
  r->begin = r->end;
  r->passed += *len ? encoding_size(r->form, *text, *len) : 0;
  return got;
}

/* ---- what the file is -------------------------------------------------------------------------- */

/* Takes what was read as bytes of another encoding. 0; -1: errno. */
static int decode_from(text_reader *r, text_encoding form) {
  byte_buf text;
  size_t taken;
  memset(&text, 0, sizeof text);
  taken = encoding_decode(form, r->buf + r->begin, r->end - r->begin, r->eof, &text);
  r->raw_cap = READ_BYTES / 8;
  r->raw = (char *)malloc(r->raw_cap);
  if (!r->raw || text.failed) {
    bytes_free(&text);
    errno = ENOMEM;
    return -1;
  }
  r->raw_n = r->end - r->begin - taken; /* a part of one character */
  memcpy(r->raw, r->buf + r->begin + taken, r->raw_n);
  free(r->buf);
  r->buf = text.p;
  r->cap = text.cap;
  r->begin = 0;
  r->end = text.n;
  r->form = form;
  return 0;
}

/* Returns what the file is whose first bytes are s[0..n), if it is no text by these. */
static reader_kind kind_of(const char *s, size_t n) {
  const unpack_kind packed = unpack_kind_of(s, n);
  if (packed) return (reader_kind)(READER_GZIP + (packed - UNPACK_GZIP));
  if (n >= 5 && !memcmp(s, "%PDF-", 5)) return READER_PDF;
  if (n >= 4 && !memcmp(s, "PK\x03\x04", 4)) return READER_ZIP;
  return READER_BINARY;
}

/* Reads enough to tell what the file is. 0; -1: errno. */
static int read_first(text_reader *r) {
  while (r->end - r->begin < GUESS_BYTES) {
    const int got = fill(r);
    if (got <= 0) return got;
  }
  return 0;
}

/* Reads on what is packed in the bytes that were read, and in those that follow. 0; -1: errno. */
static int unpack(text_reader *r, unpack_kind kind) {
  if (unpack_open(&r->packed, kind, read_fd, r, r->buf + r->begin, r->end - r->begin)) return -1;
  r->packing = kind;
  r->begin = r->end = 0;
  r->taken = 0;
  r->eof = 0;
  return read_first(r);
}

/* Says what was read, and which encoding it has; -1: it is no text. */
static int guess(const text_reader *r, reader_kind *what, size_t *mark) {
  const char *first = r->buf ? r->buf + r->begin : "";
  *what = kind_of(first, r->end - r->begin);
  return encoding_guess(first, r->end - r->begin, mark);
}

/* Puts a text that was made of the whole file in its place. */
static void take_made(text_reader *r, const byte_buf *text) {
  free(r->buf);
  r->buf = text->p;
  r->cap = text->cap;
  r->begin = 0;
  r->end = text->n;
  r->passed = 0;
  r->taken = text->n;
}

/* Converts all of the file by the C library. 0; -1: errno, EBADMSG with r->why. */
static int convert_named_file(text_reader *r, int found) {
  byte_buf text;
  char *whole;
  size_t n;
  r->most = CONVERT_MOST;
  if (reader_rest(r, &whole, &n)) return -1;
  memset(&text, 0, sizeof text);
  if (!bytes_room(&text, 1) || encoding_convert(found, whole, n, &text) || text.failed) {
    r->why = "the C library does not convert its encoding";
    errno = text.failed ? ENOMEM : EBADMSG;
    bytes_free(&text);
    return -1;
  }
  take_made(r, &text);
  r->named = found + 1;
  return 0;
}

/* Takes the file as a text of the encoding that it is said to have, if it may be one. 0; -1: errno. */
static int take_said(text_reader *r, reader_kind *what) {
  const int found = r->said - 1, own = encoding_own(found);
  if (!encoding_fits(found, r->buf ? r->buf + r->begin : "", r->end - r->begin)) return 0;
  *what = READER_TEXT;
  if (own < 0) return convert_named_file(r, found);
  return own == ENCODING_UTF8 ? 0 : decode_from(r, (text_encoding)own);
}

int reader_begin(text_reader *r, reader_kind *what) {
  size_t mark;
  int form;
  if (read_first(r)) return -1;
  form = guess(r, what, &mark);
  if (*what >= READER_GZIP && *what <= READER_ZSTD) {
    const unpack_kind kind = (unpack_kind)(UNPACK_GZIP + (*what - READER_GZIP));
    const char *missing = r->as_it_is ? "" : unpack_missing(kind);
    if (missing == unpack_no_memory) errno = ENOMEM;
    if (missing) return missing == unpack_no_memory ? -1 : 0;
    if (unpack(r, kind)) return -1;
    form = guess(r, what, &mark);
  }
  if (r->mails && *what == READER_BINARY && r->buf && convert_is_mail(r->buf + r->begin, r->end - r->begin)) {
    *what = READER_TEXT; /* whatever it looks like: each part has its own encoding */
    r->converted = CONVERT_MAIL;
    return 0;
  }
  if (r->said && !mark && *what == READER_BINARY) return take_said(r, what);
  if (form < 0 || *what != READER_BINARY) return 0;
  *what = READER_TEXT;
  r->begin += mark;
  r->passed += mark;
  return form == ENCODING_UTF8 ? 0 : decode_from(r, (text_encoding)form);
}

int reader_convert(text_reader *r, const char *name) {
  const convert_kind kind =
      r->buf && !r->converted ? convert_kind_of(name, r->buf + r->begin, r->end - r->begin) : CONVERT_NONE;
  byte_buf text;
  char *whole;
  size_t n;
  if (!kind) return 0;
  r->most = CONVERT_MOST;
  if (reader_rest(r, &whole, &n)) return -1;
  memset(&text, 0, sizeof text);
  r->why = convert_text(kind, whole, n, &text);
  if (r->why) {
    errno = text.failed ? ENOMEM : EBADMSG;
    bytes_free(&text);
    return -1;
  }
  take_made(r, &text);
  r->converted = kind;
  r->was = r->form;
  r->form = ENCODING_UTF8;
  return 0;
}
