/* 39_writer.c - what the writer does when files fail: full disks, limits, interruptions, the death of the process */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>

/* The allocation of files, which a signal interrupts as often as is said here: the library calls this one. */
static int interruptions;

int posix_fallocate(int fd, off_t from, off_t n) {
  int (*real)(int, off_t, off_t);
  if (interruptions) {
    interruptions--;
    return EINTR;
  }
  *(void **)&real = dlsym(RTLD_NEXT, "posix_fallocate");
  return real(fd, from, n);
}

#include "private.h"

#include <errno.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "alloc.h"
#include "rng.h"
#include "collection.h"

/* Every file size at which the disk could refuse. */
static void test_file_size_limit(void **state) {
  gpuir_builder_desc d = desc_of(path);
  struct rlimit old, limit;
  gpuir_error err;
  char *before;
  size_t n = 0, i;
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  (void)state;
  empty_folder();
  assert_int_equal(build(&d, 3500, NULL, &err), 0);
  before = slurp(path, &n);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  for (d.threads = 1; d.threads <= 2; d.threads++) {
    for (i = 1; i < 24; i++) {
      int status;
      limit = old;
      limit.rlim_cur = (rlim_t)(n * i / 24);
      assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
      status = build(&d, 3500, NULL, &err);
      assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
      assert_int_equal(status, GPUIR_E_IO);
      assert_non_null(strstr(err.msg, "x.gpuir.tmp"));
      assert_int_equal(nfiles(folder), 1);
      assert_same_file(path, before, n);
    }
  }
  free(before);
  (void)signal(SIGXFSZ, handler);
}

static void test_interrupted(void **state) {
  gpuir_builder_desc d = desc_of(path);
  gpuir_error err;
  unsigned large;
  (void)state;
  for (large = 0; large < 2; large++) { /* temporary files in place of memory, or none */
    if (large) d.memory = 0;
    interruptions = 3;
    if (build(&d, 6000, NULL, &err)) fail_msg("%s", err.msg);
    assert_int_equal(interruptions, 0);
  }
  (void)unlink(path);
}

static void test_full_disk(void **state) {
  char where[96], index[128] = "";
  gpuir_builder_desc d = desc_of(index);
  gpuir_error err;
  int kb, ok = 0, full = 0;
  (void)state;
  path_of(where, "disk");
  (void)snprintf(index, sizeof index, "%s/x.gpuir", where);
  (void)mkdir(where, 0700);
  for (kb = 64; kb <= 65536; kb += kb / 2) {
    char options[32];
    int status;
    (void)snprintf(options, sizeof options, "size=%dk", kb);
    if (mount("tmpfs", where, "tmpfs", 0, options)) {
      (void)rmdir(where);
      print_message("skipped: cannot mount a tmpfs: %s\n", strerror(errno));
      skip();
    }
    status = build(&d, 6000, NULL, &err);
    if (status) {
      full++;
      if (status == GPUIR_E_IO && nfiles(where) == 0 && strstr(err.msg, "No space left")) status = -1000;
    } else {
      ok++;
    }
    (void)umount(where);
    if (status && status != -1000) fail_msg("%d KB: %d %s", kb, status, err.msg);
  }
  (void)rmdir(where);
  assert_true(ok && full > 3);
}

/* A build that is killed leaves PATH.tmp and, if threads were about to unlink them, a temporary file each. The next
 * build removes both. */
static void test_killed(void **state) {
  int ms;
  (void)state;
  empty_folder();
  for (ms = 1; ms < 300; ms += 1 + ms / 2) {
    pid_t child = fork();
    gpuir_builder_desc d = desc_of(path);
    struct timespec t;
    int n, status;
    assert_true(child >= 0);
    if (!child) {
      for (;;) (void)build(&d, ndocs, NULL, NULL);
    }
    t.tv_sec = 0;
    t.tv_nsec = ms * 1000000l;
    (void)nanosleep(&t, NULL);
    (void)kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    n = nfiles(folder);
    assert_true(n <= 2 + (int)d.threads);
  }
  {
    static const char *const left[] = {"x.gpuir.tmp", "x.gpuir.tmp.0", "x.gpuir.tmp.1000", "x.gpuir.tmp.1300"};
    gpuir_builder_desc d = desc_of(path);
    gpuir_error err;
    size_t i;
    for (i = 0; i < sizeof left / sizeof left[0]; i++) {
      char p[96];
      FILE *f;
      path_of(p, left[i]);
      f = fopen(p, "w");
      assert_non_null(f);
      (void)fclose(f);
    }
    if (build(&d, 100, NULL, &err)) fail_msg("%s", err.msg);
    assert_int_equal(nfiles(folder), 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_file_size_limit),
      cmocka_unit_test(test_interrupted),
      cmocka_unit_test(test_full_disk),
      cmocka_unit_test(test_killed),
  };
  return cmocka_run_group_tests_name("39_writer", tests, set_up, tear_down);
}
