
/* ========================
 * [cuda-03-bp128]  bp128 on the device; the postings of a term and their scores
 *
 * [19-bp128] of gpuir.h defines the format. Its functions also find a block's parts here, and check which of them can
 * be believed. There are two ways to decode. A warp decodes a block: lane t gets values 4t to 4t + 3 (gc_unpack; of a
 * full block gc_load_rows and gc_unpack_rows, between which a warp may start other loads). Or a lane decodes one value
 * (gc_value).
 *
 * Start at  gc_decode_docs, gc_decode_freqs, gc_freq, gc_contribution.
 * Tests     tests/gpu/test_cuda.c
 * ======================*/

/* Returns what gpuir__packed_value does, of a value that begins less than 2^32 bits behind p, by 2 loads and a funnel
 * shift. */
static __device__ __forceinline__ uint32_t gc_packed(const uint8_t *p, unsigned w, uint32_t i) {
  const uint32_t bit = ((uint32_t)(uintptr_t)p & 3) * 8 + i * w;
  const uint32_t *words = (const uint32_t *)((uintptr_t)p & ~(uintptr_t)3) + (bit >> 5);
  return __funnelshift_r(words[0], words[1], bit) & gc_mask(w);
}

/* Returns values 4t to 4t + 3 of lane t, out of `count` values of w bits from value `from` on; values behind them are
 * 0. Four values of up to 14 bits take one load of 8 bytes. `from` is a multiple of 8 if w is more than 14. */
static __device__ __forceinline__ void gc_packed4(const uint8_t *p, unsigned w, uint64_t from, uint32_t count,
    uint32_t v[4]) {
  const uint32_t first = 4 * gc_lane();
  uint32_t i;
  if (w <= 14) {
    const uint64_t bit = (from + first) * w;
    uint64_t x = first < count ? gpuir__load64(p + bit / 8) >> bit % 8 : 0;
#pragma unroll
    for (i = 0; i < 4; i++) {
      v[i] = first + i < count ? (uint32_t)x & gpuir__low_bits(w) : 0;
      x >>= w;
    }
    return;
  }
  p += from / 8 * w;
#pragma unroll
  for (i = 0; i < 4; i++) v[i] = first + i < count ? gc_packed(p, w, (uint32_t)(from & 7) + first + i) : 0;
}

/* ---- a block ---- */

/* A block within its list's stream. */
typedef struct gc_block {
  const uint8_t *low; /* its low parts, as gpuir__bp128_low finds them */
  uint32_t bits, n; /* bits of a low part; values */
  uint32_t room; /* bytes of the stream that its high parts may take, 512 at most; 0: it has no exceptions */
} gc_block;

/* Returns the room for high parts, where `left` bytes follow the low parts of n values. The marks and the width of the
 * high parts come first. */
static __device__ __forceinline__ uint32_t gc_high_room(uint64_t left, uint32_t n) {
  const uint32_t before = (n + 7) / 8 + 1;
  return left > before ? (uint32_t)min(left - before, (uint64_t)512) : 0;
}

/* The high parts of a block. */
typedef struct gc_highs {
  const uint32_t *words; /* they begin at bit `skip` */
  uint32_t skip, bits, low_bits;
} gc_highs;

/* Returns high part number i, shifted to its place in the value. */
static __device__ __forceinline__ uint32_t gc_high_part(const gc_highs &h, uint32_t i) {
  const uint32_t bit = h.skip + i * h.bits;
  const uint32_t *p = h.words + (bit >> 5);
  return (__funnelshift_r(__ldg(p), __ldg(p + 1), bit & 31) & gc_mask(h.bits)) << h.low_bits;
}

/* Adds high parts, from number `rank` on, to those of the lane's values that are marked. */
static __device__ __forceinline__ void gc_add_highs(const gc_highs &h, uint32_t mine, uint32_t rank, uint32_t v[4]) {
  uint32_t l;
#pragma unroll
  for (l = 0; l < 4; l++)
    if (mine >> l & 1) v[l] |= gc_high_part(h, rank++);
}

/* The words that hold the low parts of a lane's four values: two rows of four. */
typedef struct gc_low {
  uint32_t word[8];
} gc_low;

/* Loads the lane's words of a full block at `low`, a multiple of 4. */
static __device__ __forceinline__ gc_low gc_load_low(const uint8_t *low, uint32_t bits) {
  const uint32_t *p = (const uint32_t *)((uintptr_t)low & ~(uintptr_t)3) + gpuir__bp128_word(bits, 4 * gc_lane());
  gc_low r;
  uint32_t l;
#pragma unroll
  for (l = 0; l < 8; l++) r.word[l] = __ldg(p + l);
  return r;
}

/* Returns the low parts of the lane's four values, by 4 funnel shifts. */
static __device__ __forceinline__ void gc_low_parts(const gc_low &low, uint32_t bits, uint32_t v[4]) {
  uint32_t l;
#pragma unroll
  for (l = 0; l < 4; l++) v[l] = __funnelshift_r(low.word[l], low.word[4 + l], gc_lane() * bits) & gc_mask(bits);
}

/* Adds a block's exceptions to the lane's values. If the high parts do not all lie in the stream, the block counts as
 * one without exceptions, as in gpuir__bp128_open. */
static __device__ __forceinline__ void gc_add_exceptions(const gc_block &p, uint32_t v[4]) {
  const uint8_t *marks = p.low + (p.n * p.bits + 7) / 8, *high = marks + (p.n + 7) / 8;
  const gc_highs h = {(const uint32_t *)((uintptr_t)high & ~(uintptr_t)3), 8 * ((uint32_t)(uintptr_t)high & 3) + 8,
      __ldg(high), p.bits};
  const uint32_t first = 4 * gc_lane();
  uint32_t mine = 0, rank = 0, n = 0, i;
  if (h.bits > 32 - p.bits) return;
  if (first < p.n) mine = gc_packed(marks, 4, gc_lane()) & gc_mask(p.n - first);
#pragma unroll
  for (i = 0; i < 4; i++) {
    const uint32_t vote = __ballot_sync(GC_WARP, mine >> i & 1);
    rank += gc_rank(vote);
    n += __popc(vote);
  }
  if (n * h.bits <= 8 * p.room) gc_add_highs(h, mine, rank, v);
}

/* Decodes a block by a warp. Values behind p.n are unspecified. */
static __device__ __forceinline__ void gc_unpack(const gc_block &p, uint32_t v[4]) {
  uint32_t i;
  if (p.n == GPUIR__BLOCK) {
    gc_low_parts(gc_load_low(p.low, p.bits), p.bits, v);
  } else {
#pragma unroll
    for (i = 0; i < 4; i++) {
      const uint32_t at = 4 * gc_lane() + i;
      v[i] = at < p.n ? gc_packed(p.low, p.bits, at) : 0;
    }
  }
  if (p.room) gc_add_exceptions(p, v); /* the same for all lanes */
}

/* ---- a full block in two steps: a warp loads its words, does other work, and then decodes ---- */

/* What a lane needs of a full block. */
typedef struct gc_rows {
  gc_low low;
  uint32_t bits; /* of a low part */
  uint32_t high_bits; /* of a high part; 0: no exceptions */
  uint32_t room; /* as in gc_block */
  uint32_t marks; /* the word that holds the marks of its four values */
  const uint32_t *high; /* the byte that says high_bits, then the high parts */
} gc_rows;

/* Loads what the lane needs of a full block at `low`; room: as in gc_block. */
static __device__ __forceinline__ gc_rows gc_load_rows(const uint8_t *low, uint32_t bits, uint32_t room) {
  gc_rows r;
  r.low = gc_load_low(low, bits);
  r.bits = bits;
  r.high = (const uint32_t *)((uintptr_t)low & ~(uintptr_t)3) + 4 * bits + 4;
  r.room = room;
  r.marks = r.high_bits = 0;
  if (room) {
    r.marks = __ldg(r.high - 4 + gc_lane() / 8);
    r.high_bits = __ldg(r.high) & 255;
    if (r.high_bits > 32 - bits) r.high_bits = 0;
  }
  return r;
}

/* Decodes a block that gc_load_rows has loaded. If it has up to 32 exceptions, each lane loads one high part, and
 * shuffles hand them out. */
static __device__ __forceinline__ void gc_unpack_rows(const gc_rows &r, uint32_t v[4]) {
  gc_low_parts(r.low, r.bits, v);
  if (r.high_bits) { /* the same for all lanes */
    const gc_highs h = {r.high, 8, r.high_bits, r.bits};
    const uint32_t lane = gc_lane(), mine = r.marks >> lane % 8 * 4, sum = __popc(r.marks);
    uint32_t rank = __popc(r.marks & ((1u << lane % 8 * 4) - 1)), n = 0, l;
#pragma unroll
    for (l = 0; l < 4; l++) { /* count the exceptions of earlier words, and all */
      const uint32_t of = __shfl_sync(GC_WARP, sum, 8 * l);
      rank += lane >= 8 * (l + 1) ? of : 0;
      n += of;
    }
    if (n * h.bits > 8 * r.room) return; /* as in gc_add_exceptions */
    if (n <= 32) {
      const uint32_t part = lane < n ? gc_high_part(h, lane) : 0;
#pragma unroll
      for (l = 0; l < 4; l++) {
        const uint32_t high = __shfl_sync(GC_WARP, part, rank), is = mine >> l & 1;
        v[l] |= high & (0 - is);
        rank += is;
      }
    } else {
      gc_add_highs(h, mine, rank, v);
    }
  }
}

/* ---- one value ---- */

/* Returns the high part of value i, which is marked. It counts the marks before it, 32 at a time. */
static __device__ __forceinline__ uint32_t gc_value_high(const gc_block &p, const uint8_t *marks, uint32_t i) {
  const uint8_t *high = marks + (p.n + 7) / 8;
  const uint32_t bits = __ldg(high);
  uint32_t rank = 0, n = 0, j;
  if (!bits || bits > 32 - p.bits) return 0;
#pragma unroll 1
  for (j = 0; j < p.n; j += 32) {
    const uint32_t word = gpuir__load32(marks + j / 8) & gc_mask(p.n - j);
    n += __popc(word);
    rank += j + 32 <= i ? __popc(word) : j <= i ? __popc(word & gc_mask(i - j)) : 0;
  }
  return n * bits <= 8 * p.room ? gc_packed(high + 1, bits, rank) << p.bits : 0;
}

/* Returns value i < p.n alone. Each lane may have a block of its own. */
static __device__ __forceinline__ uint32_t gc_value(const gc_block &p, uint32_t i) {
  const uint8_t *marks = p.low + (p.n * p.bits + 7) / 8;
  uint32_t v;
  if (p.n == GPUIR__BLOCK) {
    const uint32_t *w = (const uint32_t *)((uintptr_t)p.low & ~(uintptr_t)3) + gpuir__bp128_word(p.bits, i);
    v = __funnelshift_r(__ldg(w), __ldg(w + 4), i / 4 * p.bits) & gc_mask(p.bits);
  } else {
    v = gc_packed(p.low, p.bits, i);
  }
  return p.room && (__ldg(marks + i / 8) >> i % 8 & 1) ? v | gc_value_high(p, marks, i) : v;
}

/* Turns gaps into docIDs, by a scan over the warp. */
static __device__ __forceinline__ void gc_sum(uint32_t v[4], uint32_t prev, uint32_t limit) {
  uint32_t i;
  v[0] += 1;
  v[1] += v[0] + 1;
  v[2] += v[1] + 1;
  v[3] += v[2] + 1;
  prev += gc_scan(v[3]) - v[3];
#pragma unroll
  for (i = 0; i < 4; i++) v[i] = min(prev + v[i], limit);
}

/* ---- the postings of a term ---- */

/* Returns how many postings a block has. */
static __device__ __forceinline__ uint32_t gc_block_len(const gc_term &t, uint32_t block) {
  return min(GPUIR__BLOCK, t.df - block * GPUIR__BLOCK);
}

/* Finds a block of n values in the stream list[0..length). If the list has a directory, the block begins `at` words
 * behind the stream's beginning; otherwise behind the byte of its width. */
static __device__ __forceinline__ gc_block gc_block_at(const uint8_t *list, uint64_t length, bool directory,
    uint32_t at, uint32_t width, uint32_t n) {
  gc_block p;
  uint64_t left;
  p.n = n;
  if (!directory) width = length ? __ldg(list) : 0;
  p.low = gpuir__bp128_low(list, length, directory ? (uint64_t)at * 4 : 1, width, n, &p.bits, &left);
  p.room = gc_high_room(left, n);
  return p;
}

/* Finds a block of a list's frequencies, or of its docIDs. */
static __device__ __forceinline__ gc_block gc_part_block(const gc_view &v, const gc_term &t, uint32_t block,
    bool freqs) {
  const uint64_t g = t.first_block + block;
  const bool directory = t.kind == GC_LONG;
  const uint8_t *list = freqs ? (const uint8_t *)v.freqs + t.freqs : (const uint8_t *)v.docids + t.docs;
  return gc_block_at(list, freqs ? t.freqs_len : t.docs_len, directory,
      directory ? __ldg((freqs ? v.freqs_off : v.docs_off) + g) : 0,
      directory ? __ldg((freqs ? v.freqs_width : v.docs_width) + g) : 0, gc_block_len(t, block));
}

/* Decodes the docIDs of a block by a warp, and returns how many it has; docIDs behind these are unspecified. All are
 * below `documents`, whatever the file says: otherwise a damaged file would make kernels write outside their arrays. */
static __device__ uint32_t gc_decode_docs(const gc_view &v, const gc_term &t, uint32_t block, uint32_t d[4]) {
  uint32_t prev = UINT32_MAX, most = v.documents - 1;
  if (t.kind == GC_INLINE) {
    d[0] = d[1] = d[2] = d[3] = min((uint32_t)t.docs, most);
    return 1;
  }
  if (block) prev = __ldg(v.last + t.first_block + block - 1);
  gc_unpack(gc_part_block(v, t, block, false), d);
  gc_sum(d, prev, most);
  return gc_block_len(t, block);
}

/* Decodes the frequencies of a block by a warp, each less one. */
static __device__ __forceinline__ void gc_decode_freqs(const gc_view &v, const gc_term &t, uint32_t block,
    uint32_t f[4]) {
  if (t.kind == GC_INLINE) f[0] = f[1] = f[2] = f[3] = (uint32_t)t.freqs - 1;
  else gc_unpack(gc_part_block(v, t, block, true), f);
}

/* The lane's postings of a block. */
typedef struct gc_postings {
  uint32_t doc[4], freq[4]; /* frequencies less one */
  uint32_t n; /* of the block, as gc_decode_docs returns it */
} gc_postings;

/* Decodes both. It is not inlined, as the code is long and its callers decode few blocks. */
static __device__ __noinline__ gc_postings gc_decode_both(const gc_view &v, const gc_term &t, uint32_t block) {
  gc_postings p;
  p.n = gc_decode_docs(v, t, block, p.doc);
  gc_decode_freqs(v, t, block, p.freq);
  return p;
}

/* Returns the frequency of posting i, less one. */
static __device__ uint32_t gc_freq(const gc_view &v, const gc_term &t, uint32_t i) {
  if (t.kind == GC_INLINE) return (uint32_t)t.freqs - 1;
  return gc_value(gc_part_block(v, t, i / GPUIR__BLOCK, true), i % GPUIR__BLOCK);
}

/* ---- scores ---- */

/* Returns x / y rounded as IEEE 754 says, for 0 or 2^-60 < x < 2^60 and 2^-30 < y < 2^60. Nothing overflows or vanishes
 * for these, so that it does without __fdiv_rn's test for other operands. */
static __device__ __forceinline__ float gc_divide(float x, float y) {
  float r, q;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(y));
  r = __fmaf_rn(r, __fmaf_rn(-y, r, 1), r);
  q = __fmul_rn(x, r);
  q = __fmaf_rn(__fmaf_rn(-y, q, x), r, q);
  return __fmaf_rn(__fmaf_rn(-y, q, x), r, q);
}

/* Returns max(1, round(W * tf / (tf + K))), as gpuir__contribution does. It rounds the same 4 times in the same order:
 * otherwise scores would not be the CPU's. */
static __device__ __forceinline__ uint32_t gc_contribution(float weight, uint32_t tf_less_1, float norm) {
  float f = __uint2float_rn(min(tf_less_1, GPUIR__CAP - 1) + 1);
  uint32_t c = __float2uint_rn(gc_divide(__fmul_rn(weight, f), __fadd_rn(f, norm)));
  return c ? c : 1;
}

/* Returns a document's length. */
static __device__ __forceinline__ uint32_t gc_length(const gc_view &v, uint32_t doc) {
  return v.lengths16 ? __ldg(v.lengths16 + doc) : __ldg(v.lengths + doc);
}

/* Returns a document's K of BM25 under the job's k1 and b. */
static __device__ __forceinline__ float gc_norm(const gc_view &v, const gc_job &j, uint32_t doc) {
  return gpuir__norm_of(j.norm_a, j.norm_b, gc_length(v, doc));
}
