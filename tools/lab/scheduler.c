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

/* What stands behind "NAME="; NULL: it is another parameter. */
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

int load_choice(const char *parameter, const char *name, const char *choices, int *value) {
  const char *text = value_of(parameter, name);
  const size_t n = text ? strlen(text) : 0;
  int i = 0;
  for (const char *p = choices; n && *p; i++) {
    const size_t m = strcspn(p, "|");
    if (m == n && !memcmp(p, text, n)) {
      *value = i;
      return 1;
    }
    p += m + (p[m] == '|');
  }
  return 0;
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
