
/* ========
 * [33-analyzers]  analyzers: specifications, and a pool of those that are idle
 *
 * An index has the specification of its analyzer, one line; from it and the stop words every build that can makes the
 * same terms of the same text.
 *
 * Uses      [16-base], [30-analysis], [31-text].
 * Start at  gpuir__analyze; gpuir__analyzer_create; gpuir__analyzers for the analyzers that an open index keeps.
 * Tests     tests/unit/33_analyzers.c
 * ======*/

/* Runs the caller's tokenizer. */
static int gpuir__analyze_custom(gpuir__analyzer *an, const char *text, size_t len) {
  const int status = an->own.places ? an->own.places(an->own.user, text, len, an->query, gpuir__custom_place_token, an)
                                    : an->own.tokenize(an->own.user, text, len, gpuir__custom_token, an);
  return an->status ? an->status : status; /* even if the tokenizer has lost it */
}

/* Emits the tokens of a text. dropped (may be NULL) is increased for each token over 255 bytes.
 * Returns 0, or the first other answer of emit or of the caller's tokenizer, or NOMEM. */
static int gpuir__analyze(gpuir__analyzer *an, const char *text, size_t len, gpuir_place_fn emit, void *sink,
    uint64_t *dropped) {
  int status;
  an->emit = emit;
  an->sink = sink;
  an->advance = 1;
  an->shared = 0;
  an->dropped = 0;
  an->status = GPUIR_OK;
  an->why = NULL;
  an->at = an->end = an->matched = 0;
  an->text = text;
  an->text_len = len;
  an->search = len < SIZE_MAX / 64 ? len * 32 + 4096 : len;
  an->reach = GPUIR__PLACE_REACH;
  if (an->kind == GPUIR__CUSTOM) status = gpuir__analyze_custom(an, text, len);
#ifdef GPUIR__HAS_TEXT
  else if (an->kind == GPUIR__TEXT) status = gpuir__text_scan(an, text, len);
#endif
  else status = gpuir__scan(an, text, len);
  if (dropped) *dropped += an->dropped;
  return status;
}

/* Emits the tokens of a query's word likewise. */
static int gpuir__analyze_query(gpuir__analyzer *an, const char *text, size_t len, gpuir_place_fn emit, void *sink) {
  int status;
  an->query = 1;
  status = gpuir__analyze(an, text, len, emit, sink, NULL);
  an->query = 0;
  return status;
}

/* ---- specifications */

/* Says whether a name is 1 to 64 bytes without white space or control characters, so that specifications are
 * one line and messages can quote it. */
static int gpuir__name_ok(const char *name, size_t len) {
  size_t i;
  if (!len || len > GPUIR__NAME_MAX) return 0;
  for (i = 0; i < len; i++)
    if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f) return 0;
  return 1;
}

/* The analyzer of a desc that names none. */
#ifdef GPUIR_NO_FOLD
static const char gpuir__analyzer_default[] = "ascii";
#else
static const char gpuir__analyzer_default[] = "basic";
#endif

static int gpuir__has_words(const char *words) {
  while (gpuir__is_space(*words)) words++;
  return *words != 0;
}

/* Writes the specification that is stored in the index, GPUIR__SPEC_MAX bytes at most with its NUL:
 *   ("ascii" | "basic" | "unicode" | "text" | "custom:" NAME) [" stem=" NAME] [" nofold"]
 *   [" stop=" ("english" | "custom")]
 * Errors: ARGUMENT. */
static int gpuir__analyzer_spec(const gpuir_analyzer_desc *desc, char *spec, size_t cap, gpuir_error *err) {
  const char *name = desc && desc->analyzer ? desc->analyzer : gpuir__analyzer_default;
  const char *stem = desc ? desc->stem : NULL, *stop = desc ? desc->stop : NULL;
  int builtin = !strcmp(name, "ascii") || !strcmp(name, "basic") || !strcmp(name, "unicode") || !strcmp(name, "text");
  int custom = desc && (desc->tokenize || desc->tokenize_places);
  int words = desc && desc->stop_words && gpuir__has_words(desc->stop_words);
  int n;
  if (cap) spec[0] = 0;
  if (custom && desc->tokenize && desc->tokenize_places)
    return gpuir__refuse(err, "tokenize and tokenize_places exclude each other");
  if (custom && !desc->analyzer) return gpuir__refuse(err, "a tokenizer needs a name: set `analyzer`");
  if (!gpuir__name_ok(name, strlen(name)))
    return gpuir__refuse(err, "the analyzer's name must be 1 to %d bytes without white space", (int)GPUIR__NAME_MAX);
  if (custom && builtin) return gpuir__refuse(err, "a tokenizer may not be called \"%s\", as a built-in one is", name);
  if (!custom && !builtin)
    return gpuir__refuse(err, "unknown analyzer \"%s\" (there are ascii, basic, unicode and text)", name);
  if (desc && desc->no_fold && strcmp(name, "text") != 0)
    return gpuir__refuse(err, "no_fold: only the analyzer \"text\" folds, not \"%s\"", name);
  if (stem && !gpuir__name_ok(stem, strlen(stem)))
    return gpuir__refuse(err, "the stemmer's name must be 1 to %d bytes without white space", (int)GPUIR__NAME_MAX);
  if (stop && desc->stop_words) return gpuir__refuse(err, "stop and stop_words exclude each other");
  if (stop && strcmp(stop, "english"))
    return gpuir__refuse(err, "unknown stop list \"%.64s\" (there is english)", stop);
  n = snprintf(spec, cap, "%s%s%s%s%s%s", custom ? "custom:" : "", name, stem ? " stem=" : "", stem ? stem : "",
      desc && desc->no_fold ? " nofold" : "",
      stop        ? " stop=english"
          : words ? " stop=custom"
                  : "");
  if (n < 0 || (size_t)n >= cap) return gpuir__refuse(err, "analyzer specification too long");
  return GPUIR_OK;
}

GPUIR_API const char *gpuir_stop_list(const char *name) {
  if (name && !strcmp(name, "english")) return gpuir__stop_english;
  return name && !strcmp(name, "english-questions") ? gpuir__stop_questions : NULL;
}

/* Writes the language that a specification stems, by the name of its stemmer, to out[0..GPUIR__NAME_MAX]; "": none. */
static void gpuir__spec_language(const char *spec, char *out) {
  const char *stem = strstr(spec, " stem=");
  const size_t n = stem ? strcspn(stem + 6, " ") : 0;
  out[0] = 0;
  if (!n || n > GPUIR__NAME_MAX) return;
  memcpy(out, stem + 6, n);
  out[n] = 0;
  if (!strcmp(out, "porter") || !strcmp(out, "en") || !strcmp(out, "eng")) memcpy(out, "english", 8);
}

/* Returns the revision of the analyzer that a specification names, which an index has beside it: another one makes
 * other terms of the same text. Revision 1 of ascii left typographic quotes, dashes and spaces within words. */
static const char *gpuir__analyzer_revision(const char *spec) {
  return !strncmp(spec, "ascii", 5) && (!spec[5] || spec[5] == ' ') ? "2" : "1";
}

/* Says whether a specification names the analyzer `text`. */
static int gpuir__spec_is_text(const char *spec) { return !strncmp(spec, "text", 4) && (!spec[4] || spec[4] == ' '); }

#ifdef GPUIR__HAS_TEXT
static int gpuir__analyzer_make_wording(gpuir__analyzer *an) {
  an->wording = gpuir__alloc_zero(&an->a, sizeof(gpuir__wording));
  return an->wording ? GPUIR_OK : GPUIR_E_NOMEM;
}

static void gpuir__analyzer_free_wording(gpuir__analyzer *an) {
  gpuir__wording *w = gpuir__wording_of(an);
  if (w) gpuir__free(&an->a, w->known, sizeof *w->known << GPUIR__T_KNOWN_BITS);
  gpuir__free(&an->a, w, sizeof *w);
}
#endif

GPUIR__NOINLINE void gpuir__analyzer_destroy(gpuir__analyzer *an) {
  gpuir_allocator a;
  if (!an) return;
  a = an->a;
#ifdef GPUIR_WITH_STEMMER
  sb_stemmer_delete(an->stemmer);
  gpuir__free(&a, an->cache, sizeof *an->cache << GPUIR__STEM_CACHE_BITS);
#endif
  gpuir__buf_free(&a, &an->stops.words);
#ifdef GPUIR__HAS_TEXT
  gpuir__analyzer_free_wording(an);
#endif
  gpuir__free(&a, an->stops.slots, an->stops.nslots * sizeof *an->stops.slots);
  gpuir__free(&a, an, sizeof *an);
}

/* Makes the set of stop words from words parted by white space, each through the tokenizer. */
static int gpuir__analyzer_set_stops(gpuir__analyzer *an, const char *words, gpuir_error *err) {
  int status = GPUIR_OK;
  if (!words) words = "";
  an->filtered = an->possessive;
  an->collecting = 1;
  while (*words && !status) {
    size_t n = 0;
    while (gpuir__is_space(*words)) words++;
    while (words[n] && !gpuir__is_space(words[n])) n++;
    if (n) status = gpuir__analyze(an, words, n, gpuir__stops_add, an, NULL);
    words += n;
  }
  an->collecting = 0;
  if (status == GPUIR_E_NOMEM) return gpuir__fail_nomem(err);
  if (status == GPUIR_E_LIMIT) return gpuir__fail(err, status, 0, "the list of stop words is too long, or contrived");
  if (status) return gpuir__fail(err, status, 0, "the tokenizer fails on the stop words");
  return GPUIR_OK;
}

/* What a specification says: "NAME" or "custom:NAME", then options " stem=NAME" and " stop=NAME". */
typedef struct gpuir__spec {
  int kind, no_fold;
  char stem[GPUIR__NAME_MAX + 1], stop[GPUIR__NAME_MAX + 1]; /* "": none */
} gpuir__spec;

/* Reads the analyzer's name, before the options. *end is what follows it. */
static int gpuir__spec_name(const char *p, int has_tokenizer, int *kind, const char **end, gpuir_error *err) {
  size_t n = strcspn(p, " ");
  char name[GPUIR__NAME_MAX + 1];
  *end = p + n;
  *kind = -1;
  if (n == 5 && !memcmp(p, "ascii", n)) *kind = GPUIR__ASCII;
  if (n == 5 && !memcmp(p, "basic", n)) *kind = GPUIR__BASIC;
  if (n == 7 && !memcmp(p, "unicode", n)) *kind = GPUIR__UNICODE;
  if (n == 4 && !memcmp(p, "text", n)) *kind = GPUIR__TEXT;
  if (n >= 7 && !memcmp(p, "custom:", 7)) {
    *kind = GPUIR__CUSTOM;
    p += 7;
    n -= 7;
  }
  if (!gpuir__name_ok(p, n)) return gpuir__fail(err, GPUIR_E_FORMAT, 0, "malformed analyzer specification");
  memcpy(name, p, n);
  name[n] = 0;
  if (*kind < 0) return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "this build has no analyzer \"%s\"", name);
  if (*kind == GPUIR__CUSTOM && !has_tokenizer)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "the tokenizer \"%s\" must be given", name);
#ifdef GPUIR_NO_TEXT
  if (*kind == GPUIR__TEXT)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "the analyzer \"text\" was left out by GPUIR_NO_TEXT");
#endif
#ifdef GPUIR_NO_FOLD
  if (*kind == GPUIR__BASIC)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "the analyzer \"basic\" was left out by GPUIR_NO_FOLD");
#endif
#ifndef GPUIR_WITH_UTF8PROC
  if (*kind == GPUIR__UNICODE || *kind == GPUIR__TEXT)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0,
        "this build has no %s analyzer (define GPUIR_WITH_UTF8PROC and link -lutf8proc)", name);
#endif
  return GPUIR_OK;
}

/* Reads a specification. FORMAT for a malformed one; UNSUPPORTED, in words, if this build or caller lacks something. */
static int gpuir__spec_parse(const char *text, int has_tokenizer, gpuir__spec *spec, gpuir_error *err) {
  const char *p;
  size_t n;
  int status = gpuir__spec_name(text, has_tokenizer, &spec->kind, &p, err);
  if (status) return status;
  spec->stem[0] = spec->stop[0] = 0;
  spec->no_fold = 0;
  for (; *p; p += n) {
    char key[GPUIR__NAME_MAX + 1], *value;
    size_t name_len;
    p++; /* the space */
    n = strcspn(p, " ");
    if (n == 6 && !memcmp(p, "nofold", n) && spec->kind == GPUIR__TEXT && !spec->no_fold) {
      spec->no_fold = 1;
      continue;
    }
    name_len = strcspn(p, "= ");
    if (name_len >= n || !gpuir__name_ok(p, name_len) || !gpuir__name_ok(p + name_len + 1, n - name_len - 1))
      return gpuir__fail(err, GPUIR_E_FORMAT, 0, "malformed analyzer specification");
    memcpy(key, p, name_len);
    key[name_len] = 0;
    if (!strcmp(key, "stem")) value = spec->stem;
    else if (!strcmp(key, "stop")) value = spec->stop;
    else return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "this build's analyzers have no option \"%s\"", key);
    if (*value) return gpuir__fail(err, GPUIR_E_FORMAT, 0, "malformed analyzer specification");
    memcpy(value, p + name_len + 1, n - name_len - 1);
    value[n - name_len - 1] = 0;
  }
  if (*spec->stop && strcmp(spec->stop, "english") && strcmp(spec->stop, "custom"))
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "this build has no stop list \"%s\"", spec->stop);
#ifndef GPUIR_WITH_STEMMER
  if (*spec->stem)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0,
        "this build has no stemmer \"%s\" (define GPUIR_WITH_STEMMER and link -lstemmer)", spec->stem);
#endif
  return GPUIR_OK;
}

/* Makes an analyzer from a specification, the custom stop words ("" if none) and the caller's tokenizer (NULL: none).
 * UNSUPPORTED, in words, if this build or caller lacks something; FORMAT for a malformed specification; NOMEM; LIMIT
 * for stop words that fit no table; or what the tokenizer returned for the stop words. */
GPUIR__COLD static int gpuir__analyzer_create(const gpuir_allocator *allocator, const char *text,
    const char *stop_words, const gpuir__tokenizer *own, gpuir__analyzer **analyzer, gpuir_error *err) {
  gpuir_allocator a = gpuir__allocator(allocator);
  gpuir__analyzer *an;
  gpuir__spec spec;
  const char *stem = spec.stem;
  int status = gpuir__spec_parse(text, own && (own->tokenize || own->places), &spec, err);
  *analyzer = NULL;
  if (status) return status;
  an = (gpuir__analyzer *)gpuir__alloc_zero(&a, sizeof *an);
  if (!an) return gpuir__fail_nomem(err);
  an->a = a;
  an->kind = spec.kind;
  if (own) an->own = *own;
  an->no_fold = spec.no_fold;
  an->possessive = !strcmp(stem, "porter") || !strcmp(stem, "english") || !strcmp(stem, "eng") || !strcmp(stem, "en");
#ifdef GPUIR__HAS_TEXT
  if (an->kind == GPUIR__TEXT && gpuir__analyzer_make_wording(an)) status = gpuir__fail_nomem(err);
#endif
  if (!status && *spec.stop)
    status = gpuir__analyzer_set_stops(an, !strcmp(spec.stop, "custom") ? stop_words : gpuir__stop_english, err);
#ifdef GPUIR_WITH_STEMMER
  if (!status && *stem) {
    an->stemmer = sb_stemmer_new(stem, NULL);
    if (!an->stemmer) {
      const char **known = sb_stemmer_list();
      while (*known && strcmp(*known, stem)) known++;
      status = *known ? gpuir__fail_nomem(err)
                      : gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "libstemmer has no stemmer \"%s\"", stem);
    }
  }
#endif
  if (status) {
    gpuir__analyzer_destroy(an);
    return status;
  }
  an->filtered = an->possessive || an->stops.nslots || *stem;
  *analyzer = an;
  return GPUIR_OK;
}

/* Says whether terms are stems. */
static inline int gpuir__analyzer_stems(const gpuir__analyzer *an) {
#ifdef GPUIR_WITH_STEMMER
  return an->stemmer != NULL;
#else
  (void)an;
  return 0;
#endif
}

/* Emits the term of a folded word, where terms are stems. */
static int gpuir__analyzer_stem(gpuir__analyzer *an, const char *word, size_t len, gpuir_place_fn emit, void *sink) {
#ifdef GPUIR_WITH_STEMMER
#ifdef GPUIR__HAS_TEXT
  if (an->stemmer && an->kind == GPUIR__TEXT) {
    gpuir__form form;
    const int status = gpuir__text_term(an, word, len, &form);
    return status || !form.len ? status : emit(sink, form.bytes, form.len, 1);
  }
#endif
  an->emit = emit;
  an->sink = sink;
  an->advance = 1;
  return an->stemmer ? gpuir__stem_token(an, word, len, gpuir__word_hash(an, word, len)) : GPUIR_OK;
#else
  (void)an, (void)word, (void)len, (void)emit, (void)sink;
  return GPUIR_OK;
#endif
}

/* ---- a pool of analyzers */

/* Analyzers of one specification that are idle: they are costly to make, and each serves one thread at a time. */
#define GPUIR__POOL 16
typedef struct gpuir__analyzers {
  gpuir_allocator a;
  uint64_t refs; /* owners, counted atomically */
  const char *spec, *stop_words; /* copies, behind the struct */
  size_t size; /* of both together */
  gpuir__tokenizer own;
  pthread_mutex_t mutex; /* guards what follows */
  unsigned n;
  gpuir__analyzer *idle[GPUIR__POOL];
} gpuir__analyzers;

/* Leaves the pool; NULL is allowed. The last owner releases it with its idle analyzers: all that were taken must have
 * been given back. */
static void gpuir__analyzers_close(gpuir__analyzers *pool) {
  gpuir_allocator a;
  if (!pool || __atomic_sub_fetch(&pool->refs, 1, __ATOMIC_ACQ_REL)) return;
  a = pool->a;
  while (pool->n) gpuir__analyzer_destroy(pool->idle[--pool->n]);
  (void)pthread_mutex_destroy(&pool->mutex);
  gpuir__free(&a, pool, pool->size);
}

/* Adds an owner to the pool. */
static gpuir__analyzers *gpuir__analyzers_retain(gpuir__analyzers *pool) {
  (void)__atomic_add_fetch(&pool->refs, 1, __ATOMIC_RELAXED);
  return pool;
}

/* Makes an empty pool with one owner. `spec` and `stop_words` are copied. */
static int gpuir__analyzers_open(const gpuir_allocator *a, const char *spec, const char *stop_words,
    const gpuir__tokenizer *own, gpuir__analyzers **out, gpuir_error *err) {
  const size_t nspec = strlen(spec) + 1, nstop = strlen(stop_words) + 1,
               size = sizeof(gpuir__analyzers) + nspec + nstop;
  gpuir__analyzers *pool = (gpuir__analyzers *)gpuir__alloc_zero(a, size);
  if (!pool) return gpuir__fail_nomem(err);
  if (pthread_mutex_init(&pool->mutex, NULL)) {
    gpuir__free(a, pool, size);
    return gpuir__fail_nomem(err);
  }
  pool->a = *a;
  pool->refs = 1;
  pool->size = size;
  pool->spec = (const char *)memcpy(pool + 1, spec, nspec);
  pool->stop_words = (const char *)memcpy((char *)(pool + 1) + nspec, stop_words, nstop);
  pool->own = *own;
  *out = pool;
  return GPUIR_OK;
}

/* Takes an idle analyzer, or makes one. */
GPUIR__NOINLINE int gpuir__analyzers_take(gpuir__analyzers *pool, gpuir__analyzer **analyzer, gpuir_error *err) {
  *analyzer = NULL;
  gpuir__lock(&pool->mutex);
  if (pool->n) *analyzer = pool->idle[--pool->n];
  gpuir__unlock(&pool->mutex);
  if (*analyzer) return GPUIR_OK;
  return gpuir__analyzer_create(&pool->a, pool->spec, pool->stop_words, &pool->own, analyzer, err);
}

/* Gives an analyzer back; one too many is destroyed. */
static void gpuir__analyzers_give(gpuir__analyzers *pool, gpuir__analyzer *analyzer) {
  gpuir__lock(&pool->mutex);
  if (pool->n < GPUIR__POOL) {
    pool->idle[pool->n++] = analyzer;
    analyzer = NULL;
  }
  gpuir__unlock(&pool->mutex);
  gpuir__analyzer_destroy(analyzer);
}
