/* table.h - rows of a table with a head: CSV as RFC 4180 has it, or lines of fields that tabs part.
 *
 * A field of CSV may stand between quotes, and then holds commas, line breaks, and "" for a quote. Which of a row's
 * fields are its text is a mask: the first one always is, bit i says so of the one i + 1 behind it.
 */
#ifndef GPUIR_TABLE_H
#define GPUIR_TABLE_H

#include "bytes.h"
#include "made.h"

#define TABLE_MASK_BITS 6u

typedef struct table_cell {
  const char *raw; /* with its quotes */
  size_t len;
  int quoted;
} table_cell;

/* Zeroed. */
typedef struct table_cells {
  byte_buf cells; /* table_cell */
  size_t n;
  const char *why; /* what is wrong with the row */
  size_t where; /* at which byte, from 1 */
  int part; /* set it where the text is fields of a row, in which no line end is the row's */
  int short_of; /* the text ends within quotes: with more of it, it may be one */
} table_cells;

/* Reads the row that text[0..len) begins with, up to a line end or the end. `tabs`: tabs part the fields, and quotes
 * have no meaning. Returns its bytes with the line end; 0: it is none. */
size_t table_read(table_cells *t, int tabs, const char *text, size_t len);
static inline const table_cell *table_at(const table_cells *t, size_t i) {
  return (const table_cell *)(const void *)t->cells.p + i;
}
/* Appends what a field holds. */
void table_put(const table_cell *cell, made_text *out);
/* Appends the fields of the row that are its text, without empty ones, a line end between them: from number `first` on,
 * as the mask says. */
void table_text(const table_cells *t, size_t first, unsigned mask, made_text *out);
static inline void table_free(table_cells *t) { bytes_free(&t->cells); }

#endif
