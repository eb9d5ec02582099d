/* isect.h - one prepared intersection by any method: two to GPUIR_MAX_TERMS sorted arrays, or compressed lists.
 *
 *     gpuir__isect_arrays, gpuir__isect_lists   prepare
 *     gpuir__isect_run                          the search itself; may be repeated
 *     gpuir__isect_bytes                        of the auxiliary structures that were prepared
 *     gpuir__isect_free
 *
 * Lists are taken from short to long, each filtering the candidates that the ones before left over. It uses private
 * parts of gpuir.h ([54-lookup], [55-methods]) and is included behind an implementation of the header; the laboratory
 * and the tests of the methods drive them by it.
 */
#ifndef GPUIR_LAB_ISECT_H
#define GPUIR_LAB_ISECT_H

#include "arrays.h"

typedef struct gpuir__isect {
  gpuir_allocator a;
  const gpuir__method *method;
  gpuir__lookup_kernel search; /* in an operand; NULL: the method takes all at once */
  unsigned k;
  gpuir__operand operand[GPUIR_MAX_TERMS]; /* from short to long */
  gpuir__prepared prepared[GPUIR_MAX_TERMS]; /* of each operand */
  unsigned number[GPUIR_MAX_TERMS]; /* the caller's, of each operand */
  gpuir__cursor *cursors; /* of lists */
  uint32_t *scratch; /* five arrays of room items */
  size_t room;
} gpuir__isect;

GPUIR__UNUSED static void gpuir__isect_free(gpuir__isect *x) {
  unsigned i;
  for (i = 0; i < x->k; i++) gpuir__prepared_free(&x->a, &x->prepared[i]);
  gpuir__free(&x->a, x->cursors, x->k * sizeof *x->cursors);
  gpuir__free(&x->a, x->scratch, 5 * x->room * sizeof *x->scratch);
  memset(x, 0, sizeof *x);
}

/* Orders k operands by n, reserves scratch memory and prepares all but the first. */
static int gpuir__isect_prepare(gpuir__isect *x) {
  unsigned i, j;
  for (i = 0; i < x->k; i++) x->number[i] = i;
  for (i = 1; i < x->k; i++)
    for (j = i; j && x->operand[j].n < x->operand[j - 1].n; j--) {
      gpuir__operand o = x->operand[j];
      unsigned number = x->number[j];
      x->operand[j] = x->operand[j - 1];
      x->operand[j - 1] = o;
      x->number[j] = x->number[j - 1];
      x->number[j - 1] = number;
    }
  x->room = (size_t)x->operand[0].n + GPUIR__BLOCK_ROOM;
  x->scratch = (uint32_t *)gpuir__alloc(&x->a, 5 * x->room * sizeof *x->scratch);
  if (!x->scratch) return GPUIR_E_NOMEM;
  for (i = 1; i < x->k; i++) {
    int status;
    x->operand[i].expected = i == 1 ? x->operand[0].n : 0;
    status = x->operand[i].cursor ? gpuir__operand_prepare(&x->a, x->method, &x->operand[i], &x->prepared[i])
                                  : gpuir__array_prepare(&x->a, x->method, &x->operand[i], &x->prepared[i]);
    if (status) return status;
  }
  return GPUIR_OK;
}

/* Prepares the intersection of k (1 to GPUIR_MAX_TERMS) strictly increasing arrays without UINT32_MAX: docs[i] has n[i]
 * docIDs and stays the caller's. 0, NOMEM or LIMIT; gpuir__isect_free is due in either case. */
GPUIR__UNUSED static int gpuir__isect_arrays(gpuir__isect *x, const gpuir_allocator *a, const gpuir__method *method,
    const uint32_t *const *docs, const uint32_t *n, unsigned k, int simd) {
  const gpuir__array_search *search = gpuir__array_search_of(method);
  unsigned i;
  memset(x, 0, sizeof *x);
  x->a = gpuir__allocator(a);
  x->method = method;
  x->search = search ? search->search : NULL;
  x->k = k;
  for (i = 0; i < k; i++) {
    gpuir__operand_init(&x->operand[i], NULL, gpuir__lookup_choose(gpuir__simd_level(simd)));
    x->operand[i].docs = docs[i];
    x->operand[i].n = n[i];
  }
  return gpuir__isect_prepare(x);
}

/* The same of compressed lists, which stay open. */
GPUIR__UNUSED static int gpuir__isect_lists(gpuir__isect *x, const gpuir_allocator *a, const gpuir__method *method,
    const gpuir__list *const *lists, unsigned k, int simd) {
  unsigned i;
  memset(x, 0, sizeof *x);
  x->a = gpuir__allocator(a);
  x->method = method;
  x->search = method->list;
  x->k = k;
  x->cursors = (gpuir__cursor *)gpuir__alloc_zero(&x->a, k * sizeof *x->cursors);
  if (!x->cursors) return GPUIR_E_NOMEM;
  for (i = 0; i < k; i++) {
    x->cursors[i].list = *lists[i];
    gpuir__operand_init(&x->operand[i], &x->cursors[i], gpuir__lookup_choose(gpuir__simd_level(simd)));
  }
  return gpuir__isect_prepare(x);
}

/* Bytes of the auxiliary structures; what the search itself needs for a moment is not counted. */
GPUIR__UNUSED static uint64_t gpuir__isect_bytes(const gpuir__isect *x) {
  uint64_t sum = 0;
  unsigned i;
  for (i = 0; i < x->k; i++) sum += x->prepared[i].aux.len + x->prepared[i].copy.len;
  return sum;
}

/* Returns the first operand's docIDs: its array, or decoded to `to`. */
static const uint32_t *gpuir__isect_driver(gpuir__isect *x, uint32_t *to) {
  gpuir__operand *o = &x->operand[0];
  uint32_t block;
  if (!o->cursor) return o->docs;
  for (block = 0; block < o->cursor->list.nblocks; block++)
    (void)gpuir__list_docs(&o->cursor->list, block, to + (size_t)block * GPUIR__BLOCK);
  gpuir__pad(to + o->n);
  return to;
}

/* Through the operands one after the other. docs and where as for gpuir__isect_run. */
static uint32_t gpuir__isect_rounds(gpuir__isect *x, uint32_t *docs, uint32_t *const *where) {
  uint32_t *spare[5], j, n = x->operand[0].n;
  gpuir__pass p;
  unsigned i, t;
  for (i = 0; i < 5; i++) spare[i] = x->scratch + i * x->room;
  p.candidates = gpuir__isect_driver(x, spare[0]);
  p.from = where ? spare[1] : NULL;
  p.spare = spare[2];
  if (where)
    for (j = 0; j < n; j++) where[x->number[0]][j] = j;
  for (i = 1; i < x->k && n; i++) {
    p.m = n;
    p.docs = i + 1 == x->k ? docs : spare[3 + i % 2];
    p.where = where ? where[x->number[i]] : NULL;
    n = x->search(&x->operand[i], &p);
    for (t = 0; where && t < i; t++) {
      uint32_t *w = where[x->number[t]];
      for (j = 0; j < n; j++) w[j] = w[p.from[j]]; /* from[j] >= j */
    }
    gpuir__pad(p.docs + n);
    p.candidates = p.docs;
  }
  if (x->k == 1 && n) memcpy(docs, p.candidates, (size_t)n * 4);
  return n;
}

/* Through all operands at once. */
static uint32_t gpuir__isect_all(gpuir__isect *x, uint32_t *docs, uint32_t *const *where) {
  gpuir__operand *o[GPUIR_MAX_TERMS], first = x->operand[0];
  uint32_t *ordered[GPUIR_MAX_TERMS];
  unsigned i;
  first.docs = gpuir__isect_driver(x, x->scratch);
  first.cursor = NULL;
  for (i = 0; i < x->k; i++) {
    o[i] = i ? &x->operand[i] : &first;
    ordered[i] = where ? where[x->number[i]] : NULL;
  }
  return x->method->all(o, x->k, docs, where ? ordered : NULL);
}

/* Intersects: returns the number of docIDs that all operands hold, and writes them to docs. where[i][j], unless where
 * is NULL, is the index of docs[j] in the caller's i-th operand. docs and each where[i] have room for the shortest
 * operand and 16 more. */
GPUIR__UNUSED static uint32_t gpuir__isect_run(gpuir__isect *x, uint32_t *docs, uint32_t *const *where) {
  unsigned i;
  for (i = 0; i < x->k; i++) {
    x->operand[i].at = 0;
    if (x->operand[i].cursor) x->operand[i].cursor->block = UINT32_MAX;
  }
  return x->method->all ? gpuir__isect_all(x, docs, where) : gpuir__isect_rounds(x, docs, where);
}

#endif
