/* json_read.c - reads a file of JSON as the command does, for json_oracle.py
 *
 *   json_read FILE    prints a line a document, "line TAB id TAB text" with id and text in hexadecimal digits, and of
 *                     what is malformed "line TAB !"
 */
#define _GNU_SOURCE
#include "gpuir.h"

#include "tests/fuzz/reading.h"

static void print_hex(const char *s, size_t n) {
  size_t i;
  for (i = 0; i < n; i++) printf("%02x", (unsigned char)s[i]);
}

static int on_document(void *user, const decode_document *d) {
  (void)user;
  printf("%llu\t", (unsigned long long)d->first);
  print_hex(d->name, d->name_len);
  printf("\t");
  print_hex(d->text, d->len);
  printf("\n");
  return 0;
}

static int on_malformed(void *user, uint64_t line, const char *why, size_t where) {
  (void)user, (void)where;
  printf("%llu\t!\t%s\n", (unsigned long long)line, why);
  return 0;
}

int main(int argc, char **argv) {
  decode_run d;
  record_reader records;
  text_reader r;
  reader_kind kind;
  const int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
  int status;
  memset(&d, 0, sizeof d);
  if (fd < 0 || records_open(&records, "", 0)) return 2;
  reader_open(&r, fd, DECODE_MOST);
  if (reader_begin(&r, &kind) || kind != READER_TEXT) return 2;
  d.format = DECODE_JSON;
  d.name = argv[1];
  d.records = &records;
  d.document = on_document;
  d.malformed = on_malformed;
  status = decode_file(&d, &r);
  reader_close(&r);
  records_close(&records);
  (void)close(fd);
  return status ? 1 : 0;
}
