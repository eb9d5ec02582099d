/* commands.c - damaged indexes through every command that reads one, each in a process of its own; every fifth one is
 * the segment of a live index
 *
 *   commands GPUIR [FILES [FIRST [SECONDS [COMMAND]]]]    damages files FIRST .. FIRST + FILES - 1 (200 from 0), for
 *                                                         SECONDS at most; all commands, or one
 *
 * GPUIR is the command, built with -fsanitize=address,undefined for findings to be seen; it may allocate 300 MB at a
 * time, have 300 MB in memory and take 5 seconds. Prints what went wrong, with the file's number, and a line of TAP. A
 * damaged file is determined by its number. */
#define _DEFAULT_SOURCE
#include "private.h"

#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "seeds.h"

enum { FINDING = 99, MOST_SECONDS = 5, MOST_KILOBYTES = 300 << 10 };

static const char *const commands[][16] = {
    {"stats", "INDEX"},
    {"verify", "INDEX"},
    {"terms", "--tsv", "INDEX"},
    {"query", "--mode", "or", "-k", "300", "INDEX", "w0 w3 -w5 rare60"},
    {"query", "--mode", "and", "--tsv", "INDEX", "w0 w1 w2"},
    {"query", "--mode", "andor", "--json", "INDEX"},
    {"count", "INDEX", "w0 w2 w9"},
    {"query", "INDEX", "\"w0 w1\" -\"w2 w0 w1\" w1* rare0"},
    {"count", "--mode", "or", "INDEX", "\"w0 w0\" w2*"},
    {"explain", "INDEX", "7", "w0 w1 rare0"},
    {"serve", "--stdio", "INDEX"},
    {"export", "--format", "ciff", "INDEX", "OUT"},
    {"export", "--format", "pisa", "INDEX", "OUT"},
    {"reorder", "-q", "--threads", "1", "--order", "random", "INDEX", "OUT"},
    {"bench", "--queries", "-", "--repeat", "1", "--threads", "1", "INDEX"},
    {"lab", "codecs", "--codecs", "bp128", "--sample", "1", "--repeat", "1", "--backend", "cpu", "-o", "LAB", "INDEX"},
    {"lab", "intersect", "--codecs", "bp128", "--methods", "simd", "--pairs", "1", "--repeat", "1", "--backend", "cpu",
        "-o", "LAB", "INDEX"},
    {"lab", "search", "--queries", "2", "--repeat", "1", "--backend", "cpu", "-o", "LAB", "INDEX"},
    {"lab", "linearity", "--sample", "1", "--repeat", "1", "--backend", "cpu", "-o", "LAB", "INDEX"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* What commands that read standard input find there. */
static const char requests[] = "TOP_10\tw0 w3\nTOP_1000_COUNT\t+w1 +w2 -w4\nCOUNT\tw0 rare0\nw0 w1 -w2\nrare60 w7\n";

static char folder[] = "/tmp/gpuir-commands-XXXXXX", out_path[64], lab_path[64], in_path[64];
static char file_path[64], live_path[64], segment_path[80], manifest_path[80];
static const char *index_path; /* what is damaged: a file, or a live index that has it */
static unsigned runs, findings;
static double slowest;
static long largest; /* kilobytes in memory */
static pid_t child;

/* Ends the command that takes too long. */
static void on_alarm(int number) {
  (void)number;
  if (child > 0) (void)kill(child, SIGKILL);
}

/* Removes what a command wrote: OUT alone, or OUT with a suffix. */
static void remove_output(void) {
  static const char *const suffixes[] = {"", ".docs", ".freqs", ".sizes", ".terms", ".documents"};
  char path[96];
  size_t i;
  for (i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
    (void)snprintf(path, sizeof path, "%s%s", out_path, suffixes[i]);
    (void)unlink(path);
  }
}

/* What stands for a word of `commands`. */
static const char *meaning(const char *word) {
  if (!strcmp(word, "INDEX")) return index_path;
  if (!strcmp(word, "LAB")) return lab_path;
  return strcmp(word, "OUT") ? word : out_path;
}

/* Starts a command without output; its process. */
static pid_t start(const char *gpuir, const char *const *words) {
  static char asan[] = "ASAN_OPTIONS=exitcode=99:max_allocation_size_mb=300:detect_leaks=1:quarantine_size_mb=16";
  static char ubsan[] = "UBSAN_OPTIONS=halt_on_error=1:exitcode=99";
  char *argv[18], *environment[] = {asan, ubsan, NULL};
  posix_spawn_file_actions_t files;
  pid_t pid;
  int i, n = 0;
  argv[n++] = (char *)(uintptr_t)gpuir;
  for (i = 0; i < 16 && words[i]; i++) argv[n++] = (char *)(uintptr_t)meaning(words[i]);
  argv[n] = NULL;
  if (posix_spawn_file_actions_init(&files)) seed_stop("no memory");
  for (i = 0; i < 3; i++) (void)posix_spawn_file_actions_addopen(&files, i, i ? "/dev/null" : in_path, O_RDWR, 0);
  if (posix_spawn(&pid, gpuir, &files, NULL, argv, environment)) seed_stop("the command cannot be started");
  (void)posix_spawn_file_actions_destroy(&files);
  return pid;
}

/* What is wrong with how a command ended; NULL: nothing. */
static const char *wrong(int status, double seconds, long kilobytes) {
  if (seconds > MOST_SECONDS) return "too slow";
  if (WIFSIGNALED(status)) return "died of a signal";
  if (WEXITSTATUS(status) == FINDING) return "a finding of the sanitizers";
  if (WEXITSTATUS(status) > 2) return "an unknown exit status";
  return kilobytes > MOST_KILOBYTES ? "too much memory" : NULL;
}

static void run(const char *gpuir, unsigned number, unsigned command) {
  const uint64_t begin = gpuir__now();
  struct rusage usage;
  double seconds;
  int status = 0;
  const char *what;
  child = start(gpuir, commands[command]);
  (void)alarm(4 * MOST_SECONDS);
  while (wait4(child, &status, 0, &usage) < 0 && errno == EINTR) continue;
  (void)alarm(0);
  seconds = (double)(gpuir__now() - begin) / 1e9;
  if (seconds > slowest) slowest = seconds;
  if (usage.ru_maxrss > largest) largest = usage.ru_maxrss;
  runs++;
  what = wrong(status, seconds, usage.ru_maxrss);
  if (what) {
    findings++;
    printf("# file %u, gpuir %s %s: %s (status %d, %.2f s, %ld KB)\n", number, commands[command][0],
        commands[command][1], what, status, seconds, usage.ru_maxrss);
    (void)fflush(stdout);
  }
  remove_output();
}

/* Makes the folder with the requests in it. */
static void make_folder(void) {
  FILE *f;
  if (!mkdtemp(folder)) seed_stop("no folder can be made");
  (void)snprintf(file_path, sizeof file_path, "%s/index", folder);
  (void)snprintf(live_path, sizeof live_path, "%s/live", folder);
  (void)snprintf(segment_path, sizeof segment_path, "%s/000001.gpuir", live_path);
  (void)snprintf(manifest_path, sizeof manifest_path, "%s/manifest", live_path);
  if (mkdir(live_path, 0700)) seed_stop("no folder can be made");
  (void)snprintf(out_path, sizeof out_path, "%s/out", folder);
  (void)snprintf(lab_path, sizeof lab_path, "%s/lab", folder);
  (void)snprintf(in_path, sizeof in_path, "%s/requests", folder);
  f = fopen(in_path, "w");
  if (!f || fputs(requests, f) < 0 || fclose(f)) seed_stop("the requests cannot be written");
}

static void remove_folder(void) {
  char command[96];
  (void)snprintf(command, sizeof command, "rm -rf %s", folder);
  if (system(command)) seed_stop("the folder cannot be removed");
}

/* Writes the manifest of a live index whose segment is the damaged file, less a few documents. */
static void write_manifest(unsigned number) {
  uint8_t bytes[sizeof(gpuir__manifest_head) + sizeof(gpuir__entry) + 3 + 8], header[STRUCTURE_HEADER];
  const unsigned deleted = number / SEEDS / 5 % 4;
  gpuir__manifest_head head;
  gpuir__entry entry;
  size_t n = sizeof head + sizeof entry;
  uint64_t hash;
  unsigned i;
  FILE *f = fopen(segment_path, "rb");
  if (!f || fread(header, 1, sizeof header, f) != sizeof header || fclose(f)) seed_stop("cannot read an index");
  memset(&head, 0, sizeof head);
  memcpy(head.magic, gpuir__manifest_magic, sizeof head.magic);
  head.format = GPUIR__MANIFEST_FORMAT;
  head.segments = 1;
  head.generation = head.content = 1;
  head.next = 2;
  entry.number = 1;
  entry.hash = structure_get64(header + STRUCTURE_HEADER - 8);
  entry.documents = SEED_DOCUMENTS;
  entry.deleted = deleted;
  memcpy(bytes, &head, sizeof head);
  memcpy(bytes + sizeof head, &entry, sizeof entry);
  for (i = 0; i < deleted; i++) bytes[n++] = (uint8_t)((number + 17 * i) % 128);
  hash = XXH3_64bits(bytes, n);
  memcpy(bytes + n, &hash, 8);
  f = fopen(manifest_path, "wb");
  if (!f || fwrite(bytes, 1, n + 8, f) != n + 8 || fclose(f)) seed_stop("cannot write a manifest");
}

/* Makes damaged file `number`: each fifth one is the segment of a live index. */
static void damage(const seed_image seeds[SEEDS], unsigned number) {
  index_path = number / SEEDS % 5 == 4 ? live_path : file_path;
  seed_damage(seeds, number / SEEDS % 5 == 4 ? segment_path : file_path, number);
  if (number / SEEDS % 5 == 4) write_manifest(number);
}

int main(int argc, char **argv) {
  const char *only = argc > 5 ? argv[5] : NULL;
  const unsigned files = argc > 2 ? (unsigned)atoi(argv[2]) : 200, first = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
  const uint64_t end = gpuir__now() + (argc > 4 ? (uint64_t)atoi(argv[4]) : 1u << 30) * 1000000000u;
  seed_image seeds[SEEDS];
  unsigned i, command;
  if (argc < 2) seed_stop("usage: commands GPUIR [FILES [FIRST [SECONDS [COMMAND]]]]");
  (void)signal(SIGALRM, on_alarm);
  make_folder();
  seeds_load(file_path, seeds);
  for (i = 0; i < files && gpuir__now() < end; i++) {
    damage(seeds, first + i);
    for (command = 0; command < COMMANDS; command++)
      if (!only || !strcmp(only, commands[command][0])) run(argv[1], first + i, command);
  }
  remove_folder();
  for (command = 0; command < SEEDS; command++) free(seeds[command].bytes);
  printf(
      "# %u files from %u, %u runs of %u commands, %u findings, the slowest took %.2f s, the largest %ld "
      "KB\n",
      i, first, runs, COMMANDS, findings, slowest, largest);
  printf("%sok 1 - damaged indexes through every command\n1..1\n", findings ? "not " : "");
  return findings != 0;
}
