/* wheres.c - searches with a where, in static and in live indexes, bit for bit those of an oracle: all matches without
 * the where, by the exhaustive evaluator, of which those stay whose values satisfy it
 *
 * GPUIR_LONG=1 asks 100,000 queries.
 */
#include "small.h"
#include "private.h"

unsigned small_prefix_postings = 1u << 24;

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "rng.h"
#include "collection.h"
#include "columns.h"
#include "wheres.h"
#include "raw_index.h"

#define MOST 8000

static gpuir_hit all_and[MOST], all_or[MOST], want[MOST], got[MOST], both[2 * MOST];

typedef struct searchers {
  gpuir_searcher *engine, *reference;
  gpuir_pool *pool; /* of threads that help each other */
} searchers;

/* All matches in a mode, without a where, of which those stay that pass. */
static size_t filtered(const searchers *s, const gpuir_index *ix, const char *text, int mode, int all,
    const where_case *w, gpuir_hit *hits) {
  gpuir_query *q = parsed(ix, text, NULL, mode, all);
  size_t n = 0, i, kept = 0;
  assert_non_null(q);
  assert_int_equal(gpuir_search(s->reference, q, hits, MOST, &n), 0);
  for (i = 0; i < n; i++)
    if (where_passes(w, raw_number(ix, hits[i].docid))) hits[kept++] = hits[i];
  gpuir_query_destroy(q);
  return kept;
}

/* The terms of a document that fails are explained as if there were no where. */
static void check_terms(const searchers *s, const gpuir_query *plain, uint32_t d, const gpuir_explanation *x) {
  gpuir_explanation y;
  size_t i;
  assert_int_equal(gpuir_explain(s->engine, plain, d, &y), 0);
  assert_int_equal(x->nterms, y.nterms);
  for (i = 0; i < y.nterms; i++) assert_int_equal(x->terms[i].tf, y.terms[i].tf);
}

static unsigned leading; /* explained queries whose where leads */

/* Explains some documents: those that match, and those that do not for the where's sake alone. */
static void check_explained(const searchers *s, const gpuir_index *ix, const gpuir_query *q, const gpuir_query *plain,
    const where_case *w, const gpuir_hit *hits, size_t n, rng *r) {
  gpuir_explanation x;
  unsigned i;
  for (i = 0; i < 2; i++) {
    const uint32_t d = n && i ? hits[rng_below(r, (uint32_t)n)].docid : rng_below(r, (uint32_t)ix->docids);
    const int status = gpuir_explain(s->engine, q, d, &x);
    size_t j;
    if (status == GPUIR_E_NOT_FOUND) continue;
    assert_int_equal(status, 0);
    check_terms(s, plain, d, &x);
    assert_true(strstr(x.plan, "; where: list") || strstr(x.plan, "; where: test"));
    leading += strstr(x.plan, "; where: list") != NULL;
    for (j = 0; j < n && hits[j].docid != d; j++) {}
    assert_int_equal(x.matches, j < n);
    if (x.matches) assert_int_equal(x.score, hits[j].score);
    assert_int_equal(x.failed == NULL, where_passes(w, raw_number(ix, d)));
    if (x.failed)
      assert_true(x.failed_len > 0 && strstr(w->text, "=") != NULL &&
          !memcmp(strstr(w->text, x.failed), x.failed, x.failed_len));
  }
}

static void same_hits(const char *text, const char *where, const gpuir_hit *x, size_t nx, size_t k, const gpuir_hit *y,
    size_t ny) {
  const size_t n = nx < k ? nx : k;
  size_t i;
  if (n != ny || memcmp(x, y, n * sizeof *x) != 0)
    print_error("%s, where %s, k %u: %u hits of %u\n", text, where, (unsigned)k, (unsigned)ny, (unsigned)n);
  assert_int_equal(ny, n);
  for (i = 0; i < n; i++) assert_true(x[i].docid == y[i].docid && x[i].score == y[i].score);
}

/* The pool answers, and counts, as the engine does. */
static void check_pool(const searchers *s, const gpuir_query *q, const char *text, const char *where, size_t nwant,
    size_t k, uint64_t count) {
  gpuir_task t;
  uint64_t matches;
  memset(&t, 0, sizeof t);
  t.query = q;
  t.k = k;
  t.hits = got;
  t.matches = &matches;
  assert_int_equal(gpuir_pool_submit(s->pool, &t), 0);
  assert_int_equal(gpuir_pool_wait(s->pool, &t), 0);
  same_hits(text, where, want, nwant, k, got, t.count);
  assert_int_equal(matches, count);
}

/* Asks one query at random; returns 1 if some of its matches pass, and some do not. */
static int ask(const searchers *s, const gpuir_index *ix, rng *r) {
  static const size_t ks[] = {1, 2, 10, 40, MOST};
  const size_t k = ks[rng_below(r, 5)];
  const int mode = (int)rng_below(r, 3), all = rng_below(r, 8) == 0;
  char text[300];
  where_case w;
  gpuir_query *q;
  const gpuir_query *two[2];
  size_t n, nand, nor, nwant;
  uint64_t count;
  uint32_t counts[2];
  query_text(r, text);
  if (all) (void)snprintf(text, sizeof text, rng_below(r, 2) ? "-w%u" : "", rng_below(r, 60));
  where_make(r, &w);
  q = parsed(ix, text, w.text, mode, all);
  if (!q) return 0; /* only what is negated */
  nand = filtered(s, ix, text, GPUIR_AND, all, &w, all_and);
  nor = filtered(s, ix, text, GPUIR_OR, all, &w, all_or);
  nwant = mode == GPUIR_AND || (mode == GPUIR_ANDOR && nand >= k) ? nand : nor;
  memcpy(want, nwant == nor && (mode == GPUIR_OR || (mode == GPUIR_ANDOR && nand < k)) ? all_or : all_and,
      nwant * sizeof *want);
  assert_int_equal(gpuir_search(s->engine, q, got, k, &n), 0);
  same_hits(text, w.text, want, nwant, k, got, n);
  assert_int_equal(gpuir_search(s->reference, q, got, k, &n), 0);
  same_hits(text, w.text, want, nwant, k, got, n);
  assert_int_equal(gpuir_count(s->engine, q, &count), 0);
  assert_int_equal(count, mode == GPUIR_OR ? nor : nand);
  assert_int_equal(gpuir_search_count(s->engine, q, got, k, &n, &count), 0);
  same_hits(text, w.text, want, nwant, k, got, n);
  assert_int_equal(count, mode == GPUIR_OR ? nor : nand);
  check_pool(s, q, text, w.text, nwant, k, count);
  two[0] = two[1] = q;
  assert_int_equal(gpuir_search_batch(s->engine, two, 2, k, both, counts), 0);
  same_hits(text, w.text, want, nwant, k, both, counts[0]);
  same_hits(text, w.text, want, nwant, k, both + k, counts[1]);
  if (mode != GPUIR_ANDOR) {
    gpuir_query *plain = parsed(ix, text, NULL, mode, all);
    check_explained(s, ix, q, plain, &w, mode == GPUIR_AND ? all_and : all_or, mode == GPUIR_AND ? nand : nor, r);
    gpuir_query_destroy(plain);
  }
  gpuir_query_destroy(q);
  return nwant > 0;
}

static void ask_many(const gpuir_index *ix, uint64_t seed) {
  const unsigned rounds = getenv("GPUIR_LONG") ? 20000 : 300;
  gpuir_searcher_desc d;
  searchers s;
  gpuir_error err;
  rng r = {seed};
  unsigned i, some = 0;
  gpuir_pool_desc pd;
  memset(&pd, 0, sizeof pd);
  pd.threads = 3;
  assert_int_equal(gpuir_pool_create(ix, &pd, &s.pool, &err), 0);
  memset(&d, 0, sizeof d);
  d.threads = 2;
  assert_int_equal(gpuir_searcher_create(ix, &d, &s.engine, &err), 0);
  d.evaluator = GPUIR_EVAL_EXHAUSTIVE;
  assert_int_equal(gpuir_searcher_create(ix, &d, &s.reference, &err), 0);
  for (i = 0; i < rounds; i++) some += (unsigned)ask(&s, ix, &r);
  assert_true(some > rounds / 4);
  assert_true(leading > 0);
  gpuir_pool_destroy(s.pool);
  gpuir_searcher_destroy(s.engine);
  gpuir_searcher_destroy(s.reference);
}

static void test_static(void **state) {
  gpuir_index *ix = make_static(7800, 0); /* some lists are so long that they have seeds */
  (void)state;
  assert_true(ix->leaves[0].seg->lists.nseeds > 0);
  ask_many(ix, 1);
  gpuir_close(ix);
  ix = make_static(3000, 16); /* with dense lists */
  assert_true(ix->leaves[0].seg->dense.n > 0);
  ask_many(ix, 2);
  gpuir_close(ix);
}

static void test_live(void **state) {
  gpuir_index *ix, *merged;
  gpuir_live *live;
  gpuir_error err;
  char name[96];
  (void)state;
  path_of(name, "live");
  ix = make_live(&live, name, 5000, 7);
  assert_true(ix->nleaves >= 7 && ix->leaves[0].deleted);
  ask_many(ix, 3);
  assert_int_equal(gpuir_live_merge(live, 0, NULL, &err), 0);
  assert_int_equal(gpuir_live_refresh(live, &merged, &err), 0);
  ask_many(merged, 4);
  gpuir_close(merged);
  assert_int_equal(gpuir_live_merge(live, 1, NULL, &err), 0);
  assert_int_equal(gpuir_live_refresh(live, &merged, &err), 0);
  assert_true(merged->nleaves == 1 && !merged->leaves[0].deleted);
  ask_many(merged, 5);
  gpuir_close(merged);
  gpuir_close(ix);
  gpuir_live_close(live);
  remove_live(name);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_static), cmocka_unit_test(test_live)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
