
/* ========
 * [21-lab-pfor]  codecs of the literature: PForDelta and its kin (pfd, newpfd, optpfd, pfd-list, parapfor)
 *
 * Uses      [18-codecs], [19-bp128] (its packing), [20-lab-unary].
 * Start at  gpuir__pfd_decode, gpuir__pfl_decode_block, gpuir__para_decode_block.
 * Tests     tests/unit/21_lab_pfor.c
 * ======*/

/* ----
 * pfd (3), newpfd (4), optpfd (5)
 *
 * PForDelta: each value of a block of 128 has a slot of b bits, and those that do not fit are
 * exceptions. Sources: Zukowski, Heman, Nes & Boncz, "Super-scalar RAM-CPU cache compression",
 * ICDE 2006 (linked exceptions), as in section 2 of Ding, He, Yan & Suel, "Using graphics
 * processors for high performance IR query processing", WWW 2009; Yan, Ding & Suel, "Inverted
 * index compression and query processing with optimized document ordering", WWW 2009 (NewPFD and
 * OptPFD). One block format serves all three; its width byte is b and the form of the exceptions:
 *
 *     width          bit   7  6 | 5 .. 0
 *                         form  |   b          form 0 none, 1 linked, 2 apart, 3 marked
 *
 *     form 0, none   | slot 0 | slot 1 | ... | b bits each, padded to a byte
 *
 *     form 1, linked | link u16 | slots | value, value, ...
 *         link       bits 0..6 the first exception, 7..13 their count, 14..15 bytes of a value less one
 *         An exception's slot has the distance to the next one less one; where that does not fit, a
 *         value between them is made an exception too.
 *
 *     form 2, apart  | count u8 | h u8 | slots | position, ... | high bits, ... |
 *         An exception's slot has its b low bits; h is the width of the high bits. Positions take
 *         seven bits; the two arrays are padded to a byte each. (The paper packs them by Simple16;
 *         fixed widths are found and patched independently of each other.)
 *
 *     form 3, marked | slots | mark 0, mark 1, ... | h u8 | high bits, ... |
 *         As form 2, but a bitmap marks the exceptions: this is the smaller one from 19 exceptions
 *         of 128 on, which clustered docIDs have. From the marks on it is bp128's.
 *
 * pfd uses forms 0 and 1 and newpfd forms 0 and 2, with the least b that makes at most a tenth of
 * the block exceptions. optpfd tries each b with each form, so it is never larger than either.
 * Blocks follow each other byte by byte, offset[] has where, width[] the width byte; a list of
 * fewer than 128 is the width byte and its block. DocIDs are coded as gaps, frequencies as they are.
 *
 * gpuir__pfd_find takes a block apart. A lane takes gpuir__packed_value of the slots; then lanes patch an
 * exception each by gpuir__pfd_apart (forms 2 and 3) or, behind a walk along the links, by
 * gpuir__pfd_linked. In form 3 the lane of a value can also take gpuir__bp128_high_of.
 * gpuir__pfd_value does all of it for one value.
 * ----*/

#define GPUIR__PFD_LINKED 1u
#define GPUIR__PFD_APART 2u
#define GPUIR__PFD_MARKED 3u

/* The forms that a codec may use, a bit each: its mode. */
#define GPUIR__PFD_FORMS (1u | 1u << GPUIR__PFD_LINKED)
#define GPUIR__NEWPFD_FORMS (1u | 1u << GPUIR__PFD_APART)
#define GPUIR__OPTPFD_FORMS (1u | 1u << GPUIR__PFD_LINKED | 1u << GPUIR__PFD_APART | 1u << GPUIR__PFD_MARKED)

/* A block, taken apart. */
typedef struct gpuir__pfd_block {
  unsigned b, form, number; /* number: of exceptions */
  const uint8_t *slots;
  unsigned first, bytes; /* linked: the first exception; bytes of a value */
  const uint8_t *values; /* linked: of exceptions, behind the slots */
  unsigned h; /* apart: width of the high bits */
  const uint8_t *positions, *overflows; /* apart: of exceptions, their positions and their high bits */
  gpuir__bp128_view marked;
} gpuir__pfd_block;

/* Takes a block apart; one that is not all there has b = 0 and no exceptions. */
GPUIR_HD void gpuir__pfd_find(const gpuir__stream *s, uint32_t block, uint32_t count, gpuir__pfd_block *v) {
  uint64_t at = 1, size, avail;
  unsigned width = 0;
  const uint8_t *p;
  if (s->offset) {
    at = s->offset[block];
    width = s->width[block];
  } else if (s->len) {
    width = s->bytes[0];
  }
  if (at > s->len) at = s->len;
  p = s->bytes + at;
  avail = s->len - at;
  v->b = width & 63;
  v->form = width >> 6;
  v->number = 0;
  size = gpuir__packed_size(count, v->b);
  if (v->form == GPUIR__PFD_LINKED) {
    unsigned link = gpuir__load32(p) & 0xffff;
    v->first = link & 127;
    v->number = link >> 7 & 127;
    v->bytes = (link >> 14) + 1;
    p += 2;
    v->values = p + size;
    size += 2 + v->number * v->bytes;
  } else if (v->form == GPUIR__PFD_APART) {
    v->number = p[0] & 127;
    v->h = p[1];
    p += 2;
    v->positions = p + size;
    v->overflows = v->positions + gpuir__packed_size(v->number, 7);
    size += 2 + gpuir__packed_size(v->number, 7) + gpuir__packed_size(v->number, v->h);
    if (v->b + v->h > 32) size = UINT64_MAX;
    if (v->b == 32) v->number = 0; /* there are no high bits */
  } else if (v->form == GPUIR__PFD_MARKED) {
    v->marked.marks[0] = v->marked.marks[1] = 0;
    if (v->b <= 32 && size <= avail && gpuir__bp128_open(p, v->b, avail - size, count, &v->marked))
      v->number = gpuir__ones64(v->marked.marks[0]) + gpuir__ones64(v->marked.marks[1]);
    else v->form = 0;
  }
  v->slots = p;
  if (v->b > 32 || size > avail) {
    v->b = v->form = v->number = 0;
    v->slots = s->bytes;
  }
}

/* Returns the high bits of exception k of form 2 or 3, in their place; *at: its position. */
GPUIR_HD uint32_t gpuir__pfd_apart(const gpuir__pfd_block *v, uint32_t k, uint32_t *at) {
  if (v->form == GPUIR__PFD_MARKED) {
    const unsigned before = gpuir__ones64(v->marked.marks[0]);
    *at = k < before ? gpuir__select64(v->marked.marks[0], k) : 64 + gpuir__select64(v->marked.marks[1], k - before);
    return gpuir__bp128_high(&v->marked, k);
  }
  *at = gpuir__packed_value(v->positions, 7, k);
  return gpuir__packed_value(v->overflows, v->h, k) << v->b;
}

/* Returns the value of exception k of form 1. */
GPUIR_HD uint32_t gpuir__pfd_linked(const gpuir__pfd_block *v, uint32_t k) {
  return gpuir__load_bytes(v->values + k * v->bytes, v->bytes);
}

/* Decodes a block of form 3, whose exceptions are bp128's; the kernels `marked`. */
static void gpuir__marked_scalar(const gpuir__stream *s, const gpuir__bp128_view *v, uint32_t count, uint32_t prev,
    uint32_t *out) {
  gpuir__bp128_low_scalar(v->low, v->low_bits, count, 0, out);
  gpuir__bp128_patch_scalar(v, out);
  if (s->codec->docids) gpuir__sum_gaps_scalar(out, count, prev, s->limit);
}

#if GPUIR__X86
GPUIR__AVX2 static void gpuir__marked_simd(const gpuir__stream *s, const gpuir__bp128_view *v, uint32_t count,
    uint32_t prev, uint32_t *out) {
  if (s->codec->docids) gpuir__bp128_simd(s, v->low, v->low_bits, count, 0, v, 1, prev, out);
  else gpuir__bp128_simd(s, v->low, v->low_bits, count, 0, v, 0, 0, out);
}
#endif

GPUIR__DECODES(gpuir__pfd_decode) {
  const uint32_t count = gpuir__block_count(s->n, block);
  gpuir__pfd_block v;
  uint32_t i, at;
  gpuir__pfd_find(s, block, count, &v);
  if (v.form == GPUIR__PFD_MARKED) {
    s->kernels->marked(s, &v.marked, count, prev, out);
    return;
  }
  gpuir__unpack(s, v.slots, v.b, 0, count, out);
  if (v.form == GPUIR__PFD_LINKED) {
    for (i = 0, at = v.first; i < v.number && at < count; i++) {
      uint32_t next = at + out[at] + 1;
      out[at] = gpuir__pfd_linked(&v, i);
      if (next <= at) break;
      at = next;
    }
  } else if (v.form == GPUIR__PFD_APART) {
    for (i = 0; i < v.number; i++) { /* a position is less than 128, and nobody reads beyond count */
      uint32_t high = gpuir__pfd_apart(&v, i, &at);
      out[at] |= high;
    }
  }
  if (s->codec->docids) s->kernels->sum_gaps(out, count, prev, s->limit);
}

/* Returns value i of a block alone. */
GPUIR_HD uint32_t gpuir__pfd_value(const gpuir__pfd_block *v, uint32_t i) {
  uint32_t value = gpuir__packed_value(v->slots, v->b, i), k;
  if (v->form == GPUIR__PFD_LINKED) {
    uint32_t at = v->first;
    for (k = 0; k < v->number && at <= i; k++) {
      uint32_t next = at + gpuir__packed_value(v->slots, v->b, at) + 1;
      if (at == i) return gpuir__pfd_linked(v, k);
      if (next <= at) break;
      at = next;
    }
  } else if (v->form == GPUIR__PFD_MARKED) {
    value |= gpuir__bp128_high_of(&v->marked, i);
  } else if (v->form == GPUIR__PFD_APART) { /* positions increase */
    const uint32_t lo = gpuir__packed_lower_bound(v->positions, 7, v->number, i);
    if (lo < v->number) {
      uint32_t at, high = gpuir__pfd_apart(v, lo, &at);
      if (at == i) value |= high;
    }
  }
  return value;
}

GPUIR_HD uint32_t gpuir__pfd_freqs_get(const gpuir__stream *s, uint32_t i) {
  gpuir__pfd_block v;
  gpuir__pfd_find(s, i / GPUIR__BLOCK, gpuir__block_count(s->n, i / GPUIR__BLOCK), &v);
  return gpuir__pfd_value(&v, i % GPUIR__BLOCK);
}

/* Lists the linked exceptions of slots of b bits in list[] and returns their number. */
static uint32_t gpuir__pfd_link(const uint32_t *v, uint32_t count, unsigned b, uint8_t *list) {
  uint32_t i, number = 0;
  for (i = 0; i < count; i++) {
    int exception = gpuir__width32(v[i]) > b;
    if (!exception && number && b < 7 && i - list[number - 1] == 1u << b) {
      uint32_t j; /* the farthest that the link reaches: needed only if another one follows */
      for (j = i; j < count && !exception; j++) exception = gpuir__width32(v[j]) > b;
    }
    if (exception) list[number++] = (uint8_t)i;
  }
  return number;
}

/* Encodes a block in one of the forms into zeroed bytes, as the next ones do, and returns the end; `most`: the
 * greatest width of a value. */
static uint8_t *gpuir__pfd_put_linked(const uint32_t *v, uint32_t count, unsigned b, unsigned most, uint8_t *to) {
  const unsigned bytes = (most + 7) / 8;
  const uint32_t size = (uint32_t)gpuir__packed_size(count, b);
  uint32_t slots[GPUIR__BLOCK], number, i;
  uint8_t list[GPUIR__BLOCK];
  number = gpuir__pfd_link(v, count, b, list);
  memcpy(slots, v, count * sizeof *v);
  for (i = 0; i < number; i++) slots[list[i]] = i + 1 < number ? list[i + 1] - list[i] - 1u : 0;
  gpuir__put_bits(to, 0, (uint64_t)list[0] | number << 7 | (uint64_t)(bytes - 1) << 14);
  gpuir__pack(to + 2, slots, count, b);
  for (i = 0; i < number; i++) gpuir__put_bits(to + 2 + size, (uint64_t)i * bytes * 8, v[list[i]]);
  return to + 2 + size + number * bytes;
}

static uint8_t *gpuir__pfd_put_apart(const uint32_t *v, uint32_t count, unsigned b, unsigned most, uint8_t *to) {
  uint8_t *positions = to + 2 + gpuir__packed_size(count, b), *high;
  uint8_t list[GPUIR__BLOCK];
  uint32_t number = 0, i;
  for (i = 0; i < count; i++)
    if (gpuir__width32(v[i]) > b) list[number++] = (uint8_t)i;
  high = positions + gpuir__packed_size(number, 7);
  to[0] = (uint8_t)number;
  to[1] = (uint8_t)(most - b);
  gpuir__pack(to + 2, v, count, b);
  for (i = 0; i < number; i++) {
    gpuir__put_bits(positions, (uint64_t)i * 7, list[i]);
    gpuir__put_bits(high, (uint64_t)i * (most - b), v[list[i]] >> b);
  }
  return high + gpuir__packed_size(number, most - b);
}

static uint8_t *gpuir__pfd_put_marked(const uint32_t *v, uint32_t count, unsigned b, unsigned most, uint8_t *to) {
  uint8_t *marks = to + gpuir__packed_size(count, b), *h = marks + (count + 7) / 8;
  uint32_t number = 0, i;
  gpuir__pack(to, v, count, b);
  *h = (uint8_t)(most - b);
  for (i = 0; i < count; i++) {
    if (gpuir__width32(v[i]) <= b) continue;
    marks[i / 8] = (uint8_t)(marks[i / 8] | 1u << i % 8);
    gpuir__put_bits(h + 1, (uint64_t)number++ * (most - b), v[i] >> b);
  }
  return h + 1 + gpuir__packed_size(number, most - b);
}

/* Returns the bytes of a block in a form, UINT32_MAX if it cannot have the form; over[b]: values of more than b
 * bits. */
static uint32_t gpuir__pfd_size(const uint32_t *v, uint32_t count, unsigned b, unsigned form, unsigned most,
    const uint32_t *over) {
  const uint32_t size = (uint32_t)gpuir__packed_size(count, b), number = over[b];
  uint8_t list[GPUIR__BLOCK];
  if (form == 0) return number ? UINT32_MAX : size;
  if (!number || number > 127) return UINT32_MAX;
  if (form == GPUIR__PFD_APART)
    return 2 + size + (uint32_t)(gpuir__packed_size(number, 7) + gpuir__packed_size(number, most - b));
  if (form == GPUIR__PFD_MARKED) return size + (count + 7) / 8 + 1 + (uint32_t)gpuir__packed_size(number, most - b);
  {
    uint32_t linked = gpuir__pfd_link(v, count, b, list);
    return linked > 127 ? UINT32_MAX : 2 + size + linked * ((most + 7) / 8);
  }
}

/* Chooses b and the form; returns the width byte. forms: a bit for each form that may be used. */
static unsigned gpuir__pfd_choose(const uint32_t *v, uint32_t count, unsigned forms, unsigned *most_bits) {
  uint32_t over[33], histogram[33] = {0}, best = UINT32_MAX, i;
  unsigned b, form, width = 0, most = 0;
  const int least_size = (forms & 6) == 6;
  for (i = 0; i < count; i++) histogram[gpuir__width32(v[i])]++;
  for (b = 32, i = 0;; b--) {
    over[b] = i;
    i += histogram[b];
    if (histogram[b] && b > most) most = b;
    if (!b) break;
  }
  for (b = 0; b <= most && (least_size || best == UINT32_MAX); b++) /* otherwise the first b that may be */
    for (form = 0; form < 4; form++) {
      uint32_t size;
      if (!(forms >> form & 1) || (!least_size && over[b] > count / 10)) continue;
      size = gpuir__pfd_size(v, count, b, form, most, over);
      if (size >= best) continue;
      best = size;
      width = b | form << 6;
    }
  *most_bits = most;
  return width;
}

static uint8_t *gpuir__pfd_encode_block(const gpuir__codec *codec, uint32_t *v, uint32_t count, uint32_t unit,
    uint8_t *to, uint8_t *width) {
  unsigned most, w = gpuir__pfd_choose(v, count, codec->mode, &most), b = w & 63;
  (void)unit;
  *width = (uint8_t)w;
  switch (w >> 6) {
  case GPUIR__PFD_LINKED: return gpuir__pfd_put_linked(v, count, b, most, to);
  case GPUIR__PFD_APART: return gpuir__pfd_put_apart(v, count, b, most, to);
  case GPUIR__PFD_MARKED: return gpuir__pfd_put_marked(v, count, b, most, to);
  default: gpuir__pack(to, v, count, b); return to + gpuir__packed_size(count, b);
  }
}

GPUIR__ENCODES(gpuir__pfd_encode) { return gpuir__encode_blocks(codec, values, n, t, gpuir__pfd_encode_block, 1); }

/* ----
 * pfd-list (9)
 *
 * PForDelta with one b for the whole list. Source: section 6.2 of Ding, He, Yan & Suel, WWW 2009.
 * An array of numbers is coded to a depth d of 0 to 5:
 *
 *     d = 0     | number u32 | number u32 | ...
 *     d > 0     | b u8 | exceptions u32 | slots, b bits each, padded to a byte |
 *               | high bits, coded to depth d - 1 | gaps of positions, coded to depth d - 1 |
 *
 * A slot has the low b bits of a number; those above b are the high bits of an exception. The gap of
 * a position is the position less its predecessor less one. The last two arrays are missing if there
 * are no exceptions.
 *
 *     list of 128 or more   | depth u8 | docID u32 before each 512 ... | gaps, coded to the depth |
 *     shorter list          | depth u8 | gaps, coded to the depth |
 *
 * The depth of a list is the number of levels by which the two arrays are compressed recursively plus
 * one; so is the parameter: 1 for 0 levels to 5 for 4 levels, and 0 for the paper's choice, 1 level.
 * The docIDs before the blocks of 512 (UINT32_MAX before the first) let a kernel begin at each;
 * here a block's predecessor comes from the directory. offset[] has the number of exceptions before a
 * block, width[] is 0. As in the paper, all exceptions are decoded when the list is opened.
 *
 * gpuir__pfl_level_find takes each level apart. A lane takes gpuir__packed_value of its slots; then lanes
 * patch an exception each, from gpuir__pfl_first on, by gpuir__pfl_high.
 * ----*/

#define GPUIR__PFL_BLOCK 512u
#define GPUIR__PFL_DEPTH 5u
#define GPUIR__PFL_BAD UINT64_MAX

/* The first level of an array of depth > 0, its exceptions still coded. */
typedef struct gpuir__pfl_level {
  unsigned b;
  uint32_t number;
  const uint8_t *slots, *rest; /* rest: behind the slots */
} gpuir__pfl_level;

/* Finds the first level of an array of n numbers, coded to a depth > 0; returns its size, or BAD. */
GPUIR_HD uint64_t gpuir__pfl_level_find(const uint8_t *p, uint64_t avail, uint32_t n, gpuir__pfl_level *level) {
  uint64_t size;
  if (avail < 5 || p[0] > 32) return GPUIR__PFL_BAD;
  level->b = p[0];
  level->number = gpuir__load32(p + 1);
  size = 5 + gpuir__packed_size(n, level->b);
  if (size > avail || level->number > n || (level->number && level->b == 32)) /* there are no high bits */
    return GPUIR__PFL_BAD;
  level->slots = p + 5;
  level->rest = p + size;
  return size;
}

/* Returns the bytes of an array of n, or BAD; *memory: how many numbers gpuir__pfl_decode needs besides them;
 * *level: its first level, unless NULL. */
static uint64_t gpuir__pfl_size(const uint8_t *p, uint64_t avail, uint32_t n, unsigned depth, uint64_t *memory,
    gpuir__pfl_level *level) {
  uint64_t size, array, inner[2] = {0, 0};
  gpuir__pfl_level own;
  unsigned i;
  *memory = 0;
  if (!depth) {
    size = (uint64_t)n * 4;
    return size > avail ? GPUIR__PFL_BAD : size;
  }
  if (!level) level = &own;
  size = gpuir__pfl_level_find(p, avail, n, level);
  if (size == GPUIR__PFL_BAD || !level->number) return size;
  for (i = 0; i < 2; i++) {
    array = gpuir__pfl_size(p + size, avail - size, level->number, depth - 1, &inner[i], NULL);
    if (array == GPUIR__PFL_BAD) return array;
    size += array;
  }
  *memory = (uint64_t)level->number * 2 + gpuir__max64(inner[0], inner[1]);
  return size;
}

/* Turns gaps of positions into positions; 0 or FORMAT if one is not below n. */
static int gpuir__pfl_positions(uint32_t *positions, uint32_t number, uint32_t n) {
  uint64_t at = 0;
  uint32_t i;
  for (i = 0; i < number; i++) {
    at += positions[i];
    if (at >= n) return GPUIR_E_FORMAT;
    positions[i] = (uint32_t)at++;
  }
  return GPUIR_OK;
}

/* Decodes an array, whose size gpuir__pfl_size has found good, to out[0..n); its exceptions stand in `memory` then,
 * high bits before positions. If out is NULL, only they are decoded. Returns the end of its bytes, or NULL if it is
 * malformed. */
static const uint8_t *gpuir__pfl_decode(const uint8_t *p, uint32_t n, unsigned depth, uint32_t *out, uint32_t *memory) {
  const uint8_t *end = p + 5;
  uint32_t number, i;
  unsigned b;
  if (!depth) {
    memcpy(out, p, (size_t)n * 4);
    return p + (size_t)n * 4;
  }
  b = p[0];
  number = gpuir__load32(p + 1);
  for (i = 0; out && i < n; i++) out[i] = gpuir__packed_value(end, b, i);
  end += gpuir__packed_size(n, b);
  if (!number) return end;
  end = gpuir__pfl_decode(end, number, depth - 1, memory, memory + (size_t)number * 2);
  if (end) end = gpuir__pfl_decode(end, number, depth - 1, memory + number, memory + (size_t)number * 2);
  if (!end || gpuir__pfl_positions(memory + number, number, n)) return NULL;
  for (i = 0; out && i < number; i++) out[memory[number + i]] |= memory[i] << b;
  return end;
}

/* A list that is open: high bits and positions of its exceptions stand behind this structure. */
typedef struct gpuir__pfl_state {
  gpuir__pfl_level top;
  const uint32_t *overflows, *positions; /* [exception] high bits; the value's index in the list */
} gpuir__pfl_state;

/* Finds the list's first level, its depth, and how many numbers gpuir__pfl_decode needs. 0 or FORMAT. */
static int gpuir__pfl_find(const gpuir__stream *s, gpuir__pfl_level *top, unsigned *depth, uint64_t *memory) {
  uint64_t head = 1;
  top->b = top->number = 0;
  top->slots = top->rest = s->bytes;
  *memory = 0;
  *depth = s->len ? s->bytes[0] : 0;
  if (s->offset) head += (((uint64_t)s->n + GPUIR__PFL_BLOCK - 1) / GPUIR__PFL_BLOCK) * 4;
  if (*depth < 1 || *depth > GPUIR__PFL_DEPTH || head > s->len ||
      gpuir__pfl_size(s->bytes + head, s->len - head, s->n, *depth, memory, top) == GPUIR__PFL_BAD ||
      *memory > SIZE_MAX / 8) {
    *memory = 0;
    return GPUIR_E_FORMAT;
  }
  return GPUIR_OK;
}

static size_t gpuir__pfl_scratch(const gpuir__stream *s) {
  gpuir__pfl_level top;
  unsigned depth;
  uint64_t memory;
  (void)gpuir__pfl_find(s, &top, &depth, &memory);
  return sizeof(gpuir__pfl_state) + (size_t)memory * sizeof(uint32_t);
}

/* Returns 1 if the directory has, of each block, the number of exceptions before it: the device starts there. */
static int gpuir__pfl_counts_hold(const gpuir__stream *s, const uint32_t *positions, uint32_t number) {
  const uint32_t nblocks = s->offset ? (s->n - 1) / GPUIR__BLOCK + 1 : 0;
  uint32_t block, e = 0;
  for (block = 0; block < nblocks; block++) {
    while (e < number && positions[e] / GPUIR__BLOCK < block) e++;
    if (s->offset[block] != e) return 0;
  }
  return 1;
}

static int gpuir__pfl_open(gpuir__stream *s) {
  gpuir__pfl_state *state = (gpuir__pfl_state *)s->scratch;
  uint32_t *memory = (uint32_t *)(void *)(state + 1);
  unsigned depth;
  uint64_t need;
  int status = gpuir__pfl_find(s, &state->top, &depth, &need);
  if (status) return status;
  state->overflows = memory;
  state->positions = memory + state->top.number;
  if (!state->top.number) return GPUIR_OK;
  if (!gpuir__pfl_decode(state->top.slots - 5, s->n, depth, NULL, memory)) return GPUIR_E_FORMAT;
  return gpuir__pfl_counts_hold(s, state->positions, state->top.number) ? GPUIR_OK : GPUIR_E_FORMAT;
}

/* Returns the first exception at value i of the list or behind it. */
GPUIR_HD uint32_t gpuir__pfl_first(const gpuir__pfl_state *state, uint32_t i) {
  return gpuir__lower_bound(state->positions, 0, state->top.number, i);
}

/* Returns the high bits of exception e in their place. */
GPUIR_HD uint32_t gpuir__pfl_high(const gpuir__pfl_state *state, uint32_t e) {
  return state->overflows[e] << state->top.b;
}

GPUIR__DECODES(gpuir__pfl_decode_block) {
  const gpuir__pfl_state *state = (const gpuir__pfl_state *)s->scratch;
  const uint32_t count = gpuir__block_count(s->n, block), *positions = state->positions;
  const uint32_t number = state->top.number;
  const uint32_t first = block * GPUIR__BLOCK, end = first + count; /* n < 2^32: no overflow */
  uint32_t e = 0;
  gpuir__unpack(s, state->top.slots, state->top.b, first, count, out);
  if (number) {
    if (s->offset) e = gpuir__min32(s->offset[block], number);
    if ((e < number && positions[e] < first) || (e && positions[e - 1] >= first))
      e = gpuir__pfl_first(state, first); /* the directory is wrong */
    for (; e < number && positions[e] < end; e++) out[positions[e] - first] |= gpuir__pfl_high(state, e);
  }
  s->kernels->sum_gaps(out, count, prev, s->limit);
}

/* Returns the least size in bits of an array of n numbers at `each` bits an exception; histogram[w]: numbers of
 * width w. */
static uint64_t gpuir__pfl_least(const uint64_t *histogram, uint64_t n, uint64_t each) {
  uint64_t over = n, best = UINT64_MAX;
  unsigned b;
  for (b = 0; b <= 32; b++) {
    over -= histogram[b];
    best = gpuir__min64(best, n * b + over * each);
    if (!over) break;
  }
  return best + 40;
}

/* Chooses b for an array of depth > 0. The widths of the high bits are known; the gaps between exceptions are
 * taken to be distributed geometrically. What is below two more levels counts as 24 bits an exception. */
static unsigned gpuir__pfl_choose(const uint32_t *values, uint32_t n, unsigned depth) {
  uint64_t histogram[33] = {0}, over = n, best = UINT64_MAX;
  unsigned b, w, choice = 0;
  uint32_t i;
  for (i = 0; i < n; i++) histogram[gpuir__width32(values[i])]++;
  for (b = 0; b <= 32; b++) {
    uint64_t size = (uint64_t)n * b;
    over -= histogram[b];
    if (over && depth == 1) {
      size += over * 64;
    } else if (over) {
      uint64_t overflows[33] = {0}, gaps[33] = {0}, left = over;
      const uint64_t each = depth == 2 ? 64 : 24;
      double none = (double)(n - over) / (double)n; /* no exception among 2^w values: products only, nothing to fuse */
      for (w = b + 1; w <= 32; w++) overflows[w - b] = histogram[w];
      for (w = 0; left && w < 32; w++, none *= none) {
        uint64_t longer = gpuir__min64((uint64_t)((double)over * none), left);
        gaps[w] = left - longer;
        left = longer;
      }
      gaps[w] += left;
      size += gpuir__pfl_least(overflows, over, each) + gpuir__pfl_least(gaps, over, each);
    }
    if (size < best) {
      best = size;
      choice = b;
    }
    if (!over) break;
  }
  return choice;
}

/* Appends an array, coded to a depth. 0 or NOMEM, and then some of it may have been appended. */
static int gpuir__pfl_put(const gpuir_allocator *a, gpuir__buf *out, const uint32_t *values, uint32_t n,
    unsigned depth) {
  uint32_t *exceptions, number = 0, next = 0, i, e;
  uint64_t size;
  unsigned b;
  uint8_t *to;
  int status;
  if (!depth) return gpuir__buf_put(a, out, values, (size_t)n * 4);
  b = gpuir__pfl_choose(values, n, depth);
  size = 5 + gpuir__packed_size(n, b);
  to = gpuir__zero_room(a, out, size);
  if (!to) return GPUIR_E_NOMEM;
  for (i = 0; i < n; i++) number += gpuir__width32(values[i]) > b;
  to[0] = (uint8_t)b;
  gpuir__store32(to + 1, number);
  gpuir__pack(to + 5, values, n, b);
  out->len += (size_t)size;
  if (!number) return GPUIR_OK;
  exceptions = (uint32_t *)gpuir__alloc(a, (size_t)number * 8);
  if (!exceptions) return GPUIR_E_NOMEM;
  for (i = 0, e = 0; i < n; i++) {
    if (gpuir__width32(values[i]) <= b) continue;
    exceptions[e] = values[i] >> b;
    exceptions[(size_t)number + e++] = i - next;
    next = i + 1;
  }
  status = gpuir__pfl_put(a, out, exceptions, number, depth - 1);
  if (!status) status = gpuir__pfl_put(a, out, exceptions + number, number, depth - 1);
  gpuir__free(a, exceptions, (size_t)number * 8);
  return status;
}

/* Notes of each block how many exceptions, gaps of more than b bits, stand before it. */
static void gpuir__pfl_directory(const uint32_t *gaps, uint32_t n, unsigned b, const gpuir__target *t) {
  uint32_t i, number = 0;
  for (i = 0; i < n; i++) {
    if (i % GPUIR__BLOCK == 0) gpuir__target_block(t, i / GPUIR__BLOCK, number, 0);
    number += gpuir__width32(gaps[i]) > b;
  }
}

GPUIR__ENCODES(gpuir__pfl_encode) {
  const size_t start = t->out->len;
  const unsigned depth = t->param ? (unsigned)gpuir__min64(t->param, 99) : 2;
  uint32_t *gaps, i;
  int status;
  uint64_t head = 1;
  uint8_t *to;
  (void)codec;
  if (depth > GPUIR__PFL_DEPTH) return GPUIR_E_LIMIT;
  if (t->offset) head += (((uint64_t)n + GPUIR__PFL_BLOCK - 1) / GPUIR__PFL_BLOCK) * 4;
  to = gpuir__zero_room(t->a, t->out, head);
  gaps = to ? (uint32_t *)gpuir__alloc(t->a, (size_t)n * 4) : NULL;
  if (!gaps) return GPUIR_E_NOMEM;
  to[0] = (uint8_t)depth;
  if (t->offset)
    for (i = 0; i < (n - 1) / GPUIR__PFL_BLOCK + 1; i++)
      gpuir__store32(to + 1 + (size_t)i * 4, i ? values[i * GPUIR__PFL_BLOCK - 1] : UINT32_MAX);
  t->out->len += (size_t)head;
  gpuir__take_gaps(values, n, UINT32_MAX, gaps);
  gpuir__pfl_directory(gaps, n, gpuir__pfl_choose(gaps, n, depth), t);
  status = gpuir__pfl_put(t->a, t->out, gaps, n, depth);
  gpuir__free(t->a, gaps, (size_t)n * 4);
  if (status) t->out->len = start;
  return status;
}

/* ----
 * parapfor (10)
 *
 * PForDelta in segments of s = 64, 128 or 256 whose exceptions can be patched independently of each
 * other. Source: appendix D of Ao, Zhang, Wu, Stones, Wang, Liu, Liu & Lin, "Efficient parallel
 * lists intersection and index compression algorithms using graphics processing units", PVLDB 4(8),
 * 2011. Exceptions keep their low b bits in the slot; their indices and high bits are two arrays:
 *
 *     segment   | 0 b u8 |                          slots |
 *               | 1 b u8 | ib u8 | hb u8 | en u8 | slots | index, ib bits each | high bits, hb each |
 *                 '-- bit 7: there are exceptions
 *
 * ib and hb are the widths, floor(log2 x) + 1, 0 for 0, of the greatest index and high bits, en
 * the number of exceptions, 1 to 255. (The paper's widths, ceil(log2 x), are too small at powers of
 * two.) Each array is padded to a byte.
 *
 *     list of 128 or more   | log2 s u8 | segment | segment | ...
 *     shorter list          | segment |
 *
 * offset[] has where the segment begins that a block begins in, width[] is 0. The parameter is
 * s + 1024 e: e is 0 for the default; 1 to 1001 to choose the least b that makes at most (e - 1) / 1000
 * of a segment exceptions; 1002 to choose the b that makes it smallest. s of 0 is the default of 128.
 * The default of e is a tenth, here; the codecs below use the same segments for deviations from lines,
 * by default with s = 256 and without exceptions.
 *
 * gpuir__para_find takes a segment apart. A lane takes gpuir__packed_value of the slots; then lanes patch
 * an exception each by gpuir__para_high; gpuir__para_value does both for one value.
 * ----*/

#define GPUIR__PARA_LEAST 1002u
#define GPUIR__PARA_MOST 256u /* values of a segment */

/* A segment, taken apart. */
typedef struct gpuir__para {
  unsigned b, ib, hb, en; /* widths of slots, indices and high bits; exceptions */
  const uint8_t *slots, *indices, *overflows; /* overflows: the high bits */
} gpuir__para;

/* Takes a segment of count values apart; returns its bytes, or 0 and a segment of zeros if it is not all there. */
GPUIR_HD uint64_t gpuir__para_find(const uint8_t *p, uint64_t avail, uint32_t count, gpuir__para *v) {
  uint64_t head = 1, slots, indices = 0;
  if (avail) {
    v->b = p[0] & 127;
    v->ib = v->hb = v->en = 0;
    if (p[0] & 128) {
      v->ib = p[1];
      v->hb = p[2];
      v->en = p[3];
      head = 4;
    }
    slots = gpuir__packed_size(count, v->b);
    indices = gpuir__packed_size(v->en, v->ib);
    if (v->b <= 32 && v->ib <= 8 && v->b + v->hb <= 32 &&
        head + slots + indices + gpuir__packed_size(v->en, v->hb) <= avail) {
      const uint64_t size = head + slots + indices + gpuir__packed_size(v->en, v->hb);
      v->slots = p + head;
      v->indices = v->slots + slots;
      v->overflows = v->indices + indices;
      if (v->b == 32) v->en = 0; /* there are no high bits */
      return size;
    }
  }
  v->b = v->ib = v->hb = v->en = 0;
  v->slots = v->indices = v->overflows = p;
  return 0;
}

/* Returns the high bits of exception e in their place; *at: its index in the segment. */
GPUIR_HD uint32_t gpuir__para_high(const gpuir__para *v, uint32_t e, uint32_t *at) {
  *at = gpuir__packed_value(v->indices, v->ib, e);
  return gpuir__packed_value(v->overflows, v->hb, e) << v->b;
}

/* Decodes values from .. from + count - 1, writing up to the next multiple of 16. */
static void gpuir__para_decode(const gpuir__stream *s, const gpuir__para *v, uint32_t from, uint32_t count,
    uint32_t *out) {
  uint32_t e, at;
  gpuir__unpack(s, v->slots, v->b, from, count, out);
  for (e = 0; e < v->en; e++) {
    uint32_t high = gpuir__para_high(v, e, &at);
    if (at - from < count) out[at - from] |= high;
  }
}

/* Returns value i alone. Indices of exceptions increase. */
GPUIR_HD uint32_t gpuir__para_value(const gpuir__para *v, uint32_t i) {
  uint32_t value = gpuir__packed_value(v->slots, v->b, i);
  const uint32_t lo = gpuir__packed_lower_bound(v->indices, v->ib, v->en, i);
  if (lo < v->en) {
    uint32_t at, high = gpuir__para_high(v, lo, &at);
    if (at == i) value |= high;
  }
  return value;
}

/* Returns the number of values of a list's segments; 256 if the stream does not say. */
GPUIR_HD uint32_t gpuir__para_size(const gpuir__stream *s) {
  return s->offset && s->len && s->bytes[0] >= 6 && s->bytes[0] <= 8 ? 1u << s->bytes[0] : GPUIR__PARA_MOST;
}

/* Chooses b for a segment; *en: the exceptions, values of more than b bits; *most: the greatest width of a value. */
static unsigned gpuir__para_choose(const uint32_t *values, uint32_t count, unsigned exceptions, uint32_t *en,
    unsigned *most) {
  uint32_t histogram[33] = {0}, over = 0, best = UINT32_MAX, i;
  unsigned b, choice = 0;
  *en = 0;
  *most = 0;
  for (i = 0; i < count; i++) histogram[gpuir__width32(values[i])]++;
  for (b = 33; b-- > 0;) { /* from the greatest b down; `over` values do not fit into b bits */
    uint32_t total = (uint32_t)gpuir__packed_size(count, b);
    if (!*most && histogram[b]) *most = b;
    if (over)
      total +=
          3 + (uint32_t)(gpuir__packed_size(over, gpuir__width32(count - 1)) + gpuir__packed_size(over, *most - b));
    if (over <= 255 && (exceptions == GPUIR__PARA_LEAST ? total < best : over * 1000 <= (exceptions - 1) * count)) {
      best = total;
      choice = b;
      *en = over;
    }
    over += histogram[b];
  }
  return choice;
}

/* Appends a segment of count <= 256 values; `exceptions` is e of the parameter. 0 or NOMEM. */
static int gpuir__para_put(const gpuir_allocator *a, gpuir__buf *out, const uint32_t *values, uint32_t count,
    unsigned exceptions) {
  uint32_t over = 0, en, last = 0, i;
  unsigned most, ib, hb, b = gpuir__para_choose(values, count, exceptions, &en, &most);
  uint64_t slots, index_size, size;
  uint8_t *to;
  for (i = 0; en && i < count; i++)
    if (gpuir__width32(values[i]) > b) last = i;
  ib = gpuir__width32(last);
  hb = en ? most - b : 0;
  slots = gpuir__packed_size(count, b);
  index_size = gpuir__packed_size(en, ib);
  size = (en ? 4 : 1) + slots + index_size + gpuir__packed_size(en, hb);
  to = gpuir__zero_room(a, out, size);
  if (!to) return GPUIR_E_NOMEM;
  out->len += (size_t)size;
  *to++ = (uint8_t)(b | (en ? 128u : 0));
  if (en) {
    *to++ = (uint8_t)ib;
    *to++ = (uint8_t)hb;
    *to++ = (uint8_t)en;
  }
  gpuir__pack(to, values, count, b);
  for (i = 0; over < en; i++) {
    if (gpuir__width32(values[i]) <= b) continue;
    gpuir__put_bits(to + slots, (uint64_t)over * ib, i);
    gpuir__put_bits(to + slots + index_size, (uint64_t)over++ * hb, values[i] >> b);
  }
  return GPUIR_OK;
}

/* Reads a parameter s + 1024 e; 0 or LIMIT. */
static int gpuir__para_param(uint64_t param, uint32_t least_s, uint32_t *s, unsigned *exceptions) {
  if (param & 1023) *s = (uint32_t)(param & 1023);
  if (param >> 10) *exceptions = (unsigned)gpuir__min64(param >> 10, 9999);
  if (*s < least_s || *s > GPUIR__PARA_MOST || (*s & (*s - 1)) || *exceptions > GPUIR__PARA_LEAST) return GPUIR_E_LIMIT;
  return GPUIR_OK;
}

static int gpuir__para_open(gpuir__stream *s) {
  gpuir__para v;
  if (!s->n) return GPUIR_OK;
  if (!s->offset) return gpuir__para_find(s->bytes, s->len, s->n, &v) ? GPUIR_OK : GPUIR_E_FORMAT;
  return s->len && s->bytes[0] >= 6 && s->bytes[0] <= 8 ? GPUIR_OK : GPUIR_E_FORMAT;
}

GPUIR__DECODES(gpuir__para_decode_block) {
  const uint32_t count = gpuir__block_count(s->n, block), first = block * GPUIR__BLOCK;
  gpuir__para v;
  if (!s->offset) {
    (void)gpuir__para_find(s->bytes, s->len, count, &v);
    gpuir__para_decode(s, &v, 0, count, out);
  } else {
    const uint32_t size = gpuir__para_size(s);
    uint64_t at = gpuir__min64(s->offset[block], s->len);
    uint32_t start = first & ~(size - 1), from = first - start, done = 0;
    while (done < count) {
      uint32_t length = gpuir__min32(size, s->n - start), take = gpuir__min32(length - from, count - done);
      at += gpuir__para_find(s->bytes + at, s->len - at, length, &v);
      gpuir__para_decode(s, &v, from, take, out + done);
      done += take;
      start += length;
      from = 0;
    }
  }
  s->kernels->sum_gaps(out, count, prev, s->limit);
}

/* Notes that the blocks which begin among the `count` values of the segment at value `at` begin where the segment does:
 * at byte `offset` of the stream. */
static void gpuir__segment_blocks(const gpuir__target *t, uint32_t at, uint32_t count, uint32_t offset) {
  uint32_t block = at / GPUIR__BLOCK + (at % GPUIR__BLOCK != 0);
  const uint32_t last = (at + count - 1) / GPUIR__BLOCK;
  for (; block <= last; block++) gpuir__target_block(t, block, offset, 0);
}

GPUIR__ENCODES(gpuir__para_encode) {
  const size_t start = t->out->len;
  uint32_t size = 128, at, count, gaps[GPUIR__PARA_MOST];
  unsigned exceptions = 101;
  int status = gpuir__para_param(t->param, 64, &size, &exceptions);
  (void)codec;
  if (!t->offset) size = GPUIR__BLOCK; /* one segment */
  if (!status && t->offset) {
    uint8_t head = (uint8_t)gpuir__ctz32(size);
    status = gpuir__buf_put(t->a, t->out, &head, 1);
  }
  for (at = 0; !status && at < n; at += count) {
    const uint64_t used = t->out->len - start;
    count = gpuir__min32(n - at, size);
    if (used > UINT32_MAX) status = GPUIR_E_LIMIT;
    gpuir__segment_blocks(t, at, count, (uint32_t)used);
    gpuir__take_gaps(values + at, count, at ? values[at - 1] : UINT32_MAX, gaps);
    if (!status) status = gpuir__para_put(t->a, t->out, gaps, count, exceptions);
  }
  if (status) t->out->len = start;
  return status;
}
