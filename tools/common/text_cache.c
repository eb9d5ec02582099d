/* text_cache.c - texts that were decoded, the one that was used least recently going first. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* st_mtim */
#endif
#include "text_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PLACES 256u /* texts at most: they are looked for one by one */

typedef struct entry {
  cached_text text; /* first: it is handed out */
  struct stat file;
  uint64_t how, hash;
  uint64_t used; /* when, by the cache's clock */
  time_t made; /* seconds of CLOCK_MONOTONIC */
  unsigned holders; /* who uses it, and the cache itself */
} entry;

struct text_cache {
  pthread_mutex_t lock;
  entry *entries[PLACES];
  unsigned n;
  size_t bytes, most;
  unsigned failure_seconds;
  uint64_t clock;
};

text_cache *text_cache_create(size_t most, unsigned failure_seconds) {
  text_cache *c = (text_cache *)calloc(1, sizeof *c);
  if (!c) return NULL;
  c->most = most;
  c->failure_seconds = failure_seconds;
  (void)pthread_mutex_init(&c->lock, NULL);
  return c;
}

size_t text_cache_most(const text_cache *c) { return c->most; }

/* Takes one holder off. Called with the lock. */
static void leave_text(entry *e) {
  if (--e->holders) return;
  free((char *)(uintptr_t)e->text.text);
  free(e);
}

static void drop(text_cache *c, unsigned i) {
  entry *e = c->entries[i];
  c->bytes -= e->text.len;
  c->entries[i] = c->entries[--c->n];
  leave_text(e);
}

void text_cache_destroy(text_cache *c) {
  if (!c) return;
  while (c->n) drop(c, c->n - 1);
  (void)pthread_mutex_destroy(&c->lock);
  free(c);
}

static int same_time(struct timespec a, struct timespec b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

static int is_of(const entry *e, const struct stat *st, uint64_t how, uint64_t hash) {
  const struct stat *f = &e->file;
  return e->how == how && e->hash == hash && f->st_ino == st->st_ino && f->st_dev == st->st_dev &&
      f->st_size == st->st_size && same_time(f->st_mtim, st->st_mtim) && same_time(f->st_ctim, st->st_ctim);
}

static time_t seconds_now(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

/* Whether an entry is a failure that is to be tried again. */
static int is_over(const text_cache *c, const entry *e) {
  return e->text.failed && c->failure_seconds && seconds_now() - e->made >= (time_t)c->failure_seconds;
}

const cached_text *text_cache_get(text_cache *c, const struct stat *st, uint64_t how, uint64_t hash) {
  entry *found = NULL;
  unsigned i;
  (void)pthread_mutex_lock(&c->lock);
  for (i = 0; i < c->n && !found; i++)
    if (is_of(c->entries[i], st, how, hash)) found = c->entries[i];
  if (found && is_over(c, found)) {
    drop(c, i - 1);
    found = NULL;
  }
  if (found) {
    found->used = ++c->clock;
    found->holders++;
  }
  (void)pthread_mutex_unlock(&c->lock);
  return found ? &found->text : NULL;
}

/* Makes room for one more text. Called with the lock. */
static void make_place(text_cache *c, size_t len) {
  while (c->n && (c->n == PLACES || c->bytes + len > c->most)) {
    unsigned oldest = 0, i;
    for (i = 1; i < c->n; i++)
      if (c->entries[i]->used < c->entries[oldest]->used) oldest = i;
    drop(c, oldest);
  }
}

const cached_text *text_cache_put(text_cache *c, const struct stat *st, uint64_t how, uint64_t hash, char *text,
    size_t len, int failed) {
  entry *e = (entry *)calloc(1, sizeof *e);
  if (!e) {
    free(text);
    return NULL;
  }
  e->text.text = text;
  e->text.len = len;
  e->text.failed = failed;
  e->made = seconds_now();
  e->file = *st;
  e->how = how;
  e->hash = hash;
  e->holders = 1;
  if (len > c->most) return &e->text; /* for the caller alone */
  (void)pthread_mutex_lock(&c->lock);
  make_place(c, len);
  e->used = ++c->clock;
  e->holders++;
  c->bytes += len;
  c->entries[c->n++] = e;
  (void)pthread_mutex_unlock(&c->lock);
  return &e->text;
}

void text_cache_release(text_cache *c, const cached_text *text) {
  if (!text) return;
  (void)pthread_mutex_lock(&c->lock);
  leave_text((entry *)(uintptr_t)text);
  (void)pthread_mutex_unlock(&c->lock);
}
