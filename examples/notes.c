/* notes FOLDER: keeps notes in a live index. A line of standard input is
 *
 *     NAME: TEXT      writes the note NAME anew
 *     -NAME           deletes it
 *     ?QUERY          shows the ten best notes
 *
 *     cc -I. examples/notes.c -lm -pthread -o notes
 *
 * What was written is safe on disk at the end of the input. */
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"
#include <stdio.h>
#include <string.h>

/* Shows the best notes: a refresh shows what was written, at the cost of a small file that is not yet safe on disk. */
static int find(gpuir_live *notes, const char *words, gpuir_error *err) {
  gpuir_index *index = NULL;
  gpuir_searcher *searcher = NULL;
  gpuir_query *query = NULL;
  gpuir_hit hits[10];
  gpuir_doc doc;
  char name[256];
  size_t n = 0;
  int status = gpuir_live_refresh(notes, &index, err);
  if (!status) status = gpuir_query_parse(index, NULL, words, strlen(words), &query, err);
  if (!status) status = gpuir_searcher_create(index, NULL, &searcher, err);
  if (!status && (status = gpuir_search(searcher, query, hits, 10, &n))) gpuir_searcher_error(searcher, err);
  for (size_t i = 0; i < n && gpuir_doc_get(index, hits[i].docid, &doc) == GPUIR_OK; i++) {
    char text[1000]; /* what fits of a note */
    const size_t len = doc.stored_bytes < sizeof text ? (size_t)doc.stored_bytes : sizeof text;
    if (gpuir_doc_text(index, hits[i].docid, 0, text, len)) break;
    gpuir_doc_name(&doc, name, sizeof name);
    printf("%s: %.*s\n", name, (int)len, text);
  }
  gpuir_searcher_destroy(searcher), gpuir_query_destroy(query), gpuir_close(index);
  return status == GPUIR_E_QUERY ? printf("%s\n", err->msg), GPUIR_OK : status;
}

/* Does what a line says. */
static int note(gpuir_live *notes, char *line, gpuir_error *err) {
  gpuir_doc_desc doc = {0};
  char *text = strchr(line, ':');
  if (line[0] == '?') return find(notes, line + 1, err);
  if (line[0] == '-' && line[1]) return gpuir_live_delete(notes, GPUIR_BY_NAME, line + 1, strlen(line + 1), NULL, err);
  if (!text || text == line) return printf("NAME: TEXT, -NAME or ?QUERY\n"), GPUIR_OK;
  doc.name = line;
  doc.name_len = (size_t)(text - line);
  text += 1 + strspn(text + 1, " ");
  int status =
      gpuir_live_delete(notes, GPUIR_BY_NAME, doc.name, doc.name_len, NULL, err); /* both become visible at once */
  return status ? status : gpuir_live_add(notes, &doc, text, strlen(text), err);
}

int main(int argc, char **argv) {
  gpuir_live_desc desc = {0};
  gpuir_live *notes = NULL;
  gpuir_error err = {0};
  char line[65536];
  int more = 1;
  if (argc != 2) return fprintf(stderr, "usage: notes FOLDER\n"), 2;
  desc.settings.path = argv[1];
  desc.settings.store_text = desc.settings.positions = desc.create = 1;
  int status = gpuir_live_open(&desc, &notes, &err);
  while (!status && fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    status = note(notes, line, &err);
    fflush(stdout);
  }
  if (!status) status = gpuir_live_commit(notes, &err); /* safe on disk, and seen by other processes */
  while (!status && more) status = gpuir_live_merge(notes, 0, &more, &err);
  if (!status) status = gpuir_live_commit(notes, &err);
  if (status) fprintf(stderr, "notes: %s\n", err.code ? err.msg : gpuir_strerror(status));
  gpuir_live_close(notes);
  return status ? 1 : 0;
}
