/* source.c - opening the sources of documents, and reading lines of them, without a mount. */
#include "fuse/common.c"
#include "fuse/lines.c"
#include "fuse/source.c"
#include "tools/common/text.c"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

static char folder[] = "/tmp/gpuirfs-source-XXXXXX";

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) ? chdir(folder) : -1;
}

static int remove_folder(void **state) {
  char command[128];
  (void)state;
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
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

static void check_mount(const char *line, uint64_t id, unsigned major_number, unsigned minor_number,
                        int want) {
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

/* ---- lines --------------------------------------------------------------------------------------------- */

static line_memory memory;

static int read_lines(const char *name, uint32_t first, uint32_t last, line_range *more, buf *b) {
  line_range range;
  struct stat st;
  int fd, rc;
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  memset(&range, 0, sizeof range);
  range.max_bytes = UINT64_MAX;
  if (more) range = *more;
  range.first = first;
  range.last = last;
  memset(b, 0, sizeof *b);
  b->max = 1000;
  assert_int_equal(source_open(path, 0, &fd, &st), 0);
  rc = lines_read(&memory, b, fd, &st, &range);
  close(fd);
  return rc;
}

static void check_lines(const char *name, uint32_t first, uint32_t last, int want_rc, const char *want) {
  buf b;
  assert_int_equal(read_lines(name, first, last, NULL, &b), want_rc);
  assert_int_equal(b.len, strlen(want));
  if (b.len) assert_memory_equal(b.data, want, b.len);
  buf_free(&b);
}

static void ranges(void **state) {
  (void)state;
  write_file("four", "one\ntwo\n\nfour", 13);
  check_lines("four", 1, 1, 0, "one\n");
  check_lines("four", 2, 3, 0, "two\n\n");
  check_lines("four", 3, 3, 0, "\n");
  check_lines("four", 4, 4, 0, "four");
  check_lines("four", 1, UINT32_MAX, 0, "one\ntwo\n\nfour");
  check_lines("four", 5, 9, ENODATA, "");
  write_file("empty", "", 0);
  check_lines("empty", 1, 1, ENODATA, "");
}

static uint64_t bytes_read(void) { /* by this process, with read and pread */
  FILE *f = fopen("/proc/self/io", "r");
  unsigned long long n = 0;
  assert_non_null(f);
  assert_int_equal(fscanf(f, "rchar: %llu", &n), 1);
  fclose(f);
  return n;
}

#define LINES 300000u /* of 22 bytes, and every 1000th of 5,000 */

static size_t line_of(unsigned i, char *line) {
  size_t n = (size_t)sprintf(line, "this is line %08u", i);
  if (i % 1000 == 0) {
    memset(line + n, 'x', 5000);
    n += 5000;
  }
  line[n++] = '\n';
  line[n] = 0;
  return n;
}

static void write_long(const char *name, int old) {
  const struct timespec past[2] = {{1000000000, 0}, {1000000000, 0}};
  char line[6000];
  unsigned i;
  FILE *f = fopen(name, "w");
  assert_non_null(f);
  for (i = 1; i <= LINES; i++) {
    size_t n = line_of(i, line);
    assert_int_equal(fwrite(line, 1, n, f), n);
  }
  assert_int_equal(fclose(f), 0);
  if (old) assert_int_equal(utimensat(AT_FDCWD, name, past, 0), 0);
}

static void check_line(const char *name, unsigned i) {
  char want[6000];
  buf b;
  size_t n = line_of(i, want);
  line_range range;
  memset(&range, 0, sizeof range);
  range.max_bytes = UINT64_MAX;
  if (n > 1000) return;
  assert_int_equal(read_lines(name, i, i, &range, &b), 0);
  assert_int_equal(b.len, n);
  assert_memory_equal(b.data, want, n);
  buf_free(&b);
}

/* A chunk far into a file costs what lies between it and the last mark. */
static void remembers(void **state) {
  uint64_t before, first, second;
  unsigned i, at = 1;
  (void)state;
  write_long("long", 1);
  sleep(LINE_RACY_SECONDS + 1); /* for the time of its inode */
  before = bytes_read();
  check_line("long", LINES - 1);
  first = bytes_read() - before;
  before = bytes_read();
  for (i = 0; i < 10; i++) check_line("long", LINES - 2 - i);
  second = bytes_read() - before;
  assert_true(first > LINES * 22);
  assert_true(second < first / 2); /* ten of them, and what /proc takes */
  for (i = 0; i < 3000; i++) {
    at = (at * 7919u + 13) % LINES;
    check_line("long", at + 1);
  }
  assert_in_range(memory.files[0].n + memory.files[1].n, 50, 2 * LINE_MARKS);
}

/* A file that changes loses its marks; one that has just changed gets none. */
static void forgets(void **state) {
  char want[6000];
  buf b;
  size_t i, n;
  (void)state;
  write_long("fresh", 0);
  n = 0;
  for (i = 0; i < LINE_FILES; i++) n += memory.files[i].used != 0;
  check_line("fresh", LINES - 1);
  for (i = 0; i < LINE_FILES; i++) n -= memory.files[i].used != 0;
  assert_int_equal(n, 0);
  check_line("long", LINES - 1);
  assert_int_equal(rename("fresh", "long"), 0);
  write_file("fresh", "a\nb\n", 4);
  check_line("long", LINES - 3);
  assert_int_equal(rename("fresh", "long"), 0);
  assert_int_equal(read_lines("long", 2, 2, NULL, &b), 0);
  line_of(2, want);
  assert_int_equal(b.len, 2);
  assert_memory_equal(b.data, "b\n", 2);
  buf_free(&b);
}

/* More marks than one file may have: every other one goes, and what is left is still right. */
static void thins(void **state) {
  struct stat st;
  line_mark mark;
  uint64_t i;
  (void)state;
  memset(&st, 0, sizeof st);
  st.st_ino = 12345;
  for (i = 1; i <= 3 * LINE_MARKS; i++) {
    mark.line = i * 10;
    mark.offset = i * LINE_SPACING;
    memory_note(&memory, &st, mark);
  }
  for (i = 1; i < 30 * LINE_MARKS; i += 997) {
    memory_before(&memory, &st, i, &mark);
    assert_true(mark.line < i || mark.offset == 0);
    assert_int_equal(mark.offset, mark.offset ? mark.line / 10 * LINE_SPACING : 0);
    assert_true(i - mark.line <= 10 * 4 + 1);
  }
  /* And more files than are remembered. */
  for (i = 0; i < 3 * LINE_FILES; i++) {
    st.st_ino = (ino_t)i;
    mark.line = mark.offset = LINE_SPACING;
    memory_note(&memory, &st, mark);
  }
  memory_before(&memory, &st, UINT64_MAX, &mark);
  assert_int_equal(mark.offset, LINE_SPACING);
  st.st_ino = 0;
  memory_before(&memory, &st, UINT64_MAX, &mark);
  assert_int_equal(mark.offset, 0);
}

static int count_down(void *arg) { return --*(int *)arg < 0; }

static void ends(void **state) {
  line_range range;
  buf b;
  int blocks = 3;
  (void)state;
  write_long("ends", 1);
  memset(&range, 0, sizeof range);
  range.max_bytes = UINT64_MAX;
  range.stopped = count_down;
  range.stopped_arg = &blocks;
  assert_int_equal(read_lines("ends", LINES, LINES, &range, &b), EINTR);
  assert_int_equal(blocks, -1);
  buf_free(&b);
  range.stopped = NULL;
  range.deadline = 1; /* long ago */
  assert_int_equal(read_lines("ends", 1, 1, &range, &b), ETIMEDOUT);
  buf_free(&b);
  range.deadline = nanoseconds() + UINT64_C(3600000000000);
  assert_int_equal(read_lines("ends", 1, 1, &range, &b), 0);
  buf_free(&b);
  range.max_bytes = 1 << 20;
  assert_int_equal(read_lines("ends", LINES, LINES, &range, &b), EFBIG);
  buf_free(&b);
  range.max_bytes = UINT64_MAX; /* more than an answer may have */
  assert_int_equal(read_lines("ends", 1, LINES, &range, &b), EFBIG);
  assert_in_range(b.len, 0, 1000);
  buf_free(&b);
}

/* Where the bound ends one call, the next goes on: a file of any size is read in the end. */
static void goes_on(void **state) {
  line_range range;
  buf b;
  int calls = 0, rc;
  (void)state;
  sleep(LINE_RACY_SECONDS + 1);
  memset(&range, 0, sizeof range);
  range.max_bytes = 1 << 20;
  do {
    rc = read_lines("ends", LINES - 1, LINES - 1, &range, &b);
    buf_free(&b);
  } while (rc == EFBIG && ++calls < 20);
  assert_int_equal(rc, 0);
  assert_in_range(calls, 5, 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(paths),   cmocka_unit_test(opens_files),    cmocka_unit_test(opens_nothing_else),
      cmocka_unit_test(mounts),  cmocka_unit_test(enters_no_proc), cmocka_unit_test(ranges),
      cmocka_unit_test(ends),    cmocka_unit_test(goes_on),        cmocka_unit_test(remembers),
      cmocka_unit_test(forgets), cmocka_unit_test(thins),
  };
  lines_init(&memory);
  return cmocka_run_group_tests_name("source", tests, make_folder, remove_folder);
}
