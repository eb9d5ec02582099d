/* fuzz_records.c - reads any bytes as documents: whole files, chunks, lines, TSV, JSON, TREC, tables, packed or not
 *
 *   make build/fuzz/fuzz_records && mkdir -p build/corpus-records
 *   build/fuzz/fuzz_records -max_total_time=60 -max_len=8192 -timeout=10 -close_fd_mask=2 build/corpus-records
 *
 * The first byte chooses the format, whether malformed records are passed over, and whether the bytes are said to have
 * an encoding. Every document that comes out has its place within the file, and the text that is made of this place
 * again is the one that came out, its lines among those of the place. What is refused is refused with a message. */
#define _GNU_SOURCE /* as tools.h wants it */
#define UNPACK_BOMB_LEAST ((uint64_t)1 << 20)
#include "gpuir.h"

#include "tools.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t sum; /* keeps the reads from being dropped */

static int input = -1;

/* Makes the text of a document again, and compares. */
static void check_again(const gpuir_doc_desc *d, const char *text, size_t len) {
  source_limits limits;
  struct stat st;
  gpuir_doc doc;
  decoded again;
  memset(&limits, 0, sizeof limits);
  memset(&doc, 0, sizeof doc);
  limits.most = (size_t)64 << 20;
  doc.first_line = d->first_line;
  doc.last_line = d->last_line;
  doc.source_offset = d->source_offset;
  doc.source_bytes = d->source_bytes;
  doc.hash = d->form ? d->hash : 0;
  doc.form = d->form;
  if (fstat(input, &st)) abort();
  if (d->form < DECODE_PACKING && d->source_offset + d->source_bytes > (uint64_t)st.st_size) abort();
  if (!d->source_bytes) return; /* nothing is known of an empty place */
  if ((d->form & DECODE_AS) == DECODE_AS_NOTHING) return;
  if (decode_open_source(input, &st, &doc, "", &limits, &again)) abort();
  if (again.len != len || memcmp(again.text, text, len) != 0) abort();
  for (size_t at = 0; d->first_line && !again.lineless && at < len; at += 1 + len / 16)
    if (decoded_line(&again, at) < d->first_line || decoded_line(&again, at) > d->last_line) abort();
  decoded_free(&again);
}

static int take_document(void *user, const gpuir_doc_desc *doc, const char *text, size_t len) {
  const size_t most = 3 * *(size_t *)user; /* a byte of Windows-1252 is up to three of UTF-8 */
  size_t i;
  if ((doc->form < DECODE_PACKING && len > most) || (!doc->name && doc->name_len) || (!text && len)) abort();
  for (i = 0; i < doc->name_len; i++) sum += (unsigned char)doc->name[i];
  for (i = 0; i < len; i++) sum += (unsigned char)text[i];
  check_again(doc, text, len);
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
    input = fd;
    if (fd < 0 || unlink(path) || dup2(fd, STDIN_FILENO) < 0) abort();
  }
  if (ftruncate(fd, 0) || (size > 1 && pwrite(fd, data + 1, size - 1, 0) != (ssize_t)size - 1) ||
      lseek(STDIN_FILENO, 0, SEEK_SET) < 0)
    abort();
  memset(&in, 0, sizeof in);
  in.format = (decode_format)(data[0] % 8);
  in.chunk_lines = 1 + data[0] / 64;
  in.skip_errors = data[0] >> 4 & 1;
  if (data[0] >> 5 & 1) in.encoding = encoding_name((int)(size % 64)) ? 1 + (int)(size % 64) : 1;
  in.names.max = 1 << 12;
  in.add = take_document;
  in.user = &most;
  status = cli_input_read(&in, "-");
  if (status && !in.malformed && !in.failed && !in.binaries && in.documents) abort();
  cli_input_free(&in);
  return 0;
}
