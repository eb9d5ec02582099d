/* The builder: same bytes for any threads and memory, exact counts, bad arguments, and every way to fail. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>

/* The library's allocation of files, which a signal interrupts as often as is said here. */
static int interruptions;

static int interrupted_fallocate(int fd, off_t from, off_t n) {
  if (!interruptions) return posix_fallocate(fd, from, n);
  interruptions--;
  return EINTR;
}

#define posix_fallocate interrupted_fallocate
#define GPUIR_STATIC
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <cmocka.h>

static char folder[64];
static char path[96]; /* folder/x.gpuir */

static void path_of(char *out, const char *name) { (void)snprintf(out, 96, "%s/%s", folder, name); }

/* ---- a generated collection ---- */

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

static uint64_t rng = 1;
static uint32_t rnd(uint32_t n) {
  rng ^= rng << 13;
  rng ^= rng >> 7;
  rng ^= rng << 17;
  return (uint32_t)((rng >> 16) % n);
}

/* Word number r: of any length from 1 to 255, some with long common prefixes. */
static size_t word(char *out, uint32_t r) {
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

static int compare_posts(const void *x, const void *y) {
  const posting *a = (const posting *)x, *b = (const posting *)y;
  int c = memcmp(a->word, b->word, a->len < b->len ? a->len : b->len);
  if (!c) c = (int)a->len - (int)b->len;
  return c ? c : a->doc < b->doc ? -1 : a->doc > b->doc;
}

/* The words of a document as sorted counted terms; the caller frees. */
static size_t count_doc(uint32_t d, posting **out) {
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
    if (m && compare_posts(&v[m - 1], &v[i]) == 0)
      v[m - 1].tf++;
    else
      v[m++] = v[i];
  }
  *out = v;
  return m;
}

static void generate(uint32_t n) {
  uint32_t d, i;
  size_t cap = 0;
  ndocs = n;
  docs = (doc *)calloc(n, sizeof *docs);
  for (d = 0; d < n; d++) {
    uint32_t words = d % 13 == 5 ? 0 : rnd(40), many = 0;
    char *p;
    if (d % 3001 == 3000) words = 30000;
    if (d == 1500) words = many = 60000; /* 30,000 distinct words, each again after all: a spill cuts it */
    p = docs[d].text = (char *)malloc((size_t)words * 40 + 70000);
    for (i = 0; i < words; i++) {
      uint32_t r = rnd(100) < 30 ? rnd(10) : rnd(100) < 70 ? rnd(500) : rnd(40000);
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

static int add_doc(gpuir_builder *b, uint32_t d, gpuir_error *err) {
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

static gpuir_builder_desc desc_of(const char *p) {
  gpuir_builder_desc d;
  memset(&d, 0, sizeof d);
  d.path = p;
  d.threads = 2;
  d.memory = 1 << 20;
  return d;
}

/* Builds the first n documents. */
static int build(const gpuir_builder_desc *d, uint32_t n, gpuir_build_report *report, gpuir_error *err) {
  gpuir_builder *b;
  uint32_t i;
  int status = gpuir_builder_create(d, &b, err);
  if (status) return status;
  for (i = 0; i < n && !status; i++) status = add_doc(b, i, err);
  if (!status) status = gpuir_builder_write(b, report, err);
  gpuir_builder_destroy(b);
  return status;
}

static char *slurp(const char *p, size_t *n) {
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

static void assert_same_file(const char *p, const char *data, size_t n) {
  size_t m = 0;
  char *other = slurp(p, &m);
  assert_non_null(other);
  assert_int_equal(n, m);
  assert_memory_equal(data, other, n);
  free(other);
}

/* The number of files in the folder. */
static int nfiles(const char *where) {
  DIR *dir = opendir(where);
  struct dirent *e;
  int n = 0;
  assert_non_null(dir);
  while ((e = readdir(dir))) n += e->d_name[0] != '.';
  (void)closedir(dir);
  return n;
}

static void empty_folder(void) {
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

/* ---- what is written ---- */

static void test_same_bytes(void **state) {
  static const unsigned threads[] = {1, 2, 5};
  static const uint64_t memory[] = {1, 8, 512};
  size_t n = 0, i, j;
  char *first = NULL;
  gpuir_error err;
  (void)state;
  for (i = 0; i < 3; i++) {
    for (j = 0; j < 3; j++) {
      gpuir_builder_desc d = desc_of(path);
      gpuir_build_report r;
      d.threads = threads[i];
      d.memory = memory[j] << 20;
      d.simd = (int)((i + j) % 4);
      if (build(&d, ndocs, &r, &err)) fail_msg("%s", err.msg);
      assert_int_equal(r.documents, ndocs);
      assert_int_equal(r.postings, nposts);
      assert_int_equal(r.tokens, ntokens);
      assert_int_equal(r.text_bytes, text_bytes);
      assert_true(r.peak_memory > 0);
      if (memory[j] == 1) assert_true(r.runs > threads[i]);
      if (first) {
        assert_same_file(path, first, n);
      } else {
        first = slurp(path, &n);
        assert_non_null(first);
      }
      assert_int_equal(r.file_bytes, n);
      assert_int_equal(nfiles(folder), 1);
    }
  }
  free(first);
}

static void test_counts(void **state) {
  gpuir_builder_desc d = desc_of(path);
  gpuir_index *ix;
  gpuir_index_info info;
  gpuir_error err;
  size_t at = 0;
  uint64_t id = 0;
  uint32_t i;
  (void)state;
  d.store_text = 1;
  d.description = "generated";
  if (build(&d, ndocs, NULL, &err)) fail_msg("%s", err.msg);
  if (gpuir_open(path, NULL, &ix, &err)) fail_msg("%s", err.msg);
  if (gpuir_verify(ix, &err)) fail_msg("%s", err.msg);
  assert_int_equal(gpuir_index_stats(ix, &info), 0);
  assert_int_equal(info.documents, ndocs);
  assert_int_equal(info.postings, nposts);
  assert_int_equal(info.tokens, ntokens);
  assert_string_equal(info.description, "generated");
  assert_string_equal(info.analyzer, "ascii");
  assert_true(info.k1 == 0.9f && info.b == 0.4f);
  while (at < nposts) {
    gpuir_term_info t;
    gpuir_cursor *c;
    uint64_t cf = 0, found;
    uint32_t df = 0, len = posts[at].len;
    const char *w = posts[at].word;
    assert_int_equal(gpuir_term_stats(ix, id, &t), 0);
    assert_int_equal(t.term_len, len);
    assert_memory_equal(t.term, w, len);
    assert_int_equal(gpuir_term_find(ix, w, len, &found), 0);
    assert_int_equal(found, id);
    assert_int_equal(gpuir_cursor_open(ix, id, &c, &err), 0);
    for (; at < nposts && posts[at].len == len && !memcmp(posts[at].word, w, len); at++) {
      assert_int_equal(gpuir_cursor_docid(c), posts[at].doc);
      assert_int_equal(gpuir_cursor_tf(c), posts[at].tf);
      (void)gpuir_cursor_next(c);
      cf += posts[at].tf;
      df++;
    }
    assert_int_equal(gpuir_cursor_docid(c), GPUIR_END);
    gpuir_cursor_close(c);
    assert_int_equal(t.df, df);
    assert_int_equal(t.cf, cf);
    id++;
  }
  assert_int_equal(info.terms, id);
  for (i = 0; i < ndocs; i++) {
    gpuir_doc got;
    char name[16];
    assert_int_equal(gpuir_doc_get(ix, i, &got), 0);
    assert_int_equal(got.name_len, sprintf(name, "doc%u", i));
    assert_memory_equal(got.name, name, got.name_len);
    if (docs[i].counted) continue;
    assert_int_equal(got.text_len, docs[i].len);
    if (docs[i].len) assert_memory_equal(got.text, docs[i].text, docs[i].len);
  }
  gpuir_close(ix);
}

static void test_zero_and_empty(void **state) {
  unsigned threads, n;
  (void)state;
  for (threads = 1; threads <= 2; threads++) {
    for (n = 0; n <= 200000; n = n ? n * 200000 : 1) {
      gpuir_builder_desc d = desc_of(path);
      gpuir_builder *b;
      gpuir_build_report r;
      gpuir_index *ix;
      gpuir_error err;
      unsigned i;
      d.threads = threads;
      assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
      for (i = 0; i < n; i++)
        assert_int_equal(gpuir_builder_add_text(b, NULL, i % 2 ? NULL : "", 0, &err), 0);
      if (gpuir_builder_write(b, &r, &err)) fail_msg("%s", err.msg);
      gpuir_builder_destroy(b);
      assert_int_equal(r.documents, n);
      assert_int_equal(r.terms, 0);
      if (gpuir_open(path, NULL, &ix, &err)) fail_msg("%s", err.msg);
      if (gpuir_verify(ix, &err)) fail_msg("%s", err.msg);
      gpuir_close(ix);
    }
  }
}

static void test_stop_words(void **state) {
  gpuir_builder_desc d = desc_of(path);
  gpuir_builder *b;
  gpuir_build_report r;
  gpuir_index *ix;
  gpuir_error err;
  uint64_t id;
  (void)state;
  d.threads = 0;
  d.memory = 0;
  d.analyzer.stop_words = " the\n\t of ";
  assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
  assert_int_equal(gpuir_builder_add_text(b, NULL, "the king of spain", 17, &err), 0);
  assert_int_equal(gpuir_builder_write(b, &r, &err), 0);
  gpuir_builder_destroy(b);
  assert_int_equal(r.tokens, 2);
  assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
  assert_string_equal(ix->stop_words, "the of");
  assert_int_equal(gpuir_term_find(ix, "of", 2, &id), GPUIR_E_NOT_FOUND);
  assert_int_equal(gpuir_term_find(ix, "spain", 5, &id), 0);
  gpuir_close(ix);
}

/* ---- arguments ---- */

static void refuse(const gpuir_builder_desc *d, int code, const char *word_in_message) {
  gpuir_builder *b = (gpuir_builder *)(void *)folder;
  gpuir_error err;
  memset(&err, 0, sizeof err);
  assert_int_equal(gpuir_builder_create(d, &b, &err), code);
  assert_int_equal(gpuir_builder_create(d, &b, NULL), code);
  assert_null(b);
  assert_int_equal(err.code, code);
  if (!strstr(err.msg, word_in_message)) fail_msg("'%s' lacks '%s'", err.msg, word_in_message);
  assert_int_equal(nfiles(folder), 0);
}

static void test_arguments(void **state) {
  gpuir_builder_desc d = desc_of(NULL);
  gpuir_error err;
  (void)state;
  empty_folder();
  assert_int_equal(gpuir_builder_create(&d, NULL, &err), GPUIR_E_ARGUMENT);
  refuse(NULL, GPUIR_E_ARGUMENT, "path");
  refuse(&d, GPUIR_E_ARGUMENT, "path");
  d.path = "";
  refuse(&d, GPUIR_E_ARGUMENT, "path");
  d.path = "/nonexistent/folder/x";
  refuse(&d, GPUIR_E_IO, "x.tmp");
  d.path = path;
  d.custom_bm25 = 1;
  d.k1 = -1;
  refuse(&d, GPUIR_E_ARGUMENT, "k1");
  d.k1 = 1000.5f;
  refuse(&d, GPUIR_E_ARGUMENT, "k1");
  d.k1 = (float)NAN;
  refuse(&d, GPUIR_E_ARGUMENT, "k1");
  d.k1 = 1.2f;
  d.b = 1.01f;
  refuse(&d, GPUIR_E_ARGUMENT, "b must");
  d.b = (float)NAN;
  refuse(&d, GPUIR_E_ARGUMENT, "b must");
  d.custom_bm25 = 0;
  d.codec = "zip9";
  refuse(&d, GPUIR_E_UNSUPPORTED, "zip9");
  d.codec = NULL;
  d.codec = "qs:5";
  refuse(&d, GPUIR_E_ARGUMENT, "0.25 to 4");
  d.codec = "pfd-list:5";
  refuse(&d, GPUIR_E_ARGUMENT, "0 to 4");
  d.codec = "vbyte:2";
  refuse(&d, GPUIR_E_ARGUMENT, "no parameter");
  d.codec = "auto:1.5";
  refuse(&d, GPUIR_E_ARGUMENT, "0 to 1");
  d.codec = NULL;
  d.freq_codec = "zip8";
  refuse(&d, GPUIR_E_UNSUPPORTED, "zip8");
  d.freq_codec = "auto:fast";
  refuse(&d, GPUIR_E_ARGUMENT, "auto:fast");
  d.freq_codec = NULL;
  d.analyzer.analyzer = "klingon";
  refuse(&d, GPUIR_E_ARGUMENT, "klingon");
  d.analyzer.analyzer = NULL;
  d.analyzer.stop = "english";
  d.analyzer.stop_words = "the";
  refuse(&d, GPUIR_E_ARGUMENT, "stop");
  gpuir_builder_destroy(NULL);
}

static int add(gpuir_builder *b, const char *term, size_t len, uint32_t tf, const char *term2, uint32_t tf2,
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

/* A refused document takes no docID and leaves the builder usable. */
static void test_refused_documents(void **state) {
  static const unsigned threads[] = {1, 2};
  size_t i;
  char longest[257];
  (void)state;
  memset(longest, 'q', sizeof longest);
  for (i = 0; i < 2; i++) {
    gpuir_builder_desc d = desc_of(path);
    gpuir_builder *b;
    gpuir_error err;
    gpuir_build_report r;
    gpuir_doc_desc dd;
    gpuir_index *ix;
    gpuir_cursor *c;
    uint64_t id;
    d.threads = threads[i];
    memset(&dd, 0, sizeof dd);
    assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
    assert_int_equal(add(b, "one", 3, 1, "two", 2, &err), 0);
    assert_int_equal(add(b, "", 0, 1, "two", 2, &err), GPUIR_E_ARGUMENT);
    assert_int_equal(add(b, NULL, 3, 1, "two", 2, &err), GPUIR_E_ARGUMENT);
    assert_int_equal(add(b, longest, 256, 1, "two", 2, &err), GPUIR_E_ARGUMENT);
    assert_non_null(strstr(err.msg, "256"));
    assert_int_equal(add(b, "one", 3, 0, "two", 2, &err), GPUIR_E_ARGUMENT);
    assert_int_equal(add(b, "one", 3, 1, "one", 2, &err), GPUIR_E_ARGUMENT);
    assert_non_null(strstr(err.msg, "same"));
    assert_int_equal(add(b, "one", 3, UINT32_MAX, "two", 1, &err), GPUIR_E_ARGUMENT);
    assert_int_equal(gpuir_builder_add_terms(b, NULL, NULL, 1, &err), GPUIR_E_ARGUMENT);
    assert_int_equal(gpuir_builder_add_text(b, NULL, NULL, 1, &err), GPUIR_E_ARGUMENT);
    dd.name_len = 3;
    assert_int_equal(gpuir_builder_add_text(b, &dd, "x", 1, &err), GPUIR_E_ARGUMENT);
    dd.name_len = 0;
    dd.source_len = 3;
    assert_int_equal(gpuir_builder_add_terms(b, &dd, NULL, 0, &err), GPUIR_E_ARGUMENT);
    assert_int_equal(add(b, longest, 255, UINT32_MAX, NULL, 0, &err), 0);
    assert_int_equal(add(b, "a\0b", 3, 7, "a", 1, &err), 0); /* any bytes */
    assert_int_equal(gpuir_builder_add_text(b, NULL, "two", 3, &err), 0);
    assert_int_equal(gpuir_builder_add_text(NULL, NULL, "two", 3, &err), GPUIR_E_ARGUMENT);
    if (gpuir_builder_write(b, &r, &err)) fail_msg("%s", err.msg);
    assert_int_equal(r.documents, 4);
    assert_int_equal(r.terms, 5);
    assert_int_equal(r.tokens, 3 + (uint64_t)UINT32_MAX + 8 + 1);
    assert_int_equal(gpuir_builder_add_text(b, NULL, "two", 3, &err), GPUIR_E_ARGUMENT);
    assert_int_equal(gpuir_builder_write(b, &r, &err), GPUIR_E_ARGUMENT);
    gpuir_builder_destroy(b);
    if (gpuir_open(path, NULL, &ix, &err)) fail_msg("%s", err.msg);
    if (gpuir_verify(ix, &err)) fail_msg("%s", err.msg);
    assert_int_equal(gpuir_term_find(ix, "a\0b", 3, &id), 0);
    assert_int_equal(gpuir_term_find(ix, "two", 3, &id), 0);
    assert_int_equal(gpuir_cursor_open(ix, id, &c, &err), 0);
    assert_int_equal(gpuir_cursor_docid(c), 0);
    assert_int_equal(gpuir_cursor_tf(c), 2);
    assert_int_equal(gpuir_cursor_next(c), 3);
    gpuir_cursor_close(c);
    gpuir_close(ix);
  }
}

/* ---- tokenizers ---- */

/* Cuts at blanks; "!N" makes it answer N, and "?" makes it ignore what emit says. */
static int by_blanks(void *user, const char *text, size_t len, gpuir_token_fn emit, void *sink) {
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

static void test_tokenizer(void **state) {
  static const int answers[] = {5, -1, -100, GPUIR_E_CANCELLED, GPUIR_E_NOMEM};
  gpuir_builder_desc d = desc_of(path);
  gpuir_builder *b;
  gpuir_build_report r;
  gpuir_error err;
  char text[600];
  size_t i;
  (void)state;
  d.analyzer.tokenize = by_blanks;
  d.analyzer.analyzer = "blanks";
  assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
  memset(text, 'w', sizeof text);
  text[255] = text[512] = ' '; /* 255, 256 and 87 bytes */
  assert_int_equal(gpuir_builder_add_text(b, NULL, text, sizeof text, &err), 0);
  if (gpuir_builder_write(b, &r, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
  assert_int_equal(r.dropped_tokens, 1);
  assert_int_equal(r.tokens, 2);
  for (i = 0; i < sizeof answers / sizeof answers[0]; i++) {
    int n = sprintf(text, "a b !%d", answers[i]);
    int want = answers[i] == GPUIR_E_NOMEM ? GPUIR_E_NOMEM : GPUIR_E_CANCELLED;
    int status;
    assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
    assert_int_equal(gpuir_builder_add_text(b, NULL, text, (size_t)n, &err), 0);
    status = gpuir_builder_write(b, &r, &err);
    assert_int_equal(status, want);
    assert_int_equal(err.code, want);
    assert_int_equal(gpuir_builder_add_text(b, NULL, text, (size_t)n, &err), want); /* it stays failed */
    assert_int_equal(gpuir_builder_write(b, &r, &err), want);
    gpuir_builder_destroy(b);
  }
}

/* ---- from postings ---- */

/* Makes d's index from the documents and lists of another. */
static int rebuild(const gpuir_builder_desc *d, const gpuir_index *ix, gpuir_build_report *report,
                   gpuir_error *err) {
  gpuir_builder *b;
  gpuir_index_info info;
  uint32_t i, *lists;
  uint64_t t;
  int status = gpuir_builder_create(d, &b, err);
  if (status) return status;
  assert_int_equal(gpuir_index_stats(ix, &info), 0);
  lists = (uint32_t *)malloc((size_t)info.documents * 8 + 8);
  for (i = 0; i < info.documents && !status; i++) {
    gpuir_doc old;
    gpuir_doc_desc dd;
    assert_int_equal(gpuir_doc_get(ix, i, &old), 0);
    dd.name = old.name;
    dd.name_len = old.name_len;
    dd.source = old.source;
    dd.source_len = old.source_len;
    dd.first_line = old.first_line;
    dd.last_line = old.last_line;
    status = gpuir_builder_add_doc(b, &dd, old.length, old.text, old.text_len, err);
  }
  for (t = 0; t < info.terms && !status; t++) {
    gpuir_term_info term;
    assert_int_equal(gpuir_term_stats(ix, t, &term), 0);
    assert_int_equal(gpuir_term_postings(ix, t, lists, lists + term.df), 0);
    status = gpuir_builder_add_list(b, term.term, term.term_len, lists, lists + term.df, term.df, err);
  }
  if (!status) status = gpuir_builder_write(b, report, err);
  gpuir_builder_destroy(b);
  free(lists);
  return status;
}

/* An index that is made from another's postings has its bytes. */
static void test_from_postings(void **state) {
  static const unsigned threads[] = {1, 2, 5};
  static const uint64_t memory[] = {1, 512};
  gpuir_builder_desc d = desc_of(path), like;
  gpuir_build_report r;
  gpuir_index *ix;
  gpuir_error err;
  char copy[96], *first;
  size_t n = 0, i, j;
  (void)state;
  empty_folder();
  d.store_text = 1;
  d.custom_bm25 = 1;
  d.k1 = 1.2f;
  d.b = 0.75f;
  d.codec = "vbyte";
  d.description = "words";
  d.order = "by hand";
  d.analyzer.stop_words = "10 11";
  if (build(&d, ndocs, &r, &err)) fail_msg("%s", err.msg);
  first = slurp(path, &n);
  assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
  path_of(copy, "copy.gpuir");
  like = desc_of(copy);
  like.like = ix;
  like.store_text = 1;
  for (i = 0; i < 3; i++) {
    for (j = 0; j < 2; j++) {
      gpuir_build_report again;
      like.threads = threads[i];
      like.memory = memory[j] << 20;
      if (rebuild(&like, ix, &again, &err)) fail_msg("%s", err.msg);
      assert_same_file(copy, first, n);
      assert_int_equal(again.documents, r.documents);
      assert_int_equal(again.terms, r.terms);
      assert_int_equal(again.postings, r.postings);
      assert_int_equal(again.tokens, r.tokens);
      assert_int_equal(again.file_bytes, r.file_bytes);
      assert_int_equal(nfiles(folder), 2);
    }
  }
  like.codec = "bp128"; /* what is given wins */
  like.description = "other";
  like.order = "another";
  if (rebuild(&like, ix, &r, &err)) fail_msg("%s", err.msg);
  gpuir_close(ix);
  assert_int_equal(gpuir_open(copy, NULL, &ix, &err), 0);
  if (gpuir_verify(ix, &err)) fail_msg("%s", err.msg);
  {
    gpuir_index_info info;
    assert_int_equal(gpuir_index_stats(ix, &info), 0);
    assert_string_equal(info.codec, "bp128");
    assert_string_equal(info.description, "other");
    assert_string_equal(info.order, "another");
    assert_true(info.k1 > 1.19f && info.b > 0.74f);
  }
  gpuir_close(ix);
  free(first);
  empty_folder();
}

/* No documents, documents without lists, and what is no list. */
static void test_refused_postings(void **state) {
  static const uint32_t one[] = {0, 2, 1}, two[] = {0, 1, 2}, tfs[] = {1, 2, 3}, none[] = {1, 0, 1};
  gpuir_builder_desc d = desc_of(path);
  gpuir_builder *b;
  gpuir_build_report r;
  gpuir_error err;
  gpuir_index *ix;
  char longest[257];
  uint32_t out[3];
  (void)state;
  memset(longest, 'q', sizeof longest);
  assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
  assert_int_equal(gpuir_builder_add_list(b, "a", 1, two, tfs, 1, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_text(b, NULL, "x", 1, &err), 0);
  assert_int_equal(gpuir_builder_add_doc(b, NULL, 1, NULL, 0, &err), GPUIR_E_ARGUMENT);
  assert_non_null(strstr(err.msg, "text"));
  gpuir_builder_destroy(b);
  assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
  assert_int_equal(gpuir_builder_add_doc(b, NULL, 7, NULL, 0, &err), 0);
  assert_int_equal(gpuir_builder_add_doc(b, NULL, 8, "text that is not stored", 4, &err), 0);
  assert_int_equal(gpuir_builder_add_doc(b, NULL, 9, NULL, 0, &err), 0);
  assert_int_equal(gpuir_builder_add_text(b, NULL, "x", 1, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(add(b, "one", 3, 1, "two", 2, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_list(b, "a", 1, one, tfs, 3, &err), GPUIR_E_ARGUMENT);
  assert_non_null(strstr(err.msg, "ascend"));
  assert_int_equal(gpuir_builder_add_list(b, "a", 1, two, none, 3, &err), GPUIR_E_ARGUMENT);
  assert_non_null(strstr(err.msg, "tf 0"));
  assert_int_equal(gpuir_builder_add_list(b, "a", 1, tfs, tfs, 3, &err), GPUIR_E_ARGUMENT);
  assert_non_null(strstr(err.msg, "no document"));
  assert_int_equal(gpuir_builder_add_list(b, "a", 1, two, tfs, 0, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_list(b, "a", 1, NULL, tfs, 1, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_list(b, "", 0, two, tfs, 1, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_list(b, longest, 256, two, tfs, 1, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_list(b, "b", 1, two, tfs, 3, &err), 0);
  assert_int_equal(gpuir_builder_add_list(b, "b", 1, two, tfs, 3, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_list(b, "ab", 2, two, tfs, 3, &err), GPUIR_E_ARGUMENT);
  assert_non_null(strstr(err.msg, "'ab'"));
  assert_int_equal(gpuir_builder_add_list(b, longest, 255, two, tfs, 2, &err), 0);
  assert_int_equal(gpuir_builder_add_doc(b, NULL, 1, NULL, 0, &err), GPUIR_E_ARGUMENT);
  if (gpuir_builder_write(b, &r, &err)) fail_msg("%s", err.msg);
  assert_int_equal(gpuir_builder_add_list(b, "z", 1, two, tfs, 1, &err), GPUIR_E_ARGUMENT);
  gpuir_builder_destroy(b);
  assert_int_equal(r.documents, 3);
  assert_int_equal(r.terms, 2);
  assert_int_equal(r.postings, 5);
  assert_int_equal(r.tokens, 24);
  assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
  assert_int_equal(gpuir_verify(ix, &err), 0);
  assert_int_equal(gpuir_term_postings(ix, 0, out, NULL), 0);
  assert_memory_equal(out, two, sizeof two);
  assert_int_equal(gpuir_term_postings(ix, 0, NULL, out), 0);
  assert_memory_equal(out, tfs, sizeof tfs);
  assert_int_equal(gpuir_term_postings(ix, 2, out, NULL), GPUIR_E_NOT_FOUND);
  assert_int_equal(gpuir_term_postings(NULL, 0, out, NULL), GPUIR_E_ARGUMENT);
  gpuir_close(ix);
  assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
  assert_int_equal(gpuir_builder_add_doc(b, NULL, 0, NULL, 0, &err), 0);
  if (gpuir_builder_write(b, &r, &err)) fail_msg("%s", err.msg);
  assert_int_equal(r.documents, 1);
  gpuir_builder_destroy(b);
}

/* An analyzer that nobody here has does not keep an index from being copied, only texts from being added. */
static void test_like_foreign(void **state) {
  gpuir_builder_desc d = desc_of(path), like;
  gpuir_builder *b;
  gpuir_index *ix;
  gpuir_error err;
  char copy[96];
  (void)state;
  d.analyzer.analyzer = "blanks";
  d.analyzer.tokenize = by_blanks;
  if (build(&d, 100, NULL, &err)) fail_msg("%s", err.msg);
  assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
  path_of(copy, "copy.gpuir");
  like = desc_of(copy);
  like.like = ix;
  assert_int_equal(gpuir_builder_create(&like, &b, &err), 0);
  assert_int_equal(gpuir_builder_add_text(b, NULL, "x", 1, &err), GPUIR_E_UNSUPPORTED);
  gpuir_builder_destroy(b);
  if (rebuild(&like, ix, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_close(ix);
  empty_folder();
}

static void assert_order(const char *expected) {
  gpuir_index *ix;
  gpuir_index_info info;
  gpuir_error err;
  if (gpuir_open(path, NULL, &ix, &err)) fail_msg("%s", err.msg);
  assert_int_equal(gpuir_index_stats(ix, &info), 0);
  assert_string_equal(info.order, expected);
  gpuir_close(ix);
}

/* Writes the bytes anew, `from` replaced by `to` of the same length; the table's checksums are not gpuir_open's. */
static void assert_patched_order(char *bytes, size_t n, const char *from, const char *to,
                                 const char *expected) {
  size_t len = strlen(from), at = 0;
  FILE *f;
  assert_int_equal(strlen(to), len);
  while (at < n - len && memcmp(bytes + at, from, len)) at++;
  assert_true(at < n - len);
  memcpy(bytes + at, to, len);
  (void)unlink(path);
  f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
  assert_order(expected);
}

/* What an index says of its documents' order; one that says nothing, or too much, has an unknown one. */
static void test_order(void **state) {
  static const char longest[] = "123456789012345678901234567890123456789012345678901234567890123";
  gpuir_builder_desc d = desc_of(path);
  gpuir_builder *b;
  gpuir_error err;
  char more[GPUIR__ORDER_MAX + 2], *bytes;
  size_t n = 0;
  (void)state;
  assert_int_equal(build(&d, 3, NULL, &err), 0);
  assert_order("unknown");
  d.order = "";
  assert_int_equal(build(&d, 3, NULL, &err), 0);
  assert_order("unknown");
  d.order = "one\ncodec=two";
  assert_int_equal(build(&d, 3, NULL, &err), 0);
  assert_order("one codec=two");
  (void)snprintf(more, sizeof more, "%s4", longest);
  d.order = more;
  assert_int_equal(gpuir_builder_create(&d, &b, &err), GPUIR_E_ARGUMENT);
  d.order = longest;
  assert_int_equal(build(&d, 3, NULL, &err), 0);
  assert_order(longest);
  bytes = slurp(path, &n);
  assert_patched_order(bytes, n, "123\n", "123=", "unknown"); /* its line has no end */
  free(bytes);
  d.description = "-3456";
  assert_int_equal(build(&d, 3, NULL, &err), 0);
  bytes = slurp(path, &n);
  assert_patched_order(bytes, n, "-3456\norder=1", "-3456=order=1", "unknown");
  assert_patched_order(bytes, n, "description=-3456=order=", "order===================", "unknown");
  free(bytes);
  empty_folder();
}

/* ---- failures ---- */

typedef struct watch {
  uint64_t calls, stop_at;
} watch;

static int watch_progress(void *user, const gpuir_progress *p) {
  watch *w = (watch *)user;
  assert_true(p->postings_done <= p->postings_total);
  return ++w->calls == w->stop_at;
}

static void test_cancel(void **state) {
  gpuir_builder_desc d = desc_of(path);
  gpuir_error err;
  gpuir_build_report r;
  watch w;
  uint64_t total, i;
  char *before;
  size_t n = 0;
  (void)state;
  empty_folder();
  w.calls = w.stop_at = 0;
  d.progress = watch_progress;
  d.progress_user = &w;
  assert_int_equal(build(&d, ndocs, &r, &err), 0);
  total = w.calls;
  assert_true(total > 5);
  total -= total / 4; /* how many units there are varies a little with the runs */
  before = slurp(path, &n);
  for (i = 1; i <= total; i += 1 + total / 5) {
    w.calls = 0;
    w.stop_at = i;
    assert_int_equal(build(&d, ndocs, &r, &err), GPUIR_E_CANCELLED);
    assert_int_equal(err.code, GPUIR_E_CANCELLED);
    assert_int_equal(w.calls, i);
    assert_int_equal(nfiles(folder), 1);
    assert_same_file(path, before, n);
  }
  free(before);
}

/* Fails the n-th call, and with `forever` those after it. */
typedef struct failing {
  int64_t live, calls, fail_at;
  int forever;
} failing;

static void *failing_resize(void *user, void *ptr, size_t old_size, size_t new_size) {
  failing *f = (failing *)user;
  void *p;
  if (!new_size) {
    (void)__atomic_sub_fetch(&f->live, (int64_t)old_size, __ATOMIC_RELAXED);
    free(ptr);
    return NULL;
  }
  {
    int64_t call = __atomic_add_fetch(&f->calls, 1, __ATOMIC_RELAXED);
    if (f->fail_at && (call == f->fail_at || (f->forever && call > f->fail_at))) return NULL;
  }
  p = realloc(ptr, new_size);
  if (p) (void)__atomic_add_fetch(&f->live, (int64_t)new_size - (int64_t)old_size, __ATOMIC_RELAXED);
  return p;
}

static void test_failing_allocator(void **state) {
  gpuir_builder_desc d = desc_of(path);
  gpuir_allocator a;
  gpuir_error err;
  failing f;
  char *before;
  size_t n = 0;
  int threads, forever;
  (void)state;
  empty_folder();
  memset(&f, 0, sizeof f);
  a.resize = failing_resize;
  a.user = &f;
  d.allocator = &a;
  d.memory = 1 << 20;
  assert_int_equal(build(&d, 3500, NULL, &err), 0);
  assert_int_equal(f.live, 0);
  before = slurp(path, &n);
  for (threads = 1; threads <= 3; threads += 2) {
    int64_t total, i;
    d.threads = (unsigned)threads;
    f.calls = f.fail_at = 0;
    assert_int_equal(build(&d, 3500, NULL, &err), 0);
    total = f.calls;
    for (forever = 0; forever < 2; forever++) {
      for (i = 1; i <= total; i += i < 60 ? 1 : 1 + total / 60) {
        int status;
        f.calls = 0;
        f.fail_at = i;
        f.forever = forever;
        status = build(&d, 3500, NULL, &err);
        assert_int_equal(f.live, 0);
        if (f.calls >= i)
          assert_int_equal(status, GPUIR_E_NOMEM); /* with threads the number of calls varies */
        assert_int_equal(nfiles(folder), 1);
        if (status) assert_int_equal(err.code, status);
        assert_same_file(path, before, n);
      }
    }
  }
  free(before);
}

/* The same while an index is made from postings. */
static void test_failing_rebuild(void **state) {
  gpuir_builder_desc d = desc_of(path);
  gpuir_allocator a;
  gpuir_index *ix;
  gpuir_error err;
  failing f;
  char copy[96];
  int64_t total, i;
  (void)state;
  empty_folder();
  assert_int_equal(build(&d, 2000, NULL, &err), 0);
  assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
  memset(&f, 0, sizeof f);
  a.resize = failing_resize;
  a.user = &f;
  path_of(copy, "copy.gpuir");
  d = desc_of(copy);
  d.allocator = &a;
  d.like = ix;
  for (d.threads = 1; d.threads <= 3; d.threads += 2) {
    f.calls = f.fail_at = 0;
    assert_int_equal(rebuild(&d, ix, NULL, &err), 0);
    assert_int_equal(f.live, 0);
    (void)unlink(copy);
    total = f.calls;
    for (i = 1; i <= total; i += i < 60 ? 1 : 1 + total / 60) {
      int status;
      f.calls = 0;
      f.fail_at = i;
      status = rebuild(&d, ix, NULL, &err);
      assert_int_equal(f.live, 0);
      if (f.calls >= i) assert_int_equal(status, GPUIR_E_NOMEM);
      if (status) assert_int_equal(err.code, status);
      (void)unlink(copy);
      assert_int_equal(nfiles(folder), 1);
    }
  }
  gpuir_close(ix);
  empty_folder();
}

/* Every file size at which the disk could refuse. */
static void test_file_size_limit(void **state) {
  gpuir_builder_desc d = desc_of(path);
  struct rlimit old, limit;
  gpuir_error err;
  char *before;
  size_t n = 0, i;
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  (void)state;
  empty_folder();
  assert_int_equal(build(&d, 3500, NULL, &err), 0);
  before = slurp(path, &n);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  for (d.threads = 1; d.threads <= 2; d.threads++) {
    for (i = 1; i < 24; i++) {
      int status;
      limit = old;
      limit.rlim_cur = (rlim_t)(n * i / 24);
      assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
      status = build(&d, 3500, NULL, &err);
      assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
      assert_int_equal(status, GPUIR_E_IO);
      assert_non_null(strstr(err.msg, "x.gpuir.tmp"));
      assert_int_equal(nfiles(folder), 1);
      assert_same_file(path, before, n);
    }
  }
  free(before);
  (void)signal(SIGXFSZ, handler);
}

static void test_interrupted(void **state) {
  gpuir_builder_desc d = desc_of(path);
  gpuir_error err;
  unsigned large;
  (void)state;
  for (large = 0; large < 2; large++) { /* temporary files in place of memory, or none */
    if (large) d.memory = 0;
    interruptions = 3;
    if (build(&d, 6000, NULL, &err)) fail_msg("%s", err.msg);
    assert_int_equal(interruptions, 0);
  }
  (void)unlink(path);
}

static void test_full_disk(void **state) {
  char where[96], index[128] = "";
  gpuir_builder_desc d = desc_of(index);
  gpuir_error err;
  int kb, ok = 0, full = 0;
  (void)state;
  path_of(where, "disk");
  (void)snprintf(index, sizeof index, "%s/x.gpuir", where);
  (void)mkdir(where, 0700);
  for (kb = 64; kb <= 65536; kb += kb / 2) {
    char options[32];
    int status;
    (void)snprintf(options, sizeof options, "size=%dk", kb);
    if (mount("tmpfs", where, "tmpfs", 0, options)) {
      (void)rmdir(where);
      print_message("skipped: cannot mount a tmpfs: %s\n", strerror(errno));
      skip();
    }
    status = build(&d, 6000, NULL, &err);
    if (status) {
      full++;
      if (status == GPUIR_E_IO && nfiles(where) == 0 && strstr(err.msg, "No space left")) status = -1000;
    } else {
      ok++;
    }
    (void)umount(where);
    if (status && status != -1000) fail_msg("%d KB: %d %s", kb, status, err.msg);
  }
  (void)rmdir(where);
  assert_true(ok && full > 3);
}

static void test_busy_and_destroy(void **state) {
  unsigned threads;
  (void)state;
  empty_folder();
  for (threads = 1; threads <= 3; threads++) {
    uint32_t n;
    for (n = 0; n < ndocs; n = n * 3 + 1) {
      gpuir_builder_desc d = desc_of(path);
      gpuir_builder *b, *other;
      gpuir_error err;
      uint32_t i;
      d.threads = threads;
      assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
      assert_int_equal(gpuir_builder_create(&d, &other, &err), GPUIR_E_BUSY);
      for (i = 0; i < n; i++) assert_int_equal(add_doc(b, i, &err), 0);
      gpuir_builder_destroy(b);
      assert_int_equal(nfiles(folder), 0);
    }
  }
}

/* A build that is killed leaves PATH.tmp and, if it was about to unlink one, a temporary file. The next
 * build removes both. */
static void test_killed(void **state) {
  int ms;
  (void)state;
  empty_folder();
  for (ms = 1; ms < 300; ms += 1 + ms / 2) {
    pid_t child = fork();
    gpuir_builder_desc d = desc_of(path);
    struct timespec t;
    int n, status;
    assert_true(child >= 0);
    if (!child) {
      for (;;) (void)build(&d, ndocs, NULL, NULL);
    }
    t.tv_sec = 0;
    t.tv_nsec = ms * 1000000l;
    (void)nanosleep(&t, NULL);
    (void)kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    n = nfiles(folder);
    assert_true(n <= 3);
  }
  {
    static const char *const left[] = {"x.gpuir.tmp", "x.gpuir.tmp.0", "x.gpuir.tmp.1000",
                                       "x.gpuir.tmp.1300"};
    gpuir_builder_desc d = desc_of(path);
    gpuir_error err;
    size_t i;
    for (i = 0; i < sizeof left / sizeof left[0]; i++) {
      char p[96];
      FILE *f;
      path_of(p, left[i]);
      f = fopen(p, "w");
      assert_non_null(f);
      (void)fclose(f);
    }
    if (build(&d, 100, NULL, &err)) fail_msg("%s", err.msg);
    assert_int_equal(nfiles(folder), 1);
  }
}

/* ---- inner parts ---- */

static void test_sort(void **state) {
  enum { N = 5000 };
  gpuir__worker w;
  uint64_t *pairs = (uint64_t *)malloc(2 * N * sizeof *pairs);
  unsigned depth, n, i;
  (void)state;
  memset(&w, 0, sizeof w);
  w.arena = (uint8_t *)malloc(N * 320);
  for (depth = 0; depth < 60; depth += 1 + depth / 2) {
    for (n = 0; n <= N; n = n * 2 + 1) {
      uint64_t at = 8, sum = 0;
      for (i = 0; i < n; i++) {
        gpuir__term *t = gpuir__worker_term(&w, at);
        char text[300];
        size_t len = word(text, rnd(1u << 28));
        memset(gpuir__term_text(t), 0, 8);
        t->len = (uint8_t)len;
        memcpy(gpuir__term_text(t), text, len);
        pairs[2 * i] = gpuir__prefix_of(gpuir__term_text(t), len);
        pairs[2 * i + 1] = at;
        sum += at;
        at += 320;
      }
      gpuir__pairs_sort(&w, pairs, n, depth);
      for (i = 0; i < n; i++) sum -= pairs[2 * i + 1];
      assert_int_equal(sum, 0);
      for (i = 1; i < n; i++) assert_true(gpuir__term_compare(&w, pairs[2 * i - 1], pairs[2 * i + 1]) <= 0);
      if (n * 2 + 1 > N) break;
    }
  }
  free(w.arena);
  free(pairs);
}

static void test_area(void **state) {
  gpuir_allocator a = gpuir__allocator(NULL);
  gpuir__area area = {NULL, 0, 0};
  gpuir_error err;
  char missing[96];
  (void)state;
  path_of(missing, "missing/area");
  assert_int_equal(gpuir__area_need(&a, &area, 100, 1000, path, 1, &err), 0);
  assert_false(area.mapped);
  memset(area.data, 1, 100);
  assert_int_equal(gpuir__area_need(&a, &area, 100000, 1000, path, 1, &err), 0);
  assert_true(area.mapped);
  memset(area.data, 1, 100000);
  assert_int_equal(gpuir__area_need(&a, &area, 1000000, 1000, missing, 1, &err), GPUIR_E_IO);
  assert_null(area.data);
  assert_int_equal(gpuir__area_need(&a, &area, UINT64_MAX, 1000, path, 1, &err), GPUIR_E_NOMEM);
  gpuir__area_free(&a, &area);
}

/* One word in every document, more often than memory for its postings allows: the list is made in a file. */
static void test_long_list(void **state) {
  gpuir_builder_desc d = desc_of(path);
  unsigned threads;
  char *first = NULL;
  size_t n = 0;
  (void)state;
  for (threads = 1; threads <= 3; threads++) {
    gpuir_builder *b;
    gpuir_build_report r;
    gpuir_error err;
    uint32_t i;
    d.threads = threads;
    assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
    for (i = 0; i < 300000; i++) {
      char text[40];
      int len = sprintf(text, i % 5 ? "all %u" : "all all all %u", i % 1000);
      assert_int_equal(gpuir_builder_add_text(b, NULL, text, (size_t)len, &err), 0);
    }
    if (gpuir_builder_write(b, &r, &err)) fail_msg("%s", err.msg);
    gpuir_builder_destroy(b);
    assert_int_equal(r.postings, 600000);
    assert_int_equal(r.terms, 1001);
    if (first) {
      assert_same_file(path, first, n);
    } else {
      gpuir_index *ix;
      first = slurp(path, &n);
      assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
      assert_int_equal(gpuir_verify(ix, &err), 0);
      gpuir_close(ix);
    }
  }
  free(first);
}

/* ---- codecs ---- */

/* The postings of every term, held against the collection's. */
static void assert_postings(gpuir_index *ix) {
  gpuir_error err;
  size_t at = 0;
  uint64_t id;
  for (id = 0; at < nposts; id++) {
    gpuir_cursor *c;
    const posting *first = &posts[at];
    assert_int_equal(gpuir_cursor_open(ix, id, &c, &err), 0);
    for (; at < nposts && posts[at].len == first->len && !memcmp(posts[at].word, first->word, first->len);
         at++) {
      assert_int_equal(gpuir_cursor_docid(c), posts[at].doc);
      assert_int_equal(gpuir_cursor_tf(c), posts[at].tf);
      (void)gpuir_cursor_next(c);
    }
    assert_int_equal(gpuir_cursor_docid(c), GPUIR_END);
    gpuir_cursor_close(c);
  }
}

/* Bytes of docIDs in an index of the same codec with its default parameter. */
static uint64_t plain_bytes(const char *spec) {
  gpuir_builder_desc d;
  gpuir_index *ix;
  gpuir_index_info info;
  gpuir_error err;
  char name[16], other[96];
  path_of(other, "plain.gpuir");
  d = desc_of(other);
  (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(spec, ":"), spec);
  d.codec = name;
  if (build(&d, ndocs, NULL, &err)) fail_msg("%s", err.msg);
  if (gpuir_open(other, NULL, &ix, &err)) fail_msg("%s", err.msg);
  assert_int_equal(gpuir_index_stats(ix, &info), 0);
  gpuir_close(ix);
  (void)unlink(other);
  return info.docids_bytes;
}

/* Each codec with a parameter: kept in the index as it was spelt, heeded by long and short lists, the same bytes
 * for any threads and memory. */
static void test_parameters(void **state) {
  static const char *const specs[] = {"qs:0.25",     "qs:4",          "pfd-list:0",  "pfd-list:4",
                                      "parapfor:64", "parapfor:,min", "lrc:64,0.2",  "lrcseg:128",
                                      "seglrc:,min", "hslrc:32",      "hslrc:32,min"};
  size_t i, n = 0;
  (void)state;
  for (i = 0; i < sizeof specs / sizeof *specs; i++) {
    gpuir_builder_desc d = desc_of(path);
    gpuir_index *ix;
    gpuir_index_info info;
    gpuir_error err;
    uint64_t id, longs = 0, shorts = 0;
    char *bytes;
    d.codec = specs[i];
    d.memory = 64 << 20;
    d.threads = 1;
    if (build(&d, ndocs, NULL, &err)) fail_msg("%s", err.msg);
    bytes = slurp(path, &n);
    d.memory = 1 << 20;
    d.threads = 3;
    if (build(&d, ndocs, NULL, &err)) fail_msg("%s", err.msg);
    assert_same_file(path, bytes, n);
    free(bytes);
    if (gpuir_open(path, NULL, &ix, &err)) fail_msg("%s", err.msg);
    if (gpuir_verify(ix, &err)) fail_msg("%s: %s", specs[i], err.msg);
    assert_int_equal(gpuir_index_stats(ix, &info), 0);
    assert_string_equal(info.codec, specs[i]);
    assert_string_equal(info.freq_codec, "bp128");
    assert_true(info.docids_bytes != plain_bytes(specs[i]));
    assert_postings(ix);
    for (id = 0; id < ix->stat.terms; id++) { /* what the streams say of themselves */
      const gpuir__record *r = &ix->records[id];
      const uint8_t *p;
      if (r->df == 1) continue;
      p = ix->docids + (r->df < 128 ? ix->stat.docs_short + r->docs : ix->longs[r->docs].docs);
      longs += r->df >= 128;
      shorts += r->df < 128;
      if (!strncmp(specs[i], "pfd-list:", 9)) assert_int_equal(p[0], specs[i][9] - '0' + 1);
      if (r->df < 128) continue;
      if (strstr(specs[i], "64")) assert_int_equal(p[0], 6);
      if (!strcmp(specs[i], "lrcseg:128") || !strcmp(specs[i], "parapfor:,min")) assert_int_equal(p[0], 7);
      if (!strcmp(specs[i], "seglrc:,min")) assert_int_equal(p[0], 8);
      if (!strncmp(specs[i], "qs:", 3)) {
        uint32_t last = ix->last[ix->longs[r->docs].first_block + (r->df - 1) / 128],
                 quarters = specs[i][3] == '4' ? 16 : 1;
        unsigned b = 0;
        while ((uint64_t)r->df * 4 << (b + 1) <= (uint64_t)quarters * last) b++; /* floor(log2(c u / n)) */
        assert_int_equal(p[0], b);
      }
    }
    assert_true(longs > 100 && shorts > 1000);
    gpuir_close(ix);
  }
}

/* The bytes of each list's streams in an index. */
typedef struct sizes {
  uint64_t docs, freqs;
} sizes;

static sizes *sizes_of(const char *codec, const char *freq_codec, size_t *terms) {
  gpuir_builder_desc d = desc_of(path);
  gpuir_index *ix;
  gpuir_error err;
  sizes *all;
  uint64_t id;
  d.codec = codec;
  d.freq_codec = freq_codec;
  if (build(&d, ndocs, NULL, &err)) fail_msg("%s", err.msg);
  if (gpuir_open(path, NULL, &ix, &err)) fail_msg("%s", err.msg);
  all = (sizes *)calloc(ix->stat.terms, sizeof *all);
  assert_non_null(all);
  for (id = 0; id < ix->stat.terms; id++) {
    gpuir_term_info t;
    assert_int_equal(gpuir_term_stats(ix, id, &t), 0);
    all[id].docs = t.docids_bytes;
    all[id].freqs = t.freqs_bytes;
  }
  *terms = ix->stat.terms;
  gpuir_close(ix);
  return all;
}

/* auto takes of each list the codec whose bytes, weighted by its cost, are least, the first one of equals. */
static void test_auto(void **state) {
  static const char *const specs[] = {"auto", "auto:0.3", "auto:1"};
  static const unsigned weights[] = {0, 300, 1000};
  sizes *by[GPUIR__DOCID_CODECS];
  size_t terms = 0, i, j, n = 0;
  (void)state;
  for (i = 0; i < GPUIR__DOCID_CODECS; i++)
    by[i] = sizes_of(gpuir__docid_codecs[i].name, gpuir__freq_codecs[i % GPUIR__FREQ_CODECS].name, &terms);
  for (j = 0; j < 3; j++) {
    gpuir_builder_desc d = desc_of(path);
    gpuir_codec_info mix[2][GPUIR_MAX_CODECS];
    size_t nmix[2], k;
    unsigned docids;
    gpuir_index *ix;
    gpuir_index_info info;
    gpuir_error err;
    uint64_t id;
    char *bytes;
    d.codec = d.freq_codec = specs[j];
    d.threads = 1;
    d.memory = 64 << 20;
    if (build(&d, ndocs, NULL, &err)) fail_msg("%s", err.msg);
    bytes = slurp(path, &n);
    d.threads = 3;
    d.memory = 1 << 20;
    if (build(&d, ndocs, NULL, &err)) fail_msg("%s", err.msg);
    assert_same_file(path, bytes, n);
    free(bytes);
    if (gpuir_open(path, NULL, &ix, &err)) fail_msg("%s", err.msg);
    if (gpuir_verify(ix, &err)) fail_msg("%s: %s", specs[j], err.msg);
    assert_int_equal(gpuir_index_stats(ix, &info), 0);
    assert_string_equal(info.codec, specs[j]);
    assert_string_equal(info.freq_codec, specs[j]);
    assert_int_equal(ix->stat.terms, terms);
    assert_postings(ix);
    assert_int_equal(gpuir_codec_stats(ix, 0, mix[0], &nmix[0]), 0);
    assert_int_equal(gpuir_codec_stats(ix, 1, mix[1], &nmix[1]), 0);
    assert_true(nmix[1] > 3 && nmix[0] > 1);
    for (id = 0; id < terms; id++) {
      gpuir_term_info t;
      assert_int_equal(gpuir_term_stats(ix, id, &t), 0);
      if (t.df == 1) continue;
      for (docids = 0; docids < 2; docids++) {
        const gpuir__codec *table = docids ? gpuir__docid_codecs : gpuir__freq_codecs;
        const size_t ncodecs = docids ? GPUIR__DOCID_CODECS : GPUIR__FREQ_CODECS;
        double least = 1e300; /* sums of small integers by thousandths: exact enough for an order */
        size_t best = 0;
        for (i = 0; i < ncodecs; i++) {
          double price = (double)(docids ? by[i][id].docs : by[i][id].freqs) *
                         (1.0 + weights[j] / 1000.0 * (table[i].cost / 100.0));
          if (price < least - 1e-6) {
            least = price;
            best = i;
          }
        }
        assert_string_equal(docids ? t.codec : t.freq_codec, table[best].name);
        assert_int_equal(docids ? t.docids_bytes : t.freqs_bytes,
                         docids ? by[best][id].docs : by[best][id].freqs);
        for (k = 0; k < nmix[docids] && strcmp(mix[docids][k].codec, table[best].name) != 0; k++) continue;
        assert_true(k < nmix[docids]);
        mix[docids][k].lists--;
        mix[docids][k].postings -= t.df;
        mix[docids][k].bytes -= docids ? t.docids_bytes : t.freqs_bytes;
      }
    }
    for (docids = 0; docids < 2; docids++)
      for (k = 0; k < nmix[docids]; k++)
        assert_true(!mix[docids][k].lists && !mix[docids][k].postings && !mix[docids][k].bytes);
    gpuir_close(ix);
  }
  for (i = 0; i < GPUIR__DOCID_CODECS; i++) free(by[i]);
}

/* ---- names and sources ---- */

enum { SOURCES = 3000, SOURCED = 4 * SOURCES };

/* Path number s: some are longer than what the builder reads or buffers at once. */
static size_t source_path(char *out, uint32_t s) {
  size_t pad = s % 40 == 3 ? 300 : s % 100 == 7 ? 6000 : s % 5, n = (size_t)sprintf(out, "/data/");
  memset(out + n, 'x', pad);
  n += pad;
  return n + (size_t)sprintf(out + n, "/dir/file-%u", s);
}

/* Document d's source, none for some, and its name: related to the source in all ways. */
static void sourced_doc(uint32_t d, char *source, size_t *source_len, char *name, size_t *name_len) {
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
      *name_len = GPUIR_NAME_ROOM + d % 2;
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

/* Adds every document once, by steps of `step`, which has no factor in common with their number. */
static int build_sourced(const gpuir_builder_desc *d, uint32_t step, gpuir_error *err) {
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
    status = gpuir_builder_add_text(b, &dd, "word", 4, err);
  }
  if (!status) status = gpuir_builder_write(b, NULL, err);
  gpuir_builder_destroy(b);
  return status;
}

static void assert_sourced(const gpuir_index *ix, uint32_t step) {
  static char source[8192], name[8192];
  uint32_t i;
  for (i = 0; i < SOURCED; i++) {
    size_t source_len, name_len;
    gpuir_doc got;
    assert_int_equal(gpuir_doc_get(ix, i, &got), 0);
    sourced_doc((uint32_t)((uint64_t)i * step % SOURCED), source, &source_len, name, &name_len);
    assert_int_equal(got.name_len, name_len);
    assert_memory_equal(got.name, name, name_len);
    assert_int_equal(got.source_len, source_len);
    assert_memory_equal(got.source, source, source_len);
    assert_int_equal(got.first_line, source_len ? i : 0);
  }
}

/* Each source is stored once, with each stem; returns how many there are. */
static uint64_t assert_distinct_sources(const gpuir_index *ix) {
  const uint64_t n = ix->section[GPUIR__S_SOURCE_START]->length / 8 - 1;
  uint64_t i, j;
  for (i = 0; i < n; i++) {
    size_t len, other_len;
    const char *p = gpuir__slice(ix, GPUIR__S_SOURCES, GPUIR__S_SOURCE_START, i, &len), *other;
    const uint8_t *stems = ix->map + ix->section[GPUIR__S_STEMS]->offset;
    for (j = 0; j < i; j++) {
      other = gpuir__slice(ix, GPUIR__S_SOURCES, GPUIR__S_SOURCE_START, j, &other_len);
      if (len == other_len && !memcmp(p, other, len))
        assert_memory_not_equal(stems + 4 * i, stems + 4 * j, 4);
    }
  }
  return n;
}

static void test_sources(void **state) {
  static const uint32_t steps[] = {1, 7919}; /* by source, and far from it */
  uint64_t nsources = 0;
  size_t i;
  (void)state;
  empty_folder();
  for (i = 0; i < 2; i++) {
    gpuir_builder_desc d = desc_of(path);
    gpuir_index *ix;
    gpuir_error err;
    char *bytes;
    size_t n;
    d.memory = 64 << 20;
    if (build_sourced(&d, steps[i], &err)) fail_msg("%s", err.msg);
    bytes = slurp(path, &n);
    d.memory = 1 << 20; /* the table of sources is a file then */
    if (build_sourced(&d, steps[i], &err)) fail_msg("%s", err.msg);
    assert_same_file(path, bytes, n);
    free(bytes);
    assert_int_equal(nfiles(folder), 1);
    assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
    if (gpuir_verify(ix, &err)) fail_msg("%s", err.msg);
    assert_sourced(ix, steps[i]);
    if (i) assert_int_equal(ix->section[GPUIR__S_SOURCE_START]->length / 8 - 1, nsources);
    nsources = assert_distinct_sources(ix);
    assert_true(nsources > SOURCES && nsources < 3 * SOURCES);
    gpuir_close(ix);
  }
  empty_folder();
}

/* ---- files that would make verify work long, or that no search could use ---- */

static void mend_table(char *bytes) {
  gpuir__header *h = (gpuir__header *)(void *)bytes;
  h->table_hash = XXH3_64bits(bytes + sizeof *h, h->sections * sizeof(gpuir__section));
  h->hash = XXH3_64bits(h, offsetof(gpuir__header, hash));
}

/* Writes an index with right checksums and holds what verify says of it against `why`, NULL if it is good. */
static void assert_verify(char *bytes, size_t n, const char *why) {
  gpuir__header *h = (gpuir__header *)(void *)bytes;
  gpuir__section *table = (gpuir__section *)(void *)(bytes + sizeof *h);
  gpuir_index *damaged;
  gpuir_error err;
  uint32_t i;
  FILE *f;
  char other[96];
  for (i = 0; i < h->sections; i++)
    table[i].hash = XXH3_64bits(bytes + table[i].offset, (size_t)table[i].length);
  mend_table(bytes);
  path_of(other, "damaged.gpuir");
  f = fopen(other, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
  if (gpuir_open(other, NULL, &damaged, &err)) fail_msg("%s", err.msg);
  assert_int_equal(gpuir_verify(damaged, &err), why ? GPUIR_E_FORMAT : GPUIR_OK);
  if (why && !strstr(err.msg, why)) fail_msg("'%s' instead of '%s'", err.msg, why);
  gpuir_close(damaged);
  (void)unlink(other);
}

/* Sources and stems that are none: found by verify, and refused wherever they are read. */
static void test_verify_sources(void **state) {
  gpuir_builder_desc d = desc_of(path);
  gpuir_error err;
  char *bytes, *copy;
  uint32_t i, id, value;
  size_t n = 0;
  (void)state;
  if (build_sourced(&d, 1, &err)) fail_msg("%s", err.msg);
  bytes = slurp(path, &n);
  copy = (char *)malloc(n);
  assert_non_null(copy);
  for (i = 0; i < 6; i++) {
    const gpuir__header *h = (const gpuir__header *)(const void *)copy;
    gpuir__section *table = (gpuir__section *)(void *)(copy + sizeof *h), *at[GPUIR__S_COUNT] = {NULL};
    memcpy(copy, bytes, n);
    for (id = 0; id < h->sections; id++) at[table[id].id] = &table[id];
    switch (i) {
      case 0: assert_verify(copy, n, NULL); break;
      case 1: /* a source that there is not */
        value = (uint32_t)(at[GPUIR__S_SOURCE_START]->length / 8);
        memcpy(copy + at[GPUIR__S_ORIGINS]->offset, &value, 4);
        assert_verify(copy, n, "a document's source is none");
        break;
      case 2: /* a stem behind its path */
        value = UINT32_MAX;
        memcpy(copy + at[GPUIR__S_STEMS]->offset, &value, 4);
        assert_verify(copy, n, "a document's source is none");
        break;
      case 3: /* a name that has no room: the stem is all of a path of 6,000 bytes */
        value = 1;
        memcpy(copy + at[GPUIR__S_STEMS]->offset + 7 * 4, &value, 4);
        assert_verify(copy, n, "a document's source is none");
        break;
      default: { /* too few stems, or no origins */
        gpuir_index *ix;
        FILE *f = fopen(path, "wb");
        if (i == 4)
          at[GPUIR__S_STEMS]->length -= 4;
        else
          at[GPUIR__S_ORIGINS]->id = 200;
        mend_table(copy);
        assert_non_null(f);
        assert_int_equal(fwrite(copy, 1, n, f), n);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(gpuir_open(path, NULL, &ix, &err), GPUIR_E_FORMAT);
        assert_non_null(strstr(err.msg, "stems of names do not fit the sources"));
      }
    }
  }
  free(copy);
  free(bytes);
  empty_folder();
}

static void test_verify_bounds(void **state) {
  gpuir_builder_desc d = desc_of(path);
  gpuir_index *ix;
  gpuir_error err;
  uint64_t id, long_id[3];
  size_t n = 0, longs = 0, i;
  char *bytes, *copy;
  gpuir__record *records;
  gpuir__long *extents;
  uint32_t *hash;
  (void)state;
  if (build(&d, ndocs, NULL, &err)) fail_msg("%s", err.msg);
  bytes = slurp(path, &n);
  copy = (char *)malloc(n);
  assert_non_null(copy);
  assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
  for (id = 0; id < ix->stat.terms && longs < 3; id++)
    if (ix->records[id].df >= 128) long_id[longs++] = id;
  assert_int_equal(longs, 3);
  records = (gpuir__record *)(void *)(copy + ((const uint8_t *)ix->records - ix->map));
  extents = (gpuir__long *)(void *)(copy + ((const uint8_t *)ix->longs - ix->map));
  hash = (uint32_t *)(void *)(copy + ((const uint8_t *)ix->hash - ix->map));
#define ANEW memcpy(copy, bytes, n)
  ANEW;
  assert_verify(copy, n, NULL);
  ANEW; /* two terms name one list */
  records[long_id[1]] = records[long_id[0]];
  assert_verify(copy, n, "not the next one");
  ANEW; /* or change their lists */
  id = records[long_id[1]].docs;
  records[long_id[1]].docs = records[long_id[2]].docs;
  records[long_id[2]].docs = id;
  assert_verify(copy, n, "not the next one");
  ANEW;
  records[long_id[0]].docs = ix->stat.longs;
  assert_verify(copy, n, "not the next one");
  ANEW; /* the same list, copied: it would be right by itself */
  extents[1] = extents[0];
  records[long_id[1]].df = records[long_id[0]].df;
  records[long_id[1]].idf = records[long_id[0]].idf;
  assert_verify(copy, n, "its blocks are not the next ones");
  ANEW;
  extents[1].docs = extents[0].docs;
  assert_verify(copy, n, "another one's bytes");
  ANEW;
  extents[2].freqs = extents[1].freqs;
  assert_verify(copy, n, "another one's bytes");
  /* the hash table */
  for (i = 0; hash[i]; i++) continue;
  ANEW; /* full, but for one slot */
  for (id = 0; id <= ix->hash_mask; id++)
    if (!hash[id] && id != i) hash[id] = 1;
  assert_verify(copy, n, "hash table");
  ANEW; /* full */
  for (id = 0; id <= ix->hash_mask; id++)
    if (!hash[id]) hash[id] = 1;
  assert_verify(copy, n, "hash table");
  ANEW; /* a term that is not there */
  for (id = i; !hash[id & ix->hash_mask]; id++) continue;
  hash[id & ix->hash_mask] = (uint32_t)ix->stat.terms + 1;
  assert_verify(copy, n, "hash table");
  ANEW; /* lacks one */
  hash[id & ix->hash_mask] = 0;
  assert_verify(copy, n, "hash table");
  ANEW; /* one is moved in front of its slot, where no search comes by */
  for (id = 1; id <= ix->hash_mask; id++)
    if (hash[id] && !hash[id - 1] &&
        (XXH3_64bits(gpuir__term_bytes(ix, hash[id] - 1, &i), i) & ix->hash_mask) == id)
      break;
  assert_true(id <= ix->hash_mask);
  hash[id - 1] = hash[id];
  hash[id] = 0;
  assert_verify(copy, n, "hash table");
#undef ANEW
  gpuir_close(ix);
  free(copy);
  free(bytes);
}

static int set_up(void **state) {
  const char *tmp = getenv("TMPDIR");
  (void)state;
  (void)snprintf(folder, sizeof folder, "%.40s/gpuir-XXXXXX", tmp ? tmp : "/tmp");
  if (!mkdtemp(folder)) return -1;
  path_of(path, "x.gpuir");
  generate(13000);
  return 0;
}

static int tear_down(void **state) {
  uint32_t i;
  (void)state;
  empty_folder();
  for (i = 0; i < ndocs; i++) free(docs[i].text);
  free(docs);
  free(posts);
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same_bytes),
      cmocka_unit_test(test_counts),
      cmocka_unit_test(test_zero_and_empty),
      cmocka_unit_test(test_stop_words),
      cmocka_unit_test(test_arguments),
      cmocka_unit_test(test_refused_documents),
      cmocka_unit_test(test_tokenizer),
      cmocka_unit_test(test_from_postings),
      cmocka_unit_test(test_refused_postings),
      cmocka_unit_test(test_like_foreign),
      cmocka_unit_test(test_order),
      cmocka_unit_test(test_cancel),
      cmocka_unit_test(test_failing_allocator),
      cmocka_unit_test(test_failing_rebuild),
      cmocka_unit_test(test_file_size_limit),
      cmocka_unit_test(test_interrupted),
      cmocka_unit_test(test_full_disk),
      cmocka_unit_test(test_busy_and_destroy),
      cmocka_unit_test(test_killed),
      cmocka_unit_test(test_sort),
      cmocka_unit_test(test_area),
      cmocka_unit_test(test_long_list),
      cmocka_unit_test(test_parameters),
      cmocka_unit_test(test_auto),
      cmocka_unit_test(test_sources),
      cmocka_unit_test(test_verify_sources),
      cmocka_unit_test(test_verify_bounds),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
