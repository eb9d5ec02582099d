/* gpu.c - the CUDA backend in the command, where the build has one. */
#include "cli.h"
#include "../lab/gpuir_lab.h"

#include <stdlib.h>
#include <string.h>

#ifdef GPUIR_WITH_CUDA

/* Returns why several devices do not take an index that changes; NULL if they do. */
static const char *unmerged(const gpuir_index *index) {
  gpuir_index_info info;
  if (gpuir_index_get_info(index, &info) || (info.segments == 1 && info.docids == info.documents)) return NULL;
  return "several GPUs take an index of one segment without deleted documents, which 'gpuir merge --all' makes";
}

const char *cli_backends(void) { return "cpu, cuda"; }

int cli_gpu_open(cli_gpu *gpu, int backend, const cli_devices *devices, const gpuir_index *index) {
  gpuir_cuda_desc desc;
  gpuir_error err;
  memset(&err, 0, sizeof err);
  memset(&desc, 0, sizeof desc);
  desc.devices = devices->n ? devices->of : NULL;
  desc.ndevices = devices->n;
  desc.partition = devices->partition;
  gpu->cuda = NULL;
  gpu->fallback = backend == CLI_BACKEND_AUTO;
  if (backend == CLI_BACKEND_CPU) return CLI_OK;
  if (devices->n > 1 && unmerged(index)) {
    cli_error(gpu->fallback ? "the CPU answers: %s" : "--backend gpu: %s", unmerged(index));
    return gpu->fallback ? CLI_OK : CLI_FAIL;
  }
  desc.memory = gpu->memory;
  int r = gpuir_cuda_open(index, &desc, &gpu->cuda, &err);
  if (!r) return CLI_OK;
  gpu->cuda = NULL;
  if (!gpu->fallback) return cli_fail("--backend gpu", r, &err);
  cli_error("the CPU answers: %s", err.msg);
  return CLI_OK;
}

int cli_gpu_attach(cli_gpu *gpu, gpuir_searcher *searcher) {
  gpuir_error err;
  memset(&err, 0, sizeof err);
  int r = gpu->cuda ? gpuir_cuda_attach(searcher, gpu->cuda, gpu->fallback, &err) : GPUIR_OK;
  return r && !gpu->fallback ? cli_fail("--backend gpu", r, &err) : CLI_OK;
}

int cli_gpu_attach_method(cli_gpu *gpu, gpuir_searcher *searcher, const char *intersection) {
  gpuir_error err;
  memset(&err, 0, sizeof err);
  if (!gpu->cuda || gpu->fallback || !intersection) return cli_gpu_attach(gpu, searcher);
  int r = gpuir_cuda_lab_attach(searcher, gpu->cuda, intersection, NULL, 0, &err);
  return r ? cli_fail("--backend gpu --intersection", r, &err) : CLI_OK;
}

int cli_gpu_attach_pool(void *gpu, gpuir_searcher *searcher, gpuir_error *err) {
  return gpuir_cuda_attach(searcher, ((cli_gpu *)gpu)->cuda, 0, err);
}

void cli_gpu_close(cli_gpu *gpu) {
  gpuir_cuda_close(gpu->cuda);
  gpu->cuda = NULL;
}

int cli_gpu_stats(const cli_gpu *gpu, gpuir_cuda_info *info) {
  if (gpu->cuda) gpuir_cuda_get_info(gpu->cuda, info);
  return gpu->cuda != NULL;
}

#else

const char *cli_backends(void) { return "cpu"; }

int cli_gpu_open(cli_gpu *gpu, int backend, const cli_devices *devices, const gpuir_index *index) {
  (void)devices, (void)index;
  gpu->cuda = NULL;
  gpu->fallback = 1;
  if (backend != CLI_BACKEND_GPU) return CLI_OK;
  cli_error("--backend gpu: this gpuir was built without a GPU backend");
  return CLI_FAIL;
}

int cli_gpu_attach(cli_gpu *gpu, gpuir_searcher *searcher) {
  (void)gpu, (void)searcher;
  return CLI_OK;
}

int cli_gpu_attach_method(cli_gpu *gpu, gpuir_searcher *searcher, const char *intersection) {
  (void)intersection;
  return cli_gpu_attach(gpu, searcher);
}

void cli_gpu_close(cli_gpu *gpu) { (void)gpu; }

int cli_gpu_stats(const cli_gpu *gpu, gpuir_cuda_info *info) {
  (void)gpu, (void)info;
  return 0;
}

/* The laboratory's functions, so that gpuir lab needs no second form. */

static int no_backend(gpuir_error *err) {
  if (err) {
    err->code = GPUIR_E_UNSUPPORTED;
    snprintf(err->msg, sizeof err->msg, "this gpuir was built without a GPU backend");
  }
  return GPUIR_E_UNSUPPORTED;
}

int cli_gpu_attach_pool(void *gpu, gpuir_searcher *searcher, gpuir_error *err) {
  (void)gpu, (void)searcher;
  return no_backend(err);
}

int gpuir_cuda_device(int device, gpuir_cuda_info *info, gpuir_error *err) {
  (void)device, (void)info;
  return no_backend(err);
}

int gpuir_cuda_lab_open(const gpuir_cuda_lab_desc *desc, gpuir_cuda_lab **lab, gpuir_error *err) {
  (void)desc;
  *lab = NULL;
  return no_backend(err);
}

void gpuir_cuda_lab_close(gpuir_cuda_lab *lab) { (void)lab; }

int gpuir_cuda_lab_decode(gpuir_cuda_lab *lab, size_t first, size_t n, const char *how, unsigned repeat, uint32_t *out,
    gpuir_cuda_lab_result *result, gpuir_error *err) {
  (void)lab, (void)first, (void)n, (void)how, (void)repeat, (void)out, (void)result;
  return no_backend(err);
}

const char *gpuir_cuda_lab_method(size_t i) {
  (void)i;
  return NULL;
}

int gpuir_cuda_lab_intersect(gpuir_cuda_lab *lab, const uint32_t *lists, const uint32_t *start, size_t nq,
    const gpuir_cuda_lab_way *way, uint32_t *counts, uint32_t *docids, gpuir_cuda_lab_result *result,
    gpuir_error *err) {
  (void)lab, (void)lists, (void)start, (void)nq, (void)way, (void)counts, (void)docids, (void)result;
  return no_backend(err);
}

int gpuir_cuda_lab_batch(gpuir_cuda_lab *lab, const uint32_t *lists, const uint32_t *start, size_t nq,
    const gpuir_cuda_lab_way *way, uint32_t *counts, uint32_t *docids, uint64_t room, gpuir_cuda_lab_parts *parts,
    gpuir_error *err) {
  (void)lab, (void)lists, (void)start, (void)nq, (void)way, (void)counts, (void)docids, (void)room, (void)parts;
  return no_backend(err);
}

int gpuir_cuda_lab_confine(gpuir_cuda_lab *lab, unsigned processors, gpuir_error *err) {
  (void)lab, (void)processors;
  return no_backend(err);
}

int gpuir_cuda_lab_begin(gpuir_cuda_lab *lab, const uint32_t *lists, size_t k, const gpuir_cuda_lab_way *way,
    gpuir_error *err) {
  (void)lab, (void)lists, (void)k, (void)way;
  return no_backend(err);
}

int gpuir_cuda_lab_next(gpuir_cuda_lab *lab, gpuir_error *err) {
  (void)lab;
  return no_backend(err);
}

int gpuir_cuda_lab_poll(gpuir_cuda_lab *lab, uint32_t *left, gpuir_error *err) {
  (void)lab, (void)left;
  return no_backend(err);
}

int gpuir_cuda_lab_fetch(gpuir_cuda_lab *lab, uint32_t *docids, gpuir_error *err) {
  (void)lab, (void)docids;
  return no_backend(err);
}

int gpuir_cuda_lab_score(gpuir_cuda_lab *lab, gpuir_cuda *cuda, const gpuir_query *query, gpuir_hit *hits,
    gpuir_error *err) {
  (void)lab, (void)cuda, (void)query, (void)hits;
  return no_backend(err);
}

const char *gpuir_cuda_lab_ranking(size_t i) {
  (void)i;
  return NULL;
}

int gpuir_cuda_lab_topk(gpuir_cuda_lab *lab, const gpuir_hit *candidates, const uint32_t *start, size_t nq, size_t k,
    const char *ranking, unsigned repeat, gpuir_hit *hits, uint32_t *counts, gpuir_cuda_lab_result *result,
    gpuir_error *err) {
  (void)lab, (void)candidates, (void)start, (void)nq, (void)k, (void)ranking, (void)repeat, (void)hits;
  (void)counts, (void)result;
  return no_backend(err);
}

int gpuir_cuda_lab_attach(gpuir_searcher *searcher, gpuir_cuda *cuda, const char *intersection, const char *ranking,
    int fallback, gpuir_error *err) {
  (void)searcher, (void)cuda, (void)intersection, (void)ranking, (void)fallback;
  return no_backend(err);
}

int gpuir_cuda_lab_steps(const gpuir_searcher *searcher, double ms[2][GPUIR_CUDA_LAB_STEPS], gpuir_error *err) {
  (void)searcher, (void)ms;
  return no_backend(err);
}

#endif

size_t cli_gpu_count(void) {
  gpuir_cuda_info info;
  size_t n = 0;
  while (n < GPUIR_MAX_DEVICES && !gpuir_cuda_device((int)n, &info, NULL)) n++;
  return n;
}

int cli_devices_read(const cli_args *a, cli_devices *d) {
  const size_t most = sizeof d->of / sizeof *d->of;
  const char *p = a->value;
  d->n = 0;
  if (!strcmp(p, "all")) {
    for (d->n = 0; d->n < cli_gpu_count(); d->n++) d->of[d->n] = (int)d->n;
    return 0;
  }
  for (;; p++) {
    const size_t digits = strspn(p, "0123456789");
    if (!digits || digits > 3 || d->n == most || (p[digits] && p[digits] != ','))
      return cli_misuse(a->command, "%s: '%s' is neither 'all' nor numbers of up to %zu devices, as in 0,1", a->name,
          a->value, most);
    d->of[d->n++] = (int)strtoul(p, NULL, 10);
    p += digits;
    if (!*p) return 0;
  }
}
