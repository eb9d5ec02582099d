/* by.c - what by/ and the folders in it list. */
#include "by.h"

#include "guard.h"
#include "values.h"

const by_branch by_branches[BY_BRANCHES] = {{"query", NODE_QUERY_ROOT}, {"hits", NODE_HITS_ROOT},
    {"files", NODE_FILES_ROOT}, {"pass", NODE_PASS_ROOT}, {"grep", NODE_GREP_ROOT}};

int by_lists(node_kind kind) {
  return kind == NODE_BY_ROOT || kind == NODE_BY || kind == NODE_COLUMN || kind == NODE_VALUE;
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

static void list_columns(const gpuir_index *index, names *x) {
  gpuir_field field;
  size_t i;
  for (i = 0; gpuir_field_get(index, i, &field) == GPUIR_OK; i++)
    if (field.column == GPUIR_KEY || field.column == GPUIR_PATH || field.column == GPUIR_DATE)
      put_name(x, field.name, strlen(field.name));
}

static void list_branches(names *x) {
  size_t i;
  for (i = 0; i < BY_BRANCHES; i++) put_name(x, by_branches[i].name, strlen(by_branches[i].name));
}

/* Lists into *x what a folder has. */
static int list(lookup *l, node_kind kind, names *x) {
  if (kind == NODE_VALUE) list_branches(x);
  else if (kind != NODE_COLUMN) list_columns(generation_index(l->g), x);
  return x->text.error ? x->text.error : x->at.error;
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
