/* synth.c - writes a generated index of web shape and a log of queries for it, or reports on such a pair.
 *
 * What is drawn, and from which laws, stands in synth.h. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "gpuir.h"

#include "synth.h"

#include <errno.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_MISUSE = 2 };
enum { LINE = 4096, ROWS = 6 };

static const char help[] =
    "usage: synth [option...] INDEX QUERIES\n"
    "       synth --check INDEX QUERIES\n"
    "\n"
    "Writes a generated index of web shape to INDEX and a log of queries for it, one a line, to QUERIES.\n"
    "INDEX -: the log alone. With --check: compares such a pair with what is published of web collections.\n"
    "\n"
    "  --documents N        documents (25200000)\n"
    "  --terms N            lists; by default down to the rarest term that a query may hold\n"
    "  --queries N          queries in the log (10000)\n"
    "  --postings N         mean length of all lists of a query together (14.84 % of the documents)\n"
    "  --zipf X             exponent of the document frequencies, above 1 (1.55)\n"
    "  --clustering X       of docIDs: 0 random order to 1 long runs on one topic (0)\n"
    "  --length N           mean length of a document in tokens (900)\n"
    "  --codec C            of docIDs, as for gpuir index (bp128)\n"
    "  --freq-codec C       of frequencies (bp128)\n"
    "  --seed N             the same seed gives the same bytes (1)\n"
    "  --threads N          threads (as many as processors)\n"
    "  -h, --help           this help\n"
    "\n"
    "Exit status: 0 done, 1 failure, 2 misuse.\n";

static void message(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  fputs("synth: ", stderr);
  (void)vfprintf(stderr, fmt, ap);
  fputc('\n', stderr);
  va_end(ap);
}

static int failed(const char *path, int status, const gpuir_error *err) {
  message("%s: %s", path, err && err->msg[0] ? err->msg : gpuir_strerror(status));
  return EXIT_FAILED;
}

static double seconds(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- options ---- */

typedef struct options {
  synth_desc d;
  int check, help;
  const char *operands[2];
  int noperands;
} options;

/* A plain decimal number in [least, most]. */
static int number(const char *name, const char *text, int whole, double least, double most, double *out) {
  size_t plain = strspn(text, whole ? "0123456789" : "0123456789.");
  char *end = NULL;
  *out = text[0] && !text[plain] ? strtod(text, &end) : -1;
  if (end && !*end && *out >= least && *out <= most) return 0;
  message("%s: '%s' is not a %snumber from %.10g to %.10g", name, text, whole ? "whole " : "", least, most);
  return -1;
}

/* Takes option `name` with its value. 0, or not after a message. */
static int set_option(options *o, const char *name, const char *value) {
  const struct {
    const char *name;
    int whole;
    double least, most;
  } numbers[] = {{"--documents", 1, 1, 4294967294.0}, {"--terms", 1, 1, 1e8}, {"--queries", 1, 1, 1e7},
      {"--postings", 1, 1, 1e11}, {"--zipf", 0, 1.01, 100}, {"--clustering", 0, 0, 1}, {"--length", 1, 1, 1e6},
      {"--seed", 1, 0, 9007199254740992.0}, {"--threads", 1, 1, 1024}};
  size_t i, n = sizeof numbers / sizeof *numbers;
  double v;
  for (i = 0; i < n && strcmp(name, numbers[i].name) != 0; i++) {}
  if (i < n && number(name, value, numbers[i].whole, numbers[i].least, numbers[i].most, &v)) return -1;
  if (i < n) switch (i) {
    case 0: o->d.documents = (uint32_t)v; return 0;
    case 1: o->d.terms = (uint32_t)v; return 0;
    case 2: o->d.queries = (uint32_t)v; return 0;
    case 3: o->d.postings = v; return 0;
    case 4: o->d.zipf = v; return 0;
    case 5: o->d.clustering = v; return 0;
    case 6: o->d.length = v; return 0;
    case 7: o->d.seed = (uint64_t)v; return 0;
    default: o->d.threads = (unsigned)v; return 0;
    }
  if (!strcmp(name, "--codec")) return o->d.codec = value, 0;
  if (!strcmp(name, "--freq-codec")) return o->d.freq_codec = value, 0;
  message("unknown option '%s'", name);
  return -1;
}

static int parse(options *o, int argc, char **argv) {
  char name[32];
  int i;
  for (i = 1; i < argc; i++) {
    const char *arg = argv[i], *value = strchr(arg, '=');
    if (!strcmp(arg, "-h") || !strcmp(arg, "--help")) return o->help = 1, 0;
    if (arg[0] != '-' || !arg[1]) {
      if (o->noperands == 2) return message("'%s': INDEX and QUERIES only", arg), -1;
      o->operands[o->noperands++] = arg;
      continue;
    }
    if (!strcmp(arg, "--check")) {
      o->check = 1;
      continue;
    }
    (void)snprintf(name, sizeof name, "%.*s", value ? (int)(value - arg) : (int)strlen(arg), arg);
    value = value ? value + 1 : argv[++i];
    if (!value) return message("%s: unknown, or a value is missing", name), -1;
    if (set_option(o, name, value)) return -1;
  }
  if (o->noperands < 2) return message("INDEX and QUERIES are needed"), -1;
  if (!strcmp(o->operands[0], o->operands[1])) return message("INDEX and QUERIES are two files"), -1;
  return 0;
}

/* ---- writing ---- */

static int write_queries(const synth *s, const char *path) {
  FILE *f = fopen(path, "w");
  char text[256];
  uint32_t i;
  int bad;
  if (!f) return message("%s: %s", path, strerror(errno)), EXIT_FAILED;
  for (i = 0; i < s->d.queries; i++) {
    synth_query(s, i, text, sizeof text);
    fprintf(f, "%s\n", text);
  }
  bad = ferror(f);
  if (!fclose(f) && !bad) return EXIT_DONE;
  message("%s: %s", path, strerror(errno));
  return EXIT_FAILED;
}

static int write_both(const options *o) {
  synth *s;
  gpuir_error err;
  double start = seconds();
  int status = synth_open(&o->d, &s, &err);
  if (status) return failed(o->operands[0], status, &err);
  if (strcmp(o->operands[0], "-") != 0) status = synth_write(s, o->operands[0], &err);
  status = status ? failed(o->operands[0], status, &err) : write_queries(s, o->operands[1]);
  if (!status) message("%u lists and %u queries in %.1f s", s->d.terms, s->d.queries, seconds() - start);
  synth_close(s);
  return status;
}

/* ---- checking ---- */

/* Ao et al., table 4, for queries of 2 to 6 terms: their share; R at stages 1 to 5 and the mean length of the shortest
 * list and of what is left of it, as a share of the GOV collection's 1,053,372 documents; all in percent. */
static const double ao_share[ROWS - 1] = {16.1, 24.5, 22.8, 14.8, 8.24};
static const double ao_ratio[ROWS - 1][5] = {{13.6}, {23.1, 0.97}, {28.6, 1.76, 0.22}, {32.0, 2.38, 0.35, 0.087},
    {34.4, 2.82, 0.50, 0.13, 0.054}};
static const double ao_left[ROWS - 1][5] = {{0.82}, {0.83, 0.19}, {0.80, 0.15, 0.076}, {0.76, 0.14, 0.057, 0.047},
    {0.76, 0.14, 0.057, 0.038, 0.038}};

typedef struct word {
  const char *text;
  uint32_t df;
} word;

typedef struct tally {
  uint64_t queries, of_length[LINE], terms, postings;
  double ratio[ROWS + 1][5], left[ROWS + 1][5]; /* sums, by number of terms */
} tally;

static int by_df(const void *x, const void *y) {
  const word *a = (const word *)x, *b = (const word *)y;
  return a->df < b->df ? -1 : a->df > b->df ? 1 : strcmp(a->text, b->text);
}

/* Returns how many documents hold the first n words. */
static int count_first(gpuir_index *ix, gpuir_searcher *s, const word *words, uint32_t n, uint64_t *matches,
    gpuir_error *err) {
  char text[LINE] = "";
  size_t at = 0;
  uint32_t i;
  gpuir_query *q;
  int status;
  for (i = 0; i < n; i++) at += (size_t)snprintf(text + at, sizeof text - at, "%s ", words[i].text);
  status = gpuir_query_parse(ix, NULL, text, at, &q, err);
  if (status) return status;
  status = gpuir_count(s, q, matches);
  if (status) gpuir_searcher_error(s, err);
  gpuir_query_destroy(q);
  return status;
}

/* R and what is left of the shortest list, stage by stage. */
static int tally_stages(tally *t, gpuir_index *ix, gpuir_searcher *s, const word *words, uint32_t n, gpuir_error *err) {
  uint64_t left = words[0].df;
  uint32_t x;
  for (x = 1; x < n; x++) {
    int status = x > 1 ? count_first(ix, s, words, x, &left, err) : GPUIR_OK;
    if (status) return status;
    t->left[n][x - 1] += (double)left;
    t->ratio[n][x - 1] += words[x].df ? (double)left / words[x].df : 0;
  }
  return GPUIR_OK;
}

static int tally_query(tally *t, gpuir_index *ix, gpuir_searcher *s, char *line, gpuir_error *err) {
  word words[LINE / 2];
  uint32_t n = 0, i;
  char *at;
  for (at = strtok(line, " \t\r\n"); at; at = strtok(NULL, " \t\r\n")) {
    gpuir_term_info info;
    uint64_t id;
    words[n].text = at;
    words[n].df = 0;
    if (!gpuir_term_find(ix, at, strlen(at), &id) && !gpuir_term_get_info(ix, id, &info)) words[n].df = info.df;
    n++;
  }
  if (!n) return GPUIR_OK;
  qsort(words, n, sizeof *words, by_df);
  t->queries++;
  t->of_length[n]++;
  t->terms += n;
  for (i = 0; i < n; i++) t->postings += words[i].df;
  return n <= ROWS ? tally_stages(t, ix, s, words, n, err) : GPUIR_OK;
}

static int tally_log(tally *t, gpuir_index *ix, FILE *f, gpuir_error *err) {
  char line[LINE];
  gpuir_searcher *s;
  int status = gpuir_searcher_create(ix, NULL, &s, err);
  if (status) return status;
  errno = 0;
  while (!status && fgets(line, sizeof line, f)) status = tally_query(t, ix, s, line, err);
  if (!status && ferror(f)) status = synth_fail(err, GPUIR_E_IO, strerror(errno));
  gpuir_searcher_destroy(s);
  return status;
}

static void report_index(const gpuir_index_info *x) {
  double lists = (double)(x->postings - x->inline_postings);
  if (!(lists > 0)) lists = 1;
  printf("documents %llu\nlists %llu\npostings %llu\nfile_bytes %llu\n", (unsigned long long)x->documents,
      (unsigned long long)x->terms, (unsigned long long)x->postings, (unsigned long long)x->file_bytes);
  printf("docid_bits %.2f (%s; GOV2 in random order: SIMD-BP128 8.82, OptPFD 8.13)\n",
      8 * (double)x->docids_bytes / lists, x->codec);
  printf("freq_bits %.2f (%s; the same: 5.60, 3.14)\n", 8 * (double)x->freqs_bytes / lists, x->freq_codec);
  printf("directory_bits %.2f\n", 8 * (double)x->directory_bytes / lists);
}

static void report_queries(const tally *t, const gpuir_index_info *x) {
  double n = t->queries ? (double)t->queries : 1, documents = x->documents ? (double)x->documents : 1;
  uint32_t k, stage;
  printf("queries %llu\nterms_a_query %.2f\n", (unsigned long long)t->queries, (double)t->terms / n);
  printf("postings_a_query %.0f, %.2f %% of the documents (GOV2, Ding et al. 2009: 14.84 %%)\n",
      (double)t->postings / n, 100 * (double)t->postings / n / documents);
  printf("\nlengths, in %% of the queries (GOV, Ao et al. 2011, in brackets)\n");
  for (k = 1; k < LINE; k++) {
    if (!t->of_length[k]) continue;
    printf("%2u  %5.2f", k, 100 * (double)t->of_length[k] / n);
    if (k >= 2 && k <= ROWS) printf(" (%.2f)", ao_share[k - 2]);
    printf("\n");
  }
  printf(
      "\nR in %%, and in %% of the documents what is left of the shortest list, by terms and stage (in "
      "brackets: "
      "as before)\n");
  for (k = 2; k <= ROWS; k++)
    for (stage = 0; stage + 1 < k; stage++) {
      double of = t->of_length[k] ? (double)t->of_length[k] : 1;
      printf("terms %u stage %u  R %6.3f (%.3f)  left %.4f (%.3f)\n", k, stage + 1, 100 * t->ratio[k][stage] / of,
          ao_ratio[k - 2][stage], 100 * t->left[k][stage] / of / documents, ao_left[k - 2][stage]);
    }
}

static int check(const char *index, const char *queries) {
  tally *t = (tally *)calloc(1, sizeof *t);
  FILE *f = fopen(queries, "r");
  gpuir_index *ix = NULL;
  gpuir_index_info info;
  gpuir_error err;
  int status;
  memset(&err, 0, sizeof err);
  if (!f) {
    message("%s: %s", queries, strerror(errno));
    status = EXIT_FAILED;
  } else if ((status = gpuir_open(index, NULL, &ix, &err)) || (status = gpuir_index_get_info(ix, &info)) ||
      (status = t ? tally_log(t, ix, f, &err) : GPUIR_E_NOMEM)) {
    status = failed(ferror(f) ? queries : index, status, &err);
  } else {
    report_index(&info);
    report_queries(t, &info);
    if (fflush(stdout)) message("%s", strerror(errno)), status = EXIT_FAILED;
  }
  gpuir_close(ix);
  if (f) (void)fclose(f);
  free(t);
  return status;
}

int main(int argc, char **argv) {
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  options o;
  memset(&o, 0, sizeof o);
  o.d.documents = 25200000;
  o.d.queries = 10000;
  o.d.seed = 1;
  o.d.threads = processors > 0 && processors < 1024 ? (unsigned)processors : 1;
  if (parse(&o, argc, argv)) {
    fputs("Try 'synth --help'.\n", stderr);
    return EXIT_MISUSE;
  }
  if (o.help) return fputs(help, stdout) < 0 || fflush(stdout) ? EXIT_FAILED : EXIT_DONE;
  return o.check ? check(o.operands[0], o.operands[1]) : write_both(&o);
}
