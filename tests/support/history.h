/* history.h - documents, queries and their answers by brute force, for histories of live indexes: words with phrases,
 * prefixes and negation, under analyzers that stop, stem, or cut words to pieces; include after gpuir.h, cmocka.h,
 * rng.h and oracle.h
 *
 * The oracle has arrays of tokens and reads no index. What tokens a word becomes is written down here, not asked for.
 */
#ifndef TESTS_HISTORY_H
#define TESTS_HISTORY_H

enum {
  FREQUENT = 36,
  WORDS = FREQUENT + 400, /* the others are rare: r0, r1, ... */
  MOST_TOKENS = 12, /* of a word */
  MOST_DOCS = 1500,
  MOST_UNITS = 8,
  MOST_PHRASE = 5, /* words of a phrase */
  TERMS = 6000, /* distinct tokens of all words */
  MOST_POSTINGS = 1000 /* of all prefixes of a query */
};

/* ---- words and their tokens ---- */

enum { PLAIN, STOPPED, STEMMED, BOTH, TRIGRAMS, ANALYZERS };

#define STOP_WORDS "the of w3"

/* The frequent words; a stem where it is another. Those of 255 and of 256 letters are made. */
static const char *const frequent[FREQUENT][2] = {{"the", NULL}, {"w1", NULL}, {"of", NULL}, {"w3", NULL},
    {"cat", NULL}, {"cats", "cat"}, {"running", "run"}, {"run", NULL}, {"runs", "run"}, {"a", NULL}, {"ab", NULL},
    {"abc", NULL}, {"w12", NULL}, {"w13", NULL}, {"w14", NULL}, {"w15", NULL}, {"alpha", NULL}, {"alphabet", NULL},
    {"na\xc3\xafm", NULL}, {"w19", NULL}, {"w20", NULL}, {"w21", NULL}, {"thin", NULL}, {"w23", NULL}, {"w24", NULL},
    {"w25", NULL}, {"", NULL}, {"", NULL}, {"w28", NULL}, {"w29", NULL}, {"b", NULL}, {"x1", NULL}, {"x10", NULL},
    {"x100", NULL}, {"x101", NULL}, {"\xff\xff", NULL}};

static const char *word_text(unsigned w) {
  static char rare[WORDS][12], longest[2][257];
  if (w == 26 || w == 27) {
    memset(longest[w - 26], 'z', 229 + w);
    return longest[w - 26];
  }
  if (w < FREQUENT) return frequent[w][0];
  (void)snprintf(rare[w], sizeof rare[w], "r%u", w - FREQUENT);
  return rare[w];
}

/* Emits what the tokenizer of TRIGRAMS makes of a word: its three-byte pieces, or the word if it is short or long. */
static int trigrams_of(const char *word, size_t len, gpuir_token_fn emit, void *sink) {
  size_t i;
  int status = 0;
  if (len < 3 || len > 12) return emit(sink, word, len);
  for (i = 0; i + 3 <= len && !status; i++) status = emit(sink, word + i, 3);
  return status;
}

static int is_between(char c) { return c == ' ' || c == ',' || c == '\n'; }

static int tokenize_trigrams(void *user, const char *text, size_t len, gpuir_token_fn emit, void *sink) {
  size_t i = 0, start;
  int status = 0;
  (void)user;
  while (i < len && !status) {
    for (start = i; i < len && !is_between(text[i]); i++) {}
    if (i > start) status = trigrams_of(text + start, i - start, emit, sink);
    i += i < len;
  }
  return status;
}

/* The tokens of all words under one analyzer: numbers of distinct texts. */
typedef struct words {
  unsigned n[WORDS];
  uint16_t token[WORDS][MOST_TOKENS];
  unsigned nterms;
  char *term[TERMS];
  size_t len[TERMS];
  int made;
} words;

static words words_of[ANALYZERS];

typedef struct word_sink {
  words *all;
  unsigned word;
} word_sink;

static int word_take(void *sink, const char *token, size_t len) {
  const word_sink *to = (const word_sink *)sink;
  words *v = to->all;
  unsigned t = 0;
  if (len > GPUIR_MAX_TERM) return 0;
  while (t < v->nterms && (v->len[t] != len || memcmp(v->term[t], token, len) != 0)) t++;
  if (t == v->nterms) {
    assert_true(t < TERMS);
    v->term[t] = (char *)oracle_grow(NULL, len + 1, 1);
    memcpy(v->term[t], token, len);
    v->term[t][len] = 0;
    v->len[v->nterms++] = len;
  }
  assert_true(v->n[to->word] < MOST_TOKENS);
  v->token[to->word][v->n[to->word]++] = (uint16_t)t;
  return 0;
}

static int is_stop(const char *word) { return !strcmp(word, "the") || !strcmp(word, "of") || !strcmp(word, "w3"); }

static const words *words_under(int analyzer) {
  words *v = &words_of[analyzer];
  word_sink to;
  to.all = v;
  for (to.word = 0; !v->made && to.word < WORDS; to.word++) {
    const char *text = word_text(to.word);
    if ((analyzer == STOPPED || analyzer == BOTH) && is_stop(text)) continue;
    if ((analyzer == STEMMED || analyzer == BOTH) && to.word < FREQUENT && frequent[to.word][1])
      text = frequent[to.word][1];
    (void)(analyzer == TRIGRAMS ? trigrams_of(text, strlen(text), word_take, &to) : word_take(&to, text, strlen(text)));
  }
  v->made = 1;
  return v;
}

static void words_free(void) {
  int a;
  unsigned t;
  for (a = 0; a < ANALYZERS; a++)
    for (t = 0; t < words_of[a].nterms; t++) free(words_of[a].term[t]);
}

/* Words are skewed; a few are rare. */
static unsigned some_word(rng *r) {
  if (!rng_below(r, 10)) return FREQUENT + rng_below(r, 1 + rng_below(r, WORDS - FREQUENT));
  return rng_below(r, 1 + rng_below(r, FREQUENT));
}

/* ---- documents ---- */

/* Words of all documents of a history; those of one stand together. */
typedef struct pool {
  uint16_t *words;
  size_t n, cap;
} pool;

typedef struct model_doc {
  size_t start;
  unsigned n;
  char name[12], source[12];
  uint32_t line; /* first_line; also where the text's place in its source comes from */
  int deleted;
} model_doc;

/* The documents in the order in which they were added. */
typedef struct model {
  unsigned n;
  model_doc docs[MOST_DOCS];
} model;

static void model_copy(model *to, const model *from) {
  to->n = from->n;
  memcpy(to->docs, from->docs, from->n * sizeof *from->docs);
}

/* Draws n words: often those that follow each other in an earlier document, so that phrases stand in several; `narrow`:
 * of a few frequent words only, so that lists and phrases are long. */
static void pool_draw(pool *p, rng *r, unsigned n, int narrow, model_doc *d) {
  const unsigned again = !rng_below(r, 8) ? some_word(r) : WORDS;
  size_t from;
  unsigned i, same;
  if (p->n + n > p->cap) {
    p->cap = 2 * (p->n + n);
    p->words = (uint16_t *)oracle_grow(p->words, p->cap, sizeof *p->words);
  }
  d->start = p->n;
  d->n = n;
  same = p->n && rng_below(r, 2) ? rng_below(r, n + 1) : 0;
  from = p->n ? rng_below(r, (uint32_t)p->n) : 0;
  for (i = 0; i < n; i++) {
    unsigned w = narrow ? 10 + rng_below(r, 1 + rng_below(r, 5)) : some_word(r);
    if (again < WORDS && rng_below(r, 3)) w = again;
    p->words[p->n++] = i < same ? p->words[from + i] : (uint16_t)w;
  }
}

/* Writes a document's text; the caller frees it. */
static char *doc_text(const pool *p, const model_doc *d, size_t *len) {
  static const char *const between[] = {" ", ", ", "\n", "  "};
  char *text = (char *)oracle_grow(NULL, (size_t)d->n * 260 + 1, 1);
  size_t n = 0;
  unsigned i;
  for (i = 0; i < d->n; i++) {
    const char *gap = i ? between[(d->start + i) % 4] : "", *word = word_text(p->words[d->start + i]);
    memcpy(text + n, gap, strlen(gap));
    n += strlen(gap);
    memcpy(text + n, word, strlen(word));
    n += strlen(word);
  }
  *len = n;
  return text;
}

static gpuir_doc_desc doc_desc(const model_doc *d) {
  gpuir_doc_desc desc;
  memset(&desc, 0, sizeof desc);
  desc.name = d->name;
  desc.name_len = strlen(d->name);
  desc.source = d->source;
  desc.source_len = strlen(d->source);
  desc.first_line = d->line;
  desc.last_line = d->line ? d->line + 3 : 0;
  desc.source_offset = d->line % 3 ? d->line : 0;
  desc.source_bytes = d->line % 5 ? d->line % 7 : 0;
  desc.hash = d->line % 2 ? d->line : 0;
  desc.form = d->line % 11 ? 0 : d->line;
  return desc;
}

/* ---- the live documents as arrays of tokens ---- */

typedef struct tokens {
  const words *v;
  uint32_t ndocs;
  uint64_t ntokens;
  uint32_t *start; /* [document, one more] */
  uint16_t *token;
  uint32_t *df;
  uint64_t *cf; /* [term] */
  uint32_t *docids; /* [document] in the snapshot */
} tokens;

static void tokens_make(tokens *t, const pool *p, const model *m, const words *v) {
  size_t most = 1;
  uint32_t *last; /* [term] the document that had it last, plus 1 */
  unsigned i, j, k;
  memset(t, 0, sizeof *t);
  t->v = v;
  for (i = 0; i < m->n; i++) most += m->docs[i].deleted ? 0 : (size_t)m->docs[i].n * MOST_TOKENS;
  t->start = (uint32_t *)oracle_grow(NULL, m->n + 1u, sizeof *t->start);
  t->docids = (uint32_t *)oracle_grow(NULL, m->n + 1u, sizeof *t->docids);
  t->token = (uint16_t *)oracle_grow(NULL, most, sizeof *t->token);
  t->df = (uint32_t *)calloc(TERMS, sizeof *t->df);
  t->cf = (uint64_t *)calloc(TERMS, sizeof *t->cf);
  last = (uint32_t *)calloc(TERMS, sizeof *last);
  t->start[0] = 0;
  for (i = 0; i < m->n; i++) {
    const model_doc *d = &m->docs[i];
    if (d->deleted) continue;
    for (j = 0; j < d->n; j++) {
      const unsigned w = p->words[d->start + j];
      for (k = 0; k < v->n[w]; k++) {
        const uint16_t term = v->token[w][k];
        t->token[t->ntokens++] = term;
        t->df[term] += last[term] != t->ndocs + 1;
        t->cf[term]++;
        last[term] = t->ndocs + 1;
      }
    }
    t->start[++t->ndocs] = (uint32_t)t->ntokens;
  }
  free(last);
}

static void tokens_free(tokens *t) {
  free(t->start);
  free(t->docids);
  free(t->token);
  free(t->df);
  free(t->cf);
}

/* ---- queries ---- */

enum { WORD, PHRASE, PREFIX };

/* What is scored as one. */
typedef struct term {
  int kind, negated, unknown;
  unsigned q, n; /* n: tokens of a phrase */
  uint32_t token[MOST_PHRASE * MOST_TOKENS]; /* UINT32_MAX: no document ever had it; of a prefix none */
  char prefix[260];
  const char *stem; /* of a prefix, where terms are stems: another term that it stands for; NULL: none */
  uint32_t df, members; /* of a phrase the least of its tokens'; members: of a prefix */
  float idf, weight;
} term;

/* The positive words of a query that may leave some out. */
typedef struct wide {
  unsigned n, left; /* left: out */
  uint32_t token[4000], q[4000];
  int kept[4000];
} wide;

/* A query's text, and what has to come of it. */
typedef struct asked {
  wide *wide; /* NULL: it leaves none out */
  char text[16384];
  size_t len;
  term terms[GPUIR_MAX_TERMS];
  unsigned n, npositive, nwords, nmembers, distinct;
  uint32_t words[GPUIR_MAX_TERMS], members[GPUIR_MAX_TERMS]; /* distinct tokens; words' of either sign */
  int status; /* of parsing its words */
  int plain; /* nothing is an operator */
  float k1, b;
} asked;

static int among(const uint32_t *list, unsigned n, uint32_t token) {
  unsigned i = 0;
  while (i < n && list[i] != token) i++;
  return i < n;
}

static int same_term(const term *x, const term *y) {
  return x->kind == y->kind && x->negated == y->negated && x->n == y->n &&
      !memcmp(x->token, y->token, x->n * sizeof *x->token) && (x->kind != PREFIX || !strcmp(x->prefix, y->prefix));
}

/* Adds a term, or counts it once more; TERMS where there are too many. */
static int asked_add(asked *a, const term *t) {
  unsigned i = 0;
  while (i < a->n && !same_term(&a->terms[i], t)) i++;
  if (i < a->n) {
    a->terms[i].q++;
    return 0;
  }
  if (a->n == GPUIR_MAX_TERMS) return GPUIR_E_TERMS;
  a->terms[a->n] = *t;
  a->terms[a->n++].q = 1;
  if (t->kind == WORD) {
    a->words[a->nwords++] = t->token[0];
    if (among(a->members, a->nmembers, t->token[0])) return 0;
  }
  if (t->kind != PHRASE && ++a->distinct > GPUIR_MAX_TERMS) return GPUIR_E_TERMS;
  return 0;
}

/* Adds a phrase's tokens to those of all phrases. */
static int asked_members(asked *a, const term *t) {
  unsigned i;
  for (i = 0; i < t->n; i++) {
    if (i >= GPUIR_MAX_TERMS) return GPUIR_E_TERMS;
    if (among(a->members, a->nmembers, t->token[i])) continue;
    if (a->nmembers == GPUIR_MAX_TERMS) return GPUIR_E_TERMS;
    a->members[a->nmembers++] = t->token[i];
    if (!among(a->words, a->nwords, t->token[i]) && ++a->distinct > GPUIR_MAX_TERMS) return GPUIR_E_TERMS;
  }
  return 0;
}

/* A unit of a query as it is written: words between quotes, a word, a prefix, or something odd. */
typedef struct unit {
  int kind, negated, quoted;
  unsigned n, word[MOST_PHRASE]; /* WORDS: one that no document has */
  size_t cut; /* bytes of a prefix */
} unit;

/* The tokens of a unit's words. A word that no document has is as good as a token of its own. */
static unsigned unit_tokens(const words *v, const unit *u, uint32_t *out) {
  unsigned i, j, n = 0;
  for (i = 0; i < u->n; i++) {
    if (u->word[i] >= WORDS) out[n++] = UINT32_MAX - 1 - (u->word[i] - WORDS);
    for (j = 0; u->word[i] < WORDS && j < v->n[u->word[i]]; j++) out[n++] = v->token[u->word[i]][j];
  }
  return n;
}

static void unit_write(asked *a, const unit *u) {
  static const char *const gap[] = {" ", "  ", "\t", "\n "};
  char *to = a->text + a->len;
  unsigned i;
  to += sprintf(to, "%s%s%s", a->len ? gap[a->len % 4] : "", u->negated ? "-" : "", u->quoted ? "\"" : "");
  for (i = 0; i < u->n; i++) {
    if (i) to += sprintf(to, " ");
    if (u->word[i] >= WORDS) to += sprintf(to, "q%u", u->word[i] - WORDS);
    else to += sprintf(to, "%.*s", u->kind == PREFIX ? (int)u->cut : 300, word_text(u->word[i]));
  }
  to += sprintf(to, "%s", u->quoted ? "\"" : u->kind == PREFIX ? "*" : "");
  a->len = (size_t)(to - a->text);
}

static void wide_add(wide *w, uint32_t token) {
  unsigned i = 0;
  while (i < w->n && w->token[i] != token) i++;
  if (i == w->n) {
    assert_true(i < 4000);
    w->token[w->n] = token;
    w->q[w->n++] = 0;
  }
  w->q[i]++;
}

/* Adds the tokens of a word each for itself. */
static int asked_words(asked *a, const uint32_t *token, unsigned n, int negated) {
  term t;
  unsigned i;
  int status = 0;
  memset(&t, 0, sizeof t);
  t.kind = WORD;
  t.negated = negated;
  t.n = 1;
  for (i = 0; i < n && !status; i++) {
    t.token[0] = token[i];
    if (a->wide && !negated) wide_add(a->wide, token[i]);
    else status = asked_add(a, &t);
  }
  return status;
}

/* Returns the number of a piece of three bytes. */
static uint32_t piece_token(const words *v, const char *text) {
  unsigned t = 0;
  while (t < v->nterms && (v->len[t] != 3 || memcmp(v->term[t], text, 3) != 0)) t++;
  return t < v->nterms ? t : UINT32_MAX;
}

/* Adds a prefix: of TRIGRAMS only the last piece is one, the others are words. */
static int asked_prefix(asked *a, const words *v, const unit *u, int analyzer) {
  const char *text = word_text(u->word[0]);
  uint32_t token[MOST_TOKENS] = {0};
  size_t from = 0;
  unsigned n = 0;
  term t;
  int status;
  if (analyzer == TRIGRAMS && u->cut > 3 && u->cut <= 12)
    for (; from + 3 < u->cut; from++) token[n++] = piece_token(v, text + from);
  status = asked_words(a, token, n, u->negated);
  memset(&t, 0, sizeof t);
  t.kind = PREFIX;
  t.negated = u->negated;
  (void)snprintf(t.prefix, sizeof t.prefix, "%.*s", (int)(u->cut - from), text + from);
  for (n = 0; (analyzer == STEMMED || analyzer == BOTH) && n < FREQUENT; n++)
    if (!strcmp(frequent[n][0], t.prefix)) t.stem = frequent[n][1]; /* those of other prefixes are no terms */
  return status ? status : asked_add(a, &t);
}

/* Writes a unit to the query, and what it has to become. */
static void asked_unit(asked *a, const words *v, const unit *u, int analyzer, int positions) {
  term t;
  uint32_t token[MOST_PHRASE * MOST_TOKENS];
  unsigned n = u->kind == PREFIX ? 0 : unit_tokens(v, u, token);
  unit_write(a, u);
  if (a->status) return;
  if (a->plain) {
    a->status = asked_words(a, token, n, 0);
  } else if (u->kind == PREFIX) {
    a->status = asked_prefix(a, v, u, analyzer);
  } else if (!u->quoted || n <= 1) {
    a->status = asked_words(a, token, n, u->negated);
  } else {
    memset(&t, 0, sizeof t);
    t.kind = PHRASE;
    t.negated = u->negated;
    t.n = n;
    memcpy(t.token, token, n * sizeof *token);
    a->status = asked_members(a, &t);
    if (!a->status && !positions) a->status = GPUIR_E_UNSUPPORTED;
    if (!a->status) a->status = asked_add(a, &t);
  }
}

/* Draws a unit: mostly words that follow each other in a document, deleted or not. */
static void unit_draw(unit *u, rng *r, const pool *p) {
  const unsigned kind = rng_below(r, 10);
  const size_t at = p->n ? rng_below(r, (uint32_t)p->n) : 0;
  unsigned i;
  memset(u, 0, sizeof *u);
  u->kind = kind < 5 ? WORD : kind < 8 ? PHRASE : PREFIX;
  u->quoted = u->kind == PHRASE;
  u->n = u->kind == PHRASE ? rng_below(r, MOST_PHRASE + 1) : 1;
  u->negated = !rng_below(r, 7);
  for (i = 0; i < u->n; i++) {
    u->word[i] = p->n && rng_below(r, 6) ? p->words[(at + i) % p->n] : some_word(r);
    if (u->kind != PREFIX && !rng_below(r, 20)) u->word[i] = WORDS + rng_below(r, 3);
    if (kind == 7 && i % 2) u->word[i] = u->word[0];
  }
  if (u->kind != PREFIX) return;
  if (u->word[0] == 27) u->word[0] = 26;
  u->cut = 1 + rng_below(r, (uint32_t)strlen(word_text(u->word[0])));
}

/* Draws a query; rarely one that is refused. */
static void asked_draw(asked *a, rng *r, const pool *p, const words *v, int analyzer, int positions) {
  unsigned n = 1 + rng_below(r, rng_below(r, 3) ? 3 : MOST_UNITS), i;
  const unsigned odd = rng_below(r, 60);
  unit u;
  a->len = 0;
  a->wide = NULL;
  a->n = a->npositive = a->nwords = a->nmembers = a->distinct = 0;
  a->status = 0;
  a->plain = odd > 54 && analyzer != TRIGRAMS; /* that takes a quote for a part of a word */
  if (odd == 1) n = 60 + rng_below(r, 10); /* distinct words */
  for (i = 0; i < n && a->len < 14000; i++) {
    unit_draw(&u, r, p);
    if (a->plain && u.kind == PREFIX) u.kind = WORD;
    if (odd == 1) {
      memset(&u, 0, sizeof u);
      u.n = 1;
      u.word[0] = i;
    }
    if (odd == 2) u.negated = 1;
    asked_unit(a, v, &u, analyzer, positions);
    for (; odd == 3 && u.kind == WORD && a->len < 8000 && rng_below(r, 8); i++)
      asked_unit(a, v, &u, analyzer, positions);
  }
  if (odd == 4) {
    a->len += (size_t)sprintf(a->text + a->len, " \"no end");
    if (!a->status) a->status = GPUIR_E_QUERY;
  }
  a->text[a->len] = 0;
  for (i = 0; i < a->n; i++) a->npositive += !a->terms[i].negated;
  if (!a->status && !a->npositive) a->status = GPUIR_E_QUERY;
}

/* ---- answers by brute force ---- */

typedef struct answer {
  size_t n[2]; /* of AND and of OR */
  gpuir_hit hits[2][MOST_DOCS];
} answer;

static uint32_t live_df(const tokens *t, uint32_t token) { return token < TERMS ? t->df[token] : 0; }

/* Says whether a prefix stands for a token. */
static int prefix_has(const words *v, const term *x, uint32_t token) {
  const size_t len = strlen(x->prefix);
  if (v->len[token] >= len && !memcmp(v->term[token], x->prefix, len)) return 1;
  return x->stem && v->len[token] == strlen(x->stem) && !memcmp(v->term[token], x->stem, v->len[token]);
}

/* Counts what a prefix stands for; *sum: the postings of the query's prefixes. 0 or LIMIT. */
static int prefix_count(const tokens *t, term *x, uint64_t *sum) {
  uint64_t postings = 0;
  unsigned i;
  x->df = x->members = 0;
  for (i = 0; i < t->v->nterms; i++) {
    if (!t->df[i] || !prefix_has(t->v, x, i)) continue;
    x->members++;
    postings += t->df[i];
    if (t->df[i] > x->df) x->df = t->df[i];
  }
  *sum += postings;
  return postings > GPUIR__PREFIX_POSTINGS || *sum > MOST_POSTINGS ? GPUIR_E_LIMIT : 0;
}

/* Looks a query's terms up among the live documents and weighs them. 0, LIMIT or RANGE. */
static int asked_weigh(asked *a, const tokens *t) {
  uint64_t sum = 0, postings = 0;
  unsigned i, j;
  int status = 0;
  for (i = 0; i < a->n; i++) {
    term *x = &a->terms[i];
    double idf = 0;
    if (x->kind == PREFIX && prefix_count(t, x, &postings)) status = GPUIR_E_LIMIT;
    if (x->kind != PREFIX) x->df = UINT32_MAX;
    for (j = 0; j < x->n; j++) {
      if (live_df(t, x->token[j]) < x->df) x->df = live_df(t, x->token[j]);
      if (live_df(t, x->token[j])) idf += (double)oracle_idf(t->ndocs, live_df(t, x->token[j]));
    }
    x->unknown = !x->df;
    x->idf = x->unknown ? 0 : x->kind == PHRASE ? (float)idf : oracle_idf(t->ndocs, x->df);
    x->weight = 0;
  }
  for (i = 0; i < a->n && !status; i++) {
    term *x = &a->terms[i];
    if (x->negated || x->unknown) continue;
    x->weight = oracle_weight(x->idf, a->k1);
    if (x->weight >= 2147483648.0f) return GPUIR_E_RANGE;
    sum += x->q * oracle_bound((uint32_t)ceil((double)x->weight));
    if (sum >> 32) return GPUIR_E_RANGE;
  }
  return status;
}

/* How a token is written. */
static const char *token_text(const words *v, uint32_t token) {
  static const char *const unknown[] = {"q0", "q1", "q2"};
  return token < v->nterms ? v->term[token] : unknown[UINT32_MAX - 1 - token];
}

/* Says whether of two words one is kept before the other: the rarer one; unknown ones last; then by bytes. */
static int is_rarer(const tokens *t, uint32_t x, uint32_t y) {
  const uint32_t dx = live_df(t, x), dy = live_df(t, y);
  if (dx != dy) return dx && (!dy || dx < dy);
  return strcmp(token_text(t->v, x), token_text(t->v, y)) < 0;
}

/* Adds the words that are kept: one after the other the rarest that is left, if there is room for it. */
static void wide_keep(asked *a, const tokens *t) {
  wide *w = a->wide;
  unsigned i, round, kept = 0;
  int seen[4000] = {0};
  w->left = 0;
  for (round = 0; round < w->n; round++) {
    unsigned best = w->n, is_new;
    for (i = 0; i < w->n; i++)
      if (!seen[i] && (best == w->n || is_rarer(t, w->token[i], w->token[best]))) best = i;
    seen[best] = 1;
    is_new = !among(a->members, a->nmembers, w->token[best]);
    w->kept[best] = a->n + kept < GPUIR_MAX_TERMS && a->distinct + is_new <= GPUIR_MAX_TERMS;
    kept += (unsigned)w->kept[best];
    a->distinct += w->kept[best] ? is_new : 0;
    w->left += !w->kept[best];
  }
  for (i = 0; i < w->n; i++) {
    term x;
    if (!w->kept[i]) continue;
    memset(&x, 0, sizeof x);
    x.kind = WORD;
    x.n = 1;
    x.q = w->q[i];
    x.token[0] = w->token[i];
    a->terms[a->n++] = x;
    a->npositive++;
  }
}

/* Draws a query of more words than it may have, some of them negated, some phrases and prefixes. */
static void asked_draw_wide(asked *a, rng *r, const pool *p, const words *v, int analyzer, int positions, wide *w) {
  const unsigned n = 40 + rng_below(r, 400), odd = 3 + rng_below(r, 200);
  unsigned i;
  unit u;
  memset(a, 0, offsetof(asked, text));
  a->n = a->npositive = a->nwords = a->nmembers = a->distinct = 0;
  a->len = 0;
  a->status = a->plain = 0;
  a->wide = w;
  w->n = w->left = 0;
  for (i = 0; i < n && a->len < 14000; i++) {
    if (rng_below(r, odd)) {
      memset(&u, 0, sizeof u);
      u.kind = WORD;
      u.n = 1;
      u.word[0] = rng_below(r, 3) ? rng_below(r, WORDS + 3) : some_word(r);
    } else {
      unit_draw(&u, r, p);
      if (u.kind == PREFIX && analyzer == TRIGRAMS) u.kind = WORD;
    }
    asked_unit(a, v, &u, analyzer, positions);
  }
  a->text[a->len] = 0;
  for (i = 0; i < a->n; i++) a->npositive += !a->terms[i].negated;
}

static uint64_t term_tf(const tokens *t, const term *x, uint32_t d) {
  uint64_t tf = 0;
  uint32_t i;
  unsigned j;
  if (x->unknown) return 0;
  for (i = t->start[d]; i < t->start[d + 1]; i++) {
    if (x->kind == PREFIX) {
      tf += (uint64_t)prefix_has(t->v, x, t->token[i]);
      continue;
    }
    for (j = 0; j < x->n && i + j < t->start[d + 1] && t->token[i + j] == x->token[j]; j++) {}
    tf += j == x->n;
  }
  return tf;
}

static int by_score(const void *x, const void *y) {
  const gpuir_hit *a = (const gpuir_hit *)x, *b = (const gpuir_hit *)y;
  if (a->score != b->score) return a->score > b->score ? -1 : 1;
  return a->docid < b->docid ? -1 : a->docid > b->docid;
}

/* Ranks all live documents, whose docIDs here are their ranks. */
static void answer_make(answer *right, const asked *a, const tokens *t) {
  uint32_t d;
  unsigned i;
  right->n[0] = right->n[1] = 0;
  for (d = 0; d < t->ndocs; d++) {
    const float K = oracle_norm(a->k1, a->b, t->ntokens, t->ndocs, t->start[d + 1] - t->start[d]);
    uint64_t score = 0;
    int all = 1, any = 0, out = 0;
    for (i = 0; i < a->n && !out; i++) {
      const term *x = &a->terms[i];
      const uint64_t tf = term_tf(t, x, d);
      if (x->negated) {
        out = tf > 0;
        continue;
      }
      all &= tf > 0;
      any |= tf > 0;
      if (tf) score += (uint64_t)x->q * oracle_c(x->weight, K, tf);
    }
    if (out || !any) continue;
    right->hits[1][right->n[1]].docid = d;
    right->hits[1][right->n[1]++].score = (uint32_t)score;
    if (all) right->hits[0][right->n[0]++] = right->hits[1][right->n[1] - 1];
  }
  for (i = 0; i < 2; i++)
    if (right->n[i]) qsort(right->hits[i], right->n[i], sizeof **right->hits, by_score);
}

#endif
