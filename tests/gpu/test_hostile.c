/* test_hostile.c - hostile indexes on the device: no fault, and the CPU's hits wherever the index verifies
 *
 *   test_hostile [FILES [FIRST]]    damages files FIRST .. FIRST + FILES - 1 (2,000 from 0)
 *
 * Small indexes in every codec are damaged by the mutator that knows their structure (tests/fuzz/structure.h), with
 * checksums made right, and each is opened and searched on the device with room for all of it expanded, for all of it
 * as it is, and for a part. All in one process: a fault of the device would be an error of every call after it. To be
 * run under compute-sanitizer, in several processes with a range of files each. A damaged file is determined by its
 * number. Prints TAP; without a device it says so and succeeds. */
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include "../fuzz/seeds.h"

#include "synth.h"

enum { QUERIES = 24, K = 20 };

static unsigned tests, failures;
static unsigned opened, on_device, verified, faults, different;

static void report(int ok, const char *what) {
  tests++;
  failures += !ok;
  printf("%sok %u - %s\n", ok ? "" : "not ", tests, what);
  (void)fflush(stdout);
}

static unsigned parse(const gpuir_index *ix, unsigned number, gpuir_query **q) {
  synth_rng r = {number};
  unsigned i, n = 0;
  for (i = 0; i < QUERIES; i++) {
    char text[80];
    gpuir_query_desc desc;
    gpuir_error err;
    const int len = snprintf(text, sizeof text, "w%u w%u %sw%u rare%u", (unsigned)synth_below(&r, SEED_WORDS),
        (unsigned)synth_below(&r, SEED_WORDS), synth_below(&r, 4) ? "" : "-", (unsigned)synth_below(&r, SEED_WORDS),
        (unsigned)synth_below(&r, 8) * 60);
    memset(&desc, 0, sizeof desc);
    desc.mode = (int)(i % 3);
    if (!gpuir_query_parse(ix, &desc, text, (size_t)len, &q[n], &err)) n++;
  }
  return n;
}

static int same(const gpuir_hit *a, const gpuir_hit *b, size_t n) {
  size_t i;
  for (i = 0; i < n; i++)
    if (a[i].docid != b[i].docid || a[i].score != b[i].score) return 0;
  return 1;
}

/* Asks for phrases and counts them, by a searcher that may leave them to the CPU; with `right` as the CPU does. */
static void search_phrases(gpuir_index *ix, gpuir_searcher *gpu, gpuir_searcher *cpu, unsigned number, int right) {
  synth_rng r = {number + 1};
  unsigned i;
  for (i = 0; i < QUERIES / 2; i++) {
    gpuir_hit hits[K], expected[K];
    char text[80];
    gpuir_query_desc desc;
    gpuir_query *q;
    gpuir_error err;
    size_t got = 0, want = 0;
    uint64_t counted = 0, count = 0;
    const int len = snprintf(text, sizeof text, i % 3 ? "\"w%u w%u\"" : "\"w%u w%u\" w%u",
        (unsigned)synth_below(&r, SEED_WORDS / 2), (unsigned)synth_below(&r, SEED_WORDS / 2), i % 5);
    memset(&desc, 0, sizeof desc);
    desc.mode = GPUIR_AND;
    if (gpuir_query_parse(ix, &desc, text, (size_t)len, &q, &err)) continue;
    if (!gpuir_search(gpu, q, hits, K, &got) && !gpuir_count(gpu, q, &counted) && right &&
        (gpuir_search(cpu, q, expected, K, &want) || got != want || !same(hits, expected, got) ||
            gpuir_count(cpu, q, &count) || count != counted)) {
      different++;
      printf("# file %u, %s: %u hits on the device, %u on the CPU; %u and %u matches\n", number, text, (unsigned)got,
          (unsigned)want, (unsigned)counted, (unsigned)count);
    }
    gpuir_query_destroy(q);
  }
}

/* Searches on the device, alone and in a batch; with `right`, an index that verifies, as the CPU does. */
static void search(gpuir_index *ix, gpuir_searcher *gpu, gpuir_searcher *cpu, unsigned number, int right) {
  static gpuir_hit hits[QUERIES * K], expected[K];
  gpuir_query *q[QUERIES];
  uint32_t counts[QUERIES];
  const unsigned n = parse(ix, number, q);
  gpuir_index_info info;
  unsigned i;
  if (gpuir_index_get_info(ix, &info)) seed_stop("no statistics");
  for (i = 0; i < n; i++) {
    size_t got = 0, want = 0, j;
    const int status = gpuir_search(gpu, q[i], hits, K, &got);
    faults += status == GPUIR_E_BACKEND;
    for (j = 0; j < got; j++) faults += hits[j].docid >= info.documents;
    if (!right || status) continue;
    if (gpuir_search(cpu, q[i], expected, K, &want) || got != want || !same(hits, expected, got)) {
      different++;
      printf("# file %u, query %u of mode %d: %u hits on the device, %u on the CPU\n", number, i, q[i]->mode,
          (unsigned)got, (unsigned)want);
    }
  }
  faults += gpuir_search_batch(gpu, (const gpuir_query *const *)q, n, K, hits, counts) == GPUIR_E_BACKEND;
  for (i = 0; i < n; i++) gpuir_query_destroy(q[i]);
}

static void exercise(const char *path, unsigned number) {
  gpuir_index *ix;
  gpuir_cuda *cuda;
  gpuir_cuda_desc desc;
  gpuir_cuda_info info;
  gpuir_searcher *gpu, *cpu;
  gpuir_error err;
  int status, right;
  if (gpuir_open(path, NULL, &ix, &err)) return;
  opened++;
  right = gpuir_verify(ix, &err) == GPUIR_OK;
  memset(&desc, 0, sizeof desc);
  desc.batch = 64;
  status = gpuir_cuda_open(ix, &desc, &cuda, &err);
  if (!status && number % 3) { /* as it is; a part of it */
    gpuir_cuda_get_info(cuda, &info);
    gpuir_cuda_close(cuda);
    desc.memory = number % 3 == 1 ? info.index_bytes + (6u << 20) : info.index_bytes / 2 + (3300u << 10);
    status = gpuir_cuda_open(ix, &desc, &cuda, &err);
  }
  faults += status == GPUIR_E_BACKEND;
  if (!status) {
    on_device++;
    verified += (unsigned)right;
    if (gpuir_searcher_create(ix, NULL, &gpu, NULL) || gpuir_searcher_create(ix, NULL, &cpu, NULL))
      seed_stop("no searcher");
    if (!gpuir_cuda_attach(gpu, cuda, 0, &err)) search(ix, gpu, cpu, number, right);
    if (!gpuir_cuda_attach(gpu, cuda, 1, &err)) search_phrases(ix, gpu, cpu, number, right);
    gpuir_searcher_destroy(gpu);
    gpuir_searcher_destroy(cpu);
    gpuir_cuda_close(cuda);
  }
  gpuir_close(ix);
}

int main(int argc, char **argv) {
  const unsigned files = argc > 1 ? (unsigned)atoi(argv[1]) : 2000, first = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
  char path[] = "/tmp/gpuir-hostile-XXXXXX";
  gpuir_cuda_info info;
  gpuir_error err;
  seed_image seeds[SEEDS];
  unsigned i;
  int fd;
  if (gpuir_cuda_device(0, &info, &err)) {
    printf("1..0 # SKIP %s\n", err.msg);
    return 0;
  }
  fd = mkstemp(path);
  if (fd < 0) seed_stop("no temporary file");
  (void)close(fd);
  seeds_load(path, seeds);
  for (i = first; i < first + files; i++) {
    seed_damage(seeds, path, i);
    exercise(path, i);
  }
  (void)unlink(path);
  for (i = 0; i < SEEDS; i++) free(seeds[i].bytes);
  printf("# %s: of %u damaged files %u were opened, %u searched on the device, %u of them verified\n", info.device,
      files, opened, on_device, verified);
  report(!faults, "no fault of the device, no docID behind the last document");
  report(!different, "the CPU's hits where the index verifies");
  report(on_device > files / 10, "enough of them reached the device");
  printf("1..%u\n", tests);
  return failures != 0;
}
