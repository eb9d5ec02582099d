/* fuzz_records.c - reads any bytes as documents: whole files, chunks, lines, TSV, JSON, TREC, tables, packed or not
 *
 *   make build/fuzz/fuzz_records && mkdir -p build/corpus-records
 *   build/fuzz/fuzz_records -max_total_time=60 -max_len=8192 -timeout=10 -close_fd_mask=2 build/corpus-records
 *
 * The first byte chooses the format, whether malformed records are passed over, and whether the bytes are said to have
 * an encoding. Every document that comes out has its place within the file, and the text that is made of this place
 * again is the one that came out, its lines among those of the place. What is refused is refused with a message. */
#define _GNU_SOURCE /* as tools.h wants it */
#include "documents.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  (void)read_any(data, size);
  return 0;
}
