/* standin.c - a GPU backend that a processor stands for, under the names of gpuir_cuda.cu: what a program makes of a
 * device can be tested without one. GPUIR_STANDIN=none: opening fails; =fails: every batch does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuir.h"

struct gpuir_cuda {
  gpuir_index *index;
};

/* A searcher's; at most two batches are in flight. */
typedef struct standin {
  gpuir_searcher *searcher;
  gpuir_batch_desc batches[2];
  int used[2];
} standin;

static int is_told(const char *what) {
  const char *told = getenv("GPUIR_STANDIN");
  return told && strcmp(told, what) == 0;
}

static int standin_begin(void *context, const gpuir_batch_desc *desc, uint64_t deadline, const int *cancel,
    void **running, gpuir_error *err) {
  standin *s = context;
  const int i = s->used[0];
  (void)deadline, (void)cancel, (void)err;
  if (is_told("fails")) return GPUIR_E_BACKEND;
  s->batches[i] = *desc;
  s->used[i] = 1;
  *running = &s->batches[i];
  return GPUIR_OK;
}

static int standin_poll(void *context, void *running) {
  (void)context, (void)running;
  return 1;
}

static int standin_finish(void *context, void *running, gpuir_error *err) {
  standin *s = context;
  const gpuir_batch_desc *d = running;
  size_t i, n;
  (void)err;
  for (i = 0; i < d->nq; i++) {
    uint64_t matches;
    if (d->count) {
      d->statuses[i] = gpuir_count(s->searcher, d->queries[i], &matches);
      d->counts[i] = (uint32_t)matches;
      continue;
    }
    d->statuses[i] = gpuir_search(s->searcher, d->queries[i], d->hits + i * d->k, d->k, &n);
    d->counts[i] = (uint32_t)n;
  }
  s->used[d - s->batches] = 0;
  return GPUIR_OK;
}

static void standin_close(void *context) {
  standin *s = context;
  gpuir_searcher_destroy(s->searcher);
  free(s);
}

int gpuir_cuda_open(const gpuir_index *index, const gpuir_cuda_desc *desc, gpuir_cuda **cuda, gpuir_error *err) {
  (void)desc;
  *cuda = is_told("none") ? NULL : calloc(1, sizeof **cuda);
  if (*cuda) {
    (*cuda)->index = (gpuir_index *)index; /* a searcher asks for it so, and changes nothing */
    return GPUIR_OK;
  }
  err->code = GPUIR_E_BACKEND;
  snprintf(err->msg, sizeof err->msg, "nothing stands for a device");
  return GPUIR_E_BACKEND;
}

int gpuir_cuda_attach(gpuir_searcher *searcher, gpuir_cuda *cuda, int fallback, gpuir_error *err) {
  standin *s = calloc(1, sizeof *s);
  gpuir_backend b;
  int rc = s ? gpuir_searcher_create(cuda->index, NULL, &s->searcher, err) : GPUIR_E_NOMEM;
  memset(&b, 0, sizeof b);
  b.version = GPUIR_BACKEND_VERSION;
  b.name = "standin";
  b.context = s;
  b.begin = standin_begin;
  b.poll = standin_poll;
  b.finish = standin_finish;
  b.close = standin_close;
  if (rc == GPUIR_OK) rc = gpuir_searcher_set_backend(searcher, &b, fallback);
  return rc;
}

void gpuir_cuda_close(gpuir_cuda *cuda) { free(cuda); }

int gpuir_cuda_device(int device, gpuir_cuda_info *info, gpuir_error *err) {
  (void)err;
  memset(info, 0, sizeof *info);
  snprintf(info->device, sizeof info->device, "standin");
  return device == 0 ? GPUIR_OK : GPUIR_E_BACKEND;
}
