
#ifndef GPUIR_NO_FOLDER
/* ========
 * [47-walk]  files and folders, safely: what is looked at is what is read
 *
 * Whoever owns a folder can put a link, a FIFO or another file under a name at any moment. A check of a path says
 * nothing about what the path leads to afterwards. So each name is opened once, in the open folder that it was listed
 * in, and without following links. The descriptor must be the file that was listed; another one, as after an editor has
 * saved it, is looked at anew.
 *
 * Uses      [37-layout], [45-merge] (adding texts).
 * Start at  gpuir_walk, gpuir__visit_folder, gpuir__visit_open, gpuir__rules_match.
 * Tests     tests/unit/47_walk.c
 * ======*/

#define GPUIR__VISIT_HELD 63u /* folders that are open at a time, beside the one that was named */
#define GPUIR__IGNORE_MOST \
  ((size_t)1 << 20) /* bytes of a .gitignore and those of the folders above it; what would
                                              * make more of them is not read: their rules are held together */
#define GPUIR__FILE_MOST ((size_t)1 << 30) /* bytes of a file that becomes a document */
#define GPUIR__BINARY_BYTES 8192u /* a NUL byte among them shows that a file is no text */

/* ---- rules */

/* A line of a .gitignore, as gitignore(5) and git's own matcher (wildmatch.c) have it. */
typedef struct gpuir__rule {
  const char *pieces, *last; /* what stood between the '/', each with a NUL behind it; the last piece */
  unsigned n; /* pieces */
  int keep, folder, anchored; /* begins with '!'; ends with '/'; has another '/' */
} gpuir__rule;

#define GPUIR__RULE_PIECES 4096u /* of a rule; no path has so many folders */

/* Returns whether a byte is of the class whose name, in "[:name:]", begins at *p; *p becomes its ']'. 2: this is no
 * name, and the '[' stands for itself; -1: there is no such class. */
static int gpuir__class_named(const char **p, unsigned char x) {
  static const char *const classes[][2] = {{"alnum", "09AZaz"}, {"alpha", "AZaz"}, {"blank", "\t\t  "},
      {"cntrl", "\1\37\177\177"}, {"digit", "09"}, {"graph", "!~"}, {"lower", "az"}, {"print", " ~"},
      {"punct", "!/:@[`{~"}, {"space", "\t\n\r\r  "}, {"upper", "AZ"}, {"xdigit", "09AFaf"}};
  const char *name = *p, *range;
  const size_t n = strcspn(name, "]");
  size_t i;
  int found = 0;
  if (!name[n]) return -1;
  if (!n || name[n - 1] != ':') return 2;
  for (i = 0; i < sizeof classes / sizeof *classes; i++)
    if (strlen(classes[i][0]) == n - 1 && !memcmp(classes[i][0], name, n - 1)) break;
  if (i == sizeof classes / sizeof *classes) return -1;
  for (range = classes[i][1]; *range; range += 2) found |= (unsigned char)range[0] <= x && x <= (unsigned char)range[1];
  *p = name + n;
  return found;
}

/* Returns whether a byte is in the [class] that begins behind the '[' at p; *end is what follows the class. -1: it does
 * not end, and nothing is like it. */
static int gpuir__class_has(const char *p, char byte, const char **end) {
  const int negated = *p == '!' || *p == '^';
  const unsigned char x = (unsigned char)byte;
  unsigned char c, before = 0; /* what a range may begin with */
  int found = 0, named;
  p += negated;
  do {
    c = (unsigned char)*p;
    if (!c || (c == '\\' && !p[1])) return -1;
    if (c == '-' && before && p[1] && p[1] != ']') {
      c = (unsigned char)*++p;
      if (c == '\\' && !(c = (unsigned char)*++p)) return -1;
      found |= before <= x && x <= c;
      c = 0;
    } else if (c == '[' && p[1] == ':') {
      const char *name = p + 2;
      named = gpuir__class_named(&name, x);
      if (named < 0) return -1;
      found |= named == 2 ? c == x : named;
      if (named != 2) p = name, c = 0;
    } else {
      if (c == '\\') c = (unsigned char)*++p;
      found |= c == x;
    }
    before = c;
  } while (*++p != ']');
  *end = p + 1;
  return found != negated;
}

/* Returns whether the first element of the pattern at p, which is not '*', has a byte; *next is the next element. */
static int gpuir__rule_has(const char *p, char c, const char **next) {
  *next = p + 1;
  if (*p == '?') return 1;
  if (*p == '\\') return *next = p + 2, p[1] == c;
  if (*p == '[') return gpuir__class_has(p + 1, c, next) > 0;
  return *p == c;
}

/* Returns whether a piece of a pattern has all of s[0..n), a name. It takes time as their lengths' product at most:
 * only the last '*' is tried again, since what one before it could do better, that one can do as well. */
static int gpuir__piece_has(const char *p, const char *s, size_t n) {
  const char *const end = s + n, *a = p + strlen(p), *b = end, *star = NULL, *at = NULL, *next;
  while (a > p && !strchr("*?[]\\", a[-1])) /* what it ends with decides most of them */
    if (b == s || *--a != *--b) return 0;
  for (;;) {
    if (*p == '*') {
      while (*p == '*') p++;
      if (!*p) return 1;
      star = p;
      at = s;
    } else if (!*p && s == end) {
      return 1;
    } else if (*p && s < end && gpuir__rule_has(p, *s, &next)) {
      p = next;
      s++;
    } else if (star && at < end) {
      p = star;
      s = ++at;
    } else {
      return 0;
    }
  }
}

/* Says whether a piece stands for any number of folders. */
static int gpuir__piece_is_deep(const char *piece) {
  return piece[0] == '*' && piece[1] == '*' && !piece[strspn(piece, "*")];
}

/* Parts a pattern at each '/', in its place: x gets its pieces. 0: nothing is like it. */
static int gpuir__rule_split(gpuir__rule *x, char *p) {
  char *to = p;
  int more = 1, deep = 0, was_deep;
  x->pieces = p;
  while (more) {
    char *from = p;
    const char *end;
    size_t n;
    while (*p && *p != '/' && !(*p == '\\' && p[1] == '/')) {
      if (*p == '[' && gpuir__class_has(p + 1, 'x', &end) >= 0) p += end - p;
      else if (*p == '[' || (*p == '\\' && !p[1])) return 0;
      else p += *p == '\\' ? 2 : 1;
    }
    n = (size_t)(p - from);
    more = *p != 0;
    p += *p == '\\' ? 2 : more;
    memmove(to, from, n);
    to[n] = 0;
    was_deep = deep;
    deep = gpuir__piece_is_deep(to);
    if (deep && was_deep) continue;
    if (x->n == GPUIR__RULE_PIECES) return 0;
    x->last = to;
    x->n++;
    to += n + 1;
  }
  return 1;
}

/* Says whether a bit is set; sets one. */
static int gpuir__bit_is(const uint64_t *bits, unsigned i) { return (int)(bits[i / 64] >> i % 64 & 1); }
static void gpuir__bit_set(uint64_t *bits, unsigned i) { bits[i / 64] |= (uint64_t)1 << i % 64; }

/* Takes one name of a path: now has the pieces that may come, next gets those that may come behind it; i = n: the rule
 * has the whole path. Returns whether there are any. */
static int gpuir__rule_step(const gpuir__rule *x, const char *s, size_t len, const uint64_t *now, uint64_t *next) {
  const char *p = x->pieces;
  unsigned i;
  int any = 0;
  for (i = 0; i < x->n; i++, p += strlen(p) + 1) {
    int deep, behind_deep;
    if (!gpuir__bit_is(now, i)) continue;
    deep = gpuir__piece_is_deep(p);
    if (!deep && !gpuir__piece_has(p, s, len)) continue;
    any = 1;
    if (deep) gpuir__bit_set(next, i);
    if (!deep || i + 1 == x->n) gpuir__bit_set(next, i + 1);
    behind_deep = i + 1 + !deep < x->n && (deep || gpuir__piece_is_deep(p + strlen(p) + 1));
    if (behind_deep) gpuir__bit_set(next, i + 1 + !deep); /* it may stand for no folder */
  }
  return any;
}

/* Returns whether a rule has a path in the folder of its .gitignore, whose last name is `name`. All ways in which its
 * pieces may be laid against the folders are followed together, so that none is tried twice. */
static int gpuir__rules_match(const gpuir__rule *x, const char *path, const char *name) {
  uint64_t bits[2][GPUIR__RULE_PIECES / 64 + 1], *now = bits[0], *next = bits[1], *other;
  const size_t size = (x->n / 64 + 1) * sizeof *now;
  int more = 1;
  if (!(x->anchored && gpuir__piece_is_deep(x->last)) && !gpuir__piece_has(x->last, name, strlen(name))) return 0;
  if (!x->anchored) return 1;
  memset(now, 0, size);
  gpuir__bit_set(now, 0);
  if (x->n > 1 && gpuir__piece_is_deep(x->pieces)) gpuir__bit_set(now, 1);
  while (more) {
    const size_t n = strcspn(path, "/");
    memset(next, 0, size);
    if (!gpuir__rule_step(x, path, n, now, next)) return 0;
    more = path[n] != 0;
    path += n + 1;
    other = now, now = next, next = other;
  }
  return gpuir__bit_is(now, x->n);
}

/* ---- the walk */

/* A folder that is being read, with the rules of its .gitignore. */
typedef struct gpuir__level {
  struct gpuir__level *up; /* the folder that it is in; NULL: it was named */
  const char *name; /* in there */
  size_t begin; /* of the walk's path: where names in this folder begin */
  gpuir__identity is;
  int fd; /* -1: closed, while folders far below are read */
  gpuir__buf text, rules; /* the .gitignore's bytes; gpuir__rule of its lines */
  size_t ignoring; /* bytes of it and of those above */
} gpuir__level;

/* An entry of a folder that is to be read. */
typedef struct gpuir__entry_of {
  const char *name;
  size_t at; /* of the name among those of the folder, as long as they are being collected */
  gpuir__identity is;
  int folder;
} gpuir__entry_of;

typedef struct gpuir__visit {
  gpuir_walk_desc desc;
  gpuir_allocator a;
  gpuir__buf path; /* of what is looked at, with a NUL behind it */
  gpuir_builder *builder; /* that gets documents; NULL: none */
  gpuir__buf absolute; /* the path that was named, from the root on and with a NUL, if there is a builder */
  size_t named; /* bytes of the path that was named */
  gpuir__buf text; /* of a file */
  gpuir_error *err;
} gpuir__visit;

static const char *gpuir__visit_path(const gpuir__visit *w) { return (const char *)w->path.data; }

/* Makes the path that of an entry of the folder whose names begin at `begin`. 0; NOMEM. */
static int gpuir__visit_at(gpuir__visit *w, size_t begin, const char *name) {
  w->path.len = begin;
  return gpuir__buf_put(&w->a, &w->path, name, strlen(name) + 1) ? gpuir__fail_nomem(w->err) : GPUIR_OK;
}

/* Tells that what the path names is left out. */
static void gpuir__visit_skip(const gpuir__visit *w, int why, int error) {
  if (w->desc.skipped) w->desc.skipped(w->desc.user, gpuir__visit_path(w), why, error);
}

GPUIR_API int gpuir_walk_open(int folder, const char *name, int follow, int *fd, struct stat *st) {
  const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW);
  int error = 0;
  do *fd = openat(folder, name, flags);
  while (*fd < 0 && errno == EINTR);
  if (*fd < 0 || fstat(*fd, st)) error = errno;
  else if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode)) error = EINVAL;
  if (error && *fd >= 0) (void)close(*fd);
  if (error) *fd = -1;
  return error;
}

/* Opens a name that was listed in an open folder. 0, or what gpuir_walk_open returns; ESTALE: another file is there. */
static int gpuir__visit_open(int folder, const char *name, int follow, gpuir__identity listed, int *fd,
    struct stat *st) {
  const int error = gpuir_walk_open(folder, name, follow, fd, st);
  if (error || gpuir__identity_same(gpuir__identity_of(st), listed)) return error;
  (void)close(*fd);
  *fd = -1;
  return ESTALE;
}

/* Returns whether an open file begins as all files of gpuir do: indexes, manifests, tables and locks. */
static int gpuir__visit_is_own(int fd) {
  uint8_t magic[sizeof gpuir__magic];
  return pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic && !memcmp(magic, gpuir__magic, 5) &&
      magic[7] == gpuir__magic[7];
}

/* Returns whether an open folder is that of a live index. */
static int gpuir__visit_is_live(int folder) {
  struct stat st;
  int fd, found;
  if (gpuir_walk_open(folder, "manifest", 0, &fd, &st)) return 0;
  found = S_ISREG(st.st_mode) && gpuir__visit_is_own(fd);
  (void)close(fd);
  return found;
}

/* Opens a folder anew that was closed for a while: it must be the one that it was. The named one stays open: from there
 * the way down is found again, whatever has been renamed above it. One far above is closed in turn. 0, or errno. */
static int gpuir__visit_hold(const gpuir__visit *w, gpuir__level *l) {
  struct stat st;
  gpuir__level *far = l;
  int error = 0;
  unsigned n;
  if (l->fd < 0) error = gpuir__visit_hold(w, l->up);
  if (l->fd < 0 && !error) error = gpuir__visit_open(l->up->fd, l->name, w->desc.follow, l->is, &l->fd, &st);
  for (n = 0; far && n < GPUIR__VISIT_HELD; n++) far = far->up;
  if (!error && far && far->up && far->fd >= 0) {
    (void)close(far->fd);
    far->fd = -1;
  }
  return error;
}

/* ---- .gitignore */

/* Removes the blanks at the end of a line that no '\' keeps. */
static void gpuir__rule_trim(char *line) {
  char *blanks = NULL;
  for (; *line; line++) {
    if (*line != ' ') blanks = NULL;
    else if (!blanks) blanks = line;
    if (*line == '\\' && !*++line) return;
  }
  if (blanks) *blanks = 0;
}

/* Makes a rule of a line, which has room for a NUL behind it and becomes the rule's text. 0: it is none, or one that
 * no path is like. */
static int gpuir__rule_make(gpuir__rule *x, char *line, size_t n) {
  if (n && line[n - 1] == '\r') n--;
  line[n] = 0;
  memset(x, 0, sizeof *x);
  if (!*line || *line == '#') return 0;
  gpuir__rule_trim(line);
  if (*line == '!') x->keep = 1, line++;
  n = strlen(line);
  if (n && line[n - 1] == '/') x->folder = 1, line[n - 1] = 0;
  x->anchored = strchr(line, '/') != NULL;
  return gpuir__rule_split(x, *line == '/' ? line + 1 : line);
}

/* Takes a line as a rule. 0; NOMEM. */
static int gpuir__rules_add(const gpuir__visit *w, gpuir__level *l, char *line, size_t n) {
  gpuir__rule x;
  return gpuir__rule_make(&x, line, n) ? gpuir__buf_put(&w->a, &l->rules, &x, sizeof x) : GPUIR_OK;
}

/* Reads the .gitignore of an open folder, if there is one. 0; NOMEM. */
static int gpuir__rules_read(const gpuir__visit *w, gpuir__level *l) {
  struct stat st;
  char *line, *stop, *end;
  int fd, status = GPUIR_OK;
  l->ignoring = l->up ? l->up->ignoring : 0;
  if (w->desc.no_ignore || gpuir_walk_open(l->fd, ".gitignore", 0, &fd, &st)) return GPUIR_OK;
  if (S_ISREG(st.st_mode) && (uint64_t)st.st_size <= GPUIR__IGNORE_MOST - l->ignoring) {
    const size_t n = (size_t)st.st_size;
    l->ignoring += n;
    line = (char *)gpuir__buf_room(&w->a, &l->text, n + 1);
    if (!line) status = GPUIR_E_NOMEM;
    else if (gpuir__pread_all(fd, line, n, 0)) line = NULL; /* it became shorter: none of it is known */
    stop = line ? line + n : NULL;
    if (line && n > 2 && !memcmp(line, "\xef\xbb\xbf", 3)) line += 3; /* a byte order mark */
    for (; line && line < stop && !status; line = end + 1) {
      end = (char *)memchr(line, '\n', (size_t)(stop - line));
      if (!end) end = stop;
      status = gpuir__rules_add(w, l, line, (size_t)(end - line));
    }
  }
  (void)close(fd);
  return status ? gpuir__fail_nomem(w->err) : GPUIR_OK;
}

/* Returns whether what the path names, an entry of this folder, is left out. The last rule that matches decides, and
 * those of a folder go before those above it. */
static int gpuir__rules_ignore(const gpuir__visit *w, const gpuir__level *l, int is_folder) {
  const char *path = gpuir__visit_path(w), *name = path + l->begin;
  for (; l; l = l->up) {
    const gpuir__rule *rules = (const gpuir__rule *)(const void *)l->rules.data;
    size_t i;
    for (i = l->rules.len / sizeof *rules; i-- > 0;) {
      const gpuir__rule *x = &rules[i];
      if (x->folder && !is_folder) continue;
      if (gpuir__rules_match(x, path + l->begin, name)) return !x->keep;
    }
  }
  return 0;
}

/* ---- folders */

/* In the order of paths: a folder's name ends with '/', which is how its contents sort among the others. */
static int gpuir__entry_order(const void *a, const void *b) {
  const gpuir__entry_of *x = (const gpuir__entry_of *)a, *y = (const gpuir__entry_of *)b;
  const unsigned char *p = (const unsigned char *)x->name, *q = (const unsigned char *)y->name;
  while (*p && *p == *q) p++, q++;
  return (*p ? *p : x->folder ? '/' : 0) - (*q ? *q : y->folder ? '/' : 0);
}

/* Looks at an entry of an open folder, which the path names. 1: it is to be read; 0: it is left out, as was told. */
static int gpuir__visit_look(const gpuir__visit *w, const gpuir__level *l, const char *name, gpuir__entry_of *e) {
  struct stat st;
  int why = 0, error = 0;
  if (fstatat(l->fd, name, &st, AT_SYMLINK_NOFOLLOW)) error = errno;
  else if (S_ISLNK(st.st_mode) && !w->desc.follow) why = GPUIR_SKIPPED_LINK;
  else if (S_ISLNK(st.st_mode) && fstatat(l->fd, name, &st, 0)) error = errno;
  if (error) why = GPUIR_SKIPPED_UNREADABLE;
  if (!why && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) why = GPUIR_SKIPPED_SPECIAL;
  if (!why && gpuir__rules_ignore(w, l, S_ISDIR(st.st_mode))) why = GPUIR_SKIPPED_IGNORED;
  if (why) return gpuir__visit_skip(w, why, error), 0;
  e->folder = S_ISDIR(st.st_mode);
  e->is = gpuir__identity_of(&st);
  return e->folder || !w->desc.folders_only;
}

/* Collects the entries of a folder, and their names, which they have the places of. 0; NOMEM; 1: errno. */
static int gpuir__visit_collect(gpuir__visit *w, const gpuir__level *l, DIR *dir, gpuir__buf *names,
    gpuir__buf *entries) {
  const struct dirent *d;
  gpuir__entry_of e;
  while (errno = 0, (d = readdir(dir)) != NULL) {
    const char *name = d->d_name;
    if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]))) continue;
    if (gpuir__visit_at(w, l->begin, name)) return GPUIR_E_NOMEM;
    if (name[0] == '.' && !w->desc.hidden) {
      gpuir__visit_skip(w, GPUIR_SKIPPED_HIDDEN, 0);
      continue;
    }
    memset(&e, 0, sizeof e);
    if (!gpuir__visit_look(w, l, name, &e)) continue;
    e.at = names->len;
    if (gpuir__buf_put(&w->a, names, name, strlen(name) + 1) || gpuir__buf_put(&w->a, entries, &e, sizeof e))
      return gpuir__fail_nomem(w->err);
  }
  return errno ? 1 : GPUIR_OK;
}

/* Lists the entries of an open folder that are to be read, in order. 0; NOMEM; 1: errno, with those before it. */
static int gpuir__visit_list(gpuir__visit *w, const gpuir__level *l, gpuir__buf *names, gpuir__buf *entries) {
  const int fd = fcntl(l->fd, F_DUPFD_CLOEXEC, 0);
  DIR *dir = fd < 0 ? NULL : fdopendir(fd);
  gpuir__entry_of *e = NULL;
  size_t i, n;
  int error = errno, status = 1;
  if (dir) {
    status = gpuir__visit_collect(w, l, dir, names, entries);
    error = errno;
    (void)closedir(dir);
  } else if (fd >= 0) {
    (void)close(fd);
  }
  e = (gpuir__entry_of *)(void *)entries->data;
  n = entries->len / sizeof *e;
  for (i = 0; i < n; i++) e[i].name = (const char *)names->data + e[i].at;
  if (n) qsort(e, n, sizeof *e, gpuir__entry_order);
  errno = error;
  return status;
}

/* Opens an entry, which the path names, as it was listed; if another file is there by now it is looked at anew. 1; 0:
 * it is left out, as was told. */
static int gpuir__visit_open_entry(const gpuir__visit *w, gpuir__level *l, gpuir__entry_of *e, int *fd,
    struct stat *st) {
  int error = strlen(gpuir__visit_path(w)) < PATH_MAX ? gpuir__visit_hold(w, l) : ENAMETOOLONG;
  unsigned tries = error ? GPUIR__TRIES : 0;
  if (!error) error = gpuir__visit_open(l->fd, e->name, w->desc.follow, e->is, fd, st);
  for (; tries < GPUIR__TRIES && (error == ESTALE || error == EINVAL || error == ENXIO || error == ELOOP); tries++) {
    if (!gpuir__visit_look(w, l, e->name, e)) return 0;
    error = gpuir__visit_open(l->fd, e->name, w->desc.follow, e->is, fd, st);
  }
  if (!error) return 1;
  if (error == EINVAL || error == ENXIO || error == ELOOP) error = ESTALE;
  gpuir__visit_skip(w, GPUIR_SKIPPED_UNREADABLE, error);
  return 0;
}

/* ---- documents */

/* Reads a whole file into w->text. 0; NOMEM; LIMIT; 1: errno. */
static int gpuir__visit_read(gpuir__visit *w, int fd, uint64_t size) {
  w->text.len = 0;
  for (;;) {
    const size_t more = size > w->text.len ? (size_t)size - w->text.len + 1 : 65536;
    uint8_t *to;
    ssize_t n;
    if (size > GPUIR__FILE_MOST || w->text.len > GPUIR__FILE_MOST)
      return gpuir__fail(w->err, GPUIR_E_LIMIT, 0, "%s: over 1 GiB", gpuir__tail(gpuir__visit_path(w)));
    to = gpuir__buf_room(&w->a, &w->text, more);
    if (!to) return gpuir__fail_nomem(w->err);
    n = read(fd, to, more);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return 1;
    if (!n) return GPUIR_OK;
    w->text.len += (size_t)n;
  }
}

/* Adds the text in w->text as the document of the file that the path names. */
static int gpuir__visit_put(gpuir__visit *w) {
  const char *path = gpuir__visit_path(w), *below = path + w->named;
  const char *absolute = (const char *)w->absolute.data;
  size_t head = strlen(absolute), size;
  gpuir_doc_desc doc;
  char *source;
  int status;
  below += *below == '/';
  if (*below && head == 1) head = 0; /* of the root folder */
  source = gpuir__concat(&w->a, absolute, head + (*below != 0), below, strlen(below), &size);
  if (!source) return gpuir__fail_nomem(w->err);
  if (*below) source[head] = '/'; /* where the NUL of the folder's path was */
  memset(&doc, 0, sizeof doc);
  doc.name = path;
  doc.name_len = strlen(path);
  doc.source = source;
  doc.source_len = strlen(source);
  doc.source_bytes = w->text.len;
  status = gpuir_builder_add_text(w->builder, &doc, (const char *)w->text.data, w->text.len, w->err);
  gpuir__free(&w->a, source, size);
  return status;
}

/* Makes a document of an open file, which the path names, unless it is no text. */
static int gpuir__visit_add(gpuir__visit *w, int fd, const struct stat *st) {
  const int is_named = strlen(gpuir__visit_path(w)) == w->named;
  int status = gpuir__visit_read(w, fd, S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0);
  const int error = errno;
  if (status == 1 && is_named) return gpuir__fail_errno(w->err, gpuir__visit_path(w), "cannot read");
  if (status == 1) return gpuir__visit_skip(w, GPUIR_SKIPPED_UNREADABLE, error), GPUIR_OK;
  if (status) return status;
  if (!w->text.len || !memchr(w->text.data, 0, w->text.len < GPUIR__BINARY_BYTES ? w->text.len : GPUIR__BINARY_BYTES))
    return gpuir__visit_put(w);
  gpuir__visit_skip(w, GPUIR_SKIPPED_BINARY, 0);
  return is_named ? gpuir__refuse(w->err, "%s: a binary file", gpuir__tail(gpuir__visit_path(w))) : GPUIR_OK;
}

/* ---- the walk itself */

/* Asks whether what is open, which the path names, is to be taken. GPUIR_WALK_; or what ends the walk. */
static int gpuir__visit_ask(const gpuir__visit *w, int fd, const struct stat *st, int is_named, int is_mount) {
  gpuir_walk_entry e;
  int answer;
  memset(&e, 0, sizeof e);
  e.path = gpuir__visit_path(w);
  e.fd = fd;
  e.is_folder = S_ISDIR(st->st_mode);
  e.is_named = is_named;
  e.is_mount = is_mount;
  e.st = st;
  answer = w->desc.open ? w->desc.open(w->desc.user, &e) : GPUIR_WALK_TAKE;
  return answer < 0 ? gpuir__fail(w->err, answer, 0, "%s: the walk was ended", gpuir__tail(e.path)) : answer;
}

/* Returns whether a folder is one that it lies in: a link leads back. */
static int gpuir__visit_is_circle(const gpuir__level *l, gpuir__identity is) {
  for (; l; l = l->up)
    if (gpuir__identity_same(l->is, is)) return 1;
  return 0;
}

/* The names of a folder, which the path names, follow it. */
static void gpuir__visit_enter(gpuir__visit *w, gpuir__level *l) {
  char *path = (char *)w->path.data;
  const size_t n = strlen(path);
  l->begin = n;
  if (!n || path[n - 1] == '/') return;
  path[n] = '/'; /* in place of the NUL; the next name brings another */
  l->begin++;
}

/* Takes an open entry of a folder, and makes it *below if it is a folder. 1: that is to be walked; 0; what ends the
 * walk. */
static int gpuir__visit_take(gpuir__visit *w, gpuir__level *l, const gpuir__entry_of *e, const struct stat *st,
    gpuir__level *below) {
  const int is_folder = S_ISDIR(st->st_mode);
  int answer;
  if (is_folder ? gpuir__visit_is_live(below->fd) : gpuir__visit_is_own(below->fd))
    return gpuir__visit_skip(w, GPUIR_SKIPPED_INDEX, 0), GPUIR_OK;
  if (is_folder && gpuir__visit_is_circle(l, e->is)) return gpuir__visit_skip(w, GPUIR_SKIPPED_CIRCLE, 0), GPUIR_OK;
  answer = gpuir__visit_ask(w, below->fd, st, 0, is_folder && (uint64_t)st->st_dev != l->is.dev);
  if (answer) return answer == GPUIR_WALK_LEAVE ? GPUIR_OK : answer;
  if (!is_folder) return w->builder ? gpuir__visit_add(w, below->fd, st) : GPUIR_OK;
  below->up = l;
  below->name = e->name;
  below->is = e->is;
  gpuir__visit_enter(w, below);
  return 1;
}

/* Tells that a folder cannot be listed. */
static int gpuir__visit_unlisted(gpuir__visit *w, const gpuir__level *l, int error) {
  w->path.data[l->begin - (l->begin > 1)] = 0; /* the folder's own path */
  if (!l->begin && gpuir__visit_at(w, 0, ".")) return GPUIR_E_NOMEM;
  gpuir__visit_skip(w, GPUIR_SKIPPED_UNREADABLE, error);
  errno = error;
  return l->up ? GPUIR_OK : gpuir__fail_errno(w->err, gpuir__visit_path(w), "cannot list");
}

/* Walks over what is in an open folder, and all below: first reads its ignore rules, then lists it by name, and takes
 * one entry after another. A folder that cannot be listed is told and passed over, unless it is the first. */
static int gpuir__visit_folder(gpuir__visit *w, gpuir__level *l) {
  gpuir__buf names = {NULL, 0, 0}, entries = {NULL, 0, 0};
  gpuir__entry_of *e;
  gpuir__level below;
  struct stat st;
  size_t i, n;
  int status = gpuir__rules_read(w, l);
  if (!status) status = gpuir__visit_list(w, l, &names, &entries);
  if (status == 1) status = gpuir__visit_unlisted(w, l, errno);
  e = (gpuir__entry_of *)(void *)entries.data;
  n = entries.len / sizeof *e;
  for (i = 0; i < n && !status; i++) {
    status = gpuir__visit_at(w, l->begin, e[i].name);
    memset(&below, 0, sizeof below);
    if (status || !gpuir__visit_open_entry(w, l, &e[i], &below.fd, &st)) continue;
    status = gpuir__visit_take(w, l, &e[i], &st, &below);
    if (status == 1) status = gpuir__visit_folder(w, &below);
    if (below.fd >= 0) (void)close(below.fd);
  }
  gpuir__buf_free(&w->a, &l->text);
  gpuir__buf_free(&w->a, &l->rules);
  gpuir__buf_free(&w->a, &names);
  gpuir__buf_free(&w->a, &entries);
  return status;
}

/* Walks over what was named and is open. */
static int gpuir__visit_named(gpuir__visit *w, gpuir__level *top, const struct stat *st) {
  int status;
  if (S_ISDIR(st->st_mode) && gpuir__visit_is_live(top->fd))
    return gpuir__refuse(w->err, "%s: a live index, of which no documents are made", gpuir__tail(gpuir__visit_path(w)));
  status = gpuir__visit_ask(w, top->fd, st, 1, 0);
  if (status) return status == GPUIR_WALK_LEAVE ? GPUIR_OK : status;
  if (!S_ISDIR(st->st_mode)) return w->builder ? gpuir__visit_add(w, top->fd, st) : GPUIR_OK;
  top->is = gpuir__identity_of(st);
  if (!strcmp(gpuir__visit_path(w), ".")) w->path.data[0] = 0, w->named = 0;
  gpuir__visit_enter(w, top);
  return gpuir__visit_folder(w, top);
}

/* Opens the path as it was named: links are followed, and a FIFO is waited for. */
static int gpuir__visit_begin(gpuir__visit *w, const char *path) {
  gpuir__level top;
  struct stat st;
  int status;
  w->named = strlen(path);
  while (w->named > 1 && path[w->named - 1] == '/') w->named--;
  if (gpuir__buf_put(&w->a, &w->path, path, w->named) || gpuir__buf_put(&w->a, &w->path, "", 1))
    return gpuir__fail_nomem(w->err);
  memset(&top, 0, sizeof top);
  top.fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
  if (top.fd >= 0 && !fstat(top.fd, &st)) {
    status = gpuir__visit_named(w, &top, &st);
  } else {
    const int error = errno;
    gpuir__visit_skip(w, GPUIR_SKIPPED_UNREADABLE, error);
    errno = error;
    status = gpuir__fail_errno(w->err, path, "cannot open");
    if (error == ENOENT || error == ENOTDIR)
      status = gpuir__fail(w->err, GPUIR_E_NOT_FOUND, 0, "%s: is not there", gpuir__tail(path));
  }
  if (top.fd >= 0) (void)close(top.fd);
  return status;
}

/* Puts the current folder into w->absolute. */
static int gpuir__visit_here(gpuir__visit *w) {
  size_t room = 1024;
  for (;; room *= 2) {
    char *to = (char *)gpuir__buf_room(&w->a, &w->absolute, room);
    if (!to) return gpuir__fail_nomem(w->err);
    if (getcwd(to, room)) break;
    if (errno != ERANGE) return gpuir__fail_errno(w->err, "the current folder", "has no path");
  }
  w->absolute.len = strlen((const char *)w->absolute.data);
  if (w->absolute.len == 1) w->absolute.len = 0; /* the root folder: a '/' follows */
  return GPUIR_OK;
}

/* Makes an absolute path of the one that was named, as far as it can be told from the text: ".." may follow a link. */
static int gpuir__visit_locate(gpuir__visit *w, const char *path) {
  int status = *path == '/' ? GPUIR_OK : gpuir__visit_here(w);
  while (!status && *path) {
    const size_t n = strcspn(path, "/");
    if (n && !(n == 1 && *path == '.')) {
      status = gpuir__buf_put(&w->a, &w->absolute, "/", 1);
      if (!status) status = gpuir__buf_put(&w->a, &w->absolute, path, n);
      if (status) (void)gpuir__fail_nomem(w->err);
    }
    path += n + (path[n] == '/');
  }
  if (!status && !w->absolute.len) status = gpuir__buf_put(&w->a, &w->absolute, "/", 1);
  if (!status) status = gpuir__buf_put(&w->a, &w->absolute, "", 1);
  return status;
}

/* Makes a walk, whose documents a builder gets if there is one. */
static int gpuir__visit_all(gpuir_builder *builder, const char *path, const gpuir_walk_desc *desc, gpuir_error *err) {
  gpuir__visit w;
  int status;
  memset(&w, 0, sizeof w);
  if (desc) w.desc = *desc;
  w.a = gpuir__allocator(NULL);
  w.builder = builder;
  w.err = err;
  status = builder ? gpuir__visit_locate(&w, path) : GPUIR_OK;
  if (!status) status = gpuir__visit_begin(&w, path);
  gpuir__buf_free(&w.a, &w.absolute);
  gpuir__buf_free(&w.a, &w.path);
  gpuir__buf_free(&w.a, &w.text);
  return status;
}

GPUIR_API int gpuir_walk(const char *path, const gpuir_walk_desc *desc, gpuir_error *err) {
  if (!path || !*path) return gpuir__refuse(err, "a path is needed");
  return gpuir__visit_all(NULL, path, desc, err);
}

GPUIR_API int gpuir_builder_add_folder(gpuir_builder *builder, const char *path, const gpuir_walk_desc *desc,
    gpuir_error *err) {
  if (!builder || !path || !*path) return gpuir__refuse(err, "a builder and a path are needed");
  return gpuir__visit_all(builder, path, desc, err);
}

/* Ends a walk that was to have come to a file. */
static int gpuir__visit_wants_file(void *user, const gpuir_walk_entry *entry) {
  (void)user;
  return entry->is_folder ? (int)GPUIR_E_ARGUMENT : (int)GPUIR_WALK_TAKE;
}

GPUIR_API int gpuir_builder_add_file(gpuir_builder *builder, const char *path, gpuir_error *err) {
  gpuir_walk_desc desc;
  if (!builder || !path || !*path) return gpuir__refuse(err, "a builder and a path are needed");
  memset(&desc, 0, sizeof desc);
  desc.open = gpuir__visit_wants_file;
  return gpuir__visit_all(builder, path, &desc, err);
}
#endif /* GPUIR_NO_FOLDER */
