/* by.c - what by/ and the folders in it list. */
#include "by.h"

#include "guard.h"
#include "values.h"

#include <stdio.h>
#include <time.h>

const by_branch by_branches[BY_BRANCHES] = {{"query", NODE_QUERY_ROOT}, {"hits", NODE_HITS_ROOT},
    {"files", NODE_FILES_ROOT}, {"pass", NODE_PASS_ROOT}, {"grep", NODE_GREP_ROOT}, {"facet", NODE_FACET_ROOT}};

int by_lists(node_kind kind) {
  return kind == NODE_BY_ROOT || kind == NODE_BY || kind == NODE_COLUMN || kind == NODE_VALUE ||
      kind == NODE_FACET_ROOT || kind == NODE_FACET;
}

/* Names on their way into a listing. */
typedef struct names {
  buf text, at; /* NUL-terminated; where each begins, as a hit_link */
  uint32_t n;
} names;

static void put_name(names *x, const char *name, size_t len) {
  hit_link link;
  memset(&link, 0, sizeof link);
  link.name = x->text.len;
  buf_put(&x->text, name, len);
  buf_put(&x->text, "", 1);
  buf_put(&x->at, &link, sizeof link);
  x->n++;
}

/* Lists the fields; in by/ those that have values worth a list. */
static void list_columns(const gpuir_index *index, int facet, names *x) {
  gpuir_field field;
  size_t i;
  for (i = 0; gpuir_field_get(index, i, &field) == GPUIR_OK; i++)
    if (facet || field.column == GPUIR_KEY || field.column == GPUIR_PATH || field.column == GPUIR_DATE)
      put_name(x, field.name, strlen(field.name));
}

static void list_branches(names *x) {
  size_t i;
  for (i = 0; i < BY_BRANCHES; i++) put_name(x, by_branches[i].name, strlen(by_branches[i].name));
}

/* Appends the name of what a facet counts: of a date its year. */
static void put_facet(names *x, int column, const gpuir_facet *facet) {
  char name[NAME_LIMIT + 1];
  size_t n;
  if (column == GPUIR_DATE) {
    const time_t at = (time_t)facet->low;
    struct tm tm;
    n = gmtime_r(&at, &tm) ? (size_t)snprintf(name, sizeof name, "%04d", tm.tm_year + 1900) : 0;
  } else {
    n = facet->value ? values_name(name, facet->value, facet->len) : 0;
  }
  if (n) put_name(x, name, n);
}

#define BY_VALUES 1000u /* that by/<column>/ lists */

/* Lists the most frequent values of documents, of dates their years, and of paths the folders at the top. */
static int list_values(lookup *l, names *x) {
  static const char *const what[] = {"", ":1000", ":", NULL, ":year"}; /* by kind of column */
  char column[NAME_LIMIT + 8];
  gpuir_facets *facets = NULL;
  search_request request;
  gpuir_facet facet;
  gpuir_field field;
  size_t i;
  int rc;
  for (i = 0; gpuir_field_get(generation_index(l->g), i, &field) == GPUIR_OK; i++)
    if (strcmp(field.name, l->column) == 0) break;
  if (strcmp(field.name, l->column) != 0 || field.column == GPUIR_NUMBER) return 0;
  snprintf(column, sizeof column, "%s%s", l->column, what[field.column]);
  memset(&request, 0, sizeof request);
  request.text = "";
  request.where = lookup_where(l);
  request.all = 1;
  rc = lookup_facets(l, &request, column, &facets);
  for (i = 0; rc == 0 && i < BY_VALUES && gpuir_facets_get(facets, 0, i, &facet) == GPUIR_OK; i++)
    put_facet(x, field.column, &facet);
  gpuir_facets_destroy(facets);
  return rc;
}

/* Lists into *x what a folder has. */
static int list(lookup *l, node_kind kind, names *x) {
  int rc = 0;
  if (kind == NODE_VALUE) list_branches(x);
  else if (kind == NODE_COLUMN) rc = list_values(l, x);
  else list_columns(generation_index(l->g), kind == NODE_FACET_ROOT || kind == NODE_FACET, x);
  return rc ? rc : x->text.error ? x->text.error : x->at.error;
}

int by_list(lookup *l, node_kind kind, result **out) {
  names x;
  int rc;
  memset(&x, 0, sizeof x);
  x.text.max = x.at.max = l->f->config.result_bytes;
  guard_enter(generation_broken_flag(l->g));
  rc = list(l, kind, &x);
  guard_leave();
  if (generation_is_broken(l->g)) rc = EIO;
  *out = NULL;
  if (rc == 0) {
    *out = lookup_remember(l->f, NULL, 0, &x.text, (hit_link *)(void *)x.at.data, x.n);
    x.at.data = NULL;
    if (!*out) rc = ENOMEM;
  }
  buf_free(&x.text);
  buf_free(&x.at);
  return rc;
}
