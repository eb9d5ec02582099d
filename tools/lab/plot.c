/* plot.c - a chart in memory as an SVG document: lines, points or bars, in colours for light and dark pages.
 *
 * The document stands alone: no script, no font, no picture from elsewhere. At most PLOT_SHOWN series are in colour;
 * the others are thin and grey. Lines are labelled at their right ends. Read from the bottom: plot_svg.
 */
#include "plot.h"

#include "../cli/cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 780.0 /* of the document, in pixels */
#define MARGIN 18.0 /* on its left and right */
#define HEIGHT 330.0 /* of the area of lines and points, at least */
#define MOST_TICKS 24

/* Sizes of text, in pixels. */
#define TITLE 15.0
#define TEXT 11.0
#define SMALL 8.0

/* What a series looks like: a colour from 0 to PLOT_SHOWN - 1, or one of these. */
enum { REST = PLOT_SHOWN, PAPER };

typedef struct axis {
  double lo, hi; /* values at its ends */
  double from, to; /* their pixels */
  int log; /* not 0: logarithmic */
  double tick[MOST_TICKS];
  size_t nticks;
} axis;

typedef struct canvas {
  const plot_chart *c;
  cli_buf *out;
  axis x, y; /* x runs to the right, y up, or down over the bars' places */
  double left, right, top, bottom; /* of the area of the data */
  double height; /* of the document */
  int *look; /* of each series: a colour, REST or PAPER */
} canvas;

/* ---- text ---------------------------------------------------------------------------------------------- */

static void put(cli_buf *out, const char *fmt, ...) CLI_PRINTF(2, 3);

static void put(cli_buf *out, const char *fmt, ...) {
  char text[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  cli_buf_text(out, text);
}

/* Returns the length in bytes of the UTF-8 sequence at p, 0 if XML cannot hold what stands there. */
static size_t utf8_length(const unsigned char *p) {
  size_t n = p[0] < 0x80            ? 1
      : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
      : (p[0] & 0xf0) == 0xe0       ? 3
      : (p[0] & 0xf8) == 0xf0       ? 4
                                    : 0;
  for (size_t i = 1; i < n; i++)
    if ((p[i] & 0xc0) != 0x80) return 0;
  if (n == 1) return p[0] >= 32 && p[0] != 127;
  if (n == 3 && ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0))) return 0;
  if (n == 3 && p[0] == 0xef && p[1] == 0xbf && p[2] >= 0xbe) return 0;
  if (n == 4 && ((p[0] == 0xf0 && p[1] < 0x90) || p[0] > 0xf4 || (p[0] == 0xf4 && p[1] >= 0x90))) return 0;
  return n;
}

void plot_escaped(cli_buf *out, const char *text, size_t n) {
  const unsigned char *p = (const unsigned char *)text, *end = p + n;
  while (p < end) {
    size_t m = utf8_length(p);
    if (*p == '&') cli_buf_text(out, "&amp;");
    else if (*p == '<') cli_buf_text(out, "&lt;");
    else if (*p == '>') cli_buf_text(out, "&gt;");
    else if (*p == '"') cli_buf_text(out, "&quot;");
    else if (*p < 32 || *p == 127) cli_buf_char(out, ' ');
    else if (!m) cli_buf_text(out, "\xef\xbf\xbd");
    else cli_buf_add(out, p, m);
    p += m ? m : 1;
  }
}

/* Returns the width of text[0..n) in thousandths of its size: the advances of Helvetica for ASCII. */
static double text_units(const char *text, size_t n) {
  static const unsigned short advance[95] = {278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278,
      278, 556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722,
      667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278,
      278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333,
      500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584};
  double units = 0;
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c >= 32 && c < 127) units += advance[c - 32];
    else if ((c & 0xc0) != 0x80) units += 700;
  }
  return units;
}

/* Thousandths of Helvetica, with room for fonts that are wider, as DejaVu Sans is. */
#define UNIT 1.16e-3

/* Returns the width in pixels. */
static double text_width(const char *text, double size) { return text_units(text, strlen(text)) * size * UNIT; }

static void put_text_n(cli_buf *out, double x, double y, const char *class_, const char *text, size_t n) {
  put(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class_);
  plot_escaped(out, text, n);
  cli_buf_text(out, "</text>\n");
}

static void put_text(cli_buf *out, double x, double y, const char *class_, const char *text) {
  put_text_n(out, x, y, class_, text, strlen(text));
}

/* Returns how many bytes of the text fit in the width: up to a blank, or if there is none, whole characters. */
static size_t line_length(const char *text, double size, double width) {
  size_t fit = 0, blank = 0;
  while (text[fit]) {
    size_t next = fit + 1;
    while (((unsigned char)text[next] & 0xc0) == 0x80) next++;
    if (fit && text_units(text, next) * size * UNIT > width) return blank ? blank : fit;
    if (text[fit] == ' ' && fit) blank = fit;
    fit = next;
  }
  return fit;
}

/* Writes the text in lines below each other, the first one on the base line y. Returns their number. With out NULL it
 * only counts. */
static unsigned put_lines(cli_buf *out, double y, const char *class_, const char *text, double size) {
  unsigned lines = 0;
  while (*text) {
    size_t n = line_length(text, size, WIDTH - 2 * MARGIN);
    if (out) put_text_n(out, MARGIN, y + lines * size * 1.3, class_, text, n);
    lines++;
    text += n;
    while (*text == ' ') text++;
  }
  return lines;
}

/* Writes a number with at most three digits, and with the suffix k, M, G or T. */
static void format_number(char *text, size_t cap, double v) {
  static const struct {
    double of;
    const char *suffix;
  } scale[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {0, ""}};
  char rounded[32];
  size_t i = 0;
  snprintf(rounded, sizeof rounded, "%.2e", v);
  v = strtod(rounded, NULL);
  while (fabs(v) < scale[i].of) i++;
  snprintf(text, cap, "%.3g%s", scale[i].of > 0 ? v / scale[i].of : v, scale[i].suffix);
}

/* Writes the number at the end of a bar, with all three digits. */
static void format_value(char *text, size_t cap, double v) {
  double a = fabs(v);
  if (a >= 0.995 && a < 999.5) snprintf(text, cap, "%.*f", a < 9.995 ? 2 : a < 99.95, v);
  else format_number(text, cap, v);
}

/* ---- axes ---------------------------------------------------------------------------------------------- */

static double axis_at(const axis *a, double v) {
  double part = a->log ? log(v / a->lo) / log(a->hi / a->lo) : (v - a->lo) / (a->hi - a->lo);
  return a->from + part * (a->to - a->from);
}

/* Rounds v to 1, 2 or 5 times a power of ten: down, or up. */
static double round_125(double v, int up) {
  static const double step[] = {1, 2, 5, 10};
  double power = pow(10, floor(log10(v) + 1e-9));
  int i = 0;
  if (up) {
    while (step[i] * power < v * (1 - 1e-9)) i++;
  } else {
    while (i < 2 && step[i + 1] * power <= v * (1 + 1e-9)) i++;
  }
  return step[i] * power;
}

static void add_tick(axis *a, double v) {
  double room = a->log ? 0 : (a->hi - a->lo) * 1e-9;
  if (a->nticks < MOST_TICKS && v >= a->lo * (a->log ? 1 - 1e-9 : 1) - room && v <= a->hi * (1 + 1e-9) + room)
    a->tick[a->nticks++] = v;
}

static void linear_ticks(axis *a, unsigned wanted) {
  double step = round_125((a->hi - a->lo) / wanted, 1), first = ceil(a->lo / step - 1e-9);
  for (unsigned i = 0; i <= 2 * wanted; i++) {
    double v = (first + i) * step;
    add_tick(a, fabs(v) < step * 1e-6 ? 0 : v);
  }
}

/* Puts ticks at powers of ten: at every second or third one if they are many, at 1, 2 and 5 times them if few. */
static void log_ticks(axis *a, unsigned wanted) {
  int first = (int)floor(log10(a->lo) + 1e-9), last = (int)ceil(log10(a->hi) - 1e-9);
  double decades = log10(a->hi / a->lo);
  int each = (int)(decades / (wanted + 2)) + 1;
  for (int e = first; e <= last; e++) {
    if (decades > 2.3 && (e - first) % each) continue;
    add_tick(a, pow(10, e));
    if (decades > 2.3) continue;
    add_tick(a, 2 * pow(10, e));
    add_tick(a, 5 * pow(10, e));
  }
}

static void make_ticks(axis *a, unsigned wanted) {
  a->nticks = 0;
  if (a->log) log_ticks(a, wanted);
  else linear_ticks(a, wanted);
}

/* Makes the axis of the measured values end at round numbers next to the data, with zero on it unless it is
 * logarithmic. Bars need some length, so their logarithmic axis begins below the shortest one. */
static void round_axis(axis *a, int bars) {
  if (a->log) {
    a->lo = round_125(bars ? a->lo / 1.3 : a->lo, 0);
    a->hi = round_125(a->hi, 1);
    if (a->lo >= a->hi) a->hi = a->lo * 10;
    return;
  }
  if (a->lo > 0) a->lo = 0;
  if (a->hi < 0) a->hi = 0;
  if (a->lo >= a->hi) a->hi = a->lo + 1;
  double step = round_125((a->hi - a->lo) / 10, 1);
  a->lo = floor(a->lo / step + 1e-9) * step;
  a->hi = ceil(a->hi / step - 1e-9) * step;
}

static void widen(axis *a, double lo, double hi, int *first) {
  if (*first || lo < a->lo) a->lo = lo;
  if (*first || hi > a->hi) a->hi = hi;
  *first = 0;
}

/* Finds the ranges of the numbers on both axes. */
static void find_ranges(canvas *v) {
  const plot_chart *c = v->c;
  int first_x = 1, first_y = 1, bars = c->figure.shape == LAB_BARS;
  v->x.log = (c->figure.axes & LAB_LOG_X) && !bars;
  v->y.log = (c->figure.axes & LAB_LOG_Y) != 0;
  for (size_t i = 0; i < c->nseries; i++)
    for (size_t j = 0; j < c->series[i].n; j++) {
      const plot_point *p = &c->series[i].point[j];
      widen(&v->x, p->x, p->x, &first_x);
      if (v->look[i] == REST) widen(&v->y, p->y, p->y, &first_y);
      else widen(&v->y, p->lo, p->hi, &first_y);
    }
  if (v->x.lo >= v->x.hi) { /* one place */
    v->x.hi = v->x.log ? v->x.lo * 2 : v->x.lo + 1;
    v->x.lo = v->x.log ? v->x.lo / 2 : v->x.lo - 1;
  }
  round_axis(&v->y, bars);
}

/* ---- which series are in colour ------------------------------------------------------------------------ */

static int is_paper(const char *name) { return !strncmp(name, "paper", 5) && (!name[5] || name[5] == '/'); }

/* Returns 1 if the name equals pattern[0..n), or, if that ends in `*`, begins with it. */
static int matches(const char *name, const char *pattern, size_t n) {
  if (n && pattern[n - 1] == '*') return !strncmp(name, pattern, n - 1);
  return strlen(name) == n && !strncmp(name, pattern, n);
}

#define GREY_LABELS 12u
#define LABEL_ROOM 256u
#define LABEL_PART 128u /* of a part of a name */

/* What a reader calls a part of a series' name; NULL: as it is. */
static const char *word_of(const char *part, size_t n) {
  static const char *const table[][2] = {{"parallel", "both processors"}, {"cpu", "CPU alone"}, {"gpu", "GPU alone"},
      {"serialized", "one query at a time"}, {"p50", "median"}, {"p99", "99th percentile"},
      {"failed", "deadline missed"}, {"GPU", "on the GPU"}, {"CPU", "on the CPU"}, {"stolen", "stolen"},
      {"mean", "mean"}, {"saturated", "saturated"}, {"missed", "missed"}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (strlen(table[i][0]) == n && !strncmp(table[i][0], part, n)) return table[i][1];
  return NULL;
}

/* A series' name in words, as it is written beside its line: parallel/p99 is "both processors, 99th percentile". Names
 * of methods and codecs stay, and so does a processor that stands first: Griffin's CPU/transfer. Returns label. */
static const char *label_of(const char *name, char label[LABEL_ROOM]) {
  size_t used = 0;
  memset(label, 0, LABEL_ROOM);
  for (const char *p = name; *p && used < LABEL_ROOM - LABEL_PART;) {
    const size_t n = strcspn(p, "/");
    const char *const word = p > name || *p >= 'a' ? word_of(p, n) : NULL;
    if (p > name) used += (size_t)snprintf(label + used, LABEL_ROOM - used, word ? ", " : "/");
    if (word) used += (size_t)snprintf(label + used, LABEL_ROOM - used, "%s", word);
    else
      used +=
          (size_t)snprintf(label + used, LABEL_ROOM - used, "%.*s", (int)(n < LABEL_PART / 2 ? n : LABEL_PART / 2), p);
    p += n + (p[n] == '/');
  }
  return label;
}

static int among(const char *names, const char *name) {
  while (*names) {
    size_t n = strcspn(names, ",");
    if (matches(name, names, n)) return 1;
    names += n + (names[n] == ',');
  }
  return 0;
}

/* Gives colours to the series that the figure names, in that order; to the first ones, if it names none; and to all, if
 * they are few. */
static void choose_looks(canvas *v) {
  const plot_chart *c = v->c;
  int next = 0;
  for (size_t i = 0; i < c->nseries; i++) v->look[i] = is_paper(c->series[i].name) ? PAPER : REST;
  for (const char *p = c->figure.shown; p && *p;) {
    size_t n = strcspn(p, ",");
    for (size_t i = 0; i < c->nseries && next < PLOT_SHOWN; i++)
      if (v->look[i] == REST && matches(c->series[i].name, p, n)) v->look[i] = next++;
    p += n + (p[n] == ',');
  }
  if (next && c->nseries > PLOT_SHOWN) return;
  for (size_t i = 0; i < c->nseries && next < PLOT_SHOWN; i++)
    if (v->look[i] == REST) v->look[i] = next++;
}

/* ---- the document's frame ------------------------------------------------------------------------------ */

/* These colours differ for people with any colour blindness, and in lightness too. Dark pages get lighter ones. */
const char plot_style[] =
    "text{font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,'Liberation Sans',sans-serif;"
    "font-size:11px;fill:#1f2328}\n"
    ".title{font-size:15px;font-weight:600}.dim{fill:#59636e}.end{text-anchor:end}.mid{text-anchor:middle}\n"
    ".value{font-size:9.5px;fill:#59636e}.small{font-size:8px;fill:#818b98}.caption{font-size:8px;fill:#"
    "6e7781}.name{font-weight:600}\n"
    ".page{fill:#ffffff}.grid{stroke:#e6e9ed;stroke-width:1}.base{stroke:#afb8c1;stroke-width:1}\n"
    ".l{fill:none;stroke-width:2.2;stroke-linejoin:round;stroke-linecap:round}\n"
    ".lead{fill:none;stroke-width:.7;opacity:.65}.band{opacity:.17}.spread{fill:none;stroke-width:1.2;stroke:"
    "#1f2328}\n"
    ".s5{stroke:#c3cad2}.l.s5{stroke-width:1}.f5{fill:#c3cad2}\n"
    ".s6{stroke:#59636e}.l.s6{stroke-width:1.6;stroke-dasharray:5 4}.f6{fill:#59636e}\n"
    ".s0{stroke:#0969b5}.s1{stroke:#d1570a}.s2{stroke:#118066}.s3{stroke:#a23c8c}.s4{stroke:#9a7200}\n"
    ".f0{fill:#0969b5}.f1{fill:#d1570a}.f2{fill:#118066}.f3{fill:#a23c8c}.f4{fill:#9a7200}\n"
    "@media (prefers-color-scheme:dark){\n"
    "text{fill:#e6edf3}.dim{fill:#9aa4af}.value{fill:#9aa4af}.small{fill:#848d97}.caption{fill:#8b949e}.page{"
    "fill:#0d1117}\n"
    ".grid{stroke:#22282f}.base{stroke:#57606a}.spread{stroke:#e6edf3}.band{opacity:.22}\n"
    ".s5{stroke:#444c56}.f5{fill:#444c56}.s6{stroke:#9aa4af}.f6{fill:#9aa4af}\n"
    ".s0{stroke:#58b0ff}.s1{stroke:#ff9d4d}.s2{stroke:#3ed6a9}.s3{stroke:#f09bdd}.s4{stroke:#e8cf5a}\n"
    ".f0{fill:#58b0ff}.f1{fill:#ff9d4d}.f2{fill:#3ed6a9}.f3{fill:#f09bdd}.f4{fill:#e8cf5a}\n"
    "}\n";

static void put_head(canvas *v) {
  const lab_figure *f = &v->c->figure;
  cli_buf_text(v->out, v->c->inside ? "<svg" : "<svg xmlns=\"http://www.w3.org/2000/svg\"");
  put(v->out, " width=\"%.0f\" height=\"%.0f\"", WIDTH, v->height);
  put(v->out, " viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n<title>", WIDTH, v->height);
  plot_escaped(v->out, f->title, strlen(f->title));
  cli_buf_text(v->out, "</title>\n");
  if (!v->c->inside) {
    cli_buf_text(v->out, "<desc>");
    plot_escaped(v->out, v->c->caption, strlen(v->c->caption));
    cli_buf_text(v->out, "</desc>\n<style>\n");
    cli_buf_text(v->out, plot_style);
    cli_buf_text(v->out, "</style>\n");
  }
  put(v->out, "<rect class=\"page\" width=\"%.0f\" height=\"%.0f\" rx=\"6\"/>\n", WIDTH, v->height);
  put_lines(v->out, MARGIN + TITLE * 0.8, "title", f->title, TITLE);
}

/* Draws a polygon around (x, y), given by its corners in units of r. */
static void put_polygon(cli_buf *out, int look, double x, double y, double r, const double (*corner)[2], size_t n) {
  put(out, "<path class=\"f%d\" d=\"", look);
  for (size_t i = 0; i < n; i++) put(out, "%c%.1f %.1f", i ? 'L' : 'M', x + r * corner[i][0], y + r * corner[i][1]);
  cli_buf_text(out, "z\"/>\n");
}

/* Draws the mark of a series: each colour has a shape of its own. */
static void put_mark(cli_buf *out, int look, double x, double y, double r) {
  static const double square[][2] = {{-.9, -.9}, {.9, -.9}, {.9, .9}, {-.9, .9}};
  static const double up[][2] = {{0, -1.2}, {1.15, .9}, {-1.15, .9}};
  static const double diamond[][2] = {{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}};
  static const double down[][2] = {{0, 1.2}, {1.15, -.9}, {-1.15, -.9}};
  switch (look) {
  case 1: put_polygon(out, look, x, y, r, square, 4); break;
  case 2: put_polygon(out, look, x, y, r, up, 3); break;
  case 3: put_polygon(out, look, x, y, r, diamond, 4); break;
  case 4: put_polygon(out, look, x, y, r, down, 3); break;
  default: put(out, "<circle class=\"f%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>\n", look, x, y, r);
  }
}

static void put_box(cli_buf *out, int look, double x, double y, double width, double height) {
  put(out, "<rect class=\"f%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"1\"/>\n", look, x, y, width,
      height);
}

static void put_rule(cli_buf *out, const char *class_, double x1, double y1, double x2, double y2) {
  put(out, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", class_, x1, y1, x2, y2);
}

/* Returns the height that the title and what stands below it need. */
static double head_height(const canvas *v) {
  unsigned lines = put_lines(NULL, 0, "", v->c->figure.title, TITLE);
  return MARGIN + lines * TITLE * 1.3 + TEXT;
}

static double caption_height(const canvas *v) {
  if (v->c->inside) return SMALL;
  return put_lines(NULL, 0, "", v->c->caption, SMALL) * SMALL * 1.3 + MARGIN;
}

static void put_caption(canvas *v) {
  double y = v->height - caption_height(v) + SMALL;
  if (!v->c->inside) put_lines(v->out, y, "caption", v->c->caption, SMALL);
  cli_buf_text(v->out, "</svg>\n");
}

/* ---- labels at the ends of lines ----------------------------------------------------------------------- */

typedef struct label {
  size_t series;
  double y, wanted, height; /* its middle, where that would best be, and its room */
} label;

static int compare_labels(const void *x, const void *y) {
  const label *a = (const label *)x, *b = (const label *)y;
  if (a->wanted != b->wanted) return a->wanted < b->wanted ? -1 : 1;
  return a->series < b->series ? -1 : a->series > b->series;
}

/* Stacks label[0..n) below each other, from y on. */
static void stack_labels(label *l, size_t n, double y) {
  for (size_t i = 0; i < n; i++) {
    l[i].y = y + l[i].height / 2;
    y += l[i].height;
  }
}

/* Returns where a stack of labels should begin, within [top, bottom], so that each is as near to its line as can be. */
static double group_top(const label *l, size_t n, double top, double bottom) {
  double sum = 0, weights = 0, height = 0;
  for (size_t i = 0; i < n; i++) {
    double weight = l[i].height * l[i].height; /* those in colour are larger, and draw the others along */
    sum += weight * (l[i].wanted - height - l[i].height / 2);
    weights += weight;
    height += l[i].height;
  }
  double y = sum / weights;
  if (y + height > bottom) y = bottom - height;
  return y < top ? top : y;
}

/* Moves sorted labels apart: groups of neighbours that touch each other are placed as one. */
static void spread_labels(label *l, size_t n, double top, double bottom) {
  size_t *first = (size_t *)cli_resize(NULL, n + 1, sizeof *first), groups = 0;
  double *from = (double *)cli_resize(NULL, n + 1, sizeof *from);
  for (size_t i = 0; i < n; i++) {
    first[groups] = i;
    from[groups] = group_top(l + i, 1, top, bottom);
    stack_labels(l + i, 1, from[groups]);
    while (groups && from[groups] < l[first[groups] - 1].y + l[first[groups] - 1].height / 2) {
      groups--;
      from[groups] = group_top(l + first[groups], i + 1 - first[groups], top, bottom);
      stack_labels(l + first[groups], i + 1 - first[groups], from[groups]);
    }
    groups++;
  }
  free(first);
  free(from);
}

static double label_size(int look) { return look == REST ? SMALL : TEXT; }
static double label_height(int look) { return look == REST ? SMALL + 1.5 : TEXT + 3; }

/* Whether a series has a label. Of grey ones only a few: nobody finds one of many lines by a small name at the edge. */
static int is_labelled(const canvas *v, size_t series) {
  size_t grey = 0;
  for (size_t i = 0; i < v->c->nseries; i++) grey += v->look[i] == REST;
  return v->look[series] != REST || grey <= GREY_LABELS;
}

/* Returns the height of all labels below each other. */
static double labels_height(const canvas *v) {
  double height = 0;
  for (size_t i = 0; i < v->c->nseries; i++) height += is_labelled(v, i) ? label_height(v->look[i]) : 0;
  return height;
}

#define BOLD 1.12 /* how much wider bold text is */

static double labels_width(const canvas *v) {
  double most = 0;
  for (size_t i = 0; i < v->c->nseries; i++) {
    char words[LABEL_ROOM];
    double width = text_width(label_of(v->c->series[i].name, words), label_size(v->look[i]) * BOLD);
    if (width > most && is_labelled(v, i)) most = width;
  }
  return most;
}

static const plot_point *last_point(const plot_series *s) {
  const plot_point *last = s->point;
  for (size_t i = 1; i < s->n; i++)
    if (s->point[i].x >= last->x) last = &s->point[i];
  return last;
}

/* Writes the names of the series beside the right ends of their lines, with a thin line where a name had to move. */
static void put_labels(canvas *v) {
  const plot_chart *c = v->c;
  char words[LABEL_ROOM];
  label *l = (label *)cli_resize(NULL, c->nseries, sizeof *l);
  size_t n = 0;
  for (size_t i = 0; i < c->nseries; i++) {
    if (!is_labelled(v, i)) continue;
    l[n].series = i;
    l[n].wanted = axis_at(&v->y, last_point(&c->series[i])->y);
    l[n++].height = label_height(v->look[i]);
  }
  qsort(l, n, sizeof *l, compare_labels);
  spread_labels(l, n, v->top - 8, v->bottom + 8);
  for (size_t i = 0; i < n; i++) {
    int look = v->look[l[i].series];
    double x = axis_at(&v->x, last_point(&c->series[l[i].series])->x), to = v->right + 22;
    if (fabs(l[i].y - l[i].wanted) > 2 || x < v->right - 1)
      put(v->out, "<path class=\"lead s%d\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1f\"/>\n", look, x + 4, l[i].wanted,
          v->right + 4 > x + 4 ? v->right + 4 : x + 4, l[i].wanted, to - 3, l[i].y);
    put_text(v->out, to, l[i].y + label_size(look) * 0.35,
        look == REST        ? "small"
            : look == PAPER ? "dim"
                            : ((const char *const[]){"name f0", "name f1", "name f2", "name f3", "name f4"})[look],
        label_of(c->series[l[i].series].name, words));
  }
  free(l);
}

/* ---- lines and points ---------------------------------------------------------------------------------- */

static void put_line(canvas *v, const plot_series *s, int look) {
  put(v->out, "<path class=\"l s%d\" d=\"", look);
  for (size_t i = 0; i < s->n; i++)
    put(v->out, "%c%.1f %.1f", i ? 'L' : 'M', axis_at(&v->x, s->point[i].x), axis_at(&v->y, s->point[i].y));
  cli_buf_text(v->out, "\"><title>");
  plot_escaped(v->out, s->name, strlen(s->name));
  cli_buf_text(v->out, "</title></path>\n");
}

/* Fills the area between the least and the greatest values, if any of them differ. */
static void put_band(canvas *v, const plot_series *s, int look) {
  int any = 0;
  for (size_t i = 0; i < s->n; i++) any |= s->point[i].hi > s->point[i].lo;
  if (!any) return;
  put(v->out, "<path class=\"band f%d\" d=\"", look);
  for (size_t i = 0; i < s->n; i++)
    put(v->out, "%c%.1f %.1f", i ? 'L' : 'M', axis_at(&v->x, s->point[i].x), axis_at(&v->y, s->point[i].hi));
  for (size_t i = s->n; i-- > 0;)
    put(v->out, "L%.1f %.1f", axis_at(&v->x, s->point[i].x), axis_at(&v->y, s->point[i].lo));
  cli_buf_text(v->out, "z\"/>\n");
}

static void put_series(canvas *v, const plot_series *s, int look) {
  double r = v->c->figure.shape == LAB_POINTS ? 2 : 3;
  if (v->c->figure.shape == LAB_LINES) {
    if (look != REST) put_band(v, s, look);
    put_line(v, s, look);
    if (look == REST || s->n > 40) return;
  }
  for (size_t i = 0; i < s->n; i++)
    put_mark(v->out, look, axis_at(&v->x, s->point[i].x), axis_at(&v->y, s->point[i].y), look == REST ? 1.3 : r);
}

/* Writes the grid and the numbers of both axes, and their names. */
static void put_axes(canvas *v) {
  const lab_figure *f = &v->c->figure;
  char text[32];
  for (size_t i = 0; i < v->y.nticks; i++) {
    double y = axis_at(&v->y, v->y.tick[i]);
    put_rule(v->out, i || v->y.log ? "grid" : "base", v->left, y, v->right, y);
    format_number(text, sizeof text, v->y.tick[i]);
    put_text(v->out, v->left - 7, y + 4, "dim end", text);
  }
  put_rule(v->out, "base", v->left, v->bottom, v->right, v->bottom);
  for (size_t i = 0; i < v->x.nticks; i++) {
    double x = axis_at(&v->x, v->x.tick[i]);
    put_rule(v->out, "base", x, v->bottom, x, v->bottom + 4);
    format_number(text, sizeof text, v->x.tick[i]);
    put_text(v->out, x, v->bottom + 16, "dim mid", text);
  }
  put_text(v->out, MARGIN, v->top - 14, "dim", f->y);
  put_text(v->out, (v->left + v->right) / 2, v->bottom + 32, "dim mid", f->x);
}

static void draw_lines(canvas *v) {
  char text[32];
  double widest = 0, height = labels_height(v) - 8;
  if (height < HEIGHT) height = HEIGHT;
  make_ticks(&v->y, 7);
  for (size_t i = 0; i < v->y.nticks; i++) {
    format_number(text, sizeof text, v->y.tick[i]);
    if (text_width(text, TEXT) > widest) widest = text_width(text, TEXT);
  }
  v->left = MARGIN + widest + 8;
  v->right = WIDTH - MARGIN - labels_width(v) - 22;
  v->top = head_height(v) + 16;
  v->bottom = v->top + height;
  v->height = v->bottom + 44 + caption_height(v);
  v->x.from = v->left + 6;
  v->x.to = v->right;
  v->y.from = v->bottom;
  v->y.to = v->top;
  make_ticks(&v->x, 8);
  put_head(v);
  put_axes(v);
  for (int look = PAPER; look >= 0; look--) /* the first colour on top, the grey ones below all */
    for (size_t i = v->c->nseries; i-- > 0;)
      if (v->look[i] == (look == PAPER ? REST : look == REST ? PAPER : look))
        put_series(v, &v->c->series[i], v->look[i]);
  put_labels(v);
  put_caption(v);
}

/* ---- bars ---------------------------------------------------------------------------------------------- */

#define BARS 3 /* series that stand as bars at one place, at most */
#define MOST_BARS 60 /* of a chart; more become marks, one row for each place */

static int has_bars(const plot_chart *c) { return c->nseries <= BARS && c->nseries * c->nplaces <= MOST_BARS; }

/* Returns the look of a bar. Of a single series, the places that the figure names are in colour, or else all. */
static int bar_look(const canvas *v, size_t series, size_t place) {
  const char *shown = v->c->figure.shown;
  int some = 0;
  if (v->c->nseries > 1 || !shown) return v->look[series];
  for (size_t i = 0; i < v->c->nplaces; i++) some |= among(shown, v->c->place[i]);
  return !some || among(shown, v->c->place[place]) ? 0 : REST;
}

static void put_bar(canvas *v, const plot_point *p, int look, double y, double height) {
  char text[32];
  double zero = v->y.log ? v->y.from : axis_at(&v->y, 0), x = axis_at(&v->y, p->y), end = x > zero ? x : zero;
  put_box(v->out, look, x < zero ? x : zero, y, fabs(x - zero), height);
  if (p->hi > p->lo) {
    put_rule(v->out, "spread", axis_at(&v->y, p->lo), y + height / 2, axis_at(&v->y, p->hi), y + height / 2);
    end = axis_at(&v->y, p->hi);
  }
  format_value(text, sizeof text, p->y);
  put_text(v->out, end + 5, y + height / 2 + 3.5, "value", text);
}

static void put_dot(canvas *v, const plot_point *p, int look, double y) {
  char class_[16];
  snprintf(class_, sizeof class_, "l s%d", look);
  if (p->hi > p->lo && look != REST) put_rule(v->out, class_, axis_at(&v->y, p->lo), y, axis_at(&v->y, p->hi), y);
  put_mark(v->out, look, axis_at(&v->y, p->y), y, look == REST ? 3 : 4.2);
}

/* Writes the key of the series in rows from y on, or with `draw` 0 only counts the rows. */
static unsigned put_key(canvas *v, double y, int draw) {
  double x = MARGIN;
  unsigned rows = v->c->nseries > 1;
  for (size_t i = 0; i < v->c->nseries && rows; i++) {
    char words[LABEL_ROOM];
    double width = 15 + text_width(label_of(v->c->series[i].name, words), TEXT) + 16;
    if (x + width > WIDTH - MARGIN && x > MARGIN) {
      x = MARGIN;
      rows++;
    }
    if (draw) {
      if (has_bars(v->c)) put_box(v->out, v->look[i], x, y + (rows - 1) * 17 - 9, 10, 10);
      else put_mark(v->out, v->look[i], x + 5, y + (rows - 1) * 17 - 4, 4.5);
      put_text(v->out, x + 15, y + (rows - 1) * 17, "", words);
    }
    x += width;
  }
  return rows;
}

static void put_places(canvas *v, double row) {
  char text[32], words[LABEL_ROOM];
  for (size_t i = 0; i < v->y.nticks; i++) {
    double x = axis_at(&v->y, v->y.tick[i]);
    put_rule(v->out, (v->y.log ? x < v->left + 1 : v->y.tick[i] == 0) ? "base" : "grid", x, v->top, x, v->bottom);
    format_number(text, sizeof text, v->y.tick[i]);
    put_text(v->out, x, v->bottom + 15, "dim mid", text);
  }
  for (size_t i = 0; i < v->c->nplaces; i++)
    put_text(v->out, v->left - 7, v->top + (double)i * row + row / 2 + 4, "end", label_of(v->c->place[i], words));
  put_text(v->out, (v->left + v->right) / 2, v->bottom + 31, "dim mid", v->c->figure.y);
}

static void put_values(canvas *v, double row, int dots) {
  const plot_chart *c = v->c;
  double height = dots ? 0 : (row - 7) / (double)c->nseries;
  for (int look = PAPER; look >= 0; look--)
    for (size_t i = 0; i < c->nseries; i++) {
      if (v->look[i] != (look == PAPER ? REST : look == REST ? PAPER : look)) continue;
      for (size_t j = 0; j < c->series[i].n; j++) {
        const plot_point *p = &c->series[i].point[j];
        double y = v->top + (double)p->place * row;
        if (dots) put_dot(v, p, v->look[i], y + row / 2);
        else put_bar(v, p, bar_look(v, i, p->place), y + 3.5 + (double)i * height, height - 1);
      }
    }
}

static void draw_bars(canvas *v) {
  const plot_chart *c = v->c;
  int dots = !has_bars(c);
  char words[LABEL_ROOM];
  double widest = 0, row = dots ? 17 : 7 + (c->nseries == 1 ? 14 : 13) * (double)c->nseries;
  for (size_t i = 0; i < c->nplaces; i++)
    if (text_width(label_of(c->place[i], words), TEXT) > widest) widest = text_width(words, TEXT);
  v->left = MARGIN + widest + 8;
  if (v->left > WIDTH / 2) v->left = WIDTH / 2;
  v->right = WIDTH - MARGIN - (dots ? 10 : 40);
  v->top = head_height(v) + 4 + 17 * put_key(v, 0, 0);
  v->bottom = v->top + row * (double)c->nplaces;
  v->height = v->bottom + 40 + caption_height(v);
  v->y.from = v->left;
  v->y.to = v->right;
  make_ticks(&v->y, 8);
  put_head(v);
  put_key(v, head_height(v) + 8, 1);
  put_places(v, row);
  put_values(v, row, dots);
  put_caption(v);
}

/* Exchanges series and places: rows are for what there is more of. */
static plot_chart turn(const plot_chart *c) {
  plot_chart t = *c;
  t.figure.shown = NULL;
  t.nseries = c->nplaces;
  t.nplaces = c->nseries;
  t.series = (plot_series *)cli_resize(NULL, t.nseries, sizeof *t.series);
  t.place = (const char **)cli_resize(NULL, t.nplaces, sizeof *t.place);
  for (size_t i = 0; i < t.nseries; i++) {
    plot_series s = {c->place[i], NULL, 0, 0};
    for (size_t j = 0; j < c->nseries; j++)
      for (size_t k = 0; k < c->series[j].n; k++) {
        if (c->series[j].point[k].place != i) continue;
        s.point = (plot_point *)cli_resize(s.point, s.n + 1, sizeof *s.point);
        s.point[s.n] = c->series[j].point[k];
        s.point[s.n++].place = j;
      }
    t.series[i] = s;
  }
  for (size_t j = 0; j < t.nplaces; j++) t.place[j] = c->series[j].name;
  return t;
}

static void draw(const plot_chart *chart, cli_buf *out) {
  canvas v;
  memset(&v, 0, sizeof v);
  v.c = chart;
  v.out = out;
  v.look = (int *)cli_resize(NULL, chart->nseries, sizeof *v.look);
  choose_looks(&v);
  find_ranges(&v);
  if (chart->figure.shape == LAB_BARS) draw_bars(&v);
  else draw_lines(&v);
  free(v.look);
}

void plot_svg(const plot_chart *chart, cli_buf *out) {
  if (chart->figure.shape != LAB_BARS || chart->nseries <= BARS || chart->nseries <= chart->nplaces) {
    draw(chart, out);
    return;
  }
  plot_chart turned = turn(chart);
  draw(&turned, out);
  for (size_t i = 0; i < turned.nseries; i++) free(turned.series[i].point);
  free(turned.series);
  free(turned.place);
}
