/* 56_engine.c - what the evaluators share: every search equals brute force, in all hits, their scores, order and number
 *
 * Collections are indexed with every pair of codecs and opened at every SIMD level, and each query runs under both
 * evaluators. Comparisons are for equality. GPUIR_LONG=1 runs ten times as many. */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rng.h"
#include "oracle.h"
#include "corpus.h"
#include "fixture.h"
#include "wordnet.h"

static void test_no_documents(void **state) {
  fixture f;
  (void)state;
  oracle_init(&f.o);
  oracle_invert(&f.o);
  setup(&f, "none");
  random_queries(&f, 20, 1, 1);
  teardown(&f);
}

static void test_one_document(void **state) {
  fixture f;
  (void)state;
  oracle_init(&f.o);
  corpus_words(&f.o, 3);
  oracle_add(&f.o, 0, 1);
  oracle_add(&f.o, 1, 7);
  oracle_doc(&f.o);
  oracle_invert(&f.o);
  setup(&f, "one");
  random_queries(&f, 60, 2, 1);
  teardown(&f);
}

static void test_empty_documents(void **state) {
  fixture f;
  uint32_t d;
  (void)state;
  oracle_init(&f.o);
  corpus_words(&f.o, 2);
  for (d = 0; d < 1000; d++) oracle_doc(&f.o);
  oracle_invert(&f.o);
  setup(&f, "empty documents");
  random_queries(&f, 10, 3, 1);
  teardown(&f);
}

static void test_small_zipf(void **state) {
  fixture f;
  (void)state;
  corpus_zipf(&f.o, 500, 300, 12, 11);
  setup(&f, "small");
  random_queries(&f, 300, 4, 1);
  single_terms(&f, 3, NULL, 1);
  teardown(&f);
}

static void test_large_zipf(void **state) {
  fixture f;
  (void)state;
  corpus_zipf(&f.o, 300000, 20000, 9, 71);
  setup(&f, "300,000 documents");
  random_queries(&f, 60, 14, 0);
  teardown(&f);
}

/* Every codec, some with parameters, and mixes of them. */
static void test_every_codec(void **state) {
  static const char *const docs[] = {"vbyte", "bp128", "pfd", "newpfd", "optpfd", "ef", "qs", "rice", "pfd-list",
      "parapfor", "lrc", "lrcseg", "seglrc", "hslrc", "auto", "auto:1", "qs:0.25", "pfd-list:4", "parapfor:64,0",
      "lrc:64,min", "lrcseg:64", "seglrc:128,min", "hslrc:32,0.1"};
  static const char *const freqs[] = {"bp128", "newpfd", "optpfd", "auto", "vbyte"};
  char path[4200];
  fixture f;
  unsigned i, times;
  (void)state;
  (void)corpus_path(path, sizeof path, "search.gpuir");
  for (times = 0; times < 2; times++) {
    if (times) corpus_ramps(&f.o, 9000, 52);
    else corpus_zipf(&f.o, 4000, 600, 12, 12);
    f.nindexes = 0;
    f.docid = NULL;
    f.k1 = 0.9f;
    f.b = 0.4f;
    f.hits = (gpuir_hit *)oracle_grow(NULL, (size_t)f.o.ndocs + 16, sizeof *f.hits);
    for (i = 0; i < sizeof docs / sizeof *docs; i++) {
      corpus_build b;
      gpuir_error err;
      memset(&b, 0, sizeof b);
      b.codec = docs[i];
      b.freq_codec = freqs[i % 5];
      f.name = docs[i];
      if (corpus_write(&f.o, path, &b, &err)) fail_msg("%s: build: %s", docs[i], err.msg);
      open_all(&f, path);
      random_queries(&f, 12, 70 + i, 0);
      single_terms(&f, f.o.nterms / 9 + 1, NULL, 0);
      close_all(&f);
    }
    teardown(&f);
  }
}

static void test_text(void **state) {
  static const char *const gap[] = {" ", "  ", "\n", ", ", ".", "-", "\t(", ") ", "_", "'", "\"", "/"};
  static const char *const word[] = {"Ranked", "TEXT", "search", "in", "One", "C", "header", "x86", "42", "0"};
  fixture f;
  texts t;
  rng r;
  unsigned d, i;
  (void)state;
  r.s = 81;
  texts_begin(&t, &f, "bp128");
  for (d = 0; d < 2000; d++) {
    char text[4096];
    size_t n = 0, words = rng_below(&r, 40);
    for (i = 0; i < words; i++) {
      const char *s = rng_below(&r, 4) ? word[rng_below(&r, 10)] : "";
      n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", s, gap[rng_below(&r, 12)]);
      if (rng_below(&r, 5) == 0) n += (size_t)snprintf(text + n, sizeof text - n, "Doc%u ", rng_below(&r, 300));
    }
    texts_add(&t, text, n);
  }
  texts_add(&t, "", 0);
  texts_add(&t, "\0nul\0bytes \0\0 nul", 17);
  texts_end(&t, "text");
  random_queries(&f, 100, 15, 1);
  teardown(&f);
}

/* The collection that comes with the project. */
static void test_wordnet(void **state) {
  fixture f;
  texts t;
  FILE *in = wordnet_open();
  char line[65536];
  (void)state;
  if (!in) {
    print_message("tests/data/wordnet.tsv is not there\n");
    skip();
  }
  texts_begin(&t, &f, "bp128");
  while (fgets(line, sizeof line, in)) {
    char *tab = strchr(line, '\t');
    if (tab) texts_add(&t, tab + 1, strlen(tab + 1));
  }
  (void)fclose(in);
  assert_true(f.o.ndocs > 100);
  texts_end(&t, "WordNet glosses");
  random_queries(&f, 300, 16, 0);
  single_terms(&f, 50, NULL, 0);
  teardown(&f);
}

/* No posting that contributes enough is passed over for its frequency, and hardly one that does not is kept. */
static void test_least_frequency(void **state) {
  unsigned long tight = 0, low_ones = 0;
  rng r;
  unsigned i;
  (void)state;
  r.s = 17;
  for (i = 0; i < 200000; i++) {
    const float *s = settings[rng_below(&r, SETTINGS)];
    uint32_t code = rng_below(&r, 256), high = 1 + rng_below(&r, 255), low = 1 + rng_below(&r, high);
    uint32_t pairs = high | code << 8, least, freq, tf, at;
    gpuir__scorer scorer;
    float norm;
    if (rng_below(&r, 2)) pairs = high | (code + rng_below(&r, 256 - code)) << 8 | low << 16 | code << 24;
    memset(&scorer, 0, sizeof scorer);
    scorer.norm = gpuir__norm_make(s[0], s[1], 1 + rng_below(&r, 300));
    scorer.weight = (float)(1 + rng_below(&r, 1u << (4 + rng_below(&r, 25))));
    scorer.q = 1 + rng_below(&r, 3);
    norm = gpuir__norm_of(scorer.norm.a, scorer.norm.b, gpuir__code_value(code));
    at = 1 + rng_below(&r, 1u << (1 + rng_below(&r, 24)));
    least = scorer.q * gpuir__contribution(scorer.weight, at, norm);
    freq = gpuir__least_frequency(&scorer, pairs, least);
    compared++;
    for (tf = at; tf > 1 && scorer.q * gpuir__contribution(scorer.weight, tf - 1, norm) >= least && at - tf < 9;) tf--;
    low_ones += tf > 1 && tf < 32;
    tight += tf > 1 && tf < 32 && freq + 1 == tf;
    if (freq + 1 > tf || (freq && scorer.q * gpuir__contribution(scorer.weight, freq, norm) >= least))
      fail_msg("frequency %u contributes %u, but %u is the least (weight %g, norm %g)", (unsigned)tf, (unsigned)least,
          (unsigned)freq + 1, (double)scorer.weight, (double)norm);
  }
  assert_true(tight > low_ones / 2); /* not right by passing nothing over */
}

/* ---- looks at the deadline ---- */

/* A codec that counts the blocks it decodes, and cancels the search at one of them. */
static gpuir__codec counting;
static const gpuir__codec *counted;
static unsigned blocks, blocks_after, trigger;
static int cancelled, stuck;

/* With `stuck`, each block has the first 128 documents, so that a list never gets out of the first tile. */
static void counting_decode(const gpuir__stream *d, uint32_t block, uint32_t prev, uint32_t *out) {
  uint32_t i;
  if (cancelled) blocks_after++;
  else if (++blocks == trigger) cancelled = 1;
  counted->decode_block(d, block, prev, out);
  for (i = 0; stuck && i < GPUIR__BLOCK; i++) out[i] = i;
}

enum {
  LOOK_AND,
  LOOK_AND_METHOD,
  LOOK_OR,
  LOOK_EXHAUSTIVE_AND,
  LOOK_EXHAUSTIVE_OR,
  LOOK_COUNT_AND,
  LOOK_COUNT_OR,
  LOOKS
};

/* Runs one evaluator over a query, of which block `trigger` cancels the search; returns its status. */
static int look(gpuir__engine *e, const gpuir_query *q, int how) {
  unsigned npositive, i;
  uint64_t count = 0;
  int status;
  cancelled = 0;
  blocks = blocks_after = 0;
  gpuir__engine_start(e);
  assert_int_equal(gpuir__engine_open(e, q, 0, &npositive), GPUIR_OK);
  assert_int_equal(gpuir__topk_start(&e->a, &e->top, 10, 0, NULL), GPUIR_OK);
  for (i = 0; i < e->ncursors; i++) {
    counted = e->cursors[i].list.docs.codec;
    counting = *counted;
    counting.decode_block = counting_decode;
    counting.find = NULL;
  }
  for (i = 0; i < e->ncursors; i++) e->cursors[i].list.docs.codec = &counting;
  switch (how) {
  case LOOK_AND:
  case LOOK_AND_METHOD: status = gpuir__eval_and(e, npositive, NULL); break;
  case LOOK_OR: status = gpuir__eval_or(e, q, npositive, 10); break;
  case LOOK_EXHAUSTIVE_AND: status = gpuir__eval_exhaustive(e, npositive, 1); break;
  case LOOK_EXHAUSTIVE_OR: status = gpuir__eval_exhaustive(e, npositive, 0); break;
  case LOOK_COUNT_AND: status = gpuir__eval_and(e, npositive, &count); break;
  default: status = gpuir__count_windows(e, npositive, 0, &count);
  }
  e->top.n = 0;
  gpuir__engine_reset(e);
  return status;
}

/* Whichever block a search is cancelled at, in sound lists and in damaged ones, it ends within 64 blocks and the pass
 * that is under way, which decodes a block a candidate at most. */
static void test_looks(void **state) {
  enum { NDOCS = 60000, LISTS = 3 };
  fixture f;
  gpuir_query *q;
  uint32_t d, t;
  int how, status;
  unsigned stopped = 0;
  (void)state;
  oracle_init(&f.o);
  corpus_words(&f.o, LISTS);
  for (d = 0; d < NDOCS; d++) {
    for (t = 0; t < LISTS; t++)
      if (d % (t + 1) == 0) oracle_add(&f.o, t, 1 + d % 5);
    oracle_doc(&f.o);
  }
  oracle_invert(&f.o);
  setup_codecs(&f, "looks", NULL, 1);
  q = parse(f.index[2], "w0 w1 w2", 8, GPUIR_OR, NULL, &status);
  assert_int_equal(status, GPUIR_OK);
  for (how = 0; how < LOOKS; how++)
    for (stuck = 0; stuck < 2; stuck++) {
      gpuir_searcher_desc desc;
      gpuir_searcher *s;
      memset(&desc, 0, sizeof desc);
      desc.cancel = &cancelled;
      desc.intersection = how == LOOK_AND_METHOD ? "hs64" : NULL;
      assert_int_equal(gpuir_searcher_create(f.index[2], &desc, &s, NULL), GPUIR_OK);
      for (trigger = 1;; trigger += 1 + trigger / 3) {
        status = look(&s->engine, q, how);
        if (!cancelled) break;
        if (status) stopped++;
        assert_true(!status || status == GPUIR_E_CANCELLED);
        if (blocks_after > GPUIR__LOOK_BLOCKS + GPUIR__BLOCK)
          fail_msg("evaluator %d%s: %u blocks were decoded after block %u had cancelled the search", how,
              stuck ? ", damaged lists" : "", blocks_after, trigger);
      }
      assert_int_equal(status, GPUIR_OK);
      gpuir_searcher_destroy(s);
    }
  assert_true(stopped > 50);
  gpuir_query_destroy(q);
  teardown(&f);
}

enum { TILE = 2048, ROOM = TILE + 16 }; /* documents of a tile, and what an array of candidates has room for */

/* A tile, and what kernels make of it. */
typedef struct tiled {
  uint32_t scores[TILE], docs[ROOM], sums[ROOM], some[ROOM], values[ROOM], n, kept;
  uint8_t touched[TILE / GPUIR__TOUCH];
} tiled;

/* Fills the tile: one of n groups, and the first, have accumulators. */
static void fill_tile(tiled *x, rng *r, uint32_t n) {
  uint32_t i, group;
  memset(x, 0, sizeof *x);
  for (group = 0; group < TILE / GPUIR__TOUCH; group++)
    if (!group || !rng_below(r, n)) {
      x->touched[group] = 1;
      for (i = 0; i < GPUIR__TOUCH; i++) x->scores[group * GPUIR__TOUCH + i] = rng_below(r, 3) * rng_below(r, 1000);
    }
  x->scores[rng_below(r, GPUIR__TOUCH)] = UINT32_MAX; /* they are unsigned */
}

/* Collects what reaches the threshold, and copies of it what reaches another one. */
static void run_kernels(tiled *x, const gpuir__search_kernels *kernels, uint32_t threshold, uint32_t least) {
  gpuir__tile t;
  memset(&t, 0, sizeof t);
  t.shift = 11;
  t.scores = x->scores;
  t.touched = x->touched;
  t.candidates = x->docs;
  t.sums = x->sums;
  x->n = kernels->collect(&t, 3 * TILE, threshold);
  x->kept = kernels->keep(x->docs, x->sums, x->n, least, x->some, x->values);
}

/* The kernels of every level find what the scalar ones find, leave the tile empty, and keep in place as elsewhere. */
static void test_kernels(void **state) {
  static const uint32_t thresholds[] = {0, 1, 500, 1900, 1u << 31, UINT32_MAX};
  static tiled filled, scalar, other, empty;
  rng r = {17};
  unsigned round, found = 0;
  int level;
  (void)state;
  for (round = 0; round < 600; round++) {
    const uint32_t threshold = thresholds[round % 6], least = threshold / 2 + 700;
    fill_tile(&filled, &r, 1 + round % 7 * 9);
    scalar = filled;
    run_kernels(&scalar, &gpuir__search_of_level[0], threshold, least);
    for (level = GPUIR_SIMD_SCALAR; level <= gpuir__simd_level(GPUIR_SIMD_AUTO); level++) {
      const gpuir__search_kernels *kernels = &gpuir__search_of_level[level - GPUIR_SIMD_SCALAR];
      other = filled;
      run_kernels(&other, kernels, threshold, least);
      assert_int_equal(other.n, scalar.n);
      assert_int_equal(other.kept, scalar.kept);
      assert_memory_equal(other.docs, scalar.docs, other.n * 4);
      assert_memory_equal(other.sums, scalar.sums, other.n * 4);
      assert_memory_equal(other.some, scalar.some, other.kept * 4);
      assert_memory_equal(other.values, scalar.values, other.kept * 4);
      assert_memory_equal(other.scores, empty.scores, sizeof empty.scores);
      assert_memory_equal(other.touched, empty.touched, sizeof empty.touched);
      assert_int_equal(kernels->keep(other.docs, other.sums, other.n, least, other.docs, other.sums), other.kept);
      assert_memory_equal(other.docs, other.some, other.kept * 4);
      assert_memory_equal(other.sums, other.values, other.kept * 4);
    }
    found += scalar.kept;
  }
  assert_true(found > 1000);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_documents),
      cmocka_unit_test(test_one_document),
      cmocka_unit_test(test_empty_documents),
      cmocka_unit_test(test_small_zipf),
      cmocka_unit_test(test_large_zipf),
      cmocka_unit_test(test_every_codec),
      cmocka_unit_test(test_text),
      cmocka_unit_test(test_wordnet),
      cmocka_unit_test(test_least_frequency),
      cmocka_unit_test(test_looks),
      cmocka_unit_test(test_kernels),
  };
  int failed;
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  failed = cmocka_run_group_tests_name("56_engine", tests, NULL, NULL);
  print_message("%lu comparisons, %lu hits\n", compared, hits_compared);
  return failed;
}
