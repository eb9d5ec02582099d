/* 44_inversion.c - documents on their way into the builder: counts, stop words, tokenizers, refusals, cancellation,
 * memory */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "alloc.h"
#include "rng.h"
#include "collection.h"
#include "stored.h"

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
  assert_int_equal(gpuir_index_get_info(ix, &info), 0);
  assert_int_equal(info.documents, ndocs);
  assert_int_equal(info.postings, nposts);
  assert_int_equal(info.tokens, ntokens);
  assert_string_equal(info.description, "generated");
  assert_string_equal(info.analyzer, "basic");
  assert_true(info.k1 == 0.9f && info.b == 0.4f);
  while (at < nposts) {
    gpuir_term_info t;
    gpuir_cursor *c;
    uint64_t cf = 0, found;
    uint32_t df = 0, len = posts[at].len;
    const char *w = posts[at].word;
    assert_int_equal(gpuir_term_get_info(ix, id, &t), 0);
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
    char name[16], copy[16], *text;
    size_t len;
    assert_int_equal(gpuir_doc_get(ix, i, &got), 0);
    assert_int_equal(got.name_len, sprintf(name, "doc%u", i));
    assert_int_equal(gpuir_doc_name(&got, copy, sizeof copy), got.name_len);
    assert_memory_equal(copy, name, got.name_len);
    if (docs[i].counted) continue;
    text = stored_text(ix, i, &len);
    assert_int_equal(len, docs[i].len);
    if (docs[i].len) assert_memory_equal(text, docs[i].text, docs[i].len);
    free(text);
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
      for (i = 0; i < n; i++) assert_int_equal(gpuir_builder_add_text(b, NULL, i % 2 ? NULL : "", 0, &err), 0);
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
  assert_string_equal(gpuir__only(ix)->meta.stop_words, "the of");
  assert_int_equal(gpuir_term_find(ix, "of", 2, &id), GPUIR_E_NOT_FOUND);
  assert_int_equal(gpuir_term_find(ix, "spain", 5, &id), 0);
  gpuir_close(ix);
}

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

/* Terms that collide without a seed do not with a builder's, which is another one for each. */
static void test_chosen_terms(void **state) {
  enum { WANTED = 400, SLOTS = 4096 };
  static uint8_t taken[SLOTS];
  gpuir_builder_desc d = desc_of(path);
  gpuir_builder *b, *other;
  gpuir_error err;
  char beside[96];
  uint32_t i, found = 0, spread = 0;
  (void)state;
  if (gpuir_builder_create(&d, &b, &err)) fail_msg("%s", err.msg);
  path_of(beside, "y.gpuir");
  d.path = beside;
  if (gpuir_builder_create(&d, &other, &err)) fail_msg("%s", err.msg);
  assert_true(b->set.seed != other->set.seed);
  assert_true(b->threads.workers[0].table.seed == b->set.seed);
  for (i = 0; found < WANTED; i++) {
    char term[16];
    const size_t n = (size_t)sprintf(term, "%u", i);
    uint8_t *slot;
    if (XXH3_64bits(term, n) % SLOTS) continue;
    found++;
    slot = &taken[XXH3_64bits_withSeed(term, n, b->set.seed) % SLOTS];
    spread += !*slot;
    *slot = 1;
  }
  assert_true(spread > WANTED / 2);
  gpuir_builder_destroy(other);
  gpuir_builder_destroy(b);
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
  assert_int_equal(gpuir_builder_add_text(b, NULL, text + 256, 256, &err), 0); /* nothing else */
  assert_int_equal(gpuir_builder_add_text(b, NULL, "", 0, &err), 0);
  if (gpuir_builder_write(b, &r, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
  assert_int_equal(r.dropped_tokens, 2);
  assert_int_equal(r.lost_documents, 1);
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

static void test_failing_allocator(void **state) {
  gpuir_builder_desc d = desc_of(path);
  gpuir_allocator a;
  gpuir_error err;
  alloc_book f;
  char *before;
  size_t n = 0;
  int threads, forever;
  (void)state;
  empty_folder();
  memset(&f, 0, sizeof f);
  a = alloc_from(&f);
  d.allocator = &a;
  d.memory = 1 << 20;
  assert_int_equal(build(&d, 3500, NULL, &err), 0);
  assert_int_equal(f.bytes, 0);
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
        assert_int_equal(f.bytes, 0);
        if (f.calls >= i) assert_int_equal(status, GPUIR_E_NOMEM); /* with threads the number of calls varies */
        assert_int_equal(nfiles(folder), 1);
        if (status) assert_int_equal(err.code, status);
        assert_same_file(path, before, n);
      }
    }
  }
  free(before);
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
      assert_null(strstr(err.msg, "process")); /* it may be this one, as here */
      assert_null(strstr(gpuir_strerror(GPUIR_E_BUSY), "process"));
      for (i = 0; i < n; i++) assert_int_equal(add_doc(b, i, &err), 0);
      gpuir_builder_destroy(b);
      assert_int_equal(nfiles(folder), 0);
    }
  }
}

static void test_sort(void **state) {
  enum { N = 5000 };
  gpuir__worker w;
  uint64_t *pairs = (uint64_t *)malloc(2 * N * sizeof *pairs);
  unsigned depth, n, i;
  (void)state;
  memset(&w, 0, sizeof w);
  w.table.arena = (uint8_t *)malloc(N * 320);
  for (depth = 0; depth < 60; depth += 1 + depth / 2) {
    for (n = 0; n <= N; n = n * 2 + 1) {
      uint64_t at = 8, sum = 0;
      for (i = 0; i < n; i++) {
        gpuir__term *t = gpuir__worker_term(&w, at);
        char text[300];
        size_t len = word(text, below(1u << 28));
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
  free(w.table.arena);
  free(pairs);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_counts),
      cmocka_unit_test(test_zero_and_empty),
      cmocka_unit_test(test_stop_words),
      cmocka_unit_test(test_arguments),
      cmocka_unit_test(test_chosen_terms),
      cmocka_unit_test(test_refused_documents),
      cmocka_unit_test(test_tokenizer),
      cmocka_unit_test(test_cancel),
      cmocka_unit_test(test_failing_allocator),
      cmocka_unit_test(test_busy_and_destroy),
      cmocka_unit_test(test_sort),
  };
  return cmocka_run_group_tests_name("44_inversion", tests, set_up, tear_down);
}
