/* ops.c - the FUSE operations. */
#include "by.h"
#include "guard.h"
#include "lookup.h"
#include "texts.h"

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
    {"AGENTS.md", S_IFREG | 0444},
    {".version", S_IFREG | 0444},
    {".stats", S_IFREG | 0444},
    {"query", S_IFDIR | 0555},
    {"hits", S_IFDIR | 0555},
    {"files", S_IFDIR | 0555},
    {"pass", S_IFDIR | 0555},
    {"grep", S_IFDIR | 0555},
    {"doc", S_IFDIR | 0555},
    {"term", S_IFDIR | 0555},
    {"by", S_IFDIR | 0555},
    {"facet", S_IFDIR | 0555},
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
  if (kind == NODE_AGENTS) size = (off_t)f->agents_size;
  if (kind == NODE_VERSION) size = (off_t)f->version_size;
  memset(st, 0, sizeof *st);
  stat_common(st, kind, fixed[kind].mode, size, f->started);
  st->st_uid = f->uid;
  st->st_gid = f->gid;
}

/* Writes the target of a link of a hits/ folder. */
static void link_target(const node_body *hits, uint32_t link, char out[LINK_TARGET_SIZE]) {
  name_link_target(out, hits->depth, hits->named ? hits->generation : 0, hits->res->links[link - 1].docid);
}

static void stat_node(const fs *f, const node *n, uint32_t link, struct stat *st) {
  memset(st, 0, sizeof *st);
  st->st_uid = f->uid;
  st->st_gid = f->gid;
  if (link && n->body.kind == NODE_FILES) {
    const hit_link *entry = &n->body.res->links[link - 1];
    stat_common(st, n->ino + link, S_IFREG | (entry->source ? 0400 : 0444), (off_t)entry->size, n->body.mtime);
  } else if (link) {
    char target[LINK_TARGET_SIZE];
    link_target(&n->body, link, target);
    stat_common(st, n->ino + link, S_IFLNK | 0777, (off_t)strlen(target), n->body.mtime);
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

/* ---- look-up ------------------------------------------------------------------------------------------- */

static node_kind fixed_by_name(const char *name) {
  int kind;
  for (kind = NODE_README; kind < NODE_FIXED_END; kind++)
    if (strcmp(fixed[kind].name, name) == 0) return (node_kind)kind;
  return NODE_NONE;
}

/* An entry of a folder of hits. Called with the lock, gives it back. */
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

/* Counts a failure, and keeps why it was one. Called with the lock. */
static void count_failure(const lookup *l, int rc) {
  fs *f = l->f;
  const uid_t uid = fuse_req_ctx(l->req)->uid;
  if (rc == EINTR) f->count.interrupted++;
  if (rc == EINTR || rc == ENOENT) return;
  f->count.errors++;
  fs_said(f, SAID_ERROR, uid, l->name, l->len, l->why[0] ? l->why : strerror(rc));
}

/* Makes what the folder `kind` has under a name, and remembers it. Called with the lock, gives it back. `body` has the
 * folder's options. */
static void lookup_new(lookup *l, fuse_ino_t parent, node_kind kind, node_body *body) {
  fs *f = l->f;
  node *n = NULL;
  int rc = lookup_generation(l, kind, body);
  if (rc == 0) {
    pthread_mutex_unlock(&f->lock);
    rc = lookup_make(l, kind, body);
    pthread_mutex_lock(&f->lock);
    f->count.changed += rc == ESTALE; /* nothing else that is made is */
  }
  if (rc == 0) {
    /* If the index has been replaced meanwhile, this is answered once, and the next look-up asks anew. */
    const uint64_t id = body->generation;
    int listed =
        id == 0 || id == generation_id(f->now) || (kind == NODE_DOC_ROOT && body->named && fs_generation(f, id));
    n = cache_add(&f->cache, parent, l->name, l->len, body, listed);
    if (!n) rc = ENOMEM;
    if (f->cache.waiting.oldest) pthread_cond_signal(&f->to_notify);
  }
  if (rc) count_failure(l, rc);
  if (n && l->note[0]) fs_said(f, SAID_NOTE, fuse_req_ctx(l->req)->uid, l->name, l->len, l->note);
  if (l->before) result_unref(&f->cache, l->before);
  result_unref(&f->cache, l->given);
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
  if (kind != NODE_NONE) reply_fixed(req, kind);
  else reply_never(req);
}

/* Says what the folder is that a name is looked up in, and gives what the name stands for what it has of it. *dir is
 * its node, if it has one. Called with the lock. */
static node_kind enter_folder(fs *f, fuse_ino_t parent, node_body *body, node **dir) {
  *dir = NULL;
  if (parent < NODE_FIXED_END) {
    body->tree = (node_kind)parent;
    body->options.mode = f->config.mode;
    body->options.k = f->config.k;
    body->options.backend = f->config.backend;
    body->depth = 1;
    return (node_kind)parent;
  }
  *dir = ino_link(parent) ? NULL : cache_by_ino(&f->cache, parent);
  if (!*dir) return NODE_NONE;
  body->options = (*dir)->body.options;
  body->tree = (*dir)->body.tree;
  body->depth = (*dir)->body.depth;
  body->asked = (*dir)->body.asked;
  cache_touch(&f->cache, *dir);
  return (*dir)->body.kind;
}

/* Whether what is named in a folder is made when it is named. */
static int makes_names(node_kind kind) {
  return (kind >= NODE_QUERY_ROOT && kind < NODE_FIXED_END) || kind == NODE_OPTION || kind == NODE_BY ||
      kind == NODE_COLUMN || kind == NODE_VALUE || kind == NODE_FACET;
}

/* Whether a name is answered by "no such file" without a look at the index. */
static int is_no_name(node_kind kind, const char *name, size_t len) {
  if (kind == NODE_COLUMN && len > 2 && !memcmp(name, "..", 2)) return 0; /* up to a value */
  if (name_is_never(name, len)) return 1;
  if (kind == NODE_DOC_ROOT || kind == NODE_TERM_ROOT || kind == NODE_COLUMN || name_is_option(name, len)) return 0;
  if (kind == NODE_BY_ROOT || kind == NODE_BY || kind == NODE_FACET_ROOT || kind == NODE_FACET) return 0; /* a field */
  return name_is_probe(name, len);
}

/* Lets a look-up have what it may use of the folder, and of what the name stood for before. Called with the lock. */
static void keep_for_lookup(lookup *l, const node *dir, const node *known) {
  const fs *f = l->f;
  if (known && known->body.res && known->body.res->nsources && known->body.generation == generation_id(f->now)) {
    l->before = known->body.res;
    l->before->refs++;
  }
  if (!dir || !dir->body.res) return;
  l->given = dir->body.res;
  l->given->refs++;
}

/* Naming a file runs its query: this is where everything in the mount begins. [fuse-lookup] */
static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name) {
  fs *f = fs_of(req);
  size_t len = strlen(name);
  lookup l = {.req = req, .f = f, .name = name, .len = len, .why = "over 255 bytes"};
  node_kind kind;
  node_body body;
  node *n, *dir;
  memset(&body, 0, sizeof body);
  pthread_mutex_lock(&f->lock);
  f->count.lookups++;
  if (len > NAME_LIMIT) {
    count_failure(&l, ENAMETOOLONG);
    pthread_mutex_unlock(&f->lock);
    fuse_reply_err(req, ENAMETOOLONG);
    return;
  }
  kind = enter_folder(f, parent, &body, &dir);
  if (kind == NODE_HITS || kind == NODE_FILES) {
    lookup_link(req, f, dir, name, len);
    return;
  }
  if (kind == NODE_ROOT) {
    pthread_mutex_unlock(&f->lock);
    lookup_fixed(req, name);
    return;
  }
  if (!makes_names(kind)) {
    pthread_mutex_unlock(&f->lock);
    fuse_reply_err(req, kind == NODE_NONE ? ESTALE : ENOTDIR);
    return;
  }
  if (is_no_name(kind, name, len)) {
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
  keep_for_lookup(&l, dir, n);
  if (kind == NODE_COLUMN) snprintf(l.column, sizeof l.column, "%s", dir->name);
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
    if (n) fuse_reply_attr(req, &st, FIXED_TIMEOUT);
    else fuse_reply_err(req, ESTALE);
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
  if (rc) fuse_reply_err(req, rc);
  else fuse_reply_readlink(req, target);
}

/* ---- open files ---------------------------------------------------------------------------------------- */

/* An open file: bytes and what keeps them alive, or the stored text of a document. */
typedef struct handle {
  const char *bytes; /* NULL: the text */
  uint32_t docid;
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
  } else if (kind == NODE_AGENTS) {
    h->bytes = f->agents;
    h->size = f->agents_size;
  } else if (kind == NODE_VERSION) {
    h->bytes = f->version;
    h->size = f->version_size;
  } else {
    return EISDIR;
  }
  return 0;
}

/* Opens a document's stored text. */
static int open_text(fs *f, uint64_t generation_number, uint32_t docid, handle *h) {
  generation *g = fs_generation(f, generation_number);
  gpuir_doc doc;
  int rc;
  /* On ESTALE the kernel looks the name up again. A bare docID then is the document of the new index. */
  if (!g) return ESTALE;
  guard_enter(generation_broken_flag(g));
  rc = gpuir_doc_get(generation_index(g), docid, &doc);
  guard_leave();
  if (rc != GPUIR_OK || generation_is_broken(g)) return EIO;
  if (!doc.stored) return ENODATA; /* of an entry of files/<q>/ */
  h->gen = generation_ref(g);
  h->docid = docid;
  h->size = (size_t)doc.stored_bytes;
  return 0;
}

static int open_node(fs *f, uint64_t ino, handle *h) {
  node *n = ino_link(ino) ? NULL : cache_by_ino(&f->cache, ino);
  if (!n) return ESTALE;
  if (n->body.kind == NODE_TEXT) return open_text(f, n->body.generation, n->body.docid, h);
  if (n->body.kind != NODE_BYTES) return EISDIR;
  h->res = n->body.res;
  h->res->refs++;
  h->bytes = h->res->bytes;
  h->size = h->res->size;
  return 0;
}

/* Opens an entry of files/<q>/. Called with the lock; gives it back while a source is read. */
static int open_entry(fuse_req_t req, fs *f, uint64_t ino, handle *h) {
  const node *n = cache_by_ino(&f->cache, ino);
  generation *g;
  hit_link entry;
  int rc;
  if (!n || n->body.kind != NODE_FILES) return n ? ELOOP : ESTALE; /* ELOOP: a link is not opened */
  entry = n->body.res->links[ino_link(ino) - 1];
  if (!entry.source) return open_text(f, n->body.generation, entry.docid, h);
  g = fs_generation(f, n->body.generation);
  if (!g) return ESTALE;
  h->gen = generation_ref(g);
  pthread_mutex_unlock(&f->lock);
  rc = texts_read(req, f, g, &entry, &h->own);
  pthread_mutex_lock(&f->lock);
  f->count.changed += rc == ESTALE;
  h->bytes = h->own;
  h->size = (size_t)entry.size;
  return rc;
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
  if (ino < NODE_FIXED_END) rc = open_fixed(f, (node_kind)ino, fuse_req_ctx(req)->uid, h);
  else rc = 0;
  pthread_mutex_lock(&f->lock);
  if (ino >= NODE_FIXED_END) rc = ino_link(ino) ? open_entry(req, f, ino, h) : open_node(f, ino, h);
  f->handles++;
  pthread_mutex_unlock(&f->lock);
  fi->fh = (uint64_t)(uintptr_t)h;
  fi->direct_io = ino == NODE_STATS;
  fi->keep_cache = ino != NODE_STATS;
  fi->noflush = 1;
  if (rc) fuse_reply_err(req, rc);
  if (rc || fuse_reply_open(req, fi) != 0) handle_close(f, h);
}

/* Answers with a part of a document's stored text. */
static void reply_text(fuse_req_t req, generation *g, uint32_t docid, uint64_t from, size_t n) {
  char *copy = malloc(n);
  int rc;
  if (!copy) {
    fuse_reply_err(req, ENOMEM);
    return;
  }
  guard_enter(generation_broken_flag(g));
  rc = gpuir_doc_text(generation_index(g), docid, from, copy, n);
  guard_leave();
  if (rc || generation_is_broken(g)) fuse_reply_err(req, EIO);
  else fuse_reply_buf(req, copy, n);
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
  if (!h->bytes) reply_text(req, h->gen, h->docid, (uint64_t)offset, size);
  else fuse_reply_buf(req, h->bytes + offset, size);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
  (void)ino;
  handle_close(fs_of(req), handle_of(fi));
  fuse_reply_err(req, 0);
}

/* ---- folders ------------------------------------------------------------------------------------------- */

/* Appends an entry; 0 when it no longer fits. */
static int add_entry(fuse_req_t req, char *page, size_t size, size_t *used, const char *name, uint64_t ino, mode_t mode,
    off_t next) {
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

/* A folder that is being listed. Entry i has offset i, and names the offset of the next. */
typedef struct listing {
  fuse_req_t req;
  char *page;
  size_t size, used;
  uint64_t ino, up;
  result *hits; /* of a folder of hits, or of one in by/ */
  mode_t type; /* of its entries; S_IFDIR: they have no numbers yet */
} listing;

#define UNKNOWN_INO 0xffffffff /* as libfuse has it: only a look-up says which */

/* Adds the option number `at` that the folder has; 0 when there is none, or no more room. Listing one must not run
 * anything: what stands in it lists empty. */
static int list_option(listing *d, uint64_t at) {
  static const char *const names[] = {"@and", "@andor", "@bytes=4000", "@context=0", "@context=3", "@cpu", "@gpu",
      "@k=10", "@k=100", "@or", "@rank=code", "@rank=plain", "@tokens=0", "@tokens=2000"};
  const uint32_t max_k = fs_of(d->req)->config.max_k;
  uint64_t wanted = at - 2;
  size_t i;
  for (i = 0; i < sizeof names / sizeof *names; i++) {
    name_options none;
    memset(&none, 0, sizeof none);
    if (name_option(names[i], strlen(names[i]), lookup_options((node_kind)d->ino), max_k, &none) != 0) continue;
    if (wanted-- == 0)
      return add_entry(d->req, d->page, d->size, &d->used, names[i], UNKNOWN_INO, S_IFDIR, (off_t)at + 1);
  }
  return 0;
}

/* Adds entry number `at`; 0 when there is none, or no more room. */
static int list_entry(listing *d, uint64_t at) {
  const off_t next = (off_t)at + 1;
  const uint64_t kind = at - 2 + NODE_README;
  if (at == 0) return add_entry(d->req, d->page, d->size, &d->used, ".", d->ino, S_IFDIR, next);
  if (at == 1) return add_entry(d->req, d->page, d->size, &d->used, "..", d->up, S_IFDIR, next);
  if (d->hits)
    return at - 2 < d->hits->nlinks &&
        add_entry(d->req, d->page, d->size, &d->used, d->hits->bytes + d->hits->links[at - 2].name,
            d->type == S_IFDIR ? UNKNOWN_INO : d->ino + at - 1, d->type, next);
  if (d->ino == FUSE_ROOT_ID)
    return kind < NODE_FIXED_END &&
        add_entry(d->req, d->page, d->size, &d->used, fixed[kind].name, kind, fixed[kind].mode, next);
  return d->ino < NODE_FIXED_END && list_option(d, at);
}

static void drop_listing(fs *f, result *r) {
  pthread_mutex_lock(&f->lock);
  result_unref(&f->cache, r);
  pthread_mutex_unlock(&f->lock);
}

/* Makes what a folder in by/ lists, once for all who read it through one descriptor. */
static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
  fs *f = fs_of(req);
  lookup l = {.req = req, .f = f, .name = "", .len = 0};
  node_kind kind = ino < NODE_FIXED_END ? (node_kind)ino : NODE_NONE;
  result *names = NULL;
  node *n = NULL;
  int rc = 0;
  pthread_mutex_lock(&f->lock);
  if (ino >= NODE_FIXED_END && !ino_link(ino)) n = cache_by_ino(&f->cache, ino);
  if (n) kind = n->body.kind;
  if (by_lists(kind)) {
    l.g = generation_ref(f->now);
    keep_for_lookup(&l, n, NULL);
    if (n) snprintf(l.column, sizeof l.column, "%s", n->name);
    pthread_mutex_unlock(&f->lock);
    rc = by_list(&l, kind, &names);
    pthread_mutex_lock(&f->lock);
    result_unref(&f->cache, l.given);
    l.name = kind == NODE_COLUMN ? l.column : "by";
    l.len = strlen(l.name);
    if (rc) count_failure(&l, rc);
  }
  pthread_mutex_unlock(&f->lock);
  generation_unref(l.g);
  fi->fh = (uint64_t)(uintptr_t)names;
  if (rc) fuse_reply_err(req, rc);
  else if (fuse_reply_open(req, fi) != 0 && names) drop_listing(f, names);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
  (void)ino;
  if (fi->fh) drop_listing(fs_of(req), (result *)(uintptr_t)fi->fh);
  fuse_reply_err(req, 0);
}

/* Finds what a folder lists; its hits get a reference. 0 when it is not known. */
static int find_listing(fs *f, listing *d) {
  const node *n;
  if (d->ino < NODE_FIXED_END && !d->hits) return 1;
  pthread_mutex_lock(&f->lock);
  if (d->hits) d->hits->refs++;
  n = d->ino < NODE_FIXED_END ? NULL : cache_by_ino(&f->cache, d->ino);
  if (n) {
    d->up = n->parent;
    if (n->body.kind == NODE_HITS || n->body.kind == NODE_FILES) {
      d->type = n->body.kind == NODE_HITS ? S_IFLNK : S_IFREG;
      d->hits = n->body.res;
      n->body.res->refs++;
    }
  }
  pthread_mutex_unlock(&f->lock);
  return n != NULL || d->hits;
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi) {
  fs *f = fs_of(req);
  listing d = {.req = req, .page = malloc(size), .size = size, .ino = ino, .up = FUSE_ROOT_ID};
  uint64_t at = offset < 0 ? 0 : (uint64_t)offset;
  d.hits = (result *)(uintptr_t)fi->fh;
  d.type = S_IFDIR;
  if (!d.page) {
    fuse_reply_err(req, ENOMEM);
    return;
  }
  if (find_listing(f, &d)) {
    while (list_entry(&d, at)) at++;
    fuse_reply_buf(req, d.page, d.used);
  } else {
    fuse_reply_err(req, ESTALE);
  }
  free(d.page);
  if (d.hits) drop_listing(f, d.hits);
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

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int which, struct fuse_file_info *fi) {
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

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi) {
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
    .opendir = op_opendir,
    .readdir = op_readdir,
    .releasedir = op_releasedir,
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
