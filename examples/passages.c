/* passages INDEX QUERY: the places of the best document that answer, with the query's words in [brackets].
 *
 *     cc -DGPUIR_WITH_UTF8PROC -DGPUIR_WITH_STEMMER -I. examples/passages.c -lutf8proc -lstemmer -lm -pthread \
 *       -o passages
 *
 * The index must have been built with --store: otherwise the program has to bring the text, for gpuir_passages. */
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PASSAGES = 3, MARKS = 100 };

/* Prints a passage of a text and puts each mark in brackets; marks of a phrase's words lie within the phrase's. */
static void show(const char *text, const gpuir_passage_room *room, const gpuir_passage *p) {
  size_t at = p->offset, i;
  printf("lines %u to %u\n", (unsigned)p->first_line, (unsigned)p->last_line);
  for (i = p->first_mark; i < p->first_mark + p->marks; i++) {
    const gpuir_mark *m = &room->marks[i];
    if (m->offset < at) continue;
    printf("%.*s[%.*s]", (int)(m->offset - at), text + at, (int)m->bytes, text + m->offset);
    at = m->offset + m->bytes;
  }
  printf("%.*s\n", (int)(p->offset + p->bytes - at), text + at);
}

int main(int argc, char **argv) {
  gpuir_passage passages[PASSAGES];
  gpuir_mark marks[MARKS];
  gpuir_passage_room room = {0};
  gpuir_index *index = NULL;
  gpuir_searcher *searcher = NULL;
  gpuir_query *query = NULL;
  gpuir_hit best;
  gpuir_doc doc;
  char *text = NULL;
  gpuir_error err = {0};
  size_t n = 0, i;
  int status;
  if (argc != 3) return fprintf(stderr, "usage: passages INDEX QUERY\n"), 2;
  room.passages = passages;
  room.cap = PASSAGES;
  room.marks = marks;
  room.marks_cap = MARKS;
  status = gpuir_open(argv[1], NULL, &index, &err);
  if (!status) status = gpuir_query_parse(index, NULL, argv[2], strlen(argv[2]), &query, &err);
  if (!status) status = gpuir_searcher_create(index, NULL, &searcher, &err);
  if (!status && (status = gpuir_search(searcher, query, &best, 1, &n))) gpuir_searcher_error(searcher, &err);
  if (!status && n) status = gpuir_doc_get(index, best.docid, &doc);
  if (!status && n && !(text = malloc((size_t)doc.stored_bytes + 1))) status = GPUIR_E_NOMEM;
  if (!status && n) status = gpuir_doc_text(index, best.docid, 0, text, (size_t)doc.stored_bytes);
  if (!status && n) status = gpuir_doc_passages(query, NULL, best.docid, &room, &err);
  for (i = 0; i < room.n && !status; i++) show(text, &room, &passages[i]);
  if (status) fprintf(stderr, "passages: %s\n", err.code ? err.msg : gpuir_strerror(status));
  gpuir_searcher_destroy(searcher), gpuir_query_destroy(query), gpuir_close(index), free(text);
  return status ? 1 : 0;
}
