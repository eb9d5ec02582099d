/* wheres.h - a where at random, as text and as what it means for the documents of columns.h, which is found from their
 * values alone; include after columns.h and rng.h
 */
#ifndef TESTS_WHERES_H
#define TESTS_WHERES_H

typedef struct where_end {
  char text[80]; /* as it is written; "": open */
  int64_t low, high; /* of numbers: what it spans */
} where_end;

typedef struct where_test {
  unsigned column, n;
  int negated, group;
  where_end begin[4], end[4];
} where_test;

typedef struct where_case {
  where_test tests[6];
  unsigned n;
  char text[2000];
} where_case;

/* Chooses a value: one that a document has, or one that few have. */
static inline void where_value(rng *r, unsigned column, where_end *e) {
  const uint32_t id = rng_below(r, 6000);
  raw_value v[8];
  unsigned n = raw_values(id, column, v);
  int64_t x;
  memset(e, 0, sizeof *e);
  if (column_fields[column].column == GPUIR_KEY || column_fields[column].column == GPUIR_PATH) {
    (void)snprintf(e->text, sizeof e->text, "%s", n && *v[0].text ? v[rng_below(r, n)].text : "none");
    if (rng_below(r, 8) == 0) e->text[1 + rng_below(r, (uint32_t)strlen(e->text))] = 0; /* a beginning */
    return;
  }
  x = n ? v[0].number : 77;
  if (x > INT64_MIN + 9 && x < INT64_MAX - 9) x += (int64_t)rng_below(r, 3) - 1;
  e->low = e->high = x;
  if (column == DAY || column == STEADY) {
    const time_t at = (time_t)x;
    struct tm tm;
    (void)gmtime_r(&at, &tm);
    (void)strftime(e->text, sizeof e->text, rng_below(r, 2) ? "%Y-%m-%d" : "%Y-%m-%dT%H:%M:%S", &tm);
    if (!strchr(e->text, 'T')) {
      e->low = x - ((x % 86400) + 86400) % 86400;
      e->high = e->low + 86399;
    }
  } else if (column == PRICE) {
    const uint64_t size = x < 0 ? (uint64_t)0 - (uint64_t)x : (uint64_t)x;
    (void)snprintf(e->text, sizeof e->text, "%s%llu.%02u", x < 0 ? "-" : "", (unsigned long long)(size / 100),
        (unsigned)(size % 100));
  } else {
    (void)snprintf(e->text, sizeof e->text, "%lld", (long long)x);
  }
}

/* The order of values, written down once more. */
static inline int where_compare(unsigned column, const char *x, const char *y) {
  size_t i;
  for (i = 0; x[i] && x[i] == y[i]; i++) {}
  if (x[i] == y[i]) return 0;
  if (!x[i] || !y[i]) return x[i] ? 1 : -1;
  if (column == FOLDER && i && (x[i] == '/' || y[i] == '/')) return x[i] == '/' ? -1 : 1;
  return (unsigned char)x[i] < (unsigned char)y[i] ? -1 : 1;
}

static inline int where_is_text(unsigned column) {
  return column_fields[column].column == GPUIR_KEY || column_fields[column].column == GPUIR_PATH;
}

/* Writes an end, in quotes where it must be, or may. */
static inline void where_write(rng *r, const where_end *e, char *to) {
  if (*e->text && (strpbrk(e->text, " ,|\"") || strstr(e->text, "..") || rng_below(r, 5) == 0))
    (void)sprintf(to, "\"%s\"", e->text);
  else (void)strcpy(to, e->text);
}

static inline void where_item(rng *r, unsigned column, where_end *begin, where_end *end, char *to) {
  const uint32_t kind = rng_below(r, 6); /* 3: a range; 4: open; 5: any */
  where_end swap;
  where_value(r, column, begin);
  *end = *begin;
  if (kind == 3) {
    where_value(r, column, end);
    if (where_is_text(column) ? where_compare(column, end->text, begin->text) < 0 : end->low < begin->low) {
      swap = *begin;
      *begin = *end;
      *end = swap;
    }
  }
  if (kind >= 4) (rng_below(r, 2) || kind == 5 ? begin : end)->text[0] = 0;
  if (kind == 5) end->text[0] = 0;
  where_write(r, begin, to);
  if (kind < 3) return;
  (void)strcat(to, "..");
  where_write(r, end, to + strlen(to));
}

static inline void where_make(rng *r, where_case *w) {
  char item[200];
  unsigned i, j;
  memset(w, 0, sizeof *w);
  w->n = 1 + rng_below(r, rng_below(r, 2) ? 2 : 6);
  for (i = 0; i < w->n; i++) {
    where_test *t = &w->tests[i];
    t->column = rng_below(r, NCOLUMNS);
    t->n = 1 + (rng_below(r, 3) ? 0 : rng_below(r, 4));
    t->negated = rng_below(r, 4) == 0;
    t->group = i ? w->tests[i - 1].group + (rng_below(r, 3) == 0) : 0;
    if (i) (void)strcat(w->text, t->group > w->tests[i - 1].group ? " | " : " ");
    (void)sprintf(w->text + strlen(w->text), "%s%s=", t->negated ? "-" : "", column_fields[t->column].name);
    for (j = 0; j < t->n; j++) {
      where_item(r, t->column, &t->begin[j], &t->end[j], item);
      (void)sprintf(w->text + strlen(w->text), j ? ",%s" : "%s", item);
    }
  }
}

/* Says whether one value lies in an item. */
static inline int where_has(const where_test *t, unsigned i, const raw_value *v) {
  const where_end *b = &t->begin[i], *e = &t->end[i];
  const size_t n = strlen(e->text);
  if (!where_is_text(t->column)) return (!*b->text || v->number >= b->low) && (!*e->text || v->number <= e->high);
  if (*b->text && where_compare(t->column, v->text, b->text) < 0) return 0;
  if (!*e->text || where_compare(t->column, v->text, e->text) <= 0) return 1;
  return t->column == FOLDER && !strncmp(v->text, e->text, n) && v->text[n] == '/';
}

static inline int where_holds(const where_test *t, uint32_t id) {
  raw_value v[8];
  const unsigned n = raw_values(id, t->column, v);
  unsigned i, j;
  int any = 0;
  for (i = 0; i < n; i++)
    for (j = 0; j < t->n; j++) any |= where_has(t, j, &v[i]);
  return any != t->negated;
}

/* Says whether a document passes. */
static inline int where_passes(const where_case *w, uint32_t id) {
  unsigned i = 0;
  while (i < w->n) {
    const int group = w->tests[i].group;
    int all = 1;
    for (; i < w->n && w->tests[i].group == group; i++) all &= where_holds(&w->tests[i], id);
    if (all) return 1;
  }
  return 0;
}

#endif
