/* values.h - fields, and what documents have in them, for indexes that are damaged
 *
 * Include it behind gpuir.h. */
#ifndef VALUES_H
#define VALUES_H

#include <stdio.h>
#include <string.h>

static const gpuir_field seed_fields[] = {{"lang", NULL, GPUIR_KEY, 0}, {"dir", NULL, GPUIR_PATH, 0},
    {"price", NULL, GPUIR_NUMBER, 2}, {"day", NULL, GPUIR_DATE, 0}};
enum { SEED_FIELDS = sizeof seed_fields / sizeof *seed_fields };

/* Gives document d values: up to three keys, a folder, and numbers that some lack. */
static void seed_values(unsigned d, gpuir_doc_desc *doc) {
  static char text[4][24];
  static gpuir_value values[6];
  unsigned i, n = 0;
  memset(values, 0, sizeof values);
  for (i = 0; i < 4; i++) {
    gpuir_value *v = &values[n];
    if (i < 3 && i >= d % 4) continue;
    v->field = i == 3;
    v->text = text[i];
    v->len = (size_t)snprintf(text[i], sizeof *text, i == 3 ? "src/%u" : "lang%u", (d * 7 + i * 5) % (i == 3 ? 50 : 9));
    n++;
  }
  if (d % 5) values[n].field = 2, values[n++].number = d % 90 ? (int64_t)d * 25 - 3000 : INT64_MIN;
  values[n].field = 3;
  values[n++].number = 86400 * (int64_t)(d / 100);
  doc->values = values;
  doc->nvalues = n;
}

#endif
