/* guess.c - gpuir index --fields auto: which members of records are fields, by what the first ones have. */
#include "cli.h"

#include "../common/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS_READ 1000u
#define LONGEST 255u /* bytes of a value that people choose by */
#define MOST_MEMBERS 1024u

/* A member, and what its values were. */
typedef struct member {
  char *name;
  uint64_t values, last; /* the record that had the last one */
  int several; /* a record has more than one */
  int numbers, dates, paths,
      too_long; /* numbers, dates: all of them are; paths: all have a '/', and no blank or "//" */
  unsigned decimals;
} member;

typedef struct guess {
  member *members;
  size_t n;
  uint64_t records;
} guess;

static member *find_member(guess *g, const char *name, size_t len) {
  for (size_t i = 0; i < g->n; i++)
    if (strlen(g->members[i].name) == len && !memcmp(g->members[i].name, name, len)) return &g->members[i];
  if (g->n == MOST_MEMBERS || !len || memchr(name, 0, len)) return NULL;
  g->members = (member *)cli_resize(g->members, g->n + 1, sizeof *g->members);
  member *m = &g->members[g->n++];
  memset(m, 0, sizeof *m);
  m->name = cli_copy(name, len);
  m->last = UINT64_MAX;
  m->numbers = m->dates = m->paths = 1;
  return m;
}

/* Returns the digits behind a number's point; 10: it is none that a field holds. */
static unsigned decimals_of(const char *text, size_t len) {
  gpuir_field f;
  gpuir_value v;
  const char *point = (const char *)memchr(text, '.', len);
  const size_t n = point ? (size_t)(text + len - point) - 1 : 0;
  memset(&f, 0, sizeof f);
  f.name = "auto";
  f.column = GPUIR_NUMBER;
  f.decimals = n > 9 ? 9 : (unsigned)n;
  return n > 9 || gpuir_value_parse(&f, text, len, &v) ? 10 : (unsigned)n;
}

/* Returns whether a text is a date, and no number that might be one. */
static int is_date(const char *text, size_t len) {
  gpuir_field f;
  gpuir_value v;
  memset(&f, 0, sizeof f);
  f.name = "auto";
  f.column = GPUIR_DATE;
  return len >= 7 && memchr(text + 1, '-', len - 1) && !gpuir_value_parse(&f, text, len, &v);
}

static void see(void *user, const char *name, size_t len, const records_value *value) {
  guess *g = (guess *)user;
  member *m = find_member(g, name, len);
  made_text text;
  memset(&text, 0, sizeof text);
  records_put(value, &text);
  if (text.text.failed) (void)cli_resize(NULL, SIZE_MAX, 2); /* which ends the command */
  if (m && text.text.n) {
    const char *p = text.text.p;
    const size_t n = text.text.n;
    const unsigned decimals = decimals_of(p, n);
    m->values++;
    m->several |= m->last == g->records;
    m->last = g->records;
    if (decimals > m->decimals) m->decimals = decimals;
    m->numbers &= decimals < 10;
    m->dates &= is_date(p, n);
    m->paths &= memchr(p, '/', n) && !memchr(p, ' ', n);
    for (size_t i = 0; i + 1 < n; i++) m->paths &= p[i] != '/' || p[i + 1] != '/';
    m->too_long |= n > LONGEST;
  }
  made_free(&text);
}

static int on_record(void *user, const gpuir_doc_desc *doc, const char *text, size_t len) {
  (void)doc, (void)text, (void)len;
  return ++((guess *)user)->records == RECORDS_READ || cli_signal ? CLI_FAIL : CLI_OK;
}

/* Returns whether a member's values are the id, the title or the text. */
static int has_role(const record_reader *r, const char *name) {
  const char *used;
  size_t n;
  for (int role = RECORDS_ID; role < RECORDS_ROLES; role++)
    for (size_t i = 0; (used = records_used(r, role, i, &n)) != NULL; i++)
      if (strlen(name) == n && !memcmp(name, used, n)) return 1;
  return 0;
}

/* Returns whether a name can be printed, between single quotes, for a shell: whoever wrote the records chose it. */
static int is_harmless(const char *name) {
  const size_t n = strlen(name);
  int harmless = 1;
  for (size_t i = 0; i < n && harmless; i += text_next(name + i, n - i, &harmless))
    if (name[i] == '\'') return 0;
  return harmless;
}

/* Appends a name that a field may have. */
static void put_name(const char *name, cli_buf *out) {
  for (const char *p = name; *p; p++) {
    const int c = tolower((unsigned char)*p);
    cli_buf_char(out, isalnum((unsigned char)*p) ? c : c == '.' ? c : '_');
  }
}

/* Declares the field that a member is. Returns whether it did, with the option in *option. */
static int declare(const member *m, cli_input *in, cli_buf *option) {
  static const char *const prefixes[] = {"", "f_"}; /* names may be reserved, or begin with a digit */
  char use[32];
  gpuir_field field;
  char room[GPUIR_FIELD_ROOM];
  cli_args a;
  if (!m->values || m->too_long || strlen(m->name) > 60 || !is_harmless(m->name)) return 0;
  if (m->numbers && !m->several) (void)snprintf(use, sizeof use, m->decimals ? "number:%u" : "number", m->decimals);
  else (void)snprintf(use, sizeof use, "%s", m->dates && !m->several ? "date" : m->paths ? "path" : "key");
  for (size_t i = 0; i < 2; i++) {
    option->n = 0;
    cli_buf_text(option, prefixes[i]);
    put_name(m->name, option);
    cli_buf_char(option, '=');
    cli_buf_text(option, use);
    cli_buf_char(option, '@');
    cli_buf_add(option, m->name, strlen(m->name) + 1);
    if (gpuir_field_parse(option->p, &field, room, NULL)) continue;
    if (cli_field_is_declared(in, field.name) || in->nfields == GPUIR_MAX_FIELDS) return 0;
    memset(&a, 0, sizeof a);
    a.value = option->p;
    return !cli_field_option(&a, in);
  }
  return 0;
}

/* Declares what was found, and says how it is written. */
static void declare_all(const guess *g, cli_input *in, const record_reader *r) {
  cli_buf said = {NULL, 0, 0}, option = {NULL, 0, 0};
  for (size_t i = 0; i < g->n; i++) {
    if ((r && has_role(r, g->members[i].name)) || !declare(&g->members[i], in, &option)) continue;
    cli_buf_text(&said, " --field '");
    cli_buf_text(&said, option.p);
    cli_buf_char(&said, '\'');
  }
  if (said.n) cli_error("fields:%.*s", (int)said.n, said.p);
  else cli_error("no member of the first records is a field");
  cli_buf_free(&said);
  cli_buf_free(&option);
}

int cli_fields_guess(cli_input *in, char **operands, int n) {
  const char *name = cli_name;
  cli_input probe = *in;
  guess g;
  memset(&g, 0, sizeof g);
  for (int i = 0; i < n; i++)
    if (!strcmp(operands[i], "-"))
      return cli_misuse("index", "--fields auto reads the inputs twice, and standard input can be read once");
  probe.fields = NULL;
  probe.nfields = 0;
  probe.add = on_record;
  probe.see = see;
  probe.user = &g;
  probe.names.max = 1024;
  memset(&probe.reading, 0, sizeof probe.reading);
  if (in->reading.n) cli_buf_add(&probe.reading, in->reading.p, in->reading.n);
  cli_name = NULL; /* what is wrong with the inputs is said when they are read for good */
  for (int i = 0; i < n && g.records < RECORDS_READ && !cli_signal; i++)
    if (cli_input_read(&probe, operands[i])) break;
  cli_name = name;
  declare_all(&g, in, probe.records);
  cli_input_free(&probe);
  for (size_t i = 0; i < g.n; i++) free(g.members[i].name);
  free(g.members);
  return cli_signal ? CLI_FAIL : CLI_OK;
}
