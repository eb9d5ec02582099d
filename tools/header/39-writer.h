
/* ========
 * [39-writer]  index file: writer
 *
 * Writes each section to a temporary file of its own, as documents and lists come, and in the end puts them together as
 * PATH.tmp, which then takes the name PATH. An index of that name stays until the new one is whole.
 *
 * Uses      [19-bp128], [24-postings], [28-encoder], [32-dictionary], [33-analyzers], [34-fields],
 *           [36-documents], [37-layout], [38-notes].
 * Start at  gpuir__writer_create, gpuir__writer_put_batch, gpuir__writer_finish.
 * Tests     tests/unit/39_writer.c
 * ======*/

#define GPUIR__TMP_FIRST 700u /* behind the spools of sections the least number of a temporary file: a column's */
#define GPUIR__TMP_SOURCES 999u /* number of the temporary file that the table of sources may be */

/* The spools, a temporary file each: one of each section, numbered by its row, with these exceptions. That of
 * TERM_KEYS stays empty: the tree is made in place. The streams' sections have two: the short lists go behind all long
 * ones. */
#define GPUIR__SECTION_SPOOL(id, name, presence, batch, item, items, group, field) GPUIR__W_##name,
enum {
  GPUIR__SECTIONS(GPUIR__SECTION_SPOOL, , ) /* and of short lists: */
  GPUIR__W_DOCIDS_SHORT,
  GPUIR__W_FREQS_SHORT,
  GPUIR__W_COUNT
};

/* The dictionary as far as it is written. */
typedef struct gpuir__writer_terms {
  gpuir__dict_terms block; /* terms that wait until they are a block */
  uint64_t blocks;
  gpuir__dict_form form;
  gpuir__dict_page page, now; /* of the last block; of the next one */
} gpuir__writer_terms;

/* The source of the last document that had one. */
typedef struct gpuir__recent {
  gpuir__buf path;
  uint32_t number, stem; /* from 1; 0: none */
} gpuir__recent;

/* Bytes on their way to the file, so that small sections go there together. */
#define GPUIR__AHEAD ((size_t)1 << 18)
typedef struct gpuir__ahead {
  uint8_t *buf; /* GPUIR__AHEAD bytes */
  uint64_t at; /* where its first byte goes */
  size_t fill;
} gpuir__ahead;

#ifndef GPUIR_NO_STORE
/* The text that is not packed yet. */
typedef struct gpuir__writer_text {
  uint64_t bytes; /* of all texts so far */
  gpuir__lz_table table;
  uint8_t block[GPUIR__TEXT_BLOCK + GPUIR__TEXT_AHEAD], packed[GPUIR__TEXT_PACKED_MOST];
} gpuir__writer_text;
#endif

typedef struct gpuir__writer {
  gpuir_allocator a;
  char *path, *tmp, *folder; /* PATH, or the target of the link that it is; PATH.tmp; the folder of both */
  size_t path_size, tmp_size, folder_size;
  int fd; /* of PATH.tmp, locked */
  mode_t mode; /* of a new index: 0666 without the umask's bits */
  int shared; /* other users may write the folder, and so replace the index */
  int hostile; /* a group or all users may make files in it */
  int placed; /* `fd` is of the new file PATH itself, whose owner publishes it; PATH.tmp only names temporary files */
  gpuir__spool spool[GPUIR__W_COUNT];
  gpuir__stat stat;
  gpuir__writer_terms terms;
  uint64_t nlengths, nsources, ncode; /* ncode: documents with the name of a source file of a program */
  int has[GPUIR__P_COUNT]; /* whether sections of this presence are written */
#ifndef GPUIR_NO_STORE
  gpuir__writer_text *text; /* NULL: texts are not stored */
#endif
  gpuir__recent recent;
  gpuir__origin origins; /* of each column, all ones of its numbers */
  gpuir__area table; /* gpuir__source_slot, by hash */
  uint64_t slots, most; /* of the table: a power of two, or 0; bytes that are not mapped */
  void *lengths_map;
  gpuir__ahead ahead;
#ifndef GPUIR_NO_COLUMNS
  const gpuir__schema *fields; /* the builder's; NULL: none */
  gpuir__notes notes; /* of columns */
#endif
} gpuir__writer;

/* A source that is stored: a path, and where in it names begin. */
typedef struct gpuir__source_slot {
  uint64_t start; /* in the paths */
  uint32_t len, stem;
  uint32_t number; /* from 1; 0: a free slot */
  uint32_t hash;
} gpuir__source_slot;

/* Slots that a look-up reads from the hash on. A source that finds none of them free is stored, but not found again. */
#define GPUIR__SOURCE_PROBES 256u

GPUIR__COLD static void gpuir__writer_destroy(gpuir__writer *w) {
  gpuir_allocator a;
  unsigned i;
  if (!w) return;
  a = w->a;
  if (w->lengths_map) (void)munmap(w->lengths_map, (size_t)w->nlengths * 4);
  for (i = 0; i < GPUIR__W_COUNT; i++) gpuir__spool_close(&w->spool[i]);
  if (w->fd >= 0) { /* finish closes it; so this build failed */
    if (!w->placed && gpuir__is_file(w->fd, w->tmp) == 1) (void)unlink(w->tmp);
    (void)close(w->fd);
  }
  gpuir__buf_free(&a, &w->recent.path);
  gpuir__area_free(&a, &w->table);
#ifndef GPUIR_NO_STORE
  gpuir__free(&a, w->text, sizeof *w->text);
#endif
#ifndef GPUIR_NO_COLUMNS
  gpuir__notes_free(&w->notes);
#endif
  gpuir__free(&a, w->path, w->path_size);
  gpuir__free(&a, w->tmp, w->tmp_size);
  gpuir__free(&a, w->folder, w->folder_size);
  gpuir__free(&a, w, sizeof *w);
}

/* Locks the open file PATH.tmp. 0, BUSY if a build holds the lock, IO. */
static int gpuir__writer_flock(const gpuir__writer *w, int fd, gpuir_error *err) {
  if (!flock(fd, LOCK_EX | LOCK_NB)) return GPUIR_OK;
  if (errno != EWOULDBLOCK) return gpuir__fail_errno(err, w->tmp, "cannot lock");
  return gpuir__fail(err, GPUIR_E_BUSY, 0, "%s: another build of this index is running", gpuir__tail(w->path));
}

/* Removes the file PATH.tmp unless a build holds its lock. 0 also if the name has gone meanwhile. */
static int gpuir__writer_remove_unlocked(const gpuir__writer *w, gpuir_error *err) {
  const int fd = open(w->tmp, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  int status, same;
  if (fd < 0) return errno == ENOENT || errno == ELOOP ? GPUIR_OK : gpuir__fail_errno(err, w->tmp, "cannot open");
  status = gpuir__writer_flock(w, fd, err);
  same = status ? 0 : gpuir__is_file(fd, w->tmp);
  if (same < 0 || (same && unlink(w->tmp) && errno != ENOENT)) status = gpuir__fail_errno(err, w->tmp, "cannot remove");
  (void)close(fd);
  return status;
}

/* Removes what stands under PATH.tmp: what a killed build left, or what somebody else put there. Neither is written
 * to, no link is followed, and the file of another user is left alone, as a build of that user may be running. */
static int gpuir__writer_remove_leftover(const gpuir__writer *w, gpuir_error *err) {
  struct stat st;
  if (lstat(w->tmp, &st)) return errno == ENOENT ? GPUIR_OK : gpuir__fail_errno(err, w->tmp, "cannot stat");
  if (!S_ISREG(st.st_mode)) { /* a link, a pipe ... */
    if (unlink(w->tmp) && errno != ENOENT) return gpuir__fail_errno(err, w->tmp, "cannot remove");
    return GPUIR_OK;
  }
  if (st.st_uid != geteuid())
    return gpuir__fail(err, GPUIR_E_IO, 0, "%s: belongs to another user; remove it if no build is running",
        gpuir__tail(w->tmp));
  return gpuir__writer_remove_unlocked(w, err);
}

/* Makes and locks PATH.tmp. Another build may take the name between the two, so both are tried a few times. */
static int gpuir__writer_lock(gpuir__writer *w, gpuir_error *err) {
  unsigned tries;
  for (tries = 0; tries < GPUIR__TRIES; tries++) {
    int status = GPUIR_OK, same;
    w->fd = open(w->tmp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (w->fd < 0) {
      if (errno != EEXIST) return gpuir__fail_errno(err, w->tmp, "cannot create");
      status = gpuir__writer_remove_leftover(w, err);
      if (status) return status;
      continue;
    }
    status = gpuir__writer_flock(w, w->fd, err);
    same = status ? 0 : gpuir__is_file(w->fd, w->tmp);
    if (same < 0) status = gpuir__fail_errno(err, w->tmp, "cannot stat");
    if (same == 1 || status == GPUIR_E_IO) return status; /* gpuir__writer_destroy removes the new file */
    (void)close(w->fd);
    w->fd = -1;
    if (status) return status;
  }
  return gpuir__fail(err, GPUIR_E_BUSY, 0, "%s: others keep taking this name", gpuir__tail(w->tmp));
}

/* Fails if w->folder is that of a live index, whose files nobody else may replace. */
static int gpuir__writer_check_folder(const gpuir__writer *w, gpuir_error *err) {
  uint8_t magic[sizeof gpuir__manifest_magic];
  size_t size;
  char *name = gpuir__concat(&w->a, w->folder, strlen(w->folder), "/manifest", 9, &size);
  int fd, status = GPUIR_OK;
  if (!name) return gpuir__fail_nomem(err);
  fd = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd >= 0 && !gpuir__pread_all(fd, magic, sizeof magic, 0) && !memcmp(magic, gpuir__manifest_magic, sizeof magic))
    status = gpuir__refuse(err, "%s: lies in the folder of a live index", gpuir__tail(w->path));
  if (fd >= 0) (void)close(fd);
  gpuir__free(&w->a, name, size);
  return status;
}

/* Refuses a device and a pipe, whose place renaming would take, and a folder, for which it fails after all the work. */
static int gpuir__writer_check_path(const char *path, gpuir_error *err) {
  struct stat st;
  if (stat(path, &st) || S_ISREG(st.st_mode)) return GPUIR_OK;
  return gpuir__fail(err, GPUIR_E_IO, 0, "%s: %s", gpuir__tail(path),
      S_ISDIR(st.st_mode) ? "a folder, not a file" : "not a regular file");
}

/* Makes w->path the name of what a link at PATH leads to, so that the link stays when its target is replaced. The
 * links of other users are not followed: they would choose the file that this process replaces. */
static int gpuir__writer_follow(gpuir__writer *w, gpuir_error *err) {
  char target[4096], *path;
  unsigned hops;
  for (hops = 0; hops < 40; hops++) { /* as many as Linux follows */
    const char *slash = strrchr(w->path, '/');
    struct stat st;
    ssize_t n;
    size_t size;
    if (lstat(w->path, &st) || !S_ISLNK(st.st_mode)) return GPUIR_OK; /* what is wrong shows when it is opened */
    if (st.st_uid != geteuid() && st.st_uid != 0)
      return gpuir__fail(err, GPUIR_E_IO, 0, "%s: a link that another user made is not followed", gpuir__tail(w->path));
    n = readlink(w->path, target, sizeof target);
    if (n < 0) return gpuir__fail_errno(err, w->path, "cannot read the link");
    if ((size_t)n == sizeof target)
      return gpuir__fail(err, GPUIR_E_IO, 0, "%s: a link that is too long", gpuir__tail(w->path));
    path = gpuir__concat(&w->a, w->path, slash && target[0] != '/' ? (size_t)(slash - w->path) + 1 : 0, target,
        (size_t)n, &size);
    if (!path) return gpuir__fail_nomem(err);
    gpuir__free(&w->a, w->path, w->path_size);
    w->path = path;
    w->path_size = size;
  }
  return gpuir__fail(err, GPUIR_E_IO, 0, "%s: too many links", gpuir__tail(w->path));
}

/* Derives the names PATH.tmp and that of the folder, and looks who may write there: all users, or a group that is not
 * the process's own. In a folder with the sticky bit nobody replaces the files of others. */
static int gpuir__writer_name(gpuir__writer *w, const char *path, gpuir_error *err) {
  const char *slash;
  struct stat st;
  int status;
  w->path = gpuir__concat(&w->a, path, strlen(path), "", 0, &w->path_size);
  if (!w->path) return gpuir__fail_nomem(err);
  status = gpuir__writer_follow(w, err);
  if (status) return status;
  slash = strrchr(w->path, '/');
  w->tmp = gpuir__concat(&w->a, w->path, strlen(w->path), ".tmp", 4, &w->tmp_size);
  w->folder = slash ? gpuir__concat(&w->a, w->path, (size_t)(slash - w->path) + 1, "", 0, &w->folder_size)
                    : gpuir__concat(&w->a, ".", 1, "", 0, &w->folder_size);
  if (!w->tmp || !w->folder) return gpuir__fail_nomem(err);
  if (!stat(w->folder, &st)) {
    w->hostile = (st.st_mode & (S_IWGRP | S_IWOTH)) != 0;
    w->shared = (st.st_mode & S_IWOTH || (st.st_mode & S_IWGRP && st.st_gid != getegid())) && !(st.st_mode & 01000);
  }
  status = gpuir__writer_check_path(w->path, err);
  return status ? status : gpuir__writer_check_folder(w, err);
}

/* Notes the mode that the folder and the umask give a new file, and hides PATH.tmp from others where an index that
 * they may not read is being replaced. */
static int gpuir__writer_hide(gpuir__writer *w, gpuir_error *err) {
  struct stat st;
  if (fstat(w->fd, &st)) return gpuir__fail_errno(err, w->tmp, "cannot stat");
  w->mode = st.st_mode & 0777;
  if (!stat(w->path, &st) && fchmod(w->fd, 0600)) return gpuir__fail_errno(err, w->tmp, "cannot change the mode");
  return GPUIR_OK;
}

/* Gives PATH.tmp the mode, owner and group of the index that it replaces. In a folder where a group or all users may
 * make files, the index that another user but root put there is no example: it does not give the file away, nor let
 * anybody do more. */
static int gpuir__writer_keep_mode(gpuir__writer *w, gpuir_error *err) {
  struct stat old;
  mode_t mode = w->mode;
  if (!stat(w->path, &old)) {
    if (!w->hostile || old.st_uid == geteuid() || !old.st_uid) return gpuir__take_mode(w->fd, &old, w->tmp, err);
    mode &= old.st_mode;
  }
  return fchmod(w->fd, mode) ? gpuir__fail_errno(err, w->tmp, "cannot change the mode") : GPUIR_OK;
}

/* Takes PATH, which is open as fd. */
static int gpuir__writer_place(gpuir__writer *w, const char *path, int fd, gpuir_error *err) {
  w->fd = fd;
  w->placed = 1;
  w->path = gpuir__concat(&w->a, path, strlen(path), "", 0, &w->path_size);
  w->tmp = gpuir__concat(&w->a, path, strlen(path), ".tmp", 4, &w->tmp_size);
  return w->path && w->tmp ? GPUIR_OK : gpuir__fail_nomem(err);
}

/* Locks PATH.tmp and opens the temporary files. `memory` bounds the buffers, in bytes. fd: -1, or that of PATH, a new
 * file in a folder that the caller has locked; it is closed in any case. */
GPUIR__COLD static int gpuir__writer_create(const gpuir_allocator *a, const char *path, uint64_t memory, int fd,
    gpuir__writer **writer, gpuir_error *err) {
  gpuir__writer *w = (gpuir__writer *)gpuir__alloc_zero(a, sizeof *w);
  uint64_t each = gpuir__min64(gpuir__max64(memory / (GPUIR__W_COUNT + 1), 4096), 1u << 18);
  unsigned i;
  int status;
  *writer = NULL;
  if (!w) {
    if (fd >= 0) (void)close(fd);
    return gpuir__fail_nomem(err);
  }
  w->a = *a;
  w->fd = -1;
  w->most = each;
  w->has[GPUIR__P_ALWAYS] = w->has[GPUIR__P_HINT] = 1;
  for (i = 0; i < GPUIR__W_COUNT; i++) w->spool[i].fd = -1;
  status = fd < 0 ? gpuir__writer_name(w, path, err) : gpuir__writer_place(w, path, fd, err);
  if (!status && fd < 0) status = gpuir__writer_lock(w, err);
  if (!status && fd < 0) status = gpuir__writer_hide(w, err);
  for (i = 0; !status && i < GPUIR__W_COUNT; i++) gpuir__spool_open(a, &w->spool[i], w->tmp, i, (size_t)each);
  if (status) gpuir__writer_destroy(w);
  else *writer = w;
  return status;
}

#ifndef GPUIR_NO_COLUMNS
/* Gives the index columns; the fields must outlive the writer. */
static int gpuir__writer_fields(gpuir__writer *w, const gpuir__schema *fields, uint64_t memory, gpuir_error *err) {
  w->fields = fields;
  w->has[GPUIR__P_COLUMNS] = 1;
  return gpuir__notes_open(&w->notes, &w->a, fields, w->tmp, memory, err);
}
#endif

static int gpuir__writer_put64(gpuir__writer *w, unsigned spool, uint64_t v, gpuir_error *err) {
  return gpuir__spool_put(&w->spool[spool], &v, sizeof v, err);
}

/* Returns 1 + the byte of the source's path, the first of a component, at which the document's name begins; 0: none. */
static uint32_t gpuir__name_stem(const gpuir_doc_desc *doc) {
  size_t n = doc->source_len, i;
  if (!doc->name_len || doc->name_len > GPUIR__JOINED_MAX || n >= UINT32_MAX) return 0;
  for (i = n > doc->name_len ? n - doc->name_len : 0; i < n; i++)
    if ((!i || doc->source[i - 1] == '/') && !memcmp(doc->source + i, doc->name, n - i)) return (uint32_t)i + 1;
  return 0;
}

/* Puts a source into the first free slot from its hash on, if there is one. */
static void gpuir__source_put(gpuir__source_slot *slots, uint64_t nslots, const gpuir__source_slot *source) {
  unsigned probe;
  for (probe = 0; probe < GPUIR__SOURCE_PROBES; probe++) {
    gpuir__source_slot *slot = &slots[(source->hash + probe) & (nslots - 1)];
    if (slot->number) continue;
    *slot = *source;
    return;
  }
}

/* Makes the table of sources twice as large. */
static int gpuir__writer_grow_table(gpuir__writer *w, gpuir_error *err) {
  const gpuir__source_slot *old = (const gpuir__source_slot *)(const void *)w->table.data;
  uint64_t n = w->slots ? 2 * w->slots : 1024, i;
  gpuir__area area = {NULL, 0, 0};
  int status = gpuir__area_need(&w->a, &area, n * sizeof *old, w->most, w->tmp, GPUIR__TMP_SOURCES, err);
  if (status) return status;
  memset(area.data, 0, (size_t)n * sizeof *old);
  for (i = 0; i < w->slots; i++)
    if (old[i].number) gpuir__source_put((gpuir__source_slot *)(void *)area.data, n, &old[i]);
  gpuir__area_free(&w->a, &w->table);
  w->table = area;
  w->slots = n;
  return GPUIR_OK;
}

/* Looks a source up; *number becomes its number, or 0 if it is not stored yet. */
static int gpuir__writer_find_source(const gpuir__writer *w, const char *path, const gpuir__source_slot *source,
    uint32_t *number, gpuir_error *err) {
  const gpuir__source_slot *slots = (const gpuir__source_slot *)(const void *)w->table.data;
  unsigned probe;
  *number = 0;
  for (probe = 0; w->slots && probe < GPUIR__SOURCE_PROBES; probe++) {
    const gpuir__source_slot *slot = &slots[(source->hash + probe) & (w->slots - 1)];
    int same, status;
    if (!slot->number) break;
    if (slot->hash != source->hash || slot->len != source->len || slot->stem != source->stem) continue;
    status = gpuir__spool_has(&w->spool[GPUIR__W_SOURCES], path, source->len, slot->start, &same, err);
    if (status) return status;
    if (!same) continue;
    *number = slot->number;
    break;
  }
  return GPUIR_OK;
}

/* Stores a source under the next number. */
static int gpuir__writer_add_source(gpuir__writer *w, const char *path, gpuir__source_slot *source, gpuir_error *err) {
  int status = GPUIR_OK;
  if (w->nsources == GPUIR__MAX_DOCUMENTS) return gpuir__fail(err, GPUIR_E_LIMIT, 0, "too many source files");
  if (w->nsources >= w->slots - w->slots / 3) status = gpuir__writer_grow_table(w, err);
  source->start = w->spool[GPUIR__W_SOURCES].len;
  source->number = (uint32_t)++w->nsources;
  if (!status) status = gpuir__writer_put64(w, GPUIR__W_SOURCE_START, source->start, err);
  if (!status) status = gpuir__spool_put(&w->spool[GPUIR__W_SOURCES], path, source->len, err);
  if (!status) status = gpuir__spool_put(&w->spool[GPUIR__W_STEMS], &source->stem, 4, err);
  if (status) return status;
  gpuir__source_put((gpuir__source_slot *)(void *)w->table.data, w->slots, source);
  if (source->stem) w->has[GPUIR__P_STEMS] = 1;
  return GPUIR_OK;
}

/* Makes the document's source, with this stem, the last one. */
static int gpuir__writer_source(gpuir__writer *w, const gpuir_doc_desc *doc, uint32_t stem, gpuir_error *err) {
  gpuir__source_slot source;
  uint32_t number;
  int status;
  if (w->recent.number && w->recent.stem == stem && w->recent.path.len == doc->source_len &&
      !memcmp(w->recent.path.data, doc->source, doc->source_len))
    return GPUIR_OK;
  if (doc->source_len >= UINT32_MAX) return gpuir__fail(err, GPUIR_E_LIMIT, 0, "a source's path of 4 GiB or more");
  memset(&source, 0, sizeof source);
  source.len = (uint32_t)doc->source_len;
  source.stem = stem;
  source.hash = (uint32_t)gpuir__hash(doc->source, doc->source_len, 0) + stem;
  status = gpuir__writer_find_source(w, doc->source, &source, &number, err);
  if (!status && !number) {
    status = gpuir__writer_add_source(w, doc->source, &source, err);
    number = source.number;
  }
  if (status) return status;
  w->recent.path.len = 0;
  w->recent.number = number;
  w->recent.stem = stem;
  return gpuir__buf_put(&w->a, &w->recent.path, doc->source, doc->source_len) ? gpuir__fail_nomem(err) : GPUIR_OK;
}

/* Appends the document's name without the bytes that its stem holds. */
static int gpuir__writer_put_name(gpuir__writer *w, const gpuir_doc_desc *doc, uint32_t stem, gpuir_error *err) {
  size_t skip = stem ? doc->source_len - (stem - 1) : 0;
  int status = gpuir__writer_put64(w, GPUIR__W_NAME_START, w->spool[GPUIR__W_NAMES].len, err);
  if (status || doc->name_len == skip) return status;
  return gpuir__spool_put(&w->spool[GPUIR__W_NAMES], doc->name + skip, doc->name_len - skip, err);
}

/* Appends where the document comes from. */
static int gpuir__writer_put_origin(gpuir__writer *w, const gpuir_doc_desc *doc, uint32_t stem, gpuir_error *err) {
  gpuir__origin origin;
  unsigned i;
  memset(&origin, 0, sizeof origin);
  if (doc->source_len) {
    int status = gpuir__writer_source(w, doc, stem, err);
    if (status) return status;
    origin.of[GPUIR__O_SOURCE] = w->recent.number;
    origin.of[GPUIR__O_LINE] = doc->first_line;
    origin.of[GPUIR__O_LINES] = (uint32_t)(doc->last_line - doc->first_line);
    origin.of[GPUIR__O_OFFSET] = doc->source_offset;
    origin.of[GPUIR__O_BYTES] = doc->source_bytes;
    origin.of[GPUIR__O_FORM] = doc->form;
    for (i = 0; i < GPUIR__O_COUNT; i++) w->origins.of[i] |= origin.of[i];
    w->has[GPUIR__P_ORIGINS] = 1;
  }
  return gpuir__spool_put(&w->spool[GPUIR__W_ORIGINS], &origin, sizeof origin, err);
}

/* Returns whether the bytes of the source, as far as they are known, are the text itself. */
static inline int gpuir__is_own_text(const gpuir_doc_desc *doc, size_t text_len) {
  if (!doc->source_len || !(doc->source_offset || doc->source_bytes)) return 1;
  return !doc->form && doc->source_bytes == text_len;
}

/* Appends the document's hash: that of its text, if that is what stands in the source. */
static int gpuir__writer_put_hash(gpuir__writer *w, const gpuir_doc_desc *doc, const char *text, size_t text_len,
    gpuir_error *err) {
  const uint64_t hash = gpuir__is_own_text(doc, text_len) && text_len ? gpuir__hash(text, text_len, 0) : doc->hash;
  if (hash) w->has[GPUIR__P_HASHES] = 1;
  return gpuir__writer_put64(w, GPUIR__W_HASHES, hash, err);
}

#ifndef GPUIR_NO_STORE
/* Lets the index store the texts of its documents. */
static int gpuir__writer_texts(gpuir__writer *w, gpuir_error *err) {
  w->text = (gpuir__writer_text *)gpuir__alloc_zero(&w->a, sizeof *w->text);
  w->has[GPUIR__P_PACKED] = 1;
  return w->text ? GPUIR_OK : gpuir__fail_nomem(err);
}

/* Packs the block of texts that is full, or the last one, of n bytes. */
static int gpuir__writer_put_block_of_text(gpuir__writer *w, size_t n, gpuir_error *err) {
  const size_t packed = gpuir__text_pack(&w->text->table, w->text->block, n, w->text->packed);
  const int status = gpuir__writer_put64(w, GPUIR__W_PACKED_START, w->spool[GPUIR__W_PACKED].len, err);
  return status ? status : gpuir__spool_put(&w->spool[GPUIR__W_PACKED], w->text->packed, packed, err);
}

/* Appends a document's text. */
static int gpuir__writer_put_text(gpuir__writer *w, const char *text, size_t len, gpuir_error *err) {
  gpuir__writer_text *const t = w->text;
  int status = gpuir__writer_put64(w, GPUIR__W_TEXT_AT, t->bytes, err);
  while (len && !status) {
    const size_t at = (size_t)(t->bytes % GPUIR__TEXT_BLOCK);
    const size_t n = len < GPUIR__TEXT_BLOCK - at ? len : GPUIR__TEXT_BLOCK - at;
    memcpy(t->block + at, text, n);
    t->bytes += n;
    text += n;
    len -= n;
    if (at + n == GPUIR__TEXT_BLOCK) status = gpuir__writer_put_block_of_text(w, GPUIR__TEXT_BLOCK, err);
  }
  return status;
}

/* Packs what is left, and notes where the last text and the last block end. */
static int gpuir__writer_close_text(gpuir__writer *w, gpuir_error *err) {
  const size_t left = (size_t)(w->text->bytes % GPUIR__TEXT_BLOCK);
  int status = left ? gpuir__writer_put_block_of_text(w, left, err) : GPUIR_OK;
  if (!status) status = gpuir__writer_put64(w, GPUIR__W_PACKED_START, w->spool[GPUIR__W_PACKED].len, err);
  return status ? status : gpuir__writer_put64(w, GPUIR__W_TEXT_AT, w->text->bytes, err);
}
#endif

/* Appends the next document. Its text is stored if the index has texts; NULL stands for "". */
static int gpuir__writer_put_doc(gpuir__writer *w, const gpuir_doc_desc *doc, const char *text, size_t text_len,
    gpuir_error *err) {
  uint32_t stem = gpuir__name_stem(doc);
  int status;
  if (w->stat.documents >= GPUIR__MAX_DOCUMENTS)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "%s: more than 2^32-2 documents", gpuir__tail(w->path));
  w->stat.documents++;
  w->ncode += (uint64_t)gpuir__is_source(doc->name, doc->name_len);
  status = gpuir__writer_put_name(w, doc, stem, err);
  if (!status) status = gpuir__writer_put_origin(w, doc, stem, err);
  if (!status) status = gpuir__writer_put_hash(w, doc, text, text ? text_len : 0, err);
#ifndef GPUIR_NO_COLUMNS
  if (!status && w->fields) status = gpuir__notes_put(&w->notes, doc->values, doc->nvalues, err);
#endif
#ifndef GPUIR_NO_STORE
  if (!status && w->text) status = gpuir__writer_put_text(w, text, text ? text_len : 0, err);
#endif
  return status;
}

/* Appends lengths of documents in docID order, any number at a time. */
static int gpuir__writer_put_lengths(gpuir__writer *w, const uint32_t *lengths, size_t n, gpuir_error *err) {
  size_t i;
  for (i = 0; i < n; i++) w->stat.tokens += lengths[i];
  w->nlengths += n;
  return gpuir__spool_put(&w->spool[GPUIR__W_LENGTHS], lengths, n * 4, err);
}

/* Maps all lengths, after the last one was put. They are valid until the writer is destroyed. */
static int gpuir__writer_lengths(gpuir__writer *w, const uint32_t **lengths, uint64_t *ndocs, uint64_t *tokens,
    gpuir_error *err) {
  static const uint32_t none[1] = {0};
  const gpuir__spool *spool = &w->spool[GPUIR__W_LENGTHS];
  int status = gpuir__spool_flush(&w->spool[GPUIR__W_LENGTHS], err);
  if (status) return status;
  if (w->nlengths != w->stat.documents)
    return gpuir__refuse(err, "%s: a document without a length", gpuir__tail(w->path));
  if (w->nlengths > SIZE_MAX / 4) return gpuir__fail_nomem(err);
  if (spool->fd >= 0 && w->nlengths && !w->lengths_map) {
    void *map = mmap(NULL, (size_t)w->nlengths * 4, PROT_READ, MAP_SHARED, spool->fd, 0);
    if (map == MAP_FAILED) return gpuir__fail_errno(err, w->tmp, "cannot map the lengths");
    w->lengths_map = map;
  }
  *lengths = w->lengths_map ? (const uint32_t *)w->lengths_map
      : w->nlengths         ? (const uint32_t *)(const void *)spool->buf
                            : none;
  *ndocs = w->stat.documents;
  *tokens = w->stat.tokens;
  return GPUIR_OK;
}

/* Writes the terms that wait as a block. */
static int gpuir__writer_put_block(gpuir__writer *w, gpuir_error *err) {
  gpuir__writer_terms *t = &w->terms;
  uint8_t out[GPUIR__DICT_MOST + 8];
  uint16_t start;
  size_t n;
  int status = GPUIR_OK;
  if (t->blocks++ % GPUIR__DICT_PAGE == 0) {
    t->page = t->now;
    status = gpuir__spool_put(&w->spool[GPUIR__W_TERM_PAGES], &t->page, sizeof t->page, err);
  }
  start = (uint16_t)(t->now.start - t->page.start);
  n = gpuir__dict_encode(&t->block, &t->form, &t->page, &t->now, out);
  t->block.n = 0;
  t->block.fill = 0;
  if (!status) status = gpuir__spool_put(&w->spool[GPUIR__W_TERM_STARTS], &start, sizeof start, err);
  return status ? status : gpuir__spool_put(&w->spool[GPUIR__W_TERMS], out, n, err);
}

/* Appends a batch's terms and records. */
static int gpuir__writer_put_terms(gpuir__writer *w, const gpuir__batch *batch, gpuir_error *err) {
  const uint8_t *term = batch->terms.data;
  uint64_t i;
  int status = GPUIR_OK;
  w->terms.form = gpuir__dict_form_of(w->stat.documents, w->has[GPUIR__P_POSITIONS]);
  for (i = 0; i < batch->nterms && !status; i++) {
    const size_t len = batch->term_lens.data[i];
    gpuir__record r;
    memcpy(&r, batch->records.data + i * sizeof r, sizeof r);
    w->stat.inline_postings += r.df == 1;
    if (r.positions_len >> GPUIR__DICT_POSITIONS_BITS)
      return gpuir__fail(err, GPUIR_E_LIMIT, 0, "%s: a term's positions take 256 TiB or more", gpuir__tail(w->path));
    gpuir__dict_add(&w->terms.block, term, len, &r);
    if (w->terms.block.n == GPUIR__DICT_BLOCK) status = gpuir__writer_put_block(w, err);
    term += len;
  }
  return status;
}

/* Appends extents, whose offsets in the batch become offsets in the file. */
static int gpuir__writer_put_extents(gpuir__writer *w, const gpuir__batch *batch, gpuir_error *err) {
  uint64_t nlongs = batch->longs.len / sizeof(gpuir__long), i;
  int status = GPUIR_OK;
  for (i = 0; i < nlongs && !status; i++) {
    gpuir__long x;
    memcpy(&x, batch->longs.data + i * sizeof x, sizeof x);
    x.docs += w->spool[GPUIR__W_DOCIDS].len;
    x.freqs += w->spool[GPUIR__W_FREQS].len;
    x.first_block += (uint32_t)w->stat.blocks;
    if (x.seeds) x.seeds += (uint32_t)(w->spool[GPUIR__W_SEEDS].len / (4 * GPUIR__SEEDS));
    status = gpuir__spool_put(&w->spool[GPUIR__W_LONGS], &x, sizeof x, err);
  }
  return status;
}

/* Appends the numbers of dense lists, which in the batch count from its first long list. */
static int gpuir__writer_put_dense(gpuir__writer *w, const gpuir__batch *batch, gpuir_error *err) {
  size_t at;
  int status = GPUIR_OK;
  for (at = 0; at < batch->dense_lists.len && !status; at += 4) {
    const uint32_t number = gpuir__load32(batch->dense_lists.data + at) + (uint32_t)w->stat.longs;
    w->has[GPUIR__P_DENSE] = 1;
    status = gpuir__spool_put(&w->spool[GPUIR__W_DENSE_LISTS], &number, sizeof number, err);
  }
  return status;
}

/* Appends the buffers of a batch that go to the file as they are. */
static int gpuir__writer_put_buffers(gpuir__writer *w, const gpuir__batch *batch, gpuir_error *err) {
  unsigned i;
  int status = GPUIR_OK;
  for (i = 0; i < GPUIR__SECTION_ROWS && !status; i++) {
    const size_t at = gpuir__section_rows[i].batch;
    const gpuir__buf *buf = (const gpuir__buf *)(const void *)((const uint8_t *)batch + (at ? at - 1 : 0));
    if (at) status = gpuir__spool_put(&w->spool[i], buf->data, buf->len, err);
  }
  if (!status)
    status = gpuir__spool_put(&w->spool[GPUIR__W_DOCIDS_SHORT], batch->docs_short.data, batch->docs_short.len, err);
  if (!status)
    status = gpuir__spool_put(&w->spool[GPUIR__W_FREQS_SHORT], batch->freqs_short.data, batch->freqs_short.len, err);
  return status;
}

/* Appends encoded lists; batches come in ascending order of terms. */
static int gpuir__writer_put_batch(gpuir__writer *w, const gpuir__batch *batch, gpuir_error *err) {
  int status;
  if (w->stat.terms + batch->nterms >= UINT32_MAX)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "%s: more than 2^32-2 terms", gpuir__tail(w->path));
  if (w->stat.blocks + batch->last.len / 4 > UINT32_MAX)
    return gpuir__fail(err, GPUIR_E_LIMIT, 0, "%s: more than 2^32-1 blocks of postings", gpuir__tail(w->path));
  status = gpuir__writer_put_terms(w, batch, err);
  if (!status) status = gpuir__writer_put_extents(w, batch, err);
  if (!status) status = gpuir__writer_put_dense(w, batch, err);
  if (!status) status = gpuir__writer_put_buffers(w, batch, err);
  w->stat.terms += batch->nterms;
  w->stat.postings += batch->postings;
  w->stat.longs += batch->longs.len / sizeof(gpuir__long);
  w->stat.blocks += batch->last.len / 4;
  return status;
}

/* Appends a line key=value of the meta section; line breaks in the value become blanks. */
static int gpuir__meta_put(const gpuir_allocator *a, gpuir__buf *out, const char *key, const char *value) {
  size_t n = strlen(value), i;
  uint8_t *p;
  if (gpuir__buf_put(a, out, key, strlen(key)) || gpuir__buf_put(a, out, "=", 1)) return GPUIR_E_NOMEM;
  p = gpuir__buf_room(a, out, n + 1);
  if (!p) return GPUIR_E_NOMEM;
  for (i = 0; i < n; i++) p[i] = value[i] == '\n' || value[i] == '\r' ? (uint8_t)' ' : (uint8_t)value[i];
  p[n] = '\n';
  out->len += n + 1;
  return GPUIR_OK;
}

#define GPUIR__FIELDS "text:1" /* the fields of a document and their weights: all that there is */

/* Writes the text of the meta section. */
static int gpuir__meta_text(const gpuir_allocator *a, const gpuir__index_meta *meta, gpuir__buf *out) {
  size_t i;
  int status = GPUIR_OK;
  for (i = 0; i < GPUIR__META_KEYS && !status; i++) {
    const char *value = *gpuir__meta_value(meta, i);
    if (gpuir__meta_keys[i].named || *value) status = gpuir__meta_put(a, out, gpuir__meta_keys[i].key, value);
  }
  return status;
}

/* Returns the spool of the short lists that a section ends with, or NULL. */
static gpuir__spool *gpuir__writer_short_lists(gpuir__writer *w, uint32_t id) {
  if (id == GPUIR__S_DOCIDS) return &w->spool[GPUIR__W_DOCIDS_SHORT];
  return id == GPUIR__S_FREQS ? &w->spool[GPUIR__W_FREQS_SHORT] : NULL;
}

/* Returns the number of columns of a spool of numbers, and fills their widths in the file in bytes; 0: its bytes go to
 * the file as they are. */
static unsigned gpuir__writer_columns(const gpuir__writer *w, unsigned row, uint8_t width[GPUIR__O_COUNT]) {
  const gpuir__section_row *r = &gpuir__section_rows[row];
  unsigned i;
  memset(width, 0, GPUIR__O_COUNT);
  if (r->items == GPUIR__N_DOC_ENDS || r->items == GPUIR__N_ENDS) {
    width[0] = (uint8_t)gpuir__start_width(w->spool[row - 1].len);
    return 1;
  }
#ifndef GPUIR_NO_STORE
  if (r->items == GPUIR__N_PLACES) {
    width[0] = (uint8_t)gpuir__start_width(w->text->bytes);
    return 1;
  }
#endif
  if (r->id != GPUIR__S_ORIGINS) return 0;
  for (i = 0; i < GPUIR__O_COUNT; i++) width[i] = (uint8_t)gpuir__number_width(w->origins.of[i]);
  return GPUIR__O_COUNT;
}

/* Returns the bytes of a section. */
static uint64_t gpuir__writer_length(gpuir__writer *w, unsigned row) {
  const uint32_t id = gpuir__section_rows[row].id;
  const gpuir__spool *more = gpuir__writer_short_lists(w, id);
  uint8_t width[GPUIR__O_COUNT];
  const unsigned columns = gpuir__writer_columns(w, row, width);
  unsigned i, bytes = 0; /* of a row */
  if (id == GPUIR__S_TERM_KEYS) return gpuir__dict_nodes(w->stat.terms) * sizeof(uint64_t) * GPUIR__DICT_FAN;
  if (!columns) return w->spool[row].len + (more ? more->len : 0);
  for (i = 0; i < columns; i++) bytes += width[i];
  return (id == GPUIR__S_ORIGINS ? GPUIR__ORIGINS_HEAD : 0) + w->spool[row].len / (8 * columns) * bytes;
}

/* Lists the sections that the file has, in its order: rows[i] is the number of the i-th one's row and spool. Returns
 * how many there are. *size becomes that of the file. */
static unsigned gpuir__writer_plan(gpuir__writer *w, gpuir__section table[GPUIR__S_COUNT],
    unsigned rows[GPUIR__S_COUNT], uint64_t *size) {
  unsigned n = 0, i;
  uint64_t at;
  for (i = 0; i < GPUIR__SECTION_ROWS; i++)
    if (w->has[gpuir__section_rows[i].presence]) rows[n++] = i;
  at = sizeof(gpuir__header) + n * sizeof *table;
  for (i = 0; i < n; i++) {
    const gpuir__section_row *row = &gpuir__section_rows[rows[i]];
    const int required = row->presence == GPUIR__P_ALWAYS || row->presence >= GPUIR__P_TEXT;
    at = (at + GPUIR__ALIGN - 1) & ~(uint64_t)(GPUIR__ALIGN - 1);
    table[i].id = row->id;
    table[i].flags = required ? GPUIR__REQUIRED : 0;
    table[i].offset = at;
    table[i].length = gpuir__writer_length(w, rows[i]);
    at += table[i].length + GPUIR__ALIGN;
  }
  *size = at;
  return n;
}

/* Writes the bytes that are on their way. */
static int gpuir__writer_flush(gpuir__writer *w, gpuir_error *err) {
  gpuir__ahead *x = &w->ahead;
  if (x->fill && gpuir__pwrite_all(w->fd, x->buf, x->fill, x->at))
    return gpuir__fail_errno(err, w->tmp, "cannot write");
  x->fill = 0;
  return GPUIR_OK;
}

/* Writes n bytes at `offset`, sooner or later. What lies between two sections is zeros. */
static int gpuir__writer_put(gpuir__writer *w, const void *bytes, size_t n, uint64_t offset, gpuir_error *err) {
  gpuir__ahead *x = &w->ahead;
  size_t gap;
  if (x->fill && (offset < x->at + x->fill || offset + n > x->at + GPUIR__AHEAD)) {
    int status = gpuir__writer_flush(w, err);
    if (status) return status;
  }
  if (n >= GPUIR__AHEAD)
    return gpuir__pwrite_all(w->fd, bytes, n, offset) ? gpuir__fail_errno(err, w->tmp, "cannot write") : GPUIR_OK;
  if (!x->fill) x->at = offset;
  gap = (size_t)(offset - x->at) - x->fill;
  memset(x->buf + x->fill, 0, gap);
  memcpy(x->buf + x->fill + gap, bytes, n);
  x->fill += gap + n;
  return GPUIR_OK;
}

/* Where the next bytes of a section go, and the checksum of those before. */
typedef struct gpuir__sink {
  uint64_t offset; /* in PATH.tmp */
  XXH3_state_t *hash;
} gpuir__sink;

static int gpuir__writer_out(gpuir__writer *w, gpuir__sink *to, const void *bytes, size_t n, gpuir_error *err) {
  int status = gpuir__writer_put(w, bytes, n, to->offset, err);
  (void)XXH3_64bits_update(to->hash, bytes, n);
  to->offset += n;
  return status;
}

/* Packs n bytes of rows of 64-bit numbers in place; returns the bytes that they then take. */
static size_t gpuir__pack_rows(uint8_t *rows, size_t n, unsigned columns, const uint8_t *width) {
  uint8_t *to = rows;
  size_t i;
  unsigned column = 0;
  for (i = 0; i < n; i += 8) {
    const uint64_t v = gpuir__load64(rows + i);
    memcpy(to, &v, width[column]);
    to += width[column];
    column = column + 1 < columns ? column + 1 : 0;
  }
  return (size_t)(to - rows);
}

/* Copies a spool of bytes, or of rows of `columns` numbers that are to be packed. */
static int gpuir__writer_copy(gpuir__writer *w, gpuir__spool *s, unsigned columns, const uint8_t *width,
    gpuir__sink *to, uint8_t *buf, size_t cap, gpuir_error *err) {
  const size_t most = columns ? cap - cap % (8 * columns) : cap;
  uint64_t at;
  int status = GPUIR_OK;
  for (at = 0; at < s->len && !status; at += most) {
    size_t n = (size_t)gpuir__min64(most, s->len - at);
    status = gpuir__spool_get(s, buf, n, at, err);
    if (status) break;
    if (columns) n = gpuir__pack_rows(buf, n, columns, width);
    status = gpuir__writer_out(w, to, buf, n, err);
  }
  return status;
}

/* Makes the dictionary's tree in place, in a mapping of PATH.tmp (whose blocks are allocated and which has the rest of
 * the dictionary). `table` is the entry of the section of the tree, behind those of the other three. */
static int gpuir__writer_tree(gpuir__writer *w, gpuir__section *table, gpuir_error *err) {
  const uint64_t from = table[-3].offset & ~(uint64_t)65535, end = table->offset + table->length;
  const gpuir__section *terms = table - 3, *pages = table - 2, *starts = table - 1;
  gpuir__dict d;
  uint64_t *keys, node;
  uint8_t *map;
  unsigned depth;
  int status = gpuir__writer_flush(w, err);
  if (status) return status;
  table->hash = gpuir__hash(NULL, 0, 0);
  gpuir__dict_shape(&d, w->stat.terms);
  if (!d.levels) return GPUIR_OK;
  map = (uint8_t *)mmap(NULL, (size_t)(end - from), PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, (off_t)from);
  if (map == (uint8_t *)MAP_FAILED) return gpuir__fail_errno(err, w->tmp, "cannot map the dictionary");
  d.bytes = map + (terms->offset - from);
  d.size = terms->length;
  d.pages = (const gpuir__dict_page *)(const void *)(map + (pages->offset - from));
  d.starts = (const uint16_t *)(const void *)(map + (starts->offset - from));
  d.keys = keys = (uint64_t *)(void *)(map + (table->offset - from));
  for (depth = 0; depth < d.levels; depth++)
    for (node = 0; node < d.level[depth]; node++, keys += GPUIR__DICT_FAN) gpuir__dict_node(&d, depth, node, keys);
  table->hash = gpuir__hash(d.keys, (size_t)table->length, 0);
  (void)munmap(map, (size_t)(end - from));
  return GPUIR_OK;
}

/* Writes the section whose row and spool is number `row`, and notes its checksum. */
static int gpuir__writer_section(gpuir__writer *w, unsigned row, gpuir__section *entry, uint8_t *buf, size_t cap,
    gpuir_error *err) {
  gpuir__spool *more = gpuir__writer_short_lists(w, entry->id);
  gpuir__sink to = {entry->offset, NULL};
  uint8_t width[GPUIR__ORIGINS_HEAD] = {0};
  const unsigned columns = gpuir__writer_columns(w, row, width);
  int status = GPUIR_OK;
  if (entry->id == GPUIR__S_TERM_KEYS) return gpuir__writer_tree(w, entry, err);
  to.hash = XXH3_createState();
  if (!to.hash) return gpuir__fail_nomem(err);
  (void)XXH3_64bits_reset(to.hash);
  if (entry->id == GPUIR__S_ORIGINS) status = gpuir__writer_out(w, &to, width, sizeof width, err);
  if (!status) status = gpuir__writer_copy(w, &w->spool[row], columns, width, &to, buf, cap, err);
  if (!status && more) status = gpuir__writer_copy(w, more, 0, NULL, &to, buf, cap, err);
  entry->hash = XXH3_64bits_digest(to.hash);
  (void)XXH3_freeState(to.hash);
  return status;
}

/* Puts the finished PATH.tmp in PATH's place, so that it survives a loss of power. */
static int gpuir__writer_publish(gpuir__writer *w, gpuir_error *err) {
  int same, status = w->placed ? GPUIR_OK : gpuir__writer_keep_mode(w, err);
  if (status) return status;
  if (w->placed) {
    status = close(w->fd) && errno != EINTR ? gpuir__fail_errno(err, w->path, "cannot close") : GPUIR_OK;
    w->fd = -1;
    return status;
  }
  if (fsync(w->fd)) return gpuir__fail_errno(err, w->tmp, "cannot sync");
  same = gpuir__is_file(w->fd, w->tmp);
  if (same < 0) return gpuir__fail_errno(err, w->tmp, "cannot stat");
  if (!same) return gpuir__fail(err, GPUIR_E_BUSY, 0, "%s: replaced while it was written", gpuir__tail(w->tmp));
  if (rename(w->tmp, w->path)) return gpuir__fail_errno(err, w->path, "cannot rename the finished index");
  (void)close(w->fd);
  w->fd = -1;
  if (!gpuir__sync_folder(w->folder)) return GPUIR_OK;
  return gpuir__fail_errno(err, w->path, "the new index is in place, but may not survive a power loss");
}

/* Completes what is derived from all documents and terms. `text` is that of the meta section. */
static int gpuir__writer_close_lists(gpuir__writer *w, const gpuir__buf *text, gpuir_error *err) {
  int status = w->terms.block.n ? gpuir__writer_put_block(w, err) : GPUIR_OK;
  if (!status) status = gpuir__writer_put64(w, GPUIR__W_NAME_START, w->spool[GPUIR__W_NAMES].len, err);
  if (!status) status = gpuir__writer_put64(w, GPUIR__W_SOURCE_START, w->spool[GPUIR__W_SOURCES].len, err);
#ifndef GPUIR_NO_STORE
  if (!status && w->text) status = gpuir__writer_close_text(w, err);
#endif
#ifndef GPUIR_NO_COLUMNS
  if (!status && w->fields) status = gpuir__notes_finish(&w->notes, w->fields, &w->spool[GPUIR__W_COLUMNS], err);
#endif
  w->stat.docs_short = w->spool[GPUIR__W_DOCIDS].len;
  w->stat.freqs_short = w->spool[GPUIR__W_FREQS].len;
  if (!status) status = gpuir__spool_put(&w->spool[GPUIR__W_STAT], &w->stat, sizeof w->stat, err);
  return status ? status : gpuir__spool_put(&w->spool[GPUIR__W_META], text->data, text->len, err);
}

/* Writes the header and the section table of a file of this size, and puts the file in its place. */
GPUIR__COLD static int gpuir__writer_head(gpuir__writer *w, const gpuir__section *table, unsigned n, uint64_t size,
    gpuir_error *err) {
  gpuir__header header;
  int status;
  memset(&header, 0, sizeof header);
  memcpy(header.magic, gpuir__magic, sizeof header.magic);
  header.format = GPUIR__FORMAT;
  header.sections = n;
  header.file_size = size;
  header.table_hash = gpuir__hash(table, n * sizeof table[0], 0);
  header.hash = gpuir__hash(&header, offsetof(gpuir__header, hash), 0);
  status = gpuir__writer_put(w, &header, sizeof header, 0, err);
  if (!status) status = gpuir__writer_put(w, table, n * sizeof table[0], sizeof header, err);
  if (!status) status = gpuir__writer_flush(w, err);
  return status ? status : gpuir__writer_publish(w, err);
}

/* Lays the sections out, writes them, and puts the file in its place. */
static int gpuir__writer_finish(gpuir__writer *w, const gpuir__index_meta *given, uint64_t *file_bytes,
    gpuir_error *err) {
  enum { CAP = 1 << 18 };
  gpuir__index_meta meta = *given;
  char sources[24];
  gpuir__section table[GPUIR__S_COUNT];
  unsigned rows[GPUIR__S_COUNT], n = 0, i;
  gpuir__buf text = {NULL, 0, 0};
  uint8_t *buf = (uint8_t *)gpuir__alloc(&w->a, CAP);
  uint64_t at = 0;
  int status;
  meta.sources = "";
  if (w->ncode && gpuir__spec_is_text(meta.analyzer)) {
    (void)snprintf(sources, sizeof sources, "%llu", (unsigned long long)w->ncode);
    meta.sources = sources;
  }
  w->ahead.buf = (uint8_t *)gpuir__alloc(&w->a, GPUIR__AHEAD);
  status = buf && w->ahead.buf && !gpuir__meta_text(&w->a, &meta, &text) ? GPUIR_OK : gpuir__fail_nomem(err);
  if (!status) status = gpuir__writer_close_lists(w, &text, err);
  if (!status) n = gpuir__writer_plan(w, table, rows, &at);
  if (!status && gpuir__allocate(w->fd, at)) status = gpuir__fail_errno(err, w->tmp, "cannot allocate the index file");
  for (i = 0; i < n && !status; i++) status = gpuir__writer_section(w, rows[i], &table[i], buf, CAP, err);
  if (!status) status = gpuir__writer_head(w, table, n, at, err);
  *file_bytes = at;
  gpuir__free(&w->a, buf, CAP);
  gpuir__free(&w->a, w->ahead.buf, GPUIR__AHEAD);
  gpuir__buf_free(&w->a, &text);
  return status;
}
