/* fixture.h - a collection, its indexes and searchers, and every search of them held against the oracle; include after
 * gpuir.h, cmocka.h, oracle.h and corpus.h
 */
#ifndef TESTS_FIXTURE_H
#define TESTS_FIXTURE_H

#include <unistd.h>

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
  const uint32_t *docid; /* [the oracle's docID] the index's; NULL: the same */
} fixture;

static inline gpuir_index *open_at(const char *path, int simd) {
  gpuir_open_desc desc;
  gpuir_index *ix = NULL;
  gpuir_error err;
  memset(&desc, 0, sizeof desc);
  desc.simd = simd;
  if (gpuir_open(path, &desc, &ix, &err)) fail_msg("open: %s", err.msg);
  return ix;
}

static inline gpuir_searcher *searcher_on(gpuir_index *ix, int evaluator, unsigned threads) {
  gpuir_searcher_desc desc;
  gpuir_searcher *s = NULL;
  memset(&desc, 0, sizeof desc);
  desc.evaluator = evaluator;
  desc.threads = threads;
  assert_int_equal(gpuir_searcher_create(ix, &desc, &s, NULL), GPUIR_OK);
  return s;
}

static inline void open_all(fixture *f, const char *path) {
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
static inline void setup_codecs(fixture *f, const char *name, const corpus_build *how, unsigned codecs) {
  static const char *const codec[] = {"bp128", "vbyte"};
  char path[4200];
  int c;
  f->name = name;
  f->nindexes = 0;
  f->docid = NULL;
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
    b.dense = c & 1 ? 24 : GPUIR_DENSE_NONE; /* those with vbyte docIDs, as any codec has the same bits */
    if (corpus_write(&f->o, path, &b, &err)) fail_msg("%s: build: %s", name, err.msg);
    open_all(f, path);
  }
}

static inline void setup(fixture *f, const char *name) { setup_codecs(f, name, NULL, 15); }

static inline void close_all(fixture *f) {
  int i;
  for (i = 0; i < f->nindexes; i++) {
    gpuir_searcher_destroy(f->searcher[i * 2]);
    gpuir_searcher_destroy(f->searcher[i * 2 + 1]);
    gpuir_close(f->index[i]);
  }
  f->nindexes = 0;
}

static inline void teardown(fixture *f) {
  close_all(f);
  free(f->hits);
  oracle_free(&f->o);
}

static inline void say_where(const fixture *f, const gpuir_index *ix, const char *text, int mode, size_t k) {
  gpuir_index_info info;
  static const char *const modes[] = {"AND", "OR", "AND+OR"};
  int level = 0;
  while (f->index[level] != ix) level++;
  (void)gpuir_index_get_info(ix, &info);
  print_error("collection %s (N = %u), docIDs %s, frequencies %s, %s, %s, k = %lu, query \"%.300s\"\n", f->name,
      (unsigned)f->o.ndocs, info.codec, info.freq_codec, gpuir_simd_name(GPUIR_SIMD_SCALAR + level % LEVELS),
      modes[mode], (unsigned long)k, text);
}

static inline uint32_t docid_of(const fixture *f, uint32_t docid) { return f->docid ? f->docid[docid] : docid; }

/* The hits must be the oracle's first k. */
static inline void equal_hits(fixture *f, const gpuir_index *ix, const char *text, int mode, size_t k,
    const gpuir_hit *hits, size_t n, const char *what) {
  size_t want, i;
  const oracle_hit *right = oracle_answer(&f->o, mode, k, &want);
  compared++;
  hits_compared += n;
  for (i = 0; i < n && i < want; i++)
    if (hits[i].docid != docid_of(f, right[i].docid) || hits[i].score != right[i].score) break;
  if (i == n && n == want) return;
  say_where(f, ix, text, mode, k);
  if (i < n && i < want)
    print_error("hit %lu is (%u, %u), not (%u, %u); ", (unsigned long)i, (unsigned)hits[i].docid,
        (unsigned)hits[i].score, (unsigned)right[i].docid, (unsigned)right[i].score);
  fail_msg("%s: %lu hits, should be %lu", what, (unsigned long)n, (unsigned long)want);
}

static inline void check_search(fixture *f, int searcher, const gpuir_query *q, const char *text, int mode, size_t k) {
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

static inline void check_count(fixture *f, int searcher, const gpuir_query *q, const char *text, int mode) {
  uint64_t count = 99, want = f->o.nhits[mode == GPUIR_OR];
  int status = gpuir_count(f->searcher[searcher], q, &count);
  compared++;
  if (status || count != want) {
    say_where(f, f->index[searcher / 2], text, mode, 0);
    fail_msg("count: status %d, %lu, should be %lu", status, (unsigned long)count, (unsigned long)want);
  }
}

/* Hits and count at once, for a few k. */
static inline void check_search_count(fixture *f, int searcher, const gpuir_query *q, const char *text, int mode) {
  const size_t ks[] = {0, 1, 10, (size_t)f->o.ndocs + 5};
  const uint64_t want = f->o.nhits[mode == GPUIR_OR];
  size_t i;
  for (i = 0; i < (f->o.ndocs > 20000 ? 3u : 4u); i++) {
    uint64_t count = 99;
    size_t n = 99;
    const int status = gpuir_search_count(f->searcher[searcher], q, f->hits, ks[i], &n, &count);
    assert_int_equal(status, GPUIR_OK);
    equal_hits(f, f->index[searcher / 2], text, mode, ks[i], f->hits, n, "with a count");
    if (count != want) {
      say_where(f, f->index[searcher / 2], text, mode, ks[i]);
      fail_msg("counted with hits: %lu, should be %lu", (unsigned long)count, (unsigned long)want);
    }
  }
}

static int keep_rarest; /* of the queries that are parsed: see gpuir_query_desc */
static unsigned required; /* the same */

static inline gpuir_query *parse(const gpuir_index *ix, const char *text, size_t len, int mode, const float *bm25,
    int *status) {
  gpuir_query_desc desc;
  gpuir_query *q = NULL;
  gpuir_error err;
  memset(&desc, 0, sizeof desc);
  desc.mode = mode;
  desc.keep_rarest = keep_rarest;
  desc.required = required;
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
static inline void check_explain(fixture *f, int searcher, const gpuir_query *q, const oracle_query *oq, int mode,
    const float *bm25, uint32_t docid) {
  static gpuir_explanation x;
  const oracle *o = &f->o;
  float k1 = bm25 ? bm25[0] : f->k1, b = bm25 ? bm25[1] : f->b;
  uint64_t sum = 0;
  size_t i, j, positive = 0, n = 0;
  int in = 0;
  const oracle_hit *list = o->hits[mode == GPUIR_OR];
  assert_int_equal(gpuir_explain(f->searcher[searcher], q, docid_of(f, docid), &x), GPUIR_OK);
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

/* A query on every index with every evaluator; `all` asks for every k on each of them. All hits of a large collection
 * are asked for by every fourth query only: to sort them takes longer than all else. In the short form such a
 * collection's other indexes are searched by one evaluator a query, either as often. */
static inline void check_query(fixture *f, const oracle_query *oq, const float *bm25, rng *r, int all) {
  const size_t ks[] = {0, 1, 2, 10, 100, 1000, f->o.ndocs, (size_t)f->o.ndocs + 5};
  enum { KS = sizeof ks / sizeof *ks };
  static char text[65536];
  const int large = f->o.ndocs > 20000 && !corpus_long_run(), few = large && rng_below(r, 4);
  size_t len = corpus_text(&f->o, oq, text, sizeof text), i;
  int expected = oracle_run(&f->o, oq, bm25 ? bm25[0] : f->k1, bm25 ? bm25[1] : f->b), mode, x, e;
  for (mode = 0; mode < 3; mode++) {
    int whole = (int)rng_below(r, (uint32_t)f->nindexes);
    for (x = 0; x < f->nindexes; x++) {
      const int only = large && !all && x != whole ? (int)rng_below(r, 2) : -1;
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
        if (only >= 0 && e != only) continue;
        if (all || x == whole)
          for (i = 0; i < (few ? KS - 2u : KS); i++) check_search(f, s, q, text, mode, ks[i]);
        else check_search(f, s, q, text, mode, ks[1 + rng_below(r, 5)]);
      }
      if (all || x == whole) check_count(f, x * 2, q, text, mode);
      if (x == whole) check_search_count(f, x * 2, q, text, mode);
      if (x == whole && f->o.ndocs) {
        const oracle_hit *list = f->o.hits[mode == GPUIR_OR];
        size_t n = f->o.nhits[mode == GPUIR_OR];
        if (n) check_explain(f, x * 2, q, oq, mode, bm25, list[0].docid);
        if (n) check_explain(f, x * 2, q, oq, mode, bm25, list[n - 1].docid);
        check_explain(f, x * 2, q, oq, mode, bm25, rng_below(r, f->o.ndocs));
      }
      gpuir_query_destroy(q);
    }
  }
}

/* Returns 1 if a document holds the first `n` positive words of a query. */
static inline int holds_first(const oracle *o, const oracle_query *oq, unsigned n, uint32_t doc) {
  size_t i;
  for (i = 0; i < oq->n && n; i++) {
    if (oq->word[i].negated) continue;
    n--;
    if (oq->word[i].term == ORACLE_UNKNOWN || !oracle_tf(o, oq->word[i].term, doc)) return 0;
  }
  return n == 0;
}

/* A query of which the first n positive words must match: OR's hits that hold these, on every index. */
static inline void check_required(fixture *f, const oracle_query *oq, unsigned n, const float *bm25) {
  const size_t ks[] = {1, 10, 100, f->o.ndocs};
  static char text[65536];
  const size_t len = corpus_text(&f->o, oq, text, sizeof text);
  const int expected = oracle_run(&f->o, oq, bm25 ? bm25[0] : f->k1, bm25 ? bm25[1] : f->b);
  oracle_hit *hits = f->o.hits[1];
  size_t i, kept = 0;
  int x, status;
  for (i = 0; i < f->o.nhits[1]; i++)
    if (holds_first(&f->o, oq, n, hits[i].docid)) hits[kept++] = hits[i];
  f->o.nhits[1] = kept;
  required = n;
  for (x = 0; x < f->nindexes; x++) {
    gpuir_query *q = parse(f->index[x], text, len, GPUIR_OR, bm25, &status);
    assert_int_equal(status, expected);
    for (i = 0; q && i < 8; i++) check_search(f, x * 2 + (int)(i / 4), q, text, GPUIR_OR, ks[i % 4]);
    if (q) check_count(f, x * 2, q, text, GPUIR_OR);
    if (q) check_search_count(f, x * 2, q, text, GPUIR_OR);
    if (q && kept) check_explain(f, x * 2, q, oq, GPUIR_OR, bm25, hits[kept - 1].docid);
    if (q && f->o.ndocs) check_explain(f, x * 2, q, oq, GPUIR_OR, bm25, (uint32_t)(i * 7919 % f->o.ndocs));
    gpuir_query_destroy(q);
  }
  required = 0;
}

static const float settings[][2] = {{0.9f, 0.4f}, {0.0f, 0.0f}, {0.0f, 1.0f}, {1000.0f, 0.0f}, {1000.0f, 1.0f},
    {1.2f, 0.75f}, {0.9f, 0.0f}, {0.9f, 1.0f}, {2.5f, 0.3f}, {100.0f, 0.9f}, {1e-20f, 1e-30f}, {30.0f, 0.01f}};
enum { SETTINGS = sizeof settings / sizeof *settings };

/* Random queries of 1 to 64 words, most of them short, under the index's and other parameters. */
static inline void random_queries(fixture *f, unsigned times, uint64_t seed, int all) {
  rng r;
  unsigned i;
  r.s = seed;
  if (corpus_long_run()) times *= 10;
  for (i = 0; i < times; i++) {
    oracle_query q;
    const float *bm25 = i % 3 == 2 ? settings[rng_below(&r, SETTINGS)] : NULL;
    uint32_t most = rng_below(&r, 8) == 0 ? 64 : 1u << rng_below(&r, 5);
    corpus_query(&f->o, &r, 1 + rng_below(&r, most), i % 2, &q);
    check_query(f, &q, bm25, &r, all);
  }
}

/* Each term alone, and each with each of a few. */
static inline void single_terms(fixture *f, uint32_t step, const float *bm25, int all) {
  rng r;
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

/* What the ascii analyzer is documented to do: runs of ASCII letters and digits and of bytes above
 * 127, letters in lower case. */
static inline size_t next_token(const char *s, size_t len, size_t *at, char *out) {
  size_t n = 0;
  for (; *at < len; ++*at) {
    unsigned char c = (unsigned char)s[*at];
    int word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 128;
    if (word) out[n++] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    else if (n) break;
  }
  return n;
}

static inline void add_text(oracle *o, const char *text, size_t len) {
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

static inline void texts_begin(texts *t, fixture *f, const char *codec) {
  gpuir_builder_desc desc;
  gpuir_error err;
  memset(&desc, 0, sizeof desc);
  desc.path = corpus_path(t->path, sizeof t->path, "text.gpuir");
  desc.codec = desc.freq_codec = codec;
  t->f = f;
  if (gpuir_builder_create(&desc, &t->b, &err)) fail_msg("%s", err.msg);
  oracle_init(&f->o);
}

static inline void texts_add(texts *t, const char *text, size_t len) {
  gpuir_error err;
  if (gpuir_builder_add_text(t->b, NULL, text, len, &err)) fail_msg("%s", err.msg);
  add_text(&t->f->o, text, len);
}

static inline void texts_end(texts *t, const char *name) {
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
  f->docid = NULL;
  f->k1 = 0.9f;
  f->b = 0.4f;
  f->hits = (gpuir_hit *)oracle_grow(NULL, (size_t)f->o.ndocs + 16, sizeof *f->hits);
  open_all(f, t->path);
}

#endif
