/* real.h - real text for the GPU's tests: the collection that comes with the project, or any index; include after
 * gpuir.h */
#ifndef TESTS_GPU_REAL_H
#define TESTS_GPU_REAL_H

#include "../support/wordnet.h"

/* Writes the index of tests/data/wordnet.tsv. 0, or a status with *err. */
static int real_build(const char *path, const char *codec, const char *freq_codec, gpuir_error *err) {
  static char line[65536];
  gpuir_builder_desc desc;
  gpuir_builder *b = NULL;
  FILE *in = wordnet_open();
  int status;
  if (!in) {
    (void)snprintf(err->msg, sizeof err->msg, "tests/data/wordnet.tsv is not there");
    return GPUIR_E_NOT_FOUND;
  }
  memset(&desc, 0, sizeof desc);
  desc.path = path;
  desc.codec = codec;
  desc.freq_codec = freq_codec;
  status = gpuir_builder_create(&desc, &b, err);
  while (!status && fgets(line, sizeof line, in)) {
    const char *text = strchr(line, '\t');
    if (text) status = gpuir_builder_add_text(b, NULL, text + 1, strlen(text + 1), err);
  }
  if (!status) status = gpuir_builder_write(b, NULL, err);
  gpuir_builder_destroy(b);
  (void)fclose(in);
  return status;
}

/* The terms of an index, the most frequent one first. */
typedef struct real_terms {
  struct real_term {
    uint64_t id;
    uint32_t df;
  } * term;
  uint32_t n;
} real_terms;

static int real_by_df(const void *x, const void *y) {
  const struct real_term *a = (const struct real_term *)x, *b = (const struct real_term *)y;
  if (a->df != b->df) return a->df < b->df ? 1 : -1;
  return a->id < b->id ? -1 : a->id > b->id;
}

#define REAL_LONGEST 20u /* longer terms are left out, so that queries have room for all of theirs */

static void real_terms_of(const gpuir_index *ix, real_terms *t) {
  gpuir_index_info x;
  uint64_t id;
  (void)gpuir_index_get_info(ix, &x);
  t->term = (struct real_term *)calloc((size_t)x.terms + 1, sizeof *t->term);
  t->n = 0;
  for (id = 0; t->term && id < x.terms; id++) {
    gpuir_term_info info;
    if (gpuir_term_get_info(ix, id, &info) || info.term_len > REAL_LONGEST) continue;
    t->term[t->n].id = id;
    t->term[t->n++].df = info.df;
  }
  qsort(t->term, t->n, sizeof *t->term, real_by_df);
}

static real_terms real_named; /* what queries consist of; n 0: of t0, t1 and so on */

/* From now on, queries consist of this index's terms; NULL: no longer. Returns how many there are. */
static uint32_t real_name(const char *path) {
  gpuir_index *ix;
  gpuir_error err;
  free(real_named.term);
  memset(&real_named, 0, sizeof real_named);
  if (!path) return 0;
  if (gpuir_open(path, NULL, &ix, &err)) {
    printf("Bail out! %s\n", err.msg);
    exit(1);
  }
  real_terms_of(ix, &real_named);
  gpuir_close(ix);
  return real_named.n;
}

/* Writes term t and a space. Returns the bytes. */
static size_t real_word(const gpuir_index *ix, uint32_t t, char *text, size_t cap) {
  gpuir_term_info info;
  if (!real_named.n) return (size_t)snprintf(text, cap, "t%u ", (unsigned)t);
  if (t >= real_named.n || gpuir_term_get_info(ix, real_named.term[t].id, &info)) return 0;
  return (size_t)snprintf(text, cap, "%.*s ", (int)info.term_len, info.term);
}

#endif
