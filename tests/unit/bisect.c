/* bisect.c - recursive graph bisection: gains, selection and orders against plain computations */
#include "tools/reorder/bisect.c"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "rng.h"

/* ---- graphs -------------------------------------------------------------- */

typedef struct graph {
  bisect_graph g;
  uint64_t *start;
  uint32_t *postings;
} graph;

/* Documents of `topics` topics, in an order at random: most of a document's terms are of its topic, the others are
 * from all; some documents have none. topic[d] is a document's topic. */
static graph make_graph(uint32_t documents, uint32_t terms, uint32_t topics, uint32_t length, uint32_t *topic) {
  graph x;
  uint8_t *has = (uint8_t *)calloc(terms, 1);
  uint32_t d, i, t;
  x.start = (uint64_t *)calloc((size_t)documents + 1, sizeof *x.start);
  x.postings = (uint32_t *)calloc((size_t)documents * length + 1, sizeof *x.postings);
  assert_true(has && x.start && x.postings);
  for (d = 0; d < documents; d++) {
    uint64_t at = x.start[d];
    uint32_t n = below(20) ? 1 + below(length) : 0, of = below(topics);
    if (topic) topic[d] = of;
    for (i = 0; i < n; i++) {
      uint32_t span = terms / topics;
      t = below(8) ? of * span + below(span) : (uint32_t)((uint64_t)below(terms) * below(terms) / terms);
      if (!has[t]) x.postings[at++] = t;
      has[t] = 1;
    }
    for (uint64_t k = x.start[d]; k < at; k++) has[x.postings[k]] = 0;
    x.start[d + 1] = at;
  }
  free(has);
  x.g.documents = documents;
  x.g.terms = terms;
  x.g.start = x.start;
  x.g.postings = x.postings;
  return x;
}

static void free_graph(graph *x) {
  free(x->start);
  free(x->postings);
}

/* The sum of log2 of all gaps, from the definition. */
static double gap_cost(const bisect_graph *g, const uint32_t *order) {
  uint32_t *last = (uint32_t *)calloc((size_t)g->terms + 1, sizeof *last); /* position + 1 */
  double bits = 0;
  assert_non_null(last);
  for (uint32_t i = 0; i < g->documents; i++)
    for (uint64_t k = g->start[order[i]]; k < g->start[order[i] + 1]; k++) {
      uint32_t t = g->postings[k];
      bits += log2((double)(i + 1 - last[t]));
      last[t] = i + 1;
    }
  free(last);
  return bits;
}

static uint32_t *identity(uint32_t n) {
  uint32_t *order = (uint32_t *)malloc(((size_t)n + 1) * sizeof *order);
  assert_non_null(order);
  for (uint32_t i = 0; i < n; i++) order[i] = i;
  return order;
}

static void assert_permutation(const uint32_t *order, uint32_t n) {
  uint8_t *seen = (uint8_t *)calloc((size_t)n + 1, 1);
  assert_non_null(seen);
  for (uint32_t i = 0; i < n; i++) {
    assert_true(order[i] < n);
    assert_false(seen[order[i]]);
    seen[order[i]] = 1;
  }
  free(seen);
}

static void run(const bisect_graph *g, unsigned threads, uint32_t leaf, uint32_t *order) {
  bisect_desc d;
  memset(&d, 0, sizeof d);
  d.threads = threads;
  d.leaf = leaf;
  assert_int_equal(bisect_order(g, &d, order), BISECT_OK);
  assert_permutation(order, g->documents);
}

/* ---- gains -------------------------------------------------------------- */

static double level(double d) { return d * log2(d + 1); }

static void test_gains(void **state) {
  static const uint32_t some[] = {0, 1, 2, 3, 5, 17, 1000, 32765, 32766, 32767, 32768, 32769, 65535, 65536, 1000000,
      123456789, 1u << 31, 3u << 30, UINT32_MAX - 2};
  gain_table *t = (gain_table *)malloc(sizeof *t);
  (void)state;
  assert_non_null(t);
  gain_table_fill(t);
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
    double d = some[i], rise = log2(d + 2) + d * log1p(1 / (d + 1)) / log(2);
    assert_true(fabs((double)gain_rise(t, some[i]) / UNIT - rise) < 3 / UNIT);
    assert_true(fabs((double)gain_level(t, some[i]) / UNIT - level(d)) <= 1 / UNIT + d / (1 << 23));
    for (size_t j = 0; j < sizeof some / sizeof *some; j++) {
      double e = some[j], to = log2(e + 2) + e * log1p(1 / (e + 1)) / log(2);
      double from = d > 0 ? log2(d + 1) + (d - 1) * log1p(1 / d) / log(2) : to;
      assert_true(fabs((double)gain_move(t, some[i], some[j]) / UNIT - (to - from)) < 6 / UNIT);
    }
  }
  /* a document's gain is what the cost, computed anew, falls by */
  for (uint32_t here = 1; here < 40; here++)
    for (uint32_t there = 0; there < 40; there++) {
      double before = level(here) + level(there), after = level(here - 1.0) + level(there + 1.0);
      assert_true(fabs((double)gain_move(t, here, there) / UNIT - (after - before)) < 3 / UNIT);
    }
  free(t);
}

static void test_gain_sum(void **state) {
  int32_t gain[50];
  uint32_t terms[50];
  (void)state;
  rng_shared.s = 3;
  for (uint32_t n = 0; n <= 50; n++) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < 50; i++) gain[i] = (int32_t)(uint32_t)rng_next(&rng_shared);
    for (uint32_t i = 0; i < n; i++) sum += gain[terms[i] = below(50)];
    assert_true(gain_sum(gain, terms, n) == sum);
  }
  assert_true(key_gain(key_make(INT64_MAX, 7)) == INT32_MAX && key_position(key_make(INT64_MAX, 7)) == 7);
  assert_true(key_gain(key_make(INT64_MIN, 0)) == INT32_MIN);
  assert_true(key_gain(key_make(-5, 1)) == -5 && key_gain(key_make(5, 1)) == 5);
  assert_true(key_make(5, 9) < key_make(4, 1) && key_make(4, 1) < key_make(4, 2));
}

/* ---- selection -------------------------------------------------------------- */

static int by_key(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static void test_select(void **state) {
  uint64_t a[600], sorted[600];
  (void)state;
  rng_shared.s = 11;
  for (int round = 0; round < 3000; round++) {
    uint32_t n = 1 + below(round < 1500 ? 12 : 600), rank = below(n), spread = 1 + below(1000);
    for (uint32_t i = 0; i < n; i++)
      a[i] = key_make(round % 3 ? (int64_t)below(spread) : (int64_t)i * (round % 2 ? 1 : -1), i);
    memcpy(sorted, a, n * sizeof *a);
    qsort(sorted, n, sizeof *a, by_key);
    select_rank(a, n, rank);
    assert_true(a[rank] == sorted[rank]);
    for (uint32_t i = 0; i < n; i++) assert_true(i < rank ? a[i] < a[rank] : i == rank || a[i] > a[rank]);
    qsort(a, n, sizeof *a, by_key);
    assert_memory_equal(a, sorted, n * sizeof *a);
  }
}

/* The pairs that gain, by sorting. */
static void test_select_pairs(void **state) {
  uint64_t left[300], right[301], l[300], r[301];
  (void)state;
  rng_shared.s = 12;
  for (int round = 0; round < 3000; round++) {
    uint32_t n = below(round < 1500 ? 10 : 300), m = n + below(2), spread = 1 + below(500), pairs = 0, got;
    for (uint32_t i = 0; i < n; i++) l[i] = left[i] = key_make((int64_t)below(spread) - spread / 2, i);
    for (uint32_t i = 0; i < m; i++) r[i] = right[i] = key_make((int64_t)below(spread) - spread / 2, n + i);
    qsort(l, n, sizeof *l, by_key);
    qsort(r, m, sizeof *r, by_key);
    while (pairs < n && key_gain(l[pairs]) + key_gain(r[pairs]) > 0) pairs++;
    got = select_pairs(NULL, left, n, right, m);
    assert_int_equal(got, pairs);
    qsort(left, got, sizeof *left, by_key);
    qsort(right, got, sizeof *right, by_key);
    assert_memory_equal(left, l, pairs * sizeof *l);
    assert_memory_equal(right, r, pairs * sizeof *r);
  }
}

/* ---- orders -------------------------------------------------------------- */

/* The cost falls, for any leaf, and the order does not depend on the threads: with more of them, more levels are
 * the work of all together. */
static void test_orders(void **state) {
  static const struct {
    uint32_t documents, terms, topics, length, leaf;
    double most; /* of the cost before */
  } some[] = {{3000, 400, 20, 20, 0, 0.80}, {3000, 400, 20, 20, 2, 0.80}, {2000, 2000, 50, 30, 16, 0.85},
      {500, 100, 5, 8, 1, 0.90}, {40000, 900, 30, 6, 64, 0.80}, {97, 50, 3, 10, 0, 0.95}};
  (void)state;
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
    rng_shared.s = 100 + i;
    graph x = make_graph(some[i].documents, some[i].terms, some[i].topics, some[i].length, NULL);
    uint32_t *order = identity(some[i].documents), *other = identity(some[i].documents);
    double before = gap_cost(&x.g, order), after;
    run(&x.g, 1, some[i].leaf, order);
    after = gap_cost(&x.g, order);
    if (after > before * some[i].most)
      fail_msg("graph %zu: %.0f bits from %.0f, more than %.0f %%", i, after, before, some[i].most * 100);
    for (unsigned threads = 2; threads <= 8; threads += 3 * threads / 2) { /* 2, 5 */
      for (uint32_t d = 0; d < some[i].documents; d++) other[d] = d;
      run(&x.g, threads, some[i].leaf, other);
      assert_memory_equal(order, other, some[i].documents * sizeof *order);
    }
    for (uint32_t d = 0; d < some[i].documents; d++) other[d] = d;
    run(&x.g, 8, some[i].leaf, other);
    assert_memory_equal(order, other, some[i].documents * sizeof *order);
    free(order);
    free(other);
    free_graph(&x);
  }
}

/* Documents of two topics of the same size that share no term come apart. */
static void test_topics(void **state) {
  (void)state;
  for (uint32_t documents = 40; documents < 700; documents += 22) {
    uint32_t changes = 0, *order = identity(documents);
    uint64_t *start = (uint64_t *)calloc((size_t)documents + 1, sizeof *start);
    uint32_t *postings = (uint32_t *)calloc((size_t)documents * 20, sizeof *postings);
    bisect_graph g = {documents, 40, start, postings};
    assert_true(start && postings);
    rng_shared.s = documents;
    for (uint32_t d = 0; d < documents; d++) { /* each term of the topic, or not */
      start[d + 1] = start[d];
      for (uint32_t t = 0; t < 20; t++)
        if (below(2)) postings[start[d + 1]++] = d % 2 * 20 + t;
    }
    run(&g, 1, 1, order);
    for (uint32_t i = 1; i < documents; i++) changes += order[i] % 2 != order[i - 1] % 2;
    if (changes != 1) fail_msg("%u documents: %u changes of topic", documents, changes);
    free(order);
    free(start);
    free(postings);
  }
}

/* No document, one, none with a term, all the same. */
static void test_small(void **state) {
  uint64_t start[41];
  uint32_t postings[40], order[40];
  bisect_graph g = {0, 1, start, postings};
  (void)state;
  memset(postings, 0, sizeof postings);
  memset(start, 0, sizeof start);
  for (g.documents = 0; g.documents <= 40; g.documents++)
    for (unsigned threads = 1; threads < 4; threads++) {
      for (uint32_t i = 0; i < g.documents; i++) order[i] = i;
      run(&g, threads, 1, order);
      for (uint32_t i = 0; i < g.documents; i++) assert_int_equal(order[i], i);
    }
  g.documents = 40;
  for (uint32_t i = 0; i <= 40; i++) start[i] = i;
  run(&g, 2, 1, order);
  for (uint32_t i = 0; i < 40; i++) assert_int_equal(order[i], i);
}

static int stop_soon(void *user, double done) {
  int *calls = (int *)user;
  assert_true(done >= 0 && done <= 1);
  return ++*calls >= 5;
}

static void test_stop(void **state) {
  (void)state;
  rng_shared.s = 5;
  graph x = make_graph(20000, 500, 20, 10, NULL);
  for (unsigned threads = 1; threads <= 4; threads *= 4) {
    uint32_t *order = identity(20000);
    int calls = 0;
    bisect_desc d;
    memset(&d, 0, sizeof d);
    d.threads = threads;
    d.progress = stop_soon;
    d.user = &calls;
    assert_int_equal(bisect_order(&x.g, &d, order), BISECT_STOPPED);
    assert_int_equal(calls, 5);
    assert_permutation(order, 20000);
    free(order);
  }
  free_graph(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_gains), cmocka_unit_test(test_gain_sum),
      cmocka_unit_test(test_select), cmocka_unit_test(test_select_pairs), cmocka_unit_test(test_orders),
      cmocka_unit_test(test_topics), cmocka_unit_test(test_small), cmocka_unit_test(test_stop)};
  return cmocka_run_group_tests_name("bisect", tests, NULL, NULL);
}
