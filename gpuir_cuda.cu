/* gpuir_cuda.cu - the CUDA backend of gpuir.h
 *
 * Answers batches of ranked queries on an NVIDIA GPU with the same bits as the CPU. Compile it with nvcc
 * against the same gpuir.h and link the object from C:
 *
 *     nvcc -O3 -arch=sm_90 \
 *          -Xcompiler -fno-exceptions,-fno-rtti,-fno-threadsafe-statics -c gpuir_cuda.cu -o gpuir_cuda.o
 *     cc main.o gpuir_cuda.o -lcudart_static -ldl -lrt -lpthread -lm
 *
 * The declarations stand in section 10 of gpuir.h. From top to bottom:
 *
 *   1  what the host and the kernels share      5  AND
 *   2  decoding; recoding as bp128              6  OR by MaxScore
 *   3  expansion of the long lists              7  top-k: selection among packed keys
 *   4  OR: tile bounds, tile order, tiles       8  the host: opening, batches, statistics
 *   9  the laboratory: the literature's methods of decoding, intersecting and ranking; 10  searching by them
 *
 * WHERE THE INDEX LIES. The sections of the index are uploaded as they lie in the file; if a list is in another codec
 * than bp128, all lists are sent as they are and become bp128 on the device (part 2), the bytes that the builder would
 * have made of them, so that no kernel but that one knows of codecs. What the memory bound allows is made of the long
 * lists besides, once, when the device is opened:
 *   guides, 1.4 to 2.8 bytes a posting: a list's marks (a bit for some documents: may it hold one of these? and for
 *     96 of these bits, how many postings stand before them) and, for spans of documents, the greatest contribution
 *     there. AND and MaxScore pass over most postings by them;
 *   expanded lists, 6.1 bytes a posting more: docIDs of 16 bits relative to their block, and contributions under the
 *     stored k1 and b. Adding a posting then takes about a third of the instructions that decoding it in place does.
 * An index that does not fit is kept in its file, and lists are transferred when they are needed (part 8, the cache).
 * Everything on the device counts against the bound, the memory of attached searchers too.
 *
 * WHY THE BITS ARE THE CPU'S. A contribution is one multiplication, one addition, one division and one rounding in
 * binary32, each rounded as IEEE 754 says; scores are integer sums, which have no order.
 */
#define GPUIR_STATIC
#define GPUIR_NO_SIMD
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <functional>

/* ============================================================================
 * 1  What the host and the kernels share
 * ==========================================================================*/

#define GC_NONE UINT32_MAX
#define GC_TILE_MOST 24576u    /* documents a tile at most: two blocks of threads share 227 KB */
#define GC_OR_WORKERS 256u     /* threads that score; one warp more looks ahead */
#define GC_PACKED_WORKERS 384u /* the same where blocks are decoded: more of them, as each waits longer */
#define GC_AHEAD 3u            /* blocks that a warp has on their way at once */
#define GC_OR_THREADS(X) ((X) ? GC_OR_WORKERS + 32u : GC_PACKED_WORKERS + 32u)
#define GC_KEYS 1024u /* survivors of a tile that are selected among in shared memory */
#define GC_AND_THREADS 256u
#define GC_CHUNK 2048u /* blocks of a list whose bounds one block of threads spreads over tiles */
#define GC_FINAL_THREADS 256u
#define GC_K_MOST 10000u
#define GC_SAMPLES 128u  /* driver blocks of a long AND that are taken first, for a threshold */
#define GC_BP128 2u      /* codec id */
#define GC_PAD 1024u     /* zeros behind each section: what a damaged block may read there */
#define GC_CAP 0xffffffu /* GPUIR__CAP */
#define GC_BUCKETS 256u  /* of tile bounds */
#define GC_SPAN 10u      /* 2^10 documents at least are a span: the grain of stored bounds */
#define GC_SPAN_MOST 8u  /* postings a span on average at least */
#define GC_MARKS 8u      /* bits a posting at least of a list's marks */
#define GC_CELLS 96u     /* bits of a group of marks */
#define GC_MAX_THREADS 256u
#define GC_SIDE 2u                             /* documents that a lane follows side by side */
#define GC_QUEUE (GPUIR__BLOCK + 32 * GC_SIDE) /* documents that a warp has waiting */
#ifndef GC_FIRST
#define GC_FIRST 64u /* driver blocks that are taken first, for a threshold */
#endif
#ifndef GC_GROUP
#define GC_GROUP \
  8 /* driver blocks that a warp takes at once: few, or the last ones to end keep all waiting */
#endif
#define GC_ALL_BLOCKS 4 /* a multiprocessor at least, of gc_all and gc_max_first; 5 would spill registers */
#ifndef GC_MAX_BLOCKS
#define GC_MAX_BLOCKS 5 /* the same of gc_max */
#endif
#ifndef GC_PROBE_COST
#define GC_PROBE_COST 8u /* of following a posting through the other lists, in postings added to a tile */
#endif
#ifndef GC_TILE_COST
#define GC_TILE_COST 8u /* of a tile, in blocks added to it */
#endif

enum { GC_INLINE, GC_SHORT, GC_LONG };

/* A list, and what a query makes of it. */
typedef struct gc_term {
  uint64_t docs, docs_len, freqs, freqs_len; /* bytes in the sections; one posting: docID and frequency */
  uint64_t first_block;                      /* long lists */
  uint32_t df, nblocks, kind;
  uint32_t q;
  float weight;
  uint32_t negated;
  uint32_t slot; /* of the tile arrays */
  uint32_t most; /* its postings contribute at most that, q times */
  /* an expanded list's: */
  uint32_t row, span; /* where its peaks begin, one for 2^span documents */
  uint32_t step;      /* q times the unit of its peaks; 0: they are not to be used */
  uint32_t shift;
  uint64_t marks; /* its marks, a bit for 2^shift documents; in groups */
} gc_term;

/* One evaluation of a query in one mode. */
typedef struct gc_job {
  double norm_a, norm_b;
  uint32_t first_term, npositive, nterms; /* terms: positive ones by ascending df, then negated ones */
  uint32_t k, stored;                     /* stored: k1 and b are the index's */
  uint32_t any;                           /* 1: OR */
  uint32_t after; /* an OR that is needed only if this AND finds fewer than k; or GC_NONE */
  uint32_t seed;  /* a score that at least k documents reach, or 0 */
  uint32_t prune;
  uint32_t follow;   /* MaxScore may be the way */
  uint32_t fused;    /* norm_a + norm_b * length has no more than 53 bits, so that one rounding is left */
  uint32_t expanded; /* 1: all of its lists are, and stored is 1 */
} gc_job;

/* What a running job has come to. */
typedef struct gc_state {
  unsigned long long floor; /* only keys above it are of interest */
  uint32_t count;           /* candidates that were pushed; those beyond the buffer's room are lost */
  uint32_t level;           /* how often the floor was raised from the buffer */
  uint32_t next, live;      /* position in the tile order; tiles that any term touches */
  uint32_t greatest;        /* tile bound */
  uint32_t done;            /* its hits are out */
  uint32_t followed, zero;  /* an OR that goes by MaxScore, not by tiles */
} gc_state;

typedef struct gc_chunk {
  uint32_t job, term, first, zero; /* term: index in the batch */
} gc_chunk;

/* Counters of one launch. */
typedef struct gc_control {
  uint32_t next_or, next_drive, next_and, pad;
  unsigned long long drives; /* entries of that work list << 40 | groups of blocks */
} gc_control;

/* A list whose postings drive a MaxScore evaluation. */
typedef struct gc_drive {
  uint32_t job, term; /* term: of the job */
} gc_drive;

/* The index on the device. */
typedef struct gc_view {
  const uint32_t *docids, *freqs; /* the streams, as words */
  const uint32_t *last, *docs_off, *freqs_off;
  const uint8_t *docs_width, *freqs_width;
  const gpuir__pair *bounds; /* GPUIR__BLOCK_PAIRS a block */
  const uint32_t *lengths;
  const uint16_t *brief; /* the same, if all are below 65536, instead */
  const uint2
      *bases; /* of an expanded block: what its 16-bit docIDs are relative to; its place in wide + 1, or 0 */
  const uint16_t *narrow;
  const uint32_t *wide;
  const uint32_t *impact; /* contributions under the stored k1 and b */
  const uint32_t *most;   /* guides: the greatest of a block */
  const uint4 *marks;     /* of a list: the documents that it holds, coarsely; see gc_find */
  const uint8_t *peaks;   /* the greatest contribution within the span, in steps */
  uint32_t documents, tile, ntiles;
  uint32_t docs_unit, freqs_unit; /* bytes */
} gc_view;

/* A batch on the device. */
typedef struct gc_batch {
  const gc_term *terms;
  const gc_job *jobs;
  gc_state *states;
  const gc_chunk *chunks;
  const uint32_t *and_jobs, *and_start,
      *or_jobs;                 /* and_start: first group of driver blocks of each, and one more */
  const uint32_t *sample_start; /* the same of the blocks that are taken first */
  const uint32_t *max_jobs;     /* OR jobs that MaxScore may answer */
  gc_drive *drives;
  uint32_t *drive_start; /* first group of each */
  uint32_t nchunks, njobs, nand, nor, nand_groups, nsamples, and_group, grab, nmax, drive_group, and_parts,
      max_parts;
  uint32_t *first, *bound; /* a slot: ntiles + 1 items */
  uint32_t *order, *total; /* a job: ntiles items */
  unsigned long long *cand;
  uint32_t room; /* candidates a job */
  gc_control *control;
  uint32_t *out;           /* a query: its count, then its hits (docID, score) */
  const uint2 *query_jobs; /* a query: its jobs, the second or GC_NONE */
  uint32_t out_stride;     /* in words */
} gc_batch;

/* ============================================================================
 * 2  Decoding: a warp has a block, lane t its values 4t to 4t+3
 * ==========================================================================*/

#define GC_ALL 0xffffffffu

static __device__ __forceinline__ uint32_t gc_lane(void) { return threadIdx.x & 31; }

static __device__ __forceinline__ uint32_t gc_mask(uint32_t n) { return n < 32 ? (1u << n) - 1 : ~0u; }

/* n <= 32 bits from bit `bit` on; touches the word behind. */
static __device__ __forceinline__ uint32_t gc_bits(const uint32_t *words, uint64_t bit, uint32_t n) {
  const uint32_t *p = words + (bit >> 5);
  return __funnelshift_r(__ldg(p), __ldg(p + 1), (uint32_t)bit & 31) & gc_mask(n);
}

/* Where the parts of a bp128 block stand. Nothing outside [at, end) is believed. */
typedef struct gc_packed {
  uint64_t at, map, high;      /* bytes: low parts; bitmap of exceptions; their high parts */
  uint32_t bits, high_bits, n; /* high_bits 0: no exceptions */
} gc_packed;

static __device__ __forceinline__ gc_packed gc_packed_at(const uint32_t *words, uint64_t at, uint64_t end,
                                                         uint32_t width, uint32_t n) {
  gc_packed p;
  uint32_t low;
  p.at = at;
  p.n = n;
  p.bits = width & 127;
  p.high_bits = 0;
  p.map = p.high = 0;
  low = n == GPUIR__BLOCK ? 16 * p.bits : (n * p.bits + 7) / 8;
  if (p.bits > 32 || at > end || low > end - at) {
    p.bits = 0;
    return p;
  }
  if (width & 128) {
    p.map = at + low;
    p.high = p.map + (n + 7) / 8 + 1;
    if (p.high <= end && p.bits < 32) p.high_bits = gc_bits(words, (p.high - 1) * 8, 8);
    if (p.high_bits > 32 - p.bits)
      p.high_bits = 0; /* at most 512 bytes, which GC_PAD holds at the very end */
  }
  return p;
}

/* Low parts: about 8 loads of 4 bytes, 4 funnel shifts. 12 instructions a row and 4 for its address. */
static __device__ __forceinline__ void gc_unpack(const uint32_t *words, const gc_packed &p, uint32_t v[4]) {
  uint32_t lane = gc_lane(), mask = gc_mask(p.bits), l;
  if (!p.bits) {
    v[0] = v[1] = v[2] = v[3] = 0;
  } else if (p.n == GPUIR__BLOCK) {
    uint32_t bit = lane * p.bits;
    const uint32_t *w = words + (p.at >> 2) + (bit >> 5) * 4;
#pragma unroll
    for (l = 0; l < 4; l++) v[l] = __funnelshift_r(__ldg(w + l), __ldg(w + 4 + l), bit & 31) & mask;
  } else {
#pragma unroll
    for (l = 0; l < 4; l++)
      v[l] = 4 * lane + l < p.n ? gc_bits(words, p.at * 8 + (uint64_t)(4 * lane + l) * p.bits, p.bits) : 0;
  }
  if (p.high_bits) { /* the same for all lanes */
    uint32_t mine = 4 * lane < p.n ? gc_bits(words, p.map * 8 + 4 * lane, min(4u, p.n - 4 * lane)) : 0;
    uint32_t below = (1u << lane) - 1, rank = 0;
#pragma unroll
    for (l = 0; l < 4; l++) rank += __popc(__ballot_sync(GC_ALL, mine >> l & 1) & below);
#pragma unroll
    for (l = 0; l < 4; l++)
      if (mine >> l & 1) {
        v[l] |= gc_bits(words, p.high * 8 + (uint64_t)rank * p.high_bits, p.high_bits) << p.bits;
        rank++;
      }
  }
}

/* Value i < n alone, each lane its own. */
static __device__ uint32_t gc_value(const uint32_t *words, const gc_packed &p, uint32_t i) {
  uint32_t v = 0;
  if (p.bits && p.n == GPUIR__BLOCK) {
    uint32_t bit = i / 4 * p.bits;
    const uint32_t *w = words + (p.at >> 2) + (bit >> 5) * 4 + i % 4;
    v = __funnelshift_r(__ldg(w), __ldg(w + 4), bit & 31) & gc_mask(p.bits);
  } else if (p.bits) {
    v = gc_bits(words, p.at * 8 + (uint64_t)i * p.bits, p.bits);
  }
  if (p.high_bits && gc_bits(words, p.map * 8 + i, 1)) {
    uint32_t rank = 0, j;
    for (j = 0; j < i; j += 32) rank += __popc(gc_bits(words, p.map * 8 + j, min(32u, i - j)));
    v |= gc_bits(words, p.high * 8 + (uint64_t)rank * p.high_bits, p.high_bits) << p.bits;
  }
  return v;
}

static __device__ __forceinline__ uint32_t gc_block_len(const gc_term &t, uint32_t block) {
  return min(GPUIR__BLOCK, t.df - block * GPUIR__BLOCK);
}

static __device__ __forceinline__ gc_packed gc_docs_block(const gc_view &v, const gc_term &t,
                                                          uint32_t block) {
  if (t.kind == GC_LONG) {
    uint64_t g = t.first_block + block;
    return gc_packed_at(v.docids, t.docs + (uint64_t)__ldg(v.docs_off + g) * v.docs_unit, t.docs + t.docs_len,
                        __ldg(v.docs_width + g), gc_block_len(t, block));
  }
  return gc_packed_at(v.docids, t.docs + 1, t.docs + t.docs_len, gc_bits(v.docids, t.docs * 8, 8), t.df);
}

static __device__ __forceinline__ gc_packed gc_freqs_block(const gc_view &v, const gc_term &t,
                                                           uint32_t block) {
  if (t.kind == GC_LONG) {
    uint64_t g = t.first_block + block;
    return gc_packed_at(v.freqs, t.freqs + (uint64_t)__ldg(v.freqs_off + g) * v.freqs_unit,
                        t.freqs + t.freqs_len, __ldg(v.freqs_width + g), gc_block_len(t, block));
  }
  return gc_packed_at(v.freqs, t.freqs + 1, t.freqs + t.freqs_len, gc_bits(v.freqs, t.freqs * 8, 8), t.df);
}

/* Gaps to docIDs: 4 additions, a scan of 5 shuffles. */
static __device__ __forceinline__ void gc_sum(uint32_t v[4], uint32_t prev, uint32_t limit) {
  uint32_t lane = gc_lane(), sum, i;
  v[0] += 1;
  v[1] += v[0] + 1;
  v[2] += v[1] + 1;
  v[3] += v[2] + 1;
  sum = v[3];
#pragma unroll
  for (i = 1; i < 32; i *= 2) {
    uint32_t other = __shfl_up_sync(GC_ALL, sum, i);
    if (lane >= i) sum += other;
  }
  prev += sum - v[3];
#pragma unroll
  for (i = 0; i < 4; i++) v[i] = min(prev + v[i], limit);
}

/* The docIDs of a block, below `documents` whatever the file says; those behind its n are of no use. Returns n.
 * About 45 instructions: unpacking, three additions, a scan over the warp of 5 shuffles. */
static __device__ uint32_t gc_decode_docs(const gc_view &v, const gc_term &t, uint32_t block, uint32_t d[4]) {
  uint32_t prev = UINT32_MAX, most = v.documents - 1;
  if (t.kind == GC_INLINE) {
    d[0] = d[1] = d[2] = d[3] = min((uint32_t)t.docs, most);
    return 1;
  }
  if (block) prev = __ldg(v.last + t.first_block + block - 1);
  gc_unpack(v.docids, gc_docs_block(v, t, block), d);
  gc_sum(d, prev, most);
  return gc_block_len(t, block);
}

/* The frequencies of a block, each less one. */
static __device__ __forceinline__ void gc_decode_freqs(const gc_view &v, const gc_term &t, uint32_t block,
                                                       uint32_t f[4]) {
  if (t.kind == GC_INLINE)
    f[0] = f[1] = f[2] = f[3] = (uint32_t)t.freqs - 1;
  else
    gc_unpack(v.freqs, gc_freqs_block(v, t, block), f);
}

/* The frequency of posting i, less one. */
static __device__ uint32_t gc_freq(const gc_view &v, const gc_term &t, uint32_t i) {
  if (t.kind == GC_INLINE) return (uint32_t)t.freqs - 1;
  return gc_value(v.freqs, gc_freqs_block(v, t, i / GPUIR__BLOCK), i % GPUIR__BLOCK);
}

/* x / y as IEEE 754 rounds it, for 0 or 2^-60 < x < 2^60 and 2^-30 < y < 2^60, where nothing can overflow or vanish on
 * the way: the steps of __fdiv_rn without its test for other operands. 8 instructions. */
static __device__ __forceinline__ float gc_divide(float x, float y) {
  float r, q;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(y));
  r = __fmaf_rn(r, __fmaf_rn(-y, r, 1), r);
  q = __fmul_rn(x, r);
  q = __fmaf_rn(__fmaf_rn(-y, q, x), r, q);
  return __fmaf_rn(__fmaf_rn(-y, q, x), r, q);
}

/* c = max(1, round(W * tf / (tf + K))), see part 3 of gpuir.h: 4 roundings, in its order. */
static __device__ __forceinline__ uint32_t gc_contribution(float weight, uint32_t tf_less_1, float norm) {
  float f = __uint2float_rn(min(tf_less_1, GC_CAP - 1) + 1);
  uint32_t c = __float2uint_rn(gc_divide(__fmul_rn(weight, f), __fadd_rn(f, norm)));
  return c ? c : 1;
}

static __device__ __forceinline__ uint32_t gc_length(const gc_view &v, uint32_t doc) {
  return v.brief ? __ldg(v.brief + doc) : __ldg(v.lengths + doc);
}

static __device__ __forceinline__ float gc_norm(const gc_view &v, const gc_job &j, uint32_t doc) {
  return gpuir__norm_of(j.norm_a, j.norm_b, gc_length(v, doc));
}

/* ---- decoding a block of any codec, as the laboratory does ---- */

enum {
  GCL_VBYTE = 1,
  GCL_BP128,
  GCL_PFD,
  GCL_NEWPFD,
  GCL_OPTPFD,
  GCL_EF,
  GCL_QS,
  GCL_RICE,
  GCL_PFL,
  GCL_PARA,
  GCL_LRC,
  GCL_LRCSEG,
  GCL_SEGLRC,
  GCL_HSLRC,
  GCL_PLAIN = 99 /* not coded */
};

/* A list on the device, in any codec. */
typedef struct gc_coded {
  gpuir__stream s;      /* device addresses; without codec and scratch */
  const uint32_t *docs; /* the laboratory's: the list as it is */
  uint32_t nblocks, number;
  const uint8_t *slots;                  /* pfd-list: its first level, `number` exceptions, */
  const uint32_t *overflows, *positions; /* which have been decoded before */
  uint32_t bits;
} gc_coded;

/* Inclusive sum over the warp. */
static __device__ __forceinline__ uint32_t gcl_scan(uint32_t x) {
  uint32_t lane = gc_lane(), i;
#pragma unroll
  for (i = 1; i < 32; i *= 2) {
    uint32_t other = __shfl_up_sync(GC_ALL, x, i);
    if (lane >= i) x += other;
  }
  return x;
}

/* gpuir__packed_value of what begins less than 2^32 bits behind p: 2 words and a funnel shift. */
static __device__ __forceinline__ uint32_t gcl_packed(const uint8_t *p, unsigned w, uint32_t i) {
  const uint32_t bit = ((uint32_t)(uintptr_t)p & 3) * 8 + i * w;
  const uint32_t *words = (const uint32_t *)((uintptr_t)p & ~(uintptr_t)3) + (bit >> 5);
  return __funnelshift_r(words[0], words[1], bit) & gc_mask(w);
}

/* Packed values from .. from + count - 1 of w bits; those behind are 0. Four values of up to 14 bits are one load of
 * 8 bytes: 3 words and 2 funnel shifts. */
static __device__ __forceinline__ void gcl_slots(const uint8_t *p, unsigned w, uint64_t from, uint32_t count,
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
  for (i = 0; i < 4; i++) v[i] = first + i < count ? gcl_packed(p, w, (uint32_t)(from & 7) + first + i) : 0;
}

/* Exceptions: high parts gathered in shared memory, 128 words. */
static __device__ __forceinline__ void gcl_patch_begin(uint32_t *sh) {
  __syncwarp();
  *(uint4 *)(sh + 4 * gc_lane()) = make_uint4(0, 0, 0, 0);
  __syncwarp();
}

static __device__ __forceinline__ void gcl_patch_end(const uint32_t *sh, uint32_t v[4]) {
  uint4 x;
  __syncwarp();
  x = *(const uint4 *)(sh + 4 * gc_lane());
  v[0] |= x.x;
  v[1] |= x.y;
  v[2] |= x.z;
  v[3] |= x.w;
}

/* gpuir__unary_marks by a warp: 16 bits a lane, whose marks each lane writes behind those of the lanes before. 64
 * bytes a round; about 40 instructions and 6 for each mark of the fullest lane. */
static __device__ __forceinline__ void gcl_marks(const gpuir__unary &u, uint64_t start, uint64_t rank,
                                                 uint32_t count, uint32_t *pos) {
  uint64_t at = start / 8;
  uint32_t got = 0, lane = gc_lane(), empty = 0, i;
  __syncwarp();
  while (got < count && at < u.bytes && empty < 8) {
    const uint64_t byte = at + 2 * lane;
    uint32_t x = 0, n, before, total;
    if (byte < u.bytes) {
      x = (gpuir__load32(u.bits + byte) ^ (uint32_t)u.flip) & (u.bytes - byte == 1 ? 0xffu : 0xffffu);
      if (byte * 8 < start) x &= ~0u << (start & 7);
    }
    n = __popc(x);
    before = gcl_scan(n);
    total = __shfl_sync(GC_ALL, before, 31);
    before += got - n;
    for (; x; x &= x - 1, before++)
      if (before < count) pos[before] = (uint32_t)(byte * 8 - start) + __ffs((int)x) - 1;
    got += total;
    at += 64;
    empty = total ? 0 : empty + 1;
    if (!total && u.sums) { /* a long gap: where the next mark is, the sums say */
      uint64_t c = at * 8 >> u.log;
      if (c >= u.nsums) break;
      c = gpuir__unary_piece(&u, c, u.nsums, rank + got);
      at = gpuir__max64(at, (c << u.log) / 8);
    }
  }
  for (i = got + lane; i < count; i += 32) pos[i] = 0;
  __syncwarp();
}

/* vbyte: each lane looks at 4 bytes and notes where values end. 1 to 1.3 bytes a value; predicted 160 instructions,
 * counted 462, the scans of ends and the loop over them among them. Measured to memory: 259 G values/s. */
static __device__ __forceinline__ void gcl_vbyte(const gpuir__stream &s, uint32_t block, uint32_t count,
                                                 uint32_t *ends, uint32_t v[4]) {
  const uint64_t begin = s.offset ? gpuir__min64(s.offset[block], s.len) : 0, avail = s.len - begin;
  const uint8_t *p = s.bytes + begin;
  uint32_t got = 0, base = 0, lane = gc_lane(), i;
  __syncwarp();
  while (got < count && base < avail) {
    uint32_t byte = base + 4 * lane, e = 0, n, before, total;
    if (byte < avail) {
      e = ~gpuir__load32(p + byte) & 0x80808080u;
      if (avail - byte < 4) e &= (1u << (8 * (uint32_t)(avail - byte))) - 1;
    }
    n = __popc(e);
    before = gcl_scan(n);
    total = __shfl_sync(GC_ALL, before, 31);
    if (!total) break; /* damaged: no value is that long */
    base += 128;
    before += got - n;
    got += total;
    for (; e; e &= e - 1, before++)
      if (before < count) ends[before] = byte + (uint32_t)__ffs((int)e) / 8;
  }
  got = min(got, count);
  __syncwarp();
#pragma unroll
  for (i = 0; i < 4; i++) {
    uint32_t at = 4 * lane + i, start = at && at < got ? ends[at - 1] : 0;
    v[i] = at < got ? gpuir__vbyte_value(p + start, ends[at] - start) : 0;
  }
}

/* Which of a lane's values a chain of linked exceptions visits, from value `first` on, each being as far from the one
 * before as that one's slot says, plus one. Short chains are followed, which takes a shared load for each link. Of long
 * ones each value learns where 1, 2, 4, ... links lead to, while those that are visited mark where they lead:
 * 7 rounds at most, of 40 instructions. What is marked behind the chain's end has a rank beyond its length. */
static __device__ __forceinline__ uint32_t gcl_chain(uint32_t first, uint32_t number, uint32_t count,
                                                     const uint32_t v[4], uint32_t *sh) {
  const uint32_t mark = 1u << 31, end = GPUIR__BLOCK, own = 4 * gc_lane();
  uint32_t e, i, next[4], seen = 0;
  __syncwarp();
#pragma unroll
  for (i = 0; i < 4; i++) {
    next[i] = v[i] < end ? min(own + i + v[i] + 1, end) : end;
    sh[own + i] = next[i] | (own + i == first ? mark : 0);
  }
  __syncwarp();
  if (number <= 12) {
    for (e = 0; e < number && first < count; e++) {
      if (first / 4 == gc_lane()) seen |= 1u << (first & 3);
      first = sh[first] & ~mark;
    }
    return seen;
  }
  for (e = 1; e < number; e *= 2) {
    seen = 0;
#pragma unroll
    for (i = 0; i < 4; i++)
      if (next[i] < end && (sh[own + i] & mark)) seen |= 1u << i;
    __syncwarp();
#pragma unroll
    for (i = 0; i < 4; i++)
      if (seen >> i & 1) atomicOr(sh + next[i], mark);
    __syncwarp();
#pragma unroll
    for (i = 0; i < 4; i++)
      if (next[i] < end) next[i] = sh[next[i]] & ~mark;
    __syncwarp();
#pragma unroll
    for (i = 0; i < 4; i++) sh[own + i] = (sh[own + i] & mark) | next[i];
    __syncwarp();
  }
  seen = 0;
#pragma unroll
  for (i = 0; i < 4; i++)
    if (own + i < count && (sh[own + i] & mark)) seen |= 1u << i;
  return seen;
}

/* pfd, newpfd, optpfd. Linked exceptions are a chain: gcl_chain finds them, then each lane fetches its own.
 * Predicted: 60 instructions without exceptions, 100 with exceptions apart, 130 with marked ones, 12 more for each
 * linked one; counted 360 on average of the three. Measured to memory, random and clustered docIDs: pfd 266 and 145 G
 * values/s, newpfd 346 and 364, optpfd 288 and 320. */
static __device__ __forceinline__ void gcl_pfd(const gpuir__stream &s, uint32_t block, uint32_t count,
                                               uint32_t *sh, uint32_t v[4]) {
  uint32_t lane = gc_lane(), i, e;
  gpuir__pfd_block p;
  gpuir__pfd_find(&s, block, count, &p);
  gcl_slots(p.slots, p.b, 0, count, v);
  if (p.form == GPUIR__PFD_LINKED) {
    const uint32_t mine = gcl_chain(p.first, p.number, count, v, sh);
    uint32_t rank = gcl_scan(__popc(mine)) - __popc(mine);
#pragma unroll
    for (i = 0; i < 4; i++) {
      if ((mine >> i & 1) && rank < p.number) v[i] = gpuir__pfd_linked(&p, rank);
      rank += mine >> i & 1;
    }
  } else if (p.form == GPUIR__PFD_APART && p.b < 32) {
    gcl_patch_begin(sh);
    for (e = lane; e < p.number; e += 32)
      atomicOr(sh + gpuir__packed_value(p.positions, 7, e), gpuir__packed_value(p.overflows, p.h, e) << p.b);
    gcl_patch_end(sh, v);
  } else if (p.form == GPUIR__PFD_MARKED) {
#pragma unroll
    for (i = 0; i < 4; i++) v[i] |= gpuir__bp128_high_of(&p.marked, 4 * lane + i);
  }
}

/* Values from .. from + take - 1 of a segment, to the values `done` and so on of the block. */
static __device__ __forceinline__ void gcl_para(const gpuir__para &p, uint32_t from, uint32_t done,
                                                uint32_t take, uint32_t *sh, uint32_t x[4]) {
  const uint32_t lane = gc_lane(), first = 4 * lane - done;
  uint32_t i, e;
  if (p.b <= 14) { /* as in gcl_slots, but the first of the four may lie before */
    const uint32_t a = 4 * lane < done ? 0 : first, bit = (from + a) * p.b;
    uint64_t y = a < take ? gpuir__load64(p.slots + bit / 8) >> bit % 8 : 0;
#pragma unroll
    for (i = 0; i < 4; i++) {
      const bool in = first + i < take;
      x[i] = in ? (uint32_t)y & gc_mask(p.b) : 0;
      y >>= in ? p.b : 0;
    }
  } else {
#pragma unroll
    for (i = 0; i < 4; i++) x[i] = first + i < take ? gcl_packed(p.slots, p.b, from + first + i) : 0;
  }
  if (p.en && p.b < 32) {
    gcl_patch_begin(sh);
    for (e = lane; e - lane < p.en; e += 32) { /* indices increase: at most one round reaches behind */
      const uint32_t at = e < p.en ? gcl_packed(p.indices, p.ib, e) : UINT32_MAX;
      if (at - from < take) atomicOr(sh + done + at - from, gcl_packed(p.overflows, p.hb, e) << p.b);
      if (__any_sync(GC_ALL, at >= from + take)) break;
    }
    gcl_patch_end(sh, x);
  }
}

/* parapfor. Predicted 90 instructions, 60 more with exceptions; counted 355. Measured to memory, random and clustered
 * docIDs: 285 and 282 G values/s. */
static __device__ __forceinline__ void gcl_parapfor(const gpuir__stream &s, uint32_t block, uint32_t count,
                                                    uint32_t *sh, uint32_t v[4]) {
  uint32_t lane = gc_lane(), first = block * GPUIR__BLOCK, done = 0, i, start = 0, from = 0, size = 256;
  uint64_t at = 0;
  if (s.offset) {
    size = 1u << (s.len && s.bytes[0] >= 6 && s.bytes[0] <= 8 ? s.bytes[0] : 8);
    at = gpuir__min64(s.offset[block], s.len);
    start = first & ~(size - 1);
    from = first - start;
  }
  while (done < count) {
    uint32_t length = min(size, s.n - start), take = min(length - from, count - done), x[4];
    gpuir__para p;
    at += gpuir__para_find(s.bytes + at, s.len - at, length, &p);
    gcl_para(p, from, done, take, sh, x);
#pragma unroll
    for (i = 0; i < 4; i++)
      if (4 * lane + i - done < take) v[i] = x[i];
    done += take;
    start += length;
    from = 0;
  }
}

/* A piece of a block: deviations and their line. */
static __device__ __forceinline__ void gcl_line_piece(const gpuir__line &line, uint32_t base,
                                                      const gpuir__para &p, uint32_t from, uint32_t done,
                                                      uint32_t take, uint32_t limit, uint32_t *sh,
                                                      uint32_t v[4]) {
  uint32_t x[4], i;
  gcl_para(p, from, done, take, sh, x);
#pragma unroll
  for (i = 0; i < 4; i++) {
    uint32_t at = 4 * gc_lane() + i - done;
    if (at < take) v[i] = min(x[i] + gpuir__line_at(&line, base + at), limit);
  }
}

/* lrc, lrcseg, seglrc: no sum to wait for. Predicted 110 instructions, 40 of them for headers; counted 323, 343 and
 * 306. Measured to memory: 296, 285 and 313 G values/s. */
static __device__ __forceinline__ void gcl_lrc(const gpuir__stream &s, int kind, uint32_t block,
                                               uint32_t count, uint32_t *sh, uint32_t v[4]) {
  uint32_t first = block * GPUIR__BLOCK, start, from, done = 0;
  uint64_t at = s.offset ? gpuir__min64(s.offset[block], s.len) : 0;
  gpuir__lrc_list list;
  (void)gpuir__lrc_find(&s, kind, &list);
  start = first & ~(list.size - 1);
  from = first - start;
  while (done < count) {
    uint32_t length = min(list.size, s.n - start), take = min(length - from, count - done), base;
    gpuir__line line;
    gpuir__para p;
    at = gpuir__lrc_segment(&s, kind, &list, at, start, length, &line, &base, &p);
    gcl_line_piece(line, base + from, p, from, done, take, s.limit, sh, v);
    done += take;
    start += length;
    from = 0;
  }
}

/* hslrc: a block reaches over 1 to 2 buckets, more where docIDs crowd unevenly; predicted 130 instructions each,
 * counted 669 a block. Each lane fetches where one of the next 32 buckets begins. Measured to memory, random and
 * clustered docIDs: 153 and 142 G values/s; 107 to 136 where exceptions are forced on six tenths or none. */
static __device__ __forceinline__ void gcl_hslrc(const gpuir__stream &s, uint32_t block, uint32_t count,
                                                 uint32_t *sh, uint32_t v[4]) {
  const uint32_t start = block * GPUIR__BLOCK, lane = gc_lane();
  uint32_t done = 0, h, begins;
  gpuir__hslrc_list list;
  if (!s.offset) {
    gcl_lrc(s, GPUIR__SEGLRC, block, count, sh, v);
    return;
  }
  v[0] = v[1] = v[2] = v[3] = 0;
  (void)gpuir__hslrc_find(&s, &list);
  h = s.offset[block];
  if (h >= list.buckets) return; /* damaged */
  begins = gpuir__hslrc_first(&list, min(h + lane, list.buckets));
  while (done < count) {
    const uint32_t i = start + done;
    uint32_t behind = __ballot_sync(GC_ALL, begins > i), k, first, size, take;
    gpuir__line line;
    gpuir__para p;
    if (!behind || behind & 1) { /* more than 31 empty ones, or damaged */
      h = gpuir__hslrc_bucket(&list, h, i);
      if (h >= list.buckets) return;
      begins = gpuir__hslrc_first(&list, min(h + lane, list.buckets));
      behind = 2;
    }
    k = __ffs((int)behind) - 2;
    first = __shfl_sync(GC_ALL, begins, k);
    size = __shfl_sync(GC_ALL, begins, k + 1) - first;
    gpuir__hslrc_segment(&list, h + k, size, i - first, &line, &p);
    take = min(min(size - (i - first), count - done), GPUIR__PARA_MOST - (i - first) % GPUIR__PARA_MOST);
    gcl_line_piece(line, i - first, p, (i - first) % GPUIR__PARA_MOST, done, take, s.limit, sh, v);
    done += take;
  }
}

/* ef and qs: 12 bits a lane would do for a partition's unary part. Predicted 150 instructions; counted 414 and 508,
 * as gcl_marks takes the unary part apart bit by bit. Measured to memory, random and clustered docIDs: ef 272 and 292 G
 * values/s, qs 212 and 192. */
static __device__ __forceinline__ void gcl_ef(const gpuir__stream &s, uint32_t block, uint32_t count,
                                              uint32_t prev, uint32_t *sh, uint32_t v[4]) {
  uint32_t i, first = 4 * gc_lane();
  gpuir__unary u;
  unsigned b;
  const uint8_t *low = gpuir__ef_find(&s, block, count, &b, &u);
  gcl_slots(low, b, 0, count, v);
  gcl_marks(u, 0, 0, count, sh);
#pragma unroll
  for (i = 0; i < 4; i++)
    v[i] = min(gpuir__joined(first + i < count ? sh[first + i] : 0, first + i, b, v[i], prev + 1), s.limit);
}

static __device__ __forceinline__ void gcl_qs(const gpuir__stream &s, uint32_t block, uint32_t count,
                                              uint32_t *sh, uint32_t v[4]) {
  const uint64_t at = (uint64_t)block * GPUIR__BLOCK;
  uint32_t i, first = 4 * gc_lane();
  gpuir__halves h;
  (void)gpuir__halves_find(&s, GPUIR__QS_LOG, 0, &h);
  gcl_slots(h.low, h.b, at, count, v);
  gcl_marks(h.unary, gpuir__halves_start(&s, block), at, count, sh);
#pragma unroll
  for (i = 0; i < 4; i++)
    v[i] = min(gpuir__joined(first + i < count ? sh[first + i] : 0, first + i, h.b, v[i],
                             (s.offset ? s.offset[block] : 0) << h.b),
               s.limit);
}

/* rice: ef's instructions and a scan; counted 566. 190 G values/s, 175 of clustered docIDs. The two prefix sums are
 * localized by the directory (Ding et al. 2009, 6.1). */
static __device__ __forceinline__ void gcl_rice(const gpuir__stream &s, uint32_t block, uint32_t count,
                                                uint32_t prev, bool sum, uint32_t *sh, uint32_t v[4]) {
  const uint64_t at = (uint64_t)block * GPUIR__BLOCK;
  uint32_t i, first = 4 * gc_lane();
  gpuir__halves h;
  (void)gpuir__halves_find(&s, GPUIR__RICE_LOG, 1, &h);
  gcl_slots(h.low, h.b, at, count, v);
  gcl_marks(h.unary, gpuir__halves_start(&s, block), at, count, sh);
  if (sum) gc_sum(v, prev, UINT32_MAX);
#pragma unroll
  for (i = 0; i < 4; i++)
    v[i] = min(gpuir__joined(first + i < count ? sh[first + i] : 0, first + i, h.b, 0, v[i]), s.limit);
}

/* pfd-list: one width for all. Its exceptions have been decoded before (gcl_pfl_node, or gcl_pfl_tiles and
 * gcl_pfl_exceptions: 35 instructions for 128 values of the list); counted without that 200. Measured with it: 365 and
 * 259 G values/s in many lists; in a single one 40 of 1 M docIDs, 144 of 10 M. */
static __device__ __forceinline__ void gcl_pfl(const gc_coded &l, uint32_t block, uint32_t count,
                                               uint32_t *sh, uint32_t v[4]) {
  const uint32_t first = block * GPUIR__BLOCK;
  uint32_t e, end;
  gcl_slots(l.slots, l.bits, first, count, v);
  if (!l.number) return;
  e = l.s.offset ? min(l.s.offset[block], l.number) : 0;
  end = l.s.offset && block + 1 < l.nblocks ? min(l.s.offset[block + 1], l.number) : l.number;
  end = min(end, e + GPUIR__BLOCK); /* whatever the directory says */
  gcl_patch_begin(sh);
  for (e += gc_lane(); e < end; e += 32) {
    uint32_t at = l.positions[e] - first;
    if (at < count) atomicOr(sh + at, l.overflows[e] << l.bits);
  }
  gcl_patch_end(sh, v);
}

/* Finds a block's low bits, and its exceptions; without any, h and the marks are 0. */
static __device__ __forceinline__ void gcl_view(const gpuir__stream &s, uint32_t block, uint32_t count,
                                                gpuir__bp128_view *v) {
  uint64_t left;
  unsigned b;
  const uint8_t *low = gpuir__bp128_block(&s, block, count, &b, &left);
  if (left && gpuir__bp128_open(low, b, left, count, v)) return;
  v->low = v->high = low;
  v->b = b;
  v->h = 0;
  v->marks[0] = v->marks[1] = 0;
}

/* One block of bp128, without what gcl_decode_bp128 does to keep loads in flight. */
static __device__ __forceinline__ void gcl_bp128(const gpuir__stream &s, uint32_t block, uint32_t count,
                                                 uint32_t v[4]) {
  uint32_t i, first = 4 * gc_lane();
  gpuir__bp128_view view;
  gcl_view(s, block, count, &view);
#pragma unroll
  for (i = 0; i < 4; i++) {
    const uint32_t at = first + i;
    v[i] = 0;
    if (at >= count) continue;
    v[i] = count == GPUIR__BLOCK ? gpuir__bp128_value(view.low, view.b, at)
                                 : gpuir__packed_value(view.low, view.b, at);
    if (view.h) v[i] |= gpuir__bp128_high_of(&view, at);
  }
}

/* The docIDs of a block, or without SUM its gaps where the codec has gaps; sh: 128 words of the warp's own. Returns
 * how many there are; v[] behind them is unspecified. */
template <int C, bool SUM>
static __device__ __forceinline__ uint32_t gcl_block(const gc_coded &l, uint32_t block, uint32_t *sh,
                                                     uint32_t v[4]) {
  const gpuir__stream &s = l.s;
  const uint32_t count = gpuir__block_count(s.n, block);
  const uint32_t prev = block ? s.last[block - 1] : UINT32_MAX;
  if (C == GCL_PLAIN) {
    uint4 x = __ldg((const uint4 *)(l.docs + (uint64_t)block * GPUIR__BLOCK) + gc_lane());
    v[0] = x.x;
    v[1] = x.y;
    v[2] = x.z;
    v[3] = x.w;
  } else if (C == GCL_VBYTE) {
    gcl_vbyte(s, block, count, sh, v);
  } else if (C == GCL_BP128) {
    gcl_bp128(s, block, count, v);
  } else if (C == GCL_OPTPFD) { /* and pfd and newpfd */
    gcl_pfd(s, block, count, sh, v);
  } else if (C == GCL_EF) {
    gcl_ef(s, block, count, prev, sh, v);
  } else if (C == GCL_QS) {
    gcl_qs(s, block, count, sh, v);
  } else if (C == GCL_RICE) {
    gcl_rice(s, block, count, prev, SUM, sh, v);
  } else if (C == GCL_PFL) {
    gcl_pfl(l, block, count, sh, v);
  } else if (C == GCL_PARA) {
    gcl_parapfor(s, block, count, sh, v);
  } else if (C == GCL_HSLRC) {
    gcl_hslrc(s, block, count, sh, v);
  } else {
    gcl_lrc(s,
            C == GCL_LRC      ? GPUIR__LRC
            : C == GCL_LRCSEG ? GPUIR__LRCSEG
                              : GPUIR__SEGLRC,
            block, count, sh, v);
  }
  if (SUM && (C == GCL_VBYTE || C == GCL_BP128 || C == GCL_OPTPFD || C == GCL_PFL || C == GCL_PARA))
    gc_sum(v, prev, s.limit);
  return count;
}

/* ---- recoding as bp128: what the index holds in other codecs, on its way to the kernels ----
 * A warp decodes a block and packs it as gpuir__bp128_encode would, so that all below has one codec to deal with.
 * Twice: first for the blocks' sizes, of which gc_recode_offsets makes offsets, then to write them. */

/* A list as the index has it, on the device. */
typedef struct gc_source {
  gc_coded docs;
  gpuir__stream freqs;
  uint32_t docs_codec, freqs_codec;
} gc_source;

/* Where its bp128 goes: two streams of so many words, and the place of its first block in the directory, if it has
 * one. */
typedef struct gc_target {
  uint32_t *docs, *freqs;
  uint32_t docs_words, freqs_words;
  uint64_t entry;
} gc_target;

typedef struct gc_recoding {
  const gc_source *sources;
  const uint32_t *start; /* of each list: the blocks before it; and one more */
  const gc_target *targets;
  uint32_t nlists, nblocks, chunk; /* chunk: blocks that a warp takes at a time */
  uint32_t *docs_off, *freqs_off;  /* of each block: its words, then where they begin in the list */
  uint8_t *docs_width, *freqs_width;
  unsigned long long *words;                      /* of each list: of its docIDs, of its frequencies */
  uint32_t *to_last, *to_docs_off, *to_freqs_off; /* the directory */
  uint8_t *to_docs_width, *to_freqs_width;
} gc_recoding;

/* The docIDs of a block in whichever codec; those behind its n are unspecified. Returns n. */
static __device__ __forceinline__ uint32_t gc_any_docs(const gc_source &s, uint32_t block, uint32_t *sh,
                                                       uint32_t v[4]) {
  const gc_coded &l = s.docs;
  switch (s.docs_codec) {
    case GCL_VBYTE: return gcl_block<GCL_VBYTE, true>(l, block, sh, v);
    case GCL_PFD:
    case GCL_NEWPFD:
    case GCL_OPTPFD: return gcl_block<GCL_OPTPFD, true>(l, block, sh, v);
    case GCL_EF: return gcl_block<GCL_EF, true>(l, block, sh, v);
    case GCL_QS: return gcl_block<GCL_QS, true>(l, block, sh, v);
    case GCL_RICE: return gcl_block<GCL_RICE, true>(l, block, sh, v);
    case GCL_PFL: return gcl_block<GCL_PFL, true>(l, block, sh, v);
    case GCL_PARA: return gcl_block<GCL_PARA, true>(l, block, sh, v);
    case GCL_LRC: return gcl_block<GCL_LRC, true>(l, block, sh, v);
    case GCL_LRCSEG: return gcl_block<GCL_LRCSEG, true>(l, block, sh, v);
    case GCL_SEGLRC: return gcl_block<GCL_SEGLRC, true>(l, block, sh, v);
    case GCL_HSLRC: return gcl_block<GCL_HSLRC, true>(l, block, sh, v);
    default: return gcl_block<GCL_BP128, true>(l, block, sh, v);
  }
}

/* The frequencies of a block of `count`, each less one. */
static __device__ __forceinline__ void gc_any_freqs(const gc_source &s, uint32_t block, uint32_t count,
                                                    uint32_t *sh, uint32_t v[4]) {
  if (s.freqs_codec == GCL_VBYTE)
    gcl_vbyte(s.freqs, block, count, sh, v);
  else if (s.freqs_codec == GCL_BP128)
    gcl_bp128(s.freqs, block, count, v);
  else
    gcl_pfd(s.freqs, block, count, sh, v);
}

/* How a block is packed: low bits, bits of the high parts (0: no exceptions), bytes in all. */
typedef struct gc_form {
  uint32_t bits, high, bytes;
} gc_form;

/* gpuir__bp128_choose: lane b looks at b low bits. Values behind count are 0. sh: 33 words. About 80 instructions. */
static __device__ __forceinline__ gc_form gc_choose(const uint32_t v[4], uint32_t count, uint32_t unit,
                                                    uint32_t *sh) {
  const uint32_t lane = gc_lane(), up = unit - 1, fixed = (count + 7) / 8 + 1;
  const uint32_t w = gpuir__width32(__reduce_or_sync(GC_ALL, v[0] | v[1] | v[2] | v[3]));
  uint32_t least = (((count * w + 7) / 8 + up) & ~up) << 6, high, i; /* of bytes << 6 | bits of high parts */
  gc_form form;
  __syncwarp();
  sh[lane] = 0;
  if (!lane) sh[32] = 0;
  __syncwarp();
#pragma unroll
  for (i = 0; i < 4; i++) atomicAdd(sh + gpuir__width32(v[i]), 1);
  __syncwarp();
  high = sh[lane + 1]; /* becomes: how many are wider than the lane's number */
#pragma unroll
  for (i = 1; i < 32; i *= 2) {
    uint32_t other = __shfl_down_sync(GC_ALL, high, i);
    if (lane + i < 32) high += other;
  }
  if (lane < w) {
    const uint32_t bytes = (count * lane + 7) / 8 + fixed + (high * (w - lane) + 7) / 8;
    least = min(least, ((bytes + up) & ~up) << 6 | (w - lane));
  }
  least = __reduce_min_sync(GC_ALL, least);
  form.high = least & 63;
  form.bits = w - form.high;
  form.bytes = least >> 6;
  return form;
}

/* n <= 32 bits, into zeroed words. */
static __device__ __forceinline__ void gc_put_bits(uint32_t *sh, uint32_t bit, uint32_t value, uint32_t n) {
  const uint32_t shift = bit & 31;
  if (!value) return;
  atomicOr(sh + (bit >> 5), value << shift);
  if (shift + n > 32) atomicOr(sh + (bit >> 5) + 1, value >> (32 - shift));
}

/* Writes a block of at most 128 words, gathered in shared memory; `brief`: its width byte comes first. */
static __device__ __forceinline__ void gc_pack(const uint32_t v[4], uint32_t count, const gc_form &form,
                                               bool brief, uint32_t *to, uint32_t words, uint32_t *sh) {
  const uint32_t lane = gc_lane(), b = form.bits, mask = gc_mask(b), start = brief ? 8 : 0;
  uint32_t i, bit;
  __syncwarp();
  *(uint4 *)(sh + 4 * lane) = make_uint4(0, 0, 0, 0);
  __syncwarp();
  if (brief && !lane) gc_put_bits(sh, 0, b | (form.high ? GPUIR__BP128_EXCEPTIONS : 0), 8);
#pragma unroll
  for (i = 0; i < 4; i++) {
    const uint32_t low = v[i] & mask;
    if (count < GPUIR__BLOCK) {
      if (4 * lane + i < count) gc_put_bits(sh, start + (4 * lane + i) * b, low, b);
    } else if (low) {
      const uint32_t shift = lane * b & 31;
      uint32_t *word = sh + (lane * b >> 5) * 4 + i;
      atomicOr(word, low << shift);
      if (shift + b > 32) atomicOr(word + 4, low >> (32 - shift));
    }
  }
  if (form.high) {
    const uint32_t below = (1u << lane) - 1;
    uint32_t rank = 0, mine = 0;
#pragma unroll
    for (i = 0; i < 4; i++) {
      const uint32_t vote = __ballot_sync(GC_ALL, v[i] >> b);
      rank += __popc(vote & below);
      mine |= (vote >> lane & 1) << i;
    }
    bit = start + (count * b + 7) / 8 * 8;
    gc_put_bits(sh, bit + 4 * lane, mine, 4);
    bit += (count + 7) / 8 * 8;
    if (!lane) gc_put_bits(sh, bit, form.high, 8);
    bit += 8;
#pragma unroll
    for (i = 0; i < 4; i++)
      if (mine >> i & 1) gc_put_bits(sh, bit + rank++ * form.high, v[i] >> b, form.high);
  }
  __syncwarp();
  for (i = lane; i < words; i += 32) to[i] = sh[i];
}

/* The values of block g: its size and width, or its words at `to`, where there is room for so many in the list. Those
 * behind count become 0. */
template <bool WRITE>
static __device__ __forceinline__ void gc_recode_values(uint32_t v[4], uint32_t count, bool brief, uint64_t g,
                                                        uint32_t *off, uint8_t *width, uint32_t *to,
                                                        uint32_t room, uint32_t *sh) {
  const uint32_t lane = gc_lane();
  gc_form form;
  uint32_t i, words;
#pragma unroll
  for (i = 0; i < 4; i++)
    if (4 * lane + i >= count) v[i] = 0;
  form = gc_choose(v, count, brief ? 1 : 4, sh);
  words = (form.bytes + brief + 3) / 4;
  if (WRITE) {
    if (off[g] <= room && words <= room - off[g]) gc_pack(v, count, form, brief, to + off[g], words, sh);
  } else if (!lane) {
    off[g] = words;
    width[g] = (uint8_t)(form.bits | (form.high ? GPUIR__BP128_EXCEPTIONS : 0));
  }
}

/* A block of a list, docIDs and frequencies: the decoders' instructions and about 400 for choosing and packing.
 * Measured with ef and newpfd, 1.2 G postings in 0.7 M lists, 2^14 lists or 64 MB at once: sizes 58 G postings/s,
 * writing 40 G; with what lies between 20 G. Reading the index's bytes and sending them takes five times as long. */
template <bool WRITE>
static __global__ void __launch_bounds__(256) gc_recode(const __grid_constant__ gc_recoding r) {
  __shared__ uint4 room[8][32];
  const uint32_t lane = gc_lane(), warps = gridDim.x * 8;
  uint32_t *sh = (uint32_t *)room[threadIdx.x / 32];
  uint64_t at = (uint64_t)(blockIdx.x * 8 + threadIdx.x / 32) * r.chunk;
  for (; at < r.nblocks; at += (uint64_t)warps * r.chunk) {
    const uint32_t end = (uint32_t)min((uint64_t)r.nblocks, at + r.chunk);
    uint32_t lo = 0, hi = r.nlists, g;
    while (hi - lo > 1) { /* the last list that starts at the block or before */
      uint32_t mid = lo + (hi - lo) / 2;
      if (__ldg(r.start + mid) <= at)
        lo = mid;
      else
        hi = mid;
    }
    for (g = (uint32_t)at; g < end; g++) {
      gc_target to = {NULL, NULL, 0, 0, 0};
      uint32_t v[4], block, count, i, before;
      bool brief;
      while (g >= __ldg(r.start + lo + 1)) lo++;
      const gc_source &s = r.sources[lo];
      if (WRITE) to = r.targets[lo];
      block = g - __ldg(r.start + lo);
      brief = !s.docs.s.offset;
      count = gc_any_docs(s, block, sh, v);
      before = __shfl_up_sync(GC_ALL, v[3], 1); /* docIDs to gaps */
      if (!lane) before = block ? s.docs.s.last[block - 1] : UINT32_MAX;
#pragma unroll
      for (i = 3; i > 0; i--) v[i] -= v[i - 1] + 1;
      v[0] -= before + 1;
      gc_recode_values<WRITE>(v, count, brief, g, r.docs_off, r.docs_width, to.docs, to.docs_words, sh);
      gc_any_freqs(s, block, count, sh, v);
      gc_recode_values<WRITE>(v, count, brief, g, r.freqs_off, r.freqs_width, to.freqs, to.freqs_words, sh);
      if (WRITE && !brief && !lane) {
        r.to_last[to.entry + block] = s.docs.s.last[block];
        r.to_docs_off[to.entry + block] = r.docs_off[g];
        r.to_freqs_off[to.entry + block] = r.freqs_off[g];
        r.to_docs_width[to.entry + block] = r.docs_width[g];
        r.to_freqs_width[to.entry + block] = r.freqs_width[g];
      }
    }
  }
}

/* Turns a list's sizes into offsets. A block of threads for its docIDs, one for its frequencies: 4 bytes read and
 * written a block of 128 postings. */
static __global__ void __launch_bounds__(1024) gc_recode_offsets(const __grid_constant__ gc_recoding r) {
  __shared__ uint32_t sums[32];
  const uint32_t first = r.start[blockIdx.x], n = r.start[blockIdx.x + 1] - first;
  uint32_t *sizes = (blockIdx.y ? r.freqs_off : r.docs_off) + first, at, k;
  unsigned long long all = 0;
  for (at = 4 * threadIdx.x; at - 4 * threadIdx.x < n; at += 4096) {
    uint32_t x[4], sum = 0, before;
#pragma unroll
    for (k = 0; k < 4; k++) {
      x[k] = at + k < n ? sizes[at + k] : 0;
      sum += x[k];
    }
    before = gcl_scan(sum);
    __syncthreads();
    if (gc_lane() == 31) sums[threadIdx.x / 32] = before;
    __syncthreads();
    if (threadIdx.x < 32) sums[threadIdx.x] = gcl_scan(sums[threadIdx.x]);
    __syncthreads();
    before += (uint32_t)all + (threadIdx.x >= 32 ? sums[threadIdx.x / 32 - 1] : 0) - sum;
#pragma unroll
    for (k = 0; k < 4; k++) {
      if (at + k < n) sizes[at + k] = before;
      before += x[k];
    }
    all += sums[31];
  }
  if (!threadIdx.x) r.words[2 * blockIdx.x + blockIdx.y] = all;
}

/* ============================================================================
 * 3  Expansion of the long lists, and what depends on k1 and b
 * ==========================================================================*/

/* Raises a byte to at least x. */
static __device__ void gc_raise_byte(uint8_t *p, uint32_t x) {
  uint32_t *word = (uint32_t *)((uintptr_t)p & ~(uintptr_t)3), shift = 8 * ((uint32_t)(uintptr_t)p & 3);
  uint32_t now = *(volatile uint32_t *)word, seen;
  while ((now >> shift & 255) < x) {
    seen = atomicCAS(word, now, (now & ~(255u << shift)) | x << shift);
    if (seen == now) return;
    now = seen;
  }
}

/* What helps to pass over postings: a list's marks and, for spans of documents, peaks. */
typedef struct gc_guide {
  uint4 *marks;
  uint8_t *peaks;
} gc_guide;

/* A posting sets its mark, raises its span's peak, and ranks the groups that begin behind the posting before it:
 * whatever a damaged block holds, only those between the last docIDs of its block and of the one before. */
static __device__ void gc_note_block(const gc_view &v, const gc_guide &to, const gc_term &t, uint32_t block,
                                     const uint32_t d[4], const uint32_t c[4]) {
  const uint32_t *last = v.last + t.first_block + block;
  const uint32_t first = block ? (__ldg(last - 1) >> t.shift) / GC_CELLS + 1 : 0,
                 end = (__ldg(last) >> t.shift) / GC_CELLS;
  uint4 *marks = to.marks + t.marks;
  uint32_t prev = __shfl_up_sync(GC_ALL, d[3], 1), next = first, i; /* the first group without a rank */
  if (gc_lane()) next = max(first, (prev >> t.shift) / GC_CELLS + 1);
  for (i = 0; i < 4; i++)
    if (c[i]) {
      const uint32_t bit = d[i] >> t.shift, group = bit / GC_CELLS, cell = bit % GC_CELLS;
      atomicOr((uint32_t *)(marks + group) + cell / 32, 1u << (cell & 31));
      gc_raise_byte(to.peaks + t.row + (d[i] >> t.span), min(255u, (c[i] - 1) / t.step + 1));
      for (; next <= min(group, end); next++) marks[next].w = block * GPUIR__BLOCK + 4 * gc_lane() + i;
    }
}

/* A warp a block, once an index. Predicted: reads 1 to 1.5 bytes a posting and its K, writes 6; about 256 warp
 * instructions a block. Counted: 25.5 bytes read, 8.6 written, 3,390 instructions: each posting's mark and peak is an
 * atomic operation on a sector of its own, and the latter one a loop. 68 ms for 1.2 G postings. */
static __global__ void __launch_bounds__(256)
    gc_expand(gc_view v, const gc_term *lists, uint32_t nlists, uint64_t nblocks, uint16_t *narrow,
              uint32_t *wide, uint32_t *impact, uint32_t *most, const uint2 *bases, gc_guide guide,
              double norm_a, double norm_b) {
  uint64_t g = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32,
           step = (uint64_t)gridDim.x * blockDim.x / 32;
  uint32_t lane = gc_lane();
  for (; g < nblocks; g += step) {
    uint32_t lo = 0, hi = nlists, d[4], c[4], i, n, best, block;
    uint2 base;
    gc_term t;
    while (hi - lo > 1) { /* the last list that starts at g or before */
      uint32_t mid = lo + (hi - lo) / 2;
      if (lists[mid].first_block <= g)
        lo = mid;
      else
        hi = mid;
    }
    t = lists[lo];
    if (g < t.first_block || g - t.first_block >= t.nblocks) continue; /* no list's block */
    block = (uint32_t)(g - t.first_block);
    n = gc_decode_docs(v, t, block, d);
    gc_decode_freqs(v, t, block, c);
    best = 0;
    for (i = 0; i < 4; i++) {
      bool live = 4 * lane + i < n;
      c[i] = live ? gc_contribution(t.weight, c[i], gpuir__norm_of(norm_a, norm_b, gc_length(v, d[i]))) : 0;
      if (!live) d[i] = UINT32_MAX;
      best = max(best, c[i]);
    }
    gc_note_block(v, guide, t, block, d, c);
    best = __reduce_max_sync(GC_ALL, best);
    if (!lane) most[g] = best;
    if (!impact) continue; /* only the guides are wanted */
    base = bases[g];
    *(uint4 *)(impact + g * GPUIR__BLOCK + 4 * lane) = make_uint4(c[0], c[1], c[2], c[3]);
    if (base.y)
      *(uint4 *)(wide + (uint64_t)(base.y - 1) * GPUIR__BLOCK + 4 * lane) =
          make_uint4(d[0], d[1], d[2], d[3]);
    ushort4 s; /* of a wide block it is loaded, but not used */
    for (i = 0; i < 4; i++)
      d[i] = min(d[i] - base.x, 65535u); /* padding becomes 65535, with contribution 0 */
    s.x = (uint16_t)d[0];
    s.y = (uint16_t)d[1];
    s.z = (uint16_t)d[2];
    s.w = (uint16_t)d[3];
    *(ushort4 *)(narrow + g * GPUIR__BLOCK + 4 * lane) = s;
  }
}

/* DocIDs of an expanded block; padding gives docIDs of contribution 0 that may lie anywhere. */
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

/* ============================================================================
 * 4  OR: docID tiles in shared memory
 * ==========================================================================*/

/* ---- which blocks of a list reach into a tile, and what they can contribute there ----
 * first[t] is twice the first block whose last docID is not below tile t, plus 1 if that block starts in an
 * earlier tile; so tile t's blocks are first[t] / 2 up to first[t+1] / 2, and that one too if it is odd. */

static __device__ __forceinline__ uint32_t gc_code_value(uint32_t code) { /* gpuir__code_value */
  return code < 32 ? code : (16 + (code & 15)) << ((code >> 4) - 1);
}

/* The bound of a block under any k1 and b: part 8's, without its table. */
static __device__ uint32_t gc_pairs_bound(const gc_term &t, const gc_job &j, const gpuir__pair *pairs) {
  float best = 0;
  uint32_t i;
  for (i = 0; i < GPUIR__BLOCK_PAIRS; i++) {
    uint32_t pair = __ldg(pairs + i), tf = pair & 255, len = pair >> 8;
    if (tf) {
      float f = __uint2float_rn(tf < 255 ? gc_code_value(tf) : GC_CAP);
      best = fmaxf(best, __fdiv_rn(f, __fadd_rn(f, gpuir__norm_of(j.norm_a, j.norm_b, gc_code_value(len)))));
    }
  }
  return t.q * gpuir__slacken(__float2uint_rn(__fmul_rn(t.weight, best)));
}

/* One block of threads takes GC_CHUNK blocks of a list, a thread a block. Predicted: reads 8 to 12 bytes a block of 128
 * postings, 36 more where bounds are made of pairs; writes 8 bytes a tile. Counted there: 46 bytes of the L2 cache, 3.3
 * of them from memory, and 7.4 warp instructions. */
template <bool X>
static __global__ void __launch_bounds__(256)
    gc_tiles(const __grid_constant__ gc_view v, const __grid_constant__ gc_batch b) {
  uint32_t item;
  for (item = blockIdx.x; item < b.nchunks; item += gridDim.x) {
    const gc_chunk chunk = b.chunks[item];
    const gc_term t = b.terms[chunk.term];
    const gc_job job = b.jobs[chunk.job];
    uint32_t *first = b.first + (uint64_t)t.slot * (v.ntiles + 1),
             *bound = b.bound + (uint64_t)t.slot * (v.ntiles + 1);
    if (b.states[chunk.job].followed) continue;
    if (t.kind == GC_LONG) {
      uint32_t end = min(t.nblocks, chunk.first + GC_CHUNK), i;
      for (i = chunk.first + threadIdx.x; i < end; i += blockDim.x) {
        uint64_t g = t.first_block + i;
        uint32_t last = __ldg(v.last + g), start = i ? __ldg(v.last + g - 1) + 1 : 0, tile, most;
        uint32_t to = min(last / v.tile, v.ntiles - 1), from = i ? (start - 1) / v.tile + 1 : 0;
        for (tile = from; tile <= to; tile++) first[tile] = i << 1 | (start < tile * v.tile);
        if (i == t.nblocks - 1)
          for (tile = to + 1; tile <= v.ntiles; tile++) first[tile] = t.nblocks << 1;
        if (t.negated) continue;
        most = X && job.stored ? t.q * __ldg(v.most + g)
                               : gc_pairs_bound(t, job, v.bounds + g * GPUIR__BLOCK_PAIRS);
        for (tile = min(start / v.tile, v.ntiles - 1); tile <= to; tile++) atomicMax(bound + tile, most);
      }
    } else if (threadIdx.x < 32) { /* one block: its postings themselves */
      uint32_t d[4], f[4], i, n = gc_decode_docs(v, t, 0, d);
      gc_decode_freqs(v, t, 0, f);
      for (i = 0; i < 4; i++)
        if (4 * threadIdx.x + i < n)
          atomicMax(bound + d[i] / v.tile,
                    t.negated ? 1 : t.q * gc_contribution(t.weight, f[i], gc_norm(v, job, d[i])));
    }
  }
}

/* Where a tile stands in the order: monotone in its bound. */
static __device__ __forceinline__ uint32_t gc_bucket(uint32_t bound, uint32_t greatest) {
  return min(
      (uint32_t)__fmul_rn(__uint2float_rd(bound), __fdiv_rn(GC_BUCKETS - 1, __uint2float_ru(greatest))),
      GC_BUCKETS - 1);
}

/* One block of threads an OR: the sums of its tile bounds and the tiles in descending order of them, as far as 256
 * steps tell them apart. Reads 4 bytes a term and tile, writes 8 a tile: predicted 21 KB for three terms and 1,070
 * tiles. Counted, all tiles to be scored: 17 KB from memory and 5,000 warp instructions an OR. */
static __global__ void __launch_bounds__(256)
    gc_order(const __grid_constant__ gc_view v, const __grid_constant__ gc_batch b) {
  __shared__ uint32_t count[GC_BUCKETS], greatest, live;
  const uint32_t j = b.or_jobs[blockIdx.x];
  const gc_job job = b.jobs[j];
  gc_state *state = b.states + j;
  uint32_t *total = b.total + (uint64_t)j * v.ntiles, *order = b.order + (uint64_t)j * v.ntiles, t, i;
  if (!threadIdx.x) greatest = live = 0;
  for (i = threadIdx.x; i < GC_BUCKETS; i += blockDim.x) count[i] = 0;
  __syncthreads();
  if (!state->followed) {
    for (t = threadIdx.x; t < v.ntiles; t += blockDim.x) {
      uint32_t sum = 0;
      for (i = 0; i < job.npositive; i++)
        sum += b.bound[(uint64_t)b.terms[job.first_term + i].slot * (v.ntiles + 1) + t];
      total[t] = sum;
      atomicMax(&greatest, sum);
    }
    __syncthreads();
    for (t = threadIdx.x; t < v.ntiles; t += blockDim.x)
      if (total[t]) atomicAdd(&count[GC_BUCKETS - 1 - (job.prune ? gc_bucket(total[t], greatest) : 0)], 1);
    __syncthreads();
    if (threadIdx.x < 32) { /* exclusive sums of 256 counts, 8 a lane */
      uint32_t own[8], sum = 0, scan;
      for (i = 0; i < 8; i++) {
        own[i] = count[threadIdx.x * 8 + i];
        sum += own[i];
      }
      scan = sum;
      for (i = 1; i < 32; i *= 2) {
        uint32_t other = __shfl_up_sync(GC_ALL, scan, i);
        if (threadIdx.x >= i) scan += other;
      }
      if (threadIdx.x == 31) live = scan;
      scan -= sum;
      for (i = 0; i < 8; i++) {
        count[threadIdx.x * 8 + i] = scan;
        scan += own[i];
      }
    }
    __syncthreads();
    for (t = threadIdx.x; t < v.ntiles; t += blockDim.x)
      if (total[t])
        order[atomicAdd(&count[GC_BUCKETS - 1 - (job.prune ? gc_bucket(total[t], greatest) : 0)], 1)] = t;
  }
  if (!threadIdx.x) {
    state->live = live;
    state->greatest = greatest;
  }
}

/* ---- selection: the k-th greatest of n keys, by all threads of a block ---- */

/* A key such that at least k of the n keys are not below it: exactly k if limit is k and the keys differ, otherwise
 * at most `limit` of them where that is possible. n >= k >= 1. Eight passes over the keys at most. */
template <typename Keys>
static __device__ unsigned long long gc_select(const Keys &keys, uint32_t n, uint32_t k, uint32_t limit,
                                               uint32_t *hist) {
  __shared__ uint32_t digit, above, inside;
  unsigned long long prefix = 0;
  uint32_t remain = k, i;
  int shift = 56;
  for (;; shift -= 8) {
    for (i = threadIdx.x; i < 256; i += blockDim.x) hist[i] = 0;
    __syncthreads();
    for (i = threadIdx.x; i < n; i += blockDim.x) {
      unsigned long long key = keys(i);
      if (shift == 56 || (key ^ prefix) >> (shift + 8) == 0) atomicAdd(&hist[key >> shift & 255], 1);
    }
    __syncthreads();
    if (threadIdx.x < 32) { /* lane 0 has the greatest 8 digits */
      uint32_t own[8], sum = 0, scan;
      for (i = 0; i < 8; i++) {
        own[i] = hist[255 - (threadIdx.x * 8 + i)];
        sum += own[i];
      }
      scan = sum;
      for (i = 1; i < 32; i *= 2) {
        uint32_t other = __shfl_up_sync(GC_ALL, scan, i);
        if (threadIdx.x >= i) scan += other;
      }
      scan -= sum;
      if (scan < remain && scan + sum >= remain)
        for (i = 0; i < 8; i++) {
          if (scan < remain && scan + own[i] >= remain) {
            digit = 255 - (threadIdx.x * 8 + i);
            above = scan;
            inside = own[i];
          }
          scan += own[i];
        }
    }
    __syncthreads();
    prefix |= (unsigned long long)digit << shift;
    remain -= above;
    i = k - remain + inside; /* keys >= prefix */
    __syncthreads();
    if (i <= limit || !shift) return prefix;
  }
}

static __device__ __forceinline__ unsigned long long gc_key(uint32_t score, uint32_t doc) {
  return (unsigned long long)score << 32 | (uint32_t)~doc;
}

/* Scores below this cannot enter. */
static __device__ __forceinline__ uint32_t gc_need(unsigned long long floor) {
  return max((uint32_t)((floor + 1) >> 32), 1u);
}

static __device__ __forceinline__ unsigned long long gc_floor(const gc_state *s) {
  return *(volatile const unsigned long long *)&s->floor;
}

struct gc_keys_cand {
  const unsigned long long *p; /* those that others are about to write are still 0 */
  __device__ unsigned long long operator()(uint32_t i) const { return __ldcg(p + i); }
};

/* ---- the work of one tile ---- */

/* A list's blocks within a tile. */
typedef struct gc_range {
  uint32_t g;   /* the i-th block of the tile is block g + i of the index, or of a list without a directory */
  uint32_t end; /* i is below it */
  uint32_t q;
  uint32_t term;        /* in the batch; GC_SLOW: not expanded, or under other k1 and b */
  uint32_t first, full; /* of a list with a directory: its first block, and how many of its blocks are full */
} gc_range;
#define GC_SLOW 0x80000000u

typedef struct gc_item {
  unsigned long long floor;
  uint32_t job, tile, n,
      blocks;         /* job GC_NONE: no more work. n lists reach into the tile with `blocks` blocks */
  uint32_t npositive; /* of the n */
  __align__(16) gc_range range[GPUIR_MAX_TERMS];
} gc_item;

/* What the warp that looks ahead remembers; the same in all its lanes. */
typedef struct gc_ahead {
  uint32_t job, helping, at; /* at: in or_jobs */
  uint32_t pos, end;         /* positions in the job's tile order that are ours */
} gc_ahead;

/* A job with tiles left: first one that nobody has begun, then any. */
static __device__ uint32_t gc_pick_job(const gc_batch &b, gc_ahead &a) {
  uint32_t lane = gc_lane(), s;
  if (!a.helping) {
    uint32_t i = 0;
    if (!lane) i = atomicAdd(&b.control->next_or, 1);
    i = __shfl_sync(GC_ALL, i, 0);
    if (i < b.nor) return b.or_jobs[i];
    a.helping = 1;
    a.at = blockIdx.x % b.nor;
  }
  for (s = 0; s < b.nor; s += 32) {
    uint32_t i = s + lane, found, j = GC_NONE;
    bool open = false;
    if (i < b.nor) {
      i = a.at + i < b.nor ? a.at + i : a.at + i - b.nor;
      j = b.or_jobs[i];
      open = *(volatile uint32_t *)&b.states[j].next < b.states[j].live && !b.states[j].done;
    }
    found = __ballot_sync(GC_ALL, open);
    if (found) {
      uint32_t l = __ffs(found) - 1;
      a.at = __shfl_sync(GC_ALL, i, l);
      return __shfl_sync(GC_ALL, j, l);
    }
  }
  return GC_NONE;
}

/* Finds the next tile worth scoring, by one warp. */
template <bool X>
static __device__ void gc_look_ahead(const gc_view &v, const gc_batch &b, gc_ahead &a, gc_item *item) {
  uint32_t lane = gc_lane(), i, n, blocks, tile, total, need;
  unsigned long long floor;
  for (;;) {
    const gc_job *job;
    gc_state *state;
    if (a.job == GC_NONE) {
      a.job = gc_pick_job(b, a);
      a.pos = a.end = 0;
      if (a.job == GC_NONE) {
        if (!lane) item->job = GC_NONE;
        return;
      }
      if (b.states[a.job].done) {
        a.job = GC_NONE;
        continue;
      }
      i = b.jobs[a.job].after;
      if (i != GC_NONE && b.states[i].count >= b.jobs[a.job].k) { /* AND was enough */
        if (!lane) b.states[a.job].next = UINT32_MAX / 2;
        a.job = GC_NONE;
        continue;
      }
    }
    job = b.jobs + a.job;
    state = b.states + a.job;
    if (a.pos == a.end) {
      if (!lane) a.pos = atomicAdd(&state->next, b.grab);
      a.pos = __shfl_sync(GC_ALL, a.pos, 0);
      a.end = min(a.pos + b.grab, state->live);
      if (a.pos >= a.end) {
        a.job = GC_NONE;
        continue;
      }
    }
    tile = b.order[(uint64_t)a.job * v.ntiles + a.pos++];
    total = b.total[(uint64_t)a.job * v.ntiles + tile];
    floor = __shfl_sync(GC_ALL, gc_floor(state), 0);
    need = gc_need(floor);
    if (total < need) {
      if (job->prune &&
          gc_bucket(total, state->greatest) < gc_bucket(need, state->greatest)) { /* so are all behind */
        if (!lane) atomicMax(&state->next, UINT32_MAX / 2);
        a.job = GC_NONE;
      }
      continue;
    }
    for (i = n = blocks = 0; i < job->nterms; i += 32) {
      uint32_t start = 0, len = 0, who = job->first_term + i + lane, live, scan, s;
      gc_range range = {0, 0, 0, 0, 0, 0};
      if (i + lane < job->nterms) {
        const gc_term *t = b.terms + who;
        uint64_t slot = (uint64_t)t->slot * (v.ntiles + 1) + tile;
        if (t->kind == GC_LONG) {
          uint32_t x = b.first[slot], y = b.first[slot + 1], end;
          start = x >> 1;
          end = min((y >> 1) + (y & 1), t->nblocks);
          len = end > start ? end - start : 0;
          range.first = (uint32_t)t->first_block;
          range.full = t->df / GPUIR__BLOCK;
          range.g = range.first + start;
        } else {
          len = b.bound[slot] ? 1 : 0;
        }
        range.q = t->q;
        range.term = who | (X && t->kind == GC_LONG && job->stored ? 0 : GC_SLOW);
      }
      live = __ballot_sync(GC_ALL, len > 0);
      scan = len;
      for (s = 1; s < 32; s *= 2) {
        uint32_t other = __shfl_up_sync(GC_ALL, scan, s);
        if (lane >= s) scan += other;
      }
      if (len) {
        uint32_t at = n + __popc(live & ((1u << lane) - 1));
        range.end = blocks + scan;
        range.g -= range.end - len;
        item->range[at] = range;
      }
      blocks += __shfl_sync(GC_ALL, scan, 31);
      n += __popc(live);
      live = __ballot_sync(GC_ALL, len > 0 && i + lane < job->npositive);
      if (!lane) item->npositive = (i ? item->npositive : 0) + __popc(live);
    }
    if (!lane) {
      item->floor = floor;
      item->job = a.job;
      item->tile = tile;
      item->n = n;
      item->blocks = blocks;
    }
    return;
  }
}

/* Where the noting goes: shared memory. */
typedef struct gc_notes {
  uint32_t sums;  /* shared address of the tile's sums, and of GC_SPARE more */
  uint32_t tile;  /* how many there are of the former */
  uint32_t below; /* the need, less one */
  uint32_t *spots, *count;
} gc_notes;
#define GC_SPARE 32u /* a lane's own, for what lies outside the tile */

static __device__ __forceinline__ void gc_note(const gc_notes &n, uint32_t local) {
  uint32_t at = atomicAdd(n.count, 1);
  if (at < GC_KEYS) n.spots[at] = local;
}

/* Adds to four documents' sums. The addition that lifts one to the need notes the document: sums only grow, so exactly
 * one does. What lies outside the tile goes where nobody looks. 7 instructions each. */
static __device__ __forceinline__ void gc_add4(const gc_notes &n, const uint32_t local[4],
                                               const uint32_t c[4]) {
  const uint32_t spare = n.tile + gc_lane();
  uint32_t old[4], hit = 0, i;
#pragma unroll
  for (i = 0; i < 4; i++)
    asm volatile("atom.shared.add.u32 %0, [%1], %2;"
                 : "=r"(old[i])
                 : "r"(n.sums + 4 * min(local[i], spare)), "r"(c[i])
                 : "memory");
#pragma unroll
  for (i = 0; i < 4; i++) hit |= n.below - old[i] < c[i] ? 1u << i : 0;
  if (hit) { /* one mask: synccheck takes branches on two predicates for divergence at the next barrier */
#pragma unroll
    for (i = 0; i < 4; i++)
      if (n.below - old[i] < c[i] && local[i] < n.tile) gc_note(n, local[i]);
  }
}

/* A block that is decoded, of any kind. */
static __device__ __forceinline__ void gc_add_decoded(const gc_view &v, const gc_job &job,
                                                      const gc_term &term, uint32_t block, uint32_t base,
                                                      const gc_notes &notes) {
  uint32_t lane = gc_lane(), d[4], c[4], i, n;
  n = gc_decode_docs(v, term, block, d);
  gc_decode_freqs(v, term, block, c);
#pragma unroll
  for (i = 0; i < 4; i++) {
    d[i] -= base;
    if (4 * lane + i >= n) d[i] = UINT32_MAX;
    if (d[i] < v.tile) c[i] = term.q * gc_contribution(term.weight, c[i], gc_norm(v, job, d[i] + base));
  }
  gc_add4(notes, d, c);
}

static __device__ __noinline__ void gc_add_rare(const gc_view &v, const gc_job &job, const gc_term *term,
                                                uint32_t block, uint32_t base, const gc_notes &notes) {
  gc_add_decoded(v, job, *term, block, base, notes);
}

/* What a lane holds of an expanded block. */
typedef struct gc_held {
  uint4 c;
  uint2 base, s;
} gc_held;

static __device__ __forceinline__ gc_held gc_hold(const gc_view &v, uint32_t g) {
  uint64_t at = (uint64_t)g * 32 + gc_lane();
  gc_held h;
  h.c = __ldg((const uint4 *)v.impact + at);
  h.s = __ldg((const uint2 *)v.narrow + at);
  h.base = __ldg(v.bases + g);
  return h;
}

/* An expanded block's postings into the tile's sums: 6 bytes a posting. Predicted 60 warp instructions a block, 4
 * of them shared additions; in the machine code 60, and 37 for what gc_fetch does. */
static __device__ __forceinline__ void gc_add_held(const gc_view &v, const gc_held &h, uint32_t q,
                                                   uint32_t base, const gc_notes &notes) {
  uint32_t d[4] = {h.s.x & 0xffff, h.s.x >> 16, h.s.y & 0xffff, h.s.y >> 16}, from = h.base.x - base, i;
  uint32_t c[4] = {q * h.c.x, q * h.c.y, q * h.c.z, q * h.c.w};
  if (h.base.y) {
    uint4 w = __ldg((const uint4 *)(v.wide + (uint64_t)(h.base.y - 1) * GPUIR__BLOCK) + gc_lane());
    d[0] = w.x;
    d[1] = w.y;
    d[2] = w.z;
    d[3] = w.w;
    from = 0 - base;
  }
#pragma unroll
  for (i = 0; i < 4; i++) d[i] += from;
  gc_add4(notes, d, c);
}

/* Some of a warp's blocks in a tile, loaded and not yet added. More of them would be spilled, which waits for them. */
typedef struct gc_round {
  gc_held h[GC_AHEAD];
  uint32_t q[GC_AHEAD], term[GC_AHEAD], g[GC_AHEAD]; /* term: GC_NONE if there is none */
} gc_round;

/* Loads the blocks i, i + 8 and i + 16 of a tile, of those below `end`. `at`: the range that i is in. What is
 * not there loads block 0 instead: a load under a condition would be waited for where the paths join. */
static __device__ __forceinline__ void gc_fetch(const gc_view &v, const gc_item *item, uint32_t i,
                                                uint32_t end, uint32_t &at, gc_round &round) {
  uint32_t u;
  gc_range r = item->range[at];
#pragma unroll
  for (u = 0; u < GC_AHEAD; u++) {
    uint32_t to = i + u * (GC_OR_WORKERS / 32);
    while (to < end && to >= r.end) r = item->range[++at];
    round.q[u] = r.q;
    round.term[u] = to < end ? r.term : GC_NONE;
    round.g[u] = r.g + to;
    round.h[u] = gc_hold(v, round.term[u] & GC_SLOW ? 0 : round.g[u]);
  }
}

static __device__ __forceinline__ void gc_prefetch(const void *p, uint32_t bytes) {
  uint32_t i;
  for (i = 0; i < bytes; i += 128)
    asm volatile("prefetch.global.L2 [%0];" : : "l"((const uint8_t *)p + i) : "memory");
}

/* Those of a tile's blocks that gc_fetch does not load at first are on their way to the L2 cache, a thread a block. */
static __device__ __forceinline__ void gc_prefetch_blocks(const gc_view &v, const gc_item *item,
                                                          uint32_t end) {
  uint32_t i = GC_AHEAD * (GC_OR_WORKERS / 32) + threadIdx.x, at = 0;
  if (i >= end) return;
  while (i >= item->range[at].end) at++;
  if (item->range[at].term & GC_SLOW) return;
  i += item->range[at].g;
  gc_prefetch((const uint4 *)v.impact + (uint64_t)i * 32, GPUIR__BLOCK * 4);
  gc_prefetch((const uint2 *)v.narrow + (uint64_t)i * 32, GPUIR__BLOCK * 2);
  gc_prefetch(v.bases + i, 1);
}

static __device__ __forceinline__ uint32_t gc_positive_blocks(const gc_item *item) {
  return item->npositive ? item->range[item->npositive - 1].end : 0;
}

/* ---- full blocks decoded in place ---- */

/* Where a block of a tile stands. */
typedef struct alignas(16) gc_head {
  const uint32_t *docs;  /* a full block's words; NULL: it is block `widths` of term `q`, in the batch */
  const uint32_t *freqs; /* the same of its frequencies */
  uint32_t prev;         /* the docID before it */
  uint32_t widths;       /* of docIDs; << 8: of frequencies */
  uint32_t q;
  float weight;
} gc_head;
#define GC_HEADS 128u /* blocks of a tile whose heads are in shared memory at once */

/* Words from `at` on of a list's stream of `length` bytes; *width becomes 0 if they are not to be believed. */
static __device__ __forceinline__ const uint32_t *gc_words_at(const uint32_t *words, uint64_t list,
                                                              uint64_t length, uint32_t at, uint32_t *width) {
  const uint32_t most = (uint32_t)min((uint64_t)UINT32_MAX, length >> 2), bits = *width & 127;
  if (bits > 32 || at > most || 4 * bits + (*width >> 7 ? 4 : 0) > most - at) at = *width = 0;
  return words + (list >> 2) + at;
}

/* The heads of a tile's blocks `from` to `end`, GC_HEADS at most, a thread a block: about 100 instructions for 32. */
static __device__ __forceinline__ void gc_find_heads(const gc_view &v, const gc_batch &b, const gc_item *item,
                                                     uint32_t from, uint32_t end, gc_head *heads) {
  const uint32_t i = from + threadIdx.x;
  uint32_t at = 0, g, block;
  gc_head h;
  if (threadIdx.x >= GC_HEADS || i >= end) return;
  while (i >= item->range[at].end) at++;
  const gc_range r = item->range[at];
  const gc_term &t = b.terms[r.term & ~GC_SLOW];
  g = r.g + i;
  block = g - r.first;
  h.docs = h.freqs = NULL;
  h.prev = UINT32_MAX;
  h.widths = block;
  h.q = r.term & ~GC_SLOW;
  h.weight = 0;
  if (block < r.full && b.jobs[item->job].fused) {
    uint32_t docs_width = __ldg(v.docs_width + g), freqs_width = __ldg(v.freqs_width + g);
    h.docs = gc_words_at(v.docids, t.docs, t.docs_len, __ldg(v.docs_off + g), &docs_width);
    h.freqs = gc_words_at(v.freqs, t.freqs, t.freqs_len, __ldg(v.freqs_off + g), &freqs_width);
    h.widths = docs_width | freqs_width << 8;
    h.q = t.q;
    h.weight = t.weight;
    if (block) h.prev = __ldg(v.last + g - 1);
  }
  heads[threadIdx.x] = h;
}

/* What a lane needs of a full block. */
typedef struct gc_words {
  uint32_t low[8];
  uint32_t bits, high_bits; /* of a value; high_bits 0: no exceptions */
  uint32_t map;             /* the word of the bitmap of exceptions that has the lane's 4 bits */
  const uint32_t *high;     /* the high parts, from bit 8 on */
} gc_words;

static __device__ __forceinline__ gc_words gc_words_of(const uint32_t *words, uint32_t width) {
  const uint32_t lane = gc_lane();
  const uint32_t *p;
  gc_words w;
  uint32_t l;
  w.bits = width & 127;
  p = words + (lane * w.bits >> 5) * 4;
#pragma unroll
  for (l = 0; l < 8; l++) w.low[l] = __ldg(p + l);
  w.high = words + 4 * w.bits + 4;
  w.map = w.high_bits = 0;
  if (width & 128) {
    w.map = __ldg(w.high - 4 + lane / 8);
    w.high_bits = min(__ldg(w.high) & 255, 32 - w.bits);
  }
  return w;
}

static __device__ __forceinline__ uint32_t gc_high_part(const gc_words &w, uint32_t i) {
  const uint32_t bit = 8 + i * w.high_bits;
  const uint32_t *p = w.high + (bit >> 5);
  return (__funnelshift_r(__ldg(p), __ldg(p + 1), bit & 31) & gc_mask(w.high_bits)) << w.bits;
}

static __device__ __forceinline__ void gc_unpack_words(const gc_words &w, uint32_t x[4]) {
  const uint32_t lane = gc_lane(), mask = gc_mask(w.bits);
  uint32_t l;
#pragma unroll
  for (l = 0; l < 4; l++) x[l] = __funnelshift_r(w.low[l], w.low[4 + l], lane * w.bits) & mask;
  if (w.high_bits) { /* the same for all lanes */
    const uint32_t mine = w.map >> lane % 8 * 4, sum = __popc(w.map);
    uint32_t rank = __popc(w.map & ((1u << lane % 8 * 4) - 1)), n = 0, part;
#pragma unroll
    for (l = 0; l < 4; l++) { /* exceptions of the words before the lane's, and of all */
      const uint32_t of = __shfl_sync(GC_ALL, sum, 8 * l);
      rank += lane >= 8 * (l + 1) ? of : 0;
      n += of;
    }
    if (n <= 32) {
      part = lane < n ? gc_high_part(w, lane) : 0;
#pragma unroll
      for (l = 0; l < 4; l++) {
        const uint32_t high = __shfl_sync(GC_ALL, part, rank), is = mine >> l & 1;
        x[l] |= high & (0 - is);
        rank += is;
      }
    } else {
#pragma unroll
      for (l = 0; l < 4; l++)
        if (mine >> l & 1) x[l] |= gc_high_part(w, rank++);
    }
  }
}

/* gpuir__norm_of for a `fused` job: what is rounded once there is rounded once here. 2 instructions, none of them of 64
 * bits. */
static __device__ __forceinline__ float gc_fused_norm(float a, float b, uint32_t length) {
  return __fmaf_rn(b, __uint2float_rn(min(length, GC_CAP)), a);
}

/* Adds a full block: 1 to 1.5 bytes a posting, and 2 of its document's length. Predicted 220 warp instructions,
 * 60 more for each of its streams that has exceptions; in the machine code 280 and 67. */
static __device__ __forceinline__ void gc_add_packed(const gc_view &v, float norm_a, float norm_b,
                                                     const gc_head &h, uint32_t base, const gc_notes &notes) {
  const gc_words dw = gc_words_of(h.docs, h.widths & 255), fw = gc_words_of(h.freqs, h.widths >> 8);
  uint32_t d[4], c[4], length[4], i;
  gc_unpack_words(dw, d);
  gc_sum(d, h.prev - base, UINT32_MAX);
#pragma unroll
  for (i = 0; i < 4; i++) length[i] = gc_length(v, base + min(d[i], v.documents - 1 - base));
  gc_unpack_words(fw, c);
#pragma unroll
  for (i = 0; i < 4; i++)
    c[i] = h.q * gc_contribution(h.weight, c[i], gc_fused_norm(norm_a, norm_b, length[i]));
  gc_add4(notes, d, c);
}

/* The workers of packed tiles meet, without the warp that looks ahead. */
static __device__ __forceinline__ void gc_workers_wait(void) {
  asm volatile("bar.sync 1, %0;" : : "n"(GC_PACKED_WORKERS) : "memory");
}

/* All positive blocks of a tile, by the workers: each warp takes every eighth. Of expanded ones, the first are on
 * their way already; of others, the heads of the first are known. */
template <bool X>
static __device__ __forceinline__ void gc_add_tile(const gc_view &v, const gc_batch &b, const gc_job &job,
                                                   const gc_item *item, uint32_t base, const gc_notes &notes,
                                                   gc_round &round, uint32_t at, gc_head *heads) {
  const uint32_t workers = (GC_OR_THREADS(X) - 32) / 32, end = gc_positive_blocks(item);
  uint32_t i = threadIdx.x / 32, u;
  if (X) {
    while (i < end) {
#pragma unroll
      for (u = 0; u < GC_AHEAD; u++) {
        if (!(round.term[u] & GC_SLOW)) {
          gc_add_held(v, round.h[u], round.q[u], base, notes);
        } else if (round.term[u] != GC_NONE) {
          const gc_term *t = b.terms + (round.term[u] & ~GC_SLOW);
          gc_add_rare(v, job, t, round.g[u] - (uint32_t)t->first_block, base, notes);
        }
      }
      i += GC_AHEAD * workers;
      if (i < end) gc_fetch(v, item, i, end, at, round);
    }
  } else {
    const float norm_a = (float)job.norm_a, norm_b = (float)job.norm_b;
    for (at = 0;;) {
      for (i = threadIdx.x / 32; i < min(end - at, GC_HEADS); i += workers) {
        const gc_head h = heads[i];
        if (h.docs)
          gc_add_packed(v, norm_a, norm_b, h, base, notes);
        else
          gc_add_rare(v, job, b.terms + h.q, h.widths, base, notes);
      }
      at += GC_HEADS;
      if (at >= end) return;
      gc_workers_wait();
      gc_find_heads(v, b, item, at, end, heads);
      gc_workers_wait();
    }
  }
}

/* The block's documents are excluded. */
template <bool X>
static __device__ __forceinline__ void gc_clear_block(const gc_view &v, const gc_term *t, uint32_t block,
                                                      uint32_t base, uint32_t *sums) {
  uint32_t lane = gc_lane(), d[4], i, n = gc_block_len(*t, block);
  if (X && t->kind == GC_LONG)
    gc_expanded_docs(v, t->first_block + block, d);
  else
    (void)gc_decode_docs(v, *t, block, d);
  for (i = 0; i < 4; i++)
    if (4 * lane + i < n && d[i] - base < v.tile) sums[d[i] - base] = 0;
}

struct gc_keys_sums { /* the sums of a tile as keys */
  const uint32_t *sums;
  uint32_t base;
  unsigned long long floor;
  __device__ unsigned long long operator()(uint32_t i) const {
    unsigned long long key = sums[i] ? gc_key(sums[i], base + i) : 0;
    return key > floor ? key : 0;
  }
};

template <bool X>
struct gc_shared_heads {
  gc_head heads[GC_HEADS];
};
template <>
struct gc_shared_heads<true> {
  gc_head heads[1];
};

struct gc_shared_or {
  unsigned long long keys[GC_KEYS];
  gc_item item[2];
  uint32_t hist[256], spots[GC_KEYS];
  uint32_t nkeys[2], nspots[2]; /* by the parity of the tile */
  uint32_t refine, pushed;
  unsigned long long kth;
};

/* Raises a job's floor to the k-th best candidate of its buffer, after each doubling of their number. */
static __device__ void gc_refine(const gc_batch &b, uint32_t j, uint32_t k, gc_shared_or *sh) {
  gc_state *state = b.states + j;
  if (!threadIdx.x) {
    uint32_t count = *(volatile uint32_t *)&state->count, step = max(2 * k, 64u), level;
    sh->refine = 0;
    if (count >= step) {
      level = 32 - __clz(count / step);
      if (atomicMax(&state->level, level) < level) sh->refine = min(count, b.room);
    }
  }
  __syncthreads();
  if (sh->refine >= k && sh->refine) {
    gc_keys_cand keys = {b.cand + (uint64_t)j * b.room};
    unsigned long long kth = gc_select(keys, sh->refine, k, k, sh->hist);
    if (!threadIdx.x && kth > 1) atomicMax(&state->floor, kth - 1);
  }
  __syncthreads();
}

/* Takes the survivors in sh->keys, at most GC_KEYS, to the job's buffer: the best k of them, if there are more. */
static __device__ void gc_push(const gc_batch &b, uint32_t j, uint32_t k, uint32_t n, gc_shared_or *sh) {
  gc_state *state = b.states + j;
  unsigned long long *cand = b.cand + (uint64_t)j * b.room;
  uint32_t i, o;
  if (!threadIdx.x) sh->pushed = atomicAdd(&state->count, min(n, k));
  __syncthreads();
  for (i = threadIdx.x; i < n; i += blockDim.x) {
    unsigned long long key = sh->keys[i];
    uint32_t rank = 0;
    if (n > k) {
      for (o = 0; o < n; o++) rank += sh->keys[o] > key;
      if (rank == k - 1) atomicMax(&state->floor, key - 1);
    } else {
      rank = i;
    }
    if (rank < k && sh->pushed + rank < b.room) __stcg(cand + sh->pushed + rank, key);
  }
}

/* Scores tiles. 8 warps add the postings of a tile into its sums in shared memory, noting the documents that reach
 * the floor, while one warp finds the next tile. Traffic: that of the blocks (6 bytes a posting expanded, 60 warp
 * instructions for 128), and 4 bytes of shared memory a document of each tile for clearing it (2 instructions for 128
 * documents). Without a floor yet, and for a large k, all sums are looked at instead: 8 bytes, 12 instructions.
 * Counted by ncu on an H200, 3.8 M postings a query over 25.2 M documents: 5.9 bytes and 1.4 warp instructions a
 * posting, clearing and the blocks that straddle two tiles included; 36 % of issue slots, 32 % of memory bandwidth.
 * Decoded in place: 3.1 bytes and 4.5 warp instructions a posting, 48 % of issue slots. */
template <bool X>
static __global__ void __launch_bounds__(GC_OR_THREADS(X), 2)
    gc_or(const __grid_constant__ gc_view v, const __grid_constant__ gc_batch b) {
  extern __shared__ uint4 gc_dynamic[];
  __shared__ gc_shared_or sh;
  __shared__ gc_shared_heads<X> packed;
  uint32_t *sums = (uint32_t *)gc_dynamic;
  uint32_t i, side = 0, at = 0;
  gc_round round;
  const uint32_t workers = GC_OR_THREADS(X) - 32;
  const bool scout = threadIdx.x >= workers;
  gc_ahead ahead = {GC_NONE, 0, 0, 0, 0};
  for (i = threadIdx.x; i < v.tile / 4; i += blockDim.x) gc_dynamic[i] = make_uint4(0, 0, 0, 0);
  if (threadIdx.x < 2) sh.nkeys[threadIdx.x] = sh.nspots[threadIdx.x] = 0;
  if (scout) gc_look_ahead<X>(v, b, ahead, &sh.item[0]);
  __syncthreads();
  if (!scout && sh.item[0].job != GC_NONE) {
    if (X)
      gc_fetch(v, &sh.item[0], threadIdx.x / 32, gc_positive_blocks(&sh.item[0]), at, round);
    else
      gc_find_heads(v, b, &sh.item[0], 0, gc_positive_blocks(&sh.item[0]), packed.heads);
  }
  if (!X) __syncthreads();
  for (;; side ^= 1) {
    const gc_item *item = &sh.item[side];
    const uint32_t j = item->job, base = item->tile * v.tile;
    uint32_t need, k, spots;
    unsigned long long floor = item->floor; /* the same for all, which noting relies on */
    bool all;
    if (j == GC_NONE) return;
    const gc_job &job = b.jobs[j];
    gc_state *state = b.states + j;
    k = job.k;
    all = k > GC_KEYS || !floor;
    need = all ? UINT32_MAX : gc_need(floor);
    if (scout) {
      gc_look_ahead<X>(v, b, ahead, &sh.item[side ^ 1]);
    } else {
      const gc_notes notes = {(uint32_t)__cvta_generic_to_shared(sums), v.tile, need - 1, sh.spots,
                              &sh.nspots[side]};
      gc_add_tile<X>(v, b, job, item, base, notes, round, at, packed.heads);
    }
    __syncthreads();
    at = 0;
    if (!scout &&
        sh.item[side ^ 1].job != GC_NONE) { /* the next tile's blocks travel while this one is finished */
      const gc_item *next = &sh.item[side ^ 1];
      if (X) {
        gc_fetch(v, next, threadIdx.x / 32, gc_positive_blocks(next), at, round);
        gc_prefetch_blocks(v, next, gc_positive_blocks(next));
      } else
        gc_find_heads(v, b, next, 0, gc_positive_blocks(next), packed.heads);
    }
    if (item->npositive < item->n) {
      uint32_t n = item->npositive;
      i = gc_positive_blocks(item) + threadIdx.x / 32;
      if (!scout)
        for (; i < item->blocks; i += workers / 32) {
          while (i >= item->range[n].end) n++;
          const gc_term *t = b.terms + (item->range[n].term & ~GC_SLOW);
          gc_clear_block<X>(v, t, item->range[n].g + i - (uint32_t)t->first_block, base, sums);
        }
      __syncthreads();
    }
    if (!threadIdx.x) sh.nkeys[side ^ 1] = sh.nspots[side ^ 1] = 0;
    spots = sh.nspots[side];
    need = gc_need(floor);
    if (!all && spots <= GC_KEYS) {
      for (i = threadIdx.x; i < spots; i += blockDim.x) {
        uint32_t local = sh.spots[i];
        unsigned long long key = gc_key(sums[local], base + local);
        if (sums[local] >= need && key > floor) sh.keys[atomicAdd(&sh.nkeys[side], 1)] = key;
      }
    } else {
      for (i = threadIdx.x; i < v.tile / 4; i += blockDim.x) {
        uint4 s = gc_dynamic[i];
        if (max(max(s.x, s.y), max(s.z, s.w)) >= need) {
          uint32_t sum[4] = {s.x, s.y, s.z, s.w}, l;
          for (l = 0; l < 4; l++) {
            unsigned long long key = gc_key(sum[l], base + 4 * i + l);
            if (sum[l] < need || key <= floor) continue;
            if (k > GC_KEYS) {
              uint32_t to = atomicAdd(&state->count, 1);
              if (to < b.room) __stcg(b.cand + (uint64_t)j * b.room + to, key);
            } else {
              uint32_t to = atomicAdd(&sh.nkeys[side], 1);
              if (to < GC_KEYS) sh.keys[to] = key;
            }
          }
        }
      }
    }
    if (all || spots) __syncthreads();
    i = sh.nkeys[side];
    if (i > GC_KEYS) { /* more than fit */
      gc_keys_sums keys = {sums, base, floor};
      unsigned long long kth = gc_select(keys, v.tile, k, GC_KEYS, sh.hist);
      if (!threadIdx.x) {
        sh.nkeys[side] = 0;
        if (kth > 1) atomicMax(&state->floor, kth - 1);
      }
      __syncthreads();
      for (i = threadIdx.x; i < v.tile; i += blockDim.x) {
        unsigned long long key = keys(i);
        if (key && key >= kth) {
          uint32_t to = atomicAdd(&sh.nkeys[side], 1);
          if (to < GC_KEYS) sh.keys[to] = key;
        }
      }
      __syncthreads();
      i = min(sh.nkeys[side], GC_KEYS);
    }
#pragma unroll 8
    for (uint32_t o = threadIdx.x; o < v.tile / 4; o += workers + 32) gc_dynamic[o] = make_uint4(0, 0, 0, 0);
    if (i) gc_push(b, j, k, i, &sh);
    __syncthreads();
    if (i || k > GC_KEYS) gc_refine(b, j, k, &sh);
  }
}

/* ============================================================================
 * 5  AND: a warp takes a block of the shortest list through the others
 * ==========================================================================*/

/* The first of last[lo..hi) that is not below doc, or hi; 32 probes at a time. */
static __device__ __forceinline__ uint32_t gc_find_block(const uint32_t *last, uint32_t lo, uint32_t hi,
                                                         uint32_t doc) {
  uint32_t lane = gc_lane();
  while (hi - lo > 32) {
    uint32_t step = (hi - lo + 31) / 32;
    uint32_t below =
        __popc(__ballot_sync(GC_ALL, __ldg(last + min(lo + lane * step + step - 1, hi - 1)) < doc));
    lo = min(lo + below * step, hi);
    hi = min(lo + step, hi);
  }
  return lo + __popc(__ballot_sync(GC_ALL, lo + lane < hi && __ldg(last + min(lo + lane, hi - 1)) < doc));
}

/* Which of the live docIDs a list holds, by decoding the candidate blocks one after another into shared memory;
 * where[i]: index in the list. */
static __device__ uint32_t gc_probe(const gc_view &v, const gc_term &t, const uint32_t d[4], uint32_t live,
                                    uint64_t where[4], uint32_t *docs) {
  uint32_t found = 0, from = 0, lane = gc_lane(), i;
  while (from < t.nblocks) {
    uint32_t least = UINT32_MAX, last = UINT32_MAX, n, e[4];
#pragma unroll
    for (i = 0; i < 4; i++)
      if (live >> i & 1) least = min(least, d[i]);
    if (!__any_sync(GC_ALL, live)) break;
    least = __reduce_min_sync(GC_ALL, least);
    if (t.kind == GC_LONG) {
      from = gc_find_block(v.last + t.first_block, from, t.nblocks, least);
      if (from >= t.nblocks) break;
      last = __ldg(v.last + t.first_block + from);
    }
    n = gc_decode_docs(v, t, from, e);
    __syncwarp();
#pragma unroll
    for (i = 0; i < 4; i++) docs[4 * lane + i] = 4 * lane + i < n ? e[i] : UINT32_MAX;
    __syncwarp();
#pragma unroll
    for (i = 0; i < 4; i++)
      if ((live >> i & 1) && d[i] <= last) {
        uint32_t at = 0, step;
        for (step = 64; step; step /= 2)
          if (docs[at + step - 1] < d[i]) at += step;
        live &= ~(1u << i);
        if (at < n && docs[at] == d[i]) {
          found |= 1u << i;
          where[i] = (uint64_t)from * GPUIR__BLOCK + at;
        }
      }
    from++;
  }
  __syncwarp();
  return found;
}

/* Matches of one driver block with all lists of the job, pushed with their scores. */
static __device__ void gc_and_block(const gc_view &v, const gc_batch &b, uint32_t j, uint32_t block,
                                    uint32_t *docs) {
  const gc_job job = b.jobs[j];
  gc_state *state = b.states + j;
  const gc_term *terms = b.terms + job.first_term;
  uint32_t lane = gc_lane(), d[4], score[4] = {0, 0, 0, 0}, live = 0, i, r, n, pushed = 0;
  uint64_t where[4];
  unsigned long long floor = gc_floor(state);
  const gc_term driver = terms[0];
  n = gc_decode_docs(v, driver, block, d);
#pragma unroll
  for (i = 0; i < 4; i++)
    if (4 * lane + i < n) live |= 1u << i;
  for (r = 1; r < job.nterms && __any_sync(GC_ALL, live); r++) {
    const gc_term t = terms[r];
    uint32_t found = gc_probe(v, t, d, live, where, docs);
    if (t.negated) {
      live &= ~found;
      continue;
    }
    live &= found;
#pragma unroll
    for (i = 0; i < 4; i++)
      if (live >> i & 1)
        score[i] += t.q * gc_contribution(t.weight, gc_freq(v, t, (uint32_t)where[i]), gc_norm(v, job, d[i]));
  }
#pragma unroll
  for (i = 0; i < 4; i++) {
    uint32_t vote;
    if (live >> i & 1) {
      uint32_t at = block * GPUIR__BLOCK + 4 * lane + i;
      score[i] += driver.q * gc_contribution(driver.weight, gc_freq(v, driver, at), gc_norm(v, job, d[i]));
      if (gc_key(score[i], d[i]) <= floor) live &= ~(1u << i);
    }
    vote = __ballot_sync(GC_ALL, live >> i & 1);
    if (vote) {
      if (!lane) pushed = atomicAdd(&state->count, __popc(vote));
      pushed = __shfl_sync(GC_ALL, pushed, 0);
      if (live >> i & 1) {
        uint32_t at = pushed + __popc(vote & ((1u << lane) - 1));
        if (at < b.room) b.cand[(uint64_t)j * b.room + at] = gc_key(score[i], d[i]);
      }
    }
  }
}

/* The distance of the driver blocks that are taken first; 0: none are. */
static __host__ __device__ __forceinline__ uint32_t gc_sample_step(uint32_t nblocks) {
  return nblocks >= 4 * GC_SAMPLES ? nblocks / GC_SAMPLES : 0;
}

/* Where lists are not expanded: a warp takes every so manieth driver block, decodes it and, for each further list, the
 * candidate blocks. Pass 1 takes GC_SAMPLES of each long driver's blocks, for a floor that keeps most of what pass 2
 * finds out of the buffer. */
static __global__ void __launch_bounds__(GC_AND_THREADS, 3)
    gc_and(const __grid_constant__ gc_view v, const __grid_constant__ gc_batch b, int pass) {
  __shared__ uint32_t docs[GC_AND_THREADS / 32][GPUIR__BLOCK];
  const uint32_t *starts = pass == 1 ? b.sample_start : b.and_start;
  const uint32_t groups = pass == 1 ? b.nsamples : b.nand_groups, group = pass == 1 ? 1 : b.and_group;
  uint32_t warps = gridDim.x * (GC_AND_THREADS / 32),
           at = blockIdx.x * (GC_AND_THREADS / 32) + threadIdx.x / 32;
  for (; at < groups; at += warps) {
    uint32_t entry = gc_find_block(starts, 0, b.nand, at + 1) - 1, j = b.and_jobs[entry];
    const uint32_t n = b.terms[b.jobs[j].first_term].nblocks, step = gc_sample_step(n);
    uint32_t block = (at - __ldg(starts + entry)) * group, end = min(block + group, n);
    if (b.states[j].done) continue;
    if (pass == 1) {
      gc_and_block(v, b, j, block * step, docs[threadIdx.x / 32]);
      continue;
    }
    for (; block < end; block++)
      if (!pass || !step || block % step || block / step >= GC_SAMPLES)
        gc_and_block(v, b, j, block, docs[threadIdx.x / 32]);
  }
}

/* ============================================================================
 * 6  Following documents through expanded lists: AND, and OR by MaxScore
 * ==========================================================================*/

/* The documents of a driving list wait in a queue of the warp until 64 are together, which are then followed through
 * the lists behind it, two a lane, as long as what these can add still lifts them to the floor. Two, as a lane waits
 * for memory most of the time: side by side they made ANDs 11 % faster. What is X is for jobs whose lists are all
 * expanded: no registers are kept for decoding there (12 %). The others take one document a lane.
 * AND: the shortest list drives; who misses a list leaves.
 * OR: of a job's lists by ascending df, e drives, and a document that an earlier list holds is left to that one. Lists
 * whose bounds together stay below the floor drive nothing (Turtle and Flood 1995). Beforehand a sample of the
 * shortest list's blocks is scored in full: its k-th best score is the floor. */

typedef struct gc_queue {
  uint32_t doc[GC_QUEUE], score[GC_QUEUE], rest[GC_QUEUE]; /* those that wait */
  uint32_t docs[GPUIR__BLOCK];                             /* gc_probe's */
} gc_queue;

/* The most that the list can add to a document: 1 byte, of a row that fits the caches. */
static __device__ __forceinline__ uint32_t gc_bound_at(const gc_view &v, const gc_term &t, uint32_t doc) {
  return t.step ? min(t.most, t.step * __ldg(v.peaks + t.row + (doc >> t.span))) : t.most;
}

/* Whether a list with marks may hold the document. */
static __device__ __forceinline__ bool gc_marked(const gc_view &v, const gc_term &t, uint32_t doc) {
  const uint32_t bit = doc >> t.shift, cell = bit % GC_CELLS;
  return __ldg((const uint32_t *)(v.marks + t.marks + bit / GC_CELLS) + cell / 32) >> (cell & 31) & 1;
}

/* Posting i's docID in an expanded list. */
static __device__ __forceinline__ uint32_t gc_doc_at(const gc_view &v, const gc_term &t, uint32_t i) {
  const uint64_t at = t.first_block * GPUIR__BLOCK + i;
  const uint32_t x = __ldg(v.narrow + at);
  const uint2 base = __ldg(v.bases + at / GPUIR__BLOCK);
  return base.y ? __ldg(v.wide + (uint64_t)(base.y - 1) * GPUIR__BLOCK + at % GPUIR__BLOCK) : base.x + x;
}

/* Of an expanded list's postings from `at` on, the first that is not below doc; x: the docID of `at`. Returns whether
 * it is doc's. */
static __device__ __forceinline__ bool gc_seek(const gc_view &v, const gc_term &t, uint32_t doc, uint32_t x,
                                               uint32_t *at) {
  uint32_t lo = *at, hi = lo, step;
  for (step = 1; x < doc; step *= 2) {
    lo = hi + 1;
    hi += min(step, t.df - hi);
    x = hi < t.df ? gc_doc_at(v, t, hi) : UINT32_MAX;
  }
  while (lo < hi) {
    const uint32_t mid = lo + (hi - lo) / 2, y = gc_doc_at(v, t, mid);
    if (y < doc) {
      lo = mid + 1;
    } else {
      hi = mid;
      x = y;
    }
  }
  *at = lo;
  return x == doc;
}

/* Looks U documents a lane up in an expanded list, those of `live`: a bit each. A group of 16 bytes has 96 marks and
 * the number of postings before them: the marks turn away 7 of 8 documents that the list does not hold, and say where
 * in the list the document would be: there, if each mark is of one document; otherwise there or, as postings may share
 * a mark, a little behind. So a contribution is the second or third load in turn. By way of the block and a search in
 * it it was the sixth; with that, and the marks of gc_drive_some asked for one after another, ANDs took 1.36 times as
 * long. Returns those that are there; at: where in the list. */
template <uint32_t U>
static __device__ __forceinline__ uint32_t gc_find(const gc_view &v, const gc_term &t, const uint32_t doc[U],
                                                   uint32_t live, uint32_t at[U]) {
  uint32_t u;
  uint4 m[U];
#pragma unroll
  for (u = 0; u < U; u++)
    m[u] = live >> u & 1 ? __ldg(v.marks + t.marks + (doc[u] >> t.shift) / GC_CELLS) : make_uint4(0, 0, 0, 0);
#pragma unroll
  for (u = 0; u < U; u++) {
    const uint32_t cell = (doc[u] >> t.shift) % GC_CELLS, bit = 1u << (cell & 31);
    const uint32_t word = cell < 32 ? m[u].x : cell < 64 ? m[u].y : m[u].z;
    at[u] = m[u].w + __popc(word & (bit - 1)) + (cell < 32 ? 0 : __popc(m[u].x)) +
            (cell < 64 ? 0 : __popc(m[u].y));
    if (!(word & bit) || at[u] >= t.df) live &= ~(1u << u);
  }
  if (t.shift) {
    uint32_t x[U];
#pragma unroll
    for (u = 0; u < U; u++) x[u] = live >> u & 1 ? gc_doc_at(v, t, at[u]) : 0;
#pragma unroll
    for (u = 0; u < U; u++)
      if ((live >> u & 1) && !gc_seek(v, t, doc[u], x[u], &at[u])) live &= ~(1u << u);
  }
  return live;
}

/* What a list adds to the live ones of U documents a lane (U 1 unless X); returns those that it holds. add NULL: it is
 * not asked for. */
template <bool X, uint32_t U>
static __device__ __forceinline__ uint32_t gc_look_up(const gc_view &v, const gc_job &job, const gc_term &t,
                                                      const uint32_t doc[U], uint32_t live, gc_queue *w,
                                                      uint32_t *add) {
  uint32_t at[U], u;
  if (X || (t.kind == GC_LONG && v.impact)) {
    live = gc_find<U>(v, t, doc, live, at);
    if (!add) return live;
    if (X || job.stored) {
#pragma unroll
      for (u = 0; u < U; u++)
        add[u] = live >> u & 1 ? t.q * __ldg(v.impact + t.first_block * GPUIR__BLOCK + at[u]) : 0;
      return live;
    }
  } else {
    const uint32_t d[4] = {doc[0], doc[0], doc[0], doc[0]};
    uint64_t where[4] = {0, 0, 0, 0};
    if (t.kind == GC_LONG && live && !gc_marked(v, t, doc[0])) live = 0;
    live = gc_probe(v, t, d, live, where, w->docs);
    if (!add) return live;
    at[0] = (uint32_t)where[0];
  }
#pragma unroll
  for (u = 0; u < U; u++)
    add[u] =
        live >> u & 1 ? t.q * gc_contribution(t.weight, gc_freq(v, t, at[u]), gc_norm(v, job, doc[u])) : 0;
  return live;
}

/* Takes the last waiting documents, at most 32 * U of the `count`, through the other lists. */
template <bool ALL, bool X, uint32_t U>
static __device__ __forceinline__ void gc_follow(const gc_view &v, const gc_batch &b, uint32_t j, uint32_t e,
                                                 unsigned long long floor, uint32_t count, gc_queue *w) {
  const gc_job &job = b.jobs[j];
  const gc_term *terms = b.terms + job.first_term;
  const uint32_t lane = gc_lane(), need = gc_need(floor), npositive = job.npositive, nterms = job.nterms;
  const uint32_t from = count > 32 * U ? count - 32 * U : 0;
  uint32_t doc[U], score[U], rest[U], add[U], live = 0, found, r, u, vote, pushed = 0;
  __syncwarp();
#pragma unroll
  for (u = 0; u < U; u++) {
    const uint32_t at = from + 32 * u + lane;
    if (at < count) live |= 1u << u;
    doc[u] = at < count ? w->doc[at] : 0;
    score[u] = at < count ? w->score[at] : 0;
    rest[u] = at < count ? w->rest[at] : 0;
  }
  __syncwarp();
  for (r = e + 1; r < npositive && __any_sync(GC_ALL, live); r++) {
    const gc_term &t = terms[r];
#pragma unroll
    for (u = 0; u < U; u++)
      if (need > 1 && (live >> u & 1)) rest[u] -= gc_bound_at(v, t, doc[u]);
    found = gc_look_up<X, U>(v, job, t, doc, live, w, add);
    if (ALL) live = found;
#pragma unroll
    for (u = 0; u < U; u++) {
      score[u] += add[u];
      if (score[u] + rest[u] < need) live &= ~(1u << u);
    }
  }
#pragma unroll
  for (u = 0; u < U; u++)
    if (gc_key(score[u], doc[u]) <= floor) live &= ~(1u << u);
  for (r = 0; r < nterms && __any_sync(GC_ALL, live); r++) {
    if (r == e) r = npositive; /* from the earlier ones to the negated ones */
    if (r < nterms) live &= ~gc_look_up<X, U>(v, job, terms[r], doc, live, w, NULL);
  }
#pragma unroll
  for (u = 0; u < U; u++) {
    vote = __ballot_sync(GC_ALL, live >> u & 1);
    if (vote) {
      if (!lane) pushed = atomicAdd(&b.states[j].count, __popc(vote));
      pushed = __shfl_sync(GC_ALL, pushed, 0) + __popc(vote & ((1u << lane) - 1));
      if ((live >> u & 1) && pushed < b.room)
        b.cand[(uint64_t)j * b.room + pushed] = gc_key(score[u], doc[u]);
    }
  }
}

/* The postings of block `block` of the driver: q times their contributions. */
template <bool X>
static __device__ __forceinline__ void gc_drive_block(const gc_view &v, const gc_job &job, const gc_term &t,
                                                      uint32_t block, uint32_t d[4], uint32_t c[4]) {
  uint32_t i;
  if (X || (t.kind == GC_LONG && v.impact)) {
    const uint64_t g = t.first_block + block;
    const uint4 x = __ldg((const uint4 *)(v.impact + g * GPUIR__BLOCK) + gc_lane());
    gc_expanded_docs(v, g, d);
    if (X || job.stored) {
      c[0] = t.q * x.x;
      c[1] = t.q * x.y;
      c[2] = t.q * x.z;
      c[3] = t.q * x.w;
      return;
    }
  } else {
    (void)gc_decode_docs(v, t, block, d);
  }
  gc_decode_freqs(v, t, block, c);
  for (i = 0; i < 4; i++)
    c[i] = t.q * gc_contribution(t.weight, c[i], gc_norm(v, job, min(d[i], v.documents - 1)));
}

/* Those of the 32 blocks from `from` on that `which` names, of list e. Each: 4 bytes for its bound; then 6 bytes a
 * posting and a byte of peaks for each list behind. Only the postings of `lanes` are taken: for few queries, several
 * warps share a block. */
template <bool ALL, bool X>
static __device__ __forceinline__ void gc_drive_some(const gc_view &v, const gc_batch &b, uint32_t j,
                                                     uint32_t e, uint32_t from, uint32_t which,
                                                     uint32_t lanes, gc_queue *w) {
  const gc_job &job = b.jobs[j];
  const gc_term *terms = b.terms + job.first_term, &t = terms[e];
  const unsigned long long floor = __shfl_sync(GC_ALL, gc_floor(b.states + j), 0);
  const uint32_t lane = gc_lane(), need = gc_need(floor), npositive = job.npositive;
  constexpr uint32_t U = X ? GC_SIDE : 1;
  uint32_t behind = 0, count = 0, i, r, peak = t.most;
  if (need > 1) {
    for (r = e + 1; r < npositive; r++) behind += terms[r].most;
    if ((X || (t.kind == GC_LONG && job.stored)) && (which >> lane & 1))
      peak = t.q * __ldg(v.most + t.first_block + from + lane);
    which &= __ballot_sync(GC_ALL, peak + behind >= need);
  }
  while (which) {
    const uint32_t block = from + __ffs(which) - 1, n = gc_block_len(t, block);
    uint32_t d[4], c[4], rest[4] = {0, 0, 0, 0}, live = 0;
    which &= which - 1;
    gc_drive_block<X>(v, job, t, block, d, c);
#pragma unroll
    for (i = 0; i < 4; i++) d[i] = min(d[i], v.documents - 1);
    if (need > 1)
      for (r = e + 1; r < npositive; r++) {
        const gc_term o = terms[r]; /* a copy: each of its fields is loaded once */
#pragma unroll
        for (i = 0; i < 4; i++) rest[i] += gc_bound_at(v, o, d[i]);
      }
#pragma unroll
    for (i = 0; i < 4; i++)
      if (4 * lane + i < n && (lanes >> lane & 1) && c[i] + rest[i] >= need) live |= 1u << i;
    if (ALL && npositive > 1 && (X || terms[1].kind == GC_LONG)) {
      const gc_term o = terms[1];
      uint32_t marked = 0; /* four loads at once, none behind a vote */
#pragma unroll
      for (i = 0; i < 4; i++)
        if (live >> i & 1) marked |= gc_marked(v, o, d[i]) << i;
      live = marked;
    }
#pragma unroll
    for (i = 0; i < 4; i++) {
      uint32_t vote = __ballot_sync(GC_ALL, live >> i & 1);
      if (live >> i & 1) {
        uint32_t at = count + __popc(vote & ((1u << lane) - 1));
        w->doc[at] = d[i];
        w->score[at] = c[i];
        w->rest[at] = rest[i];
      }
      count += __popc(vote);
    }
    for (; count >= 32 * U; count -= 32 * U) gc_follow<ALL, X, U>(v, b, j, e, floor, count, w);
  }
  if (count) gc_follow<ALL, X, U>(v, b, j, e, floor, count, w);
  __syncwarp();
}

/* The same, by the code that the job's lists allow. */
template <bool ALL>
static __device__ __forceinline__ void gc_drive_from(const gc_view &v, const gc_batch &b, uint32_t j,
                                                     uint32_t e, uint32_t from, uint32_t which,
                                                     uint32_t lanes, gc_queue *w) {
  if (b.jobs[j].expanded)
    gc_drive_some<ALL, true>(v, b, j, e, from, which, lanes, w);
  else
    gc_drive_some<ALL, false>(v, b, j, e, from, which, lanes, w);
}

/* Of `parts` (1 or 4) parts of a block's lanes, the i-th. */
static __device__ __forceinline__ uint32_t gc_lanes(uint32_t i, uint32_t parts) {
  return parts == 1 ? GC_ALL : 0xffu << i % 4 * 8;
}

/* A warp a group of driver blocks: pass 1 a sample of the long ones, pass 2 the rest, as in gc_and; pass 0 all.
 * Counted, of 980 ANDs of 3.8 M postings: 0.58 M warp instructions and 2.4 MB read from memory each, that is 19
 * instructions for 128 postings and 0.63 byte a posting of all lists, and 55 % of the issue slots. Without gain: the
 * next driver block loaded ahead, into registers or the L2 cache; the next ticket drawn ahead; 16 blocks a ticket;
 * three or five blocks of threads a multiprocessor; 64 or 256 samples. */
static __global__ void __launch_bounds__(GC_MAX_THREADS, GC_ALL_BLOCKS)
    gc_all(const __grid_constant__ gc_view v, const __grid_constant__ gc_batch b, int pass) {
  __shared__ gc_queue kept[GC_MAX_THREADS / 32];
  gc_queue *w = &kept[threadIdx.x / 32];
  const uint32_t *starts = pass == 1 ? b.sample_start : b.and_start;
  uint32_t at = blockIdx.x * (GC_MAX_THREADS / 32) + threadIdx.x / 32;
  for (;; at += gridDim.x * (GC_MAX_THREADS / 32)) {
    uint32_t entry, j, n, step, block, mine, which, lanes;
    if (pass != 1) {
      if (!gc_lane()) at = atomicAdd(&b.control->next_and, 1);
      at = __shfl_sync(GC_ALL, at, 0);
    }
    if (at >= (pass == 1 ? b.nsamples : b.nand_groups)) return;
    entry = gc_find_block(starts, 0, b.nand, at + 1) - 1;
    j = b.and_jobs[entry];
    if (b.states[j].done) continue;
    n = b.terms[b.jobs[j].first_term].nblocks;
    step = gc_sample_step(n);
    block = at - __ldg(starts + entry);
    if (pass == 1) {
      block *= step;
      which = 1;
      lanes = GC_ALL;
    } else {
      lanes = gc_lanes(block, b.and_parts);
      block = block / b.and_parts * b.and_group;
      mine = block + gc_lane();
      which = __ballot_sync(GC_ALL, gc_lane() < b.and_group && mine < n &&
                                        !(pass && step && mine % step == 0 && mine / step < GC_SAMPLES));
    }
    gc_drive_from<true>(v, b, j, 0, block, which, lanes, w);
  }
}

/* The AND that this OR waits for has found enough. */
static __device__ __forceinline__ bool gc_spared(const gc_batch &b, uint32_t j) {
  uint32_t after = b.jobs[j].after;
  return after != GC_NONE && b.states[after].count >= b.jobs[j].k;
}

/* A warp a block of the sample: GC_FIRST of each job's shortest list. Counted: 0.07 M warp instructions and 0.6 MB a
 * job. */
static __global__ void __launch_bounds__(GC_MAX_THREADS, GC_ALL_BLOCKS)
    gc_max_first(const __grid_constant__ gc_view v, const __grid_constant__ gc_batch b) {
  __shared__ gc_queue kept[GC_MAX_THREADS / 32];
  uint32_t at = blockIdx.x * (GC_MAX_THREADS / 32) + threadIdx.x / 32,
           step = gridDim.x * (GC_MAX_THREADS / 32);
  for (; at < b.nmax * GC_FIRST * b.max_parts; at += step) {
    uint32_t i = at / b.max_parts, j = b.max_jobs[i / GC_FIRST], n = b.terms[b.jobs[j].first_term].nblocks;
    uint32_t block = i % GC_FIRST * max(1u, n / GC_FIRST);
    if (block < n && !gc_spared(b, j))
      gc_drive_from<false>(v, b, j, 0, block, 1, gc_lanes(at, b.max_parts), &kept[threadIdx.x / 32]);
  }
}

/* One block of threads a job: raises its floor to the k-th best of the sample, empties the buffer, and decides which
 * lists drive, or that tiles cost less. Counted: 4,080 warp instructions, 10 KB a job. */
static __global__ void __launch_bounds__(GC_FINAL_THREADS)
    gc_max_plan(const __grid_constant__ gc_view v, const __grid_constant__ gc_batch b) {
  __shared__ uint32_t hist[256];
  const uint32_t j = b.max_jobs[blockIdx.x];
  const gc_job &job = b.jobs[j];
  const gc_term *terms = b.terms + job.first_term;
  gc_state *state = b.states + j;
  unsigned long long *cand = b.cand + (uint64_t)j * b.room;
  uint32_t n = min(state->count, b.room), i;
  if (gc_spared(b, j)) {
    if (!threadIdx.x) state->followed = 1;
    return;
  }
  if (n >= job.k) {
    gc_keys_cand keys = {cand};
    unsigned long long kth = gc_select(keys, n, job.k, job.k, hist);
    if (!threadIdx.x && kth > 1 && kth - 1 > state->floor) state->floor = kth - 1;
  }
  __syncthreads();
  for (i = threadIdx.x; i < n; i += blockDim.x) cand[i] = 0;
  if (!threadIdx.x) {
    uint32_t need = gc_need(state->floor), behind = 0, drivers = 0, groups = 0;
    uint64_t all = (uint64_t)GC_TILE_COST * v.ntiles, driving = 0;
    state->count = 0;
    for (i = 0; i < job.npositive; i++) behind += terms[i].most;
    for (i = 0; i < job.npositive; i++) {
      all += terms[i].nblocks;
      if (behind >= need) {
        drivers = i + 1;
        driving += terms[i].nblocks;
        groups += (terms[i].nblocks + b.drive_group - 1) / b.drive_group;
      }
      behind -= terms[i].most;
    }
    if (need > 1 && (job.npositive == 1 || driving * GC_PROBE_COST <= all)) {
      unsigned long long at = atomicAdd(&b.control->drives, (unsigned long long)drivers << 40 | groups);
      uint32_t entry = (uint32_t)(at >> 40), start = (uint32_t)at; /* groups stay below 2^32 */
      state->followed = 1;
      for (i = 0; i < drivers; i++) {
        b.drives[entry + i].job = j;
        b.drives[entry + i].term = i;
        b.drive_start[entry + i] = start;
        start += (terms[i].nblocks + b.drive_group - 1) / b.drive_group;
      }
    }
  }
}

/* A warp takes a ticket for a group of blocks. Counted, of 982 ORs of 3.8 M postings: 0.75 M warp instructions and
 * 2.1 MB read from memory each, that is 25 instructions for 128 postings and 0.55 byte a posting of all lists. */
static __global__ void __launch_bounds__(GC_MAX_THREADS, GC_MAX_BLOCKS)
    gc_max(const __grid_constant__ gc_view v, const __grid_constant__ gc_batch b) {
  __shared__ gc_queue kept[GC_MAX_THREADS / 32];
  const unsigned long long drives = b.control->drives;
  const uint32_t entries = (uint32_t)(drives >> 40), groups = (uint32_t)drives;
  for (;;) {
    uint32_t ticket = 0, part, entry, from, n;
    gc_drive drive;
    if (!gc_lane()) ticket = atomicAdd(&b.control->next_drive, 1);
    ticket = __shfl_sync(GC_ALL, ticket, 0);
    part = ticket;
    ticket /= b.max_parts;
    if (ticket >= groups) return;
    entry = gc_find_block(b.drive_start, 0, entries, ticket + 1) - 1;
    drive = b.drives[entry];
    if (b.states[drive.job].done) continue;
    from = (ticket - b.drive_start[entry]) * b.drive_group;
    n = min(b.drive_group, b.terms[b.jobs[drive.job].first_term + drive.term].nblocks - from);
    gc_drive_from<false>(v, b, drive.job, drive.term, from, gc_mask(n), gc_lanes(part, b.max_parts),
                         &kept[threadIdx.x / 32]);
  }
}

/* ============================================================================
 * 7  Top-k: the hits of a query out of its candidates
 * ==========================================================================*/

/* One block of threads an AND job: raises its floor to its k-th best candidate so far. Counted: 1,010 warp
 * instructions, 2.6 KB. */
static __global__ void __launch_bounds__(GC_FINAL_THREADS) gc_raise(const __grid_constant__ gc_batch b) {
  __shared__ uint32_t hist[256];
  uint32_t j = b.and_jobs[blockIdx.x], k = b.jobs[j].k, n = min(b.states[j].count, b.room);
  if (b.states[j].done || n <= k) return;
  gc_keys_cand keys = {b.cand + (uint64_t)j * b.room};
  unsigned long long kth = gc_select(keys, n, k, k, hist);
  if (!threadIdx.x && kth > 1) atomicMax(&b.states[j].floor, kth - 1);
}

/* One block of threads a query: selects the best k keys, sorts them in shared memory and empties the buffer. When
 * candidates were lost, it raises the floor instead and asks for another run. Reads 8 bytes a candidate, up to 8
 * times. Counted: 3,810 warp instructions and 5.9 KB a query. */
static __global__ void __launch_bounds__(GC_FINAL_THREADS)
    gc_final(const __grid_constant__ gc_view v, const __grid_constant__ gc_batch b) {
  extern __shared__ uint4 gc_dynamic[];
  __shared__ uint32_t hist[256], taken;
  unsigned long long *best = (unsigned long long *)gc_dynamic, *cand, prefix = 0;
  uint2 jobs = b.query_jobs[blockIdx.x];
  uint32_t *out = b.out + (uint64_t)blockIdx.x * b.out_stride;
  uint32_t j = jobs.x, other = GC_NONE, k, n, count, size, i, step, half;
  if (jobs.y != GC_NONE) { /* AND, then OR: the latter counts unless AND found k */
    if (b.states[jobs.x].done) return;
    if (b.states[jobs.x].count < b.jobs[jobs.x].k) {
      other = jobs.x;
      j = jobs.y;
    }
  } else if (b.states[j].done) {
    return;
  }
  cand = b.cand + (uint64_t)j * b.room;
  count = b.states[j].count;
  n = min(count, b.room);
  k = min(b.jobs[j].k, n);
  if (n > k) {
    gc_keys_cand keys = {cand};
    prefix = gc_select(keys, n, k, k, hist);
  }
  __syncthreads();
  if (count > b.room) {
    for (i = threadIdx.x; i < n; i += blockDim.x) cand[i] = 0;
    if (!threadIdx.x) {
      b.states[j].floor = max(b.states[j].floor, prefix - 1);
      b.states[j].count = b.states[j].level = b.states[j].next = 0;
      if (other != GC_NONE) b.states[other].count = 0; /* it runs again too, with the same outcome */
      out[0] = GC_NONE;                                /* again */
    }
    if (other != GC_NONE)
      for (i = threadIdx.x; i < b.room; i += blockDim.x) b.cand[(uint64_t)other * b.room + i] = 0;
    return;
  }
  for (size = 1; size < k; size *= 2) {}
  if (!threadIdx.x) taken = 0;
  for (i = threadIdx.x; i < size; i += blockDim.x) best[i] = 0;
  __syncthreads();
  for (i = threadIdx.x; i < n; i += blockDim.x) {
    unsigned long long key = cand[i];
    if (key >= prefix) {
      uint32_t at = atomicAdd(&taken, 1);
      if (at < k) best[at] = key;
    }
    cand[i] = 0;
  }
  if (other != GC_NONE)
    for (i = threadIdx.x, n = min(b.states[other].count, b.room); i < n; i += blockDim.x)
      b.cand[(uint64_t)other * b.room + i] = 0;
  __syncthreads();
  for (step = 2; step <= size; step *= 2) /* bitonic, descending */
    for (half = step / 2; half; half /= 2) {
      for (i = threadIdx.x; i < size; i += blockDim.x) {
        uint32_t o = i ^ half;
        if (o > i) {
          unsigned long long x = best[i], y = best[o];
          if ((x < y) == !(i & step)) {
            best[i] = y;
            best[o] = x;
          }
        }
      }
      __syncthreads();
    }
  for (i = threadIdx.x; i < k; i += blockDim.x) {
    out[2 + 2 * i] = min(~(uint32_t)best[i], v.documents - 1);
    out[3 + 2 * i] = (uint32_t)(best[i] >> 32);
  }
  if (!threadIdx.x) {
    out[0] = k;
    b.states[j].done = 1;
    b.states[jobs.x].done = 1;
    if (jobs.y != GC_NONE) b.states[jobs.y].done = 1;
  }
}

/* ============================================================================
 * 8  The host
 * ==========================================================================*/

/* What the host knows of a long list that is expanded; see gc_term. */
typedef struct gc_aid {
  uint64_t marks;
  uint32_t row, span, shift, most;
} gc_aid;

/* Where a list that was coded otherwise lies as bp128: docIDs, then frequencies at the next multiple of 16. */
typedef struct gc_place {
  uint64_t docs; /* address */
  uint32_t docs_words, freqs_words;
} gc_place;

typedef struct gc_cache gc_cache;

struct gpuir_cuda {
  gpuir_allocator a;
  const gpuir_index *ix;
  int device, processors, expanded;
  gc_view view;
  void *memory[24]; /* what the view points to */
  unsigned nmemory;
  gc_place *places;   /* of all terms, if lists were recoded; NULL: they lie as in the file */
  gpuir__buf recoded; /* void *: the memory of those */
  gc_term *lists;     /* long lists, in the order of their blocks */
  size_t nlists;
  gc_aid *aids;    /* of all long lists, by their number in the index; NULL: there are no guides */
  gc_cache *cache; /* NULL: the whole index is on the device */
  uint64_t room, threshold;
  int refused; /* the bound left no memory for something */
  uint32_t k_most;
  size_t batch;
  unsigned or_grid, and_grid, all_grid, max_grid;
  gpuir_cuda_info info; /* counters: atomic */
};

/* What an attached searcher owns: a stream and memory for one launch. */
typedef struct gc_context {
  gpuir_cuda *cuda;
  gpuir_allocator a;
  gpuir__engine *engine;
  cudaStream_t stream;
  size_t queries, njobs, nterms, nslots, nchunks; /* at most in a launch */
  uint64_t ncand;
  /* host */
  gc_term *terms;
  gc_job *jobs;
  gc_chunk *chunks;
  uint32_t *and_jobs, *and_start, *sample_start, *or_jobs, *max_jobs;
  uint2 *query_jobs;
  uint8_t *staging;           /* pinned */
  uint32_t *out, *out_device; /* mapped */
  size_t staging_size, out_size;
  uint64_t *held; /* lists of the cache that the planned launch uses */
  size_t nheld;
  uint64_t releases; /* of the cache, when a list was last asked for */
  uint64_t others;   /* lists that other searchers held then */
  uint64_t device_bytes;
  cudaEvent_t sent; /* they are on the device */
  void *host;       /* all of the unpinned arrays */
  size_t host_size;
  /* device */
  uint8_t *input;
  uint32_t *first, *bound, *order, *total;
  unsigned long long *cand;
  gc_drive *drives;
  uint32_t *drive_start;
  int dirty; /* a launch failed: the candidates are to be cleared */
} gc_context;

static int gc_fail(gpuir_error *err, cudaError_t e, const char *what) {
  (void)cudaGetLastError(); /* forget it, if it can be forgotten */
  if (e == cudaErrorMemoryAllocation)
    return gpuir__fail(err, GPUIR_E_NOMEM, 0, "CUDA: %s: out of device memory", what);
  return gpuir__fail(err, GPUIR_E_BACKEND, 0, "CUDA: %s: %s", what, cudaGetErrorString(e));
}

/* Tests count calls, and let one of them fail without being made. */
#ifdef GPUIR_CUDA_SEAM
extern "C" long gpuir_cuda_seam_calls, gpuir_cuda_seam_fail;
extern "C" int gpuir_cuda_seam_error;
long gpuir_cuda_seam_calls, gpuir_cuda_seam_fail;
int gpuir_cuda_seam_error;
#define GC_CALL(call) \
  (++gpuir_cuda_seam_calls == gpuir_cuda_seam_fail ? (cudaError_t)gpuir_cuda_seam_error : (call))
#else
#define GC_CALL(call) (call)
#endif

/* Evaluates a CUDA call; leaves the function with its error. */
#define GC_TRY(call, what)                                    \
  do {                                                        \
    cudaError_t gc_e = GC_CALL(call);                         \
    if (gc_e != cudaSuccess) return gc_fail(err, gc_e, what); \
  } while (0)

/* Device memory within the bound; all of it counts. */
static int gc_take(gpuir_cuda *c, size_t n, void **p, gpuir_error *err) {
  uint64_t used;
  *p = NULL;
  n = n ? n : 1;
  used = __atomic_add_fetch(&c->info.used_memory, n, __ATOMIC_RELAXED);
  if (used > c->room) {
    __atomic_fetch_sub(&c->info.used_memory, n, __ATOMIC_RELAXED);
    __atomic_store_n(&c->refused, 1, __ATOMIC_RELAXED);
    return gpuir__fail(err, GPUIR_E_NOMEM, 0,
                       "CUDA: %llu MB of device memory are needed, %llu MB are allowed",
                       (unsigned long long)(used >> 20), (unsigned long long)(c->room >> 20));
  }
  {
    cudaError_t e = GC_CALL(cudaMalloc(p, n));
    if (e == cudaSuccess) return GPUIR_OK;
    *p = NULL;
    __atomic_fetch_sub(&c->info.used_memory, n, __ATOMIC_RELAXED);
    return gc_fail(err, e, "allocating device memory");
  }
}

/* Memory that gc_take gave. */
static void gc_give(gpuir_cuda *c, void *p, size_t n) {
  if (!p) return;
  (void)cudaFree(p);
  __atomic_fetch_sub(&c->info.used_memory, n ? n : 1, __ATOMIC_RELAXED);
}

static int gc_device_alloc(gpuir_cuda *c, size_t n, void **p, gpuir_error *err) {
  int status = gc_take(c, n, p, err);
  if (!status) c->memory[c->nmemory++] = *p;
  return status;
}

/* A section's bytes and the padding behind it. */
static int gc_upload(gpuir_cuda *c, const void *from, size_t n, const void **to, gpuir_error *err) {
  void *p;
  int status = gc_device_alloc(c, n + GC_PAD, &p, err);
  if (status) return status;
  GC_TRY(cudaMemcpy(p, from, n, cudaMemcpyHostToDevice), "uploading the index");
  GC_TRY(cudaMemset((uint8_t *)p + n, 0, GC_PAD), "uploading the index");
  c->info.resident_bytes += n;
  *to = p;
  return GPUIR_OK;
}

#define GC_ALIGN(n) (((uint64_t)(n) + 15) & ~(uint64_t)15)

/* Describes the list of a term for the kernels; q and what follows stay 0. Nothing of its codecs is looked at. */
static int gc_describe(const gpuir_cuda *c, uint64_t id, gc_term *t, gpuir__list *l, gpuir_error *err) {
  const gpuir_index *ix = c->ix;
  int status = gpuir__list_find(ix, id, l);
  if (status)
    return gpuir__fail(err, status, 0, "%s: cannot open a list: %s", ix->path, gpuir_strerror(status));
  memset(t, 0, sizeof *t);
  t->df = l->df;
  t->nblocks = l->nblocks;
  if (l->df == 1) {
    t->kind = GC_INLINE;
    t->docs = l->one_docid;
    t->freqs = l->one_tf;
    return GPUIR_OK;
  }
  t->kind = l->extent ? GC_LONG : GC_SHORT;
  if (l->extent) t->first_block = l->extent->first_block;
  if (c->places) {
    const gc_place *p = &c->places[id];
    t->docs = p->docs;
    t->docs_len = (uint64_t)p->docs_words * 4;
    t->freqs = p->docs + GC_ALIGN(t->docs_len);
    t->freqs_len = (uint64_t)p->freqs_words * 4;
  } else {
    t->docs = (uint64_t)(l->docs.bytes - ix->docids);
    t->docs_len = l->docs.len;
    t->freqs = (uint64_t)(l->freqs.bytes - ix->freqs);
    t->freqs_len = l->freqs.len;
  }
  return GPUIR_OK;
}

/* ---- sending lists: from the index's file, if it is locked in memory, or by pinned memory on its way, twice ---- */

#define GC_STAGE (1u << 20) /* bytes */

typedef struct gc_pipe {
  cudaStream_t stream;
  cudaEvent_t sent[2];
  uint8_t *stage[2], *to; /* to: where what waits in the stage `side` goes, `fill` bytes */
  size_t fill;
  unsigned side;
  uint8_t *locked; /* the file, of `size` bytes; or NULL */
  uint64_t size;
} gc_pipe;

static int gc_pipe_open(gc_pipe *p, gpuir_error *err) {
  unsigned i;
  GC_TRY(cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking), "creating a stream");
  for (i = 0; i < 2; i++) {
    GC_TRY(cudaEventCreateWithFlags(&p->sent[i], cudaEventDisableTiming), "creating an event");
    GC_TRY(cudaMallocHost((void **)&p->stage[i], GC_STAGE), "allocating pinned memory");
  }
  return GPUIR_OK;
}

/* Locks the index's file in memory, so that the device reads it at the bus's rate, where the system can do that and has
 * twice as much memory. */
static void gc_pipe_lock(gc_pipe *p, const gpuir_cuda *c) {
  const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
  int can = 0;
  p->size = c->ix->size;
  if (cudaDeviceGetAttribute(&can, cudaDevAttrHostRegisterReadOnlySupported, c->device) == cudaSuccess &&
      can && pages > 0 && bytes > 0 && p->size / (uint64_t)bytes < (uint64_t)pages / 2 &&
      cudaHostRegister(c->ix->map, (size_t)p->size, cudaHostRegisterReadOnly) == cudaSuccess)
    p->locked = c->ix->map;
  else
    (void)cudaGetLastError();
}

static void gc_pipe_close(gc_pipe *p) {
  unsigned i;
  if (p->stream) {
    (void)cudaStreamSynchronize(p->stream);
    (void)cudaStreamDestroy(p->stream);
  }
  for (i = 0; i < 2; i++) {
    if (p->sent[i]) (void)cudaEventDestroy(p->sent[i]);
    (void)cudaFreeHost(p->stage[i]);
  }
  if (p->locked) (void)cudaHostUnregister(p->locked);
}

static int gc_pipe_flush(gc_pipe *p, gpuir_error *err) {
  const size_t n = p->fill;
  p->fill = 0;
  if (!n) return GPUIR_OK;
  GC_TRY(cudaMemcpyAsync(p->to, p->stage[p->side], n, cudaMemcpyHostToDevice, p->stream), "sending a list");
  GC_TRY(cudaEventRecord(p->sent[p->side], p->stream), "sending a list");
  p->side ^= 1;
  GC_TRY(cudaEventSynchronize(p->sent[p->side]), "sending a list");
  return GPUIR_OK;
}

/* Sends n bytes to the device, behind all that was sent before, once the stage is full or flushed. What goes closely
 * behind what waits goes with it. */
static int gc_pipe_put(gc_pipe *p, const void *to, const void *from, uint64_t n, gpuir_error *err) {
  const uint8_t *source = (const uint8_t *)from;
  uint8_t *target = (uint8_t *)(uintptr_t)to;
  if (p->locked && (uint64_t)((uintptr_t)source - (uintptr_t)p->locked) < p->size) {
    int status = gc_pipe_flush(p, err);
    if (status) return status;
    GC_TRY(cudaMemcpyAsync(target, source, n, cudaMemcpyHostToDevice, p->stream), "sending a list");
    return GPUIR_OK;
  }
  while (n) {
    size_t at = p->fill && target >= p->to ? (size_t)(target - p->to) : 0, part;
    if (at < p->fill || at - p->fill > 64 || at >= GC_STAGE) {
      int status = gc_pipe_flush(p, err);
      if (status) return status;
      at = 0;
    }
    if (!at) p->to = target;
    part = (size_t)gpuir__min64(n, GC_STAGE - at);
    memcpy(p->stage[p->side] + at, source, part);
    p->fill = at + part;
    source += part;
    target += part;
    n -= part;
  }
  return GPUIR_OK;
}

/* ---- recoding ----
 * Lists in other codecs are sent as they are to an area of the device, as many at once as it holds, and written from
 * there as bp128. The exceptions of a pfd-list, which only its beginning leads to, are decoded by the CPU. */

#define GC_AREA (64u << 20)             /* bytes, or one list */
#define GC_LISTS (1u << 14)             /* lists at once */
#define GC_AREA_MORE (GC_PAD + 16 * 16) /* padding of an area's tables */

typedef struct gc_recoder {
  gc_pipe *pipe;
  gc_recoding work;
  gc_source *sources; /* of `most` lists */
  gc_target *targets;
  uint32_t *start, most;
  uint64_t *ids;
  unsigned long long *words; /* pinned: what the device tells */
  uint8_t *area;
  uint64_t size, fill, need; /* bytes; need: with the tables, of the lists until now */
} gc_recoder;

static int gc_coded_otherwise(const gpuir__list *l) {
  return l->df > 1 && (l->docs.codec->id != GC_BP128 || l->freqs.codec->id != GC_BP128);
}

static int gc_recoder_open(gc_recoder *r, const gpuir_allocator *a, gc_pipe *pipe, uint32_t most,
                           gpuir_error *err) {
  r->pipe = pipe;
  r->most = most;
  r->sources = (gc_source *)gpuir__alloc_zero(a, most * sizeof *r->sources);
  r->targets = (gc_target *)gpuir__alloc_zero(a, most * sizeof *r->targets);
  r->start = (uint32_t *)gpuir__alloc_zero(a, ((size_t)most + 1) * sizeof *r->start);
  r->ids = (uint64_t *)gpuir__alloc_zero(a, most * sizeof *r->ids);
  if (!r->sources || !r->targets || !r->start || !r->ids) return gpuir__fail_nomem(err);
  GC_TRY(cudaHostAlloc((void **)&r->words, (size_t)most * 16, cudaHostAllocMapped),
         "allocating pinned memory");
  GC_TRY(cudaHostGetDevicePointer((void **)&r->work.words, r->words, 0), "mapping pinned memory");
  return GPUIR_OK;
}

static void gc_recoder_close(gc_recoder *r, const gpuir_allocator *a) {
  (void)cudaFreeHost(r->words);
  gpuir__free(a, r->sources, r->most * sizeof *r->sources);
  gpuir__free(a, r->targets, r->most * sizeof *r->targets);
  gpuir__free(a, r->start, ((size_t)r->most + 1) * sizeof *r->start);
  gpuir__free(a, r->ids, r->most * sizeof *r->ids);
}

/* From now on the next lists are collected in that area. */
static void gc_recoder_begin(gc_recoder *r, void *area, uint64_t size) {
  r->area = (uint8_t *)area;
  r->size = size;
  r->fill = r->need = r->work.nlists = r->work.nblocks = 0;
  r->pipe->fill = 0; /* what a list that failed left */
}

/* What stands between streams, and behind them, may be read. */
static int gc_recoder_clear(const gc_recoder *r, void *p, uint64_t n, gpuir_error *err) {
  GC_TRY(cudaMemsetAsync(p, 0, n, r->pipe->stream), "recoding lists");
  return GPUIR_OK;
}

/* Bytes that a list takes of the area. */
static uint64_t gc_recoder_bytes(const gpuir__list *l) {
  const uint64_t n = l->nblocks;
  uint64_t bytes =
      GC_ALIGN(l->docs.len) + GC_ALIGN(l->freqs.len) + sizeof(gc_source) + sizeof(gc_target) + 4 + 10 * n;
  if (l->extent) bytes += 3 * GC_ALIGN(4 * n) + 2 * GC_ALIGN(n);
  if (l->docs.codec->id == GCL_PFL) {
    gpuir__pfl_level top;
    unsigned depth;
    uint64_t memory;
    (void)gpuir__pfl_find(&l->docs, &top, &depth, &memory);
    bytes += 2 * GC_ALIGN((uint64_t)top.number * 4);
  }
  return bytes;
}

/* Sends n bytes to the area; *to: where they will be. */
static int gc_recoder_put(gc_recoder *r, const void *from, uint64_t n, const void **to, gpuir_error *err) {
  *to = r->area + r->fill;
  r->fill += GC_ALIGN(n);
  return gc_pipe_put(r->pipe, *to, from, n, err);
}

static int gc_recoder_put_stream(gc_recoder *r, const gpuir__stream *s, uint64_t nblocks, gpuir__stream *to,
                                 gpuir_error *err) {
  int status = gc_recoder_put(r, s->bytes, s->len, (const void **)&to->bytes, err);
  to->len = s->len;
  to->n = s->n;
  to->limit = s->limit;
  if (!status && s->offset)
    status = gc_recoder_put(r, s->offset, nblocks * 4, (const void **)&to->offset, err);
  if (!status && s->width) status = gc_recoder_put(r, s->width, nblocks, (const void **)&to->width, err);
  return status;
}

/* Adds a list for which there is room; its place in the directory is the index's. */
static int gc_recoder_add(gc_recoder *r, const gpuir_index *ix, uint64_t id, gpuir__list *l,
                          gpuir_error *err) {
  gc_source *s = &r->sources[r->work.nlists];
  int status = gpuir__list_open_codecs(&ix->a, l);
  if (status)
    return gpuir__fail(err, status, 0, "%s: cannot open a list: %s", ix->path, gpuir_strerror(status));
  memset(s, 0, sizeof *s);
  s->docs_codec = l->docs.codec->id;
  s->freqs_codec = l->freqs.codec->id;
  s->docs.nblocks = l->nblocks;
  status = gc_recoder_put_stream(r, &l->docs, l->nblocks, &s->docs.s, err);
  if (!status) status = gc_recoder_put_stream(r, &l->freqs, l->nblocks, &s->freqs, err);
  if (!status && l->extent)
    status = gc_recoder_put(r, l->last, (uint64_t)l->nblocks * 4, (const void **)&s->docs.s.last, err);
  if (!status && s->docs_codec == GCL_PFL) {
    const gpuir__pfl_state *state = (const gpuir__pfl_state *)l->docs.scratch;
    const uint64_t n = (uint64_t)state->top.number * 4;
    s->docs.slots = s->docs.s.bytes + (state->top.slots - l->docs.bytes);
    s->docs.bits = state->top.b;
    s->docs.number = state->top.number;
    status = gc_recoder_put(r, state->overflows, n, (const void **)&s->docs.overflows, err);
    if (!status) status = gc_recoder_put(r, state->positions, n, (const void **)&s->docs.positions, err);
  }
  gpuir__list_close(&ix->a, l);
  r->need += gc_recoder_bytes(l);
  r->ids[r->work.nlists] = id;
  r->targets[r->work.nlists].entry = l->extent ? l->extent->first_block : 0;
  r->start[r->work.nlists++] = r->work.nblocks;
  r->work.nblocks += l->nblocks;
  return status;
}

/* Room for a table of the area, which the kernels write. */
static void *gc_recoder_table(gc_recoder *r, uint64_t n) {
  void *p = r->area + r->fill;
  r->fill += GC_ALIGN(n);
  return p;
}

static unsigned gc_recoder_grid(const gpuir_cuda *c, const gc_recoder *r) {
  const uint64_t warps = ((uint64_t)r->work.nblocks + r->work.chunk - 1) / r->work.chunk;
  return (unsigned)gpuir__min64((warps + 7) / 8, (uint64_t)c->processors * 8);
}

/* Has the device find out how many words the lists take as bp128. */
static int gc_recoder_measure(const gpuir_cuda *c, gc_recoder *r, gpuir_error *err) {
  const gc_view *v = &c->view;
  gc_recoding *w = &r->work;
  int status;
  r->start[w->nlists] = w->nblocks;
  status = gc_recoder_put(r, r->sources, w->nlists * sizeof *r->sources, (const void **)&w->sources, err);
  if (!status) status = gc_recoder_put(r, r->start, (w->nlists + 1) * 4, (const void **)&w->start, err);
  if (!status) status = gc_pipe_flush(r->pipe, err);
  if (status) return status;
  w->targets = (const gc_target *)gc_recoder_table(r, w->nlists * sizeof *r->targets);
  w->docs_off = (uint32_t *)gc_recoder_table(r, (uint64_t)w->nblocks * 4);
  w->freqs_off = (uint32_t *)gc_recoder_table(r, (uint64_t)w->nblocks * 4);
  w->docs_width = (uint8_t *)gc_recoder_table(r, w->nblocks);
  w->freqs_width = (uint8_t *)gc_recoder_table(r, w->nblocks);
  w->chunk = gpuir__max32(1, gpuir__min32(8, w->nblocks / ((uint32_t)c->processors * 64)));
  w->to_last = (uint32_t *)(uintptr_t)v->last;
  w->to_docs_off = (uint32_t *)(uintptr_t)v->docs_off;
  w->to_freqs_off = (uint32_t *)(uintptr_t)v->freqs_off;
  w->to_docs_width = (uint8_t *)(uintptr_t)v->docs_width;
  w->to_freqs_width = (uint8_t *)(uintptr_t)v->freqs_width;
  gc_recode<false><<<gc_recoder_grid(c, r), 256, 0, r->pipe->stream>>>(*w);
  gc_recode_offsets<<<dim3(w->nlists, 2), 1024, 0, r->pipe->stream>>>(*w);
  GC_TRY(cudaGetLastError(), "recoding lists");
  return GPUIR_OK;
}

/* Waits for it. */
static int gc_recoder_wait(const gpuir_cuda *c, gc_recoder *r, gpuir_error *err) {
  uint32_t i;
  GC_TRY(cudaStreamSynchronize(r->pipe->stream), "recoding lists");
  for (i = 0; i < 2 * r->work.nlists; i++)
    if (r->words[i] > UINT32_MAX)
      return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "%s: as bp128 a list takes more than 16 GB",
                         c->ix->path);
  return GPUIR_OK;
}

/* Writes the lists to their targets. */
static int gc_recoder_write(const gpuir_cuda *c, gc_recoder *r, gpuir_error *err) {
  int status = gc_pipe_put(r->pipe, r->work.targets, r->targets, r->work.nlists * sizeof *r->targets, err);
  if (!status) status = gc_pipe_flush(r->pipe, err);
  if (status) return status;
  gc_recode<true><<<gc_recoder_grid(c, r), 256, 0, r->pipe->stream>>>(r->work);
  GC_TRY(cudaGetLastError(), "recoding lists");
  return GPUIR_OK;
}

/* The lists that were collected, into memory of their own; and the area is empty again. */
static int gc_recode_some(gpuir_cuda *c, gc_recoder *r, gpuir_error *err) {
  uint64_t bytes = 0;
  uint32_t i;
  void *p;
  int status;
  if (!r->work.nlists) return GPUIR_OK;
  status = gc_recoder_measure(c, r, err);
  if (!status) status = gc_recoder_wait(c, r, err);
  if (status) return status;
  for (i = 0; i < r->work.nlists; i++)
    bytes += GC_ALIGN(r->words[2 * i] * 4) + GC_ALIGN(r->words[2 * i + 1] * 4);
  status = gc_take(c, bytes + GC_PAD, &p, err);
  if (status) return status;
  status = gpuir__buf_put(&c->a, &c->recoded, &p, sizeof p);
  if (status) {
    gc_give(c, p, bytes + GC_PAD);
    return gpuir__fail_nomem(err);
  }
  status = gc_recoder_clear(r, p, bytes + GC_PAD, err);
  if (status) return status;
  c->info.resident_bytes += bytes;
  bytes = 0;
  for (i = 0; i < r->work.nlists; i++) {
    gc_place *place = &c->places[r->ids[i]];
    gc_target *to = &r->targets[i];
    place->docs_words = to->docs_words = (uint32_t)r->words[2 * i];
    place->freqs_words = to->freqs_words = (uint32_t)r->words[2 * i + 1];
    to->docs = (uint32_t *)((uint8_t *)p + bytes);
    bytes += GC_ALIGN((uint64_t)to->docs_words * 4);
    to->freqs = (uint32_t *)((uint8_t *)p + bytes);
    bytes += GC_ALIGN((uint64_t)to->freqs_words * 4);
    place->docs = (uint64_t)(uintptr_t)to->docs;
  }
  status = gc_recoder_write(c, r, err);
  gc_recoder_begin(r, r->area, r->size);
  return status;
}

/* What the area needs for all lists, and for the greatest. Refuses lists that share bytes: the time that recoding
 * takes is then bounded by the file's size. */
static int gc_recode_needs(const gpuir_index *ix, uint64_t *all, uint64_t *most, gpuir_error *err) {
  uint64_t docs = 0, freqs = 0, blocks = 0, id;
  *all = *most = 0;
  for (id = 0; id < ix->stat.terms; id++) {
    gpuir__list l;
    uint64_t need;
    int status = gpuir__list_find(ix, id, &l);
    if (status)
      return gpuir__fail(err, status, 0, "%s: cannot open a list: %s", ix->path, gpuir_strerror(status));
    if (l.df == 1) continue;
    docs += l.docs.len;
    freqs += l.freqs.len;
    if (l.extent) blocks += l.nblocks;
    if (docs > ix->section[GPUIR__S_DOCIDS]->length || freqs > ix->section[GPUIR__S_FREQS]->length ||
        blocks > ix->stat.blocks)
      return gpuir__bad(ix, err, 0, "lists share bytes");
    need = gc_recoder_bytes(&l);
    *all += need;
    *most = gpuir__max64(*most, need);
  }
  return GPUIR_OK;
}

/* Sends all lists and recodes them. */
static int gc_recode_lists(gpuir_cuda *c, gc_recoder *r, gpuir_error *err) {
  const gpuir_index *ix = c->ix;
  uint64_t id;
  int status = GPUIR_OK;
  for (id = 0; id < ix->stat.terms && !status; id++) {
    gpuir__list l;
    if (ix->records[id].df == 1) continue;
    status = gpuir__list_find(ix, id, &l);
    if (status) return gpuir__fail(err, status, 0, "%s: cannot open a list", ix->path);
    if (r->work.nlists == r->most || r->need + gc_recoder_bytes(&l) + GC_AREA_MORE > r->size)
      status = gc_recode_some(c, r, err);
    if (!status) status = gc_recoder_add(r, ix, id, &l, err);
  }
  if (!status) status = gc_recode_some(c, r, err);
  if (!status) GC_TRY(cudaStreamSynchronize(r->pipe->stream), "recoding lists");
  return status;
}

/* Fills the index's streams and those parts of the directory that follow from them. */
static int gc_recode_all(gpuir_cuda *c, gpuir_error *err) {
  const gpuir_index *ix = c->ix;
  const uint64_t blocks = ix->stat.blocks;
  gc_view *v = &c->view;
  gc_pipe pipe;
  gc_recoder r;
  uint64_t all, most, size = 0;
  void *area = NULL;
  int s = gc_recode_needs(ix, &all, &most, err);
  if (s) return s;
  c->places = (gc_place *)gpuir__alloc_zero(&c->a, (size_t)ix->stat.terms * sizeof *c->places);
  if (!c->places) return gpuir__fail_nomem(err);
  s = gc_device_alloc(c, blocks * 4, (void **)&v->last, err);
  if (!s) s = gc_device_alloc(c, blocks * 4, (void **)&v->docs_off, err);
  if (!s) s = gc_device_alloc(c, blocks * 4, (void **)&v->freqs_off, err);
  if (!s) s = gc_device_alloc(c, blocks, (void **)&v->docs_width, err);
  if (!s) s = gc_device_alloc(c, blocks, (void **)&v->freqs_width, err);
  if (s) return s;
  c->info.resident_bytes += blocks * 14;
  memset(&pipe, 0, sizeof pipe);
  memset(&r, 0, sizeof r);
  size = gpuir__min64(all, gpuir__max64(most, gpuir__min64(GC_AREA, c->room / 16))) + GC_AREA_MORE;
  s = gc_pipe_open(&pipe, err);
  if (!s) s = gc_recoder_open(&r, &c->a, &pipe, GC_LISTS, err);
  if (!s) s = gc_take(c, size, &area, err);
  if (!s) {
    gc_recoder_begin(&r, area, size);
    s = gc_recoder_clear(&r, area, size, err);
    if (!s) s = gc_recode_lists(c, &r, err);
  }
  gc_pipe_close(&pipe);
  gc_recoder_close(&r, &c->a);
  gc_give(c, area, size);
  return s;
}

/* Collects the long lists; their blocks must lie in the same order, one list's after another's. */
static int gc_collect(gpuir_cuda *c, gpuir_error *err) {
  const gpuir_index *ix = c->ix;
  uint64_t id, end = 0;
  size_t n = 0;
  c->nlists = (size_t)ix->stat.longs;
  c->lists = (gc_term *)gpuir__alloc_zero(&c->a, c->nlists * sizeof *c->lists);
  if (!c->lists) return gpuir__fail_nomem(err);
  for (id = 0; id < ix->stat.terms; id++) {
    gpuir__list l;
    int status;
    if (ix->records[id].df <= GPUIR__SHORT_MAX) continue;
    if (n == c->nlists) return gpuir__bad(ix, err, 0, "more long lists than extents");
    status = gc_describe(c, id, &c->lists[n], &l, err);
    if (status) return status;
    if (c->lists[n].first_block < end) return gpuir__bad(ix, err, 0, "long lists share blocks");
    end = c->lists[n].first_block + c->lists[n].nblocks;
    c->lists[n].weight = gpuir__weight(l.idf, ix->stat.k1);
    c->lists[n].slot = (uint32_t)(l.extent - ix->longs);
    c->lists[n++].q = 1;
  }
  c->nlists = n;
  return GPUIR_OK;
}

/* Bytes that a document's length takes on the device: 2 if all are below 65536. */
static unsigned gc_length_bytes(const gpuir_index *ix) {
  size_t n = (size_t)ix->stat.documents, i;
  uint32_t most = 0;
  for (i = 0; i < n; i++) most = gpuir__max32(most, ix->lengths[i]);
  return most < 65536 ? 2 : 4;
}

/* The documents' lengths, in 16 bits if they fit. */
static int gc_upload_lengths(gpuir_cuda *c, gpuir_error *err) {
  const gpuir_index *ix = c->ix;
  size_t n = (size_t)ix->stat.documents, i;
  uint16_t *brief;
  int s;
  if (gc_length_bytes(ix) == 4) return gc_upload(c, ix->lengths, n * 4, (const void **)&c->view.lengths, err);
  brief = (uint16_t *)gpuir__alloc(&c->a, n * 2 + 2);
  if (!brief) return gpuir__fail_nomem(err);
  for (i = 0; i < n; i++) brief[i] = (uint16_t)ix->lengths[i];
  s = gc_upload(c, brief, n * 2, (const void **)&c->view.brief, err);
  gpuir__free(&c->a, brief, n * 2 + 2);
  return s;
}

/* The streams and their directory as they lie in the file, all being bp128. */
static int gc_upload_streams(gpuir_cuda *c, gpuir_error *err) {
  const gpuir_index *ix = c->ix;
  uint64_t blocks = ix->stat.blocks;
  gc_view *v = &c->view;
  int s = gc_upload(c, ix->docids, ix->section[GPUIR__S_DOCIDS]->length, (const void **)&v->docids, err);
  if (!s) s = gc_upload(c, ix->freqs, ix->section[GPUIR__S_FREQS]->length, (const void **)&v->freqs, err);
  if (!s) s = gc_upload(c, ix->last, blocks * 4, (const void **)&v->last, err);
  if (!s) s = gc_upload(c, ix->docs_off, blocks * 4, (const void **)&v->docs_off, err);
  if (!s) s = gc_upload(c, ix->freqs_off, blocks * 4, (const void **)&v->freqs_off, err);
  if (!s) s = gc_upload(c, ix->docs_width, blocks, (const void **)&v->docs_width, err);
  if (!s) s = gc_upload(c, ix->freqs_width, blocks, (const void **)&v->freqs_width, err);
  return s;
}

static int gc_upload_all(gpuir_cuda *c, int coded, gpuir_error *err) {
  const gpuir_index *ix = c->ix;
  uint64_t blocks = ix->stat.blocks;
  gc_view *v = &c->view;
  int s = coded ? gc_recode_all(c, err) : gc_upload_streams(c, err);
  if (!s)
    s = gc_upload(c, ix->bounds, blocks * GPUIR__BLOCK_PAIRS * sizeof(gpuir__pair), (const void **)&v->bounds,
                  err);
  return s ? s : gc_upload_lengths(c, err);
}

#define GC_ENTRY \
  (3 * 4 + 2 + GPUIR__BLOCK_PAIRS * sizeof(gpuir__pair)) /* bytes of a block in the directory */

/* Bytes that the sections take on the device. */
static uint64_t gc_plain_bytes(const gpuir_index *ix) {
  return ix->section[GPUIR__S_DOCIDS]->length + ix->section[GPUIR__S_FREQS]->length +
         ix->stat.blocks * GC_ENTRY + ix->stat.documents * gc_length_bytes(ix) + 16 * 1024;
}

/* Marks: 8 to 16 bits a posting, or one a document, and a third of that for ranks. A span, of 1 byte, has 8 to 16
 * postings on average, or 1024 documents. Returns the bytes that all of them take, or 0. */
static uint64_t gc_guides(gpuir_cuda *c, uint64_t *marks, uint64_t *spans, gpuir_error *err) {
  const gpuir_index *ix = c->ix;
  const uint32_t top = c->view.documents - 1;
  gpuir__saturation *table;
  size_t i;
  *marks = *spans = 0;
  c->aids = (gc_aid *)gpuir__alloc_zero(&c->a, (size_t)ix->stat.longs * sizeof *c->aids);
  table = (gpuir__saturation *)gpuir__alloc_zero(&c->a, sizeof *table);
  if (!c->aids || !table) {
    gpuir__free(&c->a, table, sizeof *table);
    (void)gpuir__fail_nomem(err);
    return 0;
  }
  gpuir__saturation_prepare(table, ix->norm);
  for (i = 0; i < c->nlists; i++) {
    gc_term *t = &c->lists[i];
    gc_aid *aid = &c->aids[t->slot];
    gpuir__list l;
    memset(&l, 0, sizeof l);
    l.extent = &ix->longs[t->slot];
    aid->span = GC_SPAN;
    while (top >> aid->shift >= 2 * (uint64_t)GC_MARKS * t->df) aid->shift++;
    while (top >> aid->span >= t->df / GC_SPAN_MOST) aid->span++;
    aid->most = gpuir__bound(t->weight, gpuir__list_saturation(table, &l), 1);
    aid->marks = *marks;
    aid->row = (uint32_t)*spans;
    *marks += (top >> aid->shift) / GC_CELLS + 1;
    *spans += (top >> aid->span) + 1;
    t->marks = aid->marks;
    t->shift = aid->shift;
    t->row = aid->row;
    t->span = aid->span;
    t->most = aid->most;
    t->step = aid->most / 255 + 1;
  }
  gpuir__free(&c->a, table, sizeof *table);
  return *marks * sizeof(uint4) + *spans + 64;
}

/* Blocks of a list that begin and end this many times at other documents are damaged, and not worth the time that
 * going through all documents for each of them takes. */
#define GC_DAMAGED 8

/* Expands the long lists if `room` bytes hold them; or makes what guides through them, if it holds that. */
static int gc_expand_all(gpuir_cuda *c, uint64_t room, gpuir_error *err) {
  const gpuir_index *ix = c->ix;
  uint64_t blocks = ix->stat.blocks, wide = 0, g, marks, spans, guides;
  gc_guide guide;
  size_t size = (size_t)blocks * sizeof(uint2), i;
  void *bases = NULL, *narrow = NULL, *wides = NULL, *impact = NULL, *most, *lists;
  uint2 *host;
  int s, full, damaged = 0;
  if (!c->nlists) return GPUIR_OK;
  guides = gc_guides(c, &marks, &spans, err);
  if (!guides) return GPUIR_E_NOMEM;
  host = (uint2 *)gpuir__alloc_zero(&c->a, size);
  if (!host) return gpuir__fail_nomem(err);
  for (i = 0; i < c->nlists; i++) {
    const gc_term *t = &c->lists[i];
    uint32_t start = 0;
    uint64_t documents = 0;
    for (g = t->first_block; g < t->first_block + t->nblocks; g++) {
      host[g].x = start;
      if (ix->last[g] - start > 65535) host[g].y = (uint32_t)++wide;
      if (ix->last[g] >= start) documents += ix->last[g] - start;
      start = ix->last[g] + 1;
    }
    damaged |= documents > GC_DAMAGED * ix->stat.documents;
  }
  guides += 8192 + blocks * 4 + c->nlists * sizeof(gc_term);
  full = blocks * (sizeof(uint2) + GPUIR__BLOCK * 6) + wide * GPUIR__BLOCK * 4 + guides <= room &&
         wide < UINT32_MAX - 1;
  if (spans >= UINT32_MAX || guides > room || damaged) {
    gpuir__free(&c->a, host, size);
    gpuir__free(&c->a, c->aids, (size_t)ix->stat.longs * sizeof *c->aids);
    c->aids = NULL;
    return GPUIR_OK;
  }
  s = gc_upload(c, c->lists, c->nlists * sizeof *c->lists, (const void **)&lists, err);
  if (!s) s = gc_device_alloc(c, (size_t)blocks * 4, &most, err);
  if (!s) s = gc_device_alloc(c, (size_t)marks * sizeof(uint4), (void **)&guide.marks, err);
  if (!s) s = gc_device_alloc(c, (size_t)spans + 4, (void **)&guide.peaks, err);
  if (full) {
    if (!s) s = gc_upload(c, host, size, (const void **)&bases, err);
    if (!s) s = gc_device_alloc(c, (size_t)blocks * GPUIR__BLOCK * 2, &narrow, err);
    if (!s) s = gc_device_alloc(c, (size_t)wide * GPUIR__BLOCK * 4, &wides, err);
    if (!s) s = gc_device_alloc(c, (size_t)blocks * GPUIR__BLOCK * 4, &impact, err);
  }
  gpuir__free(&c->a, host, size);
  if (s) return s;
  GC_TRY(cudaMemset(guide.marks, 0, (size_t)marks * sizeof(uint4)), "expanding the lists");
  GC_TRY(cudaMemset(guide.peaks, 0, (size_t)spans + 4), "expanding the lists");
  gc_expand<<<(unsigned)c->processors * 8, 256>>>(
      c->view, (const gc_term *)lists, (uint32_t)c->nlists, blocks, (uint16_t *)narrow, (uint32_t *)wides,
      (uint32_t *)impact, (uint32_t *)most, (const uint2 *)bases, guide, ix->norm.a, ix->norm.b);
  GC_TRY(cudaGetLastError(), "expanding the lists");
  GC_TRY(cudaDeviceSynchronize(), "expanding the lists");
  c->view.narrow = (const uint16_t *)narrow;
  c->view.wide = (const uint32_t *)wides;
  c->view.impact = (const uint32_t *)impact;
  c->view.most = (const uint32_t *)most;
  c->view.bases = (const uint2 *)bases;
  c->view.marks = guide.marks;
  c->view.peaks = guide.peaks;
  c->expanded = full;
  return GPUIR_OK;
}

/* ---- a cache of lists, for an index that does not fit ----
 * Ding et al. (WWW 2009, section 5) keep lists in the GPU's memory by their use. Here one slab is cut into units,
 * each a block's directory entry and GC_UNIT bytes of streams or more; a list takes as many in a row as its blocks
 * or its bytes need. What a launch uses stays until it has ended. To make room, the lists go whose worth is least:
 * uses while resident plus the worth of what went before (so old fame fades); as each list's transfer costs bytes
 * and its place costs the same bytes, they cancel out. Transfers go on a stream of their own, while launches of other
 * searchers run. A list in another codec is sent to units that it leaves again when it has been recoded; only the first
 * time has anyone to wait for its size. */

#define GC_UNIT 32u         /* bytes of streams a unit at least, and their granularity */
#define GC_SLOTS (1u << 16) /* lists at most */
#define GC_NO_ID UINT64_MAX /* a list's bytes that are about to be recoded */

typedef struct gc_slot {
  uint64_t id, worth, bytes;
  uint64_t docs_len, freqs_len;
  uint32_t unit, nunits, users, next; /* next: of those with the same hash, + 1 */
} gc_slot;

struct gc_cache {
  pthread_mutex_t lock;
  pthread_cond_t freed;
  int ready; /* of the two above */
  uint64_t unit_bytes, nunits, clock, pins, releases;
  gc_slot *slots; /* used ones first, by unit */
  uint32_t nslots, most, *heads, mask;
  uint8_t *streams; /* device */
  gc_pipe pipe;
  gc_recoder recoder; /* of one list */
  uint2 *sizes;       /* in words, of long lists that were recoded before: they are not waited for again */
};

static uint32_t gc_cache_hash(const gc_cache *k, uint64_t id) {
  return (uint32_t)((id * 0x9e3779b97f4a7c15u) >> 32) & k->mask;
}

/* Index + 1, or 0. */
static uint32_t gc_cache_find(const gc_cache *k, uint64_t id) {
  uint32_t s = k->heads[gc_cache_hash(k, id)];
  while (s && k->slots[s - 1].id != id) s = k->slots[s - 1].next;
  return s;
}

/* The slots stand in the order of their units, so indices change with each insertion and removal: before these, all
 * are forgotten, and noted again afterwards. */
static void gc_cache_forget(gc_cache *k) {
  uint32_t i;
  for (i = 0; i < k->nslots; i++) k->heads[gc_cache_hash(k, k->slots[i].id)] = 0;
}

static void gc_cache_note(gc_cache *k) {
  uint32_t i;
  for (i = 0; i < k->nslots; i++) {
    uint32_t *head = &k->heads[gc_cache_hash(k, k->slots[i].id)];
    k->slots[i].next = *head;
    *head = i + 1;
  }
}

/* The place in the order for a list of n units: where the first gap of that size is; or UINT32_MAX. */
static uint32_t gc_cache_gap(const gc_cache *k, uint64_t n, uint64_t *unit) {
  uint32_t i;
  *unit = 0;
  if (k->nslots == k->most) return UINT32_MAX;
  for (i = 0; i < k->nslots; i++) {
    if (k->slots[i].unit - *unit >= n) return i;
    *unit = (uint64_t)k->slots[i].unit + k->slots[i].nunits;
  }
  return k->nunits - *unit >= n ? i : UINT32_MAX;
}

static void gc_cache_insert(gc_cache *k, uint32_t place, const gc_slot *s) {
  memmove(&k->slots[place + 1], &k->slots[place], (k->nslots - place) * sizeof *k->slots);
  k->slots[place] = *s;
  k->nslots++;
}

static void gc_cache_remove(gc_cache *k, uint32_t place) {
  memmove(&k->slots[place], &k->slots[place + 1], (k->nslots - place - 1) * sizeof *k->slots);
  k->nslots--;
}

/* Makes the least worthy list go that no launch uses. 0: there is none. */
static int gc_cache_evict(gpuir_cuda *c, gc_cache *k) {
  uint32_t i, least = UINT32_MAX;
  for (i = 0; i < k->nslots; i++)
    if (!k->slots[i].users && (least == UINT32_MAX || k->slots[i].worth < k->slots[least].worth)) least = i;
  if (least == UINT32_MAX) return 0;
  k->clock = k->slots[least].worth;
  __atomic_fetch_sub(&c->info.resident_bytes, k->slots[least].bytes, __ATOMIC_RELAXED);
  gc_cache_remove(k, least);
  return 1;
}

/* The place in the order for a list of n units, whatever has to go for it; UINT32_MAX: the lists in use leave none. */
static uint32_t gc_cache_room(gpuir_cuda *c, gc_cache *k, uint64_t n, uint64_t *unit) {
  uint32_t place;
  while ((place = gc_cache_gap(k, n, unit)) == UINT32_MAX && n <= k->nunits && gc_cache_evict(c, k)) {}
  return place;
}

/* Transfers what is bp128 already to its units: the streams and their directory. */
static int gc_cache_load_streams(const gc_view *v, gc_cache *k, const gc_slot *s, const gpuir__list *l,
                                 gpuir_error *err) {
  const uint64_t n = l->nblocks;
  uint8_t *at = k->streams + s->unit * k->unit_bytes;
  int status = gc_pipe_put(&k->pipe, at, l->docs.bytes, l->docs.len, err);
  if (!status) status = gc_pipe_put(&k->pipe, at + GC_ALIGN(l->docs.len), l->freqs.bytes, l->freqs.len, err);
  if (status || !l->extent) return status;
  status = gc_pipe_put(&k->pipe, v->last + s->unit, l->last, n * 4, err);
  if (!status) status = gc_pipe_put(&k->pipe, v->docs_off + s->unit, l->docs.offset, n * 4, err);
  if (!status) status = gc_pipe_put(&k->pipe, v->freqs_off + s->unit, l->freqs.offset, n * 4, err);
  if (!status) status = gc_pipe_put(&k->pipe, v->docs_width + s->unit, l->docs.width, n, err);
  if (!status) status = gc_pipe_put(&k->pipe, v->freqs_width + s->unit, l->freqs.width, n, err);
  return status;
}

/* Sends a list to units where it stays until it has been recoded, and finds out what it will take. *full: there is no
 * room. */
static int gc_cache_measure(gpuir_cuda *c, gc_cache *k, uint64_t id, gpuir__list *l, gc_slot *to, int *full,
                            gpuir_error *err) {
  const uint64_t size = gc_recoder_bytes(l) + GC_AREA_MORE, n = (size + k->unit_bytes - 1) / k->unit_bytes;
  gc_recoder *r = &k->recoder;
  uint2 unknown = {0, 0}, *words = l->extent ? &k->sizes[l->extent - c->ix->longs] : &unknown;
  uint64_t unit;
  uint32_t place = gc_cache_room(c, k, n, &unit);
  gc_slot slot;
  int status;
  *full = place == UINT32_MAX;
  if (*full) return GPUIR_OK;
  memset(&slot, 0, sizeof slot);
  slot.id = GC_NO_ID;
  slot.users = 1;
  slot.unit = (uint32_t)unit;
  slot.nunits = (uint32_t)n;
  gc_cache_insert(k, place, &slot);
  gc_recoder_begin(r, k->streams + unit * k->unit_bytes, size);
  status = gc_recoder_add(r, c->ix, id, l, err);
  if (!status) status = gc_recoder_measure(c, r, err);
  if (!status && !words->x) {
    status = gc_recoder_wait(c, r, err);
    if (status) return status;
    words->x = (uint32_t)r->words[0];
    words->y = (uint32_t)r->words[1];
  }
  to->docs_len = (uint64_t)words->x * 4;
  to->freqs_len = (uint64_t)words->y * 4;
  return status;
}

static int gc_cache_write(gpuir_cuda *c, gc_cache *k, const gc_slot *s, gpuir_error *err) {
  gc_target *to = k->recoder.targets;
  to->docs = (uint32_t *)(k->streams + s->unit * k->unit_bytes);
  to->freqs = to->docs + GC_ALIGN(s->docs_len) / 4;
  to->docs_words = (uint32_t)(s->docs_len / 4);
  to->freqs_words = (uint32_t)(s->freqs_len / 4);
  to->entry = s->unit;
  return gc_recoder_write(c, &k->recoder, err);
}

/* Transfers a list; the caller makes the hash again. *full: the lists in use leave no room for it. */
static int gc_cache_bring(gpuir_cuda *c, gc_cache *k, uint64_t id, gpuir__list *l, int *full,
                          gpuir_error *err) {
  const int coded = gc_coded_otherwise(l);
  uint64_t n, unit;
  uint32_t place = UINT32_MAX, i;
  gc_slot slot;
  int status = GPUIR_OK;
  memset(&slot, 0, sizeof slot);
  slot.id = id;
  slot.docs_len = l->docs.len;
  slot.freqs_len = l->freqs.len;
  k->pipe.fill = 0; /* what a list that failed left */
  *full = 0;
  if (coded) status = gc_cache_measure(c, k, id, l, &slot, full, err);
  if (!status && !*full) {
    slot.bytes = GC_ALIGN(slot.docs_len) + GC_ALIGN(slot.freqs_len);
    n = gpuir__max64(l->nblocks, (slot.bytes + k->unit_bytes - 1) / k->unit_bytes);
    if (l->extent) slot.bytes += l->nblocks * GC_ENTRY;
    place = gc_cache_room(c, k, n, &unit);
    *full = place == UINT32_MAX;
  }
  if (!status && !*full) {
    slot.worth = k->clock + 1;
    slot.unit = (uint32_t)unit;
    slot.nunits = (uint32_t)n;
    status = coded ? gc_cache_write(c, k, &slot, err) : gc_cache_load_streams(&c->view, k, &slot, l, err);
    if (!status && l->extent)
      status = gc_pipe_put(&k->pipe, c->view.bounds + unit * GPUIR__BLOCK_PAIRS, l->bounds,
                           l->nblocks * GPUIR__BLOCK_PAIRS * sizeof(gpuir__pair), err);
    if (!status) status = gc_pipe_flush(&k->pipe, err);
    if (!status) {
      gc_cache_insert(k, place, &slot);
      __atomic_fetch_add(&c->info.lists_missed, 1, __ATOMIC_RELAXED);
      __atomic_fetch_add(&c->info.resident_bytes, slot.bytes, __ATOMIC_RELAXED);
    }
  }
  for (i = 0; coded && i < k->nslots; i++)
    if (k->slots[i].id == GC_NO_ID) gc_cache_remove(k, i);
  return status;
}

/* Makes a list resident, and holds it until it is released. *full: the lists in use leave no room for it. */
static int gc_cache_take(gpuir_cuda *c, uint64_t id, gpuir__list *l, gc_term *t, int *full,
                         gpuir_error *err) {
  gc_cache *k = c->cache;
  uint32_t i = gc_cache_find(k, id);
  gc_slot *s;
  if (i) {
    __atomic_fetch_add(&c->info.lists_hit, 1, __ATOMIC_RELAXED);
    k->slots[i - 1].worth++;
  } else {
    int status;
    gc_cache_forget(k);
    status = gc_cache_bring(c, k, id, l, full, err);
    gc_cache_note(k);
    if (status || *full) return status;
    i = gc_cache_find(k, id);
  }
  s = &k->slots[i - 1];
  s->users++;
  k->pins++;
  if (l->extent) t->first_block = s->unit;
  t->docs = s->unit * k->unit_bytes;
  t->docs_len = s->docs_len;
  t->freqs = t->docs + GC_ALIGN(s->docs_len);
  t->freqs_len = s->freqs_len;
  return GPUIR_OK;
}

/* The launch that used the lists has ended, or was not made. */
static uint64_t gc_cache_release(gc_cache *k, const uint64_t *ids, size_t n) {
  uint64_t releases;
  size_t i;
  if (!k) return 0;
  (void)pthread_mutex_lock(&k->lock);
  for (i = 0; i < n; i++) k->slots[gc_cache_find(k, ids[i]) - 1].users--;
  k->pins -= n;
  releases = k->releases += n != 0;
  (void)pthread_cond_broadcast(&k->freed);
  (void)pthread_mutex_unlock(&k->lock);
  return releases;
}

/* Waits until another searcher releases lists, or none holds any. */
static void gc_cache_wait(gc_cache *k, uint64_t releases) {
  (void)pthread_mutex_lock(&k->lock);
  while (k->pins && k->releases == releases) (void)pthread_cond_wait(&k->freed, &k->lock);
  (void)pthread_mutex_unlock(&k->lock);
}

static void gc_cache_close(gpuir_cuda *c) {
  gc_cache *k = c->cache;
  if (!k) return;
  gc_pipe_close(&k->pipe);
  gc_recoder_close(&k->recoder, &c->a);
  gpuir__free(&c->a, k->sizes, (size_t)c->ix->stat.longs * sizeof *k->sizes);
  gpuir__free(&c->a, k->slots, k->most * sizeof *k->slots);
  gpuir__free(&c->a, k->heads, ((size_t)k->mask + 1) * sizeof *k->heads);
  if (k->ready) {
    (void)pthread_cond_destroy(&k->freed);
    (void)pthread_mutex_destroy(&k->lock);
  }
  gpuir__free(&c->a, k, sizeof *k);
  c->cache = NULL;
}

/* A slab of `room` bytes, empty. */
static int gc_cache_open(gpuir_cuda *c, uint64_t room, gpuir_error *err) {
  const uint64_t each = GC_ENTRY;
  const gpuir_index *ix = c->ix;
  gc_view *v = &c->view;
  gc_cache *k = (gc_cache *)gpuir__alloc_zero(&c->a, sizeof *k);
  uint64_t streams = ix->section[GPUIR__S_DOCIDS]->length + ix->section[GPUIR__S_FREQS]->length;
  uint8_t *at;
  void *slab;
  int s;
  if (!k) return gpuir__fail_nomem(err);
  c->cache = k;
  k->unit_bytes = GC_UNIT;
  if (ix->stat.blocks)
    k->unit_bytes = gpuir__max64(GC_UNIT, streams / ix->stat.blocks & ~(uint64_t)(GC_UNIT - 1));
  if (room < 64 * 1024)
    return gpuir__fail(err, GPUIR_E_NOMEM, 0, "CUDA: %llu bytes of device memory are too few to hold lists",
                       (unsigned long long)room);
  k->nunits = gpuir__min64((room - 8192) / (each + k->unit_bytes), UINT32_MAX / 2);
  k->most = (uint32_t)gpuir__min64(gpuir__min64(k->nunits, GC_SLOTS), ix->stat.terms);
  k->slots = (gc_slot *)gpuir__alloc_zero(&c->a, k->most * sizeof *k->slots);
  for (k->mask = 1; k->mask < k->most; k->mask = 2 * k->mask + 1) {}
  k->heads = (uint32_t *)gpuir__alloc_zero(&c->a, ((size_t)k->mask + 1) * sizeof *k->heads);
  k->sizes = (uint2 *)gpuir__alloc_zero(&c->a, (size_t)ix->stat.longs * sizeof *k->sizes);
  if (!k->slots || !k->heads || !k->sizes) return gpuir__fail_nomem(err);
  if (pthread_mutex_init(&k->lock, NULL)) return gpuir__fail_nomem(err);
  if (pthread_cond_init(&k->freed, NULL)) {
    (void)pthread_mutex_destroy(&k->lock);
    return gpuir__fail_nomem(err);
  }
  k->ready = 1;
  s = gc_device_alloc(c, (size_t)(k->nunits * (each + k->unit_bytes) + 8192), &slab, err);
  if (s) return s;
  GC_TRY(cudaMemset(slab, 0, (size_t)(k->nunits * (each + k->unit_bytes) + 8192)), "clearing the slab");
  at = (uint8_t *)slab;
  k->streams = at;
  v->docids = v->freqs = (const uint32_t *)at;
  at += (k->nunits * k->unit_bytes + GC_PAD + 255) & ~(uint64_t)255;
  v->last = (const uint32_t *)at;
  v->docs_off = v->last + k->nunits;
  v->freqs_off = v->docs_off + k->nunits;
  v->bounds = (const gpuir__pair *)(v->freqs_off + k->nunits);
  v->docs_width = (const uint8_t *)(v->bounds + k->nunits * GPUIR__BLOCK_PAIRS);
  v->freqs_width = v->docs_width + k->nunits;
  s = gc_pipe_open(&k->pipe, err);
  if (!s) gc_pipe_lock(&k->pipe, c);
  return s ? s : gc_recoder_open(&k->recoder, &c->a, &k->pipe, 1, err);
}

/* What the device is. */
static int gc_look(int device, cudaDeviceProp *p, gpuir_cuda_info *info, gpuir_error *err) {
  int devices = 0;
  GC_TRY(cudaGetDeviceCount(&devices), "counting devices");
  if (device < 0 || device >= devices)
    return gpuir__fail(err, GPUIR_E_BACKEND, 0, "CUDA: there is no device %d among %d", device, devices);
  GC_TRY(cudaGetDeviceProperties(p, device), "asking for the device's properties");
  if (p->major < 8)
    return gpuir__fail(err, GPUIR_E_BACKEND, 0, "CUDA: %s has compute capability %d.%d, 8.0 is needed",
                       p->name, p->major, p->minor);
  (void)snprintf(info->device, sizeof info->device, "%.63s", p->name);
  info->compute_capability = p->major * 10 + p->minor;
  info->device_memory = p->totalGlobalMem;
  GC_TRY(cudaDriverGetVersion(&info->driver_version), "asking for the driver's version");
  GC_TRY(cudaRuntimeGetVersion(&info->runtime_version), "asking for the runtime's version");
  return GPUIR_OK;
}

extern "C" int gpuir_cuda_device(int device, gpuir_cuda_info *info, gpuir_error *err) {
  cudaDeviceProp p;
  if (!info) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_device: NULL");
  memset(info, 0, sizeof *info);
  return gc_look(device, &p, info, err);
}

typedef void (*gc_or_kernel)(gc_view, gc_batch);

/* Bytes of shared memory that a tile of that many documents takes. */
static size_t gc_tile_bytes(uint64_t tile) { return (size_t)(tile + GC_SPARE) * 4; }

/* The shape of tiles, which two blocks of threads share a multiprocessor for. */
static int gc_shape_or(gpuir_cuda *c, int expanded, gpuir_error *err) {
  const gc_or_kernel kernel = expanded ? gc_or<true> : gc_or<false>;
  const uint64_t n = c->view.documents;
  cudaFuncAttributes at;
  uint64_t tile, most;
  int blocks = 0, processor, block;
  GC_TRY(cudaDeviceGetAttribute(&processor, cudaDevAttrMaxSharedMemoryPerMultiprocessor, c->device),
         "asking for the device's properties");
  GC_TRY(cudaDeviceGetAttribute(&block, cudaDevAttrMaxSharedMemoryPerBlockOptin, c->device),
         "asking for the device's properties");
  GC_TRY(cudaFuncGetAttributes(&at, kernel),
         "loading the kernels (is this GPU among those it was compiled for?)");
  most = gpuir__min64((uint64_t)processor / 2 - 1024, (uint64_t)block) - at.sharedSizeBytes;
  tile = (n / 512 + 1023) / 1024 * 1024; /* enough tiles for all processors, but large ones cost less each */
  tile = gpuir__max64(2048, gpuir__min64(tile, GC_TILE_MOST));
  while (gc_tile_bytes(tile) > most) tile -= 1024;
  c->view.tile = (uint32_t)tile;
  c->view.ntiles = (uint32_t)((n + tile - 1) / tile);
  GC_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)gc_tile_bytes(tile)),
         "shaping a kernel");
  GC_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, (int)GC_OR_THREADS(expanded),
                                                       gc_tile_bytes(tile)),
         "shaping a kernel");
  c->or_grid = (unsigned)(c->processors * (blocks > 0 ? blocks : 1));
  return GPUIR_OK;
}

/* The device's limits and the kernels' shapes. */
static int gc_shape(gpuir_cuda *c, gpuir_error *err) {
  cudaDeviceProp p;
  cudaFuncAttributes at;
  int blocks = 0, most, status = gc_look(c->device, &p, &c->info, err);
  if (status) return status;
  c->processors = p.multiProcessorCount;
  c->view.documents = (uint32_t)c->ix->stat.documents;
  GC_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, gc_and, GC_AND_THREADS, 0),
         "shaping a kernel");
  c->and_grid = (unsigned)(c->processors * (blocks > 0 ? blocks : 1));
  GC_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, gc_all, GC_MAX_THREADS, 0),
         "shaping a kernel");
  c->all_grid = (unsigned)(c->processors * (blocks > 0 ? blocks : 1));
  GC_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, gc_max, GC_MAX_THREADS, 0),
         "shaping a kernel");
  c->max_grid = (unsigned)(c->processors * (blocks > 0 ? blocks : 1));
  GC_TRY(cudaFuncGetAttributes(&at, gc_final), "loading the kernels");
  most = (int)p.sharedMemPerBlockOptin - (int)at.sharedSizeBytes;
  for (c->k_most = 1024; c->k_most < 16384 && (int)c->k_most * 16 <= most; c->k_most *= 2) {}
  GC_TRY(cudaFuncSetAttribute(gc_final, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)c->k_most * 8),
         "shaping a kernel");
  if (c->k_most > GC_K_MOST) c->k_most = GC_K_MOST;
  return GPUIR_OK;
}

/* How much of everything a searcher needs for launches of that many queries. */
typedef struct gc_sizes {
  size_t queries, njobs, nterms, nslots, nchunks;
  uint64_t ncand, tiles, host, staging, device;
} gc_sizes;

static gc_sizes gc_sizes_of(const gpuir_cuda *c, size_t queries) {
  const gc_view *v = &c->view;
  const uint64_t chunks = v->documents / (GPUIR__BLOCK * GC_CHUNK);
  gc_sizes z;
  uint64_t each;
  z.tiles = (uint64_t)v->ntiles + 1;
  each = 8 * z.tiles;
  z.queries = queries;
  z.njobs = (size_t)gpuir__max64(2, gpuir__min64(2 * (uint64_t)queries, (1u << 30) / each));
  z.nslots = z.nterms = (size_t)gpuir__max64(2 * GPUIR_MAX_TERMS, 8 * (uint64_t)queries);
  z.nslots = (size_t)gpuir__max64(GPUIR_MAX_TERMS, gpuir__min64(z.nslots, (1u << 30) / each));
  z.nchunks =
      (size_t)gpuir__max64(z.nslots + gpuir__max64(GPUIR_MAX_TERMS, 8 * (uint64_t)queries) * (1 + chunks / 4),
                           GPUIR_MAX_TERMS * (2 + chunks));
  z.ncand = gpuir__max64(2 * 16 * GC_K_MOST, (uint64_t)z.njobs * 8192);
  z.host = z.nterms * (sizeof(gc_term) + 8) + z.njobs * (sizeof(gc_job) + 20) + z.nchunks * sizeof(gc_chunk) +
           queries * sizeof(uint2) + 4096;
  z.staging = z.host + z.njobs * sizeof(gc_state);
  z.device =
      z.staging + z.nslots * each + z.njobs * each + z.ncand * 8 + z.nterms * (sizeof(gc_drive) + 4) + 4096;
  return z;
}

/* The largest launch whose memory takes at most half of what is left, if that is possible at all. */
static gc_sizes gc_sizes_within(const gpuir_cuda *c, uint64_t left) {
  size_t queries = c->batch;
  gc_sizes z = gc_sizes_of(c, queries);
  while (queries > 1 && z.device > left / 2) z = gc_sizes_of(c, queries /= 2);
  return z;
}

static uint64_t gc_left(const gpuir_cuda *c) {
  uint64_t used = __atomic_load_n(&c->info.used_memory, __ATOMIC_RELAXED);
  return used < c->room ? c->room - used : 0;
}

/* Whether a list is in another codec than bp128. */
static int gc_any_coded(const gpuir_index *ix) {
  uint64_t id;
  for (id = 0; id < ix->stat.terms; id++) {
    const gpuir__record *r = &ix->records[id];
    if (r->df > 1 && (r->codec != GC_BP128 || r->freq_codec != GC_BP128)) return 1;
  }
  return 0;
}

/* All of the index on the device. */
static int gc_open_whole(gpuir_cuda *c, int coded, gpuir_error *err) {
  uint64_t searcher = gc_sizes_of(c, c->batch).device, left;
  int status = gc_upload_all(c, coded, err);
  if (!status) status = gc_collect(c, err);
  if (status) return status;
  left = gc_left(c);
  if (coded && left < gc_sizes_of(c, 1).device) {
    c->refused = 1;
    return gpuir__fail(err, GPUIR_E_NOMEM, 0, "CUDA: the index leaves no memory for a searcher");
  }
  c->info.index_bytes = c->info.resident_bytes;
  if (left > searcher) status = gc_expand_all(c, left - searcher, err);
  if (!status && !c->expanded) status = gc_shape_or(c, 0, err);
  c->info.resident_bytes = c->info.index_bytes; /* what was made of it does not count */
  if (!status) GC_TRY(cudaDeviceSynchronize(), "uploading the index");
  return status;
}

/* The documents' lengths, and a cache of lists. */
static int gc_open_cached(gpuir_cuda *c, gpuir_error *err) {
  uint64_t left, searcher;
  int status = gc_shape_or(c, 0, err);
  if (!status) status = gc_upload_lengths(c, err);
  if (status) return status;
  c->info.index_bytes = c->info.resident_bytes + c->ix->stat.blocks * GC_ENTRY +
                        c->ix->section[GPUIR__S_DOCIDS]->length + c->ix->section[GPUIR__S_FREQS]->length;
  left = gc_left(c);
  searcher = gc_sizes_within(c, left / 4).device;
  if (searcher <= left / 4) searcher *= 2; /* for two of them */
  status = gc_cache_open(c, left - gpuir__min64(left, searcher), err);
  if (status) return status;
  GC_TRY(cudaDeviceSynchronize(),
         "clearing the slab"); /* searchers' streams do not wait for the default one */
  return GPUIR_OK;
}

/* Frees what has been made of the index. */
static void gc_forget(gpuir_cuda *c) {
  const gpuir_index *ix = c->ix;
  size_t i;
  gc_cache_close(c);
  while (c->nmemory) (void)cudaFree(c->memory[--c->nmemory]);
  for (i = 0; i < c->recoded.len / sizeof(void *); i++) {
    void *p;
    memcpy(&p, c->recoded.data + i * sizeof p, sizeof p);
    (void)cudaFree(p);
  }
  (void)cudaGetLastError();
  gpuir__buf_free(&c->a, &c->recoded);
  gpuir__free(&c->a, c->places, (size_t)ix->stat.terms * sizeof *c->places);
  gpuir__free(&c->a, c->lists, (size_t)ix->stat.longs * sizeof *c->lists);
  gpuir__free(&c->a, c->aids, (size_t)ix->stat.longs * sizeof *c->aids);
  c->places = NULL;
  c->lists = NULL;
  c->aids = NULL;
  c->info.used_memory = c->info.resident_bytes = 0;
}

static int gc_open(gpuir_cuda *c, const gpuir_cuda_desc *desc, gpuir_error *err) {
  uint64_t plain = gc_plain_bytes(c->ix), room = desc ? desc->memory : 0;
  size_t free_bytes, all_bytes;
  int status, coded = gc_any_coded(c->ix);
  GC_TRY(cudaSetDevice(c->device), "choosing the device");
  GC_TRY(cudaFree(NULL), "starting the device");
  status = gc_shape(c, err);
  if (!status) status = gc_shape_or(c, 1, err);
  if (status) return status;
  if (c->ix->stat.blocks >= UINT32_MAX)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "CUDA: more than 2^32-2 blocks");
  c->view.docs_unit = gpuir__codec_by_id(GC_BP128, 1)->unit;
  c->view.freqs_unit = gpuir__codec_by_id(GC_BP128, 0)->unit;
  GC_TRY(cudaMemGetInfo(&free_bytes, &all_bytes), "asking for free memory");
  if (!room || room > free_bytes / 10 * 9) room = free_bytes / 10 * 9;
  c->room = room;
  c->info.index_bytes = plain;
  if (plain + gc_sizes_of(c, 1).device <= room) {
    status = gc_open_whole(c, coded, err);
    if (!status || !coded || !c->refused) return status;
    gc_forget(c); /* as bp128 it does not fit */
  }
  return gc_open_cached(c, err);
}

extern "C" int gpuir_cuda_open(const gpuir_index *ix, const gpuir_cuda_desc *desc, gpuir_cuda **cuda,
                               gpuir_error *err) {
  gpuir_cuda *c;
  int status;
  if (cuda) *cuda = NULL;
  if (!ix || !cuda) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_open: index or cuda is NULL");
  if (desc && (desc->device < 0 || desc->batch > 65536))
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_open: bad device or batch");
  c = (gpuir_cuda *)gpuir__alloc_zero(&ix->a, sizeof *c);
  if (!c) return gpuir__fail_nomem(err);
  c->a = ix->a;
  c->ix = ix;
  c->device = desc ? desc->device : 0;
  c->batch = desc && desc->batch ? desc->batch : 1024;
  c->threshold = desc && desc->threshold ? desc->threshold : UINT64_MAX;
  status = gc_open(c, desc, err);
  if (status)
    gpuir_cuda_close(c);
  else
    *cuda = c;
  return status;
}

extern "C" void gpuir_cuda_close(gpuir_cuda *c) {
  gpuir_allocator a;
  if (!c) return;
  a = c->a;
  (void)cudaSetDevice(c->device);
  gc_forget(c);
  gpuir__free(&a, c, sizeof *c);
}

extern "C" void gpuir_cuda_stats(const gpuir_cuda *c, gpuir_cuda_info *info) {
  if (!c || !info) return;
  *info = c->info;
  info->used_memory = __atomic_load_n(&c->info.used_memory, __ATOMIC_RELAXED);
  info->queries = __atomic_load_n(&c->info.queries, __ATOMIC_RELAXED);
  info->batches = __atomic_load_n(&c->info.batches, __ATOMIC_RELAXED);
  info->lists_hit = __atomic_load_n(&c->info.lists_hit, __ATOMIC_RELAXED);
  info->lists_missed = __atomic_load_n(&c->info.lists_missed, __ATOMIC_RELAXED);
  info->resident_bytes = __atomic_load_n(&c->info.resident_bytes, __ATOMIC_RELAXED);
}

/* ---- a launch: queries become jobs, terms and chunks, packed into one transfer ---- */

typedef struct gc_plan {
  size_t nq, njobs, nterms, nslots, nchunks, nand, nor, nmax;
  uint64_t nand_blocks, nsamples, max_blocks;
} gc_plan;

/* What is known of a term's list on the device. */
static void gc_aid_term(const gpuir_cuda *c, const gpuir__list *l, int stored, gc_term *t) {
  t->most = gpuir__bound(t->weight, 1, t->q);
  if (l->extent && c->aids) {
    const gc_aid *aid = &c->aids[l->extent - c->ix->longs];
    uint64_t step = (uint64_t)t->q * (aid->most / 255 + 1);
    t->marks = aid->marks;
    t->shift = aid->shift;
    t->row = aid->row;
    t->span = aid->span;
    if (!stored) return;
    t->most = t->q * aid->most;
    if (step * 255 <= UINT32_MAX) t->step = (uint32_t)step;
  }
}

/* Appends the query's known terms: positive ones by ascending df, then negated ones. */
static int gc_plan_terms(gc_context *x, gc_plan *p, const gpuir_query *q, gc_job *job, int *full,
                         gpuir_error *err) {
  static const uint32_t rank[GPUIR__SEEDS] = {10, 100, 1000};
  gc_term *terms = x->terms + p->nterms;
  uint32_t n = 0, i, s, seed = 0;
  job->expanded = x->cuda->expanded && q->stored_bm25;
  for (i = 0; i < q->n; i++) {
    const gpuir__query_term *from = &q->terms[i];
    gpuir__list l;
    gc_term t;
    uint32_t j;
    int status;
    if (from->id == GPUIR__UNKNOWN) continue;
    status = gc_describe(x->cuda, from->id, &t, &l, err);
    if (status) return status;
    if (!x->cuda->cache || t.kind == GC_INLINE) {
      __atomic_fetch_add(&x->cuda->info.lists_hit, 1, __ATOMIC_RELAXED);
    } else {
      status = gc_cache_take(x->cuda, from->id, &l, &t, full, err);
      if (status || *full) return status;
      x->held[x->nheld++] = from->id;
    }
    t.q = from->q;
    t.weight = from->weight;
    t.negated = from->negated != 0;
    job->expanded = job->expanded && t.kind == GC_LONG;
    gc_aid_term(x->cuda, &l, q->stored_bm25 != 0, &t);
    for (j = n++; j && !t.negated && terms[j - 1].df > t.df; j--) terms[j] = terms[j - 1];
    terms[j] = t;
    if (t.negated) continue;
    job->npositive++;
    for (s = 0; s < GPUIR__SEEDS && rank[s] < job->k; s++) {}
    if (q->stored_bm25 && l.seeds && s < GPUIR__SEEDS) seed = gpuir__max32(seed, t.q * l.seeds[s]);
  }
  job->first_term = (uint32_t)p->nterms;
  job->nterms = n;
  if (n == job->npositive && x->engine->evaluator != GPUIR_EVAL_EXHAUSTIVE) job->seed = seed;
  return GPUIR_OK;
}

/* Whether MaxScore is certain to be the way, by the threshold that is known beforehand; gc_max_plan decides
 * likewise. */
static int gc_plan_sure(const gc_context *x, const gc_job *job) {
  const gc_term *terms = x->terms + job->first_term;
  uint64_t all = (uint64_t)GC_TILE_COST * x->cuda->view.ntiles, driving = 0, behind = 0;
  uint32_t i;
  for (i = job->npositive; i--;) {
    behind += terms[i].most;
    all += terms[i].nblocks;
    if (behind >= job->seed) driving += terms[i].nblocks;
  }
  return job->seed > 1 && (job->npositive == 1 || driving * GC_PROBE_COST <= all);
}

static void gc_plan_or(gc_context *x, gc_plan *p, gc_job *job) {
  uint32_t i, first;
  job->any = 1;
  job->follow = x->cuda->aids && job->prune;
  if (job->follow) {
    x->max_jobs[p->nmax++] = (uint32_t)p->njobs;
    for (i = 0; i < job->npositive; i++) p->max_blocks += x->terms[job->first_term + i].nblocks;
    if (gc_plan_sure(x, job)) {
      x->jobs[p->njobs++] = *job;
      return;
    }
  }
  for (i = 0; i < job->nterms; i++) {
    gc_term *t = &x->terms[job->first_term + i];
    t->slot = (uint32_t)p->nslots++;
    for (first = 0; first < t->nblocks; first += GC_CHUNK) {
      gc_chunk *c = &x->chunks[p->nchunks++];
      c->job = (uint32_t)p->njobs;
      c->term = job->first_term + i;
      c->first = first;
      c->zero = 0;
    }
  }
  x->or_jobs[p->nor++] = (uint32_t)p->njobs;
  x->jobs[p->njobs++] = *job;
}

/* Chunks that a query's lists may be cut into. */
static size_t gc_chunks_of(const gpuir_query *q) {
  size_t n = 0;
  unsigned i;
  for (i = 0; i < q->n; i++) n += q->terms[i].df / (GPUIR__BLOCK * GC_CHUNK) + 1;
  return n;
}

/* Whether the sum of a and b * length is exact in binary64, whatever the length below 2^24, so that gc_fused_norm
 * rounds as gpuir__norm_of does: from its first bit, at 2^(1 + the greater exponent), to the last one of both, 23 below
 * the lesser exponent, there are no more than 53. */
static int gc_fused(double a, double b) {
  int ea, eb;
  if ((double)(float)a < a || (double)(float)a > a || (double)(float)b < b || (double)(float)b > b) return 0;
  if (!(a > 0) || !(b > 0)) return a >= 0 && b >= 0;
  (void)frexp(a, &ea);
  (void)frexp(b, &eb);
  if (ea < -64 || ea > 64 || eb < -64 || eb > 64) return 0;
  return (ea > eb + 24 ? ea : eb + 24) + 1 - ((ea < eb ? ea : eb) - 23) + 1 <= 53;
}

/* Adds a query; *full: it has to wait for the next launch. */
static int gc_plan_query(gc_context *x, gc_plan *p, const gpuir_query *q, uint32_t k, size_t most_jobs,
                         int *full, gpuir_error *err) {
  gc_job job;
  uint2 jobs;
  int mode = q->mode, status;
  *full = p->nq == x->queries || p->njobs + 2 > most_jobs || p->nterms + q->n > x->nterms ||
          p->nslots + q->n > x->nslots || p->nchunks + gc_chunks_of(q) > x->nchunks || p->nand_blocks >> 30 ||
          p->max_blocks >> 30;
  if (*full) return GPUIR_OK;
  jobs.x = jobs.y = GC_NONE;
  memset(&job, 0, sizeof job);
  job.k = k;
  job.norm_a = q->norm.a;
  job.norm_b = q->norm.b;
  job.fused = gc_fused(q->norm.a, q->norm.b) != 0;
  job.stored = q->stored_bm25 != 0;
  job.prune = x->engine->evaluator != GPUIR_EVAL_EXHAUSTIVE;
  job.after = GC_NONE;
  if (!(mode == GPUIR_AND && q->nunknown)) {
    const size_t held = x->nheld;
    if (x->cuda->cache) (void)pthread_mutex_lock(&x->cuda->cache->lock);
    status = gc_plan_terms(x, p, q, &job, full, err);
    if (x->cuda->cache) {
      x->others = x->cuda->cache->pins - x->nheld;
      (void)pthread_mutex_unlock(&x->cuda->cache->lock);
    }
    if (status || *full) {
      x->releases = gc_cache_release(x->cuda->cache, x->held + held, x->nheld - held);
      x->nheld = held;
      return status;
    }
  }
  if (job.npositive) {
    const gc_term *driver = &x->terms[p->nterms];
    uint32_t seed = job.seed;
    if (mode == GPUIR_ANDOR && q->nunknown) mode = GPUIR_OR;
    if (job.npositive == 1)
      mode = driver->df <= 4096 ? GPUIR_AND : GPUIR_OR; /* the same answer: take the cheaper way */
    if (mode != GPUIR_OR) {
      jobs.x = (uint32_t)p->njobs;
      if (job.npositive > 1) job.seed = 0;
      x->and_jobs[p->nand] = (uint32_t)p->njobs;
      x->sample_start[p->nand] = (uint32_t)p->nsamples;
      x->and_start[p->nand++] = (uint32_t)p->nand_blocks;
      p->nsamples += gc_sample_step(driver->nblocks) ? GC_SAMPLES : 0;
      p->nand_blocks += driver->nblocks;
      x->jobs[p->njobs++] = job;
      job.after = jobs.x;
      job.seed = seed;
    }
    if (mode != GPUIR_AND) {
      *(mode == GPUIR_OR ? &jobs.x : &jobs.y) = (uint32_t)p->njobs;
      gc_plan_or(x, p, &job);
    }
    p->nterms += job.nterms;
  }
  x->query_jobs[p->nq++] = jobs;
  return GPUIR_OK;
}

/* Packs an array into the staging memory; returns where it will lie on the device. */
static void *gc_pack(gc_context *x, size_t *at, const void *from, size_t n) {
  size_t start = *at;
  memcpy(x->staging + start, from, n);
  *at = (start + n + 15) & ~(size_t)15;
  return x->input + start;
}

static int gc_launch(gc_context *x, gc_batch *b, const gc_plan *p, uint32_t k, int rerun, gpuir_error *err) {
  const gpuir_cuda *c = x->cuda;
  const gc_view *v = &c->view;
  size_t size = 16;
  if (rerun)
    GC_TRY(cudaMemsetAsync(b->control, 0, offsetof(gc_control, drives), x->stream), "clearing counters");
  if (p->nand) {
    const unsigned most = c->aids ? c->all_grid : c->and_grid;
    unsigned grid = (unsigned)gpuir__min64((b->nand_groups + 7) / 8, most);
    if (p->nsamples) {
      unsigned some = (unsigned)gpuir__min64((p->nsamples + 7) / 8, most);
      if (c->aids)
        gc_all<<<some, GC_MAX_THREADS, 0, x->stream>>>(*v, *b, 1);
      else
        gc_and<<<some, GC_AND_THREADS, 0, x->stream>>>(*v, *b, 1);
      gc_raise<<<(unsigned)p->nand, GC_FINAL_THREADS, 0, x->stream>>>(*b);
    }
    if (c->aids)
      gc_all<<<grid, GC_MAX_THREADS, 0, x->stream>>>(*v, *b, p->nsamples ? 2 : 0);
    else
      gc_and<<<grid, GC_AND_THREADS, 0, x->stream>>>(*v, *b, p->nsamples ? 2 : 0);
  }
  if (p->nmax) {
    if (!rerun) {
      unsigned some =
          (unsigned)gpuir__min64(p->nmax * b->max_parts * (GC_FIRST / (GC_MAX_THREADS / 32)), c->max_grid);
      gc_max_first<<<some, GC_MAX_THREADS, 0, x->stream>>>(*v, *b);
      gc_max_plan<<<(unsigned)p->nmax, GC_FINAL_THREADS, 0, x->stream>>>(*v, *b);
    }
    gc_max<<<(unsigned)gpuir__min64((p->max_blocks * b->max_parts + 7) / 8, c->max_grid), GC_MAX_THREADS, 0,
             x->stream>>>(*v, *b);
  }
  if (p->nor && !rerun) {
    unsigned grid = (unsigned)gpuir__min64(p->nchunks, (uint64_t)c->processors * 8);
    GC_TRY(cudaMemsetAsync(x->bound, 0, p->nslots * (v->ntiles + 1) * 4, x->stream), "clearing bounds");
    if (c->expanded)
      gc_tiles<true><<<grid, 256, 0, x->stream>>>(*v, *b);
    else
      gc_tiles<false><<<grid, 256, 0, x->stream>>>(*v, *b);
    gc_order<<<(unsigned)p->nor, 256, 0, x->stream>>>(*v, *b);
  }
  if (p->nor) {
    unsigned grid = (unsigned)gpuir__min64((uint64_t)p->nor * v->ntiles, c->or_grid);
    const size_t shared = gc_tile_bytes(v->tile);
    if (c->expanded)
      gc_or<true><<<grid, GC_OR_THREADS(1), shared, x->stream>>>(*v, *b);
    else
      gc_or<false><<<grid, GC_OR_THREADS(0), shared, x->stream>>>(*v, *b);
  }
  while (size < k) size *= 2;
  gc_final<<<(unsigned)p->nq, GC_FINAL_THREADS, size * 8, x->stream>>>(*v, *b);
  GC_TRY(cudaGetLastError(), "launching kernels");
  GC_TRY(cudaStreamSynchronize(x->stream), "running kernels");
  return GPUIR_OK;
}

/* Between launches. */
static int gc_interrupted(const gc_context *x, uint64_t start, size_t nq, gpuir_error *err) {
  if (x->engine->cancel && __atomic_load_n(x->engine->cancel, __ATOMIC_RELAXED))
    return gpuir__fail(err, GPUIR_E_CANCELLED, 0, "the search was cancelled");
  if (start && gpuir__now() - start > x->engine->timeout_ns * nq)
    return gpuir__fail(err, GPUIR_E_DEADLINE, 0, "the search exceeded its time limit");
  return GPUIR_OK;
}

/* Runs what was planned. Queries without a job have no hits. */
static int gc_run(gc_context *x, gc_plan *p, uint32_t k, uint64_t start, size_t nq, gpuir_hit *hits,
                  uint32_t *counts, size_t stride, gpuir_error *err) {
  gpuir_cuda *c = x->cuda;
  gc_batch b;
  size_t at = 0, i, n = 0;
  unsigned tries;
  int again = 1, status;
  memset(&b, 0, sizeof b);
  for (i = 0; i < p->nq; i++) /* those with jobs, in front */
    if (x->query_jobs[i].x != GC_NONE) x->query_jobs[n++] = x->query_jobs[i];
  /* the caller has noted which ones they were in counts[]: GC_NONE */
  if (!n) return GPUIR_OK;
  x->and_start[p->nand] = (uint32_t)p->nand_blocks;
  x->sample_start[p->nand] = (uint32_t)p->nsamples;
  b.and_parts = c->aids && p->nand_blocks < c->max_grid * 8 ? 4 : 1;
  b.max_parts = p->max_blocks < c->max_grid * 64 ? 4 : 1;
  b.and_group = (uint32_t)gpuir__max64(1, gpuir__min64(GC_GROUP, p->nand_blocks / (c->max_grid * 64)));
  for (i = 0; i < p->nand; i++) { /* from blocks to groups of them */
    uint32_t blocks = x->and_start[i + 1] - x->and_start[i];
    x->and_start[i] = b.nand_groups;
    b.nand_groups += (blocks + b.and_group - 1) / b.and_group * b.and_parts;
  }
  x->and_start[i] = b.nand_groups;
  b.terms = (const gc_term *)gc_pack(x, &at, x->terms, p->nterms * sizeof *x->terms);
  b.jobs = (const gc_job *)gc_pack(x, &at, x->jobs, p->njobs * sizeof *x->jobs);
  b.chunks = (const gc_chunk *)gc_pack(x, &at, x->chunks, p->nchunks * sizeof *x->chunks);
  b.and_jobs = (const uint32_t *)gc_pack(x, &at, x->and_jobs, p->nand * 4);
  b.and_start = (const uint32_t *)gc_pack(x, &at, x->and_start, (p->nand + 1) * 4);
  b.sample_start = (const uint32_t *)gc_pack(x, &at, x->sample_start, (p->nand + 1) * 4);
  b.or_jobs = (const uint32_t *)gc_pack(x, &at, x->or_jobs, p->nor * 4);
  b.query_jobs = (const uint2 *)gc_pack(x, &at, x->query_jobs, n * sizeof *x->query_jobs);
  b.max_jobs = (const uint32_t *)gc_pack(x, &at, x->max_jobs, p->nmax * 4);
  b.drives = x->drives;
  b.drive_start = x->drive_start;
  b.nmax = (uint32_t)p->nmax;
  b.drive_group = (uint32_t)gpuir__max64(1, gpuir__min64(GC_GROUP, p->max_blocks / (c->max_grid * 64)));
  memset(x->staging + at, 0, sizeof(gc_control));
  b.control = (gc_control *)(x->input + at);
  at += sizeof(gc_control);
  b.states = (gc_state *)(x->input + at);
  memset(x->staging + at, 0, p->njobs * sizeof(gc_state));
  for (i = 0; i < p->njobs; i++)
    if (x->jobs[i].seed)
      ((gc_state *)(x->staging + at))[i].floor = ((unsigned long long)x->jobs[i].seed << 32) - 1;
  at += p->njobs * sizeof(gc_state);
  b.first = x->first;
  b.bound = x->bound;
  b.order = x->order;
  b.total = x->total;
  b.cand = x->cand;
  b.room = (uint32_t)gpuir__min64(x->ncand / p->njobs, gpuir__max64(65536, 16 * (uint64_t)k)) & ~1u;
  b.out = x->out_device;
  b.out_stride = 2 + 2 * k;
  b.nchunks = (uint32_t)p->nchunks;
  b.njobs = (uint32_t)p->njobs;
  b.nand = (uint32_t)p->nand;
  b.nor = (uint32_t)p->nor;
  b.nsamples = (uint32_t)p->nsamples;
  b.grab = p->nor >= 64 ? 4 : 1;
  p->nq = n;
  if (c->cache) { /* the launch waits for the lists that are on their way */
    GC_TRY(cudaEventRecord(x->sent, c->cache->pipe.stream), "waiting for lists");
    GC_TRY(cudaStreamWaitEvent(x->stream, x->sent, 0), "waiting for lists");
  }
  GC_TRY(cudaMemcpyAsync(x->input, x->staging, at, cudaMemcpyHostToDevice, x->stream), "sending queries");
  for (tries = 0; again; tries++) {
    again = 0;
    if (tries == 64) return gpuir__fail(err, GPUIR_E_BACKEND, 0, "CUDA: too many candidates share one score");
    status = tries ? gc_interrupted(x, start, nq, err) : GPUIR_OK;
    if (!status) status = gc_launch(x, &b, p, k, tries > 0, err);
    if (status) return status;
    for (i = 0; i < n && !again; i++) again = x->out[i * b.out_stride] == GC_NONE;
  }
  for (i = n = 0; n < p->nq; i++) {
    const uint32_t *out = x->out + n * b.out_stride;
    if (counts[i] != GC_NONE) continue;
    counts[i] = gpuir__min32(out[0], k);
    memcpy(hits + i * stride, out + 2, (size_t)counts[i] * sizeof *hits);
    n++;
  }
  return GPUIR_OK;
}

static int gc_search(void *context, const gpuir_query *const *queries, size_t nq, size_t k, gpuir_hit *hits,
                     uint32_t *counts, gpuir_error *err) {
  gc_context *x = (gc_context *)context;
  gpuir_cuda *c = x->cuda;
  const size_t stride = k;
  uint64_t start = x->engine->timeout_ns ? gpuir__now() : 0;
  size_t done = 0, most_jobs;
  unsigned i;
  if (k > c->ix->stat.documents) k = (size_t)c->ix->stat.documents;
  if (!k || !nq) return GPUIR_OK;
  if (k > c->k_most)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "the CUDA backend ranks at most %u hits a query",
                       (unsigned)c->k_most);
  GC_TRY(cudaSetDevice(c->device), "choosing the device");
  if (x->dirty) GC_TRY(cudaMemsetAsync(x->cand, 0, x->ncand * 8, x->stream), "clearing candidates");
  x->dirty = 1;
  most_jobs = (size_t)gpuir__min64(x->njobs, gpuir__max64(2, x->ncand / gpuir__max64(8192, 16 * k)));
  while (done < nq) {
    gc_plan p;
    size_t first = done, out_most = x->out_size / ((2 + 2 * k) * 4);
    uint64_t postings = 0;
    int status = gc_interrupted(x, start, nq, err), full = 0;
    memset(&p, 0, sizeof p);
    while (!status && done < nq && done - first < out_most && postings < c->threshold) {
      status = gc_plan_query(x, &p, queries[done], (uint32_t)k, most_jobs, &full, err);
      if (status || full) break;
      for (i = 0; i < queries[done]->n; i++) postings += queries[done]->terms[i].df;
      counts[done] = x->query_jobs[p.nq - 1].x == GC_NONE ? 0 : GC_NONE;
      done++;
    }
    if (!status && done > first)
      status = gc_run(x, &p, (uint32_t)k, start, nq, hits + first * stride, counts + first, stride, err);
    if (status) (void)cudaStreamSynchronize(x->stream); /* what was launched still uses the lists */
    (void)gc_cache_release(c->cache, x->held, x->nheld);
    x->nheld = 0;
    if (status) return status;
    if (done == first) {
      if (c->cache && x->others) { /* for them there may be room later */
        gc_cache_wait(c->cache, x->releases);
        continue;
      }
      return gpuir__fail(err, GPUIR_E_NOMEM, 0,
                         "CUDA: the lists of a query need more memory than is allowed");
    }
    __atomic_fetch_add(&c->info.batches, 1, __ATOMIC_RELAXED);
  }
  x->dirty = 0;
  __atomic_fetch_add(&c->info.queries, nq, __ATOMIC_RELAXED);
  return GPUIR_OK;
}

/* ---- attaching ---- */

static void gc_detach(void *context) {
  gc_context *x = (gc_context *)context;
  gpuir_allocator a;
  if (!x) return;
  a = x->a;
  (void)cudaSetDevice(x->cuda->device);
  if (x->stream) {
    (void)cudaStreamSynchronize(x->stream);
    (void)cudaStreamDestroy(x->stream);
  }
  if (x->sent) (void)cudaEventDestroy(x->sent);
  __atomic_fetch_sub(&x->cuda->info.used_memory, x->device_bytes, __ATOMIC_RELAXED);
  (void)cudaFree(x->input);
  (void)cudaFree(x->first);
  (void)cudaFree(x->bound);
  (void)cudaFree(x->order);
  (void)cudaFree(x->total);
  (void)cudaFree(x->cand);
  (void)cudaFree(x->drives);
  (void)cudaFree(x->drive_start);
  (void)cudaFreeHost(x->staging);
  (void)cudaFreeHost(x->out);
  (void)cudaGetLastError();
  gpuir__free(&a, x->host, x->host_size);
  gpuir__free(&a, x, sizeof *x);
}

static void *gc_carve(uint8_t **at, size_t n) {
  void *p = *at;
  *at += (n + 63) & ~(size_t)63;
  return p;
}

static int gc_context_take(gc_context *x, size_t n, void **p, gpuir_error *err) {
  int status = gc_take(x->cuda, n, p, err);
  if (!status) x->device_bytes += n ? n : 1;
  return status;
}

static int gc_attach(gc_context *x, gpuir_error *err) {
  const gc_sizes z = gc_sizes_within(x->cuda, gc_left(x->cuda));
  gpuir_cuda *c = x->cuda;
  size_t n;
  uint8_t *at;
  int s;
  x->queries = z.queries;
  x->njobs = z.njobs;
  x->nterms = z.nterms;
  x->nslots = z.nslots;
  x->nchunks = z.nchunks;
  x->ncand = z.ncand;
  x->host_size = (size_t)z.host;
  x->host = gpuir__alloc(&x->a, x->host_size);
  if (!x->host) return gpuir__fail_nomem(err);
  at = (uint8_t *)(((uintptr_t)x->host + 63) & ~(uintptr_t)63);
  x->terms = (gc_term *)gc_carve(&at, x->nterms * sizeof *x->terms);
  x->jobs = (gc_job *)gc_carve(&at, x->njobs * sizeof *x->jobs);
  x->chunks = (gc_chunk *)gc_carve(&at, x->nchunks * sizeof *x->chunks);
  x->query_jobs = (uint2 *)gc_carve(&at, x->queries * sizeof *x->query_jobs);
  x->and_jobs = (uint32_t *)gc_carve(&at, x->njobs * 4);
  x->and_start = (uint32_t *)gc_carve(&at, (x->njobs + 1) * 4);
  x->sample_start = (uint32_t *)gc_carve(&at, (x->njobs + 1) * 4);
  x->or_jobs = (uint32_t *)gc_carve(&at, x->njobs * 4);
  x->max_jobs = (uint32_t *)gc_carve(&at, x->njobs * 4);
  x->held = (uint64_t *)gc_carve(&at, x->nterms * 8);
  x->staging_size = (size_t)z.staging;
  x->out_size =
      (size_t)gpuir__max64((2 + 2 * (uint64_t)GC_K_MOST) * 4, gpuir__min64(x->queries * 8192, 16u << 20));
  GC_TRY(cudaStreamCreateWithFlags(&x->stream, cudaStreamNonBlocking), "creating a stream");
  GC_TRY(cudaMallocHost((void **)&x->staging, x->staging_size), "allocating pinned memory");
  GC_TRY(cudaHostAlloc((void **)&x->out, x->out_size, cudaHostAllocMapped), "allocating pinned memory");
  GC_TRY(cudaHostGetDevicePointer((void **)&x->out_device, x->out, 0), "mapping pinned memory");
  GC_TRY(cudaEventCreateWithFlags(&x->sent, cudaEventDisableTiming), "creating an event");
  s = gc_context_take(x, x->staging_size, (void **)&x->input, err);
  n = (size_t)(x->nslots * z.tiles * 4);
  if (!s) s = gc_context_take(x, n, (void **)&x->first, err);
  if (!s) s = gc_context_take(x, n, (void **)&x->bound, err);
  n = (size_t)(x->njobs * z.tiles * 4);
  if (!s) s = gc_context_take(x, n, (void **)&x->order, err);
  if (!s) s = gc_context_take(x, n, (void **)&x->total, err);
  if (!s) s = gc_context_take(x, (size_t)x->ncand * 8, (void **)&x->cand, err);
  if (!s) s = gc_context_take(x, x->nterms * sizeof *x->drives, (void **)&x->drives, err);
  if (!s) s = gc_context_take(x, x->nterms * 4, (void **)&x->drive_start, err);
  if (s) return s;
  x->dirty = 1;
  return GPUIR_OK;
}

extern "C" int gpuir_cuda_attach(gpuir_searcher *s, gpuir_cuda *cuda, int fallback, gpuir_error *err) {
  gpuir_backend backend;
  gc_context *x;
  int status;
  if (!s || !cuda || s->ix != cuda->ix)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_attach: NULL, or a searcher of another index");
  GC_TRY(cudaSetDevice(cuda->device), "choosing the device");
  x = (gc_context *)gpuir__alloc_zero(&s->engine.a, sizeof *x);
  if (!x) return gpuir__fail_nomem(err);
  x->a = s->engine.a;
  x->cuda = cuda;
  x->engine = &s->engine;
  status = gc_attach(x, err);
  if (!status) {
    memset(&backend, 0, sizeof backend);
    backend.version = GPUIR_BACKEND_VERSION;
    backend.name = "cuda";
    backend.context = x;
    backend.search = gc_search;
    backend.close = gc_detach;
    status = gpuir_searcher_set_backend(s, &backend, fallback);
    if (status) (void)gpuir__fail(err, status, 0, "gpuir_cuda_attach: %s", gpuir_strerror(status));
  }
  if (status) gc_detach(x);
  return status;
}

/* ============================================================================
 * 9  The laboratory: the GPU methods of the literature, on lists of one's own
 *
 * A lab holds lists in one codec, and as they are. Everything that a run needs is allocated when the lab is opened.
 * Decoding uses the functions of gpuir.h by which the CPU decodes (GPUIR_HD): one definition of each format. A warp
 * has a block of 128, lane t its values 4t to 4t+3; a unary vector is taken apart by 16 bits a lane, exceptions are
 * patched in shared memory.
 *
 * The comments above the kernels predict bytes and warp instructions for a block of 128; beside them stands what
 * was measured on an H200 (132 multiprocessors, 1.05 T warp instructions/s, copies at 4.2 TB/s in the same run), and
 * what ncu counted (tools/scripts/ncu_table.py). Two to five times the predicted instructions of decoders are counted, as
 * these were of the arithmetic on values only: in a decoder for any list all lanes take a header apart, with addresses
 * and offsets of 64 bits, look for the block's list, and write 512 bytes. Bytes were predicted rightly.
 * ==========================================================================*/

#define GCL_THREADS 256u
#define GCL_WARPS (GCL_THREADS / 32)
#define GCL_CHUNK 32u /* blocks that a warp takes at a time, at most */

/* A list on the device. */
struct gcl_list : gc_coded {
  uint32_t shift[6]; /* hash segmentation with buckets of 16, 32, ... 256 on average; lr-local's segments */
  uint32_t buckets[6];
  const uint32_t *first[5]; /* buckets + 1 indices */
  const void *lines;        /* linear regression: of the list, then of each of lr-local's segments */
};

/* ---- decoding to memory ---- */

/* Which list a block belongs to: `start` has the blocks before each list, `hint` the list of every 256th block. */
typedef struct gcl_where {
  const uint32_t *start, *hint;
} gcl_where;

#define GCL_HINT 8u

static __device__ __forceinline__ uint32_t gcl_list_of(const gcl_where &w, uint32_t g) {
  uint32_t i = __ldg(w.hint + (g >> GCL_HINT));
  while (g >= __ldg(w.start + i + 1)) i++;
  return i;
}

/* Blocks from .. to - 1 of all blocks to out, 128 words a block. */
template <int C, bool SUM>
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_decode(const gcl_list *lists, gcl_where where, uint32_t from, uint32_t to, uint32_t chunk,
               uint32_t *out) {
  __shared__ uint4 room[GCL_WARPS][32];
  const uint32_t warps = gridDim.x * GCL_WARPS;
  uint32_t *sh = (uint32_t *)room[threadIdx.x / 32];
  uint64_t at = from + (uint64_t)(blockIdx.x * GCL_WARPS + threadIdx.x / 32) * chunk;
  for (; at < to; at += (uint64_t)warps * chunk) {
    uint32_t g = (uint32_t)at, end = min(to, g + chunk), i = gcl_list_of(where, g);
    for (; g < end; g++) {
      uint32_t v[4] = {0, 0, 0, 0};
      while (g >= __ldg(where.start + i + 1)) i++;
      gcl_block<C, SUM>(lists[i], g - __ldg(where.start + i), sh, v);
      __stcs((uint4 *)(out + (uint64_t)(g - from) * GPUIR__BLOCK) + gc_lane(),
             make_uint4(v[0], v[1], v[2], v[3]));
    }
  }
}

/* Where lane t finds its row of a vertical block: words of two neighbouring rows. */
static __device__ __forceinline__ void gcl_fetch(const uint8_t *low, uint32_t b, uint4 *x, uint4 *y) {
  const uint32_t bit = gc_lane() * b;
  const uint8_t *p = (const uint8_t *)((uintptr_t)low & ~(uintptr_t)3) + (bit >> 5) * 16;
  if (((uintptr_t)low & 15) == 0) {
    *x = __ldg((const uint4 *)p);
    *y = __ldg((const uint4 *)(p + 16));
  } else {
    const uint32_t *w = (const uint32_t *)p;
    *x = make_uint4(__ldg(w), __ldg(w + 1), __ldg(w + 2), __ldg(w + 3));
    *y = make_uint4(__ldg(w + 4), __ldg(w + 5), __ldg(w + 6), __ldg(w + 7));
  }
}

/* What a warp has found out about one of the blocks that it is going to decode; the first 16 bytes say what to load. */
typedef struct __align__(16) gcl_head {
  const uint8_t *low;
  uint32_t bits, prev; /* bits: b | h << 8 | count << 16 */
  const uint8_t *high;
  uint32_t limit, zero;
  uint64_t marks[2];
}
gcl_head;

/* bp128 to memory. Each lane opens one of 32 blocks, so that their headers are loaded at once, and leaves what it
 * found in shared memory; then the warp takes them one after the other, the next one's two rows of 16 bytes being on
 * their way. The warps of a block of threads take neighbouring blocks at a time, so that memory is written in one
 * front. Bytes a value: b / 8 + 0.07 read and 4 written: bound by memory. Predicted 70 instructions a block,
 * counted 233, most blocks having exceptions.
 * Measured for widths of 2 to 16: 788 to 583 G values/s, 3.4 to 3.6 TB/s, that is 80 to 84 % of the copy's rate,
 * 81.8 % on average. */
template <bool SUM>
static __global__ void __launch_bounds__(GCL_THREADS, 6)
    gcl_decode_bp128(const gcl_list *lists, gcl_where where, uint32_t from, uint32_t to, uint32_t chunk,
                     uint32_t *out) {
  __shared__ gcl_head heads[GCL_WARPS][GCL_CHUNK];
  const uint32_t lane = gc_lane();
  gcl_head *sh = heads[threadIdx.x / 32];
  uint64_t at = from + (uint64_t)blockIdx.x * GCL_WARPS * chunk + threadIdx.x / 32;
  for (; at < to; at += (uint64_t)gridDim.x * GCL_WARPS * chunk) {
    const uint32_t n = (uint32_t)min((uint64_t)chunk, (to - at + GCL_WARPS - 1) / GCL_WARPS);
    uint4 *to4 = (uint4 *)(out + (at - from) * GPUIR__BLOCK) + lane;
    uint32_t j;
    uint4 x, y, nx, ny;
    __syncwarp();
    if (lane < n) {
      const uint32_t g = (uint32_t)at + lane * GCL_WARPS;
      uint32_t i = gcl_list_of(where, g), block, count;
      const uint8_t *low;
      gpuir__bp128_view view;
      uint64_t left;
      unsigned b;
      const gpuir__stream &s = lists[i].s;
      block = g - __ldg(where.start + i);
      count = gpuir__block_count(s.n, block);
      gcl_view(s, block, count, &view);
      sh[lane].low = view.low;
      sh[lane].bits = view.b | view.h << 8 | count << 16;
      sh[lane].prev = block ? __ldg(s.last + block - 1) : UINT32_MAX;
      sh[lane].high = view.high;
      sh[lane].limit = s.limit;
      sh[lane].marks[0] = view.marks[0];
      sh[lane].marks[1] = view.marks[1];
    }
    __syncwarp();
    gcl_fetch(sh[0].low, sh[0].bits & 255, &nx, &ny);
    for (j = 0; j < n; j++, to4 += GCL_WARPS * (GPUIR__BLOCK / 4)) {
      const uint32_t h = sh[j].bits, b = h & 255, bit = lane * b & 31, mask = gc_mask(b);
      uint32_t v[4];
      x = nx;
      y = ny;
      if (j + 1 < n) gcl_fetch(sh[j + 1].low, sh[j + 1].bits & 255, &nx, &ny);
      if (h >> 16 == GPUIR__BLOCK) {
        v[0] = __funnelshift_r(x.x, y.x, bit) & mask;
        v[1] = __funnelshift_r(x.y, y.y, bit) & mask;
        v[2] = __funnelshift_r(x.z, y.z, bit) & mask;
        v[3] = __funnelshift_r(x.w, y.w, bit) & mask;
      } else { /* packed otherwise: what was loaded is not used */
        gcl_slots(sh[j].low, b, 0, h >> 16, v);
      }
      if (h >> 8 & 255) {
        gpuir__bp128_view w;
        const uint32_t shift = 4 * lane & 63;
        const uint64_t word = sh[j].marks[lane / 16];
        uint32_t rank = __popcll(word & (((uint64_t)1 << shift) - 1)) +
                        (lane < 16 ? 0 : __popcll(sh[j].marks[0])),
                 mine = (uint32_t)(word >> shift) & 15, l;
        w.high = sh[j].high;
        w.b = b;
        w.h = h >> 8 & 255;
#pragma unroll
        for (l = 0; l < 4; l++)
          if (mine >> l & 1) v[l] |= gpuir__bp128_high(&w, rank++);
      }
      if (SUM) gc_sum(v, sh[j].prev, sh[j].limit);
      __stcs(to4, make_uint4(v[0], v[1], v[2], v[3]));
    }
  }
}

/* An array of a pfd-list's exceptions: n slots, some of which exceptions of their own patch. */
typedef struct gcl_node {
  const uint8_t *slots;
  uint32_t *out; /* n numbers; NULL: the list itself, of whose gaps the positions are made in place */
  const uint32_t *overflows;
  uint32_t *gaps;
  uint32_t n, number, bits, depth;
} gcl_node;

#define GCL_PFL_THREADS 1024u
#define GCL_PFL_TILE (4 * GCL_PFL_THREADS) /* numbers of a large array that a block of threads takes */

/* The numbers from .. to - 1 of an array, without what exceptions add. */
static __device__ __forceinline__ void gcl_pfl_slots(const gcl_node &node, uint32_t from, uint32_t to) {
  uint32_t i;
  for (i = from + threadIdx.x; i < min(node.n, to) && node.out; i += GCL_PFL_THREADS)
    node.out[i] = gpuir__packed_value(node.slots, node.bits, i);
}

/* Exceptions from .. to - 1: in rounds of as many as threads the sum of the gaps between them, `before` up to there,
 * and their overflows. */
static __device__ __forceinline__ void gcl_pfl_patch(const gcl_node &node, uint32_t from, uint32_t to,
                                                     uint32_t before) {
  __shared__ uint32_t sums[GCL_PFL_THREADS / 32], carry;
  uint32_t e;
  if (!threadIdx.x) carry = before;
  __syncthreads();
  for (e = from; e < min(node.number, to); e += GCL_PFL_THREADS) {
    uint32_t at = e + threadIdx.x, gap = at < node.number ? node.gaps[at] + 1 : 0, sum = gcl_scan(gap),
             position;
    if (gc_lane() == 31) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) sums[threadIdx.x] = gcl_scan(sums[threadIdx.x]);
    __syncthreads();
    position = carry + (threadIdx.x >= 32 ? sums[threadIdx.x / 32 - 1] : 0) + sum - 1;
    if (at < node.number) {
      if (!node.out)
        node.gaps[at] = position;
      else if (position < node.n)
        node.out[position] |= node.overflows[at] << node.bits;
    }
    __syncthreads();
    if (!threadIdx.x) carry += sums[GCL_PFL_THREADS / 32 - 1];
    __syncthreads();
  }
}

/* The sum over the threads of the block, in all of them. */
static __device__ __forceinline__ uint32_t gcl_pfl_sum(uint32_t x) {
  __shared__ uint32_t sums[GCL_PFL_THREADS / 32];
  x = __reduce_add_sync(GC_ALL, x);
  if (!gc_lane()) sums[threadIdx.x / 32] = x;
  __syncthreads();
  return __reduce_add_sync(GC_ALL, sums[gc_lane()]);
}

/* A block of threads an array, where there are many. b / 8 bytes read and 4 written for a number, 8 read and 4 touched
 * for each of its exceptions. */
static __global__ void __launch_bounds__(GCL_PFL_THREADS) gcl_pfl_node(const gcl_node *nodes) {
  const gcl_node node = nodes[blockIdx.x];
  gcl_pfl_slots(node, 0, UINT32_MAX);
  __syncthreads();
  gcl_pfl_patch(node, 0, UINT32_MAX, 0);
}

/* Few arrays: a block of threads a tile of one, in two steps, before the second of which the sums of all tiles' gaps
 * are known. 4 bytes an exception more than above. Counted: 18 and 17 instructions for 128 values of the list. */
static __global__ void __launch_bounds__(GCL_PFL_THREADS)
    gcl_pfl_tiles(const gcl_node *nodes, uint32_t *sums) {
  const gcl_node node = nodes[blockIdx.y];
  const uint32_t from = blockIdx.x * GCL_PFL_TILE, to = from + GCL_PFL_TILE;
  uint32_t sum = 0, e;
  gcl_pfl_slots(node, from, to);
  if (from >= node.number) return;
  for (e = from + threadIdx.x; e < min(node.number, to); e += GCL_PFL_THREADS) sum += node.gaps[e] + 1;
  sum = gcl_pfl_sum(sum);
  if (!threadIdx.x) sums[(uint64_t)blockIdx.y * gridDim.x + blockIdx.x] = sum;
}

static __global__ void __launch_bounds__(GCL_PFL_THREADS)
    gcl_pfl_exceptions(const gcl_node *nodes, const uint32_t *sums) {
  const gcl_node node = nodes[blockIdx.y];
  const uint32_t from = blockIdx.x * GCL_PFL_TILE;
  uint32_t sum = 0, i;
  if (from >= node.number) return;
  for (i = threadIdx.x; i < blockIdx.x; i += GCL_PFL_THREADS)
    sum += sums[(uint64_t)blockIdx.y * gridDim.x + i];
  gcl_pfl_patch(node, from, from + GCL_PFL_TILE, gcl_pfl_sum(sum));
}

/* Compares what was decoded with the lists as they were given: mismatches, and a sum of all docIDs. */
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_verify(const gcl_list *lists, gcl_where where, uint32_t from, uint32_t to, const uint32_t *out,
               unsigned long long *sums) {
  const uint32_t warps = gridDim.x * GCL_WARPS;
  uint64_t g = from + blockIdx.x * GCL_WARPS + threadIdx.x / 32;
  unsigned long long sum = 0;
  uint32_t bad = 0, i;
  for (; g < to; g += warps) {
    uint32_t list = gcl_list_of(where, (uint32_t)g), block = (uint32_t)g - __ldg(where.start + list), count;
    count = gpuir__block_count(lists[list].s.n, block);
    for (i = gc_lane(); i < count; i += 32) {
      uint32_t x = out[(g - from) * GPUIR__BLOCK + i];
      bad += x != __ldg(lists[list].docs + (uint64_t)block * GPUIR__BLOCK + i);
      sum += x;
    }
  }
  for (i = 16; i; i /= 2) {
    bad += __shfl_xor_sync(GC_ALL, bad, i);
    sum += __shfl_xor_sync(GC_ALL, sum, i);
  }
  if (!gc_lane()) {
    if (bad) atomicAdd(sums, (unsigned long long)bad);
    atomicAdd(sums + 1, sum);
  }
}

/* ---- intersection ----
 *
 * A run takes many queries, each of which has its lists by ascending length. The docIDs of the shortest list are the
 * candidates; a query has its place in arrays of candidates, and every 128 of them are a chunk of work that some
 * warps take, whichever query it belongs to: no loop over queries on the host. A search leaves a bit for each
 * candidate; then the marked ones are moved together, in their order. PARA searches all lists at once (Ao et al.
 * 2011, section 4.1); the methods that merge go round by round, from short to long lists (Ding et al. 2009, 8.1).
 */

enum {
  GCL_BINARY,
  GCL_INTERPOLATION,
  GCL_LR_GLOBAL,
  GCL_LR_LOCAL,
  GCL_HS,      /* 5 of them: 16 to 256 */
  GCL_PMF = 9, /* 5 of them: 0 to 4 levels */
  GCL_MERGEPATH = 14,
  GCL_SKIP,
  GCL_GRIFFIN,
  GCL_ALGORITHM1,
  GCL_METHODS
};

static const char *const gcl_methods[GCL_METHODS] = {
    "binary", "interpolation", "lr-global", "lr-local", "hs16", "hs32",      "hs64", "hs128",   "hs256",
    "pmf0",   "pmf1",          "pmf2",      "pmf3",     "pmf4", "mergepath", "skip", "griffin", "algorithm1"};

#define GCL_LOCAL 5u   /* of gcl_list's tables: what lr-local's segments are */
#define GCL_PART 1024u /* docIDs of both lists in a partition of MergePath */
#define GCL_PART_THREADS 128u

typedef struct gcl_query {
  uint32_t first, k; /* its lists in gcl_batch.lists */
  uint64_t base;     /* its first candidate's place, a multiple of 128 */
  uint32_t chunk, m; /* its first chunk; candidates at the beginning */
} gcl_query;

typedef struct gcl_batch {
  const gcl_list *all;
  const gcl_query *queries;
  const uint32_t *lists;
  const uint32_t *chunk_query; /* whose each chunk is */
  uint32_t *count;             /* candidates of each query that are left */
  uint32_t *cand[2];
  uint32_t *flags;    /* a bit a candidate */
  uint32_t *at;       /* marked ones of the query before each chunk */
  uint32_t *pos[2];   /* a candidate: where a splitter lies in the longer list */
  uint32_t *expanded; /* decoded lists of a round */
  uint32_t nq, nchunks;
  float crossover; /* of list lengths: from here on, skip pointers instead of MergePath */
} gcl_batch;

/* A warp's share: 32 candidates of a query, one a lane. */
typedef struct gcl_share {
  const uint32_t *cand;
  uint64_t base;
  uint32_t q, e, m, first, k; /* e: the lane's candidate; m: how many there are */
} gcl_share;

static __device__ __forceinline__ gcl_share gcl_share_of(const gcl_batch &b, uint32_t chunk, uint32_t sub,
                                                         int side, bool plain) {
  gcl_share s;
  gcl_query q;
  s.q = __ldg(b.chunk_query + chunk);
  q = b.queries[s.q];
  s.base = q.base;
  s.first = q.first;
  s.k = q.k;
  s.m = b.count[s.q];
  s.e = (chunk - q.chunk) * GPUIR__BLOCK + sub * 32 + gc_lane();
  s.cand = plain ? b.all[b.lists[q.first]].docs : b.cand[side] + q.base;
  return s;
}

/* Which query each chunk belongs to, and how many candidates it has at first. Counted: 1.7 instructions for 128. */
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_begin(const gcl_query *queries, uint32_t nq, uint32_t *chunk_query, uint32_t *count) {
  uint32_t q, i;
  for (q = blockIdx.x; q < nq; q += gridDim.x) {
    for (i = threadIdx.x; i * GPUIR__BLOCK < queries[q].m; i += blockDim.x)
      chunk_query[queries[q].chunk + i] = q;
    if (!threadIdx.x) count[q] = queries[q].m;
  }
}

/* The shortest lists to memory: what gcl_decode does. Counted for 128 candidates: bp128 524 instructions, ef 415, lrc
 * 321, hslrc 652; 0.2 to 0.4 byte read a candidate, as many queries share their shortest list, and 1.5 written. */
template <int C>
static __global__ void __launch_bounds__(GCL_THREADS) gcl_seed(const __grid_constant__ gcl_batch b) {
  __shared__ uint4 room[GCL_WARPS][32];
  uint32_t chunk = blockIdx.x * GCL_WARPS + threadIdx.x / 32;
  for (; chunk < b.nchunks; chunk += gridDim.x * GCL_WARPS) {
    const gcl_query q = b.queries[__ldg(b.chunk_query + chunk)];
    const uint32_t block = chunk - q.chunk;
    uint32_t v[4] = {0, 0, 0, 0};
    gcl_block<C, true>(b.all[b.lists[q.first]], block, (uint32_t *)room[threadIdx.x / 32], v);
    ((uint4 *)(b.cand[0] + q.base + (uint64_t)block * GPUIR__BLOCK))[gc_lane()] =
        make_uint4(v[0], v[1], v[2], v[3]);
  }
}

/* The index of x in a list as it is, or one that has another docID, or n. */
template <int HOW>
static __device__ __forceinline__ uint32_t gcl_find(const gcl_list &l, uint32_t x) {
  uint32_t lo = 0, hi = l.s.n, h;
  if (HOW == GCL_INTERPOLATION) return gpuir__interpolate(l.docs, 0, hi, x);
  if (HOW == GCL_LR_GLOBAL) {
    gpuir__lr_range((const gpuir__lr *)l.lines, x, l.s.n, &lo, &hi);
  } else if (HOW == GCL_LR_LOCAL) {
    h = gpuir__hs_bucket(x, l.shift[GCL_LOCAL]);
    if (h >= l.buckets[GCL_LOCAL]) return l.s.n;
    gpuir__lr_range((const gpuir__lr *)l.lines + 1 + h, x, l.s.n, &lo, &hi);
  } else if (HOW >= GCL_HS && HOW < GCL_PMF) {
    h = gpuir__hs_bucket(x, l.shift[HOW - GCL_HS]);
    if (h >= l.buckets[HOW - GCL_HS]) return l.s.n;
    lo = l.first[HOW - GCL_HS][h];
    hi = l.first[HOW - GCL_HS][h + 1];
  }
  return gpuir__lower_bound(l.docs, lo, hi, x);
}

/* PARA: a thread a candidate, which it looks for in all other lists, each a search by memory of its own: log2(n) loads
 * of 32 bytes by binary search, 1 more and log2(16) by segments of 16. Counted in lists that the L2 cache holds, for
 * 128 candidates of queries of two lists: 1,090 instructions by binary search, 1,970 by interpolation, 810 and 690 by
 * lr-global and lr-local, 630 to 780 by segments of 16 to 256; 1.5 bytes a candidate from memory.
 * Measured in batches of 67 M candidates: 42 G candidates/s by binary search, 66 by segments of 16, 70 by lr-local. */
template <int HOW>
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_para_search(const __grid_constant__ gcl_batch b, bool plain) {
  uint64_t w = (uint64_t)blockIdx.x * GCL_WARPS + threadIdx.x / 32;
  for (; w < (uint64_t)b.nchunks * 4; w += (uint64_t)gridDim.x * GCL_WARPS) {
    const gcl_share s = gcl_share_of(b, (uint32_t)(w / 4), (uint32_t)w % 4, 0, plain);
    bool found = s.e < s.m;
    uint32_t x = found ? s.cand[s.e] : 0, i, vote;
    for (i = 1; i < s.k && found; i++) {
      const gcl_list &l = b.all[b.lists[s.first + i]];
      uint32_t at = gcl_find<HOW>(l, x);
      found = at < l.s.n && l.docs[at] == x;
    }
    vote = __ballot_sync(GC_ALL, found);
    if (!gc_lane()) b.flags[w] = vote;
  }
}

/* gpuir__pmf_fan, from a root that is near. */
static __device__ __forceinline__ uint32_t gcl_fan(uint32_t m, unsigned levels) {
  uint32_t fan;
  if (!levels) return m;
  fan = (uint32_t)powf((float)m, 1.0f / (float)(levels + 1));
  fan = fan > 2 ? fan - 1 : 1;
  for (;; fan++) {
    uint64_t power = 1;
    unsigned i;
    for (i = 0; i <= levels && power < m; i++) power *= fan;
    if (power >= m) return fan;
  }
}

/* Parallel Merge Find: splitters of the candidates, `segments` of them (Ding et al. 2009, 7.2). pos[side] gets
 * where they lie in list `round`, or among the last docIDs of its blocks if it is coded; before: the level above,
 * with `fan` as few segments, or none. Counted, on average of the levels: 1,350 instructions for 128 candidates. */
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_pmf_level(const __grid_constant__ gcl_batch b, uint32_t round, unsigned level, unsigned levels,
                  int cand, bool plain, bool coded, int side) {
  uint64_t w = (uint64_t)blockIdx.x * GCL_WARPS + threadIdx.x / 32;
  for (; w < (uint64_t)b.nchunks * 4; w += (uint64_t)gridDim.x * GCL_WARPS) {
    const gcl_share s = gcl_share_of(b, (uint32_t)(w / 4), (uint32_t)w % 4, cand, plain);
    uint64_t segments = 1, above;
    uint32_t fan, i, lo = 0, hi;
    if (round >= s.k || !s.m) continue;
    fan = gcl_fan(s.m, levels);
    for (i = 0; i < level; i++) segments *= fan;
    above = segments / fan;
    if (segments >= s.m || s.e >= segments) continue;
    const gcl_list &l = b.all[b.lists[s.first + round]];
    const uint32_t *list = coded ? l.s.last : l.docs;
    hi = coded ? l.nblocks : l.s.n;
    if (coded && l.nblocks == 1) continue;
    if (level > 1) {
      const uint32_t *p = b.pos[side ^ 1] + s.base;
      lo = p[s.e / fan];
      if (s.e / fan + 1 < above) hi = min(hi, p[s.e / fan + 1] + 1);
    }
    b.pos[side][s.base + s.e] =
        gpuir__lower_bound(list, lo, hi, s.cand[gpuir__pmf_splitter(s.m, (uint32_t)segments, s.e)]);
  }
}

/* The range of a list, or of its directory, in which candidate e of m lies, from the last level of splitters. */
static __device__ __forceinline__ void gcl_pmf_range(const uint32_t *pos, uint32_t e, uint32_t m,
                                                     unsigned levels, uint32_t *lo, uint32_t *hi) {
  uint64_t segments = 1;
  uint32_t fan = gcl_fan(m, levels), i, s;
  if (!levels) return;
  for (i = 0; i < levels && segments * fan < m; i++) segments *= fan;
  if (segments == 1) return;
  s = (uint32_t)(((uint64_t)(e + 1) * segments - 1) / m);
  *lo = pos[s];
  if (s + 1 < segments) *hi = min(*hi, pos[s + 1] + 1);
}

/* How many levels have splitters: the last one's positions lie in pos[levels & 1] if levels start with pos[1]. */
static __device__ __forceinline__ unsigned gcl_pmf_used(uint32_t m, unsigned levels) {
  uint64_t segments = 1;
  unsigned i;
  uint32_t fan = gcl_fan(m, levels);
  for (i = 0; i < levels && segments * fan < m; i++) segments *= fan;
  return i;
}

/* The last step of Parallel Merge Find in lists as they are. Counted: 2,560 instructions for 128 candidates,
 * gcl_fan's root among them; 1.7 bytes a candidate. */
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_pmf_find(const __grid_constant__ gcl_batch b, uint32_t round, unsigned levels, int cand, bool plain) {
  uint64_t w = (uint64_t)blockIdx.x * GCL_WARPS + threadIdx.x / 32;
  for (; w < (uint64_t)b.nchunks * 4; w += (uint64_t)gridDim.x * GCL_WARPS) {
    const gcl_share s = gcl_share_of(b, (uint32_t)(w / 4), (uint32_t)w % 4, cand, plain);
    bool found = s.e < s.m;
    uint32_t vote;
    if (found && round < s.k) {
      const gcl_list &l = b.all[b.lists[s.first + round]];
      uint32_t x = s.cand[s.e], lo = 0, hi = l.s.n, at;
      gcl_pmf_range(b.pos[gcl_pmf_used(s.m, levels) & 1] + s.base, s.e, s.m, levels, &lo, &hi);
      at = gpuir__lower_bound(l.docs, lo, hi, x);
      found = at < l.s.n && l.docs[at] == x;
    }
    vote = __ballot_sync(GC_ALL, found);
    if (!gc_lane()) b.flags[w] = vote;
  }
}

/* Whether a query's round is MergePath's. */
static __device__ __forceinline__ bool gcl_merges(const gcl_batch &b, uint32_t n, uint32_t m) {
  return (float)n < b.crossover * (float)m;
}

/* Coded lists: a warp has a chunk of candidates, finds the blocks that may hold them in the directory, by binary
 * search (skip pointers, Griffin 3.1.2) or within what Parallel Merge Find has left, and decodes just those, one
 * after the other, into shared memory (Ding et al. 2009, 8.1). A block that two chunks need is decoded twice. Per
 * candidate: log2(blocks) loads, 7 shared ones, and its part of a block's decoding: all of it where lists differ
 * much in length. Counted for 128 candidates, in lists of 1,000 to 400,000 of 1.05 M documents: bp128 4,640
 * instructions, ef 3,920, lrc 3,090, hslrc 4,810; 3.9 to 4.6 bytes a candidate. */
template <int C>
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_block_search(const __grid_constant__ gcl_batch b, uint32_t round, int how, unsigned levels, int cand,
                     bool plain) {
  __shared__ uint4 room[GCL_WARPS][2][32];
  uint32_t *sh = (uint32_t *)room[threadIdx.x / 32][0], *docs = (uint32_t *)room[threadIdx.x / 32][1];
  uint32_t chunk = blockIdx.x * GCL_WARPS + threadIdx.x / 32, lane = gc_lane(), i;
  for (; chunk < b.nchunks; chunk += gridDim.x * GCL_WARPS) {
    gcl_share s = gcl_share_of(b, chunk, 0, cand, plain);
    const uint32_t first = s.e - lane;
    uint32_t x[4], block[4], live = 0, found = 0;
    if (first >= s.m) {
      if (lane < 4) b.flags[(uint64_t)chunk * 4 + lane] = 0;
      continue;
    }
    if (round >= s.k) {
      if (lane < 4)
        b.flags[(uint64_t)chunk * 4 + lane] = first + 32 * lane < s.m ? gc_mask(s.m - first - 32 * lane) : 0;
      continue;
    }
    const gcl_list &l = b.all[b.lists[s.first + round]];
    if (how == GCL_GRIFFIN && gcl_merges(b, l.s.n, s.m)) continue;
#pragma unroll
    for (i = 0; i < 4; i++) {
      const uint32_t e = first + 32 * i + lane;
      x[i] = block[i] = 0;
      if (e >= s.m) continue;
      x[i] = s.cand[e];
      if (l.nblocks > 1) {
        uint32_t lo = 0, hi = l.nblocks;
        if (how == GCL_PMF)
          gcl_pmf_range(b.pos[gcl_pmf_used(s.m, levels) & 1] + s.base, e, s.m, levels, &lo, &hi);
        block[i] = gpuir__lower_bound(l.s.last, lo, hi, x[i]);
      }
      if (block[i] < l.nblocks) live |= 1u << i;
    }
    while (__any_sync(GC_ALL, live)) {
      uint32_t least = UINT32_MAX, v[4] = {0, 0, 0, 0}, n;
#pragma unroll
      for (i = 0; i < 4; i++)
        if (live >> i & 1) least = min(least, block[i]);
      least = __reduce_min_sync(GC_ALL, least);
      n = gcl_block<C, true>(l, least, sh, v);
      __syncwarp();
#pragma unroll
      for (i = 0; i < 4; i++)
        if (4 * lane + i >= n) v[i] = UINT32_MAX;
      *(uint4 *)(docs + 4 * lane) = make_uint4(v[0], v[1], v[2], v[3]);
      __syncwarp();
#pragma unroll
      for (i = 0; i < 4; i++)
        if ((live >> i & 1) && block[i] == least) {
          uint32_t at = 0, step;
#pragma unroll
          for (step = 64; step; step /= 2)
            if (docs[at + step - 1] < x[i]) at += step;
          live &= ~(1u << i);
          if (docs[at] == x[i]) found |= 1u << i;
        }
    }
#pragma unroll
    for (i = 0; i < 4; i++) {
      uint32_t vote = __ballot_sync(GC_ALL, found >> i & 1);
      if (!lane) b.flags[(uint64_t)chunk * 4 + i] = vote;
    }
    __syncwarp();
  }
}

/* A round's lists to memory, where MergePath is going to need them; start: blocks of the queries before. Counted for
 * 128 docIDs: bp128 623 instructions, ef 478; 3.3 bytes a docID written. */
template <int C>
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_expand(const __grid_constant__ gcl_batch b, uint32_t round, const uint32_t *start) {
  __shared__ uint4 room[GCL_WARPS][32];
  const uint32_t all = start[b.nq];
  uint32_t g = blockIdx.x * GCL_WARPS + threadIdx.x / 32;
  for (; g < all; g += gridDim.x * GCL_WARPS) {
    uint32_t lo = 0, hi = b.nq, v[4] = {0, 0, 0, 0}, m;
    while (hi - lo > 1) {
      uint32_t mid = (lo + hi) / 2;
      if (__ldg(start + mid) <= g)
        lo = mid;
      else
        hi = mid;
    }
    const gcl_list &l = b.all[b.lists[b.queries[lo].first + round]];
    m = b.count[lo];
    if (!m || !gcl_merges(b, l.s.n, m)) continue;
    gcl_block<C, true>(l, g - __ldg(start + lo), (uint32_t *)room[threadIdx.x / 32], v);
    ((uint4 *)(b.expanded + (uint64_t)g * GPUIR__BLOCK))[gc_lane()] = make_uint4(v[0], v[1], v[2], v[3]);
  }
}

/* MergePath (Griffin, section 3.1.2): a block of threads has a partition of GCL_PART docIDs of both lists, found
 * by two searches along diagonals; in shared memory each thread finds its 8 the same way and merges them. Reads 4
 * bytes a docID of either list once: counted 2.7, as the L2 cache holds some, and 302 instructions for 128 docIDs of
 * both. parts, starts: partitions and blocks of the queries before; starts NULL:
 * lists as they are. */
static __global__ void __launch_bounds__(GCL_PART_THREADS)
    gcl_mergepath(const __grid_constant__ gcl_batch b, uint32_t round, int cand, bool plain,
                  const uint32_t *parts, const uint32_t *starts) {
  __shared__ uint32_t a[GCL_PART + 8], c[GCL_PART + 8], bits[GCL_PART / 32 + 2], split[4];
  __shared__ uint32_t at[GCL_PART_THREADS + 1][2];
  const uint32_t all = parts[b.nq];
  uint32_t part;
  for (part = blockIdx.x; part < all; part += gridDim.x) {
    uint32_t lo = 0, hi = b.nq, m, n, i, j, i1, j1, na, nc;
    uint64_t d;
    while (hi - lo > 1) {
      uint32_t mid = (lo + hi) / 2;
      if (__ldg(parts + mid) <= part)
        lo = mid;
      else
        hi = mid;
    }
    const gcl_query q = b.queries[lo];
    const gcl_list &l = b.all[b.lists[q.first + round]];
    const uint32_t *left = plain ? b.all[b.lists[q.first]].docs : b.cand[cand] + q.base;
    const uint32_t *right = starts ? b.expanded + (uint64_t)starts[lo] * GPUIR__BLOCK : l.docs;
    m = b.count[lo];
    n = l.s.n;
    d = (uint64_t)(part - __ldg(parts + lo)) * GCL_PART;
    if (!m || !gcl_merges(b, n, m) || d >= (uint64_t)m + n) continue;
    if (threadIdx.x < 2)
      gpuir__mergepath_split(left, m, right, n, min(d + threadIdx.x * GCL_PART, (uint64_t)m + n),
                             &split[2 * threadIdx.x], &split[2 * threadIdx.x + 1]);
    if (threadIdx.x < GCL_PART / 32 + 2) bits[threadIdx.x] = 0;
    __syncthreads();
    na = split[2] - split[0];
    nc = split[3] - split[1];
    for (i = threadIdx.x; i < na; i += blockDim.x) a[i] = left[split[0] + i];
    for (i = threadIdx.x; i < nc; i += blockDim.x) c[i] = right[split[1] + i];
    __syncthreads();
    gpuir__mergepath_split(a, na, c, nc, min(threadIdx.x * (GCL_PART / GCL_PART_THREADS), na + nc), &i, &j);
    at[threadIdx.x][0] = i;
    at[threadIdx.x][1] = j;
    if (!threadIdx.x) {
      at[GCL_PART_THREADS][0] = na;
      at[GCL_PART_THREADS][1] = nc;
    }
    __syncthreads();
    i1 = at[threadIdx.x + 1][0];
    j1 = at[threadIdx.x + 1][1];
    while (i < i1 && j < j1) {
      uint32_t x = a[i], y = c[j];
      if (x == y) {
        uint32_t bit = (split[0] & 31) + i;
        atomicOr(&bits[bit / 32], 1u << (bit & 31));
      }
      i += x <= y;
      j += y <= x;
    }
    __syncthreads();
    if (threadIdx.x < GCL_PART / 32 + 2 && bits[threadIdx.x])
      atomicOr(b.flags + (q.base + split[0]) / 32 + threadIdx.x, bits[threadIdx.x]);
    __syncthreads();
  }
}

/* Queries that have no list of this round keep what they have; clears the others' flags for MergePath. */
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_clear(const __grid_constant__ gcl_batch b, uint32_t round) {
  uint64_t w = (uint64_t)blockIdx.x * GCL_THREADS + threadIdx.x;
  for (; w < (uint64_t)b.nchunks * 4; w += (uint64_t)gridDim.x * GCL_THREADS) {
    const uint32_t q = __ldg(b.chunk_query + w / 4), m = b.count[q];
    const uint32_t first = (uint32_t)(w / 4 - b.queries[q].chunk) * GPUIR__BLOCK + (uint32_t)w % 4 * 32;
    b.flags[w] = round < b.queries[q].k || first >= m ? 0 : gc_mask(m - first);
  }
}

/* Where each chunk's marked candidates go: a block of threads a query. Counted: 6.3 instructions for 128 candidates. */
static __global__ void __launch_bounds__(GCL_THREADS) gcl_offsets(const __grid_constant__ gcl_batch b) {
  __shared__ uint32_t sums[GCL_WARPS], carry;
  uint32_t q, i;
  for (q = blockIdx.x; q < b.nq; q += gridDim.x) {
    const gcl_query query = b.queries[q];
    const uint32_t chunks = (query.m + GPUIR__BLOCK - 1) / GPUIR__BLOCK;
    if (!threadIdx.x) carry = 0;
    __syncthreads();
    for (i = 0; i < chunks; i += blockDim.x) {
      uint32_t n = 0, sum, before;
      if (i + threadIdx.x < chunks) {
        uint4 f = ((const uint4 *)b.flags)[query.chunk + i + threadIdx.x];
        n = __popc(f.x) + __popc(f.y) + __popc(f.z) + __popc(f.w);
      }
      sum = gcl_scan(n);
      if (gc_lane() == 31) sums[threadIdx.x / 32] = sum;
      __syncthreads();
      if (threadIdx.x < 32) {
        uint32_t x = gcl_scan(threadIdx.x < GCL_WARPS ? sums[threadIdx.x] : 0);
        if (threadIdx.x < GCL_WARPS) sums[threadIdx.x] = x;
      }
      __syncthreads();
      before = carry + (threadIdx.x >= 32 ? sums[threadIdx.x / 32 - 1] : 0) + sum - n;
      if (i + threadIdx.x < chunks) b.at[query.chunk + i + threadIdx.x] = before;
      __syncthreads();
      if (!threadIdx.x) carry += sums[GCL_WARPS - 1];
      __syncthreads();
    }
    if (!threadIdx.x) b.count[q] = carry;
    __syncthreads();
  }
}

/* Moves the marked candidates together. Counted: 343 instructions for 128 candidates, 2.5 bytes a candidate. */
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_gather(const __grid_constant__ gcl_batch b, int cand, bool plain, int to) {
  uint64_t w = (uint64_t)blockIdx.x * GCL_WARPS + threadIdx.x / 32;
  for (; w < (uint64_t)b.nchunks * 4; w += (uint64_t)gridDim.x * GCL_WARPS) {
    const uint32_t flags = b.flags[w];
    uint32_t at, i;
    if (!flags) continue;
    const gcl_share s = gcl_share_of(b, (uint32_t)(w / 4), (uint32_t)w % 4, cand, plain);
    at = b.at[w / 4];
    for (i = 0; i < w % 4; i++) at += __popc(b.flags[w / 4 * 4 + i]);
    if (flags >> gc_lane() & 1)
      b.cand[to][s.base + at + __popc(flags & ((1u << gc_lane()) - 1))] = s.cand[s.e];
  }
}

/* ---- Algorithm 1 of Ao et al. 2011: lists coded by linear regression, searched by element ---- */

/* A segment that has been found. */
typedef struct gcl_segment {
  gpuir__line line;
  gpuir__para para;
  uint32_t base, count; /* base: the line's argument of value 0 */
} gcl_segment;

static __device__ __forceinline__ uint32_t gcl_element(const gcl_segment &g, uint32_t i) {
  return gpuir__para_value(&g.para, i) + gpuir__line_at(&g.line, g.base + i);
}

/* Where x may lie in a segment with a line of its own: deviations are not negative and have at most b + hb bits, so the
 * line is at most x and more than x less 2^(b + hb) there. That is the safe range, and exact. */
static __device__ __forceinline__ void gcl_contract(const gcl_segment &g, uint32_t x, uint32_t *lo,
                                                    uint32_t *hi) {
  const unsigned w = g.para.b + (g.para.en ? g.para.hb : 0);
  int64_t y, z;
  if (!g.line.slope || *hi - *lo < 8 || g.line.shift > 16) return;
  y = (int64_t)x - (int64_t)g.line.start;
  if (gpuir__para_value(&g.para, 0) + gpuir__line_at(&g.line, g.base) < g.line.start && !g.base)
    y += (int64_t)1 << 32; /* its start is negative */
  if (y < 0) {
    *hi = *lo;
    return;
  }
  z = y - (((int64_t)1 << w) - 1);
  y = (int64_t)(((uint64_t)(y + 1) << g.line.shift) - 1) / g.line.slope + 1;
  if (y < (int64_t)*hi) *hi = (uint32_t)y;
  if (z > 0) {
    z = (int64_t)((((uint64_t)z << g.line.shift) + g.line.slope - 1) / g.line.slope);
    *lo = z < (int64_t)*hi ? gpuir__max32(*lo, (uint32_t)z) : *hi;
  }
}

static __device__ __forceinline__ bool gcl_in_segment(const gcl_segment &g, uint32_t x, uint32_t lo,
                                                      uint32_t hi, bool own) {
  if (own) gcl_contract(g, x, &lo, &hi);
  while (lo < hi) {
    uint32_t mid = (lo + hi) / 2, y = gcl_element(g, mid);
    if (y == x) return true;
    if (y < x)
      lo = mid + 1;
    else
      hi = mid;
  }
  return false;
}

/* The segment that has value i of the list, and what is the segment's own index of it. */
template <int C>
static __device__ __forceinline__ uint32_t gcl_locate(const gcl_list &l, uint32_t i, gcl_segment *g) {
  const gpuir__stream &s = l.s;
  if (C == GCL_HSLRC && s.offset) {
    gpuir__hslrc_list list;
    uint32_t h, first;
    (void)gpuir__hslrc_find(&s, &list);
    h = gpuir__hslrc_bucket(&list, s.offset[i / GPUIR__BLOCK], i);
    first = gpuir__hslrc_first(&list, h);
    g->count = gpuir__hslrc_first(&list, h + 1) - first;
    gpuir__hslrc_segment(&list, h, g->count, i - first, &g->line, &g->para);
    g->base = (i - first) & ~(GPUIR__PARA_MOST - 1);
    g->count = min(g->count - g->base, GPUIR__PARA_MOST);
    return i - first - g->base;
  } else {
    const int kind = C == GCL_LRC ? GPUIR__LRC : C == GCL_LRCSEG ? GPUIR__LRCSEG : GPUIR__SEGLRC;
    uint64_t at = s.offset ? gpuir__min64(s.offset[i / GPUIR__BLOCK], s.len) : 0;
    gpuir__lrc_list list;
    uint32_t start;
    (void)gpuir__lrc_find(&s, kind, &list);
    start = (i & ~(GPUIR__BLOCK - 1)) & ~(list.size - 1); /* of the segment that the block begins in */
    for (;;) {
      g->count = min(list.size, s.n - start);
      at = gpuir__lrc_segment(&s, kind, &list, at, start, g->count, &g->line, &g->base, &g->para);
      if (i - start < g->count) return i - start;
      start += g->count;
    }
  }
}

/* Whether a list holds x. By hash segmentation: the bucket is known from x. Otherwise: the safe range of the
 * list's line, a search for the block in it (the auxiliary list H), and in the block's segment by element. */
template <int C>
static __device__ __forceinline__ bool gcl_holds(const gcl_list &l, uint32_t x) {
  const gpuir__stream &s = l.s;
  gcl_segment g;
  uint32_t lo, hi, block, at;
  if (C == GCL_HSLRC && s.offset) {
    gpuir__hslrc_list list;
    uint32_t h, first, count, k;
    (void)gpuir__hslrc_find(&s, &list);
    h = gpuir__hs_bucket(x, list.shift);
    if (h >= list.buckets) return false;
    first = gpuir__hslrc_first(&list, h);
    count = gpuir__hslrc_first(&list, h + 1) - first;
    if (!count) return false;
    lo = 0;
    hi = (count - 1) / GPUIR__PARA_MOST + 1;
    while (hi - lo > 1) { /* the last segment that does not begin behind x */
      k = (lo + hi) / 2;
      gpuir__hslrc_segment(&list, h, count, k * GPUIR__PARA_MOST, &g.line, &g.para);
      g.base = k * GPUIR__PARA_MOST;
      if (gcl_element(g, 0) <= x)
        lo = k;
      else
        hi = k;
    }
    gpuir__hslrc_segment(&list, h, count, lo * GPUIR__PARA_MOST, &g.line, &g.para);
    g.base = lo * GPUIR__PARA_MOST;
    return gcl_in_segment(g, x, 0, min(count - g.base, GPUIR__PARA_MOST), !g.base);
  }
  gpuir__lr_range((const gpuir__lr *)l.lines, x, s.n, &lo, &hi);
  if (lo >= hi) return false;
  block = lo / GPUIR__BLOCK;
  if (s.last) {
    block = gpuir__lower_bound(s.last, block, (hi - 1) / GPUIR__BLOCK + 1, x);
    if (block >= l.nblocks) return false;
  }
  lo = gpuir__max32(lo, block * GPUIR__BLOCK);
  hi = min(hi, block * GPUIR__BLOCK + gpuir__block_count(s.n, block));
  while (lo < hi) { /* once, unless segments are shorter than a block */
    uint32_t end;
    at = gcl_locate<C>(l, lo, &g);
    end = min(g.count, at + hi - lo);
    if (end - at == hi - lo || gcl_element(g, end - 1) >= x)
      return gcl_in_segment(g, x, at, end, C == GCL_SEGLRC);
    lo += end - at;
  }
  return false;
}

/* A thread a docID of the shortest list: recovers it alone, looks for it in the other lists as they are coded. Counted
 * for 128 candidates: lrc 3,510 instructions, hslrc 5,480. */
template <int C>
static __global__ void __launch_bounds__(GCL_THREADS) gcl_algorithm1(const __grid_constant__ gcl_batch b) {
  uint64_t w = (uint64_t)blockIdx.x * GCL_WARPS + threadIdx.x / 32;
  for (; w < (uint64_t)b.nchunks * 4; w += (uint64_t)gridDim.x * GCL_WARPS) {
    const gcl_share s = gcl_share_of(b, (uint32_t)(w / 4), (uint32_t)w % 4, 0, false);
    bool found = s.e < s.m;
    uint32_t x = 0, i, vote;
    if (found) {
      gcl_segment g;
      uint32_t at = gcl_locate<C>(b.all[b.lists[s.first]], s.e, &g);
      x = gcl_element(g, at);
      b.cand[0][s.base + s.e] = x;
    }
    for (i = 1; i < s.k && found; i++) found = gcl_holds<C>(b.all[b.lists[s.first + i]], x);
    vote = __ballot_sync(GC_ALL, found);
    if (!gc_lane()) b.flags[w] = vote;
  }
}

/* ---- ranking: the k greatest of a query's keys, a block of threads a query ----
 *
 * A key is score << 32 | ~docID: keys differ, and their descending order is that of hits. */

#define GCL_TOPK_THREADS 512u
#define GCL_GROUP 512u  /* of the tree (Ding et al. 2009, 8.2) */
#define GCL_SLOTS 1024u /* buckets of a round of bucket selection */

enum { GCL_TREE, GCL_BUCKET, GCL_RADIX_SELECT, GCL_RADIX_SORT, GCL_PARTIAL_SORT, GCL_RANKINGS };

static const char *const gcl_rankings[GCL_RANKINGS] = {"tree", "bucket-select", "radix-select", "radix-sort",
                                                       "partial-sort"};

typedef struct gcl_topk {
  const unsigned long long *keys;
  const uint32_t *start; /* of each query, and one more unless `count` says how many there are */
  const uint32_t *count;
  unsigned long long *spare, *out; /* spare: as many as keys; out: k a query */
  uint32_t nq, k, size;            /* size: k rounded up to a power of two */
} gcl_topk;

static __device__ __forceinline__ unsigned long long gcl_max(unsigned long long a, unsigned long long b) {
  return a > b ? a : b;
}

/* The greatest over a block of threads; all get it. 10 shuffles, 2 barriers. */
static __device__ unsigned long long gcl_block_max(unsigned long long x) {
  __shared__ unsigned long long part[GCL_TOPK_THREADS / 32];
  uint32_t i;
#pragma unroll
  for (i = 16; i; i /= 2) x = gcl_max(x, __shfl_xor_sync(GC_ALL, x, i));
  if (!gc_lane()) part[threadIdx.x / 32] = x;
  __syncthreads();
  x = part[gc_lane() & (GCL_TOPK_THREADS / 32 - 1)];
#pragma unroll
  for (i = GCL_TOPK_THREADS / 64; i; i /= 2) x = gcl_max(x, __shfl_xor_sync(GC_ALL, x, i));
  __syncthreads();
  return x;
}

/* The tree of groups of 512 (Ding et al. 2009, section 8.2): each has its greatest key; the greatest of all is
 * taken, and the groups that it came from get their next one. 8 bytes a key are read once; each of the k steps is
 * 2 to 4 maxima over 512 keys. What was taken needs no mark: keys that are taken are those not below the last one.
 * Counted, the best 100 of 20,000: 8.0 bytes a key, 1,940 instructions for 128. */
static __global__ void __launch_bounds__(GCL_TOPK_THREADS) gcl_tree(const gcl_topk t) {
  uint32_t q, i;
  for (q = blockIdx.x; q < t.nq; q += gridDim.x) {
    const uint32_t from = t.start[q], n = t.count ? t.count[q] : t.start[q + 1] - from, k = min(t.k, n);
    const uint32_t n1 = (n + GCL_GROUP - 1) / GCL_GROUP, n2 = (n1 + GCL_GROUP - 1) / GCL_GROUP;
    const unsigned long long *keys = t.keys + from;
    unsigned long long *one = t.spare + from, *two = one + n1,
                       own; /* n1 + n2 <= n + 1, or there is no second level */
    for (i = threadIdx.x / 32; i < n1; i += GCL_TOPK_THREADS / 32) {
      unsigned long long x = 0;
      uint32_t j, end = min(n, (i + 1) * GCL_GROUP);
      for (j = i * GCL_GROUP + gc_lane(); j < end; j += 32) x = gcl_max(x, keys[j]);
#pragma unroll
      for (j = 16; j; j /= 2) x = gcl_max(x, __shfl_xor_sync(GC_ALL, x, j));
      if (!gc_lane()) one[i] = x;
    }
    __syncthreads();
    if (n1 > GCL_GROUP) {
      for (i = threadIdx.x / 32; i < n2; i += GCL_TOPK_THREADS / 32) {
        unsigned long long x = 0;
        uint32_t j, end = min(n1, (i + 1) * GCL_GROUP);
        for (j = i * GCL_GROUP + gc_lane(); j < end; j += 32) x = gcl_max(x, one[j]);
#pragma unroll
        for (j = 16; j; j /= 2) x = gcl_max(x, __shfl_xor_sync(GC_ALL, x, j));
        if (!gc_lane()) two[i] = x;
      }
      __syncthreads();
    }
    {
      const unsigned long long *top =
          n1 > GCL_GROUP ? two : one; /* each thread has one, or every 512th, of the top */
      const uint32_t ntop = n1 > GCL_GROUP ? n2 : n1;
      __shared__ uint32_t owner;
      unsigned long long best;
      for (own = 0, i = threadIdx.x; i < ntop; i += GCL_TOPK_THREADS) own = gcl_max(own, top[i]);
      for (i = 0; i < k; i++) {
        uint32_t group, j;
        unsigned long long x = 0;
        best = gcl_block_max(own);
        if (own == best) {
          for (j = threadIdx.x; j < ntop && top[j] != best; j += GCL_TOPK_THREADS) {}
          owner = j;
          t.out[(uint64_t)q * t.k + i] = best;
        }
        __syncthreads();
        group = owner;
        __syncthreads();
        if (n1 > GCL_GROUP) { /* the group of groups: which one has it */
          j = group * GCL_GROUP + threadIdx.x;
          if (j < n1 && one[j] == best) owner = j;
          __syncthreads();
          j = owner * GCL_GROUP + threadIdx.x;
          if (j < n && keys[j] < best) x = keys[j];
          x = gcl_block_max(x);
          if (!threadIdx.x) one[owner] = x;
          __syncthreads();
          j = group * GCL_GROUP + threadIdx.x;
          x = gcl_block_max(j < n1 ? one[j] : 0);
          if (!threadIdx.x) two[group] = x;
        } else {
          j = group * GCL_GROUP + threadIdx.x;
          if (j < n && keys[j] < best) x = keys[j];
          x = gcl_block_max(x);
          if (!threadIdx.x) one[group] = x;
        }
        __syncthreads();
        if (own == best)
          for (own = 0, j = threadIdx.x; j < ntop; j += GCL_TOPK_THREADS) own = gcl_max(own, top[j]);
        __syncthreads();
      }
    }
  }
}

typedef struct gcl_keys {
  const unsigned long long *keys;
  __device__ unsigned long long operator()(uint32_t i) const { return keys[i]; }
} gcl_keys;

/* A key that exactly k of n keys are not below, by buckets of equal width over what is left of their range, each a
 * power of two wide (bucket selection, Griffin 3.1.3). 8 bytes a key for each round; a round leaves a 512th or
 * less of the range. */
static __device__ unsigned long long gcl_bucket_select(const unsigned long long *keys, uint32_t n, uint32_t k,
                                                       uint32_t *hist) {
  __shared__ unsigned long long range[2];
  __shared__ uint32_t found[3];
  unsigned long long least = ~0ull, most = 0;
  uint32_t i, remain = k;
  for (i = threadIdx.x; i < n; i += blockDim.x) {
    least = keys[i] < least ? keys[i] : least;
    most = gcl_max(most, keys[i]);
  }
  most = gcl_block_max(most);
  least = ~gcl_block_max(~least);
  for (;;) {
    const unsigned long long span = most - least;
    const uint32_t shift = span >> 10 ? 54 - __clzll((long long)span) : 0; /* span >> shift < GCL_SLOTS */
    for (i = threadIdx.x; i < GCL_SLOTS; i += blockDim.x) hist[i] = 0;
    __syncthreads();
    for (i = threadIdx.x; i < n; i += blockDim.x)
      if (keys[i] >= least && keys[i] <= most) atomicAdd(&hist[(keys[i] - least) >> shift], 1);
    __syncthreads();
    if (threadIdx.x < 32) { /* lane 0 has the greatest buckets */
      uint32_t sum = 0, scan, own = GCL_SLOTS / 32;
      for (i = 0; i < own; i++) sum += hist[GCL_SLOTS - 1 - (threadIdx.x * own + i)];
      scan = gcl_scan(sum) - sum;
      if (scan < remain && scan + sum >= remain)
        for (i = 0; i < own; i++) {
          uint32_t slot = GCL_SLOTS - 1 - (threadIdx.x * own + i);
          if (scan < remain && scan + hist[slot] >= remain) {
            found[0] = scan;
            found[1] = hist[slot];
            range[0] = least + ((unsigned long long)slot << shift);
            range[1] = (most - range[0]) >> shift ? range[0] + ((1ull << shift) - 1) : most; /* no overflow */
          }
          scan += hist[slot];
        }
    }
    __syncthreads();
    least = range[0];
    most = range[1];
    remain -= found[0];
    i = found[1];
    __syncthreads();
    if (i == remain || !shift) return least;
  }
}

/* Selection, then a bitonic sort of what was selected, in shared memory. Counted, the best 100 of 20,000: 8.0 bytes a
 * key, though it is read several times, and 370 to 400 instructions for 128. */
template <int HOW>
static __global__ void __launch_bounds__(GCL_TOPK_THREADS) gcl_selection(const gcl_topk t) {
  extern __shared__ unsigned long long gcl_best[];
  __shared__ uint32_t hist[GCL_SLOTS], taken;
  uint32_t q, i, step, half;
  for (q = blockIdx.x; q < t.nq; q += gridDim.x) {
    const uint32_t from = t.start[q], n = t.count ? t.count[q] : t.start[q + 1] - from, k = min(t.k, n);
    const unsigned long long *keys = t.keys + from;
    unsigned long long least = 0;
    if (!n) continue;
    if (k < n) {
      gcl_keys all = {keys};
      least = HOW == GCL_BUCKET ? gcl_bucket_select(keys, n, k, hist) : gc_select(all, n, k, k, hist);
    }
    if (!threadIdx.x) taken = 0;
    for (i = threadIdx.x; i < t.size; i += blockDim.x) gcl_best[i] = 0;
    __syncthreads();
    for (i = threadIdx.x; i < n; i += blockDim.x)
      if (keys[i] >= least) {
        uint32_t at = atomicAdd(&taken, 1);
        if (at < t.size) gcl_best[at] = keys[i];
      }
    __syncthreads();
    for (step = 2; step <= t.size; step *= 2) /* descending */
      for (half = step / 2; half; half /= 2) {
        for (i = threadIdx.x; i < t.size; i += blockDim.x) {
          uint32_t o = i ^ half;
          if (o > i) {
            unsigned long long x = gcl_best[i], y = gcl_best[o];
            if ((x < y) == !(i & step)) {
              gcl_best[i] = y;
              gcl_best[o] = x;
            }
          }
        }
        __syncthreads();
      }
    for (i = threadIdx.x; i < k; i += blockDim.x) t.out[(uint64_t)q * t.k + i] = gcl_best[i];
    __syncthreads();
  }
}

/* All keys sorted, 8 bits a pass from the lowest on, of which k are kept (radix sort, Griffin 3.1.3). 8 passes,
 * each reading a key twice and writing it once: 192 bytes a key, of which 8.7 reach memory where the L2 cache holds the
 * keys. A tile of keys is ranked by matching digits within warps. Counted: 3,580 instructions for 128 keys. */
static __global__ void __launch_bounds__(GCL_TOPK_THREADS)
    gcl_radix_sort(const gcl_topk t, unsigned long long *copy) {
  __shared__ uint32_t base[256], counts[GCL_TOPK_THREADS / 32][256];
  uint32_t q, i, w;
  for (q = blockIdx.x; q < t.nq; q += gridDim.x) {
    const uint32_t from = t.start[q], n = t.count ? t.count[q] : t.start[q + 1] - from, k = min(t.k, n),
                   warp = threadIdx.x / 32;
    const unsigned long long *in = t.keys + from;
    unsigned long long *side[2] = {t.spare + from, copy + from};
    uint32_t pass;
    for (pass = 0; pass < 8; pass++) {
      unsigned long long *to = side[pass & 1];
      for (i = threadIdx.x; i < 256; i += blockDim.x) base[i] = 0;
      __syncthreads();
      for (i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&base[255 - (in[i] >> (8 * pass) & 255)], 1);
      __syncthreads();
      if (threadIdx.x < 32) { /* to how many keys go before each digit */
        uint32_t sum = 0, before;
        for (i = 0; i < 8; i++) sum += base[threadIdx.x * 8 + i];
        before = gcl_scan(sum) - sum;
        for (i = 0; i < 8; i++) {
          uint32_t here = base[threadIdx.x * 8 + i];
          base[threadIdx.x * 8 + i] = before;
          before += here;
        }
      }
      __syncthreads(); /* also where there is no key, before the next pass clears */
      for (i = 0; i < n; i += blockDim.x) {
        const uint32_t at = i + threadIdx.x,
                       digit = at < n ? 255 - (uint32_t)(in[at] >> (8 * pass) & 255) : 256;
        uint32_t same = __match_any_sync(GC_ALL, digit), rank = __popc(same & ((1u << gc_lane()) - 1));
        for (w = gc_lane(); w < 256; w += 32) counts[warp][w] = 0;
        __syncwarp();
        if (digit < 256 && !rank) counts[warp][digit] = __popc(same);
        __syncthreads();
        if (threadIdx.x < 256) {
          uint32_t sum = base[threadIdx.x];
          for (w = 0; w < GCL_TOPK_THREADS / 32; w++) {
            uint32_t here = counts[w][threadIdx.x];
            counts[w][threadIdx.x] = sum;
            sum += here;
          }
          base[threadIdx.x] = sum;
        }
        __syncthreads();
        if (digit < 256) to[counts[warp][digit] + rank] = in[at];
        __syncthreads();
      }
      in = to;
    }
    for (i = threadIdx.x; i < k; i += blockDim.x) t.out[(uint64_t)q * t.k + i] = in[i];
    __syncthreads();
  }
}

/* ---- qs as in chapter 5 of Li's thesis, a list at a time: the baselines of what gcl_qs does ----
 *
 * "naive": the upper bits as one number each, a prefix sum over all of them, a gather. "steps": bits are counted
 * in words of 32, the prefix sum is over these counts, and each thread gathers from one word. Both put the lower
 * bits to it in a last step. (Here ones end numbers; in the thesis zeros do.) T:
 * threads of a block, which the thesis varies. */

#define GCL_TILE 2048u /* numbers of a prefix sum that a block of threads takes */

typedef struct gcl_qs_work {
  const gcl_list *list;
  uint32_t *in, *out, *sums, *upper, *docs;
  bool words; /* a number of `in` is a word, not a bit */
} gcl_qs_work;

/* Numbers of the prefix sum. */
static __device__ __forceinline__ uint32_t gcl_qs_open(const gcl_qs_work &w, gpuir__halves *h) {
  (void)gpuir__halves_find(&w.list->s, GPUIR__QS_LOG, 0, h);
  return (uint32_t)(w.words ? (h->unary.bytes + 3) / 4 : h->unary.bytes * 8);
}

/* 32 upper bits; those behind the end are 0. */
static __device__ __forceinline__ uint32_t gcl_qs_word(const gpuir__halves &h, uint32_t i) {
  const uint64_t left = h.unary.bytes - (uint64_t)i * 4;
  return gpuir__load32(h.unary.bits + (uint64_t)i * 4) & (left < 4 ? (1u << (8 * (uint32_t)left)) - 1 : ~0u);
}

/* Bits that do not end a number: 1/8 byte read and 4 written a bit, or 4 and 4 a word. */
template <unsigned T>
static __global__ void __launch_bounds__(T) gcl_qs_count(const gcl_qs_work w) {
  gpuir__halves h;
  const uint32_t n = gcl_qs_open(w, &h);
  uint32_t i = blockIdx.x * T + threadIdx.x;
  for (; i < n; i += gridDim.x * T)
    w.in[i] = w.words ? 32 - __popc(gcl_qs_word(h, i)) : ~gcl_qs_word(h, i / 32) >> (i & 31) & 1;
}

/* The inclusive sum over a block of threads. */
static __device__ __forceinline__ uint32_t gcl_block_scan(uint32_t x) {
  __shared__ uint32_t part[32];
  uint32_t i, before = 0;
  x = gcl_scan(x);
  if (gc_lane() == 31) part[threadIdx.x / 32] = x;
  __syncthreads();
  for (i = 0; i < threadIdx.x / 32; i++) before += part[i];
  __syncthreads();
  return x + before;
}

template <unsigned T>
static __global__ void __launch_bounds__(T) gcl_qs_tiles(const gcl_qs_work w) {
  gpuir__halves h;
  const uint32_t n = gcl_qs_open(w, &h), tiles = (n + GCL_TILE - 1) / GCL_TILE;
  uint32_t t, i;
  for (t = blockIdx.x; t < tiles; t += gridDim.x) {
    uint32_t sum = 0;
    for (i = t * GCL_TILE + threadIdx.x; i < min(n, (t + 1) * GCL_TILE); i += T) sum += w.in[i];
    sum = gcl_block_scan(sum);
    if (threadIdx.x == T - 1) w.sums[t] = sum;
  }
}

template <unsigned T>
static __global__ void __launch_bounds__(T) gcl_qs_sums(const gcl_qs_work w) {
  __shared__ uint32_t carry;
  gpuir__halves h;
  const uint32_t n = gcl_qs_open(w, &h), tiles = (n + GCL_TILE - 1) / GCL_TILE;
  uint32_t t;
  if (!threadIdx.x) carry = 0;
  __syncthreads();
  for (t = 0; t < tiles; t += T) {
    uint32_t x = t + threadIdx.x < tiles ? w.sums[t + threadIdx.x] : 0, sum = gcl_block_scan(x) + carry;
    if (t + threadIdx.x < tiles) w.sums[t + threadIdx.x] = sum - x;
    __syncthreads();
    if (threadIdx.x == T - 1) carry = sum;
    __syncthreads();
  }
}

template <unsigned T>
static __global__ void __launch_bounds__(T) gcl_qs_scan(const gcl_qs_work w) {
  gpuir__halves h;
  const uint32_t n = gcl_qs_open(w, &h), tiles = (n + GCL_TILE - 1) / GCL_TILE, each = GCL_TILE / T;
  uint32_t t, i;
  for (t = blockIdx.x; t < tiles; t += gridDim.x) {
    const uint32_t first = t * GCL_TILE + threadIdx.x * each;
    uint32_t x[each], sum = 0;
    for (i = 0; i < each; i++) sum += x[i] = first + i < n ? w.in[first + i] : 0;
    sum = gcl_block_scan(sum) - sum + w.sums[t];
    for (i = 0; i < each; i++) {
      if (first + i < n) w.out[first + i] = sum;
      sum += x[i];
    }
  }
}

/* To each docID its upper part. */
template <unsigned T>
static __global__ void __launch_bounds__(T) gcl_qs_gather(const gcl_qs_work w) {
  gpuir__halves h;
  const uint32_t n = gcl_qs_open(w, &h), most = w.list->s.n;
  uint32_t i = blockIdx.x * T + threadIdx.x;
  for (; i < n; i += gridDim.x * T) {
    uint32_t upper = w.out[i], at;
    if (!w.words) {
      at = i - upper;
      if (!w.in[i] && at < most) w.upper[at] = upper;
    } else {
      uint32_t bits = gcl_qs_word(h, i), k;
      at = 32 * i - upper;
      for (; bits; bits &= bits - 1, at++) {
        k = __ffs((int)bits) - 1;
        if (at < most) w.upper[at] = 32 * i + k - at;
      }
    }
  }
}

template <unsigned T>
static __global__ void __launch_bounds__(T) gcl_qs_combine(const gcl_qs_work w) {
  gpuir__halves h;
  uint32_t i = blockIdx.x * T + threadIdx.x;
  (void)gcl_qs_open(w, &h);
  for (; i < w.list->s.n; i += gridDim.x * T)
    w.docs[i] = (w.upper[i] << h.b) + gpuir__packed_value(h.low, h.b, i);
}

/* ---- the host's side ---- */

#define GCL_PFL_FEW 64u /* arrays at most that are taken in tiles */
#define GCL_GROUPS 6u   /* of arrays of exceptions: coded to depth 0 to 4; the lists themselves */

/* The clock of the steps of a search: events, and what ended at each. */
#define GCL_MARKS 256u
typedef struct gcl_clock {
  cudaEvent_t event[GCL_MARKS];
  uint8_t step[GCL_MARKS]; /* GPUIR_CUDA_LAB_; of the first one nothing */
  unsigned n;
} gcl_clock;

struct gpuir_cuda_lab {
  gpuir_allocator a;
  int device, processors;
  unsigned codec;     /* GCL_ */
  size_t nlists, all; /* in one copy; in all */
  uint64_t room;
  uint32_t *n,
      *start;      /* of each list of one copy: its values; of each of all: the blocks before, and one more */
  uint64_t *bytes; /* coded, of each list of one copy */
  uint32_t *node_start[GCL_GROUPS]; /* of each list of all: the arrays before, and one more */
  uint32_t node_tiles[GCL_GROUPS];  /* of the largest array */
  uint32_t *node_sums;              /* device: of GCL_PFL_FEW arrays' tiles */
  size_t host_size;
  void *host;
  cudaStream_t stream;
  cudaEvent_t before, after;
  void *memory[96];
  unsigned nmemory;
  uint8_t *aux; /* where the next piece of the slab of auxiliary structures goes */
  uint64_t aux_left;
  const gcl_list *lists; /* on the device, from here on */
  gcl_where where;
  gcl_node *nodes[GCL_GROUPS];
  uint32_t *out;
  unsigned long long *sums;
  size_t queries, terms; /* of a run at most */
  gcl_batch batch;
  uint32_t rounds; /* at most */
  uint8_t *plan;   /* of a run, pinned; what it is copied to */
  uint8_t *plan_device;
  size_t plan_size;
  gcl_clock *clock; /* NULL: no steps are told apart */
};

/* A step ends here, as far as the clock has room. */
static void gcl_mark(gpuir_cuda_lab *lab, unsigned step) {
  gcl_clock *c = lab->clock;
  if (!c || c->n == GCL_MARKS) return;
  c->step[c->n] = (uint8_t)step;
  (void)cudaEventRecord(c->event[c->n++], lab->stream);
}

static int gcl_device_alloc(gpuir_cuda_lab *lab, uint64_t n, void **p, gpuir_error *err) {
  if (lab->nmemory == sizeof lab->memory / sizeof lab->memory[0])
    return gpuir__fail(err, GPUIR_E_BACKEND, 0, "CUDA: too many pieces of memory");
  GC_TRY(cudaMalloc(p, n ? n : 1), "allocating device memory");
  lab->memory[lab->nmemory++] = *p;
  return GPUIR_OK;
}

static int gcl_device_copy(gpuir_cuda_lab *lab, const void *from, uint64_t n, void **p, gpuir_error *err) {
  int status = gcl_device_alloc(lab, n, p, err);
  if (status) return status;
  GC_TRY(cudaMemcpy(*p, from, n, cudaMemcpyHostToDevice), "uploading lists");
  return GPUIR_OK;
}

/* Room in a buffer, at a multiple of 16; returns where it begins, or SIZE_MAX without memory. */
static size_t gcl_room(const gpuir_allocator *a, gpuir__buf *buf, size_t n) {
  size_t at = (buf->len + 15) & ~(size_t)15;
  if (!gpuir__buf_room(a, buf, at - buf->len + n + 1)) return SIZE_MAX;
  memset(buf->data + buf->len, 0, at - buf->len + n);
  buf->len = at + n;
  return at;
}

/* What a copy of the lists is made of: one image of the bytes, and tables whose addresses are places in it. */
typedef struct gcl_image {
  gpuir__buf bytes, lists, nodes[GCL_GROUPS];
  uint64_t scratch; /* numbers of exceptions */
} gcl_image;

static inline const uint8_t *gcl_place(size_t at) { return (const uint8_t *)(uintptr_t)at; }

/* An array of exceptions, and first those that it has itself; *size: its bytes. */
static int gcl_plan_array(const gpuir_allocator *a, gcl_image *m, size_t at, uint64_t avail, uint32_t n,
                          unsigned depth, gcl_node *node, uint64_t *size) {
  gpuir__pfl_level level;
  uint64_t memory;
  memset(node, 0, sizeof *node);
  node->slots = gcl_place(at);
  node->n = n;
  node->bits = 32;
  node->depth = depth;
  node->out = (uint32_t *)(uintptr_t)(m->scratch * 4);
  m->scratch += n;
  *size = gpuir__pfl_size(m->bytes.data + at, avail, n, depth, &memory, depth ? &level : NULL);
  if (*size == GPUIR__PFL_BAD) return GPUIR_E_FORMAT;
  if (depth) {
    node->slots = gcl_place((size_t)(level.slots - m->bytes.data));
    node->bits = level.b;
    node->number = level.number;
    if (level.number) {
      size_t rest = (size_t)(level.rest - m->bytes.data);
      gcl_node child;
      uint64_t used;
      int status = gcl_plan_array(a, m, rest, avail - (rest - at), level.number, depth - 1, &child, &used);
      if (status) return status;
      node->overflows = child.out;
      status = gcl_plan_array(a, m, rest + used, avail - (rest + used - at), level.number, depth - 1, &child,
                              &used);
      if (status) return status;
      node->gaps = child.out;
    }
  }
  return gpuir__buf_put(a, &m->nodes[depth], node, sizeof *node);
}

/* The exceptions of a pfd-list. */
static int gcl_plan_exceptions(const gpuir_allocator *a, gcl_image *m, const gpuir__stream *s, gcl_list *l) {
  gpuir__pfl_level top;
  unsigned depth;
  uint64_t memory, used;
  gcl_node root, child;
  int status = gpuir__pfl_find(s, &top, &depth, &memory);
  if (status) return status;
  l->slots = gcl_place((size_t)(top.slots - m->bytes.data));
  l->bits = top.b;
  l->number = top.number;
  if (!top.number) return GPUIR_OK;
  memset(&root, 0, sizeof root);
  root.number = top.number;
  root.n = s->n;
  {
    size_t rest = (size_t)(top.rest - m->bytes.data);
    uint64_t avail = (uint64_t)(s->bytes + s->len - top.rest);
    status = gcl_plan_array(a, m, rest, avail, top.number, depth - 1, &child, &used);
    if (status) return status;
    l->overflows = root.overflows = child.out;
    status = gcl_plan_array(a, m, rest + used, avail - used, top.number, depth - 1, &child, &used);
    if (status) return status;
    l->positions = root.gaps = child.out;
  }
  return gpuir__buf_put(a, &m->nodes[GCL_GROUPS - 1], &root, sizeof root);
}

/* Codes list i into the image. */
static int gcl_add_list(gpuir_cuda_lab *lab, gcl_image *m, const gpuir__codec *codec, uint64_t param,
                        const uint32_t *docs, uint32_t n, size_t i, uint64_t docs_at) {
  const gpuir_allocator *a = &lab->a;
  const uint32_t blocks = (n + GPUIR__BLOCK - 1) / GPUIR__BLOCK;
  size_t at, directory = SIZE_MAX, len;
  uint32_t *offset = NULL, k;
  uint8_t *width = NULL;
  gpuir__stream s;
  gcl_list l;
  void *spare = NULL;
  int status;
  for (k = 1; k < n; k++)
    if (docs[k] <= docs[k - 1]) return GPUIR_E_ARGUMENT;
  if (n >= GPUIR__BLOCK) {
    directory = gcl_room(a, &m->bytes, (size_t)blocks * 9);
    spare = gpuir__alloc(a, (size_t)blocks * 5);
    if (directory == SIZE_MAX || !spare) {
      gpuir__free(a, spare, (size_t)blocks * 5);
      return GPUIR_E_NOMEM;
    }
    offset = (uint32_t *)spare;
    width = (uint8_t *)(offset + blocks);
  }
  at = gcl_room(a, &m->bytes, 0);
  status = at == SIZE_MAX ? GPUIR_E_NOMEM : codec->encode(a, docs, n, &m->bytes, offset, width, &param);
  len = m->bytes.len - at;
  if (!status && gcl_room(a, &m->bytes, GPUIR__STREAM_PAD) == SIZE_MAX) status = GPUIR_E_NOMEM;
  memset(&s, 0, sizeof s);
  memset(&l, 0, sizeof l);
  if (!status) {
    s.codec = codec;
    s.bytes = m->bytes.data + at;
    s.len = len;
    s.n = n;
    s.limit = UINT32_MAX;
    s.offset = offset;
    s.width = width;
    l.s = s;
    l.s.codec = NULL;
    l.s.bytes = gcl_place(at);
    if (offset) {
      uint8_t *to = m->bytes.data + directory;
      memcpy(to, offset, (size_t)blocks * 4);
      for (k = 0; k < blocks; k++)
        gpuir__store32(to + (size_t)(blocks + k) * 4,
                       docs[gpuir__min64((uint64_t)k * GPUIR__BLOCK + GPUIR__BLOCK, n) - 1]);
      memcpy(to + (size_t)blocks * 8, width, blocks);
      l.s.offset = (const uint32_t *)(uintptr_t)directory;
      l.s.last = l.s.offset + blocks;
      l.s.width = gcl_place(directory + (size_t)blocks * 8);
    }
    l.docs = (const uint32_t *)(uintptr_t)(docs_at * 4);
    l.nblocks = blocks;
    lab->n[i] = n;
    lab->bytes[i] = len + (offset ? (uint64_t)blocks * 9 : 0);
    if (lab->codec == GCL_PFL) status = gcl_plan_exceptions(a, m, &s, &l);
  }
  if (!status) status = gpuir__buf_put(a, &m->lists, &l, sizeof l);
  gpuir__free(a, spare, (size_t)blocks * 5);
  return status;
}

static void gcl_image_free(const gpuir_allocator *a, gcl_image *m) {
  unsigned i;
  gpuir__buf_free(a, &m->bytes);
  gpuir__buf_free(a, &m->lists);
  for (i = 0; i < GCL_GROUPS; i++) gpuir__buf_free(a, &m->nodes[i]);
}

/* A piece of an auxiliary structure, in one slab that grows by chunks. */
static int gcl_aux(gpuir_cuda_lab *lab, const void *from, uint64_t n, void **p, gpuir_error *err) {
  if (n > lab->aux_left) {
    const uint64_t size = gpuir__max64(n + 64, (uint64_t)64 << 20);
    void *slab;
    int status = gcl_device_alloc(lab, size, &slab, err);
    if (status) return status;
    lab->aux = (uint8_t *)slab;
    lab->aux_left = size;
  }
  *p = lab->aux;
  GC_TRY(cudaMemcpy(*p, from, n, cudaMemcpyHostToDevice), "uploading lists");
  n = gpuir__min64((n + 15) & ~(uint64_t)15, lab->aux_left);
  lab->aux += n;
  lab->aux_left -= n;
  return GPUIR_OK;
}

#define GCL_MOVE(p, type, base) ((p) = (type)((uint64_t)(uintptr_t)(p) + (uint64_t)(uintptr_t)(base)))

/* Lays out the copies: bytes, and tables with addresses. */
static int gcl_upload(gpuir_cuda_lab *lab, gcl_image *m, uint32_t copies, const uint32_t *docs,
                      gpuir_error *err) {
  const uint64_t step = (m->bytes.len + 255) & ~(uint64_t)255;
  const size_t nlists = lab->nlists;
  gpuir__buf lists = {NULL, 0, 0}, nodes = {NULL, 0, 0};
  void *slab, *scratch, *p;
  uint32_t c, tiles = 1;
  size_t i;
  unsigned g;
  int status = gcl_device_alloc(lab, step * copies + GC_PAD, &slab, err);
  if (!status) status = gcl_device_alloc(lab, m->scratch * copies * 4, &scratch, err);
  if (status) return status;
  GC_TRY(cudaMemset(slab, 0, step * copies + GC_PAD), "uploading lists");
  GC_TRY(cudaMemcpy(slab, m->bytes.data, m->bytes.len, cudaMemcpyHostToDevice), "uploading lists");
  for (c = 1; c < copies; c++)
    GC_TRY(cudaMemcpy((uint8_t *)slab + step * c, slab, m->bytes.len, cudaMemcpyDeviceToDevice),
           "copying lists");
  for (c = 0; c < copies && !status; c++)
    for (i = 0; i < nlists && !status; i++) {
      gcl_list l;
      memcpy(&l, m->lists.data + i * sizeof l, sizeof l);
      GCL_MOVE(l.s.bytes, const uint8_t *, (uint8_t *)slab + step * c);
      if (lab->n[i] >= GPUIR__BLOCK) {
        GCL_MOVE(l.s.offset, const uint32_t *, (uint8_t *)slab + step * c);
        GCL_MOVE(l.s.last, const uint32_t *, (uint8_t *)slab + step * c);
        GCL_MOVE(l.s.width, const uint8_t *, (uint8_t *)slab + step * c);
      }
      GCL_MOVE(l.docs, const uint32_t *, docs);
      GCL_MOVE(l.slots, const uint8_t *, (uint8_t *)slab + step * c);
      GCL_MOVE(l.overflows, const uint32_t *, (uint32_t *)scratch + m->scratch * c);
      GCL_MOVE(l.positions, const uint32_t *, (uint32_t *)scratch + m->scratch * c);
      status = gpuir__buf_put(&lab->a, &lists, &l, sizeof l);
    }
  if (!status) {
    status = gcl_device_copy(lab, lists.data, lists.len, &p, err);
    lab->lists = (const gcl_list *)p;
  }
  for (g = 0; g < GCL_GROUPS && !status; g++) {
    const size_t n = m->nodes[g].len / sizeof(gcl_node);
    uint32_t most = 1;
    nodes.len = 0;
    for (c = 0; c < copies && !status; c++)
      for (i = 0; i < n && !status; i++) {
        gcl_node node;
        memcpy(&node, m->nodes[g].data + i * sizeof node, sizeof node);
        most = gpuir__max32(most, g == GCL_GROUPS - 1 ? node.number : node.n);
        GCL_MOVE(node.slots, const uint8_t *, (uint8_t *)slab + step * c);
        if (g != GCL_GROUPS - 1) GCL_MOVE(node.out, uint32_t *, (uint32_t *)scratch + m->scratch * c);
        GCL_MOVE(node.overflows, const uint32_t *, (uint32_t *)scratch + m->scratch * c);
        GCL_MOVE(node.gaps, uint32_t *, (uint32_t *)scratch + m->scratch * c);
        status = gpuir__buf_put(&lab->a, &nodes, &node, sizeof node);
      }
    if (!status) status = gcl_device_copy(lab, nodes.data, nodes.len, &p, err);
    lab->nodes[g] = (gcl_node *)p;
    lab->node_tiles[g] = (most - 1) / GCL_PFL_TILE + 1;
    tiles = gpuir__max32(tiles, lab->node_tiles[g]);
    for (c = 0; c < copies && lab->codec == GCL_PFL; c++) /* each copy has as many */
      for (i = 0; i < nlists; i++)
        lab->node_start[g][(c + 1) * nlists + i] = lab->node_start[g][c * nlists + i] + (uint32_t)n;
  }
  if (!status) status = gcl_device_alloc(lab, (uint64_t)tiles * GCL_PFL_FEW * 4, &p, err);
  if (!status) lab->node_sums = (uint32_t *)p;
  gpuir__buf_free(&lab->a, &lists);
  gpuir__buf_free(&lab->a, &nodes);
  return status;
}

/* What searching without codecs needs of a list (part 9 of gpuir.h makes it), for all copies in common. */
static int gcl_prepare(gpuir_cuda_lab *lab, gcl_list *l, const uint32_t *docs, uint32_t n, gpuir_error *err) {
  static const char *const names[] = {"hs16", "hs32", "hs64", "hs128", "hs256", "lr-local", "lr-global"};
  gpuir__buf lines = {NULL, 0, 0};
  unsigned i;
  void *p = NULL;
  int status = GPUIR_OK;
  for (i = 0; i < 7 && !status; i++) {
    const gpuir__method *method = gpuir__method_by_name(names[i]);
    gpuir__operand o;
    memset(&o, 0, sizeof o);
    o.docs = docs;
    o.n = n;
    o.param = method->param;
    status = method->prepare(&lab->a, &o, docs);
    if (!status && i <= GCL_LOCAL) {
      l->shift[i] = o.shift;
      l->buckets[i] = o.buckets;
    }
    if (!status && i < GCL_LOCAL) {
      status = gcl_aux(lab, o.first, ((uint64_t)o.buckets + 1) * 4, &p, err);
      l->first[i] = (const uint32_t *)p;
    } else if (!status) { /* the local ones come first, the global one before them in memory */
      status = gpuir__buf_put(&lab->a, &lines, o.lines, (i == GCL_LOCAL ? o.buckets : 1) * sizeof *o.lines);
    }
    gpuir__buf_free(&lab->a, &o.aux);
    gpuir__buf_free(&lab->a, &o.copy);
  }
  if (!status) {
    size_t each = sizeof(gpuir__lr), local = lines.len - each;
    gpuir__lr global;
    memcpy(&global, lines.data + local, each);
    memmove(lines.data + each, lines.data, local);
    memcpy(lines.data, &global, each);
    status = gcl_aux(lab, lines.data, lines.len, &p, err);
    l->lines = p;
  }
  gpuir__buf_free(&lab->a, &lines);
  return status;
}

/* Room for a run of many queries. */
static int gcl_open_batch(gpuir_cuda_lab *lab, const gpuir_cuda_lab_desc *desc, gpuir_error *err) {
  gcl_batch *b = &lab->batch;
  const uint64_t room = lab->room + GPUIR__BLOCK * (uint64_t)desc->queries, chunks = room / GPUIR__BLOCK;
  void *p;
  unsigned i;
  int status = GPUIR_OK;
  lab->queries = desc->queries;
  lab->terms = desc->terms ? desc->terms : 8 * desc->queries;
  if (lab->queries >> 24 || lab->terms >> 28 || room >> 36)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "a run of so many queries");
  lab->rounds = (uint32_t)gpuir__min64(GPUIR_MAX_TERMS, lab->terms) - 1;
  lab->plan_size = lab->queries * sizeof(gcl_query) + lab->terms * 4 + 64 +
                   2 * (size_t)lab->rounds * (lab->queries + 1) * 4 + 256;
  GC_TRY(cudaMallocHost((void **)&lab->plan, lab->plan_size), "allocating pinned memory");
  status = gcl_device_alloc(lab, lab->plan_size, &p, err);
  lab->plan_device = (uint8_t *)p;
  for (i = 0; i < 2 && !status; i++) {
    status = gcl_device_alloc(lab, room * 4, &p, err);
    b->cand[i] = (uint32_t *)p;
    if (!status) status = gcl_device_alloc(lab, room * 4, &p, err);
    b->pos[i] = (uint32_t *)p;
  }
  if (!status) status = gcl_device_alloc(lab, chunks * 16, &p, err);
  b->flags = (uint32_t *)p;
  if (!status) status = gcl_device_alloc(lab, chunks * 4, &p, err);
  b->at = (uint32_t *)p;
  if (!status) status = gcl_device_alloc(lab, chunks * 4, &p, err);
  b->chunk_query = (const uint32_t *)p;
  if (!status) status = gcl_device_alloc(lab, lab->queries * 4, &p, err);
  b->count = (uint32_t *)p;
  b->all = lab->lists;
  b->expanded = lab->out;
  return status;
}

static int gcl_open(gpuir_cuda_lab *lab, const gpuir_cuda_lab_desc *desc, gcl_image *m, gpuir_error *err) {
  const gpuir__codec *codec = gpuir__codec_by_name(desc->codec, 1);
  const uint32_t copies = desc->copies ? desc->copies : 1;
  uint64_t blocks = 0, at = 0;
  uint32_t *docs;
  cudaDeviceProp prop;
  void *p;
  size_t i;
  unsigned g;
  int status = GPUIR_OK;
  if (!codec) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "no docID codec is named \"%s\"", desc->codec);
  lab->codec = codec->id;
  if (lab->codec == GCL_PFD || lab->codec == GCL_NEWPFD) lab->codec = GCL_OPTPFD; /* one block format */
  GC_TRY(cudaSetDevice(desc->device), "choosing the device");
  GC_TRY(cudaGetDeviceProperties(&prop, desc->device), "looking at the device");
  lab->device = desc->device;
  lab->processors = prop.multiProcessorCount;
  GC_TRY(cudaStreamCreateWithFlags(&lab->stream, cudaStreamNonBlocking), "creating a stream");
  GC_TRY(cudaEventCreate(&lab->before), "creating an event");
  GC_TRY(cudaEventCreate(&lab->after), "creating an event");
  for (i = 0; i < desc->nlists; i++) {
    if (!desc->lengths[i] || !desc->lists[i])
      return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "list %llu is empty", (unsigned long long)i);
    blocks += (desc->lengths[i] + (uint64_t)GPUIR__BLOCK - 1) / GPUIR__BLOCK;
  }
  if (blocks * copies >> 31 || desc->nlists * (uint64_t)copies >> 24)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "too many lists");
  lab->room = desc->room ? (desc->room + GPUIR__BLOCK - 1) / GPUIR__BLOCK * GPUIR__BLOCK
                         : blocks * copies * GPUIR__BLOCK;
  status = gcl_device_alloc(lab, blocks * GPUIR__BLOCK * 4, &p, err);
  if (status) return status;
  docs = (uint32_t *)p;
  GC_TRY(cudaMemset(docs, 0, blocks * GPUIR__BLOCK * 4), "uploading lists"); /* the last blocks' rests */
  for (i = 0; i < desc->nlists && !status; i++) {
    for (g = 0; g < GCL_GROUPS; g++)
      if (lab->codec == GCL_PFL) lab->node_start[g][i] = (uint32_t)(m->nodes[g].len / sizeof(gcl_node));
    status = gcl_add_list(lab, m, codec, desc->param, desc->lists[i], desc->lengths[i], i, at);
    if (status)
      return gpuir__fail(err, status, 0, "list %llu: %s", (unsigned long long)i,
                         status == GPUIR_E_ARGUMENT ? "docIDs must increase" : gpuir_strerror(status));
    GC_TRY(cudaMemcpy(docs + at, desc->lists[i], desc->lengths[i] * (size_t)4, cudaMemcpyHostToDevice),
           "uploading lists");
    if (desc->queries) {
      gcl_list l;
      memcpy(&l, m->lists.data + i * sizeof l, sizeof l);
      status = gcl_prepare(lab, &l, desc->lists[i], desc->lengths[i], err);
      if (status) return status;
      memcpy(m->lists.data + i * sizeof l, &l, sizeof l);
    }
    at += (desc->lengths[i] + (uint64_t)GPUIR__BLOCK - 1) / GPUIR__BLOCK * GPUIR__BLOCK;
  }
  for (i = 0; i < lab->all; i++)
    lab->start[i + 1] = lab->start[i] + (lab->n[i % lab->nlists] + GPUIR__BLOCK - 1) / GPUIR__BLOCK;
  status = gcl_upload(lab, m, copies, docs, err);
  if (!status) status = gcl_device_copy(lab, lab->start, (lab->all + 1) * 4, &p, err);
  lab->where.start = (const uint32_t *)p;
  if (!status) {
    const uint32_t hints = (lab->start[lab->all] >> GCL_HINT) + 1;
    uint32_t *hint = (uint32_t *)gpuir__alloc(&lab->a, (size_t)hints * 4), k, list = 0;
    if (!hint) return gpuir__fail_nomem(err);
    for (k = 0; k < hints; k++) {
      while (list + 1 < lab->all && lab->start[list + 1] <= k << GCL_HINT) list++;
      hint[k] = list;
    }
    status = gcl_device_copy(lab, hint, (uint64_t)hints * 4, &p, err);
    gpuir__free(&lab->a, hint, (size_t)hints * 4);
    lab->where.hint = (const uint32_t *)p;
  }
  if (!status) status = gcl_device_alloc(lab, lab->room * 4, &p, err);
  lab->out = (uint32_t *)p;
  if (!status) status = gcl_device_alloc(lab, 64, &p, err);
  lab->sums = (unsigned long long *)p;
  if (!status && desc->queries) status = gcl_open_batch(lab, desc, err);
  return status;
}

extern "C" void gpuir_cuda_lab_close(gpuir_cuda_lab *lab) {
  gpuir_allocator a;
  if (!lab) return;
  a = lab->a;
  (void)cudaSetDevice(lab->device);
  if (lab->stream) (void)cudaStreamSynchronize(lab->stream);
  while (lab->nmemory) (void)cudaFree(lab->memory[--lab->nmemory]);
  (void)cudaFreeHost(lab->plan);
  if (lab->before) (void)cudaEventDestroy(lab->before);
  if (lab->after) (void)cudaEventDestroy(lab->after);
  if (lab->stream) (void)cudaStreamDestroy(lab->stream);
  (void)cudaGetLastError();
  gpuir__free(&a, lab->host, lab->host_size);
  gpuir__free(&a, lab, sizeof *lab);
}

extern "C" int gpuir_cuda_lab_open(const gpuir_cuda_lab_desc *desc, gpuir_cuda_lab **out, gpuir_error *err) {
  gpuir_allocator a = gpuir__allocator(NULL);
  gpuir_cuda_lab *lab;
  gcl_image image;
  uint8_t *at;
  unsigned g;
  int status;
  if (!out) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_lab_open: NULL");
  *out = NULL;
  if (!desc || !desc->nlists || !desc->lists || !desc->lengths || desc->nlists >> 24)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_lab_open: no lists, or too many");
  lab = (gpuir_cuda_lab *)gpuir__alloc_zero(&a, sizeof *lab);
  if (!lab) return gpuir__fail_nomem(err);
  lab->a = a;
  lab->nlists = desc->nlists;
  lab->all = desc->nlists * (desc->copies ? desc->copies : 1);
  lab->host_size =
      lab->nlists * 12 + (lab->all + 1) * 4 * (1 + GCL_GROUPS) + lab->nlists * 4 * GCL_GROUPS + 1024;
  lab->host = gpuir__alloc_zero(&a, lab->host_size);
  if (!lab->host) {
    gpuir__free(&a, lab, sizeof *lab);
    return gpuir__fail_nomem(err);
  }
  at = (uint8_t *)(((uintptr_t)lab->host + 63) & ~(uintptr_t)63);
  lab->bytes = (uint64_t *)gc_carve(&at, lab->nlists * 8);
  lab->n = (uint32_t *)gc_carve(&at, lab->nlists * 4);
  lab->start = (uint32_t *)gc_carve(&at, (lab->all + 1) * 4);
  for (g = 0; g < GCL_GROUPS; g++)
    lab->node_start[g] = (uint32_t *)gc_carve(&at, (lab->all + lab->nlists) * 4);
  memset(&image, 0, sizeof image);
  status = gcl_open(lab, desc, &image, err);
  gcl_image_free(&a, &image);
  if (status)
    gpuir_cuda_lab_close(lab);
  else
    *out = lab;
  return status;
}

typedef void (*gcl_decoder)(const gcl_list *, gcl_where, uint32_t, uint32_t, uint32_t, uint32_t *);

template <bool SUM>
static gcl_decoder gcl_decoder_of(unsigned codec) {
  switch (codec) {
    case GCL_VBYTE: return gcl_decode<GCL_VBYTE, SUM>;
    case GCL_BP128: return gcl_decode_bp128<SUM>;
    case GCL_OPTPFD: return gcl_decode<GCL_OPTPFD, SUM>;
    case GCL_EF: return gcl_decode<GCL_EF, true>;
    case GCL_QS: return gcl_decode<GCL_QS, true>;
    case GCL_RICE: return gcl_decode<GCL_RICE, SUM>;
    case GCL_PFL: return gcl_decode<GCL_PFL, SUM>;
    case GCL_PARA: return gcl_decode<GCL_PARA, SUM>;
    case GCL_LRC: return gcl_decode<GCL_LRC, true>;
    case GCL_LRCSEG: return gcl_decode<GCL_LRCSEG, true>;
    case GCL_SEGLRC: return gcl_decode<GCL_SEGLRC, true>;
    case GCL_HSLRC: return gcl_decode<GCL_HSLRC, true>;
    default: return NULL;
  }
}

/* The arrays of exceptions of lists lo .. hi - 1, the innermost first. */
static void gcl_launch_nodes(gpuir_cuda_lab *lab, size_t lo, size_t hi) {
  unsigned g;
  if (lab->codec != GCL_PFL) return;
  for (g = 0; g < GCL_GROUPS; g++) {
    const uint32_t from = lab->node_start[g][lo], n = lab->node_start[g][hi] - from;
    if (n && (n > GCL_PFL_FEW || lab->node_tiles[g] == 1)) {
      gcl_pfl_node<<<n, GCL_PFL_THREADS, 0, lab->stream>>>(lab->nodes[g] + from);
    } else if (n) {
      const dim3 grid(lab->node_tiles[g], n);
      gcl_pfl_tiles<<<grid, GCL_PFL_THREADS, 0, lab->stream>>>(lab->nodes[g] + from, lab->node_sums);
      gcl_pfl_exceptions<<<grid, GCL_PFL_THREADS, 0, lab->stream>>>(lab->nodes[g] + from, lab->node_sums);
    }
  }
}

/* Decodes lists lo .. hi - 1 to `out`. */
static int gcl_launch_decode(gpuir_cuda_lab *lab, size_t lo, size_t hi, int sum, uint32_t *out,
                             gpuir_error *err) {
  gcl_decoder kernel = sum ? gcl_decoder_of<true>(lab->codec) : gcl_decoder_of<false>(lab->codec);
  const uint32_t from = lab->start[lo], to = lab->start[hi];
  uint32_t grid, chunk;
  int each = 0;
  GC_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, GCL_THREADS, 0), "sizing a launch");
  grid = (uint32_t)(lab->processors * (each ? each : 1));
  chunk = gpuir__max32(1, gpuir__min32(GCL_CHUNK, (to - from) / (grid * GCL_WARPS)));
  grid = gpuir__min32(grid * 4, ((to - from + chunk - 1) / chunk + GCL_WARPS - 1) / GCL_WARPS);
  gcl_launch_nodes(lab, lo, hi);
  kernel<<<grid, GCL_THREADS, 0, lab->stream>>>(lab->lists, lab->where, from, to, chunk, out);
  GC_TRY(cudaGetLastError(), "decoding");
  return GPUIR_OK;
}

template <unsigned T>
static void gcl_launch_steps(cudaStream_t stream, unsigned processors, const gcl_qs_work &w, unsigned stop) {
  const unsigned grid = processors * (2048 / T);
  gcl_qs_count<T><<<grid, T, 0, stream>>>(w);
  if (stop > 1) {
    gcl_qs_tiles<T><<<grid, T, 0, stream>>>(w);
    gcl_qs_sums<T><<<1, T, 0, stream>>>(w);
    gcl_qs_scan<T><<<grid, T, 0, stream>>>(w);
  }
  if (stop > 2) gcl_qs_gather<T><<<grid, T, 0, stream>>>(w);
  if (stop > 3) gcl_qs_combine<T><<<grid, T, 0, stream>>>(w);
}

/* The ways of the thesis: over bits, and over words by blocks of 256, 512 and 1024 threads. */
static const struct {
  const char *name;
  bool words;
  void (*launch)(cudaStream_t, unsigned, const gcl_qs_work &, unsigned);
} gcl_thesis[] = {{"naive", false, gcl_launch_steps<256>},
                  {"steps", true, gcl_launch_steps<256>},
                  {"steps-512", true, gcl_launch_steps<512>},
                  {"steps-1024", true, gcl_launch_steps<1024>}};
#define GCL_THESIS (sizeof gcl_thesis / sizeof *gcl_thesis)

/* qs by the thesis' kernels. `stop`: steps after which to leave off, for measuring them: 1 counts, 2 sums too, 3
 * gathers too. */
static int gcl_launch_thesis(gpuir_cuda_lab *lab, size_t lo, size_t hi, size_t way, unsigned stop,
                             gpuir_error *err) {
  gcl_qs_work w;
  size_t i;
  w.in = lab->batch.cand[0];
  w.out = lab->batch.cand[1];
  w.sums = lab->batch.pos[0];
  w.upper = lab->batch.pos[1];
  w.words = gcl_thesis[way].words;
  for (i = lo; i < hi; i++) {
    w.list = lab->lists + i;
    w.docs = lab->out + (size_t)(lab->start[i] - lab->start[lo]) * GPUIR__BLOCK;
    gcl_thesis[way].launch(lab->stream, (unsigned)lab->processors, w, stop);
  }
  GC_TRY(cudaGetLastError(), "decoding");
  return GPUIR_OK;
}

static int gcl_compare_ms(const void *a, const void *b) {
  const float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

#define GCL_REPEAT 64u

/* Runs `work` `repeat` times and takes the median of the times. */
template <typename Work>
static int gcl_time(gpuir_cuda_lab *lab, unsigned repeat, double *ms, const Work &work, gpuir_error *err) {
  float times[GCL_REPEAT];
  unsigned i;
  repeat = repeat < 1 ? 1 : repeat > GCL_REPEAT ? GCL_REPEAT : repeat;
  for (i = 0; i < repeat; i++) {
    int status;
    GC_TRY(cudaEventRecord(lab->before, lab->stream), "timing");
    status = work();
    if (status) return status;
    GC_TRY(cudaEventRecord(lab->after, lab->stream), "timing");
    GC_TRY(cudaStreamSynchronize(lab->stream), "running kernels");
    GC_TRY(cudaEventElapsedTime(&times[i], lab->before, lab->after), "timing");
  }
  qsort(times, repeat, sizeof *times, gcl_compare_ms);
  *ms = (double)times[repeat / 2];
  return GPUIR_OK;
}

extern "C" int gpuir_cuda_lab_decode(gpuir_cuda_lab *lab, size_t first, size_t n, const char *how,
                                     unsigned repeat, uint32_t *out, gpuir_cuda_lab_result *result,
                                     gpuir_error *err) {
  const int sum = !how || strcmp(how, "gaps") != 0, thesis = how && sum;
  size_t way = 0;
  unsigned long long sums[2] = {0, 0};
  gpuir_cuda_lab_result r;
  size_t i;
  int status;
  memset(&r, 0, sizeof r);
  if (!lab || first > lab->all || n > lab->all - first || !n)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_lab_decode: no such lists");
  while (thesis && way < GCL_THESIS && strcmp(how, gcl_thesis[way].name) != 0) way++;
  if (thesis && (lab->codec != GCL_QS || way == GCL_THESIS))
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "no list of this codec is decoded by a way named \"%s\"",
                       how);
  if (thesis && !lab->queries)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "the thesis' way needs a lab with room for queries");
  for (i = first; thesis && i < first + n; i++)
    if (lab->bytes[i % lab->nlists] * 8 > lab->room)
      return gpuir__fail(err, GPUIR_E_LIMIT, 0, "the list's bits are more than the lab's room");
  if ((uint64_t)(lab->start[first + n] - lab->start[first]) * GPUIR__BLOCK > lab->room)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "the lists are longer than the lab's room");
  GC_TRY(cudaSetDevice(lab->device), "choosing the device");
  GC_TRY(cudaMemsetAsync(lab->out, 0xff,
                         (size_t)(lab->start[first + n] - lab->start[first]) * GPUIR__BLOCK * 4, lab->stream),
         "clearing memory");
  for (i = 0; thesis && i < 3; i++) {
    status = gcl_time(
        lab, repeat, &r.step_ms[i],
        [&] { return gcl_launch_thesis(lab, first, first + n, way, (unsigned)i + 1, err); }, err);
    if (status) return status;
  }
  status = gcl_time(
      lab, repeat, &r.ms,
      [&] {
        return thesis ? gcl_launch_thesis(lab, first, first + n, way, 4, err)
                      : gcl_launch_decode(lab, first, first + n, sum, lab->out, err);
      },
      err);
  if (status) return status;
  for (i = first; i < first + n; i++) {
    r.values += lab->n[i % lab->nlists];
    r.bytes += lab->bytes[i % lab->nlists];
  }
  if (sum) {
    GC_TRY(cudaMemsetAsync(lab->sums, 0, sizeof sums, lab->stream), "clearing memory");
    gcl_verify<<<(unsigned)lab->processors * 8, GCL_THREADS, 0, lab->stream>>>(
        lab->lists, lab->where, lab->start[first], lab->start[first + n], lab->out, lab->sums);
    GC_TRY(cudaGetLastError(), "comparing");
    GC_TRY(cudaMemcpyAsync(sums, lab->sums, sizeof sums, cudaMemcpyDeviceToHost, lab->stream), "comparing");
    GC_TRY(cudaStreamSynchronize(lab->stream), "comparing");
    r.mismatches = sums[0];
    r.checksum = sums[1];
  }
  for (i = first; out && i < first + n; i++) {
    const uint32_t length = lab->n[i % lab->nlists];
    GC_TRY(cudaMemcpy(out, lab->out + (size_t)(lab->start[i] - lab->start[first]) * GPUIR__BLOCK,
                      (size_t)length * 4, cudaMemcpyDeviceToHost),
           "fetching docIDs");
    out += length;
  }
  if (result) *result = r;
  return GPUIR_OK;
}

extern "C" int gpuir_cuda_lab_copy(gpuir_cuda_lab *lab, unsigned repeat, gpuir_cuda_lab_result *result,
                                   gpuir_error *err) {
  gpuir_cuda_lab_result r;
  const size_t half = (size_t)(lab->room / 2) * 4;
  int status;
  memset(&r, 0, sizeof r);
  GC_TRY(cudaSetDevice(lab->device), "choosing the device");
  status = gcl_time(
      lab, repeat, &r.ms,
      [&] {
        GC_TRY(
            cudaMemcpyAsync(lab->out, lab->out + lab->room / 2, half, cudaMemcpyDeviceToDevice, lab->stream),
            "copying");
        return (int)GPUIR_OK;
      },
      err);
  r.values = r.bytes = 2 * (uint64_t)half;
  if (!status) *result = r;
  return status;
}

/* ---- runs of many queries ---- */

typedef void (*gcl_block_kernel)(gcl_batch, uint32_t, int, unsigned, int, bool);
typedef void (*gcl_chunk_kernel)(gcl_batch);
typedef void (*gcl_expand_kernel)(gcl_batch, uint32_t, const uint32_t *);

#define GCL_EACH_CODEC(of)                  \
  switch (codec) {                          \
    case GCL_VBYTE: return of(GCL_VBYTE);   \
    case GCL_BP128: return of(GCL_BP128);   \
    case GCL_OPTPFD: return of(GCL_OPTPFD); \
    case GCL_EF: return of(GCL_EF);         \
    case GCL_QS: return of(GCL_QS);         \
    case GCL_RICE: return of(GCL_RICE);     \
    case GCL_PFL: return of(GCL_PFL);       \
    case GCL_PARA: return of(GCL_PARA);     \
    case GCL_LRC: return of(GCL_LRC);       \
    case GCL_LRCSEG: return of(GCL_LRCSEG); \
    case GCL_SEGLRC: return of(GCL_SEGLRC); \
    case GCL_HSLRC: return of(GCL_HSLRC);   \
    default: return of(GCL_PLAIN);          \
  }

static gcl_block_kernel gcl_block_search_of(unsigned codec) {
#define GCL_OF(c) gcl_block_search<c>
  GCL_EACH_CODEC(GCL_OF)
#undef GCL_OF
}

static gcl_chunk_kernel gcl_seed_of(unsigned codec) {
#define GCL_OF(c) gcl_seed<c>
  GCL_EACH_CODEC(GCL_OF)
#undef GCL_OF
}

static gcl_expand_kernel gcl_expand_of(unsigned codec) {
#define GCL_OF(c) gcl_expand<c>
  GCL_EACH_CODEC(GCL_OF)
#undef GCL_OF
}

typedef void (*gcl_para_kernel)(gcl_batch, bool);

static gcl_para_kernel gcl_para_of(int how) {
  switch (how) {
    case GCL_INTERPOLATION: return gcl_para_search<GCL_INTERPOLATION>;
    case GCL_LR_GLOBAL: return gcl_para_search<GCL_LR_GLOBAL>;
    case GCL_LR_LOCAL: return gcl_para_search<GCL_LR_LOCAL>;
    case GCL_HS: return gcl_para_search<GCL_HS>;
    case GCL_HS + 1: return gcl_para_search<GCL_HS + 1>;
    case GCL_HS + 2: return gcl_para_search<GCL_HS + 2>;
    case GCL_HS + 3: return gcl_para_search<GCL_HS + 3>;
    case GCL_HS + 4: return gcl_para_search<GCL_HS + 4>;
    default: return gcl_para_search<GCL_BINARY>;
  }
}

static gcl_chunk_kernel gcl_algorithm1_of(unsigned codec) {
  switch (codec) {
    case GCL_LRC: return gcl_algorithm1<GCL_LRC>;
    case GCL_LRCSEG: return gcl_algorithm1<GCL_LRCSEG>;
    case GCL_SEGLRC: return gcl_algorithm1<GCL_SEGLRC>;
    case GCL_HSLRC: return gcl_algorithm1<GCL_HSLRC>;
    default: return NULL;
  }
}

/* What a run is made of, on the host. */
typedef struct gcl_run {
  int how;
  unsigned levels, rounds;
  int coded;
  const uint32_t *parts, *starts; /* device; of each round: nq + 1 */
  size_t plan;                    /* bytes */
  int side;                       /* where the results are */
} gcl_run;

static uint32_t gcl_grid(const gpuir_cuda_lab *lab, uint64_t items, uint32_t each) {
  return (uint32_t)gpuir__max64(1, gpuir__min64((items + each - 1) / each, (uint64_t)lab->processors * 64));
}

/* Plans the queries: lists by length, places, partitions and blocks of every round. */
static int gcl_plan_run(gpuir_cuda_lab *lab, const uint32_t *lists, const uint32_t *start, size_t nq,
                        gcl_run *run, gpuir_error *err) {
  gcl_batch *b = &lab->batch;
  gcl_query *queries = (gcl_query *)(void *)lab->plan;
  uint32_t *sorted = (uint32_t *)(void *)(queries + nq), *at, *parts, *starts;
  uint64_t chunks = 0;
  size_t q, i, k, most = 1, terms = start[nq];
  if (nq > lab->queries || terms > lab->terms)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "more queries or lists than the lab was opened for");
  for (q = 0; q < nq; q++) {
    k = start[q + 1] - start[q];
    if (!k || k > lab->rounds + 1)
      return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "a query of no lists, or too many");
    if (k > most) most = k;
    at = sorted + start[q];
    for (i = 0; i < k; i++) {
      uint32_t list = lists[start[q] + i];
      size_t j = i;
      if (list >= lab->all) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "there is no such list");
      for (; j && lab->n[at[j - 1] % lab->nlists] > lab->n[list % lab->nlists]; j--) at[j] = at[j - 1];
      at[j] = list;
    }
    queries[q].first = start[q];
    queries[q].k = (uint32_t)k;
    queries[q].m = lab->n[at[0] % lab->nlists];
    queries[q].chunk = (uint32_t)chunks;
    queries[q].base = chunks * GPUIR__BLOCK;
    chunks += (queries[q].m + (uint64_t)GPUIR__BLOCK - 1) / GPUIR__BLOCK;
  }
  if (chunks * GPUIR__BLOCK > lab->room + GPUIR__BLOCK * (uint64_t)lab->queries)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "more candidates than the lab has room for");
  run->rounds = (unsigned)most - 1;
  parts = sorted + terms;
  starts = parts + run->rounds * (nq + 1);
  for (k = 0; k < run->rounds; k++) {
    uint64_t part = 0, block = 0;
    for (q = 0; q < nq; q++) {
      parts[k * (nq + 1) + q] = (uint32_t)part;
      starts[k * (nq + 1) + q] = (uint32_t)block;
      if (k + 1 < queries[q].k) {
        uint32_t n = lab->n[sorted[queries[q].first + k + 1] % lab->nlists];
        part += ((uint64_t)queries[q].m + n + GCL_PART - 1) / GCL_PART;
        block += ((uint64_t)n + GPUIR__BLOCK - 1) / GPUIR__BLOCK;
      }
    }
    parts[k * (nq + 1) + nq] = (uint32_t)part;
    starts[k * (nq + 1) + nq] = (uint32_t)block;
    if (part >> 32 || block >> 32 ||
        (run->coded && run->how != GCL_SKIP && block * GPUIR__BLOCK > lab->room &&
         (run->how == GCL_MERGEPATH || run->how == GCL_GRIFFIN)))
      return gpuir__fail(err, GPUIR_E_LIMIT, 0, "the lists of a round do not fit into the lab's room");
  }
  run->plan = (size_t)((uint8_t *)(starts + run->rounds * (nq + 1)) - lab->plan);
  b->queries = (const gcl_query *)(const void *)lab->plan_device;
  b->lists = (const uint32_t *)(lab->plan_device + ((uint8_t *)sorted - lab->plan));
  run->parts = (const uint32_t *)(lab->plan_device + ((uint8_t *)parts - lab->plan));
  run->starts = (const uint32_t *)(lab->plan_device + ((uint8_t *)starts - lab->plan));
  b->nq = (uint32_t)nq;
  b->nchunks = (uint32_t)chunks;
  return GPUIR_OK;
}

/* Marked candidates move from one side to the other. */
static void gcl_launch_gather(gpuir_cuda_lab *lab, int cand, bool plain, int to) {
  const gcl_batch *b = &lab->batch;
  gcl_offsets<<<gcl_grid(lab, b->nq, 1), GCL_THREADS, 0, lab->stream>>>(*b);
  gcl_gather<<<gcl_grid(lab, (uint64_t)b->nchunks * 4, GCL_WARPS), GCL_THREADS, 0, lab->stream>>>(*b, cand,
                                                                                                  plain, to);
}

static int gcl_launch_round(gpuir_cuda_lab *lab, const gcl_run *run, uint32_t round, int cand, bool plain) {
  const gcl_batch *b = &lab->batch;
  const unsigned codec = run->coded ? lab->codec : GCL_PLAIN;
  const uint32_t warps = gcl_grid(lab, (uint64_t)b->nchunks * 4, GCL_WARPS),
                 chunks = gcl_grid(lab, b->nchunks, GCL_WARPS);
  const bool pmf = run->how >= GCL_PMF && run->how < GCL_MERGEPATH;
  const size_t row = (size_t)(round - 1) * (b->nq + 1);
  unsigned level;
  if (pmf) {
    for (level = 1; level <= run->levels; level++)
      gcl_pmf_level<<<warps, GCL_THREADS, 0, lab->stream>>>(*b, round, level, run->levels, cand, plain,
                                                            run->coded != 0, (int)level & 1);
    if (!run->coded) {
      gcl_pmf_find<<<warps, GCL_THREADS, 0, lab->stream>>>(*b, round, run->levels, cand, plain);
      return GPUIR_OK;
    }
  }
  if (run->how == GCL_MERGEPATH || run->how == GCL_GRIFFIN) {
    gcl_clear<<<gcl_grid(lab, (uint64_t)b->nchunks * 4, GCL_THREADS), GCL_THREADS, 0, lab->stream>>>(*b,
                                                                                                     round);
    if (run->coded)
      gcl_expand_of(codec)<<<(uint32_t)lab->processors * 16, GCL_THREADS, 0, lab->stream>>>(
          *b, round, run->starts + row);
    gcl_mark(lab, GPUIR_CUDA_LAB_DECODE);
    gcl_mergepath<<<(uint32_t)lab->processors * 16, GCL_PART_THREADS, 0, lab->stream>>>(
        *b, round, cand, plain, run->parts + row, run->coded ? run->starts + row : NULL);
  }
  if (run->how != GCL_MERGEPATH)
    gcl_block_search_of(codec)<<<chunks, GCL_THREADS, 0, lab->stream>>>(*b, round,
                                                                        pmf ? (int)GCL_PMF
                                                                        : run->how == GCL_GRIFFIN
                                                                            ? (int)GCL_GRIFFIN
                                                                            : (int)GCL_SKIP,
                                                                        run->levels, cand, plain);
  return GPUIR_OK;
}

static int gcl_launch_run(gpuir_cuda_lab *lab, gcl_run *run, gpuir_error *err) {
  gcl_batch *b = &lab->batch;
  const uint32_t warps = gcl_grid(lab, (uint64_t)b->nchunks * 4, GCL_WARPS);
  uint32_t round;
  int cand = 0;
  bool plain = !run->coded;
  GC_TRY(cudaMemcpyAsync(lab->plan_device, lab->plan, run->plan, cudaMemcpyHostToDevice, lab->stream),
         "sending queries");
  gcl_mark(lab, GPUIR_CUDA_LAB_SEND);
  gcl_begin<<<gcl_grid(lab, b->nq, 1), GCL_THREADS, 0, lab->stream>>>(b->queries, b->nq,
                                                                      (uint32_t *)b->chunk_query, b->count);
  if (run->coded && lab->codec == GCL_PFL) gcl_launch_nodes(lab, 0, lab->all);
  if (run->coded && run->how != GCL_ALGORITHM1)
    gcl_seed_of(lab->codec)<<<gcl_grid(lab, b->nchunks, GCL_WARPS), GCL_THREADS, 0, lab->stream>>>(*b);
  gcl_mark(lab, GPUIR_CUDA_LAB_DECODE);
  if (run->how == GCL_ALGORITHM1) {
    gcl_algorithm1_of(lab->codec)<<<warps, GCL_THREADS, 0, lab->stream>>>(*b);
    gcl_launch_gather(lab, 0, false, 1);
    run->side = 1;
  } else if (run->how < GCL_PMF && !run->coded) {
    gcl_para_of(run->how)<<<warps, GCL_THREADS, 0, lab->stream>>>(*b, plain);
    gcl_launch_gather(lab, 0, plain, 1);
    run->side = 1;
  } else {
    for (round = 1; round <= run->rounds; round++) {
      (void)gcl_launch_round(lab, run, round, cand, plain);
      gcl_launch_gather(lab, cand, plain, plain ? 0 : cand ^ 1);
      gcl_mark(lab, GPUIR_CUDA_LAB_INTERSECT);
      if (!plain) cand ^= 1;
      plain = false;
    }
    if (!run->rounds && plain) { /* queries of one list */
      gcl_clear<<<gcl_grid(lab, (uint64_t)b->nchunks * 4, GCL_THREADS), GCL_THREADS, 0, lab->stream>>>(
          *b, UINT32_MAX);
      gcl_launch_gather(lab, 0, true, 0);
    }
    run->side = cand;
  }
  GC_TRY(cudaGetLastError(), "intersecting");
  return GPUIR_OK;
}

extern "C" const char *gpuir_cuda_lab_method(size_t i) { return i < GCL_METHODS ? gcl_methods[i] : NULL; }

extern "C" int gpuir_cuda_lab_intersect(gpuir_cuda_lab *lab, const uint32_t *lists, const uint32_t *start,
                                        size_t nq, const gpuir_cuda_lab_way *way, uint32_t *counts,
                                        uint32_t *docids, gpuir_cuda_lab_result *result, gpuir_error *err) {
  gpuir_cuda_lab_result r;
  gcl_run run;
  size_t q;
  int status;
  memset(&r, 0, sizeof r);
  memset(&run, 0, sizeof run);
  if (!lab || !lab->queries || !lists || !start || !nq || !way || !way->method)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0,
                       "gpuir_cuda_lab_intersect: nothing to do, or no room for queries");
  while (run.how < GCL_METHODS && strcmp(gcl_methods[run.how], way->method) != 0) run.how++;
  if (run.how == GCL_METHODS)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "the device knows no intersection named \"%s\"",
                       way->method);
  run.coded = way->coded;
  run.levels = run.how >= GCL_PMF && run.how < GCL_MERGEPATH ? (unsigned)(run.how - GCL_PMF) : 0;
  if (run.how == GCL_ALGORITHM1 && (!run.coded || !gcl_algorithm1_of(lab->codec)))
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0,
                       "algorithm1 searches lists coded as lrc, lrcseg, seglrc or hslrc");
  if (run.coded && run.how > GCL_BINARY && run.how < GCL_PMF)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "%s searches lists that are not coded", way->method);
  GC_TRY(cudaSetDevice(lab->device), "choosing the device");
  lab->batch.crossover = run.how == GCL_MERGEPATH ? 1e30f
                         : way->crossover > 0     ? (float)way->crossover
                                                  : 128.0f;
  status = gcl_plan_run(lab, lists, start, nq, &run, err);
  if (!status)
    status = gcl_time(
        lab, way->repeat, &r.ms, [&] { return gcl_launch_run(lab, &run, err); }, err);
  if (status) return status;
  for (q = 0; q < nq; q++) r.values += ((const gcl_query *)(const void *)lab->plan)[q].m;
  GC_TRY(cudaMemcpy(counts, lab->batch.count, nq * 4, cudaMemcpyDeviceToHost), "fetching counts");
  for (q = 0; q < nq; q++) {
    const gcl_query *query = (const gcl_query *)(const void *)lab->plan + q;
    r.checksum += counts[q];
    if (!docids) continue;
    GC_TRY(cudaMemcpy(docids, lab->batch.cand[run.side] + query->base, (size_t)counts[q] * 4,
                      cudaMemcpyDeviceToHost),
           "fetching docIDs");
    docids += counts[q];
  }
  if (result) *result = r;
  return GPUIR_OK;
}

/* ---- ranking ---- */

extern "C" const char *gpuir_cuda_lab_ranking(size_t i) { return i < GCL_RANKINGS ? gcl_rankings[i] : NULL; }

static int gcl_launch_topk(gpuir_cuda_lab *lab, const gcl_topk *t, int how, unsigned long long *copy,
                           gpuir_error *err) {
  const uint32_t grid = gpuir__min32(t->nq, (uint32_t)lab->processors * 8);
  if (how == GCL_TREE)
    gcl_tree<<<grid, GCL_TOPK_THREADS, 0, lab->stream>>>(*t);
  else if (how == GCL_BUCKET)
    gcl_selection<GCL_BUCKET><<<grid, GCL_TOPK_THREADS, t->size * 8, lab->stream>>>(*t);
  else if (how == GCL_RADIX_SELECT)
    gcl_selection<GCL_RADIX_SELECT><<<grid, GCL_TOPK_THREADS, t->size * 8, lab->stream>>>(*t);
  else
    gcl_radix_sort<<<grid, GCL_TOPK_THREADS, 0, lab->stream>>>(*t, copy);
  GC_TRY(cudaGetLastError(), "ranking");
  return GPUIR_OK;
}

/* What Griffin does instead: the keys go to the CPU, which sorts the first k of them. The transfer counts. */
static int gcl_partial_sort(gpuir_cuda_lab *lab, const gcl_topk *t, const uint32_t *start, unsigned repeat,
                            unsigned long long *work, unsigned long long *out, double *ms, gpuir_error *err) {
  float times[GCL_REPEAT];
  unsigned i;
  size_t q;
  repeat = repeat < 1 ? 1 : repeat > GCL_REPEAT ? GCL_REPEAT : repeat;
  for (i = 0; i < repeat; i++) {
    uint64_t before = gpuir__now();
    GC_TRY(cudaMemcpyAsync(work, t->keys, (size_t)start[t->nq] * 8, cudaMemcpyDeviceToHost, lab->stream),
           "fetching keys");
    GC_TRY(cudaStreamSynchronize(lab->stream), "fetching keys");
    for (q = 0; q < t->nq; q++) {
      unsigned long long *keys = work + start[q];
      const size_t n = start[q + 1] - start[q], k = (size_t)gpuir__min64(n, t->k);
      std::partial_sort(keys, keys + k, keys + n, std::greater<unsigned long long>());
      memcpy(out + q * t->k, keys, k * 8);
    }
    times[i] = (float)((double)(gpuir__now() - before) / 1e6);
  }
  qsort(times, repeat, sizeof *times, gcl_compare_ms);
  *ms = (double)times[repeat / 2];
  return GPUIR_OK;
}

extern "C" int gpuir_cuda_lab_topk(gpuir_cuda_lab *lab, const gpuir_hit *candidates, const uint32_t *start,
                                   size_t nq, size_t k, const char *ranking, unsigned repeat, gpuir_hit *hits,
                                   uint32_t *counts, gpuir_cuda_lab_result *result, gpuir_error *err) {
  gpuir_cuda_lab_result r;
  gcl_topk t;
  unsigned long long *work, *copy;
  const uint32_t *device_start;
  uint64_t n;
  size_t q, i;
  int how = 0, status;
  memset(&r, 0, sizeof r);
  if (!lab || !lab->queries || !candidates || !start || !nq || !k || !ranking || !hits || !counts)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0,
                       "gpuir_cuda_lab_topk: nothing to do, or no room for queries");
  while (how < GCL_RANKINGS && strcmp(gcl_rankings[how], ranking) != 0) how++;
  if (how == GCL_RANKINGS)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "the device knows no ranking named \"%s\"", ranking);
  n = start[nq];
  if (nq > lab->queries || k > GC_K_MOST || n > lab->room / 2 || nq * (uint64_t)k > lab->room / 2)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "more candidates or hits than the lab has room for");
  GC_TRY(cudaSetDevice(lab->device), "choosing the device");
  work = (unsigned long long *)gpuir__alloc(&lab->a, (size_t)(n + nq * k + 1) * 8);
  if (!work) return gpuir__fail_nomem(err);
  for (i = 0; i < n; i++)
    work[i] = (unsigned long long)candidates[i].score << 32 | (uint32_t)~candidates[i].docid;
  t.keys = (const unsigned long long *)lab->out; /* room for half as many keys as docIDs */
  t.spare = (unsigned long long *)lab->batch.cand[0];
  copy = (unsigned long long *)lab->batch.cand[1];
  t.out = (unsigned long long *)lab->batch.pos[0];
  t.nq = (uint32_t)nq;
  t.k = (uint32_t)k;
  for (t.size = 2; t.size < k; t.size *= 2) {}
  device_start = (const uint32_t *)lab->batch.pos[1];
  t.start = device_start;
  t.count = NULL;
  status = GPUIR_OK;
  if (cudaMemcpy((void *)t.keys, work, (size_t)n * 8, cudaMemcpyHostToDevice) != cudaSuccess ||
      cudaMemset(t.out, 0, nq * k * 8) != cudaSuccess || /* a query with fewer candidates fills fewer */
      cudaMemcpy((void *)device_start, start, (nq + 1) * 4, cudaMemcpyHostToDevice) != cudaSuccess ||
      cudaFuncSetAttribute(gcl_selection<GCL_BUCKET>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           16384 * 8) != cudaSuccess ||
      cudaFuncSetAttribute(gcl_selection<GCL_RADIX_SELECT>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           16384 * 8) != cudaSuccess)
    status = gc_fail(err, cudaGetLastError(), "sending keys");
  if (!status && how == GCL_PARTIAL_SORT)
    status = gcl_partial_sort(lab, &t, start, repeat, work, work + n, &r.ms, err);
  else if (!status)
    status = gcl_time(
        lab, repeat, &r.ms, [&] { return gcl_launch_topk(lab, &t, how, copy, err); }, err);
  if (!status && how != GCL_PARTIAL_SORT &&
      cudaMemcpy(work + n, t.out, nq * k * 8, cudaMemcpyDeviceToHost) != cudaSuccess)
    status = gc_fail(err, cudaGetLastError(), "fetching keys");
  for (q = 0; q < nq && !status; q++) {
    counts[q] = (uint32_t)gpuir__min64(k, start[q + 1] - start[q]);
    for (i = 0; i < counts[q]; i++) {
      unsigned long long key = work[n + q * k + i];
      hits[q * k + i].docid = ~(uint32_t)key;
      hits[q * k + i].score = (uint32_t)(key >> 32);
    }
  }
  gpuir__free(&lab->a, work, (size_t)(n + nq * k + 1) * 8);
  r.values = n;
  if (!status && result) *result = r;
  return status;
}

/* ============================================================================
 * 10  Searching by the laboratory's methods
 *
 * A searcher whose AND is one of the methods above and whose OR has an accumulator for each document in memory (Ding et
 * al. 2009, section 8.3), both ranked by one of the ways above: the baselines of the engine, with the same hits.
 * ==========================================================================*/

#define GCL_QUERIES 1024u /* of a batch at most */
#define GCL_TERMS 8192u
#define GCL_OUT (1u << 21) /* hits of a batch at most */

/* A query of a batch. */
typedef struct gcl_job {
  gc_job job;        /* only its norm and its terms */
  uint32_t slot, to; /* OR: its accumulators; where its hits go */
} gcl_job;

typedef struct gcl_searcher {
  gpuir_cuda *cuda;
  gpuir_allocator a;
  gpuir__engine *engine;
  gpuir_cuda_lab lab; /* runs of queries; its lists are a batch's */
  int how, ranking;
  uint64_t stride, slots; /* documents, rounded up; accumulators of so many queries */
  gc_term *terms;
  gcl_job *jobs;
  gcl_list *lists;
  uint32_t *query_lists, *query_start, *blocks,
      *starts;             /* blocks: of OR's terms before; starts: of each query's keys */
  uint8_t *inlined;        /* lists of one docID, coded: 16 bytes each */
  unsigned long long *out; /* k keys a query */
  void *host;
  size_t host_size;
  gc_term *dterms;
  gcl_job *djobs;
  gcl_list *dlists;
  uint32_t *dblocks, *dstarts, *dcounts, *sums; /* sums: the accumulators */
  uint8_t *dinlined;
  unsigned long long *keys[4], *dout; /* keys; moved together; two for sorting */
  gcl_clock clock;
  double ms[2][GPUIR_CUDA_LAB_STEPS]; /* AND, OR */
} gcl_searcher;

/* Starts the clock of a batch. */
static void gcl_clock_start(gcl_searcher *x) {
  x->clock.n = 0;
  gcl_mark(&x->lab, GPUIR_CUDA_LAB_SEND);
}

/* Adds up the steps of a batch that is done. */
static int gcl_clock_read(gcl_searcher *x, int or_, gpuir_error *err) {
  unsigned i;
  for (i = 1; i < x->clock.n; i++) {
    float ms = 0;
    GC_TRY(cudaEventElapsedTime(&ms, x->clock.event[i - 1], x->clock.event[i]), "timing");
    x->ms[or_][x->clock.step[i]] += (double)ms;
  }
  return GPUIR_OK;
}

/* The scores of a chunk of AND's candidates, and which of them no negated list holds. Per term: what gcl_block_search
 * does for it, one frequency and one division a candidate. Counted, 256 queries of two lists with 577 matches each: 323
 * instructions and 79 bytes a match, as most are alone in their block. */
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_score(const __grid_constant__ gc_view v, const __grid_constant__ gcl_batch b, const gc_term *terms,
              const gcl_job *jobs, int cand, unsigned long long *keys) {
  __shared__ uint32_t docs[GCL_WARPS][GPUIR__BLOCK];
  uint32_t chunk = blockIdx.x * GCL_WARPS + threadIdx.x / 32, lane = gc_lane(), i, r;
  for (; chunk < b.nchunks; chunk += gridDim.x * GCL_WARPS) {
    const uint32_t q = __ldg(b.chunk_query + chunk), m = b.count[q];
    const uint32_t first = (chunk - b.queries[q].chunk) * GPUIR__BLOCK;
    const uint64_t base = b.queries[q].base + first;
    const gc_job job = jobs[q].job;
    uint32_t d[4], live = 0, score[4] = {0, 0, 0, 0};
    uint64_t where[4];
#pragma unroll
    for (i = 0; i < 4; i++) {
      d[i] = 0;
      if (first + 4 * lane + i < m) {
        live |= 1u << i;
        d[i] = b.cand[cand][base + 4 * lane + i];
      }
    }
    for (r = 0; r < job.nterms && __any_sync(GC_ALL, live); r++) {
      const gc_term t = terms[job.first_term + r];
      uint32_t found = gc_probe(v, t, d, live, where, docs[threadIdx.x / 32]);
      live &= t.negated ? ~found : found;
#pragma unroll
      for (i = 0; i < 4; i++)
        if (!t.negated && (live >> i & 1))
          score[i] +=
              t.q * gc_contribution(t.weight, gc_freq(v, t, (uint32_t)where[i]), gc_norm(v, job, d[i]));
    }
#pragma unroll
    for (i = 0; i < 4; i++)
      if (live >> i & 1) keys[base + 4 * lane + i] = gc_key(score[i], d[i]);
    for (i = 0; i < 4; i++) { /* word i has the candidates of lanes 8i to 8i + 7 */
      uint32_t word = lane / 8 == i ? live << (lane % 8 * 4) : 0;
      word = __reduce_or_sync(GC_ALL, word);
      if (!lane) b.flags[(uint64_t)chunk * 4 + i] = word;
    }
    __syncwarp();
  }
}

/* Moves the keys of the marked candidates together. Counted there: 63 instructions and 13 bytes a match. */
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_gather_keys(const __grid_constant__ gcl_batch b, const unsigned long long *from,
                    unsigned long long *to) {
  uint64_t w = (uint64_t)blockIdx.x * GCL_WARPS + threadIdx.x / 32;
  for (; w < (uint64_t)b.nchunks * 4; w += (uint64_t)gridDim.x * GCL_WARPS) {
    const uint32_t flags = b.flags[w];
    const gcl_query q = b.queries[__ldg(b.chunk_query + w / 4)];
    const uint64_t place = w * 32 + gc_lane();
    uint32_t at = b.at[w / 4], i;
    for (i = 0; i < w % 4; i++) at += __popc(b.flags[w / 4 * 4 + i]);
    if (flags >> gc_lane() & 1) to[q.base + at + __popc(flags & ((1u << gc_lane()) - 1))] = from[place];
  }
}

/* Lists into accumulators in memory: a warp a block. 1 to 1.5 bytes a posting read, and 32 touched for its addition,
 * which is what bounds it: counted 54 bytes, and 7.4 warp instructions a posting. With `negated`, the negated lists
 * clear theirs, once all others are in. */
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_accumulate(const __grid_constant__ gc_view v, const gc_term *terms, const gcl_job *jobs,
                   uint32_t njobs, const uint32_t *blocks, uint32_t nterms, uint32_t *sums, uint64_t stride,
                   bool negated) {
  const uint32_t all = blocks[nterms];
  uint32_t g = blockIdx.x * GCL_WARPS + threadIdx.x / 32, lane = gc_lane(), i;
  for (; g < all; g += gridDim.x * GCL_WARPS) {
    uint32_t lo = 0, hi = nterms, d[4], f[4], n, j;
    while (hi - lo > 1) {
      uint32_t mid = (lo + hi) / 2;
      if (__ldg(blocks + mid) <= g)
        lo = mid;
      else
        hi = mid;
    }
    const gc_term t = terms[lo];
    if ((t.negated != 0) != negated) continue;
    for (j = 0, hi = njobs; hi - j > 1;) { /* whose term it is */
      uint32_t mid = (j + hi) / 2;
      if (jobs[mid].job.first_term <= lo)
        j = mid;
      else
        hi = mid;
    }
    const gcl_job job = jobs[j];
    n = gc_decode_docs(v, t, g - __ldg(blocks + lo), d);
    if (!negated) gc_decode_freqs(v, t, g - __ldg(blocks + lo), f);
#pragma unroll
    for (i = 0; i < 4; i++)
      if (4 * lane + i < n) {
        uint32_t *sum = sums + job.slot * stride + d[i];
        if (negated)
          *sum = 0;
        else
          atomicAdd(sum, t.q * gc_contribution(t.weight, f[i], gc_norm(v, job.job, d[i])));
      }
  }
}

/* The keys of documents that have a score; clears their accumulators. 4 bytes a document and 12 a key; counted 4.0
 * bytes and 1.4 warp instructions a document, one in 28 with a score. */
static __global__ void __launch_bounds__(GCL_THREADS)
    gcl_collect(uint32_t *sums, uint32_t documents, uint64_t stride, uint32_t slots, unsigned long long *keys,
                uint32_t *counts) {
  const uint32_t warps = gridDim.x * GCL_WARPS, lane = gc_lane();
  uint32_t slot;
  for (slot = 0; slot < slots; slot++) {
    uint64_t at = ((uint64_t)blockIdx.x * GCL_WARPS + threadIdx.x / 32) * 32;
    for (; at < documents; at += (uint64_t)warps * 32) {
      uint32_t sum = at + lane < documents ? sums[slot * stride + at + lane] : 0;
      uint32_t vote = __ballot_sync(GC_ALL, sum != 0), to = 0;
      if (!vote) continue;
      if (!lane) to = atomicAdd(counts + slot, __popc(vote));
      to = __shfl_sync(GC_ALL, to, 0) + __popc(vote & ((1u << lane) - 1));
      if (sum) {
        keys[slot * stride + to] = gc_key(sum, (uint32_t)at + lane);
        sums[slot * stride + at + lane] = 0;
      }
    }
  }
}

/* The terms of a query, the positive ones in front. */
static int gcl_describe(gcl_searcher *x, const gpuir_query *q, uint32_t *nterms, gcl_job *job,
                        gpuir_error *err) {
  unsigned i, negated;
  memset(job, 0, sizeof *job);
  job->job.norm_a = q->norm.a;
  job->job.norm_b = q->norm.b;
  job->job.stored = q->stored_bm25 != 0;
  job->job.first_term = *nterms;
  for (negated = 0; negated < 2; negated++)
    for (i = 0; i < q->n; i++) {
      const gpuir__query_term *from = &q->terms[i];
      gc_term *t = &x->terms[*nterms];
      gpuir__list l;
      int status;
      if (from->id == GPUIR__UNKNOWN || (from->negated != 0) != (negated != 0)) continue;
      status = gc_describe(x->cuda, from->id, t, &l, err);
      if (status) return status;
      t->q = from->q;
      t->weight = from->weight;
      t->negated = negated;
      ++*nterms;
      job->job.nterms++;
      job->job.npositive += !negated;
    }
  return GPUIR_OK;
}

/* The list of a term as the runs take it. */
static void gcl_list_of_term(gcl_searcher *x, uint32_t i) {
  const gc_view *v = &x->cuda->view;
  const gc_term *t = &x->terms[i];
  gcl_list *l = &x->lists[i];
  memset(l, 0, sizeof *l);
  l->s.n = t->df;
  l->s.limit = v->documents - 1;
  l->nblocks = t->nblocks;
  x->lab.n[i] = t->df;
  if (t->kind == GC_INLINE) { /* a block of one value, 32 bits wide */
    uint8_t *to = x->inlined + (size_t)i * 16;
    memset(to, 0, 16);
    to[0] = 32;
    gpuir__store32(to + 1, gpuir__min32((uint32_t)t->docs, l->s.limit));
    l->s.bytes = x->dinlined + (size_t)i * 16;
    l->s.len = 5;
    l->nblocks = 1;
    return;
  }
  l->s.bytes = (const uint8_t *)v->docids + t->docs;
  l->s.len = t->docs_len;
  if (t->kind == GC_LONG) {
    l->s.offset = v->docs_off + t->first_block;
    l->s.width = v->docs_width + t->first_block;
    l->s.last = v->last + t->first_block;
  }
}

/* Ranks nq queries' keys and hands out their hits. */
static int gcl_rank(gcl_searcher *x, const unsigned long long *keys, const uint32_t *counts, size_t nq,
                    uint32_t k, const gcl_job *jobs, size_t stride, gpuir_hit *hits, uint32_t *found,
                    gpuir_error *err) {
  gcl_topk t;
  uint32_t *n = x->query_start;
  size_t q, i;
  int status;
  memset(&t, 0, sizeof t);
  t.keys = keys;
  t.start = x->dstarts;
  t.count = counts;
  t.spare = x->keys[2];
  t.out = x->dout;
  t.nq = (uint32_t)nq;
  t.k = k;
  for (t.size = 2; t.size < k; t.size *= 2) {}
  GC_TRY(cudaMemsetAsync(x->dout, 0, nq * k * 8, x->lab.stream),
         "clearing hits"); /* some queries have fewer */
  status = gcl_launch_topk(&x->lab, &t, x->ranking, x->keys[3], err);
  if (status) return status;
  GC_TRY(cudaMemcpyAsync(x->out, x->dout, nq * k * 8, cudaMemcpyDeviceToHost, x->lab.stream),
         "fetching hits");
  GC_TRY(cudaMemcpyAsync(n, counts, nq * 4, cudaMemcpyDeviceToHost, x->lab.stream), "fetching hits");
  gcl_mark(&x->lab, GPUIR_CUDA_LAB_SELECT);
  GC_TRY(cudaStreamSynchronize(x->lab.stream), "running kernels");
  for (q = 0; q < nq; q++) {
    gpuir_hit *to = hits + jobs[q].to * stride;
    found[jobs[q].to] = gpuir__min32(n[q], k);
    for (i = 0; i < found[jobs[q].to]; i++) {
      to[i].docid = gpuir__min32(~(uint32_t)x->out[q * k + i], x->cuda->view.documents - 1);
      to[i].score = (uint32_t)(x->out[q * k + i] >> 32);
    }
  }
  return GPUIR_OK;
}

static int gcl_send_terms(gcl_searcher *x, uint32_t nterms, size_t njobs, gpuir_error *err) {
  cudaStream_t s = x->lab.stream;
  GC_TRY(cudaMemcpyAsync(x->dterms, x->terms, nterms * sizeof *x->terms, cudaMemcpyHostToDevice, s),
         "sending queries");
  GC_TRY(cudaMemcpyAsync(x->djobs, x->jobs, njobs * sizeof *x->jobs, cudaMemcpyHostToDevice, s),
         "sending queries");
  return GPUIR_OK;
}

/* The jobs x->jobs[0..n) as AND. */
static int gcl_search_and(gcl_searcher *x, uint32_t nterms, size_t n, uint32_t k, size_t stride,
                          gpuir_hit *hits, uint32_t *found, gpuir_error *err) {
  gpuir_cuda_lab *lab = &x->lab;
  const gcl_batch *b = &lab->batch;
  uint32_t i, at = 0;
  size_t q;
  gcl_run run;
  int status;
  if (!n) return GPUIR_OK;
  memset(&run, 0, sizeof run);
  run.how = x->how;
  run.coded = 1;
  run.levels = x->how >= GCL_PMF && x->how < GCL_MERGEPATH ? (unsigned)(x->how - GCL_PMF) : 0;
  for (i = 0; i < nterms; i++) gcl_list_of_term(x, i);
  for (q = 0; q < n; q++) {
    x->query_start[q] = at;
    for (i = 0; i < x->jobs[q].job.npositive; i++) x->query_lists[at++] = x->jobs[q].job.first_term + i;
  }
  x->query_start[n] = at;
  lab->nlists = lab->all = nterms;
  status = gcl_plan_run(lab, x->query_lists, x->query_start, n, &run, err);
  if (status) return status;
  for (q = 0; q < n; q++) x->starts[q] = (uint32_t)((const gcl_query *)(const void *)lab->plan)[q].base;
  gcl_clock_start(x);
  status = gcl_send_terms(x, nterms, n, err);
  if (status) return status;
  GC_TRY(cudaMemcpyAsync(x->dlists, x->lists, nterms * sizeof *x->lists, cudaMemcpyHostToDevice, lab->stream),
         "sending queries");
  GC_TRY(cudaMemcpyAsync(x->dinlined, x->inlined, (size_t)nterms * 16, cudaMemcpyHostToDevice, lab->stream),
         "sending queries");
  GC_TRY(cudaMemcpyAsync(x->dstarts, x->starts, n * 4, cudaMemcpyHostToDevice, lab->stream),
         "sending queries");
  status = gcl_launch_run(lab, &run, err);
  if (status) return status;
  gcl_score<<<gcl_grid(lab, b->nchunks, GCL_WARPS), GCL_THREADS, 0, lab->stream>>>(
      x->cuda->view, *b, x->dterms, x->djobs, run.side, x->keys[0]);
  gcl_offsets<<<gcl_grid(lab, b->nq, 1), GCL_THREADS, 0, lab->stream>>>(*b);
  gcl_gather_keys<<<gcl_grid(lab, (uint64_t)b->nchunks * 4, GCL_WARPS), GCL_THREADS, 0, lab->stream>>>(
      *b, x->keys[0], x->keys[1]);
  GC_TRY(cudaGetLastError(), "scoring");
  gcl_mark(lab, GPUIR_CUDA_LAB_SCORE);
  status = gcl_rank(x, x->keys[1], b->count, n, k, x->jobs, stride, hits, found, err);
  return status ? status : gcl_clock_read(x, 0, err);
}

/* The jobs x->jobs[0..n), n <= slots, as OR. */
static int gcl_search_or(gcl_searcher *x, uint32_t nterms, size_t n, uint32_t k, size_t stride,
                         gpuir_hit *hits, uint32_t *found, gpuir_error *err) {
  gpuir_cuda_lab *lab = &x->lab;
  const gc_view *v = &x->cuda->view;
  const unsigned grid = (unsigned)lab->processors * 8;
  uint64_t all = 0;
  uint32_t i;
  int status, negated, any_negated = 0;
  for (i = 0; i < nterms; i++) {
    x->blocks[i] = (uint32_t)all;
    all += gpuir__max32(1, x->terms[i].nblocks);
    any_negated |= x->terms[i].negated != 0;
  }
  if (all >> 32)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "CUDA: the lists of a query have too many blocks");
  x->blocks[nterms] = (uint32_t)all;
  for (i = 0; i < n; i++) {
    x->jobs[i].slot = i;
    x->starts[i] = (uint32_t)(i * x->stride);
  }
  gcl_clock_start(x);
  status = gcl_send_terms(x, nterms, n, err);
  if (status) return status;
  GC_TRY(cudaMemcpyAsync(x->dblocks, x->blocks, (nterms + 1) * 4, cudaMemcpyHostToDevice, lab->stream),
         "sending queries");
  GC_TRY(cudaMemcpyAsync(x->dstarts, x->starts, n * 4, cudaMemcpyHostToDevice, lab->stream),
         "sending queries");
  GC_TRY(cudaMemsetAsync(x->dcounts, 0, n * 4, lab->stream), "clearing counters");
  gcl_mark(lab, GPUIR_CUDA_LAB_SEND);
  for (negated = 0; negated <= any_negated; negated++)
    gcl_accumulate<<<grid, GCL_THREADS, 0, lab->stream>>>(*v, x->dterms, x->djobs, (uint32_t)n, x->dblocks,
                                                          nterms, x->sums, x->stride, negated != 0);
  gcl_mark(lab, GPUIR_CUDA_LAB_SCORE);
  gcl_collect<<<grid, GCL_THREADS, 0, lab->stream>>>(x->sums, v->documents, x->stride, (uint32_t)n,
                                                     x->keys[0], x->dcounts);
  GC_TRY(cudaGetLastError(), "scoring");
  gcl_mark(lab, GPUIR_CUDA_LAB_COLLECT);
  status = gcl_rank(x, x->keys[0], x->dcounts, n, k, x->jobs, stride, hits, found, err);
  return status ? status : gcl_clock_read(x, 1, err);
}

/* Whether a query is evaluated as AND first, as OR at once, or not at all: 1, 2, 0. */
static int gcl_mode(const gpuir_query *q) {
  unsigned i, positive = 0;
  for (i = 0; i < q->n; i++) positive += q->terms[i].id != GPUIR__UNKNOWN && !q->terms[i].negated;
  if (!positive || (q->mode == GPUIR_AND && q->nunknown)) return 0;
  return q->mode == GPUIR_OR || (q->mode == GPUIR_ANDOR && q->nunknown) ? 2 : 1;
}

static int gcl_search(void *context, const gpuir_query *const *queries, size_t nq, size_t k, gpuir_hit *hits,
                      uint32_t *counts, gpuir_error *err) {
  gcl_searcher *x = (gcl_searcher *)context;
  const uint64_t start = x->engine->timeout_ns ? gpuir__now() : 0;
  const size_t stride = k;
  size_t done = 0, pass, n;
  uint32_t nterms;
  int status = GPUIR_OK;
  if (k > x->cuda->ix->stat.documents) k = (size_t)x->cuda->ix->stat.documents;
  if (!k || !nq) return GPUIR_OK;
  if (k > GC_K_MOST)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "the CUDA backend ranks at most %u hits a query",
                       GC_K_MOST);
  GC_TRY(cudaSetDevice(x->cuda->device), "choosing the device");
  memset(counts, 0, nq * sizeof *counts);
  for (pass = 0; pass < 2 && !status; pass++) /* AND, then OR where it is asked for or needed */
    for (done = 0; done < nq && !status;) {
      uint64_t postings = 0;
      const size_t most = (size_t)gpuir__min64(pass ? x->slots : GCL_QUERIES, GCL_OUT / k);
      for (n = 0, nterms = 0; done < nq && n < most && !status; done++) {
        const gpuir_query *q = queries[done];
        const int mode = gcl_mode(q);
        uint32_t longest = 0;
        unsigned i;
        if (!mode || (!pass && mode == 2)) continue;
        if (pass && mode == 1 && (q->mode != GPUIR_ANDOR || counts[done] == k)) continue;
        for (i = 0; i < q->n; i++) longest = gpuir__max32(longest, q->terms[i].df);
        if (n && (nterms + q->n > GCL_TERMS || (!pass && postings + longest + GPUIR__BLOCK > x->lab.room)))
          break;
        postings += longest + GPUIR__BLOCK;
        status = gcl_describe(x, q, &nterms, &x->jobs[n], err);
        x->jobs[n++].to = (uint32_t)done;
      }
      if (!status && x->engine->cancel && __atomic_load_n(x->engine->cancel, __ATOMIC_RELAXED))
        status = gpuir__fail(err, GPUIR_E_CANCELLED, 0, "the search was cancelled");
      if (!status && start && gpuir__now() - start > x->engine->timeout_ns * nq)
        status = gpuir__fail(err, GPUIR_E_DEADLINE, 0, "the search exceeded its time limit");
      if (!status && n)
        status = pass ? gcl_search_or(x, nterms, n, (uint32_t)k, stride, hits, counts, err)
                      : gcl_search_and(x, nterms, n, (uint32_t)k, stride, hits, counts, err);
      __atomic_fetch_add(&x->cuda->info.batches, 1, __ATOMIC_RELAXED);
    }
  if (status) { /* accumulators may be left over */
    (void)cudaMemsetAsync(x->sums, 0, x->slots * x->stride * 4, x->lab.stream);
    (void)cudaStreamSynchronize(x->lab.stream);
  }
  __atomic_fetch_add(&x->cuda->info.queries, nq, __ATOMIC_RELAXED);
  return status;
}

static void gcl_detach(void *context) {
  gcl_searcher *x = (gcl_searcher *)context;
  gpuir_allocator a;
  unsigned i;
  if (!x) return;
  a = x->a;
  (void)cudaSetDevice(x->cuda->device);
  if (x->lab.stream) {
    (void)cudaStreamSynchronize(x->lab.stream);
    (void)cudaStreamDestroy(x->lab.stream);
  }
  while (x->lab.nmemory) (void)cudaFree(x->lab.memory[--x->lab.nmemory]);
  for (i = 0; i < GCL_MARKS; i++)
    if (x->clock.event[i]) (void)cudaEventDestroy(x->clock.event[i]);
  (void)cudaFreeHost(x->lab.plan);
  (void)cudaFreeHost(x->host);
  (void)cudaGetLastError();
  gpuir__free(&a, x, sizeof *x);
}

static int gcl_attach(gcl_searcher *x, gpuir_error *err) {
  gpuir_cuda_lab *lab = &x->lab;
  gpuir_cuda_lab_desc desc;
  cudaDeviceProp prop;
  uint8_t *at;
  void *p = NULL;
  unsigned i;
  int status = GPUIR_OK;
  memset(&desc, 0, sizeof desc);
  desc.queries = GCL_QUERIES;
  desc.terms = GCL_TERMS;
  lab->a = x->a;
  lab->device = x->cuda->device;
  lab->codec = GCL_BP128;
  for (i = 0; i < GCL_MARKS; i++) GC_TRY(cudaEventCreate(&x->clock.event[i]), "creating an event");
  lab->clock = &x->clock;
  GC_TRY(cudaGetDeviceProperties(&prop, lab->device), "looking at the device");
  lab->processors = prop.multiProcessorCount;
  x->stride = (x->cuda->view.documents + (uint64_t)GPUIR__BLOCK - 1) / GPUIR__BLOCK * GPUIR__BLOCK;
  lab->room = gpuir__max64(gpuir__max64(x->stride, 1u << 20), gpuir__min64(8 * x->stride, 1u << 26));
  x->slots = gpuir__min64(GCL_QUERIES, gpuir__min64(lab->room, UINT32_MAX) / x->stride);
  GC_TRY(cudaStreamCreateWithFlags(&lab->stream, cudaStreamNonBlocking), "creating a stream");
  x->host_size = GCL_TERMS * (sizeof *x->terms + sizeof *x->lists + 16 + 3 * 4) +
                 GCL_QUERIES * (sizeof *x->jobs + 8) + (size_t)GCL_OUT * 8 + 2048;
  GC_TRY(cudaMallocHost(&x->host, x->host_size), "allocating pinned memory");
  at = (uint8_t *)x->host;
  x->terms = (gc_term *)gc_carve(&at, GCL_TERMS * sizeof *x->terms);
  x->lists = (gcl_list *)gc_carve(&at, GCL_TERMS * sizeof *x->lists);
  x->inlined = (uint8_t *)gc_carve(&at, GCL_TERMS * 16);
  x->query_lists = (uint32_t *)gc_carve(&at, GCL_TERMS * 4);
  x->blocks = (uint32_t *)gc_carve(&at, (GCL_TERMS + 1) * 4);
  lab->n = (uint32_t *)gc_carve(&at, GCL_TERMS * 4);
  x->jobs = (gcl_job *)gc_carve(&at, GCL_QUERIES * sizeof *x->jobs);
  x->query_start = (uint32_t *)gc_carve(&at, (GCL_QUERIES + 1) * 4);
  x->starts = (uint32_t *)gc_carve(&at, GCL_QUERIES * 4);
  x->out = (unsigned long long *)at;
  status = gcl_device_alloc(lab, lab->room * 4, &p, err);
  lab->out = (uint32_t *)p;
  if (!status) status = gcl_device_alloc(lab, GCL_TERMS * sizeof *x->lists, &p, err);
  x->dlists = (gcl_list *)p;
  lab->lists = x->dlists;
  if (!status) status = gcl_open_batch(lab, &desc, err);
  if (!status) status = gcl_device_alloc(lab, GCL_TERMS * sizeof *x->terms, &p, err);
  x->dterms = (gc_term *)p;
  if (!status) status = gcl_device_alloc(lab, GCL_QUERIES * sizeof *x->jobs, &p, err);
  x->djobs = (gcl_job *)p;
  if (!status) status = gcl_device_alloc(lab, GCL_TERMS * 16 + GC_PAD, &p, err);
  x->dinlined = (uint8_t *)p;
  if (!status) status = gcl_device_alloc(lab, (GCL_TERMS + 1) * 4, &p, err);
  x->dblocks = (uint32_t *)p;
  if (!status) status = gcl_device_alloc(lab, GCL_QUERIES * 4, &p, err);
  x->dstarts = (uint32_t *)p;
  if (!status) status = gcl_device_alloc(lab, GCL_QUERIES * 4, &p, err);
  x->dcounts = (uint32_t *)p;
  if (!status) status = gcl_device_alloc(lab, x->slots * x->stride * 4, &p, err);
  x->sums = (uint32_t *)p;
  for (i = 0; i < 4 && !status; i++) {
    status = gcl_device_alloc(lab, (lab->room + GPUIR__BLOCK * (uint64_t)GCL_QUERIES) * 8, &p, err);
    x->keys[i] = (unsigned long long *)p;
  }
  if (!status) status = gcl_device_alloc(lab, (uint64_t)GCL_OUT * 8, &p, err);
  x->dout = (unsigned long long *)p;
  if (status) return status;
  GC_TRY(cudaMemset(x->sums, 0, x->slots * x->stride * 4), "clearing memory");
  GC_TRY(cudaMemset(x->dinlined, 0, GCL_TERMS * 16 + GC_PAD), "clearing memory");
  GC_TRY(cudaDeviceSynchronize(), "clearing memory"); /* the searcher's stream does not wait for this one */
  GC_TRY(
      cudaFuncSetAttribute(gcl_selection<GCL_BUCKET>, cudaFuncAttributeMaxDynamicSharedMemorySize, 16384 * 8),
      "sizing a launch");
  GC_TRY(cudaFuncSetAttribute(gcl_selection<GCL_RADIX_SELECT>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              16384 * 8),
         "sizing a launch");
  lab->batch.crossover = x->how == GCL_MERGEPATH ? 1e30f : 128.0f;
  return GPUIR_OK;
}

extern "C" int gpuir_cuda_lab_attach(gpuir_searcher *s, gpuir_cuda *cuda, const char *intersection,
                                     const char *ranking, int fallback, gpuir_error *err) {
  gpuir_backend backend;
  gcl_searcher *x;
  int status, how = 0, rank = 0;
  if (!s || !cuda || s->ix != cuda->ix)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0,
                       "gpuir_cuda_lab_attach: NULL, or a searcher of another index");
  while (how < GCL_METHODS && strcmp(gcl_methods[how], intersection ? intersection : "skip") != 0) how++;
  while (rank < GCL_PARTIAL_SORT && strcmp(gcl_rankings[rank], ranking ? ranking : "tree") != 0) rank++;
  if (how == GCL_METHODS || rank == GCL_PARTIAL_SORT)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "the device knows no such intersection or ranking");
  if (how == GCL_ALGORITHM1 || (how > GCL_BINARY && how < GCL_PMF))
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "%s does not search lists coded as bp128",
                       gcl_methods[how]);
  if (cuda->cache)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "CUDA: the index is not all on the device");
  GC_TRY(cudaSetDevice(cuda->device), "choosing the device");
  x = (gcl_searcher *)gpuir__alloc_zero(&s->engine.a, sizeof *x);
  if (!x) return gpuir__fail_nomem(err);
  x->a = s->engine.a;
  x->cuda = cuda;
  x->engine = &s->engine;
  x->how = how;
  x->ranking = rank;
  status = gcl_attach(x, err);
  if (!status) {
    memset(&backend, 0, sizeof backend);
    backend.version = GPUIR_BACKEND_VERSION;
    backend.name = "cuda-lab";
    backend.context = x;
    backend.search = gcl_search;
    backend.close = gcl_detach;
    status = gpuir_searcher_set_backend(s, &backend, fallback);
    if (status) (void)gpuir__fail(err, status, 0, "gpuir_cuda_lab_attach: %s", gpuir_strerror(status));
  }
  if (status) gcl_detach(x);
  return status;
}

extern "C" int gpuir_cuda_lab_steps(const gpuir_searcher *s, double ms[2][GPUIR_CUDA_LAB_STEPS],
                                    gpuir_error *err) {
  if (!s || !ms || !s->has_backend || s->backend.search != gcl_search)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_lab_steps: not a searcher of the laboratory");
  memcpy(ms, ((const gcl_searcher *)s->backend.context)->ms, sizeof(double[2][GPUIR_CUDA_LAB_STEPS]));
  return GPUIR_OK;
}
