/* fuzz_open.c - opens damaged indexes, verifies them, reads all of them and searches them
 *
 *   make build/fuzz/fuzz_open && mkdir -p build/corpus-open && cp some-small.gpuir build/corpus-open
 *   build/fuzz/fuzz_open -max_total_time=60 -max_len=65536 -timeout=20 build/corpus-open
 *
 * The mutator knows the file's structure (structure.h); one mutation in eight is the fuzzer's own, so that files grow,
 * shrink and lose their checksums too. Two files are crossed by exchanging sections. Of each file that opens, a fourth
 * of the documents, lists and queries is read: which, and by which decoder, depends on its bytes alone. At the end it
 * says how many of the files were opened and verified, and how long the slowest took. */
#include "private.h"
#include "exercise.h"
#include "structure.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out,
    size_t most, unsigned seed);

static void scramble(uint8_t *bytes, size_t n, void *user) {
  (void)user;
  (void)LLVMFuzzerMutate(bytes, n, n);
}

static structure structure_of(uint8_t *bytes, size_t len, unsigned seed) {
  structure s;
  s.bytes = bytes;
  s.len = len;
  s.state = seed;
  s.scramble = scramble;
  s.user = NULL;
  return s;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  structure s = structure_of(data, size, seed);
  if (seed % 8 == 0) return LLVMFuzzerMutate(data, size, most);
  structure_mutate(&s);
  return size;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out,
    size_t most, unsigned seed) {
  structure to = structure_of(out, a_size < most ? a_size : most, seed), from;
  uint8_t *copy = (uint8_t *)malloc(b_size + 1);
  if (!copy) return 0;
  memcpy(copy, b, b_size);
  from = structure_of(copy, b_size, seed);
  memcpy(out, a, to.len);
  structure_cross(&to, &from);
  free(copy);
  return to.len;
}

static char path[] = "/tmp/gpuir-fuzz-XXXXXX";
static unsigned long opened, verified;
static double slowest;

static void finish(void) {
  (void)unlink(path);
  (void)fprintf(stderr, "fuzz_open: %lu files opened, %lu verified, the slowest took %.2f s\n", opened, verified,
      slowest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static int fd = -1;
  const uint64_t begin = gpuir__now(), chance = XXH3_64bits(data, size);
  int status;
  double seconds;
  if (fd < 0) {
    fd = mkstemp(path);
    if (fd < 0 || atexit(finish)) abort();
  }
  if (ftruncate(fd, 0) || (size && pwrite(fd, data, size, 0) != (ssize_t)size)) abort();
  exercise_parts = 4;
  exercise_part = (unsigned)(chance % 4);
  exercise_turn = (size_t)(chance >> 4) % 16;
  if (!exercise_file(path, (int)(chance >> 2) % 4, &status)) {
    opened++;
    verified += status == GPUIR_OK;
  }
  seconds = (double)(gpuir__now() - begin) / 1e9;
  if (seconds > slowest) slowest = seconds;
  return 0;
}
