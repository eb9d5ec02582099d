/* device.c - the GPU's side of gpuir lab: whether there is a device, and one class of lists decoded on it. */
#include "../cli/cli.h"
#include "lab.h"
#include "gpuir_lab.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#define BUSY_VALUES ((uint64_t)1 << 26) /* decoded in one run where a device's speed is meant */
#define MOST_COPIES 1024u /* of a class' lists, to have that many */

/* ---- the device ------------------------------------------------------------------------------------------ */

/* The driver's release, as the kernel names it: CUDA tells only which of its own versions the driver speaks. */
static void driver_release(char *out, size_t cap) {
  char line[256] = "";
  FILE *f = fopen("/proc/driver/nvidia/version", "r");
  snprintf(out, cap, "unknown");
  if (!f) return;
  if (fgets(line, sizeof line, f))
    for (char *word = strtok(line, " \t\n"); word; word = strtok(NULL, " \t\n"))
      if (word[0] >= '0' && word[0] <= '9' && strchr(word, '.')) {
        snprintf(out, cap, "%s", word);
        break;
      }
  fclose(f);
}

/* Opens the file that GPUIR_LAB_LOCK names. Exit code. */
static int open_lock(lab *l) {
  const char *path = getenv("GPUIR_LAB_LOCK");
  if (!path || !*path) return CLI_OK;
  l->lock = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0666);
  if (l->lock >= 0) return CLI_OK;
  cli_error("GPUIR_LAB_LOCK: %s: %s", path, strerror(errno));
  return CLI_FAIL;
}

void lab_gpu_take(const lab *l) {
  while (l->lock >= 0 && flock(l->lock, LOCK_EX) && errno == EINTR && !lab_stopped()) {}
}

void lab_gpu_give(const lab *l) {
  if (l->lock >= 0) (void)flock(l->lock, LOCK_UN);
}

int lab_gpu_find(lab *l) {
  gpuir_cuda_info info;
  gpuir_error err;
  char driver[64];
  memset(&err, 0, sizeof err);
  if (open_lock(l)) return CLI_FAIL;
  int status = l->backend == CLI_BACKEND_CPU ? GPUIR_E_BACKEND : gpuir_cuda_device(0, &info, &err);
  l->gpu = !status;
  if (l->gpu) {
    driver_release(driver, sizeof driver);
    lab_note(&l->report, "device",
        "%s, driver %s, CUDA %d.%d; times of decoding, intersecting and ranking are the device's own, "
        "by events; "
        "those of whole searches are by the clock",
        info.device, driver, info.runtime_version / 1000, info.runtime_version % 1000 / 10);
    if (l->cold)
      lab_note(&l->report, "cold", "twice as many bytes as the device's cache has are written before each of its runs");
    return CLI_OK;
  }
  if (l->backend == CLI_BACKEND_GPU) return cli_fail("--backend gpu", status, &err);
  lab_note(&l->report, "device", "CPU only%s%s", err.msg[0] ? ": " : "", err.msg);
  if (err.msg[0]) cli_error("note: CPU only: %s", err.msg);
  return CLI_OK;
}

/* ---- decoding -------------------------------------------------------------------------------------------- */

int lab_gpu_open(const lab_codec *codec, const lab_list *const *list, size_t n, const lab_gpu_size *size,
    gpuir_cuda_lab **gpu) {
  gpuir_cuda_lab_desc desc;
  gpuir_error err;
  const uint32_t **docs = (const uint32_t **)cli_resize(NULL, n, sizeof *docs);
  uint32_t *lengths = (uint32_t *)cli_resize(NULL, n, sizeof *lengths);
  memset(&err, 0, sizeof err);
  memset(&desc, 0, sizeof desc);
  for (size_t i = 0; i < n; i++) {
    docs[i] = list[i]->docs;
    lengths[i] = list[i]->n;
  }
  desc.codec = codec ? codec->label : NULL;
  desc.lists = docs;
  desc.lengths = lengths;
  desc.nlists = n;
  desc.copies = size->copies;
  desc.room = size->room;
  desc.queries = size->queries;
  desc.terms = (uint32_t)size->terms;
  desc.coded = codec != NULL;
  desc.cold = size->cold;
  int status = gpuir_cuda_lab_open(&desc, gpu, &err);
  free((void *)docs);
  free(lengths);
  return status ? cli_fail(codec ? codec->label : "arrays on the device", status, &err) : CLI_OK;
}

/* Adds `by` times the seconds of decoding lists first .. first + n - 1 to `all` and, unless that is NULL, those of the
 * steps. Each run is compared on the device; the first one warms up. */
static int decode(const lab *l, const lab_codec *codec, gpuir_cuda_lab *gpu, size_t first, size_t n, const char *how,
    double by, lab_spread *all, lab_spread *steps) {
  double seconds[4][LAB_MOST_REPEATS];
  gpuir_cuda_lab_result r;
  gpuir_error err;
  int status = GPUIR_OK;
  memset(&err, 0, sizeof err);
  memset(&r, 0, sizeof r);
  lab_gpu_take(l);
  for (uint64_t i = 0; i <= l->repeat && !status && !r.mismatches; i++) {
    status = gpuir_cuda_lab_decode(gpu, first, n, how, 1, NULL, &r, &err);
    for (int s = 0; i && s < 4; s++) seconds[s][i - 1] = (s < 3 ? r.step_ms[s] : r.ms) / 1e3;
  }
  lab_gpu_give(l);
  if (status) return cli_fail(codec->label, status, &err);
  if (r.mismatches) {
    cli_error("%s: the device decodes %llu of %llu docIDs wrongly", codec->label, (unsigned long long)r.mismatches,
        (unsigned long long)r.values);
    return CLI_FAIL;
  }
  for (int s = steps ? 0 : 3; s < 4; s++) {
    lab_spread spread = lab_spread_of(seconds[s], (size_t)l->repeat);
    lab_spread_add(s < 3 ? &steps[s] : all, &spread, by);
  }
  return CLI_OK;
}

int lab_gpu_decode(const lab *l, const lab_codec *codec, const lab_list *lists, size_t n, const char *how,
    lab_gpu_times *t) {
  const lab_list **list = (const lab_list **)cli_resize(NULL, n, sizeof *list);
  lab_gpu_size size;
  gpuir_cuda_lab *gpu = NULL;
  uint64_t longest = 0, blocks = 0;
  memset(t, 0, sizeof *t);
  memset(&size, 0, sizeof size);
  size.cold = l->cold;
  for (size_t i = 0; i < n; i++) {
    list[i] = &lists[i];
    if (lists[i].n > longest) longest = lists[i].n;
    blocks += lists[i].n / 128 + 1;
  }
  size.copies = 1;
  if (!how) { /* every copy is decoded in one run */
    while (size.copies < MOST_COPIES && size.copies * blocks * 128 < BUSY_VALUES) size.copies *= 2;
  } else { /* the bits of a list's upper halves must fit */
    size.room = longest * 40 + 4096;
    size.queries = 1;
  }
  int code = lab_gpu_open(codec, list, n, &size, &gpu);
  if (code == CLI_OK && !how)
    code = decode(l, codec, gpu, 0, n * size.copies, NULL, 1.0 / size.copies, &t->together, NULL);
  for (size_t i = 0; i < n && code == CLI_OK; i++) code = decode(l, codec, gpu, i, 1, how, 1, &t->alone, t->steps);
  gpuir_cuda_lab_close(gpu);
  free(list);
  return code;
}
