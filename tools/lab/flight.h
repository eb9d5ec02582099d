/* flight.h - a batch of tasks on its way through a device, for the policies of gpuir lab load. */
#ifndef GPUIR_LAB_FLIGHT_H
#define GPUIR_LAB_FLIGHT_H

#include "gpuir.h"

/* A batch, in flight or not; arrays have room for the greatest one. */
typedef struct load_flight {
  gpuir_batch *batch; /* NULL: not in flight */
  gpuir_task **tasks;
  const gpuir_query **queries;
  gpuir_hit *hits; /* [n * k] */
  uint32_t *counts;
  int *statuses;
  uint64_t *deadlines;
  const int **cancels;
  size_t n, k;
} load_flight;

/* Makes room for n tasks of k hits each. */
void load_flight_make(load_flight *f, size_t n, size_t k);
void load_flight_free(load_flight *f);
/* Adds a task to a batch that is not in flight, n being the tasks that it has. */
void load_flight_add(load_flight *f, gpuir_task *task);
/* Begins the batch on a searcher that has the device. If that fails, `cpu` answers, and the tasks are completed. */
void load_flight_begin(load_flight *f, gpuir_searcher *searcher, gpuir_pool *pool, gpuir_searcher *cpu);
/* Completes the tasks of a batch that is done; `cpu` answers what the device failed on. Whether it was done. */
int load_flight_look(load_flight *f, gpuir_pool *pool, gpuir_searcher *cpu);

#endif
