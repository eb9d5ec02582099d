/* dictionary.h - writes an index's dictionary anew, with other records than the index has: what a hostile file may say
 *
 * Include it behind an implementation of gpuir.h. */
#ifndef DICTIONARY_H
#define DICTIONARY_H

#include <stdlib.h>
#include <string.h>

/* Changes the record of term `id`. Of the first term of a block it may also change *now, from which the block counts:
 * lists that lie elsewhere. */
typedef void (*dictionary_change)(void *user, uint64_t id, gpuir__record *r, gpuir__dict_page *now);

static gpuir__section *dictionary_section(uint8_t *bytes, uint32_t id) {
  gpuir__section *s = (gpuir__section *)(void *)(bytes + sizeof(gpuir__header));
  while (s->id != id) s++;
  return s;
}

/* Writes the dictionary of the index bytes[0..len) anew, its blocks behind all else; returns the file's new length, at
 * most len + `room`, which there must be. Checksums and the length in the header are left as they were. */
GPUIR__UNUSED static size_t dictionary_rewrite(uint8_t *bytes, size_t len, size_t room, dictionary_change change,
    void *user) {
  gpuir__section *terms = dictionary_section(bytes, GPUIR__S_TERMS);
  uint8_t *pages = bytes + dictionary_section(bytes, GPUIR__S_TERM_PAGES)->offset;
  uint8_t *starts = bytes + dictionary_section(bytes, GPUIR__S_TERM_STARTS)->offset;
  gpuir__dict_terms *t = (gpuir__dict_terms *)calloc(1, sizeof *t);
  void *old = malloc(len);
  gpuir__dict_page page, now;
  gpuir_open_desc desc;
  gpuir_index *ix = NULL;
  gpuir__walk w;
  size_t at = (len + 63) / 64 * 64;
  memset(&desc, 0, sizeof desc);
  memset(&now, 0, sizeof now);
  page = now;
  if (t && old) {
    memcpy(old, bytes, len);
    desc.data = old;
    desc.size = len;
  }
  if (!t || !old || at + 64 > len + room || gpuir_open(NULL, &desc, &ix, NULL)) abort();
  memset(bytes + len, 0, at + 64 - len);
  terms->offset = at;
  for (gpuir__walk_start(&w, gpuir__only(ix)); gpuir__walk_next(&w);) {
    gpuir__record r = w.record;
    uint8_t out[GPUIR__DICT_MOST + 8];
    uint16_t start;
    size_t n;
    change(user, w.id, &r, &now);
    gpuir__dict_add(t, w.term, w.len, &r);
    if (t->n < GPUIR__DICT_BLOCK && w.next < gpuir__only(ix)->stat.terms) continue;
    if (w.id / GPUIR__DICT_BLOCK % GPUIR__DICT_PAGE == 0) {
      page = now;
      memcpy(pages + w.id / GPUIR__DICT_BLOCK / GPUIR__DICT_PAGE * sizeof page, &page, sizeof page);
    }
    start = (uint16_t)(now.start - page.start);
    memcpy(starts + w.id / GPUIR__DICT_BLOCK * sizeof start, &start, sizeof start);
    n = gpuir__dict_encode(t, &gpuir__only(ix)->terms.form, &page, &now, out);
    if (at + n + 64 > len + room) abort();
    memcpy(bytes + at, out, n);
    memset(bytes + at + n, 0, 64);
    at += n;
    t->n = 0;
    t->fill = 0;
  }
  terms->length = at - terms->offset;
  gpuir_close(ix);
  free(old);
  free(t);
  return at + 64;
}

#endif
