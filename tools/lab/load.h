/* load.h - what the files of `gpuir lab load` share.
 *
 * load.c       options, the workload, the sweep of arrival rates, what is written
 * openloop.c   one run: arrivals drawn from a seed, tasks submitted when they are due, what came of them
 * histogram.c  log-linear histograms of times
 * tatikonda.c  the policies of Tatikonda et al. (SIGIR 2011)
 * gpuonly.c    the policy by which a device answers all, and the device of pools, which can be held up
 * energy.c     what a run takes of energy
 * flight.c     a batch of tasks on its way through a device
 * served.c     the same load for `gpuir serve`
 * scheduler.h  the papers' schedulers for a CPU and a GPU
 */
#ifndef GPUIR_LAB_LOAD_H
#define GPUIR_LAB_LOAD_H

#include "../cli/cli.h"
#include "lab.h"

/* ---- histograms (histogram.c) ----------------------------------------------------------------------- */

/* Counts of times in ns. Up to 2047 each has a bucket of its own; above, each power of two has 1024, so that a value is
 * known to three digits. The layout is that of HdrHistogram (lowest value 1, three digits). */
#define LOAD_BUCKETS (1024u * 32u)

typedef struct load_histogram {
  uint64_t counts[LOAD_BUCKETS];
  uint64_t n, most;
  double sum;
} load_histogram;

/* Values from 2^41 ns, over half an hour, are taken for that. */
void load_record(load_histogram *h, uint64_t ns);
/* The greatest value that counts as equal to that below which `percent` of the values lie; 0 if there is none. */
uint64_t load_percentile(const load_histogram *h, double percent);
double load_mean(const load_histogram *h);
/* Returns the mean, if percent is below 0, or a percentile, as `median`, and as `least` and `most` the ends of its 95 %
 * interval over queries that do not depend on each other: of the mean by lab_bootstrap, of a percentile by the ranks
 * between which it lies, to which its bootstrap comes. */
lab_spread load_interval(const load_histogram *h, double percent);
/* The greatest value of a bucket. */
uint64_t load_bucket_end(unsigned bucket);

/* ---- the workload (load.c) -------------------------------------------------------------------------- */

enum { LOAD_SAMPLED, LOAD_SHORT, LOAD_LONG, LOAD_KINDS };

typedef struct load_query {
  char *text;
  size_t len;
  int mode; /* GPUIR_AND ... */
  int kind; /* LOAD_ */
  gpuir_query *query;
  gpuir_hit *hits; /* what gpuir_search says */
  size_t n;
  uint64_t matches; /* what gpuir_count says, if the policy is `serve` */
} load_query;

/* A query of a run. */
typedef struct load_job {
  gpuir_task task;
  size_t query; /* its number */
  uint64_t pushed; /* when it was submitted */
  uint64_t matches;
} load_job;

/* When a device is held up; read and written atomically. */
typedef struct load_stall {
  uint64_t from; /* 0: not yet */
} load_stall;

/* What the tasks of FGQP are like: see tatikonda.c. */
typedef struct load_tasks {
  uint64_t queries, tasks, creation_ns; /* of all queries of the file, once; what making them took in a run */
  uint64_t lists; /* other lists that tasks have, added up */
  uint64_t skips, shared; /* skip blocks of these; those that the task before has too */
  double list_skips; /* skip blocks of a list, mean over all lists */
} load_tasks;

/* Seconds of a processor that a query takes, as one thread measured them: see survey of tatikonda.c. */
typedef struct load_divided {
  double whole; /* not divided */
  double latency; /* of the threads' work on it, the longest */
  double busy; /* that all threads have for nothing else */
} load_divided;

typedef struct load_setup {
  const char *path; /* of the index */
  gpuir_index *index;
  load_query *queries;
  size_t nqueries, k;
  const char *policy; /* its name alone */
  uint64_t threads, beta, skip;
  int per_task; /* FGQP: a pool item of scoring is a task's matches, else a document */
  int backend; /* CLI_BACKEND_, of `auto`, `gpu` and a server */
  int device; /* `auto` has one: the GPU or, if that is not open, a processor that stands for it */
  cli_gpu gpu;
  uint64_t batch; /* queries of the device's batch at most */
  uint64_t device_ns, device_query_ns; /* a clock stands for the device: a batch takes so long, and for each query */
  load_query **found; /* queries by their address, if so: see load_known */
  uint64_t stall_ns; /* the device answers nothing for so long, once in a run; 0: never */
  load_stall *stall;
  load_tasks *tasks; /* filled by FGQP */
  uint64_t survey; /* docp-ui, fgqp: times that each range or task of a query is timed beforehand; 0: no survey */
  load_divided *divided; /* of each query, filled by a survey */
  const char *intersection, *ranking; /* by which the device answers, see gpuir_cuda_lab_attach; NULL: by the engine */
  const char *socket; /* of a server; NULL: one is started */
  uint64_t deadline_ns; /* of a query, from when it is due; 0: none */
  uint64_t allowed_late_ns; /* of the generator at p99 in a run that is valid; or 5 % of the latency's, if that is more.
                             * Where a deadline is to hold, a part of it: what is late counts as latency anyway */
  const struct load_scheduler *scheduler; /* of the policy; NULL: it is not one of those */
  void *scheduling; /* its settings */
  int serial; /* a query is submitted when the one before it is answered */
  size_t apart; /* queries behind the others that runs do not ask */
} load_setup;

/* ---- policies of the laboratory --------------------------------------------------------------------- */

/* NULL: it has no policy of this name. */
const gpuir_policy *load_policy(const char *name);
/* The policy by which a device answers all queries. */
extern const gpuir_policy load_gpu_only;
/* For gpuir_pool_desc.attach, with the load_setup: gives a searcher the device. */
int load_attach(void *setup, gpuir_searcher *searcher, gpuir_error *err);
/* The same, in the thread that drives it. */
int load_attach_driver(void *setup, gpuir_searcher *searcher, gpuir_error *err);
/* The query of a load that a gpuir_query belongs to, by a table of load_known_size entries. */
size_t load_known_size(const load_setup *setup);
load_query **load_known(const load_setup *setup, const gpuir_query *query);
/* The policy that hands queries to a server. */
extern const gpuir_policy load_served;
/* Whether a name is that of a server's load. */
int load_is_served(const char *name);

/* ---- one run (openloop.c) --------------------------------------------------------------------------- */

typedef struct load_run {
  double rate; /* wanted, queries a second; 0: all at once */
  size_t n, warm; /* queries that are measured; those before them */
  uint64_t seed, offset; /* offset: the number of the first query */
  FILE *raw; /* every query's times are written there; NULL: nowhere */
} load_run;

typedef struct load_result {
  double achieved; /* queries a second */
  uint64_t backlog_half, backlog_end; /* queries that had come and were not answered, at half time and at the end */
  int saturated, late; /* late: the generator was, and the run is not valid */
  uint64_t lateness; /* ns, p99 */
  uint64_t wrong, missed, failed; /* queries: other hits than gpuir_search's; DEADLINE; another error */
  uint64_t distinct; /* queries among those measured */
  uint64_t held_up, stalled; /* queries due while the device was held up; those that waited half of that or longer */
  gpuir_pool_stats pool;
  load_histogram *latency; /* [LOAD_KINDS + 1], the last one of all: from the due time */
  load_histogram *wait, *processing; /* of all */
} load_result;

/* Answers one query, so that the pool's threads are there. Exit code. */
int load_wake(gpuir_pool *pool, const load_setup *setup);
/* Runs; results are released by load_result_free. Exit code. */
int load_go(gpuir_pool *pool, const load_setup *setup, const load_run *run, load_result *result);
void load_result_free(load_result *result);
/* Keeps the calling thread on the processor of the generator, on that of the driver of a device, if the load has one
 * and the processors are many, or on all others; on a machine of one processor it does nothing. */
enum { LOAD_GENERATOR, LOAD_DRIVER, LOAD_OTHERS };
void load_pin(int what, int device);

int load_command(int argc, char **argv);
extern const lab_figure load_figures[];

#endif
