/* 28_encoder.c - lists as they are encoded: parameters, the choice of codecs by `auto`, lists longer than memory */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "alloc.h"
#include "rng.h"
#include "collection.h"

/* One word in every document, more often than memory for its postings allows: the list is made in a file. */
static void test_long_list(void **state) {
  gpuir_builder_desc d = desc_of(path);
  unsigned threads;
  char *first = NULL;
  size_t n = 0;
  (void)state;
  for (threads = 1; threads <= 3; threads++) {
    gpuir_builder *b;
    gpuir_build_report r;
    gpuir_error err;
    uint32_t i;
    d.threads = threads;
    assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
    for (i = 0; i < 300000; i++) {
      char text[40];
      int len = sprintf(text, i % 5 ? "all %u" : "all all all %u", i % 1000);
      assert_int_equal(gpuir_builder_add_text(b, NULL, text, (size_t)len, &err), 0);
    }
    if (gpuir_builder_write(b, &r, &err)) fail_msg("%s", err.msg);
    gpuir_builder_destroy(b);
    assert_int_equal(r.postings, 600000);
    assert_int_equal(r.terms, 1001);
    if (first) {
      assert_same_file(path, first, n);
    } else {
      gpuir_index *ix;
      first = slurp(path, &n);
      assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
      assert_int_equal(gpuir_verify(ix, &err), 0);
      gpuir_close(ix);
    }
  }
  free(first);
}

/* Bytes of docIDs in an index of the same codec with its default parameter. */
static uint64_t plain_bytes(const char *spec) {
  gpuir_builder_desc d;
  gpuir_index *ix;
  gpuir_index_info info;
  gpuir_error err;
  char name[16], other[96];
  path_of(other, "plain.gpuir");
  d = desc_of(other);
  (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(spec, ":"), spec);
  d.codec = name;
  if (build(&d, ndocs, NULL, &err)) fail_msg("%s", err.msg);
  if (gpuir_open(other, NULL, &ix, &err)) fail_msg("%s", err.msg);
  assert_int_equal(gpuir_index_get_info(ix, &info), 0);
  gpuir_close(ix);
  (void)unlink(other);
  return info.docids_bytes;
}

/* Each codec with a parameter: kept in the index as it was spelt, heeded by long and short lists, the same bytes
 * for any threads and memory. */
static void test_parameters(void **state) {
  static const char *const specs[] = {"qs:0.25", "qs:4", "pfd-list:0", "pfd-list:4", "parapfor:64", "parapfor:,min",
      "lrc:64,0.2", "lrcseg:128", "seglrc:,min", "hslrc:32", "hslrc:32,min"};
  size_t i, n = 0;
  (void)state;
  for (i = 0; i < sizeof specs / sizeof *specs; i++) {
    gpuir_builder_desc d = desc_of(path);
    gpuir_index *ix;
    gpuir_index_info info;
    gpuir_error err;
    gpuir__walk w;
    uint64_t longs = 0, shorts = 0;
    char *bytes;
    d.codec = specs[i];
    d.memory = 64 << 20;
    d.threads = 1;
    if (build(&d, ndocs, NULL, &err)) fail_msg("%s", err.msg);
    bytes = slurp(path, &n);
    d.memory = 1 << 20;
    d.threads = 3;
    if (build(&d, ndocs, NULL, &err)) fail_msg("%s", err.msg);
    assert_same_file(path, bytes, n);
    free(bytes);
    if (gpuir_open(path, NULL, &ix, &err)) fail_msg("%s", err.msg);
    if (gpuir_verify(ix, &err)) fail_msg("%s: %s", specs[i], err.msg);
    assert_int_equal(gpuir_index_get_info(ix, &info), 0);
    assert_string_equal(info.codec, specs[i]);
    assert_string_equal(info.freq_codec, "bp128");
    assert_true(info.docids_bytes != plain_bytes(specs[i]));
    assert_postings(ix);
    for (gpuir__walk_start(&w, gpuir__only(ix)); gpuir__walk_next(&w);) { /* what the streams say of themselves */
      const gpuir__record *r = &w.record;
      const uint8_t *p;
      if (r->df == 1) continue;
      p = gpuir__only(ix)->lists.docids +
          (r->df < 128 ? gpuir__only(ix)->stat.docs_short + r->docs : gpuir__only(ix)->lists.longs[r->docs].docs);
      longs += r->df >= 128;
      shorts += r->df < 128;
      if (!strncmp(specs[i], "pfd-list:", 9)) assert_int_equal(p[0], specs[i][9] - '0' + 1);
      if (r->df < 128) continue;
      if (strstr(specs[i], "64")) assert_int_equal(p[0], 6);
      if (!strcmp(specs[i], "lrcseg:128") || !strcmp(specs[i], "parapfor:,min")) assert_int_equal(p[0], 7);
      if (!strcmp(specs[i], "seglrc:,min")) assert_int_equal(p[0], 8);
      if (!strncmp(specs[i], "qs:", 3)) {
        uint32_t last =
                     gpuir__only(ix)->lists.last[gpuir__only(ix)->lists.longs[r->docs].first_block + (r->df - 1) / 128],
                 quarters = specs[i][3] == '4' ? 16 : 1;
        unsigned b = 0;
        while ((uint64_t)r->df * 4 << (b + 1) <= (uint64_t)quarters * last) b++; /* floor(log2(c u / n)) */
        assert_int_equal(p[0], b);
      }
    }
    assert_true(longs > 100 && shorts > 1000);
    gpuir_close(ix);
  }
}

/* The bytes of each list's streams in an index. */
typedef struct sizes {
  uint64_t docs, freqs;
} sizes;

static sizes *sizes_of(const char *codec, const char *freq_codec, size_t *terms) {
  gpuir_builder_desc d = desc_of(path);
  gpuir_index *ix;
  gpuir_error err;
  sizes *all;
  uint64_t id;
  d.codec = codec;
  d.freq_codec = freq_codec;
  if (build(&d, ndocs, NULL, &err)) fail_msg("%s", err.msg);
  if (gpuir_open(path, NULL, &ix, &err)) fail_msg("%s", err.msg);
  all = (sizes *)calloc(gpuir__only(ix)->stat.terms, sizeof *all);
  assert_non_null(all);
  for (id = 0; id < gpuir__only(ix)->stat.terms; id++) {
    gpuir_term_info t;
    assert_int_equal(gpuir_term_get_info(ix, id, &t), 0);
    all[id].docs = t.docids_bytes;
    all[id].freqs = t.freqs_bytes;
  }
  *terms = gpuir__only(ix)->stat.terms;
  gpuir_close(ix);
  return all;
}

/* auto takes of each list the codec whose bytes, weighted by its cost, are least, the first one of equals. */
static void test_auto(void **state) {
  static const char *const specs[] = {"auto", "auto:0.3", "auto:1"};
  static const unsigned weights[] = {0, 300, 1000};
  sizes *by[GPUIR__DOCID_CODECS];
  size_t terms = 0, i, j, n = 0;
  (void)state;
  for (i = 0; i < GPUIR__DOCID_CODECS; i++)
    by[i] = sizes_of(gpuir__docid_codecs[i].name, gpuir__freq_codecs[i % GPUIR__FREQ_CODECS].name, &terms);
  for (j = 0; j < 3; j++) {
    gpuir_builder_desc d = desc_of(path);
    gpuir_codec_info mix[2][GPUIR_MAX_CODECS];
    size_t nmix[2], k;
    unsigned docids;
    gpuir_index *ix;
    gpuir_index_info info;
    gpuir_error err;
    uint64_t id;
    char *bytes;
    d.codec = d.freq_codec = specs[j];
    d.threads = 1;
    d.memory = 64 << 20;
    if (build(&d, ndocs, NULL, &err)) fail_msg("%s", err.msg);
    bytes = slurp(path, &n);
    d.threads = 3;
    d.memory = 1 << 20;
    if (build(&d, ndocs, NULL, &err)) fail_msg("%s", err.msg);
    assert_same_file(path, bytes, n);
    free(bytes);
    if (gpuir_open(path, NULL, &ix, &err)) fail_msg("%s", err.msg);
    if (gpuir_verify(ix, &err)) fail_msg("%s: %s", specs[j], err.msg);
    assert_int_equal(gpuir_index_get_info(ix, &info), 0);
    assert_string_equal(info.codec, specs[j]);
    assert_string_equal(info.freq_codec, specs[j]);
    assert_int_equal(gpuir__only(ix)->stat.terms, terms);
    assert_postings(ix);
    assert_int_equal(gpuir_codec_get_info(ix, 0, mix[0], &nmix[0]), 0);
    assert_int_equal(gpuir_codec_get_info(ix, 1, mix[1], &nmix[1]), 0);
    assert_true(nmix[1] > 3 && nmix[0] > 1);
    for (id = 0; id < terms; id++) {
      gpuir_term_info t;
      assert_int_equal(gpuir_term_get_info(ix, id, &t), 0);
      if (t.df == 1) continue;
      for (docids = 0; docids < 2; docids++) {
        const gpuir__codec *table = docids ? gpuir__docid_codecs : gpuir__freq_codecs;
        const size_t ncodecs = docids ? GPUIR__DOCID_CODECS : GPUIR__FREQ_CODECS;
        double least = 1e300; /* sums of small integers by thousandths: exact enough for an order */
        size_t best = 0;
        for (i = 0; i < ncodecs; i++) {
          double price = (double)(docids ? by[i][id].docs : by[i][id].freqs) *
              (1.0 + weights[j] / 1000.0 * (table[i].cost / 100.0));
          if (price < least - 1e-6) {
            least = price;
            best = i;
          }
        }
        assert_string_equal(docids ? t.codec : t.freq_codec, table[best].name);
        assert_int_equal(docids ? t.docids_bytes : t.freqs_bytes, docids ? by[best][id].docs : by[best][id].freqs);
        for (k = 0; k < nmix[docids] && strcmp(mix[docids][k].codec, table[best].name) != 0; k++) continue;
        assert_true(k < nmix[docids]);
        mix[docids][k].lists--;
        mix[docids][k].postings -= t.df;
        mix[docids][k].bytes -= docids ? t.docids_bytes : t.freqs_bytes;
      }
    }
    for (docids = 0; docids < 2; docids++)
      for (k = 0; k < nmix[docids]; k++)
        assert_true(!mix[docids][k].lists && !mix[docids][k].postings && !mix[docids][k].bytes);
    gpuir_close(ix);
  }
  for (i = 0; i < GPUIR__DOCID_CODECS; i++) free(by[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_long_list),
      cmocka_unit_test(test_parameters),
      cmocka_unit_test(test_auto),
  };
  return cmocka_run_group_tests_name("28_encoder", tests, set_up, tear_down);
}
