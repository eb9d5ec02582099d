
/* ========
 * [68-look]  a second look at hits: program code by names; words that hits have in common
 *
 * See [api-look] for the formula. Each of its rules is a function of its own: gpuir__look_together, _asked, _named,
 * _defines, and what lowers a file: gpuir__look_is_test, _is_aside, _is_other. All is done in integers, over names that
 * are read once, so that it costs some ten thousand comparisons of bytes and no look into a text.
 *
 * Uses      [16-base], [24-postings], [30-analysis], [32-dictionary], [33-analyzers], [36-documents], [37-layout],
 *           [41-reader], [42-snapshot], [44-inversion], [51-query], [52-parse].
 * Start at  gpuir_look.
 * Tests     tests/unit/68_look.c
 * ======*/

#ifndef GPUIR_NO_RANK
#define GPUIR__LOOK_WORDS 64u /* of a query or a name that are compared */
#define GPUIR__LOOK_SYMBOLS 8u
#define GPUIR__LOOK_FOLDERS 64u /* that are kept */

/* What the rules weigh, and to what they lower a score, in hundredths. */
#define GPUIR__LOOK_TOGETHER 50u
#define GPUIR__LOOK_ASKED 120u
#define GPUIR__LOOK_NAMED 50u
#define GPUIR__LOOK_DEFINES 100u
#define GPUIR__LOOK_LOWERED 30u

/* Names of folders of tests. */
static const char gpuir__look_tests[][GPUIR__LISTED] = {"__mocks__", "__tests__", "e2e", "fixture", "fixtures", "mock",
    "mocks", "spec", "specs", "test", "testdata", "testing", "tests", "testsuite", "unittest", "unittests"};
/* Names of folders of examples, of documentation, and of what others wrote. */
static const char gpuir__look_asides[][GPUIR__LISTED] = {"3rdparty", "_examples", "_vendor", "bench", "benchmark",
    "benchmarks", "debian", "demo", "demos", "deps", "doc", "docs", "docs_src", "documentation", "example", "examples",
    "external", "generated", "i18n", "locale", "locales", "node_modules", "sample", "samples", "site-packages",
    "third-party", "third_party", "thirdparty", "tutorial", "tutorials", "vendor", "vendored", "website"};

typedef struct gpuir__look_word {
  const char *text;
  uint32_t len;
} gpuir__look_word;

typedef struct gpuir__look_words {
  unsigned n;
  gpuir__look_word word[GPUIR__LOOK_WORDS];
} gpuir__look_words;

/* A file: the documents whose names are the same but for the lines at the end. */
typedef struct gpuir__look_file {
  const char *path;
  uint32_t len, best; /* best: the number of its best hit */
  uint64_t sum; /* of its hits' scores */
  int defines; /* it defines a symbol of the query */
  uint32_t score;
} gpuir__look_file;

/* Folders of a path, and what they tell. */
typedef struct gpuir__look_folders {
  const char *path; /* NULL: none */
  size_t len;
  unsigned tell;
} gpuir__look_folders;

typedef struct gpuir__look {
  const gpuir_query *q;
  const gpuir_hit *hits;
  const gpuir_look_fact *facts; /* of hits of several shards; NULL: the query's index has them */
  unsigned nhits, nfiles, nsymbols;
  uint64_t most; /* the greatest sum of a file's scores */
  int for_tests, for_asides; /* the query asks for tests; for examples and the like */
  gpuir__look_words asked; /* in small letters */
  gpuir__look_word symbols[GPUIR__LOOK_SYMBOLS];
  gpuir__buf names, text; /* of all documents; of the query, in small letters */
  uint8_t file_of[GPUIR_LOOK_HITS];
  uint8_t slots[512]; /* numbers of files plus 1, by the hash of their paths */
  uint64_t order[GPUIR_LOOK_HITS]; /* what is sorted */
  gpuir__look_folders folders[GPUIR__LOOK_FOLDERS]; /* seen last, by the hash of their paths */
  gpuir__look_file files[GPUIR_LOOK_HITS];
} gpuir__look;

/* ---- words */

static inline int gpuir__look_is_large(char c) { return c >= 'A' && c <= 'Z'; }
static inline int gpuir__look_is_small(char c) { return (c >= 'a' && c <= 'z') || (c & 0x80); }
static inline int gpuir__look_is_digit(char c) { return c >= '0' && c <= '9'; }
static inline int gpuir__look_is_word(char c) {
  return gpuir__look_is_large(c) || gpuir__look_is_small(c) || gpuir__look_is_digit(c) || c == '_';
}

/* Returns where the word ends that begins at text[i], a letter or a digit: at a digit behind letters, a letter behind
 * digits, an inner capital, or the last of several capitals if a small letter follows. */
static size_t gpuir__look_word_end(const char *text, size_t len, size_t i) {
  size_t at = i;
  if (gpuir__look_is_digit(text[i])) {
    while (i < len && gpuir__look_is_digit(text[i])) i++;
    return i;
  }
  while (i < len && gpuir__look_is_large(text[i])) i++;
  if (i - at > 1 && i < len && gpuir__look_is_small(text[i])) return i - 1;
  while (i - at <= 1 && i < len && gpuir__look_is_small(text[i])) i++;
  if (i == at + 1 || gpuir__look_is_large(text[i - 1])) return i;
  while (i < len && gpuir__look_is_small(text[i])) i++;
  return i;
}

/* Appends the words of a text, as far as there is room for them. */
static void gpuir__look_cut(const char *text, size_t len, gpuir__look_words *to) {
  size_t i = 0;
  while (i < len && to->n < GPUIR__LOOK_WORDS) {
    size_t end;
    if (!gpuir__look_is_word(text[i]) || text[i] == '_') {
      i++;
      continue;
    }
    end = gpuir__look_word_end(text, len, i);
    to->word[to->n].text = text + i;
    to->word[to->n++].len = (uint32_t)(end - i);
    i = end;
  }
}

/* Says whether two words in small letters are alike: see [api-look]. */
static int gpuir__look_alike(const gpuir__look_word *x, const gpuir__look_word *y) {
  const uint32_t least = gpuir__min32(x->len, y->len), longest = x->len + y->len - least;
  uint32_t same = 0;
  if (x->text[0] != y->text[0]) return 0;
  while (same < least && x->text[same] == y->text[same]) same++;
  if (same == least && (least >= 3 || least == longest)) return 1;
  return same >= 4 && 5 * same >= 3 * least && longest - same <= 5;
}

static int gpuir__look_has(const gpuir__look_words *words, const gpuir__look_word *word) {
  unsigned i;
  for (i = 0; i < words->n; i++)
    if (gpuir__look_alike(&words->word[i], word)) return 1;
  return 0;
}

/* ---- the query */

/* Returns how long the part of a name is that text[0..n) begins with. */
static size_t gpuir__look_name_part(const char *text, size_t n) {
  size_t i = 0;
  if (!n || (text[0] & 0x80) || gpuir__look_is_digit(text[0])) return 0;
  while (i < n && !(text[i] & 0x80) && (gpuir__look_is_word(text[i]) || text[i] == '$')) i++;
  return i;
}

/* Says whether text[0..n) is written as names are: an inner capital, two and a small letter, or an underscore. */
static int gpuir__look_is_name(const char *text, size_t n) {
  size_t i;
  for (i = 1; i < n; i++) {
    const char before = text[i - 1], c = text[i];
    if (gpuir__look_is_large(c) && gpuir__look_is_small(before)) return 1;
    if (i > 1 && gpuir__look_is_small(c) && gpuir__look_is_large(before) && gpuir__look_is_large(text[i - 2])) return 1;
    if (c == '_' && i + 1 < n && before != '_' && before != '$' && text[i + 1] != '_' && text[i + 1] != '$') return 1;
  }
  return 0;
}

/* Takes a typed word as a symbol, if it is one: parts of names, parted by :: -> . or #, of which the last counts. */
static void gpuir__look_symbol(gpuir__look *x, const char *text, size_t n, int alone) {
  size_t part, at = 0, i;
  int colons = 0;
  if (n > 2 && text[n - 2] == '(' && text[n - 1] == ')') n -= 2;
  for (;;) {
    part = gpuir__look_name_part(text + at, n - at);
    if (!part) return;
    if (at + part == n) break;
    i = at + part;
    if (n - i > 2 && (!memcmp(text + i, "::", 2) || !memcmp(text + i, "->", 2))) at = i + 2;
    else if (text[i] == '.' || text[i] == '#') at = i + 1;
    else return;
    colons |= text[i] == ':';
  }
  if (x->nsymbols == GPUIR__LOOK_SYMBOLS || (!alone && !colons && !gpuir__look_is_name(text, n))) return;
  for (i = 0; i < x->nsymbols; i++)
    if (x->symbols[i].len == part && !memcmp(x->symbols[i].text, text + at, part)) return;
  x->symbols[x->nsymbols].text = text + at;
  x->symbols[x->nsymbols++].len = (uint32_t)part;
}

/* Steps to the next word that is typed and asked for, also within a phrase, which *quoted says. 0 behind the last. */
static int gpuir__look_typed(const gpuir_query *q, const char *text, size_t len, size_t *at, int *quoted,
    gpuir__look_word *word) {
  size_t i = *at, start;
  for (;;) {
    int negated = 0;
    while (i < len && gpuir__is_space(text[i])) i++;
    if (*quoted && i < len && text[i] == '"') {
      *quoted = 0;
      i++;
      continue;
    }
    if (i == len) return 0;
    if (!q->no_operators && !*quoted) {
      negated = text[i] == '-';
      i += (size_t)negated;
      *quoted = i < len && text[i] == '"';
      i += (size_t)*quoted;
    }
    start = i;
    while (i < len && (negated && *quoted ? text[i] != '"' : !gpuir__is_space(text[i]) && !(*quoted && text[i] == '"')))
      i++;
    *at = i;
    word->text = text + start;
    while (!q->no_operators && !*quoted && i > start && (text[i - 1] == '*' || text[i - 1] == '~')) i--;
    word->len = (uint32_t)(i - start);
    i = *at;
    if (word->len && !negated) return 1;
  }
}

/* Says whether a word in small letters says little in a question. */
static int gpuir__look_is_stop(const gpuir__look_word *word) {
  const char *at = gpuir__stop_questions;
  while (*at) {
    const size_t n = strcspn(at, " ");
    if (n == word->len && !memcmp(at, word->text, n)) return 1;
    at += n + (at[n] == ' ');
  }
  return 0;
}

/* Takes from the words of the query those that come again, and says what they ask for. */
static void gpuir__look_sift(gpuir__look *x, gpuir__look_words *all) {
  unsigned i, j, n = 0;
  for (i = 0; i < all->n; i++) {
    const gpuir__look_word w = all->word[i];
    for (j = 0; j < n && (all->word[j].len != w.len || memcmp(all->word[j].text, w.text, w.len) != 0); j++) {}
    if (j == n) all->word[n++] = w;
  }
  all->n = n;
  for (i = 0; i < n; i++) {
    const gpuir__look_word *w = &all->word[i];
    x->for_tests |= GPUIR__LISTED_IN(gpuir__look_tests, w->text, w->len);
    x->for_asides |= GPUIR__LISTED_IN(gpuir__look_asides, w->text, w->len);
    if (!gpuir__look_is_stop(w)) x->asked.word[x->asked.n++] = *w;
  }
  if (!x->asked.n) x->asked = *all;
}

/* Finds the words and the symbols of the query. */
static int gpuir__look_query(gpuir__look *x, const char *text, size_t len) {
  gpuir__look_words all;
  gpuir__look_word word;
  size_t at = 0, i;
  unsigned typed = 0;
  int quoted = 0;
  char *small = (char *)gpuir__buf_room(&x->q->a, &x->text, len + 1);
  if (!small) return GPUIR_E_NOMEM;
  for (i = 0; i < len; i++) small[i] = gpuir__small(text[i]);
  all.n = 0;
  while (gpuir__look_typed(x->q, text, len, &at, &quoted, &word)) {
    const unsigned before = all.n;
    unsigned j;
    typed++;
    gpuir__look_cut(word.text, word.len, &all);
    for (j = before; j < all.n; j++) all.word[j].text = small + (all.word[j].text - text);
  }
  at = 0;
  quoted = 0;
  while (gpuir__look_typed(x->q, text, len, &at, &quoted, &word))
    gpuir__look_symbol(x, word.text, word.len, typed == 1);
  gpuir__look_sift(x, &all);
  return GPUIR_OK;
}

/* ---- files */

/* Finds the file that has a path, or makes it. */
static unsigned gpuir__look_file_of(gpuir__look *x, const char *path, size_t len, unsigned hit) {
  unsigned slot = (unsigned)gpuir__hash(path, len, 0) & 511u;
  gpuir__look_file *f;
  for (; x->slots[slot]; slot = (slot + 1) & 511u) {
    f = &x->files[x->slots[slot] - 1];
    if (f->len == len && !memcmp(f->path, path, len)) return x->slots[slot] - 1u;
  }
  f = &x->files[x->nfiles];
  memset(f, 0, sizeof *f);
  f->path = path;
  f->len = (uint32_t)len;
  f->best = hit;
  x->slots[slot] = (uint8_t)(x->nfiles + 1);
  return x->nfiles++;
}

/* Reads the names of the hits' documents, each once: x->order[i] becomes where the name of hit i begins, and its length
 * below that. */
static int gpuir__look_names(gpuir__look *x) {
  unsigned i;
  for (i = 0; i < x->nhits; i++) {
    gpuir_doc doc;
    uint32_t len = x->facts ? x->facts[i].len : 0;
    char *to;
    const int status = x->facts ? GPUIR_OK : gpuir_doc_get(x->q->ix, x->hits[i].docid, &doc);
    if (status) return status;
    if (!x->facts) len = (uint32_t)doc.name_len;
    to = (char *)gpuir__buf_room(&x->q->a, &x->names, (size_t)len + 1);
    if (!to) return GPUIR_E_NOMEM;
    if (!x->facts) (void)gpuir_doc_name(&doc, to, (size_t)len + 1);
    else if (len) memcpy(to, x->facts[i].name, len);
    x->order[i] = (uint64_t)x->names.len << 32 | len;
    x->names.len += (size_t)len + 1;
  }
  return GPUIR_OK;
}

/* Puts hits of one file together. */
static int gpuir__look_files(gpuir__look *x) {
  unsigned i;
  const int status = gpuir__look_names(x);
  for (i = 0; i < x->nhits && !status; i++) {
    const char *path = (const char *)x->names.data + (x->order[i] >> 32);
    const unsigned file = gpuir__look_file_of(x, path, gpuir__path_of(path, (uint32_t)x->order[i]), i);
    x->file_of[i] = (uint8_t)file;
    x->files[file].sum += x->hits[i].score;
    x->most = gpuir__max64(x->most, x->files[file].sum);
  }
  return status;
}

/* Sorts numbers, the greatest first, by Shell's method with Ciura's gaps. */
static void gpuir__look_sort(uint64_t *x, unsigned n) {
  static const unsigned gaps[] = {132, 57, 23, 10, 4, 1};
  unsigned g, i, j;
  for (g = 0; g < sizeof gaps / sizeof *gaps; g++) {
    const unsigned gap = gaps[g];
    for (i = gap; i < n; i++) {
      const uint64_t v = x[i];
      for (j = i; j >= gap && x[j - gap] < v; j -= gap) x[j] = x[j - gap];
      x[j] = v;
    }
  }
}

/* ---- definitions */

/* Marks the files of hits in a leaf that hold a term. x->order has the hits by docID, the last first. */
static int gpuir__look_mark(gpuir__look *x, const gpuir__leaf *leaf, const gpuir__defined *term) {
  const gpuir_allocator *a = &x->q->a;
  gpuir__cursor *c;
  uint64_t id;
  unsigned i;
  int status;
  if (gpuir__term_find(leaf->seg, term->term, term->len, &id)) return GPUIR_OK;
  c = (gpuir__cursor *)gpuir__alloc(a, sizeof *c);
  if (!c) return GPUIR_E_NOMEM;
  gpuir__cursor_reset(c);
  status = gpuir__list_open(leaf->seg, a, id, &c->list);
  for (i = x->nhits; i-- && !status;) {
    const uint32_t docid = (uint32_t)(x->order[i] >> 8);
    if (docid < leaf->base || docid - leaf->base >= leaf->seg->stat.documents) continue;
    if (gpuir__cursor_seek(c, docid - leaf->base) == docid - leaf->base)
      x->files[x->file_of[x->order[i] & 255]].defines = 1;
  }
  if (!status) gpuir__list_close(a, &c->list);
  gpuir__free(a, c, sizeof *c);
  return status;
}

/* Finds the files that define a symbol of the query. */
static int gpuir__look_defines(gpuir__look *x, gpuir_error *err) {
  const gpuir_index *ix = x->q->ix;
  unsigned i;
  size_t leaf;
  int status = GPUIR_OK;
  if (!gpuir__spec_is_text(ix->leaves[0].seg->meta.analyzer)) return GPUIR_OK;
  for (i = 0; i < x->nhits; i++) x->order[i] = (uint64_t)x->hits[i].docid << 8 | i;
  gpuir__look_sort(x->order, x->nhits);
  for (i = 0; i < x->nsymbols && !status; i++) {
    gpuir__defined term;
    gpuir__defined_begin(&term);
    status = gpuir_analyze_places(ix, x->symbols[i].text, x->symbols[i].len, 0, gpuir__defined_take, &term, err);
    for (leaf = 0; leaf < ix->nleaves && !status && term.len > 2; leaf++)
      status = gpuir__look_mark(x, &ix->leaves[leaf], &term);
  }
  return status;
}

/* Takes from what is told of the hits which files define a symbol of the query. */
static void gpuir__look_told(gpuir__look *x) {
  unsigned i;
  for (i = 0; i < x->nhits; i++) x->files[x->file_of[i]].defines |= x->facts[i].defines != 0;
}

/* ---- rules: what they give is in hundredths of 2^-16 of the best hit's score */

/* The share of the file's hits in the greatest sum of scores. */
static uint64_t gpuir__look_together(const gpuir__look *x, const gpuir__look_file *f) {
  return x->most ? GPUIR__LOOK_TOGETHER * ((f->sum << 16) / x->most) : 0;
}

/* The share of the query's words that the name or its folder's has. */
static uint64_t gpuir__look_asked(const gpuir__look *x, const gpuir__look_words *name,
    const gpuir__look_words *folder) {
  unsigned i, n = 0;
  for (i = 0; i < x->asked.n; i++)
    n += gpuir__look_has(name, &x->asked.word[i]) || gpuir__look_has(folder, &x->asked.word[i]);
  return x->asked.n ? ((uint64_t)(GPUIR__LOOK_ASKED * n) << 16) / x->asked.n : 0;
}

/* The share of the name's words that the query has. */
static uint64_t gpuir__look_named(const gpuir__look *x, const gpuir__look_words *name) {
  unsigned i, n = 0;
  for (i = 0; i < name->n; i++) n += (unsigned)gpuir__look_has(&x->asked, &name->word[i]);
  return name->n ? ((uint64_t)(GPUIR__LOOK_NAMED * n) << 16) / name->n : 0;
}

/* Says whether text[0..n) is, or with `end` ends with, one of `words`, which blanks part. */
static int gpuir__look_among(const char *text, size_t n, const char *words, int end) {
  while (*words) {
    const size_t len = strcspn(words, " ");
    if ((n == len || (end && n > len)) && !memcmp(text + n - len, words, len)) return 1;
    words += len + (words[len] == ' ');
  }
  return 0;
}

/* What is told by folders: they are of tests; of examples and the like. */
enum { GPUIR__LOOK_TESTS = 1, GPUIR__LOOK_ASIDES = 2 };

/* Returns what the folders path[0..len) tell, each of which ends with a slash. Many files lie in the same ones, so that
 * what was found last is kept, by its hash. */
static unsigned gpuir__look_folders_tell(gpuir__look *x, const char *path, size_t len) {
  gpuir__look_folders *known = &x->folders[gpuir__hash(path, len, 0) % GPUIR__LOOK_FOLDERS];
  size_t i, start = 0;
  if (known->path && known->len == len && !memcmp(known->path, path, len)) return known->tell;
  known->path = path;
  known->len = len;
  known->tell = 0;
  for (i = 0; i < len; i++) {
    if (path[i] != '/') continue;
    if (GPUIR__LISTED_IN(gpuir__look_tests, path + start, i - start)) known->tell |= GPUIR__LOOK_TESTS;
    else if (GPUIR__LISTED_IN(gpuir__look_asides, path + start, i - start)) known->tell |= GPUIR__LOOK_ASIDES;
    start = i + 1;
  }
  return known->tell;
}

/* What the name of a file says. */
typedef struct gpuir__look_name {
  const char *path, *base, *ending; /* base: its last component */
  size_t folders, rest, ending_len; /* bytes: of the folders; of the base without its ending */
  int pointed, capital; /* a point parts the base; it begins with a capital */
  unsigned tell; /* by its folders */
  gpuir__look_words stem,
      folder; /* up to the first point; of the folder that the file lies in; both in small letters */
  gpuir__look_word first, last; /* of the words of the base without its ending, in small letters; of 0 bytes: none */
} gpuir__look_name;

/* Reads a file's path: its ending, and the words of its name and of the folder above, as parted by points, signs and
 * inner capitals. Makes the letters of f->path small afterwards, since capitals part words. */
static void gpuir__look_read(const gpuir__look_file *f, gpuir__look_name *name) {
  char *small = (char *)(uintptr_t)f->path; /* this part's own copy */
  const size_t folders = gpuir__base_of(f->path, f->len), len = f->len - folders;
  size_t stem = 0, above = folders ? gpuir__base_of(f->path, folders - 1) : 0;
  gpuir__look_words all;
  memset(name, 0, offsetof(gpuir__look_name, stem));
  name->path = f->path;
  name->base = f->path + folders;
  name->folders = folders;
  name->ending_len = gpuir__ending_of(name->base, len, &name->ending);
  name->pointed = name->ending_len || (len > 1 && name->base[len - 1] == '.');
  name->capital = len && gpuir__look_is_large(name->base[0]);
  name->rest = name->pointed ? len - name->ending_len - 1 : len;
  while (stem < len && name->base[stem] != '.') stem++;
  name->stem.n = name->folder.n = all.n = 0;
  gpuir__look_cut(name->base, stem, &name->stem);
  if (folders) gpuir__look_cut(f->path + above, folders - 1 - above, &name->folder);
  name->first.len = name->last.len = 0;
  if (stem == name->rest) { /* there is one point, or none */
    if (name->stem.n) name->first = name->stem.word[0], name->last = name->stem.word[name->stem.n - 1];
  } else {
    gpuir__look_cut(name->base, name->rest, &all);
    if (all.n) name->first = all.word[0], name->last = all.word[all.n - 1];
  }
  for (above = 0; above < f->len; above++) small[above] = gpuir__small(small[above]);
}

/* It is a test, by its folders or its name: tests/x.c, test_x.py, x_test.go, x.spec.js, XTest.java, x.bats. */
static int gpuir__look_is_test(const gpuir__look_name *name) {
  return (name->tell & GPUIR__LOOK_TESTS) || gpuir__look_among(name->ending, name->ending_len, "bats t", 0) ||
      (name->first.len && gpuir__look_among(name->first.text, name->first.len, "test tests conftest", 0)) ||
      (name->last.len && gpuir__look_among(name->last.text, name->last.len, "test tests spec specs", 0));
}

/* It is an example, documentation, or what others or programs wrote: docs/x.c, vendor/x.go, x.min.js, x_pb2.py. */
static int gpuir__look_is_aside(const gpuir__look_name *name) {
  return (name->tell & GPUIR__LOOK_ASIDES) ||
      gpuir__look_among(name->base, name->rest, ".min .pb .d .generated _generated _pb2 _pb2_grpc", 1);
}

/* It is no program code: its ending is none of sources, or it has none and begins with a capital, as README does. */
static int gpuir__look_is_other(const gpuir__look_name *name) {
  return name->pointed ? !gpuir__is_source_ending(name->ending, name->ending_len) : name->capital;
}

/* Returns a file's score. */
static uint32_t gpuir__look_score(gpuir__look *x, const gpuir__look_file *f) {
  gpuir__look_name name;
  uint64_t value, score;
  gpuir__look_read(f, &name);
  name.tell = gpuir__look_folders_tell(x, name.path, name.folders);
  value = gpuir__look_together(x, f) + gpuir__look_asked(x, &name.stem, &name.folder) +
      gpuir__look_named(x, &name.stem) + (f->defines ? (uint64_t)GPUIR__LOOK_DEFINES << 16 : 0);
  score = x->hits[f->best].score + (x->hits[0].score * value) / (UINT64_C(100) << 16);
  if (!x->for_tests && gpuir__look_is_test(&name)) score = score * GPUIR__LOOK_LOWERED / 100;
  if (!x->for_asides && gpuir__look_is_aside(&name)) score = score * GPUIR__LOOK_LOWERED / 100;
  if (gpuir__look_is_other(&name)) score = score * GPUIR__LOOK_LOWERED / 100;
  return score < UINT32_MAX ? (uint32_t)score : UINT32_MAX;
}

/* ---- the answer */

static void gpuir__look_put(gpuir_looked *to, const gpuir_hit *hit, uint64_t score) {
  to->docid = hit->docid;
  to->plain = hit->score;
  to->score = (uint32_t)score;
}

/* Writes the files' best hits by score, behind them their other hits, and then those that were not looked at. */
static void gpuir__look_write(gpuir__look *x, size_t n, gpuir_looked *looked) {
  uint8_t rank[GPUIR_LOOK_HITS];
  uint64_t least;
  unsigned i, more = 0;
  size_t at;
  for (i = 0; i < x->nfiles; i++) x->order[i] = (uint64_t)x->files[i].score << 8 | (255 - i);
  gpuir__look_sort(x->order, x->nfiles);
  for (i = 0; i < x->nfiles; i++) {
    const unsigned file = 255 - (unsigned)(x->order[i] & 255);
    rank[file] = (uint8_t)i;
    gpuir__look_put(&looked[i], &x->hits[x->files[file].best], x->files[file].score);
  }
  least = looked[x->nfiles - 1].score;
  for (i = 0; i < x->nhits; i++) {
    const gpuir__look_file *f = &x->files[x->file_of[i]];
    const uint32_t best = x->hits[f->best].score;
    if (f->best == i) continue;
    x->order[more++] = gpuir__min64(least, (uint64_t)f->score * x->hits[i].score / (best ? best : 1)) << 16 |
        (uint64_t)(255 - rank[x->file_of[i]]) << 8 | (255 - i);
  }
  gpuir__look_sort(x->order, more);
  for (i = 0; i < more; i++)
    gpuir__look_put(&looked[x->nfiles + i], &x->hits[255 - (x->order[i] & 255)], x->order[i] >> 16);
  least = looked[x->nhits - 1].score;
  for (at = x->nhits; at < n; at++) {
    least = gpuir__min64(least, x->hits[at].score);
    gpuir__look_put(&looked[at], &x->hits[at], least);
  }
}

/* Ranks the hits anew. */
static int gpuir__look_run(gpuir__look *x, const char *text, size_t len, size_t n, gpuir_looked *looked,
    gpuir_error *err) {
  unsigned i;
  int status = gpuir__look_query(x, text, len);
  if (!status) status = gpuir__look_files(x);
  if (!status && x->facts) gpuir__look_told(x);
  else if (!status && x->nsymbols) status = gpuir__look_defines(x, err);
  if (status) return status;
  for (i = 0; i < x->nfiles; i++) x->files[i].score = gpuir__look_score(x, &x->files[i]);
  gpuir__look_write(x, n, looked);
  return GPUIR_OK;
}

/* Begins a look at hits[0..n). NULL: there is no memory. */
static gpuir__look *gpuir__look_begin(const gpuir_query *query, const gpuir_hit *hits, size_t n) {
  gpuir__look *x = (gpuir__look *)gpuir__alloc_zero(&query->a, sizeof *x);
  if (!x) return NULL;
  x->q = query;
  x->hits = hits;
  x->nhits = (unsigned)gpuir__min64(n, GPUIR_LOOK_HITS);
  return x;
}

/* Ends a look, and returns its status; `why`: what was said of it. */
static int gpuir__look_end(gpuir__look *x, int status, gpuir_error *why, gpuir_error *err) {
  const gpuir_allocator a = x->q->a;
  gpuir__buf_free(&a, &x->names);
  gpuir__buf_free(&a, &x->text);
  gpuir__free(&a, x, sizeof *x);
  if (!status) return GPUIR_OK;
  if (!why->code) (void)gpuir__fail(why, status, 0, "the hits cannot be ranked anew: %s", gpuir_strerror(status));
  if (err) *err = *why;
  return status;
}

/* Ranks hits anew, whose facts are given or, without any, the index's. */
static int gpuir__look_at(const gpuir_query *query, const char *text, size_t len, const gpuir_hit *hits,
    const gpuir_look_fact *facts, size_t n, gpuir_looked *looked, gpuir_error *err) {
  gpuir_error why = {0, 0, ""};
  gpuir__look *x;
  size_t i;
  if (!n || !hits[0].score) {
    for (i = 0; i < n; i++) gpuir__look_put(&looked[i], &hits[i], hits[i].score);
    return GPUIR_OK;
  }
  x = gpuir__look_begin(query, hits, n);
  if (!x) return gpuir__fail_nomem(err);
  x->facts = facts;
  return gpuir__look_end(x, gpuir__look_run(x, text, len, n, looked, &why), &why, err);
}

GPUIR__COLD GPUIR_API int gpuir_look(const gpuir_query *query, const char *text, size_t len, const gpuir_hit *hits,
    size_t n, gpuir_looked *looked, gpuir_error *err) {
  if (!query || (!text && len) || (n && (!hits || !looked))) return gpuir__refuse(err, "gpuir_look: NULL argument");
  return gpuir__look_at(query, text, len, hits, NULL, n, looked, err);
}

GPUIR__COLD GPUIR_API int gpuir_look_facts(const gpuir_query *query, const char *text, size_t len,
    const gpuir_hit *hits, const gpuir_look_fact *facts, size_t n, gpuir_looked *looked, gpuir_error *err) {
  if (!query || (!text && len) || (n && (!hits || !facts || !looked)))
    return gpuir__refuse(err, "gpuir_look_facts: NULL argument");
  return gpuir__look_at(query, text, len, hits, facts, n, looked, err);
}

GPUIR__COLD GPUIR_API int gpuir_look_defines(const gpuir_query *query, const char *text, size_t len,
    const gpuir_hit *hits, size_t n, uint8_t *defines, gpuir_error *err) {
  gpuir_error why = {0, 0, ""};
  gpuir__look *x;
  unsigned i;
  int status;
  if (!query || (!text && len) || n > GPUIR_LOOK_HITS || (n && (!hits || !defines)))
    return gpuir__refuse(err, "gpuir_look_defines: NULL argument, or more than %d hits", GPUIR_LOOK_HITS);
  x = gpuir__look_begin(query, hits, n);
  if (!x) return gpuir__fail_nomem(err);
  for (i = 0; i < x->nhits; i++) x->file_of[i] = (uint8_t)i; /* each hit is told of by itself */
  status = gpuir__look_query(x, text, len);
  if (!status && x->nsymbols) status = gpuir__look_defines(x, &why);
  for (i = 0; i < x->nhits; i++) defines[i] = (uint8_t)x->files[i].defines;
  return gpuir__look_end(x, status, &why, err);
}

/* ---- words to expand a query by */

/* A token of a hit's text. */
typedef struct gpuir__model_token {
  const uint8_t *text;
  uint32_t len, hit;
} gpuir__model_token;

/* The tokens of all texts, on the way to what they weigh. */
typedef struct gpuir__model {
  gpuir_allocator a;
  gpuir__buf bytes; /* of the tokens, each behind its length */
  gpuir__buf tokens; /* gpuir__model_token, sorted */
  gpuir__buf words; /* gpuir_expansion_term, sorted */
  size_t n; /* tokens of the text that is read */
} gpuir__model;

static int gpuir__model_take(void *sink, const char *token, size_t len, unsigned advance) {
  gpuir__model *m = (gpuir__model *)sink;
  const uint8_t n = (uint8_t)len;
  if (!advance || m->n == GPUIR_EXPANSION_TOKENS) return GPUIR_OK;
  m->n++;
  return gpuir__buf_put(&m->a, &m->bytes, &n, 1) || gpuir__buf_put(&m->a, &m->bytes, token, len) ? GPUIR_E_NOMEM
                                                                                                 : GPUIR_OK;
}

/* Orders tokens by their bytes, equal ones by their hits. */
static int gpuir__model_token_compare(const void *x, const void *y) {
  const gpuir__model_token *a = (const gpuir__model_token *)x, *b = (const gpuir__model_token *)y;
  const int order = gpuir__compare_bytes(a->text, a->len, b->text, b->len);
  return order ? order : a->hit < b->hit ? -1 : a->hit > b->hit;
}

/* Orders words by weight, the heaviest first, equal ones by their bytes. */
static int gpuir__model_compare(const void *x, const void *y) {
  const gpuir_expansion_term *a = (const gpuir_expansion_term *)x, *b = (const gpuir_expansion_term *)y;
  if (a->weight != b->weight) return a->weight > b->weight ? -1 : 1;
  return gpuir__compare_bytes(a->term, a->len, b->term, b->len);
}

/* Reads the texts into sorted tokens. counts[i] becomes the number of hit i's. */
static int gpuir__model_read(gpuir__model *m, const gpuir_index *ix, const char *const *texts, const size_t *lens,
    size_t n, uint32_t *counts, gpuir_error *err) {
  size_t i, at = 0, all = 0, j;
  int status = GPUIR_OK;
  gpuir__model_token *t;
  for (i = 0; i < n && !status; i++) {
    m->n = 0;
    if (texts[i]) status = gpuir_analyze_places(ix, texts[i], lens[i], 0, gpuir__model_take, m, err);
    counts[i] = (uint32_t)m->n;
    all += m->n;
  }
  if (status) return status;
  t = (gpuir__model_token *)(void *)gpuir__buf_room(&m->a, &m->tokens, all * sizeof *t + 1);
  if (!t) return GPUIR_E_NOMEM;
  for (i = 0; i < n; i++)
    for (j = 0; j < counts[i]; j++, t++) {
      t->len = m->bytes.data[at];
      t->text = m->bytes.data + at + 1;
      t->hit = (uint32_t)i;
      at += 1 + (size_t)t->len;
    }
  m->tokens.len = all * sizeof *t;
  qsort(m->tokens.data, all, sizeof *t, gpuir__model_token_compare);
  return GPUIR_OK;
}

/* Weighs the words: sums, over hits, of score * tf / tokens in 2^-24. */
static int gpuir__model_weigh(gpuir__model *m, const gpuir_hit *hits, const uint32_t *counts, size_t n) {
  const gpuir__model_token *t = (const gpuir__model_token *)(const void *)m->tokens.data;
  const size_t all = m->tokens.len / sizeof *t;
  gpuir_expansion_term word;
  uint64_t scores = 0, sum;
  size_t i, j, end;
  for (i = 0; i < n; i++) scores += counts[i] ? hits[i].score : 0;
  for (i = 0; i < all && scores; i = end) {
    for (sum = 0, end = i; end < all && t[end].len == t[i].len && !memcmp(t[end].text, t[i].text, t[i].len); end = j) {
      for (j = end + 1; j < all && !gpuir__model_token_compare(&t[end], &t[j]);) j++;
      sum += hits[t[end].hit].score * gpuir__half_even((uint64_t)(j - end) << 24, counts[t[end].hit]);
    }
    word.weight = (uint32_t)gpuir__half_even(sum, scores << 8);
    word.len = (uint8_t)t[i].len;
    if (word.len < 2 || !word.weight || t[i].text[0] == 0xff) continue;
    memset(word.term, 0, sizeof word.term);
    memcpy(word.term, t[i].text, word.len);
    if (gpuir__buf_put(&m->a, &m->words, &word, sizeof word)) return GPUIR_E_NOMEM;
  }
  if (m->words.len) qsort(m->words.data, m->words.len / sizeof word, sizeof word, gpuir__model_compare);
  return GPUIR_OK;
}

/* Takes the heaviest words that are in at most a tenth of the documents. */
static int gpuir__model_choose(const gpuir__model *m, const gpuir_index *ix, unsigned most, gpuir_expansion *to) {
  const gpuir_expansion_term *w = (const gpuir_expansion_term *)(const void *)m->words.data;
  size_t i;
  for (i = 0; i < m->words.len / sizeof *w && to->n < most; i++) {
    uint32_t df = 0;
    const int status = gpuir_term_count(ix, w[i].term, w[i].len, &df, NULL);
    if (status && status != GPUIR_E_NOT_FOUND) return status;
    if (df && (uint64_t)df * 10 <= ix->documents) to->terms[to->n++] = w[i];
  }
  return GPUIR_OK;
}

GPUIR__COLD GPUIR_API int gpuir_expand(const gpuir_index *ix, const gpuir_hit *hits, const char *const *texts,
    const size_t *lens, size_t n, unsigned most, gpuir_expansion *expansion, gpuir_error *err) {
  gpuir__model m;
  uint32_t *counts;
  gpuir_error local = {0, 0, ""};
  int status;
  if (!ix || !expansion || most > GPUIR_MAX_TERMS || (n && (!hits || !texts || !lens)))
    return gpuir__refuse(err, "gpuir_expand: NULL argument, or more than %d words", GPUIR_MAX_TERMS);
  expansion->n = 0;
  if (ix->leaves[0].seg->shard)
    return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "a shard does not know the words of the whole collection");
  memset(&m, 0, sizeof m);
  m.a = ix->a;
  counts = (uint32_t *)gpuir__alloc_zero(&m.a, (n + 1) * sizeof *counts);
  status = counts ? gpuir__model_read(&m, ix, texts, lens, n, counts, &local) : GPUIR_E_NOMEM;
  if (!status) status = gpuir__model_weigh(&m, hits, counts, n);
  if (!status) status = gpuir__model_choose(&m, ix, most, expansion);
  gpuir__free(&m.a, counts, (n + 1) * sizeof *counts);
  gpuir__buf_free(&m.a, &m.bytes);
  gpuir__buf_free(&m.a, &m.tokens);
  gpuir__buf_free(&m.a, &m.words);
  if (!status) return GPUIR_OK;
  expansion->n = 0;
  if (!local.code) (void)gpuir__fail(&local, status, 0, "the query cannot be expanded: %s", gpuir_strerror(status));
  if (err) *err = local;
  return status;
}
#else /* GPUIR_NO_RANK */
GPUIR__COLD GPUIR_API int gpuir_expand(const gpuir_index *ix, const gpuir_hit *hits, const char *const *texts,
    const size_t *lens, size_t n, unsigned most, gpuir_expansion *expansion, gpuir_error *err) {
  (void)ix, (void)hits, (void)texts, (void)lens, (void)n, (void)most, (void)expansion;
  return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "the expansion of queries was left out by GPUIR_NO_RANK");
}

GPUIR__COLD GPUIR_API int gpuir_look(const gpuir_query *query, const char *text, size_t len, const gpuir_hit *hits,
    size_t n, gpuir_looked *looked, gpuir_error *err) {
  (void)query, (void)text, (void)len, (void)hits, (void)n, (void)looked;
  return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0, "the second look was left out by GPUIR_NO_RANK");
}

GPUIR__COLD GPUIR_API int gpuir_look_facts(const gpuir_query *query, const char *text, size_t len,
    const gpuir_hit *hits, const gpuir_look_fact *facts, size_t n, gpuir_looked *looked, gpuir_error *err) {
  (void)facts;
  return gpuir_look(query, text, len, hits, n, looked, err);
}

GPUIR__COLD GPUIR_API int gpuir_look_defines(const gpuir_query *query, const char *text, size_t len,
    const gpuir_hit *hits, size_t n, uint8_t *defines, gpuir_error *err) {
  (void)defines;
  return gpuir_look(query, text, len, hits, n, NULL, err);
}
#endif /* GPUIR_NO_RANK */

/* ---- whether documents are program code */

/* Returns how many of a leaf's live documents have the name of a source file, as the segment was told. */
static uint64_t gpuir__leaf_sources(const gpuir__leaf *leaf) {
  const gpuir__segment *seg = leaf->seg;
  uint64_t n = strtoull(seg->meta.sources, NULL, 10), word;
  uint32_t docid;
  if (n > seg->stat.documents) n = seg->stat.documents;
  for (word = 0; leaf->deleted && n && word < leaf->deleted->words; word++) {
    uint64_t bits = leaf->deleted->bits[word];
    for (; bits && n; bits &= bits - 1) {
      char name[GPUIR__JOINED_MAX + 1];
      gpuir_doc doc;
      docid = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits);
      if (gpuir__segment_doc(seg, docid, &doc)) continue;
      if (doc.name_piece_len[1]) n -= (uint64_t)gpuir__is_source(name, gpuir_doc_name(&doc, name, sizeof name));
      else n -= (uint64_t)gpuir__is_source(doc.name_piece[0], doc.name_len);
    }
  }
  return n;
}

GPUIR__COLD GPUIR_API int gpuir_index_is_code(const gpuir_index *ix, uint64_t *sources) {
  uint64_t n = 0;
  size_t i;
  for (i = 0; ix && i < ix->nleaves; i++) n += gpuir__leaf_sources(&ix->leaves[i]);
  if (sources) *sources = n;
  return n && 2 * n >= ix->documents;
}
