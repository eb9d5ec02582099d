
/* ========
 * [26-dense]  dense lists: bits, ranks and peaks beside the blocks
 *
 * A list of at least one document in D is dense. Beside its blocks, which stay as they are, it has a bit a document,
 * the number of bits before each 512 documents, and of each 64 documents the greatest saturation, tf / (tf + K),
 * rounded up to a byte. What is looked up in such a list is found by its bit, and its index by its rank, where a block
 * would have to be found and decoded. A file without them has the same hits.
 *
 * (A rank directory over bits: Jacobson, "Space-efficient static trees and graphs", FOCS 1989. Greatest contributions
 * of fixed docID windows: Dimopoulos, Nepomnyachiy & Suel, "Optimizing top-k document retrieval strategies for
 * block-max indexes", WSDM 2013, section 4.)
 *
 * Uses      [24-postings].
 * Start at  gpuir__dense_is, gpuir__dense_fill, gpuir__dense_rank.
 * Tests     tests/unit/26_dense.c
 * ======*/

/* An index of fewer documents has no dense lists: there a list has at most 512 blocks. */
#ifndef GPUIR__DENSE_LEAST
#define GPUIR__DENSE_LEAST 65536u
#endif

/* D of an index whose builder was told none: of 12, 16, 20 and 32 the one with which queries and counts take the least
 * time while an index without texts grows by no more than 14 %. 0: no list is dense. */
#ifndef GPUIR__DENSE_DEFAULT
#define GPUIR__DENSE_DEFAULT 16u
#endif

#define GPUIR__DENSE_MOST 128u /* the greatest D */
/* Returns the lines of so many documents. */
static inline uint64_t gpuir__dense_lines(uint64_t documents) {
  return (documents + GPUIR__DENSE_LINE - 1) / GPUIR__DENSE_LINE;
}

/* Says whether a list of df postings is dense, for this D. */
static inline int gpuir__dense_is(uint64_t documents, uint32_t df, unsigned d) {
  return documents >= GPUIR__DENSE_LEAST && df > GPUIR__SHORT_MAX && (uint64_t)df * d >= documents;
}

/* Returns the D that the meta section states: "0", "1" to "128"; anything else is the default. */
static unsigned gpuir__dense_stated(const char *text) {
  unsigned d = 0, i;
  for (i = 0; i < 3 && text[i] >= '0' && text[i] <= '9'; i++) d = d * 10 + (unsigned)(text[i] - '0');
  return i && !text[i] && d <= GPUIR__DENSE_MOST ? d : GPUIR__DENSE_DEFAULT;
}

/* Computes a posting's saturation in units of 1/255, rounded up: 1 to 255. No product meets a sum, so nothing can be
 * fused: the byte is the same wherever it is computed. */
static inline uint32_t gpuir__dense_peak(uint32_t tf, float norm) {
  const double f = (double)(tf < GPUIR__CAP ? tf : GPUIR__CAP), x = 255.0 * f / (f + (double)norm);
  const uint32_t whole = (uint32_t)x;
  return whole + ((double)whole < x);
}

/* Where a dense list's lines are written. */
typedef struct gpuir__dense_target {
  gpuir__dense_bits *bits;
  uint32_t *rank;
  gpuir__dense_peaks *peaks;
} gpuir__dense_target;

/* Fills the lines of a list, which are zeros. docs ascend; norm and lengths: the file's own. */
static void gpuir__dense_fill(const gpuir__dense_target *to, uint64_t lines, const uint32_t *docs, const uint32_t *tfs,
    uint32_t df, gpuir__norm norm, const uint32_t *lengths) {
  uint64_t line = 0;
  uint32_t i;
  for (i = 0; i < df; i++) {
    const uint32_t d = docs[i], at = d / GPUIR__DENSE_LINE, w = d / GPUIR__DENSE_WINDOW % 8;
    const uint32_t peak = gpuir__dense_peak(tfs[i], gpuir__norm_of(norm.a, norm.b, lengths[d]));
    while (line <= at) to->rank[line++] = i;
    to->bits[at].word[w] |= (uint64_t)1 << d % 64;
    if (peak > to->peaks[at].of[w]) to->peaks[at].of[w] = (uint8_t)peak;
  }
  while (line < lines) to->rank[line++] = df;
}

/* Returns 1 if a dense list holds document d, which is one of the segment's. */
static inline uint32_t gpuir__dense_has(const gpuir__list *l, uint32_t d) {
  return (uint32_t)(l->dense.bits[d / GPUIR__DENSE_LINE].word[d / 64 % 8] >> d % 64) & 1;
}

/* Counts the ones of a word; fast: in a function for AVX2, where an instruction does. */
GPUIR__INLINE uint32_t gpuir__dense_ones(int fast, uint64_t word) {
  return fast ? gpuir__popcount64(word) : gpuir__ones64(word);
}

/* Returns the index of document d, which a dense list holds: how many it holds before. Nothing branches on where in its
 * line d stands, which cannot be predicted. In a damaged file the index is another one of the list's. fast: see
 * gpuir__dense_ones. */
GPUIR__INLINE uint32_t gpuir__dense_rank(int fast, const gpuir__list *l, uint32_t d) {
  static const uint64_t before[15] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
      UINT64_MAX};
  const uint64_t *word = l->dense.bits[d / GPUIR__DENSE_LINE].word;
  const uint32_t at = d / 64 % 8;
  const uint64_t *whole = before + 7 - at; /* all ones for the words before d's, which are at most 7 */
  uint32_t n = l->dense.rank[d / GPUIR__DENSE_LINE], i;
  n += gpuir__dense_ones(fast, word[at] & gpuir__low_bits64(d % 64));
  for (i = 0; i < 7; i++) n += gpuir__dense_ones(fast, word[i] & whole[i]);
  return gpuir__min32(n, l->df - 1);
}
