/* digest.c - prints digests of what the library computes, which must not depend on how it was compiled:
 *
 *   cc -std=c99 [FLAGS] -I. -Itests/support tests/support/digest.c -lm -pthread && ./a.out TSV
 *
 * One line each for the index of a file of lines, the hits of its queries, the hits of a generated collection, the
 * arithmetic of scores, and idf. */
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include "oracle.h"
#include "corpus.h"

static uint64_t digest_of(uint64_t h, uint32_t v) { return (h ^ v) * 1099511628211u; }

static uint64_t digest_of_hits(uint64_t h, const gpuir_hit *hits, size_t n) {
  size_t i;
  for (i = 0; i < n; i++) h = digest_of(digest_of(h, hits[i].docid), hits[i].score);
  return h;
}

static void say(const char *what, uint64_t h) { (void)printf("%s %016llx\n", what, (unsigned long long)h); }

static void die(const char *what) {
  (void)fprintf(stderr, "digest: %s\n", what);
  exit(1);
}

static void digest_file(const char *path) {
  uint64_t h = 0;
  int c;
  FILE *f = fopen(path, "rb");
  if (!f) die(path);
  while ((c = getc(f)) != EOF) h = digest_of(h, (uint32_t)c);
  (void)fclose(f);
  say("index", h);
}

/* Searches in three modes. */
static uint64_t digest_query(uint64_t h, const gpuir_index *ix, gpuir_searcher *s, const char *text,
    gpuir_query_desc *how) {
  gpuir_error err;
  for (how->mode = 0; how->mode < 3; how->mode++) {
    gpuir_query *q;
    gpuir_hit hits[50];
    size_t n;
    if (gpuir_query_parse(ix, how, text, strlen(text), &q, &err)) die(err.msg);
    if (gpuir_search(s, q, hits, 50, &n)) die("a search failed");
    h = digest_of_hits(h, hits, n);
    gpuir_query_destroy(q);
  }
  return h;
}

/* Indexes a file, each of its lines a document. */
static void index_lines(const char *tsv, const char *path) {
  static char line[1 << 16];
  gpuir_builder_desc desc;
  gpuir_builder *builder;
  gpuir_error err;
  FILE *in = fopen(tsv, "r");
  if (!in) die(tsv);
  memset(&desc, 0, sizeof desc);
  desc.path = path;
  desc.analyzer.analyzer = "ascii";
  if (gpuir_builder_create(&desc, &builder, &err)) die(err.msg);
  while (fgets(line, sizeof line, in))
    if (gpuir_builder_add_text(builder, NULL, line, strlen(line), &err)) die(err.msg);
  if (gpuir_builder_write(builder, NULL, &err)) die(err.msg);
  gpuir_builder_destroy(builder);
  (void)fclose(in);
}

static void digest_text(const char *tsv) {
  static const char *const text[] = {"computer", "dog wolf", "the of in", "planet sun moon -star",
      "stringed instrument"};
  char path[4200];
  gpuir_index *ix;
  gpuir_searcher *s;
  gpuir_query_desc how;
  uint64_t h = 0;
  size_t i;
  index_lines(tsv, corpus_path(path, sizeof path, "lines.gpuir"));
  digest_file(path);
  if (gpuir_open(path, NULL, &ix, NULL) || gpuir_searcher_create(ix, NULL, &s, NULL)) die(path);
  memset(&how, 0, sizeof how);
  for (i = 0; i < sizeof text / sizeof *text; i++) h = digest_query(h, ix, s, text[i], &how);
  say("text", h);
  gpuir_searcher_destroy(s);
  gpuir_close(ix);
}

/* 600 queries with many settings of BM25. */
static uint64_t digest_queries(uint64_t h, const oracle *o, gpuir_index *ix) {
  gpuir_searcher *s;
  rng r;
  unsigned i;
  if (gpuir_searcher_create(ix, NULL, &s, NULL)) die("a searcher cannot be created");
  r.s = 206;
  for (i = 0; i < 600; i++) {
    char text[4096];
    oracle_query q;
    gpuir_query_desc how;
    corpus_query(o, &r, 1 + rng_below(&r, 8), 1, &q);
    (void)corpus_text(o, &q, text, sizeof text);
    memset(&how, 0, sizeof how);
    how.custom_bm25 = i % 2;
    how.k1 = (float)(i % 30) * 0.37f;
    how.b = (float)(i % 20) / 19.0f;
    h = digest_query(h, ix, s, text, &how);
  }
  gpuir_searcher_destroy(s);
  return h;
}

/* At all SIMD levels. */
static void digest_collection(void) {
  char path[4200];
  oracle o;
  gpuir_error err;
  uint64_t h = 0;
  int level;
  corpus_zipf(&o, 12000, 800, 12, 205);
  if (corpus_write(&o, corpus_path(path, sizeof path, "zipf.gpuir"), NULL, &err)) die(err.msg);
  for (level = GPUIR_SIMD_SCALAR; level <= GPUIR_SIMD_AVX512; level++) {
    gpuir_open_desc desc;
    gpuir_index *ix;
    memset(&desc, 0, sizeof desc);
    desc.simd = level;
    if (gpuir_open(path, &desc, &ix, &err)) die(err.msg);
    h = digest_queries(h, &o, ix);
    gpuir_close(ix);
  }
  say("hits", h);
  oracle_free(&o);
}

static void digest_scores(void) {
  rng r;
  uint64_t h = 0;
  unsigned i;
  r.s = 207;
  for (i = 0; i < 1000000; i++) {
    const double unit = rng_unit(&r);
    const float weight = (float)ldexp(1.0 + unit, (int)rng_below(&r, 31)), k1 = (float)(rng_unit(&r) * 3);
    const float b = (float)rng_unit(&r);
    const gpuir__norm norm = gpuir__norm_make(k1, b, (double)(1 + rng_below(&r, 999)));
    const uint32_t tf = 1 + rng_below(&r, 1u << (1 + rng_below(&r, 25))), length = tf + rng_below(&r, 100000);
    h = digest_of(h, gpuir__contribution(weight, tf, gpuir__norm_of(norm.a, norm.b, length)));
  }
  say("scores", h);
}

/* Of collections of all sizes, every df or some hundreds of thousands. */
static void digest_idf(void) {
  static const uint64_t documents[] = {1, 2, 7, 1000, 65536, 344867, 1000003, 4000000000u, GPUIR__MAX_DOCUMENTS};
  uint64_t h = 0, df;
  size_t i;
  for (i = 0; i < sizeof documents / sizeof *documents; i++)
    for (df = 1; df <= documents[i]; df += documents[i] > 2000000 ? 4099 : 1) {
      const float idf = gpuir_idf(documents[i], (uint32_t)df);
      uint32_t bits;
      memcpy(&bits, &idf, 4);
      h = digest_of(h, bits);
    }
  say("idf", h);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  digest_text(argv[1]);
  digest_collection();
  digest_scores();
  digest_idf();
  return 0;
}
