/* heads.c - front matter, and dates of mail. The header of a mail is read where mail is, in convert_mail.c. */
#include "heads.h"

#include "convert.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef struct head_line {
  const char *p, *end; /* without the line's end */
} head_line;

/* Takes the next line. 0: there is none. */
static int next_line(const char **p, const char *end, head_line *l) {
  const char *nl;
  if (*p >= end) return 0;
  nl = (const char *)memchr(*p, '\n', (size_t)(end - *p));
  l->p = *p;
  l->end = nl ? nl : end;
  *p = nl ? nl + 1 : end;
  while (l->end > l->p && (l->end[-1] == '\r' || l->end[-1] == ' ' || l->end[-1] == '\t')) l->end--;
  return 1;
}

static int line_is(head_line l, const char *text) {
  return (size_t)(l.end - l.p) == strlen(text) && !memcmp(l.p, text, strlen(text));
}

heads_kind heads_front(const char *text, size_t n, size_t *len) {
  const char *p = text, *end = text + n;
  heads_kind kind;
  head_line l;
  if (n >= 3 && !memcmp(p, "\xEF\xBB\xBF", 3)) p += 3;
  if (!next_line(&p, end, &l)) return HEADS_NONE;
  kind = line_is(l, "---") ? HEADS_YAML : line_is(l, "+++") ? HEADS_TOML : HEADS_NONE;
  while (kind && next_line(&p, end, &l)) {
    if (kind == HEADS_YAML ? !line_is(l, "---") && !line_is(l, "...") : !line_is(l, "+++")) continue;
    *len = (size_t)(p - text);
    return kind;
  }
  return HEADS_NONE;
}

/* ---- values ------------------------------------------------------------------------------------- */

/* What is wanted: value number `left` from here. */
typedef struct wanted {
  heads_kind kind;
  size_t left;
  byte_buf *out;
} wanted;

static void skip_blanks(head_line *l) {
  while (l->p < l->end && (*l->p == ' ' || *l->p == '\t')) l->p++;
}

/* Takes the text in quotes that l begins with; of the escapes \" \\ \n \t, and '' between single ones. Without the
 * closing quote it is the rest of the line. */
static void take_quoted(head_line *l, byte_buf *out) {
  const char quote = *l->p++;
  for (; l->p < l->end; l->p++) {
    char c = *l->p;
    if (c == quote && quote == '\'' && l->p + 1 < l->end && l->p[1] == '\'') l->p++;
    else if (c == quote) break;
    else if (c == '\\' && quote == '"' && l->p + 1 < l->end)
      c = *++l->p, c = (char)(c == 'n' ? '\n' : c == 't' ? '\t' : c);
    if (out) bytes_char(out, c);
  }
  if (l->p < l->end) l->p++;
}

/* Takes a bare value up to one of the signs that end it, or a comment. */
static void take_bare(head_line *l, const char *ends, byte_buf *out) {
  const char *from = l->p, *to;
  while (l->p < l->end && !strchr(ends, *l->p) && (*l->p != '#' || (l->p > from && l->p[-1] != ' '))) l->p++;
  for (to = l->p; to > from && (to[-1] == ' ' || to[-1] == '\t');) to--;
  if (out) bytes_add(out, from, (size_t)(to - from));
}

/* Takes one value; returns whether it is the one that is wanted. Empty ones, null and ~ are none. */
static int take_front(wanted *w, head_line *l, const char *ends) {
  const size_t before = w->out->n;
  byte_buf *out = w->left ? NULL : w->out;
  head_line bare;
  skip_blanks(l);
  bare = *l;
  if (l->p < l->end && (*l->p == '"' || *l->p == '\'')) {
    take_quoted(l, out);
    if (l->p < l->end) take_bare(l, ends, NULL); /* what is behind it */
  } else {
    take_bare(l, ends, out);
    bare.end = l->p;
    while (bare.end > bare.p && bare.end[-1] == ' ') bare.end--;
    if (bare.p == bare.end || line_is(bare, "null") || line_is(bare, "~")) {
      w->out->n = before;
      return 0;
    }
  }
  return w->left-- == 0;
}

/* Takes the values of a list in brackets. */
static int take_list(wanted *w, head_line *l) {
  l->p++;
  while (l->p < l->end && *l->p != ']') {
    if (take_front(w, l, ",]")) return 1;
    if (l->p < l->end && *l->p == ',') l->p++;
    else break;
  }
  return 0;
}

/* Takes the items of a list that stand in lines of their own. */
static int take_items(wanted *w, const char *p, const char *end) {
  head_line l;
  while (next_line(&p, end, &l)) {
    skip_blanks(&l);
    if (l.p == l.end || *l.p == '#') continue;
    if (*l.p != '-' || (l.p + 1 < l.end && l.p[1] != ' ') || line_is(l, "---")) return 0;
    l.p++;
    if (take_front(w, &l, "")) return 1;
  }
  return 0;
}

/* Takes the values of a field from what stands behind its name's sign; [p, end) are the lines that follow. */
static int take_field(wanted *w, head_line l, const char *p, const char *end) {
  skip_blanks(&l);
  if (l.p < l.end && *l.p == '[') return take_list(w, &l);
  if (l.p < l.end && *l.p != '#') return strchr("|>{&*!", *l.p) ? 0 : take_front(w, &l, "");
  return w->kind == HEADS_YAML && take_items(w, p, end);
}

static int front_value(wanted *w, const char *head, size_t len, const char *name) {
  const size_t n = strlen(name);
  const char *p = head, *end = head + len, sign = w->kind == HEADS_YAML ? ':' : '=';
  head_line l;
  while (next_line(&p, end, &l)) {
    if (w->kind == HEADS_TOML && l.p < l.end && *l.p == '[') return 0; /* a table */
    if ((size_t)(l.end - l.p) < n + 1 || strncasecmp(l.p, name, n) != 0) continue;
    l.p += n;
    if (w->kind == HEADS_TOML) skip_blanks(&l);
    if (l.p < l.end && *l.p == sign && (sign == '=' || l.p + 1 == l.end || l.p[1] == ' ' || l.p[1] == '\t')) {
      l.p++;
      return take_field(w, l, p, end);
    }
  }
  return 0;
}

int heads_value(heads_kind kind, const char *head, size_t len, const char *name, size_t i, byte_buf *out) {
  wanted w = {kind, i, out};
  if (kind == HEADS_NONE) return 0;
  return kind == HEADS_MAIL ? convert_mail_field(head, len, name, i, out) : front_value(&w, head, len, name);
}

/* ---- dates (RFC 5322, sections 3.3 and 4.3) ---------------------------------------------------- */

/* Takes a number of at most `most` digits; -1: there is none. */
static int take_number(head_line *l, int most) {
  int n = 0, digits = 0;
  while (l->p < l->end && *l->p >= '0' && *l->p <= '9' && digits < most) n = n * 10 + (*l->p++ - '0'), digits++;
  return digits ? n : -1;
}

static int take_sign(head_line *l, char c) {
  skip_blanks(l);
  if (l->p == l->end || *l->p != c) return 0;
  l->p++;
  skip_blanks(l);
  return 1;
}

/* Takes a month's name; 0: it is none. */
static int take_month(head_line *l) {
  static const char months[] = "janfebmaraprmayjunjulaugsepoctnovdec";
  int i;
  skip_blanks(l);
  for (i = 0; i < 12 && l->end - l->p >= 3; i++)
    if (!strncasecmp(l->p, months + 3 * i, 3)) return l->p += 3, i + 1;
  return 0;
}

/* Takes a zone, in minutes. Letters without a meaning are UTC, as nothing is. */
static int take_zone(head_line *l) {
  static const struct {
    const char *name;
    int hours;
  } zones[] = {{"EDT", -4}, {"EST", -5}, {"CDT", -5}, {"CST", -6}, {"MDT", -6}, {"MST", -7}, {"PDT", -7}, {"PST", -8}};
  size_t i;
  skip_blanks(l);
  if (l->p < l->end && (*l->p == '+' || *l->p == '-')) {
    const int sign = *l->p++ == '-' ? -1 : 1, n = take_number(l, 4);
    return n < 0 || n % 100 > 59 || n / 100 > 23 ? 0 : sign * (n / 100 * 60 + n % 100);
  }
  for (i = 0; i < sizeof zones / sizeof *zones; i++)
    if (l->end - l->p >= 3 && !strncasecmp(l->p, zones[i].name, 3)) return 60 * zones[i].hours;
  return 0;
}

int heads_date(const char *text, size_t len, char out[HEADS_DATE]) {
  head_line l;
  int day, month, year, hour, minute, second = 0, zone;
  const char *from, *comma = (const char *)memchr(text, ',', len < 12 ? len : 12);
  l.p = comma ? comma + 1 : text;
  l.end = text + len;
  skip_blanks(&l);
  day = take_number(&l, 2);
  month = take_month(&l);
  skip_blanks(&l);
  from = l.p;
  year = take_number(&l, 4);
  if (year >= 0 && l.p - from < 4) year += l.p - from == 2 && year < 50 ? 2000 : 1900;
  skip_blanks(&l);
  hour = take_number(&l, 2);
  if (day < 1 || !month || year < 0 || hour < 0 || !take_sign(&l, ':')) return 0;
  minute = take_number(&l, 2);
  if (take_sign(&l, ':')) second = take_number(&l, 2);
  if (day > 31 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60) return 0;
  zone = take_zone(&l);
  if (second == 60) second = 59; /* of a second that was put in */
  snprintf(out, HEADS_DATE, "%04d-%02d-%02dT%02d:%02d:%02d%c%02d:%02d", year % 10000, month, day, hour, minute, second,
      zone < 0 ? '-' : '+', (zone < 0 ? -zone : zone) / 60 % 24, (zone < 0 ? -zone : zone) % 60);
  return 1;
}
