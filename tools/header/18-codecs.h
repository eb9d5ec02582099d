
/* ========
 * [18-codecs]  the seam of the codecs; vbyte
 *
 * A codec turns the values of one list into bytes and back, 128 at a time. DocID codecs take
 * strictly increasing values; frequency codecs take any, the frequencies less one. A list of
 * fewer than 128 postings is one block and has no directory; a longer one has a directory,
 * which keeps each block's offset and width outside the stream, ready for a GPU.
 *
 * Uses      [16-base], [17-vectors].
 * Start at  gpuir__codec (the seam), gpuir__stream (one list opened for decoding),
 *           gpuir__target (where a list is encoded to).
 * Tests     tests/unit/18_codecs.c
 * ======*/

#define GPUIR__BLOCK 128u
/* Values that a decoder may write: those behind the last value of a block are unspecified. */
#define GPUIR__BLOCK_ROOM (GPUIR__BLOCK + 16u)
/* Readable bytes behind every stream: a decoder may read them, but nothing may depend on them. */
#define GPUIR__STREAM_PAD 64u

struct gpuir__codec;
struct gpuir__codec_kernels;

/* One list's stream of docIDs or of frequencies, opened for decoding. */
typedef struct gpuir__stream {
  const struct gpuir__codec *codec;
  const struct gpuir__codec_kernels *kernels; /* of the level at which the list is decoded */
  const uint8_t *bytes; /* len of them, and GPUIR__STREAM_PAD readable ones behind */
  uint64_t len;
  uint32_t n; /* values */
  uint32_t limit; /* docIDs are clamped to it: N - 1 */
  const uint32_t *offset; /* [block], in the codec's unit; NULL: one block, no directory */
  const uint8_t *width; /* [block], a byte whose meaning is the codec's; NULL with offset */
  const uint32_t *last; /* [block], its last docID; NULL with offset, and for frequencies */
  void *scratch; /* scratch_size bytes, or NULL when that is 0 */
} gpuir__stream;

/* Where a list is encoded to. */
typedef struct gpuir__target {
  const gpuir_allocator *a;
  gpuir__buf *out; /* the stream is appended to it */
  uint32_t *offset; /* [block], filled in the codec's unit; NULL for a list of fewer than 128 */
  uint8_t *width; /* [block], filled; NULL with offset */
  uint64_t param; /* the user's choice, 0: the codec's default; the stream says what decoding needs of it */
} gpuir__target;

/* The codecs' ids in the file; never reused. PFL: pfd-list, PARA: parapfor. */
enum {
  GPUIR__ID_VBYTE = 1,
  GPUIR__ID_BP128,
  GPUIR__ID_PFD,
  GPUIR__ID_NEWPFD,
  GPUIR__ID_OPTPFD,
  GPUIR__ID_EF,
  GPUIR__ID_QS,
  GPUIR__ID_RICE,
  GPUIR__ID_PFL,
  GPUIR__ID_PARA,
  GPUIR__ID_LRC,
  GPUIR__ID_LRCSEG,
  GPUIR__ID_SEGLRC,
  GPUIR__ID_HSLRC
};

typedef struct gpuir__codec {
  const char *name;
  uint8_t id; /* in the file; never reused */
  uint8_t docids; /* 1: takes docIDs, 0: frequencies */
  uint8_t unit; /* bytes that one step of a block's offset stands for; a power of two, at most 16 */
  uint8_t param; /* GPUIR__P_: what the user's choice is and how it is spelt */
  uint8_t mode; /* which codec of its family this is, as the family's functions understand it */
  uint16_t cost; /* of decoding a value, in hundredths of bp128's; see gpuir__coding */
  /* Appends the list's stream, for a long list padded to `unit`, and fills offset[] and width[] of its ceil(n / 128)
   * blocks. Returns 0, NOMEM or LIMIT, and has then appended nothing. */
  int (*encode)(const struct gpuir__codec *codec, const uint32_t *values, uint32_t n, const gpuir__target *to);
  /* Returns the bytes of decoding state that a list needs; NULL: none. */
  size_t (*scratch_size)(const gpuir__stream *s);
  /* Checks the stream's own headers and fills scratch; NULL: nothing to check. 0 or FORMAT. */
  int (*open)(gpuir__stream *s);
  /* Decodes block `block` (< ceil(n / 128)) to out[0..GPUIR__BLOCK_ROOM). `prev` is the last docID of
   * the block before, UINT32_MAX before the first; frequency codecs ignore it. Never reads beyond
   * bytes + len + GPUIR__STREAM_PAD whatever the bytes, offsets and widths say; docIDs are <= limit,
   * and correct only if the file is. */
  void (*decode_block)(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t *out);
  /* Returns value i < n alone; required of frequency codecs, NULL where a codec cannot. */
  uint32_t (*get)(const gpuir__stream *s, uint32_t i);
  /* Looks docID x up in a block of 128 that is not the list's last and would hold x: prev < x <= last[block].
   * Returns the index of x in the block, or GPUIR__ABSENT; GPUIR__UNTOLD: the block has to be decoded. Of a damaged
   * file any of these. Nothing is decoded to memory. NULL where a codec cannot. */
  uint32_t (*find)(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t x);
} gpuir__codec;

#define GPUIR__ABSENT GPUIR__BLOCK
#define GPUIR__UNTOLD (GPUIR__BLOCK + 1)

enum { GPUIR__P_NONE, GPUIR__P_RATIO, GPUIR__P_LEVELS, GPUIR__P_SEGMENT, GPUIR__P_BUCKET };

struct gpuir__bp128_view;
struct gpuir__line;

/* What decoders are made of, at one SIMD level. The table with a row a level, gpuir__codec_of_level, is in
 * [23-codings]; each function is described where its scalar form is defined. */
typedef struct gpuir__codec_kernels {
  void (*sum_gaps)(uint32_t *out, uint32_t count, uint32_t prev, uint32_t limit);
  void (*bp128_docids)(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t *out);
  void (*bp128_freqs)(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t *out);
  uint32_t (*bp128_get)(const gpuir__stream *s, uint32_t i);
  uint32_t (*bp128_find)(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t x);
  /* used by the two levels with vectors: blocks of bp128 whose values are not narrow */
  void (*wide_docids)(const uint8_t *p, unsigned w, uint32_t count, int vertical, const struct gpuir__bp128_view *v,
      uint32_t prev, uint32_t limit, uint32_t *out);
  void (*wide_freqs)(const uint8_t *p, unsigned w, uint32_t count, int vertical, const struct gpuir__bp128_view *v,
      uint32_t *out);
#ifndef GPUIR_NO_LAB
  void (*unpack)(const uint8_t *p, unsigned w, unsigned skip, uint32_t count, uint32_t *out);
  uint32_t (*stops)(const uint8_t *p, uint64_t bytes, unsigned skip, uint64_t flip, uint32_t at, uint32_t got,
      uint32_t count, uint32_t *pos);
  void (*join)(const uint32_t *pos, unsigned b, uint32_t add, uint32_t limit, uint32_t count, uint32_t *out);
  void (
      *marked)(const gpuir__stream *s, const struct gpuir__bp128_view *v, uint32_t count, uint32_t prev, uint32_t *out);
  void (*line_add)(const struct gpuir__line *l, uint32_t from, uint32_t limit, uint32_t count, uint32_t *out);
#endif
} gpuir__codec_kernels;

/* Begin functions of the seam: a decode_block and an encode of gpuir__codec. */
#define GPUIR__DECODES(name) static void name(const gpuir__stream *s, uint32_t block, uint32_t prev, uint32_t *out)
#define GPUIR__ENCODES(name) \
  static int name(const gpuir__codec *codec, const uint32_t *values, uint32_t n, const gpuir__target *t)

/* Returns the number of values in a block of a list of n. */
GPUIR_HD uint32_t gpuir__block_count(uint32_t n, uint32_t block) {
  return gpuir__min32(n - block * GPUIR__BLOCK, GPUIR__BLOCK);
}

/* ---- encoding */

/* Returns room for n zeroed bytes and 8 more behind them; NULL without memory. */
static uint8_t *gpuir__zero_room(const gpuir_allocator *a, gpuir__buf *out, uint64_t n) {
  uint8_t *to = n < SIZE_MAX / 4 ? gpuir__buf_room(a, out, (size_t)n + 8) : NULL;
  if (to) memset(to, 0, (size_t)n + 8);
  return to;
}

/* Notes of block `block` where it begins and its width byte, if the list has a directory. */
static inline void gpuir__target_block(const gpuir__target *to, uint32_t block, uint32_t offset, unsigned width) {
  if (!to->offset) return;
  to->offset[block] = offset;
  to->width[block] = (uint8_t)width;
}

#define GPUIR__BLOCK_BYTES 1024u /* more than a block takes in any codec */

/* Encodes one block of count <= 128 gaps or frequencies, which it may change, into GPUIR__BLOCK_BYTES zeroed bytes.
 * Returns the end of its bytes; *width: its width byte. `unit` is what the block's bytes will be padded to. */
typedef uint8_t *gpuir__block_encoder(const gpuir__codec *codec, uint32_t *values, uint32_t count, uint32_t unit,
    uint8_t *to, uint8_t *width);

/* Encodes a list whose blocks stand alone, one after the other. A short list is `head` bytes, 1 for the width byte
 * or 0, and its block. 0, NOMEM or LIMIT. */
static int gpuir__encode_blocks(const gpuir__codec *codec, const uint32_t *values, uint32_t n, const gpuir__target *t,
    gpuir__block_encoder *encode, unsigned head) {
  const uint32_t unit = t->offset ? codec->unit : 1;
  const size_t start = t->out->len;
  uint32_t at, count, v[GPUIR__BLOCK];
  for (at = 0; at < n; at += count) {
    uint8_t *to = gpuir__zero_room(t->a, t->out, GPUIR__BLOCK_BYTES), *end, width = 0;
    const uint64_t offset = (t->out->len - start) / unit;
    if (!to || offset > UINT32_MAX) {
      t->out->len = start;
      return to ? GPUIR_E_LIMIT : GPUIR_E_NOMEM;
    }
    count = gpuir__min32(n - at, GPUIR__BLOCK);
    if (codec->docids) gpuir__take_gaps(values + at, count, at ? values[at - 1] : UINT32_MAX, v);
    else memcpy(v, values + at, count * sizeof *v);
    end = encode(codec, v, count, unit, t->offset ? to : to + head, &width);
    gpuir__target_block(t, at / GPUIR__BLOCK, (uint32_t)offset, width);
    if (!t->offset && head) to[0] = width;
    t->out->len += ((size_t)(end - to) + unit - 1) & ~(size_t)(unit - 1);
  }
  return GPUIR_OK;
}

/* ----
 * vbyte (1)
 *
 * Seven bits a byte, the low ones first; the high bit says that more bytes follow. Five bytes
 * at most. Source: Williams & Zobel, "Compressing integers for fast file access", The Computer
 * Journal 42(3), 1999.
 *
 *     value 300 = 10 0101100        byte 0  1|0101100        byte 1  0|0000010
 *                                   more ---'                 last --'
 *
 * The list is the bytes of its gaps (docIDs) or of its values (frequencies), without any
 * padding; a block's offset is that of its first byte, its width is 0. The decoder looks at the
 * high bits of 64 bytes at once, so that the length of one value does not hold up the next.
 *
 * A lane finds its value's last byte among the ends of gpuir__vbyte_ends and puts its bytes
 * together by gpuir__vbyte_value; gpuir__vbyte_at does both for value i of a block.
 * ----*/

/* Writes v, in 10 bytes at most; returns the end of them. */
static inline uint8_t *gpuir__vbyte_put(uint8_t *to, uint64_t v) {
  for (; v >= 128; v >>= 7) *to++ = (uint8_t)(v | 128);
  *to++ = (uint8_t)v;
  return to;
}

/* Reads a variable-byte value and moves *p behind it. A byte holds 7 bits, the low ones first, and its highest bit says
 * that more follow. Takes 10 bytes at most, whatever they are: damaged ones do not lead it further. */
static inline uint64_t gpuir__vbyte_get(const uint8_t **p) {
  uint64_t v = *(*p)++;
  if (GPUIR__UNLIKELY(v >= 128)) {
    unsigned shift = 7;
    uint64_t byte;
    v &= 127;
    do {
      byte = *(*p)++;
      v |= (byte & 127) << shift;
      shift += 7;
    } while (byte >= 128 && shift < 63);
  }
  return v;
}

/* Returns the value of `len` >= 1 bytes; reads 8. Of more than five bytes, which no encoder writes, the first five
 * count. */
GPUIR_HD uint32_t gpuir__vbyte_value(const uint8_t *p, unsigned len) {
  uint64_t x = gpuir__load64(p) & (UINT64_MAX >> (64 - 8 * (len < 5 ? len : 5)));
  x = (x & 0x007f007f007f007fu) | ((x & 0x7f007f007f007f00u) >> 1); /* 14 bits in each 16 */
  x = (x & 0x00003fff00003fffu) | ((x & 0x3fff00003fff0000u) >> 2); /* 28 bits in each 32 */
  return (uint32_t)x | (uint32_t)(x >> 32) << 28;
}

/* Returns a bit for each of the 64 bytes at p that ends a value; only `avail` bytes belong to the stream. */
GPUIR_HD uint64_t gpuir__vbyte_ends(const uint8_t *p, uint64_t avail) {
  uint64_t more = 0;
  unsigned i;
#if GPUIR__X86
  for (i = 0; i < 4; i++) /* SSE2, which every x86-64 has */
    more |= (uint64_t)(uint32_t)_mm_movemask_epi8(gpuir__sse_load(p + 16 * i)) << (16 * i);
#else
  for (i = 0; i < 8; i++)
    more |= ((gpuir__load64(p + 8 * i) & 0x8080808080808080u) >> 7) * 0x0102040810204080u >> 56 << (8 * i);
#endif
  return avail < 64 ? ~more & gpuir__low_bits64((unsigned)avail) : ~more;
}

/* Decodes count <= 128 values; those that the bytes do not hold are 0. */
static void gpuir__vbyte_values(const uint8_t *p, uint64_t avail, uint32_t count, uint32_t *out) {
  uint32_t i, j, got = 0;
  while (got < count) {
    uint64_t ends = gpuir__vbyte_ends(p, avail);
    uint32_t want = gpuir__min32(count - got, 64), start = 0;
    if (!ends) {
      memset(out + got, 0, (count - got) * sizeof *out);
      return;
    }
    if (!(~ends & (UINT64_MAX >> (64 - want)))) { /* one byte each */
      for (i = 0; i < want; i += 16)
        for (j = 0; j < 16; j++) out[got + i + j] = p[i + j];
      got += want;
      start = want;
    } else {
      do {
        uint32_t end = gpuir__ctz64(ends) + 1;
        out[got++] = gpuir__vbyte_value(p + start, end - start);
        ends &= ends - 1;
        start = end;
      } while (ends && got < count);
    }
    p += start;
    avail -= start;
  }
}

/* Returns value i of those that begin at p; 0 if the bytes do not hold it. */
GPUIR_HD uint32_t gpuir__vbyte_at(const uint8_t *p, uint64_t avail, uint32_t i) {
  for (;;) {
    const uint64_t ends = gpuir__vbyte_ends(p, avail);
    const unsigned here = gpuir__ones64(ends);
    unsigned end, start;
    if (!here) return 0;
    end = gpuir__select64(ends, i < here ? i : here - 1);
    if (i < here) {
      start = gpuir__width64(ends & gpuir__low_bits64(end)); /* behind the end before */
      return gpuir__vbyte_value(p + start, end + 1 - start);
    }
    i -= here;
    p += end + 1;
    avail -= end + 1;
  }
}

/* Returns where a block begins; *avail: the bytes of the stream from there on. */
GPUIR_HD const uint8_t *gpuir__vbyte_block(const gpuir__stream *s, uint32_t block, uint64_t *avail) {
  uint64_t at = s->offset ? gpuir__min64(s->offset[block], s->len) : 0;
  *avail = s->len - at;
  return s->bytes + at;
}

GPUIR__DECODES(gpuir__vbyte_decode) {
  const uint32_t count = gpuir__block_count(s->n, block);
  uint64_t avail;
  const uint8_t *p = gpuir__vbyte_block(s, block, &avail);
  gpuir__vbyte_values(p, avail, count, out);
  if (s->codec->docids) s->kernels->sum_gaps(out, count, prev, s->limit);
}

GPUIR_HD uint32_t gpuir__vbyte_freqs_get(const gpuir__stream *s, uint32_t i) {
  uint64_t avail;
  const uint8_t *p = gpuir__vbyte_block(s, i / GPUIR__BLOCK, &avail);
  return gpuir__vbyte_at(p, avail, i % GPUIR__BLOCK);
}

static uint8_t *gpuir__vbyte_encode_block(const gpuir__codec *codec, uint32_t *values, uint32_t count, uint32_t unit,
    uint8_t *to, uint8_t *width) {
  uint32_t i;
  (void)codec;
  (void)unit;
  (void)width;
  for (i = 0; i < count; i++) to = gpuir__vbyte_put(to, values[i]);
  return to;
}

GPUIR__ENCODES(gpuir__vbyte_encode) { return gpuir__encode_blocks(codec, values, n, t, gpuir__vbyte_encode_block, 0); }
