
/* ========
 * [19-bp128]  bp128: the default codec
 *
 * Uses      [17-vectors], [18-codecs].
 * Start at  gpuir__bp128_encode_block; gpuir__bp128_block and gpuir__bp128_open (where a block's low bits, marks
 *           and high bits are);
 *           gpuir__bp128_scalar (decoding, plainly); gpuir__bp128_simd (the same with vectors).
 * Tests     tests/unit/19_bp128.c
 * ======*/

/* ----
 * bp128 (2)
 *
 * Binary packing: of all values of a block, the low b bits (0 to 32) are kept at the same width;
 * those that need more, the exceptions, have their high bits elsewhere. Sources:
 * SIMD-BP128 with D1 in Lemire & Boytsov, "Decoding billions of integers per second through
 * vectorization", Software: Practice and Experience 45(1), 2015; exceptions from patched coding:
 * Zukowski, Heman, Nes & Boncz, "Super-scalar RAM-CPU cache compression", ICDE 2006, and
 * NewPFD/OptPFD in Yan, Ding & Suel, "Inverted index compression and query processing with
 * optimized document ordering", WWW 2009. Those list or chain the positions of exceptions and
 * patch one after the other. Here a bitmap marks them: the rank of an exception is the number of
 * marks before its own, and the high bits of the exception with rank r stand in place r. So each
 * value finds its high bits for itself: a vector expands 8 or 16 at once, each thread of a warp
 * counts bits, and a single value can be looked up.
 *
 * A block of 128 has four vertical lanes, so that a register of 128, 256 or 512 bits unpacks 4, 8
 * or 16 neighbours at once, and each thread of a warp four. Value i stands in row i / 4 of lane
 * i % 4. Each lane is a stream of 32 b bits, low bits first, and the lanes' words take turns:
 *
 *     b = 12                      lane 0          lane 1         lane 2         lane 3
 *     bytes  0..15   bits  0..11  value 0         value 1        value 2        value 3
 *                         12..23  value 4         value 5        value 6        value 7
 *                         24..31  value 8, low    value 9, low   value 10, low  value 11, low
 *     bytes 16..31   bits  0..3   value 8, high   value 9, high  value 10, high value 11, high
 *                          4..15  value 12        value 13       value 14       value 15
 *     ...                                                                 16 b bytes in all
 *
 * A block of n < 128 is packed horizontally, see gpuir__packed_value, in ceil(n b / 8) bytes. If
 * the block has exceptions, there follow
 *
 *     marks          ceil(n / 8) bytes     bit i (bit i % 8 of byte i / 8): value i is an exception
 *     h              1 byte                width of the high bits, 1 to 32 - b
 *     high bits      ceil(x h / 8) bytes   value >> b of the x exceptions, packed horizontally
 *
 *     values   5   2   300   1   7         b = 3, h = 6
 *     low      5   2     4   1   7
 *     marks    0   0     1   0   0         300 = 37 << 3 | 4: the one exception's high bits are 37
 *
 * The block's width byte is b in bits 0 to 5, 0 in bit 6, and in bit 7 whether it has exceptions.
 * The encoder takes the b of the fewest bytes. A list of 128 or more is its blocks, each padded
 * with zeros to 4 bytes, the unit of offset[]; width[] has the width bytes. A shorter list is its
 * width byte and its block, without padding. DocIDs are packed as gaps, frequencies as they are.
 * Of a block whose bytes are not all there, or that breaks these rules, all values are 0; if only
 * its exceptions do, it has none.
 *
 * A lane takes gpuir__bp128_value of a full block, gpuir__packed_value of another, of what
 * gpuir__bp128_block (or _low) and gpuir__bp128_open find, and adds gpuir__bp128_high_of;
 * gpuir__bp128_get does all of it.
 * ----*/

#define GPUIR__BP128_EXCEPTIONS 0x80u

/* Returns the word of a vertical block in which value i begins, at bit i / 4 * w % 32; it goes on 4 words behind. */
GPUIR_HD unsigned gpuir__bp128_word(unsigned w, unsigned i) { return i / 4 * w / 32 * 4 + i % 4; }

/* Returns the low bits of value i of a vertical block. Reads up to 16 bytes behind them, or the first 32 at w = 0. */
GPUIR_HD uint32_t gpuir__bp128_value(const uint8_t *block, unsigned w, unsigned i) {
  unsigned bit = i / 4 * w;
  const uint8_t *p = block + 4 * gpuir__bp128_word(w, i);
  uint64_t x = (uint64_t)gpuir__load32(p + 16) << 32 | gpuir__load32(p);
  return (uint32_t)(x >> bit % 32) & gpuir__low_bits(w);
}

/* Returns where the low bits of the block of `count` values at bytes[at] begin; *low_bits:
 * their width, 0 if not all of them lie within the len bytes; *left: the bytes of the stream behind them, 0 if the
 * block has no exceptions. */
GPUIR_HD const uint8_t *gpuir__bp128_low(const uint8_t *bytes, uint64_t len, uint64_t at, unsigned width,
    uint32_t count, unsigned *low_bits, uint64_t *left) {
  const unsigned bits = width & ~GPUIR__BP128_EXCEPTIONS, size = (count * bits + 7) / 8;
  *low_bits = 0;
  *left = 0;
  if (bits > 32 || at > len || size > len - at) return bytes;
  *low_bits = bits;
  if (width & GPUIR__BP128_EXCEPTIONS) *left = len - at - size;
  return bytes + at;
}

/* A block with exceptions. */
typedef struct gpuir__bp128_view {
  const uint8_t *low, *high; /* where the low bits of all values, and the high bits of exceptions, begin */
  uint64_t marks[2]; /* a bit a value: it is an exception; 0 behind the last value */
  unsigned low_bits, high_bits; /* widths of low and high bits */
} gpuir__bp128_view;

/* Returns the number of exceptions before value 128. */
GPUIR_HD unsigned gpuir__bp128_exceptions(const gpuir__bp128_view *v) {
  return gpuir__popcount64(v->marks[0]) + gpuir__popcount64(v->marks[1]);
}

/* Finds the exceptions of the block whose low bits gpuir__bp128_low has found. Returns 0 if it has none, or none
 * that can be read: what *v describes lies within the stream, whatever the bytes say. */
GPUIR_HD int gpuir__bp128_open(const uint8_t *low, unsigned low_bits, uint64_t left, uint32_t count,
    gpuir__bp128_view *v) {
  const unsigned marks = (count + 7) / 8;
  const uint8_t *p = low + (count * low_bits + 7) / 8;
  uint64_t m0, m1;
  unsigned high_bits;
  if (left <= marks) return 0;
  left -= marks + 1;
  high_bits = p[marks];
  if (high_bits == 0 || high_bits > 32 - low_bits) return 0;
  m0 = gpuir__load64(p);
  m1 = gpuir__load64(p + 8);
  if (count < GPUIR__BLOCK) {
    m1 = count > 64 ? m1 & gpuir__low_bits64(count - 64) : 0;
    m0 = count < 64 ? m0 & gpuir__low_bits64(count) : m0;
  }
  v->low = low;
  v->high = p + marks + 1;
  v->marks[0] = m0;
  v->marks[1] = m1;
  v->low_bits = low_bits;
  v->high_bits = high_bits;
  /* the high bits of 128 exceptions fit, except near the stream's end */
  return left >= 16 * high_bits || left >= (high_bits * gpuir__bp128_exceptions(v) + 7) / 8;
}

/* Returns the high bits of the exception with rank `rank`, in their place above the low bits. Reads 8 bytes from their
 * first byte, even behind the last exception. */
GPUIR_HD uint32_t gpuir__bp128_high(const gpuir__bp128_view *v, unsigned rank) {
  return gpuir__packed_value(v->high, v->high_bits, rank) << v->low_bits;
}

/* Returns the high bits of value i in their place, 0 if it is no exception. There are no branches, because marks cannot
 * be predicted. */
GPUIR_HD uint32_t gpuir__bp128_high_of(const gpuir__bp128_view *v, unsigned i) {
  const uint64_t bit = (uint64_t)1 << i % 64, below = bit - 1;
  const uint64_t in0 = v->marks[0] & (i < 64 ? below : UINT64_MAX), in1 = v->marks[1] & (i < 64 ? 0 : below);
  const uint32_t marked = ((i < 64 ? v->marks[0] : v->marks[1]) & bit) != 0;
  return gpuir__bp128_high(v, gpuir__popcount64(in0) + gpuir__popcount64(in1)) & (0 - marked);
}

/* Returns value i of a block; low, low_bits and left are as gpuir__bp128_low gives them. */
GPUIR_HD uint32_t gpuir__bp128_get(const uint8_t *low, unsigned low_bits, uint64_t left, uint32_t count, unsigned i) {
  uint32_t x = count == GPUIR__BLOCK ? gpuir__bp128_value(low, low_bits, i) : gpuir__packed_value(low, low_bits, i);
  gpuir__bp128_view v;
  if (left && gpuir__bp128_open(low, low_bits, left, count, &v)) x |= gpuir__bp128_high_of(&v, i);
  return x;
}

/* Finds the low bits of a stream's block, as gpuir__bp128_low. */
GPUIR_HD const uint8_t *gpuir__bp128_block(const gpuir__stream *s, uint32_t block, uint32_t count, unsigned *low_bits,
    uint64_t *left) {
  if (s->offset)
    return gpuir__bp128_low(s->bytes, s->len, (uint64_t)s->offset[block] * 4, s->width[block], count, low_bits, left);
  return gpuir__bp128_low(s->bytes, s->len, 1, s->len ? s->bytes[0] : 0, count, low_bits, left);
}

/* ---- scalar
 *
 * A function whose name ends in _avx2 or _avx512 runs at that SIMD level only. Parameters low_bits and high_bits are
 * the b and h of the picture. */

/* Unpacks the low bits of count <= 128 values, low_bits of each. */
GPUIR__INLINE void gpuir__bp128_low_scalar(const uint8_t *p, unsigned low_bits, uint32_t count, int vertical,
    uint32_t *out) {
  uint32_t i;
  if (low_bits == 0) {
    memset(out, 0, count * sizeof *out);
  } else if (vertical) {
    for (i = 0; i < GPUIR__BLOCK; i += 4) { /* written out, so that a row's word and shift are computed once */
      out[i] = gpuir__bp128_value(p, low_bits, i);
      out[i + 1] = gpuir__bp128_value(p, low_bits, i + 1);
      out[i + 2] = gpuir__bp128_value(p, low_bits, i + 2);
      out[i + 3] = gpuir__bp128_value(p, low_bits, i + 3);
    }
  } else {
    for (i = 0; i < count; i++) out[i] = gpuir__packed_value(p, low_bits, i);
  }
}

/* Adds the high bits of all exceptions to out[]. */
GPUIR__INLINE void gpuir__bp128_patch_scalar(const gpuir__bp128_view *v, uint32_t *out) {
  unsigned rank = 0, half;
  for (half = 0; half < 2; half++) {
    uint64_t marks = v->marks[half];
    for (; marks; marks &= marks - 1) out[64 * half + gpuir__ctz64(marks)] |= gpuir__bp128_high(v, rank++);
  }
}

/* Decodes a block of bp128. */
GPUIR__NOINLINE void gpuir__bp128_scalar(const gpuir__stream *s, uint32_t block, int docids, uint32_t prev,
    uint32_t *out) {
  const uint32_t count = gpuir__block_count(s->n, block);
  uint64_t left;
  unsigned low_bits;
  const uint8_t *p = gpuir__bp128_block(s, block, count, &low_bits, &left);
  gpuir__bp128_view v;
  gpuir__bp128_low_scalar(p, low_bits, count, count == GPUIR__BLOCK, out);
  if (left && gpuir__bp128_open(p, low_bits, left, count, &v)) gpuir__bp128_patch_scalar(&v, out);
  if (docids) gpuir__sum_gaps_scalar(out, count, prev, s->limit);
}

GPUIR__DECODES(gpuir__bp128_docids_scalar) { gpuir__bp128_scalar(s, block, 1, prev, out); }
GPUIR__DECODES(gpuir__bp128_freqs_scalar) { gpuir__bp128_scalar(s, block, 0, prev, out); }

GPUIR__INLINE uint32_t gpuir__bp128_get_any(const gpuir__stream *s, uint32_t i) {
  const uint32_t block = i / GPUIR__BLOCK, count = gpuir__block_count(s->n, block);
  uint64_t left;
  unsigned low_bits;
  const uint8_t *p = gpuir__bp128_block(s, block, count, &low_bits, &left);
  return gpuir__bp128_get(p, low_bits, left, count, i % GPUIR__BLOCK);
}

static uint32_t gpuir__bp128_get_scalar(const gpuir__stream *s, uint32_t i) { return gpuir__bp128_get_any(s, i); }

/* Leaves the search to decoding: only vectors find a docID faster than that. */
static uint32_t gpuir__bp128_find_scalar(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t x) {
  (void)s;
  (void)block;
  (void)prev;
  (void)x;
  return GPUIR__UNTOLD;
}

#if GPUIR__X86
/* ---- tables for AVX2; the unit test computes them again by loops ----
 *
 * gpuir__bp128_expand puts high bits, which stand side by side in 16-bit words, where their values are. Row m, a byte
 * of marks, is a shuffle of 8 words. If value k is marked, word k comes from word r, where r is the number of marks
 * below k; otherwise it becomes 0. An entry is the two bytes of the word that is taken, 2 r and 2 r + 1; 0x80 and 0x81
 * give 0:
 *
 *     m = 0x16: values 1, 2 and 4     value    0     1     2     3     4     5     6     7
 *                                     r        -     0     1     -     2     -     -     -
 *                                     entry 8180  0100  0302  8180  0504  8180  8180  8180
 */
#define GPUIR__ENTRY(m, k) \
  (uint16_t)((m) >> (k)&1 ? __builtin_popcount((m) & ((1u << (k)) - 1)) * 0x202 + 0x100 : 0x8180)
#define GPUIR__EXPAND(m) \
  { \
    GPUIR__ENTRY(m, 0), GPUIR__ENTRY(m, 1), GPUIR__ENTRY(m, 2), GPUIR__ENTRY(m, 3), GPUIR__ENTRY(m, 4), \
        GPUIR__ENTRY(m, 5), GPUIR__ENTRY(m, 6), GPUIR__ENTRY(m, 7), \
  }
static const uint16_t gpuir__bp128_expand[256][8] = {GPUIR__256(GPUIR__EXPAND)};

/* A value of w <= 8 bits becomes a 16-bit word in three steps: a shuffle fetches the byte in which it begins and the
 * next one (GPUIR__BYTES), a product shifts it up to the word's top (GPUIR__UP: a power of two), one shift for all
 * words, by 16 - w, brings it down:
 *
 *     w = 3, value 2 of horizontal ones: bits 6 to 8   two bytes         * 2^7             >> 13
 *                                                      .......cba......  cba.............  cba
 */
#define GPUIR__BYTES(bit) (bit) / 8, (bit) / 8 + 1
#define GPUIR__UP(w, bit) (0x10000 >> ((w) + (bit) % 8) & 0xffff)

/* Of 16 horizontal values of w bits; the next 8 begin at a byte again, so that up[] serves both halves. */
typedef struct gpuir__bp128_fields {
  uint8_t at[32]; /* [value] two bytes each */
  uint16_t up[8]; /* [value] */
} gpuir__bp128_fields;
#define GPUIR__BYTES4(w, i) \
  GPUIR__BYTES((w) * (i)), GPUIR__BYTES((w) * ((i) + 1)), GPUIR__BYTES((w) * ((i) + 2)), GPUIR__BYTES((w) * ((i) + 3))
#define GPUIR__UP4(w, i) \
  GPUIR__UP(w, (w) * (i)), GPUIR__UP(w, (w) * ((i) + 1)), GPUIR__UP(w, (w) * ((i) + 2)), GPUIR__UP(w, (w) * ((i) + 3))
#define GPUIR__FIELDS(w) \
  { \
    {GPUIR__BYTES4(w, 0), GPUIR__BYTES4(w, 4), GPUIR__BYTES4(w, 8), GPUIR__BYTES4(w, 12)}, { \
      GPUIR__UP4(w, 0), GPUIR__UP4(w, 4) \
    } \
  }
static const gpuir__bp128_fields gpuir__bp128_horizontal[9] = {GPUIR__FIELDS(0), GPUIR__FIELDS(1), GPUIR__FIELDS(2),
    GPUIR__FIELDS(3), GPUIR__FIELDS(4), GPUIR__FIELDS(5), GPUIR__FIELDS(6), GPUIR__FIELDS(7), GPUIR__FIELDS(8)};

/* Vertical values are taken in groups of neighbouring rows: of 4 rows where w <= 8, of 2 rows where w is 9 to 15. The
 * group that begins with row r begins in each lane at bit w r, that is, at bit w r % 32 (GPUIR__SHIFT) of the lane's
 * word in the 16 bytes from byte w r / 32 * 16 (GPUIR__FIRST). Shifting these words down by `down` and the lanes'
 * next words up by 32 less that puts the whole group into the low bits of four words:
 *
 *     w = 3    rows     0..3   4..7   8..11   12..15   16..19   20..23   24..27   28..31
 *              byte        0      0       0       16       16       16       32       32
 *              down        0     12      24        4       16       28        8       20
 *
 * A vector has the group from row r0 on in its lower half and the one from row r1 on in its upper half. */
#define GPUIR__SAME4(x) x, x, x, x
#define GPUIR__FIRST(w, r) ((w) * (r) / 32 * 16)
#define GPUIR__SHIFT(w, r) ((w) * (r) % 32)
#define GPUIR__DOWN(w, r0, r1) \
  { GPUIR__SAME4(GPUIR__SHIFT(w, r0)), GPUIR__SAME4(GPUIR__SHIFT(w, r1)) }

/* Groups of 4 rows, w <= 8. Within the four words, at[0] and up[0] are of rows 0 and 1 of all lanes, at[1] and up[1] of
 * rows 2 and 3. */
typedef struct gpuir__bp128_rows {
  uint32_t down[4][8]; /* [vector of 32 values][word] bits */
  uint8_t at[2][16]; /* [two rows][value] two bytes each */
  uint16_t up[2][8]; /* [two rows][value] */
  uint8_t byte[8]; /* [group] */
} gpuir__bp128_rows;
#define GPUIR__LANES(bit) \
  GPUIR__BYTES(bit), GPUIR__BYTES((bit) + 32), GPUIR__BYTES((bit) + 64), GPUIR__BYTES((bit) + 96)
#define GPUIR__ROWS(w) \
  { \
    {GPUIR__DOWN(w, 0, 4), GPUIR__DOWN(w, 8, 12), GPUIR__DOWN(w, 16, 20), GPUIR__DOWN(w, 24, 28)}, \
        {{GPUIR__LANES(0), GPUIR__LANES(w)}, {GPUIR__LANES(2 * (w)), GPUIR__LANES(3 * (w))}}, \
        {{GPUIR__SAME4(GPUIR__UP(w, 0)), GPUIR__SAME4(GPUIR__UP(w, w))}, \
            {GPUIR__SAME4(GPUIR__UP(w, 2 * (w))), GPUIR__SAME4(GPUIR__UP(w, 3 * (w)))}}, \
    { \
      GPUIR__FIRST(w, 0), GPUIR__FIRST(w, 4), GPUIR__FIRST(w, 8), GPUIR__FIRST(w, 12), GPUIR__FIRST(w, 16), \
          GPUIR__FIRST(w, 20), GPUIR__FIRST(w, 24), GPUIR__FIRST(w, 28) \
    } \
  }
static const gpuir__bp128_rows gpuir__bp128_vertical[9] = {GPUIR__ROWS(0), GPUIR__ROWS(1), GPUIR__ROWS(2),
    GPUIR__ROWS(3), GPUIR__ROWS(4), GPUIR__ROWS(5), GPUIR__ROWS(6), GPUIR__ROWS(7), GPUIR__ROWS(8)};

/* Groups of 2 rows, w = 9 to 15: 8 values a group, 16 a vector, whose upper half is 4 rows on. */
typedef struct gpuir__bp128_rows15 {
  uint8_t down[8][8]; /* [vector of 16 values][word] bits */
  uint8_t byte[16]; /* [group] */
} gpuir__bp128_rows15;
#define GPUIR__FIRST4(w, r) \
  GPUIR__FIRST(w, r), GPUIR__FIRST(w, (r) + 2), GPUIR__FIRST(w, (r) + 4), GPUIR__FIRST(w, (r) + 6)
#define GPUIR__ROWS15(w) \
  { \
    {GPUIR__DOWN(w, 0, 4), GPUIR__DOWN(w, 2, 6), GPUIR__DOWN(w, 8, 12), GPUIR__DOWN(w, 10, 14), \
        GPUIR__DOWN(w, 16, 20), GPUIR__DOWN(w, 18, 22), GPUIR__DOWN(w, 24, 28), GPUIR__DOWN(w, 26, 30)}, \
    { \
      GPUIR__FIRST4(w, 0), GPUIR__FIRST4(w, 8), GPUIR__FIRST4(w, 16), GPUIR__FIRST4(w, 24) \
    } \
  }
static const gpuir__bp128_rows15 gpuir__bp128_vertical15[7] = {GPUIR__ROWS15(9), GPUIR__ROWS15(10), GPUIR__ROWS15(11),
    GPUIR__ROWS15(12), GPUIR__ROWS15(13), GPUIR__ROWS15(14), GPUIR__ROWS15(15)};

#undef GPUIR__ENTRY
#undef GPUIR__EXPAND
#undef GPUIR__BYTES
#undef GPUIR__UP
#undef GPUIR__BYTES4
#undef GPUIR__UP4
#undef GPUIR__FIELDS
#undef GPUIR__SAME4
#undef GPUIR__FIRST
#undef GPUIR__SHIFT
#undef GPUIR__DOWN
#undef GPUIR__LANES
#undef GPUIR__ROWS
#undef GPUIR__FIRST4
#undef GPUIR__ROWS15

/* ---- high bits, with AVX2 */

/* Takes 16 values of at most 8 bits out of the bytes of x, see gpuir__bp128_fields. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__bp128_fields_avx2(__m256i x, __m256i at, __m256i up, __m128i down) {
  return _mm256_srl_epi16(_mm256_mullo_epi16(_mm256_shuffle_epi8(x, at), up), down);
}

/* Returns where the word with rank `rank` stands in what gpuir__bp128_highs16_avx2 writes; the 7 words behind it follow
 * there. Each store of 16 words is a group of 8 and the group behind it, so every group is written twice. So any 8
 * consecutive words lie within one store. A load that needs two stores would have to wait for both.
 *
 *     words      0..7  8..15 | 8..15  16..23 | 16..23  24..31 | ...          word r stands at r + r / 8 * 8
 */
GPUIR__INLINE unsigned gpuir__bp128_high_at(unsigned rank) { return rank + (rank & ~7u); }

/* gpuir__bp128_highs16_avx2 where high_bits > 8: rare. */
GPUIR__AVX2 GPUIR__NOINLINE void gpuir__bp128_highs16_wide_avx2(const uint8_t *p, unsigned n, unsigned high_bits,
    unsigned low_bits, uint16_t *high) {
  const __m128i up = _mm_cvtsi32_si128((int)low_bits);
  const gpuir__packed8 f = gpuir__avx2_packed_of(high_bits, 0);
  __m256i x = _mm256_sll_epi32(gpuir__avx2_packed(p, &f), up), y;
  unsigned i;
  for (i = 0; i < n; i += 8, x = y) {
    p += high_bits;
    y = _mm256_sll_epi32(gpuir__avx2_packed(p, &f), up);
    gpuir__avx2_store(high + 2 * i, _mm256_permute4x64_epi64(_mm256_packus_epi32(x, y), 0xd8));
  }
}

/* Unpacks the high bits of n exceptions, high_bits of each, to words, and shifts them left by low_bits. The results
 * must fit 16 bits. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__bp128_highs16_avx2(const uint8_t *p, unsigned n, unsigned high_bits,
    unsigned low_bits, uint16_t *high) {
  const __m128i up = _mm_cvtsi32_si128((int)low_bits);
  unsigned i;
  if (high_bits <= 8) {
    const gpuir__bp128_fields *f = &gpuir__bp128_horizontal[high_bits];
    const __m256i at = gpuir__avx2_load(f->at), top = gpuir__avx2_twice(f->up);
    const __m128i down = _mm_cvtsi32_si128((int)(16 - high_bits));
    for (i = 0; i < n; i += 16, p += 2 * high_bits) {
      const __m256i x = gpuir__bp128_fields_avx2(gpuir__avx2_twice(p), at, top, down);
      const __m256i y = gpuir__bp128_fields_avx2(gpuir__avx2_twice(p + high_bits), at, top, down);
      gpuir__avx2_store(high + 2 * i, _mm256_sll_epi16(x, up));
      gpuir__avx2_store(high + 2 * i + 16, _mm256_sll_epi16(y, up));
    }
  } else {
    gpuir__bp128_highs16_wide_avx2(p, n, high_bits, low_bits, high);
  }
}

/* Unpacks the high bits of all exceptions, in their place above the low bits; those of at most 16 bits, which nearly
 * all are, as words of 16 bits that are not shifted yet. */
GPUIR__AVX2 GPUIR__NOINLINE void gpuir__bp128_highs_avx2(const gpuir__bp128_view *v, uint32_t *high) {
  const gpuir__packed8 f = gpuir__avx2_packed_of(v->high_bits, 0);
  const __m128i up = _mm_cvtsi32_si128((int)v->low_bits);
  const unsigned n = gpuir__bp128_exceptions(v);
  const uint8_t *p = v->high;
  unsigned i;
  if (v->high_bits <= 16) {
    gpuir__bp128_highs16_avx2(v->high, n, v->high_bits, 0, (uint16_t *)(void *)high);
    return;
  }
  for (i = 0; i < n; i += 8, p += v->high_bits)
    gpuir__avx2_store(high + i, _mm256_sll_epi32(gpuir__avx2_packed(p, &f), up));
}

/* Adds to the 8 values from i on, a multiple of 8, the high bits of the exceptions among them, which
 * gpuir__bp128_highs_avx2 has unpacked. *rank is the number of exceptions before i, and then before i + 8. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__bp128_add_highs_avx2(__m256i x, const gpuir__bp128_view *v, unsigned i,
    const uint32_t *high, unsigned *rank) {
  const unsigned marks = ((const uint8_t *)v->marks)[i / 8];
  const __m128i places = gpuir__sse_load(gpuir__bp128_expand[marks]);
  __m256i y, r;
  if (v->high_bits <= 16) {
    const __m128i *words =
        (const __m128i *)(const void *)((const uint16_t *)(const void *)high + gpuir__bp128_high_at(*rank));
    y = _mm256_cvtepu16_epi32(_mm_shuffle_epi8(_mm_loadu_si128(words), places));
    y = _mm256_sll_epi32(y, _mm_cvtsi32_si128((int)v->low_bits));
  } else {
    r = _mm256_srai_epi32(_mm256_cvtepi16_epi32(places), 9); /* negative, if the value is not marked */
    y = _mm256_permutevar8x32_epi32(gpuir__avx2_load(high + *rank), r);
    y = _mm256_andnot_si256(_mm256_srai_epi32(r, 31), y);
  }
  *rank += gpuir__popcount64(marks);
  return _mm256_or_si256(x, y);
}

/* 32 values as words of 16 bits: 0 to 7 in the lower half of a, 8 to 15 in the lower half of b, 16 to 23 in the
 * upper half of a, 24 to 31 in the upper half of b. */
typedef struct gpuir__bp128_words32 {
  __m256i a, b;
} gpuir__bp128_words32;

/* Returns the high bits of 32 values, 0 where a value is no exception, of the words that gpuir__bp128_highs16_avx2 has
 * written; marks: 4 bytes of the bitmap. *rank is the number of exceptions before, and then behind, the 32. */
GPUIR__AVX2 GPUIR__INLINE gpuir__bp128_words32 gpuir__bp128_high32_avx2(const uint8_t *marks, const uint16_t *high,
    unsigned *rank) {
  const unsigned m = gpuir__load32(marks), m0 = m & 255, m1 = m >> 8 & 255, m2 = m >> 16 & 255, m3 = m >> 24;
  const unsigned r0 = *rank, r1 = r0 + gpuir__popcount64(m0), r2 = r0 + gpuir__popcount64(m & 0xffff),
                 r3 = r0 + gpuir__popcount64(m & 0xffffff);
  gpuir__bp128_words32 x;
  *rank = r0 + gpuir__popcount64(m);
  x.a = _mm256_shuffle_epi8(gpuir__avx2_two(high + gpuir__bp128_high_at(r0), high + gpuir__bp128_high_at(r2)),
      gpuir__avx2_two(gpuir__bp128_expand[m0], gpuir__bp128_expand[m2]));
  x.b = _mm256_shuffle_epi8(gpuir__avx2_two(high + gpuir__bp128_high_at(r1), high + gpuir__bp128_high_at(r3)),
      gpuir__avx2_two(gpuir__bp128_expand[m1], gpuir__bp128_expand[m3]));
  return x;
}

/* ---- narrow blocks: values of less than 2^15, 32 of them a step, with AVX2 */

/* The forms of low bits: at most 8 bits vertically, at most 8 bits horizontally, 9 to 15 bits vertically. */
enum { GPUIR__ROWS8, GPUIR__ROW8, GPUIR__ROWS15 };

/* What unpacking the low bits of a block needs in registers: shuffles and factors of gpuir__bp128_fields_avx2 for its
 * two results, and the shift down. For GPUIR__ROWS15 at0 is the last shuffle, and up0 the mask of a value. */
typedef struct gpuir__bp128_low32 {
  __m256i at0, at1, up0, up1;
  __m128i down;
} gpuir__bp128_low32;

GPUIR__AVX2 GPUIR__INLINE gpuir__bp128_low32 gpuir__bp128_low32_of_avx2(unsigned low_bits, int form) {
  gpuir__bp128_low32 f;
  f.down = _mm_cvtsi32_si128((int)(16 - low_bits));
  if (form == GPUIR__ROWS8) {
    f.at0 = gpuir__avx2_twice(gpuir__bp128_vertical[low_bits].at[0]);
    f.at1 = gpuir__avx2_twice(gpuir__bp128_vertical[low_bits].at[1]);
    f.up0 = gpuir__avx2_twice(gpuir__bp128_vertical[low_bits].up[0]);
    f.up1 = gpuir__avx2_twice(gpuir__bp128_vertical[low_bits].up[1]);
  } else if (form == GPUIR__ROW8) {
    f.at0 = f.at1 = gpuir__avx2_twice(gpuir__bp128_horizontal[low_bits].at);
    f.up0 = f.up1 = gpuir__avx2_twice(gpuir__bp128_horizontal[low_bits].up);
  } else {
    f.at0 = f.at1 = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    f.up0 = f.up1 = _mm256_set1_epi16((short)gpuir__low_bits(low_bits));
  }
  return f;
}

/* Returns the words of two groups of rows, which begin at r0 and r1, shifted down. A shift by 32 gives 0. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__bp128_groups_avx2(const uint8_t *r0, const uint8_t *r1, __m256i down) {
  const __m256i up = _mm256_sub_epi32(_mm256_set1_epi32(32), down);
  return _mm256_or_si256(_mm256_srlv_epi32(gpuir__avx2_two(r0, r1), down),
      _mm256_sllv_epi32(gpuir__avx2_two(r0 + 16, r1 + 16), up));
}

/* Returns the low bits, 9 to 15 of them, of the 16 values of vector k of a block's eight. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__bp128_low15_avx2(const uint8_t *p, unsigned low_bits, unsigned k,
    const gpuir__bp128_low32 *f) {
  const gpuir__bp128_rows15 *r = &gpuir__bp128_vertical15[low_bits - 9];
  const unsigned group = k / 2 * 4 + k % 2;
  __m256i x = gpuir__bp128_groups_avx2(p + r->byte[group], p + r->byte[group + 2],
      _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)r->down[k])));
  x = _mm256_blend_epi16(x, _mm256_sll_epi32(x, f->down), 0xaa);
  return _mm256_shuffle_epi8(_mm256_and_si256(x, f->up0), f->at0);
}

/* Returns the low bits of the 32 values from i on. */
GPUIR__AVX2 GPUIR__INLINE gpuir__bp128_words32 gpuir__bp128_low32_avx2(const uint8_t *p, unsigned low_bits, int form,
    unsigned i, const gpuir__bp128_low32 *f) {
  gpuir__bp128_words32 x;
  if (form == GPUIR__ROWS8) {
    const gpuir__bp128_rows *r = &gpuir__bp128_vertical[low_bits];
    const __m256i rows =
        gpuir__bp128_groups_avx2(p + r->byte[i / 16], p + r->byte[i / 16 + 1], gpuir__avx2_load(r->down[i / 32]));
    x.a = gpuir__bp128_fields_avx2(rows, f->at0, f->up0, f->down);
    x.b = gpuir__bp128_fields_avx2(rows, f->at1, f->up1, f->down);
  } else if (form == GPUIR__ROW8) {
    p += i / 8 * low_bits;
    x.a = gpuir__bp128_fields_avx2(gpuir__avx2_two(p, p + 2 * low_bits), f->at0, f->up0, f->down);
    x.b = gpuir__bp128_fields_avx2(gpuir__avx2_two(p + low_bits, p + 3 * low_bits), f->at0, f->up0, f->down);
  } else {
    x.a = gpuir__bp128_low15_avx2(p, low_bits, i / 16, f);
    x.b = gpuir__bp128_low15_avx2(p, low_bits, i / 16 + 1, f);
  }
  return x;
}

/* A narrow block under decoding. */
typedef struct gpuir__bp128_narrow {
  gpuir__bp128_low32 low;
  const uint8_t *p; /* its low bits, low_bits of each value */
  const uint8_t *marks; /* a bit a value: it is an exception */
  const uint16_t *high; /* the exceptions' high bits, as gpuir__bp128_highs16_avx2 writes them */
  unsigned low_bits;
  unsigned rank; /* exceptions before the next step */
} gpuir__bp128_narrow;

/* Begins to decode a narrow block whose low bits begin at p. If `exceptions`, a constant, `marks` is the bitmap, 16
 * readable bytes, and `packed` has the high bits, high_bits of each, which are unpacked into high[0..2 *
 * GPUIR__BLOCK_ROOM). */
GPUIR__AVX2 GPUIR__INLINE gpuir__bp128_narrow gpuir__bp128_begin_narrow_avx2(const uint8_t *p, unsigned low_bits,
    int form, int exceptions, const uint8_t *marks, const uint8_t *packed, unsigned high_bits, uint16_t *high) {
  gpuir__bp128_narrow n;
  n.p = p;
  n.low_bits = low_bits;
  n.low = gpuir__bp128_low32_of_avx2(low_bits, form);
  n.marks = marks;
  n.high = high;
  n.rank = 0;
  if (exceptions)
    gpuir__bp128_highs16_avx2(packed,
        gpuir__popcount64(gpuir__load64(marks)) + gpuir__popcount64(gpuir__load64(marks + 8)), high_bits, low_bits,
        high);
  return n;
}

/* Returns the 32 values from i on. */
GPUIR__AVX2 GPUIR__INLINE gpuir__bp128_words32 gpuir__bp128_words32_avx2(gpuir__bp128_narrow *n, int form,
    int exceptions, unsigned i) {
  gpuir__bp128_words32 x = gpuir__bp128_low32_avx2(n->p, n->low_bits, form, i, &n->low);
  if (exceptions) {
    const gpuir__bp128_words32 y = gpuir__bp128_high32_avx2(n->marks + i / 8, n->high, &n->rank);
    x.a = _mm256_or_si256(x.a, y.a);
    x.b = _mm256_or_si256(x.b, y.b);
  }
  return x;
}

/* 32 values as 32-bit numbers, in order. */
typedef struct gpuir__bp128_numbers32 {
  __m256i x0, x1, x2, x3;
} gpuir__bp128_numbers32;

GPUIR__AVX2 GPUIR__INLINE gpuir__bp128_numbers32 gpuir__bp128_widen_avx2(gpuir__bp128_words32 x) {
  gpuir__bp128_numbers32 y;
  y.x0 = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(x.a));
  y.x1 = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(x.b));
  y.x2 = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(x.a, 1));
  y.x3 = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(x.b, 1));
  return y;
}

GPUIR__AVX2 GPUIR__INLINE void gpuir__bp128_store32_avx2(uint32_t *out, const gpuir__bp128_numbers32 *y) {
  gpuir__avx2_store(out, y->x0);
  gpuir__avx2_store(out + 8, y->x1);
  gpuir__avx2_store(out + 16, y->x2);
  gpuir__avx2_store(out + 24, y->x3);
}

/* Sums up, in each half, 8 gaps of less than 2^12 and a one for each: the sums fit 16 bits. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__bp128_sums12_avx2(__m256i x) {
  const __m256i ones = _mm256_setr_epi16(1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8);
  x = _mm256_add_epi16(x, _mm256_slli_si256(x, 2));
  x = _mm256_add_epi16(x, _mm256_slli_si256(x, 4));
  return _mm256_add_epi16(_mm256_add_epi16(x, ones), _mm256_slli_si256(x, 8));
}

/* Writes the docIDs of 32 gaps of less than 2^12 behind docID *base, which becomes the last of them. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__bp128_docids12_avx2(gpuir__bp128_words32 x, __m256i *base, uint32_t *out) {
  const __m256i last = _mm256_set1_epi32(7);
  gpuir__bp128_numbers32 y;
  x.a = gpuir__bp128_sums12_avx2(x.a);
  x.b = gpuir__bp128_sums12_avx2(x.b);
  y = gpuir__bp128_widen_avx2(x);
  y.x1 = _mm256_add_epi32(y.x1, _mm256_permutevar8x32_epi32(y.x0, last));
  y.x3 = _mm256_add_epi32(y.x3, _mm256_permutevar8x32_epi32(y.x2, last));
  y.x0 = _mm256_add_epi32(y.x0, *base);
  y.x1 = _mm256_add_epi32(y.x1, *base);
  *base = _mm256_permutevar8x32_epi32(y.x1, last);
  y.x2 = _mm256_add_epi32(y.x2, *base);
  y.x3 = _mm256_add_epi32(y.x3, *base);
  *base = _mm256_permutevar8x32_epi32(y.x3, last);
  gpuir__bp128_store32_avx2(out, &y);
}

/* Sums up, in each half, 8 gaps of less than 2^15 and a one for each: returns the sums up to values 1, 3, 5 and 7.
 * *odd: -1 less the gap of each of these, which leads from its sum to that of the value before. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__bp128_sums15_avx2(__m256i gaps, __m256i *odd) {
  const __m256i minus1 = _mm256_set1_epi32(-1), x = _mm256_xor_si256(gaps, minus1); /* -1 - gap */
  __m256i sums = _mm256_madd_epi16(x, minus1);
  sums = _mm256_add_epi32(sums, _mm256_slli_si256(sums, 4));
  sums = _mm256_add_epi32(sums, _mm256_slli_si256(sums, 8));
  *odd = _mm256_srai_epi32(x, 16);
  return sums;
}

/* Writes out[0..7] and out[16..23] from docIDs 1, 3, 5 and 7 of each half and what leads to the ones before them. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__bp128_store15_avx2(__m256i docs, __m256i odd, uint32_t *out) {
  const __m256i even = _mm256_add_epi32(docs, odd);
  const __m256i lo = _mm256_unpacklo_epi32(even, docs), hi = _mm256_unpackhi_epi32(even, docs);
  gpuir__sse_store(out, _mm256_castsi256_si128(lo));
  gpuir__sse_store(out + 4, _mm256_castsi256_si128(hi));
  gpuir__sse_store(out + 16, _mm256_extracti128_si256(lo, 1));
  gpuir__sse_store(out + 20, _mm256_extracti128_si256(hi, 1));
}

/* Writes the docIDs of 32 gaps of less than 2^15 behind docID *base, which becomes the last of them. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__bp128_docids15_avx2(gpuir__bp128_words32 x, __m256i *base, uint32_t *out) {
  __m256i odd_a, odd_b, from;
  __m256i a = gpuir__bp128_sums15_avx2(x.a, &odd_a), b = gpuir__bp128_sums15_avx2(x.b, &odd_b);
  b = _mm256_add_epi32(b, _mm256_shuffle_epi32(a, 0xff));
  from = _mm256_shuffle_epi32(b, 0xff);
  from = _mm256_add_epi32(*base, _mm256_permute2x128_si256(from, from, 0x08)); /* lower half's sum to the upper */
  a = _mm256_add_epi32(a, from);
  b = _mm256_add_epi32(b, from);
  *base = _mm256_permutevar8x32_epi32(b, _mm256_set1_epi32(7));
  gpuir__bp128_store15_avx2(a, odd_a, out);
  gpuir__bp128_store15_avx2(b, odd_b, out + 8);
}

/* Clamps the docIDs of a narrow block to `limit`, `last` being the last of them. They rise, unless they wrap, at most
 * once: nothing is to be done if both ends are in order. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__bp128_clamp_avx2(uint32_t *out, uint32_t count, uint32_t prev, uint32_t last,
    uint32_t limit) {
  const __m256i most = _mm256_set1_epi32((int)limit);
  uint32_t i;
  if (prev + 1 <= last && last <= limit) return;
  for (i = 0; i < count; i += 8) gpuir__avx2_store(out + i, _mm256_min_epu32(gpuir__avx2_load(out + i), most));
}

/* Returns whether a block is narrow: its values are less than 2^15, and its low bits are of one of the forms above.
 * Most blocks are. (Frequencies of more than 8 low bits are too rare for a form of their own.) */
GPUIR__INLINE int gpuir__bp128_is_narrow(unsigned low_bits, unsigned high_bits, int vertical, int docids) {
  return low_bits + high_bits <= 15 && (low_bits <= 8 || (vertical && docids));
}

/* What is made of the values: nothing, or docIDs from gaps of less than 2^12 or 2^15. */
enum { GPUIR__FREQS, GPUIR__DOCIDS12, GPUIR__DOCIDS15 };

/* Decodes the 32 values from i on; *base: the docID before them. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__bp128_narrow32_avx2(gpuir__bp128_narrow *n, int form, int exceptions, unsigned i,
    int docids, __m256i *base, uint32_t *out) {
  gpuir__bp128_words32 x = gpuir__bp128_words32_avx2(n, form, exceptions, i);
  if (docids == GPUIR__DOCIDS12) {
    gpuir__bp128_docids12_avx2(x, base, out + i);
  } else if (docids) {
    gpuir__bp128_docids15_avx2(x, base, out + i);
  } else {
    const gpuir__bp128_numbers32 y = gpuir__bp128_widen_avx2(x);
    gpuir__bp128_store32_avx2(out + i, &y);
  }
}

/* Decodes a narrow block of 128. The marks, a byte with high_bits and the high bits follow the low bits; high_bits is 0
 * if there are no exceptions. form, exceptions and docids are constants wherever this is inlined. The four steps are
 * written out because a loop is slower; where they are longest and rare, in wide rows with exceptions, a loop saves
 * code. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__bp128_full_avx2(const uint8_t *p, unsigned low_bits, unsigned high_bits, int form,
    int exceptions, int docids, uint32_t prev, uint32_t limit, uint32_t *out) {
  __attribute__((aligned(32))) uint16_t high[2 * GPUIR__BLOCK_ROOM];
  gpuir__bp128_narrow n = gpuir__bp128_begin_narrow_avx2(p, low_bits, form, exceptions, p + 16 * low_bits,
      p + 16 * low_bits + 17, high_bits, high);
  __m256i base = _mm256_set1_epi32((int)prev);
  unsigned i;
  if (exceptions && form == GPUIR__ROWS15) {
    for (i = 0; i < GPUIR__BLOCK; i += 32) gpuir__bp128_narrow32_avx2(&n, form, exceptions, i, docids, &base, out);
  } else {
    gpuir__bp128_narrow32_avx2(&n, form, exceptions, 0, docids, &base, out);
    gpuir__bp128_narrow32_avx2(&n, form, exceptions, 32, docids, &base, out);
    gpuir__bp128_narrow32_avx2(&n, form, exceptions, 64, docids, &base, out);
    gpuir__bp128_narrow32_avx2(&n, form, exceptions, 96, docids, &base, out);
  }
  if (docids && (uint64_t)(prev + 1) + (GPUIR__BLOCK << (low_bits + high_bits)) > limit)
    gpuir__bp128_clamp_avx2(out, GPUIR__BLOCK, prev, out[GPUIR__BLOCK - 1], limit);
}

/* A function for each kind of block: the compilers run out of registers where they inline several. */
#define GPUIR__FULL(name, form, exceptions, docids) \
  GPUIR__AVX2 GPUIR__NOINLINE void name(const uint8_t *p, unsigned low_bits, unsigned high_bits, uint32_t prev, \
      uint32_t limit, uint32_t *out) { \
    gpuir__bp128_full_avx2(p, low_bits, high_bits, form, exceptions, docids, prev, limit, out); \
  }
GPUIR__FULL(gpuir__bp128_rows8_docids_avx2, GPUIR__ROWS8, 0, GPUIR__DOCIDS12)
GPUIR__FULL(gpuir__bp128_rows8_high12_avx2, GPUIR__ROWS8, 1, GPUIR__DOCIDS12)
GPUIR__FULL(gpuir__bp128_rows8_high15_avx2, GPUIR__ROWS8, 1, GPUIR__DOCIDS15)
GPUIR__FULL(gpuir__bp128_rows15_docids_avx2, GPUIR__ROWS15, 0, GPUIR__DOCIDS15)
GPUIR__FULL(gpuir__bp128_rows15_high15_avx2, GPUIR__ROWS15, 1, GPUIR__DOCIDS15)
GPUIR__FULL(gpuir__bp128_rows8_freqs_avx2, GPUIR__ROWS8, 0, GPUIR__FREQS)
GPUIR__FULL(gpuir__bp128_rows8_high_freqs_avx2, GPUIR__ROWS8, 1, GPUIR__FREQS)
#ifndef GPUIR_NO_LAB /* full blocks are horizontal in the literature's codecs alone */
GPUIR__FULL(gpuir__bp128_row8_high12_avx2, GPUIR__ROW8, 1, GPUIR__DOCIDS12)
GPUIR__FULL(gpuir__bp128_row8_high15_avx2, GPUIR__ROW8, 1, GPUIR__DOCIDS15)
GPUIR__FULL(gpuir__bp128_row8_high_freqs_avx2, GPUIR__ROW8, 1, GPUIR__FREQS)
#endif
#undef GPUIR__FULL

/* Decodes a narrow, horizontal block of any number of values. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__bp128_some_avx2(const uint8_t *p, unsigned low_bits, uint32_t count,
    const gpuir__bp128_view *v, int docids, uint32_t prev, uint32_t limit, uint32_t *out) {
  __attribute__((aligned(32))) uint16_t high[2 * GPUIR__BLOCK_ROOM];
  gpuir__bp128_narrow n = gpuir__bp128_begin_narrow_avx2(p, low_bits, GPUIR__ROW8, v != NULL,
      v ? (const uint8_t *)v->marks : NULL, v ? v->high : NULL, v ? v->high_bits : 0, high);
  __m256i base = _mm256_set1_epi32((int)prev);
  unsigned i;
  for (i = 0; i < count; i += 32) gpuir__bp128_narrow32_avx2(&n, GPUIR__ROW8, v != NULL, i, docids, &base, out);
  if (docids) gpuir__bp128_clamp_avx2(out, count, prev, out[count - 1], limit);
}

GPUIR__AVX2 GPUIR__NOINLINE void gpuir__bp128_some_docids_avx2(const uint8_t *p, unsigned low_bits, uint32_t count,
    const gpuir__bp128_view *v, uint32_t prev, uint32_t limit, uint32_t *out) {
  gpuir__bp128_some_avx2(p, low_bits, count, v, GPUIR__DOCIDS15, prev, limit, out);
}

GPUIR__AVX2 GPUIR__NOINLINE void gpuir__bp128_some_freqs_avx2(const uint8_t *p, unsigned low_bits, uint32_t count,
    const gpuir__bp128_view *v, uint32_t *out) {
  gpuir__bp128_some_avx2(p, low_bits, count, v, GPUIR__FREQS, 0, 0, out);
}

GPUIR__AVX2 GPUIR__INLINE void gpuir__bp128_narrow_docids_avx2(const uint8_t *p, unsigned low_bits, uint32_t count,
    int vertical, const gpuir__bp128_view *v, uint32_t prev, uint32_t limit, uint32_t *out) {
  if (vertical && low_bits > 8 && v) gpuir__bp128_rows15_high15_avx2(p, low_bits, v->high_bits, prev, limit, out);
  else if (vertical && low_bits > 8) gpuir__bp128_rows15_docids_avx2(p, low_bits, 0, prev, limit, out);
  else if (vertical && !v) gpuir__bp128_rows8_docids_avx2(p, low_bits, 0, prev, limit, out);
  else if (vertical && low_bits + v->high_bits <= 12)
    gpuir__bp128_rows8_high12_avx2(p, low_bits, v->high_bits, prev, limit, out);
  else if (vertical) gpuir__bp128_rows8_high15_avx2(p, low_bits, v->high_bits, prev, limit, out);
#ifndef GPUIR_NO_LAB
  else if (count == GPUIR__BLOCK && v && low_bits + v->high_bits <= 12)
    gpuir__bp128_row8_high12_avx2(p, low_bits, v->high_bits, prev, limit, out);
  else if (count == GPUIR__BLOCK && v) gpuir__bp128_row8_high15_avx2(p, low_bits, v->high_bits, prev, limit, out);
#endif
  else gpuir__bp128_some_docids_avx2(p, low_bits, count, v, prev, limit, out);
}

GPUIR__AVX2 GPUIR__INLINE void gpuir__bp128_narrow_freqs_avx2(const uint8_t *p, unsigned low_bits, uint32_t count,
    int vertical, const gpuir__bp128_view *v, uint32_t *out) {
  if (vertical && !v) gpuir__bp128_rows8_freqs_avx2(p, low_bits, 0, 0, 0, out);
  else if (vertical) gpuir__bp128_rows8_high_freqs_avx2(p, low_bits, v->high_bits, 0, 0, out);
#ifndef GPUIR_NO_LAB
  else if (count == GPUIR__BLOCK && v) gpuir__bp128_row8_high_freqs_avx2(p, low_bits, v->high_bits, 0, 0, out);
#endif
  else gpuir__bp128_some_freqs_avx2(p, low_bits, count, v, out);
}

/* ---- other blocks: 8 values a step with AVX2, 16 with AVX-512 */

/* Decodes a vertical block of at most 8 low bits with exceptions: the values of a narrow one's 32 a step, each widened
 * before its high bits are added. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__bp128_rows8_avx2(const uint8_t *p, unsigned low_bits, const gpuir__bp128_view *v,
    const uint32_t *highs, int docids, __m256i next, __m256i most, uint32_t *out) {
  const gpuir__bp128_low32 f = gpuir__bp128_low32_of_avx2(low_bits, GPUIR__ROWS8);
  unsigned i, rank = 0;
  for (i = 0; i < GPUIR__BLOCK; i += 32) {
    gpuir__bp128_numbers32 y = gpuir__bp128_widen_avx2(gpuir__bp128_low32_avx2(p, low_bits, GPUIR__ROWS8, i, &f));
    y.x0 = gpuir__bp128_add_highs_avx2(y.x0, v, i, highs, &rank);
    y.x1 = gpuir__bp128_add_highs_avx2(y.x1, v, i + 8, highs, &rank);
    y.x2 = gpuir__bp128_add_highs_avx2(y.x2, v, i + 16, highs, &rank);
    y.x3 = gpuir__bp128_add_highs_avx2(y.x3, v, i + 24, highs, &rank);
    if (docids) {
      y.x0 = gpuir__avx2_docids(y.x0, &next, most);
      y.x1 = gpuir__avx2_docids(y.x1, &next, most);
      y.x2 = gpuir__avx2_docids(y.x2, &next, most);
      y.x3 = gpuir__avx2_docids(y.x3, &next, most);
    }
    gpuir__bp128_store32_avx2(out + i, &y);
  }
}

/* Decodes any block, two rows at a time if it is vertical. Shifts by 32 give 0, as they should. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__bp128_wide_avx2(const uint8_t *p, unsigned low_bits, uint32_t count, int vertical,
    const gpuir__bp128_view *v, int docids, uint32_t prev, uint32_t limit, uint32_t *out) {
  const __m256i mask = _mm256_set1_epi32((int)gpuir__low_bits(low_bits)), width = _mm256_set1_epi32((int)low_bits);
  const __m256i c31 = _mm256_set1_epi32(31), c32 = _mm256_set1_epi32(32), most = _mm256_set1_epi32((int)limit);
  __m256i next = gpuir__avx2_first(prev), x, lo, hi, bit, shift;
  uint32_t highs[GPUIR__BLOCK_ROOM];
  unsigned i, rank = 0;
  if (v) gpuir__bp128_highs_avx2(v, highs);
  if (vertical && v && low_bits <= 8) {
    gpuir__bp128_rows8_avx2(p, low_bits, v, highs, docids, next, most, out);
  } else if (vertical) {
    const __m256i step = _mm256_add_epi32(width, width);
    unsigned b = 0;
    bit = _mm256_mullo_epi32(width, _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
    for (i = 0; i < GPUIR__BLOCK; i += 8, b += 2 * low_bits) {
      const uint8_t *r0 = p + b / 32 * 16, *r1 = p + (b + low_bits) / 32 * 16;
      lo = gpuir__avx2_two(r0, r1);
      hi = gpuir__avx2_two(r0 + 16, r1 + 16);
      shift = _mm256_and_si256(bit, c31);
      bit = _mm256_add_epi32(bit, step);
      x = _mm256_or_si256(_mm256_srlv_epi32(lo, shift), _mm256_sllv_epi32(hi, _mm256_sub_epi32(c32, shift)));
      x = _mm256_and_si256(x, mask);
      if (v) x = gpuir__bp128_add_highs_avx2(x, v, i, highs, &rank);
      if (docids) x = gpuir__avx2_docids(x, &next, most);
      gpuir__avx2_store(out + i, x);
    }
  } else {
    const gpuir__packed8 f = gpuir__avx2_packed_of(low_bits, 0);
    for (i = 0; i < count; i += 8, p += low_bits) {
      x = gpuir__avx2_packed(p, &f);
      if (v) x = gpuir__bp128_add_highs_avx2(x, v, i, highs, &rank);
      if (docids) x = gpuir__avx2_docids(x, &next, most);
      gpuir__avx2_store(out + i, x);
    }
  }
}

/* Unpacks the high bits of all exceptions, in their place above the low bits. */
GPUIR__AVX512 GPUIR__INLINE void gpuir__bp128_highs_avx512(const gpuir__bp128_view *v, uint32_t *high) {
  const gpuir__packed16 f = gpuir__avx512_packed_of(v->high_bits, 0);
  const __m128i up = _mm_cvtsi32_si128((int)v->low_bits);
  const unsigned n = gpuir__bp128_exceptions(v);
  const uint8_t *p = v->high;
  unsigned i;
  for (i = 0; i < n; i += 16, p += 2 * v->high_bits)
    _mm512_storeu_si512(high + i, _mm512_sll_epi32(gpuir__avx512_packed(p, &f), up));
}

/* Adds to the 16 values from i on the high bits of the exceptions among them; *rank as in gpuir__bp128_add_highs_avx2.
 * Loading and expanding could be one instruction, but that is slow on Zen. */
GPUIR__AVX512 GPUIR__INLINE __m512i gpuir__bp128_add_highs_avx512(__m512i x, const gpuir__bp128_view *v, unsigned i,
    const uint32_t *high, unsigned *rank) {
  const __m512i y = _mm512_loadu_si512(high + *rank);
  const unsigned marks = (unsigned)(v->marks[i / 64] >> i % 64) & 0xffff;
  *rank += gpuir__popcount64(marks);
  return _mm512_or_si512(x, _mm512_maskz_expand_epi32((__mmask16)marks, y));
}

/* Decodes any block, four rows at a time if it is vertical. Reads at most 64 bytes behind the low bits; 80 at low_bits
 * = 0, where the 17 bytes of marks and width follow. */
GPUIR__AVX512 GPUIR__INLINE void gpuir__bp128_wide_avx512(const uint8_t *p, unsigned low_bits, uint32_t count,
    int vertical, const gpuir__bp128_view *v, int docids, uint32_t prev, uint32_t limit, uint32_t *out) {
  const __m512i c31 = _mm512_set1_epi32(31), c32 = _mm512_set1_epi32(32), most = _mm512_set1_epi32((int)limit);
  __m512i next = gpuir__avx512_first(prev), x, lo, hi, bit, word, shift;
  uint32_t highs[GPUIR__BLOCK_ROOM];
  unsigned i, rank = 0;
  if (v) gpuir__bp128_highs_avx512(v, highs);
  if (vertical) {
    const __m512i mask = _mm512_set1_epi32((int)gpuir__low_bits(low_bits)), iota = gpuir__avx512_iota();
    const __m512i lane = _mm512_and_si512(iota, _mm512_set1_epi32(3));
    const __m512i row = _mm512_mullo_epi32(_mm512_set1_epi32((int)low_bits), _mm512_srli_epi32(iota, 2));
    unsigned b = 0;
    for (i = 0; i < GPUIR__BLOCK; i += 16, b += 4 * low_bits) {
      const uint8_t *r = p + b / 32 * 16;
      bit = _mm512_add_epi32(row, _mm512_set1_epi32((int)(b % 32)));
      word = _mm512_ternarylogic_epi32(_mm512_srli_epi32(bit, 3), _mm512_set1_epi32(~3), lane, 0xea); /* (a & b) | c */
      shift = _mm512_and_si512(bit, c31);
      lo = _mm512_permutexvar_epi32(word, _mm512_loadu_si512(r));
      hi = _mm512_permutexvar_epi32(word, _mm512_loadu_si512(r + 16));
      x = _mm512_ternarylogic_epi32(_mm512_srlv_epi32(lo, shift), _mm512_sllv_epi32(hi, _mm512_sub_epi32(c32, shift)),
          mask, 0xa8);
      if (v) x = gpuir__bp128_add_highs_avx512(x, v, i, highs, &rank);
      if (docids) x = gpuir__avx512_docids(x, &next, most);
      _mm512_storeu_si512(out + i, x);
    }
  } else {
    const gpuir__packed16 f = gpuir__avx512_packed_of(low_bits, 0);
    for (i = 0; i < count; i += 16, p += 2 * low_bits) {
      x = gpuir__avx512_packed(p, &f);
      if (v) x = gpuir__bp128_add_highs_avx512(x, v, i, highs, &rank);
      if (docids) x = gpuir__avx512_docids(x, &next, most);
      _mm512_storeu_si512(out + i, x);
    }
  }
}

/* Kernels wide_docids and wide_freqs of both levels. */
#define GPUIR__WIDE(level) \
  static void gpuir__bp128_wide_docids_##level(const uint8_t *p, unsigned low_bits, uint32_t count, int vertical, \
      const gpuir__bp128_view *v, uint32_t prev, uint32_t limit, uint32_t *out) { \
    gpuir__bp128_wide_##level(p, low_bits, count, vertical, v, 1, prev, limit, out); \
  }
#define GPUIR__WIDE_FREQS(level) \
  static void gpuir__bp128_wide_freqs_##level(const uint8_t *p, unsigned low_bits, uint32_t count, int vertical, \
      const gpuir__bp128_view *v, uint32_t *out) { \
    gpuir__bp128_wide_##level(p, low_bits, count, vertical, v, 0, 0, 0, out); \
  }
GPUIR__AVX2 GPUIR__WIDE(avx2)
GPUIR__AVX2 GPUIR__WIDE_FREQS(avx2)
GPUIR__AVX512 GPUIR__WIDE(avx512)
GPUIR__AVX512 GPUIR__WIDE_FREQS(avx512)
#undef GPUIR__WIDE
#undef GPUIR__WIDE_FREQS

/* ---- decoding with vectors */

/* Decodes count values whose low bits begin at p, and sums them up if `docids`, a constant; v: NULL without exceptions.
 * Narrow blocks are decoded with AVX2 even where there is AVX-512, which would gain nothing. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__bp128_simd(const gpuir__stream *s, const uint8_t *p, unsigned low_bits,
    uint32_t count, int vertical, const gpuir__bp128_view *v, int docids, uint32_t prev, uint32_t *out) {
  const int narrow = gpuir__bp128_is_narrow(low_bits, v ? v->high_bits : 0, vertical, docids);
  if (narrow && docids) gpuir__bp128_narrow_docids_avx2(p, low_bits, count, vertical, v, prev, s->limit, out);
  else if (narrow) gpuir__bp128_narrow_freqs_avx2(p, low_bits, count, vertical, v, out);
  else if (docids) s->kernels->wide_docids(p, low_bits, count, vertical, v, prev, s->limit, out);
  else s->kernels->wide_freqs(p, low_bits, count, vertical, v, out);
}

GPUIR__AVX2 GPUIR__INLINE void gpuir__bp128_decode(const gpuir__stream *s, uint32_t block, uint32_t count, int vertical,
    int docids, uint32_t prev, uint32_t *out) {
  uint64_t left;
  unsigned low_bits;
  const uint8_t *p = gpuir__bp128_block(s, block, count, &low_bits, &left);
  gpuir__bp128_view v;
  if (left && gpuir__bp128_open(p, low_bits, left, count, &v))
    gpuir__bp128_simd(s, p, low_bits, count, vertical, &v, docids, prev, out);
  else gpuir__bp128_simd(s, p, low_bits, count, vertical, NULL, docids, prev, out);
}

/* Decodes the last block, unless it is full: apart, for the others' speed. */
GPUIR__AVX2 GPUIR__NOINLINE void gpuir__bp128_docids_rest(const gpuir__stream *s, uint32_t block, uint32_t prev,
    uint32_t *out) {
  gpuir__bp128_decode(s, block, gpuir__block_count(s->n, block), 0, 1, prev, out);
}

GPUIR__AVX2 GPUIR__NOINLINE void gpuir__bp128_freqs_rest(const gpuir__stream *s, uint32_t block, uint32_t *out) {
  gpuir__bp128_decode(s, block, gpuir__block_count(s->n, block), 0, 0, 0, out);
}

GPUIR__AVX2 GPUIR__DECODES(gpuir__bp128_docids_simd) {
  if (gpuir__block_count(s->n, block) == GPUIR__BLOCK) gpuir__bp128_decode(s, block, GPUIR__BLOCK, 1, 1, prev, out);
  else gpuir__bp128_docids_rest(s, block, prev, out);
}

GPUIR__AVX2 GPUIR__DECODES(gpuir__bp128_freqs_simd) {
  (void)prev;
  if (gpuir__block_count(s->n, block) == GPUIR__BLOCK) gpuir__bp128_decode(s, block, GPUIR__BLOCK, 1, 0, 0, out);
  else gpuir__bp128_freqs_rest(s, block, out);
}

/* Returns value i of the list. For AVX2, which counts bits. */
GPUIR__AVX2 static uint32_t gpuir__bp128_get_avx2(const gpuir__stream *s, uint32_t i) {
  return gpuir__bp128_get_any(s, i);
}

/* ---- finding a docID in a narrow block without decoding it */

/* A search in a narrow block, vertical and of at most 8 low bits. */
typedef struct gpuir__bp128_seek16 {
  gpuir__bp128_narrow block;
  __m256i remaining; /* in every word: the docID looked for less the last one passed, modulo 2^16 */
} gpuir__bp128_seek16;

/* Passes over the 32 docIDs from i on; returns a bit for each that is the one looked for. */
GPUIR__AVX2 GPUIR__INLINE uint64_t gpuir__bp128_seek32_avx2(gpuir__bp128_seek16 *seek, int exceptions, unsigned i) {
  const __m256i last = _mm256_set1_epi16(0xf0e); /* spreads the last word of each half over it */
  const gpuir__bp128_words32 x = gpuir__bp128_words32_avx2(&seek->block, GPUIR__ROWS8, exceptions, i);
  /* a and b: how far each docID lies behind the one before its half's first (16 docIDs a half) */
  const __m256i a = gpuir__bp128_sums12_avx2(x.a),
                b = _mm256_add_epi16(gpuir__bp128_sums12_avx2(x.b), _mm256_shuffle_epi8(a, last));
  const __m256i total = _mm256_shuffle_epi8(b, last);
  const __m256i passed = _mm256_permute2x128_si256(total, total, 8); /* by the upper half: the lower half's total */
  const __m256i wanted = _mm256_sub_epi16(seek->remaining, passed);
  const __m256i rest = _mm256_sub_epi16(wanted, total);
  seek->remaining = _mm256_permute2x128_si256(rest, rest, 0x11); /* the upper half's */
  return (uint32_t)_mm256_movemask_epi8(
      _mm256_packs_epi16(_mm256_cmpeq_epi16(a, wanted), _mm256_cmpeq_epi16(b, wanted)));
}

/* Returns the index of the docID that lies `distance` behind the one before the block, or GPUIR__ABSENT. The block's
 * last docID lies less than 2^16 behind that one. The first 64 docIDs reach the distance if what then remains is 0
 * or less, that is, wraps to `distance` or more when 1 is taken from it; whether the other 64 are looked at is the
 * only branch, because each branch more would wait for blocks that are not in the cache, one after the other. */
GPUIR__AVX2 GPUIR__INLINE uint32_t gpuir__bp128_seek_any_avx2(const uint8_t *p, unsigned low_bits, unsigned high_bits,
    int exceptions, uint32_t distance) {
  __attribute__((aligned(32))) uint16_t high[2 * GPUIR__BLOCK_ROOM];
  gpuir__bp128_seek16 seek;
  unsigned i;
  uint64_t hit;
  seek.block = gpuir__bp128_begin_narrow_avx2(p, low_bits, GPUIR__ROWS8, exceptions, p + 16 * low_bits,
      p + 16 * low_bits + 17, high_bits, high);
  seek.remaining = _mm256_set1_epi16((short)distance);
  for (i = 0;; i += 64) {
    hit = gpuir__bp128_seek32_avx2(&seek, exceptions, i);
    hit |= gpuir__bp128_seek32_avx2(&seek, exceptions, i + 32) << 32;
    if (i || (uint16_t)(_mm256_extract_epi16(seek.remaining, 0) - 1) >= distance)
      return hit ? i + gpuir__ctz64(hit) : GPUIR__ABSENT;
  }
}

GPUIR__AVX2 GPUIR__NOINLINE uint32_t gpuir__bp128_seek_low_avx2(const uint8_t *p, unsigned low_bits,
    uint32_t distance) {
  return gpuir__bp128_seek_any_avx2(p, low_bits, 0, 0, distance);
}

GPUIR__AVX2 GPUIR__NOINLINE uint32_t gpuir__bp128_seek_high_avx2(const uint8_t *p, unsigned low_bits,
    unsigned high_bits, uint32_t distance) {
  return gpuir__bp128_seek_any_avx2(p, low_bits, high_bits, 1, distance);
}

static uint32_t gpuir__bp128_find_avx2(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t x) {
  uint64_t left;
  unsigned low_bits;
  const uint8_t *p = gpuir__bp128_block(s, block, GPUIR__BLOCK, &low_bits, &left);
  gpuir__bp128_view v;
  if (s->last[block] - prev > UINT16_MAX || low_bits > 8) return GPUIR__UNTOLD;
  if (!left || !gpuir__bp128_open(p, low_bits, left, GPUIR__BLOCK, &v))
    return gpuir__bp128_seek_low_avx2(p, low_bits, x - prev);
  return low_bits + v.high_bits <= 15 ? gpuir__bp128_seek_high_avx2(p, low_bits, v.high_bits, x - prev) : GPUIR__UNTOLD;
}
#endif

/* ---- the codec's functions: those of the stream's level */

GPUIR__DECODES(gpuir__bp128_docids_decode) { s->kernels->bp128_docids(s, block, prev, out); }
GPUIR__DECODES(gpuir__bp128_freqs_decode) { s->kernels->bp128_freqs(s, block, prev, out); }

static uint32_t gpuir__bp128_freqs_get(const gpuir__stream *s, uint32_t i) { return s->kernels->bp128_get(s, i); }

static uint32_t gpuir__bp128_docids_find(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t x) {
  return s->kernels->bp128_find(s, block, prev, x);
}

/* ---- encoding */

/* Packs 128 values of w bits vertically into 16 w bytes. */
static void gpuir__bp128_pack(const uint32_t *v, unsigned w, uint8_t *to) {
  uint32_t acc[4] = {0, 0, 0, 0};
  unsigned row, l, fill = 0;
  if (w == 0) return;
  for (row = 0; row < GPUIR__BLOCK / 4; row++, v += 4) {
    for (l = 0; l < 4; l++) acc[l] |= v[l] << fill;
    fill += w;
    if (fill < 32) continue;
    memcpy(to, acc, 16);
    to += 16;
    fill -= 32;
    if (fill) /* bits that did not fit */
      for (l = 0; l < 4; l++) acc[l] = v[l] >> (w - fill);
    else memset(acc, 0, 16);
  }
}

/* Returns the width of the low bits that takes the fewest bytes, rounded up to a multiple of `unit`; *high_bits: the
 * width of the high bits, 0 for no exceptions. Of equals it takes no exceptions, then the larger width. */
static unsigned gpuir__bp128_choose(const uint32_t *v, uint32_t count, uint32_t unit, unsigned *high_bits) {
  const uint32_t up = unit - 1, fixed = (count + 7) / 8 + 1;
  uint8_t widths[40];
  uint32_t i, all = 0, high = 0, least;
  unsigned w, low_bits;
  for (i = 0; i < count; i++) all |= v[i];
  w = gpuir__width32(all);
  least = (((count * w + 7) / 8 + up) & ~up) << 6; /* of bytes << 6 | high_bits */
  if (w) gpuir__count_widths(v, count, all, widths);
  for (low_bits = w; low_bits-- > 0;) {
    uint32_t bytes;
    high += widths[low_bits + 1];
    if (high == count || (fixed + high * (w - low_bits) / 8) << 6 > least) break; /* no smaller low_bits is better */
    bytes = ((count * low_bits + 7) / 8 + fixed + (high * (w - low_bits) + 7) / 8 + up) & ~up;
    least = gpuir__min32(least, bytes << 6 | (w - low_bits));
  }
  *high_bits = least & 63;
  return w - *high_bits;
}

/* Takes the high bits off the values, into high[], and marks the exceptions; returns their number. */
static uint32_t gpuir__bp128_split(uint32_t *v, uint32_t count, unsigned low_bits, uint64_t marks[2], uint32_t *high) {
  const uint32_t mask = gpuir__low_bits(low_bits);
  uint32_t i = 0, k, n = 0;
  for (k = 0; k < 2; k++) {
    const uint32_t end = gpuir__min32(count, 64 * k + 64);
    uint64_t word = 0;
    for (; i < end; i++) {
      const uint32_t x = v[i] >> low_bits;
      v[i] &= mask;
      high[n] = x;
      n += x != 0;
      word = word >> 1 | (uint64_t)(x != 0) << 63;
    }
    marks[k] = i % 64 ? word >> (64 - i % 64) : word;
  }
  return n;
}

static uint8_t *gpuir__bp128_encode_block(const gpuir__codec *codec, uint32_t *v, uint32_t count, uint32_t unit,
    uint8_t *to, uint8_t *width) {
  uint32_t high[GPUIR__BLOCK + 1], nhigh = 0;
  uint64_t marks[2] = {0, 0};
  unsigned high_bits, low_bits = gpuir__bp128_choose(v, count, unit, &high_bits);
  (void)codec;
  *width = (uint8_t)(low_bits | (high_bits ? GPUIR__BP128_EXCEPTIONS : 0));
  if (high_bits) nhigh = gpuir__bp128_split(v, count, low_bits, marks, high);
  if (count == GPUIR__BLOCK) gpuir__bp128_pack(v, low_bits, to);
  else gpuir__pack(to, v, count, low_bits);
  to += (count * low_bits + 7) / 8;
  if (!high_bits) return to;
  memcpy(to, marks, (count + 7) / 8);
  to += (count + 7) / 8;
  *to++ = (uint8_t)high_bits;
  gpuir__pack(to, high, nhigh, high_bits);
  return to + (nhigh * high_bits + 7) / 8;
}

GPUIR__ENCODES(gpuir__bp128_encode) { return gpuir__encode_blocks(codec, values, n, t, gpuir__bp128_encode_block, 1); }

#ifndef GPUIR_NO_LAB
