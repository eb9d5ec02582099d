/* fuzz_open.c - opens any bytes as an index, verifies it, reads all of it and searches it
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -I. -Itests/support tests/fuzz/fuzz_open.c -o build/fuzz_open -lm -pthread
 *   mkdir -p build/corpus-open && cp some-small.gpuir build/corpus-open
 *   build/fuzz_open -max_total_time=60 -max_len=65536 -timeout=20 build/corpus-open
 *
 * The checksums of header and table are made right first: guessing them would take a fuzzer forever. */
#include "guard.h"
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"
#include "exercise.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What gpuir_open checks before it looks at anything else. */
static void mend(uint8_t *bytes, size_t size) {
  static const uint8_t start[12] = {'G', 'P', 'U', 'I', 'R', 0x0d, 0x0a, 0x1a, 1, 0, 0, 0};
  uint64_t length = size, hash;
  uint32_t sections;
  if (size < 64 || (bytes[0] & 15) == 0) return; /* some go as they are */
  memcpy(bytes, start, sizeof start);
  memcpy(bytes + 16, &length, 8);
  memcpy(&sections, bytes + 12, 4);
  if (sections > (size - 64) / 32) sections = (uint32_t)((size - 64) / 32);
  if (sections > 40) sections = 40;
  memcpy(bytes + 12, &sections, 4);
  hash = XXH3_64bits(bytes + 64, (size_t)sections * 32);
  memcpy(bytes + 24, &hash, 8);
  hash = XXH3_64bits(bytes, 56);
  memcpy(bytes + 56, &hash, 8);
}

static char path[] = "/tmp/gpuir-fuzz-XXXXXX";

static void remove_file(void) { (void)unlink(path); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static int fd = -1;
  uint8_t *bytes = (uint8_t *)malloc(size ? size : 1);
  int verified;
  if (!bytes) return 0;
  if (fd < 0) {
    fd = mkstemp(path);
    if (fd < 0 || atexit(remove_file)) abort();
  }
  if (size) memcpy(bytes, data, size);
  mend(bytes, size);
  if (ftruncate(fd, 0) || pwrite(fd, bytes, size, 0) != (ssize_t)size) abort();
  free(bytes);
  (void)exercise_file(path, (int)(size % 4), &verified);
  return 0;
}
