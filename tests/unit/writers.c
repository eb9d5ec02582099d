/* writers.c - live indexes between processes: who may write, what readers see while others write, what a refresh asks
 * of the system. GPUIR_LONG=1 reads for a minute instead of two seconds.
 */
#define _GNU_SOURCE
#include "gpuir.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "rng.h"
#include "oracle.h"
#include "corpus.h"

static char folder[4200];

/* The library asks by faccessat whether a segment is there. Two moments in which a test acts, once: between reading a
 * manifest and that question, and behind an answer that it is there, before it is opened. */
typedef void (*moment_fn)(int at, const char *name);
static moment_fn between, behind;

/* Takes what is to be done now, so that it is done once. */
static void act_at(moment_fn *moment, int at, const char *name) {
  const moment_fn act = *moment;
  *moment = NULL;
  if (act) act(at, name);
}

int faccessat(int at, const char *name, int how, int flags) {
  struct stat st;
  (void)how;
  (void)flags;
  act_at(&between, at, name);
  if (fstatat(at, name, &st, 0)) return -1;
  act_at(&behind, at, name);
  return 0;
}

static char *in_folder(const char *name) {
  static char path[4600];
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static int try_open(gpuir_live **l, gpuir_error *err) {
  gpuir_live_desc desc;
  memset(&desc, 0, sizeof desc);
  desc.settings.path = folder;
  desc.settings.memory = 1 << 20;
  desc.settings.store_text = 1;
  desc.create = 1;
  return gpuir_live_open(&desc, l, err);
}

static gpuir_live *open_live(void) {
  gpuir_error err;
  gpuir_live *l;
  if (try_open(&l, &err)) fail_msg("%s", err.msg);
  return l;
}

/* Replaces document `number`: "every" is in all, "round" and a number in those of one round. */
static void replace(gpuir_live *l, unsigned number, unsigned round) {
  char name[32], text[64];
  gpuir_doc_desc doc;
  memset(&doc, 0, sizeof doc);
  doc.name = name;
  doc.name_len = (size_t)sprintf(name, "n%u", number);
  (void)sprintf(text, "every round%u x%u", round, number % 7);
  if (gpuir_live_delete(l, GPUIR_BY_NAME, name, doc.name_len, NULL, NULL) ||
      gpuir_live_add(l, &doc, text, strlen(text), NULL))
    abort();
}

/* Each test begins without the folder, and leaves none. */
static int remove_folder(void **state) {
  (void)state;
  between = behind = NULL;
  (void)corpus_path(folder, sizeof folder, "live");
  return folder_remove(folder);
}

/* ---- one writer ---- */

/* Runs a function in a child process, which writes a byte when it is ready and waits for the end of *more. */
typedef struct child {
  pid_t pid;
  int ready, more;
} child;

static child start(void (*run)(void)) {
  int ready[2], more[2];
  child c;
  char byte = 0;
  if (pipe(ready) || pipe(more)) abort();
  c.pid = fork();
  if (c.pid < 0) abort();
  if (!c.pid) {
    (void)close(ready[0]);
    (void)close(more[1]);
    run();
    if (write(ready[1], &byte, 1) != 1) _exit(9);
    (void)close(ready[1]);
    _exit(read(more[0], &byte, 1) == 0 ? 0 : 9);
  }
  (void)close(ready[1]);
  (void)close(more[0]);
  c.ready = ready[0];
  c.more = more[1];
  if (read(c.ready, &byte, 1) != 1) fail_msg("a child process failed");
  return c;
}

static void end(child *c) {
  int status;
  (void)close(c->more);
  (void)close(c->ready);
  if (c->pid > 0 && (waitpid(c->pid, &status, 0) != c->pid || status)) fail_msg("a child process failed");
}

static void hold(void) {
  gpuir_live *l;
  if (try_open(&l, NULL)) _exit(8);
}

static void expect_busy(void) {
  gpuir_live *l;
  gpuir_error err;
  assert_int_equal(try_open(&l, &err), GPUIR_E_BUSY);
  assert_null(l);
  assert_non_null(strstr(err.msg, "another writer"));
}

static void test_two_processes(void **state) {
  child c = start(hold);
  (void)state;
  expect_busy();
  end(&c);
  gpuir_live_close(open_live());
}

static void test_one_process_twice(void **state) {
  gpuir_live *l = open_live();
  (void)state;
  expect_busy();
  expect_busy();
  gpuir_live_close(l);
  gpuir_live_close(open_live());
}

/* A lock of fcntl would go when any descriptor of the file is closed. */
static void test_lock_opened_elsewhere(void **state) {
  gpuir_live *l = open_live();
  const int fd = open(in_folder("lock"), O_RDWR);
  (void)state;
  assert_true(fd >= 0);
  assert_int_equal(close(fd), 0);
  expect_busy();
  gpuir_live_close(l);
}

static pid_t grandchild;
static int grandchild_pipe[2];

/* A writer that forks and dies: its child has the lock with it. */
static void hold_and_fork(void) {
  char byte;
  hold();
  grandchild = fork();
  if (grandchild < 0) _exit(8);
  if (!grandchild) {
    (void)close(grandchild_pipe[1]);
    _exit(read(grandchild_pipe[0], &byte, 1) == 0 ? 0 : 9);
  }
}

static void test_forked_child_keeps_lock(void **state) {
  gpuir_live *l;
  unsigned tries;
  child c;
  (void)state;
  assert_int_equal(pipe(grandchild_pipe), 0);
  c = start(hold_and_fork);
  (void)close(grandchild_pipe[0]);
  (void)kill(c.pid, SIGKILL);
  assert_int_equal(waitpid(c.pid, NULL, 0), c.pid);
  c.pid = -1;
  expect_busy();
  (void)close(grandchild_pipe[1]); /* lets the grandchild end, soon */
  for (tries = 0; tries < 10000 && try_open(&l, NULL); tries++) (void)usleep(1000);
  assert_non_null(l);
  gpuir_live_close(l);
  end(&c);
}

/* ---- a folder that is none ---- */

static void make_file(const char *name) {
  const int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_EXCL, 0666);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, "mine", 4), 4);
  assert_int_equal(close(fd), 0);
}

static void check_file(const char *name) {
  char bytes[8];
  const int fd = open(in_folder(name), O_RDONLY);
  assert_int_equal(read(fd, bytes, sizeof bytes), 4);
  (void)close(fd);
}

/* Files that somebody else has there under the names of segments are not removed, whether or not one is called lock. */
static void test_other_files(void **state) {
  static const char *const names[] = {"000001.gpuir", "123456.gpuir", "manifest.tmp", "000001.gpuir.tmp.3"};
  gpuir_live *l;
  gpuir_error err;
  struct stat st;
  size_t i;
  (void)state;
  assert_int_equal(mkdir(folder, 0777), 0);
  make_file("notes.txt");
  for (i = 0; i < sizeof names / sizeof *names; i++) {
    make_file(names[i]);
    assert_int_equal(try_open(&l, &err), GPUIR_E_ARGUMENT);
    assert_non_null(strstr(err.msg, "named like those"));
    assert_int_equal(try_open(&l, &err), GPUIR_E_ARGUMENT);
    check_file(names[i]);
    assert_int_equal(unlink(in_folder(names[i])), 0);
  }
  assert_int_equal(stat(in_folder("lock"), &st), -1); /* none was made */
  make_file("lock");
  assert_int_equal(try_open(&l, &err), GPUIR_E_ARGUMENT);
  assert_non_null(strstr(err.msg, "'lock'"));
  for (i = 0; i < sizeof names / sizeof *names; i++) make_file(names[i]);
  assert_int_equal(try_open(&l, &err), GPUIR_E_ARGUMENT);
  check_file("lock");
  assert_int_equal(truncate(in_folder("lock"), 0), 0); /* one such as earlier versions made proves nothing either */
  for (i = 0; i < sizeof names / sizeof *names; i++) {
    assert_int_equal(try_open(&l, &err), GPUIR_E_ARGUMENT);
    assert_non_null(strstr(err.msg, "named like those"));
    check_file(names[i]);
    assert_int_equal(unlink(in_folder(names[i])), 0);
  }
  gpuir_live_close(open_live());
  check_file("notes.txt");
}

/* An index without a document is what a founding writes; one with documents is somebody's. */
static void test_other_index(void **state) {
  char kept[4600];
  gpuir_live *l = open_live();
  gpuir_error err;
  struct stat st;
  (void)state;
  replace(l, 1, 1);
  assert_int_equal(gpuir_live_commit(l, NULL), GPUIR_OK);
  assert_int_equal(gpuir_live_merge(l, 1, NULL, NULL), GPUIR_OK);
  assert_int_equal(gpuir_live_commit(l, NULL), GPUIR_OK);
  gpuir_live_close(l);
  assert_int_equal(unlink(in_folder("manifest")), 0); /* lost: what is left must not go, too */
  (void)strcpy(kept, in_folder(stat(in_folder("000003.gpuir"), &st) ? "000002.gpuir" : "000003.gpuir"));
  assert_int_equal(try_open(&l, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(stat(kept, &st), 0);
  assert_int_equal(rename(kept, in_folder("000001.gpuir")), 0);
  assert_int_equal(try_open(&l, &err), GPUIR_E_ARGUMENT);
  assert_int_equal(stat(in_folder("000001.gpuir"), &st), 0);
}

static int created(void *user) {
  ++*(int *)user;
  return 0;
}

static int refuse(void *user) {
  ++*(int *)user;
  return 1;
}

static int die(void *user) {
  (void)user;
  return raise(SIGKILL);
}

static int open_with(int (*on_create)(void *), int *calls, gpuir_error *err) {
  gpuir_live_desc desc;
  gpuir_live *l;
  int status;
  memset(&desc, 0, sizeof desc);
  desc.settings.path = folder;
  desc.create = 1;
  desc.on_create = on_create;
  desc.user = calls;
  status = gpuir_live_open(&desc, &l, err);
  gpuir_live_close(l);
  return status;
}

/* The caller is called once, before the first commit; it may end the opening, and a process that dies in there leaves
 * what the next one takes over. */
static void test_creating(void **state) {
  gpuir_error err;
  struct stat st;
  int calls = 0, status;
  pid_t pid;
  (void)state;
  assert_int_equal(open_with(refuse, &calls, &err), GPUIR_E_CANCELLED);
  assert_int_equal(calls, 1);
  assert_int_equal(rmdir(folder), 0); /* nothing is left in it */
  pid = fork();
  assert_true(pid >= 0);
  if (!pid) _exit(open_with(die, &calls, &err));
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFSIGNALED(status));
  assert_int_equal(stat(in_folder("lock"), &st), 0);
  assert_int_equal(stat(in_folder("manifest"), &st), -1);
  make_file("000001.gpuir"); /* half written */
  make_file("000001.gpuir.tmp.3");
  make_file("manifest.tmp");
  assert_int_equal(open_with(created, &calls, &err), GPUIR_OK);
  assert_int_equal(calls, 2);
  assert_int_equal(stat(in_folder("000001.gpuir.tmp.3"), &st), -1);
  assert_int_equal(stat(in_folder("manifest.tmp"), &st), -1);
  assert_int_equal(open_with(created, &calls, &err), GPUIR_OK);
  assert_int_equal(calls, 2); /* it is there */
}

/* ---- writers that lose the folder ---- */

static void expect_count(const gpuir_index *ix, uint32_t documents) {
  uint32_t df = 0;
  assert_int_equal(gpuir_term_count(ix, "every", 5, &df, NULL), GPUIR_OK);
  assert_int_equal(df, documents);
}

/* The folder verifies, and has so many documents with "every". */
static void expect_folder(uint32_t documents) {
  gpuir_index *ix;
  gpuir_error err;
  if (gpuir_open(folder, NULL, &ix, &err)) fail_msg("%s", err.msg);
  if (gpuir_verify(ix, &err)) fail_msg("%s", err.msg);
  expect_count(ix, documents);
  gpuir_close(ix);
}

/* Another writer changes the index. */
static void interfere(int merge) {
  gpuir_live *l = open_live();
  if (merge) assert_int_equal(gpuir_live_merge(l, 1, NULL, NULL), GPUIR_OK);
  else replace(l, 7, 1);
  assert_int_equal(gpuir_live_commit(l, NULL), GPUIR_OK);
  gpuir_live_close(l);
}

/* The files of the folder but for the lock. */
static unsigned count_segments(void) {
  unsigned n = 0, i;
  char name[32];
  struct stat st;
  for (i = 1; i < 40; i++) {
    (void)sprintf(name, "%06u.gpuir", i);
    n += !stat(in_folder(name), &st);
  }
  return n;
}

/* A writer whose lock was removed must not commit over what the next one has committed, nor remove its files: `what`
 * says how far it was. */
static void lose_lock(int merge, int replaced, int what) {
  gpuir_live *l = open_live();
  gpuir_index *before;
  gpuir_error err;
  unsigned i, segments;
  for (i = 0; i < 3; i++) {
    replace(l, i, 1);
    assert_int_equal(gpuir_live_commit(l, NULL), GPUIR_OK);
  }
  if (what) replace(l, 20, 1);
  if (what > 1) assert_int_equal(gpuir_live_refresh(l, &before, NULL), GPUIR_OK), gpuir_close(before);
  if (what > 1) replace(l, 1, 9);
  assert_int_equal(gpuir_live_refresh(l, &before, NULL), GPUIR_OK);
  assert_int_equal(unlink(in_folder("lock")), 0);
  if (replaced) make_file("lock");
  interfere(merge);
  segments = count_segments();
  if (!what) assert_int_equal(gpuir_live_delete(l, GPUIR_BY_NAME, "n1", 2, NULL, &err), GPUIR_OK);
  assert_int_equal(gpuir_live_commit(l, &err), GPUIR_E_BUSY);
  assert_non_null(strstr(err.msg, "replaced"));
  assert_null(strstr(err.msg, "remove"));
  assert_int_equal(gpuir_live_add(l, NULL, "x", 1, &err), GPUIR_E_BUSY); /* it can only be closed */
  expect_count(before, what ? 4 : 3);
  gpuir_live_close(l);
  expect_count(before, what ? 4 : 3);
  gpuir_close(before);
  assert_int_equal(count_segments(), segments);
  expect_folder(merge ? 3 : 4);
  gpuir_live_close(open_live());
  expect_folder(merge ? 3 : 4);
  assert_int_equal(folder_remove(folder), 0);
}

static void test_lost_lock(void **state) {
  unsigned i;
  (void)state;
  for (i = 0; i < 12; i++) lose_lock((int)(i & 1), (int)(i >> 1 & 1), (int)(i / 4));
}

/* The same lock, but another manifest: a backup that was restored. */
static void test_other_manifest(void **state) {
  gpuir_live *l = open_live();
  gpuir_error err;
  char copy[4600];
  (void)state;
  replace(l, 1, 1);
  assert_int_equal(gpuir_live_commit(l, NULL), GPUIR_OK);
  (void)strcpy(copy, in_folder("copy"));
  assert_int_equal(link(in_folder("manifest"), copy), 0);
  replace(l, 2, 1);
  assert_int_equal(gpuir_live_commit(l, NULL), GPUIR_OK);
  assert_int_equal(rename(copy, in_folder("manifest")), 0);
  replace(l, 3, 1);
  assert_int_equal(gpuir_live_commit(l, &err), GPUIR_E_BUSY);
  gpuir_live_close(l);
  expect_folder(1);
}

/* Who may read the index but not write it keeps no writer out: neither by a lock that it takes now, nor by one on a
 * file that it had open before. */
static void test_lock_of_reader(void **state) {
  const mode_t before = umask(022);
  gpuir_live *l = open_live();
  struct stat st;
  struct flock whole;
  int fd;
  (void)state;
  gpuir_live_close(l);
  assert_int_equal(stat(in_folder("lock"), &st), 0);
  assert_int_equal(st.st_mode & 0777, 0600);
  fd = open(in_folder("lock"), O_RDONLY);
  assert_int_equal(flock(fd, LOCK_EX), 0);
  gpuir_live_close(open_live());
  assert_int_equal(flock(fd, LOCK_UN), 0);
  memset(&whole, 0, sizeof whole);
  whole.l_type = F_WRLCK;
  assert_int_equal(fcntl(fd, F_OFD_SETLK, &whole), -1); /* it is open for reading */
  (void)close(fd);
  assert_int_equal(chmod(in_folder("manifest"), 0664), 0); /* who may write it may lock */
  gpuir_live_close(open_live());
  assert_int_equal(stat(in_folder("lock"), &st), 0);
  assert_int_equal(st.st_mode & 0777, 0660);
  (void)umask(before);
}

/* The lock of an earlier version, which locks by flock alone and leaves the file empty. */
static void test_earlier_lock(void **state) {
  gpuir_live *l;
  int fd;
  (void)state;
  gpuir_live_close(open_live());
  fd = open(in_folder("lock"), O_RDWR | O_TRUNC);
  assert_true(fd >= 0);
  assert_int_equal(flock(fd, LOCK_EX), 0);
  expect_busy();
  (void)close(fd);
  l = open_live();
  fd = open(in_folder("lock"), O_RDWR);
  assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1); /* an earlier version is kept out */
  (void)close(fd);
  gpuir_live_close(l);
}

/* What stands under the manifest's temporary name, or a segment's, is neither followed nor written to. */
static void test_links(void **state) {
  gpuir_live *l = open_live();
  char target[4300];
  (void)state;
  make_file("mine");
  (void)snprintf(target, sizeof target, "%s/mine", folder);
  replace(l, 1, 1);
  assert_int_equal(symlink(target, in_folder("manifest.tmp")), 0);
  assert_int_equal(gpuir_live_commit(l, NULL), GPUIR_OK);
  check_file("mine");
  replace(l, 1, 2);
  assert_int_equal(link(target, in_folder("manifest.tmp")), 0);
  assert_int_equal(gpuir_live_commit(l, NULL), GPUIR_OK);
  check_file("mine");
  assert_int_equal(symlink(target, in_folder("000004.gpuir")), 0);
  assert_int_equal(gpuir_live_add(l, NULL, "x", 1, NULL), GPUIR_E_IO);
  check_file("mine");
  gpuir_live_close(l);
}

/* New files get the mode of the manifest: who could not read the index cannot read what is added. */
static void test_modes(void **state) {
  static const char *const names[] = {"manifest", "000002.gpuir", "000003.gpuir", "000004.gpuir"};
  const mode_t before = umask(022);
  gpuir_live *l = open_live();
  struct stat st;
  size_t i;
  (void)state;
  assert_int_equal(stat(in_folder("manifest"), &st), 0);
  assert_int_equal(st.st_mode & 0777, 0644);
  gpuir_live_close(l);
  assert_int_equal(chmod(in_folder("manifest"), 0600), 0);
  if (!geteuid()) assert_int_equal(chown(in_folder("manifest"), 65534, 65534), 0);
  l = open_live();
  for (i = 0; i < 2; i++) {
    replace(l, (unsigned)i, 1);
    assert_int_equal(gpuir_live_commit(l, NULL), GPUIR_OK);
  }
  for (i = 0; i < 3; i++) {
    assert_int_equal(stat(in_folder(names[i]), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    if (!geteuid()) assert_int_equal(st.st_uid, 65534);
  }
  assert_int_equal(gpuir_live_merge(l, 1, NULL, NULL), GPUIR_OK);
  assert_int_equal(stat(in_folder(names[3]), &st), 0);
  assert_int_equal(st.st_mode & 0777, 0600);
  gpuir_live_close(l);
  for (i = 0; i < 2 && !geteuid(); i++) { /* where a group or all may make files, another user's is no example */
    assert_int_equal(chmod(folder, i ? 0777 : 02770), 0);
    assert_int_equal(chmod(in_folder("manifest"), 0660), 0);
    assert_int_equal(chown(in_folder("manifest"), 65534, 65534), 0);
    l = open_live();
    replace(l, 5, (unsigned)i);
    assert_int_equal(gpuir_live_commit(l, NULL), GPUIR_OK);
    assert_int_equal(stat(in_folder("manifest"), &st), 0);
    assert_int_equal(st.st_uid, 0);
    assert_int_equal(st.st_mode & 0777, 0640); /* what both the manifest and the umask allow */
    gpuir_live_close(l);
  }
  (void)umask(before);
}

/* ---- readers ---- */

static gpuir_live *writer;
static unsigned acts;

/* Commits and merges, so that what a reader's manifest names is gone. */
static void overtake(int at, const char *name) {
  (void)at;
  (void)name;
  acts++;
  replace(writer, 3, 100 + acts);
  if (gpuir_live_merge(writer, 1, NULL, NULL) || gpuir_live_commit(writer, NULL) ||
      gpuir_live_merge(writer, 1, NULL, NULL) || gpuir_live_commit(writer, NULL))
    abort();
}

static void overtake_always(int at, const char *name) {
  overtake(at, name);
  between = overtake_always;
}

static void test_overtaken(void **state) {
  gpuir_index *ix;
  gpuir_error err;
  uint32_t df;
  unsigned i;
  (void)state;
  writer = open_live();
  for (i = 0; i < 30; i++) replace(writer, i, 1);
  assert_int_equal(gpuir_live_commit(writer, NULL), GPUIR_OK);
  acts = 0;
  for (i = 0; i < 10; i++) {
    *(i % 2 ? &behind : &between) = overtake;
    assert_int_equal(gpuir_open(folder, NULL, &ix, &err), GPUIR_OK);
    assert_int_equal(acts, i + 1);
    assert_int_equal(gpuir_term_count(ix, "every", 5, &df, NULL), GPUIR_OK);
    assert_int_equal(df, 30);
    assert_int_equal(gpuir_verify(ix, NULL), GPUIR_OK);
    gpuir_close(ix);
  }
  between = overtake_always; /* a reader gives up at last */
  assert_int_equal(gpuir_open(folder, NULL, &ix, &err), GPUIR_E_BUSY);
  assert_null(ix);
  assert_non_null(strstr(err.msg, "keeps replacing"));
  between = NULL;
  gpuir_live_close(writer);
}

/* Commits rounds of 20 documents, each whole, and merges, until it is killed. */
static void write_on(void) {
  gpuir_live *l;
  unsigned round, i;
  if (try_open(&l, NULL)) _exit(8);
  for (round = 1;; round++) {
    for (i = 0; i < 20; i++) replace(l, i, round);
    if (round % 3 == 0 && gpuir_live_merge(l, round % 2, NULL, NULL)) _exit(8);
    if (gpuir_live_commit(l, NULL)) _exit(8);
  }
}

static double seconds(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Returns the round of a snapshot's documents, all of which must have it. */
static unsigned round_of(const gpuir_index *ix) {
  gpuir_index_info info;
  unsigned round = 0, found = 0;
  gpuir_doc doc;
  uint64_t d;
  assert_int_equal(gpuir_index_get_info(ix, &info), GPUIR_OK);
  assert_int_equal(info.documents, 20);
  for (d = 0; d < info.docids; d++) {
    char text[64];
    if (gpuir_doc_get(ix, (uint32_t)d, &doc)) continue;
    assert_in_range(doc.stored_bytes, 1, sizeof text - 1);
    assert_int_equal(gpuir_doc_text(ix, (uint32_t)d, 0, text, (size_t)doc.stored_bytes), GPUIR_OK);
    text[doc.stored_bytes] = 0;
    assert_int_equal(sscanf(text, "every round%u", &found), 1);
    if (round && found != round) fail_msg("rounds %u and %u in one snapshot", round, found);
    round = found;
  }
  return round;
}

static unsigned stops, gone; /* how often a reader was stopped, and then found the segment removed */

/* Stops a reader until the segment that it is about to open has been removed, at most for 0.1 s. */
static void linger(int at, const char *name) {
  const double until = seconds() + 0.1;
  const struct timespec ms = {0, 1000000};
  struct stat st;
  int there = 1;
  stops++;
  while (there && seconds() < until) {
    there = !fstatat(at, name, &st, 0);
    if (there) (void)nanosleep(&ms, NULL);
  }
  gone += !there;
}

/* A reader beside a process that commits and merges, which is stopped in every second opening while what it is about
 * to open is removed: every snapshot is one commit's, and they go forward. */
static void test_reader_beside_writer(void **state) {
  const double until = seconds() + (corpus_long_run() ? 60 : 2);
  gpuir_index *ix, *before = NULL;
  unsigned reads = 0, round = 0, advanced = 0, i;
  gpuir_live *l = open_live();
  pid_t pid;
  (void)state;
  for (i = 0; i < 20; i++) replace(l, i, 1);
  assert_int_equal(gpuir_live_commit(l, NULL), GPUIR_OK);
  gpuir_live_close(l);
  pid = fork();
  if (!pid) write_on();
  stops = gone = 0;
  while (seconds() < until || advanced < 3 || gone < 10) {
    gpuir_open_desc desc;
    gpuir_error err;
    unsigned now;
    memset(&desc, 0, sizeof desc);
    desc.share = reads % 4 == 3 ? before : NULL;
    between = reads % 4 == 0 ? linger : NULL;
    behind = reads % 4 == 2 ? linger : NULL;
    if (gpuir_open(folder, &desc, &ix, &err)) {
      (void)kill(pid, SIGKILL);
      fail_msg("after %u reads: %s", reads, err.msg);
    }
    gpuir_close(before);
    before = ix;
    now = round_of(ix);
    assert_true(now >= round);
    advanced += now > round;
    round = now;
    reads++;
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0); /* the writer goes on */
  }
  gpuir_close(before);
  (void)kill(pid, SIGKILL);
  assert_int_equal(waitpid(pid, NULL, 0), pid);
  print_message("%u reads of %u commits; %u times stopped before a segment was opened, %u times it was removed\n",
      reads, round, stops, gone);
  gpuir_live_close(open_live());
}

/* ---- what a refresh asks of the system ---- */

static void call_marker(void) { (void)syscall(SYS_getppid); }

/* The traced process: adds 50 documents and refreshes, between two calls of getppid. */
static void refresh_traced(void) {
  gpuir_live *l;
  gpuir_index *ix;
  unsigned i;
  if (try_open(&l, NULL)) _exit(8);
  for (i = 0; i < 200; i++) replace(l, i, 1);
  if (gpuir_live_refresh(l, &ix, NULL)) _exit(8);
  gpuir_close(ix);
  if (ptrace(PTRACE_TRACEME, 0, NULL, NULL)) _exit(7);
  (void)raise(SIGSTOP);
  call_marker();
  for (i = 0; i < 50; i++) replace(l, i, 2);
  if (gpuir_live_refresh(l, &ix, NULL)) _exit(8);
  call_marker();
  _exit(0);
}

/* Counts calls between the markers, of all threads, and those that sync. 1; 0 if processes cannot be traced here. */
static int trace(pid_t pid, unsigned *calls, unsigned *syncs) {
  int status, inside = 0, started = 0;
  pid_t who;
  *calls = *syncs = 0;
  while ((who = waitpid(-1, &status, __WALL)) > 0) {
    struct __ptrace_syscall_info info;
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      if (who != pid) continue;
      if (started && (!WIFEXITED(status) || WEXITSTATUS(status))) fail_msg("the traced process failed");
      return started;
    }
    if (!started) {
      started = !ptrace(PTRACE_SETOPTIONS, pid, NULL,
          (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL));
    } else if (WSTOPSIG(status) == (SIGTRAP | 0x80) &&
        ptrace((enum __ptrace_request)PTRACE_GET_SYSCALL_INFO, who, (void *)sizeof info, &info) > 0 &&
        info.op == PTRACE_SYSCALL_INFO_ENTRY) {
      const long number = (long)info.entry.nr;
      if (number == SYS_getppid) inside = !inside;
      *calls += (unsigned)(inside && number != SYS_getppid);
      *syncs += (unsigned)(inside &&
          (number == SYS_fsync || number == SYS_fdatasync || number == SYS_sync || number == SYS_syncfs ||
              number == SYS_msync));
    }
    (void)ptrace(PTRACE_SYSCALL, who, NULL, NULL);
  }
  return 0;
}

static void test_calls_of_refresh(void **state) {
  unsigned calls, syncs;
  const pid_t pid = fork();
  (void)state;
  assert_true(pid >= 0);
  if (!pid) refresh_traced();
  if (!trace(pid, &calls, &syncs)) skip();
  print_message("a refresh of 50 documents: %u system calls\n", calls);
  assert_in_range(calls, 1, 40);
  assert_int_equal(syncs, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, remove_folder, remove_folder)

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      TEST(test_two_processes),
      TEST(test_one_process_twice),
      TEST(test_lock_opened_elsewhere),
      TEST(test_forked_child_keeps_lock),
      TEST(test_other_files),
      TEST(test_other_index),
      TEST(test_creating),
      TEST(test_lost_lock),
      TEST(test_other_manifest),
      TEST(test_lock_of_reader),
      TEST(test_earlier_lock),
      TEST(test_links),
      TEST(test_modes),
      TEST(test_overtaken),
      TEST(test_reader_beside_writer),
      TEST(test_calls_of_refresh),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests_name("writers", tests, NULL, NULL);
}
