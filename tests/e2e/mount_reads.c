/* mount_reads.c - many processes read a mount while its index is replaced; tests/support/mount_reads.sh runs it.
 *
 *   mount_reads MOUNT LIST OLD NEW PROCESSES READS
 *
 * LIST holds paths below MOUNT, one a line. OLD/n and NEW/n are what line n reads as from either index: the bytes of
 * a file, or of a folder its links, "name -> target" a line. Each read opens a path at random, reads it to its end and
 * holds it against both. The last line says how many there were:
 *
 *   total N reads, N files, N folders, N wrong, N errors, N stale
 *
 * "stale" counts ESTALE: between finding a name and opening it, the index was replaced twice. Exit status 0 when
 * nothing was wrong and no other error came.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATHS = 4096, ANSWER = 1 << 20 };

typedef struct answer {
  char *bytes;
  size_t n;
} answer;

typedef struct counts {
  unsigned long reads, files, folders, wrong, errors, stale;
} counts;

static char *paths[PATHS];
static answer olds[PATHS], news[PATHS];
static size_t npaths;

static void die(const char *what) {
  perror(what);
  exit(2);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

/* Reads a file to its end; 0 or errno. *n is set to SIZE_MAX when its size was not what fstat said. */
static int read_file(const char *path, char *out, size_t *n) {
  struct stat st;
  ssize_t got = 0;
  int rc = 0, fd = open(path, O_RDONLY);
  *n = 0;
  if (fd < 0) return errno;
  if (fstat(fd, &st) != 0) rc = errno;
  while (rc == 0 && *n < ANSWER && (got = read(fd, out + *n, ANSWER - *n)) > 0) *n += (size_t)got;
  if (got < 0) rc = errno;
  if (rc == 0 && (size_t)st.st_size != *n) *n = SIZE_MAX;
  close(fd);
  return rc;
}

static int is_link(const struct dirent *e) { return e->d_name[0] != '.'; }

/* Reads the links of a folder in order of their names, which is that of their ranks. The folder is opened once: by
 * its path, another would stand there after a reload. */
static int read_folder(const char *path, char *out, size_t *n) {
  struct dirent **names;
  int i, rc, count, fd = open(path, O_RDONLY | O_DIRECTORY);
  *n = 0;
  if (fd < 0) return errno;
  count = scandirat(fd, ".", &names, is_link, alphasort);
  rc = count < 0 ? errno : 0;
  for (i = 0; i < count; i++) {
    char target[256];
    ssize_t len = rc ? 0 : readlinkat(fd, names[i]->d_name, target, sizeof target);
    if (len < 0) rc = errno;
    if (rc == 0) *n += (size_t)snprintf(out + *n, ANSWER - *n, "%s -> %.*s\n", names[i]->d_name, (int)len, target);
    free(names[i]);
  }
  if (count >= 0) free(names);
  close(fd);
  return rc;
}

static int is_folder(const char *path) { return strncmp(path, "hits/", 5) == 0; }

static int read_path(const char *mount, const char *path, char *out, size_t *n) {
  char whole[2048];
  snprintf(whole, sizeof whole, "%s/%s", mount, path);
  return is_folder(path) ? read_folder(whole, out, n) : read_file(whole, out, n);
}

/* ---- the work ------------------------------------------------------------------------------------------ */

static int is_answer(const answer *a, const char *bytes, size_t n) {
  return a->n == n && memcmp(a->bytes, bytes, n) == 0;
}

static void read_many(const char *mount, unsigned seed, unsigned long reads, counts *c) {
  char *out = malloc(ANSWER);
  unsigned long i;
  if (!out) die("memory");
  for (i = 0; i < reads; i++) {
    size_t which = (size_t)rand_r(&seed) % npaths, n;
    int rc = read_path(mount, paths[which], out, &n);
    c->reads++;
    if (is_folder(paths[which])) c->folders++;
    else c->files++;
    if (rc == ESTALE) {
      c->stale++;
    } else if (rc) {
      c->errors++;
      fprintf(stderr, "%s: %s\n", paths[which], strerror(rc));
    } else if (!is_answer(&olds[which], out, n) && !is_answer(&news[which], out, n)) {
      c->wrong++;
      fprintf(stderr, "%s: neither the old nor the new answer\n", paths[which]);
    }
  }
  free(out);
}

static answer load(const char *folder, size_t i) {
  char path[2048];
  answer a;
  struct stat st;
  int fd;
  snprintf(path, sizeof path, "%s/%zu", folder, i + 1);
  fd = open(path, O_RDONLY);
  if (fd < 0 || fstat(fd, &st) != 0) die(path);
  a.n = (size_t)st.st_size;
  a.bytes = malloc(a.n + 1);
  if (!a.bytes || read(fd, a.bytes, a.n) != (ssize_t)a.n) die(path);
  close(fd);
  return a;
}

/* mount_reads -record MOUNT LIST FOLDER: writes what each path reads as to FOLDER/n. */
static int record(const char *mount, const char *folder) {
  char *out = malloc(ANSWER), name[2048];
  size_t i, n;
  if (!out) die("memory");
  for (i = 0; i < npaths; i++) {
    FILE *f;
    int rc = read_path(mount, paths[i], out, &n);
    if (rc || n > ANSWER) {
      errno = rc;
      die(paths[i]);
    }
    snprintf(name, sizeof name, "%s/%zu", folder, i + 1);
    f = fopen(name, "w");
    if (!f || fwrite(out, 1, n, f) != n || fclose(f) != 0) die(name);
  }
  free(out);
  return 0;
}

static void load_list(const char *path) {
  FILE *f = fopen(path, "r");
  char line[1024];
  if (!f) die(path);
  while (npaths < PATHS && fgets(line, sizeof line, f)) {
    line[strcspn(line, "\n")] = 0;
    paths[npaths] = strdup(line);
    if (!paths[npaths++]) die("memory");
  }
  fclose(f);
  if (!npaths) exit(2);
}

int main(int argc, char **argv) {
  int i, processes, failed = 0, status;
  unsigned long reads;
  counts *all, sum;
  if (argc == 5 && strcmp(argv[1], "-record") == 0) {
    load_list(argv[3]);
    return record(argv[2], argv[4]);
  }
  if (argc != 7) {
    fputs("usage: mount_reads MOUNT LIST OLD NEW PROCESSES READS\n", stderr);
    return 2;
  }
  load_list(argv[2]);
  for (i = 0; i < (int)npaths; i++) {
    olds[i] = load(argv[3], (size_t)i);
    news[i] = load(argv[4], (size_t)i);
  }
  processes = atoi(argv[5]);
  reads = strtoul(argv[6], NULL, 10);
  if (processes < 1 || processes > 1024) return 2;
  all = mmap(NULL, (size_t)processes * sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) die("memory");
  for (i = 0; i < processes; i++) {
    pid_t pid = fork();
    if (pid < 0) die("fork");
    if (pid == 0) {
      read_many(argv[1], (unsigned)i * 7919u + 1, (reads + (unsigned)processes - 1) / (unsigned)processes, &all[i]);
      _exit(0);
    }
  }
  while (wait(&status) > 0)
    if (status) failed = 1;
  memset(&sum, 0, sizeof sum);
  for (i = 0; i < processes; i++) {
    sum.reads += all[i].reads, sum.files += all[i].files, sum.folders += all[i].folders;
    sum.wrong += all[i].wrong, sum.errors += all[i].errors, sum.stale += all[i].stale;
  }
  printf("total %lu reads, %lu files, %lu folders, %lu wrong, %lu errors, %lu stale\n", sum.reads, sum.files,
      sum.folders, sum.wrong, sum.errors, sum.stale);
  return failed || sum.wrong || sum.errors || sum.reads < reads;
}
