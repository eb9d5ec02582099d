/* 52_parse.c - near terms in place of words that no document has: which words, in which modes, of plain and stemmed
 * indexes and of several segments; and what is told of them. 51_query.c has what else queries are made of. */
#define _POSIX_C_SOURCE 200809L
#include "gpuir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "folder.h"

static const char *folder_of(void) {
  static char folder[64];
  (void)snprintf(folder, sizeof folder, "/tmp/parse-%ld", (long)getpid());
  return folder;
}

/* A live index of a segment a text. */
static gpuir_index *index_of(const char *analyzer, const char *stem, const char *const *texts, size_t n) {
  gpuir_live_desc ld;
  gpuir_live *live;
  gpuir_index *ix;
  gpuir_error err;
  size_t i;
  memset(&ld, 0, sizeof ld);
  ld.settings.path = folder_of();
  ld.settings.analyzer.analyzer = analyzer;
  ld.settings.analyzer.stem = stem;
  ld.settings.positions = 1;
  ld.settings.threads = 1;
  ld.create = 1;
  if (gpuir_live_open(&ld, &live, &err)) fail_msg("%s", err.msg);
  for (i = 0; i < n; i++) {
    if (gpuir_live_add(live, NULL, texts[i], strlen(texts[i]), &err)) fail_msg("%s", err.msg);
    if (gpuir_live_commit(live, &err)) fail_msg("%s", err.msg);
  }
  if (gpuir_live_refresh(live, &ix, &err)) fail_msg("%s", err.msg);
  gpuir_live_close(live);
  assert_int_equal(folder_remove(folder_of()), 0);
  return ix;
}

static gpuir_query *parse(gpuir_index *ix, const char *text, int mode, int spell) {
  gpuir_query_desc qd;
  gpuir_query *q;
  gpuir_error err;
  memset(&qd, 0, sizeof qd);
  qd.mode = mode;
  qd.spell = spell;
  if (gpuir_query_parse(ix, &qd, text, strlen(text), &q, &err)) fail_msg("%s: %s", text, err.msg);
  return q;
}

/* What a query says of its words that have others in their place: "word>instead ...". */
static const char *spelled(const gpuir_query *q) {
  static char said[400];
  const char *word, *instead;
  size_t len, instead_len, i, at = 0;
  said[0] = 0;
  for (i = 0; !gpuir_query_spelled(q, i, &word, &len, &instead, &instead_len); i++)
    at += (size_t)snprintf(said + at, sizeof said - at, "%s%.*s>%.*s", i ? " " : "", (int)len, word, (int)instead_len,
        instead);
  return said;
}

static void expect(gpuir_index *ix, const char *text, int mode, int spell, const char *want) {
  gpuir_query *q = parse(ix, text, mode, spell);
  if (strcmp(spelled(q), want) != 0) fail_msg("%s: %s, not %s", text, spelled(q), want);
  gpuir_query_destroy(q);
}

static uint32_t top_of(gpuir_index *ix, const gpuir_query *q, size_t *n) {
  gpuir_searcher *s;
  gpuir_hit hits[8];
  assert_int_equal(gpuir_searcher_create(ix, NULL, &s, NULL), 0);
  assert_int_equal(gpuir_search(s, q, hits, 8, n), 0);
  gpuir_searcher_destroy(s);
  return *n ? hits[0].docid : UINT32_MAX;
}

static const char *const plain[] = {"the registration of a blueprint", "wolf and sheep", "wolves and cats utf8x abcd"};

static void test_words(void **state) {
  gpuir_index *ix = index_of(NULL, NULL, plain, 3);
  gpuir_query *q;
  size_t n;
  (void)state;
  expect(ix, "blueprint registraton", GPUIR_OR, GPUIR_SPELL, "registraton>registration");
  expect(ix, "Registraton", GPUIR_ANDOR, GPUIR_SPELL, "Registraton>registration");
  expect(ix, "blueprint registraton", GPUIR_AND, GPUIR_SPELL, "");
  expect(ix, "blueprint registraton", GPUIR_OR, 0, "");
  expect(ix, "blueprint registraton", GPUIR_OR, GPUIR_EXACT, "");
  expect(ix, "registraton~ blueprint~", GPUIR_AND, 0, "registraton>registration"); /* a known word stays */
  expect(ix, "registraton~", GPUIR_OR, GPUIR_EXACT, "");
  expect(ix, "rigistraton", GPUIR_OR, GPUIR_SPELL, ""); /* two letters away */
  expect(ix, "wof cads", GPUIR_OR, GPUIR_SPELL, "cads>cats"); /* too short */
  expect(ix, "abd~", GPUIR_AND, 0, "abd>and");
  expect(ix, "utf9x", GPUIR_OR, GPUIR_SPELL, "");
  expect(ix, "cats \"registraton\" \"a blueprnt\"", GPUIR_OR, GPUIR_SPELL, "");
  expect(ix, "cats -registraton registrato*", GPUIR_OR, GPUIR_SPELL, "");
  expect(ix, "sheep wolv", GPUIR_OR, GPUIR_SPELL, "wolv>wolf");
  q = parse(ix, "registraton registration registraton", GPUIR_OR, GPUIR_SPELL);
  assert_int_equal(top_of(ix, q, &n), 0);
  {
    static gpuir_explanation x;
    gpuir_searcher *s;
    assert_int_equal(gpuir_searcher_create(ix, NULL, &s, NULL), 0);
    assert_int_equal(gpuir_explain(s, q, 0, &x), 0);
    assert_int_equal(x.nterms, 1);
    assert_int_equal(x.terms[0].q, 3);
    assert_string_equal(x.terms[0].term, "registration");
    gpuir_searcher_destroy(s);
  }
  gpuir_query_destroy(q);
  gpuir_close(ix);
}

/* Errors are told and searched alike: as they were typed. */
static void test_arguments(void **state) {
  gpuir_index *ix = index_of(NULL, NULL, plain, 3);
  gpuir_query *q = parse(ix, "wolff registrat*", GPUIR_OR, 0);
  gpuir_near_term near_[2];
  const char *word;
  size_t n;
  (void)state;
  assert_int_equal(gpuir_query_near(q, 0, near_, 2, &n), 0);
  assert_int_equal(n, 1);
  assert_string_equal(near_[0].term, "wolf");
  assert_string_equal(near_[0].word, "wolf");
  assert_int_equal(gpuir_query_near(q, 1, near_, 2, &n), GPUIR_E_NOT_FOUND); /* the prefix is known */
  assert_int_equal(gpuir_query_near(NULL, 0, near_, 2, &n), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_query_near(q, 0, NULL, 2, &n), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_query_near(q, 0, near_, 2, NULL), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_query_spelled(q, 0, NULL, &n, &word, &n), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_query_spelled(q, 0, &word, &n, &word, &n), GPUIR_E_NOT_FOUND);
  gpuir_query_destroy(q);
  q = parse(ix, "zzz*", GPUIR_OR, 0);
  assert_int_equal(gpuir_query_near(q, 0, near_, 2, &n), 0);
  assert_int_equal(n, 0);
  gpuir_query_destroy(q);
  gpuir_close(ix);
}

#if defined GPUIR_WITH_UTF8PROC && defined GPUIR_WITH_STEMMER

static void near_is(gpuir_index *ix, const char *text, const char *want) {
  gpuir_query *q = parse(ix, text, GPUIR_OR, 0);
  gpuir_near_term near_[4];
  size_t n;
  assert_int_equal(gpuir_query_near(q, 0, near_, 4, &n), 0);
  if (!n != !*want || (n && strcmp(near_[0].word, want) != 0))
    fail_msg("%s: %s, not %s", text, n ? near_[0].word : "", want);
  gpuir_query_destroy(q);
}

/* Where terms are stems, spellings are compared, and the stem of the nearest is searched. */
static void test_stems(void **state) {
  static const char *const texts[] = {"the registration of blueprints", "running \xd0\xb1\xd0\xb5\xd0\xb3"};
  static const char *const analyzers[] = {"unicode", "text"};
  size_t i, n;
  (void)state;
  for (i = 0; i < 2; i++) {
    gpuir_index *ix = index_of(analyzers[i], "english", texts, 2);
    gpuir_near_term near_;
    gpuir_query *q;
    near_is(ix, "registraton", "registration");
    near_is(ix, "Registrations blueprnts", "blueprints");
    near_is(ix, "runnning", "running");
    near_is(ix, "\xd0\xb1\xd0\xb8\xd0\xb3", "\xd0\xb1\xd0\xb5\xd0\xb3");
    near_is(ix, "quetzalcoatl", "");
    assert_int_equal(gpuir_terms_near(ix, "registraton", 11, &near_, 1, &n), 0);
    assert_int_equal(n, 1);
    assert_string_equal(near_.term, "registr");
    assert_string_equal(near_.word, "registration");
    expect(ix, "blueprint registraton", GPUIR_OR, GPUIR_SPELL, "registraton>registration");
    q = parse(ix, "registratons", GPUIR_OR, GPUIR_SPELL);
    assert_int_equal(top_of(ix, q, &n), 0);
    assert_int_equal(n, 1);
    gpuir_query_destroy(q);
    gpuir_close(ix);
  }
}

/* Of a word that is split, the segments that no document has are asked for. */
static void test_pairs(void **state) {
  static const char *const texts[] = {"by O'Reilly and foo.bar", "authorization_token caf\xc3\xa9-creme"};
  gpuir_index *ix = index_of("text", "english", texts, 2);
  gpuir_query *q;
  static gpuir_explanation x;
  gpuir_searcher *s;
  size_t n;
  (void)state;
  near_is(ix, "O'Rielly", "reilly");
  near_is(ix, "foo.token", ""); /* both are there, but not side by side */
  expect(ix, "O'Rielly", GPUIR_OR, GPUIR_SPELL, "O'Rielly>o'reilly");
  expect(ix, "autorization_tokens", GPUIR_OR, GPUIR_SPELL, "autorization_tokens>authorization_tokens");
  expect(ix, "cafe-crme", GPUIR_OR, GPUIR_SPELL, "cafe-crme>cafe-creme");
  expect(ix, "foo.tokn", GPUIR_OR, GPUIR_SPELL, "");
  q = parse(ix, "autorization_token", GPUIR_OR, GPUIR_SPELL);
  assert_int_equal(top_of(ix, q, &n), 1);
  assert_int_equal(gpuir_searcher_create(ix, NULL, &s, NULL), 0);
  assert_int_equal(gpuir_explain(s, q, 1, &x), 0);
  assert_int_equal(x.terms[0].term_len, strlen("authorization_token"));
  assert_memory_equal(x.terms[0].term, "authorization_token", x.terms[0].term_len);
  gpuir_searcher_destroy(s);
  gpuir_query_destroy(q);
  gpuir_close(ix);
}

#endif

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_words),
    cmocka_unit_test(test_arguments),
#if defined GPUIR_WITH_UTF8PROC && defined GPUIR_WITH_STEMMER
    cmocka_unit_test(test_stems),
    cmocka_unit_test(test_pairs),
#endif
  };
  return cmocka_run_group_tests_name("52_parse", tests, NULL, NULL);
}
