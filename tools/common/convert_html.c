/* convert_html.c - the text of a page of HTML: its title, and what stands between its tags.
 *
 * Scripts, styles, comments and attributes are no text. Tags that set words apart part them; those that only set
 * letters in another face do not.
 */
#include "convert.h"

#include "markup.h"

#include <string.h>
#include <strings.h>

#define HTML_NAME_MOST 10 /* bytes of the longest name that is looked for */

typedef struct html {
  const char *p, *end; /* what is left of the page */
  made_text text, title;
  int in_title;
  int quotes; /* a '>' within quotes does not end a tag; so far all quotes were closed */
  int closed; /* so far all tags were closed */
} html;

static int html_is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

static int html_is_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

/* Returns where the tag at p ends, its '>', or NULL: it is none. Where one lacks its end it is looked for once. */
static const char *html_end_of_tag(html *h, const char *p) {
  char quote = 0;
  const char *at = p;
  if (!h->closed) return NULL;
  for (; h->quotes && at < h->end; at++) {
    if (quote) quote = *at == quote ? 0 : quote;
    else if (*at == '>') return at;
    else if ((*at == '"' || *at == '\'') && at[-1] == '=') quote = *at;
  }
  h->quotes = 0;
  at = (const char *)memchr(p, '>', (size_t)(h->end - p));
  h->closed = at != NULL;
  return at;
}

/* Returns whether the n bytes at `name` are one of names, which a blank stands before and behind, in letters of either
 * case. */
static int html_is_one(const char *names, const char *name, size_t n) {
  char room[HTML_NAME_MOST + 3];
  size_t i;
  if (!n || n > HTML_NAME_MOST) return 0;
  room[0] = room[n + 1] = ' ';
  for (i = 0; i < n; i++) room[i + 1] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] + 32 : name[i]);
  room[n + 2] = 0;
  return strstr(names, room) != NULL;
}

/* Passes over what is no text, up to the end tag of its name. */
static void html_skip_element(html *h, const char *name, size_t n) {
  const char *p = h->p;
  while ((p = markup_find(p, h->end, "</")) != NULL) {
    p += 2;
    if ((size_t)(h->end - p) >= n && !strncasecmp(p, name, n) && (p + n == h->end || !html_is_name(p[n]))) break;
  }
  h->p = p ? p + n : h->end;
  p = h->p < h->end ? (const char *)memchr(h->p, '>', (size_t)(h->end - h->p)) : NULL;
  h->p = p ? p + 1 : h->end;
}

/* Begins a line, unless an empty one is there. */
static void html_put_break(made_text *to) {
  const byte_buf *b = &to->text;
  if (b->n && !(b->n > 1 && b->p[b->n - 1] == '\n' && b->p[b->n - 2] == '\n')) made_char(to, '\n', NULL);
}

/* Takes the tag at h->p, which ends at `close`. */
static void html_take_tag(html *h, const char *close) {
  static const char inline_tags[] =
      " a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q s samp small span strike "
      "strong sub sup time tt u var wbr ";
  const int ends = h->p[1] == '/';
  const char *name = h->p + 1 + ends;
  size_t n = 0;
  while (name + n < close && html_is_name(name[n])) n++;
  h->p = close + 1;
  if (!ends && close[-1] != '/' && html_is_one(" script style template ", name, n)) html_skip_element(h, name, n);
  else if (html_is_one(" title ", name, n)) h->in_title = !ends && !h->title.text.n;
  else if (!html_is_one(inline_tags, name, n)) html_put_break(h->in_title ? &h->title : &h->text);
}

/* Passes over a comment, or what else begins with "<!" or "<?". */
static void html_skip_declaration(html *h) {
  const char *p = h->p + 2, *sign = NULL;
  if (h->end - h->p >= 4 && !memcmp(h->p, "<!--", 4)) {
    for (p += 2; p < h->end && (sign = (const char *)memchr(p, '>', (size_t)(h->end - p))) != NULL; p = sign + 1)
      if (sign - h->p >= 6 && sign[-1] == '-' && sign[-2] == '-') break;
  } else {
    sign = (const char *)memchr(p, '>', (size_t)(h->end - p));
  }
  h->p = sign ? sign + 1 : h->end;
}

/* Takes what begins with '<'. */
static void html_take_sign(html *h) {
  const char next = h->p + 1 < h->end ? h->p[1] : 0;
  const char *close = NULL;
  if (next == '!' || next == '?') {
    html_skip_declaration(h);
    return;
  }
  if ((next == '/' || html_is_name(next)) && !(next >= '0' && next <= '9')) close = html_end_of_tag(h, h->p + 1);
  if (close) {
    html_take_tag(h, close);
  } else {
    made_char(h->in_title ? &h->title : &h->text, '<', NULL);
    h->p++;
  }
}

const char *convert_html(const char *text, size_t n, byte_buf *out) {
  html h;
  memset(&h, 0, sizeof h);
  h.p = text;
  h.end = text + n;
  h.quotes = h.closed = 1;
  while (h.p < h.end) {
    made_text *to = h.in_title ? &h.title : &h.text;
    const char *from = h.p;
    unsigned c = '&';
    size_t taken;
    while (h.p < h.end && *h.p != '<' && *h.p != '&') h.p++;
    made_add(to, from, (size_t)(h.p - from), from);
    if (h.p == h.end) break;
    if (*h.p == '<') {
      html_take_sign(&h);
      continue;
    }
    taken = markup_entity(h.p, (size_t)(h.end - h.p), &c);
    made_utf8(to, taken ? c : '&', NULL);
    h.p += taken ? taken : 1;
  }
  bytes_add(out, h.title.text.p, h.title.text.n);
  if (h.title.text.n) bytes_char(out, '\n');
  bytes_add(out, h.text.text.p, h.text.text.n);
  if (h.title.text.failed || h.text.text.failed) out->failed = 1;
  made_free(&h.title);
  made_free(&h.text);
  return NULL;
}

int convert_is_html(const char *text, size_t n) {
  html h;
  memset(&h, 0, sizeof h);
  h.p = text;
  h.end = text + n;
  for (;;) {
    while (h.p < h.end && html_is_blank(*h.p)) h.p++;
    if (h.end - h.p < 5 || *h.p != '<') return 0;
    if (!strncasecmp(h.p, "<html", 5) && (h.end - h.p == 5 || !html_is_name(h.p[5]))) return 1;
    if (h.end - h.p >= 14 && !strncasecmp(h.p, "<!doctype html", 14)) return 1;
    if (h.p[1] != '!' && h.p[1] != '?') return 0;
    html_skip_declaration(&h); /* a comment, or how XML begins */
  }
}
