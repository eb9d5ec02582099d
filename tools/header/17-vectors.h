
/* ========
 * [17-vectors]  bits, packed numbers, gaps; scalar and with vectors
 *
 * Uses      [16-base].
 * Start at  gpuir__load64 (all bytes are read so), gpuir__packed_value, gpuir__sum_gaps_scalar.
 * Tests     tests/unit/17_vectors.c
 * ======*/

/* Load and store little-endian numbers at any address. Device code reads the same bytes: by the aligned words that hold
 * them and the word behind, because memcpy would load byte by byte there. */
GPUIR_HD uint32_t gpuir__load32(const void *p) {
#ifdef __CUDA_ARCH__
  const uint32_t *w = (const uint32_t *)((uintptr_t)p & ~(uintptr_t)3);
  return __funnelshift_r(w[0], w[1], (uint32_t)((uintptr_t)p & 3) * 8);
#else
  uint32_t v;
  memcpy(&v, p, sizeof v);
  return v;
#endif
}
GPUIR_HD uint64_t gpuir__load64(const void *p) {
#ifdef __CUDA_ARCH__
  const uint32_t *w = (const uint32_t *)((uintptr_t)p & ~(uintptr_t)3), shift = (uint32_t)((uintptr_t)p & 3) * 8;
  return (uint64_t)__funnelshift_r(w[1], w[2], shift) << 32 | __funnelshift_r(w[0], w[1], shift);
#else
  uint64_t v;
  memcpy(&v, p, sizeof v);
  return v;
#endif
}
static inline void gpuir__store32(void *p, uint32_t v) { memcpy(p, &v, sizeof v); }
static inline void gpuir__store64(void *p, uint64_t v) { memcpy(p, &v, sizeof v); }

/* Return the number of bits that v needs: floor(log2 v) + 1, and 0 for 0. */
GPUIR_HD unsigned gpuir__width32(uint32_t v) {
#ifdef __CUDA_ARCH__
  return 32u - (unsigned)__clz((int)v);
#else
  return v ? 32u - (unsigned)__builtin_clz(v) : 0;
#endif
}
GPUIR_HD unsigned gpuir__width64(uint64_t v) {
#ifdef __CUDA_ARCH__
  return 64u - (unsigned)__clzll((long long)v);
#else
  return v ? 64u - (unsigned)__builtin_clzll(v) : 0;
#endif
}

/* Returns the upper half of a * b. */
GPUIR__NOINLINE uint64_t gpuir__mul_high(uint64_t a, uint64_t b) {
  const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
  const uint64_t middle = a1 * b0 + (a0 * b0 >> 32), low = a0 * b1 + (uint32_t)middle;
  return a1 * b1 + (middle >> 32) + (low >> 32);
}

/* Return the position of the lowest one of v != 0, from 0. */
GPUIR_HD unsigned gpuir__ctz32(uint32_t v) {
#ifdef __CUDA_ARCH__
  return (unsigned)__ffs((int)v) - 1;
#else
  return (unsigned)__builtin_ctz(v);
#endif
}
GPUIR_HD unsigned gpuir__ctz64(uint64_t v) {
#ifdef __CUDA_ARCH__
  return (unsigned)__ffsll((long long)v) - 1;
#else
  return (unsigned)__builtin_ctzll(v);
#endif
}

/* Return a number whose w low bits are ones: w up to 32, and up to 63. */
GPUIR_HD uint32_t gpuir__low_bits(unsigned w) { return (uint32_t)(((uint64_t)1 << w) - 1); }
GPUIR_HD uint64_t gpuir__low_bits64(unsigned w) { return ((uint64_t)1 << w) - 1; }

/* Counts the ones of v. This is one instruction in functions for AVX2 and on the device. Elsewhere it is a call into
 * the compiler's library, since not every x86-64 has the instruction: gpuir__ones64 is for code that runs there
 * often. */
GPUIR_HD unsigned gpuir__popcount64(uint64_t v) {
#ifdef __CUDA_ARCH__
  return (unsigned)__popcll(v);
#else
  return (unsigned)__builtin_popcountll(v);
#endif
}

/* Counts the ones of x by a dozen instructions that every processor has. */
GPUIR_HD unsigned gpuir__ones64(uint64_t x) {
#ifdef __CUDA_ARCH__
  return (unsigned)__popcll(x);
#else
  x -= x >> 1 & 0x5555555555555555u;
  x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return (unsigned)(x * 0x0101010101010101u >> 56);
#endif
}

/* Returns the position of the one with rank r, from 0, in x; 64 if x has at most r ones. */
GPUIR_HD unsigned gpuir__select64(uint64_t x, unsigned r) {
  unsigned at = 0, half;
  for (half = 32; half; half /= 2) {
    unsigned low = gpuir__ones64(x & gpuir__low_bits64(half));
    if (r >= low) {
      r -= low;
      at += half;
      x >>= half;
    }
  }
  return at + (r || !(x & 1));
}

/* Returns the first index in [lo, hi) of a sorted array whose value is >= x, or hi. */
GPUIR_HD uint32_t gpuir__lower_bound(const uint32_t *a, uint32_t lo, uint32_t hi, uint32_t x) {
  uint32_t len = hi - lo;
  while (len > 1) {
    uint32_t half = len / 2;
    lo = a[lo + half - 1] < x ? lo + half : lo;
    len -= half;
  }
  return lo + (len && a[lo] < x);
}

/* ---- SIMD levels ----
 *
 * A part that has kernels for several levels declares a structure of them, gpuir__NAME_kernels, and one table with a
 * row a level, gpuir__NAME_of_level. The row is taken once, when an index, a stream or a searcher is opened. */

#define GPUIR__INLINE static inline __attribute__((always_inline))
#if GPUIR__X86
#define GPUIR__AVX2 __attribute__((target("avx2")))
#define GPUIR__AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#endif

/* Returns the best level that the machine has, at most `asked`; never GPUIR_SIMD_AUTO. */
static int gpuir__simd_level(int asked) {
  int best = GPUIR_SIMD_SCALAR;
#if GPUIR__X86
  if (__builtin_cpu_supports("avx2")) best = GPUIR_SIMD_AVX2;
  if (best == GPUIR_SIMD_AVX2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    best = GPUIR_SIMD_AVX512;
#endif
  return asked > GPUIR_SIMD_AUTO && asked < best ? asked : best;
}

GPUIR_API const char *gpuir_simd_name(int simd) {
  switch (gpuir__simd_level(simd)) {
  case GPUIR_SIMD_AVX512: return "avx512";
  case GPUIR_SIMD_AVX2: return "avx2";
  default: return "scalar";
  }
}

#if GPUIR__X86

GPUIR__INLINE __m128i gpuir__sse_load(const void *p) { return _mm_loadu_si128((const __m128i *)p); }

GPUIR__INLINE void gpuir__sse_store(void *p, __m128i x) { _mm_storeu_si128((__m128i *)p, x); }

GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__avx2_load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }

GPUIR__AVX2 GPUIR__INLINE void gpuir__avx2_store(void *p, __m256i x) { _mm256_storeu_si256((__m256i *)p, x); }

GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__avx2_iota(void) { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }

/* Loads 16 bytes into both halves. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__avx2_twice(const void *p) {
  return _mm256_broadcastsi128_si256(gpuir__sse_load(p));
}

/* Loads 16 bytes into the lower half and 16 others into the upper half. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__avx2_two(const void *low, const void *high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(gpuir__sse_load(low)), gpuir__sse_load(high), 1);
}

GPUIR__AVX512 GPUIR__INLINE __m512i gpuir__avx512_iota(void) {
  return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

/* Returns a vector mask as an integer. gcc 12 may spill a mask as 16 bits and read 32 back (with sanitizers it
 * does); the empty statement forces the mask into a general register first. */
GPUIR__AVX512 static inline uint32_t gpuir__mask_bits(__mmask16 mask) {
  uint32_t bits = mask;
  __asm__("" : "+r"(bits));
  return bits;
}

/* Returns the next `width` docIDs: docs itself if n of them are left and n >= width, otherwise `last`, which is filled
 * with the n and repeats the first of them. */
static inline const uint32_t *gpuir__whole_vector(const uint32_t *docs, uint32_t n, uint32_t width, uint32_t *last) {
  uint32_t t;
  if (GPUIR__LIKELY(n >= width)) return docs;
  for (t = 0; t < width; t++) last[t] = docs[t < n ? t : 0];
  return last;
}
#endif

/* ----
 * Packed numbers
 *
 * Numbers of w bits each, side by side ("horizontally"): number i begins at bit i w, bit k being bit k % 8 of byte k
 * / 8, low bits first.
 * ----*/

/* Returns number i of packed ones. Reads 8 bytes from the number's first. */
GPUIR_HD uint32_t gpuir__packed_value(const uint8_t *p, unsigned w, uint64_t i) {
  uint64_t bit = i * w;
  return (uint32_t)(gpuir__load64(p + bit / 8) >> bit % 8) & gpuir__low_bits(w);
}

/* Returns the bytes that count packed numbers of w bits take. */
GPUIR_HD uint64_t gpuir__packed_size(uint64_t count, unsigned w) { return (count * w + 7) / 8; }

/* Packs the low w bits of each of count values; writes up to 4 zeros behind the bytes that they take. */
static void gpuir__pack(uint8_t *to, const uint32_t *values, uint64_t count, unsigned w) {
  const uint32_t mask = gpuir__low_bits(w);
  uint64_t acc = 0, i;
  unsigned fill = 0;
  for (i = 0; i < count; i++) {
    acc |= (uint64_t)(values[i] & mask) << fill;
    fill += w;
    if (fill < 32) continue;
    gpuir__store32(to, (uint32_t)acc);
    to += 4;
    acc >>= 32;
    fill -= 32;
  }
  gpuir__store32(to, (uint32_t)acc);
}

#if GPUIR__X86
/* How 8 packed numbers are taken out of the 32 bytes from the first one's: of each the 32-bit word in which it begins,
 * the bit of that word, and the w low bits. 8 numbers are w bytes, so that the next 8 have the same words and bits. */
typedef struct gpuir__packed8 {
  __m256i word, shift, mask;
} gpuir__packed8;

/* Prepares for numbers of w bits, the first of which begins at bit `skip` < 8 of its byte. */
GPUIR__AVX2 GPUIR__INLINE gpuir__packed8 gpuir__avx2_packed_of(unsigned w, unsigned skip) {
  const __m256i bit =
      _mm256_add_epi32(_mm256_mullo_epi32(_mm256_set1_epi32((int)w), gpuir__avx2_iota()), _mm256_set1_epi32((int)skip));
  gpuir__packed8 f;
  f.word = _mm256_srli_epi32(bit, 5);
  f.shift = _mm256_and_si256(bit, _mm256_set1_epi32(31));
  f.mask = _mm256_set1_epi32((int)gpuir__low_bits(w));
  return f;
}

/* Returns the 8 numbers from p on. A number that begins at bit 0 takes nothing from the next word: shifting up by 32
 * bits gives 0. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__avx2_packed(const uint8_t *p, const gpuir__packed8 *f) {
  const __m256i x = gpuir__avx2_load(p);
  const __m256i lo = _mm256_permutevar8x32_epi32(x, f->word);
  const __m256i hi = _mm256_permutevar8x32_epi32(x, _mm256_add_epi32(f->word, _mm256_set1_epi32(1)));
  const __m256i up = _mm256_sllv_epi32(hi, _mm256_sub_epi32(_mm256_set1_epi32(32), f->shift));
  return _mm256_and_si256(_mm256_or_si256(_mm256_srlv_epi32(lo, f->shift), up), f->mask);
}

/* The same of 16 packed numbers, which are 2 w bytes, and the 64 bytes from the first one's. */
typedef struct gpuir__packed16 {
  __m512i word, shift, mask;
} gpuir__packed16;

GPUIR__AVX512 GPUIR__INLINE gpuir__packed16 gpuir__avx512_packed_of(unsigned w, unsigned skip) {
  const __m512i bit = _mm512_add_epi32(_mm512_mullo_epi32(_mm512_set1_epi32((int)w), gpuir__avx512_iota()),
      _mm512_set1_epi32((int)skip));
  gpuir__packed16 f;
  f.word = _mm512_srli_epi32(bit, 5);
  f.shift = _mm512_and_si512(bit, _mm512_set1_epi32(31));
  f.mask = _mm512_set1_epi32((int)gpuir__low_bits(w));
  return f;
}

GPUIR__AVX512 GPUIR__INLINE __m512i gpuir__avx512_packed(const uint8_t *p, const gpuir__packed16 *f) {
  const __m512i x = _mm512_loadu_si512(p);
  const __m512i lo = _mm512_permutexvar_epi32(f->word, x);
  const __m512i hi = _mm512_permutexvar_epi32(_mm512_add_epi32(f->word, _mm512_set1_epi32(1)), x);
  const __m512i up = _mm512_sllv_epi32(hi, _mm512_sub_epi32(_mm512_set1_epi32(32), f->shift));
  return _mm512_ternarylogic_epi32(_mm512_srlv_epi32(lo, f->shift), up, f->mask, 0xa8); /* (a | b) & c */
}
#endif

/* ----
 * Gaps
 *
 * A docID codec stores gaps, each docID less its predecessor less one ("D1"):
 *
 *     docID    3   4   9          gap   3   0   4          docID = previous + 1 + gap
 *
 * The predecessor of the first docID is UINT32_MAX, and the arithmetic wraps. A decoder produces up to 128 gaps and
 * sums them up here, or in the registers that hold them. It clamps each docID to `limit`, because whoever looks a
 * docID up in an array must be able to trust it whatever the file says.
 * ----*/

/* Turns the count <= 128 gaps in out[0..GPUIR__BLOCK_ROOM) into docIDs <= limit, in place. `prev` is the docID
 * before. */
static void gpuir__sum_gaps_scalar(uint32_t *out, uint32_t count, uint32_t prev, uint32_t limit) {
  uint32_t i;
  for (i = 0; i < count; i++) {
    prev += out[i] + 1;
    out[i] = gpuir__min32(prev, limit);
  }
}

#if GPUIR__X86
/* Returns the docIDs that would follow prev if the next 8 gaps were 0: what one step of the summation hands to the
 * next. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__avx2_first(uint32_t prev) {
  return _mm256_add_epi32(_mm256_set1_epi32((int)(prev + 1)), gpuir__avx2_iota());
}

/* Returns the docIDs of 8 gaps and advances *next. The chain from one call to the next is a single addition. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__avx2_docids(__m256i x, __m256i *next, __m256i limit) {
  __m256i total;
  x = _mm256_add_epi32(x, _mm256_slli_si256(x, 4));
  x = _mm256_add_epi32(x, _mm256_slli_si256(x, 8));
  total = _mm256_permutevar8x32_epi32(x, _mm256_set1_epi32(3)); /* of the lower half, for the upper half */
  x = _mm256_add_epi32(x, _mm256_blend_epi32(_mm256_setzero_si256(), total, 0xf0));
  total = _mm256_permutevar8x32_epi32(x, _mm256_set1_epi32(7));
  x = _mm256_add_epi32(x, *next);
  *next = _mm256_add_epi32(*next, _mm256_add_epi32(total, _mm256_set1_epi32(8)));
  return _mm256_min_epu32(x, limit);
}

GPUIR__AVX2 static void gpuir__sum_gaps_avx2(uint32_t *out, uint32_t count, uint32_t prev, uint32_t limit) {
  __m256i next = gpuir__avx2_first(prev), most = _mm256_set1_epi32((int)limit);
  uint32_t i;
  for (i = 0; i < count; i += 8) gpuir__avx2_store(out + i, gpuir__avx2_docids(gpuir__avx2_load(out + i), &next, most));
}

GPUIR__AVX512 GPUIR__INLINE __m512i gpuir__avx512_first(uint32_t prev) {
  return _mm512_add_epi32(_mm512_set1_epi32((int)(prev + 1)), gpuir__avx512_iota());
}

/* Returns the docIDs of 16 gaps and advances *next. */
GPUIR__AVX512 GPUIR__INLINE __m512i gpuir__avx512_docids(__m512i x, __m512i *next, __m512i limit) {
  const __m512i back1 = _mm512_setr_epi32(0, 0, 0, 0, 3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11);
  const __m512i back2 = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 3, 7, 7, 7, 7);
  __m512i total;
  x = _mm512_add_epi32(x, _mm512_bslli_epi128(x, 4));
  x = _mm512_add_epi32(x, _mm512_bslli_epi128(x, 8));
  x = _mm512_add_epi32(x, _mm512_maskz_permutexvar_epi32(0xfff0, back1, x)); /* the quarter before */
  x = _mm512_add_epi32(x, _mm512_maskz_permutexvar_epi32(0xff00, back2, x)); /* the two before that */
  total = _mm512_permutexvar_epi32(_mm512_set1_epi32(15), x);
  x = _mm512_add_epi32(x, *next);
  *next = _mm512_add_epi32(*next, _mm512_add_epi32(total, _mm512_set1_epi32(16)));
  return _mm512_min_epu32(x, limit);
}

GPUIR__AVX512 static void gpuir__sum_gaps_avx512(uint32_t *out, uint32_t count, uint32_t prev, uint32_t limit) {
  __m512i next = gpuir__avx512_first(prev), most = _mm512_set1_epi32((int)limit);
  uint32_t i;
  for (i = 0; i < count; i += 16)
    _mm512_storeu_si512(out + i, gpuir__avx512_docids(_mm512_loadu_si512(out + i), &next, most));
}
#endif

/* Fills gaps[] with the gaps of count docIDs; `prev` is the docID before the first. */
static void gpuir__take_gaps(const uint32_t *docs, uint32_t count, uint32_t prev, uint32_t *gaps) {
  uint32_t i;
  if (count) gaps[0] = docs[0] - prev - 1;
  for (i = 1; i < count; i++) gaps[i] = docs[i] - docs[i - 1] - 1;
}

/* Counts in widths[0..40) how many of at most 128 values have each width; `all` is their bitwise or. Four histograms
 * are filled and then added, since increments of one counter would wait for each other. */
static void gpuir__count_widths(const uint32_t *v, uint32_t count, uint32_t all, uint8_t *widths) {
  uint8_t histogram[4][40];
  uint32_t i = 0, k;
  if (count < 32) {
    memset(widths, 0, 40);
    for (; i < count; i++) widths[gpuir__width32(v[i])]++;
    return;
  }
  memset(histogram, 0, sizeof histogram);
#if GPUIR__X86
  if (!(all >> 30)) /* SSE2: the exponent of 2 v + 1 as a number that is not rounded up to a power of two */
    for (; i + 4 <= count; i += 4) {
      __m128i x = gpuir__sse_load(v + i);
      x = _mm_or_si128(_mm_add_epi32(x, x), _mm_set1_epi32(1));
      x = _mm_castps_si128(_mm_cvtepi32_ps(_mm_andnot_si128(_mm_srli_epi32(x, 1), x)));
      x = _mm_sub_epi32(_mm_srli_epi32(x, 23), _mm_set1_epi32(127));
      histogram[0][(unsigned)_mm_cvtsi128_si32(x)]++;
      histogram[1][_mm_extract_epi16(x, 2)]++;
      histogram[2][_mm_extract_epi16(x, 4)]++;
      histogram[3][_mm_extract_epi16(x, 6)]++;
    }
#else
  (void)all;
#endif
  for (; i < count; i++) histogram[i % 4][gpuir__width32(v[i])]++;
  for (k = 0; k < 40; k += 8) /* eight bytes at a time: no sum exceeds 128 */
    gpuir__store64(widths + k,
        gpuir__load64(histogram[0] + k) + gpuir__load64(histogram[1] + k) + gpuir__load64(histogram[2] + k) +
            gpuir__load64(histogram[3] + k));
}
