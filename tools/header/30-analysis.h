
/* ========
 * [30-analysis]  text analysis: the tokens of ascii, basic, unicode and callers' tokenizers
 *
 * A token is made, folded, held against the stop words, stemmed and emitted, in this order.
 *
 * ascii    Tokens are maximal runs of ASCII letters, ASCII digits and bytes from 0x80 on, so
 *          that the words of other scripts stay whole; only ASCII letters are folded. The
 *          underscore separates, as all other ASCII does, and so does the typography of ordinary
 *          text in UTF-8: spaces (U+00A0, U+3000), dashes, quotes, the ellipsis and the rest of
 *          U+2000 to U+205F but for what joins letters or turns their direction, and U+00AB, U+00BB.
 * basic    The tokens of ascii, where the letters of Latin, Greek and Cyrillic are folded by a table, [29-fold], and
 *          so are the marks behind them: typed without accents, a word finds all its spellings. A word is folded
 *          before it is stemmed, so that it has one term, however it is typed.
 * unicode  Tokens are maximal runs of letters (L*), numbers (N*) and the marks (M*) and default
 *          ignorable format characters that follow them, brought into NFKC_Casefold form. Where
 *          folding yields something else (U+00BD, one half, holds a fraction slash), the token is split
 *          there. Invalid UTF-8 separates. Pure ASCII gives the same tokens as `ascii`.
 *          Chinese and Japanese are cut without a dictionary: each Han character is a token, and
 *          so is each run of Hiragana and each run of Katakana; a prolonged sound mark goes with
 *          the run before it. Other scripts without spaces (Thai, Khmer) stay uncut.
 *          Which characters are letters, and how they fold, is up to utf8proc's Unicode version.
 * custom   The caller's function makes the tokens; folding is its business.
 *
 * A token has an advance: 1 takes the next position, 0 stands at the position of the token before. Those of the
 * analyzers above all advance.
 *
 * With the stemmers porter and english an English possessive is removed first, as Lucene does
 * it: an apostrophe (', U+2019 or U+FF07) and an s at the end of a word. Stop words go through
 * the same tokenizer and folding; a word that it splits ("don't") stops each of its parts.
 * Tokens over GPUIR_MAX_TERM bytes, measured when they are folded, are dropped and counted.
 *
 * Uses      [16-base], [17-vectors], [29-fold].
 * Start at  gpuir__scan, gpuir__custom_token; gpuir__filter_token for what is done to each token.
 * Tests     tests/unit/30_analysis.c
 * ======*/

#ifdef GPUIR_WITH_UTF8PROC
#include <utf8proc.h>
#endif
#ifdef GPUIR_WITH_STEMMER
#include <libstemmer.h>
#endif
#if defined(GPUIR_WITH_UTF8PROC) && !defined(GPUIR_NO_TEXT)
#define GPUIR__HAS_TEXT 1 /* the analyzer `text` */
#endif

enum {
  GPUIR__ASCII = 0,
  GPUIR__UNICODE = 1,
  GPUIR__CUSTOM = 2,
  GPUIR__TEXT = 3, /* see [31-text] */
  GPUIR__BASIC = 4,

  GPUIR__NAME_MAX = 64, /* bytes of a tokenizer's or stemmer's name */
  GPUIR__SPEC_MAX = 192, /* bytes that hold any specification and its NUL */
  GPUIR__SCAN_BLOCK = 2048, /* bytes of text that are classified at a time; a multiple of 64 */
  GPUIR__STOP_PROBES = 64, /* the longest chain of the stop table */
  GPUIR__STOP_SEEDS = 8, /* that are tried to keep it so */
  GPUIR__STEM_CACHED = 23, /* longer words and stems are not remembered */
  GPUIR__STEM_CACHE_BITS = 13,
  GPUIR__PLACE_REACH = 128 /* bytes: see gpuir__custom_place */
};

/* A set of words: open addressing, at most a quarter full. */
typedef struct gpuir__stop_slot {
  uint32_t at; /* 1 + where its length byte and its bytes lie in `words`; 0: empty */
  uint32_t tag;
} gpuir__stop_slot;

typedef struct gpuir__stops {
  gpuir__buf words;
  gpuir__stop_slot *slots;
  size_t nslots; /* a power of two, or 0 */
  size_t n;
  size_t longest;
} gpuir__stops;

typedef struct gpuir__stem_entry {
  uint8_t word_len; /* 0: empty */
  char word[GPUIR__STEM_CACHED];
  uint8_t stem_len;
  char stem[GPUIR__STEM_CACHED];
} gpuir__stem_entry;

/* A caller's tokenizer; without functions: none. */
typedef struct gpuir__tokenizer {
  gpuir_tokenize_fn tokenize;
  gpuir_tokenize_places_fn places; /* one of both */
  void *user;
} gpuir__tokenizer;

/* Returns what a caller's desc says of its tokenizer. */
static gpuir__tokenizer gpuir__tokenizer_of(gpuir_tokenize_fn tokenize, gpuir_tokenize_places_fn places, void *user) {
  gpuir__tokenizer t;
  t.tokenize = tokenize;
  t.places = places;
  t.user = user;
  return t;
}

typedef struct gpuir__analyzer {
  gpuir_allocator a;
  int kind;
  int possessive; /* remove 's */
  int filtered; /* tokens need more than folding */
  gpuir__tokenizer own;
  void *wording; /* what the analyzer `text` keeps, see [31-text]; NULL: it is another */
  int no_fold; /* that one keeps marks */
  int open_end; /* that one takes the last segment as the beginning of a word: neither stopped nor stemmed */
  int collecting; /* stop words, which are neither stemmed nor folded */
  gpuir__stops stops;
  uint64_t seed; /* of the hash of words */
#ifdef GPUIR_WITH_STEMMER
  struct sb_stemmer *stemmer;
  gpuir__stem_entry *cache; /* direct-mapped; made when it begins to pay */
  unsigned stemmed; /* words stemmed without a cache */
#endif
#ifdef GPUIR_WITH_UTF8PROC
  uint16_t simple[0x800]; /* class << 13 | folded character (0: not a simple one); 0: not looked up yet */
#endif
  /* the analysis in progress */
  gpuir_place_fn emit;
  void *sink;
  int query; /* the text is a query's word */
  unsigned advance; /* of the token that is emitted */
  unsigned shared; /* tokens at its position, of a caller's tokenizer */
  uint64_t dropped;
  int status; /* the first answer of emit that was not 0 */
  const char *why; /* of that answer, if the analysis gave it: in words; NULL: it was emit, or a tokenizer */
  size_t word_end; /* where the last word ended in the text */
  /* Where in the text the token stands that is emitted: bytes [at, end), before it was folded and stemmed. Of a
   * caller's tokenizer they are known with `places` only. */
  size_t at, end, matched; /* matched: bytes of the token that was found there */
  int places;
  const char *text;
  size_t text_len, search, reach; /* bytes that may be looked through for places: of all tokens; of the next one */
} gpuir__analyzer;

/* The bytes of ascii tokens, folded; 0 for those that separate. */
#define GPUIR__WITHIN(c, first, last) ((c) >= (first) && (c) <= (last))
#define GPUIR__FOLD(c) \
  (GPUIR__WITHIN(c, 'A', 'Z') ? (c) | 0x20 \
                              : (GPUIR__WITHIN(c, 'a', 'z') || GPUIR__WITHIN(c, '0', '9') || (c) >= 0x80) * (c))
GPUIR__UNUSED static const uint8_t gpuir__fold_ascii[256] = {GPUIR__256(GPUIR__FOLD)};

/* Returns 1 for white space: what parts words in queries and stop lists. */
static inline int gpuir__is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Decodes one character of p[0..n), n >= 1. Returns its bytes, or 0 for anything that is not
 * UTF-8 (overlong forms, surrogates and what is beyond U+10FFFF included). */
static inline size_t gpuir__utf8_get(const uint8_t *p, size_t n, uint32_t *c) {
  uint32_t b = p[0];
  if (b < 0x80) {
    *c = b;
    return 1;
  }
  if (b < 0xe0) {
    if (b < 0xc2 || n < 2 || (p[1] & 0xc0) != 0x80) return 0;
    *c = (b & 0x1fu) << 6 | (p[1] & 0x3fu);
    return 2;
  }
  if (b < 0xf0) {
    if (n < 3 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80) return 0;
    *c = (b & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    return *c < 0x800 || (*c >= 0xd800 && *c < 0xe000) ? 0 : 3;
  }
  if (b > 0xf4 || n < 4 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80 || (p[3] & 0xc0) != 0x80) return 0;
  *c = (b & 7u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu);
  return *c < 0x10000 || *c > 0x10ffff ? 0 : 4;
}

/* A token that is made of UTF-8 characters one by one; len over 255: too long. */
typedef struct gpuir__utf8_word {
  size_t len;
  uint8_t bytes[GPUIR_MAX_TERM + 4];
} gpuir__utf8_word;

static inline void gpuir__utf8_word_put(gpuir__utf8_word *w, uint32_t c) {
  uint8_t *to = w->bytes + w->len;
  if (w->len > GPUIR_MAX_TERM) return;
  if (c < 0x80) {
    to[0] = (uint8_t)c;
    w->len += 1;
  } else if (c < 0x800) {
    to[0] = (uint8_t)(0xc0 | c >> 6);
    to[1] = (uint8_t)(0x80 | (c & 0x3f));
    w->len += 2;
  } else if (c < 0x10000) {
    to[0] = (uint8_t)(0xe0 | c >> 12);
    to[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
    to[2] = (uint8_t)(0x80 | (c & 0x3f));
    w->len += 3;
  } else {
    to[0] = (uint8_t)(0xf0 | c >> 18);
    to[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
    to[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
    to[3] = (uint8_t)(0x80 | (c & 0x3f));
    w->len += 4;
  }
}

/* Returns how many bytes the apostrophe has that ends at p[n), or 0. */
static inline size_t gpuir__apostrophe_before(const char *p, size_t n) {
  if (n >= 1 && p[n - 1] == '\'') return 1;
  if (n >= 3 && (!memcmp(p + n - 3, "\xe2\x80\x99", 3) || !memcmp(p + n - 3, "\xef\xbc\x87", 3))) return 3;
  return 0;
}

/* ---- stop words */

/* Lucene's classic English list. */
static const char gpuir__stop_english[] =
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these "
    "they this to was will with";

/* Articles, prepositions, pronouns, question words and the like, ascending: what English questions are made of beside
 * what they ask for. */
static const char gpuir__stop_questions[] =
    "a about above after again all also am an and any are as at be been before being below between both "
    "but by can could did do does doing down during each few for from further get gets had has have "
    "having he her here hers him his how i if in into is it its itself just me more most my no nor not of "
    "off on once only or other our out over own same she should so some such than that the their them "
    "then there these they this those through to too under until up use used uses using very via was we "
    "were what when where which while who whom why will with within without work works would you your";

static inline uint64_t gpuir__word_hash(const gpuir__analyzer *an, const char *word, size_t len) {
  return gpuir__hash(word, len, an->seed);
}

static inline int gpuir__stops_have(const gpuir__stops *s, const char *word, size_t len, uint64_t hash) {
  size_t i;
  if (len > s->longest) return 0;
  for (i = (size_t)hash & (s->nslots - 1); s->slots[i].at; i = (i + 1) & (s->nslots - 1)) {
    const uint8_t *w = s->words.data + (s->slots[i].at - 1);
    if (s->slots[i].tag == (uint32_t)(hash >> 32) && *w == len && !memcmp(w + 1, word, len)) return 1;
  }
  return 0;
}

/* Makes the table anew, with nslots slots. A list may be contrived so that its words collide; then
 * other seeds are tried, eight in all, and at last it is refused: no list makes searching slow. */
static int gpuir__stops_rehash(gpuir__analyzer *an, size_t nslots) {
  gpuir__stops *s = &an->stops;
  gpuir__stop_slot *slots;
  if (nslots > SIZE_MAX / sizeof *slots) return GPUIR_E_NOMEM;
  slots = (gpuir__stop_slot *)gpuir__alloc(&an->a, nslots * sizeof *slots);
  if (!slots) return GPUIR_E_NOMEM;
  gpuir__free(&an->a, s->slots, s->nslots * sizeof *slots);
  s->slots = slots;
  s->nslots = nslots;
  for (; an->seed < GPUIR__STOP_SEEDS; an->seed++) {
    size_t at = 0;
    memset(slots, 0, nslots * sizeof *slots);
    while (at < s->words.len) {
      const uint8_t *w = s->words.data + at;
      uint64_t hash = gpuir__word_hash(an, (const char *)w + 1, *w);
      size_t i = (size_t)hash & (nslots - 1), probes = 0;
      while (slots[i].at && ++probes < GPUIR__STOP_PROBES) i = (i + 1) & (nslots - 1);
      if (slots[i].at) break;
      slots[i].at = (uint32_t)(at + 1);
      slots[i].tag = (uint32_t)(hash >> 32);
      at += 1u + *w;
    }
    if (at >= s->words.len) return GPUIR_OK;
  }
  return GPUIR_E_LIMIT;
}

/* Adds a word to the stop words: a gpuir_place_fn whose sink is the analyzer itself. */
GPUIR__COLD static int gpuir__stops_add(void *analyzer, const char *word, size_t len, unsigned advance) {
  gpuir__analyzer *an = (gpuir__analyzer *)analyzer;
  gpuir__stops *s = &an->stops;
  uint64_t hash = gpuir__word_hash(an, word, len);
  uint8_t *to;
  size_t i, probes = 0;
  (void)advance; /* each spelling of a word stops it */
  if (s->nslots && gpuir__stops_have(s, word, len, hash)) return GPUIR_OK;
  if (s->words.len > UINT32_MAX / 2) return GPUIR_E_LIMIT;
  to = gpuir__buf_room(&an->a, &s->words, 1 + len);
  if (!to) return GPUIR_E_NOMEM;
  to[0] = (uint8_t)len;
  memcpy(to + 1, word, len);
  if (s->longest < len) s->longest = len;
  s->words.len += 1 + len;
  s->n++;
  if (s->n * 4 > s->nslots) return gpuir__stops_rehash(an, s->nslots ? s->nslots * 2 : 256);
  i = (size_t)hash & (s->nslots - 1);
  while (s->slots[i].at && ++probes < GPUIR__STOP_PROBES) i = (i + 1) & (s->nslots - 1);
  if (s->slots[i].at) {
    an->seed++;
    return gpuir__stops_rehash(an, s->nslots);
  }
  s->slots[i].at = (uint32_t)(s->words.len - len);
  s->slots[i].tag = (uint32_t)(hash >> 32);
  return GPUIR_OK;
}

/* ---- from a folded token to the term */

#ifdef GPUIR_WITH_STEMMER
static int gpuir__is_utf8(const char *text, size_t len) {
  const uint8_t *p = (const uint8_t *)text;
  size_t i = 0, n;
  uint32_t c;
  for (; i < len; i += n)
    if (!(n = gpuir__utf8_get(p + i, len - i, &c))) return 0;
  return 1;
}

/* Stems a word: out[0..*n) lives until the next one is stemmed; *n 0: the stem is too long. A word that is not UTF-8 is
 * its own stem: the stemmers expect UTF-8. */
GPUIR__INLINE int gpuir__stem(gpuir__analyzer *an, const char *word, size_t len, uint64_t hash, const char **out,
    size_t *n) {
  gpuir__stem_entry *e = NULL;
  const sb_symbol *stem;
  size_t stem_len;
  *out = word;
  *n = len;
  if (len <= GPUIR__STEM_CACHED) {
    if (an->cache) {
      e = an->cache + (hash >> 7 & ((1u << GPUIR__STEM_CACHE_BITS) - 1));
      if (e->word_len == len && !memcmp(e->word, word, len)) {
        *out = e->stem;
        *n = e->stem_len;
        return GPUIR_OK;
      }
    } else if (++an->stemmed == 256) { /* not for a query; without it all works, but slower */
      an->cache = (gpuir__stem_entry *)gpuir__alloc_zero(&an->a, sizeof *e << GPUIR__STEM_CACHE_BITS);
      if (!an->cache) an->stemmed = 0;
    }
  }
  if (!gpuir__is_utf8(word, len)) return GPUIR_OK;
  stem = sb_stemmer_stem(an->stemmer, (const sb_symbol *)word, (int)len);
  if (!stem) return GPUIR_E_NOMEM;
  stem_len = (size_t)sb_stemmer_length(an->stemmer);
  if (!stem_len) { /* of "s" the stemmer `porter` leaves nothing */
    stem = (const sb_symbol *)word;
    stem_len = len;
  }
  if (e && stem_len <= GPUIR__STEM_CACHED) {
    e->word_len = (uint8_t)len;
    memcpy(e->word, word, len);
    e->stem_len = (uint8_t)stem_len;
    memcpy(e->stem, stem, stem_len);
  }
  *out = (const char *)stem;
  *n = stem_len > GPUIR_MAX_TERM ? 0 : stem_len;
  return GPUIR_OK;
}

/* Stems and emits a word. */
static int gpuir__stem_token(gpuir__analyzer *an, const char *word, size_t len, uint64_t hash) {
  const char *stem;
  size_t n;
  const int status = gpuir__stem(an, word, len, hash, &stem, &n);
  if (status) return status;
  if (n) return an->emit(an->sink, stem, n, an->advance);
  an->dropped++;
  return GPUIR_OK;
}
#endif

static int gpuir__filter_token(gpuir__analyzer *an, const char *token, size_t len) {
  uint64_t hash;
  if (an->possessive && len > 2 && (token[len - 1] == 's' || token[len - 1] == 'S')) {
    size_t n = gpuir__apostrophe_before(token, len - 1);
    if (n && n + 1 < len) len -= n + 1;
  }
  hash = gpuir__word_hash(an, token, len);
  if (an->stops.nslots && gpuir__stops_have(&an->stops, token, len, hash)) return GPUIR_OK;
#ifdef GPUIR_WITH_STEMMER
  if (an->stemmer) return gpuir__stem_token(an, token, len, hash);
#endif
  return an->emit(an->sink, token, len, an->advance);
}

/* Takes a folded token of 1 to 255 bytes: drops a stop word, stems or emits another. */
static inline int gpuir__put_token(gpuir__analyzer *an, const char *token, size_t len) {
  return an->filtered ? gpuir__filter_token(an, token, len) : an->emit(an->sink, token, len, an->advance);
}

static inline int gpuir__same_letter(char x, char y) {
  const uint8_t a = (uint8_t)x, b = (uint8_t)y;
  return a == b || ((a ^ b) == 0x20 && (uint8_t)((a | 0x20) - 'a') < 26);
}

/* Finds where a token of a caller's tokenizer stands: where it points to, if that is in the text; otherwise where its
 * bytes come next, ASCII letters alike in both cases, not before the token before it; otherwise where that one stands.
 * A token that goes on in a longer word of ASCII letters and digits takes all of it. The next 128 bytes are looked
 * through, twice as many after each token that was not found, and in all not more than analysis would cost. */
static void gpuir__custom_place(gpuir__analyzer *an, const char *token, size_t len) {
  const uintptr_t from = (uintptr_t)an->text, given = (uintptr_t)token;
  size_t i = an->at, n = 0, left = (size_t)gpuir__min64(an->reach, an->search);
  if (given >= from && given - from <= an->text_len && len <= an->text_len - (given - from)) {
    an->at = given - from;
    an->end = an->at + len;
    return;
  }
  for (; n < len && len <= an->text_len && i <= an->text_len - len && left; i++, left--) {
    an->search--;
    if (i == an->at && len == an->matched) continue; /* the same word again, most likely */
    for (n = 0; n < len && gpuir__same_letter(token[n], an->text[i + n]); n++) {}
  }
  if (n < len) {
    an->reach = (size_t)gpuir__min64(an->reach * 2, an->text_len);
    return;
  }
  an->reach = GPUIR__PLACE_REACH;
  an->matched = len;
  an->at = i - 1;
  an->end = an->at + len;
  while (an->end < an->text_len && gpuir__fold_ascii[(uint8_t)an->text[an->end]] && (uint8_t)an->text[an->end] < 0x80)
    an->end++;
}

/* Takes a token of a caller's tokenizer: a gpuir_token_fn whose sink is the analyzer. */
static int gpuir__custom_token(void *analyzer, const char *token, size_t len) {
  gpuir__analyzer *an = (gpuir__analyzer *)analyzer;
  if (an->status || !len) return an->status;
  if (an->places) gpuir__custom_place(an, token, len);
  if (len > GPUIR_MAX_TERM) an->dropped++;
  else an->status = gpuir__put_token(an, token, len);
  return an->status;
}

/* Ends the analysis because a caller's tokenizer breaks the rules. */
static int gpuir__custom_refuse(gpuir__analyzer *an, int status, const char *why) {
  an->why = why;
  return an->status = status;
}

/* Takes a token of a caller's tokenizer that places its tokens: a gpuir_place_fn whose sink is the analyzer. */
static int gpuir__custom_place_token(void *analyzer, const char *token, size_t len, unsigned advance) {
  gpuir__analyzer *an = (gpuir__analyzer *)analyzer;
  if (an->status || !len) return an->status;
  if (advance > 1)
    return gpuir__custom_refuse(an, GPUIR_E_ARGUMENT, "the tokenizer advances by more than one position");
  an->shared = advance ? 1 : an->shared + 1;
  if (an->shared > GPUIR_MAX_PLACE && !an->query)
    return gpuir__custom_refuse(an, GPUIR_E_LIMIT, "the tokenizer puts more than 15 tokens at a position");
  an->advance = advance;
  return gpuir__custom_token(an, token, len);
}

/* Says whether the word text[start, ...), which is an "s", is what is left of a possessive. */
static inline int gpuir__is_possessive(const gpuir__analyzer *an, const char *text, size_t start) {
  size_t n;
  if (!an->possessive || !an->word_end) return 0;
  n = gpuir__apostrophe_before(text, start);
  return n && an->word_end == start - n;
}

/* ---- unicode ------------------------------------------------------------------- */

#ifdef GPUIR_WITH_UTF8PROC
/* Classes of characters; a token is a run of one class. 1 to 7, for gpuir__analyzer.simple. */
enum {
  GPUIR__SEPARATOR = 1,
  GPUIR__LETTER = 2, /* and numbers */
  GPUIR__HAN = 3, /* a token each */
  GPUIR__HIRAGANA = 4,
  GPUIR__KATAKANA = 5,
  GPUIR__PROLONGED = 6, /* continues kana, else begins Katakana */
  GPUIR__EXTEND = 7 /* continues any token, begins none */
};
#define GPUIR__FOLDING (UTF8PROC_COMPAT | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE | UTF8PROC_STABLE | UTF8PROC_COMPOSE)

static int gpuir__char_class(uint32_t c) {
  const utf8proc_property_t *p;
  if (c < 0x80) return gpuir__fold_ascii[c] ? GPUIR__LETTER : GPUIR__SEPARATOR;
  /* by range and not by category, so that ideographs newer than utf8proc are words, too */
  if ((c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0xf900 && c <= 0xfaff) ||
      (c >= 0x20000 && c <= 0x3fffd) || c == 0x3005 || c == 0x3007 || (c >= 0x3021 && c <= 0x3029) ||
      (c >= 0x3038 && c <= 0x303b))
    return GPUIR__HAN;
  if (c == 0x30fc || c == 0xff70) return GPUIR__PROLONGED;
  p = utf8proc_get_property((utf8proc_int32_t)c);
  switch (p->category) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LL:
  case UTF8PROC_CATEGORY_LT:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO:
  case UTF8PROC_CATEGORY_ND:
  case UTF8PROC_CATEGORY_NL:
  case UTF8PROC_CATEGORY_NO: break;
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_MC:
  case UTF8PROC_CATEGORY_ME: return GPUIR__EXTEND;
  case UTF8PROC_CATEGORY_CF: /* soft hyphen, joiners; the zero width space is for separating */
    return p->ignorable && c != 0x200b ? GPUIR__EXTEND : GPUIR__SEPARATOR;
  default: return GPUIR__SEPARATOR;
  }
  if ((c >= 0x3041 && c <= 0x309f) || (c >= 0x1b001 && c <= 0x1b11f) || (c >= 0x1b150 && c <= 0x1b152))
    return GPUIR__HIRAGANA;
  if ((c >= 0x30a0 && c <= 0x30ff) || (c >= 0x31f0 && c <= 0x31ff) || (c >= 0xff66 && c <= 0xff9f) ||
      (c >= 0x1aff0 && c <= 0x1b000) || (c >= 0x1b120 && c <= 0x1b122) || (c >= 0x1b164 && c <= 0x1b167))
    return GPUIR__KATAKANA;
  return GPUIR__LETTER;
}

/* Returns the class of a character, and in *folded the one character that it folds to when that does
 * not depend on its neighbours, provided that they are such, too; otherwise 0. */
static inline int gpuir__char_simple(gpuir__analyzer *an, uint32_t c, uint32_t *folded) {
  if (c < 0x80) {
    *folded = gpuir__fold_ascii[c];
    return *folded ? GPUIR__LETTER : GPUIR__SEPARATOR;
  }
  if (c < 0x800) {
    uint32_t v = an->simple[c];
    if (GPUIR__UNLIKELY(!v)) {
      utf8proc_int32_t to[8];
      int boundary = 0, class_ = gpuir__char_class(c);
      utf8proc_ssize_t n = 0;
      if (class_ == GPUIR__LETTER)
        n = utf8proc_decompose_char((utf8proc_int32_t)c, to, 8, (utf8proc_option_t)GPUIR__FOLDING, &boundary);
      if (n >= 1 && n <= 8) n = utf8proc_normalize_utf32(to, n, (utf8proc_option_t)GPUIR__FOLDING);
      v = (uint32_t)class_ << 13;
      /* one letter that neither moves nor was made a part of the one before */
      if (n == 1 && to[0] < 0x2000 && gpuir__char_class((uint32_t)to[0]) == GPUIR__LETTER &&
          !utf8proc_get_property(to[0])->combining_class)
        v |= (uint32_t)to[0];
      an->simple[c] = (uint16_t)v;
    }
    *folded = v & 0x1fff;
    return (int)(v >> 13);
  }
  *folded = c;
  if (c >= 0x4e00 && c <= 0x9fff) return GPUIR__HAN;
  if (c >= 0xac00 && c <= 0xd7a3) return GPUIR__LETTER; /* Hangul syllables; jamo after them are not simple */
  if (c >= 0x3041 && c <= 0x3096) return GPUIR__HIRAGANA;
  if (c >= 0x30a1 && c <= 0x30fa) return GPUIR__KATAKANA;
  if (c == 0x30fc) return GPUIR__PROLONGED;
  *folded = 0;
  return gpuir__char_class(c);
}

/* Returns the class of the run of class `run` (0: none) that goes on or begins with a character of
 * class `next`; *begins tells which. GPUIR__SEPARATOR: there is none any more. */
static inline int gpuir__run_class(int run, int next, int *begins) {
  *begins = 0;
  if (next == GPUIR__EXTEND) return run ? run : GPUIR__SEPARATOR;
  if (next == GPUIR__PROLONGED) {
    if (run == GPUIR__HIRAGANA || run == GPUIR__KATAKANA) return run;
    next = GPUIR__KATAKANA;
  }
  *begins = next != GPUIR__SEPARATOR && (next != run || next == GPUIR__HAN);
  return next;
}

static int gpuir__utf8_word_end(gpuir__analyzer *an, gpuir__utf8_word *w) {
  size_t len = w->len;
  w->len = 0;
  if (len > GPUIR_MAX_TERM) an->dropped++;
  else if (len) return gpuir__put_token(an, (const char *)w->bytes, len);
  return GPUIR_OK;
}

/* Folds a word (valid UTF-8) with utf8proc, and splits it again where that has made separators. */
static int gpuir__fold_word(gpuir__analyzer *an, const char *text, size_t start, size_t end) {
  utf8proc_int32_t chars[512];
  utf8proc_ssize_t i, n = -1;
  gpuir__utf8_word w;
  int run = 0, status;
  /* No token of 255 bytes comes from more than 383 decomposed characters, and a word of more than
   * 4096 bytes is junk of ignorable characters at best. */
  if (end - start <= 4096)
    n = utf8proc_decompose((const utf8proc_uint8_t *)text + start, (utf8proc_ssize_t)(end - start), chars, 512,
        (utf8proc_option_t)GPUIR__FOLDING);
  if (n >= 0 && n <= 512) n = utf8proc_normalize_utf32(chars, n, (utf8proc_option_t)GPUIR__FOLDING);
  if (n < 0 || n > 512) {
    an->dropped++;
    return GPUIR_OK;
  }
  if (n == 1 && chars[0] == 's' && gpuir__is_possessive(an, text, start)) return GPUIR_OK;
  w.len = 0;
  for (i = 0; i < n; i++) {
    int begins;
    run = gpuir__run_class(run, gpuir__char_class((uint32_t)chars[i]), &begins);
    if (begins || run == GPUIR__SEPARATOR) {
      status = gpuir__utf8_word_end(an, &w);
      if (status) return status;
    }
    if (run == GPUIR__SEPARATOR) run = 0;
    else gpuir__utf8_word_put(&w, (uint32_t)chars[i]);
  }
  return gpuir__utf8_word_end(an, &w);
}

/* Emits the tokens of text[i, end), which holds no ASCII but letters and digits. */
static int gpuir__scan_unicode(gpuir__analyzer *an, const char *text, size_t i, size_t end) {
  const uint8_t *p = (const uint8_t *)text;
  gpuir__utf8_word w; /* the run, folded, while it is made of simple characters */
  size_t start = i, n;
  int run = 0, simple = 1, status = GPUIR_OK;
  w.len = 0;
  for (;; i += n) {
    uint32_t c = 0, folded = 0;
    int begins = 0, before = run;
    n = 1;
    if (i < end) {
      size_t got = gpuir__utf8_get(p + i, end - i, &c);
      int class_ = got ? gpuir__char_simple(an, c, &folded) : GPUIR__SEPARATOR;
      if (got) n = got;
      run = gpuir__run_class(run, class_, &begins);
    } else {
      run = GPUIR__SEPARATOR;
    }
    if (begins || run == GPUIR__SEPARATOR) {
      if (before) {
        an->at = start;
        an->end = i;
        if (!simple) status = gpuir__fold_word(an, text, start, i);
        else if (w.len != 1 || w.bytes[0] != 's' || !gpuir__is_possessive(an, text, start))
          status = gpuir__utf8_word_end(an, &w);
        if (status) return status;
        an->word_end = i;
      }
      if (i >= end) return GPUIR_OK;
      if (run == GPUIR__SEPARATOR) run = 0;
      start = i;
      simple = 1;
      w.len = 0;
    }
    if (folded) gpuir__utf8_word_put(&w, folded);
    else simple = 0;
  }
}
#endif /* GPUIR_WITH_UTF8PROC */

/* ---- ascii, basic, and the ASCII words of unicode --------------------------------------- */

/* Folds 64 bytes of text; bit i of the result: byte i belongs to a word. Bytes of `folded` that do
 * not are undefined. *high becomes non-zero if a byte is not ASCII. */
static inline uint64_t gpuir__classify64(const char *text, uint8_t *folded, int *high) {
  uint64_t bits = 0;
  int any = 0;
  unsigned i;
#if GPUIR__X86
  /* SSE2, which every x86-64 has. Signed compares: x - 'a' + 128 - 256 < 26 - 128 is 'a' <= x < 'a' + 26. */
  const __m128i case_bit = _mm_set1_epi8(0x20);
  for (i = 0; i < 4; i++) {
    __m128i v = gpuir__sse_load(text + 16 * i);
    __m128i alpha =
        _mm_cmplt_epi8(_mm_add_epi8(_mm_or_si128(v, case_bit), _mm_set1_epi8(0x80 - 'a')), _mm_set1_epi8(26 - 128));
    __m128i digit = _mm_cmplt_epi8(_mm_add_epi8(v, _mm_set1_epi8(0x80 - '0')), _mm_set1_epi8(10 - 128));
    gpuir__sse_store(folded + 16 * i, _mm_or_si128(v, _mm_and_si128(alpha, case_bit)));
    bits |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(alpha, digit), v)) << 16 * i;
    any |= _mm_movemask_epi8(v);
  }
#else
  for (i = 0; i < 64; i++) {
    uint8_t c = gpuir__fold_ascii[(unsigned char)text[i]];
    folded[i] = c;
    bits |= (uint64_t)(c != 0) << i;
    any |= c & 0x80;
  }
#endif
  *high = any;
  return bits;
}

static int gpuir__has_high(const char *text, size_t len) {
  uint64_t any = 0;
  for (; len >= 8; text += 8, len -= 8) any |= gpuir__load64(text);
  for (; len; text++, len--) any |= (uint64_t)(unsigned char)*text;
  return (any & 0x8080808080808080u) != 0;
}

/* Returns the bytes of the separator at the beginning of text[0..n), n >= 1, if it is one of typography: a space that
 * does not break, guillemets, dashes, quotes and spaces of U+2000 to U+205F (but not the joiners among them), or the
 * ideographic space. Returns 0 for any other character. */
static inline size_t gpuir__typography(const char *text, size_t n) {
  const uint8_t *p = (const uint8_t *)text;
  if (p[0] == 0xc2) return n > 1 && (p[1] == 0xa0 || p[1] == 0xab || p[1] == 0xbb) ? 2 : 0;
  if (n < 3 || (p[0] != 0xe2 && p[0] != 0xe3) || (p[2] & 0xc0) != 0x80) return 0;
  if (p[0] == 0xe3) return p[1] == 0x80 && p[2] == 0x80 ? 3 : 0;
  if (p[1] == 0x81) return p[2] <= 0x9f ? 3 : 0; /* U+2040 to U+205F */
  return p[1] == 0x80 && (p[2] <= 0x8b || (p[2] >= 0x90 && p[2] <= 0xa9) || p[2] >= 0xaf) ? 3 : 0;
}

#ifndef GPUIR_NO_FOLD
/* Folds a word. What is not UTF-8 stays as it is. */
static void gpuir__basic_fold(const char *text, size_t len, gpuir__utf8_word *w) {
  const uint8_t *p = (const uint8_t *)text;
  uint32_t to[2];
  size_t i = 0, n;
  w->len = 0;
  for (; i < len && w->len <= GPUIR_MAX_TERM; i += n ? n : 1) {
    uint32_t c = 0;
    unsigned letters = 0, k;
    if (p[i] < 0x80) {
      w->bytes[w->len++] = gpuir__fold_ascii[p[i]];
      n = 1;
      continue;
    }
    n = gpuir__utf8_get(p + i, len - i, &c);
    if (!n) w->bytes[w->len++] = p[i];
    else letters = gpuir__fold_of(c, to);
    for (k = 0; k < letters; k++) gpuir__utf8_word_put(w, to[k]);
    /* the breve of Cyrillic short i, typed by itself */
    if (c == 0x306 && w->len > 1 && w->bytes[w->len - 2] == 0xd0 && w->bytes[w->len - 1] == 0xb8)
      w->bytes[w->len - 1] = 0xb9;
  }
}

/* Emits the token [start, end) of a run that is not ASCII, folded. */
static int gpuir__basic_word(gpuir__analyzer *an, const char *text, size_t start, size_t end) {
  gpuir__utf8_word w;
  int status = GPUIR_OK;
  an->at = start;
  an->end = end;
  gpuir__basic_fold(text + start, end - start, &w);
  if (w.len > GPUIR_MAX_TERM) an->dropped++;
  else if (w.len && (w.len != 1 || w.bytes[0] != 's' || !gpuir__is_possessive(an, text, start)))
    status = gpuir__put_token(an, (const char *)w.bytes, w.len);
  an->word_end = end;
  return status;
}
#endif

/* Emits the token [start, end) of a run that is not ASCII. */
static int gpuir__ascii_word(gpuir__analyzer *an, const char *text, size_t start, size_t end) {
  char word[GPUIR_MAX_TERM];
  const size_t len = end - start;
  size_t i;
  int status = GPUIR_OK;
#ifndef GPUIR_NO_FOLD
  if (an->kind == GPUIR__BASIC) return gpuir__basic_word(an, text, start, end);
#endif
  an->at = start;
  an->end = end;
  if (len > GPUIR_MAX_TERM) {
    an->dropped++;
  } else {
    for (i = 0; i < len; i++) word[i] = (char)gpuir__fold_ascii[(uint8_t)text[start + i]];
    if (len != 1 || word[0] != 's' || !gpuir__is_possessive(an, text, start)) status = gpuir__put_token(an, word, len);
  }
  an->word_end = end;
  return status;
}

/* Parts the run text[start, end), which is not ASCII, at its typography. */
static int gpuir__scan_typography(gpuir__analyzer *an, const char *text, size_t start, size_t end) {
  size_t i = start, n;
  int status = GPUIR_OK;
  while (i < end && !status) {
    n = gpuir__typography(text + i, end - i);
    if (n && start < i) status = gpuir__ascii_word(an, text, start, i);
    i += n ? n : 1;
    if (n) start = i;
  }
  return !status && start < end ? gpuir__ascii_word(an, text, start, end) : status;
}

/* Emits one run [start, end) of word bytes; `folded` are its bytes, if there are at most 255. `high` is 0
 * when they are ASCII. */
static inline int gpuir__scan_run(gpuir__analyzer *an, const char *text, size_t start, size_t end,
    const uint8_t *folded, int high) {
  size_t len = end - start;
  int status = GPUIR_OK;
  if (high && gpuir__has_high(text + start, len)) {
#ifdef GPUIR_WITH_UTF8PROC
    if (an->kind == GPUIR__UNICODE) return gpuir__scan_unicode(an, text, start, end);
#endif
    return gpuir__scan_typography(an, text, start, end);
  }
  an->at = start;
  an->end = end;
  if (GPUIR__UNLIKELY(len > GPUIR_MAX_TERM)) an->dropped++;
  else if (len != 1 || *folded != 's' || !gpuir__is_possessive(an, text, start))
    status = gpuir__put_token(an, (const char *)folded, len);
  an->word_end = end;
  return status;
}

/* Emits the tokens of a text, which is folded block by block into `room`, in front of which there is space for the
 * start of a token that goes on from the block before. Tokens begin and end where the word bits change. */
static int gpuir__scan(gpuir__analyzer *an, const char *text, size_t len) {
  uint8_t room[256 + GPUIR__SCAN_BLOCK];
  size_t base, start = SIZE_MAX; /* of the token in progress */
  uint64_t before = 0; /* the word bit of the last byte seen */
  int status, high, carried = 0; /* not ASCII: of this chunk; of the token in progress, before it */
  an->word_end = 0;
  for (base = 0; base < len; base += GPUIR__SCAN_BLOCK) {
    size_t n = (size_t)gpuir__min64(len - base, GPUIR__SCAN_BLOCK), at;
    for (at = 0; at < n; at += 64) {
      uint64_t bits, edges;
      if (n - at >= 64) {
        bits = gpuir__classify64(text + base + at, room + 256 + at, &high);
      } else {
        char rest[64];
        memset(rest, 0, sizeof rest);
        memcpy(rest, text + base + at, n - at);
        bits = gpuir__classify64(rest, room + 256 + at, &high);
      }
      edges = bits ^ (bits << 1 | before);
      before = bits >> 63;
      while (edges) {
        size_t end;
        if (start == SIZE_MAX) {
          start = base + at + gpuir__ctz64(edges);
          edges &= edges - 1;
          if (!edges) break;
        }
        end = base + at + gpuir__ctz64(edges);
        edges &= edges - 1;
        status =
            gpuir__scan_run(an, text, start, end, room + (end - start > 255 ? 0 : 256 + start - base), high | carried);
        if (status) return status;
        start = SIZE_MAX;
        carried = 0;
      }
      if (start != SIZE_MAX) carried |= high;
    }
    if (start != SIZE_MAX && base + n - start <= 255) {
      size_t k = base + n - start; /* the end of the block, or of the text */
      memmove(room + 256 - k, room + 256 + n - k, k);
    }
  }
  if (start == SIZE_MAX) return GPUIR_OK;
  return gpuir__scan_run(an, text, start, len, room + (len - start > 255 ? 0 : 256 - (len - start)), carried);
}
