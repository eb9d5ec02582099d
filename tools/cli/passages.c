/* passages.c - prints the passages of hits: for people, as lines for editors, as JSON. */
#ifndef _GNU_SOURCE
#define _XOPEN_SOURCE 700 /* realpath */
#endif
#include "cli.h"

#include "../common/source.h"
#include "../common/text.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MOST ((size_t)256 << 20) /* bytes of a source that are looked through */
#define MOST_PASSAGES 64u             /* of a hit: as many as a query has terms */
#define MOST_MARKS 4096u
#define SHARE_LEAST 400u /* bytes that a hit is given at least, as far as there are any */

/* ---- where a document stands ------------------------------------------------------------------ */

/* Makes `folder` absolute: its own name, or what precedes the last '/' of a file's. */
static char *absolute_folder(const char *name, int is_file) {
  char *path = realpath(name, NULL), *slash;
  if (path && is_file && (slash = strrchr(path, '/')) != NULL) slash[slash == path] = 0;
  return path;
}

int cli_passages_open(cli_passages *p, const char *index, const char *base) {
  p->base = absolute_folder(base ? base : index, !base);
  if (!p->base) {
    cli_error("%s: %s", base ? base : index, strerror(errno));
    return CLI_FAIL;
  }
  p->here = absolute_folder(".", 0);
  if (!p->colour_off) p->colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
  p->room.passages = (gpuir_passage *)cli_resize(NULL, MOST_PASSAGES, sizeof(gpuir_passage));
  p->room.cap = MOST_PASSAGES;
  p->room.marks = (gpuir_mark *)cli_resize(NULL, MOST_MARKS, sizeof(gpuir_mark));
  p->room.marks_cap = MOST_MARKS;
  return CLI_OK;
}

void cli_passages_free(cli_passages *p) {
  free(p->base);
  free(p->here);
  free(p->room.passages);
  free(p->room.marks);
  cli_buf_free(&p->path);
  cli_buf_free(&p->made);
  cli_buf_free(&p->made_of);
  cli_filters_free(&p->filters);
}

/* Writes the path to print to p->path: from the current folder where the source lies below it, otherwise absolute. A
 * document without a source has its name, or its docID. Returns the absolute path, or an empty one. */
static const char *find_path(cli_passages *p, const gpuir_doc *doc, uint32_t docid, char absolute[PATH_MAX]) {
  const size_t n = p->here ? strlen(p->here) : 0;
  const char *shown = absolute;
  p->path.n = 0;
  if (!doc->source_len || source_path(p->base, "", doc->source, doc->source_len, absolute, PATH_MAX))
    absolute[0] = 0;
  if (absolute[0]) {
    if (n > 1 && !strncmp(absolute, p->here, n) && absolute[n] == '/' && absolute[n + 1])
      shown = absolute + n + 1;
    cli_buf_text(&p->path, shown);
  } else if (doc->name_len) {
    (void)cli_doc_name(&p->path, doc);
  } else {
    char number[24];
    cli_buf_add(&p->path, number, (size_t)snprintf(number, sizeof number, "%u", docid));
  }
  return absolute;
}

/* ---- printing --------------------------------------------------------------------------------- */

/* Prints text[at, end) of one line with its marks. */
static void print_marked(const cli_passages *p, const char *text, size_t at, size_t end,
                         const gpuir_passage *x) {
  size_t i = x->first_mark;
  const size_t last = x->first_mark + x->marks;
  for (; p->colour && i < last && at < end; i++) {
    const gpuir_mark *m = &p->room.marks[i];
    size_t from = m->offset > at ? m->offset : at,
           to = m->offset + m->bytes < end ? m->offset + m->bytes : end;
    if (from >= to) continue;
    text_print(stdout, TEXT_MESSAGE, text + at, from - at);
    fputs("\033[1;31m", stdout);
    text_print(stdout, TEXT_MESSAGE, text + from, to - from);
    fputs("\033[m", stdout);
    at = to;
  }
  text_print(stdout, TEXT_MESSAGE, text + at, end - at);
}

static void print_path(const cli_passages *p) {
  if (p->colour) fputs("\033[35m", stdout);
  text_print(stdout, TEXT_TSV, p->path.p, p->path.n);
  if (p->colour) fputs("\033[m", stdout);
}

/* Whether a mark of the passage touches [at, end). */
static int is_marked(const cli_passages *p, const gpuir_passage *x, size_t at, size_t end) {
  for (size_t i = x->first_mark; i < x->first_mark + x->marks; i++)
    if (p->room.marks[i].offset < end && p->room.marks[i].offset + p->room.marks[i].bytes > at) return 1;
  return 0;
}

/* Prints the passage's lines: for --grep those with marks as PATH:LINE:TEXT, those around as PATH-LINE-TEXT. `step` is
 * 0 where all lines of the text are one line of the source. */
static void print_lines(const cli_passages *p, const char *text, const gpuir_passage *x, uint32_t line,
                        uint32_t step) {
  const size_t stop = x->offset + x->bytes;
  for (size_t at = x->offset; at < stop; line += step) {
    const char *nl = (const char *)memchr(text + at, '\n', stop - at);
    const size_t next = nl ? (size_t)(nl - text) + 1 : stop;
    size_t end = nl ? next - 1 : stop;
    if (end > at && text[end - 1] == '\r') end--;
    if (p->grep) {
      const int marked = is_marked(p, x, at, end);
      if (marked || p->context) {
        print_path(p);
        printf("%c%lu%c", marked ? ':' : '-', (unsigned long)line, marked ? ':' : '-');
        print_marked(p, text, at, end, x);
        putchar('\n');
      }
    } else {
      print_marked(p, text, at, end, x);
      putchar('\n');
    }
    at = next;
  }
}

static void print_passage_json(const cli_passages *p, const char *text, const gpuir_passage *x,
                               uint32_t first, uint32_t last) {
  printf("{\"first\":%lu,\"last\":%lu,\"score\":%.4f,\"text\":", (unsigned long)first, (unsigned long)last,
         (double)x->score / 65536.0);
  cli_json_string(stdout, text + x->offset, x->bytes);
  printf(",\"marks\":[");
  for (size_t i = x->first_mark; i < x->first_mark + x->marks; i++)
    printf("%s[%zu,%zu]", i > x->first_mark ? "," : "", p->room.marks[i].offset - x->offset,
           p->room.marks[i].bytes);
  printf("]}");
}

/* What one hit prints. */
typedef struct hit_text {
  gpuir_doc doc;
  const char *text; /* NULL: there is none */
  char *own;        /* to be freed */
  size_t len;
  int error;  /* why there is none: ESTALE: the source has changed; ECANCELED: it was said already */
  int record; /* the text is not the bytes of the source: its lines are not the source's */
} hit_text;

/* Lets the filter make the whole text of a source, unless that is what it made last. 0, or an errno value. */
static int make_text(cli_passages *p, const cli_filter *filter, const char *path) {
  struct stat st;
  int fd;
  if (p->made_of.n && !strcmp(p->made_of.p, path)) return 0;
  p->made_of.n = 0;
  const int rc = source_open(path, 0, &fd, &st);
  if (rc) return rc;
  const int failed = cli_filter_run(filter, fd, path, &p->made);
  (void)close(fd);
  if (failed) return ECANCELED;
  cli_buf_add(&p->made_of, path, strlen(path) + 1);
  return 0;
}

/* Takes the text of a source that is no text itself. 0, or an errno value. */
static int filtered_text(cli_passages *p, hit_text *h, const char *path) {
  const cli_filter *filter = cli_filters_find(&p->filters, h->doc.source, h->doc.source_len, 0);
  if (!filter) return EPROTONOSUPPORT;
  int rc = make_text(p, filter, path);
  if (rc) return rc;
  char *text = cli_copy(p->made.p, p->made.n);
  h->len = p->made.n;
  rc = source_part(&h->doc, text, &h->len);
  if (rc)
    free(text);
  else
    h->own = text;
  return rc;
}

/* Takes the stored text, or that of the source if that is still what was indexed. */
static void take_text(cli_passages *p, const gpuir_index *index, hit_text *h, const char *path) {
  gpuir_index_info info;
  h->record = h->doc.text && h->doc.source_bytes && h->doc.source_bytes != h->doc.text_len;
  h->text = h->doc.text;
  h->len = h->doc.text_len;
  if (h->text) return;
  if (!path[0])
    h->error = ENODATA;
  else if (!gpuir_index_get_info(index, &info) &&
           source_filtered(info.filters, h->doc.source, h->doc.source_len))
    h->error = filtered_text(p, h, path);
  else
    h->error = source_text(path, &h->doc, TEXT_MOST, &h->own, &h->len);
  h->text = h->own;
}

static const char *why_not(int error) {
  switch (error) {
    case ECANCELED: return "no text";
    case EPROTONOSUPPORT: return "its text was made by a filter; --filter makes it again";
    case ESTALE: return "changed since it was indexed";
    case ENODATA: return "its text is not in the index";
    default: return strerror(error);
  }
}

static void print_missing(const cli_passages *p, const hit_text *h) {
  if (p->json) {
    printf(",\"changed\":%s", h->error == ESTALE ? "true" : "false");
    if (h->error != ESTALE) {
      printf(",\"missing\":");
      cli_json_string(stdout, why_not(h->error), strlen(why_not(h->error)));
    }
    printf(",\"passages\":[]");
  } else if (p->grep && h->error != ECANCELED) {
    cli_error("%.*s: %s", (int)p->path.n, p->path.p, why_not(h->error));
  } else if (!p->grep) {
    print_path(p);
    printf(" (%s)\n\n", why_not(h->error));
  }
}

/* The bytes that the line above a passage takes, and the empty one below. */
static size_t heading(const cli_passages *p) { return p->json || p->grep ? 0 : p->path.n + 16; }

/* Prints the passages of a hit, as far as the budget goes. */
static void print_passages(cli_passages *p, const hit_text *h) {
  if (p->json) printf(",\"changed\":false,\"passages\":[");
  for (size_t i = 0; i < p->room.n; i++) {
    const gpuir_passage *x = &p->room.passages[i];
    const size_t cost = x->bytes + heading(p);
    const uint32_t first = h->record ? h->doc.first_line : x->first_line,
                   last = h->record ? h->doc.last_line : x->last_line;
    if (cost > p->left) break;
    p->left -= cost;
    if (p->json) {
      if (i) putchar(',');
      print_passage_json(p, h->text, x, first, last);
      continue;
    }
    if (!p->grep) {
      print_path(p);
      printf(":%lu-%lu\n", (unsigned long)first, (unsigned long)last);
    }
    print_lines(p, h->text, x, first, !h->record);
    if (!p->grep) putchar('\n');
  }
  if (p->json) putchar(']');
}

void cli_passages_begin(cli_passages *p) {
  const uint64_t tokens =
      p->tokens && p->tokens < UINT64_MAX / GPUIR_TOKEN_BYTES ? p->tokens * GPUIR_TOKEN_BYTES : 0;
  p->left = p->bytes ? p->bytes : UINT64_MAX;
  if (tokens && tokens < p->left) p->left = tokens;
}

/* What a hit may have of what is left: an equal share of it, if that is enough for a passage. */
static uint64_t share(const cli_passages *p, size_t hits_left) {
  uint64_t n = p->left / (hits_left ? hits_left : 1);
  if (n < SHARE_LEAST) n = SHARE_LEAST;
  return n < p->left ? n : p->left;
}

int cli_passages_hit(cli_passages *p, const gpuir_index *index, const gpuir_query *query, uint32_t docid,
                     size_t hits_left) {
  char absolute[PATH_MAX];
  gpuir_passages_desc d;
  gpuir_error err;
  hit_text h;
  int r = GPUIR_OK;
  memset(&h, 0, sizeof h);
  memset(&d, 0, sizeof d);
  memset(&err, 0, sizeof err);
  if (gpuir_doc_get(index, docid, &h.doc)) memset(&h.doc, 0, sizeof h.doc);
  find_path(p, &h.doc, docid, absolute);
  if (p->json) {
    printf(",\"path\":");
    cli_json_string(stdout, p->path.p, p->path.n);
  }
  if (p->left <= heading(p)) {
    if (p->json) printf(",\"changed\":false,\"passages\":[]");
    return CLI_OK;
  }
  take_text(p, index, &h, absolute);
  if (!h.text) {
    print_missing(p, &h);
    return CLI_OK;
  }
  if (p->left != UINT64_MAX) d.bytes = (size_t)(share(p, hits_left) - heading(p));
  if (p->grep && !p->context) d.context = GPUIR_NO_CONTEXT;
  if (p->context) d.context = p->context;
  d.first_line = h.doc.first_line;
  d.timeout_ns = p->timeout_ns;
  r = gpuir_passages(query, &d, h.text, h.len, &p->room, &err);
  if (r) cli_error("%.*s: %s", (int)p->path.n, p->path.p, err.code ? err.msg : gpuir_strerror(r));
  print_passages(p, &h);
  free(h.own);
  return r ? CLI_FAIL : CLI_OK;
}
