/* markup.c - tags, and the character references of HTML 4.01 and XML: names, decimal and hexadecimal numbers. */
#include "markup.h"

#include <strings.h>

/* The names of U+00A0 to U+00FF, in that order. */
static const char latin1[] =
    "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 "
    "acute micro "
    "para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring "
    "AElig Ccedil "
    "Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times "
    "Oslash Ugrave "
    "Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute "
    "ecirc euml "
    "igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc "
    "uuml yacute "
    "thorn yuml ";

typedef struct reference {
  const char *name;
  unsigned c;
} reference;

static const reference others[] = {{"OElig", 0x152}, {"oelig", 0x153}, {"Scaron", 0x160}, {"scaron", 0x161},
    {"Yuml", 0x178}, {"fnof", 0x192}, {"circ", 0x2c6}, {"tilde", 0x2dc}, {"Alpha", 0x391}, {"Beta", 0x392},
    {"Gamma", 0x393}, {"Delta", 0x394}, {"Epsilon", 0x395}, {"Zeta", 0x396}, {"Eta", 0x397}, {"Theta", 0x398},
    {"Iota", 0x399}, {"Kappa", 0x39a}, {"Lambda", 0x39b}, {"Mu", 0x39c}, {"Nu", 0x39d}, {"Xi", 0x39e},
    {"Omicron", 0x39f}, {"Pi", 0x3a0}, {"Rho", 0x3a1}, {"Sigma", 0x3a3}, {"Tau", 0x3a4}, {"Upsilon", 0x3a5},
    {"Phi", 0x3a6}, {"Chi", 0x3a7}, {"Psi", 0x3a8}, {"Omega", 0x3a9}, {"alpha", 0x3b1}, {"beta", 0x3b2},
    {"gamma", 0x3b3}, {"delta", 0x3b4}, {"epsilon", 0x3b5}, {"zeta", 0x3b6}, {"eta", 0x3b7}, {"theta", 0x3b8},
    {"iota", 0x3b9}, {"kappa", 0x3ba}, {"lambda", 0x3bb}, {"mu", 0x3bc}, {"nu", 0x3bd}, {"xi", 0x3be},
    {"omicron", 0x3bf}, {"pi", 0x3c0}, {"rho", 0x3c1}, {"sigmaf", 0x3c2}, {"sigma", 0x3c3}, {"tau", 0x3c4},
    {"upsilon", 0x3c5}, {"phi", 0x3c6}, {"chi", 0x3c7}, {"psi", 0x3c8}, {"omega", 0x3c9}, {"thetasym", 0x3d1},
    {"upsih", 0x3d2}, {"piv", 0x3d6}, {"ensp", 0x2002}, {"emsp", 0x2003}, {"thinsp", 0x2009}, {"zwnj", 0x200c},
    {"zwj", 0x200d}, {"lrm", 0x200e}, {"rlm", 0x200f}, {"ndash", 0x2013}, {"mdash", 0x2014}, {"lsquo", 0x2018},
    {"rsquo", 0x2019}, {"sbquo", 0x201a}, {"ldquo", 0x201c}, {"rdquo", 0x201d}, {"bdquo", 0x201e}, {"dagger", 0x2020},
    {"Dagger", 0x2021}, {"bull", 0x2022}, {"hellip", 0x2026}, {"permil", 0x2030}, {"prime", 0x2032}, {"Prime", 0x2033},
    {"lsaquo", 0x2039}, {"rsaquo", 0x203a}, {"oline", 0x203e}, {"frasl", 0x2044}, {"euro", 0x20ac}, {"image", 0x2111},
    {"weierp", 0x2118}, {"real", 0x211c}, {"trade", 0x2122}, {"alefsym", 0x2135}, {"larr", 0x2190}, {"uarr", 0x2191},
    {"rarr", 0x2192}, {"darr", 0x2193}, {"harr", 0x2194}, {"crarr", 0x21b5}, {"lArr", 0x21d0}, {"uArr", 0x21d1},
    {"rArr", 0x21d2}, {"dArr", 0x21d3}, {"hArr", 0x21d4}, {"forall", 0x2200}, {"part", 0x2202}, {"exist", 0x2203},
    {"empty", 0x2205}, {"nabla", 0x2207}, {"isin", 0x2208}, {"notin", 0x2209}, {"ni", 0x220b}, {"prod", 0x220f},
    {"sum", 0x2211}, {"minus", 0x2212}, {"lowast", 0x2217}, {"radic", 0x221a}, {"prop", 0x221d}, {"infin", 0x221e},
    {"ang", 0x2220}, {"and", 0x2227}, {"or", 0x2228}, {"cap", 0x2229}, {"cup", 0x222a}, {"int", 0x222b},
    {"there4", 0x2234}, {"sim", 0x223c}, {"cong", 0x2245}, {"asymp", 0x2248}, {"ne", 0x2260}, {"equiv", 0x2261},
    {"le", 0x2264}, {"ge", 0x2265}, {"sub", 0x2282}, {"sup", 0x2283}, {"nsub", 0x2284}, {"sube", 0x2286},
    {"supe", 0x2287}, {"oplus", 0x2295}, {"otimes", 0x2297}, {"perp", 0x22a5}, {"sdot", 0x22c5}, {"lceil", 0x2308},
    {"rceil", 0x2309}, {"lfloor", 0x230a}, {"rfloor", 0x230b}, {"lang", 0x2329}, {"rang", 0x232a}, {"loz", 0x25ca},
    {"spades", 0x2660}, {"clubs", 0x2663}, {"hearts", 0x2665}, {"diams", 0x2666}};

/* Those that are known in either case, as old collections write them. */
static const reference either_case[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''},
    {"nbsp", ' '}};

/* Returns the character that a name of n bytes stands for, or 0. */
static unsigned named(const char *text, size_t n) {
  unsigned c = 0xa0;
  for (size_t i = 0; i < sizeof either_case / sizeof *either_case; i++)
    if (strlen(either_case[i].name) == n && !strncasecmp(either_case[i].name, text, n)) return either_case[i].c;
  for (const char *p = latin1; *p; p = strchr(p, ' ') + 1, c++)
    if (strcspn(p, " ") == n && !memcmp(p, text, n)) return c;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strlen(others[i].name) == n && !memcmp(others[i].name, text, n)) return others[i].c;
  return 0;
}

/* Returns the character of a number of n bytes, such as "233" or "xE9"; 0 for none, and for what is no character. */
static unsigned numbered(const char *text, size_t n) {
  const int hex = n && (*text == 'x' || *text == 'X');
  unsigned c = 0;
  if (n < 1u + (unsigned)hex || n > 8) return 0;
  for (size_t i = (size_t)hex; i < n; i++) {
    const char *digits = "0123456789abcdef",
               *at = strchr(digits, text[i] >= 'A' && text[i] <= 'F' ? text[i] + 32 : text[i]);
    if (!text[i] || !at || (!hex && at - digits > 9)) return 0;
    c = c * (hex ? 16 : 10) + (unsigned)(at - digits);
  }
  if (c == '\t' || c == '\n' || c == '\r') return ' ';
  return c < 32 || (c >= 127 && c < 160) || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ? 0 : c;
}

size_t markup_entity(const char *p, size_t n, unsigned *c) {
  const size_t most = n < 12 ? n : 12;
  const char *end = most ? (const char *)memchr(p, ';', most) : NULL;
  if (!end || *p != '&' || end - p < 2) return 0;
  *c = p[1] == '#' ? numbered(p + 2, (size_t)(end - p) - 2) : named(p + 1, (size_t)(end - p) - 1);
  return *c ? (size_t)(end - p) + 1 : 0;
}

const char *markup_find(const char *p, const char *end, const char *tag) {
  const size_t n = strlen(tag);
  while (p < end && (p = (const char *)memchr(p, '<', (size_t)(end - p))) != NULL) {
    if ((size_t)(end - p) < n) return NULL;
    if (!strncasecmp(p, tag, n)) return p;
    p++;
  }
  return NULL;
}

void markup_lines(made_text *out, const char *p, const char *end) {
  while (p < end && (p = (const char *)memchr(p, '\n', (size_t)(end - p))) != NULL) {
    made_char(out, '\n', p);
    p++;
  }
}

/* Returns whether a tag begins at the '<' at p: "a < b" is text. */
static int is_tag(const char *p, const char *end) {
  const int next = p + 1 < end ? (unsigned char)p[1] : 0;
  return (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z') || (next && strchr("/!?", next));
}

void markup_strip(made_text *out, const char *p, const char *end) {
  int closed = 1; /* a '>' may follow: where none does, it is looked for once, not behind each '<' */
  while (p < end) {
    const char *from = p, *close = NULL;
    unsigned c = '&';
    size_t n;
    while (p < end && *p != '<' && *p != '&') p++;
    made_add(out, from, (size_t)(p - from), from);
    if (p == end) return;
    if (*p == '&') {
      n = markup_entity(p, (size_t)(end - p), &c);
      made_utf8(out, n ? c : '&', p);
      p += n ? n : 1;
      continue;
    }
    if (closed && is_tag(p, end)) {
      close = (const char *)memchr(p, '>', (size_t)(end - p));
      closed = close != NULL;
    }
    made_char(out, close ? ' ' : '<', p);
    if (close) markup_lines(out, p, close);
    p = close ? close + 1 : p + 1;
  }
}
