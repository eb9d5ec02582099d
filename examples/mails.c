/* mails INDEX WHERE [WORD...]: the mails that have these values, best first: date, sender, subject.
 *
 *     gpuir index --field from=key --field subject=key --field date=date mails -o mails.gpuir
 *     cc -DGPUIR_WITH_UTF8PROC -DGPUIR_WITH_STEMMER -I. examples/mails.c -lutf8proc -lstemmer -lm -pthread -o mails
 *     ./mails mails.gpuir 'from=ann@example.org date=2024-01..2024-03' boat
 *
 * Without a WORD it lists the first of all that have them, in the order in which they were indexed. */
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { HITS = 20 };

/* Returns the number of a field, or GPUIR_MAX_FIELDS: there is none. */
static unsigned field_of(const gpuir_index *index, const char *name) {
  gpuir_field field;
  unsigned i;
  for (i = 0; gpuir_field_get(index, i, &field) == GPUIR_OK; i++)
    if (strcmp(field.name, name) == 0) return i;
  return GPUIR_MAX_FIELDS;
}

/* Prints the first value of a document in a field, or a '-'. */
static void print_value(const gpuir_index *index, uint32_t docid, const char *name, const char *end) {
  char room[GPUIR_MAX_VALUE + 1], day[32] = "-";
  gpuir_value value;
  if (gpuir_doc_value(index, docid, field_of(index, name), 0, &value, room) != GPUIR_OK) {
    printf("-%s", end);
  } else if (value.text) {
    printf("%s%s", value.text, end);
  } else {
    const time_t seconds = (time_t)value.number;
    const struct tm *tm = gmtime(&seconds);
    if (tm) strftime(day, sizeof day, "%Y-%m-%d", tm);
    printf("%s%s", day, end);
  }
}

static int search(const gpuir_index *index, const char *where, const char *text, gpuir_error *err) {
  gpuir_query_desc desc = {0};
  gpuir_query *query = NULL;
  gpuir_searcher *searcher = NULL;
  gpuir_hit hits[HITS];
  size_t i, n = 0;
  int status;
  desc.where = where;
  desc.all = !*text;
  status = gpuir_query_parse(index, &desc, text, strlen(text), &query, err);
  if (!status) status = gpuir_searcher_create(index, NULL, &searcher, err);
  if (!status && (status = gpuir_search(searcher, query, hits, HITS, &n)) != 0) gpuir_searcher_error(searcher, err);
  for (i = 0; i < n && !status; i++) {
    print_value(index, hits[i].docid, "date", "  ");
    print_value(index, hits[i].docid, "from", "  ");
    print_value(index, hits[i].docid, "subject", "\n");
  }
  gpuir_searcher_destroy(searcher);
  gpuir_query_destroy(query);
  return status;
}

int main(int argc, char **argv) {
  gpuir_index *index = NULL;
  gpuir_error err = {0};
  char text[1000] = "";
  int i, status;
  if (argc < 3) return fprintf(stderr, "usage: mails INDEX WHERE [WORD...]\n"), 2;
  for (i = 3; i < argc; i++) {
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%s", used ? " " : "", argv[i]);
  }
  status = gpuir_open(argv[1], NULL, &index, &err);
  if (!status) status = search(index, argv[2], text, &err);
  if (status) fprintf(stderr, "mails: %s\n", err.code ? err.msg : gpuir_strerror(status));
  gpuir_close(index);
  return status ? 1 : 0;
}
