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

/* Parses with a list of words that are left out, and for how many documents AND is enough. */
static gpuir_query *parse_without(gpuir_index *ix, const char *text, int mode, const char *stop, uint32_t enough) {
  gpuir_query_desc qd;
  gpuir_query *q;
  gpuir_error err;
  memset(&qd, 0, sizeof qd);
  qd.mode = mode;
  qd.stop = stop;
  qd.enough = enough;
  qd.spell = GPUIR_SPELL;
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
  static const char *const few[] = {"may ever your hours even cats", "welcher"};
  gpuir_index *ix = index_of(NULL, NULL, plain, 3), *small = index_of(NULL, NULL, few, 2);
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
  /* Words that sentences are made of are right, and those of the list that is given; but not where they are asked for.
   * */
  expect(small, "cats many every ours yours", GPUIR_OR, GPUIR_SPELL, "");
  expect(small, "cats eber", GPUIR_OR, GPUIR_SPELL, "eber>ever");
  expect(small, "many~", GPUIR_OR, GPUIR_SPELL, "many>may");
  q = parse_without(small, "cats welche", GPUIR_OR, "der die welche", 0);
  assert_string_equal(spelled(q), "");
  gpuir_query_destroy(q);
  q = parse_without(small, "cats Welche", GPUIR_ANDOR, "der die", 0);
  assert_string_equal(spelled(q), "Welche>welcher");
  gpuir_query_destroy(q);
  gpuir_close(small);
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

/* ---- shards of a collection */

/* A collection of one shard: what it knows is all that is known; `failure` is returned in place of that. */
static int agree_alone(void *failure, gpuir_near_term *best) {
  (void)best;
  return *(int *)failure;
}

/* An index of some texts that is the only shard of a collection. */
static gpuir_index *shard_of(const char *const *texts, size_t n) {
  gpuir_builder_desc bd;
  gpuir_builder *b;
  gpuir_index *ix;
  gpuir_index_info info;
  gpuir_shard_info place;
  gpuir_term_info term;
  gpuir_error err;
  uint32_t dfs[64];
  uint64_t i;
  memset(&bd, 0, sizeof bd);
  bd.path = folder_of();
  bd.analyzer.analyzer = "text";
  bd.analyzer.stem = "english";
  bd.threads = 1;
  if (gpuir_builder_create(&bd, &b, &err)) fail_msg("%s", err.msg);
  for (i = 0; i < n; i++)
    if (gpuir_builder_add_text(b, NULL, texts[i], strlen(texts[i]), &err)) fail_msg("%s", err.msg);
  if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
  if (gpuir_open(bd.path, NULL, &ix, &err)) fail_msg("%s", err.msg);
  assert_int_equal(gpuir_index_get_info(ix, &info), 0);
  assert_true(info.terms <= 64);
  for (i = 0; i < info.terms; i++) {
    assert_int_equal(gpuir_term_get_info(ix, i, &term), 0);
    dfs[i] = term.df;
  }
  memset(&place, 0, sizeof place);
  place.documents = info.documents;
  place.tokens = info.tokens;
  place.shards = 1;
  assert_int_equal(unlink(bd.path), 0);
  if (gpuir_shard_write(ix, bd.path, &place, dfs, &err)) fail_msg("%s", err.msg);
  gpuir_close(ix);
  if (gpuir_open(bd.path, NULL, &ix, &err)) fail_msg("%s", err.msg);
  assert_int_equal(unlink(bd.path), 0);
  return ix;
}

/* A shard searches near terms of its collection when all shards are asked, and another one's query has the same. */
static void test_shards(void **state) {
  static const char *const texts[] = {"by O'Reilly and foo.bar", "authorization_token blueprint registration"};
  static const char text[] = "bluprint O'Rielly bleprint registration";
  gpuir_index *ix = shard_of(texts, 2);
  int failure = 0, changed;
  const gpuir_shards shards = {agree_alone, &failure};
  const char *word, *instead;
  size_t len, instead_len, n, m, before;
  uint32_t dfs[8], same[8];
  gpuir_query *q = parse(ix, text, GPUIR_OR, GPUIR_SPELL), *other = parse(ix, text, GPUIR_OR, GPUIR_SPELL);
  (void)state;
  before = gpuir_query_dfs(q, NULL, 0);
  assert_int_equal(gpuir_query_spelled(q, 0, &word, &len, &instead, &instead_len), GPUIR_E_NOT_FOUND);
  assert_int_equal(gpuir_query_respell(q, GPUIR_AND, &shards, &changed, NULL), 0);
  assert_int_equal(changed, 0);
  assert_int_equal(gpuir_query_respell(q, GPUIR_OR, &shards, &changed, NULL), 0);
  assert_int_equal(changed, 1);
  assert_int_equal(gpuir_query_spelled(q, 0, &word, &len, &instead, &instead_len), 0);
  assert_int_equal(gpuir_query_respell_as(other, q, NULL), 0);
  n = gpuir_query_dfs(q, dfs, 8);
  m = gpuir_query_dfs(other, same, 8);
  assert_int_equal(n, before - 1); /* two words became one */
  assert_int_equal(m, n);
  assert_memory_equal(dfs, same, n * sizeof *dfs);
  assert_int_equal(dfs[0] && dfs[1] && dfs[2], 1);
  assert_int_equal(gpuir_query_weigh(other, dfs, n, NULL), 0);
  assert_int_equal(top_of(ix, other, &n), 1);
  assert_int_equal(n, 2);
  assert_int_equal(gpuir_query_respell_as(other, NULL, NULL), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_query_respell(NULL, GPUIR_OR, &shards, &changed, NULL), GPUIR_E_ARGUMENT);
  gpuir_query_destroy(q);
  gpuir_query_destroy(other);
  failure = GPUIR_E_CANCELLED; /* what one that is asked returns ends the call */
  q = parse(ix, text, GPUIR_OR, GPUIR_SPELL);
  assert_int_equal(gpuir_query_respell(q, GPUIR_OR, &shards, &changed, NULL), GPUIR_E_CANCELLED);
  gpuir_query_destroy(q);
  gpuir_close(ix);
}

#endif

/* ---- words that say little */

static const char *stopped(const gpuir_query *q) {
  static char said[400];
  const char *word;
  size_t len, i, at = 0;
  said[0] = 0;
  for (i = 0; !gpuir_query_stopped(q, i, &word, &len); i++)
    at += (size_t)snprintf(said + at, sizeof said - at, "%s%.*s", i ? " " : "", (int)len, word);
  return said;
}

/* Two queries have the same hits and scores. */
static void same_hits(gpuir_index *ix, const gpuir_query *a, const gpuir_query *b, const char *text) {
  gpuir_searcher *s;
  gpuir_hit x[16], y[16];
  size_t n, m, i;
  assert_int_equal(gpuir_searcher_create(ix, NULL, &s, NULL), 0);
  assert_int_equal(gpuir_search(s, a, x, 16, &n), 0);
  assert_int_equal(gpuir_search(s, b, y, 16, &m), 0);
  if (n != m) fail_msg("%s: %zu hits, not %zu", text, n, m);
  for (i = 0; i < n; i++)
    if (x[i].docid != y[i].docid || x[i].score != y[i].score) fail_msg("%s: hit %zu differs", text, i);
  gpuir_searcher_destroy(s);
}

static void test_stop(void **state) {
  static const char *const texts[] = {"what is the wolf", "the wolf is in the forest", "forest wolf sheep",
      "it is what it is", "the it department", "sheep of the wolf: what is it", "der Wolf für die Schafe"};
  static const struct {
    const char *text;
    int mode;
    const char *stopped, *same; /* as which text with no list */
  } cases[] = {
      {"what is the wolf sheep", GPUIR_OR, "what is the", "wolf sheep"},
      {"What IS, (the) wolf sheep", GPUIR_OR, "What (the)", "IS wolf sheep"}, /* IS is written as a name is */
      {"what is the wolf", GPUIR_OR, "", "what is the wolf"}, /* one word alone remains */
      {"what is the wolf !!!", GPUIR_OR, "", "what is the wolf"}, /* signs are no word */
      {"what is the", GPUIR_OR, "", "what is the"},
      {"the IT wolf", GPUIR_OR, "the", "IT wolf"},
      {"the \"what is\" wolf", GPUIR_OR, "the", "\"what is\" wolf"},
      {"the the* what~ wolf", GPUIR_OR, "the", "the* what~ wolf"},
      {"what -the -sheep wolf forest", GPUIR_OR, "what", "-the -sheep wolf forest"},
      {"what -wolf -sheep forest", GPUIR_OR, "", "what -wolf -sheep forest"}, /* what is excluded is not asked for */
      {"what is the wolf sheep", GPUIR_AND, "", "what is the wolf sheep"},
      {"what's the wolf of-the forest", GPUIR_OR, "the", "what's wolf of-the forest"},
  };
  const char *list = gpuir_stop_list("english-questions");
  gpuir_index *ix = index_of(NULL, NULL, texts, 7);
  gpuir_query *q, *plain_one;
  size_t i;
  (void)state;
  for (i = 0; i < sizeof cases / sizeof *cases; i++) {
    q = parse_without(ix, cases[i].text, cases[i].mode, list, 0);
    if (strcmp(stopped(q), cases[i].stopped) != 0) fail_msg("%s: without %s", cases[i].text, stopped(q));
    plain_one = parse(ix, cases[i].same, cases[i].mode, 0);
    same_hits(ix, q, plain_one, cases[i].text);
    gpuir_query_destroy(plain_one);
    gpuir_query_destroy(q);
  }
  q = parse_without(ix, "der Wolf FÜR Für die schafe", GPUIR_OR, "\tder  für\ndie ", 0);
  assert_string_equal(stopped(q), "der Für die");
  gpuir_query_destroy(q);
  q = parse_without(ix, "as at wolf sheep", GPUIR_OR, "as", 0);
  assert_string_equal(stopped(q), "as");
  gpuir_query_destroy(q);
  gpuir_close(ix);
}

/* ANDOR: AND has all words; OR, where it has to help, does without some, and that is what is explained. */
static void test_stop_andor(void **state) {
  static const char *const texts[] = {"what is the wolf in the forest", "forest wolf", "the what is the", "the wolf"};
  const char *list = gpuir_stop_list("english-questions"), *text = "what is the wolf in the forest";
  gpuir_index *ix = index_of(NULL, NULL, texts, 4);
  gpuir_query *q = parse_without(ix, text, GPUIR_ANDOR, list, 0), *other;
  static gpuir_explanation x;
  gpuir_searcher *s;
  gpuir_hit hit[8];
  uint64_t count;
  size_t n, i;
  (void)state;
  assert_int_equal(gpuir_searcher_create(ix, NULL, &s, NULL), 0);
  assert_string_equal(stopped(q), "what is the in the");
  other = parse(ix, "wolf forest", GPUIR_OR, 0);
  same_hits(ix, q, other, text);
  gpuir_query_destroy(other);
  assert_int_equal(gpuir_search(s, q, hit, 8, &n), 0);
  for (i = 0; i < n; i++) {
    if (!hit[i].docid) continue; /* it has all words, and is explained so */
    assert_int_equal(gpuir_explain(s, q, hit[i].docid, &x), 0);
    assert_int_equal(x.score, hit[i].score);
    assert_int_equal(x.nterms, 2);
  }
  assert_int_equal(gpuir_search(s, q, hit, 1, &n), 0); /* one document has all words */
  assert_int_equal(gpuir_explain(s, q, 0, &x), 0);
  assert_int_equal(hit[0].docid, 0);
  assert_int_equal(x.score, hit[0].score);
  assert_int_equal(x.nterms, 6);
  assert_int_equal(gpuir_count(s, q, &count), 0);
  assert_int_equal(count, 1);
  gpuir_query_destroy(q);
  gpuir_searcher_destroy(s);
  gpuir_close(ix);
}

/* ANDOR: so many documents with all words are enough, however many hits are asked for. */
static void test_enough(void **state) {
  static const char *const texts[] = {"wolf forest", "forest wolf wolf", "wolf", "forest", "sheep"};
  gpuir_index *ix = index_of(NULL, NULL, texts, 5);
  const uint32_t enough[] = {0, 1, 2, 3, 9};
  gpuir_query *and_ = parse(ix, "wolf forest", GPUIR_AND, 0), *or_ = parse(ix, "wolf forest", GPUIR_OR, 0);
  size_t i;
  (void)state;
  for (i = 0; i < 5; i++) {
    gpuir_query *q = parse_without(ix, "wolf forest", GPUIR_ANDOR, NULL, enough[i]);
    same_hits(ix, q, enough[i] == 1 || enough[i] == 2 ? and_ : or_, "enough");
    gpuir_query_destroy(q);
  }
  gpuir_query_destroy(and_);
  gpuir_query_destroy(or_);
  gpuir_close(ix);
}

/* Sixty segments, and a pool of four threads: what words are left out, spelled and enough is as one searcher has it. */
static void test_sixty(void **state) {
  static const struct {
    const char *text;
    int mode;
    uint32_t enough;
  } asked[] = {{"what is the wolf in the forest", GPUIR_ANDOR, 0}, {"what is the wolf in the forest", GPUIR_OR, 0},
      {"the registraton of wolf7", GPUIR_ANDOR, 0}, {"wolf forest", GPUIR_ANDOR, 4}, {"wolf forest", GPUIR_ANDOR, 40}};
  static char text[60][80];
  const char *texts[60];
  gpuir_pool_desc pd;
  gpuir_pool *pool;
  gpuir_searcher *s;
  gpuir_index *ix;
  gpuir_error err;
  size_t i, n;
  (void)state;
  for (i = 0; i < 60; i++) {
    (void)snprintf(text[i], sizeof text[i], "%s %s wolf%zu %s", i % 3 ? "the wolf" : "what is", i % 4 ? "forest" : "in",
        i, i % 5 ? "registration of it" : "sheep");
    texts[i] = text[i];
  }
  ix = index_of(NULL, NULL, texts, 60);
  memset(&pd, 0, sizeof pd);
  pd.threads = 4;
  if (gpuir_pool_create(ix, &pd, &pool, &err)) fail_msg("%s", err.msg);
  assert_int_equal(gpuir_searcher_create(ix, NULL, &s, NULL), 0);
  for (i = 0; i < sizeof asked / sizeof *asked; i++) {
    gpuir_query_desc qd;
    gpuir_query *q;
    gpuir_task task;
    gpuir_hit want[60], got[60];
    memset(&qd, 0, sizeof qd);
    memset(&task, 0, sizeof task);
    qd.mode = asked[i].mode;
    qd.enough = asked[i].enough;
    qd.stop = gpuir_stop_list("english-questions");
    qd.spell = GPUIR_SPELL;
    if (gpuir_query_parse(ix, &qd, asked[i].text, strlen(asked[i].text), &q, &err)) fail_msg("%s", err.msg);
    assert_int_equal(gpuir_search(s, q, want, 60, &n), 0);
    task.query = q;
    task.k = 60;
    task.hits = got;
    assert_int_equal(gpuir_pool_run(pool, &task), 0);
    gpuir_pool_wait(pool, &task);
    assert_int_equal(task.status, 0);
    assert_int_equal(task.count, n);
    assert_memory_equal(got, want, n * sizeof *want);
    gpuir_query_destroy(q);
  }
  gpuir_searcher_destroy(s);
  gpuir_pool_destroy(pool);
  gpuir_close(ix);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_stop),
    cmocka_unit_test(test_stop_andor),
    cmocka_unit_test(test_enough),
    cmocka_unit_test(test_sixty),
    cmocka_unit_test(test_words),
    cmocka_unit_test(test_arguments),
#if defined GPUIR_WITH_UTF8PROC && defined GPUIR_WITH_STEMMER
    cmocka_unit_test(test_stems),
    cmocka_unit_test(test_pairs),
    cmocka_unit_test(test_shards),
#endif
  };
  return cmocka_run_group_tests_name("52_parse", tests, NULL, NULL);
}
