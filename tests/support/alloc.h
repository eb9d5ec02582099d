/* alloc.h - an allocator that keeps the books and fails on request, from any thread; include after gpuir.h
 *
 * A block that grows always moves, and new memory is full of rubbish, so that nothing can rely on what was there.
 */
#ifndef TESTS_ALLOC_H
#define TESTS_ALLOC_H

#include <stdlib.h>
#include <string.h>

typedef struct alloc_book {
  int64_t blocks, bytes; /* that live */
  int64_t calls; /* for memory, whether they got it or not */
  int64_t fail_at; /* the call that gets none, counted from 1; 0: all get some */
  int forever; /* those after fail_at get none either */
} alloc_book;

static inline void *alloc_resize(void *user, void *p, size_t old_size, size_t new_size) {
  alloc_book *b = (alloc_book *)user;
  void *fresh = NULL;
  if (new_size) {
    int64_t call = __atomic_add_fetch(&b->calls, 1, __ATOMIC_RELAXED);
    if (b->fail_at && (call == b->fail_at || (b->forever && call > b->fail_at))) return NULL;
    fresh = malloc(new_size);
    if (!fresh) return NULL;
    memset(fresh, 0xa7, new_size);
    if (p) memcpy(fresh, p, old_size < new_size ? old_size : new_size);
  }
  (void)__atomic_add_fetch(&b->blocks, (fresh ? 1 : 0) - (p ? 1 : 0), __ATOMIC_RELAXED);
  (void)__atomic_add_fetch(&b->bytes, (int64_t)new_size - (p ? (int64_t)old_size : 0), __ATOMIC_RELAXED);
  free(p);
  return fresh;
}

/* An allocator that writes into this book. */
static inline gpuir_allocator alloc_from(alloc_book *book) {
  gpuir_allocator a;
  a.resize = alloc_resize;
  a.user = book;
  return a;
}

#endif
