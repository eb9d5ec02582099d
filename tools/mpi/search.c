/* search.c - asks all shards, and merges their hits.
 *
 * All ranks parse a batch, tell each other of its terms what they know, and search. A rank begins elsewhere in the
 * batch than the others, so that a query is asked of one shard after another, as of the segments of one index, and the
 * score that the best k had so far is known to the next: through memory that the ranks of one machine share. A rank
 * that is done takes queries from one that is not, and asks that one's shard. */
#include "mpi.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- what ranks agree on ---- */

static int hit_is_better(gpuir_hit a, gpuir_hit b) {
  return a.score != b.score ? a.score > b.score : a.docid < b.docid;
}

/* Merges, for each of *n queries, the best k hits of both sides. An operation of MPI_Reduce. */
static void merge_hits(void *from, void *into, int *n, MPI_Datatype *type) {
  int bytes;
  MPI_Type_size(*type, &bytes);
  const size_t k = (size_t)bytes / sizeof(gpuir_hit);
  gpuir_hit *merged = (gpuir_hit *)cli_resize(NULL, k, sizeof *merged);
  for (int i = 0; i < *n; i++) {
    const gpuir_hit *a = (const gpuir_hit *)from + (size_t)i * k;
    gpuir_hit *b = (gpuir_hit *)into + (size_t)i * k;
    size_t x = 0, y = 0;
    for (size_t j = 0; j < k; j++) merged[j] = hit_is_better(a[x], b[y]) ? a[x++] : b[y++];
    memcpy(b, merged, k * sizeof *b);
  }
  free(merged);
}

/* Keeps, of *n pairs of near terms, the better ones: see gpuir_shards. An operation of MPI_Allreduce. */
static void keep_nearest(void *from, void *into, int *n, MPI_Datatype *type) {
  const gpuir_near_term *a = (const gpuir_near_term *)from;
  gpuir_near_term *b = (gpuir_near_term *)into;
  (void)type;
  for (int i = 0; i < *n; i++) {
    if (!a[i].len) continue;
    int better = !b[i].len || a[i].distance < b[i].distance;
    if (!better && a[i].distance == b[i].distance) {
      const size_t least = a[i].len < b[i].len ? a[i].len : b[i].len;
      const int order = memcmp(a[i].term, b[i].term, least);
      better = a[i].df > b[i].df || (a[i].df == b[i].df && (order < 0 || (!order && a[i].len < b[i].len)));
    }
    if (better) b[i] = a[i];
  }
}

int mpi_search_open(mpi_search *s, const mpi_shard *shard, gpuir_searcher *searcher) {
  s->shard = shard;
  s->searcher = searcher;
  if (s->k > shard->place.documents) s->k = (size_t)shard->place.documents;
  if (!s->k) s->k = 1;
  if (s->k > (size_t)1 << 27) { /* an MPI type counts its bytes in an int */
    cli_error("-k: at most %d over MPI", 1 << 27);
    return CLI_USAGE;
  }
  MPI_Type_contiguous((int)(s->k * sizeof(gpuir_hit)), MPI_BYTE, &s->type);
  MPI_Type_commit(&s->type);
  MPI_Op_create(merge_hits, 1, &s->merge);
  MPI_Type_contiguous((int)sizeof(gpuir_near_term), MPI_BYTE, &s->near_type);
  MPI_Type_commit(&s->near_type);
  MPI_Op_create(keep_nearest, 1, &s->nearest);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &s->node);
  MPI_Comm_rank(s->node, &s->here);
  MPI_Comm_size(s->node, &s->nhere);
  int *numbers = (int *)cli_resize(NULL, (size_t)s->nhere, sizeof *numbers);
  MPI_Allgather(&mpi_rank, 1, MPI_INT, numbers, 1, MPI_INT, s->node);
  s->guests = (mpi_guest *)cli_resize(NULL, (size_t)s->nhere, sizeof *s->guests);
  memset(s->guests, 0, (size_t)s->nhere * sizeof *s->guests);
  for (int i = 0; i < s->nhere; i++) s->guests[i].number = (unsigned)numbers[i];
  free(numbers);
  if (strcmp(gpuir_backend_name(searcher), "cpu") != 0) s->threads = 0;
  s->window = MPI_WIN_NULL;
  return CLI_OK;
}

/* Returns the half of what the ranks share that is in use, or the other one: its tickets, behind which are the
 * thresholds. */
static uint32_t *half(const mpi_search *s, unsigned which) {
  return s->shared + which % 2 * (s->room + (size_t)s->nhere);
}

/* Makes room for the thresholds of n queries, in the memory of the first rank of each machine. */
static void share_room(mpi_search *s, size_t n) {
  MPI_Aint size;
  void *own;
  int unit;
  if (n <= s->room) return;
  if (s->window != MPI_WIN_NULL) MPI_Win_free(&s->window);
  s->room = n;
  const size_t bytes = 2 * (n + (size_t)s->nhere) * sizeof *s->shared;
  MPI_Win_allocate_shared(s->here ? 0 : (MPI_Aint)bytes, sizeof *s->shared, MPI_INFO_NULL, s->node, &own, &s->window);
  MPI_Win_shared_query(s->window, 0, &size, &unit, &s->shared);
  if (!s->here) memset(s->shared, 0, bytes);
  MPI_Barrier(s->node);
}

void mpi_search_close(mpi_search *s) {
  if (!s->shard) return;
  for (int i = 0; i < s->nhere; i++) {
    gpuir_searcher_destroy(s->guests[i].searcher);
    gpuir_close(s->guests[i].index);
  }
  free(s->guests);
  if (s->window != MPI_WIN_NULL) MPI_Win_free(&s->window);
  MPI_Comm_free(&s->node);
  MPI_Op_free(&s->merge);
  MPI_Op_free(&s->nearest);
  MPI_Type_free(&s->type);
  MPI_Type_free(&s->near_type);
}

/* ---- parsing ---- */

void mpi_batch_free(mpi_batch *b) {
  for (size_t i = 0; b->queries && i < b->n; i++) gpuir_query_destroy(b->queries[i]);
  free(b->queries);
  free(b->statuses);
  free(b->all);
  b->queries = NULL;
  b->statuses = NULL;
  b->all = NULL;
}

/* Drops the queries that have failed on any rank. */
static void drop_failed(mpi_batch *b) {
  if (b->n) MPI_Allreduce(MPI_IN_PLACE, b->statuses, (int)b->n, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  for (size_t i = 0; i < b->n; i++) {
    if (!b->statuses[i]) continue;
    gpuir_query_destroy(b->queries[i]);
    b->queries[i] = NULL;
  }
}

/* Returns how many dfs the queries of a batch have together: as many on every rank. */
static size_t count_dfs(const mpi_batch *b) {
  size_t n = 0;
  for (size_t i = 0; i < b->n; i++) n += b->queries[i] ? gpuir_query_dfs(b->queries[i], NULL, 0) : 0;
  return n;
}

/* Checks the postings of a query's prefixes in all shards together, postings[0..n). 0, or why it fails. */
static const char *too_many(const uint64_t *postings, size_t n, uint64_t most) {
  uint64_t sum = 0;
  for (size_t i = 0; i < n; i++) {
    sum += postings[i];
    if (postings[i] > GPUIR_MAX_PREFIX_POSTINGS) return "a prefix stands for terms of more than 2^24 postings";
  }
  return sum > most ? "the prefixes together stand for terms of too many postings" : NULL;
}

/* Fails the queries of whose prefixes all shards together have more postings than one index may. */
static void check_prefixes(const mpi_search *s, mpi_batch *b, gpuir_error *err) {
  const uint64_t most = s->desc.prefix_postings ? s->desc.prefix_postings : GPUIR_MAX_QUERY_POSTINGS;
  const size_t n = count_dfs(b);
  uint64_t *postings = (uint64_t *)cli_resize(NULL, n, sizeof *postings);
  size_t at = 0;
  for (size_t i = 0; i < b->n; i++)
    for (size_t j = 0; b->queries[i] && j < gpuir_query_dfs(b->queries[i], NULL, 0); j++)
      postings[at++] = gpuir_query_prefix_postings(b->queries[i], j);
  if (n) MPI_Allreduce(MPI_IN_PLACE, postings, (int)n, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  at = 0;
  for (size_t i = 0; i < b->n; i++) {
    const size_t own = b->queries[i] ? gpuir_query_dfs(b->queries[i], NULL, 0) : 0;
    const char *why = too_many(postings + at, own, most);
    at += own;
    if (!why) continue;
    b->statuses[i] = GPUIR_E_LIMIT;
    if (err && !err[i].msg[0]) (void)snprintf(err[i].msg, sizeof err[i].msg, "%s", why);
  }
  free(postings);
  drop_failed(b);
}

/* Weighs all queries by the df that any rank knows of their terms. */
static void weigh(mpi_batch *b, gpuir_error *err) {
  const size_t n = count_dfs(b);
  size_t at = 0;
  uint32_t *dfs = (uint32_t *)cli_resize(NULL, n, sizeof *dfs);
  for (size_t i = 0; i < b->n; i++)
    if (b->queries[i]) at += gpuir_query_dfs(b->queries[i], dfs + at, n - at);
  if (n) MPI_Allreduce(MPI_IN_PLACE, dfs, (int)n, MPI_UINT32_T, MPI_MAX, MPI_COMM_WORLD);
  at = 0;
  for (size_t i = 0; i < b->n; i++) {
    if (!b->queries[i]) continue;
    const size_t own = gpuir_query_dfs(b->queries[i], NULL, 0);
    b->statuses[i] = gpuir_query_weigh(b->queries[i], dfs + at, own, err ? &err[i] : NULL);
    at += own;
  }
  free(dfs);
  drop_failed(b);
}

/* Asks all ranks for the best of what each has found. */
static int ask_ranks(void *search, gpuir_near_term *best) {
  const mpi_search *s = (const mpi_search *)search;
  MPI_Allreduce(MPI_IN_PLACE, best, 1, s->near_type, s->nearest, MPI_COMM_WORLD);
  return GPUIR_OK;
}

/* Searches near terms in place of words that no document of the collection has, as one index does. All ranks come to
 * the same ones, for they agree on each step; one that fails in between ends the job, as the others wait for it. */
static void respell(mpi_search *s, mpi_batch *b, gpuir_error *err) {
  const gpuir_shards shards = {ask_ranks, s};
  gpuir_error why;
  const char *word;
  mpi_batch some = *b; /* the queries with others in place of their words, which are weighed again */
  size_t len, n = 0;
  memset(&why, 0, sizeof why);
  some.queries = (gpuir_query **)cli_resize(NULL, b->n, sizeof *some.queries);
  memset(some.queries, 0, b->n * sizeof *some.queries);
  for (size_t i = 0; i < b->n && s->desc.spell != GPUIR_EXACT; i++) {
    int changed = 0;
    if (!b->queries[i] || gpuir_query_unknown(b->queries[i], 0, &word, &len)) continue;
    mpi_all_speak();
    if (gpuir_query_respell(b->queries[i], s->desc.mode, &shards, &changed, &why))
      cli_die("query %zu of the batch: %s", i + 1, why.msg);
    mpi_first_speaks();
    if (changed) some.queries[i] = b->queries[i];
    n += changed != 0;
  }
  if (n) weigh(&some, err);
  for (size_t i = 0; n && i < b->n; i++)
    if (b->statuses[i]) b->queries[i] = NULL;
  free(some.queries);
}

void mpi_parse(mpi_search *s, mpi_batch *b, int mode, gpuir_error *err) {
  gpuir_query_desc desc = s->desc;
  int prefixes = 0;
  desc.mode = b->mode = mode;
  b->queries = (gpuir_query **)cli_resize(NULL, b->n, sizeof *b->queries);
  b->statuses = (int *)cli_resize(NULL, b->n, sizeof *b->statuses);
  for (size_t i = 0; i < b->n; i++) {
    prefixes |= memchr(b->texts[i], '*', b->lens[i]) != NULL;
    b->statuses[i] =
        gpuir_query_parse(s->shard->index, &desc, b->texts[i], b->lens[i], &b->queries[i], err ? &err[i] : NULL);
  }
  drop_failed(b);
  if (prefixes) check_prefixes(s, b, err);
  weigh(b, err);
  respell(s, b, err);
}

/* ---- searching ---- */

void mpi_search_failed(mpi_search *s, size_t query, int status) {
  mpi_all_speak();
  cli_error("query %zu of the batch: %s", query + 1, gpuir_strerror(status));
  mpi_first_speaks();
  s->failures++;
}

/* The queries of a batch that are there, as a rank asks them. */
typedef struct asked {
  mpi_search *s;
  const mpi_batch *b;
  size_t n, block; /* they are taken in blocks of so many */
  size_t *places; /* in the batch */
  const gpuir_query **queries;
  uint32_t *tickets, *thresholds; /* tickets: of each rank of this machine, blocks that somebody has taken */
  gpuir_hit *found;
  uint32_t *counts;
  int *statuses;
  gpuir_hit *hits; /* of the whole batch */
} asked;

/* Searches n queries. */
static void search_some(gpuir_searcher *searcher, const asked *a, const gpuir_query *const *queries, size_t from,
    size_t n) {
  gpuir_batch_desc d;
  gpuir_batch *batch;
  int status;
  if (!n) return;
  memset(&d, 0, sizeof d);
  d.queries = queries;
  d.nq = n;
  d.k = a->s->k;
  d.hits = a->found + from * a->s->k;
  d.counts = a->counts + from;
  d.statuses = a->statuses + from;
  d.thresholds = a->thresholds + from;
  status = gpuir_search_begin(searcher, &d, &batch);
  if (!status) status = gpuir_search_finish(batch);
  for (size_t i = 0; i < n && status; i++) /* of those that failed alone the others have their hits */
    if (d.statuses[i] || !batch) d.counts[i] = 0;
}

/* Puts the hits of queries [from, to), by their numbers in the collection, among those of the batch, which have hits
 * without a document behind them. */
static void hand_in(const asked *a, size_t from, size_t to, uint64_t first) {
  const gpuir_hit none = {GPUIR_END, 0};
  const size_t k = a->s->k;
  int one = 1;
  for (size_t i = from; i < to; i++) {
    gpuir_hit *own = a->found + i * k;
    if (a->statuses[i]) mpi_search_failed(a->s, a->places[i], a->statuses[i]);
    for (size_t j = 0; j < a->counts[i]; j++) own[j].docid += (uint32_t)first;
    for (size_t j = a->counts[i]; j < k; j++) own[j] = none;
    merge_hits(own, a->hits + a->places[i] * k, &one, &a->s->type);
  }
}

/* Opens the shard of another rank of this machine. Returns 0 if that cannot be done: that rank does without help. */
static int visit(mpi_search *s, mpi_guest *g) {
  gpuir_searcher_desc desc;
  if (g->tried) return g->searcher != NULL;
  g->tried = 1;
  char *path = mpi_path(s->shard->folder, g->number, MPI_SHARD);
  memset(&desc, 0, sizeof desc);
  desc.threads = s->threads;
  if (!gpuir_open(path, NULL, &g->index, NULL) && !gpuir_shard_get_info(g->index, &g->place) &&
      g->place.shard == g->number && !memcmp(g->place.identity, s->shard->place.identity, sizeof g->place.identity))
    (void)gpuir_searcher_create(g->index, &desc, &g->searcher, NULL);
  free(path);
  return g->searcher != NULL;
}

/* Parses a query of this rank's for another's shard, weighed alike. */
static int parse_for(const asked *a, const mpi_guest *g, size_t i, gpuir_query **q) {
  const mpi_batch *b = a->b;
  gpuir_query_desc desc = a->s->desc;
  const size_t n = gpuir_query_dfs(a->queries[i], NULL, 0);
  uint32_t *dfs = (uint32_t *)cli_resize(NULL, n, sizeof *dfs);
  (void)gpuir_query_dfs(a->queries[i], dfs, n);
  desc.mode = b->mode;
  const char *word;
  size_t len;
  int status = gpuir_query_parse(g->index, &desc, b->texts[a->places[i]], b->lens[a->places[i]], q, NULL);
  if (!status && !gpuir_query_spelled(a->queries[i], 0, &word, &len, &word, &len))
    status = gpuir_query_respell_as(*q, a->queries[i], NULL);
  if (!status) status = gpuir_query_weigh(*q, dfs, n, NULL);
  free(dfs);
  return status;
}

/* Searches queries [from, to) of another rank's shard. */
static void help(const asked *a, const mpi_guest *g, size_t from, size_t to) {
  gpuir_query **queries = (gpuir_query **)cli_resize(NULL, to - from, sizeof *queries);
  size_t n = 0;
  int status = 0;
  for (; from + n < to && !status; n++) status = parse_for(a, g, from + n, &queries[n]);
  if (!status) search_some(g->searcher, a, (const gpuir_query *const *)queries, from, to - from);
  for (size_t i = from; i < to && status; i++) {
    a->statuses[i] = status;
    a->counts[i] = 0;
  }
  hand_in(a, from, to, g->place.first);
  for (size_t i = 0; i < n; i++) gpuir_query_destroy(queries[i]);
  free(queries);
}

/* Returns a rank of this machine that has the most blocks left which nobody has taken, this one, if it has any; or -1.
 * It is no other one where this one cannot help. */
static int most_behind(const asked *a, uint32_t blocks) {
  const mpi_search *s = a->s;
  uint32_t least = blocks;
  int behind = -1;
  if (__atomic_load_n(&a->tickets[s->here], __ATOMIC_RELAXED) < blocks) return s->here;
  for (int i = 0; i < s->nhere && s->threads; i++) {
    const uint32_t taken = __atomic_load_n(&a->tickets[i], __ATOMIC_RELAXED);
    if (taken >= least || (s->guests[i].tried && !s->guests[i].searcher)) continue;
    least = taken;
    behind = i;
  }
  return behind;
}

#define MOST_BLOCKS 128u /* that a batch is taken in by ranks of one thread each */
#define LEAST_BLOCK 4u /* queries of one at least: alone, one has too little to share */

/* Asks this rank's shard, from its own place in the batch on, then those of ranks that are behind. */
static void ask_all(asked *a) {
  mpi_search *s = a->s;
  const size_t most = s->threads && s->threads < MOST_BLOCKS ? MOST_BLOCKS / s->threads : 1; /* a device takes all */
  a->block = a->n / most > LEAST_BLOCK ? a->n / most : LEAST_BLOCK;
  const uint32_t blocks = (uint32_t)((a->n + a->block - 1) / a->block);
  for (int at; (at = most_behind(a, blocks)) >= 0;) {
    const mpi_guest *g = &s->guests[at];
    if (at != s->here && !visit(s, &s->guests[at])) continue;
    const uint32_t ticket = __atomic_fetch_add(&a->tickets[at], 1, __ATOMIC_RELAXED);
    if (ticket >= blocks) continue;
    const uint64_t start = (uint64_t)blocks * g->number / (uint64_t)mpi_ranks;
    const size_t from = (size_t)((start + ticket) % blocks) * a->block;
    const size_t to = from + a->block < a->n ? from + a->block : a->n;
    if (at != s->here) {
      help(a, g, from, to);
    } else {
      search_some(s->searcher, a, a->queries + from, from, to - from);
      hand_in(a, from, to, s->shard->place.first);
    }
  }
}

static double processor_time(void) {
  struct timespec t = {0, 0};
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void mpi_ask(mpi_search *s, const mpi_batch *b, gpuir_hit *hits, int everywhere) {
  const gpuir_hit none = {GPUIR_END, 0};
  asked a;
  for (size_t i = 0; i < b->n * s->k; i++) hits[i] = none;
  if (s->desc.sort || s->desc.collapse) {
    mpi_ask_ordered(s, b, hits, everywhere);
    return;
  }
  memset(&a, 0, sizeof a);
  a.s = s;
  a.b = b;
  a.hits = hits;
  a.queries = (const gpuir_query **)cli_resize(NULL, b->n, sizeof *a.queries);
  a.places = (size_t *)cli_resize(NULL, b->n, sizeof *a.places);
  a.counts = (uint32_t *)cli_resize(NULL, b->n, sizeof *a.counts);
  a.statuses = (int *)cli_resize(NULL, b->n, sizeof *a.statuses);
  for (size_t i = 0; i < b->n; i++) {
    if (!b->queries[i]) continue;
    a.places[a.n] = i;
    a.queries[a.n++] = b->queries[i];
  }
  memset(a.statuses, 0, b->n * sizeof *a.statuses);
  share_room(s, b->n);
  a.tickets = half(s, s->round++);
  a.thresholds = a.tickets + s->nhere;
  /* Nobody looks at the other half any more when all have come here: it is cleared for the next time. */
  MPI_Barrier(s->node);
  if (!s->here) memset(half(s, s->round), 0, (s->room + (size_t)s->nhere) * sizeof *s->shared);
  a.found = (gpuir_hit *)cli_resize(NULL, a.n * s->k, sizeof *a.found);
  s->spent -= processor_time();
  s->busy -= MPI_Wtime();
  ask_all(&a);
  s->spent += processor_time();
  s->busy += MPI_Wtime();
  if (everywhere) MPI_Allreduce(MPI_IN_PLACE, hits, (int)b->n, s->type, s->merge, MPI_COMM_WORLD);
  else MPI_Reduce(mpi_rank ? hits : MPI_IN_PLACE, hits, (int)b->n, s->type, s->merge, 0, MPI_COMM_WORLD);
  free(a.found);
  free(a.queries);
  free(a.places);
  free(a.counts);
  free(a.statuses);
}

/* Puts the query that was asked by OR in place of one that is too long for AND. */
static void take_over(mpi_batch *b, size_t i, mpi_batch *some, size_t j, gpuir_error *err, const gpuir_error *again) {
  if (b->queries[i] || b->statuses[i] != GPUIR_E_TERMS) return;
  b->queries[i] = some->queries[j];
  b->statuses[i] = some->statuses[j];
  some->queries[j] = NULL;
  if (err) err[i] = again[j];
}

/* Returns how many hits a query has. */
static size_t count_hits(const gpuir_hit *hits, size_t k) {
  size_t n = 0;
  while (n < k && hits[n].docid != GPUIR_END) n++;
  return n;
}

/* Asks anew, by OR, for those queries of a batch of which AND found too few hits, or which are too long for it. */
static void answer_or(mpi_search *s, mpi_batch *b, gpuir_hit *hits, gpuir_error *err) {
  const size_t enough = s->enough && s->enough < s->k ? s->enough : s->k;
  mpi_batch some;
  size_t *which = (size_t *)cli_resize(NULL, b->n, sizeof *which);
  memset(&some, 0, sizeof some);
  b->all = (size_t *)cli_resize(NULL, b->n, sizeof *b->all);
  some.texts = (char **)cli_resize(NULL, b->n, sizeof *some.texts);
  some.lens = (size_t *)cli_resize(NULL, b->n, sizeof *some.lens);
  for (size_t i = 0; i < b->n; i++) {
    b->all[i] = SIZE_MAX;
    if (b->queries[i] ? hits[i * s->k + enough - 1].docid != GPUIR_END : b->statuses[i] != GPUIR_E_TERMS) continue;
    b->all[i] = count_hits(hits + i * s->k, s->k);
    which[some.n] = i;
    some.texts[some.n] = b->texts[i];
    some.lens[some.n++] = b->lens[i];
  }
  if (some.n) {
    gpuir_hit *again = (gpuir_hit *)cli_resize(NULL, some.n * s->k, sizeof *again);
    gpuir_error *why = (gpuir_error *)cli_resize(NULL, some.n, sizeof *why);
    memset(why, 0, some.n * sizeof *why);
    mpi_parse(s, &some, GPUIR_OR, why);
    mpi_ask(s, &some, again, 1);
    for (size_t i = 0; i < some.n; i++) {
      memcpy(hits + which[i] * s->k, again + i * s->k, s->k * sizeof *hits);
      take_over(b, which[i], &some, i, err, why);
    }
    mpi_batch_free(&some);
    free(again);
    free(why);
  }
  free(some.texts);
  free(some.lens);
  free(which);
}

void mpi_answer(mpi_search *s, mpi_batch *b, gpuir_hit *hits, gpuir_error *err) {
  mpi_parse(s, b, s->desc.mode == GPUIR_ANDOR ? GPUIR_AND : s->desc.mode, err);
  mpi_ask(s, b, hits, 1);
  if (s->desc.mode == GPUIR_ANDOR) answer_or(s, b, hits, err);
}
