/* backend.c - the CUDA backend of gpuirfs, where the build has one. */
#include "backend.h"

#include <stdio.h>

#ifdef GPUIR_WITH_CUDA

struct backend; /* a gpuir_cuda by another name */

int backend_present(void) { return 1; }

const char *backend_absent(void) { return ""; }

int backend_open(gpuir_index *index, backend **out, gpuir_error *err) {
  gpuir_cuda *cuda = NULL;
  int status = gpuir_cuda_open(index, NULL, &cuda, err);
  *out = (backend *)cuda;
  return status;
}

int backend_attach(backend *b, gpuir_searcher *searcher, gpuir_error *err) {
  return gpuir_cuda_attach(searcher, (gpuir_cuda *)b, 0, err);
}

void backend_close(backend *b) { gpuir_cuda_close((gpuir_cuda *)b); }

#else

int backend_present(void) { return 0; }

const char *backend_absent(void) { return "this gpuirfs was built without a GPU backend"; }

int backend_open(gpuir_index *index, backend **out, gpuir_error *err) {
  (void)index, (void)out, (void)err;
  return GPUIR_E_UNSUPPORTED;
}

int backend_attach(backend *b, gpuir_searcher *searcher, gpuir_error *err) {
  (void)b, (void)searcher, (void)err;
  return GPUIR_E_UNSUPPORTED;
}

void backend_close(backend *b) { (void)b; }

#endif
