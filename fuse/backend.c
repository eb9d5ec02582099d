/* backend.c - the build without a GPU. */
#include "backend.h"

#include <stdio.h>

int backend_present(void) { return 0; }

int backend_open(gpuir_index *index, backend **out, gpuir_error *err) {
  (void)index;
  *out = NULL;
  if (err) {
    err->code = GPUIR_E_UNSUPPORTED;
    err->offset = 0;
    snprintf(err->msg, sizeof err->msg, "this gpuirfs was built without a GPU backend");
  }
  return GPUIR_E_UNSUPPORTED;
}

int backend_attach(backend *b, gpuir_searcher *searcher, gpuir_error *err) {
  (void)b, (void)searcher, (void)err;
  return GPUIR_E_UNSUPPORTED;
}

void backend_close(backend *b) { (void)b; }
