/* fuzz_path.c - reads any bytes as a name in the mount: a query, an option folder, values of a field,
 * a document, a link
 *
 *   make build/fuzz/fuzz_path && mkdir -p build/corpus-path
 *   build/fuzz/fuzz_path -max_total_time=60 -max_len=300 -timeout=10 build/corpus-path
 *
 * What is read stays within the room that path.h promises, options that are refused change nothing, and a link's name
 * holds nothing that a path or a terminal would take amiss. */
#define _POSIX_C_SOURCE 200809L
#include "gpuir.h"

#include "fuse/common.c"
#include "fuse/path.c"
#include "fuse/values.c"
#include "tools/common/text.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds) {
  if (!holds) abort();
}

static void check_link(const char *name, size_t len) {
  char link[NAME_LIMIT + 1];
  size_t n = name_link(link, 7, 3, name, len), i;
  check(n <= NAME_LIMIT && strlen(link) == n && name_link_rank(link, n) == 7);
  for (i = 0; i < n; i++) check(link[i] != '/' && (unsigned char)link[i] >= 32 && link[i] != 127);
}

/* The name as values of a field, as a value itself, and as two wheres. */
static void check_values(const char *name, size_t len) {
  char predicate[PREDICATE_SIZE], joined[WHERE_LIMIT + 1], value[NAME_LIMIT + 1], back[NAME_LIMIT + 1];
  size_t n = values_name(value, name, len), m = 0;
  if (n) {
    check(n <= NAME_LIMIT && strlen(value) == n && !strchr(value, '/'));
    check(!name_unescape(value, n, back, &m) && m == len && !memcmp(back, name, len));
  }
  if (values_predicate("x", 1, name, len, predicate)) return;
  check(strlen(predicate) < sizeof predicate);
  if (!values_join(predicate, predicate, joined)) check(strlen(joined) <= WHERE_LIMIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  name_options options, before;
  char *name, *text;
  size_t n = 0;
  uint64_t generation;
  uint32_t docid;
  int format, mode;
  if (!size || !(name = (char *)malloc(size)) || !(text = (char *)malloc(2 * size))) return 0;
  memcpy(name, data, size); /* blocks of the exact size: the sanitizer sees a byte too many */
  memset(&options, 0, sizeof options);
  before = options;
  if (name_option(name, size, OPTIONS_ALL, 1000, &options)) check(!memcmp(&options, &before, sizeof options));
  check_values(name, size);
  if (!name_query(name, size, text, &n, &format))
    check(n <= 2 * size && format >= FORMAT_PLAIN && format <= FORMAT_PATHS);
  if (!name_unescape(name, size, text, &n)) check(n <= size);
  (void)name_document(name, size, &generation, &docid);
  (void)name_mode(name, size, &mode);
  (void)name_is_never(name, size);
  (void)name_is_probe(name, size);
  (void)name_link_rank(name, size);
  check_link(name, size);
  free(name);
  free(text);
  return 0;
}
