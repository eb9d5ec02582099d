/* copy.c - takes documents over from one index to another */
#include "cli.h"

#include "../common/source.h"

#include <stdlib.h>
#include <string.h>

void cli_copier_open(cli_copier *c, const char *from, const char *to) {
  memset(c, 0, sizeof *c);
  c->from = source_home(from);
  c->to = source_home(to);
}

void cli_copier_close(cli_copier *c) {
  free(c->from);
  free(c->to);
  cli_buf_free(&c->path);
  cli_buf_free(&c->name);
  cli_buf_free(&c->values);
  cli_buf_free(&c->value_text);
  cli_buf_free(&c->text);
}

/* Finds what the new index stores of a document's source: a path from its own folder on, or an absolute one. */
static void move_source(cli_copier *c, gpuir_doc_desc *d) {
  cli_buf *path = &c->path;
  if (!c->from || !c->to || !strcmp(c->from, c->to) || !d->source_len || memchr(d->source, 0, d->source_len)) return;
  path->n = 0;
  if (d->source[0] != '/') {
    cli_buf_text(path, c->from);
    cli_buf_char(path, '/');
  }
  cli_buf_add(path, d->source, d->source_len);
  cli_buf_char(path, 0);
  d->source = source_stored(c->to, path->p);
  d->source_len = strlen(d->source);
}

/* Reads the text that the old index has stored. */
static int stored_text(cli_copier *c, const gpuir_index *index, uint32_t docid, const gpuir_doc *doc,
    gpuir_error *err) {
  const size_t n = (size_t)doc->stored_bytes;
  const int r = doc->stored ? gpuir_doc_text(index, docid, 0, cli_buf_room(&c->text, n + 1), n) : GPUIR_OK;
  if (!r) return 0;
  err->code = r;
  (void)snprintf(err->msg, sizeof err->msg, "the text of document %lu: %s", (unsigned long)docid, gpuir_strerror(r));
  return r;
}

int cli_copier_add(cli_copier *c, const gpuir_index *index, uint32_t docid, const gpuir_doc *doc,
    gpuir_builder *builder, gpuir_error *err) {
  gpuir_doc_desc d;
  memset(&d, 0, sizeof d);
  d.name = cli_doc_name(&c->name, doc);
  d.name_len = doc->name_len;
  d.source = doc->source;
  d.source_len = doc->source_len;
  d.first_line = doc->first_line;
  d.last_line = doc->last_line;
  d.source_offset = doc->source_offset;
  d.source_bytes = doc->source_bytes;
  d.hash = doc->hash;
  d.form = doc->form;
  move_source(c, &d);
  cli_values_copy(index, docid, &c->values, &c->value_text, &d);
  if (stored_text(c, index, docid, doc, err)) return err->code;
  return gpuir_builder_add_doc(builder, &d, doc->length, c->text.p, (size_t)doc->stored_bytes, err);
}
