/* cursor INDEX TERM OTHER: the documents that hold both terms, by cursors on their postings.
 *
 *     cc -DGPUIR_WITH_UTF8PROC -DGPUIR_WITH_STEMMER -I. examples/cursor.c -lutf8proc -lstemmer -lm -pthread -o cursor
 *
 * Terms are what the index's analyzer makes of words: small letters, and stems if it has them. An index of a file, not
 * of a live folder, has cursors. */
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"
#include <stdio.h>
#include <string.h>

static int open_term(const gpuir_index *index, const char *term, gpuir_cursor **cursor, gpuir_error *err) {
  uint64_t id;
  const int status = gpuir_term_find(index, term, strlen(term), &id);
  return status ? status : gpuir_cursor_open(index, id, cursor, err);
}

/* Leaps from one list to the other: each cursor moves to the first document that the other one may have. */
static void intersect(const gpuir_index *index, gpuir_cursor *a, gpuir_cursor *b) {
  uint32_t docid = gpuir_cursor_docid(a);
  while (docid != GPUIR_END) {
    const uint32_t other = gpuir_cursor_next_geq(b, docid);
    gpuir_doc doc;
    char name[256];
    if (other != docid) {
      docid = other == GPUIR_END ? other : gpuir_cursor_next_geq(a, other);
      continue;
    }
    if (!gpuir_doc_get(index, docid, &doc)) {
      gpuir_doc_name(&doc, name, sizeof name);
      printf("%s: %u and %u times\n", name, gpuir_cursor_tf(a), gpuir_cursor_tf(b));
    }
    docid = gpuir_cursor_next(a);
  }
}

int main(int argc, char **argv) {
  gpuir_index *index = NULL;
  gpuir_cursor *a = NULL, *b = NULL;
  gpuir_error err = {0};
  int status;
  if (argc != 4) return fprintf(stderr, "usage: cursor INDEX TERM OTHER\n"), 2;
  status = gpuir_open(argv[1], NULL, &index, &err);
  if (!status) status = open_term(index, argv[2], &a, &err);
  if (!status) status = open_term(index, argv[3], &b, &err);
  if (!status) intersect(index, a, b);
  if (status) fprintf(stderr, "cursor: %s\n", err.code ? err.msg : gpuir_strerror(status));
  gpuir_cursor_close(a), gpuir_cursor_close(b), gpuir_close(index);
  return status ? 1 : 0;
}
