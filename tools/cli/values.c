/* values.c - fields as options declare them, their values from records, and values as they are printed. */
#include "cli.h"

#include "../common/column_text.h"
#include "../common/source.h"

#include <stdlib.h>
#include <string.h>

/* ---- fields ---- */

/* Appends a field whose strings are copied. */
static void add_field(cli_input *in, const gpuir_field *field) {
  gpuir_field *f;
  in->fields = (gpuir_field *)cli_resize(in->fields, in->nfields + 1, sizeof *in->fields);
  f = &in->fields[in->nfields++];
  *f = *field;
  f->name = cli_copy(field->name, strlen(field->name));
  f->member = cli_copy(field->member, strlen(field->member));
}

int cli_field_option(const cli_args *a, cli_input *in) {
  char room[GPUIR_FIELD_ROOM];
  gpuir_field field;
  gpuir_error err;
  memset(&err, 0, sizeof err);
  if (gpuir_field_parse(a->value, &field, room, &err)) return cli_misuse(a->command, "%s: %s", a->name, err.msg);
  if (in->nfields == GPUIR_MAX_FIELDS) return cli_misuse(a->command, "more than %d fields", GPUIR_MAX_FIELDS);
  for (size_t i = 0; i < in->nfields; i++)
    if (!strcmp(in->fields[i].name, field.name))
      return cli_misuse(a->command, "%s: '%s' was declared before", a->name, field.name);
  add_field(in, &field);
  return 0;
}

/* What files have without being asked for a member: the member of such a field begins with a colon. */
static const struct {
  const char *name, *spelt;
} file_fields[] = {{"ext", "ext=key@:ext"}, {"dir", "dir=path@:dir"}, {"size", "size=number@:size"},
    {"mtime", "mtime=date@:mtime"}};

int cli_fields_option(const cli_args *a, cli_input *in) {
  const char *at = a->value;
  in->fields_said = 1;
  if (!strcmp(at, "none")) return 0;
  if (!strcmp(at, "auto")) return in->fields_guessed = 1, 0;
  while (*at) {
    const size_t n = strcspn(at, ",");
    cli_args one = *a;
    size_t i = 0;
    while (i < 4 && (strlen(file_fields[i].name) != n || strncmp(at, file_fields[i].name, n) != 0)) i++;
    if (i == 4) return cli_misuse(a->command, "%s: '%.*s' is none of ext, dir, size and mtime", a->name, (int)n, at);
    one.value = (char *)(uintptr_t)file_fields[i].spelt;
    if (cli_field_option(&one, in)) return 1;
    at += n + (at[n] == ',');
  }
  return 0;
}

int cli_field_is_declared(const cli_input *in, const char *name) {
  size_t i = 0;
  while (i < in->nfields && strcmp(in->fields[i].name, name) != 0) i++;
  return i < in->nfields;
}

void cli_fields_default(cli_input *in, char **operands, int n) {
  cli_args a;
  int files = n == 0; /* a live index, to which they come */
  for (int i = 0; i < n; i++) files |= strcmp(operands[i], "-") != 0;
  if (in->fields_said || !files || (in->format != DECODE_FILES && in->format != DECODE_CHUNKS)) return;
  memset(&a, 0, sizeof a);
  for (size_t i = 0; i < sizeof file_fields / sizeof *file_fields; i++) {
    a.value = (char *)(uintptr_t)file_fields[i].spelt;
    if (!cli_field_is_declared(in, file_fields[i].name) && in->nfields < GPUIR_MAX_FIELDS)
      (void)cli_field_option(&a, in);
  }
}

int cli_fields_of_heads(const cli_input *in) {
  for (size_t i = 0; i < in->nfields; i++)
    if (in->fields[i].member[0] != ':') return 1;
  return 0;
}

int cli_fields_of_files(const cli_input *in, const char *name) {
  for (size_t i = 0; i < in->nfields; i++)
    if (in->fields[i].member[0] == ':' && (!name || !strcmp(in->fields[i].member + 1, name))) return 1;
  return 0;
}

void cli_fields_take(cli_input *in, const gpuir_index *index) {
  gpuir_field field;
  cli_fields_free(in);
  for (size_t i = 0; !gpuir_field_get(index, i, &field); i++) add_field(in, &field);
}

void cli_fields_free(cli_input *in) {
  for (size_t i = 0; i < in->nfields; i++) {
    free((void *)(uintptr_t)in->fields[i].name);
    free((void *)(uintptr_t)in->fields[i].member);
  }
  free(in->fields);
  in->fields = NULL;
  in->nfields = 0;
  cli_buf_free(&in->values);
  cli_buf_free(&in->value_text);
}

void cli_fields_read(const cli_input *in, record_reader *r) {
  for (size_t i = 0; i < in->nfields; i++) records_field(r, (unsigned)i, in->fields[i].member);
}

/* ---- values ---- */

/* Takes value i of a field out of the record. A key's text is an offset until all are there. Returns 0 behind the last
 * one. */
static int take_value(cli_input *in, unsigned field, size_t i, made_text *text, size_t *taken) {
  const gpuir_field *f = &in->fields[field];
  const int one = f->column == GPUIR_NUMBER || f->column == GPUIR_DATE;
  gpuir_value v;
  text->text.n = 0;
  if (!records_field_value(in->records, field, i, text)) return 0;
  if (text->text.failed) (void)cli_resize(NULL, SIZE_MAX, 2); /* which ends the command */
  if (*taken == (one ? 1 : GPUIR_MAX_VALUES) ||
      gpuir_value_parse(f, text->text.p ? text->text.p : "", text->text.n, &v)) {
    in->misfits++;
    return 1;
  }
  ++*taken;
  v.field = field;
  if (v.text) cli_buf_add(&in->value_text, v.text, v.len);
  cli_buf_add(&in->values, &v, sizeof v);
  return 1;
}

/* Gives a document the values that were collected, whose text stands one behind the other. */
static void give_values(cli_buf *values, const cli_buf *text, gpuir_doc_desc *doc) {
  gpuir_value *v = (gpuir_value *)(void *)values->p;
  size_t at = 0;
  doc->values = v;
  doc->nvalues = values->n / sizeof *v;
  for (size_t i = 0; i < doc->nvalues; i++) {
    if (!v[i].text) continue;
    v[i].text = text->p + at;
    at += v[i].len;
  }
}

void cli_fields_values(cli_input *in, gpuir_doc_desc *doc) {
  made_text text;
  if (!in->nfields || !in->records) return;
  memset(&text, 0, sizeof text);
  in->values.n = in->value_text.n = 0;
  for (unsigned field = 0; field < in->nfields; field++) {
    size_t taken = 0;
    for (size_t i = 0; take_value(in, field, i, &text, &taken); i++) {}
  }
  made_free(&text);
  give_values(&in->values, &in->value_text, doc);
}

/* Appends a key or a path, unless it is empty or too long. */
static void put_text(cli_input *in, unsigned field, const char *text, size_t len) {
  gpuir_value v;
  if (!len) return;
  if (gpuir_value_parse(&in->fields[field], text, len, &v) || v.len != len) { /* white space at an end is a name's */
    in->misfits++;
    return;
  }
  v.field = field;
  cli_buf_add(&in->value_text, text, len);
  cli_buf_add(&in->values, &v, sizeof v);
}

static void put_number(cli_input *in, unsigned field, int64_t number) {
  gpuir_value v;
  memset(&v, 0, sizeof v);
  v.field = field;
  v.number = number;
  cli_buf_add(&in->values, &v, sizeof v);
}

/* Appends the ending of a file's name, behind its last dot; a name that begins with its only dot has none. */
static void put_ending(cli_input *in, unsigned field, const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
  if (dot && dot > name) put_text(in, field, dot + 1, strlen(dot + 1));
}

/* Appends the folder that a file lies in; the root has no name. */
static void put_folder(cli_input *in, unsigned field, const char *path) {
  const char *slash = strrchr(path, '/');
  if (slash) put_text(in, field, path, (size_t)(slash - path));
}

/* Appends what the head of a text has in a field. */
static void put_head(cli_input *in, unsigned field, heads_kind kind, const char *head, size_t len) {
  const gpuir_field *f = &in->fields[field];
  const size_t most = f->column == GPUIR_NUMBER || f->column == GPUIR_DATE ? 1 : GPUIR_MAX_VALUES;
  byte_buf text = {NULL, 0, 0, 0};
  char date[HEADS_DATE];
  for (size_t i = 0; text.n = 0, heads_value(kind, head, len, f->member, i, &text); i++) {
    gpuir_value v;
    if (text.failed) (void)cli_resize(NULL, SIZE_MAX, 2); /* which ends the command */
    const int is_date = f->column == GPUIR_DATE && text.n && heads_date(text.p, text.n, date);
    if (i >= most || gpuir_value_parse(f, is_date ? date : text.n ? text.p : "", is_date ? strlen(date) : text.n, &v)) {
      in->misfits++;
      if (i >= most) break;
      continue;
    }
    v.field = field;
    if (v.text) cli_buf_add(&in->value_text, v.text, v.len);
    cli_buf_add(&in->values, &v, sizeof v);
  }
  bytes_free(&text);
}

void cli_fields_file(cli_input *in, const char *path, const struct stat *st, heads_kind kind, const char *head,
    size_t len, gpuir_doc_desc *doc) {
  in->values.n = in->value_text.n = 0;
  if (st && in->fields_home) path = source_stored(in->fields_home, path);
  for (unsigned i = 0; i < in->nfields; i++) {
    const char *member = in->fields[i].member;
    if (member[0] != ':') put_head(in, i, kind, head, len);
    if (!st || member[0] != ':') continue;
    if (!strcmp(member, ":ext")) put_ending(in, i, path);
    if (!strcmp(member, ":dir")) put_folder(in, i, path);
    if (!strcmp(member, ":size")) put_number(in, i, (int64_t)st->st_size);
    if (!strcmp(member, ":mtime")) put_number(in, i, (int64_t)st->st_mtime);
  }
  give_values(&in->values, &in->value_text, doc);
}

void cli_values_copy(const gpuir_index *index, uint32_t docid, cli_buf *values, cli_buf *text, gpuir_doc_desc *doc) {
  char room[GPUIR_MAX_VALUE + 1];
  gpuir_field f;
  gpuir_value v;
  values->n = text->n = 0;
  for (unsigned field = 0; !gpuir_field_get(index, field, &f); field++)
    for (size_t i = 0; !gpuir_doc_value(index, docid, field, i, &v, room); i++) {
      if (v.text) cli_buf_add(text, v.text, v.len);
      cli_buf_add(values, &v, sizeof v);
    }
  give_values(values, text, doc);
}

void cli_fields_tell(const cli_input *in) {
  char n[CLI_COUNTED];
  if (in->misfits)
    cli_error("%s left out: not what the field holds", cli_counted(in->misfits, "value was", "values were", n));
}

/* ---- printing ---- */

int cli_show_find(const gpuir_index *index, const char *path, const char *list, cli_show *show) {
  gpuir_field field;
  const char *bad;
  show->n = 0;
  if (!list)
    while (show->n < GPUIR_MAX_FIELDS && !gpuir_field_get(index, show->n, &field))
      show->fields[show->n] = (unsigned)show->n, show->n++;
  if (!list || !column_find(index, list, show->fields, &show->n, &bad)) return 0;
  const int n = (int)strcspn(bad, ",");
  cli_error("%s: there is no field '%.*s', or it is shown twice", path, n, bad);
  return -1;
}

static void to_output(void *arg, const char *bytes, size_t n) { (void)fwrite(bytes, 1, n, (FILE *)arg); }
static void to_buf(void *arg, const char *bytes, size_t n) { cli_buf_add((cli_buf *)arg, bytes, n); }

void cli_values_json(const gpuir_index *index, uint32_t docid, const cli_show *show) {
  column_members(to_output, stdout, index, docid, show->fields, show->n);
}

void cli_values_text(const gpuir_index *index, uint32_t docid, unsigned field, cli_buf *out) {
  column_values(to_buf, out, index, docid, field);
}

void cli_values_tsv(const gpuir_index *index, uint32_t docid, unsigned field) {
  cli_buf b = {NULL, 0, 0};
  cli_values_text(index, docid, field, &b);
  cli_tsv_string(stdout, b.p ? b.p : "", b.n);
  cli_buf_free(&b);
}
