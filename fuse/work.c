/* work.c - a look-up while it is worked on. */
#include "work.h"

#include "values.h"

#include <stdio.h>
#include <time.h>

/* ---- work that can be called off ----------------------------------------------------------------------- */

static void on_interrupt(fuse_req_t req, void *data) {
  (void)req;
  ticket_cancel(data);
}

static void ticket_list(fs *f, ticket *t) {
  int quitting;
  pthread_mutex_lock(&f->lock);
  t->next = f->running;
  t->link = &f->running;
  if (t->next) t->next->link = &t->next;
  f->running = t;
  quitting = f->quitting;
  pthread_mutex_unlock(&f->lock);
  if (quitting) ticket_cancel(t);
}

static void ticket_unlist(fs *f, ticket *t) {
  pthread_mutex_lock(&f->lock);
  *t->link = t->next;
  if (t->next) t->next->link = t->link;
  pthread_mutex_unlock(&f->lock);
}

void ticket_begin(fuse_req_t req, fs *f, generation *g, ticket *t) {
  ticket_make(t, g);
  ticket_list(f, t);
  fuse_req_interrupt_func(req, on_interrupt, t);
}

void ticket_end(fuse_req_t req, fs *f, ticket *t) {
  fuse_req_interrupt_func(req, NULL, NULL); /* returns once no interrupt is using the ticket */
  ticket_unlist(f, t);
  ticket_free(t);
}

int lookup_fails(lookup *l, int error, const char *why) {
  snprintf(l->why, sizeof l->why, "%s", why);
  return error;
}

int lookup_search(lookup *l, const search_request *request, search_reply *reply) {
  fs *f = l->f;
  ticket t;
  int rc;
  ticket_begin(l->req, f, l->g, &t);
  rc = generation_search(&t, request, reply);
  ticket_end(l->req, f, &t);
  pthread_mutex_lock(&f->lock);
  f->count.searches++;
  f->count.fallbacks += reply->fallbacks;
  if (reply->fallbacks) memcpy(f->last_fallback, reply->fallback, sizeof f->last_fallback);
  pthread_mutex_unlock(&f->lock);
  return rc ? lookup_fails(l, rc, reply->error) : 0;
}

result *lookup_memo(fs *f, const char *key, size_t key_len) {
  result *r;
  pthread_mutex_lock(&f->lock);
  r = result_find(&f->cache, key, key_len);
  if (r) f->count.memo_hits++;
  pthread_mutex_unlock(&f->lock);
  return r;
}

const char *lookup_asked(const lookup *l, int part) {
  const char *at = l->given ? l->given->bytes : "";
  while (l->given && part--) at += strlen(at) + 1;
  return at;
}

const char *lookup_where(const lookup *l) {
  const char *where = lookup_asked(l, ASKED_WHERE);
  return *where ? where : NULL;
}

int lookup_facets(lookup *l, const search_request *request, const char *column, gpuir_facets **facets) {
  ticket t;
  int rc;
  ticket_begin(l->req, l->f, l->g, &t);
  rc = generation_facets(&t, request, column, facets, l->why, sizeof l->why);
  ticket_end(l->req, l->f, &t);
  pthread_mutex_lock(&l->f->lock);
  l->f->count.searches++;
  pthread_mutex_unlock(&l->f->lock);
  return rc;
}

result *lookup_remember(fs *f, const char *key, size_t key_len, buf *b, hit_link *links, uint32_t nlinks) {
  result *r;
  char *bytes = b->data;
  if (bytes && b->len < b->cap) { /* the cache counts what is used */
    char *cut = realloc(bytes, b->len ? b->len : 1);
    if (cut) bytes = cut;
  }
  pthread_mutex_lock(&f->lock);
  r = result_add(&f->cache, key, key_len, bytes, b->len, links, nlinks);
  pthread_mutex_unlock(&f->lock);
  b->data = NULL;
  return r;
}

uint64_t lookup_deadline(const fs *f) {
  struct timespec now;
  if (!f->config.timeout_ns) return 0;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec + f->config.timeout_ns;
}
