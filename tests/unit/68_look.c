/* 68_look.c - a second look at hits: what each rule gives, by hand; the order of all hits; symbols; whether documents
 * are program code, with deletions; hostile names and scores, errors, memory. tests/e2e/look.bats holds it against a
 * second program of the formula. */
#define _POSIX_C_SOURCE 200809L
#include "gpuir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "alloc.h"
#include "folder.h"
#include "rng.h"

enum { ONE = 1 << 20 };

static const char *path_of(const char *suffix) {
  static char path[64];
  (void)snprintf(path, sizeof path, "/tmp/look-%ld%s", (long)getpid(), suffix);
  return path;
}

/* An index of documents with these names, each of which has the words `wolf` and `cub`; defines[i]: what it defines. */
static gpuir_index *index_of(const char *analyzer, const char *const *names, const char *const *defines, size_t n,
    const gpuir_allocator *a) {
  gpuir_builder_desc bd;
  gpuir_open_desc od;
  gpuir_builder *b;
  gpuir_index *ix;
  gpuir_error err;
  size_t i;
  memset(&bd, 0, sizeof bd);
  memset(&od, 0, sizeof od);
  bd.path = path_of(".gpuir");
  bd.analyzer.analyzer = analyzer;
  bd.threads = 1;
  od.allocator = a;
  if (gpuir_builder_create(&bd, &b, &err)) fail_msg("%s", err.msg);
  for (i = 0; i < n; i++) {
    gpuir_doc_desc d;
    memset(&d, 0, sizeof d);
    d.name = names[i];
    d.name_len = strlen(names[i]);
    if (defines && defines[i]) {
      d.defines = defines[i];
      d.defines_len = strlen(defines[i]);
    }
    if (gpuir_builder_add_text(b, &d, "wolf cub", 8, &err)) fail_msg("%s", err.msg);
  }
  if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
  if (gpuir_open(bd.path, &od, &ix, &err)) fail_msg("%s", err.msg);
  (void)unlink(bd.path);
  return ix;
}

static gpuir_query *query_of(const gpuir_index *ix, const char *text) {
  gpuir_query_desc qd;
  gpuir_query *q;
  gpuir_error err;
  memset(&qd, 0, sizeof qd);
  qd.mode = GPUIR_OR;
  if (gpuir_query_parse(ix, &qd, text, strlen(text), &q, &err)) fail_msg("%s: %s", text, err.msg);
  return q;
}

static void look(const gpuir_index *ix, const char *text, const gpuir_hit *hits, size_t n, gpuir_looked *looked) {
  gpuir_query *q = query_of(ix, text);
  gpuir_error err;
  if (gpuir_look(q, text, strlen(text), hits, n, looked, &err)) fail_msg("%s", err.msg);
  gpuir_query_destroy(q);
}

/* The score, in hundredths, of the only hit for a query, whose own score is 1: of it 1.5 is for the hit and the whole
 * sum of hits. */
static unsigned score_of(const char *name, const char *text) {
  gpuir_index *ix = index_of(NULL, &name, NULL, 1, NULL);
  const gpuir_hit hit = {0, ONE};
  gpuir_looked looked;
  look(ix, text, &hit, 1, &looked);
  gpuir_close(ix);
  assert_int_equal(looked.docid, 0);
  assert_int_equal(looked.plain, ONE);
  return (unsigned)(((uint64_t)looked.score * 100 + ONE / 2) / ONE);
}

static void test_rules(void **state) {
  (void)state;
  assert_int_equal(score_of("x/y.c", "wolf"), 150);
  assert_int_equal(score_of("x/wolf.c", "wolf"), 320); /* all of the query, all of the name */
  assert_int_equal(score_of("x/wolf.c:1-50", "wolf"), 320);
  assert_int_equal(score_of("wolf/y.c", "wolf"), 270); /* the folder */
  assert_int_equal(score_of("wolf/x/y.c", "wolf"), 150); /* not the one above it */
  assert_int_equal(score_of("x/wolfCub.c", "wolf"), 295); /* half of the name */
  assert_int_equal(score_of("x/wolf.c", "wolf cub"), 260); /* half of the query */
  assert_int_equal(score_of("x/wolf.c", "the wolf"), 320); /* what says little does not count */
  assert_int_equal(score_of("x/the.c", "the"), 320); /* if there is more */
  assert_int_equal(score_of("x/wolf.c", "wolf -cub"), 320);
  assert_int_equal(score_of("x/wolves.c", "wolf"), 150);
  assert_int_equal(score_of("x/routing.c", "router"), 320); /* four bytes, of six */
  assert_int_equal(score_of("x/request2.c", "requests"), 295);
  assert_int_equal(score_of("tests/y.c", "wolf"), 45);
  assert_int_equal(score_of("x/test_y.py", "wolf"), 45);
  assert_int_equal(score_of("x/yTest.java", "wolf"), 45);
  assert_int_equal(score_of("x/y.spec.js", "wolf"), 45);
  assert_int_equal(score_of("x/latest.c", "wolf"), 150);
  assert_int_equal(score_of("vendor/y.c", "wolf"), 45);
  assert_int_equal(score_of("x/y.pb.go", "wolf"), 45);
  assert_int_equal(score_of("x/y.md", "wolf"), 45);
  assert_int_equal(score_of("x/README", "wolf"), 45);
  assert_int_equal(score_of("x/run", "wolf"), 150);
  assert_int_equal(score_of("docs/tests/y.md", "wolf"), 4);
  assert_int_equal(score_of("tests/y.c", "wolf tests"), 210); /* half of the query is the folder */
  assert_int_equal(score_of("docs/y.c", "docs wolf"), 210);
}

/* Files by score, each with its best hit; then their others; then those beyond. Scores never rise. */
static void test_order(void **state) {
  enum { N = GPUIR_LOOK_HITS + 40 };
  static char text[N][32];
  const char *names[N];
  gpuir_hit hits[N];
  gpuir_looked looked[N];
  gpuir_index *ix;
  uint8_t seen[N];
  unsigned i;
  (void)state;
  for (i = 0; i < N; i++) {
    names[i] = text[i];
    (void)snprintf(text[i], sizeof text[i], "x/%s%u.c:%u", i % 60 == 7 ? "wolf" : "y", i % 60, i);
    hits[i].docid = i;
    hits[i].score = (uint32_t)(ONE - 1000 * i);
  }
  ix = index_of(NULL, names, NULL, N, NULL);
  look(ix, "wolf", hits, N, looked);
  memset(seen, 0, sizeof seen);
  assert_int_equal(looked[0].docid, 7);
  for (i = 0; i < N; i++) {
    assert_int_equal(seen[looked[i].docid]++, 0);
    assert_int_equal(looked[i].plain, hits[looked[i].docid].score);
    if (i) assert_true(looked[i].score <= looked[i - 1].score);
    if (i < 60) assert_true(looked[i].docid < 60);
    if (i >= GPUIR_LOOK_HITS) assert_int_equal(looked[i].docid, i);
  }
  look(ix, "wolf", hits, 3, looked);
  assert_int_equal(looked[0].docid, 0);
  gpuir_close(ix);
}

/* The greatest scores and sums, many words and long names neither overflow nor leave their arrays. */
static void test_hostile(void **state) {
  enum { N = GPUIR_LOOK_HITS, LONG = 20000 };
  char *text = (char *)malloc(LONG + 1);
  const char *names[N];
  gpuir_hit hits[N];
  gpuir_looked looked[N];
  gpuir_index *ix;
  unsigned i;
  (void)state;
  assert_non_null(text);
  for (i = 0; i < LONG; i++) text[i] = "aB3/_."[(i * 7 + i / 6) % 6];
  text[LONG] = 0;
  for (i = 0; i < N; i++) {
    names[i] = i % 3 ? text + LONG - i * 50 : i % 2 ? "" : "wolf.c";
    hits[i].docid = i;
    hits[i].score = UINT32_MAX;
  }
  ix = index_of(NULL, names, NULL, N, NULL);
  look(ix, "wolf", hits, N, looked);
  assert_int_equal(looked[0].score, UINT32_MAX);
  for (i = 0; i < LONG; i++) text[i] = (i + 1) % 5 ? (char)('a' + i % 7) : ' ';
  {
    gpuir_query *q = query_of(ix, "wolf");
    assert_int_equal(gpuir_look(q, text, LONG, hits, N, looked, NULL), 0);
    assert_int_equal(gpuir_look(q, "wolf \"cub", 9, hits, N, looked, NULL), 0); /* not its text: any bytes */
    assert_int_equal(gpuir_look(q, "-\"", 2, hits, N, looked, NULL), 0);
    assert_int_equal(gpuir_look(q, NULL, 0, hits, N, looked, NULL), 0);
    gpuir_query_destroy(q);
  }
  for (i = 0; i < N; i++) hits[i].score = 0;
  look(ix, "wolf", hits, N, looked);
  for (i = 0; i < N; i++) assert_int_equal(looked[i].docid, i);
  gpuir_close(ix);
  free(text);
}

static const char *const errors_names[] = {"x/wolf.c", "y.c"};

static void test_errors(void **state) {
  const gpuir_hit hits[2] = {{0, ONE}, {2, ONE}};
  gpuir_looked looked[2];
  gpuir_index *ix = index_of(NULL, errors_names, NULL, 2, NULL);
  gpuir_query *q = query_of(ix, "wolf");
  gpuir_error err;
  uint64_t sources = 1;
  (void)state;
  assert_int_equal(gpuir_look(NULL, "", 0, hits, 1, looked, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_look(q, NULL, 1, hits, 1, looked, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_look(q, "", 0, NULL, 1, looked, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_look(q, "", 0, hits, 1, NULL, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_look(q, "", 0, NULL, 0, NULL, &err), 0);
  assert_int_equal(gpuir_look_facts(q, "wolf", 4, hits, NULL, 1, looked, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_look_defines(q, "wolf", 4, hits, 1, NULL, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_look_defines(q, "wolf", 4, hits, GPUIR_LOOK_HITS + 1, (uint8_t *)looked, &err),
      GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_look(q, "wolf", 4, hits, 2, looked, &err), GPUIR_E_NOT_FOUND);
  assert_non_null(strstr(err.msg, "cannot be ranked anew"));
  assert_int_equal(gpuir_index_is_code(ix, &sources), 0); /* not counted with this analyzer */
  assert_int_equal(sources, 0);
  assert_int_equal(gpuir_index_is_code(NULL, NULL), 0);
  gpuir_query_destroy(q);
  gpuir_close(ix);
}

/* Every allocation fails once: the call says so, and nothing is lost. */
static void check_memory(const char *analyzer, const char *const *defines) {
  static const gpuir_hit hits[2] = {{0, ONE}, {1, ONE}};
  alloc_book book;
  gpuir_allocator a = alloc_from(&book);
  gpuir_looked looked[2];
  gpuir_index *ix;
  gpuir_query *q;
  int64_t at, blocks;
  memset(&book, 0, sizeof book);
  ix = index_of(analyzer, errors_names, defines, 2, &a);
  q = query_of(ix, "getWolf");
  assert_int_equal(gpuir_look(q, "getWolf", 7, hits, 2, looked, NULL), 0);
  blocks = book.blocks;
  for (at = 1;; at++) {
    gpuir_error err;
    int status;
    book.calls = 0;
    book.fail_at = at;
    status = gpuir_look(q, "getWolf", 7, hits, 2, looked, &err);
    book.fail_at = 0;
    assert_int_equal(book.blocks, blocks);
    if (!status) break;
    assert_int_equal(status, GPUIR_E_NOMEM);
    assert_true(err.code == GPUIR_E_NOMEM && err.msg[0]);
  }
  assert_true(at > 2);
  gpuir_query_destroy(q);
  gpuir_close(ix);
  assert_int_equal(book.blocks, 0);
}

static void test_memory(void **state) {
  (void)state;
  check_memory(NULL, NULL);
#ifdef GPUIR_WITH_UTF8PROC
  {
    static const char *const defines[] = {"getWolf", "cub"};
    check_memory("text", defines);
  }
#endif
}

#ifdef GPUIR_WITH_UTF8PROC

/* The file that defines a symbol comes first, whatever its case; a name of several segments is one. */
/* A look at what is told of the hits is that of the index which has their documents. */
static void told_is(const gpuir_query *q, const char *text, const gpuir_hit *hits, const char *const *names,
    const gpuir_looked *want, size_t n) {
  gpuir_look_fact facts[8];
  gpuir_looked looked[8];
  uint8_t defines[8];
  size_t i;
  assert_int_equal(gpuir_look_defines(q, text, strlen(text), hits, n, defines, NULL), 0);
  for (i = 0; i < n; i++) {
    facts[i].name = names[hits[i].docid];
    facts[i].len = (uint32_t)strlen(facts[i].name);
    facts[i].defines = defines[i];
  }
  assert_int_equal(gpuir_look_facts(q, text, strlen(text), hits, facts, n, looked, NULL), 0);
  assert_memory_equal(looked, want, n * sizeof *want);
}

static void test_symbols(void **state) {
  static const char *const names[] = {"a/k.c", "b/y.c", "c/z.c"};
  static const char *const defines[] = {NULL, "getWolf cub_of_wolf\nHTTPThing", "wolf"};
  static const struct {
    const char *query;
    uint32_t first;
  } cases[] = {{"getWolf", 1}, {"wolf", 2}, {"a wolf", 0}, {"the getWolf of wolf", 1}, {"x::getWolf()", 1},
      {"cub_of_wolf", 1}, {"cub_of", 0}, {"cub of wolf", 0}, {"a.b->getwolf", 1}, {"HTTPThing wolf", 1},
      {"\"getWolf\"", 1}, {"wolf -getWolf", 2}, {"9wolf", 0}, {"getWolf;", 0}};
  const gpuir_hit hits[] = {{0, ONE}, {1, ONE - 1}, {2, ONE - 2}};
  gpuir_index *ix = index_of("text", names, defines, 3, NULL);
  size_t i;
  (void)state;
  for (i = 0; i < sizeof cases / sizeof *cases; i++) {
    gpuir_looked looked[3];
    gpuir_query *q = query_of(ix, "wolf");
    assert_int_equal(gpuir_look(q, cases[i].query, strlen(cases[i].query), hits, 3, looked, NULL), 0);
    if (looked[0].docid != cases[i].first) fail_msg("%s: document %u", cases[i].query, looked[0].docid);
    told_is(q, cases[i].query, hits, names, looked, 3);
    gpuir_query_destroy(q);
  }
  gpuir_close(ix);
}

/* Sources are counted among live documents, in segments and when these are merged. */
static void test_is_code(void **state) {
  static const char *const names[] = {"a.c", "b.py:1-50", "c.md", "d", "e.go"};
  gpuir_live_desc ld;
  gpuir_live *live;
  gpuir_index *ix = index_of("text", names, NULL, 4, NULL);
  gpuir_error err;
  uint64_t sources;
  char command[80];
  size_t i;
  int more = 1;
  (void)state;
  assert_int_equal(gpuir_index_is_code(ix, &sources), 1); /* two of four */
  assert_int_equal(sources, 2);
  gpuir_close(ix);
  memset(&ld, 0, sizeof ld);
  ld.settings.path = path_of(".live");
  ld.settings.analyzer.analyzer = "text";
  ld.create = 1;
  if (gpuir_live_open(&ld, &live, &err)) fail_msg("%s", err.msg);
  for (i = 0; i < 5; i++) {
    gpuir_doc_desc doc;
    memset(&doc, 0, sizeof doc);
    doc.name = names[i];
    doc.name_len = strlen(names[i]);
    if (gpuir_live_add(live, &doc, "wolf", 4, &err)) fail_msg("%s", err.msg);
    if (i == 2 && gpuir_live_commit(live, &err)) fail_msg("%s", err.msg);
  }
  for (i = 0; i < 2; i++) {
    assert_int_equal(gpuir_live_refresh(live, &ix, &err), 0);
    assert_int_equal(gpuir_index_is_code(ix, &sources), i == 0);
    assert_int_equal(sources, i ? 1 : 3);
    gpuir_close(ix);
    if (i) break;
    assert_int_equal(gpuir_live_delete(live, GPUIR_BY_NAME, "a.c", 3, NULL, &err), 0);
    assert_int_equal(gpuir_live_delete(live, GPUIR_BY_NAME, "e.go", 4, NULL, &err), 0);
  }
  while (more) assert_int_equal(gpuir_live_merge(live, 1, &more, &err), 0);
  assert_int_equal(gpuir_live_refresh(live, &ix, &err), 0);
  assert_int_equal(gpuir_index_is_code(ix, &sources), 0);
  assert_int_equal(sources, 1);
  gpuir_close(ix);
  gpuir_live_close(live);
  (void)snprintf(command, sizeof command, "rm -r %s", path_of(".live"));
  assert_int_equal(system(command), 0);
}

#endif

/* ---- words that hits have in common */

/* Writes texts into a file's index or, where `live`, into a folder of a segment for each 50. */
static gpuir_index *index_of_texts(char (*texts)[200], size_t n, int live, int simd) {
  gpuir_builder_desc bd;
  gpuir_live_desc ld;
  gpuir_open_desc od;
  gpuir_builder *b;
  gpuir_live *l;
  gpuir_index *ix;
  gpuir_error err;
  size_t i;
  memset(&bd, 0, sizeof bd);
  memset(&ld, 0, sizeof ld);
  memset(&od, 0, sizeof od);
  bd.path = path_of(live ? ".live" : ".gpuir");
  bd.analyzer.analyzer = "ascii";
  bd.positions = 1;
  bd.threads = 1;
  ld.settings = bd;
  ld.create = 1;
  od.simd = simd;
  if (live) {
    if (gpuir_live_open(&ld, &l, &err)) fail_msg("%s", err.msg);
    for (i = 0; i < n; i++) {
      if (gpuir_live_add(l, NULL, texts[i], strlen(texts[i]), &err)) fail_msg("%s", err.msg);
      if (i % 50 == 49 && gpuir_live_commit(l, &err)) fail_msg("%s", err.msg);
    }
    if (gpuir_live_commit(l, &err) || gpuir_live_refresh(l, &ix, &err)) fail_msg("%s", err.msg);
    gpuir_live_close(l);
    assert_int_equal(folder_remove(bd.path), 0);
    return ix;
  }
  if (gpuir_builder_create(&bd, &b, &err)) fail_msg("%s", err.msg);
  for (i = 0; i < n; i++)
    if (gpuir_builder_add_text(b, NULL, texts[i], strlen(texts[i]), &err)) fail_msg("%s", err.msg);
  if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
  if (gpuir_open(bd.path, &od, &ix, &err)) fail_msg("%s", err.msg);
  (void)unlink(bd.path);
  return ix;
}

static gpuir_query *expanded(const gpuir_index *ix, const char *text, int mode, const gpuir_expansion *e) {
  gpuir_query_desc qd;
  gpuir_query *q;
  gpuir_error err;
  memset(&qd, 0, sizeof qd);
  qd.mode = mode;
  qd.expansion = e;
  if (gpuir_query_parse(ix, &qd, text, strlen(text), &q, &err)) fail_msg("%s: %s", text, err.msg);
  return q;
}

static char many[300][200];

static void model_is(const gpuir_expansion *e, const char *const *words, const uint32_t *weights, unsigned n) {
  unsigned i;
  assert_int_equal(e->n, n);
  for (i = 0; i < n; i++) {
    assert_int_equal(e->terms[i].len, strlen(words[i]));
    assert_memory_equal(e->terms[i].term, words[i], strlen(words[i]));
    assert_int_equal(e->terms[i].weight, weights[i]);
  }
}

/* What words weigh, by hand; and their shares of a query's weight. */
static void test_model(void **state) {
  static const char *const texts[] = {"Wolf cub cub den", "the wolf den moon moon the x x", NULL, "rare rare third"};
  static const char *const four[] = {"cub", "den", "wolf", "moon"}, *const three[] = {"rare", "third"};
  const uint32_t weights[] = {24576, 14336, 14336, 4096}, thirds[] = {43691, 21845};
  const uint32_t shares[] = {640, 219, 128, 37};
  const size_t lens[] = {16, 30, 0, 15};
  gpuir_hit hits[] = {{0, 3 * ONE}, {1, ONE}, {2, 7 * ONE}, {3, ONE}};
  static gpuir_explanation x, plain;
  gpuir_expansion e;
  gpuir_searcher *s;
  gpuir_query *q, *own;
  gpuir_index *ix;
  gpuir_error err;
  unsigned i;
  (void)state;
  for (i = 0; i < 60; i++) (void)snprintf(many[i], sizeof many[i], "the other x");
  for (i = 0; i < 4; i++)
    if (texts[i]) (void)snprintf(many[i], sizeof many[i], "%s", texts[i]);
  ix = index_of_texts(many, 60, 0, 0);
  assert_int_equal(gpuir_expand(ix, hits, texts, lens, 2, 64, &e, &err), 0);
  model_is(&e, four, weights, 4); /* `the` is in most documents, x is one letter */
  assert_int_equal(gpuir_expand(ix, hits, texts, lens, 3, 2, &e, &err), 0); /* a hit without text weighs nothing */
  model_is(&e, four, weights, 2);
  assert_int_equal(gpuir_expand(ix, hits + 3, texts + 3, lens + 3, 1, 20, &e, &err), 0);
  model_is(&e, three, thirds, 2);
  assert_int_equal(gpuir_expand(ix, NULL, NULL, NULL, 0, 20, &e, &err), 0);
  assert_int_equal(e.n, 0);
  assert_int_equal(gpuir_expand(ix, hits, texts, lens, 2, 65, &e, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_expand(NULL, hits, texts, lens, 2, 20, &e, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_expand(ix, hits, texts, lens, 2, 64, &e, &err), 0);
  assert_int_equal(gpuir_searcher_create(ix, NULL, &s, NULL), 0);
  q = expanded(ix, "wolf", GPUIR_OR, &e);
  own = expanded(ix, "wolf cub den moon", GPUIR_OR, NULL);
  assert_int_equal(gpuir_explain(s, q, 0, &x), 0);
  assert_int_equal(gpuir_explain(s, own, 0, &plain), 0);
  assert_int_equal(x.nterms, 4);
  for (i = 0; i < 4; i++) {
    assert_memory_equal(x.terms[i].term, plain.terms[i].term, 3);
    assert_true(x.terms[i].weight == (float)((double)plain.terms[i].weight * shares[i] / 1024));
    assert_int_equal(x.terms[i].optional, i > 0);
  }
  gpuir_query_destroy(q);
  q = expanded(ix, "wolf -cub", GPUIR_OR, &e);
  assert_int_equal(gpuir_explain(s, q, 1, &x), 0);
  assert_int_equal(x.nterms, 4);
  assert_true(x.terms[3].negated && x.matches);
  gpuir_query_destroy(q);
  gpuir_query_destroy(own);
  gpuir_searcher_destroy(s);
  gpuir_close(ix);
}

/* A collection of words, the frequent ones of which few documents lack. */
static void make_many(void) {
  size_t i, at;
  rng r;
  r.s = 11;
  for (i = 0; i < 300; i++)
    for (at = 0; at < 180;) {
      const uint32_t a = rng_below(&r, 400), b = rng_below(&r, 400);
      at += (size_t)snprintf(many[i] + at, 200 - at, "w%u ", a < b ? a : b);
    }
}

/* Expands a query by its first ten hits, and returns the hits of that. */
static size_t expanded_hits(gpuir_index *ix, const char *text, int mode, int evaluator, unsigned threads,
    gpuir_hit *hits) {
  gpuir_searcher_desc sd;
  gpuir_searcher *s;
  const char *texts[10];
  size_t lens[10], n, i;
  gpuir_expansion e;
  gpuir_query *q = expanded(ix, text, mode, NULL);
  const gpuir_query *one;
  uint32_t count;
  gpuir_error err;
  memset(&sd, 0, sizeof sd);
  sd.evaluator = evaluator;
  sd.threads = threads;
  assert_int_equal(gpuir_searcher_create(ix, &sd, &s, NULL), 0);
  assert_int_equal(gpuir_search(s, q, hits, 10, &n), 0);
  for (i = 0; i < n; i++) texts[i] = many[hits[i].docid], lens[i] = strlen(texts[i]);
  if (gpuir_expand(ix, hits, texts, lens, n, 20, &e, &err)) fail_msg("%s", err.msg);
  gpuir_query_destroy(q);
  q = expanded(ix, text, mode, &e);
  one = q;
  assert_int_equal(gpuir_search_batch(s, &one, 1, 50, hits, &count), 0);
  gpuir_query_destroy(q);
  gpuir_searcher_destroy(s);
  return count;
}

/* The hits are the same for one segment and several, SIMD levels, threads and evaluators, in every mode. */
static void test_expanded(void **state) {
  static const char *const asked[] = {"w3 w17", "w40 w41 w250", "w1", "w5 -w6 w120", "\"w1 w2\" w90", "w9* w300"};
  gpuir_hit want[50], got[50];
  gpuir_index *ix[3];
  size_t q, i, n, differ = 0;
  int mode;
  (void)state;
  make_many();
  ix[0] = index_of_texts(many, 300, 0, GPUIR_SIMD_SCALAR);
  ix[1] = index_of_texts(many, 300, 0, 0);
  ix[2] = index_of_texts(many, 300, 1, 0);
  for (q = 0; q < 6; q++)
    for (mode = GPUIR_AND; mode <= GPUIR_ANDOR; mode++) {
      n = expanded_hits(ix[0], asked[q], mode, GPUIR_EVAL_EXHAUSTIVE, 1, want);
      for (i = 0; i < 6; i++) {
        if (expanded_hits(ix[i / 2], asked[q], mode, GPUIR_EVAL_AUTO, i & 1 ? 4 : 1, got) != n)
          fail_msg("%s, mode %d, %zu: other hits", asked[q], mode, i);
        assert_memory_equal(got, want, n * sizeof *want);
      }
      if (n) {
        gpuir_searcher *s;
        gpuir_query *own = expanded(ix[1], asked[q], mode, NULL);
        assert_int_equal(gpuir_searcher_create(ix[1], NULL, &s, NULL), 0);
        assert_int_equal(gpuir_search(s, own, got, 50, &i), 0);
        if (mode == GPUIR_AND) assert_int_equal(i, n); /* words of the model are not asked for */
        differ += i != n || memcmp(got, want, n * sizeof *want) != 0;
        gpuir_query_destroy(own);
        gpuir_searcher_destroy(s);
      }
    }
  assert_true(differ > 10);
  for (i = 0; i < 3; i++) gpuir_close(ix[i]);
}

/* Without memory an expansion fails, and nothing is left. */
static void test_expand_memory(void **state) {
  static const char *const names[] = {"a.c"}, *const texts[] = {"wolf cub den"};
  const size_t lens[] = {12};
  const gpuir_hit hit = {0, ONE};
  gpuir_allocator a;
  alloc_book book;
  gpuir_expansion e;
  gpuir_index *ix;
  gpuir_error err;
  int status = GPUIR_E_NOMEM;
  uint64_t at;
  (void)state;
  memset(&book, 0, sizeof book);
  a = alloc_from(&book);
  ix = index_of("ascii", names, NULL, 1, &a);
  for (at = 1; status; at++) {
    book.fail_at = book.calls + (int64_t)at;
    status = gpuir_expand(ix, &hit, texts, lens, 1, 20, &e, &err);
    book.fail_at = 0;
    if (!status) break;
    assert_int_equal(status, GPUIR_E_NOMEM);
    assert_true(err.code == GPUIR_E_NOMEM && err.msg[0] && !e.n);
  }
  assert_true(at > 2);
  gpuir_close(ix);
  assert_int_equal(book.blocks, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rules),
      cmocka_unit_test(test_order),
      cmocka_unit_test(test_hostile),
      cmocka_unit_test(test_errors),
      cmocka_unit_test(test_memory),
      cmocka_unit_test(test_model),
      cmocka_unit_test(test_expanded),
      cmocka_unit_test(test_expand_memory),
#ifdef GPUIR_WITH_UTF8PROC
      cmocka_unit_test(test_symbols),
      cmocka_unit_test(test_is_code),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
