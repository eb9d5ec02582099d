
/* ========
 * [09d-bounds]  what a block or a list can contribute at most
 *
 * A block and a list store pairs (tf, length) of their best postings. For the query's k1 and b a table turns each pair
 * into its saturation tf / (tf + K). The greatest one, times the term's weight, bounds what any posting contributes.
 * Evaluators skip what cannot reach the threshold by it: a bound that is too low loses hits.
 *
 * Uses      [09-postings].
 * Start at  gpuir__bound, gpuir__saturation_prepare, gpuir__block_saturation.
 * Tests     tests/unit/09d_bounds.c
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
