
/* ========
 * [23-codings]  the tables of codecs, and how users spell them
 *
 * Uses      [18-codecs] to [22-lab-lines].
 * Start at  gpuir__docid_codecs (the table), gpuir__codec_of_level (kernels), gpuir__coding_parse.
 * Tests     tests/unit/23_codings.c
 * ======*/

/* ---- kernels: a row a level, scalar, AVX2, AVX-512; without vectors all rows are the scalar one */

#ifndef GPUIR_NO_LAB
#define GPUIR__LAB_KERNELS(level, marks) \
  , gpuir__unpack_##level, gpuir__stops_##level, gpuir__join_##level, marks, gpuir__line_add_##level
#else
#define GPUIR__LAB_KERNELS(level, marks)
#endif
#define GPUIR__SCALAR_KERNELS \
  { \
    gpuir__sum_gaps_scalar, gpuir__bp128_docids_scalar, gpuir__bp128_freqs_scalar, gpuir__bp128_get_scalar, \
        gpuir__bp128_find_scalar, NULL, NULL GPUIR__LAB_KERNELS(scalar, gpuir__marked_scalar) \
  }

static const gpuir__codec_kernels gpuir__codec_of_level[3] = {
    GPUIR__SCALAR_KERNELS,
#if GPUIR__X86
    {gpuir__sum_gaps_avx2, gpuir__bp128_docids_simd, gpuir__bp128_freqs_simd, gpuir__bp128_get_avx2,
        gpuir__bp128_find_avx2, gpuir__bp128_wide_docids_avx2,
        gpuir__bp128_wide_freqs_avx2 GPUIR__LAB_KERNELS(avx2, gpuir__marked_simd)},
    {gpuir__sum_gaps_avx512, gpuir__bp128_docids_simd, gpuir__bp128_freqs_simd, gpuir__bp128_get_avx2,
        gpuir__bp128_find_avx2, gpuir__bp128_wide_docids_avx512,
        gpuir__bp128_wide_freqs_avx512 GPUIR__LAB_KERNELS(avx512, gpuir__marked_simd)},
#else
    GPUIR__SCALAR_KERNELS,
    GPUIR__SCALAR_KERNELS,
#endif
};
#undef GPUIR__LAB_KERNELS

/* Returns the kernels of a level that gpuir__simd_level has returned. */
static inline const gpuir__codec_kernels *gpuir__codec_kernels_at(int level) {
  return &gpuir__codec_of_level[level - GPUIR_SIMD_SCALAR];
}

/* ---- the codecs */

/* The functions of a family of codecs: encode, scratch_size, open, decode_block, get, find. */
#define GPUIR__VBYTE_DOCIDS gpuir__vbyte_encode, NULL, NULL, gpuir__vbyte_decode, NULL, NULL
#define GPUIR__VBYTE_FREQS gpuir__vbyte_encode, NULL, NULL, gpuir__vbyte_decode, gpuir__vbyte_freqs_get, NULL
#define GPUIR__BP128_DOCIDS gpuir__bp128_encode, NULL, NULL, gpuir__bp128_docids_decode, NULL, gpuir__bp128_docids_find
#define GPUIR__BP128_FREQS gpuir__bp128_encode, NULL, NULL, gpuir__bp128_freqs_decode, gpuir__bp128_freqs_get, NULL
#define GPUIR__PFD_DOCIDS gpuir__pfd_encode, NULL, NULL, gpuir__pfd_decode, NULL, NULL
#define GPUIR__PFD_FREQS gpuir__pfd_encode, NULL, NULL, gpuir__pfd_decode, gpuir__pfd_freqs_get, NULL
#define GPUIR__EF gpuir__ef_encode, NULL, NULL, gpuir__ef_decode, gpuir__ef_get, NULL
#define GPUIR__QS gpuir__qs_encode, NULL, gpuir__qs_open, gpuir__qs_decode, gpuir__qs_get, NULL
#define GPUIR__RICE gpuir__rice_encode, NULL, gpuir__rice_open, gpuir__rice_decode, gpuir__rice_get, NULL
#define GPUIR__PFL gpuir__pfl_encode, gpuir__pfl_scratch, gpuir__pfl_open, gpuir__pfl_decode_block, NULL, NULL
#define GPUIR__PARA gpuir__para_encode, NULL, gpuir__para_open, gpuir__para_decode_block, NULL, NULL
#define GPUIR__LRC_ANY gpuir__lrc_encode, NULL, gpuir__lrc_open, gpuir__lrc_decode, gpuir__lrc_get, NULL
#define GPUIR__HSLRC gpuir__hslrc_encode, NULL, gpuir__hslrc_open, gpuir__hslrc_decode, gpuir__hslrc_get, NULL

/* The tables of codecs, a row each: GPUIR__CODEC makes an item of a table from a row, GPUIR__LEFT_OUT the name of a
 * codec that GPUIR_NO_LAB leaves out. */
#define GPUIR__CODEC(name, id, docids, unit, parameter, mode, cost, functions) \
  {name, id, docids, unit, GPUIR__P_##parameter, mode, cost, functions},
#define GPUIR__LEFT_OUT(name, id, docids, unit, parameter, mode, cost, functions) \
  {id, docids, "codec " name " left out by GPUIR_NO_LAB"},

/* clang-format off */
/*   name       id, docids, unit, parameter, mode, cost, functions */
#define GPUIR__ENGINE_DOCIDS(ROW) \
  ROW("vbyte",     GPUIR__ID_VBYTE,  1, 1, NONE,    0,                   436, GPUIR__VBYTE_DOCIDS) \
  ROW("bp128",     GPUIR__ID_BP128,  1, 4, NONE,    0,                   100, GPUIR__BP128_DOCIDS)
#define GPUIR__LAB_DOCIDS(ROW) \
  ROW("pfd",       GPUIR__ID_PFD,    1, 1, NONE,    GPUIR__PFD_FORMS,    115, GPUIR__PFD_DOCIDS) \
  ROW("newpfd",    GPUIR__ID_NEWPFD, 1, 1, NONE,    GPUIR__NEWPFD_FORMS, 104, GPUIR__PFD_DOCIDS) \
  ROW("optpfd",    GPUIR__ID_OPTPFD, 1, 1, NONE,    GPUIR__OPTPFD_FORMS, 106, GPUIR__PFD_DOCIDS) \
  ROW("ef",        GPUIR__ID_EF,     1, 1, NONE,    0,                   297, GPUIR__EF) \
  ROW("qs",        GPUIR__ID_QS,     1, 1, RATIO,   0,                   293, GPUIR__QS) \
  ROW("rice",      GPUIR__ID_RICE,   1, 1, NONE,    0,                   350, GPUIR__RICE) \
  ROW("pfd-list",  GPUIR__ID_PFL,    1, 1, LEVELS,  0,                   115, GPUIR__PFL) \
  ROW("parapfor",  GPUIR__ID_PARA,   1, 1, SEGMENT, 0,                   119, GPUIR__PARA) \
  ROW("lrc",       GPUIR__ID_LRC,    1, 1, SEGMENT, GPUIR__LRC,           72, GPUIR__LRC_ANY) \
  ROW("lrcseg",    GPUIR__ID_LRCSEG, 1, 1, SEGMENT, GPUIR__LRCSEG,        75, GPUIR__LRC_ANY) \
  ROW("seglrc",    GPUIR__ID_SEGLRC, 1, 1, SEGMENT, GPUIR__SEGLRC,        74, GPUIR__LRC_ANY) \
  ROW("hslrc",     GPUIR__ID_HSLRC,  1, 1, BUCKET,  0,                   129, GPUIR__HSLRC)
#define GPUIR__ENGINE_FREQS(ROW) \
  ROW("vbyte",     GPUIR__ID_VBYTE,  0, 1, NONE,    0,                   341, GPUIR__VBYTE_FREQS) \
  ROW("bp128",     GPUIR__ID_BP128,  0, 4, NONE,    0,                   100, GPUIR__BP128_FREQS)
#define GPUIR__LAB_FREQS(ROW) \
  ROW("newpfd",    GPUIR__ID_NEWPFD, 0, 1, NONE,    GPUIR__NEWPFD_FORMS,  98, GPUIR__PFD_FREQS) \
  ROW("optpfd",    GPUIR__ID_OPTPFD, 0, 1, NONE,    GPUIR__OPTPFD_FORMS,  98, GPUIR__PFD_FREQS)
/* clang-format on */

#ifndef GPUIR_NO_LAB
#define GPUIR__DOCID_ROWS(ROW) GPUIR__ENGINE_DOCIDS(ROW) GPUIR__LAB_DOCIDS(ROW)
#define GPUIR__FREQ_ROWS(ROW) GPUIR__ENGINE_FREQS(ROW) GPUIR__LAB_FREQS(ROW)
#else
#define GPUIR__DOCID_ROWS(ROW) GPUIR__ENGINE_DOCIDS(ROW)
#define GPUIR__FREQ_ROWS(ROW) GPUIR__ENGINE_FREQS(ROW)
#endif

#define GPUIR__ONE(name, id, docids, unit, parameter, mode, cost, functions) +1 /* NOLINT: a sum is made of these */
#define GPUIR__DOCID_CODECS ((size_t)(0 GPUIR__DOCID_ROWS(GPUIR__ONE)))
#define GPUIR__FREQ_CODECS ((size_t)(0 GPUIR__FREQ_ROWS(GPUIR__ONE)))

static const gpuir__codec gpuir__docid_codecs[GPUIR__DOCID_CODECS] = {GPUIR__DOCID_ROWS(GPUIR__CODEC)};
static const gpuir__codec gpuir__freq_codecs[GPUIR__FREQ_CODECS] = {GPUIR__FREQ_ROWS(GPUIR__CODEC)};

#define GPUIR__BP128 GPUIR__ID_BP128 /* the default */

/* Returns words about a codec that this build leaves out, NULL about any other. The codec is given by its name, of
 * `len` letters, or by its id, if the name is NULL. */
static const char *gpuir__codec_left_out(const char *name, size_t len, unsigned id, int docids) {
#ifdef GPUIR_NO_LAB
  static const struct {
    uint8_t id, docids;
    const char *words; /* "codec NAME left out .." */
  } codecs[] = {GPUIR__LAB_DOCIDS(GPUIR__LEFT_OUT) GPUIR__LAB_FREQS(GPUIR__LEFT_OUT)};
  size_t i;
  for (i = 0; i < sizeof codecs / sizeof codecs[0]; i++) {
    const char *words = codecs[i].words;
    if (codecs[i].docids != (docids != 0)) continue;
    if (name ? !strncmp(words + 6, name, len) && words[6 + len] == ' ' : codecs[i].id == id) return words;
  }
#endif
  (void)name;
  (void)len;
  (void)id;
  (void)docids;
  return NULL;
}

/* Fails, with words, if a coding names a codec that this build leaves out: what an index was built with. */
static int gpuir__coding_check(const char *spec, int docids, const char *path, gpuir_error *err) {
  const char *words = gpuir__codec_left_out(spec, strcspn(spec, ":"), 0, docids);
  return words ? gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "%s: %s", path, words) : GPUIR_OK;
}

/* Returns the codec of a name, NULL for an unknown one; a NULL name means the default. (Not strcmp with
 * `name ? name : "bp128"`: from that gcc 12 concludes at -O3 that no name of fewer than five letters is ever equal.) */
static const gpuir__codec *gpuir__codec_by_name(const char *name, int docids) {
  const gpuir__codec *table = docids ? gpuir__docid_codecs : gpuir__freq_codecs;
  size_t i, n = docids ? GPUIR__DOCID_CODECS : GPUIR__FREQ_CODECS;
  for (i = 0; i < n; i++)
    if (name ? !strcmp(table[i].name, name) : table[i].id == GPUIR__BP128) return table + i;
  return NULL;
}

/* Returns the codec of an id, NULL for an unknown one. */
static const gpuir__codec *gpuir__codec_by_id(unsigned id, int docids) {
  const gpuir__codec *table = docids ? gpuir__docid_codecs : gpuir__freq_codecs;
  size_t i, n = docids ? GPUIR__DOCID_CODECS : GPUIR__FREQ_CODECS;
  for (i = 0; i < n; i++)
    if (table[i].id == id) return table + i;
  return NULL;
}

/* ---- codings: a codec and its parameter, as users spell them */

/* `auto` takes, for each list, the codec that makes  bytes * (1 + w * cost)  least; of equals the one that stands
 * first in its table. bytes: of the list's stream, without the directory, which is the same for all. cost: of
 * decoding a value, relative to bp128, a fixed number in the tables.
 *
 * The costs decide which bytes `auto` writes, and the same input has to give the same bytes: so nothing is timed
 * while building, and new kernels do not change them. They were measured once, with early decoders
 * (AVX2, into L1, with sums of gaps), and no log kept; `gpuir lab codecs` measures today's. */
typedef struct gpuir__coding {
  const gpuir__codec *codec; /* NULL: auto */
  uint64_t param; /* the codec's; of auto 1000 w */
} gpuir__coding;

/* Reads digits, at most three of them behind a point, as thousandths; returns the rest of the text, NULL for none. */
static const char *gpuir__read_milli(const char *text, uint64_t *milli) {
  unsigned digits = 0, point = 0, behind = 0;
  for (*milli = 0;; text++) {
    if (*text >= '0' && *text <= '9' && digits < 9 && behind < 3) {
      *milli = *milli * 10 + (uint64_t)(*text - '0');
      digits++;
      behind += point;
    } else if (*text == '.' && !point) {
      point = 1;
    } else {
      break;
    }
  }
  if (!digits || (point && !behind)) return NULL;
  for (; behind < 3; behind++) *milli *= 10;
  return text;
}

#ifndef GPUIR_NO_LAB
/* Reads a whole number; returns the rest of the text, NULL for none. */
static const char *gpuir__read_whole(const char *text, uint64_t *value) {
  const char *end = gpuir__read_milli(text, value);
  if (!end || *value % 1000 || memchr(text, '.', (size_t)(end - text))) return NULL;
  *value /= 1000;
  return end;
}

/* Reads [SIZE][,EXCEPTIONS] of the codecs with segments, SIZE being at least `least`. Not 0: malformed. */
static int gpuir__read_segment(const char *text, uint32_t least, uint64_t *param) {
  uint64_t size = 0, exceptions = 0;
  if (*text != ',') {
    text = gpuir__read_whole(text, &size);
    if (!text || size < least || size > GPUIR__PARA_MOST || (size & (size - 1))) return 1;
  }
  if (*text == ',') {
    if (!strcmp(++text, "min")) {
      exceptions = GPUIR__PARA_LEAST;
      text += 3;
    } else {
      text = gpuir__read_milli(text, &exceptions);
      if (!text || exceptions++ > 1000) return 1;
    }
  }
  *param = size + (exceptions << 10);
  return *text != 0;
}

/* Reads what stands behind the colon of a coding. Not 0: malformed. */
static int gpuir__read_param(unsigned kind, const char *text, uint64_t *param) {
  const char *end;
  switch (kind) {
  case GPUIR__P_RATIO: end = gpuir__read_milli(text, param); return !end || *end || *param < 250 || *param > 4000;
  case GPUIR__P_LEVELS: end = gpuir__read_whole(text, param); return !end || *end || ++*param > GPUIR__PFL_DEPTH;
  case GPUIR__P_SEGMENT: return gpuir__read_segment(text, 64, param);
  case GPUIR__P_BUCKET: return gpuir__read_segment(text, 32, param);
  default: return 1;
  }
}
#endif

/* Reads CODEC[:PARAM]; NULL means the default. 0, UNSUPPORTED for a codec that is unknown or left out, ARGUMENT for its
 * parameter. */
GPUIR__COLD static int gpuir__coding_parse(const char *spec, int docids, gpuir__coding *coding, gpuir_error *err) {
  static const char *const kinds[] = {"takes no parameter", "takes c, 0.25 to 4, as in qs:1.5",
      "takes its levels, 0 to 4, as in pfd-list:2", "takes [SEGMENT][,EXCEPTIONS]: 64, 128 or 256; 0 to 1 or min",
      "takes [BUCKET][,EXCEPTIONS]: 32, 64, 128 or 256; 0 to 1 or min"};
  const gpuir__codec *table = docids ? gpuir__docid_codecs : gpuir__freq_codecs;
  const size_t n = docids ? GPUIR__DOCID_CODECS : GPUIR__FREQ_CODECS;
  const char *colon = spec ? strchr(spec, ':') : NULL, *end;
  size_t len = colon ? (size_t)(colon - spec) : spec ? strlen(spec) : 0, i;
  const char *words;
  coding->param = 0;
  coding->codec = gpuir__codec_by_name(NULL, docids);
  if (!spec) return GPUIR_OK;
  if (len == 4 && !memcmp(spec, "auto", 4)) {
    coding->codec = NULL;
    if (!colon) return GPUIR_OK;
    end = gpuir__read_milli(colon + 1, &coding->param);
    if (end && !*end && coding->param <= 1000) return GPUIR_OK;
    return gpuir__refuse(err, "codec '%.40s': auto takes a weight of speed, 0 to 1", spec);
  }
  for (i = 0; i < n; i++)
    if (strlen(table[i].name) == len && !memcmp(table[i].name, spec, len)) break;
  words = i == n ? gpuir__codec_left_out(spec, len, 0, docids) : NULL;
  if (words) return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "codec '%.40s': %s", spec, words);
  if (i == n)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "unknown %s codec '%.80s'", docids ? "docID" : "frequency", spec);
  coding->codec = table + i;
#ifdef GPUIR_NO_LAB
  if (colon) /* the engine's own codecs take no parameter */
#else
  if (colon && gpuir__read_param(table[i].param, colon + 1, &coding->param))
#endif
    return gpuir__refuse(err, "codec '%.40s': %s %s", spec, table[i].name, kinds[table[i].param]);
  return GPUIR_OK;
}
