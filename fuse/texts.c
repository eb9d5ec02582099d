/* texts.c - answers that show texts. */
#include "texts.h"

#include "caller.h"
#include "guard.h"
#include "values.h"

#include "../tools/common/advice.h"
#include "../tools/common/passages.h"
#include "../tools/common/source.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

static int is_own(fuse_req_t req) {
  const struct fuse_ctx *ctx = fuse_req_ctx(req);
  caller c;
  (void)caller_is(&c, ctx->uid, ctx->gid);
  return c.itself;
}

int texts_are_for_caller(lookup *l) { return is_own(l->req); }

int texts_are_filtered(lookup *l, const gpuir_doc *doc) {
  gpuir_index_info info;
  return gpuir_index_get_info(generation_index(l->g), &info) == GPUIR_OK &&
      source_filtered(info.filters, doc->source, doc->source_len);
}

const char *texts_reading(lookup *l) {
  gpuir_index_info info;
  return gpuir_index_get_info(generation_index(l->g), &info) == GPUIR_OK ? info.reading : "";
}

/* Returns the filter that makes the document's text, if it may run and the index was made with it; NULL otherwise. */
static const text_filter *allowed_filter(lookup *l, const gpuir_doc *doc) {
  gpuir_index_info info;
  if (gpuir_index_get_info(generation_index(l->g), &info) != GPUIR_OK) return NULL;
  return filters_find_marked(&l->f->config.filters, info.filters, doc->source, doc->source_len);
}

/* Lets a filter make the text of a document. */
static int run_filter(lookup *l, int fd, const struct stat *st, const gpuir_doc *doc, const source_limits *limits,
    decoded *text) {
  const text_filter *filter = allowed_filter(l, doc);
  char why[FILTERS_WHY];
  int rc;
  if (!filter) return ENODATA;
  rc = decode_filtered(filter, fd, st, doc, limits, text, why);
  if (rc != FILTERS_FAILED) return rc;
  if (!l->note[0]) snprintf(l->note, sizeof l->note, "%.*s", (int)sizeof l->note - 1, why);
  return EIO;
}

int texts_decode(lookup *l, int fd, const struct stat *st, const gpuir_doc *doc, const source_limits *limits,
    decoded *text) {
  memset(text, 0, sizeof *text);
  if (texts_are_filtered(l, doc)) return run_filter(l, fd, st, doc, limits, text);
  return decode_open_source(fd, st, doc, texts_reading(l), limits, text);
}

/* The same of a source at an absolute path. *st is zeroed where it was not opened. */
static int decode_path(lookup *l, const char *path, const gpuir_doc *doc, const source_limits *limits, decoded *text,
    struct stat *st) {
  int fd, rc;
  memset(text, 0, sizeof *text);
  memset(st, 0, sizeof *st);
  rc = source_open(path, limits->mount, &fd, st);
  if (rc) return rc;
  rc = texts_decode(l, fd, st, doc, limits, text);
  close(fd);
  return rc;
}

static int is_cancelled(void *t) { return ticket_is_cancelled(t); }

/* ---- sources ------------------------------------------------------------------------------------------- */

/* Notes in which state a source was. */
static int note_state(texts_made *made, uint32_t docid, int error, const struct stat *st) {
  source_state *s;
  if (made->n == made->cap) {
    const uint32_t cap = made->cap ? made->cap * 2 : 16;
    source_state *more = realloc(made->states, cap * sizeof *more);
    if (!more) return ENOMEM;
    made->states = more;
    made->cap = cap;
  }
  s = &made->states[made->n++];
  memset(s, 0, sizeof *s);
  s->docid = docid;
  s->error = st->st_ino ? 0 : error; /* it was opened: what it has says its state */
  s->device = st->st_dev;
  s->inode = st->st_ino;
  s->size = st->st_size;
  s->mtime = st->st_mtim;
  s->ctime = st->st_ctim;
  return 0;
}

static int same_time(struct timespec a, struct timespec b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

/* Returns whether a document's source is as it was. */
static int is_current(lookup *l, const source_state *s) {
  char path[PATH_MAX];
  struct stat st;
  gpuir_doc doc;
  int fd, rc;
  if (gpuir_doc_get(generation_index(l->g), s->docid, &doc) != GPUIR_OK) return 0;
  rc = source_path(generation_base(l->g), "", doc.source, doc.source_len, path, sizeof path);
  if (rc == 0) rc = source_open(path, l->f->device, &fd, &st);
  if (rc || s->error) return rc == s->error;
  close(fd);
  return st.st_dev == s->device && st.st_ino == s->inode && st.st_size == s->size && same_time(st.st_mtim, s->mtime) &&
      same_time(st.st_ctim, s->ctime);
}

int texts_are_current(lookup *l, const result *r) {
  uint32_t i = 0;
  ticket t;
  ticket_begin(l->req, l->f, l->g, &t);
  while (i < r->nsources && !ticket_is_cancelled(&t) && is_current(l, &r->sources[i])) i++;
  ticket_end(l->req, l->f, &t);
  return i == r->nsources;
}

/* ---- passages ------------------------------------------------------------------------------------------ */

/* Where passages are written from and to. */
typedef struct writing {
  lookup *l;
  texts_made *made;
  source_limits limits;
  const name_options *options;
  uint32_t rank; /* of the hit, from 1 */
  int error; /* no text was read for a reason that ends the answer */
} writing;

static void put_bytes(void *b, const char *bytes, size_t n) { buf_put((buf *)b, bytes, n); }

static int read_source(void *arg, const char *path, uint32_t docid, const gpuir_doc *doc, const char *reading,
    decoded *text) {
  writing *w = arg;
  struct stat st;
  int rc;
  (void)reading;
  if (!is_own(w->l->req)) return w->error = lookup_fails(w->l, EACCES, TEXTS_NOT_YOURS);
  rc = decode_path(w->l, path, doc, &w->limits, text, &st);
  if (rc == EINTR || rc == ETIMEDOUT || rc == ENOMEM) w->error = rc;
  if (note_state(w->made, docid, rc, &st) != 0) w->error = ENOMEM;
  if (rc == EIO && texts_are_filtered(w->l, doc)) return PASSAGES_TOLD; /* the note says why */
  return rc == ENODATA ? PASSAGES_FILTERED : rc;
}

static void add_string(byte_buf *b, const char *s) { bytes_add(b, s, strlen(s)); }

/* Appends the folders that ask in files/ for what was asked for here. 0 without a name for one. */
static int put_folders(lookup *l, const name_options *o, byte_buf *path) {
  static const char *const modes[] = {"and/", "or/", "andor/"};
  static const int of[] = {GPUIR_AND, GPUIR_OR, GPUIR_ANDOR};
  char name[NAME_LIMIT + 1];
  const char *where = lookup_where(l);
  const char *sort = lookup_asked(l, ASKED_SORT), *collapse = lookup_asked(l, ASKED_COLLAPSE);
  const size_t n = where ? values_name(name, where, strlen(where)) : 0;
  size_t i;
  if (where && (!n || n + strlen("@where=") > NAME_LIMIT)) return 0;
  if (n) add_string(path, "@where="), bytes_add(path, name, n), bytes_char(path, '/');
  if (*sort) add_string(path, "@sort="), add_string(path, sort), bytes_char(path, '/');
  if (*collapse) add_string(path, "@collapse="), add_string(path, collapse), bytes_char(path, '/');
  for (i = 0; i < 3; i++)
    if (o->given & OPTION_MODE && o->mode == of[i]) bytes_char(path, '@'), add_string(path, modes[i]);
  if (o->given & OPTION_BACKEND) add_string(path, o->backend == BACKEND_CPU ? "@cpu/" : "@gpu/");
  if (o->given & OPTION_RANK) add_string(path, o->rank == RANK_CODE ? "@rank=code/" : "@rank=plain/");
  if (o->given & OPTION_K) {
    (void)snprintf(name, sizeof name, "@k=%lu/", (unsigned long)o->k);
    add_string(path, name);
  }
  return 1;
}

/* Writes the path in files/ of the hit, where its decoded text is to be read. */
static int decoded_path(void *arg, uint32_t docid, const gpuir_doc *doc, byte_buf *path) {
  const writing *w = arg;
  buf name = {.max = SIZE_MAX};
  char link[NAME_LIMIT + 1];
  const int rc = format_link(link, doc, w->rank, docid, &name);
  buf_free(&name);
  add_string(path, w->l->f->config.mountpoint);
  add_string(path, "/files/");
  if (rc || !put_folders(w->l, w->options, path)) return 0;
  bytes_add(path, w->l->name, w->l->len);
  bytes_char(path, '/');
  add_string(path, link);
  return 1;
}

static void set_limits(lookup *l, ticket *t, source_limits *limits) {
  memset(limits, 0, sizeof *limits);
  limits->mount = l->f->device;
  limits->most = l->f->config.result_bytes;
  limits->deadline = lookup_deadline(l->f);
  limits->cache = l->f->texts;
  limits->stopped = is_cancelled;
  limits->stopped_arg = t;
}

static void set_form(lookup *l, const name_options *options, int grep, passages *p) {
  p->grep = grep;
  p->bytes = options->bytes;
  p->tokens = options->tokens;
  if (!(options->given & (OPTION_TOKENS | OPTION_BYTES))) p->tokens = PASSAGES_TOKENS;
  p->context = options->context;
  p->timeout_ns = l->f->config.timeout_ns;
  p->base = l->f->config.nosource ? NULL : generation_base(l->g);
}

/* Tells of one word that no document has. */
static void tell_unknown(void *arg, const char *line, size_t len) {
  lookup *l = arg;
  if (!l->note[0]) snprintf(l->note, sizeof l->note, "%.*s", (int)len, line);
}

static void put_note(buf *b, const char *note) {
  buf_puts(b, "(");
  text_write(put_bytes, b, TEXT_MESSAGE, note, strlen(note));
  buf_puts(b, ")\n");
}

static int write_hits(lookup *l, passages *p, writing *w, const search_reply *reply, const buf *b) {
  gpuir_error err;
  size_t i;
  memset(&err, 0, sizeof err);
  passages_begin(p);
  for (i = 0; i < reply->n; i++) {
    w->rank = (uint32_t)i + 1;
    int rc = passages_hit(p, generation_index(l->g), reply->query, reply->hits[i].docid, reply->n - i, &err);
    if (w->error) return w->error;
    if (rc) return lookup_fails(l, errno_of_status(rc), err.code ? err.msg : gpuir_strerror(rc));
    if (b->error) return b->error;
  }
  return 0;
}

int texts_passages(lookup *l, const name_options *options, int grep, const search_reply *reply, buf *b,
    texts_made *made) {
  writing w = {.l = l, .made = made, .options = options};
  passages p;
  ticket t;
  int rc;
  memset(&p, 0, sizeof p);
  set_form(l, options, grep, &p);
  set_limits(l, &t, &w.limits);
  p.cancel = &t.cancelled;
  p.put = put_bytes;
  p.sink = b;
  p.read = read_source;
  if (l->f->config.filters.n) p.filter = read_source;
  p.decoded_path = decoded_path;
  p.filter_hint = "; -o filter= lets the mount make it again";
  p.arg = &w;
  if (reply->n == 0 && options->k && !l->note[0] && advice_unknown(reply->query, tell_unknown, l) == 0)
    snprintf(l->note, sizeof l->note, "no document matches");
  if (l->note[0] && !grep) put_note(b, l->note);
  ticket_begin(l->req, l->f, l->g, &t);
  guard_cancels(&t.cancelled);
  rc = passages_open(&p) ? ENOMEM : write_hits(l, &p, &w, reply, b);
  if (rc == 0 && passages_are_cut(&p) && !l->note[0]) /* nor does this */
    snprintf(l->note, sizeof l->note, "no passage of a hit fits into the budget");
  guard_cancels(NULL);
  ticket_end(l->req, l->f, &t);
  passages_close(&p);
  return rc ? rc : b->error;
}

/* ---- how words are written ----------------------------------------------------------------------------- */

/* How texts are read, and the word that was found. */
typedef struct written {
  writing w;
  passages p;
  char word[GPUIR_MAX_TERM];
} written;

static int read_quietly(void *arg, const char *path, uint32_t docid, const gpuir_doc *doc, const char *reading,
    decoded *text) {
  writing *w = arg;
  struct stat st;
  int rc;
  (void)reading;
  if (!is_own(w->l->req)) return EACCES;
  rc = decode_path(w->l, path, doc, &w->limits, text, &st);
  return w->made && note_state(w->made, docid, rc, &st) ? ENOMEM : rc;
}

/* Finds in the text of a document how people write a term: its bytes, in x->word; 0: the text does not have it. */
static size_t find_written(written *x, uint32_t docid, const char *instead, size_t len) {
  const gpuir_index *index = generation_index(x->w.l->g);
  char absolute[PATH_MAX];
  const char *found = NULL;
  gpuir_doc doc;
  decoded text;
  size_t n = 0;
  memset(&text, 0, sizeof text);
  if (gpuir_doc_get(index, docid, &doc) || passages_path(&x->p, &doc, docid, absolute, sizeof absolute)) return 0;
  if (passages_text(&x->p, index, &doc, docid, absolute, &text) == 0 && text.text)
    found = advice_surface(index, instead, len, text.text, text.len, &n);
  if (found) memcpy(x->word, found, n);
  x->w.l->note[0] = 0; /* nobody asked for this text: what is wrong with it is not told */
  decoded_free(&text);
  return found ? n : 0;
}

static const char *written_word(void *arg, const char *instead, size_t len, size_t *word_len) {
  written *x = arg;
  gpuir_hit hits[ADVICE_HOLDERS];
  const size_t n = advice_holders(generation_index(x->w.l->g), instead, len, hits);
  size_t i;
  *word_len = 0;
  for (i = 0; i < n && *word_len == 0; i++) *word_len = find_written(x, hits[i].docid, instead, len);
  return *word_len ? x->word : NULL;
}

void texts_note_spelled(lookup *l, const search_reply *reply, texts_made *made) {
  written x = {.w = {.l = l, .made = made}};
  const char *word;
  size_t len;
  ticket t;
  if (!reply->query || gpuir_query_spelled(reply->query, 0, &word, &len, &word, &len)) return;
  x.p.base = l->f->config.nosource ? NULL : generation_base(l->g);
  x.p.read = read_quietly;
  if (l->f->config.filters.n) x.p.filter = read_quietly;
  x.p.arg = &x.w;
  set_limits(l, &t, &x.w.limits);
  ticket_begin(l->req, l->f, l->g, &t);
  guard_cancels(&t.cancelled);
  if (passages_open(&x.p) == 0) (void)advice_spelled(reply->query, written_word, &x, tell_unknown, l);
  guard_cancels(NULL);
  ticket_end(l->req, l->f, &t);
  passages_close(&x.p);
}

/* ---- paths --------------------------------------------------------------------------------------------- */

/* Lines of a text, each once: where they begin in it, plus 1. */
typedef struct line_set {
  size_t *slots, size; /* a power of two */
} line_set;

/* Returns whether b's last line, which begins at `start`, stands in it before. */
static int is_repeated(line_set *set, const buf *b, size_t start) {
  const size_t len = b->len - start;
  uint64_t h = UINT64_C(14695981039346656037);
  size_t i, at;
  for (i = start; i < b->len; i++) h = (h ^ (unsigned char)b->data[i]) * UINT64_C(1099511628211);
  for (at = (size_t)(h ^ h >> 32) & (set->size - 1); set->slots[at]; at = (at + 1) & (set->size - 1))
    if (memcmp(b->data + set->slots[at] - 1, b->data + start, len) == 0) return 1; /* both end with their '\n' */
  set->slots[at] = start + 1;
  return 0;
}

/* Writes the path of one hit. */
static int put_path(lookup *l, passages *p, uint32_t docid, buf *b) {
  char absolute[PATH_MAX];
  gpuir_doc doc;
  if (gpuir_doc_get(generation_index(l->g), docid, &doc) != GPUIR_OK) return EIO;
  if (passages_path(p, &doc, docid, absolute, sizeof absolute) != GPUIR_OK) return ENOMEM;
  if (absolute[0]) {
    format_tsv_name(b, absolute, strlen(absolute));
  } else {
    format_tsv_name(b, l->f->config.mountpoint, strlen(l->f->config.mountpoint));
    buf_puts(b, "/doc/");
    if (generation_is_live(l->g)) buf_printf(b, "%llu.", (unsigned long long)generation_id(l->g));
    buf_number(b, docid);
  }
  buf_puts(b, "\n");
  return b->error;
}

int texts_paths(lookup *l, const gpuir_hit *hits, size_t n, buf *b) {
  line_set set = {NULL, 16};
  passages p;
  size_t i;
  int rc = 0;
  memset(&p, 0, sizeof p);
  p.base = l->f->config.nosource ? NULL : generation_base(l->g);
  while (set.size < 2 * n) set.size *= 2;
  set.slots = calloc(set.size, sizeof *set.slots);
  if (!set.slots) return ENOMEM;
  for (i = 0; rc == 0 && i < n; i++) {
    const size_t start = b->len;
    rc = put_path(l, &p, hits[i].docid, b);
    if (rc == 0 && is_repeated(&set, b, start)) b->len = start;
  }
  free(set.slots);
  passages_close(&p);
  return rc;
}

/* ---- files --------------------------------------------------------------------------------------------- */

/* Reads the text of a document from its source, until `deadline`. */
static int read_document(lookup *l, uint32_t docid, uint64_t deadline, decoded *text) {
  char path[PATH_MAX];
  source_limits limits;
  struct stat st;
  gpuir_doc doc;
  ticket t;
  int rc;
  memset(text, 0, sizeof *text);
  if (gpuir_doc_get(generation_index(l->g), docid, &doc) != GPUIR_OK) return EIO;
  if (!doc.source_len || l->f->config.nosource) return ENODATA;
  rc = source_path(generation_base(l->g), l->f->config.mountpoint, doc.source, doc.source_len, path, sizeof path);
  if (rc) return rc;
  set_limits(l, &t, &limits);
  limits.deadline = deadline;
  ticket_begin(l->req, l->f, l->g, &t);
  rc = decode_path(l, path, &doc, &limits, text, &st);
  ticket_end(l->req, l->f, &t);
  return rc;
}

int texts_sizes(lookup *l, hit_link *links, size_t n) {
  const uint64_t deadline = lookup_deadline(l->f); /* of all of them */
  size_t i;
  for (i = 0; i < n; i++) {
    decoded text;
    int rc;
    if (links[i].source && l->f->config.nosource) links[i].size = 0;
    if (links[i].size != SIZE_UNKNOWN) continue;
    rc = read_document(l, links[i].docid, deadline, &text);
    if (rc == ENOMEM || rc == EINTR || rc == ETIMEDOUT) return rc;
    links[i].size = rc ? 0 : text.len;
    decoded_free(&text);
  }
  return 0;
}

int texts_read(fuse_req_t req, fs *f, generation *g, const hit_link *link, char **text) {
  decoded d;
  lookup l;
  int rc;
  if (!is_own(req)) return EACCES;
  memset(&l, 0, sizeof l);
  l.req = req;
  l.f = f;
  l.g = g;
  guard_enter(generation_broken_flag(g));
  rc = read_document(&l, link->docid, lookup_deadline(f), &d);
  guard_leave();
  if (rc == 0 && d.len != link->size) rc = ESTALE;
  if (generation_is_broken(g)) rc = EIO;
  if (rc == 0) *text = decoded_take(&d);
  decoded_free(&d);
  return rc;
}
