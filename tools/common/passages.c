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

/* What one hit shows. */
typedef struct hit_text {
  gpuir_doc doc;
  decoded source;
  int error; /* why there is no text */
} hit_text;

/* ---- lines ------------------------------------------------------------------------------------ */

/* Bytes [at, end) of one line of the text, which a passage shows. */
typedef struct part {
  size_t at, end;
  const gpuir_passage *x;
} part;

/* Finds the part of a passage that begins at `at`: up to the line's end. Returns where the next one begins. */
static size_t next_part(hit_text *h, const gpuir_passage *x, size_t at, part *to) {
  const char *text = h->source.text;
  const size_t stop = x->offset + x->bytes;
  const char *nl = (const char *)memchr(text + at, '\n', stop - at);
  const size_t line = nl ? (size_t)(nl - text) : stop, end = decoded_line_end(&h->source, at, line);
  to->x = x;
  to->at = at;
  to->end = end;
  if (end > at && text[end - 1] == (end == line ? '\r' : ' ')) to->end--; /* ' ': between strings of an array */
  return end == line && nl ? end + 1 : end;
}

/* Returns the first byte of a part that is marked; its end: none is. */
static size_t first_mark(const passages *p, const part *t) {
  size_t i;
  for (i = t->x->first_mark; i < t->x->first_mark + t->x->marks; i++) {
    const gpuir_mark *m = &p->room.marks[i];
    if (m->offset < t->end && m->offset + m->bytes > t->at) return m->offset > t->at ? m->offset : t->at;
  }
  return t->end;
}

/* Returns whether [at, end) lies within one line of the text. */
static int in_one_line(const hit_text *h, size_t at, size_t end) {
  return at >= end || !memchr(h->source.text + at, '\n', end - at);
}

/* Finds the marked part that another passage has of the line of `t`. Returns 0 if there is none. */
static int part_in_line(const passages *p, hit_text *h, const part *t, const gpuir_passage *x, part *to) {
  const size_t stop = x->offset + x->bytes;
  size_t at = x->offset;
  if (at >= t->end ? !in_one_line(h, t->end, at) : !in_one_line(h, stop, t->at)) return 0;
  while (at < stop) {
    const size_t next = next_part(h, x, at, to);
    if (first_mark(p, to) < to->end && in_one_line(h, to->end, t->at) && in_one_line(h, t->end, to->at)) return 1;
    at = next;
  }
  return 0;
}

/* Collects the marked parts that the first n passages have of the line of `t`, in order. Returns how many; 0: a passage
 * before that of `t` has one, so that they are written already. */
static size_t parts_of_line(const passages *p, hit_text *h, const part *t, size_t n, part *parts) {
  size_t i, j, found = 0;
  for (i = 0; i < n; i++) {
    part other = *t;
    if (&p->room.passages[i] != t->x && !part_in_line(p, h, t, &p->room.passages[i], &other)) continue;
    if (&p->room.passages[i] < t->x) return 0;
    for (j = found++; j && parts[j - 1].at > other.at; j--) parts[j] = parts[j - 1];
    parts[j] = other;
  }
  return found;
}

/* Writes a line as PATH:LINE:TEXT if it has a mark, and otherwise as PATH-LINE-TEXT where lines around are asked for.
 */
static void put_row(const passages *p, hit_text *h, const part *t, size_t n) {
  part parts[MOST_PASSAGES];
  size_t i, found = 1, mark = first_mark(p, t);
  const char sign = mark < t->end ? ':' : '-';
  parts[0] = *t;
  if (sign == '-' && !p->context) return;
  if (sign == ':') found = parts_of_line(p, h, t, n, parts);
  if (!found) return;
  mark = sign == ':' ? first_mark(p, &parts[0]) : t->at;
  put_path(p);
  if (h->source.lineless) put_format(p, "%c", sign);
  else put_format(p, "%c%lu%c", sign, (unsigned long)decoded_line(&h->source, mark), sign);
  for (i = 0; i < found; i++) {
    if (i) put_string(p, " \xe2\x80\xa6 ");
    put_marked(p, h->source.text, parts[i].at, parts[i].end, parts[i].x);
  }
  put_string(p, "\n");
}

/* Writes the passage's lines; n: how many passages the hit shows. */
static void put_lines(const passages *p, hit_text *h, const gpuir_passage *x, size_t n) {
  size_t at = x->offset;
  while (at < x->offset + x->bytes) {
    part t;
    at = next_part(h, x, at, &t);
    if (p->grep) {
      put_row(p, h, &t, n);
    } else {
      put_marked(p, h->source.text, t.at, t.end, x);
      put_string(p, "\n");
    }
  }
}

static void put_passage_json(const passages *p, const decoded *source, const gpuir_passage *x, uint32_t first,
    uint32_t last) {
  size_t i;
  if (source->lineless) put_format(p, "{\"text_line\":%lu", (unsigned long)first);
  else put_format(p, "{\"first\":%lu,\"last\":%lu", (unsigned long)first, (unsigned long)last);
  put_format(p, ",\"score\":%.4f,\"text\":", (double)x->score / 65536.0);
  put_json(p, source->text + x->offset, x->bytes);
  put_string(p, ",\"marks\":[");
  for (i = x->first_mark; i < x->first_mark + x->marks; i++)
    put_format(p, "%s[%zu,%zu]", i > x->first_mark ? "," : "", p->room.marks[i].offset - x->offset,
        p->room.marks[i].bytes);
  put_string(p, "]}");
}

/* ---- one hit ---------------------------------------------------------------------------------- */

int passages_text(const passages *p, const gpuir_index *index, const gpuir_doc *doc, uint32_t docid, const char *path,
    decoded *text) {
  gpuir_index_info info;
  passages_read read = p->read;
  int filtered, rc;
  if (gpuir_index_get_info(index, &info)) info.filters = info.reading = "";
  filtered = source_filtered(info.filters, doc->source, doc->source_len);
  if (filtered) read = p->filter;
  if (doc->stored) {
    rc = decoded_stored(text, index, doc, docid);
  } else {
    if (!path[0]) return ENODATA;
    rc = read ? read(p->arg, path, docid, doc, info.reading, text) : PASSAGES_FILTERED;
  }
  if (filtered) text->lineless = 1; /* the file has lines of its own, or none */
  return rc;
}

const char *passages_why(int error) {
  switch (error) {
  case PASSAGES_TOLD: return "no text";
  case PASSAGES_FILTERED: return "its text was made by a filter";
  case ESTALE: return "changed since it was indexed";
  case ENODATA: return "its text is not in the index";
  case ENOPKG: return "the library that decodes it is not installed";
  case ENOTSUP: return "its text was made by a version of gpuir that knows more";
  case PASSAGES_WITHOUT: return "no word of the query is found in its text as it is read now";
  case PASSAGES_BY_NAME: return "found by its name";
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
  snprintf(why, sizeof why, "%s%s", passages_why(h->error),
      h->error == PASSAGES_FILTERED && p->filter_hint ? p->filter_hint : "");
  if (p->json) {
    put_missing_json(p, h->error, why);
    return;
  }
  if (p->grep && h->source.lineless) snprintf(said, sizeof said, ":(%s)\n", why);
  else if (p->grep) snprintf(said, sizeof said, ":%lu:(%s)\n", line, why);
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

/* Returns what a passage costs of the budgets, with its heading, or as `grep` with what stands before its lines. That
 * lines are written once makes several passages cheaper than this, never dearer. */
static size_t cost_of(const passages *p, hit_text *h, const gpuir_passage *x) {
  passages counted = *p;
  size_t sum = 0;
  if (!p->grep) return x->bytes + heading(p);
  counted.put = add_up;
  counted.sink = &sum;
  counted.colour = 0;
  counted.room.passages = (gpuir_passage *)(uintptr_t)x;
  put_lines(&counted, h, x, 1);
  return sum;
}

/* Returns how many passages of the hit the budgets have room for; *cost: of all these. As `grep` it is the best one
 * alone if more cost over `share`. */
static size_t count_affordable(const passages *p, hit_text *h, uint64_t share, uint64_t *cost) {
  size_t n;
  *cost = 0;
  for (n = 0; n < p->room.n; n++) {
    const uint64_t more = *cost + cost_of(p, h, &p->room.passages[n]);
    if (more > p->left || (p->grep && n && more > share)) break;
    *cost = more;
  }
  return n;
}

/* Writes the hit's first n passages. */
static void put_passages(const passages *p, hit_text *h, size_t n) {
  size_t i;
  if (p->json) put_string(p, ",\"passages\":[");
  for (i = 0; i < n; i++) {
    const gpuir_passage *x = &p->room.passages[i];
    const int flat = h->source.flat;
    const int whole = h->source.is_message && !p->json;
    const uint32_t first = whole ? h->doc.first_line : decoded_line(&h->source, x->offset),
                   last = flat || whole ? h->doc.last_line : decoded_line(&h->source, x->offset + x->bytes - 1);
    if (p->json) {
      if (i) put_string(p, ",");
      put_passage_json(p, &h->source, x, first, last);
      continue;
    }
    if (!p->grep) {
      put_path(p);
      if (h->source.lineless && !whole) put_string(p, "\n");
      else put_format(p, ":%lu-%lu\n", (unsigned long)first, (unsigned long)last);
    }
    put_lines(p, h, x, n);
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

/* Finds the passages of a text that has `bytes` of the budgets. */
static int find_passages(passages *p, const gpuir_query *query, const hit_text *h, size_t bytes, uint32_t context,
    gpuir_error *err) {
  gpuir_passages_desc d;
  memset(&d, 0, sizeof d);
  d.bytes = bytes;
  d.context = context;
  d.cancel = p->cancel;
  if (p->deadline) {
    const uint64_t now = now_ns();
    d.timeout_ns = p->deadline > now ? p->deadline - now : 1;
  }
  return gpuir_passages(query, &d, h->source.text, h->source.len, &p->room, err);
}

/* Returns why a text that was found has no word of the query: in an index in which paths are searched, its path has
 * them. */
static int without(const gpuir_index *index) {
  uint32_t df;
  return gpuir_term_count(index, "\xffn", 2, &df, NULL) ? PASSAGES_WITHOUT : PASSAGES_BY_NAME;
}

/* Finds the passages of a hit, and writes them. As `grep`, it is the lines with words of the passages that --passages
 * shows; where these cost too much, of the best windows alone. */
static int show_passages(passages *p, const gpuir_index *index, const gpuir_query *query, hit_text *h, size_t hits_left,
    gpuir_error *err) {
  const uint64_t mine = share(p, hits_left);
  const size_t bytes = p->left == UINT64_MAX ? 0 : (size_t)(mine - heading(p));
  uint64_t cost = 0;
  size_t n;
  int rc = find_passages(p, query, h, bytes, p->context, err);
  n = rc ? 0 : count_affordable(p, h, mine, &cost);
  if (!rc && p->grep && !p->context && (n < p->room.n || cost > mine)) {
    rc = find_passages(p, query, h, bytes, GPUIR_NO_CONTEXT, err);
    n = rc ? 0 : count_affordable(p, h, mine, &cost);
  }
  if (rc) return rc;
  if (!p->room.n && bytes && bytes < SHARE_LEAST && bytes < h->source.len) p->cut = 1; /* no word fits */
  else if (!p->room.n) h->error = without(index);
  if (n < p->room.n) p->cut = 1;
  if (n) p->shown = 1;
  p->left -= cost;
  if (h->error) {
    put_missing(p, h);
    return GPUIR_OK;
  }
  if (p->json) put_string(p, ",\"changed\":false");
  put_passages(p, h, n);
  return GPUIR_OK;
}

/* Lets `grep` name the file that has the decoded text, in place of the one that it was made of. NOMEM. */
static int name_decoded(passages *p, uint32_t docid, hit_text *h) {
  byte_buf path;
  int rc = GPUIR_OK;
  memset(&path, 0, sizeof path);
  if (p->decoded_path(p->arg, docid, &h->doc, &path) && !path.failed) {
    rc = path_room(p, path.n + 1);
    if (!rc) {
      memcpy(p->path, path.p, path.n);
      p->path[path.n] = 0;
      p->path_len = path.n;
      decoded_own_lines(&h->source);
    }
  }
  bytes_free(&path);
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
  h.error = passages_text(p, index, &h.doc, docid, absolute, &h.source);
  if (!h.error && p->grep && h.source.lineless && p->decoded_path) rc = name_decoded(p, docid, &h);
  if (h.error) put_missing(p, &h);
  else if (!rc) rc = show_passages(p, index, query, &h, hits_left, err);
  decoded_free(&h.source);
  return rc;
}
