/* passages.c - writes the passages of hits. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CLOCK_MONOTONIC, PATH_MAX */
#endif
#include "passages.h"

#include "source.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_PASSAGES 64u /* of a hit: as many as a query has terms */
#define MOST_MARKS 4096u
#define SHARE_LEAST 400u /* bytes that a hit is given at least, as far as there are any */

int passages_open(passages *p) {
  p->room.passages = (gpuir_passage *)malloc(MOST_PASSAGES * sizeof *p->room.passages);
  p->room.cap = MOST_PASSAGES;
  p->room.marks = (gpuir_mark *)malloc(MOST_MARKS * sizeof *p->room.marks);
  p->room.marks_cap = MOST_MARKS;
  return p->room.passages && p->room.marks ? GPUIR_OK : GPUIR_E_NOMEM;
}

void passages_close(passages *p) {
  free(p->room.passages);
  free(p->room.marks);
  free(p->path);
  p->room.passages = NULL;
  p->room.marks = NULL;
  p->path = NULL;
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void passages_begin(passages *p) {
  const uint64_t tokens = p->tokens && p->tokens < UINT64_MAX / GPUIR_TOKEN_BYTES ? p->tokens * GPUIR_TOKEN_BYTES : 0;
  p->left = p->bytes ? p->bytes : UINT64_MAX;
  if (tokens && tokens < p->left) p->left = tokens;
  p->deadline = p->timeout_ns ? now_ns() + p->timeout_ns : 0;
  p->shown = p->cut = 0;
}

int passages_are_cut(const passages *p) { return p->cut && !p->shown; }

/* ---- where a document stands ------------------------------------------------------------------ */

static int path_room(passages *p, size_t n) {
  char *bigger;
  if (n <= p->path_cap) return GPUIR_OK;
  bigger = (char *)realloc(p->path, n);
  if (!bigger) return GPUIR_E_NOMEM;
  p->path = bigger;
  p->path_cap = n;
  return GPUIR_OK;
}

/* Where the document has no source, p->path becomes its name, or its docID. */
static int name_path(passages *p, const gpuir_doc *doc, uint32_t docid) {
  if (path_room(p, doc->name_len + 24)) return GPUIR_E_NOMEM;
  p->path_len = gpuir_doc_name(doc, p->path, p->path_cap);
  if (!p->path_len) p->path_len = (size_t)snprintf(p->path, p->path_cap, "%lu", (unsigned long)docid);
  return GPUIR_OK;
}

int passages_path(passages *p, const gpuir_doc *doc, uint32_t docid, char *absolute, size_t size) {
  const size_t n = p->here ? strlen(p->here) : 0;
  const char *shown = absolute;
  absolute[0] = 0;
  if (!p->base || !doc->source_len || source_path(p->base, "", doc->source, doc->source_len, absolute, size)) {
    absolute[0] = 0;
    return name_path(p, doc, docid);
  }
  if (n > 1 && !strncmp(absolute, p->here, n) && absolute[n] == '/' && absolute[n + 1]) shown = absolute + n + 1;
  p->path_len = strlen(shown);
  if (path_room(p, p->path_len + 1)) return GPUIR_E_NOMEM;
  memcpy(p->path, shown, p->path_len + 1);
  return GPUIR_OK;
}

/* ---- writing ---------------------------------------------------------------------------------- */

static void put_string(const passages *p, const char *s) { p->put(p->sink, s, strlen(s)); }

static void put_format(const passages *p, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

static void put_format(const passages *p, const char *format, ...) {
  char text[256]; /* numbers, punctuation, why there is no text */
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  put_string(p, text);
}

static void put_json(const passages *p, const char *s, size_t n) {
  put_string(p, "\"");
  text_write(p->put, p->sink, TEXT_JSON, s, n);
  put_string(p, "\"");
}

/* Writes text[at, end) of one line with its marks. */
static void put_marked(const passages *p, const char *text, size_t at, size_t end, const gpuir_passage *x) {
  size_t i = x->first_mark;
  const size_t last = x->first_mark + x->marks;
  for (; p->colour && i < last && at < end; i++) {
    const gpuir_mark *m = &p->room.marks[i];
    size_t from = m->offset > at ? m->offset : at, to = m->offset + m->bytes < end ? m->offset + m->bytes : end;
    if (from >= to) continue;
    text_write(p->put, p->sink, TEXT_MESSAGE, text + at, from - at);
    put_string(p, "\033[1;31m");
    text_write(p->put, p->sink, TEXT_MESSAGE, text + from, to - from);
    put_string(p, "\033[m");
    at = to;
  }
  text_write(p->put, p->sink, TEXT_MESSAGE, text + at, end - at);
}

static void put_path(const passages *p) {
  if (p->colour) put_string(p, "\033[35m");
  text_write(p->put, p->sink, TEXT_TSV, p->path, p->path_len);
  if (p->colour) put_string(p, "\033[m");
}

/* Returns whether a mark of the passage touches [at, end). */
static int is_marked(const passages *p, const gpuir_passage *x, size_t at, size_t end) {
  size_t i;
  for (i = x->first_mark; i < x->first_mark + x->marks; i++)
    if (p->room.marks[i].offset < end && p->room.marks[i].offset + p->room.marks[i].bytes > at) return 1;
  return 0;
}

/* Writes text[at, end), which is line number `line`: for `grep` as PATH:LINE:TEXT if it has a mark, and otherwise as
 * PATH-LINE-TEXT where lines around are asked for. */
static void put_line(const passages *p, const char *text, const gpuir_passage *x, size_t at, size_t end,
    uint32_t line) {
  if (p->grep) {
    const char sign = is_marked(p, x, at, end) ? ':' : '-';
    if (sign == '-' && !p->context) return;
    put_path(p);
    put_format(p, "%c%lu%c", sign, (unsigned long)line, sign);
  }
  put_marked(p, text, at, end, x);
  put_string(p, "\n");
}

/* Writes the passage's lines. `step` is 0 where all lines of the text are one line of the source. */
static void put_lines(const passages *p, const char *text, const gpuir_passage *x, uint32_t line, uint32_t step) {
  const size_t stop = x->offset + x->bytes;
  size_t at = x->offset;
  while (at < stop) {
    const char *nl = (const char *)memchr(text + at, '\n', stop - at);
    const size_t next = nl ? (size_t)(nl - text) + 1 : stop;
    size_t end = nl ? next - 1 : stop;
    if (end > at && text[end - 1] == '\r') end--;
    put_line(p, text, x, at, end, line);
    at = next;
    line += step;
  }
}

static void put_passage_json(const passages *p, const char *text, const gpuir_passage *x, uint32_t first,
    uint32_t last) {
  size_t i;
  put_format(p, "{\"first\":%lu,\"last\":%lu,\"score\":%.4f,\"text\":", (unsigned long)first, (unsigned long)last,
      (double)x->score / 65536.0);
  put_json(p, text + x->offset, x->bytes);
  put_string(p, ",\"marks\":[");
  for (i = x->first_mark; i < x->first_mark + x->marks; i++)
    put_format(p, "%s[%zu,%zu]", i > x->first_mark ? "," : "", p->room.marks[i].offset - x->offset,
        p->room.marks[i].bytes);
  put_string(p, "]}");
}

/* ---- one hit ---------------------------------------------------------------------------------- */

/* What one hit shows. */
typedef struct hit_text {
  gpuir_doc doc;
  const char *text; /* NULL: there is none */
  char *own; /* to be freed */
  size_t len;
  int error; /* why there is none */
  int record; /* the text is not the bytes of the source: its lines are not the source's */
} hit_text;

/* Returns whether a filter turned the document's source into text. */
static int is_filtered(const gpuir_index *index, const gpuir_doc *doc) {
  gpuir_index_info info;
  return gpuir_index_get_info(index, &info) == GPUIR_OK && source_filtered(info.filters, doc->source, doc->source_len);
}

/* Takes the stored text, or that of the source if that is still what was indexed. */
static void take_text(const passages *p, const gpuir_index *index, hit_text *h, uint32_t docid, const char *path) {
  h->record = h->doc.text && h->doc.source_bytes && h->doc.source_bytes != h->doc.text_len;
  h->text = h->doc.text;
  h->len = h->doc.text_len;
  if (h->text) return;
  if (!path[0]) h->error = ENODATA;
  else if (!is_filtered(index, &h->doc)) h->error = p->read(p->arg, path, docid, &h->doc, &h->own, &h->len);
  else h->error = p->filter ? p->filter(p->arg, path, docid, &h->doc, &h->own, &h->len) : PASSAGES_FILTERED;
  h->text = h->own;
}

static const char *why_not(int error) {
  switch (error) {
  case PASSAGES_TOLD: return "no text";
  case PASSAGES_FILTERED: return "its text was made by a filter";
  case ESTALE: return "changed since it was indexed";
  case ENODATA: return "its text is not in the index";
  default: return strerror(error);
  }
}

/* Takes `cost` bytes off what is left of the budgets, if they are there. */
static int is_paid(passages *p, size_t cost) {
  const int fits = cost <= p->left;
  if (fits) {
    p->left -= cost;
    p->shown = 1;
  } else {
    p->cut = 1;
  }
  return fits;
}

static void put_missing_json(passages *p, int error, const char *why) {
  put_format(p, ",\"changed\":%s", error == ESTALE ? "true" : "false");
  if (error != ESTALE && is_paid(p, strlen(why))) {
    put_string(p, ",\"missing\":");
    put_json(p, why, strlen(why));
  }
  put_string(p, ",\"passages\":[]");
}

/* Says in place of a text why there is none, if the budgets have room for that. */
static void put_missing(passages *p, const hit_text *h) {
  const unsigned long line = h->doc.first_line ? h->doc.first_line : 1;
  char why[160], said[200];
  snprintf(why, sizeof why, "%s%s", why_not(h->error),
      h->error == PASSAGES_FILTERED && p->filter_hint ? p->filter_hint : "");
  if (p->json) {
    put_missing_json(p, h->error, why);
    return;
  }
  if (p->grep) snprintf(said, sizeof said, ":%lu:(%s)\n", line, why);
  else snprintf(said, sizeof said, " (%s)\n\n", why);
  if (p->grep && p->missing && h->error == PASSAGES_TOLD) return;
  if (!is_paid(p, p->path_len + strlen(said))) return;
  if (p->grep && p->missing) {
    p->missing(p->arg, p->path, p->path_len, why);
    return;
  }
  put_path(p);
  put_string(p, said);
}

/* The bytes that the line above a passage takes, and the empty one below. */
static size_t heading(const passages *p) { return p->json || p->grep ? 0 : p->path_len + 16; }

static void add_up(void *sum, const char *bytes, size_t n) {
  (void)bytes;
  *(size_t *)sum += n;
}

/* Returns what a passage costs of the budgets, with its heading, or as `grep` with what stands before its lines. */
static size_t cost_of(const passages *p, const hit_text *h, const gpuir_passage *x, uint32_t first) {
  passages counted = *p;
  size_t sum = 0;
  if (!p->grep) return x->bytes + heading(p);
  counted.put = add_up;
  counted.sink = &sum;
  counted.colour = 0;
  put_lines(&counted, h->text, x, first, !h->record);
  return sum;
}

/* Writes the passages of a hit, as far as the budget goes; as `grep`, the best one alone if more cost over `share`. */
static void put_passages(passages *p, const hit_text *h, uint64_t share) {
  const uint64_t before = p->left;
  size_t i;
  if (p->json) put_string(p, ",\"changed\":false,\"passages\":[");
  for (i = 0; i < p->room.n; i++) {
    const gpuir_passage *x = &p->room.passages[i];
    const uint32_t first = h->record ? h->doc.first_line : x->first_line,
                   last = h->record ? h->doc.last_line : x->last_line;
    const size_t cost = cost_of(p, h, x, first);
    if (p->grep && i && before - p->left + cost > share) break;
    if (!is_paid(p, cost)) break;
    if (p->json) {
      if (i) put_string(p, ",");
      put_passage_json(p, h->text, x, first, last);
      continue;
    }
    if (!p->grep) {
      put_path(p);
      put_format(p, ":%lu-%lu\n", (unsigned long)first, (unsigned long)last);
    }
    put_lines(p, h->text, x, first, !h->record);
    if (!p->grep) put_string(p, "\n");
  }
  if (p->json) put_string(p, "]");
}

/* Returns what a hit may have of what is left: an equal share of it, if that is enough for a passage below its
 * heading. */
static uint64_t share(const passages *p, size_t hits_left) {
  const uint64_t least = SHARE_LEAST + heading(p);
  uint64_t n = p->left / (hits_left ? hits_left : 1);
  if (n < least) n = least;
  return n < p->left ? n : p->left;
}

/* Finds the passages of a text, and writes them. */
static int find_passages(passages *p, const gpuir_query *query, const hit_text *h, size_t hits_left, gpuir_error *err) {
  const uint64_t mine = share(p, hits_left);
  gpuir_passages_desc d;
  int rc;
  memset(&d, 0, sizeof d);
  if (p->left != UINT64_MAX) d.bytes = (size_t)(mine - heading(p));
  if (p->grep && !p->context) d.context = GPUIR_NO_CONTEXT;
  if (p->context) d.context = p->context;
  d.first_line = h->doc.first_line;
  d.cancel = p->cancel;
  if (p->deadline) {
    const uint64_t now = now_ns();
    d.timeout_ns = p->deadline > now ? p->deadline - now : 1;
  }
  rc = gpuir_passages(query, &d, h->text, h->len, &p->room, err);
  if (!rc && !p->room.n && d.bytes && d.bytes < SHARE_LEAST && d.bytes < h->len) p->cut = 1; /* no word fits */
  put_passages(p, h, mine);
  return rc;
}

int passages_hit(passages *p, const gpuir_index *index, const gpuir_query *query, uint32_t docid, size_t hits_left,
    gpuir_error *err) {
  char absolute[PATH_MAX];
  hit_text h;
  int rc = GPUIR_OK;
  memset(&h, 0, sizeof h);
  if (gpuir_doc_get(index, docid, &h.doc)) memset(&h.doc, 0, sizeof h.doc);
  rc = passages_path(p, &h.doc, docid, absolute, sizeof absolute);
  if (rc) return rc;
  if (p->json) {
    put_string(p, ",\"path\":");
    put_json(p, p->path, p->path_len);
  }
  if (p->left <= heading(p)) {
    p->cut = 1;
    if (p->json) put_string(p, ",\"changed\":false,\"passages\":[]");
    return GPUIR_OK;
  }
  take_text(p, index, &h, docid, absolute);
  if (h.text) rc = find_passages(p, query, &h, hits_left, err);
  else put_missing(p, &h);
  free(h.own);
  return rc;
}
