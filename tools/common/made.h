/* made.h - a text that is made of a record, and from which bytes of the record each of its bytes was made. */
#ifndef GPUIR_MADE_H
#define GPUIR_MADE_H

#include "bytes.h"

/* From byte `text` of a text on, up to the next run, each byte comes from the one of the record that lies as far behind
 * `record`, or from the last one before the next run's. */
typedef struct made_run {
  size_t text, record;
} made_run;

/* Zeroed, with `base` filled in where the runs are asked for. */
typedef struct made_text {
  byte_buf text;
  const char *base; /* the record; NULL: runs are not asked for */
  byte_buf runs; /* made_run */
} made_text;

/* Appends n bytes, which were made of the record at `from`. */
static inline void made_add(made_text *m, const void *p, size_t n, const char *from) {
  if (m->base && n) {
    const size_t runs = m->runs.n / sizeof(made_run);
    const made_run run = {m->text.n, (size_t)(from - m->base)};
    const made_run *last = runs ? (const made_run *)(const void *)m->runs.p + runs - 1 : NULL;
    if (!last || run.record - last->record != run.text - last->text) bytes_add(&m->runs, &run, sizeof run);
  }
  bytes_add(&m->text, p, n);
}

static inline void made_char(made_text *m, int c, const char *from) {
  const char byte = (char)c;
  made_add(m, &byte, 1, from);
}

/* Appends a character's bytes. */
void made_utf8(made_text *m, unsigned long c, const char *from);

/* Returns the byte of the record that byte `at` of the text was made of. */
size_t made_record(const made_text *m, size_t at);

static inline void made_free(made_text *m) {
  bytes_free(&m->text);
  bytes_free(&m->runs);
}

#endif
