
/* ========
 * [20-lab-unary]  codecs of the literature: unary codes (ef, qs, rice)
 *
 * All codecs of the literature, here and in the next two parts, say in the stream itself what a
 * decoder has to know, so that a short list, which has no directory and no stored parameter,
 * needs nothing else. All bit vectors are plain: bit i is bit i % 8 of byte i / 8, and a number's
 * low bits come first. A header is checked when the list is opened and again wherever it is used;
 * what does not lie within the stream counts as zeros. Beyond the directory's offset, which all
 * codecs use, nothing depends on the block size of 128 where a codec's own unit is another one.
 *
 * Functions that are GPUIR_HD compute one value from the bytes alone, as a thread of a warp does: one
 * definition of the format for the decoders here and for the device. Above each codec stands which
 * of them such a lane uses. Where gaps are coded, a scan over the warp turns them into docIDs.
 *
 * Uses      [17-vectors], [18-codecs].
 * Start at  gpuir__unary (a unary code), gpuir__ef_decode, gpuir__halves_decode (qs and rice).
 * Tests     tests/unit/20_lab_unary.c
 * ======*/

/* ---- packed numbers */

/* Returns the low `bytes` <= 4 bytes at p as a number; reads 4. */
GPUIR_HD uint32_t gpuir__load_bytes(const uint8_t *p, unsigned bytes) {
  return gpuir__load32(p) & gpuir__low_bits(8 * bytes);
}

/* Returns the number of rising values, of n packed ones of w bits each, that are less than x. */
GPUIR_HD uint32_t gpuir__packed_lower_bound(const uint8_t *p, unsigned w, uint32_t n, uint32_t x) {
  uint32_t lo = 0;
  while (lo < n) {
    const uint32_t mid = (lo + n) / 2;
    if (gpuir__packed_value(p, w, mid) < x) lo = mid + 1;
    else n = mid;
  }
  return lo;
}

/* Writes v < 2^57 at a bit of zeroed memory, of which it touches 8 bytes. */
static inline void gpuir__put_bits(uint8_t *to, uint64_t bit, uint64_t v) {
  gpuir__store64(to + bit / 8, gpuir__load64(to + bit / 8) | v << bit % 8);
}

/* Unpacks count numbers of w bits, 1 to 32, the first of which begins at bit `skip` < 8 of p[0]. Kernels write up to
 * the next multiple of 16 numbers, and read up to 63 bytes behind those that they need. */
static void gpuir__unpack_scalar(const uint8_t *p, unsigned w, unsigned skip, uint32_t count, uint32_t *out) {
  uint32_t i;
  for (i = 0; i < count; i++) {
    const uint64_t bit = (uint64_t)i * w + skip;
    out[i] = (uint32_t)(gpuir__load64(p + bit / 8) >> bit % 8) & gpuir__low_bits(w);
  }
}

#if GPUIR__X86
GPUIR__AVX2 static void gpuir__unpack_avx2(const uint8_t *p, unsigned w, unsigned skip, uint32_t count, uint32_t *out) {
  const gpuir__packed8 f = gpuir__avx2_packed_of(w, skip);
  uint32_t i;
  for (i = 0; i < count; i += 8, p += w) gpuir__avx2_store(out + i, gpuir__avx2_packed(p, &f));
}

GPUIR__AVX512 static void gpuir__unpack_avx512(const uint8_t *p, unsigned w, unsigned skip, uint32_t count,
    uint32_t *out) {
  const gpuir__packed16 f = gpuir__avx512_packed_of(w, skip);
  uint32_t i;
  for (i = 0; i < count; i += 16, p += 2 * w) _mm512_storeu_si512(out + i, gpuir__avx512_packed(p, &f));
}
#endif

/* Unpacks numbers from .. from + count - 1 of those that begin at p, of w <= 32 bits each, at the stream's level.
 * Writes up to the next multiple of 16 numbers. */
static void gpuir__unpack(const gpuir__stream *s, const uint8_t *p, unsigned w, uint64_t from, uint32_t count,
    uint32_t *out) {
  if (w) s->kernels->unpack(p + from * w / 8, w, (unsigned)(from * w % 8), count, out);
  else memset(out, 0, ((size_t)count + 15) / 16 * 16 * sizeof *out);
}

/* ---- unary codes */

/* A bit vector of numbers in unary code, each of which a stop bit ends: a one, or a zero if flip is all ones. The
 * stop of number j has as many other bits before it as the numbers up to j add up to. */
typedef struct gpuir__unary {
  const uint8_t *bits; /* `bytes` of them */
  uint64_t bytes;
  uint64_t flip; /* 0 or UINT64_MAX: is xored to the bits, so that stops are ones */
  const uint8_t *sums; /* NULL, or u32 [piece]: ones before each piece of 2^log bits, nsums of them */
  uint64_t nsums;
  unsigned log;
} gpuir__unary;

#define GPUIR__STOPS_ROOM (GPUIR__BLOCK + 64u + 16u)
#define GPUIR__STOPS_WINDOW 128u /* bytes; as many bits as the longest piece between two sums has */

/* Returns 64 bits of the vector in which stops are ones, those behind its end cleared. */
GPUIR_HD uint64_t gpuir__unary_word(const uint8_t *p, uint64_t bytes, uint64_t flip) {
  uint64_t x = gpuir__load64(p) ^ flip;
  return bytes < 8 ? x & gpuir__low_bits64(8 * (unsigned)bytes) : x;
}

/* Writes the positions of the stops from bit `skip` < 8 of the bytes at p on, of which the first bit has position
 * `at`, to pos[got..], until it has `count` <= 128 or the bytes end. Returns the new `got`, which may be greater
 * than count. */
static uint32_t gpuir__stops_scalar(const uint8_t *p, uint64_t bytes, unsigned skip, uint64_t flip, uint32_t at,
    uint32_t got, uint32_t count, uint32_t *pos) {
  uint64_t keep = UINT64_MAX << skip;
  for (; bytes && got < count; p += 8, at += 64) {
    uint64_t x = gpuir__unary_word(p, bytes, flip) & keep;
    for (; x; x &= x - 1) pos[got++] = at + gpuir__ctz64(x);
    keep = UINT64_MAX;
    bytes -= gpuir__min64(bytes, 8);
  }
  return got;
}

#if GPUIR__X86
/* Takes eight at a time whether there are so many or not, so that fewer branches are mispredicted. */
GPUIR__AVX2 static uint32_t gpuir__stops_avx2(const uint8_t *p, uint64_t bytes, unsigned skip, uint64_t flip,
    uint32_t at, uint32_t got, uint32_t count, uint32_t *pos) {
  uint64_t keep = UINT64_MAX << skip;
  const uint64_t stop = (uint64_t)1 << 63;
  for (; bytes && got < count; p += 8, at += 64) {
    uint64_t x = gpuir__unary_word(p, bytes, flip) & keep;
    uint32_t ones = (uint32_t)__builtin_popcountll(x), i;
    uint32_t *to = pos + got;
    for (i = 0; i < ones; i += 8) {
      unsigned j;
      for (j = 0; j < 8; j++) {
        to[i + j] = at + gpuir__ctz64(x | stop);
        x &= x - 1;
      }
    }
    got += ones;
    keep = UINT64_MAX;
    bytes -= gpuir__min64(bytes, 8);
  }
  return got;
}

GPUIR__AVX512 static uint32_t gpuir__stops_avx512(const uint8_t *p, uint64_t bytes, unsigned skip, uint64_t flip,
    uint32_t at, uint32_t got, uint32_t count, uint32_t *pos) {
  const __m512i sixteen = _mm512_set1_epi32(16);
  __m512i where = _mm512_add_epi32(gpuir__avx512_iota(), _mm512_set1_epi32((int)at));
  uint64_t keep = UINT64_MAX << skip;
  for (; bytes && got < count; p += 8) {
    uint64_t x = gpuir__unary_word(p, bytes, flip) & keep;
    unsigned i;
    for (i = 0; i < 64; i += 16) {
      uint32_t mask = (uint32_t)(x >> i) & 0xffffu;
      _mm512_storeu_si512(pos + got, _mm512_maskz_compress_epi32((__mmask16)mask, where));
      got += (uint32_t)__builtin_popcount(mask);
      where = _mm512_add_epi32(where, sixteen);
    }
    keep = UINT64_MAX;
    bytes -= gpuir__min64(bytes, 8);
  }
  return got;
}
#endif

/* Returns the number of stops before piece c. */
GPUIR_HD uint64_t gpuir__unary_rank(const gpuir__unary *u, uint64_t c) {
  uint64_t ones = gpuir__load32(u->sums + c * 4);
  return u->flip ? (c << u->log) - ones : ones;
}

/* Returns the last piece in [lo, hi), lo < hi, before which there are at most r stops, or lo. */
GPUIR_HD uint64_t gpuir__unary_piece(const gpuir__unary *u, uint64_t lo, uint64_t hi, uint64_t r) {
  while (hi - lo > 1) {
    uint64_t mid = lo + (hi - lo) / 2;
    if (gpuir__unary_rank(u, mid) <= r) lo = mid;
    else hi = mid;
  }
  return lo;
}

/* Writes the positions, counted from bit `start`, of the first count <= 128 stops there; `rank` stops stand before it.
 * Missing ones are 0. Skips what has no stops by means of the sums, so that the time depends on count only. */
static void gpuir__unary_stops(const gpuir__stream *s, const gpuir__unary *u, uint64_t start, uint64_t rank,
    uint32_t count, uint32_t *pos) {
  uint64_t at = start;
  uint32_t got = 0, before = 1;
  while (got < count && at / 8 < u->bytes) {
    const uint8_t *p = u->bits + at / 8;
    const uint64_t window = gpuir__min64(u->bytes - at / 8, GPUIR__STOPS_WINDOW);
    const uint32_t first = (uint32_t)(at / 8 * 8 - start);
    const int none = got == before;
    before = got;
    got = s->kernels->stops(p, window, at % 8, u->flip, first, got, count, pos);
    at = (at / 8 + window) * 8;
    if (got == before && u->sums) {
      uint64_t c = at >> u->log;
      if (none || c >= u->nsums) break; /* not even where the sums promised one */
      c = gpuir__unary_piece(u, c, u->nsums, rank + got);
      at = gpuir__max64(at, c << u->log);
    }
  }
  for (; got < count; got++) pos[got] = 0;
}

/* Returns the position of the stop with rank r; `rank` <= r stops stand before bit `start`. It is looked for before bit
 * `end`, by the sums, or up to the vector's end, without sums. */
GPUIR_HD uint64_t gpuir__unary_select(const gpuir__unary *u, uint64_t start, uint64_t end, uint64_t rank, uint64_t r) {
  uint64_t words = UINT64_MAX, byte, keep;
  if (u->sums) {
    uint64_t lo = start >> u->log, hi = (end >> u->log) + 1;
    if (hi > u->nsums) hi = u->nsums;
    words = GPUIR__STOPS_WINDOW / 8 + 1;
    if (lo < hi) {
      uint64_t c = gpuir__unary_piece(u, lo, hi, r);
      if (c > lo) {
        start = c << u->log;
        rank = gpuir__unary_rank(u, c);
      }
    }
  }
  byte = start / 8;
  keep = UINT64_MAX << start % 8;
  for (; byte < u->bytes && words; words--, byte += 8) {
    uint64_t x = gpuir__unary_word(u->bits + byte, u->bytes - byte, u->flip) & keep;
    unsigned here = gpuir__ones64(x);
    if (r - rank < here) return byte * 8 + gpuir__select64(x, (unsigned)(r - rank));
    rank += here;
    keep = UINT64_MAX;
  }
  return start;
}

/* Returns value j, whose high bits are coded in unary and whose stop has position pos: (bits before it that are no
 * stops) * 2^b + its low bits + add. */
GPUIR_HD uint32_t gpuir__joined(uint32_t pos, uint32_t j, unsigned b, uint32_t low, uint32_t add) {
  return ((pos - j) << b) + low + add;
}

/* Turns count low bits, or whatever is to be added, in out[] into values by gpuir__joined; b < 32. */
static void gpuir__join_scalar(const uint32_t *pos, unsigned b, uint32_t add, uint32_t limit, uint32_t count,
    uint32_t *out) {
  uint32_t i;
  for (i = 0; i < count; i++) out[i] = gpuir__min32(gpuir__joined(pos[i], i, b, out[i], add), limit);
}

#if GPUIR__X86
GPUIR__AVX2 static void gpuir__join_avx2(const uint32_t *pos, unsigned b, uint32_t add, uint32_t limit, uint32_t count,
    uint32_t *out) {
  const __m256i eight = _mm256_set1_epi32(8), more = _mm256_set1_epi32((int)add);
  const __m256i most = _mm256_set1_epi32((int)limit);
  const __m128i shift = _mm_cvtsi32_si128((int)b);
  __m256i j = gpuir__avx2_iota();
  uint32_t i;
  for (i = 0; i < count; i += 8) {
    __m256i x = _mm256_sll_epi32(_mm256_sub_epi32(gpuir__avx2_load(pos + i), j), shift);
    x = _mm256_add_epi32(x, _mm256_add_epi32(gpuir__avx2_load(out + i), more));
    gpuir__avx2_store(out + i, _mm256_min_epu32(x, most));
    j = _mm256_add_epi32(j, eight);
  }
}

GPUIR__AVX512 static void gpuir__join_avx512(const uint32_t *pos, unsigned b, uint32_t add, uint32_t limit,
    uint32_t count, uint32_t *out) {
  const __m512i sixteen = _mm512_set1_epi32(16), more = _mm512_set1_epi32((int)add);
  const __m512i most = _mm512_set1_epi32((int)limit);
  const __m128i shift = _mm_cvtsi32_si128((int)b);
  __m512i j = gpuir__avx512_iota();
  uint32_t i;
  for (i = 0; i < count; i += 16) {
    __m512i x = _mm512_sll_epi32(_mm512_sub_epi32(_mm512_loadu_si512(pos + i), j), shift);
    x = _mm512_add_epi32(x, _mm512_add_epi32(_mm512_loadu_si512(out + i), more));
    _mm512_storeu_si512(out + i, _mm512_min_epu32(x, most));
    j = _mm512_add_epi32(j, sixteen);
  }
}
#endif

/* ----
 * ef (6)
 *
 * Elias-Fano in partitions of 128. Source: section 3.1.1 of Liu, Wang & Swanson, "Griffin: uniting
 * CPU and GPU in information retrieval systems for intra-query parallelism", PPoPP 2018 (Para-EF),
 * after Elias, "Efficient storage and retrieval by content and address of static files", JACM 21(2),
 * 1974. Of a partition of n docIDs behind the docID `base - 1`, x = docID - base runs up to U, and
 * b = floor(log2(U / n)), 0 if U < n. The low b bits of each x are packed; its high bits count up in
 * unary code, as many zeros as they grow by and a one, the stop, for each docID:
 *
 *     base = 0, docIDs 5 6 8 15 18 33, U = 33, b = floor(log2(33 / 6)) = 2
 *                        low   01 10 00 11 10 01
 *     high 1 1 2 3 4 8  unary  01 1 01 01 01 00001   (the first bit on the left)
 *
 *     partition         | low 0 | low 1 | ... padded to a byte | unary, padded to a byte |
 *
 * Full partitions take n (b + 1) + (U >> b) bits, at most n (log2(U / n) + 2) and the padding of 7.
 * The base is the last docID of the directory's block before. Partitions follow each other byte by
 * byte, offset[] has where, width[] has b; a list of fewer than 128 is one byte with b and its
 * partition. The unary code has at most 3 n bits, since U / n < 2^(b+1).
 *
 * gpuir__ef_find finds low bits and unary code. A lane finds its stop by gpuir__unary_select, or counts
 * the stops of a gpuir__unary_word for its warp, and joins it with gpuir__packed_value by
 * gpuir__joined; gpuir__ef_get does all of it.
 * ----*/

/* Finds the unary code of a partition and returns where its low bits begin, of *b bits each; b = 0 and no bits if the
 * partition is not all there. */
GPUIR_HD const uint8_t *gpuir__ef_find(const gpuir__stream *s, uint32_t block, uint32_t count, unsigned *b,
    gpuir__unary *u) {
  uint64_t at = 1, low, avail;
  *b = 0;
  if (s->offset) {
    at = s->offset[block];
    *b = s->width[block];
  } else if (s->len) {
    *b = s->bytes[0];
  }
  if (at > s->len) at = s->len;
  avail = s->len - at;
  low = gpuir__packed_size(count, *b);
  if (*b > 31 || low > avail) {
    *b = 0;
    avail = low = at = 0;
  }
  u->bits = s->bytes + at + low;
  u->bytes = gpuir__min64(avail - low, gpuir__packed_size(count, 3));
  u->flip = u->nsums = u->log = 0;
  u->sums = NULL;
  return s->bytes + at;
}

GPUIR__DECODES(gpuir__ef_decode) {
  const uint32_t count = gpuir__block_count(s->n, block);
  uint32_t pos[GPUIR__STOPS_ROOM];
  gpuir__unary u;
  unsigned b;
  const uint8_t *low = gpuir__ef_find(s, block, count, &b, &u);
  gpuir__unary_stops(s, &u, 0, 0, count, pos);
  gpuir__unpack(s, low, b, 0, count, out);
  s->kernels->join(pos, b, prev + 1, s->limit, count, out);
}

GPUIR_HD uint32_t gpuir__ef_get(const gpuir__stream *s, uint32_t i) {
  const uint32_t block = i / GPUIR__BLOCK, count = gpuir__block_count(s->n, block);
  const uint32_t base = block && s->last ? s->last[block - 1] + 1 : 0;
  gpuir__unary u;
  unsigned b;
  const uint8_t *low = gpuir__ef_find(s, block, count, &b, &u);
  i %= GPUIR__BLOCK;
  return gpuir__min32(
      gpuir__joined((uint32_t)gpuir__unary_select(&u, 0, 0, 0, i), i, b, gpuir__packed_value(low, b, i), base),
      s->limit);
}

/* Writes the Elias-Fano code of rising values: their low bits, and in unary code the stop of value i at bit
 * (value i >> b) + i. */
static void gpuir__ef_put(const uint32_t *values, uint64_t count, unsigned b, uint8_t *low, uint8_t *unary) {
  uint64_t i;
  for (i = 0; i < count; i++) {
    gpuir__put_bits(low, i * b, values[i] & gpuir__low_bits(b));
    gpuir__put_bits(unary, (uint64_t)(values[i] >> b) + i, 1);
  }
}

static uint8_t *gpuir__ef_encode_block(const gpuir__codec *codec, uint32_t *v, uint32_t count, uint32_t unit,
    uint8_t *to, uint8_t *width) {
  uint64_t low, high;
  uint32_t i, most;
  unsigned b;
  (void)codec;
  (void)unit;
  for (i = 1; i < count; i++) v[i] += v[i - 1] + 1; /* what each docID exceeds the base by */
  most = v[count - 1];
  b = most < count ? 0 : gpuir__width32(most / count) - 1;
  low = gpuir__packed_size(count, b);
  high = gpuir__packed_size((uint64_t)(most >> b) + count, 1);
  gpuir__ef_put(v, count, b, to, to + low);
  *width = (uint8_t)b;
  return to + low + high;
}

GPUIR__ENCODES(gpuir__ef_encode) { return gpuir__encode_blocks(codec, values, n, t, gpuir__ef_encode_block, 1); }

/* ----
 * qs (7)
 *
 * Elias-Fano over the whole list, with tables that let each block and each value be decoded alone.
 * Sources: Li, "Decompressing inverted indexes using a GPU-based Parallel-QS method", thesis,
 * Polytechnic Institute of New York University, 2014 (section 4.2, and prefix sums over blocks of
 * the high bits in section 5.2), after Vigna, "Quasi-succinct indices", WSDM 2013. With u the last
 * docID, b = max(0, floor(log2(c u / n))); the parameter is 1000 c, 250 to 4000, 0 for 1000. The two
 * arrays are those of ef, with base 0 and one partition (the thesis writes the unary code's complement):
 *
 *     list of 128 or more   | header u64 | sums u32 ... | low bits, b each | unary code |
 *       header              bits 0..7 b, 8..63 bytes of the unary code
 *       sums                ones in the unary code before each 1024 bits of it
 *     shorter list          | b u8 | low bits | unary code |
 *
 * Low bits and unary code are padded to a byte each. The select sample of a block is the directory's
 * offset[], zeros in the unary code before it, i. e. the docID before >> b: block k begins at bit
 * offset[k] + 128 k. width[] is 0.
 *
 * Lanes do as for ef: gpuir__halves_find, gpuir__halves_start, gpuir__unary_select (or
 * gpuir__unary_word and gpuir__unary_rank), gpuir__packed_value, gpuir__joined; gpuir__qs_get.
 * ----*/

#define GPUIR__QS_LOG 10u

/* What qs and rice streams consist of; they differ in what the unary code says. */
typedef struct gpuir__halves {
  unsigned b;
  const uint8_t *low; /* n numbers of b bits */
  const uint8_t *bases; /* rice: u32 [block], the sum of the numbers before it, or NULL */
  gpuir__unary unary;
} gpuir__halves;

/* Finds what a stream consists of. 0, or FORMAT, and then there are no bits. */
GPUIR_HD int gpuir__halves_find(const gpuir__stream *s, unsigned log, int rice, gpuir__halves *v) {
  const uint64_t head = s->offset ? 8 : 1;
  uint64_t bytes, bases, low, all;
  v->b = 0;
  v->low = s->bytes;
  v->bases = NULL;
  v->unary.bits = v->unary.sums = NULL;
  v->unary.bytes = v->unary.nsums = 0;
  v->unary.log = log;
  v->unary.flip = rice ? UINT64_MAX : 0;
  if (s->len < head) return s->n ? GPUIR_E_FORMAT : GPUIR_OK;
  low = gpuir__packed_size(s->n, s->bytes[0]);
  if (s->bytes[0] > 31) return GPUIR_E_FORMAT;
  if (s->offset) {
    bytes = gpuir__load64(s->bytes) >> 8;
    v->unary.nsums = ((bytes << 3) + ((uint64_t)1 << log) - 1) >> log;
    bases = rice ? ((uint64_t)s->n + GPUIR__BLOCK - 1) / GPUIR__BLOCK : 0;
    all = s->len - head;
    if (bytes > all || (v->unary.nsums + bases) * 4 > all - bytes || (v->unary.nsums + bases) * 4 + low > all - bytes) {
      v->unary.nsums = 0;
      return GPUIR_E_FORMAT;
    }
    v->unary.sums = s->bytes + head;
    if (rice) v->bases = v->unary.sums + v->unary.nsums * 4;
    v->low = v->unary.sums + (v->unary.nsums + bases) * 4;
  } else {
    if (low > s->len - head) return GPUIR_E_FORMAT;
    bytes = s->len - head - low;
    v->low = s->bytes + head;
  }
  v->b = s->bytes[0];
  v->unary.bits = v->low + low;
  v->unary.bytes = bytes;
  return GPUIR_OK;
}

/* Writes the sums of a unary code: u32 ones before each 2^log bits. */
static void gpuir__halves_sums(const uint8_t *unary, uint64_t bytes, unsigned log, uint8_t *sums) {
  uint64_t i, ones = 0;
  for (i = 0; i < bytes; i++) {
    if (i % ((1u << log) / 8) == 0) gpuir__store32(sums + (i * 8 >> log) * 4, (uint32_t)ones);
    ones += gpuir__ones64(unary[i]);
  }
}

/* Returns the bit of the unary code at which a block begins. */
GPUIR_HD uint64_t gpuir__halves_start(const gpuir__stream *s, uint32_t block) {
  return s->offset ? (uint64_t)s->offset[block] + (uint64_t)block * GPUIR__BLOCK : 0;
}

/* Returns the bit at which the next block begins, up to which the sums are searched. */
GPUIR_HD uint64_t gpuir__halves_end(const gpuir__stream *s, const gpuir__halves *v, uint32_t block) {
  return s->offset && block < (s->n - 1) / GPUIR__BLOCK ? gpuir__halves_start(s, block + 1) : v->unary.bytes * 8;
}

/* Returns the sum of the binary numbers of rice before a block. */
GPUIR_HD uint32_t gpuir__rice_base(const gpuir__halves *v, uint32_t block) {
  return v->bases ? gpuir__load32(v->bases + (uint64_t)block * 4) : 0;
}

static void gpuir__halves_decode(const gpuir__stream *s, uint32_t block, uint32_t prev, unsigned log, int rice,
    uint32_t *out) {
  const uint32_t count = gpuir__block_count(s->n, block);
  const uint64_t first = (uint64_t)block * GPUIR__BLOCK;
  uint32_t pos[GPUIR__STOPS_ROOM];
  gpuir__halves v;
  (void)gpuir__halves_find(s, log, rice, &v);
  gpuir__unary_stops(s, &v.unary, gpuir__halves_start(s, block), first, count, pos);
  gpuir__unpack(s, v.low, v.b, first, count, out);
  if (rice) s->kernels->sum_gaps(out, count, prev, UINT32_MAX);
  s->kernels->join(pos, v.b, s->offset && !rice ? s->offset[block] << v.b : 0, s->limit, count, out);
}

GPUIR_HD uint32_t gpuir__halves_get(const gpuir__stream *s, uint32_t i, unsigned log, int rice) {
  const uint32_t block = i / GPUIR__BLOCK;
  gpuir__halves v;
  uint32_t sum = 0, k;
  uint64_t pos;
  (void)gpuir__halves_find(s, log, rice, &v);
  if (rice) sum = i + gpuir__rice_base(&v, block);
  for (k = block * GPUIR__BLOCK; rice && k < i; k++) sum += gpuir__packed_value(v.low, v.b, k);
  pos = gpuir__unary_select(&v.unary, gpuir__halves_start(s, block), gpuir__halves_end(s, &v, block),
      (uint64_t)block * GPUIR__BLOCK, i);
  return gpuir__min32(gpuir__joined((uint32_t)pos, i, v.b, gpuir__packed_value(v.low, v.b, i), sum), s->limit);
}

/* Defines what a codec of two vectors has for the seam but for its encoder. */
#define GPUIR__HALVES(name, log, rice) \
  static int gpuir__##name##_open(gpuir__stream *s) { \
    gpuir__halves v; \
    return gpuir__halves_find(s, log, rice, &v); \
  } \
  GPUIR__DECODES(gpuir__##name##_decode) { gpuir__halves_decode(s, block, prev, log, rice, out); } \
  GPUIR_HD uint32_t gpuir__##name##_get(const gpuir__stream *s, uint32_t i) { \
    return gpuir__halves_get(s, i, log, rice); \
  }
GPUIR__HALVES(qs, GPUIR__QS_LOG, 0)

GPUIR__ENCODES(gpuir__qs_encode) {
  const uint64_t c = t->param ? t->param : 1000;
  uint64_t last = n ? values[n - 1] : 0, head = t->offset ? 8 : 1, sums = 0, low, high, i;
  unsigned b = 0;
  uint8_t *to;
  (void)codec;
  if (c < 250 || c > 4000) return GPUIR_E_LIMIT;
  while (b < 31 && (uint64_t)n * 1000 <= c * last >> (b + 1)) b++;
  low = gpuir__packed_size(n, b);
  high = n ? gpuir__packed_size((last >> b) + n, 1) : 0;
  if (t->offset) sums = ((high << 3) + (1u << GPUIR__QS_LOG) - 1) >> GPUIR__QS_LOG << 2;
  to = gpuir__zero_room(t->a, t->out, head + sums + low + high);
  if (!to) return GPUIR_E_NOMEM;
  if (t->offset) gpuir__store64(to, b | high << 8);
  else to[0] = (uint8_t)b;
  gpuir__ef_put(values, n, b, to + head + sums, to + head + sums + low);
  if (t->offset) gpuir__halves_sums(to + head + sums + low, high, GPUIR__QS_LOG, to + head);
  for (i = 0; i < n; i += GPUIR__BLOCK)
    gpuir__target_block(t, (uint32_t)(i / GPUIR__BLOCK), i ? values[i - 1] >> b : 0, 0);
  t->out->len += (size_t)(head + sums + low + high);
  return GPUIR_OK;
}

/* ----
 * rice (8)
 *
 * Rice coding with the unary and the binary codes in two bit vectors. Source: section 6.1 of Ding,
 * He, Yan & Suel, WWW 2009. Of each gap g, the unary vector has g >> b ones and a zero, the binary
 * vector the low b bits; one b for the list, 2^b close to the mean gap (of its neighbours the one
 * that makes the list smallest). Sums of all that is before make each block decodable alone:
 *
 *     gaps 5 0 9, b = 2         unary   10 0 110        binary  01 00 01
 *     docID i = i + sum of binary numbers up to i + (ones before zero i) * 2^b
 *
 *     list of 128 or more   | header u64 | unary sums u32 ... | binary sums u32 ... | binary | unary |
 *       header              bits 0..7 b, 8..63 bytes of the unary vector
 *       unary sums          ones before each 128 bits of the unary vector
 *       binary sums         sum of the binary numbers before each 128 of them
 *     shorter list          | b u8 | binary | unary |
 *
 * Both vectors are padded to a byte. The directory's offset[] has the ones before a block, so that
 * block k begins at bit offset[k] + 128 k of the unary vector; width[] is 0.
 *
 * Lanes do as for qs; what gpuir__joined adds is gpuir__rice_base and the sum of gpuir__packed_value
 * up to their own, a scan in a warp, a loop in gpuir__rice_get.
 * ----*/

#define GPUIR__RICE_LOG 7u

GPUIR__HALVES(rice, GPUIR__RICE_LOG, 1)

/* Returns the b, close to the width of the mean gap, that makes the list smallest; *ones: the ones of its unary
 * vector. */
static unsigned gpuir__rice_choose(const uint32_t *values, uint32_t n, int directory, uint64_t *ones) {
  const unsigned mean = n ? gpuir__width32((values[n - 1] - (n - 1)) / n) : 0; /* floor(log2) + 1 */
  unsigned best_b = 0, b;
  uint64_t best = UINT64_MAX, i;
  *ones = 0;
  for (b = mean > 2 ? mean - 2 : 0; b <= mean + 1 && b < 32; b++) {
    uint64_t sum = 0, size;
    for (i = 0; i < n; i++) sum += (values[i] - (i ? values[i - 1] + 1 : 0)) >> b;
    size = sum + (sum + n) / 4 * (directory != 0) + (uint64_t)n * b; /* 32 bits for each 128 */
    if (size >= best) continue;
    best = size;
    *ones = sum;
    best_b = b;
  }
  return best_b;
}

/* Writes both bit vectors, and of each block its directory entry and, to `bases`, the sum before it. */
static void gpuir__rice_put(const uint32_t *values, uint32_t n, unsigned b, const gpuir__target *t, uint8_t *bases,
    uint8_t *binary, uint8_t *unary) {
  uint64_t at = 0;
  uint32_t sum = 0, i;
  for (i = 0; i < n; i++) {
    uint32_t gap = values[i] - (i ? values[i - 1] + 1 : 0), q = gap >> b, r = gap - (q << b);
    if (t->offset && i % GPUIR__BLOCK == 0) {
      gpuir__target_block(t, i / GPUIR__BLOCK, (uint32_t)(at - i), 0);
      gpuir__store32(bases + (size_t)(i / GPUIR__BLOCK) * 4, sum);
    }
    sum += r;
    if (b) gpuir__put_bits(binary, (uint64_t)i * b, r);
    for (; q >= 32; q -= 32, at += 32) gpuir__put_bits(unary, at, 0xffffffffu);
    gpuir__put_bits(unary, at, gpuir__low_bits64(q));
    at += q + 1;
  }
}

GPUIR__ENCODES(gpuir__rice_encode) {
  const uint64_t head = t->offset ? 8 : 1, nblocks = n / GPUIR__BLOCK + (n % GPUIR__BLOCK != 0);
  uint64_t ones, sums = 0, bases = t->offset ? nblocks * 4 : 0, low, high;
  unsigned b = gpuir__rice_choose(values, n, t->offset != NULL, &ones);
  uint8_t *to, *unary;
  (void)codec;
  low = gpuir__packed_size(n, b);
  high = gpuir__packed_size(ones + n, 1);
  if (t->offset) sums = ((high << 3) + (1u << GPUIR__RICE_LOG) - 1) >> GPUIR__RICE_LOG << 2;
  to = gpuir__zero_room(t->a, t->out, head + sums + bases + low + high);
  if (!to) return GPUIR_E_NOMEM;
  if (t->offset) gpuir__store64(to, b | high << 8);
  else to[0] = (uint8_t)b;
  unary = to + head + sums + bases + low;
  gpuir__rice_put(values, n, b, t, to + head + sums, to + head + sums + bases, unary);
  if (t->offset) gpuir__halves_sums(unary, high, GPUIR__RICE_LOG, to + head);
  t->out->len += (size_t)(head + sums + bases + low + high);
  return GPUIR_OK;
}
