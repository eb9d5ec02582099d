
/* ========
 * [55-methods]  lab: intersection methods of the literature, and the table of all methods
 *
 * A method filters candidates through one compressed list; a searcher that names one uses it for AND and counting
 * instead of [54-lookup]. Some prepare something of a list first: a table of buckets, a regression line, the levels of
 * a skip list. tools/lab/isect.h runs one prepared intersection, and tools/lab/arrays.h has the same methods for plain
 * arrays. With GPUIR_NO_LAB there are the methods' names alone, so that a searcher that asks for one is told why.
 *
 * Uses      [18-codecs], [22-lab-lines] (lines, the codec lrc), [23-codings], [24-postings], [54-lookup].
 * Start at  gpuir__method (the seam), gpuir__methods (the table), gpuir__operand_prepare.
 * Tests     tests/unit/55_methods.c
 * ======*/

/* The methods of the literature, a row each. Of its functions one prepares what it needs of a list, one searches a
 * list, and one takes all operands at once. */
#define GPUIR__SEARCHES(method) NULL, gpuir__##method##_list, NULL
#define GPUIR__PREPARES(method) gpuir__##method##_prepare, gpuir__##method##_list, NULL
#define GPUIR__TAKES_ALL(function) NULL, NULL, function

/* clang-format off */
/*   name, title, paper and its section, parameter, what it needs of a list, functions */
#define GPUIR__LAB_METHODS(ROW) \
  ROW("merge",         "merge", "", 0, NOTHING, GPUIR__SEARCHES(merge)) \
  ROW("gallop",        "galloping search", "", 0, NOTHING, GPUIR__SEARCHES(gallop)) \
  ROW("binary",        "binary search", "Ao 2011, 4.2", 0, NOTHING, GPUIR__SEARCHES(binary)) \
  ROW("interpolation", "interpolation search", "Ao 2011, 4.3", 0, NOTHING, GPUIR__SEARCHES(interpolation)) \
  ROW("skip",          "skip list", "Ao 2011, 4.2", 0, DIRECTORY, GPUIR__PREPARES(skip)) \
  ROW("svs",           "SvS with block skipping", "Ding 2009, 8.1", 0, NOTHING, GPUIR__SEARCHES(svs)) \
  ROW("adaptive",      "Small Adaptive", "Tatikonda 2011, 3.1", 0, NOTHING, GPUIR__TAKES_ALL(gpuir__adaptive)) \
  ROW("pmf0",          "Parallel Merge Find, direct", "Ding 2009, 7", 0, NOTHING, GPUIR__SEARCHES(pmf)) \
  ROW("pmf1",          "Parallel Merge Find, 1 level of recursion", "Ding 2009, 7", 1, NOTHING, GPUIR__SEARCHES(pmf)) \
  ROW("pmf2",          "Parallel Merge Find, 2 levels of recursion", "Ding 2009, 7", 2, NOTHING, GPUIR__SEARCHES(pmf)) \
  ROW("pmf3",          "Parallel Merge Find, 3 levels of recursion", "Ding 2009, 7", 3, NOTHING, GPUIR__SEARCHES(pmf)) \
  ROW("pmf4",          "Parallel Merge Find, 4 levels of recursion", "Ding 2009, 7", 4, NOTHING, GPUIR__SEARCHES(pmf)) \
  ROW("lr-global",     "linear regression, global safe range", "Ao 2011, 4.3", 0, DOCIDS, GPUIR__PREPARES(lr)) \
  ROW("lr-local",      "linear regression, local safe ranges", "Ao 2011, 4.3", 0, DOCIDS, GPUIR__PREPARES(local)) \
  ROW("hs16",          "hash segmentation, buckets of 16", "Ao 2011, 4.4", 16, DOCIDS, GPUIR__PREPARES(hs)) \
  ROW("hs32",          "hash segmentation, buckets of 32", "Ao 2011, 4.4", 32, DOCIDS, GPUIR__PREPARES(hs)) \
  ROW("hs64",          "hash segmentation, buckets of 64", "Ao 2011, 4.4", 64, DOCIDS, GPUIR__PREPARES(hs)) \
  ROW("hs128",         "hash segmentation, buckets of 128", "Ao 2011, 4.4", 128, DOCIDS, GPUIR__PREPARES(hs)) \
  ROW("hs256",         "hash segmentation, buckets of 256", "Ao 2011, 4.4", 256, DOCIDS, GPUIR__PREPARES(hs)) \
  ROW("algorithm1",    "binary search in lists coded by linear regression", "Ao 2011, 5.3", 0, DOCIDS, \
      GPUIR__PREPARES(algorithm1)) \
  ROW("mergepath",     "MergePath", "Griffin 2018, 3.1.2", 0, NOTHING, GPUIR__SEARCHES(mergepath))
/* clang-format on */

#ifndef GPUIR_NO_LAB
#define GPUIR__SKIP_LEVELS 11u

/* What a method made of one operand before the search. */
typedef struct gpuir__prepared {
  uint64_t param; /* the method's */
  int (*stopped)(void *user); /* not 0: preparing ends with this status; NULL: never */
  void *user; /* of stopped */
  gpuir__buf aux; /* owns the arrays below */
  unsigned shift; /* right shift of a docID to its bucket or segment */
  uint32_t buckets; /* or segments */
  const uint32_t *first; /* [buckets + 1] index of a bucket's first docID */
  const struct gpuir__lr *lines; /* of regression: one, or one a segment */
  const uint32_t *level[GPUIR__SKIP_LEVELS]; /* of a skip list; [0] is the array or the directory itself */
  uint32_t level_n[GPUIR__SKIP_LEVELS]; /* items of each level */
  const uint32_t *heads; /* [block] last docID */
  gpuir__buf copy; /* owns the bytes of `coded`, if they are not the list's own */
  gpuir__stream coded; /* the docIDs in a codec with get() */
} gpuir__prepared;

/* What of a list a method prepares from. */
enum { GPUIR__NEEDS_NOTHING, GPUIR__NEEDS_DIRECTORY, GPUIR__NEEDS_DOCIDS };

typedef struct gpuir__method {
  const char *name, *title, *paper; /* the paper and its section; "": none */
  uint64_t param;
  int needs; /* GPUIR__NEEDS_ */
  /* Prepares an operand whose docIDs are docs[0..n). NULL: nothing to prepare. 0, NOMEM, LIMIT, or what stopped()
   * says. */
  int (*prepare)(const gpuir_allocator *a, gpuir__operand *o, const uint32_t *docs);
  /* Returns the number of candidates that the list holds, and may be called again with greater candidates. */
  uint32_t (*list)(gpuir__operand *o, const gpuir__pass *p);
  /* Instead of it: all operands at once, the first one an array. where[i], unless where is NULL, gets the
   * indices in operand i. */
  uint32_t (*all)(gpuir__operand *const *o, unsigned k, uint32_t *docs, uint32_t *const *where);
} gpuir__method;

/* ---- methods ---- */

#define GPUIR__SKIP_LOG 3u /* a skip list's level has each 8th docID of the one below */

/* A regression line turned round, which tells where in a list to look for x (Ao et al. 2011, section 4.3). */
typedef struct gpuir__lr {
  uint32_t inverse; /* indices a docID, times 2^32 */
  int64_t left, right; /* the safe range is [q - left, q + right], where q = x * inverse >> 32 */
} gpuir__lr;

/* Asks after each 16,384 steps of preparing whether to stop: 0, or the status to end with. */
static inline int gpuir__prepare_stopped(const gpuir__prepared *made, uint32_t step) {
  return step % 16384 == 16383 && made->stopped ? made->stopped(made->user) : GPUIR_OK;
}

/* ---- arithmetic that kernels share */

/* Predicts the index of x, up to a constant. `left` and `right` are the extremes of (prediction - index) over the
 * list by this very function, so that the index of any docID of the list lies in its safe range whatever was rounded
 * on the way: no error of the line needs to be bounded. The line's start is part of the two. */
GPUIR_HD int64_t gpuir__lr_predict(const gpuir__lr *r, uint32_t x) { return (int64_t)((uint64_t)x * r->inverse >> 32); }

/* Computes the safe range of x as [*lo, *hi) within [0, n), which may be empty: a list that holds x holds it there. */
GPUIR_HD void gpuir__lr_range(const gpuir__lr *r, uint32_t x, uint32_t n, uint32_t *lo, uint32_t *hi) {
  int64_t q = gpuir__lr_predict(r, x), from = q - r->left, to = q + r->right + 1;
  *lo = from < 0 ? 0 : from > (int64_t)n ? n : (uint32_t)from;
  *hi = to < (int64_t)*lo ? *lo : to > (int64_t)n ? n : (uint32_t)to;
}

/* Returns into how many segments Parallel Merge Find with `levels` of recursion divides m elements at each level: the
 * (levels + 1)-th root, so that the last segments have as many elements as there are segments at a level (Ding et al.
 * 2009, section 7.2, which gives no number). */
GPUIR_HD uint32_t gpuir__pmf_fan(uint32_t m, unsigned levels) {
  uint32_t fan = 1;
  for (;;) {
    uint64_t power = 1;
    unsigned i;
    for (i = 0; i <= levels && power < m; i++) power *= fan;
    if (power >= m) return fan;
    fan++;
  }
}

/* Returns the index of the first element of segment s, when m elements are divided into `fan` segments. */
GPUIR_HD uint32_t gpuir__pmf_splitter(uint32_t m, uint32_t fan, uint32_t s) {
  return (uint32_t)((uint64_t)m * s / fan);
}

/* Finds where diagonal d of the grid a x b meets the merge path: *i + *j = d, and all of a[0..i) and b[0..j) come
 * before the rest (Griffin, section 3.1.2). Equal docIDs are not separated: b's then counts as before, and *i + *j =
 * d + 1. */
GPUIR_HD void gpuir__mergepath_split(const uint32_t *a, uint32_t m, const uint32_t *b, uint32_t n, uint64_t d,
    uint32_t *i, uint32_t *j) {
  uint32_t lo = d > n ? (uint32_t)(d - n) : 0, hi = d < m ? (uint32_t)d : m;
  while (lo < hi) {
    uint32_t mid = lo + (hi - lo) / 2;
    if (a[mid] <= b[d - 1 - mid]) lo = mid + 1;
    else hi = mid;
  }
  *i = lo;
  *j = (uint32_t)(d - lo);
  if (*i && *j < n && a[*i - 1] == b[*j]) ++*j;
}

/* ---- element by element: gallop, binary, interpolation, skip, svs, lr, hs */

enum {
  GPUIR__FIND_BINARY,
  GPUIR__FIND_GALLOP,
  GPUIR__FIND_INTERPOLATION,
  GPUIR__FIND_SKIP,
  GPUIR__FIND_SVS,
  GPUIR__FIND_LR,
  GPUIR__FIND_LOCAL,
  GPUIR__FIND_HS
};

/* Finds the lower bound of x in a[lo, hi) by doubling steps from lo (Bentley & Yao 1976). */
static inline uint32_t gpuir__gallop(const uint32_t *a, uint32_t lo, uint32_t hi, uint32_t x) {
  uint32_t step = 1;
  if (lo >= hi || a[lo] >= x) return lo;
  while (hi - lo > step && a[lo + step] < x) { /* a[lo] < x */
    lo += step;
    step *= 2;
  }
  return gpuir__lower_bound(a, lo + 1, hi - lo > step ? lo + step : hi, x);
}

/* Finds the lower bound of x in a[lo, hi) by interpolation (Perl, Itai & Avni 1978), which Ao et al. 2011, section 4.3,
 * call IS. After 32 steps, more than a list takes that suits it, the rest is searched by halves, so that no list takes
 * longer than O(log n). */
GPUIR_HD uint32_t gpuir__interpolate(const uint32_t *a, uint32_t lo, uint32_t hi, uint32_t x) {
  unsigned steps;
  for (steps = 0; steps < 32 && lo < hi; steps++) {
    uint32_t least = a[lo], most = a[hi - 1], mid;
    if (x <= least) return lo;
    if (x > most) return hi;
    if (most <= least) break; /* only in a damaged file */
    mid = lo + (uint32_t)((uint64_t)(x - least) * (hi - 1 - lo) / (most - least));
    if (a[mid] == x) return mid;
    if (a[mid] < x) lo = mid + 1;
    else hi = mid;
  }
  return gpuir__lower_bound(a, lo, hi, x);
}

/* Finds the lower bound of x at or behind index `at`, up the levels of a skip list and down again (Pugh 1990, with
 * levels at even distances; the CPU baseline of Ao et al. 2011). */
static inline uint32_t gpuir__skip(const gpuir__prepared *made, uint32_t at, uint32_t x) {
  unsigned up = 0;
  while (up + 1 < GPUIR__SKIP_LEVELS && at >> GPUIR__SKIP_LOG < made->level_n[up + 1] &&
      made->level[up + 1][at >> GPUIR__SKIP_LOG] < x) {
    at = (at >> GPUIR__SKIP_LOG) + 1;
    up++;
  }
  for (;;) { /* all docIDs before `at` on this level are below x */
    while (at < made->level_n[up] && made->level[up][at] < x) at++;
    if (!up) return at;
    at <<= GPUIR__SKIP_LOG;
    up--;
  }
}

/* Finds the lower bound of x in a[lo, hi), by the search that the method makes within a range. */
GPUIR__INLINE uint32_t gpuir__find(int how, const uint32_t *a, uint32_t lo, uint32_t hi, uint32_t x) {
  if (how == GPUIR__FIND_GALLOP) return gpuir__gallop(a, lo, hi, x);
  if (how == GPUIR__FIND_INTERPOLATION) return gpuir__interpolate(a, lo, hi, x);
  return gpuir__lower_bound(a, lo, hi, x);
}

/* Computes where in the operand x can be: indices [*lo, *hi). */
GPUIR__INLINE void gpuir__contract(int how, const gpuir__operand *o, uint32_t x, uint32_t *lo, uint32_t *hi) {
  *lo = 0;
  *hi = o->n;
  if (how == GPUIR__FIND_GALLOP || how == GPUIR__FIND_SKIP || how == GPUIR__FIND_SVS) {
    *lo = o->at;
  } else if (how == GPUIR__FIND_LR) {
    gpuir__lr_range(o->prepared->lines, x, o->n, lo, hi);
  } else if (how == GPUIR__FIND_LOCAL || how == GPUIR__FIND_HS) {
    const gpuir__prepared *made = o->prepared;
    uint32_t h = gpuir__hs_bucket(x, made->shift);
    if (h >= made->buckets) {
      *hi = 0;
    } else if (how == GPUIR__FIND_HS) {
      *lo = made->first[h];
      *hi = made->first[h + 1];
    } else {
      gpuir__lr_range(&made->lines[h], x, o->n, lo, hi);
    }
  }
}

/* Finds the block of a list that may hold x, among those that have the indices [lo, hi); nblocks if there is none. */
GPUIR__INLINE uint32_t gpuir__find_list_block(int how, const gpuir__operand *o, uint32_t lo, uint32_t hi, uint32_t x) {
  const gpuir__list *l = &o->cursor->list;
  uint32_t from = lo / GPUIR__BLOCK, to = hi ? (hi - 1) / GPUIR__BLOCK + 1 : 0, block;
  if (lo >= hi) return l->nblocks;
  if (!l->last) return 0;
  if (how == GPUIR__FIND_SKIP) block = gpuir__skip(o->prepared, from, x);
  else if (how == GPUIR__FIND_SVS) block = gpuir__list_find_block(l, from, x);
  else block = gpuir__find(how, l->last, from, to, x);
  return block < to ? block : l->nblocks;
}

/* Looks for the candidates in a list, one by one. */
GPUIR__INLINE uint32_t gpuir__each_list(int how, int indices, gpuir__operand *o, const gpuir__pass *p) {
  gpuir__cursor *c = o->cursor;
  uint32_t i, found = 0;
  for (i = 0; i < p->m; i++) {
    uint32_t x = p->candidates[i], lo, hi, pos, from, block;
    gpuir__contract(how, o, x, &lo, &hi);
    block = gpuir__find_list_block(how, o, lo, hi, x);
    if (block >= c->list.nblocks) {
      if (how == GPUIR__FIND_LR || how == GPUIR__FIND_LOCAL || how == GPUIR__FIND_HS) continue;
      o->at = o->n;
      break;
    }
    gpuir__cursor_load(c, block);
    from = block * GPUIR__BLOCK;
    lo = lo > from ? lo - from : 0;
    hi = gpuir__min32(hi - from, c->n);
    pos = gpuir__find(how, c->docs, lo, hi, x);
    o->at = from + pos;
    found = gpuir__pass_put(p, indices, found, i, x, from + pos, pos < c->n && c->docs[pos] == x);
  }
  return found;
}

#define GPUIR__EACH(name, how) \
  static uint32_t gpuir__##name##_list(gpuir__operand *o, const gpuir__pass *p) { \
    return p->from ? gpuir__each_list(how, 1, o, p) : gpuir__each_list(how, 0, o, p); \
  }
GPUIR__EACH(gallop, GPUIR__FIND_GALLOP)
GPUIR__EACH(binary, GPUIR__FIND_BINARY)
GPUIR__EACH(interpolation, GPUIR__FIND_INTERPOLATION)
GPUIR__EACH(skip, GPUIR__FIND_SKIP)
GPUIR__EACH(svs, GPUIR__FIND_SVS)
GPUIR__EACH(lr, GPUIR__FIND_LR)
GPUIR__EACH(local, GPUIR__FIND_LOCAL)
GPUIR__EACH(hs, GPUIR__FIND_HS)

/* Makes room for n items of 4 bytes behind what `aux` has, at a multiple of 8 bytes; the caller fills all of it. */
static uint32_t *gpuir__aux_room(const gpuir_allocator *a, gpuir__operand *o, uint64_t n) {
  uint8_t *to;
  n = (n + 2) & ~(uint64_t)1; /* never 0 */
  if (n > SIZE_MAX / 8 || (to = gpuir__buf_room(a, &o->prepared->aux, (size_t)n * 4)) == NULL) return NULL;
  o->prepared->aux.len += (size_t)n * 4;
  return (uint32_t *)(void *)to;
}

/* Builds the levels of a skip list over the docIDs of an array, or over a list's directory. */
static int gpuir__skip_prepare(const gpuir_allocator *a, gpuir__operand *o, const uint32_t *docs) {
  uint32_t n = o->cursor ? (o->cursor->list.last ? o->cursor->list.nblocks : 0) : o->n, i, total = 0, *to;
  gpuir__prepared *made = o->prepared;
  unsigned up;
  int status = GPUIR_OK;
  made->level[0] = o->cursor ? o->cursor->list.last : docs;
  made->level_n[0] = n;
  for (up = 1; up < GPUIR__SKIP_LEVELS; up++) total += made->level_n[up] = made->level_n[up - 1] >> GPUIR__SKIP_LOG;
  to = gpuir__aux_room(a, o, total);
  if (!to) return GPUIR_E_NOMEM;
  for (up = 1; up < GPUIR__SKIP_LEVELS && !status; up++) {
    const uint32_t *below = made->level[up - 1];
    made->level[up] = to;
    for (i = 0; i < made->level_n[up] && !(status = gpuir__prepare_stopped(made, i)); i++)
      *to++ = below[((i + 1) << GPUIR__SKIP_LOG) - 1];
  }
  return status;
}

/* Fits a line through docs[0..n) and turns it round; docs[0] has index `first`. */
static int gpuir__lr_make(const gpuir__prepared *made, const uint32_t *docs, uint32_t n, uint32_t first, gpuir__lr *r) {
  gpuir__line l = gpuir__line_fit(docs, n);
  uint32_t i;
  uint64_t inverse = l.slope ? ((uint64_t)1 << (32 + l.shift)) / l.slope : 0;
  int status = GPUIR_OK;
  r->inverse = inverse < UINT32_MAX ? (uint32_t)inverse : UINT32_MAX;
  r->left = n ? INT64_MIN : 0;
  r->right = n ? INT64_MIN : -1; /* of no docIDs: nothing */
  for (i = 0; i < n && !(status = gpuir__prepare_stopped(made, first + i)); i++) {
    int64_t d = gpuir__lr_predict(r, docs[i]) - ((int64_t)first + i);
    if (d > r->left) r->left = d;
    if (-d > r->right) r->right = -d;
  }
  return status;
}

/* Prepares one line with its safe range for the whole operand. */
static int gpuir__lr_prepare(const gpuir_allocator *a, gpuir__operand *o, const uint32_t *docs) {
  gpuir__lr *line = (gpuir__lr *)(void *)gpuir__aux_room(a, o, sizeof *line / 4);
  if (!line) return GPUIR_E_NOMEM;
  o->prepared->lines = line;
  return gpuir__lr_make(o->prepared, docs, o->n, 0, line);
}

/* Tabulates the index of the first docID of each bucket, as the codec hslrc does. */
static int gpuir__hs_table(const gpuir_allocator *a, gpuir__operand *o, const uint32_t *docs) {
  gpuir__prepared *made = o->prepared;
  uint32_t last = o->n ? docs[o->n - 1] : 0, h, i = 0, *first;
  int status = GPUIR_OK;
  made->buckets = o->n ? gpuir__hs_bucket(last, made->shift) + 1 : 0;
  first = gpuir__aux_room(a, o, (uint64_t)made->buckets + 1);
  if (!first) return GPUIR_E_NOMEM;
  for (h = 0; h <= made->buckets && !(status = gpuir__prepare_stopped(made, h)); h++) {
    for (; i < o->n && gpuir__hs_bucket(docs[i], made->shift) < h; i++)
      if ((status = gpuir__prepare_stopped(made, i)) != 0) return status;
    first[h] = h < made->buckets ? i : o->n;
  }
  made->first = first;
  return status;
}

/* Prepares hash buckets of `param` docIDs on average. */
static int gpuir__hs_prepare(const gpuir_allocator *a, gpuir__operand *o, const uint32_t *docs) {
  o->prepared->shift = gpuir__hs_shift(o->n ? docs[o->n - 1] : 0, o->n, (uint32_t)o->prepared->param);
  return gpuir__hs_table(a, o, docs);
}

#define GPUIR__LOCAL_MEAN 256u /* docIDs a segment of the local regression, on average */

/* Prepares a line with a safe range for each segment of docIDs; the segments are cut as hash buckets are. */
static int gpuir__local_prepare(const gpuir_allocator *a, gpuir__operand *o, const uint32_t *docs) {
  gpuir__prepared *made = o->prepared;
  uint32_t last = o->n ? docs[o->n - 1] : 0, h, i = 0;
  gpuir__lr *line;
  int status = GPUIR_OK;
  made->shift = gpuir__hs_shift(last, o->n, GPUIR__LOCAL_MEAN);
  made->buckets = o->n ? gpuir__hs_bucket(last, made->shift) + 1 : 0;
  line = (gpuir__lr *)(void *)gpuir__aux_room(a, o, (uint64_t)made->buckets * (sizeof *line / 4));
  if (!line) return GPUIR_E_NOMEM;
  made->lines = line;
  for (h = 0; h < made->buckets && !status; h++) {
    uint32_t from = i;
    while (i < o->n && gpuir__hs_bucket(docs[i], made->shift) == h) i++;
    status = gpuir__prepare_stopped(made, h);
    if (!status) status = gpuir__lr_make(made, docs + from, i - from, from, &line[h]);
  }
  return status;
}

/* ---- merge */

/* Merges item by item up to candidate `to`; see gpuir__merge and gpuir__merge_kernel. */
GPUIR__INLINE uint32_t gpuir__merge_items(int indices, gpuir__merge *m, uint32_t to, uint32_t found) {
  uint32_t i = m->left, j = m->right;
  const uint32_t *docs = m->docs, n = m->n, base = m->base;
  const gpuir__pass pass = *m->pass;
  while (i < to && j < n) {
    uint32_t x = pass.candidates[i], y = docs[j];
    found = gpuir__pass_put(&pass, indices, found, i, x, base + j, x == y);
    i += x <= y;
    j += y <= x;
  }
  m->left = i;
  m->right = j;
  return found;
}

static uint32_t gpuir__merge_to(gpuir__merge *m, uint32_t to, uint32_t found) {
  return m->pass->from ? gpuir__merge_items(1, m, to, found) : gpuir__merge_items(0, m, to, found);
}

/* Makes a merge of all candidates with docs[0..n), of which docs[0] has index `base` in the operand. */
static gpuir__merge gpuir__merge_of(const gpuir__pass *p, const uint32_t *docs, uint32_t n, uint32_t base) {
  gpuir__merge m;
  m.pass = p;
  m.docs = docs;
  m.n = n;
  m.base = base;
  m.left = m.right = 0;
  return m;
}

/* Decodes block after block; a merge skips nothing. */
static uint32_t gpuir__merge_list(gpuir__operand *o, const gpuir__pass *p) {
  gpuir__cursor *c = o->cursor;
  uint32_t i = 0, found = 0;
  while (i < p->m && o->at < o->n) {
    uint32_t block = o->at / GPUIR__BLOCK, base = block * GPUIR__BLOCK;
    gpuir__merge m;
    gpuir__cursor_load(c, block);
    m = gpuir__merge_of(p, c->docs, c->n, base);
    m.left = i;
    m.right = o->at - base;
    found = gpuir__merge_to(&m, p->m, found);
    i = m.left;
    o->at = base + m.right;
  }
  return found;
}

/* ---- Parallel Merge Find (Ding et al. 2009, sections 7.1 and 7.2) */

/* Finds the lower bound pos[i] of each a[i] in b[lo, hi): directly, or, with `levels` of recursion, by finding those of
 * the splitters of a first and going on in each segment between two splitters. */
static void gpuir__pmf_find(const uint32_t *a, uint32_t m, const uint32_t *b, uint32_t lo, uint32_t hi, unsigned levels,
    uint32_t *pos) {
  uint32_t fan, s, i, from = 0, at = lo;
  if (!levels || m < 2) {
    for (i = 0; i < m; i++) pos[i] = gpuir__lower_bound(b, lo, hi, a[i]);
    return;
  }
  fan = gpuir__pmf_fan(m, levels);
  for (s = 1; s <= fan; s++) {
    uint32_t to = gpuir__pmf_splitter(m, fan, s);
    uint32_t end = s < fan ? gpuir__lower_bound(b, lo, hi, a[to]) : hi;
    if (to > from) gpuir__pmf_find(a + from, to - from, b, at, end < at ? at : end, levels - 1, pos + from);
    from = to;
    at = end;
  }
}

/* Finds the block of each candidate by Merge Find in the directory (section 8.1), and the candidate in its block by
 * binary search. */
static uint32_t gpuir__pmf_list(gpuir__operand *o, const gpuir__pass *p) {
  gpuir__cursor *c = o->cursor;
  const uint32_t *last = c->list.last;
  uint32_t i, found = 0;
  if (last) gpuir__pmf_find(p->candidates, p->m, last, 0, c->list.nblocks, (unsigned)o->prepared->param, p->spare);
  else memset(p->spare, 0, (size_t)p->m * 4);
  for (i = 0; i < p->m; i++) {
    uint32_t x = p->candidates[i], block = p->spare[i], at;
    if (block >= c->list.nblocks) break;
    gpuir__cursor_load(c, block);
    at = gpuir__lower_bound(c->docs, 0, c->n, x);
    found = gpuir__pass_put(p, p->from != NULL, found, i, x, block * GPUIR__BLOCK + at, at < c->n && c->docs[at] == x);
  }
  return found;
}

/* ---- MergePath (Griffin, section 3.1.2) */

#define GPUIR__PATH 1024u /* docIDs of both lists in a partition, by default */

/* Merges candidates from m->left up to `to` with all of the right side: both are cut where `parts` diagonals cross the
 * merge path, and merged part by part. */
static uint32_t gpuir__mergepath(gpuir__merge *m, uint32_t to, uint64_t parts, uint32_t found) {
  const uint32_t from = m->left;
  const uint64_t total = (uint64_t)(to - from) + m->n;
  gpuir__merge part = *m;
  uint64_t t;
  if (!parts) parts = total / GPUIR__PATH + 1;
  for (t = 1; t <= parts; t++) {
    uint32_t i, j;
    gpuir__mergepath_split(m->pass->candidates + from, to - from, m->docs, m->n,
        total / parts * t + total % parts * t / parts, &i, &j);
    part.n = j;
    found = gpuir__merge_to(&part, from + i, found);
    part.left = from + i;
    part.right = j;
  }
  return found;
}

/* Finds the blocks that may hold candidates by binary search over the skip pointers, and intersects each with its
 * candidates. */
static uint32_t gpuir__mergepath_list(gpuir__operand *o, const gpuir__pass *p) {
  gpuir__cursor *c = o->cursor;
  const uint32_t *last = c->list.last;
  uint32_t i = 0, found = 0;
  while (i < p->m) {
    uint32_t block = last ? gpuir__lower_bound(last, 0, c->list.nblocks, p->candidates[i]) : 0, end = p->m;
    gpuir__merge m;
    if (block >= c->list.nblocks) break;
    gpuir__cursor_load(c, block);
    if (last) end = gpuir__lower_bound(p->candidates, i, p->m, last[block] + 1);
    if (end == i) end++; /* only in a damaged file */
    m = gpuir__merge_of(p, c->docs, c->n, block * GPUIR__BLOCK);
    m.left = i;
    found = gpuir__mergepath(&m, end, o->prepared->param, found);
    i = end;
  }
  return found;
}

/* ---- Small Adaptive (Demaine, Lopez-Ortiz & Munro 2001, as modified by Tatikonda et al. 2011, section 3.1) */

/* Moves to the operand's first docID >= x by galloping and returns it; GPUIR_END behind the last one. */
static uint32_t gpuir__operand_seek(gpuir__operand *o, uint32_t x) {
  gpuir__cursor *c = o->cursor;
  uint32_t from = o->at / GPUIR__BLOCK, block, pos;
  if (!c) {
    o->at = gpuir__gallop(o->docs, o->at, o->n, x);
    return o->at < o->n ? o->docs[o->at] : GPUIR_END;
  }
  block = o->at < o->n ? gpuir__list_find_block(&c->list, from, x) : c->list.nblocks;
  if (block >= c->list.nblocks) {
    o->at = o->n;
    return GPUIR_END;
  }
  gpuir__cursor_load(c, block);
  pos = gpuir__gallop(c->docs, block == from ? o->at % GPUIR__BLOCK : 0, c->n, x);
  o->at = pos < c->n ? block * GPUIR__BLOCK + pos : o->n; /* the latter in the last block, or a damaged file */
  return pos < c->n && c->docs[pos] >= x ? c->docs[pos] : GPUIR_END;
}

/* Intersects all operands at once: an eliminator x is looked for in one operand after the other. Where it is not found,
 * the next docID there takes its place; found in all of them, it is a match, and the next docID of the first operand
 * takes its place. */
static uint32_t gpuir__adaptive(gpuir__operand *const *o, unsigned k, uint32_t *docs, uint32_t *const *where) {
  uint32_t found = 0, x;
  unsigned i = 0, have = 1, t; /* operand i is next; `have` in a row have x */
  if (o[0]->at >= o[0]->n) return 0;
  x = o[0]->docs[o[0]->at];
  for (;;) {
    uint32_t doc;
    if (have == k) {
      docs[found] = x;
      for (t = 0; where && t < k; t++) where[t][found] = o[t]->at;
      found++;
      if (++o[0]->at >= o[0]->n) return found;
      x = o[0]->docs[o[0]->at];
      have = 1;
      i = 0;
      continue;
    }
    i = i + 1 == k ? 0 : i + 1;
    doc = gpuir__operand_seek(o[i], x);
    if (doc == GPUIR_END) return found;
    have = doc == x ? have + 1 : 1;
    x = doc;
  }
}

/* ---- Algorithm 1 (Ao et al. 2011, section 5.3) */

/* Prepares the safe range, the headers (H(t) of the paper: here the last docID of each block, which lists have in their
 * directory), and a form of the docIDs in which each can be decoded alone: the list itself if its codec has get(), or
 * else a copy in lrc. A search cannot be stopped while the copy is encoded. */
static int gpuir__algorithm1_prepare(const gpuir_allocator *a, gpuir__operand *o, const uint32_t *docs) {
  const gpuir__list *l = o->cursor ? &o->cursor->list : NULL;
  const gpuir__codec *codec = gpuir__codec_by_name("lrc", 1);
  const int is_long = o->n > GPUIR__SHORT_MAX;
  gpuir__prepared *made = o->prepared;
  gpuir__stream *coded = &made->coded;
  uint32_t nblocks = o->n ? (o->n - 1) / GPUIR__BLOCK + 1 : 0, i, *offset, *heads;
  gpuir__lr *line =
      (gpuir__lr *)(void *)gpuir__aux_room(a, o, sizeof *line / 4 + 2 * (uint64_t)nblocks + nblocks / 4 + 1);
  gpuir__target to = {a, &o->prepared->copy, NULL, NULL, 0}; /* segments of 256, no exceptions */
  uint8_t *width;
  int status;
  if (!line) return GPUIR_E_NOMEM;
  offset = (uint32_t *)(void *)(line + 1);
  heads = offset + nblocks;
  width = (uint8_t *)(heads + nblocks);
  for (i = 0; i < nblocks; i++) heads[i] = docs[gpuir__min32((i + 1) * GPUIR__BLOCK, o->n) - 1];
  made->lines = line;
  made->heads = heads;
  status = gpuir__lr_make(made, docs, o->n, 0, line);
  if (status) return status;
  if (l && l->df > 1 && l->docs.codec->get) {
    *coded = l->docs;
    return GPUIR_OK;
  }
  memset(coded, 0, sizeof *coded);
  coded->codec = codec;
  coded->kernels = gpuir__codec_kernels_at(GPUIR_SIMD_SCALAR);
  coded->n = o->n;
  coded->limit = UINT32_MAX - 1;
  if (is_long) {
    coded->offset = to.offset = offset;
    coded->width = to.width = width;
    coded->last = heads;
  }
  if (o->n) status = codec->encode(codec, docs, o->n, &to);
  if (!status && !gpuir__buf_room(a, &made->copy, GPUIR__STREAM_PAD)) status = GPUIR_E_NOMEM;
  if (status) return status;
  memset(made->copy.data + made->copy.len, 0, GPUIR__STREAM_PAD);
  coded->bytes = made->copy.data;
  coded->len = made->copy.len;
  return GPUIR_OK;
}

/* Does lines 4 to 7 of the paper's Algorithm 1 for each candidate x, looking for the first docID >= x. */
static uint32_t gpuir__algorithm1_list(gpuir__operand *o, const gpuir__pass *p) {
  const gpuir__prepared *made = o->prepared;
  const gpuir__stream *coded = &made->coded;
  const uint32_t nblocks = o->n ? (o->n - 1) / GPUIR__BLOCK + 1 : 0;
  uint32_t i, found = 0;
  for (i = 0; i < p->m; i++) {
    uint32_t x = p->candidates[i], lo, hi, block, end;
    gpuir__lr_range(made->lines, x, o->n, &lo, &hi);
    if (lo >= hi) continue;
    block = gpuir__lower_bound(made->heads, lo / GPUIR__BLOCK, (hi - 1) / GPUIR__BLOCK + 1, x);
    if (block >= nblocks) break;
    lo = gpuir__max32(lo, block * GPUIR__BLOCK);
    end = gpuir__min32(hi, block * GPUIR__BLOCK + gpuir__block_count(o->n, block));
    while (lo < end) {
      uint32_t mid = lo + (end - lo) / 2;
      if (coded->codec->get(coded, mid) < x) lo = mid + 1;
      else end = mid;
    }
    found = gpuir__pass_put(p, p->from != NULL, found, i, x, lo, lo < hi && coded->codec->get(coded, lo) == x);
  }
  return found;
}

/* ---- the table ---- */

#define GPUIR__METHOD(name, title, paper, parameter, needs, functions) \
  {name, title, paper, parameter, GPUIR__NEEDS_##needs, functions},

static const gpuir__method gpuir__methods[] = {GPUIR__LAB_METHODS(GPUIR__METHOD){"simd",
    "vectors: all pairs of registers, or probes", "", 0, GPUIR__NEEDS_NOTHING, NULL, gpuir__lookup, NULL}};

#define GPUIR__METHODS (sizeof gpuir__methods / sizeof gpuir__methods[0])

/* Returns the method of a name; NULL if there is none. */
static const gpuir__method *gpuir__method_by_name(const char *name) {
  size_t i;
  for (i = 0; i < GPUIR__METHODS; i++)
    if (!strcmp(gpuir__methods[i].name, name)) return &gpuir__methods[i];
  return NULL;
}

/* ---- preparing an operand */

/* Decodes all docIDs of a list. 0, or what stopped() says. */
static int gpuir__prepare_decode(const gpuir__prepared *made, const gpuir__list *l, uint32_t *docs) {
  uint32_t block;
  int status = GPUIR_OK;
  for (block = 0; block < l->nblocks && !status; block++) {
    (void)gpuir__list_docs(l, block, docs + (size_t)block * GPUIR__BLOCK);
    if (block % 64 == 63 && made->stopped) status = made->stopped(made->user);
  }
  return status;
}

/* Prepares one operand in *made, which is zeros but for stopped() and its user, for a method. All docIDs of a list are
 * decoded for that, and forgotten. 0, NOMEM, LIMIT, or what stopped() says; gpuir__prepared_free is due in any case. */
static int gpuir__operand_prepare(const gpuir_allocator *a, const gpuir__method *m, gpuir__operand *o,
    gpuir__prepared *made) {
  size_t size = ((size_t)o->n + GPUIR__BLOCK_ROOM) * 4;
  uint32_t *docs;
  int status;
  o->prepared = made;
  made->param = m->param;
  if (!m->prepare) return GPUIR_OK;
  if (!o->cursor || m->needs == GPUIR__NEEDS_DIRECTORY) return m->prepare(a, o, o->docs);
  docs = (uint32_t *)gpuir__alloc(a, size);
  if (!docs) return GPUIR_E_NOMEM;
  status = gpuir__prepare_decode(made, &o->cursor->list, docs);
  if (!status) status = m->prepare(a, o, docs);
  gpuir__free(a, docs, size);
  return status;
}

static void gpuir__prepared_free(const gpuir_allocator *a, gpuir__prepared *made) {
  gpuir__buf_free(a, &made->aux);
  gpuir__buf_free(a, &made->copy);
}

#endif /* GPUIR_NO_LAB */
