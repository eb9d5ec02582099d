/* ding_queues.c - the queues of Ding et al.: what is taken, against the rules read off a plain list of jobs; every job
 * goes once, in every mode, whoever takes when
 */
#include "tools/lab/ding_queues.c"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "rng.h"

void *cli_resize(void *p, size_t n, size_t size) {
  p = realloc(p, n && size ? n * size : 1);
  assert_non_null(p);
  return p;
}

#define MOST 300
enum { MIDDLE = DING_SIDES };

typedef struct plain {
  double cost[DING_SIDES], key;
  uint64_t due;
  unsigned group, taken;
} plain;

static plain jobs[MOST];
static size_t n;
static double sums[DING_SIDES];
static unsigned running[DING_SIDES];
static double busy[DING_SIDES];

static ding_rules rules_of(int mode) {
  ding_rules r;
  memset(&r, 0, sizeof r);
  r.mode = mode;
  r.theta = 0.2;
  r.deadline = 1000;
  r.urgent = 0.5;
  r.weight[0] = r.weight[1] = 1;
  r.weight[2] = 0.5;
  r.servers[DING_CPU] = 2;
  r.servers[DING_GPU] = 1;
  return r;
}

static unsigned plain_group(const ding_rules *r, const double *cost) {
  if (r->mode == DING_ONLY_CPU) return DING_CPU;
  if (r->mode == DING_ONLY_GPU) return DING_GPU;
  if (r->mode == DING_SERIALIZED) return MIDDLE;
  if (cost[DING_GPU] * (1 + r->theta) <= cost[DING_CPU]) return DING_GPU;
  return cost[DING_CPU] * (1 + r->theta) <= cost[DING_GPU] ? DING_CPU : MIDDLE;
}

static void add(ding_queues *q, const ding_rules *r, uint64_t due) {
  plain *p = &jobs[n++];
  memset(p, 0, sizeof *p);
  p->due = due;
  for (unsigned s = 0; s < DING_SIDES; s++) {
    p->cost[s] = 1 + below(r->mode == DING_SERIALIZED ? 40 : 100);
    sums[s] += p->cost[s];
  }
  p->group = plain_group(r, p->cost);
  if (p->group != MIDDLE)
    p->key = p->cost[p->group] / (sums[p->group] / (double)n) + ((double)due + r->deadline) / r->deadline +
        0.5 * p->cost[p->group] / p->cost[!p->group];
  ding_add(q, p, p->cost, due);
}

static unsigned better(const ding_rules *r, const plain *p) {
  if (r->mode == DING_ONLY_CPU || r->mode == DING_ONLY_GPU) return p->group;
  return p->cost[DING_GPU] < p->cost[DING_CPU];
}

/* The first job of a group in an order, the least value of `by` first; NULL: none. */
static plain *first(const ding_rules *r, unsigned group, unsigned prefers, double (*by)(const plain *)) {
  plain *best = NULL;
  for (size_t i = 0; i < n; i++) {
    plain *p = &jobs[i];
    if (p->taken || (group <= MIDDLE && p->group != group) || (prefers < DING_SIDES && better(r, p) != prefers))
      continue;
    if (!best || by(p) < by(best)) best = p;
  }
  return best;
}

static double by_due(const plain *p) { return (double)p->due; }
static double by_key(const plain *p) { return p->key; }
static double by_thief(const plain *p) { return p->cost[!p->group] / p->cost[p->group]; }

static int plain_sooner(const ding_rules *r, const plain *p, unsigned thief) {
  double ahead = running[p->group] < r->servers[p->group] ? 0 : busy[p->group] / 2;
  for (size_t i = 0; i < n; i++)
    if (!jobs[i].taken && &jobs[i] != p && jobs[i].group == p->group && jobs[i].key <= p->key)
      ahead += jobs[i].cost[p->group];
  return ahead <= (p->cost[thief] - p->cost[p->group]) * r->servers[p->group];
}

/* What a side should take now. */
static plain *plain_take(const ding_rules *r, unsigned side, uint64_t now, int *why) {
  plain *p;
  *why = DING_OWN;
  if (r->mode == DING_SERIALIZED) {
    p = running[0] + running[1] ? NULL : first(r, MIDDLE, MIDDLE, by_due);
    return p && better(r, p) == side ? p : NULL;
  }
  p = first(r, MIDDLE + 1, side, by_due);
  *why = DING_URGENT;
  if (p && now - p->due >= 500) return p;
  *why = DING_OWN;
  p = first(r, side, MIDDLE, by_key);
  if (p || r->mode != DING_PARALLEL) return p;
  *why = DING_MIDDLE;
  p = first(r, MIDDLE, MIDDLE, by_due);
  if (p) return p;
  *why = DING_STOLEN;
  p = first(r, !side, MIDDLE, by_thief);
  return p && (r->plain || !plain_sooner(r, p, side)) ? p : NULL;
}

/* One step of a history: a server takes, or does not. */
static size_t take(ding_queues *q, const ding_rules *r, unsigned side, uint64_t now, size_t *of) {
  int want_why, why = -1;
  double cost = 0;
  plain *want = plain_take(r, side, now, &want_why), *got = (plain *)ding_take(q, side, now, &cost, &why);
  assert_ptr_equal(got, want);
  if (!got) return 0;
  assert_int_equal(got->taken, 0);
  assert_int_equal(why, want_why);
  assert_true(fabs(cost - got->cost[side]) < 1e-12);
  got->taken = 1;
  running[side]++;
  busy[side] += cost;
  of[why]++;
  if (below(2)) return 1;
  ding_done(q, side, cost);
  running[side]--;
  busy[side] -= cost;
  return 1;
}

static void history(const ding_rules *r, size_t *of) {
  ding_queues *q = ding_open(r);
  uint64_t now = 1000;
  size_t taken = 0;
  n = 0;
  memset(sums, 0, sizeof sums);
  memset(running, 0, sizeof running);
  memset(busy, 0, sizeof busy);
  while (n < MOST) {
    now += below(20);
    if (below(5) < 3) add(q, r, now);
    else taken += take(q, r, below(2), now, of);
    assert_int_equal(ding_waiting(q), n - taken);
  }
  while (taken < MOST / 2) { /* all prefer somebody, and soon all are urgent */
    now += 10;
    for (unsigned s = 0; s < DING_SIDES; s++) {
      while (running[s]) {
        ding_done(q, s, busy[s] / running[s]);
        busy[s] -= busy[s] / running[s];
        running[s]--;
      }
      taken += take(q, r, s, now, of);
    }
  }
  size_t left = 0;
  plain *p;
  while ((p = (plain *)ding_take_any(q)) != NULL) {
    assert_int_equal(p->taken, 0);
    p->taken = 1;
    left++;
  }
  assert_int_equal(taken + left, MOST);
  assert_int_equal(ding_waiting(q), 0);
  ding_close(q);
}

static void histories(void **state) {
  size_t of[DING_WHYS];
  (void)state;
  for (int mode = DING_PARALLEL; mode <= DING_SERIALIZED; mode++) {
    memset(of, 0, sizeof of);
    for (int round = 0; round < 20; round++) {
      ding_rules r = rules_of(mode);
      r.plain = round & 1;
      r.urgent = 0.5;
      history(&r, of);
    }
    assert_true(of[DING_OWN] > 20);
    if (mode == DING_PARALLEL) assert_true(of[DING_MIDDLE] > 20 && of[DING_STOLEN] > 20 && of[DING_URGENT] > 20);
    else assert_int_equal(of[DING_MIDDLE] + of[DING_STOLEN], 0);
  }
}

/* A thief leaves what its owner would do sooner, unless it is told not to ask. */
static void stealing(void **state) {
  const double cost[DING_SIDES] = {10, 100};
  (void)state;
  for (int plain_ = 0; plain_ < 2; plain_++) {
    ding_rules r = rules_of(DING_PARALLEL);
    int job[40], why;
    double c;
    r.plain = plain_;
    r.weight[0] = r.weight[1] = r.weight[2] = 1;
    ding_queues *q = ding_open(&r);
    ding_add(q, &job[0], cost, 1);
    assert_true((ding_take(q, DING_GPU, 2, &c, &why) != NULL) == plain_);
    if (!plain_) { /* 180 wait: a job before the last of so many; the first in their order is equal to all others */
      for (int i = 1; i < 40; i++) ding_add(q, &job[i], cost, 1);
      assert_true(ding_load(q, DING_CPU) > 199 && ding_load(q, DING_CPU) < 201);
      for (int i = 0; i < 2; i++) assert_non_null(ding_take(q, DING_CPU, 2, &c, &why));
      assert_int_equal(why, DING_OWN);
    }
    ding_close(q);
  }
}

/* Jobs that one heap gave out leave the others, too, though those are never looked at: all are urgent here, and go in
 * the order in which they came. Places of jobs that are gone are used again. */
static void taken_elsewhere(void **state) {
  ding_rules r = rules_of(DING_PARALLEL);
  static int job[20000];
  double c;
  int why;
  (void)state;
  ding_queues *q = ding_open(&r);
  for (int i = 0; i < 20000; i++) {
    const double cost[DING_SIDES] = {10 + (double)below(5), 100};
    ding_add(q, &job[i], cost, (uint64_t)i);
    if (i >= 100) assert_ptr_equal(ding_take(q, DING_CPU, (uint64_t)i + 1000000, &c, &why), &job[i - 100]);
    if (i >= 100) assert_int_equal(why, DING_URGENT);
  }
  assert_int_equal(ding_waiting(q), 100);
  assert_true(q->own[DING_CPU].n == 100 && q->steal[DING_CPU].n == 100 && q->prefer[DING_CPU].n == 100);
  assert_true(q->n <= 101);
  ding_close(q);
}

/* A long queue of urgent jobs, all better on a core, and a device that asks what it may steal whenever one comes: what
 * it looks at is bounded by what it would wait for, not by the jobs that wait or that are gone. */
static void overload(void **state) {
  enum { JOBS = 20000, BACKLOG = 10000 };
  ding_rules r = rules_of(DING_PARALLEL);
  static int job[JOBS];
  size_t asked = 0;
  double c;
  int why;
  (void)state;
  ding_queues *q = ding_open(&r);
  for (int i = 0; i < JOBS; i++) {
    const double cost[DING_SIDES] = {10 + (double)below(5), 100};
    ding_add(q, &job[i], cost, (uint64_t)i);
    if (i < BACKLOG) continue;
    assert_non_null(ding_take(q, DING_CPU, (uint64_t)i + 1000000, &c, &why));
    assert_int_equal(why, DING_URGENT);
    ding_done(q, DING_CPU, c);
    (void)ding_has(q, DING_GPU, (uint64_t)i + 1000000);
    asked++;
  }
  assert_int_equal(ding_waiting(q), BACKLOG);
  assert_true(ding_looked(q) > asked && ding_looked(q) <= 20 * asked); /* (100 - 10) of each of two cores, by tens */
  ding_close(q);
}

/* Whether a side has something to do is what it would take. */
static void has(void **state) {
  const double cost[DING_SIDES] = {10, 100};
  ding_rules r = rules_of(DING_PARALLEL);
  int job;
  (void)state;
  ding_queues *q = ding_open(&r);
  assert_false(ding_has(q, DING_CPU, 1) || ding_has(q, DING_GPU, 1));
  ding_add(q, &job, cost, 1);
  assert_true(ding_has(q, DING_CPU, 2));
  assert_false(ding_has(q, DING_GPU, 2)); /* a core does it sooner */
  assert_int_equal(ding_waiting(q), 1);
  ding_close(q);
}

/* The side for which more work waits gets a higher threshold. */
static void thresholds(void **state) {
  const double cost[DING_SIDES] = {1000, 10};
  ding_rules r = rules_of(DING_PARALLEL);
  int job[100];
  (void)state;
  r.adaptive = 1;
  ding_queues *q = ding_open(&r);
  for (int i = 0; i < 100; i++) ding_add(q, &job[i], cost, (uint64_t)i);
  assert_true(ding_theta(q, DING_GPU) > 1 && ding_theta(q, DING_GPU) < 1.3);
  assert_true(ding_theta(q, DING_CPU) <= 0);
  ding_close(q);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(histories), cmocka_unit_test(stealing),
      cmocka_unit_test(taken_elsewhere), cmocka_unit_test(overload), cmocka_unit_test(has),
      cmocka_unit_test(thresholds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
