/* codec_properties.h - properties that every codec must have, tested for the codecs of one part of gpuir.h: whatever is
 * encoded is decoded again, at every SIMD level, block by block and value by value, and hostile bytes do no harm (all
 * buffers have their exact sizes, for -fsanitize=address,undefined)
 *
 * A part's file defines before it includes this
 *
 *     part_codecs   the names of its codecs
 *     lane_value    value i of an opened list by itself, as a lane of a warp computes it; *gap: it is a gap
 *
 * and lists the tests by CODEC_PROPERTIES, with test_parameters where a codec of the part has any.
 */
#ifndef TESTS_CODEC_PROPERTIES_H
#define TESTS_CODEC_PROPERTIES_H

#include "lists.h"
#include "spellings.h"
#include "wordnet.h"

#define CODEC_PROPERTIES \
  cmocka_unit_test(test_round_trip), cmocka_unit_test(test_long_lists), cmocka_unit_test(test_lanes), \
      cmocka_unit_test(test_naive), cmocka_unit_test(test_real_lists), cmocka_unit_test(test_out_of_memory), \
      cmocka_unit_test(test_hostile)

static inline int in_part(const gpuir__codec *c) {
  size_t i;
  for (i = 0; i < sizeof part_codecs / sizeof *part_codecs; i++)
    if (!strcmp(c->name, part_codecs[i])) return 1;
  return 0;
}

/* The i-th codec of the part, those of docIDs first; NULL behind the last one. */
static inline const gpuir__codec *codec_at(size_t i) {
  size_t k;
  for (k = 0; k < GPUIR__DOCID_CODECS + GPUIR__FREQ_CODECS; k++) {
    const gpuir__codec *c =
        k < GPUIR__DOCID_CODECS ? &gpuir__docid_codecs[k] : &gpuir__freq_codecs[k - GPUIR__DOCID_CODECS];
    if (in_part(c) && !i--) return c;
  }
  return NULL;
}

static inline size_t ncodecs(void) {
  size_t n = 0;
  while (codec_at(n)) n++;
  return n;
}

/* Another parameter of the same kind. */
static inline uint64_t other_choice(unsigned kind, uint64_t param) {
  if (kind == GPUIR__P_RATIO) return param < 2000 ? 4000 : 500;
  if (kind == GPUIR__P_LEVELS) return 6 - param;
  return (param % 1024 == 64 ? 256u : 64u) + (param / 1024 == 1 ? 701u : 1u) * 1024;
}

/* Every length to 400, every kind, every width. */
static inline void test_round_trip(void **state) {
  uint32_t *v = (uint32_t *)malloc(400 * sizeof *v), n;
  unsigned k;
  size_t i;
  int r, finds = 0;
  (void)state;
  assert_non_null(v);
  assert_true(ncodecs() > 0);
  failures = 0;
  for (r = 0; r < rounds; r++)
    for (i = 0; i < ncodecs(); i++)
      for (n = 0; n <= 400; n++)
        for (k = 0; k < KINDS; k++) check(codec_at(i), v, n, k, (n + k + (unsigned)r) % 33);
  for (i = 0; i < ncodecs(); i++)
    for (k = 0; k <= 32; k++)
      for (n = 126; n <= 130; n++) check(codec_at(i), v, n, 2, k);
  free(v);
  assert_int_equal(failures, 0);
  for (i = 0; i < ncodecs(); i++) finds |= codec_at(i)->find != NULL;
  if (finds && gpuir__simd_level(GPUIR_SIMD_AUTO) >= GPUIR_SIMD_AVX2) assert_true(told > 0);
}

static inline void test_long_lists(void **state) {
  static const uint32_t sizes[] = {511, 512, 513, 1000, 1024, 4096, 10007, 65536 + 77, 300000};
  uint32_t *v = (uint32_t *)malloc(300000 * sizeof *v);
  unsigned k, j;
  size_t i;
  (void)state;
  assert_non_null(v);
  failures = 0;
  for (i = 0; i < ncodecs(); i++)
    for (j = 0; j < sizeof sizes / sizeof *sizes; j++)
      for (k = 0; k < KINDS; k++) check(codec_at(i), v, sizes[j], k, below(33));
  free(v);
  assert_int_equal(failures, 0);
}

/* Everything comes back with each parameter, and a parameter is heeded: its codec writes other bytes for another
 * one on some list. */
static inline void test_parameters(void **state) {
  static const uint32_t sizes[] = {1, 2, 127, 128, 129, 255, 256, 257, 600, 4000};
  uint32_t v[4000];
  size_t i, j;
  unsigned k, heeded = 0;
  (void)state;
  failures = 0;
  for (i = 0; i < sizeof good / sizeof *good; i++) {
    const gpuir__codec *c = good[i].name ? gpuir__codec_by_name(good[i].name, 1) : NULL;
    unsigned differ = 0;
    if (!good[i].param || !c || !in_part(c)) continue;
    for (j = 0; j < sizeof sizes / sizeof *sizes; j++)
      for (k = 0; k < KINDS; k++) {
        list chosen, other;
        choice = good[i].param;
        check(c, v, sizes[j], k, below(33));
        list_encode(&chosen, c, "", v, sizes[j]);
        choice = other_choice(c->param, choice);
        list_encode(&other, c, "", v, sizes[j]);
        differ += chosen.len != other.len || memcmp(chosen.bytes, other.bytes, chosen.len) != 0;
        list_free(&chosen);
        list_free(&other);
      }
    choice = 0;
    if (differ < 10) fail_msg("%s has hardly an effect", good[i].spec);
    heeded++;
  }
  assert_true(heeded > 0);
  assert_int_equal(failures, 0);
}

static inline void test_lanes(void **state) {
  static const uint32_t sizes[] = {1, 2, 3, 64, 100, 127, 128, 129, 200, 256, 257, 384, 511, 640, 1300};
  uint32_t v[1300], i, j;
  unsigned k;
  size_t c;
  (void)state;
  failures = 0;
  for (c = 0; c < ncodecs(); c++)
    for (j = 0; j < sizeof sizes / sizeof *sizes; j++)
      for (k = 0; k < KINDS; k++) {
        const gpuir__codec *codec = codec_at(c);
        const uint32_t n = sizes[j];
        const char *kind = fill(v, n, codec->docids, k, below(33));
        gpuir__stream s;
        list l;
        list_encode(&l, codec, kind, v, n);
        assert_true(list_open(&l, &s, UINT32_MAX - 1, GPUIR_SIMD_SCALAR));
        for (i = 0; i < n; i++) {
          int gap;
          uint32_t got = lane_value(&s, i, &gap), want = gap ? v[i] - (i ? v[i - 1] : UINT32_MAX) - 1 : v[i];
          if (got != want) failed("lane", codec, kind, n, GPUIR_SIMD_SCALAR, i, got, want);
        }
        free(s.scratch);
        list_free(&l);
      }
  assert_int_equal(failures, 0);
}

/* Every codec, every parameter, made-up lists. */
static inline void test_naive(void **state) {
  static const uint32_t sizes[] = {1, 2, 3, 7, 63, 64, 65, 126, 127, 128, 129, 191, 192, 193, 255, 256, 257, 320, 383,
      511, 512, 513, 1024, 1300, 3000};
  const size_t nspellings = sizeof good / sizeof *good;
  uint32_t *v = (uint32_t *)malloc(3000 * sizeof *v);
  size_t i, j;
  unsigned k;
  (void)state;
  assert_non_null(v);
  failures = 0;
  for (i = 0; i < ncodecs() + nspellings; i++) {
    const gpuir__codec *c = i < ncodecs() ? codec_at(i)
        : good[i - ncodecs()].name        ? gpuir__codec_by_name(good[i - ncodecs()].name, 1)
                                          : NULL;
    choice = i < ncodecs() ? 0 : good[i - ncodecs()].param;
    if (!c || !in_part(c) || (i >= ncodecs() && !choice)) continue;
    for (j = 0; j < sizeof sizes / sizeof *sizes; j++)
      for (k = 0; k < KINDS; k++) {
        const char *kind = fill(v, sizes[j], c->docids, k, below(33));
        list l;
        list_encode(&l, c, kind, v, sizes[j]);
        naive_check(&l);
        list_free(&l);
      }
  }
  choice = 0;
  free(v);
  assert_int_equal(failures, 0);
}

/* The places of a word in a real text: of each letter too, which makes long and dense lists. */
static inline uint32_t places(const char *text, size_t len, const char *word, uint32_t *v) {
  const size_t n = strlen(word);
  uint32_t count = 0;
  size_t i;
  for (i = 0; i + n <= len; i++)
    if (!memcmp(text + i, word, n)) v[count++] = (uint32_t)i;
  return count;
}

/* Lists of real text by every codec, through the decoders and the naive reader. */
static inline void test_real_lists(void **state) {
  static const char *const words[] = {"e", "t", "\n", "the", " of ", "and", "water", "zz", "q", "[syn: {", "person"};
  static char text[1 << 19];
  uint32_t *v = (uint32_t *)malloc(sizeof text * sizeof *v), *gaps = (uint32_t *)malloc(sizeof text * sizeof *v);
  size_t len = 0, i, w;
  FILE *f = wordnet_open();
  (void)state;
  assert_true(v && gaps);
  if (!f) {
    print_message("tests/data/wordnet.tsv is not there\n");
    free(v);
    free(gaps);
    skip();
    return;
  }
  len = fread(text, 1, sizeof text, f);
  (void)fclose(f);
  failures = 0;
  for (w = 0; w < sizeof words / sizeof *words; w++) {
    const uint32_t n = places(text, len, words[w], v);
    uint32_t j;
    assert_true(n > 0);
    for (j = 0; j < n; j++) gaps[j] = v[j] - (j ? v[j - 1] : UINT32_MAX) - 1; /* for frequencies */
    for (i = 0; i < ncodecs(); i++) {
      const gpuir__codec *c = codec_at(i);
      list l;
      list_encode(&l, c, words[w], c->docids ? v : gaps, n);
      list_check(&l, UINT32_MAX - 1);
      naive_check(&l);
      list_free(&l);
    }
  }
  free(v);
  free(gaps);
  assert_int_equal(failures, 0);
}

/* Without memory, encode says so and takes back what it had appended. */
static inline void test_out_of_memory(void **state) {
  uint32_t v[1000], offset[8];
  uint8_t width[8];
  size_t i;
  (void)state;
  failures = 0;
  for (i = 0; i < ncodecs(); i++) {
    const gpuir__codec *c = codec_at(i);
    long at;
    int status = GPUIR_E_NOMEM;
    (void)fill(v, 1000, c->docids, 3, 20);
    for (at = 0; status && at < 1000; at++) {
      gpuir_allocator a;
      gpuir__buf buf = {NULL, 0, 0};
      alloc_book count = {0, 0, 0, 0, 0};
      const gpuir__target to = {&a, &buf, offset, width, 0};
      a = alloc_from(&count);
      assert_non_null(gpuir__buf_room(&a, &buf, 64));
      memset(buf.data, 1, 64);
      buf.len = 64;
      count.fail_at = count.calls + at + 1;
      status = c->encode(c, v, 1000, &to);
      if (status && status != GPUIR_E_NOMEM)
        failed("encode without memory", c, "", 1000, 0, (uint32_t)at, (uint64_t)(int64_t)status, 0);
      if (status && buf.len != 64) failed("encode without memory: length", c, "", 1000, 0, (uint32_t)at, buf.len, 64);
      gpuir__buf_free(&a, &buf);
      if (count.blocks) failed("encode without memory: leak", c, "", 1000, 0, (uint32_t)at, (uint64_t)count.blocks, 0);
    }
    if (status) failed("encode without memory: never succeeds", c, "", 1000, 0, 0, 1, 0);
  }
  assert_int_equal(failures, 0);
}

/* Damages one part of the list; now and then all of it. */
static inline void mutate(list *l) {
  uint32_t i, times = 1 + below(4);
  for (i = 0; i < times; i++) {
    uint32_t b = l->nblocks ? below(l->nblocks) : 0;
    switch (below(12)) {
    case 0:
      if (l->len) l->bytes[below((uint32_t)l->len)] = (uint8_t)rnd();
      break;
    case 1:
      if (l->len) l->bytes[below((uint32_t)(l->len < 8 ? l->len : 8))] ^= (uint8_t)(1u << below(8));
      break;
    case 2: {
      uint64_t j;
      int how = (int)below(3);
      for (j = 0; j < l->len; j++) l->bytes[j] = how == 0 ? 0xff : how == 1 ? 0x80 : (uint8_t)rnd();
      break;
    }
    case 3: list_place(l, l->bytes, below((uint32_t)l->len + 1)); break; /* cut off */
    case 4:
      if (l->offset) l->offset[b] = bits(below(33));
      break;
    case 5: /* near the end */
      if (l->offset) l->offset[b] = (uint32_t)(l->len / l->codec->unit) + 2 - below(8);
      break;
    case 6:
      if (l->width) l->width[b] = (uint8_t)rnd();
      break;
    case 7:
      if (l->width) l->width[b] = (uint8_t)(below(2) ? 32 + below(3) : below(33));
      break;
    case 8: /* bp128: with exceptions, or not */
      if (l->width) l->width[b] ^= (uint8_t)(128u | (below(2) ? below(64) : 0));
      else if (l->len) l->bytes[0] ^= (uint8_t)(128u | (below(2) ? below(64) : 0));
      break;
    case 9: { /* bp128: all marked; or an h at its bounds, if it stands where it should */
      uint32_t count = l->n - b * 128 < 128 ? l->n - b * 128 : 128, j;
      unsigned w = l->width ? l->width[b] : l->len ? l->bytes[0] : 0;
      uint64_t marks = (l->offset ? (uint64_t)l->offset[b] * 4 : 1) + (count * (w & 63) + 7) / 8;
      uint64_t h = marks + (count + 7) / 8;
      int how = (int)below(3);
      if (!l->nblocks || h >= l->len) break;
      for (j = 0; how && j < (count + 7) / 8; j++) l->bytes[marks + j] = how == 1 ? 0xff : (uint8_t)rnd();
      if (how != 1) l->bytes[h] = (uint8_t)(below(2) ? below(34) : 32 - (w & 63) + below(3) - 1);
      break;
    }
    case 10: { /* bp128: full of exceptions, cut off at about the end of the high parts */
      uint64_t at = l->offset ? (uint64_t)l->offset[b] * 4 : 1;
      uint32_t count = l->n - b * 128 < 128 ? l->n - b * 128 : 128, j;
      unsigned w = below(33), h = below(34);
      uint64_t size = (count * w + 7) / 8 + (count + 7) / 8 + 1 + (count * h + 7) / 8 + 2 - below(5);
      uint8_t *made;
      if (!l->nblocks || at > l->len) break;
      made = (uint8_t *)malloc(at + size + 4);
      assert_non_null(made);
      memcpy(made, l->bytes, at);
      for (j = 0; j < size; j++) made[at + j] = (uint8_t)rnd();
      for (j = 0; j < (count + 7) / 8; j++) made[at + (count * w + 7) / 8 + j] = below(8) ? 0xff : 0x7f;
      made[at + (count * w + 7) / 8 + (count + 7) / 8] = (uint8_t)h;
      if (l->width) l->width[b] = (uint8_t)(128 | w);
      else made[0] = (uint8_t)(128 | w);
      list_place(l, made, at + size);
      free(made);
      break;
    }
    default: break;
    }
  }
}

/* Damaged lists: refused, or decoded to something that is the same at every level and within
 * the limit. The sanitizers see to the rest. */
static inline void test_hostile(void **state) {
  const int best = gpuir__simd_level(GPUIR_SIMD_AUTO);
  uint32_t v[700];
  size_t i;
  int r;
  (void)state;
  failures = 0;
  for (i = 0; i < ncodecs(); i++)
    for (r = 0; r < 6000 * rounds; r++) {
      list l;
      const gpuir__codec *c = codec_at(i);
      uint32_t n = below(3) ? 1 + below(130) : 1 + below(700), k, b, limit;
      uint32_t first[128], out[128];
      const char *kind = fill(v, n, c->docids, below(KINDS), below(33));
      const spelling *as = &good[below((uint32_t)(sizeof good / sizeof *good))];
      choice = as->name && c->docids && !strcmp(as->name, c->name) ? as->param : 0;
      list_encode(&l, c, kind, v, n);
      mutate(&l);
      limit = below(2) ? bits(32) : UINT32_MAX - 1;
      for (b = 0; b < l.nblocks; b++) {
        uint32_t prev = below(2) ? UINT32_MAX : bits(32), count = n - b * 128 < 128 ? n - b * 128 : 128, value = 0, x;
        int simd, opened = 0, ok;
        for (simd = GPUIR_SIMD_SCALAR; simd <= best; simd++) {
          gpuir__stream s;
          ok = list_open(&l, &s, limit, simd);
          if (simd == GPUIR_SIMD_SCALAR) opened = ok;
          if (ok != opened) failed("hostile: open differs", c, kind, n, simd, b, (uint64_t)ok, (uint64_t)opened);
          if (!ok) continue;
          decode(&s, b, prev, count, out);
          if (simd == GPUIR_SIMD_SCALAR) memcpy(first, out, sizeof out);
          for (k = 0; k < count; k++) {
            if (c->docids && out[k] > limit) {
              failed("hostile: over the limit", c, kind, n, simd, b * 128 + k, out[k], limit);
              break;
            }
            if (out[k] != first[k]) {
              failed("hostile: differs", c, kind, n, simd, b * 128 + k, out[k], first[k]);
              break;
            }
          }
          k = b * 128 + (count > 7 ? count - 7 : 0);
          x = c->get ? c->get(&s, k) : 0;
          if (simd == GPUIR_SIMD_SCALAR) value = x;
          if (x != value) failed("hostile: get differs", c, kind, n, simd, k, x, value);
          /* a damaged list of positions may name one twice, and get finds one of them: not of pfd's family */
          for (k = b * 128; c->id <= 2 && !c->docids && k < b * 128 + count; k++)
            if (c->get(&s, k) != out[k - b * 128]) { /* the same as in the block */
              failed("hostile: get is not decode", c, kind, n, simd, k, c->get(&s, k), out[k - b * 128]);
              break;
            }
          if (c->get && c->docids && x > limit) failed("hostile: get over the limit", c, kind, n, simd, k, x, limit);
          for (k = 0; c->find && s.last && count == 128 && k < 8; k++) {
            x = c->find(&s, b, prev, below(2) ? out[below(128)] : bits(32));
            if (x > GPUIR__UNTOLD) failed("hostile: find", c, kind, n, simd, b * 128, x, GPUIR__UNTOLD);
          }
          free(s.scratch);
        }
      }
      list_free(&l);
    }
  choice = 0;
  assert_int_equal(failures, 0);
}

#endif
