/* column_text.h - numbers, dates and ranges of columns as text, as a where takes them. */
#ifndef GPUIR_COMMON_COLUMN_TEXT_H
#define GPUIR_COMMON_COLUMN_TEXT_H

#include "gpuir.h"

#include <stddef.h>

#define COLUMN_TEXT 64 /* bytes that a number or a date takes at most, with its NUL */

/* Writes a number with its decimals, or a date; of a date that no calendar has, its seconds. Returns 1 where it wrote a
 * date, else 0. */
int column_number(char out[COLUMN_TEXT], int column, unsigned decimals, int64_t number);
/* Writes the range of a facet of a number or a date. A whole year, month or day is written as such, one value alone. */
void column_range(char out[2 * COLUMN_TEXT], int column, unsigned decimals, const gpuir_facet *facet);

/* Takes bytes. */
typedef void (*column_put)(void *arg, const char *bytes, size_t n);
/* Writes the values that a document has in a field, as a where has them behind `name=`; of none nothing. */
void column_values(column_put put, void *arg, const gpuir_index *index, uint32_t docid, unsigned field);
/* Writes the members of an object of JSON that has what a document carries in fields[0..n): arrays of strings, numbers,
 * and dates as strings; fields without a value have none. */
void column_members(column_put put, void *arg, const gpuir_index *index, uint32_t docid, const unsigned *fields,
    size_t n);
/* Finds the fields that a list with commas names, each once, in fields[0..*n). 0; or -1: then *bad is where the name
 * begins that is none, or is there twice. */
int column_find(const gpuir_index *index, const char *list, unsigned fields[GPUIR_MAX_FIELDS], size_t *n,
    const char **bad);

#endif
