/* fuzz_exchange.c - imports any bytes as CIFF or as a PISA collection
 *
 *   make build/fuzz/fuzz_exchange && mkdir -p build/corpus-exchange
 *   build/fuzz/fuzz_exchange -max_total_time=60 -max_len=4096 -timeout=10 build/corpus-exchange
 *
 * The first byte says what the others are: 'p' the five files of a collection, each behind its length (two bytes, the
 * low one first; 65535: the file is missing), anything else CIFF. What is imported must verify. It is exported in both
 * formats, imported and exported again, and both exports must be the same. */
#define _GNU_SOURCE /* as the files of the commands below want it */
#include "gpuir.h"

#include "tools/exchange/ciff.c"
#include "tools/exchange/io.c"
#include "tools/exchange/pisa.c"
#include "tools/cli/util.c"
#include "tools/common/text.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[32];

static const char *path_of(const char *name, const char *suffix) {
  static char paths[4][128];
  static unsigned turn;
  char *path = paths[turn++ % 4];
  (void)snprintf(path, sizeof paths[0], "%s/%s%s", folder, name, suffix);
  return path;
}

static void remove_folder(void) {
  static const char *const names[] = {"in", "index", "again", "first", "second"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    (void)unlink(path_of(names[i], ""));
    for (unsigned f = 0; f < ex_pisa.nfiles; f++) (void)unlink(path_of(names[i], ex_pisa.suffix[f]));
  }
  (void)rmdir(folder);
}

static void write_file(const char *path, const uint8_t *bytes, size_t n) {
  FILE *f = fopen(path, "wb");
  if (!f || (n && fwrite(bytes, 1, n, f) != n) || fclose(f)) abort();
}

static void same_bytes(const char *x, const char *y) {
  FILE *a = fopen(x, "rb"), *b = fopen(y, "rb");
  int c;
  if (!a || !b) abort();
  do {
    c = getc(a);
    if (c != getc(b)) abort();
  } while (c != EOF);
  (void)fclose(a);
  (void)fclose(b);
}

static int import(const ex_format *format, const char *from, const char *to) {
  gpuir_builder_desc desc;
  gpuir_build_report report;
  ex_error err;
  ex_in in;
  int status;
  memset(&desc, 0, sizeof desc);
  desc.path = to;
  desc.threads = 1;
  desc.memory = 1 << 20;
  status = ex_import(format, from, &desc, &in, &report, &err);
  ex_import_free(&in);
  if (status && (err.e.code != status || !err.e.msg[0])) abort(); /* every refusal has a cause */
  return status;
}

/* Exports; an index may hold what a format cannot. */
static int export_to(const ex_format *format, const char *from, const char *to) {
  gpuir_index *index = NULL;
  uint64_t not_utf8;
  ex_error err;
  int status, shared;
  if (gpuir_open(from, NULL, &index, NULL) || gpuir_verify(index, NULL)) abort();
  status = ex_export(format, index, from, to, &not_utf8, &shared, &err);
  gpuir_close(index);
  if (status && status != GPUIR_E_UNSUPPORTED && status != GPUIR_E_LIMIT) abort();
  return status;
}

static void round_trip(const ex_format *format) {
  const char *first = path_of("first", ""), *second = path_of("second", "");
  if (export_to(format, path_of("index", ""), first)) return;
  if (import(format, first, path_of("again", "")) || export_to(format, path_of("again", ""), second)) abort();
  for (unsigned f = 0; f < format->nfiles; f++)
    same_bytes(path_of("first", format->suffix[f]), path_of("second", format->suffix[f]));
}

/* Writes the input's files. */
static const ex_format *unpack(const uint8_t *data, size_t size) {
  if (data[0] != 'p') {
    write_file(path_of("in", ""), data + 1, size - 1);
    return &ex_ciff;
  }
  data++, size--;
  for (unsigned f = 0; f < ex_pisa.nfiles; f++) {
    const char *path = path_of("in", ex_pisa.suffix[f]);
    size_t n = size < 2 ? 0 : data[0] + 256u * data[1];
    if (size >= 2) data += 2, size -= 2;
    (void)unlink(path);
    if (n == 65535) continue;
    if (n > size) n = size;
    write_file(path, data, n);
    data += n;
    size -= n;
  }
  return &ex_pisa;
}

/* In memory where there is a place for that: every index and export is made to last by fsync. */
static void make_folder(void) {
  (void)snprintf(folder, sizeof folder, "%s/gpuir-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
  if (!mkdtemp(folder) || atexit(remove_folder)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!*folder) make_folder();
  if (!size) return 0;
  if (import(unpack(data, size), path_of("in", ""), path_of("index", ""))) return 0;
  round_trip(&ex_ciff);
  round_trip(&ex_pisa);
  return 0;
}
