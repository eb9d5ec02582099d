/* ding_queues.c - the three queues of Ding et al. 2009, section 9, as ding_queues.h says.
 *
 * A job stands in several heaps, each in another order, and knows its place in each: whoever takes it by one takes it
 * out of all. If it stayed in the others until it came to their top, a long queue in which all are urgent would fill
 * its own order with jobs that are gone, and a server that asks what stands before a job would walk over all of these.
 * A side's own queue goes by cost, deadline and affinity, weighed: small jobs first, so that the mean delay is small;
 * then those whose time is running out; then those that should run nowhere else. As time passes, the slack of all jobs
 * falls alike, so the place of a job in that order is known when it comes.
 */
#include "ding_queues.h"

#include "../cli/cli.h"

#include <stdlib.h>
#include <string.h>

#define NOWHERE DING_SIDES /* the group of those that either side can do */
#define THETA_STEP 0.01
#define MOST_THETA 4.0

/* The orders in which a job stands; BY_ORDER is that of its own queue, or of the middle. */
enum { BY_ORDER, BY_THIEF, BY_ARRIVAL, ORDERS };

typedef struct item {
  void *job;
  double cost[DING_SIDES], key; /* key: in the order of its own queue */
  uint64_t due;
  unsigned group; /* whose own queue, or NOWHERE */
  size_t at[ORDERS]; /* its places in the heaps */
} item;

typedef struct entry {
  double key;
  uint64_t number; /* of the job, as they came: equal keys keep that order */
  size_t item;
} entry;

typedef struct heap {
  entry *at;
  size_t n, cap;
  unsigned order; /* which place of an item is its place here */
} heap;

struct ding_queues {
  ding_rules rules;
  item *items;
  size_t *spare; /* [nspare] items that no job has; there is room for all */
  size_t n, cap, nspare, waiting; /* n: items that were ever used at once */
  uint64_t came, looked; /* jobs that came; that were looked at to see whether an owner is sooner */
  heap own[DING_SIDES], steal[DING_SIDES]; /* of a side's own queue: by key; by what the other side makes of them */
  heap prefer[DING_SIDES]; /* by when they came: all that are cheaper on a side */
  heap middle; /* by when they came */
  double load[DING_SIDES]; /* costs in each own queue */
  double sum[DING_SIDES]; /* costs of all jobs that came */
  double theta[DING_SIDES];
  double busy[DING_SIDES]; /* costs of the jobs that run */
  unsigned running[DING_SIDES];
};

/* ---- heaps ---------------------------------------------------------------------------------------------------- */

static int before(const entry *a, const entry *b) {
  if (a->key < b->key || a->key > b->key) return a->key < b->key;
  return a->number < b->number;
}

static void heap_set(ding_queues *q, heap *h, size_t i, entry e) {
  h->at[i] = e;
  q->items[e.item].at[h->order] = i;
}

/* Puts an entry where it belongs, at place i or above. */
static void heap_rise(ding_queues *q, heap *h, size_t i, entry e) {
  for (; i && before(&e, &h->at[(i - 1) / 2]); i = (i - 1) / 2) heap_set(q, h, i, h->at[(i - 1) / 2]);
  heap_set(q, h, i, e);
}

static void heap_push(ding_queues *q, heap *h, double key, uint64_t number, size_t item_) {
  const entry e = {key, number, item_};
  if (h->n == h->cap) {
    h->cap = h->cap ? 2 * h->cap : 256;
    h->at = (entry *)cli_resize(h->at, h->cap, sizeof *h->at);
  }
  heap_rise(q, h, h->n++, e);
}

/* Takes out the entry at place i: the last one goes down from there, or up. */
static void heap_remove(ding_queues *q, heap *h, size_t i) {
  const entry last = h->at[--h->n];
  size_t child;
  if (i == h->n) return;
  while ((child = 2 * i + 1) < h->n) {
    child += child + 1 < h->n && before(&h->at[child + 1], &h->at[child]);
    if (!before(&h->at[child], &last)) break;
    heap_set(q, h, i, h->at[child]);
    i = child;
  }
  heap_rise(q, h, i, last);
}

/* Returns the first job; NULL: none. */
static item *heap_first(const ding_queues *q, const heap *h) { return h->n ? &q->items[h->at[0].item] : NULL; }

/* ---- jobs come ------------------------------------------------------------------------------------------------ */

ding_queues *ding_open(const ding_rules *rules) {
  ding_queues *q = (ding_queues *)cli_resize(NULL, 1, sizeof *q);
  memset(q, 0, sizeof *q);
  q->rules = *rules;
  q->theta[DING_CPU] = q->theta[DING_GPU] = rules->theta;
  for (unsigned s = 0; s < DING_SIDES; s++) {
    q->steal[s].order = BY_THIEF;
    q->prefer[s].order = BY_ARRIVAL;
  }
  return q;
}

void ding_close(ding_queues *q) {
  if (!q) return;
  for (unsigned s = 0; s < DING_SIDES; s++) {
    free(q->own[s].at);
    free(q->steal[s].at);
    free(q->prefer[s].at);
  }
  free(q->middle.at);
  free(q->items);
  free(q->spare);
  free(q);
}

double ding_load(const ding_queues *q, unsigned side) {
  return q->load[side] / (q->rules.servers[side] ? q->rules.servers[side] : 1);
}

double ding_theta(const ding_queues *q, unsigned side) { return q->theta[side]; }

size_t ding_waiting(const ding_queues *q) { return q->waiting; }

uint64_t ding_looked(const ding_queues *q) { return q->looked; }

/* Raises the threshold of the side for which more work waits, and lowers the other's. */
static void adapt(ding_queues *q) {
  const double cpu = ding_load(q, DING_CPU), gpu = ding_load(q, DING_GPU);
  const double step = cpu > gpu ? THETA_STEP : cpu < gpu ? -THETA_STEP : 0;
  q->theta[DING_CPU] += step;
  q->theta[DING_GPU] -= step;
  for (unsigned s = 0; s < DING_SIDES; s++) {
    if (q->theta[s] < 0) q->theta[s] = 0;
    if (q->theta[s] > MOST_THETA) q->theta[s] = MOST_THETA;
  }
}

static unsigned group_of(const ding_queues *q, const double cost[DING_SIDES]) {
  if (q->rules.mode == DING_ONLY_CPU) return DING_CPU;
  if (q->rules.mode == DING_ONLY_GPU) return DING_GPU;
  if (q->rules.mode == DING_SERIALIZED) return NOWHERE;
  if (cost[DING_GPU] * (1 + q->theta[DING_GPU]) <= cost[DING_CPU]) return DING_GPU;
  if (cost[DING_CPU] * (1 + q->theta[DING_CPU]) <= cost[DING_GPU]) return DING_CPU;
  return NOWHERE;
}

/* Returns the side that does a job more cheaply, if both may. */
static unsigned better_side(const ding_queues *q, const item *x) {
  if (q->rules.mode == DING_ONLY_CPU || q->rules.mode == DING_ONLY_GPU) return x->group;
  return x->cost[DING_GPU] < x->cost[DING_CPU] ? DING_GPU : DING_CPU;
}

/* Where a job stands in an own queue: cost in mean costs, deadline in deadlines, affinity as a part of the other's
 * cost. */
static double key_of(const ding_queues *q, const item *x) {
  const unsigned side = x->group;
  const double *w = q->rules.weight, mean = q->sum[side] / (double)q->came;
  const double last = (double)x->due + q->rules.deadline;
  return w[0] * x->cost[side] / mean + w[1] * last / q->rules.deadline + w[2] * x->cost[side] / x->cost[!side];
}

/* Returns the number of an item for a new job. */
static size_t new_item(ding_queues *q) {
  if (q->nspare) return q->spare[--q->nspare];
  if (q->n == q->cap) {
    q->cap = q->cap ? 2 * q->cap : 1024;
    q->items = (item *)cli_resize(q->items, q->cap, sizeof *q->items);
    q->spare = (size_t *)cli_resize(q->spare, q->cap, sizeof *q->spare);
  }
  return q->n++;
}

void ding_add(ding_queues *q, void *job, const double cost[DING_SIDES], uint64_t due) {
  const size_t number = new_item(q);
  const uint64_t came = q->came++;
  item *x = &q->items[number];
  if (q->rules.adaptive) adapt(q);
  x->job = job;
  x->due = due;
  for (unsigned s = 0; s < DING_SIDES; s++) {
    x->cost[s] = cost[s];
    q->sum[s] += cost[s];
  }
  x->group = group_of(q, cost);
  q->waiting++;
  heap_push(q, &q->prefer[better_side(q, x)], (double)due, came, number);
  if (x->group == NOWHERE) {
    heap_push(q, &q->middle, (double)due, came, number);
    return;
  }
  x->key = key_of(q, x);
  q->load[x->group] += cost[x->group];
  heap_push(q, &q->own[x->group], x->key, came, number);
  heap_push(q, &q->steal[x->group], cost[!x->group] / cost[x->group], came, number);
}

/* ---- jobs go -------------------------------------------------------------------------------------------------- */

/* Takes a job out of all heaps. */
static void take_out(ding_queues *q, item *x) {
  heap_remove(q, &q->prefer[better_side(q, x)], x->at[BY_ARRIVAL]);
  if (x->group == NOWHERE) {
    heap_remove(q, &q->middle, x->at[BY_ORDER]);
  } else {
    heap_remove(q, &q->own[x->group], x->at[BY_ORDER]);
    heap_remove(q, &q->steal[x->group], x->at[BY_THIEF]);
    q->load[x->group] -= x->cost[x->group];
  }
  q->spare[q->nspare++] = (size_t)(x - q->items);
  q->waiting--;
}

/* Adds to `ahead` the costs of the jobs that stand before x in its owner's queue, from place i of the heap down, until
 * that is more than `enough`. What is below a job in a heap comes after it, so nothing behind x is looked at: a server
 * that may not steal asks whenever a job comes, under the lock, and with a walk over the whole queue a long queue would
 * be answered the more slowly the longer it is. */
static double add_ahead(ding_queues *q, const item *x, size_t i, double ahead, double enough) {
  const heap *own = &q->own[x->group];
  if (i >= own->n || own->at[i].key > x->key || ahead > enough) return ahead;
  const item *other = &q->items[own->at[i].item];
  q->looked++;
  if (other != x) ahead += other->cost[x->group];
  ahead = add_ahead(q, x, 2 * i + 1, ahead, enough);
  return add_ahead(q, x, 2 * i + 2, ahead, enough);
}

/* Whether the owner of a job would begin and end it before another side had done it: what its servers do, half of which
 * is done on the average, and what stands before the job in its queue takes longer than that, or not. */
static int owner_is_sooner(ding_queues *q, const item *x, unsigned thief) {
  const unsigned owner = x->group;
  const double servers = q->rules.servers[owner], enough = (x->cost[thief] - x->cost[owner]) * servers;
  const double now = q->running[owner] < q->rules.servers[owner] ? 0 : q->busy[owner] / 2;
  return servers >= 1 && add_ahead(q, x, 0, now, enough) <= enough;
}

static item *choose_serialized(const ding_queues *q, unsigned side) {
  item *x = q->running[DING_CPU] + q->running[DING_GPU] ? NULL : heap_first(q, &q->middle);
  return x && better_side(q, x) == side ? x : NULL;
}

/* Returns the job that a free server of a side does next, and in *why why; NULL: none. */
static item *choose(ding_queues *q, unsigned side, uint64_t now, int *why) {
  item *x;
  *why = DING_OWN;
  if (q->rules.mode == DING_SERIALIZED) return choose_serialized(q, side);
  x = heap_first(q, &q->prefer[side]);
  *why = DING_URGENT;
  if (x && (double)now - (double)x->due >= q->rules.urgent * q->rules.deadline) return x;
  *why = DING_OWN;
  x = heap_first(q, &q->own[side]);
  if (x || q->rules.mode != DING_PARALLEL) return x;
  *why = DING_MIDDLE;
  x = heap_first(q, &q->middle);
  if (x) return x;
  *why = DING_STOLEN;
  x = heap_first(q, &q->steal[!side]);
  return x && (q->rules.plain || !owner_is_sooner(q, x, side)) ? x : NULL;
}

int ding_has(ding_queues *q, unsigned side, uint64_t now) {
  int why;
  return choose(q, side, now, &why) != NULL;
}

void *ding_take(ding_queues *q, unsigned side, uint64_t now, double *cost, int *why) {
  item *x = choose(q, side, now, why);
  if (!x) return NULL;
  *cost = x->cost[side];
  q->running[side]++;
  q->busy[side] += *cost;
  take_out(q, x);
  return x->job;
}

void ding_done(ding_queues *q, unsigned side, double cost) {
  q->running[side]--;
  q->busy[side] -= cost;
}

void *ding_take_any(ding_queues *q) {
  const heap *const all[] = {&q->own[DING_CPU], &q->own[DING_GPU], &q->middle};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    item *x = heap_first(q, all[i]);
    if (!x) continue;
    take_out(q, x);
    return x->job;
  }
  return NULL;
}
