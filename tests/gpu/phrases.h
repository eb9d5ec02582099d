/* phrases.h - queries with phrases by the CPU and by a device; include after compare.h */
#ifndef TESTS_GPU_PHRASES_H
#define TESTS_GPU_PHRASES_H

enum { PHRASE_WORDS = 150 };

/* Writes document d: most are some words, frequent ones mostly; some are long, and some nearly one word alone; some are
 * one word about as often as a lane walks alone at most. Returns its bytes. */
static size_t phrase_text(unsigned d, synth_rng *r, char *text, size_t cap) {
  const int even = d % 97 == 96;
  const uint32_t words = even ? 30 + synth_below(r, 6) : d % 701 == 700 ? 20000 : 1 + synth_below(r, 50);
  size_t at = 0;
  uint32_t i;
  for (i = 0; i < words && at + 16 < cap; i++) {
    const double u = synth_unit(r);
    const unsigned word = even || (d % 1402 == 700 && synth_below(r, 500)) ? 3 : (unsigned)(PHRASE_WORDS * u * u * u);
    at += (size_t)snprintf(text + at, cap - at, "t%u ", word);
  }
  if (d % 5000 == 4999) at += (size_t)snprintf(text + at, cap - at, "lonely%u once", d);
  return at;
}

static size_t phrase_put(synth_rng *r, char *text, size_t cap) {
  const double u = synth_unit(r);
  if (!synth_below(r, 200)) return (size_t)snprintf(text, cap, "unknown ");
  if (!synth_below(r, 100)) return (size_t)snprintf(text, cap, "lonely%u ", 5000 * synth_below(r, 4) + 4999);
  return (size_t)snprintf(text, cap, "t%u ", (unsigned)(PHRASE_WORDS * u * u * u));
}

/* A query whose phrases are all required, and some of whose words may exclude. */
static gpuir_query *phrase_query(const gpuir_index *ix, synth_rng *r) {
  static const float k1[] = {0, 0.5f, 1.2f, 7};
  for (;;) {
    char text[2048];
    const uint32_t phrases = synth_below(r, 4) ? 1 : 2, words = synth_below(r, 2) ? 0 : synth_below(r, 3);
    uint32_t i, j, n, same;
    size_t at = 0;
    gpuir_query_desc desc;
    gpuir_query *q;
    for (i = 0; i < phrases; i++) {
      n = 2 + (synth_below(r, 3) ? 0 : synth_below(r, synth_below(r, 20) ? 4 : 40));
      same = synth_below(r, 6) == 0;
      at += (size_t)snprintf(text + at, sizeof text - at, "\"");
      for (j = 0; j < n; j++)
        at += same ? (size_t)snprintf(text + at, sizeof text - at, "t3 ") : phrase_put(r, text + at, sizeof text - at);
      at += (size_t)snprintf(text + at, sizeof text - at, "\" ");
    }
    for (i = 0; i < words; i++) at += phrase_put(r, text + at, sizeof text - at);
    for (i = synth_below(r, 5) / 3; i; i--) {
      at += (size_t)snprintf(text + at, sizeof text - at, "-");
      at += phrase_put(r, text + at, sizeof text - at);
    }
    memset(&desc, 0, sizeof desc);
    desc.mode = phrases + words == 1 ? (int)synth_below(r, 3) : GPUIR_AND;
    desc.custom_bm25 = synth_below(r, 4) == 0;
    desc.k1 = k1[synth_below(r, 4)];
    desc.b = 0.3f;
    if (!gpuir_query_parse(ix, &desc, text, at, &q, NULL)) return q;
  }
}

/* Compares hits and counts; returns the number of differences, or of what failed. */
static unsigned phrase_compare(gpuir_index *ix, gpuir_searcher *cpu, gpuir_searcher *gpu, unsigned nq, unsigned seed) {
  static const size_t ks[] = {1, 10, 100, 3000};
  gpuir_query **q = (gpuir_query **)calloc(nq, sizeof *q);
  synth_rng r = {seed};
  unsigned bad = 0, i, k;
  for (k = 0; k < sizeof ks / sizeof ks[0]; k++) {
    for (i = 0; i < nq; i++) q[i] = i % 8 == 7 ? random_query(ix, PHRASE_WORDS, &r, 1) : phrase_query(ix, &r);
    bad += compare(cpu, gpu, q, nq, ks[k], TOGETHER);
    bad += compare(cpu, gpu, q, nq, ks[k], IN_FLIGHT);
    bad += compare(cpu, gpu, q, nq / 8, ks[k], SINGLE);
    bad += compare_counts(cpu, gpu, q, nq, TOGETHER) + compare_counts(cpu, gpu, q, nq / 8, SINGLE);
    for (i = 0; i < nq; i++) gpuir_query_destroy(q[i]);
  }
  free(q);
  return bad;
}

#endif
