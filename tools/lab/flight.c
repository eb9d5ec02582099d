/* flight.c - a batch of tasks on its way through a device; see flight.h. */
#include "flight.h"

#include "../cli/cli.h"

#include <stdlib.h>
#include <string.h>

void load_flight_make(load_flight *f, size_t n, size_t k) {
  memset(f, 0, sizeof *f);
  f->k = k;
  f->tasks = (gpuir_task **)cli_resize(NULL, n, sizeof *f->tasks);
  f->queries = (const gpuir_query **)cli_resize(NULL, n, sizeof *f->queries);
  f->hits = (gpuir_hit *)cli_resize(NULL, n * k, sizeof *f->hits);
  f->counts = (uint32_t *)cli_resize(NULL, n, sizeof *f->counts);
  f->statuses = (int *)cli_resize(NULL, n, sizeof *f->statuses);
  f->deadlines = (uint64_t *)cli_resize(NULL, n, sizeof *f->deadlines);
  f->cancels = (const int **)cli_resize(NULL, n, sizeof *f->cancels);
}

void load_flight_free(load_flight *f) {
  free(f->tasks);
  free((void *)(uintptr_t)f->queries);
  free(f->hits);
  free(f->counts);
  free(f->statuses);
  free(f->deadlines);
  free((void *)(uintptr_t)f->cancels);
}

void load_flight_add(load_flight *f, gpuir_task *task) {
  f->tasks[f->n] = task;
  f->queries[f->n] = task->query;
  f->deadlines[f->n] = task->deadline;
  f->cancels[f->n++] = task->cancel;
}

/* Completes a task as the device left it or, if that failed, as a processor answers it. */
static void settle(const load_flight *f, size_t i, int status, gpuir_pool *pool, gpuir_searcher *cpu) {
  gpuir_task *task = f->tasks[i];
  if (!status) {
    task->count = f->counts[i];
    memcpy(task->hits, f->hits + i * f->k, task->count * sizeof *task->hits);
  } else if (status != GPUIR_E_DEADLINE && status != GPUIR_E_CANCELLED) {
    status = gpuir_pool_answer(cpu, task);
  }
  gpuir_pool_complete(pool, task, status);
}

void load_flight_begin(load_flight *f, gpuir_searcher *searcher, gpuir_pool *pool, gpuir_searcher *cpu) {
  const uint64_t now = cli_nanoseconds();
  gpuir_batch_desc desc;
  memset(&desc, 0, sizeof desc);
  memset(f->statuses, 0, f->n * sizeof *f->statuses);
  desc.queries = f->queries;
  desc.nq = f->n;
  desc.k = f->k;
  desc.hits = f->hits;
  desc.counts = f->counts;
  desc.statuses = f->statuses;
  desc.deadlines = f->deadlines;
  desc.cancels = f->cancels;
  for (size_t i = 0; i < f->n; i++) f->tasks[i]->started = now;
  const int status = gpuir_search_begin(searcher, &desc, &f->batch);
  for (size_t i = 0; status && i < f->n; i++) settle(f, i, status, pool, cpu);
  if (status) f->batch = NULL;
}

int load_flight_look(load_flight *f, gpuir_pool *pool, gpuir_searcher *cpu) {
  if (!f->batch || !gpuir_search_poll(f->batch)) return 0;
  (void)gpuir_search_finish(f->batch); /* statuses say it of each query */
  f->batch = NULL;
  for (size_t i = 0; i < f->n; i++) settle(f, i, f->statuses[i], pool, cpu);
  return 1;
}
