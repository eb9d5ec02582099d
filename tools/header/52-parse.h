
/* ========
 * [52-parse]  query: words that no document has, near terms in their place, and parsing
 *
 * A word of a query that no document has may be a typing error. Where any word is enough, or all else would find
 * nothing, the term nearest to it is searched in its place, one letter away, and gpuir_query_spelled tells of it. What
 * stands between quotes, short words and those with digits are searched as they are.
 *
 * Uses      [24-postings], [30-analysis], [32-dictionary], [33-analyzers], [34-fields], [37-layout], [42-snapshot],
 *           [48-near], [49-where], [51-query].
 * Start at  gpuir_query_parse.
 * Tests     tests/unit/52_parse.c
 * ======*/

#ifndef GPUIR_NO_NEAR
/* ---- words as they were typed */

/* The words of one that was typed, folded and neither stopped nor stemmed: a word, or the two neighbours of a pair. */
typedef struct gpuir__surfaces {
  gpuir__analyzer *an;
  size_t n, at[2], end[2], len[2]; /* n: up to 3, of which there are two */
  char word[2][GPUIR_MAX_TERM];
} gpuir__surfaces;

static int gpuir__surface_take(void *surfaces, const char *token, size_t len, unsigned advance) {
  gpuir__surfaces *s = (gpuir__surfaces *)surfaces;
  if (!advance || s->n > 2) return GPUIR_OK;
  if (s->n < 2) {
    memcpy(s->word[s->n], token, len);
    s->len[s->n] = len;
    s->at[s->n] = s->an->at;
    s->end[s->n] = s->an->end;
  }
  s->n++;
  return GPUIR_OK;
}

/* Finds the words of text[0..len). */
static int gpuir__surfaces_find(gpuir__surfaces *s, gpuir__analyzer *an, const char *text, size_t len) {
  const int filtered = an->filtered;
  int status;
  s->an = an;
  s->n = 0;
  an->filtered = 0;
  status = gpuir__analyze(an, text, len, gpuir__surface_take, s, NULL);
  an->filtered = filtered;
  return status;
}

/* Where a term goes. */
typedef struct gpuir__term_bytes {
  size_t len; /* 0: there is none */
  char bytes[GPUIR_MAX_TERM];
} gpuir__term_bytes;

static int gpuir__term_take(void *term, const char *bytes, size_t len, unsigned advance) {
  gpuir__term_bytes *t = (gpuir__term_bytes *)term;
  (void)advance;
  memcpy(t->bytes, bytes, len);
  t->len = len;
  return GPUIR_OK;
}

/* Makes the term of one of the words. */
static int gpuir__surface_term(const gpuir__surfaces *s, size_t i, gpuir__term_bytes *to) {
  to->len = 0;
  if (gpuir__analyzer_stems(s->an)) return gpuir__analyzer_stem(s->an, s->word[i], s->len[i], gpuir__term_take, to);
  return gpuir__term_take(to, s->word[i], s->len[i], 1);
}

/* Says whether a live document has a term. */
GPUIR__NOINLINE int gpuir__is_known(const gpuir_index *ix, const char *term, size_t len, int *known) {
  const int status = gpuir_term_count(ix, term, len, NULL, NULL);
  *known = !status;
  return status == GPUIR_E_NOT_FOUND || status == GPUIR_E_ARGUMENT ? GPUIR_OK : status;
}

/* ---- near terms in place of words */

#define GPUIR__SPELL_LEAST 4u /* letters of the shortest word that is taken for a typing error */

/* English words of four letters and more that carry grammar, beside those that questions are made of: pronouns,
 * prepositions, conjunctions, auxiliaries, and words of quantity, degree, place and time. Nobody misspells "may" as
 * "many", and yet a small collection may have only the one. */
static const char gpuir__function_words[] =
    "across against almost along already although always among amongst another anybody anyone anything anywhere "
    "around aside away because become becomes becoming behind beneath beside besides beyond cannot despite done "
    "eight either else elsewhere enough even ever every everybody everyone everything everywhere except first "
    "five four hence hereby herein herself himself however inside instead last later latter least less likely "
    "likewise made make makes many maybe might mine moreover mostly much must myself namely near nearly neither "
    "never nevertheless next nine nobody none nothing nowhere often onto others otherwise ours ourselves outside "
    "past perhaps quite rather really seven several shall since somebody somehow someone something sometime "
    "sometimes somewhere soon still thence thereby therefore third though three throughout thus together toward "
    "towards twice unless unlike unto upon usually various well went whatever whence whenever whereas whereby "
    "wherever whether whichever whoever whole whose yours yourself yourselves";

/* Says whether a word is one of a list's, which blanks part. */
GPUIR__NOINLINE int gpuir__is_listed(const char *list, const char *word, size_t len) {
  while (*list) {
    const size_t n = strcspn(list, " ");
    if (n == len && !memcmp(list, word, len)) return 1;
    list += n + (list[n] == ' ');
  }
  return 0;
}

/* Says whether a word may be a typing error: it is long enough, has no digit, and is none that English sentences are
 * made of: "does" is right where no document has it. */
static int gpuir__is_misspelt(const char *word, size_t len) {
  size_t i, letters = 0;
  for (i = 0; i < len; i++) {
    if (word[i] >= '0' && word[i] <= '9') return 0;
    letters += ((uint8_t)word[i] & 0xc0) != 0x80;
  }
  return letters >= GPUIR__SPELL_LEAST && !gpuir__is_listed(gpuir__stop_questions, word, len) &&
      !gpuir__is_listed(gpuir__function_words, word, len);
}

/* Makes what was found that of all shards: the best one. shards: NULL where the index is the whole collection. */
static int gpuir__spell_agree(const gpuir_shards *shards, gpuir_near_term *found, size_t *n) {
  int status;
  if (!shards) return GPUIR_OK;
  if (!*n) memset(found, 0, sizeof *found);
  status = shards->agree(shards->user, found);
  *n = found->len != 0;
  return status;
}

/* Says whether any document of the collection has a term. */
static int gpuir__spell_known(const gpuir_query *q, const gpuir_shards *shards, const gpuir__term_bytes *term,
    int *known) {
  int status = gpuir__is_known(q->ix, term->bytes, term->len, known);
  if (!status && shards) {
    gpuir_near_term held;
    size_t n = (size_t)*known;
    memset(&held, 0, sizeof held);
    held.len = n;
    status = gpuir__spell_agree(shards, &held, &n);
    *known = (int)n;
  }
  return status;
}

/* Finds the best term near word i of the collection's. *n: 1, or 0 if there is none. */
static int gpuir__spell_near(const gpuir_query *q, const gpuir_shards *shards, const gpuir__surfaces *s, size_t i,
    gpuir_near_term *found, size_t *n) {
  gpuir__near x;
  int status;
  gpuir__near_begin(&x, q->ix, s->an, found, 1);
  status = gpuir__near_spellings(&x, s->word[i], s->len[i]);
  if (!status) status = gpuir__spell_agree(shards, found, &x.nfound);
  if (!status && !x.nfound) {
    status = gpuir__near_stems(&x);
    if (!status) status = gpuir__spell_agree(shards, found, &x.nfound);
  }
  *n = x.nfound;
  return status;
}

/* Writes what is searched in place of word i, which may stay: its term, and how it is written. *changed counts. */
static int gpuir__spell_word(const gpuir_query *q, const gpuir_shards *shards, const gpuir__surfaces *s, size_t i,
    int asked, gpuir__term_bytes *term, gpuir__term_bytes *word, unsigned *changed) {
  gpuir_near_term near_;
  size_t n;
  int known, status = gpuir__surface_term(s, i, term);
  (void)gpuir__term_take(word, s->word[i], s->len[i], 1);
  if (!status) status = gpuir__spell_known(q, shards, term, &known);
  if (status || known) return status;
  term->len = 0;
  if (!asked && !gpuir__is_misspelt(s->word[i], s->len[i])) return GPUIR_OK;
  status = gpuir__spell_near(q, shards, s, i, &near_, &n);
  if (status || !n || near_.distance > 1) return status;
  ++*changed;
  (void)gpuir__term_take(term, near_.term, near_.len, 1);
  return gpuir__term_take(word, near_.word, near_.word_len, 1);
}

/* Makes the pair of two terms, as gpuir__text_pair does; len 0: it is named by a hash. */
static void gpuir__pair_of(const gpuir__term_bytes *a, const gpuir__term_bytes *b, gpuir__term_bytes *to) {
  to->len = 0;
  if (3 + a->len + b->len > GPUIR_MAX_TERM) return;
  memcpy(to->bytes, "\xffp", 2);
  memcpy(to->bytes + 2, a->bytes, a->len);
  to->bytes[2 + a->len] = '\xff';
  memcpy(to->bytes + 3 + a->len, b->bytes, b->len);
  to->len = 3 + a->len + b->len;
}

/* Finds what is searched in place of a term that was typed as typed[0..len); to->len 0: nothing else is. name: how it
 * is written. */
static int gpuir__spell_find(gpuir_query *q, gpuir__analyzer *an, const gpuir_shards *shards,
    const gpuir__query_term *t, const char *typed, gpuir__term_bytes *to, gpuir__buf *name) {
  const int pair = (uint8_t)t->text[0] == 0xff;
  gpuir__surfaces s;
  gpuir__term_bytes terms[2], words[2];
  unsigned changed = 0;
  size_t i;
  int known, status = gpuir__surfaces_find(&s, an, typed, t->typed_len);
  to->len = 0;
  if (status || s.n != (pair ? 2u : 1u)) return status;
  for (i = 0; i < s.n; i++) {
    status = gpuir__spell_word(q, shards, &s, i, t->near_asked, &terms[i], &words[i], &changed);
    if (status || !terms[i].len) return status;
  }
  if (!changed) return GPUIR_OK;
  if (!pair) *to = terms[0];
  else gpuir__pair_of(&terms[0], &terms[1], to);
  if (pair && to->len) {
    status = gpuir__spell_known(q, shards, to, &known);
    if (!known) to->len = 0;
  }
  if (status || !to->len) return status;
  name->len = 0;
  if (gpuir__buf_put(&q->a, name, words[0].bytes, words[0].len)) return GPUIR_E_NOMEM;
  if (!pair) return GPUIR_OK;
  return gpuir__buf_put(&q->a, name, typed + s.end[0], s.at[1] - s.end[0]) ||
          gpuir__buf_put(&q->a, name, words[1].bytes, words[1].len)
      ? GPUIR_E_NOMEM
      : GPUIR_OK;
}

/* Puts a term in place of term i. One that the query has already counts once more, and is required if either is. */
static void gpuir__spell_put(gpuir_query *q, unsigned i, const gpuir__term_bytes *to) {
  gpuir__query_term *t = &q->terms[i];
  unsigned j;
  for (j = 0; j < q->npositive; j++) {
    gpuir__query_term *other = &q->terms[j];
    if (j == i || !other->q || other->kind != GPUIR__WORD || !gpuir__token_is(other, to->bytes, to->len)) continue;
    t->q = (uint32_t)gpuir__min64((uint64_t)t->q + other->q, UINT32_MAX);
    t->optional = (uint8_t)(other->optional ? t->optional : 0);
    other->q = 0; /* it goes */
  }
  t->len = (uint8_t)to->len;
  memcpy(t->text, to->bytes, to->len);
}

/* Takes out the terms that others stand for. */
static void gpuir__spell_tidy(gpuir_query *q) {
  unsigned i, n = 0;
  for (i = 0; i < q->n; i++)
    if (q->terms[i].q) q->terms[n++] = q->terms[i];
  q->n = n;
  gpuir__query_part(q);
}

/* Searches the nearest term in place of each word that no document has, if that is wanted of a query of a mode. A shard
 * does not know the words of the others: they are asked by `shards`. *changed: whether any was. */
static int gpuir__query_spell(gpuir_query *q, gpuir__analyzer *an, int mode, const gpuir_shards *shards, int *changed) {
  gpuir__buf name = {NULL, 0, 0};
  gpuir__term_bytes to;
  unsigned i;
  int status = GPUIR_OK;
  *changed = 0;
  if (q->choices || q->spell < 0 || an->kind == GPUIR__CUSTOM) return GPUIR_OK;
  if (!shards && q->ix->leaves[0].seg->shard) return GPUIR_OK;
  for (i = 0; i < q->npositive && !status; i++) {
    gpuir__query_term *t = &q->terms[i];
    if (t->df || !t->q || !t->typed_len || t->kind != GPUIR__WORD || t->right) continue;
    if (!t->near_asked && (!q->spell || mode == GPUIR_AND)) continue;
    status = gpuir__spell_find(q, an, shards, t, (const char *)q->names.data + t->typed, &to, &name);
    if (status || !to.len) continue;
    t->spelled = (uint32_t)q->names.len;
    t->spelled_len = (uint32_t)name.len;
    if (gpuir__buf_put(&q->a, &q->names, name.data, name.len)) status = GPUIR_E_NOMEM;
    if ((uint8_t)t->text[0] == 0xff) {
      t->name = t->spelled;
      t->name_len = t->spelled_len;
    }
    gpuir__spell_put(q, i, &to);
    *changed = 1;
  }
  gpuir__buf_free(&q->a, &name);
  if (*changed) gpuir__spell_tidy(q);
  return status;
}

#else /* GPUIR_NO_NEAR */
/* Refuses a query that asks for what is near a word which no document has. Its caller's message names the macro. */
static int gpuir__query_spell(gpuir_query *q, gpuir__analyzer *an, int mode, const gpuir_shards *shards, int *changed) {
  unsigned i;
  (void)mode;
  *changed = 0;
  if (q->choices || q->spell < 0 || an->kind == GPUIR__CUSTOM) return GPUIR_OK;
  if (!shards && q->ix->leaves[0].seg->shard) return GPUIR_OK;
  for (i = 0; i < q->nrequired; i++) {
    const gpuir__query_term *t = &q->terms[i];
    if (t->near_asked && !t->df && t->q && t->typed_len && t->kind == GPUIR__WORD) return GPUIR_E_UNSUPPORTED;
  }
  return GPUIR_OK;
}
#endif /* GPUIR_NO_NEAR */

/* Says whether a typed word says little by the description's list: then it is right as it stands. */
static int gpuir__is_stop_typed(const gpuir_query_desc *desc, const gpuir__query_term *t, const char *typed) {
#ifndef GPUIR_NO_RANK
  return desc && desc->stop && !t->near_asked && t->typed_len && gpuir__stop_has(desc->stop, typed, t->typed_len);
#else
  (void)desc, (void)t, (void)typed;
  return 0;
#endif
}

/* Keeps of the words that no document has how they were typed: bytes of text[0..len). Of others that is not asked for.
 * In
 * place of those that the description's list of stop words has no other is searched. */
GPUIR__NOINLINE int gpuir__query_keep_typed(gpuir_query *q, const gpuir_query_desc *desc, const char *text,
    size_t len) {
  unsigned i;
  for (i = 0; i < q->n; i++) {
    gpuir__query_term *t = &q->terms[i];
    const uint32_t at = t->typed;
    if (t->df || t->negated || t->optional == GPUIR__EXTRA || t->typed_len > len || at > len - t->typed_len)
      t->typed_len = 0;
    t->right = (uint8_t)gpuir__is_stop_typed(desc, t, text + at);
    t->typed = (uint32_t)q->names.len;
    if (t->typed_len && gpuir__buf_put(&q->a, &q->names, text + at, t->typed_len)) return GPUIR_E_NOMEM;
  }
  return GPUIR_OK;
}

/* ---- a query without words */

static int gpuir__token_count(void *sink, const char *token, size_t len, unsigned advance) {
  (void)token, (void)len, (void)advance;
  ++*(unsigned *)sink;
  return GPUIR_OK;
}

/* Says why a query's text names nothing to look for. */
static int gpuir__query_nothing(const gpuir_query *q, gpuir__analyzer *an, const char *text, size_t len,
    gpuir_error *err) {
  const int filtered = an->filtered;
  unsigned words = 0;
  uint64_t dropped = 0;
  int n;
  while (len && gpuir__is_space(text[0])) text++, len--;
  while (len && gpuir__is_space(text[len - 1])) len--;
  if (!len) return gpuir__fail(err, GPUIR_E_QUERY, 0, "the query is empty: it needs a word to look for");
  for (n = (int)gpuir__min64(len, 60); n && (size_t)n < len && ((uint8_t)text[n] & 0xc0) == 0x80;) n--;
  if (q->n)
    return gpuir__fail(err, GPUIR_E_QUERY, 0, "'%.*s' only says what is not to be there: add a word that is", n, text);
  an->filtered = 0;
  (void)gpuir__analyze(an, text, len, gpuir__token_count, &words, &dropped);
  an->filtered = filtered;
  if (words)
    return gpuir__fail(err, GPUIR_E_QUERY, 0, "'%.*s' has only stop words, which the index leaves out", n, text);
  if (dropped)
    return gpuir__fail(err, GPUIR_E_QUERY, 0, "'%.*s' has only words of more than %d bytes", n, text, GPUIR_MAX_TERM);
  return gpuir__fail(err, GPUIR_E_QUERY, 0, "'%.*s' holds no word: no letter, no digit", n, text);
}

/* ---- expanded queries */

#ifndef GPUIR_NO_RANK
/* Adds the words of the model that the query lacks, which need not match, as far as there is room. One that it excludes
 * is not asked for. */
static void gpuir__query_add_model(gpuir_query *q, const gpuir_expansion *model) {
  unsigned i, j;
  for (i = 0; i < model->n && i < GPUIR_MAX_TERMS; i++) {
    const gpuir_expansion_term *m = &model->terms[i];
    for (j = 0; j < q->n; j++)
      if (q->terms[j].kind == GPUIR__WORD && gpuir__token_is(&q->terms[j], m->term, m->len)) break;
    if (j < q->n) {
      q->terms[j].model = m->weight;
      continue;
    }
    if (q->n == GPUIR_MAX_TERMS || q->distinct == GPUIR_MAX_TERMS) continue;
    gpuir__query_term_make(&q->terms[q->n], GPUIR__WORD, 0, m->term, m->len);
    q->terms[q->n].added = 1;
    q->terms[q->n].model = m->weight;
    q->terms[q->n++].optional = GPUIR__SCORES;
    q->distinct++; /* of a member of a phrase once more, which only takes room */
  }
  q->expanded = model->n != 0;
  gpuir__query_part(q);
}

/* Divides, rounding half to even. */
static uint64_t gpuir__half_even(uint64_t a, uint64_t b) {
  const uint64_t n = a / b, rest = a % b;
  return n + (rest > b - rest || (rest == b - rest && (n & 1)));
}

/* Says whether a term comes before another one: it has the greater share, or the lesser bytes. */
static int gpuir__share_before(const gpuir__query_term *a, const gpuir__query_term *b) {
  if (a->share != b->share) return a->share > b->share;
  return gpuir__compare_bytes(a->text, a->len, b->text, b->len) < 0;
}

/* Gives each positive term its share: half of all is the text's, by occurrences, and half the model's. */
static void gpuir__query_share(gpuir_query *q) {
  uint64_t typed = 0, model = 0, sum = 0;
  unsigned i, first = 0;
  if (q->expanded)
    for (i = 0; i < q->npositive; i++) {
      typed += q->terms[i].added ? 0 : gpuir__min32(q->terms[i].q, 1 << 16);
      model += q->terms[i].model;
    }
  q->expanded = typed && model;
  for (i = 0; i < q->npositive && q->expanded; i++) {
    gpuir__query_term *t = &q->terms[i];
    const uint64_t own = t->added ? 0 : gpuir__min32(t->q, 1 << 16);
    t->share = (uint32_t)gpuir__half_even(GPUIR_EXPANSION_SUM / 2 * (own * model + t->model * typed), typed * model);
    t->q = 1;
    sum += t->share;
    if (gpuir__share_before(t, &q->terms[first])) first = i;
  }
  if (!q->expanded) return;
  q->terms[first].share += (uint32_t)(GPUIR_EXPANSION_SUM - sum); /* some more, or less */
  q->stored_bm25 = 0; /* what lists tell of the best scores is of whole weights */
}
#endif

/* Looks the terms up and weighs them. */
static int gpuir__query_resolve(gpuir_query *q, const gpuir_query_desc *desc, gpuir__analyzer *an, const char *text,
    size_t len, gpuir_error *err) {
  int status = GPUIR_OK, spelled;
  if (q->choices) {
    q->choices->fixed = q->n;
    q->choices->distinct = q->distinct;
    status = gpuir__choices_count(q, err);
    if (!status) status = gpuir__choices_keep(q, err);
  }
  if (status) return status;
  gpuir__query_part(q);
  if (q->choices && !q->nrequired) return gpuir__query_crowded(err);
  q->all = q->all && !q->nrequired;
  if (!q->nrequired && !q->all) return gpuir__query_nothing(q, an, text, len, err);
#ifndef GPUIR_NO_RANK
  if (desc && desc->expansion && q->nrequired && !q->choices) gpuir__query_add_model(q, desc->expansion);
#else
  (void)desc;
#endif
  if (gpuir__query_name(q)) return gpuir__fail_nomem(err);
  status = gpuir__query_look_all_up(q, err);
  if (!status && q->nrequired && !q->choices) {
    status = gpuir__query_keep_typed(q, desc, text, len);
    if (!status) status = gpuir__query_spell(q, an, q->mode, NULL, &spelled);
    if (status)
      return gpuir__fail(err, status, 0, "the words that no document has cannot be compared: %s",
          gpuir_strerror(status));
    if (spelled) status = gpuir__query_look_all_up(q, err);
  }
#ifndef GPUIR_NO_RANK
  if (!status) gpuir__query_share(q);
#endif
  return status ? status : gpuir__query_weigh(q, err);
}

/* Parses the text of a query's where into q->where; NULL or "": the query has none. */
static int gpuir__query_where(gpuir_query *q, const char *where, gpuir_error *err) {
  if (!where || !*where) return GPUIR_OK;
#ifdef GPUIR_NO_COLUMNS
  (void)q;
  return gpuir__fail_columns(err);
#else
  return gpuir__where_make(&q->a, q->ix->leaves[0].seg->columns.fields, where, &q->where, err);
#endif
}

/* Finds the columns by which a query's hits are ordered and collapsed. */
static int gpuir__query_order(gpuir_query *q, const gpuir_query_desc *desc, gpuir_error *err) {
  const char *const sort = desc->sort ? desc->sort : "", *const collapse = desc->collapse ? desc->collapse : "";
#ifdef GPUIR_NO_COLUMNS
  (void)q;
  return *sort || *collapse ? gpuir__fail_columns(err) : GPUIR_OK;
#else
  const gpuir__schema *f = q->ix->leaves[0].seg->columns.fields;
  unsigned field;
  int status = GPUIR_OK;
  if (*sort) {
    q->falling = *sort == '-';
    status =
        gpuir__field_find(f, "sort", sort + q->falling, strlen(sort + q->falling), (size_t)q->falling, &field, err);
    q->sort = status ? 0 : field + 1;
  }
  if (!status && *collapse) {
    status = gpuir__field_find(f, "collapse", collapse, strlen(collapse), 0, &field, err);
    q->collapse = status ? 0 : field + 1;
  }
  return status;
#endif
}

static int gpuir__query_describe(gpuir_query *q, const gpuir_query_desc *desc, gpuir_error *err) {
  const gpuir__stat *stored = &q->ix->leaves[0].seg->stat;
  q->k1 = stored->k1;
  q->b = stored->b;
  q->most_postings = desc && desc->prefix_postings ? desc->prefix_postings : GPUIR_MAX_QUERY_POSTINGS;
  if (desc) {
    if (desc->mode < GPUIR_AND || desc->mode > GPUIR_ANDOR)
      return gpuir__refuse(err, "unknown query mode %d", desc->mode);
    if (desc->required && desc->mode != GPUIR_OR)
      return gpuir__refuse(err, "words can be required of a query of mode OR only");
#ifdef GPUIR_NO_NEAR
    if (desc->spell == GPUIR_SPELL)
      return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "GPUIR_SPELL: near terms were left out by GPUIR_NO_NEAR");
#endif
#ifdef GPUIR_NO_RANK
    if (desc->stop || desc->enough || desc->expansion)
      return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "stop words of queries were left out by GPUIR_NO_RANK");
#else
    q->enough = desc->enough;
#endif
    q->mode = desc->required ? GPUIR_AND : desc->mode;
    q->required = desc->required;
    q->no_operators = desc->no_operators;
    q->spell = desc->spell;
#ifdef GPUIR_NO_COLUMNS
    if (desc->all) return gpuir__fail_columns(err);
#else
    q->all = desc->all != 0;
#endif
    if (desc->custom_bm25) {
      q->k1 = desc->k1;
      q->b = desc->b;
    }
  }
  if (!(q->k1 >= 0 && q->k1 <= 1000)) return gpuir__fail(err, GPUIR_E_RANGE, 0, "k1 lies outside [0, 1000]");
  if (!(q->b >= 0 && q->b <= 1)) return gpuir__fail(err, GPUIR_E_RANGE, 0, "b lies outside [0, 1]");
  q->stored_bm25 = q->k1 <= stored->k1 && q->k1 >= stored->k1 && q->b <= stored->b && q->b >= stored->b;
  q->norm = gpuir__norm_make(q->k1, q->b, q->ix->average_length);
  return GPUIR_OK;
}

/* Moves a query to memory for as many terms as it has, so that thousands of queries take few cache lines each; the
 * query stays where it is if there is no memory. */
static gpuir_query *gpuir__query_fit(gpuir_query *q) {
  const size_t head = (offsetof(gpuir_query, terms) + q->n * sizeof q->terms[0] + 7) & ~(size_t)7,
               ids = q->size - sizeof *q;
  gpuir_query *fit = q->choices ? NULL : (gpuir_query *)gpuir__alloc(&q->a, head + ids);
  if (!fit) return q; /* of one with choices the number of terms may change */
  memcpy((void *)fit, q, offsetof(gpuir_query, terms) + q->n * sizeof q->terms[0]);
  fit->ids = (uint32_t *)(void *)((char *)fit + head);
  fit->size = head + ids;
  memcpy(fit->ids, q->ids, ids);
  gpuir__free(&q->a, q, q->size);
  return fit;
}

/* Makes terms of a query's text. One with too many words gets them as choices, if it may leave some out. */
static int gpuir__query_read(gpuir_query *q, const gpuir_query_desc *desc, gpuir__analyzer *analyzer, const char *text,
    size_t len, gpuir_error *err) {
  gpuir_error why;
  int status;
  memset(&why, 0, sizeof why);
#ifndef GPUIR_NO_RANK
  if (desc && desc->stop && q->mode == GPUIR_OR) q->stop = gpuir__stop_list_for(q, desc->stop, text, len);
#endif
  status = gpuir__query_words(q, analyzer, text, len, &why);
  if (status == GPUIR_E_TERMS && desc && desc->keep_rarest && q->mode != GPUIR_AND) {
    q->n = q->distinct = q->nphrases = q->nprefixes = 0;
    q->names.len = 0;
#ifndef GPUIR_NO_RANK
    q->stopped.len = 0;
#endif
    if (q->phrases) q->phrases->nmembers = q->phrases->ntokens = 0;
    q->choices = (gpuir__choices *)gpuir__alloc_zero(&q->a, sizeof *q->choices);
    return q->choices ? gpuir__query_words(q, analyzer, text, len, err) : gpuir__fail_nomem(err);
  }
  if (status && err) *err = why;
  return status;
}

/* Makes a query of a text. */
static int gpuir__query_make(const gpuir_index *ix, const gpuir_query_desc *desc, gpuir__analyzer *analyzer,
    const char *text, size_t len, gpuir_query **query, gpuir_error *err) {
  const size_t size = sizeof(gpuir_query) + ix->nleaves * GPUIR__IDS * sizeof(uint32_t);
  gpuir_query *q = (gpuir_query *)gpuir__alloc(&ix->a, size);
  int status;
  if (!q) return gpuir__fail_nomem(err);
  memset(q, 0, offsetof(gpuir_query, terms));
  q->ix = ix;
  q->a = ix->a;
  q->size = size;
  q->ids = (uint32_t *)(void *)(q + 1);
  status = gpuir__query_describe(q, desc, err);
  if (!status && desc) status = gpuir__query_where(q, desc->where, err);
  if (!status && desc) status = gpuir__query_order(q, desc, err);
  if (!status) status = gpuir__query_read(q, desc, analyzer, text, len, err);
  if (!status) status = gpuir__query_resolve(q, desc, analyzer, text, len, err);
  if (status) gpuir_query_destroy(q);
  else *query = gpuir__query_fit(q);
  return status;
}

#ifndef GPUIR_NO_RANK
/* Makes what a query of mode ANDOR asks where any word is enough, if that does without words of the text. One that is
 * OR itself, for it has too many words, is that. */
static int gpuir__query_make_any(const gpuir_query_desc *desc, gpuir__analyzer *analyzer, const char *text, size_t len,
    gpuir_query **query, gpuir_error *err) {
  gpuir_query_desc how = *desc;
  gpuir_query *q = *query, *any = NULL;
  int status;
  if (!gpuir__stop_list_for(q, desc->stop, text, len)) return GPUIR_OK;
  how.mode = GPUIR_OR;
  status = gpuir__query_make(q->ix, &how, analyzer, text, len, &any, err);
  if (status || q->mode != GPUIR_ANDOR) {
    gpuir_query_destroy(q);
    *query = any;
  } else {
    q->any = any;
  }
  return status;
}
#endif

GPUIR_API int gpuir_query_parse(const gpuir_index *ix, const gpuir_query_desc *desc, const char *text, size_t len,
    gpuir_query **query, gpuir_error *err) {
  gpuir__analyzer *analyzer;
  int status;
  if (query) *query = NULL;
  if (!ix || !query || (!text && len)) return gpuir__refuse(err, "gpuir_query_parse: NULL argument");
  status = gpuir__analyzers_take(ix->analysis.pool, &analyzer, err);
  if (status) return status;
  status = gpuir__query_make(ix, desc, analyzer, text, len, query, err);
#ifndef GPUIR_NO_RANK
  if (!status && desc && desc->stop && desc->mode == GPUIR_ANDOR)
    status = gpuir__query_make_any(desc, analyzer, text, len, query, err);
#endif
  gpuir__analyzers_give(ix->analysis.pool, analyzer);
  return status;
}

/* ---- words that no document has */

/* Says whether a member of phrases is told as unknown: no live document has it, a phrase that is not negated needs it,
 * and no word before tells of it. */
static int gpuir__member_unknown(const gpuir_query *q, unsigned member) {
  const gpuir__query_phrases *p = q->phrases;
  const gpuir__query_term *m = &p->members[member];
  int needed = 0;
  unsigned t;
  if (m->df) return 0;
  for (t = 0; t < q->npositive; t++) {
    const gpuir__query_term *term = &q->terms[t];
    if (term->kind == GPUIR__WORD && gpuir__token_is(term, m->text, m->len)) return 0;
    needed |= term->kind == GPUIR__PHRASE && memchr(p->tokens + term->first, (int)member, term->tokens) != NULL;
  }
  return needed;
}

/* Finds the i-th word of a query that no live document has: a term, or a member of its phrases. NULL: there is none. */
static const gpuir__query_term *gpuir__query_unknown(const gpuir_query *q, size_t i) {
  unsigned t, m;
  for (t = 0; t < q->npositive; t++)
    if (!q->terms[t].df && q->terms[t].kind != GPUIR__PHRASE && q->terms[t].optional != GPUIR__EXTRA && !i--)
      return &q->terms[t];
  for (m = 0; q->phrases && m < q->phrases->nmembers; m++)
    if (gpuir__member_unknown(q, m) && !i--) return &q->phrases->members[m];
  return NULL;
}

GPUIR_API int gpuir_query_unknown(const gpuir_query *q, size_t i, const char **term, size_t *len) {
  const gpuir__query_term *t;
  if (!q || !term || !len) return GPUIR_E_ARGUMENT;
  t = gpuir__query_unknown(q, i);
  if (!t) return GPUIR_E_NOT_FOUND;
  *term = gpuir__query_term_name(q, t, len);
  if (t->typed_len && t->kind == GPUIR__WORD) { /* people know words, and not stems */
    *term = (const char *)q->names.data + t->typed;
    *len = t->typed_len;
  }
  return GPUIR_OK;
}

#ifndef GPUIR_NO_NEAR
/* Adds the terms near the words of a term that was typed so; those of a pair that documents have are none. */
static int gpuir__near_typed(gpuir__near *x, const char *typed, size_t len) {
  gpuir__surfaces s;
  gpuir__term_bytes term;
  size_t i;
  int status = gpuir__surfaces_find(&s, x->an, typed, len);
  for (i = 0; i < s.n && i < 2 && !status; i++) {
    int known = 0;
    if (s.n > 1) status = gpuir__surface_term(&s, i, &term);
    if (!status && s.n > 1) status = gpuir__is_known(x->ix, term.bytes, term.len, &known);
    if (!status && !known) status = gpuir__near_word(x, s.word[i], s.len[i]);
  }
  return status;
}

GPUIR_API int gpuir_query_near(const gpuir_query *q, size_t i, gpuir_near_term *found, size_t cap, size_t *n) {
  const gpuir__query_term *t;
  gpuir__analyzer *an;
  gpuir__near x;
  int status;
  if (n) *n = 0;
  if (!q || !n || (!found && cap)) return GPUIR_E_ARGUMENT;
  t = gpuir__query_unknown(q, i);
  if (!t) return GPUIR_E_NOT_FOUND;
  if (t->kind == GPUIR__PREFIX) return GPUIR_OK;
  status = gpuir__analyzers_take(q->ix->analysis.pool, &an, NULL);
  if (status) return status;
  gpuir__near_begin(&x, q->ix, an, found, cap);
  if (t->typed_len && an->kind != GPUIR__CUSTOM)
    status = gpuir__near_typed(&x, (const char *)q->names.data + t->typed, t->typed_len);
  else status = gpuir__near_word(&x, t->text, t->len);
  gpuir__analyzers_give(q->ix->analysis.pool, an);
  if (!status) *n = x.nfound;
  return status;
}

#else /* GPUIR_NO_NEAR */
GPUIR_API int gpuir_query_near(const gpuir_query *q, size_t i, gpuir_near_term *found, size_t cap, size_t *n) {
  if (n) *n = 0;
  if (!q || !n || (!found && cap)) return GPUIR_E_ARGUMENT;
  return gpuir__query_unknown(q, i) ? GPUIR_E_UNSUPPORTED : GPUIR_E_NOT_FOUND;
}
#endif /* GPUIR_NO_NEAR */

/* ---- words that no document of any shard has */

GPUIR__COLD GPUIR_API int gpuir_query_respell(gpuir_query *q, int mode, const gpuir_shards *shards, int *changed,
    gpuir_error *err) {
  gpuir__analyzer *an;
  int status;
  if (!q || !shards || !shards->agree || !changed) return gpuir__refuse(err, "gpuir_query_respell: NULL argument");
  *changed = 0;
#ifdef GPUIR_NO_RANK
  return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "near terms of several shards were left out by GPUIR_NO_RANK");
#endif
  status = gpuir__analyzers_take(q->ix->analysis.pool, &an, err);
  if (status) return status;
  status = gpuir__query_spell(q, an, mode, shards, changed);
  gpuir__analyzers_give(q->ix->analysis.pool, an);
  if (status)
    return gpuir__fail(err, status, 0, "the words that no shard has cannot be compared: %s", gpuir_strerror(status));
  return *changed ? gpuir__query_look_all_up(q, err) : GPUIR_OK;
}

GPUIR__COLD GPUIR_API int gpuir_query_respell_as(gpuir_query *q, const gpuir_query *other, gpuir_error *err) {
  if (!q || !other || other->n > q->n || q->choices || other->choices)
    return gpuir__refuse(err, "gpuir_query_respell_as: NULL argument, or a query of another text");
  q->names.len = 0;
  if (gpuir__buf_put(&q->a, &q->names, other->names.data, other->names.len)) return gpuir__fail_nomem(err);
  memcpy((void *)q->terms, other->terms, other->n * sizeof q->terms[0]);
  q->n = other->n;
  gpuir__query_part(q);
  return gpuir__query_look_all_up(q, err);
}

GPUIR_API int gpuir_query_spelled(const gpuir_query *q, size_t i, const char **word, size_t *len, const char **instead,
    size_t *instead_len) {
  unsigned t;
  if (!q || !word || !len || !instead || !instead_len) return GPUIR_E_ARGUMENT;
  for (t = 0; t < q->npositive; t++) {
    const gpuir__query_term *x = &q->terms[t];
    if (!x->spelled_len || i--) continue;
    *word = (const char *)q->names.data + x->typed;
    *len = x->typed_len;
    *instead = (const char *)q->names.data + x->spelled;
    *instead_len = x->spelled_len;
    return GPUIR_OK;
  }
  return GPUIR_E_NOT_FOUND;
}
