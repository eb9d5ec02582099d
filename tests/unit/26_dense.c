/* 26_dense.c - dense lists: which lists are, their lines by brute force, look-ups by them at each SIMD level, damage
 */
#define _POSIX_C_SOURCE 200809L
#undef GPUIR__DENSE_LEAST /* as users have it */
#undef GPUIR__DENSE_DEFAULT
#define GPUIR_STATIC
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rng.h"
#include "folder.h"
#include "oracle.h"
#include "corpus.h"

enum { LISTS = 12 };

/* An index of lists of chosen lengths, and what they are made of. */
typedef struct lists {
  uint32_t ndocs, df[LISTS];
  uint32_t *docs[LISTS], *tfs[LISTS], *lengths;
  unsigned n;
  char path[4200];
} lists;

static void lists_draw(lists *l, uint32_t ndocs, const uint32_t *df, unsigned n, uint64_t seed) {
  uint32_t d;
  unsigned i;
  rng r;
  r.s = seed;
  l->ndocs = ndocs;
  l->n = n;
  l->lengths = (uint32_t *)calloc(ndocs, 4);
  for (i = 0; i < n; i++) {
    uint32_t left = df[i], at = 0;
    l->df[i] = df[i];
    l->docs[i] = (uint32_t *)malloc((size_t)df[i] * 4);
    l->tfs[i] = (uint32_t *)malloc((size_t)df[i] * 4);
    for (d = 0; d < ndocs && left; d++) {
      if (rng_below(&r, ndocs - d) >= left) continue;
      left--;
      l->docs[i][at] = d;
      l->tfs[i][at] = 1 + (rng_below(&r, 4) ? 0 : rng_below(&r, 40));
      l->lengths[d] += l->tfs[i][at++];
    }
  }
}

static void lists_free(lists *l) {
  unsigned i;
  for (i = 0; i < l->n; i++) {
    free(l->docs[i]);
    free(l->tfs[i]);
  }
  free(l->lengths);
  (void)unlink(l->path);
}

static void lists_write(lists *l, const char *name, int dense, unsigned threads, uint64_t memory, float k1, float b) {
  gpuir_builder_desc desc;
  gpuir_builder *builder;
  gpuir_error err;
  uint32_t d;
  unsigned i;
  memset(&desc, 0, sizeof desc);
  desc.path = corpus_path(l->path, sizeof l->path, name);
  desc.dense = dense;
  desc.threads = threads;
  desc.memory = memory;
  desc.custom_bm25 = 1;
  desc.k1 = k1;
  desc.b = b;
  if (gpuir_builder_create(&desc, &builder, &err)) fail_msg("%s", err.msg);
  for (d = 0; d < l->ndocs; d++)
    if (gpuir_builder_add_doc(builder, NULL, l->lengths[d], NULL, 0, &err)) fail_msg("%s", err.msg);
  for (i = 0; i < l->n; i++) {
    const char term[2] = {(char)('a' + i), 0};
    if (gpuir_builder_add_list(builder, term, 1, l->docs[i], l->tfs[i], NULL, l->df[i], &err)) fail_msg("%s", err.msg);
  }
  if (gpuir_builder_write(builder, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(builder);
}

static gpuir_index *open_level(const char *path, int simd) {
  gpuir_open_desc desc;
  gpuir_index *ix = NULL;
  gpuir_error err;
  memset(&desc, 0, sizeof desc);
  desc.simd = simd;
  if (gpuir_open(path, &desc, &ix, &err)) fail_msg("%s", err.msg);
  return ix;
}

static uint8_t *read_file(const char *path, size_t *size) {
  FILE *f = fopen(path, "rb");
  uint8_t *bytes;
  assert_non_null(f);
  (void)fseek(f, 0, SEEK_END);
  *size = (size_t)ftell(f);
  rewind(f);
  bytes = (uint8_t *)malloc(*size + 64);
  assert_int_equal(fread(bytes, 1, *size, f), *size);
  (void)fclose(f);
  return bytes;
}

/* Opens list i of the only segment. */
static void open_list(const gpuir_index *ix, unsigned i, gpuir__list *l) {
  assert_int_equal(gpuir__list_open(gpuir__only(ix), &ix->a, i, l), 0);
}

/* Which lists are dense: at either side of each border, for any threads and memory. */
static void test_rule(void **state) {
  static const struct {
    uint32_t ndocs;
    int dense;
    uint32_t df[6];
    int is[6];
  } cases[] = {{65535, 16, {4096, 65535}, {0, 0}}, {65536, 16, {4095, 4096, 4097, 65536}, {0, 1, 1, 1}},
      {65537, 16, {4096, 4097}, {0, 1}}, {65536, 128, {127, 128, 511, 512, 513}, {0, 0, 0, 1, 1}},
      {65536, 1, {65535, 65536}, {0, 1}}, {65536, GPUIR_DENSE_NONE, {65536}, {0}}};
  size_t c, first_size = 0, size;
  unsigned i, how;
  (void)state;
  for (c = 0; c < sizeof cases / sizeof *cases; c++) {
    uint8_t *first = NULL;
    unsigned n = 0;
    lists l;
    while (n < 6 && cases[c].df[n]) n++;
    lists_draw(&l, cases[c].ndocs, cases[c].df, n, 7 + c);
    for (how = 0; how < 3; how++) {
      uint8_t *bytes;
      gpuir_index *ix;
      gpuir_error err;
      lists_write(&l, "rule.gpuir", cases[c].dense, how ? 8 : 1, how == 2 ? 1 << 20 : 0, 0.9f, 0.4f);
      bytes = read_file(l.path, &size);
      if (!how) {
        first = bytes;
        first_size = size;
      } else {
        assert_int_equal(size, first_size);
        assert_memory_equal(bytes, first, size);
        free(bytes);
      }
      ix = open_level(l.path, GPUIR_SIMD_AUTO);
      for (i = 0; i < n; i++) {
        gpuir__list x;
        open_list(ix, i, &x);
        assert_int_equal(x.dense.bits != NULL, cases[c].is[i]);
        gpuir__list_close(&ix->a, &x);
      }
      if (gpuir_verify(ix, &err)) fail_msg("%s", err.msg);
      gpuir_close(ix);
    }
    free(first);
    lists_free(&l);
  }
  assert_int_equal(gpuir__dense_stated("16"), 16);
  assert_int_equal(gpuir__dense_stated("0"), 0);
  assert_int_equal(gpuir__dense_stated("129"), GPUIR__DENSE_DEFAULT);
  assert_int_equal(gpuir__dense_stated("1x"), GPUIR__DENSE_DEFAULT);
  assert_int_equal(gpuir__dense_stated("1000"), GPUIR__DENSE_DEFAULT);
}

/* What a builder is asked for is in the index, goes on to those made like it, and else is refused. */
static void test_setting(void **state) {
  static const uint32_t df[] = {70000};
  gpuir_builder_desc desc;
  gpuir_builder *b;
  gpuir_index *ix;
  gpuir_error err;
  size_t i;
  lists l;
  (void)state;
  lists_draw(&l, 70000, df, 1, 3);
  lists_write(&l, "setting.gpuir", 20, 1, 0, 0.9f, 0.4f);
  ix = open_level(l.path, GPUIR_SIMD_AUTO);
  assert_string_equal(gpuir__only(ix)->meta.dense, "20");
  for (i = 0; i < GPUIR__META_KEYS; i++) /* versions that do not know it leave it out of the segments that they add */
    if (!strcmp(gpuir__meta_keys[i].key, "dense")) assert_int_equal(gpuir__meta_keys[i].alike, 0);
  memset(&desc, 0, sizeof desc);
  desc.path = l.path;
  desc.like = ix;
  assert_int_equal(gpuir_builder_create(&desc, &b, &err), 0);
  assert_string_equal(b->set.dense_spec, "20");
  gpuir_builder_destroy(b);
  desc.dense = GPUIR_DENSE_NONE;
  assert_int_equal(gpuir_builder_create(&desc, &b, &err), 0);
  assert_string_equal(b->set.dense_spec, "0");
  gpuir_builder_destroy(b);
  desc.dense = 129;
  assert_int_equal(gpuir_builder_create(&desc, &b, &err), GPUIR_E_ARGUMENT);
  desc.dense = -2;
  assert_int_equal(gpuir_builder_create(&desc, &b, &err), GPUIR_E_ARGUMENT);
  gpuir_close(ix);
  lists_free(&l);
}

/* All other sections keep their bytes. */
static void test_other_sections(void **state) {
  static const uint32_t df[] = {100, 300, 5000, 40000};
  const gpuir__segment *seg[2];
  gpuir_index *ix[2];
  unsigned i;
  lists l;
  (void)state;
  lists_draw(&l, 70000, df, 4, 5);
  lists_write(&l, "with.gpuir", 16, 2, 0, 0.9f, 0.4f);
  ix[0] = open_level(l.path, GPUIR_SIMD_AUTO);
  (void)unlink(l.path);
  lists_write(&l, "without.gpuir", GPUIR_DENSE_NONE, 2, 0, 0.9f, 0.4f);
  ix[1] = open_level(l.path, GPUIR_SIMD_AUTO);
  for (i = 0; i < 2; i++) seg[i] = gpuir__only(ix[i]);
  for (i = 1; i < GPUIR__S_COUNT; i++) {
    const gpuir__section *x = seg[0]->section[i], *y = seg[1]->section[i];
    if (i == GPUIR__S_META) continue;
    if (i >= GPUIR__S_DENSE_LISTS && i <= GPUIR__S_DENSE_PEAKS) {
      assert_true(x && !y && !(x->flags & GPUIR__REQUIRED));
      continue;
    }
    assert_int_equal(x != NULL, y != NULL);
    if (!y) continue;
    assert_int_equal(x->flags, y->flags);
    assert_int_equal(x->length, y->length);
    assert_memory_equal(seg[0]->map + x->offset, seg[1]->map + y->offset, (size_t)x->length);
  }
  assert_int_equal(seg[0]->dense.n, 2);
  gpuir_close(ix[0]);
  gpuir_close(ix[1]);
  lists_free(&l);
}

/* Lines by brute force: bits, ranks, peaks; the last line and the last word of each length. */
static void test_lines(void **state) {
  static const uint32_t more[] = {0, 1, 63, 64, 65, 511};
  static const float bm25[][2] = {{0.9f, 0.4f}, {0, 0.4f}, {1000, 1}, {1.2f, 0}};
  unsigned m, i;
  (void)state;
  for (m = 0; m < sizeof more / sizeof *more; m++) {
    const uint32_t ndocs = 65536 + more[m], df[] = {ndocs, ndocs / 2, 9000, 700};
    const float *p = bm25[m % 4];
    gpuir__norm norm;
    gpuir_index *ix;
    lists l;
    lists_draw(&l, ndocs, df, 4, 50 + m);
    lists_write(&l, "lines.gpuir", 100, 1, 0, p[0], p[1]);
    ix = open_level(l.path, GPUIR_SIMD_AUTO);
    norm = ix->norm;
    for (i = 0; i < 4; i++) {
      const uint64_t windows = 8 * gpuir__dense_lines(ndocs);
      uint32_t at = 0;
      gpuir__list x;
      uint64_t w;
      open_list(ix, i, &x);
      assert_non_null(x.dense.bits);
      for (w = 0; w < windows; w++) {
        uint64_t word = 0;
        double most = 0;
        if (w % 8 == 0) assert_int_equal(x.dense.rank[w / 8], at);
        for (; at < df[i] && l.docs[i][at] / 64 == w; at++) {
          const double tf = l.tfs[i][at];
          const double k = (double)gpuir__norm_of(norm.a, norm.b, l.lengths[l.docs[i][at]]);
          word |= (uint64_t)1 << l.docs[i][at] % 64;
          assert_int_equal(gpuir__dense_rank(0, &x, l.docs[i][at]), at);
          if (ceil(255.0 * tf / (tf + k)) > most) most = ceil(255.0 * tf / (tf + k));
        }
        assert_true(x.dense.bits[w / 8].word[w % 8] == word);
        assert_int_equal(x.dense.peaks[w / 8].of[w % 8], (int)most);
      }
      gpuir__list_close(&ix->a, &x);
    }
    gpuir_close(ix);
    lists_free(&l);
  }
}

/* Look-ups by bits and ranks at each level find what blocks find, also of candidates that are no documents. */
static void test_look_ups(void **state) {
  static const uint32_t df[] = {66000, 33000, 3000, 700};
  const uint32_t ndocs = 66001, room = ndocs + 64;
  uint32_t *at[6];
  unsigned i, level, rate;
  lists l;
  rng r;
  (void)state;
  r.s = 9;
  for (i = 0; i < 6; i++) at[i] = (uint32_t *)malloc((size_t)room * 4);
  lists_draw(&l, ndocs, df, 4, 77);
  lists_write(&l, "look.gpuir", 100, 1, 0, 0.9f, 0.4f);
  for (level = 0; level < 3; level++) {
    gpuir_index *ix = open_level(l.path, GPUIR_SIMD_SCALAR + (int)level);
    for (i = 0; i < 4; i++)
      for (rate = 1; rate < 3000; rate *= 7) {
        gpuir__cursor *c = (gpuir__cursor *)calloc(1, sizeof *c);
        gpuir__operand o;
        gpuir__pass p;
        uint32_t d, m = 0, want = 0, j, found;
        int indices;
        open_list(ix, i, &c->list);
        gpuir__cursor_reset(c);
        for (d = 0; d < ndocs; d++)
          if (rng_below(&r, rate) == 0) at[0][m++] = d;
        at[0][m++] = ndocs + 3; /* such come from damaged blocks */
        at[0][m++] = UINT32_MAX - 1;
        gpuir__pad(at[0] + m);
        for (indices = 0; indices < 2; indices++) {
          p.candidates = at[0];
          p.m = m;
          p.docs = at[1];
          p.from = indices ? at[2] : NULL;
          p.where = at[3];
          p.spare = at[4];
          gpuir__operand_init(&o, c, gpuir__lookup_choose(ix->simd));
          c->decoded = 0;
          found = gpuir__lookup(&o, &p);
          assert_int_equal(c->decoded, (m + 63) / 64);
          for (j = want = 0, d = 0; j < m; j++) {
            while (d < df[i] && l.docs[i][d] < at[0][j]) d++;
            if (d == df[i] || l.docs[i][d] != at[0][j]) continue;
            assert_int_equal(at[1][want], at[0][j]);
            if (indices) assert_int_equal(at[2][want], j);
            if (indices) assert_int_equal(at[3][want], d);
            want++;
          }
          assert_int_equal(found, want);
        }
        gpuir__list_close(&ix->a, &c->list);
        free(c);
      }
    gpuir_close(ix);
  }
  for (i = 0; i < 6; i++) free(at[i]);
  lists_free(&l);
}

/* Returns how many documents match a query of lists, each a letter, by brute force. sign[i]: 1, -1, or 0: not asked. */
static uint64_t matches_of(const lists *l, const int *sign, int all) {
  uint8_t *held = (uint8_t *)calloc(l->ndocs, 1), *out = (uint8_t *)calloc(l->ndocs, 1);
  uint64_t n = 0;
  uint32_t d;
  unsigned i, positive = 0;
  for (i = 0; i < l->n; i++) {
    positive += sign[i] > 0;
    for (d = 0; sign[i] && d < l->df[i]; d++) {
      held[l->docs[i][d]] = (uint8_t)(held[l->docs[i][d]] + (sign[i] > 0));
      out[l->docs[i][d]] |= sign[i] < 0;
    }
  }
  for (d = 0; d < l->ndocs; d++) n += !out[d] && held[d] >= (all ? positive : 1);
  free(held);
  free(out);
  return n;
}

/* Counts by words: lists at both sides of the border, all or any of them, with and without excluded ones, at each
 * level, whose work is the same; a file of another form counts alike. Documents N - 1 and N are in it. */
static void test_counts(void **state) {
  static const uint32_t more[] = {0, 1, 63, 64, 65, 511};
  unsigned m, level, form, times;
  rng r;
  (void)state;
  r.s = 31;
  for (m = 0; m < 6; m++) {
    const uint32_t ndocs = 131072 + more[m], df[] = {ndocs, ndocs / 2, 9000, 8192 + more[m], 700, 130, 5, 1};
    gpuir_index *ix[6];
    gpuir_searcher *s[6];
    lists l;
    lists_draw(&l, ndocs, df, 8, 500 + m);
    for (form = 0; form < 2; form++) {
      lists_write(&l, "counts.gpuir", form ? 16 : GPUIR_DENSE_NONE, 1, 0, 0.9f, 0.4f);
      for (level = 0; level < 3; level++) {
        ix[3 * form + level] = open_level(l.path, GPUIR_SIMD_SCALAR + (int)level);
        assert_int_equal(gpuir_searcher_create(ix[3 * form + level], NULL, &s[3 * form + level], NULL), 0);
      }
      (void)unlink(l.path);
    }
    for (times = 0; times < 60; times++) {
      gpuir_searcher_info info[6];
      gpuir_query_desc desc;
      int sign[LISTS] = {0};
      char text[64];
      size_t len = 0;
      unsigned i, all = times & 1;
      uint64_t want, got;
      sign[rng_below(&r, times % 3 ? 4 : 8)] = 1;
      for (i = 0; i < 8; i++)
        if (!sign[i] && rng_below(&r, 4) == 0 && (times % 3 == 0 || i < 4)) sign[i] = rng_below(&r, 3) ? 1 : -1;
      for (i = 0; i < 8; i++)
        if (sign[i])
          len += (size_t)snprintf(text + len, sizeof text - len, "%s%c ", sign[i] < 0 ? "-" : "", 'a' + (int)i);
      memset(&desc, 0, sizeof desc);
      desc.mode = all ? GPUIR_AND : GPUIR_OR;
      want = matches_of(&l, sign, (int)all);
      for (i = 0; i < 6; i++) {
        gpuir_query *q;
        assert_int_equal(gpuir_query_parse(ix[i], &desc, text, len, &q, NULL), 0);
        assert_int_equal(gpuir_count(s[i], q, &got), 0);
        if (got != want)
          fail_msg("N %u, form %u: \"%s\": %lu, not %lu", ndocs, i, text, (unsigned long)got, (unsigned long)want);
        gpuir_searcher_get_info(s[i], &info[i]);
        if (i % 3) assert_int_equal(info[i].blocks_decoded, info[i - 1].blocks_decoded);
        gpuir_query_destroy(q);
      }
    }
    for (form = 0; form < 6; form++) {
      gpuir_searcher_destroy(s[form]);
      gpuir_close(ix[form]);
    }
    lists_free(&l);
  }
}

/* Counting two dense lists decodes no block of theirs. */
static void test_counts_decode_nothing(void **state) {
  static const uint32_t df[] = {60000, 50000};
  gpuir_searcher_info info;
  gpuir_searcher *s;
  gpuir_query *q;
  gpuir_index *ix;
  uint64_t n;
  lists l;
  (void)state;
  lists_draw(&l, 70000, df, 2, 41);
  lists_write(&l, "none.gpuir", 16, 1, 0, 0.9f, 0.4f);
  ix = open_level(l.path, GPUIR_SIMD_AUTO);
  assert_int_equal(gpuir_searcher_create(ix, NULL, &s, NULL), 0);
  assert_int_equal(gpuir_query_parse(ix, NULL, "a b", 3, &q, NULL), 0);
  assert_int_equal(gpuir_count(s, q, &n), 0);
  gpuir_searcher_get_info(s, &info);
  assert_int_equal(info.blocks_decoded, 2 * (16 + 2)); /* 1,096 words of each list, 64 to a block, in two windows */
  gpuir_query_destroy(q);
  assert_int_equal(gpuir_query_parse(ix, NULL, "a", 1, &q, NULL), 0);
  assert_int_equal(gpuir_count(s, q, &n), 0);
  assert_int_equal(n, df[0]);
  n = info.blocks_decoded;
  gpuir_searcher_get_info(s, &info);
  assert_int_equal(info.blocks_decoded, n); /* one word's count is its df */
  gpuir_query_destroy(q);
  gpuir_searcher_destroy(s);
  gpuir_close(ix);
  lists_free(&l);
}

/* Finds the entry of a section in a file's bytes. */
static gpuir__section *entry_of(uint8_t *bytes, uint32_t id) {
  gpuir__header *h = (gpuir__header *)(void *)bytes;
  gpuir__section *s = (gpuir__section *)(void *)(h + 1);
  uint32_t i;
  for (i = 0; i < h->sections; i++)
    if (s[i].id == id) return &s[i];
  return NULL;
}

/* Makes the checksums of a changed file right. */
static void seal(uint8_t *bytes) {
  gpuir__header *h = (gpuir__header *)(void *)bytes;
  gpuir__section *s = (gpuir__section *)(void *)(h + 1);
  uint32_t i;
  for (i = 0; i < h->sections; i++) s[i].hash = gpuir__hash(bytes + s[i].offset, (size_t)s[i].length, 0);
  h->table_hash = gpuir__hash(s, h->sections * sizeof *s, 0);
  h->hash = gpuir__hash(h, offsetof(gpuir__header, hash), 0);
}

/* Damaged lines: verify says what is wrong; a section that is missing or too short leaves an index without dense
 * lists. */
static void test_damage(void **state) {
  static const uint32_t df[] = {300, 9000, 60000};
  static const struct {
    uint32_t id;
    size_t at;
    const char *cause;
  } cases[] = {{GPUIR__S_DENSE_LISTS, 0, "it is not the next one of the dense lists"},
      {GPUIR__S_DENSE_BITS, 4000, "its bits are not its docIDs"},
      {GPUIR__S_DENSE_RANK, 400, "a line's rank is not the number of postings before it"},
      {GPUIR__S_DENSE_PEAKS, 800, "a window's peak is not its greatest saturation"}};
  gpuir_open_desc desc;
  gpuir_index *ix;
  gpuir_error err;
  uint8_t *bytes, *copy;
  size_t size, i;
  lists l;
  (void)state;
  lists_draw(&l, 70000, df, 3, 8);
  lists_write(&l, "damage.gpuir", 16, 1, 0, 0.9f, 0.4f);
  bytes = read_file(l.path, &size);
  copy = (uint8_t *)malloc(size + 64);
  memset(&desc, 0, sizeof desc);
  desc.data = copy;
  desc.size = size;
  for (i = 0; i < 4; i++) {
    memcpy(copy, bytes, size);
    copy[entry_of(copy, cases[i].id)->offset + cases[i].at] ^= 1;
    seal(copy);
    assert_int_equal(gpuir_open(NULL, &desc, &ix, &err), 0);
    assert_int_equal(gpuir_verify(ix, &err), GPUIR_E_FORMAT);
    assert_non_null(strstr(err.msg, cases[i].cause));
    gpuir_close(ix);
    memcpy(copy, bytes, size); /* shorter by an item, then unknown */
    entry_of(copy, cases[i].id)->length -= i == 0 ? 4 : 8;
    seal(copy);
    assert_int_equal(gpuir_open(NULL, &desc, &ix, &err), 0);
    assert_int_equal(gpuir__only(ix)->dense.n, 0);
    gpuir_close(ix);
    memcpy(copy, bytes, size);
    entry_of(copy, cases[i].id)->id = 200;
    seal(copy);
    assert_int_equal(gpuir_open(NULL, &desc, &ix, &err), 0);
    assert_int_equal(gpuir__only(ix)->dense.n, 0);
    if (gpuir_verify(ix, &err)) fail_msg("%s", err.msg);
    gpuir_close(ix);
  }
  free(bytes);
  free(copy);
  lists_free(&l);
}

/* Searches and counts in all modes; whatever the lines hold, nothing is read outside the file. */
static void search_all(gpuir_index *ix) {
  static const char *const texts[] = {"a b", "a b c", "c b", "a -b", "c -a", "\"b c\"", "\"a b c\"", "b"};
  gpuir_hit hits[100];
  gpuir_searcher *s;
  size_t t, n;
  int mode;
  assert_int_equal(gpuir_searcher_create(ix, NULL, &s, NULL), 0);
  for (t = 0; t < sizeof texts / sizeof *texts; t++)
    for (mode = GPUIR_AND; mode <= GPUIR_ANDOR; mode++) {
      gpuir_query_desc desc;
      gpuir_query *q;
      uint64_t count;
      int status;
      memset(&desc, 0, sizeof desc);
      desc.mode = mode;
      if (gpuir_query_parse(ix, &desc, texts[t], strlen(texts[t]), &q, NULL)) continue; /* phrases need positions */
      status = gpuir_search(s, q, hits, 100, &n);
      assert_true(!status || status == GPUIR_E_FORMAT);
      status = gpuir_count(s, q, &count);
      assert_true(!status || status == GPUIR_E_FORMAT);
      assert_true(status || count <= ix->documents);
      gpuir_query_destroy(q);
    }
  gpuir_searcher_destroy(s);
}

/* Hostile lines: numbers of lists that are none, stand twice or fall; bits of no posting and behind the last document;
 * ranks that fall or are beyond the list; any peaks. */
static void test_hostile(void **state) {
  static const uint32_t id[] = {GPUIR__S_DENSE_LISTS, GPUIR__S_DENSE_BITS, GPUIR__S_DENSE_RANK, GPUIR__S_DENSE_PEAKS};
  const unsigned rounds = corpus_long_run() ? 2000 : 24;
  gpuir_builder_desc bd;
  gpuir_builder *b;
  gpuir_open_desc desc;
  gpuir_index *ix;
  gpuir_error err;
  uint8_t *bytes, *copy;
  char path[4200];
  uint32_t d;
  size_t size, i;
  unsigned round, t;
  rng r;
  (void)state;
  r.s = 4;
  memset(&bd, 0, sizeof bd);
  bd.path = corpus_path(path, sizeof path, "hostile.gpuir");
  bd.positions = 1;
  bd.dense = 16;
  assert_int_equal(gpuir_builder_create(&bd, &b, NULL), 0);
  for (d = 0; d < 65600; d++) {
    char text[16];
    size_t len = 0;
    for (t = 0; t < 3; t++)
      if (rng_below(&r, 2 + 3 * t) == 0) len += (size_t)snprintf(text + len, sizeof text - len, "%c ", 'a' + (int)t);
    if (gpuir_builder_add_text(b, NULL, text, len, &err)) fail_msg("%s", err.msg);
  }
  if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
  bytes = read_file(path, &size);
  (void)unlink(path);
  copy = (uint8_t *)malloc(size); /* exactly, so that a wrong access is seen */
  memset(&desc, 0, sizeof desc);
  desc.data = copy;
  desc.size = size;
  for (round = 0; round < rounds; round++) {
    memcpy(copy, bytes, size);
    for (i = 0; i < 4; i++) {
      const gpuir__section *x = entry_of(copy, id[i]);
      const uint32_t how = rng_below(&r, 4);
      uint64_t at;
      for (at = 0; how && at < x->length; at++)
        if (how == 1 || rng_below(&r, how == 2 ? 16 : 512) == 0)
          copy[x->offset + at] = (uint8_t)(how == 1 && round % 2 ? 255 : rng_below(&r, i ? 256 : 4));
    }
    seal(copy);
    desc.simd = GPUIR_SIMD_SCALAR + (int)(round % 3);
    assert_int_equal(gpuir_open(NULL, &desc, &ix, &err), 0);
    search_all(ix);
    gpuir_close(ix);
  }
  free(bytes);
  free(copy);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rule), cmocka_unit_test(test_setting),
      cmocka_unit_test(test_other_sections), cmocka_unit_test(test_lines), cmocka_unit_test(test_look_ups),
      cmocka_unit_test(test_counts), cmocka_unit_test(test_counts_decode_nothing), cmocka_unit_test(test_damage),
      cmocka_unit_test(test_hostile)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
