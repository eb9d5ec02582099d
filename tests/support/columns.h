/* columns.h - documents with values: what each has follows from its number alone, so that any index of any of them can
 * be held against it; include after an implementation of gpuir.h and cmocka.h
 */
#ifndef TESTS_COLUMNS_H
#define TESTS_COLUMNS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANG, TAG, FOLDER, SIZE, PRICE, DAY, IDENT, STEADY, NUMBER_NONE, KEY_NONE, NCOLUMNS };

static const gpuir_field column_fields[NCOLUMNS] = {{"lang", NULL, GPUIR_KEY, 0}, {"tag", "meta.tags", GPUIR_KEY, 0},
    {"dir", NULL, GPUIR_PATH, 0}, {"size", NULL, GPUIR_NUMBER, 0}, {"price", NULL, GPUIR_NUMBER, 2},
    {"day", NULL, GPUIR_DATE, 0}, {"ident", NULL, GPUIR_KEY, 0}, {"steady", NULL, GPUIR_DATE, 0},
    {"number_none", NULL, GPUIR_NUMBER, 0}, {"key_none", NULL, GPUIR_KEY, 0}};

/* A value as it is given, or comes back. */
typedef struct raw_value {
  char text[80]; /* "": a number */
  int64_t number;
} raw_value;

static inline uint64_t raw_hash(uint32_t id, unsigned column) {
  uint64_t z = ((uint64_t)id << 8 | column) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static inline unsigned raw_texts(uint32_t id, unsigned column, uint64_t h, raw_value v[8]) {
  static const char *const dirs[] = {"src", "src/a", "src/a/b", "src-a", "src0", "/usr", "/usr/lib", "/", "s"};
  unsigned n = 0, i, j;
  if (column == LANG && id % 11) n += (unsigned)sprintf(v[0].text, "l%u", (unsigned)(h % 7)) > 0;
  if (column == IDENT) n += (unsigned)sprintf(v[0].text, "document-%u", id) > 0;
  if (column == FOLDER && id % 17)
    n += (unsigned)(h % 3 ? sprintf(v[0].text, "%s/%u", dirs[h / 8 % 9], (unsigned)(h / 128 % 90))
                          : sprintf(v[0].text, "%s", dirs[h / 8 % 9])) > 0;
  for (i = 0; column == TAG && id / 512 % 3 && i < h % 6; i++) { /* some blocks have none, as have some documents */
    char text[80];
    (void)sprintf(text, "tag %u", (unsigned)(raw_hash(id, 100 + i) % 40));
    for (j = 0; j < n && strcmp(v[j].text, text) != 0; j++) {}
    (void)strcpy(v[j].text, text);
    n += j == n;
  }
  return n;
}

/* The values of a document, without repeated ones; returns how many there are. */
static inline unsigned raw_values(uint32_t id, unsigned column, raw_value v[8]) {
  const uint64_t h = raw_hash(id, column);
  memset(v, 0, 8 * sizeof *v);
  switch (column) {
  case SIZE: v[0].number = (int64_t)(h % 100000); return id % 13 != 0 && id / 128 % 5 != 4;
  case PRICE: v[0].number = id % 997 == 3 ? INT64_MAX : id % 997 == 5 ? INT64_MIN : -(int64_t)(h % 500) * 25; return 1;
  case DAY: v[0].number = 1700000000 + (int64_t)(h % 400) * 86400; return id % 5 != 0;
  case STEADY: v[0].number = 1600000000 + 3600 * (int64_t)(id / 300) + (id % 64 == 0 ? -7200000 : 0); return 1;
  case NUMBER_NONE: return 0;
  default: return raw_texts(id, column, h, v);
  }
}

/* The descriptions of a document: its name is its number. */
typedef struct raw_doc {
  gpuir_doc_desc desc;
  char name[16];
  raw_value raw[NCOLUMNS][8];
  gpuir_value values[2 * 8 * NCOLUMNS];
} raw_doc;

static inline const gpuir_doc_desc *raw_describe(uint32_t id, raw_doc *d) {
  unsigned c, i, n = 0, count;
  memset(d, 0, sizeof *d);
  d->desc.name = d->name;
  d->desc.name_len = (size_t)sprintf(d->name, "%u", id);
  for (c = NCOLUMNS; c-- > 0;) { /* in another order than the columns' */
    count = raw_values(id, c, d->raw[c]);
    for (i = 0; i < count + (c == TAG && count ? 1 : 0); i++) { /* the first key once more */
      gpuir_value *v = &d->values[n++];
      const raw_value *raw = &d->raw[c][i % count];
      v->field = c;
      v->number = raw->number;
      if (!*raw->text) continue;
      v->text = raw->text;
      v->len = strlen(raw->text);
    }
  }
  d->desc.values = d->values;
  d->desc.nvalues = n;
  return &d->desc;
}

/* The number of a document of an index. */
static inline uint32_t raw_number(const gpuir_index *ix, uint32_t docid) {
  char name[16];
  gpuir_doc found;
  assert_int_equal(gpuir_doc_get(ix, docid, &found), 0);
  (void)gpuir_doc_name(&found, name, sizeof name);
  return (uint32_t)strtoul(name, NULL, 10);
}

/* Holds all values of an index's live documents against what they are to be. */
static inline void raw_check(const gpuir_index *ix) {
  static char room[GPUIR_MAX_VALUE + 1];
  gpuir_index_info info;
  raw_value want[8];
  gpuir_value got;
  uint32_t d;
  unsigned c, i;
  assert_int_equal(gpuir_index_get_info(ix, &info), 0);
  for (d = 0; d < info.docids; d++) {
    gpuir_doc found;
    uint32_t number;
    if (gpuir_doc_get(ix, d, &found)) continue;
    number = raw_number(ix, d);
    for (c = 0; c < NCOLUMNS; c++) {
      const unsigned n = raw_values(number, c, want);
      for (i = 0; i < n; i++) {
        assert_int_equal(gpuir_doc_value(ix, d, c, i, &got, room), 0);
        assert_int_equal(got.field, c);
        if (*want[i].text) assert_string_equal(got.text, want[i].text);
        else assert_true(!got.text && got.number == want[i].number);
      }
      assert_int_equal(gpuir_doc_value(ix, d, c, n, &got, room), GPUIR_E_NOT_FOUND);
    }
  }
}

#endif
