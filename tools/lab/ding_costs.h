/* ding_costs.h - what a query costs the CPU and the GPU, learned from other queries (Ding et al. 2009, section 9). */
#ifndef GPUIR_LAB_DING_COSTS_H
#define GPUIR_LAB_DING_COSTS_H

#include "ding_queues.h"
#include "scheduler.h"

typedef struct ding_learning {
  size_t train; /* queries to learn from, at the end of the load's; they are not asked in its runs */
  unsigned passes; /* over these; a query's cost is the median */
  int linear; /* costs and lengths as they are, not their logarithms */
  int sides[DING_SIDES]; /* which there are */
  unsigned servers[DING_SIDES]; /* that run at once */
} ding_learning;

typedef struct ding_costs ding_costs;

/* Measures the queries that setup sets apart for it, grows a tree for each side, and tests it on others. Adds rows and
 * notes. Exit code, after a message. */
int ding_learn(load_setup *setup, const ding_learning *how, lab_report *report, ding_costs **costs);
void ding_costs_free(ding_costs *costs);
/* Returns what a query costs a side, ns. */
double ding_cost(const ding_costs *costs, unsigned side, const gpuir_query *query);

#endif
