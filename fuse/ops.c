/* ops.c - the FUSE operations. */
#include "fs.h"

#include "caller.h"
#include "guard.h"

#include "../tools/common/source.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static fs *fs_of(fuse_req_t req) { return fuse_req_userdata(req); }

/* ---- attributes ---------------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  mode_t mode;
} fixed[NODE_FIXED_END] = {
    {"", 0},
    {"/", S_IFDIR | 0555},
    {"README", S_IFREG | 0444},
    {".version", S_IFREG | 0444},
    {".stats", S_IFREG | 0444},
    {"query", S_IFDIR | 0555},
    {"hits", S_IFDIR | 0555},
    {"doc", S_IFDIR | 0555},
    {"term", S_IFDIR | 0555},
};

static void stat_common(struct stat *st, uint64_t ino, mode_t mode, off_t size, struct timespec mtime) {
  st->st_ino = (ino_t)ino;
  st->st_mode = mode;
  st->st_nlink = S_ISDIR(mode) ? 2 : 1;
  st->st_size = size;
  st->st_blksize = 4096;
  st->st_blocks = (size + 511) / 512;
  st->st_mtim = st->st_ctim = st->st_atim = mtime;
}

static void stat_fixed(const fs *f, node_kind kind, struct stat *st) {
  off_t size = 0; /* of .stats too: its length is only known when it is read */
  if (kind == NODE_README) size = (off_t)f->readme_size;
  if (kind == NODE_VERSION) size = (off_t)f->version_size;
  memset(st, 0, sizeof *st);
  stat_common(st, kind, fixed[kind].mode, size, f->started);
  st->st_uid = f->uid;
  st->st_gid = f->gid;
}

/* Writes the target of a link of a hits/ folder. */
static void link_target(const node_body *hits, uint32_t link, char out[LINK_TARGET_SIZE]) {
  const unsigned depth =
      2 + name_options_depth(&hits->options); /* folders between the link and the mount point */
  name_link_target(out, depth, hits->named ? hits->generation : 0, hits->res->links[link - 1].docid);
}

static void stat_node(const fs *f, const node *n, uint32_t link, struct stat *st) {
  memset(st, 0, sizeof *st);
  if (link) {
    char target[LINK_TARGET_SIZE];
    link_target(&n->body, link, target);
    stat_common(st, n->ino + link, S_IFLNK | 0777, (off_t)strlen(target), n->body.mtime);
    st->st_uid = f->uid;
    st->st_gid = f->gid;
  } else {
    stat_common(st, n->ino, n->body.mode, n->body.size, n->body.mtime);
    st->st_uid = n->body.uid;
    st->st_gid = n->body.gid;
  }
}

/* ---- replies to look-ups ------------------------------------------------------------------------------- */

static void reply_fixed(fuse_req_t req, node_kind kind) {
  struct fuse_entry_param e;
  memset(&e, 0, sizeof e);
  e.ino = kind;
  stat_fixed(fs_of(req), kind, &e.attr);
  e.entry_timeout = FIXED_TIMEOUT;
  e.attr_timeout = kind == NODE_STATS ? 0 : FIXED_TIMEOUT;
  fuse_reply_entry(req, &e);
}

/* "No such file", for the kernel to remember. */
static void reply_never(fuse_req_t req) {
  struct fuse_entry_param e;
  memset(&e, 0, sizeof e);
  e.entry_timeout = FIXED_TIMEOUT;
  fuse_reply_entry(req, &e);
}

/* Returns for how long the kernel may take the node for what its name stands for, in seconds. One that was made
 * for the user who asked is asked for again by the next. */
static double entry_timeout(const fs *f, const node *n) {
  if (n->state != NODE_LISTED || (n->body.recheck && f->config.shared)) return 0;
  return ENTRY_TIMEOUT;
}

/* Answers with a node for which a lookup has been counted. Called with the lock, gives it back. */
static void reply_node(fuse_req_t req, fs *f, node *n, uint32_t link) {
  struct fuse_entry_param e;
  memset(&e, 0, sizeof e);
  e.ino = n->ino + link;
  stat_node(f, n, link, &e.attr);
  e.attr_timeout = FIXED_TIMEOUT;
  e.entry_timeout = entry_timeout(f, n);
  pthread_mutex_unlock(&f->lock);
  if (fuse_reply_entry(req, &e) != 0) { /* the kernel did not take it */
    pthread_mutex_lock(&f->lock);
    cache_forget(&f->cache, n, 1);
    pthread_mutex_unlock(&f->lock);
  }
}

/* ---- searching ----------------------------------------------------------------------------------------- */

static void on_interrupt(fuse_req_t req, void *data) {
  (void)req;
  ticket_cancel(data);
}

static void ticket_list(fs *f, ticket *t) {
  int quitting;
  pthread_mutex_lock(&f->lock);
  t->next = f->running;
  t->link = &f->running;
  if (t->next) t->next->link = &t->next;
  f->running = t;
  quitting = f->quitting;
  pthread_mutex_unlock(&f->lock);
  if (quitting) ticket_cancel(t);
}

static void ticket_unlist(fs *f, ticket *t) {
  pthread_mutex_lock(&f->lock);
  *t->link = t->next;
  if (t->next) t->next->link = t->link;
  pthread_mutex_unlock(&f->lock);
}

/* Lets the work that *t stands for be called off: by a signal to the process that asks, or by shutting down. */
static void ticket_begin(fuse_req_t req, fs *f, generation *g, ticket *t) {
  memset(t, 0, sizeof *t);
  t->gen = g;
  ticket_list(f, t);
  fuse_req_interrupt_func(req, on_interrupt, t);
}

static void ticket_end(fuse_req_t req, fs *f, ticket *t) {
  fuse_req_interrupt_func(req, NULL, NULL); /* returns once no interrupt is using the ticket */
  ticket_unlist(f, t);
}

/* A look-up of a new name, while it is worked on. */
typedef struct lookup {
  fuse_req_t req;
  fs *f;
  generation *g;
  int older; /* g is not the newest */
  const char *name;
  size_t len;
  char why[WHY_SIZE]; /* it failed, in words; "": as its error says */
} lookup;

/* Notes why a look-up fails; returns its error. */
static int fails(lookup *l, int error, const char *why) {
  snprintf(l->why, sizeof l->why, "%s", why);
  return error;
}

static int bad_escape(lookup *l) {
  return fails(l, EINVAL, "a '%' without two hexadecimal digits behind it");
}

static int run_search(lookup *l, const search_request *request, search_reply *reply) {
  fs *f = l->f;
  ticket t;
  int rc;
  ticket_begin(l->req, f, l->g, &t);
  rc = generation_search(&t, request, reply);
  ticket_end(l->req, f, &t);
  pthread_mutex_lock(&f->lock);
  f->count.searches++;
  f->count.fallbacks += reply->fallbacks;
  if (reply->fallbacks) memcpy(f->last_fallback, reply->fallback, sizeof f->last_fallback);
  pthread_mutex_unlock(&f->lock);
  return rc ? fails(l, rc, reply->error) : 0;
}

/* A result known by its key, counted as a hit. */
static result *memo(fs *f, const char *key, size_t key_len) {
  result *r;
  pthread_mutex_lock(&f->lock);
  r = result_find(&f->cache, key, key_len);
  if (r) f->count.memo_hits++;
  pthread_mutex_unlock(&f->lock);
  return r;
}

static result *remember(fs *f, const char *key, size_t key_len, buf *b, hit_link *links, uint32_t nlinks) {
  result *r;
  char *bytes = b->data;
  if (bytes && b->len < b->cap) { /* the cache counts what is used */
    char *cut = realloc(bytes, b->len ? b->len : 1);
    if (cut) bytes = cut;
  }
  pthread_mutex_lock(&f->lock);
  r = result_add(&f->cache, key, key_len, bytes, b->len, links, nlinks);
  pthread_mutex_unlock(&f->lock);
  b->data = NULL;
  return r;
}

#define TEXT_SIZE (2 * NAME_LIMIT)
#define KEY_SIZE (TEXT_SIZE + 128)

/* Searches and writes what a name holds. */
static result *search_result(lookup *l, const search_request *request, const char *key, size_t key_len,
                             int as_links, int format, int *error) {
  search_reply reply;
  hit_link *links = NULL;
  result *r;
  buf b;
  int rc = run_search(l, request, &reply);
  memset(&b, 0, sizeof b);
  b.max = l->f->config.result_bytes;
  if (rc == 0 && as_links) {
    links = malloc((reply.n ? reply.n : 1) * sizeof *links);
    rc = links ? format_links(&b, generation_index(l->g), reply.hits, reply.n, links) : ENOMEM;
  } else if (rc == 0) {
    rc = format_hits(&b, generation_index(l->g), reply.hits, reply.n, format);
  }
  free(reply.hits);
  if (rc == EFBIG) (void)fails(l, rc, "the answer is longer than max_result");
  if (generation_is_broken(l->g)) rc = EIO;
  *error = rc;
  if (rc) {
    free(links);
    buf_free(&b);
    return NULL;
  }
  r = remember(l->f, key, key_len, &b, links, as_links ? (uint32_t)reply.n : 0);
  if (!r) *error = ENOMEM;
  return r;
}

/* query/<q> and hits/<q>: a file or a folder of links. */
static int make_query(lookup *l, int as_links, node_body *body) {
  const name_options *options = &body->options;
  char text[TEXT_SIZE], key[KEY_SIZE];
  search_request request;
  size_t key_len;
  int format = FORMAT_PLAIN, rc = 0;
  memset(&request, 0, sizeof request);
  if (name_query(l->name, l->len, text, &request.len, as_links ? NULL : &format) != 0) return bad_escape(l);
  request.text = text;
  request.mode = options->mode;
  request.k = options->k;
  request.backend = options->backend;
  key_len = (size_t)snprintf(key, sizeof key, "%llu %d %lu %d %c ", (unsigned long long)generation_id(l->g),
                             request.mode, (unsigned long)request.k, request.backend,
                             as_links ? 'h' : '0' + format);
  memcpy(key + key_len, text, request.len);
  key_len += request.len;

  body->generation = generation_id(l->g);
  body->named = as_links && generation_is_live(l->g);
  body->res = memo(l->f, key, key_len);
  if (!body->res) body->res = search_result(l, &request, key, key_len, as_links, format, &rc);
  if (!body->res) return rc;
  body->kind = as_links ? NODE_HITS : NODE_BYTES;
  body->mode = as_links ? S_IFDIR | 0555 : S_IFREG | 0444;
  body->size = as_links ? 0 : (off_t)body->res->size;
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
  body->res = remember(l->f, NULL, 0, &b, NULL, 0);
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

static int put_part(void *b, const void *bytes, size_t n) {
  buf_put((buf *)b, bytes, n);
  return ((buf *)b)->error;
}

/* Reads a part of a source. Holds no lock. */
static int read_part(lookup *l, const gpuir_doc *doc, int fd, buf *b) {
  source_range range;
  ticket t;
  int rc;
  if (doc->source_bytes > b->max) return EFBIG;
  memset(&range, 0, sizeof range);
  range.offset = doc->source_offset;
  range.bytes = doc->source_bytes;
  range.hash = doc->hash;
  if (l->f->config.timeout_ns) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    range.deadline = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
    range.deadline += l->f->config.timeout_ns;
  }
  range.stopped = is_cancelled;
  range.stopped_arg = &t;
  ticket_begin(l->req, l->f, l->g, &t);
  rc = source_read(fd, &range, put_part, b);
  ticket_end(l->req, l->f, &t);
  return rc == ESTALE ? fails(l, rc, "its source is no longer what was indexed") : rc;
}

/* A part of an open source, which the cache may have already. */
static int part_result(lookup *l, const gpuir_doc *doc, int fd, const struct stat *st, node_body *body) {
  char key[KEY_SIZE];
  buf b;
  int rc;
  /* The file's state is part of the key: what has changed since is read again. */
  size_t key_len = (size_t)snprintf(key, sizeof key, "%llu doc %lu %llu %llu %lld %lld.%09ld %lld.%09ld",
                                    (unsigned long long)generation_id(l->g), (unsigned long)body->docid,
                                    (unsigned long long)st->st_dev, (unsigned long long)st->st_ino,
                                    (long long)st->st_size, (long long)st->st_mtim.tv_sec,
                                    st->st_mtim.tv_nsec, (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
  pthread_mutex_lock(&l->f->lock);
  body->res = result_find(&l->f->cache, key, key_len);
  pthread_mutex_unlock(&l->f->lock);
  if (body->res) return 0;
  memset(&b, 0, sizeof b);
  b.max = l->f->config.result_bytes;
  rc = read_part(l, doc, fd, &b);
  if (rc) {
    buf_free(&b);
    return rc;
  }
  body->res = remember(l->f, key, key_len, &b, NULL, 0);
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
  body->res = remember(f, NULL, 0, &b, NULL, 0);
  if (!body->res) return ENOMEM;
  body->kind = NODE_LINK;
  body->mode = S_IFLNK | 0777;
  body->size = (off_t)body->res->size;
  return 0;
}

/* Whether a document is shown as the bytes that were indexed, and not as a link to its file: where it is a part of it
 * whose place is known; and in an older generation, as the file may be the text of another one. */
static int is_part(const lookup *l, const gpuir_doc *doc) {
  if (!doc->source_offset && !doc->source_bytes) return 0;
  return doc->first_line || doc->source_offset || l->older;
}

/* body->docid is the document's, l->g its generation. */
static int make_doc(lookup *l, node_body *body) {
  const fs_config *config = &l->f->config;
  char path[PATH_MAX];
  gpuir_doc doc;
  int rc = gpuir_doc_get(generation_index(l->g), body->docid, &doc);
  if (rc != GPUIR_OK) return rc == GPUIR_E_NOT_FOUND ? ENOENT : EIO;
  body->generation = generation_id(l->g);
  if (doc.text) { /* what was indexed; the source may have changed since */
    body->kind = NODE_TEXT;
    body->mode = S_IFREG | 0444;
    body->size = (off_t)doc.text_len;
    return generation_is_broken(l->g) ? EIO : 0;
  }
  if (config->nosource) return ENOENT;
  if (doc.source_len == 0) return ENODATA;
  rc = source_path(config->source_base, config->mountpoint, doc.source, doc.source_len, path, sizeof path);
  if (generation_is_broken(l->g)) return EIO;
  if (rc) return rc;
  return is_part(l, &doc) ? make_part(l, &doc, path, body) : make_link(l->f, path, body);
}

/* ---- look-up ------------------------------------------------------------------------------------------- */

static node_kind fixed_by_name(const char *name) {
  int kind;
  for (kind = NODE_README; kind < NODE_FIXED_END; kind++)
    if (strcmp(fixed[kind].name, name) == 0) return (node_kind)kind;
  return NODE_NONE;
}

/* A link of a hits/ folder. Called with the lock, gives it back. */
static void lookup_link(fuse_req_t req, fs *f, node *dir, const char *name, size_t len) {
  const result *r = dir->body.res;
  uint32_t rank = name_link_rank(name, len);
  if (rank == 0 || rank > r->nlinks || strcmp(r->bytes + r->links[rank - 1].name, name) != 0) {
    pthread_mutex_unlock(&f->lock);
    reply_never(req); /* this folder will never have it */
    return;
  }
  dir->lookups++;
  reply_node(req, f, dir, rank);
}

static int make_option(lookup *l, int hits, node_body *body) {
  int rc = name_option(l->name, l->len, l->f->config.max_k, &body->options);
  if (rc) return fails(l, rc, "not an option, or one of its kind stands before it, or its k is over max_k");
  body->kind = hits ? NODE_HITS_OPTION : NODE_QUERY_OPTION;
  body->mode = S_IFDIR | 0555;
  body->mtime = l->f->started;
  return 0;
}

static int make_node(lookup *l, node_kind dir, node_body *body) {
  int hits = dir == NODE_HITS_ROOT || dir == NODE_HITS_OPTION;
  if (dir == NODE_DOC_ROOT) return make_doc(l, body);
  if (dir == NODE_TERM_ROOT) return make_term(l, body);
  return name_is_option(l->name, l->len) ? make_option(l, hits, body) : make_query(l, hits, body);
}

/* Finds which generation a name in the folder `dir` is about: the one that a document's name says, or the newest. Sets
 * l->g, with a reference also on failure. Called with the lock. */
static int choose_generation(lookup *l, node_kind dir, node_body *body) {
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
    return fails(l, ESTALE, "the index has changed since, too long ago");
  }
  l->older = named != l->g;
  generation_unref(l->g);
  l->g = generation_ref(named);
  return 0;
}

/* Makes what the folder `kind` has under the name. Called without the lock. */
static int make_new(lookup *l, node_kind kind, node_body *body) {
  int rc;
  body->uid = l->f->uid;
  body->gid = l->f->gid;
  body->mtime = generation_file(l->g)->mtime;
  guard_enter(generation_broken_flag(l->g));
  rc = generation_is_broken(l->g) ? EIO : make_node(l, kind, body);
  guard_leave();
  if (rc && generation_is_broken(l->g)) rc = fails(l, EIO, "a file of the index was cut short");
  return rc;
}

/* Counts a failure, and keeps why it was one. Called with the lock. */
static void count_failure(const lookup *l, int rc) {
  fs *f = l->f;
  if (rc == EINTR) f->count.interrupted++;
  if (rc == EINTR || rc == ENOENT) return;
  f->count.errors++;
  fs_failed(f, fuse_req_ctx(l->req)->uid, l->name, l->len, l->why[0] ? l->why : strerror(rc));
}

/* Makes what the folder `kind` has under a name, and remembers it. Called with the lock, gives it back. `body` has the
 * folder's options. */
static void lookup_new(lookup *l, fuse_ino_t parent, node_kind kind, node_body *body) {
  fs *f = l->f;
  node *n = NULL;
  int rc = choose_generation(l, kind, body);
  if (rc == 0) {
    pthread_mutex_unlock(&f->lock);
    rc = make_new(l, kind, body);
    pthread_mutex_lock(&f->lock);
    f->count.changed += rc == ESTALE; /* nothing else that is made is */
  }
  if (rc == 0) {
    /* If the index has been replaced meanwhile, this is answered once, and the next look-up asks anew. */
    const uint64_t id = body->generation;
    int listed = id == 0 || id == generation_id(f->now) ||
                 (kind == NODE_DOC_ROOT && body->named && fs_generation(f, id));
    n = cache_add(&f->cache, parent, l->name, l->len, body, listed);
    if (!n) rc = ENOMEM;
    if (f->cache.waiting.oldest) pthread_cond_signal(&f->to_notify);
  }
  if (rc) count_failure(l, rc);
  if (n) {
    reply_node(l->req, f, n, 0);
  } else {
    pthread_mutex_unlock(&f->lock);
    fuse_reply_err(l->req, rc);
  }
  generation_unref(l->g);
}

/* A name in the root. */
static void lookup_fixed(fuse_req_t req, const char *name) {
  node_kind kind = fixed_by_name(name);
  if (kind != NODE_NONE)
    reply_fixed(req, kind);
  else
    reply_never(req);
}

/* Naming a file runs its query: this is where everything in the mount begins. [fuse-lookup] */
static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name) {
  fs *f = fs_of(req);
  size_t len = strlen(name);
  node_kind kind = NODE_NONE;
  lookup l = {req, f, NULL, 0, name, len, "over 255 bytes"};
  node_body body;
  node *n;
  memset(&body, 0, sizeof body);
  pthread_mutex_lock(&f->lock);
  f->count.lookups++;
  if (len > NAME_LIMIT) {
    count_failure(&l, ENAMETOOLONG);
    pthread_mutex_unlock(&f->lock);
    fuse_reply_err(req, ENAMETOOLONG);
    return;
  }
  if (parent < NODE_FIXED_END) {
    kind = (node_kind)parent;
    body.options.mode = f->config.mode;
    body.options.k = f->config.k;
    body.options.backend = f->config.backend;
  } else {
    node *dir = ino_link(parent) ? NULL : cache_by_ino(&f->cache, parent);
    if (dir) {
      kind = dir->body.kind;
      body.options = dir->body.options;
      cache_touch(&f->cache, dir);
      if (kind == NODE_HITS) {
        lookup_link(req, f, dir, name, len);
        return;
      }
    }
  }
  if (kind == NODE_ROOT) {
    pthread_mutex_unlock(&f->lock);
    lookup_fixed(req, name);
    return;
  }
  if (kind != NODE_QUERY_ROOT && kind != NODE_HITS_ROOT && kind != NODE_DOC_ROOT && kind != NODE_TERM_ROOT &&
      kind != NODE_QUERY_OPTION && kind != NODE_HITS_OPTION) {
    pthread_mutex_unlock(&f->lock);
    fuse_reply_err(req, kind == NODE_NONE ? ESTALE : ENOTDIR);
    return;
  }
  if (name_is_never(name, len)) {
    pthread_mutex_unlock(&f->lock);
    reply_never(req);
    return;
  }
  n = cache_by_name(&f->cache, parent, name, len);
  if (n && !n->body.recheck) {
    n->lookups++;
    f->count.memo_hits++;
    cache_touch(&f->cache, n);
    reply_node(req, f, n, 0);
    return;
  }
  l.why[0] = 0;
  lookup_new(&l, parent, kind, &body);
}

static void forget_one(fs *f, uint64_t ino, uint64_t lookups) {
  node *n;
  if (ino < NODE_FIXED_END) return;
  n = cache_by_ino(&f->cache, ino);
  if (n) cache_forget(&f->cache, n, lookups);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups) {
  fs *f = fs_of(req);
  pthread_mutex_lock(&f->lock);
  forget_one(f, ino, lookups);
  pthread_mutex_unlock(&f->lock);
  fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets) {
  fs *f = fs_of(req);
  size_t i;
  pthread_mutex_lock(&f->lock);
  for (i = 0; i < count; i++) forget_one(f, forgets[i].ino, forgets[i].nlookup);
  pthread_mutex_unlock(&f->lock);
  fuse_reply_none(req);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
  fs *f = fs_of(req);
  struct stat st;
  (void)fi;
  if (ino < NODE_FIXED_END) {
    stat_fixed(f, (node_kind)ino, &st);
    fuse_reply_attr(req, &st, ino == NODE_STATS ? 0 : FIXED_TIMEOUT);
  } else {
    node *n;
    pthread_mutex_lock(&f->lock);
    n = cache_by_ino(&f->cache, ino);
    if (n) stat_node(f, n, ino_link(ino), &st);
    pthread_mutex_unlock(&f->lock);
    if (n)
      fuse_reply_attr(req, &st, FIXED_TIMEOUT);
    else
      fuse_reply_err(req, ESTALE);
  }
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino) {
  fs *f = fs_of(req);
  uint32_t link = ino_link(ino);
  char target[PATH_MAX];
  int rc = 0;
  node *n;
  pthread_mutex_lock(&f->lock);
  n = ino < NODE_FIXED_END ? NULL : cache_by_ino(&f->cache, ino);
  if (!n) {
    rc = ESTALE;
  } else if (link) {
    link_target(&n->body, link, target);
  } else if (n->body.kind == NODE_LINK) {
    memcpy(target, n->body.res->bytes, n->body.res->size);
    target[n->body.res->size] = 0;
  } else {
    rc = EINVAL;
  }
  pthread_mutex_unlock(&f->lock);
  if (rc)
    fuse_reply_err(req, rc);
  else
    fuse_reply_readlink(req, target);
}

/* ---- open files ---------------------------------------------------------------------------------------- */

/* An open file: bytes, and what keeps them alive. */
typedef struct handle {
  const char *bytes;
  size_t size;
  result *res;
  generation *gen;
  char *own;
} handle;

static handle *handle_of(struct fuse_file_info *fi) { return (handle *)(uintptr_t)fi->fh; }

static void handle_close(fs *f, handle *h) {
  pthread_mutex_lock(&f->lock);
  result_unref(&f->cache, h->res);
  f->handles--;
  pthread_mutex_unlock(&f->lock);
  generation_unref(h->gen); /* may close an index, which is not to be done under the lock */
  free(h->own);
  free(h);
}

static int open_stats(fs *f, uid_t uid, handle *h) {
  buf b;
  memset(&b, 0, sizeof b);
  b.max = f->config.result_bytes;
  fs_stats(f, uid, &b);
  h->own = b.data;
  h->bytes = b.data;
  h->size = b.len;
  return b.error;
}

static int open_fixed(fs *f, node_kind kind, uid_t uid, handle *h) {
  if (kind == NODE_STATS) return open_stats(f, uid, h);
  if (kind == NODE_README) {
    h->bytes = f->readme;
    h->size = f->readme_size;
  } else if (kind == NODE_VERSION) {
    h->bytes = f->version;
    h->size = f->version_size;
  } else {
    return EISDIR;
  }
  return 0;
}

/* Opens a document's stored text. */
static int open_text(fs *f, const node_body *body, handle *h) {
  generation *g = fs_generation(f, body->generation);
  gpuir_doc doc;
  int rc;
  /* On ESTALE the kernel looks the name up again. A bare docID then is the document of the new index. */
  if (!g) return ESTALE;
  guard_enter(generation_broken_flag(g));
  rc = gpuir_doc_get(generation_index(g), body->docid, &doc);
  guard_leave();
  if (rc != GPUIR_OK || generation_is_broken(g)) return EIO;
  h->gen = generation_ref(g);
  h->bytes = doc.text;
  h->size = doc.text_len;
  return 0;
}

static int open_node(fs *f, uint64_t ino, handle *h) {
  node *n = ino_link(ino) ? NULL : cache_by_ino(&f->cache, ino);
  if (!n) return ESTALE;
  if (n->body.kind == NODE_TEXT) return open_text(f, &n->body, h);
  if (n->body.kind != NODE_BYTES) return EISDIR;
  h->res = n->body.res;
  h->res->refs++;
  h->bytes = h->res->bytes;
  h->size = h->res->size;
  return 0;
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
  fs *f = fs_of(req);
  handle *h;
  int rc;
  if ((fi->flags & O_ACCMODE) != O_RDONLY || fi->flags & O_TRUNC) {
    fuse_reply_err(req, EROFS);
    return;
  }
  h = calloc(1, sizeof *h);
  if (!h) {
    fuse_reply_err(req, ENOMEM);
    return;
  }
  if (ino < NODE_FIXED_END)
    rc = open_fixed(f, (node_kind)ino, fuse_req_ctx(req)->uid, h);
  else
    rc = 0;
  pthread_mutex_lock(&f->lock);
  if (ino >= NODE_FIXED_END) rc = open_node(f, ino, h);
  f->handles++;
  pthread_mutex_unlock(&f->lock);
  fi->fh = (uint64_t)(uintptr_t)h;
  fi->direct_io = ino == NODE_STATS;
  fi->keep_cache = ino != NODE_STATS;
  fi->noflush = 1;
  if (rc) fuse_reply_err(req, rc);
  if (rc || fuse_reply_open(req, fi) != 0) handle_close(f, h);
}

/* Answers with bytes of a mapped index. They are copied first: where the file was cut short, the kernel would
 * not take them, and the reader would wait for ever. */
static void reply_mapped(fuse_req_t req, generation *g, const char *bytes, size_t n) {
  char *copy = malloc(n);
  if (!copy) {
    fuse_reply_err(req, ENOMEM);
    return;
  }
  guard_enter(generation_broken_flag(g));
  memcpy(copy, bytes, n);
  guard_leave();
  if (generation_is_broken(g))
    fuse_reply_err(req, EIO);
  else
    fuse_reply_buf(req, copy, n);
  free(copy);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi) {
  const handle *h = handle_of(fi);
  size_t left;
  (void)ino;
  if (offset < 0 || (uint64_t)offset >= h->size) {
    fuse_reply_buf(req, NULL, 0);
    return;
  }
  left = h->size - (size_t)offset;
  if (size > left) size = left;
  if (h->gen)
    reply_mapped(req, h->gen, h->bytes + offset, size);
  else
    fuse_reply_buf(req, h->bytes + offset, size);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
  (void)ino;
  handle_close(fs_of(req), handle_of(fi));
  fuse_reply_err(req, 0);
}

/* ---- folders ------------------------------------------------------------------------------------------- */

/* Appends an entry; 0 when it no longer fits. */
static int add_entry(fuse_req_t req, char *page, size_t size, size_t *used, const char *name, uint64_t ino,
                     mode_t mode, off_t next) {
  struct stat st;
  size_t need;
  memset(&st, 0, sizeof st);
  st.st_ino = (ino_t)ino;
  st.st_mode = mode;
  need = fuse_add_direntry(req, page + *used, size - *used, name, &st, next);
  if (need > size - *used) return 0;
  *used += need;
  return 1;
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi) {
  fs *f = fs_of(req);
  uint64_t up = FUSE_ROOT_ID, at = offset < 0 ? 0 : (uint64_t)offset;
  result *r = NULL;
  size_t used = 0;
  int known = ino < NODE_FIXED_END;
  char *page = malloc(size);
  (void)fi;
  if (!page) {
    fuse_reply_err(req, ENOMEM);
    return;
  }
  if (!known) {
    node *n;
    pthread_mutex_lock(&f->lock);
    n = cache_by_ino(&f->cache, ino);
    if (n) {
      known = 1;
      up = n->parent;
      if (n->body.kind == NODE_HITS) {
        r = n->body.res;
        r->refs++;
      }
    }
    pthread_mutex_unlock(&f->lock);
  }
  if (!known) {
    free(page);
    fuse_reply_err(req, ESTALE);
    return;
  }
  /* Entry i has offset i, and names the offset of the next. All folders but the root and hits/<q>/ end after
   * "..": listing one must not run anything. */
  for (;; at++) {
    if (at == 0) {
      if (!add_entry(req, page, size, &used, ".", ino, S_IFDIR, 1)) break;
    } else if (at == 1) {
      if (!add_entry(req, page, size, &used, "..", up, S_IFDIR, 2)) break;
    } else if (ino == FUSE_ROOT_ID) {
      uint64_t kind = at - 2 + NODE_README;
      if (kind >= NODE_FIXED_END) break;
      if (!add_entry(req, page, size, &used, fixed[kind].name, kind, fixed[kind].mode, (off_t)at + 1)) break;
    } else if (r && at - 2 < r->nlinks) {
      if (!add_entry(req, page, size, &used, r->bytes + r->links[at - 2].name, ino + at - 1, S_IFLNK,
                     (off_t)at + 1))
        break;
    } else {
      break;
    }
  }
  fuse_reply_buf(req, page, used);
  free(page);
  if (r) {
    pthread_mutex_lock(&f->lock);
    result_unref(&f->cache, r);
    pthread_mutex_unlock(&f->lock);
  }
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino) {
  fs *f = fs_of(req);
  struct statvfs st;
  (void)ino;
  memset(&st, 0, sizeof st);
  pthread_mutex_lock(&f->lock);
  st.f_blocks = (fsblkcnt_t)((generation_bytes(f->now) + 4095) / 4096);
  pthread_mutex_unlock(&f->lock);
  st.f_bsize = st.f_frsize = 4096;
  st.f_namemax = NAME_LIMIT;
  fuse_reply_statfs(req, &st);
}

/* ---- writing, which the kernel already keeps off a read-only mount ------------------------------------- */

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int which,
                       struct fuse_file_info *fi) {
  (void)ino, (void)st, (void)which, (void)fi;
  fuse_reply_err(req, EROFS);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device) {
  (void)parent, (void)name, (void)mode, (void)device;
  fuse_reply_err(req, EROFS);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode) {
  (void)parent, (void)name, (void)mode;
  fuse_reply_err(req, EROFS);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name) {
  (void)parent, (void)name;
  fuse_reply_err(req, EROFS);
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name) {
  (void)target, (void)parent, (void)name;
  fuse_reply_err(req, EROFS);
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to, const char *to_name,
                      unsigned flags) {
  (void)parent, (void)name, (void)to, (void)to_name, (void)flags;
  fuse_reply_err(req, EROFS);
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name) {
  (void)ino, (void)parent, (void)name;
  fuse_reply_err(req, EROFS);
}

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *fi) {
  (void)parent, (void)name, (void)mode, (void)fi;
  fuse_reply_err(req, EROFS);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t offset,
                     struct fuse_file_info *fi) {
  (void)ino, (void)bytes, (void)size, (void)offset, (void)fi;
  fuse_reply_err(req, EROFS);
}

/* ---- the table ----------------------------------------------------------------------------------------- */

static void op_init(void *userdata, struct fuse_conn_info *conn) {
  (void)userdata;
  /* Look-ups in one folder may run side by side. libfuse passes this on from 3.17; before, the kernel runs
   * them one after the other. */
  conn->want |= conn->capable & (FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_CACHE_SYMLINKS);
  /* The content of an inode never changes, so nothing needs to be checked before pages are used again. */
  conn->want &= ~(unsigned)FUSE_CAP_AUTO_INVAL_DATA;
}

const struct fuse_lowlevel_ops fs_operations = {
    .init = op_init,
    .lookup = op_lookup,
    .forget = op_forget,
    .forget_multi = op_forget_multi,
    .getattr = op_getattr,
    .readlink = op_readlink,
    .open = op_open,
    .read = op_read,
    .release = op_release,
    .readdir = op_readdir,
    .statfs = op_statfs,
    .setattr = op_setattr,
    .mknod = op_mknod,
    .mkdir = op_mkdir,
    .unlink = op_unlink,
    .rmdir = op_unlink,
    .symlink = op_symlink,
    .rename = op_rename,
    .link = op_link,
    .create = op_create,
    .write = op_write,
};
