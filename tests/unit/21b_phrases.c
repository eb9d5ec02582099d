/* 21b_phrases.c - phrases and prefixes against a brute force on arrays of tokens, which reads no index: every mode,
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
static uint8_t dead[6000]; /* [document] deleted */
static int simd;           /* level at which indexes are opened; GPUIR_SIMD_AUTO: the best */

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
  gpuir_builder *b;
  gpuir__segment *segment;
  gpuir_error err;
  char path[4200], text[65536];
  uint32_t i, j;
  memset(&d, 0, sizeof d);
  d.path = corpus_path(path, sizeof path, "phrases.gpuir");
  d.positions = positions;
  d.codec = d.freq_codec = codec;
  if (gpuir_builder_create(&d, &b, &err)) fail_msg("%s", err.msg);
  for (i = from; i < to; i++) {
    size_t n = 0;
    for (j = docs.start[i]; j < docs.start[i + 1]; j++)
      n += (size_t)sprintf(text + n, "%s ", word_text(docs.token[j]));
    if (gpuir_builder_add_text(b, NULL, text, n, &err)) fail_msg("%s", err.msg);
  }
  if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
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
      fail_msg("%s, mode %d, k %lu, evaluator %d: hit %lu is (%u, %u), not (%u, %u)", text, mode,
               (unsigned long)k, evaluator, (unsigned long)i, hits[i].docid, hits[i].score,
               right.hits[list][i].docid, right.hits[list][i].score);
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

/* More terms begin alike than a prefix may stand for. */
static void test_prefix_limit(void **state) {
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
  for (i = 0; i < 1025; i++) {
    size_t n = (size_t)sprintf(text, i < 1024 ? "a%u" : "ab", i);
    assert_int_equal(gpuir_builder_add_text(b, NULL, text, n, &err), 0);
  }
  assert_int_equal(gpuir_builder_add_text(b, NULL, "\xff\xff \xff", 4, &err), 0);
  if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
  if (gpuir_open(path, NULL, &ix, &err)) fail_msg("%s", err.msg);
  (void)unlink(path);
  assert_int_equal(parse(ix, "a*", &q, &err), GPUIR_E_LIMIT);
  assert_int_equal(parse(ix, "a1*", &q, &err), 0);
  assert_int_equal(q->terms[0].members, 135); /* a1, a10 to a19, a100 to a199, a1000 to a1023 */
  gpuir_query_destroy(q);
  assert_int_equal(parse(ix, "\xff*", &q, &err), 0);
  assert_int_equal(q->terms[0].members, 2);
  gpuir_query_destroy(q);
  gpuir_close(ix);
}

/* A phrase that is long to look for ends with its time. */
static void test_deadline(void **state) {
  enum { TIMES = 3000000 };
  char *text = (char *)malloc(4 * (size_t)TIMES), path[4200];
  gpuir_builder_desc d;
  gpuir_builder *b;
  gpuir_error err;
  gpuir_index *ix;
  gpuir_searcher *s;
  gpuir_query *q;
  gpuir_hit hit[10];
  uint64_t begin, count;
  size_t n, i;
  int cancel = 0;
  gpuir_searcher_desc sd;
  (void)state;
  for (i = 0; i < TIMES; i++) memcpy(text + 4 * i, i % 2 ? "b a " : "a c ", 4);
  memset(&d, 0, sizeof d);
  d.path = corpus_path(path, sizeof path, "phrases.gpuir");
  d.positions = 1;
  if (gpuir_builder_create(&d, &b, &err)) fail_msg("%s", err.msg);
  for (i = 0; i < 2; i++) assert_int_equal(gpuir_builder_add_text(b, NULL, text, 4 * (size_t)TIMES, &err), 0);
  if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
  if (gpuir_open(path, NULL, &ix, &err)) fail_msg("%s", err.msg);
  (void)unlink(path);
  memset(&sd, 0, sizeof sd);
  sd.cancel = &cancel;
  assert_int_equal(gpuir_searcher_create(ix, &sd, &s, NULL), 0);
  assert_int_equal(parse(ix, "\"c b a a\"", &q, &err), 0);
  assert_int_equal(gpuir_search(s, q, hit, 10, &n), 0);
  assert_int_equal(n, 2);
  gpuir_searcher_set_timeout(s, 1000000);
  begin = gpuir__now();
  assert_int_equal(gpuir_search(s, q, hit, 10, &n), GPUIR_E_DEADLINE);
  assert_int_equal(n, 0);
  (void)begin;
  cancel = 1;
  assert_int_equal(gpuir_search(s, q, hit, 10, &n), GPUIR_E_CANCELLED);
  cancel = 0;
  gpuir_searcher_set_timeout(s, 0);
  assert_int_equal(gpuir_count(s, q, &count), 0);
  assert_int_equal(count, 2);
  gpuir_query_destroy(q);
  gpuir_searcher_destroy(s);
  gpuir_close(ix);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small),        cmocka_unit_test(test_large),    cmocka_unit_test(test_segments),
      cmocka_unit_test(test_dense),        cmocka_unit_test(test_levels),   cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_prefix_limit), cmocka_unit_test(test_deadline),
  };
  return cmocka_run_group_tests_name("21b_phrases", tests, NULL, NULL);
}
