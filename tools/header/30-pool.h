
/* ========
 * [30-pool]  many queries at once: threads that answer tasks; the policies inter and auto
 *
 * A pool's threads run a policy. Both of the library's are a crew: who submits a task puts it into an inbox, without a
 * lock, and wakes a thread if all that are free sleep; a free thread takes the waiting task with the least key, and
 * with `auto` some more, if many wait. With `inter` the key is the number of the submission.
 *
 * With `auto` it is when the task should start: its due time and its cost, or the mean cost if that is less, so that
 * small queries go before large ones that came with them, but none waits long for what came later; while very many wait
 * the due time alone; or earlier for a deadline. What queries cost is measured, by mode, number of words and postings.
 *
 * What a thread works with, its searcher and its share, is a mate. Who submits by gpuir_pool_run takes an idle one and
 * answers the task himself: as many tasks as there are mates are at work.
 *
 * A thread that finds no task helps with a search that runs (gpuir__share): it takes parts of it, and leaves as soon as
 * a task waits: queries have a core of their own while there are more of them than cores, or else several. Heavy ones
 * and those that have run for long are helped with first, as long as little waits: otherwise the many small ones would
 * leave them one core at any load.
 *
 * With a device a further thread drives it: while one or two batches run the next one forms. A task goes where it is
 * likely to be answered first: by the device after what is left of the batches in flight, if there are two, and the
 * mean time of a batch; by the threads after what waits for them and what 16 of 17 such queries do not exceed. The
 * device writes to memory of the batch alone; what it fails on goes back to the threads. If it does not answer within
 * the limit it is lost: its searcher and its batches' memory, where it may still write, are given up.
 *
 * Of the schedulers in tools/lab it has a lane for each side, work taken from the other's (Ding et al. 2009), and
 * batches that form while one runs (Ao et al. 2011); no query moves from device to CPU (Griffin 2018), as under load
 * batches gain far more (tools/results/schedulers).
 *
 * Uses      [12-writer], [16-query], [20-engine], [24-execution], [29b-queues].
 * Start at  gpuir_pool_create, gpuir_pool_submit; gpuir__crew_work (a thread), gpuir__device_work (a device's).
 * Tests     tests/unit/30_pool.c
 * ======*/

/* The states of a task. */
enum { GPUIR__TASK_SUBMITTED = 1, GPUIR__TASK_FOR_DEVICE, GPUIR__TASK_RETURNED, GPUIR__TASK_COMPLETE };

struct gpuir_pool {
  gpuir_allocator a;
  gpuir_index *ix;
  gpuir_pool_desc desc;
  gpuir_policy policy;
  void *state;
  pthread_t *threads;
  unsigned nthreads;
  unsigned extra; /* threads for a device, behind the others */
  unsigned started; /* of both; only grows under the lock */
  int running; /* read and written atomically: the threads were started */
  int waiters, drainers, numbered; /* the same: threads in wait; in drain; those that have a number */
  pthread_mutex_t lock;
  pthread_cond_t complete; /* a task was completed, while somebody waits */
  gpuir__apart before_submitted;
  gpuir__atomic64 submitted, refused; /* submitted: and refused */
  gpuir__apart before_ended;
  gpuir__atomic64 ended, cancelled, missed; /* ended: complete or refused */
};

/* ---- a task */

/* Tells who waits. */
GPUIR__COLD static void gpuir__pool_tell(gpuir_pool *p) {
  gpuir__lock(&p->lock);
  (void)pthread_cond_broadcast(&p->complete);
  gpuir__unlock(&p->lock);
}

/* Counts n tasks that the pool has no more. */
static void gpuir__pool_end(gpuir_pool *p, uint64_t n) {
  const uint64_t ended = gpuir__seq_add(&p->ended, n) + n;
  if (gpuir__seq_load(&p->drainers) && ended == gpuir__seq_load(&p->submitted)) gpuir__pool_tell(p);
}

/* Completes a task but for counting it. */
static void gpuir__pool_settle(gpuir_pool *p, gpuir_task *task, int status) {
  task->status = status;
  if (status) {
    task->count = 0;
    gpuir__count_up(&p->cancelled, status == GPUIR_E_CANCELLED);
    gpuir__count_up(&p->missed, status == GPUIR_E_DEADLINE);
    if (task->error && task->error->code != status)
      (void)gpuir__fail(task->error, status, 0, "%s", gpuir_strerror(status));
  }
  task->finished = gpuir__now();
  if (task->done) {
    task->done(task);
    return;
  }
  __atomic_store_n(&task->pool_state, GPUIR__TASK_COMPLETE, __ATOMIC_SEQ_CST);
  if (gpuir__seq_load(&p->waiters)) gpuir__pool_tell(p);
}

GPUIR_API void gpuir_pool_complete(gpuir_pool *p, gpuir_task *task, int status) {
  gpuir__pool_settle(p, task, status);
  gpuir__pool_end(p, 1);
}

GPUIR_API int gpuir_pool_answer(gpuir_searcher *s, gpuir_task *task) {
  gpuir__engine *e;
  gpuir__limits mine;
  int status;
  if (!s || !task || !task->query || task->query->ix != s->ix) return GPUIR_E_ARGUMENT;
  e = &s->engine;
  mine = e->limits;
  task->started = gpuir__now();
  e->limits.query_deadline = task->deadline;
  e->limits.query_cancel = task->cancel;
  status = gpuir__engine_search(e, task->query, task->hits, task->k, &task->count);
  e->rare.share = NULL;
  if (!status && task->matches) status = gpuir__engine_count(e, task->query, task->matches);
  e->limits = mine;
  if (status && task->error) *task->error = e->error;
  return status;
}

/* ---- crews */

/* A query that is worth so much, in ns, gets one helper; twice as much two, and so on. */
#define GPUIR__SHARE_NS 100000u
/* A query that costs so many times the mean is heavy: helpers stay while what waits costs less than twice as much; */
#define GPUIR__SHARE_HEAVY 6u
/* and one that runs for more than so many times the mean, whatever was expected ("few-to-many": Haque et al. 2015). */
#define GPUIR__SHARE_RIPE 4u
/* More hits than so many cost more to merge than help saves. */
#define GPUIR__SHARE_K 10000u
/* While so many wait, a thread takes several tasks at a time: what the lock guards is in another processor's caches. At
 * most so many, and no more than take so many ns. */
#define GPUIR__HANDFUL 16u
#define GPUIR__HANDFUL_NS 200000u
/* While what waits for each thread costs more than so many mean queries, tasks go as they came: or else all costly ones
 * would be left for the end, where they slow one another in reading memory. */
#define GPUIR__CROWD 64u

struct gpuir__crew;

/* What one thread at a time works with: a thread of the crew, or one that answers its own task. */
typedef struct gpuir__mate {
  struct gpuir__crew *crew;
  struct gpuir__mate *next; /* that no thread works with either */
  gpuir_searcher *searcher;
  unsigned turn; /* of tasks that were taken together */
  gpuir__share share; /* of the search that it owns */
} gpuir__mate;

/* A batch of a device: the memory that it works on. Arrays have room for the pool's greatest batch. */
typedef struct gpuir__load {
  gpuir_batch *batch; /* NULL: not in flight */
  gpuir_task **tasks; /* [n] */
  const gpuir_query **queries;
  gpuir_hit *hits; /* [n * k]; room for nhits */
  size_t n, k, nhits;
  uint32_t *counts;
  int *statuses, *flags; /* [n] flags: not 0 cancels; the device may read them even when the tasks are gone */
  uint64_t *deadlines;
  const int **cancels; /* [n] into flags */
  uint64_t since;
} gpuir__load;

#define GPUIR__LOADS 2u

enum { GPUIR__DEVICE_NONE, GPUIR__DEVICE_GOOD, GPUIR__DEVICE_LOST };

/* A device as its driver sees it. */
typedef struct gpuir__device {
  gpuir_searcher *searcher;
  gpuir__load load[GPUIR__LOADS];
  unsigned flying; /* loads in flight; of its driver alone */
  unsigned failures; /* batches that failed as a whole, one after the other */
  gpuir__atomic64 batch_ns; /* read and written atomically: mean time of a batch lately, from begin to finish */
  gpuir__atomic64 free_at; /* the same: when it is likely to take the next batch; 0: it takes one now */
  gpuir__apart before_waiting;
  gpuir__atomic64 waiting; /* the same: tasks that wait for it */
  int state; /* the same; GPUIR__DEVICE_, changed under the crew's lock */
  gpuir_error error;
} gpuir__device;

/* What gpuir_pool_stats tells. */
typedef struct gpuir__feats {
  gpuir__atomic64 shared, joined, batches, on_device, returned;
} gpuir__feats;

/* Tasks that were to wait, and that wait no more; read and written atomically. */
typedef struct gpuir__traffic {
  gpuir__atomic64 came, limit; /* limit: came may grow up to this, as far as those who submit know */
  gpuir__apart before;
  gpuir__atomic64 went;
} gpuir__traffic;

typedef struct gpuir__crew {
  gpuir_pool *pool;
  int shares; /* the policy is auto */
  gpuir__mate *mates, *idle; /* [pool->nthreads]; those that no thread works with, under the lock */
  gpuir__lane lane, device_lane; /* under the lock, and under the device's */
  size_t room, most; /* tasks that wait at most; those that a device gives back too */
  uint64_t sequence; /* of tasks, as they came into a lane */
  int stopping; /* read and written atomically */
  const int *stop; /* the searchers' flag: that, or one that the pool was made with */
  gpuir__inbox device_inbox, inbox; /* of the lanes */
  gpuir__traffic traffic;
  gpuir__bell work, device_work;
  gpuir__atomic64 backlog; /* from here on read and written atomically: ns that what waits for threads may cost */
  gpuir__apart before_mean;
  gpuir__atomic64 mean_ns; /* of a query, lately; 0: not measured */
  int heavy; /* heavy queries that run and may be shared */
  gpuir__feats done;
  gpuir__device device;
  pthread_mutex_t lock, device_lock; /* who holds the first may take the second */
  gpuir__costs costs;
} gpuir__crew;

static uint64_t gpuir__crew_waiting(const gpuir__crew *c) {
  const uint64_t went = gpuir__peek(&c->traffic.went);
  return gpuir__peek(&c->traffic.came) - went;
}

/* Returns when a task should start at the latest for it to be fair: see the head of this part. */
GPUIR__NOINLINE uint64_t gpuir__crew_key(const gpuir__crew *c, const gpuir_task *task) {
  uint64_t key = task->due, mean;
  if (!c->shares) return 0; /* see gpuir__crew_queue */
  mean = gpuir__peek(&c->mean_ns);
  if (gpuir__peek(&c->backlog) <= mean * c->pool->nthreads * GPUIR__CROWD)
    key += gpuir__min64(gpuir__min64(task->pool_cost, mean), UINT64_MAX - key);
  if (task->deadline) key = gpuir__min64(key, task->deadline - gpuir__min64(task->deadline, 2 * task->pool_cost));
  return key;
}

static int gpuir__device_is_good(const gpuir__crew *c) {
  return gpuir__seq_load(&c->device.state) == GPUIR__DEVICE_GOOD;
}

/* Puts a task that waits into its lane, whose lock is held. */
static void gpuir__crew_queue(gpuir__crew *c, gpuir__lane *lane, uint64_t key, gpuir_task *task) {
  gpuir__lane_push(lane, c->shares ? key : c->sequence++, task);
}

/* Counts n tasks that come to wait for threads, or wait no more; cost: theirs. */
static void gpuir__crew_came(gpuir__crew *c, uint64_t n, uint64_t cost) {
  gpuir__count_up(&c->backlog, cost);
  (void)__atomic_fetch_add(&c->traffic.came, n, __ATOMIC_RELEASE);
}
static void gpuir__crew_went(gpuir__crew *c, uint64_t n, uint64_t cost) {
  gpuir__count_up(&c->backlog, 0 - cost);
  (void)__atomic_fetch_add(&c->traffic.went, n, __ATOMIC_RELEASE);
}

/* Lets a task that was taken from its lane wait for the threads. The lock is held. */
static void gpuir__crew_wait(gpuir__crew *c, gpuir_task *task) {
  gpuir__crew_came(c, 1, task->pool_cost);
  gpuir__crew_queue(c, &c->lane, gpuir__crew_key(c, task), task);
}

/* Moves what was submitted for a lane there. Its lock is held. */
static void gpuir__crew_collect(gpuir__crew *c, gpuir__inbox *inbox, gpuir__lane *lane) {
  gpuir_task *task;
  uint64_t key;
  while ((task = gpuir__inbox_take(inbox, &key)) != NULL) gpuir__crew_queue(c, lane, key, task);
}

/* Takes the first task that waits for threads, or for the device; the lane's lock is held. NULL: none does. */
static gpuir_task *gpuir__crew_take(gpuir__crew *c, gpuir__lane *lane) {
  gpuir_task *task = gpuir__lane_pop(lane);
  if (task && lane == &c->device_lane) gpuir__count_up(&c->device.waiting, UINT64_MAX);
  if (task) gpuir__crew_went(c, 1, lane == &c->lane ? task->pool_cost : 0);
  return task;
}

/* Counts n tasks that are to wait, if there is room for all. 0; BUSY. What others write is looked at when as many came
 * as may wait. */
static int gpuir__crew_admit(gpuir__crew *c, uint64_t n) {
  gpuir__traffic *t = &c->traffic;
  const uint64_t came = __atomic_fetch_add(&t->came, n, __ATOMIC_RELAXED) + n;
  uint64_t limit = __atomic_load_n(&t->limit, __ATOMIC_ACQUIRE); /* slots of inboxes are free again */
  if (came <= limit) return GPUIR_OK;
  limit = __atomic_load_n(&t->went, __ATOMIC_ACQUIRE) + c->room;
  __atomic_store_n(&t->limit, limit, __ATOMIC_RELEASE);
  if (came <= limit) return GPUIR_OK;
  (void)__atomic_fetch_sub(&t->came, n, __ATOMIC_RELAXED);
  return GPUIR_E_BUSY;
}

static int gpuir__task_for_device(const gpuir_task *task) { return task->pool_state == GPUIR__TASK_FOR_DEVICE; }

/* Lets tasks wait, and wakes who may take them. What threads share is written once for all. 0; BUSY: for none. */
static int gpuir__crew_post(gpuir__crew *c, gpuir_task *const *tasks, size_t n) {
  uint64_t to_device = 0, cost = 0, at[2] = {0, 0};
  size_t i;
  if (gpuir__crew_admit(c, n)) return GPUIR_E_BUSY;
  for (i = 0; i < n; i++) {
    const int device = gpuir__task_for_device(tasks[i]);
    tasks[i]->on_device = 0;
    to_device += device != 0;
    cost += device ? 0 : tasks[i]->pool_cost;
  }
  gpuir__count_up(&c->device.waiting, to_device);
  gpuir__count_up(&c->backlog, cost);
  /* A slot may be one that was freed after this thread was admitted, which only a thread that was here in between knows:
   * acquired from that one, so that whoever read the slot has done so before it is written anew. */
  if (to_device) at[1] = __atomic_fetch_add(&c->device_inbox.written, to_device, __ATOMIC_ACQ_REL);
  if (to_device < n) at[0] = __atomic_fetch_add(&c->inbox.written, n - to_device, __ATOMIC_ACQ_REL);
  for (i = 0; i < n; i++) { /* from here on they may be gone */
    const int device = gpuir__task_for_device(tasks[i]);
    gpuir__inbox_put(device ? &c->device_inbox : &c->inbox, at[device]++, gpuir__crew_key(c, tasks[i]), tasks[i]);
  }
  if (to_device) gpuir__bell_ring(&c->device_work, 1);
  if (to_device && !gpuir__device_is_good(c)) to_device = 0; /* it was lost in between */
  if (to_device < n) gpuir__bell_ring(&c->work, 1 + (n - to_device > 1)); /* who comes rings for the others */
  return GPUIR_OK;
}

/* Returns what the device is likely to take for a task before which `before` others wait. A batch that is late is
 * expected to take as long again. */
static uint64_t gpuir__device_estimate(const gpuir__crew *c, uint64_t now, uint64_t before) {
  const uint64_t batch = gpuir__peek(&c->device.batch_ns);
  const uint64_t free_at = gpuir__peek(&c->device.free_at);
  const uint64_t wait = free_at > now ? free_at - now : free_at ? now - free_at : 0;
  return wait + batch * (1 + before / c->pool->desc.batch);
}

/* Returns 1 if a device can answer a task. */
static int gpuir__device_suits(const gpuir_task *task) {
  return !task->matches && task->k && task->k <= GPUIR__SHARE_K && task->pool_state != GPUIR__TASK_RETURNED;
}

/* Returns 1 if a task that comes now is one for the device: see the head of this part. high: what it costs a thread. */
static int gpuir__crew_prefers_device(const gpuir__crew *c, const gpuir_task *task, uint64_t high, uint64_t now) {
  if (!gpuir__device_is_good(c) || !gpuir__device_suits(task)) return 0;
  return task->on_device ||
      gpuir__peek(&c->backlog) / c->pool->nthreads + high >
      gpuir__device_estimate(c, now, gpuir__peek(&c->device.waiting));
}

/* Notes what a task costs, and who is to answer it. now: 0 without a device. */
static void gpuir__crew_route(gpuir__crew *c, gpuir_task *task, uint64_t now) {
  uint64_t high = 0;
  task->pool_cost = c->shares ? gpuir__cost_estimate(&c->costs, task->query, &high) : 0;
  if (now && gpuir__crew_prefers_device(c, task, high, now)) gpuir__poke(&task->pool_state, GPUIR__TASK_FOR_DEVICE);
}

/* Takes a mate that no thread works with, or gives it back. The lock is held. */
static gpuir__mate *gpuir__mate_take(gpuir__crew *c) {
  gpuir__mate *m = c->idle;
  if (m) c->idle = m->next;
  return m;
}
static void gpuir__mate_give(gpuir__mate *m) {
  m->next = m->crew->idle;
  m->crew->idle = m;
}

static int gpuir__crew_submit(void *state, gpuir_task *task) {
  gpuir__crew *c = (gpuir__crew *)state;
  gpuir__crew_route(c, task, gpuir__device_is_good(c) ? gpuir__now() : 0);
  return gpuir__crew_post(c, &task, 1);
}

/* ---- a thread of a crew */

/* Tells threads that sleep of a search that they may join. */
static void gpuir__mate_offers(gpuir__share *share) {
  gpuir__crew *c = ((gpuir__mate *)share->user)->crew;
  gpuir__count_up(&c->done.shared, 1);
  gpuir__bell_ring(&c->work, (int)share->most);
}

/* Notes what a query has cost, and corrects the mean of all. */
static void gpuir__crew_note(gpuir__crew *c, const gpuir_query *q, uint64_t ns) {
  const uint64_t before = gpuir__peek(&c->mean_ns);
  gpuir__cost_note(&c->costs, q, ns);
  gpuir__poke(&c->mean_ns, before ? (before * 255 + gpuir__min64(ns, UINT32_MAX)) / 256 : ns);
}

/* Sets what may wait, in ns, before those who help with a search leave it. */
static void gpuir__mate_weigh(gpuir__mate *m, uint64_t patience) {
  gpuir__poke(&m->share.patience, patience);
  if (patience) (void)__atomic_fetch_add(&m->crew->heavy, 1, __ATOMIC_RELAXED);
}

/* Makes a search that runs for long heavy. */
static void gpuir__mate_ripens(gpuir__share *share) {
  gpuir__mate *m = (gpuir__mate *)share->user;
  gpuir__mate_weigh(m, 2 * GPUIR__SHARE_HEAVY * gpuir__peek(&m->crew->mean_ns));
}

/* Returns how many threads may help with a task. While more waits than it may ever have patience for nobody would come,
 * and sharing costs some of an OR's pruning. */
static unsigned gpuir__mate_wants(gpuir__mate *m, const gpuir_task *task) {
  gpuir__crew *c = m->crew;
  const uint64_t helpers = gpuir__min64(task->pool_cost / GPUIR__SHARE_NS, c->pool->nthreads - 1);
  const uint64_t mean = gpuir__peek(&c->mean_ns), heavy = GPUIR__SHARE_HEAVY * mean;
  const uint64_t patience = heavy && task->pool_cost >= heavy ? 2 * task->pool_cost : 0;
  if (!helpers || !c->shares || task->k > GPUIR__SHARE_K ||
      gpuir__peek(&c->backlog) > gpuir__max64(patience, 2 * heavy))
    return 0;
  gpuir__mate_weigh(m, patience);
  m->share.ripe = patience || !mean ? 0 : gpuir__now() + GPUIR__SHARE_RIPE * mean;
  return (unsigned)helpers;
}

/* Answers a task, with the help of other threads if it is worth that, and completes it but for counting it; measured:
 * what it costs is noted. */
static void gpuir__mate_answer(gpuir__mate *m, gpuir_task *task, int measured) {
  gpuir__crew *c = m->crew;
  gpuir__engine *e = &m->searcher->engine;
  const unsigned helpers = gpuir__mate_wants(m, task);
  int status;
  m->share.most = helpers;
  m->share.helped = 0;
  task->on_device = 0;
  e->rare.share = helpers ? &m->share : NULL;
  status = gpuir_pool_answer(m->searcher, task);
  if (m->share.patience) (void)__atomic_fetch_sub(&c->heavy, 1, __ATOMIC_RELAXED);
  gpuir__poke(&m->share.patience, 0);
  e->rare.share = NULL;
  if (c->shares && !status && measured)
    gpuir__crew_note(c, task->query, gpuir__now() - task->started + m->share.helped);
  gpuir__pool_settle(c->pool, task, status);
}

/* Returns a search of another thread that this one could join, or NULL. */
static gpuir__share *gpuir__mate_offer(const gpuir__mate *m) {
  const gpuir__crew *c = m->crew;
  const unsigned me = (unsigned)(m - c->mates), n = c->pool->nthreads;
  unsigned i;
  int joins;
  for (i = 1; c->shares && i < n; i++) {
    gpuir__share *s = &c->mates[(me + i) % n].share;
    if (!gpuir__seq_load(&s->open) || gpuir__peek(&s->dry)) continue;
    gpuir__lock(&s->lock);
    joins = gpuir__peek(&s->open) && s->helpers < s->most && gpuir__peek(&c->backlog) <= gpuir__peek(&s->patience);
    gpuir__unlock(&s->lock);
    if (joins) return s;
  }
  return NULL;
}

/* Takes the first task that waits for a device that is lost. The lock is held. NULL: none waits. */
GPUIR__COLD static gpuir_task *gpuir__crew_inherit(gpuir__crew *c) {
  gpuir_task *task;
  gpuir__lock(&c->device_lock);
  gpuir__crew_collect(c, &c->device_inbox, &c->device_lane);
  task = gpuir__crew_take(c, &c->device_lane);
  gpuir__unlock(&c->device_lock);
  return task;
}

/* Takes the tasks that a thread answers next; returns how many, 0: none waits. The lock is held. */
static unsigned gpuir__crew_next(gpuir__crew *c, gpuir_task *tasks[GPUIR__HANDFUL]) {
  const uint64_t mean = gpuir__peek(&c->mean_ns);
  unsigned n = 0, most = 1;
  gpuir__crew_collect(c, &c->inbox, &c->lane);
  if (c->shares && mean)
    most =
        (unsigned)gpuir__min64(gpuir__min64(GPUIR__HANDFUL, GPUIR__HANDFUL_NS / mean), c->lane.n / c->pool->nthreads);
  do tasks[n] = gpuir__lane_pop(&c->lane);
  while (tasks[n] && ++n < most);
  if (n || !gpuir__peek(&c->device.waiting) || (gpuir__device_is_good(c) && !c->stopping)) return n;
  tasks[0] = gpuir__crew_inherit(c);
  if (tasks[0]) gpuir__crew_came(c, 1, tasks[0]->pool_cost); /* it went as one for the device */
  return tasks[0] != NULL;
}

/* Counts tasks that were taken, puts the costly ones last, as none is to wait for them, and prefetches them all. */
static void gpuir__crew_sort(gpuir__crew *c, gpuir_task **tasks, unsigned n) {
  const uint64_t costly = GPUIR__SHARE_HEAVY * gpuir__peek(&c->mean_ns);
  uint64_t cost = 0;
  unsigned i, end = n;
  for (i = 0; i < n; i++) __builtin_prefetch(tasks[i]);
  for (i = 0; i < n; i++) {
    __builtin_prefetch(tasks[i]->query);
    cost += tasks[i]->pool_cost;
  }
  for (i = 0; n > 1 && i < end;) {
    gpuir_task *task = tasks[i];
    if (task->pool_cost < costly) {
      i++;
      continue;
    }
    tasks[i] = tasks[--end];
    tasks[end] = task;
  }
  gpuir__crew_went(c, n, cost);
}

/* Answers tasks that a thread has taken; without a mate they end with CANCELLED. Of several one is measured: what
 * is measured is everybody's memory. */
static void gpuir__crew_answer(gpuir__crew *c, gpuir__mate *m, gpuir_task **tasks, unsigned n) {
  unsigned i, measured;
  gpuir__crew_sort(c, tasks, n);
  measured = m ? m->turn++ % n : 0;
  for (i = 0; i < n; i++)
    if (m && (!i || !gpuir__peek(&c->stopping))) gpuir__mate_answer(m, tasks[i], i == measured);
    else gpuir__pool_settle(c->pool, tasks[i], GPUIR_E_CANCELLED);
  gpuir__pool_end(c->pool, n);
}

/* One thread's life. */
static void gpuir__crew_thread(gpuir__crew *c) {
  gpuir_task *tasks[GPUIR__HANDFUL];
  uint64_t heard = 0;
  gpuir__lock(&c->lock);
  for (;;) {
    const int ready = c->idle && !c->stopping;
    gpuir__share *share = ready && gpuir__peek(&c->heavy) ? gpuir__mate_offer(c->idle) : NULL;
    const unsigned n = !share && (c->idle || c->stopping) ? gpuir__crew_next(c, tasks) : 0;
    const int more = c->idle && c->lane.n;
    gpuir__mate *m;
    if (!share && !n && ready) share = gpuir__mate_offer(c->idle);
    m = ready && (n || share) ? gpuir__mate_take(c) : NULL;
    if (!n && c->stopping) break;
    gpuir__unlock(&c->lock);
    if (more) gpuir__bell_ring(&c->work, 1);
    if (n || share) gpuir__bell_leave(&c->work, &heard);
    else gpuir__bell_wait(&c->work, &heard, gpuir__device_is_good(c));
    if (n) gpuir__crew_answer(c, m, tasks, n);
    else if (share && gpuir__engine_help(&m->searcher->engine, share)) gpuir__count_up(&c->done.joined, 1);
    gpuir__lock(&c->lock);
    if (m) gpuir__mate_give(m);
  }
  gpuir__unlock(&c->lock);
  gpuir__bell_leave(&c->work, &heard);
}

/* Answers a task in the thread that submits it, if none waits and a mate is idle; others may then wait for that. */
static int gpuir__crew_run(void *state, gpuir_task *task) {
  gpuir__crew *c = (gpuir__crew *)state;
  gpuir__mate *m = NULL;
  int left;
  gpuir__crew_route(c, task, gpuir__device_is_good(c) ? gpuir__now() : 0);
  if (task->pool_state != GPUIR__TASK_FOR_DEVICE) {
    gpuir__lock(&c->lock);
    gpuir__crew_collect(c, &c->inbox, &c->lane);
    if (!c->lane.n) m = gpuir__mate_take(c);
    gpuir__unlock(&c->lock);
  }
  if (!m) return gpuir__crew_post(c, &task, 1);
  gpuir__mate_answer(m, task, 1);
  gpuir__pool_end(c->pool, 1);
  gpuir__lock(&c->lock);
  gpuir__mate_give(m);
  left = gpuir__crew_waiting(c) || gpuir__mate_offer(m);
  gpuir__unlock(&c->lock);
  if (left) gpuir__bell_ring(&c->work, 1);
  return GPUIR_OK;
}

/* ---- a device */

/* After so many batches that failed as a whole, one after the other, a device is lost. */
#define GPUIR__DEVICE_FAILURES 3u
/* What a batch takes until one was measured; and between two looks at batches that take longer than expected. */
#define GPUIR__DEVICE_NS 100000u
#define GPUIR__DEVICE_NAP 20000

/* Notes why a device fails; the searcher's words count if they are of this status. The lock is held. */
static void gpuir__device_blame(gpuir__crew *c, int status, const char *what) {
  if (c->device.searcher) gpuir_searcher_error(c->device.searcher, &c->device.error);
  if (c->device.error.code != status)
    (void)gpuir__fail(&c->device.error, status, 0, "%s: %s", what, gpuir_strerror(status));
}

/* Gives a device up: from now on the threads answer all that waits. The lock is held. */
static void gpuir__device_lose(gpuir__crew *c) {
  gpuir_task *task;
  __atomic_store_n(&c->device.state, GPUIR__DEVICE_LOST, __ATOMIC_SEQ_CST);
  while ((task = gpuir__crew_inherit(c)) != NULL) {
    gpuir__poke(&task->pool_state, GPUIR__TASK_SUBMITTED);
    gpuir__crew_wait(c, task);
  }
  gpuir__bell_ring(&c->work, (int)c->pool->nthreads);
}

/* Frees what a batch works on. */
static void gpuir__load_free(const gpuir_pool *p, gpuir__load *l) {
  gpuir__free(&p->a, l->tasks, p->desc.batch * 4 * sizeof *l->deadlines);
  gpuir__free(&p->a, l->counts, p->desc.batch * 3 * sizeof *l->counts);
  gpuir__free(&p->a, l->hits, l->nhits * sizeof *l->hits);
  memset(l, 0, sizeof *l);
}

/* Makes the arrays of a batch, in two pieces of memory: the device may write to the second one. */
static int gpuir__load_make(const gpuir_pool *p, gpuir__load *l) {
  const size_t n = p->desc.batch;
  size_t i;
  l->tasks = (gpuir_task **)gpuir__alloc(&p->a, n * 4 * sizeof *l->deadlines);
  l->counts = (uint32_t *)gpuir__alloc(&p->a, n * 3 * sizeof *l->counts);
  if (!l->tasks || !l->counts) return GPUIR_E_NOMEM;
  l->deadlines = (uint64_t *)(void *)l->tasks + 3 * n; /* a pointer may take less */
  l->queries = (const gpuir_query **)(void *)(l->tasks + n);
  l->cancels = (const int **)(void *)(l->tasks + 2 * n);
  l->statuses = (int *)(l->counts + n);
  l->flags = (int *)(l->counts + 2 * n);
  for (i = 0; i < n; i++) l->cancels[i] = &l->flags[i];
  return GPUIR_OK;
}

/* Adds a task to a batch that forms, if it suits: all want the same k, since with AND+OR it decides what matches. */
static int gpuir__load_add(gpuir__load *l, gpuir_task *task) {
  if (!gpuir__device_suits(task) || (l->n && task->k != l->k)) return 0;
  l->k = task->k;
  l->tasks[l->n] = task;
  l->queries[l->n] = task->query;
  l->deadlines[l->n] = task->deadline;
  l->flags[l->n++] = 0;
  return 1;
}

/* Forms the next batch of what waits for the device, the first ones first; tasks that do not suit go back. NULL: there
 * is none. */
static gpuir__load *gpuir__device_form(gpuir__crew *c) {
  gpuir__load *l = c->device.load;
  gpuir_task *aside[64], *task;
  uint64_t key;
  size_t n = 0;
  int all; /* fit, in whatever order */
  if (!gpuir__device_is_good(c) || gpuir__peek(&c->stopping) || c->device.flying == GPUIR__LOADS) return NULL;
  while (l->batch) l++;
  l->n = 0;
  gpuir__lock(&c->device_lock);
  all = !c->device_lane.n && gpuir__peek(&c->device.waiting) <= c->pool->desc.batch;
  if (!all) gpuir__crew_collect(c, &c->device_inbox, &c->device_lane);
  while (l->n < c->pool->desc.batch && n < 64) {
    task = all ? gpuir__inbox_take(&c->device_inbox, &key) : gpuir__lane_pop(&c->device_lane);
    if (!task) break;
    if (!gpuir__load_add(l, task)) aside[n++] = task;
  }
  while (n--) gpuir__crew_queue(c, &c->device_lane, gpuir__crew_key(c, aside[n]), aside[n]);
  gpuir__unlock(&c->device_lock);
  gpuir__count_up(&c->device.waiting, 0 - (uint64_t)l->n);
  gpuir__crew_went(c, l->n, 0);
  return l->n ? l : NULL;
}

/* Gives the tasks of a batch that it did not answer back to the threads. The lock is held. */
static void gpuir__load_return(gpuir__crew *c, gpuir__load *l) {
  size_t i;
  for (i = 0; i < l->n; i++) {
    if (!l->tasks[i]) continue;
    gpuir__poke(&l->tasks[i]->pool_state, GPUIR__TASK_RETURNED);
    gpuir__count_up(&c->done.returned, 1);
    gpuir__crew_wait(c, l->tasks[i]);
  }
  l->n = 0;
  gpuir__bell_ring(&c->work, (int)c->pool->nthreads);
}

/* Notes that a batch failed as a whole, and returns its tasks. */
GPUIR__COLD static void gpuir__device_failed(gpuir__crew *c, gpuir__load *l, int status) {
  gpuir__lock(&c->lock);
  gpuir__device_blame(c, status, "a batch failed");
  gpuir__load_return(c, l);
  if (++c->device.failures >= GPUIR__DEVICE_FAILURES) gpuir__device_lose(c);
  gpuir__unlock(&c->lock);
}

/* Says when the device is likely to take another batch: when the first one of those in flight is answered. */
static void gpuir__device_note_free(gpuir__device *d) {
  const uint64_t first = gpuir__min64(d->load[0].since, d->load[1].since);
  gpuir__poke(&d->free_at, d->flying < GPUIR__LOADS ? 0 : first + d->batch_ns);
}

/* Hands a batch to the device. */
static void gpuir__device_begin(gpuir__crew *c, gpuir__load *l) {
  gpuir__device *d = &c->device;
  const size_t hits = l->n * l->k;
  gpuir_batch_desc desc;
  size_t i;
  int status = GPUIR_OK;
  if (hits > l->nhits) {
    gpuir__free(&c->pool->a, l->hits, l->nhits * sizeof *l->hits);
    l->hits = (gpuir_hit *)gpuir__alloc(&c->pool->a, hits * sizeof *l->hits);
    l->nhits = l->hits ? hits : 0;
    if (!l->hits) status = GPUIR_E_NOMEM;
  }
  memset(&desc, 0, sizeof desc);
  desc.queries = l->queries;
  desc.nq = l->n;
  desc.k = l->k;
  desc.hits = l->hits;
  desc.counts = l->counts;
  desc.statuses = l->statuses;
  desc.deadlines = l->deadlines;
  desc.cancels = l->cancels;
  l->since = gpuir__now();
  for (i = 0; i < l->n; i++) l->tasks[i]->started = l->since;
  if (!status) status = gpuir_search_begin(d->searcher, &desc, &l->batch);
  if (status) {
    gpuir__device_failed(c, l, status);
    return;
  }
  gpuir__count_up(&c->done.batches, 1);
  d->flying++;
  gpuir__device_note_free(d);
}

/* Completes task i of a batch that is answered, if the device did, but for counting it; 0 if it failed. */
static int gpuir__load_settle(gpuir__crew *c, gpuir__load *l, size_t i) {
  gpuir_task *task = l->tasks[i];
  const int status = l->statuses[i];
  if (status && status != GPUIR_E_DEADLINE && status != GPUIR_E_CANCELLED) return 0;
  task->count = status ? 0 : l->counts[i];
  if (task->count) memcpy(task->hits, l->hits + i * l->k, task->count * sizeof *task->hits);
  l->tasks[i] = NULL;
  task->on_device = !status;
  gpuir__pool_settle(c->pool, task, status);
  return 1;
}

/* Takes a batch back from the device. */
static void gpuir__device_finish(gpuir__crew *c, gpuir__load *l) {
  gpuir__device *d = &c->device;
  const uint64_t ns = gpuir__now() - l->since, mean = d->batch_ns;
  int status = gpuir_search_finish(l->batch);
  size_t i, settled = 0;
  l->batch = NULL;
  d->flying--;
  gpuir__device_note_free(d);
  for (i = 0; i < l->n; i++) {
    if (i + 4 < l->n) __builtin_prefetch(l->tasks[i + 4]->hits, 1);
    if (gpuir__load_settle(c, l, i)) settled++;
    else status = l->statuses[i]; /* a deadline or a cancellation is not the device's fault */
  }
  gpuir__pool_end(c->pool, settled);
  gpuir__count_up(&c->done.on_device, settled);
  if (!settled) {
    gpuir__device_failed(c, l, status);
    return;
  }
  d->failures = 0;
  gpuir__poke(&d->batch_ns, (mean * 7 + gpuir__min64(ns, 2 * mean)) / 8); /* one stall is none */
  if (settled == l->n) return;
  gpuir__lock(&c->lock);
  gpuir__device_blame(c, status, "a query failed");
  gpuir__load_return(c, l);
  gpuir__unlock(&c->lock);
}

/* Gives a device that does not answer up. What it may still write to is forgotten, never freed. */
static void gpuir__device_abandon(gpuir__crew *c) {
  gpuir__device *d = &c->device;
  unsigned i;
  gpuir__lock(&c->lock);
  (void)gpuir__fail(&d->error, GPUIR_E_BACKEND, 0, "the device left a batch unanswered for %llu ms",
      (unsigned long long)(c->pool->desc.device_limit_ns / 1000000));
  gpuir__device_lose(c);
  for (i = 0; i < GPUIR__LOADS; i++) {
    gpuir__load *l = &d->load[i];
    if (!l->batch) continue;
    l->batch->asked = 0;
    l->batch = NULL;
    l->hits = NULL;
    l->nhits = 0;
    l->counts = NULL;
    gpuir__load_return(c, l);
  }
  d->flying = 0;
  gpuir__device_note_free(d);
  d->searcher->has_backend = 0;
  gpuir__unlock(&c->lock);
}

/* Looks at a batch in flight: passes on what was cancelled, and takes it back if it is done. 0: nothing happened. */
static int gpuir__device_look(gpuir__crew *c, gpuir__load *l) {
  const int stopping = gpuir__peek(c->stop);
  size_t i;
  for (i = 0; i < l->n; i++) {
    const int *cancel = l->tasks[i]->cancel;
    if (stopping || (cancel && gpuir__peek(cancel))) gpuir__poke(&l->flags[i], 1);
  }
  if (gpuir_search_poll(l->batch)) {
    gpuir__device_finish(c, l);
    return 1;
  }
  if (gpuir__now() - l->since < c->pool->desc.device_limit_ns) return 0;
  gpuir__device_abandon(c);
  return 1;
}

/* Looks at the batches in flight until one is answered, or another can begin; naps where one is late. */
static void gpuir__device_watch(gpuir__crew *c) {
  gpuir__device *d = &c->device;
  const uint64_t since = gpuir__now();
  int happened = 0;
  do {
    struct timespec nap;
    unsigned i;
    for (i = 0; i < GPUIR__LOADS; i++)
      if (d->load[i].batch) happened += gpuir__device_look(c, &d->load[i]);
    nap.tv_sec = 0;
    nap.tv_nsec = GPUIR__DEVICE_NAP;
    if (happened) return;
    if (gpuir__now() - since < 2 * d->batch_ns) continue;
    (void)nanosleep(&nap, NULL);
  } while (d->flying == GPUIR__LOADS || !gpuir__peek(&c->device.waiting));
}

/* Attaches the device, and lets tasks wait for it. */
static void gpuir__device_open(gpuir__crew *c) {
  gpuir__device *d = &c->device;
  const gpuir_pool_desc *desc = &c->pool->desc;
  gpuir_error err;
  int status = GPUIR_OK;
  unsigned i;
  memset(&err, 0, sizeof err);
  for (i = 0; i < GPUIR__LOADS && !status; i++) status = gpuir__load_make(c->pool, &d->load[i]);
  if (!status) status = desc->attach(desc->attach_user, d->searcher, &err);
  gpuir__lock(&c->lock);
  __atomic_store_n(&d->state, status ? GPUIR__DEVICE_LOST : GPUIR__DEVICE_GOOD, __ATOMIC_RELEASE);
  if (status) {
    d->error = err;
    if (!err.code) (void)gpuir__fail(&d->error, status, 0, "no device: %s", gpuir_strerror(status));
  }
  gpuir__unlock(&c->lock);
}

/* The life of the thread that drives a device. What comes back from it when the pool ends may find no other thread. */
static void gpuir__device_work(gpuir__crew *c) {
  gpuir__device *d = &c->device;
  uint64_t heard = 0;
  gpuir__device_open(c);
  for (;;) {
    gpuir__load *l = gpuir__device_form(c);
    if (l || d->flying) gpuir__bell_leave(&c->device_work, &heard);
    if (l) gpuir__device_begin(c, l);
    else if (d->flying) gpuir__device_watch(c);
    else if (gpuir__peek(&c->stopping) || !gpuir__device_is_good(c)) break;
    else gpuir__bell_wait(&c->device_work, &heard, 1);
  }
  gpuir__bell_leave(&c->device_work, &heard);
  if (gpuir__peek(&c->stopping)) gpuir__crew_thread(c);
}

/* ---- the policies */

static void gpuir__crew_work(void *state, unsigned thread) {
  gpuir__crew *c = (gpuir__crew *)state;
  if (thread < c->pool->nthreads) gpuir__crew_thread(c);
  else gpuir__device_work(c);
}

static void gpuir__crew_stop(void *state) {
  gpuir__crew *c = (gpuir__crew *)state;
  gpuir__lock(&c->lock);
  gpuir__poke(&c->stopping, 1);
  gpuir__unlock(&c->lock);
  gpuir__bell_ring(&c->work, (int)c->pool->nthreads);
  gpuir__bell_ring(&c->device_work, 1);
}

static void gpuir__mate_free(gpuir__mate *m) {
  if (!m->crew) return;
  if (m->searcher) {
    const gpuir_allocator *a = &m->searcher->engine.a;
    if (m->share.found.heap) (void)a->resize(a->user, m->share.found.heap, m->share.found.cap * 8, 0);
  }
  (void)pthread_mutex_destroy(&m->share.lock);
  (void)pthread_cond_destroy(&m->share.left);
  gpuir_searcher_destroy(m->searcher);
}

GPUIR__COLD static void gpuir__crew_destroy(void *state) {
  gpuir__crew *c = (gpuir__crew *)state;
  const gpuir_allocator a = c->pool->a;
  unsigned i;
  for (i = 0; c->mates && i < c->pool->nthreads; i++) gpuir__mate_free(&c->mates[i]);
  gpuir_searcher_destroy(c->device.searcher);
  for (i = 0; i < GPUIR__LOADS; i++) gpuir__load_free(c->pool, &c->device.load[i]);
  gpuir__free(&a, c->mates, c->pool->nthreads * sizeof *c->mates);
  gpuir__free(&a, c->lane.heap, c->most * sizeof *c->lane.heap);
  gpuir__free(&a, c->device_lane.heap, c->most * sizeof *c->device_lane.heap);
  gpuir__free(&a, c->inbox.slots, (c->inbox.mask + 1) * sizeof *c->inbox.slots);
  gpuir__free(&a, c->device_inbox.slots, (c->device_inbox.mask + 1) * sizeof *c->inbox.slots);
  (void)pthread_mutex_destroy(&c->lock);
  (void)pthread_mutex_destroy(&c->device_lock);
  (void)sem_destroy(&c->work.wakes);
  (void)sem_destroy(&c->device_work.wakes);
  gpuir__free(&a, c, sizeof *c);
}

/* Makes a thread's searcher and what it shares searches by. */
static int gpuir__mate_make(gpuir__crew *c, gpuir__mate *m, const gpuir_searcher_desc *desc, gpuir_error *err) {
  m->crew = c;
  (void)pthread_mutex_init(&m->share.lock, NULL);
  (void)pthread_cond_init(&m->share.left, NULL);
  m->share.backlog = &c->backlog;
  m->share.opened = gpuir__mate_offers;
  m->share.ripened = gpuir__mate_ripens;
  m->share.user = m;
  gpuir__mate_give(m);
  return gpuir_searcher_create(c->pool->ix, desc, &m->searcher, err);
}

/* Makes what the policies keep. */
GPUIR__COLD static int gpuir__crew_create(gpuir_pool *p, void **state, gpuir_error *err) {
  gpuir__crew *c = (gpuir__crew *)gpuir__alloc_zero(&p->a, sizeof *c);
  gpuir_searcher_desc desc;
  unsigned i;
  int status = GPUIR_OK;
  if (!c) return gpuir__fail_nomem(err);
  memset(&desc, 0, sizeof desc);
  desc.allocator = &p->a;
  c->stop = desc.cancel = p->desc.cancel ? p->desc.cancel : &c->stopping;
  c->pool = p;
  c->shares = p->policy.name[0] == 'a';
  c->room = p->desc.queue;
  c->most = c->room + (p->extra ? GPUIR__LOADS * p->desc.batch : 0);
  c->device.batch_ns = GPUIR__DEVICE_NS;
  c->work.rings = c->device_work.rings = 1;
  while (c->inbox.mask < c->room) c->inbox.mask = 2 * c->inbox.mask + 1;
  c->device_inbox.mask = c->inbox.mask;
  (void)pthread_mutex_init(&c->lock, NULL);
  (void)pthread_mutex_init(&c->device_lock, NULL);
  (void)sem_init(&c->work.wakes, 0, 0);
  (void)sem_init(&c->device_work.wakes, 0, 0);
  c->lane.heap = (gpuir__lane_item *)gpuir__alloc(&p->a, c->most * sizeof *c->lane.heap);
  c->device_lane.heap = (gpuir__lane_item *)gpuir__alloc(&p->a, c->most * sizeof *c->lane.heap);
  c->inbox.slots = (gpuir__lane_item *)gpuir__alloc_zero(&p->a, (c->inbox.mask + 1) * sizeof *c->inbox.slots);
  c->device_inbox.slots = (gpuir__lane_item *)gpuir__alloc_zero(&p->a, (c->inbox.mask + 1) * sizeof *c->inbox.slots);
  c->mates = (gpuir__mate *)gpuir__alloc_zero(&p->a, p->nthreads * sizeof *c->mates);
  if (!c->lane.heap || !c->device_lane.heap || !c->inbox.slots || !c->device_inbox.slots || !c->mates)
    status = gpuir__fail_nomem(err);
  for (i = 0; i < p->nthreads && !status; i++) status = gpuir__mate_make(c, &c->mates[i], &desc, err);
  if (!status && p->extra) status = gpuir_searcher_create(p->ix, &desc, &c->device.searcher, err);
  if (status) gpuir__crew_destroy(c);
  else *state = c;
  return status;
}

static const gpuir_policy gpuir__policies[] = {
    {"auto", gpuir__crew_create, gpuir__crew_submit, gpuir__crew_work, gpuir__crew_stop, gpuir__crew_destroy},
    {"inter", gpuir__crew_create, gpuir__crew_submit, gpuir__crew_work, gpuir__crew_stop, gpuir__crew_destroy}};

/* ---- the pool */

GPUIR_API gpuir_index *gpuir_pool_index(const gpuir_pool *p) { return p ? p->ix : NULL; }
GPUIR_API unsigned gpuir_pool_threads(const gpuir_pool *p) { return p ? p->nthreads : 0; }
GPUIR_API void *gpuir_pool_user(const gpuir_pool *p) { return p ? p->desc.custom_user : NULL; }

/* Takes over what the pool is to be, with its defaults; chooses the policy. */
static int gpuir__pool_configure(gpuir_pool *p, const gpuir_pool_desc *desc, gpuir_error *err) {
  gpuir_pool_desc *d = &p->desc;
  const char *name;
  size_t i;
  if (desc) *d = *desc;
  name = d->policy ? d->policy : "auto";
  if (d->threads > 4096) return gpuir__refuse(err, "%u threads: a pool has at most 4096", d->threads);
  if (!d->threads) {
    const long processors = sysconf(_SC_NPROCESSORS_ONLN) - (d->attach != NULL);
    d->threads = processors > 0 && processors < 4096 ? (unsigned)processors : 1;
  }
  if (!d->queue) d->queue = 4096;
  if (!d->batch) d->batch = 1024;
  if (!d->device_limit_ns) d->device_limit_ns = 2000000000u;
  if (d->queue > SIZE_MAX / 64 || d->batch > SIZE_MAX / 64 / GPUIR__SHARE_K)
    return gpuir__refuse(err, "a queue or a batch that no memory holds");
  if (d->custom &&
      (!d->custom->create || !d->custom->submit || !d->custom->work || !d->custom->stop || !d->custom->destroy))
    return gpuir__refuse(err, "a policy that lacks functions");
  for (i = 0; i < sizeof gpuir__policies / sizeof *gpuir__policies; i++)
    if (!strcmp(gpuir__policies[i].name, name)) p->policy = gpuir__policies[i];
  if (d->custom) p->policy = *d->custom;
  if (!p->policy.create) return gpuir__refuse(err, "no policy is called '%.64s'", name);
  p->nthreads = d->threads;
  p->extra = d->attach && p->policy.create == gpuir__crew_create && !strcmp(p->policy.name, "auto");
  return GPUIR_OK;
}

static void *gpuir__pool_run(void *pool) {
  gpuir_pool *p = (gpuir_pool *)pool;
  if (p->desc.thread) p->desc.thread(p->desc.thread_user);
  p->policy.work(p->state, (unsigned)gpuir__seq_add(&p->numbered, 1));
  return NULL;
}

static void gpuir__pool_free(gpuir_pool *p) {
  const gpuir_allocator a = p->a;
  if (p->state) p->policy.destroy(p->state);
  gpuir__free(&a, p->threads, (p->nthreads + p->extra) * sizeof *p->threads);
  (void)pthread_mutex_destroy(&p->lock);
  (void)pthread_cond_destroy(&p->complete);
  gpuir__free(&a, p, sizeof *p);
}

GPUIR__COLD GPUIR_API int gpuir_pool_create(gpuir_index *ix, const gpuir_pool_desc *desc, gpuir_pool **pool,
    gpuir_error *err) {
  gpuir_allocator a;
  gpuir_pool *p;
  unsigned total;
  int status;
  if (pool) *pool = NULL;
  if (!ix || !pool) return gpuir__refuse(err, "gpuir_pool_create: NULL argument");
  a = desc && desc->allocator ? gpuir__allocator(desc->allocator) : ix->a;
  p = (gpuir_pool *)gpuir__alloc_zero(&a, sizeof *p);
  if (!p) return gpuir__fail_nomem(err);
  p->a = a;
  p->ix = ix;
  (void)pthread_mutex_init(&p->lock, NULL);
  (void)pthread_cond_init(&p->complete, NULL);
  status = gpuir__pool_configure(p, desc, err);
  total = p->nthreads + p->extra;
  if (!status) {
    p->threads = (pthread_t *)gpuir__alloc(&a, total * sizeof *p->threads);
    status = p->threads ? p->policy.create(p, &p->state, err) : gpuir__fail_nomem(err);
  }
  if (status) gpuir__pool_free(p);
  else *pool = p;
  return status;
}

/* Starts the threads, which leave signals to the program's own but those that a fault of theirs raises. A policy of the
 * library does with fewer threads than it asked for. */
static int gpuir__pool_start(gpuir_pool *p) {
  static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
  const unsigned total = p->nthreads + p->extra, needed = p->desc.custom ? total : 1;
  sigset_t all, before;
  size_t i;
  gpuir__lock(&p->lock);
  (void)sigfillset(&all);
  for (i = 0; i < sizeof faults / sizeof *faults; i++) (void)sigdelset(&all, faults[i]);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  while (p->started < total && !pthread_create(&p->threads[p->started], NULL, gpuir__pool_run, p)) p->started++;
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (p->started >= needed) __atomic_store_n(&p->running, 1, __ATOMIC_RELEASE);
  gpuir__unlock(&p->lock);
  return p->started >= needed ? GPUIR_OK : GPUIR_E_IO;
}

/* Checks a task, and makes it ready for the policy. */
static int gpuir__pool_accept(gpuir_pool *p, gpuir_task *task) {
  int status = GPUIR_OK;
  if (!task || !task->query || task->query->ix != p->ix || (task->k && !task->hits)) return GPUIR_E_ARGUMENT;
  if (!__atomic_load_n(&p->running, __ATOMIC_ACQUIRE)) status = gpuir__pool_start(p);
  if (status) return status;
  if (!task->due) task->due = gpuir__now();
  task->count = 0;
  task->status = GPUIR_OK;
  task->started = task->finished = 0;
  gpuir__poke(&task->pool_state, GPUIR__TASK_SUBMITTED);
  return GPUIR_OK;
}

/* Hands a task that is accepted to the policy. */
static int gpuir__pool_hand(gpuir_pool *p, gpuir_task *task, int (*submit)(void *state, gpuir_task *task)) {
  int status = gpuir__pool_accept(p, task);
  if (status) return status;
  (void)gpuir__seq_add(&p->submitted, 1);
  status = submit(p->state, task);
  if (status) {
    gpuir__count_up(&p->refused, 1);
    gpuir__pool_end(p, 1);
  }
  return status;
}

GPUIR_API int gpuir_pool_submit(gpuir_pool *p, gpuir_task *task) {
  return p ? gpuir__pool_hand(p, task, p->policy.submit) : GPUIR_E_ARGUMENT;
}

/* Submits tasks together, all or none. */
static int gpuir__crew_submit_many(gpuir__crew *c, gpuir_task *const *tasks, size_t n) {
  const uint64_t now = gpuir__device_is_good(c) ? gpuir__now() : 0;
  gpuir_pool *p = c->pool;
  size_t i;
  int status = GPUIR_OK;
  for (i = 0; i < n && !status; i++) {
    status = gpuir__pool_accept(p, tasks[i]);
    if (!status) gpuir__crew_route(c, tasks[i], now);
  }
  if (status) return status;
  (void)gpuir__seq_add(&p->submitted, n);
  status = gpuir__crew_post(c, tasks, n);
  if (status) {
    (void)gpuir__seq_add(&p->submitted, 0 - (uint64_t)n);
    gpuir__pool_end(p, 0);
  }
  return status;
}

GPUIR_API int gpuir_pool_submit_many(gpuir_pool *p, gpuir_task *const *tasks, size_t n, size_t *accepted) {
  int status = GPUIR_OK;
  if (accepted) *accepted = 0;
  if (!p || !accepted || (n && !tasks)) return GPUIR_E_ARGUMENT;
  if (n > 1 && p->policy.submit == gpuir__crew_submit && !gpuir__crew_submit_many((gpuir__crew *)p->state, tasks, n))
    *accepted = n;
  while (*accepted < n && !status) {
    status = gpuir_pool_submit(p, tasks[*accepted]);
    *accepted += !status;
  }
  return status;
}

GPUIR_API int gpuir_pool_run(gpuir_pool *p, gpuir_task *task) {
  if (!p || p->policy.submit != gpuir__crew_submit) return gpuir_pool_submit(p, task);
  return gpuir__pool_hand(p, task, gpuir__crew_run);
}

GPUIR_API void gpuir_pool_cancel(gpuir_pool *p, gpuir_task *task) {
  gpuir__crew *c;
  gpuir__lane *lane = NULL;
  if (!p || p->policy.submit != gpuir__crew_submit) return;
  c = (gpuir__crew *)p->state;
  gpuir__lock(&c->lock);
  gpuir__lock(&c->device_lock);
  gpuir__crew_collect(c, &c->inbox, &c->lane);
  gpuir__crew_collect(c, &c->device_inbox, &c->device_lane);
  if (gpuir__lane_raise(&c->lane, task)) lane = &c->lane;
  else if (gpuir__lane_raise(&c->device_lane, task)) lane = &c->device_lane;
  if (lane) (void)gpuir__crew_take(c, lane);
  gpuir__unlock(&c->device_lock);
  gpuir__unlock(&c->lock);
  if (lane) gpuir_pool_complete(p, task, GPUIR_E_CANCELLED);
}

GPUIR_API int gpuir_pool_wait(gpuir_pool *p, gpuir_task *task) {
  if (!p || !task || task->done || !gpuir__peek(&task->pool_state)) return GPUIR_E_ARGUMENT;
  if (__atomic_load_n(&task->pool_state, __ATOMIC_ACQUIRE) == GPUIR__TASK_COMPLETE) return task->status;
  gpuir__lock(&p->lock);
  (void)gpuir__seq_add(&p->waiters, 1);
  while (gpuir__seq_load(&task->pool_state) != GPUIR__TASK_COMPLETE) (void)pthread_cond_wait(&p->complete, &p->lock);
  (void)gpuir__seq_add(&p->waiters, -1);
  gpuir__unlock(&p->lock);
  return task->status;
}

GPUIR_API void gpuir_pool_drain(gpuir_pool *p) {
  if (!p) return;
  gpuir__lock(&p->lock);
  (void)gpuir__seq_add(&p->drainers, 1);
  while (gpuir__seq_load(&p->ended) != gpuir__seq_load(&p->submitted)) (void)pthread_cond_wait(&p->complete, &p->lock);
  (void)gpuir__seq_add(&p->drainers, -1);
  gpuir__unlock(&p->lock);
}

GPUIR_API void gpuir_pool_destroy(gpuir_pool *p) {
  unsigned i;
  if (!p) return;
  p->policy.stop(p->state);
  for (i = 0; i < p->started; i++) (void)pthread_join(p->threads[i], NULL);
  gpuir__pool_free(p);
}

GPUIR_API uint64_t gpuir_pool_estimate(const gpuir_pool *p, const gpuir_query *q) {
  gpuir__costs none;
  if (!p || !q) return 0;
  if (p->policy.submit == gpuir__crew_submit) return gpuir__cost_estimate(&((gpuir__crew *)p->state)->costs, q, NULL);
  memset(&none, 0, sizeof none);
  return gpuir__cost_estimate(&none, q, NULL);
}

GPUIR__COLD GPUIR_API void gpuir_pool_get_stats(gpuir_pool *p, gpuir_pool_stats *stats) {
  if (!p || !stats) return;
  memset(stats, 0, sizeof *stats);
  stats->refused = gpuir__peek(&p->refused);
  stats->completed = gpuir__peek(&p->ended);
  stats->completed -= gpuir__min64(stats->completed, stats->refused);
  stats->submitted = gpuir__peek(&p->submitted) - stats->refused;
  stats->cancelled = gpuir__peek(&p->cancelled);
  stats->missed = gpuir__peek(&p->missed);
  if (p->policy.submit == gpuir__crew_submit) {
    gpuir__crew *c = (gpuir__crew *)p->state;
    stats->shared = gpuir__peek(&c->done.shared);
    stats->joined = gpuir__peek(&c->done.joined);
    stats->batches = gpuir__peek(&c->done.batches);
    stats->on_device = gpuir__peek(&c->done.on_device);
    stats->returned = gpuir__peek(&c->done.returned);
    stats->waiting = gpuir__crew_waiting(c);
    gpuir__lock(&c->lock);
    stats->devices = c->device.state == GPUIR__DEVICE_GOOD;
    stats->devices_lost = c->device.state == GPUIR__DEVICE_LOST;
    stats->device_error = c->device.error;
    gpuir__unlock(&c->lock);
  }
}

#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC diagnostic pop
#endif
#endif /* GPUIR_IMPLEMENTATION */
