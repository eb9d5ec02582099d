/* source.c - opening the sources of documents, and reading parts of them, without a mount. */
#include "tools/common/source.c"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

#include "folder.h"

static char folder[] = "/tmp/gpuirfs-source-XXXXXX";

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) ? chdir(folder) : -1;
}

static int remove_folder(void **state) {
  (void)state;
  return folder_remove(folder);
}

static void write_file(const char *name, const char *bytes, size_t n) {
  FILE *f = fopen(name, "w");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
}

/* ---- paths --------------------------------------------------------------------------------------------- */

static void check_path(const char *path, int want_rc, const char *want) {
  char out[64];
  int rc = source_path("/base/dir", "/mnt/x", path, strlen(path), out, sizeof out);
  assert_int_equal(rc, want_rc);
  if (want) assert_string_equal(out, want);
}

static void paths(void **state) {
  char out[64];
  (void)state;
  check_path("/a/b", 0, "/a/b");
  check_path("a/b", 0, "/base/dir/a/b");
  check_path("../a//./b/", 0, "/base/a/b");
  check_path("../../../../a", 0, "/a");
  check_path("/..", 0, "/");
  check_path("/mnt/xy", 0, "/mnt/xy");
  check_path("/mnt/x/doc/1", ELOOP, NULL);
  check_path("/mnt//y/../x", ELOOP, NULL);
  check_path("../../mnt/x", ELOOP, NULL);
  check_path("", ENOENT, NULL);
  assert_int_equal(source_path("/", "/m", "/a\0b", 4, out, sizeof out), ENOENT);
  assert_int_equal(source_path("/", "/m", "/aaaaaaaaaaaaaaa", 16, out, 16), ENAMETOOLONG);
  assert_int_equal(source_path("", "/m", "a", 1, out, sizeof out), 0);
  assert_string_equal(out, "/a");
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static int open_below(const char *name, dev_t mount) { /* its error; the descriptor is closed */
  char path[PATH_MAX];
  struct stat st, want;
  int fd, rc;
  snprintf(path, sizeof path, "%s%s%s", name[0] == '/' ? "" : folder, name[0] == '/' ? "" : "/", name);
  rc = source_open(path, mount, &fd, &st);
  assert_int_equal(fd >= 0, rc == 0);
  if (rc) return rc;
  assert_int_equal(stat(path, &want), 0);
  assert_int_equal(st.st_ino, want.st_ino);
  assert_int_equal(st.st_dev, want.st_dev);
  close(fd);
  return 0;
}

static void opens_files(void **state) {
  char name[64];
  struct stat st;
  int i;
  (void)state;
  assert_int_equal(mkdir("d", 0755), 0);
  assert_int_equal(mkdir("d/e", 0755), 0);
  write_file("d/e/f", "x\n", 2);
  assert_int_equal(open_below("d/e/f", 0), 0);
  assert_int_equal(open_below("d//./e/../e/f", 0), 0);
  assert_int_equal(open_below("d/e/g", 0), ENOENT);
  assert_int_equal(open_below("d/e/f/g", 0), ENOTDIR);
  assert_int_equal(open_below("d", 0), EINVAL);
  assert_int_equal(open_below("/", 0), EINVAL);
  assert_int_equal(symlink("e/f", "d/relative"), 0);
  assert_int_equal(symlink("../d/e", "d/folder"), 0);
  assert_int_equal(symlink("nowhere", "d/dangling"), 0);
  assert_int_equal(symlink("round", "round"), 0);
  snprintf(name, sizeof name, "%s/d/e/f", folder);
  assert_int_equal(symlink(name, "absolute"), 0);
  assert_int_equal(open_below("d/relative", 0), 0);
  assert_int_equal(open_below("d/folder/f", 0), 0);
  assert_int_equal(open_below("absolute", 0), 0);
  assert_int_equal(open_below("d/dangling", 0), ENOENT);
  assert_int_equal(open_below("round", 0), ELOOP);
  assert_int_equal(symlink("d/e/f", "l0"), 0);
  for (i = 1; i < 41; i++) {
    char to[16];
    snprintf(to, sizeof to, "l%d", i - 1);
    snprintf(name, sizeof name, "l%d", i);
    assert_int_equal(symlink(to, name), 0);
  }
  assert_int_equal(open_below("l39", 0), 0); /* 40 links, as many as the kernel follows */
  assert_int_equal(open_below("l40", 0), ELOOP);
  /* A device that is not to be entered, wherever the path comes to it. */
  assert_int_equal(stat(folder, &st), 0);
  assert_int_equal(open_below("d/e/f", st.st_dev), ELOOP);
}

static void opens_nothing_else(void **state) {
  struct sockaddr_un address;
  int s = socket(AF_UNIX, SOCK_STREAM, 0);
  (void)state;
  assert_int_equal(mkfifo("fifo", 0666), 0);
  memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  strcpy(address.sun_path, "socket");
  assert_int_equal(bind(s, (struct sockaddr *)&address, sizeof address), 0);
  close(s);
  assert_int_equal(open_below("fifo", 0), EINVAL);
  assert_int_equal(open_below("socket", 0), EINVAL);
  assert_int_equal(open_below("/dev/null", 0), EINVAL);
}

/* The kernel's own file systems hold secrets of the daemon, and ways around every folder. */
static void enters_no_proc(void **state) {
  char path[128];
  (void)state;
  write_file("plain", "x\n", 2);
  assert_int_equal(open_below("/proc/self/environ", 0), EACCES);
  assert_int_equal(open_below("/proc/version", 0), EACCES);
  snprintf(path, sizeof path, "/proc/self/root%s/plain", folder);
  assert_int_equal(open_below(path, 0), EACCES);
  assert_int_equal(symlink(path, "magic"), 0);
  assert_int_equal(open_below("magic", 0), EACCES);
  assert_int_equal(symlink("/proc/self/cwd", "cwd"), 0);
  assert_int_equal(open_below("cwd/plain", 0), EACCES);
  if (access("/sys/kernel", F_OK) == 0) assert_int_equal(open_below("/sys/kernel/uevent_seqnum", 0), EACCES);
}

static void check_mount(const char *line, uint64_t id, unsigned major_number, unsigned minor_number, int want) {
  char copy[512];
  place p;
  int allowed = -1;
  snprintf(copy, sizeof copy, "%s", line);
  p.mount = id;
  p.device = makedev(major_number, minor_number);
  p.type = S_IFDIR;
  assert_int_equal(mount_line(copy, &p, &allowed), want >= 0);
  assert_int_equal(allowed, want);
}

/* Which file systems may be entered, by their lines in mountinfo. */
static void mounts(void **state) {
  char own[200];
  (void)state;
  check_mount("36 35 98:0 / /data rw shared:1 - ext4 /dev/sda1 rw", 36, 98, 0, 0);
  check_mount("36 35 98:0 / /data rw shared:1 - ext4 /dev/sda1 rw", 37, 98, 0, -1);
  check_mount("36 35 98:0 / /data rw - ext4 /dev/sda1 rw", 0, 98, 0, 0); /* by its device */
  check_mount("36 35 98:0 / /data rw - ext4 /dev/sda1 rw", 0, 98, 1, -1);
  check_mount("36 35 0:5 / /m rw - fuse.gpuirfs /a/b.gpuir rw,user_id=0", 36, 0, 5, ELOOP);
  check_mount("36 35 0:5 / /m rw - fuse.sshfs host: rw,user_id=0,group_id=0", 36, 0, 5, 0);
  check_mount("36 35 0:5 / /m rw - fuse.sshfs host: rw,user_id=4000000000", 36, 0, 5, EACCES);
  check_mount("36 35 0:5 / /m rw - fuse x rw", 36, 0, 5, EACCES);
  check_mount("36 35 0:5 / /m rw - proc proc rw", 36, 0, 5, EACCES);
  check_mount("36 35 0:5 / /m rw - cgroup2 cgroup2 rw", 36, 0, 5, EACCES);
  check_mount("36 35 0:5 / /m rw - virtiofs host rw", 36, 0, 5, 0);
  check_mount("36 35 0:5 / /m rw", 36, 0, 5, EACCES);
  check_mount("garbage", 36, 0, 5, -1);
  snprintf(own, sizeof own, "36 35 0:5 / /m rw - fuse.x y rw,user_id=%lu", (unsigned long)geteuid());
  check_mount(own, 36, 0, 5, 0);
}

/* ---- parts --------------------------------------------------------------------------------------------- */

/* What was read; at most 200,000 bytes. */
typedef struct read_bytes {
  char data[200000];
  size_t len;
} read_bytes;

static int put_bytes(void *sink, const void *bytes, size_t n) {
  read_bytes *to = (read_bytes *)sink;
  if (n > sizeof to->data - to->len) return EFBIG;
  memcpy(to->data + to->len, bytes, n);
  to->len += n;
  return 0;
}

static read_bytes b;

static int read_part(const char *name, const source_range *range) {
  struct stat st;
  int fd, rc;
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  b.len = 0;
  assert_int_equal(source_open(path, 0, &fd, &st), 0);
  rc = source_read(fd, range, put_bytes, &b);
  close(fd);
  return rc;
}

static void check_part(const char *name, uint64_t offset, const char *want, size_t n, uint64_t wrong, int want_rc) {
  source_range range;
  memset(&range, 0, sizeof range);
  range.offset = offset;
  range.bytes = n;
  range.hash = wrong ? wrong : XXH3_64bits(want, n);
  assert_int_equal(read_part(name, &range), want_rc);
  if (!want_rc) {
    assert_int_equal(b.len, n);
    if (n) assert_memory_equal(b.data, want, n);
  }
}

static void parts(void **state) {
  static char text[180000];
  size_t i;
  (void)state;
  for (i = 0; i < sizeof text; i++) text[i] = (char)(i * 2654435761u >> 24);
  write_file("part", text, sizeof text);
  check_part("part", 0, text, sizeof text, 0, 0); /* more blocks than one */
  check_part("part", 1, text + 1, 65536, 0, 0);
  check_part("part", sizeof text - 7, text + sizeof text - 7, 7, 0, 0);
  check_part("part", sizeof text, text, 0, 0, 0);
  check_part("part", 5, text + 6, 100, 0, ESTALE); /* other bytes */
  check_part("part", sizeof text - 7, text + sizeof text - 8, 8, 0, ESTALE); /* too short */
  check_part("part", sizeof text + 1, text, 1, 0, ESTALE); /* behind its end */
  check_part("part", UINT64_MAX - 3, text, 3, 0, ESTALE);
  check_part("part", INT64_MAX, text, 1, 0, ESTALE);
  check_part("part", 0, text, 3, 1, ESTALE);
  write_file("empty", "", 0);
  check_part("empty", 0, text, 1, 0, ESTALE);
  check_part("empty", 0, text, 0, 0, 0);
}

static int calls;

static int stops(void *after) { return ++calls > *(int *)after; }

static void ends(void **state) {
  static char text[200001];
  source_range range;
  struct timespec now;
  int after = 0;
  (void)state;
  write_file("long", text, sizeof text);
  memset(&range, 0, sizeof range);
  range.bytes = sizeof text - 1; /* of no known hash */
  assert_int_equal(read_part("long", &range), 0);
  assert_int_equal(b.len, sizeof text - 1);
  range.bytes = sizeof text;
  assert_int_equal(read_part("long", &range), EFBIG); /* what the sink says */
  range.bytes = sizeof text - 1;
  range.stopped = stops;
  range.stopped_arg = &after;
  for (after = 0; after < 4; after++) { /* asked before each block of 64 KiB */
    calls = 0;
    assert_int_equal(read_part("long", &range), EINTR);
    assert_int_equal(calls, after + 1);
  }
  calls = 0;
  assert_int_equal(read_part("long", &range), 0);
  range.stopped = NULL;
  range.deadline = 1;
  assert_int_equal(read_part("long", &range), ETIMEDOUT);
  clock_gettime(CLOCK_MONOTONIC, &now);
  range.deadline = ((uint64_t)now.tv_sec + 1000) * UINT64_C(1000000000);
  assert_int_equal(read_part("long", &range), 0);
}

/* ---- what is stored of paths --------------------------------------------------------------------------- */

static void stored_paths(void **state) {
  static const char *const rows[][3] = {{"/a/b", "/a/b/c", "c"}, {"/a/b", "/a/b/c/d.txt", "c/d.txt"},
      {"/a/b", "/a/b", ""}, {"/a/b", "/a/bc", "/a/bc"}, {"/a/b", "/a/c", "/a/c"}, {"/", "/a", "/a"},
      {"/a", "/a/../b", "/a/../b"}, {"/a", "/a/b/..", "/a/b/.."}, {"/a", "/a/..b/c..", "..b/c.."},
      {"/a", "/a/b/../c", "/a/b/../c"}, {"/a", "/a/...", "..."}};
  size_t i;
  (void)state;
  for (i = 0; i < sizeof rows / sizeof *rows; i++)
    assert_string_equal(source_stored(rows[i][0], rows[i][1]), rows[i][2]);
}

/* Checks where the relative sources of an index at folder/name begin: at folder/want. */
static void check_home(const char *name, const char *want) {
  char path[PATH_MAX], expected[PATH_MAX], *home, *real;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  snprintf(expected, sizeof expected, "%s/%s", folder, want);
  home = source_home(path);
  real = realpath(expected, NULL);
  assert_non_null(home);
  assert_non_null(real);
  assert_string_equal(home, real);
  free(home);
  free(real);
}

static void homes_of_indexes(void **state) {
  char path[PATH_MAX], *home;
  (void)state;
  snprintf(path, sizeof path, "%s/home", folder);
  assert_int_equal(mkdir(path, 0755), 0);
  snprintf(path, sizeof path, "%s/home/live", folder);
  assert_int_equal(mkdir(path, 0755), 0);
  write_file("home/x.gpuir", "x", 1);
  snprintf(path, sizeof path, "%s/link", folder);
  assert_int_equal(symlink("home/x.gpuir", path), 0);
  check_home("home/x.gpuir", "home");
  check_home("home/live", "home");
  check_home("home/live/", "home");
  check_home("link", "home"); /* links are followed */
  check_home("home/new.gpuir", "home");
  check_home("home/new.live/", "home");
  /* to a file that is not there yet, by way of another link */
  snprintf(path, sizeof path, "%s/early", folder);
  assert_int_equal(symlink("home/onward", path), 0);
  snprintf(path, sizeof path, "%s/home/onward", folder);
  assert_int_equal(symlink("live/later.gpuir", path), 0);
  check_home("early", "home/live");
  snprintf(path, sizeof path, "%s/home/round", folder);
  assert_int_equal(symlink("round", path), 0);
  check_home("home/round", "home"); /* it ends */
  home = source_home("new");
  assert_non_null(home);
  assert_int_equal(home[0], '/');
  free(home);
  assert_null(source_home("/nowhere/at/all/x.gpuir"));
  home = source_home("/new");
  assert_string_equal(home, "/");
  free(home);
}

/* ---- texts --------------------------------------------------------------------------------------------- */

/* Checks what becomes of a document whose text was `indexed`. */
static void check_text(const char *name, const gpuir_doc *at, const char *indexed, size_t most, int want_rc) {
  gpuir_doc doc = *at;
  char path[PATH_MAX], *text = NULL;
  source_limits limits;
  struct stat st;
  size_t len = 0;
  int fd, rc;
  memset(&limits, 0, sizeof limits);
  limits.most = most;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  if (indexed) doc.hash = XXH3_64bits(indexed, strlen(indexed));
  rc = source_open(path, 0, &fd, &st);
  if (!rc) rc = source_read_text(fd, &st, &doc, &limits, &text, &len);
  if (fd >= 0) close(fd);
  assert_int_equal(rc, want_rc);
  if (!want_rc && indexed) {
    assert_int_equal(len, strlen(indexed));
    assert_memory_equal(text, indexed, len);
  }
  free(text);
}

static void texts(void **state) {
  static const char text[] = "one\ntwo\nthree\nfour";
  gpuir_doc d;
  (void)state;
  write_file("text", text, strlen(text));
  memset(&d, 0, sizeof d);
  check_text("text", &d, text, 1000, 0); /* no place: the whole file */
  check_text("text", &d, NULL, 1000, 0); /* no hash either */
  check_text("text", &d, "one", 1000, ESTALE);
  check_text("text", &d, text, strlen(text) - 1, EFBIG);
  check_text("gone", &d, text, 1000, ENOENT);
  check_text(".", &d, text, 1000, EINVAL);
  d.first_line = 2; /* lines */
  d.last_line = 3;
  check_text("text", &d, "two\nthree\n", 1000, 0);
  check_text("text", &d, "one\ntwo\n", 1000, ESTALE);
  d.last_line = 9;
  check_text("text", &d, "two\nthree\nfour", 1000, 0);
  d.source_offset = 4; /* bytes */
  d.source_bytes = 4;
  check_text("text", &d, "two\n", 1000, 0);
  check_text("text", &d, "two\n", 3, EFBIG);
  check_text("text", &d, "two", 1000, ESTALE);
  d.source_bytes = 400;
  check_text("text", &d, "two\n", 1000, ESTALE);
  write_file("text", "one\nTWO\n", 8);
  d.source_bytes = 4;
  check_text("text", &d, "two\n", 1000, ESTALE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stored_paths),
      cmocka_unit_test(homes_of_indexes),
      cmocka_unit_test(paths),
      cmocka_unit_test(opens_files),
      cmocka_unit_test(opens_nothing_else),
      cmocka_unit_test(mounts),
      cmocka_unit_test(enters_no_proc),
      cmocka_unit_test(parts),
      cmocka_unit_test(ends),
      cmocka_unit_test(texts),
  };
  return cmocka_run_group_tests_name("source", tests, make_folder, remove_folder);
}
