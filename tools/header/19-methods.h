
/* ========
 * [19-methods]  lab: intersection methods of the literature, and the table of all methods
 *
 * A method filters candidates through one compressed list; a searcher that names one uses it for AND and counting
 * instead of [18-lookup]. The methods stand in tools/lab/gpuir_methods.h, which is included here if it is there: where
 * gpuir.h stands alone, there is "simd" alone.
 *
 * Uses      [09-postings], [18-lookup]; gpuir_methods.h also the lines and the codec lrc of [07-lab-lines].
 * Start at  gpuir__method (the seam), gpuir__methods (the table), gpuir__operand_prepare.
 * Tests     tests/unit/19_methods.c
 * ======*/

#define GPUIR__SKIP_LEVELS 11u

/* What a method made of one operand before the search. */
typedef struct gpuir__prepared {
  uint64_t param; /* the method's */
  int (*stopped)(void *user); /* not 0: preparing ends with this status; NULL: never */
  void *user; /* of stopped */
  gpuir__buf aux; /* owns the arrays below */
  unsigned shift; /* right shift of a docID to its bucket or segment */
  uint32_t buckets; /* or segments */
  const uint32_t *first; /* [buckets + 1] index of a bucket's first docID */
  const struct gpuir__lr *lines; /* of regression: one, or one a segment */
  const uint32_t *level[GPUIR__SKIP_LEVELS]; /* of a skip list; [0] is the array or the directory itself */
  uint32_t level_n[GPUIR__SKIP_LEVELS]; /* items of each level */
  const uint32_t *heads; /* [block] last docID */
  gpuir__buf copy; /* owns the bytes of `coded`, if they are not the list's own */
  gpuir__stream coded; /* the docIDs in a codec with get() */
} gpuir__prepared;

/* What of a list a method prepares from. */
enum { GPUIR__NEEDS_NOTHING, GPUIR__NEEDS_DIRECTORY, GPUIR__NEEDS_DOCIDS };

typedef struct gpuir__method {
  const char *name, *title, *paper; /* the paper and its section; "": none */
  uint64_t param;
  int needs; /* GPUIR__NEEDS_ */
  /* Prepares an operand whose docIDs are docs[0..n). NULL: nothing to prepare. 0, NOMEM, LIMIT, or what stopped()
   * says. */
  int (*prepare)(const gpuir_allocator *a, gpuir__operand *o, const uint32_t *docs);
  /* Returns the number of candidates that the list holds, and may be called again with greater candidates. */
  uint32_t (*list)(gpuir__operand *o, const gpuir__pass *p);
  /* Instead of it: all operands at once, the first one an array. where[i], unless where is NULL, gets the
   * indices in operand i. */
  uint32_t (*all)(gpuir__operand *const *o, unsigned k, uint32_t *docs, uint32_t *const *where);
} gpuir__method;

#ifdef __has_include
#if __has_include("tools/lab/gpuir_methods.h")
#include "tools/lab/gpuir_methods.h"
#endif
#endif

static const gpuir__method gpuir__methods[] = {
#ifdef GPUIR__LAB_METHODS
    GPUIR__LAB_METHODS
#endif
    {"simd", "vectors: all pairs of registers, or probes", "", 0, GPUIR__NEEDS_NOTHING, NULL, gpuir__lookup, NULL},
};

#define GPUIR__METHODS (sizeof gpuir__methods / sizeof gpuir__methods[0])

/* Returns the method of a name; NULL if there is none. */
static const gpuir__method *gpuir__method_by_name(const char *name) {
  size_t i;
  for (i = 0; i < GPUIR__METHODS; i++)
    if (!strcmp(gpuir__methods[i].name, name)) return &gpuir__methods[i];
  return NULL;
}

/* ---- preparing an operand */

/* Decodes all docIDs of a list. 0, or what stopped() says. */
static int gpuir__prepare_decode(const gpuir__prepared *made, const gpuir__list *l, uint32_t *docs) {
  uint32_t block;
  int status = GPUIR_OK;
  for (block = 0; block < l->nblocks && !status; block++) {
    (void)gpuir__list_docs(l, block, docs + (size_t)block * GPUIR__BLOCK);
    if (block % 64 == 63 && made->stopped) status = made->stopped(made->user);
  }
  return status;
}

/* Prepares one operand in *made, which is zeros but for stopped() and its user, for a method. All docIDs of a list are
 * decoded for that, and forgotten. 0, NOMEM, LIMIT, or what stopped() says; gpuir__prepared_free is due in any case. */
static int gpuir__operand_prepare(const gpuir_allocator *a, const gpuir__method *m, gpuir__operand *o,
    gpuir__prepared *made) {
  size_t size = ((size_t)o->n + GPUIR__BLOCK_ROOM) * 4;
  uint32_t *docs;
  int status;
  o->prepared = made;
  made->param = m->param;
  if (!m->prepare) return GPUIR_OK;
  if (!o->cursor || m->needs == GPUIR__NEEDS_DIRECTORY) return m->prepare(a, o, o->docs);
  docs = (uint32_t *)gpuir__alloc(a, size);
  if (!docs) return GPUIR_E_NOMEM;
  status = gpuir__prepare_decode(made, &o->cursor->list, docs);
  if (!status) status = m->prepare(a, o, docs);
  gpuir__free(a, docs, size);
  return status;
}

static void gpuir__prepared_free(const gpuir_allocator *a, gpuir__prepared *made) {
  gpuir__buf_free(a, &made->aux);
  gpuir__buf_free(a, &made->copy);
}

#endif /* GPUIR_NO_LAB */
