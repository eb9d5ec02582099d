/* core.c - one list in one codec, one prepared intersection, and the heap, for gpuir lab.
 *
 * The laboratory measures parts that the library keeps private: codecs apart from an index, searches apart from their
 * preparation. This file therefore compiles the implementation for itself, with all functions static. Lists come and go
 * as arrays; of the handles that the rest of the command makes, indexes and queries are read here, and nothing else.
 */
#define GPUIR_IMPLEMENTATION
#define GPUIR_STATIC
#include "gpuir.h"

#include "isect.h"
#include "lab.h"

/* ---- codecs --------------------------------------------------------------------------------------- */

const char *lab_codec_name(size_t i) { return i < GPUIR__DOCID_CODECS ? gpuir__docid_codecs[i].name : NULL; }

int lab_codec_find(const char *spec, lab_codec *c, gpuir_error *err) {
  gpuir__coding coding;
  int status = gpuir__coding_parse(spec, 1, &coding, err);
  memset(c, 0, sizeof *c);
  if (status) return status;
  if (!coding.codec || strlen(spec) >= sizeof c->label)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "codec '%.40s': one codec is wanted", spec);
  memcpy(c->label, spec, strlen(spec) + 1);
  c->codec = coding.codec;
  c->param = coding.param;
  return GPUIR_OK;
}

/* pfd and newpfd with a given proportion of exceptions, as papers vary it: the library's own choose it block by block.
 * What they encode is decoded as that of the library's, block by block by its width byte. */
typedef struct given_codec {
  gpuir__codec codec; /* first: a pointer to one is a pointer to the other */
  double share;
  unsigned form; /* of a block with exceptions, which `put` encodes */
  uint8_t *(*put)(const uint32_t *v, uint32_t count, unsigned b, unsigned most, uint8_t *to);
} given_codec;

/* Encodes a block with the least b that makes at most the share of its values exceptions. */
static uint8_t *given_encode_block(const gpuir__codec *codec, uint32_t *v, uint32_t count, uint32_t unit, uint8_t *to,
    uint8_t *width) {
  const given_codec *g = (const given_codec *)codec;
  uint32_t over[33] = {0};
  unsigned b, most = 0;
  (void)unit;
  for (uint32_t i = 0; i < count; i++) {
    const unsigned bits = gpuir__width32(v[i]);
    if (bits > most) most = bits;
    for (b = 0; b < bits; b++) over[b]++;
  }
  b = 0;
  while (over[b] && (over[b] > g->share * count || gpuir__pfd_size(v, count, b, g->form, most, over) == UINT32_MAX))
    b++;
  *width = (uint8_t)(b | (over[b] ? g->form << 6 : 0));
  if (over[b]) return g->put(v, count, b, most, to);
  gpuir__pack(to, v, count, b);
  return to + gpuir__packed_size(count, b);
}

static int given_encode(const gpuir__codec *codec, const uint32_t *values, uint32_t n, const gpuir__target *to) {
  return gpuir__encode_blocks(codec, values, n, to, given_encode_block, 1);
}

int lab_codec_given(const char *name, unsigned percent, lab_codec *c) {
  static given_codec given[2][101];
  const int status = lab_codec_find(name, c, NULL);
  if (status || percent > 100) return status ? status : GPUIR_E_ARGUMENT;
  const int apart = !strcmp(name, "newpfd");
  given_codec *g = &given[apart][percent];
  g->codec = *(const gpuir__codec *)c->codec;
  g->codec.encode = given_encode;
  g->share = percent / 100.0;
  g->form = apart ? GPUIR__PFD_APART : GPUIR__PFD_LINKED;
  g->put = apart ? gpuir__pfd_put_apart : gpuir__pfd_put_linked;
  c->codec = &g->codec;
  snprintf(c->label, sizeof c->label, "%s,%u%%", name, percent);
  c->host_only = 1;
  return GPUIR_OK;
}

struct lab_coded {
  gpuir__list list; /* its stream of docIDs alone */
  gpuir__buf bytes;
  uint32_t *offset, *last;
  uint8_t *width;
};

/* The directory that an index keeps of a list. */
static int coded_directory(lab_coded *c, const uint32_t *docs) {
  uint32_t b, nblocks = c->list.nblocks;
  c->offset = (uint32_t *)malloc((size_t)nblocks * sizeof *c->offset);
  c->last = (uint32_t *)malloc((size_t)nblocks * sizeof *c->last);
  c->width = (uint8_t *)malloc(nblocks);
  if (!c->offset || !c->last || !c->width) return GPUIR_E_NOMEM;
  for (b = 0; b < nblocks; b++) c->last[b] = docs[gpuir__min32((b + 1) * GPUIR__BLOCK, c->list.df) - 1];
  return GPUIR_OK;
}

static int coded_encode(lab_coded *c, const lab_codec *codec, const uint32_t *docs, uint64_t documents) {
  const gpuir_allocator a = gpuir__allocator(NULL);
  gpuir__stream *s = &c->list.docs;
  size_t scratch;
  int status = c->list.df > GPUIR__SHORT_MAX ? coded_directory(c, docs) : GPUIR_OK;
  s->codec = (const gpuir__codec *)codec->codec;
  if (!status) {
    const gpuir__target to = {&a, &c->bytes, c->offset, c->width, codec->param};
    status = s->codec->encode(s->codec, docs, c->list.df, &to);
  }
  if (!status && !gpuir__buf_room(&a, &c->bytes, GPUIR__STREAM_PAD)) status = GPUIR_E_NOMEM;
  if (status) return status;
  memset(c->bytes.data + c->bytes.len, 0, GPUIR__STREAM_PAD);
  s->bytes = c->bytes.data;
  s->len = c->bytes.len;
  s->n = c->list.df;
  s->limit = (uint32_t)(documents - 1);
  s->offset = c->offset;
  s->width = c->width;
  s->last = c->list.last = c->last;
  s->kernels = gpuir__codec_kernels_at(gpuir__simd_level(GPUIR_SIMD_AUTO));
  scratch = s->codec->scratch_size ? s->codec->scratch_size(s) : 0;
  if (scratch && (s->scratch = malloc(scratch)) == NULL) return GPUIR_E_NOMEM;
  return s->codec->open ? s->codec->open(s) : GPUIR_OK;
}

int lab_encode(const lab_codec *codec, const uint32_t *docs, uint32_t n, uint64_t documents, lab_coded **coded) {
  lab_coded *c = (lab_coded *)calloc(1, sizeof *c);
  int status;
  *coded = NULL;
  if (!c) return GPUIR_E_NOMEM;
  c->list.df = n;
  c->list.nblocks = (n - 1) / GPUIR__BLOCK + 1;
  c->list.one_docid = docs[0];
  c->list.one_tf = 1;
  status = n > 1 ? coded_encode(c, codec, docs, documents) : GPUIR_OK;
  if (status) lab_coded_free(c);
  else *coded = c;
  return status;
}

uint64_t lab_coded_bytes(const lab_coded *c) { return c->bytes.len; }

uint64_t lab_coded_directory(const lab_coded *c) {
  return c->last ? c->list.nblocks * (uint64_t)(sizeof *c->last + sizeof *c->offset + sizeof *c->width) : 0;
}

uint32_t lab_decode(lab_coded *c) {
  uint32_t out[GPUIR__BLOCK_ROOM], block, sum = 0;
  gpuir__stream *s = &c->list.docs;
  if (c->list.df > 1 && s->codec->open && s->codec->open(s)) return 0;
  for (block = 0; block < c->list.nblocks; block++) {
    (void)gpuir__list_docs(&c->list, block, out);
    sum += out[0];
  }
  return sum;
}

int lab_decodes_to(lab_coded *c, const uint32_t *docs) {
  uint32_t out[GPUIR__BLOCK_ROOM], block;
  for (block = 0; block < c->list.nblocks; block++) {
    uint32_t n = gpuir__list_docs(&c->list, block, out);
    if (memcmp(out, docs + (size_t)block * GPUIR__BLOCK, (size_t)n * 4) != 0) return 0;
  }
  return 1;
}

void lab_coded_free(lab_coded *c) {
  const gpuir_allocator a = gpuir__allocator(NULL);
  if (!c) return;
  gpuir__buf_free(&a, &c->bytes);
  free(c->list.docs.scratch);
  free(c->offset);
  free(c->last);
  free(c->width);
  free(c);
}

/* ---- intersections ---------------------------------------------------------------------------------- */

struct lab_intersection {
  gpuir__isect isect;
  uint32_t *found, n;
};

static int intersection_make(const char *method, uint32_t shortest, lab_intersection **x) {
  *x = (lab_intersection *)calloc(1, sizeof **x);
  if (!*x) return GPUIR_E_NOMEM;
  (*x)->isect.a = gpuir__allocator(NULL);
  (*x)->found = (uint32_t *)malloc(((size_t)shortest + 16) * sizeof *(*x)->found);
  if (!(*x)->found) return GPUIR_E_NOMEM;
  return gpuir__method_by_name(method) ? GPUIR_OK : GPUIR_E_ARGUMENT;
}

static int intersection_made(int status, lab_intersection **x) {
  if (!status) return GPUIR_OK;
  lab_intersection_free(*x);
  *x = NULL;
  return status;
}

int lab_intersect_arrays(const char *method, const uint32_t *const *docs, const uint32_t *n, unsigned k,
    lab_intersection **x) {
  uint32_t shortest = UINT32_MAX;
  int status;
  unsigned i;
  for (i = 0; i < k; i++) shortest = gpuir__min32(shortest, n[i]);
  status = intersection_make(method, shortest, x);
  if (!status)
    status = gpuir__isect_arrays(&(*x)->isect, NULL, gpuir__method_by_name(method), docs, n, k, GPUIR_SIMD_AUTO);
  return intersection_made(status, x);
}

int lab_intersect_coded(const char *method, lab_coded *const *lists, unsigned k, lab_intersection **x) {
  const gpuir__list *list[GPUIR_MAX_TERMS];
  uint32_t shortest = UINT32_MAX;
  int status;
  unsigned i;
  for (i = 0; i < k; i++) {
    list[i] = &lists[i]->list;
    shortest = gpuir__min32(shortest, list[i]->df);
  }
  status = intersection_make(method, shortest, x);
  if (!status) status = gpuir__isect_lists(&(*x)->isect, NULL, gpuir__method_by_name(method), list, k, GPUIR_SIMD_AUTO);
  return intersection_made(status, x);
}

uint32_t lab_intersect(lab_intersection *x) { return x->n = gpuir__isect_run(&x->isect, x->found, NULL); }

uint64_t lab_intersection_sum(const lab_intersection *x) {
  uint64_t sum = 0;
  uint32_t i;
  for (i = 0; i < x->n; i++) sum += x->found[i];
  return sum;
}

const uint32_t *lab_intersection_found(const lab_intersection *x) { return x->found; }

uint64_t lab_intersection_bytes(const lab_intersection *x) { return gpuir__isect_bytes(&x->isect); }

void lab_intersection_free(lab_intersection *x) {
  if (!x) return;
  gpuir__isect_free(&x->isect);
  free(x->found);
  free(x);
}

/* ---- the best k ---------------------------------------------------------------------------------------- */

struct lab_top {
  gpuir__topk best;
};

uint64_t lab_key(uint32_t score, uint32_t docid) { return gpuir__key(score, docid); }

lab_top *lab_top_open(size_t k) {
  const gpuir_allocator a = gpuir__allocator(NULL);
  lab_top *top = (lab_top *)calloc(1, sizeof *top);
  if (!top || !gpuir__topk_start(&a, &top->best, k, 0, NULL)) return top;
  free(top);
  return NULL;
}

uint64_t lab_top_offer(lab_top *top, const uint64_t *keys, size_t n) {
  size_t i;
  for (i = 0; i < n; i++) gpuir__topk_push(&top->best, keys[i]);
  return top->best.threshold_key;
}

size_t lab_top_close(lab_top *top, gpuir_hit *hits) {
  const gpuir_allocator a = gpuir__allocator(NULL);
  const size_t found = top->best.n;
  while (hits && top->best.n) gpuir__topk_pop(&top->best, hits);
  gpuir__free(&a, top->best.heap, top->best.cap * sizeof *top->best.heap);
  free(top);
  return found;
}

size_t lab_best(const gpuir_hit *candidates, size_t n, size_t k, gpuir_hit *hits) {
  lab_top *top = k ? lab_top_open(k) : NULL;
  size_t i;
  if (!top) return 0;
  for (i = 0; i < n; i++) gpuir__topk_push(&top->best, gpuir__key(candidates[i].score, candidates[i].docid));
  return lab_top_close(top, hits);
}

/* ---- an index's lists, block by block -------------------------------------------------------------------- */

struct lab_shelf {
  const gpuir_index *index;
  const gpuir__segment *seg;
};

int lab_shelf_open(const gpuir_index *index, lab_shelf **shelf, gpuir_error *err) {
  lab_shelf *s = (lab_shelf *)calloc(1, sizeof *s);
  *shelf = s;
  if (!s) return gpuir__fail_nomem(err);
  s->index = index;
  s->seg = gpuir__only(index);
  if (s->seg) return GPUIR_OK;
  free(s);
  *shelf = NULL;
  return gpuir__fail_unmerged(index, err);
}

void lab_shelf_close(lab_shelf *shelf) { free(shelf); }

struct lab_and_private {
  gpuir__list list[LAB_TERMS]; /* as lab_and.list */
  uint64_t term[LAB_TERMS];
  const uint32_t *lengths;
  float weight[LAB_TERMS];
  uint32_t q[LAB_TERMS];
  gpuir__norm norm;
};

/* Opens the lists of a query whose terms are words that all have to occur; of a part it takes the whole's weights. */
static int and_lists(const lab_shelf *part, const gpuir_query *q, lab_and *x) {
  const gpuir_allocator a = gpuir__allocator(NULL);
  struct lab_and_private *p = x->own;
  unsigned i, j;
  for (i = 0; i < q->n; i++) {
    const gpuir__query_term *t = &q->terms[i];
    gpuir__list list;
    uint64_t id;
    int status = gpuir_term_find(part->index, t->text, t->len, &id);
    if (status == GPUIR_E_NOT_FOUND) {
      x->empty = 1;
      return GPUIR_OK;
    }
    if (!status) status = gpuir__list_open(part->seg, &a, id, &list);
    if (status) return status;
    if (list.memory) { /* a codec whose scratch memory threads cannot share */
      gpuir__list_close(&a, &list);
      return GPUIR_E_UNSUPPORTED;
    }
    for (j = x->n++; j && p->list[j - 1].df > list.df; j--) {
      p->list[j] = p->list[j - 1];
      p->term[j] = p->term[j - 1];
      p->weight[j] = p->weight[j - 1];
      p->q[j] = p->q[j - 1];
    }
    p->list[j] = list;
    p->term[j] = id;
    p->weight[j] = t->weight;
    p->q[j] = t->q;
  }
  return GPUIR_OK;
}

int lab_and_open(const gpuir_query *q, const lab_shelf *part, lab_and **out) {
  lab_and *x = (lab_and *)calloc(1, sizeof *x);
  unsigned i;
  int status = GPUIR_E_NOMEM;
  *out = x;
  if (x) x->own = (struct lab_and_private *)calloc(1, sizeof *x->own);
  if (x && x->own) status = GPUIR_OK;
  if (!status && (q->nphrases || q->nprefixes || q->n != q->npositive || q->n > LAB_TERMS))
    status = GPUIR_E_UNSUPPORTED;
  if (!status) {
    x->own->lengths = part->seg->lengths;
    x->own->norm = q->norm;
    status = and_lists(part, q, x);
  }
  for (i = 0; !status && i < x->n; i++) {
    x->list[i].term = x->own->term[i];
    x->list[i].df = x->own->list[i].df;
    x->list[i].nblocks = x->own->list[i].nblocks;
    x->list[i].last = x->own->list[i].last;
  }
  if (status) {
    lab_and_close(x);
    *out = NULL;
  }
  return status;
}

void lab_and_close(lab_and *x) {
  const gpuir_allocator a = gpuir__allocator(NULL);
  unsigned i;
  if (!x) return;
  for (i = 0; x->own && i < x->n; i++) gpuir__list_close(&a, &x->own->list[i]);
  free(x->own);
  free(x);
}

uint32_t lab_and_block(const lab_and *x, unsigned list, uint32_t block, uint32_t *docs) {
  return gpuir__list_docs(&x->own->list[list], block, docs);
}

uint32_t lab_and_find_block(const lab_and *x, unsigned list, uint32_t from, uint32_t doc) {
  return gpuir__list_find_block(&x->own->list[list], from, doc);
}

uint32_t lab_and_score(const lab_and *x, uint32_t doc, const uint32_t *where) {
  const struct lab_and_private *p = x->own;
  const float norm = gpuir__norm_of(p->norm.a, p->norm.b, p->lengths[doc]);
  uint32_t sum = 0;
  unsigned i;
  for (i = 0; i < x->n; i++)
    sum += p->q[i] * gpuir__contribution(p->weight[i], gpuir__list_tf(&p->list[i], where[i]), norm);
  return sum;
}
