/* ceilings.cu - what the device can do at most of the things that searching consists of, measured
 *
 * Linked with bench_cuda, so that its figures stand beside the ceilings of the same run. */
#include "ceilings.h"

#include <cuda_runtime.h>
#include <stdint.h>

#define THREADS 1024
#define WORDS 24576u /* of shared memory a block: a tile of documents */
#define ROUNDS 256
#define CHAINS 8

/* ROUNDS * 16 * CHAINS multiply-adds a thread, in chains that do not wait for one another. */
static __global__ void __launch_bounds__(THREADS) issue(float *out, float by) {
  float x[CHAINS];
  int i, r;
  for (i = 0; i < CHAINS; i++) x[i] = (float)(threadIdx.x + i);
  for (r = 0; r < ROUNDS; r++) {
#pragma unroll
    for (i = 0; i < 16 * CHAINS; i++) x[i % CHAINS] = __fmaf_rn(x[i % CHAINS], by, by);
  }
  for (i = 1; i < CHAINS; i++) x[0] += x[i];
  if (x[0] == 12345.25f) *out = x[0];
}

/* ROUNDS * 16 additions a thread to a tile's sums, as scoring makes them: each returns the sum before. */
static __global__ void __launch_bounds__(THREADS) adds(uint32_t *out) {
  extern __shared__ uint4 shared[];
  uint32_t *sums = (uint32_t *)shared, at = threadIdx.x, seen = 0;
  int i, r;
  for (i = (int)threadIdx.x; i < (int)WORDS; i += THREADS) sums[i] = 0;
  __syncthreads();
  for (r = 0; r < ROUNDS; r++) {
#pragma unroll
    for (i = 0; i < 16; i++) seen |= atomicAdd(sums + (at + (uint32_t)i * THREADS) % WORDS, 1u);
    at += 32;
  }
  if (seen == 0xffffffffu) *out = seen;
}

/* ROUNDS / 4 times: clears a tile's sums, and looks at all of them. */
static __global__ void __launch_bounds__(THREADS) clears(uint32_t *out) {
  extern __shared__ uint4 shared[];
  uint32_t most = 0;
  int i, r;
  for (r = 0; r < ROUNDS / 4; r++) {
#pragma unroll
    for (i = 0; i < (int)(WORDS / 4 / THREADS); i++) shared[threadIdx.x + i * THREADS] = make_uint4(0, 0, 0, r);
    __syncthreads();
#pragma unroll
    for (i = 0; i < (int)(WORDS / 4 / THREADS); i++) {
      uint4 s = shared[(threadIdx.x ^ 32) + i * THREADS];
      most = max(max(most, s.x), max(max(s.y, s.z), s.w));
    }
    __syncthreads();
  }
  if (most == 0xffffffffu) *out = most;
}

static double median(double *t, int n) {
  int i, j;
  for (i = 1; i < n; i++)
    for (j = i; j && t[j - 1] > t[j]; j--) {
      double x = t[j];
      t[j] = t[j - 1];
      t[j - 1] = x;
    }
  return t[n / 2];
}

/* Median seconds of 9 runs of one of the four; negative: an error. */
static double timed(int which, unsigned grid, uint8_t *memory, size_t half) {
  cudaEvent_t from, to;
  double t[9];
  int i;
  if (cudaEventCreate(&from) != cudaSuccess || cudaEventCreate(&to) != cudaSuccess) return -1;
  for (i = -1; i < 9; i++) {
    float ms = 0;
    (void)cudaEventRecord(from);
    if (which == 0) (void)cudaMemcpyAsync(memory + half, memory, half, cudaMemcpyDeviceToDevice);
    if (which == 1) issue<<<grid, THREADS>>>((float *)memory, 1.0001f);
    if (which == 2) adds<<<grid, THREADS, WORDS * 4>>>((uint32_t *)memory);
    if (which == 3) clears<<<grid, THREADS, WORDS * 4>>>((uint32_t *)memory);
    (void)cudaEventRecord(to);
    if (cudaEventSynchronize(to) != cudaSuccess || cudaEventElapsedTime(&ms, from, to) != cudaSuccess) return -1;
    if (i >= 0) t[i] = ms * 1e-3;
  }
  (void)cudaEventDestroy(from);
  (void)cudaEventDestroy(to);
  return cudaGetLastError() == cudaSuccess ? median(t, 9) : -1;
}

extern "C" int ceilings_measure(ceilings *c) {
  const size_t half = (size_t)1 << 30;
  cudaDeviceProp p;
  uint8_t *memory;
  double threads, t[4];
  unsigned grid;
  int i;
  if (cudaGetDeviceProperties(&p, 0) != cudaSuccess || cudaMalloc((void **)&memory, 2 * half) != cudaSuccess ||
      cudaMemset(memory, 1, 2 * half) != cudaSuccess ||
      cudaFuncSetAttribute(adds, cudaFuncAttributeMaxDynamicSharedMemorySize, WORDS * 4) != cudaSuccess ||
      cudaFuncSetAttribute(clears, cudaFuncAttributeMaxDynamicSharedMemorySize, WORDS * 4) != cudaSuccess)
    return -1;
  grid = (unsigned)p.multiProcessorCount * 2;
  threads = (double)grid * THREADS;
  for (i = 0; i < 4; i++) t[i] = timed(i, grid, memory, half);
  (void)cudaFree(memory);
  for (i = 0; i < 4; i++)
    if (t[i] <= 0) return -1;
  c->copy = 2 * (double)half / t[0];
  c->issue = threads / 32 * ROUNDS * 16 * CHAINS / t[1];
  c->adds = threads * ROUNDS * 16 / t[2];
  c->clears = (double)grid * WORDS * 4 * 2 * (ROUNDS / 4) / t[3];
  return 0;
}
