/* convert_notebook.c - the text of a Jupyter notebook: what stands in its cells. */
#include "convert.h"

#include "json.h"

#include <string.h>

typedef struct notebook {
  made_text text;
  unsigned cells;
} notebook;

static int notebook_is_source(const json_event *e) {
  static const char *const paths[] = {"cells.source", "worksheets.cells.source", "worksheets.cells.input"};
  size_t i;
  for (i = 0; i < sizeof paths / sizeof *paths; i++)
    if (e->path_len == strlen(paths[i]) && !memcmp(e->path, paths[i], e->path_len)) return 1;
  return 0;
}

/* Takes the strings of a cell: its lines, with their ends. */
static int notebook_take_event(void *user, const json_event *e) {
  notebook *b = (notebook *)user;
  if (!notebook_is_source(e)) return 0;
  if (e->kind == JSON_MEMBER && b->cells++) made_add(&b->text, "\n\n", 2, NULL);
  if (e->kind == JSON_STRING) json_unescape(&b->text, e->raw, e->len);
  return 0;
}

const char *convert_notebook(const char *text, size_t n, byte_buf *out) {
  notebook b;
  json_reader j;
  const char *why = NULL;
  memset(&b, 0, sizeof b);
  memset(&j, 0, sizeof j);
  j.take = notebook_take_event;
  j.user = &b;
  if (!json_object(&j, text, n)) why = "the notebook is no object of JSON";
  bytes_add(out, b.text.text.p, b.text.text.n);
  if (b.text.text.failed || j.path.failed) out->failed = 1;
  json_free(&j);
  made_free(&b.text);
  return why;
}

/* Returns whether text[0..n) has the name of a member. */
static int notebook_has_member(const char *text, size_t n, const char *name) {
  const char *end = text + n, *p = text;
  const size_t len = strlen(name);
  while (p < end && (p = (const char *)memchr(p, '"', (size_t)(end - p))) != NULL) {
    if ((size_t)(end - p) >= len && !memcmp(p, name, len)) return 1;
    p++;
  }
  return 0;
}

/* Steps over blanks. */
static void notebook_blanks(const char **text, size_t *n) {
  while (*n && **text && strchr(" \t\r\n", **text)) ++*text, --*n;
}

/* A program that writes notebooks names their members, too, and may begin with a brace: {-# LANGUAGE ... of Haskell is
 * no object, in which a member comes first. */
int convert_is_notebook(const char *text, size_t n) {
  notebook_blanks(&text, &n);
  if (!n || *text != '{') return 0;
  text++, n--;
  notebook_blanks(&text, &n);
  return n && *text == '"' && notebook_has_member(text, n, "\"cells\"") &&
      notebook_has_member(text, n, "\"cell_type\"");
}
