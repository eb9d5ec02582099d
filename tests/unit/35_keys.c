/* 35_keys.c - the values of keys and paths in their pages: all come back, are found, and damaged ones do no harm */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "rng.h"

#define MOST 3000

static char texts[MOST][40], longest[GPUIR_MAX_VALUE];
static uint8_t *bytes;
static uint64_t pages[MOST];

static int compare(const void *a, const void *b) {
  return gpuir__value_compare(GPUIR_PATH, (const char *)a, strlen((const char *)a), (const char *)b,
      strlen((const char *)b));
}

/* Writes n sorted values, of which the last may be as long as one can be; returns them. */
static gpuir__key_texts write_keys(unsigned n, int with_longest) {
  gpuir__key_texts t;
  uint8_t *to = bytes;
  const char *before = NULL;
  size_t before_len = 0;
  unsigned i, kept = 0;
  for (i = 0; i < n; i++)
    (void)snprintf(texts[i], sizeof *texts, "%s/%x", below(2) ? "some/folder" : "x", below(1u << (1 + below(16))));
  qsort(texts, n, sizeof *texts, compare);
  for (i = 0; i < n; i++)
    if (!i || strcmp(texts[i], texts[kept - 1]) != 0) memmove(texts[kept++], texts[i], sizeof *texts);
  for (i = 0; i < kept + (with_longest != 0); i++) {
    const char *text = i < kept ? texts[i] : longest;
    const size_t len = i < kept ? strlen(texts[i]) : sizeof longest;
    if (i % GPUIR__KEY_PAGE == 0) pages[i / GPUIR__KEY_PAGE] = (uint64_t)(to - bytes);
    to = gpuir__key_put(i, before, before_len, text, len, to);
    before = text;
    before_len = len;
  }
  t.column = GPUIR_PATH;
  t.n = i;
  t.text = bytes;
  t.size = (uint64_t)(to - bytes);
  t.pages = pages;
  t.npages = gpuir__key_pages(i);
  memset(to, 0, 64);
  return t;
}

static void test_found(void **state) {
  static const unsigned sizes[] = {0, 1, 2, 15, 16, 17, 31, 33, 700, MOST};
  gpuir__key_walk w;
  unsigned k, i;
  int found;
  (void)state;
  for (k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    const gpuir__key_texts t = write_keys(sizes[k], k % 2);
    for (i = 0; i < t.n; i++) {
      char more[GPUIR_MAX_VALUE + 2];
      const size_t len = gpuir__key_get(&t, i, &w);
      assert_true(len > 0);
      if (len < 40) assert_string_equal(w.text, texts[i]);
      assert_int_equal(gpuir__key_below(&t, w.text, len, &found), i);
      assert_true(found);
      memcpy(more, w.text, len);
      memcpy(more + len, "\x01", 2);
      if (i + 1 == t.n || compare(more, texts[i + 1]) < 0 || len >= 40) {
        assert_int_equal(gpuir__key_below(&t, more, len + 1, &found), i + 1);
        assert_false(found);
      }
    }
    assert_int_equal(gpuir__key_below(&t, "\x01", 1, &found), 0);
    assert_int_equal(gpuir__key_get(&t, t.n, &w), 0);
  }
}

/* Whatever bytes and pages hold, nothing outside them is read: a sanitizer looks on. */
static void test_damaged(void **state) {
  gpuir__key_walk w;
  unsigned round;
  int found;
  (void)state;
  for (round = 0; round < 3000; round++) {
    gpuir__key_texts t = write_keys(1 + below(60), 0);
    uint8_t *copy;
    unsigned i;
    t.size -= below((uint32_t)t.size);
    copy = (uint8_t *)malloc((size_t)t.size + 64);
    memcpy(copy, bytes, (size_t)t.size);
    memset(copy + t.size, 0, 64);
    for (i = below(8); i; i--) copy[below((uint32_t)t.size)] = (uint8_t)below(256);
    if (below(2)) pages[below((uint32_t)t.npages)] = rng_next(&rng_shared) >> below(64);
    if (below(4) == 0) t.npages = below((uint32_t)t.npages + 1);
    t.text = copy;
    for (i = 0; i < t.n + 1; i++) assert_true(gpuir__key_get(&t, i, &w) <= GPUIR_MAX_VALUE);
    assert_true(gpuir__key_below(&t, "some/folder/77", 14, &found) <= t.n);
    free(copy);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_found), cmocka_unit_test(test_damaged)};
  bytes = (uint8_t *)malloc(1 << 20);
  memset(longest, 'z', sizeof longest);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
