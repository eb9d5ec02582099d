/* 61_or.c - pruned OR: tiles, bounds that rise and fall, a damaged directory */
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

/* Every two terms with up to three more, some of them negated. */
static void pairs_of_terms(fixture *f, const float *bm25) {
  rng r;
  uint32_t i, j;
  r.s = 15;
  for (i = 0; i < f->o.nterms; i++)
    for (j = 0; j < i; j++) {
      oracle_query q;
      uint32_t t;
      q.n = 2 + (i + j) % 4;
      for (t = 0; t < q.n; t++) {
        q.word[t].term = t == 0 ? i : t == 1 ? j : (i * 5 + j * 3 + t * 7) % f->o.nterms;
        q.word[t].negated = t > 0 && (i + j + t) % 11 == 0;
      }
      check_query(f, &q, bm25, &r, 0);
    }
}

static void test_tiles(void **state) {
  fixture f;
  gpuir_searcher_info info;
  (void)state;
  memset(&info, 0, sizeof info);
  corpus_tiles(&f.o, GPUIR__FIRST_TILES + 1, 1u << GPUIR__TILE_SHIFT, GPUIR__WHOLE, 52); /* not all of them go first */
  setup_codecs(&f, "tiles", NULL, 1);
  single_terms(&f, 1, NULL, 0);
  pairs_of_terms(&f, NULL);
  pairs_of_terms(&f, settings[4]);
  pairs_of_terms(&f, settings[8]);
  random_queries(&f, 12, 16, 0);
  gpuir_searcher_get_info(f.searcher[0], &info);
  assert_true(info.tiles_scored > 0 && info.tiles_scored < info.tiles_total &&
      info.tiles_total % (GPUIR__FIRST_TILES + 2) == 0);
  teardown(&f);
}

/* Writes a u32 over the one at `at` in a file. */
static void overwrite(const char *path, uint64_t at, uint32_t value) {
  FILE *f = fopen(path, "r+b");
  assert_non_null(f);
  assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
  assert_int_equal(fwrite(&value, sizeof value, 1, f), 1);
  assert_int_equal(fclose(f), 0);
}

/* A damaged directory lets a block's docIDs wrap round to 0, so that they stand in the last tile, which the documents
 * do not fill: no hit is beyond them. */
static void test_damaged_tile(void **state) {
  enum { NDOCS = (1u << GPUIR__TILE_SHIFT) + 8, FIRST = 16, LISTS = 2 };
  static gpuir_hit hits[NDOCS];
  char path[4200];
  int way;
  oracle o;
  uint32_t d, t;
  uint64_t at;
  gpuir_index *ix;
  gpuir_error err;
  (void)state;
  oracle_init(&o);
  corpus_words(&o, LISTS);
  for (d = 0; d < NDOCS; d++) {
    for (t = 0; t < LISTS && d >= FIRST; t++) oracle_add(&o, t, 1);
    oracle_doc(&o);
  }
  oracle_invert(&o);
  (void)corpus_path(path, sizeof path, "damaged.gpuir");
  if (corpus_write(&o, path, NULL, &err)) fail_msg("build: %s", err.msg);
  ix = open_at(path, GPUIR_SIMD_AUTO);
  at = gpuir__only(ix)->section[GPUIR__S_LAST]->offset;
  for (t = 0; t < LISTS; t++) {
    const uint32_t nblocks = (NDOCS - FIRST - 1) / GPUIR__BLOCK + 1;
    overwrite(path, at + ((t + 1) * nblocks - 2) * 4, UINT32_MAX - 4); /* before the last block */
  }
  gpuir_close(ix);
  for (way = 0; way < 2 * LEVELS; way++) {
    gpuir_searcher *s;
    gpuir_query_desc how;
    gpuir_query *q;
    size_t n, i;
    memset(&how, 0, sizeof how);
    how.mode = GPUIR_OR;
    ix = open_at(path, GPUIR_SIMD_SCALAR + way / 2);
    s = searcher_on(ix, way % 2 ? GPUIR_EVAL_EXHAUSTIVE : GPUIR_EVAL_AUTO, 1);
    if (gpuir_query_parse(ix, &how, "w0 w1", 5, &q, &err)) fail_msg("%s", err.msg);
    assert_int_equal(gpuir_search(s, q, hits, NDOCS, &n), GPUIR_OK);
    assert_true(n > 0);
    for (i = 0; i < n; i++) assert_true(hits[i].docid < NDOCS);
    compared++;
    gpuir_query_destroy(q);
    gpuir_searcher_destroy(s);
    gpuir_close(ix);
  }
  (void)unlink(path);
  oracle_free(&o);
}

static void test_ramps(void **state) {
  fixture f;
  (void)state;
  corpus_ramps(&f.o, 200000, 51);
  setup_codecs(&f, "ramps", NULL, 9);
  single_terms(&f, 1, NULL, 0);
  random_queries(&f, 18, 12, 0);
  teardown(&f);
}

static void test_stretches(void **state) {
  fixture f;
  rng r;
  uint32_t i, j;
  (void)state;
  corpus_stretches(&f.o, 6);
  setup(&f, "stretches");
  r.s = 18;
  for (i = 0; i < f.o.nterms; i++)
    for (j = 0; j < i; j++) {
      oracle_query q;
      q.n = 2;
      q.word[0].term = i;
      q.word[1].term = j;
      q.word[0].negated = q.word[1].negated = 0;
      check_query(&f, &q, NULL, &r, corpus_long_run());
    }
  random_queries(&f, 12, 18, 0);
  teardown(&f);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tiles),
      cmocka_unit_test(test_damaged_tile),
      cmocka_unit_test(test_ramps),
      cmocka_unit_test(test_stretches),
  };
  int failed;
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  failed = cmocka_run_group_tests_name("61_or", tests, NULL, NULL);
  print_message("%lu comparisons, %lu hits\n", compared, hits_compared);
  return failed;
}
