
/* ========
 * [27-bounds]  what a block or a list can contribute at most
 *
 * A block and a list store pairs (tf, length) of their best postings. For the query's k1 and b a table turns each pair
 * into its saturation tf / (tf + K). The greatest one, times the term's weight, bounds what any posting contributes.
 * Evaluators skip what cannot reach the threshold by it: a bound that is too low loses hits.
 *
 * Uses      [24-postings].
 * Start at  gpuir__bound, gpuir__saturation_prepare, gpuir__block_saturation; gpuir__norm_ratio (dense lists).
 * Tests     tests/unit/27_bounds.c
 * ======*/

/* ---- saturations */

/* tf / (tf + K) for each bound pair under one (k1, b). W times an entry differs from the
 * contribution of the pair by less than what gpuir__slacken adds. */
typedef struct gpuir__saturation {
  float of[65536]; /* [bound pair] */
  gpuir__norm norm; /* of which (k1, b) */
  int valid; /* 0: not filled yet */
} gpuir__saturation;

/* Fills the table for one (k1, b), unless it is that one's already. */
static void gpuir__saturation_prepare(gpuir__saturation *t, gpuir__norm norm) {
  uint32_t tf, len;
  if (t->valid && t->norm.a >= norm.a && t->norm.a <= norm.a && t->norm.b >= norm.b && t->norm.b <= norm.b) return;
  for (len = 0; len < 256; len++) {
    float k = gpuir__norm_of(norm.a, norm.b, gpuir__code_value(len));
    t->of[len << 8] = 0; /* tf code 0: no pair */
    for (tf = 1; tf < 256; tf++) {
      float f = (float)(tf < 255 ? gpuir__code_value(tf) : GPUIR__CAP);
      t->of[len << 8 | tf] = f / (f + k);
    }
  }
  t->norm = norm;
  t->valid = 1;
}

/* ---- bounds of a block at query time */

/* Bounds the contribution, q included, of any posting of a term whose saturation is at most s. */
static inline uint32_t gpuir__bound(float weight, float s, uint32_t q) {
  return q * gpuir__slacken(gpuir__round_even(weight * s));
}

/* Returns the greater saturation of a block's two bound pairs. */
static inline float gpuir__block_saturation(const gpuir__saturation *t, uint32_t pairs) {
  float a = t->of[pairs & 0xffff], b = t->of[pairs >> 16];
  return a > b ? a : b;
}

/* Returns the greatest saturation of a list's bound pairs; 1 for a list that has none. */
static float gpuir__list_saturation(const gpuir__saturation *t, const gpuir__list *l) {
  float best = 0;
  unsigned i;
  if (!l->extent) return 1; /* c never exceeds W by more than a rounding */
  for (i = 0; i < GPUIR__LIST_PAIRS; i++)
    if (t->of[l->extent->pairs[i]] > best) best = t->of[l->extent->pairs[i]];
  return best;
}

/* ---- bounds of a window of a dense list
 *
 * A window's peak is the greatest saturation s = tf / (tf + K) of its postings under the file's own k1, b and average
 * length. A query may have others, and so another K': if K' >= r K for every length, then tf / (tf + K') is at most
 * s / (s + r (1 - s)), which rises with s. A peak that is taken as it is loses hits wherever K' < K. */

/* Returns the greatest r that is known with K' >= r K. What is 0 in K bounds nothing, and needs no bound. */
static double gpuir__norm_ratio(gpuir__norm own, gpuir__norm asked) {
  const double a = own.a > 0 ? asked.a / own.a : -1, b = own.b > 0 ? asked.b / own.b : -1;
  if (a < 0 || b < 0) return a > b ? a : b > a ? b : 0;
  return a < b ? a : b;
}

/* What each peak comes to under a query's K: made for a ratio, and kept while queries have it. */
typedef struct gpuir__peaks {
  float of[256]; /* [peak] the greatest saturation; 0: no posting */
  double ratio;
  int valid; /* 0: not filled yet */
} gpuir__peaks;

static void gpuir__peaks_prepare(gpuir__peaks *t, double ratio) {
  uint32_t q;
  if (t->valid && t->ratio >= ratio && t->ratio <= ratio) return;
  t->of[0] = 0;
  for (q = 1; q < 256; q++) t->of[q] = (float)(q / (q + ratio * (255 - q)));
  t->ratio = ratio;
  t->valid = 1;
}

/* Bounds what a term contributes, q included, by each peak. */
typedef void (*gpuir__peaks_kernel)(const gpuir__peaks *t, float weight, uint32_t q, uint32_t bound[256]);

static void gpuir__peaks_scalar(const gpuir__peaks *t, float weight, uint32_t q, uint32_t bound[256]) {
  uint32_t i;
  bound[0] = 0;
  for (i = 1; i < 256; i++) bound[i] = gpuir__bound(weight, t->of[i], q);
}

#if GPUIR__X86
GPUIR__AVX2 static void gpuir__peaks_avx2(const gpuir__peaks *t, float weight, uint32_t q, uint32_t bound[256]) {
  const __m256i two = _mm256_set1_epi32(2), times = _mm256_set1_epi32((int)q);
  uint32_t i;
  for (i = 0; i < 256; i += 8) { /* c never exceeds 2^31, see gpuir__score_avx2 */
    const __m256i c = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_set1_ps(weight), _mm256_loadu_ps(t->of + i)));
    const __m256i slack = _mm256_add_epi32(_mm256_srli_epi32(c, 21), two);
    gpuir__avx2_store(bound + i, _mm256_mullo_epi32(_mm256_add_epi32(c, slack), times));
  }
  bound[0] = 0;
}
#endif
