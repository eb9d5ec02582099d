
/* ========
 * [67-passages]  the places of a text that answer a query
 *
 * The text is analysed once. What the query names is found by comparing each token with the few terms of its slot in a
 * table; phrases by Baeza-Yates and Gonnet's Shift-And (Communications of the ACM 35(10), 1992) over the numbers of
 * their tokens. Each occurrence is a mention. The text is cut into fragments, which are lines or, of long lines,
 * sentences or words, but never within the first mention of a term in a fragment; only fragments with mentions are
 * kept. A window is a run of fragments. Its value is
 *
 *   (sum over the terms that no passage shows yet of weight * (1, 5/4 or 6/4 for one, two or more mentions))
 *     * CLOSE / (CLOSE + bytes between its first fragment and its last one)
 *
 * The most valuable window becomes a passage, the earliest and shortest of equal ones; it grows to its paragraph; and
 * so on, until all terms of the text are shown or the budget is spent. All of this is in integers: the same everywhere.
 *
 * Uses      [30-analysis], [33-analyzers], [42-snapshot], [51-query].
 * Start at  gpuir_passages.
 * Tests     tests/unit/67_passages.c
 * ======*/

#define GPUIR__FRAGMENT 400u /* bytes: longer lines are cut */
#define GPUIR__WINDOW_LINES 16u /* lines that a window has at most */
#define GPUIR__CLOSE 1024u /* bytes apart at which a window is worth half */
#define GPUIR__SLICE (64u << 10) /* bytes of text between looks at the clock */
#define GPUIR__NO_NEEDLE 255u

/* Tells when the call has to end. */
typedef struct gpuir__watch {
  uint64_t deadline; /* 0: none */
  const int *cancel;
  uint32_t steps;
  gpuir_error *err;
} gpuir__watch;

static int gpuir__watch_look(const gpuir__watch *w) {
  if (w->cancel && gpuir__peek(w->cancel))
    return gpuir__fail(w->err, GPUIR_E_CANCELLED, 0, "the search for passages was cancelled");
  if (w->deadline && gpuir__now() > w->deadline)
    return gpuir__fail(w->err, GPUIR_E_DEADLINE, 0, "the search for passages exceeded its time limit");
  return GPUIR_OK;
}

static inline int gpuir__watch_step(gpuir__watch *w) {
  return GPUIR__LIKELY(++w->steps & 1023) ? GPUIR_OK : gpuir__watch_look(w);
}

/* ---- mentions: where in the text the query's terms stand */

/* An occurrence of a term: bytes [at, end). */
typedef struct gpuir__mention {
  uint32_t at, end, term;
} gpuir__mention;

/* A word of the query, a member of its phrases, or both. */
typedef struct gpuir__needle {
  const char *text;
  uint8_t len, next; /* next: the number of the next needle in the slot; 0: none */
  uint8_t term, member;
} gpuir__needle;

typedef struct gpuir__finder {
  const gpuir_query *q;
  gpuir__analyzer *an;
  gpuir_allocator a;
  gpuir__watch watch;
  uint32_t base; /* where in the text the analysed slice begins */
  uint32_t seen; /* positions so far */
  uint32_t place_end; /* where the token ends that took the last position */
  int unsorted; /* a mention begins before the one that was found before it */
  gpuir__buf mentions; /* gpuir__mention */
  gpuir__buf states; /* of each phrase: bit j says that its tokens 0 to j are the last j + 1 seen */
  uint64_t *follow; /* [phrase * nmembers + member] the tokens of the phrase that are this member, a bit each */
  uint64_t *here; /* [phrase] its tokens that are one of the last position's, a bit each */
  unsigned nphrases, nprefixes, nneedles;
  int live, hit; /* some state is not 0; some of `here` is not */
  uint8_t slots[256]; /* numbers of needles */
  uint32_t ring[GPUIR_MAX_TERMS]; /* where the last tokens begin */
  gpuir__needle needles[2 * GPUIR_MAX_TERMS + 1]; /* from number 1 on */
} gpuir__finder;

static inline unsigned gpuir__needle_slot(const char *token, size_t len) {
  return ((uint8_t)token[0] * 5u + (uint8_t)token[len - 1] * 19u + (unsigned)len) & 255u;
}

static void gpuir__needle_add(gpuir__finder *f, const gpuir__query_term *t, unsigned term, unsigned member) {
  const unsigned slot = gpuir__needle_slot(t->text, t->len);
  gpuir__needle *x = &f->needles[++f->nneedles];
  x->text = t->text;
  x->len = t->len;
  x->term = (uint8_t)term;
  x->member = (uint8_t)member;
  x->next = f->slots[slot];
  f->slots[slot] = (uint8_t)f->nneedles;
}

/* Makes room for the states of the query's phrases, and tells which tokens each has where. */
static int gpuir__finder_phrases(gpuir__finder *f) {
  const gpuir__query_phrases *p = f->q->phrases;
  const size_t n = f->nphrases, size = (2 * n + n * p->nmembers) * sizeof(uint64_t);
  unsigned i, j, phrase = 0;
  uint64_t *states = (uint64_t *)(void *)gpuir__buf_room(&f->a, &f->states, size);
  if (!states) return gpuir__fail_nomem(f->watch.err);
  memset(states, 0, size);
  f->here = states + n;
  f->follow = states + 2 * n;
  for (i = 0; i < f->q->npositive; i++) {
    const gpuir__query_term *t = &f->q->terms[i];
    if (t->kind != GPUIR__PHRASE) continue;
    for (j = 0; j < t->tokens; j++) f->follow[phrase * p->nmembers + p->tokens[t->first + j]] |= (uint64_t)1 << j;
    phrase++;
  }
  for (i = 0; i < p->nmembers; i++) gpuir__needle_add(f, &p->members[i], GPUIR__NO_NEEDLE, i);
  return GPUIR_OK;
}

/* Puts what the query's positive terms name into the table. */
static int gpuir__finder_open(gpuir__finder *f) {
  unsigned i;
  for (i = 0; i < f->q->npositive; i++) {
    const gpuir__query_term *t = &f->q->terms[i];
    f->nphrases += t->kind == GPUIR__PHRASE;
    f->nprefixes += t->kind == GPUIR__PREFIX;
    if (t->kind == GPUIR__WORD) gpuir__needle_add(f, t, i, GPUIR__NO_NEEDLE);
  }
  return f->nphrases ? gpuir__finder_phrases(f) : GPUIR_OK;
}

static int gpuir__mention_put(gpuir__finder *f, uint32_t at, uint32_t end, uint32_t term) {
  gpuir__mention *to = (gpuir__mention *)(void *)gpuir__buf_room(&f->a, &f->mentions, sizeof *to);
  if (!to) return gpuir__fail_nomem(f->watch.err);
  if (f->mentions.len && to[-1].at > at) f->unsorted = 1;
  to->at = at;
  to->end = end;
  to->term = term;
  f->mentions.len += sizeof *to;
  return GPUIR_OK;
}

/* Notes that a member of phrases stands at the last position, where others may stand, too. */
static void gpuir__phrases_note(gpuir__finder *f, unsigned member) {
  unsigned phrase;
  for (phrase = 0; phrase < f->nphrases; phrase++)
    f->here[phrase] |= f->follow[phrase * f->q->phrases->nmembers + member];
  f->hit = 1;
}

/* Moves all phrases on by the last position, whose tokens are all known. */
static int gpuir__phrases_step(gpuir__finder *f) {
  uint64_t *states = (uint64_t *)(void *)f->states.data;
  unsigned i, phrase = 0;
  int status = GPUIR_OK;
  if (!f->hit) {
    if (f->live) memset(states, 0, f->nphrases * sizeof *states);
    f->live = 0;
    return GPUIR_OK;
  }
  f->live = 1;
  f->hit = 0;
  for (i = 0; i < f->q->npositive && !status; i++) {
    const gpuir__query_term *t = &f->q->terms[i];
    if (t->kind != GPUIR__PHRASE) continue;
    states[phrase] = (states[phrase] << 1 | 1) & f->here[phrase];
    f->here[phrase] = 0;
    if (states[phrase] >> (t->tokens - 1) & 1)
      status = gpuir__mention_put(f, f->ring[(f->seen - t->tokens) % GPUIR_MAX_TERMS], f->place_end, i);
    phrase++;
  }
  return status;
}

/* Says whether a token is one of the terms that a prefix stands for. */
static int gpuir__prefix_has(const gpuir_query *q, const gpuir__query_term *t, const char *token, size_t len) {
  if (t->len <= len && t->text[0] == token[0] && !memcmp(t->text, token, t->len)) return 1;
  return t->stem_len && t->stem_len == len && !memcmp(q->names.data + t->stem, token, len);
}

/* Finds the query's prefixes that stand for a token. */
static int gpuir__prefixes_step(gpuir__finder *f, const char *token, size_t len, uint32_t at, uint32_t end) {
  unsigned i;
  int status = GPUIR_OK;
  for (i = 0; i < f->q->npositive && !status; i++) {
    const gpuir__query_term *t = &f->q->terms[i];
    if (t->kind == GPUIR__PREFIX && gpuir__prefix_has(f->q, t, token, len)) status = gpuir__mention_put(f, at, end, i);
  }
  return status;
}

/* Takes the text's next token, and notes a mention of each word, phrase or prefix of the query that it is or completes.
 * It is called for each token of a text, and so finds words by a hash: a gpuir_place_fn. */
static int gpuir__finder_token(void *finder, const char *token, size_t len, unsigned advance) {
  gpuir__finder *f = (gpuir__finder *)finder;
  const uint32_t at = f->base + (uint32_t)f->an->at, end = f->base + (uint32_t)f->an->end;
  unsigned i;
  int status = gpuir__watch_step(&f->watch);
  if (advance) {
    if (f->nphrases && !status) status = gpuir__phrases_step(f);
    f->ring[f->seen++ % GPUIR_MAX_TERMS] = at;
    f->place_end = end;
  } else if (!f->seen) {
    return status;
  }
  for (i = f->slots[gpuir__needle_slot(token, len)]; i && !status; i = f->needles[i].next) {
    const gpuir__needle *x = &f->needles[i];
    if (x->len != len || memcmp(x->text, token, len) != 0) continue;
    if (x->member != GPUIR__NO_NEEDLE) gpuir__phrases_note(f, x->member);
    if (x->term != GPUIR__NO_NEEDLE) status = gpuir__mention_put(f, at, end, x->term);
  }
  if (f->nprefixes && !status) status = gpuir__prefixes_step(f, token, len, at, end);
  return status;
}

static int gpuir__mention_compare(const void *x, const void *y) {
  const gpuir__mention *a = (const gpuir__mention *)x, *b = (const gpuir__mention *)y;
  if (a->at != b->at) return a->at < b->at ? -1 : 1;
  if (a->end != b->end) return a->end < b->end ? -1 : 1;
  return a->term < b->term ? -1 : a->term > b->term;
}

/* Returns how many bytes are analysed before the clock is looked at. A blank ends them, at which no token goes on. */
static size_t gpuir__text_slice(const char *text, size_t len) {
  size_t n = GPUIR__SLICE;
  if (len <= n) return len;
  while (n < len && !gpuir__is_space(text[n])) n++;
  return n;
}

/* Finds all mentions of the text, in order. A caller's tokenizer gets the text as a whole. */
static int gpuir__finder_run(gpuir__finder *f, const char *text, size_t len) {
  size_t at, n;
  int status = gpuir__finder_open(f);
  f->an->places = 1;
  for (at = 0; at < len && !status; at += n) {
    n = f->an->kind == GPUIR__CUSTOM ? len : gpuir__text_slice(text + at, len - at);
    f->base = (uint32_t)at;
    status = gpuir__watch_look(&f->watch);
    if (status) break;
    status = gpuir__analyze(f->an, text + at, n, gpuir__finder_token, f, NULL);
    if (status && f->watch.err && !f->watch.err->code)
      (void)gpuir__fail(f->watch.err, status, 0, "the text cannot be analysed: %s",
          f->an->why ? f->an->why : gpuir_strerror(status));
  }
  f->an->places = 0;
  if (f->nphrases && !status) status = gpuir__phrases_step(f);
  if (!status && f->unsorted)
    qsort(f->mentions.data, f->mentions.len / sizeof(gpuir__mention), sizeof(gpuir__mention), gpuir__mention_compare);
  return status;
}

/* ---- fragments: where the text may be cut */

/* A part of the text that holds mentions. */
typedef struct gpuir__fragment {
  uint32_t at, end; /* the line's end belongs to it */
  uint32_t line; /* number of the line in which it begins, from 0 */
  size_t mention; /* number of its first mention */
  uint64_t terms; /* of its mentions, a bit each; 0: a passage has it */
} gpuir__fragment;

/* Walks over the text from fragment to fragment. */
typedef struct gpuir__cutter {
  const char *text;
  size_t len;
  size_t at, end; /* the current fragment */
  size_t line_end;
  uint32_t line;
} gpuir__cutter;

/* Says whether a sentence ends with the blank, or with the ideographic mark, that text[0..n) ends with. */
static int gpuir__ends_sentence(const char *text, size_t n) {
  if (n >= 3 &&
      (!memcmp(text + n - 3, "\xe3\x80\x82", 3) || !memcmp(text + n - 3, "\xef\xbc\x81", 3) ||
          !memcmp(text + n - 3, "\xef\xbc\x9f", 3)))
    return 1;
  if (n < 3 || !gpuir__is_space(text[n - 1])) return 0;
  n -= text[n - 2] == '"' || text[n - 2] == '\'' || text[n - 2] == ')';
  return text[n - 2] == '.' || text[n - 2] == '!' || text[n - 2] == '?';
}

/* Returns the last place in text[low..high] that does not stand within a character; `high` in a text without any. */
static size_t gpuir__character(const char *text, size_t low, size_t high) {
  size_t i = high;
  while (i > low && high - i < 4 && ((uint8_t)text[i] & 0xc0) == 0x80) i--;
  return ((uint8_t)text[i] & 0xc0) == 0x80 ? high : i;
}

/* Returns where the fragment ends that begins at `at` in a line that ends at `end`: behind the line, a sentence, a word
 * or a character. */
static size_t gpuir__cut(const char *text, size_t at, size_t end) {
  const size_t high = at + GPUIR__FRAGMENT, low = at + GPUIR__FRAGMENT / 4;
  size_t i, blank = 0;
  if (end - at <= GPUIR__FRAGMENT) return end;
  for (i = high; i > low; i--) {
    if (gpuir__ends_sentence(text + at, i - at)) return i;
    if (!blank && gpuir__is_space(text[i - 1])) blank = i;
  }
  return blank ? blank : gpuir__character(text, low, high);
}

/* Goes to the fragment that holds byte `to` of the text, which does not lie before the current one. */
static void gpuir__cutter_seek(gpuir__cutter *c, size_t to) {
  while (to >= c->end) {
    c->at = c->end;
    while (to >= c->line_end) {
      const char *nl = (const char *)memchr(c->text + c->line_end, '\n', c->len - c->line_end);
      c->at = c->line_end;
      c->line_end = nl ? (size_t)(nl - c->text) + 1 : c->len;
      c->line++;
    }
    c->end = gpuir__cut(c->text, c->at, c->line_end);
  }
}

/* Cuts the text into fragments: gpuir__fragment, those with mentions. */
static int gpuir__fragments_make(gpuir__finder *f, const char *text, size_t len, gpuir__buf *out) {
  const gpuir__mention *mentions = (const gpuir__mention *)(const void *)f->mentions.data;
  const size_t n = f->mentions.len / sizeof *mentions;
  gpuir__fragment *p = NULL;
  gpuir__cutter c = {NULL, 0, 0, 0, 0, UINT32_MAX};
  size_t i;
  c.text = text;
  c.len = len;
  for (i = 0; i < n; i++) {
    if (!p || mentions[i].at >= p->end) {
      const int status = gpuir__watch_step(&f->watch);
      if (status) return status;
      p = (gpuir__fragment *)(void *)gpuir__buf_room(&f->a, out, sizeof *p);
      if (!p) return gpuir__fail_nomem(f->watch.err);
      out->len += sizeof *p;
      gpuir__cutter_seek(&c, mentions[i].at);
      p->at = (uint32_t)c.at;
      p->end = (uint32_t)c.end;
      p->line = c.line;
      p->mention = i;
      p->terms = 0;
    }
    if (mentions[i].end > p->end && !(p->terms >> mentions[i].term & 1)) {
      gpuir__cutter_seek(&c, mentions[i].end - 1); /* a phrase goes on in other fragments: they become one */
      p->end = (uint32_t)c.end;
    }
    p->terms |= (uint64_t)1 << mentions[i].term;
  }
  return GPUIR_OK;
}

/* ---- windows: which fragments are best */

/* Fragments first to last, and the bytes [at, end) of the text that are shown: at first those of the fragments, then
 * more, as the window grows to its paragraph. */
typedef struct gpuir__window {
  size_t first, last, at, end;
  uint64_t value;
} gpuir__window;

typedef struct gpuir__chooser {
  const char *text;
  size_t len;
  const gpuir_passages_desc *desc;
  size_t most; /* bytes of a passage of several fragments */
  size_t bytes, tokens; /* what is left of the budgets */
  size_t left; /* bytes that the next passage may have */
  uint64_t shown; /* terms, a bit each */
  uint32_t weights[GPUIR_MAX_TERMS];
  const gpuir__mention *mentions;
  size_t nmentions;
  gpuir__fragment *fragments;
  size_t nfragments;
  gpuir__watch *watch;
  gpuir_passage_room *room;
} gpuir__chooser;

/* Returns the number behind a fragment's last mention. */
static inline size_t gpuir__fragment_mentions_end(const gpuir__chooser *c, size_t fragment) {
  return fragment + 1 < c->nfragments ? c->fragments[fragment + 1].mention : c->nmentions;
}

/* Compares the windows that begin with fragment `first` with the best one so far. */
static void gpuir__windows_from(const gpuir__chooser *c, size_t first, gpuir__window *best) {
  const gpuir__fragment *from = &c->fragments[first], *p;
  const size_t most = gpuir__min64(c->most, c->left);
  uint8_t counts[GPUIR_MAX_TERMS];
  uint64_t sum = 0, value;
  size_t last, s;
  memset(counts, 0, sizeof counts);
  for (last = first; last < c->nfragments; last++) {
    p = &c->fragments[last];
    if (!p->terms) return; /* a passage has it */
    if (last > first && (p->end - from->at > most || p->line - from->line >= GPUIR__WINDOW_LINES)) return;
    for (s = p->mention; s < gpuir__fragment_mentions_end(c, last); s++) {
      const uint32_t t = c->mentions[s].term;
      if (c->shown >> t & 1 || counts[t] == 3) continue;
      sum += (uint64_t)c->weights[t] * (counts[t]++ ? 1 : 4);
    }
    value = sum * GPUIR__CLOSE / (GPUIR__CLOSE + (last > first ? p->at - from->end : 0));
    if (value <= best->value) continue;
    best->first = first;
    best->last = last;
    best->value = value;
  }
}

/* Finds the best window; its value is 0 if there is none. */
static int gpuir__window_choose(const gpuir__chooser *c, gpuir__window *best) {
  size_t i;
  memset(best, 0, sizeof *best);
  for (i = 0; i < c->nfragments; i++) {
    const int status = gpuir__watch_step(c->watch);
    if (status) return status;
    if (c->fragments[i].terms & ~c->shown) gpuir__windows_from(c, i, best);
  }
  if (!best->value) return GPUIR_OK;
  best->at = c->fragments[best->first].at;
  best->end = c->fragments[best->last].end;
  return GPUIR_OK;
}

/* Cuts the one fragment of a window to what is left of the budget, around its dearest mention that is not shown yet.
 * Returns 0 if that does not fit. */
static int gpuir__window_shorten(const gpuir__chooser *c, gpuir__window *w) {
  const gpuir__mention *dearest = NULL;
  size_t s, i;
  for (s = c->fragments[w->first].mention; s < gpuir__fragment_mentions_end(c, w->first); s++) {
    const gpuir__mention *mention = &c->mentions[s];
    if (c->shown >> mention->term & 1 || mention->end - mention->at > c->left) continue;
    if (!dearest || c->weights[mention->term] > c->weights[dearest->term]) dearest = mention;
  }
  if (!dearest) return 0;
  if (dearest->end - w->at > c->left) w->at = dearest->at;
  if (w->end - w->at <= c->left) return 1;
  w->end = gpuir__character(c->text, dearest->end, w->at + c->left);
  for (i = w->end; i > dearest->end && !gpuir__is_space(c->text[i]); i--) {}
  if (i > dearest->end) w->end = i;
  return 1;
}

/* Says whether [at, end) has nothing but blanks. */
static int gpuir__is_blank(const char *text, size_t at, size_t end) {
  while (at < end && gpuir__is_space(text[at])) at++;
  return at == end;
}

/* Takes the line before the window, if the window may have `most` bytes then and does not come below `low`, where the
 * passage before it ends. */
static int gpuir__window_back(const gpuir__chooser *c, gpuir__window *w, size_t low, size_t most) {
  size_t at = w->at, first = w->first;
  if (at <= low || c->text[at - 1] != '\n') return 0;
  for (at--; at > low && c->text[at - 1] != '\n' && w->at - at <= GPUIR__FRAGMENT; at--) {}
  if ((at && c->text[at - 1] != '\n') || w->at - at > GPUIR__FRAGMENT) return 0;
  if (w->end - at > most || (!c->desc->context && gpuir__is_blank(c->text, at, w->at))) return 0;
  while (first && c->fragments[first - 1].at >= at) first--;
  if (first && c->fragments[first - 1].end > at) return 0; /* a phrase goes on there: it is shown whole or not at all */
  w->first = first;
  w->at = at;
  return 1;
}

/* Takes in the line behind the window likewise, up to `high`, where the next passage begins. */
static int gpuir__window_forth(const gpuir__chooser *c, gpuir__window *w, size_t high, size_t most) {
  size_t end = w->end, last = w->last, reach;
  const char *nl;
  if (end >= high || c->text[end - 1] != '\n') return 0;
  reach = (size_t)gpuir__min64(high - end, GPUIR__FRAGMENT);
  nl = (const char *)memchr(c->text + end, '\n', reach);
  if (!nl && (end + reach < c->len || high < c->len)) return 0;
  end = nl ? (size_t)(nl - c->text) + 1 : c->len;
  if (end - w->at > most || (!c->desc->context && gpuir__is_blank(c->text, w->end, end))) return 0;
  while (last + 1 < c->nfragments && c->fragments[last + 1].end <= end) last++;
  if (last + 1 < c->nfragments && c->fragments[last + 1].at < end) return 0;
  w->last = last;
  w->end = end;
  return 1;
}

/* Takes lines before and behind the window in turn: its paragraph, or the context that was asked for. */
static void gpuir__window_grow(const gpuir__chooser *c, gpuir__window *w) {
  const uint32_t lines = c->desc->context == GPUIR_NO_CONTEXT ? 0 : c->desc->context ? c->desc->context : UINT32_MAX;
  const size_t most = c->desc->context ? c->left : (size_t)gpuir__min64(c->most, c->left);
  size_t i, low = 0, high = c->len;
  uint32_t taken;
  int back = 1, forth = 1;
  for (i = 0; i < c->room->n; i++) {
    const gpuir_passage *p = &c->room->passages[i];
    if (p->offset < w->at) low = (size_t)gpuir__max64(low, p->offset + p->bytes);
    else high = (size_t)gpuir__min64(high, p->offset);
  }
  for (taken = 0; taken < lines && (back || forth); taken++) {
    back = back && gpuir__window_back(c, w, low, most);
    forth = forth && gpuir__window_forth(c, w, high, most);
  }
}

static uint32_t gpuir__count_lines(const char *text, size_t at, size_t end) {
  uint32_t n = 0;
  const char *p = text + at, *to = text + end;
  while (p < to && (p = (const char *)memchr(p, '\n', (size_t)(to - p))) != NULL) n++, p++;
  return n;
}

/* Numbers the passage's lines, of which `first` is the first one in the text, from 0; what a number cannot hold is told
 * as the largest one. */
static void gpuir__passage_number(const gpuir__chooser *c, gpuir_passage *p, uint64_t first) {
  const uint64_t line = c->desc->first_line + first;
  const uint64_t last = line + gpuir__count_lines(c->text, p->offset, p->offset + p->bytes);
  p->first_line = (uint32_t)gpuir__min64(line, UINT32_MAX);
  p->last_line = (uint32_t)gpuir__min64(last, UINT32_MAX);
}

/* Marks the mentions of a passage, and takes their terms as shown. */
static void gpuir__passage_mark(gpuir__chooser *c, const gpuir__window *w, gpuir_passage *p) {
  gpuir_passage_room *room = c->room;
  size_t s;
  p->first_mark = room->nmarks;
  for (s = c->fragments[w->first].mention; s < gpuir__fragment_mentions_end(c, w->last); s++) {
    const gpuir__mention *mention = &c->mentions[s];
    if (mention->at < p->offset || mention->end > p->offset + p->bytes) continue;
    p->terms |= (uint64_t)1 << mention->term;
    if (room->nmarks == room->marks_cap || mention->at == mention->end) continue;
    room->marks[room->nmarks].offset = mention->at;
    room->marks[room->nmarks].bytes = mention->end - mention->at;
    room->marks[room->nmarks++].term = mention->term;
  }
  p->marks = room->nmarks - p->first_mark;
}

/* Writes the passage that a window is, and takes its fragments away. */
static void gpuir__passage_put(gpuir__chooser *c, const gpuir__window *w) {
  const gpuir__fragment *from = &c->fragments[w->first];
  gpuir_passage *p = &c->room->passages[c->room->n];
  size_t i, end = w->end;
  while (end > w->at && gpuir__is_space(c->text[end - 1])) end--;
  memset(p, 0, sizeof *p);
  p->offset = w->at;
  p->bytes = end - w->at;
  if (w->at < from->at)
    gpuir__passage_number(c, p, (uint64_t)from->line - gpuir__count_lines(c->text, w->at, from->at));
  else gpuir__passage_number(c, p, (uint64_t)from->line + gpuir__count_lines(c->text, from->at, w->at));
  p->score = (uint32_t)gpuir__min64(w->value / 4, UINT32_MAX);
  gpuir__passage_mark(c, w, p);
  c->shown |= p->terms;
  for (i = w->first; i <= w->last; i++) {
    if (!p->bytes) c->shown |= c->fragments[i].terms; /* of blanks, which a caller's tokenizer took for words */
    c->fragments[i].terms = 0;
  }
  c->room->n += p->bytes != 0;
  c->bytes -= p->bytes;
  c->tokens -= gpuir__min64(c->tokens, (p->bytes + GPUIR_TOKEN_BYTES - 1) / GPUIR_TOKEN_BYTES);
}

/* Chooses passages until all terms are shown, the room is full or the budget spent. */
static int gpuir__passages_choose(gpuir__chooser *c) {
  while (c->room->n < c->room->cap) {
    gpuir__window w;
    int status;
    c->left = c->tokens > SIZE_MAX / GPUIR_TOKEN_BYTES ? SIZE_MAX : c->tokens * GPUIR_TOKEN_BYTES;
    c->left = (size_t)gpuir__min64(c->left, c->bytes);
    status = c->left ? gpuir__window_choose(c, &w) : GPUIR_OK;
    if (status) return status;
    if (!c->left || !w.value) break;
    if (w.end - w.at <= c->left) gpuir__window_grow(c, &w);
    else if (!gpuir__window_shorten(c, &w)) break;
    gpuir__passage_put(c, &w);
  }
  return GPUIR_OK;
}

/* Weighs the terms, finds them, and chooses; *d has its defaults filled in. */
static int gpuir__passages_run(gpuir__finder *f, const gpuir_passages_desc *d, const char *text, size_t len,
    gpuir_passage_room *room) {
  gpuir__buf fragments = {NULL, 0, 0};
  gpuir__chooser c;
  unsigned i;
  int status = gpuir__finder_run(f, text, len);
  if (!status) status = gpuir__fragments_make(f, text, len, &fragments);
  memset(&c, 0, sizeof c);
  c.text = text;
  c.len = len;
  c.desc = d;
  c.most = d->most;
  c.bytes = d->bytes;
  c.tokens = d->tokens;
  for (i = 0; i < f->q->npositive; i++) {
    const gpuir__query_term *t = &f->q->terms[i];
    c.weights[i] = gpuir__max32((uint32_t)(t->idf * 65536.0f), 1);
    c.weights[i] = (uint32_t)gpuir__min64((uint64_t)c.weights[i] * t->q, (uint64_t)1 << 26);
  }
  c.mentions = (const gpuir__mention *)(const void *)f->mentions.data;
  c.nmentions = f->mentions.len / sizeof *c.mentions;
  c.fragments = (gpuir__fragment *)(void *)fragments.data;
  c.nfragments = fragments.len / sizeof *c.fragments;
  c.watch = &f->watch;
  c.room = room;
  if (!status) status = gpuir__passages_choose(&c);
  gpuir__buf_free(&f->a, &fragments);
  return status;
}

GPUIR__COLD GPUIR_API int gpuir_passages(const gpuir_query *q, const gpuir_passages_desc *desc, const char *text,
    size_t len, gpuir_passage_room *room, gpuir_error *err) {
  gpuir_passages_desc d;
  gpuir__finder f;
  int status;
  if (room) room->n = room->nmarks = 0;
  if (!q || !room || (!text && len) || (!room->passages && room->cap) || (!room->marks && room->marks_cap))
    return gpuir__refuse(err, "gpuir_passages: NULL argument");
  if (len >= UINT32_MAX) return gpuir__fail(err, GPUIR_E_LIMIT, 0, "passages of a text of 4 GiB or more");
  memset(&d, 0, sizeof d);
  if (desc) d = *desc;
  if (!d.bytes) d.bytes = SIZE_MAX;
  if (!d.tokens) d.tokens = SIZE_MAX;
  if (!d.most) d.most = GPUIR_PASSAGE_BYTES;
  if (!d.first_line) d.first_line = 1;
  memset(&f, 0, sizeof f);
  f.q = q;
  f.a = q->a;
  f.watch.cancel = d.cancel;
  f.watch.err = err;
  if (d.timeout_ns) f.watch.deadline = gpuir__now() + gpuir__min64(d.timeout_ns, UINT64_MAX / 2);
  if (err) memset(err, 0, sizeof *err);
  status = gpuir__analyzers_take(q->ix->analysis.pool, &f.an, err);
  if (status) return status;
  status = gpuir__passages_run(&f, &d, text, len, room);
  gpuir__analyzers_give(q->ix->analysis.pool, f.an);
  gpuir__buf_free(&f.a, &f.mentions);
  gpuir__buf_free(&f.a, &f.states);
  if (status) room->n = room->nmarks = 0;
  return status;
}

GPUIR__COLD GPUIR_API int gpuir_doc_passages(const gpuir_query *q, const gpuir_passages_desc *desc, uint32_t docid,
    gpuir_passage_room *room, gpuir_error *err) {
  gpuir_passages_desc d;
  gpuir_doc doc;
  char *text;
  size_t n;
  int status;
  if (room) room->n = room->nmarks = 0;
  if (!q || !room) return gpuir__refuse(err, "gpuir_doc_passages: NULL argument");
  status = gpuir_doc_get(q->ix, docid, &doc);
  if (status) return gpuir__fail(err, status, 0, "document %lu: %s", (unsigned long)docid, gpuir_strerror(status));
  if (!doc.stored)
    return gpuir__fail(err, GPUIR_E_NOT_FOUND, 0, "the text of document %lu is not stored", (unsigned long)docid);
  memset(&d, 0, sizeof d);
  if (desc) d = *desc;
  if (!d.first_line) d.first_line = doc.first_line;
  if (doc.text) return gpuir_passages(q, &d, doc.text, doc.text_len, room, err);
  n = (size_t)doc.stored_bytes;
  text = (char *)gpuir__alloc(&q->a, n + 1);
  if (!text) return gpuir__fail_nomem(err);
  status = gpuir_doc_text(q->ix, docid, 0, text, n);
  if (status) (void)gpuir__fail(err, status, 0, "document %lu: its text cannot be unpacked", (unsigned long)docid);
  else status = gpuir_passages(q, &d, text, n, room, err);
  gpuir__free(&q->a, text, n + 1);
  return status;
}

/* ---- snippets */

#define GPUIR__SNIPPET_MARKS 32u

/* A line that is being written. */
typedef struct gpuir__snippet {
  char *out;
  size_t n, cap; /* cap: less what must always find room, "..." and the end of a mark */
  size_t open_len, close_len;
  int blank, full; /* a blank is due before the next character; nothing fits any more */
} gpuir__snippet;

/* Appends bytes as a whole, or none from here on. */
static void gpuir__snippet_put(gpuir__snippet *s, const char *bytes, size_t n) {
  const size_t blank = s->blank && s->n;
  if (s->full || n + blank > s->cap - s->n) {
    s->full = 1;
    return;
  }
  if (blank) s->out[s->n++] = ' ';
  memcpy(s->out + s->n, bytes, n);
  s->n += n;
  s->blank = 0;
}

static int gpuir__snippet_blank(char c) { return (unsigned char)c <= ' ' || c == 0x7f; }

/* Returns the first place from `at` on where a word begins, or the first of a character if there is none before `end`.
 */
static size_t gpuir__snippet_start(const char *text, size_t at, size_t end) {
  size_t word = at;
  while (word < end && !gpuir__snippet_blank(text[word])) word++;
  while (word < end && gpuir__snippet_blank(text[word])) word++;
  if (word < end) return word;
  while (at < end && ((unsigned char)text[at] & 0xc0) == 0x80) at++;
  return at;
}

/* Returns the last place before `end` where a word ends, or a character if there is none behind `at`. */
static size_t gpuir__snippet_stop(const char *text, size_t at, size_t end) {
  size_t word = end;
  while (word > at && !gpuir__snippet_blank(text[word])) word--;
  if (word > at) return word;
  while (end > at && ((unsigned char)text[end] & 0xc0) == 0x80) end--;
  return end;
}

/* Writes text[at, end) with its marks. */
static void gpuir__snippet_text(gpuir__snippet *s, const gpuir_snippet_desc *d, const char *text, size_t at, size_t end,
    const gpuir_passage_room *room) {
  size_t i = 0, stop = 0; /* of the mark that is open; 0: none is */
  while (at < end && !s->full) {
    size_t n = 1;
    while (i < room->nmarks && room->marks[i].offset < at) i++;
    if (!stop && i < room->nmarks && room->marks[i].offset == at) {
      stop = at + room->marks[i].bytes < end ? at + room->marks[i].bytes : end;
      gpuir__snippet_put(s, d->open ? d->open : "", s->open_len);
      if (s->full) return;
    }
    while (at + n < end && ((unsigned char)text[at + n] & 0xc0) == 0x80 && n < 4) n++; /* a character's bytes */
    if (gpuir__snippet_blank(text[at])) s->blank = 1;
    else gpuir__snippet_put(s, text + at, n);
    at += n;
    if (!stop || (at < stop && !s->full)) continue;
    memcpy(s->out + s->n, d->close ? d->close : "", s->close_len); /* it has room */
    s->n += s->close_len;
    stop = 0;
  }
}

/* Writes what is chosen of text[0..len). */
static void gpuir__snippet_write(gpuir__snippet *s, const gpuir_snippet_desc *d, const char *text, size_t len,
    const gpuir_passage_room *room) {
  const size_t most = d->most ? d->most : 160, word = room->nmarks ? room->marks[0].offset : 0;
  size_t first = 0, at, end = len, last = len;
  while (first < len && gpuir__snippet_blank(text[first])) first++;
  while (last > first && gpuir__snippet_blank(text[last - 1])) last--;
  at = word > first + most / 3 ? gpuir__snippet_start(text, word - most / 3, word) : first;
  if (last - at > most) end = gpuir__snippet_stop(text, at, at + most);
  if (at > first) gpuir__snippet_put(s, "...", 3);
  gpuir__snippet_text(s, d, text, at, end, room);
  if (s->full || end < last) {
    memcpy(s->out + s->n, "...", 3);
    s->n += 3;
  }
  s->out[s->n] = 0;
}

GPUIR__COLD GPUIR_API int gpuir_snippet(const gpuir_query *q, const gpuir_snippet_desc *desc, const char *text,
    size_t len, char *out, size_t cap, gpuir_error *err) {
  gpuir_mark marks[GPUIR__SNIPPET_MARKS];
  gpuir_passages_desc how;
  gpuir_snippet_desc d;
  gpuir_passage passage;
  gpuir_passage_room room;
  gpuir__snippet s;
  int status;
  memset(&d, 0, sizeof d);
  memset(&s, 0, sizeof s);
  memset(&how, 0, sizeof how);
  memset(&room, 0, sizeof room);
  if (desc) d = *desc;
  s.open_len = d.open ? strlen(d.open) : 0;
  s.close_len = d.close ? strlen(d.close) : 0;
  if (!out || cap < s.close_len + 16) return gpuir__refuse(err, "gpuir_snippet: no room for a line");
  s.out = out;
  s.cap = cap - s.close_len - 4;
  out[0] = 0;
  room.passages = &passage;
  room.marks = marks;
  room.cap = 1;
  room.marks_cap = GPUIR__SNIPPET_MARKS;
  how.most = d.most ? d.most : 160;
  status = gpuir_passages(q, &how, text, len, &room, err);
  if (!status) gpuir__snippet_write(&s, &d, text, len, &room);
  return status;
}
