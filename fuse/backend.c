/* backend.c - the CUDA backend of gpuirfs, where the build has one. */
#include "backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int devices[GPUIR_MAX_DEVICES]; /* that are to be opened */
static size_t ndevices;
static int all, parts;

int backend_devices(const char *names, int partition) {
  parts = partition;
  if (!names) return 0;
  all = !strcmp(names, "all"); /* they are counted when they are opened: a daemon must not ask before it has detached */
  if (all) return 0;
  for (;; names++) {
    const size_t digits = strspn(names, "0123456789");
    if (!digits || digits > 3 || ndevices == GPUIR_MAX_DEVICES || (names[digits] && names[digits] != ':')) return -1;
    devices[ndevices++] = (int)strtoul(names, NULL, 10);
    names += digits;
    if (!*names) return 0;
  }
}

#ifdef GPUIR_WITH_CUDA

struct backend; /* a gpuir_cuda by another name */

int backend_present(void) { return 1; }

const char *backend_absent(void) { return ""; }

int backend_open(gpuir_index *index, backend **out, gpuir_error *err) {
  gpuir_cuda_desc desc;
  gpuir_cuda_info info;
  gpuir_cuda *cuda = NULL;
  int numbers[GPUIR_MAX_DEVICES], status;
  size_t n = ndevices;
  memcpy(numbers, devices, sizeof numbers);
  for (; all && n < GPUIR_MAX_DEVICES && !gpuir_cuda_device((int)n, &info, NULL); n++) numbers[n] = (int)n;
  memset(&desc, 0, sizeof desc);
  desc.devices = n ? numbers : NULL;
  desc.ndevices = n;
  desc.partition = parts;
  status = gpuir_cuda_open(index, &desc, &cuda, err);
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
