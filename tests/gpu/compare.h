/* compare.h - collections, queries, and a device's hits beside the CPU's; include after gpuir.h, synth.h and real.h */
#ifndef TESTS_GPU_COMPARE_H
#define TESTS_GPU_COMPARE_H

static unsigned tests, failures;
static unsigned long compared, hits_compared;

static void report(int ok, const char *what) {
  tests++;
  failures += !ok;
  printf("%sok %u - %s\n", ok ? "" : "not ", tests, what);
  (void)fflush(stdout);
}

/* ---- collections by way of the builder ---- */

typedef struct shape {
  const char *name;
  uint32_t documents, /* 0: WordNet */
      vocabulary, length; /* of a document, in distinct terms at most */
  int ties; /* all documents are alike but for the terms they hold */
  double skew; /* of the terms */
  int runs; /* the terms move on every 64 documents: docIDs come in runs */
} shape;

static const shape wordnet = {"WordNet", 0, 0, 0, 0, 0, 0};

static const char *codec, *freq_codec; /* of what is built */

static void build_shape(const shape *s, const char *path) {
  gpuir_builder_desc desc;
  gpuir_builder *b;
  gpuir_error err;
  gpuir_term_freq *terms = (gpuir_term_freq *)calloc(s->length + 1, sizeof *terms);
  char(*names)[16] = (char(*)[16])calloc(s->length + 1, 16);
  uint8_t *seen = (uint8_t *)calloc(s->vocabulary + 1, 1);
  synth_rng r = {s->documents * 31u + s->vocabulary};
  uint32_t d, i;
  memset(&desc, 0, sizeof desc);
  desc.path = path;
  desc.codec = codec;
  desc.freq_codec = freq_codec;
  if (gpuir_builder_create(&desc, &b, &err)) {
    printf("Bail out! %s\n", err.msg);
    exit(1);
  }
  for (d = 0; d < s->documents; d++) {
    uint32_t n = 0, most = s->ties ? s->length : 1 + synth_below(&r, s->length);
    for (i = 0; i < most; i++) {
      uint32_t t = (uint32_t)(s->vocabulary * pow(synth_unit(&r), s->skew));
      if (s->runs) t = (t + d / 64) % s->vocabulary;
      if (t >= s->vocabulary || seen[t]) continue;
      seen[t] = 1;
      (void)snprintf(names[n], 16, "t%u", (unsigned)t);
      terms[n].term = names[n];
      terms[n].len = strlen(names[n]);
      terms[n].tf = s->ties ? 1 : synth_below(&r, 64) ? 1 + synth_below(&r, 4) : 1 + synth_below(&r, 100000);
      n++;
    }
    for (i = 0; i < n; i++) seen[atoi(names[i] + 1)] = 0;
    if (gpuir_builder_add_terms(b, NULL, terms, n, &err)) {
      printf("Bail out! %s\n", err.msg);
      exit(1);
    }
  }
  if (gpuir_builder_write(b, NULL, &err)) {
    printf("Bail out! %s\n", err.msg);
    exit(1);
  }
  gpuir_builder_destroy(b);
  free(terms);
  free(names);
  free(seen);
}

static void build(const shape *s, const char *path) {
  gpuir_error err;
  if (s->documents) {
    build_shape(s, path);
  } else if (real_build(path, codec, freq_codec, &err)) {
    printf("Bail out! %s\n", err.msg);
    exit(1);
  }
}

/* ---- queries ---- */

static uint32_t most_terms = 40; /* of a query now and then; a small cache holds fewer lists at once */

static gpuir_query *random_query(const gpuir_index *ix, uint32_t vocabulary, synth_rng *r, int custom) {
  for (;;) {
    char text[1024];
    size_t at = 0;
    uint32_t n = 1 + synth_below(r, synth_below(r, 20) && most_terms > 6 ? 6 : most_terms), i;
    gpuir_query_desc desc;
    gpuir_query *q;
    memset(&desc, 0, sizeof desc);
    for (i = 0; i < n; i++) {
      double u = synth_unit(r);
      uint32_t t = (uint32_t)(vocabulary * (synth_below(r, 2) ? u : u * u * u));
      const char *sign = synth_below(r, 10) == 0 ? "-" : "";
      at += (size_t)snprintf(text + at, sizeof text - at, "%s", sign);
      if (synth_below(r, 60) == 0) at += (size_t)snprintf(text + at, sizeof text - at, "unknown ");
      else at += real_word(ix, t, text + at, sizeof text - at);
    }
    desc.mode = (int)synth_below(r, 3);
    if (custom && synth_below(r, 4) == 0) {
      static const float k1[] = {0, 0.5f, 1.2f, 7, 1000}, b[] = {0, 0.3f, 0.75f, 1};
      desc.custom_bm25 = 1;
      desc.k1 = k1[synth_below(r, n > 4 ? 4 : 5)];
      desc.b = b[synth_below(r, 4)];
    }
    if (!gpuir_query_parse(ix, &desc, text, at, &q, NULL)) return q;
  }
}

/* How the device is asked: in one batch, query by query, or in many batches, two of them in flight. */
enum { TOGETHER, SINGLE, IN_FLIGHT };

/* Answers queries in batches of 1 to 32, begun ahead of time, polled now and then and finished in any order. */
static int search_in_flight(gpuir_searcher *s, gpuir_query **q, size_t nq, size_t k, gpuir_hit *hits,
    uint32_t *counts) {
  gpuir_batch *batch[2] = {NULL, NULL};
  int *statuses = (int *)calloc(nq + 1, sizeof *statuses), status = GPUIR_OK;
  synth_rng r = {(uint32_t)(nq * 7 + k)};
  size_t done = 0, i;
  while ((done < nq || batch[0] || batch[1]) && !status) {
    const unsigned which = synth_below(&r, 2);
    if (!batch[which] && done < nq) {
      gpuir_batch_desc d;
      memset(&d, 0, sizeof d);
      d.nq = 1 + synth_below(&r, 32);
      if (d.nq > nq - done) d.nq = nq - done;
      d.queries = (const gpuir_query *const *)q + done;
      d.k = k;
      d.hits = hits + done * k;
      d.counts = counts + done;
      d.statuses = synth_below(&r, 2) ? statuses + done : NULL;
      status = gpuir_search_begin(s, &d, &batch[which]);
      done += d.nq;
    } else if (batch[which]) {
      if (synth_below(&r, 2) && !gpuir_search_poll(batch[which])) continue;
      status = gpuir_search_finish(batch[which]);
      batch[which] = NULL;
    }
  }
  for (i = 0; i < 2; i++)
    if (batch[i]) (void)gpuir_search_finish(batch[i]);
  for (i = 0; i < nq && !status; i++) status = statuses[i];
  free(statuses);
  return status;
}

/* Searches by both and compares; returns the number of differing queries. */
static unsigned compare(gpuir_searcher *cpu, gpuir_searcher *gpu, gpuir_query **q, size_t nq, size_t k, int how) {
  gpuir_hit *a = (gpuir_hit *)calloc(nq * k + 1, sizeof *a), *b = (gpuir_hit *)calloc(nq * k + 1, sizeof *b);
  uint32_t *na = (uint32_t *)calloc(nq, 4), *nb = (uint32_t *)calloc(nq, 4);
  unsigned bad = 0;
  size_t i, n;
  int status = gpuir_search_batch(cpu, (const gpuir_query *const *)q, nq, k, a, na);
  gpuir_error err;
  if (status) printf("# CPU: %s\n", gpuir_strerror(status));
  bad += status != 0;
  if (how == IN_FLIGHT) {
    status = status ? status : search_in_flight(gpu, q, nq, k, b, nb);
  } else if (how == SINGLE) {
    for (i = 0; i < nq && !status; i++) {
      status = gpuir_search(gpu, q[i], b + i * k, k, &n);
      nb[i] = (uint32_t)n;
    }
  } else {
    status = gpuir_search_batch(gpu, (const gpuir_query *const *)q, nq, k, b, nb);
  }
  if (status) {
    gpuir_searcher_error(gpu, &err);
    printf("# CUDA: %s: %s\n", gpuir_strerror(status), err.msg);
    bad++;
  }
  for (i = 0; i < nq && !status; i++) {
    size_t h = 0;
    compared++;
    hits_compared += na[i];
    while (
        h < na[i] && h < nb[i] && a[i * k + h].docid == b[i * k + h].docid && a[i * k + h].score == b[i * k + h].score)
      h++;
    if (h == na[i] && h == nb[i]) continue;
    if (bad++ < 3) {
      unsigned t;
      printf("# k %u: %u hits by the CPU, %u by CUDA, the first %u agree (mode %d, k1 %g, b %g):", (unsigned)k,
          (unsigned)na[i], (unsigned)nb[i], (unsigned)h, q[i]->mode, (double)q[i]->k1, (double)q[i]->b);
      for (t = 0; t < q[i]->n && t < 12; t++)
        printf(" %s%.*s/%u", q[i]->terms[t].negated ? "-" : "", q[i]->terms[t].len, q[i]->terms[t].text,
            (unsigned)q[i]->terms[t].df);
      if (h < na[i]) printf("; CPU %u %u", (unsigned)a[i * k + h].docid, (unsigned)a[i * k + h].score);
      if (h < nb[i]) printf("; CUDA %u %u", (unsigned)b[i * k + h].docid, (unsigned)b[i * k + h].score);
      printf("\n");
    }
  }
  free(a);
  free(b);
  free(na);
  free(nb);
  return bad;
}

/* Counts matches by both, all queries in one batch or one by one; returns the number of differing queries. */
static unsigned compare_counts(gpuir_searcher *cpu, gpuir_searcher *gpu, gpuir_query **q, size_t nq, int how) {
  uint32_t *counts = (uint32_t *)calloc(nq + 1, sizeof *counts);
  gpuir_batch_desc d;
  gpuir_batch *b;
  gpuir_error err;
  unsigned bad = 0;
  size_t i;
  int status = GPUIR_OK;
  memset(&d, 0, sizeof d);
  d.queries = (const gpuir_query *const *)q;
  d.nq = nq;
  d.counts = counts;
  d.count = 1;
  if (how != SINGLE && !(status = gpuir_search_begin(gpu, &d, &b))) status = gpuir_search_finish(b);
  for (i = 0; i < nq && !status; i++) {
    uint64_t expected = 0, counted = counts[i];
    if (how == SINGLE) status = gpuir_count(gpu, q[i], &counted);
    compared++;
    if (!status && !gpuir_count(cpu, q[i], &expected) && counted == expected) continue;
    if (bad++ < 3)
      printf("# %llu matches by the CPU, %llu by CUDA (mode %d, %u terms)\n", (unsigned long long)expected,
          (unsigned long long)counted, q[i]->mode, q[i]->n);
  }
  if (status) {
    gpuir_searcher_error(gpu, &err);
    printf("# CUDA: %s: %s\n", gpuir_strerror(status), err.msg);
    bad++;
  }
  free(counts);
  return bad;
}

#endif
