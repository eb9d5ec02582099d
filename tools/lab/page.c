/* page.c - gpuir lab report: what papers found beside what was measured, with all charts, as one HTML file.
 *
 * Nothing in the file comes from elsewhere: charts stand inside, with one style for all, in colours for light and dark
 * pages. Charts are those of TSV files; claims.c says what is held against them, and verdict.c by which rule. Read from
 * the bottom: report_command.
 */
#include "claims.h"

#include "../cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef struct page {
  claims_logs logs;
  int *verdict; /* of each claim */
  cli_buf out;
} page;

/* ---- text ---------------------------------------------------------------------------------------------- */

static void put(page *g, const char *text) { cli_buf_text(&g->out, text); }

static void putf(page *g, const char *fmt, ...) CLI_PRINTF(2, 3);

static void putf(page *g, const char *fmt, ...) {
  char text[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  cli_buf_text(&g->out, text);
}

static void put_plain(page *g, const char *text) { plot_escaped(&g->out, text, strlen(text)); }

/* Writes a text in which back quotes enclose code. */
static void put_prose(page *g, const char *text) {
  int code = 0;
  for (const char *p = text; *p; p++) {
    size_t n = strcspn(p, "`");
    plot_escaped(&g->out, p, n);
    p += n;
    if (!*p) break;
    code = !code;
    put(g, code ? "<code>" : "</code>");
  }
  if (code) put(g, "</code>");
}

static void put_badge(page *g, int verdict, const char *label) {
  putf(g, "<span class=\"badge v%d\">%s ", verdict, verdict_marks[verdict]);
  put_plain(g, label);
  put(g, "</span>");
}

/* ---- claims over logs ---------------------------------------------------------------------------------- */

static void judge_all(page *g) {
  size_t n = 0;
  while (claims_claims[n].id) n++;
  g->verdict = (int *)cli_resize(NULL, n, sizeof *g->verdict);
  for (size_t i = 0; i < n; i++) g->verdict[i] = verdict_of(&g->logs, &claims_claims[i]);
}

static int is_of(const claims_claim *claim, const claims_place *place) { return claims_place_of(claim) == place; }

static int drawn_in(const claims_log *log, const claims_place *place) {
  size_t i = 0;
  while (i < log->ncharts && !formula_names(place->charts, log->chart[i].figure.id)) i++;
  return i < log->ncharts;
}

static int is_drawn(const page *g, const claims_place *place) {
  size_t i = 0;
  while (i < g->logs.n && !drawn_in(&g->logs.log[i], place)) i++;
  return i < g->logs.n;
}

/* Writes what one log says of a claim, as a badge and a text. Returns whether there is anything to say. */
static int put_one(page *g, const claims_claim *claim, int verdict, const claims_log *log) {
  const formula_scope s = logs_scope(log, claims_place_of(claim));
  const int own = verdict_in(log, claim);
  cli_buf text = {NULL, 0, 0};
  int values = formula_text(&s, claim->ours, &text);
  cli_buf_char(&text, 0);
  if (own == UNKNOWN && verdict != UNKNOWN) values = 0;
  if (values) {
    put(g, "<li>");
    put_badge(g, own, log->label);
    put(g, " ");
    put_prose(g, text.p);
    put(g, "</li>");
  }
  cli_buf_free(&text);
  return values;
}

/* Writes what each log says of a claim: those that decide, and folded the others. */
static void put_ours(page *g, const claims_claim *claim, int verdict) {
  int any = 0, others = 0;
  put(g, "<ul>");
  for (size_t i = 0; i < g->logs.n; i++)
    if (verdict_decides(&g->logs, claim, &g->logs.log[i])) any |= put_one(g, claim, verdict, &g->logs.log[i]);
  if (!any) put(g, claim->test ? "<li>Not measured yet.</li>" : "<li>See the chart.</li>");
  put(g, "</ul>");
  const size_t before = g->out.n;
  put(g, "<details class=\"beside\"><summary>Logs that do not decide</summary><ul>");
  for (size_t i = 0; i < g->logs.n; i++)
    if (!verdict_decides(&g->logs, claim, &g->logs.log[i])) others |= put_one(g, claim, HELD, &g->logs.log[i]);
  put(g, "</ul></details>");
  if (!others) g->out.n = before;
}

/* ---- a chart with its values --------------------------------------------------------------------------- */

static const plot_point *point_at(const plot_chart *c, size_t series, const plot_point *like) {
  const plot_series *s = &c->series[series];
  for (size_t i = 0; i < s->n; i++)
    if (c->figure.shape == LAB_BARS ? s->point[i].place == like->place
                                    : !(s->point[i].x < like->x || s->point[i].x > like->x))
      return &s->point[i];
  return NULL;
}

static int compare_points(const void *x, const void *y) {
  const plot_point *a = (const plot_point *)x, *b = (const plot_point *)y;
  if (a->place != b->place) return a->place < b->place ? -1 : 1;
  return a->x < b->x ? -1 : a->x > b->x;
}

/* Finds the different places or numbers on the x axis, in order. Returns how many; the caller frees *points. */
static size_t find_points(const plot_chart *c, plot_point **points) {
  size_t all = 0, n = 0;
  for (size_t s = 0; s < c->nseries; s++) all += c->series[s].n;
  plot_point *p = (plot_point *)cli_resize(NULL, all + 1, sizeof *p);
  for (size_t s = 0; s < c->nseries; s++)
    for (size_t i = 0; i < c->series[s].n; i++) p[n++] = c->series[s].point[i];
  qsort(p, n, sizeof *p, compare_points);
  all = n;
  n = 0;
  for (size_t i = 0; i < all; i++)
    if (!n || compare_points(&p[n - 1], &p[i])) p[n++] = p[i];
  *points = p;
  return n;
}

static void put_cell(page *g, const plot_point *p) {
  if (p) putf(g, "<td>%.4g</td>", p->y);
  else put(g, "<td></td>");
}

static void put_header(page *g, const plot_chart *c, const plot_point *p) {
  if (c->figure.shape == LAB_BARS) put_plain(g, c->place[p->place]);
  else putf(g, "%.6g", p->x);
}

/* Writes the values as a table; what there is more of, series or places, goes down. */
static void put_values(page *g, const plot_chart *c) {
  plot_point *p;
  const size_t n = find_points(c, &p);
  const int turned = c->nseries > n;
  put(g,
      "<details class=\"values\"><summary>Values</summary><div class=\"scroll\"><table><thead><tr><th scope=\"col\">");
  put_plain(g, turned ? "" : c->figure.x);
  put(g, "</th>");
  for (size_t i = 0; i < (turned ? n : c->nseries); i++) {
    put(g, "<th scope=\"col\">");
    if (turned) put_header(g, c, &p[i]);
    else put_plain(g, c->series[i].name);
    put(g, "</th>");
  }
  put(g, "</tr></thead><tbody>");
  for (size_t i = 0; i < (turned ? c->nseries : n); i++) {
    put(g, "<tr><th scope=\"row\">");
    if (turned) put_plain(g, c->series[i].name);
    else put_header(g, c, &p[i]);
    put(g, "</th>");
    for (size_t j = 0; j < (turned ? n : c->nseries); j++)
      put_cell(g, point_at(c, turned ? i : j, turned ? &p[j] : &p[i]));
    put(g, "</tr>\n");
  }
  put(g, "</tbody></table></div></details>");
  free(p);
}

static void put_figure(page *g, const plot_chart *chart) {
  put(g, "<figure><div class=\"scroll\">");
  plot_svg(chart, &g->out);
  put(g, "</div>");
  put_values(g, chart);
  put(g, "</figure>");
}

/* Writes the charts of a log that have this one of the names, or with names NULL those that none of `not_of` has.
 * Returns how many. */
static size_t put_named(page *g, const claims_log *log, const char *name, size_t n) {
  size_t charts = 0;
  for (size_t i = 0; i < log->ncharts; i++) {
    char one[128];
    snprintf(one, sizeof one, "%.*s", (int)n, name);
    if (!formula_names(one, log->chart[i].figure.id)) continue;
    put_figure(g, &log->chart[i]);
    charts++;
  }
  return charts;
}

/* Writes the charts of a log that belong to a place: the place's own figure first, and folded what the same run
 * measured beside it. */
static void put_charts(page *g, const claims_log *log, const char *names, int open) {
  size_t before, own = 0, more = 0;
  const char *p = names;
  putf(g, "<details class=\"charts\"%s><summary>", open ? " open" : "");
  put_plain(g, log->label);
  put(g, "</summary>");
  for (; *p && !own; p += p[0] == ',') {
    own = put_named(g, log, p, strcspn(p, ","));
    p += strcspn(p, ",");
  }
  before = g->out.n;
  put(g, "<details class=\"more\"><summary>More of this log</summary>");
  for (; *p; p += p[0] == ',') {
    more += put_named(g, log, p, strcspn(p, ","));
    p += strcspn(p, ",");
  }
  put(g, "</details>");
  if (!more) g->out.n = before;
  put(g, "</details>\n");
}

/* ---- sections ------------------------------------------------------------------------------------------ */

/* Colours and text. */
static const char style_text[] =
    ":root{color-scheme:light "
    "dark;--ink:#1f2328;--dim:#59636e;--page:#fff;--card:#f6f8fa;--line:#d8dee4;--link:#0969b5;"
    "--good:#116329;--goodbg:#dafbe1;--bad:#a40e26;--badbg:#ffebe9;--part:#7d4e00;--partbg:#fff1c2;--nonebg:#eaeef2}\n"
    "@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9aa4af;--page:#0d1117;--card:#151b23;--line:#2f3742;"
    "--link:#58b0ff;--good:#7ee2a0;--goodbg:#0f3a1e;--bad:#ffa198;--badbg:#4a1517;--part:#f2cc60;--partbg:#3d2c05;"
    "--nonebg:#252c35}}\n"
    "*{box-sizing:border-box}html{scroll-behavior:smooth;-webkit-text-size-adjust:100%}\n"
    "body{margin:0;background:var(--page);color:var(--ink);font:16px/1.55 system-ui,-apple-system,'Segoe UI',Helvetica,"
    "Arial,sans-serif;overflow-wrap:break-word}\n"
    "main,.head{max-width:78rem;margin:0 auto;padding:0 clamp(1rem,4vw,2.5rem)}.head{padding-top:2.5rem}\n"
    "h1{font-size:clamp(1.7rem,4.5vw,2.5rem);line-height:1.15;letter-spacing:-.02em;margin:0 0 "
    ".6rem;text-wrap:balance}\n"
    "h2{font-size:1.55rem;line-height:1.25;letter-spacing:-.01em;margin:3.5rem 0 "
    ".4rem;padding-top:1.2rem;border-top:2px "
    "solid var(--ink)}h3{font-size:1.15rem;margin:0 0 .7rem;line-height:1.3}h3 small{display:block;color:var(--dim);"
    "font-weight:400;font-size:.85rem}\n"
    "p{max-width:46rem;margin:.4rem 0 1rem}.lead{font-size:1.1rem}.dim{color:var(--dim)}.cite{font-size:.92rem;color:"
    "var(--dim)}\n"
    "a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}\n"
    "code{font:.88em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:var(--nonebg);padding:.08em .3em;"
    "border-radius:4px}\n";

/* What stands where. */
static const char style_layout[] =
    ".sum{display:flex;flex-wrap:wrap;gap:.6rem;margin:1.2rem 0 1.6rem;padding:0;list-style:none}.sum li{background:"
    "var(--card);border:1px solid var(--line);border-radius:10px;padding:.5rem .9rem;min-width:7.5rem}.sum "
    "b{display:block;"
    "font-size:1.6rem;line-height:1.2;font-variant-numeric:tabular-nums}\n"
    "nav{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.4rem 1rem;border:1px solid "
    "var(--line);border-radius:12px;padding:1rem 1.3rem;background:var(--card);font-size:.93rem}\n"
    "nav h2{all:unset;display:block;font-weight:650;margin:.2rem 0 .1rem}nav ul{list-style:none;margin:0 0 "
    ".6rem;padding:0}"
    "nav li{line-height:1.7}.none{color:var(--dim)}\n"
    ".badge{display:inline-block;border-radius:.9em;padding:0 .6em;font-size:.82rem;line-height:1.6;font-weight:600;"
    "max-width:100%;background:var(--nonebg);color:var(--dim)}.v0{background:var(--goodbg);color:var(--good)}"
    ".v1{background:var(--partbg);color:var(--part)}.v2{background:var(--badbg);color:var(--bad)}\n"
    ".mark{font-weight:700}.m0{color:var(--good)}.m1{color:var(--part)}.m2{color:var(--bad)}.m3,.m4{color:var(--dim)}\n"
    "table{border-collapse:collapse;width:100%;font-size:.93rem;line-height:1.45}th,td{text-align:left;vertical-align:"
    "top;"
    "padding:.55rem .8rem .55rem 0;border-bottom:1px solid var(--line)}thead th{font-weight:600;color:var(--dim);"
    "border-bottom:2px solid var(--line)}.held td:first-child{white-space:nowrap}.held td:nth-child(2){width:34%}\n"
    ".held tr.paper th{padding-top:1.6rem;font-size:1.05rem;color:var(--ink)}\n"
    "article{display:grid;grid-template-columns:minmax(0,24rem) minmax(0,1fr);gap:1rem 2rem;padding:1.8rem "
    "0;border-bottom:"
    "1px solid var(--line);scroll-margin-top:1rem}article>h3{grid-column:1/-1;margin:0}\n"
    ".claim{border-left:3px solid var(--line);padding:.1rem 0 .1rem .9rem;margin:0 0 1.3rem;font-size:.94rem}.claim "
    "p{margin:"
    "0 0 .45rem}.claim ul{list-style:none;padding:0;margin:0 0 .45rem}.claim li{margin:0 0 .35rem}.claim "
    ".who{font-size:"
    ".74rem;text-transform:uppercase;letter-spacing:.06em;color:var(--dim);font-weight:650;margin:0}\n"
    ".claim "
    ".why{color:var(--dim)}.c0{border-color:var(--good)}.c1{border-color:var(--part)}.c2{border-color:var(--bad)}\n"
    ".told{list-style:none;padding:0;margin:1rem 0 1.6rem;max-width:52rem}.told li{position:relative;padding:.3rem 0 "
    ".3rem 1.8rem;line-height:1.5}.told .mark{position:absolute;left:0;width:1.3rem;text-align:center}.told "
    "a{font-size:.85rem;white-space:nowrap}\n"
    "figure{margin:.6rem 0 1.2rem}.scroll{overflow-x:auto;max-width:100%}.scroll "
    "svg{display:block;width:100%;min-width:36rem;"
    "max-width:52rem;height:auto;border:1px solid var(--line);border-radius:8px}\n"
    "summary{cursor:pointer;font-weight:600;padding:.15rem 0}.values{font-size:.88rem;margin-top:.3rem}.values summary{"
    "font-weight:400;color:var(--dim)}.values "
    "table{width:auto;font-size:.84rem;font-variant-numeric:tabular-nums}.values "
    "th,.values td{padding:.2rem .7rem .2rem 0;white-space:nowrap;text-align:right}.values th[scope=row],.values "
    "thead th:first-child{text-align:left}\n"
    "dl{margin:.3rem 0 1rem;font-size:.9rem}dt{font-weight:600;margin-top:1rem}dd{margin:.1rem 0 0}footer{margin:4rem "
    "0 2rem}\n"
    "@media (max-width:60rem){article{grid-template-columns:minmax(0,1fr)}.held thead{display:none}.held "
    "tr{display:block;"
    "border-bottom:1px solid var(--line);padding:.7rem 0}.held td,.held th{display:block;border:0;padding:.1rem "
    "0;width:auto "
    "!important}}\n"
    "@media print{details{break-inside:avoid}nav{display:none}}\n";

/* Writes a link to a place, with the name of its paper. */
static void put_origin(page *g, const claims_place *place) {
  const claims_paper *p = claims_papers;
  while (p->key && strcmp(p->key, place->paper) != 0) p++;
  putf(g, " <a href=\"#%s\">%s, %s</a></li>\n", place->id, p->name, place->where);
}

/* What opens the page: a sentence each of what held and what did not, by the verdicts of today's logs. */
static void put_sentences(page *g) {
  put(g, "<ol class=\"told\">\n");
  for (const claims_sentence *s = claims_sentences; s->claim; s++) {
    cli_buf text = {NULL, 0, 0};
    const int verdict = verdict_sentence(&g->logs, s, &text);
    cli_buf_char(&text, 0);
    if (verdict != UNKNOWN) {
      putf(g, "<li><span class=\"mark m%d\" title=\"%s\">%s</span> ", verdict, verdict_names[verdict],
          verdict_marks[verdict]);
      put_prose(g, text.p);
      put_origin(g, claims_place_of(claims_find(s->claim)));
    }
    cli_buf_free(&text);
  }
  put(g, "</ol>\n");
}

static void put_counts(page *g) {
  size_t counts[2][VERDICTS] = {{0}, {0}}, setups = 0;
  for (size_t i = 0; claims_claims[i].id; i++) counts[claims_claims[i].of == SETUP][g->verdict[i]]++;
  put(g, "<ul class=\"sum\">");
  for (int v = 0; v < VERDICTS; v++)
    putf(g, "<li><b class=\"m%d\">%zu</b>%s</li>", v, counts[METHOD][v], verdict_names[v]);
  for (int v = 0; v < VERDICTS; v++) setups += counts[SETUP][v];
  putf(g,
      "</ul>\n<p class=\"dim\">Claims on methods. %zu more are of a collection, queries or a machine, and are shown "
      "below without being counted here.</p>\n",
      setups);
}

static void put_head(page *g) {
  put(g,
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">\n<title>Five papers, measured again</title>\n<style>\n");
  put(g, style_text);
  put(g, style_layout);
  put(g, plot_style);
  put(g,
      "</style>\n</head>\n<body>\n<header class=\"head\">\n<h1>Five papers on inverted lists and GPUs, measured "
      "again</h1>\n<p class=\"lead\">Ding 2009, Ao 2011, Tatikonda 2011, Li 2014 and Griffin 2018, on one library, "
      "<code>gpuir</code>, and on processors of today. What held, and what did not:</p>\n");
  put_sentences(g);
  put_counts(g);
  put(g,
      "<p class=\"dim\"><b>How a claim is judged.</b> Each has a test, which one log passes or fails as a whole. A "
      "time "
      "or rate counts as the interval of its repetitions; one that was measured once as 12 % either way, within which "
      "nine of ten values of three repetitions lie. A claim held if the test is true wherever in these intervals "
      "values lie, did not hold if it is false there, and is <b>open</b> else. It held <b>in part</b> if logs "
      "disagree.</p>\n"
      "<p class=\"dim\"><b>Collections.</b> Web: 8 million synthetic documents with the list lengths of GOV2, in "
      "random "
      "order. Dictionary: 1.74 million entries, topics of TREC 2005. Linux: the sources of Linux 6.1 in chunks of 25 "
      "lines. Manuals: 80,502 HTML pages of 18 packages. The papers' own were GOV, GOV2, Baidu's, ClueWeb12 and "
      "AltaVista's log; GOV2 and ClueWeb are licensed, "
      "the others are not to be had. So trends are compared, and not numbers. Machines, commits and commands stand "
      "under <a href=\"#logs\">Logs</a>.</p>\n");
}

/* Returns the verdict that a place's claims have in common, or IN_PART. */
static int place_verdict(const page *g, const claims_place *place) {
  int verdict = UNKNOWN;
  for (size_t i = 0; claims_claims[i].id; i++) {
    if (!is_of(&claims_claims[i], place) || g->verdict[i] == UNKNOWN) continue;
    verdict = verdict == UNKNOWN || verdict == g->verdict[i] ? g->verdict[i] : IN_PART;
  }
  return verdict;
}

static int of_paper(const claims_place *place, const claims_paper *paper) { return !strcmp(place->paper, paper->key); }

static void put_contents(page *g) {
  put(g,
      "<nav aria-label=\"Contents\">\n<div><h2>All</h2><ul><li><a href=\"#held\">What held, what did not, "
      "why</a></li><li>"
      "<a href=\"#missing\">What is not drawn</a></li><li><a href=\"#other\">Other charts</a></li><li><a "
      "href=\"#logs\">"
      "Logs</a></li></ul></div>\n");
  for (const claims_paper *p = claims_papers; p->key; p++) {
    putf(g, "<div><h2><a href=\"#%s\">%s</a></h2><ul>", p->key, p->name);
    for (const claims_place *place = claims_places; place->id; place++) {
      if (!of_paper(place, p) || !place->charts[0]) continue;
      const int verdict = place_verdict(g, place);
      if (is_drawn(g, place))
        putf(g, "<li><span class=\"mark m%d\" title=\"%s\">%s</span> <a href=\"#%s\">%s</a></li>", verdict,
            verdict_names[verdict], verdict_marks[verdict], place->id, place->where);
      else putf(g, "<li class=\"none\">\xc2\xb7 %s, not drawn</li>", place->where);
    }
    put(g, "</ul></div>\n");
  }
  put(g, "</nav>\n</header>\n<main>\n");
}

static void put_held_row(page *g, size_t i, const claims_place *place) {
  const claims_claim *claim = &claims_claims[i];
  put(g, "<tr><td>");
  if (is_drawn(g, place)) putf(g, "<a href=\"#%s\">%s</a>", place->id, place->where);
  else put_plain(g, place->where);
  put(g, "</td><td>");
  put_prose(g, claim->found);
  if (claim->of == SETUP) put(g, " <span class=\"dim\">(not of a method)</span>");
  put(g, "</td><td>");
  put_badge(g, g->verdict[i], verdict_names[g->verdict[i]]);
  put(g, "</td><td>");
  put_prose(g, claim->why);
  put(g, "</td></tr>\n");
}

static void put_held(page *g) {
  put(g,
      "<section id=\"held\"><h2>What held, what did not, why</h2>\n<p>A claim is not judged if no log has all values "
      "of "
      "its test, or if the paper gives none. The reasons are ours: where a cache or a launch is named, no run has "
      "parted it from other causes.</p>\n<table class=\"held\"><thead><tr><th>Where</th><th>The paper</th>"
      "<th>Here</th><th>Why</th></tr></thead><tbody>\n");
  for (const claims_paper *p = claims_papers; p->key; p++) {
    putf(g, "<tr class=\"paper\"><th colspan=\"4\">%s</th></tr>\n", p->name);
    for (size_t i = 0; claims_claims[i].id; i++)
      if (of_paper(claims_place_of(&claims_claims[i]), p)) put_held_row(g, i, claims_place_of(&claims_claims[i]));
  }
  put(g, "</tbody></table></section>\n");
}

/* Whether the log decides a claim of this place. */
static int is_main(const page *g, const claims_place *place, const claims_log *log) {
  for (size_t i = 0; claims_claims[i].id; i++)
    if (is_of(&claims_claims[i], place) && verdict_decides(&g->logs, &claims_claims[i], log)) return 1;
  return 0;
}

/* Writes the charts of a place: of the logs that decide, the first one unfolded; folded, of the others. */
static void put_place_charts(page *g, const claims_place *place) {
  int open = 1, others = 0;
  for (size_t i = 0; i < g->logs.n; i++) {
    const claims_log *log = &g->logs.log[i];
    if (!drawn_in(log, place) || !is_main(g, place, log)) continue;
    put_charts(g, log, place->charts, open);
    open = 0;
  }
  const size_t before = g->out.n;
  put(g, "<details class=\"others\"><summary>Logs that do not decide</summary>");
  for (size_t i = 0; i < g->logs.n; i++) {
    const claims_log *log = &g->logs.log[i];
    if (!drawn_in(log, place) || is_main(g, place, log)) continue;
    put_charts(g, log, place->charts, 0);
    others = 1;
  }
  put(g, "</details>");
  if (!others) g->out.n = before;
}

static void put_claim(page *g, const claims_claim *claim, int verdict) {
  putf(g, "<div class=\"claim c%d\"><p class=\"who\">The paper</p><p>", verdict);
  put_prose(g, claim->found);
  putf(g, "</p><p class=\"who\">Here: %s</p>", verdict_names[verdict]);
  put_ours(g, claim, verdict);
  put(g, "<p class=\"who\">Why</p><p class=\"why\">");
  put_prose(g, claim->why);
  put(g, "</p></div>\n");
}

static void put_place(page *g, const claims_place *place) {
  putf(g, "<article id=\"%s\"><h3>%s. %s</h3>\n<div>", place->id, place->where, place->title);
  for (size_t i = 0; claims_claims[i].id; i++)
    if (is_of(&claims_claims[i], place)) put_claim(g, &claims_claims[i], g->verdict[i]);
  put(g, "</div><div>");
  put_place_charts(g, place);
  put(g, "</div></article>\n");
}

static void put_papers(page *g) {
  for (const claims_paper *p = claims_papers; p->key; p++) {
    putf(g, "<section id=\"%s\"><h2>%s</h2><p class=\"cite\">", p->key, p->name);
    put_plain(g, p->title);
    put(g, "</p>\n");
    for (const claims_place *place = claims_places; place->id; place++)
      if (of_paper(place, p) && is_drawn(g, place)) put_place(g, place);
    put(g, "</section>\n");
  }
}

static void put_missing(page *g) {
  put(g,
      "<section id=\"missing\"><h2>What is not drawn</h2>\n<p>All other tables and figures of the five "
      "papers.</p>\n<table "
      "class=\"held\"><thead><tr><th>Where</th><th>What it shows</th><th>Why it is not "
      "here</th></tr></thead><tbody>\n");
  for (const claims_paper *p = claims_papers; p->key; p++)
    for (const claims_place *place = claims_places; place->id; place++) {
      if (!of_paper(place, p) || is_drawn(g, place)) continue;
      putf(g, "<tr id=\"missing-%s\"><td>%s, %s</td><td>%s</td><td>", place->id, p->name, place->where, place->title);
      put_prose(g, place->missing);
      put(g, "</td></tr>\n");
    }
  put(g, "</tbody></table></section>\n");
}

/* Returns whether the chart belongs to no table or figure of a paper. */
static int is_other(const char *id) {
  const claims_place *p = claims_places;
  while (p->id && !formula_names(p->charts, id)) p++;
  return !p->id;
}

/* Returns the first chart of that name, if it is this one; so each name is taken once. */
static int is_first(const claims_logs *logs, const plot_chart *chart) {
  for (size_t i = 0; i < logs->n; i++)
    for (size_t j = 0; j < logs->log[i].ncharts; j++)
      if (!strcmp(logs->log[i].chart[j].figure.id, chart->figure.id)) return &logs->log[i].chart[j] == chart;
  return 0;
}

static void put_other(page *g, const plot_chart *chart) {
  put(g, "<article><h3>");
  put_plain(g, chart->figure.title);
  put(g, "</h3><div class=\"dim\"><code>");
  put_plain(g, chart->figure.id);
  put(g, "</code></div><div>");
  for (size_t i = 0; i < g->logs.n; i++)
    for (size_t j = 0; j < g->logs.log[i].ncharts; j++)
      if (!strcmp(g->logs.log[i].chart[j].figure.id, chart->figure.id))
        put_charts(g, &g->logs.log[i], chart->figure.id, 0);
  put(g, "</div></article>\n");
}

static void put_others(page *g) {
  put(g, "<section id=\"other\"><h2>Other charts</h2>\n<p>What the same runs measured beyond the papers.</p>\n");
  for (size_t i = 0; i < g->logs.n; i++)
    for (size_t j = 0; j < g->logs.log[i].ncharts; j++) {
      const plot_chart *chart = &g->logs.log[i].chart[j];
      if (is_other(chart->figure.id) && is_first(&g->logs, chart)) put_other(g, chart);
    }
  put(g, "</section>\n");
}

static void put_logs(page *g) {
  put(g,
      "<section id=\"logs\"><h2>Logs</h2>\n<p>What the heads of the files say that these charts are drawn "
      "from.</p>\n");
  for (size_t i = 0; i < g->logs.n; i++) {
    const claims_log *log = &g->logs.log[i];
    const char *comment;
    put(g, "<details class=\"log\"><summary>");
    put_plain(g, log->label);
    put(g, " <code>");
    put_plain(g, log->name);
    put(g, ".tsv</code></summary><dl>\n");
    for (size_t c = 0; (comment = plot_table_comment(log->table, c)) != NULL; c++) {
      put(g, "<dd>");
      put_plain(g, comment);
      put(g, "</dd>\n");
    }
    put(g, "</dl></details>\n");
  }
  put(g,
      "</section>\n<footer class=\"dim\">Made by <code>gpuir lab report</code>.</footer>\n</main>\n</body>\n"
      "</html>\n");
}

/* ---- the command --------------------------------------------------------------------------------------- */

static int write_page(const char *path, const cli_buf *out) {
  FILE *f = fopen(path, "wb");
  int bad = !f || fwrite(out->p, 1, out->n, f) != out->n;
  if (f && fclose(f)) bad = 1;
  if (bad) cli_error("%s: %s", path, strerror(errno));
  return bad ? CLI_FAIL : CLI_OK;
}

static void make_page(page *g) {
  judge_all(g);
  put_head(g);
  put_contents(g);
  put_held(g);
  put_papers(g);
  put_missing(g);
  put_others(g);
  put_logs(g);
}

static int ends_in(const char *path, const char *end) {
  const size_t n = strlen(path), m = strlen(end);
  return n > m && !strcmp(path + n - m, end);
}

/* Writes the page, or to a path that ends in .tsv the table of verdicts. */
static int report_logs(char *const *operands, size_t n, const char *path, plot_known *known) {
  page g;
  memset(&g, 0, sizeof g);
  int code = verdict_check();
  for (size_t i = 0; i < n && code == CLI_OK; i++) code = logs_read(&g.logs, operands[i], known);
  if (code == CLI_OK) {
    if (ends_in(path, ".tsv")) verdict_table(&g.logs, &g.out);
    else make_page(&g);
    code = write_page(path, &g.out);
  }
  logs_free(&g.logs);
  free(g.verdict);
  cli_buf_free(&g.out);
  return code;
}

enum { O_OUTPUT = 2 };

int report_command(int argc, char **argv, plot_known *known) {
  static const cli_option options[] = {{O_OUTPUT, "output", 'o', 1}, {0, NULL, 0, 0}};
  static char folder[] = "build/lab", *const folders[] = {folder};
  const char *path = NULL;
  cli_args a;
  int opt, code = CLI_OK;
  cli_args_start(&a, "lab", options, argc, argv);
  while (code == CLI_OK && (opt = cli_next(&a)) != CLI_END) {
    if (opt == O_OUTPUT) path = a.value;
    else code = opt == CLI_HELP ? CLI_HELP : CLI_USAGE;
  }
  if (code == CLI_HELP) code = cli_help("lab");
  else if (code == CLI_OK && !path) code = cli_misuse("lab", "-o FILE.html or -o FILE.tsv is missing");
  else if (code == CLI_OK)
    code = report_logs(a.noperands ? a.operands : folders, a.noperands ? (size_t)a.noperands : 1, path, known);
  cli_args_free(&a);
  return cli_finish(code);
}
