/* fuzz_table.c - reads damaged tables of the files that a live index follows
 *
 *   make build/fuzz/fuzz_table && mkdir -p build/corpus-table
 *   build/fuzz/fuzz_table -max_total_time=60 -max_len=65536 -timeout=20 build/corpus-table
 *
 * Inputs begin as a table of a few files. The mutator damages fields of its head and of its rows, repeats rows, leaves
 * some out and moves them; its checksum is right afterwards. A table that is accepted is found row by row, and is the
 * same when it was written and read again. What is refused is refused in words. */
#define _GNU_SOURCE /* as tools.h wants it */
#include "private.h"
#include "structure.h"

#include "tools.h"

#include "tools/cli/files.c"
#include "tools/cli/trust.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

enum { HEAD = sizeof(table_head), ROW = sizeof(table_row), PATHS = 20 };

/* ---- mutations ---- */

static void scramble(uint8_t *bytes, size_t n, void *user) {
  (void)user;
  (void)LLVMFuzzerMutate(bytes, n, n);
}

/* Makes the table that inputs begin with. */
static size_t make_table(uint8_t *to, size_t most) {
  cli_files f;
  cli_buf out = {NULL, 0, 0};
  memset(&f, 0, sizeof f);
  f.content = 7;
  for (unsigned i = 0; i < PATHS; i++) {
    char path[64];
    const int n = snprintf(path, sizeof path, "/folder/%0*u.txt", (int)(1 + i % 40), i);
    cli_file *file = cli_files_add(&f, path, (size_t)n);
    file->size = i * 100;
    file->hash = i;
    file->racy = i % 3 == 0;
    file->stale = i % 5 == 0;
  }
  lay_out(&f, &out);
  const size_t n = out.n < most ? out.n : most;
  memcpy(to, out.p, n);
  cli_buf_free(&out);
  cli_files_free(&f);
  return n;
}

/* Returns where a row begins, and how long it is with its path; 0 bytes: there is none. */
static size_t row_at(const uint8_t *data, size_t size, uint64_t number, size_t *n) {
  size_t at = HEAD;
  table_row row;
  for (*n = 0; size >= 8 && at + ROW <= size - 8; at += *n) {
    memcpy(&row, data + at, ROW);
    *n = ROW + (size_t)row.length;
    if (*n > size - 8 - at) break;
    if (!number--) return at;
  }
  *n = 0;
  return at;
}

/* Repeats a row elsewhere, or leaves it out, and says so in the head or does not. Returns the new size. */
static size_t move_row(structure *s, uint8_t *data, size_t size, size_t most) {
  size_t n, other;
  const size_t at = row_at(data, size, structure_below(s, PATHS), &n),
               to = row_at(data, size, structure_below(s, PATHS), &other);
  uint64_t rows;
  if (!n || !other) return size;
  memcpy(&rows, data + offsetof(table_head, rows), 8);
  if (structure_below(s, 2)) {
    memmove(data + at, data + at + n, size - at - n);
    size -= n;
    rows--;
  } else if (size + n <= most) {
    uint8_t row[ROW + 4096];
    if (n > sizeof row) return size;
    memcpy(row, data + at, n);
    memmove(data + to + n, data + to, size - to);
    memcpy(data + to, row, n);
    size += n;
    rows++;
  }
  if (structure_below(s, 8)) memcpy(data + offsetof(table_head, rows), &rows, 8);
  return size;
}

/* Damages a field of a row, or a byte of its path. */
static void damage_row(structure *s, uint8_t *data, size_t size) {
  size_t n;
  const size_t at = row_at(data, size, structure_below(s, PATHS), &n);
  if (!n) return;
  if (structure_below(s, 3)) structure_field(s, data + at, ROW, structure_below(s, 2) ? 4 : 8);
  else structure_field(s, data + at + ROW, n - ROW, 1);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  structure s = {data, size, seed, scramble, NULL};
  uint64_t times, hash;
  if (seed % 32 == 0) return LLVMFuzzerMutate(data, size, most);
  if (size < HEAD + 8 || seed % 64 == 1) size = make_table(data, most);
  if (size < HEAD + 8) return size;
  for (times = 1 + structure_below(&s, 4); times; times--) {
    switch (structure_below(&s, 4)) {
    case 0: structure_field(&s, data + sizeof magic, HEAD - sizeof magic, structure_below(&s, 2) ? 4 : 8); break;
    case 1: damage_row(&s, data, size); break;
    default: size = move_row(&s, data, size, most);
    }
  }
  if (structure_below(&s, 16)) memcpy(data + sizeof magic, "\1\0\0\0", 4); /* the format */
  hash = XXH3_64bits(data, size - 8);
  memcpy(data + size - 8, &hash, 8);
  return size;
}

/* ---- the test ---- */

static void check(int holds) {
  if (!holds) abort();
}

/* Compares two tables, of which the second one is sorted. */
static void compare(const cli_files *a, const cli_files *b) {
  check(a->n == b->n && a->content == b->content && a->format == b->format && a->hidden == b->hidden);
  check(a->follow == b->follow && a->no_ignore == b->no_ignore && a->no_names == b->no_names);
  for (size_t i = 0; i < a->n; i++) {
    const cli_file *x = &a->list[i], *y = &b->list[i];
    check(!strcmp(x->source, y->source) && x->size == y->size && x->inode == y->inode && x->mtime == y->mtime);
    check(x->ctime == y->ctime && x->hash == y->hash && x->racy == y->racy && x->stale == y->stale);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  cli_files f, again;
  cli_buf out = {NULL, 0, 0};
  char *exact = (char *)malloc(size ? size : 1);
  const char *wrong;
  if (!exact) return 0;
  if (size) memcpy(exact, data, size);
  memset(&f, 0, sizeof f);
  memset(&again, 0, sizeof again);
  wrong = parse(&f, exact, size);
  free(exact);
  if (wrong) {
    check(wrong[0] != 0);
    cli_files_free(&f);
    return 0;
  }
  for (size_t i = 0; i < f.n; i++) {
    const cli_file *row = cli_files_find(&f, f.list[i].source);
    check(row && !strcmp(row->source, f.list[i].source));
  }
  lay_out(&f, &out); /* sorts the rows */
  check(!parse(&again, out.p, out.n));
  compare(&f, &again);
  cli_buf_free(&out);
  cli_files_free(&again);
  cli_files_free(&f);
  return 0;
}
