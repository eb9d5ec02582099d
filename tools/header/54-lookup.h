
/* ========
 * [54-lookup]  candidates are looked up in a list, with vectors
 *
 * AND takes lists from short to long ("small versus small"), each filtering the candidates that the ones before
 * left over; OR looks its candidates up in the lists of non-essential terms. Both do it here: the block directory is
 * searched first (the "B*" of Ding et al., section 8.1), then the one block that is decoded.
 *
 *     lists of like length     a register of candidates meets a register of docIDs, all pairs at once
 *     longer lists             each candidate is looked up in its decoded block by two comparisons, or a register of
 *                              them meets all docIDs of the block
 *     much longer lists        a block with one candidate is searched without decoding it (the codec's find)
 *     dense lists              each candidate's bit is tested, and its index counted from the bits before it
 *
 * Uses      [18-codecs], [24-postings], [26-dense].
 * Start at  gpuir__lookup_of_level (the table at the end), gpuir__pass, gpuir__operand.
 * Tests     tests/unit/54_lookup.c
 * ======*/

/* ---- candidates and operands */

/* Candidates on their way through an operand. They are strictly increasing. docs, from, where and spare have room for
 * 16 items more. For a list, UINT32_MAX follows the candidates 16 times. */
typedef struct gpuir__pass {
  const uint32_t *candidates; /* m docIDs */
  uint32_t m;
  uint32_t *docs; /* out: the candidates that were found; another array than the candidates' */
  uint32_t *from; /* out: their indices among the candidates; NULL: not wanted */
  uint32_t *where; /* out, with from: their indices in the operand */
  uint32_t *spare; /* m items for the method's use */
} gpuir__pass;

typedef struct gpuir__lookup_kernels gpuir__lookup_kernels;

/* What candidates are looked up in: a list, or, in the laboratory, also an array. */
typedef struct gpuir__operand {
  gpuir__cursor *cursor; /* a list, and its decoded block; NULL: an array */
  uint32_t n; /* postings */
  uint32_t at; /* index to go on from: docIDs before it are below all candidates to come */
  uint32_t expected; /* candidates in all at most; 0: far fewer than the shortest operand has */
  const gpuir__lookup_kernels *kernels; /* of the SIMD level, from gpuir__lookup_of_level */
#ifndef GPUIR_NO_LAB
  const uint32_t *docs; /* an array of n docIDs; NULL: a list */
  struct gpuir__prepared *prepared; /* see [55-methods]; NULL: nothing was prepared */
#endif
} gpuir__operand;

/* Looks up the candidates of a pass in the operand's list, from o->at on, and moves o->at; returns the number of
 * candidates that the list holds. It may be called again with greater candidates. */
typedef uint32_t (*gpuir__lookup_kernel)(gpuir__operand *o, const gpuir__pass *p);

enum { GPUIR__LOOKUP_SCALAR, GPUIR__LOOKUP_AVX2, GPUIR__LOOKUP_AVX512, GPUIR__LOOKUP_VP2INTERSECT };

struct gpuir__merge;

struct gpuir__lookup_kernels {
  gpuir__lookup_kernel list;
  gpuir__lookup_kernel dense; /* of a dense list, by its bits and ranks; pass.where may be NULL */
  void (*ranks)(const gpuir__list *l, const uint32_t *docs, uint32_t n, uint32_t *where); /* see gpuir__dense_ranks */
  uint32_t (*merge)(struct gpuir__merge *m, uint32_t found); /* see gpuir__merge_kernel; NULL: without vectors */
  unsigned level; /* GPUIR__LOOKUP_ */
};

/* Writes the 16 UINT32_MAX that follow candidates. */
static inline void gpuir__pad(uint32_t *to) { memset(to, 0xff, 16 * sizeof *to); }

/* Writes candidate i, which is x, as match number `found`: the next match overwrites it unless `hit`. `at` is the index
 * of x in the operand. Returns the number of matches. */
GPUIR__INLINE uint32_t gpuir__pass_put(const gpuir__pass *p, int indices, uint32_t found, uint32_t i, uint32_t x,
    uint32_t at, int hit) {
  p->docs[found] = x;
  if (indices) {
    p->from[found] = i;
    p->where[found] = at;
  }
  return found + (hit != 0);
}

/* ---- registers against registers ----
 *
 * Lists of like length: a register of candidates is compared with each docID of a register's worth of the operand, and
 * the one of the two that ends first moves on; nothing is mispredicted but the end, and where a search begins because
 * one side is more than a register behind. (Block-wise all-pairs comparison: Schlegel, Willhalm & Lehner, "Fast
 * sorted-set intersection using SIMD instructions", ADMS 2011; Lemire, Boytsov & Kurz, "SIMD compression and the
 * intersection of sorted integers", SPE 2016.) */

/* From so many candidates in a block on, registers are compared with registers; fewer candidates are looked up one by
 * one, or, with VP2INTERSECT, a register of them at a time. Measured. */
#define GPUIR__MANY 32u
#define GPUIR__MANY_PAIRS 64u

/* In a list so many times longer than the shortest one, hardly a block has more than one candidate, and that candidate
 * is looked for without decoding the block. In shorter lists the processor would mispredict which blocks these are.
 * Measured. */
#define GPUIR__SPARSE 4096u

/* One merge of candidates (the left side) with docIDs (the right side). Both are strictly increasing; docIDs of a
 * damaged list may not be. */
typedef struct gpuir__merge {
  const gpuir__pass *pass; /* the left side, and where matches are written */
  const uint32_t *docs; /* the right side */
  uint32_t left; /* in: the index to begin at; out: where the merge ended, because one of the sides did */
  uint32_t base; /* index of docs[0] in the operand. Here, so that `left` and `right` are not loaded as one */
  uint32_t right; /* as left */
  uint32_t n; /* docIDs of the right side */
} gpuir__merge;

#if GPUIR__X86

/* Merges, writes matches from number `found` on and returns the number of matches. */
typedef uint32_t (*gpuir__merge_kernel)(gpuir__merge *m, uint32_t found);

/* Compares a register's worth of candidates at a, the first of them candidate i, with as many docIDs at b, the first of
 * them index `at` of the operand, each with each; writes those found as matches from number `found` on, and returns the
 * number of matches. */
typedef uint32_t (*gpuir__match_registers)(int indices, const gpuir__pass *p, const uint32_t *a, uint32_t i,
    const uint32_t *b, uint32_t at, uint32_t found);

/* One of the two sides of a merge: items [first, n), register by register. */
typedef struct gpuir__side {
  const uint32_t *items; /* item number `first` */
  const uint32_t *next; /* the register's worth that is next */
  const uint32_t *end; /* every register's worth that ends here at most may be read, and the one behind it */
  uint32_t first, n;
  uint32_t copy[48]; /* the last items, see gpuir__side_tail */
} gpuir__side;

/* Returns the number of the item that is next. */
GPUIR__INLINE uint32_t gpuir__side_index(const gpuir__side *s) { return s->first + (uint32_t)(s->next - s->items); }

/* Begins a side at item number `first`. padded: UINT32_MAX follows the items 16 times. */
GPUIR__INLINE void gpuir__side_open(gpuir__side *s, const uint32_t *items, uint32_t first, uint32_t n, uint32_t width,
    int padded) {
  s->items = s->next = items + first;
  s->end = padded ? items + n : n - first < width ? s->next : items + (n - width);
  s->first = first;
  s->n = n;
}

/* Copies items, and the last one behind them. */
GPUIR__AVX2 GPUIR__NOINLINE void gpuir__side_copy(uint32_t to[48], const uint32_t *items, uint32_t have) {
  uint32_t t;
  for (t = 0; t < 48; t++) to[t] = items[have - 1];
  memcpy(to, items, have * sizeof *to);
}

/* Goes on in a copy of the last items, fewer than two registers' worths; the last item, which fills the copy, may be
 * found more than once. Returns the number of registers to be read. */
static uint32_t gpuir__side_tail(gpuir__side *s, uint32_t width) {
  const uint32_t index = gpuir__side_index(s);
  uint32_t have, whole;
  if (index >= s->n) return 0;
  have = s->n - index;
  whole = (have + width - 1) / width;
  gpuir__side_copy(s->copy, s->next, have);
  s->items = s->next = s->copy;
  s->end = s->copy + whole * width;
  s->first = index;
  return whole;
}

/* Returns for how many steps the side lasts, if each takes a register. */
GPUIR__INLINE uint32_t gpuir__side_steps(gpuir__side *s, uint32_t width) {
  return s->end - s->next >= (ptrdiff_t)width ? (uint32_t)(s->end - s->next) / width : gpuir__side_tail(s, width);
}

/* Skips registers' worths that end below x, up to `end`, by doubling and then halving steps; returns the next one. */
GPUIR__NOINLINE const uint32_t *gpuir__skip_registers_below(const uint32_t *next, const uint32_t *end, ptrdiff_t width,
    uint32_t x) {
  ptrdiff_t step = width;
  while (end - next >= step && next[step - 1] < x) {
    next += step;
    step *= 2;
  }
  while (step > width) {
    step /= 2;
    if (end - next >= step && next[step - 1] < x) next += step;
  }
  return next;
}

/* Advances the side whose register's worth ends at the smaller docID, or both if they end alike. The two begin at *a
 * and *b and end with *x and *y; the ones behind them end with next_x and next_y. Which side it is cannot be predicted,
 * so the compiler must not make jumps of it. */
static inline void gpuir__advance_smaller(const uint32_t **a, uint32_t *x, uint32_t next_x, const uint32_t **b,
    uint32_t *y, uint32_t next_y, uint32_t width) {
  const uint32_t *next_a = *a + width, *next_b = *b + width;
  __asm__(
      "cmpl %[y], %[x]\n\tcmovbel %[next_x], %[x]\n\tcmovbeq %[next_a], %[a]\n\t"
      "cmovael %[next_y], %[y]\n\tcmovaeq %[next_b], %[b]"
      : [a] "+&r"(*a), [x] "+&r"(*x), [b] "+&r"(*b), [y] "+&r"(*y)
      : [next_a] "r"(next_a), [next_x] "r"(next_x), [next_b] "r"(next_b), [next_y] "r"(next_y)
      : "cc");
}

/* Merges by registers of `width` items. The ends of the next registers' worths are loaded before it is known which is
 * needed, so that no step waits for a load; they also tell when one side is so far behind that it is worth a search. */
GPUIR__INLINE uint32_t gpuir__merge_by(gpuir__match_registers match, uint32_t width, int indices, int padded,
    gpuir__merge *m, uint32_t found) {
  const gpuir__pass pass = *m->pass; /* a copy, as the compiler would take any store for one to *m->pass */
  const uint32_t before = found;
  gpuir__side left, right;
  uint32_t steps;
  gpuir__side_open(&left, pass.candidates, m->left, pass.m, width, padded);
  gpuir__side_open(&right, m->docs, m->right, m->n, width, padded);
  while ((steps = gpuir__side_steps(&left, width)) > 0 &&
      (steps = gpuir__min32(steps, gpuir__side_steps(&right, width))) > 0) {
    const uint32_t *a = left.next, *b = right.next;
    const uint32_t i = gpuir__side_index(&left), j = m->base + gpuir__side_index(&right);
    uint32_t x = a[width - 1], y = b[width - 1];
    do {
      const uint32_t next_x = a[2 * width - 1], next_y = b[2 * width - 1];
      if (GPUIR__UNLIKELY(next_x < *b)) {
        a = gpuir__skip_registers_below(a + 2 * width, left.end, width, *b);
        break;
      }
      if (GPUIR__UNLIKELY(next_y < *a)) {
        b = gpuir__skip_registers_below(b + 2 * width, right.end, width, *a);
        break;
      }
      found = match(indices, &pass, a, i + (uint32_t)(a - left.next), b, j + (uint32_t)(b - right.next), found);
      gpuir__advance_smaller(&a, &x, next_x, &b, &y, next_y, width);
    } while (padded ? a + width <= left.end && b + width <= right.end && found <= pass.m : --steps);
    left.next = a;
    right.next = b;
    if (GPUIR__UNLIKELY(found > pass.m)) { /* only a damaged list has a docID twice */
      found = pass.m;
      break;
    }
  }
  while (found > before + 1 && pass.docs[found - 1] == pass.docs[found - 2]) found--;
  m->left = gpuir__min32(gpuir__side_index(&left), pass.m);
  m->right = gpuir__min32(gpuir__side_index(&right), m->n);
  return found;
}

/* Merges by registers, with all that is constant in a step known to the compiler: two loops, one of which is run. Lists
 * are padded; the arrays of tools/lab/arrays.h are not. */
GPUIR__INLINE uint32_t gpuir__merge_any(gpuir__match_registers match, uint32_t width, int padded, gpuir__merge *m,
    uint32_t found) {
  return m->pass->from ? gpuir__merge_by(match, width, 1, padded, m, found)
                       : gpuir__merge_by(match, width, 0, padded, m, found);
}

/* ---- registers of 8 */

/* Writes the items of x whose bits are set in `mask` to `to`, one after the other, and garbage up to to[7]. */
GPUIR__AVX2 GPUIR__INLINE void gpuir__compress_avx2(uint32_t *to, uint32_t mask, __m256i x) {
  /* lanes[mask] has the numbers of the set bits, a byte each: lane t's stands before those of the lanes above it. */
#define GPUIR__LANE0(above) (above), (above) << 8
#define GPUIR__LANE1(above) GPUIR__LANE0(above), GPUIR__LANE0((above) << 8 | 1)
#define GPUIR__LANE2(above) GPUIR__LANE1(above), GPUIR__LANE1((above) << 8 | 2)
#define GPUIR__LANE3(above) GPUIR__LANE2(above), GPUIR__LANE2((above) << 8 | 3)
#define GPUIR__LANE4(above) GPUIR__LANE3(above), GPUIR__LANE3((above) << 8 | 4)
#define GPUIR__LANE5(above) GPUIR__LANE4(above), GPUIR__LANE4((above) << 8 | 5)
#define GPUIR__LANE6(above) GPUIR__LANE5(above), GPUIR__LANE5((above) << 8 | 6)
  static const uint64_t lanes[256] = {GPUIR__LANE6((uint64_t)0), GPUIR__LANE6((uint64_t)7)};
  const __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)&lanes[mask]));
  gpuir__avx2_store(to, _mm256_permutevar8x32_epi32(x, order));
}

/* Returns a bit for each number of x: set if it is one of y's. Each half of y is rotated against both halves of x. */
GPUIR__AVX2 GPUIR__INLINE uint32_t gpuir__among_8(__m256i x, __m256i y) {
  const __m256i lo = _mm256_permute2x128_si256(y, y, 0x00), hi = _mm256_permute2x128_si256(y, y, 0x11);
  __m256i same = _mm256_cmpeq_epi32(x, lo), also = _mm256_cmpeq_epi32(x, hi);
#define GPUIR__ROUND(turn) \
  same = _mm256_or_si256(same, _mm256_cmpeq_epi32(x, _mm256_shuffle_epi32(lo, (turn)))); \
  also = _mm256_or_si256(also, _mm256_cmpeq_epi32(x, _mm256_shuffle_epi32(hi, (turn))));
  GPUIR__ROUND(0x39)
  GPUIR__ROUND(0x4e)
  GPUIR__ROUND(0x93)
  return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_or_si256(same, also)));
}

/* Returns a bit for each of the 8 docIDs at a: set if it is among the 8 at b. */
GPUIR__AVX2 GPUIR__INLINE uint32_t gpuir__among_avx2(const uint32_t *a, const uint32_t *b) {
  return gpuir__among_8(gpuir__avx2_load(a), gpuir__avx2_load(b));
}

/* See gpuir__match_registers. */
GPUIR__AVX2 GPUIR__INLINE uint32_t gpuir__match_avx2(int indices, const gpuir__pass *p, const uint32_t *a, uint32_t i,
    const uint32_t *b, uint32_t at, uint32_t found) {
  const uint32_t hit = gpuir__among_avx2(a, b);
  gpuir__compress_avx2(p->docs + found, hit, gpuir__avx2_load(a));
  if (indices && hit) { /* `other` may have the bit of a last item more than once, above all other bits */
    const __m256i iota = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    uint32_t other = gpuir__among_avx2(b, a);
    gpuir__compress_avx2(p->from + found, hit, _mm256_add_epi32(iota, _mm256_set1_epi32((int)i)));
    gpuir__compress_avx2(p->where + found, other, _mm256_add_epi32(iota, _mm256_set1_epi32((int)at)));
  }
  return found + (uint32_t)__builtin_popcount(hit);
}

/* Merges by registers of 8. Registers of 16 without VP2INTERSECT use it as well: 16 times 16 comparisons would take
 * longer. */
GPUIR__AVX2 GPUIR__NOINLINE uint32_t gpuir__merge_avx2(gpuir__merge *m, uint32_t found) {
  return gpuir__merge_any(gpuir__match_avx2, 8, 1, m, found);
}

/* Loads the last docIDs of the eight registers' worths, each of `width`, that begin at docs, by loads that have each of
 * them in its lane already. */
#define GPUIR__TOP(t, width) gpuir__avx2_load(docs + ((t) + 1) * (width)-1 - (t))
#define GPUIR__TOPS(width) \
  _mm256_blend_epi32(_mm256_blend_epi32(_mm256_blend_epi32(GPUIR__TOP(0, width), GPUIR__TOP(1, width), 2), \
                         _mm256_blend_epi32(GPUIR__TOP(2, width), GPUIR__TOP(3, width), 8), 0xc), \
      _mm256_blend_epi32(_mm256_blend_epi32(GPUIR__TOP(4, width), GPUIR__TOP(5, width), 0x20), \
          _mm256_blend_epi32(GPUIR__TOP(6, width), GPUIR__TOP(7, width), 0x80), 0xc0), \
      0xf0)
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__tops_8(const uint32_t *docs) { return GPUIR__TOPS(8); }
GPUIR__AVX2 GPUIR__INLINE __m256i gpuir__tops_16(const uint32_t *docs) { return GPUIR__TOPS(16); }

/* ---- candidates looked up in a decoded block */

/* A decoded block of a list, and the pass whose candidates are looked up in it. */
typedef struct gpuir__spot {
  const gpuir__pass *pass;
  const uint32_t *docs; /* GPUIR__BLOCK docIDs, filled up with UINT32_MAX */
  uint32_t base; /* index of docs[0] in the list */
  uint32_t last; /* the block's last docID, as the directory has it */
  unsigned level; /* GPUIR__LOOKUP_ */
} gpuir__spot;

/* Looks up the candidates from *next on that are at most the block's last docID; moves *next behind them and returns
 * the number of matches. A comparison with the last docIDs of the block's registers' worths tells in which of them a
 * candidate would be, another one whether it is there; no branch has anything to predict. */
typedef uint32_t (*gpuir__spot_kernel)(int indices, const gpuir__spot *s, uint32_t *next, uint32_t found);

GPUIR__AVX2 GPUIR__INLINE uint32_t gpuir__spot_avx2(int indices, const gpuir__spot *s, uint32_t *next, uint32_t found) {
  const gpuir__pass pass = *s->pass;
  const uint32_t *docs = s->docs;
  const uint32_t base = s->base, last = s->last;
  const __m256i lo = gpuir__tops_8(docs), hi = gpuir__tops_8(docs + 64);
  uint32_t i = *next;
  for (; i < pass.m; i++) {
    const uint32_t x = pass.candidates[i];
    const __m256i v = _mm256_set1_epi32((int)x);
    uint32_t pos, hit;
    __m256i ends;
    if (x > last) break;
    ends = _mm256_packs_epi32(_mm256_cmpeq_epi32(_mm256_max_epu32(lo, v), lo), /* not below x */
        _mm256_cmpeq_epi32(_mm256_max_epu32(hi, v), hi));
    pos = 8 * (16 - (uint32_t)__builtin_popcount((uint32_t)_mm256_movemask_epi8(ends)) / 2);
    hit = (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(gpuir__avx2_load(docs + pos), v)));
    found = gpuir__pass_put(&pass, indices, found, i, x, base + pos + gpuir__ctz32(hit | 0x100u), hit != 0);
  }
  *next = i;
  return found;
}

/* Returns 1 if x is in a decoded block. For one candidate alone that is less work than a look-up. */
GPUIR__AVX2 GPUIR__INLINE int gpuir__holds_avx2(const uint32_t *docs, uint32_t x) {
  const __m256i v = _mm256_set1_epi32((int)x);
  __m256i same[4], any;
  unsigned t;
  for (t = 0; t < 4; t++) same[t] = _mm256_setzero_si256();
  for (t = 0; t < GPUIR__BLOCK / 8; t++)
    same[t % 4] = _mm256_or_si256(same[t % 4], _mm256_cmpeq_epi32(gpuir__avx2_load(docs + 8 * t), v));
  any = _mm256_or_si256(_mm256_or_si256(same[0], same[1]), _mm256_or_si256(same[2], same[3]));
  return !_mm256_testz_si256(any, any);
}

/* Returns the first candidate >= i above docID `last`. */
typedef uint32_t (*gpuir__behind_kernel)(const gpuir__pass *p, uint32_t i, uint32_t last);

/* Looks for candidate *next, which is alone in its block, without decoding the block; returns 0 if the block has to be
 * decoded. */
GPUIR__INLINE int gpuir__lookup_undecoded(const gpuir__pass *p, gpuir__cursor *c, uint32_t block, uint32_t *next,
    uint32_t *found) {
  const uint32_t x = p->candidates[*next], at = gpuir__cursor_find(c, block, x);
  if (at == GPUIR__UNTOLD) return 0;
  *found = gpuir__pass_put(p, p->from != NULL, *found, *next, x, block * GPUIR__BLOCK + at, at != GPUIR__ABSENT);
  ++*next;
  return 1;
}

/* Looks up the candidates from *next on that are in the cursor's decoded block, by what suits their number; returns the
 * number of matches. */
GPUIR__AVX2 GPUIR__INLINE uint32_t gpuir__lookup_block(gpuir__behind_kernel behind, gpuir__spot_kernel spot,
    gpuir__merge_kernel merge, gpuir__cursor *c, const gpuir__spot *s, uint32_t *next, uint32_t found) {
  const gpuir__pass *p = s->pass;
  const int pairs = s->level == GPUIR__LOOKUP_VP2INTERSECT;
  const uint32_t many = pairs ? GPUIR__MANY_PAIRS : GPUIR__MANY;
  if (p->m - *next >= many && p->candidates[*next + many - 1] <= s->last) {
    gpuir__merge m;
    m.pass = p;
    m.docs = c->docs;
    m.n = c->n;
    m.base = s->base;
    m.left = *next;
    m.right = 0;
    found = merge(&m, found);
    *next = behind(p, m.left, s->last); /* a register of candidates may be left that is done in part */
  } else if (!p->from && !pairs && p->candidates[*next + 1] > s->last) {
    const uint32_t x = p->candidates[*next];
    found = gpuir__pass_put(p, 0, found, *next, x, 0, gpuir__holds_avx2(c->docs, x));
    ++*next;
  } else {
    found = p->from ? spot(1, s, next, found) : spot(0, s, next, found);
  }
  return found;
}

/* Looks up candidates in a list, block by block; find_block: see gpuir__list_find_block. */
GPUIR__AVX2 GPUIR__INLINE uint32_t gpuir__lookup_by(uint32_t (*find_block)(const gpuir__list *, uint32_t, uint32_t),
    gpuir__behind_kernel behind, gpuir__spot_kernel spot, gpuir__operand *o, const gpuir__pass *p) {
  gpuir__cursor *c = o->cursor;
  const gpuir__list *l = &c->list;
  const int sparse = o->expected && o->n / GPUIR__SPARSE >= o->expected;
  uint32_t block = o->at / GPUIR__BLOCK, i = 0, found = 0;
  gpuir__spot s;
  s.pass = p;
  s.docs = c->docs;
  s.level = o->kernels->level;
  while (i < p->m) {
    const uint32_t before = i;
    block = find_block(l, block, p->candidates[i]);
    if (block >= l->nblocks) break;
    s.last = l->last ? l->last[block] : UINT32_MAX - 1;
    if (sparse && p->candidates[i + 1] > s.last && gpuir__lookup_undecoded(p, c, block, &i, &found)) continue;
    gpuir__list_prefetch_docs(l, block);
    gpuir__cursor_load(c, block);
    s.base = block * GPUIR__BLOCK;
    found = gpuir__lookup_block(behind, spot, o->kernels->merge, c, &s, &i, found);
    if (i == before) i++; /* only in a damaged file */
    found = gpuir__min32(found, i);
  }
  o->at = gpuir__min32(block, l->nblocks) * GPUIR__BLOCK;
  return found;
}

static uint32_t gpuir__behind_avx2(const gpuir__pass *p, uint32_t i, uint32_t last) {
  while (i < p->m && p->candidates[i] <= last) i++;
  return i;
}

GPUIR__AVX2 static uint32_t gpuir__lookup_avx2(gpuir__operand *o, const gpuir__pass *p) {
  return gpuir__lookup_by(gpuir__list_find_block, gpuir__behind_avx2, gpuir__spot_avx2, o, p);
}

/* ---- registers of 16 */

#if (defined(__clang__) && __clang_major__ >= 9) || (!defined(__clang__) && __GNUC__ >= 10)
#define GPUIR__VP2INTERSECT 1 /* the assembler knows the instruction */
#else
#define GPUIR__VP2INTERSECT 0
#endif

/* Returns a bit for each of the 16 docIDs of a, set if it is among those of b, and in *other the same of those of b: by
 * VP2INTERSECT, which few processors have, and of which the compiler is not told. */
GPUIR__AVX512 GPUIR__INLINE uint32_t gpuir__among_avx512(__m512i a, __m512i b, uint32_t *other) {
  uint32_t hit = 0, back = 0;
#if GPUIR__VP2INTERSECT
  __asm__("vp2intersectd %3, %2, %%k2\n\tkmovw %%k2, %0\n\tkmovw %%k3, %1"
          : "=r"(hit), "=r"(back)
          : "v"(a), "v"(b)
          : "k2", "k3");
#else
  (void)a; /* never called */
  (void)b;
#endif
  *other = back;
  return hit;
}

/* gpuir__compress_avx2, but what follows up to to[15] is zero. */
GPUIR__AVX512 GPUIR__INLINE void gpuir__compress_avx512(uint32_t *to, uint32_t mask, __m512i x) {
  _mm512_storeu_si512(to, _mm512_maskz_compress_epi32((__mmask16)mask, x));
}

/* See gpuir__match_registers. */
GPUIR__AVX512 GPUIR__INLINE uint32_t gpuir__match_avx512(int indices, const gpuir__pass *p, const uint32_t *a,
    uint32_t i, const uint32_t *b, uint32_t at, uint32_t found) {
  uint32_t other, hit = gpuir__among_avx512(_mm512_loadu_si512(a), _mm512_loadu_si512(b), &other);
  gpuir__compress_avx512(p->docs + found, hit, _mm512_loadu_si512(a));
  if (indices) {
    const __m512i iota = gpuir__avx512_iota();
    gpuir__compress_avx512(p->from + found, hit, _mm512_add_epi32(iota, _mm512_set1_epi32((int)i)));
    gpuir__compress_avx512(p->where + found, other, _mm512_add_epi32(iota, _mm512_set1_epi32((int)at)));
  }
  return found + (uint32_t)__builtin_popcount(hit);
}

GPUIR__AVX512 GPUIR__NOINLINE uint32_t gpuir__merge_avx512(gpuir__merge *m, uint32_t found) {
  return gpuir__merge_any(gpuir__match_avx512, 16, 1, m, found);
}

/* Finds the first block >= from whose last docID is >= x, or nblocks, by counting the blocks among the next 16 that end
 * below x. */
GPUIR__AVX512 GPUIR__INLINE uint32_t gpuir__find_block_avx512(const gpuir__list *l, uint32_t from, uint32_t x) {
  uint32_t have, below;
  if (!l->last || from >= l->nblocks) return from;
  have = gpuir__min32(l->nblocks - from, 16);
  below = gpuir__mask_bits(_mm512_mask_cmplt_epu32_mask((__mmask16)((1u << have) - 1),
      _mm512_maskz_loadu_epi32((__mmask16)((1u << have) - 1), l->last + from), _mm512_set1_epi32((int)x)));
  below = (uint32_t)__builtin_popcount(below);
  return below < 16 ? from + below : gpuir__list_find_block(l, from + 15, x);
}

/* Does what a gpuir__spot_kernel does for a register of candidates at a time: each is compared with all docIDs of the
 * block, so that no branch depends on how many of them are there, except whether all 16 are. In the lanes of candidates
 * behind the block stands the last one before them, which adds no match: the padding of both sides never meets. */
GPUIR__AVX512 GPUIR__INLINE uint32_t gpuir__spot_pairs(int indices, const gpuir__spot *s, uint32_t *next,
    uint32_t found) {
  const gpuir__pass pass = *s->pass;
  const __m512i iota = gpuir__avx512_iota();
  uint32_t i = *next, mask, hit, n, t, other;
  do {
    __m512i x = _mm512_loadu_si512(pass.candidates + i), at = _mm512_add_epi32(iota, _mm512_set1_epi32((int)s->base));
    uint32_t to = found;
    mask = gpuir__mask_bits(_mm512_cmple_epu32_mask(x, _mm512_set1_epi32((int)s->last)));
    n = (uint32_t)__builtin_popcount(mask);
    x = _mm512_permutexvar_epi32(_mm512_min_epu32(iota, _mm512_set1_epi32((int)(n - (n > 0)))), x);
    for (t = 0, hit = 0; t < GPUIR__BLOCK; t += 16) {
      hit |= gpuir__among_avx512(x, _mm512_loadu_si512(s->docs + t), &other);
      if (!indices) continue;
      gpuir__compress_avx512(pass.where + to, other, at);
      to = gpuir__min32(to + (uint32_t)__builtin_popcount(other), pass.m); /* more are in a damaged list alone */
      at = _mm512_add_epi32(at, _mm512_set1_epi32(16));
    }
    hit &= mask;
    gpuir__compress_avx512(pass.docs + found, hit, x);
    if (indices) gpuir__compress_avx512(pass.from + found, hit, _mm512_add_epi32(iota, _mm512_set1_epi32((int)i)));
    found = gpuir__min32(found + (uint32_t)__builtin_popcount(hit), pass.m);
    i += n;
  } while (GPUIR__UNLIKELY(n == 16) && i < pass.m);
  *next = gpuir__min32(i, pass.m);
  return found;
}

/* See gpuir__spot_kernel. */
GPUIR__AVX512 GPUIR__INLINE uint32_t gpuir__spot_avx512(int indices, const gpuir__spot *s, uint32_t *next,
    uint32_t found) {
  const gpuir__pass pass = *s->pass;
  const uint32_t *docs = s->docs;
  const uint32_t base = s->base, last = s->last;
  const __m256i tops = gpuir__tops_16(docs);
  uint32_t i = *next;
  if (s->level == GPUIR__LOOKUP_VP2INTERSECT) return gpuir__spot_pairs(indices, s, next, found);
  for (; i < pass.m; i++) {
    uint32_t x = pass.candidates[i], pos, hit;
    if (x > last) break;
    pos = 16 * (uint32_t)__builtin_popcount(gpuir__mask_bits(_mm256_cmplt_epu32_mask(tops, _mm256_set1_epi32((int)x))));
    hit = gpuir__mask_bits(_mm512_cmpeq_epi32_mask(_mm512_loadu_si512(docs + pos), _mm512_set1_epi32((int)x)));
    found = gpuir__pass_put(&pass, indices, found, i, x, base + pos + gpuir__ctz32(hit | 0x10000u), hit != 0);
  }
  *next = i;
  return found;
}

GPUIR__AVX512 GPUIR__INLINE uint32_t gpuir__behind_avx512(const gpuir__pass *p, uint32_t i, uint32_t last) {
  if (i >= p->m) return i;
  return i +
      (uint32_t)__builtin_popcount(gpuir__mask_bits(
          _mm512_cmple_epu32_mask(_mm512_loadu_si512(p->candidates + i), _mm512_set1_epi32((int)last))));
}

GPUIR__AVX512 static uint32_t gpuir__lookup_avx512(gpuir__operand *o, const gpuir__pass *p) {
  return gpuir__lookup_by(gpuir__find_block_avx512, gpuir__behind_avx512, gpuir__spot_avx512, o, p);
}

#endif

/* ---- without vectors; the table */

#define GPUIR__NEAR 8u /* from so many candidates in a block on, the next docID is searched for step by step */

/* Looks up candidates in a list, block by block, without vectors. */
static uint32_t gpuir__lookup_scalar(gpuir__operand *o, const gpuir__pass *p) {
  gpuir__cursor *c = o->cursor;
  const gpuir__list *l = &c->list;
  uint32_t block = o->at / GPUIR__BLOCK, i = 0, found = 0;
  while (i < p->m) {
    uint32_t last, before = i, pos = 0;
    int near;
    block = gpuir__list_find_block(l, block, p->candidates[i]);
    if (block >= l->nblocks) break;
    gpuir__cursor_load(c, block);
    last = l->last ? l->last[block] : UINT32_MAX - 1;
    near = p->m - i >= GPUIR__NEAR && p->candidates[i + GPUIR__NEAR - 1] <= last;
    for (; i < p->m && p->candidates[i] <= last; i++) {
      uint32_t x = p->candidates[i];
      if (near)
        while (c->docs[pos] < x) pos++; /* ends at the UINT32_MAX behind the block */
      else pos = gpuir__lower_bound(c->docs, pos, c->n, x);
      found = gpuir__pass_put(p, p->from != NULL, found, i, x, block * GPUIR__BLOCK + pos, c->docs[pos] == x);
    }
    if (i == before) i++; /* only in a damaged file */
  }
  o->at = gpuir__min32(block, l->nblocks) * GPUIR__BLOCK;
  return found;
}

/* ---- dense lists: by bits and ranks ----
 *
 * Each candidate's bit tells whether the list holds it; of those found the rank of the line and the bits before tell
 * the index. No block is searched for or decoded. A look-up counts as a block decoded for each 64 candidates. */

/* Writes the indices of n documents that a dense list holds. fast: see gpuir__dense_ones. */
GPUIR__INLINE void gpuir__dense_ranks(int fast, const gpuir__list *l, const uint32_t *docs, uint32_t n,
    uint32_t *where) {
  uint32_t i;
  for (i = 0; i < n; i++) where[i] = gpuir__dense_rank(fast, l, docs[i]);
}

static void gpuir__dense_ranks_scalar(const gpuir__list *l, const uint32_t *docs, uint32_t n, uint32_t *where) {
  gpuir__dense_ranks(0, l, docs, n, where);
}

static uint32_t gpuir__lookup_dense_scalar(gpuir__operand *o, const gpuir__pass *p) {
  const gpuir__list *l = &o->cursor->list;
  const uint32_t last = l->docs.limit;
  uint32_t i, found = 0;
  for (i = 0; i < p->m; i++) {
    const uint32_t x = p->candidates[i];
    p->docs[found] = x;
    if (p->from) p->from[found] = i;
    found += x <= last && gpuir__dense_has(l, gpuir__min32(x, last));
  }
  if (p->from && p->where) gpuir__dense_ranks(0, l, p->docs, found, p->where);
  o->cursor->decoded += (p->m + 63) / 64;
  return found;
}

#if GPUIR__X86
GPUIR__AVX2 static void gpuir__dense_ranks_avx2(const gpuir__list *l, const uint32_t *docs, uint32_t n,
    uint32_t *where) {
  gpuir__dense_ranks(1, l, docs, n, where);
}

GPUIR__AVX2 static uint32_t gpuir__lookup_dense_avx2(gpuir__operand *o, const gpuir__pass *p) {
  const gpuir__list *l = &o->cursor->list;
  const int *bits = (const int *)(const void *)l->dense.bits;
  const __m256i last = _mm256_set1_epi32((int)l->docs.limit), zero = _mm256_setzero_si256();
  const __m256i iota = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), low = _mm256_set1_epi32(31);
  uint32_t i, found = 0;
  for (i = 0; i < p->m; i += 8) {
    const __m256i x = gpuir__avx2_load(p->candidates + i);
    const __m256i there = _mm256_cmpeq_epi32(_mm256_min_epu32(x, last), x);
    const __m256i w = _mm256_mask_i32gather_epi32(zero, bits, _mm256_srli_epi32(x, 5), there, 4);
    const __m256i bit = _mm256_sllv_epi32(w, _mm256_sub_epi32(low, _mm256_and_si256(x, low))); /* the sign's */
    const uint32_t all = gpuir__low_bits(gpuir__min32(p->m - i, 8));
    const uint32_t hit = (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(bit)) & all;
    gpuir__compress_avx2(p->docs + found, hit, x);
    if (p->from) gpuir__compress_avx2(p->from + found, hit, _mm256_add_epi32(iota, _mm256_set1_epi32((int)i)));
    found += (uint32_t)__builtin_popcount(hit);
  }
  if (p->from && p->where) gpuir__dense_ranks(1, l, p->docs, found, p->where);
  o->cursor->decoded += (p->m + 63) / 64;
  return found;
}

GPUIR__AVX512 static uint32_t gpuir__lookup_dense_avx512(gpuir__operand *o, const gpuir__pass *p) {
  const gpuir__list *l = &o->cursor->list;
  const __m512i last = _mm512_set1_epi32((int)l->docs.limit), zero = _mm512_setzero_si512();
  const __m512i iota = gpuir__avx512_iota(), one = _mm512_set1_epi32(1);
  uint32_t i, found = 0;
  for (i = 0; i < p->m; i += 16) {
    const __mmask16 all = (__mmask16)gpuir__low_bits(gpuir__min32(p->m - i, 16));
    const __m512i x = _mm512_loadu_si512(p->candidates + i);
    const __mmask16 there = _mm512_mask_cmple_epu32_mask(all, x, last);
    const __m512i w = _mm512_mask_i32gather_epi32(zero, there, _mm512_srli_epi32(x, 5), l->dense.bits, 4);
    const uint32_t hit = gpuir__mask_bits(_mm512_test_epi32_mask(_mm512_rorv_epi32(w, x), one));
    gpuir__compress_avx512(p->docs + found, hit, x);
    if (p->from) gpuir__compress_avx512(p->from + found, hit, _mm512_add_epi32(iota, _mm512_set1_epi32((int)i)));
    found += (uint32_t)__builtin_popcount(hit);
  }
  if (p->from && p->where) gpuir__dense_ranks(1, l, p->docs, found, p->where);
  o->cursor->decoded += (p->m + 63) / 64;
  return found;
}
#endif

/* The kernels of each SIMD level, by GPUIR__LOOKUP_. */
static const gpuir__lookup_kernels gpuir__lookup_of_level[4] = {
    {gpuir__lookup_scalar, gpuir__lookup_dense_scalar, gpuir__dense_ranks_scalar, NULL, GPUIR__LOOKUP_SCALAR},
#if GPUIR__X86
    {gpuir__lookup_avx2, gpuir__lookup_dense_avx2, gpuir__dense_ranks_avx2, gpuir__merge_avx2, GPUIR__LOOKUP_AVX2},
    {gpuir__lookup_avx512, gpuir__lookup_dense_avx512, gpuir__dense_ranks_avx2, gpuir__merge_avx2,
        GPUIR__LOOKUP_AVX512},
    {gpuir__lookup_avx512, gpuir__lookup_dense_avx512, gpuir__dense_ranks_avx2, gpuir__merge_avx512,
        GPUIR__LOOKUP_VP2INTERSECT},
#endif
};

/* Chooses the kernels for a resolved GPUIR_SIMD_ level on this processor. */
static const gpuir__lookup_kernels *gpuir__lookup_choose(int simd) {
#if GPUIR__X86 && GPUIR__VP2INTERSECT
  if (simd == GPUIR_SIMD_AVX512 && __builtin_cpu_supports("avx512vp2intersect"))
    return &gpuir__lookup_of_level[GPUIR__LOOKUP_VP2INTERSECT];
#endif
  return &gpuir__lookup_of_level[simd - GPUIR_SIMD_SCALAR];
}

/* Makes an operand of a list under a cursor, or, with NULL, of an array whose docs and n the caller fills in. */
static void gpuir__operand_init(gpuir__operand *o, gpuir__cursor *c, const gpuir__lookup_kernels *kernels) {
  memset(o, 0, sizeof *o);
  o->cursor = c;
  o->n = c ? c->list.df : 0;
  o->kernels = kernels;
}

/* Looks up the candidates of a pass in the operand's list; returns the number of candidates that the list holds. */
static inline uint32_t gpuir__lookup(gpuir__operand *o, const gpuir__pass *p) {
  return o->cursor->list.dense.bits ? o->kernels->dense(o, p) : o->kernels->list(o, p);
}
