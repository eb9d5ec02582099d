/* phrases.h - queries with phrases by the CPU and by a device; include after compare.h */
#ifndef TESTS_GPU_PHRASES_H
#define TESTS_GPU_PHRASES_H

enum { PHRASE_WORDS = 150 };

/* Writes document d: most are some words, frequent ones mostly; some are long, and some nearly one word alone. Returns
 * its bytes. */
static size_t phrase_text(unsigned d, synth_rng *r, char *text, size_t cap) {
  const uint32_t words = d % 701 == 700 ? 20000 : 1 + synth_below(r, 50);
  size_t at = 0;
  uint32_t i;
  for (i = 0; i < words && at + 16 < cap; i++) {
    const double u = synth_unit(r);
    const unsigned word = d % 1402 == 700 && synth_below(r, 500) ? 3 : (unsigned)(PHRASE_WORDS * u * u * u);
    at += (size_t)snprintf(text + at, cap - at, "t%u ", word);
  }
  if (d % 5000 == 4999) at += (size_t)snprintf(text + at, cap - at, "lonely%u once", d);
  return at;
}

/* Writes an index with positions, in these codecs. */
static void phrase_build(const char *path, unsigned documents, const char *docids, const char *freqs) {
  static char text[1 << 18];
  gpuir_builder_desc desc;
  gpuir_builder *b;
  gpuir_error err;
  synth_rng r = {91};
  unsigned d;
  int status;
  memset(&desc, 0, sizeof desc);
  desc.path = path;
  desc.codec = docids;
  desc.freq_codec = freqs;
  desc.positions = 1;
  status = gpuir_builder_create(&desc, &b, &err);
  for (d = 0; d < documents && !status; d++)
    status = gpuir_builder_add_text(b, NULL, text, phrase_text(d, &r, text, sizeof text), &err);
  if (!status) status = gpuir_builder_write(b, NULL, &err);
  gpuir_builder_destroy(b);
  if (status) {
    printf("Bail out! %s\n", err.msg);
    exit(1);
  }
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

/* What the device leaves to the CPU fails without fallback, and is answered and counted with it. */
static unsigned phrase_refusals(gpuir_index *ix, gpuir_cuda *cuda, gpuir_searcher *cpu) {
  static const char *const texts[] = {"\"t1 t2\" t5", "t5 -\"t1 t2\"", "t1*", "\"t1 t2\" t10*"};
  static const int modes[] = {GPUIR_OR, GPUIR_AND, GPUIR_AND, GPUIR_AND};
  unsigned bad = 0, i;
  for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    gpuir_searcher *strict, *lenient;
    gpuir_searcher_info info;
    gpuir_query_desc desc;
    gpuir_query *q;
    gpuir_error err;
    gpuir_hit hit;
    size_t n = 0;
    memset(&desc, 0, sizeof desc);
    desc.mode = modes[i];
    if (gpuir_query_parse(ix, &desc, texts[i], strlen(texts[i]), &q, &err) ||
        gpuir_searcher_create(ix, NULL, &strict, NULL) || gpuir_searcher_create(ix, NULL, &lenient, NULL) ||
        gpuir_cuda_attach(strict, cuda, 0, &err) || gpuir_cuda_attach(lenient, cuda, 1, &err)) {
      printf("# %s\n", err.msg);
      return 1;
    }
    bad += gpuir_search(strict, q, &hit, 1, &n) != GPUIR_E_BACKEND;
    gpuir_searcher_error(strict, &err);
    bad += !strstr(err.msg, "does not answer");
    bad += compare(cpu, lenient, &q, 1, 10, SINGLE);
    (void)gpuir_searcher_get_info(lenient, &info);
    bad += info.backend_failures != 1;
    gpuir_searcher_destroy(strict);
    gpuir_searcher_destroy(lenient);
    gpuir_query_destroy(q);
  }
  return bad;
}

/* One index within a bound on the device's memory; 0: none. Returns 0 if its positions did not fit. */
static int phrase_check(const char *name, gpuir_index *ix, uint64_t memory, unsigned nq) {
  gpuir_cuda *cuda;
  gpuir_cuda_desc desc;
  gpuir_searcher_desc sd;
  gpuir_searcher *cpu, *gpu;
  gpuir_query *q;
  gpuir_error err;
  gpuir_hit hit;
  size_t n = 0;
  unsigned bad = 0;
  int there;
  char what[160];
  memset(&desc, 0, sizeof desc);
  memset(&sd, 0, sizeof sd);
  desc.memory = memory;
  sd.threads = 8;
  if (gpuir_cuda_open(ix, &desc, &cuda, &err)) return 0;
  if (gpuir_searcher_create(ix, NULL, &cpu, NULL) || gpuir_searcher_create(ix, &sd, &gpu, NULL) ||
      gpuir_query_parse(ix, NULL, "\"t1 t2\"", 7, &q, &err))
    exit(1);
  there = !gpuir_cuda_attach(gpu, cuda, 0, &err) && !gpuir_search(gpu, q, &hit, 1, &n);
  if (there) {
    bad = phrase_compare(ix, cpu, gpu, nq, 17u + (unsigned)(memory >> 16));
    if (!memory) bad += phrase_refusals(ix, cuda, cpu);
    (void)snprintf(what, sizeof what, "phrases, %s, %llu KB: hits and counts equal the CPU's", name,
        (unsigned long long)(memory >> 10));
    report(!bad, what);
  }
  gpuir_query_destroy(q);
  gpuir_searcher_destroy(cpu);
  gpuir_searcher_destroy(gpu);
  gpuir_cuda_close(cuda);
  return there;
}

/* Indexes with positions, in several codecs, from room for everything down to room for the lists and positions alone.
 */
static void check_phrases(const char *path, int quick) {
  static const char *const codecs[][2] = {{"bp128", "bp128"}, {"vbyte", "newpfd"}, {"pfd-list", "bp128"}};
  const unsigned documents = quick ? 3000 : 30000;
  unsigned i, part, answered = 0;
  for (i = 0; i < (quick ? 2 : 3); i++) {
    gpuir_index *ix;
    gpuir_error err;
    uint64_t all, searcher;
    phrase_build(path, documents, codecs[i][0], codecs[i][1]);
    if (gpuir_open(path, NULL, &ix, &err)) exit(1);
    searcher = bounded_memory(ix, 0, 0, &all);
    answered += (unsigned)phrase_check(codecs[i][0], ix, 0, quick ? 16 : 200);
    for (part = 1; part < (quick ? 2 : 8); part++)
      answered +=
          (unsigned)phrase_check(codecs[i][0], ix, searcher + (all - searcher) / 10 * (10 - part), quick ? 8 : 60);
    gpuir_close(ix);
  }
  report(answered >= (quick ? 2 : 8), "a device answers phrases with and without expanded lists");
}

#endif
