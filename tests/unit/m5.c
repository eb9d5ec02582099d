/* m5.c - model trees: splits against a search by brute force, leaves against least squares, pruning, bounds */
#include "tools/lab/m5.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "rng.h"

#define MOST 60

static double x[MOST * 3 + 3 * 2000], y[2000];

static m5_desc desc_of(unsigned features) {
  m5_desc d;
  memset(&d, 0, sizeof d);
  d.features = features;
  return d;
}

static double plain_deviation(const double *v, size_t n) {
  double mean = 0, sum = 0;
  for (size_t i = 0; i < n; i++) mean += v[i] / (double)n;
  for (size_t i = 0; i < n; i++) sum += (v[i] - mean) * (v[i] - mean);
  return sqrt(sum / (double)n);
}

/* What the split of n examples at `at` gains; below 0: too few are on a side. */
static double plain_gain(unsigned features, size_t n, unsigned f, double at, size_t least) {
  double left[MOST], right[MOST];
  size_t nl = 0, nr = 0;
  for (size_t i = 0; i < n; i++) {
    if (x[i * features + f] <= at) left[nl++] = y[i];
    else right[nr++] = y[i];
  }
  if (nl < least || nr < least) return -1;
  return plain_deviation(y, n) - (double)nl / (double)n * plain_deviation(left, nl) -
      (double)nr / (double)n * plain_deviation(right, nr);
}

/* The best gain of all features and of all places between two examples. */
static double best_gain(unsigned features, size_t n, size_t least) {
  double best = 0;
  for (unsigned f = 0; f < features; f++)
    for (size_t i = 0; i < n; i++) {
      const double gain = plain_gain(features, n, f, x[i * features + f], least);
      if (gain > best) best = gain;
    }
  return best;
}

static void splits(void **state) {
  (void)state;
  for (unsigned round = 0; round < 400; round++) {
    const unsigned features = 1 + below(3), steps = 1 + below(12);
    const size_t n = 1 + below(MOST);
    size_t rows[MOST];
    m5_desc d = desc_of(features);
    m5_split s;
    d.least = 1 + below(5);
    for (size_t i = 0; i < n; i++) {
      rows[i] = i;
      y[i] = below(50);
      for (unsigned f = 0; f < features; f++) x[i * features + f] = below(steps);
    }
    assert_int_equal(m5_find_split(&d, x, y, rows, n, &s), 0);
    const double want = best_gain(features, n, d.least);
    assert_true(fabs(s.gain - want) < 1e-5);
    if (s.gain > 0) assert_true(fabs(plain_gain(features, n, s.feature, s.at, d.least) - want) < 1e-5);
  }
}

/* A line is found again, by one leaf and exactly. */
static void line(void **state) {
  m5_desc d = desc_of(3);
  (void)state;
  for (size_t i = 0; i < 200; i++) {
    for (unsigned f = 0; f < 3; f++) x[i * 3 + f] = below(1000);
    y[i] = 3 + 2 * x[i * 3] - 0.5 * x[i * 3 + 1];
  }
  m5_tree *t = m5_grow(&d, x, y, 200);
  assert_non_null(t);
  assert_int_equal(m5_leaves(t), 1);
  for (size_t i = 0; i < 200; i++) assert_true(fabs(m5_predict(t, x + i * 3) - y[i]) < 1e-6);
  m5_free(t);
}

/* Two lines with a step between them are two leaves, each with its line; noise alone is one. */
static void pieces(void **state) {
  m5_desc d = desc_of(2);
  (void)state;
  d.smoothing = -1;
  for (size_t i = 0; i < 1000; i++) {
    x[i * 2] = below(1000);
    x[i * 2 + 1] = below(10);
    y[i] = x[i * 2] < 400 ? 10 + x[i * 2] : 5000 - 4 * x[i * 2];
  }
  m5_tree *t = m5_grow(&d, x, y, 1000);
  assert_non_null(t);
  assert_true(m5_leaves(t) >= 2 && m5_leaves(t) <= 6);
  double error = 0;
  for (size_t i = 0; i < 1000; i++) error += fabs(m5_predict(t, x + i * 2) - y[i]) / 1000;
  assert_true(error < 1);
  m5_free(t);
  for (size_t i = 0; i < 1000; i++) y[i] = below(1000);
  t = m5_grow(&d, x, y, 1000);
  const size_t pruned = m5_leaves(t);
  m5_free(t);
  d.unpruned = 1;
  t = m5_grow(&d, x, y, 1000);
  assert_true(m5_leaves(t) > pruned + pruned / 2);
  m5_free(t);
}

/* A leaf's line ends soon behind its own examples, though others have greater values. */
static void lines(void **state) {
  const double far_[2] = {10, 1e6};
  m5_desc d = desc_of(2);
  (void)state;
  for (size_t i = 0; i < 300; i++) {
    x[i * 2] = below(100);
    x[i * 2 + 1] = below(100);
    y[i] = x[i * 2] < 50 ? 7 + x[i * 2 + 1] / 100 : 700 + x[i * 2 + 1];
  }
  d.smoothing = -1;
  m5_tree *t = m5_grow(&d, x, y, 300);
  assert_non_null(t);
  assert_true(m5_predict(t, far_) < 9.1);
  m5_free(t);
}

/* What a tree says stays within what it has seen, for any example; smoothing draws leaves together. */
static void bounds(void **state) {
  const double far_[2][2] = {{1e12, -1e12}, {NAN, 0}};
  m5_desc d = desc_of(2);
  (void)state;
  for (size_t i = 0; i < 300; i++) {
    x[i * 2] = below(100);
    x[i * 2 + 1] = below(100);
    y[i] = x[i * 2] < 50 ? 7 : 700 + x[i * 2 + 1];
  }
  m5_tree *t = m5_grow(&d, x, y, 300);
  d.smoothing = -1;
  m5_tree *rough = m5_grow(&d, x, y, 300);
  assert_true(t && rough);
  for (size_t i = 0; i < 2; i++) assert_true(m5_predict(t, far_[i]) >= 7 && m5_predict(t, far_[i]) <= 799);
  const double left[2] = {45, 50};
  assert_true(fabs(m5_predict(rough, left) - 7) < 1e-6);
  assert_true(m5_predict(t, left) > m5_predict(rough, left));
  m5_free(t);
  m5_free(rough);
  assert_null(m5_grow(&d, x, y, 0));
  d.features = M5_FEATURES + 1;
  assert_null(m5_grow(&d, x, y, 10));
}

/* Features that do not vary, or that are the same, do no harm. */
static void same(void **state) {
  m5_desc d = desc_of(3);
  (void)state;
  for (size_t i = 0; i < 50; i++) {
    x[i * 3] = (double)i;
    x[i * 3 + 1] = 2 * (double)i;
    x[i * 3 + 2] = 5;
    y[i] = 4 * (double)i;
  }
  m5_tree *t = m5_grow(&d, x, y, 50);
  for (size_t i = 0; i < 50; i++) assert_true(fabs(m5_predict(t, x + i * 3) - y[i]) < 1e-6);
  m5_free(t);
  for (size_t i = 0; i < 50; i++) y[i] = 3;
  t = m5_grow(&d, x, y, 50);
  assert_int_equal(m5_leaves(t), 1);
  assert_true(fabs(m5_predict(t, x) - 3) < 1e-12);
  m5_free(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(splits), cmocka_unit_test(line), cmocka_unit_test(pieces),
      cmocka_unit_test(lines), cmocka_unit_test(bounds), cmocka_unit_test(same)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
