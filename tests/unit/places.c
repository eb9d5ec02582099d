/* places.c - tokens that share a position: postings, positions, lengths, hits, phrases and passages against a model,
 * merges, and tokenizers that break the rules */
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

/* A tokenizer: blanks part words, and a word's '+' begins a token at the position of the one before. A word that is
 * "!" advances by two. Its user counts the calls for queries, if there is one. */
static int places(void *user, const char *text, size_t len, int query, gpuir_place_fn emit, void *sink) {
  size_t i = 0;
  int status = 0;
  if (user) *(int *)user += query;
  while (i < len && !status) {
    const size_t start = i;
    while (i < len && text[i] != ' ' && text[i] != '+') i++;
    if (i > start) {
      const unsigned advance = start && text[start - 1] == '+' ? 0 : text[start] == '!' ? 2 : 1;
      status = emit(sink, text + start, i - start, advance);
    }
    i++;
  }
  return status;
}

static gpuir_analyzer_desc analyzer_of(void *user) {
  gpuir_analyzer_desc d;
  memset(&d, 0, sizeof d);
  d.analyzer = "places";
  d.tokenize_places = places;
  d.tokenize_user = user;
  return d;
}

static const char *path_of(void) {
  static char path[64];
  (void)snprintf(path, sizeof path, "/tmp/places-%ld.gpuir", (long)getpid());
  return path;
}

static int build(const char *const *texts, size_t n, int positions, const char *stop, gpuir_error *err) {
  gpuir_builder_desc bd;
  gpuir_builder *b;
  size_t i;
  int status;
  memset(&bd, 0, sizeof bd);
  bd.path = path_of();
  bd.analyzer = analyzer_of(NULL);
  bd.analyzer.stop_words = stop;
  bd.positions = positions;
  bd.threads = 1;
  bd.store_text = 1;
  status = gpuir_builder_create(&bd, &b, err);
  for (i = 0; i < n && !status; i++) status = gpuir_builder_add_text(b, NULL, texts[i], strlen(texts[i]), err);
  if (!status) status = gpuir_builder_write(b, NULL, err);
  gpuir_builder_destroy(b);
  return status;
}

static gpuir_index *index_of(const char *const *texts, size_t n, int positions, const char *stop) {
  gpuir_open_desc od;
  gpuir_index *ix;
  gpuir_error err;
  if (build(texts, n, positions, stop, &err)) fail_msg("%s", err.msg);
  memset(&od, 0, sizeof od);
  od.tokenize_places = places;
  if (gpuir_open(path_of(), &od, &ix, &err)) fail_msg("%s", err.msg);
  (void)unlink(path_of());
  if (gpuir_verify(ix, &err)) fail_msg("%s", err.msg);
  return ix;
}

/* ---- the model: each token of a text with its position */

enum { MOST = 4096 };
typedef struct model {
  size_t n, length;
  const char *at[MOST];
  size_t len[MOST];
  uint32_t position[MOST];
} model;

static int model_token(void *sink, const char *token, size_t len, unsigned advance) {
  model *m = (model *)sink;
  size_t i;
  if (!advance && !m->length) return 0;
  m->length += advance;
  for (i = m->n; i-- > 0 && m->position[i] + 1 == m->length;)
    if (m->len[i] == len && !memcmp(m->at[i], token, len)) return 0;
  assert_true(m->n < MOST);
  m->at[m->n] = token;
  m->len[m->n] = len;
  m->position[m->n++] = (uint32_t)m->length - 1;
  return 0;
}

static void model_of(model *m, const char *text) {
  memset(m, 0, sizeof *m);
  assert_int_equal(places(NULL, text, strlen(text), 0, model_token, m), 0);
}

/* Compares what an index has of a term with the model. */
static void same_postings(gpuir_index *ix, const model *m, size_t n, const char *term, int positions) {
  uint32_t docids[256], tfs[256], found[4096], df = 0, cf = 0;
  gpuir_term_info info;
  uint64_t id;
  size_t d, i, at = 0;
  for (d = 0; d < n; d++) {
    uint32_t tf = 0;
    for (i = 0; i < m[d].n; i++) tf += m[d].len[i] == strlen(term) && !memcmp(m[d].at[i], term, m[d].len[i]);
    df += tf > 0;
    cf += tf;
  }
  assert_int_equal(gpuir_term_find(ix, term, strlen(term), &id), df ? 0 : GPUIR_E_NOT_FOUND);
  if (!df) return;
  assert_int_equal(gpuir_term_get_info(ix, id, &info), 0);
  assert_int_equal(info.df, df);
  assert_int_equal(info.cf, cf);
  assert_int_equal(gpuir_term_postings(ix, id, docids, tfs), 0);
  if (positions) assert_int_equal(gpuir_term_positions(ix, id, found, cf), 0);
  for (i = 0; i < df; i++) {
    const model *doc = &m[docids[i]];
    uint32_t tf = 0;
    size_t j;
    for (j = 0; j < doc->n; j++) {
      if (doc->len[j] != strlen(term) || memcmp(doc->at[j], term, doc->len[j]) != 0) continue;
      if (positions) assert_int_equal(found[at++], doc->position[j]);
      tf++;
    }
    assert_int_equal(tfs[i], tf);
  }
}

/* Random texts of few words, up to 15 of them at a position, in which words repeat. */
static void test_model(void **state) {
  static const char *const word[] = {"a", "b", "c", "dd", "longer-than-sixteen-bytes", "longer-than-sixteen-bytez"};
  enum { N = 200 };
  char(*text)[4096] = (char(*)[4096])malloc(N * sizeof *text);
  model *m = (model *)malloc(N * sizeof *m);
  const char *texts[N];
  rng r = {11};
  size_t d, i, w;
  int positions;
  (void)state;
  assert_non_null(text);
  assert_non_null(m);
  for (d = 0; d < N; d++) {
    size_t len = 0, n = rng_below(&r, 40);
    for (i = 0; i < n; i++) {
      size_t shared = rng_below(&r, 5) ? rng_below(&r, 3) : rng_below(&r, 15), j;
      len += (size_t)sprintf(text[d] + len, "%s%s", i || !rng_below(&r, 9) ? " " : "", word[rng_below(&r, 6)]);
      for (j = 0; j < shared && len < 3800; j++) len += (size_t)sprintf(text[d] + len, "+%s", word[rng_below(&r, 6)]);
    }
    text[d][len] = 0;
    texts[d] = text[d];
    model_of(&m[d], text[d]);
  }
  for (positions = 0; positions < 2; positions++) {
    gpuir_index *ix = index_of(texts, N, positions, NULL);
    gpuir_doc doc;
    for (w = 0; w < 6; w++) same_postings(ix, m, N, word[w], positions);
    for (d = 0; d < N; d++) {
      assert_int_equal(gpuir_doc_get(ix, (uint32_t)d, &doc), 0);
      assert_int_equal(doc.length, m[d].length);
    }
    gpuir_close(ix);
  }
  free(text);
  free(m);
}

static size_t search(gpuir_index *ix, const char *text, int mode, gpuir_hit *hits, size_t k) {
  gpuir_query_desc qd;
  gpuir_query *q;
  gpuir_searcher *s;
  gpuir_error err;
  size_t n;
  memset(&qd, 0, sizeof qd);
  qd.mode = mode;
  if (gpuir_query_parse(ix, &qd, text, strlen(text), &q, &err)) fail_msg("%s: %s", text, err.msg);
  assert_int_equal(gpuir_searcher_create(ix, NULL, &s, &err), 0);
  assert_int_equal(gpuir_search(s, q, hits, k, &n), 0);
  gpuir_searcher_destroy(s);
  gpuir_query_destroy(q);
  return n;
}

/* The spans of a text's first passage that answer a query, as "first-last ...". */
static void marks_of(gpuir_index *ix, const char *query, const char *text, char *to, size_t cap) {
  gpuir_passage passages[4];
  gpuir_mark marks[64];
  gpuir_passage_room room;
  gpuir_query *q;
  gpuir_error err;
  size_t i, len = 0;
  memset(&room, 0, sizeof room);
  room.passages = passages;
  room.cap = 1;
  room.marks = marks;
  room.marks_cap = 64;
  if (gpuir_query_parse(ix, NULL, query, strlen(query), &q, &err)) fail_msg("%s", err.msg);
  if (gpuir_passages(q, NULL, text, strlen(text), &room, &err)) fail_msg("%s", err.msg);
  to[0] = 0;
  for (i = 0; i < room.nmarks; i++)
    len += (size_t)snprintf(to + len, cap - len, "%s%u-%u", i ? " " : "", (unsigned)marks[i].offset,
        (unsigned)(marks[i].offset + marks[i].bytes));
  gpuir_query_destroy(q);
}

/* A phrase goes through any of the tokens of a position; so do the marks of passages. */
static void test_phrases(void **state) {
  static const char *const texts[] = {"x ny+new york+city end", "ny york new+ny", "new x york", "+early york"};
  gpuir_index *ix = index_of(texts, 4, 1, NULL);
  gpuir_hit hits[8];
  char marks[200];
  (void)state;
  assert_int_equal(search(ix, "\"new york\"", GPUIR_AND, hits, 8), 1);
  assert_int_equal(hits[0].docid, 0);
  assert_int_equal(search(ix, "\"ny city end\"", GPUIR_AND, hits, 8), 1);
  assert_int_equal(search(ix, "\"ny york\"", GPUIR_AND, hits, 8), 2);
  assert_int_equal(search(ix, "\"ny new\"", GPUIR_AND, hits, 8), 0); /* they share a position */
  assert_int_equal(search(ix, "early", GPUIR_AND, hits, 8), 0); /* without a position */
  assert_int_equal(search(ix, "city -end", GPUIR_AND, hits, 8), 0);
  marks_of(ix, "\"new york\"", texts[0], marks, sizeof marks);
  assert_string_equal(marks, "2-13"); /* from the position's first token on */
  marks_of(ix, "\"ny city end\"", texts[0], marks, sizeof marks);
  assert_string_equal(marks, "2-22");
  marks_of(ix, "new city", texts[0], marks, sizeof marks);
  assert_string_equal(marks, "5-8 14-18");
  marks_of(ix, "\"york new\" \"york ny\"", texts[1], marks, sizeof marks);
  assert_string_equal(marks, "3-11 3-11");
  marks_of(ix, "early york", texts[3], marks, sizeof marks);
  assert_string_equal(marks, "7-11");
  gpuir_close(ix);
}

/* Scores are the same with and without positions, and a stop word takes its position with it. */
static void test_same_scores(void **state) {
  static const char *const texts[] = {"a+b+b+a c", "b", "the+a b+c", "c c+c b+b"};
  gpuir_index *with = index_of(texts, 4, 1, "the"), *without = index_of(texts, 4, 0, "the");
  gpuir_hit x[8], y[8];
  gpuir_doc doc;
  size_t n;
  (void)state;
  n = search(with, "a b c", GPUIR_OR, x, 8);
  assert_int_equal(n, search(without, "a b c", GPUIR_OR, y, 8));
  assert_memory_equal(x, y, n * sizeof *x);
  assert_int_equal(gpuir_doc_get(with, 2, &doc), 0);
  assert_int_equal(doc.length, 1);
  assert_int_equal(search(with, "a", GPUIR_AND, x, 8), 1); /* not document 2: before its first token that counts */
  gpuir_close(with);
  gpuir_close(without);
}

/* In a query, tokens that do not advance are not asked for, and may be many. */
static void test_query(void **state) {
  static const char *const texts[] = {"a", "b"};
  char word[64] = "a";
  int queries = 0, i;
  gpuir_open_desc od;
  gpuir_index *ix;
  gpuir_query *q;
  gpuir_error err;
  (void)state;
  if (build(texts, 2, 0, NULL, &err)) fail_msg("%s", err.msg);
  memset(&od, 0, sizeof od);
  od.tokenize_places = places;
  od.tokenize_user = &queries;
  assert_int_equal(gpuir_open(path_of(), &od, &ix, &err), 0);
  (void)unlink(path_of());
  for (i = 0; i < 20; i++) (void)strcat(word, "+b");
  assert_int_equal(gpuir_query_parse(ix, NULL, word, strlen(word), &q, &err), 0);
  assert_int_equal(queries, 1);
  gpuir_query_destroy(q);
  assert_int_equal(gpuir_query_parse(ix, NULL, "\"b a\"", 5, &q, &err), GPUIR_E_UNSUPPORTED);
  assert_int_equal(queries, 1); /* a phrase is a text */
  assert_int_equal(gpuir_query_parse(ix, NULL, "!a", 2, &q, &err), GPUIR_E_ARGUMENT);
  assert_non_null(strstr(err.msg, "position"));
  gpuir_close(ix);
}

typedef struct heard {
  char text[256];
} heard;

static int hear(void *sink, const char *token, size_t len) {
  heard *h = (heard *)sink;
  (void)strncat(h->text, token, len);
  (void)strcat(h->text, "|");
  return 0;
}

static int hear_places(void *sink, const char *token, size_t len, unsigned advance) {
  heard *h = (heard *)sink;
  if (!advance) (void)strcat(h->text, "+");
  return hear(sink, token, len);
}

static void test_analyze(void **state) {
  static const char *const texts[] = {"a"};
  gpuir_index *ix = index_of(texts, 1, 0, NULL);
  gpuir_error err;
  heard h;
  (void)state;
  h.text[0] = 0;
  assert_int_equal(gpuir_analyze(ix, "a+b c", 5, hear, &h, &err), 0);
  assert_string_equal(h.text, "a|c|");
  h.text[0] = 0;
  assert_int_equal(gpuir_analyze_places(ix, "a+b c", 5, 0, hear_places, &h, &err), 0);
  assert_string_equal(h.text, "a|+b|c|");
  assert_int_equal(gpuir_analyze_places(ix, "!", 1, 1, hear_places, &h, &err), GPUIR_E_ARGUMENT);
  assert_non_null(strstr(err.msg, "more than one position"));
  assert_int_equal(gpuir_analyze(ix, "a", 1, NULL, NULL, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_analyze_places(NULL, "a", 1, 0, hear_places, &h, &err), GPUIR_E_ARGUMENT);
  gpuir_close(ix);
}

static void test_refused(void **state) {
  const char *fifteen[] = {"a+b+c+d+e+f+g+h+i+j+k+l+m+n+o p"}, *sixteen[] = {"x", "a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p"},
             *leap[] = {"x", "y !"};
  gpuir_builder_desc bd;
  gpuir_builder *b;
  gpuir_error err;
  (void)state;
  assert_int_equal(build(fifteen, 1, 1, NULL, &err), 0);
  (void)unlink(path_of());
  assert_int_equal(build(sixteen, 2, 1, NULL, &err), GPUIR_E_LIMIT);
  assert_non_null(strstr(err.msg, "document 1: the tokenizer puts more than 15 tokens at a position"));
  assert_int_equal(build(leap, 2, 0, NULL, &err), GPUIR_E_ARGUMENT);
  assert_non_null(strstr(err.msg, "document 1: the tokenizer advances by more than one position"));
  memset(&bd, 0, sizeof bd);
  bd.path = path_of();
  bd.analyzer = analyzer_of(NULL);
  bd.analyzer.tokenize = (gpuir_tokenize_fn)1;
  assert_int_equal(gpuir_builder_create(&bd, &b, &err), GPUIR_E_ARGUMENT);
  assert_non_null(strstr(err.msg, "exclude each other"));
}

/* A live index keeps its tokenizer: what is merged is, byte for byte, what the builder makes. */
static void test_live(void **state) {
  static const char *const texts[] = {"a+b c", "b+b+a a", "c+a d", "d d+b"};
  char folder[80], command[256];
  gpuir_live_desc ld;
  gpuir_live *live;
  gpuir_index *ix;
  gpuir_error err;
  gpuir_hit x[8], y[8];
  size_t i, n;
  (void)state;
  (void)snprintf(folder, sizeof folder, "/tmp/places-%ld.live", (long)getpid());
  memset(&ld, 0, sizeof ld);
  ld.settings.path = folder;
  ld.settings.analyzer = analyzer_of(NULL);
  ld.settings.positions = 1;
  ld.create = 1;
  if (gpuir_live_open(&ld, &live, &err)) fail_msg("%s", err.msg);
  for (i = 0; i < 4; i++) {
    gpuir_doc_desc d;
    memset(&d, 0, sizeof d);
    d.name = "wxyz" + i;
    d.name_len = 1;
    assert_int_equal(gpuir_live_add(live, &d, texts[i], strlen(texts[i]), &err), 0);
    assert_int_equal(gpuir_live_commit(live, &err), 0);
  }
  if (gpuir_live_merge(live, 1, NULL, &err)) fail_msg("%s", err.msg);
  if (gpuir_live_refresh(live, &ix, &err)) fail_msg("%s", err.msg);
  if (gpuir_verify(ix, &err)) fail_msg("%s", err.msg);
  n = search(ix, "\"b c\" a", GPUIR_OR, x, 8);
  assert_int_equal(n, 3);
  gpuir_close(ix);
  gpuir_live_close(live);
  (void)snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
  ix = index_of(texts, 4, 1, NULL);
  assert_int_equal(search(ix, "\"b c\" a", GPUIR_OR, y, 8), n);
  assert_memory_equal(x, y, n * sizeof *x);
  gpuir_close(ix);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_model),
      cmocka_unit_test(test_phrases),
      cmocka_unit_test(test_same_scores),
      cmocka_unit_test(test_query),
      cmocka_unit_test(test_analyze),
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_live),
  };
  return cmocka_run_group_tests_name("places", tests, NULL, NULL);
}
