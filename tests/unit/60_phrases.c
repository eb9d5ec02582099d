/* 60_phrases.c - phrases and prefixes against a brute force on arrays of tokens, which reads no index: every mode,
 * both evaluators, counts, explanations; limits, deadlines, indexes without positions */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "oracle.h"
#include "corpus.h"
#include "rng.h"

enum { TOKENS = 60000, MOST_UNITS = 8, MOST_TOKENS = 6 };

/* Documents as arrays of word numbers; word w is written by word_text. */
typedef struct texts {
  uint32_t ndocs, nwords, start[6001];
  uint16_t token[TOKENS];
} texts;

static texts docs;
static uint64_t most_runs; /* that a segment was merged from */
static uint8_t dead[6000]; /* [document] deleted */
static int simd; /* level at which indexes are opened; GPUIR_SIMD_AUTO: the best */

/* Documents that are left, and their tokens. */
static uint32_t live_docs(void) {
  uint32_t d, n = 0;
  for (d = 0; d < docs.ndocs; d++) n += !dead[d];
  return n;
}

static uint64_t live_tokens(void) {
  uint64_t n = 0;
  uint32_t d;
  for (d = 0; d < docs.ndocs; d++) n += dead[d] ? 0 : docs.start[d + 1] - docs.start[d];
  return n;
}

static const char *word_text(uint32_t w) {
  static char text[8][32];
  static unsigned at;
  char *to = text[at++ % 8];
  (void)snprintf(to, 32, w % 3 ? "w%u" : "wx%u", w);
  return to;
}

/* Words are skewed, and documents of all lengths; document 7 is long, and full of word 0. */
static void make_texts(rng *r, uint32_t ndocs, uint32_t nwords, uint32_t most) {
  uint32_t d, i, at = 0;
  memset(dead, 0, sizeof dead);
  docs.ndocs = ndocs;
  docs.nwords = nwords;
  for (d = 0; d < ndocs; d++) {
    uint32_t n = d == 7 ? 4000 : rng_below(r, most + 1);
    docs.start[d] = at;
    if (n > TOKENS - at) n = TOKENS - at;
    for (i = 0; i < n; i++) {
      uint32_t w = rng_below(r, 1 + rng_below(r, nwords));
      docs.token[at++] = (uint16_t)(d == 7 && i % 3 ? 0 : w);
    }
  }
  docs.start[ndocs] = at;
}

/* One unit of a query: a phrase of n words, a word, or a prefix (n 0) of the words that begin like `text`. */
typedef struct unit {
  unsigned n;
  uint32_t word[MOST_TOKENS];
  char text[64];
  int negated;
} unit;

static uint64_t unit_tf(const unit *u, uint32_t d) {
  uint64_t tf = 0;
  uint32_t i, j;
  for (i = docs.start[d]; i < docs.start[d + 1]; i++) {
    if (!u->n) {
      tf += !strncmp(word_text(docs.token[i]), u->text, strlen(u->text));
      continue;
    }
    for (j = 0; j < u->n && i + j < docs.start[d + 1] && docs.token[i + j] == u->word[j]; j++) {}
    tf += j == u->n;
  }
  return tf;
}

static uint32_t word_df(uint32_t w) {
  static uint32_t df[1000], made;
  uint32_t d, i, now = docs.start[docs.ndocs] + docs.ndocs + live_docs() * 7919;
  if (made != now) {
    memset(df, 0, sizeof df);
    for (d = 0; d < docs.ndocs; d++)
      for (i = docs.start[d]; i < docs.start[d + 1] && !dead[d]; i++) {
        uint32_t j = docs.start[d];
        while (docs.token[j] != docs.token[i]) j++;
        df[docs.token[i]] += j == i;
      }
    made = now;
  }
  return df[w];
}

/* The weight of a unit; 0: one of its words is in no document. */
static float unit_weight(const unit *u, float k1) {
  double idf = 0;
  uint32_t greatest = 0, w;
  unsigned i;
  for (i = 0; i < u->n; i++) {
    if (!word_df(u->word[i])) return 0;
    idf += (double)oracle_idf(live_docs(), word_df(u->word[i]));
  }
  for (w = 0; !u->n && w < docs.nwords; w++)
    if (!strncmp(word_text(w), u->text, strlen(u->text)) && word_df(w) > greatest) greatest = word_df(w);
  if (!u->n && !greatest) return 0;
  return oracle_weight(u->n ? (float)idf : oracle_idf(live_docs(), greatest), k1);
}

typedef struct answer {
  size_t n, nhits[2];
  gpuir_hit hits[2][6000]; /* AND, OR */
} answer;

static answer right;

static int by_score(const void *x, const void *y) {
  const gpuir_hit *a = (const gpuir_hit *)x, *b = (const gpuir_hit *)y;
  if (a->score != b->score) return a->score > b->score ? -1 : 1;
  return a->docid < b->docid ? -1 : a->docid > b->docid;
}

/* Ranks all documents by both modes. Units may repeat: each adds its part. */
static void brute_force(const unit *u, unsigned n, float k1, float b) {
  const uint64_t tokens = live_tokens();
  const uint32_t documents = live_docs();
  float weight[MOST_UNITS];
  uint32_t d;
  unsigned i;
  for (i = 0; i < n; i++) weight[i] = unit_weight(&u[i], k1);
  right.nhits[0] = right.nhits[1] = 0;
  for (d = 0; d < docs.ndocs; d++) {
    float K = oracle_norm(k1, b, tokens, documents, docs.start[d + 1] - docs.start[d]);
    uint64_t score = 0;
    int all = 1, any = 0, out = 0;
    for (i = 0; i < n; i++) {
      uint64_t tf = unit_tf(&u[i], d);
      if (u[i].negated) {
        out |= tf > 0;
      } else {
        all &= tf > 0;
        any |= tf > 0;
        if (tf) score += oracle_c(weight[i], K, tf);
      }
    }
    if (out || !any || dead[d]) continue;
    if (all) right.hits[0][right.nhits[0]++] = (gpuir_hit){d, (uint32_t)score};
    right.hits[1][right.nhits[1]++] = (gpuir_hit){d, (uint32_t)score};
  }
  for (i = 0; i < 2; i++) qsort(right.hits[i], right.nhits[i], sizeof **right.hits, by_score);
}

static void write_query(const unit *u, unsigned n, char *text) {
  unsigned i, j;
  *text = 0;
  for (i = 0; i < n; i++) {
    text += sprintf(text, "%s%s", i ? " " : "", u[i].negated ? "-" : "");
    if (!u[i].n) text += sprintf(text, "%s*", u[i].text);
    if (u[i].n == 1 && i % 2) text += sprintf(text, "%s", word_text(u[i].word[0]));
    if (u[i].n > 1 || (u[i].n == 1 && !(i % 2))) {
      text += sprintf(text, "\"");
      for (j = 0; j < u[i].n; j++) text += sprintf(text, "%s%s", j ? " " : "", word_text(u[i].word[j]));
      text += sprintf(text, "\"");
    }
  }
}

/* A unit whose words stand somewhere, or do not. */
static void random_unit(rng *r, unit *u) {
  uint32_t at = rng_below(r, docs.start[docs.ndocs]), kind = rng_below(r, 10);
  unsigned i;
  memset(u, 0, sizeof *u);
  u->n = 1 + rng_below(r, kind < 3 ? 1 : kind < 8 ? 3 : MOST_TOKENS);
  for (i = 0; i < u->n; i++) {
    u->word[i] = docs.token[(at + i) % docs.start[docs.ndocs]];
    if (!rng_below(r, 12)) u->word[i] = rng_below(r, docs.nwords + 2);
    if (kind == 9) u->word[i] = u->word[i & 1 ? 0 : i];
  }
  if (kind == 2 || kind == 7) {
    u->n = 0;
    (void)snprintf(u->text, sizeof u->text, "%.*s", 1 + (int)rng_below(r, 4), word_text(docs.token[at]));
  }
  u->negated = !rng_below(r, 6);
}

/* Builds the documents [from, to) and opens them as a segment. */
static gpuir__segment *build_segment(int positions, uint32_t from, uint32_t to, const char *codec) {
  const gpuir_allocator a = gpuir__allocator(NULL);
  gpuir_builder_desc d;
  gpuir_build_report report;
  gpuir_builder *b;
  gpuir__segment *segment;
  gpuir_error err;
  char path[4200], text[65536];
  uint32_t i, j;
  memset(&d, 0, sizeof d);
  d.path = corpus_path(path, sizeof path, "phrases.gpuir");
  d.positions = positions;
  d.codec = d.freq_codec = codec;
  d.memory = 1 << 20; /* so that runs are spilled */
  d.threads = 2;
  if (gpuir_builder_create(&d, &b, &err)) fail_msg("%s", err.msg);
  for (i = from; i < to; i++) {
    size_t n = 0;
    for (j = docs.start[i]; j < docs.start[i + 1]; j++) n += (size_t)sprintf(text + n, "%s ", word_text(docs.token[j]));
    if (gpuir_builder_add_text(b, NULL, text, n, &err)) fail_msg("%s", err.msg);
  }
  if (gpuir_builder_write(b, &report, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
  most_runs = gpuir__max64(most_runs, report.runs);
  if (gpuir__segment_open(&a, AT_FDCWD, path, NULL, &segment, &err)) fail_msg("%s", err.msg);
  (void)unlink(path);
  return segment;
}

/* An index of the documents in so many segments, the dead ones deleted. */
static gpuir_index *build_texts(int positions, unsigned segments, const char *codec) {
  const gpuir_allocator a = gpuir__allocator(NULL);
  gpuir__leaf leaves[8];
  gpuir_index *ix;
  gpuir_error err;
  unsigned i;
  uint32_t d;
  memset(leaves, 0, sizeof leaves);
  for (i = 0; i < segments; i++) {
    const uint32_t from = docs.ndocs * i / segments, to = docs.ndocs * (i + 1) / segments;
    leaves[i].seg = build_segment(positions, from, to, codec);
    leaves[i].seg->simd = gpuir__simd_level(simd);
    for (d = from; d < to; d++) {
      const uint32_t docid = d - from;
      if (dead[d]) assert_int_equal(gpuir__log_append(leaves[i].seg, &docid, 1), 0);
    }
    assert_int_equal(gpuir__deleted_make(leaves[i].seg, leaves[i].seg->log.n, NULL, &leaves[i].deleted), 0);
  }
  if (gpuir__index_make(&a, "texts", NULL, leaves, segments, NULL, &ix, &err)) fail_msg("%s", err.msg);
  if (gpuir_verify(ix, &err)) fail_msg("%s", err.msg);
  return ix;
}

static void check_hits(const gpuir_hit *hits, size_t n, int mode, size_t k, const char *text, int evaluator) {
  const int list = mode == GPUIR_ANDOR ? right.nhits[0] < k : mode;
  const size_t want = right.nhits[list] < k ? right.nhits[list] : k;
  size_t i;
  for (i = 0; i < n && i < want; i++)
    if (hits[i].docid != right.hits[list][i].docid || hits[i].score != right.hits[list][i].score)
      fail_msg("%s, mode %d, k %lu, evaluator %d: hit %lu is (%u, %u), not (%u, %u)", text, mode, (unsigned long)k,
          evaluator, (unsigned long)i, hits[i].docid, hits[i].score, right.hits[list][i].docid,
          right.hits[list][i].score);
  if (n != want)
    fail_msg("%s, mode %d, k %lu, evaluator %d: %lu hits, not %lu", text, mode, (unsigned long)k, evaluator,
        (unsigned long)n, (unsigned long)want);
}

/* What explain says of a document. */
static void check_explained(gpuir_searcher *s, const gpuir_query *q, const unit *u, unsigned n, uint32_t d) {
  static gpuir_explanation x;
  uint64_t sum = 0;
  size_t i;
  unsigned j;
  assert_int_equal(gpuir_explain(s, q, d, &x), 0);
  for (i = 0; i < x.nterms; i++) {
    const gpuir_explain_term *t = &x.terms[i];
    char name[256];
    for (j = 0; j < n; j++) {
      unit one = u[j];
      if (u[j].negated != t->negated) continue;
      one.negated = 0;
      write_query(&one, 1, name);
      if (one.n == 1) (void)snprintf(name, sizeof name, "%s", word_text(one.word[0]));
      if (strlen(name) == t->term_len && !memcmp(name, t->term, t->term_len)) break;
    }
    assert_true(j < n);
    assert_int_equal(t->tf, unit_tf(&u[j], d));
    assert_int_equal(t->tokens, u[j].n > 1 ? u[j].n : 1);
    if (u[j].n > 1) assert_int_equal(t->df, 0);
    assert_true((t->members > 0) == (!u[j].n && unit_weight(&u[j], 1) > 0));
    if (!t->negated) {
      assert_true(t->weight == unit_weight(&u[j], x.k1));
      sum += (uint64_t)t->q * t->contribution;
    }
  }
  if (x.matches) assert_int_equal(x.score, sum);
}

static void check_query(gpuir_index *ix, gpuir_searcher *const *s, const unit *u, unsigned n, int mode) {
  static gpuir_hit hits[6010];
  const size_t ks[] = {1, 3, 10, 100, docs.ndocs + 5};
  char text[2048];
  gpuir_query_desc qd;
  gpuir_query *q;
  gpuir_error err;
  unsigned i, e;
  size_t found;
  int status, positive = 0;
  write_query(u, n, text);
  for (i = 0; i < n; i++) positive |= !u[i].negated;
  memset(&qd, 0, sizeof qd);
  qd.mode = mode;
  status = gpuir_query_parse(ix, &qd, text, strlen(text), &q, &err);
  if (!positive) {
    assert_int_equal(status, GPUIR_E_QUERY);
    return;
  }
  if (status) fail_msg("%s: %s", text, err.msg);
  for (e = 0; e < 2; e++) {
    uint64_t count;
    for (i = 0; i < sizeof ks / sizeof *ks; i++) {
      assert_int_equal(gpuir_search(s[e], q, hits, ks[i], &found), 0);
      check_hits(hits, found, mode, ks[i], text, (int)e);
      assert_int_equal(gpuir_search_count(s[e], q, hits, ks[i], &found, &count), 0);
      check_hits(hits, found, mode, ks[i], text, (int)e);
      if (count != right.nhits[mode == GPUIR_OR])
        fail_msg("%s, mode %d, k %u: counts %lu beside hits", text, mode, (unsigned)ks[i], (unsigned long)count);
    }
    assert_int_equal(gpuir_count(s[e], q, &count), 0);
    if (count != right.nhits[mode == GPUIR_OR])
      fail_msg("%s, mode %d: counts %lu, not %lu", text, mode, (unsigned long)count,
          (unsigned long)right.nhits[mode == GPUIR_OR]);
  }
  if (found) check_explained(s[0], q, u, n, hits[0].docid);
  if (!dead[docs.ndocs / 2]) check_explained(s[0], q, u, n, docs.ndocs / 2);
  gpuir_query_destroy(q);
}

/* One query in all modes at once, often enough to occupy three threads. */
static void check_batch(gpuir_index *ix, const unit *u, unsigned n) {
  enum { TIMES = 4, K = 20 };
  static gpuir_hit hits[3 * TIMES * K];
  gpuir_query *queries[3 * TIMES];
  gpuir_searcher_desc sd;
  gpuir_searcher *s;
  uint32_t counts[3 * TIMES];
  char text[2048];
  unsigned i;
  write_query(u, n, text);
  for (i = 0; i < 3 * TIMES; i++) {
    gpuir_query_desc qd;
    memset(&qd, 0, sizeof qd);
    qd.mode = (int)(i % 3);
    if (gpuir_query_parse(ix, &qd, text, strlen(text), &queries[i], NULL)) break; /* no positive term */
  }
  memset(&sd, 0, sizeof sd);
  sd.threads = 3;
  assert_int_equal(gpuir_searcher_create(ix, &sd, &s, NULL), 0);
  assert_int_equal(gpuir_search_batch(s, (const gpuir_query *const *)queries, i, K, hits, counts), 0);
  while (i--) {
    check_hits(hits + i * K, counts[i], (int)(i % 3), K, text, 2);
    gpuir_query_destroy(queries[i]);
  }
  gpuir_searcher_destroy(s);
}

/* Asks random queries of the texts that stand in docs. */
static void check_texts(rng *r, const char *codec, unsigned segments, unsigned times) {
  gpuir_searcher_desc sd;
  gpuir_searcher *s[2];
  gpuir_index *ix;
  unsigned i, j;
  for (i = 0; segments > 1 && i < docs.ndocs; i++) dead[i] = !rng_below(r, 5);
  ix = build_texts(1, segments, codec);
  memset(&sd, 0, sizeof sd);
  for (i = 0; i < 2; i++) {
    sd.evaluator = (int)i;
    assert_int_equal(gpuir_searcher_create(ix, &sd, &s[i], NULL), 0);
  }
  for (i = 0; i < times; i++) {
    unit u[MOST_UNITS];
    const unsigned n = 1 + rng_below(r, i % 3 ? 3 : MOST_UNITS);
    int mode;
    for (j = 0; j < n; j++) random_unit(r, &u[j]);
    brute_force(u, n, 0.9f, 0.4f);
    for (mode = 0; mode < 3; mode++) check_query(ix, s, u, n, mode);
    if (i % 16 == 0) check_batch(ix, u, n);
  }
  for (i = 0; i < 2; i++) gpuir_searcher_destroy(s[i]);
  gpuir_close(ix);
}

static void check_collection(uint64_t seed, uint32_t ndocs, uint32_t nwords, uint32_t most, const char *codec,
    unsigned segments, unsigned times) {
  rng r;
  r.s = seed;
  make_texts(&r, ndocs, nwords, most);
  check_texts(&r, codec, segments, times);
}

static void test_small(void **state) {
  (void)state;
  check_collection(1, 30, 4, 20, NULL, 1, 400);
  check_collection(2, 1, 3, 200, "vbyte", 1, 100);
  check_collection(3, 300, 10, 60, NULL, 1, 200);
}

static void test_large(void **state) {
  (void)state;
  check_collection(4, 5800, 20, 18, NULL, 1, 60);
  check_collection(5, 4000, 300, 24, "vbyte", 1, 60);
  assert_true(most_runs > 1);
}

/* Segments, some of whose documents are deleted, answer as an index of those that are left. */
static void test_segments(void **state) {
  (void)state;
  check_collection(7, 60, 6, 20, NULL, 3, 200);
  check_collection(8, 900, 12, 40, NULL, 7, 80);
  check_collection(9, 4000, 300, 24, NULL, 2, 40);
}

/* Writes n documents of words 0 to 2, of which every other one has word 1, and word 0 `often` times. */
static void make_dense(rng *r, uint32_t n, uint32_t often) {
  uint32_t d, i, at = 0;
  memset(dead, 0, sizeof dead);
  docs.ndocs = n;
  docs.nwords = 3;
  for (d = 0; d < n; d++) {
    const uint32_t most = d % 2 ? 5 : often;
    docs.start[d] = at;
    for (i = 0; i < most; i++) {
      docs.token[at++] = 0;
      if (!rng_below(r, 9)) docs.token[at++] = (uint16_t)(d % 2 ? 2 : 1 + rng_below(r, 2));
    }
  }
  docs.start[n] = at;
}

/* Of frequent words, positions of a block's matches are more than are laid out at once (at 110 in every other document,
 * 7,360 in a block, 14,080 in a block of the rarer word), or the blocks are too large to be indexed (300). */
static void test_dense(void **state) {
  rng r;
  (void)state;
  r.s = 11;
  make_dense(&r, 600, 110);
  check_texts(&r, NULL, 1, 40);
  make_dense(&r, 260, 300);
  check_texts(&r, NULL, 1, 40);
  make_dense(&r, 300, 2);
  check_texts(&r, NULL, 1, 60);
}

/* Without vectors, and at each level of them, answers are the same: the brute force's. */
static void test_levels(void **state) {
  rng r;
  (void)state;
  for (simd = GPUIR_SIMD_SCALAR; simd <= GPUIR_SIMD_AVX512; simd++) {
    check_collection(12, 300, 10, 60, NULL, 1, 60);
    r.s = 13;
    make_dense(&r, 500, 110);
    check_texts(&r, NULL, 1, 20);
  }
  simd = GPUIR_SIMD_AUTO;
}

/* ---- limits and refusals ---- */

static int parse(gpuir_index *ix, const char *text, gpuir_query **q, gpuir_error *err) {
  return gpuir_query_parse(ix, NULL, text, strlen(text), q, err);
}

static void test_refusals(void **state) {
  char text[4096];
  gpuir_error err;
  gpuir_index *ix;
  gpuir_query *q;
  size_t n = 0;
  unsigned i;
  rng r;
  (void)state;
  r.s = 6;
  make_texts(&r, 100, 10, 30);
  ix = build_texts(0, 1, NULL);
  assert_int_equal(parse(ix, "\"w1 w2\"", &q, &err), GPUIR_E_UNSUPPORTED);
  assert_non_null(strstr(err.msg, "built without positions"));
  assert_int_equal(parse(ix, "\"w1\" w*", &q, &err), 0); /* neither needs positions */
  gpuir_query_destroy(q);
  assert_int_equal(parse(ix, "w1 -\"w2", &q, &err), GPUIR_E_QUERY);
  assert_int_equal(err.offset, 4);
  gpuir_close(ix);
  ix = build_texts(1, 1, NULL);
  for (i = 0; i < 64; i++) n += (size_t)sprintf(text + n, "%sw%u", i ? " " : "\"", i);
  (void)sprintf(text + n, "\"");
  assert_int_equal(parse(ix, text, &q, &err), 0);
  gpuir_query_destroy(q);
  (void)sprintf(text + n, "\" w63"); /* no further distinct term */
  assert_int_equal(parse(ix, text, &q, &err), 0);
  gpuir_query_destroy(q);
  (void)sprintf(text + n, "\" other");
  assert_int_equal(parse(ix, text, &q, &err), GPUIR_E_TERMS);
  (void)sprintf(text + n, " w0\"");
  assert_int_equal(parse(ix, text, &q, &err), GPUIR_E_TERMS); /* 65 tokens of 64 terms */
  gpuir_close(ix);
}

static void check_count(gpuir_index *ix, const gpuir_query *q, uint64_t want) {
  gpuir_searcher *s;
  uint64_t n = 0;
  assert_int_equal(gpuir_searcher_create(ix, NULL, &s, NULL), 0);
  assert_int_equal(gpuir_count(s, q, &n), 0);
  assert_int_equal(n, want);
  gpuir_searcher_destroy(s);
}

/* A prefix stands for any number of terms; what is bounded is the postings of all prefixes of a query. */
static void test_prefix_postings(void **state) {
  gpuir_query_desc qd;
  gpuir_builder_desc d;
  gpuir_builder *b;
  gpuir_error err;
  gpuir_index *ix;
  gpuir_query *q;
  char path[4200], text[32];
  unsigned i;
  (void)state;
  memset(&d, 0, sizeof d);
  d.path = corpus_path(path, sizeof path, "phrases.gpuir");
  if (gpuir_builder_create(&d, &b, &err)) fail_msg("%s", err.msg);
  for (i = 0; i < 5025; i++) {
    size_t n = (size_t)sprintf(text, i < 5024 ? "a%u" : "ab", i);
    assert_int_equal(gpuir_builder_add_text(b, NULL, text, n, &err), 0);
  }
  assert_int_equal(gpuir_builder_add_text(b, NULL, "\xff\xff \xff", 4, &err), 0);
  if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
  if (gpuir_open(path, NULL, &ix, &err)) fail_msg("%s", err.msg);
  (void)unlink(path);
  assert_int_equal(parse(ix, "a*", &q, &err), 0);
  assert_int_equal(q->terms[0].members, 5025);
  assert_int_equal(gpuir_query_prefix_postings(q, 0), 5025);
  assert_int_equal(gpuir_query_prefix_postings(q, 1), 0);
  assert_int_equal(gpuir_query_prefix_postings(NULL, 0), 0);
  check_count(ix, q, 5025);
  gpuir_query_destroy(q);
  assert_int_equal(parse(ix, "a1*", &q, &err), 0);
  assert_int_equal(q->terms[0].members, 1111); /* a1, a10 to a19, a100 to a199, a1000 to a1999 */
  gpuir_query_destroy(q);
  memset(&qd, 0, sizeof qd);
  qd.mode = GPUIR_OR;
  qd.prefix_postings = 2223;
  assert_int_equal(gpuir_query_parse(ix, &qd, "a1* -a2* ab*", 12, &q, &err), 0);
  check_count(ix, q, 1112);
  gpuir_query_destroy(q);
  qd.prefix_postings = 2222;
  assert_int_equal(gpuir_query_parse(ix, &qd, "a1* -a2* ab*", 12, &q, &err), GPUIR_E_LIMIT);
  assert_non_null(strstr(err.msg, "the prefixes up to \"a2*\" stand for terms of more than 2222 postings"));
  assert_int_equal(parse(ix, "\xff*", &q, &err), 0);
  assert_int_equal(q->terms[0].members, 2);
  gpuir_query_destroy(q);
  gpuir_close(ix);
}

/* ---- searches that have to stop ---- */

enum { PAIRS = 3000000 }; /* of words, in either of two documents */

/* Builds two equal documents of "a c b a" again and again: of "a" there are 3 million in each. */
static gpuir_index *build_huge(void) {
  char *text = (char *)malloc(4 * (size_t)PAIRS), path[4200];
  gpuir_builder_desc d;
  gpuir_builder *b;
  gpuir_error err;
  gpuir_index *ix;
  size_t i;
  assert_non_null(text);
  for (i = 0; i < PAIRS; i++) memcpy(text + 4 * i, i % 2 ? "b a " : "a c ", 4);
  memset(&d, 0, sizeof d);
  d.path = corpus_path(path, sizeof path, "phrases.gpuir");
  d.positions = 1;
  if (gpuir_builder_create(&d, &b, &err)) fail_msg("%s", err.msg);
  for (i = 0; i < 2; i++) assert_int_equal(gpuir_builder_add_text(b, NULL, text, 4 * (size_t)PAIRS, &err), 0);
  if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
  if (gpuir_open(path, NULL, &ix, &err)) fail_msg("%s", err.msg);
  (void)unlink(path);
  free(text);
  return ix;
}

/* Walks a phrase's positions in document `doc` of two, when the search has been told to stop: it does, within as many
 * gaps as lie between two looks. */
static void check_walk_stops(gpuir_searcher *s, const gpuir_query *q, uint32_t doc, int status) {
  gpuir__engine *e = &s->engine;
  gpuir__token_walk t[GPUIR_MAX_TERMS];
  const uint32_t length = e->ix->leaves[0].seg->lengths[doc];
  gpuir__phrases p;
  uint64_t gaps = 0;
  unsigned i;
  int missing = 0;
  e->stopped = 0;
  assert_int_equal(gpuir__phrases_open(&p, e, q, 0, &missing), 0);
  assert_int_equal(missing, 0);
  assert_int_equal(gpuir__phrases_prepare(&p), 0);
  e->deadline = status == GPUIR_E_DEADLINE; /* long past */
  e->limits.cancel = status == GPUIR_E_CANCELLED ? &status : NULL;
  for (i = 0; i < p.clauses[0].n && !e->stopped; i++) {
    gpuir__place *place = &p.places[p.clauses[0].list[i]];
    (void)gpuir__place_find(e, place, &e->cursors[p.clauses[0].list[i]].list, doc, length, &t[i]);
    if (e->stopped) assert_in_range(place->positions.chunk, 1, GPUIR__SKIP_CHUNKS);
    t[i].offset = i;
  }
  if (!doc) {
    assert_int_equal(e->stopped, 0);
    for (i = 0; i < p.clauses[0].n; i++) gaps -= t[i].o.gap - t[i].o.here;
    e->made.chunks = 0;
    (void)gpuir__tokens_meet(e, t, p.clauses[0].n);
    for (i = 0; i < p.clauses[0].n; i++) gaps += t[i].o.gap - t[i].o.here;
    assert_in_range(gaps, 1, GPUIR__SKIP_CHUNKS + GPUIR__CHUNK * p.clauses[0].n);
  }
  assert_int_equal(e->stopped, status);
  e->deadline = 0;
  e->limits.cancel = NULL;
  gpuir__engine_reset(e);
}

/* A phrase that is long to look for ends with its time, or when it is cancelled. */
static void test_phrase_stops(void **state) {
  gpuir_error err;
  gpuir_index *ix = build_huge();
  gpuir_searcher *s;
  gpuir_query *q;
  gpuir_hit hit[10];
  uint64_t count;
  size_t n;
  (void)state;
  assert_int_equal(gpuir_searcher_create(ix, NULL, &s, NULL), 0);
  assert_int_equal(parse(ix, "\"c b a a\"", &q, &err), 0);
  assert_int_equal(gpuir_search(s, q, hit, 10, &n), 0);
  assert_int_equal(n, 2);
  check_walk_stops(s, q, 0, GPUIR_E_DEADLINE);
  check_walk_stops(s, q, 0, GPUIR_E_CANCELLED);
  check_walk_stops(s, q, 1, GPUIR_E_DEADLINE); /* on the way to its positions */
  check_walk_stops(s, q, 1, GPUIR_E_CANCELLED);
  gpuir_searcher_set_timeout(s, 1);
  assert_int_equal(gpuir_search(s, q, hit, 10, &n), GPUIR_E_DEADLINE);
  assert_int_equal(n, 0);
  gpuir_searcher_set_timeout(s, 0);
  assert_int_equal(gpuir_count(s, q, &count), 0);
  assert_int_equal(count, 2);
  gpuir_query_destroy(q);
  gpuir_searcher_destroy(s);
  gpuir_close(ix);
}

/* The terms of a prefix are added up no further than to the next look, and so is a phrase's list made. */
static void test_lists_stop(void **state) {
  static const char *const asked[] = {"w*", "wx* w1", "-w* w1", "w4 \"w1 wx0\"", "w4 \"w2 w1 w2\""};
  const int statuses[] = {GPUIR_E_DEADLINE, GPUIR_E_CANCELLED};
  gpuir_searcher *s;
  gpuir_query_desc qd;
  gpuir_query *q;
  gpuir_index *ix;
  unsigned i, j, npositive;
  rng r;
  (void)state;
  r.s = 21;
  make_texts(&r, 5800, 6, 19);
  ix = build_texts(1, 1, NULL);
  assert_int_equal(gpuir_searcher_create(ix, NULL, &s, NULL), 0);
  memset(&qd, 0, sizeof qd);
  qd.mode = GPUIR_OR;
  for (i = 0; i < 5; i++) {
    gpuir__engine *e = &s->engine;
    assert_int_equal(gpuir_query_parse(ix, &qd, asked[i], strlen(asked[i]), &q, NULL), 0);
    for (j = 0; j < 2; j++) {
      uint64_t before;
      gpuir__engine_start(e);
      e->deadline = statuses[j] == GPUIR_E_DEADLINE;
      e->limits.cancel = statuses[j] == GPUIR_E_CANCELLED ? &statuses[j] : NULL;
      gpuir__engine_reset(e);
      before = e->info.blocks_decoded;
      assert_int_equal(gpuir__terms_open(e, q, 0, &npositive), statuses[j]);
      gpuir__engine_reset(e);
      assert_in_range(e->info.blocks_decoded - before, 0, 3 * GPUIR__LOOK_BLOCKS);
      e->limits.cancel = NULL;
    }
    gpuir__engine_start(e);
    assert_int_equal(gpuir__terms_open(e, q, 0, &npositive), 0);
    gpuir__engine_reset(e);
    gpuir_query_destroy(q);
  }
  gpuir_searcher_destroy(s);
  gpuir_close(ix);
}

/* ---- bounds ---- */

/* Returns what a phrase, or a word, adds to a document that stands at `match`. */
static uint32_t clause_adds(gpuir__phrases *p, const gpuir__clause *c, uint32_t match, uint32_t length) {
  uint32_t tf, freq;
  if (c->n > 1) {
    tf = gpuir__phrase_walk(p, c, match, length);
  } else {
    gpuir__phrases_freqs(p, c->list[0], &match, 1, &freq);
    tf = freq + 1;
  }
  return tf ? c->scorer.q *
          gpuir__contribution(c->scorer.weight, tf, gpuir__norm_of(c->scorer.norm.a, c->scorer.norm.b, length))
            : 0;
}

/* Each clause's bound of a block, and of the whole list, is at least what any document there gets by it. Returns how
 * many were looked at. */
static unsigned check_block_bounds(gpuir_index *ix, gpuir_searcher *s, const char *text) {
  const uint32_t *lengths = ix->leaves[0].seg->lengths;
  gpuir__engine *e = &s->engine;
  gpuir__phrases p;
  gpuir_query *q;
  gpuir_error err;
  uint32_t block, n, j;
  unsigned i, looked = 0;
  int missing = 0;
  if (gpuir_query_parse(ix, NULL, text, strlen(text), &q, &err)) fail_msg("%s: %s", text, err.msg);
  gpuir__engine_start(e);
  if (q->nphrases) assert_int_equal(gpuir__phrases_open(&p, e, q, 0, &missing), 0);
  if (!q->nphrases || missing) { /* phrases of one token are words */
    gpuir_query_destroy(q);
    return 0;
  }
  assert_int_equal(gpuir__phrases_prepare(&p), 0);
  for (block = 0; block < e->cursors[p.and_.order[0]].list.nblocks; block++) {
    if (!e->cursors[p.and_.order[0]].list.bounds) break; /* short lists are bounded as a whole */
    gpuir__phrases_look(&p, block);
    n = gpuir__and_match(e, &p.and_, gpuir__phrases_candidates(&p, block, 0));
    p.n = 0;
    gpuir__phrases_wait(&p, n, 1);
    for (j = 0; j < n; j++)
      for (i = 0; i < p.nclauses; i++) {
        const gpuir__clause *c = &p.clauses[i];
        const uint32_t adds = clause_adds(&p, c, j, lengths[p.and_.docs[j]]);
        const uint32_t here = gpuir__clause_bound(c, p.here);
        if (adds > here || adds > c->bound)
          fail_msg("%s: document %u of block %u gets %u, bounds %u and %u", text, p.and_.docs[j], block, adds, here,
              c->bound);
        looked += c->n > 1 && adds;
      }
  }
  gpuir__engine_reset(e);
  gpuir_query_destroy(q);
  return looked;
}

/* The list that is made of a phrase or a prefix bounds each of its postings, by block and as a whole. Returns their
 * number. */
static unsigned check_made_bounds(gpuir_index *ix, gpuir_searcher *s, const char *text) {
  gpuir__engine *e = &s->engine;
  const gpuir__cursor *c;
  gpuir_query *q;
  uint32_t docids[GPUIR__BLOCK_ROOM], freqs[GPUIR__BLOCK_ROOM], block, i, n, df = 0;
  unsigned npositive;
  assert_int_equal(gpuir_query_parse(ix, NULL, text, strlen(text), &q, NULL), 0);
  gpuir__engine_start(e);
  assert_int_equal(gpuir__terms_open(e, q, 0, &npositive), 0);
  c = &e->cursors[0];
  for (block = 0; npositive && c->list.bounds && block < c->list.nblocks; block++) {
    const uint32_t bound = gpuir__block_bound(e, c, block);
    n = gpuir__list_docs(&c->list, block, docids);
    gpuir__list_freqs(&c->list, block, freqs);
    for (i = 0; i < n; i++, df++) {
      const float K = gpuir__norm_of(q->norm.a, q->norm.b, e->leaf.seg->lengths[docids[i]]);
      const uint32_t adds = c->scorer.q * gpuir__contribution(c->scorer.weight, freqs[i] + 1, K);
      if (adds > bound || adds > c->bound)
        fail_msg("%s: posting %u gets %u, bounds %u and %u", text, df, adds, bound, c->bound);
    }
  }
  if (df) assert_int_equal(df, c->list.df);
  gpuir__engine_reset(e);
  gpuir_query_destroy(q);
  return df;
}

static void test_bounds(void **state) {
  gpuir_searcher *s;
  gpuir_index *ix;
  rng r;
  unsigned i, made = 0, looked = 0;
  (void)state;
  r.s = 12;
  make_texts(&r, 5000, 8, 20);
  ix = build_texts(1, 1, NULL);
  assert_int_equal(gpuir_searcher_create(ix, NULL, &s, NULL), 0);
  for (i = 0; i < 150; i++) {
    unit u[3];
    char text[2048];
    unsigned n = 0;
    while (n < 3) {
      random_unit(&r, &u[n]);
      u[n].negated = 0;
      n += u[n].n != 1 || n == 2;
    }
    write_query(u, 3, text);
    if (i % 3 == 0) write_query(u, 1, text);
    if (strchr(text, '"')) looked += check_block_bounds(ix, s, text);
    write_query(u, 1, text);
    made += check_made_bounds(ix, s, text);
  }
  assert_true(looked > 10000 && made > 10000);
  gpuir_searcher_destroy(s);
  gpuir_close(ix);
}

/* A block of the rarer list reaches over 40 blocks of the other, which are too many to be looked at, and the best
 * document stands late among them. */
static void test_uneven(void **state) {
  gpuir_searcher_desc sd;
  gpuir_searcher *s[2];
  gpuir_index *ix;
  unit u;
  uint32_t d, i, at = 0;
  int mode;
  (void)state;
  memset(dead, 0, sizeof dead);
  docs.ndocs = 5800;
  docs.nwords = 3;
  for (d = 0; d < docs.ndocs; d++) {
    const uint32_t times = d == 5400 ? 9 : d < 640 ? 1 + d % 3 : d % 40 == 0;
    docs.start[d] = at;
    for (i = 0; i < times; i++) docs.token[at++] = 1, docs.token[at++] = 0;
    for (i = 2 * times; i < 8; i++) docs.token[at++] = i % 4 ? 2 : 0;
  }
  docs.start[d] = at;
  assert_true(at <= TOKENS);
  ix = build_texts(1, 1, NULL);
  memset(&sd, 0, sizeof sd);
  for (i = 0; i < 2; i++) {
    sd.evaluator = (int)i;
    assert_int_equal(gpuir_searcher_create(ix, &sd, &s[i], NULL), 0);
  }
  assert_true(check_block_bounds(ix, s[0], "\"w1 wx0\"") > 700);
  memset(&u, 0, sizeof u);
  u.n = 2;
  u.word[0] = 1;
  brute_force(&u, 1, 0.9f, 0.4f);
  assert_int_equal(right.hits[0][0].docid, 5400);
  for (mode = 0; mode < 3; mode++) check_query(ix, s, &u, 1, mode);
  for (i = 0; i < 2; i++) gpuir_searcher_destroy(s[i]);
  gpuir_close(ix);
}

/* Phrases of which every word is in thousands of documents: the threshold prunes blocks, documents and positions, and
 * must not prune a hit. */
static void test_pruned(void **state) {
  gpuir_searcher_desc sd;
  gpuir_searcher *s[2];
  gpuir_index *ix;
  uint64_t scored[2];
  rng r;
  unsigned i, j;
  (void)state;
  r.s = 13;
  make_texts(&r, 5800, 5, 19);
  ix = build_texts(1, 1, NULL);
  memset(&sd, 0, sizeof sd);
  for (i = 0; i < 2; i++) {
    sd.evaluator = (int)i;
    assert_int_equal(gpuir_searcher_create(ix, &sd, &s[i], NULL), 0);
  }
  for (i = 0; i < 60; i++) {
    unit u[3];
    for (j = 0; j < 3; j++) {
      do random_unit(&r, &u[j]);
      while (u[j].n < 2 || u[j].n > 3);
      u[j].negated = 0;
    }
    brute_force(u, 1 + i % 3, 0.9f, 0.4f);
    check_query(ix, s, u, 1 + i % 3, i % 4 ? GPUIR_AND : GPUIR_ANDOR);
  }
  for (i = 0; i < 2; i++) {
    gpuir_searcher_info info;
    gpuir_searcher_get_info(s[i], &info);
    scored[i] = info.postings_scored;
    gpuir_searcher_destroy(s[i]);
  }
  assert_true(scored[0] < scored[1]); /* something was passed over */
  gpuir_close(ix);
}

/* ---- what the analyzer makes of a phrase ---- */

/* Texts under one analyzer, queries, and how often each stands in each text. */
typedef struct analysed {
  gpuir_analyzer_desc analyzer;
  const char *texts[4];
  struct {
    const char *query;
    uint32_t tf[4];
  } asked[8];
} analysed;

#define LONG_TOKEN \
  "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz" \
  "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz" \
  "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz" \
  "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"

/* Emits each two neighbouring bytes: tokens overlap. */
static int by_pairs(void *user, const char *text, size_t len, gpuir_token_fn emit, void *sink) {
  size_t i;
  (void)user;
  for (i = 0; i + 2 <= len; i++) {
    const int status = emit(sink, text + i, 2);
    if (status) return status;
  }
  return 0;
}

static void check_analysed(const analysed *x) {
  gpuir_builder_desc d;
  gpuir_open_desc od;
  gpuir_builder *b;
  gpuir_searcher *s;
  gpuir_index *ix;
  gpuir_error err;
  char path[4200];
  unsigned i, t;
  memset(&d, 0, sizeof d);
  memset(&od, 0, sizeof od);
  d.path = corpus_path(path, sizeof path, "analysed.gpuir");
  d.analyzer = x->analyzer;
  d.positions = 1;
  od.tokenize = x->analyzer.tokenize;
  if (gpuir_builder_create(&d, &b, &err)) fail_msg("%s", err.msg);
  for (t = 0; t < 4; t++) assert_int_equal(gpuir_builder_add_text(b, NULL, x->texts[t], strlen(x->texts[t]), &err), 0);
  if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
  if (gpuir_open(path, &od, &ix, &err)) fail_msg("%s", err.msg);
  (void)unlink(path);
  assert_int_equal(gpuir_searcher_create(ix, NULL, &s, NULL), 0);
  for (i = 0; i < 8 && x->asked[i].query; i++) {
    static gpuir_explanation e;
    const char *query = x->asked[i].query;
    gpuir_hit hits[4];
    gpuir_query *q;
    size_t n, want = 0;
    if (gpuir_query_parse(ix, NULL, query, strlen(query), &q, &err)) fail_msg("%s: %s", query, err.msg);
    for (t = 0; t < 4; t++) {
      assert_int_equal(gpuir_explain(s, q, t, &e), 0);
      if (e.nterms != 1 || e.terms[0].tf != x->asked[i].tf[t])
        fail_msg("%.60s stands %u times in \"%.60s\", not %u", query, e.terms[0].tf, x->texts[t], x->asked[i].tf[t]);
      want += x->asked[i].tf[t] > 0;
    }
    assert_int_equal(gpuir_search(s, q, hits, 4, &n), 0);
    assert_int_equal(n, want);
    gpuir_query_destroy(q);
  }
  gpuir_searcher_destroy(s);
  gpuir_close(ix);
}

/* Phrases are analysed as texts are: what has no position there has none here. */
static void test_analysed(void **state) {
  const analysed plain = {{NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0},
      {"a a a a", "a b a b a", "one " LONG_TOKEN " two", "one, two! (one) two-one"},
      {{"\"a a\"", {3, 0, 0, 0}}, {"\"a b a\"", {0, 2, 0, 0}}, {"\"a a a\"", {2, 0, 0, 0}},
          {"\"one two\"", {0, 0, 1, 2}}, {"\"ONE " LONG_TOKEN " Two\"", {0, 0, 1, 2}}, {"\"two one\"", {0, 0, 0, 2}},
          {"\" one \"", {0, 0, 1, 3}}, {"\"" LONG_TOKEN " one\"", {0, 0, 1, 3}}}};
  const analysed stopped = {{NULL, NULL, "english", NULL, NULL, NULL, NULL, 0},
      {"state of the art", "the art of state", "state art", "a state, and the art: state art"},
      {{"\"state of the art\"", {1, 0, 1, 2}}, {"\"state art\"", {1, 0, 1, 2}},
          {"\"the art of the state\"", {0, 1, 0, 1}}, {"\"the state of\"", {1, 1, 1, 2}}}};
  const analysed pairs = {{"pairs", NULL, NULL, NULL, by_pairs, NULL, NULL, 0}, {"banana", "ananas", "nan", "b"},
      {{"\"ana\"", {2, 2, 0, 0}}, {"\"anana\"", {1, 1, 0, 0}}, {"\"nan\"", {1, 1, 1, 0}}, {"\"na\"", {2, 2, 1, 0}}}};
  (void)state;
  check_analysed(&plain);
  check_analysed(&stopped);
  check_analysed(&pairs);
}

#ifdef GPUIR_WITH_STEMMER
static void test_possessives(void **state) {
  const analysed stemmed = {{NULL, "porter", NULL, NULL, NULL, NULL, NULL, 0},
      {"the dog's bones", "dogs bone", "dog s bone", "running dogs' bone"},
      {{"\"dog's bone\"", {1, 1, 0, 1}}, {"\"dogs bones\"", {1, 1, 0, 1}}, {"\"run dog\"", {0, 0, 0, 1}}}};
  (void)state;
  check_analysed(&stemmed);
}
#endif

#ifdef GPUIR_WITH_UTF8PROC
/* Each Han character is a token. */
static void test_cjk(void **state) {
  const analysed han = {{"unicode", NULL, NULL, NULL, NULL, NULL, NULL, 0},
      {"\xe6\x9d\xb1\xe4\xba\xac\xe9\x83\xbd", "\xe4\xba\xac\xe9\x83\xbd\xe4\xba\xac\xe9\x83\xbd",
          "\xe9\x83\xbd\xe4\xba\xac", "abc \xe4\xba\xac \xe9\x83\xbd"},
      {{"\"\xe4\xba\xac\xe9\x83\xbd\"", {1, 2, 0, 1}}, {"\"\xe6\x9d\xb1\xe4\xba\xac\xe9\x83\xbd\"", {1, 0, 0, 0}},
          {"\"\xe9\x83\xbd\xe4\xba\xac\"", {0, 1, 1, 0}}}};
  (void)state;
  check_analysed(&han);
}
#endif

/* A million occurrences in one document, spilled in parts. */
static void test_frequent(void **state) {
  enum { TIMES = 1000000 };
  static const struct {
    const char *query;
    uint32_t tf[2];
  } asked[] = {{"\"a b\"", {TIMES, 1}}, {"\"b a\"", {TIMES - 1, 0}}, {"\"a b a\"", {TIMES - 1, 0}}, {"\"a a\"", {0, 2}},
      {"\"b a b a b\"", {TIMES - 2, 0}}, {"\"a a a\"", {0, 1}}};
  char *text = (char *)malloc(4 * (size_t)TIMES), path[4200];
  gpuir_builder_desc d;
  gpuir_build_report report;
  gpuir_builder *b;
  gpuir_searcher *s;
  gpuir_index *ix;
  gpuir_error err;
  size_t i;
  (void)state;
  for (i = 0; i < TIMES; i++) memcpy(text + 4 * i, "a b ", 4);
  memset(&d, 0, sizeof d);
  d.path = corpus_path(path, sizeof path, "phrases.gpuir");
  d.positions = 1;
  d.memory = 1 << 20;
  if (gpuir_builder_create(&d, &b, &err)) fail_msg("%s", err.msg);
  assert_int_equal(gpuir_builder_add_text(b, NULL, text, 4 * (size_t)TIMES, &err), 0);
  assert_int_equal(gpuir_builder_add_text(b, NULL, "a a a b", 7, &err), 0);
  if (gpuir_builder_write(b, &report, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
  assert_true(report.runs > 1);
  if (gpuir_open(path, NULL, &ix, &err)) fail_msg("%s", err.msg);
  (void)unlink(path);
  assert_int_equal(gpuir_searcher_create(ix, NULL, &s, NULL), 0);
  for (i = 0; i < sizeof asked / sizeof *asked; i++) {
    static gpuir_explanation e;
    gpuir_query *q;
    uint32_t doc;
    assert_int_equal(parse(ix, asked[i].query, &q, &err), 0);
    for (doc = 0; doc < 2; doc++) {
      assert_int_equal(gpuir_explain(s, q, doc, &e), 0);
      assert_int_equal(e.terms[0].tf, asked[i].tf[doc]);
    }
    gpuir_query_destroy(q);
  }
  gpuir_searcher_destroy(s);
  gpuir_close(ix);
  free(text);
}

enum { FAR = 250000000, FAR_DOCS = 40 };

/* Builds documents so long that 2^32 is less than the sum of the positions of each word in them: "a" stands at the
 * beginning and far behind, "b" behind one of the two. */
static gpuir_index *build_far(const char *path) {
  uint32_t ids[FAR_DOCS], twice[FAR_DOCS], once[FAR_DOCS], a[2 * FAR_DOCS], b[FAR_DOCS], i;
  gpuir_open_desc open;
  gpuir_builder_desc d;
  gpuir_builder *builder;
  gpuir_index *ix;
  gpuir_error err;
  memset(&d, 0, sizeof d);
  d.path = path;
  d.positions = 1;
  if (gpuir_builder_create(&d, &builder, &err)) fail_msg("%s", err.msg);
  for (i = 0; i < FAR_DOCS; i++) {
    assert_int_equal(gpuir_builder_add_doc(builder, NULL, 2 * FAR, NULL, 0, &err), 0);
    ids[i] = i;
    twice[i] = 2;
    once[i] = 1;
    a[2 * i] = i;
    a[2 * i + 1] = FAR + i;
    b[i] = (i % 5 ? FAR : 0) + i + 1;
  }
  assert_int_equal(gpuir_builder_add_list(builder, "a", 1, ids, twice, a, FAR_DOCS, &err), 0);
  assert_int_equal(gpuir_builder_add_list(builder, "b", 1, ids, once, b, FAR_DOCS, &err), 0);
  if (gpuir_builder_write(builder, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(builder);
  memset(&open, 0, sizeof open);
  open.simd = simd;
  if (gpuir_open(path, &open, &ix, &err)) fail_msg("%s", err.msg);
  (void)unlink(path);
  return ix;
}

/* Positions that add up to more than a register's number holds are compared as they are, at each level. */
static void test_far(void **state) {
  char path[4200];
  (void)state;
  (void)corpus_path(path, sizeof path, "phrases.gpuir");
  for (simd = GPUIR_SIMD_SCALAR; simd <= GPUIR_SIMD_AVX512; simd++) {
    gpuir_index *ix = build_far(path);
    gpuir_searcher *s;
    gpuir_query *q;
    gpuir_error err;
    uint64_t n;
    assert_int_equal(gpuir_searcher_create(ix, NULL, &s, NULL), 0);
    assert_int_equal(parse(ix, "\"a b\"", &q, &err), 0);
    assert_int_equal(gpuir_count(s, q, &n), 0);
    assert_int_equal(n, FAR_DOCS);
    gpuir_query_destroy(q);
    assert_int_equal(parse(ix, "\"b a\"", &q, &err), 0);
    assert_int_equal(gpuir_count(s, q, &n), 0);
    assert_int_equal(n, 0);
    gpuir_query_destroy(q);
    gpuir_searcher_destroy(s);
    gpuir_close(ix);
  }
  simd = GPUIR_SIMD_AUTO;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small),
      cmocka_unit_test(test_large),
      cmocka_unit_test(test_segments),
      cmocka_unit_test(test_dense),
      cmocka_unit_test(test_levels),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_prefix_postings),
      cmocka_unit_test(test_phrase_stops),
      cmocka_unit_test(test_lists_stop),
      cmocka_unit_test(test_bounds),
      cmocka_unit_test(test_uneven),
      cmocka_unit_test(test_pruned),
      cmocka_unit_test(test_analysed),
#ifdef GPUIR_WITH_STEMMER
      cmocka_unit_test(test_possessives),
#endif
#ifdef GPUIR_WITH_UTF8PROC
      cmocka_unit_test(test_cjk),
#endif
      cmocka_unit_test(test_frequent),
      cmocka_unit_test(test_far),
  };
  return cmocka_run_group_tests_name("60_phrases", tests, NULL, NULL);
}
