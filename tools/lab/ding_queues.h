/* ding_queues.h - the three queues of Ding et al. 2009, section 9: queries much better on the CPU, queries much better
 * on the GPU, and all others, with stealing and deadlines. Nothing here locks, or knows what a job is.
 */
#ifndef GPUIR_LAB_DING_QUEUES_H
#define GPUIR_LAB_DING_QUEUES_H

#include <stddef.h>
#include <stdint.h>

enum { DING_CPU, DING_GPU, DING_SIDES };

enum {
  DING_PARALLEL, /* the paper's: both sides take */
  DING_ONLY_CPU,
  DING_ONLY_GPU,
  DING_SERIALIZED /* the better side, one job at a time, in their order */
};

/* Why a side got a job. */
enum { DING_OWN, DING_MIDDLE, DING_STOLEN, DING_URGENT, DING_WHYS };

typedef struct ding_rules {
  int mode;
  double theta; /* a side's own queue takes what is cheaper there by this part */
  int adaptive; /* each side has a theta of its own, which grows while more work waits for it than for the other */
  int plain; /* a side steals though the owner would finish the job sooner */
  double deadline; /* ns that a job may take */
  double urgent; /* part of these after which it goes first */
  double weight[3]; /* of cost, deadline and affinity, in the order of an own queue */
  unsigned servers[DING_SIDES]; /* that take from each side's queue */
} ding_rules;

typedef struct ding_queues ding_queues;

ding_queues *ding_open(const ding_rules *rules);
void ding_close(ding_queues *q);
/* Adds a job that came at `due` (ns) and has these costs (ns) on either side, each above 0. */
void ding_add(ding_queues *q, void *job, const double cost[DING_SIDES], uint64_t due);
/* Takes the job that a free server of a side does next, with its cost there; NULL: none that it should. */
void *ding_take(ding_queues *q, unsigned side, uint64_t now, double *cost, int *why);
/* Whether a free server of a side would take a job now. */
int ding_has(ding_queues *q, unsigned side, uint64_t now);
/* A job that a side took at such a cost is done. */
void ding_done(ding_queues *q, unsigned side, double cost);
/* Takes any job, whatever the rules; NULL: there is none. */
void *ding_take_any(ding_queues *q);
size_t ding_waiting(const ding_queues *q);
/* Returns how many jobs were looked at to see whether an owner would do one sooner than who would steal it. */
uint64_t ding_looked(const ding_queues *q);
/* Returns what waits in a side's own queue, ns a server. */
double ding_load(const ding_queues *q, unsigned side);
double ding_theta(const ding_queues *q, unsigned side);

#endif
