/* collection.h - a generated collection, indexes built of it in a folder of the test's own, and what they must hold;
 * include after gpuir.h, cmocka.h and rng.h
 */
#ifndef TESTS_COLLECTION_H
#define TESTS_COLLECTION_H

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rng.h"
#include "stored.h"

static char folder[64];
static char path[96]; /* folder/x.gpuir */

static inline void path_of(char *out, const char *name) { (void)snprintf(out, 96, "%s/%s", folder, name); }

typedef struct doc {
  char *text; /* words parted by blanks */
  size_t len;
  int counted; /* added by add_terms */
} doc;

typedef struct posting {
  const char *word;
  uint32_t len, doc, tf;
} posting;

static doc *docs;
static uint32_t ndocs;
static posting *posts; /* sorted by word and document; tf summed */
static size_t nposts;
static uint64_t text_bytes, ntokens;

/* Word number r: of any length from 1 to 255, some with long common prefixes. */
static inline size_t word(char *out, uint32_t r) {
  size_t n = (size_t)sprintf(out, "%x", r * 2654435761u >> (r % 20)), pad;
  if (r % 97 == 0) {
    pad = r % 200;
    memmove(out + pad, out, n);
    memset(out, 'a', pad);
    n += pad;
  }
  if (r % 5000 == 77) {
    memset(out + n, 'z', 255 - n);
    n = 255;
  }
  out[n] = 0;
  return n;
}

static inline int compare_posts(const void *x, const void *y) {
  const posting *a = (const posting *)x, *b = (const posting *)y;
  int c = memcmp(a->word, b->word, a->len < b->len ? a->len : b->len);
  if (!c) c = (int)a->len - (int)b->len;
  return c ? c : a->doc < b->doc ? -1 : a->doc > b->doc;
}

/* The words of a document as sorted counted terms; the caller frees. */
static inline size_t count_doc(uint32_t d, posting **out) {
  size_t n = 0, cap = 16, i, m = 0;
  const char *p = docs[d].text, *end = p + docs[d].len;
  posting *v = (posting *)malloc(cap * sizeof *v);
  while (p < end) {
    const char *q = p;
    while (q < end && *q != ' ') q++;
    if (q > p) {
      if (n == cap) v = (posting *)realloc(v, (cap *= 2) * sizeof *v);
      v[n].word = p;
      v[n].len = (uint32_t)(q - p);
      v[n].doc = d;
      v[n++].tf = 1;
    }
    p = q + (q < end);
  }
  qsort(v, n, sizeof *v, compare_posts);
  for (i = 0; i < n; i++) {
    if (m && compare_posts(&v[m - 1], &v[i]) == 0) v[m - 1].tf++;
    else v[m++] = v[i];
  }
  *out = v;
  return m;
}

static inline void generate(uint32_t n) {
  uint32_t d, i;
  size_t cap = 0;
  ndocs = n;
  docs = (doc *)calloc(n, sizeof *docs);
  for (d = 0; d < n; d++) {
    uint32_t words = d % 13 == 5 ? 0 : below(40), many = 0;
    char *p;
    if (d % 3001 == 3000) words = 30000;
    if (d == 1500) words = many = 60000; /* 30,000 distinct words, each again after all: a spill cuts it */
    p = docs[d].text = (char *)malloc((size_t)words * 40 + 70000);
    for (i = 0; i < words; i++) {
      uint32_t r = below(100) < 30 ? below(10) : below(100) < 70 ? below(500) : below(40000);
      if (many) r = 100000 + i % 30000;
      if (p - docs[d].text > (ptrdiff_t)words * 40 + 69000) break;
      p += word(p, r);
      *p++ = ' ';
    }
    docs[d].len = (size_t)(p - docs[d].text);
    docs[d].text = (char *)realloc(docs[d].text, docs[d].len + 1);
    docs[d].counted = d % 7 == 3;
    if (!docs[d].counted) text_bytes += docs[d].len;
  }
  for (d = 0; d < n; d++) {
    posting *v;
    size_t m = count_doc(d, &v), k;
    if (nposts + m > cap) posts = (posting *)realloc(posts, (cap = (nposts + m) * 2) * sizeof *posts);
    if (m) memcpy(posts + nposts, v, m * sizeof *v);
    for (k = 0; k < m; k++) ntokens += v[k].tf;
    nposts += m;
    free(v);
  }
  qsort(posts, nposts, sizeof *posts, compare_posts);
}

static inline int add_doc(gpuir_builder *b, uint32_t d, gpuir_error *err) {
  gpuir_doc_desc dd;
  char name[16], source[32];
  int status;
  memset(&dd, 0, sizeof dd);
  dd.name = name;
  dd.name_len = (size_t)sprintf(name, "doc%u", d);
  dd.source = source;
  dd.source_len = (size_t)sprintf(source, "folder/doc%u", d / 3 * 3);
  if (docs[d].counted) {
    posting *v;
    size_t n = count_doc(d, &v), i;
    gpuir_term_freq *t = (gpuir_term_freq *)malloc((n + 1) * sizeof *t);
    for (i = 0; i < n; i++) {
      t[i].term = v[i].word;
      t[i].len = v[i].len;
      t[i].tf = v[i].tf;
    }
    status = gpuir_builder_add_terms(b, &dd, t, n, err);
    free(t);
    free(v);
  } else {
    status = gpuir_builder_add_text(b, &dd, docs[d].text, docs[d].len, err);
  }
  return status;
}

static inline gpuir_builder_desc desc_of(const char *p) {
  gpuir_builder_desc d;
  memset(&d, 0, sizeof d);
  d.path = p;
  d.threads = 2;
  d.memory = 1 << 20;
  return d;
}

/* Builds the first n documents. */
static inline int build(const gpuir_builder_desc *d, uint32_t n, gpuir_build_report *report, gpuir_error *err) {
  gpuir_builder *b;
  uint32_t i;
  int status = gpuir_builder_create(d, &b, err);
  if (status) return status;
  for (i = 0; i < n && !status; i++) status = add_doc(b, i, err);
  if (!status) status = gpuir_builder_write(b, report, err);
  gpuir_builder_destroy(b);
  return status;
}

static inline char *slurp(const char *p, size_t *n) {
  FILE *f = fopen(p, "rb");
  char *data;
  if (!f) return NULL;
  (void)fseek(f, 0, SEEK_END);
  *n = (size_t)ftell(f);
  rewind(f);
  data = (char *)malloc(*n + 1);
  assert_int_equal(fread(data, 1, *n, f), *n);
  (void)fclose(f);
  return data;
}

static inline void assert_same_file(const char *p, const char *data, size_t n) {
  size_t m = 0;
  char *other = slurp(p, &m);
  assert_non_null(other);
  assert_int_equal(n, m);
  assert_memory_equal(data, other, n);
  free(other);
}

/* The number of files in the folder. */
static inline int nfiles(const char *where) {
  DIR *dir = opendir(where);
  struct dirent *e;
  int n = 0;
  assert_non_null(dir);
  while ((e = readdir(dir))) n += e->d_name[0] != '.';
  (void)closedir(dir);
  return n;
}

static inline void empty_folder(void) {
  DIR *dir = opendir(folder);
  struct dirent *e;
  char p[400];
  while ((e = readdir(dir))) {
    if (e->d_name[0] == '.') continue;
    (void)snprintf(p, sizeof p, "%s/%s", folder, e->d_name);
    (void)unlink(p);
  }
  (void)closedir(dir);
}

/* Makes d's index from the documents and lists of another. */
static inline int rebuild(const gpuir_builder_desc *d, const gpuir_index *ix, gpuir_build_report *report,
    gpuir_error *err) {
  gpuir_builder *b;
  gpuir_index_info info;
  uint32_t i, *lists, *positions;
  uint64_t t;
  int status = gpuir_builder_create(d, &b, err);
  if (status) return status;
  assert_int_equal(gpuir_index_get_info(ix, &info), 0);
  lists = (uint32_t *)malloc((size_t)info.documents * 8 + 8);
  positions = d->positions ? (uint32_t *)malloc((size_t)info.tokens * 4 + 4) : NULL;
  for (i = 0; i < info.documents && !status; i++) {
    static char name[8192];
    char *text;
    size_t len;
    gpuir_doc old;
    gpuir_doc_desc dd;
    memset(&dd, 0, sizeof dd);
    assert_int_equal(gpuir_doc_get(ix, i, &old), 0);
    (void)gpuir_doc_name(&old, name, sizeof name);
    dd.name = name;
    dd.name_len = old.name_len;
    dd.source = old.source;
    dd.source_len = old.source_len;
    dd.first_line = old.first_line;
    dd.last_line = old.last_line;
    dd.source_offset = old.source_offset;
    dd.source_bytes = old.source_bytes;
    dd.hash = old.hash;
    dd.form = old.form;
    text = stored_text(ix, i, &len);
    status = gpuir_builder_add_doc(b, &dd, old.length, text, len, err);
    free(text);
  }
  for (t = 0; t < info.terms && !status; t++) {
    gpuir_term_info term;
    assert_int_equal(gpuir_term_get_info(ix, t, &term), 0);
    assert_int_equal(gpuir_term_postings(ix, t, lists, lists + term.df), 0);
    if (positions) assert_int_equal(gpuir_term_positions(ix, t, positions, term.cf), 0);
    status = gpuir_builder_add_list(b, term.term, term.term_len, lists, lists + term.df, positions, term.df, err);
  }
  if (!status) status = gpuir_builder_write(b, report, err);
  gpuir_builder_destroy(b);
  free(lists);
  free(positions);
  return status;
}

static inline int set_up(void **state) {
  const char *tmp = getenv("TMPDIR");
  (void)state;
  (void)snprintf(folder, sizeof folder, "%.40s/gpuir-XXXXXX", tmp ? tmp : "/tmp");
  if (!mkdtemp(folder)) return -1;
  path_of(path, "x.gpuir");
  generate(13000);
  return 0;
}

static inline int tear_down(void **state) {
  uint32_t i;
  (void)state;
  empty_folder();
  for (i = 0; i < ndocs; i++) free(docs[i].text);
  free(docs);
  free(posts);
  return rmdir(folder);
}

/* The postings of every term, held against the collection's. */
static inline void assert_postings(gpuir_index *ix) {
  gpuir_error err;
  size_t at = 0;
  uint64_t id;
  for (id = 0; at < nposts; id++) {
    gpuir_cursor *c;
    const posting *first = &posts[at];
    assert_int_equal(gpuir_cursor_open(ix, id, &c, &err), 0);
    for (; at < nposts && posts[at].len == first->len && !memcmp(posts[at].word, first->word, first->len); at++) {
      assert_int_equal(gpuir_cursor_docid(c), posts[at].doc);
      assert_int_equal(gpuir_cursor_tf(c), posts[at].tf);
      (void)gpuir_cursor_next(c);
    }
    assert_int_equal(gpuir_cursor_docid(c), GPUIR_END);
    gpuir_cursor_close(c);
  }
}

static inline int add(gpuir_builder *b, const char *term, size_t len, uint32_t tf, const char *term2, uint32_t tf2,
    gpuir_error *err) {
  gpuir_term_freq t[2];
  t[0].term = term;
  t[0].len = len;
  t[0].tf = tf;
  t[1].term = term2;
  t[1].len = term2 ? strlen(term2) : 0;
  t[1].tf = tf2;
  return gpuir_builder_add_terms(b, NULL, t, term2 ? 2 : 1, err);
}

/* Cuts at blanks; "!N" makes it answer N, and "?" makes it ignore what emit says. */
static inline int by_blanks(void *user, const char *text, size_t len, gpuir_token_fn emit, void *sink) {
  size_t i = 0;
  int deaf = len && text[0] == '?';
  (void)user;
  while (i <= len) {
    size_t start = i;
    int status;
    while (i < len && text[i] != ' ') i++;
    if (i > start + 1 && text[start] == '!') {
      char number[16] = "";
      memcpy(number, text + start + 1, i - start - 1 < 15 ? i - start - 1 : 15);
      return atoi(number);
    }
    status = emit(sink, text + start, i - start); /* empty ones too */
    if (status && !deaf) return status;
    i++;
  }
  return 0;
}

/* ---- documents with sources ---- */

enum { SOURCES = 3000, SOURCED = 4 * SOURCES };

/* Path number s: some are longer than what the builder reads or buffers at once. */
static inline size_t source_path(char *out, uint32_t s) {
  size_t pad = s % 40 == 3 ? 300 : s % 100 == 7 ? 6000 : s % 5, n = (size_t)sprintf(out, "/data/");
  memset(out + n, 'x', pad);
  n += pad;
  return n + (size_t)sprintf(out + n, "/dir/file-%u", s);
}

/* Document d's source, none for some, and its name: related to the source in all ways. */
static inline void sourced_doc(uint32_t d, char *source, size_t *source_len, char *name, size_t *name_len) {
  size_t n = *source_len = source_path(source, d % SOURCES), last = n;
  while (source[last - 1] != '/') last--;
  *name_len = 0;
  switch (d / SOURCES * 3 + d % 5) { /* the documents of a source follow each other by SOURCES */
  case 0: *name_len = (size_t)sprintf(name, "%.*s:%u", (int)(n - last), source + last, d); break;
  case 1: *name_len = (size_t)sprintf(name, "dir/%.*s", (int)(n - last), source + last); break;
  case 2: *name_len = (size_t)sprintf(name, "%.*s#%u", (int)n, source, d); break;
  case 3: *name_len = (size_t)sprintf(name, "%.*s:%u", (int)(n - last - 1), source + last + 1, d); break;
  case 4: *name_len = (size_t)sprintf(name, "%.*s:", (int)(n - last - 1), source + last); break;
  case 5: *name_len = (size_t)sprintf(name, "name-%u", d); break;
  case 6:
  case 7: /* as long as there is room for, and longer by a byte */
    memcpy(name, source + last, n - last);
    *name_len = GPUIR__JOINED_MAX + d % 2;
    memset(name + (n - last), 'y', *name_len - (n - last));
    break;
  case 8: *source_len = 0; break;
  case 9:
    *source_len = 0;
    *name_len = (size_t)sprintf(name, "%.*s", (int)(n - last), source + last);
    break;
  case 10: *name_len = (size_t)sprintf(name, "%.*s", (int)n, source); break;
  default: *name_len = (size_t)sprintf(name, "file-%u", d % SOURCES + 1); break;
  }
}

/* Where in its source document i stands: near, far, as the text, as a record about it, or not known. */
static inline void sourced_place(uint32_t i, uint64_t *offset, uint64_t *bytes) {
  *offset = i % 3 ? (uint64_t)i << i % 32 : 0;
  *bytes = i % 5 ? 4 : i % 2 ? i : 0;
}

/* Some texts are the bytes at their place, and some were made of them. */
static inline uint32_t sourced_form(uint32_t i) { return i % 7 < 4 ? 0 : i % 7 * 0x1234567; }

/* Adds every document once, by steps of `step`, which has no factor in common with their number. */
static inline int build_sourced(const gpuir_builder_desc *d, uint32_t step, gpuir_error *err) {
  static char source[8192], name[8192];
  gpuir_builder *b;
  uint32_t i;
  int status = gpuir_builder_create(d, &b, err);
  if (status) return status;
  for (i = 0; i < SOURCED && !status; i++) {
    gpuir_doc_desc dd;
    memset(&dd, 0, sizeof dd);
    sourced_doc((uint32_t)((uint64_t)i * step % SOURCED), source, &dd.source_len, name, &dd.name_len);
    dd.source = source;
    dd.name = name;
    dd.first_line = i;
    dd.last_line = i % 4 ? i + i % 300 : 0;
    sourced_place(i, &dd.source_offset, &dd.source_bytes);
    dd.hash = i + 1; /* only of a record that is not the text */
    dd.form = sourced_form(i);
    status = gpuir_builder_add_text(b, &dd, "word", 4, err);
  }
  if (!status) status = gpuir_builder_write(b, NULL, err);
  gpuir_builder_destroy(b);
  return status;
}

static inline void assert_sourced(const gpuir_index *ix, uint32_t step) {
  static char source[8192], name[8192], copy[8192];
  uint32_t i;
  for (i = 0; i < SOURCED; i++) {
    size_t source_len, name_len;
    uint64_t offset, bytes;
    gpuir_doc got;
    assert_int_equal(gpuir_doc_get(ix, i, &got), 0);
    sourced_doc((uint32_t)((uint64_t)i * step % SOURCED), source, &source_len, name, &name_len);
    assert_int_equal(got.name_len, name_len);
    assert_int_equal(gpuir_doc_name(&got, copy, sizeof copy), name_len);
    assert_memory_equal(copy, name, name_len);
    assert_int_equal(got.source_len, source_len);
    assert_memory_equal(got.source, source, source_len);
    assert_int_equal(got.first_line, source_len ? i : 0);
    assert_int_equal(got.last_line, source_len && i % 4 ? i + i % 300 : 0);
    sourced_place(i, &offset, &bytes);
    assert_true(got.source_offset == (source_len ? offset : 0) && got.source_bytes == (source_len ? bytes : 0));
    assert_true(got.form == (source_len ? sourced_form(i) : 0));
    assert_true(got.hash ==
        (source_len && (offset || bytes) && (got.form || bytes != 4) ? (uint64_t)i + 1 : XXH3_64bits("word", 4)));
  }
}

#endif
