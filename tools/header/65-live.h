
/* ========
 * [65-live]  live indexes: adding, deleting, committing
 *
 * What is added goes to a builder, the batch. Refresh makes a segment of it, adds what is to be deleted to the logs of
 * the segments, and returns a snapshot; commit syncs the segments and writes a manifest.
 *
 * One thread uses the handle, and a second one may merge: the mutex guards the list of segments, and is not held while
 * a segment is written or merged.
 *
 * Uses      [30-analysis], [37-layout], [41-reader], [42-snapshot], [45-merge], [46-builder], [63-execution],
 *           [64-folder].
 * Start at  gpuir_live_refresh, gpuir_live_commit, gpuir_live_open.
 * Tests     tests/unit/65_live.c
 * ======*/

#ifdef __linux__
#define GPUIR__OFD_SETLK 37 /* F_OFD_SETLK, which <fcntl.h> shows to GNU sources alone */
#endif

static const uint8_t gpuir__lock_magic[8] = {'G', 'P', 'U', 'I', 'R', 'W', 0x0a, 0x1a};

/* Finds documents by name or by source: chains of documents whose keys have the same slot. */
typedef struct gpuir__keys {
  uint32_t *head; /* [slots] a document, plus 1; 0: none */
  uint32_t *next; /* [cap] the same */
  uint64_t slots; /* a power of two; 0: nothing was looked up yet */
  uint64_t n; /* documents in the chains */
  uint64_t cap;
} gpuir__keys;

/* The manifest as a file: another one under its name means another writer. */
typedef struct gpuir__stamp {
  gpuir__identity file; /* none: there is no manifest */
  uint64_t size, time;
  uint64_t hash; /* its checksum */
} gpuir__stamp;

/* A segment that no manifest names any more. */
typedef struct gpuir__garbage {
  uint64_t number;
  gpuir__identity file;
} gpuir__garbage;

/* A segment in the writer's list. */
typedef struct gpuir__piece {
  gpuir__segment *seg;
  gpuir__deleted *deleted; /* what snapshots of now delete from it, or NULL */
  gpuir__buf pending; /* uint32_t: what the next refresh deletes */
  uint64_t *doomed; /* a bit a document of both; NULL: none was deleted */
  gpuir__keys keys[2]; /* [GPUIR_BY_] */
  int synced; /* its bytes are on disk */
  int committed; /* a manifest names it, or may */
} gpuir__piece;

/* The documents of the batch, which are not in a segment yet. */
typedef struct gpuir__live_batch {
  gpuir_builder *builder; /* NULL: nothing was added */
  uint64_t number;
  gpuir__identity file; /* of segment `number` */
  uint64_t n; /* documents */
  gpuir__buf starts; /* uint64_t a document: where its keys begin */
  gpuir__buf bytes; /* of each document: the name's length (8 bytes), the source's, the name, the source */
  gpuir__buf pending; /* uint32_t */
  gpuir__buf doomed; /* a byte a document */
  gpuir__keys keys[2];
} gpuir__live_batch;

struct gpuir_live {
  gpuir_allocator a;
  pthread_mutex_t mutex; /* guards what follows up to `merging`; the batch is the caller's thread's alone */
  gpuir__piece *pieces;
  size_t n, cap;
  uint64_t generation, content, next;
  gpuir__buf garbage; /* gpuir__garbage: segments that the manifest names, and the next one will not */
  int changed, documents; /* since the last commit: the list; its live documents */
  uint64_t lost; /* documents without a token that was kept */
  int status; /* not 0: only gpuir_live_close is left */
  gpuir_error error;
  int merging;
  int folder, lock;
  int made_lock; /* this handle has made it */
  gpuir__stamp stamp; /* of the manifest that this handle has read or written */
  char *path; /* absolute */
  size_t path_size;
  gpuir_open_desc open;
  uint64_t memory;
  unsigned threads;
  gpuir_index *like; /* a segment of this index, whose settings all others get */
  struct stat example; /* of the manifest that was there, for modes of new files; st_mode 0: there was none */
  int alien; /* it is another user's, in a folder where others may write */
  uint64_t added, flushed; /* documents that gpuir_live_add has taken, ever and up to the last refresh */
  gpuir__live_batch batch;
};

/* ---- keys */

static void gpuir__keys_free(const gpuir_allocator *a, gpuir__keys *k) {
  gpuir__free(a, k->head, (size_t)k->slots * 4);
  gpuir__free(a, k->next, (size_t)k->cap * 4);
  memset(k, 0, sizeof *k);
}

/* Puts document number k->n, whose key this is, in front of its chain. There must be room. */
static void gpuir__keys_put(gpuir__keys *k, const char *bytes, size_t len) {
  uint32_t *head = &k->head[gpuir__hash(bytes, len, 0) & (k->slots - 1)];
  k->next[k->n] = *head;
  *head = (uint32_t)++k->n;
}

/* Makes the table anew for n documents; its chains are empty. */
static int gpuir__keys_make(const gpuir_allocator *a, gpuir__keys *k, uint64_t n) {
  uint64_t slots = 16;
  while (slots < n) slots *= 2;
  gpuir__keys_free(a, k);
  k->head = (uint32_t *)gpuir__alloc_zero(a, (size_t)slots * 4);
  k->next = (uint32_t *)gpuir__alloc(a, (size_t)slots * 4);
  k->slots = k->cap = slots;
  if (k->head && k->next) return GPUIR_OK;
  gpuir__keys_free(a, k);
  return GPUIR_E_NOMEM;
}

/* Returns a document's key, which is joined in `room` if it is stored in two pieces. */
static const char *gpuir__doc_key(const gpuir_doc *doc, int by, char room[GPUIR__JOINED_MAX + 1], size_t *len) {
  *len = by == GPUIR_BY_NAME ? doc->name_len : doc->source_len;
  if (by == GPUIR_BY_SOURCE) return doc->source;
  if (!doc->name_piece_len[1]) return doc->name_piece[0];
  (void)gpuir_doc_name(doc, room, GPUIR__JOINED_MAX + 1);
  return room;
}

/* Puts all documents of a segment into a table. 0, NOMEM, FORMAT. */
static int gpuir__keys_of_segment(const gpuir_allocator *a, gpuir__keys *k, const gpuir__segment *seg, int by) {
  char room[GPUIR__JOINED_MAX + 1];
  const char *key;
  gpuir_doc doc;
  uint64_t i;
  size_t len;
  int status = gpuir__keys_make(a, k, seg->stat.documents);
  for (i = 0; i < seg->stat.documents && !status; i++) {
    status = gpuir__segment_doc(seg, (uint32_t)i, &doc);
    if (status) break;
    key = gpuir__doc_key(&doc, by, room, &len);
    gpuir__keys_put(k, key, len);
  }
  if (status) gpuir__keys_free(a, k);
  return status;
}

/* Returns the key of the batch's document i. */
static const char *gpuir__batch_key(const gpuir__live_batch *b, uint64_t i, int by, size_t *len) {
  const uint8_t *p = b->bytes.data + gpuir__load64(b->starts.data + 8 * i);
  const uint64_t name = gpuir__load64(p), source = gpuir__load64(p + 8);
  *len = (size_t)(by == GPUIR_BY_NAME ? name : source);
  return (const char *)p + 16 + (by == GPUIR_BY_NAME ? 0 : name);
}

/* Puts the batch's documents that are not in its table there. 0 or NOMEM. */
static int gpuir__keys_of_batch(const gpuir_allocator *a, gpuir__live_batch *b, int by) {
  gpuir__keys *k = &b->keys[by];
  size_t len;
  if (b->n > k->cap && gpuir__keys_make(a, k, 2 * b->n)) return GPUIR_E_NOMEM;
  while (k->n < b->n) {
    const char *key = gpuir__batch_key(b, k->n, by, &len);
    gpuir__keys_put(k, key, len);
  }
  return GPUIR_OK;
}

/* ---- pieces */

static int gpuir__bit(const uint64_t *bits, uint32_t i) { return (int)(bits[i / 64] >> i % 64 & 1); }

static void gpuir__piece_free(const gpuir_allocator *a, gpuir__piece *p) {
  gpuir__free(a, p->doomed, (size_t)(p->seg->stat.documents / 64 + 1) * 8);
  gpuir__keys_free(a, &p->keys[0]);
  gpuir__keys_free(a, &p->keys[1]);
  gpuir__buf_free(a, &p->pending);
  gpuir__deleted_close(p->deleted);
  gpuir__segment_close(p->seg);
}

/* Counts the documents of a piece that snapshots of now have. */
static uint64_t gpuir__piece_live(const gpuir__piece *p) {
  return p->seg->stat.documents - (p->deleted ? p->deleted->n : 0);
}

/* Makes the bits of documents that are or will be deleted. */
static int gpuir__piece_bits(const gpuir_allocator *a, gpuir__piece *p) {
  const size_t size = (size_t)(p->seg->stat.documents / 64 + 1) * 8;
  if (p->doomed) return GPUIR_OK;
  p->doomed = (uint64_t *)gpuir__alloc_zero(a, size);
  if (!p->doomed) return GPUIR_E_NOMEM;
  if (p->deleted) memcpy(p->doomed, p->deleted->bits, size);
  return GPUIR_OK;
}

/* Notes that a document is to be deleted, unless it is. 0 or NOMEM. */
static int gpuir__piece_doom(const gpuir_allocator *a, gpuir__piece *p, uint32_t docid, uint64_t *n) {
  if (gpuir__piece_bits(a, p)) return GPUIR_E_NOMEM;
  if (gpuir__bit(p->doomed, docid)) return GPUIR_OK;
  if (gpuir__buf_put(a, &p->pending, &docid, sizeof docid)) return GPUIR_E_NOMEM;
  p->doomed[docid / 64] |= (uint64_t)1 << docid % 64;
  ++*n;
  return GPUIR_OK;
}

/* Dooms a piece's documents with this key, and takes them out of their chain. */
static int gpuir__piece_delete(const gpuir_allocator *a, gpuir__piece *p, int by, const char *bytes, size_t len,
    uint64_t *n) {
  gpuir__keys *k = &p->keys[by];
  char room[GPUIR__JOINED_MAX + 1];
  uint32_t *link;
  gpuir_doc doc;
  size_t key_len;
  int status = k->slots ? GPUIR_OK : gpuir__keys_of_segment(a, k, p->seg, by);
  if (status) return status;
  link = &k->head[gpuir__hash(bytes, len, 0) & (k->slots - 1)];
  while (*link && !status) {
    const uint32_t docid = *link - 1;
    const char *key;
    status = gpuir__segment_doc(p->seg, docid, &doc);
    if (status) break;
    key = gpuir__doc_key(&doc, by, room, &key_len);
    if (key_len == len && !memcmp(key, bytes, len)) {
      status = gpuir__piece_doom(a, p, docid, n);
      *link = k->next[docid];
    } else {
      link = &k->next[docid];
    }
  }
  return status;
}

/* Notes that a document of the batch is to be deleted, unless it is. 0 or NOMEM. */
static int gpuir__batch_doom(const gpuir_allocator *a, gpuir__live_batch *b, uint32_t docid, uint64_t *n) {
  if (b->doomed.data[docid]) return GPUIR_OK;
  if (gpuir__buf_put(a, &b->pending, &docid, sizeof docid)) return GPUIR_E_NOMEM;
  b->doomed.data[docid] = 1;
  ++*n;
  return GPUIR_OK;
}

/* Deletes likewise those of the batch's first `most` documents that have this key. */
static int gpuir__batch_delete(const gpuir_allocator *a, gpuir__live_batch *b, uint64_t most, int by, const char *bytes,
    size_t len, uint64_t *n) {
  gpuir__keys *k = &b->keys[by];
  uint32_t *link;
  size_t key_len;
  if (!b->n || !most) return GPUIR_OK;
  if (gpuir__keys_of_batch(a, b, by)) return GPUIR_E_NOMEM;
  link = &k->head[gpuir__hash(bytes, len, 0) & (k->slots - 1)];
  while (*link) {
    const uint32_t docid = *link - 1;
    const char *key = gpuir__batch_key(b, docid, by, &key_len);
    if (docid >= most || key_len != len || memcmp(key, bytes, len) != 0) {
      link = &k->next[docid];
      continue;
    }
    if (gpuir__batch_doom(a, b, docid, n)) return GPUIR_E_NOMEM;
    *link = k->next[docid];
  }
  return GPUIR_OK;
}

/* ---- the handle */

/* Says why the handle can only be closed, if that is so. */
static int gpuir__live_ready(gpuir_live *l, gpuir_error *err) {
  if (!l) return gpuir__refuse(err, "no live index given");
  if (l->status && err) *err = l->error;
  return l->status;
}

/* Ends the handle's use after a failure, which *err tells. */
static int gpuir__live_fail(gpuir_live *l, int status, const gpuir_error *local, gpuir_error *err) {
  if (!status) return GPUIR_OK;
  gpuir__lock(&l->mutex); /* a merge looks at it */
  l->status = status;
  if (local->code == status) l->error = *local;
  else (void)gpuir__fail(&l->error, status, 0, "%s: %s", gpuir__tail(l->path), gpuir_strerror(status));
  gpuir__unlock(&l->mutex);
  if (err) *err = l->error;
  return status;
}

/* Writes the path of a segment, which is absolute, to a new string; `suffix`: "", or ".tmp", with which the names of
 * its temporary files begin. */
static char *gpuir__live_path(const gpuir_live *l, uint64_t number, const char *suffix, size_t *size) {
  char name[40];
  name[0] = '/';
  gpuir__segment_name(name + 1, number);
  memcpy(name + strlen(name), suffix, strlen(suffix) + 1);
  return gpuir__concat(&l->a, l->path, strlen(l->path), name, strlen(name), size);
}

/* Gives a new file the mode, owner and group of the manifest that was there when the index was opened: who could not
 * read the index is not to read what is added. An alien manifest takes rights away and gives none: neither does it give
 * the file to its owner, nor let anybody do more. */
static int gpuir__live_keep_mode(const gpuir_live *l, int fd, const char *name, gpuir_error *err) {
  struct stat now;
  if (!l->example.st_mode) return GPUIR_OK;
  if (!l->alien) return gpuir__take_mode(fd, &l->example, name, err);
  if (fstat(fd, &now)) return gpuir__fail_errno(err, name, "cannot stat");
  if (!fchmod(fd, (now.st_mode & l->example.st_mode & 0777) | S_IRUSR | S_IWUSR)) return GPUIR_OK;
  return gpuir__fail_errno(err, name, "cannot change the mode");
}

/* Notes the manifest's mode. In a folder where a group or all users may make files, that of another user but root is
 * alien. */
static int gpuir__live_example(gpuir_live *l, gpuir_error *err) {
  struct stat folder;
  if (fstat(l->folder, &folder) || fstatat(l->folder, "manifest", &l->example, 0))
    return gpuir__fail_errno(err, l->path, "cannot stat");
  l->alien = folder.st_mode & (S_IWGRP | S_IWOTH) && l->example.st_uid != geteuid() && l->example.st_uid != 0;
  return GPUIR_OK;
}

/* ---- who has the folder */

/* Reads the stamp of an open manifest. 0, or -1 with errno. */
static int gpuir__stamp_of(int fd, gpuir__stamp *s) {
  struct stat st;
  memset(s, 0, sizeof *s);
  if (fstat(fd, &st)) return -1;
  s->file = gpuir__identity_of(&st);
  s->size = (uint64_t)st.st_size;
  s->time = (uint64_t)st.st_mtime;
  return st.st_size < 8 ? 0 : gpuir__pread_all(fd, &s->hash, 8, s->size - 8);
}

/* Reads that of the manifest in a folder; all 0 if there is none. 0, or -1 with errno. */
static int gpuir__stamp_read(int folder, gpuir__stamp *s) {
  const int fd = openat(folder, "manifest", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  int failed = 0;
  memset(s, 0, sizeof *s);
  if (fd < 0) return errno == ENOENT ? 0 : -1;
  if (gpuir__stamp_of(fd, s)) failed = errno;
  (void)close(fd);
  errno = failed;
  return failed ? -1 : 0;
}

/* Says whether the lock is the file of its name: 1, 0, or -1 with errno. */
static int gpuir__live_has_lock(const gpuir_live *l) {
  struct stat mine, named;
  if (fstat(l->lock, &mine)) return -1;
  if (fstatat(l->folder, "lock", &named, AT_SYMLINK_NOFOLLOW)) return errno == ENOENT ? 0 : -1;
  return gpuir__identity_same(gpuir__identity_of(&mine), gpuir__identity_of(&named));
}

/* Checks that no other writer came in: one does where the lock is removed or replaced, by hand or by a backup that is
 * restored. To go on then would destroy what that one has committed. What happens between this look and the renaming or
 * removing behind it stays unseen. 0, BUSY, IO. */
static int gpuir__live_owns(const gpuir_live *l, gpuir_error *err) {
  gpuir__stamp now;
  const int same = gpuir__live_has_lock(l);
  if (same < 0 || gpuir__stamp_read(l->folder, &now)) return gpuir__fail_errno(err, l->path, "cannot stat");
  if (same && !memcmp(&now, &l->stamp, sizeof now)) return GPUIR_OK;
  return gpuir__fail(err, GPUIR_E_BUSY, 0, "%s: its lock or manifest was replaced: nothing is written; open it anew",
      gpuir__tail(l->path));
}

/* Makes a builder of segment `number`, whose settings are `settings` or, if that is NULL, those of the index; *file
 * becomes the segment's. */
static int gpuir__live_builder(const gpuir_live *l, uint64_t number, const gpuir_builder_desc *settings,
    gpuir_builder **builder, gpuir__identity *file, gpuir_error *err) {
  gpuir_builder_desc desc;
  struct stat st;
  char name[32], *path;
  size_t size;
  int fd, status;
  memset(&desc, 0, sizeof desc);
  if (settings) {
    desc = *settings;
  } else {
    const gpuir__segment *like = l->like->leaves[0].seg;
    desc.like = l->like;
    desc.store_text = gpuir__has_texts(like);
    desc.positions = like->lists.positions != NULL;
    desc.simd = l->open.simd;
  }
  desc.allocator = &l->a;
  desc.memory = l->memory;
  desc.threads = l->threads;
  gpuir__segment_name(name, number);
  fd = openat(l->folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd < 0) {
    const int error = errno; /* a name that is taken: by another writer? */
    status = error == EEXIST ? gpuir__live_owns(l, err) : GPUIR_OK;
    errno = error;
    return status ? status : gpuir__fail_errno(err, name, "cannot create");
  }
  path = gpuir__live_path(l, number, "", &size);
  desc.path = path;
  memset(file, 0, sizeof *file);
  status = fstat(fd, &st) ? gpuir__fail_errno(err, name, "cannot stat") : GPUIR_OK;
  if (!status) *file = gpuir__identity_of(&st);
  if (!status) status = gpuir__live_keep_mode(l, fd, name, err);
  if (!status)
    status = path ? gpuir__builder_make(&desc, &fd, l->like ? l->like->analysis.pool : NULL, builder, err)
                  : gpuir__fail_nomem(err);
  if (fd >= 0) (void)close(fd);
  if (status) (void)unlinkat(l->folder, name, 0);
  gpuir__free(&l->a, path, size);
  return status;
}

/* Writes a builder's segment, which is `file`, and opens it; destroys the builder. *report is the builder's; it may be
 * NULL. */
static int gpuir__live_write(const gpuir_live *l, gpuir_builder *b, uint64_t number, gpuir__identity file,
    gpuir__segment **seg, gpuir_build_report *report, gpuir_error *err) {
  char name[32];
  int status = gpuir_builder_write(b, report, err);
  gpuir_builder_destroy(b);
  gpuir__segment_name(name, number);
  *seg = NULL;
  if (!status) status = gpuir__segment_open(&l->a, l->folder, name, &l->open, seg, err);
  if (!status && !gpuir__identity_same((*seg)->file, file)) {
    gpuir__segment_close(*seg);
    *seg = NULL;
    status = gpuir__fail(err, GPUIR_E_BUSY, 0, "%s: another writer has replaced it", name);
  }
  if (status) gpuir__segment_unlink(l->folder, number, file);
  else (*seg)->number = number;
  return status;
}

/* Makes room for one more piece. */
static int gpuir__live_room(gpuir_live *l) {
  const size_t cap = l->cap ? 2 * l->cap : 16;
  void *p;
  if (l->n < l->cap) return GPUIR_OK;
  p = l->a.resize(l->a.user, l->pieces, l->cap * sizeof *l->pieces, cap * sizeof *l->pieces);
  if (!p) return GPUIR_E_NOMEM;
  l->pieces = (gpuir__piece *)p;
  l->cap = cap;
  return GPUIR_OK;
}

/* Takes a piece out of the list. Its file goes with the next commit, or at once if no manifest names it. 0 or NOMEM:
 * then it stays. */
static int gpuir__live_drop(gpuir_live *l, size_t i) {
  gpuir__piece *p = &l->pieces[i];
  gpuir__garbage old;
  old.number = p->seg->number;
  old.file = p->seg->file;
  if (!p->committed) gpuir__segment_unlink(l->folder, old.number, old.file);
  else if (gpuir__buf_put(&l->a, &l->garbage, &old, sizeof old)) return GPUIR_E_NOMEM;
  gpuir__piece_free(&l->a, p);
  memmove(p, p + 1, (l->n - i - 1) * sizeof *p);
  l->n--;
  l->changed = 1;
  return GPUIR_OK;
}

/* ---- adding and deleting */

static void gpuir__live_batch_clear(const gpuir_allocator *a, gpuir__live_batch *b) {
  gpuir__keys_free(a, &b->keys[0]);
  gpuir__keys_free(a, &b->keys[1]);
  gpuir__buf_free(a, &b->starts);
  gpuir__buf_free(a, &b->bytes);
  gpuir__buf_free(a, &b->pending);
  gpuir__buf_free(a, &b->doomed);
  b->n = 0;
}

/* Keeps a document's name and source, by which it may be deleted before it is in a segment. 0 or NOMEM. */
static int gpuir__batch_note(const gpuir_allocator *a, gpuir__live_batch *b, const gpuir_doc_desc *doc) {
  const uint64_t lens[2] = {doc ? doc->name_len : 0, doc ? doc->source_len : 0};
  const uint64_t start = b->bytes.len;
  const uint8_t live = 0;
  if (gpuir__buf_put(a, &b->starts, &start, 8) || gpuir__buf_put(a, &b->bytes, lens, 16) ||
      (lens[0] && gpuir__buf_put(a, &b->bytes, doc->name, doc->name_len)) ||
      (lens[1] && gpuir__buf_put(a, &b->bytes, doc->source, doc->source_len)) ||
      gpuir__buf_put(a, &b->doomed, &live, 1))
    return GPUIR_E_NOMEM;
  b->n++;
  return GPUIR_OK;
}

/* Returns a new number for a segment. */
static uint64_t gpuir__live_number(gpuir_live *l) {
  uint64_t number;
  gpuir__lock(&l->mutex);
  number = l->next++;
  gpuir__unlock(&l->mutex);
  return number;
}

GPUIR_API int gpuir_live_add(gpuir_live *l, const gpuir_doc_desc *doc, const char *text, size_t len, gpuir_error *err) {
  gpuir_error local = {0, 0, ""};
  int status = gpuir__live_ready(l, err);
  if (status) return status;
  if (!l->batch.builder) {
    l->batch.number = gpuir__live_number(l);
    status = gpuir__live_builder(l, l->batch.number, NULL, &l->batch.builder, &l->batch.file, &local);
  }
  if (!status) status = gpuir_builder_add_text(l->batch.builder, doc, text, len, &local);
  if (status == GPUIR_E_ARGUMENT) {
    if (err) *err = local;
    return status;
  }
  if (!status && gpuir__batch_note(&l->a, &l->batch, doc)) status = gpuir__fail_nomem(&local);
  if (!status) l->added++;
  return gpuir__live_fail(l, status, &local, err);
}

GPUIR_API uint64_t gpuir_live_mark(const gpuir_live *l) { return l ? l->added : 0; }

/* Checks a mark: the batch has all documents that were added behind it. */
static int gpuir__live_marked(const gpuir_live *l, uint64_t mark, gpuir_error *err) {
  if (mark >= l->flushed && mark <= l->added) return GPUIR_OK;
  return gpuir__refuse(err, "a mark of gpuir_live_mark lasts until the next refresh or commit");
}

GPUIR__COLD GPUIR_API int gpuir_live_delete_before(gpuir_live *l, uint64_t mark, int by, const char *bytes, size_t len,
    uint64_t *n, gpuir_error *err) {
  uint64_t count = 0;
  gpuir_error local = {0, 0, ""};
  size_t i;
  int status = gpuir__live_ready(l, err);
  if (n) *n = 0;
  if (!status) status = gpuir__live_marked(l, mark, err);
  if (status) return status;
  if ((by != GPUIR_BY_NAME && by != GPUIR_BY_SOURCE) || !bytes || !len)
    return gpuir__refuse(err, "gpuir_live_delete: by a name or a source, which has a byte");
  gpuir__lock(&l->mutex);
  for (i = 0; i < l->n && !status; i++) status = gpuir__piece_delete(&l->a, &l->pieces[i], by, bytes, len, &count);
  gpuir__unlock(&l->mutex);
  if (!status) status = gpuir__batch_delete(&l->a, &l->batch, mark - l->flushed, by, bytes, len, &count);
  if (n) *n = count;
  return gpuir__live_fail(l, status, &local, err);
}

GPUIR_API int gpuir_live_delete(gpuir_live *l, int by, const char *bytes, size_t len, uint64_t *n, gpuir_error *err) {
  return gpuir_live_delete_before(l, gpuir_live_mark(l), by, bytes, len, n, err);
}

GPUIR__COLD GPUIR_API int gpuir_live_delete_since(gpuir_live *l, uint64_t mark, uint64_t *n, gpuir_error *err) {
  uint64_t count = 0, i;
  gpuir_error local = {0, 0, ""};
  int status = gpuir__live_ready(l, err);
  if (n) *n = 0;
  if (!status) status = gpuir__live_marked(l, mark, err);
  if (status) return status;
  for (i = mark - l->flushed; i < l->batch.n && !status; i++)
    status = gpuir__batch_doom(&l->a, &l->batch, (uint32_t)i, &count);
  if (n) *n = count;
  return gpuir__live_fail(l, status, &local, err);
}

/* ---- refresh */

/* Makes what is pending part of a piece's log. 0 or NOMEM. */
static int gpuir__piece_apply(const gpuir_allocator *a, gpuir__piece *p) {
  const uint32_t *docids = (const uint32_t *)(const void *)p->pending.data;
  gpuir__deleted *set;
  uint32_t n;
  int status;
  if (!p->pending.len) return GPUIR_OK;
  gpuir__lock(&p->seg->log.mutex);
  n = p->deleted ? p->deleted->n : 0;
  status = gpuir__log_append(p->seg, docids, p->pending.len / 4);
  n += (uint32_t)(p->pending.len / 4);
  gpuir__unlock(&p->seg->log.mutex);
  if (!status) status = gpuir__deleted_make(p->seg, n, p->deleted, &set);
  if (status) return status;
  gpuir__deleted_close(p->deleted);
  p->deleted = set;
  gpuir__buf_free(a, &p->pending);
  return GPUIR_OK;
}

/* Makes a piece of the batch's segment, which goes to the end of the list. */
static int gpuir__live_take_batch(gpuir_live *l, gpuir_error *err) {
  gpuir__live_batch *b = &l->batch;
  gpuir_build_report report;
  gpuir__piece piece;
  uint64_t n = 0;
  size_t i;
  int status;
  memset(&piece, 0, sizeof piece);
  l->flushed = l->added;
  status = gpuir__live_write(l, b->builder, b->number, b->file, &piece.seg, &report, err);
  b->builder = NULL;
  if (status) return status;
  l->lost += report.lost_documents;
  for (i = 0; i < b->pending.len / 4 && !status; i++)
    status = gpuir__piece_doom(&l->a, &piece, gpuir__load32(b->pending.data + 4 * i), &n);
  gpuir__lock(&l->mutex);
  if (!status) status = gpuir__live_room(l);
  if (!status) l->pieces[l->n++] = piece;
  l->changed = l->documents = 1;
  gpuir__unlock(&l->mutex);
  gpuir__live_batch_clear(&l->a, b);
  if (!status) return GPUIR_OK;
  gpuir__piece_free(&l->a, &piece);
  return gpuir__fail_nomem(err);
}

/* Takes the pieces of which no document is left out of the list, but for the last one. */
static int gpuir__live_drop_dead(gpuir_live *l) {
  size_t i = 0;
  int status = GPUIR_OK;
  while (i < l->n && l->n > 1 && !status)
    if (gpuir__piece_live(&l->pieces[i])) i++;
    else status = gpuir__live_drop(l, i);
  return status;
}

/* Makes what was added and deleted part of the list. */
GPUIR__COLD static int gpuir__live_flush(gpuir_live *l, gpuir_error *err) {
  uint64_t documents = 0;
  size_t i;
  int status = GPUIR_OK;
  if (l->batch.builder) status = gpuir__live_take_batch(l, err);
  if (status) return status;
  gpuir__lock(&l->mutex);
  for (i = 0; i < l->n && !status; i++) {
    if (l->pieces[i].pending.len) l->changed = l->documents = 1;
    status = gpuir__piece_apply(&l->a, &l->pieces[i]);
  }
  if (!status) status = gpuir__live_drop_dead(l);
  if (status) (void)gpuir__fail(err, status, 0, "%s: %s", gpuir__tail(l->path), gpuir_strerror(status));
  for (i = 0; i < l->n; i++) documents += l->pieces[i].seg->stat.documents;
  if (!status && documents > GPUIR__MAX_DOCUMENTS)
    status = gpuir__fail(err, GPUIR_E_LIMIT, 0, "%s: more than 2^32-2 documents, deleted ones included: merge it",
        gpuir__tail(l->path));
  gpuir__unlock(&l->mutex);
  return status;
}

/* Makes a snapshot of the list. */
static int gpuir__live_snapshot(gpuir_live *l, gpuir_index **index, gpuir_error *err) {
  gpuir__leaf *leaves;
  size_t n, i;
  int status;
  gpuir__lock(&l->mutex);
  n = l->n;
  leaves = (gpuir__leaf *)gpuir__alloc_zero(&l->a, n * sizeof *leaves);
  for (i = 0; leaves && i < n; i++) {
    leaves[i].seg = gpuir__segment_retain(l->pieces[i].seg);
    leaves[i].deleted = gpuir__deleted_retain(l->pieces[i].deleted);
  }
  gpuir__unlock(&l->mutex);
  if (!leaves) return gpuir__fail_nomem(err);
  status = gpuir__index_open(&l->a, l->path, &l->open, leaves, n, l->like->analysis.pool, index, err);
  gpuir__free(&l->a, leaves, n * sizeof *leaves);
  if (status) return status;
  (*index)->generation = l->generation;
  (*index)->content = l->content;
  return GPUIR_OK;
}

GPUIR__COLD GPUIR_API int gpuir_live_refresh(gpuir_live *l, gpuir_index **index, gpuir_error *err) {
  gpuir_error local = {0, 0, ""};
  int status;
  if (index) *index = NULL;
  status = gpuir__live_ready(l, err);
  if (status) return status;
  if (!index) return gpuir__refuse(err, "gpuir_live_refresh: no place for the index given");
  status = gpuir__live_flush(l, &local);
  if (!status) status = gpuir__live_snapshot(l, index, &local);
  return gpuir__live_fail(l, status, &local, err);
}

/* ---- commit */

/* Syncs the files of pieces that were not synced, then their names. */
static int gpuir__live_sync(gpuir_live *l, gpuir_error *err) {
  size_t i;
  int any = 0;
  for (i = 0; i < l->n; i++) {
    gpuir__piece *p = &l->pieces[i];
    char name[32];
    int fd, failed;
    if (p->synced) continue;
    gpuir__segment_name(name, p->seg->number);
    fd = openat(l->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return gpuir__fail_errno(err, name, "cannot open");
    failed = fsync(fd) ? errno : 0;
    (void)close(fd);
    errno = failed;
    if (failed) return gpuir__fail_errno(err, name, "cannot sync");
    p->synced = any = 1;
  }
  if (any && fsync(l->folder) && errno != EINVAL) return gpuir__fail_errno(err, l->path, "cannot sync");
  return GPUIR_OK;
}

/* Appends the manifest's bytes. */
static int gpuir__live_manifest(const gpuir_live *l, gpuir__buf *out) {
  gpuir__manifest_head head;
  uint64_t hash;
  uint32_t j;
  size_t i;
  int status;
  memcpy(head.magic, gpuir__manifest_magic, sizeof head.magic);
  head.format = *l->like->leaves[0].seg->meta.columns ? GPUIR__MANIFEST_FIELDS : GPUIR__MANIFEST_FORMAT;
  head.segments = (uint32_t)l->n;
  head.generation = l->generation + 1;
  head.content = l->content + (l->documents != 0);
  head.next = l->next;
  status = gpuir__buf_put(&l->a, out, &head, sizeof head);
  for (i = 0; i < l->n && !status; i++) {
    const gpuir__piece *p = &l->pieces[i];
    gpuir__entry e;
    e.number = p->seg->number;
    e.hash = gpuir__segment_hash(p->seg);
    e.documents = (uint32_t)p->seg->stat.documents;
    e.deleted = p->deleted ? p->deleted->n : 0;
    status = gpuir__buf_put(&l->a, out, &e, sizeof e);
  }
  for (i = 0; i < l->n; i++)
    for (j = 0; l->pieces[i].deleted && j < l->pieces[i].deleted->n && !status; j++)
      status = gpuir__manifest_put(&l->a, out, gpuir__log_get(&l->pieces[i].seg->log, j));
  if (status) return status;
  hash = gpuir__hash(out->data, out->len, 0);
  return gpuir__buf_put(&l->a, out, &hash, 8);
}

/* Writes manifest.tmp; *stamp becomes its own. */
static int gpuir__live_write_manifest(const gpuir_live *l, const gpuir__buf *bytes, gpuir__stamp *stamp,
    gpuir_error *err) {
  int fd, failed;
  if (unlinkat(l->folder, "manifest.tmp", 0) && errno != ENOENT)
    return gpuir__fail_errno(err, l->path, "cannot remove manifest.tmp");
  fd = openat(l->folder, "manifest.tmp", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd < 0) return gpuir__fail_errno(err, l->path, "cannot create manifest.tmp");
  failed = gpuir__live_keep_mode(l, fd, "manifest.tmp", err) ? errno : 0;
  if (!failed && (gpuir__pwrite_all(fd, bytes->data, bytes->len, 0) || fsync(fd))) failed = errno;
  if (!failed && gpuir__stamp_of(fd, stamp)) failed = errno;
  if (close(fd) && errno != EINTR && !failed) failed = errno;
  if (failed) (void)unlinkat(l->folder, "manifest.tmp", 0);
  errno = failed;
  return failed ? gpuir__fail_errno(err, l->path, "cannot write the manifest") : GPUIR_OK;
}

/* Writes the manifest and puts it in place of the old one, unless another writer came in. */
static int gpuir__live_publish(gpuir_live *l, const gpuir__buf *bytes, gpuir_error *err) {
  gpuir__stamp stamp;
  size_t i;
  int failed, status = gpuir__live_owns(l, err); /* manifest.tmp is removed */
  if (!status) status = gpuir__live_write_manifest(l, bytes, &stamp, err);
  if (status) return status;
  status = gpuir__live_owns(l, err);
  if (status) {
    if (gpuir__identity_same(gpuir__identity_at(l->folder, "manifest.tmp"), stamp.file))
      (void)unlinkat(l->folder, "manifest.tmp", 0);
    return status;
  }
  /* also if that fails: the manifest may be in its place, and nothing that it names may be removed */
  for (i = 0; i < l->n; i++) l->pieces[i].committed = 1;
  failed = renameat(l->folder, "manifest.tmp", l->folder, "manifest") ? errno : 0;
  if (failed) (void)unlinkat(l->folder, "manifest.tmp", 0);
  else l->stamp = stamp;
  if (!failed && fsync(l->folder) && errno != EINVAL) failed = errno;
  errno = failed;
  return failed ? gpuir__fail_errno(err, l->path, "cannot write the manifest") : GPUIR_OK;
}

/* Removes the files that the manifest has ceased to name, unless another writer came in: that one does it. */
static void gpuir__live_collect(gpuir_live *l) {
  size_t i;
  for (i = 0; i < l->garbage.len && !gpuir__live_owns(l, NULL); i += sizeof(gpuir__garbage)) {
    gpuir__garbage old;
    memcpy(&old, l->garbage.data + i, sizeof old);
    gpuir__segment_unlink(l->folder, old.number, old.file);
  }
  l->garbage.len = 0;
}

/* Commits the list, if it has changed; the mutex is held. */
GPUIR__COLD static int gpuir__live_commit_list(gpuir_live *l, gpuir_error *err) {
  gpuir__buf bytes = {NULL, 0, 0};
  int status;
  if (!l->changed) return GPUIR_OK;
  status = gpuir__live_owns(l, err); /* another writer has removed what was not committed */
  if (!status) status = gpuir__live_sync(l, err);
  if (!status && gpuir__live_manifest(l, &bytes)) status = gpuir__fail_nomem(err);
  if (!status) status = gpuir__live_publish(l, &bytes, err);
  gpuir__buf_free(&l->a, &bytes);
  if (status) return status;
  l->generation++;
  l->content += l->documents != 0;
  l->changed = l->documents = 0;
  gpuir__live_collect(l);
  return GPUIR_OK;
}

GPUIR__COLD GPUIR_API int gpuir_live_commit(gpuir_live *l, gpuir_error *err) {
  gpuir_error local = {0, 0, ""};
  int status = gpuir__live_ready(l, err);
  if (status) return status;
  status = gpuir__live_flush(l, &local);
  if (!status) {
    gpuir__lock(&l->mutex);
    status = gpuir__live_commit_list(l, &local);
    gpuir__unlock(&l->mutex);
  }
  return gpuir__live_fail(l, status, &local, err);
}

/* ---- opening and closing */

GPUIR_API uint64_t gpuir_live_lost(const gpuir_live *l) { return l ? l->lost : 0; }

GPUIR__COLD GPUIR_API void gpuir_live_close(gpuir_live *l) {
  gpuir_allocator a;
  size_t i;
  if (!l) return;
  a = l->a;
  if (l->batch.builder) {
    gpuir_builder_destroy(l->batch.builder);
    gpuir__segment_unlink(l->folder, l->batch.number, l->batch.file);
  }
  gpuir__live_batch_clear(&a, &l->batch);
  for (i = 0; i < l->n; i++) {
    if (!l->pieces[i].committed) gpuir__segment_unlink(l->folder, l->pieces[i].seg->number, l->pieces[i].seg->file);
    gpuir__piece_free(&a, &l->pieces[i]);
  }
  gpuir__free(&a, l->pieces, l->cap * sizeof *l->pieces);
  gpuir__buf_free(&a, &l->garbage);
  gpuir_close(l->like);
  gpuir__free(&a, l->path, l->path_size);
  if (l->lock >= 0) (void)close(l->lock);
  if (l->folder >= 0) (void)close(l->folder);
  (void)pthread_mutex_destroy(&l->mutex);
  gpuir__free(&a, l, sizeof *l);
}

/* Returns the number of a segment, or of one of its temporary files, whose name this is; 0 for any other name. */
static uint64_t gpuir__segment_number(const char *name) {
  uint64_t number = 0;
  size_t n = 0;
  for (; name[n] >= '0' && name[n] <= '9' && n < 19; n++) number = 10 * number + (uint64_t)(name[n] - '0');
  if (n < 6 || strncmp(name + n, ".gpuir", 6) != 0) return 0;
  name += n + 6;
  if (!*name) return number;
  if (strncmp(name, ".tmp.", 5) != 0 || !name[5] || strspn(name + 5, "0123456789") != strlen(name + 5)) return 0;
  return number;
}

/* Says whether the list has segment `number`, and `name` is its own, not that of a temporary file. */
static int gpuir__live_names(const gpuir_live *l, uint64_t number, const char *name) {
  char own[32];
  size_t i;
  gpuir__segment_name(own, number);
  for (i = 0; i < l->n; i++)
    if (l->pieces[i].seg->number == number) return !strcmp(own, name);
  return 0;
}

/* What gpuir__live_strays does with the files that are named like a live index's, and that the list does not have. */
enum { GPUIR__STRAYS_COUNT, GPUIR__STRAYS_FOREIGN, GPUIR__STRAYS_REMOVE };

/* Says whether a stray is what a writer leaves that is killed before its first commit: the first segment, which has no
 * document, with its temporary files, or a manifest. In a folder whose lock has no magic number, as earlier versions
 * made it, each must show by its bytes that it is one: the user may have files of these names. */
static int gpuir__live_begun(const gpuir_live *l, const char *name, uint64_t number, int magic) {
  uint8_t head[sizeof gpuir__manifest_magic];
  gpuir__segment *seg;
  gpuir_error err;
  struct stat st;
  int fd, own;
  if (number && strncmp(name, "000001.gpuir", 12) != 0) return 0;
  if (fstatat(l->folder, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode)) return 0;
  if (!st.st_size || (number && name[12])) return !st.st_size || magic; /* a temporary file shows nothing */
  if (number) {
    if (gpuir__segment_open(&l->a, l->folder, name, NULL, &seg, &err)) return magic;
    own = !seg->stat.documents;
    gpuir__segment_close(seg);
    return own;
  }
  if (magic) return 1;
  fd = openat(l->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  own = fd >= 0 && !gpuir__pread_all(fd, head, sizeof head, 0) && !memcmp(head, gpuir__manifest_magic, sizeof head);
  if (fd >= 0) (void)close(fd);
  return own;
}

/* Counts the strays in *n: all; or, FOREIGN, those that no killed writer left in a folder without a manifest; or
 * removes them. magic: the lock has its magic number. */
static int gpuir__live_strays(const gpuir_live *l, int what, int magic, unsigned *n, gpuir_error *err) {
  const int fd = openat(l->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = fd < 0 ? NULL : fdopendir(fd);
  const struct dirent *entry;
  int status = GPUIR_OK;
  *n = 0;
  if (!dir) {
    status = gpuir__fail_errno(err, l->path, "cannot list");
    if (fd >= 0) (void)close(fd);
    return status;
  }
  while (!status && (errno = 0, entry = readdir(dir)) != NULL) {
    const uint64_t number = gpuir__segment_number(entry->d_name);
    if ((!number || gpuir__live_names(l, number, entry->d_name)) && strcmp(entry->d_name, "manifest.tmp") != 0)
      continue;
    if (what == GPUIR__STRAYS_FOREIGN && gpuir__live_begun(l, entry->d_name, number, magic)) continue;
    ++*n;
    if (what != GPUIR__STRAYS_REMOVE) continue;
    status = gpuir__live_owns(l, err);
    if (!status) (void)unlinkat(l->folder, entry->d_name, 0);
  }
  if (!status && errno) status = gpuir__fail_errno(err, l->path, "cannot list");
  (void)closedir(dir);
  return status;
}

/* Opens the folder of a live index, or makes it with `create`. Keeps its absolute path: the process may change its
 * current folder later. */
static int gpuir__live_folder(gpuir_live *l, const char *path, int create, gpuir_error *err) {
  char here[4096];
  l->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (l->folder < 0 && errno == ENOENT && create) {
    if (mkdir(path, 0777) && errno != EEXIST) return gpuir__fail_errno(err, path, "cannot make the folder");
    l->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  if (l->folder < 0) return gpuir__fail_errno(err, path, "cannot open");
  here[0] = 0;
  if (path[0] != '/') {
    if (!getcwd(here, sizeof here - 1)) return gpuir__fail_errno(err, path, "cannot name the current folder");
    memcpy(here + strlen(here), "/", 2);
  }
  l->path = gpuir__concat(&l->a, here, strlen(here), path, strlen(path), &l->path_size);
  return l->path ? GPUIR_OK : gpuir__fail_nomem(err);
}

static int gpuir__live_no_index(const gpuir_live *l, gpuir_error *err) {
  return gpuir__refuse(err, "%s: no live index, but it has files that are named like those of one",
      gpuir__tail(l->path));
}

/* Says what the lock holds: 2: its magic number; 1: nothing, as that of earlier versions; 0: something else. */
static int gpuir__lock_kind(int fd) {
  uint8_t head[sizeof gpuir__lock_magic];
  struct stat st;
  if (fstat(fd, &st) || !S_ISREG(st.st_mode)) return 0;
  if (!st.st_size) return 1;
  return !gpuir__pread_all(fd, head, sizeof head, 0) && !memcmp(head, gpuir__lock_magic, sizeof head) ? 2 : 0;
}

/* Opens the lock, or makes it: then the folder must have nothing that looks like a live index's. l->lock stays -1 where
 * another process has just made it. */
static int gpuir__live_open_lock(gpuir_live *l, int create, gpuir_error *err) {
  unsigned strays;
  int status;
  l->lock = openat(l->folder, "lock", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (l->lock >= 0) return GPUIR_OK;
  if (errno != ENOENT) return gpuir__fail_errno(err, l->path, "cannot open its lock");
  if (faccessat(l->folder, "manifest", F_OK, 0)) {
    if (!create)
      return gpuir__fail(err, GPUIR_E_FORMAT, 0, "%s: a folder without a manifest: not a live index",
          gpuir__tail(l->path));
    status = gpuir__live_strays(l, GPUIR__STRAYS_COUNT, 0, &strays, err);
    if (status || strays) return status ? status : gpuir__live_no_index(l, err);
  }
  l->lock = openat(l->folder, "lock", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  l->made_lock = l->lock >= 0;
  return l->lock >= 0 || errno == EEXIST ? GPUIR_OK : gpuir__fail_errno(err, l->path, "cannot make its lock");
}

static int gpuir__live_busy(const gpuir_live *l, gpuir_error *err) {
  return gpuir__fail(err, GPUIR_E_BUSY, 0, "%s: another writer has this live index, until it ends",
      gpuir__tail(l->path));
}

/* Locks the open lock: as an open file description, for which one must be allowed to write the file; and by flock(2),
 * which is all that earlier versions take. A reader of the index may hold the latter, so that it counts only where an
 * earlier version has made the lock. 0, BUSY, IO. */
static int gpuir__live_lock_file(const gpuir_live *l, gpuir_error *err) {
  int locked = 0;
#ifdef GPUIR__OFD_SETLK
  struct flock whole;
  memset(&whole, 0, sizeof whole);
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  locked = !fcntl(l->lock, GPUIR__OFD_SETLK, &whole);
  if (!locked && (errno == EAGAIN || errno == EACCES)) return gpuir__live_busy(l, err);
  if (!locked && errno != EINVAL) return gpuir__fail_errno(err, l->path, "cannot lock");
#endif
  if (!flock(l->lock, LOCK_EX | LOCK_NB)) return GPUIR_OK;
  if (errno != EWOULDBLOCK) return gpuir__fail_errno(err, l->path, "cannot lock");
  return locked && gpuir__lock_kind(l->lock) == 2 ? GPUIR_OK : gpuir__live_busy(l, err);
}

/* Takes the writer's lock, as the file that has its name then. */
static int gpuir__live_lock(gpuir_live *l, int create, gpuir_error *err) {
  unsigned tries;
  for (tries = 0; tries < GPUIR__TRIES; tries++) {
    int same = 0, status = gpuir__live_open_lock(l, create, err);
    if (!status && l->lock >= 0) status = gpuir__live_lock_file(l, err);
    if (status) return status;
    if (l->lock >= 0) same = gpuir__live_has_lock(l);
    if (same < 0) return gpuir__fail_errno(err, l->path, "cannot stat");
    if (same) return GPUIR_OK;
    if (l->lock >= 0) (void)close(l->lock);
    l->lock = -1;
    l->made_lock = 0;
  }
  return gpuir__live_busy(l, err);
}

/* Gives the lock its magic number, if it is empty, and lets those open it who may write the manifest: who may only read
 * could else keep all writers out. What fails is not worth more than a lock as it was. */
static void gpuir__live_mark_lock(const gpuir_live *l) {
  struct stat st;
  mode_t mode;
  if (gpuir__lock_kind(l->lock) == 1) (void)gpuir__pwrite_all(l->lock, gpuir__lock_magic, sizeof gpuir__lock_magic, 0);
  if (fstat(l->lock, &st) || l->alien || !l->example.st_mode || (st.st_uid != geteuid() && geteuid() != 0)) return;
  mode = l->example.st_mode & 0666;
  if (!(mode & S_IWGRP)) mode &= ~(mode_t)S_IRGRP;
  if (!(mode & S_IWOTH)) mode &= ~(mode_t)S_IROTH;
  if (st.st_uid == l->example.st_uid && st.st_gid == l->example.st_gid && (st.st_mode & 0777) == mode) return;
  if (fchown(l->lock, l->example.st_uid, l->example.st_gid) && st.st_gid != l->example.st_gid) mode &= 0600;
  (void)fchmod(l->lock, mode | S_IRUSR | S_IWUSR);
}

/* Makes the list of an index's segments, which the manifest names. */
static int gpuir__live_list(gpuir_live *l, const gpuir_index *ix, gpuir_error *err) {
  gpuir__leaf first = {NULL, NULL, 0};
  size_t i;
  for (i = 0; i < ix->nleaves; i++) {
    gpuir__piece *p;
    if (gpuir__live_room(l)) return gpuir__fail_nomem(err);
    p = &l->pieces[l->n++];
    memset(p, 0, sizeof *p);
    p->seg = gpuir__segment_retain(ix->leaves[i].seg);
    p->deleted = gpuir__deleted_retain(ix->leaves[i].deleted);
    p->synced = p->committed = 1;
  }
  l->generation = ix->generation;
  l->content = ix->content;
  first.seg = gpuir__segment_retain(l->pieces[0].seg);
  return gpuir__index_open(&l->a, l->path, &l->open, &first, 1, ix->analysis.pool, &l->like, err);
}

/* Makes the folder's own name survive a loss of power, and the lock in it, whose magic number tells it from a folder of
 * other files. */
static int gpuir__live_sync_folders(const gpuir_live *l, gpuir_error *err) {
  const int around = openat(l->folder, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int failed = 0;
  if (around < 0 && errno != EACCES) return gpuir__fail_errno(err, l->path, "cannot open the folder around it");
  if (fsync(l->lock)) failed = errno;
  if (!failed && fsync(l->folder) && errno != EINVAL) failed = errno;
  if (!failed && around >= 0 && fsync(around) && errno != EINVAL) failed = errno;
  if (around >= 0) (void)close(around);
  errno = failed;
  return failed ? gpuir__fail_errno(err, l->path, "cannot sync the new folder") : GPUIR_OK;
}

/* Makes the folder this index's: removes what a writer left that was killed in here, and nothing else. */
static int gpuir__live_take_folder(gpuir_live *l, gpuir_error *err) {
  const int kind = gpuir__lock_kind(l->lock);
  unsigned strays;
  int status;
  if (!kind)
    return gpuir__refuse(err, "%s: no live index, and its file 'lock' is not that of one", gpuir__tail(l->path));
  status = gpuir__live_strays(l, GPUIR__STRAYS_FOREIGN, kind == 2, &strays, err);
  if (!status && strays) status = gpuir__live_no_index(l, err);
  if (status) return status;
  if (kind == 1 && gpuir__pwrite_all(l->lock, gpuir__lock_magic, sizeof gpuir__lock_magic, 0))
    return gpuir__fail_errno(err, l->path, "cannot write its lock");
  status = gpuir__live_strays(l, GPUIR__STRAYS_REMOVE, 1, &strays, err);
  return status ? status : gpuir__live_sync_folders(l, err);
}

/* Makes an index without documents, which has the settings, and commits it. */
GPUIR__COLD static int gpuir__live_initialise(gpuir_live *l, const gpuir_live_desc *desc, gpuir_error *err) {
  gpuir__leaf leaf = {NULL, NULL, 0};
  gpuir__identity file;
  gpuir_builder *b;
  gpuir_index *ix;
  int status = gpuir__live_take_folder(l, err);
  if (!status && desc->on_create && desc->on_create(desc->user))
    status = gpuir__fail(err, GPUIR_E_CANCELLED, 0, "%s: the caller has ended its making", gpuir__tail(l->path));
  if (status) return status;
  l->next = 1;
  status = gpuir__live_builder(l, l->next, &desc->settings, &b, &file, err);
  if (!status) status = gpuir__live_write(l, b, l->next, file, &leaf.seg, NULL, err);
  if (status) return status;
  status = gpuir__index_open(&l->a, l->path, &l->open, &leaf, 1, NULL, &ix, err);
  l->next++;
  if (!status) {
    status = gpuir__live_list(l, ix, err);
    gpuir_close(ix);
  }
  if (status) { /* without its lock the folder would be taken for one of other files */
    gpuir__segment_unlink(l->folder, 1, file);
    return status;
  }
  l->pieces[0].synced = l->pieces[0].committed = 0;
  l->changed = 1;
  status = gpuir__live_commit_list(l, err);
  if (!status && !fstatat(l->folder, "manifest", &l->example, 0)) gpuir__live_mark_lock(l);
  l->example.st_mode = 0;
  return status;
}

/* Removes what an opening has made that failed before its first commit. */
static void gpuir__live_unfound(gpuir_live *l) {
  gpuir__stamp now;
  if (gpuir__stamp_read(l->folder, &now) || now.file.ino) return; /* it may have come to the commit */
  if (l->n) gpuir__segment_unlink(l->folder, l->pieces[0].seg->number, l->pieces[0].seg->file);
  if (l->made_lock && gpuir__live_has_lock(l) == 1) (void)unlinkat(l->folder, "lock", 0);
}

/* Refuses what a merge would lose: settings and sections that this build does not know. */
static int gpuir__live_known(const gpuir_index *ix, gpuir_error *err) {
  size_t i;
  for (i = 0; i < ix->nleaves; i++) {
    const gpuir__segment *seg = ix->leaves[i].seg;
#ifdef GPUIR_NO_COLUMNS
    if (*seg->meta.columns) return gpuir__fail_columns(err);
#endif
    if (seg->strange)
      return gpuir__fail(err, GPUIR_E_UNSUPPORTED, 0,
          "%s: has something that this version does not know, and that merging would lose", seg->path);
  }
  return GPUIR_OK;
}

/* Reads the last commit, or makes the first one. */
GPUIR__COLD static int gpuir__live_read(gpuir_live *l, const gpuir_live_desc *desc, gpuir_error *err) {
  gpuir__manifest m;
  gpuir_index *ix = NULL;
  unsigned strays;
  int found, status;
  memset(&m, 0, sizeof m);
  if (gpuir__stamp_read(l->folder, &l->stamp)) return gpuir__fail_errno(err, l->path, "cannot read the manifest");
  status = gpuir__manifest_read(&l->a, &m, l->folder, l->path, &found, err);
  l->next = m.head.next;
  gpuir__manifest_free(&l->a, &m);
  if (status) return status;
  if (!found && !desc->create)
    return gpuir__fail(err, GPUIR_E_FORMAT, 0, "%s: a folder without a manifest: not a live index",
        gpuir__tail(l->path));
  if (!found) return gpuir__live_initialise(l, desc, err);
  status = gpuir__live_example(l, err);
  if (status) return status;
  status = gpuir__folder_open(&l->a, l->folder, l->path, &l->open, &ix, err);
  if (!status) status = gpuir__live_known(ix, err);
  if (!status) status = gpuir__live_list(l, ix, err);
  gpuir_close(ix);
  if (!status) gpuir__live_mark_lock(l);
  return status ? status : gpuir__live_strays(l, GPUIR__STRAYS_REMOVE, 1, &strays, err);
}

GPUIR__COLD GPUIR_API int gpuir_live_open(const gpuir_live_desc *desc, gpuir_live **live, gpuir_error *err) {
  gpuir_allocator a;
  gpuir__tokenizer own;
  gpuir_live *l;
  int status;
  if (live) *live = NULL;
  if (!desc || !live || !desc->settings.path || !*desc->settings.path)
    return gpuir__refuse(err, "gpuir_live_open: no path, or no place for the handle");
  if (desc->settings.order) return gpuir__refuse(err, "a live index has the order in which documents are added");
  a = gpuir__allocator(desc->settings.allocator);
  l = (gpuir_live *)gpuir__alloc_zero(&a, sizeof *l);
  if (!l || pthread_mutex_init(&l->mutex, NULL)) {
    gpuir__free(&a, l, sizeof *l);
    return gpuir__fail_nomem(err);
  }
  l->a = a;
  l->folder = l->lock = -1;
  l->memory = desc->settings.memory ? desc->settings.memory : (uint64_t)64 << 20;
  l->threads = desc->settings.threads ? desc->settings.threads : 1;
  l->open.simd = desc->settings.simd;
  if (desc->settings.like) own = desc->settings.like->analysis.own;
  else
    own = gpuir__tokenizer_of(desc->settings.analyzer.tokenize, desc->settings.analyzer.tokenize_places,
        desc->settings.analyzer.tokenize_user);
  l->open.tokenize = own.tokenize;
  l->open.tokenize_places = own.places;
  l->open.tokenize_user = own.user;
  status = gpuir__live_folder(l, desc->settings.path, desc->create, err);
  if (!status) status = gpuir__live_lock(l, desc->create, err);
  if (!status) status = gpuir__live_read(l, desc, err);
  if (status && l->lock >= 0 && desc->create) gpuir__live_unfound(l);
  if (!status) *live = l;
  else gpuir_live_close(l);
  return status;
}
