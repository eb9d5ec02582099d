
/* ========================
 * [cuda-05-expand]  the long lists' guides and expanded form, under the stored k1 and b
 *
 * Kernels decode a list faster if its postings lie there decoded, and they look documents up faster with guides. Both
 * are made once for each long list, under the stored k1 and b.
 *
 * Uses      [cuda-03-bp128].
 * Start at  gc_expand, gc_expanded_docs.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

#define GC_PEAK_BITS 4u
#define GC_PEAK_MOST ((1u << GC_PEAK_BITS) - 1)
#define GC_PEAK_LINE 64u /* peaks; each list begins with a new line */
#define GC_PEAK_BYTES (GC_PEAK_LINE * GC_PEAK_BITS / 8) /* of a line */
#define GC_CELLS 96u /* bits of marks in a group */

/* Raises a peak of a row to x, if it is lower. */
static __device__ void gc_raise_peak(uint32_t *row, uint32_t peak, uint32_t x) {
  uint32_t *word = row + peak / (32 / GC_PEAK_BITS), shift = peak % (32 / GC_PEAK_BITS) * GC_PEAK_BITS;
  uint32_t now = *(volatile uint32_t *)word, seen;
  while ((now >> shift & GC_PEAK_MOST) < x) {
    seen = atomicCAS(word, now, (now & ~(GC_PEAK_MOST << shift)) | x << shift);
    if (seen == now) return;
    now = seen;
  }
}

/* Returns where a list's peaks are. */
template <typename Word>
static __device__ __forceinline__ Word *gc_peaks_of(Word *peaks, const gc_term &t) {
  return peaks + (uint64_t)t.row * (GC_PEAK_BYTES / 4);
}

/* The guides of all lists: marks, and the peaks of spans of documents. */
typedef struct gc_guide_arrays {
  uint4 *marks;
  uint32_t *peaks;
} gc_guide_arrays;

/* Makes the guides of a block. Each posting sets its mark, raises its span's peak, and writes the ranks of those groups
 * that begin between the posting before it and itself. Ranks are written only for groups between the last docIDs of the
 * block and of the one before: otherwise a damaged block would write outside its list's groups. */
static __device__ void gc_note_block(const gc_view &v, const gc_guide_arrays &to, const gc_term &t, uint32_t block,
    const uint32_t d[4], const uint32_t c[4]) {
  const uint32_t *last = v.last + t.first_block + block;
  const uint32_t first = block ? (__ldg(last - 1) >> t.shift) / GC_CELLS + 1 : 0,
                 end = (__ldg(last) >> t.shift) / GC_CELLS;
  uint4 *marks = to.marks + t.marks;
  uint32_t prev = __shfl_up_sync(GC_WARP, d[3], 1), next = first, i; /* the first group without a rank */
  if (gc_lane()) next = max(first, (prev >> t.shift) / GC_CELLS + 1);
  for (i = 0; i < 4; i++)
    if (c[i]) {
      const uint32_t bit = d[i] >> t.shift, group = bit / GC_CELLS, cell = bit % GC_CELLS;
      atomicOr((uint32_t *)(marks + group) + cell / 32, 1u << (cell & 31));
      gc_raise_peak(gc_peaks_of(to.peaks, t), d[i] >> t.span, min(GC_PEAK_MOST, (c[i] - 1) / t.step + 1));
      for (; next <= min(group, end); next++) marks[next].w = block * GPUIR__BLOCK + 4 * gc_lane() + i;
    }
}

/* Where gc_expand writes: guides and, unless impact is NULL, expanded lists. */
typedef struct gc_expansion {
  gc_guide_arrays guide;
  uint32_t *most; /* the greatest contribution of a block */
  const uint2 *bases;
  uint16_t *narrow;
  uint32_t *wide, *impact;
} gc_expansion;

/* The first blocks of the long lists. */
struct gc_first_blocks {
  const gc_term *lists;
  __device__ __forceinline__ uint64_t operator()(uint32_t i) const { return lists[i].first_block; }
};

/* Makes guides and expanded lists, one warp per block. It runs once for an index, or for a snapshot's statistics. Each
 * posting's mark and peak is an atomic operation of its own, which is most of the time
 * (tools/results/cuda_notes.txt). */
static __global__ void __launch_bounds__(256) gc_expand(gc_view v, const gc_term *lists, uint32_t nlists,
    uint64_t nblocks, const gc_expansion to, double norm_a, double norm_b) {
  uint64_t g = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32, step = (uint64_t)gridDim.x * blockDim.x / 32;
  uint32_t lane = gc_lane();
  for (; g < nblocks; g += step) {
    const gc_term &t = lists[gc_owner(gc_first_blocks{lists}, nlists, g)];
    uint32_t c[4], i, best, block;
    gc_postings p;
    uint2 base;
    ushort4 s;
    if (g < t.first_block || g - t.first_block >= t.nblocks) continue; /* no list's block */
    block = (uint32_t)(g - t.first_block);
    p = gc_decode_both(v, t, block);
    best = 0;
    for (i = 0; i < 4; i++) {
      bool live = 4 * lane + i < p.n;
      c[i] = live ? gc_contribution(t.weight, p.freq[i], gpuir__norm_of(norm_a, norm_b, gc_length(v, p.doc[i]))) : 0;
      if (!live) p.doc[i] = UINT32_MAX;
      best = max(best, c[i]);
    }
    gc_note_block(v, to.guide, t, block, p.doc, c);
    best = __reduce_max_sync(GC_WARP, best);
    if (!lane) to.most[g] = best;
    if (!to.impact) continue;
    base = to.bases[g];
    *(uint4 *)(to.impact + g * GPUIR__BLOCK + 4 * lane) = make_uint4(c[0], c[1], c[2], c[3]);
    if (base.y)
      *(uint4 *)(to.wide + (uint64_t)(base.y - 1) * GPUIR__BLOCK + 4 * lane) =
          make_uint4(p.doc[0], p.doc[1], p.doc[2], p.doc[3]);
    for (i = 0; i < 4; i++) p.doc[i] = min(p.doc[i] - base.x, 65535u); /* padding: 65535, with contribution 0 */
    s.x = (uint16_t)p.doc[0]; /* kernels load these for a wide block too, but do not use them */
    s.y = (uint16_t)p.doc[1];
    s.z = (uint16_t)p.doc[2];
    s.w = (uint16_t)p.doc[3];
    *(ushort4 *)(to.narrow + g * GPUIR__BLOCK + 4 * lane) = s;
  }
}

/* Loads the docIDs of an expanded block. Padding has contribution 0, and its docIDs may lie anywhere. */
static __device__ __forceinline__ void gc_expanded_docs(const gc_view &v, uint64_t g, uint32_t d[4]) {
  uint32_t lane = gc_lane();
  uint2 base = __ldg(v.bases + g);
  ushort4 s = __ldg((const ushort4 *)(v.narrow + g * GPUIR__BLOCK) + lane);
  if (base.y) {
    uint4 w = __ldg((const uint4 *)(v.wide + (uint64_t)(base.y - 1) * GPUIR__BLOCK) + lane);
    d[0] = w.x;
    d[1] = w.y;
    d[2] = w.z;
    d[3] = w.w;
  } else {
    d[0] = base.x + s.x;
    d[1] = base.x + s.y;
    d[2] = base.x + s.z;
    d[3] = base.x + s.w;
  }
}

/* Returns the docID of posting i of an expanded list. */
static __device__ __forceinline__ uint32_t gc_doc_at(const gc_view &v, const gc_term &t, uint32_t i) {
  const uint64_t at = t.first_block * GPUIR__BLOCK + i;
  const uint32_t x = __ldg(v.narrow + at);
  const uint2 base = __ldg(v.bases + at / GPUIR__BLOCK);
  return base.y ? __ldg(v.wide + (uint64_t)(base.y - 1) * GPUIR__BLOCK + at % GPUIR__BLOCK) : base.x + x;
}
