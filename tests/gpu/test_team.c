/* test_team.c - several devices answer as one CPU does, bit for bit
 *
 * Teams of 2 to 64 members with the whole index, and with parts of it, are asked with every mode, many k, negation,
 * unknown and repeated terms and other k1 and b, in batches, alone and with two batches in flight; so are snapshots of
 * several segments and with deletions. Their members are
 * searchers of the CPU, or backends that fail in chosen ways, by gpuir_cuda.cu's seam: that needs no device. Where
 * there are devices, teams of them are asked too, of one that is named twice where there is just one. Prints TAP. */
#include "private.h"

#include "../support/alloc.h"
#include "../support/folder.h"
#include "synth.h"

#include "real.h"

#include "compare.h"

#include "phrases.h"

#include "live.h"

static char folder[] = "/tmp/gpuir-team-XXXXXX";
static char path[64];

extern int (*gpuir_cuda_seam_member)(unsigned member, gpuir_searcher *searcher);

static void stop_at(const char *what, const gpuir_error *err) {
  printf("Bail out! %s: %s\n", what, err->msg);
  exit(1);
}

/* ---- members that are searchers of the CPU, and may fail ---- */

/* How a backend fails: it refuses batches from the n-th on, or fails all of their queries, or every third, or refuses
 * only the n-th; with which status. Otherwise it answers by the CPU. */
typedef struct faulty {
  int number; /* of the member; -1: none */
  enum { FAILS_BEGIN, FAILS_ALL, FAILS_SOME, REFUSES_ONE } how;
  int status;
  unsigned from; /* batches that succeed before */
} faulty;

static faulty fault = {-1, FAILS_ALL, 0, 0};
static int all_fail;

/* The first member ends no batch until the others have answered so many queries; 0: it does not wait. */
static struct {
  size_t until, answered; /* answered: atomic */
  int in_vain; /* 1: they never did */
} slow;

static void wait_for_others(void) {
  const uint64_t most = gpuir__now() + 30000000000u;
  while (__atomic_load_n(&slow.answered, __ATOMIC_ACQUIRE) < slow.until && !slow.in_vain) {
    slow.in_vain = gpuir__now() > most;
    (void)sched_yield();
  }
}

/* A backend's context: a second searcher of the same index, which answers. */
typedef struct doubled {
  gpuir_searcher *inner;
  int faulty;
  unsigned member, batches;
  gpuir_batch *batch[2];
  gpuir_batch_desc descs[2];
  int fails[2];
} doubled;

static int doubled_begin(void *context, const gpuir_batch_desc *batch, uint64_t deadline, const int *cancel,
    void **running, gpuir_error *err) {
  doubled *d = (doubled *)context;
  const int which = d->batch[0] != NULL;
  (void)deadline;
  d->fails[which] = d->faulty && d->batches++ >= fault.from;
  if (fault.how == REFUSES_ONE) d->fails[which] = d->fails[which] && d->batches == fault.from + 1;
  if (d->fails[which] && (fault.how == FAILS_BEGIN || fault.how == REFUSES_ONE))
    return gpuir__fail(err, fault.status, 0, "the member fails");
  d->descs[which] = *batch;
  d->inner->engine.limits.cancel = cancel;
  if (gpuir_search_begin(d->inner, batch, &d->batch[which])) exit(1);
  *running = &d->batch[which];
  return GPUIR_OK;
}

static int doubled_poll(void *context, void *running) {
  (void)context, (void)running;
  return 1;
}

static int doubled_finish(void *context, void *running, gpuir_error *err) {
  doubled *d = (doubled *)context;
  gpuir_batch **batch = (gpuir_batch **)running;
  const size_t which = (size_t)(batch - d->batch);
  const gpuir_batch_desc *desc = &d->descs[which];
  size_t i;
  int status;
  if (slow.until && !d->member) wait_for_others();
  status = gpuir_search_finish(*batch);
  if (d->member) (void)__atomic_add_fetch(&slow.answered, desc->nq, __ATOMIC_RELEASE);
  *batch = NULL;
  if (status || !d->fails[which]) return status;
  for (i = 0; i < desc->nq; i++) {
    if (fault.how == FAILS_SOME && i % 3) continue;
    desc->statuses[i] = fault.status;
    desc->counts[i] = 0;
  }
  return gpuir__fail(err, fault.status, 0, "the member fails");
}

static void doubled_close(void *context) {
  doubled *d = (doubled *)context;
  gpuir_searcher_destroy(d->inner);
  free(d);
}

static int on_cpu(unsigned member, gpuir_searcher *s) {
  gpuir_backend b;
  doubled *d = (doubled *)calloc(1, sizeof *d);
  gpuir_searcher_desc desc;
  memset(&desc, 0, sizeof desc);
  desc.evaluator = s->engine.evaluator;
  if (gpuir_searcher_create(s->ix, &desc, &d->inner, NULL)) exit(1);
  d->faulty = all_fail || (int)member == fault.number;
  d->member = member;
  memset(&b, 0, sizeof b);
  b.version = GPUIR_BACKEND_VERSION;
  b.name = "faulty";
  b.context = d;
  b.begin = doubled_begin;
  b.poll = doubled_poll;
  b.finish = doubled_finish;
  b.close = doubled_close;
  return gpuir_searcher_set_backend(s, &b, 0);
}

static unsigned refused;
static int refuses(unsigned member, gpuir_searcher *s) { return member == refused ? GPUIR_E_NOMEM : on_cpu(member, s); }

/* ---- teams ---- */

static gpuir_cuda *team(const gpuir_index *ix, const int *devices, size_t n, int partition, gpuir_error *err) {
  gpuir_cuda_desc d;
  gpuir_cuda *cuda;
  memset(&d, 0, sizeof d);
  memset(err, 0, sizeof *err);
  d.devices = devices;
  d.ndevices = n;
  d.partition = partition;
  d.folder = folder;
  return gpuir_cuda_open(ix, &d, &cuda, err) ? NULL : cuda;
}

static const int zeros[65];

/* A team's hits beside the CPU's. */
static void check_hits(const char *name, const gpuir_index *index, uint32_t vocabulary, const int *devices, size_t n,
    int partition) {
  static const size_t ks[] = {1, 10, 1000};
  gpuir_index *ix = (gpuir_index *)(uintptr_t)index;
  gpuir_searcher *cpu, *gpu;
  gpuir_error err;
  gpuir_cuda *cuda = team(ix, devices, n, partition, &err);
  gpuir_query *q[600];
  synth_rng r = {(uint32_t)n * 2u + (uint32_t)partition};
  char what[160];
  unsigned bad = 0, i, round;
  if (!cuda || gpuir_searcher_create(ix, NULL, &cpu, NULL) || gpuir_searcher_create(ix, NULL, &gpu, NULL) ||
      gpuir_cuda_attach(gpu, cuda, 0, &err))
    stop_at(name, &err);
  for (round = 0; round < 3; round++) {
    const unsigned nq = round == 1 && n == 2 && !partition ? 600 : 40;
    for (i = 0; i < nq; i++) q[i] = random_query(ix, vocabulary, &r, 1);
    bad += compare(cpu, gpu, q, nq, ks[round], TOGETHER);
    bad += compare(cpu, gpu, q, nq, ks[round], IN_FLIGHT);
    bad += compare(cpu, gpu, q, 20, ks[round], SINGLE);
    if (!round) bad += compare_counts(cpu, gpu, q, nq, TOGETHER) + compare_counts(cpu, gpu, q, 20, SINGLE);
    for (i = 0; i < nq; i++) gpuir_query_destroy(q[i]);
  }
  (void)snprintf(what, sizeof what, "%s: %u members with %s", name, (unsigned)n,
      partition ? "a part each" : "the whole");
  report(!bad, what);
  gpuir_searcher_destroy(cpu);
  gpuir_searcher_destroy(gpu);
  gpuir_cuda_close(cuda);
}

#define LARGE 5000u /* queries: several pieces for parts; for members with the whole a border between their shares */

/* Answers both halves of a large batch at once; returns how many queries have other hits than the CPU's. */
static unsigned by_halves(gpuir_searcher *cpu, gpuir_searcher *gpu, gpuir_query **q) {
  static gpuir_hit a[LARGE * 10], b[LARGE * 10];
  static uint32_t na[LARGE], nb[LARGE];
  gpuir_batch *batch[2];
  gpuir_batch_desc d;
  unsigned bad = 0, i;
  memset(&d, 0, sizeof d);
  d.nq = LARGE / 2;
  d.k = 10;
  for (i = 0; i < 2; i++) {
    d.queries = (const gpuir_query *const *)q + i * d.nq;
    d.hits = b + i * d.nq * 10;
    d.counts = nb + i * d.nq;
    if (gpuir_search_begin(gpu, &d, &batch[i])) return LARGE;
  }
  for (i = 0; i < 2; i++) bad += gpuir_search_finish(batch[i]) != 0;
  bad += gpuir_search_batch(cpu, (const gpuir_query *const *)q, LARGE, 10, a, na) != 0;
  for (i = 0; i < LARGE; i++) bad += na[i] != nb[i] || memcmp(a + i * 10, b + i * 10, na[i] * sizeof *a) != 0;
  return bad;
}

/* Large batches of few queries, in all modes, by two and three members, one after the other and two in flight. */
static void check_large(gpuir_index *ix, uint32_t vocabulary, int partition) {
  static gpuir_query *q[LARGE];
  gpuir_searcher *cpu, *gpu;
  gpuir_error err;
  synth_rng r = {55};
  char what[160];
  unsigned bad = 0, i, n;
  for (i = 0; i < LARGE; i++) q[i] = i < 100 ? random_query(ix, vocabulary, &r, 1) : q[i % 100];
  for (n = 2; n < 4; n++) {
    gpuir_cuda *cuda = team(ix, zeros, n, partition, &err);
    if (!cuda || gpuir_searcher_create(ix, NULL, &cpu, NULL) || gpuir_searcher_create(ix, NULL, &gpu, NULL) ||
        gpuir_cuda_attach(gpu, cuda, 0, &err))
      stop_at("a large batch", &err);
    bad += compare(cpu, gpu, q, LARGE, 10, TOGETHER);
    bad += by_halves(cpu, gpu, q);
    bad += compare_counts(cpu, gpu, q, LARGE, TOGETHER);
    gpuir_searcher_destroy(cpu);
    gpuir_searcher_destroy(gpu);
    gpuir_cuda_close(cuda);
  }
  (void)snprintf(what, sizeof what, "large batches: members with %s", partition ? "a part each" : "the whole");
  report(!bad, what);
  for (i = 0; i < 100; i++) gpuir_query_destroy(q[i]);
}

/* A member with a part refuses one piece of a large batch: that piece alone fails, and those in flight around it are
 * answered as ever. */
static void check_refused_piece(gpuir_index *ix, uint32_t vocabulary) {
  static gpuir_hit a[LARGE * 10], b[LARGE * 10];
  static uint32_t na[LARGE], nb[LARGE];
  static int statuses[LARGE];
  static gpuir_query *q[LARGE];
  gpuir_searcher *cpu, *gpu;
  gpuir_batch_desc d;
  gpuir_batch *batch;
  gpuir_error err;
  gpuir_cuda *cuda = team(ix, zeros, 2, 1, &err);
  synth_rng r = {56};
  unsigned i, failed = 0, bad = 0;
  fault.number = 1;
  fault.how = REFUSES_ONE;
  fault.status = GPUIR_E_NOMEM;
  fault.from = 1;
  if (!cuda || gpuir_searcher_create(ix, NULL, &cpu, NULL) || gpuir_searcher_create(ix, NULL, &gpu, NULL) ||
      gpuir_cuda_attach(gpu, cuda, 0, &err))
    stop_at("a refused piece", &err);
  for (i = 0; i < LARGE; i++) { /* AND+OR would take another round */
    do q[i] = i < 100 ? random_query(ix, vocabulary, &r, 1) : q[i % 100];
    while (q[i]->mode == GPUIR_ANDOR && (gpuir_query_destroy(q[i]), 1));
  }
  memset(&d, 0, sizeof d);
  d.queries = (const gpuir_query *const *)q;
  d.nq = LARGE;
  d.k = 10;
  d.hits = b;
  d.counts = nb;
  d.statuses = statuses;
  if (gpuir_search_batch(cpu, d.queries, LARGE, 10, a, na) || gpuir_search_begin(gpu, &d, &batch)) exit(1);
  (void)gpuir_search_finish(batch);
  for (i = 0; i < LARGE; i++) {
    failed += statuses[i] == GPUIR_E_NOMEM;
    bad += statuses[i] && statuses[i] != GPUIR_E_NOMEM;
    bad += !statuses[i] && (na[i] != nb[i] || memcmp(a + i * 10, b + i * 10, na[i] * sizeof *a) != 0);
  }
  report(!bad && failed >= 256 && failed < LARGE / 2, "a part that refuses one piece answers the others");
  fault.number = -1;
  for (i = 0; i < 100; i++) gpuir_query_destroy(q[i]);
  gpuir_searcher_destroy(cpu);
  gpuir_searcher_destroy(gpu);
  gpuir_cuda_close(cuda);
}

/* ---- members that are lost ---- */

/* What came of a batch. */
typedef struct outcome {
  int status; /* of the batch */
  unsigned wrong; /* queries whose hits are not the CPU's */
  unsigned failed; /* queries with a status */
  uint64_t to_cpu; /* queries that fell back */
  uint32_t lost;
  char words[200];
} outcome;

#define MANY 1200

/* Has a team of three with a fault answer two batches, the second time after the fault. */
static outcome with_loss(gpuir_index *ix, uint32_t vocabulary, int partition, int fallback) {
  static gpuir_hit a[MANY * 10], b[MANY * 10];
  static uint32_t na[MANY], nb[MANY];
  static int statuses[MANY];
  gpuir_query *q[MANY];
  gpuir_searcher *cpu, *gpu;
  gpuir_searcher_info info;
  gpuir_cuda_info gi;
  gpuir_batch_desc d;
  gpuir_batch *batch;
  gpuir_error err;
  gpuir_cuda *cuda = team(ix, zeros, 3, partition, &err);
  synth_rng r = {99};
  outcome o;
  unsigned i, round;
  memset(&o, 0, sizeof o);
  memset(&info, 0, sizeof info);
  if (!cuda || gpuir_searcher_create(ix, NULL, &cpu, NULL) || gpuir_searcher_create(ix, NULL, &gpu, NULL) ||
      gpuir_cuda_attach(gpu, cuda, fallback, &err))
    stop_at("a team with a fault", &err);
  for (i = 0; i < MANY; i++) q[i] = random_query(ix, vocabulary, &r, 1);
  if (gpuir_search_batch(cpu, (const gpuir_query *const *)q, MANY, 10, a, na)) exit(1);
  memset(&d, 0, sizeof d);
  d.queries = (const gpuir_query *const *)q;
  d.nq = MANY;
  d.k = 10;
  d.hits = b;
  d.counts = nb;
  d.statuses = statuses;
  for (round = 0; round < 2; round++) {
    int status = gpuir_search_begin(gpu, &d, &batch);
    if (status)
      for (i = 0; i < MANY; i++) statuses[i] = status;
    else status = gpuir_search_finish(batch);
    if (!o.status) o.status = status;
    gpuir_searcher_error(gpu, &err);
    if (status) (void)snprintf(o.words, sizeof o.words, "%.199s", err.msg);
    for (i = 0; i < MANY; i++) {
      o.failed += statuses[i] != 0;
      o.wrong += !statuses[i] && (na[i] != nb[i] || memcmp(a + i * 10, b + i * 10, na[i] * sizeof *a) != 0);
    }
  }
  gpuir_searcher_get_info(gpu, &info);
  o.to_cpu = info.backend_failures;
  gpuir_cuda_get_info(cuda, &gi);
  o.lost = gi.lost;
  for (i = 0; i < MANY; i++) gpuir_query_destroy(q[i]);
  gpuir_searcher_destroy(cpu);
  gpuir_searcher_destroy(gpu);
  gpuir_cuda_close(cuda);
  return o;
}

static void check_losses(gpuir_index *ix, uint32_t vocabulary) {
  static const char *const how[] = {"refuses a batch", "fails a batch", "fails some queries"};
  char what[160];
  int i, from;
  outcome o;
  o = with_loss(ix, vocabulary, 0, 0);
  report(!o.status && !o.wrong && !o.failed && !o.lost, "none is lost: a batch is cut over three devices");
  o = with_loss(ix, vocabulary, 1, 0);
  report(!o.status && !o.wrong && !o.failed && !o.lost, "none is lost: three parts answer a batch piece by piece");
  fault.number = 1;
  fault.status = GPUIR_E_BACKEND;
  for (i = FAILS_BEGIN; i <= FAILS_SOME; i++) {
    for (from = 0; from < 2; from++) {
      fault.how = i;
      fault.from = (unsigned)from;
      o = with_loss(ix, vocabulary, 0, 0);
      (void)snprintf(what, sizeof what, "a device that %s is replaced by the others, batch %d", how[i], from + 1);
      report(!o.status && !o.wrong && !o.failed && !o.to_cpu && o.lost == 1, what);
    }
  }
  fault.from = 0;
  fault.how = FAILS_ALL;
  all_fail = 1;
  o = with_loss(ix, vocabulary, 0, 1);
  report(!o.status && !o.wrong && !o.failed && o.to_cpu == 2 * MANY && o.lost == 3, "all lost: the CPU answers");
  o = with_loss(ix, vocabulary, 0, 0);
  report(o.status == GPUIR_E_BACKEND && o.failed == 2 * MANY && strstr(o.words, "lost"), "without it they fail");
  all_fail = 0;
  o = with_loss(ix, vocabulary, 1, 1);
  report(!o.status && !o.wrong && !o.failed && o.to_cpu == 2 * MANY && o.lost == 1, "a part lost: the CPU answers");
  o = with_loss(ix, vocabulary, 1, 0);
  report(o.status == GPUIR_E_BACKEND && o.failed == 2 * MANY && strstr(o.words, "lost"), "without it they fail");
  fault.how = FAILS_SOME;
  fault.status = GPUIR_E_NOMEM;
  o = with_loss(ix, vocabulary, 0, 0);
  report(o.status == GPUIR_E_NOMEM && o.failed > 2 * MANY / 12 && o.failed < 2 * MANY / 5 && !o.wrong && !o.lost,
      "a query without memory is the only one that fails");
  fault.number = -1;
}

/* ---- a member that is slower than the other ---- */

#define HALF 4000u /* queries of a member: ANDs, which it takes as 2,304, 1,024 and the rest */

/* The first member ends nothing until the other one has answered its own half and what the first could not take yet. */
static void check_slow(gpuir_index *ix, uint32_t vocabulary) {
  static gpuir_hit a[50 * 5], b[2 * HALF * 5];
  static uint32_t na[50], nb[2 * HALF];
  static const gpuir_query *q[2 * HALF];
  gpuir_query *own[50];
  gpuir_searcher *cpu, *gpu;
  gpuir_error err;
  gpuir_cuda *cuda = team(ix, zeros, 2, 0, &err);
  synth_rng r = {77};
  unsigned i, bad = 0;
  int status;
  if (!cuda || gpuir_searcher_create(ix, NULL, &cpu, NULL) || gpuir_searcher_create(ix, NULL, &gpu, NULL) ||
      gpuir_cuda_attach(gpu, cuda, 0, &err))
    stop_at("a slow member", &err);
  for (i = 0; i < 50; i++) {
    do own[i] = random_query(ix, vocabulary, &r, 0);
    while (own[i]->mode != GPUIR_AND && (gpuir_query_destroy(own[i]), 1));
  }
  for (i = 0; i < 2 * HALF; i++) q[i] = own[i % 50];
  if (gpuir_search_batch(cpu, q, 50, 5, a, na)) exit(1);
  memset(&slow, 0, sizeof slow);
  slow.until = HALF + 400; /* it could take more: the first one's rest */
  status = gpuir_search_batch(gpu, q, 2 * HALF, 5, b, nb);
  slow.until = 0;
  for (i = 0; i < 2 * HALF; i++)
    bad += nb[i] != na[i % 50] || memcmp(b + i * 5, a + i % 50 * 5, nb[i] * sizeof *b) != 0;
  report(!status && !bad && !slow.in_vain, "a member that has nothing left takes what a slow one has not begun");
  for (i = 0; i < 50; i++) gpuir_query_destroy(own[i]);
  gpuir_searcher_destroy(cpu);
  gpuir_searcher_destroy(gpu);
  gpuir_cuda_close(cuda);
}

/* ---- time limits and cancellation ---- */

static void check_limits(gpuir_index *ix, uint32_t vocabulary, int partition) {
  static const uint64_t passed[4] = {0, 1, 0, 1};
  gpuir_query *q[4];
  gpuir_hit hits[40];
  uint32_t counts[4];
  int statuses[4], cancel = 0;
  gpuir_searcher_desc sd;
  gpuir_searcher *s;
  gpuir_batch_desc d;
  gpuir_batch *batch;
  gpuir_error err;
  gpuir_cuda *cuda = team(ix, zeros, 2, partition, &err);
  synth_rng r = {5};
  int i, status;
  for (i = 0; i < 4; i++) q[i] = random_query(ix, vocabulary, &r, 0);
  memset(&sd, 0, sizeof sd);
  sd.cancel = &cancel;
  sd.timeout_ns = 1000000000000u;
  if (!cuda || gpuir_searcher_create(ix, &sd, &s, NULL) || gpuir_cuda_attach(s, cuda, 0, &err)) stop_at("limits", &err);
  memset(&d, 0, sizeof d);
  d.queries = (const gpuir_query *const *)q;
  d.nq = 4;
  d.k = 10;
  d.hits = hits;
  d.counts = counts;
  d.statuses = statuses;
  d.deadlines = passed;
  status = gpuir_search_begin(s, &d, &batch);
  if (!status) status = gpuir_search_finish(batch);
  report(status == GPUIR_E_DEADLINE && !statuses[0] && statuses[1] == GPUIR_E_DEADLINE && !statuses[2] &&
          statuses[3] == GPUIR_E_DEADLINE,
      "queries that are out of time fail alone");
  cancel = 1;
  d.deadlines = NULL;
  status = gpuir_search_begin(s, &d, &batch);
  if (!status) status = gpuir_search_finish(batch);
  gpuir_searcher_error(s, &err);
  report(status == GPUIR_E_CANCELLED && strstr(err.msg, "cancel"), "a cancelled batch ends, with words");
  for (i = 0; i < 4; i++) gpuir_query_destroy(q[i]);
  gpuir_searcher_destroy(s);
  gpuir_cuda_close(cuda);
}

/* ---- what cannot be opened ---- */

/* An index of a program that was compiled with GPUIR_NO_CUDA, or from another gpuir.h, is refused with words. */
static void check_calls(gpuir_index *ix) {
  const gpuir__calls *const calls = ix->calls;
  gpuir__calls other = *calls;
  gpuir_cuda *cuda = (gpuir_cuda *)folder; /* is not looked at */
  gpuir_error err;
  ix->calls = NULL;
  report(gpuir_cuda_open(ix, NULL, &cuda, &err) == GPUIR_E_UNSUPPORTED && !cuda && strstr(err.msg, "GPUIR_NO_CUDA"),
      "an index that does not go to a device is refused");
  other.layout ^= 1;
  ix->calls = &other;
  report(gpuir_cuda_open(ix, NULL, &cuda, &err) == GPUIR_E_VERSION && !cuda && strstr(err.msg, "gpuir.h"),
      "an engine of another header is refused");
  ix->calls = calls;
}

static void check_refusals(gpuir_index *ix, uint32_t documents) {
  static const int negative[2] = {0, -1};
  gpuir_searcher *s;
  gpuir_cuda_desc d;
  gpuir_cuda *cuda;
  gpuir_error err;
  report(!team(ix, negative, 2, 0, &err) && err.code == GPUIR_E_ARGUMENT, "a negative device is refused");
  report(!team(ix, zeros, 65, 0, &err) && err.code == GPUIR_E_ARGUMENT && strstr(err.msg, "64"), "65 are too many");
  report(!team(ix, NULL, 2, 0, &err) && err.code == GPUIR_E_ARGUMENT, "devices that are not there are refused");
  report(documents >= 64 || (!team(ix, zeros, documents + 1, 1, &err) && strstr(err.msg, "documents")),
      "more parts than documents are refused");
  memset(&d, 0, sizeof d);
  d.devices = zeros;
  d.ndevices = 2;
  d.partition = 1;
  d.folder = "/nowhere/at/all";
  report(gpuir_cuda_open(ix, &d, &cuda, &err) == GPUIR_E_IO && !cuda && strstr(err.msg, "/nowhere/at/all"),
      "a folder that is not there is refused with its name");
  cuda = team(ix, zeros, 2, 0, &err);
  if (!cuda || gpuir_searcher_create(ix, NULL, &s, NULL)) stop_at("refusals", &err);
  gpuir_cuda_seam_member = refuses;
  for (refused = 0; refused < 2; refused++)
    report(gpuir_cuda_attach(s, cuda, 0, &err) == GPUIR_E_NOMEM && !strcmp(gpuir_backend_name(s), "cpu"),
        "a member that cannot be attached is an error");
  gpuir_cuda_seam_member = on_cpu;
  gpuir_searcher_destroy(s);
  gpuir_cuda_close(cuda);
}

/* Parts for which memory ends at one call or another, with none left behind. */
static void check_memory(void) {
  alloc_book book = {0, 0, 0, 0, 1};
  const gpuir_allocator a = alloc_from(&book);
  gpuir_open_desc od;
  gpuir_index *ix;
  gpuir_cuda *cuda;
  gpuir_error err;
  int64_t before, calls, at, bad = 0;
  memset(&od, 0, sizeof od);
  od.allocator = &a;
  if (gpuir_open(path, &od, &ix, &err)) stop_at("memory", &err);
  before = book.bytes;
  calls = book.calls;
  cuda = team(ix, zeros, 2, 1, &err);
  if (!cuda) stop_at("memory", &err);
  gpuir_cuda_close(cuda);
  calls = book.calls - calls;
  for (at = 1; at < calls / 2; at += 1 + at / 7) {
    book.fail_at = book.calls + at;
    cuda = team(ix, zeros, 2, 1, &err);
    bad += cuda != NULL || err.code != GPUIR_E_NOMEM || book.bytes != before;
    gpuir_cuda_close(cuda);
    book.fail_at = 0;
  }
  report(!bad && calls > 50, "parts without memory are refused, and nothing is left of them");
  gpuir_close(ix);
  report(!book.bytes && !book.blocks, "all memory is given back");
}

/* A list whose docIDs do not ascend: no part can be made of it. */
static void check_damage(void) {
  const shape s = {"damaged", 3000, 5, 5, 0, 1, 0};
  gpuir_open_desc od;
  gpuir_index *ix;
  gpuir_error err;
  gpuir_index_info x;
  FILE *f;
  uint8_t *bytes;
  long size;
  build(&s, path);
  f = fopen(path, "rb");
  if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) <= 0 || fseek(f, 0, SEEK_SET)) exit(1);
  bytes = (uint8_t *)malloc((size_t)size);
  if (fread(bytes, 1, (size_t)size, f) != (size_t)size) exit(1);
  (void)fclose(f);
  memset(&od, 0, sizeof od);
  od.data = bytes;
  od.size = (size_t)size;
  if (gpuir_open(NULL, &od, &ix, &err)) stop_at("damage", &err);
  (void)gpuir_index_get_info(ix, &x);
  memset(bytes + ix->leaves[0].seg->section[GPUIR__S_DOCIDS]->offset, 0xff, (size_t)x.docids_bytes);
  report(!team(ix, zeros, 2, 1, &err) && err.code == GPUIR_E_FORMAT && strstr(err.msg, "damaged"),
      "no part is made of a damaged list");
  gpuir_close(ix);
  free(bytes);
}

/* Parts of phrases and prefixes answer nothing, and say so; other queries of the batch are answered. */
static void check_prefixes(gpuir_index *ix) {
  gpuir_query *q[3];
  gpuir_searcher *s, *cpu;
  gpuir_hit hits[30], right[30];
  uint32_t counts[3];
  int statuses[3], status;
  size_t n = 0;
  gpuir_batch_desc d;
  gpuir_batch *batch;
  gpuir_error err;
  gpuir_cuda *cuda = team(ix, zeros, 2, 1, &err);
  if (!cuda || gpuir_searcher_create(ix, NULL, &s, NULL) || gpuir_searcher_create(ix, NULL, &cpu, NULL) ||
      gpuir_cuda_attach(s, cuda, 0, &err) || gpuir_query_parse(ix, NULL, "t1", 2, &q[0], &err) ||
      gpuir_query_parse(ix, NULL, "t29*", 4, &q[1], &err) || gpuir_query_parse(ix, NULL, "t2 t3", 5, &q[2], &err))
    stop_at("prefixes", &err);
  memset(&d, 0, sizeof d);
  d.queries = (const gpuir_query *const *)q;
  d.nq = 3;
  d.k = 10;
  d.hits = hits;
  d.counts = counts;
  d.statuses = statuses;
  status = gpuir_search_begin(s, &d, &batch);
  if (!status) status = gpuir_search_finish(batch);
  gpuir_searcher_error(s, &err);
  report(status == GPUIR_E_BACKEND && !statuses[0] && statuses[1] == status && !statuses[2] &&
          strstr(err.msg, "prefixes") && !gpuir_search(cpu, q[2], right, 10, &n) && n == counts[2] &&
          !memcmp(hits + 20, right, n * sizeof *right),
      "parts refuse a prefix, and answer the batch's other queries");
  for (n = 0; n < 3; n++) gpuir_query_destroy(q[n]);
  gpuir_searcher_destroy(s);
  gpuir_searcher_destroy(cpu);
  gpuir_cuda_close(cuda);
}

/* ---- all ---- */

static unsigned files_left(void) {
  unsigned n = 0;
  struct dirent *e;
  DIR *dir = opendir(folder);
  while (dir && (e = readdir(dir)) != NULL) n += !strncmp(e->d_name, "gpuir-part", 10);
  if (dir) (void)closedir(dir);
  return n;
}

/* Teams of the CPU's searchers over an index, of two members and of `more`. */
static void check_index(const char *name, uint32_t vocabulary, size_t more) {
  const size_t sizes[] = {2, more};
  gpuir_index *ix;
  gpuir_error err;
  size_t i;
  if (gpuir_open(path, NULL, &ix, &err)) stop_at(name, &err);
  for (i = 0; i < (more ? 2 : 1); i++) {
    check_hits(name, ix, vocabulary, zeros, sizes[i], 0);
    check_hits(name, ix, vocabulary, zeros, sizes[i], 1);
  }
  gpuir_close(ix);
}

/* Teams of devices: those of the machine, or one that is named twice. */
static void check_devices(const char *name, uint32_t vocabulary, int devices) {
  static const int real[] = {0, 1, 2, 3, 4, 5, 6, 7};
  const int n = devices < 2 ? 2 : devices;
  gpuir_index *ix;
  gpuir_error err;
  int partition;
  if (gpuir_open(path, NULL, &ix, &err)) stop_at(name, &err);
  for (partition = 0; partition < 2; partition++)
    check_hits(name, ix, vocabulary, devices < 2 ? zeros : real, (size_t)n, partition);
  gpuir_close(ix);
}

int main(void) {
  static const shape shapes[] = {{"few documents", 64, 30, 20, 0, 1, 0}, {"Zipf", 20000, 3000, 60, 0, 3, 0},
      {"ties", 5000, 40, 10, 1, 1, 0}, {"dense", 12000, 12, 12, 0, 1, 0}, {"runs", 9000, 2000, 30, 0, 1, 1}};
  gpuir_cuda_info info;
  gpuir_index *ix;
  gpuir_error err;
  int devices = 0;
  size_t i;
  if (!mkdtemp(folder)) return 1;
  (void)snprintf(path, sizeof path, "%s/index", folder);
  while (devices < 8 && !gpuir_cuda_device(devices, &info, &err)) devices++;
  gpuir_cuda_seam_member = on_cpu;
  for (i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    build(&shapes[i], path);
    check_index(shapes[i].name, shapes[i].vocabulary, !i ? 64 : i == 1 ? 7 : 0);
    gpuir_cuda_seam_member = NULL;
    if (devices) check_devices(shapes[i].name, shapes[i].vocabulary, devices);
    gpuir_cuda_seam_member = on_cpu;
    if (gpuir_open(path, NULL, &ix, &err)) stop_at("opening", &err);
    if (!i) check_refusals(ix, shapes[i].documents);
    if (!i) check_calls(ix);
    if (i == 1) check_losses(ix, shapes[i].vocabulary);
    if (i == 1) check_slow(ix, shapes[i].vocabulary);
    if (i == 1) check_large(ix, shapes[i].vocabulary, 0);
    if (i == 1) check_large(ix, shapes[i].vocabulary, 1);
    if (i == 1) check_refused_piece(ix, shapes[i].vocabulary);
    if (i == 1) check_prefixes(ix);
    if (i == 1) check_limits(ix, shapes[i].vocabulary, 0);
    if (i == 1) check_limits(ix, shapes[i].vocabulary, 1);
    gpuir_close(ix);
    if (i == 1) check_memory();
  }
  check_damage();
  check_live(folder, 3200, 24);
  build(&wordnet, path);
  check_index(wordnet.name, real_name(path), 0);
  gpuir_cuda_seam_member = NULL;
  if (devices) check_devices(wordnet.name, real_named.n, devices);
  else printf("ok %u - devices # SKIP no usable CUDA device\n", ++tests);
  (void)real_name(NULL);
  report(!files_left(), "no file of a part is left");
  (void)folder_remove(folder);
  printf("1..%u\n# %lu searches compared, %lu hits, %d devices\n", tests, compared, hits_compared, devices);
  return failures != 0;
}
