
/* ========
 * [24-postings]  postings: contributions, bounds, records, list views, the cursor
 *
 * A term's postings are two streams, docIDs and frequencies. A list of one posting lives in the
 * term's record; one of 2 to 127 is a single block ("short"); a "long" one of 128 or more is cut
 * into blocks of 128 with a directory: last docID, offsets, widths and bounds of each block, as
 * separate arrays, so that they can be searched with vectors and uploaded to a GPU as they are.
 *
 * Uses      [17-vectors], [18-codecs].
 * Start at  gpuir__contribution (the score of one posting), gpuir__list (a term's postings, opened),
 *           gpuir__cursor_seek.
 * Tests     tests/unit/24_postings.c
 * ======*/

/* ---- contributions: what one posting adds to a document's score */

#define GPUIR__CAP 0xffffffu /* tf and length count up to 2^24 - 1, so that both are exact in binary32 */

/* K = A + B * length, the part of BM25's denominator that belongs to the document. */
typedef struct gpuir__norm {
  double a, b;
} gpuir__norm;

/* Makes K's two coefficients from k1, b and the average length in tokens. */
static gpuir__norm gpuir__norm_make(float k1, float b, double average_length) {
  gpuir__norm m;
  m.a = (double)(float)((double)k1 * (1.0 - (double)b));
  m.b = average_length > 0 ? (double)(float)((double)k1 * (double)b / average_length) : 0.0;
  return m;
}

/* Computes K of a document of `length` tokens. The product of a binary32 and a 24-bit integer is exact in binary64, so
 * fusing the addition changes nothing. */
GPUIR_HD float gpuir__norm_of(double a, double b, uint32_t length) {
  return (float)(a + b * (double)(length < GPUIR__CAP ? length : GPUIR__CAP));
}

/* Computes a term's weight, W = idf * (k1 + 1) * 2^20. */
static float gpuir__weight(float idf, float k1) { return (float)((double)idf * ((double)k1 + 1.0) * GPUIR_SCORE_ONE); }

/* Computes atanh(z) / z - 1 = w/3 + w^2/5 + w^3/7 + ... of w = z^2 <= 1/32; w and the sum are in units of 2^-68. The
 * constants are 1/3, 1/5 ... 1/13 in units of 2^-64 and 1/15 ... 1/21 in units of 2^-32, which their small factors
 * allow; what is left out is below 2^-59. */
static uint64_t gpuir__atanh_rest(uint64_t w) {
  const uint64_t v = w >> 32;
  uint64_t p = 0x0c30c30cu;
  p = 0x0d79435eu + (v * p >> 36);
  p = 0x0f0f0f0fu + (v * p >> 36);
  p = 0x11111111u + (v * p >> 36);
  p = 0x13b13b13b13b13b1u + (v * p >> 4);
  p = 0x1745d1745d1745d1u + (gpuir__mul_high(w, p) >> 4);
  p = 0x1c71c71c71c71c71u + (gpuir__mul_high(w, p) >> 4);
  p = 0x2492492492492492u + (gpuir__mul_high(w, p) >> 4);
  p = 0x3333333333333333u + (gpuir__mul_high(w, p) >> 4);
  p = 0x5555555555555555u + (gpuir__mul_high(w, p) >> 4);
  return gpuir__mul_high(w, p);
}

/* Computes idf = ln(a / b) of a = 2 * documents + 2 and b = 2 * df + 1, which is ln(1 + (documents - df + 1/2) /
 * (df + 1/2)); 0 if df exceeds the documents, which are at most GPUIR__MAX_DOCUMENTS. With a / b = 2^e * m, m in
 * [5/7, 7/5], it is e ln 2 + 2 atanh(z), z = (m - 1) / (m + 1). Integers give the same bits on every machine, which a
 * libm does not promise. The error is below 2^-50 (relative, where e is 0) before the one rounding to binary32: the
 * result is the nearest one unless the value is that close to the middle of two. Two neighbouring df lie at least
 * 2^-32 apart, so idf never rises with df. */
static float gpuir__idf(uint64_t documents, uint32_t df) {
  uint64_t a = 2 * documents + 2, b = 2 * (uint64_t)df + 1, sum, rest, z, x;
  unsigned e, t;
  if (a <= b) return 0.0f;
  e = gpuir__width64(a) - gpuir__width64(b);
  b <<= e;
  if (a * 5 > b * 7) {
    e++;
    b <<= 1;
  } else if (a * 7 < b * 5) {
    e--;
    a <<= 1;
  }
  sum = a + b;
  rest = a > b ? a - b : b - a;
  t = gpuir__width64(sum) - gpuir__width64(rest);
  t = t > 4 ? t - 4 : 0; /* a small z gets t bits more */
  rest <<= 30 + t;
  z = (rest / sum << 29 | (rest % sum << 29) / sum) << 7; /* in units of 2^-(66+t) */
  x = z >> t;
  z += gpuir__mul_high(z, gpuir__atanh_rest(gpuir__mul_high(x, x))) >> 4;
  if (!e) return (float)(z >> 1) / 18446744073709551616.0f / (float)((uint64_t)1 << t);
  x = (e * (uint64_t)0xb17217f7u << 26) + (e * (uint64_t)0xd1cf79acu >> 6); /* e ln 2, in units of 2^-58 */
  x = a > b ? x + (z >> (7 + t)) : x - (z >> (7 + t));
  return (float)x / 288230376151711744.0f;
}

/* Rounds x in [0, 2^32) half to even: adding 1.5 * 2^52 leaves the rounded integer in the low bits. */
static inline uint32_t gpuir__round_even(float x) {
  double shifted = (double)x + 6755399441055744.0;
  uint64_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  return (uint32_t)bits;
}

/* Computes a posting's contribution c = max(1, round(W * tf / (tf + K))): each operation in binary32 rounds once, in
 * this order. */
static inline uint32_t gpuir__contribution(float weight, uint32_t tf, float norm) {
  float f = (float)(tf < GPUIR__CAP ? tf : GPUIR__CAP);
  uint32_t c = gpuir__round_even(weight * f / (f + norm));
  return c ? c : 1;
}

/* Adds slack to a bound that was taken from another posting's contribution: binary32 division is not monotone in tf, so
 * a bound needs eight units in the last place more, and the two roundings to integers. */
GPUIR_HD uint32_t gpuir__slacken(uint32_t c) { return c + (c >> 21) + 2; }

/* ---- contributions of a block of postings, the hot loop of OR ----
 * In: docIDs, frequencies less one. Out: q * c each. All levels round alike, see gpuir__contribution. */

typedef struct gpuir__scorer gpuir__scorer;

/* Scores n postings: docIDs and frequencies less one in, q times each contribution out. Reads and writes up to 15
 * items behind the n-th of freqs and out. */
typedef void (*gpuir__score_kernel)(const gpuir__scorer *s, const uint32_t *docs, const uint32_t *freqs, uint32_t n,
    uint32_t *out);

/* What the contribution of a term's posting is computed from. */
struct gpuir__scorer {
  const uint32_t *lengths; /* of all documents, in tokens */
  gpuir__norm norm; /* the query's k1 and b */
  float weight; /* W of the term */
  uint32_t q; /* how often the query has the term */
  gpuir__score_kernel score; /* of the SIMD level, from gpuir__score_of_level */
};

/* Returns the score of one posting, q included. */
static inline uint32_t gpuir__score_one(const gpuir__scorer *s, uint32_t docid, uint32_t tf) {
  return s->q * gpuir__contribution(s->weight, tf, gpuir__norm_of(s->norm.a, s->norm.b, s->lengths[docid]));
}

static void gpuir__score_scalar(const gpuir__scorer *s, const uint32_t *docs, const uint32_t *freqs, uint32_t n,
    uint32_t *out) {
  uint32_t i;
  for (i = 0; i < n; i++)
    out[i] = gpuir__score_one(s, docs[i], (freqs[i] < GPUIR__CAP ? freqs[i] : GPUIR__CAP - 1) + 1);
}

#if GPUIR__X86

/* Loads the lengths of the 8 documents at docs. */
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__lengths_8(const uint32_t *of, const uint32_t *docs) {
  return _mm256_setr_epi32((int)of[docs[0]], (int)of[docs[1]], (int)of[docs[2]], (int)of[docs[3]], (int)of[docs[4]],
      (int)of[docs[5]], (int)of[docs[6]], (int)of[docs[7]]);
}

GPUIR__AVX2 static void gpuir__score_avx2(const gpuir__scorer *s, const uint32_t *docs, const uint32_t *freqs,
    uint32_t n, uint32_t *out) {
  const __m256d a = _mm256_set1_pd(s->norm.a), b = _mm256_set1_pd(s->norm.b);
  const __m256i cap = _mm256_set1_epi32((int)GPUIR__CAP), one = _mm256_set1_epi32(1);
  const __m256i q = _mm256_set1_epi32((int)s->q);
  const __m256 weight = _mm256_set1_ps(s->weight);
  uint32_t last[8], i;
  for (i = 0; i < n; i += 8) {
    const uint32_t *d = gpuir__whole_vector(docs + i, n - i, 8, last);
    __m256i freq = gpuir__avx2_load(freqs + i);
    __m256i len = gpuir__lengths_8(s->lengths, d);
    __m256d lo, hi;
    __m256 norm, tf, x;
    __m256i c;
    len = _mm256_min_epu32(len, cap);
    lo = _mm256_add_pd(a, _mm256_mul_pd(b, _mm256_cvtepi32_pd(_mm256_castsi256_si128(len))));
    hi = _mm256_add_pd(a, _mm256_mul_pd(b, _mm256_cvtepi32_pd(_mm256_extracti128_si256(len, 1))));
    norm = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(lo)), _mm256_cvtpd_ps(hi), 1);
    tf = _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_min_epu32(freq, _mm256_sub_epi32(cap, one)), one));
    x = _mm256_div_ps(_mm256_mul_ps(weight, tf), _mm256_add_ps(tf, norm));
    c = _mm256_max_epu32(_mm256_cvtps_epi32(x), one); /* 2^31 itself comes out right, as 0x80000000 */
    gpuir__avx2_store(out + i, _mm256_mullo_epi32(c, q));
  }
}

GPUIR__AVX512 static void gpuir__score_avx512(const gpuir__scorer *s, const uint32_t *docs, const uint32_t *freqs,
    uint32_t n, uint32_t *out) {
  const __m512d a = _mm512_set1_pd(s->norm.a), b = _mm512_set1_pd(s->norm.b);
  const __m512i cap = _mm512_set1_epi32((int)GPUIR__CAP), one = _mm512_set1_epi32(1), q = _mm512_set1_epi32((int)s->q);
  const __m512 weight = _mm512_set1_ps(s->weight);
  uint32_t last[16], i;
  for (i = 0; i < n; i += 16) {
    const uint32_t *d = gpuir__whole_vector(docs + i, n - i, 16, last);
    __m512i freq = _mm512_loadu_si512(freqs + i);
    __m512i len = _mm512_inserti64x4(_mm512_castsi256_si512(gpuir__lengths_8(s->lengths, d)),
        gpuir__lengths_8(s->lengths, d + 8), 1);
    __m512d lo, hi;
    __m512 norm, tf, x;
    len = _mm512_min_epu32(len, cap);
    lo = _mm512_add_pd(a, _mm512_mul_pd(b, _mm512_cvtepi32_pd(_mm512_castsi512_si256(len))));
    hi = _mm512_add_pd(a, _mm512_mul_pd(b, _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(len, 1))));
    norm = _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(lo)), _mm512_cvtpd_ps(hi), 1);
    tf = _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_min_epu32(freq, _mm512_sub_epi32(cap, one)), one));
    x = _mm512_div_ps(_mm512_mul_ps(weight, tf), _mm512_add_ps(tf, norm));
    _mm512_storeu_si512(out + i, _mm512_mullo_epi32(_mm512_max_epu32(_mm512_cvtps_epu32(x), one), q));
  }
}
#endif

/* The kernels that score a block, by SIMD level less GPUIR_SIMD_SCALAR. */
static const gpuir__score_kernel gpuir__score_of_level[3] = {
    gpuir__score_scalar,
#if GPUIR__X86
    gpuir__score_avx2,
    gpuir__score_avx512,
#endif
};

/* Prefetches the lengths of n documents: a list reaches them in strides that the processor does not foresee. */
static inline void gpuir__prefetch_lengths(const uint32_t *lengths, const uint32_t *docs, uint32_t n) {
  uint32_t i;
  for (i = 0; i < n; i++) __builtin_prefetch(lengths + docs[i]);
}

/* ---- bounds: (tf, length) pairs that dominate a block's postings */

/* Returns the value of an 8-bit code: 0 to 31 as they are, then 16 steps an octave, up to 507,904. */
GPUIR_HD uint32_t gpuir__code_value(uint32_t code) {
  return code < 32 ? code : (16 + (code & 15)) << ((code >> 4) - 1);
}

/* Returns the greatest code whose value is <= v. */
static inline uint32_t gpuir__code_down(uint32_t v) {
  uint32_t w = gpuir__width32(v), code;
  if (v < 32) return v;
  code = 16 * (w - 4) + (v >> (w - 5)) - 16;
  return code < 255 ? code : 255;
}

/* Returns the least code whose value is >= v; 255 stands for everything above too. */
static inline uint32_t gpuir__code_up(uint32_t v) {
  uint32_t code = gpuir__code_down(v);
  return code < 255 && gpuir__code_value(code) < v ? code + 1 : code;
}

/* A bound pair: tf rounded up in the low byte, length rounded down in the high byte; 0: none. A
 * posting (tf, length) with tf <= its tf and length >= its length contributes no more than it,
 * whatever k1 and b are. (Pareto-optimal pairs instead of a stored maximum: Mackenzie et al., "Efficient
 * and effective retrieval using Pareto-optimal block bounds"; Lucene keeps them as "impacts".) */
typedef uint16_t gpuir__pair;
#define GPUIR__BLOCK_PAIRS 2
#define GPUIR__LIST_PAIRS 8

/* The Pareto front of the postings that were added. */
typedef struct gpuir__front {
  uint16_t min_length[256]; /* by tf code; 256: no posting */
  uint32_t max_tf; /* greatest tf code; 0: empty */
} gpuir__front;

/* Empties a front. */
static void gpuir__front_reset(gpuir__front *f) {
  unsigned i;
  for (i = 0; i < 256; i++) f->min_length[i] = 256;
  f->max_tf = 0;
}

/* Adds a posting by the codes of its tf, rounded up, and of its document's length, rounded down. */
static inline void gpuir__front_add(gpuir__front *f, uint32_t tf_code, uint32_t length_code) {
  if (length_code < f->min_length[tf_code]) f->min_length[tf_code] = (uint16_t)length_code;
  if (tf_code > f->max_tf) f->max_tf = tf_code;
}

/* Writes at most `most` pairs that dominate all postings that were added (tf descending, the rest 0), adds the front to
 * `into` if that is given, and empties the front. */
static void gpuir__front_take(gpuir__front *f, gpuir__front *into, gpuir__pair *pairs, unsigned most) {
  uint8_t tf[256], length[256];
  unsigned n = 0, i, t;
  uint32_t best = 256;
  for (t = f->max_tf; t > 0; t--) {
    if (f->min_length[t] < best) {
      best = f->min_length[t];
      tf[n] = (uint8_t)t;
      length[n++] = (uint8_t)best;
      if (into) gpuir__front_add(into, t, best);
    }
    f->min_length[t] = 256;
  }
  f->max_tf = 0;
  while (n > most) { /* join the neighbours that lose least by it */
    unsigned at = 0;
    int least = 1 << 30;
    for (i = 0; i + 1 < n; i++) {
      int loss = (tf[i] - tf[i + 1]) * (length[i] - length[i + 1]);
      if (loss < least) {
        least = loss;
        at = i;
      }
    }
    length[at] = length[at + 1];
    for (i = at + 1; i + 1 < n; i++) {
      tf[i] = tf[i + 1];
      length[i] = length[i + 1];
    }
    n--;
  }
  for (i = 0; i < most; i++) pairs[i] = (gpuir__pair)(i < n ? tf[i] | length[i] << 8 : 0);
}

/* ---- what stands in the file for a term */

#define GPUIR__SHORT_MAX 127u /* postings of a list without a directory */
#define GPUIR__SEEDS 3 /* k-th greatest contributions of a list, for these k: */
static const uint32_t gpuir__seed_ranks[GPUIR__SEEDS] = {10, 100, 1000};
/* Lists of up to this many postings are decoded and scored whole before a pruned OR starts, which then knows
 * their k-th contributions: they are stored for longer ones only. */
#define GPUIR__WHOLE 4096u

/* A term's record, as it is taken out of the dictionary. */
typedef struct gpuir__record {
  uint32_t df;
  uint64_t docs; /* df 1: the docID; short: offset in docIDs behind the long lists; long: index of gpuir__long */
  uint64_t freqs; /* df 1: tf; short: offset in frequencies behind the long lists; long: 0 */
  uint32_t docs_len; /* short: bytes of the streams, up to 65535; otherwise 0 */
  uint32_t freqs_len;
  uint8_t codec, freq_codec;
  uint64_t positions, positions_len; /* bytes in section positions; 0 in an index without */
} gpuir__record;

/* Where a long list stands; there is one a long list, in term order. */
typedef struct gpuir__long {
  uint64_t docs, docs_len; /* bytes in section docIDs */
  uint64_t freqs, freqs_len; /* bytes in section frequencies */
  uint64_t cf;
  uint32_t first_block; /* in the directory's arrays */
  uint32_t seeds; /* entry of section seeds, from 1; 0: none */
  gpuir__pair pairs[GPUIR__LIST_PAIRS];
} gpuir__long;

/* ---- list views: one term's postings, opened */

#define GPUIR__DENSE_LINE 512u /* documents of a line: 8 words of bits, a rank, 8 peaks */
#define GPUIR__DENSE_WINDOW 64u /* documents of a window: a word of bits, a peak */

/* What a dense list has of a line. */
typedef struct gpuir__dense_bits {
  uint64_t word[8]; /* bit d % 64 of word d / 64: the list holds document d of the line */
} gpuir__dense_bits;
typedef struct gpuir__dense_peaks {
  uint8_t of[8]; /* [window] the greatest saturation, see gpuir__dense_peak; 0: no posting */
} gpuir__dense_peaks;

/* What a dense list has beside its blocks, see [26-dense]. */
typedef struct gpuir__dense {
  const gpuir__dense_bits *bits; /* [line]; NULL: the list is not dense */
  const uint32_t *rank; /* [line] postings before it */
  const gpuir__dense_peaks *peaks; /* [line] */
} gpuir__dense;

typedef struct gpuir__list {
  uint32_t df, nblocks; /* postings; blocks of GPUIR__BLOCK postings, the last one may have fewer */
  uint32_t one_docid, one_tf; /* the posting of a list with df 1 */
  const uint32_t *last; /* long lists: [block] last docID; otherwise NULL */
  const uint32_t *bounds; /* long lists: [block] GPUIR__BLOCK_PAIRS pairs; otherwise NULL */
  const uint32_t *seeds; /* GPUIR__SEEDS k-th greatest contributions, or NULL */
  const gpuir__long *extent; /* long lists; otherwise NULL */
  const uint8_t *positions; /* positions_len bytes, see [25-positions]; NULL: the index has no positions */
  uint64_t positions_len;
  const uint32_t *positions_off; /* long lists: [block] where its positions begin, in units of 4 bytes */
  gpuir__stream docs, freqs;
  gpuir__dense dense;
  void *memory; /* scratch of the codecs */
  size_t memory_size;
} gpuir__list;

/* Returns the number of postings in a block. */
static inline uint32_t gpuir__list_block_len(const gpuir__list *l, uint32_t block) {
  return gpuir__min32(GPUIR__BLOCK, l->df - block * GPUIR__BLOCK);
}

/* Decodes the docIDs of a block to out[0..GPUIR__BLOCK_ROOM) and returns how many there are. */
static inline uint32_t gpuir__list_docs(const gpuir__list *l, uint32_t block, uint32_t *out) {
  if (l->df == 1) out[0] = l->one_docid;
  else l->docs.codec->decode_block(&l->docs, block, block ? l->last[block - 1] : UINT32_MAX, out);
  return gpuir__list_block_len(l, block);
}

/* Decodes the frequencies of a block, each less one. */
static inline void gpuir__list_freqs(const gpuir__list *l, uint32_t block, uint32_t *out) {
  if (l->df == 1) out[0] = l->one_tf - 1;
  else l->freqs.codec->decode_block(&l->freqs, block, 0, out);
}

/* Decodes the frequency of the i-th posting. */
static inline uint32_t gpuir__list_tf(const gpuir__list *l, uint32_t i) {
  return l->df == 1 ? l->one_tf : l->freqs.codec->get(&l->freqs, i) + 1;
}

/* How many blocks further on what is read one after the other is prefetched. Measured. */
#define GPUIR__BLOCKS_AHEAD 2u

/* Prefetches element i of an array, also of one that has fewer: of a file's numbers nothing is checked yet, and no
 * address faults. */
#define GPUIR__PREFETCH(array, i) \
  __builtin_prefetch((const void *)((uintptr_t)(array) + (uintptr_t)(i) * sizeof *(array)))

/* Prefetches the docIDs of the block that lies GPUIR__BLOCKS_AHEAD behind this one: a block is decoded sooner than
 * memory answers, and the processor foresees only long runs of them. To be inlined: see gpuir__list_prefetch. */
GPUIR__INLINE void gpuir__list_prefetch_docs(const gpuir__list *l, uint32_t block) {
  const uint64_t ahead = (uint64_t)block + GPUIR__BLOCKS_AHEAD;
  uint64_t at;
  if (!l->docs.offset || ahead >= l->nblocks) return;
  at = (uint64_t)l->docs.offset[ahead] * l->docs.codec->unit;
  GPUIR__PREFETCH(l->docs.bytes, at);
  GPUIR__PREFETCH(l->docs.bytes, at + 64); /* a block is 150 bytes or so */
  GPUIR__PREFETCH(l->docs.bytes, at + 128);
}

/* Prefetches the first bytes of a block's frequencies. */
GPUIR__INLINE void gpuir__list_prefetch_freqs(const gpuir__list *l, uint32_t block) {
  if (l->freqs.offset) __builtin_prefetch(l->freqs.bytes + (size_t)l->freqs.offset[block] * l->freqs.codec->unit);
}

/* From so many wanted postings of a block on, all its frequencies are decoded at once. Measured. */
#define GPUIR__FREQS_MANY 8u

/* Decodes the frequencies, less one, of n postings at ascending indices of the list. */
static void gpuir__list_freqs_at(const gpuir__list *l, const uint32_t *at, uint32_t n, uint32_t *out) {
  uint32_t freqs[GPUIR__BLOCK_ROOM], i = 0;
  while (i < n) {
    uint32_t block = at[i] / GPUIR__BLOCK, first = block * GPUIR__BLOCK, end = i + 1;
    while (end < n && at[end] - first < GPUIR__BLOCK) end++;
    if (end - i < GPUIR__FREQS_MANY) {
      for (; i < end; i++) out[i] = gpuir__list_tf(l, at[i]) - 1;
    } else {
      gpuir__list_freqs(l, block, freqs);
      for (; i < end; i++) out[i] = freqs[at[i] - first];
    }
  }
}

/* Finds the first block >= from whose last docID is >= docid, by galloping; returns nblocks if there is none. A list
 * without a directory is one block that may hold any docID. */
static inline uint32_t gpuir__list_find_block(const gpuir__list *l, uint32_t from, uint32_t docid) {
  uint32_t lo = from, step = 1, n = l->nblocks;
  const uint32_t *last = l->last;
  if (!last || from >= n || last[from] >= docid) return from;
  while (n - lo > step && last[lo + step] < docid) { /* invariant: last[lo] < docid */
    lo += step;
    step *= 2;
  }
  n = n - lo > step ? lo + step : n;
  lo++; /* the answer is in [lo, n] */
  while (lo < n) {
    uint32_t mid = lo + (n - lo) / 2;
    if (last[mid] < docid) lo = mid + 1;
    else n = mid;
  }
  return lo;
}

/* ---- the cursor */

/* What values[] of a cursor holds for the decoded block. */
typedef enum gpuir__values {
  GPUIR__VALUES_NONE,
  GPUIR__VALUES_FREQS, /* frequencies less one */
  GPUIR__VALUES_SCORES /* contributions, q included */
} gpuir__values;

/* One term's postings under evaluation: the list, one decoded block, and the term's weight. */
typedef struct gpuir__cursor {
  gpuir__list list;
  gpuir__scorer scorer;
  uint32_t bound; /* the most that a posting of the list can contribute, q included; 0 if they are only counted */
  uint32_t at; /* the block to search from */
  uint32_t block; /* the decoded block; UINT32_MAX: none */
  uint32_t n; /* postings of the decoded block */
  uint32_t pos; /* index of the current posting in the decoded block */
  gpuir__values kind; /* what values[] holds */
  uint64_t decoded; /* blocks decoded so far, for statistics */
  uint32_t docs[GPUIR__BLOCK_ROOM]; /* n docIDs, and UINT32_MAX behind them up to the end */
  uint32_t values[GPUIR__BLOCK_ROOM];
} gpuir__cursor;

/* Points a cursor at its list's first block, of which nothing is decoded. */
static void gpuir__cursor_reset(gpuir__cursor *c) {
  c->at = c->n = c->pos = 0;
  c->block = UINT32_MAX;
  c->kind = GPUIR__VALUES_NONE;
  c->decoded = 0;
}

/* Decodes the docIDs of a block, unless it is the decoded one. */
static void gpuir__cursor_load(gpuir__cursor *c, uint32_t block) {
  if (c->block == block) return;
  c->n = gpuir__list_docs(&c->list, block, c->docs);
  if (c->n < GPUIR__BLOCK) memset(c->docs + c->n, 0xff, (GPUIR__BLOCK - c->n) * sizeof *c->docs);
  memset(c->docs + GPUIR__BLOCK, 0xff, (GPUIR__BLOCK_ROOM - GPUIR__BLOCK) * sizeof *c->docs);
  c->block = block;
  c->kind = GPUIR__VALUES_NONE;
  c->decoded++;
}

/* Looks for docID x in a block without decoding it: the index of x there, GPUIR__ABSENT, or GPUIR__UNTOLD if the codec
 * cannot tell or the block is the decoded one. A block that was searched so counts as decoded in the statistics. */
static inline uint32_t gpuir__cursor_find(gpuir__cursor *c, uint32_t block, uint32_t x) {
  const gpuir__list *l = &c->list;
  uint32_t at = GPUIR__UNTOLD;
  if (block != c->block && block + 1 < l->nblocks && l->docs.codec->find)
    at = l->docs.codec->find(&l->docs, block, block ? l->last[block - 1] : UINT32_MAX, x);
  c->decoded += at != GPUIR__UNTOLD;
  return at;
}

/* Fills values[] with the block's frequencies, each less one. */
static void gpuir__cursor_freqs(gpuir__cursor *c) {
  if (c->kind == GPUIR__VALUES_FREQS) return;
  gpuir__list_freqs(&c->list, c->block, c->values);
  c->kind = GPUIR__VALUES_FREQS;
}

/* Fills values[] with the block's contributions. */
static void gpuir__cursor_score(gpuir__cursor *c) {
  uint32_t freqs[GPUIR__BLOCK_ROOM];
  if (c->kind == GPUIR__VALUES_SCORES) return;
  gpuir__list_freqs(&c->list, c->block, freqs);
  c->scorer.score(&c->scorer, c->docs, freqs, c->n, c->values);
  c->kind = GPUIR__VALUES_SCORES;
}

/* Moves to the first posting with docID >= docid, at or behind the current one; returns its docID, or GPUIR_END behind
 * the last one. One block is decoded at most: in a damaged file, whose block ends below what the directory says, the
 * list ends there. */
static uint32_t gpuir__cursor_seek(gpuir__cursor *c, uint32_t docid) {
  const uint32_t block = gpuir__list_find_block(&c->list, c->at, docid);
  if (block < c->list.nblocks) {
    if (block != c->block) {
      gpuir__cursor_load(c, block);
      c->pos = 0;
    }
    c->at = block;
    while (c->docs[c->pos] < docid) c->pos++; /* ends at the UINT32_MAX behind the block */
    if (c->pos < c->n) return c->docs[c->pos];
  }
  c->at = c->list.nblocks;
  c->pos = c->n;
  return GPUIR_END;
}

/* Moves to the next posting; returns its docID, or GPUIR_END behind the last one. */
static uint32_t gpuir__cursor_step(gpuir__cursor *c) {
  if (++c->pos < c->n) return c->docs[c->pos];
  if (c->at + 1 >= c->list.nblocks) {
    c->at = c->list.nblocks;
    c->pos = c->n;
    return GPUIR_END;
  }
  gpuir__cursor_load(c, ++c->at);
  c->pos = 0;
  return c->docs[0];
}
