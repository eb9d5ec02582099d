/* lookup.c - makes what a name stands for: a search and its answer, a document, a term. */
#include "lookup.h"

#include "by.h"
#include "caller.h"
#include "guard.h"
#include "texts.h"
#include "values.h"

#include "../tools/common/advice.h"
#include "../tools/common/column_text.h"
#include "../tools/common/decode.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_SIZE (2 * NAME_LIMIT)
#define KEY_SIZE (TEXT_SIZE + ASKED_SIZE + 192)

static int bad_escape(lookup *l) { return lookup_fails(l, EINVAL, "a '%' without two hexadecimal digits behind it"); }

/* ---- queries ------------------------------------------------------------------------------------------- */

/* What is asked of a query. */
typedef struct question {
  search_request request;
  int tree; /* NODE_QUERY_ROOT or another folder of queries */
  int format;
  char text[TEXT_SIZE];
  char key[KEY_SIZE]; /* of the answer */
  size_t key_len;
} question;

static int is_folder(const question *q) { return q->tree == NODE_HITS_ROOT || q->tree == NODE_FILES_ROOT; }
static int has_passages(const question *q) { return q->tree == NODE_PASS_ROOT || q->tree == NODE_GREP_ROOT; }
/* Returns whether sentences come in, so that any of the words will do. */
static int is_for_sentences(const question *q) {
  return has_passages(q) || q->tree == NODE_FILES_ROOT || q->format == FORMAT_PATHS;
}

/* Looks for what is an operator elsewhere. Where all words must match, AND and its like would be words that hardly any
 * document has. */
static int notice(lookup *l, const question *q) {
  size_t n;
  const char *word = advice_operator(q->text, q->request.len, &n);
  const int refused = word && !is_for_sentences(q) && advice_is_word_operator(word, n);
  if (!word) return 0;
  snprintf(l->note, sizeof l->note, "'%.*s' is no operator, but words like all others: %s", n > 60 ? 60 : (int)n, word,
      "there are -word, \"a phrase\", prefix*, @and, @or, @andor");
  return refused ? lookup_fails(l, EINVAL, l->note) : 0;
}

/* What is asked for comes with its NULs, of which it has none itself. */
static void make_key(lookup *l, const name_options *o, question *q) {
  static const char nothing[ASKED_PARTS] = {0};
  const size_t asked = l->given ? l->given->size : sizeof nothing;
  q->key_len = (size_t)snprintf(q->key, sizeof q->key, "%llu %d %lu %d %d %d.%d %llu %llu %lu ",
      (unsigned long long)generation_id(l->g), q->request.mode, (unsigned long)q->request.k, q->request.backend,
      q->request.rank, q->tree, q->format, (unsigned long long)o->tokens, (unsigned long long)o->bytes,
      (unsigned long)o->context);
  memcpy(q->key + q->key_len, l->given ? l->given->bytes : nothing, asked);
  q->key_len += asked;
  memcpy(q->key + q->key_len, q->text, q->request.len);
  q->key_len += q->request.len;
}

/* Reads a name and its options. */
static int ask(lookup *l, const node_body *body, question *q) {
  const name_options *o = &body->options;
  memset(&q->request, 0, sizeof q->request);
  q->tree = (int)body->tree;
  q->format = FORMAT_PLAIN;
  if (name_query(l->name, l->len, q->text, &q->request.len, is_folder(q) ? NULL : &q->format) != 0)
    return bad_escape(l);
  if (has_passages(q) && q->format != FORMAT_PLAIN) return ENOENT;
  if (q->tree == NODE_FACET_ROOT && q->format != FORMAT_PLAIN && q->format != FORMAT_JSON) return ENOENT;
  q->request.text = q->text;
  q->request.where = lookup_where(l);
  q->request.sort = lookup_asked(l, ASKED_SORT);
  q->request.collapse = lookup_asked(l, ASKED_COLLAPSE);
  q->request.mode = o->given & OPTION_MODE ? o->mode : is_for_sentences(q) ? l->f->config.sentences : o->mode;
  q->request.k = o->k;
  q->request.backend = o->backend;
  q->request.rank = o->rank;
  q->request.keep = has_passages(q);
  q->request.spell = q->request.stop = is_for_sentences(q);
  make_key(l, o, q);
  return notice(l, q);
}

/* Writes the hits of query/, with the values that are to be shown. */
static int write_hits(lookup *l, const question *q, const search_reply *reply, buf *b) {
  const gpuir_index *index = generation_index(l->g);
  const hit_list list = {reply->hits, reply->plain, reply->n};
  unsigned fields[GPUIR_MAX_FIELDS];
  const char *bad;
  size_t n = 0;
  if (column_find(index, lookup_asked(l, ASKED_SHOW), fields, &n, &bad))
    return lookup_fails(l, EINVAL, "the index has no such field any more");
  return format_hits(b, index, &list, fields, n, q->format);
}

/* Writes what a name holds to *b, and of a folder to *links. */
static int write_answer(lookup *l, const question *q, const search_reply *reply, buf *b, hit_link **links) {
  const gpuir_index *index = generation_index(l->g);
  int rc;
  if (q->format == FORMAT_PATHS) return texts_paths(l, reply->hits, reply->n, b);
  if (!is_folder(q)) return write_hits(l, q, reply, b);
  *links = malloc((reply->n ? reply->n : 1) * sizeof **links);
  rc = *links ? format_links(b, index, reply->hits, reply->n, *links) : ENOMEM;
  return rc || q->tree == NODE_HITS_ROOT ? rc : texts_sizes(l, *links, reply->n);
}

static void note_left_out(lookup *l, size_t n) {
  if (n && !l->note[0])
    snprintf(l->note, sizeof l->note, "%zu %s left out: a query has %d different words at most, and keeps the rarest",
        n, n == 1 ? "word is" : "words are", GPUIR_MAX_TERMS);
}

/* Notes that nothing has all words of a query, and what to ask for in its place. */
static void note_none(lookup *l, const question *q, const search_reply *reply) {
  const char *which = q->request.where ? " with these values" : "";
  if (reply->n || !q->request.k || q->request.mode != GPUIR_AND || l->note[0]) return;
  if (!q->request.len) snprintf(l->note, sizeof l->note, "there is no document%s", which);
  else if (!memchr(q->text, ' ', q->request.len))
    snprintf(l->note, sizeof l->note, "no document%s has this word", which);
  else snprintf(l->note, sizeof l->note, "no document%s has all of these words; @andor takes any of them", which);
}

/* Finds the field that a column begins with, up to a ':'. 0: there is none. */
static int find_field(const lookup *l, const char *column, gpuir_field *field) {
  const size_t n = strcspn(column, ":");
  size_t i;
  for (i = 0; gpuir_field_get(generation_index(l->g), i, field) == GPUIR_OK; i++)
    if (strlen(field->name) == n && !memcmp(field->name, column, n)) return 1;
  return 0;
}

#define FACETS 20 /* that are shown unless @k= says otherwise */

/* Counts the values of the documents that match; NULL with the reason in *error. */
static result *facets_answer(lookup *l, const question *q, const name_options *options, int *error) {
  const char *column = lookup_asked(l, ASKED_FACET);
  search_request request = q->request;
  gpuir_facets *facets = NULL;
  gpuir_field field;
  result *r = NULL;
  size_t left = 0;
  buf b;
  memset(&b, 0, sizeof b);
  b.max = l->f->config.result_bytes;
  request.all = 1;
  *error = find_field(l, column, &field) ? lookup_facets(l, &request, column, &facets)
                                         : lookup_fails(l, EINVAL, "the index has no such field any more");
  if (*error == 0)
    *error = format_facets(&b, facets, field.column, field.decimals, options->given & OPTION_K ? options->k : FACETS,
        q->format, &left);
  gpuir_facets_destroy(facets);
  if (left && !l->note[0]) snprintf(l->note, sizeof l->note, "%zu more; @k=0 shows all", left);
  if (generation_is_broken(l->g)) *error = EIO;
  if (*error == 0) {
    r = lookup_remember(l->f, q->key, q->key_len, &b, NULL, 0);
    if (!r) *error = ENOMEM;
  }
  buf_free(&b);
  return r;
}

/* Searches, and makes the answer of it; NULL with the reason in *error. */
static result *answer(lookup *l, const question *q, const name_options *options, int *error) {
  search_reply reply;
  texts_made made;
  hit_link *links = NULL;
  result *r = NULL;
  buf b;
  int rc = lookup_search(l, &q->request, &reply);
  memset(&b, 0, sizeof b);
  memset(&made, 0, sizeof made);
  b.max = l->f->config.result_bytes;
  if (rc == 0) note_left_out(l, reply.left_out);
  if (rc == 0 && !l->note[0]) texts_note_spelled(l, &reply, has_passages(q) ? &made : NULL);
  if (rc == 0 && !has_passages(q)) note_none(l, q, &reply);
  if (rc == 0 && has_passages(q)) rc = texts_passages(l, options, q->tree == NODE_GREP_ROOT, &reply, &b, &made);
  else if (rc == 0) rc = write_answer(l, q, &reply, &b, &links);
  if (rc == 0 && !l->note[0]) snprintf(l->note, sizeof l->note, "%s", reply.stopped);
  free(reply.hits);
  free(reply.plain);
  gpuir_query_destroy(reply.query);
  if (rc == EFBIG) (void)lookup_fails(l, rc, "the answer is longer than max_result");
  if (generation_is_broken(l->g)) rc = EIO;
  if (rc == 0) {
    const int shared = made.n == 0; /* what sources say may change, and is not for everybody */
    r = lookup_remember(l->f, shared ? q->key : NULL, q->key_len, &b, links, links ? (uint32_t)reply.n : 0);
    if (!r) rc = ENOMEM;
  } else {
    free(links);
  }
  if (r && made.n) {
    r->sources = made.states; /* nobody else has it yet */
    r->nsources = made.n;
  } else {
    free(made.states);
  }
  buf_free(&b);
  *error = rc;
  return r;
}

/* A query: a file, or a folder of hits. */
static int make_query(lookup *l, node_body *body) {
  question q;
  int rc = ask(l, body, &q);
  if (rc) return rc;
  body->generation = generation_id(l->g);
  if (l->before && !texts_are_for_caller(l)) return lookup_fails(l, EACCES, TEXTS_NOT_YOURS);
  if (l->before && texts_are_current(l, l->before)) {
    body->res = l->before; /* with its reference */
    l->before = NULL;
  } else {
    body->res = lookup_memo(l->f, q.key, q.key_len);
    if (!body->res && q.tree == NODE_FACET_ROOT) body->res = facets_answer(l, &q, &body->options, &rc);
    else if (!body->res) body->res = answer(l, &q, &body->options, &rc);
  }
  if (!body->res) return rc;
  body->kind = !is_folder(&q) ? NODE_BYTES : q.tree == NODE_HITS_ROOT ? NODE_HITS : NODE_FILES;
  body->named = is_folder(&q) && generation_is_live(l->g);
  body->mode = is_folder(&q) ? S_IFDIR | 0555 : S_IFREG | 0444;
  body->size = is_folder(&q) ? 0 : (off_t)body->res->size;
  if (body->res->nsources) {
    body->mode = S_IFREG | 0400;
    body->recheck = 1;
  }
  return 0;
}

static int make_term(lookup *l, node_body *body) {
  char text[NAME_LIMIT + 1];
  size_t n;
  buf b;
  int rc = name_unescape(l->name, l->len, text, &n);
  if (rc) return bad_escape(l);
  memset(&b, 0, sizeof b);
  b.max = l->f->config.result_bytes;
  rc = format_term(&b, generation_index(l->g), text, n);
  if (generation_is_broken(l->g)) rc = EIO;
  if (rc) {
    buf_free(&b);
    return rc;
  }
  body->res = lookup_remember(l->f, NULL, 0, &b, NULL, 0);
  if (!body->res) return ENOMEM;
  body->kind = NODE_BYTES;
  body->mode = S_IFREG | 0444;
  body->size = (off_t)body->res->size;
  body->generation = generation_id(l->g);
  return 0;
}

/* ---- documents ----------------------------------------------------------------------------------------- */

/* Says who asks; caller_free afterwards. EACCES where that user's groups cannot be known. */
static int caller_of(fuse_req_t req, caller *c) {
  const struct fuse_ctx *ctx = fuse_req_ctx(req);
  int n, rc = caller_is(c, ctx->uid, ctx->gid);
  if (rc || c->itself) return rc;
  if (ctx->pid == 0) return EACCES; /* a process of another PID namespace */
  n = fuse_req_getgroups(req, 0, NULL);
  if (n < 0) return EACCES;
  c->groups = malloc(((size_t)n + 1) * sizeof *c->groups);
  if (!c->groups) return ENOMEM;
  /* The process waits for the answer, so its number and its groups stay what they are. */
  if (fuse_req_getgroups(req, n, c->groups) != n) return EACCES;
  c->ngroups = (size_t)n;
  return 0;
}

/* Opens a source with the rights of the one who asks. */
static int open_source(fuse_req_t req, fs *f, const char *path, node_body *body, int *fd, struct stat *st) {
  caller c;
  int rc = caller_of(req, &c);
  if (rc == 0) rc = caller_enter(&c);
  if (rc == 0) {
    rc = source_open(path, f->device, fd, st);
    caller_leave(&c);
  }
  /* What was opened for one user is not for the next, who may lack a folder on the way. */
  body->mode = S_IFREG | 0400;
  body->uid = c.uid;
  body->gid = c.gid;
  caller_free(&c);
  return rc;
}

static int is_cancelled(void *t) { return ticket_is_cancelled(t); }

/* Reads the text of a part of a source. Holds no lock. */
static int read_part(lookup *l, const gpuir_doc *doc, int fd, const struct stat *st, buf *b) {
  source_limits limits;
  decoded text;
  ticket t;
  int rc;
  if (doc->source_bytes > b->max) return EFBIG;
  memset(&limits, 0, sizeof limits);
  limits.most = b->max;
  limits.deadline = lookup_deadline(l->f);
  limits.stopped = is_cancelled;
  limits.stopped_arg = &t;
  limits.cache = l->f->texts;
  ticket_begin(l->req, l->f, l->g, &t);
  rc = texts_decode(l, fd, st, doc, &limits, &text);
  ticket_end(l->req, l->f, &t);
  if (rc == 0) buf_put(b, text.text, text.len);
  decoded_free(&text);
  if (rc == 0) rc = b->error;
  return rc == ESTALE ? lookup_fails(l, rc, "its source is no longer what was indexed") : rc;
}

/* A part of an open source, which the cache may have already. */
static int part_result(lookup *l, const gpuir_doc *doc, int fd, const struct stat *st, node_body *body) {
  char key[KEY_SIZE];
  buf b;
  int rc;
  /* The file's state is part of the key: what has changed since is read again. */
  size_t key_len = (size_t)snprintf(key, sizeof key, "%llu doc %lu %llu %llu %lld %lld.%09ld %lld.%09ld",
      (unsigned long long)generation_id(l->g), (unsigned long)body->docid, (unsigned long long)st->st_dev,
      (unsigned long long)st->st_ino, (long long)st->st_size, (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
      (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
  pthread_mutex_lock(&l->f->lock);
  body->res = result_find(&l->f->cache, key, key_len);
  pthread_mutex_unlock(&l->f->lock);
  if (body->res) return 0;
  memset(&b, 0, sizeof b);
  b.max = l->f->config.result_bytes;
  rc = read_part(l, doc, fd, st, &b);
  if (rc) {
    buf_free(&b);
    return rc;
  }
  body->res = lookup_remember(l->f, key, key_len, &b, NULL, 0);
  return body->res ? 0 : ENOMEM;
}

/* A part of a file on disk: a file of the one who asks, if that user may read the source. [fuse-doc-part] */
static int make_part(lookup *l, const gpuir_doc *doc, const char *path, node_body *body) {
  struct stat st;
  int fd, rc = open_source(l->req, l->f, path, body, &fd, &st);
  if (rc) return rc;
  rc = part_result(l, doc, fd, &st, body);
  close(fd);
  if (rc) return rc;
  body->kind = NODE_BYTES;
  body->recheck = 1;
  body->mtime = st.st_mtim;
  body->size = (off_t)body->res->size;
  return 0;
}

/* A whole file on disk: a link, which the kernel follows with the rights of the one who asks. */
static int make_link(fs *f, const char *path, node_body *body) {
  buf b;
  memset(&b, 0, sizeof b);
  b.max = PATH_MAX;
  buf_puts(&b, path);
  if (b.error) {
    buf_free(&b);
    return b.error;
  }
  body->res = lookup_remember(f, NULL, 0, &b, NULL, 0);
  if (!body->res) return ENOMEM;
  body->kind = NODE_LINK;
  body->mode = S_IFLNK | 0777;
  body->size = (off_t)body->res->size;
  return 0;
}

/* Whether a document is shown as the text that was indexed, and not as a link to its file: where it is a part of it
 * whose place is known, or in another form; and in an older generation, as the file may be the text of another one. */
static int is_part(const lookup *l, const gpuir_doc *doc) {
  if (!doc->source_offset && !doc->source_bytes) return 0;
  return !source_is_whole(doc) || doc->form || l->older;
}

/* body->docid is the document's, l->g its generation. */
static int make_doc(lookup *l, node_body *body) {
  const fs_config *config = &l->f->config;
  char path[PATH_MAX];
  gpuir_doc doc;
  int rc = gpuir_doc_get(generation_index(l->g), body->docid, &doc);
  if (rc != GPUIR_OK) return rc == GPUIR_E_NOT_FOUND ? ENOENT : EIO;
  body->generation = generation_id(l->g);
  if (doc.stored) { /* what was indexed; the source may have changed since */
    body->kind = NODE_TEXT;
    body->mode = S_IFREG | 0444;
    body->size = (off_t)doc.stored_bytes;
    return generation_is_broken(l->g) ? EIO : 0;
  }
  if (config->nosource) return ENOENT;
  if (doc.source_len == 0) return ENODATA;
  rc = source_path(generation_base(l->g), config->mountpoint, doc.source, doc.source_len, path, sizeof path);
  if (generation_is_broken(l->g)) return EIO;
  if (rc) return rc;
  /* a filter runs with the rights of the one who mounted, and for no other */
  if (is_part(l, &doc) && texts_are_filtered(l, &doc) && !texts_are_for_caller(l)) return ENODATA;
  return is_part(l, &doc) ? make_part(l, &doc, path, body) : make_link(l->f, path, body);
}

/* ---- by folder ----------------------------------------------------------------------------------------- */

unsigned lookup_options(node_kind tree) {
  if (tree == NODE_PASS_ROOT || tree == NODE_GREP_ROOT) return OPTIONS_ALL;
  return tree == NODE_QUERY_ROOT || tree == NODE_HITS_ROOT || tree == NODE_FILES_ROOT || tree == NODE_FACET_ROOT
      ? OPTIONS_SEARCH
      : 0;
}

/* A folder of names that is no answer. */
static void make_folder(const lookup *l, node_kind kind, node_body *body) {
  body->kind = kind;
  body->mode = S_IFDIR | 0555;
  body->mtime = l->f->started;
}

/* Lets a folder have the where of the one that it stands in. */
static void share_where(lookup *l, node_body *body) {
  if (!l->given) return;
  pthread_mutex_lock(&l->f->lock);
  body->res = l->given;
  body->res->refs++;
  pthread_mutex_unlock(&l->f->lock);
}

/* Lets a folder ask for what the one does that it stands in, but with one part anew. */
static int give_asked(lookup *l, int part, const char *text, node_body *body) {
  static const char asked[] = "asked "; /* so begins no other key */
  char key[ASKED_SIZE + sizeof asked];
  size_t n = strlen(asked);
  buf b;
  int rc, i;
  memset(&b, 0, sizeof b);
  b.max = ASKED_SIZE;
  for (i = 0; i < ASKED_PARTS; i++) {
    const char *has = i == part ? text : lookup_asked(l, i);
    buf_put(&b, has, strlen(has) + 1);
  }
  rc = b.error;
  memcpy(key, asked, n);
  if (rc == 0) memcpy(key + n, b.data, b.len);
  n += b.len;
  if (rc == 0) body->res = lookup_remember(l->f, key, n, &b, NULL, 0);
  buf_free(&b);
  return rc ? rc : body->res ? 0 : ENOMEM;
}

/* facet/<column>/, the column as gpuir_facets_count takes it. */
static int make_facet(lookup *l, node_body *body) {
  char column[NAME_LIMIT + 1];
  gpuir_field field;
  size_t n;
  int rc = name_unescape(l->name, l->len, column, &n);
  if (rc || memchr(column, 0, n)) return bad_escape(l);
  column[n] = 0;
  if (!find_field(l, column, &field)) return ENOENT;
  make_folder(l, NODE_OPTION, body);
  return give_asked(l, ASKED_FACET, column, body);
}

/* Adds to the where of the folder what is asked for, which may be no where at all. */
static int add_where(lookup *l, const char *more, node_body *body) {
  char where[WHERE_LIMIT + 1];
  search_request request;
  int rc;
  memset(&request, 0, sizeof request);
  request.where = more;
  rc = generation_check(l->g, &request, l->why, sizeof l->why);
  if (rc) return rc;
  if (++body->asked > WHERE_FOLDERS || values_join(lookup_asked(l, ASKED_WHERE), more, where) != 0)
    return lookup_fails(l, E2BIG, "more is asked of fields than the folders of one path may");
  request.where = where;
  rc = generation_check(l->g, &request, l->why, sizeof l->why);
  return rc ? rc : give_asked(l, ASKED_WHERE, where, body);
}

/* `@ext=c`, or `@where=` and what the command takes behind -w. `equals` is where the '=' stands in the name. */
static int make_where(lookup *l, const char *equals, node_body *body) {
  const char *items = equals + 1;
  const size_t column = (size_t)(equals - l->name) - 1, len = l->len - column - 2;
  char text[PREDICATE_SIZE];
  size_t n = 0;
  int rc;
  if (column == strlen("where") && !memcmp(l->name + 1, "where", column)) {
    rc = name_unescape(items, len, text, &n);
    if (rc == 0 && (!n || memchr(text, 0, n))) rc = EINVAL;
    text[n] = 0;
  } else {
    rc = values_predicate(l->name + 1, column, items, len, text);
  }
  if (rc)
    return lookup_fails(l, rc, "a '%' without two hexadecimal digits, a NUL, a quote that is not closed, or nothing");
  rc = add_where(l, text, body);
  if (rc == 0) make_folder(l, NODE_OPTION, body);
  return rc;
}

/* Says whether a field is one that hits can be ordered or collapsed by, or shown with. 0 or EINVAL. */
static int check_order(lookup *l, int part, const char *text) {
  unsigned fields[GPUIR_MAX_FIELDS];
  search_request request;
  const char *bad;
  size_t n;
  memset(&request, 0, sizeof request);
  if (part == ASKED_SORT) request.sort = text;
  if (part == ASKED_COLLAPSE) request.collapse = text;
  if (!*text) return lookup_fails(l, EINVAL, "a field is missing");
  if (part != ASKED_SHOW) return generation_check(l->g, &request, l->why, sizeof l->why);
  return column_find(generation_index(l->g), text, fields, &n, &bad)
      ? lookup_fails(l, EINVAL, "the index has no such field, or it is there twice")
      : 0;
}

/* `@sort=-mtime`, `@collapse=dir` or `@show=author,date`. */
static int make_order(lookup *l, int part, const char *text, node_body *body) {
  char name[NAME_LIMIT + 1];
  size_t n;
  int rc = name_unescape(text, l->len - (size_t)(text - l->name), name, &n);
  if (rc || memchr(name, 0, n)) return bad_escape(l);
  name[n] = 0;
  if (body->tree == NODE_FACET_ROOT) return lookup_fails(l, EINVAL, "facets are counted over all matches");
  if (part == ASKED_SHOW && body->tree != NODE_QUERY_ROOT) return lookup_fails(l, EINVAL, "query/ alone shows values");
  if (*lookup_asked(l, part)) return lookup_fails(l, EINVAL, "one of its kind stands before it");
  rc = check_order(l, part, name);
  if (rc == 0) rc = give_asked(l, part, name, body);
  if (rc == 0) make_folder(l, NODE_OPTION, body);
  return rc;
}

/* Finds what such a name asks for: ASKED_SORT and so on, or -1; *text is what follows the '='. */
static int find_order(const lookup *l, const char **text) {
  static const char *const names[] = {"@sort=", "@collapse=", "@show="};
  int i;
  for (i = 0; i < 3; i++) {
    *text = l->name + strlen(names[i]);
    if (!strncmp(l->name, names[i], strlen(names[i]))) return ASKED_SORT + i;
  }
  return -1;
}

static int make_option(lookup *l, node_body *body) {
  const unsigned allowed = lookup_options(body->tree);
  int rc = name_option(l->name, l->len, allowed, l->f->config.max_k, &body->options);
  const char *equals = memchr(l->name, '=', l->len), *text;
  const int part = find_order(l, &text);
  if (part >= 0 && allowed) return make_order(l, part, text, body);
  if (rc && equals && allowed && !name_is_reserved(l->name, l->len)) return make_where(l, equals, body);
  if (rc)
    return lookup_fails(l, rc, "not an option here, or one of its kind stands before it, or its number is too large");
  make_folder(l, NODE_OPTION, body);
  share_where(l, body);
  return 0;
}

/* by/<column>/: any field of the index. */
static int make_column(lookup *l, node_body *body) {
  gpuir_field field;
  size_t i;
  for (i = 0; gpuir_field_get(generation_index(l->g), i, &field) == GPUIR_OK; i++)
    if (strlen(field.name) == l->len && !memcmp(field.name, l->name, l->len)) {
      make_folder(l, NODE_COLUMN, body);
      share_where(l, body);
      return 0;
    }
  return ENOENT;
}

/* Whether a document has what a folder asks for. */
static int has_documents(lookup *l, const node_body *body) {
  search_request request;
  search_reply reply;
  int rc;
  memset(&request, 0, sizeof request);
  request.text = "";
  request.where = body->res->bytes;
  request.k = 1;
  request.backend = BACKEND_CPU;
  request.rank = RANK_PLAIN;
  rc = lookup_search(l, &request, &reply);
  if (rc) return rc;
  free(reply.hits);
  gpuir_query_destroy(reply.query);
  return reply.n ? 0 : ENOENT;
}

/* by/<column>/<value>/: exists while a document has it. */
static int make_value(lookup *l, node_body *body) {
  char text[PREDICATE_SIZE];
  int rc = values_predicate(l->column, strlen(l->column), l->name, l->len, text);
  if (rc) return lookup_fails(l, rc, "a '%' without two hexadecimal digits, or a quote that is not closed");
  rc = add_where(l, text, body);
  if (rc == 0) rc = has_documents(l, body);
  if (rc) {
    pthread_mutex_lock(&l->f->lock);
    result_unref(&l->f->cache, body->res);
    pthread_mutex_unlock(&l->f->lock);
    body->res = NULL;
    return rc;
  }
  make_folder(l, NODE_VALUE, body);
  body->recheck = 1;
  return 0;
}

/* What stands in by/<column>/<value>/: the folders of queries, and another by/. */
static int make_branch(lookup *l, node_body *body) {
  const int by = strcmp(l->name, "by") == 0;
  size_t i = 0;
  while (!by && i < BY_BRANCHES && strcmp(by_branches[i].name, l->name) != 0) i++;
  if (i == BY_BRANCHES) return ENOENT;
  body->tree = by ? NODE_BY_ROOT : by_branches[i].tree;
  make_folder(l, by ? NODE_BY : body->tree == NODE_FACET_ROOT ? NODE_FACET : NODE_OPTION, body);
  share_where(l, body);
  return 0;
}

static int make_node(lookup *l, node_kind dir, node_body *body) {
  if (++body->depth >= NAME_DEPTH) return lookup_fails(l, E2BIG, "too many folders");
  switch ((int)dir) {
  case NODE_DOC_ROOT: return make_doc(l, body);
  case NODE_TERM_ROOT: return make_term(l, body);
  case NODE_BY_ROOT:
  case NODE_BY: return make_column(l, body);
  case NODE_COLUMN: return make_value(l, body);
  case NODE_FACET_ROOT:
  case NODE_FACET: return make_facet(l, body);
  case NODE_VALUE: return make_branch(l, body);
  default: return name_is_option(l->name, l->len) ? make_option(l, body) : make_query(l, body);
  }
}

int lookup_generation(lookup *l, node_kind dir, node_body *body) {
  generation *named;
  uint64_t id;
  int rc;
  l->g = generation_ref(l->f->now);
  if (dir != NODE_DOC_ROOT) return 0;
  rc = name_document(l->name, l->len, &id, &body->docid);
  if (rc || id == 0) return rc;
  body->named = 1;
  named = fs_generation(l->f, id);
  if (!named && id > generation_id(l->g)) return ENOENT;
  if (!named) {
    l->f->count.expired++;
    return lookup_fails(l, ESTALE, "the index has changed since, too long ago");
  }
  l->older = named != l->g;
  generation_unref(l->g);
  l->g = generation_ref(named);
  return 0;
}

int lookup_make(lookup *l, node_kind dir, node_body *body) {
  int rc;
  body->uid = l->f->uid;
  body->gid = l->f->gid;
  body->mtime = generation_file(l->g)->mtime;
  guard_enter(generation_broken_flag(l->g));
  rc = generation_is_broken(l->g) ? EIO : make_node(l, dir, body);
  guard_leave();
  if (rc && generation_is_broken(l->g)) rc = lookup_fails(l, EIO, "a file of the index was cut short");
  return rc;
}
