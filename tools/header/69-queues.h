
/* ========
 * [69-queues]  what queries cost, and where tasks wait until a thread takes them
 *
 * A submitted task goes to an inbox, in which no lock is needed to put it; who holds the lock of a lane moves it there,
 * and takes what has the least key. Threads that find nothing wait at an eventcount. What several processors write lies
 * apart, as a cache line that another one has written takes longer to come than a lock that is free.
 *
 * Uses      [51-query].
 * Start at  gpuir__cost_estimate, gpuir__lane_pop, gpuir__eventcount_notify, gpuir__inbox_put.
 * Tests     tests/unit/69_queues.c
 * ======*/

/* Keeps what stands before it and behind it off the same cache lines, which processors write in turn. */
typedef char gpuir__apart[128];

/* Adds to a counter that threads share. */
static inline void gpuir__count_up(gpuir__atomic64 *counter, uint64_t n) {
  if (n) (void)__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/* ---- what a query costs */

enum { GPUIR__COST_KINDS = 3, GPUIR__COST_WORDS = 7, GPUIR__COST_SIZES = 40 };

/* What queries of a kind cost in ns, read and written atomically; 0: not measured. */
typedef struct gpuir__cost {
  uint32_t mean; /* a running mean of the last queries */
  uint32_t high; /* a running estimate of the 94th percentile: one query of 17 costs more */
} gpuir__cost;

/* By mode (AND, OR, phrases and prefixes), by the logarithms of the number of words and of the postings that are likely
 * to be looked at. */
typedef struct gpuir__costs {
  gpuir__cost of[GPUIR__COST_KINDS][GPUIR__COST_WORDS][GPUIR__COST_SIZES];
} gpuir__costs;

/* Finds what queries like this one cost. *postings: those that are likely to be looked at: of OR all, of AND the
 * shortest list's, once for each list, and a few of the others. */
static gpuir__cost *gpuir__cost_of(gpuir__costs *c, const gpuir_query *q, uint64_t *postings) {
  uint64_t sum = 0, least = UINT64_MAX;
  unsigned i, kind, words;
  for (i = 0; i < q->npositive; i++) {
    sum += q->terms[i].df;
    least = gpuir__min64(least, q->terms[i].df);
  }
  kind = q->nphrases || q->nprefixes ? 2 : q->mode == GPUIR_OR;
  words = 31 - (unsigned)__builtin_clz(q->n | 1);
  *postings = (kind == 0 ? least * q->npositive + sum / 16 : sum) + 1;
  return &c->of[kind][words][63 - (unsigned)__builtin_clzll(*postings)];
}

/* Estimates what a query costs, in ns; without a measurement, by its postings. *high (NULL): what it hardly exceeds. */
static uint64_t gpuir__cost_estimate(gpuir__costs *c, const gpuir_query *q, uint64_t *high) {
  uint64_t postings;
  gpuir__cost *cost = gpuir__cost_of(c, q, &postings);
  const uint32_t ns = gpuir__peek(&cost->mean);
  if (high) *high = ns ? gpuir__peek(&cost->high) : 2 * (2000 + postings);
  return ns ? ns : 2000 + postings;
}

/* Notes what a query has cost. A cost above `high` raises it by a 16th, one below lowers it by a 256th: it rests where
 * one in 17 exceeds it. If another thread overwrites this note, one measurement of many is lost. */
static void gpuir__cost_note(gpuir__costs *c, const gpuir_query *q, uint64_t ns) {
  uint64_t postings, high;
  gpuir__cost *cost = gpuir__cost_of(c, q, &postings);
  const uint64_t before = gpuir__peek(&cost->mean);
  ns = gpuir__min64(gpuir__max64(ns, 1), UINT32_MAX);
  high = before ? gpuir__peek(&cost->high) : ns;
  high = ns > high ? gpuir__min64(ns, high + high / 16 + 1) : high - high / 256;
  gpuir__poke(&cost->high, (uint32_t)gpuir__max64(high, 1));
  gpuir__poke(&cost->mean, (uint32_t)gpuir__max64(before ? (before * 7 + ns) / 8 : ns, 1));
}

/* ---- tasks that wait */

typedef struct gpuir__lane_item {
  uint64_t key;
  gpuir_task *task;
} gpuir__lane_item; /* what decides lies here: the task itself is in the caches of who submitted it */

/* A heap of tasks, the one with the least key first. */
typedef struct gpuir__lane {
  gpuir__lane_item *heap;
  size_t n;
} gpuir__lane;

static void gpuir__lane_push(gpuir__lane *l, uint64_t key, gpuir_task *task) {
  size_t i = l->n++;
  for (; i && l->heap[(i - 1) / 2].key > key; i = (i - 1) / 2) l->heap[i] = l->heap[(i - 1) / 2];
  l->heap[i].key = key;
  l->heap[i].task = task;
}

/* Takes the task with the least key. NULL: none waits. */
static gpuir_task *gpuir__lane_pop(gpuir__lane *l) {
  gpuir_task *task;
  gpuir__lane_item last;
  size_t i = 0, child;
  if (!l->n) return NULL;
  task = l->heap[0].task;
  last = l->heap[--l->n];
  while ((child = 2 * i + 1) < l->n) {
    child += child + 1 < l->n && l->heap[child + 1].key < l->heap[child].key;
    if (l->heap[child].key >= last.key) break;
    l->heap[i] = l->heap[child];
    i = child;
  }
  l->heap[i] = last;
  return task;
}

/* Makes a task the first of its lane; 0 if it is not there. */
static int gpuir__lane_raise(gpuir__lane *l, gpuir_task *task) {
  size_t i = 0;
  while (i < l->n && l->heap[i].task != task) i++;
  if (i == l->n) return 0;
  for (; i; i = (i - 1) / 2) l->heap[i] = l->heap[(i - 1) / 2];
  l->heap[0].key = 0;
  l->heap[0].task = task;
  return 1;
}

/* ---- eventcounts */

/* Wakes threads that have found nothing to do; the literature calls it an eventcount. A thread goes this way:
 *
 *     busy -> listener -> looks for work once more -> spinner (up to 0.5 ms, 4 threads at most) -> sleeper (semaphore)
 *
 * Who notifies takes a spinner first and posts the semaphore only if there is none: waking a thread takes longer than
 * many a query. While all threads are busy a notification reads one number and writes none. All of it is read and
 * written atomically. */
typedef struct gpuir__eventcount {
  gpuir__apart before;
  gpuir__atomic64 epoch; /* the number of notifications, from 1 */
  int listeners; /* threads that found nothing to do */
  int sleepers, spinners; /* listeners that sleep, or spin, and were not claimed yet */
  int called; /* spinners that were claimed and have not noticed it yet */
  sem_t semaphore; /* of the sleepers */
  gpuir__apart behind;
} gpuir__eventcount;

/* How many threads spin at a time, and for how long, before they sleep. */
#define GPUIR__SPINNERS 4
#define GPUIR__SPIN_NS 500000u

/* Returns 1 if there was a notification since `seen`. */
static int gpuir__eventcount_advanced(const gpuir__eventcount *b, uint64_t seen) {
  return gpuir__seq_load(&b->epoch) != seen;
}

/* Claims one of a number of threads; 0: there is none. */
static int gpuir__eventcount_claim(int *threads) {
  int n = gpuir__seq_load(threads);
  while (n && !__atomic_compare_exchange_n(threads, &n, n - 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}
  return n != 0;
}

/* Wakes up to n listeners. Call it after the work is visible: stored with sequential consistency, or under the lock
 * that threads take when they look. Threads that were called and are not back yet count towards n: they see this work
 * too. */
GPUIR__NOINLINE void gpuir__eventcount_notify(gpuir__eventcount *b, int n) {
  if (!gpuir__seq_load(&b->listeners)) return;
  n -= gpuir__seq_load(&b->called);
  if (n <= 0) return;
  (void)gpuir__seq_add(&b->epoch, 1);
  for (; n > 0 && gpuir__eventcount_claim(&b->spinners); n--) (void)gpuir__seq_add(&b->called, 1);
  for (; n > 0 && gpuir__eventcount_claim(&b->sleepers); n--) (void)sem_post(&b->semaphore);
}

/* Spins for a while; 1 if this thread was claimed, or there was a notification since `seen`. */
static int gpuir__eventcount_spin(gpuir__eventcount *b, uint64_t seen) {
  const uint64_t until = gpuir__now() + GPUIR__SPIN_NS;
  if (gpuir__seq_add(&b->spinners, 1) >= GPUIR__SPINNERS && gpuir__eventcount_claim(&b->spinners)) return 0;
  if (gpuir__eventcount_advanced(b, seen) && gpuir__eventcount_claim(&b->spinners)) return 1;
  while (!gpuir__eventcount_claim(&b->called)) {
    if (gpuir__now() > until && gpuir__eventcount_claim(&b->spinners)) return 0;
    (void)sched_yield();
  }
  return 1;
}

/* Returns after a notification since `seen`; with `spins`, some threads spin before they sleep. */
static void gpuir__eventcount_block(gpuir__eventcount *b, uint64_t seen, int spins) {
  if (spins && gpuir__eventcount_spin(b, seen)) return;
  (void)gpuir__seq_add(&b->sleepers, 1);
  if (gpuir__eventcount_advanced(b, seen) && gpuir__eventcount_claim(&b->sleepers)) return;
  while (sem_wait(&b->semaphore) && errno == EINTR) {}
}

/* Ends that a thread listens: it has found something to do. *seen: 0 if it does not listen. */
static void gpuir__eventcount_leave(gpuir__eventcount *b, uint64_t *seen) {
  if (*seen) (void)gpuir__seq_add(&b->listeners, -1);
  *seen = 0;
}

/* Call it when no work was found. The first call makes the thread a listener and returns, so that it looks once more:
 * work that came between its first look and the registration would be missed otherwise. The second call in a row sleeps
 * until there is a notification. *seen: 0 before the first call. */
static void gpuir__eventcount_wait(gpuir__eventcount *b, uint64_t *seen, int spins) {
  if (*seen) {
    gpuir__eventcount_block(b, *seen, spins);
    gpuir__eventcount_leave(b, seen);
  } else {
    (void)gpuir__seq_add(&b->listeners, 1);
    *seen = gpuir__seq_load(&b->epoch);
  }
}

/* ---- inboxes */

/* Tasks as they were submitted: threads put them there without a lock, those that hold one take them out. */
typedef struct gpuir__inbox {
  gpuir__lane_item *slots; /* [mask + 1]: there is room for all tasks that may wait. Written last: the task */
  uint64_t mask, read; /* slots that were read */
  gpuir__apart before; /* what those who submit write */
  gpuir__atomic64 written; /* slots that are, or will be */
  gpuir__apart behind;
} gpuir__inbox;

/* Fills slot number `at`, which is the caller's. */
static void gpuir__inbox_put(gpuir__inbox *b, uint64_t at, uint64_t key, gpuir_task *task) {
  gpuir__lane_item *slot = &b->slots[at & b->mask];
  slot->key = key;
  __atomic_store_n(&slot->task, task, __ATOMIC_SEQ_CST); /* an eventcount is read next */
}

/* Takes the first task; NULL: there is none yet. */
static gpuir_task *gpuir__inbox_take(gpuir__inbox *b, uint64_t *key) {
  gpuir__lane_item *slot = &b->slots[b->read & b->mask];
  gpuir_task *task = gpuir__seq_load(&slot->task);
  if (!task) return NULL;
  *key = slot->key;
  gpuir__poke(&slot->task, (gpuir_task *)NULL);
  b->read++;
  return task;
}
