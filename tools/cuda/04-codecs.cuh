
/* ========================
 * [cuda-04-codecs]  blocks of any codec, by a warp; recoding as bp128
 *
 * Kernels decode by the functions of gpuir.h by which the CPU decodes (GPUIR_HD), so that each format is defined once.
 * Lane t has values 4t to 4t + 3 of a block. A unary vector is read 16 bits per lane; exceptions are gathered in shared
 * memory. The engine decodes other codecs only to recode them; the laboratory decodes all of them.
 * tools/results/cuda_notes.txt says what was predicted, counted and measured of each decoder.
 *
 * Uses      [cuda-03-bp128].
 * Start at  gc_decode (a block), gc_recode (a batch of lists).
 * Tests     tests/gpu/test_lab.c, and test_cuda.c on indexes in other codecs
 * ======================*/

#define GC_PLAIN 99u /* beside the codecs' ids: a list that is not coded */

/* A list on the device, in any codec. */
typedef struct gc_coded {
  gpuir__stream s; /* device addresses; it has neither codec nor scratch */
  const uint32_t *docs; /* GC_PLAIN: its docIDs */
  uint32_t nblocks, number;
  const uint8_t *slots; /* pfd-list: its low parts, and `number` exceptions, */
  const uint32_t *overflows, *positions; /* which have been decoded before */
  uint32_t bits; /* of a low part */
} gc_coded;

/* Clears the 128 words of shared memory in which exceptions' high parts are gathered. */
static __device__ __forceinline__ void gc_patch_begin(uint32_t *sh) {
  __syncwarp();
  *(uint4 *)(sh + 4 * gc_lane()) = make_uint4(0, 0, 0, 0);
  __syncwarp();
}

/* Adds the high parts that were gathered to the lane's values. */
static __device__ __forceinline__ void gc_patch_end(const uint32_t *sh, uint32_t v[4]) {
  uint4 x;
  __syncwarp();
  x = *(const uint4 *)(sh + 4 * gc_lane());
  v[0] |= x.x;
  v[1] |= x.y;
  v[2] |= x.z;
  v[3] |= x.w;
}

/* Does what gpuir__unary_stops does, by a warp: each lane reads 16 bits, and writes the places of its marks behind
 * those of lower lanes. */
static __device__ __forceinline__ void gc_unary_marks(const gpuir__unary &u, uint64_t start, uint64_t rank,
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
    before = gc_scan(n);
    total = __shfl_sync(GC_WARP, before, 31);
    before += got - n;
    for (; x; x &= x - 1, before++)
      if (before < count) pos[before] = (uint32_t)(byte * 8 - start) + __ffs((int)x) - 1;
    got += total;
    at += 64;
    empty = total ? 0 : empty + 1;
    if (!total && u.sums) { /* a long gap: the sums say where the next mark is */
      uint64_t c = at * 8 >> u.log;
      if (c >= u.nsums) break;
      c = gpuir__unary_piece(&u, c, u.nsums, rank + got);
      at = gpuir__max64(at, (c << u.log) / 8);
    }
  }
  for (i = got + lane; i < count; i += 32) pos[i] = 0;
  __syncwarp();
}

/* Decodes vbyte: each lane reads 4 bytes and notes where values end. */
static __device__ __forceinline__ void gc_vbyte(const gpuir__stream &s, uint32_t block, uint32_t count, uint32_t *ends,
    uint32_t v[4]) {
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
    before = gc_scan(n);
    total = __shfl_sync(GC_WARP, before, 31);
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

/* Returns which of a lane's values a chain of linked exceptions visits, a bit each. The chain begins at value `first`;
 * each value says how far ahead the next one is, less one. Short chains are followed, link by link. In a long chain
 * each value finds where 1, 2, 4, ... links lead, while visited values mark those that they lead to: this takes 7
 * rounds at most. Values that are marked behind the chain's end have a rank beyond its length. */
static __device__ __forceinline__ uint32_t gc_chain(uint32_t first, uint32_t number, uint32_t count,
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

/* Decodes pfd, newpfd and optpfd. Linked exceptions form a chain: gc_chain finds them, then each lane fetches its
 * own. */
static __device__ __forceinline__ void gc_pfd(const gpuir__stream &s, uint32_t block, uint32_t count, uint32_t *sh,
    uint32_t v[4]) {
  uint32_t lane = gc_lane(), i, e;
  gpuir__pfd_block p;
  gpuir__pfd_find(&s, block, count, &p);
  gc_packed4(p.slots, p.b, 0, count, v);
  if (p.form == GPUIR__PFD_LINKED) {
    const uint32_t mine = gc_chain(p.first, p.number, count, v, sh);
    uint32_t rank = gc_scan(__popc(mine)) - __popc(mine);
#pragma unroll
    for (i = 0; i < 4; i++) {
      if ((mine >> i & 1) && rank < p.number) v[i] = gpuir__pfd_linked(&p, rank);
      rank += mine >> i & 1;
    }
  } else if (p.form == GPUIR__PFD_APART && p.b < 32) {
    gc_patch_begin(sh);
    for (e = lane; e < p.number; e += 32)
      atomicOr(sh + gpuir__packed_value(p.positions, 7, e), gpuir__packed_value(p.overflows, p.h, e) << p.b);
    gc_patch_end(sh, v);
  } else if (p.form == GPUIR__PFD_MARKED) {
#pragma unroll
    for (i = 0; i < 4; i++) v[i] |= gpuir__bp128_high_of(&p.marked, 4 * lane + i);
  }
}

/* Decodes values from .. from + take - 1 of a segment. They become the block's values from `done` on. */
static __device__ __forceinline__ void gc_para(const gpuir__para &p, uint32_t from, uint32_t done, uint32_t take,
    uint32_t *sh, uint32_t x[4]) {
  const uint32_t lane = gc_lane(), first = 4 * lane - done;
  uint32_t i, e;
  if (p.b <= 14) { /* as in gc_packed4, but the first of the four may lie before them */
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
    for (i = 0; i < 4; i++) x[i] = first + i < take ? gc_packed(p.slots, p.b, from + first + i) : 0;
  }
  if (p.en && p.b < 32) {
    gc_patch_begin(sh);
    for (e = lane; e - lane < p.en; e += 32) { /* indices increase: at most one round reaches behind */
      const uint32_t at = e < p.en ? gc_packed(p.indices, p.ib, e) : UINT32_MAX;
      if (at - from < take) atomicOr(sh + done + at - from, gc_packed(p.overflows, p.hb, e) << p.b);
      if (__any_sync(GC_WARP, at >= from + take)) break;
    }
    gc_patch_end(sh, x);
  }
}

/* Decodes parapfor. */
static __device__ __forceinline__ void gc_parapfor(const gpuir__stream &s, uint32_t block, uint32_t count, uint32_t *sh,
    uint32_t v[4]) {
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
    gc_para(p, from, done, take, sh, x);
#pragma unroll
    for (i = 0; i < 4; i++)
      if (4 * lane + i - done < take) v[i] = x[i];
    done += take;
    start += length;
    from = 0;
  }
}

/* Decodes a piece of a block: deviations, which are added to their line. */
static __device__ __forceinline__ void gc_line_piece(const gpuir__line &line, uint32_t base, const gpuir__para &p,
    uint32_t from, uint32_t done, uint32_t take, uint32_t limit, uint32_t *sh, uint32_t v[4]) {
  uint32_t x[4], i;
  gc_para(p, from, done, take, sh, x);
#pragma unroll
  for (i = 0; i < 4; i++) {
    uint32_t at = 4 * gc_lane() + i - done;
    if (at < take) v[i] = min(x[i] + gpuir__line_at(&line, base + at), limit);
  }
}

/* Returns which of the codecs by lines `codec` is. */
static __device__ __forceinline__ int gc_lrc_kind(uint32_t codec) {
  return codec == GPUIR__ID_LRC ? GPUIR__LRC : codec == GPUIR__ID_LRCSEG ? GPUIR__LRCSEG : GPUIR__SEGLRC;
}

/* Decodes lrc, lrcseg and seglrc. No value waits for a sum of those before it. */
static __device__ __forceinline__ void gc_lrc(const gpuir__stream &s, int kind, uint32_t block, uint32_t count,
    uint32_t *sh, uint32_t v[4]) {
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
    gc_line_piece(line, base + from, p, from, done, take, s.limit, sh, v);
    done += take;
    start += length;
    from = 0;
  }
}

/* Decodes hslrc of a list with a directory; without one it is seglrc. A block reaches over several buckets: each lane
 * fetches where one of the next 32 buckets begins. */
static __device__ __forceinline__ void gc_hslrc(const gpuir__stream &s, uint32_t block, uint32_t count, uint32_t *sh,
    uint32_t v[4]) {
  const uint32_t start = block * GPUIR__BLOCK, lane = gc_lane();
  uint32_t done = 0, h, begins;
  gpuir__hslrc_list list;
  v[0] = v[1] = v[2] = v[3] = 0;
  (void)gpuir__hslrc_find(&s, &list);
  h = s.offset[block];
  if (h >= list.buckets) return; /* damaged */
  begins = gpuir__hslrc_first(&list, min(h + lane, list.buckets));
  while (done < count) {
    const uint32_t i = start + done;
    uint32_t behind = __ballot_sync(GC_WARP, begins > i), k, first, size, take;
    gpuir__line line;
    gpuir__para p;
    if (!behind || behind & 1) { /* more than 31 empty ones, or damaged */
      h = gpuir__hslrc_bucket(&list, h, i);
      if (h >= list.buckets) return;
      begins = gpuir__hslrc_first(&list, min(h + lane, list.buckets));
      behind = 2;
    }
    k = __ffs((int)behind) - 2;
    first = __shfl_sync(GC_WARP, begins, k);
    size = __shfl_sync(GC_WARP, begins, k + 1) - first;
    gpuir__hslrc_segment(&list, h + k, size, i - first, &line, &p);
    take = min(min(size - (i - first), count - done), GPUIR__PARA_MOST - (i - first) % GPUIR__PARA_MOST);
    gc_line_piece(line, i - first, p, (i - first) % GPUIR__PARA_MOST, done, take, s.limit, sh, v);
    done += take;
  }
}

/* Decodes ef. gc_qs decodes qs in the same way. */
static __device__ __forceinline__ void gc_ef(const gpuir__stream &s, uint32_t block, uint32_t count, uint32_t prev,
    uint32_t *sh, uint32_t v[4]) {
  uint32_t i, first = 4 * gc_lane();
  gpuir__unary u;
  unsigned b;
  const uint8_t *low = gpuir__ef_find(&s, block, count, &b, &u);
  gc_packed4(low, b, 0, count, v);
  gc_unary_marks(u, 0, 0, count, sh);
#pragma unroll
  for (i = 0; i < 4; i++)
    v[i] = min(gpuir__joined(first + i < count ? sh[first + i] : 0, first + i, b, v[i], prev + 1), s.limit);
}

/* Decodes qs. */
static __device__ __forceinline__ void gc_qs(const gpuir__stream &s, uint32_t block, uint32_t count, uint32_t *sh,
    uint32_t v[4]) {
  const uint64_t at = (uint64_t)block * GPUIR__BLOCK;
  uint32_t i, first = 4 * gc_lane();
  gpuir__halves h;
  (void)gpuir__halves_find(&s, GPUIR__QS_LOG, 0, &h);
  gc_packed4(h.low, h.b, at, count, v);
  gc_unary_marks(h.unary, gpuir__halves_start(&s, block), at, count, sh);
#pragma unroll
  for (i = 0; i < 4; i++)
    v[i] = min(gpuir__joined(first + i < count ? sh[first + i] : 0, first + i, h.b, v[i],
                   (s.offset ? s.offset[block] : 0) << h.b),
        s.limit);
}

/* Decodes rice. The directory makes both of its prefix sums local to the block (Ding et al. 2009, 6.1). */
static __device__ __forceinline__ void gc_rice(const gpuir__stream &s, uint32_t block, uint32_t count, uint32_t prev,
    bool sum, uint32_t *sh, uint32_t v[4]) {
  const uint64_t at = (uint64_t)block * GPUIR__BLOCK;
  uint32_t i, first = 4 * gc_lane();
  gpuir__halves h;
  (void)gpuir__halves_find(&s, GPUIR__RICE_LOG, 1, &h);
  gc_packed4(h.low, h.b, at, count, v);
  gc_unary_marks(h.unary, gpuir__halves_start(&s, block), at, count, sh);
  if (sum) gc_sum(v, prev, UINT32_MAX);
#pragma unroll
  for (i = 0; i < 4; i++)
    v[i] = min(gpuir__joined(first + i < count ? sh[first + i] : 0, first + i, h.b, 0, v[i]), s.limit);
}

/* Decodes pfd-list, which has one width for all values. Its exceptions have been decoded before: by gcl_pfl_node, or by
 * gcl_pfl_tiles and gcl_pfl_exceptions. */
static __device__ __forceinline__ void gc_pfl(const gc_coded &l, uint32_t block, uint32_t count, uint32_t *sh,
    uint32_t v[4]) {
  const uint32_t first = block * GPUIR__BLOCK;
  uint32_t e, end;
  gc_packed4(l.slots, l.bits, first, count, v);
  if (!l.number) return;
  e = l.s.offset ? min(l.s.offset[block], l.number) : 0;
  end = l.s.offset && block + 1 < l.nblocks ? min(l.s.offset[block + 1], l.number) : l.number;
  end = min(end, e + GPUIR__BLOCK); /* whatever the directory says */
  gc_patch_begin(sh);
  for (e += gc_lane(); e < end; e += 32) {
    uint32_t at = l.positions[e] - first;
    if (at < count) atomicOr(sh + at, l.overflows[e] << l.bits);
  }
  gc_patch_end(sh, v);
}

/* Decodes bp128 from a stream. */
static __device__ __forceinline__ void gc_bp128(const gpuir__stream &s, uint32_t block, uint32_t count, uint32_t v[4]) {
  gc_block p;
  uint64_t left;
  p.n = count;
  p.low = gpuir__bp128_block(&s, block, count, &p.bits, &left);
  p.room = gc_high_room(left, count);
  gc_unpack(p, v);
}

/* Decodes the docIDs of a block; without SUM, the gaps of a codec that stores gaps. Returns how many there are; v[]
 * behind them is unspecified. sh: 128 words of the warp's own. */
template <int CODEC, bool SUM>
static __device__ __forceinline__ uint32_t gc_decode(const gc_coded &l, uint32_t block, uint32_t *sh, uint32_t v[4]) {
  const gpuir__stream &s = l.s;
  const uint32_t count = gpuir__block_count(s.n, block);
  const uint32_t prev = block ? s.last[block - 1] : UINT32_MAX;
  if (CODEC == GC_PLAIN) {
    uint4 x = __ldg((const uint4 *)(l.docs + (uint64_t)block * GPUIR__BLOCK) + gc_lane());
    v[0] = x.x;
    v[1] = x.y;
    v[2] = x.z;
    v[3] = x.w;
  } else if (CODEC == GPUIR__ID_VBYTE) {
    gc_vbyte(s, block, count, sh, v);
  } else if (CODEC == GPUIR__ID_BP128) {
    gc_bp128(s, block, count, v);
  } else if (CODEC == GPUIR__ID_OPTPFD) { /* and pfd and newpfd */
    gc_pfd(s, block, count, sh, v);
  } else if (CODEC == GPUIR__ID_EF) {
    gc_ef(s, block, count, prev, sh, v);
  } else if (CODEC == GPUIR__ID_QS) {
    gc_qs(s, block, count, sh, v);
  } else if (CODEC == GPUIR__ID_RICE) {
    gc_rice(s, block, count, prev, SUM, sh, v);
  } else if (CODEC == GPUIR__ID_PFL) {
    gc_pfl(l, block, count, sh, v);
  } else if (CODEC == GPUIR__ID_PARA) {
    gc_parapfor(s, block, count, sh, v);
  } else if (CODEC == GPUIR__ID_HSLRC) {
    if (s.offset) gc_hslrc(s, block, count, sh, v);
    else gc_lrc(s, GPUIR__SEGLRC, block, count, sh, v);
  } else {
    gc_lrc(s, gc_lrc_kind(CODEC), block, count, sh, v);
  }
  if (SUM &&
      (CODEC == GPUIR__ID_VBYTE || CODEC == GPUIR__ID_BP128 || CODEC == GPUIR__ID_OPTPFD || CODEC == GPUIR__ID_PFL ||
          CODEC == GPUIR__ID_PARA))
    gc_sum(v, prev, s.limit);
  return count;
}

/* ---- recoding lists of other codecs as bp128, for the kernels ----
 *
 * A warp decodes a block and packs it as gpuir__bp128_encode would, so that all later parts know one codec. It does so
 * twice: first to find the blocks' sizes, which gc_recode_offsets turns into offsets; then to write the blocks. */

enum { GC_DOCS, GC_FREQS }; /* a list's two streams */

/* A list as the index stores it, on the device. */
typedef struct gc_source {
  gc_coded part[2];
  uint32_t codec[2];
} gc_source;

/* Where a list's bp128 goes: two streams with room for so many words, and its first block's place in the directory, if
 * it has one. */
typedef struct gc_target {
  uint32_t *part[2];
  uint32_t words[2];
  uint64_t entry;
} gc_target;

typedef struct gc_recoding {
  const gc_source *sources;
  const uint32_t *start; /* [list] the blocks of the lists before it; then all blocks */
  const gc_target *targets;
  uint32_t nlists, nblocks, grain; /* grain: blocks that a warp takes at a time */
  uint32_t *off[2]; /* of each block: its words, later where they begin in the list */
  uint8_t *width[2];
  unsigned long long *words; /* of each list: words of its docIDs, words of its frequencies */
  uint32_t *to_last, *to_off[2]; /* the directory */
  uint8_t *to_width[2];
} gc_recoding;

/* Decodes a block in whichever codec: docIDs, or frequencies less one. Returns how many; values behind them are
 * unspecified. Both are decoded at one place, as the code is long. */
static __device__ __forceinline__ uint32_t gc_any_values(const gc_source &s, uint32_t part, uint32_t block,
    uint32_t *sh, uint32_t v[4]) {
  const gc_coded &l = s.part[part];
  const uint32_t codec = s.codec[part], count = gpuir__block_count(l.s.n, block);
  switch (codec) {
  case GPUIR__ID_VBYTE: gc_decode<GPUIR__ID_VBYTE, false>(l, block, sh, v); break;
  case GPUIR__ID_PFD:
  case GPUIR__ID_NEWPFD:
  case GPUIR__ID_OPTPFD: gc_decode<GPUIR__ID_OPTPFD, false>(l, block, sh, v); break;
  case GPUIR__ID_PFL: gc_decode<GPUIR__ID_PFL, false>(l, block, sh, v); break;
  case GPUIR__ID_PARA: gc_decode<GPUIR__ID_PARA, false>(l, block, sh, v); break;
  case GPUIR__ID_EF: return gc_decode<GPUIR__ID_EF, true>(l, block, sh, v);
  case GPUIR__ID_QS: return gc_decode<GPUIR__ID_QS, true>(l, block, sh, v);
  case GPUIR__ID_RICE: return gc_decode<GPUIR__ID_RICE, true>(l, block, sh, v);
  case GPUIR__ID_HSLRC:
    if (l.s.offset) {
      gc_hslrc(l.s, block, count, sh, v);
      return count;
    } /* fall through */
  case GPUIR__ID_LRC:
  case GPUIR__ID_LRCSEG:
  case GPUIR__ID_SEGLRC: gc_lrc(l.s, gc_lrc_kind(codec), block, count, sh, v); return count;
  default: gc_decode<GPUIR__ID_BP128, false>(l, block, sh, v);
  }
  if (part == GC_DOCS) gc_sum(v, block ? l.s.last[block - 1] : UINT32_MAX, l.s.limit);
  return count;
}

/* How a block is packed: bits of low parts, bits of high parts (0: no exceptions), bytes in all. */
typedef struct gc_form {
  uint32_t bits, high, bytes;
} gc_form;

/* Chooses a block's form as gpuir__bp128_choose does. Lane b computes the size with b low bits. Values behind count are
 * 0. sh: 33 words. */
static __device__ __forceinline__ gc_form gc_choose(const uint32_t v[4], uint32_t count, uint32_t unit, uint32_t *sh) {
  const uint32_t lane = gc_lane(), up = unit - 1, fixed = (count + 7) / 8 + 1;
  const uint32_t w = gpuir__width32(__reduce_or_sync(GC_WARP, v[0] | v[1] | v[2] | v[3]));
  uint32_t least = (((count * w + 7) / 8 + up) & ~up) << 6, high, i; /* bytes << 6 | bits of high parts */
  gc_form form;
  __syncwarp();
  sh[lane] = 0;
  if (!lane) sh[32] = 0;
  __syncwarp();
#pragma unroll
  for (i = 0; i < 4; i++) atomicAdd(sh + gpuir__width32(v[i]), 1);
  __syncwarp();
  high = sh[lane + 1]; /* becomes: how many values have more bits than the lane's number */
#pragma unroll
  for (i = 1; i < 32; i *= 2) {
    uint32_t other = __shfl_down_sync(GC_WARP, high, i);
    if (lane + i < 32) high += other;
  }
  if (lane < w) {
    const uint32_t bytes = (count * lane + 7) / 8 + fixed + (high * (w - lane) + 7) / 8;
    least = min(least, ((bytes + up) & ~up) << 6 | (w - lane));
  }
  least = __reduce_min_sync(GC_WARP, least);
  form.high = least & 63;
  form.bits = w - form.high;
  form.bytes = least >> 6;
  return form;
}

/* Writes n <= 32 bits into zeroed words. */
static __device__ __forceinline__ void gc_put_bits(uint32_t *sh, uint32_t bit, uint32_t value, uint32_t n) {
  const uint32_t shift = bit & 31;
  if (!value) return;
  atomicOr(sh + (bit >> 5), value << shift);
  if (shift + n > 32) atomicOr(sh + (bit >> 5) + 1, value >> (32 - shift));
}

/* Writes a block of at most 128 words, which it gathers in shared memory. is_short: the byte of its width comes
 * first. */
static __device__ __forceinline__ void gc_pack(const uint32_t v[4], uint32_t count, const gc_form &form, bool is_short,
    uint32_t *to, uint32_t words, uint32_t *sh) {
  const uint32_t lane = gc_lane(), b = form.bits, mask = gc_mask(b), start = is_short ? 8 : 0;
  uint32_t i, bit;
  __syncwarp();
  *(uint4 *)(sh + 4 * lane) = make_uint4(0, 0, 0, 0);
  __syncwarp();
  if (is_short && !lane) gc_put_bits(sh, 0, b | (form.high ? GPUIR__BP128_EXCEPTIONS : 0), 8);
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
      const uint32_t vote = __ballot_sync(GC_WARP, v[i] >> b);
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

/* Packs the values of block g. With `to` NULL it notes the block's size and width; otherwise it writes the block's
 * words there, where the list has room for `room` words. Values behind count become 0. */
static __device__ __forceinline__ void gc_recode_values(uint32_t v[4], uint32_t count, bool is_short, uint64_t g,
    uint32_t *off, uint8_t *width, uint32_t *to, uint32_t room, uint32_t *sh) {
  const uint32_t lane = gc_lane();
  gc_form form;
  uint32_t i, words;
#pragma unroll
  for (i = 0; i < 4; i++)
    if (4 * lane + i >= count) v[i] = 0;
  form = gc_choose(v, count, is_short ? 1 : 4, sh);
  words = (form.bytes + is_short + 3) / 4;
  if (to) {
    if (off[g] <= room && words <= room - off[g]) gc_pack(v, count, form, is_short, to + off[g], words, sh);
  } else if (!lane) {
    off[g] = words;
    width[g] = (uint8_t)(form.bits | (form.high ? GPUIR__BP128_EXCEPTIONS : 0));
  }
}

/* Recodes a block's docIDs or frequencies, by a warp: block `block` of list `list`, number g of all blocks. */
static __device__ __forceinline__ void gc_recode_part(const gc_recoding &r, uint32_t part, uint32_t list,
    uint32_t block, uint32_t g, bool writes, uint32_t *sh) {
  const uint32_t lane = gc_lane();
  const gc_source &s = r.sources[list];
  const gpuir__stream &docs = s.part[GC_DOCS].s;
  const bool is_short = !docs.offset;
  const gc_target *to = writes ? r.targets + list : NULL;
  uint32_t v[4], count, i, before;
  count = gc_any_values(s, part, block, sh, v);
  if (part == GC_DOCS) {
    before = __shfl_up_sync(GC_WARP, v[3], 1); /* docIDs to gaps */
    if (!lane) before = block ? docs.last[block - 1] : UINT32_MAX;
#pragma unroll
    for (i = 3; i > 0; i--) v[i] -= v[i - 1] + 1;
    v[0] -= before + 1;
  }
  gc_recode_values(v, count, is_short, g, r.off[part], r.width[part], to ? to->part[part] : NULL,
      to ? to->words[part] : 0, sh);
  if (to && !is_short && !lane) {
    if (part == GC_DOCS) r.to_last[to->entry + block] = docs.last[block];
    r.to_off[part][to->entry + block] = r.off[part][g];
    r.to_width[part][to->entry + block] = r.width[part][g];
  }
}

/* Recodes blocks, docIDs and frequencies, one warp per block. It finds their sizes, or with `writes` writes them. */
static __global__ void __launch_bounds__(256) gc_recode(const __grid_constant__ gc_recoding r, bool writes) {
  __shared__ uint4 room[8][32];
  const uint32_t warps = gridDim.x * 8;
  uint32_t *sh = (uint32_t *)room[threadIdx.x / 32];
  uint64_t at = (uint64_t)(blockIdx.x * 8 + threadIdx.x / 32) * r.grain;
  for (; at < r.nblocks; at += (uint64_t)warps * r.grain) {
    const uint32_t end = (uint32_t)min((uint64_t)r.nblocks, at + r.grain);
    uint32_t list = gc_owner(gc_numbers{r.start}, r.nlists, at), g, part;
    for (g = (uint32_t)at; g < end; g++) {
      while (g >= __ldg(r.start + list + 1)) list++;
#pragma unroll 1
      for (part = 0; part < 2; part++) gc_recode_part(r, part, list, g - __ldg(r.start + list), g, writes, sh);
    }
  }
}

/* Turns a list's sizes into offsets. One block of threads takes its docIDs, another its frequencies. */
static __global__ void __launch_bounds__(1024) gc_recode_offsets(const __grid_constant__ gc_recoding r) {
  const uint32_t first = r.start[blockIdx.x], n = r.start[blockIdx.x + 1] - first;
  uint32_t *sizes = r.off[blockIdx.y] + first, at, k;
  unsigned long long all = 0;
  for (at = 4 * threadIdx.x; at - 4 * threadIdx.x < n; at += 4096) {
    uint32_t x[4], sum = 0, before, these;
#pragma unroll
    for (k = 0; k < 4; k++) {
      x[k] = at + k < n ? sizes[at + k] : 0;
      sum += x[k];
    }
    before = (uint32_t)all - sum + gc_block_scan<1024>(sum, &these);
#pragma unroll
    for (k = 0; k < 4; k++) {
      if (at + k < n) sizes[at + k] = before;
      before += x[k];
    }
    all += these;
  }
  if (!threadIdx.x) r.words[2 * blockIdx.x + blockIdx.y] = all;
}
