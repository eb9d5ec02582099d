/* 43_verify.c - what open takes and verify finds: sources that are none, dictionaries and bounds that are not as
 * written */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "alloc.h"
#include "rng.h"
#include "collection.h"
#include "dictionary.h"

static void mend_table(char *bytes) {
  gpuir__header *h = (gpuir__header *)(void *)bytes;
  h->table_hash = XXH3_64bits(bytes + sizeof *h, h->sections * sizeof(gpuir__section));
  h->hash = XXH3_64bits(h, offsetof(gpuir__header, hash));
}

/* Writes an index with right checksums and holds what verify says of it against `why`, NULL if it is good. */
static void assert_verify(char *bytes, size_t n, const char *why) {
  gpuir__header *h = (gpuir__header *)(void *)bytes;
  gpuir__section *table = (gpuir__section *)(void *)(bytes + sizeof *h);
  gpuir_index *damaged;
  gpuir_error err;
  uint32_t i;
  FILE *f;
  char other[96];
  for (i = 0; i < h->sections; i++) table[i].hash = XXH3_64bits(bytes + table[i].offset, (size_t)table[i].length);
  h->file_size = n;
  mend_table(bytes);
  path_of(other, "damaged.gpuir");
  f = fopen(other, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
  if (gpuir_open(other, NULL, &damaged, &err)) fail_msg("%s", err.msg);
  assert_int_equal(gpuir_verify(damaged, &err), why ? GPUIR_E_FORMAT : GPUIR_OK);
  if (why && !strstr(err.msg, why)) fail_msg("'%s' instead of '%s'", err.msg, why);
  gpuir_close(damaged);
  (void)unlink(other);
}

/* Sources and stems that are none: found by verify, and refused wherever they are read. */
static void test_verify_sources(void **state) {
  gpuir_builder_desc d = desc_of(path);
  gpuir_error err;
  char *bytes, *copy;
  uint32_t i, id, value;
  size_t n = 0;
  (void)state;
  d.store_text = 1;
  if (build_sourced(&d, 1, &err)) fail_msg("%s", err.msg);
  bytes = slurp(path, &n);
  copy = (char *)malloc(n);
  assert_non_null(copy);
  for (i = 0; i < 10; i++) {
    const gpuir__header *h = (const gpuir__header *)(const void *)copy;
    gpuir__section *table = (gpuir__section *)(void *)(copy + sizeof *h), *at[GPUIR__S_COUNT] = {NULL};
    memcpy(copy, bytes, n);
    for (id = 0; id < h->sections; id++) at[table[id].id] = &table[id];
    switch (i) {
    case 0: assert_verify(copy, n, NULL); break;
    case 1: /* a source that there is not */
      memset(copy + at[GPUIR__S_ORIGINS]->offset + GPUIR__ORIGINS_HEAD, 0xff,
          (size_t)copy[at[GPUIR__S_ORIGINS]->offset + GPUIR__O_SOURCE]);
      assert_verify(copy, n, "a document's source is none");
      break;
    case 2: /* a stem behind its path */
      value = UINT32_MAX;
      memcpy(copy + at[GPUIR__S_STEMS]->offset, &value, 4);
      assert_verify(copy, n, "a document's source is none");
      break;
    case 3: /* a name that has no room: the stem is all of a path of 6,000 bytes */
      value = 1;
      memcpy(copy + at[GPUIR__S_STEMS]->offset + 7 * 4, &value, 4);
      assert_verify(copy, n, "a document's source is none");
      break;
    case 8: /* a document that is as long as its text, but another */
      copy[at[GPUIR__S_HASHES]->offset + 8]++;
      assert_verify(copy, n, "hash is not that of its text");
      break;
    case 9: /* a record that is not the text */
      copy[at[GPUIR__S_HASHES]->offset + 5 * 8]++;
      assert_verify(copy, n, NULL);
      break;
    default: { /* too few stems, or no origins */
      gpuir_index *ix;
      FILE *f = fopen(path, "wb");
      if (i == 4) at[GPUIR__S_STEMS]->length -= 4;
      else if (i == 5) at[GPUIR__S_ORIGINS]->id = 200;
      else if (i == 6)
        copy[at[GPUIR__S_ORIGINS]->offset + GPUIR__O_BYTES]++; /* a column that has no place in the rows */
      else copy[at[GPUIR__S_ORIGINS]->offset + GPUIR__O_OFFSET] = 9;
      mend_table(copy);
      assert_non_null(f);
      assert_int_equal(fwrite(copy, 1, n, f), n);
      assert_int_equal(fclose(f), 0);
      assert_int_equal(gpuir_open(path, NULL, &ix, &err), GPUIR_E_FORMAT);
      assert_non_null(strstr(err.msg, "stems of names do not fit the sources"));
    }
    }
  }
  free(copy);
  free(bytes);
  empty_folder();
}

/* What a dictionary that is written anew says: where the lists of the block of term `id` are, and that term's df. */
typedef struct lie {
  uint64_t id, longs, docs;
  uint32_t df;
} lie;

static void tell(void *user, uint64_t id, gpuir__record *r, gpuir__dict_page *now) {
  const lie *x = (const lie *)user;
  if (id == x->id / GPUIR__DICT_BLOCK * GPUIR__DICT_BLOCK) {
    now->longs += x->longs;
    now->docs += x->docs;
  }
  if (id == x->id && x->df) r->df = x->df;
}

static void test_verify_bounds(void **state) {
  gpuir_builder_desc d = desc_of(path);
  gpuir_index *ix;
  gpuir_error err;
  const size_t room = 1 << 20;
  uint64_t long_id[3], block, keys, pages, starts, terms, blocks;
  uint32_t first_df = 0;
  size_t n = 0, longs = 0, size, i;
  char *bytes, *copy;
  gpuir__walk w;
  gpuir__long *extents;
  lie x;
  (void)state;
  if (build(&d, ndocs, NULL, &err)) fail_msg("%s", err.msg);
  bytes = slurp(path, &n);
  copy = (char *)malloc(n + room);
  assert_non_null(copy);
  assert_int_equal(gpuir_open(path, NULL, &ix, &err), 0);
  for (gpuir__walk_start(&w, gpuir__only(ix)); longs < 3 && gpuir__walk_next(&w);) {
    if (w.record.df < 128) continue;
    if (!longs) first_df = w.record.df;
    if (!longs || w.id / 16 > long_id[longs - 1] / 16) long_id[longs++] = w.id; /* each in another block */
  }
  assert_int_equal(longs, 3);
  extents = (gpuir__long *)(void *)(copy + ((const uint8_t *)gpuir__only(ix)->lists.longs - gpuir__only(ix)->map));
  terms = gpuir__only(ix)->section[GPUIR__S_TERMS]->offset;
  pages = gpuir__only(ix)->section[GPUIR__S_TERM_PAGES]->offset;
  starts = gpuir__only(ix)->section[GPUIR__S_TERM_STARTS]->offset;
  keys = gpuir__only(ix)->section[GPUIR__S_TERM_KEYS]->offset;
  blocks = gpuir__dict_blocks(gpuir__only(ix)->stat.terms);
#define ANEW (memcpy(copy, bytes, n), memset(&x, 0, sizeof x))
#define REWRITE size = dictionary_rewrite((uint8_t *)copy, n, room, tell, &x)
  ANEW;
  assert_verify(copy, n, NULL);
  REWRITE; /* the same dictionary in another place */
  assert_verify(copy, size, NULL);
  ANEW; /* two terms name one list */
  x.id = long_id[1];
  x.longs = (uint64_t)0 - 1;
  REWRITE;
  assert_verify(copy, size, "not the next one");
  ANEW; /* a list is left out */
  x.id = long_id[1];
  x.longs = 1;
  REWRITE;
  assert_verify(copy, size, "not the next one");
  ANEW; /* one that is not there */
  x.id = long_id[2];
  x.longs = 200;
  REWRITE;
  assert_verify(copy, size, "not the next one");
  ANEW; /* short lists over each other, and apart */
  x.id = blocks / 2 / 16 * 256; /* from this page on */
  x.docs = (uint64_t)0 - 1;
  REWRITE;
  assert_verify(copy, size, "another one's bytes");
  ANEW; /* the same list, copied: it would be right by itself */
  for (i = 1; extents[i].cf == extents[0].cf;) i++;
  for (gpuir__walk_start(&w, gpuir__only(ix)); gpuir__walk_next(&w);)
    if (w.record.df >= 128 && w.record.docs == i) x.id = w.id;
  extents[i] = extents[0];
  x.df = first_df;
  REWRITE;
  assert_verify(copy, size, "its blocks are not the next ones");
  ANEW;
  extents[1].docs = extents[0].docs;
  assert_verify(copy, n, "another one's bytes");
  ANEW;
  extents[2].freqs = extents[1].freqs;
  assert_verify(copy, n, "another one's bytes");
  /* what a reader does not heed is not free either */
  ANEW;
  memcpy(&block, copy + pages, sizeof block);
  copy[terms + block + 8] ^= (char)0x80; /* a bit of the first block's widths that has no meaning */
  assert_verify(copy, n, "its block is not as it is written");
  ANEW;
  copy[pages + 8]++; /* where the first page's lists begin */
  assert_verify(copy, n, "");
  for (i = 0; i < 9; i += i ? 1 : 5) { /* every byte of the first block's head and widths */
    ANEW;
    copy[terms + i] ^= 1;
    assert_verify(copy, n, "");
  }
  ANEW;
  copy[starts + 2]++;
  assert_verify(copy, n, "");
  for (i = 0; i < 128; i++) { /* every byte of the tree's root */
    ANEW;
    copy[keys + i] ^= 1;
    assert_verify(copy, n, "search tree");
  }
#undef REWRITE
#undef ANEW
  gpuir_close(ix);
  free(copy);
  free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_verify_sources),
      cmocka_unit_test(test_verify_bounds),
  };
  return cmocka_run_group_tests_name("43_verify", tests, set_up, tear_down);
}
