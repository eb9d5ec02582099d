/* 23_codings.c - the tables of codecs, and how users spell them */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "spellings.h"

static size_t ncodecs(void) { return GPUIR__DOCID_CODECS + GPUIR__FREQ_CODECS; }

static const gpuir__codec *codec_at(size_t i) {
  return i < GPUIR__DOCID_CODECS ? gpuir__docid_codecs + i : gpuir__freq_codecs + (i - GPUIR__DOCID_CODECS);
}

/* This program and the library have a copy of the tables each. */
static int is_same(const gpuir__codec *a, const gpuir__codec *b) {
  return a && a->id == b->id && a->docids == b->docids && !strcmp(a->name, b->name);
}

static void test_tables(void **state) {
  size_t i, j;
  (void)state;
  for (i = 0; i < ncodecs(); i++) {
    const gpuir__codec *c = codec_at(i);
    assert_true(is_same(gpuir__codec_by_name(c->name, c->docids), c));
    assert_true(is_same(gpuir__codec_by_id(c->id, c->docids), c));
    assert_true(c->unit >= 1 && c->unit <= 16 && !(c->unit & (c->unit - 1)));
    assert_true(c->docids == (i < GPUIR__DOCID_CODECS));
    assert_true(c->encode && c->decode_block && (c->docids || c->get));
    for (j = 0; j < ncodecs(); j++) { /* a name and an id belong together, and stand once in a table */
      assert_true(!strcmp(c->name, codec_at(j)->name) == (c->id == codec_at(j)->id));
      assert_true(is_same(c, codec_at(j)) == (i == j));
    }
  }
  for (i = 0; i < 2; i++) {
    assert_string_equal(gpuir__codec_by_name(NULL, (int)i)->name, "bp128");
    assert_null(gpuir__codec_by_name("no such codec", (int)i));
    assert_null(gpuir__codec_by_name("", (int)i));
    assert_null(gpuir__codec_by_id(0, (int)i));
    assert_null(gpuir__codec_by_id(255, (int)i));
  }
}

static void test_spellings(void **state) {
  static const char *const bad[] = {"bp128:1", "bp128:", "vbyte:0", "pfd:1", "newpfd:3", "optpfd:min", "ef:128",
      "rice:4", "qs:", "qs:0.2", "qs:4.001", "qs:1,5", "qs:x", "qs:-1", "qs:1.", "qs:1.0001", "qs:.", "qs: 1", "qs:1 ",
      "qs:1e0", "qs:inf", "qs:99999999999", "qs:1:1", "pfd-list:5", "pfd-list:", "pfd-list:1.5", "pfd-list:-1",
      "pfd-list:1.0", "parapfor:", "parapfor:32", "parapfor:512", "parapfor:100", "parapfor:64,", "parapfor:64,2",
      "parapfor:64,min2", "parapfor:64,1.001", "parapfor:,", "parapfor:64,.1,", "lrc:16", "lrc:0", "lrcseg:1024",
      "seglrc:64,max", "hslrc:16", "hslrc:512", "hslrc:48", "auto:", "auto:1.001", "auto:2", "auto:-0", "auto:fast",
      "auto:0.1,min"};
  static const char *const unknown[] = {"", ":", "b", "bp12", "bp1288", "BP128", " bp128", "autos", "zip:9", "aut",
      "q:1"};
  gpuir__coding coding;
  gpuir_error err;
  size_t i;
  (void)state;
  for (i = 0; i < sizeof good / sizeof *good; i++) {
    assert_int_equal(gpuir__coding_parse(good[i].spec, 1, &coding, &err), 0);
    assert_ptr_equal(coding.codec, good[i].name ? gpuir__codec_by_name(good[i].name, 1) : NULL);
    if (coding.param != good[i].param) fail_msg("%s is read as %llu", good[i].spec, (unsigned long long)coding.param);
  }
  for (i = 0; i < sizeof bad / sizeof *bad; i++) {
    if (gpuir__coding_parse(bad[i], 1, &coding, &err) != GPUIR_E_ARGUMENT) fail_msg("'%s' is taken", bad[i]);
    assert_int_equal(err.code, GPUIR_E_ARGUMENT);
    assert_non_null(strstr(err.msg, bad[i]));
  }
  for (i = 0; i < 2 * sizeof unknown / sizeof *unknown; i++) {
    const char *spec = unknown[i / 2];
    if (gpuir__coding_parse(spec, i % 2, &coding, &err) != GPUIR_E_UNSUPPORTED) fail_msg("'%s' is taken", spec);
    assert_non_null(strstr(err.msg, spec));
  }
  assert_int_equal(gpuir__coding_parse("qs:1", 0, &coding, &err), GPUIR_E_UNSUPPORTED);
  assert_int_equal(gpuir__coding_parse("newpfd:1", 0, &coding, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir__coding_parse("auto:.5", 0, &coding, &err), 0);
  assert_true(!coding.codec && coding.param == 500);
  for (i = 0; i < 2; i++) {
    assert_int_equal(gpuir__coding_parse(NULL, (int)i, &coding, &err), 0);
    assert_true(coding.codec == gpuir__codec_by_name("bp128", (int)i) && coding.param == 0);
  }
}

/* Every codec of the tables is one whose properties are tested: the part_codecs of 18_codecs.c to 22_lab_lines.c. */
static void test_all_are_tested(void **state) {
  static const char *const tested[] = {"vbyte", "bp128", "ef", "qs", "rice", "pfd", "newpfd", "optpfd", "pfd-list",
      "parapfor", "lrc", "lrcseg", "seglrc", "hslrc"};
  size_t i, j;
  (void)state;
  for (i = 0; i < ncodecs(); i++) {
    for (j = 0; j < sizeof tested / sizeof *tested && strcmp(tested[j], codec_at(i)->name);) j++;
    if (j == sizeof tested / sizeof *tested) fail_msg("no part's tests have %s", codec_at(i)->name);
  }
}

/* Every level has all its kernels, and nothing is left out of this build. */
static void test_kernels(void **state) {
  int level;
  size_t i;
  (void)state;
  for (level = GPUIR_SIMD_SCALAR; level <= GPUIR_SIMD_AVX512; level++) {
    const gpuir__codec_kernels *k = gpuir__codec_kernels_at(level);
    assert_ptr_equal(k, &gpuir__codec_of_level[level - GPUIR_SIMD_SCALAR]);
    assert_true(k->sum_gaps && k->bp128_docids && k->bp128_freqs && k->bp128_get && k->bp128_find);
    assert_true(k->unpack && k->stops && k->join && k->marked && k->line_add);
    if (gpuir__simd_level(level) > GPUIR_SIMD_SCALAR) assert_true(k->wide_docids && k->wide_freqs);
  }
  for (i = 0; i < ncodecs(); i++) {
    const gpuir__codec *c = codec_at(i);
    gpuir_error err;
    assert_null(gpuir__codec_left_out(c->name, strlen(c->name), 0, c->docids));
    assert_null(gpuir__codec_left_out(NULL, 0, c->id, c->docids));
    assert_int_equal(gpuir__coding_check(c->name, c->docids, "index", &err), GPUIR_OK);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tables),
      cmocka_unit_test(test_spellings),
      cmocka_unit_test(test_kernels),
      cmocka_unit_test(test_all_are_tested),
  };
  return cmocka_run_group_tests_name("23_codings", tests, NULL, NULL);
}
