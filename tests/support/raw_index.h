/* raw_index.h - static and live indexes of the documents of columns.h, and random queries of them; include after
 * collection.h and wheres.h
 */
#ifndef TESTS_RAW_INDEX_H
#define TESTS_RAW_INDEX_H

#include <dirent.h>
#include <unistd.h>

/* The text of a document: words of which some are frequent, and documents of all lengths. */
static inline size_t text_of(uint32_t id, char *text) {
  rng r = {id + 1};
  const uint32_t n = 1 + rng_below(&r, 30);
  size_t len = 0;
  uint32_t i;
  for (i = 0; i < n; i++) {
    const uint32_t bound = 1 + rng_below(&r, 60);
    len += (size_t)sprintf(text + len, "w%u ", rng_below(&r, bound));
  }
  return len;
}

/* The description of a document, and its text, until the next one is asked for. */
static inline const gpuir_doc_desc *raw_of(uint32_t id, const char **text, size_t *len) {
  static raw_doc one;
  static char room[400];
  *len = text_of(id, room);
  *text = room;
  return raw_describe(id, &one);
}

static inline gpuir_builder_desc where_desc(const char *at, int dense) {
  gpuir_builder_desc d = desc_of(at);
  d.memory = 8 << 20;
  d.positions = 1;
  d.fields = column_fields;
  d.nfields = NCOLUMNS;
  d.dense = dense;
  return d;
}

static inline gpuir_index *make_static(uint32_t n, int dense) {
  gpuir_builder_desc d = where_desc(path, dense);
  gpuir_builder *b;
  gpuir_index *ix;
  gpuir_error err;
  const char *text;
  size_t len;
  uint32_t i;
  assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
  for (i = 0; i < n; i++) {
    const gpuir_doc_desc *desc = raw_of(i, &text, &len);
    assert_int_equal(gpuir_builder_add_text(b, desc, text, len, &err), 0);
  }
  assert_int_equal(gpuir_builder_write(b, NULL, &err), 0);
  gpuir_builder_destroy(b);
  assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
  return ix;
}

/* A snapshot of so many segments, and the handle, from which a third of the documents is deleted. */
static inline gpuir_index *make_live(gpuir_live **live, const char *name, uint32_t n, uint32_t segments) {
  gpuir_live_desc d;
  gpuir_index *ix = NULL;
  gpuir_error err;
  const char *text;
  size_t len;
  uint32_t i;
  memset(&d, 0, sizeof d);
  d.settings = where_desc(name, 0);
  d.create = 1;
  assert_int_equal(gpuir_live_open(&d, live, &err), 0);
  for (i = 0; i < n; i++) {
    const gpuir_doc_desc *desc = raw_of(i, &text, &len);
    assert_int_equal(gpuir_live_add(*live, desc, text, len, &err), 0);
    if (i % (n / segments) != n / segments - 1) continue;
    assert_int_equal(gpuir_live_refresh(*live, &ix, &err), 0);
    gpuir_close(ix);
  }
  for (i = 0; i < n; i += 3) {
    char key[16];
    const size_t key_len = (size_t)sprintf(key, "%u", i / 900 % 2 ? i + 1 : i);
    assert_int_equal(gpuir_live_delete(*live, GPUIR_BY_NAME, key, key_len, NULL, &err), 0);
  }
  assert_int_equal(gpuir_live_refresh(*live, &ix, &err), 0);
  return ix;
}

/* A query's text: words, phrases, prefixes, some negated. */
static inline void query_text(rng *r, char *text) {
  uint32_t i, n = 1 + rng_below(r, 4);
  size_t len = 0;
  text[0] = 0;
  for (i = 0; i < n; i++) {
    const uint32_t bound = 1 + rng_below(r, 60), word = rng_below(r, bound);
    const char *sign = i && rng_below(r, 5) == 0 ? "-" : "";
    switch (rng_below(r, 8)) {
    case 0: len += (size_t)sprintf(text + len, "%s\"w%u w%u\" ", sign, word, rng_below(r, bound)); break;
    case 1: len += (size_t)sprintf(text + len, "%sw%u* ", sign, 1 + word % 9); break;
    default: len += (size_t)sprintf(text + len, "%sw%u ", sign, word);
    }
  }
}

/* Makes a query of a text and of what stands in its description; NULL if the text is none. */
static inline gpuir_query *parsed_by(const gpuir_index *ix, const char *text, const gpuir_query_desc *d) {
  gpuir_query *q = NULL;
  gpuir_error err;
  const int status = gpuir_query_parse(ix, d, text, strlen(text), &q, &err);
  if (status && status != GPUIR_E_QUERY) print_error("%s, where %s: %s\n", text, d->where ? d->where : "", err.msg);
  assert_true(!status || status == GPUIR_E_QUERY);
  return q;
}

static inline gpuir_query *parsed(const gpuir_index *ix, const char *text, const char *where, int mode, int all) {
  gpuir_query_desc d;
  memset(&d, 0, sizeof d);
  d.mode = mode;
  d.where = where;
  d.all = all;
  return parsed_by(ix, text, &d);
}

/* Removes the folder of a live index. */
static inline void remove_live(const char *name) {
  char at[512];
  DIR *dir = opendir(name);
  struct dirent *e;
  while ((e = readdir(dir))) {
    (void)snprintf(at, sizeof at, "%s/%s", name, e->d_name);
    (void)unlink(at);
  }
  (void)closedir(dir);
  assert_int_equal(rmdir(name), 0);
}

#endif
