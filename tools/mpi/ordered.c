/* ordered.c - hits in the order of a field, or one of each value: every rank sends the values of its best hits, by
 * which
 * the first one merges them.
 *
 * A rank's k best are enough. What comes before a hit in its shard comes before it in the collection, and of the hits
 * with one value the best of all shards is the best of its own. */
#include "mpi.h"

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define NO_VALUE UINT32_MAX
#define MOST_BYTES ((uint64_t)1 << 30) /* of a message, whose bytes MPI counts in an int */

/* ---- what ranks send ---- */

void mpi_gather(const cli_buf *own, cli_buf *all, size_t *places) {
  uint64_t n = own->n, *sizes = (uint64_t *)cli_resize(NULL, (size_t)mpi_ranks, sizeof *sizes);
  size_t sum = 0;
  MPI_Gather(&n, 1, MPI_UINT64_T, sizes, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  for (uint64_t at = 0; mpi_rank && at < n; at += MOST_BYTES)
    MPI_Send(own->p + at, (int)(n - at < MOST_BYTES ? n - at : MOST_BYTES), MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  for (int r = 0; !mpi_rank && r < mpi_ranks; r++) {
    places[r] = sum;
    sum += (size_t)sizes[r];
  }
  if (!mpi_rank) {
    places[mpi_ranks] = sum;
    if (all->cap < sum) all->p = (char *)cli_resize(all->p, all->cap = sum, 1);
    if (own->n) memcpy(all->p, own->p, own->n);
  }
  for (int r = 1; !mpi_rank && r < mpi_ranks; r++)
    for (uint64_t at = 0; at < sizes[r]; at += MOST_BYTES)
      MPI_Recv(all->p + places[r] + at, (int)(sizes[r] - at < MOST_BYTES ? sizes[r] - at : MOST_BYTES), MPI_BYTE, r, 0,
          MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  free(sizes);
}

int mpi_value_compare(int column, const char *a, size_t a_len, const char *b, size_t b_len) {
  const size_t n = a_len < b_len ? a_len : b_len;
  size_t i = 0;
  while (i < n && a[i] == b[i]) i++;
  if (i == n) return a_len < b_len ? -1 : a_len > b_len;
  if (column == GPUIR_PATH && i && a[i] == '/') return -1; /* a first one is part of the name */
  if (column == GPUIR_PATH && i && b[i] == '/') return 1;
  return (unsigned char)a[i] < (unsigned char)b[i] ? -1 : 1;
}

/* ---- the values of hits ---- */

/* A field that hits are ordered or collapsed by. */
typedef struct column {
  int asked, falling;
  unsigned field;
  gpuir_field of;
} column;

/* A hit, as it is sent: its values' bytes follow. A number or a date has 8. */
typedef struct sent {
  gpuir_hit hit; /* by its number in the collection */
  uint32_t order_len, group_len; /* NO_VALUE: it has none */
} sent;

typedef struct entry {
  sent s;
  const char *order, *group;
} entry;

/* Finds the field that `name` is, which the queries have been parsed with. */
static void column_find(const gpuir_index *index, const char *name, column *c) {
  memset(c, 0, sizeof *c);
  if (!name || !*name) return;
  c->asked = 1;
  c->falling = *name == '-';
  while (!gpuir_field_get(index, c->field, &c->of) && strcmp(c->of.name, name + c->falling) != 0) c->field++;
}

/* Appends the first value of a document. Returns its bytes. */
static uint32_t put_value(const gpuir_index *index, const column *c, uint32_t docid, cli_buf *out) {
  char room[GPUIR_MAX_VALUE + 1];
  gpuir_value v;
  if (!c->asked || gpuir_doc_value(index, docid, c->field, 0, &v, room)) return NO_VALUE;
  if (v.text) cli_buf_add(out, v.text, v.len);
  else cli_buf_add(out, &v.number, sizeof v.number);
  return (uint32_t)(v.text ? v.len : sizeof v.number);
}

static void put_hit(const mpi_shard *shard, const column *order, const column *group, gpuir_hit hit, cli_buf *out) {
  const size_t at = out->n;
  sent s;
  memset(&s, 0, sizeof s);
  s.hit.docid = hit.docid + (uint32_t)shard->place.first;
  s.hit.score = hit.score;
  cli_buf_add(out, &s, sizeof s);
  s.order_len = put_value(shard->index, order, hit.docid, out);
  s.group_len = put_value(shard->index, group, hit.docid, out);
  memcpy(out->p + at, &s, sizeof s);
}

/* Takes the next hit of a rank, whose bytes are [*at, end). 0 behind the last. */
static int take_hit(const char **at, const char *end, entry *e) {
  if (*at == end) return 0;
  memcpy(&e->s, *at, sizeof e->s);
  e->order = *at + sizeof e->s;
  e->group = e->order + (e->s.order_len == NO_VALUE ? 0 : e->s.order_len);
  *at = e->group + (e->s.group_len == NO_VALUE ? 0 : e->s.group_len);
  return 1;
}

/* ---- merging, on the first rank ---- */

static int compare_values(const column *c, const char *a, uint32_t a_len, const char *b, uint32_t b_len) {
  int64_t x, y;
  if (c->of.column == GPUIR_KEY || c->of.column == GPUIR_PATH)
    return mpi_value_compare(c->of.column, a, a_len, b, b_len);
  memcpy(&x, a, sizeof x);
  memcpy(&y, b, sizeof y);
  return x < y ? -1 : x > y;
}

static int is_before(const column *order, const entry *a, const entry *b) {
  const int has_a = a->s.order_len != NO_VALUE, has_b = b->s.order_len != NO_VALUE;
  int c = 0;
  if (!order->asked && a->s.hit.score != b->s.hit.score) return a->s.hit.score > b->s.hit.score;
  if (order->asked && has_a != has_b) return has_a;
  if (order->asked && has_a) c = compare_values(order, a->order, a->s.order_len, b->order, b->s.order_len);
  if (c) return order->falling ? c > 0 : c < 0;
  return a->s.hit.docid < b->s.hit.docid;
}

/* The values that hits have been taken of: a hash table of entries, NULL where there is none. */
typedef struct groups {
  entry *taken;
  size_t n, *slots, nslots; /* the number of one, plus 1 */
} groups;

/* Takes a hit, unless one of its value was taken. Returns whether it did. */
static int take_group(groups *g, const entry *e) {
  size_t at;
  if (e->s.group_len == NO_VALUE) return 1;
  at = (size_t)XXH3_64bits(e->group, e->s.group_len) & (g->nslots - 1);
  for (; g->slots[at]; at = (at + 1) & (g->nslots - 1)) {
    const entry *t = &g->taken[g->slots[at] - 1];
    if (t->s.group_len == e->s.group_len && !memcmp(t->group, e->group, e->s.group_len)) return 0;
  }
  g->taken[g->n] = *e;
  g->slots[at] = ++g->n;
  return 1;
}

/* Merges the hits of all ranks, each of which has them in order. */
static void merge(const column *order, size_t k, const char *bytes, const size_t *places, gpuir_hit *hits) {
  const size_t ranks = (size_t)mpi_ranks;
  entry *heads = (entry *)cli_resize(NULL, ranks, sizeof *heads);
  const char **at = (const char **)cli_resize(NULL, ranks, sizeof *at);
  int *left = (int *)cli_resize(NULL, ranks, sizeof *left);
  groups g;
  memset(&g, 0, sizeof g);
  for (g.nslots = 16; g.nslots < 2 * k;) g.nslots *= 2;
  g.slots = (size_t *)cli_resize(NULL, g.nslots, sizeof *g.slots);
  memset(g.slots, 0, g.nslots * sizeof *g.slots);
  g.taken = (entry *)cli_resize(NULL, k, sizeof *g.taken);
  for (size_t r = 0; r < ranks; r++) {
    at[r] = bytes + places[r];
    left[r] = take_hit(&at[r], bytes + places[r + 1], &heads[r]);
  }
  for (size_t n = 0; n < k;) {
    size_t best = ranks;
    for (size_t r = 0; r < ranks; r++)
      if (left[r] && (best == ranks || is_before(order, &heads[r], &heads[best]))) best = r;
    if (best == ranks) break;
    if (take_group(&g, &heads[best])) hits[n++] = heads[best].s.hit;
    left[best] = take_hit(&at[best], bytes + places[best + 1], &heads[best]);
  }
  free(heads);
  free(at);
  free(left);
  free(g.slots);
  free(g.taken);
}

/* ---- asking ---- */

/* Asks this rank's shard all queries of a batch that are there. */
static void search_all(mpi_search *s, const mpi_batch *b, gpuir_hit *found, uint32_t *counts) {
  const gpuir_query **queries = (const gpuir_query **)cli_resize(NULL, b->n, sizeof *queries);
  size_t *places = (size_t *)cli_resize(NULL, b->n, sizeof *places), n = 0;
  int *statuses = (int *)cli_resize(NULL, b->n, sizeof *statuses), status;
  gpuir_batch *batch = NULL;
  gpuir_batch_desc d;
  memset(&d, 0, sizeof d);
  memset(statuses, 0, b->n * sizeof *statuses);
  for (size_t i = 0; i < b->n; i++) {
    if (!b->queries[i]) continue;
    places[n] = i;
    queries[n++] = b->queries[i];
  }
  d.queries = queries;
  d.nq = n;
  d.k = s->k;
  d.hits = found;
  d.counts = counts;
  d.statuses = statuses;
  status = n ? gpuir_search_begin(s->searcher, &d, &batch) : GPUIR_OK;
  if (batch) (void)gpuir_search_finish(batch); /* each query has its own status */
  for (size_t i = 0; i < n; i++) {
    if (!batch) statuses[i] = status;
    if (statuses[i]) mpi_search_failed(s, places[i], statuses[i]);
    if (statuses[i]) counts[i] = 0;
  }
  free(queries);
  free(places);
  free(statuses);
}

void mpi_ask_ordered(mpi_search *s, const mpi_batch *b, gpuir_hit *hits, int everywhere) {
  gpuir_hit *found = (gpuir_hit *)cli_resize(NULL, b->n * s->k, sizeof *found);
  uint32_t *counts = (uint32_t *)cli_resize(NULL, b->n, sizeof *counts);
  size_t *places = (size_t *)cli_resize(NULL, (size_t)mpi_ranks + 1, sizeof *places), which = 0;
  cli_buf own = {NULL, 0, 0}, all = {NULL, 0, 0};
  column order, group;
  column_find(s->shard->index, s->desc.sort, &order);
  column_find(s->shard->index, s->desc.collapse, &group);
  search_all(s, b, found, counts);
  for (size_t i = 0; i < b->n; i++) {
    if (!b->queries[i]) continue;
    own.n = 0;
    for (size_t j = 0; j < counts[which]; j++) put_hit(s->shard, &order, &group, found[which * s->k + j], &own);
    which++;
    mpi_gather(&own, &all, places); /* one by one, so that not all values are in memory at once */
    if (!mpi_rank) merge(&order, s->k, all.p, places, hits + i * s->k);
  }
  if (everywhere) MPI_Bcast(hits, (int)b->n, s->type, 0, MPI_COMM_WORLD);
  free(found);
  free(counts);
  free(places);
  cli_buf_free(&own);
  cli_buf_free(&all);
}
