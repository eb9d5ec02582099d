/* convert_roff.c - the text of manual pages: roff with the macros man(7) or mdoc(7).
 *
 * It is what mandoc(1) prints, without its layout: words, not columns. mandoc is no library, and to run it for each
 * page of a system takes minutes where this takes seconds. A page's title is the text of its section NAME.
 */
#include "convert.h"

#include "text.h"

#include <string.h>

#define ROFF_DEPTH_MOST 32

typedef struct roff {
  const char *p, *end; /* what is left of the page */
  byte_buf *out;
  char page[64]; /* the name of the page, for .Nm */
  int began; /* .TH or .Dd was read: what stands before it defines things */
  int skips; /* braces of a part that is left out */
  int taken; /* the last .ie was true */
  int depth; /* of conditions in one line */
  int in_name; /* the section NAME is being read */
  size_t name_begin, name_end; /* where its text stands */
} roff;

/* ---- characters -------------------------------------------------------------------------------- */

typedef struct glyph {
  const char *name;
  unsigned c;
} glyph;

static const glyph roff_glyphs[] = {{"aq", '\''}, {"dq", '"'}, {"lq", 0x201c}, {"rq", 0x201d}, {"oq", 0x2018},
    {"cq", 0x2019}, {"Bq", 0x201e}, {"bq", 0x201a}, {"em", 0x2014}, {"en", 0x2013}, {"hy", '-'}, {"bu", 0x2022},
    {"co", 0xa9}, {"rg", 0xae}, {"tm", 0x2122}, {"ha", '^'}, {"ti", '~'}, {"ga", '`'}, {"aa", 0xb4}, {"rs", '\\'},
    {"sl", '/'}, {"lB", '['}, {"rB", ']'}, {"lC", '{'}, {"rC", '}'}, {"la", 0x27e8}, {"ra", 0x27e9}, {"<=", 0x2264},
    {">=", 0x2265}, {"!=", 0x2260}, {"->", 0x2192}, {"<-", 0x2190}, {"mu", 0xd7}, {"+-", 0xb1}, {"de", 0xb0},
    {"sc", 0xa7}, {"ss", 0xdf}, {"ae", 0xe6}, {"AE", 0xc6}, {"oe", 0x153}, {"OE", 0x152}, {"/o", 0xf8}, {"/O", 0xd8},
    {"oa", 0xe5}, {"oA", 0xc5}, {"-D", 0xd0}, {"Sd", 0xf0}, {"Tp", 0xfe}, {"TP", 0xde}, {"mc", 0xb5}, {"ct", 0xa2},
    {"Po", 0xa3}, {"Eu", 0x20ac}, {"Ye", 0xa5}, {"12", 0xbd}, {"14", 0xbc}, {"34", 0xbe}, {"Fo", 0xab}, {"Fc", 0xbb},
    {"mi", '-'}, {"pl", '+'}, {"eq", '='}, {"**", '*'}, {"or", '|'}, {"ba", '|'}, {"at", '@'}, {"sh", '#'}, {"Do", '$'},
    {"nb", ' '}, {"ff", 0xfb00}, {"fi", 0xfb01}, {"fl", 0xfb02}};

/* Marks above and below letters: \('e is an e with an acute. */
static const glyph roff_marks[] = {{"'", 0x301}, {"`", 0x300}, {"^", 0x302}, {":", 0x308}, {"~", 0x303}, {",", 0x327},
    {"v", 0x30c}};

/* Strings that pages take for granted: those of man(7), mdoc(7) and Pod::Man. */
static const struct {
  const char *name, *text;
} roff_strings[] = {{"Aq", "'"}, {"lq", "\""}, {"rq", "\""}, {"L\"", "\""}, {"R\"", "\""}, {"C`", "\""}, {"C'", "\""},
    {"--", "-"}, {"C+", "C++"}, {"PI", "pi"}, {"R", "\xc2\xae"}, {"Tm", "\xe2\x84\xa2"}, {"Lq", "\""}, {"Rq", "\""},
    {"q", "\""}, {"Le", "<="}, {"Ge", ">="}, {"Lt", "<"}, {"Gt", ">"}, {"Am", "&"}, {"Ba", "|"}, {"Ne", "!="}};

static void roff_put_utf8(byte_buf *out, unsigned c) {
  char bytes[4];
  bytes_add(out, bytes, text_put_utf8(c, bytes));
}

static int roff_is_named(const char *name, const char *s, size_t n) { return strlen(name) == n && !memcmp(name, s, n); }

/* Appends the character that \(xx, \[xx] or \C'xx' names; one that is not known is left out. */
static void roff_put_glyph(byte_buf *out, const char *s, size_t n) {
  size_t i;
  unsigned c = 0;
  for (i = 0; i < sizeof roff_glyphs / sizeof *roff_glyphs; i++)
    if (roff_is_named(roff_glyphs[i].name, s, n)) {
      roff_put_utf8(out, roff_glyphs[i].c);
      return;
    }
  for (i = 0; n == 2 && i < sizeof roff_marks / sizeof *roff_marks; i++)
    if (roff_marks[i].name[0] == s[0]) {
      bytes_char(out, s[1]);
      roff_put_utf8(out, roff_marks[i].c);
      return;
    }
  for (i = 1; n > 4 && n < 8 && s[0] == 'u' && i < n; i++) { /* u00E9 */
    const char *digits = "0123456789ABCDEF", *at = strchr(digits, s[i]);
    if (!s[i] || !at) return;
    c = c * 16 + (unsigned)(at - digits);
  }
  if (c >= 32 && c < 0x110000 && (c < 0xd800 || c >= 0xe000)) roff_put_utf8(out, c);
}

static void roff_put_string(byte_buf *out, const char *s, size_t n) {
  size_t i;
  for (i = 0; i < sizeof roff_strings / sizeof *roff_strings; i++)
    if (roff_is_named(roff_strings[i].name, s, n)) bytes_add(out, roff_strings[i].text, strlen(roff_strings[i].text));
}

/* ---- escapes ----------------------------------------------------------------------------------- */

/* Reads a name behind an escape: x, (xx or [name]. Returns what is behind it. */
static const char *roff_read_name(const char *p, const char *end, const char **name, size_t *n) {
  *name = p;
  *n = p < end;
  if (p == end) return p;
  if (*p == '(') {
    *name = p + 1;
    *n = end - p > 2 ? 2 : (size_t)(end - p) - 1;
    return *name + *n;
  }
  if (*p != '[') return p + 1;
  *name = ++p;
  while (p < end && *p != ']') p++;
  *n = (size_t)(p - *name);
  return p < end ? p + 1 : p;
}

/* Passes over what stands between two equal signs, as in \h'1m'. */
static const char *roff_skip_quoted(const char *p, const char *end) {
  const char sign = p < end ? *p++ : 0;
  while (p < end && *p != sign) p++;
  return p < end ? p + 1 : p;
}

/* Passes over a size: \s-2, \s(12, \s[12], \s'12'. */
static const char *roff_skip_size(const char *p, const char *end) {
  const char *name;
  size_t n;
  if (p < end && (*p == '+' || *p == '-')) p++;
  if (p < end && (*p == '(' || *p == '[')) return roff_read_name(p, end, &name, &n);
  if (p < end && *p == '\'') return roff_skip_quoted(p, end);
  if (p + 1 < end && *p >= '1' && *p <= '3' && p[1] >= '0' && p[1] <= '9') return p + 2;
  return p < end ? p + 1 : p;
}

/* Appends what the escape stands for that begins behind the backslash before p. Returns what is behind it. */
static const char *roff_put_escape(byte_buf *out, const char *p, const char *end) {
  const char *name;
  size_t n;
  if (p == end) return p;
  switch (*p) {
  case '-':
  case '.':
  case '\'':
  case '`':
  case '_': bytes_char(out, *p); return p + 1;
  case 'e':
  case '\\': bytes_char(out, '\\'); return p + 1;
  case ' ':
  case '~':
  case '0': bytes_char(out, ' '); return p + 1;
  case 't': bytes_char(out, '\t'); return p + 1;
  case '"':
  case '#': return end;
  case '(':
  case '[':
    p = roff_read_name(p, end, &name, &n);
    roff_put_glyph(out, name, n);
    return p;
  case '*':
    p = roff_read_name(p + 1, end, &name, &n);
    roff_put_string(out, name, n);
    return p;
  case 'f':
  case 'F':
  case 'n':
  case 'm':
  case 'M':
  case 'k':
  case 'g':
  case 'V':
  case 'Y': return roff_read_name(p + 1 < end && (p[1] == '+' || p[1] == '-') ? p + 2 : p + 1, end, &name, &n);
  case 's': return roff_skip_size(p + 1, end);
  case 'h':
  case 'v':
  case 'w':
  case 'l':
  case 'L':
  case 'D':
  case 'o':
  case 'x':
  case 'b':
  case 'A':
  case 'B':
  case 'H':
  case 'N':
  case 'R':
  case 'S':
  case 'X':
  case 'Z': return roff_skip_quoted(p + 1, end);
  default: return p + 1; /* \& \| \^ \% \: \/ \, \c \{ \} and others leave no mark */
  }
}

/* Appends text[p, end) of one line. */
static void roff_put_text(byte_buf *out, const char *p, const char *end) {
  while (p < end) {
    const char *from = p;
    while (p < end && *p != '\\') p++;
    bytes_add(out, from, (size_t)(p - from));
    if (p < end) p = roff_put_escape(out, p + 1, end);
  }
}

/* ---- arguments --------------------------------------------------------------------------------- */

/* Reads the next argument of a macro, in quotes or up to a blank. Returns where it begins, and its bytes in *n; NULL:
 * there is none. */
static const char *roff_next_word(const char **at, const char *end, size_t *n) {
  const char *p = *at, *from;
  while (p < end && (*p == ' ' || *p == '\t')) p++;
  *at = p;
  if (p == end || (p + 1 < end && p[0] == '\\' && p[1] == '"')) return NULL;
  from = p;
  if (*p == '"') {
    from = ++p;
    while (p < end && (*p != '"' || (p + 1 < end && p[1] == '"'))) p += *p == '"' ? 2 : 1;
    if (p > end) p = end;
    *n = (size_t)(p - from);
    *at = p < end ? p + 1 : p;
    return from;
  }
  while (p < end && *p != ' ' && *p != '\t') p += *p == '\\' && p + 1 < end ? 2 : 1;
  *n = (size_t)(p - from);
  *at = p;
  return from;
}

/* Appends a word without the quotes that stand twice in it. */
static void roff_put_word(byte_buf *out, const char *s, size_t n) {
  const char *end = s + n, *p = s;
  while (p < end) {
    const char *twice = (const char *)memchr(p, '"', (size_t)(end - p));
    const char *stop = twice && twice + 1 < end && twice[1] == '"' ? twice + 1 : end;
    roff_put_text(out, p, stop);
    p = stop == end ? end : stop + 1;
  }
}

/* Appends the arguments, with `between` between them if it is not 0. */
static void roff_put_words(byte_buf *out, const char *p, const char *end, char between) {
  const char *word;
  size_t n, i = 0;
  while ((word = roff_next_word(&p, end, &n)) != NULL) {
    if (i++ && between) bytes_char(out, between);
    roff_put_word(out, word, n);
  }
}

/* ---- mdoc -------------------------------------------------------------------------------------- */

/* Returns whether a word of a line of mdoc(7) is the name of a macro. */
static int roff_is_mdoc(const char *s, size_t n) {
  static const char names[] =
      "Ac Ad An Ao Ap Aq Ar At Bc Bf Bl Bo Bq Brc Bro Brq Bsx Bx Cd Cm Dc Dd Dl Do Dq Dt Dv Dx Ec Ed Ef El Em En Eo Er "
      "Es Ev Fa Fc Fd Fl Fn Fo Fr Ft Fx Hf Ic In It Lb Li Lk Lp Ms Mt Nd Nm No Ns Nx Oc Oo Op Os Ot Ox Pa Pc Pf Po Pp "
      "Pq Qc Ql Qo Qq Re Rs Rv Sc Sh Sm So Sq Ss St Sx Sy Ta Tn Ud Ux Va Vt Xc Xo Xr ";
  const char *at = names;
  if (n < 2 || n > 3) return 0;
  for (; *at; at = strchr(at, ' ') + 1)
    if (!memcmp(at, s, n) && at[n] == ' ') return 1;
  return 0;
}

/* Macros of mdoc(7) that stand for names of systems. */
static const struct {
  const char *name, *text;
} roff_systems[] = {{"Ux", "UNIX"}, {"At", "AT&T UNIX"}, {"Bx", "BSD"}, {"Bsx", "BSD/OS"}, {"Fx", "FreeBSD"},
    {"Nx", "NetBSD"}, {"Ox", "OpenBSD"}, {"Dx", "DragonFly"}};

static const char *roff_system_of(const char *name, size_t n) {
  size_t i;
  for (i = 0; i < sizeof roff_systems / sizeof *roff_systems; i++)
    if (roff_is_named(roff_systems[i].name, name, n)) return roff_systems[i].text;
  return NULL;
}

/* Appends a blank, unless there is one. */
static void roff_put_blank(byte_buf *out) {
  if (out->n && !out->failed && !strchr(" \n", out->p[out->n - 1])) bytes_char(out, ' ');
}

/* Appends a line of mdoc(7): the words of all its macros. */
static void roff_put_mdoc(roff *r, const char *p, const char *end) {
  const char *word;
  size_t n, words = 0;
  int joins = 1, flag = 0, refers = 0;
  while ((word = roff_next_word(&p, end, &n)) != NULL) {
    if (roff_is_mdoc(word, n)) {
      if (roff_is_named("Nm", word, n) && !words && r->page[0]) {
        const char *rest = p;
        size_t m;
        const char *next = roff_next_word(&rest, end, &m);
        if (!next || strchr(".,:;", *next)) bytes_add(r->out, r->page, strlen(r->page));
      }
      if (roff_is_named("Sm", word, n)) return;
      if (roff_system_of(word, n)) {
        if (!joins) roff_put_blank(r->out);
        bytes_add(r->out, roff_system_of(word, n), strlen(roff_system_of(word, n)));
        joins = 0;
      }
      if (roff_is_named("Ns", word, n)) joins = 1;
      flag = roff_is_named("Fl", word, n);
      refers = roff_is_named("Xr", word, n) ? 2 : 0;
      continue;
    }
    if (n == 1 && strchr(".,:;)]", *word)) joins = 1;
    if (!joins) roff_put_blank(r->out);
    if (refers == 1) bytes_char(r->out, '(');
    if (flag) bytes_char(r->out, '-');
    roff_put_word(r->out, word, n);
    if (refers == 1) bytes_char(r->out, ')');
    joins = refers == 2;
    if (refers) refers--;
    words++;
  }
}

/* ---- lines ------------------------------------------------------------------------------------- */

static int roff_is_one_of(const char *names, const char *s, size_t n) {
  const char *at = names;
  for (; n && *at; at = strchr(at, ' ') + 1)
    if (!strncmp(at, s, n) && at[n] == ' ') return 1;
  return 0;
}

/* Takes the next line. 0 at the end. */
static int roff_next_line(roff *r, const char **line, const char **end) {
  const char *nl;
  if (r->p == r->end) return 0;
  nl = (const char *)memchr(r->p, '\n', (size_t)(r->end - r->p));
  *line = r->p;
  *end = nl ? nl : r->end;
  r->p = nl ? nl + 1 : r->end;
  if (*end > *line && (*end)[-1] == '\r') --*end;
  return 1;
}

/* Passes over the lines up to one that is only "..", or `.` and the name that ends them. */
static void roff_skip_definition(roff *r, const char *name, size_t n) {
  const char *line, *end;
  while (roff_next_line(r, &line, &end)) {
    const char *at = line + 1;
    if (line == end || *line != '.') continue;
    while (at < end && *at == ' ') at++;
    if ((size_t)(end - at) >= n && !memcmp(at, name, n) && (at + n == end || strchr(" \t", at[n]))) return;
  }
}

/* Passes over the head of a table: how its columns are laid out, up to a line that ends with a dot. */
static void roff_skip_layout(roff *r) {
  const char *line, *end;
  const char *from = r->p;
  int lines = 0;
  while (lines++ < 64 && roff_next_line(r, &line, &end)) {
    while (end > line && (end[-1] == ' ' || end[-1] == '\t')) end--;
    if (end > line && end[-1] == '.' && *line != '.') return;
  }
  r->p = from;
}

/* Counts the braces of a line that belongs to a part which is left out. */
static void roff_count_braces(roff *r, const char *p, const char *end) {
  for (; p + 1 < end; p++) {
    if (*p != '\\') continue;
    p++;
    if (*p == '{') r->skips++;
    else if (*p == '}' && r->skips) r->skips--;
    else if (*p == '"') return;
  }
}

static void roff_take_line(roff *r, const char *line, const char *end);

/* Takes .if, .ie or .el: this is no typesetter, and of what else is asked the answer is yes. */
static void roff_take_condition(roff *r, int is_else, int has_else, const char *p, const char *end) {
  int holds = is_else ? !r->taken : 1;
  size_t n;
  if (!is_else) {
    const int inverse = p < end && *p == '!';
    const char *what = roff_next_word(&p, end, &n);
    if (what && n == (size_t)(1 + inverse) && what[inverse] == 't') holds = inverse;
    else if (what && n == (size_t)(1 + inverse) && what[inverse] == 'n') holds = !inverse;
  }
  if (has_else) r->taken = holds;
  while (p < end && (*p == ' ' || *p == '\t')) p++;
  if (!holds) {
    roff_count_braces(r, p, end);
    return;
  }
  while (p + 1 < end && p[0] == '\\' && p[1] == '{') p += 2;
  while (p < end && (*p == ' ' || *p == '\t')) p++;
  if (p == end || r->depth == ROFF_DEPTH_MOST) return;
  r->depth++;
  roff_take_line(r, p, end);
  r->depth--;
}

/* Begins a section: the text of NAME is the page's title. */
static void roff_take_section(roff *r, const char *p, const char *end) {
  size_t n;
  const char *at = p, *word = roff_next_word(&at, end, &n);
  if (r->in_name) r->name_end = r->out->n;
  bytes_char(r->out, '\n');
  roff_put_words(r->out, p, end, ' ');
  bytes_char(r->out, '\n');
  r->in_name = word && n == 4 && (!memcmp(word, "NAME", 4) || !memcmp(word, "Name", 4)) && !r->name_begin;
  if (r->in_name) r->name_begin = r->name_end = r->out->n;
}

/* Takes a macro or request that is for people, or for the layout. 0: it is another. */
static int roff_take_known(roff *r, const char *name, size_t n, const char *p, const char *end) {
  if (roff_is_one_of("SH Sh SS Ss ", name, n)) {
    roff_take_section(r, p, end);
  } else if (roff_is_one_of("BI BR IB IR RB RI ", name, n)) {
    roff_put_words(r->out, p, end, 0);
  } else if (roff_is_one_of("TP TQ PP LP P HP RS RE sp br Pp Bl El Bd Ed nf fi EX EE YS Sp Vb Ve in ti Bk Ek Lp ", name,
                 n)) {
    return bytes_char(r->out, '\n'), 1;
  } else if (roff_is_one_of("IP ", name, n)) {
    size_t len;
    const char *word = roff_next_word(&p, end, &len);
    bytes_char(r->out, '\n');
    if (word) roff_put_word(r->out, word, len);
  } else if (roff_is_one_of("TS ", name, n)) {
    roff_skip_layout(r);
  } else if (roff_is_one_of("de de1 dei am ig ", name, n)) {
    size_t len = 0;
    const char *word = roff_next_word(&p, end, &len), *stop = *name == 'i' ? word : roff_next_word(&p, end, &len);
    roff_skip_definition(r, stop ? stop : ".", stop ? len : 1);
    return 1;
  } else if (roff_is_one_of(
                 "TH Dd Dt Os IX PD DT ft ne ds nr rr rm rn tr ta ad na hy nh hw ll pl ps vs ss cs so mso tm als in "
                 "ev fp lf pc pn po rt wh ch cf nx eo ec cc c2 bp mk TE EQ EN UC AT AM UE ME \\\" \\} ",
                 name, n)) {
    return 1;
  } else {
    return 0;
  }
  return bytes_char(r->out, '\n'), 1;
}

/* Notes that the page begins, and its name of mdoc(7)'s .Nm. */
static void roff_note_page(roff *r, const char *name, size_t n, const char *p, const char *end) {
  size_t len;
  const char *word;
  if (roff_is_one_of("TH Dd Dt ", name, n)) r->began = 1;
  if (!roff_is_one_of("Nm ", name, n) || r->page[0]) return;
  word = roff_next_word(&p, end, &len);
  if (!word || len >= sizeof r->page) return;
  memcpy(r->page, word, len);
  r->page[len] = 0;
}

/* Takes a line that begins with a control character. */
static void roff_take_control(roff *r, const char *line, const char *end) {
  const char *name = line + 1, *p;
  size_t n;
  while (name < end && (*name == ' ' || *name == '\t')) name++;
  p = name;
  while (p < end && *p != ' ' && *p != '\t') p++;
  n = (size_t)(p - name);
  roff_note_page(r, name, n, p, end);
  if (n >= 2 && name[0] == '\\' && name[1] == '"') return;
  while (p < end && (*p == ' ' || *p == '\t')) p++;
  if (roff_is_one_of("if ie ", name, n)) {
    roff_take_condition(r, 0, name[1] == 'e', p, end);
  } else if (n >= 2 && name[0] == 'e' && name[1] == 'l' && (n == 2 || name[2] == '\\')) {
    roff_take_condition(r, 1, 0, n == 2 ? p : name + 2, end);
  } else if (roff_take_known(r, name, n, p, end)) {
    return;
  } else if (roff_is_mdoc(name, n)) {
    roff_put_mdoc(r, name, end);
    bytes_char(r->out, '\n');
  } else { /* B, I, SM, SB, and what the page defines itself */
    roff_put_words(r->out, p, end, ' ');
    bytes_char(r->out, '\n');
  }
}

static void roff_take_line(roff *r, const char *line, const char *end) {
  if (line < end && (*line == '.' || *line == '\'')) {
    roff_take_control(r, line, end);
  } else if (r->began) {
    roff_put_text(r->out, line, end);
    bytes_char(r->out, '\n');
  }
}

/* Puts the page's title before its text. */
static void roff_put_title(roff *r) {
  byte_buf *out = r->out, whole;
  size_t i;
  if (!r->name_begin || r->name_end <= r->name_begin || out->failed) return;
  while (r->name_begin < r->name_end && out->p[r->name_begin] == '\n') r->name_begin++;
  while (r->name_end > r->name_begin && out->p[r->name_end - 1] == '\n') r->name_end--;
  memset(&whole, 0, sizeof whole);
  for (i = r->name_begin; i < r->name_end; i++) bytes_char(&whole, out->p[i] == '\n' ? ' ' : out->p[i]);
  bytes_char(&whole, '\n');
  bytes_add(&whole, out->p, out->n);
  bytes_free(out);
  *out = whole;
}

const char *convert_roff(const char *text, size_t n, byte_buf *out) {
  const char *line, *end;
  roff r;
  memset(&r, 0, sizeof r);
  r.p = text;
  r.end = text + n;
  r.out = out;
  while (roff_next_line(&r, &line, &end)) {
    if (r.skips) roff_count_braces(&r, line, end);
    else roff_take_line(&r, line, end);
  }
  if (r.in_name) r.name_end = out->n;
  roff_put_title(&r);
  return NULL;
}

int convert_is_roff(const char *text, size_t n) {
  const char *end = text + n, *p = text;
  while (p < end && *p == '\n') p++;
  text = p;
  while (p < end) {
    const char *nl = (const char *)memchr(p, '\n', (size_t)(end - p));
    if (end - p > 4 && (!memcmp(p, ".TH ", 4) || !memcmp(p, ".Dd ", 4) || !memcmp(p, ".Dt ", 4))) return 1;
    if (p == text && *p != '.' && *p != '\'') return 0;
    if (!nl) return 0;
    p = nl + 1;
  }
  return 0;
}
