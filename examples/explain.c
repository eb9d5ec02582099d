/* explain INDEX QUERY: why the best document scores what it does.
 *
 *     cc -DGPUIR_WITH_UTF8PROC -DGPUIR_WITH_STEMMER -I. examples/explain.c -lutf8proc -lstemmer -lm -pthread -o explain
 *
 * The contributions add up to the score, to the last bit. */
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"
#include <stdio.h>
#include <string.h>

/* Prints what each term adds. */
static void show(const gpuir_explanation *e) {
  size_t i;
  for (i = 0; i < e->nterms; i++) {
    const gpuir_explain_term *t = &e->terms[i];
    printf("%9.4f  %.*s: %u times here, in %u documents\n", (double)t->q * t->contribution / GPUIR_SCORE_ONE,
        (int)t->term_len, t->term, t->tf, t->df);
  }
  printf("%9.4f  in a document of %u tokens, where the mean is %.1f\n", (double)e->score / GPUIR_SCORE_ONE, e->length,
      e->average_length);
}

int main(int argc, char **argv) {
  static gpuir_explanation explanation;
  gpuir_index *index = NULL;
  gpuir_searcher *searcher = NULL;
  gpuir_query *query = NULL;
  gpuir_query_desc desc = {0};
  gpuir_hit best;
  gpuir_error err = {0};
  size_t n = 0;
  int status;
  if (argc != 3) return fprintf(stderr, "usage: explain INDEX QUERY\n"), 2;
  desc.mode = GPUIR_OR;
  status = gpuir_open(argv[1], NULL, &index, &err);
  if (!status) status = gpuir_query_parse(index, &desc, argv[2], strlen(argv[2]), &query, &err);
  if (!status) status = gpuir_searcher_create(index, NULL, &searcher, &err);
  if (!status && (status = gpuir_search(searcher, query, &best, 1, &n))) gpuir_searcher_error(searcher, &err);
  if (!status && n) status = gpuir_explain(searcher, query, best.docid, &explanation);
  if (!status && n) show(&explanation);
  if (status) fprintf(stderr, "explain: %s\n", err.code ? err.msg : gpuir_strerror(status));
  gpuir_searcher_destroy(searcher), gpuir_query_destroy(query), gpuir_close(index);
  return status ? 1 : 0;
}
