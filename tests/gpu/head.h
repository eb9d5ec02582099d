/* head.h - what the measuring programs print above their rows, and the spread of measurements; include after gpuir.h */
#ifndef TESTS_GPU_HEAD_H
#define TESTS_GPU_HEAD_H

#ifndef GPUIR_COMMIT
#define GPUIR_COMMIT "unknown"
#endif

/* The value of the first line of a file that begins with `key`, after its colon, without the line's end. */
static inline void head_line(const char *path, const char *key, char *out, size_t cap) {
  char line[512];
  FILE *f = fopen(path, "r");
  (void)snprintf(out, cap, "unknown");
  while (f && fgets(line, sizeof line, f)) {
    const char *colon = strchr(line, ':');
    if (strncmp(line, key, strlen(key)) != 0 || !colon) continue;
    (void)snprintf(out, cap, "%.*s", (int)strcspn(colon + 1, "\n"), colon + 1 + strspn(colon + 1, " \t"));
    out[strcspn(out, "\n")] = 0;
    break;
  }
  if (f) (void)fclose(f);
}

/* Commit, machine, command and time, as comments. */
static inline void print_head(int argc, char **argv) {
  char cpu[256], driver[256];
  const time_t t = time(NULL);
  const char *name = strrchr(argv[0], '/');
  int i;
  head_line("/proc/cpuinfo", "model name", cpu, sizeof cpu);
  head_line("/proc/driver/nvidia/version", "NVRM version", driver, sizeof driver);
  printf("# version: gpuir %s, commit %s\n", gpuir_version(), GPUIR_COMMIT);
  printf("# machine: %s, %ld processors, %s\n", cpu, sysconf(_SC_NPROCESSORS_ONLN), gpuir_simd_name(GPUIR_SIMD_AUTO));
  printf("# driver: %s\n", driver);
  printf("# command: %s", name ? name + 1 : argv[0]);
  for (i = 1; i < argc; i++) printf(" %s", argv[i]);
  printf("\n# time: %s# clock: times by the clock of the host unless a row says otherwise\n", ctime(&t));
}

typedef struct spread {
  double least, median, most;
} spread;

static inline int spread_compare(const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return a < b ? -1 : a > b;
}

/* Sorts values[0..n), n >= 1. */
static inline spread spread_of(double *values, size_t n) {
  spread s;
  qsort(values, n, sizeof *values, spread_compare);
  s.least = values[0];
  s.median = values[n / 2];
  s.most = values[n - 1];
  return s;
}

#endif
