/* 51_query.c - queries: words, operators, the number of terms, whose index they are of */
#define _POSIX_C_SOURCE 200809L
#include "gpuir.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "rng.h"
#include "oracle.h"
#include "corpus.h"
#include "fixture.h"

/* One query word may make several tokens. */
static void test_query_words(void **state) {
  static const struct {
    const char *text;
    int status;
    unsigned n;
    const char *token[6]; /* a leading '-' negates */
  } cases[] = {
      {"red-fox", GPUIR_OK, 2, {"red", "fox"}},
      {"red -blue-fox", GPUIR_OK, 3, {"red", "-blue", "-fox"}},
      {"--blue red", GPUIR_OK, 2, {"-blue", "red"}},
      {"RED Fox red", GPUIR_OK, 3, {"red", "fox", "red"}},
      {"red - fox", GPUIR_OK, 2, {"red", "fox"}},
      {"red -!!!", GPUIR_OK, 1, {"red"}},
      {"... red", GPUIR_OK, 1, {"red"}},
      {"red -red", GPUIR_OK, 2, {"red", "-red"}},
      {"red -nowhere", GPUIR_OK, 2, {"red", "-nowhere"}},
      {"red nowhere", GPUIR_OK, 2, {"red", "nowhere"}},
      {"nowhere", GPUIR_OK, 1, {"nowhere"}},
      {"(red)\v\f\r\n\tfox", GPUIR_OK, 2, {"red", "fox"}},
      {"", GPUIR_E_QUERY, 0, {NULL}},
      {"   \t\n", GPUIR_E_QUERY, 0, {NULL}},
      {"-red", GPUIR_E_QUERY, 0, {NULL}},
      {"-red -blue", GPUIR_E_QUERY, 0, {NULL}},
      {"!!! ???", GPUIR_E_QUERY, 0, {NULL}},
      {"-", GPUIR_E_QUERY, 0, {NULL}},
  };
  static const char *const text[] = {"red fox", "blue fox", "red", "red red blue", "fox", "blue", "green", ""};
  fixture f;
  texts t;
  size_t c, i, k;
  int mode, x;
  (void)state;
  texts_begin(&t, &f, NULL);
  for (i = 0; i < sizeof text / sizeof *text; i++) texts_add(&t, text[i], strlen(text[i]));
  texts_end(&t, "words");
  for (c = 0; c < sizeof cases / sizeof *cases; c++) {
    oracle_query oq;
    oq.n = cases[c].n;
    for (i = 0; i < oq.n; i++) {
      const char *s = cases[c].token[i];
      oq.word[i].negated = *s == '-';
      oq.word[i].term = oracle_find(&f.o, s + (*s == '-'), strlen(s) - (*s == '-'));
    }
    (void)oracle_run(&f.o, &oq, f.k1, f.b);
    for (mode = 0; mode < 3; mode++)
      for (x = 0; x < f.nindexes; x++) {
        int status;
        gpuir_query *q = parse(f.index[x], cases[c].text, strlen(cases[c].text), mode, NULL, &status);
        if (status != cases[c].status) fail_msg("\"%s\": %s", cases[c].text, gpuir_strerror(status));
        if (status) continue;
        for (k = 0; k < 10; k++) {
          check_search(&f, x * 2, q, cases[c].text, mode, k);
          check_search(&f, x * 2 + 1, q, cases[c].text, mode, k);
        }
        check_count(&f, x * 2, q, cases[c].text, mode);
        gpuir_query_destroy(q);
      }
  }
  teardown(&f);
}

/* With no_operators a leading '-' is as any other character. */
static void test_no_operators(void **state) {
  fixture f;
  texts t;
  gpuir_query_desc desc;
  gpuir_query *q;
  oracle_query oq;
  (void)state;
  texts_begin(&t, &f, NULL);
  texts_add(&t, "red fox", 7);
  texts_add(&t, "red", 3);
  texts_end(&t, "no operators");
  memset(&desc, 0, sizeof desc);
  desc.no_operators = 1;
  assert_int_equal(gpuir_query_parse(f.index[0], &desc, "red -fox", 8, &q, NULL), GPUIR_OK);
  oq.n = 2;
  oq.word[0].term = oracle_find(&f.o, "red", 3);
  oq.word[1].term = oracle_find(&f.o, "fox", 3);
  oq.word[0].negated = oq.word[1].negated = 0;
  (void)oracle_run(&f.o, &oq, f.k1, f.b);
  check_search(&f, 0, q, "red -fox", GPUIR_AND, 10);
  gpuir_query_destroy(q);
  teardown(&f);
}

/* 64 distinct terms are allowed, 65 are not; repeats do not count. */
static void test_term_limit(void **state) {
  fixture f;
  oracle_query oq;
  rng r;
  char text[4096];
  size_t n = 0;
  uint32_t i;
  int status;
  (void)state;
  r.s = 1;
  oracle_init(&f.o);
  corpus_words(&f.o, 80);
  for (i = 0; i < 400; i++) {
    uint32_t t;
    for (t = 0; t < 80; t++)
      if (rng_below(&r, 80) > t / 2) oracle_add(&f.o, t, 1 + rng_below(&r, 3));
    oracle_doc(&f.o);
  }
  oracle_invert(&f.o);
  setup(&f, "80 terms");
  oq.n = 0;
  for (i = 0; i < 192; i++) {
    oq.word[oq.n].term = i % 64;
    oq.word[oq.n++].negated = 0;
  }
  check_query(&f, &oq, NULL, &r, 1);
  for (i = 0; i < 192; i++) { /* negated ones count as well */
    oq.word[i].term = i % 32 + (i % 3 == 2 ? 48 : 0);
    oq.word[i].negated = i % 3 == 2;
  }
  check_query(&f, &oq, NULL, &r, 1);
  for (i = 0; i < 65; i++) n += (size_t)snprintf(text + n, sizeof text - n, "w%u ", i);
  assert_null(parse(f.index[0], text, n, GPUIR_OR, NULL, &status));
  assert_int_equal(status, GPUIR_E_TERMS);
  for (i = 0, n = 0; i < 65; i++) n += (size_t)snprintf(text + n, sizeof text - n, "%snone%u ", i ? "-" : "", i);
  assert_null(parse(f.index[0], text, n, GPUIR_OR, NULL, &status)); /* so do unknown ones */
  assert_int_equal(status, GPUIR_E_TERMS);
  teardown(&f);
}

static gpuir_query *parse_rarest(gpuir_index *ix, const char *text, int mode, int *status) {
  gpuir_query *q;
  keep_rarest = 1;
  q = parse(ix, text, strlen(text), mode, NULL, status);
  keep_rarest = 0;
  return q;
}

/* Appends words number [from, to), each with `before` in front of it. */
static void add_words(char *text, const char *before, unsigned from, unsigned to) {
  for (; from < to; from++) (void)sprintf(text + strlen(text), "%sw%u ", before, from);
}

static void check_left_out(const gpuir_query *q, unsigned from, unsigned to) {
  const char *word;
  char want[16];
  size_t len, i = 0;
  for (; from < to; from++) {
    (void)snprintf(want, sizeof want, "w%u", from);
    assert_int_equal(gpuir_query_left_out(q, i++, &word, &len), GPUIR_OK);
    assert_int_equal(len, strlen(want));
    assert_memory_equal(word, want, len);
  }
  assert_int_equal(gpuir_query_left_out(q, i, &word, &len), GPUIR_E_NOT_FOUND);
}

static uint64_t count(const fixture *f, const gpuir_query *q) {
  uint64_t n;
  assert_int_equal(gpuir_count(f->searcher[0], q, &n), GPUIR_OK);
  return n;
}

static void explain(const fixture *f, const gpuir_query *q, gpuir_explanation *x) {
  assert_int_equal(gpuir_explain(f->searcher[0], q, 0, x), GPUIR_OK);
}

/* Which words are kept of too many: negated ones, phrases and prefixes, then the rarest. Word w<n> is in n + 1
 * documents. */
static void test_left_out(void **state) {
  static gpuir_explanation x;
  static char text[65536];
  fixture f;
  gpuir_query *q;
  const char *word;
  size_t len;
  uint32_t d, t;
  int status;
  (void)state;
  oracle_init(&f.o);
  corpus_words(&f.o, 200);
  for (d = 0; d < 200; d++) {
    for (t = 199 - d; t < 200; t++) oracle_add(&f.o, t, 1);
    oracle_doc(&f.o);
  }
  oracle_invert(&f.o);
  setup(&f, "left out");
  *text = 0;
  add_words(text, "", 0, 65);
  assert_null(parse_rarest(f.index[0], text, GPUIR_AND, &status));
  assert_int_equal(status, GPUIR_E_TERMS);
  assert_null(parse(f.index[0], text, strlen(text), GPUIR_OR, NULL, &status)); /* it was not asked for */
  assert_int_equal(status, GPUIR_E_TERMS);
  q = parse_rarest(f.index[0], text, GPUIR_ANDOR, &status);
  check_left_out(q, 64, 65);
  assert_int_equal(count(&f, q), 64); /* as OR: of all words there is one document */
  assert_int_equal(gpuir_query_left_out(NULL, 0, &word, &len), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_query_left_out(q, 0, NULL, &len), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_query_left_out(q, 0, &word, NULL), GPUIR_E_ARGUMENT);
  gpuir_query_destroy(q);
  (void)strcpy(text, "w3 nobody w3 "); /* unknown words go first */
  add_words(text, "", 0, 64);
  q = parse_rarest(f.index[0], text, GPUIR_OR, &status);
  assert_int_equal(gpuir_query_left_out(q, 0, &word, &len), GPUIR_OK);
  assert_memory_equal(word, "nobody", len);
  assert_int_equal(gpuir_query_left_out(q, 1, &word, &len), GPUIR_E_NOT_FOUND);
  explain(&f, q, &x);
  assert_true(x.terms[0].q == 3 && !memcmp(x.terms[0].term, "w3", 2)); /* in the order of the text */
  gpuir_query_destroy(q);
  *text = 0;
  add_words(text, "", 0, 100);
  add_words(text, "-", 150, 190);
  (void)strcat(text, "w19* "); /* all these are kept, and the 23 rarest words */
  q = parse_rarest(f.index[0], text, GPUIR_OR, &status);
  check_left_out(q, 23, 100);
  explain(&f, q, &x);
  assert_int_equal(x.nterms, 64);
  assert_true(!x.terms[23].negated && x.terms[24].negated);
  gpuir_query_destroy(q);
  add_words(text, "-", 100, 150); /* there is no room for them all */
  assert_null(parse_rarest(f.index[0], text, GPUIR_OR, &status));
  assert_int_equal(status, GPUIR_E_TERMS);
  *text = 0;
  add_words(text, "-", 100, 164);
  (void)strcat(text, "w1"); /* nothing is left to look for */
  assert_null(parse_rarest(f.index[0], text, GPUIR_OR, &status));
  assert_int_equal(status, GPUIR_E_TERMS);
  *text = 0;
  add_words(text, "", 0, 64);
  q = parse_rarest(f.index[0], text, GPUIR_ANDOR, &status); /* it has no word too many */
  check_left_out(q, 0, 0);
  assert_int_equal(count(&f, q), 1);
  gpuir_query_destroy(q);
  teardown(&f);
}

/* How a text is cut: terms as explain writes them, negated ones last, or the error. */
static void test_syntax(void **state) {
  static const struct {
    const char *text, *terms;
    int status, no_operators;
    uint64_t offset;
  } rows[] = {{"w1 w2", "w1 w2", 0, 0, 0}, {"\"w1 w2\"", "\"w1 w2\"", 0, 0, 0},
      {"w3 -\"w1  w2\" w3", "w3 -\"w1 w2\"", 0, 0, 0}, {"\"w1\"", "w1", 0, 0, 0}, {"\"\" w1", "w1", 0, 0, 0},
      {"\"w1 w2\"w3", "\"w1 w2\" w3", 0, 0, 0}, {"\"w1\"\"w2 w1\"", "w1 \"w2 w1\"", 0, 0, 0},
      {"w1\" w2", "w1 w2", 0, 0, 0}, {"w1\"w2 w3\"", "w1 w2 w3", 0, 0, 0}, {"\"W1-(w2)\"", "\"w1 w2\"", 0, 0, 0},
      {"w1*", "w1*", 0, 0, 0}, {"-w1* w2", "w2 -w1*", 0, 0, 0}, {"w2-W1*", "w2 w1*", 0, 0, 0},
      {"w1** w2)* * w*3", "w1 w2 w 3", 0, 0, 0}, {"(w1 AND w2) ~w3 w4:w5 +w6", "w1 and w2 w3 w4 w5 w6", 0, 0, 0},
      {"\"w1*\"", "w1", 0, 0, 0}, {"--w1 w2", "w2 -w1", 0, 0, 0}, {"\"w1 w2", "", GPUIR_E_QUERY, 0, 0},
      {"w1 -\"w2", "", GPUIR_E_QUERY, 0, 4}, {"-\"w1 w2\"", "", GPUIR_E_QUERY, 0, 0}, {"\"\"", "", GPUIR_E_QUERY, 0, 0},
      {"\"w1 w2\" -w3 w4*", "w1 w2 w3 w4", 0, 1, 0}, {"\"w1", "w1", 0, 1, 0},
      /* quotes, dashes and stops of typographers are no part of a word, so no prefix ends with them */
      {"w1\xe2\x80\x9d*", "w1", 0, 0, 0}, {"w1\xe2\x80\xa6*", "w1", 0, 0, 0}, {"w1\xe2\x80\x94*", "w1", 0, 0, 0},
      {"w1\xc2\xa0*", "w1", 0, 0, 0}, {"w\xc3\xa9*", "we*", 0, 0, 0},
      /* of several errors the first one is told */
      {"a* \"w1", "", GPUIR_E_QUERY, 0, 3}, {"\"w1", "", GPUIR_E_QUERY, 0, 0}};
  gpuir_builder_desc d;
  gpuir_builder *b;
  gpuir_index *ix;
  gpuir_error err;
  char path[4200];
  size_t i, j;
  (void)state;
  memset(&d, 0, sizeof d);
  d.path = corpus_path(path, sizeof path, "syntax.gpuir");
  d.positions = 1;
  assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
  assert_int_equal(gpuir_builder_add_text(b, NULL, "w1 w2 w3", 8, &err), 0);
  assert_int_equal(gpuir_builder_write(b, NULL, &err), 0);
  gpuir_builder_destroy(b);
  assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
  (void)unlink(path);
  for (i = 0; i < sizeof rows / sizeof *rows; i++) {
    gpuir_query_desc qd;
    gpuir_query *q;
    char got[256] = "";
    int status;
    memset(&qd, 0, sizeof qd);
    memset(&err, 0, sizeof err);
    qd.no_operators = rows[i].no_operators;
    status = gpuir_query_parse(ix, &qd, rows[i].text, strlen(rows[i].text), &q, &err);
    if (status != rows[i].status) fail_msg("%s: %d, %s", rows[i].text, status, err.msg);
    if (status) {
      assert_int_equal(err.offset, rows[i].offset);
      continue;
    }
    {
      gpuir_searcher *s;
      static gpuir_explanation x;
      assert_int_equal(gpuir_searcher_create(ix, NULL, &s, NULL), 0);
      assert_int_equal(gpuir_explain(s, q, 0, &x), 0);
      for (j = 0; j < x.nterms; j++)
        (void)sprintf(got + strlen(got), "%s%s%.*s", j ? " " : "", x.terms[j].negated ? "-" : "",
            (int)x.terms[j].term_len, x.terms[j].term);
      gpuir_searcher_destroy(s);
    }
    if (strcmp(got, rows[i].terms) != 0) fail_msg("%s: %s, not %s", rows[i].text, got, rows[i].terms);
    gpuir_query_destroy(q);
  }
  gpuir_close(ix);
}

/* How many words of OR must match: which terms are optional, what is counted, and what is refused. */
static void test_required(void **state) {
  static const struct {
    const char *text;
    unsigned required;
    const char *terms; /* as explain writes them, optional ones in brackets; NULL: ARGUMENT */
    uint64_t count;
  } rows[] = {{"w1 w2", 0, "w1 w2", 3}, {"w1 w2", 1, "w1 (w2)", 2}, {"w1 w2", 2, "w1 w2", 1}, {"w1 w2", 3, NULL, 0},
      {"w1 w2", UINT_MAX, NULL, 0}, {"-w2 w1 w3 w3", 1, "w1 (w3) -w2", 1}, {"w2 w1 w2", 1, "w2 (w1)", 2},
      {"w1 w2 w1", 2, "w1 w2", 1}, {"w9 w1", 1, "w9 (w1)", 0}, {"w1 w9", 1, "w1 (w9)", 2}, {"w1 w9", 2, "w1 w9", 0},
      {"w1-w2 w3", 1, "w1 w2 (w3)", 1}, {"\"w1 w2\" w3", 1, "\"w1 w2\" (w3)", 1},
      {"w3 \"w1 w2\"", 1, "w3 (\"w1 w2\")", 2}, {"w* w1", 1, "w* (w1)", 4}, {"w1 w*", 1, "w1 (w*)", 2},
      {". w1 w2", 1, "w1 w2", 3}, {"w1 ?", 2, "w1", 2}, {"w1 -w3", 2, NULL, 0},
      {"w1 -\"w1 w2\" w3", 1, "w1 (w3) -\"w1 w2\"", 1}};
  static const char *const docs[] = {"w1 w2 w3", "w2", "w1", "w3"};
  gpuir_builder_desc d;
  gpuir_query_desc qd;
  gpuir_builder *b;
  gpuir_index *ix;
  gpuir_searcher *s;
  gpuir_query *q;
  gpuir_error err;
  char path[4200], text[1000];
  const char *word;
  size_t i, j, len;
  (void)state;
  memset(&d, 0, sizeof d);
  d.path = corpus_path(path, sizeof path, "required.gpuir");
  d.positions = 1;
  assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
  for (i = 0; i < 4; i++) assert_int_equal(gpuir_builder_add_text(b, NULL, docs[i], strlen(docs[i]), &err), 0);
  assert_int_equal(gpuir_builder_write(b, NULL, &err), 0);
  gpuir_builder_destroy(b);
  assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
  (void)unlink(path);
  assert_int_equal(gpuir_searcher_create(ix, NULL, &s, NULL), 0);
  memset(&qd, 0, sizeof qd);
  for (i = 0; i < sizeof rows / sizeof *rows; i++) {
    static gpuir_explanation x;
    gpuir_hit hits[4];
    char got[256] = "";
    uint64_t count, at_once;
    size_t n;
    int status;
    qd.mode = GPUIR_OR;
    qd.required = rows[i].required;
    status = gpuir_query_parse(ix, &qd, rows[i].text, strlen(rows[i].text), &q, &err);
    assert_int_equal(status, rows[i].terms ? GPUIR_OK : GPUIR_E_ARGUMENT);
    if (!rows[i].terms) continue;
    assert_int_equal(gpuir_explain(s, q, 0, &x), 0);
    for (j = 0; j < x.nterms; j++)
      (void)sprintf(got + strlen(got), x.terms[j].optional ? "%s%s(%.*s)" : "%s%s%.*s", j ? " " : "",
          x.terms[j].negated ? "-" : "", (int)x.terms[j].term_len, x.terms[j].term);
    if (strcmp(got, rows[i].terms) != 0) fail_msg("%s: %s, not %s", rows[i].text, got, rows[i].terms);
    assert_int_equal(gpuir_count(s, q, &count), 0);
    if (count != rows[i].count) fail_msg("%s, %u: counts %u", rows[i].text, rows[i].required, (unsigned)count);
    assert_int_equal(gpuir_search_count(s, q, hits, 4, &n, &at_once), 0);
    assert_true(n == count && at_once == count);
    for (j = 0; j < n; j++) { /* an optional word's score is in the sum */
      assert_int_equal(gpuir_explain(s, q, hits[j].docid, &x), 0);
      assert_true(x.matches && x.score == hits[j].score);
    }
    gpuir_query_destroy(q);
  }
  qd.required = 1; /* words that are not asked for are told as others are when no document has them */
  assert_int_equal(gpuir_query_parse(ix, &qd, "w1 w9", 5, &q, &err), 0);
  assert_int_equal(gpuir_query_unknown(q, 0, &word, &len), 0);
  assert_true(len == 2 && !memcmp(word, "w9", 2));
  assert_int_equal(gpuir_query_unknown(q, 1, &word, &len), GPUIR_E_NOT_FOUND);
  gpuir_query_destroy(q);
  qd.keep_rarest = 1; /* none is left out */
  for (i = 0, len = 0; i < 65; i++) len += (size_t)sprintf(text + len, "n%u ", (unsigned)i);
  assert_int_equal(gpuir_query_parse(ix, &qd, text, len, &q, &err), GPUIR_E_TERMS);
  for (i = 0; i < 3; i++) {
    qd.mode = (int)i;
    assert_int_equal(gpuir_query_parse(ix, &qd, "w1", 2, &q, &err), i == GPUIR_OR ? GPUIR_OK : GPUIR_E_ARGUMENT);
    gpuir_query_destroy(q);
  }
  gpuir_searcher_destroy(s);
  gpuir_close(ix);
}

/* A query of another index is refused; it would name other terms. */
static void test_foreign_query(void **state) {
  fixture f, g;
  gpuir_query *q;
  gpuir_hit hit;
  size_t n;
  int status;
  (void)state;
  corpus_zipf(&f.o, 100, 20, 5, 141);
  corpus_zipf(&g.o, 100, 20, 5, 142);
  setup_codecs(&f, "mine", NULL, 1);
  setup_codecs(&g, "foreign", NULL, 1);
  q = parse(f.index[0], "w1 w2", 5, GPUIR_OR, NULL, &status);
  assert_int_equal(status, GPUIR_OK);
  assert_int_equal(gpuir_search(g.searcher[0], q, &hit, 1, &n), GPUIR_E_ARGUMENT);
  gpuir_query_destroy(q);
  teardown(&f);
  teardown(&g);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_query_words),
      cmocka_unit_test(test_no_operators),
      cmocka_unit_test(test_term_limit),
      cmocka_unit_test(test_left_out),
      cmocka_unit_test(test_syntax),
      cmocka_unit_test(test_required),
      cmocka_unit_test(test_foreign_query),
  };
  int failed;
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  failed = cmocka_run_group_tests_name("51_query", tests, NULL, NULL);
  print_message("%lu comparisons, %lu hits\n", compared, hits_compared);
  return failed;
}
