
/* ========================
 * [cuda-24-api]  the C interface, declared in [api-cuda] of gpuir.h
 *
 * Uses      [cuda-14-memory], [cuda-17-open], [cuda-19-launch], [cuda-20-partition], [cuda-22-merge], [cuda-23-live].
 * Start at  gpuir_cuda_open, gpuir_cuda_attach.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

extern "C" {

int gpuir_cuda_device(int device, gpuir_cuda_info *info, gpuir_error *err) {
  cudaDeviceProp p;
  if (!info) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_device: NULL");
  memset(info, 0, sizeof *info);
  return gc_device_info(device, &p, info, err);
}

void gpuir_cuda_close(gpuir_cuda *c) {
  gpuir_allocator a;
  if (!c || !c->team) {
    gc_close_device(c);
    return;
  }
  a = c->a;
  if (c->team->live) gl_close_members(c->team);
  gt_close(c->team);
  gpuir__free(&a, c, sizeof *c);
}

/* Opens several devices, or the segments of a snapshot, as one. */
GPUIR__COLD static int gc_open_team(const gpuir_index *ix, const gpuir_cuda_desc *desc, gpuir_cuda **cuda,
    gpuir_error *err) {
  gpuir_cuda *c = (gpuir_cuda *)gpuir__alloc_zero(&ix->a, sizeof *c);
  int status;
  if (!c) return gpuir__fail_nomem(err);
  c->a = ix->a;
  c->index = ix;
  status = gpuir__only(ix) ? gt_open(ix, desc, &c->team, err) : gl_open(ix, desc, &c->team, err);
  if (status) gpuir__free(&ix->a, c, sizeof *c);
  else *cuda = c;
  return status;
}

int gpuir_cuda_open(const gpuir_index *ix, const gpuir_cuda_desc *desc, gpuir_cuda **cuda, gpuir_error *err) {
  gpuir_cuda_desc one;
  if (cuda) *cuda = NULL;
  if (!ix || !cuda) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_open: index or cuda is NULL");
  if (ix->layout != gpuir__index_layout()) return gc_refuse(err, "gpuir_cuda_open");
  if (!ix->calls)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "gpuir_cuda_open: the program was compiled with GPUIR_NO_CUDA");
  if (ix->calls->layout != GPUIR__CALLS_LAYOUT) return gc_refuse(err, "gpuir_cuda_open");
  if (desc && (desc->device < 0 || desc->batch > 65536 || !desc->devices != !desc->ndevices))
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_open: bad device or batch");
  if (!gpuir__only(ix) && desc && desc->ndevices > 1) return gpuir__fail_unmerged(ix, err);
  if (!gpuir__only(ix)) return gc_open_team(ix, desc, cuda, err);
  if (!desc || !desc->ndevices) return gc_open_device(ix, desc, cuda, err);
  if (desc->ndevices > 1) return gc_open_team(ix, desc, cuda, err);
  one = *desc;
  one.device = desc->devices[0];
  return gc_open_device(ix, &one, cuda, err);
}

void gpuir_cuda_get_info(const gpuir_cuda *c, gpuir_cuda_info *info) {
  if (!c || !info) return;
  if (c->team) gt_info(c->team, info);
  else gc_get_info(c, info);
}

int gpuir_cuda_attach(gpuir_searcher *s, gpuir_cuda *cuda, int fallback, gpuir_error *err) {
  if (!s || !cuda) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_attach: NULL");
  if (s->layout != gpuir__searcher_layout()) return gc_refuse(err, "gpuir_cuda_attach");
  if (s->ix != cuda->index)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_attach: a searcher of another index");
  if (cuda->team) return gt_attach_searcher(s, cuda->team, fallback, err);
  return gc_attach_device(s, cuda, GC_SLOTS, fallback, err);
}

} /* extern "C" */

#pragma GCC pop_options
