/* defines.c - the names that program code defines. */
#include "defines.h"

#include <stdint.h>
#include <string.h>

#define LONGEST_LINE 400u /* longer ones are made by programs */

/* A line without the blanks around it. */
typedef struct line {
  const char *at, *end;
  int indented;
} line;

/* Returns whether a character belongs to names: letters, digits, _, $ and all that is not ASCII. It is asked of most
 * characters of a text, so by a set of bits and without a branch. */
static int is_name(char c) {
  static const uint64_t names[4] = {UINT64_C(0x3ff001000000000), UINT64_C(0x7fffffe87fffffe), UINT64_MAX, UINT64_MAX};
  return (int)(names[(uint8_t)c >> 6] >> ((uint8_t)c & 63) & 1);
}
static int begins_name(char c) { return is_name(c) && !(c >= '0' && c <= '9'); }
static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static const char *over_blanks(const char *p, const char *end) {
  while (p < end && is_blank(*p)) p++;
  return p;
}

static const char *over_name(const char *p, const char *end) {
  while (p < end && is_name(*p)) p++;
  return p;
}

/* Returns whether [p, end) is one of `words`, which blanks part. */
static int is_among(const char *p, const char *end, const char *words) {
  const size_t n = (size_t)(end - p);
  while (n && *words) {
    const size_t len = strcspn(words, " ");
    if (len == n && !memcmp(words, p, n)) return 1;
    words += len + (words[len] == ' ');
  }
  return 0;
}

/* Words by their first letter, a to z; NULL: none. Each line of a text is held against them, and most of its words
 * differ from all of them by that letter. */
typedef const char *words_by_letter[26];

/* Returns whether [p, end) is one of `words`. */
static int is_word(const char *p, const char *end, const words_by_letter words) {
  const unsigned letter = p < end ? (unsigned)(uint8_t)*p - 'a' : 26u;
  return letter < 26 && words[letter] && is_among(p, end, words[letter]);
}

/* Returns whether a path ends with one of `endings`, which blanks part. */
static int has_ending(const char *path, const char *endings) {
  const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
  char small[8];
  size_t i, n = dot ? strlen(dot + 1) : 0;
  if (!dot || (slash && slash > dot) || n >= sizeof small) return 0;
  for (i = 0; i < n; i++) small[i] = (char)(dot[1 + i] >= 'A' && dot[1 + i] <= 'Z' ? dot[1 + i] + 32 : dot[1 + i]);
  return is_among(small, small + n, endings);
}

static size_t put(byte_buf *out, const char *p, const char *end) {
  if (p == end || end - p > 128) return 0;
  bytes_add(out, p, (size_t)(end - p));
  bytes_add(out, " ", 1);
  return 1;
}

/* Returns the last part of the qualified name that begins at p, such as c of a::b.c, and where it ends in *end. */
static const char *last_part(const char *p, const char **end) {
  const char *part = p, *at = over_name(p, *end);
  for (;;) {
    const char *next = at;
    if (next + 2 < *end && next[0] == ':' && next[1] == ':') next += 2;
    else if (next + 1 < *end && (*next == '.' || *next == '#' || *next == '\\')) next++;
    else break;
    if (*next == '~') next++;
    if (!begins_name(*next)) break;
    part = next;
    at = over_name(next, *end);
  }
  *end = at;
  return part;
}

/* Words before the name of what is defined. */
static const words_by_letter keywords = {
    ['a' - 'a'] = "actor",
    ['c' - 'a'] = "class",
    ['d' - 'a'] = "def data defmodule defmacro defp defprotocol",
    ['e' - 'a'] = "enum extension",
    ['f' - 'a'] = "func fun fn function",
    ['i' - 'a'] = "interface impl instance",
    ['m' - 'a'] = "module macro mod",
    ['n' - 'a'] = "namespace newtype",
    ['o' - 'a'] = "object",
    ['p' - 'a'] = "protocol package",
    ['r' - 'a'] = "record",
    ['s' - 'a'] = "struct sub",
    ['t' - 'a'] = "trait type typedef",
    ['u' - 'a'] = "union",
};

/* Takes the names behind keywords: class Name, def self.name, func (receiver) Name. */
static size_t by_keyword(const line *l, byte_buf *out) {
  const char *p = l->at;
  size_t n = 0;
  while (p < l->end) {
    const char *word = p, *end = over_name(p, l->end);
    if (end == p) {
      p++;
      continue;
    }
    p = end;
    if (p == l->end || !is_blank(*p) || !is_word(word, end, keywords)) continue;
    if (word > l->at && (word[-1] == '.' || word[-1] == '-' || word[-1] == ':')) continue;
    p = over_blanks(p, l->end);
    if (p < l->end && *p == '(') { /* the receiver of a method of Go */
      const char *close = (const char *)memchr(p, ')', (size_t)(l->end - p));
      if (!close) break;
      p = over_blanks(close + 1, l->end);
    }
    if (p == l->end || !begins_name(*p)) continue;
    end = l->end;
    word = last_part(p, &end);
    n += put(out, word, end);
    p = end;
  }
  return n;
}

/* Takes the name of a macro: #define NAME. */
static size_t by_macro(const line *l, byte_buf *out) {
  const char *p = l->at;
  if (p == l->end || *p != '#') return 0;
  p = over_blanks(p + 1, l->end);
  if (l->end - p < 8 || memcmp(p, "define", 6) != 0 || !is_blank(p[6])) return 0;
  p = over_blanks(p + 6, l->end);
  return put(out, p, over_name(p, l->end));
}

/* Takes the name of a function whose parentheses open behind it in an unindented line that ends nothing: C and C++. */
static size_t by_parentheses(const line *l, byte_buf *out) {
  const char *open, *p, *end;
  if (l->indented || !begins_name(*l->at) || l->end[-1] == ';' || l->end[-1] == ',') return 0;
  open = (const char *)memchr(l->at, '(', (size_t)(l->end - l->at));
  if (!open || memchr(l->at, ';', (size_t)(l->end - l->at)) || memchr(l->at, '=', (size_t)(open - l->at))) return 0;
  end = open;
  while (end > l->at && is_blank(end[-1])) end--;
  p = end;
  while (p > l->at && is_name(p[-1])) p--;
  if (p == end || !begins_name(*p) || is_among(p, end, "if for while switch return sizeof defined")) return 0;
  return put(out, p, end);
}

/* Takes the name of a function of a shell: name() {. */
static size_t by_shell(const line *l, byte_buf *out) {
  const char *end = l->at;
  if (!begins_name(*end)) return 0;
  while (end < l->end && (is_name(*end) || *end == '-' || *end == ':')) end++;
  if (l->end - end < 2 || memcmp(end, "()", 2) != 0) return 0;
  return put(out, l->at, end);
}

/* Takes the name that a signature is given for: name :: Type. */
static size_t by_signature(const line *l, byte_buf *out) {
  const char *end = l->at, *p;
  while (end < l->end && (is_name(*end) || *end == '\'')) end++;
  p = over_blanks(end, l->end);
  if (l->indented || end == l->at || !begins_name(*l->at) || l->end - p < 2 || memcmp(p, "::", 2) != 0) return 0;
  return put(out, l->at, end);
}

/* Takes a name that a function or a class is given to: const name = function, exports.name = class. */
static size_t by_function_value(const line *l, byte_buf *out) {
  const char *equal = (const char *)memchr(l->at, '=', (size_t)(l->end - l->at)), *p, *end, *value, *word;
  if (!equal || equal == l->at || equal + 1 >= l->end || equal[1] == '=' || equal[1] == '>') return 0;
  for (end = equal; end > l->at && is_blank(end[-1]);) end--;
  for (p = end; p > l->at && is_name(p[-1]);) p--;
  if (p == end || !begins_name(*p)) return 0;
  value = over_blanks(equal + 1, l->end);
  word = over_name(value, l->end);
  if (is_among(value, word, "async")) {
    value = over_blanks(word, l->end);
    word = over_name(value, l->end);
  }
  if (!is_among(value, word, "function class") && (value == l->end || *value != '(')) {
    const char *arrow = over_blanks(word, l->end);
    if (word == value || l->end - arrow < 2 || memcmp(arrow, "=>", 2) != 0) return 0;
  }
  return put(out, p, end);
}

/* Takes a name with a capital that something is given to at the begin of a line: a type or a constant. */
static size_t by_capital(const line *l, byte_buf *out) {
  const char *end = over_name(l->at, l->end), *p = over_blanks(end, l->end);
  if (l->indented || !(*l->at >= 'A' && *l->at <= 'Z') || p == l->end || (*p != '=' && *p != ':')) return 0;
  if (*p == ':' && !memchr(p, '=', (size_t)(l->end - p))) return 0;
  return put(out, l->at, end);
}

static const words_by_letter modifiers = {
    ['a' - 'a'] = "abstract async",
    ['c' - 'a'] = "constexpr",
    ['d' - 'a'] = "default",
    ['e' - 'a'] = "extern",
    ['f' - 'a'] = "final",
    ['g' - 'a'] = "get",
    ['i' - 'a'] = "inline internal",
    ['n' - 'a'] = "native",
    ['o' - 'a'] = "override open",
    ['p' - 'a'] = "public private protected",
    ['r' - 'a'] = "readonly",
    ['s' - 'a'] = "static synchronized set sealed",
    ['u' - 'a'] = "unsafe",
    ['v' - 'a'] = "virtual",
};

/* Takes the name of a method that modifiers stand before: public static int name(. */
static size_t by_modifier(const line *l, byte_buf *out) {
  const char *open, *p, *end;
  if (!is_word(l->at, over_name(l->at, l->end), modifiers)) return 0;
  open = (const char *)memchr(l->at, '(', (size_t)(l->end - l->at));
  if (!open || memchr(l->at, '=', (size_t)(open - l->at))) return 0;
  for (end = open; end > l->at && is_blank(end[-1]);) end--;
  for (p = end; p > l->at && is_name(p[-1]);) p--;
  return p < end && begins_name(*p) && p > l->at ? put(out, p, end) : 0;
}

/* Which rules hold for a file, by its ending. */
typedef struct rules {
  int parentheses, shell, signature, function_value, capital, modifier;
} rules;

static rules rules_of(const char *path) {
  rules r;
  r.parentheses = has_ending(path, "c h cc cpp hpp cxx hxx hh inl inc cu cuh m mm ino");
  r.shell = has_ending(path, "sh bash bats zsh ksh");
  r.signature = has_ending(path, "hs lhs elm purs idr");
  r.function_value = has_ending(path, "js ts jsx tsx mjs cjs vue svelte");
  r.capital = has_ending(path, "py pyi rb");
  r.modifier = has_ending(path, "java cs php kt kts ts js tsx jsx scala swift cpp hpp h cc groovy dart");
  return r;
}

/* Returns whether the line is a comment or includes something. */
static int is_comment(const line *l) {
  return l->at == l->end || *l->at == '*' ||
      (l->end - l->at > 1 && *l->at == '/' && (l->at[1] == '/' || l->at[1] == '*'));
}

static size_t defines_of_line(const line *l, const rules *r, byte_buf *out) {
  size_t n;
  if (is_comment(l)) return 0;
  n = by_macro(l, out);
  if (*l->at == '#') return n;
  n = by_keyword(l, out);
  if (r->parentheses) n += by_parentheses(l, out);
  if (r->shell) n += by_shell(l, out);
  if (r->signature) n += by_signature(l, out);
  if (r->function_value) n += by_function_value(l, out);
  if (r->capital) n += by_capital(l, out);
  if (r->modifier) n += by_modifier(l, out);
  return n;
}

size_t defines_find(const char *path, const char *text, size_t n, byte_buf *out) {
  const rules r = rules_of(path);
  const char *p = text, *end = text + n;
  size_t found = 0;
  while (p < end) {
    const char *nl = (const char *)memchr(p, '\n', (size_t)(end - p));
    line l;
    l.end = nl ? nl : end;
    l.at = over_blanks(p, l.end);
    l.indented = l.at > p;
    while (l.end > l.at && is_blank(l.end[-1])) l.end--;
    if ((size_t)(l.end - l.at) <= LONGEST_LINE) found += defines_of_line(&l, &r, out);
    p = nl ? nl + 1 : end;
  }
  return found;
}
