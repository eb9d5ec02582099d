/* expand.c - gpuir query --expand: the words that the best hits of a query have in common, read as passages read them.
 */
#include "cli.h"

#include "../common/advice.h"
#include "../common/decode.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

char *cli_text_of(cli_passages *p, const gpuir_index *index, uint32_t docid, size_t *len) {
  char absolute[PATH_MAX], *copy = NULL;
  gpuir_doc doc;
  decoded text;
  memset(&text, 0, sizeof text);
  if (gpuir_doc_get(index, docid, &doc)) return NULL;
  if (passages_path(&p->how, &doc, docid, absolute, sizeof absolute)) cli_die("%s", gpuir_strerror(GPUIR_E_NOMEM));
  if (!passages_text(&p->how, index, &doc, docid, absolute, &text) && text.text) {
    copy = cli_copy(text.text, text.len);
    *len = text.len;
  }
  decoded_free(&text);
  return copy;
}

const char *cli_written_word(void *written, const char *instead, size_t len, size_t *word_len) {
  cli_written *w = (cli_written *)written;
  gpuir_hit hits[ADVICE_HOLDERS];
  w->word.n = *word_len = 0;
  if (w->path && cli_passages_try(w->passages, w->path, NULL)) return NULL; /* then as it stands */
  w->path = NULL;
  const size_t n = advice_holders(w->index, instead, len, hits);
  for (size_t i = 0; i < n && !w->word.n; i++) {
    size_t text_len, found_len;
    char *text = cli_text_of(w->passages, w->index, hits[i].docid, &text_len);
    const char *found = text ? advice_surface(w->index, instead, len, text, text_len, &found_len) : NULL;
    if (found) cli_buf_add(&w->word, found, found_len);
    free(text);
  }
  *word_len = w->word.n;
  return w->word.n ? w->word.p : NULL;
}

int cli_expand(cli_passages *p, gpuir_searcher *searcher, const gpuir_index *index, const gpuir_query *query,
    gpuir_expansion *expansion, gpuir_error *err) {
  gpuir_hit hits[GPUIR_EXPANSION_HITS];
  char *texts[GPUIR_EXPANSION_HITS];
  size_t lens[GPUIR_EXPANSION_HITS], n = 0;
  expansion->n = 0;
  int status = gpuir_search(searcher, query, hits, GPUIR_EXPANSION_HITS, &n);
  if (status) {
    gpuir_searcher_error(searcher, err);
    return status;
  }
  for (size_t i = 0; i < n; i++) texts[i] = cli_text_of(p, index, hits[i].docid, &lens[i]);
  status = gpuir_expand(index, hits, (const char *const *)texts, lens, n, GPUIR_EXPANSION_TERMS, expansion, err);
  for (size_t i = 0; i < n; i++) free(texts[i]);
  return status;
}
