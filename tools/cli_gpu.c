/* cli_gpu.c - the CUDA backend in the command, where the build has one. */
#include "cli.h"

#include <string.h>

#ifdef GPUIR_WITH_CUDA

const char *cli_backends(void) { return "cpu, cuda"; }

int cli_gpu_open(cli_gpu *gpu, int backend, const gpuir_index *index) {
  gpuir_error err;
  memset(&err, 0, sizeof err);
  gpu->cuda = NULL;
  gpu->fallback = backend == CLI_BACKEND_AUTO;
  if (backend == CLI_BACKEND_CPU) return CLI_OK;
  int r = gpuir_cuda_open(index, NULL, &gpu->cuda, &err);
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

void cli_gpu_close(cli_gpu *gpu) {
  gpuir_cuda_close(gpu->cuda);
  gpu->cuda = NULL;
}

int cli_gpu_stats(const cli_gpu *gpu, gpuir_cuda_info *info) {
  if (gpu->cuda) gpuir_cuda_stats(gpu->cuda, info);
  return gpu->cuda != NULL;
}

#else

const char *cli_backends(void) { return "cpu"; }

int cli_gpu_open(cli_gpu *gpu, int backend, const gpuir_index *index) {
  (void)index;
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

void cli_gpu_close(cli_gpu *gpu) { (void)gpu; }

int cli_gpu_stats(const cli_gpu *gpu, gpuir_cuda_info *info) {
  (void)gpu, (void)info;
  return 0;
}

#endif
