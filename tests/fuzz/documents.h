/* documents.h - reads any bytes as documents, in one unit with a fuzzer
 *
 * Every document that comes out has its place within the file, and the text that is made of this place again is the one
 * that came out, its lines among those of the place. Otherwise the program aborts. Include it first, with _GNU_SOURCE
 * defined. */
#ifndef DOCUMENTS_H
#define DOCUMENTS_H

#define UNPACK_BOMB_LEAST ((uint64_t)1 << 20)
#include "gpuir.h"

#include "tools.h"

static size_t sum; /* keeps the reads from being dropped */

static int input = -1;
static int was_stale;

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
  const int rc = decode_open_source(input, &st, &doc, "", &limits, &again);
  was_stale |= rc == ESTALE && d->form % DECODE_CONVERSION >= DECODE_PACKING;
  if (rc == ESTALE && was_stale) return; /* what follows in the packed file is damaged, which is said at its end */
  if (rc) abort();
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

/* Reads data[1..size) as data[0] says. Returns how many documents there were. */
static uint64_t read_any(const uint8_t *data, size_t size) {
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
  was_stale = 0;
  in.format = (decode_format)(data[0] % 8);
  in.chunk_lines = 1 + data[0] / 64;
  in.skip_errors = data[0] >> 4 & 1;
  if (data[0] >> 5 & 1) in.encoding = encoding_name((int)(size % 64)) ? 1 + (int)(size % 64) : 1;
  in.names.max = 1 << 12;
  in.add = take_document;
  in.user = &most;
  status = cli_input_read(&in, "-");
  if (status && !in.malformed && !in.failed && !in.binaries && in.documents) abort();
  if (was_stale && !in.failed) abort();
  cli_input_free(&in);
  return in.documents;
}

#endif
