/* scheduler.h - the papers' schedulers for a CPU and a GPU, as policies of gpuir lab load.
 *
 * ding.c            whole queries on the CPU or the GPU (Ding et al. 2009, sections 5 and 9); its queues, ding_queues.c
 * griffin.c         a query on both processors, which it moves between (Griffin 2018, section 3.2)
 * ao.c              batches by a computational threshold (Ao et al. 2011, section 4.1)
 * probe.c           the lists of a load's queries, one by one
 * scheduler.c       the table of schedulers, and what they share
 */
#ifndef GPUIR_LAB_SCHEDULER_H
#define GPUIR_LAB_SCHEDULER_H

#include "load.h"

typedef struct load_scheduler {
  const gpuir_policy *policy;
  const char *parameters; /* for a message */
  unsigned conjunctions; /* 0: it answers all queries; else conjunctions alone, of so many words or more */
  void *(*make)(void); /* its settings: load_setup.scheduling */
  /* Takes a parameter, "name=value" or "name". 0; -1: it has no such one. */
  int (*take)(void *settings, const char *parameter);
  unsigned (*threads)(const load_setup *setup); /* of the pool */
  /* Whether it needs a device, and how many bytes of its memory lists may take; 0: all. */
  int (*device)(const void *settings, uint64_t *memory);
  /* Prepares a load, when its queries and their hits are known. Exit code, after a message. */
  int (*prepare)(load_setup *setup, lab_report *report);
  /* Takes the i-th variant of the settings, for runs of its own, and names it; how many there are. */
  size_t (*vary)(void *settings, size_t i, char *name, size_t cap);
  /* Adds the rows of a run. */
  void (*tell)(const load_setup *setup, lab_report *report, const load_run *run, const load_result *result);
  void (*free)(void *settings);
} load_scheduler;

/* NULL: there is none of this name. */
const load_scheduler *load_scheduler_of(const char *name);
/* Takes "NAME=value" as a number of least to most. 1: it is that, 0: it is another parameter, or no such number. */
int load_number(const char *parameter, const char *name, double least, double most, double *value);
/* The same for one of the words of `choices`, parted by bars: its number. */
int load_choice(const char *parameter, const char *name, const char *choices, int *value);
/* Takes "NAME=" with some of the words of `choices`, parted by commas, each once at most, as their numbers. 1: it is
 * that, 0: it is another parameter, or one of the words is none. */
int load_choices(const char *parameter, const char *name, const char *choices, int *values, size_t *n);
/* The same with at most `cap` numbers of least to most. */
int load_numbers(const char *parameter, const char *name, double least, double most, double *values, size_t cap,
    size_t *n);
/* The lengths of a query's lists, at most GPUIR_MAX_TERMS, from short to long; how many there are. */
size_t load_lengths(const gpuir_query *query, uint32_t *lengths);

extern const load_scheduler load_ding, load_ao, load_griffin;

#endif
