/* column_text.c - numbers, dates and ranges of columns as text, as a where takes them. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE 1 /* timegm */
#endif
#include "column_text.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define LEAST_SECOND (-62167219200) /* of the years 0 to 9999, which alone have four digits */
#define MOST_SECOND 253402300799

int column_number(char out[COLUMN_TEXT], int column, unsigned decimals, int64_t number) {
  const uint64_t size = number < 0 ? (uint64_t)0 - (uint64_t)number : (uint64_t)number;
  const time_t at = (time_t)number;
  uint64_t unit = 1;
  struct tm tm;
  int n;
  if (column == GPUIR_DATE && number >= LEAST_SECOND && number <= MOST_SECOND && gmtime_r(&at, &tm) &&
      strftime(out, COLUMN_TEXT, "%Y-%m-%dT%H:%M:%SZ", &tm))
    return 1;
  for (unsigned i = 0; i < decimals; i++) unit *= 10;
  n = snprintf(out, COLUMN_TEXT, "%s%llu", number < 0 ? "-" : "", (unsigned long long)(size / unit));
  if (decimals && n > 0 && n < COLUMN_TEXT)
    (void)snprintf(out + n, (size_t)(COLUMN_TEXT - n), ".%0*llu", (int)decimals, (unsigned long long)(size % unit));
  return 0;
}

/* Writes a range of dates that is a whole year, month or day. Returns 0 for others. */
static int put_span(char out[COLUMN_TEXT], const gpuir_facet *f) {
  static const char *const forms[] = {"%Y", "%Y-%m", "%Y-%m-%d"};
  const time_t low = (time_t)f->low;
  struct tm from, next;
  if (f->low < LEAST_SECOND || f->high > MOST_SECOND || f->low % 86400 || !gmtime_r(&low, &from)) return 0;
  for (int i = 0; i < 3; i++) {
    next = from;
    if (i == 0) next.tm_year++;
    else if (i == 1) next.tm_mon++;
    else next.tm_mday++;
    if ((i == 0 && from.tm_yday) || (i == 1 && from.tm_mday != 1)) continue;
    if ((int64_t)timegm(&next) - 1 == f->high) return strftime(out, COLUMN_TEXT, forms[i], &from) != 0;
  }
  return 0;
}

void column_range(char out[2 * COLUMN_TEXT], int column, unsigned decimals, const gpuir_facet *facet) {
  out[0] = 0;
  if (column == GPUIR_DATE && put_span(out, facet)) return;
  if (facet->low != INT64_MIN) (void)column_number(out, column, decimals, facet->low);
  if (facet->low == facet->high) return;
  (void)strcat(out, "..");
  if (facet->high != INT64_MAX) (void)column_number(out + strlen(out), column, decimals, facet->high);
}
