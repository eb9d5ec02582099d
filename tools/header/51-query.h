
/* ========
 * [51-query]  query: from text to weighted terms
 *
 * A query's text is words, phrases and prefixes, each of which becomes one term or more. What is scored as one is
 * called a term here, also a phrase, or all terms that a prefix stands for.
 *
 * Uses      [24-postings] (weights), [29-fold], [30-analysis], [32-dictionary], [33-analyzers], [36-documents],
 *           [37-layout],
 *           [41-reader], [42-snapshot], [49-where].
 * Start at  gpuir__query_words, gpuir_query_weigh.
 * Tests     tests/unit/51_query.c
 * ======*/

#ifndef GPUIR__PREFIX_POSTINGS
#define GPUIR__PREFIX_POSTINGS GPUIR_MAX_PREFIX_POSTINGS
#endif

/* GPUIR__ALL: what excludes the documents that hold all members, wherever these stand. */
enum { GPUIR__WORD, GPUIR__PHRASE, GPUIR__PREFIX, GPUIR__ALL };

/* What need not match, but adds to scores: GPUIR__EXTRA: the analyzer adds it to a word, and it goes where there is no
 * room; GPUIR__SCORES: a word of the text behind those that gpuir_query_desc.required asks for. */
enum { GPUIR__EXTRA = 1, GPUIR__SCORES };

/* What is weighed and scored as one: a word's term, a phrase, or all terms that a prefix stands for. Also a term of a
 * phrase, which has no weight of its own. */
typedef struct gpuir__query_term {
  uint32_t q;
  uint32_t df; /* 0: no live document holds the term, which is then unknown; a phrase's or prefix's: see its look-up */
  int negated;
  float idf, weight;
  uint8_t optional; /* 0: AND asks for it; GPUIR__EXTRA, GPUIR__SCORES */
  uint8_t kind; /* GPUIR__WORD ... */
  uint8_t len; /* of the text: a term's, or a prefix without its '*' */
  uint16_t tokens, first; /* of a phrase: its tokens, and where they begin among those of all phrases */
  uint8_t stem_len; /* of a prefix: bytes of its stem; 0: terms are no stems, or its stem begins with it */
  uint32_t members, postings; /* of a prefix: the terms that it stands for, and the postings of this index's */
  uint32_t name, name_len; /* of what is not a word's term: how it is written, in gpuir_query.names */
  uint32_t stem; /* where the stem stands there */
  /* How a word was typed: bytes of the query's text, then of gpuir_query.names, where no document has it; typed_len 0:
   * that is not known. And what is searched in its place; spelled_len 0: it is. */
  uint32_t typed, typed_len, spelled, spelled_len;
  uint8_t near_asked; /* word~: what is near is searched, if no document has it */
  uint8_t right; /* it is no typing error */
#ifndef GPUIR_NO_RANK
  uint8_t added; /* the text does not have it: it expands the query */
  uint32_t model, share; /* in an expanded query, what the model gives it; its part of GPUIR_EXPANSION_SUM */
#endif
  char text[GPUIR_MAX_TERM];
} gpuir__query_term;

/* What a query has numbers of in each leaf: its terms; the members of its phrases; where its prefixes end; the stems of
 * its prefixes. */
enum {
  GPUIR__ID_TERMS = 0,
  GPUIR__ID_MEMBERS = GPUIR_MAX_TERMS,
  GPUIR__ID_ENDS = 2 * GPUIR_MAX_TERMS,
  GPUIR__ID_STEMS = 3 * GPUIR_MAX_TERMS,
  GPUIR__IDS = 4 * GPUIR_MAX_TERMS
};

/* What only queries with phrases have. */
typedef struct gpuir__query_phrases {
  unsigned nmembers, ntokens; /* distinct terms of phrases; tokens of all phrases */
  gpuir__query_term members[GPUIR_MAX_TERMS];
  uint8_t tokens[(GPUIR_MAX_TERMS + 1) * GPUIR_MAX_TERMS]; /* each phrase's tokens: numbers of members */
} gpuir__query_phrases;

/* A word that a query may keep or leave out. */
typedef struct gpuir__choice {
  uint32_t at; /* of its bytes */
  uint32_t q, df; /* as those of a term */
  uint32_t name, name_len;
  uint8_t len, kept;
} gpuir__choice;

/* All words of a query that has more than it may have terms, but for negated ones. */
typedef struct gpuir__choices {
  gpuir__buf bytes;
  gpuir__buf list; /* gpuir__choice, in the order of the text */
  gpuir__buf left; /* uint32_t: numbers of those that are left out */
  uint32_t *slots; /* [nslots] hash table: numbers of choices, plus 1 */
  size_t n, nslots;
  unsigned fixed, distinct; /* of the query without them */
} gpuir__choices;

struct gpuir_query {
  const gpuir_index *ix;
  gpuir_allocator a;
  int mode, no_operators, spell; /* mode: GPUIR_AND where words are `required` */
  unsigned required; /* words of the text, from the first on, that must match; 0: the mode tells */
  float k1, b;
  int stored_bm25; /* k1 and b are the index's */
  gpuir__norm norm;
  unsigned n, npositive; /* terms; positive ones come first */
  unsigned nrequired, nunknown, nknown; /* positive ones that are not optional, which come first; those of them that no
                                         * document holds; positive ones that some document holds */
  unsigned nphrases, nprefixes; /* of the terms */
  uint64_t most_postings; /* that its prefixes may have together */
  unsigned distinct; /* terms, those of phrases included */
  gpuir__query_phrases *phrases; /* NULL: none */
  gpuir__choices *choices; /* NULL: the query has all of its words */
  struct gpuir__where *where; /* NULL: there is none */
  int all; /* 1: it has no positive term, and all documents match */
  unsigned sort, collapse; /* columns, plus 1; 0: none */
  int falling; /* of the sort */
#ifndef GPUIR_NO_RANK
  struct gpuir_query *any; /* of ANDOR what is asked where any word is enough; NULL: this */
  uint32_t enough; /* of ANDOR: documents with all words that are; 0: as many as hits are asked for */
  int expanded; /* terms have shares */
  const char *stop; /* words that are left out of the text, while it is read; NULL: none */
  gpuir__buf stopped; /* those that were, as they were typed: a byte with the length, and the word */
#endif
  size_t size; /* of this and the ids behind it */
  uint32_t *ids; /* [leaf * GPUIR__IDS + number], see gpuir__query_id */
  gpuir__record *records; /* [leaf * nrecords + slot], see gpuir__query_record */
  unsigned nrecords; /* terms and members of phrases */
  gpuir__buf names; /* see gpuir__query_term.name, and .stem */
  gpuir__query_term terms[GPUIR_MAX_TERMS];
};

/* Returns the number that a term of the query has in a leaf; GPUIR__NO_TERM where it is not in it, or unknown. Of a
 * prefix it is the first term's. */
static inline uint32_t gpuir__query_id(const gpuir_query *q, size_t leaf, unsigned term) {
  return q->ids[leaf * GPUIR__IDS + GPUIR__ID_TERMS + term];
}
/* Returns that of a member of the query's phrases, the number behind the last term in a leaf that begins with a prefix,
 * and that of a prefix's stem, GPUIR__NO_TERM if there is none besides. */
static inline uint32_t gpuir__query_member_id(const gpuir_query *q, size_t leaf, unsigned member) {
  return q->ids[leaf * GPUIR__IDS + GPUIR__ID_MEMBERS + member];
}
static inline uint32_t gpuir__query_end(const gpuir_query *q, size_t leaf, unsigned term) {
  return q->ids[leaf * GPUIR__IDS + GPUIR__ID_ENDS + term];
}
static inline uint32_t gpuir__query_stem(const gpuir_query *q, size_t leaf, unsigned term) {
  return q->ids[leaf * GPUIR__IDS + GPUIR__ID_STEMS + term];
}

/* Says whether of documents with the same value only one is a hit. Without columns that is settled when a program is
 * compiled. */
static inline int gpuir__query_collapses(const gpuir_query *q) {
#ifdef GPUIR_NO_COLUMNS
  (void)q;
  return 0;
#else
  return q->collapse != 0;
#endif
}

/* Says whether the order of a query's hits is a column's. */
static inline int gpuir__query_sorts(const gpuir_query *q) {
#ifdef GPUIR_NO_COLUMNS
  (void)q;
  return 0;
#else
  return q->sort != 0;
#endif
}

/* Says whether a query asks for the best of all documents with its terms, and nothing else: a device takes no other. */
static inline int gpuir__query_is_plain(const gpuir_query *q) {
  return !q->where && !q->all && !gpuir__query_sorts(q) && !gpuir__query_collapses(q);
}

/* Returns the record, in a leaf, of the term of the query (number: from GPUIR__ID_TERMS on) or of the member of its
 * phrases (from GPUIR__ID_MEMBERS on) that has this number. The df is 0 if the leaf lacks the term, and of prefixes. */
static inline gpuir__record *gpuir__query_record(const gpuir_query *q, size_t leaf, unsigned number) {
  const unsigned slot = number < GPUIR__ID_MEMBERS ? number : q->n + number - GPUIR__ID_MEMBERS;
  return &q->records[leaf * q->nrecords + slot];
}

/* ---- from text to terms */

/* Where the tokens of one word, prefix or phrase go. */
typedef struct gpuir__word {
  gpuir_query *query;
  gpuir__analyzer *analyzer;
  const char *written; /* the text that is analysed */
  size_t written_at; /* where it stands in the query's text */
  int near_asked; /* it ends with '~' */
  int negated;
  int scores; /* it need not match */
  unsigned tokens; /* so far */
  uint64_t dropped; /* by the analyzer, when the last token came */
  size_t at, end; /* where in the text the token stands that is added; of gpuir__token_end the last one's end */
  uint8_t len; /* of a prefix the last token, of a phrase the first, which wait for the next one */
  char text[GPUIR_MAX_TERM];
} gpuir__word;

static int gpuir__token_is(const gpuir__query_term *t, const char *token, size_t len) {
  return t->len == len && !memcmp(t->text, token, len);
}

/* Takes the last extra term out of the query. 0: there is none. */
static int gpuir__query_drop_extra(gpuir_query *q) {
  unsigned i = q->n, j;
  while (i && q->terms[i - 1].optional != GPUIR__EXTRA) i--;
  if (!i) return 0;
  i--;
  for (j = 0; q->phrases && j < q->phrases->nmembers; j++)
    if (gpuir__token_is(&q->phrases->members[j], q->terms[i].text, q->terms[i].len)) break;
  q->distinct -= !q->phrases || j == q->phrases->nmembers;
  memmove(&q->terms[i], &q->terms[i + 1], (q->n - i - 1) * sizeof q->terms[0]);
  q->n--;
  return 1;
}

/* Counts a distinct term, unless it is among the first `nterms` words or the first `nmembers` members of phrases. Where
 * there are too many, extra ones go; TERMS if there are none. */
static int gpuir__query_distinct(gpuir_query *q, unsigned nterms, unsigned nmembers, const char *token, size_t len) {
  unsigned i;
  for (i = 0; i < nterms; i++)
    if (q->terms[i].kind == GPUIR__WORD && gpuir__token_is(&q->terms[i], token, len)) return GPUIR_OK;
  for (i = 0; i < nmembers; i++)
    if (gpuir__token_is(&q->phrases->members[i], token, len)) return GPUIR_OK;
  q->distinct++;
  while (q->distinct > GPUIR_MAX_TERMS)
    if (!gpuir__query_drop_extra(q)) return GPUIR_E_TERMS;
  return GPUIR_OK;
}

static void gpuir__query_term_make(gpuir__query_term *t, int kind, int negated, const char *token, size_t len) {
  memset(t, 0, sizeof *t);
  t->q = 1;
  t->kind = (uint8_t)kind;
  t->negated = negated;
  t->len = (uint8_t)len;
  memcpy(t->text, token, len);
}

/* Notes how a token that begins with FF is written: as it was typed, and before `suffix`. */
static int gpuir__word_name(const gpuir__word *word, const char *token, const char *suffix, uint32_t *name,
    uint32_t *name_len) {
  gpuir_query *q = word->query;
  const size_t len = word->end - word->at, more = strlen(suffix);
  *name = *name_len = 0;
  if ((uint8_t)token[0] != 0xff || word->analyzer->kind != GPUIR__TEXT) return GPUIR_OK;
  *name = (uint32_t)q->names.len;
  *name_len = (uint32_t)(len + more);
  if (gpuir__buf_put(&q->a, &q->names, word->written + word->at, len)) return GPUIR_E_NOMEM;
  return more && gpuir__buf_put(&q->a, &q->names, suffix, more) ? GPUIR_E_NOMEM : GPUIR_OK;
}

/* Notes that a term occurs once more: then it is required if it is required once. */
static void gpuir__query_again(gpuir__query_term *t, int optional) {
  if (t->q < UINT32_MAX) t->q++;
  t->optional = (uint8_t)(t->optional && optional ? gpuir__max32(t->optional, (uint32_t)optional) : 0);
}

/* Adds a word's term or a prefix, or counts one that is there once more. An extra term that finds no room is left
 * out. */
static int gpuir__query_add(const gpuir__word *word, int kind, int optional, const char *token, size_t len) {
  gpuir_query *q = word->query;
  gpuir__query_term *t;
  unsigned i;
  int status;
  for (i = 0; i < q->n; i++) {
    t = &q->terms[i];
    if (t->kind == kind && t->negated == word->negated && gpuir__token_is(t, token, len)) {
      gpuir__query_again(t, optional);
      return GPUIR_OK;
    }
  }
  if (optional == GPUIR__EXTRA && (q->n == GPUIR_MAX_TERMS || q->distinct == GPUIR_MAX_TERMS)) return GPUIR_OK;
  if (q->n == GPUIR_MAX_TERMS && !gpuir__query_drop_extra(q)) return GPUIR_E_TERMS;
  t = &q->terms[q->n++];
  gpuir__query_term_make(t, kind, word->negated, token, len);
  t->optional = (uint8_t)optional;
  t->near_asked = (uint8_t)word->near_asked;
  if (word->written_at + word->end <= UINT32_MAX) {
    t->typed = (uint32_t)(word->written_at + word->at);
    t->typed_len = (uint32_t)(word->end - word->at);
  }
  status = gpuir__word_name(word, token, kind == GPUIR__PREFIX ? "*" : "", &t->name, &t->name_len);
  q->nprefixes += kind == GPUIR__PREFIX;
  if (status) return status;
  return gpuir__query_distinct(q, 0, q->phrases && kind == GPUIR__WORD ? q->phrases->nmembers : 0, token, len);
}

/* ---- more words than a query may have */

static gpuir__choice *gpuir__choices_list(const gpuir__choices *c) { return (gpuir__choice *)(void *)c->list.data; }

/* Returns the slot of a word's number, or the free one where it belongs. */
static uint32_t *gpuir__choices_slot(const gpuir__choices *c, const char *word, size_t len) {
  const gpuir__choice *list = gpuir__choices_list(c);
  size_t i = (size_t)gpuir__hash(word, len, (uint64_t)(uintptr_t)c) & (c->nslots - 1);
  for (; c->slots[i]; i = (i + 1) & (c->nslots - 1)) {
    const gpuir__choice *x = &list[c->slots[i] - 1];
    if (x->len == len && !memcmp(c->bytes.data + x->at, word, len)) break;
  }
  return &c->slots[i];
}

/* Doubles the hash table. */
static int gpuir__choices_grow(const gpuir_allocator *a, gpuir__choices *c) {
  gpuir__choices old = *c;
  size_t i;
  c->nslots = old.nslots ? 2 * old.nslots : 256;
  c->slots = (uint32_t *)gpuir__alloc_zero(a, c->nslots * sizeof *c->slots);
  if (!c->slots) {
    *c = old;
    return GPUIR_E_NOMEM;
  }
  for (i = 0; i < c->n; i++) {
    const gpuir__choice *x = &gpuir__choices_list(c)[i];
    *gpuir__choices_slot(c, (const char *)c->bytes.data + x->at, x->len) = (uint32_t)i + 1;
  }
  gpuir__free(a, old.slots, old.nslots * sizeof *old.slots);
  return GPUIR_OK;
}

/* Adds a token of a word, or counts one that is there once more. */
static int gpuir__choices_add(const gpuir__word *from, const char *word, size_t len) {
  const gpuir_allocator *a = &from->query->a;
  gpuir__choices *c = from->query->choices;
  gpuir__choice x;
  uint32_t *slot;
  if (2 * (c->n + 1) > c->nslots && gpuir__choices_grow(a, c)) return GPUIR_E_NOMEM;
  slot = gpuir__choices_slot(c, word, len);
  if (*slot) {
    gpuir__choice *known = &gpuir__choices_list(c)[*slot - 1];
    if (known->q < UINT32_MAX) known->q++;
    return GPUIR_OK;
  }
  if (c->bytes.len > UINT32_MAX - GPUIR_MAX_TERM) return GPUIR_E_TERMS;
  memset(&x, 0, sizeof x);
  x.at = (uint32_t)c->bytes.len;
  x.q = 1;
  x.len = (uint8_t)len;
  if (gpuir__word_name(from, word, "", &x.name, &x.name_len)) return GPUIR_E_NOMEM;
  if (gpuir__buf_put(a, &c->bytes, word, len) || gpuir__buf_put(a, &c->list, &x, sizeof x)) return GPUIR_E_NOMEM;
  *slot = (uint32_t)++c->n;
  return GPUIR_OK;
}

static void gpuir__choices_free(const gpuir_allocator *a, gpuir__choices *c) {
  if (!c) return;
  gpuir__buf_free(a, &c->bytes);
  gpuir__buf_free(a, &c->list);
  gpuir__buf_free(a, &c->left);
  gpuir__free(a, c->slots, c->nslots * sizeof *c->slots);
  gpuir__free(a, c, sizeof *c);
}

/* Returns what a word's required tokens are in the query. */
static int gpuir__word_optional(const gpuir__word *word) { return word->scores ? GPUIR__SCORES : 0; }

/* Adds a token of a word, which stands in bytes [word->at, word->end) of the text. What is extra excludes nothing, and
 * where there are too many words it is left out. */
static int gpuir__word_put(const gpuir__word *word, const char *token, size_t len, unsigned required) {
  gpuir_query *q = word->query;
  if (!required && (word->negated || q->choices)) return GPUIR_OK;
  if (q->choices && !word->negated) return gpuir__choices_add(word, token, len);
  return gpuir__query_add(word, GPUIR__WORD, required ? gpuir__word_optional(word) : GPUIR__EXTRA, token, len);
}

/* Takes a token of a word. */
static int gpuir__word_token(void *sink, const char *token, size_t len, unsigned required) {
  gpuir__word *word = (gpuir__word *)sink;
  word->at = word->analyzer->at;
  word->end = word->analyzer->end;
  return gpuir__word_put(word, token, len, required);
}

/* Keeps a token that waits for the next one. */
static void gpuir__word_hold(gpuir__word *word, const char *token, size_t len) {
  word->at = word->analyzer->at;
  word->end = word->analyzer->end;
  word->len = (uint8_t)len;
  memcpy(word->text, token, len);
}

/* Adds the waiting token of a word that ends in a prefix: not the last one, and so an ordinary token. */
static int gpuir__prefix_flush(gpuir__word *word) {
  const gpuir__analyzer *an = word->analyzer;
  const size_t len = word->len;
  word->len = 0;
  if (!len ||
      (an->stops.nslots && an->kind != GPUIR__TEXT &&
          gpuir__stops_have(&an->stops, word->text, len, gpuir__word_hash(an, word->text, len))))
    return GPUIR_OK;
  return gpuir__word_put(word, word->text, len, 1);
}

/* Takes a token of a word that ends in a prefix, neither stopped nor stemmed. */
static int gpuir__prefix_token(void *sink, const char *token, size_t len, unsigned required) {
  gpuir__word *word = (gpuir__word *)sink;
  const int status = required ? gpuir__prefix_flush(word) : GPUIR_OK;
  if (!required) return GPUIR_OK;
  word->dropped = word->analyzer->dropped;
  gpuir__word_hold(word, token, len);
  return status;
}

/* Where the stem of a prefix goes. */
typedef struct gpuir__stem_sink {
  gpuir_query *query;
  gpuir__query_term *prefix;
  size_t first; /* bytes of the prefix that no stem takes the place of: see gpuir__prefix_first */
} gpuir__stem_sink;

/* Takes the stem of a prefix, unless it begins with it, as other terms do that the prefix stands for. */
static int gpuir__stem_take(void *sink, const char *stem, size_t len, unsigned advance) {
  const gpuir__stem_sink *to = (const gpuir__stem_sink *)sink;
  gpuir__query_term *t = to->prefix;
  gpuir__buf *names = &to->query->names;
  (void)advance;
  if (to->first + len > GPUIR_MAX_TERM ||
      (to->first + len >= t->len && !memcmp(stem, t->text + to->first, t->len - to->first)))
    return GPUIR_OK;
  t->stem = (uint32_t)names->len;
  t->stem_len = (uint8_t)(to->first + len);
  if (to->first && gpuir__buf_put(&to->query->a, names, t->text, to->first)) return GPUIR_E_NOMEM;
  return gpuir__buf_put(&to->query->a, names, stem, len);
}

/* Returns where in a prefix the word begins that it is the beginning of: behind the first term of a pair. */
static size_t gpuir__prefix_first(const gpuir__analyzer *an, const char *text, size_t len) {
  size_t i = len;
  if (an->kind != GPUIR__TEXT || (uint8_t)text[0] != 0xff) return 0;
  while ((uint8_t)text[i - 1] != 0xff) i--;
  return i;
}

/* Adds a word whose last token is a prefix. Where terms are stems it stands for its own stem, too: "computing*" finds
 * what "comput" was made of. */
static int gpuir__query_prefix(gpuir__word *word, const char *text, size_t len) {
  gpuir__analyzer *an = word->analyzer;
  const int filtered = an->filtered;
  gpuir__stem_sink stem;
  int status;
  if (an->kind == GPUIR__TEXT) an->open_end = 1; /* the term of a pair before it is a stem */
  else an->filtered = 0;
  status = gpuir__analyze_query(an, text, len, gpuir__prefix_token, word);
  an->filtered = filtered;
  an->open_end = 0;
  if (status || !word->len) return status;
  if (word->dropped < an->dropped) return gpuir__prefix_flush(word); /* the last one was too long */
  status = gpuir__query_add(word, GPUIR__PREFIX, gpuir__word_optional(word), word->text, word->len);
  if (status) return status;
  stem.query = word->query;
  stem.prefix = &word->query->terms[word->query->n - 1];
  if (stem.prefix->kind != GPUIR__PREFIX || stem.prefix->q > 1 || !gpuir__token_is(stem.prefix, word->text, word->len))
    return GPUIR_OK; /* it was there */
  stem.first = gpuir__prefix_first(an, word->text, word->len);
  if (stem.first == word->len) return GPUIR_OK; /* the hash of a long pair may end so */
  return gpuir__analyzer_stem(an, word->text + stem.first, word->len - stem.first, gpuir__stem_take, &stem);
}

/* Adds a member of phrases, or finds it; *member becomes its number. */
static int gpuir__query_member(gpuir_query *q, const char *token, size_t len, uint8_t *member) {
  gpuir__query_phrases *p = q->phrases;
  unsigned i;
  for (i = 0; i < p->nmembers && !gpuir__token_is(&p->members[i], token, len); i++) {}
  *member = (uint8_t)i;
  if (i < p->nmembers) return GPUIR_OK;
  if (i == GPUIR_MAX_TERMS) return GPUIR_E_TERMS;
  gpuir__query_term_make(&p->members[p->nmembers++], GPUIR__WORD, 0, token, len);
  return gpuir__query_distinct(q, q->n, 0, token, len);
}

/* Makes room for phrases. */
static int gpuir__query_phrases_make(gpuir_query *q) {
  if (q->phrases) return GPUIR_OK;
  q->phrases = (gpuir__query_phrases *)gpuir__alloc(&q->a, sizeof *q->phrases);
  if (!q->phrases) return GPUIR_E_NOMEM;
  q->phrases->nmembers = q->phrases->ntokens = 0;
  return GPUIR_OK;
}

/* Takes a token of a phrase, which those make that advance, or a required one of a word that excludes. The first waits:
 * alone, it is a word. */
static int gpuir__phrase_token(void *sink, const char *token, size_t len, unsigned advance) {
  gpuir__word *word = (gpuir__word *)sink;
  gpuir_query *q = word->query;
  uint8_t *tokens;
  int status;
  if (!advance) return GPUIR_OK;
  if (!word->tokens++) {
    gpuir__word_hold(word, token, len);
    return GPUIR_OK;
  }
  if (word->tokens > GPUIR_MAX_TERMS) return GPUIR_E_TERMS;
  status = gpuir__query_phrases_make(q);
  if (status) return status;
  tokens = q->phrases->tokens + q->phrases->ntokens;
  if (word->tokens == 2) status = gpuir__query_member(q, word->text, word->len, &tokens[0]);
  return status ? status : gpuir__query_member(q, token, len, &tokens[word->tokens - 1]);
}

/* Adds the phrase, or the term of kind GPUIR__ALL, whose tokens stand behind those of the others, or counts one that is
 * there once more. */
static int gpuir__query_phrase(gpuir__word *word, int kind) {
  gpuir_query *q = word->query;
  gpuir__query_phrases *p = q->phrases;
  gpuir__query_term *t;
  unsigned i;
  if (word->tokens == 1) return gpuir__word_put(word, word->text, word->len, 1);
  if (!word->tokens) return GPUIR_OK;
  for (i = 0; i < q->n; i++) {
    t = &q->terms[i];
    if (t->kind == kind && t->negated == word->negated && t->tokens == word->tokens &&
        !memcmp(p->tokens + t->first, p->tokens + p->ntokens, word->tokens)) {
      gpuir__query_again(t, gpuir__word_optional(word));
      return GPUIR_OK;
    }
  }
  if (q->n == GPUIR_MAX_TERMS && !gpuir__query_drop_extra(q)) return GPUIR_E_TERMS;
  t = &q->terms[q->n++];
  gpuir__query_term_make(t, kind, word->negated, "", 0);
  t->optional = (uint8_t)gpuir__word_optional(word);
  t->tokens = (uint16_t)word->tokens;
  t->first = (uint16_t)p->ntokens;
  p->ntokens += word->tokens;
  q->nphrases++;
  return GPUIR_OK;
}

/* Notes where a token ends in its text. */
static int gpuir__token_end(void *word, const char *token, size_t len, unsigned advance) {
  gpuir__word *w = (gpuir__word *)word;
  (void)token;
  (void)len;
  (void)advance;
  w->end = w->analyzer->end;
  return GPUIR_OK;
}

/* Says whether a word ends with text[0..len), len > 0, so that a '*' behind it makes a prefix: with an ASCII letter or
 * digit, or else with a character that the analyzer takes into a token. Of a caller's tokenizer that is not known:
 * there it is any other character. *ends gets the answer. */
static int gpuir__ends_word(gpuir__word *word, const char *text, size_t len, int *ends) {
  gpuir__analyzer *an = word->analyzer;
  const int filtered = an->filtered;
  const char c = text[len - 1];
  int status;
  *ends = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80);
  if (!(c & 0x80) || an->kind == GPUIR__CUSTOM) return GPUIR_OK;
  word->end = 0;
  an->filtered = 0;
  an->places = 1;
  status = gpuir__analyze_query(an, text, len, gpuir__token_end, word);
  an->places = 0;
  an->filtered = filtered;
  *ends = word->end == len;
  return status;
}

static int gpuir__query_crowded(gpuir_error *err) {
  return gpuir__fail(err, GPUIR_E_TERMS, 0, "the query has more than %d different words", GPUIR_MAX_TERMS);
}

/* Says why the words could not become terms. */
static int gpuir__query_words_fail(const gpuir__analyzer *an, int status, gpuir_error *err) {
  if (status && an->why) return gpuir__fail(err, status, 0, "%s", an->why);
  if (status == GPUIR_E_TERMS) return gpuir__query_crowded(err);
  return status ? gpuir__fail(err, status, 0, "%s", gpuir_strerror(status)) : GPUIR_OK;
}

/* Adds the phrase that the text between two quotes is. */
static int gpuir__query_quoted(gpuir__word *word, const char *text, size_t len, gpuir_error *err) {
  int status;
  word->written = text;
  status = gpuir__analyze(word->analyzer, text, len, gpuir__phrase_token, word, NULL);
  if (!status && word->tokens > 1 && !word->query->ix->leaves[0].seg->lists.positions)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "%s: built without positions: no phrase can be found",
        word->query->ix->path);
  if (status == GPUIR_E_TERMS && word->tokens > GPUIR_MAX_TERMS)
    return gpuir__fail(err, status, 0, "a phrase of the query has more than %d words", GPUIR_MAX_TERMS);
  return gpuir__query_words_fail(word->analyzer, status ? status : gpuir__query_phrase(word, GPUIR__PHRASE), err);
}

/* Adds a word of the analyzer `text` that excludes: the documents that hold all of its required terms. */
static int gpuir__query_excluded(gpuir__word *word, const char *text, size_t len) {
  gpuir_query *q = word->query;
  gpuir__query_term *t;
  int status = gpuir__analyze_query(word->analyzer, text, len, gpuir__phrase_token, word);
  const unsigned n = q->n;
  if (!status) status = gpuir__query_phrase(word, GPUIR__ALL);
  if (status || q->n == n) return status;
  t = &q->terms[q->n - 1];
  if (t->kind != GPUIR__ALL) return GPUIR_OK;
  t->name = (uint32_t)q->names.len;
  t->name_len = (uint32_t)len;
  return gpuir__buf_put(&q->a, &q->names, text, len) ? GPUIR_E_NOMEM : GPUIR_OK;
}

/* Adds a word, or a prefix. */
static int gpuir__query_word(gpuir__word *word, const char *text, size_t len, gpuir_error *err) {
  const gpuir_query *q = word->query;
  int prefix = 0, status = GPUIR_OK;
  if (!q->no_operators && len > 1 && text[len - 1] == '*') status = gpuir__ends_word(word, text, len - 1, &prefix);
  word->written = text;
  if (!status && !prefix && word->negated && word->analyzer->kind == GPUIR__TEXT)
    status = gpuir__query_excluded(word, text, len);
  else if (!status && !prefix) status = gpuir__analyze_query(word->analyzer, text, len, gpuir__word_token, word);
  if (status || !prefix) return gpuir__query_words_fail(word->analyzer, status, err);
  return gpuir__query_words_fail(word->analyzer, gpuir__query_prefix(word, text, len - 1), err);
}

/* A piece of a query's text: a word, or what stands between quotes. */
typedef struct gpuir__text_piece {
  size_t at, len; /* without its signs */
  int negated, quoted, open; /* open: the quote is not closed */
} gpuir__text_piece;

/* Finds the next piece, from text[*i] on, and steps behind it. 0: there is none. */
static int gpuir__query_piece(const gpuir_query *q, const char *text, size_t len, size_t *i, gpuir__text_piece *p) {
  while (*i < len && gpuir__is_space(text[*i])) ++*i;
  if (*i == len) return 0;
  p->negated = !q->no_operators && text[*i] == '-';
  *i += (size_t)p->negated;
  p->quoted = !q->no_operators && *i < len && text[*i] == '"';
  *i += (size_t)p->quoted;
  p->at = *i;
  while (*i < len && (p->quoted ? text[*i] != '"' : !gpuir__is_space(text[*i]))) ++*i;
  p->len = *i - p->at;
  p->open = p->quoted && *i == len;
  *i += (size_t)(p->quoted && !p->open);
  return 1;
}

/* ---- words that say little */

#ifndef GPUIR_NO_RANK
static int gpuir__stop_is_sign(char c) {
  return !(c & 0x80) && !(c >= '0' && c <= '9') && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* Steps over a character of [*p, end), and returns it small and without marks; 0 at the end. */
static uint32_t gpuir__stop_char(const char **p, const char *end) {
  while (*p < end) {
    uint32_t c;
    const size_t n = gpuir__utf8_get((const uint8_t *)*p, (size_t)(end - *p), &c);
#ifndef GPUIR_NO_FOLD
    uint32_t to[2];
    unsigned k;
#endif
    if (!n) c = 0x110000u + (uint8_t) * *p; /* no character: a byte is like itself alone */
    *p += n ? n : 1;
    if (c < 0x80) return (uint8_t)gpuir__small((char)c);
#ifndef GPUIR_NO_FOLD
    k = gpuir__fold_of(c, to);
    if (!k) continue;
    c = k == 2 ? to[0] << 16 | to[1] : to[0];
#endif
    return c;
  }
  return 0;
}

/* Says whether a word is written in capitals, two or more, as IT and US are. */
static int gpuir__stop_is_name(const char *word, size_t len) {
  unsigned large = 0;
  size_t i = 0;
  while (i < len) {
    uint32_t c;
    const size_t n = gpuir__utf8_get((const uint8_t *)word + i, len - i, &c);
    if (!n) return 0;
    i += n;
    if ((c >= 'A' && c <= 'Z') || (c >= 0xc0 && c <= 0xde) || (c >= 0x391 && c <= 0x3a9) || (c >= 0x400 && c <= 0x42f))
      large++;
    else if (c >= 0x80 || !gpuir__stop_is_sign((char)c)) return 0;
  }
  return large > 1;
}

/* Says whether a word of the text is one of a list's, which blanks part: but for case, marks and the signs around
 * it. */
static int gpuir__stop_has(const char *list, const char *word, size_t len) {
  while (len && gpuir__stop_is_sign(word[0])) word++, len--;
  while (len && gpuir__stop_is_sign(word[len - 1])) len--;
  if (!len || len > 255 || gpuir__stop_is_name(word, len)) return 0;
  while (*list) {
    const char *x = word, *end;
    int same = 1;
    while (gpuir__is_space(*list)) list++;
    for (end = list; *end && !gpuir__is_space(*end);) end++;
    if (list == end) break;
    while (same && list < end) same = gpuir__stop_char(&list, end) == gpuir__stop_char(&x, word + len);
    if (same && x == word + len) return 1;
    list = end;
  }
  return 0;
}

/* Says whether a piece is a word that the list has. */
static int gpuir__stop_is(const gpuir_query *q, const char *list, const char *text, const gpuir__text_piece *p) {
  const char last = p->len ? text[p->at + p->len - 1] : 0;
  if (p->negated || p->quoted || (!q->no_operators && (last == '*' || last == '~'))) return 0;
  return gpuir__stop_has(list, text + p->at, p->len);
}

/* Returns the list, if the text does without its words: there are some, and two others that are asked for. */
static const char *gpuir__stop_list_for(const gpuir_query *q, const char *list, const char *text, size_t len) {
  unsigned stops = 0, others = 0;
  size_t i = 0, j;
  gpuir__text_piece p;
  while (gpuir__query_piece(q, text, len, &i, &p)) {
    const int is = gpuir__stop_is(q, list, text, &p);
    for (j = p.at; j < p.at + p.len && gpuir__stop_is_sign(text[j]);) j++;
    stops += (unsigned)is;
    others += (unsigned)(!is && !p.negated && j < p.at + p.len);
  }
  return stops && others > 1 ? list : NULL;
}

/* Leaves a piece out, if it is one that the query does without. *status: NOMEM. */
static int gpuir__query_stop(gpuir_query *q, const char *text, const gpuir__text_piece *p, int *status) {
  const char n = (char)(p->len < 255 ? p->len : 255);
  if (!q->stop || !gpuir__stop_is(q, q->stop, text, p)) return 0;
  if (gpuir__buf_put(&q->a, &q->stopped, &n, 1) || gpuir__buf_put(&q->a, &q->stopped, text + p->at, (uint8_t)n))
    *status = GPUIR_E_NOMEM;
  return 1;
}
#else
static int gpuir__query_stop(gpuir_query *q, const char *text, const gpuir__text_piece *p, int *status) {
  (void)q, (void)text, (void)p, (void)status;
  return 0;
}
#endif

GPUIR_API int gpuir_query_stopped(const gpuir_query *q, size_t i, const char **word, size_t *len) {
  if (!q || !word || !len) return GPUIR_E_ARGUMENT;
#ifndef GPUIR_NO_RANK
  {
    const gpuir__buf *list = q->any ? &q->any->stopped : &q->stopped;
    size_t at = 0;
    while (at < list->len && i--) at += (size_t)list->data[at] + 1;
    if (at >= list->len) return GPUIR_E_NOT_FOUND;
    *word = (const char *)list->data + at + 1;
    *len = list->data[at];
    return GPUIR_OK;
  }
#else
  (void)i;
  return GPUIR_E_NOT_FOUND;
#endif
}

/* Cuts the text into words and phrases, and these into terms. */
static int gpuir__query_words(gpuir_query *q, gpuir__analyzer *analyzer, const char *text, size_t len,
    gpuir_error *err) {
  size_t i = 0;
  unsigned positive = 0;
  int status = GPUIR_OK;
  gpuir__text_piece p;
  while (!status && gpuir__query_piece(q, text, len, &i, &p)) {
    gpuir__word word;
    if (p.open)
      return gpuir__fail(err, GPUIR_E_QUERY, p.at - 1, "the quote at byte %lu of the query is not closed",
          (unsigned long)(p.at - 1));
    if (gpuir__query_stop(q, text, &p, &status)) continue;
    memset(&word, 0, offsetof(gpuir__word, text));
    word.query = q;
    word.analyzer = analyzer;
    word.negated = p.negated;
    word.scores = !word.negated && q->required && positive++ >= q->required;
    if (p.quoted) {
      status = gpuir__query_quoted(&word, text + p.at, p.len, err);
    } else {
      word.written_at = p.at;
      word.near_asked = !q->no_operators && p.len > 1 && text[p.at + p.len - 1] == '~';
      status = gpuir__query_word(&word, text + p.at, p.len, err);
    }
  }
  if (!status && positive < q->required)
    return gpuir__refuse(err, "%u words of the query are to match, but it has %u", q->required, positive);
  return status;
}

/* ---- from terms to numbers and weights */

/* Puts the terms that are negated or optional, if `rank` is at least 2 or 1, behind the others: a stable partition.
 * Returns how many others there are. */
static unsigned gpuir__query_part_by(gpuir_query *q, int rank) {
  unsigned i, j, n = 0;
  for (i = 0; i < q->n; i++) {
    gpuir__query_term t = q->terms[i];
    if ((t.negated ? 2 : t.optional != 0) >= rank) continue;
    for (j = i; j > n; j--) q->terms[j] = q->terms[j - 1];
    q->terms[n++] = t;
  }
  return n;
}

/* Puts the required terms first, then the optional ones, then the negated ones. Where the analyzer has left nothing of
 * the words that are required, any may match. */
static void gpuir__query_part(gpuir_query *q) {
  unsigned i;
  q->npositive = gpuir__query_part_by(q, 2);
  q->nrequired = gpuir__query_part_by(q, 1);
  if (q->nrequired || !q->required) return;
  q->mode = GPUIR_OR;
  for (i = 0; i < q->npositive; i++)
    if (q->terms[i].optional == GPUIR__SCORES) q->terms[i].optional = 0;
  q->nrequired = gpuir__query_part_by(q, 1);
}

/* Counts the live documents of leaf number `leaf` that hold term `id`, and fills in the term's record. *df: the same,
 * or the documents of the leaf's collection, if it is a shard. Messages name text[0..len). */
static int gpuir__query_df(const gpuir_index *ix, size_t leaf, uint64_t id, const char *text, size_t len,
    gpuir__record *r, uint32_t *held, uint32_t *df, gpuir_error *err) {
  const gpuir__segment *seg = ix->leaves[leaf].seg;
  const int status = gpuir__leaf_df(&ix->leaves[leaf], id, r, held);
  *df = status ? 0 : gpuir__segment_df(seg, id, *held);
  if (!status) return GPUIR_OK;
  return gpuir__fail(err, status, 0, "%s: cannot count the documents of \"%.*s\": %s", seg->path,
      len < 32 ? (int)len : 32, text, gpuir__list_why(seg, id, status));
}

/* Finds the words and the members of phrases in all segments, many at a time. */
static void gpuir__query_find(const gpuir_query *q) {
  const unsigned nmembers = q->phrases ? q->phrases->nmembers : 0;
  gpuir__looks looks;
  unsigned i;
  size_t leaf;
  looks.n = 0;
  for (i = 0; i < q->n + nmembers; i++) {
    const gpuir__query_term *t = i < q->n ? &q->terms[i] : &q->phrases->members[i - q->n];
    const unsigned number = i < q->n ? GPUIR__ID_TERMS + i : GPUIR__ID_MEMBERS + i - q->n;
    for (leaf = 0; leaf < q->ix->nleaves && t->kind == GPUIR__WORD; leaf++)
      gpuir__looks_add(&looks, q->ix->leaves[leaf].seg, t->text, t->len, &q->ids[leaf * GPUIR__IDS + number]);
  }
  gpuir__looks_end(&looks);
}

/* Sums the live documents of a term that was found in some segments. One that no live document holds is unknown: it
 * has no number anywhere. `number` is where its numbers are. */
static int gpuir__query_look_up(gpuir_query *q, gpuir__query_term *t, unsigned number, gpuir_error *err) {
  const gpuir_index *ix = q->ix;
  uint64_t df = 0;
  size_t i;
  int status;
  for (i = 0; i < ix->nleaves; i++) {
    uint32_t *found = &q->ids[i * GPUIR__IDS + number], held, all;
    if (*found == GPUIR__NO_TERM) continue;
    status = gpuir__query_df(ix, i, *found, t->text, t->len, gpuir__query_record(q, i, number), &held, &all, err);
    if (status) return status;
    if (!all) {
      *found = GPUIR__NO_TERM;
      gpuir__query_record(q, i, number)->df = 0;
    }
    df += all;
  }
  t->df = (uint32_t)gpuir__min64(df, ix->collection);
  return GPUIR_OK;
}

/* Sums up what a phrase's tokens weigh; its df becomes the least of its terms', which no more documents can have. */
static void gpuir__query_phrase_look_up(const gpuir_query *q, gpuir__query_term *t) {
  double idf = 0;
  unsigned i;
  t->df = UINT32_MAX;
  for (i = 0; i < t->tokens; i++) {
    const gpuir__query_term *member = &q->phrases->members[q->phrases->tokens[t->first + i]];
    t->df = gpuir__min32(t->df, member->df);
    idf += (double)member->idf;
  }
  t->idf = (float)idf;
}

/* Finds the numbers [*first, *end) of a segment's terms that begin with a prefix. */
static void gpuir__prefix_range(const gpuir__segment *seg, const gpuir__query_term *t, uint32_t *first, uint32_t *end) {
  char behind[GPUIR_MAX_TERM];
  size_t n = t->len;
  memcpy(behind, t->text, n);
  while (n && (uint8_t)behind[n - 1] == 255) n--;
  if (n) behind[n - 1] = (char)((uint8_t)behind[n - 1] + 1);
  *first = (uint32_t)gpuir__term_lower_bound(seg, t->text, t->len);
  *end = (uint32_t)(n ? gpuir__term_lower_bound(seg, behind, n) : seg->stat.terms);
}

/* The terms of one leaf that a prefix stands for, on the way: those that begin with it, or its stem. */
typedef struct gpuir__prefix_walk {
  size_t leaf;
  uint32_t at, end;
  size_t len;
  uint8_t term[GPUIR_MAX_TERM + 1]; /* number `at` */
} gpuir__prefix_walk;

/* What a prefix stands for, in all leaves. */
typedef struct gpuir__prefix_walks {
  const gpuir_index *ix;
  const gpuir__query_term *t;
  size_t n; /* the leaves once or, with a stem, twice: number i + the leaves' number is the stem in leaf i */
  gpuir__prefix_walk *list;
} gpuir__prefix_walks;

static void gpuir__prefix_walk_open(const gpuir_index *ix, size_t leaf, uint32_t at, uint32_t end,
    gpuir__prefix_walk *w) {
  w->leaf = leaf;
  w->at = at;
  w->end = end;
  if (at < end) w->len = gpuir__term_get(ix->leaves[leaf].seg, at, w->term);
}

/* Begins a walk over a prefix's terms. */
static int gpuir__prefix_open(const gpuir_query *q, const gpuir__query_term *t, gpuir__prefix_walks *w) {
  const gpuir_index *ix = q->ix;
  const char *stem = (const char *)q->names.data + t->stem;
  size_t i;
  w->ix = ix;
  w->t = t;
  w->n = ix->nleaves * (t->stem_len ? 2 : 1);
  w->list = (gpuir__prefix_walk *)gpuir__alloc(&q->a, w->n * sizeof *w->list);
  if (!w->list) return GPUIR_E_NOMEM;
  for (i = 0; i < ix->nleaves; i++) {
    uint64_t id = 0;
    uint32_t at, end;
    gpuir__prefix_range(ix->leaves[i].seg, t, &at, &end);
    gpuir__prefix_walk_open(ix, i, at, end, &w->list[i]);
    if (!t->stem_len) continue;
    end = !gpuir__term_find(ix->leaves[i].seg, stem, t->stem_len, &id);
    gpuir__prefix_walk_open(ix, i, (uint32_t)id, (uint32_t)id + end, &w->list[ix->nleaves + i]);
  }
  return GPUIR_OK;
}

static void gpuir__prefix_close(const gpuir_query *q, gpuir__prefix_walks *w) {
  gpuir__free(&q->a, w->list, w->n * sizeof *w->list);
}

/* Finds the next term of a prefix, the least of all leaves', and counts its postings and the live documents that hold
 * it, see gpuir__query_df; *more becomes 0 if there is none. Leaves' terms come in the same order. */
static int gpuir__prefix_next(gpuir__prefix_walks *w, gpuir__prefix_walk *found, uint64_t *postings, uint64_t *df,
    int *more, gpuir_error *err) {
  const gpuir__prefix_walk *least = NULL;
  gpuir__record r;
  uint32_t held, all;
  size_t i;
  int status = GPUIR_OK;
  *postings = *df = 0;
  for (i = 0; i < w->n; i++) {
    const gpuir__prefix_walk *l = &w->list[i];
    if (l->at < l->end && (!least || gpuir__compare_bytes(l->term, l->len, least->term, least->len) < 0)) least = l;
  }
  *more = least != NULL;
  if (!least) return GPUIR_OK;
  found->len = least->len;
  memcpy(found->term, least->term, least->len);
  for (i = 0; i < w->n && !status; i++) {
    gpuir__prefix_walk *l = &w->list[i];
    if (l->at >= l->end || gpuir__compare_bytes(l->term, l->len, found->term, found->len) != 0) continue;
    status = gpuir__query_df(w->ix, l->leaf, l->at, w->t->text, w->t->len, &r, &held, &all, err);
    *postings += held;
    *df += all;
    if (++l->at < l->end) l->len = gpuir__term_get(w->ix->leaves[l->leaf].seg, l->at, l->term);
  }
  return status;
}

/* Says that prefixes have more postings than may be read for them, which is told by their lists' lengths alone. */
static int gpuir__prefix_fail(const gpuir_query *q, const gpuir__query_term *t, gpuir_error *err) {
  const int len = t->len < 64 ? t->len : 64;
  if (t->postings > GPUIR__PREFIX_POSTINGS)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "\"%.*s*\" stands for terms of more than %lu postings: write more of it",
        len, t->text, (unsigned long)GPUIR__PREFIX_POSTINGS);
  return gpuir__fail(err, GPUIR_E_LIMIT, 0, "the prefixes up to \"%.*s*\" stand for terms of more than %llu postings",
      len, t->text, (unsigned long long)q->most_postings);
}

/* Counts the terms of live documents that a prefix stands for; its df becomes the greatest of theirs. LIMIT where they
 * have too many postings, alone or with those of the prefixes before it, which have *sum. */
static int gpuir__prefix_count(const gpuir_query *q, gpuir__query_term *t, gpuir__prefix_walks *w, uint64_t *sum,
    gpuir_error *err) {
  gpuir__prefix_walk found;
  uint64_t held, df, postings = 0, greatest = 0;
  int more = 1;
  t->members = t->postings = 0;
  while (more) {
    const int status = gpuir__prefix_next(w, &found, &held, &df, &more, err);
    if (status) return status;
    if (!df) continue;
    t->members++;
    postings += held;
    t->postings = (uint32_t)gpuir__min64(postings, UINT32_MAX);
    *sum += held;
    greatest = gpuir__max64(greatest, df);
    if (t->postings > GPUIR__PREFIX_POSTINGS || *sum > q->most_postings) return gpuir__prefix_fail(q, t, err);
  }
  t->df = (uint32_t)gpuir__min64(greatest, q->ix->collection);
  t->idf = gpuir__idf(q->ix->collection, t->df);
  return GPUIR_OK;
}

/* Looks a prefix up in each leaf; *sum: postings of the query's prefixes so far. */
static int gpuir__query_prefix_look_up(gpuir_query *q, unsigned term, uint64_t *sum, gpuir_error *err) {
  gpuir__query_term *t = &q->terms[term];
  gpuir__prefix_walks w;
  size_t i;
  int status = gpuir__prefix_open(q, t, &w);
  if (status) return gpuir__fail_nomem(err);
  for (i = 0; i < q->ix->nleaves; i++) {
    const gpuir__prefix_walk *begin = &w.list[i], *stem = t->stem_len ? &w.list[q->ix->nleaves + i] : NULL;
    uint32_t *ids = q->ids + i * GPUIR__IDS;
    const int has_stem = stem && stem->at < stem->end, alone = begin->at >= begin->end && has_stem;
    if (alone) begin = stem;
    ids[GPUIR__ID_TERMS + term] = begin->at < begin->end ? begin->at : GPUIR__NO_TERM;
    ids[GPUIR__ID_ENDS + term] = begin->end;
    ids[GPUIR__ID_STEMS + term] = has_stem && !alone ? stem->at : GPUIR__NO_TERM;
  }
  status = gpuir__prefix_count(q, t, &w, sum, err);
  gpuir__prefix_close(q, &w);
  return status;
}

/* Looks all terms up. */
static int gpuir__query_look_all_up(gpuir_query *q, gpuir_error *err) {
  uint64_t postings = 0;
  unsigned i;
  int status = GPUIR_OK;
  gpuir__free(&q->a, q->records, q->nrecords * q->ix->nleaves * sizeof *q->records);
  q->nrecords = q->n + (q->phrases ? q->phrases->nmembers : 0);
  q->records = (gpuir__record *)gpuir__alloc_zero(&q->a, q->nrecords * q->ix->nleaves * sizeof *q->records);
  if (!q->records) return gpuir__fail_nomem(err);
  gpuir__query_find(q);
  for (i = 0; q->phrases && i < q->phrases->nmembers && !status; i++) {
    gpuir__query_term *t = &q->phrases->members[i];
    status = gpuir__query_look_up(q, t, GPUIR__ID_MEMBERS + i, err);
    t->idf = gpuir__idf(q->ix->collection, t->df);
  }
  for (i = 0; i < q->n && !status; i++) {
    gpuir__query_term *t = &q->terms[i];
    if (t->kind == GPUIR__PREFIX) {
      status = gpuir__query_prefix_look_up(q, i, &postings, err);
    } else if (t->kind != GPUIR__WORD) {
      gpuir__query_phrase_look_up(q, t);
    } else {
      status = gpuir__query_look_up(q, t, GPUIR__ID_TERMS + i, err);
      t->idf = gpuir__idf(q->ix->collection, t->df);
    }
  }
  return status;
}

/* ---- which words are kept, where there are too many */

/* Counts the documents of each choice: of the whole collection, so that every shard and segment chooses alike. */
static int gpuir__choices_count(gpuir_query *q, gpuir_error *err) {
  const gpuir__choices *c = q->choices;
  gpuir__choice *list = gpuir__choices_list(c);
  uint32_t *ids = (uint32_t *)gpuir__alloc(&q->a, c->n * sizeof *ids), held, all;
  gpuir__looks looks;
  gpuir__record r;
  size_t leaf, i;
  int status = GPUIR_OK;
  if (!ids) return gpuir__fail_nomem(err);
  for (leaf = 0; leaf < q->ix->nleaves && !status; leaf++) {
    looks.n = 0;
    for (i = 0; i < c->n; i++)
      gpuir__looks_add(&looks, q->ix->leaves[leaf].seg, (const char *)c->bytes.data + list[i].at, list[i].len, &ids[i]);
    gpuir__looks_end(&looks);
    for (i = 0; i < c->n && !status; i++) {
      if (ids[i] == GPUIR__NO_TERM) continue;
      status = gpuir__query_df(q->ix, leaf, ids[i], (const char *)c->bytes.data + list[i].at, list[i].len, &r, &held,
          &all, err);
      list[i].df = (uint32_t)gpuir__min64((uint64_t)list[i].df + all, q->ix->collection);
    }
  }
  gpuir__free(&q->a, ids, c->n * sizeof *ids);
  return status;
}

/* A choice on its way to its rank. */
typedef struct gpuir__ranked {
  const char *word;
  uint32_t df, number;
  uint8_t len;
} gpuir__ranked;

/* Orders words from rare to frequent, which is by idf, the greatest first; equal ones by their bytes. Those that no
 * document has come last. */
static int gpuir__ranked_compare(const void *x, const void *y) {
  const gpuir__ranked *a = (const gpuir__ranked *)x, *b = (const gpuir__ranked *)y;
  if (a->df != b->df) return a->df - 1u < b->df - 1u ? -1 : 1;
  return gpuir__compare_bytes((const uint8_t *)a->word, a->len, (const uint8_t *)b->word, b->len);
}

/* Says whether a query may have one more word. */
static int gpuir__query_has_room(const gpuir_query *q, const char *word, size_t len, unsigned n, unsigned distinct,
    int *is_new) {
  unsigned i;
  *is_new = 1;
  for (i = 0; q->phrases && i < q->phrases->nmembers; i++)
    if (gpuir__token_is(&q->phrases->members[i], word, len)) *is_new = 0;
  return n < GPUIR_MAX_TERMS && distinct + (unsigned)*is_new <= GPUIR_MAX_TERMS;
}

/* Marks the rarest choices, as many as there is room for. */
static int gpuir__choices_mark(const gpuir_query *q, gpuir_error *err) {
  gpuir__choices *c = q->choices;
  gpuir__choice *list = gpuir__choices_list(c);
  gpuir__ranked *ranked = (gpuir__ranked *)gpuir__alloc(&q->a, c->n * sizeof *ranked);
  unsigned n = c->fixed, distinct = c->distinct;
  size_t i;
  if (!ranked) return gpuir__fail_nomem(err);
  for (i = 0; i < c->n; i++) {
    ranked[i].word = (const char *)c->bytes.data + list[i].at;
    ranked[i].len = list[i].len;
    ranked[i].df = list[i].df;
    ranked[i].number = (uint32_t)i;
  }
  qsort(ranked, c->n, sizeof *ranked, gpuir__ranked_compare);
  for (i = 0; i < c->n; i++) {
    int is_new, kept = gpuir__query_has_room(q, ranked[i].word, ranked[i].len, n, distinct, &is_new);
    list[ranked[i].number].kept = (uint8_t)kept;
    n += (unsigned)kept;
    distinct += (unsigned)(kept && is_new);
  }
  gpuir__free(&q->a, ranked, c->n * sizeof *ranked);
  return GPUIR_OK;
}

/* Chooses the words anew by their dfs: the query has them in the order of its text, behind its other terms. */
static int gpuir__choices_keep(gpuir_query *q, gpuir_error *err) {
  gpuir__choices *c = q->choices;
  const gpuir__choice *list = gpuir__choices_list(c);
  unsigned n = 0, i;
  uint32_t j;
  int status = gpuir__choices_mark(q, err);
  if (status) return status;
  for (i = 0; i < q->n; i++)
    if (q->terms[i].negated || q->terms[i].kind != GPUIR__WORD) q->terms[n++] = q->terms[i];
  q->n = n;
  q->npositive = 0;
  c->left.len = 0;
  for (j = 0; j < c->n; j++) {
    if (!list[j].kept) {
      if (gpuir__buf_put(&q->a, &c->left, &j, sizeof j)) return gpuir__fail_nomem(err);
      continue;
    }
    gpuir__query_term_make(&q->terms[q->n], GPUIR__WORD, 0, (const char *)c->bytes.data + list[j].at, list[j].len);
    q->terms[q->n].name = list[j].name;
    q->terms[q->n].name_len = list[j].name_len;
    q->terms[q->n++].q = list[j].q;
  }
  if (c->left.len) q->mode = GPUIR_OR;
  return GPUIR_OK;
}

GPUIR_API int gpuir_query_left_out(const gpuir_query *q, size_t i, const char **word, size_t *len) {
  const gpuir__choice *x;
  uint32_t number;
  if (!q || !word || !len) return GPUIR_E_ARGUMENT;
  if (!q->choices || i >= q->choices->left.len / sizeof number) return GPUIR_E_NOT_FOUND;
  memcpy(&number, q->choices->left.data + i * sizeof number, sizeof number);
  x = &gpuir__choices_list(q->choices)[number];
  *word = x->name_len ? (const char *)q->names.data + x->name : (const char *)q->choices->bytes.data + x->at;
  *len = x->name_len ? x->name_len : x->len;
  return GPUIR_OK;
}

/* Writes how phrases and prefixes are written: "a phrase", prefi*. Those of pairs are known. */
static int gpuir__query_name(gpuir_query *q) {
  unsigned i, j;
  int status = GPUIR_OK;
  for (i = 0; i < q->n && !status; i++) {
    gpuir__query_term *t = &q->terms[i];
    if (t->name_len) continue;
    t->name = (uint32_t)q->names.len;
    if (t->kind == GPUIR__PREFIX) {
      status = gpuir__buf_put(&q->a, &q->names, t->text, t->len) || gpuir__buf_put(&q->a, &q->names, "*", 1);
    } else if (t->kind == GPUIR__PHRASE) {
      for (j = 0; j < t->tokens && !status; j++) {
        const gpuir__query_term *member = &q->phrases->members[q->phrases->tokens[t->first + j]];
        status = gpuir__buf_put(&q->a, &q->names, j ? " " : "\"", 1) ||
            gpuir__buf_put(&q->a, &q->names, member->text, member->len);
      }
      status = status || gpuir__buf_put(&q->a, &q->names, "\"", 1);
    }
    t->name_len = (uint32_t)(q->names.len - t->name);
  }
  return status;
}

/* Returns how a term is written, and its length. */
static const char *gpuir__query_term_name(const gpuir_query *q, const gpuir__query_term *t, size_t *len) {
  *len = t->name_len ? t->name_len : t->len;
  return t->name_len ? (const char *)q->names.data + t->name : t->text;
}

/* Weighs the terms by their idf. */
static int gpuir__query_weigh(gpuir_query *q, gpuir_error *err) {
  uint64_t sum = 0;
  unsigned i;
  q->nunknown = q->nknown = 0;
  for (i = 0; i < q->n; i++) {
    gpuir__query_term *t = &q->terms[i];
    uint64_t w;
    size_t len;
    const char *name = gpuir__query_term_name(q, t, &len);
    if (!t->df) {
      q->nunknown += i < q->nrequired;
      t->idf = 0;
      continue;
    }
    if (t->negated) continue;
    q->nknown++;
    t->weight = gpuir__weight(t->idf, q->k1);
#ifndef GPUIR_NO_RANK
    if (q->expanded) t->weight = (float)((double)t->weight * t->share / GPUIR_EXPANSION_SUM);
#endif
    if (!(t->weight < 2147483648.0f))
      return gpuir__fail(err, GPUIR_E_RANGE, 0, "the weight of \"%.*s\" exceeds a score's range: lower k1",
          len < 64 ? (int)len : 64, name);
    w = (uint64_t)ceilf(t->weight);
    sum += (uint64_t)t->q * (w + (w >> 21) + 2);
    if (sum >> 32)
      return gpuir__fail(err, GPUIR_E_RANGE, 0, "the sum of weights exceeds a score's range: lower k1 or repeat less");
  }
  return GPUIR_OK;
}

/* ---- what a shard is told of terms */

GPUIR_API int gpuir_shard_get_info(const gpuir_index *ix, gpuir_shard_info *info) {
  const gpuir__shard *shard;
  if (!ix || !info) return GPUIR_E_ARGUMENT;
  shard = ix->leaves[0].seg->shard;
  memset(info, 0, sizeof *info);
  if (!shard) return GPUIR_E_NOT_FOUND;
  info->documents = shard->documents;
  info->tokens = shard->tokens;
  info->first = shard->first;
  info->shard = shard->number;
  info->shards = shard->shards;
  memcpy(info->identity, shard->identity, sizeof info->identity);
  return GPUIR_OK;
}

/* Returns term number i of those whose df a query's weights come from: the members of its phrases, then its terms; NULL
 * behind the last. Where words are left out, choices stand behind these. */
static gpuir__query_term *gpuir__query_counted(gpuir_query *q, size_t i) {
  const size_t nmembers = q->phrases ? q->phrases->nmembers : 0;
  unsigned t;
  if (i < nmembers) return &q->phrases->members[i];
  i -= nmembers;
  if (!q->choices) return i < q->n ? &q->terms[i] : NULL;
  for (t = 0; t < q->n; t++)
    if ((q->terms[t].negated || q->terms[t].kind != GPUIR__WORD) && !i--) return &q->terms[t];
  return NULL;
}

GPUIR_API size_t gpuir_query_dfs(const gpuir_query *q, uint32_t *dfs, size_t cap) {
  size_t n, i;
  if (!q) return 0;
  n = (q->phrases ? q->phrases->nmembers : 0) + (size_t)(q->choices ? q->choices->fixed : q->n);
  for (i = 0; dfs && i < n && i < cap; i++) {
    const gpuir__query_term *t = gpuir__query_counted((gpuir_query *)(uintptr_t)q, i);
    dfs[i] = t->kind == GPUIR__PHRASE || t->kind == GPUIR__ALL ? 0 : t->df;
  }
  if (!q->choices) return n;
  for (i = 0; dfs && i < q->choices->n && n + i < cap; i++) dfs[n + i] = gpuir__choices_list(q->choices)[i].df;
  return n + q->choices->n;
}

/* Chooses a query's words by dfs[0..n), those of its choices, and looks them up. */
static int gpuir__query_choose(gpuir_query *q, const uint32_t *dfs, gpuir_error *err) {
  gpuir__choice *list = gpuir__choices_list(q->choices);
  size_t i;
  unsigned t;
  int status;
  for (i = 0; i < q->choices->n; i++) list[i].df = (uint32_t)gpuir__min64(dfs[i], q->ix->collection);
  status = gpuir__choices_keep(q, err);
  if (status) return status;
  gpuir__query_part(q);
  status = gpuir__query_look_all_up(q, err);
  for (i = 0, t = 0; t < q->n && !status; t++) {
    if (q->terms[t].negated || q->terms[t].kind != GPUIR__WORD) continue;
    while (!list[i].kept) i++;
    q->terms[t].df = list[i++].df;
    q->terms[t].idf = gpuir__idf(q->ix->collection, q->terms[t].df);
  }
  return status;
}

GPUIR_API int gpuir_query_weigh(gpuir_query *q, const uint32_t *dfs, size_t n, gpuir_error *err) {
  size_t i;
  int status;
  if (!q || !dfs || n != gpuir_query_dfs(q, NULL, 0))
    return gpuir__refuse(err, "gpuir_query_weigh: NULL argument, or another number of terms than the query's");
  if (q->choices) {
    n -= q->choices->n;
    status = gpuir__query_choose(q, dfs + n, err);
    if (status) return status;
  }
  for (i = 0; i < n; i++) {
    gpuir__query_term *t = gpuir__query_counted(q, i);
    if (t->kind == GPUIR__PHRASE || t->kind == GPUIR__ALL) { /* its members stand before all terms */
      gpuir__query_phrase_look_up(q, t);
    } else {
      t->df = (uint32_t)gpuir__min64(dfs[i], q->ix->collection);
      t->idf = gpuir__idf(q->ix->collection, t->df);
    }
  }
  return gpuir__query_weigh(q, err);
}

GPUIR_API uint64_t gpuir_query_prefix_postings(const gpuir_query *q, size_t i) {
  const gpuir__query_term *t = q ? gpuir__query_counted((gpuir_query *)(uintptr_t)q, i) : NULL;
  return t && t->kind == GPUIR__PREFIX ? t->postings : 0;
}

GPUIR_API int gpuir_query_prefix(const gpuir_query *q, size_t i, gpuir_term_fn emit, void *user, gpuir_error *err) {
  const gpuir__query_term *t = q && emit ? gpuir__query_counted((gpuir_query *)(uintptr_t)q, i) : NULL;
  gpuir__prefix_walks w;
  gpuir__prefix_walk found;
  int status = GPUIR_OK, more = 1;
  if (!q || !emit) return gpuir__refuse(err, "gpuir_query_prefix: NULL argument");
  if (!t) return gpuir__fail(err, GPUIR_E_NOT_FOUND, 0, "the query has no such term");
  if (t->kind != GPUIR__PREFIX) return GPUIR_OK;
  if (gpuir__prefix_open(q, t, &w)) return gpuir__fail_nomem(err);
  while (!status) {
    uint64_t postings, df;
    status = gpuir__prefix_next(&w, &found, &postings, &df, &more, err);
    if (!more) break;
    if (!status && df) status = emit(user, (const char *)found.term, found.len, (uint32_t)df);
  }
  gpuir__prefix_close(q, &w);
  return status;
}

/* Returns how many required terms of a query a leaf has no list of. */
static inline unsigned gpuir__query_absent(const gpuir_query *q, size_t leaf) {
  unsigned i, n = 0;
  for (i = 0; i < q->nrequired; i++) n += gpuir__query_id(q, leaf, i) == GPUIR__NO_TERM;
  return n;
}

GPUIR_API void gpuir_query_destroy(gpuir_query *query) {
  if (query) {
    gpuir_allocator a = query->a;
    gpuir__buf_free(&a, &query->names);
    gpuir__free(&a, query->phrases, sizeof *query->phrases);
    gpuir__choices_free(&a, query->choices);
#ifndef GPUIR_NO_COLUMNS
    gpuir__where_free(query->where);
#endif
#ifndef GPUIR_NO_RANK
    gpuir_query_destroy(query->any);
    gpuir__buf_free(&a, &query->stopped);
#endif
    gpuir__free(&a, query->records, query->nrecords * query->ix->nleaves * sizeof *query->records);
    gpuir__free(&a, query, query->size);
  }
}

/* ---- the terms of a text, as documents and queries are read */

GPUIR_API int gpuir_analyze_places(const gpuir_index *ix, const char *text, size_t len, int query, gpuir_place_fn emit,
    void *sink, gpuir_error *err) {
  gpuir__analyzer *analyzer;
  int status;
  if (!ix || (!text && len) || !emit) return gpuir__refuse(err, "gpuir_analyze: NULL argument");
  status = gpuir__analyzers_take(ix->analysis.pool, &analyzer, err);
  if (status) return status;
  status = query ? gpuir__analyze_query(analyzer, text, len, emit, sink)
                 : gpuir__analyze(analyzer, text, len, emit, sink, NULL);
  if (status) (void)gpuir__fail(err, status, 0, "%s", analyzer->why ? analyzer->why : gpuir_strerror(status));
  gpuir__analyzers_give(ix->analysis.pool, analyzer);
  return status;
}

/* Where gpuir_analyze hands its tokens on to. */
typedef struct gpuir__counted_tokens {
  gpuir_token_fn emit;
  void *sink;
} gpuir__counted_tokens;

/* Hands a token on that a document's length counts. */
static int gpuir__counted_token(void *to, const char *token, size_t len, unsigned advance) {
  const gpuir__counted_tokens *t = (const gpuir__counted_tokens *)to;
  return advance ? t->emit(t->sink, token, len) : GPUIR_OK;
}

GPUIR_API int gpuir_analyze(const gpuir_index *ix, const char *text, size_t len, gpuir_token_fn emit, void *sink,
    gpuir_error *err) {
  gpuir__counted_tokens to;
  to.emit = emit;
  to.sink = sink;
  return gpuir_analyze_places(ix, text, len, 0, emit ? gpuir__counted_token : NULL, &to, err);
}
