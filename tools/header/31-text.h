
/* ========
 * [31-text]  the analyzer `text`: words of segments, with their pairs, parts and spellings
 *
 * A segment is a run of letters, digits and marks in NFKC_Casefold form; of Han, kana, Hangul, Thai, Lao, Khmer and
 * Burmese each code point is one. A word is a run of segments with one connector between two (. : _ ' - / @ and their
 * typographic forms), or none where the script changes. Tokens of a segment, the first of which takes a position:
 *
 *   term       fold(stem(segment))
 *   part       of getUserName get, user and name: what inner capitals and digits part, each as a term
 *   signed     the term with its sign: c++, c#, .net, #tag, @you
 *   variant    fold(stem(fold(segment))), where that is not the term: typed without accents, it is what a reader types
 *   exact      FF x and the stem, where folding changed it: a word typed with its accents ranks its own spelling first
 *   pair       FF p, the terms of two neighbours of a word, FF between them. "O'Reilly" is asked for as the pair, and
 *              so never finds o and reilly apart, with or without positions; as a list of its own it weighs by its own
 *              df
 *   joined     the term of a word's segments together: don't as dont, e-mail as email, U.S.A. as usa
 *
 * FF stands in no UTF-8, so no text has such a term by itself. Folding drops the marks of Latin, Greek, Cyrillic,
 * Arabic and Hebrew behind stemming, which needs them. It never drops those of other scripts, where they are letters'
 * sounds, nor the breve of Cyrillic short i.
 *
 * A query's word of one segment is its term, or is signed; its other tokens are optional. One of several is its pairs.
 *
 * Characters are folded in clusters, a letter with the marks behind it, so that texts without blanks of any length need
 * little memory: behind a letter that stands alone normalization never looks back.
 *
 * Most segments are up to 15 letters and digits of ASCII, and most of these come again and again: what such a segment
 * becomes is kept in a table, so that it is stemmed and parted once.
 *
 * Uses      [16-base], [17-vectors], [30-analysis].
 * Start at  gpuir__text_scan, the last function: from there upwards.
 * Tests     tests/unit/31_text.c
 * ======*/

#ifdef GPUIR__HAS_TEXT

/* Classes of characters. */
enum {
  GPUIR__T_SEPARATOR,
  GPUIR__T_LETTER, /* and digits */
  GPUIR__T_POINT, /* a segment by itself */
  GPUIR__T_MARK, /* goes on with a segment */
  GPUIR__T_CONNECTOR,
  GPUIR__T_EMOJI
};

/* Kinds of characters, between which parts begin; 0: a further byte of a character. */
enum { GPUIR__K_UPPER = 1, GPUIR__K_LOWER, GPUIR__K_DIGIT, GPUIR__K_OTHER, GPUIR__K_MARK };

enum {
  GPUIR__T_PARTS = 8, /* of a segment; one with more is no identifier */
  GPUIR__T_JOINED = 24, /* bytes of a word that is joined */
  GPUIR__T_CLUSTER = 512, /* characters of a cluster, at most */
  GPUIR__T_KNOWN_BITS = 12, /* of the number of segments that are kept */
  GPUIR__T_COMPLEX = 0xffff /* in gpuir__wording.folded: by itself it does not fold to one letter */
};

/* A term; len 0: none. */
typedef struct gpuir__form {
  size_t len;
  char bytes[GPUIR_MAX_TERM + 1];
} gpuir__form;

/* A segment of at most 15 letters and digits of ASCII as the text has it, zeros behind it. */
typedef struct gpuir__text_key {
  uint64_t low, high;
} gpuir__text_key;

/* What such a segment becomes; one line of the processor's cache. */
typedef struct gpuir__known {
  gpuir__text_key key; /* low 0: empty */
  uint8_t stopped; /* it is a stop word */
  uint8_t nparts, ends[GPUIR__T_PARTS]; /* where each part ends */
  uint8_t len;
  char term[37];
} gpuir__known;

/* The characters of a segment, folded, in bytes [at, end) of the text. */
typedef struct gpuir__letters {
  size_t len; /* 0: none is in progress */
  size_t at, end;
  int over; /* it is too long */
  int inner; /* the cluster of its last character goes on behind it */
  int plain; /* all ASCII: kinds and offsets are not filled in */
  int mixed; /* plain, and it may have parts */
  const gpuir__known *known; /* plain, and this is what it becomes; valid until the next one is looked up */
  char seg[GPUIR_MAX_TERM + 5];
  uint8_t kind[GPUIR_MAX_TERM + 5]; /* [byte] of the character that it begins */
  size_t offset[GPUIR_MAX_TERM + 5]; /* [byte] where the text has it */
} gpuir__letters;

/* A segment of a word, in bytes [at, end) of the text. */
typedef struct gpuir__text_segment {
  gpuir__form term, variant, exact;
  size_t at, end;
  int stopped; /* it is a stop word */
  int letters; /* it is no code point of a script without spaces, and no emoji */
} gpuir__text_segment;

/* Where in its word the analysis is. */
enum { GPUIR__W_NONE, GPUIR__W_SEGMENT, GPUIR__W_CONNECTOR }; /* before it; behind a segment; and behind a connector */

/* The word in progress. */
typedef struct gpuir__wording {
  const char *text;
  size_t len;
  gpuir__letters both[2], *now, *last; /* of the segment in progress, and of the word's last one */
  /* the word */
  size_t at; /* where it begins */
  int state, link; /* the connector that the text has here: its ASCII form; 0: none */
  unsigned n; /* segments */
  gpuir__text_segment pieces[2]; /* the last two, number n in n % 2 */
  size_t joined_len;
  int joins, dots; /* so far all connectors are ' or -; or dots between single letters */
  char joined[GPUIR__T_JOINED];
  uint16_t folded[0x800]; /* of a character: what it folds to; 0: not looked up yet */
  gpuir__known *known; /* direct-mapped; NULL until it begins to pay, or where memory lacks: all works, but slower */
  unsigned unknown; /* segments of texts before that */
} gpuir__wording;

static inline gpuir__wording *gpuir__wording_of(const gpuir__analyzer *an) { return (gpuir__wording *)an->wording; }

/* ---- characters */

/* Says whether a character belongs to a script without spaces between words; Han and kana are known by their class. */
static int gpuir__text_unspaced(uint32_t c) {
  if (c < 0xe00) return 0;
  if (c <= 0xeff) return 1; /* Thai, Lao */
  if (c >= 0x1000 && c <= 0x109f) return 1; /* Burmese */
  if (c >= 0x1100 && c <= 0x11ff) return 1; /* Hangul */
  if (c >= 0x1780 && c <= 0x17ff) return 1; /* Khmer */
  if ((c >= 0x3131 && c <= 0x318e) || (c >= 0xa960 && c <= 0xa97f) || (c >= 0xa9e0 && c <= 0xa9ff) ||
      (c >= 0xaa60 && c <= 0xaa7f))
    return 1;
  return (c >= 0xac00 && c <= 0xd7ff) || (c >= 0xffa0 && c <= 0xffdc);
}

/* Says whether a character of ASCII is a connector: one of ' - . / : @ _ */
static inline int gpuir__text_connects(uint8_t c) {
  return (int)((c < 64 ? UINT64_C(0x400e08000000000) : UINT64_C(0x80000001)) >> (c & 63) & 1);
}

/* Returns the ASCII form of a connector, which decides what joins words; of U+00B7 it is 1; 0: it is none. */
static int gpuir__text_connector(uint32_t c) {
  if (c < 0x80) return gpuir__text_connects((uint8_t)c) ? (int)c : 0;
  switch (c) {
  case 0x2019:
  case 0xff07: return '\'';
  case 0x2010:
  case 0x2011:
  case 0xfe63:
  case 0xff0d: return '-';
  case 0x2024:
  case 0xfe52:
  case 0xff0e: return '.';
  case 0xfe13:
  case 0xfe55:
  case 0xff1a: return ':';
  case 0xfe33:
  case 0xfe34:
  case 0xfe4d:
  case 0xfe4e:
  case 0xfe4f:
  case 0xff3f: return '_';
  case 0xff0f: return '/';
  case 0xfe6b:
  case 0xff20: return '@';
  case 0xb7:
  case 0x387: return 1;
  default: return 0;
  }
}

/* By range and not by category, so that emoji newer than utf8proc are found, too. */
static int gpuir__text_emoji(uint32_t c) {
  return (c >= 0x2600 && c <= 0x27bf) || (c >= 0x1f1e6 && c <= 0x1f1ff) || (c >= 0x1f300 && c <= 0x1f64f) ||
      (c >= 0x1f680 && c <= 0x1f6ff) || (c >= 0x1f7e0 && c <= 0x1f7eb) || (c >= 0x1f900 && c <= 0x1faff);
}

static int gpuir__text_class(gpuir__analyzer *an, uint32_t c) {
  uint32_t folded;
  switch (gpuir__char_simple(an, c, &folded)) {
  case GPUIR__LETTER: return gpuir__text_unspaced(c) ? GPUIR__T_POINT : GPUIR__T_LETTER;
  case GPUIR__EXTEND: return gpuir__text_unspaced(c) ? GPUIR__T_POINT : GPUIR__T_MARK;
  case GPUIR__SEPARATOR:
    return gpuir__text_connector(c) ? GPUIR__T_CONNECTOR : gpuir__text_emoji(c) ? GPUIR__T_EMOJI : GPUIR__T_SEPARATOR;
  default: return GPUIR__T_POINT;
  }
}

static uint8_t gpuir__text_kind(uint32_t c) {
  switch (utf8proc_category((utf8proc_int32_t)c)) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LT: return GPUIR__K_UPPER;
  case UTF8PROC_CATEGORY_LL: return GPUIR__K_LOWER;
  case UTF8PROC_CATEGORY_ND:
  case UTF8PROC_CATEGORY_NL:
  case UTF8PROC_CATEGORY_NO: return GPUIR__K_DIGIT;
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_MC:
  case UTF8PROC_CATEGORY_ME:
  case UTF8PROC_CATEGORY_CF: return GPUIR__K_MARK;
  default: return GPUIR__K_OTHER;
  }
}

/* Says whether a character is a letter, of any script: category L. */
static int gpuir__text_is_letter(uint32_t c) {
  const int category = (int)utf8proc_category((utf8proc_int32_t)c);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

static inline uint8_t gpuir__text_ascii_kind(char c) {
  return c >= 'A' && c <= 'Z' ? GPUIR__K_UPPER : c >= '0' && c <= '9' ? GPUIR__K_DIGIT : GPUIR__K_LOWER;
}

static inline int gpuir__text_is_alnum(char c) { return (uint8_t)c < 0x80 && gpuir__fold_ascii[(uint8_t)c]; }

#if GPUIR__X86
/* Folds 16 bytes of text; bit i of the result: byte i is a letter or digit of ASCII. Compares as
 * gpuir__classify64. */
static inline unsigned gpuir__text_fold16(__m128i v, __m128i *folded) {
  const __m128i case_bit = _mm_set1_epi8(0x20);
  const __m128i alpha =
      _mm_cmplt_epi8(_mm_add_epi8(_mm_or_si128(v, case_bit), _mm_set1_epi8(0x80 - 'a')), _mm_set1_epi8(26 - 128));
  const __m128i digit = _mm_cmplt_epi8(_mm_add_epi8(v, _mm_set1_epi8(0x80 - '0')), _mm_set1_epi8(10 - 128));
  *folded = _mm_or_si128(v, _mm_and_si128(alpha, case_bit));
  return (unsigned)_mm_movemask_epi8(_mm_or_si128(alpha, digit));
}
#endif

/* Makes what is behind the first n <= 15 bytes of a key zeros. */
static inline void gpuir__text_key_cut(gpuir__text_key *key, unsigned n) {
  key->low &= n < 8 ? (UINT64_C(1) << 8 * n) - 1 : UINT64_MAX;
  key->high &= n > 8 ? (UINT64_C(1) << 8 * (n - 8)) - 1 : 0;
}

/* Reads the segment that text[0..n), n >= 1, begins with: its key, and its letters, folded, to seg[0..16). Returns its
 * bytes; 0: it has more than 15. */
static inline unsigned gpuir__text_key_read(const char *text, size_t n, gpuir__text_key *key, char *seg) {
  char copy[16];
  unsigned len = 0;
  if (GPUIR__UNLIKELY(n < sizeof copy)) { /* what is behind the text is not read */
    memset(copy, 0, sizeof copy);
    memcpy(copy, text, n);
    text = copy;
  }
#if GPUIR__X86
  {
    __m128i folded;
    len = gpuir__ctz32(~gpuir__text_fold16(gpuir__sse_load(text), &folded));
    gpuir__sse_store(seg, folded);
  }
#else
  for (; len < 16 && gpuir__text_is_alnum(text[len]); len++) seg[len] = (char)gpuir__fold_ascii[(uint8_t)text[len]];
#endif
  if (len > 15) return 0;
  key->low = gpuir__load64(text);
  key->high = gpuir__load64(text + 8);
  gpuir__text_key_cut(key, len);
  return len;
}

/* Returns how many of text[0..n) come before a letter, a digit or what is not ASCII. */
static inline size_t gpuir__text_gap(const char *text, size_t n) {
  size_t i = 0;
#if GPUIR__X86
  for (; n - i >= 16; i += 16) {
    const __m128i v = gpuir__sse_load(text + i);
    __m128i folded;
    const unsigned bits = gpuir__text_fold16(v, &folded) | (unsigned)_mm_movemask_epi8(v);
    if (bits) return i + gpuir__ctz32(bits);
  }
#endif
  while (i < n && !gpuir__fold_ascii[(uint8_t)text[i]]) i++;
  return i;
}

/* Returns the bytes of the character at text[i) if it belongs to the cluster of the one before: a mark, or a letter
 * that may become a part of it. 0: it begins one of its own, or is not UTF-8. */
static size_t gpuir__text_joins(gpuir__analyzer *an, const char *text, size_t i, size_t len) {
  const uint8_t *p = (const uint8_t *)text + i;
  uint32_t c, folded;
  size_t n;
  if (i >= len || *p < 0xc2 || (*p >= 0xc3 && *p <= 0xcb)) return 0;
  n = gpuir__utf8_get(p, len - i, &c);
  if (!n || (c >= 0x3400 && c <= 0x9fff) || (c >= 0xac00 && c <= 0xd7a3)) return 0;
  if ((c >= 0x1160 && c <= 0x11ff) || (c >= 0x3131 && c <= 0x318e) || (c >= 0xd7b0 && c <= 0xd7ff) ||
      (c >= 0xff9e && c <= 0xffdc))
    return n;
  return gpuir__char_simple(an, c, &folded) == GPUIR__EXTEND ? n : 0;
}

/* ---- folding */

static int gpuir__is_mark(uint32_t c) {
  const int category = (int)utf8proc_category((utf8proc_int32_t)c);
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ME;
}

/* Says whether the marks behind this letter are dropped: it is Latin, Greek or Cyrillic. */
static int gpuir__fold_base(uint32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  if ((c >= 0x2b0 && c <= 0x2ff) || (c >= 0x3e2 && c <= 0x3ef)) return 0; /* modifiers; Coptic */
  if (c < 0x530) return gpuir__char_class(c) == GPUIR__LETTER && gpuir__text_kind(c) != GPUIR__K_DIGIT;
  return c == 0x2184 || (c >= 0x1c80 && c <= 0x1c8f) || (c >= 0x1d00 && c <= 0x1dbf) || (c >= 0x1e00 && c <= 0x1fff) ||
      (c >= 0x2c60 && c <= 0x2c7f) || (c >= 0xa640 && c <= 0xa69f) || (c >= 0xa720 && c <= 0xa7ff) ||
      (c >= 0xab30 && c <= 0xab6f);
}

/* Says whether folding drops character c behind the letter `base` (0: none): vowel points of Arabic and Hebrew always,
 * other marks behind Latin, Greek and Cyrillic letters. The breve of Cyrillic short i stays: that is another letter. */
static int gpuir__fold_drops(uint32_t c, uint32_t base) {
  if ((c >= 0x64b && c <= 0x65f) || c == 0x670 || c == 0x640) return 1; /* harakat, hamza marks, tatweel */
  if ((c >= 0x591 && c <= 0x5bd) || c == 0x5bf || c == 0x5c1 || c == 0x5c2 || c == 0x5c4 || c == 0x5c5 || c == 0x5c7 ||
      c == 0xfb1e)
    return 1; /* Hebrew points */
  if (!base || !gpuir__is_mark(c)) return 0;
  return gpuir__fold_base(base) && !(c == 0x306 && base == 0x438);
}

/* Writes what a letter that no mark makes folds to. Returns how many characters that is. */
static unsigned gpuir__fold_letter(uint32_t c, utf8proc_int32_t to[2]) {
  to[1] = 0;
  switch (c) {
  case 0x131: to[0] = 'i'; return 1;
  case 0xf8: to[0] = 'o'; return 1;
  case 0x142: to[0] = 'l'; return 1;
  case 0x111:
  case 0xf0: to[0] = 'd'; return 1;
  case 0x127: to[0] = 'h'; return 1;
  case 0xfe: to[0] = 't', to[1] = 'h'; return 2;
  case 0xe6: to[0] = 'a', to[1] = 'e'; return 2;
  case 0x153: to[0] = 'o', to[1] = 'e'; return 2;
  default: to[0] = (utf8proc_int32_t)c; return 1;
  }
}

/* Folds n characters, which are decomposed, in place of chars[0..2n); returns how many there are then, composed, or a
 * negative number. */
static utf8proc_ssize_t gpuir__fold_chars(utf8proc_int32_t *chars, utf8proc_ssize_t n) {
  utf8proc_int32_t all[2 * GPUIR__T_CLUSTER];
  utf8proc_ssize_t i, kept = 0;
  uint32_t base = 0;
  for (i = 0; i < n; i++) {
    const uint32_t c = (uint32_t)chars[i];
    if (gpuir__fold_drops(c, base)) continue;
    if (!gpuir__is_mark(c)) base = c;
    kept += gpuir__fold_letter(c, all + kept);
  }
  memcpy(chars, all, (size_t)kept * sizeof *all);
  return utf8proc_normalize_utf32(chars, kept, (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
}

/* Folds a word of up to 255 bytes, character by character. A word of which nothing is left stays as it is; of one that
 * becomes too long nothing is. */
static void gpuir__fold_slowly(const char *word, size_t len, gpuir__form *to) {
  utf8proc_int32_t chars[2 * GPUIR__T_CLUSTER];
  gpuir__utf8_word w;
  utf8proc_ssize_t i,
      n = utf8proc_decompose((const utf8proc_uint8_t *)word, (utf8proc_ssize_t)len, chars, GPUIR__T_CLUSTER,
          (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE));
  to->len = 0;
  if (n < 0 || n > GPUIR__T_CLUSTER) return; /* more than any 255 bytes make */
  n = gpuir__fold_chars(chars, n);
  w.len = 0;
  for (i = 0; i < n; i++) gpuir__utf8_word_put(&w, (uint32_t)chars[i]);
  if (w.len > GPUIR_MAX_TERM) return;
  to->len = w.len ? w.len : len;
  memcpy(to->bytes, w.len ? (const char *)w.bytes : word, to->len);
}

/* Returns what a character folds to by itself: one letter, or GPUIR__T_COMPLEX. */
static uint32_t gpuir__fold_simple(gpuir__wording *w, uint32_t c) {
  utf8proc_int32_t chars[2 * GPUIR__T_CLUSTER];
  utf8proc_ssize_t n;
  int boundary = 0;
  if (c < 0x80) return c;
  if (c >= 0x800)
    return (c >= 0x1c80 && c <= 0x1fff) || (c >= 0x2c60 && c <= 0x2c7f) || (c >= 0xa640 && c <= 0xab6f) ||
            gpuir__is_mark(c)
        ? (uint32_t)GPUIR__T_COMPLEX
        : c;
  if (w->folded[c]) return w->folded[c];
  w->folded[c] = GPUIR__T_COMPLEX;
  n = utf8proc_decompose_char((utf8proc_int32_t)c, chars, 8, (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE),
      &boundary);
  if (n < 1 || n > 8 || gpuir__is_mark(c)) return GPUIR__T_COMPLEX;
  n = gpuir__fold_chars(chars, n);
  if (n == 1 && chars[0] < GPUIR__T_COMPLEX && !gpuir__is_mark((uint32_t)chars[0])) w->folded[c] = (uint16_t)chars[0];
  return w->folded[c];
}

/* Folds a word of up to 255 bytes; len 0: it becomes too long. */
static void gpuir__fold(gpuir__analyzer *an, const char *word, size_t len, gpuir__form *to) {
  const uint8_t *p = (const uint8_t *)word;
  gpuir__utf8_word w;
  size_t i, n;
  to->len = len;
  if (an->no_fold || !gpuir__has_high(word, len)) {
    memcpy(to->bytes, word, len);
    return;
  }
  w.len = 0;
  for (i = 0; i < len; i += n) {
    uint32_t c, folded;
    n = gpuir__utf8_get(p + i, len - i, &c);
    folded = n ? gpuir__fold_simple(gpuir__wording_of(an), c) : (uint32_t)GPUIR__T_COMPLEX;
    if (folded == GPUIR__T_COMPLEX) {
      gpuir__fold_slowly(word, len, to);
      return;
    }
    gpuir__utf8_word_put(&w, folded);
  }
  to->len = w.len; /* no letter becomes longer */
  memcpy(to->bytes, w.bytes, w.len);
}

static int gpuir__form_is(const gpuir__form *f, const char *bytes, size_t len) {
  return f->len == len && !memcmp(f->bytes, bytes, len);
}

/* ---- tokens */

/* Says whether a folded word is a stop word. */
static int gpuir__text_stops(const gpuir__analyzer *an, const char *word, size_t len) {
  return an->filtered && an->stops.nslots && gpuir__stops_have(&an->stops, word, len, gpuir__word_hash(an, word, len));
}

/* Writes a word's stem: bytes that live until the next word; *stem_len 0: it is too long. */
static int gpuir__text_stem(gpuir__analyzer *an, const char *word, size_t len, const char **stem, size_t *stem_len) {
  *stem = word;
  *stem_len = len;
#ifdef GPUIR_WITH_STEMMER
  if (an->filtered && an->stemmer) return gpuir__stem(an, word, len, gpuir__word_hash(an, word, len), stem, stem_len);
#endif
  (void)an;
  return GPUIR_OK;
}

/* Writes the term of a folded word; len 0: it is too long. */
static int gpuir__text_term(gpuir__analyzer *an, const char *word, size_t len, gpuir__form *to) {
  const char *stem;
  size_t n;
  const int status = gpuir__text_stem(an, word, len, &stem, &n);
  if (!status) gpuir__fold(an, stem, n, to);
  return status;
}

/* Emits a token that stands in bytes [at, end) of the text. In a text, one that finds its position full takes the next
 * one: only pairs of many stop words can. */
static int gpuir__text_emit(gpuir__analyzer *an, const char *token, size_t len, unsigned advance, size_t at,
    size_t end) {
  if (!an->query) {
    if (an->shared == GPUIR_MAX_PLACE) advance = 1;
    an->shared = advance ? 1 : an->shared + (an->shared > 0);
  }
  an->at = at;
  an->end = end;
  return an->emit(an->sink, token, len, advance);
}

/* Copies a term. Of a short one 16 bytes are copied, which takes no call: `to` has room for them. */
static inline void gpuir__text_copy(char *to, const gpuir__form *from) {
  if (GPUIR__LIKELY(from->len <= 16)) memcpy(to, from->bytes, 16);
  else memcpy(to, from->bytes, from->len);
}

/* Emits the pair of two terms. One that is too long is named by its hash. */
static int gpuir__text_pair(gpuir__analyzer *an, const gpuir__form *a, const gpuir__form *b, unsigned advance) {
  const gpuir__wording *w = gpuir__wording_of(an);
  const gpuir__text_segment *first = &w->pieces[w->n % 2], *second = &w->pieces[(w->n + 1) % 2];
  char pair[2 * GPUIR_MAX_TERM + 3 + 16];
  size_t len = 3 + a->len + b->len;
  pair[0] = '\xff';
  pair[1] = 'p';
  gpuir__text_copy(pair + 2, a);
  pair[2 + a->len] = '\xff';
  gpuir__text_copy(pair + 3 + a->len, b);
  if (len > GPUIR_MAX_TERM) {
    XXH128_canonical_t hash;
    XXH128_canonicalFromHash(&hash, XXH3_128bits(pair + 2, len - 2));
    pair[1] = 'P';
    memcpy(pair + 2, hash.digest, sizeof hash.digest);
    len = 2 + sizeof hash.digest;
  }
  return gpuir__text_emit(an, pair, len, advance, first->at, second->end);
}

/* Emits the pairs of the word's last two segments: of their terms and, in a text, of their variants. */
static int gpuir__text_pairs(gpuir__analyzer *an) {
  const gpuir__wording *w = gpuir__wording_of(an);
  const gpuir__text_segment *first = &w->pieces[w->n % 2], *second = &w->pieces[(w->n + 1) % 2];
  const int status = gpuir__text_pair(an, &first->term, &second->term, (unsigned)an->query);
  if (status || an->query || (!first->variant.len && !second->variant.len)) return status;
  return gpuir__text_pair(an, first->variant.len ? &first->variant : &first->term,
      second->variant.len ? &second->variant : &second->term, 0);
}

/* A part of a segment: bytes [at, end) of it. */
typedef struct gpuir__text_part {
  size_t at, end, chars;
} gpuir__text_part;

/* Fills in the kinds of a plain segment's characters and where they stand. */
static void gpuir__letters_fill(gpuir__letters *l, const char *text) {
  size_t i;
  for (i = 0; i < l->len; i++) {
    l->kind[i] = gpuir__text_ascii_kind(text[l->at + i]);
    l->offset[i] = l->at + i;
  }
  l->plain = 0;
}

/* Says whether a part begins with a character, between those of the kinds `before` and `after` (0: there is none). */
static int gpuir__text_part_begins(unsigned before, unsigned kind, unsigned after) {
  if ((before == GPUIR__K_DIGIT) != (kind == GPUIR__K_DIGIT)) return 1;
  if (kind != GPUIR__K_UPPER) return 0;
  return before == GPUIR__K_LOWER || (before == GPUIR__K_UPPER && after == GPUIR__K_LOWER);
}

/* Returns the place of the character behind the one at i, and behind its marks, of characters of these kinds. */
static size_t gpuir__kinds_step(const uint8_t *kind, size_t len, size_t i) {
  for (i++; i < len && (!kind[i] || kind[i] == GPUIR__K_MARK); i++) {}
  return i;
}

/* Writes the parts of a segment, whose characters are of these kinds, to parts[0..GPUIR__T_PARTS); returns how many
 * there are. None if there are more, as in base64, or if most have one character, as in hashes. */
static unsigned gpuir__text_parts(const uint8_t *kind, size_t len, gpuir__text_part *parts) {
  unsigned n = 1, single = 0, i;
  size_t at, next, behind;
  parts[0].at = parts[0].chars = 0;
  for (at = 0;; at = next) {
    next = gpuir__kinds_step(kind, len, at);
    parts[n - 1].chars++;
    parts[n - 1].end = next;
    if (next == len) break;
    behind = gpuir__kinds_step(kind, len, next);
    if (!gpuir__text_part_begins(kind[at], kind[next], behind < len ? kind[behind] : 0)) continue;
    if (n == GPUIR__T_PARTS) return 0;
    parts[n].at = next;
    parts[n++].chars = 0;
  }
  for (i = 0; i < n; i++) single += parts[i].chars == 1;
  return n > 1 && single * 2 <= n ? n : 0;
}

/* ---- segments that come again */

/* Fills in what a segment becomes, whose letters, folded, are seg[0..n). Returns NULL if the table cannot hold that. */
GPUIR__NOINLINE const gpuir__known *gpuir__known_make(gpuir__analyzer *an, gpuir__known *k, const gpuir__text_key *key,
    const char *seg, unsigned n) {
  gpuir__text_part parts[GPUIR__T_PARTS];
  uint8_t kind[16];
  char raw[16];
  const char *stem;
  size_t len;
  unsigned i;
  k->key.low = 0;
  if (gpuir__text_stem(an, seg, n, &stem, &len) || !len || len > sizeof k->term || gpuir__has_high(stem, len))
    return NULL;
  k->len = (uint8_t)len;
  memcpy(k->term, stem, len);
  k->stopped = (uint8_t)gpuir__text_stops(an, seg, n);
  memcpy(raw, key, sizeof raw);
  for (i = 0; i < n; i++) kind[i] = gpuir__text_ascii_kind(raw[i]);
  k->nparts = (uint8_t)gpuir__text_parts(kind, n, parts);
  for (i = 0; i < k->nparts; i++) k->ends[i] = (uint8_t)parts[i].end;
  k->key = *key;
  return k;
}

/* Returns what a segment becomes; NULL: that must be found out. */
static inline const gpuir__known *gpuir__text_known(gpuir__analyzer *an, const gpuir__text_key *key, const char *seg,
    unsigned n) {
  const uint64_t hash = (key->low ^ key->high * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);
  gpuir__known *k = gpuir__wording_of(an)->known;
  if (GPUIR__UNLIKELY(!k)) return NULL;
  k += hash >> (64 - GPUIR__T_KNOWN_BITS);
  if (GPUIR__LIKELY(k->key.low == key->low && k->key.high == key->high)) return k;
  return gpuir__known_make(an, k, key, seg, n);
}

/* Makes the table when it begins to pay: not for a query, nor for the few segments of short texts. */
GPUIR__COLD static void gpuir__text_remember(gpuir__analyzer *an) {
  gpuir__wording *w = gpuir__wording_of(an);
  if (++w->unknown != 256) return;
  w->known = (gpuir__known *)gpuir__alloc_zero(&an->a, sizeof *w->known << GPUIR__T_KNOWN_BITS);
  if (!w->known) w->unknown = 0;
}

/* Writes the term of a part, whose letters, folded, are part[0..len); len 0: it is a stop word or too long. `plain`: it
 * is ASCII, at most 15 bytes, and 16 may be read. */
static int gpuir__text_part_term(gpuir__analyzer *an, const char *part, size_t len, int plain, gpuir__form *to) {
  const gpuir__known *k = NULL;
  to->len = 0;
  if (plain) {
    gpuir__text_key key;
    key.low = gpuir__load64(part);
    key.high = gpuir__load64(part + 8);
    gpuir__text_key_cut(&key, (unsigned)len);
    k = gpuir__text_known(an, &key, part, (unsigned)len);
  }
  if (!k) return gpuir__text_stops(an, part, len) ? GPUIR_OK : gpuir__text_term(an, part, len, to);
  if (k->stopped) return GPUIR_OK;
  to->len = k->len;
  memcpy(to->bytes, k->term, sizeof k->term);
  return GPUIR_OK;
}

/* Emits the parts of a known segment, which begins at text[at) and is seg[0..15) when folded. */
static int gpuir__text_put_known_parts(gpuir__analyzer *an, const gpuir__known *known, const char *seg, size_t at) {
  gpuir__form form;
  uint8_t ends[GPUIR__T_PARTS];
  const unsigned n = known->nparts;
  unsigned i, start = 0;
  int status = GPUIR_OK;
  memcpy(ends, known->ends, sizeof ends); /* looking its parts up may end it */
  for (i = 0; i < n && !status; start = ends[i++]) {
    if (ends[i] - start < 2) continue;
    status = gpuir__text_part_term(an, seg + start, ends[i] - start, 1, &form);
    if (!status && form.len) status = gpuir__text_emit(an, form.bytes, form.len, 0, at + start, at + ends[i]);
  }
  return status;
}

/* Emits the parts of the last segment. In a query only those of one that begins small or has three: "JavaScript" does
 * not ask for java. */
static int gpuir__text_put_parts(gpuir__analyzer *an, const gpuir__text_segment *p) {
  gpuir__letters *l = gpuir__wording_of(an)->last;
  gpuir__text_part parts[GPUIR__T_PARTS];
  gpuir__form form;
  unsigned n, i;
  int status = GPUIR_OK;
  if (l->known) return gpuir__text_put_known_parts(an, l->known, l->seg, p->at);
  if (l->plain && !l->mixed) return GPUIR_OK;
  if (l->plain) gpuir__letters_fill(l, gpuir__wording_of(an)->text);
  n = gpuir__text_parts(l->kind, l->len, parts);
  if (an->query && n < 3 && (!n || l->kind[0] != GPUIR__K_LOWER)) return GPUIR_OK;
  for (i = 0; i < n && !status; i++) {
    if (parts[i].chars < 2) continue;
    status = gpuir__text_part_term(an, l->seg + parts[i].at, parts[i].end - parts[i].at, 0, &form);
    if (!status && form.len)
      status = gpuir__text_emit(an, form.bytes, form.len, 0, l->offset[parts[i].at],
          parts[i].end < l->len ? l->offset[parts[i].end] : p->end);
  }
  return status;
}

/* Says whether the character that ends before text[i) is a letter, a digit, a mark or a closing parenthesis. */
static int gpuir__text_behind_word(gpuir__analyzer *an, size_t i) {
  const uint8_t *text = (const uint8_t *)gpuir__wording_of(an)->text;
  size_t back;
  uint32_t c;
  if (!i) return 0;
  if (text[i - 1] < 0x80) return text[i - 1] == ')' || gpuir__fold_ascii[text[i - 1]];
  for (back = 2; back <= 4 && back <= i; back++)
    if (gpuir__utf8_get(text + i - back, back, &c) == back) {
      const int class_ = gpuir__text_class(an, c);
      return class_ == GPUIR__T_LETTER || class_ == GPUIR__T_POINT || class_ == GPUIR__T_MARK;
    }
  return 0;
}

/* Returns the sign that stands before the word's first segment: . # or @; 0: there is none. */
static char gpuir__text_sign_before(gpuir__analyzer *an, const gpuir__text_segment *p) {
  const gpuir__wording *w = gpuir__wording_of(an);
  char c;
  uint32_t first;
  if (w->n != 1 || !p->at) return 0;
  c = w->text[p->at - 1];
  if (c != '.' && c != '#' && c != '@') return 0;
  if (!gpuir__utf8_get((const uint8_t *)w->text + p->at, w->len - p->at, &first) || !gpuir__text_is_letter(first))
    return 0;
  return gpuir__text_behind_word(an, p->at - 1) ? 0 : c;
}

/* Returns the bytes of the sign behind a segment, "++" or "#"; 0: there is none, or a letter is behind it. */
static size_t gpuir__text_sign_behind(gpuir__analyzer *an, const gpuir__text_segment *p) {
  const gpuir__wording *w = gpuir__wording_of(an);
  const size_t left = w->len - p->end;
  uint32_t c;
  size_t n = left && w->text[p->end] == '#' ? 1 : left > 1 && !memcmp(w->text + p->end, "++", 2) ? 2 : 0, back = 1;
  if (!n) return 0;
  if (left > n && gpuir__utf8_get((const uint8_t *)w->text + p->end + n, left - n, &c) && gpuir__text_is_letter(c))
    return 0;
  while (back < 4 && back < p->end - p->at && ((uint8_t)w->text[p->end - back] & 0xc0) == 0x80) back++;
  return gpuir__utf8_get((const uint8_t *)w->text + p->end - back, back, &c) && gpuir__text_is_letter(c) ? n : 0;
}

/* Emits the last segment with its signs; *n becomes their number. */
static int gpuir__text_put_signed(gpuir__analyzer *an, const gpuir__text_segment *p, unsigned *n) {
  char token[GPUIR_MAX_TERM + 3];
  const char before = gpuir__text_sign_before(an, p);
  const size_t behind = gpuir__wording_of(an)->last->inner ? 0 : gpuir__text_sign_behind(an, p);
  int status = GPUIR_OK;
  *n = 0;
  if (before && p->term.len < GPUIR_MAX_TERM) {
    token[0] = before;
    memcpy(token + 1, p->term.bytes, p->term.len);
    status = gpuir__text_emit(an, token, p->term.len + 1, (unsigned)an->query, p->at - 1, p->end);
    ++*n;
  }
  if (status || !behind || p->term.len + behind > GPUIR_MAX_TERM) return status;
  memcpy(token, p->term.bytes, p->term.len);
  memcpy(token + p->term.len, gpuir__wording_of(an)->text + p->end, behind);
  ++*n;
  return gpuir__text_emit(an, token, p->term.len + behind, (unsigned)an->query, p->at, p->end + behind);
}

/* Emits the tokens of the last segment, but for its pairs. A query asks for the signed term in place of the term. */
static int gpuir__text_put_segment(gpuir__analyzer *an) {
  const gpuir__wording *w = gpuir__wording_of(an);
  const gpuir__text_segment *p = &w->pieces[(w->n + 1) % 2];
  unsigned nsigned = 0;
  int status = GPUIR_OK;
  if (p->stopped) return GPUIR_OK;
  if (!an->query) status = gpuir__text_emit(an, p->term.bytes, p->term.len, 1, p->at, p->end);
  if (!status && p->letters) status = gpuir__text_put_signed(an, p, &nsigned);
  if (!status && an->query && !nsigned) status = gpuir__text_emit(an, p->term.bytes, p->term.len, 1, p->at, p->end);
  if (!status && p->letters) status = gpuir__text_put_parts(an, p);
  if (!status && p->variant.len) status = gpuir__text_emit(an, p->variant.bytes, p->variant.len, 0, p->at, p->end);
  if (!status && p->exact.len) status = gpuir__text_emit(an, p->exact.bytes, p->exact.len, 0, p->at, p->end);
  return status;
}

/* ---- words */

/* Emits the word's segments together, if all connectors join. */
static int gpuir__text_put_joined(gpuir__analyzer *an) {
  const gpuir__wording *w = gpuir__wording_of(an);
  gpuir__form form;
  int status;
  if (w->n < 2 || !((w->joins && w->n <= 3) || w->dots)) return GPUIR_OK;
  if (gpuir__text_stops(an, w->joined, w->joined_len)) return GPUIR_OK;
  status = gpuir__text_term(an, w->joined, w->joined_len, &form);
  if (status || !form.len) return status;
  return gpuir__text_emit(an, form.bytes, form.len, 0, w->at, w->pieces[(w->n + 1) % 2].end);
}

/* Ends the word. */
static int gpuir__text_word_end(gpuir__analyzer *an) {
  gpuir__wording *w = gpuir__wording_of(an);
  int status = GPUIR_OK;
  if (w->n == 1 && an->query) status = gpuir__text_put_segment(an);
  if (!status) status = gpuir__text_put_joined(an);
  w->state = GPUIR__W_NONE;
  w->n = 0;
  return status;
}

/* Leaves a segment out that is too long: it parts its neighbours. */
static int gpuir__text_drop(gpuir__analyzer *an) {
  an->dropped++;
  gpuir__wording_of(an)->now->len = 0;
  return gpuir__text_word_end(an);
}

/* Takes the segment in progress, which the word's connector led to, for what is joined. */
static void gpuir__text_join(gpuir__wording *w, int letters) {
  const gpuir__letters *l = w->now;
  const int link = w->state == GPUIR__W_CONNECTOR ? w->link : 0;
  const uint8_t kind = !letters ? 0 : l->plain ? gpuir__text_ascii_kind(w->text[l->at]) : l->kind[0];
  const int single = letters && kind != GPUIR__K_DIGIT &&
      (l->plain ? l->len : gpuir__kinds_step(l->kind, l->len, 0)) == l->len && (!l->plain || l->len == 1);
  if (!w->n) {
    w->joined_len = 0;
    w->joins = letters;
    w->dots = single;
  } else {
    w->joins = w->joins && letters && (link == '\'' || link == '-');
    w->dots = w->dots && single && link == '.';
  }
  if (w->joined_len + l->len > GPUIR__T_JOINED) w->joins = w->dots = 0;
  if (!w->joins && !w->dots) return;
  memcpy(w->joined + w->joined_len, l->seg, l->len);
  w->joined_len += l->len;
}

/* Says whether a segment is the beginning of a word. */
static int gpuir__text_is_open(const gpuir__analyzer *an, const gpuir__letters *l) {
  return an->open_end && l->end == gpuir__wording_of(an)->len;
}

/* Writes the term, the variant and the exact spelling of the segment in progress. */
static int gpuir__text_forms(gpuir__analyzer *an, gpuir__text_segment *p) {
  const gpuir__letters *l = gpuir__wording_of(an)->now;
  const char *stem = l->seg;
  gpuir__form folded;
  size_t n = l->len;
  int status;
  p->variant.len = p->exact.len = p->term.len = 0;
  if (l->known) {
    p->term.len = l->known->len;
    memcpy(p->term.bytes, l->known->term, sizeof l->known->term);
    return GPUIR_OK;
  }
  status = gpuir__text_is_open(an, l) ? GPUIR_OK : gpuir__text_stem(an, l->seg, l->len, &stem, &n);
  if (status) return status;
  gpuir__fold(an, stem, n, &p->term);
  if (an->no_fold || !p->term.len) return GPUIR_OK;
  if (!gpuir__form_is(&p->term, stem, n) && n + 2 <= GPUIR_MAX_TERM) {
    p->exact.len = n + 2;
    memcpy(p->exact.bytes, "\xffx", 2);
    memcpy(p->exact.bytes + 2, stem, n);
  }
  if (l->plain) return GPUIR_OK;
  gpuir__fold(an, l->seg, l->len, &folded);
  if (!folded.len || gpuir__form_is(&folded, l->seg, l->len)) return GPUIR_OK;
  status = gpuir__text_term(an, folded.bytes, folded.len, &p->variant);
  if (gpuir__form_is(&p->term, p->variant.bytes, p->variant.len)) p->variant.len = 0;
  return status;
}

/* Adds the segment in progress to the word. */
static int gpuir__text_add(gpuir__analyzer *an, int letters) {
  gpuir__wording *w = gpuir__wording_of(an);
  gpuir__letters *l = w->now;
  gpuir__text_segment *p = &w->pieces[w->n % 2];
  int status = GPUIR_OK;
  if (an->collecting) { /* stop words are looked up before they are stemmed and folded */
    const size_t len = l->len;
    l->len = 0;
    return an->emit(an->sink, l->seg, len, 1);
  }
  if (letters) {
    status = gpuir__text_forms(an, p);
  } else {
    p->term.len = l->len;
    memcpy(p->term.bytes, l->seg, l->len);
    p->variant.len = p->exact.len = 0;
  }
  if (status) return status;
  if (!p->term.len) return gpuir__text_drop(an);
  p->at = l->at;
  p->end = l->end;
  p->letters = letters;
  p->stopped = l->known ? l->known->stopped : !gpuir__text_is_open(an, l) && gpuir__text_stops(an, l->seg, l->len);
  gpuir__text_join(w, letters);
  if (!w->n++) w->at = l->at;
  w->state = GPUIR__W_SEGMENT;
  w->now = w->last;
  w->now->len = 0;
  w->last = l;
  if (!an->query) status = gpuir__text_put_segment(an);
  return !status && w->n > 1 ? gpuir__text_pairs(an) : status;
}

/* Ends the segment in progress. What is left of a possessive is no segment. */
static int gpuir__text_close(gpuir__analyzer *an) {
  gpuir__wording *w = gpuir__wording_of(an);
  gpuir__letters *l = w->now;
  if (!l->len) return GPUIR_OK;
  if (l->over) return gpuir__text_drop(an);
  if (an->possessive && l->len == 1 && l->seg[0] == 's' && w->n && w->state == GPUIR__W_CONNECTOR && w->link == '\'') {
    w->state = GPUIR__W_SEGMENT;
    l->len = 0;
    return GPUIR_OK;
  }
  return gpuir__text_add(an, 1);
}

/* Takes a separator. */
static int gpuir__text_separate(gpuir__analyzer *an) {
  const int status = gpuir__text_close(an);
  return status ? status : gpuir__text_word_end(an);
}

/* Takes a connector. */
static int gpuir__text_connect(gpuir__analyzer *an, int connector) {
  gpuir__wording *w = gpuir__wording_of(an);
  const int status = gpuir__text_close(an);
  if (status) return status;
  if (w->state != GPUIR__W_SEGMENT) return gpuir__text_word_end(an);
  w->state = GPUIR__W_CONNECTOR;
  w->link = connector;
  return GPUIR_OK;
}

/* Begins a segment at text[at), unless one is in progress. */
static inline void gpuir__letters_open(gpuir__letters *l, size_t at, int plain) {
  if (l->len) return;
  l->at = at;
  l->over = l->mixed = l->inner = 0;
  l->plain = plain;
  l->known = NULL;
}

/* Says whether `more` bytes find no room in a segment, which is then too long. */
static inline int gpuir__letters_over(gpuir__letters *l, size_t more) {
  if (GPUIR__LIKELY(!l->over && l->len + more <= GPUIR_MAX_TERM)) return 0;
  l->over = 1;
  l->len += !l->len;
  return 1;
}

/* Adds a folded character, which bytes [at, end) of the text made, to the segment in progress. */
static void gpuir__text_put(gpuir__wording *w, uint32_t c, uint8_t kind, size_t at, size_t end) {
  gpuir__letters *l = w->now;
  gpuir__utf8_word one;
  size_t i;
  gpuir__letters_open(l, at, 0);
  l->end = end;
  one.len = 0;
  gpuir__utf8_word_put(&one, c);
  if (gpuir__letters_over(l, one.len)) return;
  if (l->plain) gpuir__letters_fill(l, w->text);
  l->known = NULL;
  for (i = 0; i < one.len; i++) {
    l->seg[l->len + i] = (char)one.bytes[i];
    l->kind[l->len + i] = i ? 0 : kind;
    l->offset[l->len + i] = at;
  }
  l->len += one.len;
}

/* Takes a segment of one code point, or an emoji, in bytes [at, end) of the text: `point`. */
static int gpuir__text_point(gpuir__analyzer *an, size_t at, size_t end, const gpuir__utf8_word *point) {
  gpuir__letters *l = gpuir__wording_of(an)->now;
  gpuir__letters_open(l, at, 0);
  l->end = end;
  l->len = point->len;
  memcpy(l->seg, point->bytes, point->len);
  return gpuir__text_add(an, 0);
}

/* Takes a folded character, which bytes [at, end) of the text made. */
static int gpuir__text_char(gpuir__analyzer *an, uint32_t c, uint8_t kind, size_t at, size_t end) {
  gpuir__wording *w = gpuir__wording_of(an);
  gpuir__utf8_word one;
  int class_ = gpuir__text_class(an, c), status;
  if (class_ == GPUIR__T_LETTER || (class_ == GPUIR__T_MARK && w->now->len)) {
    gpuir__text_put(w, c, class_ == GPUIR__T_MARK ? (uint8_t)GPUIR__K_MARK : kind, at, end);
    return GPUIR_OK;
  }
  w->now->inner = w->now->end == end;
  if (class_ == GPUIR__T_CONNECTOR) return gpuir__text_connect(an, gpuir__text_connector(c));
  if (class_ != GPUIR__T_POINT && !(class_ == GPUIR__T_MARK && w->state == GPUIR__W_SEGMENT))
    return gpuir__text_separate(an);
  status = gpuir__text_close(an);
  if (status) return status;
  one.len = 0;
  gpuir__utf8_word_put(&one, c);
  return gpuir__text_point(an, at, end, &one);
}

/* Takes the cluster that begins at text[*i); *i becomes where it ends. */
static int gpuir__text_cluster(gpuir__analyzer *an, size_t *i) {
  const gpuir__wording *w = gpuir__wording_of(an);
  const uint8_t *text = (const uint8_t *)w->text;
  utf8proc_int32_t chars[GPUIR__T_CLUSTER];
  utf8proc_ssize_t j, n = -1;
  const size_t at = *i;
  size_t end, more;
  uint32_t c = 0, folded = 0;
  uint8_t kind;
  int status = GPUIR_OK;
  end = at + gpuir__utf8_get(text + at, w->len - at, &c);
  kind = c < 0x80 ? gpuir__text_ascii_kind((char)c) : gpuir__text_kind(c);
  more = gpuir__text_joins(an, w->text, end, w->len);
  if (!more) (void)gpuir__char_simple(an, c, &folded);
  for (; more; more = gpuir__text_joins(an, w->text, end, w->len)) end += more;
  *i = end;
  if (folded) return gpuir__text_char(an, folded, kind, at, end);
  if (end - at <= 4096)
    n = utf8proc_decompose(text + at, (utf8proc_ssize_t)(end - at), chars, GPUIR__T_CLUSTER,
        (utf8proc_option_t)GPUIR__FOLDING);
  if (n >= 0 && n <= GPUIR__T_CLUSTER) n = utf8proc_normalize_utf32(chars, n, (utf8proc_option_t)GPUIR__FOLDING);
  if (n < 0 || n > GPUIR__T_CLUSTER) { /* junk of marks */
    an->dropped++;
    return gpuir__text_separate(an);
  }
  for (j = 0; j < n && !status; j++) status = gpuir__text_char(an, (uint32_t)chars[j], kind, at, end);
  return status;
}

/* Takes the emoji that begins at text[*i), with its modifiers and what joiners add to it: a word by itself. */
static int gpuir__text_take_emoji(gpuir__analyzer *an, size_t *i) {
  const gpuir__wording *w = gpuir__wording_of(an);
  const uint8_t *text = (const uint8_t *)w->text;
  gpuir__utf8_word word;
  const size_t at = *i;
  size_t end = at, n;
  uint32_t c = 0, before = 0, next;
  int status = gpuir__text_separate(an);
  word.len = 0;
  while (end < w->len && (n = gpuir__utf8_get(text + end, w->len - end, &c)) != 0) {
    const int flag = c >= 0x1f1e6 && c <= 0x1f1ff, flag_before = before >= 0x1f1e6 && before <= 0x1f1ff;
    if (c == 0x200d) { /* only before a further one */
      const size_t behind = end + n;
      if (behind >= w->len || !gpuir__utf8_get(text + behind, w->len - behind, &next) || !gpuir__text_emoji(next))
        break;
    } else if (end > at && c != 0xfe0f && before != 0x200d && !(c >= 0x1f3fb && c <= 0x1f3ff) &&
        !(flag && flag_before && word.len == 4)) {
      break;
    }
    if (c != 0xfe0f) {
      gpuir__utf8_word_put(&word, c);
      before = c;
    }
    end += n;
  }
  *i = end;
  if (status) return status;
  if (word.len > GPUIR_MAX_TERM) return gpuir__text_drop(an);
  status = gpuir__text_point(an, at, end, &word);
  return status ? status : gpuir__text_word_end(an);
}

/* Takes the character at text[*i), which is not ASCII, with all that goes with it. */
static int gpuir__text_high(gpuir__analyzer *an, size_t *i) {
  const gpuir__wording *w = gpuir__wording_of(an);
  uint32_t c;
  const size_t n = gpuir__utf8_get((const uint8_t *)w->text + *i, w->len - *i, &c);
  const int class_ = n ? gpuir__text_class(an, c) : GPUIR__T_SEPARATOR;
  if (class_ == GPUIR__T_LETTER || class_ == GPUIR__T_POINT) return gpuir__text_cluster(an, i);
  if (class_ == GPUIR__T_EMOJI) return gpuir__text_take_emoji(an, i);
  *i += n ? n : 1;
  return class_ == GPUIR__T_CONNECTOR ? gpuir__text_connect(an, gpuir__text_connector(c)) : gpuir__text_separate(an);
}

/* Adds the run text[i, end) of ASCII letters and digits to the segment that is being read, folded. Notes whether inner
 * capitals or digits part it, as in getUserName. */
static void gpuir__text_run(gpuir__wording *w, size_t i, size_t end) {
  gpuir__letters *l = w->now;
  unsigned first, kinds = 0;
  gpuir__letters_open(l, i, 1);
  l->known = NULL;
  if (l->len && l->plain && l->end != i) gpuir__letters_fill(l, w->text); /* what is ignored stands between */
  l->end = end;
  if (gpuir__letters_over(l, end - i)) return;
  if (!l->plain) {
    for (; i < end; i++)
      gpuir__text_put(w, gpuir__fold_ascii[(uint8_t)w->text[i]], gpuir__text_ascii_kind(w->text[i]), i, i + 1);
    return;
  }
  first = gpuir__text_ascii_kind(w->text[i]); /* a capital that begins a segment parts nothing */
  kinds = first == GPUIR__K_UPPER ? 1u << GPUIR__K_LOWER : 1u << first;
  l->seg[l->len++] = (char)gpuir__fold_ascii[(uint8_t)w->text[i]];
  for (i++; i < end; i++) {
    kinds |= 1u << gpuir__text_ascii_kind(w->text[i]);
    l->seg[l->len++] = (char)gpuir__fold_ascii[(uint8_t)w->text[i]];
  }
  l->mixed = kinds != 1u << GPUIR__K_LOWER;
}

/* Says whether the segment text[i, end) of ASCII is a word by itself, with no connector, sign or mark at it; a
 * connector
 * that nothing follows joins nothing. */
static int gpuir__text_alone(const char *text, size_t i, size_t end, size_t len) {
  uint8_t c, next;
  if (i && (text[i - 1] == '.' || text[i - 1] == '#' || text[i - 1] == '@')) return 0;
  if (end == len) return 1;
  c = (uint8_t)text[end];
  if (c >= 0x80 || c == '#' || c == '+') return 0;
  if (!gpuir__text_connects(c) || end + 1 == len) return 1;
  next = (uint8_t)text[end + 1];
  return next < 0x80 && !gpuir__fold_ascii[next];
}

/* Takes the segment of a text that begins at text[*i), where none is in progress, if it is known what it becomes. *i
 * becomes where it ends; it stays where it is for one that is not known. */
static int gpuir__text_swiftly(gpuir__analyzer *an, size_t *i) {
  gpuir__wording *w = gpuir__wording_of(an);
  gpuir__letters *l = w->now;
  gpuir__text_key key;
  const size_t at = *i;
  const unsigned n = gpuir__text_key_read(w->text + at, w->len - at, &key, l->seg);
  const size_t end = at + n;
  const gpuir__known *k;
  int status;
  if (!n || (end < w->len && (uint8_t)w->text[end] >= 0x80)) return GPUIR_OK; /* which may be a mark */
  k = gpuir__text_known(an, &key, l->seg, n);
  if (!k) return GPUIR_OK;
  *i = end;
  if (w->n || !gpuir__text_alone(w->text, at, end, w->len)) {
    gpuir__letters_open(l, at, 1);
    l->len = n;
    l->end = end;
    l->known = k;
    return GPUIR_OK;
  }
  if (k->stopped) return GPUIR_OK;
  status = gpuir__text_emit(an, k->term, k->len, 1, at, end);
  return !status && k->nparts ? gpuir__text_put_known_parts(an, k, l->seg, at) : status;
}

/* Takes the run of ASCII letters and digits that begins at text[*i), and the mark behind it; *i becomes where it ends.
 */
static int gpuir__text_letters(gpuir__analyzer *an, size_t *i) {
  gpuir__wording *w = gpuir__wording_of(an);
  const size_t at = *i;
  size_t end;
  int status;
  if (!w->now->len && !an->query && !an->collecting && !an->open_end) {
    if (GPUIR__UNLIKELY(!w->known)) gpuir__text_remember(an);
    status = gpuir__text_swiftly(an, i);
    if (status || *i > at) return status;
  }
  for (end = at + 1; end < w->len && gpuir__text_is_alnum(w->text[end]); end++) {}
  if (gpuir__text_joins(an, w->text, end, w->len)) { /* its last letter has a mark */
    if (at < --end) gpuir__text_run(w, at, end);
    status = gpuir__text_cluster(an, &end);
    return *i = end, status;
  }
  gpuir__text_run(w, at, end);
  *i = end;
  return GPUIR_OK;
}

/* Emits the tokens of a text. */
static int gpuir__text_scan(gpuir__analyzer *an, const char *text, size_t len) {
  gpuir__wording *w = gpuir__wording_of(an);
  size_t i = 0;
  int status = GPUIR_OK;
  w->text = text;
  w->len = len;
  w->now = &w->both[0];
  w->last = &w->both[1];
  w->now->len = w->last->len = 0;
  w->state = GPUIR__W_NONE;
  w->n = 0;
  while (i < len && !status) {
    if ((uint8_t)text[i] >= 0x80) {
      status = gpuir__text_high(an, &i);
    } else if (gpuir__fold_ascii[(uint8_t)text[i]]) {
      status = gpuir__text_letters(an, &i);
    } else if (!w->now->len && !w->n) { /* no word is in progress, which a connector could go on with */
      i += gpuir__text_gap(text + i, len - i);
    } else {
      const uint8_t c = (uint8_t)text[i++];
      status = gpuir__text_connects(c) ? gpuir__text_connect(an, c) : gpuir__text_separate(an);
    }
  }
  return status ? status : gpuir__text_separate(an);
}
#endif /* GPUIR__HAS_TEXT */
