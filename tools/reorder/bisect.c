/* bisect.c - recursive graph bisection.
 *
 * The method is that of Dhulipala, Kabiljo, Karrer, Ottaviano, Pupyrev and Shalita, "Compressing Graphs and Indexes
 * with Recursive Graph Bisection" (KDD 2016), sections 3 and 4, for the cost of gaps between the documents of a term
 * ("BiMLogA"): a range of documents is halved, and documents of the two halves change places as long as that lowers
 *
 *   the sum over terms of  dL log2(nL / (dL + 1)) + dR log2(nR / (dR + 1)),
 *
 * where dL and dR of a half's nL and nR documents hold the term; then each half is treated alike. The engineering
 * follows Mackenzie, Mallia, Petri, Culpepper and Suel, "Compressing Inverted Indexes with Recursive Graph Bisection"
 * (ECIR 2019): the gain of each term is computed once an iteration, from tabulated logarithms, and a document's gain
 * is the sum over its terms. What is done otherwise here:
 *   - Gains are whole numbers (units of 2^-14 bit), so that a sum has no order, and threads no influence.
 *   - The best documents to exchange are selected, not sorted: see select_pairs.
 *   - An exchange that raises the cost, as many good ones together may, is undone, and its better half is tried.
 *     Without this the halves of small ranges swing to and fro, and no iteration is the last.
 *   - Small ranges have their own forward index, which is written anew for each half: its terms are numbered
 *     densely, and those of a single document are left out, for they gain nothing wherever it goes. Most postings
 *     disappear so after a few levels. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "bisect.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MOST_THREADS 256
#define CHUNK 256u /* documents, and CHUNK_TERMS terms, that a thread takes at once */
#define CHUNK_TERMS 16384u /* also the least segment that is selected from in parallel */
#define TABLE 32768u /* tabulated logarithms; a power of two */
#define UNIT 16384.0 /* of gains, to a bit */

/* ---- threads that share the items of a job -------------------------------------------------------------- */

typedef void (*pool_job)(void *context, uint64_t item, unsigned worker);

typedef struct pool {
  pthread_mutex_t mutex;
  pthread_cond_t start, done;
  pthread_t thread[MOST_THREADS];
  unsigned threads, numbered; /* besides the caller, who is worker 0 */
  unsigned busy;
  uint64_t round, items, next;
  pool_job job;
  void *context;
  int quit;
} pool;

static void pool_work(pool *p, unsigned worker) {
  uint64_t item;
  while ((item = __atomic_fetch_add(&p->next, 1, __ATOMIC_RELAXED)) < p->items) p->job(p->context, item, worker);
}

static void *pool_main(void *arg) {
  pool *p = (pool *)arg;
  uint64_t round = 0;
  pthread_mutex_lock(&p->mutex);
  unsigned worker = ++p->numbered;
  for (;;) {
    while (p->round == round && !p->quit) pthread_cond_wait(&p->start, &p->mutex);
    if (p->quit) break;
    round = p->round;
    pthread_mutex_unlock(&p->mutex);
    pool_work(p, worker);
    pthread_mutex_lock(&p->mutex);
    if (!--p->busy) pthread_cond_signal(&p->done);
  }
  pthread_mutex_unlock(&p->mutex);
  return NULL;
}

/* Fewer threads than asked for do the same work. */
static void pool_open(pool *p, unsigned workers) {
  memset(p, 0, sizeof *p);
  pthread_mutex_init(&p->mutex, NULL);
  pthread_cond_init(&p->start, NULL);
  pthread_cond_init(&p->done, NULL);
  while (p->threads + 1 < workers && !pthread_create(&p->thread[p->threads], NULL, pool_main, p)) p->threads++;
}

static void pool_close(pool *p) {
  pthread_mutex_lock(&p->mutex);
  p->quit = 1;
  pthread_cond_broadcast(&p->start);
  pthread_mutex_unlock(&p->mutex);
  for (unsigned i = 0; i < p->threads; i++) pthread_join(p->thread[i], NULL);
  pthread_cond_destroy(&p->done);
  pthread_cond_destroy(&p->start);
  pthread_mutex_destroy(&p->mutex);
}

static void pool_run(pool *p, uint64_t items, pool_job job, void *context) {
  if (!p->threads || items < 2) {
    for (uint64_t i = 0; i < items; i++) job(context, i, 0);
    return;
  }
  pthread_mutex_lock(&p->mutex);
  p->job = job;
  p->context = context;
  p->items = items;
  p->next = 0;
  p->busy = p->threads;
  p->round++;
  pthread_cond_broadcast(&p->start);
  pthread_mutex_unlock(&p->mutex);
  pool_work(p, 0);
  pthread_mutex_lock(&p->mutex);
  while (p->busy) pthread_cond_wait(&p->done, &p->mutex);
  pthread_mutex_unlock(&p->mutex);
}

/* ---- gains -------------------------------------------------------------- */

/* With f(d) = d log2(d + 1), the cost is a constant less the sum of f(dL) + f(dR). rise[d] is f(d + 1) - f(d) for
 * d < TABLE in units of gains, log2_of[i] is log2(i) in units of 2^-24, from 1 on. Both come from sums of basic
 * operations, so that machines agree on them. */
typedef struct gain_table {
  int32_t rise[TABLE];
  int32_t log2_of[TABLE + 1];
} gain_table;

#define LOG2_E 1.4426950408889634

/* log2((x + 1) / x) */
static double log2_step(double x) {
  double z = 1 / (2 * x + 1), zz = z * z, power = z, sum = 0;
  for (int k = 1; k < 60 && power > 1e-18; k += 2, power *= zz) sum += power / k;
  return 2 * LOG2_E * sum;
}

static void gain_table_fill(gain_table *t) {
  double log2_next = 0; /* log2(d + 1) */
  t->log2_of[0] = 0;
  for (uint32_t d = 0; d < TABLE; d++) {
    double step = log2_step((double)d + 1);
    t->log2_of[d + 1] = (int32_t)(log2_next * 16777216.0 + 0.5);
    log2_next += step;
    t->rise[d] = (int32_t)((log2_next + (double)d * step) * UNIT + 0.5);
  }
}

/* log2(x) in units of 2^-24; between the entries of the table on a line. */
static int64_t gain_log2(const gain_table *t, uint64_t x) {
  int shift = 0;
  while (x >> shift >= TABLE) shift++;
  int64_t low = t->log2_of[x >> shift], high = t->log2_of[(x >> shift) + 1];
  return low + ((int64_t)shift << 24) + (((high - low) * (int64_t)(x & (((uint64_t)1 << shift) - 1))) >> shift);
}

/* f(d) and f(d + 1) - f(d), in units. */
static int64_t gain_level(const gain_table *t, uint32_t d) {
  return ((int64_t)d * (d < TABLE ? t->log2_of[d + 1] : gain_log2(t, (uint64_t)d + 1))) >> 10;
}
static int32_t gain_rise(const gain_table *t, uint32_t d) {
  if (d < TABLE) return t->rise[d];
  /* d log2((d + 2) / (d + 1)) tends to log2(e) */
  return (int32_t)(gain_log2(t, (uint64_t)d + 2) >> 10) + (int32_t)(LOG2_E * UNIT + 0.5);
}

/* What a document with the term gains by leaving a half where `here` documents have it, for one where `there` have. */
static int32_t gain_move(const gain_table *t, uint32_t here, uint32_t there) {
  return here ? gain_rise(t, there) - gain_rise(t, here - 1) : 0;
}

/* A document's gain. */
static int64_t gain_sum(const int32_t *gain, const uint32_t *terms, uint64_t n) {
  int64_t a = 0, b = 0;
  uint64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    a += gain[terms[i]] + (int64_t)gain[terms[i + 1]];
    b += gain[terms[i + 2]] + (int64_t)gain[terms[i + 3]];
  }
  for (; i < n; i++) a += gain[terms[i]];
  return a + b;
}

/* A key is a gain and the position of its document within the range; the lower key has the higher gain, of equal gains
 * the lower position, so that no two keys are equal. */
static uint64_t key_make(int64_t gain, uint32_t position) {
  if (gain > INT32_MAX) gain = INT32_MAX;
  if (gain < INT32_MIN) gain = INT32_MIN;
  return (uint64_t)(INT32_MAX - gain) << 32 | position;
}
static int64_t key_gain(uint64_t key) { return INT32_MAX - (int64_t)(key >> 32); }
static uint32_t key_position(uint64_t key) { return (uint32_t)key; }

/* ---- selection of the documents that change places -------------------------------------------------------------- */

/* Hoare's selection (CACM 4(7), 1961): brings the key of rank k to a[k], lower ones before it and higher ones behind
 * it. Pivots are drawn by a generator that starts from n, so no data makes it slow on purpose. */
static void select_rank(uint64_t *a, uint64_t n, uint64_t k) {
  uint64_t lo = 0, hi = n, seed = n;
  while (hi - lo > 1) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = a[lo + (seed >> 33) % (hi - lo)], y = a[lo + (hi - lo) / 2], z = a[hi - 1];
    uint64_t small = x < y ? x : y, large = x < y ? y : x;
    uint64_t pivot = z < small ? small : z > large ? large : z;
    uint64_t i = lo, j = hi - 1;
    for (;;) {
      while (a[i] < pivot) i++;
      while (a[j] > pivot) j--;
      if (i >= j) break;
      uint64_t swap = a[i];
      a[i] = a[j];
      a[j] = swap;
    }
    /* keys differ: the pivot itself stands at i == j now */
    if (k == i) return;
    if (k < i) hi = i;
    else lo = i + 1;
  }
}

typedef struct halves_keys {
  uint64_t *half[2];
  uint64_t n, rank;
} halves_keys;

static void job_select(void *context, uint64_t item, unsigned worker) {
  halves_keys *h = (halves_keys *)context;
  (void)worker;
  select_rank(h->half[item], h->n, h->rank);
}

/* The largest number m of pairs such that the m-th best document of the left half and the m-th best of the right one
 * gain together by changing places; these documents' keys come to stand first in their halves. Sorting both halves
 * would show the same; halving the ranks in question takes linear time. */
static uint32_t select_pairs(pool *p, uint64_t *left, uint64_t nleft, uint64_t *right, uint64_t nright) {
  uint64_t lo = 0, hi = nleft < nright ? nleft : nright;
  halves_keys h;
  /* The right half may have one key more: the worst is left out. */
  if (nright > hi) select_rank(right, nright, hi);
  while (lo < hi) {
    uint64_t middle = lo + (hi - lo) / 2;
    h.half[0] = left + lo;
    h.half[1] = right + lo;
    h.n = hi - lo;
    h.rank = middle - lo;
    if (p && h.n >= CHUNK_TERMS) {
      pool_run(p, 2, job_select, &h);
    } else {
      job_select(&h, 0, 0);
      job_select(&h, 1, 0);
    }
    if (key_gain(left[middle]) + key_gain(right[middle]) > 0) lo = middle + 1;
    else hi = middle;
  }
  return (uint32_t)lo;
}

/* The gains are right for one exchange by itself; together they may do harm. Then the better half of them is tried. */
static uint32_t fewer_pairs(uint64_t *left, uint64_t *right, uint32_t pairs) {
  select_rank(left, pairs, pairs / 2);
  select_rank(right, pairs, pairs / 2);
  return pairs / 2;
}

/* ---- the work -------------------------------------------------------------- */

/* A small range's forward index; documents by their position in the range. */
typedef struct forward {
  uint32_t *postings;
  uint32_t *id, *start, *len;
} forward;

typedef struct bisect_worker {
  struct bisection *b;
  uint32_t *left, *right; /* for each term of the graph: degrees in a half, as far as this worker counted; or zero */
  /* of the small range in work */
  uint32_t *order; /* where its documents go */
  forward side[2];
  uint64_t *keys;
  uint32_t *degree[2]; /* for each of its terms */
  int32_t *gain[2];
  uint64_t finished; /* documents, not yet told of */
} bisect_worker;

typedef struct range {
  uint32_t begin, n;
} range;

typedef struct bisection {
  const bisect_graph *g;
  uint32_t leaf, iterations;
  uint32_t *order;
  pool pool;
  unsigned nworkers;
  bisect_worker worker[MOST_THREADS];
  gain_table table;
  /* of the large range in work */
  range now;
  uint32_t *degree[2];
  int32_t *gain[2];
  uint64_t *keys;
  uint32_t pairs;
  int64_t level;
  /* ranges for one thread */
  uint32_t small_documents;
  uint64_t small_postings;
  range *tasks;
  size_t ntasks, tasks_cap;
  /* how it goes */
  int (*progress)(void *user, double done);
  void *user;
  uint64_t total, finished; /* documents, once for each level */
  int status;
} bisection;

static int stopped(const bisection *b) { return __atomic_load_n(&b->status, __ATOMIC_RELAXED) != BISECT_OK; }
static void stop(bisection *b, int status) { __atomic_store_n(&b->status, status, __ATOMIC_RELAXED); }

/* By the calling thread. */
static void report(bisection *b) {
  uint64_t done = __atomic_load_n(&b->finished, __ATOMIC_RELAXED);
  if (!b->progress || stopped(b)) return;
  if (b->progress(b->user, done < b->total ? (double)done / (double)b->total : 1.0)) stop(b, BISECT_STOPPED);
}

/* A range of n documents has been halved. */
static void tell(bisect_worker *w, uint64_t n) {
  bisection *b = w->b;
  w->finished += n;
  if (w->finished < b->total / 2048) return;
  __atomic_fetch_add(&b->finished, w->finished, __ATOMIC_RELAXED);
  w->finished = 0;
  if (w == b->worker) report(b);
}

/* ---- large ranges: all threads -------------------------------------------------------------- */

static uint64_t chunks(uint64_t n, uint64_t size) { return (n + size - 1) / size; }

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static void job_count(void *context, uint64_t item, unsigned worker) {
  bisection *b = (bisection *)context;
  bisect_worker *w = &b->worker[worker];
  uint64_t end = least((item + 1) * CHUNK, b->now.n);
  for (uint64_t i = item * CHUNK; i < end; i++) {
    uint32_t doc = b->order[b->now.begin + i], *degree = i < b->now.n / 2 ? w->left : w->right;
    for (uint64_t k = b->g->start[doc]; k < b->g->start[doc + 1]; k++) degree[b->g->postings[k]]++;
  }
}

/* Adds up what the workers counted, and takes the gains from it. */
static void job_gains(void *context, uint64_t item, unsigned worker) {
  bisection *b = (bisection *)context;
  uint64_t first = item * CHUNK_TERMS, end = least(first + CHUNK_TERMS, b->g->terms), t;
  int64_t level = 0;
  (void)worker;
  for (unsigned i = 0; i < b->nworkers; i++) {
    uint32_t *left = b->worker[i].left, *right = b->worker[i].right;
    for (t = first; t < end; t++) b->degree[0][t] += left[t], b->degree[1][t] += right[t];
    memset(left + first, 0, (end - first) * sizeof *left);
    memset(right + first, 0, (end - first) * sizeof *right);
  }
  for (t = first; t < end; t++) {
    b->gain[0][t] = gain_move(&b->table, b->degree[0][t], b->degree[1][t]);
    b->gain[1][t] = gain_move(&b->table, b->degree[1][t], b->degree[0][t]);
    level += gain_level(&b->table, b->degree[0][t]) + gain_level(&b->table, b->degree[1][t]);
  }
  __atomic_fetch_add(&b->level, level, __ATOMIC_RELAXED);
}

static void job_keys(void *context, uint64_t item, unsigned worker) {
  bisection *b = (bisection *)context;
  uint64_t end = least((item + 1) * CHUNK, b->now.n);
  (void)worker;
  for (uint64_t i = item * CHUNK; i < end; i++) {
    uint32_t doc = b->order[b->now.begin + i];
    const int32_t *gain = b->gain[i >= b->now.n / 2];
    uint64_t at = b->g->start[doc];
    b->keys[i] = key_make(gain_sum(gain, b->g->postings + at, b->g->start[doc + 1] - at), (uint32_t)i);
  }
}

/* Counts by how much the degrees change; unsigned numbers wrap, and come right when they are added. */
static void count_move(const bisection *b, uint32_t doc, uint32_t *from, uint32_t *to) {
  for (uint64_t k = b->g->start[doc]; k < b->g->start[doc + 1]; k++) {
    uint32_t t = b->g->postings[k];
    from[t]--;
    to[t]++;
  }
}

static void job_exchange(void *context, uint64_t item, unsigned worker) {
  bisection *b = (bisection *)context;
  bisect_worker *w = &b->worker[worker];
  uint64_t end = least((item + 1) * CHUNK, b->pairs);
  for (uint64_t i = item * CHUNK; i < end; i++) {
    uint32_t *left = &b->order[b->now.begin + key_position(b->keys[i])];
    uint32_t *right = &b->order[b->now.begin + key_position(b->keys[b->now.n / 2 + i])];
    uint32_t doc = *left;
    count_move(b, *left, w->left, w->right);
    count_move(b, *right, w->right, w->left);
    *left = *right;
    *right = doc;
  }
}

/* Takes the gains anew; returns the level, which is the higher, the lower the cost is. */
static int64_t large_gains(bisection *b) {
  b->level = 0;
  pool_run(&b->pool, chunks(b->g->terms, CHUNK_TERMS), job_gains, b);
  return b->level;
}

static void large_exchange(bisection *b, uint32_t pairs) {
  b->pairs = pairs;
  pool_run(&b->pool, chunks(pairs, CHUNK), job_exchange, b);
}

static void halve_large(bisection *b, range r) {
  uint32_t half = r.n / 2;
  b->now = r;
  memset(b->degree[0], 0, (size_t)b->g->terms * sizeof *b->degree[0]);
  memset(b->degree[1], 0, (size_t)b->g->terms * sizeof *b->degree[1]);
  pool_run(&b->pool, chunks(r.n, CHUNK), job_count, b);
  int64_t level = large_gains(b), before;
  for (uint32_t i = 0; i < b->iterations && !stopped(b); i++) {
    pool_run(&b->pool, chunks(r.n, CHUNK), job_keys, b);
    uint32_t pairs = select_pairs(&b->pool, b->keys, half, b->keys + half, r.n - half);
    before = level;
    if (pairs) large_exchange(b, pairs);
    while (pairs && (level = large_gains(b)) <= before) {
      large_exchange(b, pairs);
      pairs = fewer_pairs(b->keys, b->keys + half, pairs);
      large_exchange(b, pairs);
    }
    report(b);
    if (!pairs) break;
  }
  for (unsigned i = 0; i < b->nworkers; i++) {
    memset(b->worker[i].left, 0, (size_t)b->g->terms * sizeof *b->worker[i].left);
    memset(b->worker[i].right, 0, (size_t)b->g->terms * sizeof *b->worker[i].right);
  }
}

/* ---- small ranges: one thread each -------------------------------------------------------------- */

#define NO_TERM UINT32_MAX

static void small_count(bisect_worker *w, const forward *f, uint32_t begin, uint32_t n, uint32_t nterms) {
  memset(w->degree[0], 0, (size_t)nterms * sizeof *w->degree[0]);
  memset(w->degree[1], 0, (size_t)nterms * sizeof *w->degree[1]);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t *degree = w->degree[i >= n / 2];
    const uint32_t *terms = f->postings + f->start[begin + i];
    for (uint32_t k = 0; k < f->len[begin + i]; k++) degree[terms[k]]++;
  }
}

static int64_t small_level(const bisect_worker *w, uint32_t nterms) {
  const gain_table *table = &w->b->table;
  int64_t level = 0;
  for (uint32_t t = 0; t < nterms; t++)
    level += gain_level(table, w->degree[0][t]) + gain_level(table, w->degree[1][t]);
  return level;
}

static uint32_t small_pairs(bisect_worker *w, const forward *f, uint32_t begin, uint32_t n, uint32_t nterms) {
  const gain_table *table = &w->b->table;
  for (uint32_t t = 0; t < nterms; t++) {
    w->gain[0][t] = gain_move(table, w->degree[0][t], w->degree[1][t]);
    w->gain[1][t] = gain_move(table, w->degree[1][t], w->degree[0][t]);
  }
  for (uint32_t i = 0; i < n; i++)
    w->keys[i] = key_make(gain_sum(w->gain[i >= n / 2], f->postings + f->start[begin + i], f->len[begin + i]), i);
  return select_pairs(NULL, w->keys, n / 2, w->keys + n / 2, n - n / 2);
}

static void small_move(bisect_worker *w, const forward *f, uint32_t doc, int from) {
  const uint32_t *terms = f->postings + f->start[doc];
  for (uint32_t k = 0; k < f->len[doc]; k++) {
    w->degree[from][terms[k]]--;
    w->degree[1 - from][terms[k]]++;
  }
}

static void swap32(uint32_t *a, uint32_t *b) {
  uint32_t x = *a;
  *a = *b;
  *b = x;
}

static void small_exchange(bisect_worker *w, const forward *f, uint32_t begin, uint32_t n, uint32_t pairs) {
  for (uint32_t i = 0; i < pairs; i++) {
    uint32_t left = begin + key_position(w->keys[i]), right = begin + key_position(w->keys[n / 2 + i]);
    small_move(w, f, left, 0);
    small_move(w, f, right, 1);
    swap32(&f->id[left], &f->id[right]);
    swap32(&f->start[left], &f->start[right]);
    swap32(&f->len[left], &f->len[right]);
  }
}

static void small_halve(bisect_worker *w, const forward *f, uint32_t begin, uint32_t n, uint32_t nterms) {
  small_count(w, f, begin, n, nterms);
  int64_t level = small_level(w, nterms), before;
  for (uint32_t i = 0; i < w->b->iterations && !stopped(w->b); i++) {
    uint32_t pairs = small_pairs(w, f, begin, n, nterms);
    before = level;
    if (pairs) small_exchange(w, f, begin, n, pairs);
    while (pairs && (level = small_level(w, nterms)) <= before) {
      small_exchange(w, f, begin, n, pairs);
      pairs = fewer_pairs(w->keys, w->keys + n / 2, pairs);
      small_exchange(w, f, begin, n, pairs);
    }
    if (!pairs) break;
  }
}

/* Writes the documents of one half to the other side, from posting `at` on, without the terms that only one of them
 * has. Returns the end of the postings; *nterms: how many terms are left. */
static uint32_t small_half(bisect_worker *w, int s, int half, uint32_t begin, uint32_t n, uint32_t at, uint32_t nterms,
    uint32_t *left) {
  const forward *from = &w->side[s];
  forward *to = &w->side[1 - s];
  uint32_t *label = w->degree[half];
  *left = 0;
  for (uint32_t t = 0; t < nterms; t++) label[t] = label[t] > 1 ? (*left)++ : NO_TERM;
  for (uint32_t i = begin; i < begin + n; i++) {
    const uint32_t *terms = from->postings + from->start[i];
    to->id[i] = from->id[i];
    to->start[i] = at;
    for (uint32_t k = 0; k < from->len[i]; k++) {
      to->postings[at] = label[terms[k]];
      at += label[terms[k]] != NO_TERM;
    }
    to->len[i] = at - to->start[i];
  }
  return at;
}

static unsigned levels(uint32_t n, uint32_t leaf) {
  unsigned k = 0;
  for (; n > leaf; n -= n / 2) k++;
  return k;
}

/* Orders documents [begin, begin + n) of side s, whose postings begin at `at`. The two halves go to the other side,
 * to where this range stands on this one: two sides suffice for all levels. */
static void bisect_small(bisect_worker *w, int s, uint32_t begin, uint32_t n, uint32_t at, uint32_t nterms) {
  const forward *f = &w->side[s];
  bisection *b = w->b;
  uint32_t half = n / 2, nleft, nright, middle;
  if (n <= b->leaf || !nterms || stopped(b)) {
    memcpy(w->order + begin, f->id + begin, (size_t)n * sizeof *w->order);
    tell(w, (uint64_t)n * levels(n, b->leaf));
    return;
  }
  small_halve(w, f, begin, n, nterms);
  middle = small_half(w, s, 0, begin, half, at, nterms, &nleft);
  (void)small_half(w, s, 1, begin + half, n - half, middle, nterms, &nright);
  tell(w, n);
  bisect_small(w, 1 - s, begin, half, at, nleft);
  bisect_small(w, 1 - s, begin + half, n - half, middle, nright);
}

/* Copies a range's part of the graph to side 0. Returns the number of its terms. */
static uint32_t small_load(bisect_worker *w, range r) {
  const bisect_graph *g = w->b->g;
  forward *f = &w->side[0];
  uint32_t nterms = 0, at = 0, i;
  uint64_t k;
  uint32_t *count = w->left, *label = w->right; /* label 0: none yet */
  for (i = 0; i < r.n; i++) {
    uint32_t doc = f->id[i] = w->b->order[r.begin + i];
    for (k = g->start[doc]; k < g->start[doc + 1]; k++) count[g->postings[k]]++;
  }
  for (i = 0; i < r.n; i++) {
    f->start[i] = at;
    for (k = g->start[f->id[i]]; k < g->start[f->id[i] + 1]; k++) {
      uint32_t t = g->postings[k];
      if (count[t] < 2) continue;
      if (!label[t]) label[t] = ++nterms;
      f->postings[at++] = label[t] - 1;
    }
    f->len[i] = at - f->start[i];
  }
  for (i = 0; i < r.n; i++)
    for (k = g->start[f->id[i]]; k < g->start[f->id[i] + 1]; k++) count[g->postings[k]] = label[g->postings[k]] = 0;
  return nterms;
}

static uint64_t range_postings(const bisection *b, range r) {
  uint64_t n = 0;
  for (uint32_t i = r.begin; i < r.begin + r.n; i++) n += b->g->start[b->order[i] + 1] - b->g->start[b->order[i]];
  return n;
}

static void *array(size_t n, size_t size) { return calloc(n ? n : 1, size); }

static void small_free(bisect_worker *w) {
  for (int s = 0; s < 2; s++) {
    free(w->side[s].postings);
    free(w->side[s].id);
    free(w->side[s].start);
    free(w->side[s].len);
    free(w->degree[s]);
    free(w->gain[s]);
    memset(&w->side[s], 0, sizeof w->side[s]);
    w->degree[s] = NULL;
    w->gain[s] = NULL;
  }
  free(w->keys);
  w->keys = NULL;
}

/* Memory for any range of so many documents and postings. */
static int small_alloc(bisect_worker *w, size_t n, size_t postings) {
  size_t nterms = (size_t)least(w->b->g->terms, postings / 2); /* each stands twice */
  int ok = (w->keys = (uint64_t *)array(n, sizeof *w->keys)) != NULL;
  for (int s = 0; s < 2; s++) {
    forward *f = &w->side[s];
    f->postings = (uint32_t *)array(postings + 1, sizeof *f->postings); /* one more is written, and not kept */
    f->id = (uint32_t *)array(n, sizeof *f->id);
    f->start = (uint32_t *)array(n, sizeof *f->start);
    f->len = (uint32_t *)array(n, sizeof *f->len);
    w->degree[s] = (uint32_t *)array(nterms, sizeof *w->degree[s]);
    w->gain[s] = (int32_t *)array(nterms, sizeof *w->gain[s]);
    ok = ok && f->postings && f->id && f->start && f->len && w->degree[s] && w->gain[s];
  }
  return ok ? BISECT_OK : BISECT_NOMEM;
}

static void job_small(void *context, uint64_t item, unsigned worker) {
  bisection *b = (bisection *)context;
  bisect_worker *w = &b->worker[worker];
  range r = b->tasks[item];
  if (stopped(b)) return;
  if (small_alloc(w, r.n, (size_t)range_postings(b, r))) {
    stop(b, BISECT_NOMEM);
  } else {
    uint32_t nterms = small_load(w, r);
    w->order = b->order + r.begin;
    bisect_small(w, 0, 0, r.n, 0, nterms);
  }
  small_free(w);
}

/* ---- the whole -------------------------------------------------------------- */

static void add_task(bisection *b, range r) {
  if (b->ntasks == b->tasks_cap) {
    size_t cap = b->tasks_cap ? b->tasks_cap * 2 : 64;
    range *tasks = (range *)realloc(b->tasks, cap * sizeof *tasks);
    if (!tasks) {
      stop(b, BISECT_NOMEM);
      return;
    }
    b->tasks = tasks;
    b->tasks_cap = cap;
  }
  b->tasks[b->ntasks++] = r;
}

/* Halves ranges until they are small. */
static void bisect_large(bisection *b, range r) {
  range left = {r.begin, r.n / 2}, right = {r.begin + r.n / 2, r.n - r.n / 2};
  if (r.n <= b->leaf || stopped(b)) return;
  if (r.n <= b->small_documents && range_postings(b, r) <= b->small_postings) {
    add_task(b, r);
    return;
  }
  halve_large(b, r);
  tell(b->worker, r.n);
  bisect_large(b, left);
  bisect_large(b, right);
}

/* A range is small when it has no more than these parts of the documents and postings. */
#define SMALL_DOCUMENTS(threads) (8 * (uint64_t)(threads))
#define SMALL_POSTINGS(threads) (4 * (uint64_t)(threads))

static int bisection_alloc(bisection *b) {
  size_t terms = b->g->terms;
  int ok = (b->keys = (uint64_t *)array(b->g->documents, sizeof *b->keys)) != NULL;
  for (int s = 0; s < 2; s++) {
    b->degree[s] = (uint32_t *)array(terms, sizeof *b->degree[s]);
    b->gain[s] = (int32_t *)array(terms, sizeof *b->gain[s]);
    ok = ok && b->degree[s] && b->gain[s];
  }
  for (unsigned i = 0; i < b->nworkers; i++) {
    bisect_worker *w = &b->worker[i];
    w->b = b;
    w->left = (uint32_t *)array(terms, sizeof *w->left);
    w->right = (uint32_t *)array(terms, sizeof *w->right);
    ok = ok && w->left && w->right;
  }
  return ok ? BISECT_OK : BISECT_NOMEM;
}

/* What only large ranges need. */
static void bisection_free_large(bisection *b) {
  for (int s = 0; s < 2; s++) {
    free(b->degree[s]);
    free(b->gain[s]);
    b->degree[s] = NULL;
    b->gain[s] = NULL;
  }
  free(b->keys);
  b->keys = NULL;
}

static void bisection_free(bisection *b) {
  bisection_free_large(b);
  for (unsigned i = 0; i < b->nworkers; i++) {
    free(b->worker[i].left);
    free(b->worker[i].right);
  }
  free(b->tasks);
  free(b);
}

static unsigned bisect_threads(unsigned threads) {
  return threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : threads;
}

uint64_t bisect_memory(uint64_t documents, uint64_t terms, uint64_t postings, unsigned threads) {
  uint64_t t = bisect_threads(threads), large = 8 * documents + 16 * terms + 8 * t * terms;
  uint64_t small_n = documents / SMALL_DOCUMENTS(t) + 1, small_p = postings / SMALL_POSTINGS(t) + 1;
  uint64_t small = t * (8 * small_p + 32 * small_n + 16 * least(terms, small_p / 2)) + 8 * t * terms;
  return (large > small ? large : small) + sizeof(bisection);
}

int bisect_order(const bisect_graph *g, const bisect_desc *desc, uint32_t *order) {
  bisection *b = (bisection *)calloc(1, sizeof *b);
  range all = {0, g->documents};
  int status;
  if (!b) return BISECT_NOMEM;
  b->g = g;
  b->order = order;
  b->leaf = desc->leaf ? desc->leaf : BISECT_LEAF;
  b->iterations = desc->iterations ? desc->iterations : BISECT_ITERATIONS;
  b->progress = desc->progress;
  b->user = desc->user;
  b->nworkers = bisect_threads(desc->threads);
  b->total = (uint64_t)g->documents * levels(g->documents, b->leaf);
  b->small_documents = (uint32_t)(g->documents / SMALL_DOCUMENTS(b->nworkers)) + 1;
  b->small_postings = least(g->start[g->documents] / SMALL_POSTINGS(b->nworkers) + 1, UINT32_MAX - 1);
  gain_table_fill(&b->table);
  if (bisection_alloc(b)) {
    stop(b, BISECT_NOMEM);
  } else {
    pool_open(&b->pool, b->nworkers);
    bisect_large(b, all);
    bisection_free_large(b);
    pool_run(&b->pool, b->ntasks, job_small, b);
    pool_close(&b->pool);
  }
  status = b->status;
  bisection_free(b);
  return status;
}
