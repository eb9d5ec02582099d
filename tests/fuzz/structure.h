/* structure.h - damages the bytes of an index file where it hurts: whole fields of its header, section table, records
 * and streams, with checksums made right again, so that they are not what refuses the file
 *
 * Include it behind an implementation of gpuir.h. A mutation depends on its seed alone. */
#ifndef STRUCTURE_H
#define STRUCTURE_H

enum { STRUCTURE_HEADER = 64, STRUCTURE_ENTRY = 32, STRUCTURE_SECTIONS = 64 };

/* Changes n bytes by the fuzzer's own mutator, or in any other way; NULL: at random. */
typedef void (*structure_scramble)(uint8_t *bytes, size_t n, void *user);

typedef struct structure {
  uint8_t *bytes;
  size_t len;
  uint64_t state; /* of the random numbers */
  structure_scramble scramble;
  void *user;
} structure;

/* A number below n (> 0), by splitmix64. */
static uint64_t structure_below(structure *s, uint64_t n) {
  uint64_t x = s->state += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return (x ^ x >> 31) % n;
}

/* Changes n bytes as the caller wants it. */
static void structure_scribble(structure *s, uint8_t *p, size_t n) {
  if (s->scramble) s->scramble(p, n, s->user);
  else
    while (n--) *p++ = (uint8_t)structure_below(s, 256);
}

static uint32_t structure_get32(const uint8_t *p) {
  uint32_t v;
  memcpy(&v, p, 4);
  return v;
}

static uint64_t structure_get64(const uint8_t *p) {
  uint64_t v;
  memcpy(&v, p, 8);
  return v;
}

/* The number of entries of the section table that lie within the file. */
static uint32_t structure_sections(const structure *s) {
  const size_t room = s->len < STRUCTURE_HEADER ? 0 : (s->len - STRUCTURE_HEADER) / STRUCTURE_ENTRY;
  uint32_t n = s->len < STRUCTURE_HEADER ? 0 : structure_get32(s->bytes + 12);
  if (n > room) n = (uint32_t)room;
  return n < STRUCTURE_SECTIONS ? n : STRUCTURE_SECTIONS;
}

static uint8_t *structure_entry(const structure *s, uint32_t i) {
  return s->bytes + STRUCTURE_HEADER + (size_t)i * STRUCTURE_ENTRY;
}

/* The bytes of an entry's section; *n is 0 if they do not lie within the file. */
static uint8_t *structure_bytes(const structure *s, const uint8_t *entry, size_t *n) {
  const uint64_t at = structure_get64(entry + 8), length = structure_get64(entry + 16);
  *n = at <= s->len && length <= s->len - at ? (size_t)length : 0;
  return *n ? s->bytes + at : s->bytes;
}

/* Makes right what gpuir_open and gpuir_verify look at first: magic, version, length and all checksums. */
static void structure_mend(structure *s) {
  static const uint8_t start[12] = {'G', 'P', 'U', 'I', 'R', 0x0d, 0x0a, 0x1a, GPUIR__FORMAT, 0, 0, 0};
  const uint32_t n = structure_sections(s);
  uint64_t v = s->len;
  uint32_t i;
  if (s->len < STRUCTURE_HEADER) return;
  memcpy(s->bytes, start, sizeof start);
  memcpy(s->bytes + 12, &n, 4);
  memcpy(s->bytes + 16, &v, 8);
  for (i = 0; i < n; i++) {
    size_t length;
    const uint8_t *p = structure_bytes(s, structure_entry(s, i), &length);
    v = XXH3_64bits(p, length);
    memcpy(structure_entry(s, i) + 24, &v, 8);
  }
  v = XXH3_64bits(s->bytes + STRUCTURE_HEADER, (size_t)n * STRUCTURE_ENTRY);
  memcpy(s->bytes + 24, &v, 8);
  v = XXH3_64bits(s->bytes, 56);
  memcpy(s->bytes + 56, &v, 8);
}

/* A value that is likely to be wrong in place of `old`: near it, one bit away, or at the edge of some range. */
static uint64_t structure_value(structure *s, uint64_t old) {
  static const uint64_t edges[] = {0, 1, 2, 126, 127, 128, 129, 255, 256, 4095, 4096, 4097, 32767, 32768, 65535, 65536};
  switch (structure_below(s, 8)) {
  case 0: return old + structure_below(s, 33) - 16;
  case 1: return old ^ (uint64_t)1 << structure_below(s, 64);
  case 2: return old ^ (uint64_t)1 << structure_below(s, 16);
  case 3: return old * 2;
  case 4: return old / 2;
  case 5: return ((uint64_t)1 << structure_below(s, 64)) - structure_below(s, 2);
  case 6: return 0 - structure_below(s, 66);
  default: return edges[structure_below(s, sizeof edges / sizeof *edges)];
  }
}

/* Damages one field of w bytes, or a run of them, among the n bytes at p. */
static void structure_field(structure *s, uint8_t *p, size_t n, unsigned w) {
  const size_t fields = n / w;
  size_t at, run, i;
  uint64_t v = 0;
  if (!fields) return;
  at = (size_t)structure_below(s, fields);
  run = (size_t)structure_below(s, 16) + 1;
  if (run > fields - at) run = fields - at;
  switch (structure_below(s, 5)) {
  case 0:
  case 1:
    memcpy(&v, p + at * w, w);
    v = structure_value(s, v);
    memcpy(p + at * w, &v, w);
    break;
  case 2: memmove(p + at * w, p + structure_below(s, fields) * w, w); break;
  case 3: /* a run whose fields each move a little */
    for (i = 0; i < run; i++) {
      memcpy(&v, p + (at + i) * w, w);
      v += structure_below(s, 5) - 2;
      memcpy(p + (at + i) * w, &v, w);
    }
    break;
  default: /* a run of one value */
    v = structure_value(s, 0);
    for (i = 0; i < run; i++) memcpy(p + (at + i) * w, &v, w);
  }
}

/* Damages one entry of the section table: whose section it is, where that lies, how long it is. */
static void structure_table(structure *s, uint8_t *entry) {
  const unsigned field = (unsigned)structure_below(s, 3);
  uint64_t v;
  if (!field) {
    const uint32_t id = (uint32_t)structure_below(s, GPUIR__S_COUNT + 2);
    memcpy(entry, &id, 4);
    return;
  }
  v = structure_get64(entry + 8 * field);
  v = structure_below(s, 2) ? structure_value(s, v) : v + 64 - 64 * structure_below(s, 3);
  memcpy(entry + 8 * field, &v, 8);
}

/* Damages one section. Half of the time it is the dictionary, the extents or the streams, which decoders need, or of
 * columns, where there are some. */
static void structure_section(structure *s, uint32_t sections) {
  static const uint32_t deep[] = {GPUIR__S_TERMS, GPUIR__S_TERM_PAGES, GPUIR__S_TERM_STARTS, GPUIR__S_TERM_KEYS,
      GPUIR__S_LONGS, GPUIR__S_DOCIDS, GPUIR__S_FREQS, GPUIR__S_POSITIONS, GPUIR__S_POS_OFF, GPUIR__S_COLUMNS,
      GPUIR__S_COL_LEAST, GPUIR__S_COL_MOST, GPUIR__S_COL_OFF, GPUIR__S_COL_FORM, GPUIR__S_COL_DATA, GPUIR__S_KEY_TEXT,
      GPUIR__S_KEY_PAGES, GPUIR__S_PACKED, GPUIR__S_PACKED_START, GPUIR__S_TEXT_AT};
  const uint32_t want = structure_below(s, 2) ? deep[structure_below(s, sizeof deep / sizeof *deep)] : 0;
  uint8_t *entry = structure_entry(s, (uint32_t)structure_below(s, sections)), *p;
  size_t n, at, window;
  uint32_t i;
  for (i = 0; want && i < sections; i++)
    if (structure_get32(structure_entry(s, i)) == want) entry = structure_entry(s, i);
  p = structure_bytes(s, entry, &n);
  if (!n) return;
  if (structure_below(s, 3)) {
    structure_field(s, p, n, 1u << structure_below(s, 4));
    return;
  }
  at = (size_t)structure_below(s, n);
  window = 1 + (size_t)structure_below(s, 64);
  structure_scribble(s, p + at, window < n - at ? window : n - at);
}

/* ---- tables whose items are counted ---- */

#define STRUCTURE_KIND(id, name, presence, batch, item, items, group, field) {(id), GPUIR__N_##items},

/* Returns how many items of a kind a file has, and where its statistics say so; 0: it is none that is changed here. */
static uint64_t structure_count(const uint8_t *stat, uint32_t items, size_t *field) {
  *field = items == GPUIR__N_BLOCKS ? offsetof(gpuir__stat, blocks)
      : items == GPUIR__N_LONGS     ? offsetof(gpuir__stat, longs)
      : items == GPUIR__N_TERMS     ? offsetof(gpuir__stat, terms)
                                    : offsetof(gpuir__stat, documents);
  return structure_get64(stat + *field);
}

/* Takes item `at` of n out of a section, or puts another one in, where there is room. Items at the end are zeroed. */
static void structure_resize(structure *s, uint8_t *entry, uint64_t n, uint64_t at, int more) {
  size_t length;
  uint8_t *p = structure_bytes(s, entry, &length);
  const size_t size = n ? length / n : 0, from = (size_t)at * size;
  uint64_t now = more ? length + size : length - size;
  if (!size || from + size > length || (more && (size_t)(p - s->bytes) + now > s->len)) return;
  if (more) memmove(p + from + size, p + from, length - from);
  else {
    memmove(p + from, p + from + size, length - from - size);
    memset(p + length - size, 0, size);
  }
  memcpy(entry + 16, &now, 8);
}

/* Lets all tables of one kind, such as those with an item a block, a long list or a document, have one more or one
 * less: counts and lengths agree then, and what the items say does not. One more lies over what stands behind. Tables
 * of the dictionary are cut by themselves, with as many terms. */
static void structure_recount(structure *s, uint32_t sections) {
  static const uint32_t kinds[][2] = {GPUIR__SECTIONS(STRUCTURE_KIND, , )};
  static const uint32_t counted[] = {GPUIR__N_BLOCKS, GPUIR__N_LONGS, GPUIR__N_TERM_BLOCKS, GPUIR__N_DOCUMENTS};
  const uint32_t items = counted[structure_below(s, sizeof counted / sizeof *counted)];
  const int more = structure_below(s, 3) == 0;
  const uint64_t step = items == GPUIR__N_TERM_BLOCKS ? GPUIR__DICT_BLOCK : 1;
  uint8_t *stat = NULL;
  uint64_t n, at;
  uint32_t i, k;
  size_t field, length;
  for (i = 0; i < sections && !stat; i++)
    if (structure_get32(structure_entry(s, i)) == GPUIR__S_STAT)
      stat = structure_bytes(s, structure_entry(s, i), &length);
  if (!stat || length < sizeof(gpuir__stat)) return;
  n = structure_count(stat, items == GPUIR__N_TERM_BLOCKS ? (uint32_t)GPUIR__N_TERMS : items, &field);
  if (!n || n < step) return;
  at = structure_below(s, n);
  for (i = 0; i < sections; i++) {
    uint8_t *entry = structure_entry(s, i);
    const uint32_t id = structure_get32(entry);
    for (k = 0; k < sizeof kinds / sizeof *kinds; k++) {
      if (kinds[k][0] != id) continue;
      if (kinds[k][1] == items) structure_resize(s, entry, (n + step - 1) / step, at / step, more);
      if (items == GPUIR__N_DOCUMENTS && (kinds[k][1] == GPUIR__N_DOC_ENDS || kinds[k][1] == GPUIR__N_PLACES))
        structure_resize(s, entry, n + 1, at, more);
    }
  }
  n = more ? n + step : n - step;
  memcpy(stat + field, &n, 8);
}

/* Damages the file in one to a few places; what it begins with, its length and its checksums are right afterwards. */
GPUIR__UNUSED static void structure_mutate(structure *s) {
  const uint32_t n = structure_sections(s);
  uint64_t times = 1 + structure_below(s, structure_below(s, 4) ? 3 : 12);
  if (!n) {
    structure_scribble(s, s->bytes, s->len);
    return;
  }
  while (times--) {
    const uint64_t which = structure_below(s, 24);
    if (!which) structure_table(s, structure_entry(s, (uint32_t)structure_below(s, n)));
    else if (which < 3) structure_recount(s, n);
    else structure_section(s, n);
  }
  structure_mend(s);
}

/* Lays sections of another file over those of the same kind: streams that are right, in the wrong place. */
GPUIR__UNUSED static void structure_cross(structure *s, const structure *other) {
  const uint32_t n = structure_sections(s), m = structure_sections(other);
  uint32_t i, j;
  for (i = 0; i < n; i++) {
    if (structure_below(s, 6)) continue;
    for (j = 0; j < m; j++) {
      size_t to_n, from_n;
      uint8_t *to = structure_bytes(s, structure_entry(s, i), &to_n);
      const uint8_t *from = structure_bytes(other, structure_entry(other, j), &from_n);
      if (structure_get32(structure_entry(s, i)) == structure_get32(structure_entry(other, j)))
        memcpy(to, from, to_n < from_n ? to_n : from_n);
    }
  }
  structure_mend(s);
}

#endif
