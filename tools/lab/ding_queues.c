/* ding_queues.c - the three queues of Ding et al. 2009, section 9, as ding_queues.h says.
 *
 * A job stands in several heaps, each in another order; who takes it by one leaves it in the others, which pass it over
 * when it comes to their top. A side's own queue goes by cost, deadline and affinity, weighed: small jobs first, so
 * that the mean delay is small; then those whose time is running out; then those that should run nowhere else. As time
 * passes, the slack of all jobs falls alike, so the place of a job in that order is known when it comes.
 */
#include "ding_queues.h"

#include "../cli/cli.h"

#include <stdlib.h>
#include <string.h>

#define NOWHERE DING_SIDES /* the group of those that either side can do */
#define THETA_STEP 0.01
#define MOST_THETA 4.0

typedef struct item {
  void *job; /* NULL: taken */
  double cost[DING_SIDES], key; /* key: in the order of its own queue */
  uint64_t due;
  unsigned group; /* whose own queue, or NOWHERE */
} item;

typedef struct entry {
  double key;
  size_t item; /* numbers grow with time, so equal keys keep the order in which they came */
} entry;

typedef struct heap {
  entry *at;
  size_t n, cap;
} heap;

struct ding_queues {
  ding_rules rules;
  item *items;
  size_t n, cap, waiting;
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
  return a->item < b->item;
}

/* Puts an entry where it belongs; there is room. */
static void heap_put(heap *h, entry e) {
  size_t i = h->n++;
  for (; i && before(&e, &h->at[(i - 1) / 2]); i = (i - 1) / 2) h->at[i] = h->at[(i - 1) / 2];
  h->at[i] = e;
}

/* A full heap drops the jobs that were taken by another heap before it grows: otherwise it would keep all that ever
 * came while its own first jobs are never looked at, as when every job is urgent. */
static void heap_push(ding_queues *q, heap *h, double key, size_t number) {
  const entry e = {key, number};
  if (h->n == h->cap) {
    const size_t n = h->n;
    h->n = 0;
    for (size_t i = 0; i < n; i++)
      if (q->items[h->at[i].item].job) heap_put(h, h->at[i]);
    if (h->n >= h->cap / 2) {
      h->cap = h->cap ? 2 * h->cap : 256;
      h->at = (entry *)cli_resize(h->at, h->cap, sizeof *h->at);
    }
  }
  heap_put(h, e);
}

static void heap_drop(heap *h) {
  const entry last = h->at[--h->n];
  size_t i = 0, child;
  while ((child = 2 * i + 1) < h->n) {
    child += child + 1 < h->n && before(&h->at[child + 1], &h->at[child]);
    if (!before(&h->at[child], &last)) break;
    h->at[i] = h->at[child];
    i = child;
  }
  h->at[i] = last;
}

/* Returns the first job that is still there; NULL: none. */
static item *heap_first(ding_queues *q, heap *h) {
  while (h->n && !q->items[h->at[0].item].job) heap_drop(h);
  return h->n ? &q->items[h->at[0].item] : NULL;
}

/* ---- jobs come ------------------------------------------------------------------------------------------------ */

ding_queues *ding_open(const ding_rules *rules) {
  ding_queues *q = (ding_queues *)cli_resize(NULL, 1, sizeof *q);
  memset(q, 0, sizeof *q);
  q->rules = *rules;
  q->theta[DING_CPU] = q->theta[DING_GPU] = rules->theta;
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
  free(q);
}

double ding_load(const ding_queues *q, unsigned side) {
  return q->load[side] / (q->rules.servers[side] ? q->rules.servers[side] : 1);
}

double ding_theta(const ding_queues *q, unsigned side) { return q->theta[side]; }

size_t ding_waiting(const ding_queues *q) { return q->waiting; }

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
static double key_of(const ding_queues *q, const item *x, size_t jobs) {
  const unsigned side = x->group;
  const double *w = q->rules.weight, mean = q->sum[side] / (double)jobs;
  const double last = (double)x->due + q->rules.deadline;
  return w[0] * x->cost[side] / mean + w[1] * last / q->rules.deadline + w[2] * x->cost[side] / x->cost[!side];
}

void ding_add(ding_queues *q, void *job, const double cost[DING_SIDES], uint64_t due) {
  const size_t number = q->n++;
  if (q->n > q->cap) {
    q->cap = q->cap ? 2 * q->cap : 1024;
    q->items = (item *)cli_resize(q->items, q->cap, sizeof *q->items);
  }
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
  heap_push(q, &q->prefer[better_side(q, x)], (double)due, number);
  if (x->group == NOWHERE) {
    heap_push(q, &q->middle, (double)due, number);
    return;
  }
  x->key = key_of(q, x, q->n);
  q->load[x->group] += cost[x->group];
  heap_push(q, &q->own[x->group], x->key, number);
  heap_push(q, &q->steal[x->group], cost[!x->group] / cost[x->group], number);
}

/* ---- jobs go -------------------------------------------------------------------------------------------------- */

static void *hand_out(ding_queues *q, item *x, unsigned side, int how, double *cost, int *why) {
  void *job = x->job;
  x->job = NULL;
  if (x->group != NOWHERE) q->load[x->group] -= x->cost[x->group];
  *cost = x->cost[side];
  *why = how;
  q->waiting--;
  q->running[side]++;
  q->busy[side] += *cost;
  return job;
}

/* Adds to `ahead` the costs of the jobs that stand before x in its owner's queue, from place i of the heap down, until
 * that is more than `enough`. What is below a job in a heap comes after it, so nothing behind x is looked at: a server
 * that may not steal asks at each arrival, under the lock, and with a walk over the whole queue a long queue would be
 * answered the more slowly the longer it is. */
static double add_ahead(const ding_queues *q, const item *x, size_t i, double ahead, double enough) {
  const heap *own = &q->own[x->group];
  if (i >= own->n || own->at[i].key > x->key || ahead > enough) return ahead;
  const item *other = &q->items[own->at[i].item];
  if (other->job && other != x) ahead += other->cost[x->group];
  ahead = add_ahead(q, x, 2 * i + 1, ahead, enough);
  return add_ahead(q, x, 2 * i + 2, ahead, enough);
}

/* Whether the owner of a job would begin and end it before another side had done it: what its servers do, half of which
 * is done on the average, and what stands before the job in its queue takes longer than that, or not. */
static int owner_is_sooner(const ding_queues *q, const item *x, unsigned thief) {
  const unsigned owner = x->group;
  const double servers = q->rules.servers[owner], enough = (x->cost[thief] - x->cost[owner]) * servers;
  const double now = q->running[owner] < q->rules.servers[owner] ? 0 : q->busy[owner] / 2;
  return servers >= 1 && add_ahead(q, x, 0, now, enough) <= enough;
}

static void *take_serialized(ding_queues *q, unsigned side, double *cost, int *why) {
  item *x = q->running[DING_CPU] + q->running[DING_GPU] ? NULL : heap_first(q, &q->middle);
  if (!x || better_side(q, x) != side) return NULL;
  return hand_out(q, x, side, DING_OWN, cost, why);
}

void *ding_take(ding_queues *q, unsigned side, uint64_t now, double *cost, int *why) {
  item *x;
  if (q->rules.mode == DING_SERIALIZED) return take_serialized(q, side, cost, why);
  x = heap_first(q, &q->prefer[side]);
  if (x && (double)now - (double)x->due >= q->rules.urgent * q->rules.deadline)
    return hand_out(q, x, side, DING_URGENT, cost, why);
  x = heap_first(q, &q->own[side]);
  if (x) return hand_out(q, x, side, DING_OWN, cost, why);
  if (q->rules.mode != DING_PARALLEL) return NULL;
  x = heap_first(q, &q->middle);
  if (x) return hand_out(q, x, side, DING_MIDDLE, cost, why);
  x = heap_first(q, &q->steal[!side]);
  if (!x || (!q->rules.plain && owner_is_sooner(q, x, side))) return NULL;
  return hand_out(q, x, side, DING_STOLEN, cost, why);
}

void ding_done(ding_queues *q, unsigned side, double cost) {
  q->running[side]--;
  q->busy[side] -= cost;
}

void *ding_take_any(ding_queues *q) {
  heap *const all[] = {&q->own[DING_CPU], &q->own[DING_GPU], &q->middle};
  double cost;
  int why;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    item *x = heap_first(q, all[i]);
    if (x) return hand_out(q, x, DING_CPU, DING_OWN, &cost, &why);
  }
  return NULL;
}
