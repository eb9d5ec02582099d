/* column_text.h - numbers, dates and ranges of columns as text, as a where takes them. */
#ifndef GPUIR_COMMON_COLUMN_TEXT_H
#define GPUIR_COMMON_COLUMN_TEXT_H

#include "gpuir.h"

#define COLUMN_TEXT 64 /* bytes that a number or a date takes at most, with its NUL */

/* Writes a number with its decimals, or a date; of a date that no calendar has, its seconds. Returns 1 where it wrote a
 * date, else 0. */
int column_number(char out[COLUMN_TEXT], int column, unsigned decimals, int64_t number);
/* Writes the range of a facet of a number or a date. A whole year, month or day is written as such, one value alone. */
void column_range(char out[2 * COLUMN_TEXT], int column, unsigned decimals, const gpuir_facet *facet);

#endif
