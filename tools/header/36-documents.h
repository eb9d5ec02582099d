
/* ========
 * [36-documents]  what is kept of a document: what its name says, and its text, packed
 *
 * A document of a file is named by its path, and a chunk of it by the path with the chunk's lines behind: a/b.c:51-100.
 * Whether a file is a program's source is said by the ending of its name.
 *
 * The texts of all documents, one behind the other, are cut into blocks of 16 KiB, and each block is packed by itself
 * as LZ4's block format has it (lz4_Block_format.md of the LZ4 project). Where a document ends does not matter: so the
 * bytes depend on the texts alone, and a merge writes what a build of the same documents writes. A packed block is
 * sequences: some bytes as they are, then a number of bytes that stood before. Since the encoder's choices are fixed
 * here, no version of a library changes the bytes.
 *
 * Uses      [16-base], [32-dictionary].
 * Start at  gpuir__path_of, gpuir__is_source, gpuir__listed, gpuir__text_pack, gpuir__text_unpack.
 * Tests     tests/unit/36_documents.c, tests/unit/texts.c
 * ======*/

/* Words of a list, ascending, each in so many bytes with the NULs behind it. */
#define GPUIR__LISTED 16

/* Endings of the names of source files: of programming languages, build scripts in one, style sheets, shaders and
 * descriptions of interfaces. Not those of data and of markup. */
static const char gpuir__sources[][GPUIR__LISTED] = {"adb", "ads", "agda", "asm", "astro", "awk", "bas", "bash", "bat",
    "bats", "c", "c++", "cbl", "cc", "cjs", "cl", "clj", "cljc", "cljs", "cob", "coffee", "cpp", "cr", "cs", "csx",
    "cts", "cu", "cuh", "cxx", "d", "dart", "ebnf", "el", "elm", "erl", "ex", "exs", "f", "f03", "f08", "f77", "f90",
    "f95", "fish", "for", "fs", "fsi", "fsx", "g4", "gd", "glsl", "go", "gradle", "groovy", "h", "h++", "hh", "hlsl",
    "hpp", "hrl", "hs", "hx", "hxx", "idr", "inc", "inl", "ino", "ipp", "java", "jl", "js", "jsx", "kt", "kts", "l",
    "lean", "lhs", "lisp", "lsp", "lua", "m", "metal", "mjs", "ml", "mli", "mm", "move", "mts", "nim", "nix", "nut",
    "pas", "php", "phtml", "pl", "pm", "pp", "proto", "ps1", "psm1", "purs", "py", "pyi", "pyw", "pyx", "r", "raku",
    "rb", "rkt", "rs", "s", "sass", "sc", "scala", "scm", "scss", "sh", "sml", "sol", "sql", "ss", "sv", "svelte",
    "swift", "tcl", "tf", "ts", "tsx", "v", "vala", "vb", "vhd", "vhdl", "vim", "vue", "wat", "wgsl", "y", "zig",
    "zsh"};

static inline char gpuir__small(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

/* Says whether a word, of which capitals count as small letters, is one of a list's n. */
static int gpuir__listed(const char (*list)[GPUIR__LISTED], size_t n, const char *word, size_t len) {
  char small[GPUIR__LISTED];
  size_t lo = 0, i;
  if (!len || len >= sizeof small) return 0;
  memset(small, 0, sizeof small);
  for (i = 0; i < len; i++) small[i] = gpuir__small(word[i]);
  while (n) {
    const size_t half = n / 2;
    int order = (int)(uint8_t)small[0] - (int)(uint8_t)list[lo + half][0]; /* mostly enough, without a call */
    if (!order) order = memcmp(small, list[lo + half], sizeof small);
    if (!order) return 1;
    if (order > 0) lo += half + 1;
    n = order > 0 ? n - half - 1 : half;
  }
  return 0;
}
#define GPUIR__LISTED_IN(list, word, len) gpuir__listed(list, sizeof(list) / sizeof(list)[0], word, len)

/* Returns how many of the digits are at the end of name[0..n). */
static size_t gpuir__digits_before(const char *name, size_t n) {
  size_t i = n;
  while (i && name[i - 1] >= '0' && name[i - 1] <= '9') i--;
  return n - i;
}

/* Returns the length of a document's name without the lines at its end: ":12", ":51-100". */
static size_t gpuir__path_of(const char *name, size_t n) {
  size_t digits = gpuir__digits_before(name, n), i = n - digits;
  if (!digits || !i) return n;
  if (name[i - 1] == ':') return i - 1;
  if (name[i - 1] != '-') return n;
  digits = gpuir__digits_before(name, i - 1);
  i -= 1 + digits;
  return digits && i && name[i - 1] == ':' ? i - 1 : n;
}

/* Finds the ending behind the last point of a file's name; one at its begin, as of .profile, begins none. Its length;
 * 0: there is none. */
static size_t gpuir__ending_of(const char *base, size_t n, const char **ending) {
  size_t i = n;
  while (i > 1 && base[i - 1] != '.') i--;
  *ending = base + i;
  return i > 1 ? n - i : 0;
}

/* Returns where the last component of a path begins. */
static size_t gpuir__base_of(const char *path, size_t n) {
  while (n && path[n - 1] != '/') n--;
  return n;
}

/* Says whether an ending is that of a source file. */
static int gpuir__is_source_ending(const char *ending, size_t n) { return GPUIR__LISTED_IN(gpuir__sources, ending, n); }

/* Says whether a document has the name of a source file. */
static int gpuir__is_source(const char *name, size_t n) {
  const char *ending;
  size_t base, len;
  n = gpuir__path_of(name, n);
  if (!n) return 0; /* a document without a name: name may be NULL */
  base = gpuir__base_of(name, n);
  len = gpuir__ending_of(name + base, n - base, &ending);
  return gpuir__is_source_ending(ending, len);
}

GPUIR_API int gpuir_is_source_name(const char *name, size_t len) { return name && gpuir__is_source(name, len); }

/* ---- texts, packed */

#ifndef GPUIR_NO_STORE

#define GPUIR__TEXT_BLOCK 16384u
#define GPUIR__TEXT_SLACK 32u /* bytes behind a block of text that its decoder may write */
#define GPUIR__TEXT_AHEAD 16u /* bytes behind a block of text that its encoder reads */
#define GPUIR__TEXT_PACKED_MOST (GPUIR__TEXT_BLOCK + GPUIR__TEXT_BLOCK / 255 + 32)

/* What the format asks for. The last sequence has no match; readers copy ahead of where they are. */
#define GPUIR__LZ_MATCH 4u /* least bytes of a match */
#define GPUIR__LZ_TAIL 5u /* bytes of a block's end that no match has */
#define GPUIR__LZ_BEGIN 12u /* no match begins in so many bytes of the end */

#define GPUIR__LZ_BITS 13u
#define GPUIR__LZ_PATIENCE 6u /* each 2^6 places without a match, one more is passed over at a time */

/* Where in the block some bytes stood last, by their hash; 0 also where they did not. */
typedef struct gpuir__lz_table {
  uint16_t at[1u << GPUIR__LZ_BITS];
} gpuir__lz_table;

/* The place of the next five bytes. Of four, text has too many alike that then turn out to be short matches. */
static inline uint16_t *gpuir__lz_slot(gpuir__lz_table *t, const uint8_t *p) {
  return &t->at[(gpuir__load64(p) << 24) * 0x9e3779b97f4a7c15u >> (64 - GPUIR__LZ_BITS)];
}

/* Appends what of a length its four bits do not hold. */
static inline uint8_t *gpuir__lz_put_length(uint8_t *out, size_t n) {
  if (n < 15) return out;
  for (n -= 15; n >= 255; n -= 255) *out++ = 255;
  *out++ = (uint8_t)n;
  return out;
}

/* Appends a sequence: n bytes as they are, then a match of `same` bytes, `back` bytes before; same 0: none. 16 bytes
 * are
 * copied at once where that is enough. */
static uint8_t *gpuir__lz_put(uint8_t *out, const uint8_t *bytes, size_t n, size_t same, size_t back) {
  const size_t more = same ? same - GPUIR__LZ_MATCH : 0;
  *out++ = (uint8_t)((n < 15 ? n : 15) << 4 | (more < 15 ? more : 15));
  out = gpuir__lz_put_length(out, n);
  if (n <= 16) memcpy(out, bytes, 16);
  else memcpy(out, bytes, n);
  out += n;
  if (!same) return out;
  *out++ = (uint8_t)back;
  *out++ = (uint8_t)(back >> 8);
  return gpuir__lz_put_length(out, more);
}

/* Packs n <= GPUIR__TEXT_BLOCK bytes to out[0..GPUIR__TEXT_PACKED_MOST); returns how many it takes. GPUIR__TEXT_AHEAD
 * bytes behind the text are read. At each place the last one with the same hash is tried, or the first of all; a match
 * is
 * taken as it is found, and begun as far before as it goes. */
static size_t gpuir__lz_pack(gpuir__lz_table *t, const uint8_t *text, size_t n, uint8_t *out) {
  const uint8_t *const begin = out;
  size_t at = 1, put = 0, tried = 0; /* text[0..put) is packed */
  memset(t, 0, sizeof *t);
  while (at + GPUIR__LZ_BEGIN < n) {
    uint16_t *const slot = gpuir__lz_slot(t, text + at);
    size_t from = *slot, same;
    *slot = (uint16_t)at;
    if (gpuir__load32(text + from) != gpuir__load32(text + at)) {
      at += 1 + (tried++ >> GPUIR__LZ_PATIENCE);
      continue;
    }
    same = GPUIR__LZ_MATCH;
    same += gpuir__common(text + from + same, text + at + same, n - GPUIR__LZ_TAIL - at - same);
    for (; at > put && from && text[at - 1] == text[from - 1]; at--, from--) same++;
    out = gpuir__lz_put(out, text + put, at - put, same, at - from);
    put = at += same;
    tried = 0;
    if (at + GPUIR__LZ_BEGIN < n) *gpuir__lz_slot(t, text + at - 2) = (uint16_t)(at - 2);
  }
  return (size_t)(gpuir__lz_put(out, text + put, n - put, 0, 0) - begin);
}

/* Reads on where a length's four bits are full, at most to in[n]; false at the end of the bytes. */
static inline int gpuir__lz_length(const uint8_t *in, size_t n, size_t *i, size_t *length) {
  uint8_t more = 255;
  if (*length < 15) return 1;
  for (; more == 255; *length += more) {
    if (*i >= n) return 0;
    more = in[(*i)++];
  }
  return 1;
}

/* Copies n bytes from `back` bytes before, which may overlap them; GPUIR__TEXT_SLACK bytes more may be written. */
static inline void gpuir__lz_repeat(uint8_t *out, size_t back, size_t n) {
  const uint8_t *from = out - back;
  size_t i;
  if (back >= 16) {
    for (i = 0; i < n; i += 16) memcpy(out + i, from + i, 16);
  } else if (back >= 8) {
    for (i = 0; i < n; i += 8) memcpy(out + i, from + i, 8);
  } else {
    for (i = 0; i < n; i++) out[i] = from[i];
  }
}

/* Unpacks the first `want` of a block's `size` bytes to `out`, which has room for `size` and GPUIR__TEXT_SLACK bytes,
 * and maybe more. 16 bytes behind the n packed ones are read. Returns whether the bytes can be unpacked. */
static int gpuir__lz_unpack(const uint8_t *in, size_t n, size_t want, size_t size, uint8_t *out) {
  size_t i = 0, o = 0;
  while (i < n) {
    const uint8_t token = in[i++];
    size_t bytes = token >> 4, same = token & 15, back;
    if (!gpuir__lz_length(in, n, &i, &bytes) || bytes > n - i || bytes > size - o) return 0;
    if (bytes <= 16) memcpy(out + o, in + i, 16);
    else memcpy(out + o, in + i, bytes);
    i += bytes;
    o += bytes;
    if (o >= want) return 1;
    if (n - i < 2) return 0;
    back = (size_t)in[i] | (size_t)in[i + 1] << 8;
    i += 2;
    if (!back || back > o || !gpuir__lz_length(in, n, &i, &same)) return 0;
    same += GPUIR__LZ_MATCH;
    if (same > size - o) return 0;
    gpuir__lz_repeat(out + o, back, same);
    o += same;
    if (o >= want) return 1;
  }
  return o >= want;
}

/* Packs a block of n <= GPUIR__TEXT_BLOCK bytes to `out`; returns how many it takes: n, where packing saves none. */
static size_t gpuir__text_pack(gpuir__lz_table *t, const uint8_t *text, size_t n, uint8_t *out) {
  const size_t packed = gpuir__lz_pack(t, text, n, out);
  if (packed < n) return packed;
  memcpy(out, text, n);
  return n;
}

/* Unpacks the first `want` bytes of a block of `size`: see gpuir__lz_unpack. */
static int gpuir__text_unpack(const uint8_t *in, size_t n, size_t want, size_t size, uint8_t *out) {
  if (n > size || want > size) return 0;
  if (n < size) return gpuir__lz_unpack(in, n, want, size, out);
  memcpy(out, in, want);
  return 1;
}
#endif /* GPUIR_NO_STORE */
