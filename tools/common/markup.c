/* markup.c - tags, and the character references of HTML 4.01 and XML: names, decimal and hexadecimal numbers. */
#include "markup.h"

#include "text.h"

#include <strings.h>

typedef struct reference {
  const char *name;
  unsigned c;
} reference;

/* In the order of their bytes. */
static const reference references[] = {{"AElig", 0xc6}, {"Aacute", 0xc1}, {"Acirc", 0xc2}, {"Agrave", 0xc0},
    {"Alpha", 0x391}, {"Aring", 0xc5}, {"Atilde", 0xc3}, {"Auml", 0xc4}, {"Beta", 0x392}, {"Ccedil", 0xc7},
    {"Chi", 0x3a7}, {"Dagger", 0x2021}, {"Delta", 0x394}, {"ETH", 0xd0}, {"Eacute", 0xc9}, {"Ecirc", 0xca},
    {"Egrave", 0xc8}, {"Epsilon", 0x395}, {"Eta", 0x397}, {"Euml", 0xcb}, {"Gamma", 0x393}, {"Iacute", 0xcd},
    {"Icirc", 0xce}, {"Igrave", 0xcc}, {"Iota", 0x399}, {"Iuml", 0xcf}, {"Kappa", 0x39a}, {"Lambda", 0x39b},
    {"Mu", 0x39c}, {"Ntilde", 0xd1}, {"Nu", 0x39d}, {"OElig", 0x152}, {"Oacute", 0xd3}, {"Ocirc", 0xd4},
    {"Ograve", 0xd2}, {"Omega", 0x3a9}, {"Omicron", 0x39f}, {"Oslash", 0xd8}, {"Otilde", 0xd5}, {"Ouml", 0xd6},
    {"Phi", 0x3a6}, {"Pi", 0x3a0}, {"Prime", 0x2033}, {"Psi", 0x3a8}, {"Rho", 0x3a1}, {"Scaron", 0x160},
    {"Sigma", 0x3a3}, {"THORN", 0xde}, {"Tau", 0x3a4}, {"Theta", 0x398}, {"Uacute", 0xda}, {"Ucirc", 0xdb},
    {"Ugrave", 0xd9}, {"Upsilon", 0x3a5}, {"Uuml", 0xdc}, {"Xi", 0x39e}, {"Yacute", 0xdd}, {"Yuml", 0x178},
    {"Zeta", 0x396}, {"aacute", 0xe1}, {"acirc", 0xe2}, {"acute", 0xb4}, {"aelig", 0xe6}, {"agrave", 0xe0},
    {"alefsym", 0x2135}, {"alpha", 0x3b1}, {"and", 0x2227}, {"ang", 0x2220}, {"aring", 0xe5}, {"asymp", 0x2248},
    {"atilde", 0xe3}, {"auml", 0xe4}, {"bdquo", 0x201e}, {"beta", 0x3b2}, {"brvbar", 0xa6}, {"bull", 0x2022},
    {"cap", 0x2229}, {"ccedil", 0xe7}, {"cedil", 0xb8}, {"cent", 0xa2}, {"chi", 0x3c7}, {"circ", 0x2c6},
    {"clubs", 0x2663}, {"cong", 0x2245}, {"copy", 0xa9}, {"crarr", 0x21b5}, {"cup", 0x222a}, {"curren", 0xa4},
    {"dArr", 0x21d3}, {"dagger", 0x2020}, {"darr", 0x2193}, {"deg", 0xb0}, {"delta", 0x3b4}, {"diams", 0x2666},
    {"divide", 0xf7}, {"eacute", 0xe9}, {"ecirc", 0xea}, {"egrave", 0xe8}, {"empty", 0x2205}, {"emsp", 0x2003},
    {"ensp", 0x2002}, {"epsilon", 0x3b5}, {"equiv", 0x2261}, {"eta", 0x3b7}, {"eth", 0xf0}, {"euml", 0xeb},
    {"euro", 0x20ac}, {"exist", 0x2203}, {"fnof", 0x192}, {"forall", 0x2200}, {"frac12", 0xbd}, {"frac14", 0xbc},
    {"frac34", 0xbe}, {"frasl", 0x2044}, {"gamma", 0x3b3}, {"ge", 0x2265}, {"hArr", 0x21d4}, {"harr", 0x2194},
    {"hearts", 0x2665}, {"hellip", 0x2026}, {"iacute", 0xed}, {"icirc", 0xee}, {"iexcl", 0xa1}, {"igrave", 0xec},
    {"image", 0x2111}, {"infin", 0x221e}, {"int", 0x222b}, {"iota", 0x3b9}, {"iquest", 0xbf}, {"isin", 0x2208},
    {"iuml", 0xef}, {"kappa", 0x3ba}, {"lArr", 0x21d0}, {"lambda", 0x3bb}, {"lang", 0x2329}, {"laquo", 0xab},
    {"larr", 0x2190}, {"lceil", 0x2308}, {"ldquo", 0x201c}, {"le", 0x2264}, {"lfloor", 0x230a}, {"lowast", 0x2217},
    {"loz", 0x25ca}, {"lrm", 0x200e}, {"lsaquo", 0x2039}, {"lsquo", 0x2018}, {"macr", 0xaf}, {"mdash", 0x2014},
    {"micro", 0xb5}, {"middot", 0xb7}, {"minus", 0x2212}, {"mu", 0x3bc}, {"nabla", 0x2207}, {"nbsp", 0xa0},
    {"ndash", 0x2013}, {"ne", 0x2260}, {"ni", 0x220b}, {"not", 0xac}, {"notin", 0x2209}, {"nsub", 0x2284},
    {"ntilde", 0xf1}, {"nu", 0x3bd}, {"oacute", 0xf3}, {"ocirc", 0xf4}, {"oelig", 0x153}, {"ograve", 0xf2},
    {"oline", 0x203e}, {"omega", 0x3c9}, {"omicron", 0x3bf}, {"oplus", 0x2295}, {"or", 0x2228}, {"ordf", 0xaa},
    {"ordm", 0xba}, {"oslash", 0xf8}, {"otilde", 0xf5}, {"otimes", 0x2297}, {"ouml", 0xf6}, {"para", 0xb6},
    {"part", 0x2202}, {"permil", 0x2030}, {"perp", 0x22a5}, {"phi", 0x3c6}, {"pi", 0x3c0}, {"piv", 0x3d6},
    {"plusmn", 0xb1}, {"pound", 0xa3}, {"prime", 0x2032}, {"prod", 0x220f}, {"prop", 0x221d}, {"psi", 0x3c8},
    {"rArr", 0x21d2}, {"radic", 0x221a}, {"rang", 0x232a}, {"raquo", 0xbb}, {"rarr", 0x2192}, {"rceil", 0x2309},
    {"rdquo", 0x201d}, {"real", 0x211c}, {"reg", 0xae}, {"rfloor", 0x230b}, {"rho", 0x3c1}, {"rlm", 0x200f},
    {"rsaquo", 0x203a}, {"rsquo", 0x2019}, {"sbquo", 0x201a}, {"scaron", 0x161}, {"sdot", 0x22c5}, {"sect", 0xa7},
    {"shy", 0xad}, {"sigma", 0x3c3}, {"sigmaf", 0x3c2}, {"sim", 0x223c}, {"spades", 0x2660}, {"sub", 0x2282},
    {"sube", 0x2286}, {"sum", 0x2211}, {"sup", 0x2283}, {"sup1", 0xb9}, {"sup2", 0xb2}, {"sup3", 0xb3},
    {"supe", 0x2287}, {"szlig", 0xdf}, {"tau", 0x3c4}, {"there4", 0x2234}, {"theta", 0x3b8}, {"thetasym", 0x3d1},
    {"thinsp", 0x2009}, {"thorn", 0xfe}, {"tilde", 0x2dc}, {"times", 0xd7}, {"trade", 0x2122}, {"uArr", 0x21d1},
    {"uacute", 0xfa}, {"uarr", 0x2191}, {"ucirc", 0xfb}, {"ugrave", 0xf9}, {"uml", 0xa8}, {"upsih", 0x3d2},
    {"upsilon", 0x3c5}, {"uuml", 0xfc}, {"weierp", 0x2118}, {"xi", 0x3be}, {"yacute", 0xfd}, {"yen", 0xa5},
    {"yuml", 0xff}, {"zeta", 0x3b6}, {"zwj", 0x200d}, {"zwnj", 0x200c}};

/* Those that are known in either case, as old collections write them. */
static const reference either_case[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''},
    {"nbsp", ' '}};

/* Returns the character that a name of n bytes stands for, or 0. */
static unsigned named(const char *text, size_t n) {
  size_t low = 0, high = sizeof references / sizeof *references;
  for (size_t i = 0; i < sizeof either_case / sizeof *either_case; i++)
    if (strlen(either_case[i].name) == n && !strncasecmp(either_case[i].name, text, n)) return either_case[i].c;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const int order = strncmp(references[middle].name, text, n);
    if (!order && !references[middle].name[n]) return references[middle].c;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return 0;
}

/* Returns the character of a number of n bytes, such as "233" or "xE9"; 0 for none, and for what is no character. */
static unsigned numbered(const char *text, size_t n) {
  const int hex = n && (*text == 'x' || *text == 'X');
  unsigned c = 0;
  if (n < 1u + (unsigned)hex || n > 8) return 0;
  for (size_t i = (size_t)hex; i < n; i++) {
    const int digit = text_hex((unsigned char)text[i]);
    if (digit < 0 || (!hex && digit > 9)) return 0;
    c = c * (hex ? 16 : 10) + (unsigned)digit;
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
