/* energy.h - what a run takes: joules of the GPU by NVML, of the CPU by the counters of the system. */
#ifndef GPUIR_LAB_ENERGY_H
#define GPUIR_LAB_ENERGY_H

#define ENERGY_TEXT 160u

typedef struct load_energy {
  double gpu, cpu; /* joules since some moment; below 0: not known */
  char gpu_why[ENERGY_TEXT], cpu_why[ENERGY_TEXT]; /* of what, or why not */
} load_energy;

/* Reads both counters. `gpu`: whether a GPU has a part in it. */
void load_energy_read(load_energy *e, int gpu);

#endif
