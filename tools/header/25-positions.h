
/* ========
 * [25-positions]  positions: where in its documents a term stands
 *
 * A token's position is its number among its document's indexed tokens, from 0. The positions of a list are kept in
 * blocks of 128 postings, as its docIDs are, and start anew in each; a list without a directory is one block. A
 * posting's positions are written as gaps: the first one itself, each further one less its predecessor less one. A
 * block of postings whose tf add up to n is
 *
 *     widths     ceil(n / 32) bytes            of each chunk of 32 gaps the number of bits of each, 0 to 32
 *     chunks     4 w bytes a chunk             32 gaps, packed horizontally, see gpuir__packed_value
 *                ceil(m w / 8) bytes           the last chunk, if it has m < 32 gaps
 *     padding    to a multiple of 4 bytes from the list's beginning, if the list has a directory
 *
 * Any gap is read alone once the widths before its chunk are added up; no posting but the wanted ones is decoded.
 *
 * Uses      [17-vectors], [24-postings].
 * Start at  gpuir__positions_encode; gpuir__positions_open and gpuir__occurrences_next (reading).
 * Tests     tests/unit/25_positions.c
 * ======*/

#define GPUIR__CHUNK 32u /* gaps of a chunk */
#define GPUIR__CHUNK_UNIT 4u /* bytes that one step of a block's offset stands for; of a chunk a bit wide */
/* Here and below, a test with small collections sets sizes that stand in #ifndef lower. */
#ifndef GPUIR__SKIP_CHUNKS
#define GPUIR__SKIP_CHUNKS (1u << 16) /* width bytes that are read between two looks at a deadline */
#endif

/* Appends a chunk of n <= 32 gaps; returns its width, or -1 without memory. */
static int gpuir__chunk_put(const gpuir_allocator *a, gpuir__buf *out, const uint32_t *gaps, uint32_t n) {
  uint8_t *to = gpuir__buf_room(a, out, GPUIR__CHUNK * 4 + 4);
  uint32_t all = 0, i;
  unsigned w;
  if (!to) return -1;
  for (i = 0; i < n; i++) all |= gaps[i];
  w = gpuir__width32(all);
  gpuir__pack(to, gaps, n, w);
  out->len += (size_t)gpuir__packed_size(n, w);
  return (int)w;
}

/* Appends the block of n postings with these frequencies; positions[] has those of each posting, ascending, one posting
 * behind the other. 0 or NOMEM. */
static int gpuir__positions_encode(const gpuir_allocator *a, gpuir__buf *out, const uint32_t *tfs, uint32_t n,
    const uint32_t *positions) {
  const size_t widths = out->len;
  uint64_t total = 0, chunks, chunk = 0;
  uint32_t gaps[GPUIR__CHUNK], fill = 0, i, j;
  for (i = 0; i < n; i++) total += tfs[i];
  chunks = (total + GPUIR__CHUNK - 1) / GPUIR__CHUNK;
  if (chunks > SIZE_MAX / 4 || !gpuir__buf_room(a, out, (size_t)chunks)) return GPUIR_E_NOMEM;
  out->len += (size_t)chunks;
  for (i = 0; i < n; i++) {
    for (j = 0; j < tfs[i]; j++) {
      int w;
      gaps[fill++] = j ? positions[j] - positions[j - 1] - 1 : positions[0];
      if (fill < GPUIR__CHUNK && chunk * GPUIR__CHUNK + fill < total) continue;
      w = gpuir__chunk_put(a, out, gaps, fill);
      if (w < 0) return GPUIR_E_NOMEM;
      out->data[widths + chunk++] = (uint8_t)w;
      fill = 0;
    }
    positions += tfs[i];
  }
  return GPUIR_OK;
}

/* The positions of one block under evaluation, and how far they were walked. Of a damaged file the bytes may promise
 * less than the frequencies do: then the walk ends. */
typedef struct gpuir__positions {
  const uint8_t *widths; /* [chunk] */
  const uint8_t *bytes; /* of the current chunk */
  const uint8_t *end; /* of the list */
  uint64_t chunk, chunks;
} gpuir__positions;

/* Opens the positions of block `block`, of which there are `total`; none if the bytes are too few. */
static void gpuir__positions_begin(gpuir__positions *p, const gpuir__list *l, uint32_t block, uint64_t total) {
  const uint64_t start = l->positions_off ? (uint64_t)l->positions_off[block] * GPUIR__CHUNK_UNIT : 0;
  const uint64_t left = start < l->positions_len ? l->positions_len - start : 0;
  p->chunks = (total + GPUIR__CHUNK - 1) / GPUIR__CHUNK;
  if (p->chunks > left) p->chunks = 0;
  p->chunk = 0;
  p->widths = l->positions + (left ? start : 0);
  p->bytes = p->widths + p->chunks;
  p->end = l->positions + l->positions_len;
}

/* Opens the positions of block `block`, whose frequencies, less one, are freqs[0..n); none if the bytes are too few. */
static void gpuir__positions_open(gpuir__positions *p, const gpuir__list *l, uint32_t block, const uint32_t *freqs,
    uint32_t n) {
  uint64_t total = n;
  uint32_t i;
  for (i = 0; i < n; i++) total += freqs[i];
  gpuir__positions_begin(p, l, block, total);
}

/* Returns the bytes of the current chunk, which has n gaps; SIZE_MAX if its width is none. */
static inline size_t gpuir__chunk_size(const gpuir__positions *p, uint32_t n) {
  const unsigned w = p->widths[p->chunk];
  return w <= 32 ? (size_t)gpuir__packed_size(n, w) : SIZE_MAX;
}

/* Moves on to the chunk of gap number `gap`, which is not before the current one. Returns 0 after GPUIR__SKIP_CHUNKS
 * chunks, and is to be called again. Where the bytes end before, no chunk is left. */
static int gpuir__positions_seek(gpuir__positions *p, uint64_t gap) {
  const uint64_t to = gpuir__min64(gap / GPUIR__CHUNK, p->chunks),
                 stop = gpuir__min64(to, p->chunk + GPUIR__SKIP_CHUNKS);
  for (; p->chunk < stop; p->chunk++) {
    const size_t size = gpuir__chunk_size(p, GPUIR__CHUNK);
    if (GPUIR__UNLIKELY(size > (size_t)(p->end - p->bytes))) {
      p->chunk = p->chunks = 0;
      return 1;
    }
    p->bytes += size;
  }
  return p->chunk == to;
}

/* The positions of one posting on the way. Several may walk the same block. */
typedef struct gpuir__occurrences {
  gpuir__positions block; /* its own place in the block */
  uint64_t gap, end; /* numbers of the gap behind those that are at hand, and behind the posting's last */
  uint32_t here; /* gaps at hand, of the current chunk */
  unsigned width; /* of these; the next begins at this bit of the chunk: */
  uint32_t bit;
  uint32_t last; /* what positions are clamped to: the document's length less one */
  uint64_t next; /* what the next gap is added to */
} gpuir__occurrences;

/* Begins at gap number `gap` of a block that gpuir__positions_seek has moved there, of a posting with this frequency,
 * less one, in a document of `length` tokens. */
static inline void gpuir__occurrences_open(gpuir__occurrences *o, const gpuir__positions *block, uint64_t gap,
    uint32_t freq, uint32_t length) {
  o->block = *block;
  o->gap = gap;
  o->end = gap + 1 + freq;
  o->here = 0;
  o->next = 0;
  o->last = length ? length - 1 : 0;
}

/* Takes the posting's gaps of the next chunk at hand; returns 0 if none are left, or their bytes are missing. */
static int gpuir__occurrences_more(gpuir__occurrences *o) {
  gpuir__positions *p = &o->block;
  const uint32_t at = (uint32_t)(o->gap % GPUIR__CHUNK);
  const uint32_t n = (uint32_t)gpuir__min64(GPUIR__CHUNK - at, o->end - o->gap);
  if (!n) return 0;
  if (o->gap / GPUIR__CHUNK != p->chunk) (void)gpuir__positions_seek(p, o->gap); /* it is the next one */
  if (p->chunk >= p->chunks || gpuir__chunk_size(p, at + n) > (size_t)(p->end - p->bytes)) {
    o->end = o->gap;
    return 0;
  }
  o->width = p->widths[p->chunk];
  o->bit = at * o->width;
  o->here = n;
  o->gap += n;
  return 1;
}

/* Returns the next position, GPUIR_END behind the last. They ascend, in a damaged file perhaps not strictly. */
static inline uint32_t gpuir__occurrences_next(gpuir__occurrences *o) {
  if (!o->here && !gpuir__occurrences_more(o)) return GPUIR_END;
  o->next += (uint32_t)(gpuir__load64(o->block.bytes + o->bit / 8) >> o->bit % 8) & gpuir__low_bits(o->width);
  if (GPUIR__UNLIKELY(o->next > o->last)) o->next = o->last;
  o->bit += o->width;
  o->here--;
  return (uint32_t)o->next++;
}

/* ---- many positions at once: chunks are summed up */

/* Writes the sums of a chunk's 32 gaps and of a one for each, behind `prev`, as gpuir__sum_gaps_scalar does; reads up
 * to 16 bytes behind the chunk. Of a last chunk the sums behind its gaps are any. */
typedef void (*gpuir__chunk_sums)(const uint8_t *bytes, unsigned w, uint32_t prev, uint32_t *sums);

static void gpuir__chunk_sums_scalar(const uint8_t *bytes, unsigned w, uint32_t prev, uint32_t *sums) {
  uint32_t i, bit = 0;
  for (i = 0; i < GPUIR__CHUNK; i++, bit += w)
    sums[i] = prev += ((uint32_t)(gpuir__load64(bytes + bit / 8) >> bit % 8) & gpuir__low_bits(w)) + 1;
}

#if GPUIR__X86
/* The same. Eight gaps are w bytes, so each half of a vector takes four from 16 bytes: every gap's four bytes are moved
 * to its lane, which is shifted then. That reaches up to 25 bits; wider gaps are rare. */
GPUIR__AVX2 static void gpuir__chunk_sums_avx2(const uint8_t *bytes, unsigned w, uint32_t prev, uint32_t *sums) {
  const __m256i bits = _mm256_mullo_epi32(gpuir__avx2_iota(), _mm256_set1_epi32((int)w));
  const __m256i shift = _mm256_and_si256(bits, _mm256_set1_epi32(7));
  const int half = (int)(w / 2); /* the byte in which the fifth gap begins */
  const __m256i first =
      _mm256_sub_epi32(_mm256_srli_epi32(bits, 3), _mm256_setr_epi32(0, 0, 0, 0, half, half, half, half));
  const __m256i take =
      _mm256_add_epi32(_mm256_mullo_epi32(first, _mm256_set1_epi32(0x01010101)), _mm256_set1_epi32(0x03020100));
  const __m256i mask = _mm256_set1_epi32((int)gpuir__low_bits(w)), all = _mm256_set1_epi32(-1);
  __m256i next = gpuir__avx2_first(prev);
  uint32_t i;
  if (GPUIR__UNLIKELY(w > 25)) {
    gpuir__chunk_sums_scalar(bytes, w, prev, sums);
    return;
  }
  for (i = 0; i < GPUIR__CHUNK; i += 8, bytes += w) {
    const __m256i x = _mm256_srlv_epi32(_mm256_shuffle_epi8(gpuir__avx2_two(bytes, bytes + half), take), shift);
    gpuir__avx2_store(sums + i, gpuir__avx2_docids(_mm256_and_si256(x, mask), &next, all));
  }
}
#endif

/* Returns the bytes of a block whose frequencies add up to `total`, as its widths say; 0 if they are not there. The
 * block must just have been opened. */
static uint64_t gpuir__positions_size(gpuir__positions *p, uint64_t total) {
  const uint8_t *start = p->widths;
  const uint32_t rest = (uint32_t)(total % GPUIR__CHUNK);
  size_t size = 0;
  while (!gpuir__positions_seek(p, total)) {}
  if (!p->chunks || (rest && p->chunk >= p->chunks)) return 0;
  if (rest) size = gpuir__chunk_size(p, rest);
  return size <= (size_t)(p->end - p->bytes) ? (uint64_t)(p->bytes - start) + size : 0;
}

/* Moves a block to its posting number i, whose frequencies, less one, are freqs[], and begins a walk there. */
static void gpuir__positions_find(gpuir__positions *p, const uint32_t *freqs, uint32_t i, uint32_t length,
    gpuir__occurrences *w) {
  uint64_t gap = i;
  uint32_t j;
  for (j = 0; j < i; j++) gap += freqs[j];
  while (!gpuir__positions_seek(p, gap)) {}
  gpuir__occurrences_open(w, p, gap, freqs[i], length);
}
