/* files.c - the table of files that a live index follows.
 *
 * The file `update` beside the manifest says how documents are made of files, and in which state each file was when it
 * was read. It is written behind the commit and names that commit's content: if the index has another, somebody else
 * has changed its documents, or the machine stopped in between, and no row counts. It has
 *
 *     head    table_head
 *     rows    a table_row a file, and the path behind it
 *     hash    XXH3 of all above
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define TABLE_FORMAT 1u
#define TABLE_MAX ((size_t)1 << 36) /* bytes */

typedef struct table_head {
  char magic[8];
  uint32_t format, input;
  uint32_t hidden; /* 1: hidden files are read; 2: .gitignore is not; 4: paths are not searched */
  uint32_t follow;
  uint32_t chunk_lines, whole_lines;
  uint64_t content, rows;
} table_head;

typedef struct table_row {
  uint64_t size, inode, mtime, ctime, hash;
  uint32_t flags, length; /* flags: 1 racy, 2 stale, 256 times the kind of what is no text; length of the path */
} table_row;

static const char magic[8] = {'G', 'P', 'U', 'I', 'R', 'U', 0x0a, 0x1a};

/* ---- rows ---- */

void cli_files_free(cli_files *f) {
  for (size_t i = 0; i < f->n; i++) free(f->list[i].source);
  free(f->list);
  free(f->slots);
  memset(f, 0, sizeof *f);
}

/* Puts row number i into the hash table. */
static void place_row(cli_files *f, size_t i) {
  size_t at = (size_t)XXH3_64bits(f->list[i].source, strlen(f->list[i].source)) & (f->cap * 2 - 1);
  while (f->slots[at]) at = (at + 1) & (f->cap * 2 - 1);
  f->slots[at] = i + 1;
}

cli_file *cli_files_find(const cli_files *f, const char *source) {
  if (!f->cap) return NULL;
  size_t at = (size_t)XXH3_64bits(source, strlen(source)) & (f->cap * 2 - 1);
  for (; f->slots[at]; at = (at + 1) & (f->cap * 2 - 1))
    if (!strcmp(f->list[f->slots[at] - 1].source, source)) return &f->list[f->slots[at] - 1];
  return NULL;
}

cli_file *cli_files_add(cli_files *f, const char *source, size_t len) {
  if (f->n == f->cap) {
    f->cap = f->cap ? 2 * f->cap : 64;
    f->list = (cli_file *)cli_resize(f->list, f->cap, sizeof *f->list);
    f->slots = (size_t *)cli_resize(f->slots, f->cap * 2, sizeof *f->slots);
    memset(f->slots, 0, f->cap * 2 * sizeof *f->slots);
    for (size_t i = 0; i < f->n; i++) place_row(f, i);
  }
  cli_file *row = &f->list[f->n];
  memset(row, 0, sizeof *row);
  row->source = cli_copy(source, len);
  place_row(f, f->n++);
  return row;
}

/* ---- reading ---- */

/* Takes the table in bytes[0..n). NULL, or what is wrong with it. */
static const char *parse(cli_files *f, const char *bytes, size_t n) {
  table_head head;
  table_row row;
  uint64_t hash;
  if (n < sizeof head + 8) return "shorter than a table of files";
  memcpy(&head, bytes, sizeof head);
  n -= 8;
  memcpy(&hash, bytes + n, 8);
  if (memcmp(head.magic, magic, sizeof magic) != 0) return "not a table of files: no magic number";
  if (head.format != TABLE_FORMAT) return "a table of files in a format that this build does not read";
  if (hash != XXH3_64bits(bytes, n)) return "its checksum is wrong";
  if (head.input > DECODE_TABS || (head.input == DECODE_CHUNKS && !head.chunk_lines))
    return "it says nothing that is known of how documents are made of files";
  f->format = (decode_format)head.input;
  f->hidden = (head.hidden & 1) != 0;
  f->no_ignore = (head.hidden & 2) != 0;
  f->no_names = (head.hidden & 4) != 0;
  f->follow = head.follow != 0;
  f->chunk_lines = head.chunk_lines;
  f->whole_lines = head.whole_lines;
  f->content = head.content;
  size_t at = sizeof head;
  for (uint64_t i = 0; i < head.rows; i++) {
    if (n - at < sizeof row) return "it ends within a row";
    memcpy(&row, bytes + at, sizeof row);
    at += sizeof row;
    if (n - at < row.length || !row.length || memchr(bytes + at, 0, row.length)) return "a path in it is none";
    cli_file *file = cli_files_add(f, bytes + at, row.length);
    at += row.length;
    file->size = row.size;
    file->inode = row.inode;
    file->mtime = row.mtime;
    file->ctime = row.ctime;
    file->hash = row.hash;
    file->racy = (row.flags & 1) != 0;
    file->stale = (row.flags & 2) != 0;
    if ((row.flags >> 8 & 255) < READER_KINDS) file->kind = (reader_kind)(row.flags >> 8 & 255);
  }
  return at == n ? NULL : "bytes behind the last row";
}

int cli_files_is_table(int folder, const char *name, int begun) {
  char head[sizeof magic];
  struct stat st;
  const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  int is = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode);
  if (is && !(begun && !st.st_size))
    is = pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head && !memcmp(head, magic, sizeof head);
  if (fd >= 0) (void)close(fd);
  return is;
}

/* Returns the path of a file in the folder of a live index; to be freed. */
static char *inside(const char *folder, const char *name) {
  cli_buf b = {NULL, 0, 0};
  cli_buf_text(&b, folder);
  cli_buf_char(&b, '/');
  cli_buf_text(&b, name);
  cli_buf_char(&b, 0);
  return b.p;
}

/* Takes the table at `path`, if there is one. NULL, or what is wrong with it, and it is empty. */
static const char *read_table(cli_files *f, const char *path) {
  const char *wrong = NULL;
  char *text = NULL;
  text_reader r;
  uint64_t lines;
  size_t n = 0;
  memset(f, 0, sizeof *f);
  f->content = CLI_NO_CONTENT;
  const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? NULL : strerror(errno);
  cli_reader_open(&r, fd, TABLE_MAX);
  if (reader_lines(&r, UINT64_MAX, &text, &n, &lines) < 0) wrong = strerror(errno);
  else wrong = parse(f, text, n);
  if (wrong) cli_files_free(f);
  reader_close(&r);
  (void)close(fd);
  return wrong;
}

int cli_files_read(cli_files *f, const char *folder) {
  char *path = inside(folder, "update");
  const char *wrong = read_table(f, path);
  if (wrong && !cli_signal)
    cli_error("%s: %s; without this file, files are read whole, and all of them again", path, wrong);
  free(path);
  return wrong ? CLI_FAIL : CLI_OK;
}

/* ---- writing ---- */

static int by_source(const void *a, const void *b) {
  return strcmp(((const cli_file *)a)->source, ((const cli_file *)b)->source);
}

/* Appends the table's bytes; rows that have gone are left out. */
static void lay_out(cli_files *f, cli_buf *out) {
  table_head head;
  table_row row;
  memset(&head, 0, sizeof head);
  memcpy(head.magic, magic, sizeof magic);
  head.format = TABLE_FORMAT;
  head.input = (uint32_t)f->format;
  head.hidden = (f->hidden ? 1u : 0u) | (f->no_ignore ? 2u : 0u) | (f->no_names ? 4u : 0u);
  head.follow = f->follow != 0;
  head.chunk_lines = (uint32_t)f->chunk_lines;
  head.whole_lines = (uint32_t)f->whole_lines;
  head.content = f->content;
  for (size_t i = 0; i < f->n; i++) head.rows += !f->list[i].gone;
  cli_buf_add(out, &head, sizeof head);
  if (f->n) qsort(f->list, f->n, sizeof *f->list, by_source);
  for (size_t i = 0; i < f->n; i++) {
    const cli_file *file = &f->list[i];
    if (file->gone) continue;
    memset(&row, 0, sizeof row);
    row.size = file->size;
    row.inode = file->inode;
    row.mtime = file->mtime;
    row.ctime = file->ctime;
    row.hash = file->hash;
    row.flags = (file->racy ? 1u : 0u) | (file->stale ? 2u : 0u) | (uint32_t)file->kind << 8;
    row.length = (uint32_t)strlen(file->source);
    cli_buf_add(out, &row, sizeof row);
    cli_buf_add(out, file->source, row.length);
  }
  const uint64_t hash = XXH3_64bits(out->p, out->n);
  cli_buf_add(out, &hash, sizeof hash);
}

/* Writes all bytes. 0; -1: errno. */
static int write_all(int fd, const char *p, size_t n) {
  while (n) {
    const ssize_t got = write(fd, p, n);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    p += got;
    n -= (size_t)got;
  }
  return 0;
}

/* Gives the new table the mode of the manifest, and its owner where that is allowed, as the library does it for the
 * other files of the folder: the paths in it are not for all to read if the index is not. In a folder where others may
 * write, the manifest of another user but root takes rights away and gives none. 0; -1: errno. */
static int keep_mode(int fd, const char *folder) {
  char *path = inside(folder, "manifest");
  struct stat manifest, around, now;
  int r = stat(folder, &around) || fstat(fd, &now) ? -1 : 0;
  if (!r && stat(path, &manifest)) r = errno == ENOENT ? 1 : -1; /* 1: it is written before the first manifest */
  free(path);
  if (r) return r < 0 ? -1 : 0;
  if (around.st_mode & (S_IWGRP | S_IWOTH) && manifest.st_uid != geteuid() && manifest.st_uid)
    return fchmod(fd, (now.st_mode & manifest.st_mode & 0777) | 0600);
  if (fchown(fd, manifest.st_uid, manifest.st_gid)) errno = 0;
  return fchmod(fd, manifest.st_mode & 0777);
}

/* Puts bytes in place of a file of the folder. `loss`: what it comes to if that fails. CLI_OK, or CLI_FAIL after a
 * message. */
static int replace_file(const char *folder, const char *name, const char *bytes, size_t n, const char *loss) {
  char *path = inside(folder, name), *fresh = inside(folder, "update.tmp");
  int code = CLI_OK;
  (void)unlink(fresh);
  const int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd < 0 || keep_mode(fd, folder) || write_all(fd, bytes, n) || fsync(fd) || rename(fresh, path)) {
    cli_error("%s: %s; %s", path, strerror(errno), loss);
    code = CLI_FAIL;
  }
  if (fd >= 0) (void)close(fd);
  if (code) (void)unlink(fresh);
  free(path);
  free(fresh);
  return code;
}

int cli_files_write(cli_files *f, const char *folder) {
  cli_buf out = {NULL, 0, 0};
  lay_out(f, &out);
  if (f->cap) memset(f->slots, 0, f->cap * 2 * sizeof *f->slots);
  for (size_t i = 0; i < f->n; i++) place_row(f, i); /* they were sorted */
  const int code = replace_file(folder, "update", out.p, out.n, "the next update reads all files again");
  cli_buf_free(&out);
  return code;
}

int cli_files_write_skipped(const char *folder, const char *kept, size_t n) {
  char *path = inside(folder, "skipped");
  int code = CLI_OK;
  if (!n && unlink(path) && errno != ENOENT) {
    cli_error("%s: %s; what it says is out of date", path, strerror(errno));
    code = CLI_FAIL;
  }
  free(path);
  return n ? replace_file(folder, "skipped", kept, n, "'gpuir stats' says what was left out before") : code;
}

int cli_files_carry(const char *folder, uint64_t before, uint64_t now, const char *sources, size_t n) {
  char *path = inside(folder, "update");
  cli_files f;
  int code = CLI_OK;
  const char *wrong = cli_trusted(folder) ? read_table(&f, path) : "";
  free(path);
  if (wrong) return CLI_OK; /* the next update says it */
  if (before != CLI_NO_CONTENT && f.content == before) {
    f.content = now;
    for (size_t at = 0; at < n; at += strlen(sources + at) + 1) {
      cli_file *file = cli_files_find(&f, sources + at);
      if (!file) file = cli_files_add(&f, sources + at, strlen(sources + at));
      file->stale = 1;
    }
    code = cli_files_write(&f, folder);
  }
  cli_files_free(&f);
  return code;
}
