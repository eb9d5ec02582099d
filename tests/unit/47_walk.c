/* Tests of [47-walk]: order, rules, entries that are swapped between listing and opening, deep trees, documents. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The library's calls, between which a test acts. */
static const char *swapped; /* a name that is about to be opened, and the command that runs then */
static const char *command;
static long fails_at; /* the number of the allocation that fails; 0: none */

static int hooked_openat(int folder, const char *name, int flags, ...) {
  va_list mode;
  int fd;
  if (swapped && !strcmp(name, swapped) && system(command)) abort();
  va_start(mode, flags);
  fd = openat(folder, name, flags, flags & O_CREAT ? va_arg(mode, int) : 0);
  va_end(mode);
  return fd;
}

static void *hooked_realloc(void *p, size_t n) { return fails_at && !--fails_at ? NULL : realloc(p, n); }

#define openat hooked_openat
#define realloc(p, n) hooked_realloc(p, n)
#define GPUIR_STATIC
#define GPUIR_NO_LAB
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"
#undef openat
#undef realloc

#include <setjmp.h>
#include <cmocka.h>

/* What a walk has met: paths and why they were left out, parted by blanks. */
typedef struct met {
  char opened[4096], skipped[16384];
  int answer, most_fd, error;
} met;

static int on_open(void *user, const gpuir_walk_entry *e) {
  met *m = (met *)user;
  if (!e->is_folder) {
    strcat(m->opened, *m->opened ? " " : "");
    strcat(m->opened, e->path);
  }
  if (e->fd > m->most_fd) m->most_fd = e->fd;
  assert_int_equal(e->is_folder, S_ISDIR(e->st->st_mode));
  return e->is_folder ? GPUIR_WALK_TAKE : m->answer;
}

static void on_skipped(void *user, const char *path, int why, int error) {
  met *m = (met *)user;
  (void)sprintf(m->skipped + strlen(m->skipped), "%s%s:%d", *m->skipped ? " " : "", path, why);
  assert_int_equal(why == GPUIR_SKIPPED_UNREADABLE, error != 0);
  m->error = error;
}

static int walk(const char *path, gpuir_walk_desc how, met *m) {
  gpuir_error err;
  memset(m, 0, sizeof *m);
  m->answer = GPUIR_WALK_LEAVE;
  how.open = on_open;
  how.skipped = on_skipped;
  how.user = m;
  return gpuir_walk(path, &how, &err);
}

static const gpuir_walk_desc plain;

static void shell(const char *text) { assert_int_equal(system(text), 0); }

static char home[4096], folder[64];

static int setup(void **state) {
  (void)state;
  swapped = command = NULL;
  (void)strcpy(folder, "/tmp/gpuir-walk-XXXXXX");
  return !getcwd(home, sizeof home) || !mkdtemp(folder) || chdir(folder);
}

static int teardown(void **state) {
  char text[192];
  (void)state;
  (void)snprintf(text, sizeof text, "chmod -R u+rwx %s; rm -rf %s", folder, folder);
  return chdir(home) || system(text);
}

static void test_order(void **state) {
  met m;
  (void)state;
  shell("mkdir d d/a d/b.c; for f in a/z a-b a.c b.c/x b .h; do echo $f >d/$f; done; mkfifo d/p; ln -s a-b d/l");
  assert_int_equal(walk("d", plain, &m), GPUIR_OK);
  assert_string_equal(m.opened, "d/a-b d/a.c d/a/z d/b d/b.c/x");
  assert_non_null(strstr(m.skipped, "d/.h:1"));
  assert_non_null(strstr(m.skipped, "d/l:3"));
  assert_non_null(strstr(m.skipped, "d/p:5"));
  assert_int_equal(walk("d//", plain, &m), GPUIR_OK);
  assert_string_equal(m.opened, "d/a-b d/a.c d/a/z d/b d/b.c/x");
  assert_int_equal(chdir("d"), 0);
  assert_int_equal(walk(".", plain, &m), GPUIR_OK);
  assert_string_equal(m.opened, "a-b a.c a/z b b.c/x");
  {
    gpuir_walk_desc how = plain;
    how.hidden = how.follow = 1;
    assert_int_equal(walk("./", how, &m), GPUIR_OK);
    assert_string_equal(m.opened, ".h a-b a.c a/z b b.c/x l");
    how.folders_only = 1;
    assert_int_equal(walk("..", how, &m), GPUIR_OK);
    assert_string_equal(m.opened, "");
  }
}

static void test_named(void **state) {
  met m;
  (void)state;
  shell("echo x >f; mkdir d; ln -s f l; ln -s d k; echo y >d/y; : >e");
  assert_int_equal(walk("l", plain, &m), GPUIR_OK);
  assert_string_equal(m.opened, "l");
  assert_int_equal(walk("k", plain, &m), GPUIR_OK);
  assert_string_equal(m.opened, "k/y");
  assert_int_equal(walk("none", plain, &m), GPUIR_E_NOT_FOUND);
  assert_string_equal(m.skipped, "none:8");
  assert_int_equal(walk("f/none", plain, &m), GPUIR_E_NOT_FOUND);
  assert_int_equal(gpuir_walk("", NULL, NULL), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_walk(NULL, NULL, NULL), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_walk("d", NULL, NULL), GPUIR_OK);
  if (geteuid()) {
    shell("chmod 0 d");
    assert_int_equal(walk("d", plain, &m), GPUIR_E_IO);
    assert_int_equal(m.error, EACCES);
  }
}

static void test_circle(void **state) {
  gpuir_walk_desc how = plain;
  met m;
  (void)state;
  shell("mkdir -p d/e; echo x >d/e/x; ln -s .. d/e/up; ln -s loop d/loop");
  how.follow = 1;
  assert_int_equal(walk("d", how, &m), GPUIR_OK);
  assert_string_equal(m.opened, "d/e/x");
  assert_non_null(strstr(m.skipped, "d/e/up:4"));
  assert_non_null(strstr(m.skipped, "d/loop:8"));
}

/* Runs a command when `name` is about to be opened, which was listed as something else. */
static void swap(const char *name, const char *by, met *m) {
  shell("rm -rf d out; mkdir -p d/sub out; echo in >d/a; echo in >d/sub/s; echo in >d/z; echo secret >out/s");
  swapped = name;
  command = by;
  assert_int_equal(walk("d", plain, m), GPUIR_OK);
  swapped = NULL;
}

static void test_swapped(void **state) {
  met m;
  (void)state;
  swap("z", "rm -f d/z; ln -s ../out/s d/z", &m);
  assert_string_equal(m.opened, "d/a d/sub/s");
  assert_string_equal(m.skipped, "d/z:3");
  swap("sub", "rm -rf d/sub; ln -s ../out d/sub", &m);
  assert_string_equal(m.opened, "d/a d/z");
  assert_string_equal(m.skipped, "d/sub:3");
  swap("s", "if [ ! -L d/sub ]; then mv d/sub old; ln -s ../out d/sub; fi",
      &m); /* above what is opened: it is the old one */
  assert_string_equal(m.opened, "d/a d/sub/s d/z");
  shell("rm -r old");
  swap("z", "rm -f d/z; mkfifo d/z", &m);
  assert_string_equal(m.skipped, "d/z:5");
  swap("z", "rm -f d/z", &m);
  assert_string_equal(m.skipped, "d/z:8");
  assert_int_equal(m.error, ENOENT);
  swap("z", "mv d/z gone.$$; mkdir d/z", &m); /* by another folder each time */
  assert_string_equal(m.skipped, "d/z:8");
  assert_int_equal(m.error, ESTALE);
  swap("z", "if [ ! -e once ]; then : >once; echo new >new; mv new d/z; fi", &m); /* as an editor saves it */
  assert_string_equal(m.opened, "d/a d/sub/s d/z");
  assert_string_equal(m.skipped, "");
  swap(".gitignore", "rm -f d/.gitignore; echo a >out/rules; ln -s ../out/rules d/.gitignore", &m);
  assert_string_equal(m.opened, "d/a d/sub/s d/z");
}

static void test_deep(void **state) {
  met m;
  char *at;
  int i;
  (void)state;
  shell("p=d; mkdir d; for i in $(seq 150); do p=$p/d; mkdir $p; done; echo x >$p/x; echo y >d/y; echo e >d/d/e");
  assert_int_equal(walk("d", plain, &m), GPUIR_OK);
  at = strrchr(m.opened, ' ');
  assert_string_equal(at, " d/y");
  assert_true(m.most_fd < 80);
  assert_non_null(strstr(m.opened, " d/d/e"));
  /* what was above is another folder by now: what was listed in it counts as replaced, and nothing else is read */
  swapped = "x";
  command = "mv d/d old; mkdir d/d; echo other >d/d/e";
  assert_int_equal(walk("d", plain, &m), GPUIR_OK);
  swapped = NULL;
  assert_null(strstr(m.opened, "d/d/e"));
  assert_non_null(strstr(m.skipped, "d/d/e:8"));
  assert_int_equal(m.error, ESTALE);
  /* paths that nobody could open are left out */
  shell("rm -rf d old; mkdir d");
  assert_int_equal(chdir("d"), 0);
  for (i = 0; i < 20; i++) {
    char name[251];
    memset(name, 'n', 250);
    name[250] = 0;
    assert_int_equal(mkdir(name, 0777), 0);
    assert_int_equal(chdir(name), 0);
  }
  assert_int_equal(chdir(folder), 0);
  assert_int_equal(walk("d", plain, &m), GPUIR_OK);
  assert_int_equal(m.error, ENAMETOOLONG);
}

/* Whether a line of a .gitignore has a path. */
static int matches(const char *line, const char *path) {
  static char text[9000];
  const char *slash = strrchr(path, '/');
  gpuir__rule x;
  const size_t n = strlen(line);
  memcpy(text, line, n);
  return gpuir__rule_make(&x, text, n) && gpuir__rules_match(&x, path, slash ? slash + 1 : path);
}

static void test_rules(void **state) {
  static const struct {
    const char *pattern, *path;
    int match;
  } rows[] = {{"a", "a", 1}, {"a", "b", 0}, {"*", "abc", 1}, {"/*", "a/b", 0}, {"*.o", "x.o", 1}, {"*.o", "x.oo", 0},
      {"a*b*c", "a1b2b3c", 1}, {"a*b*c", "a1b2b3", 0}, {"?b", "ab", 1}, {"[a-c]x", "bx", 1}, {"[!a-c]x", "bx", 0},
      {"[!a-c]x", "dx", 1}, {"[]]", "]", 1}, {"[a", "[a", 0}, {"a\\", "a\\", 0}, {"[!]-]x", "]x", 0},
      {"[[:digit:]a]", "7", 1}, {"[[:digit:]a]", "b", 0}, {"[[:nothing:]]", "n", 0}, {"[[:a]", ":", 1},
      {"[a\\-c]", "b", 0}, {"[x/y]", "x", 1}, {"\\*", "*", 1}, {"\\*", "a", 0}, {"**/f", "f", 1}, {"**/f", "a/b/f", 1},
      {"a/**", "a/b/c", 1}, {"a/**/z", "a/z", 1}, {"a/**/z", "a/b/c/z", 1}, {"a/**/z", "a/zz", 0}, {"a/*", "a/b", 1},
      {"a/*", "a/b/c", 0}, {"**/x*y/z", "q/xxy/z", 1}, {"", "a", 0}, {"/", "a", 0}, {"a//", "a", 0},
      {"**/**/a", "a", 1}, {"**/**", "a", 1}, {"a/**/**/b", "a/b", 1}, {"a/**/b/**/c", "a/x/b/y/b/c", 1},
      {"a/**/b/**/c", "a/x/y/c", 0}, {"a**b/c", "axb/c", 1}, {"a**b/c", "ax/b/c", 0}, {"***/c", "a/b/c", 1},
      {"**/a*/b?/**", "x/a1/b2/c", 1}, {"**/a*/b?/**", "x/a1/b2", 0}, {"a\\ ", "a ", 1}, {"a  \r", "a", 1},
      {"\\#a", "#a", 1}, {"#a", "#a", 0}};
  char stars[2001], text[20001];
  size_t i;
  (void)state;
  for (i = 0; i < sizeof rows / sizeof *rows; i++)
    if (matches(rows[i].pattern, rows[i].path) != rows[i].match) fail_msg("%s, %s", rows[i].pattern, rows[i].path);
  for (i = 0; i < 1000; i++) memcpy(stars + 2 * i, "*a", 2);
  stars[2000] = 0;
  memset(text, 'a', 20000);
  text[20000] = 0;
  assert_true(matches(stars, text));
  text[19998] = 'b'; /* tried in every way this would take longer than the world will stand */
  stars[1999] = '?';
  assert_false(matches("*b*?", stars));
  assert_true(matches(stars, text));
  text[19997] = 'b';
  stars[1997] = '?';
  stars[1995] = 'c';
  assert_false(matches(stars, text));
}

/* Folders against pieces: tried in every way these would take longer still. */
static void test_deep_rules(void **state) {
  char line[9000] = "", path[9000] = "";
  gpuir__rule x;
  int i;
  (void)state;
  for (i = 0; i < 1000; i++) strcpy(line + strlen(line), i % 2 ? "a*/" : "**/"), strcpy(path + strlen(path), "a/");
  strcpy(line + strlen(line), "b*/**");
  strcpy(path + strlen(path), "a");
  assert_false(matches(line, path));
  strcpy(path + strlen(path) - 3, "b/a");
  assert_true(matches(line, path));
  for (line[0] = 0, i = 0; i < 4096; i++) strcpy(line + strlen(line), "a/");
  line[2 * 4096 - 1] = 0;
  assert_true(gpuir__rule_make(&x, line, strlen(line)));
  assert_int_equal(x.n, 4096);
  strcpy(path, "a/a");
  assert_false(gpuir__rules_match(&x, path, path + 2));
  for (line[0] = 0, i = 0; i < 4097; i++) strcpy(line + strlen(line), "a/");
  line[2 * 4097 - 1] = 0;
  assert_false(gpuir__rule_make(&x, line, strlen(line)));
}

static void test_ignored(void **state) {
  met m;
  gpuir_walk_desc how = plain;
  (void)state;
  shell(
      "mkdir -p d/build d/src/build d/out; for f in build/x src/build/y src/a.o src/b.c keep.o out/o; do : >d/$f; "
      "done");
  shell(
      "printf '*.o\\r\\n# no rule\\n!keep.o\\n/build/\\nout/   \\n' >d/.gitignore; printf '!a.o\\nb.*' "
      ">d/src/.gitignore");
  assert_int_equal(walk("d", plain, &m), GPUIR_OK);
  assert_string_equal(m.opened, "d/keep.o d/src/a.o d/src/build/y");
  how.no_ignore = 1;
  assert_int_equal(walk("d", how, &m), GPUIR_OK);
  assert_string_equal(m.opened, "d/build/x d/keep.o d/out/o d/src/a.o d/src/b.c d/src/build/y");
}

/* ---- documents ---- */

static gpuir_builder *builder(void) {
  gpuir_builder_desc d;
  gpuir_builder *b;
  gpuir_error err;
  memset(&d, 0, sizeof d);
  d.path = "x.gpuir";
  d.threads = 1;
  d.memory = 1 << 20;
  if (gpuir_builder_create(&d, &b, &err)) fail_msg("%s", err.msg);
  return b;
}

/* Leaves out files whose name has an 'o', and ends the walk at one with a 'q'. */
static int no_o(void *user, const gpuir_walk_entry *e) {
  (void)user;
  if (strchr(e->path, 'q')) return GPUIR_E_CANCELLED;
  return strchr(e->path, 'o') ? GPUIR_WALK_LEAVE : GPUIR_WALK_TAKE;
}

static void test_documents(void **state) {
  static const char *const names[] = {"d/a", "d/s/e", "f"};
  gpuir_builder *b = builder();
  gpuir_walk_desc how = plain;
  gpuir_index *x;
  gpuir_error err;
  gpuir_doc doc;
  uint32_t i;
  char path[160];
  (void)state;
  shell(
      "mkdir -p d/s q live; echo one >d/a; : >d/s/e; printf 'a\\0b' >d/binary; echo two >f; echo three >d/other; : "
      ">q/q");
  how.open = no_o;
  assert_int_equal(gpuir_builder_add_folder(b, "d/", &how, &err), GPUIR_OK);
  assert_int_equal(gpuir_builder_add_file(b, "./f", &err), GPUIR_OK);
  assert_int_equal(gpuir_builder_add_file(b, "d", &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_file(b, "d/binary", &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_file(b, "none", &err), GPUIR_E_NOT_FOUND);
  assert_int_equal(gpuir_builder_add_file(NULL, "f", &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_folder(b, "", NULL, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(gpuir_builder_add_folder(b, "q", &how, &err), GPUIR_E_CANCELLED);
  assert_non_null(strstr(err.msg, "q: the walk was ended"));
  shell("printf 'GPUIRL\\012\\032' >live/manifest");
  assert_int_equal(gpuir_builder_add_folder(b, "live", NULL, &err), GPUIR_E_ARGUMENT);
  if (gpuir_builder_write(b, NULL, &err)) fail_msg("%s", err.msg);
  gpuir_builder_destroy(b);
  if (gpuir_open("x.gpuir", NULL, &x, &err)) fail_msg("%s", err.msg);
  for (i = 0; i < 3; i++) {
    assert_int_equal(gpuir_doc_get(x, i, &doc), GPUIR_OK);
    (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    assert_int_equal(doc.source_len, strlen(path));
    assert_memory_equal(doc.source, path, doc.source_len);
  }
  assert_int_equal(gpuir_doc_get(x, 3, &doc), GPUIR_E_NOT_FOUND);
  gpuir_close(x);
}

/* Each allocation fails once: the walk says so, and closes and frees what it has (which the sanitizers see). */
static void test_memory(void **state) {
  const int first = dup(0);
  long n, at = 1;
  met m;
  (void)state;
  (void)close(first);
  shell("mkdir -p d/e; echo '*.o' >d/.gitignore; for f in a b e/c e/d.o; do echo x >d/$f; done");
  for (n = 1; at; n++) {
    int status, fd;
    fails_at = n;
    status = walk("d", plain, &m);
    at = fails_at == 0;
    fails_at = 0;
    assert_int_equal(status, at ? GPUIR_E_NOMEM : GPUIR_OK);
    fd = dup(0);
    assert_int_equal(fd, first);
    (void)close(fd);
  }
  assert_true(n > 5);
}

/* Rules of nested folders are held together, and so bounded together: a .gitignore that would make more is not read. */
static void test_rules_together(void **state) {
  met m;
  (void)state;
  shell(
      "mkdir -p d/e/f; for f in a b c; do for at in d d/e d/e/f; do echo x >$at/$f; done; done; "
      "{ echo a; head -c 600000 /dev/zero | tr '\\0' '#'; } >d/.gitignore; "
      "{ echo b; head -c 600000 /dev/zero | tr '\\0' '#'; } >d/e/.gitignore; echo c >d/e/f/.gitignore");
  assert_int_equal(walk("d", plain, &m), GPUIR_OK);
  assert_string_equal(m.opened, "d/b d/c d/e/b d/e/c d/e/f/b");
  assert_int_equal(walk("d/e", plain, &m), GPUIR_OK);
  assert_string_equal(m.opened, "d/e/a d/e/c d/e/f/a");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_order, setup, teardown),
      cmocka_unit_test_setup_teardown(test_named, setup, teardown),
      cmocka_unit_test_setup_teardown(test_circle, setup, teardown),
      cmocka_unit_test_setup_teardown(test_swapped, setup, teardown),
      cmocka_unit_test_setup_teardown(test_deep, setup, teardown),
      cmocka_unit_test_setup_teardown(test_rules, setup, teardown),
      cmocka_unit_test_setup_teardown(test_deep_rules, setup, teardown),
      cmocka_unit_test_setup_teardown(test_ignored, setup, teardown),
      cmocka_unit_test_setup_teardown(test_documents, setup, teardown),
      cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
      cmocka_unit_test_setup_teardown(test_rules_together, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
