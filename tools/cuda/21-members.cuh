
/* ========================
 * [cuda-21-members]  host: a batch becomes tasks of a team's members, and their threads answer these
 *
 * An attached member is a thread with a searcher. The thread plans and waits, so that devices do not wait for each
 * other's planning. It has two tasks in flight, as a searcher may have two batches.
 *
 * If each member has the whole index, it has a range of a batch's queries. Ranges are paired, with a border between the
 * two, at which both members end. A member takes half of what is left of its range at a time, in launches that fill a
 * device. The border moves to where both will end at the same time, by what the queries cost and how far each member
 * is. A member that has nothing left takes queries from other ranges, and also those that a failed device leaves.
 *
 * Uses      [cuda-14-memory], [cuda-19-launch], [cuda-20-partition].
 * Start at  gt_member_main (a member's thread), gt_take_queries (its next task), gt_translate.
 * Tests     tests/gpu/test_team.c, which needs no device
 * ======================*/

#define GT_RANGE_LEAST 64u /* queries of a range at least */
#define GT_AND_COST 322000u /* in look-ups: see gt_cost */
#define GT_OR_COST 473000u
#define GT_OR_DRIVING 20u
#define GT_SPIN_NS 500000u /* time that a member looks for work before it sleeps, as waking it takes long */
#define GT_MEMBER_TASKS 8u /* tasks at most that a batch becomes for each member that has a part */
#define GT_TASKS (GT_MEMBER_TASKS * GT_MEMBERS) /* of a round at most */

/* ---- what a searcher asks of a team ---- */

typedef struct gt_batch gt_batch;

/* A member's queries of a round that are in no task. Members of even number take theirs from the beginning on, those of
 * odd number from the end: so the border between two ranges can move. */
typedef struct gt_range {
  size_t at, end;
  size_t begin; /* where its member began */
  size_t ended; /* how many from there on the member has answered */
  uint64_t when; /* when it answered the last of them, by gpuir__now */
} gt_range;

/* What one round of a batch asks of one member. Results go to the batch's arrays, or to the task's own. */
typedef struct gt_task {
  struct gt_task *next; /* in the member's queue */
  gt_range *range; /* the member's own range that it was taken from; or NULL */
  gt_batch *batch; /* NULL: it is not in use */
  const gpuir_query *const *queries; /* of the whole index */
  gpuir_batch_desc desc;
  gpuir_batch *handle; /* of the member's searcher, while it is in flight */
  const int *cancel;
  uint64_t deadline;
  int as_or, and_first; /* 1: its queries are asked as OR; ANDOR ones as AND */
  int ended; /* atomic; 1: its outcome is there */
  int status;
  gpuir_error error; /* of its first query that failed */
  gpuir__buf results, deadlines; /* hits, counts and statuses; a deadline for each query */
} gt_task;

/* A batch, from begin to finish. */
struct gt_batch {
  gpuir_batch_desc desc; /* its hits lie at multiples of desc.k */
  size_t k; /* hits of a query at most */
  uint64_t deadline;
  const int *cancel;
  int used, ready, again; /* ready: its outcome is there; again: the round is not the first */
  int failed; /* 1: some query failed, in any round; written atomically */
  uint64_t open; /* tasks that are not done, plus 1 while there are queries to take; atomic */
  uint64_t number; /* batches are served in this order */
  size_t n, taken; /* queries of the round; those that are in tasks or have failed */
  uint32_t *numbers; /* [query of the round] its number in the batch, in rounds behind the first */
  gpuir__buf gathered; /* the numbers, and pointers to the queries */
  gt_range ranges[GT_MEMBERS]; /* of members with the whole index */
  size_t launch_size; /* queries of a launch of such members */
  uint64_t since; /* when the ranges were assigned */
  gpuir__buf costs; /* [i] what the queries before number i cost, see gt_cost */
  const uint64_t *sums; /* the same; NULL: not known yet */
  size_t ntasks; /* of the round */
  size_t merged; /* of parts: tasks, from the first on, whose hits were merged */
  gt_task tasks[GT_TASKS]; /* of parts: those of the same queries stand in a row, by member */
  gpuir_error error;
  int status;
};

typedef struct gt_context gt_context;

/* A member of a searcher's team. */
typedef struct gt_member {
  gt_context *context;
  const gt_device *device;
  gpuir_searcher *searcher;
  pthread_t thread;
  int threaded;
  int lost; /* 1: its device failed, and it gets no further queries; under the lock */
  gt_task *first, *last; /* tasks that wait; under the lock */
  gt_task *in_flight[2]; /* the older one first; only its thread uses this and what follows */
  gt_task *next; /* translated while two are in flight; or NULL */
  gpuir__buf asked[3]; /* a part's queries, of these three tasks */
  unsigned asks; /* tasks that were in flight; they take `asked` in turn */
} gt_member;

/* What a searcher with a team has. */
struct gt_context {
  gpuir_allocator a;
  gt_team *team;
  pthread_mutex_t lock;
  pthread_cond_t work, done; /* for members; for those that wait for a batch */
  int ready, stop; /* ready: the three above are initialized */
  uint64_t signals; /* how often work came for members; written under the lock, read atomically */
  unsigned n;
  gt_member *members;
  gt_batch batches[2];
  uint64_t nbatches; /* begun */
};

/* ---- tasks ---- */

/* Returns the number in the batch of the round's query i. */
static size_t gt_number(const gt_batch *r, size_t i) { return r->again ? r->numbers[i] : i; }

/* Returns the round's queries. */
static const gpuir_query *const *gt_queries(const gt_batch *r) {
  return r->again ? (const gpuir_query *const *)(void *)r->gathered.data : r->desc.queries;
}

/* Ends a query with a status. */
static void gt_fail_query(gt_batch *r, size_t i, int status, const gpuir_error *err) {
  r->desc.statuses[i] = status;
  r->desc.counts[i] = 0;
  gpuir__poke(&r->failed, 1);
  if (r->status) return;
  r->status = status;
  if (err) r->error = *err;
}

/* Describes queries from .. from + n - 1 of the round to a task. own: 1: the task gets memory of its own for results;
 * NOMEM: there is none. */
static int gt_describe(const gt_context *x, const gt_batch *r, gt_task *t, size_t from, size_t n, int own) {
  const gpuir_batch_desc *d = &r->desc;
  const size_t hits = GC_ALIGN(n * r->k * sizeof(gpuir_hit));
  uint8_t *at;
  memset(&t->desc, 0, sizeof t->desc);
  t->queries = gt_queries(r) + from;
  t->desc.queries = t->queries;
  t->desc.nq = n;
  t->desc.k = own ? r->k : d->k;
  t->desc.count = d->count;
  if (!r->again && d->deadlines) t->desc.deadlines = d->deadlines + from;
  if (!r->again && d->cancels) t->desc.cancels = d->cancels + from;
  if (!own) {
    t->desc.hits = d->hits + from * d->k;
    t->desc.counts = d->counts + from;
    t->desc.statuses = d->statuses + from;
    return GPUIR_OK;
  }
  at = gpuir__buf_room(&x->a, &t->results, hits + n * 8 + 16);
  if (!at) return GPUIR_E_NOMEM;
  t->desc.hits = (gpuir_hit *)(void *)at;
  t->desc.counts = (uint32_t *)(void *)(at + hits);
  t->desc.statuses = (int *)(void *)(at + hits + n * 4);
  return GPUIR_OK;
}

/* Returns how many members have not failed. The lock is held. */
static unsigned gt_alive(const gt_context *x) {
  unsigned alive = 0, i;
  for (i = 0; i < x->n; i++) alive += !x->members[i].lost;
  return alive;
}

/* Makes a task one of the batch's. The lock is held. */
static void gt_open_task(gt_batch *r, gt_task *t) {
  t->batch = r;
  t->next = NULL;
  t->range = NULL;
  t->cancel = r->cancel;
  t->deadline = r->deadline;
  t->ended = 0;
  t->status = GPUIR_OK;
  t->error.code = 0;
  (void)__atomic_add_fetch(&r->open, 1, __ATOMIC_ACQ_REL);
}

/* Counts one task less that the batch waits for. The lock is held. */
static void gt_close_one(gt_context *x, gt_batch *r) {
  if (!__atomic_sub_fetch(&r->open, 1, __ATOMIC_ACQ_REL)) (void)pthread_cond_broadcast(&x->done);
}

/* Tells members that work has come. The lock is held. */
static void gt_signal_work(gt_context *x) {
  (void)__atomic_add_fetch(&x->signals, 1, __ATOMIC_RELEASE);
  (void)pthread_cond_broadcast(&x->work);
}

/* Puts a task into a member's queue. The lock is held. */
static void gt_queue_task(gt_context *x, gt_member *m, gt_batch *r, gt_task *t) {
  gt_open_task(r, t);
  if (m->last) m->last->next = t;
  else m->first = t;
  m->last = t;
  gt_signal_work(x);
}

/* Notes that n of the round's queries are in tasks or have failed. The lock is held. */
static void gt_took(gt_context *x, gt_batch *r, size_t n) {
  r->taken += n;
  if (r->taken == r->n) gt_close_one(x, r);
}

/* Fails queries from .. from + n - 1 of the round, which are in no task. The lock is held. */
static void gt_drop(gt_context *x, gt_batch *r, size_t from, size_t n, int status) {
  size_t i;
  for (i = from; i < from + n; i++) gt_fail_query(r, gt_number(r, i), status, NULL);
  gt_took(x, r, n);
}

/* Assigns a round's queries to the members that have not failed; few queries go to some of these. The lock is held. */
static void gt_assign_ranges(const gt_context *x, gt_batch *r) {
  const gpuir_cuda *c = x->team->devices[0].cuda;
  const size_t nranges = (size_t)gpuir__max64(1, gpuir__min64(gt_alive(x), r->n / GT_RANGE_LEAST));
  const unsigned first =
      nranges < x->n ? (unsigned)(r->number % x->n) : 0; /* so that small batches use all members in turn */
  size_t given = 0;
  unsigned i;
  memset(r->ranges, 0, sizeof r->ranges);
  r->since = gpuir__now();
  r->sums = NULL;
  for (i = 0; i < x->n && given < nranges; i++) {
    const unsigned to = (first + i) % x->n;
    if (x->members[to].lost) continue;
    r->ranges[to].at = r->n * given / nranges;
    r->ranges[to].end = r->n * ++given / nranges;
    r->ranges[to].begin = to & 1 ? r->ranges[to].end : r->ranges[to].at;
  }
  r->launch_size = c && !c->by_itself ? c->batch : gc_launch_most(gt_queries(r), r->n);
}

/* Moves the border between two members' ranges to where both will end at the same time, as far as neither has taken
 * queries beyond it. It assumes that each goes on from the last query that it has answered, and both at their common
 * pace. The lock is held. */
static void gt_move_border(const gt_context *x, gt_batch *r, unsigned even) {
  gt_range *a = &r->ranges[even], *b = a + 1;
  const uint64_t *sums = r->sums;
  size_t lo = a->at, hi = b->end;
  double middle;
  if (!sums || even + 1 >= x->n || a->end != b->at || x->members[even].lost || x->members[even + 1].lost) return;
  middle = ((double)sums[a->begin] + (double)sums[b->begin]) / 2;
  if (a->ended && b->ended) {
    const uint64_t first = sums[a->begin + a->ended], last = sums[b->begin - b->ended];
    const uint64_t gone = first - sums[a->begin] + sums[b->begin] - last;
    const double spent = (double)(a->when - r->since) + (double)(b->when - r->since);
    const double ahead = (double)b->when - (double)a->when; /* time that a has worked since, while b had not ended */
    middle = ((double)first + (double)last + ahead * (double)gone / (spent > 1 ? spent : 1)) / 2;
  }
  while (lo < hi) {
    const size_t mid = lo + (hi - lo) / 2;
    if ((double)sums[mid] < middle) lo = mid + 1;
    else hi = mid;
  }
  a->end = b->at = lo;
}

/* Moves the border of a member's range, and returns the range from which the member takes next: its own; or the largest
 * of others, if it has nothing else to do or their member has failed. NULL: there is none. The lock is held. */
static gt_range *gt_choose_range(const gt_member *m, gt_batch *r) {
  const gt_context *x = m->context;
  gt_range *best = &r->ranges[m - x->members];
  unsigned i;
  gt_move_border(x, r, (unsigned)(m - x->members) & ~1u);
  if (best->at < best->end) return best;
  for (i = 0; i < x->n; i++) {
    gt_range *s = &r->ranges[i];
    if ((!m->in_flight[0] || x->members[i].lost) && s->end - s->at > best->end - best->at) best = s;
  }
  return best->at < best->end ? best : NULL;
}

/* Returns how many queries a member takes of its own range, of which `left` are left: half of the launches that they
 * make; and if its device waits, a short first launch before these. A launch fills the device. If the last one would be
 * almost empty, all launches share the queries evenly. */
static size_t gt_own_take(const gt_batch *r, size_t left, int waits) {
  const size_t begin = waits && left > r->launch_size ? GC_FIRST_QUERIES : 0, rest = left - begin;
  const size_t launches = (rest + r->launch_size - 1) / r->launch_size, last = rest - (launches - 1) * r->launch_size;
  const size_t each = last < r->launch_size / 4 ? (rest + launches - 1) / launches : r->launch_size;
  return begin + each * ((launches + 1) / 2);
}

/* Takes the queries of a task from a range; own: it is the member's; waits: its device has nothing to do. Returns the
 * first; *n: how many. */
static size_t gt_take_from_range(const gt_batch *r, gt_range *s, int own, int waits, size_t *n) {
  const size_t left = s->end - s->at;
  const int odd = (s - r->ranges) & 1, at_end = odd == own;
  *n = own ? gt_own_take(r, left, waits) : gpuir__max64(left / 2, GT_RANGE_LEAST);
  if (*n + (own ? 0 : GT_RANGE_LEAST / 2) > left || r->ntasks + GT_MEMBERS >= GT_TASKS) *n = left;
  if (at_end) s->end -= *n;
  else s->at += *n;
  return at_end ? s->end : s->at - *n;
}

/* Makes a task of queries of the oldest batch that has some for a member. NULL: there are none. The lock is held. */
static gt_task *gt_take_queries(gt_member *m) {
  gt_context *x = m->context;
  gt_batch *r = &x->batches[x->batches[1].used && (!x->batches[0].used || x->batches[1].number < x->batches[0].number)];
  gt_range *s = r->used && r->taken < r->n ? gt_choose_range(m, r) : NULL;
  gt_task *t;
  size_t from, n;
  int own;
  if (!s) {
    r = &x->batches[r == x->batches];
    s = r->used && r->taken < r->n ? gt_choose_range(m, r) : NULL;
  }
  if (!s) return NULL;
  own = s == &r->ranges[m - x->members];
  from = gt_take_from_range(r, s, own, !m->in_flight[0], &n);
  t = &r->tasks[r->ntasks];
  if (gt_describe(x, r, t, from, n, r->again)) {
    gt_drop(x, r, from, n, GPUIR_E_NOMEM);
    return NULL;
  }
  r->ntasks++;
  gt_open_task(r, t);
  if (own) t->range = s;
  gt_took(x, r, n);
  return t;
}

/* Fails the queries that nobody can take, as all members have failed. The lock is held. */
static void gt_give_up(gt_context *x) {
  unsigned i, j;
  for (i = 0; i < 2 && !gt_alive(x); i++) {
    gt_batch *r = &x->batches[i];
    for (j = 0; j < x->n && r->used && r->taken < r->n; j++) {
      gt_range *s = &r->ranges[j];
      const size_t n = s->end - s->at;
      s->end = s->at;
      if (n) gt_drop(x, r, s->at, n, GPUIR_E_BACKEND);
    }
  }
}

/* Returns how many postings drive MaxScore: those of the lists with which a document may reach the threshold that is
 * known beforehand. A list with seeds has a threshold of about its weight. */
static uint64_t gt_driving(const gpuir_query *q) {
  float threshold = 0;
  uint64_t sum = 0;
  unsigned i, j;
  for (i = 0; i < q->npositive; i++) {
    const float weight = (float)q->terms[i].q * q->terms[i].weight;
    if (q->terms[i].df > GPUIR__WHOLE && weight > threshold) threshold = weight;
  }
  for (i = 0; i < q->npositive; i++) {
    float most = 0; /* of a document that no shorter list holds */
    for (j = 0; j < q->npositive; j++)
      if (q->terms[j].df >= q->terms[i].df) most += (float)q->terms[j].q * q->terms[j].weight;
    if (most >= threshold) sum += q->terms[i].df;
  }
  return sum;
}

/* Returns about how long a device takes for a query; the unit is a look-up. An AND looks each posting of the shortest
 * list up in all others. An OR looks one of twenty driving postings up in all others. The constants are a line fitted
 * to the times of random calls (tools/results/cuda_notes.txt). */
static uint64_t gt_cost(const gpuir_query *q) {
  const uint64_t n = q->npositive;
  const int all = q->mode == GPUIR_AND;
  uint32_t least = UINT32_MAX;
  unsigned i;
  for (i = 0; i < n; i++)
    if (all || q->terms[i].df) least = gpuir__min32(least, q->terms[i].df);
  if (!least || least == UINT32_MAX) return 0; /* it has no hits */
  return n * least + (all ? GT_AND_COST : (n - 1) * gt_driving(q) / GT_OR_DRIVING + GT_OR_COST);
}

/* Adds up what a batch's queries cost, and moves the borders between ranges by it. Members work on the first queries
 * meanwhile. */
static void gt_balance(gt_context *x, gt_batch *r) {
  const gpuir_query *const *q = gt_queries(r);
  uint64_t *sums = (uint64_t *)(void *)gpuir__buf_room(&x->a, &r->costs, (r->n + 1) * sizeof *sums);
  size_t i;
  if (!sums) return;
  for (sums[0] = 0, i = 0; i < r->n; i++) sums[i + 1] = sums[i] + gt_cost(q[i]);
  (void)pthread_mutex_lock(&x->lock);
  r->sums = sums;
  for (i = 0; i < x->n; i += 2) gt_move_border(x, r, (unsigned)i);
  (void)pthread_mutex_unlock(&x->lock);
}

/* ---- a member's thread ---- */

/* Returns the functions of the program's copy of gpuir.h. */
static const gpuir__calls *gt_calls(const gt_member *m) { return m->context->team->ix->calls; }

/* Returns whether a query has phrases or prefixes. */
static int gt_unanswerable(const gpuir_query *q) { return q->nphrases || q->nprefixes; }

/* Returns whether a query has optional terms beside required ones, or asks for an OR of other words than its AND's. */
static int gt_is_mixed(const gpuir_query *q) {
  return (q->nrequired < q->npositive && q->mode != GPUIR_OR) || gpuir__query_has_two(q, SIZE_MAX);
}

/* Returns whether parts cannot answer a query. Only parts that are segments have positions. */
static int gt_refuses(const gt_team *t, const gpuir_query *q) {
  if (gt_is_mixed(q)) return 1;
  return t->live ? q->nprefixes > 0 : gt_unanswerable(q);
}

/* Returns of how many members of phrases parts are told. */
static unsigned gt_members_of(const gt_team *t, const gpuir_query *q) {
  return t->live && q->nphrases ? q->phrases->nmembers : 0;
}

/* Finds the term, or the phrase's member, of this number of a query in a part. */
static void gt_translate_id(const gt_device *d, const gpuir_query *q, gpuir_query *to, unsigned number) {
  uint32_t id = q->ids[d->leaf * GPUIR__IDS + number];
  gpuir__record *r = gpuir__query_record(to, 0, number);
  memset(r, 0, sizeof *r);
  if (number < GPUIR__ID_MEMBERS && q->terms[number].tokens) id = GPUIR__NO_TERM;
  if (id != GPUIR__NO_TERM && d->ids) id = d->ids[id];
  to->ids[number] = id;
  if (id == GPUIR__NO_TERM) return;
  if (d->records) *r = d->records[id];
  else gpuir__record_get(d->part->leaves[0].seg, id, r);
}

/* Copies a query for a part of the index, where its terms have other numbers, or none. Of a query that devices cannot
 * answer nothing is copied: gt_merge_query fails it. */
static gpuir_query *gt_translate(const gt_task *t, const gt_member *m, const gpuir_query *q, uint8_t **at) {
  const gt_device *d = m->device;
  const gt_team *team = m->context->team;
  const unsigned members = gt_members_of(team, q);
  const size_t each = members ? sizeof q->terms[0] : offsetof(gpuir__query_term, text); /* no text */
  gpuir_query *to = (gpuir_query *)(void *)*at;
  unsigned i;
  memcpy((void *)to, q, offsetof(gpuir_query, terms));
  *at += GC_ALIGN(offsetof(gpuir_query, terms) + q->n * sizeof q->terms[0]);
  to->ids = (uint32_t *)(void *)*at;
  *at += GC_ALIGN((GPUIR__ID_MEMBERS + members) * sizeof(uint32_t));
  to->records = (gpuir__record *)(void *)*at;
  *at += GC_ALIGN((q->n + members) * sizeof(gpuir__record));
  to->ix = d->part;
  to->nrecords = q->n + members;
  if (team->live) to->stored_bm25 = q->stored_bm25 && d->weighed; /* otherwise as under other k1 and b */
  if (t->as_or) to->mode = GPUIR_OR;
  else if (t->and_first && q->mode == GPUIR_ANDOR) to->mode = GPUIR_AND;
  for (i = 0; i < q->n; i++) {
    memcpy((void *)&to->terms[i], &q->terms[i], each);
    if (!members) to->terms[i].len = 0;
    gt_translate_id(d, q, to, i);
  }
  for (i = 0; i < members; i++) gt_translate_id(d, q, to, GPUIR__ID_MEMBERS + i);
  if (gt_refuses(team, q))
    to->n = to->npositive = to->nrequired = to->nunknown = to->nknown = to->nphrases = to->nprefixes = 0;
  return to;
}

/* Prefetches what translating queries for a part will read: of query i of n, and of those behind it. Each is asked for
 * when what leads to it has come. */
static void gt_expect(const gt_device *d, const gpuir_query *const *queries, size_t i, size_t n) {
  enum { HEAD = 20, TERMS = 14, IDS = 10, RECORDS = 5 }; /* so many queries ahead */
  unsigned t;
  if (!d->records) return;
  if (i + HEAD < n)
    for (t = 0; t < offsetof(gpuir_query, terms); t += 64) __builtin_prefetch((const char *)queries[i + HEAD] + t);
  if (i + TERMS < n) {
    __builtin_prefetch(queries[i + TERMS]->ids);
    for (t = 0; t < queries[i + TERMS]->n; t++) __builtin_prefetch(&queries[i + TERMS]->terms[t]);
  }
  for (t = 0; i + IDS < n && t < queries[i + IDS]->n; t++) {
    const uint32_t id = gpuir__query_id(queries[i + IDS], 0, t);
    if (id != GPUIR__NO_TERM) __builtin_prefetch(&d->ids[id]);
  }
  for (t = 0; i + RECORDS < n && t < queries[i + RECORDS]->n; t++) {
    const uint32_t id = gpuir__query_id(queries[i + RECORDS], 0, t);
    if (id != GPUIR__NO_TERM && d->ids[id] != GPUIR__NO_TERM) __builtin_prefetch(&d->records[d->ids[id]]);
  }
}

/* Translates a task's queries for a part. The task in flight goes on meanwhile. */
static int gt_translate_all(gt_member *m, gt_task *t, gpuir_error *err) {
  gpuir__buf *asked = &m->asked[m->asks % 3];
  const gpuir_query **to;
  uint8_t *at;
  size_t size = t->desc.nq * sizeof *to, i;
  for (i = 0; i < t->desc.nq; i++) {
    const gpuir_query *q = t->queries[i];
    const unsigned members = gt_members_of(m->context->team, q);
    size += GC_ALIGN(offsetof(gpuir_query, terms) + q->n * sizeof q->terms[0]) +
        GC_ALIGN((GPUIR__ID_MEMBERS + members) * sizeof(uint32_t)) + GC_ALIGN((q->n + members) * sizeof(gpuir__record));
  }
  to = (const gpuir_query **)(void *)gpuir__buf_room(&m->context->a, asked, size + 16);
  if (!to) return gpuir__fail_nomem(err);
  at = (uint8_t *)to + GC_ALIGN(t->desc.nq * sizeof *to);
  for (i = 0; i < t->desc.nq; i++) {
    gt_expect(m->device, t->queries, i, t->desc.nq);
    to[i] = gt_translate(t, m, t->queries[i], &at);
    if (i % 64 == 63 && m->in_flight[0]) (void)gt_calls(m)->search_poll(m->in_flight[0]->handle);
  }
  t->desc.queries = to;
  return GPUIR_OK;
}

/* Gives each query of a task its time limit: its own or the batch's. */
static int gt_limit(const gt_member *m, gt_task *t, gpuir_error *err) {
  uint64_t *to;
  size_t i;
  if (!t->deadline) return GPUIR_OK;
  to = (uint64_t *)(void *)gpuir__buf_room(&m->context->a, &t->deadlines, t->desc.nq * sizeof *to);
  if (!to) return gpuir__fail_nomem(err);
  for (i = 0; i < t->desc.nq; i++) {
    const uint64_t own = t->desc.deadlines ? t->desc.deadlines[i] : 0;
    to[i] = own && own < t->deadline ? own : t->deadline;
  }
  t->desc.deadlines = to;
  return GPUIR_OK;
}

/* Fails all queries of a task. */
static void gt_fail_task(gt_task *t, int status) {
  size_t i;
  t->status = status;
  for (i = 0; i < t->desc.nq; i++) {
    t->desc.statuses[i] = status;
    t->desc.counts[i] = 0;
  }
}

/* Prepares a task for its member. t->status then says whether it can begin. */
static void gt_prepare(gt_member *m, gt_task *t) {
  t->status = gt_limit(m, t, &t->error);
  if (!t->status && m->device->part) t->status = gt_translate_all(m, t, &t->error);
}

/* Begins a prepared task; returns 0 if it is not in flight then. */
static int gt_task_begin(gt_member *m, gt_task *t) {
  int status = t->status;
  if (!status) {
    m->searcher->engine.limits.cancel = t->cancel;
    status = gt_calls(m)->search_begin(m->searcher, &t->desc, &t->handle);
    if (status) gpuir_searcher_error(m->searcher, &t->error);
  }
  if (status) gt_fail_task(t, status);
  return !status;
}

/* Waits for a task in flight. Its status says how it ended. */
static void gt_task_finish(gt_member *m, gt_task *t) {
  m->searcher->engine.limits.cancel = t->cancel;
  t->status = gt_calls(m)->search_finish(t->handle);
  if (t->status) gpuir_searcher_error(m->searcher, &t->error);
}

/* Returns whether a query's failure means that the device has failed, and not that the backend cannot answer that
 * query. */
static int gt_is_lost(const gpuir_query *q, int status) {
  return status == GPUIR_E_BACKEND && !gt_unanswerable(q) && !gt_is_mixed(q);
}

/* Notes that a task is done. The lock is held. */
static void gt_task_done(gt_member *m, gt_task *t) {
  gt_context *x = m->context;
  size_t i;
  if (t->status) gpuir__poke(&t->batch->failed, 1);
  for (i = 0; t->status && !m->lost && i < t->desc.nq; i++) {
    m->lost = gt_is_lost(t->queries[i], t->desc.statuses[i]);
    if (m->lost) (void)__atomic_add_fetch(&x->team->lost, 1, __ATOMIC_RELAXED);
  }
  if (m->lost) gt_give_up(x);
  if (t->range) {
    t->range->ended += t->desc.nq;
    t->range->when = gpuir__now();
  }
  __atomic_store_n(&t->ended, 1, __ATOMIC_RELEASE);
  gt_close_one(x, t->batch);
}

/* Takes the next task from the member's queue, or makes one of queries that wait. NULL: there is none. The lock is
 * held. */
static gt_task *gt_take(gt_member *m) {
  gt_task *t = m->first;
  if (!t) return m->lost ? NULL : gt_take_queries(m);
  m->first = t->next;
  if (!m->first) m->last = NULL;
  return t;
}

/* Begins a task; without one it waits for the older task in flight. Returns the task that has ended, or NULL. */
static gt_task *gt_work(gt_member *m, gt_task *t) {
  if (t) {
    if (t != m->next) gt_prepare(m, t);
    m->next = NULL;
    if (!gt_task_begin(m, t)) return t;
    m->asks++;
    m->in_flight[m->in_flight[0] != NULL] = t;
    return NULL;
  }
  if (m->next) gt_prepare(m, m->next);
  t = m->in_flight[0];
  gt_task_finish(m, t);
  m->in_flight[0] = m->in_flight[1];
  m->in_flight[1] = NULL;
  return t;
}

/* Looks for work that has come since `signals` was read, for a limited time. */
static void gt_spin(const gt_context *x, uint64_t signals) {
  const uint64_t until = gpuir__now() + GT_SPIN_NS;
  while (__atomic_load_n(&x->signals, __ATOMIC_ACQUIRE) == signals && gpuir__now() < until) (void)sched_yield();
}

/* A member's thread: takes tasks, begins them, and waits for the older one of two in flight. */
static void *gt_member_main(void *argument) {
  gt_member *m = (gt_member *)argument;
  gt_context *x = m->context;
  int looked = 0; /* 1: since its last task it has looked in vain */
  (void)pthread_mutex_lock(&x->lock);
  for (;;) {
    gt_task *t = NULL;
    if (!m->in_flight[1]) t = m->next ? m->next : gt_take(m);
    else if (m->device->part) m->next = gt_take(m); /* one with the whole index takes tasks as late as it can */
    if (t || m->in_flight[0]) {
      (void)pthread_mutex_unlock(&x->lock);
      t = gt_work(m, t);
      (void)pthread_mutex_lock(&x->lock);
      if (t) gt_task_done(m, t);
      looked = 0;
    } else if (x->stop) {
      break;
    } else if (!looked) {
      const uint64_t signals = x->signals;
      (void)pthread_mutex_unlock(&x->lock);
      gt_spin(x, signals);
      (void)pthread_mutex_lock(&x->lock);
      looked = 1;
    } else {
      (void)pthread_cond_wait(&x->work, &x->lock);
    }
  }
  (void)pthread_mutex_unlock(&x->lock);
  return NULL;
}
