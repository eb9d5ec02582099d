/* energy.c - reads counters of energy: NVML's, whose library is opened when it is asked for first, and those of the
 * CPU's packages in the system's folder of power (RAPL), which many systems let administrators alone read.
 */
#include "energy.h"

#include "../cli/cli.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define PACKAGES 16u

/* The part of NVML that is needed. */
typedef struct nvml {
  int (*init)(void);
  int (*device)(unsigned index, void **device);
  int (*energy)(void *device, unsigned long long *millijoules);
} nvml;

/* A function of a library; ISO C has no conversion from its address. */
static int look_up(void *library, const char *name, void *function) {
  void *p = dlsym(library, name);
  memcpy(function, &p, sizeof p);
  return p ? 0 : -1;
}

/* Opens the library once; NULL with *why: there is none, or it cannot do it. */
static const nvml *nvml_open(char *why) {
  static nvml n;
  static int tried, good;
  void *library;
  if (tried) {
    if (!good) snprintf(why, ENERGY_TEXT, "NVML gives no energy");
    return good ? &n : NULL;
  }
  tried = 1;
  library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *cause = dlerror();
    snprintf(why, ENERGY_TEXT, "%s", cause ? cause : "no NVML");
    return NULL;
  }
  if (look_up(library, "nvmlInit_v2", &n.init) || look_up(library, "nvmlDeviceGetHandleByIndex_v2", &n.device) ||
      look_up(library, "nvmlDeviceGetTotalEnergyConsumption", &n.energy) || n.init()) {
    snprintf(why, ENERGY_TEXT, "NVML gives no energy");
    dlclose(library);
    return NULL;
  }
  good = 1; /* the library stays until the process ends */
  return &n;
}

static void read_gpu(load_energy *e) {
  const nvml *n = nvml_open(e->gpu_why);
  unsigned long long millijoules;
  void *device;
  if (!n) return;
  if (n->device(0, &device) || n->energy(device, &millijoules)) {
    snprintf(e->gpu_why, sizeof e->gpu_why, "the device has no counter of its energy");
    return;
  }
  e->gpu = (double)millijoules / 1e3;
  snprintf(e->gpu_why, sizeof e->gpu_why, "the whole GPU, by NVML");
}

/* Adds up the packages' counters, which begin again at some tens of hours of full power. */
static void read_cpu(load_energy *e) {
  double sum = 0;
  unsigned found = 0;
  for (unsigned i = 0; i < PACKAGES; i++) {
    char path[96], line[32];
    snprintf(path, sizeof path, "/sys/class/powercap/intel-rapl:%u/energy_uj", i);
    FILE *f = fopen(path, "r");
    if (!f) break;
    if (fgets(line, sizeof line, f)) {
      sum += strtod(line, NULL) / 1e6;
      found++;
    }
    fclose(f);
  }
  if (found) e->cpu = sum;
  snprintf(e->cpu_why, sizeof e->cpu_why, found ? "%u packages, by RAPL" : "no counter of a package can be read",
      found);
}

void load_energy_read(load_energy *e, int gpu) {
  memset(e, 0, sizeof *e);
  e->gpu = e->cpu = -1;
  if (gpu) read_gpu(e);
  else snprintf(e->gpu_why, sizeof e->gpu_why, "no GPU has a part in it");
  read_cpu(e);
}
