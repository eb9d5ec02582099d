/* stored.h - the text that an index stores of a document; behind gpuir.h */
#ifndef STORED_H
#define STORED_H

#include <stdlib.h>

/* Returns the stored text, a NUL behind it, for the caller to free; NULL where there is none or it cannot be read. */
static inline char *stored_text(const gpuir_index *index, uint32_t docid, size_t *len) {
  gpuir_doc doc;
  char *text;
  *len = 0;
  if (gpuir_doc_get(index, docid, &doc) || !doc.stored) return NULL;
  text = (char *)malloc((size_t)doc.stored_bytes + 1);
  if (!text || gpuir_doc_text(index, docid, 0, text, (size_t)doc.stored_bytes)) {
    free(text);
    return NULL;
  }
  *len = (size_t)doc.stored_bytes;
  text[*len] = 0;
  return text;
}

#endif
