/* fuzz_records.c - reads any bytes as documents: whole files, chunks, lines, TSV, JSON lines, TREC
 *
 *   make build/fuzz/fuzz_records && mkdir -p build/corpus-records
 *   build/fuzz/fuzz_records -max_total_time=60 -max_len=8192 -timeout=10 -close_fd_mask=2 build/corpus-records
 *
 * The first byte chooses the format and whether malformed records are passed over. Every document that comes out has
 * its name and its text within what it came from, and what is refused is refused with a message. */
#define _GNU_SOURCE /* as the files of the commands below want it */
#include "gpuir.h"

#include "tools/cli/entity.c"
#include "tools/cli/filter.c"
#include "tools/cli/input.c"
#include "tools/cli/json.c"
#include "tools/cli/util.c"
#define place source_place /* input.c has its own */
#define read_text source_read_text
#include "tools/common/source.c"
#undef place
#undef read_text
#include "tools/common/text.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t sum; /* keeps the reads from being dropped */

static int take_document(void *user, const gpuir_doc_desc *doc, const char *text, size_t len) {
  size_t *most = (size_t *)user, i;
  if (len > *most || (!doc->name && doc->name_len) || (!text && len)) abort();
  for (i = 0; i < doc->name_len; i++) sum += (unsigned char)doc->name[i];
  for (i = 0; i < len; i++) sum += (unsigned char)text[i];
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static int fd = -1;
  static char path[] = "/tmp/gpuir-fuzz-XXXXXX";
  cli_input in;
  size_t most = size;
  int status;
  if (!size) return 0;
  if (fd < 0) {
    fd = mkstemp(path);
    if (fd < 0 || unlink(path) || dup2(fd, STDIN_FILENO) < 0) abort();
  }
  if (ftruncate(fd, 0) || (size > 1 && pwrite(fd, data + 1, size - 1, 0) != (ssize_t)size - 1) ||
      lseek(STDIN_FILENO, 0, SEEK_SET) < 0)
    abort();
  memset(&in, 0, sizeof in);
  in.format = (cli_format)(data[0] % 6);
  in.chunk_lines = 1 + data[0] / 64;
  in.skip_errors = data[0] >> 4 & 1;
  in.names_max = 1 << 12;
  in.add = take_document;
  in.user = &most;
  status = cli_input_read(&in, "-");
  if (status && !in.malformed && !in.failed && !in.binaries && in.documents) abort();
  cli_input_free(&in);
  return 0;
}
