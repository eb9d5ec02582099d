/* lists.h - sorted lists for the laboratory's tests and measurements; include after gpuir.h and synth.h */
#ifndef LISTS_H
#define LISTS_H

typedef struct lists {
  uint32_t **docs;
  uint32_t *n;
  size_t count, room;
} lists;

static uint32_t *lists_add(lists *l, uint32_t n) {
  if (l->count == l->room) {
    l->room = l->room * 2 + 64;
    l->docs = (uint32_t **)realloc(l->docs, l->room * sizeof *l->docs);
    l->n = (uint32_t *)realloc(l->n, l->room * sizeof *l->n);
  }
  l->n[l->count] = n;
  return l->docs[l->count++] = (uint32_t *)malloc((size_t)n * 4 + 4);
}

static void lists_free(lists *l) {
  while (l->count) free(l->docs[--l->count]);
  free(l->docs);
  free(l->n);
  memset(l, 0, sizeof *l);
}

/* n docIDs at gaps that are uniform below 2^bits, the greatest one needing all bits; fewer if the docIDs run out. */
static void lists_add_width(lists *l, uint32_t n, unsigned bits, uint64_t seed) {
  synth_rng r = {seed};
  uint32_t *d = lists_add(l, n), i;
  uint64_t at = 0;
  for (i = 0; i < n; i++) {
    at += (i % 97 == 0 ? ((uint64_t)1 << bits) - 1 : synth_next(&r) >> 8 & (((uint64_t)1 << bits) - 1)) + (i > 0);
    if (at >= UINT32_MAX) break;
    d[i] = (uint32_t)at;
  }
  l->n[l->count - 1] = i;
}

/* About df docIDs below `documents`; clustering as in synth.h. */
static void lists_add_synth(lists *l, uint32_t documents, uint32_t df, double clustering, uint32_t seed) {
  synth_desc d;
  const size_t room = (size_t)df + df / 4 + 64;
  uint32_t *tfs = (uint32_t *)malloc(room * 4), *docs = lists_add(l, (uint32_t)room);
  memset(&d, 0, sizeof d);
  d.documents = documents;
  d.clustering = clustering;
  d.seed = 77;
  l->n[l->count - 1] = synth_list(&d, seed, df, docs, tfs);
  free(tfs);
}

#endif
