/* The files of a build: hostile names under PATH.tmp, rivals, permissions, links, and failing system calls. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* System calls of which a test lets some fail or lets a rival act beside them: the library calls these. */
static int fstat_fails, fsync_fails; /* EIO from the n-th call on; 0: never */
static char rival[128]; /* a name that is renamed away after each fstat; "": none */

int fstat(int fd, struct stat *st) {
  char away[160];
  if (fstat_fails && --fstat_fails == 0) {
    fstat_fails = 1;
    errno = EIO;
    return -1;
  }
  (void)snprintf(away, sizeof away, "%s.away", rival);
  if (*rival) (void)rename(rival, away);
  return fstatat(fd, "", st, AT_EMPTY_PATH);
}

int fsync(int fd) {
  if (fsync_fails && --fsync_fails == 0) {
    fsync_fails = 1;
    errno = EIO;
    return -1;
  }
  return (int)syscall(SYS_fsync, fd);
}

#include "private.h"

#include <dirent.h>
#include <grp.h>
#include <setjmp.h>
#include <sys/wait.h>
#include <cmocka.h>

#define NOBODY ((uid_t)65534)

static char folder[64], path[96];

static const char *in_folder(const char *name) {
  static char p[4][160];
  static unsigned next;
  char *out = p[next++ % 4];
  (void)snprintf(out, sizeof p[0], "%s/%s", folder, name);
  return out;
}

static int build_at(const char *where, const char *text, gpuir_build_report *report, gpuir_error *err) {
  gpuir_builder_desc d;
  gpuir_builder *b;
  int status;
  memset(&d, 0, sizeof d);
  memset(err, 0, sizeof *err);
  d.path = where;
  d.threads = 1;
  d.memory = 1 << 20;
  status = gpuir_builder_create(&d, &b, err);
  if (status) return status;
  status = gpuir_builder_add_text(b, NULL, text, strlen(text), err);
  if (!status) status = gpuir_builder_write(b, report, err);
  gpuir_builder_destroy(b);
  return status;
}

static int build(const char *text, gpuir_error *err) { return build_at(path, text, NULL, err); }

/* Whether the index at `where` holds the word. */
static int has_word(const char *where, const char *word) {
  gpuir_index *ix;
  uint64_t id;
  int found;
  if (gpuir_open(where, NULL, &ix, NULL)) return 0;
  found = !gpuir_verify(ix, NULL) && !gpuir_term_find(ix, word, strlen(word), &id);
  gpuir_close(ix);
  return found;
}

static void put_file(const char *name, const char *text) {
  FILE *f = fopen(name, "w");
  assert_non_null(f);
  assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
  assert_int_equal(fclose(f), 0);
}

static void assert_holds(const char *name, const char *text) {
  char got[64];
  FILE *f = fopen(name, "r");
  size_t n;
  assert_non_null(f);
  n = fread(got, 1, sizeof got - 1, f);
  (void)fclose(f);
  got[n] = 0;
  assert_string_equal(got, text);
}

static mode_t mode_of(const char *name) {
  struct stat st;
  assert_int_equal(lstat(name, &st), 0);
  return st.st_mode & 07777;
}

/* Removes all files of the folder; returns how many there were. */
static int empty_folder(void) {
  DIR *dir = opendir(folder);
  struct dirent *e;
  int n = 0;
  assert_non_null(dir);
  while ((e = readdir(dir)) != NULL) {
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
    if (unlink(in_folder(e->d_name))) (void)rmdir(in_folder(e->d_name));
    n++;
  }
  (void)closedir(dir);
  return n;
}

/* Whether a test that needs another user can have one. */
static void need_root(void) {
  if (geteuid() == 0) return;
  print_message("skipped: only root makes files of other users\n");
  skip();
}

/* ---- names that somebody else put there ---- */

/* Links under the names of temporary files lead to files that must stay as they are. */
static void test_links_are_not_followed(void **state) {
  static const char *const names[] = {"x.gpuir.tmp", "x.gpuir.tmp.0", "x.gpuir.tmp.5", "x.gpuir.tmp.999"};
  gpuir_error err;
  size_t i;
  int hard;
  (void)state;
  for (hard = 0; hard < 2; hard++) {
    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
      put_file(in_folder("secret"), "keep me");
      if (hard) assert_int_equal(link(in_folder("secret"), in_folder(names[i])), 0);
      else assert_int_equal(symlink(in_folder("secret"), in_folder(names[i])), 0);
      if (build("planted link", &err)) fail_msg("%s: %s", names[i], err.msg);
      assert_holds(in_folder("secret"), "keep me");
      assert_true(has_word(path, "planted"));
      assert_true(S_ISREG(mode_of(path) | S_IFREG));
      assert_int_equal(empty_folder(), 2);
    }
  }
}

static void test_dangling_link(void **state) {
  gpuir_error err;
  struct stat st;
  (void)state;
  assert_int_equal(symlink(in_folder("created"), in_folder("x.gpuir.tmp")), 0);
  if (build("a word", &err)) fail_msg("%s", err.msg);
  assert_int_equal(lstat(in_folder("created"), &st), -1);
  assert_int_equal(lstat(path, &st), 0);
  assert_true(S_ISREG(st.st_mode));
  assert_int_equal(empty_folder(), 1);
}

static void test_special_files(void **state) {
  gpuir_error err;
  (void)state;
  assert_int_equal(mkfifo(in_folder("x.gpuir.tmp"), 0600), 0);
  assert_int_equal(mkfifo(in_folder("x.gpuir.tmp.3"), 0600), 0);
  if (build("a word", &err)) fail_msg("%s", err.msg);
  assert_true(has_word(path, "word"));
  assert_int_equal(empty_folder(), 1);
  assert_int_equal(mkdir(in_folder("x.gpuir.tmp"), 0700), 0);
  assert_int_equal(build("a word", &err), GPUIR_E_IO);
  assert_non_null(strstr(err.msg, "x.gpuir.tmp"));
  assert_int_equal(empty_folder(), 1);
}

/* The file of another user under PATH.tmp is left alone: a build of that user may be running. */
static void test_foreign_file(void **state) {
  gpuir_error err;
  (void)state;
  need_root();
  put_file(in_folder("x.gpuir.tmp"), "theirs");
  assert_int_equal(chown(in_folder("x.gpuir.tmp"), NOBODY, (gid_t)-1), 0);
  assert_int_equal(build("a word", &err), GPUIR_E_IO);
  assert_non_null(strstr(err.msg, "another user"));
  assert_holds(in_folder("x.gpuir.tmp"), "theirs");
  assert_int_equal(empty_folder(), 1);
  put_file(in_folder("x.gpuir.tmp.2"), "theirs"); /* a spool's name is taken anew */
  assert_int_equal(chown(in_folder("x.gpuir.tmp.2"), NOBODY, (gid_t)-1), 0);
  if (build("a word", &err)) fail_msg("%s", err.msg);
  assert_int_equal(empty_folder(), 1);
}

/* What a killed build left is neither kept nor written to: a name that still leads to it sees its old bytes. */
static void test_leftover_is_made_anew(void **state) {
  gpuir_error err;
  (void)state;
  put_file(in_folder("x.gpuir.tmp"), "half an index");
  assert_int_equal(chmod(in_folder("x.gpuir.tmp"), 0666), 0);
  assert_int_equal(link(in_folder("x.gpuir.tmp"), in_folder("other")), 0);
  if (build("a word", &err)) fail_msg("%s", err.msg);
  assert_holds(in_folder("other"), "half an index");
  assert_int_equal(empty_folder(), 2);
}

/* ---- rivals and failing calls ---- */

/* Runs a build in a child that is killed after 20 s, and returns its status, or -1 if it had to be killed. */
static int build_in_child(void) {
  pid_t child = fork();
  int status;
  assert_true(child >= 0);
  if (!child) {
    gpuir_error err;
    (void)alarm(20);
    _exit(-build("a word", &err) & 127);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? -WEXITSTATUS(status) : 1;
}

static void test_failing_fstat(void **state) {
  int n;
  (void)state;
  for (n = 1; n < 4; n++) { /* the first calls, and all that follow */
    fstat_fails = n;
    assert_int_equal(build_in_child(), GPUIR_E_IO);
    fstat_fails = 0;
    (void)empty_folder();
  }
}

static void test_rival_renames(void **state) {
  (void)state;
  (void)snprintf(rival, sizeof rival, "%s.tmp", path);
  assert_int_equal(build_in_child(), GPUIR_E_BUSY);
  rival[0] = 0;
  (void)empty_folder();
}

/* A name that somebody takes during the build is neither renamed over PATH nor removed. */
static void test_name_is_taken(void **state) {
  gpuir_builder_desc d;
  gpuir_builder *b;
  gpuir_error err;
  (void)state;
  if (build("old", &err)) fail_msg("%s", err.msg);
  memset(&d, 0, sizeof d);
  d.path = path;
  assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
  assert_int_equal(gpuir_builder_add_text(b, NULL, "new", 3, &err), 0);
  assert_int_equal(unlink(in_folder("x.gpuir.tmp")), 0);
  put_file(in_folder("x.gpuir.tmp"), "a rival's");
  assert_int_equal(gpuir_builder_write(b, NULL, &err), GPUIR_E_BUSY);
  gpuir_builder_destroy(b);
  assert_true(has_word(path, "old"));
  assert_holds(in_folder("x.gpuir.tmp"), "a rival's");
  assert_int_equal(empty_folder(), 2);
}

/* The folder cannot be synced: the error says that the new index is in place. */
static void test_failing_folder_sync(void **state) {
  gpuir_error err;
  (void)state;
  if (build("old", &err)) fail_msg("%s", err.msg);
  fsync_fails = 2; /* the first is the file's */
  assert_int_equal(build("new", &err), GPUIR_E_IO);
  fsync_fails = 0;
  assert_non_null(strstr(err.msg, "the new index is in place"));
  assert_true(has_word(path, "new"));
  assert_int_equal(empty_folder(), 1);
  fsync_fails = 1;
  assert_int_equal(build("old", &err), GPUIR_E_IO);
  fsync_fails = 0;
  assert_non_null(strstr(err.msg, "x.gpuir.tmp"));
  assert_int_equal(empty_folder(), 0);
}

/* ---- permissions ---- */

static void test_mode_is_kept(void **state) {
  static const mode_t modes[] = {0600, 0640, 0444, 0666};
  mode_t mask = umask(027);
  gpuir_error err;
  size_t i;
  (void)state;
  if (build("first", &err)) fail_msg("%s", err.msg);
  assert_int_equal(mode_of(path), 0640); /* a new one follows the umask */
  for (i = 0; i < sizeof modes / sizeof modes[0]; i++) {
    assert_int_equal(chmod(path, modes[i]), 0);
    if (build("again", &err)) fail_msg("%s", err.msg);
    assert_int_equal(mode_of(path), modes[i]);
  }
  (void)umask(mask);
  assert_int_equal(empty_folder(), 1);
}

/* While an index that others may not read is being replaced, they may not read PATH.tmp either. */
static void test_tmp_is_hidden(void **state) {
  gpuir_builder_desc d;
  gpuir_builder *b;
  gpuir_error err;
  (void)state;
  if (build("first", &err)) fail_msg("%s", err.msg);
  assert_int_equal(chmod(path, 0600), 0);
  memset(&d, 0, sizeof d);
  d.path = path;
  assert_int_equal(gpuir_builder_create(&d, &b, &err), 0);
  assert_int_equal(mode_of(in_folder("x.gpuir.tmp")), 0600);
  gpuir_builder_destroy(b);
  assert_int_equal(empty_folder(), 1);
}

static void test_owner_is_kept(void **state) {
  gpuir_error err;
  struct stat st;
  (void)state;
  need_root();
  if (build("first", &err)) fail_msg("%s", err.msg);
  assert_int_equal(chown(path, NOBODY, (gid_t)NOBODY), 0);
  assert_int_equal(chmod(path, 0640), 0);
  if (build("again", &err)) fail_msg("%s", err.msg);
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_uid, NOBODY);
  assert_int_equal(st.st_gid, NOBODY);
  assert_int_equal(st.st_mode & 07777, 0640);
  assert_int_equal(empty_folder(), 1);
}

/* What another user put under PATH where all may make files does not get the index, nor its mode. */
static void test_planted_index(void **state) {
  gpuir_error err;
  struct stat st;
  mode_t mask = umask(022);
  (void)state;
  need_root();
  assert_int_equal(chmod(folder, 01777), 0);
  put_file(path, "planted");
  assert_int_equal(chown(path, NOBODY, (gid_t)-1), 0);
  assert_int_equal(chmod(path, 0666), 0);
  if (build("again", &err)) fail_msg("%s", err.msg);
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_uid, 0);
  assert_int_equal(st.st_mode & 07777, 0644);
  assert_int_equal(chmod(folder, 0700), 0);
  (void)umask(mask);
  assert_int_equal(empty_folder(), 1);
}

/* The group of the file does not go with it when a user who is not in it rebuilds: others then get no more than
 * before. */
static void test_group_that_cannot_be_kept(void **state) {
  gpuir_error err;
  pid_t child;
  int status;
  (void)state;
  need_root();
  if (build("first", &err)) fail_msg("%s", err.msg);
  assert_int_equal(chown(path, NOBODY, 0), 0);
  assert_int_equal(chmod(path, 0640), 0);
  assert_int_equal(chown(folder, NOBODY, (gid_t)-1), 0);
  child = fork();
  assert_true(child >= 0);
  if (!child) {
    if (setgroups(0, NULL) || setgid((gid_t)NOBODY) || setuid(NOBODY)) _exit(100);
    _exit(-build("again", &err) & 127);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(chown(folder, 0, (gid_t)-1), 0);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_true(has_word(path, "again"));
  assert_int_equal(mode_of(path), 0600);
  assert_int_equal(empty_folder(), 1);
}

/* ---- links under PATH itself ---- */

static void test_link_is_kept(void **state) {
  gpuir_error err;
  struct stat st;
  (void)state;
  assert_int_equal(mkdir(in_folder("sub"), 0700), 0);
  assert_int_equal(symlink("sub/second", path), 0); /* relative to the link's folder; leads nowhere yet */
  assert_int_equal(symlink("target.gpuir", in_folder("sub/second")), 0);
  if (build("first", &err)) fail_msg("%s", err.msg);
  if (build("again", &err)) fail_msg("%s", err.msg);
  assert_int_equal(lstat(path, &st), 0);
  assert_true(S_ISLNK(st.st_mode));
  assert_true(has_word(in_folder("sub/target.gpuir"), "again"));
  assert_true(has_word(path, "again"));
  assert_int_equal(unlink(in_folder("sub/target.gpuir")), 0);
  assert_int_equal(unlink(in_folder("sub/second")), 0);
  assert_int_equal(empty_folder(), 2);
  assert_int_equal(symlink(path, path), 0); /* a link to itself */
  assert_int_equal(build("a word", &err), GPUIR_E_IO);
  assert_int_equal(empty_folder(), 1);
}

static void test_foreign_link(void **state) {
  gpuir_error err;
  (void)state;
  need_root();
  put_file(in_folder("secret"), "keep me");
  assert_int_equal(symlink(in_folder("secret"), path), 0);
  assert_int_equal(lchown(path, NOBODY, (gid_t)-1), 0);
  assert_int_equal(build("a word", &err), GPUIR_E_IO);
  assert_non_null(strstr(err.msg, "link"));
  assert_holds(in_folder("secret"), "keep me");
  assert_int_equal(empty_folder(), 2);
}

/* ---- folders that others may write ---- */

static void test_shared_folder(void **state) {
  static const struct {
    mode_t mode;
    int shared;
  } cases[] = {{0700, 0}, {0755, 0}, {0777, 1}, {0703, 1}, {01777, 0}};
  size_t i;
  (void)state;
  for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    gpuir_build_report report;
    gpuir_error err;
    assert_int_equal(chmod(folder, cases[i].mode), 0);
    if (build_at(path, "a word", &report, &err)) fail_msg("%s", err.msg);
    assert_int_equal(report.shared_folder, cases[i].shared);
  }
  assert_int_equal(chmod(folder, 0700), 0);
  assert_int_equal(empty_folder(), 1);
}

static int make_folder(void **state) {
  const char *tmp = getenv("TMPDIR");
  (void)state;
  (void)snprintf(folder, sizeof folder, "%.40s/gpuir-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (!mkdtemp(folder)) return -1;
  (void)snprintf(path, sizeof path, "%s/x.gpuir", folder);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  (void)empty_folder();
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_links_are_not_followed),
      cmocka_unit_test(test_dangling_link), cmocka_unit_test(test_special_files), cmocka_unit_test(test_foreign_file),
      cmocka_unit_test(test_leftover_is_made_anew), cmocka_unit_test(test_failing_fstat),
      cmocka_unit_test(test_rival_renames), cmocka_unit_test(test_name_is_taken),
      cmocka_unit_test(test_failing_folder_sync), cmocka_unit_test(test_mode_is_kept),
      cmocka_unit_test(test_tmp_is_hidden), cmocka_unit_test(test_owner_is_kept), cmocka_unit_test(test_planted_index),
      cmocka_unit_test(test_group_that_cannot_be_kept), cmocka_unit_test(test_link_is_kept),
      cmocka_unit_test(test_foreign_link), cmocka_unit_test(test_shared_folder)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
