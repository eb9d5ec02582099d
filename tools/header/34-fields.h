
/* ========
 * [34-fields]  fields: how they are declared; values from text
 *
 * One spelling, NAME=USE@MEMBER, serves commands and the meta section, where a tab parts two fields. Numbers and dates
 * of documents and of queries are read by the same functions, which tell what a text stands for as bounds: the least
 * kept number that is not below it, and the greatest that is not above. So 12.55 equals no number of one decimal, and
 * a month is all of its seconds.
 *
 * Uses      [30-analysis] (white space).
 * Start at  gpuir__schema_make, gpuir__value_compare, gpuir__number_bounds, gpuir__date_bounds.
 * Tests     tests/unit/34_fields.c
 * ======*/

/* The fields of an index, with their strings. */
typedef struct gpuir__schema {
  size_t size; /* of this and the strings behind it */
  unsigned n;
  gpuir_field of[GPUIR_MAX_FIELDS];
} gpuir__schema;

static void gpuir__schema_free(const gpuir_allocator *a, gpuir__schema *f) {
  if (f) gpuir__free(a, f, f->size);
}

/* Says why there are no columns. */
#define gpuir__fail_columns(err) \
  gpuir__fail((err), GPUIR_E_UNSUPPORTED, 0, "fields and their columns were left out by GPUIR_NO_COLUMNS")

#ifdef GPUIR_NO_COLUMNS
GPUIR_API int gpuir_field_parse(const char *text, gpuir_field *field, char room[GPUIR_FIELD_ROOM], gpuir_error *err) {
  (void)text;
  (void)field;
  (void)room;
  return gpuir__fail_columns(err);
}

GPUIR_API int gpuir_value_parse(const gpuir_field *field, const char *text, size_t len, gpuir_value *value) {
  (void)field;
  (void)text;
  (void)len;
  (void)value;
  return GPUIR_E_UNSUPPORTED;
}
#else

/* ---- declarations */

static const char *const gpuir__column_kinds[] = {"", "key", "path", "number", "date"}; /* by GPUIR_KEY ... */

static inline int gpuir__is_text_column(int column) { return column == GPUIR_KEY || column == GPUIR_PATH; }

/* Says whether text[0..len) may name a field. Words of queries, commands and mounts may not. */
static int gpuir__field_named(const char *text, size_t len) {
  static const char reserved[] =
      " and or andor cpu gpu k tokens bytes context sort collapse show where all count path part rank exact name score "
      "docid ";
  const char *at;
  size_t i;
  if (len < 2 || len > 63 || (text[0] >= '0' && text[0] <= '9') || text[0] == '.') return 0;
  for (i = 0; i < len; i++)
    if (!(text[i] >= 'a' && text[i] <= 'z') && !(text[i] >= '0' && text[i] <= '9') && text[i] != '_' && text[i] != '.')
      return 0;
  for (at = reserved; (at = strchr(at, ' ')) != NULL && at[1]; at++)
    if (!strncmp(at + 1, text, len) && at[1 + len] == ' ') return 0;
  return 1;
}

/* Reads what a field is used for; 0 if text[0..len) says nothing of the kind. */
static int gpuir__field_use(const char *text, size_t len, gpuir_field *f) {
  int kind;
  f->decimals = 0;
  for (kind = GPUIR_KEY; kind <= GPUIR_DATE; kind++) {
    const size_t n = strlen(gpuir__column_kinds[kind]);
    f->column = kind;
    if (len < n || memcmp(text, gpuir__column_kinds[kind], n) != 0) continue;
    if (len == n) return 1;
    if (kind != GPUIR_NUMBER || len != n + 2 || text[n] != ':' || text[n + 1] < '0' || text[n + 1] > '9') continue;
    f->decimals = (unsigned)(text[n + 1] - '0');
    return 1;
  }
  return 0;
}

/* Reads a field of text[0..len), whose strings go to room. */
static int gpuir__field_read(const char *text, size_t len, gpuir_field *f, char room[GPUIR_FIELD_ROOM],
    gpuir_error *err) {
  const char *equal = (const char *)memchr(text, '=', len), *at, *end = text + len;
  const int most = (int)gpuir__min64(len, 80);
  size_t name, member;
  memset(f, 0, sizeof *f);
  if (!equal || !gpuir__field_named(text, (size_t)(equal - text)))
    return gpuir__refuse(err, "field '%.*s': it needs a name of small letters, digits, '_' and '.', then '='", most,
        text);
  name = (size_t)(equal - text);
  at = (const char *)memchr(equal, '@', (size_t)(end - equal));
  if (!gpuir__field_use(equal + 1, (size_t)((at ? at : end) - equal) - 1, f))
    return gpuir__refuse(err, "field '%.*s': behind '=' comes key, path, number, number:DECIMALS or date", most, text);
  member = at ? (size_t)(end - at) - 1 : name;
  if (!member || member > 255 || memchr(at ? at : text, '\t', member) || memchr(at ? at : text, '\n', member))
    return gpuir__refuse(err, "field '%.*s': behind '@' come 1 to 255 bytes, no tab and no line break", most, text);
  memcpy(room, text, name);
  memcpy(room + name + 1, at ? at + 1 : text, member);
  room[name] = room[name + 1 + member] = 0;
  f->name = room;
  f->member = room + name + 1;
  return GPUIR_OK;
}

GPUIR_API int gpuir_field_parse(const char *text, gpuir_field *field, char room[GPUIR_FIELD_ROOM], gpuir_error *err) {
  if (!text || !field || !room) return gpuir__refuse(err, "gpuir_field_parse: NULL argument");
  return gpuir__field_read(text, strlen(text), field, room, err);
}

/* Makes fields of their spelling; *fields is NULL for none. */
static int gpuir__schema_make(const gpuir_allocator *a, const char *text, gpuir__schema **fields, gpuir_error *err) {
  const size_t len = strlen(text), size = sizeof **fields + 2 * len + 2 * GPUIR_MAX_FIELDS;
  gpuir__schema *f;
  char room[GPUIR_FIELD_ROOM], *to;
  const char *end;
  unsigned i;
  int status = GPUIR_OK;
  *fields = NULL;
  if (!len) return GPUIR_OK;
  f = (gpuir__schema *)gpuir__alloc_zero(a, size);
  if (!f) return gpuir__fail_nomem(err);
  f->size = size;
  to = (char *)(f + 1);
  for (; !status && text; text = end ? end + 1 : NULL) {
    gpuir_field *one = &f->of[f->n];
    end = strchr(text, '\t');
    if (f->n == GPUIR_MAX_FIELDS) status = gpuir__refuse(err, "more than %d fields", GPUIR_MAX_FIELDS);
    if (!status) status = gpuir__field_read(text, end ? (size_t)(end - text) : strlen(text), one, room, err);
    if (status) break;
    for (i = 0; i < f->n; i++)
      if (!strcmp(f->of[i].name, room)) status = gpuir__refuse(err, "field '%s' is declared twice", room);
    one->name = to;
    one->member = to + strlen(room) + 1;
    memcpy(to, room, (size_t)(one->member - to));
    memcpy(to + (one->member - one->name), room + (one->member - one->name), strlen(room + strlen(room) + 1) + 1);
    to += (one->member - one->name) + (ptrdiff_t)strlen(one->member) + 1;
    f->n++;
  }
  if (status) gpuir__schema_free(a, f);
  else *fields = f;
  return status;
}

/* Finds the field called name[0..len), which stands at `offset` of what a query calls `what`. 0 or WHERE. */
static int gpuir__field_find(const gpuir__schema *f, const char *what, const char *name, size_t len, size_t offset,
    unsigned *field, gpuir_error *err) {
  size_t used = 0;
  char known[80];
  unsigned i;
  for (i = 0; f && i < f->n; i++) {
    *field = i;
    if (strlen(f->of[i].name) == len && !memcmp(f->of[i].name, name, len)) return GPUIR_OK;
  }
  if (!f) return gpuir__fail(err, GPUIR_E_WHERE, offset, "%s: the index has no fields", what);
  for (i = 0; i < f->n && used + strlen(f->of[i].name) + 2 < sizeof known; i++)
    used += (size_t)snprintf(known + used, sizeof known - used, i ? ", %s" : "%s", f->of[i].name);
  return gpuir__fail(err, GPUIR_E_WHERE, offset, "%s: there is no field '%.*s'; there are %s", what,
      (int)gpuir__min64(len, 40), name, known);
}

/* Appends how a field is spelt. 0 or NOMEM. */
static int gpuir__field_spell(const gpuir_allocator *a, const gpuir_field *f, gpuir__buf *out) {
  char use[24];
  const char *kind = gpuir__column_kinds[f->column];
  (void)snprintf(use, sizeof use, f->decimals ? "=%s:%u" : "=%s", kind, f->decimals);
  if (gpuir__buf_put(a, out, f->name, strlen(f->name)) || gpuir__buf_put(a, out, use, strlen(use)))
    return GPUIR_E_NOMEM;
  if (!f->member || !strcmp(f->member, f->name)) return GPUIR_OK;
  if (gpuir__buf_put(a, out, "@", 1)) return GPUIR_E_NOMEM;
  return gpuir__buf_put(a, out, f->member, strlen(f->member));
}

/* Makes the spelling of n fields, a string in `out`. */
static int gpuir__fields_spell(const gpuir_allocator *a, const gpuir_field *fields, size_t n, gpuir__buf *out,
    gpuir_error *err) {
  size_t i;
  if (n > GPUIR_MAX_FIELDS || (n && !fields))
    return gpuir__refuse(err, "the fields are NULL, or more than %d", GPUIR_MAX_FIELDS);
  for (i = 0; i < n; i++) {
    const gpuir_field *f = &fields[i];
    if (!f->name || f->column < GPUIR_KEY || f->column > GPUIR_DATE || f->decimals > 9 ||
        (f->decimals && f->column != GPUIR_NUMBER))
      return gpuir__refuse(err, "field %u has no name, no column, or decimals that it cannot have", (unsigned)i);
    if ((i && gpuir__buf_put(a, out, "\t", 1)) || gpuir__field_spell(a, f, out)) return gpuir__fail_nomem(err);
  }
  return gpuir__buf_put(a, out, "", 1) ? gpuir__fail_nomem(err) : GPUIR_OK;
}

/* ---- order */

/* Compares values of a key, or of a path. A '/' at the beginning of a path is part of its first name. */
static int gpuir__value_compare(int column, const char *a, size_t an, const char *b, size_t bn) {
  const size_t n = an < bn ? an : bn;
  size_t i;
  int c;
  if (column == GPUIR_KEY) {
    c = n ? memcmp(a, b, n) : 0;
    return c ? c : an < bn ? -1 : an > bn;
  }
  for (i = 0; i < n && a[i] == b[i]; i++) {}
  if (i == n) return an < bn ? -1 : an > bn;
  if (i && (a[i] == '/' || b[i] == '/')) return a[i] == '/' ? -1 : 1;
  return (uint8_t)a[i] < (uint8_t)b[i] ? -1 : 1;
}

/* ---- numbers and dates */

/* What a text stands for among kept numbers. */
typedef struct gpuir__bounds {
  int64_t low, high; /* the least that is not below it; the greatest that is not above */
  int no_low, no_high; /* there is none */
} gpuir__bounds;

static int gpuir__is_digit(char c) { return c >= '0' && c <= '9'; }

/* Makes bounds of a number's size, `rest` more than that, and its sign. */
static gpuir__bounds gpuir__bounds_of(uint64_t size, int over, int rest, int negative) {
  gpuir__bounds b = {INT64_MAX, INT64_MAX, 0, 0};
  const uint64_t most = (uint64_t)INT64_MAX + (negative ? 1u : 0u);
  if (over || size > most) {
    b.low = b.high = negative ? INT64_MIN : INT64_MAX;
    b.no_low = !negative;
    b.no_high = negative;
    return b;
  }
  if (!negative) {
    b.low = b.high = (int64_t)size;
    b.no_low = rest && size == most;
    if (rest && !b.no_low) b.low++;
  } else {
    b.low = b.high = size == most ? INT64_MIN : -(int64_t)size;
    b.no_high = rest && size == most;
    if (rest && !b.no_high) b.high--;
  }
  return b;
}

/* Bounds a number, as in -12.5, that is kept with so many decimals. 0 if text[0..len) is none. */
static int gpuir__number_bounds(const char *text, size_t len, unsigned decimals, gpuir__bounds *b) {
  const int negative = len && text[0] == '-';
  size_t i = negative || (len && text[0] == '+') ? 1 : 0, digits = 0;
  uint64_t size = 0;
  unsigned behind = 0;
  int point = 0, over = 0, rest = 0;
  for (; i < len; i++) {
    if (text[i] == '.' && !point) {
      point = 1;
      continue;
    }
    if (!gpuir__is_digit(text[i])) return 0;
    digits++;
    if (point && behind == decimals) {
      rest |= text[i] != '0';
      continue;
    }
    behind += point != 0;
    over |= size > (UINT64_MAX - 9) / 10;
    size = size * 10 + (uint64_t)(text[i] - '0');
  }
  if (!digits) return 0;
  for (; behind < decimals; behind++) {
    over |= size > UINT64_MAX / 10;
    size *= 10;
  }
  *b = gpuir__bounds_of(size, over, rest, negative && (size || rest || over));
  return 1;
}

/* Reads exactly n digits. */
static int gpuir__digits(const char **p, const char *end, unsigned n, unsigned *value) {
  for (*value = 0; n; n--, ++*p) {
    if (*p == end || !gpuir__is_digit(**p)) return 0;
    *value = *value * 10 + (unsigned)(**p - '0');
  }
  return 1;
}

/* Returns the day since 1970-01-01 of a date of the Gregorian calendar (H. Hinnant, "chrono-compatible low-level date
 * algorithms", days_from_civil). */
static int64_t gpuir__day_of(int64_t year, unsigned month, unsigned day) {
  const int64_t y = year - (month <= 2), era = (y >= 0 ? y : y - 399) / 400;
  const int64_t of_era = y - era * 400,
                of_year = (153 * (int64_t)(month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static unsigned gpuir__days_of_month(unsigned year, unsigned month) {
  static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return days[month - 1] + (month == 2 && year % 4 == 0 && (year % 100 || year % 400 == 0) ? 1u : 0u);
}

/* Reads Z, +02:00, -0130 or nothing up to the end: the seconds that a clock there is ahead. */
static int gpuir__zone_read(const char *p, const char *end, int64_t *ahead) {
  unsigned hours, minutes;
  const int west = p < end && *p == '-';
  *ahead = 0;
  if (p == end) return 1;
  if (*p == 'Z' || *p == 'z') return p + 1 == end;
  if ((*p != '+' && !west) || (++p, !gpuir__digits(&p, end, 2, &hours))) return 0;
  if (p < end && *p == ':') p++;
  if (!gpuir__digits(&p, end, 2, &minutes) || p != end || hours > 23 || minutes > 59) return 0;
  *ahead = (int64_t)(hours * 3600 + minutes * 60) * (west ? -1 : 1);
  return 1;
}

/* Reads the time behind a day, from its 'T' or blank on: at[] hours, minutes and seconds; *unit the seconds that it is
 * precise to. */
static int gpuir__time_read(const char *p, const char *end, int64_t *seconds, int64_t *unit) {
  unsigned at[3] = {0, 0, 0}, n = 0;
  int64_t ahead;
  while (n < 3 && (n ? p < end && *p == ':' : 1)) {
    p++;
    if (!gpuir__digits(&p, end, 2, &at[n++])) return 0;
  }
  if (n == 3 && p < end && (*p == '.' || *p == ','))
    for (p++; p < end && gpuir__is_digit(*p); p++) {}
  if (at[0] > 23 || at[1] > 59 || at[2] > 60) return 0;
  while (p < end && *p == ' ') p++;
  if (!gpuir__zone_read(p, end, &ahead)) return 0;
  *seconds = (int64_t)(at[0] * 3600 + at[1] * 60 + at[2]) - ahead;
  *unit = n == 3 ? 1 : n == 2 ? 60 : 3600;
  return 1;
}

/* Bounds a date by its first and its last second. 0 if text[0..len) is none. */
static int gpuir__date_bounds(const char *text, size_t len, gpuir__bounds *b) {
  const char *p = text, *end = text + len;
  unsigned year, month = 1, day = 1, parts = 1;
  int64_t time = 0, unit = 0;
  if (!gpuir__digits(&p, end, 4, &year)) return 0;
  if (p < end && *p == '-' && (p++, parts++, !gpuir__digits(&p, end, 2, &month))) return 0;
  if (parts == 2 && p < end && *p == '-' && (p++, parts++, !gpuir__digits(&p, end, 2, &day))) return 0;
  if (month < 1 || month > 12 || day < 1 || day > gpuir__days_of_month(year, month)) return 0;
  if (p < end && (parts < 3 || (*p != 'T' && *p != 't' && *p != ' ') || !gpuir__time_read(p, end, &time, &unit)))
    return 0;
  if (!unit)
    unit = 86400 *
        (parts == 1          ? gpuir__day_of(year + 1, 1, 1) - gpuir__day_of(year, 1, 1)
                : parts == 2 ? (int64_t)gpuir__days_of_month(year, month)
                             : 1);
  b->low = gpuir__day_of(year, month, day) * 86400 + time;
  b->high = b->low + unit - 1;
  b->no_low = b->no_high = 0;
  return 1;
}

/* Says whether a number of the column is a document's value: 0, or why not. */
static int gpuir__value_number(const gpuir_field *field, const char *text, size_t len, int64_t *number) {
  const size_t sign = len && text[0] == '-';
  size_t digits = sign;
  gpuir__bounds b;
  while (digits < len && gpuir__is_digit(text[digits])) digits++;
  if (field->column == GPUIR_DATE && (digits < len || digits - sign < 5)) {
    if (!gpuir__date_bounds(text, len, &b)) return GPUIR_E_ARGUMENT;
  } else if (!gpuir__number_bounds(text, len, field->decimals, &b) || b.no_low || b.no_high || b.low != b.high) {
    return GPUIR_E_ARGUMENT;
  }
  *number = b.low;
  return GPUIR_OK;
}

GPUIR_API int gpuir_value_parse(const gpuir_field *field, const char *text, size_t len, gpuir_value *value) {
  if (!field || !value || (!text && len) || field->column < GPUIR_KEY || field->column > GPUIR_DATE)
    return GPUIR_E_ARGUMENT;
  memset(value, 0, sizeof *value);
  while (len && gpuir__is_space(text[0])) text++, len--;
  while (len && gpuir__is_space(text[len - 1])) len--;
  if (!gpuir__is_text_column(field->column)) return gpuir__value_number(field, text, len, &value->number);
  if (!len || len > GPUIR_MAX_VALUE || memchr(text, 0, len)) return GPUIR_E_ARGUMENT;
  value->text = text;
  value->len = len;
  return GPUIR_OK;
}
#endif
