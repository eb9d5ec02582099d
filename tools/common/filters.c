/* filters.c - which programs turn files of other formats into text: the user's own, and those of a list. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strdup */
#endif
#include "filters.h"

#include "reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define ENDING_MOST 200u
#define MARK_BYTES (ENDING_MOST + 32) /* of "ENDING=#" and 16 digits */

static const char no_memory[] = "there is no memory";
static const char has_one[] = "the ending has a filter already";

/* ---- programs and their words ------------------------------------------------------------------ */

static void add_string(byte_buf *b, const char *s) { bytes_add(b, s, strlen(s)); }

/* Sets *path to the folder[0..n), a slash and the name; a relative one begins in the folder where the process is now,
 * which it may leave. */
static void set_path(byte_buf *path, const char *folder, size_t n, const char *name) {
  char here[PATH_MAX];
  const char *first = n ? folder : name;
  path->n = 0;
  if (*first != '/' && getcwd(here, sizeof here)) {
    add_string(path, here);
    bytes_char(path, '/');
  }
  bytes_add(path, folder, n);
  if (n) bytes_char(path, '/');
  add_string(path, name);
  bytes_char(path, 0);
}

/* Finds the program that a name calls. NULL: it is there, and *path has its absolute path; otherwise why not. */
static const char *find_program(const char *name, byte_buf *path) {
  const char *folders = getenv("PATH");
  int found = 0;
  size_t n;
  if (strchr(name, '/')) {
    set_path(path, "", 0, name);
    found = !path->failed && !access(path->p, X_OK);
    folders = NULL;
  }
  for (; !found && folders && *folders; folders += n + (folders[n] == ':')) {
    n = strcspn(folders, ":");
    set_path(path, n ? folders : ".", n ? n : 1, name);
    found = !path->failed && !access(path->p, X_OK);
  }
  return path->failed ? no_memory : found ? NULL : "no such program";
}

/* Copies one word from *at to *to, with a NUL behind it, as a shell takes it: quotes of both kinds hold blanks, and a
 * backslash outside of '...' stands before a byte that has no meaning. Moves both on. 0; -1: a quote is not closed. */
static int copy_word(const char **at, char **to) {
  const char *p = *at;
  char quote = 0;
  for (; *p && (quote || *p != ' '); p++) {
    if (*p == '\\' && quote != '\'' && p[1]) *(*to)++ = *++p;
    else if (quote ? *p == quote : *p == '"' || *p == '\'') quote = quote ? 0 : *p;
    else *(*to)++ = *p;
  }
  *(*to)++ = 0;
  *at = p;
  return quote ? -1 : 0;
}

static void free_words(char **words) {
  if (words) free(words[0]);
  free(words);
}

/* Cuts text into words: a list that ends with NULL, whose first word has the memory of all. NULL, or what is wrong. */
static const char *cut_words(const char *text, char ***words) {
  const size_t most = strlen(text);
  char *to = (char *)malloc(most + 1), **list = (char **)malloc((most / 2 + 2) * sizeof *list); /* blanks part them */
  size_t n = 0;
  int open = 0;
  *words = NULL;
  if (!to || !list) {
    free(to);
    free(list);
    return no_memory;
  }
  list[0] = to;
  for (text += strspn(text, " "); *text && !open; text += strspn(text, " ")) {
    list[n++] = to;
    open = copy_word(&text, &to);
  }
  if (n && !open) {
    list[n] = NULL;
    *words = list;
    return NULL;
  }
  free_words(list);
  return open ? "a quote is not closed" : "'': no such program";
}

/* ---- marks ------------------------------------------------------------------------------------- */

/* Returns whether a mark is one of those that tabs part. */
static int has_mark(const char *marks, const char *mark) {
  for (; *marks; marks += strcspn(marks, "\t"), marks += *marks == '\t')
    if (strcspn(marks, "\t") == strlen(mark) && !strncmp(marks, mark, strlen(mark))) return 1;
  return 0;
}

/* Returns whether the index that keeps `marks` was made with the filter. One of an earlier version has its line. */
static int is_marked(const text_filter *f, const char *marks) {
  return has_mark(marks, f->mark) || has_mark(marks, f->line);
}

/* Writes what an index keeps of the user's own filter: a hash, by which another one is told, and never the program.
 * Whoever makes an index would choose what others run. */
static void own_mark(const char *line, size_t ending, char mark[MARK_BYTES]) {
  const char *rest = line + ending;
  (void)snprintf(mark, MARK_BYTES, "%.*s=#%016llx", (int)ending, line,
      (unsigned long long)XXH3_64bits(rest, strlen(rest)));
}

/* ---- filters of the user ----------------------------------------------------------------------- */

static void free_filter(text_filter *f) {
  free(f->ending);
  free(f->line);
  free(f->mark);
  free(f->program);
  free_words(f->words);
}

/* Adds a filter, and takes its words and the path of its program. NULL, or what is wrong. */
static const char *add_filter(text_filters *f, const char *line, size_t ending, const char *mark, char **words,
    byte_buf *program) {
  text_filter *list = (text_filter *)realloc(f->list, (f->n + 1) * sizeof *list), *filter;
  const size_t before = f->text.n;
  if (list) f->list = list;
  if (before) f->text.p[before - 1] = '\t';
  bytes_add(&f->text, mark, strlen(mark) + 1);
  filter = list ? &list[f->n] : NULL;
  if (filter) {
    filter->words = words;
    filter->program = program->p;
    filter->ending = strndup(line, ending);
    filter->line = strdup(line);
    filter->mark = strdup(mark);
    if (filter->ending && filter->line && filter->mark && !f->text.failed) return f->n++, NULL;
    free_filter(filter);
  } else {
    free_words(words);
    bytes_free(program);
  }
  f->text.n = before; /* the mark of none that is not there */
  if (before) f->text.p[before - 1] = 0;
  return no_memory;
}

/* Adds a filter of the user's own. NULL, or what is wrong. */
static const char *add_own(text_filters *f, const char *line) {
  const char *eq = strchr(line, '=');
  const size_t n = eq ? (size_t)(eq - line) : 0;
  byte_buf program;
  char mark[MARK_BYTES], **words;
  const char *why;
  memset(&program, 0, sizeof program);
  if (!n || n > ENDING_MOST || line[0] == '.' || strcspn(line, "/ \t\n") < n || strpbrk(line, "\t\n\r"))
    return "this is no ENDING=PROGRAM, such as 'pdf=pdftotext - -'";
  if (filters_find(f, line, n, 1)) return has_one;
  why = cut_words(eq + 1, &words);
  if (why) return why;
  why = find_program(words[0], &program);
  if (!why) {
    own_mark(line, n, mark);
    return add_filter(f, line, n, mark, words, &program);
  }
  free_words(words);
  bytes_free(&program);
  return why;
}

const char *filters_add(text_filters *f, const char *value) {
  if (!strcmp(value, "auto")) return f->automatic = 1, NULL;
  return add_own(f, value);
}

/* ---- filters that are known -------------------------------------------------------------------- */

/* The name of each is what an index keeps, so a name always means the same program. Each reads standard input, and
 * writes UTF-8. */
static const struct {
  const char *ending, *name, *program;
} known[] = {{"pdf", "pdftotext", "/usr/bin/pdftotext -q -enc UTF-8 - -"},
    {"docx", "docx2txt", "/usr/bin/docx2txt - -"}, {"odt", "odt2txt", "/usr/bin/odt2txt --encoding=UTF-8 /dev/stdin"},
    {"doc", "catdoc", "/usr/bin/catdoc -d utf-8"}, {"rtf", "catdoc", "/usr/bin/catdoc -d utf-8"}};
#define KNOWN (sizeof known / sizeof *known)

static void known_mark(size_t i, char mark[MARK_BYTES]) {
  (void)snprintf(mark, MARK_BYTES, "%s=@%s", known[i].ending, known[i].name);
}

/* Adds a filter of the list, if its program is installed and the ending has none. NULL, or what is wrong. */
static const char *add_known(text_filters *f, size_t i) {
  char line[200], mark[MARK_BYTES], **words;
  byte_buf program;
  const char *why;
  if (filters_find(f, known[i].ending, strlen(known[i].ending), 1)) return NULL;
  memset(&program, 0, sizeof program);
  why = cut_words(known[i].program, &words);
  if (why) return why;
  why = find_program(words[0], &program);
  if (!why) {
    (void)snprintf(line, sizeof line, "%s=%s", known[i].ending, known[i].program);
    known_mark(i, mark);
    return add_filter(f, line, strlen(known[i].ending), mark, words, &program);
  }
  free_words(words);
  bytes_free(&program);
  return why == no_memory ? why : NULL;
}

/* ---- the user's file --------------------------------------------------------------------------- */

/* Sets *path to the folder of the user's settings and what is behind it; 0: there is none. */
static int set_config(byte_buf *path, const char *behind) {
  const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
  const int has_config = config && *config == '/';
  if (!has_config && !(home && *home == '/')) return 0;
  path->n = 0;
  add_string(path, has_config ? config : home);
  add_string(path, has_config ? "/gpuir" : "/.config/gpuir");
  add_string(path, behind);
  bytes_char(path, 0);
  return !path->failed;
}

/* Returns whether only the caller and root can have written what is open, or stands at the path. */
static int is_trusted(const struct stat *st) {
  return (st->st_uid == geteuid() || !st->st_uid) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* Opens the user's file, which names programs that run: so nobody else may write there. -1: there is none, or after a
 * message, which sets *failed. */
static int open_config(byte_buf *path, int *failed, filters_say say) {
  struct stat st, folder;
  int fd;
  if (!set_config(path, "") || stat(path->p, &folder) || !set_config(path, "/filters")) {
    *failed = path->failed;
    if (path->failed) say("%s", no_memory);
    return -1;
  }
  fd = open(path->p, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return -1;
  *failed = 1;
  if (fd < 0 || fstat(fd, &st)) {
    say("%s: %s", path->p, strerror(errno));
  } else if (!S_ISREG(st.st_mode) || !is_trusted(&st) || !is_trusted(&folder)) {
    say("%s: it names programs that run, so it and its folder must belong to you or root, and nobody else may "
        "write there",
        path->p);
  } else {
    *failed = 0;
    return fd;
  }
  if (fd >= 0) (void)close(fd);
  return -1;
}

/* Returns whether the filter of a line is one of `marks`; NULL: all are. */
static int is_wanted(const char *marks, const char *line) {
  char mark[MARK_BYTES];
  const char *eq = strchr(line, '=');
  if (!marks || !eq || eq - line > (ptrdiff_t)ENDING_MOST) return !marks;
  own_mark(line, (size_t)(eq - line), mark);
  return has_mark(marks, mark);
}

/* Adds the filter of a line of the user's file, if it is wanted. NULL, or what is wrong. */
static const char *add_line(text_filters *f, const char *text, size_t len, const char *marks) {
  const char *why = NULL;
  char *line;
  while (len && strchr(" \t\r\n", text[len - 1])) len--;
  line = strndup(text, len);
  if (!line) return no_memory;
  if (*line && *line != '#' && is_wanted(marks, line)) why = add_own(f, line);
  free(line);
  return why == has_one ? NULL : why;
}

/* Adds the filters of the user's file, a line each; '#' begins a comment. Of `marks` those that they name; NULL: all.
 * 0; -1 after a message. */
static int add_config(text_filters *f, const char *marks, filters_say say) {
  byte_buf path;
  char *text = NULL;
  size_t len;
  uint64_t lines, line = 0;
  text_reader r;
  int failed = 0, got = 0, fd;
  memset(&path, 0, sizeof path);
  fd = open_config(&path, &failed, say);
  reader_open(&r, fd, 1 << 16);
  while (fd >= 0 && !failed && (got = reader_lines(&r, 1, &text, &len, &lines)) > 0) {
    const char *why = add_line(f, text, len, marks);
    line++;
    failed = why != NULL;
    if (failed) say("%s:%llu: %s", path.p, (unsigned long long)line, why);
  }
  if (got < 0) say("%s: %s", path.p, strerror(errno));
  reader_close(&r);
  if (fd >= 0) (void)close(fd);
  bytes_free(&path);
  return failed || got < 0 ? -1 : 0;
}

/* ---- which ones are taken ---------------------------------------------------------------------- */

int filters_install(text_filters *f, int quiet, filters_say say) {
  byte_buf b;
  size_t i;
  const char *why = NULL;
  if (!f->automatic) return 0;
  if (add_config(f, NULL, say)) return -1;
  for (i = 0; i < KNOWN && !why; i++) why = add_known(f, i);
  if (why) return say("%s", why), -1;
  memset(&b, 0, sizeof b);
  for (i = 0; i < f->n; i++) {
    add_string(&b, i ? ", " : "");
    add_string(&b, f->list[i].ending);
    add_string(&b, " by ");
    add_string(&b, f->list[i].words[0]);
  }
  if (!quiet && b.n && !b.failed) say("filters: %.*s", (int)b.n, b.p);
  else if (!quiet) say("filters: no program is installed that is known (pdftotext, docx2txt, odt2txt, catdoc)");
  bytes_free(&b);
  return 0;
}

const text_filter *filters_find(const text_filters *f, const char *name, size_t len, int whole) {
  size_t i;
  for (i = 0; f && i < f->n; i++) {
    const char *ending = f->list[i].ending;
    if (whole ? strlen(ending) == len && !memcmp(ending, name, len) : source_ends(name, len, ending, strlen(ending)))
      return &f->list[i];
  }
  return NULL;
}

const text_filter *filters_find_marked(const text_filters *f, const char *marks, const char *name, size_t len) {
  const text_filter *found = filters_find(f, name, len, 0);
  return found && is_marked(found, marks) ? found : NULL;
}

const char *filters_text(const text_filters *f) { return f->text.n ? f->text.p : ""; }

void filters_options(byte_buf *out, const char *marks, const char *option, const char *between) {
  int automatic = 0;
  for (; *marks; marks += strcspn(marks, "\t"), marks += *marks == '\t') {
    const size_t n = strcspn(marks, "\t"), ending = strcspn(marks, "=\t");
    const int is_known = ending + 1 < n && marks[ending + 1] == '@';
    if (is_known && automatic++) continue;
    if (out->n) add_string(out, between);
    add_string(out, option);
    if (is_known) {
      add_string(out, "auto");
      continue;
    }
    bytes_char(out, '\'');
    bytes_add(out, marks, ending);
    add_string(out, "=PROGRAM'");
  }
}

/* Takes for "auto" those that the index names and that are there. 0; -1 after a message. */
static int take_named(text_filters *f, const char *marks, filters_say say) {
  char mark[MARK_BYTES];
  const char *why = NULL;
  size_t i;
  for (i = 0; i < KNOWN && !why; i++) {
    known_mark(i, mark);
    if (has_mark(marks, mark)) why = add_known(f, i);
  }
  if (why) return say("%s", why), -1;
  return add_config(f, marks, say);
}

/* Returns whether the index names the filters, and no others. */
static int are_those(const text_filters *f, const char *marks) {
  size_t n = 0, i;
  const char *p;
  for (p = marks; *p; p += strcspn(p, "\t"), p += *p == '\t') n++;
  for (i = 0; i < f->n; i++)
    if (!is_marked(&f->list[i], marks)) return 0;
  return n == f->n;
}

int filters_agree(text_filters *f, const char *index, const char *marks, const char *option, filters_say say) {
  byte_buf b;
  if (f->automatic && take_named(f, marks, say)) return -1;
  if (are_those(f, marks)) return 0;
  memset(&b, 0, sizeof b);
  filters_options(&b, marks, option, " ");
  if (b.n && !b.failed)
    say("%s: made with %.*s; give the same, since no program is taken from an index", index, (int)b.n, b.p);
  else say("%s: made without %.*s; all of its files are read without one", index, (int)strlen(option) - 1, option);
  bytes_free(&b);
  return -1;
}

void filters_free(text_filters *f) {
  size_t i;
  for (i = 0; i < f->n; i++) free_filter(&f->list[i]);
  free(f->list);
  bytes_free(&f->text);
  memset(f, 0, sizeof *f);
}
