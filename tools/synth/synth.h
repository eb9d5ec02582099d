/* synth.h - generated indexes and query logs of web shape; include after gpuir.h
 *
 * A collection is made list by list, never document by document. What is drawn:
 *
 *   lists     Term r, named `t<r>` from t0, is in D / (1 + r / SYNTH_FLAT)^zipf documents (Zipf-Mandelbrot). D follows
 *             from the postings that a query is to have; the last term is exp(SYNTH_SPAN) times rarer than the first.
 *   topics    Each document has one of SYNTH_TOPICS topics, which stand in a ring; each term has an arc of the ring.
 *             SYNTH_TOPICAL of a term's postings are in documents of its arc, the others anywhere. An arc is as
 *             short as it can be while the term is in about SYNTH_DENSEST of the arc's documents at most, so a
 *             frequent term has many topics. The terms of a query share one: that is why they occur together.
 *   docIDs    Clustering 0: random order, the topics of successive documents are independent, gaps geometric. Up to
 *             clustering 1: runs of documents on one topic, like the sites of a crawl, and lists in bursts.
 *   tf        P(tf >= x) = x^-c, c by synth_tail: a mean of about 3, and as many bits as OptPFD takes for GOV2 in
 *             random order, 3.1.
 *   lengths   Log-normal. They are no sums of tf: only a few of the terms of a web page have lists here.
 *   queries   The number of terms as in Ao et al., VLDB 2011, table 4. The rarest term's df is D exp(-SYNTH_SPAN v^a),
 *             another term's D exp(-SYNTH_SPAN v^a u^h), u and v uniform, with h by the number of terms, so that the
 *             two shortest lists have the ratio of that table.
 *
 * The same description gives the same bytes, whatever the threads. */
#ifndef SYNTH_H
#define SYNTH_H

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYNTH_TOPICS 256u
#define SYNTH_TOPICAL 0.5
#define SYNTH_DENSEST 0.5
#define SYNTH_SPAN 13.0
#define SYNTH_RAREST 0.7 /* a, see queries above */
#define SYNTH_FLAT 160.0 /* ranks that are about as frequent as the first */
#define SYNTH_ZIPF 1.55 /* the default of zipf */
#define SYNTH_POSTINGS 0.1484 /* of postings: Ding et al., WWW 2009, 3.74 of GOV2's 25.2 million documents */
#define SYNTH_LENGTH 900.0 /* of length */
#define SYNTH_DENSEST_LIST 0.9 /* of all documents */
#define SYNTH_BURST 15 /* of 16 gaps are in bursts */
#define SYNTH_DENSER 16.0 /* times as dense as the list are bursts at clustering 1 */
#define SYNTH_LONGEST 12 /* terms of a query */

typedef struct synth_desc {
  uint32_t documents;
  uint32_t terms; /* 0: down to the rarest that queries may hold */
  uint32_t queries; /* in the log */
  double postings; /* of a query on average; 0: SYNTH_POSTINGS of the documents */
  double zipf; /* exponent of document frequencies, above 1; 0: SYNTH_ZIPF */
  double clustering; /* of docIDs, 0 to 1 */
  double length; /* of a document on average; 0: SYNTH_LENGTH */
  const char *codec; /* as in gpuir_builder_desc */
  const char *freq_codec;
  unsigned threads; /* 0: 1 */
  uint64_t seed;
} synth_desc;

/* ---- random numbers: splitmix64 ---- */

typedef struct synth_rng {
  uint64_t s;
} synth_rng;

static inline uint64_t synth_next(synth_rng *r) {
  uint64_t z = r->s += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
static inline uint32_t synth_below(synth_rng *r, uint32_t n) { return (uint32_t)(((synth_next(r) >> 32) * n) >> 32); }
static inline double synth_unit(synth_rng *r) { return ((double)(synth_next(r) >> 11) + 0.5) / 9007199254740992.0; }

enum { SYNTH_OF_DOCS = 1, SYNTH_OF_TFS, SYNTH_OF_ARC, SYNTH_OF_TOPICS, SYNTH_OF_LENGTHS, SYNTH_OF_QUERIES };

/* An independent sequence for each thing drawn. */
static synth_rng synth_stream(uint64_t seed, unsigned what, uint64_t which) {
  synth_rng r = {seed};
  r.s = synth_next(&r) ^ what;
  r.s = synth_next(&r) ^ which;
  r.s = synth_next(&r);
  return r;
}

/* ---- the collection ---- */

typedef struct synth_arc {
  uint16_t from, width; /* topics from, from + 1, ..., around the ring */
} synth_arc;

typedef struct synth {
  synth_desc d; /* with all defaults filled in */
  double most; /* D */
  synth_arc *arcs; /* of each term */
  uint32_t *ranks; /* of queries[i]: ranks[i * SYNTH_LONGEST ...], ended by UINT32_MAX if there are fewer */
  /* while an index is written */
  uint16_t *topic; /* of each document */
  uint32_t *members; /* documents by topic, ascending in each */
  uint32_t starts[SYNTH_TOPICS + 1]; /* of each topic in members */
  uint32_t exponential[4097]; /* -ln((1 + i / 4096) / 2) in units of 2^-32 */
  uint16_t tf[2][4096]; /* quantiles; [1]: in documents of the term's arc */
} synth;

/* Returns the share of D that term `rank` has. */
static double synth_share(const synth *s, uint32_t rank) { return pow(1 + rank / SYNTH_FLAT, -s->d.zipf); }

/* Returns the term, as a real number, whose df is D exp(-y). */
static double synth_rank(const synth *s, double y) { return SYNTH_FLAT * (exp(y / s->d.zipf) - 1); }

static double synth_df(const synth *s, uint32_t rank) {
  double df = s->most * synth_share(s, rank);
  return df < 1 ? 1 : df;
}

static void synth_draw_arcs(const synth *s) {
  uint32_t i;
  for (i = 0; i < s->d.terms; i++) {
    synth_rng r = synth_stream(s->d.seed, SYNTH_OF_ARC, i);
    double width = ceil(SYNTH_TOPICAL / SYNTH_DENSEST * SYNTH_TOPICS * synth_df(s, i) / s->d.documents);
    s->arcs[i].from = (uint16_t)synth_below(&r, SYNTH_TOPICS);
    s->arcs[i].width = (uint16_t)(width < SYNTH_TOPICS ? width : SYNTH_TOPICS);
  }
}

static inline int synth_in_arc(uint32_t topic, synth_arc arc) {
  return (topic + SYNTH_TOPICS - arc.from) % SYNTH_TOPICS < arc.width;
}

/* ---- queries ---- */

/* Ao et al., table 4, have the shares of two to six terms. Those of longer queries go on as in the TREC 2005 Terabyte
 * efficiency topics, relative to six terms; single terms are the rest. */
static const double synth_query_lengths[SYNTH_LONGEST] = {0.0386, 0.161, 0.245, 0.228, 0.148, 0.0824, 0.0445, 0.0240,
    0.016, 0.007, 0.0042, 0.0013};
/* The exponent h by the number of terms; more than six have that of six. */
static const double synth_query_spread[] = {1, 1, 1.55, 1.34, 1.41, 1.53, 1.70};

/* Lengths follow the shares closely in any stretch of the log: a sequence of low discrepancy, not random numbers. */
static uint32_t synth_query_length(const synth *s, uint32_t query) {
  synth_rng r = synth_stream(s->d.seed, SYNTH_OF_QUERIES, UINT64_MAX);
  double u = fmod(query * 0.6180339887498949 + synth_unit(&r), 1);
  uint32_t n = 0;
  while (n < SYNTH_LONGEST - 1 && u >= synth_query_lengths[n]) u -= synth_query_lengths[n++];
  n++;
  return n < s->d.terms ? n : s->d.terms;
}

/* The term of `topic` that is nearest to `rank` and is not among the n chosen ones; any term if there is none. */
static uint32_t synth_choose(const synth *s, uint32_t rank, uint32_t topic, const uint32_t *chosen, uint32_t n) {
  uint32_t step, most = s->d.terms, any = UINT32_MAX;
  for (step = 0; step < 2 * most; step++) {
    uint32_t away = (step + 1) / 2, i;
    if (step & 1 ? away > rank : away >= most - rank) continue;
    away = step & 1 ? rank - away : rank + away;
    for (i = 0; i < n && chosen[i] != away; i++) {}
    if (i < n) continue;
    if (synth_in_arc(topic, s->arcs[away])) return away;
    if (any == UINT32_MAX) any = away;
    if (step > 16 * SYNTH_TOPICS) break;
  }
  return any;
}

/* Draws a query; returns the sum of its terms' shares. */
static double synth_draw_query(const synth *s, uint32_t query, uint32_t *ranks) {
  synth_rng r = synth_stream(s->d.seed, SYNTH_OF_QUERIES, query);
  uint32_t n = synth_query_length(s, query), topic = synth_below(&r, SYNTH_TOPICS), i, place, swap;
  double span = SYNTH_SPAN, reach = s->d.zipf * log(1 + (s->d.terms - 1) / SYNTH_FLAT), sum = 0, rarest;
  if (span > reach) span = reach;
  rarest = span * pow(synth_unit(&r), SYNTH_RAREST);
  for (i = 0; i < n; i++) {
    double y = i ? rarest * pow(synth_unit(&r), synth_query_spread[n < 6 ? n : 6]) : rarest;
    double rank = synth_rank(s, y) + 0.5;
    ranks[i] = synth_choose(s, rank < s->d.terms ? (uint32_t)rank : s->d.terms - 1, topic, ranks, i);
    sum += synth_share(s, ranks[i]);
  }
  if (n < SYNTH_LONGEST) ranks[n] = UINT32_MAX;
  place = synth_below(&r, n); /* the rarest stands anywhere */
  swap = ranks[0];
  ranks[0] = ranks[place];
  ranks[place] = swap;
  return sum;
}

/* Writes query i of the log as text. */
static inline void synth_query(const synth *s, uint32_t i, char *text, size_t cap) {
  const uint32_t *ranks = s->ranks + (size_t)i * SYNTH_LONGEST;
  size_t at = 0;
  uint32_t n;
  for (n = 0; n < SYNTH_LONGEST && ranks[n] != UINT32_MAX; n++)
    at += (size_t)snprintf(text + at, cap - at, "%st%u", n ? " " : "", (unsigned)ranks[n]);
}

/* ---- making and freeing ---- */

static void synth_close(synth *s) {
  if (!s) return;
  free(s->arcs);
  free(s->ranks);
  free(s->topic); /* NOLINT(clang-analyzer-unix.Malloc): it takes what is drawn into arcs for this pointer */
  free(s->members);
  free(s);
}

static int synth_fail(gpuir_error *err, int code, const char *msg) {
  if (err) {
    memset(err, 0, sizeof *err);
    err->code = code;
    (void)snprintf(err->msg, sizeof err->msg, "%s", msg);
  }
  return code;
}

/* Draws the queries. D follows from the postings that they are to have, and they a little from D, by the widths of
 * arcs: a few rounds settle both. */
static int synth_draw_queries(synth *s, gpuir_error *err) {
  double sum;
  uint32_t round, i;
  for (round = 0; round < 4; round++) {
    synth_draw_arcs(s);
    for (sum = 0, i = 0; i < s->d.queries; i++) sum += synth_draw_query(s, i, s->ranks + (size_t)i * SYNTH_LONGEST);
    s->most = s->d.postings * s->d.queries / sum;
    if (s->most > SYNTH_DENSEST_LIST * s->d.documents)
      return synth_fail(err, GPUIR_E_ARGUMENT, "so many postings a query need lists longer than the collection");
  }
  return GPUIR_OK;
}

/* Takes the description's defaults and draws the query log. 0, or a status with *err. */
static int synth_open(const synth_desc *desc, synth **out, gpuir_error *err) {
  synth *s = (synth *)calloc(1, sizeof *s);
  double last;
  int status;
  *out = NULL;
  if (!s) return synth_fail(err, GPUIR_E_NOMEM, "out of memory");
  s->d = *desc;
  if (!(s->d.postings > 0)) s->d.postings = SYNTH_POSTINGS * s->d.documents;
  if (!(s->d.zipf > 0)) s->d.zipf = SYNTH_ZIPF;
  if (!(s->d.length > 0)) s->d.length = SYNTH_LENGTH;
  if (!s->d.threads) s->d.threads = 1;
  last = ceil(synth_rank(s, SYNTH_SPAN)) + 1;
  if (!s->d.terms) s->d.terms = last < 1e8 ? (uint32_t)last : 100000000u;
  s->most = s->d.postings; /* a first guess */
  s->ranks = (uint32_t *)malloc((size_t)s->d.queries * SYNTH_LONGEST * sizeof *s->ranks);
  s->arcs = (synth_arc *)malloc((size_t)s->d.terms * sizeof *s->arcs);
  if (!s->d.documents || !s->d.queries)
    status = synth_fail(err, GPUIR_E_ARGUMENT, "a collection has documents and queries");
  else status = s->ranks && s->arcs ? synth_draw_queries(s, err) : synth_fail(err, GPUIR_E_NOMEM, "out of memory");
  if (status) synth_close(s);
  else *out = s;
  return status;
}

/* ---- documents ---- */

/* Topics in runs whose lengths are geometric, of (documents / (16 topics))^clustering on average. */
static void synth_draw_topics(synth *s) {
  synth_rng r = synth_stream(s->d.seed, SYNTH_OF_TOPICS, 0);
  double longest = s->d.documents / (16.0 * SYNTH_TOPICS);
  double stay = longest > 1 ? 1 - 1 / pow(longest, s->d.clustering) : 0;
  uint32_t at[SYNTH_TOPICS], i, t = 0;
  memset(at, 0, sizeof at);
  for (i = 0; i < s->d.documents; i++) {
    if (!i || synth_unit(&r) >= stay) t = synth_below(&r, SYNTH_TOPICS);
    s->topic[i] = (uint16_t)t;
    at[t]++;
  }
  for (i = 0, s->starts[0] = 0; i < SYNTH_TOPICS; i++) {
    s->starts[i + 1] = s->starts[i] + at[i];
    at[i] = s->starts[i];
  }
  for (i = 0; i < s->d.documents; i++) s->members[at[s->topic[i]]++] = i;
}

/* The exponent c of tf: anywhere, and in documents of the term's arc. */
static const double synth_tail[2] = {1.8, 1.3};

static void synth_make_tables(synth *s) {
  unsigned i, kind;
  for (i = 0; i <= 4096; i++) s->exponential[i] = (uint32_t)(-log((4096 + i) / 8192.0) * 4294967296.0 + 0.5);
  for (kind = 0; kind < 2; kind++)
    for (i = 0; i < 4096; i++) s->tf[kind][i] = (uint16_t)pow((i + 0.5) / 4096, -1 / synth_tail[kind]);
}

/* ---- lists ---- */

/* Positions at which a thing of probability p occurs. In random order gaps are geometric: exponential, rounded down.
 * With clustering they come in bursts: SYNTH_BURST of 16 gaps are short, the others make up for them. The exponential
 * is made of integers and one multiplication, so that every machine draws the same. */
typedef struct synth_gaps {
  synth_rng r;
  const uint32_t *exponential;
  double scale[2]; /* of an exponential in units of 2^-32, in long and in short gaps */
  uint64_t next, end;
} synth_gaps;

static inline void synth_gaps_next(synth_gaps *g) {
  uint64_t x = synth_next(&g->r) | 1, e = (uint64_t)__builtin_clzll(x), fraction, i;
  int is_short = (x >> 1 & 15) < SYNTH_BURST;
  x <<= e;
  i = (x >> 51) & 4095;
  fraction = (x >> 31) & 0xfffff;
  x = e * 2977044472u + g->exponential[i] -
      (((uint64_t)(g->exponential[i] - g->exponential[i + 1]) * fraction) >> 20); /* e ln 2 + ... */
  g->next += (uint64_t)((double)x * g->scale[is_short]);
}

/* Returns the factor that makes gaps of mean 1 / p of an exponential. */
static double synth_gap_scale(double p) { return p < 1 ? -1 / log1p(-p) / 4294967296.0 : 0; }

static synth_gaps synth_gaps_start(const synth *s, synth_rng r, double p, uint64_t end) {
  const double part = SYNTH_BURST / 16.0;
  double dense = p * pow(SYNTH_DENSER, s->d.clustering), short_scale, long_scale;
  synth_gaps g;
  g.r = r;
  g.exponential = s->exponential;
  g.next = p > 0 ? 0 : end;
  g.end = end;
  if (g.next == end) return g;
  if (dense > SYNTH_DENSEST_LIST) dense = p > SYNTH_DENSEST_LIST ? p : SYNTH_DENSEST_LIST;
  short_scale = synth_gap_scale(dense);
  long_scale = synth_gap_scale((1 - part) / (1 / p - part / dense));
  /* Position 0 lies in a short gap with the share of positions that short gaps cover. */
  g.scale[0] = g.scale[1] = synth_unit(&g.r) < part * p / dense ? short_scale : long_scale;
  synth_gaps_next(&g);
  g.scale[0] = long_scale;
  g.scale[1] = short_scale;
  return g;
}

static inline void synth_gaps_step(synth_gaps *g) {
  g->next++;
  synth_gaps_next(g);
}

typedef struct synth_postings {
  uint32_t *docs, *tfs, n, cap;
} synth_postings;

/* Both sequences merged: `topical` counts members of one topic. */
static void synth_merge(synth_gaps *topical, const uint32_t *members, synth_gaps *others, synth_postings *l) {
  uint64_t a = topical->next < topical->end ? members[topical->next] : UINT64_MAX;
  for (;;) {
    uint64_t b = others->next < others->end ? others->next : UINT64_MAX, least = a < b ? a : b;
    if (least == UINT64_MAX || l->n == l->cap) return;
    l->docs[l->n++] = (uint32_t)least;
    if (b == least) synth_gaps_step(others);
    if (a != least) continue;
    synth_gaps_step(topical);
    a = topical->next < topical->end ? members[topical->next] : UINT64_MAX;
  }
}

/* Many sequences merged by way of a bitmap, which is left clear. */
static void synth_take_bits(uint64_t *bits, uint32_t documents, synth_postings *l) {
  uint32_t word;
  for (word = 0; word <= documents / 64; word++) {
    uint64_t x = bits[word];
    bits[word] = 0;
    for (; x && l->n < l->cap; x &= x - 1) l->docs[l->n++] = word * 64 + (uint32_t)__builtin_ctzll(x);
  }
}

static void synth_draw_docs(const synth *s, uint32_t rank, uint64_t *bits, synth_postings *l) {
  double df = synth_df(s, rank), all = s->d.documents, p, inside;
  synth_arc arc = s->arcs[rank];
  uint32_t i, size = 0;
  synth_gaps others, topical;
  for (i = 0; i < arc.width; i++) {
    uint32_t t = ((uint32_t)arc.from + i) % SYNTH_TOPICS;
    size += s->starts[t + 1] - s->starts[t];
  }
  inside = SYNTH_TOPICAL * df;
  if (inside > SYNTH_DENSEST_LIST * size) inside = SYNTH_DENSEST_LIST * size; /* a small topic */
  p = (df - inside) / all;
  others = synth_gaps_start(s, synth_stream(s->d.seed, SYNTH_OF_DOCS, (uint64_t)rank << 16), p, s->d.documents);
  /* Of a document in the arc: what brings it from p to p + inside / size. */
  inside = size ? inside / size / (1 - p) : 0;
  for (i = 0; i < arc.width; i++) {
    uint32_t t = ((uint32_t)arc.from + i) % SYNTH_TOPICS;
    const uint32_t *members = s->members + s->starts[t];
    topical = synth_gaps_start(s, synth_stream(s->d.seed, SYNTH_OF_DOCS, ((uint64_t)rank << 16) + 1 + i), inside,
        s->starts[t + 1] - s->starts[t]);
    if (arc.width == 1) {
      synth_merge(&topical, members, &others, l);
      return;
    }
    for (; topical.next < topical.end; synth_gaps_step(&topical))
      bits[members[topical.next] / 64] |= (uint64_t)1 << (members[topical.next] % 64);
  }
  for (; others.next < others.end; synth_gaps_step(&others))
    bits[others.next / 64] |= (uint64_t)1 << (others.next % 64);
  synth_take_bits(bits, s->d.documents, l);
}

static void synth_draw_tfs(const synth *s, uint32_t rank, synth_postings *l) {
  synth_rng r = synth_stream(s->d.seed, SYNTH_OF_TFS, rank);
  synth_arc arc = s->arcs[rank];
  uint64_t x = 0;
  uint32_t i;
  for (i = 0; i < l->n; i++, x >>= 12) {
    if (i % 5 == 0) x = synth_next(&r);
    l->tfs[i] = s->tf[synth_in_arc(s->topic[l->docs[i]], arc)][x & 4095];
  }
}

/* Appends term `rank`'s list to *all and returns its df. bits: a bit a document, clear. */
static uint32_t synth_make_list(const synth *s, uint32_t rank, uint64_t *bits, synth_postings *all) {
  synth_postings l;
  l.docs = all->docs + all->n;
  l.tfs = all->tfs + all->n;
  l.n = 0;
  l.cap = all->cap - all->n;
  synth_draw_docs(s, rank, bits, &l);
  if (!l.n) l.docs[l.n++] = (uint32_t)(rank % s->d.documents);
  synth_draw_tfs(s, rank, &l);
  all->n += l.n;
  return l.n;
}

/* Postings that a list surely has room in: df is binomial. */
static uint32_t synth_room(const synth *s, uint32_t rank) {
  double df = synth_df(s, rank), most = df + 10 * (s->d.clustering > 0 ? 6 : 1) * sqrt(df) + 64;
  return most < s->d.documents ? (uint32_t)most : s->d.documents;
}

/* ---- writing an index: threads make lists, in jobs of terms in a row; the caller hands them on in order ---- */

#define SYNTH_JOB (1u << 20) /* postings of a job, unless a single list has more */
#define SYNTH_SLOTS 64u

typedef struct synth_slot {
  synth_postings l;
  uint32_t *dfs; /* of the job's terms */
  int done, status;
} synth_slot;

typedef struct synth_writer {
  const synth *s;
  uint32_t *terms; /* in byte order of their names */
  uint32_t *jobs, njobs; /* job j: terms[jobs[j]] to terms[jobs[j + 1] - 1] */
  uint32_t taken, used, slots;
  int stop;
  synth_slot slot[SYNTH_SLOTS];
  pthread_mutex_t lock;
  pthread_cond_t changed;
} synth_writer;

/* Byte order of names is that of decimal numerals. */
static void synth_order_terms(uint32_t *terms, uint32_t n) {
  uint64_t at = 1;
  uint32_t i;
  terms[0] = 0;
  for (i = 1; i < n; i++) {
    terms[i] = (uint32_t)at;
    if (at * 10 < n) {
      at *= 10;
      continue;
    }
    while (at % 10 == 9 || at + 1 >= n) at /= 10;
    at++;
  }
}

static void synth_cut_jobs(synth_writer *w) {
  uint32_t i, n = w->s->d.terms, room = 0;
  for (i = 0; i < n; i++) {
    uint32_t more = synth_room(w->s, w->terms[i]);
    if (!i || room > SYNTH_JOB - (more < SYNTH_JOB ? more : SYNTH_JOB)) {
      w->jobs[w->njobs++] = i;
      room = 0;
    }
    room += more;
  }
  w->jobs[w->njobs] = n;
}

static int synth_do_job(const synth_writer *w, uint32_t job, uint64_t *bits, synth_slot *slot) {
  uint32_t from = w->jobs[job], n = w->jobs[job + 1] - from, i;
  uint64_t room = 0;
  for (i = 0; i < n; i++) room += synth_room(w->s, w->terms[from + i]);
  slot->l.docs = (uint32_t *)malloc((size_t)room * 8);
  slot->dfs = (uint32_t *)malloc((size_t)n * 4);
  if (!slot->l.docs || !slot->dfs || !bits) return GPUIR_E_NOMEM;
  slot->l.tfs = slot->l.docs + room;
  slot->l.cap = (uint32_t)room;
  slot->l.n = 0;
  for (i = 0; i < n; i++) slot->dfs[i] = synth_make_list(w->s, w->terms[from + i], bits, &slot->l);
  return GPUIR_OK;
}

static void *synth_worker(void *argument) {
  synth_writer *w = (synth_writer *)argument;
  uint64_t *bits = (uint64_t *)calloc(w->s->d.documents / 64 + 1, 8);
  (void)pthread_mutex_lock(&w->lock);
  for (;;) {
    uint32_t job;
    synth_slot *slot;
    while (!w->stop && w->taken < w->njobs && w->taken - w->used == w->slots)
      (void)pthread_cond_wait(&w->changed, &w->lock);
    if (w->stop || w->taken == w->njobs) break;
    job = w->taken++;
    slot = &w->slot[job % w->slots];
    (void)pthread_mutex_unlock(&w->lock);
    slot->status = synth_do_job(w, job, bits, slot);
    (void)pthread_mutex_lock(&w->lock);
    slot->done = 1;
    (void)pthread_cond_broadcast(&w->changed);
  }
  (void)pthread_mutex_unlock(&w->lock);
  free(bits);
  return NULL;
}

static void synth_free_slot(synth_slot *slot) {
  free(slot->l.docs);
  free(slot->dfs);
  memset(slot, 0, sizeof *slot);
}

/* The lists of the next job, from its slot to the builder. */
static int synth_put_job(synth_writer *w, uint32_t job, gpuir_builder *b, gpuir_error *err) {
  synth_slot *slot = &w->slot[job % w->slots];
  uint32_t i, at = 0;
  int status;
  (void)pthread_mutex_lock(&w->lock);
  while (!slot->done) (void)pthread_cond_wait(&w->changed, &w->lock);
  (void)pthread_mutex_unlock(&w->lock);
  status = slot->status ? synth_fail(err, slot->status, "out of memory") : GPUIR_OK;
  for (i = w->jobs[job]; i < w->jobs[job + 1] && !status; i++) {
    uint32_t df = slot->dfs[i - w->jobs[job]];
    char name[16];
    int len = snprintf(name, sizeof name, "t%u", (unsigned)w->terms[i]);
    status = gpuir_builder_add_list(b, name, (size_t)len, slot->l.docs + at, slot->l.tfs + at, NULL, df, err);
    at += df;
  }
  synth_free_slot(slot);
  (void)pthread_mutex_lock(&w->lock);
  w->used++;
  (void)pthread_cond_broadcast(&w->changed);
  (void)pthread_mutex_unlock(&w->lock);
  return status;
}

static int synth_put_lists(synth_writer *w, gpuir_builder *b, gpuir_error *err) {
  pthread_t id[SYNTH_SLOTS / 2];
  unsigned n = w->s->d.threads < SYNTH_SLOTS / 2 ? w->s->d.threads : SYNTH_SLOTS / 2, started = 0;
  uint32_t job;
  int status = GPUIR_OK;
  w->slots = 2 * n;
  while (started < n && !pthread_create(&id[started], NULL, synth_worker, w)) started++;
  if (!started) return synth_fail(err, GPUIR_E_NOMEM, "no thread could be started");
  for (job = 0; job < w->njobs && !status; job++) status = synth_put_job(w, job, b, err);
  (void)pthread_mutex_lock(&w->lock);
  w->stop = 1;
  (void)pthread_cond_broadcast(&w->changed);
  (void)pthread_mutex_unlock(&w->lock);
  while (started) (void)pthread_join(id[--started], NULL);
  for (job = 0; job < w->slots; job++) synth_free_slot(&w->slot[job]);
  return status;
}

static int synth_put_docs(const synth *s, gpuir_builder *b, gpuir_error *err) {
  synth_rng r = synth_stream(s->d.seed, SYNTH_OF_LENGTHS, 0);
  const double sigma = 0.9; /* of the logarithm */
  uint32_t i;
  int status = GPUIR_OK;
  for (i = 0; i < s->d.documents && !status; i++) {
    double normal = sqrt(3.0) * (synth_unit(&r) + synth_unit(&r) + synth_unit(&r) + synth_unit(&r) - 2), length;
    length = s->d.length * exp(sigma * normal - sigma * sigma / 2) + 0.5;
    status = gpuir_builder_add_doc(b, NULL,
        length < 1         ? 1
            : length < 1e9 ? (uint32_t)length
                           : 1000000000u,
        NULL, 0, err);
  }
  return status;
}

/* Documents and lists, when the arrays for them are there. */
static int synth_put_all(synth *s, synth_writer *w, gpuir_builder *b, gpuir_error *err) {
  int status = synth_put_docs(s, b, err);
  if (status) return status;
  synth_draw_topics(s);
  synth_make_tables(s);
  synth_order_terms(w->terms, s->d.terms);
  synth_cut_jobs(w);
  status = synth_put_lists(w, b, err);
  return status ? status : gpuir_builder_write(b, NULL, err);
}

/* The description of the index. Where it is the same, so are the lists and the queries. */
static void synth_describe(const synth *s, char *text, size_t cap) {
  (void)snprintf(text, cap,
      "synthetic: %u documents, %u terms, %u queries of %.10g postings, zipf %g, clustering %g, "
      "length %g, seed %llu",
      (unsigned)s->d.documents, (unsigned)s->d.terms, (unsigned)s->d.queries, s->d.postings, s->d.zipf, s->d.clustering,
      s->d.length, (unsigned long long)s->d.seed);
}

/* Writes the index. 0, or a status with *err. */
static int synth_write(synth *s, const char *path, gpuir_error *err) {
  gpuir_builder_desc desc;
  gpuir_builder *b = NULL;
  char description[256];
  synth_writer *w = (synth_writer *)calloc(1, sizeof *w);
  int status = w ? GPUIR_OK : GPUIR_E_NOMEM;
  memset(&desc, 0, sizeof desc);
  synth_describe(s, description, sizeof description);
  desc.path = path;
  desc.analyzer.analyzer = "ascii";
  desc.codec = s->d.codec;
  desc.freq_codec = s->d.freq_codec;
  desc.threads = s->d.threads;
  desc.dense = GPUIR_DENSE_NONE; /* what is measured of lists is of their blocks */
  desc.description = description;
  if (!s->topic) s->topic = (uint16_t *)malloc((size_t)s->d.documents * sizeof *s->topic);
  if (!s->members) s->members = (uint32_t *)malloc((size_t)s->d.documents * sizeof *s->members);
  if (w) {
    w->s = s;
    w->terms = (uint32_t *)malloc((size_t)s->d.terms * 4);
    w->jobs = (uint32_t *)malloc((size_t)s->d.terms * 4 + 4);
    if (!w->terms || !w->jobs || !s->topic || !s->members) status = GPUIR_E_NOMEM;
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_cond_init(&w->changed, NULL);
  }
  if (status) (void)synth_fail(err, status, "out of memory");
  if (!status) status = gpuir_builder_create(&desc, &b, err);
  if (!status) status = synth_put_all(s, w, b, err);
  gpuir_builder_destroy(b);
  if (w) {
    (void)pthread_cond_destroy(&w->changed);
    (void)pthread_mutex_destroy(&w->lock);
    free(w->terms);
    free(w->jobs);
    free(w);
  }
  return status;
}

#endif
