/* snapshots.c - 16 threads take, search and release snapshots while one adds, deletes, refreshes and commits, and
 * another one merges; for ThreadSanitizer. Each snapshot answers as it did alone, when it was made. GPUIR_LONG=1 goes
 * on for a minute instead of a second.
 */
#define _POSIX_C_SOURCE 200809L
#include "gpuir.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "rng.h"
#include "oracle.h"
#include "corpus.h"
#include "stored.h"

enum { READERS = 16, NAMES = 700, BEST = 12 };

static const struct {
  const char *text;
  int mode;
} asked[] = {
    {"every part0", GPUIR_AND},
    {"part1 part2 -part3", GPUIR_OR},
    {"part0 part3 odd", GPUIR_ANDOR},
    {"\"every part0\" part1", GPUIR_OR},
    {"par* -\"every odd\"", GPUIR_AND},
    {"x1* x2 x3", GPUIR_OR},
};
enum { ASKED = sizeof asked / sizeof asked[0] };

/* What a snapshot answers to a query. */
typedef struct answer {
  gpuir_hit hits[BEST];
  size_t n;
  uint64_t count;
} answer;

/* A snapshot, with what a single thread found in it, and how many hold it. */
typedef struct held {
  gpuir_index *ix;
  unsigned holders;
  uint32_t documents;
  answer answers[ASKED];
} held;

/* What the threads share. */
static struct {
  pthread_mutex_t mutex;
  held *newest;
  int over;
  gpuir_live *live;
} all = {PTHREAD_MUTEX_INITIALIZER, NULL, 0, NULL};

/* Becomes a holder of the newest snapshot; NULL when there will be no more. */
static held *take(void) {
  held *h;
  (void)pthread_mutex_lock(&all.mutex);
  h = all.over ? NULL : all.newest;
  if (h) h->holders++;
  (void)pthread_mutex_unlock(&all.mutex);
  return h;
}

/* Leaves a snapshot, which the last holder closes; NULL is allowed. */
static void leave(held *h) {
  unsigned left;
  if (!h) return;
  (void)pthread_mutex_lock(&all.mutex);
  left = --h->holders;
  (void)pthread_mutex_unlock(&all.mutex);
  if (left) return;
  gpuir_close(h->ix);
  free(h);
}

/* Parses one of the queries for a snapshot. */
static gpuir_query *parse(const gpuir_index *ix, unsigned i) {
  gpuir_query_desc qd;
  gpuir_query *q;
  memset(&qd, 0, sizeof qd);
  qd.mode = asked[i].mode;
  return gpuir_query_parse(ix, &qd, asked[i].text, strlen(asked[i].text), &q, NULL) ? NULL : q;
}

/* Answers a query; returns how often that failed. */
static unsigned ask(gpuir_searcher *s, const gpuir_query *q, answer *a) {
  memset(a, 0, sizeof *a);
  return (unsigned)(gpuir_search(s, q, a->hits, BEST, &a->n) != GPUIR_OK) +
      (unsigned)(gpuir_count(s, q, &a->count) != GPUIR_OK);
}

static int same(const answer *a, const answer *b) {
  return a->n == b->n && a->count == b->count && !memcmp(a->hits, b->hits, sizeof a->hits);
}

/* Reads the best hit's document, and why it is one; returns how often something is wrong. */
static unsigned read_best(const held *h, gpuir_searcher *s, const gpuir_query *q, const answer *a) {
  gpuir_explanation *e = (gpuir_explanation *)malloc(sizeof *e);
  unsigned wrong = 0;
  size_t len;
  char *text;
  if (!a->n || !e) {
    free(e);
    return !e;
  }
  wrong += gpuir_explain(s, q, a->hits[0].docid, e) || e->score != a->hits[0].score;
  text = stored_text(h->ix, a->hits[0].docid, &len);
  wrong += !text || strncmp(text, "every", 5) != 0;
  free(text);
  free(e);
  return wrong;
}

/* What a reader has done. */
typedef struct reader {
  unsigned number, taken, wrong;
} reader;

/* Asks all queries of a snapshot, in a batch too. */
static unsigned ask_all(const held *h, gpuir_searcher *s, unsigned first) {
  gpuir_query *queries[ASKED];
  gpuir_hit hits[ASKED * BEST];
  uint32_t counts[ASKED], df;
  unsigned i, wrong = 0;
  for (i = 0; i < ASKED; i++) queries[i] = parse(h->ix, i);
  for (i = 0; i < ASKED; i++) {
    const unsigned at = (i + first) % ASKED;
    answer a;
    if (!queries[at]) return wrong + 1;
    wrong += ask(s, queries[at], &a) + (unsigned)!same(&a, &h->answers[at]);
    if (i == 0) wrong += read_best(h, s, queries[at], &a);
  }
  wrong += gpuir_term_count(h->ix, "every", 5, &df, NULL) || df != h->documents;
  wrong += gpuir_search_batch(s, (const gpuir_query *const *)queries, ASKED, BEST, hits, counts) != GPUIR_OK;
  for (i = 0; i < ASKED; i++) {
    const answer *a = &h->answers[i];
    wrong += counts[i] != a->n || memcmp(hits + i * BEST, a->hits, a->n * sizeof *hits) != 0;
    gpuir_query_destroy(queries[i]);
  }
  return wrong;
}

/* Takes the newest snapshot, asks it, and leaves the one before. */
static void *work_read(void *argument) {
  reader *me = (reader *)argument;
  const struct timespec pause = {0, 2000000};
  gpuir_searcher *s = NULL;
  held *h, *before = NULL;
  int old;
  while ((h = take())) {
    if (!s) {
      gpuir_searcher_desc desc;
      memset(&desc, 0, sizeof desc);
      desc.threads = me->number % 8 ? 1 : 2;
      me->wrong += gpuir_searcher_create(h->ix, &desc, &s, NULL) != GPUIR_OK;
    } else {
      me->wrong += gpuir_searcher_move(s, h->ix) != GPUIR_OK;
    }
    old = before == h;
    leave(before);
    before = h;
    if (!s) break;
    me->taken++;
    me->wrong += ask_all(h, s, me->number + me->taken);
    if (old) (void)nanosleep(&pause, NULL); /* so that the writer gets on */
    if (me->taken % 5 == me->number % 5) { /* some keep no searcher */
      gpuir_searcher_destroy(s);
      s = NULL;
    }
  }
  gpuir_searcher_destroy(s);
  leave(before);
  return NULL;
}

/* Merges on and on; every eighth time all. */
static void *work_merge(void *argument) {
  unsigned *merges = (unsigned *)argument;
  const struct timespec pause = {0, 2000000};
  for (;;) {
    int over, more;
    (void)pthread_mutex_lock(&all.mutex);
    over = all.over;
    (void)pthread_mutex_unlock(&all.mutex);
    if (over) return NULL;
    if (gpuir_live_merge(all.live, ++*merges % 8 == 0, &more, NULL)) return argument;
    if (!more) (void)nanosleep(&pause, NULL);
  }
}

/* Replaces document n`number`, or only deletes it. */
static void change(unsigned number, int add) {
  char name[16], text[400];
  gpuir_doc_desc doc;
  uint64_t n;
  unsigned i, len = (unsigned)snprintf(text, sizeof text, "every"), times = 1 + below(8);
  memset(&doc, 0, sizeof doc);
  doc.name = name;
  doc.name_len = (size_t)snprintf(name, sizeof name, "n%u", number);
  assert_int_equal(gpuir_live_delete(all.live, GPUIR_BY_NAME, name, doc.name_len, &n, NULL), GPUIR_OK);
  assert_in_range(n, 0, 1);
  if (!add) return;
  if (number % 2) len += (unsigned)snprintf(text + len, sizeof text - len, " odd");
  for (i = 0; i < times; i++)
    len += (unsigned)snprintf(text + len, sizeof text - len, " part%u x%u", below(4), below(30));
  assert_int_equal(gpuir_live_add(all.live, &doc, text, len, NULL), GPUIR_OK);
}

/* Refreshes, finds what the snapshot answers, and makes it the newest one. */
static void publish(void) {
  held *h = (held *)calloc(1, sizeof *h), *old;
  gpuir_searcher_desc desc;
  gpuir_searcher *s;
  gpuir_index_info info;
  gpuir_error err;
  unsigned i;
  assert_non_null(h);
  if (gpuir_live_refresh(all.live, &h->ix, &err)) fail_msg("%s", err.msg);
  h->holders = 1;
  assert_int_equal(gpuir_index_get_info(h->ix, &info), GPUIR_OK);
  h->documents = (uint32_t)info.documents;
  memset(&desc, 0, sizeof desc);
  desc.evaluator = GPUIR_EVAL_EXHAUSTIVE;
  assert_int_equal(gpuir_searcher_create(h->ix, &desc, &s, NULL), GPUIR_OK);
  for (i = 0; i < ASKED; i++) {
    gpuir_query *q = parse(h->ix, i);
    assert_non_null(q);
    assert_int_equal(ask(s, q, &h->answers[i]), 0);
    gpuir_query_destroy(q);
  }
  gpuir_searcher_destroy(s);
  (void)pthread_mutex_lock(&all.mutex);
  old = all.newest;
  all.newest = h;
  (void)pthread_mutex_unlock(&all.mutex);
  leave(old);
}

static double seconds(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Adds, replaces and deletes until the time is over; returns how many snapshots were published. */
static unsigned write_until(double until) {
  unsigned rounds, i;
  for (rounds = 0; rounds < 20 || seconds() < until; rounds++) {
    for (i = 0; i < 40; i++) change(below(NAMES), below(5) != 0);
    publish();
    if (rounds % 3 == 0) assert_int_equal(gpuir_live_commit(all.live, NULL), GPUIR_OK);
  }
  return rounds;
}

static void test_beside_writer(void **state) {
  pthread_t threads[READERS], merger;
  reader readers[READERS];
  char folder[4200];
  gpuir_live_desc desc;
  gpuir_error err;
  unsigned i, rounds, merges = 0, taken = 0;
  void *failed;
  (void)state;
  (void)corpus_path(folder, sizeof folder, "snapshots");
  memset(&desc, 0, sizeof desc);
  desc.settings.path = folder;
  desc.settings.positions = 1;
  desc.settings.store_text = 1;
  desc.settings.memory = 1 << 20;
  desc.create = 1;
  if (gpuir_live_open(&desc, &all.live, &err)) fail_msg("%s", err.msg);
  for (i = 0; i < NAMES; i++) change(i, 1);
  publish();
  memset(readers, 0, sizeof readers);
  for (i = 0; i < READERS; i++) {
    readers[i].number = i;
    assert_int_equal(pthread_create(&threads[i], NULL, work_read, &readers[i]), 0);
  }
  assert_int_equal(pthread_create(&merger, NULL, work_merge, &merges), 0);
  rounds = write_until(seconds() + (corpus_long_run() ? 60 : 1));
  (void)pthread_mutex_lock(&all.mutex);
  all.over = 1;
  (void)pthread_mutex_unlock(&all.mutex);
  assert_int_equal(pthread_join(merger, &failed), 0);
  assert_null(failed);
  for (i = 0; i < READERS; i++) {
    assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(readers[i].wrong, 0);
    taken += readers[i].taken;
  }
  print_message("%u snapshots, %u times taken by %d threads and asked %d queries; %u merges\n", rounds, taken,
      (int)READERS, (int)ASKED, merges);
  leave(all.newest);
  gpuir_live_close(all.live);
  assert_int_equal(folder_remove(folder), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_beside_writer),
  };
  return cmocka_run_group_tests_name("snapshots", tests, NULL, NULL);
}
