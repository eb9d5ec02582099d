/* m5.c - model trees, as m5.h says. A tree is grown by splits that reduce the standard deviation most; every node gets
 * a linear model of the features that help it; a subtree that is no better than its node's model, counting what its
 * parameters cost, becomes a leaf; and what a leaf says is smoothed by the models on the way to it.
 */
#include "m5.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXACT 1e-12 /* what lies below, relatively, may come of rounding */

/* A linear model: weight[features] is the constant. */
typedef struct linear {
  double weight[M5_FEATURES + 1];
  unsigned used; /* a bit for each feature in it */
} linear;

typedef struct node {
  m5_split split;
  size_t n, left, right; /* left 0: a leaf */
  linear model;
  double least, most; /* what the model may say */
} node;

struct m5_tree {
  m5_desc desc;
  node *nodes; /* the root first */
  size_t n, cap;
  double least, most; /* values of the examples */
  double deviation; /* of the root */
};

/* The examples that a tree is grown from. */
typedef struct examples {
  const double *x, *y;
  size_t *rows;
} examples;

static const double *features_of(const m5_tree *t, const examples *e, size_t row) {
  return e->x + row * t->desc.features;
}

/* ---- splits --------------------------------------------------------------------------------------------------- */

typedef struct pair {
  double x, y;
} pair;

static int compare_pairs(const void *a, const void *b) {
  const pair *p = (const pair *)a, *q = (const pair *)b;
  if (p->x < q->x || p->x > q->x) return p->x < q->x ? -1 : 1;
  return (p->y > q->y) - (p->y < q->y);
}

/* Returns the standard deviation of n values, from their sum and the sum of their squares. */
static double deviation_of(double sum, double squares, size_t n) {
  const double mean = sum / (double)n, variance = squares / (double)n - mean * mean;
  return variance > EXACT * squares / (double)n ? sqrt(variance) : 0;
}

/* Finds the best place to split pairs that are sorted by x, if it is better than the one that is known. */
static void split_sorted(const pair *p, size_t n, size_t least, unsigned feature, m5_split *best) {
  double sum = 0, squares = 0, left = 0, left_squares = 0;
  for (size_t i = 0; i < n; i++) {
    sum += p[i].y;
    squares += p[i].y * p[i].y;
  }
  const double all = deviation_of(sum, squares, n);
  for (size_t i = 0; i + least < n; i++) {
    left += p[i].y;
    left_squares += p[i].y * p[i].y;
    if (i + 1 < least || !(p[i].x < p[i + 1].x)) continue;
    const size_t nl = i + 1, nr = n - nl;
    const double gain = all - (double)nl / (double)n * deviation_of(left, left_squares, nl) -
        (double)nr / (double)n * deviation_of(sum - left, squares - left_squares, nr);
    if (gain <= best->gain) continue;
    best->feature = feature;
    best->at = p[i].x + (p[i + 1].x - p[i].x) / 2;
    best->gain = gain;
  }
}

int m5_find_split(const m5_desc *d, const double *x, const double *y, size_t *rows, size_t n, m5_split *best) {
  const size_t least = d->least ? d->least : 4;
  double mean = 0;
  memset(best, 0, sizeof *best);
  if (!n || n < 2 * least) return 0;
  pair *pairs = (pair *)malloc(n * sizeof *pairs);
  if (!pairs) return -1;
  for (size_t i = 0; i < n; i++) mean += y[rows[i]] / (double)n;
  for (unsigned f = 0; f < d->features; f++) {
    for (size_t i = 0; i < n; i++) {
      pairs[i].x = x[rows[i] * d->features + f];
      pairs[i].y = y[rows[i]] - mean; /* so that squares stay exact enough */
    }
    qsort(pairs, n, sizeof *pairs, compare_pairs);
    split_sorted(pairs, n, least, f, best);
  }
  free(pairs);
  return 0;
}

/* ---- linear models -------------------------------------------------------------------------------------------- */

static double model_value(const linear *m, const double *x, unsigned features) {
  double v = m->weight[features];
  for (unsigned f = 0; f < features; f++)
    if (m->used >> f & 1) v += m->weight[f] * x[f];
  return v;
}

#define M5_ROWS (M5_FEATURES + 1)

/* Solves a * w = b for n unknowns by elimination; an unknown without a pivot becomes 0. */
static void solve(double a[M5_ROWS][M5_ROWS + 1], unsigned n, double *w) {
  int has[M5_ROWS];
  for (unsigned c = 0; c < n; c++) {
    const double pivot = a[c][c];
    has[c] = pivot > 1e-9;
    for (unsigned r = 0; r < n && has[c]; r++) {
      if (r == c) continue;
      const double by = a[r][c] / pivot;
      for (unsigned k = c; k <= n; k++) a[r][k] -= by * a[c][k];
    }
  }
  for (unsigned c = 0; c < n; c++) w[c] = has[c] ? a[c][n] / a[c][c] : 0;
}

/* Means and deviations of the features of some examples, and the mean of their values. */
typedef struct scale {
  double mean[M5_FEATURES], deviation[M5_FEATURES], y;
} scale;

static scale scale_of(const m5_tree *t, const examples *e, size_t from, size_t n) {
  const unsigned features = t->desc.features;
  scale s;
  memset(&s, 0, sizeof s);
  for (size_t i = 0; i < n; i++) {
    s.y += e->y[e->rows[from + i]] / (double)n;
    for (unsigned f = 0; f < features; f++) s.mean[f] += features_of(t, e, e->rows[from + i])[f] / (double)n;
  }
  for (size_t i = 0; i < n; i++)
    for (unsigned f = 0; f < features; f++) {
      const double off = features_of(t, e, e->rows[from + i])[f] - s.mean[f];
      s.deviation[f] += off * off / (double)n;
    }
  for (unsigned f = 0; f < features; f++) s.deviation[f] = sqrt(s.deviation[f]);
  return s;
}

/* Fits a model of the features in `used` by least squares. */
static linear fit(const m5_tree *t, const examples *e, size_t from, size_t n, const scale *s, unsigned used) {
  const unsigned features = t->desc.features;
  double a[M5_ROWS][M5_ROWS + 1], w[M5_ROWS], z[M5_ROWS];
  unsigned of[M5_ROWS], k = 0;
  linear m;
  memset(&m, 0, sizeof m);
  memset(a, 0, sizeof a);
  for (unsigned f = 0; f < features; f++)
    if (used >> f & 1 && s->deviation[f] > 0) of[k++] = f;
  for (size_t i = 0; i < n; i++) {
    const size_t row = e->rows[from + i];
    for (unsigned j = 0; j < k; j++) z[j] = (features_of(t, e, row)[of[j]] - s->mean[of[j]]) / s->deviation[of[j]];
    for (unsigned j = 0; j < k; j++) {
      for (unsigned l = 0; l < k; l++) a[j][l] += z[j] * z[l] / (double)n;
      a[j][k] += z[j] * (e->y[row] - s->y) / (double)n;
    }
  }
  solve(a, k, w);
  m.weight[features] = s->y;
  for (unsigned j = 0; j < k; j++) {
    m.used |= 1u << of[j];
    m.weight[of[j]] = w[j] / s->deviation[of[j]];
    m.weight[features] -= m.weight[of[j]] * s->mean[of[j]];
  }
  return m;
}

/* Returns the mean error of a model on its examples, raised by what its parameters cost. */
static double model_error(const m5_tree *t, const examples *e, size_t from, size_t n, const linear *m) {
  const double v = 1 + (double)__builtin_popcount(m->used), count = (double)n;
  double sum = 0;
  for (size_t i = 0; i < n; i++)
    sum += fabs(e->y[e->rows[from + i]] - model_value(m, features_of(t, e, e->rows[from + i]), t->desc.features));
  return sum / count * (count > v ? (count + v) / (count - v) : 10);
}

/* Fits a model of all features, and leaves those out, one after the other, without which it errs less. */
static linear choose_model(const m5_tree *t, const examples *e, size_t from, size_t n, double *error) {
  const scale s = scale_of(t, e, from, n);
  linear best = fit(t, e, from, n, &s, (1u << t->desc.features) - 1);
  int better = 1;
  *error = model_error(t, e, from, n, &best);
  while (better) {
    const unsigned used = best.used;
    better = 0;
    for (unsigned f = 0; f < t->desc.features; f++) {
      if (!(used >> f & 1)) continue;
      const linear m = fit(t, e, from, n, &s, used & ~(1u << f));
      const double other = model_error(t, e, from, n, &m);
      if (other > *error) continue;
      *error = other;
      best = m;
      better = 1;
    }
  }
  return best;
}

/* ---- growing -------------------------------------------------------------------------------------------------- */

/* Adds a node; its number, SIZE_MAX without memory. */
static size_t add_node(m5_tree *t) {
  if (t->n == t->cap) {
    const size_t cap = t->cap ? 2 * t->cap : 64;
    node *nodes = (node *)realloc(t->nodes, cap * sizeof *nodes);
    if (!nodes) return SIZE_MAX;
    t->nodes = nodes;
    t->cap = cap;
  }
  memset(&t->nodes[t->n], 0, sizeof t->nodes[t->n]);
  return t->n++;
}

static double rows_deviation(const examples *e, size_t from, size_t n) {
  double mean = 0, sum = 0;
  for (size_t i = 0; i < n; i++) mean += e->y[e->rows[from + i]] / (double)n;
  for (size_t i = 0; i < n; i++) {
    const double off = e->y[e->rows[from + i]] - mean;
    sum += off * off;
  }
  return sqrt(sum / (double)n);
}

/* Moves the examples that go left to the front; how many they are. */
static size_t part_rows(const m5_tree *t, const examples *e, size_t from, size_t n, const m5_split *s) {
  size_t left = from;
  for (size_t i = from; i < from + n; i++) {
    const size_t row = e->rows[i];
    if (features_of(t, e, row)[s->feature] > s->at) continue;
    e->rows[i] = e->rows[left];
    e->rows[left++] = row;
  }
  return left - from;
}

/* Bounds what a node's model says to the values of its examples, and beyond these by as much as they are apart, as
 * Quinlan's Cubist bounds what a rule says: a leaf has few examples, and its line, far from them, says anything. */
static void bound_model(node *p, const examples *e, size_t from, size_t n) {
  double least = e->y[e->rows[from]], most = least;
  for (size_t i = from; i < from + n; i++) {
    const double y = e->y[e->rows[i]];
    least = y < least ? y : least;
    most = y > most ? y : most;
  }
  p->least = least - (most - least);
  p->most = most + (most - least);
}

/* Grows the subtree of the examples rows[from .. from + n), and prunes it. *error is what it errs. The number of its
 * root, SIZE_MAX without memory. */
static size_t grow(m5_tree *t, const examples *e, size_t from, size_t n, double *error) {
  const size_t at = add_node(t), after = t->n;
  double errors[2], own;
  m5_split split = {0, 0, 0};
  if (at == SIZE_MAX) return at;
  t->nodes[at].n = n;
  t->nodes[at].model = choose_model(t, e, from, n, &own);
  bound_model(&t->nodes[at], e, from, n);
  *error = own;
  if (rows_deviation(e, from, n) <= t->desc.stop * t->deviation) return at;
  if (m5_find_split(&t->desc, e->x, e->y, e->rows + from, n, &split)) return SIZE_MAX;
  if (!(split.gain > 0)) return at;
  const size_t nl = part_rows(t, e, from, n, &split);
  const size_t left = grow(t, e, from, nl, &errors[0]);
  const size_t right = left == SIZE_MAX ? left : grow(t, e, from + nl, n - nl, &errors[1]);
  if (right == SIZE_MAX) return right;
  const double below = (errors[0] * (double)nl + errors[1] * (double)(n - nl)) / (double)n;
  if (!t->desc.unpruned && own <= below + 1e-9 * t->deviation) {
    t->n = after; /* the subtree goes */
    return at;
  }
  t->nodes[at].split = split;
  t->nodes[at].left = left;
  t->nodes[at].right = right;
  *error = below;
  return at;
}

m5_tree *m5_grow(const m5_desc *desc, const double *x, const double *y, size_t n) {
  m5_tree *t = (m5_tree *)calloc(1, sizeof *t);
  examples e = {x, y, (size_t *)calloc(n ? n : 1, sizeof *e.rows)};
  double error;
  size_t root = SIZE_MAX;
  if (t && e.rows && n && desc->features && desc->features <= M5_FEATURES) {
    t->desc = *desc;
    if (!t->desc.least) t->desc.least = 4;
    if (t->desc.stop <= 0) t->desc.stop = 0.05;
    if (!(t->desc.smoothing < 0) && !(t->desc.smoothing > 0)) t->desc.smoothing = 15;
    for (size_t i = 0; i < n; i++) e.rows[i] = i;
    t->least = t->most = y[0];
    for (size_t i = 0; i < n; i++) {
      t->least = y[i] < t->least ? y[i] : t->least;
      t->most = y[i] > t->most ? y[i] : t->most;
    }
    t->deviation = rows_deviation(&e, 0, n);
    root = grow(t, &e, 0, n, &error);
  }
  free(e.rows);
  if (root != SIZE_MAX) return t;
  m5_free(t);
  return NULL;
}

void m5_free(m5_tree *t) {
  if (t) free(t->nodes);
  free(t);
}

/* ---- asking --------------------------------------------------------------------------------------------------- */

static double smoothed(const m5_tree *t, size_t at, const double *x) {
  const node *p = &t->nodes[at];
  double own = model_value(&p->model, x, t->desc.features);
  own = !(own > p->least) ? p->least : own < p->most ? own : p->most;
  if (!p->left) return own;
  const size_t child = x[p->split.feature] > p->split.at ? p->right : p->left;
  const double below = smoothed(t, child, x), n = (double)t->nodes[child].n;
  if (t->desc.smoothing < 0) return below;
  return (n * below + t->desc.smoothing * own) / (n + t->desc.smoothing);
}

double m5_predict(const m5_tree *t, const double *x) {
  const double v = smoothed(t, 0, x);
  if (!(v > t->least)) return t->least; /* so is what is no number */
  return v < t->most ? v : t->most;
}

size_t m5_leaves(const m5_tree *t) {
  size_t n = 0;
  for (size_t i = 0; i < t->n; i++) n += !t->nodes[i].left;
  return n;
}
