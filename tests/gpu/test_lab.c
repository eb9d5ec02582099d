/* test_lab.c - the laboratory's GPU methods against the CPU, for equality
 *
 * Every codec decodes lists of every edge shape and those of WordNet; every way of intersecting and of selecting is
 * compared with a plain merge and a plain sort. Prints TAP. Without a device it says so and succeeds. `test_lab quick`
 * is the reduced set for compute-sanitizer, `test_lab quick 2/3` the second of each three of its steps, `test_lab
 * INDEX` takes the lists of an index that is there. */
#define GPUIR_IMPLEMENTATION
#include "tools/lab/gpuir_lab.h"

#include "synth.h"

#include "lists.h"

#include "real.h"

#include "share.h"

static unsigned tests, failures;
static char folder[] = "/tmp/gpuir-lab-XXXXXX";

static void report(int ok, const char *what, const char *which) {
  tests++;
  failures += !ok;
  printf("%sok %u - %s %s\n", ok ? "" : "not ", tests, what, which);
  (void)fflush(stdout);
}

/* ---- lists of every shape ---- */

static void make_lists(lists *l, int quick) {
  static const uint32_t all[] = {1, 2, 3, 31, 32, 33, 127, 128, 129, 255, 256, 257, 383, 384, 511, 512, 513, 1000, 1025,
      5000};
  static const uint32_t some[] = {1, 33, 127, 128, 129, 257, 700};
  const uint32_t *lengths = quick ? some : all;
  const unsigned n = quick ? sizeof some / sizeof some[0] : sizeof all / sizeof all[0];
  synth_rng r = {11};
  unsigned i, k;
  uint32_t *d, at;
  for (i = 0; i < n; i++) /* gaps of every width up to what fits */
    for (k = 0; k < 30; k += quick ? 13 : 3)
      if ((uint64_t)lengths[i] << k < UINT32_MAX) lists_add_width(l, lengths[i], k, i * 31 + k);
  for (i = 0; i < n; i++) { /* runs of neighbours between far jumps */
    d = lists_add(l, lengths[i]);
    at = synth_below(&r, 100);
    for (k = 0; k < lengths[i]; k++) {
      d[k] = at;
      at += synth_below(&r, 40) ? 1 : 1 + synth_below(&r, UINT32_MAX / lengths[i]);
    }
  }
  for (i = 0; i < n; i++) { /* the last docID there is, and a progression */
    d = lists_add(l, lengths[i]);
    for (k = 0; k < lengths[i]; k++) d[k] = (UINT32_MAX - 2) / lengths[i] * (k + 1);
    d[lengths[i] - 1] = UINT32_MAX - 1;
  }
  for (i = 0; i < n; i++) { /* strongly curved */
    d = lists_add(l, lengths[i]);
    for (k = 0; k < lengths[i]; k++) d[k] = (uint32_t)(pow((k + 1.0) / lengths[i], 6) * 4e9) + k;
  }
  for (i = 0; i < (quick ? 1u : 12u); i++) {
    lists_add_synth(l, 3000000, quick ? 1500 : 2000 << i % 8, i % 3 * 0.45, 100 + i);
    lists_add_synth(l, 300000, quick ? 3000 : 100000, i % 3 * 0.45, 200 + i);
  }
}

/* Lists of an index: the terms at ranks that grow by a twentieth each, as many as 8 M docIDs have room for. */
static void make_real_lists(lists *l, const char *path) {
  gpuir_index *ix;
  gpuir_error err;
  real_terms terms;
  uint64_t total = 0;
  uint32_t rank;
  if (gpuir_open(path, NULL, &ix, &err)) {
    printf("Bail out! %s\n", err.msg);
    exit(1);
  }
  real_terms_of(ix, &terms);
  for (rank = 0; rank < terms.n; rank += 1 + rank / 20) {
    const uint32_t df = terms.term[rank].df;
    if (total + df > 8000000) continue;
    total += df;
    if (gpuir_term_postings(ix, terms.term[rank].id, lists_add(l, df), NULL)) exit(1);
  }
  free(terms.term);
  gpuir_close(ix);
}

static const char *const codecs[] = {"vbyte", "bp128", "pfd", "newpfd", "optpfd", "ef", "qs", "rice", "pfd-list",
    "parapfor", "lrc", "lrcseg", "seglrc", "hslrc"};
#define CODECS (sizeof codecs / sizeof codecs[0])

/* Parameters to try besides the default. */
static const char *const specs[] = {"qs:0.25", "qs:4", "pfd-list:0", "pfd-list:2", "pfd-list:4", "parapfor:64,0.3",
    "parapfor:256,min", "parapfor:128,0", "lrc:64,0.2", "lrcseg:128,min", "seglrc:64,min", "seglrc:256,0.1",
    "hslrc:32,min", "hslrc:128"};
#define SPECS (sizeof specs / sizeof specs[0])

static const char *const thesis[] = {"naive", "steps", "steps-512", "steps-1024"};

static void check_decode(const lists *l, const char *codec, size_t step) {
  gpuir_cuda_lab_desc desc;
  gpuir_cuda_lab *lab;
  gpuir_cuda_lab_result r;
  gpuir_error err;
  uint32_t *out;
  size_t i, total = 0, at = 0;
  int ok;
  memset(&desc, 0, sizeof desc);
  desc.codec = codec;
  desc.lists = (const uint32_t *const *)l->docs;
  desc.lengths = l->n;
  desc.nlists = l->count;
  desc.copies = 2;
  desc.queries = !strncmp(codec, "qs", 2);
  for (i = 0; i < l->count; i++) total += l->n[i];
  out = (uint32_t *)malloc(total * 4);
  if (gpuir_cuda_lab_open(&desc, &lab, &err)) {
    printf("# %s\n", err.msg);
    report(0, "open", codec);
    free(out);
    return;
  }
  ok = !gpuir_cuda_lab_decode(lab, 0, 2 * l->count, NULL, 1, NULL, &r, &err) && !r.mismatches && r.values == 2 * total;
  if (!ok) printf("# %llu mismatches\n", (unsigned long long)r.mismatches);
  report(ok, "decode all, compared on the device:", codec);
  ok = !gpuir_cuda_lab_decode(lab, l->count, l->count, NULL, 1, out, &r, &err);
  for (i = 0; ok && i < l->count; i++) {
    if (memcmp(out + at, l->docs[i], l->n[i] * (size_t)4)) {
      printf("# list %u of %u docIDs differs\n", (unsigned)i, (unsigned)l->n[i]);
      ok = 0;
    }
    at += l->n[i];
  }
  report(ok, "decode all, compared here:", codec);
  for (i = 0, ok = 1; ok && i < l->count; i += step) {
    ok = !gpuir_cuda_lab_decode(lab, i, 1, NULL, 1, out, &r, &err) && !memcmp(out, l->docs[i], l->n[i] * (size_t)4);
    if (!ok) printf("# list %u of %u docIDs\n", (unsigned)i, (unsigned)l->n[i]);
  }
  report(ok, "decode single lists:", codec);
  for (i = 0; !strncmp(codec, "qs", 2) && i < sizeof thesis / sizeof thesis[0]; i++) {
    char what[64];
    ok = !gpuir_cuda_lab_decode(lab, 0, l->count, thesis[i], 1, NULL, &r, &err) && !r.mismatches;
    (void)snprintf(what, sizeof what, "decode by the thesis' way \"%s\":", thesis[i]);
    report(ok, what, codec);
  }
  gpuir_cuda_lab_close(lab);
  free(out);
}

/* ---- intersection ---- */

typedef struct queries {
  uint32_t *lists, *start, *counts, *docs; /* docs: the right answers, query after query */
  size_t n, total;
} queries;

static size_t merge(const uint32_t *a, size_t m, const uint32_t *b, size_t n, uint32_t *out) {
  size_t i = 0, j = 0, found = 0;
  while (i < m && j < n) {
    uint32_t x = a[i], y = b[j];
    if (x == y) out[found++] = x;
    i += x <= y;
    j += y <= x;
  }
  return found;
}

/* Queries of 1 to 9 lists of any length, with lists that they name twice. */
static void make_queries(queries *qs, const lists *l, size_t n, uint64_t seed) {
  synth_rng r = {seed};
  size_t q, at = 0, room = 0;
  uint32_t *work;
  memset(qs, 0, sizeof *qs);
  qs->lists = (uint32_t *)malloc(n * 16 * 4);
  qs->start = (uint32_t *)calloc(n + 1, 4);
  qs->counts = (uint32_t *)calloc(n, 4);
  for (q = 0; q < n; q++) {
    uint32_t k = q % 7 == 0 ? 1 : 2 + synth_below(&r, q % 5 == 0 ? 8 : 3), i;
    uint32_t window = 1 + synth_below(&r, (uint32_t)l->count); /* neighbours in the array are alike */
    for (i = 0; i < k; i++)
      qs->lists[at + i] = (window + synth_below(&r, q % 3 ? 24 : (uint32_t)l->count)) % (uint32_t)l->count;
    if (q % 11 == 0 && k > 1) qs->lists[at + 1] = qs->lists[at] + (uint32_t)l->count; /* the same in another copy */
    at += k;
    qs->start[q + 1] = (uint32_t)at;
  }
  qs->n = n;
  for (q = 0; q < n; q++) room += l->n[qs->lists[qs->start[q]] % l->count];
  qs->docs = (uint32_t *)malloc(room * 4 + 4);
  for (q = 0; q < n; q++) {
    uint32_t first = qs->lists[qs->start[q]] % (uint32_t)l->count, i;
    size_t m = l->n[first];
    work = (uint32_t *)malloc(m * 4);
    memcpy(work, l->docs[first], m * 4);
    for (i = qs->start[q] + 1; i < qs->start[q + 1]; i++) {
      uint32_t other = qs->lists[i] % (uint32_t)l->count;
      m = merge(work, m, l->docs[other], l->n[other], work);
    }
    memcpy(qs->docs + qs->total, work, m * 4);
    free(work);
    qs->counts[q] = (uint32_t)m;
    qs->total += m;
  }
  qs->n = n;
}

static void free_queries(queries *qs) {
  free(qs->lists);
  free(qs->start);
  free(qs->counts);
  free(qs->docs);
}

static unsigned nonempty(const queries *qs) {
  unsigned n = 0;
  size_t q;
  for (q = 0; q < qs->n; q++) n += qs->counts[q] > 0;
  return n;
}

/* A query round by round: after each the candidates that are left are those of the lists until then, the last ones the
 * query's. Whether it is so. */
static int rounds_right(gpuir_cuda_lab *lab, const lists *l, const uint32_t *of, size_t k, const char *method,
    const uint32_t *want, uint32_t n, uint32_t *docs, gpuir_error *err) {
  gpuir_cuda_lab_way way;
  uint32_t left = 0, before = UINT32_MAX;
  size_t i;
  int status;
  memset(&way, 0, sizeof way);
  way.method = method;
  way.coded = 1;
  way.crossover = 6;
  status = gpuir_cuda_lab_begin(lab, of, k, &way, err);
  for (i = 0; i < k; i++) before = l->n[of[i]] < before ? l->n[of[i]] : before;
  left = before;
  for (i = 1; i < k && !status; i++) {
    status = gpuir_cuda_lab_next(lab, err);
    while (!status && (status = gpuir_cuda_lab_poll(lab, &left, err)) == 0) {}
    status = status == 1 ? 0 : status;
    if (left > before) return 0;
    before = left;
  }
  if (!status) status = gpuir_cuda_lab_fetch(lab, docs, err);
  return !status && left == n && !memcmp(docs, want, n * (size_t)4);
}

/* Batches with their parts, and queries in rounds, with lists that are on the device and with lists that are sent. */
static void check_rounds(const lists *l, const queries *qs, const char *codec) {
  static const char *const methods[] = {"mergepath", "griffin", "skip"};
  uint32_t *of = (uint32_t *)malloc(qs->start[qs->n] * 4), *counts = (uint32_t *)malloc(qs->n * 4), *docs;
  size_t i, q, room = 0;
  int sent, m;
  for (i = 0; i < qs->start[qs->n]; i++) of[i] = qs->lists[i] % (uint32_t)l->count;
  for (i = 0; i < qs->start[qs->n]; i++) room += l->n[of[i]] + 128u;
  docs = (uint32_t *)malloc((room + 1) * 4);
  for (sent = 0; sent < 2; sent++) {
    gpuir_cuda_lab_desc desc;
    gpuir_cuda_lab_way way;
    gpuir_cuda_lab_parts parts;
    gpuir_cuda_lab *lab;
    gpuir_error err;
    const uint32_t *want = qs->docs;
    int ok[3] = {1, 1, 1}, status;
    memset(&desc, 0, sizeof desc);
    desc.codec = codec;
    desc.lists = (const uint32_t *const *)l->docs;
    desc.lengths = l->n;
    desc.nlists = l->count;
    desc.room = room;
    desc.queries = qs->n;
    desc.terms = (uint32_t)(16 * qs->n);
    desc.coded = sent;
    if (gpuir_cuda_lab_open(&desc, &lab, &err)) {
      printf("# %s\n", err.msg);
      report(0, "open for steps", codec);
      continue;
    }
    memset(&way, 0, sizeof way);
    way.method = sent ? "mergepath" : "hs16";
    way.coded = sent;
    status = gpuir_cuda_lab_batch(lab, of, qs->start, qs->n, &way, counts, docs, room, &parts, &err);
    if (status) printf("# %s\n", err.msg);
    report(!status && !memcmp(counts, qs->counts, qs->n * 4) && !memcmp(docs, qs->docs, qs->total * 4), "batch in",
        codec);
    for (m = 0; m < 3; m++) { /* by a part of the device, and by all of it again */
      static const unsigned parts_of[] = {5, 1, 0};
      memset(counts, 0xff, qs->n * 4);
      status = gpuir_cuda_lab_confine(lab, parts_of[m], &err);
      if (!status) status = gpuir_cuda_lab_batch(lab, of, qs->start, qs->n, &way, counts, docs, room, &parts, &err);
      if (status) printf("# %s\n", err.msg);
      report(!status && !memcmp(counts, qs->counts, qs->n * 4) && !memcmp(docs, qs->docs, qs->total * 4),
          "batch by a part of the device in", codec);
    }
    if (sent) {
      gpuir_cuda_lab_close(lab);
      desc.sent = 1;
      if (gpuir_cuda_lab_open(&desc, &lab, &err)) {
        printf("# %s\n", err.msg);
        report(0, "open for rounds", codec);
        continue;
      }
      status = gpuir_cuda_lab_batch(lab, of, qs->start, qs->n, &way, counts, docs, room, &parts, &err);
      report(status == GPUIR_E_ARGUMENT, "no batch of lists that are sent in", codec);
    }
    for (q = 0; q < qs->n; want += qs->counts[q++]) /* "skip" first: what it does not send is on no device then */
      for (m = 2; m >= 0; m--)
        ok[m] = ok[m] &&
            rounds_right(lab, l, of + qs->start[q], qs->start[q + 1] - qs->start[q], methods[m], want, qs->counts[q],
                docs, &err);
    for (m = 0; m < 3; m++) report(ok[m], sent ? "rounds with lists that are sent by" : "rounds by", methods[m]);
    gpuir_cuda_lab_close(lab);
  }
  free(of);
  free(counts);
  free(docs);
}

/* only_coded: the lab prepares nothing of the lists as they are. */
static void check_intersections(const lists *l, const queries *qs, const char *codec, int only_coded) {
  gpuir_cuda_lab_desc desc;
  gpuir_cuda_lab *lab;
  gpuir_error err;
  uint32_t *counts = (uint32_t *)malloc(qs->n * 4), *docs;
  size_t i, room = 0, k;
  int coded;
  memset(&desc, 0, sizeof desc);
  desc.codec = codec;
  desc.coded = only_coded;
  desc.lists = (const uint32_t *const *)l->docs;
  desc.lengths = l->n;
  desc.nlists = l->count;
  desc.copies = 2;
  desc.queries = qs->n;
  desc.terms = (uint32_t)(16 * qs->n);
  for (i = 0; i < qs->n; i++)
    for (k = qs->start[i]; k < qs->start[i + 1]; k++) desc.room += l->n[qs->lists[k] % l->count] + 128u;
  for (i = 0; i < l->count; i++) room += 2 * (l->n[i] + 128u);
  if (desc.room < room) desc.room = room;
  docs = (uint32_t *)malloc((size_t)desc.room * 4);
  if (gpuir_cuda_lab_open(&desc, &lab, &err)) {
    printf("# %s\n", err.msg);
    report(0, "open", codec);
  } else {
    for (coded = only_coded; coded < 2; coded++)
      for (i = 0; gpuir_cuda_lab_method(i) && (coded || !strcmp(codec, "bp128")); i++)
        for (k = 0; k < 2; k++) {
          gpuir_cuda_lab_way way;
          char name[96];
          int status, ok;
          memset(&way, 0, sizeof way);
          way.method = gpuir_cuda_lab_method(i);
          way.coded = coded;
          way.crossover = 6;
          way.repeat = k ? 2 : 1; /* a run leaves nothing behind */
          if (k && strcmp(way.method, "griffin") != 0) continue;
          if (k) way.crossover = 300;
          memset(counts, 0xff, qs->n * 4);
          status = gpuir_cuda_lab_intersect(lab, qs->lists, qs->start, qs->n, &way, counts, docs, NULL, &err);
          if (status == GPUIR_E_UNSUPPORTED) continue;
          (void)snprintf(name, sizeof name, "%s %s %s%s", way.method, coded ? "in" : "beside", codec,
              only_coded ? " alone" : "");
          ok = !status && !memcmp(counts, qs->counts, qs->n * 4) && !memcmp(docs, qs->docs, qs->total * 4);
          if (status) printf("# %s\n", err.msg);
          if (!ok && !status) {
            size_t q;
            for (q = 0; q < qs->n && counts[q] == qs->counts[q]; q++) {}
            if (q < qs->n)
              printf("# query %u of %u lists, the first of %u docIDs: %u, not %u\n", (unsigned)q,
                  (unsigned)(qs->start[q + 1] - qs->start[q]), (unsigned)l->n[qs->lists[qs->start[q]] % l->count],
                  (unsigned)counts[q], (unsigned)qs->counts[q]);
          }
          report(ok, "intersection by", name);
        }
    gpuir_cuda_lab_close(lab);
  }
  free(counts);
  free(docs);
}

/* ---- ranking ---- */

static int compare_hits(const void *x, const void *y) {
  const gpuir_hit *a = (const gpuir_hit *)x, *b = (const gpuir_hit *)y;
  if (a->score != b->score) return a->score < b->score ? 1 : -1;
  return a->docid < b->docid ? -1 : a->docid > b->docid;
}

/* Whether the tree ranks queries that come alone, which the whole device builds it for. */
static int rank_alone(gpuir_cuda_lab *lab, const gpuir_hit *all, const gpuir_hit *sorted, const uint32_t *start,
    size_t nq, size_t k, gpuir_hit *hits) {
  size_t q;
  for (q = 0; q < nq; q++) {
    const uint32_t alone[2] = {0, start[q + 1] - start[q]};
    const size_t want = alone[1] < k ? alone[1] : k;
    uint32_t count;
    gpuir_error err;
    if (gpuir_cuda_lab_topk(lab, all + start[q], alone, 1, k, "tree", 1, hits, &count, NULL, &err) || count != want ||
        memcmp(hits, sorted + start[q], want * sizeof *hits) != 0) {
      printf("# query %u of %u candidates, k %u\n", (unsigned)q, (unsigned)alone[1], (unsigned)k);
      return 0;
    }
  }
  return 1;
}

static void check_ranking(int quick) {
  static const uint32_t sizes[] = {0, 1, 2, 9, 10, 11, 511, 512, 513, 1000, 5000, 20000, 262143, 262145, 300000};
  static const size_t ks[] = {1, 10, 100, 1000, 1025, 5000, 10000};
  const uint32_t one = 7, *list = &one, n1 = 1;
  size_t nq = 3 * (quick ? 10 : 15), q, i, n = 0, k;
  uint32_t *start = (uint32_t *)calloc(nq + 1, 4), *counts = (uint32_t *)malloc(nq * 4);
  gpuir_hit *all, *sorted, *hits;
  gpuir_cuda_lab_desc desc;
  gpuir_cuda_lab *lab;
  gpuir_error err;
  synth_rng r = {3};
  for (q = 0; q < nq; q++) start[q + 1] = (uint32_t)(n += sizes[q / 3]);
  all = (gpuir_hit *)malloc(n * sizeof *all + 8);
  sorted = (gpuir_hit *)malloc(n * sizeof *all + 8);
  hits = (gpuir_hit *)malloc(nq * 10000 * sizeof *hits);
  for (q = 0; q < nq; q++)
    for (i = start[q]; i < start[q + 1]; i++) {
      all[i].docid = (uint32_t)(i - start[q]) * 7;
      all[i].score = q % 3 == 0 ? (uint32_t)synth_next(&r) : q % 3 == 1 ? 5 : 1000000 + synth_below(&r, 40); /* ties */
    }
  memcpy(sorted, all, n * sizeof *all);
  for (q = 0; q < nq; q++) qsort(sorted + start[q], start[q + 1] - start[q], sizeof *sorted, compare_hits);
  memset(&desc, 0, sizeof desc);
  desc.lists = &list;
  desc.lengths = &n1;
  desc.nlists = 1;
  desc.queries = nq;
  desc.room = 2 * n + 2 * nq * 10000;
  if (gpuir_cuda_lab_open(&desc, &lab, &err)) {
    printf("# %s\n", err.msg);
    report(0, "open", "for ranking");
  } else {
    for (i = 0; gpuir_cuda_lab_ranking(i); i++)
      for (k = quick ? 2 : 0; k < sizeof ks / sizeof ks[0]; k += quick ? 3 : 1) {
        char name[64];
        int ok =
            !gpuir_cuda_lab_topk(lab, all, start, nq, ks[k], gpuir_cuda_lab_ranking(i), 1, hits, counts, NULL, &err);
        for (q = 0; ok && q < nq; q++) {
          size_t want = start[q + 1] - start[q] < ks[k] ? start[q + 1] - start[q] : ks[k];
          ok = counts[q] == want && !memcmp(hits + q * ks[k], sorted + start[q], want * sizeof *hits);
          if (!ok) printf("# query %u of %u candidates\n", (unsigned)q, (unsigned)(start[q + 1] - start[q]));
        }
        (void)snprintf(name, sizeof name, "%s, k %u", gpuir_cuda_lab_ranking(i), (unsigned)ks[k]);
        report(ok, "ranking by", name);
      }
    for (k = 0; k < 4; k++) report(rank_alone(lab, all, sorted, start, nq, ks[k], hits), "ranking", "query by query");
    gpuir_cuda_lab_close(lab);
  }
  free(start);
  free(counts);
  free(all);
  free(sorted);
  free(hits);
}

/* ---- searching ---- */

static gpuir_query *random_query(const gpuir_index *ix, uint32_t vocabulary, synth_rng *r) {
  for (;;) {
    char text[1024];
    size_t at = 0;
    uint32_t n = 1 + synth_below(r, synth_below(r, 20) ? 5 : 30), i;
    gpuir_query_desc desc;
    gpuir_query *q;
    memset(&desc, 0, sizeof desc);
    for (i = 0; i < n; i++) {
      at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", synth_below(r, 10) ? "" : "-",
          synth_below(r, 60) ? "" : "un");
      at += real_word(ix, synth_below(r, vocabulary), text + at, sizeof text - at);
    }
    desc.mode = (int)synth_below(r, 3);
    if (synth_below(r, 6) == 0) {
      desc.custom_bm25 = 1;
      desc.k1 = 1.2f;
      desc.b = 0.75f;
    }
    if (!gpuir_query_parse(ix, &desc, text, at, &q, NULL)) return q;
  }
}

/* AND and OR took time in each of their steps; a searcher that is not the laboratory's has none. */
static int check_steps(const gpuir_searcher *cpu, const gpuir_searcher *gpu, const char *method) {
  double ms[2][GPUIR_CUDA_LAB_STEPS];
  unsigned i;
  if (gpuir_cuda_lab_steps(cpu, ms, NULL) != GPUIR_E_ARGUMENT || gpuir_cuda_lab_steps(gpu, ms, NULL)) return 0;
  for (i = 0; i < GPUIR_CUDA_LAB_STEPS; i++) {
    const int and_ = i != GPUIR_CUDA_LAB_COLLECT, or_ = i != GPUIR_CUDA_LAB_DECODE && i != GPUIR_CUDA_LAB_INTERSECT;
    if ((ms[0][i] > 0) != and_ || (ms[1][i] > 0) != or_) {
      printf("# %s, step %u: %g ms of AND, %g ms of OR\n", method, i, ms[0][i], ms[1][i]);
      return 0;
    }
  }
  return 1;
}

/* Searchers with the laboratory's methods return the CPU's hits. The index is generated first, if there is a d. */
static void check_search(const char *what, const synth_desc *d, const char *path, uint32_t vocabulary, unsigned nq) {
  const char *const methods[] = {"skip", "binary", "pmf0", "pmf2", "pmf4", "mergepath",
      d && d->codec && strstr(d->codec, "lrc") ? "algorithm1" : "griffin"};
  static const char *const rankings[] = {"tree", "bucket-select", "radix-select", "radix-sort"};
  static const size_t ks[] = {10, 1, 1000, 10000};
  gpuir_index *ix = NULL;
  gpuir_cuda *cuda = NULL;
  gpuir_searcher *cpu, *gpu;
  gpuir_error err;
  unsigned i, round;
  size_t h;
  if ((d && synth_generate(d, path, &err)) || gpuir_open(path, NULL, &ix, &err) ||
      gpuir_cuda_open(ix, NULL, &cuda, &err)) {
    printf("# %s\n", err.msg);
    report(0, "search", what);
    return;
  }
  for (round = 0; round < 8; round++) {
    const size_t k = ks[round % 4];
    const unsigned n = k > 1000 ? nq / 8 + 1 : nq;
    gpuir_query **q = (gpuir_query **)calloc(n, sizeof *q);
    gpuir_hit *a = (gpuir_hit *)calloc(n * k, sizeof *a), *b = (gpuir_hit *)calloc(n * k, sizeof *b);
    uint32_t *na = (uint32_t *)calloc(n, 4), *nb = (uint32_t *)calloc(n, 4);
    synth_rng r = {round + 50};
    char name[96];
    int ok = 1;
    (void)snprintf(name, sizeof name, "%s, %s and %s, k %u", what, methods[round % 7], rankings[round % 4],
        (unsigned)k);
    for (i = 0; i < n; i++) q[i] = random_query(ix, vocabulary, &r);
    if (gpuir_searcher_create(ix, NULL, &cpu, NULL) || gpuir_searcher_create(ix, NULL, &gpu, NULL)) exit(1);
    if (gpuir_cuda_lab_attach(gpu, cuda, methods[round % 7], rankings[(round / 2 + round) % 4], 0, &err)) {
      printf("# %s\n", err.msg);
      ok = 0;
    } else if (gpuir_search_batch(cpu, (const gpuir_query *const *)q, n, k, a, na) ||
        gpuir_search_batch(gpu, (const gpuir_query *const *)q, n, k, b, nb)) {
      gpuir_searcher_error(gpu, &err);
      printf("# %s\n", err.msg);
      ok = 0;
    }
    for (i = 0; ok && i < n; i++) {
      for (h = 0; h < na[i] && na[i] == nb[i]; h++)
        if (a[i * k + h].docid != b[i * k + h].docid || a[i * k + h].score != b[i * k + h].score) break;
      if (h == na[i] && na[i] == nb[i]) continue;
      printf("# query %u, mode %d: %u hits by the CPU, %u by CUDA, the first %u agree\n", i, q[i]->mode,
          (unsigned)na[i], (unsigned)nb[i], (unsigned)h);
      ok = 0;
    }
    report(ok, "search", name);
    if (n >= 50) report(ok && check_steps(cpu, gpu, methods[round % 7]), "steps of the search", name);
    for (i = 0; i < n; i++) gpuir_query_destroy(q[i]);
    gpuir_searcher_destroy(cpu);
    gpuir_searcher_destroy(gpu);
    free(q);
    free(a);
    free(b);
    free(na);
    free(nb);
  }
  gpuir_cuda_close(cuda);
  gpuir_close(ix);
}

/* Every codec decodes lists, and is intersected by every method. */
static void check_lists(const lists *l, int quick, int with_params) {
  queries qs;
  unsigned i;
  for (i = 0; i < CODECS; i++)
    if (is_mine()) check_decode(l, codecs[i], quick ? 11 : 7);
  for (i = 0; i < SPECS && with_params; i++) check_decode(l, specs[i], 7);
  make_queries(&qs, l, quick ? 12 : 600, 5);
  for (i = 0; i < CODECS; i++)
    if (is_mine()) check_intersections(l, &qs, codecs[i], 0);
  for (i = 0; i < CODECS; i++)
    if (is_mine()) check_intersections(l, &qs, codecs[i], 1);
  if (is_mine()) check_rounds(l, &qs, "ef");
  if (is_mine()) check_rounds(l, &qs, "bp128");
  for (i = 0; i < SPECS && with_params; i++) check_intersections(l, &qs, specs[i], 0);
  printf("# %u of %u queries have results, %u docIDs\n", nonempty(&qs), (unsigned)qs.n, (unsigned)qs.total);
  free_queries(&qs);
}

static void check_generated(const char *path, int quick) {
  static const char *const in_place[] = {"ef", "lrc", "hslrc", "seglrc", "qs", "optpfd", "pfd-list"};
  lists l = {NULL, NULL, 0, 0};
  synth_desc d;
  size_t i;
  make_lists(&l, quick);
  check_lists(&l, quick, !quick);
  lists_free(&l);
  if (is_mine()) check_ranking(quick);
  memset(&d, 0, sizeof d);
  d.documents = quick ? 3000 : 400000;
  d.terms = quick ? 40 : 200;
  d.queries = 1000;
  d.zipf = 14; /* from half of the documents to a few of them */
  d.postings = 0.7 * d.documents;
  d.threads = 4;
  d.seed = 8;
  if (is_mine()) check_search("random docIDs", &d, path, d.terms, quick ? 3 : 200);
  d.clustering = 0.8;
  if (!quick) check_search("clustered docIDs", &d, path, d.terms, 200);
  d.documents = 100;
  d.postings = 70;
  if (is_mine()) check_search("few documents", &d, path, d.terms, quick ? 3 : 100);
  d.documents = quick ? 3000 : 200000;
  d.postings = 0.7 * d.documents;
  for (i = 0; i < sizeof in_place / sizeof in_place[0]; i++) { /* lists in the index's own codec */
    d.codec = in_place[i];
    if (is_mine()) check_search(in_place[i], &d, path, d.terms, quick ? 3 : 100);
  }
}

/* Real text. */
static void check_index(const char *name, const char *path) {
  lists l = {NULL, NULL, 0, 0};
  printf("# %s\n", name);
  make_real_lists(&l, path);
  check_lists(&l, 0, 0);
  lists_free(&l);
  check_search(name, NULL, path, real_name(path), 100);
  (void)real_name(NULL);
}

static void check_real(const char *path) {
  gpuir_error err;
  if (real_build(path, NULL, NULL, &err)) {
    printf("Bail out! %s\n", err.msg);
    exit(1);
  }
  check_index("WordNet", path);
}

/* What is refused without a device too. */
static void check_arguments(gpuir_cuda_lab_desc desc) {
  gpuir_cuda_lab *lab;
  gpuir_cuda_lab_result r;
  report(gpuir_cuda_lab_copy(NULL, 1, &r, NULL) == GPUIR_E_ARGUMENT &&
          gpuir_cuda_lab_decode(NULL, 0, 1, NULL, 1, NULL, &r, NULL) == GPUIR_E_ARGUMENT &&
          gpuir_cuda_lab_steps(NULL, NULL, NULL) == GPUIR_E_ARGUMENT &&
          gpuir_cuda_lab_confine(NULL, 1, NULL) == GPUIR_E_ARGUMENT &&
          gpuir_cuda_lab_score(NULL, NULL, NULL, NULL, NULL) == GPUIR_E_ARGUMENT &&
          gpuir_cuda_lab_attach(NULL, NULL, NULL, NULL, 0, NULL) == GPUIR_E_ARGUMENT &&
          gpuir_cuda_lab_open(NULL, &lab, NULL) == GPUIR_E_ARGUMENT,
      "refuse", "NULL");
  desc.codec = "auto";
  report(gpuir_cuda_lab_open(&desc, &lab, NULL) == GPUIR_E_ARGUMENT && !lab, "refuse codec", desc.codec);
  desc.codec = "qs:77";
  report(gpuir_cuda_lab_open(&desc, &lab, NULL) == GPUIR_E_ARGUMENT && !lab, "refuse codec", desc.codec);
  desc.codec = "zip";
  report(gpuir_cuda_lab_open(&desc, &lab, NULL) == GPUIR_E_UNSUPPORTED && !lab, "refuse codec", desc.codec);
}

/* ---- calls that fail ---- */

extern long gpuir_cuda_seam_calls, gpuir_cuda_seam_fail;
extern int gpuir_cuda_seam_error;

/* Lets each CUDA call by which a new lab is confined to a multiprocessor fail in turn: the next attempt succeeds. */
static void check_failing_calls(const gpuir_cuda_lab_desc *desc) {
  long fail, calls = 1;
  int ok = 1;
  for (fail = 0; fail <= calls && ok; fail++) { /* the first time none fails, and they are counted */
    gpuir_cuda_lab *lab;
    gpuir_error err;
    int status = gpuir_cuda_lab_open(desc, &lab, &err);
    if (status) {
      ok = 0;
      break;
    }
    gpuir_cuda_seam_error = 2; /* cudaErrorMemoryAllocation */
    gpuir_cuda_seam_calls = 0;
    gpuir_cuda_seam_fail = fail;
    status = gpuir_cuda_lab_confine(lab, 1, &err);
    gpuir_cuda_seam_fail = 0;
    if (!fail) calls = gpuir_cuda_seam_calls;
    ok = status == (fail ? GPUIR_E_NOMEM : GPUIR_OK) && !gpuir_cuda_lab_confine(lab, 1, &err) &&
        !gpuir_cuda_lab_confine(lab, 0, &err);
    if (!ok) printf("# call %ld: %s\n", fail, err.msg);
    gpuir_cuda_lab_close(lab);
  }
  printf("# %ld calls\n", calls);
  report(ok && calls > 10, "confine a lab after each call that fails, and then", "again");
}

int main(int argc, char **argv) {
  const int quick = argc > 1 && !strcmp(argv[1], "quick");
  const uint32_t one = 7, *list = &one, n = 1;
  gpuir_cuda_lab_desc desc;
  gpuir_cuda_lab *lab;
  gpuir_error err;
  gpuir_cuda_info info;
  char path[64];
  int status;
  if (argc > 2 && !take_share(argv[2])) return 1;
  memset(&desc, 0, sizeof desc);
  desc.lists = &list;
  desc.lengths = &n;
  desc.nlists = 1;
  check_arguments(desc);
  status = gpuir_cuda_lab_open(&desc, &lab, &err);
  if (status == GPUIR_E_BACKEND) {
    printf("ok %u - runs # SKIP no usable CUDA device: %s\n1..%u\n", tests + 1, err.msg, tests + 1);
    return failures != 0;
  }
  report(!status, "open a lab", "of one docID");
  report(!gpuir_cuda_device(0, &info, &err) && info.device[0] && info.device_memory && info.compute_capability >= 80,
      "look at", "the device");
  report(gpuir_cuda_device(999, &info, &err) == GPUIR_E_BACKEND && gpuir_cuda_device(0, NULL, &err) == GPUIR_E_ARGUMENT,
      "refuse", "a device that is not there");
  if (!status) gpuir_cuda_lab_close(lab);
  check_failing_calls(&desc);
  if (!mkdtemp(folder)) return 1;
  (void)snprintf(path, sizeof path, "%s/index", folder);
  if (argc > 1 && !quick) {
    check_index(argv[1], argv[1]);
  } else {
    check_generated(path, quick);
    if (!quick) check_real(path);
  }
  (void)unlink(path);
  (void)rmdir(folder);
  printf("1..%u\n", tests);
  return failures != 0;
}
