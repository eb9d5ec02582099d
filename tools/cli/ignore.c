/* ignore.c - the patterns of .gitignore files: which files of a folder are left out (gitignore(5)). */
#include "cli.h"

#include "../common/open.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define IGNORE_MOST ((size_t)1 << 20) /* bytes of a .gitignore; longer ones are not read */

/* Returns whether a character of [class], which begins behind the '[', matches; *end is what follows the class. */
static int class_matches(const char *p, char c, const char **end) {
  const char *first = p;
  int found = 0;
  const int negated = *p == '!' || *p == '^';
  if (negated) first = ++p;
  for (; *p && (*p != ']' || p == first); p++) {
    const char low = *p == '\\' && p[1] ? *++p : *p;
    if (p[1] == '-' && p[2] && p[2] != ']') {
      p += 2;
      found |= low <= c && c <= *p;
    } else {
      found |= low == c;
    }
  }
  if (!*p) return -1; /* the class does not end: the '[' is itself */
  *end = p + 1;
  return found != negated;
}

/* Whether a path matches a pattern: '*' and '?' stand for no '/', a "**" between slashes for any folders. Goes back to
 * the last '*' and the last "**" only, which is enough, so that no pattern takes long. */
static int matches(const char *pattern, const char *s) {
  const char *p = pattern;
  const char *star = NULL, *star_at = NULL, *deep = NULL, *deep_at = NULL;
  for (;;) {
    const char *next = p + 1;
    int same;
    if (p[0] == '*' && p[1] == '*' && (p[2] == '/' || !p[2]) && (p == pattern || p[-1] == '/')) {
      if (!p[2]) return *s != 0;
      deep = p += 3;
      deep_at = s;
      star = NULL;
      continue;
    }
    if (*p == '*') {
      while (*p == '*') p++;
      star = p;
      star_at = s;
      continue;
    }
    if (!*p && !*s) return 1;
    same = *s && *p == *s;
    if (*p == '?') same = *s && *s != '/';
    if (*p == '\\' && p[1]) same = *s && p[1] == *s, next = p + 2;
    if (*p == '[' && *s && *s != '/') {
      const int found = class_matches(p + 1, *s, &next);
      if (found >= 0) same = found;
    }
    if (same) {
      p = next;
      s++;
    } else if (star && *star_at && *star_at != '/') {
      p = star;
      s = ++star_at;
    } else if (deep && (deep_at = strchr(deep_at, '/')) != NULL) {
      p = deep;
      s = ++deep_at;
      star = NULL;
    } else {
      return 0;
    }
  }
}

/* Adds the pattern of a line. */
static void add_pattern(cli_ignore *g, char *line, size_t n) {
  cli_pattern *x;
  while (n && (line[n - 1] == '\r' || (line[n - 1] == ' ' && (n < 2 || line[n - 2] != '\\')))) n--;
  line[n] = 0;
  if (!n || *line == '#') return;
  g->patterns = (cli_pattern *)cli_resize(g->patterns, g->n + 1, sizeof *g->patterns);
  x = &g->patterns[g->n++];
  memset(x, 0, sizeof *x);
  if (*line == '!') x->keep = 1, line++, n--;
  if (n && line[n - 1] == '/') x->folder = 1, line[--n] = 0;
  x->anchored = strchr(line, '/') != NULL;
  x->text = *line == '/' ? line + 1 : line;
}

void cli_ignore_read(cli_ignore *g, const cli_ignore *up, const char *name, int folder) {
  char *line, *end;
  ssize_t n = 0;
  memset(g, 0, sizeof *g);
  g->up = up;
  g->name = name;
  struct stat st;
  int fd;
  if (open_entry(folder, ".gitignore", 0, NULL, &fd, &st)) return;
  if (S_ISREG(st.st_mode) && (size_t)st.st_size <= IGNORE_MOST) {
    size_t len = 0;
    g->text = (char *)cli_resize(NULL, (size_t)st.st_size + 1, 1);
    while (len < (size_t)st.st_size && (n = read(fd, g->text + len, (size_t)st.st_size - len)) > 0) len += (size_t)n;
    for (line = g->text; line < g->text + len; line = end + 1) {
      end = (char *)memchr(line, '\n', (size_t)(g->text + len - line));
      if (!end) end = g->text + len;
      add_pattern(g, line, (size_t)(end - line));
    }
  }
  close(fd);
}

void cli_ignore_free(cli_ignore *g) {
  free(g->text);
  free(g->patterns);
}

int cli_ignored(const cli_ignore *g, const char *name, int is_folder) {
  cli_buf path = {NULL, 0, 0}; /* from the folder of g on */
  int ignored = 0, decided = 0;
  cli_buf_text(&path, name);
  cli_buf_char(&path, 0);
  for (; g && !decided; g = g->up) {
    const char *base = strrchr(path.p, '/');
    for (size_t i = g->n; i-- && !decided;) { /* the last pattern that matches decides */
      const cli_pattern *x = &g->patterns[i];
      if (x->folder && !is_folder) continue;
      if (!matches(x->text, x->anchored || !base ? path.p : base + 1)) continue;
      ignored = !x->keep;
      decided = 1;
    }
    if (g->up) { /* the path from the folder above */
      cli_buf longer = {NULL, 0, 0};
      cli_buf_text(&longer, g->name);
      cli_buf_char(&longer, '/');
      cli_buf_add(&longer, path.p, path.n);
      cli_buf_free(&path);
      path = longer;
    }
  }
  cli_buf_free(&path);
  return ignored;
}
