/* naive.h - a second decoder of every codec, written from the pictures above each codec in gpuir.h
 *
 * Bit by bit, whole lists, without a line of the library: what it reads is what those comments say. It accepts only
 * what they allow: unused bits are zero, offsets name the places where blocks begin, nothing is left over. */
#ifndef NAIVE_H
#define NAIVE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct naive_list {
  const char *codec;
  int docids;
  uint32_t n;
  const uint8_t *bytes;
  uint64_t len;
  const uint32_t *offset; /* NULL: a list without a directory */
  const uint8_t *width;
} naive_list;

/* A reader of bytes; the first complaint stays. */
typedef struct naive_reader {
  const naive_list *l;
  uint64_t at; /* byte */
  const char *wrong;
} naive_reader;

static inline void naive_must(naive_reader *r, int holds, const char *what) {
  if (!holds && !r->wrong) r->wrong = what;
}

static inline unsigned naive_bit(naive_reader *r, uint64_t bit) {
  if (bit / 8 >= r->l->len) {
    naive_must(r, 0, "it ends too early");
    return 0;
  }
  return (unsigned)r->l->bytes[bit / 8] >> (bit % 8) & 1u;
}

/* The number of `bits` bits that begins at a bit, the low ones first. */
static inline uint64_t naive_number(naive_reader *r, uint64_t bit, unsigned bits) {
  uint64_t value = 0;
  unsigned i;
  for (i = 0; i < bits; i++) value |= (uint64_t)naive_bit(r, bit + i) << i;
  return value;
}

/* Takes the next `bytes` bytes as a number. */
static inline uint64_t naive_take(naive_reader *r, unsigned bytes) {
  uint64_t value = naive_number(r, r->at * 8, bytes * 8);
  r->at += bytes;
  return value;
}

/* Takes a packed array, up to the next byte, and its padding. */
static inline void naive_array(naive_reader *r, uint32_t *out, uint64_t count, unsigned bits) {
  uint64_t i, bit = r->at * 8;
  naive_must(r, bits <= 32, "a width is more than 32");
  for (i = 0; i < count && !r->wrong; i++, bit += bits) out[i] = (uint32_t)naive_number(r, bit, bits);
  for (; bit % 8; bit++) naive_must(r, !naive_bit(r, bit), "padding is not zero");
  r->at = bit / 8;
}

/* The directory's offset of a block is `at`, in units of `unit` bytes, and its width. */
static inline void naive_block(naive_reader *r, uint32_t block, uint64_t at, unsigned width) {
  if (!r->l->offset) return;
  naive_must(r, r->l->offset[block] == at, "a block's offset is wrong");
  naive_must(r, r->l->width[block] == width, "a block's width is wrong");
}

static inline unsigned naive_log2(uint64_t v) { /* floor */
  unsigned log = 0;
  while (v >>= 1) log++;
  return log;
}

static inline uint32_t naive_block_len(const naive_list *l, uint32_t block) {
  return l->n - block * 128 < 128 ? l->n - block * 128 : 128;
}

/* ---- vbyte, bp128, pfd: gaps (or frequencies) by blocks of 128 ---- */

static inline void naive_vbyte(naive_reader *r, uint32_t *out) {
  uint32_t i;
  for (i = 0; i < r->l->n && !r->wrong; i++) {
    uint64_t value = 0, byte;
    unsigned shift = 0;
    if (i % 128 == 0) naive_block(r, i / 128, r->at, 0);
    do {
      byte = naive_take(r, 1);
      value |= (byte & 127) << shift;
      shift += 7;
    } while (byte & 128 && shift <= 28);
    naive_must(r, !(byte & 128) && value <= UINT32_MAX, "a value is too long");
    out[i] = (uint32_t)value;
  }
}

/* Exceptions marked by a bit each, from r->at on. */
static inline void naive_marked(naive_reader *r, unsigned b, uint32_t count, uint32_t *out) {
  uint32_t marks[128], high[128], x = 0, i;
  unsigned h;
  naive_array(r, marks, count, 1);
  h = (unsigned)naive_take(r, 1);
  for (i = 0; i < count; i++) x += marks[i];
  naive_must(r, x && h >= 1 && b + h <= 32, "exceptions are none");
  if (r->wrong) return;
  naive_array(r, high, x, h);
  for (i = 0, x = 0; i < count; i++)
    if (marks[i]) {
      naive_must(r, high[x] != 0, "a high part is zero");
      out[i] |= high[x++] << b;
    }
}

/* One block, from r->at on. */
static inline void naive_bp128_block(naive_reader *r, unsigned width, uint32_t count, uint32_t *out) {
  unsigned b = width & 63, bit;
  uint64_t start = r->at * 8, i;
  naive_must(r, b <= 32 && !(width & 64), "a width byte is none");
  if (count == 128) {
    for (i = 0; i < 128 && !r->wrong; i++)
      for (out[i] = 0, bit = 0; bit < b; bit++) {
        uint64_t in_lane = i / 4 * b + bit, word = in_lane / 32 * 4 + i % 4;
        out[i] |= (uint32_t)naive_bit(r, start + word * 32 + in_lane % 32) << bit;
      }
    r->at += 16 * b;
  } else {
    naive_array(r, out, count, b);
  }
  if (width & 128) naive_marked(r, b, count, out);
}

static inline void naive_bp128(naive_reader *r, uint32_t *out) {
  uint32_t block;
  for (block = 0; block * 128 < r->l->n && !r->wrong; block++) {
    unsigned width = r->l->offset ? r->l->width[block] : (unsigned)naive_take(r, 1);
    naive_block(r, block, r->at / 4, width);
    naive_bp128_block(r, width, naive_block_len(r->l, block), out + block * 128);
    for (; r->l->offset && r->at % 4 && !r->wrong;) naive_must(r, !naive_take(r, 1), "padding is not zero");
  }
}

static inline void naive_pfd_block(naive_reader *r, unsigned width, uint32_t count, uint32_t *out) {
  const unsigned b = width & 63, form = width >> 6;
  uint32_t positions[128], overflow[128], k;
  if (form == 0) naive_array(r, out, count, b);
  if (form == 1) {
    unsigned link = (unsigned)naive_take(r, 2), number = link >> 7 & 127, bytes = (link >> 14) + 1;
    uint32_t at = link & 127;
    naive_array(r, out, count, b);
    for (k = 0; k < number && !r->wrong; k++) {
      uint32_t distance;
      naive_must(r, at < count, "a link leads out");
      if (r->wrong) return;
      distance = out[at] + 1;
      out[at] = (uint32_t)naive_take(r, bytes);
      at += distance;
    }
  }
  if (form == 2) {
    unsigned number = (unsigned)naive_take(r, 1), h = (unsigned)naive_take(r, 1);
    naive_must(r, number < 128 && b + h <= 32, "exceptions are none");
    naive_array(r, out, count, b);
    if (r->wrong) return;
    naive_array(r, positions, number, 7);
    naive_array(r, overflow, number, h);
    for (k = 0; k < number && !r->wrong; k++) {
      naive_must(r, positions[k] < count && (!k || positions[k] > positions[k - 1]), "a position is none");
      if (!r->wrong) out[positions[k]] |= overflow[k] << b;
    }
  }
  if (form == 3) {
    naive_array(r, out, count, b);
    if (!r->wrong) naive_marked(r, b, count, out);
  }
}

static inline void naive_pfd(naive_reader *r, uint32_t *out) {
  uint32_t block;
  for (block = 0; block * 128 < r->l->n && !r->wrong; block++) {
    unsigned width = r->l->offset ? r->l->width[block] : (unsigned)naive_take(r, 1);
    naive_block(r, block, r->at, width);
    naive_pfd_block(r, width, naive_block_len(r->l, block), out + block * 128);
  }
}

/* ---- ef, qs, rice: unary bit vectors ---- */

static inline void naive_ef(naive_reader *r, uint32_t *out) {
  uint32_t block, base = 0;
  for (block = 0; block * 128 < r->l->n && !r->wrong; block++) {
    const uint32_t count = naive_block_len(r->l, block);
    unsigned b = r->l->offset ? r->l->width[block] : (unsigned)naive_take(r, 1);
    uint32_t *x = out + block * 128, i, high = 0, most;
    uint64_t bit;
    naive_block(r, block, r->at, b);
    naive_array(r, x, count, b);
    bit = r->at * 8;
    for (i = 0; i < count && !r->wrong; i++) {
      while (!naive_bit(r, bit++) && !r->wrong) high++;
      x[i] += high << b;
    }
    naive_must(r, bit - r->at * 8 <= 3 * (uint64_t)count, "the unary part is too long");
    for (; bit % 8; bit++) naive_must(r, !naive_bit(r, bit), "padding is not zero");
    r->at = bit / 8;
    most = x[count - 1];
    naive_must(r, b == (most < count ? 0 : naive_log2(most / count)), "b is not floor(log2(U / n))");
    for (i = 0; i < count; i++) x[i] += base;
    base = x[count - 1] + 1;
  }
}

/* Of qs and rice: the header, `every` bits a sum, and for rice a sum of the binary numbers a block. */
typedef struct naive_halves {
  unsigned b;
  uint64_t bytes; /* of the unary vector */
  uint64_t sums, bases; /* byte offsets of the tables */
} naive_halves;

static inline naive_halves naive_halves_head(naive_reader *r, unsigned every, int rice) {
  naive_halves h = {0, 0, 0, 0};
  if (r->l->offset) {
    uint64_t head = naive_take(r, 8);
    h.b = head & 255;
    h.bytes = head >> 8;
    h.sums = r->at;
    r->at += (h.bytes * 8 + every - 1) / every * 4;
    h.bases = r->at;
    if (rice) r->at += ((uint64_t)r->l->n + 127) / 128 * 4;
  } else {
    h.b = (unsigned)naive_take(r, 1);
    h.bytes = r->l->len - 1 - ((uint64_t)r->l->n * h.b + 7) / 8;
  }
  return h;
}

/* Holds a table of sums against the vector that begins at r->at. */
static inline void naive_halves_sums(naive_reader *r, const naive_halves *h, unsigned every) {
  uint64_t bit, ones = 0;
  for (bit = 0; r->l->offset && bit < h->bytes * 8 && !r->wrong; bit++) {
    if (bit % every == 0) naive_must(r, naive_number(r, (h->sums + bit / every * 4) * 8, 32) == ones, "a sum is wrong");
    ones += naive_bit(r, r->at * 8 + bit);
  }
}

static inline void naive_qs(naive_reader *r, uint32_t *out) {
  naive_halves h = naive_halves_head(r, 1024, 0);
  uint64_t bit, end;
  uint32_t i, high = 0;
  naive_array(r, out, r->l->n, h.b);
  naive_halves_sums(r, &h, 1024);
  bit = r->at * 8;
  end = bit + h.bytes * 8;
  for (i = 0; i < r->l->n && !r->wrong; i++) {
    if (i % 128 == 0) naive_block(r, i / 128, high = i ? out[i - 1] >> h.b : 0, 0);
    while (!naive_bit(r, bit++) && !r->wrong) high++;
    out[i] += high << h.b;
  }
  for (; bit < end; bit++) naive_must(r, !naive_bit(r, bit), "padding is not zero");
  r->at = bit / 8;
}

static inline void naive_rice(naive_reader *r, uint32_t *out) {
  naive_halves h = naive_halves_head(r, 128, 1);
  uint64_t bit, end, ones = 0;
  uint32_t i, sum = 0;
  naive_array(r, out, r->l->n, h.b);
  naive_halves_sums(r, &h, 128);
  bit = r->at * 8;
  end = bit + h.bytes * 8;
  for (i = 0; i < r->l->n && !r->wrong; i++) {
    if (i % 128 == 0) {
      naive_block(r, i / 128, ones, 0);
      if (r->l->offset)
        naive_must(r, naive_number(r, (h.bases + i / 128 * 4) * 8, 32) == sum, "a sum of binary numbers is wrong");
    }
    sum += out[i];
    for (; naive_bit(r, bit++) && !r->wrong; ones++) out[i] += (uint32_t)1 << h.b;
  }
  for (; bit < end; bit++) naive_must(r, !naive_bit(r, bit), "padding is not zero");
  r->at = bit / 8;
}

/* ---- pfd-list ---- */

/* positions: NULL, or of each number whether it is an exception */
static inline void naive_pfl_array(naive_reader *r, uint32_t *out, uint32_t n, unsigned depth, uint8_t *exception) {
  uint32_t number, i, at = 0, *inner;
  unsigned b;
  if (depth == 0) {
    naive_array(r, out, n, 32);
    return;
  }
  b = (unsigned)naive_take(r, 1);
  number = (uint32_t)naive_take(r, 4);
  naive_array(r, out, n, b);
  if (!number || r->wrong) return;
  naive_must(r, number <= n && b < 32, "exceptions are none");
  inner = r->wrong ? NULL : (uint32_t *)malloc((size_t)number * 8);
  if (!inner) {
    naive_must(r, 0, "no memory");
    return;
  }
  naive_pfl_array(r, inner, number, depth - 1, NULL);
  naive_pfl_array(r, inner + number, number, depth - 1, NULL);
  for (i = 0; i < number && !r->wrong; i++) {
    at += inner[number + i];
    naive_must(r, at < n, "a position is none");
    if (r->wrong) break;
    out[at] |= inner[i] << b;
    if (exception) exception[at] = 1;
    at++;
  }
  free(inner);
}

static inline void naive_pfl(naive_reader *r, uint32_t *out) {
  const uint32_t n = r->l->n;
  unsigned depth = (unsigned)naive_take(r, 1);
  uint64_t bases = r->at;
  uint32_t i, before = UINT32_MAX, exceptions = 0;
  uint8_t *exception = (uint8_t *)calloc((size_t)n + 1, 1);
  naive_must(r, depth >= 1 && depth <= 5 && exception, "the depth is none");
  if (r->l->offset) r->at += ((uint64_t)n + 511) / 512 * 4;
  if (!r->wrong) naive_pfl_array(r, out, n, depth, exception);
  for (i = 0; i < n && r->l->offset && !r->wrong; i++) {
    if (i % 512 == 0)
      naive_must(r, naive_number(r, (bases + i / 512 * 4) * 8, 32) == before, "a docID before a block is wrong");
    if (i % 128 == 0) naive_block(r, i / 128, exceptions, 0);
    before += out[i] + 1;
    exceptions += exception[i];
  }
  free(exception);
}

/* ---- parapfor and the regressions ---- */

static inline void naive_segment(naive_reader *r, uint32_t *out, uint32_t count) {
  unsigned b = (unsigned)naive_take(r, 1), ib, hb, en, k;
  uint32_t index[256], overflow[256];
  if (b < 128) {
    naive_array(r, out, count, b);
    return;
  }
  b &= 127;
  ib = (unsigned)naive_take(r, 1);
  hb = (unsigned)naive_take(r, 1);
  en = (unsigned)naive_take(r, 1);
  naive_must(r, en > 0 && ib <= 8 && b + hb <= 32, "exceptions are none");
  naive_array(r, out, count, b);
  if (r->wrong) return;
  naive_array(r, index, en, ib);
  naive_array(r, overflow, en, hb);
  for (k = 0; k < en && !r->wrong; k++) {
    naive_must(r, index[k] < count && (!k || index[k] > index[k - 1]) && overflow[k], "an exception is none");
    if (!r->wrong) out[index[k]] |= overflow[k] << b;
  }
  naive_must(r, ib == (index[en - 1] ? naive_log2(index[en - 1]) + 1 : 0), "ib is not the greatest index's");
}

/* The offset of each block that begins in the segment of `count` docIDs from `start` on, which begins at `at`; a
 * block that begins before it has its own. */
static inline void naive_segment_blocks(naive_reader *r, uint32_t start, uint32_t count, uint64_t at) {
  uint32_t i;
  for (i = start; i < start + count; i++)
    if (i % 128 == 0) naive_block(r, i / 128, at, 0);
}

static inline uint32_t naive_segment_size(naive_reader *r) {
  unsigned log;
  if (!r->l->offset) return r->l->n;
  log = (unsigned)naive_take(r, 1);
  naive_must(r, log >= 6 && log <= 8, "a segment's size is none");
  return (uint32_t)1 << (log & 15);
}

static inline void naive_para(naive_reader *r, uint32_t *out) {
  uint32_t size = naive_segment_size(r), at, count;
  for (at = 0; at < r->l->n && !r->wrong; at += count) {
    count = r->l->n - at < size ? r->l->n - at : size;
    naive_segment_blocks(r, at, count, r->at);
    naive_segment(r, out + at, count);
  }
}

typedef struct naive_line {
  uint32_t slope, start;
  unsigned shift;
} naive_line;

static inline naive_line naive_take_line(naive_reader *r, uint32_t count) {
  naive_line l;
  unsigned lengths = (unsigned)naive_take(r, 1);
  naive_must(r, (lengths & 7) <= 4 && lengths >> 3 <= 4, "a line's lengths are none");
  if (r->wrong) lengths = 0;
  l.slope = (uint32_t)naive_take(r, lengths & 7);
  l.start = (uint32_t)naive_take(r, lengths >> 3);
  l.shift = count > 1 ? naive_log2(count - 1) : 0;
  return l;
}

static inline uint32_t naive_height(const naive_line *l, uint32_t i) {
  return (uint32_t)(((uint64_t)l->slope * i) >> l->shift) + l->start;
}

enum { NAIVE_LRC, NAIVE_LRCSEG, NAIVE_SEGLRC };

static inline void naive_lrc(naive_reader *r, uint32_t *out, int kind) {
  uint32_t size = naive_segment_size(r), at, count, i;
  naive_line line = {0, 0, 0};
  if (!r->l->offset) kind = NAIVE_SEGLRC; /* | line, segment | */
  if (kind != NAIVE_SEGLRC) line = naive_take_line(r, r->l->n);
  for (at = 0; at < r->l->n && !r->wrong; at += count) {
    count = r->l->n - at < size ? r->l->n - at : size;
    naive_segment_blocks(r, at, count, r->at);
    if (kind == NAIVE_SEGLRC) line = naive_take_line(r, count);
    if (kind == NAIVE_LRCSEG) {
      naive_line own = naive_take_line(r, count);
      naive_must(r, own.slope == 0, "a start has a slope");
      line.start = own.start;
    }
    naive_segment(r, out + at, count);
    for (i = 0; i < count && !r->wrong; i++) out[at + i] += naive_height(&line, kind == NAIVE_SEGLRC ? i : at + i);
  }
}

static inline void naive_bucket(naive_reader *r, uint32_t *out, uint32_t count) {
  naive_line line = naive_take_line(r, count);
  uint64_t ends = r->at, first;
  uint32_t at, i, segments = (count + 255) / 256;
  r->at += (uint64_t)(segments - 1) * 4;
  first = r->at;
  for (at = 0; at < count && !r->wrong; at += 256) {
    naive_segment(r, out + at, count - at < 256 ? count - at : 256);
    if (at / 256 + 1 < segments)
      naive_must(r, naive_number(r, (ends + at / 256 * 4) * 8, 32) == r->at - first, "a segment's end is wrong");
  }
  for (i = 0; i < count && !r->wrong; i++) out[i] += naive_height(&line, i);
}

static inline void naive_hslrc(naive_reader *r, uint32_t *out) {
  uint64_t head, data;
  uint32_t d, h, i, *first, *where;
  unsigned shift;
  if (!r->l->offset) {
    if (r->l->n) naive_bucket(r, out, r->l->n);
    return;
  }
  head = naive_take(r, 8);
  shift = head & 255;
  d = (uint32_t)(head >> 32);
  naive_must(r, !(head >> 24 & 255) && shift < 32, "the head is none");
  first = (uint32_t *)malloc(((size_t)d + 1) * 8);
  naive_must(r, first != NULL, "no memory");
  if (r->wrong) return;
  where = first + d + 1;
  naive_array(r, first, (uint64_t)d + 1, head >> 8 & 255);
  naive_array(r, where, (uint64_t)d + 1, head >> 16 & 255);
  data = r->at;
  naive_must(r, first[0] == 0 && first[d] == r->l->n, "the buckets do not hold the list");
  for (h = 0; h < d && !r->wrong; h++) {
    naive_must(r, where[h] == r->at - data && first[h] <= first[h + 1], "a bucket is not where it should be");
    if (r->wrong || first[h] == first[h + 1]) continue;
    naive_bucket(r, out + first[h], first[h + 1] - first[h]);
    for (i = first[h]; i < first[h + 1] && !r->wrong; i++) {
      naive_must(r, out[i] >> shift == h, "a docID is in another bucket");
      if (i % 128 == 0) naive_block(r, i / 128, h, 0);
    }
  }
  naive_must(r, where[d] == r->at - data, "the last bucket does not end where it should");
  free(first);
}

/* Decodes a list to out[0..n); NULL, or what is wrong with its bytes. */
static inline const char *naive_decode(const naive_list *l, uint32_t *out) {
  naive_reader r = {l, 0, NULL};
  const char *c = l->codec;
  int gaps = 1;
  uint32_t i, before = UINT32_MAX;
  if (!l->n) return l->len && strcmp(c, "qs") && strcmp(c, "rice") && strcmp(c, "pfd-list") ? "bytes of nothing" : NULL;
  if (!strcmp(c, "vbyte")) {
    naive_vbyte(&r, out);
  } else if (!strcmp(c, "bp128")) {
    naive_bp128(&r, out);
  } else if (!strcmp(c, "pfd") || !strcmp(c, "newpfd") || !strcmp(c, "optpfd")) {
    naive_pfd(&r, out);
  } else if (!strcmp(c, "pfd-list")) {
    naive_pfl(&r, out);
  } else if (!strcmp(c, "parapfor")) {
    naive_para(&r, out);
  } else {
    gaps = !strcmp(c, "rice");
    if (!strcmp(c, "ef")) naive_ef(&r, out);
    else if (!strcmp(c, "qs")) naive_qs(&r, out);
    else if (!strcmp(c, "rice")) naive_rice(&r, out);
    else if (!strcmp(c, "lrc")) naive_lrc(&r, out, NAIVE_LRC);
    else if (!strcmp(c, "lrcseg")) naive_lrc(&r, out, NAIVE_LRCSEG);
    else if (!strcmp(c, "seglrc")) naive_lrc(&r, out, NAIVE_SEGLRC);
    else if (!strcmp(c, "hslrc")) naive_hslrc(&r, out);
    else return "an unknown codec";
  }
  naive_must(&r, r.at == l->len, "bytes are left over");
  for (i = 0; i < l->n && gaps && l->docids && !r.wrong; i++) {
    before += out[i] + 1;
    out[i] = before;
  }
  return r.wrong;
}

/* ---- the dictionary, from the picture of [32-dictionary] ---- */

typedef struct naive_dictionary {
  const uint8_t *blocks; /* sections TERMS, TERM_PAGES, TERM_STARTS, TERM_KEYS, and their bytes */
  uint64_t blocks_len;
  const uint8_t *pages;
  uint64_t pages_len;
  const uint8_t *starts;
  uint64_t starts_len;
  const uint8_t *keys;
  uint64_t keys_len;
  uint64_t terms, documents;
  int positions;
} naive_dictionary;

typedef struct naive_term {
  uint8_t text[256];
  unsigned len;
  uint32_t df;
  uint32_t docid, tf; /* df 1 */
  uint64_t docs, docs_len, freqs, freqs_len; /* df up to 127 */
  uint64_t number; /* of a longer list */
  unsigned codec, freq_codec; /* unless df is 1 */
  uint64_t positions, positions_len;
} naive_term;

typedef void (*naive_term_fn)(void *user, uint64_t id, const naive_term *t);

/* Where the next block, short list, long list and positions are. */
typedef struct naive_places {
  uint64_t start, docs, freqs, longs, positions;
} naive_places;

static inline unsigned naive_width(uint64_t v) { return v ? naive_log2(v) + 1 : 0; }

/* What the header of a block says, and its columns. */
typedef struct naive_block {
  unsigned n, several, second, mixed;
  unsigned width[8], count[8], base[3]; /* base: bytes of those of docIDs, frequencies, positions */
  uint64_t column[8][16];
} naive_block_of;

/* Takes the columns; their widths must be as small as they can be, but for that of docIDs. */
static inline void naive_columns(naive_reader *r, naive_block_of *b) {
  uint64_t bit = r->at * 8;
  unsigned c, i;
  for (c = 0; c < 8; c++) {
    uint64_t most = 0;
    naive_must(r, b->width[c] <= 48, "a width is more than 48");
    for (i = 0; i < b->count[c] && !r->wrong; i++, bit += b->width[c])
      most |= b->column[c][i] = naive_number(r, bit, b->width[c]);
    naive_must(r, !c || b->width[c] == naive_width(most), "a column's width is not what its numbers need");
  }
  for (; bit % 8 && !r->wrong; bit++) naive_must(r, !naive_bit(r, bit), "padding is not zero");
  r->at = bit / 8;
}

/* Takes what stands before the bases. */
static inline void naive_head(naive_reader *r, const naive_dictionary *d, naive_block_of *b) {
  uint64_t widths;
  unsigned i;
  b->several = (unsigned)naive_take(r, 2);
  b->second = (unsigned)naive_take(r, 2);
  widths = naive_take(r, 4);
  naive_must(r, !(b->several >> b->n) && !(b->second >> b->n) && !(widths >> 30), "bits of no term are not zero");
  b->width[0] = naive_width(d->documents - 1);
  b->width[1] = widths & 63;
  b->width[2] = widths >> 6 & 7;
  b->width[3] = widths >> 9 & 31;
  b->width[4] = widths >> 14 & 31;
  b->width[5] = widths >> 19 & 63;
  b->base[0] = widths >> 25 & 3;
  b->base[1] = widths >> 27 & 3;
  b->mixed = widths >> 29 & 1;
  if (d->positions) {
    widths = naive_take(r, 2);
    b->width[6] = widths & 63;
    b->width[7] = widths >> 6 & 63;
    b->base[2] = widths >> 12 & 7;
    naive_must(r, !(widths >> 15), "a bit of nothing is not zero");
  }
  for (i = 0; i < b->n; i++) {
    const unsigned many = b->several >> i & 1, other = b->second >> i & 1, is_long = many && other;
    b->count[0] += !many;
    b->count[1] += !many && other;
    b->count[2] += many && !other;
    b->count[5] += is_long;
    if (d->positions) b->count[is_long ? 7 : 6]++;
  }
  b->count[3] = b->count[4] = b->count[2];
}

/* A base must be what lies between the page's and the block's beginning, in as few bytes as that takes. */
static inline void naive_base(naive_reader *r, unsigned bytes, uint64_t page, uint64_t now) {
  naive_must(r, bytes == (naive_width(now - page) + 7) / 8, "a base's bytes are not what it needs");
  naive_must(r, naive_take(r, bytes) == now - page, "a base is wrong");
}

/* Takes the codecs of the terms with several postings. */
static inline void naive_codecs(naive_reader *r, const naive_block_of *b, naive_term *t) {
  unsigned i, lists = 0, codecs = 0, first = 0, differ = 0;
  for (i = 0; i < b->n; i++) {
    if (!(b->several >> i & 1)) continue;
    if (!lists++ || b->mixed) codecs = (unsigned)naive_take(r, 1);
    if (lists == 1) first = codecs;
    differ |= codecs != first;
    t[i].codec = codecs & 15;
    t[i].freq_codec = codecs >> 4;
  }
  naive_must(r, differ == b->mixed, "codecs are not mixed");
}

/* Takes a block's head and columns. */
static inline void naive_records(naive_reader *r, const naive_dictionary *d, naive_term *t, unsigned n,
    const naive_places *page, naive_places *now) {
  const uint64_t start = r->at, head = naive_take(r, 1);
  naive_block_of b;
  unsigned i, at[8] = {0};
  memset(&b, 0, sizeof b);
  b.n = n;
  naive_head(r, d, &b);
  naive_base(r, b.base[0], page->docs, now->docs);
  naive_base(r, b.base[1], page->freqs, now->freqs);
  if (b.count[5]) naive_must(r, naive_take(r, 1) == now->longs - page->longs, "the base of long lists is wrong");
  if (d->positions) naive_base(r, b.base[2], page->positions, now->positions);
  naive_codecs(r, &b, t);
  naive_columns(r, &b);
  naive_must(r, r->at == start + head, "the head is wrong");
  for (i = 0; i < n; i++) {
    const unsigned many = b.several >> i & 1, other = b.second >> i & 1;
    if (!many) {
      t[i].df = 1;
      t[i].docid = (uint32_t)b.column[0][at[0]++];
      t[i].tf = other ? (uint32_t)b.column[1][at[1]++] + 2 : 1;
    } else if (other) {
      t[i].df = (uint32_t)b.column[5][at[5]++] + 128;
      t[i].number = now->longs++;
    } else {
      t[i].df = (uint32_t)b.column[2][at[2]] + 2;
      t[i].docs = now->docs;
      t[i].freqs = now->freqs;
      t[i].docs_len = b.column[3][at[2]] + 1;
      t[i].freqs_len = b.column[4][at[2]++] + 1;
      now->docs += t[i].docs_len;
      now->freqs += t[i].freqs_len;
      naive_must(r, t[i].df <= 127, "a short list is long");
    }
    if (!d->positions) continue;
    t[i].positions = now->positions;
    t[i].positions_len = many && other ? b.column[7][at[7]++] : b.column[6][at[6]++];
    now->positions += t[i].positions_len;
  }
}

/* Takes a block's terms. `before` is the term before the block, of length 0 if there is none. */
static inline void naive_terms(naive_reader *r, naive_term *t, unsigned n, const naive_term *before) {
  const uint64_t lengths = r->at, firsts = r->at + n - 1;
  unsigned i, k;
  r->at += 2 * n - 1;
  for (i = 0; i < n && !r->wrong; i++) {
    const naive_term *last = i ? &t[i - 1] : before;
    const unsigned x = (unsigned)naive_number(r, (lengths + i) * 8, 8);
    unsigned shared = i ? x & 15 : 0, rest = i ? x >> 4 : x;
    if (i && shared == 15) {
      shared = (unsigned)naive_take(r, 1);
      naive_must(r, shared >= 15, "a length is longer than it must be");
    }
    if (i && rest == 15) {
      rest = (unsigned)naive_take(r, 1);
      naive_must(r, rest >= 15, "a length is longer than it must be");
    }
    t[i].len = shared + rest + (i > 0);
    naive_must(r, t[i].len >= 1 && t[i].len <= 255 && (!i || shared <= last->len), "a length is none");
    if (r->wrong) return;
    memcpy(t[i].text, last->text, shared);
    if (i) t[i].text[shared] = (uint8_t)naive_number(r, (firsts + i) * 8, 8);
    for (k = t[i].len - rest; k < t[i].len; k++) t[i].text[k] = (uint8_t)naive_take(r, 1);
    k = 0;
    while (k < last->len && k < t[i].len && last->text[k] == t[i].text[k]) k++;
    naive_must(r, !i || k == shared, "more bytes are shared");
    naive_must(r, k < t[i].len && (k == last->len || last->text[k] < t[i].text[k]), "terms do not ascend");
  }
}

/* Checks a level of the tree over n ranges that begin with the terms heads[0..n), and all above it; returns the node
 * behind. The heads of the level above take their place. */
static inline const uint8_t *naive_tree(naive_reader *r, const uint8_t *keys, naive_term *heads, uint64_t n) {
  const uint64_t nodes = (n + 15) / 16;
  naive_term *mine;
  uint64_t i, k;
  unsigned b;
  if (n <= 1) return keys;
  mine = (naive_term *)malloc((size_t)n * sizeof *mine);
  if (!mine) {
    naive_must(r, 0, "no memory");
    return keys;
  }
  memcpy(mine, heads, (size_t)n * sizeof *mine);
  for (i = 0; i < nodes; i++) heads[i] = mine[16 * i];
  keys = naive_tree(r, keys, heads, nodes);
  for (i = 0; i < nodes; i++) {
    unsigned skip = 0;
    if (i && i + 1 < nodes)
      while (skip < mine[16 * i].len && skip < mine[16 * (i + 1)].len &&
          mine[16 * i].text[skip] == mine[16 * (i + 1)].text[skip])
        skip++;
    for (k = 0; k < 16; k++, keys += 8) {
      uint64_t want = k ? 0 : skip, found = 0;
      for (b = 0; b < 8; b++) found |= (uint64_t)keys[b] << 8 * b;
      for (b = 0; b < 8 && k; b++) {
        const naive_term *head = &mine[16 * i + k < n ? 16 * i + k : 0];
        want = want << 8 | (16 * i + k >= n ? 255 : skip + b < head->len ? head->text[skip + b] : 0u);
      }
      naive_must(r, want == found, "a number of the tree is wrong");
    }
  }
  free(mine);
  return keys;
}

static inline uint64_t naive_64(const uint8_t *p) {
  uint64_t v = 0;
  unsigned b;
  for (b = 0; b < 8; b++) v |= (uint64_t)p[b] << 8 * b;
  return v;
}

/* Reads a dictionary and hands each term to `emit`; NULL, or what is wrong with it. */
static inline const char *naive_dictionary_read(const naive_dictionary *d, naive_term_fn emit, void *user) {
  const uint64_t blocks = (d->terms + 15) / 16;
  naive_list l = {"dictionary", 0, 0, d->blocks, d->blocks_len, NULL, NULL};
  naive_reader r = {&l, 0, NULL};
  naive_places page = {0, 0, 0, 0, 0}, now = {0, 0, 0, 0, 0};
  naive_term *heads = (naive_term *)calloc((size_t)blocks + 1, sizeof *heads), t[16], before;
  uint64_t block;
  naive_must(&r, d->pages_len == (blocks + 15) / 16 * 40 && d->starts_len == blocks * 2, "pages or starts are too few");
  memset(&before, 0, sizeof before);
  for (block = 0; block < blocks && heads && !r.wrong; block++) {
    const unsigned n = d->terms - block * 16 < 16 ? (unsigned)(d->terms - block * 16) : 16;
    unsigned i;
    now.start = r.at;
    if (block % 16 == 0) {
      const uint8_t *p = d->pages + block / 16 * 40;
      page = now;
      naive_must(&r, naive_64(p) == now.start && naive_64(p + 8) == now.docs && naive_64(p + 16) == now.freqs,
          "a page is wrong");
      naive_must(&r, naive_64(p + 24) == now.longs && naive_64(p + 32) == now.positions, "a page is wrong");
    }
    naive_must(&r, (d->starts[2 * block] | (unsigned)d->starts[2 * block + 1] << 8) == now.start - page.start,
        "a block's start is wrong");
    memset(t, 0, sizeof t);
    naive_records(&r, d, t, n, &page, &now);
    naive_terms(&r, t, n, &before);
    for (i = 0; i < n && !r.wrong; i++) emit(user, block * 16 + i, &t[i]);
    heads[block] = t[0];
    before = t[n - 1];
  }
  naive_must(&r, heads && r.at == d->blocks_len, "bytes are left over");
  if (!r.wrong)
    naive_must(&r, naive_tree(&r, d->keys, heads, blocks) == d->keys + d->keys_len, "the tree has another size");
  free(heads);
  return r.wrong;
}

#endif
