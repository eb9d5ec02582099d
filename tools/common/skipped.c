/* skipped.c - what was left out of an index. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_CLOEXEC, O_NOFOLLOW */
#endif
#include "skipped.h"

#include "text.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT_MOST 4096 /* bytes of the file in a live index's folder */

/* key: in what is kept, which never changes. */
static const struct {
  const char *key, *one, *many, *option;
} kinds[SKIPPED_KINDS] = {{NULL, "text", "text", NULL}, {"binary", "binary", "binary", NULL},
    {"pdf", "PDF", "PDF", "--filter 'pdf=pdftotext - -'"}, {"gzip", "gzip", "gzip", "--filter 'gz=zcat'"},
    {"bzip2", "bzip2", "bzip2", "--filter 'bz2=bzcat'"}, {"xz", "xz", "xz", "--filter 'xz=xzcat'"},
    {"zstd", "zstd", "zstd", "--filter 'zst=zstdcat'"}, {"zip", "zip", "zip", NULL},
    {"hidden", "hidden", "hidden", "--hidden"}, {"ignored", "ignored", "ignored", "--no-ignore"},
    {"links", "link", "links", "--follow"}, {"indexes", "index", "indexes", NULL}, {"other", "other", "other", NULL},
    {"unreadable", "unreadable", "unreadable", NULL}, {"cut", "mail in part", "mails in part", NULL},
    {"malformed", "malformed record", "malformed records", NULL}};

const char *skipped_name(int kind) { return kinds[kind].one; }

/* What is packed is read by itself where its library is there, but for what is packed twice. */
const char *skipped_option(int kind) {
  const int packed = kind >= READER_GZIP && kind <= READER_ZSTD;
  return packed && !unpack_missing((unpack_kind)(UNPACK_GZIP + (kind - READER_GZIP))) ? NULL : kinds[kind].option;
}

static void add_text(byte_buf *out, const char *text) { bytes_add(out, text, strlen(text)); }

void skipped_each(const skipped_counts *counts, void (*put)(void *user, const char *key, uint64_t n), void *user) {
  for (int i = READER_BINARY; i < SKIPPED_KINDS; i++)
    if (counts->n[i]) put(user, kinds[i].key, counts->n[i]);
}

static void keep_one(void *user, const char *key, uint64_t n) {
  byte_buf *out = (byte_buf *)user;
  char number[24];
  if (out->n) bytes_char(out, '\t');
  add_text(out, key);
  (void)snprintf(number, sizeof number, "=%llu", (unsigned long long)n);
  add_text(out, number);
}

void skipped_keep(const skipped_counts *counts, byte_buf *out) { skipped_each(counts, keep_one, out); }

/* Takes one part, of n bytes, of what is kept. */
static void take_one(skipped_counts *counts, const char *part, size_t n) {
  for (int i = READER_BINARY; i < SKIPPED_KINDS; i++) {
    const size_t key = strlen(kinds[i].key);
    if (n <= key + 1 || memcmp(part, kinds[i].key, key) != 0 || part[key] != '=') continue;
    uint64_t number = 0;
    for (size_t at = key + 1; at < n; at++) {
      if (part[at] < '0' || part[at] > '9' || number > UINT64_MAX / 10 - 1) return;
      number = number * 10 + (uint64_t)(part[at] - '0');
    }
    counts->n[i] = number;
  }
}

void skipped_take(skipped_counts *counts, const char *kept) {
  memset(counts, 0, sizeof *counts);
  for (size_t n; *kept; kept += n, kept += *kept == '\t') {
    n = strcspn(kept, "\t");
    take_one(counts, kept, n);
  }
}

/* Reads the file of a live index. Without it nothing was left out. */
static void take_file(skipped_counts *counts, const char *folder) {
  char kept[KEPT_MOST + 1];
  const int at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int fd = at < 0 ? -1 : openat(at, "skipped", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  const ssize_t n = fd < 0 ? 0 : read(fd, kept, KEPT_MOST);
  kept[n > 0 ? n : 0] = 0;
  skipped_take(counts, kept);
  if (fd >= 0) (void)close(fd);
  if (at >= 0) (void)close(at);
}

void skipped_of(skipped_counts *counts, const char *path, const gpuir_index_info *info) {
  if (info->generation) take_file(counts, path);
  else skipped_take(counts, info->skipped ? info->skipped : "");
}

void skipped_say(const skipped_counts *counts, byte_buf *out) {
  const size_t begin = out->n;
  char number[TEXT_GROUPED];
  int options = 0;
  for (int i = READER_BINARY; i < SKIPPED_KINDS; i++) {
    const uint64_t n = counts->n[i];
    if (!n) continue;
    if (out->n > begin) add_text(out, ", ");
    add_text(out, text_grouped(n, number));
    bytes_char(out, ' ');
    add_text(out, n == 1 ? kinds[i].one : kinds[i].many);
  }
  for (int i = READER_BINARY; i < SKIPPED_KINDS; i++) {
    if (!counts->n[i] || !skipped_option(i)) continue;
    add_text(out, options++ ? ", " : "; options that read more: ");
    add_text(out, skipped_option(i));
  }
}
