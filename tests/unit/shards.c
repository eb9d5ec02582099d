/* shards.c - shards that are asked together answer as an index of the whole collection: collections are cut into
 * parts, and the merged hits and counts are held against those of the one index, which other tests hold against the
 * oracle
 */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rng.h"
#include "oracle.h"
#include "corpus.h"
#include "fixture.h"
#include "parts.h"

enum { PARTS = 8, MOST_HITS = 300, MOST_DFS = 2000 };

/* A collection as one index and as n shards; [level] of SIMD. */
typedef struct parts {
  oracle all;
  size_t n;
  uint32_t ends[PARTS]; /* in documents */
  gpuir_index *whole[LEVELS], *shard[LEVELS][PARTS];
  gpuir_searcher *one[LEVELS], *each[LEVELS][PARTS];
} parts;

/* Counts in how many documents of the whole each term of a part is; to be freed. */
static uint32_t *count_terms(const gpuir_index *whole, const gpuir_index *part) {
  gpuir_index_info info;
  gpuir_term_info term;
  uint32_t *dfs;
  uint64_t id;
  assert_int_equal(gpuir_index_get_info(part, &info), GPUIR_OK);
  dfs = (uint32_t *)oracle_grow(NULL, (size_t)info.terms + 1, sizeof *dfs);
  for (id = 0; id < info.terms; id++) {
    assert_int_equal(gpuir_term_get_info(part, id, &term), GPUIR_OK);
    assert_int_equal(gpuir_term_count(whole, term.term, term.term_len, &dfs[id], NULL), GPUIR_OK);
  }
  return dfs;
}

static gpuir_shard_info place_of(const parts *p, size_t i) {
  gpuir_shard_info info;
  memset(&info, 0, sizeof info);
  info.documents = p->all.ndocs;
  info.tokens = p->whole[0]->tokens;
  info.first = i ? p->ends[i - 1] : 0;
  info.shard = (uint32_t)i;
  info.shards = (uint32_t)p->n;
  info.identity[0] = 17;
  info.identity[1] = UINT64_MAX;
  return info;
}

/* Makes a shard of part i, and opens it. */
static void make_shard(parts *p, size_t i) {
  const gpuir_shard_info place = place_of(p, i);
  char from[4200], to[4200];
  gpuir_shard_info read;
  gpuir_index *part;
  gpuir_error err;
  uint32_t *dfs;
  int level;
  (void)corpus_path(from, sizeof from, "part.gpuir");
  (void)corpus_path(to, sizeof to, "shard.gpuir");
  if (corpus_write_part(&p->all, (uint32_t)place.first, p->ends[i], from, &plain, &err)) fail_msg("%s", err.msg);
  part = open_at(from, 0);
  dfs = count_terms(p->whole[0], part);
  assert_int_equal(gpuir_shard_get_info(part, &read), GPUIR_E_NOT_FOUND);
  if (gpuir_shard_write(part, to, &place, dfs, &err)) fail_msg("%s", err.msg);
  free(dfs);
  gpuir_close(part);
  for (level = 0; level < LEVELS; level++) {
    gpuir_index *ix = p->shard[level][i] = open_at(to, GPUIR_SIMD_SCALAR + level);
    if (!level && gpuir_verify(ix, &err)) fail_msg("%s", err.msg);
    assert_int_equal(gpuir_shard_get_info(ix, &read), GPUIR_OK);
    assert_memory_equal(&read, &place, sizeof read);
    p->each[level][i] = searcher_on(ix, GPUIR_EVAL_AUTO, 1);
  }
  (void)unlink(from);
  (void)unlink(to);
}

/* Makes the indexes of a collection that is cut. */
static void make_parts(parts *p) {
  char path[4200];
  gpuir_error err;
  size_t i;
  int level;
  (void)corpus_path(path, sizeof path, "whole.gpuir");
  if (corpus_write(&p->all, path, &plain, &err)) fail_msg("%s", err.msg);
  for (level = 0; level < LEVELS; level++) {
    p->whole[level] = open_at(path, GPUIR_SIMD_SCALAR + level);
    p->one[level] = searcher_on(p->whole[level], GPUIR_EVAL_AUTO, 1);
  }
  (void)unlink(path);
  for (i = 0; i < p->n; i++) make_shard(p, i);
}

static void free_parts(parts *p) {
  size_t i;
  int level;
  for (level = 0; level < LEVELS; level++) {
    for (i = 0; i < p->n; i++) {
      gpuir_searcher_destroy(p->each[level][i]);
      gpuir_close(p->shard[level][i]);
    }
    gpuir_searcher_destroy(p->one[level]);
    gpuir_close(p->whole[level]);
  }
  oracle_free(&p->all);
}

/* Parses a query on all shards, and weighs it by what they know together. Returns 0 or the first failure. */
static int parse_on_all(const parts *p, int level, const char *text, int mode, const float *bm25,
    gpuir_query **queries) {
  static uint32_t dfs[MOST_DFS], own[MOST_DFS];
  size_t n = 0, i, j;
  int failed = GPUIR_OK, status;
  memset(dfs, 0, sizeof dfs);
  memset(queries, 0, p->n * sizeof *queries);
  for (i = 0; i < p->n; i++) {
    queries[i] = parse(p->shard[level][i], text, strlen(text), mode, bm25, &status);
    if (status && !failed) failed = status;
    if (!queries[i]) continue;
    n = gpuir_query_dfs(queries[i], own, MOST_DFS);
    assert_true(n <= (keep_rarest ? MOST_DFS : GPUIR_MAX_QUERY_DFS));
    for (j = 0; j < n; j++) dfs[j] = gpuir__max32(dfs[j], own[j]);
  }
  for (i = 0; i < p->n && !failed; i++) failed = gpuir_query_weigh(queries[i], dfs, n, NULL);
  for (i = 0; i < p->n && failed; i++) {
    gpuir_query_destroy(queries[i]);
    queries[i] = NULL;
  }
  return failed;
}

static int better_first(const void *a, const void *b) {
  const gpuir_hit *x = (const gpuir_hit *)a, *y = (const gpuir_hit *)b;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  return x->docid < y->docid ? -1 : 1;
}

/* Asks all shards, from number `from` on; threshold: shared by them, or NULL. Returns the hits. */
static size_t ask_all(const parts *p, int level, gpuir_query **queries, size_t k, size_t from, uint32_t *threshold,
    gpuir_hit *hits) {
  size_t n = 0, i, j;
  for (i = 0; i < p->n; i++) {
    const size_t at = (from + i) % p->n;
    const gpuir_query *one = queries[at];
    gpuir_batch_desc desc;
    gpuir_batch *batch;
    uint64_t matches = 0, alone;
    uint32_t count;
    memset(&desc, 0, sizeof desc);
    desc.queries = &one;
    desc.nq = 1;
    desc.k = k;
    desc.hits = hits + n;
    desc.counts = &count;
    desc.thresholds = threshold;
    desc.matches = &matches; /* of hits that are left out, too */
    assert_int_equal(gpuir_search_begin(p->each[level][at], &desc, &batch), GPUIR_OK);
    assert_int_equal(gpuir_search_finish(batch), GPUIR_OK);
    assert_int_equal(gpuir_count(p->each[level][at], one, &alone), GPUIR_OK);
    assert_int_equal(matches, alone);
    for (j = 0; j < count; j++) hits[n + j].docid += at ? p->ends[at - 1] : 0;
    n += count;
  }
  qsort(hits, n, sizeof *hits, better_first);
  return n < k ? n : k;
}

/* Counts a query's matches on all shards, which must be those of the whole. */
static void check_counts(const parts *p, int level, const gpuir_query *q, gpuir_query **queries) {
  uint64_t want, sum = 0, own;
  size_t i;
  assert_int_equal(gpuir_count(p->one[level], q, &want), GPUIR_OK);
  for (i = 0; i < p->n; i++) {
    assert_int_equal(gpuir_count(p->each[level][i], queries[i], &own), GPUIR_OK);
    sum += own;
  }
  assert_int_equal(sum, want);
}

static unsigned long checked, found, refused;

/* Asks the shards and the whole, with thresholds shared and without. */
static void check_text(const parts *p, int level, const char *text, int mode, const float *bm25, size_t k, rng *r) {
  static gpuir_hit want[MOST_HITS], hits[PARTS * MOST_HITS];
  gpuir_query *queries[PARTS], *q;
  uint32_t threshold = 0;
  size_t nwant, n, i, j;
  int status;
  q = parse(p->whole[level], text, strlen(text), mode, bm25, &status);
  assert_int_equal(parse_on_all(p, level, text, mode, bm25, queries), status);
  checked++;
  refused += status != 0;
  if (status) return;
  assert_int_equal(gpuir_search(p->one[level], q, want, k, &nwant), GPUIR_OK);
  for (i = 0; i < 2; i++) {
    n = ask_all(p, level, queries, k, rng_below(r, (uint32_t)p->n), i ? &threshold : NULL, hits);
    assert_int_equal(n, nwant);
    for (j = 0; j < n; j++)
      if (hits[j].docid != want[j].docid || hits[j].score != want[j].score)
        fail_msg("\"%s\", mode %d, k %zu, hit %zu: document %u scores %u, should be %u and %u", text, mode, k, j,
            hits[j].docid, hits[j].score, want[j].docid, want[j].score);
  }
  /* What was learnt is no more than what is so; and it is learnt where one part alone has as many hits. */
  if (threshold) assert_true(n == k && threshold <= want[k - 1].score);
  found += n;
  check_counts(p, level, q, queries);
  gpuir_query_destroy(q);
  for (i = 0; i < p->n; i++) gpuir_query_destroy(queries[i]);
}

static void test_shards(void **state) {
  static const size_t counts[] = {1, 2, 3, PARTS};
  static const size_t ks[] = {1, 3, 10, 100, MOST_HITS};
  unsigned i, c, times;
  rng r;
  (void)state;
  r.s = 5;
  for (i = 0; i < sizeof counts / sizeof *counts; i++)
    for (c = 0; c < 5; c++) {
      parts p;
      some_corpus(&p.all, c < 4 ? c : 6, i);
      plain.dense = (i + c) % 2 ? 24 : GPUIR_DENSE_NONE;
      p.n = counts[i];
      cut(&p.all, p.ends, p.n, &r);
      make_parts(&p);
      for (times = 0; times < (c < 4 ? 40u : 10u); times++) {
        char text[4000];
        oracle_query q;
        const float *bm25 = times % 4 == 3 ? settings[rng_below(&r, 3)] : NULL;
        corpus_query(&p.all, &r, 1 + rng_below(&r, 6), 1, &q);
        (void)corpus_text(&p.all, &q, text, sizeof text);
        check_text(&p, (int)(times % LEVELS), text, times % 2 ? GPUIR_OR : GPUIR_AND, bm25,
            ks[rng_below(&r, sizeof ks / sizeof *ks)], &r);
      }
      free_parts(&p);
    }
  assert_true(found > 5000);
}

/* Prefixes weigh by the greatest df of any part's term; their terms and df are the whole's. */
typedef struct members {
  const gpuir_index *whole;
  unsigned n;
} members;

static int take_member(void *user, const char *term, size_t len, uint32_t df) {
  members *m = (members *)user;
  uint32_t want;
  assert_int_equal(gpuir_term_count(m->whole, term, len, &want, NULL), GPUIR_OK);
  assert_int_equal(df, want);
  return ++m->n > 50 ? GPUIR_E_CANCELLED : GPUIR_OK;
}

/* What the parts have of a prefix's postings is what the whole has. */
static void check_postings(const parts *p) {
  uint64_t sum = 0;
  int status;
  unsigned i;
  for (i = 0; i <= p->n; i++) {
    gpuir_query *q = parse(i < p->n ? p->shard[0][i] : p->whole[0], "w1 w7*", 6, GPUIR_OR, NULL, &status);
    assert_int_equal(status, GPUIR_OK);
    assert_int_equal(gpuir_query_prefix_postings(q, 0), 0);
    if (i < p->n) sum += gpuir_query_prefix_postings(q, 1);
    else assert_int_equal(gpuir_query_prefix_postings(q, 1), sum);
    gpuir_query_destroy(q);
  }
  assert_true(sum > 1000);
}

static void test_prefixes(void **state) {
  static const char *const asked[] = {"w1*", "w1* w2*", "w77* -w3*", "w4 w12* w12*", "nothing* w1", "w1999*"};
  unsigned i, mode;
  int status;
  parts p;
  gpuir_query *q;
  members m;
  rng r;
  (void)state;
  r.s = 6;
  corpus_zipf(&p.all, 3000, 2000, 40, 3);
  p.n = 4;
  cut(&p.all, p.ends, p.n, &r);
  make_parts(&p);
  for (i = 0; i < sizeof asked / sizeof *asked; i++)
    for (mode = 0; mode < 2; mode++) check_text(&p, (int)(i % LEVELS), asked[i], (int)mode, NULL, 20, &r);
  m.whole = p.whole[0];
  m.n = 0;
  q = parse(p.shard[0][1], "w77* w1", 7, GPUIR_OR, NULL, &status);
  assert_int_equal(status, GPUIR_OK);
  assert_int_equal(gpuir_query_dfs(q, NULL, 0), 2);
  check_postings(&p);
  assert_int_equal(gpuir_query_prefix(q, 0, take_member, &m, NULL), GPUIR_OK);
  assert_in_range(m.n, 2, 50);
  i = m.n;
  assert_int_equal(gpuir_query_prefix(q, 1, take_member, &m, NULL), GPUIR_OK); /* a word */
  assert_int_equal(m.n, i);
  assert_int_equal(gpuir_query_prefix(q, 2, take_member, &m, NULL), GPUIR_E_NOT_FOUND);
  assert_int_equal(gpuir_query_prefix(q, 0, NULL, &m, NULL), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_query_prefix(NULL, 0, take_member, &m, NULL), GPUIR_E_ARGUMENT);
  m.n = 50;
  assert_int_equal(gpuir_query_prefix(q, 0, take_member, &m, NULL), GPUIR_E_CANCELLED);
  gpuir_query_destroy(q);
  free_parts(&p);
}

/* Returns whether two queries leave the same words out. */
static int same_left_out(const gpuir_query *x, const gpuir_query *y) {
  const char *a, *b;
  size_t n, m, i;
  for (i = 0; !gpuir_query_left_out(x, i, &a, &n); i++)
    if (gpuir_query_left_out(y, i, &b, &m) || n != m || memcmp(a, b, n) != 0) return 0;
  return gpuir_query_left_out(y, i, &b, &m) == GPUIR_E_NOT_FOUND;
}

/* Of too many words all shards keep those that the whole keeps, whatever they hold themselves. */
static void test_left_out(void **state) {
  unsigned times, i, others = 0, ncut = 0;
  parts p;
  rng r;
  (void)state;
  r.s = 9;
  corpus_zipf(&p.all, 900, 3000, 30, 5);
  p.n = 4;
  cut(&p.all, p.ends, p.n, &r);
  make_parts(&p);
  keep_rarest = 1;
  for (times = 0; times < 40; times++) {
    static char text[16384];
    gpuir_query *queries[PARTS], *whole, *alone;
    oracle_query q;
    const char *word;
    size_t len;
    int status;
    corpus_query(&p.all, &r, 60 + rng_below(&r, 200), 1, &q);
    (void)snprintf(text + corpus_text(&p.all, &q, text, sizeof text), 40, " w2* -w31* w17*");
    whole = parse(p.whole[0], text, strlen(text), GPUIR_OR, NULL, &status);
    if (status) fail_msg("%s: %s", text, gpuir_strerror(status));
    assert_int_equal(parse_on_all(&p, 0, text, GPUIR_OR, NULL, queries), GPUIR_OK);
    for (i = 0; i < p.n; i++) {
      if (!same_left_out(whole, queries[i])) fail_msg("%s: shard %u leaves other words out", text, i);
      alone = parse(p.shard[0][i], text, strlen(text), GPUIR_OR, NULL, &status);
      others += !same_left_out(whole, alone);
      gpuir_query_destroy(alone);
      gpuir_query_destroy(queries[i]);
    }
    ncut += gpuir_query_left_out(whole, 0, &word, &len) == GPUIR_OK;
    gpuir_query_destroy(whole);
    check_text(&p, (int)(times % LEVELS), text, GPUIR_OR, NULL, 20, &r);
  }
  keep_rarest = 0;
  assert_true(ncut > 20 && others > 20);
  free_parts(&p);
}

/* Makes a collection whose first half has w0 alone, the other w1, in two parts at that place. */
static void two_halves(parts *p) {
  uint32_t d;
  oracle_init(&p->all);
  corpus_words(&p->all, 2);
  for (d = 0; d < 100; d++) {
    oracle_add(&p->all, d >= 50, 1 + d % 3);
    oracle_doc(&p->all);
  }
  p->n = 2;
  p->ends[0] = 50;
  p->ends[1] = 100;
  make_parts(p);
}

/* Terms weigh so much that only both parts' together leave a score's range. */
static void test_range(void **state) {
  static const float edge[2] = {1000.0f, 0.5f};
  static const char text[] = "w0 w0 w0 w1 w1 w1";
  unsigned long before = refused;
  int status;
  parts p;
  rng r;
  (void)state;
  r.s = 7;
  two_halves(&p);
  gpuir_query_destroy(parse(p.shard[0][0], text, sizeof text - 1, GPUIR_OR, edge, &status));
  assert_int_equal(status, GPUIR_OK);
  check_text(&p, 0, text, GPUIR_OR, edge, 5, &r);
  assert_int_equal(refused, before + 1);
  check_text(&p, 0, "w0 w0 w1 w1 w1", GPUIR_OR, edge, 5, &r);
  assert_int_equal(refused, before + 1);
  free_parts(&p);
}

/* What a query is told, and what a term's statistics say. */
static void test_statistics(void **state) {
  uint32_t dfs[4] = {9, 9, 9, 9};
  gpuir_term_info of_shard, of_whole;
  gpuir_explanation why;
  gpuir_query *q;
  uint64_t id;
  uint32_t df;
  int status;
  parts p;
  (void)state;
  two_halves(&p);
  assert_int_equal(gpuir_term_find(p.shard[0][1], "w1", 2, &id), GPUIR_OK);
  assert_int_equal(gpuir_term_get_info(p.shard[0][1], id, &of_shard), GPUIR_OK);
  assert_int_equal(gpuir_term_find(p.whole[0], "w1", 2, &id), GPUIR_OK);
  assert_int_equal(gpuir_term_get_info(p.whole[0], id, &of_whole), GPUIR_OK);
  assert_memory_equal(&of_shard.idf, &of_whole.idf, sizeof of_whole.idf);
  assert_int_equal(gpuir_term_count(p.shard[0][1], "w1", 2, &df, NULL), GPUIR_OK);
  assert_int_equal(df, 50);
  q = parse(p.shard[0][1], "w0 w1", 5, GPUIR_OR, NULL, &status);
  assert_int_equal(gpuir_query_dfs(NULL, dfs, 4), 0);
  assert_int_equal(gpuir_query_dfs(q, dfs, 1), 2);
  assert_int_equal(dfs[0], 0); /* only the other part has it */
  assert_int_equal(dfs[1], 9);
  assert_int_equal(gpuir_query_weigh(q, dfs, 3, NULL), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_query_weigh(q, NULL, 2, NULL), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_query_weigh(NULL, dfs, 2, NULL), GPUIR_E_ARGUMENT);
  dfs[0] = 50;
  dfs[1] = UINT32_MAX; /* more than there are documents counts as all of them */
  assert_int_equal(gpuir_query_weigh(q, dfs, 2, NULL), GPUIR_OK);
  assert_int_equal(q->nunknown, 0);
  assert_int_equal(q->terms[1].df, 100);
  assert_int_equal(gpuir_explain(p.each[0][1], q, 0, &why), GPUIR_OK);
  assert_true(why.average_length >= p.whole[0]->average_length && why.average_length <= p.whole[0]->average_length);
  gpuir_query_destroy(q);
  free_parts(&p);
}

/* A threshold that is given is kept to, unless a query asks for AND, or else for OR, or for more hits than there are
 * documents. */
static void test_thresholds(void **state) {
  gpuir_hit hits[200];
  parts p;
  unsigned mode;
  (void)state;
  two_halves(&p);
  for (mode = 0; mode < 3; mode++) {
    int status;
    gpuir_query *q = parse(p.whole[0], "w0", 2, (int)mode, NULL, &status);
    const gpuir_query *two[2];
    uint32_t thresholds[2] = {UINT32_MAX, 0}, counts[2];
    gpuir_batch_desc desc;
    gpuir_batch *batch;
    two[0] = two[1] = q;
    memset(&desc, 0, sizeof desc);
    desc.queries = two;
    desc.nq = 2;
    desc.k = 10;
    desc.hits = hits;
    desc.counts = counts;
    desc.thresholds = thresholds;
    assert_int_equal(gpuir_search_begin(p.one[0], &desc, &batch), GPUIR_OK);
    assert_int_equal(gpuir_search_finish(batch), GPUIR_OK);
    assert_int_equal(counts[0], mode == GPUIR_ANDOR ? 10 : 0);
    assert_int_equal(counts[1], 10);
    assert_int_equal(thresholds[1], mode == GPUIR_ANDOR ? 0 : hits[19].score);
    desc.nq = 1;
    desc.k = 101;
    thresholds[0] = UINT32_MAX;
    assert_int_equal(gpuir_search_begin(p.one[0], &desc, &batch), GPUIR_OK);
    assert_int_equal(gpuir_search_finish(batch), GPUIR_OK);
    assert_int_equal(counts[0], 50);
    gpuir_query_destroy(q);
  }
  free_parts(&p);
}

/* ---- what is refused ---- */

/* Tries to write a shard of `ix`, which fails. */
static void refuse_write(const gpuir_index *ix, const gpuir_shard_info *place, const uint32_t *dfs, int expected,
    const char *cause) {
  char path[4200], tmp[4210];
  gpuir_error err;
  (void)corpus_path(path, sizeof path, "refused.gpuir");
  (void)snprintf(tmp, sizeof tmp, "%s.tmp", path);
  memset(&err, 0, sizeof err);
  assert_int_equal(gpuir_shard_write(ix, path, place, dfs, &err), expected);
  if (!strstr(err.msg, cause)) fail_msg("\"%s\" lacks \"%s\"", err.msg, cause);
  assert_int_equal(access(path, F_OK), -1);
  assert_int_equal(access(tmp, F_OK), -1);
}

static void test_write_refuses(void **state) {
  const gpuir_allocator a = gpuir__allocator(NULL);
  gpuir_shard_info good, bad;
  gpuir__leaf leaves[2];
  gpuir_index *several;
  gpuir_error err;
  uint32_t dfs[2] = {50, 50}, wrong[2] = {49, 50};
  parts p;
  (void)state;
  two_halves(&p);
  good = place_of(&p, 0);
  refuse_write(NULL, &good, dfs, GPUIR_E_ARGUMENT, "NULL");
  refuse_write(p.whole[0], NULL, dfs, GPUIR_E_ARGUMENT, "NULL");
  refuse_write(p.whole[0], &good, NULL, GPUIR_E_ARGUMENT, "NULL");
  assert_int_equal(gpuir_shard_write(p.whole[0], NULL, &good, dfs, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_shard_get_info(NULL, &good), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_shard_get_info(p.whole[0], NULL), GPUIR_E_ARGUMENT);
  bad = good, bad.documents = 99;
  refuse_write(p.whole[0], &bad, dfs, GPUIR_E_ARGUMENT, "do not fit the collection");
  bad = good, bad.documents = GPUIR__MAX_DOCUMENTS + 1ull;
  refuse_write(p.whole[0], &bad, dfs, GPUIR_E_ARGUMENT, "do not fit the collection");
  bad = good, bad.first = 1;
  refuse_write(p.whole[0], &bad, dfs, GPUIR_E_ARGUMENT, "do not fit the collection");
  bad = good, bad.tokens--;
  refuse_write(p.whole[0], &bad, dfs, GPUIR_E_ARGUMENT, "do not fit the collection");
  bad = good, bad.shard = bad.shards;
  refuse_write(p.whole[0], &bad, dfs, GPUIR_E_ARGUMENT, "do not fit the collection");
  refuse_write(p.whole[0], &good, wrong, GPUIR_E_ARGUMENT, "\"w0\" is in fewer documents");
  wrong[0] = 101;
  refuse_write(p.whole[0], &good, wrong, GPUIR_E_ARGUMENT, "or in more than it has");
  memset(leaves, 0, sizeof leaves);
  leaves[0].seg = gpuir__segment_retain(p.whole[0]->leaves[0].seg);
  leaves[1].seg = gpuir__segment_retain(p.whole[1]->leaves[0].seg);
  assert_int_equal(gpuir__index_make(&a, "two", NULL, leaves, 2, NULL, &several, &err), GPUIR_OK);
  refuse_write(several, &good, dfs, GPUIR_E_UNSUPPORTED, "several segments");
  gpuir_close(several);
  /* a shard is no segment beside others */
  leaves[0].seg = gpuir__segment_retain(p.whole[0]->leaves[0].seg);
  leaves[1].seg = gpuir__segment_retain(p.shard[0][1]->leaves[0].seg);
  assert_int_equal(gpuir__index_make(&a, "two", NULL, leaves, 2, NULL, &several, &err), GPUIR_E_FORMAT);
  assert_non_null(strstr(err.msg, "no segment of a live index"));
  free_parts(&p);
}

/* The bytes of shard i. */
static uint8_t *bytes_of(const parts *p, size_t i, size_t *size) {
  const gpuir__segment *seg = p->shard[0][i]->leaves[0].seg;
  uint8_t *bytes = (uint8_t *)oracle_grow(NULL, (size_t)seg->size, 1);
  memcpy(bytes, seg->map, (size_t)seg->size);
  *size = (size_t)seg->size;
  return bytes;
}

/* Returns the table's entry of a section. */
static gpuir__section *entry_of(uint8_t *bytes, uint32_t id) {
  gpuir__header *h = (gpuir__header *)(void *)bytes;
  gpuir__section *table = (gpuir__section *)(void *)(bytes + sizeof *h);
  uint32_t i = 0;
  while (i < h->sections && table[i].id != id) i++;
  assert_true(i < h->sections);
  return &table[i];
}

/* Makes header and table whole again. */
static void seal(uint8_t *bytes) {
  gpuir__header *h = (gpuir__header *)(void *)bytes;
  h->table_hash = XXH3_64bits(bytes + sizeof *h, h->sections * sizeof(gpuir__section));
  h->hash = XXH3_64bits(h, offsetof(gpuir__header, hash));
}

static int open_bytes(const uint8_t *bytes, size_t size, gpuir_index **ix, gpuir_error *err) {
  gpuir_open_desc desc;
  memset(&desc, 0, sizeof desc);
  desc.data = bytes;
  desc.size = size;
  return gpuir_open("bytes", &desc, ix, err);
}

/* Changes what the file says of the collection, and opens it. */
static void refuse_open(const parts *p, void (*change)(uint8_t *bytes, gpuir__shard *s), const char *cause) {
  size_t size;
  uint8_t *bytes = bytes_of(p, 1, &size);
  gpuir_index *ix;
  gpuir_error err;
  change(bytes, (gpuir__shard *)(void *)(bytes + entry_of(bytes, GPUIR__S_SHARD)->offset));
  seal(bytes);
  assert_int_equal(open_bytes(bytes, size, &ix, &err), GPUIR_E_FORMAT);
  if (!strstr(err.msg, cause)) fail_msg("\"%s\" lacks \"%s\"", err.msg, cause);
  free(bytes);
}

static void few_documents(uint8_t *bytes, gpuir__shard *s) { (void)bytes, s->documents = 49; }
static void many_documents(uint8_t *bytes, gpuir__shard *s) { (void)bytes, s->documents = 1ull << 32; }
static void late_first(uint8_t *bytes, gpuir__shard *s) { (void)bytes, s->first = 51; }
static void far_first(uint8_t *bytes, gpuir__shard *s) { (void)bytes, s->first = UINT64_MAX; }
static void few_tokens(uint8_t *bytes, gpuir__shard *s) { (void)bytes, s->tokens = 3; }
static void no_shards(uint8_t *bytes, gpuir__shard *s) { (void)bytes, s->shards = 1; }
static void short_counts(uint8_t *bytes, gpuir__shard *s) { (void)s, entry_of(bytes, GPUIR__S_TERM_DFS)->length = 0; }
static void no_counts(uint8_t *bytes, gpuir__shard *s) {
  gpuir__section *e = entry_of(bytes, GPUIR__S_TERM_DFS);
  (void)s, e->id = 200, e->flags = 0;
}
static void no_collection(uint8_t *bytes, gpuir__shard *s) {
  gpuir__section *e = entry_of(bytes, GPUIR__S_SHARD);
  (void)s, e->id = 200, e->flags = 0;
}

/* A damaged file is refused, or its counts are held within what is possible; verify finds them. */
static void test_damage(void **state) {
  size_t size;
  uint8_t *bytes;
  gpuir_index *ix;
  gpuir_error err;
  gpuir_query *q;
  uint32_t *df;
  int status, i;
  parts p;
  (void)state;
  two_halves(&p);
  refuse_open(&p, few_documents, "do not fit the collection");
  refuse_open(&p, many_documents, "do not fit the collection");
  refuse_open(&p, late_first, "do not fit the collection");
  refuse_open(&p, far_first, "do not fit the collection");
  refuse_open(&p, few_tokens, "do not fit the collection");
  refuse_open(&p, no_shards, "do not fit the collection");
  refuse_open(&p, short_counts, "length does not fit");
  refuse_open(&p, no_counts, "without its terms' counts");
  refuse_open(&p, no_collection, "without it");
  bytes = bytes_of(&p, 1, &size);
  df = (uint32_t *)(void *)(bytes + entry_of(bytes, GPUIR__S_TERM_DFS)->offset);
  for (i = 0; i < 2; i++) {
    *df = i ? 101 : 49;
    entry_of(bytes, GPUIR__S_TERM_DFS)->hash = XXH3_64bits(df, 4);
    seal(bytes);
    assert_int_equal(open_bytes(bytes, size, &ix, &err), GPUIR_OK);
    q = parse(ix, "w1", 2, GPUIR_OR, NULL, &status);
    assert_int_equal(q->terms[0].df, i ? 100 : 50);
    gpuir_query_destroy(q);
    assert_int_equal(gpuir_verify(ix, &err), GPUIR_E_FORMAT);
    assert_non_null(strstr(err.msg, "in fewer documents of the collection"));
    gpuir_close(ix);
  }
  free(bytes);
  free_parts(&p);
}

/* A shard of a shard: the old collection's sections are replaced, and nothing else is other. */
static void test_again(void **state) {
  const uint32_t dfs[1] = {70};
  gpuir_shard_info place, read;
  char path[4200];
  gpuir_index *ix;
  gpuir_error err;
  size_t size;
  uint8_t *bytes;
  parts p;
  (void)state;
  two_halves(&p);
  place = place_of(&p, 1);
  place.documents = 120;
  place.shard = 2;
  place.shards = 9;
  (void)corpus_path(path, sizeof path, "again.gpuir");
  if (gpuir_shard_write(p.shard[0][1], path, &place, dfs, &err)) fail_msg("%s", err.msg);
  ix = open_at(path, 0);
  (void)unlink(path);
  assert_int_equal(gpuir_verify(ix, &err), GPUIR_OK);
  assert_int_equal(gpuir_shard_get_info(ix, &read), GPUIR_OK);
  assert_memory_equal(&read, &place, sizeof read);
  bytes = bytes_of(&p, 1, &size);
  assert_int_equal(ix->leaves[0].seg->size, size);
  assert_memory_equal(ix->leaves[0].seg->map + entry_of(bytes, GPUIR__S_STAT)->offset,
      bytes + entry_of(bytes, GPUIR__S_STAT)->offset,
      (size_t)(entry_of(bytes, GPUIR__S_SHARD)->offset - entry_of(bytes, GPUIR__S_STAT)->offset));
  free(bytes);
  gpuir_close(ix);
  free_parts(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_shards), cmocka_unit_test(test_left_out),
      cmocka_unit_test(test_prefixes), cmocka_unit_test(test_range), cmocka_unit_test(test_statistics),
      cmocka_unit_test(test_thresholds), cmocka_unit_test(test_write_refuses), cmocka_unit_test(test_damage),
      cmocka_unit_test(test_again)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
