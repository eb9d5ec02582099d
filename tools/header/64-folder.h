
/* ========
 * [64-folder]  live indexes: the folder; opening
 *
 * The folder of a live index has
 *
 *     manifest       what the last commit left, replaced as a whole
 *     NNNNNN.gpuir   the segments: index files; no number is used twice
 *     lock           locked by the writer; its magic number tells the folder from one of other files
 *
 * and the manifest
 *
 *     head           gpuir__manifest_head
 *     entries        a gpuir__entry a segment, in the order of documents
 *     logs           each segment's deleted docIDs in order of deletion, in variable bytes
 *     checksum       XXH3 of all above
 *
 * A reader takes no lock: if a segment of the manifest has gone, or is another one, the writer has replaced the
 * manifest meanwhile.
 *
 * Uses      [18-codecs] (variable bytes), [33-analyzers], [37-layout], [41-reader], [42-snapshot], [63-execution].
 * Start at  gpuir__manifest_parse, gpuir__folder_open, gpuir_open.
 * Tests     tests/unit/64_folder.c
 * ======*/

#define GPUIR__MANIFEST_FORMAT 1u
#define GPUIR__MANIFEST_FIELDS 2u /* the format where documents have values, which writers before it would lose */
#define GPUIR__MOST_NUMBER 999999999999999999u /* of a segment: 18 digits */

typedef struct gpuir__manifest_head {
  uint8_t magic[8];
  uint32_t format, segments;
  uint64_t generation; /* commits */
  uint64_t content; /* commits that changed the documents */
  uint64_t next; /* the least number that no segment has had */
} gpuir__manifest_head;

typedef struct gpuir__entry {
  uint64_t number;
  uint64_t hash; /* of the segment's header, which has checksums of all the file */
  uint32_t documents, deleted;
} gpuir__entry;

typedef struct gpuir__manifest {
  gpuir__manifest_head head;
  gpuir__buf entries; /* gpuir__entry */
  gpuir__buf docids; /* uint32_t, the deleted ones of all segments */
} gpuir__manifest;

static void gpuir__manifest_free(const gpuir_allocator *a, gpuir__manifest *m) {
  gpuir__buf_free(a, &m->entries);
  gpuir__buf_free(a, &m->docids);
}

/* Returns the i-th entry (< segments). */
static gpuir__entry gpuir__manifest_entry(const gpuir__manifest *m, size_t i) {
  gpuir__entry e;
  memcpy(&e, m->entries.data + i * sizeof e, sizeof e);
  return e;
}

/* Reads a number of at most 32 bits in sevens; 0 if there is none in *p up to end. */
static int gpuir__manifest_number(const uint8_t **p, const uint8_t *end, uint32_t *value) {
  uint64_t v = 0;
  unsigned shift;
  for (shift = 0; shift < 35 && *p < end; shift += 7) {
    const uint8_t byte = *(*p)++;
    v |= (uint64_t)(byte & 127) << shift;
    if (byte & 128) continue;
    *value = (uint32_t)v;
    return v <= UINT32_MAX;
  }
  return 0;
}

/* Appends a number in sevens. */
static int gpuir__manifest_put(const gpuir_allocator *a, gpuir__buf *out, uint32_t value) {
  uint8_t bytes[5];
  return gpuir__buf_put(a, out, bytes, (size_t)(gpuir__vbyte_put(bytes, value) - bytes));
}

static int gpuir__manifest_bad(gpuir_error *err, uint64_t offset, const char *path, const char *cause) {
  return gpuir__fail(err, GPUIR_E_FORMAT, offset, "%s/manifest: %s", gpuir__tail(path), cause);
}

static int gpuir__compare_numbers(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

/* Checks that no number is there twice: a small file could have one segment opened very often. */
static int gpuir__manifest_numbers(const gpuir_allocator *a, const gpuir__manifest *m, const char *path,
    gpuir_error *err) {
  const size_t n = m->head.segments;
  uint64_t *numbers = (uint64_t *)gpuir__alloc(a, n * sizeof *numbers);
  size_t i;
  int twice = 0;
  if (!numbers) return gpuir__fail_nomem(err);
  for (i = 0; i < n; i++) numbers[i] = gpuir__manifest_entry(m, i).number;
  qsort(numbers, n, sizeof *numbers, gpuir__compare_numbers);
  for (i = 1; i < n; i++) twice |= numbers[i] == numbers[i - 1];
  gpuir__free(a, numbers, n * sizeof *numbers);
  return twice ? gpuir__manifest_bad(err, 0, path, "a segment stands there twice") : GPUIR_OK;
}

/* Reads the logs from p up to end, as long as the entries say. */
static int gpuir__manifest_logs(const gpuir_allocator *a, gpuir__manifest *m, const char *path, const uint8_t *p,
    const uint8_t *end, gpuir_error *err) {
  size_t i;
  uint32_t j, docid;
  for (i = 0; i < m->head.segments; i++) {
    const gpuir__entry e = gpuir__manifest_entry(m, i);
    if (e.documents > GPUIR__MAX_DOCUMENTS || e.deleted > e.documents || !e.number || e.number >= m->head.next)
      return gpuir__manifest_bad(err, 0, path, "a segment's numbers are out of range");
    for (j = 0; j < e.deleted; j++) {
      if (!gpuir__manifest_number(&p, end, &docid) || docid >= e.documents)
        return gpuir__manifest_bad(err, 0, path, "a deleted document is out of range");
      if (gpuir__buf_put(a, &m->docids, &docid, sizeof docid)) return gpuir__fail_nomem(err);
    }
  }
  return p == end ? GPUIR_OK : gpuir__manifest_bad(err, 0, path, "bytes behind the last log");
}

/* Reads a manifest from bytes[0..n) into *m, which is empty; `path` is the folder's, for messages. 0, FORMAT, VERSION,
 * NOMEM. */
static int gpuir__manifest_parse(const gpuir_allocator *a, gpuir__manifest *m, const char *path, const uint8_t *bytes,
    size_t n, gpuir_error *err) {
  const size_t head = sizeof m->head;
  int status;
  if (n < head + 8) return gpuir__manifest_bad(err, 0, path, "shorter than a manifest");
  memcpy(&m->head, bytes, head);
  if (memcmp(m->head.magic, gpuir__manifest_magic, sizeof m->head.magic))
    return gpuir__manifest_bad(err, 0, path, "not a manifest: no magic number");
  if (m->head.format != GPUIR__MANIFEST_FORMAT && m->head.format != GPUIR__MANIFEST_FIELDS)
    return gpuir__fail(err, GPUIR_E_VERSION, 8, "%s/manifest: format %u, this build reads %u and %u", gpuir__tail(path),
        (unsigned)m->head.format, GPUIR__MANIFEST_FORMAT, GPUIR__MANIFEST_FIELDS);
  if (gpuir__load64(bytes + n - 8) != gpuir__hash(bytes, n - 8, 0))
    return gpuir__manifest_bad(err, n - 8, path, "its checksum is wrong");
  if (!m->head.segments || m->head.segments > (n - head - 8) / sizeof(gpuir__entry))
    return gpuir__manifest_bad(err, 12, path, "its segments do not fit");
  if (m->head.next > GPUIR__MOST_NUMBER)
    return gpuir__manifest_bad(err, 32, path, "there is no number left for a segment");
  if (gpuir__buf_put(a, &m->entries, bytes + head, m->head.segments * sizeof(gpuir__entry)))
    return gpuir__fail_nomem(err);
  status = gpuir__manifest_numbers(a, m, path, err);
  if (status) return status;
  return gpuir__manifest_logs(a, m, path, bytes + head + m->entries.len, bytes + n - 8, err);
}

/* Reads an open manifest as a whole into memory and parses it into m. A file that is no regular one is refused: reading
 * a pipe would wait. */
static int gpuir__manifest_load(const gpuir_allocator *a, gpuir__manifest *m, const char *path, int fd,
    gpuir_error *err) {
  struct stat st;
  uint8_t *bytes;
  size_t n;
  int status;
  if (fstat(fd, &st)) return gpuir__fail_errno(err, path, "cannot stat the manifest");
  if (!S_ISREG(st.st_mode)) return gpuir__manifest_bad(err, 0, path, "not a regular file");
  if ((uint64_t)st.st_size > SIZE_MAX / 16) return gpuir__fail_nomem(err);
  n = (size_t)st.st_size;
  bytes = (uint8_t *)gpuir__alloc(a, n);
  if (!bytes) return gpuir__fail_nomem(err);
  if (gpuir__pread_all(fd, bytes, n, 0)) status = gpuir__fail_errno(err, path, "cannot read the manifest");
  else status = gpuir__manifest_parse(a, m, path, bytes, n, err);
  gpuir__free(a, bytes, n);
  return status;
}

/* Reads the manifest of an open folder into *m, which is emptied first. *found: 0 if there is none, which is no
 * error. */
GPUIR__COLD static int gpuir__manifest_read(const gpuir_allocator *a, gpuir__manifest *m, int folder, const char *path,
    int *found, gpuir_error *err) {
  const int fd = openat(folder, "manifest", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  int status;
  m->entries.len = m->docids.len = 0;
  *found = fd >= 0;
  if (fd < 0) return errno == ENOENT ? GPUIR_OK : gpuir__fail_errno(err, path, "cannot open the manifest");
  status = gpuir__manifest_load(a, m, path, fd, err);
  (void)close(fd);
  return status;
}

/* Writes the name of a segment. */
static void gpuir__segment_name(char name[32], uint64_t number) {
  (void)snprintf(name, 32, "%06llu.gpuir", (unsigned long long)number);
}

/* Returns which file stands under a name in the folder; none if there is none. */
static gpuir__identity gpuir__identity_at(int folder, const char *name) {
  const gpuir__identity none = {0, 0};
  struct stat st;
  return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) ? none : gpuir__identity_of(&st);
}

/* Removes the file of a segment, if it is still the one under its name: who lost the lock must not remove what the
 * next writer has made there. */
static void gpuir__segment_unlink(int folder, uint64_t number, gpuir__identity file) {
  char name[32];
  gpuir__segment_name(name, number);
  if (gpuir__identity_same(gpuir__identity_at(folder, name), file)) (void)unlinkat(folder, name, 0);
}

/* Returns the checksum of the segment's header. */
static uint64_t gpuir__segment_hash(const gpuir__segment *seg) {
  return gpuir__load64(seg->map + offsetof(gpuir__header, hash));
}

/* ---- opening */

/* A folder that is being opened. */
typedef struct gpuir__opening {
  const gpuir_allocator *a;
  int folder;
  const char *path;
  const gpuir_open_desc *desc;
  gpuir__manifest manifest;
  gpuir__leaf *leaves; /* [manifest.head.segments] */
  size_t n; /* of them that are open */
  int gone; /* a segment has gone, or is another one */
} gpuir__opening;

#define GPUIR__OPENING_TRIES 100u /* of a reader, each of which needs a commit meanwhile to fail */

GPUIR__COLD static void gpuir__opening_clear(gpuir__opening *o) {
  while (o->n) gpuir__leaf_close(&o->leaves[--o->n]);
  gpuir__free(o->a, o->leaves, o->manifest.head.segments * sizeof *o->leaves);
  o->leaves = NULL;
}

/* Takes an entry's segment and set over from the index that shares, if it has it. 1: taken; 0: not; NOMEM. */
static int gpuir__opening_share(gpuir__opening *o, const gpuir__entry *e, const uint32_t *log, gpuir__leaf *leaf) {
  const gpuir_index *share = o->desc ? o->desc->share : NULL;
  size_t i;
  for (i = 0; share && i < share->nleaves; i++) {
    const gpuir__leaf *old = &share->leaves[i];
    int status;
    if (old->seg->number != e->number || gpuir__segment_hash(old->seg) != e->hash ||
        old->seg->simd != gpuir__simd_level(o->desc->simd))
      continue;
    status = gpuir__log_extend(old->seg, log, e->deleted);
    if (!status) status = gpuir__deleted_make(old->seg, e->deleted, old->deleted, &leaf->deleted);
    if (status) return status == GPUIR_E_NOMEM ? status : 0;
    leaf->seg = gpuir__segment_retain(old->seg);
    return 1;
  }
  return 0;
}

/* Opens an entry's segment. o->gone becomes 1 if it is not there. */
static int gpuir__opening_segment(gpuir__opening *o, const gpuir__entry *e, const uint32_t *log, gpuir__leaf *leaf,
    gpuir_error *err) {
  char name[32];
  int status = gpuir__opening_share(o, e, log, leaf);
  if (status) return status == 1 ? GPUIR_OK : gpuir__fail_nomem(err);
  gpuir__segment_name(name, e->number);
  if (faccessat(o->folder, name, F_OK, 0)) {
    o->gone = errno == ENOENT;
    return gpuir__fail_errno(err, name, "cannot open a segment");
  }
  status = gpuir__segment_open(o->a, o->folder, name, o->desc, &leaf->seg, err);
  if (status) {
    o->gone = status == GPUIR_E_FORMAT || faccessat(o->folder, name, F_OK, 0);
    return status;
  }
  leaf->seg->number = e->number;
  if (gpuir__segment_hash(leaf->seg) != e->hash || leaf->seg->stat.documents != e->documents) {
    o->gone = 1;
    status = gpuir__fail(err, GPUIR_E_FORMAT, 0, "%s: not the file that the manifest names", name);
  }
  if (!status && gpuir__log_extend(leaf->seg, log, e->deleted)) status = gpuir__fail_nomem(err);
  if (!status) {
    status = gpuir__deleted_make(leaf->seg, e->deleted, NULL, &leaf->deleted);
    if (status) (void)gpuir__manifest_bad(err, 0, o->path, gpuir_strerror(status));
  }
  if (status) gpuir__leaf_close(leaf);
  return status;
}

/* Opens the segments of the manifest. */
static int gpuir__opening_segments(gpuir__opening *o, gpuir_error *err) {
  const uint32_t *log = (const uint32_t *)(const void *)o->manifest.docids.data, none = 0;
  const size_t n = o->manifest.head.segments;
  int status = GPUIR_OK;
  if (!log) log = &none; /* nothing is deleted: it is not read */
  o->leaves = (gpuir__leaf *)gpuir__alloc_zero(o->a, n * sizeof *o->leaves);
  if (!o->leaves) return gpuir__fail_nomem(err);
  while (o->n < n && !status) {
    const gpuir__entry e = gpuir__manifest_entry(&o->manifest, o->n);
    status = gpuir__opening_segment(o, &e, log, &o->leaves[o->n], err);
    if (status) break;
    log += e.deleted;
    o->n++;
  }
  return status;
}

/* Reads manifest and segments until they fit each other. Each further try means that the writer has committed; if it
 * has not, the index is damaged. *found: 0 if there is no manifest. */
static int gpuir__opening_read(gpuir__opening *o, int *found, gpuir_error *err) {
  uint64_t before = UINT64_MAX;
  unsigned tries;
  for (tries = 0; tries < GPUIR__OPENING_TRIES; tries++) {
    int status = gpuir__manifest_read(o->a, &o->manifest, o->folder, o->path, found, err);
    if (status || !*found) return status;
    o->gone = 0;
    status = gpuir__opening_segments(o, err);
    if (!status) return GPUIR_OK;
    gpuir__opening_clear(o);
    if (!o->gone) return status;
    if (o->manifest.head.generation == before)
      return gpuir__fail(err, status == GPUIR_E_VERSION ? status : GPUIR_E_FORMAT, 0,
          "%s: a file that the manifest names is damaged, another one, or not there", gpuir__tail(o->path));
    before = o->manifest.head.generation;
  }
  return gpuir__fail(err, GPUIR_E_BUSY, 0, "%s: its writer keeps replacing what is being opened", gpuir__tail(o->path));
}

/* Says whether a pool of analyzers is what the desc and a segment ask for. */
static int gpuir__analyzers_fit(const gpuir__analyzers *pool, const gpuir_open_desc *desc, const gpuir__segment *seg) {
  return !strcmp(pool->spec, seg->meta.analyzer) && !strcmp(pool->stop_words, seg->meta.stop_words) &&
      pool->own.tokenize == desc->tokenize && pool->own.places == desc->tokenize_places &&
      pool->own.user == desc->tokenize_user;
}

/* Opens the last commit in an open folder. */
GPUIR__COLD static int gpuir__folder_open(const gpuir_allocator *a, int folder, const char *path,
    const gpuir_open_desc *desc, gpuir_index **index, gpuir_error *err) {
  gpuir__opening o;
  gpuir__analyzers *pool;
  int found, status;
  memset(&o, 0, sizeof o);
  o.a = a;
  o.folder = folder;
  o.path = path;
  o.desc = desc;
  *index = NULL;
  status = gpuir__opening_read(&o, &found, err);
  if (!status && !found)
    status =
        gpuir__fail(err, GPUIR_E_FORMAT, 0, "%s: a folder without a manifest: not a live index", gpuir__tail(path));
  if (!status) {
    pool = desc && desc->share ? desc->share->analysis.pool : NULL;
    if (pool && !gpuir__analyzers_fit(pool, desc, o.leaves[0].seg)) pool = NULL;
    status = gpuir__index_open(a, path, desc, o.leaves, o.n, pool, index, err);
    o.n = 0; /* the index has them */
  }
  if (!status) {
    (*index)->generation = o.manifest.head.generation;
    (*index)->content = o.manifest.head.content;
  }
  gpuir__opening_clear(&o);
  gpuir__manifest_free(a, &o.manifest);
  return status;
}

GPUIR__COLD GPUIR_API int gpuir_open(const char *path, const gpuir_open_desc *desc, gpuir_index **index,
    gpuir_error *err) {
  gpuir_allocator a = gpuir__allocator(desc ? desc->allocator : NULL);
  gpuir__leaf leaf = {NULL, NULL, 0};
  struct stat st;
  int status;
  if (index) *index = NULL;
  if (!index || (!path && !(desc && desc->data))) return gpuir__refuse(err, "gpuir_open: path or index is NULL");
  if (!path) path = "index in memory";
  if (!(desc && desc->data) && !stat(path, &st) && S_ISDIR(st.st_mode)) {
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return gpuir__fail_errno(err, path, "cannot open");
    status = gpuir__folder_open(&a, folder, path, desc, index, err);
    (void)close(folder);
    return status;
  }
  status = gpuir__segment_open(&a, AT_FDCWD, path, desc, &leaf.seg, err);
  return status ? status : gpuir__index_open(&a, path, desc, &leaf, 1, NULL, index, err);
}
