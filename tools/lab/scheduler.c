/* scheduler.c - the table of the papers' schedulers for a CPU and a GPU, and what they share. */
#include "scheduler.h"

#include <stdlib.h>
#include <string.h>

const load_scheduler *load_scheduler_of(const char *name) {
  static const load_scheduler *const all[] = {&load_ding, &load_griffin, &load_ao};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (!strcmp(all[i]->policy->name, name)) return all[i];
  return NULL;
}

/* Returns what stands behind "NAME="; NULL: it is another parameter. */
static const char *value_of(const char *parameter, const char *name) {
  const size_t n = strlen(name);
  return !strncmp(parameter, name, n) && parameter[n] == '=' ? parameter + n + 1 : NULL;
}

int load_number(const char *parameter, const char *name, double least, double most, double *value) {
  const char *text = value_of(parameter, name);
  char *end;
  if (!text) return 0;
  const double x = strtod(text, &end);
  if (end == text || *end || !(x >= least && x <= most)) return 0;
  *value = x;
  return 1;
}

/* Returns the number of a word among `choices`, parted by bars; -1: it is none. */
static int choice_of(const char *text, size_t n, const char *choices) {
  int i = 0;
  for (const char *p = choices; n && *p; i++) {
    const size_t m = strcspn(p, "|");
    if (m == n && !memcmp(p, text, n)) return i;
    p += m + (p[m] == '|');
  }
  return -1;
}

int load_choice(const char *parameter, const char *name, const char *choices, int *value) {
  const char *text = value_of(parameter, name);
  const int i = text ? choice_of(text, strlen(text), choices) : -1;
  if (i >= 0) *value = i;
  return i >= 0;
}

int load_choices(const char *parameter, const char *name, const char *choices, int *values, size_t *n) {
  const char *text = value_of(parameter, name);
  uint64_t seen = 0;
  size_t found = 0;
  while (text) {
    const size_t m = strcspn(text, ",");
    const int i = choice_of(text, m, choices);
    if (i < 0 || seen >> i & 1) return 0;
    seen |= (uint64_t)1 << i;
    values[found++] = i;
    text = text[m] ? text + m + 1 : NULL;
  }
  if (found) *n = found;
  return found != 0;
}

int load_numbers(const char *parameter, const char *name, double least, double most, double *values, size_t cap,
    size_t *n) {
  const char *text = value_of(parameter, name);
  size_t found = 0;
  while (text) {
    char *end;
    const double x = strtod(text, &end);
    if (found == cap || end == text || (*end && *end != ',') || !(x >= least && x <= most)) return 0;
    values[found++] = x;
    text = *end ? end + 1 : NULL;
  }
  if (found) *n = found;
  return found != 0;
}

size_t load_lengths(const gpuir_query *query, uint32_t *lengths) {
  size_t n = gpuir_query_dfs(query, lengths, GPUIR_MAX_TERMS);
  if (n > GPUIR_MAX_TERMS) n = GPUIR_MAX_TERMS;
  for (size_t i = 1; i < n; i++)
    for (size_t j = i; j && lengths[j] < lengths[j - 1]; j--) {
      const uint32_t other = lengths[j];
      lengths[j] = lengths[j - 1];
      lengths[j - 1] = other;
    }
  return n;
}
