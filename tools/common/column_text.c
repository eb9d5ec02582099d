/* column_text.c - numbers, dates, ranges and values of columns as text, as a where takes them. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE 1 /* timegm */
#endif
#include "column_text.h"

#include "text.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define COLUMN_LEAST_SECOND (-62167219200) /* of the years 0 to 9999, which alone have four digits */
#define COLUMN_MOST_SECOND 253402300799

/* Writes a year with four digits, which strftime does not, and so many of month and day. */
static void column_date(char out[COLUMN_TEXT], const struct tm *tm, int parts) {
  int n = snprintf(out, COLUMN_TEXT, "%04d", tm->tm_year + 1900);
  if (parts > 1) n += snprintf(out + n, COLUMN_TEXT - (size_t)n, "-%02d", tm->tm_mon + 1);
  if (parts > 2) (void)snprintf(out + n, COLUMN_TEXT - (size_t)n, "-%02d", tm->tm_mday);
}

int column_number(char out[COLUMN_TEXT], int column, unsigned decimals, int64_t number) {
  const uint64_t size = number < 0 ? (uint64_t)0 - (uint64_t)number : (uint64_t)number;
  const time_t at = (time_t)number;
  uint64_t unit = 1;
  struct tm tm;
  int n;
  if (column == GPUIR_DATE && number >= COLUMN_LEAST_SECOND && number <= COLUMN_MOST_SECOND && gmtime_r(&at, &tm)) {
    column_date(out, &tm, 3);
    (void)strftime(out + strlen(out), COLUMN_TEXT - strlen(out), "T%H:%M:%SZ", &tm);
    return 1;
  }
  for (unsigned i = 0; i < decimals; i++) unit *= 10;
  n = snprintf(out, COLUMN_TEXT, "%s%llu", number < 0 ? "-" : "", (unsigned long long)(size / unit));
  if (decimals && n > 0 && n < COLUMN_TEXT)
    (void)snprintf(out + n, (size_t)(COLUMN_TEXT - n), ".%0*llu", (int)decimals, (unsigned long long)(size % unit));
  return 0;
}

/* Writes a range of dates that is a whole year, month or day. Returns 0 for others. */
static int column_span(char out[COLUMN_TEXT], const gpuir_facet *f) {
  const time_t low = (time_t)f->low;
  struct tm from, next;
  if (f->low < COLUMN_LEAST_SECOND || f->high > COLUMN_MOST_SECOND || f->low % 86400 || !gmtime_r(&low, &from))
    return 0;
  for (int i = 0; i < 3; i++) {
    next = from;
    if (i == 0) next.tm_year++;
    else if (i == 1) next.tm_mon++;
    else next.tm_mday++;
    if ((i == 0 && from.tm_yday) || (i == 1 && from.tm_mday != 1)) continue;
    if ((int64_t)timegm(&next) - 1 != f->high) continue;
    column_date(out, &from, i + 1);
    return 1;
  }
  return 0;
}

void column_range(char out[2 * COLUMN_TEXT], int column, unsigned decimals, const gpuir_facet *facet) {
  out[0] = 0;
  if (column == GPUIR_DATE && column_span(out, facet)) return;
  if (facet->low != INT64_MIN) (void)column_number(out, column, decimals, facet->low);
  if (facet->low == facet->high) return;
  (void)strcat(out, "..");
  if (facet->high != INT64_MAX) (void)column_number(out + strlen(out), column, decimals, facet->high);
}

/* Writes a value of a key or a path, in quotes where a where needs them. */
static void column_text(column_put put, void *arg, const char *text, size_t len) {
  const int quoted = strcspn(text, " \t\n\v\f\r\",|") != len || strstr(text, "..") != NULL;
  if (quoted) put(arg, "\"", 1);
  for (size_t i = 0; i < len; i++) {
    if (text[i] == '"') put(arg, "\"", 1);
    put(arg, text + i, 1);
  }
  if (quoted) put(arg, "\"", 1);
}

void column_values(column_put put, void *arg, const gpuir_index *index, uint32_t docid, unsigned field) {
  char room[GPUIR_MAX_VALUE + 1], text[COLUMN_TEXT];
  gpuir_field f;
  gpuir_value v;
  if (gpuir_field_get(index, field, &f)) return;
  for (size_t i = 0; !gpuir_doc_value(index, docid, field, i, &v, room); i++) {
    if (i) put(arg, ",", 1);
    if (v.text) {
      column_text(put, arg, v.text, v.len);
      continue;
    }
    (void)column_number(text, f.column, f.decimals, v.number);
    put(arg, text, strlen(text));
  }
}

static void column_string(column_put put, void *arg, const char *text, size_t len) {
  put(arg, "\"", 1);
  text_write(put, arg, TEXT_JSON, text, len);
  put(arg, "\"", 1);
}

void column_members(column_put put, void *arg, const gpuir_index *index, uint32_t docid, const unsigned *fields,
    size_t n) {
  char room[GPUIR_MAX_VALUE + 1], text[COLUMN_TEXT];
  gpuir_field f;
  gpuir_value v;
  int any = 0;
  for (size_t at = 0; at < n; at++) {
    if (gpuir_field_get(index, fields[at], &f) || gpuir_doc_value(index, docid, fields[at], 0, &v, room)) continue;
    const int is_text = v.text != NULL;
    if (any++) put(arg, ",", 1);
    column_string(put, arg, f.name, strlen(f.name));
    put(arg, is_text ? ":[" : ":", is_text ? 2 : 1);
    if (!is_text) {
      const int quoted = column_number(text, f.column, f.decimals, v.number);
      if (quoted) column_string(put, arg, text, strlen(text));
      else put(arg, text, strlen(text));
    }
    for (size_t i = 0; is_text && !gpuir_doc_value(index, docid, fields[at], i, &v, room); i++) {
      if (i) put(arg, ",", 1);
      column_string(put, arg, v.text, v.len);
    }
    if (is_text) put(arg, "]", 1);
  }
}

int column_find(const gpuir_index *index, const char *list, unsigned fields[GPUIR_MAX_FIELDS], size_t *n,
    const char **bad) {
  gpuir_field field;
  for (*n = 0; *list;) {
    const size_t len = strcspn(list, ",");
    unsigned i = 0;
    *bad = list;
    while (!gpuir_field_get(index, i, &field) && (strlen(field.name) != len || strncmp(field.name, list, len) != 0))
      i++;
    if (gpuir_field_get(index, i, &field)) return -1;
    for (size_t j = 0; j < *n; j++)
      if (fields[j] == i) return -1;
    fields[(*n)++] = i;
    list += len + (list[len] == ',');
  }
  return 0;
}
