/* page.c - gpuir lab report: what papers found beside what was measured, with all charts, as one HTML file.
 *
 * Nothing in the file comes from elsewhere: charts stand inside, with one style for all, in colours for light and dark
 * pages. Charts are those of TSV files in folders, one folder for a collection; claims.c says what is held against
 * them. Read from the bottom: report_command.
 */
#include "claims.h"

#include "../cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- collections: the charts of a folder --------------------------------------------------------------- */

typedef struct log_file {
  char *name;
  plot_table *table;
} log_file;

typedef struct collection {
  const char *path;
  char *label;
  log_file *file;
  size_t nfiles;
  plot_chart *chart;
  size_t *of; /* the file of each chart */
  size_t ncharts;
} collection;

enum { HELD, IN_PART, REFUTED, UNKNOWN, VERDICTS };

typedef struct page {
  collection *all;
  size_t n;
  int *verdict; /* of each claim */
  cli_buf out;
} page;

static void collection_free(collection *c) {
  for (size_t i = 0; i < c->ncharts; i++) plot_chart_free(&c->chart[i]);
  for (size_t i = 0; i < c->nfiles; i++) {
    plot_table_close(c->file[i].table);
    free(c->file[i].name);
  }
  free(c->chart);
  free(c->of);
  free(c->file);
  free(c->label);
}

/* Returns the place of the text on a chart's axis, which is added unless it is there. */
static size_t place_of(plot_chart *c, const char *name) {
  size_t i = 0;
  while (i < c->nplaces && strcmp(c->place[i], name) != 0) i++;
  if (i < c->nplaces) return i;
  c->place = (const char **)cli_resize((void *)c->place, c->nplaces + 1, sizeof *c->place);
  c->place[c->nplaces] = name;
  return c->nplaces++;
}

/* The chart of that name that takes the series of this one, which has no series of the same names: runs of several
 * policies, each of which writes a file, make one chart. NULL: there is none. */
static plot_chart *find_kin(collection *c, const plot_chart *chart) {
  for (size_t i = 0; i < c->ncharts; i++) {
    int kin = !strcmp(c->chart[i].figure.id, chart->figure.id) && c->chart[i].figure.shape == chart->figure.shape;
    for (size_t s = 0; s < chart->nseries; s++)
      for (size_t t = 0; t < c->chart[i].nseries; t++)
        kin &= strcmp(chart->series[s].name, c->chart[i].series[t].name) != 0;
    if (kin) return &c->chart[i];
  }
  return NULL;
}

/* Moves the series of a chart to another one. */
static void merge_chart(plot_chart *from, plot_chart *to) {
  to->series = (plot_series *)cli_resize(to->series, to->nseries + from->nseries, sizeof *to->series);
  for (size_t s = 0; s < from->nseries; s++) {
    plot_series *series = &from->series[s];
    for (size_t p = 0; from->figure.shape == LAB_BARS && p < series->n; p++)
      series->point[p].place = place_of(to, from->place[series->point[p].place]);
    to->series[to->nseries++] = *series;
  }
  from->nseries = 0;
}

static int keep_chart(void *user, plot_chart *chart) {
  collection *c = (collection *)user;
  plot_chart *kin = find_kin(c, chart);
  if (kin) {
    merge_chart(chart, kin);
    return CLI_OK;
  }
  if ((c->ncharts & (c->ncharts - 1)) == 0) {
    const size_t cap = c->ncharts ? c->ncharts * 2 : 1;
    c->chart = (plot_chart *)cli_resize(c->chart, cap, sizeof *c->chart);
    c->of = (size_t *)cli_resize(c->of, cap, sizeof *c->of);
  }
  c->of[c->ncharts] = c->nfiles - 1;
  c->chart[c->ncharts] = *chart;
  c->chart[c->ncharts++].inside = 1;
  memset(chart, 0, sizeof *chart);
  return CLI_OK;
}

static int compare_files(const void *x, const void *y) {
  return strcmp(((const log_file *)x)->name, ((const log_file *)y)->name);
}

static void add_file(collection *c, const char *name, size_t len) {
  c->file = (log_file *)cli_resize(c->file, c->nfiles + 1, sizeof *c->file);
  c->file[c->nfiles].name = cli_copy(name, len);
  c->file[c->nfiles++].table = NULL;
}

/* Finds the TSV files of the folder, by name. */
static int find_files(collection *c) {
  DIR *dir = opendir(c->path);
  if (!dir) {
    cli_error("%s: %s", c->path, strerror(errno));
    return CLI_FAIL;
  }
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    size_t len = strlen(e->d_name);
    if (len < 5 || e->d_name[0] == '.' || strcmp(e->d_name + len - 4, ".tsv") != 0) continue;
    add_file(c, e->d_name, len);
  }
  closedir(dir);
  if (c->nfiles) qsort(c->file, c->nfiles, sizeof *c->file, compare_files);
  else cli_error("%s: no TSV files", c->path);
  return c->nfiles ? CLI_OK : CLI_FAIL;
}

/* Reads LABEL=FOLDER, or a folder, which then gives the label; a file stands for a folder that has it alone. */
static int read_collection(const char *operand, plot_known *known, collection *c) {
  const char *equals = strchr(operand, '='), *slash = strchr(operand, '/'), *name;
  memset(c, 0, sizeof *c);
  const int labelled = equals && equals > operand && (!slash || slash > equals);
  c->path = labelled ? equals + 1 : operand;
  size_t len = strlen(c->path);
  while (len > 1 && c->path[len - 1] == '/') len--;
  name = c->path + len;
  while (name > c->path && name[-1] != '/') name--;
  c->label = labelled ? cli_copy(operand, (size_t)(equals - operand)) : cli_copy(name, (size_t)(c->path + len - name));
  struct stat st;
  int code = CLI_OK, alone = !stat(c->path, &st) && !S_ISDIR(st.st_mode);
  if (alone) add_file(c, name, (size_t)(c->path + len - name));
  else code = find_files(c);
  const size_t n = c->nfiles;
  c->nfiles = 0;
  for (size_t i = 0; i < n; i++) {
    cli_buf path = {NULL, 0, 0};
    cli_buf_text(&path, c->path);
    if (!alone) {
      cli_buf_char(&path, '/');
      cli_buf_text(&path, c->file[i].name);
    }
    cli_buf_char(&path, 0);
    c->nfiles++;
    if (code == CLI_OK) code = plot_table_open(path.p, &c->file[i].table);
    if (code == CLI_OK) code = plot_table_charts(c->file[i].table, NULL, known, 1, keep_chart, c);
    cli_buf_free(&path);
  }
  return code;
}

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

static const char *const verdict_names[VERDICTS] = {"held", "held in part", "did not hold", "not judged"};
static const char *const verdict_marks[VERDICTS] = {"\xe2\x9c\x93", "\xe2\x97\x90", "\xe2\x9c\x97", "\xe2\x80\x93"};

static void put_badge(page *g, int verdict, const char *label) {
  putf(g, "<span class=\"badge v%d\">%s ", verdict, verdict_marks[verdict]);
  put_plain(g, label);
  put(g, "</span>");
}

/* ---- claims over collections --------------------------------------------------------------------------- */

static const claims_place *find_place(const char *id) {
  const claims_place *p = claims_places;
  while (p->id && strcmp(p->id, id) != 0) p++;
  return p;
}

static formula_scope scope_of(const collection *c, const claims_place *place) {
  formula_scope s = {c->chart, c->ncharts, place->charts};
  return s;
}

/* HELD, REFUTED or UNKNOWN in one collection. A formula that is wrong stops the command. */
static int judge(const collection *c, const claims_claim *claim, int *code) {
  const formula_scope s = scope_of(c, find_place(claim->place));
  double v = NAN;
  size_t wrong = claim->test ? formula_value(&s, claim->test, &v) : 0;
  if (wrong) {
    cli_error("%s: the formula '%s' is wrong at character %zu", claim->place, claim->test, wrong);
    *code = CLI_FAIL;
  }
  return isnan(v) ? UNKNOWN : v > 0 ? HELD : REFUTED;
}

static int judge_all(page *g) {
  size_t n = 0;
  int code = CLI_OK;
  while (claims_claims[n].place) n++;
  g->verdict = (int *)cli_resize(NULL, n, sizeof *g->verdict);
  for (size_t i = 0; i < n; i++) {
    int held = 0, refuted = 0;
    for (size_t c = 0; c < g->n; c++) {
      int verdict = judge(&g->all[c], &claims_claims[i], &code);
      held |= verdict == HELD;
      refuted |= verdict == REFUTED;
    }
    g->verdict[i] = held && refuted ? IN_PART : held ? HELD : refuted ? REFUTED : UNKNOWN;
  }
  return code;
}

static int drawn_in(const collection *c, const claims_place *place) {
  size_t i = 0;
  while (i < c->ncharts && !formula_names(place->charts, c->chart[i].figure.id)) i++;
  return i < c->ncharts;
}

static int is_drawn(const page *g, const claims_place *place) {
  size_t c = 0;
  while (c < g->n && !drawn_in(&g->all[c], place)) c++;
  return c < g->n;
}

/* Writes what each collection says of a claim, as a badge and a text: those that it is judged by, or all if it is by
 * none. */
static int put_ours(page *g, const claims_claim *claim, int verdict) {
  int any = 0, code = CLI_OK;
  for (size_t c = 0; c < g->n; c++) {
    const formula_scope s = scope_of(&g->all[c], find_place(claim->place));
    const int own = judge(&g->all[c], claim, &code);
    cli_buf text = {NULL, 0, 0};
    int values = formula_text(&s, claim->ours, &text);
    cli_buf_char(&text, 0);
    if (values < 0) {
      cli_error("%s: a formula of the text '%.100s' is wrong", claim->place, claim->ours);
      code = CLI_FAIL;
    } else if (values && (own != UNKNOWN || verdict == UNKNOWN)) {
      put(g, "<li>");
      put_badge(g, own, g->all[c].label);
      put(g, " ");
      put_prose(g, text.p);
      put(g, "</li>");
      any = 1;
    }
    cli_buf_free(&text);
  }
  if (!any) put(g, claim->test ? "<li>Not measured yet.</li>" : "<li>See the chart.</li>");
  return code;
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

/* Returns whether another chart of the collection has the same name, so that its file must tell them apart. */
static int has_twin(const collection *c, size_t chart) {
  for (size_t i = 0; i < c->ncharts; i++)
    if (i != chart && !strcmp(c->chart[i].figure.id, c->chart[chart].figure.id)) return 1;
  return 0;
}

/* Writes the charts of a collection that have one of these names; the first collection's are unfolded. Returns whether
 * there are any. */
static int put_charts(page *g, const collection *c, const char *names, int open) {
  int any = 0;
  for (size_t i = 0; i < c->ncharts; i++) {
    if (!formula_names(names, c->chart[i].figure.id)) continue;
    if (!any++) {
      putf(g, "<details class=\"charts\"%s><summary>", open ? " open" : "");
      put_plain(g, c->label);
      put(g, "</summary>");
    }
    put(g, "<figure><div class=\"scroll\">");
    plot_svg(&c->chart[i], &g->out);
    put(g, "</div>");
    if (has_twin(c, i)) {
      put(g, "<figcaption class=\"dim\"><code>");
      put_plain(g, c->file[c->of[i]].name);
      put(g, "</code></figcaption>");
    }
    put_values(g, &c->chart[i]);
    put(g, "</figure>");
  }
  if (any) put(g, "</details>\n");
  return any;
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
    ".badge{display:inline-block;border-radius:99px;padding:0 .6em;font-size:.82rem;line-height:1.6;font-weight:600;"
    "white-space:nowrap;background:var(--nonebg);color:var(--dim)}.v0{background:var(--goodbg);color:var(--good)}"
    ".v1{background:var(--partbg);color:var(--part)}.v2{background:var(--badbg);color:var(--bad)}\n"
    ".mark{font-weight:700}.m0{color:var(--good)}.m1{color:var(--part)}.m2{color:var(--bad)}.m3{color:var(--dim)}\n"
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

static void put_head(page *g) {
  size_t counts[VERDICTS] = {0};
  for (size_t i = 0; claims_claims[i].place; i++) counts[g->verdict[i]]++;
  put(g,
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">\n<title>Five papers, measured again</title>\n<style>\n");
  put(g, style_text);
  put(g, style_layout);
  put(g, plot_style);
  put(g,
      "</style>\n</head>\n<body>\n<header class=\"head\">\n<h1>Five papers on inverted lists and GPUs, measured "
      "again</h1>\n<p class=\"lead\">What the papers found stands beside what <code>gpuir lab</code> measured, with "
      "every "
      "table and figure that the logs allow to draw. Each claim has a test that could refute it; the logs decide.</p>\n"
      "<ul class=\"sum\">");
  for (int v = 0; v < VERDICTS; v++) putf(g, "<li><b class=\"m%d\">%zu</b>%s</li>", v, counts[v], verdict_names[v]);
  put(g, "</ul>\n<p class=\"dim\">Collections: ");
  for (size_t c = 0; c < g->n; c++) {
    if (c) put(g, ", ");
    put_plain(g, g->all[c].label);
  }
  put(g,
      ". The papers' own are not public, so trends are compared and not numbers. Machines, commits and commands stand "
      "under <a href=\"#logs\">Logs</a>.</p>\n");
}

/* Returns the verdict that a place's claims have in common, or IN_PART. */
static int place_verdict(const page *g, const claims_place *place) {
  int verdict = UNKNOWN;
  for (size_t i = 0; claims_claims[i].place; i++) {
    if (strcmp(claims_claims[i].place, place->id) != 0 || g->verdict[i] == UNKNOWN) continue;
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
  put(g, "</td><td>");
  put_badge(g, g->verdict[i], verdict_names[g->verdict[i]]);
  put(g, "</td><td>");
  put_prose(g, claim->why);
  put(g, "</td></tr>\n");
}

static void put_held(page *g) {
  put(g,
      "<section id=\"held\"><h2>What held, what did not, why</h2>\n<p>A claim held in part if it held in some "
      "collections. One is not judged if no log has all values of its test, or if the paper gives none. The reasons "
      "are "
      "ours, and as good as we know them.</p>\n<table class=\"held\"><thead><tr><th>Where</th><th>The paper</th>"
      "<th>Here</th><th>Why</th></tr></thead><tbody>\n");
  for (const claims_paper *p = claims_papers; p->key; p++) {
    putf(g, "<tr class=\"paper\"><th colspan=\"4\">%s</th></tr>\n", p->name);
    for (size_t i = 0; claims_claims[i].place; i++)
      if (of_paper(find_place(claims_claims[i].place), p)) put_held_row(g, i, find_place(claims_claims[i].place));
  }
  put(g, "</tbody></table></section>\n");
}

static int put_place(page *g, const claims_place *place) {
  int code = CLI_OK, open = 1;
  putf(g, "<article id=\"%s\"><h3>%s. %s</h3>\n<div>", place->id, place->where, place->title);
  for (size_t i = 0; claims_claims[i].place; i++) {
    const claims_claim *claim = &claims_claims[i];
    if (strcmp(claim->place, place->id) != 0) continue;
    putf(g, "<div class=\"claim c%d\"><p class=\"who\">The paper</p><p>", g->verdict[i]);
    put_prose(g, claim->found);
    put(g, "</p><p class=\"who\">Here</p><ul>");
    if (put_ours(g, claim, g->verdict[i])) code = CLI_FAIL;
    put(g, "</ul><p class=\"who\">Why</p><p class=\"why\">");
    put_prose(g, claim->why);
    put(g, "</p></div>\n");
  }
  put(g, "</div><div>");
  for (size_t c = 0; c < g->n; c++)
    if (put_charts(g, &g->all[c], place->charts, open)) open = 0;
  put(g, "</div></article>\n");
  return code;
}

static int put_papers(page *g) {
  int code = CLI_OK;
  for (const claims_paper *p = claims_papers; p->key; p++) {
    putf(g, "<section id=\"%s\"><h2>%s</h2><p class=\"cite\">", p->key, p->name);
    put_plain(g, p->title);
    put(g, "</p>\n");
    for (const claims_place *place = claims_places; place->id; place++)
      if (of_paper(place, p) && is_drawn(g, place) && put_place(g, place)) code = CLI_FAIL;
    put(g, "</section>\n");
  }
  return code;
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

static void put_others(page *g) {
  put(g, "<section id=\"other\"><h2>Other charts</h2>\n<p>What the same runs measured beyond the papers.</p>\n");
  for (size_t c = 0; c < g->n; c++) {
    const collection *col = &g->all[c];
    for (size_t i = 0; i < col->ncharts; i++) {
      const char *id = col->chart[i].figure.id;
      int first = 1, open = 1; /* once for all collections that have it */
      for (size_t d = 0; d <= c; d++)
        for (size_t j = 0; j < (d == c ? i : g->all[d].ncharts); j++)
          first &= strcmp(g->all[d].chart[j].figure.id, id) != 0;
      if (!is_other(id) || !first) continue;
      put(g, "<article><h3>");
      put_plain(g, col->chart[i].figure.title);
      put(g, "</h3><div class=\"dim\"><code>");
      put_plain(g, id);
      put(g, "</code></div><div>");
      for (size_t d = c; d < g->n; d++)
        if (put_charts(g, &g->all[d], id, open)) open = 0;
      put(g, "</div></article>\n");
    }
  }
  put(g, "</section>\n");
}

static void put_logs(page *g) {
  put(g,
      "<section id=\"logs\"><h2>Logs</h2>\n<p>What the heads of the files say that these charts are drawn "
      "from.</p>\n<dl>\n");
  for (size_t c = 0; c < g->n; c++)
    for (size_t f = 0; f < g->all[c].nfiles; f++) {
      const char *comment;
      put(g, "<dt>");
      put_plain(g, g->all[c].label);
      put(g, ", <code>");
      put_plain(g, g->all[c].file[f].name);
      put(g, "</code></dt>\n");
      for (size_t i = 0; (comment = plot_table_comment(g->all[c].file[f].table, i)) != NULL; i++) {
        put(g, "<dd>");
        put_plain(g, comment);
        put(g, "</dd>\n");
      }
    }
  put(g,
      "</dl></section>\n<footer class=\"dim\">Made by <code>gpuir lab "
      "report</code>.</footer>\n</main>\n</body>\n</html>\n");
}

/* ---- the command --------------------------------------------------------------------------------------- */

static int write_page(const char *path, const cli_buf *out) {
  FILE *f = fopen(path, "wb");
  int bad = !f || fwrite(out->p, 1, out->n, f) != out->n;
  if (f && fclose(f)) bad = 1;
  if (bad) cli_error("%s: %s", path, strerror(errno));
  return bad ? CLI_FAIL : CLI_OK;
}

static int make_page(page *g, const char *path) {
  int code = judge_all(g);
  if (code == CLI_OK) {
    put_head(g);
    put_contents(g);
    put_held(g);
    code = put_papers(g);
    put_missing(g);
    put_others(g);
    put_logs(g);
  }
  return code == CLI_OK ? write_page(path, &g->out) : code;
}

static int report_folders(char *const *folders, size_t n, const char *path, plot_known *known) {
  page g;
  int code = CLI_OK;
  memset(&g, 0, sizeof g);
  g.all = (collection *)cli_resize(NULL, n, sizeof *g.all);
  while (g.n < n && code == CLI_OK) {
    code = read_collection(folders[g.n], known, &g.all[g.n]);
    g.n++;
  }
  if (code == CLI_OK) code = make_page(&g, path);
  for (size_t i = 0; i < g.n; i++) collection_free(&g.all[i]);
  free(g.all);
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
  else if (code == CLI_OK && !path) code = cli_misuse("lab", "-o FILE.html is missing");
  else if (code == CLI_OK)
    code = report_folders(a.noperands ? a.operands : folders, a.noperands ? (size_t)a.noperands : 1, path, known);
  cli_args_free(&a);
  return cli_finish(code);
}
