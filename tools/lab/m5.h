/* m5.h - model trees: trees whose leaves are linear models, grown from examples (Quinlan 1992; Wang and Witten 1997,
 * called M5', of which Weka's M5Rules, that Ding et al. 2009 use in section 9, makes rules).
 */
#ifndef GPUIR_LAB_M5_H
#define GPUIR_LAB_M5_H

#include <stddef.h>

#define M5_FEATURES 8u /* of an example at most */

typedef struct m5_desc {
  unsigned features;
  size_t least; /* examples that either side of a split has at least; 0: 4 */
  double stop; /* a node whose standard deviation is so much of the root's is not split; 0: 0.05 */
  double smoothing; /* weight of a node's model beside what its child says, in examples; below 0: none; 0: 15 */
  int unpruned; /* 1: the tree stays as it was grown */
} m5_desc;

typedef struct m5_tree m5_tree;

/* Grows a tree from n >= 1 examples: example i has the features x[i * features ..] and the value y[i]. NULL: no memory,
 * or no example. */
m5_tree *m5_grow(const m5_desc *desc, const double *x, const double *y, size_t n);
void m5_free(m5_tree *tree);
/* Returns the value of an example, within what those of the tree had. */
double m5_predict(const m5_tree *tree, const double *x);
size_t m5_leaves(const m5_tree *tree);

/* A split: examples whose feature is at most `at` go left. */
typedef struct m5_split {
  unsigned feature;
  double at, gain; /* gain: by how much the standard deviation falls; 0: there is no split */
} m5_split;

/* Finds the best split of the examples rows[0..n), whose order it changes. -1: no memory. */
int m5_find_split(const m5_desc *desc, const double *x, const double *y, size_t *rows, size_t n, m5_split *best);

#endif
