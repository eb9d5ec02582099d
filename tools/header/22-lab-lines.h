
/* ========
 * [22-lab-lines]  codecs of the literature: deviations from regression lines (lrc, lrcseg, seglrc, hslrc)
 *
 * Uses      [18-codecs], [20-lab-unary], [21-lab-pfor] (the segments of parapfor).
 * Start at  gpuir__line (a fitted line in fixed point), gpuir__lrc_decode, gpuir__hslrc_decode.
 * Tests     tests/unit/22_lab_lines.c
 * ======*/

/* ---- regression lines */

/* A line through the points (i, value i) of `count` consecutive values. Its height at i is
 *
 *     (slope * i >> shift) + start      modulo 2^32, with shift = floor(log2(count - 1)), 0 for 1
 *
 * in 64-bit fixed point: slope is less than 2^32, since no line rises beyond 2^32 - 1, so the
 * product is exact, and its last bit is worth less than one docID at the last i. */
typedef struct gpuir__line {
  uint32_t slope, start;
  unsigned shift;
} gpuir__line;

/* Returns the line's height at i. */
GPUIR_HD uint32_t gpuir__line_at(const gpuir__line *l, uint32_t i) {
  return (uint32_t)((uint64_t)l->slope * i >> l->shift) + l->start;
}

GPUIR_HD unsigned gpuir__line_shift(uint32_t count) { return count > 1 ? gpuir__width32(count - 1) - 1 : 0; }

/* Adds the line's heights at from, from + 1, ... to out[0..count) and clamps to limit. Kernels process up to the next
 * multiple of 16 values. */
static void gpuir__line_add_scalar(const gpuir__line *l, uint32_t from, uint32_t limit, uint32_t count, uint32_t *out) {
  uint32_t i;
  for (i = 0; i < count; i++) out[i] = gpuir__min32(out[i] + gpuir__line_at(l, from + i), limit);
}

#if GPUIR__X86
GPUIR__AVX2 static void gpuir__line_add_avx2(const gpuir__line *l, uint32_t from, uint32_t limit, uint32_t count,
    uint32_t *out) {
  const __m256i slope = _mm256_set1_epi64x((long long)l->slope), start = _mm256_set1_epi32((int)l->start);
  const __m256i most = _mm256_set1_epi32((int)limit);
  const __m256i step = _mm256_slli_epi64(slope, 3);
  const __m256i first = _mm256_set1_epi64x((long long)((uint64_t)l->slope * from));
  const __m128i shift = _mm_cvtsi32_si128((int)l->shift);
  __m256i even = _mm256_add_epi64(first, _mm256_mul_epu32(slope, _mm256_setr_epi64x(0, 2, 4, 6)));
  __m256i odd = _mm256_add_epi64(even, slope);
  uint32_t i;
  for (i = 0; i < count; i += 8) {
    __m256i y =
        _mm256_blend_epi32(_mm256_srl_epi64(even, shift), _mm256_slli_epi64(_mm256_srl_epi64(odd, shift), 32), 0xaa);
    __m256i x = _mm256_add_epi32(_mm256_add_epi32(gpuir__avx2_load(out + i), start), y);
    gpuir__avx2_store(out + i, _mm256_min_epu32(x, most));
    even = _mm256_add_epi64(even, step);
    odd = _mm256_add_epi64(odd, step);
  }
}

GPUIR__AVX512 static void gpuir__line_add_avx512(const gpuir__line *l, uint32_t from, uint32_t limit, uint32_t count,
    uint32_t *out) {
  const __m512i slope = _mm512_set1_epi64((long long)l->slope), start = _mm512_set1_epi32((int)l->start);
  const __m512i most = _mm512_set1_epi32((int)limit);
  const __m512i step = _mm512_slli_epi64(slope, 4);
  const __m512i first = _mm512_set1_epi64((long long)((uint64_t)l->slope * from));
  const __m128i shift = _mm_cvtsi32_si128((int)l->shift);
  __m512i even = _mm512_add_epi64(first, _mm512_mul_epu32(slope, _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14)));
  __m512i odd = _mm512_add_epi64(even, slope);
  uint32_t i;
  for (i = 0; i < count; i += 16) {
    __m512i y = _mm512_mask_blend_epi32(0xaaaa, _mm512_srl_epi64(even, shift),
        _mm512_slli_epi64(_mm512_srl_epi64(odd, shift), 32));
    __m512i x = _mm512_add_epi32(_mm512_add_epi32(_mm512_loadu_si512(out + i), start), y);
    _mm512_storeu_si512(out + i, _mm512_min_epu32(x, most));
    even = _mm512_add_epi64(even, step);
    odd = _mm512_add_epi64(odd, step);
  }
}
#endif

/* Returns the line with the least-squares slope, 6 S / ((n - 1) n (n + 1)) with S = sum of (2i - (n - 1)) * value i,
 * and start 0. S is exact, in two limbs; the rest is products and a quotient in binary64, of which only exact ones
 * can be fused with what follows, so that every machine writes the same line. */
static gpuir__line gpuir__line_fit(const uint32_t *values, uint32_t n) {
  gpuir__line l;
  uint64_t lo = 0, hi = 0;
  double slope;
  uint32_t i;
  l.slope = l.start = 0;
  l.shift = gpuir__line_shift(n);
  if (n < 2) return l;
  for (i = 0; i < n / 2; i++) { /* two values that lie symmetrically: their weights differ in the sign only */
    uint64_t term = (uint64_t)(n - 1 - 2 * i) * (values[n - 1 - i] - values[i]);
    lo += term;
    hi += lo < term;
  }
  slope = (double)hi * 18446744073709551616.0 + (double)lo;
  slope = slope * 6.0 / ((double)(n - 1) * (double)n * ((double)n + 1.0)) * (double)((uint64_t)1 << l.shift);
  {
    uint64_t most = ((uint64_t)UINT32_MAX << l.shift) / (n - 1); /* >= 2^32 never: 2^shift <= n - 1 */
    l.slope = slope < (double)most ? (uint32_t)slope : (uint32_t)most;
  }
  return l;
}

/* Sets l->start so that the least deviation of the values from the line is 0; `from` is the line's argument of
 * values[0]. */
static void gpuir__line_lower(gpuir__line *l, const uint32_t *values, uint32_t from, uint32_t n) {
  int64_t least = INT64_MAX;
  uint32_t i;
  l->start = 0;
  for (i = 0; i < n; i++) {
    int64_t d = (int64_t)values[i] - (int64_t)gpuir__line_at(l, from + i);
    if (d < least) least = d;
  }
  l->start = (uint32_t)(uint64_t)least;
}

/* Writes the deviations of n values from the line. */
static void gpuir__line_deviations(const gpuir__line *l, const uint32_t *values, uint32_t from, uint32_t n,
    uint32_t *to) {
  uint32_t i;
  for (i = 0; i < n; i++) to[i] = values[i] - gpuir__line_at(l, from + i);
}

/* Returns the hash bucket, or docID segment, of x: its leading bits (Ao et al. 2011, section 4.4). */
GPUIR_HD uint32_t gpuir__hs_bucket(uint32_t x, unsigned shift) { return x >> shift; }

/* Returns the bits to drop, so that n docIDs up to `last` lie in buckets of `mean` on average: of the k bits that
 * `last` needs, the m leading ones stay, with m the least number such that n / mean <= 2^m; at least one, if k is
 * 32. */
GPUIR_HD unsigned gpuir__hs_shift(uint32_t last, uint32_t n, uint32_t mean) {
  unsigned k = gpuir__width32(last), m = 0;
  while (m < k && ((uint64_t)mean << m) < n) m++;
  return k - m < 32 ? k - m : 31;
}

/* ----
 * lrc (11), lrcseg (12), seglrc (13)
 *
 * Linear regression compression: docIDs grow nearly linearly with their index, so that what is coded
 * is their deviation from a regression line, and any of them can be decoded alone. Source: section
 * 5.2 of Ao et al., PVLDB 4(8), 2011. The line is given a start such that no deviation is negative
 * (that is the paper's M), and the deviations are coded in parapfor segments of s values (256):
 *
 *     docID i = line(i) + deviation i         line(i) = (slope * i >> shift) + start, see gpuir__line
 *
 *     line      | lengths u8 | slope, 0 to 4 bytes | start, 0 to 4 bytes |
 *                 '-- bits 0..2 of the slope, 3..5 of the start, in bytes
 *
 *     lrc       one line for the list         | log2 s u8 | line | segment | segment | ...
 *     lrcseg    one line for the list, but    | log2 s u8 | line | start, segment | start, segment | ...
 *               each segment its own start
 *     seglrc    a line for each segment       | log2 s u8 | line, segment | line, segment | ...
 *
 * A start of lrcseg is a line record whose slope has no bytes; i counts from the line's beginning. A
 * list of fewer than 128 is | line, segment | for all three. offset[] has where the segment (or the
 * record before it) begins that a block begins in, width[] is 0. The parameter is parapfor's.
 *
 * gpuir__lrc_find and gpuir__lrc_segment find the line and the segment. A lane adds gpuir__line_at to
 * what it does for parapfor, and waits for no other; gpuir__lrc_any_get does all of it.
 * ----*/

enum { GPUIR__LRC, GPUIR__LRCSEG, GPUIR__SEGLRC }; /* the codecs' modes */

/* Reads a line record; returns its size, or 0 and a line of zeros if it is not all there. */
GPUIR_HD uint64_t gpuir__line_find(const uint8_t *p, uint64_t avail, uint32_t count, gpuir__line *l) {
  const unsigned slope = avail ? p[0] & 7 : 5, start = avail ? p[0] >> 3 : 5;
  l->shift = gpuir__line_shift(count);
  l->slope = l->start = 0;
  if (slope > 4 || start > 4 || 1 + slope + start > avail) return 0;
  l->slope = gpuir__load_bytes(p + 1, slope);
  l->start = gpuir__load_bytes(p + 1 + slope, start);
  return 1 + slope + start;
}

/* Appends a line record. 0 or NOMEM. */
static int gpuir__line_put(const gpuir_allocator *a, gpuir__buf *out, uint32_t slope, uint32_t start) {
  uint8_t bytes[16];
  unsigned ls = (gpuir__width32(slope) + 7) / 8, lt = (gpuir__width32(start) + 7) / 8;
  bytes[0] = (uint8_t)(ls | lt << 3);
  gpuir__store32(bytes + 1, slope);
  gpuir__store32(bytes + 1 + ls, start);
  return gpuir__buf_put(a, out, bytes, 1 + ls + lt);
}

/* What decoding from a list needs: the values of a segment, and the list's line, if it has one. */
typedef struct gpuir__lrc_list {
  uint32_t size;
  gpuir__line line;
} gpuir__lrc_list;

/* Reads the head of a list of kind GPUIR__LRC .. GPUIR__SEGLRC. 0 or FORMAT. */
GPUIR_HD int gpuir__lrc_find(const gpuir__stream *s, int kind, gpuir__lrc_list *v) {
  v->size = GPUIR__PARA_MOST;
  v->line.slope = v->line.start = v->line.shift = 0;
  if (!s->offset) return GPUIR_OK;
  if (!s->len || s->bytes[0] < 6 || s->bytes[0] > 8) return GPUIR_E_FORMAT;
  v->size = 1u << s->bytes[0];
  if (kind != GPUIR__SEGLRC && !gpuir__line_find(s->bytes + 1, s->len - 1, s->n, &v->line)) return GPUIR_E_FORMAT;
  return GPUIR_OK;
}

/* Finds the line and the segment at byte `at`, of `length` values from index `start` on; returns the byte behind it.
 * *base: the line's argument for the segment's first value. */
GPUIR_HD uint64_t gpuir__lrc_segment(const gpuir__stream *s, int kind, const gpuir__lrc_list *list, uint64_t at,
    uint32_t start, uint32_t length, gpuir__line *line, uint32_t *base, gpuir__para *v) {
  *line = list->line;
  *base = start;
  if (kind == GPUIR__SEGLRC || !s->offset) {
    at += gpuir__line_find(s->bytes + at, s->len - at, length, line);
    *base = 0;
  } else if (kind == GPUIR__LRCSEG) {
    gpuir__line own;
    at += gpuir__line_find(s->bytes + at, s->len - at, length, &own);
    line->start = own.start;
  }
  return at + gpuir__para_find(s->bytes + at, s->len - at, length, v);
}

static inline int gpuir__lrc_any_open(const gpuir__stream *s, int kind) {
  gpuir__lrc_list list;
  int status = gpuir__lrc_find(s, kind, &list);
  if (!status && !s->offset && s->n) {
    gpuir__line line;
    gpuir__para v;
    uint64_t at = gpuir__line_find(s->bytes, s->len, s->n, &line);
    if (!at || !gpuir__para_find(s->bytes + at, s->len - at, s->n, &v)) status = GPUIR_E_FORMAT;
  }
  return status;
}

static void gpuir__lrc_any_decode(const gpuir__stream *s, int kind, uint32_t block, uint32_t *out) {
  const uint32_t count = gpuir__block_count(s->n, block), first = block * GPUIR__BLOCK;
  uint64_t at = s->offset ? gpuir__min64(s->offset[block], s->len) : 0;
  uint32_t start, from, done = 0;
  gpuir__lrc_list list;
  (void)gpuir__lrc_find(s, kind, &list);
  start = first & ~(list.size - 1);
  from = first - start;
  while (done < count) {
    uint32_t length = gpuir__min32(list.size, s->n - start), take = gpuir__min32(length - from, count - done), base;
    gpuir__line line;
    gpuir__para v;
    at = gpuir__lrc_segment(s, kind, &list, at, start, length, &line, &base, &v);
    gpuir__para_decode(s, &v, from, take, out + done);
    s->kernels->line_add(&line, base + from, s->limit, take, out + done);
    done += take;
    start += length;
    from = 0;
  }
}

GPUIR_HD __attribute__((always_inline)) uint32_t gpuir__lrc_any_get(const gpuir__stream *s, int kind, uint32_t i) {
  uint64_t at = s->offset ? gpuir__min64(s->offset[i / GPUIR__BLOCK], s->len) : 0;
  uint32_t start, length, base;
  gpuir__lrc_list list;
  gpuir__line line;
  gpuir__para v;
  (void)gpuir__lrc_find(s, kind, &list);
  start = i / GPUIR__BLOCK * GPUIR__BLOCK & ~(list.size - 1); /* of the segment that the block begins in */
  for (;;) {
    length = gpuir__min32(list.size, s->n - start);
    at = gpuir__lrc_segment(s, kind, &list, at, start, length, &line, &base, &v);
    if (i - start < length) break;
    start += length;
  }
  i -= start;
  return gpuir__min32(gpuir__para_value(&v, i) + gpuir__line_at(&line, base + i), s->limit);
}

/* Appends one segment, with its line or start, if the kind has one; *line: the list's, unless the kind is SEGLRC. */
static int gpuir__lrc_put(const gpuir__target *t, int kind, const uint32_t *values, uint32_t at, uint32_t count,
    unsigned exceptions, gpuir__line *line) {
  uint32_t deviations[GPUIR__PARA_MOST];
  int status = GPUIR_OK;
  if (kind == GPUIR__SEGLRC) *line = gpuir__line_fit(values + at, count);
  if (kind != GPUIR__LRC) {
    gpuir__line_lower(line, values + at, kind == GPUIR__SEGLRC ? 0 : at, count);
    status = gpuir__line_put(t->a, t->out, kind == GPUIR__SEGLRC ? line->slope : 0, line->start);
  }
  gpuir__line_deviations(line, values + at, kind == GPUIR__SEGLRC ? 0 : at, count, deviations);
  return status ? status : gpuir__para_put(t->a, t->out, deviations, count, exceptions);
}

GPUIR__ENCODES(gpuir__lrc_encode) {
  const size_t begin = t->out->len;
  const int kind = t->offset ? (int)codec->mode : (int)GPUIR__SEGLRC; /* a short list is one segment with its line */
  uint32_t size = GPUIR__PARA_MOST, at, count;
  unsigned exceptions = 1;
  gpuir__line line = gpuir__line_fit(values, kind == GPUIR__SEGLRC ? 0 : n);
  int status = gpuir__para_param(t->param, 64, &size, &exceptions);
  if (!t->offset) size = GPUIR__PARA_MOST;
  if (!status && t->offset) {
    uint8_t head = (uint8_t)gpuir__ctz32(size);
    status = gpuir__buf_put(t->a, t->out, &head, 1);
  }
  if (!status && kind != GPUIR__SEGLRC) {
    if (kind == GPUIR__LRC) gpuir__line_lower(&line, values, 0, n);
    status = gpuir__line_put(t->a, t->out, line.slope, line.start);
  }
  for (at = 0; !status && at < n; at += count) {
    const uint64_t used = t->out->len - begin;
    count = gpuir__min32(n - at, size);
    if (used > UINT32_MAX) status = GPUIR_E_LIMIT;
    gpuir__segment_blocks(t, at, count, (uint32_t)used);
    if (!status) status = gpuir__lrc_put(t, kind, values, at, count, exceptions, &line);
  }
  if (status) t->out->len = begin;
  return status;
}

static int gpuir__lrc_open(gpuir__stream *s) { return gpuir__lrc_any_open(s, s->codec->mode); }

GPUIR__DECODES(gpuir__lrc_decode) {
  (void)prev;
  gpuir__lrc_any_decode(s, s->codec->mode, block, out);
}

static uint32_t gpuir__lrc_get(const gpuir__stream *s, uint32_t i) { return gpuir__lrc_any_get(s, s->codec->mode, i); }

/* ----
 * hslrc (14)
 *
 * Hash segmentation with a regression in each bucket. Source: sections 4.4 and 5.3 of Ao et al.,
 * PVLDB 4(8), 2011. A docID's bucket is its leading m bits of k, h(x) = x >> (k - m), where k is
 * the width of the last docID and m the least number with n / mean <= 2^m. Each bucket has a line
 * and its deviations in parapfor segments of 256 (one segment, unless docIDs crowd):
 *
 *     list of 128 or more   | head u64 | first, w1 bits each | where, w2 bits each | bucket | bucket | ...
 *       head                bits 0..7 k - m, 8..15 w1, 16..23 w2, 24..31 0, 32..63 buckets d
 *       first               d + 1 indices of the buckets' first docIDs, the last one n
 *       where               d + 1 positions of the buckets in bytes from bucket 0 on, the last one the end
 *     bucket                nothing | line, segment | line, end u32 of each segment but the last, segments |
 *                           for none, up to 256, or more docIDs; ends count from the first segment on
 *     shorter list          | line, segment |
 *
 * The arrays are padded to a byte each. offset[] has the bucket of a block's first docID, width[] is 0.
 * The parameter is mean + 1024 e: the mean is 32, 64, 128 or 256, 0 for 256; e as for parapfor, and by
 * default no exceptions.
 *
 * Lanes do as for lrc, with gpuir__hslrc_find, gpuir__hslrc_bucket and gpuir__hslrc_segment;
 * gpuir__hslrc_get.
 * ----*/

/* A long list, taken apart. */
typedef struct gpuir__hslrc_list {
  unsigned shift, w1, w2; /* k - m; widths of an item of first and of where */
  uint32_t buckets;
  const uint8_t *first, *where, *data; /* data: the buckets */
  uint64_t len; /* bytes of data */
} gpuir__hslrc_list;

/* Takes a long list apart. 0, or FORMAT, and then there are no buckets. */
GPUIR_HD int gpuir__hslrc_find(const gpuir__stream *s, gpuir__hslrc_list *v) {
  uint64_t head, first, where;
  v->buckets = 0;
  if (!s->offset || s->len < 8) return s->offset ? GPUIR_E_FORMAT : GPUIR_OK;
  head = gpuir__load64(s->bytes);
  v->shift = head & 255;
  v->w1 = head >> 8 & 255;
  v->w2 = head >> 16 & 255;
  first = gpuir__packed_size((head >> 32) + 1, v->w1);
  where = gpuir__packed_size((head >> 32) + 1, v->w2);
  if (v->shift > 31 || v->w1 > 32 || v->w2 > 32 || !v->w1 || first + where > s->len - 8) return GPUIR_E_FORMAT;
  v->buckets = (uint32_t)(head >> 32);
  v->first = s->bytes + 8;
  v->where = v->first + first;
  v->data = v->where + where;
  v->len = s->len - 8 - first - where;
  return GPUIR_OK;
}

/* Returns the index of bucket h's first docID. */
GPUIR_HD uint32_t gpuir__hslrc_first(const gpuir__hslrc_list *v, uint32_t h) {
  return gpuir__packed_value(v->first, v->w1, h);
}

/* Returns the bucket that has the docID of index i, looking at bucket h first; `buckets` if there is none. */
GPUIR_HD uint32_t gpuir__hslrc_bucket(const gpuir__hslrc_list *v, uint32_t h, uint32_t i) {
  uint32_t lo = 0, hi = v->buckets;
  unsigned near;
  for (near = 0; near < 4 && h < v->buckets; near++, h++) {
    uint32_t first = gpuir__hslrc_first(v, h);
    if (first > i) break;
    if (gpuir__hslrc_first(v, h + 1) > i) return h;
  }
  /* the last bucket that begins at i or before: those that begin where the next does are empty */
  while (lo < hi) {
    uint32_t mid = lo + (hi - lo) / 2;
    if (gpuir__hslrc_first(v, mid + 1) <= i) lo = mid + 1;
    else hi = mid;
  }
  return lo < v->buckets && gpuir__hslrc_first(v, lo) <= i ? lo : v->buckets;
}

/* Finds the line of bucket h, of count values, and the segment of it that has its value i < count. */
GPUIR_HD void gpuir__hslrc_segment(const gpuir__hslrc_list *v, uint32_t h, uint32_t count, uint32_t i,
    gpuir__line *line, gpuir__para *segment) {
  const uint32_t k = i / GPUIR__PARA_MOST, segments = (count - 1) / GPUIR__PARA_MOST + 1;
  const uint64_t ends = (uint64_t)(segments - 1) * 4;
  uint64_t at = gpuir__min64(gpuir__packed_value(v->where, v->w2, h), v->len), skip = 0;
  at += gpuir__line_find(v->data + at, v->len - at, count, line);
  if (ends <= v->len - at) {
    if (k) skip = gpuir__load32(v->data + at + (uint64_t)(k - 1) * 4);
    at = gpuir__min64(at + ends + skip, v->len);
  } else {
    at = v->len;
  }
  (void)gpuir__para_find(v->data + at, v->len - at, gpuir__min32(count - k * GPUIR__PARA_MOST, GPUIR__PARA_MOST),
      segment);
}

static int gpuir__hslrc_open(gpuir__stream *s) {
  gpuir__hslrc_list v;
  if (!s->offset) return gpuir__lrc_any_open(s, GPUIR__SEGLRC);
  return gpuir__hslrc_find(s, &v);
}

GPUIR__DECODES(gpuir__hslrc_decode) {
  const uint32_t count = gpuir__block_count(s->n, block), start = block * GPUIR__BLOCK;
  uint32_t done = 0, h;
  gpuir__hslrc_list v;
  (void)prev;
  if (!s->offset) {
    gpuir__lrc_any_decode(s, GPUIR__SEGLRC, block, out);
    return;
  }
  (void)gpuir__hslrc_find(s, &v);
  h = s->offset[block];
  /* A directory that names another bucket than the one of the block's first docID is damaged. It could be searched for,
   * but kernels take the directory's word, and an index that verifies must read alike everywhere. */
  if (h >= v.buckets || gpuir__hslrc_first(&v, h) > start || gpuir__hslrc_first(&v, h + 1) <= start) {
    memset(out, 0, count * sizeof *out);
    return;
  }
  while (done < count) {
    uint32_t first, size, i, take;
    gpuir__line line;
    gpuir__para segment;
    h = gpuir__hslrc_bucket(&v, h, start + done);
    if (h >= v.buckets) { /* damaged */
      memset(out + done, 0, (count - done) * sizeof *out);
      return;
    }
    first = gpuir__hslrc_first(&v, h);
    size = gpuir__hslrc_first(&v, h + 1) - first;
    i = start + done - first;
    gpuir__hslrc_segment(&v, h, size, i, &line, &segment);
    take = gpuir__min32(gpuir__min32(size - i, count - done), GPUIR__PARA_MOST - i % GPUIR__PARA_MOST);
    gpuir__para_decode(s, &segment, i % GPUIR__PARA_MOST, take, out + done);
    s->kernels->line_add(&line, i, s->limit, take, out + done);
    done += take;
  }
}

GPUIR_HD uint32_t gpuir__hslrc_get(const gpuir__stream *s, uint32_t i) {
  gpuir__hslrc_list v;
  gpuir__line line;
  gpuir__para segment;
  uint32_t h, first;
  if (!s->offset) return gpuir__lrc_any_get(s, GPUIR__SEGLRC, i);
  (void)gpuir__hslrc_find(s, &v);
  h = gpuir__hslrc_bucket(&v, s->offset[i / GPUIR__BLOCK], i);
  if (h >= v.buckets) return 0;
  first = gpuir__hslrc_first(&v, h);
  gpuir__hslrc_segment(&v, h, gpuir__hslrc_first(&v, h + 1) - first, i - first, &line, &segment);
  return gpuir__min32(gpuir__para_value(&segment, (i - first) % GPUIR__PARA_MOST) + gpuir__line_at(&line, i - first),
      s->limit);
}

/* Appends a bucket of count > 0 values. 0, NOMEM or LIMIT, and then some of it may have been appended. */
static int gpuir__hslrc_put(const gpuir_allocator *a, gpuir__buf *out, const uint32_t *values, uint32_t count,
    unsigned exceptions) {
  gpuir__line line = gpuir__line_fit(values, count);
  const uint32_t segments = (count - 1) / GPUIR__PARA_MOST + 1;
  uint32_t k, deviations[GPUIR__PARA_MOST];
  size_t ends, base;
  int status;
  gpuir__line_lower(&line, values, 0, count);
  status = gpuir__line_put(a, out, line.slope, line.start);
  if (status) return status;
  if (!gpuir__zero_room(a, out, (uint64_t)(segments - 1) * 4)) return GPUIR_E_NOMEM;
  ends = out->len;
  out->len += (size_t)(segments - 1) * 4;
  base = out->len;
  for (k = 0; k < segments; k++) {
    const uint32_t from = k * GPUIR__PARA_MOST, length = gpuir__min32(count - from, GPUIR__PARA_MOST);
    if (k) {
      if (out->len - base > UINT32_MAX) return GPUIR_E_LIMIT;
      gpuir__store32(out->data + ends + (size_t)(k - 1) * 4, (uint32_t)(out->len - base));
    }
    gpuir__line_deviations(&line, values + from, from, length, deviations);
    status = gpuir__para_put(a, out, deviations, length, exceptions);
    if (status) return status;
  }
  return GPUIR_OK;
}

/* Encodes all buckets into `data`, and notes of each its first index and where it begins: firsts[0..d],
 * wheres[0..d]. */
static int gpuir__hslrc_buckets(const uint32_t *values, uint32_t n, unsigned shift, uint32_t d, unsigned exceptions,
    const gpuir__target *t, uint32_t *firsts, uint32_t *wheres, gpuir__buf *data) {
  uint32_t h, i = 0;
  int status = GPUIR_OK;
  for (h = 0; !status && h <= d; h++) {
    uint32_t count = 0;
    firsts[h] = i;
    wheres[h] = (uint32_t)data->len;
    if (data->len > UINT32_MAX) return GPUIR_E_LIMIT;
    for (; i + count < n && gpuir__hs_bucket(values[i + count], shift) == h; count++)
      if ((i + count) % GPUIR__BLOCK == 0) gpuir__target_block(t, (i + count) / GPUIR__BLOCK, h, 0);
    if (count) status = gpuir__hslrc_put(t->a, data, values + i, count, exceptions);
    i += count;
  }
  return status;
}

/* Appends a long list: head, tables, buckets. */
static int gpuir__hslrc_long(const uint32_t *values, uint32_t n, uint32_t mean, unsigned exceptions,
    const gpuir__target *t) {
  const unsigned shift = gpuir__hs_shift(values[n - 1], n, mean);
  const uint32_t d = gpuir__hs_bucket(values[n - 1], shift) + 1;
  const size_t table_size = ((size_t)d + 1) * 8;
  uint32_t *firsts = (uint32_t *)gpuir__alloc(t->a, table_size), *wheres;
  gpuir__buf data = {NULL, 0, 0};
  int status;
  if (!firsts) return GPUIR_E_NOMEM;
  wheres = firsts + d + 1;
  status = gpuir__hslrc_buckets(values, n, shift, d, exceptions, t, firsts, wheres, &data);
  if (!status) {
    const unsigned w1 = gpuir__width32(n), w2 = gpuir__width64(data.len);
    const uint64_t first = gpuir__packed_size((uint64_t)d + 1, w1), where = gpuir__packed_size((uint64_t)d + 1, w2);
    uint8_t *to = gpuir__zero_room(t->a, t->out, 8 + first + where + data.len);
    if (to) {
      gpuir__store64(to, shift | w1 << 8 | w2 << 16 | (uint64_t)d << 32);
      gpuir__pack(to + 8, firsts, (uint64_t)d + 1, w1);
      gpuir__pack(to + 8 + first, wheres, (uint64_t)d + 1, w2);
      memcpy(to + 8 + first + where, data.data, data.len);
      t->out->len += (size_t)(8 + first + where) + data.len;
    } else {
      status = GPUIR_E_NOMEM;
    }
  }
  gpuir__free(t->a, firsts, table_size);
  gpuir__buf_free(t->a, &data);
  return status;
}

GPUIR__ENCODES(gpuir__hslrc_encode) {
  const size_t begin = t->out->len;
  uint32_t mean = 256;
  unsigned exceptions = 1;
  int status = gpuir__para_param(t->param, 32, &mean, &exceptions);
  (void)codec;
  if (!status && t->offset) status = gpuir__hslrc_long(values, n, mean, exceptions, t);
  else if (!status && n) status = gpuir__hslrc_put(t->a, t->out, values, n, exceptions);
  if (status) t->out->len = begin;
  return status;
}

#endif /* GPUIR_NO_LAB */
