/* synth.h - generated indexes and queries for the GPU's tests and measurements; include after gpuir.h
 *
 * Lists are made as docIDs and frequencies and encoded directly, without documents, on all processors: term number t
 * is "t<t>". The same numbers give the same bytes. */
#ifndef SYNTH_H
#define SYNTH_H

typedef struct synth_rng {
  uint64_t s;
} synth_rng;

static inline uint64_t synth_next(synth_rng *r) { /* splitmix64 */
  uint64_t z = r->s += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
static inline uint32_t synth_below(synth_rng *r, uint32_t n) {
  return (uint32_t)(((synth_next(r) >> 32) * n) >> 32);
}
static inline double synth_unit(synth_rng *r) {
  return ((double)(synth_next(r) >> 11) + 0.5) / 9007199254740992.0;
}

typedef struct synth_desc {
  uint32_t documents, terms;
  uint32_t df_least, df_most; /* document frequencies are log-uniform between them */
  double clustering; /* 0: docIDs in random order; otherwise the part of postings that stands in clusters */
  unsigned threads;
  uint64_t seed;
} synth_desc;

typedef struct synth_work {
  const synth_desc *d;
  const uint32_t *lengths;
  uint64_t tokens;
  uint32_t from, to; /* terms, in their order */
  const uint32_t *names;
  gpuir__batch batch;
  int status;
} synth_work;

static uint32_t synth_df(const synth_desc *d, uint32_t term) {
  synth_rng r = {d->seed * 7919 + term};
  double df = d->df_least * exp(synth_unit(&r) * log((double)d->df_most / d->df_least));
  return df < 1 ? 1 : df > d->documents ? d->documents : (uint32_t)df;
}

/* One list: gaps are geometric; clustered lists alternate between stretches 16 times as dense and sparse ones. */
static uint32_t synth_list(const synth_desc *d, uint32_t term, uint32_t df, uint32_t *docs, uint32_t *tfs) {
  synth_rng r = {d->seed * 104729 + term};
  double mean = (double)d->documents / df, dense = mean / 16 < 1.2 ? 1.2 : mean / 16;
  double rare = mean / (1 - d->clustering * 0.94), next = -1, left = 0;
  int in = 0;
  uint32_t n = 0;
  double stay = 4096; /* documents of a cluster */
  if (!(d->clustering > 0)) dense = rare = mean;
  for (;;) {
    double gap, m;
    uint32_t c = 0;
    if (left <= 0) {
      in = d->clustering > 0 && !in;
      left = in ? stay : stay * 16 * (1 - d->clustering) / (d->clustering + 1e-9);
      if (!in && !(d->clustering > 0)) left = 1e18;
    }
    m = in ? dense : rare;
    gap = m <= 1.0001 ? 1 : 1 + floor(log(synth_unit(&r)) / log(1 - 1 / m));
    next += gap;
    left -= gap;
    if (next >= d->documents || n >= df + df / 4 + 16) break;
    docs[n] = (uint32_t)next;
    while (c < 40 && (synth_next(&r) & 3) == 0) c++; /* most are 1 */
    tfs[n++] = 1 + c;
  }
  if (!n) {
    docs[0] = term % d->documents;
    tfs[n++] = 1;
  }
  return n;
}

static void *synth_worker(void *argument) {
  synth_work *w = (synth_work *)argument;
  gpuir_allocator a = gpuir__allocator(NULL);
  gpuir__encoder e;
  gpuir__coding docs_coding, freqs_coding;
  size_t most = (size_t)w->d->df_most + w->d->df_most / 4 + 64;
  uint32_t *docs = (uint32_t *)malloc(most * 8), i;
  (void)gpuir__coding_parse(NULL, 1, &docs_coding, NULL);
  (void)gpuir__coding_parse(NULL, 0, &freqs_coding, NULL);
  w->status = docs ? gpuir__encoder_create(&e, &a, docs_coding, freqs_coding, w->lengths, w->d->documents,
                                           w->tokens, 0.9f, 0.4f, GPUIR_SIMD_AUTO)
                   : GPUIR_E_NOMEM;
  if (!w->status) {
    for (i = w->from; i < w->to && !w->status; i++) {
      char name[16];
      uint32_t n = synth_list(w->d, w->names[i], synth_df(w->d, w->names[i]), docs, docs + most);
      int len = snprintf(name, sizeof name, "t%u", (unsigned)w->names[i]);
      w->status = gpuir__encode_list(&e, &w->batch, name, (size_t)len, docs, docs + most, n);
    }
    gpuir__encoder_destroy(&e);
  }
  free(docs);
  return NULL;
}

static int synth_compare(const void *x, const void *y) { /* numbers in the order of their names */
  char a[16], b[16];
  (void)snprintf(a, sizeof a, "%u", (unsigned)*(const uint32_t *)x);
  (void)snprintf(b, sizeof b, "%u", (unsigned)*(const uint32_t *)y);
  return strcmp(a, b);
}

/* Writes the index; 0 or a status, with *err. */
static inline int synth_write(const synth_desc *d, const char *path, gpuir_error *err) {
  enum { CUT = 256 };
  gpuir_allocator a = gpuir__allocator(NULL);
  gpuir__writer *w;
  gpuir__meta meta;
  uint32_t *lengths = (uint32_t *)malloc((size_t)d->documents * 4),
           *names = (uint32_t *)malloc((size_t)d->terms * 4), i;
  const uint32_t *kept;
  uint64_t n, tokens, bytes;
  synth_rng r = {d->seed};
  unsigned threads = d->threads ? d->threads : 1, t;
  int status = gpuir__writer_create(&a, path, 64u << 20, &w, err);
  if (status) return status;
  for (i = 0; i < d->documents; i++) {
    double u = synth_unit(&r) + synth_unit(&r) + synth_unit(&r) + synth_unit(&r) - 2;
    lengths[i] = (uint32_t)(250 * exp(u * 1.5)) + 1;
  }
  for (i = 0; i < d->terms; i++) names[i] = i;
  qsort(names, d->terms, 4, synth_compare);
  for (i = 0; i < d->documents && !status; i++) status = gpuir__writer_put_doc(w, NULL, NULL, 0, err);
  if (!status) status = gpuir__writer_put_lengths(w, lengths, d->documents, err);
  if (!status) status = gpuir__writer_lengths(w, &kept, &n, &tokens, err);
  for (i = 0; i < d->terms && !status;) { /* a round of threads at a time: batches must come in order */
    pthread_t id[CUT];
    synth_work work[CUT];
    if (threads > CUT) threads = CUT;
    memset(work, 0, sizeof work);
    for (t = 0; t < threads; t++) {
      work[t].d = d;
      work[t].lengths = lengths;
      work[t].tokens = tokens;
      work[t].names = names;
      work[t].from = i;
      i = i + 4 < d->terms ? i + 4 : d->terms;
      work[t].to = i;
      if (pthread_create(&id[t], NULL, synth_worker, &work[t])) exit(3);
    }
    for (t = 0; t < threads; t++) {
      (void)pthread_join(id[t], NULL);
      if (!status) status = work[t].status;
      if (!status) status = gpuir__writer_put_batch(w, &work[t].batch, err);
      gpuir__batch_free(&a, &work[t].batch);
    }
  }
  memset(&meta, 0, sizeof meta);
  meta.analyzer = "ascii";
  meta.stop_words = "";
  meta.codec = meta.freq_codec = "bp128";
  meta.description = "synthetic";
  meta.k1 = 0.9f;
  meta.b = 0.4f;
  if (!status) status = gpuir__writer_finish(w, &meta, &bytes, err);
  gpuir__writer_destroy(w);
  free(lengths);
  free(names);
  return status;
}

/* The number of terms of a query: Ao et al., VLDB 2011, table 4. */
static inline uint32_t synth_query_terms(synth_rng *r) {
  static const double part[] = {0.04, 0.161, 0.245, 0.228, 0.148, 0.0824, 0.05, 0.03};
  double u = synth_unit(r);
  uint32_t n;
  for (n = 0; n < 8; n++) {
    if (u < part[n]) return n + 1;
    u -= part[n];
  }
  return 9;
}

static inline void synth_query(synth_rng *r, uint32_t terms, char *text, size_t cap) {
  uint32_t n = synth_query_terms(r), i;
  size_t at = 0;
  for (i = 0; i < n; i++)
    at += (size_t)snprintf(text + at, cap - at, "%st%u", i ? " " : "", (unsigned)synth_below(r, terms));
}

#endif
