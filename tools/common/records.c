/* records.c - the id and the text of a record. */
#include "records.h"

#include "markup.h"

#include <limits.h>
#include <strings.h>

#define DROPPED_MOST 12u

const char records_ids[] = "pid docid docno _id id", records_texts[] = "contents text body passage segment",
           records_topic_ids[] = "qid query_id topic_id _id id",
           records_topic_texts[] = "query text title topic_title question";

/* ---- which members ----------------------------------------------------------------------------- */

static int add_member(record_reader *r, int role, const char *name, size_t len) {
  records_member *m;
  if (r->nmembers == RECORDS_NAMES) return -2;
  m = &r->members[r->nmembers++];
  m->name = name;
  m->name_len = len;
  m->role = role;
  return 0;
}

/* Adds the members that `names` has, which `sign` parts. */
static int add_members(record_reader *r, int role, const char *names, char sign) {
  while (*names) {
    const char *end = strchr(names, sign);
    const size_t n = end ? (size_t)(end - names) : strlen(names);
    const int failed = n ? add_member(r, role, names, n) : 0;
    if (failed) return failed;
    names += n + (end != NULL);
  }
  return 0;
}

/* Takes what was chosen: cuts r->names at its tabs. */
static int add_chosen(record_reader *r) {
  static const char *const roles[] = {"id=", "title=", "text="};
  char *at = r->names;
  while (at) {
    char *tab = strchr(at, '\t');
    int role, failed = 0;
    if (tab) *tab++ = 0;
    for (role = 0; role < RECORDS_ROLES && !failed; role++) {
      const size_t n = strlen(roles[role]);
      if (strncmp(at, roles[role], n) != 0) continue;
      r->chosen[role] = 1;
      failed = add_members(r, role, at + n, ',');
    }
    if (failed) return failed;
    at = tab;
  }
  return 0;
}

static int take_event(void *records_of, const json_event *e);

int records_open(record_reader *r, const char *reading, int topics) {
  int failed;
  memset(r, 0, sizeof *r);
  r->topics = topics;
  r->names = (char *)malloc(strlen(reading) + 1);
  r->members = (records_member *)calloc(RECORDS_NAMES + RECORDS_FIELDS, sizeof *r->members);
  if (!r->names || !r->members) return -1;
  memcpy(r->names, reading, strlen(reading) + 1);
  r->j.take = take_event;
  r->j.user = r;
  failed = add_chosen(r);
  if (!failed && !r->chosen[RECORDS_ID])
    failed = add_members(r, RECORDS_ID, topics ? records_topic_ids : records_ids, ' ');
  if (!failed && !r->chosen[RECORDS_TEXT]) {
    if (!r->chosen[RECORDS_TITLE] && !topics) failed = add_members(r, RECORDS_TITLE, "title", ' ');
    if (!failed) failed = add_members(r, RECORDS_TEXT, topics ? records_topic_texts : records_texts, ' ');
  }
  return failed;
}

void records_field(record_reader *r, unsigned field, const char *member) {
  records_member *m = &r->members[r->nmembers++];
  m->name = member;
  m->name_len = strlen(member);
  m->role = RECORDS_ROLES + (int)field;
}

void records_close(record_reader *r) {
  size_t i;
  for (i = 0; i < r->nmembers; i++) bytes_free(&r->members[i].values);
  free(r->members);
  free(r->names);
  bytes_free(&r->id);
  bytes_free(&r->dropped);
  bytes_free(&r->head);
  made_free(&r->text);
  json_free(&r->j);
  memset(r, 0, sizeof *r);
}

/* ---- objects ----------------------------------------------------------------------------------- */

static int is_called(const records_member *m, const char *path, size_t n) {
  return m->name_len == n && !memcmp(m->name, path, n);
}

/* Returns whether a member is that of the path, or lies within it. */
static int lies_within(const records_member *m, const char *path, size_t n) {
  return m->name_len >= n && !memcmp(m->name, path, n) && (m->name_len == n || m->name[n] == '.');
}

/* Notes the name of a member that is not looked for. */
static void note_dropped(record_reader *r, const char *name, size_t len) {
  size_t at, i, n;
  if (r->ndropped == DROPPED_MOST || memchr(name, 0, len)) return;
  for (i = 0; i < r->nmembers; i++)
    if (r->members[i].name && lies_within(&r->members[i], name, len)) return;
  for (at = 0; at < r->dropped.n; at += n + 1) {
    n = strlen(r->dropped.p + at);
    if (n == len && !memcmp(r->dropped.p + at, name, n)) return;
  }
  r->ndropped++;
  bytes_add(&r->dropped, name, len);
  bytes_char(&r->dropped, 0);
}

/* A member's name was read: of one that an object has twice the last value counts, so the first is forgotten. */
static void begin_member(record_reader *r, const json_event *e) {
  size_t i;
  for (i = 0; i < r->nmembers; i++)
    if (lies_within(&r->members[i], e->path, e->path_len)) r->members[i].values.n = r->members[i].marks[e->depth];
  if (e->depth == 1) note_dropped(r, e->path, e->path_len);
}

/* Returns whether a value is a number, true or false. */
static int is_scalar(const json_event *e) {
  return e->kind == JSON_NUMBER || (e->kind == JSON_LITERAL && e->raw[0] != 'n');
}

static int take_event(void *records_of, const json_event *e) {
  record_reader *r = (record_reader *)records_of;
  size_t i;
  if (e->kind == JSON_MEMBER) {
    begin_member(r, e);
    return 0;
  }
  if (r->see && (e->kind == JSON_STRING || is_scalar(e))) {
    const records_value value = {e->raw, (unsigned)e->len, (int)e->kind};
    r->see(r->see_user, e->path, e->path_len, &value);
  }
  for (i = 0; i < r->nmembers; i++) {
    records_member *m = &r->members[i];
    if (e->kind == JSON_OBJECT) {
      m->marks[e->depth] = m->values.n;
      continue;
    }
    if (!is_called(m, e->path, e->path_len)) continue;
    if (e->kind == JSON_STRING || e->kind == JSON_ARRAY || (e->kind == JSON_NUMBER && m->role == RECORDS_ID) ||
        (m->role >= RECORDS_ROLES && is_scalar(e))) {
      const records_value value = {e->raw, (unsigned)e->len, (int)e->kind};
      bytes_add(&m->values, &value, sizeof value);
    }
    if (m->values.failed) return -1;
  }
  return 0;
}

void records_put(const records_value *v, made_text *out) {
  const table_cell cell = {v->raw, v->len, 1};
  if (v->kind == JSON_STRING) json_unescape(out, v->raw, v->len);
  else if (v->kind == RECORDS_QUOTED) table_put(&cell, out);
  else made_add(out, v->raw, v->len, v->raw);
}

/* Appends what a member has, a blank between its strings. Returns whether it has anything. */
static int put_member(const records_member *m, made_text *out) {
  const records_value *e = (const records_value *)(const void *)m->values.p;
  const size_t n = m->values.n / sizeof *e;
  const char *end = NULL; /* of the string before */
  size_t i;
  for (i = 0; i < n; i++) {
    if (e[i].kind == JSON_ARRAY) continue;
    if (end) made_char(out, ' ', end);
    end = e[i].raw + e[i].len;
    records_put(&e[i], out);
  }
  return n != 0;
}

/* Appends the role's members: all that were named, or the first that there is, a line end between them. */
static int put_role(record_reader *r, int role, made_text *out) {
  size_t i;
  int any = 0;
  for (i = 0; i < r->nmembers && (!any || r->chosen[role]); i++) {
    records_member *m = &r->members[i];
    if (m->role != role || !m->values.n) continue;
    m->used = 1;
    if (out->text.n) made_char(out, '\n', ((const records_value *)(const void *)m->values.p)->raw);
    any |= put_member(m, out);
  }
  return any;
}

/* Makes id and text of the members, or says why that is not possible. */
static void put_roles(record_reader *r) {
  made_text id;
  int has_id;
  memset(&id, 0, sizeof id);
  id.text = r->id;
  has_id = put_role(r, RECORDS_ID, &id);
  r->id = id.text;
  (void)put_role(r, RECORDS_TITLE, &r->text);
  if (!has_id)
    r->why = r->topics ? "none of the members that may be its id is there, as a string or a number"
                       : "none of the members that may be its id is there, as a string or a number; --id names another";
  else if (!put_role(r, RECORDS_TEXT, &r->text))
    r->why = r->topics ? "none of the members that may be its text is there, as a string or an array"
                       : "none of the members that may be its text is there, as a string or an array; --text names "
                         "others";
  if (r->id.failed || r->text.text.failed || r->text.runs.failed) r->why = "there is no memory for it";
}

/* Empties what the record before left. */
static void begin_record(record_reader *r) {
  size_t i;
  for (i = 0; i < r->nmembers; i++) r->members[i].values.n = 0;
  r->id.n = r->text.text.n = r->text.runs.n = 0;
  r->why = NULL;
  r->where = 0;
  r->short_of = 0;
}

size_t records_json(record_reader *r, const char *text, size_t len) {
  size_t n;
  begin_record(r);
  if (len > UINT_MAX) len = UINT_MAX;
  n = json_object(&r->j, text, len);
  if (!n) {
    r->why = r->j.why;
    r->where = r->j.where;
    r->short_of = r->j.short_of;
    return 0;
  }
  put_roles(r);
  return n;
}

int records_field_value(const record_reader *r, unsigned field, size_t i, made_text *out) {
  const records_member *m = r->members, *end = m + r->nmembers;
  const records_value *v;
  size_t n;
  while (m < end && m->role != RECORDS_ROLES + (int)field) m++;
  if (m == end) return 0;
  v = (const records_value *)(const void *)m->values.p;
  for (n = m->values.n / sizeof *v; n; n--, v++) {
    if (v->kind == JSON_ARRAY || i--) continue;
    records_put(v, out);
    return 1;
  }
  return 0;
}

const char *records_used(const record_reader *r, int role, size_t i, size_t *n) {
  size_t m;
  for (m = 0; m < r->nmembers; m++) {
    if (r->members[m].role != role || !r->members[m].used || i--) continue;
    *n = r->members[m].name_len;
    return r->members[m].name;
  }
  return NULL;
}

/* ---- rows -------------------------------------------------------------------------------------- */

static const char row_no_memory[] = "there is no memory for it";

/* Finds the members that are the head's field number `column`. Not 0: there was one of that name before. */
static int bind_column(record_reader *r, const table_cells *head, size_t column) {
  made_text name;
  size_t i;
  int twice = 0;
  memset(&name, 0, sizeof name);
  table_put(table_at(head, column), &name);
  for (i = 0; i < r->nmembers; i++) {
    if (!name.text.n || !is_called(&r->members[i], name.text.p, name.text.n)) continue;
    twice |= r->members[i].column != 0;
    r->members[i].column = column + 1;
  }
  if (name.text.n) note_dropped(r, name.text.p, name.text.n);
  if (r->see) bytes_add(&r->head, name.text.p, name.text.n), bytes_char(&r->head, 0);
  if (name.text.failed) r->why = row_no_memory;
  made_free(&name);
  return twice;
}

/* Returns whether a field of rows is of their text: of a title, or of a text. */
static int is_text_column(const record_reader *r, size_t column) {
  size_t i;
  int chosen = 0;
  for (i = 0; i < r->nmembers; i++) {
    const records_member *m = &r->members[i];
    if (m->role != RECORDS_TITLE && m->role != RECORDS_TEXT) continue;
    if (m->column == column + 1 && (m->role == RECORDS_TITLE || r->chosen[RECORDS_TEXT] || !chosen)) return 1;
    chosen |= m->role == RECORDS_TEXT && m->column != 0; /* of names that are tried the first is it */
  }
  return 0;
}

/* Finds which fields of rows are their text. */
static void find_text(record_reader *r) {
  size_t i;
  int any = 0;
  r->mask = 0;
  for (i = 0; i < r->nmembers; i++) any |= r->members[i].role == RECORDS_TEXT && r->members[i].column;
  for (r->first = 0; r->first < r->columns && !is_text_column(r, r->first);) r->first++;
  for (i = r->first + 1; i < r->columns && r->mask >= 0; i++) {
    if (!is_text_column(r, i)) continue;
    if (i - r->first > TABLE_MASK_BITS) r->mask = -1;
    else r->mask |= 1 << (i - r->first - 1);
  }
  if (!any) r->why = "the head has none of the fields that may be the text; --text names others";
}

int records_head(record_reader *r, const table_cells *head) {
  size_t i;
  r->has_id = 0;
  r->head.n = 0;
  r->why = NULL;
  r->where = 0;
  r->columns = head->n;
  for (i = 0; i < r->nmembers; i++) r->members[i].column = 0;
  for (i = 0; i < head->n && !r->why; i++)
    if (bind_column(r, head, i)) r->why = "two fields of the head have the same name";
  for (i = 0; i < r->nmembers; i++) r->has_id |= r->members[i].role == RECORDS_ID && r->members[i].column;
  if (!r->why) find_text(r);
  if (!r->why && r->chosen[RECORDS_ID] && !r->has_id) r->why = "the head has no field of the name that --id gives";
  return r->why ? -1 : 0;
}

/* Tells of each field of the row that is not empty. */
static void see_cells(const record_reader *r, const table_cells *row) {
  const char *name = r->head.p;
  size_t i;
  for (i = 0; i < row->n && !r->head.failed; i++, name += strlen(name) + 1) {
    const table_cell *c = table_at(row, i);
    const records_value v = {c->raw, (unsigned)c->len, c->quoted ? RECORDS_QUOTED : JSON_NUMBER};
    if (c->len > (c->quoted ? 2u : 0u)) r->see(r->see_user, name, strlen(name), &v);
  }
}

/* Gives the members what the row has. */
static void take_row_cells(record_reader *r, const table_cells *row) {
  size_t i;
  for (i = 0; i < r->nmembers; i++) {
    records_member *m = &r->members[i];
    const table_cell *c = m->column ? table_at(row, m->column - 1) : NULL;
    records_value v;
    if (!c || c->len <= (c->quoted ? 2u : 0u)) continue; /* an empty field is no value */
    v.raw = c->raw;
    v.len = (unsigned)c->len;
    v.kind = c->quoted ? RECORDS_QUOTED : JSON_NUMBER;
    bytes_add(&m->values, &v, sizeof v);
    if (m->values.failed) r->why = row_no_memory;
    m->used |= m->role == RECORDS_TITLE || (m->role == RECORDS_TEXT && is_text_column(r, m->column - 1));
  }
}

/* Appends the text of the row. */
static void put_row_text(record_reader *r, const table_cells *row) {
  size_t i;
  if (r->mask >= 0) {
    table_text(row, r->first, (unsigned)r->mask, &r->text);
    return;
  }
  for (i = r->first; i < row->n; i++)
    if (is_text_column(r, i)) table_text(row, i, 0, &r->text); /* puts a line end before what follows */
}

int records_row(record_reader *r, const table_cells *row) {
  made_text id;
  begin_record(r);
  if (row->n != r->columns) {
    r->why = row->n < r->columns ? "fewer fields than the head has" : "more fields than the head has";
    return -1;
  }
  if (r->see) see_cells(r, row);
  take_row_cells(r, row);
  memset(&id, 0, sizeof id);
  id.text = r->id;
  (void)put_role(r, RECORDS_ID, &id);
  r->id = id.text;
  if (r->has_id && !r->id.n) r->why = "an empty id";
  put_row_text(r, row);
  if (r->id.failed || r->text.text.failed || r->text.runs.failed) r->why = row_no_memory;
  return r->why ? -1 : 0;
}

/* ---- elements ---------------------------------------------------------------------------------- */

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/* Takes [p, end) without the blanks around it as the id. Returns whether there is anything. */
static int take_id(record_reader *r, const char *p, const char *end) {
  while (p < end && is_blank(*p)) p++;
  while (p < end && is_blank(end[-1])) end--;
  bytes_add(&r->id, p, (size_t)(end - p));
  return p < end;
}

/* Takes the attribute ID or DOCNO of a tag as the id. Returns whether there is one. */
static int take_attribute(record_reader *r, const char *p, const char *end) {
  while (p < end) {
    const char *name, *value;
    size_t n;
    char quote;
    while (p < end && is_blank(*p)) p++;
    for (name = p; p < end && *p != '=' && !is_blank(*p);) p++;
    n = (size_t)(p - name);
    while (p < end && is_blank(*p)) p++;
    if (p == end || *p != '=') continue;
    for (p++; p < end && is_blank(*p);) p++;
    quote = p < end && (*p == '"' || *p == '\'') ? *p++ : 0;
    for (value = p; p < end && (quote ? *p != quote : !is_blank(*p));) p++;
    if ((n == 2 && !strncasecmp(name, "id", 2)) || (n == 5 && !strncasecmp(name, "docno", 5)))
      return take_id(r, value, p);
    if (quote && p < end) p++;
  }
  return 0;
}

int records_trec(record_reader *r, const char *tag, size_t tag_len, const char *text, size_t len) {
  const char *end = text + len, *open = markup_find(text, end, "<docno>"), *close = NULL;
  begin_record(r);
  if (open) close = markup_find(open, end, "</docno>");
  if (open && !close) r->why = "a <DOCNO> without </DOCNO>";
  else if (!tag) r->why = NULL;
  else if (close && !take_id(r, open + 7, close)) r->why = "an empty <DOCNO>";
  else if (!close && !take_attribute(r, tag, tag + tag_len)) r->why = "a <DOC> without <DOCNO>...</DOCNO>";
  if (r->why) return -1;
  if (close) {
    markup_strip(&r->text, text, open);
    made_char(&r->text, ' ', open);
    markup_lines(&r->text, open, close);
    text = close + 8;
  }
  markup_strip(&r->text, text, end);
  if (r->id.failed || r->text.text.failed || r->text.runs.failed) r->why = "there is no memory for it";
  return r->why ? -1 : 0;
}
