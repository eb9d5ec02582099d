/* search.c - every search equals brute force: all hits, their scores, their order, their number
 *
 * Collections are indexed with every pair of codecs and opened at every SIMD level, and each query
 * runs under both evaluators. Comparisons are for equality. GPUIR_LONG=1 runs ten times as many. */
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "oracle.h"
#include "corpus.h"
#include "wordnet.h"

enum { CODECS = 4, LEVELS = 3, INDEXES = CODECS * LEVELS, SEARCHERS = INDEXES * 2 };

static unsigned long compared, hits_compared;

/* A collection, its indexes and searchers. Searcher i works on index i / 2; odd ones are exhaustive. */
typedef struct fixture {
  const char *name;
  oracle o;
  int nindexes;
  gpuir_index *index[INDEXES];
  gpuir_searcher *searcher[SEARCHERS];
  gpuir_hit *hits;
  float k1, b; /* stored */
} fixture;

static gpuir_index *open_at(const char *path, int simd) {
  gpuir_open_desc desc;
  gpuir_index *ix = NULL;
  gpuir_error err;
  memset(&desc, 0, sizeof desc);
  desc.simd = simd;
  if (gpuir_open(path, &desc, &ix, &err)) fail_msg("open: %s", err.msg);
  return ix;
}

static gpuir_searcher *searcher_on(gpuir_index *ix, int evaluator, unsigned threads) {
  gpuir_searcher_desc desc;
  gpuir_searcher *s = NULL;
  memset(&desc, 0, sizeof desc);
  desc.evaluator = evaluator;
  desc.threads = threads;
  assert_int_equal(gpuir_searcher_create(ix, &desc, &s), GPUIR_OK);
  return s;
}

static void open_all(fixture *f, const char *path) {
  int level;
  for (level = 0; level < LEVELS; level++) {
    gpuir_index *ix = open_at(path, GPUIR_SIMD_SCALAR + level);
    gpuir_error err;
    if (level == 0 && gpuir_verify(ix, &err)) fail_msg("%s: verify: %s", f->name, err.msg);
    f->searcher[f->nindexes * 2] = searcher_on(ix, GPUIR_EVAL_AUTO, 1);
    f->searcher[f->nindexes * 2 + 1] = searcher_on(ix, GPUIR_EVAL_EXHAUSTIVE, 1);
    f->index[f->nindexes++] = ix;
  }
  (void)unlink(path);
}

/* Indexes f->o with the codec pairs of the mask `codecs`. */
static void setup_codecs(fixture *f, const char *name, const corpus_build *how, unsigned codecs) {
  static const char *const codec[] = {"bp128", "vbyte"};
  char path[4200];
  int c;
  f->name = name;
  f->nindexes = 0;
  f->k1 = how && how->custom_bm25 ? how->k1 : 0.9f;
  f->b = how && how->custom_bm25 ? how->b : 0.4f;
  f->hits = (gpuir_hit *)oracle_grow(NULL, (size_t)f->o.ndocs + 16, sizeof *f->hits);
  (void)corpus_path(path, sizeof path, "search.gpuir");
  for (c = 0; c < CODECS; c++) {
    corpus_build b;
    gpuir_error err;
    memset(&b, 0, sizeof b);
    if (how) b = *how;
    if (!(codecs >> c & 1)) continue;
    b.codec = codec[c & 1];
    b.freq_codec = codec[c == 1 || c == 2];
    if (corpus_write(&f->o, path, &b, &err)) fail_msg("%s: build: %s", name, err.msg);
    open_all(f, path);
  }
}

static void setup(fixture *f, const char *name) { setup_codecs(f, name, NULL, 15); }

static void close_all(fixture *f) {
  int i;
  for (i = 0; i < f->nindexes; i++) {
    gpuir_searcher_destroy(f->searcher[i * 2]);
    gpuir_searcher_destroy(f->searcher[i * 2 + 1]);
    gpuir_close(f->index[i]);
  }
  f->nindexes = 0;
}

static void teardown(fixture *f) {
  close_all(f);
  free(f->hits);
  oracle_free(&f->o);
}

/* ---------------------------------------------------------------- comparing */

static void say_where(const fixture *f, const gpuir_index *ix, const char *text, int mode, size_t k) {
  gpuir_index_info info;
  static const char *const modes[] = {"AND", "OR", "AND+OR"};
  (void)gpuir_index_stats(ix, &info);
  print_error("collection %s (N = %u), docIDs %s, frequencies %s, %s, %s, k = %lu, query \"%.300s\"\n",
              f->name, (unsigned)f->o.ndocs, info.codec, info.freq_codec, gpuir_simd_name(ix->simd),
              modes[mode], (unsigned long)k, text);
}

/* The hits must be the oracle's first k. */
static void equal_hits(fixture *f, const gpuir_index *ix, const char *text, int mode, size_t k,
                       const gpuir_hit *hits, size_t n, const char *what) {
  size_t want, i;
  const oracle_hit *right = oracle_answer(&f->o, mode, k, &want);
  compared++;
  hits_compared += n;
  for (i = 0; i < n && i < want; i++)
    if (hits[i].docid != right[i].docid || hits[i].score != right[i].score) break;
  if (i == n && n == want) return;
  say_where(f, ix, text, mode, k);
  if (i < n && i < want)
    print_error("hit %lu is (%u, %u), not (%u, %u); ", (unsigned long)i, (unsigned)hits[i].docid,
                (unsigned)hits[i].score, (unsigned)right[i].docid, (unsigned)right[i].score);
  fail_msg("%s: %lu hits, should be %lu", what, (unsigned long)n, (unsigned long)want);
}

static void check_search(fixture *f, int searcher, const gpuir_query *q, const char *text, int mode,
                         size_t k) {
  const gpuir_index *ix = f->index[searcher / 2];
  size_t n = 99, room = k < f->o.ndocs + 8u ? k : f->o.ndocs + 8u;
  int status;
  memset(f->hits, 0xee, (room + 1) * sizeof *f->hits);
  status = gpuir_search(f->searcher[searcher], q, f->hits, k, &n);
  if (status) {
    gpuir_error err;
    gpuir_searcher_error(f->searcher[searcher], &err);
    say_where(f, ix, text, mode, k);
    fail_msg("search failed: %s (%s)", gpuir_strerror(status), err.msg);
  }
  equal_hits(f, ix, text, mode, k, f->hits, n, searcher & 1 ? "exhaustive" : "auto");
  assert_int_equal(f->hits[room].docid, 0xeeeeeeee); /* nothing beyond hits[k] */
}

static void check_count(fixture *f, int searcher, const gpuir_query *q, const char *text, int mode) {
  uint64_t count = 99, want = f->o.nhits[mode == GPUIR_OR];
  int status = gpuir_count(f->searcher[searcher], q, &count);
  compared++;
  if (status || count != want) {
    say_where(f, f->index[searcher / 2], text, mode, 0);
    fail_msg("count: status %d, %lu, should be %lu", status, (unsigned long)count, (unsigned long)want);
  }
}

static gpuir_query *parse(const gpuir_index *ix, const char *text, size_t len, int mode, const float *bm25,
                          int *status) {
  gpuir_query_desc desc;
  gpuir_query *q = NULL;
  gpuir_error err;
  memset(&desc, 0, sizeof desc);
  desc.mode = mode;
  if (bm25) {
    desc.custom_bm25 = 1;
    desc.k1 = bm25[0];
    desc.b = bm25[1];
  }
  memset(&err, 0, sizeof err);
  *status = gpuir_query_parse(ix, &desc, text, len, &q, &err);
  if (*status) assert_int_equal(err.code, *status);
  return q;
}

/* Each term's part in the document's score, from the formula. */
static void check_explain(fixture *f, int searcher, const gpuir_query *q, const oracle_query *oq, int mode,
                          const float *bm25, uint32_t docid) {
  static gpuir_explanation x;
  const oracle *o = &f->o;
  float k1 = bm25 ? bm25[0] : f->k1, b = bm25 ? bm25[1] : f->b;
  uint64_t sum = 0;
  size_t i, j, positive = 0, n = 0;
  int in = 0;
  const oracle_hit *list = o->hits[mode == GPUIR_OR];
  assert_int_equal(gpuir_explain(f->searcher[searcher], q, docid, &x), GPUIR_OK);
  compared++;
  for (i = 0; i < o->nhits[mode == GPUIR_OR]; i++)
    if (list[i].docid == docid) {
      in = 1;
      assert_int_equal(x.score, list[i].score);
    }
  assert_int_equal(x.matches, in);
  if (!in) assert_int_equal(x.score, 0);
  assert_int_equal(x.length, o->dl[docid]);
  assert_true(x.k1 == k1 && x.b == b);
  assert_true(strlen(x.plan) > 0);
  for (i = 0; i < x.nterms; i++) {
    const gpuir_explain_term *t = &x.terms[i];
    uint32_t term = oracle_find(o, t->term, t->term_len), tf = 0;
    if (term != ORACLE_UNKNOWN) tf = oracle_tf(o, term, docid);
    assert_int_equal(t->df, oracle_df(o, term));
    assert_int_equal(t->tf, tf);
    if (t->negated) continue;
    assert_int_equal(i, positive); /* positive ones come first */
    positive++;
    if (t->df) {
      uint32_t qtf = 0;
      float idf = oracle_idf(o->ndocs, t->df), W = oracle_weight(idf, k1);
      float K = oracle_norm(k1, b, o->tokens, o->ndocs, o->dl[docid]);
      for (j = 0; j < oq->n && !qtf; j++)
        if (oq->word[j].term == term) qtf = oracle_q(oq, j);
      assert_int_equal(t->q, qtf);
      assert_true(t->idf == idf && t->weight == W && t->norm == K);
      assert_int_equal(t->contribution, tf ? oracle_c(W, K, tf) : 0);
      sum += (uint64_t)t->q * t->contribution;
    }
  }
  for (j = 0; j < oq->n; j++)
    if (!oq->word[j].negated && (oq->word[j].term == ORACLE_UNKNOWN || oracle_q(oq, j))) n++;
  assert_int_equal(positive, n);
  if (in) assert_int_equal(sum, x.score);
  if (o->matched[docid]) assert_int_equal(sum, o->score[docid]); /* also of documents that do not match */
}

/* A query on every index with every evaluator; `all` asks for every k on each of them. */
static void check_query(fixture *f, const oracle_query *oq, const float *bm25, corpus_rng *r, int all) {
  const size_t ks[] = {0, 1, 2, 10, 100, 1000, f->o.ndocs, (size_t)f->o.ndocs + 5};
  enum { KS = sizeof ks / sizeof *ks };
  static char text[65536];
  size_t len = corpus_text(&f->o, oq, text, sizeof text), i;
  int expected = oracle_run(&f->o, oq, bm25 ? bm25[0] : f->k1, bm25 ? bm25[1] : f->b), mode, x, e;
  for (mode = 0; mode < 3; mode++) {
    int whole = (int)corpus_below(r, (uint32_t)f->nindexes);
    for (x = 0; x < f->nindexes; x++) {
      int status;
      gpuir_query *q = parse(f->index[x], text, len, mode, bm25, &status);
      if (status != expected) {
        say_where(f, f->index[x], text, mode, 0);
        fail_msg("parse: %s, should be %s (k1 %g, b %g)", gpuir_strerror(status), gpuir_strerror(expected),
                 (double)(bm25 ? bm25[0] : f->k1), (double)(bm25 ? bm25[1] : f->b));
      }
      if (status) continue;
      for (e = 0; e < 2; e++) {
        int s = x * 2 + e;
        if (all || x == whole)
          for (i = 0; i < KS; i++) check_search(f, s, q, text, mode, ks[i]);
        else
          check_search(f, s, q, text, mode, ks[1 + corpus_below(r, 5)]);
      }
      if (all || x == whole) check_count(f, x * 2, q, text, mode);
      if (x == whole && f->o.ndocs) {
        const oracle_hit *list = f->o.hits[mode == GPUIR_OR];
        size_t n = f->o.nhits[mode == GPUIR_OR];
        if (n) check_explain(f, x * 2, q, oq, mode, bm25, list[0].docid);
        if (n) check_explain(f, x * 2, q, oq, mode, bm25, list[n - 1].docid);
        check_explain(f, x * 2, q, oq, mode, bm25, corpus_below(r, f->o.ndocs));
      }
      gpuir_query_destroy(q);
    }
  }
}

static const float settings[][2] = {{0.9f, 0.4f},    {0.0f, 0.0f},   {0.0f, 1.0f},     {1000.0f, 0.0f},
                                    {1000.0f, 1.0f}, {1.2f, 0.75f},  {0.9f, 0.0f},     {0.9f, 1.0f},
                                    {2.5f, 0.3f},    {100.0f, 0.9f}, {1e-20f, 1e-30f}, {30.0f, 0.01f}};
enum { SETTINGS = sizeof settings / sizeof *settings };

/* Random queries of 1 to 64 words, most of them short, under the index's and other parameters. */
static void random_queries(fixture *f, unsigned times, uint64_t seed, int all) {
  corpus_rng r;
  unsigned i;
  r.s = seed;
  if (corpus_long_run()) times *= 10;
  for (i = 0; i < times; i++) {
    oracle_query q;
    const float *bm25 = i % 3 == 2 ? settings[corpus_below(&r, SETTINGS)] : NULL;
    uint32_t most = corpus_below(&r, 8) == 0 ? 64 : 1u << corpus_below(&r, 5);
    corpus_query(&f->o, &r, 1 + corpus_below(&r, most), i % 2, &q);
    check_query(f, &q, bm25, &r, all);
  }
}

/* Each term alone, and each with each of a few. */
static void single_terms(fixture *f, uint32_t step, const float *bm25, int all) {
  corpus_rng r;
  uint32_t t;
  r.s = 5;
  for (t = 0; t < f->o.nterms; t += step) {
    oracle_query q;
    q.n = 1;
    q.word[0].term = t;
    q.word[0].negated = 0;
    check_query(f, &q, bm25, &r, all);
  }
}

/* ---------------------------------------------------------------- collections */

static void test_no_documents(void **state) {
  fixture f;
  (void)state;
  oracle_init(&f.o);
  oracle_invert(&f.o);
  setup(&f, "none");
  random_queries(&f, 20, 1, 1);
  teardown(&f);
}

static void test_one_document(void **state) {
  fixture f;
  (void)state;
  oracle_init(&f.o);
  corpus_words(&f.o, 3);
  oracle_add(&f.o, 0, 1);
  oracle_add(&f.o, 1, 7);
  oracle_doc(&f.o);
  oracle_invert(&f.o);
  setup(&f, "one");
  random_queries(&f, 60, 2, 1);
  teardown(&f);
}

static void test_empty_documents(void **state) {
  fixture f;
  uint32_t d;
  (void)state;
  oracle_init(&f.o);
  corpus_words(&f.o, 2);
  for (d = 0; d < 1000; d++) oracle_doc(&f.o);
  oracle_invert(&f.o);
  setup(&f, "empty documents");
  random_queries(&f, 10, 3, 1);
  teardown(&f);
}

static void test_small_zipf(void **state) {
  fixture f;
  (void)state;
  corpus_zipf(&f.o, 500, 300, 12, 11);
  setup(&f, "small");
  random_queries(&f, 300, 4, 1);
  single_terms(&f, 3, NULL, 1);
  teardown(&f);
}

static void test_settings_stored(void **state) {
  unsigned i;
  (void)state;
  for (i = 0; i < SETTINGS; i++) {
    fixture f;
    corpus_build how;
    memset(&how, 0, sizeof how);
    how.custom_bm25 = 1;
    how.k1 = settings[i][0];
    how.b = settings[i][1];
    corpus_zipf(&f.o, 3000, 40, 10, 12 + i);
    setup_codecs(&f, "stored k1 and b", &how, 1u << i % 4);
    random_queries(&f, 20, 5 + i, 1);
    teardown(&f);
  }
}

static void test_settings_of_queries(void **state) {
  fixture f;
  unsigned i;
  (void)state;
  corpus_zipf(&f.o, 9000, 60, 10, 13);
  setup_codecs(&f, "custom k1 and b", NULL, 5);
  for (i = 0; i < SETTINGS; i++) single_terms(&f, 4, settings[i], 0);
  teardown(&f);
}

static void test_identical_documents(void **state) {
  fixture f;
  (void)state;
  corpus_classes(&f.o, 20000, 1, 0);
  setup(&f, "identical");
  random_queries(&f, 30, 6, 0);
  single_terms(&f, 1, NULL, 0);
  teardown(&f);
}

static void test_ties(void **state) {
  fixture f;
  (void)state;
  corpus_classes(&f.o, 70000, 5, 21);
  setup(&f, "five kinds of documents");
  random_queries(&f, 24, 7, 0);
  single_terms(&f, 1, NULL, 0);
  teardown(&f);
}

static void test_document_frequencies(void **state) {
  fixture f;
  (void)state;
  corpus_df(&f.o, 9001, 31);
  setup(&f, "chosen df");
  single_terms(&f, 1, NULL, 1);
  random_queries(&f, 80, 8, 0);
  teardown(&f);
}

static void test_document_frequencies_dense(void **state) {
  static const uint32_t n[] = {1, 2, 127, 128, 129, 256, 300, 4096};
  unsigned i;
  (void)state;
  for (i = 0; i < sizeof n / sizeof *n; i++) {
    fixture f;
    corpus_df(&f.o, n[i], 32 + i);
    setup(&f, "df up to N");
    single_terms(&f, n[i] > 300 ? 5 : 3, NULL, 1);
    random_queries(&f, 20, 9 + i, 1);
    teardown(&f);
  }
}

static void test_huge_frequencies(void **state) {
  fixture f;
  unsigned i;
  (void)state;
  corpus_huge(&f.o, 3000, 41);
  setup(&f, "huge tf");
  random_queries(&f, 60, 10, 0);
  for (i = 0; i < SETTINGS; i++) single_terms(&f, 1, settings[i], 0);
  teardown(&f);
}

static void test_saturated_frequencies(void **state) {
  fixture f;
  unsigned i;
  (void)state;
  corpus_saturated(&f.o, 20000, 42);
  setup_codecs(&f, "saturated tf", NULL, 6);
  for (i = 0; i < SETTINGS; i++) single_terms(&f, 1, settings[i], 0);
  random_queries(&f, 15, 11, 0);
  teardown(&f);
}

/* Every two terms with up to three more, some of them negated. */
static void pairs_of_terms(fixture *f, const float *bm25) {
  corpus_rng r;
  uint32_t i, j;
  r.s = 15;
  for (i = 0; i < f->o.nterms; i++)
    for (j = 0; j < i; j++) {
      oracle_query q;
      uint32_t t;
      q.n = 2 + (i + j) % 4;
      for (t = 0; t < q.n; t++) {
        q.word[t].term = t == 0 ? i : t == 1 ? j : (i * 5 + j * 3 + t * 7) % f->o.nterms;
        q.word[t].negated = t > 0 && (i + j + t) % 11 == 0;
      }
      check_query(f, &q, bm25, &r, 0);
    }
}

static void test_tiles(void **state) {
  fixture f;
  gpuir_searcher_info info;
  (void)state;
  memset(&info, 0, sizeof info);
  corpus_tiles(&f.o, GPUIR__FIRST_TILES + 1, 1u << GPUIR__TILE_SHIFT, 52); /* not all of them go first */
  setup_codecs(&f, "tiles", NULL, 1);
  single_terms(&f, 1, NULL, 0);
  pairs_of_terms(&f, NULL);
  pairs_of_terms(&f, settings[4]);
  pairs_of_terms(&f, settings[8]);
  random_queries(&f, 12, 16, 0);
  gpuir_searcher_stats(f.searcher[0], &info);
  assert_true(info.tiles_scored > 0 && info.tiles_scored < info.tiles_total &&
              info.tiles_total % (GPUIR__FIRST_TILES + 2) == 0);
  teardown(&f);
}

/* Writes a u32 over the one at `at` in a file. */
static void overwrite(const char *path, uint64_t at, uint32_t value) {
  FILE *f = fopen(path, "r+b");
  assert_non_null(f);
  assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
  assert_int_equal(fwrite(&value, sizeof value, 1, f), 1);
  assert_int_equal(fclose(f), 0);
}

/* A damaged directory lets a block's docIDs wrap round to 0, so that they stand in the last tile, which the documents
 * do not fill: no hit is beyond them. */
static void test_damaged_tile(void **state) {
  enum { NDOCS = (1u << GPUIR__TILE_SHIFT) + 8, FIRST = 16, LISTS = 2 };
  static gpuir_hit hits[NDOCS];
  char path[4200];
  int way;
  oracle o;
  uint32_t d, t;
  uint64_t at;
  gpuir_index *ix;
  gpuir_error err;
  (void)state;
  oracle_init(&o);
  corpus_words(&o, LISTS);
  for (d = 0; d < NDOCS; d++) {
    for (t = 0; t < LISTS && d >= FIRST; t++) oracle_add(&o, t, 1);
    oracle_doc(&o);
  }
  oracle_invert(&o);
  (void)corpus_path(path, sizeof path, "damaged.gpuir");
  if (corpus_write(&o, path, NULL, &err)) fail_msg("build: %s", err.msg);
  ix = open_at(path, GPUIR_SIMD_AUTO);
  at = ix->section[GPUIR__S_LAST]->offset;
  for (t = 0; t < LISTS; t++) {
    const uint32_t nblocks = (NDOCS - FIRST - 1) / GPUIR__BLOCK + 1;
    overwrite(path, at + ((t + 1) * nblocks - 2) * 4, UINT32_MAX - 4); /* before the last block */
  }
  gpuir_close(ix);
  for (way = 0; way < 2 * LEVELS; way++) {
    gpuir_searcher *s;
    gpuir_query_desc how;
    gpuir_query *q;
    size_t n, i;
    memset(&how, 0, sizeof how);
    how.mode = GPUIR_OR;
    ix = open_at(path, GPUIR_SIMD_SCALAR + way / 2);
    s = searcher_on(ix, way % 2 ? GPUIR_EVAL_EXHAUSTIVE : GPUIR_EVAL_AUTO, 1);
    if (gpuir_query_parse(ix, &how, "w0 w1", 5, &q, &err)) fail_msg("%s", err.msg);
    assert_int_equal(gpuir_search(s, q, hits, NDOCS, &n), GPUIR_OK);
    assert_true(n > 0);
    for (i = 0; i < n; i++) assert_true(hits[i].docid < NDOCS);
    compared++;
    gpuir_query_destroy(q);
    gpuir_searcher_destroy(s);
    gpuir_close(ix);
  }
  (void)unlink(path);
  oracle_free(&o);
}

/* The exhaustive evaluator scores each posting once, whether it looks at all of a tile's documents or at a few; with
 * tiles that hold none. */
static void test_every_posting(void **state) {
  fixture f;
  corpus_rng r;
  uint32_t t, u;
  unsigned dense = 0, pairs = 0;
  (void)state;
  corpus_tiles(&f.o, 4, 1u << GPUIR__TILE_SHIFT, 53);
  setup_codecs(&f, "every posting", NULL, 2);
  r.s = 54;
  for (t = 0; t < f.o.nterms; t++)
    for (u = 0; u < t; u++) {
      uint64_t postings = (uint64_t)oracle_df(&f.o, t) + oracle_df(&f.o, u);
      oracle_query oq;
      int mode, x;
      oq.n = 2;
      oq.word[0].term = t;
      oq.word[1].term = u;
      oq.word[0].negated = oq.word[1].negated = 0;
      check_query(&f, &oq, NULL, &r, 0);
      for (mode = 0; mode < 2; mode++)
        for (x = 0; x < f.nindexes; x++) {
          gpuir_searcher_info before, after;
          char text[4096];
          int status;
          size_t len = corpus_text(&f.o, &oq, text, sizeof text), n;
          gpuir_query *q = parse(f.index[x], text, len, mode, NULL, &status);
          assert_int_equal(status, GPUIR_OK);
          memset(&before, 0, sizeof before);
          memset(&after, 0, sizeof after);
          gpuir_searcher_stats(f.searcher[x * 2 + 1], &before);
          assert_int_equal(gpuir_search(f.searcher[x * 2 + 1], q, f.hits, 10, &n), GPUIR_OK);
          gpuir_searcher_stats(f.searcher[x * 2 + 1], &after);
          assert_int_equal(after.postings_scored - before.postings_scored, postings);
          gpuir_query_destroy(q);
        }
      dense += postings >= f.o.ndocs / GPUIR__DENSE;
      pairs++;
    }
  assert_true(dense > 0 && dense < pairs);
  teardown(&f);
}

/* No posting that contributes enough is passed over for its frequency, and hardly one that does not is kept. */
static void test_least_frequency(void **state) {
  unsigned long tight = 0, low_ones = 0;
  corpus_rng r;
  unsigned i;
  (void)state;
  r.s = 17;
  for (i = 0; i < 200000; i++) {
    const float *s = settings[corpus_below(&r, SETTINGS)];
    uint32_t code = corpus_below(&r, 256), high = 1 + corpus_below(&r, 255), low = 1 + corpus_below(&r, high);
    uint32_t pairs = high | code << 8, least, freq, tf, at;
    gpuir__scorer scorer;
    float norm;
    if (corpus_below(&r, 2))
      pairs = high | (code + corpus_below(&r, 256 - code)) << 8 | low << 16 | code << 24;
    memset(&scorer, 0, sizeof scorer);
    scorer.norm = gpuir__norm_make(s[0], s[1], 1 + corpus_below(&r, 300));
    scorer.weight = (float)(1 + corpus_below(&r, 1u << (4 + corpus_below(&r, 25))));
    scorer.q = 1 + corpus_below(&r, 3);
    norm = gpuir__norm_of(scorer.norm.a, scorer.norm.b, gpuir__code_value(code));
    at = 1 + corpus_below(&r, 1u << (1 + corpus_below(&r, 24)));
    least = scorer.q * gpuir__contribution(scorer.weight, at, norm);
    freq = gpuir__least_frequency(&scorer, pairs, least);
    compared++;
    for (tf = at;
         tf > 1 && scorer.q * gpuir__contribution(scorer.weight, tf - 1, norm) >= least && at - tf < 9;)
      tf--;
    low_ones += tf > 1 && tf < 32;
    tight += tf > 1 && tf < 32 && freq + 1 == tf;
    if (freq + 1 > tf || (freq && scorer.q * gpuir__contribution(scorer.weight, freq, norm) >= least))
      fail_msg("frequency %u contributes %u, but %u is the least (weight %g, norm %g)", (unsigned)tf,
               (unsigned)least, (unsigned)freq + 1, (double)scorer.weight, (double)norm);
  }
  assert_true(tight > low_ones / 2); /* not right by passing nothing over */
}

static void test_ramps(void **state) {
  fixture f;
  (void)state;
  corpus_ramps(&f.o, 200000, 51);
  setup_codecs(&f, "ramps", NULL, 9);
  single_terms(&f, 1, NULL, 0);
  random_queries(&f, 18, 12, 0);
  teardown(&f);
}

static void test_stretches(void **state) {
  fixture f;
  corpus_rng r;
  uint32_t i, j;
  (void)state;
  corpus_stretches(&f.o, 6);
  setup(&f, "stretches");
  r.s = 18;
  for (i = 0; i < f.o.nterms; i++)
    for (j = 0; j < i; j++) {
      oracle_query q;
      q.n = 2;
      q.word[0].term = i;
      q.word[1].term = j;
      q.word[0].negated = q.word[1].negated = 0;
      check_query(&f, &q, NULL, &r, 1);
    }
  random_queries(&f, 12, 18, 0);
  teardown(&f);
}

static void test_wide_gaps(void **state) {
  fixture f;
  (void)state;
  corpus_sparse(&f.o, 2000000, 61);
  setup_codecs(&f, "wide gaps", NULL, 3);
  single_terms(&f, 1, NULL, 0);
  random_queries(&f, 10, 13, 0);
  teardown(&f);
}

static void test_large_zipf(void **state) {
  fixture f;
  (void)state;
  corpus_zipf(&f.o, 300000, 20000, 9, 71);
  setup(&f, "300,000 documents");
  random_queries(&f, 60, 14, 0);
  teardown(&f);
}

/* Every codec, some with parameters, and mixes of them. */
static void test_every_codec(void **state) {
  static const char *const docs[] = {
      "vbyte",          "bp128",       "pfd",      "newpfd",     "optpfd",        "ef",         "qs",
      "rice",           "pfd-list",    "parapfor", "lrc",        "lrcseg",        "seglrc",     "hslrc",
      "auto",           "auto:1",      "qs:0.25",  "pfd-list:4", "parapfor:64,0", "lrc:64,min", "lrcseg:64",
      "seglrc:128,min", "hslrc:32,0.1"};
  static const char *const freqs[] = {"bp128", "newpfd", "optpfd", "auto", "vbyte"};
  char path[4200];
  fixture f;
  unsigned i, times;
  (void)state;
  (void)corpus_path(path, sizeof path, "search.gpuir");
  for (times = 0; times < 2; times++) {
    if (times)
      corpus_ramps(&f.o, 9000, 52);
    else
      corpus_zipf(&f.o, 4000, 600, 12, 12);
    f.nindexes = 0;
    f.k1 = 0.9f;
    f.b = 0.4f;
    f.hits = (gpuir_hit *)oracle_grow(NULL, (size_t)f.o.ndocs + 16, sizeof *f.hits);
    for (i = 0; i < sizeof docs / sizeof *docs; i++) {
      corpus_build b;
      gpuir_error err;
      memset(&b, 0, sizeof b);
      b.codec = docs[i];
      b.freq_codec = freqs[i % 5];
      f.name = docs[i];
      if (corpus_write(&f.o, path, &b, &err)) fail_msg("%s: build: %s", docs[i], err.msg);
      open_all(&f, path);
      random_queries(&f, 12, 70 + i, 0);
      single_terms(&f, f.o.nterms / 9 + 1, NULL, 0);
      close_all(&f);
    }
    teardown(&f);
  }
}

/* ---------------------------------------------------------------- text */

/* What the ascii analyzer is documented to do: runs of ASCII letters and digits and of bytes above
 * 127, letters in lower case. */
static size_t next_token(const char *s, size_t len, size_t *at, char *out) {
  size_t n = 0;
  for (; *at < len; ++*at) {
    unsigned char c = (unsigned char)s[*at];
    int word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 128;
    if (word)
      out[n++] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    else if (n)
      break;
  }
  return n;
}

static void add_text(oracle *o, const char *text, size_t len) {
  char token[65536];
  size_t at = 0, n;
  while ((n = next_token(text, len, &at, token)) > 0)
    if (n <= GPUIR_MAX_TERM) oracle_add(o, oracle_term(o, token, n), 1);
  oracle_doc(o);
}

typedef struct texts {
  gpuir_builder *b;
  char path[4200];
  fixture *f;
} texts;

static void texts_begin(texts *t, fixture *f, const char *codec) {
  gpuir_builder_desc desc;
  gpuir_error err;
  memset(&desc, 0, sizeof desc);
  desc.path = corpus_path(t->path, sizeof t->path, "text.gpuir");
  desc.codec = desc.freq_codec = codec;
  t->f = f;
  if (gpuir_builder_create(&desc, &t->b, &err)) fail_msg("%s", err.msg);
  oracle_init(&f->o);
}

static void texts_add(texts *t, const char *text, size_t len) {
  gpuir_error err;
  if (gpuir_builder_add_text(t->b, NULL, text, len, &err)) fail_msg("%s", err.msg);
  add_text(&t->f->o, text, len);
}

static void texts_end(texts *t, const char *name) {
  gpuir_build_report report;
  gpuir_error err;
  fixture *f = t->f;
  if (gpuir_builder_write(t->b, &report, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(t->b);
  oracle_invert(&f->o);
  assert_int_equal(report.documents, f->o.ndocs);
  assert_int_equal(report.terms, f->o.nterms);
  assert_int_equal(report.postings, f->o.npost);
  assert_int_equal(report.tokens, f->o.tokens);
  f->name = name;
  f->nindexes = 0;
  f->k1 = 0.9f;
  f->b = 0.4f;
  f->hits = (gpuir_hit *)oracle_grow(NULL, (size_t)f->o.ndocs + 16, sizeof *f->hits);
  open_all(f, t->path);
}

static void test_text(void **state) {
  static const char *const gap[] = {" ", "  ", "\n", ", ", ".", "-", "\t(", ") ", "_", "'", "\"", "/"};
  static const char *const word[] = {"Ranked", "TEXT",   "search", "in", "One",
                                     "C",      "header", "x86",    "42", "0"};
  fixture f;
  texts t;
  corpus_rng r;
  unsigned d, i;
  (void)state;
  r.s = 81;
  texts_begin(&t, &f, "bp128");
  for (d = 0; d < 2000; d++) {
    char text[4096];
    size_t n = 0, words = corpus_below(&r, 40);
    for (i = 0; i < words; i++) {
      const char *s = corpus_below(&r, 4) ? word[corpus_below(&r, 10)] : "";
      n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", s, gap[corpus_below(&r, 12)]);
      if (corpus_below(&r, 5) == 0)
        n += (size_t)snprintf(text + n, sizeof text - n, "Doc%u ", corpus_below(&r, 300));
    }
    texts_add(&t, text, n);
  }
  texts_add(&t, "", 0);
  texts_add(&t, "\0nul\0bytes \0\0 nul", 17);
  texts_end(&t, "text");
  random_queries(&f, 100, 15, 1);
  teardown(&f);
}

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
  static const char *const text[] = {"red fox", "blue fox", "red",   "red red blue",
                                     "fox",     "blue",     "green", ""};
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
  corpus_rng r;
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
      if (corpus_below(&r, 80) > t / 2) oracle_add(&f.o, t, 1 + corpus_below(&r, 3));
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
  for (i = 0, n = 0; i < 65; i++)
    n += (size_t)snprintf(text + n, sizeof text - n, "%snone%u ", i ? "-" : "", i);
  assert_null(parse(f.index[0], text, n, GPUIR_OR, NULL, &status)); /* so do unknown ones */
  assert_int_equal(status, GPUIR_E_TERMS);
  teardown(&f);
}

/* The collection that comes with the project. */
static void test_wordnet(void **state) {
  fixture f;
  texts t;
  FILE *in = wordnet_open();
  char line[65536];
  (void)state;
  if (!in) {
    print_message("tests/data/wordnet.tsv is not there\n");
    skip();
  }
  texts_begin(&t, &f, "bp128");
  while (fgets(line, sizeof line, in)) {
    char *tab = strchr(line, '\t');
    if (tab) texts_add(&t, tab + 1, strlen(tab + 1));
  }
  (void)fclose(in);
  assert_true(f.o.ndocs > 100);
  texts_end(&t, "WordNet glosses");
  random_queries(&f, 300, 16, 0);
  single_terms(&f, 50, NULL, 0);
  teardown(&f);
}

/* ---------------------------------------------------------------- cursors */

static void check_cursor(fixture *f, const gpuir_index *ix, uint32_t term, corpus_rng *r) {
  const oracle *o = &f->o;
  const oracle_posting *p = o->inv + o->inv_start[term], *end = o->inv + o->inv_start[term + 1];
  gpuir_cursor *c;
  gpuir_error err;
  gpuir_term_info info;
  uint64_t id, cf = 0;
  const char *name = o->name[term];
  int round;
  if (p == end) {
    assert_int_equal(gpuir_term_find(ix, name, strlen(name), &id), GPUIR_E_NOT_FOUND);
    return;
  }
  assert_int_equal(gpuir_term_find(ix, name, strlen(name), &id), GPUIR_OK);
  assert_int_equal(gpuir_term_lower_bound(ix, name, strlen(name)), id);
  assert_int_equal(gpuir_term_stats(ix, id, &info), GPUIR_OK);
  assert_int_equal(info.df, end - p);
  assert_memory_equal(info.term, name, info.term_len);
  if (info.idf != oracle_idf(o->ndocs, info.df))
    fail_msg("%s: idf of df %u is %.9g, should be %.9g", f->name, (unsigned)info.df, (double)info.idf,
             (double)oracle_idf(o->ndocs, info.df));
  for (round = 0; round < 5; round++) {
    const oracle_posting *at = p;
    uint32_t doc;
    if (gpuir_cursor_open(ix, id, &c, &err)) fail_msg("%s", err.msg);
    doc = gpuir_cursor_docid(c);
    while (at < end) {
      compared++;
      if (doc != at->doc) fail_msg("%s: cursor of %s on %u, should be %u", f->name, name, doc, at->doc);
      assert_int_equal(gpuir_cursor_docid(c), doc);
      if (round == 0 || corpus_below(r, 3) == 0) assert_int_equal(gpuir_cursor_tf(c), at->tf);
      if (round == 0) cf += at->tf;
      if (round == 0 || (round < 3 && corpus_below(r, 4))) {
        doc = gpuir_cursor_next(c);
        at++;
      } else {
        uint32_t reach =
            corpus_below(r, 3) ? 1u + corpus_below(r, 40) : 1 + o->ndocs / (1u + corpus_below(r, 50));
        uint32_t target = at->doc + corpus_below(r, reach + 1);
        if (corpus_below(r, 8) == 0) target = at->doc - corpus_below(r, at->doc + 1); /* never back */
        while (at < end && at->doc < target) at++;
        doc = gpuir_cursor_next_geq(c, target);
      }
    }
    assert_int_equal(doc, GPUIR_END);
    assert_int_equal(gpuir_cursor_docid(c), GPUIR_END);
    assert_int_equal(gpuir_cursor_tf(c), 0);
    assert_int_equal(gpuir_cursor_next(c), GPUIR_END);
    assert_int_equal(gpuir_cursor_next_geq(c, 0), GPUIR_END);
    gpuir_cursor_close(c);
  }
  assert_int_equal(info.cf, cf);
}

static void test_cursors(void **state) {
  fixture f;
  corpus_rng r;
  uint32_t t;
  int x, which;
  (void)state;
  r.s = 91;
  for (which = 0; which < 4; which++) {
    if (which == 0) corpus_df(&f.o, 9001, 31);
    if (which == 1) corpus_huge(&f.o, 3000, 41);
    if (which == 2) corpus_sparse(&f.o, 1500000, 61);
    if (which == 3) corpus_zipf(&f.o, 20000, 500, 12, 92);
    setup_codecs(&f,
                 which == 0   ? "chosen df"
                 : which == 1 ? "huge tf"
                 : which == 2 ? "wide gaps"
                              : "zipf",
                 NULL, which == 2 ? 3 : 15);
    for (x = 0; x < f.nindexes; x++) {
      gpuir_cursor *c;
      for (t = 0; t < f.o.nterms; t += which == 3 ? 7 : 1) check_cursor(&f, f.index[x], t, &r);
      assert_int_equal(gpuir_cursor_open(f.index[x], f.o.nterms, &c, NULL), GPUIR_E_NOT_FOUND);
    }
    teardown(&f);
  }
}

/* Names of terms in byte order, with bytes of all values. */
static void test_term_order(void **state) {
  fixture f;
  corpus_rng r;
  unsigned d, i;
  uint64_t id, terms;
  gpuir_index_info info;
  char before[GPUIR_MAX_TERM], long_term[GPUIR_MAX_TERM + 1];
  size_t before_len = 0;
  (void)state;
  r.s = 93;
  oracle_init(&f.o);
  memset(long_term, 'x', sizeof long_term);
  for (d = 0; d < 3000; d++) {
    for (i = 0; i < 3; i++) {
      char s[8];
      size_t n = 1 + corpus_below(&r, 3), j;
      for (j = 0; j < n; j++) s[j] = (char)(1 + corpus_below(&r, corpus_below(&r, 2) ? 255 : 3));
      oracle_add(&f.o, oracle_term(&f.o, s, n), 1);
    }
    oracle_add(&f.o, oracle_term(&f.o, long_term, 1 + d % GPUIR_MAX_TERM), 1);
    oracle_doc(&f.o);
  }
  oracle_invert(&f.o);
  setup_codecs(&f, "byte terms", NULL, 1);
  assert_int_equal(gpuir_index_stats(f.index[0], &info), GPUIR_OK);
  terms = info.terms;
  assert_int_equal(terms, f.o.nterms);
  assert_int_equal(info.postings, f.o.npost);
  assert_int_equal(info.tokens, f.o.tokens);
  for (id = 0; id < terms; id++) {
    gpuir_term_info t;
    uint64_t found;
    int c;
    assert_int_equal(gpuir_term_stats(f.index[0], id, &t), GPUIR_OK);
    assert_int_equal(t.df, oracle_df(&f.o, oracle_find(&f.o, t.term, t.term_len)));
    assert_int_equal(gpuir_term_find(f.index[0], t.term, t.term_len, &found), GPUIR_OK);
    assert_int_equal(found, id);
    c = memcmp(before, t.term, before_len < t.term_len ? before_len : t.term_len);
    assert_true(c < 0 || (c == 0 && before_len < t.term_len));
    memcpy(before, t.term, t.term_len);
    before_len = t.term_len;
  }
  assert_int_equal(gpuir_term_lower_bound(f.index[0], "", 0), 0);
  assert_int_equal(gpuir_term_lower_bound(f.index[0], "\xff\xff\xff\xff", 4), terms);
  for (i = 0; i < 2000; i++) { /* the first term that is not less */
    char s[4];
    size_t n = 1 + corpus_below(&r, 4), j;
    gpuir_term_info t;
    uint64_t at, exact;
    for (j = 0; j < n; j++) s[j] = (char)(1 + corpus_below(&r, 255));
    at = gpuir_term_lower_bound(f.index[0], s, n);
    assert_true(at <= terms);
    if (at < terms) {
      assert_int_equal(gpuir_term_stats(f.index[0], at, &t), GPUIR_OK);
      assert_true(memcmp(t.term, s, n < t.term_len ? n : t.term_len) > 0 ||
                  (memcmp(t.term, s, n < t.term_len ? n : t.term_len) == 0 && t.term_len >= n));
    }
    if (at) {
      assert_int_equal(gpuir_term_stats(f.index[0], at - 1, &t), GPUIR_OK);
      assert_true(memcmp(t.term, s, n < t.term_len ? n : t.term_len) < 0 ||
                  (memcmp(t.term, s, n < t.term_len ? n : t.term_len) == 0 && t.term_len < n));
    }
    if (oracle_find(&f.o, s, n) == ORACLE_UNKNOWN)
      assert_int_equal(gpuir_term_find(f.index[0], s, n, &exact), GPUIR_E_NOT_FOUND);
  }
  assert_int_equal(gpuir_term_find(f.index[0], long_term, 0, &id), GPUIR_E_NOT_FOUND);
  assert_int_equal(gpuir_term_find(f.index[0], long_term, sizeof long_term, &id), GPUIR_E_NOT_FOUND);
  teardown(&f);
}

/* ---------------------------------------------------------------- batches */

static void test_batches(void **state) {
  enum { MOST = 60 };
  static const size_t ks[] = {0, 1, 10, 137, 1000};
  fixture f;
  corpus_rng r;
  unsigned threads, round, i;
  (void)state;
  r.s = 101;
  corpus_zipf(&f.o, 30000, 3000, 10, 102);
  setup_codecs(&f, "batches", NULL, 1);
  for (threads = 1; threads <= 4; threads++) {
    gpuir_searcher *s =
        searcher_on(f.index[2], threads % 2 ? GPUIR_EVAL_AUTO : GPUIR_EVAL_EXHAUSTIVE, threads);
    for (round = 0; round < 12; round++) {
      oracle_query *oq = (oracle_query *)oracle_grow(NULL, MOST, sizeof *oq);
      gpuir_query *q[MOST];
      uint32_t counts[MOST];
      static char text[8192];
      size_t k = ks[round % 5], nq = round == 0 ? 0 : 1 + corpus_below(&r, MOST);
      gpuir_hit *hits = (gpuir_hit *)oracle_grow(NULL, MOST * k + 1, sizeof *hits);
      hits[nq * k].docid = 0xeeeeeeee;
      for (i = 0; i < nq; i++) {
        int status;
        corpus_query(&f.o, &r, 1 + corpus_below(&r, 9), 1, &oq[i]);
        q[i] = parse(f.index[2], text, corpus_text(&f.o, &oq[i], text, sizeof text), (int)(i % 3), NULL,
                     &status);
        assert_int_equal(status, GPUIR_OK);
      }
      assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)q, nq, k, hits, counts), GPUIR_OK);
      for (i = 0; i < nq; i++) {
        (void)corpus_text(&f.o, &oq[i], text, sizeof text);
        (void)oracle_run(&f.o, &oq[i], f.k1, f.b);
        equal_hits(&f, f.index[2], text, (int)(i % 3), k, hits + i * k, counts[i], "batch");
        gpuir_query_destroy(q[i]);
      }
      assert_int_equal(hits[nq * k].docid, 0xeeeeeeee);
      free(hits);
      free(oq);
    }
    gpuir_searcher_destroy(s);
  }
  teardown(&f);
}

/* ---------------------------------------------------------------- deadlines and cancellation */

static void test_deadline_and_cancel(void **state) {
  fixture f;
  oracle_query oq;
  static char text[65536];
  size_t len, n, i;
  uint64_t count;
  int mode, e, status, cancel = 0;
  (void)state;
  corpus_zipf(&f.o, 300000, 100, 9, 112);
  setup_codecs(&f, "deadline", NULL, 1);
  oq.n = 30;
  for (i = 0; i < oq.n; i++) {
    oq.word[i].term = (uint32_t)i;
    oq.word[i].negated = 0;
  }
  len = corpus_text(&f.o, &oq, text, sizeof text);
  assert_int_equal(oracle_run(&f.o, &oq, f.k1, f.b), 0);
  for (mode = 1; mode < 3; mode++) {
    for (e = 0; e < 2; e++) {
      gpuir_searcher_desc desc;
      gpuir_searcher *s;
      gpuir_error err;
      gpuir_query *q = parse(f.index[2], text, len, mode, NULL, &status), *batch[5];
      uint32_t counts[5];
      gpuir_hit *hits = (gpuir_hit *)oracle_grow(NULL, 500, sizeof *hits);
      assert_int_equal(status, GPUIR_OK);
      memset(&desc, 0, sizeof desc);
      desc.evaluator = e ? GPUIR_EVAL_EXHAUSTIVE : GPUIR_EVAL_AUTO;
      desc.timeout_ns = 1;
      desc.cancel = &cancel;
      desc.threads = 2;
      assert_int_equal(gpuir_searcher_create(f.index[2], &desc, &s), GPUIR_OK);
      n = 7;
      assert_int_equal(gpuir_search(s, q, hits, 100, &n), GPUIR_E_DEADLINE);
      assert_int_equal(n, 0);
      gpuir_searcher_error(s, &err);
      assert_int_equal(err.code, GPUIR_E_DEADLINE);
      assert_true(strlen(err.msg) > 0);
      if (mode == GPUIR_OR) assert_int_equal(gpuir_count(s, q, &count), GPUIR_E_DEADLINE);
      for (i = 0; i < 5; i++) batch[i] = q;
      assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)batch, 5, 100, hits, counts),
                       GPUIR_E_DEADLINE);
      gpuir_searcher_set_timeout(s, 0); /* and it works again */
      assert_int_equal(gpuir_search(s, q, hits, 100, &n), GPUIR_OK);
      equal_hits(&f, f.index[2], text, mode, 100, hits, n, "after a deadline");
      cancel = 1;
      n = 7;
      assert_int_equal(gpuir_search(s, q, hits, 100, &n), GPUIR_E_CANCELLED);
      assert_int_equal(n, 0);
      gpuir_searcher_error(s, &err);
      assert_int_equal(err.code, GPUIR_E_CANCELLED);
      if (mode == GPUIR_OR) assert_int_equal(gpuir_count(s, q, &count), GPUIR_E_CANCELLED);
      assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)batch, 5, 100, hits, counts),
                       GPUIR_E_CANCELLED);
      cancel = 0;
      gpuir_searcher_set_timeout(s, 600000000000u);
      assert_int_equal(gpuir_search(s, q, hits, 100, &n), GPUIR_OK);
      equal_hits(&f, f.index[2], text, mode, 100, hits, n, "after a cancellation");
      assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)batch, 5, 100, hits, counts),
                       GPUIR_OK);
      for (i = 0; i < 5; i++)
        equal_hits(&f, f.index[2], text, mode, 100, hits + i * 100, counts[i], "batch after a cancellation");
      gpuir_searcher_destroy(s);
      gpuir_query_destroy(q);
      free(hits);
    }
  }
  teardown(&f);
}

/* ---------------------------------------------------------------- backends */

typedef struct dummy {
  gpuir_searcher *cpu; /* does the work */
  int fails, calls, closed, noisy;
} dummy;

static int dummy_search(void *context, const gpuir_query *const *queries, size_t nq, size_t k,
                        gpuir_hit *hits, uint32_t *counts, gpuir_error *err) {
  dummy *d = (dummy *)context;
  size_t i;
  d->calls++;
  if (d->fails) {
    for (i = 0; i < nq; i++) counts[i] = 77; /* what a failed call left behind must not count */
    for (i = 0; i < nq * k; i++) hits[i].docid = hits[i].score = 123456;
    if (err) {
      err->code = GPUIR_E_BACKEND;
      (void)snprintf(err->msg, sizeof err->msg, "the dummy fails");
    }
    return GPUIR_E_BACKEND;
  }
  return gpuir_search_batch(d->cpu, queries, nq, k, hits, counts);
}

static void dummy_close(void *context) { ((dummy *)context)->closed++; }

static void test_backends(void **state) {
  fixture f;
  corpus_rng r;
  gpuir_searcher *s;
  gpuir_searcher_info before, after;
  gpuir_backend backend;
  gpuir_error err;
  oracle_query oq;
  gpuir_query *q, *batch[4];
  gpuir_hit hits[40];
  uint32_t counts[4];
  char text[4096];
  size_t n, i, len;
  dummy d, other;
  int status, threads;
  (void)state;
  r.s = 121;
  corpus_zipf(&f.o, 5000, 200, 10, 122);
  setup_codecs(&f, "backends", NULL, 1);
  corpus_query(&f.o, &r, 4, 0, &oq);
  (void)oracle_run(&f.o, &oq, f.k1, f.b);
  len = corpus_text(&f.o, &oq, text, sizeof text);
  q = parse(f.index[0], text, len, GPUIR_OR, NULL, &status);
  assert_int_equal(status, GPUIR_OK);
  for (i = 0; i < 4; i++) batch[i] = q;
  for (threads = 1; threads < 4; threads += 2) {
    memset(&d, 0, sizeof d);
    memset(&other, 0, sizeof other);
    d.cpu = other.cpu = f.searcher[0];
    s = searcher_on(f.index[0], GPUIR_EVAL_AUTO, (unsigned)threads);
    assert_string_equal(gpuir_backend_name(s), "cpu");
    memset(&backend, 0, sizeof backend);
    backend.version = GPUIR_BACKEND_VERSION;
    backend.name = "dummy";
    backend.context = &d;
    backend.search = dummy_search;
    backend.close = dummy_close;
    backend.version = GPUIR_BACKEND_VERSION + 1;
    assert_int_equal(gpuir_searcher_set_backend(s, &backend, 0), GPUIR_E_VERSION);
    backend.version = GPUIR_BACKEND_VERSION;
    assert_int_equal(gpuir_searcher_set_backend(NULL, &backend, 0), GPUIR_E_ARGUMENT);
    assert_string_equal(gpuir_backend_name(s), "cpu");
    assert_int_equal(gpuir_searcher_set_backend(s, &backend, 0), GPUIR_OK);
    memset(&backend, 0, sizeof backend); /* it was copied */
    assert_string_equal(gpuir_backend_name(s), "dummy");
    assert_int_equal(gpuir_search(s, q, hits, 10, &n), GPUIR_OK);
    equal_hits(&f, f.index[0], text, GPUIR_OR, 10, hits, n, "backend");
    assert_true(d.calls == 1);
    assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)batch, 4, 10, hits, counts), GPUIR_OK);
    for (i = 0; i < 4; i++)
      equal_hits(&f, f.index[0], text, GPUIR_OR, 10, hits + i * 10, counts[i], "backend batch");
    assert_true(d.calls >= 2);
    d.fails = 1; /* without fallback its error comes back */
    n = 9;
    assert_int_equal(gpuir_search(s, q, hits, 10, &n), GPUIR_E_BACKEND);
    assert_int_equal(n, 0);
    gpuir_searcher_error(s, &err);
    assert_int_equal(err.code, GPUIR_E_BACKEND);
    assert_non_null(strstr(err.msg, "the dummy fails"));
    assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)batch, 4, 10, hits, counts),
                     GPUIR_E_BACKEND);
    assert_int_equal(d.closed, 0);
    backend.version = GPUIR_BACKEND_VERSION; /* another one replaces it; with fallback the CPU answers */
    backend.name = "other";
    backend.context = &other;
    backend.search = dummy_search;
    backend.close = dummy_close;
    other.fails = 1;
    assert_int_equal(gpuir_searcher_set_backend(s, &backend, 1), GPUIR_OK);
    assert_int_equal(d.closed, 1);
    gpuir_searcher_stats(s, &before);
    assert_int_equal(gpuir_search(s, q, hits, 10, &n), GPUIR_OK);
    equal_hits(&f, f.index[0], text, GPUIR_OR, 10, hits, n, "fallback");
    assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)batch, 4, 10, hits, counts), GPUIR_OK);
    for (i = 0; i < 4; i++)
      equal_hits(&f, f.index[0], text, GPUIR_OR, 10, hits + i * 10, counts[i], "fallback batch");
    gpuir_searcher_stats(s, &after);
    assert_true(after.backend_failures > before.backend_failures);
    assert_true(other.calls >= 2);
    assert_int_equal(gpuir_searcher_set_backend(s, NULL, 0), GPUIR_OK); /* back to the CPU */
    assert_int_equal(other.closed, 1);
    assert_string_equal(gpuir_backend_name(s), "cpu");
    assert_int_equal(gpuir_search(s, q, hits, 10, &n), GPUIR_OK);
    equal_hits(&f, f.index[0], text, GPUIR_OR, 10, hits, n, "cpu again");
    other.closed = 0;
    backend.close = NULL;
    assert_int_equal(gpuir_searcher_set_backend(s, &backend, 1), GPUIR_OK);
    assert_int_equal(gpuir_searcher_set_backend(s, NULL, 0), GPUIR_OK);
    assert_int_equal(other.closed, 0);
    backend.close = dummy_close;
    assert_int_equal(gpuir_searcher_set_backend(s, &backend, 1), GPUIR_OK);
    gpuir_searcher_destroy(s);
    assert_int_equal(other.closed, 1);
  }
  gpuir_query_destroy(q);
  teardown(&f);
}

/* ---------------------------------------------------------------- the rest of the contract */

static void test_arguments(void **state) {
  fixture f;
  gpuir_query *q = NULL;
  gpuir_query_desc desc;
  gpuir_hit hit;
  gpuir_error err;
  static gpuir_explanation x;
  size_t n = 5;
  uint64_t count;
  int status;
  (void)state;
  corpus_zipf(&f.o, 100, 20, 5, 131);
  setup_codecs(&f, "arguments", NULL, 1);
  q = parse(f.index[0], "w1 w2", 5, GPUIR_OR, NULL, &status);
  assert_int_equal(status, GPUIR_OK);
  assert_int_equal(gpuir_search(NULL, q, &hit, 1, &n), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_search(f.searcher[0], NULL, &hit, 1, &n), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_search(f.searcher[0], q, NULL, 1, &n), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_search(f.searcher[0], q, NULL, 0, &n), GPUIR_OK);
  assert_int_equal(n, 0);
  assert_int_equal(gpuir_count(f.searcher[0], NULL, &count), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_explain(f.searcher[0], q, 100, &x), GPUIR_E_NOT_FOUND);
  assert_int_equal(gpuir_explain(f.searcher[0], q, UINT32_MAX, &x), GPUIR_E_NOT_FOUND);
  gpuir_query_destroy(q);
  memset(&desc, 0, sizeof desc);
  desc.mode = 3;
  assert_int_equal(gpuir_query_parse(f.index[0], &desc, "w1", 2, &q, &err), GPUIR_E_ARGUMENT);
  desc.mode = 0;
  desc.custom_bm25 = 1;
  desc.k1 = -0.5f;
  assert_int_equal(gpuir_query_parse(f.index[0], &desc, "w1", 2, &q, &err), GPUIR_E_RANGE);
  desc.k1 = 1000.5f;
  assert_int_equal(gpuir_query_parse(f.index[0], &desc, "w1", 2, &q, &err), GPUIR_E_RANGE);
  desc.k1 = (float)NAN;
  assert_int_equal(gpuir_query_parse(f.index[0], &desc, "w1", 2, &q, &err), GPUIR_E_RANGE);
  desc.k1 = 1.0f;
  desc.b = 1.5f;
  assert_int_equal(gpuir_query_parse(f.index[0], &desc, "w1", 2, &q, &err), GPUIR_E_RANGE);
  desc.b = (float)NAN;
  assert_int_equal(gpuir_query_parse(f.index[0], &desc, "w1", 2, &q, &err), GPUIR_E_RANGE);
  assert_int_equal(gpuir_query_parse(NULL, NULL, "w1", 2, &q, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_query_parse(f.index[0], NULL, NULL, 2, &q, &err), GPUIR_E_ARGUMENT);
  gpuir_query_destroy(NULL);
  gpuir_searcher_destroy(NULL);
  gpuir_cursor_close(NULL);
  gpuir_close(NULL);
  gpuir_builder_destroy(NULL);
  teardown(&f);
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

/* Runs, memory budget and threads do not change the hits, nor the bytes. */
static void test_builds_agree(void **state) {
  static const uint64_t memory[] = {0, 1 << 20, 8 << 20};
  static const unsigned threads[] = {0, 1, 3};
  fixture f;
  char path[4200];
  unsigned char *first = NULL;
  long first_len = 0;
  int m, t;
  (void)state;
  corpus_zipf(&f.o, 40000, 5000, 12, 151);
  setup_codecs(&f, "builds", NULL, 1);
  (void)corpus_path(path, sizeof path, "builds.gpuir");
  for (m = 0; m < 3; m++)
    for (t = 0; t < 3; t++) {
      corpus_build how;
      gpuir_error err;
      FILE *in;
      long len;
      unsigned char *bytes;
      memset(&how, 0, sizeof how);
      how.memory = memory[m];
      how.threads = threads[t];
      if (corpus_write(&f.o, path, &how, &err)) fail_msg("%s", err.msg);
      in = fopen(path, "rb");
      assert_non_null(in);
      (void)fseek(in, 0, SEEK_END);
      len = ftell(in);
      rewind(in);
      bytes = (unsigned char *)oracle_grow(NULL, (size_t)len, 1);
      assert_int_equal(fread(bytes, 1, (size_t)len, in), len);
      (void)fclose(in);
      if (!first) {
        first = bytes;
        first_len = len;
        continue;
      }
      assert_int_equal(len, first_len);
      if (memcmp(bytes, first, (size_t)len)) fail_msg("other bytes with memory %d, threads %d", m, t);
      free(bytes);
      compared++;
    }
  free(first);
  (void)unlink(path);
  teardown(&f);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_documents),
      cmocka_unit_test(test_one_document),
      cmocka_unit_test(test_empty_documents),
      cmocka_unit_test(test_query_words),
      cmocka_unit_test(test_no_operators),
      cmocka_unit_test(test_term_limit),
      cmocka_unit_test(test_arguments),
      cmocka_unit_test(test_foreign_query),
      cmocka_unit_test(test_small_zipf),
      cmocka_unit_test(test_text),
      cmocka_unit_test(test_wordnet),
      cmocka_unit_test(test_term_order),
      cmocka_unit_test(test_cursors),
      cmocka_unit_test(test_document_frequencies),
      cmocka_unit_test(test_document_frequencies_dense),
      cmocka_unit_test(test_settings_stored),
      cmocka_unit_test(test_settings_of_queries),
      cmocka_unit_test(test_identical_documents),
      cmocka_unit_test(test_ties),
      cmocka_unit_test(test_huge_frequencies),
      cmocka_unit_test(test_saturated_frequencies),
      cmocka_unit_test(test_tiles),
      cmocka_unit_test(test_damaged_tile),
      cmocka_unit_test(test_every_posting),
      cmocka_unit_test(test_least_frequency),
      cmocka_unit_test(test_ramps),
      cmocka_unit_test(test_stretches),
      cmocka_unit_test(test_wide_gaps),
      cmocka_unit_test(test_large_zipf),
      cmocka_unit_test(test_every_codec),
      cmocka_unit_test(test_batches),
      cmocka_unit_test(test_builds_agree),
      cmocka_unit_test(test_deadline_and_cancel),
      cmocka_unit_test(test_backends),
  };
  int failed;
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  failed = cmocka_run_group_tests(tests, NULL, NULL);
  print_message("%lu comparisons, %lu hits\n", compared, hits_compared);
  return failed;
}
