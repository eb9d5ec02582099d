/* test_cuda.c - the CUDA backend returns the CPU's hits, bit for bit
 *
 * Collections that differ in shape (few documents, ties, dense lists, Zipf, runs of docIDs, sparse lists in a large
 * docID range) are searched with every mode, many k, negation, unknown and repeated terms and other k1 and b, in
 * batches and alone, by a device that holds the lists expanded, by one that decodes them and by one that holds some
 * at a time, with both evaluators. So are indexes in every codec, and WordNet. Calls of CUDA are made to fail one
 * after another (gpuir_cuda.cu's seam). Prints TAP. Without a device it says so and succeeds. `test_cuda quick` is the
 * reduced set for compute-sanitizer, `test_cuda shapes|codecs|text|ranges|phrases|live` a part of the whole (with
 * `-quick` behind it reduced; `2/3` as another argument: the second of each three of its steps), and `test_cuda
 * ./INDEX` searches an index that is there. */
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include "../support/folder.h"
#include "synth.h"

#include "real.h"

#include "share.h"

#include "compare.h"

#include "phrases.h"

#include "live.h"

static char folder[] = "/tmp/gpuir-cuda-XXXXXX";

extern int gpuir_cuda_seam_uncut, gpuir_cuda_seam_unweighed;

/* The device memory that an open index takes with a searcher (*all), and the searcher alone, within a bound (or 0). */
static uint64_t bounded_memory(const gpuir_index *ix, size_t batch, uint64_t bound, uint64_t *all) {
  gpuir_cuda *cuda;
  gpuir_cuda_desc desc;
  gpuir_cuda_info before, after;
  gpuir_searcher *s;
  gpuir_error err;
  memset(&desc, 0, sizeof desc);
  desc.batch = batch;
  desc.memory = bound;
  if (gpuir_cuda_open(ix, &desc, &cuda, &err) || gpuir_searcher_create((gpuir_index *)(uintptr_t)ix, NULL, &s, NULL))
    exit(1);
  gpuir_cuda_get_info(cuda, &before);
  if (gpuir_cuda_attach(s, cuda, 0, &err)) exit(1);
  gpuir_cuda_get_info(cuda, &after);
  gpuir_searcher_destroy(s);
  gpuir_cuda_close(cuda);
  *all = after.used_memory;
  return after.used_memory - before.used_memory;
}

/* The same without a bound, no list being cut. */
static uint64_t searcher_memory(const gpuir_index *ix, size_t batch, uint64_t *all) {
  uint64_t one;
  gpuir_cuda_seam_uncut = 1;
  one = bounded_memory(ix, batch, 0, all);
  gpuir_cuda_seam_uncut = 0;
  return one;
}

enum { CUT, EXPANDED, COARSE, GUIDED, IN_PLACE, CACHED, WAYS };

/* One index against the device: with the lists expanded and the long ones cut into slices, expanded alone, with fine
 * and with coarse peaks, decoded in place, with guides and without, and with room for some of them. */
static void check(const char *name, const char *path, uint32_t vocabulary, unsigned nq, int quick) {
  static const size_t ks[] = {1, 2, 10, 37, 100, 1000, 1025, 5000, 10000};
  static const char *const ways[WAYS] = {"cut", "expanded", "with coarse peaks", "with guides", "decoded in place",
      "cached"};
  gpuir_index *ix;
  gpuir_error err;
  gpuir_cuda_desc desc;
  int way, evaluator;
  uint64_t all, one, index_bytes = 0;
  if (gpuir_open(path, NULL, &ix, &err)) {
    printf("Bail out! %s\n", err.msg);
    exit(1);
  }
  memset(&desc, 0, sizeof desc);
  if (quick) desc.batch = 64;
  for (way = 0; way < WAYS; way++) {
    gpuir_cuda *cuda;
    gpuir_cuda_info info;
    if (way == EXPANDED) {
      one = searcher_memory(ix, desc.batch, &all);
      if (all - one - index_bytes < 16 * 1024) break; /* no long list */
    }
    if (way == EXPANDED || way == COARSE) {
      (void)bounded_memory(ix, desc.batch, desc.memory, &all);
      desc.memory = all - 1; /* not enough to cut, or for fine peaks */
    } else if (way == GUIDED) {
      one = searcher_memory(ix, desc.batch, &all);
      desc.memory = (index_bytes + one + all) / 2; /* not enough to expand */
    } else if (way == IN_PLACE) {
      desc.memory = index_bytes + searcher_memory(ix, desc.batch, &all) + 20 * 1024; /* for nothing more */
    } else if (way == CACHED) {
      if (index_bytes < (512u << 10)) break;
      one = searcher_memory(ix, 1, &all);
      desc.memory = one + index_bytes * 3 / 4; /* not enough for the whole */
    }
    if (gpuir_cuda_open(ix, &desc, &cuda, &err)) {
      printf("# %s\n", err.msg);
      report(0, name);
      break;
    }
    gpuir_cuda_get_info(cuda, &info);
    most_terms = way == CACHED ? 5 : 40;
    for (evaluator = 0; evaluator < (way == COARSE ? 1 : 2); evaluator++) {
      gpuir_searcher_desc sd;
      gpuir_searcher *cpu, *gpu;
      synth_rng r = {42u + (unsigned)(way * 2 + evaluator)};
      unsigned bad = 0, i, round;
      char what[160];
      gpuir_query **q = (gpuir_query **)calloc(nq, sizeof *q);
      memset(&sd, 0, sizeof sd);
      sd.threads = quick ? 1 : 8;
      if (gpuir_searcher_create(ix, &sd, &cpu, NULL)) exit(1);
      sd.evaluator = evaluator;
      if (gpuir_searcher_create(ix, &sd, &gpu, NULL)) exit(1);
      if (gpuir_cuda_attach(gpu, cuda, 0, &err)) {
        printf("# attach: %s\n", err.msg);
        bad++;
      } else {
        for (round = 0; round < (quick ? 2 : sizeof ks / sizeof ks[0]); round++) {
          size_t k = quick ? ks[2 + round * 3] : ks[round], n = k >= 5000 && nq > 16 ? 16 : nq;
          if (way == CACHED && n > 100) n = 100;
          for (i = 0; i < n; i++) q[i] = random_query(ix, vocabulary, &r, 1);
          bad += compare(cpu, gpu, q, n, k, TOGETHER);
          bad += compare(cpu, gpu, q, n, k, IN_FLIGHT);
          bad += compare(cpu, gpu, q, n < 20 ? n / 2 : 20, k, SINGLE);
          if (!round) bad += compare_counts(cpu, gpu, q, n, TOGETHER) + compare_counts(cpu, gpu, q, n / 2, SINGLE);
          for (i = 0; i < n; i++) gpuir_query_destroy(q[i]);
        }
      }
      (void)snprintf(what, sizeof what, "%s: %s, %s equals the CPU", name, ways[way],
          evaluator ? "exhaustive" : "pruned");
      gpuir_cuda_get_info(cuda, &info);
      bad += desc.memory && info.used_memory > desc.memory;
      bad += way == CACHED && (!info.lists_missed || !info.bytes_sent || info.resident_bytes >= info.index_bytes);
      bad += way != CACHED && (info.lists_missed || info.bytes_sent || !info.lists_hit);
      if (bad)
        printf("# %llu bytes of %llu, %llu resident of %llu, %llu hit, %llu missed\n",
            (unsigned long long)info.used_memory, (unsigned long long)desc.memory,
            (unsigned long long)info.resident_bytes, (unsigned long long)info.index_bytes,
            (unsigned long long)info.lists_hit, (unsigned long long)info.lists_missed);
      report(!bad, what);
      gpuir_searcher_destroy(cpu);
      gpuir_searcher_destroy(gpu);
      free(q);
    }
    most_terms = 40;
    if (!way) index_bytes = info.index_bytes;
    gpuir_cuda_close(cuda);
  }
  gpuir_close(ix);
}

/* ---- threads, errors ---- */

typedef struct thread_work {
  gpuir_index *ix;
  gpuir_cuda *cuda;
  uint32_t vocabulary, seed;
  unsigned bad;
} thread_work;

static void *thread_main(void *argument) {
  thread_work *w = (thread_work *)argument;
  gpuir_searcher *cpu, *gpu;
  gpuir_query *q[64];
  gpuir_error err;
  synth_rng r = {w->seed};
  unsigned i, round;
  if (gpuir_searcher_create(w->ix, NULL, &cpu, NULL) || gpuir_searcher_create(w->ix, NULL, &gpu, NULL)) exit(1);
  w->bad += gpuir_cuda_attach(gpu, w->cuda, 0, &err) != 0;
  for (round = 0; round < 6 && !w->bad; round++) {
    for (i = 0; i < 64; i++) q[i] = random_query(w->ix, w->vocabulary, &r, 1);
    w->bad += compare(cpu, gpu, q, 64, 10, (int)(round % 3));
    for (i = 0; i < 64; i++) gpuir_query_destroy(q[i]);
  }
  gpuir_searcher_destroy(gpu);
  gpuir_searcher_destroy(cpu);
  return NULL;
}

/* `part` of the index's bytes as bound on device memory; 0: none. */
static void check_threads(const char *path, uint32_t vocabulary, double part) {
  gpuir_index *ix;
  gpuir_cuda *cuda;
  gpuir_cuda_desc desc;
  gpuir_cuda_info info;
  gpuir_index_info x;
  gpuir_error err;
  thread_work w[4];
  pthread_t id[4];
  const unsigned n = part > 0 ? 2 : 4;
  unsigned i, bad = 0;
  char what[160];
  if (gpuir_open(path, NULL, &ix, &err)) exit(1);
  memset(&desc, 0, sizeof desc);
  (void)gpuir_index_get_info(ix, &x);
  desc.memory = (uint64_t)((double)(x.docids_bytes + x.freqs_bytes + x.directory_bytes + 4 * x.documents) * part);
  if (gpuir_cuda_open(ix, &desc, &cuda, &err)) {
    printf("# %s\n", err.msg);
    report(0, "threads share a device");
    return;
  }
  for (i = 0; i < n; i++) {
    w[i].ix = ix;
    w[i].cuda = cuda;
    w[i].vocabulary = vocabulary;
    w[i].seed = i + 1;
    w[i].bad = 0;
    if (pthread_create(&id[i], NULL, thread_main, &w[i])) exit(1);
  }
  for (i = 0; i < n; i++) {
    (void)pthread_join(id[i], NULL);
    bad += w[i].bad;
  }
  gpuir_cuda_get_info(cuda, &info);
  if (part > 0) {
    (void)snprintf(what, sizeof what, "threads share a device with %g %% of the index", 100 * part);
    printf("# %llu bytes of %llu, %llu resident of %llu, %llu list look-ups hit, %llu missed, %llu launches\n",
        (unsigned long long)info.used_memory, (unsigned long long)desc.memory, (unsigned long long)info.resident_bytes,
        (unsigned long long)info.index_bytes, (unsigned long long)info.lists_hit, (unsigned long long)info.lists_missed,
        (unsigned long long)info.batches);
    bad += info.used_memory > desc.memory || info.resident_bytes > desc.memory || !info.resident_bytes ||
        !info.lists_missed || !info.lists_hit || info.resident_bytes >= info.index_bytes;
  } else {
    (void)snprintf(what, sizeof what, "threads share a device");
    bad += info.lists_missed != 0;
  }
  report(!bad, what);
  gpuir_cuda_close(cuda);
  gpuir_close(ix);
}

/* ---- calls that fail ---- */

extern long gpuir_cuda_seam_calls, gpuir_cuda_seam_fail;
extern int gpuir_cuda_seam_error;
extern float gpuir_cuda_seam_doubt[2]; /* of samples, of openings */

/* Lets each CUDA call of opening, attaching and searching fail in turn, by lack of memory and by a failed launch; of
 * several processes each takes some of the calls. */
static void check_failing_calls(const char *path, uint32_t vocabulary, int cached, unsigned stride) {
  static const int errors[] = {2, 719}; /* cudaErrorMemoryAllocation, cudaErrorLaunchFailure */
  const char *const what = cached ? "calls that fail, with a cache" : "calls that fail";
  gpuir_index *ix;
  gpuir_searcher *cpu;
  gpuir_error err;
  gpuir_cuda_desc desc;
  gpuir_query *q[8];
  unsigned bad = 0, error, i;
  unsigned long injected = 0, answered = 0, spared = 0;
  synth_rng r = {91};
  if (gpuir_open(path, NULL, &ix, &err) || gpuir_searcher_create(ix, NULL, &cpu, NULL)) exit(1);
  for (i = 0; i < 8; i++) q[i] = random_query(ix, vocabulary, &r, 1);
  memset(&desc, 0, sizeof desc);
  desc.batch = 4;
  if (cached) {
    uint64_t all, one = searcher_memory(ix, 1, &all);
    gpuir_index_info x;
    (void)gpuir_index_get_info(ix, &x);
    desc.memory = one + (x.docids_bytes + x.freqs_bytes + 4 * x.documents) * 3 / 4;
  }
  for (error = 0; error < 2 && !bad; error++) {
    unsigned turn;
    int clean = 0;
    for (turn = my_share - 1; !clean && !bad; turn += all_shares) {
      const long fail = 1 + (long)stride * turn;
      const int fallback = turn & 1;
      gpuir_cuda *cuda = NULL;
      gpuir_searcher *gpu;
      gpuir_hit a[80], b[80];
      uint32_t na[8], nb[8];
      int status, expected = error ? GPUIR_E_BACKEND : GPUIR_E_NOMEM;
      gpuir_cuda_seam_calls = 0;
      gpuir_cuda_seam_fail = fail;
      gpuir_cuda_seam_error = errors[error];
      if (gpuir_searcher_create(ix, NULL, &gpu, NULL)) exit(1);
      status = gpuir_cuda_open(ix, &desc, &cuda, &err);
      if (!status) status = gpuir_cuda_attach(gpu, cuda, fallback, &err);
      if (status) {
        bad += status != expected || err.code != expected || !err.msg[0] ||
            (cuda && !strcmp(gpuir_backend_name(gpu), "cuda"));
      } else {
        gpuir_searcher_info info;
        unsigned round;
        memset(&info, 0, sizeof info);
        if (gpuir_search_batch(cpu, (const gpuir_query *const *)q, 8, 10, a, na)) exit(1);
        for (round = 0; round < 2; round++) { /* the second one must be right whatever happened to the first */
          status = gpuir_search_batch(gpu, (const gpuir_query *const *)q, 8, 10, b, nb);
          if (!round) clean = gpuir_cuda_seam_calls < fail;
          gpuir_searcher_get_info(gpu, &info);
          if (!round && !clean && !fallback && status) {
            bad += status != expected;
          } else {
            spared += !round && !clean && !info.backend_failures; /* of the calls for a second launch's memory */
            bad += status != 0;
            for (i = 0; i < 8 && !status; i++)
              bad += na[i] != nb[i] || memcmp(a + 10 * i, b + 10 * i, na[i] * sizeof *a) != 0;
          }
          gpuir_cuda_seam_fail = 0;
        }
        answered += info.backend_failures;
        bad += info.backend_failures && (!fallback || clean);
      }
      injected += !clean;
      if (bad) printf("# call %ld, error %d, fallback %d: %s\n", fail, errors[error], fallback, err.msg);
      gpuir_cuda_seam_fail = 0;
      gpuir_searcher_destroy(gpu);
      gpuir_cuda_close(cuda);
    }
  }
  printf("# %lu failures injected, %lu queries answered by the CPU, %lu failures without consequence\n", injected,
      answered, spared);
  report(!bad && (injected > 2 || all_shares > 1) && (answered > 0 || stride * all_shares > 25) &&
          spared <= 2 * 25 / stride + 2,
      what);
  for (i = 0; i < 8; i++) gpuir_query_destroy(q[i]);
  gpuir_searcher_destroy(cpu);
  gpuir_close(ix);
}

/* ---- batches in flight ---- */

enum { PENDING = 700, PENDING_K = 10 };

static unsigned npending; /* queries of a batch, at most PENDING */

typedef struct pending {
  gpuir_batch_desc d;
  gpuir_batch *batch;
  gpuir_hit hits[PENDING * PENDING_K];
  uint32_t counts[PENDING];
  int statuses[PENDING];
} pending;

static int begin_pending(gpuir_searcher *s, gpuir_query **q, pending *f) {
  memset(f, 0, sizeof *f);
  f->d.queries = (const gpuir_query *const *)q;
  f->d.nq = npending;
  f->d.k = PENDING_K;
  f->d.hits = f->hits;
  f->d.counts = f->counts;
  f->d.statuses = f->statuses;
  return gpuir_search_begin(s, &f->d, &f->batch);
}

/* The number of queries whose hits differ from the CPU's, or which failed. */
static unsigned differing(const pending *f, const pending *cpu) {
  unsigned bad = 0, i;
  for (i = 0; i < npending; i++)
    bad += f->statuses[i] || f->counts[i] != cpu->counts[i] ||
        memcmp(f->hits + i * PENDING_K, cpu->hits + i * PENDING_K, f->counts[i] * sizeof *f->hits) != 0;
  return bad;
}

/* Launches of few queries, so that batches take several: in flight beside each other, finished in either order, of
 * which some queries are out of time or cancelled; a third is refused; a device that is lost while both are in flight;
 * a searcher that is destroyed. With several threads batches are large enough for all of them to plan, and half of the
 * queries have so many terms that those that one thread plans at once do not always fit. */
static void check_in_flight(const char *path, uint32_t vocabulary, unsigned threads) {
  static pending x, y, right;
  static const int yes = 1;
  gpuir_index *ix;
  gpuir_cuda *cuda;
  gpuir_cuda_desc desc;
  gpuir_searcher *s, *cpu;
  gpuir_query *q[PENDING];
  uint64_t deadlines[PENDING];
  const int *cancels[PENDING];
  gpuir_searcher_info info;
  gpuir_searcher_desc sd;
  gpuir_error err;
  synth_rng r = {23};
  unsigned i, bad = 0, order;
  int fallback;
  memset(&info, 0, sizeof info);
  if (gpuir_open(path, NULL, &ix, &err)) exit(1);
  memset(&desc, 0, sizeof desc);
  memset(&sd, 0, sizeof sd);
  desc.batch = threads > 1 ? 256 : 5;
  sd.threads = threads;
  npending = threads > 1 ? PENDING : 64;
  if (gpuir_cuda_open(ix, &desc, &cuda, &err) || gpuir_searcher_create(ix, NULL, &cpu, NULL)) exit(1);
  for (i = 0; i < npending; i++) {
    q[i] = random_query(ix, vocabulary, &r, 1);
    while (threads > 1 && i % 2 && q[i]->n < 10) {
      gpuir_query_destroy(q[i]);
      q[i] = random_query(ix, vocabulary, &r, 1);
    }
  }
  if (begin_pending(cpu, q, &right) || gpuir_search_finish(right.batch)) exit(1);
  for (fallback = 0; fallback < 2; fallback++) {
    if (gpuir_searcher_create(ix, &sd, &s, NULL) || gpuir_cuda_attach(s, cuda, fallback, &err)) exit(1);
    for (order = 0; order < 4; order++) {
      gpuir_batch *third;
      bad += begin_pending(s, q, &x) || begin_pending(s, q, &y);
      bad += gpuir_search_begin(s, &x.d, &third) != GPUIR_E_BUSY;
      while (order >= 2 && !gpuir_search_poll(order & 1 ? y.batch : x.batch)) {}
      bad += gpuir_search_finish(order & 1 ? y.batch : x.batch) != GPUIR_OK;
      bad += gpuir_search_finish(order & 1 ? x.batch : y.batch) != GPUIR_OK;
      bad += differing(&x, &right) + differing(&y, &right);
    }
    printf("# %u threads plan\n", threads);
    report(!bad, fallback ? "two batches in flight, with fallback" : "two batches in flight");
    memset(&x, 0, sizeof x);
    for (i = 0; i < npending; i++) {
      deadlines[i] = i % 4 == 1;
      cancels[i] = i % 4 == 2 ? &yes : NULL;
    }
    bad = begin_pending(s, q, &x) || gpuir_search_finish(x.batch); /* its descriptor, once more */
    x.d.deadlines = deadlines;
    x.d.cancels = cancels;
    bad += gpuir_search_begin(s, &x.d, &x.batch) || begin_pending(s, q, &y);
    bad += gpuir_search_finish(x.batch) != GPUIR_E_DEADLINE || gpuir_search_finish(y.batch) || differing(&y, &right);
    for (i = 0; i < npending; i++) {
      bad += x.statuses[i] != (i % 4 == 1 ? GPUIR_E_DEADLINE : i % 4 == 2 ? GPUIR_E_CANCELLED : GPUIR_OK);
      bad += i % 4 == 1 || i % 4 == 2 ? x.counts[i] != 0 : x.counts[i] != right.counts[i];
      if (i % 4 != 1 && i % 4 != 2) x.statuses[i] = 0;
    }
    report(!bad, "single queries that are out of time or cancelled");
    gpuir_searcher_get_info(s, &info);
    bad = info.backend_failures != 0;
    bad += begin_pending(s, q, &x) || begin_pending(s, q, &y);
    gpuir_cuda_seam_calls = 0;
    gpuir_cuda_seam_fail = 1; /* the next call: it waits for the first launch */
    gpuir_cuda_seam_error = 719;
    bad += gpuir_search_finish(x.batch) != (fallback ? GPUIR_OK : GPUIR_E_BACKEND);
    gpuir_cuda_seam_fail = 0;
    bad += gpuir_search_finish(y.batch) != GPUIR_OK || differing(&y, &right); /* it was only said to be lost */
    gpuir_searcher_get_info(s, &info);
    bad += fallback ? differing(&x, &right) || !info.backend_failures : !differing(&x, &right);
    report(!bad,
        fallback ? "a launch is lost in flight, and the CPU answers its queries" : "a launch is lost in flight");
    bad = begin_pending(s, q, &x) || begin_pending(s, q, &y);
    gpuir_searcher_destroy(s); /* waits for both */
    report(!bad, "a searcher is destroyed with batches in flight");
    bad = 0;
  }
  for (i = 0; i < npending; i++) gpuir_query_destroy(q[i]);
  gpuir_searcher_destroy(cpu);
  gpuir_cuda_close(cuda);
  gpuir_close(ix);
}

/* A query whose lists the bound cannot hold at once is refused, or answered by the CPU. */
static void check_too_large(const char *path, uint32_t vocabulary) {
  gpuir_index *ix;
  gpuir_cuda *cuda;
  gpuir_cuda_desc desc;
  gpuir_searcher *s, *cpu;
  gpuir_query *q;
  gpuir_error err;
  gpuir_hit hits[10];
  char text[64 * 8];
  size_t at = 0, n;
  uint64_t all;
  uint32_t i;
  int fallback;
  if (gpuir_open(path, NULL, &ix, &err) || gpuir_searcher_create(ix, NULL, &cpu, NULL)) exit(1);
  for (i = 0; i < 60 && i < vocabulary; i++) at += (size_t)snprintf(text + at, sizeof text - at, "t%u ", (unsigned)i);
  memset(&desc, 0, sizeof desc);
  desc.memory = searcher_memory(ix, 1, &all) + 4 * gpuir__only(ix)->stat.documents + 100 * 1024;
  if (gpuir_query_parse(ix, NULL, text, at, &q, &err) || gpuir_cuda_open(ix, &desc, &cuda, &err)) exit(1);
  for (fallback = 0; fallback < 2; fallback++) {
    int status;
    if (gpuir_searcher_create(ix, NULL, &s, NULL) || gpuir_cuda_attach(s, cuda, fallback, &err)) exit(1);
    status = gpuir_search(s, q, hits, 10, &n);
    report(fallback ? !status && !compare(cpu, s, &q, 1, 10, TOGETHER) : status == GPUIR_E_NOMEM,
        fallback ? "the CPU answers a query that is too large for the cache"
                 : "a query that is too large for the cache is refused");
    gpuir_searcher_destroy(s);
  }
  gpuir_query_destroy(q);
  gpuir_searcher_destroy(cpu);
  gpuir_cuda_close(cuda);
  gpuir_close(ix);
}

/* Time limits, cancelling, and launches limited by postings. */
static void check_limits(const char *path, uint32_t vocabulary) {
  gpuir_index *ix;
  gpuir_cuda *cuda;
  gpuir_cuda_desc desc;
  gpuir_cuda_info before, after;
  gpuir_searcher_desc sd;
  gpuir_searcher *s, *cpu;
  gpuir_query *q[64];
  gpuir_hit *hits = (gpuir_hit *)calloc(640, sizeof *hits);
  gpuir_error err;
  uint32_t counts[64];
  int cancel = 0;
  unsigned i, with_lists = 0;
  synth_rng r = {17};
  if (gpuir_open(path, NULL, &ix, &err)) exit(1);
  memset(&desc, 0, sizeof desc);
  memset(&sd, 0, sizeof sd);
  desc.threshold = 1;
  sd.cancel = &cancel;
  if (gpuir_cuda_open(ix, &desc, &cuda, &err) || gpuir_searcher_create(ix, &sd, &s, NULL) ||
      gpuir_searcher_create(ix, NULL, &cpu, NULL) || gpuir_cuda_attach(s, cuda, 1, &err))
    exit(1);
  for (i = 0; i < 64; i++) {
    unsigned t;
    q[i] = random_query(ix, vocabulary, &r, 0);
    for (t = 0; t < q[i]->n && (q[i]->terms[t].negated || !q[i]->terms[t].df); t++) {}
    with_lists += t < q[i]->n && (q[i]->mode != GPUIR_AND || !q[i]->nunknown);
  }
  gpuir_cuda_get_info(cuda, &before);
  i = compare(cpu, s, q, 64, 10, TOGETHER);
  gpuir_cuda_get_info(cuda, &after);
  report(!i && after.batches - before.batches == with_lists && after.queries - before.queries == 64,
      "a threshold of one posting makes each query that can have hits a launch");
  gpuir_searcher_set_timeout(s, 1);
  report(gpuir_search_batch(s, (const gpuir_query *const *)q, 64, 10, hits, counts) == GPUIR_E_DEADLINE,
      "the time limit ends a batch between launches, without the CPU taking over");
  gpuir_searcher_set_timeout(s, 0);
  cancel = 1;
  report(gpuir_search_batch(s, (const gpuir_query *const *)q, 64, 10, hits, counts) == GPUIR_E_CANCELLED,
      "a cancelled batch ends, without the CPU taking over");
  cancel = 0;
  report(!compare(cpu, s, q, 64, 10, TOGETHER), "afterwards it is right again");
  for (i = 0; i < 64; i++) gpuir_query_destroy(q[i]);
  gpuir_searcher_destroy(s);
  gpuir_searcher_destroy(cpu);
  gpuir_cuda_close(cuda);
  gpuir_close(ix);
  free(hits);
}

static void check_errors(const char *path) {
  gpuir_index *ix;
  gpuir_cuda *cuda = NULL;
  gpuir_cuda_desc desc;
  gpuir_error err;
  gpuir_searcher *s;
  gpuir_query *q;
  gpuir_searcher_info info;
  gpuir_hit *hits = (gpuir_hit *)calloc(20000, sizeof *hits);
  size_t n;
  if (gpuir_open(path, NULL, &ix, &err)) exit(1);
  memset(&info, 0, sizeof info);
  memset(&desc, 0, sizeof desc);
  memset(&info, 0, sizeof info);
  desc.memory = 4096;
  report(gpuir_cuda_open(ix, &desc, &cuda, &err) == GPUIR_E_NOMEM && !cuda, "too small a memory bound is refused");
  {
    uint64_t all, one = searcher_memory(ix, 1, &all);
    int refused = 1;
    desc.memory = one + 70 * 1024 + 4 * gpuir__only(ix)->stat.documents; /* for a list or two, and one searcher */
    if (!gpuir_cuda_open(ix, &desc, &cuda, &err)) {
      gpuir_searcher *many[64];
      unsigned i = 0;
      int status = GPUIR_OK;
      for (; i < 64 && !status; i++) {
        if (gpuir_searcher_create(ix, NULL, &many[i], NULL)) exit(1);
        status = gpuir_cuda_attach(many[i], cuda, 0, &err);
      }
      refused = status == GPUIR_E_NOMEM && i > 1;
      while (i) gpuir_searcher_destroy(many[--i]);
      gpuir_cuda_close(cuda);
    }
    report(refused, "a searcher for which the bound leaves no memory is refused");
  }
  desc.memory = 0;
  desc.device = 99;
  report(gpuir_cuda_open(ix, &desc, &cuda, &err) == GPUIR_E_BACKEND && !cuda, "a device that is not there is refused");
  if (gpuir_cuda_open(ix, NULL, &cuda, &err) || gpuir_searcher_create(ix, NULL, &s, NULL) ||
      gpuir_query_parse(ix, NULL, "t1", 2, &q, &err))
    exit(1);
  report(gpuir_cuda_attach(s, cuda, 1, &err) == GPUIR_OK && !strcmp(gpuir_backend_name(s), "cuda"), "attached");
  (void)gpuir_search(s, q, hits, 20000, &n);
  memset(&info, 0, sizeof info);
  gpuir_searcher_get_info(s, &info);
  report(n == gpuir__min32(20000, q->terms[0].df) &&
          (info.backend_failures == 1 || gpuir__only(ix)->stat.documents <= 10000),
      "the CPU answers a k that is too large");
  gpuir_query_destroy(q);
  gpuir_searcher_destroy(s);
  gpuir_cuda_close(cuda);
  gpuir_close(ix);
  free(hits);
}

/* Damaged indexes may give any hits, but no fault of the device, which would be an error from then on. */
static void check_damage(const char *path, uint32_t vocabulary, unsigned rounds) {
  char copy[80];
  unsigned round, i, opened = 0, faults = 0;
  (void)snprintf(copy, sizeof copy, "%s.damaged", path);
  for (round = 0; round < rounds; round++) {
    synth_rng r = {1000u + round};
    gpuir_index *ix;
    gpuir_cuda *cuda;
    gpuir_cuda_desc desc;
    gpuir_error err;
    FILE *in = fopen(path, "rb"), *out = fopen(copy, "wb");
    uint8_t *bytes;
    long n;
    int status;
    if (!in || !out) exit(1);
    (void)fseek(in, 0, SEEK_END);
    n = ftell(in);
    rewind(in);
    bytes = (uint8_t *)malloc((size_t)n);
    if (!bytes || fread(bytes, 1, (size_t)n, in) != (size_t)n) exit(1);
    for (i = 0; i < 1u << (round % 12); i++) { /* behind the header, the section table and the counts */
      uint32_t at = 2048 + synth_below(&r, (uint32_t)n - 2048);
      bytes[at] = synth_below(&r, 2) ? (uint8_t)synth_next(&r) : 255;
    }
    (void)fwrite(bytes, 1, (size_t)n, out);
    (void)fclose(in);
    (void)fclose(out);
    free(bytes);
    if (gpuir_open(copy, NULL, &ix, &err)) continue;
    memset(&desc, 0, sizeof desc);
    desc.batch = 64;
    if (round & 1) {
      gpuir_cuda_info info;
      if (!gpuir_cuda_open(ix, &desc, &cuda, &err)) {
        gpuir_cuda_get_info(cuda, &info);
        gpuir_cuda_close(cuda);
        /* not expanded, or not whole */
        desc.memory = round & 2 ? info.index_bytes + (6u << 20) : info.index_bytes / 2 + (3300u << 10);
      }
    }
    status = gpuir_cuda_open(ix, &desc, &cuda, &err);
    if (!status) {
      gpuir_searcher *s;
      gpuir_hit hits[64 * 10];
      uint32_t counts[64];
      gpuir_query *q[64];
      gpuir_searcher_desc sd;
      unsigned nq = 0, tries;
      opened++;
      memset(&sd, 0, sizeof sd);
      sd.evaluator = (int)(round / 4 % 2);
      if (gpuir_searcher_create(ix, &sd, &s, NULL) || gpuir_cuda_attach(s, cuda, 0, &err)) exit(1);
      for (tries = 0; nq < 64 && tries < 1000; tries++) {
        char text[64];
        gpuir_query_desc qd;
        int len = snprintf(text, sizeof text, "t%u t%u t%u", (unsigned)synth_below(&r, vocabulary),
            (unsigned)synth_below(&r, vocabulary), (unsigned)synth_below(&r, vocabulary));
        memset(&qd, 0, sizeof qd);
        qd.mode = (int)(tries % 3);
        if (!gpuir_query_parse(ix, &qd, text, (size_t)len, &q[nq], &err)) nq++;
      }
      for (i = 0; i < nq; i++) { /* one by one: a list that is refused must not hide the others */
        size_t got;
        status = gpuir_search(s, q[i], hits, 10, &got);
        faults += status == GPUIR_E_BACKEND;
        while (!status && got) faults += hits[--got].docid >= gpuir__only(ix)->stat.documents;
      }
      (void)gpuir_search_batch(s, (const gpuir_query *const *)q, nq, 10, hits, counts);
      for (i = 0; i < nq; i++) gpuir_query_destroy(q[i]);
      gpuir_searcher_destroy(s);
      gpuir_cuda_close(cuda);
    } else {
      faults += status == GPUIR_E_BACKEND;
    }
    gpuir_close(ix);
  }
  (void)unlink(copy);
  printf("# %u of %u damaged indexes were searched\n", opened, rounds);
  report(!faults, "damaged indexes cause no fault");
}

/* Bytes of the device that an index takes. */
static uint64_t memory_used(const char *path) {
  gpuir_index *ix;
  gpuir_cuda *cuda;
  gpuir_cuda_info info;
  gpuir_error err;
  if (gpuir_open(path, NULL, &ix, &err) || gpuir_cuda_open(ix, NULL, &cuda, &err)) {
    printf("# %s: %s\n", path, err.msg);
    exit(1);
  }
  gpuir_cuda_get_info(cuda, &info);
  gpuir_cuda_close(cuda);
  gpuir_close(ix);
  return info.used_memory;
}

/* Each second block of the lists ends at the first document, the others at the last one: going through all documents
 * for each of those would take for ever in a large index, so that nothing is expanded. */
static void check_wild_blocks(const char *path) {
  char copy[80];
  gpuir_index *ix;
  gpuir_error err;
  uint32_t *last;
  uint64_t i;
  FILE *out;
  (void)snprintf(copy, sizeof copy, "%s.wild", path);
  if (gpuir_open(path, NULL, &ix, &err)) exit(1);
  last = (uint32_t *)malloc(gpuir__only(ix)->stat.blocks * 4);
  out = fopen(copy, "wb");
  if (!last || !out ||
      fwrite(gpuir__only(ix)->map, 1, (size_t)gpuir__only(ix)->size, out) != (size_t)gpuir__only(ix)->size)
    exit(1);
  for (i = 0; i < gpuir__only(ix)->stat.blocks; i++)
    last[i] = i % 2 ? (uint32_t)gpuir__only(ix)->stat.documents - 1 : 0;
  (void)fseek(out, (long)((const char *)gpuir__only(ix)->lists.last - (const char *)gpuir__only(ix)->map), SEEK_SET);
  (void)fwrite(last, 4, (size_t)gpuir__only(ix)->stat.blocks, out);
  (void)fclose(out);
  free(last);
  gpuir_close(ix);
  report(memory_used(copy) < memory_used(path), "blocks that end at the first and last document are not expanded");
  (void)unlink(copy);
}

/* ---- codecs ---- */

/* One way of opening an index, both evaluators. Returns the number of differences. */
static unsigned compare_all(gpuir_index *ix, gpuir_cuda *cuda, uint32_t vocabulary, unsigned nq) {
  static const size_t ks[] = {1, 10, 1000};
  gpuir_query *q[64];
  unsigned bad = 0, i, k;
  int evaluator;
  for (evaluator = 0; evaluator < 2; evaluator++) {
    gpuir_searcher_desc sd;
    gpuir_searcher *cpu, *gpu;
    gpuir_error err;
    synth_rng r = {7u + (unsigned)evaluator};
    memset(&sd, 0, sizeof sd);
    if (gpuir_searcher_create(ix, &sd, &cpu, NULL)) exit(1);
    sd.evaluator = evaluator;
    if (gpuir_searcher_create(ix, &sd, &gpu, NULL)) exit(1);
    if (gpuir_cuda_attach(gpu, cuda, 0, &err)) {
      printf("# attach: %s\n", err.msg);
      bad++;
    } else {
      for (k = 0; k < 3; k++) {
        for (i = 0; i < nq; i++) q[i] = random_query(ix, vocabulary, &r, 1);
        bad += compare(cpu, gpu, q, nq, ks[k], TOGETHER);
        bad += compare(cpu, gpu, q, nq / 2, ks[k], IN_FLIGHT);
        bad += compare(cpu, gpu, q, nq / 8, ks[k], SINGLE);
        for (i = 0; i < nq; i++) gpuir_query_destroy(q[i]);
      }
    }
    gpuir_searcher_destroy(cpu);
    gpuir_searcher_destroy(gpu);
  }
  return bad;
}

/* Makes the exceptions of a block of frequencies unreadable, if it has any: their width is 0, more than 32 less the low
 * bits, or so much that not all high parts lie in the stream. Returns 1 if it did. */
static unsigned spoil_exceptions(const gpuir_index *ix, const gpuir__long *list, uint32_t block, uint32_t count,
    uint8_t *bytes) {
  const uint64_t g = (uint64_t)list->first_block + block;
  const uint8_t *stream = gpuir__only(ix)->lists.freqs + list->freqs, *low;
  gpuir__bp128_view view;
  uint64_t left;
  unsigned b, marks;
  uint8_t *h;
  low = gpuir__bp128_low(stream, list->freqs_len, (uint64_t)gpuir__only(ix)->lists.freqs_off[g] * 4,
      gpuir__only(ix)->lists.freqs_width[g], count, &b, &left);
  if (!left || !gpuir__bp128_open(low, b, left, count, &view)) return 0;
  h = bytes + (view.high - 1 - gpuir__only(ix)->map);
  marks = gpuir__popcount64(view.marks[0]) + gpuir__popcount64(view.marks[1]);
  if (marks * (32 - b) > 8 * (left - (count + 7) / 8 - 1)) *h = (uint8_t)(32 - b);
  else *h = (uint8_t)(g % 2 ? 0 : 33 - b);
  return 1;
}

/* Exceptions that cannot be read are none, for the CPU and in every way that the device decodes: expanded, in place,
 * cached, and value by value. */
static void check_spoilt(const char *path, uint32_t vocabulary, unsigned nq) {
  char copy[80];
  uint8_t *bytes;
  gpuir_index *ix;
  gpuir_cuda *cuda;
  gpuir_cuda_desc desc;
  gpuir_cuda_info info;
  gpuir_error err;
  unsigned spoilt = 0, bad = 0, way;
  uint64_t id;
  FILE *out;
  (void)snprintf(copy, sizeof copy, "%s.spoilt", path);
  if (gpuir_open(path, NULL, &ix, &err)) exit(1);
  bytes = (uint8_t *)malloc((size_t)gpuir__only(ix)->size);
  out = fopen(copy, "wb");
  if (!bytes || !out) exit(1);
  memcpy(bytes, gpuir__only(ix)->map, (size_t)gpuir__only(ix)->size);
  for (id = 0; id < gpuir__only(ix)->stat.terms; id++) {
    gpuir__list l;
    uint32_t block;
    if (gpuir__list_open(gpuir__only(ix), &ix->a, id, &l)) exit(1);
    if (!l.extent) continue;
    for (block = 0; block < l.nblocks; block++)
      spoilt += spoil_exceptions(ix, l.extent, block, gpuir__block_count(l.df, block), bytes);
    ((gpuir__long *)(void *)(bytes + ((const uint8_t *)l.extent - gpuir__only(ix)->map)))->seeds =
        0; /* they would be too high */
  }
  if (fwrite(bytes, 1, (size_t)gpuir__only(ix)->size, out) != (size_t)gpuir__only(ix)->size) exit(1);
  (void)fclose(out);
  free(bytes);
  gpuir_close(ix);
  if (gpuir_open(copy, NULL, &ix, &err)) exit(1);
  memset(&desc, 0, sizeof desc);
  for (way = 0; way < 3; way++) {
    if (gpuir_cuda_open(ix, &desc, &cuda, &err)) {
      printf("# %s\n", err.msg);
      bad++;
      break;
    }
    bad += compare_all(ix, cuda, vocabulary, nq);
    gpuir_cuda_get_info(cuda, &info);
    gpuir_cuda_close(cuda);
    desc.batch = 64;
    desc.memory = way ? info.index_bytes / 2 + (3300u << 10) : info.index_bytes + (6u << 20);
  }
  gpuir_close(ix);
  (void)unlink(copy);
  printf("# the exceptions of %u blocks cannot be read\n", spoilt);
  report(spoilt && !bad, "exceptions that cannot be read are none");
}

static unsigned grown; /* indexes that were to be whole on the device, but did not fit as bp128 */

/* An index in the codecs that are set: whole on the device, a tenth of it at a time, and, if as bp128 it is larger,
 * in room for what it takes as it is. *bytes: what it takes on the device as bp128, which is the first to be asked for;
 * the others must become as small. */
static void check_codec(const shape *s, const char *path, unsigned nq, uint64_t *bytes) {
  gpuir_index *ix;
  gpuir_cuda *cuda;
  gpuir_cuda_desc desc;
  gpuir_cuda_info info;
  gpuir_index_info x;
  gpuir_error err;
  uint64_t all, one, padding, coded = 0;
  uint32_t vocabulary;
  unsigned bad = 0, way;
  char what[160];
  build(s, path);
  vocabulary = s->documents ? s->vocabulary : real_name(path);
  if (gpuir_open(path, NULL, &ix, &err) || gpuir_verify(ix, &err)) {
    printf("Bail out! %s\n", err.msg);
    exit(1);
  }
  (void)gpuir_index_get_info(ix, &x);
  padding = 64 * x.terms + 4096;
  memset(&desc, 0, sizeof desc);
  desc.batch = 64;
  for (way = 0; way < 3; way++) {
    if (way && *bytes < (600u << 10)) break;
    if (way == 1) {
      desc.batch = 8;
      one = searcher_memory(ix, 8, &all);
      desc.memory = one + 4 * x.documents + *bytes / 10;
    } else if (way) {
      if (coded + padding >= *bytes) break;
      desc.memory = searcher_memory(ix, 1, &all) + coded + 17 * 1024; /* 16: what opening sets aside */
      grown++;
    }
    if (gpuir_cuda_open(ix, &desc, &cuda, &err)) {
      printf("# %s\n", err.msg);
      bad++;
      break;
    }
    most_terms = way ? 4 : 40;
    bad += compare_all(ix, cuda, vocabulary, nq);
    most_terms = 40;
    gpuir_cuda_get_info(cuda, &info);
    if (!way && !*bytes) *bytes = info.index_bytes;
    if (way == 1) coded = info.index_bytes;
    if (!way) bad += info.index_bytes > *bytes + padding || info.index_bytes + padding < *bytes;
    bad += way ? !info.lists_missed || info.used_memory > desc.memory : info.lists_missed != 0;
    if (bad)
      printf("# way %u: %llu bytes of %llu, %llu resident of %llu (bp128: %llu), %llu hit, %llu missed\n", way,
          (unsigned long long)info.used_memory, (unsigned long long)desc.memory,
          (unsigned long long)info.resident_bytes, (unsigned long long)info.index_bytes, (unsigned long long)*bytes,
          (unsigned long long)info.lists_hit, (unsigned long long)info.lists_missed);
    gpuir_cuda_close(cuda);
  }
  gpuir_close(ix);
  (void)real_name(NULL);
  (void)snprintf(what, sizeof what, "%s in %s and %s equal the CPU, whole%s", s->name, codec, freq_codec,
      way < 2       ? ""
          : way < 3 ? " and cached"
                    : ", cached, and cached for want of room as bp128");
  report(!bad, what);
}

/* Every codec of docIDs with every codec of frequencies; quick: each with one. */
static void check_codecs(const char *path, int quick) {
  static const char *const docs[] = {"bp128", "vbyte", "pfd", "newpfd", "optpfd", "ef", "qs", "rice", "pfd-list",
      "pfd-list:0", "pfd-list:4", "parapfor", "lrc", "lrcseg", "seglrc", "hslrc", "hslrc:32", "lrc:64,min", "auto"};
  static const char *const freqs[] = {"bp128", "vbyte", "newpfd", "optpfd", "auto"};
  shape small = {"a small index", 3000, 300, 40, 0, 2, 0}, medium = {"a medium index", 40000, 500, 80, 0, 1.5, 0};
  uint64_t small_bytes = 0, medium_bytes = 0, real_bytes = 0;
  unsigned d, f;
  if (quick) small.documents = 1000;
  for (d = 0; d < sizeof docs / sizeof docs[0]; d++)
    for (f = 0; f < 5; f++) {
      if ((quick && d % 5 != f) || !is_mine()) continue;
      codec = docs[d];
      freq_codec = freqs[f];
      check_codec(&small, path, quick ? 8 : 64, &small_bytes);
      if (d % 5 == f) check_damage(path, small.vocabulary, quick ? 1 : 6);
      if (quick) continue;
      check_codec(&wordnet, path, 64, &real_bytes);
      check_codec(&medium, path, 64, &medium_bytes);
      if (d % 5 == f) check_damage(path, medium.vocabulary, 10);
      if (strcmp(codec, "pfd-list") != 0 || f != 2) continue;
      check_failing_calls(path, medium.vocabulary, 0, 5);
      check_failing_calls(path, medium.vocabulary, 1, 31);
    }
  codec = freq_codec = NULL;
  if (!quick) report(grown > 0, "some indexes fit as they are, but not as bp128");
}

/* What is held with one index alone: calls that fail, by all processes, and steps that take long. */
static void check_much(const char *path, uint32_t vocabulary, int quick) {
  check_failing_calls(path, vocabulary, 0, quick ? 29 : 5);
  check_failing_calls(path, vocabulary, 1, quick ? 97 : 31);
  if (is_mine()) check_limits(path, vocabulary);
  if (is_mine()) check_in_flight(path, vocabulary, 1);
  if (is_mine()) check_in_flight(path, vocabulary, 4);
  if (!quick && is_mine()) check_too_large(path, vocabulary);
  if (is_mine()) check_spoilt(path, vocabulary, quick ? 8 : 64);
}

/* Collections by way of the builder. */
static void check_shapes(const char *path, int quick) {
  static const shape shapes[] = {
      {"one document", 1, 3, 3, 0, 1, 0},
      {"a few documents", 50, 20, 10, 0, 1, 0},
      {"ties", 30000, 40, 12, 1, 1, 0},
      {"dense lists", 20000, 12, 10, 0, 1, 0},
      {"Zipf", 60000, 4000, 60, 0, 4, 0},
      {"runs", 60000, 400, 30, 0, 4, 1},
  };
  unsigned i;
  for (i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    shape s = shapes[i];
    const int mine = is_mine();
    if (quick && s.documents > 4000) s.documents = 4000;
    if (mine || i == 4) build(&s, path);
    if (i == 4) check_much(path, s.vocabulary, quick);
    if (!mine) continue;
    check(s.name, path, s.vocabulary + 1, quick ? 8 : 400, quick);
    if (!quick && (i == 2 || i == 4)) check_threads(path, s.vocabulary, 0);
    if (i >= 2) check_damage(path, s.vocabulary, quick ? 2 : 25);
    if (i == 2 && !quick) check_wild_blocks(path);
    if (i == 2 && !quick) check_errors(path);
  }
}

/* Real text. */
static void check_index(const char *name, const char *path, int quick) {
  check(name, path, real_name(path), quick ? 8 : 400, quick);
  (void)real_name(NULL);
}

/* An index on a device, and what searches it there and here. */
typedef struct beside {
  gpuir_index *ix;
  gpuir_cuda *cuda;
  gpuir_searcher *cpu, *gpu;
} beside;

static void open_beside(beside *x, const char *path, const gpuir_cuda_desc *desc) {
  gpuir_error err;
  if (gpuir_open(path, NULL, &x->ix, &err) || gpuir_cuda_open(x->ix, desc, &x->cuda, &err) ||
      gpuir_searcher_create(x->ix, NULL, &x->cpu, NULL) || gpuir_searcher_create(x->ix, NULL, &x->gpu, NULL) ||
      gpuir_cuda_attach(x->gpu, x->cuda, 0, &err)) {
    printf("Bail out! %s\n", err.msg);
    exit(1);
  }
}

static void close_beside(beside *x) {
  gpuir_searcher_destroy(x->cpu);
  gpuir_searcher_destroy(x->gpu);
  gpuir_cuda_close(x->cuda);
  gpuir_close(x->ix);
}

/* Guesses of the k-th score that are too high: the queries are run again, and their hits are right all the same. */
static void check_guesses(const char *path, uint32_t vocabulary, unsigned n) {
  static const size_t ks[] = {10, 300};
  const float doubt = gpuir_cuda_seam_doubt[0];
  beside x;
  gpuir_query *q[300]; /* n at most */
  synth_rng r = {4711};
  unsigned bad = 0, i, high;
  open_beside(&x, path, NULL);
  for (i = 0; i < n; i++) q[i] = random_query(x.ix, vocabulary, &r, 0);
  for (i = 0; i < sizeof ks / sizeof ks[0]; i++) {
    long calls[4];
    for (high = 0; high < 4; high++) {
      gpuir_cuda_seam_doubt[0] = high & 1 ? -1000.0f : doubt;
      gpuir_cuda_seam_doubt[1] = high & 2 ? -1000.0f : doubt;
      gpuir_cuda_seam_calls = 0;
      bad += compare(x.cpu, x.gpu, q, n, ks[i], TOGETHER);
      calls[high] = gpuir_cuda_seam_calls;
      bad += compare(x.cpu, x.gpu, q, n, ks[i], SINGLE);
    }
    for (high = 1; high < 4; high++) bad += calls[high] <= calls[0]; /* another run needs more calls */
  }
  gpuir_cuda_seam_doubt[0] = gpuir_cuda_seam_doubt[1] = doubt;
  report(!bad, "guesses that are too high are noticed");
  for (i = 0; i < n; i++) gpuir_query_destroy(q[i]);
  close_beside(&x);
}

extern long gpuir_cuda_seam_prompts;

/* ANDs alone, of which one cluster answers those whose driver is short, unless they have too many candidates. */
static void check_prompt(const char *name, const char *path, uint32_t vocabulary, unsigned n) {
  static const size_t ks[] = {1, 10, 128, 129};
  beside x;
  gpuir_cuda_info info;
  gpuir_query *q[300]; /* n at most */
  synth_rng r = {81};
  unsigned bad = 0, i;
  char what[160];
  open_beside(&x, path, NULL);
  gpuir_cuda_get_info(x.cuda, &info);
  for (i = 0; i < n;) {
    q[i] = random_query(x.ix, vocabulary, &r, 0);
    if (q[i]->mode == GPUIR_AND) i++;
    else gpuir_query_destroy(q[i]);
  }
  for (i = 0; i < sizeof ks / sizeof ks[0]; i++) {
    gpuir_cuda_seam_prompts = 0;
    bad += compare(x.cpu, x.gpu, q, n, ks[i], SINGLE);
    bad += (gpuir_cuda_seam_prompts > 0) != (ks[i] <= 128 && info.compute_capability >= 90);
  }
  (void)snprintf(what, sizeof what, "ANDs alone with short drivers: %s", name);
  report(!bad, what);
  for (i = 0; i < n; i++) gpuir_query_destroy(q[i]);
  close_beside(&x);
}

extern int gpuir_cuda_seam_looks;
extern uint64_t gpuir_cuda_seam_left;

/* What a launch left among its candidates would raise floors of the next one. None does, also where ANDs lose
 * candidates, run again and spare their ORs. */
static void check_left(const char *path) {
  static const shape dense = {"", 100000, 4, 3, 1, 1, 0}; /* any two or three terms share 9,000 documents alike */
  static const size_t ks[] = {10, 1000};
  gpuir_cuda_desc desc;
  gpuir_query *q[64];
  beside x;
  synth_rng r = {19};
  unsigned bad = 0, i;
  int how;
  build_shape(&dense, path);
  memset(&desc, 0, sizeof desc);
  desc.batch = sizeof q / sizeof q[0]; /* room for 8,192 candidates of each job */
  open_beside(&x, path, &desc);
  for (i = 0; i < sizeof q / sizeof q[0];) {
    q[i] = random_query(x.ix, dense.vocabulary, &r, 1);
    if (q[i]->mode == GPUIR_ANDOR) i++;
    else gpuir_query_destroy(q[i]);
  }
  gpuir_cuda_seam_looks = 1;
  gpuir_cuda_seam_left = 0;
  for (i = 0; i < sizeof ks / sizeof ks[0]; i++)
    for (how = TOGETHER; how <= IN_FLIGHT; how++) bad += compare(x.cpu, x.gpu, q, sizeof q / sizeof q[0], ks[i], how);
  if (gpuir_cuda_seam_left) printf("# %llu candidates\n", (unsigned long long)gpuir_cuda_seam_left);
  report(!bad && !gpuir_cuda_seam_left, "a launch leaves no candidates");
  gpuir_cuda_seam_looks = 0;
  for (i = 0; i < sizeof q / sizeof q[0]; i++) gpuir_query_destroy(q[i]);
  close_beside(&x);
}

/* Builds documents that hold t0, fifty of them several times, and some t1. */
static void build_alike(const char *path) {
  gpuir_builder_desc desc;
  gpuir_builder *b;
  gpuir_error err;
  uint32_t d;
  int status;
  memset(&desc, 0, sizeof desc);
  desc.path = path;
  status = gpuir_builder_create(&desc, &b, &err);
  for (d = 0; d < 100000 && !status; d++) {
    const gpuir_term_freq terms[] = {{"t0", 2, d % 2000 == 7 ? 5 : 1}, {"t1", 2, 1}};
    status = gpuir_builder_add_terms(b, NULL, terms, d % 5000 == 11 ? 2 : 1, &err);
  }
  if (!status) status = gpuir_builder_write(b, NULL, &err);
  gpuir_builder_destroy(b);
  if (status) {
    printf("Bail out! %s\n", err.msg);
    exit(1);
  }
}

/* A guess that is too high is noticed, too, where candidates are lost: most documents share one score, and the opening
 * alone has more of them than there is room for. */
static void check_lost(const char *path) {
  const float doubt[2] = {gpuir_cuda_seam_doubt[0], gpuir_cuda_seam_doubt[1]};
  gpuir_cuda_desc desc;
  gpuir_query_desc qd;
  gpuir_query *q[64];
  gpuir_error err;
  beside x;
  unsigned bad = 0, i;
  build_alike(path);
  memset(&desc, 0, sizeof desc);
  memset(&qd, 0, sizeof qd);
  desc.batch = sizeof q / sizeof q[0];
  open_beside(&x, path, &desc);
  qd.mode = GPUIR_ANDOR; /* two jobs each: room for 8,192 candidates */
  for (i = 0; i < sizeof q / sizeof q[0]; i++)
    if (gpuir_query_parse(x.ix, &qd, "t0 t1", 5, &q[i], &err)) printf("# %s\n", err.msg);
  gpuir_cuda_seam_doubt[0] = 1000;
  gpuir_cuda_seam_doubt[1] = -1000;
  bad += compare(x.cpu, x.gpu, q, sizeof q / sizeof q[0], 300, TOGETHER);
  gpuir_cuda_seam_doubt[0] = doubt[0];
  gpuir_cuda_seam_doubt[1] = doubt[1];
  report(!bad, "guesses that are too high are noticed where candidates are lost");
  for (i = 0; i < sizeof q / sizeof q[0]; i++) gpuir_query_destroy(q[i]);
  close_beside(&x);
}

/* Large ranges of docIDs. */
static void check_ranges(const char *path, int quick) {
  static const shape crowded = {"", 4000, 3, 6, 1, 1, 0};
  const unsigned prompts = quick ? 60 : 300;
  gpuir_error err;
  synth_desc d;
  memset(&d, 0, sizeof d);
  d.documents = quick ? 300000 : 3000000;
  d.terms = 300;
  d.queries = 1000;
  d.zipf = 14; /* from half of the documents (quick: a sixteenth) to a few of them */
  d.postings = (quick ? 0.1 : 0.7) * d.documents;
  d.threads = 8;
  d.seed = 5;
  if (synth_generate(&d, path, &err)) printf("# %s\n", err.msg);
  if (is_mine()) check("a large docID range", path, d.terms, quick ? 8 : 300, quick);
  if (is_mine()) check_guesses(path, d.terms, quick ? 40 : 100);
  if (is_mine()) check_prompt("lists of all lengths", path, d.terms, prompts);
  d.clustering = 0.8;
  d.seed = 6;
  if (synth_generate(&d, path, &err)) printf("# %s\n", err.msg);
  if (is_mine()) check("clustered docIDs", path, d.terms, quick ? 8 : 300, quick);
  if (is_mine()) check_prompt("clustered docIDs", path, d.terms, prompts);
  build_shape(&crowded, path);
  if (is_mine()) check_prompt("more candidates than there is room for", path, crowded.vocabulary, prompts);
  if (is_mine()) check_left(path);
  if (is_mine()) check_lost(path);
  if (quick) return;
  d.documents = 2000000; /* a cache of a tenth */
  d.terms = 4000;
  d.zipf = 2;
  d.clustering = 0;
  if (synth_generate(&d, path, &err)) printf("# %s\n", err.msg);
  most_terms = 4;
  check_threads(path, d.terms, 0.1);
  most_terms = 40;
}

/* ---- phrases ---- */

/* Writes an index with positions, in these codecs. */
static void phrase_build(const char *path, unsigned documents, const char *docids, const char *freqs) {
  static char text[1 << 18];
  gpuir_builder_desc desc;
  gpuir_builder *b;
  gpuir_error err;
  synth_rng r = {91};
  unsigned d;
  int status;
  memset(&desc, 0, sizeof desc);
  desc.path = path;
  desc.codec = docids;
  desc.freq_codec = freqs;
  desc.positions = 1;
  status = gpuir_builder_create(&desc, &b, &err);
  for (d = 0; d < documents && !status; d++)
    status = gpuir_builder_add_text(b, NULL, text, phrase_text(d, &r, text, sizeof text), &err);
  if (!status) status = gpuir_builder_write(b, NULL, &err);
  gpuir_builder_destroy(b);
  if (status) {
    printf("Bail out! %s\n", err.msg);
    exit(1);
  }
}

/* What the device leaves to the CPU fails without fallback, and is answered and counted with it. */
static unsigned phrase_refusals(gpuir_index *ix, gpuir_cuda *cuda, gpuir_searcher *cpu) {
  static const char *const texts[] = {"\"t1 t2\" t5", "t5 -\"t1 t2\"", "t1*", "\"t1 t2\" t10*"};
  static const int modes[] = {GPUIR_OR, GPUIR_AND, GPUIR_AND, GPUIR_AND};
  unsigned bad = 0, i;
  for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    gpuir_searcher *strict, *lenient;
    gpuir_searcher_info info;
    gpuir_query_desc desc;
    gpuir_query *q;
    gpuir_error err;
    gpuir_hit hit;
    size_t n = 0;
    memset(&info, 0, sizeof info);
    memset(&desc, 0, sizeof desc);
    desc.mode = modes[i];
    if (gpuir_query_parse(ix, &desc, texts[i], strlen(texts[i]), &q, &err) ||
        gpuir_searcher_create(ix, NULL, &strict, NULL) || gpuir_searcher_create(ix, NULL, &lenient, NULL) ||
        gpuir_cuda_attach(strict, cuda, 0, &err) || gpuir_cuda_attach(lenient, cuda, 1, &err)) {
      printf("# %s\n", err.msg);
      return 1;
    }
    bad += gpuir_search(strict, q, &hit, 1, &n) != GPUIR_E_BACKEND;
    gpuir_searcher_error(strict, &err);
    bad += !strstr(err.msg, "does not answer");
    bad += compare(cpu, lenient, &q, 1, 10, SINGLE);
    (void)gpuir_searcher_get_info(lenient, &info);
    bad += info.backend_failures != 1;
    gpuir_searcher_destroy(strict);
    gpuir_searcher_destroy(lenient);
    gpuir_query_destroy(q);
  }
  return bad;
}

/* One index within a bound on the device's memory; 0: none. Returns 0 if its positions did not fit. */
static int phrase_check(const char *name, gpuir_index *ix, uint64_t memory, unsigned nq) {
  gpuir_cuda *cuda;
  gpuir_cuda_desc desc;
  gpuir_searcher_desc sd;
  gpuir_searcher *cpu, *gpu;
  gpuir_query *q;
  gpuir_error err;
  gpuir_hit hit;
  size_t n = 0;
  unsigned bad = 0;
  int there;
  char what[160];
  memset(&desc, 0, sizeof desc);
  memset(&sd, 0, sizeof sd);
  desc.memory = memory;
  sd.threads = 8;
  if (gpuir_cuda_open(ix, &desc, &cuda, &err)) return 0;
  if (gpuir_searcher_create(ix, NULL, &cpu, NULL) || gpuir_searcher_create(ix, &sd, &gpu, NULL) ||
      gpuir_query_parse(ix, NULL, "\"t1 t2\"", 7, &q, &err))
    exit(1);
  there = !gpuir_cuda_attach(gpu, cuda, 0, &err) && !gpuir_search(gpu, q, &hit, 1, &n);
  if (there) {
    bad = phrase_compare(ix, cpu, gpu, nq, 17u + (unsigned)(memory >> 16));
    if (!memory) bad += phrase_refusals(ix, cuda, cpu);
    (void)snprintf(what, sizeof what, "phrases, %s, %llu KB: hits and counts equal the CPU's", name,
        (unsigned long long)(memory >> 10));
    report(!bad, what);
  }
  gpuir_query_destroy(q);
  gpuir_searcher_destroy(cpu);
  gpuir_searcher_destroy(gpu);
  gpuir_cuda_close(cuda);
  return there;
}

/* Indexes with positions, in several codecs, from room for everything down to room for the lists and positions alone.
 */
static void check_phrases(const char *path, int quick) {
  static const char *const codecs[][2] = {{"bp128", "bp128"}, {"vbyte", "newpfd"}, {"pfd-list", "bp128"}};
  unsigned i, part, answered = 0;
  for (i = 0; i < (quick ? 2 : 3); i++) {
    gpuir_index *ix;
    gpuir_error err;
    uint64_t all, searcher;
    phrase_build(path, quick ? 3000 : i ? 30000 : 80000, codecs[i][0], codecs[i][1]); /* 80000: floors are raised */
    if (gpuir_open(path, NULL, &ix, &err)) exit(1);
    searcher = bounded_memory(ix, 0, 0, &all);
    answered += (unsigned)phrase_check(codecs[i][0], ix, 0, quick ? 16 : 200);
    for (part = 1; part < (quick ? 2 : 8); part++)
      answered +=
          (unsigned)phrase_check(codecs[i][0], ix, searcher + (all - searcher) / 10 * (10 - part), quick ? 8 : 60);
    gpuir_close(ix);
  }
  report(answered >= (quick ? 2 : 8), "a device answers phrases with and without expanded lists");
}

/* ---- folders of several segments ---- */

/* Adds documents of a few words, a commit for every third part of them. */
static int add_in_commits(gpuir_live *live, unsigned documents, gpuir_error *err) {
  synth_rng r = {77};
  unsigned d, i;
  int status = GPUIR_OK;
  for (d = 0; d < documents && !status; d++) {
    char text[512];
    gpuir_doc_desc doc;
    size_t at = 0;
    memset(&doc, 0, sizeof doc);
    for (i = 0; i < 12; i++) {
      const double u = synth_unit(&r);
      at += (size_t)snprintf(text + at, sizeof text - at, "t%u ", (unsigned)(60 * u * u * u));
    }
    status = gpuir_live_add(live, &doc, text, at, err);
    if (!status && (d + 1) % (documents / 3) == 0) status = gpuir_live_commit(live, err);
  }
  return status;
}

/* Returns how many of 60 queries have other hits or scores by a device, of the whole in one segment, than by the CPU,
 * of the segments; or fail. */
static unsigned differing_segments(gpuir_index *parts, gpuir_index *whole) {
  gpuir_searcher *cpu, *gpu;
  gpuir_cuda *cuda;
  gpuir_error err;
  synth_rng r = {78};
  unsigned bad = 0, i;
  if (gpuir_cuda_open(whole, NULL, &cuda, &err) || gpuir_searcher_create(parts, NULL, &cpu, NULL) ||
      gpuir_searcher_create(whole, NULL, &gpu, NULL) || gpuir_cuda_attach(gpu, cuda, 0, &err))
    return 60;
  for (i = 0; i < 60; i++) {
    char text[64];
    gpuir_query_desc desc;
    gpuir_query *a, *b;
    gpuir_hit x[50], y[50];
    size_t nx = 0, ny = 0;
    memset(&desc, 0, sizeof desc);
    desc.mode = (int)(i % 3);
    (void)snprintf(text, sizeof text, "t%u t%u t%u", synth_below(&r, 60), synth_below(&r, 60), synth_below(&r, 10));
    if (gpuir_query_parse(parts, &desc, text, strlen(text), &a, &err) ||
        gpuir_query_parse(whole, &desc, text, strlen(text), &b, &err))
      exit(1);
    bad += gpuir_search(cpu, a, x, 50, &nx) || gpuir_search(gpu, b, y, 50, &ny) || nx != ny ||
        memcmp(x, y, nx * sizeof *x) != 0;
    hits_compared += nx;
    compared++;
    gpuir_query_destroy(a);
    gpuir_query_destroy(b);
  }
  gpuir_searcher_destroy(cpu);
  gpuir_searcher_destroy(gpu);
  gpuir_cuda_close(cuda);
  return bad;
}

/* A folder of several segments is refused by several devices with words that say what to do. Merged into one, a
 * device answers it, with the CPU's hits and scores of before: what they weigh is computed of counts, in integers, in
 * whichever segments these stand. */
static void check_segments(unsigned documents) {
  static const int devices[2] = {0, 0};
  char path[80];
  gpuir_cuda_desc several;
  gpuir_live_desc desc;
  gpuir_live *live;
  gpuir_index *parts, *whole;
  gpuir_cuda *cuda = (gpuir_cuda *)folder; /* is not looked at */
  gpuir_error err;
  int more = 0;
  (void)snprintf(path, sizeof path, "%s/live", folder);
  memset(&desc, 0, sizeof desc);
  desc.settings.path = path;
  desc.create = 1;
  if (gpuir_live_open(&desc, &live, &err) || add_in_commits(live, documents, &err) ||
      gpuir_open(path, NULL, &parts, &err)) {
    printf("Bail out! %s\n", err.msg);
    exit(1);
  }
  memset(&err, 0, sizeof err);
  memset(&several, 0, sizeof several);
  several.devices = devices;
  several.ndevices = 2;
  report(gpuir_cuda_open(parts, &several, &cuda, &err) == GPUIR_E_UNSUPPORTED && !cuda &&
          err.code == GPUIR_E_UNSUPPORTED && strstr(err.msg, "merge"),
      "a folder of several segments is refused by several devices");
  if (gpuir_live_merge(live, 1, &more, &err) || gpuir_live_commit(live, &err) || gpuir_open(path, NULL, &whole, &err)) {
    printf("Bail out! %s\n", err.msg);
    exit(1);
  }
  report(!differing_segments(parts, whole), "merged, a device has the hits that the CPU has of the segments");
  gpuir_close(parts);
  gpuir_close(whole);
  gpuir_live_close(live);
  (void)folder_remove(path);
}

/* A snapshot takes over what another has on the device: opening it makes fewer calls, and takes little more memory; but
 * it has to fit. */
static void check_takeover(void) {
  live_folder f;
  gpuir_index *ix, *next;
  gpuir_cuda *first, *second, *none = (gpuir_cuda *)folder; /* is not looked at */
  gpuir_cuda_desc desc;
  gpuir_cuda_info a, b;
  gpuir_error err;
  long calls[2];
  live_start(&f, folder);
  gpuir_close(live_step(&f, 20000, 0, NULL));
  ix = live_step(&f, 1000, 0, NULL);
  gpuir_cuda_seam_calls = 0;
  first = live_on_device(ix, NULL);
  calls[0] = gpuir_cuda_seam_calls;
  next = live_step(&f, 0, 2, ix);
  gpuir_cuda_seam_calls = 0;
  second = live_on_device(next, first);
  calls[1] = gpuir_cuda_seam_calls;
  gpuir_cuda_get_info(first, &a);
  gpuir_cuda_get_info(second, &b);
  report(calls[1] < calls[0] / 2 && b.used_memory < a.used_memory + (64u << 10) && b.devices == 1,
      "a snapshot takes over another's segments");
  gpuir_cuda_close(first);
  report(!live_compare(next, second, 20, 5), "which it has when that is closed");
  gpuir_cuda_close(second);
  memset(&desc, 0, sizeof desc);
  desc.memory = 1 << 20;
  report(gpuir_cuda_open(next, &desc, &none, &err) == GPUIR_E_NOMEM && !none,
      "a snapshot that does not fit is refused");
  gpuir_close(ix);
  gpuir_close(next);
  live_end(&f);
}

/* Returns 0 if a snapshot is opened, attached and asked for a phrase with the CPU's hits; 1 if a call of CUDA fails and
 * says so; 2 if that is not told. */
static unsigned ask_snapshot(gpuir_index *ix, gpuir_query *q, const gpuir_hit *expected, size_t n, int code) {
  gpuir_cuda *cuda = NULL;
  gpuir_searcher *gpu;
  gpuir_hit hits[20];
  gpuir_error err;
  size_t got = 0;
  unsigned outcome;
  int status;
  memset(&err, 0, sizeof err);
  if (gpuir_searcher_create(ix, NULL, &gpu, NULL)) exit(1);
  status = gpuir_cuda_open(ix, NULL, &cuda, &err);
  if (!status) status = gpuir_cuda_attach(gpu, cuda, 0, &err);
  if (status) {
    outcome = status != code || err.code != code || !err.msg[0] ? 2 : 1;
  } else {
    status = gpuir_search(gpu, q, hits, 20, &got);
    outcome = status ? (status == code ? 1 : 2) : got != n || memcmp(hits, expected, n * sizeof *hits) != 0 ? 2 : 0;
  }
  gpuir_cuda_seam_fail = 0;
  gpuir_searcher_destroy(gpu);
  gpuir_cuda_close(cuda);
  return outcome;
}

/* Lets each CUDA call of opening a snapshot and of asking it fail in turn. */
static void check_failing_snapshots(unsigned documents) {
  static const int errors[] = {2, 719}; /* cudaErrorMemoryAllocation, cudaErrorLaunchFailure */
  live_folder f;
  gpuir_index *ix;
  gpuir_searcher *cpu;
  gpuir_query *q;
  gpuir_query_desc desc;
  gpuir_error err;
  gpuir_hit hits[20];
  size_t n;
  unsigned error, wrong = 0, injected = 0, outcome;
  live_start(&f, folder);
  gpuir_close(live_step(&f, documents, 0, NULL));
  ix = live_step(&f, documents / 8, 5, NULL);
  memset(&desc, 0, sizeof desc);
  desc.mode = GPUIR_AND;
  if (gpuir_searcher_create(ix, NULL, &cpu, NULL) || gpuir_query_parse(ix, &desc, "\"t1 t0\" t2", 10, &q, &err) ||
      gpuir_search(cpu, q, hits, 20, &n))
    exit(1);
  for (error = 0; error < 2; error++) {
    long fail = my_share;
    for (outcome = 1; outcome && fail < 2000; fail += all_shares) {
      gpuir_cuda_seam_calls = 0;
      gpuir_cuda_seam_fail = fail;
      gpuir_cuda_seam_error = errors[error];
      outcome = ask_snapshot(ix, q, hits, n, error ? GPUIR_E_BACKEND : GPUIR_E_NOMEM);
      if (!outcome && gpuir_cuda_seam_calls >= fail) outcome = 1; /* it did without the call */
      wrong += outcome == 2;
      injected += outcome == 1;
    }
  }
  printf("# %u failures injected\n", injected);
  report(!wrong && injected * all_shares > 40 && n > 0, "calls that fail, of a snapshot");
  gpuir_query_destroy(q);
  gpuir_searcher_destroy(cpu);
  gpuir_close(ix);
  live_end(&f);
}

/* Structures of a program that was compiled from another gpuir.h are refused, with words, before anything of them is
 * read: without a device too. */
static void check_layout(gpuir_index *ix) {
  const uint32_t layout = ix->layout;
  gpuir_cuda *cuda = (gpuir_cuda *)folder; /* is not looked at */
  gpuir_searcher *s = NULL;
  gpuir_error err;
  memset(&err, 0, sizeof err);
  ix->layout ^= 1;
  report(gpuir_cuda_open(ix, NULL, &cuda, &err) == GPUIR_E_VERSION && !cuda && err.code == GPUIR_E_VERSION &&
          strstr(err.msg, "gpuir_cuda_open") && strstr(err.msg, "gpuir.h"),
      "an index of another header is refused");
  ix->layout = layout;
  memset(&err, 0, sizeof err);
  if (!gpuir_searcher_create(ix, NULL, &s, NULL)) s->layout ^= 1;
  cuda = (gpuir_cuda *)folder;
  report(s && gpuir_cuda_attach(s, cuda, 0, &err) == GPUIR_E_VERSION && strstr(err.msg, "gpuir_cuda_attach") &&
          !strcmp(gpuir_backend_name(s), "cpu"),
      "a searcher of another header is refused");
  report(gpuir_cuda_attach(NULL, cuda, 0, NULL) == GPUIR_E_ARGUMENT &&
          gpuir_cuda_attach(s, NULL, 0, NULL) == GPUIR_E_ARGUMENT,
      "NULL is refused");
  gpuir_searcher_destroy(s);
}

int main(int argc, char **argv) {
  const int quick = argc > 1 && strstr(argv[1], "quick") && !strchr(argv[1], '/');
  const shape one = {"one document", 1, 3, 3, 0, 1, 0};
  int unweighed;
  char path[64] = "";
  gpuir_index *ix;
  gpuir_cuda *cuda;
  gpuir_error err;
  int status;
  if (argc > 2 && !take_share(argv[2])) return 1;
  if (!mkdtemp(folder)) return 1;
  (void)snprintf(path, sizeof path, "%s/index", folder);
  build(&one, path);
  status = gpuir_open(path, NULL, &ix, &err);
  if (!status) check_layout(ix);
  if (!status) status = gpuir_cuda_open(ix, NULL, &cuda, &err);
  if (!status) gpuir_cuda_close(cuda);
  gpuir_close(ix);
  if (status == GPUIR_E_BACKEND) {
    printf("ok %u - searches # SKIP no usable CUDA device: %s\n", ++tests, err.msg);
  } else if (argc > 1 && strchr(argv[1], '/')) {
    check_index(argv[1], argv[1], 0);
  } else {
    const char *part = argc > 1 && strcmp(argv[1], "quick") != 0 ? argv[1] : "shapes codecs text ranges phrases live";
    if (strstr(part, "shapes")) check_shapes(path, quick);
    if (strstr(part, "codecs")) check_codecs(path, quick);
    if (strstr(part, "text")) {
      build(&wordnet, path);
      check_index(wordnet.name, path, quick);
    }
    if (strstr(part, "ranges")) check_ranges(path, quick);
    if (strstr(part, "phrases")) check_phrases(path, quick);
    for (unweighed = 0; strstr(part, "live") && unweighed < 2; unweighed++) {
      gpuir_cuda_seam_unweighed = unweighed;
      if (is_mine()) check_live(folder, quick ? 3000 : 32000, quick ? 12 : unweighed ? 24 : 60);
    }
    gpuir_cuda_seam_unweighed = 0;
    if (strstr(part, "live") && is_mine()) check_takeover();
    if (strstr(part, "live")) check_failing_snapshots(quick ? 500 : 8000);
    if (strstr(part, "shapes") && is_mine()) check_segments(quick ? 900 : 30000);
  }
  (void)unlink(path);
  (void)rmdir(folder);
  if (tests) printf("1..%u\n# %lu searches compared, %lu hits\n", tests, compared, hits_compared);
  return failures != 0;
}
