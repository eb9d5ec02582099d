/* scale.c - simulates a service of many shards with replicas, from measured times of searches.
 *
 * Queries arrive at random (Poisson) at a broker, which asks one replica of each shard and waits for all. A replica has
 * cores and one queue. Requests that are not answered in time are hedged: another replica is asked too, and the first
 * answer counts (Dean, Barroso: The tail at scale, CACM 56(2), 2013). Of two replicas drawn at random the less busy
 * one is asked (Mitzenmacher: The power of two choices in randomized load balancing, IEEE TPDS 12(10), 2001).
 *
 * Times come from `gpuir-mpi bench --times` on one shard of many documents (--large) and on several of few (--small):
 * that of a query on a shard is a straight line in its number of documents through the two, times the deviation of one
 * of the small shards, drawn at random, from their mean. So a query that is slow is slow everywhere. What is not
 * measured but assumed, the network, pauses and failures, are options, and are printed. The same options and files
 * print the same. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_COLUMNS 64
#define NONE UINT32_MAX

typedef struct options {
  const char *large, *small, *mode;
  double large_documents, small_documents, documents;
  uint32_t shards, replicas, cores, queries;
  double rate; /* queries/s */
  double hedge, timeout; /* us; hedge 0: none */
  double network; /* us each way */
  double slow, slow_mean; /* of messages, and by how many us on average */
  double pause, pause_time; /* of searches, and how many us it lasts */
  double down; /* of replicas, which no broker knows of yet */
  double price; /* of a replica's machine, an hour */
  uint64_t seed;
} options;

/* ---- times ---- */

typedef struct times {
  size_t n;
  double *mean; /* [n] us a query on a large shard, and on a small one */
  double *small; /* [n] */
  double *spread; /* [n * columns] a small shard's time by their mean */
  unsigned columns;
} times;

static void die(const char *what, const char *of) {
  fprintf(stderr, "scale: %s%s%s\n", what, *of ? ": " : "", of);
  exit(1);
}

static void *resize(void *p, size_t n, size_t size) {
  p = size && n > SIZE_MAX / size ? NULL : realloc(p, n ? n * size : 1);
  if (!p) die("out of memory", "");
  return p;
}

static void *zeroed(size_t n, size_t size) {
  void *p = calloc(n ? n : 1, size);
  if (!p) die("out of memory", "");
  return p;
}

/* Reads the rows of a mode; each has as many numbers as the first. Returns how many there are. */
static size_t read_rows(const char *path, const char *mode, double **rows, unsigned *columns) {
  char line[2048];
  size_t n = 0;
  FILE *f = fopen(path, "r");
  if (!f) die("cannot open", path);
  *rows = NULL;
  *columns = 0;
  while (fgets(line, sizeof line, f)) {
    const size_t len = strcspn(line, "\t\n");
    double row[MOST_COLUMNS];
    unsigned m = 0;
    char *p = line + len, *end;
    if (len != strlen(mode) || strncmp(line, mode, len) != 0) continue;
    for (; m < MOST_COLUMNS; p = end) {
      row[m] = strtod(p, &end);
      if (end == p) break;
      m++;
    }
    if (!m || (n && m != *columns)) die("lines of different numbers of ranks, or without any", path);
    *columns = m;
    *rows = (double *)resize(*rows, (n + 1) * m, sizeof **rows);
    memcpy(*rows + n++ * m, row, m * sizeof *row);
  }
  fclose(f);
  if (!n) die("no times of this mode", path);
  return n;
}

static times read_times(const options *o) {
  times t;
  double *rows;
  unsigned columns;
  const size_t n = read_rows(o->large, o->mode, &rows, &columns);
  memset(&t, 0, sizeof t);
  t.n = read_rows(o->small, o->mode, &t.spread, &t.columns);
  if (n != t.n) die("not the same queries as of the large shard", o->small);
  t.mean = (double *)zeroed(n, sizeof *t.mean);
  t.small = (double *)zeroed(n, sizeof *t.small);
  for (size_t i = 0; i < n; i++) {
    double sum = 0;
    for (unsigned j = 0; j < columns; j++) sum += rows[i * columns + j];
    t.mean[i] = sum / columns;
    sum = 0;
    for (unsigned j = 0; j < t.columns; j++) sum += t.spread[i * t.columns + j];
    t.small[i] = sum / t.columns;
    for (unsigned j = 0; j < t.columns; j++) t.spread[i * t.columns + j] /= sum > 0 ? t.small[i] : 1;
  }
  free(rows);
  return t;
}

/* What a query takes on a shard with so many documents, on average; at least what it takes on a small one's tenth. */
static double service(const options *o, const times *t, size_t query) {
  const double documents = o->documents / o->shards;
  const double slope = (t->mean[query] - t->small[query]) / (o->large_documents - o->small_documents);
  return fmax(t->small[query] + slope * (documents - o->small_documents), t->small[query] / 10);
}

/* ---- random numbers: splitmix64 ---- */

static uint64_t next(uint64_t *s) {
  uint64_t z = *s += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
static double unit(uint64_t *s) { return ((double)(next(s) >> 11) + 0.5) / 9007199254740992.0; }
static double exponential(uint64_t *s, double mean) { return -mean * log(unit(s)); }
static uint32_t below(uint64_t *s, uint32_t n) { return (uint32_t)(((next(s) >> 32) * n) >> 32); }

/* ---- the simulation ---- */

enum { ARRIVE, REACH, FINISH, ANSWER, HEDGE };

typedef struct event {
  double time;
  uint64_t order; /* of equal times */
  uint32_t kind, what;
} event;

/* A request to one replica of a shard. */
typedef struct request {
  uint32_t query, shard, replica;
  uint32_t next; /* in the replica's queue, or of the free ones */
} request;

typedef struct replica {
  uint32_t first, last; /* of the queue; NONE: empty */
  uint32_t busy, queued;
  int down;
} replica;

typedef struct asked {
  double arrival;
  double mean; /* us on a shard */
  size_t row; /* of the times */
  uint32_t left; /* shards that have not answered */
  uint8_t *answered; /* [shards] */
  uint32_t *first; /* [shards] the replica that was asked first */
} asked;

typedef struct simulation {
  const options *o;
  const times *t;
  uint64_t seed, order;
  event *heap;
  size_t n, cap;
  request *requests;
  uint32_t nrequests, free_request;
  replica *replicas; /* [shard * o->replicas + number] */
  asked *queries;
  double now, busy; /* us; core-us that were worked */
  uint64_t sent, hedged, lost;
  double *latencies;
  uint32_t done;
} simulation;

static int sooner(const event *a, const event *b) {
  return a->time < b->time || (!(b->time < a->time) && a->order < b->order);
}

static void plan(simulation *s, double time, uint32_t kind, uint32_t what) {
  const event e = {time, s->order++, kind, what};
  size_t i = s->n++;
  if (s->n > s->cap) s->heap = (event *)resize(s->heap, s->cap = s->cap ? 2 * s->cap : 1024, sizeof *s->heap);
  for (; i && sooner(&e, &s->heap[(i - 1) / 2]); i = (i - 1) / 2) s->heap[i] = s->heap[(i - 1) / 2];
  s->heap[i] = e;
}

static event take(simulation *s) {
  const event first = s->heap[0], last = s->heap[--s->n];
  size_t i = 0;
  for (;;) {
    size_t child = 2 * i + 1;
    if (child >= s->n) break;
    if (child + 1 < s->n && sooner(&s->heap[child + 1], &s->heap[child])) child++;
    if (!sooner(&s->heap[child], &last)) break;
    s->heap[i] = s->heap[child];
    i = child;
  }
  s->heap[i] = last;
  return first;
}

/* How long a message is on its way. */
static double message(simulation *s) {
  const options *o = s->o;
  return o->network + (unit(&s->seed) < o->slow ? exponential(&s->seed, o->slow_mean) : 0);
}

/* Asks a replica of a shard, not that of number `but`: of two the one with less to do. */
static void ask(simulation *s, uint32_t query, uint32_t shard, uint32_t but) {
  const uint32_t n = s->o->replicas;
  const replica *all = s->replicas + (size_t)shard * n;
  uint32_t a = below(&s->seed, n), b = below(&s->seed, n), r = s->free_request;
  if (n > 1 && a == but) a = (a + 1) % n;
  if (n > 1 && b == but) b = (b + 1) % n;
  if (all[b].busy + all[b].queued < all[a].busy + all[a].queued) a = b;
  if (r == NONE) {
    r = s->nrequests++;
    if (!(r & (r + 1))) { /* room for twice as many */
      s->requests = (request *)resize(s->requests, 2 * ((size_t)r + 1), sizeof *s->requests);
      memset(s->requests + r, 0, ((size_t)r + 2) * sizeof *s->requests);
    }
  } else {
    s->free_request = s->requests[r].next;
  }
  s->requests[r].query = query;
  s->requests[r].shard = shard;
  s->requests[r].replica = a;
  if (but == NONE) s->queries[query].first[shard] = a;
  s->sent++;
  plan(s, s->now + message(s), REACH, r);
}

static void forget(simulation *s, uint32_t r) {
  s->requests[r].next = s->free_request;
  s->free_request = r;
}

/* Begins to work on a request. */
static void work(simulation *s, replica *at, uint32_t r) {
  const asked *q = &s->queries[s->requests[r].query];
  const double spread = s->t->spread[q->row * s->t->columns + below(&s->seed, s->t->columns)];
  const double spent = q->mean * spread + (unit(&s->seed) < s->o->pause ? s->o->pause_time : 0);
  at->busy++;
  s->busy += spent;
  plan(s, s->now + spent, FINISH, r);
}

/* A request reaches its replica. */
static void reach(simulation *s, uint32_t r) {
  replica *at = &s->replicas[(size_t)s->requests[r].shard * s->o->replicas + s->requests[r].replica];
  if (at->down) {
    s->lost++;
    forget(s, r);
  } else if (at->busy < s->o->cores) {
    work(s, at, r);
  } else {
    s->requests[r].next = NONE;
    if (at->last == NONE) at->first = r;
    else s->requests[at->last].next = r;
    at->last = r;
    at->queued++;
  }
}

/* A replica has an answer, and turns to the next request that nobody has answered meanwhile. */
static void finish(simulation *s, uint32_t r) {
  replica *at = &s->replicas[(size_t)s->requests[r].shard * s->o->replicas + s->requests[r].replica];
  at->busy--;
  plan(s, s->now + message(s), ANSWER, r);
  while (at->first != NONE && at->busy < s->o->cores) {
    const uint32_t waiting = at->first;
    const request *x = &s->requests[waiting];
    at->first = x->next;
    if (at->first == NONE) at->last = NONE;
    at->queued--;
    if (s->queries[x->query].left && !s->queries[x->query].answered[x->shard]) work(s, at, waiting);
    else forget(s, waiting);
  }
}

/* An answer reaches the broker. */
static void answer(simulation *s, uint32_t r) {
  const request x = s->requests[r];
  asked *q = &s->queries[x.query];
  forget(s, r);
  if (!q->left || q->answered[x.shard]) return; /* the other replica was sooner */
  q->answered[x.shard] = 1;
  if (--q->left) return;
  s->latencies[s->done++] = s->now - q->arrival;
  free(q->answered);
  free(q->first);
}

/* A query arrives, and the next one is drawn. */
static void arrive(simulation *s, uint32_t query) {
  const options *o = s->o;
  asked *q = &s->queries[query];
  q->arrival = s->now;
  q->row = below(&s->seed, (uint32_t)s->t->n);
  q->mean = service(o, s->t, q->row);
  q->left = o->shards;
  q->answered = (uint8_t *)zeroed(o->shards, 1);
  q->first = (uint32_t *)resize(NULL, o->shards, sizeof *q->first);
  for (uint32_t i = 0; i < o->shards; i++) ask(s, query, i, NONE);
  plan(s, s->now + (o->hedge > 0 ? o->hedge : o->timeout), HEDGE, query);
  if (query + 1 < o->queries) plan(s, s->now + exponential(&s->seed, 1e6 / o->rate), ARRIVE, query + 1);
}

/* Shards that have not answered in time are asked again, elsewhere, until they have. */
static void hedge(simulation *s, uint32_t query) {
  asked *q = &s->queries[query];
  if (!q->left) return;
  for (uint32_t i = 0; i < s->o->shards; i++) {
    if (q->answered[i]) continue;
    ask(s, query, i, q->first[i]);
    s->hedged++;
  }
  plan(s, s->now + s->o->timeout, HEDGE, query);
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static double percentile(const simulation *s, double p) {
  const size_t i = (size_t)(p / 100 * s->done);
  return s->latencies[i < s->done ? i : s->done - 1] / 1000;
}

static void report(const simulation *s) {
  const options *o = s->o;
  const double machines = (double)o->shards * o->replicas;
  double sum = 0, work_us = 0;
  for (uint32_t i = 0; i < s->done; i++) sum += s->latencies[i];
  for (size_t i = 0; i < s->t->n; i++) work_us += service(o, s->t, i);
  printf("%s\t%u\t%u\t%u\t%.0f\t%.1f\t%.3f\t%.1f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\n", o->mode, o->shards,
      o->replicas, o->cores, o->rate, o->hedge / 1000, work_us / (double)s->t->n / 1000,
      100 * s->busy / (s->now * machines * o->cores), 100.0 * (double)s->hedged / (double)s->sent, sum / s->done / 1000,
      percentile(s, 50), percentile(s, 99), percentile(s, 99.9), machines * o->price / 3600 / o->rate * 1e6);
}

static void simulate(const options *o, const times *t) {
  simulation s;
  memset(&s, 0, sizeof s);
  s.o = o;
  s.t = t;
  s.seed = o->seed;
  s.free_request = NONE;
  s.queries = (asked *)zeroed(o->queries, sizeof *s.queries);
  s.latencies = (double *)resize(NULL, o->queries, sizeof *s.latencies);
  s.replicas = (replica *)zeroed((size_t)o->shards * o->replicas, sizeof *s.replicas);
  for (size_t i = 0; i < (size_t)o->shards * o->replicas; i++) {
    s.replicas[i].first = s.replicas[i].last = NONE;
    s.replicas[i].down = i % o->replicas == 0 && unit(&s.seed) < o->down * o->replicas; /* never a whole shard */
  }
  plan(&s, 0, ARRIVE, 0);
  while (s.n && s.done < o->queries) {
    const event e = take(&s);
    s.now = e.time;
    switch (e.kind) {
    case ARRIVE: arrive(&s, e.what); break;
    case REACH: reach(&s, e.what); break;
    case FINISH: finish(&s, e.what); break;
    case ANSWER: answer(&s, e.what); break;
    default: hedge(&s, e.what); break;
    }
  }
  qsort(s.latencies, s.done, sizeof *s.latencies, by_value);
  report(&s);
  free(s.heap);
  free(s.requests);
  free(s.queries);
  free(s.latencies);
  free(s.replicas);
}

/* ---- options: name=value ---- */

static void read_options(int argc, char **argv, options *o) {
  const struct {
    const char *name;
    double *to;
  } reals[] = {{"large_documents", &o->large_documents}, {"small_documents", &o->small_documents},
      {"documents", &o->documents}, {"rate", &o->rate}, {"hedge", &o->hedge}, {"timeout", &o->timeout},
      {"network", &o->network}, {"slow", &o->slow}, {"slow_mean", &o->slow_mean}, {"pause", &o->pause},
      {"pause_time", &o->pause_time}, {"down", &o->down}, {"price", &o->price}};
  const struct {
    const char *name;
    uint32_t *to;
  } counts[] = {{"shards", &o->shards}, {"replicas", &o->replicas}, {"cores", &o->cores}, {"queries", &o->queries}};
  const struct { const char *name, **to; } texts[] = {{"large", &o->large}, {"small", &o->small}, {"mode", &o->mode}};
  for (int i = 1; i < argc; i++) {
    const size_t len = strcspn(argv[i], "=");
    const char *value = argv[i] + len + (argv[i][len] == '=');
    char *end = NULL;
    int known = 0;
#define IS(x) (strlen((x).name) == len && !strncmp((x).name, argv[i], len))
    for (size_t j = 0; j < sizeof reals / sizeof *reals; j++)
      if (IS(reals[j])) *reals[j].to = strtod(value, &end), known = !*end && *value && *reals[j].to >= 0;
    for (size_t j = 0; j < sizeof counts / sizeof *counts; j++)
      if (IS(counts[j])) *counts[j].to = (uint32_t)strtoul(value, &end, 10), known = !*end && *counts[j].to > 0;
    for (size_t j = 0; j < sizeof texts / sizeof *texts; j++)
      if (IS(texts[j])) *texts[j].to = value, known = 1;
#undef IS
    if (len == 4 && !strncmp("seed", argv[i], len)) o->seed = strtoull(value, &end, 10), known = !*end;
    if (!known) die("no such option, or no such value", argv[i]);
  }
}

int main(int argc, char **argv) {
  options o;
  times t;
  memset(&o, 0, sizeof o);
  o.mode = "or";
  o.large_documents = 1e7;
  o.small_documents = 1e6;
  o.documents = 1e10;
  o.shards = 1000;
  o.replicas = 2;
  o.cores = 16;
  o.queries = 5000;
  o.rate = 1000;
  o.timeout = 100000;
  o.network = 50;
  o.slow = 0.001;
  o.slow_mean = 2000;
  o.pause = 0.0005;
  o.pause_time = 10000;
  o.price = 1;
  o.seed = 1;
  if (argc > 1 && !strcmp(argv[1], "--head")) {
    printf(
        "# "
        "mode\tshards\treplicas\tcores\tqueries_per_s\thedge_ms\twork_ms\tutilisation_%%\thedged_%%\tmean_"
        "ms\t"
        "p50_ms\tp99_ms\tp99.9_ms\tcost_per_million\n");
    return 0;
  }
  read_options(argc, argv, &o);
  if (!o.large || !o.small) die("usage: scale large=FILE small=FILE [NAME=VALUE...]", "");
  t = read_times(&o);
  simulate(&o, &t);
  free(t.mean);
  free(t.small);
  free(t.spread);
  return 0;
}
