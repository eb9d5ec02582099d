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
 *
 * The kernels of the literature stand apart, in tools/lab/gpuir_lab.cu, which includes this file.
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

/* Refuses a structure of the program's copy of the implementation that this copy would misread. */
static int gc_refuse(gpuir_error *err, const char *function) {
  return gpuir__fail(err, GPUIR_E_VERSION, 0,
                     "%s: gpuir_cuda.cu and the program were compiled from different versions of gpuir.h",
                     function);
}

extern "C" int gpuir_cuda_open(const gpuir_index *ix, const gpuir_cuda_desc *desc, gpuir_cuda **cuda,
                               gpuir_error *err) {
  gpuir_cuda *c;
  int status;
  if (cuda) *cuda = NULL;
  if (!ix || !cuda) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_open: index or cuda is NULL");
  if (ix->layout != gpuir__index_layout()) return gc_refuse(err, "gpuir_cuda_open");
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
    for (s = 0; s < GPUIR__SEEDS && gpuir__seed_ranks[s] < job->k; s++) {}
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
  if (!s || !cuda) return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_attach: NULL");
  if (s->layout != gpuir__searcher_layout()) return gc_refuse(err, "gpuir_cuda_attach");
  if (s->ix != cuda->ix)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "gpuir_cuda_attach: a searcher of another index");
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
