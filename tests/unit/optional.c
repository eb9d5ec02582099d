/* optional.c - optional terms: AND does not ask for them, and a document's score is the sum over all terms that it
 * holds, in every mode; against OR and the texts themselves, of one segment and several, with deletions, phrases and
 * negation */
#define _POSIX_C_SOURCE 200809L
#include "gpuir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "rng.h"

enum { DOCS = 3000, WORDS = 12, SIZE = 300 };

/* Blanks part words; in a query, '?' begins an optional one. */
static int optional(void *user, const char *text, size_t len, int query, gpuir_place_fn emit, void *sink) {
  size_t i = 0;
  int status = 0;
  (void)user;
  while (i < len && !status) {
    const size_t start = i;
    unsigned advance = 1;
    while (i < len && text[i] != ' ' && !(i > start && text[i] == '?')) i++;
    if (i > start && query && text[start] == '?') advance = 0;
    if (i > start) status = emit(sink, text + start + !advance, i - start - !advance, advance);
    if (i < len && text[i] == ' ') i++;
  }
  return status;
}

static char texts[DOCS][SIZE];

/* Word w stands in about one of 1.6^w documents. */
static void make_texts(void) {
  rng r = {3};
  size_t d;
  for (d = 0; d < DOCS; d++) {
    size_t n = 1 + rng_below(&r, 30), i, len = 0;
    for (i = 0; i < n; i++) {
      unsigned w = 0;
      while (w < WORDS - 1 && rng_below(&r, 8) < 5) w++;
      len += (size_t)snprintf(texts[d] + len, SIZE - len, "%sw%u", i ? " " : "", w);
    }
  }
}

static int holds(const char *text, const char *word) {
  char padded[SIZE + 4], wanted[64];
  (void)snprintf(padded, sizeof padded, " %s ", text);
  (void)snprintf(wanted, sizeof wanted, " %s ", word);
  return strstr(padded, wanted) != NULL;
}

static void folder_of(char *folder, size_t cap) { (void)snprintf(folder, cap, "/tmp/optional-%ld", (long)getpid()); }

/* A live index of all texts in several segments, every seventh of which is deleted. */
static gpuir_live *live_of(gpuir_index **ix) {
  gpuir_live_desc ld;
  gpuir_live *live;
  gpuir_error err;
  char folder[64], name[16];
  size_t d;
  folder_of(folder, sizeof folder);
  memset(&ld, 0, sizeof ld);
  ld.settings.path = folder;
  ld.settings.analyzer.analyzer = "optional";
  ld.settings.analyzer.tokenize_places = optional;
  ld.settings.positions = 1;
  ld.settings.dense = 100; /* optional terms beside such lists, and among them */
  ld.create = 1;
  if (gpuir_live_open(&ld, &live, &err)) fail_msg("%s", err.msg);
  for (d = 0; d < DOCS; d++) {
    gpuir_doc_desc dd;
    memset(&dd, 0, sizeof dd);
    dd.name = name;
    dd.name_len = (size_t)sprintf(name, "%u", (unsigned)d);
    if (gpuir_live_add(live, &dd, texts[d], strlen(texts[d]), &err)) fail_msg("%s", err.msg);
    if (d % 900 == 899 && gpuir_live_commit(live, &err)) fail_msg("%s", err.msg);
  }
  for (d = 0; d < DOCS; d += 7) {
    (void)sprintf(name, "%u", (unsigned)d);
    if (gpuir_live_delete(live, GPUIR_BY_NAME, name, strlen(name), NULL, &err)) fail_msg("%s", err.msg);
  }
  if (gpuir_live_refresh(live, ix, &err)) fail_msg("%s", err.msg);
  return live;
}

static gpuir_index *index_of(int positions) {
  gpuir_builder_desc bd;
  gpuir_open_desc od;
  gpuir_builder *b;
  gpuir_index *ix;
  gpuir_error err;
  char path[64];
  size_t d;
  (void)snprintf(path, sizeof path, "/tmp/optional-%ld.gpuir", (long)getpid());
  memset(&bd, 0, sizeof bd);
  bd.path = path;
  bd.analyzer.analyzer = "optional";
  bd.analyzer.tokenize_places = optional;
  bd.positions = positions;
  if (gpuir_builder_create(&bd, &b, &err)) fail_msg("%s", err.msg);
  for (d = 0; d < DOCS; d++) assert_int_equal(gpuir_builder_add_text(b, NULL, texts[d], strlen(texts[d]), &err), 0);
  if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
  memset(&od, 0, sizeof od);
  od.tokenize_places = optional;
  if (gpuir_open(path, &od, &ix, &err)) fail_msg("%s", err.msg);
  (void)unlink(path);
  return ix;
}

static gpuir_query *parse(gpuir_index *ix, const char *text, int mode) {
  gpuir_query_desc qd;
  gpuir_query *q;
  gpuir_error err;
  memset(&qd, 0, sizeof qd);
  qd.mode = mode;
  if (gpuir_query_parse(ix, &qd, text, strlen(text), &q, &err)) fail_msg("%s: %s", text, err.msg);
  return q;
}

/* A query: its required and excluding words, and a phrase of two or none. */
typedef struct asked {
  char text[400];
  char required[4][8], excluded[2][8], phrase[16];
  unsigned nrequired, noptional, nexcluded;
} asked;

static void ask(asked *a, rng *r) {
  unsigned i;
  size_t len = 0;
  memset(a, 0, sizeof *a);
  a->nrequired = 1 + rng_below(r, 3);
  a->noptional = rng_below(r, 5);
  a->nexcluded = rng_below(r, 3) == 0;
  for (i = 0; i < a->nrequired; i++) {
    const unsigned w = rng_below(r, rng_below(r, 2) ? WORDS : 4);
    (void)sprintf(a->required[i], "w%u", w);
    len += (size_t)sprintf(a->text + len, "w%u ", w);
  }
  if (len) len--; /* optional ones stand in the last word: it has a required one */
  for (i = 0; i < a->noptional; i++) {
    len += (size_t)sprintf(a->text + len, "?w%u", (unsigned)rng_below(r, WORDS + 1)); /* the last one no text has */
  }
  if (a->nexcluded) {
    const unsigned w = 5 + rng_below(r, 4);
    (void)sprintf(a->excluded[0], "w%u", w);
    len += (size_t)sprintf(a->text + len, " -w%u", w);
  }
  if (!rng_below(r, 4)) {
    const unsigned v = rng_below(r, 4), w = rng_below(r, 4);
    (void)sprintf(a->phrase, "w%u w%u", v, w);
    (void)sprintf(a->text + len, " \"w%u w%u\"", v, w);
  }
}

static int matches(const asked *a, const char *text) {
  unsigned i;
  for (i = 0; i < a->nrequired; i++)
    if (!holds(text, a->required[i])) return 0;
  for (i = 0; i < a->nexcluded; i++)
    if (holds(text, a->excluded[i])) return 0;
  return !a->phrase[0] || holds(text, a->phrase);
}

static const char *text_of(gpuir_index *ix, uint32_t docid) {
  gpuir_doc doc;
  char name[16];
  if (gpuir_doc_get(ix, docid, &doc) || !doc.name_len) return texts[docid];
  (void)gpuir_doc_name(&doc, name, sizeof name);
  return texts[atoi(name)];
}

static size_t run(gpuir_searcher *s, gpuir_index *ix, const asked *a, int mode, gpuir_hit *hits, size_t k) {
  gpuir_query *q = parse(ix, a->text, mode);
  size_t n;
  assert_int_equal(gpuir_search(s, q, hits, k, &n), 0);
  gpuir_query_destroy(q);
  return n;
}

/* AND's hits are those of OR's that match, with the same scores; its count is their number; so says explain. */
static void check(gpuir_index *ix, gpuir_searcher *s, const asked *a) {
  static gpuir_hit all[DOCS], hits[DOCS];
  static const size_t ks[] = {0, 1, 10, DOCS};
  static gpuir_explanation x;
  const size_t n = run(s, ix, a, GPUIR_OR, all, DOCS);
  gpuir_query *q;
  uint64_t count;
  size_t i, m = 0, k;
  for (i = 0; i < n; i++)
    if (matches(a, text_of(ix, all[i].docid))) all[m++] = all[i];
  for (k = 0; k < sizeof ks / sizeof *ks; k++) {
    const size_t want = m < ks[k] ? m : ks[k], got = run(s, ix, a, GPUIR_AND, hits, ks[k]);
    if (got != want || memcmp(hits, all, got * sizeof *hits) != 0)
      fail_msg("%s: k %u: %u hits of %u", a->text, (unsigned)ks[k], (unsigned)got, (unsigned)want);
  }
  if (m >= 10) {
    assert_int_equal(run(s, ix, a, GPUIR_ANDOR, hits, 10), 10);
    assert_memory_equal(hits, all, 10 * sizeof *hits);
  }
  q = parse(ix, a->text, GPUIR_AND);
  assert_int_equal(gpuir_count(s, q, &count), 0);
  assert_int_equal(count, m);
  for (i = 0; i < n && i < 5; i++) {
    assert_int_equal(gpuir_explain(s, q, all[i].docid, &x), 0);
    assert_int_equal(x.matches, i < m || matches(a, text_of(ix, all[i].docid)));
    if (i < m) assert_int_equal(x.score, all[i].score);
  }
  gpuir_query_destroy(q);
}

static void check_many(gpuir_index *ix, int evaluator, uint64_t seed, int phrases) {
  const int rounds = getenv("GPUIR_LONG") ? 5000 : 300;
  gpuir_searcher_desc sd;
  gpuir_searcher *s;
  rng r = {seed};
  int i;
  memset(&sd, 0, sizeof sd);
  sd.evaluator = evaluator;
  if (gpuir_searcher_create(ix, &sd, &s, NULL)) return; /* GPUIR_NO_LAB */
  for (i = 0; i < rounds; i++) {
    asked a;
    ask(&a, &r);
    if (phrases || !a.phrase[0]) check(ix, s, &a);
  }
  gpuir_searcher_destroy(s);
}

static void test_file(void **state) {
  gpuir_index *ix = index_of(1);
  (void)state;
  check_many(ix, GPUIR_EVAL_AUTO, 1, 1);
  check_many(ix, GPUIR_EVAL_EXHAUSTIVE, 2, 1);
  gpuir_close(ix);
  ix = index_of(0);
  check_many(ix, GPUIR_EVAL_AUTO, 3, 0);
  gpuir_close(ix);
}

static void test_live(void **state) {
  char command[128], folder[64];
  gpuir_index *ix;
  gpuir_live *live = live_of(&ix);
  (void)state;
  check_many(ix, GPUIR_EVAL_AUTO, 4, 1);
  check_many(ix, GPUIR_EVAL_EXHAUSTIVE, 5, 1);
  gpuir_close(ix);
  gpuir_live_close(live);
  folder_of(folder, sizeof folder);
  (void)snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

/* A query needs a required term; of too many terms the optional ones go; a term that is both is required. */
static void test_query(void **state) {
  gpuir_index *ix = index_of(0);
  gpuir_query *q;
  gpuir_searcher *s;
  gpuir_error err;
  static gpuir_explanation x;
  char text[2000] = "w0";
  size_t len, i, n;
  const char *term;
  (void)state;
  assert_int_equal(gpuir_query_parse(ix, NULL, "?w0 -w1", 7, &q, &err), GPUIR_E_QUERY);
  assert_int_equal(gpuir_searcher_create(ix, NULL, &s, &err), 0);
  for (i = 0, len = 2; i < 100; i++) len += (size_t)sprintf(text + len, "?o%u", (unsigned)i);
  for (i = 1; i < 60; i++) len += (size_t)sprintf(text + len, " r%u", (unsigned)i);
  q = parse(ix, text, GPUIR_AND);
  assert_int_equal(gpuir_explain(s, q, 0, &x), 0);
  assert_int_equal(x.nterms, 64); /* the last optional ones made room */
  assert_string_equal(x.terms[60].term, "o0");
  for (i = 0; i < 64; i++) assert_int_equal(x.terms[i].optional, i >= 60);
  assert_int_equal(gpuir_query_unknown(q, 58, &term, &n), 0); /* optional ones are not asked for */
  assert_int_equal(gpuir_query_unknown(q, 59, &term, &n), GPUIR_E_NOT_FOUND);
  gpuir_query_destroy(q);
  for (i = 60; i < 65; i++) len += (size_t)sprintf(text + len, " r%u", (unsigned)i);
  assert_int_equal(gpuir_query_parse(ix, NULL, text, len, &q, &err), GPUIR_E_TERMS);
  q = parse(ix, "w1?w0 w0", GPUIR_AND);
  assert_int_equal(gpuir_explain(s, q, 0, &x), 0);
  assert_int_equal(x.nterms, 2);
  assert_int_equal(x.terms[1].q, 2);
  assert_int_equal(x.terms[0].optional | x.terms[1].optional, 0);
  gpuir_query_destroy(q);
  gpuir_searcher_destroy(s);
  gpuir_close(ix);
}

static int setup(void **state) {
  (void)state;
  make_texts();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_file),
      cmocka_unit_test(test_live),
      cmocka_unit_test(test_query),
  };
  return cmocka_run_group_tests_name("optional", tests, setup, NULL);
}
