/* probe.c - the lists of a load's queries, one by one; see probe.h. */
#include "probe.h"

#include "gpuir_lab.h"

#include <stdlib.h>
#include <string.h>

/* ---- one list -------------------------------------------------------------------------------------------------- */

/* A decoded block of a list. */
typedef struct window {
  uint32_t block, n, docs[LAB_BLOCK_ROOM];
} window;

static void window_load(const lab_and *a, unsigned list, window *w, uint32_t block) {
  w->block = block;
  w->n = lab_and_block(a, list, block, w->docs);
}

/* Returns where a docID is in a list, which is searched on from the window's block; UINT32_MAX: it is not there. */
static uint32_t window_find(const lab_and *a, unsigned list, window *w, uint32_t doc) {
  uint32_t lo = 0, hi;
  if (w->docs[w->n - 1] < doc) {
    const uint32_t block = lab_and_find_block(a, list, w->block + 1, doc);
    if (block >= a->list[list].nblocks) return UINT32_MAX;
    window_load(a, list, w, block);
  }
  for (hi = w->n; lo < hi;) {
    const uint32_t middle = lo + (hi - lo) / 2;
    if (w->docs[middle] < doc) lo = middle + 1;
    else hi = middle;
  }
  return lo < w->n && w->docs[lo] == doc ? w->block * LAB_BLOCK + lo : UINT32_MAX;
}

void load_decode(const lab_and *a, unsigned list, uint32_t *docs) {
  uint32_t room[LAB_BLOCK_ROOM];
  for (uint32_t b = 0; b < a->list[list].nblocks; b++) {
    const uint32_t n = lab_and_block(a, list, b, room);
    memcpy(docs + (size_t)b * LAB_BLOCK, room, n * sizeof *docs);
  }
}

uint32_t load_filter(const lab_and *a, unsigned list, uint32_t *docs, uint32_t n) {
  window w;
  uint32_t kept = 0;
  const uint32_t first = n ? lab_and_find_block(a, list, 0, docs[0]) : 0;
  if (!n || first >= a->list[list].nblocks) return 0;
  window_load(a, list, &w, first);
  for (uint32_t i = 0; i < n; i++)
    if (window_find(a, list, &w, docs[i]) != UINT32_MAX) docs[kept++] = docs[i];
  return kept;
}

size_t load_rank(const lab_and *a, const uint32_t *docs, uint32_t n, size_t k, gpuir_hit *hits) {
  uint32_t where[LAB_AND_TERMS];
  if (!n) return 0;
  window *w = (window *)cli_resize(NULL, a->n, sizeof *w);
  gpuir_hit *all = (gpuir_hit *)cli_resize(NULL, n, sizeof *all);
  for (unsigned l = 0; l < a->n; l++) window_load(a, l, &w[l], 0);
  for (uint32_t i = 0; i < n; i++) {
    for (unsigned l = 0; l < a->n; l++) where[l] = window_find(a, l, &w[l], docs[i]);
    all[i].docid = docs[i];
    all[i].score = lab_and_score(a, docs[i], where);
  }
  const size_t best = lab_best(all, n, k, hits);
  free(w);
  free(all);
  return best;
}

/* ---- all lists ------------------------------------------------------------------------------------------------- */

/* Returns the number of a term's list, which is added if it is new; *at: numbers + 1 by term. */
static uint32_t list_of(load_lists *l, uint32_t *at, uint64_t term) {
  if (at[term]) return at[term] - 1;
  if ((l->n & (l->n - 1)) == 0) l->list = (lab_list *)cli_resize(l->list, l->n ? 2 * l->n : 1, sizeof *l->list);
  memset(&l->list[l->n], 0, sizeof *l->list);
  l->list[l->n].term = term;
  at[term] = (uint32_t)++l->n;
  return at[term] - 1;
}

/* Reads a list, or its length. A status. */
static int read_list(const gpuir_index *index, lab_list *list, int docs) {
  gpuir_term_info info;
  int status = gpuir_term_get_info(index, list->term, &info);
  if (status) return status;
  list->n = info.df;
  if (!docs) return GPUIR_OK;
  list->docs = (uint32_t *)cli_resize(NULL, info.df, sizeof *list->docs);
  return gpuir_term_postings(index, list->term, list->docs, NULL);
}

/* Opens the lists of all queries within the index. A status. */
static int open_ands(const load_setup *setup, load_lists *l, gpuir_error *err) {
  int status = lab_shelf_open(setup->index, &l->shelf, err);
  for (size_t q = 0; q < l->nqueries && !status; q++)
    status = lab_and_open(setup->queries[q].query, l->shelf, (lab_and **)(uintptr_t)&l->ands[q]);
  return status;
}

/* Numbers the lists. A status. */
static int find_members(const load_setup *setup, load_lists *l) {
  gpuir_index_info info;
  const int status = gpuir_index_get_info(setup->index, &info);
  if (status) return status;
  uint32_t *at = (uint32_t *)cli_resize(NULL, (size_t)info.terms + 1, sizeof *at);
  memset(at, 0, ((size_t)info.terms + 1) * sizeof *at);
  for (size_t q = 0; q < l->nqueries; q++) {
    const lab_and *a = l->ands[q];
    l->query[q].k = a->empty ? 0 : a->n;
    for (unsigned i = 0; i < l->query[q].k; i++) l->query[q].member[i] = list_of(l, at, a->list[i].term);
  }
  free(at);
  return GPUIR_OK;
}

int load_lists_read(const load_setup *setup, int docs, load_lists *l) {
  gpuir_error err;
  memset(&err, 0, sizeof err);
  memset(l, 0, sizeof *l);
  l->nqueries = setup->nqueries;
  l->query = (load_members *)cli_resize(NULL, l->nqueries, sizeof *l->query);
  l->ands = (const lab_and **)cli_resize(NULL, l->nqueries, sizeof *l->ands);
  memset(l->query, 0, l->nqueries * sizeof *l->query);
  memset((void *)l->ands, 0, l->nqueries * sizeof *l->ands);
  int status = open_ands(setup, l, &err);
  if (!status) status = find_members(setup, l);
  for (size_t i = 0; i < l->n && !status && !cli_signal; i++) {
    status = read_list(setup->index, &l->list[i], docs);
    if (l->list[i].n > l->longest) l->longest = l->list[i].n;
  }
  return status ? cli_fail(setup->path, status, &err) : CLI_OK;
}

void load_lists_free(load_lists *l) {
  for (size_t q = 0; l->ands && q < l->nqueries; q++) lab_and_close((lab_and *)(uintptr_t)l->ands[q]);
  for (size_t i = 0; i < l->n; i++) free(l->list[i].docs);
  lab_shelf_close(l->shelf);
  free(l->ands);
  free(l->list);
  free(l->query);
  memset(l, 0, sizeof *l);
}

int load_lists_send(const load_lists *l, const char *codec, const lab_gpu_size *size, int sent, gpuir_cuda_lab **gpu) {
  const uint32_t **docs = (const uint32_t **)cli_resize(NULL, l->n, sizeof *docs);
  uint32_t *lengths = (uint32_t *)cli_resize(NULL, l->n, sizeof *lengths);
  gpuir_cuda_lab_desc desc;
  gpuir_error err;
  memset(&err, 0, sizeof err);
  memset(&desc, 0, sizeof desc);
  for (size_t i = 0; i < l->n; i++) {
    docs[i] = l->list[i].docs;
    lengths[i] = l->list[i].n;
  }
  desc.codec = codec;
  desc.lists = docs;
  desc.lengths = lengths;
  desc.nlists = l->n;
  desc.room = size->room;
  desc.queries = size->queries;
  desc.terms = (uint32_t)size->terms;
  desc.sent = sent;
  desc.coded = codec != NULL;
  const int status = gpuir_cuda_lab_open(&desc, gpu, &err);
  free((void *)docs);
  free(lengths);
  return status ? cli_fail("the lists on the device", status, &err) : CLI_OK;
}
