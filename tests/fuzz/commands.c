/* commands.c - damaged indexes through every command that reads one, each in a process of its own
 *
 *   commands GPUIR [FILES [FIRST]]    damages files FIRST .. FIRST + FILES - 1 (200 from 0)
 *
 * GPUIR is the command, built with -fsanitize=address,undefined for findings to be seen; it may allocate 300 MB at a
 * time and take 5 seconds. Prints what went wrong, with the file's number, and a line of TAP. A damaged file is
 * determined by its number. */
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include <spawn.h>
#include <sys/wait.h>

#include "seeds.h"

enum { FINDING = 99, MOST_SECONDS = 5 };

static const char *const commands[][8] = {
    {"stats", "INDEX"},
    {"verify", "INDEX"},
    {"terms", "--tsv", "INDEX"},
    {"query", "--mode", "or", "-k", "300", "INDEX", "w0 w3 -w5 rare60"},
    {"query", "--mode", "and", "--tsv", "INDEX", "w0 w1 w2"},
    {"count", "INDEX", "w0 w2 w9"},
    {"explain", "INDEX", "7", "w0 w1 rare0"},
    {"export", "--format", "ciff", "INDEX", "OUT"},
    {"export", "--format", "pisa", "INDEX", "OUT"},
    {"reorder", "-q", "--order", "random", "INDEX", "OUT"},
    {"bench", "--sample", "3", "--repeat", "1", "INDEX"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static char folder[] = "/tmp/gpuir-commands-XXXXXX", index_path[64], out_path[64];
static unsigned runs, findings;
static double slowest;

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

/* Starts a command without output; its process. */
static pid_t start(const char *gpuir, const char *const *words) {
  static char asan[] = "ASAN_OPTIONS=exitcode=99:max_allocation_size_mb=300:detect_leaks=0";
  static char ubsan[] = "UBSAN_OPTIONS=halt_on_error=1:exitcode=99";
  char *argv[10], *environment[] = {asan, ubsan, NULL};
  posix_spawn_file_actions_t files;
  pid_t pid;
  int i, n = 0;
  argv[n++] = (char *)(uintptr_t)gpuir;
  for (i = 0; i < 8 && words[i]; i++)
    argv[n++] = !strcmp(words[i], "INDEX") ? index_path
                : !strcmp(words[i], "OUT") ? out_path
                                           : (char *)(uintptr_t)words[i];
  argv[n] = NULL;
  if (posix_spawn_file_actions_init(&files)) seed_stop("no memory");
  for (i = 0; i < 3; i++) (void)posix_spawn_file_actions_addopen(&files, i, "/dev/null", O_RDWR, 0);
  if (posix_spawn(&pid, gpuir, &files, NULL, argv, environment)) seed_stop("the command cannot be started");
  (void)posix_spawn_file_actions_destroy(&files);
  return pid;
}

static void run(const char *gpuir, unsigned number, unsigned command) {
  const uint64_t begin = gpuir__now();
  const pid_t pid = start(gpuir, commands[command]);
  double seconds = 0;
  int status = 0;
  const char *what = NULL;
  while (!waitpid(pid, &status, WNOHANG)) {
    const struct timespec pause = {0, 1000000};
    seconds = (double)(gpuir__now() - begin) / 1e9;
    if (seconds > 4 * MOST_SECONDS) (void)kill(pid, SIGKILL);
    (void)nanosleep(&pause, NULL);
  }
  seconds = (double)(gpuir__now() - begin) / 1e9;
  if (seconds > slowest) slowest = seconds;
  runs++;
  if (seconds > MOST_SECONDS)
    what = "too slow";
  else if (WIFSIGNALED(status))
    what = "died of a signal";
  else if (WEXITSTATUS(status) == FINDING)
    what = "a finding of the sanitizers";
  else if (WEXITSTATUS(status) > 2)
    what = "an unknown exit status";
  if (what) {
    findings++;
    printf("# file %u, gpuir %s: %s (status %d, %.2f s)\n", number, commands[command][0], what, status,
           seconds);
  }
  remove_output();
}

int main(int argc, char **argv) {
  const unsigned files = argc > 2 ? (unsigned)atoi(argv[2]) : 200,
                 first = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
  seed_image seeds[SEEDS];
  unsigned i, command;
  if (argc < 2 || !mkdtemp(folder)) seed_stop("usage: commands GPUIR [FILES [FIRST]]");
  (void)snprintf(index_path, sizeof index_path, "%s/index", folder);
  (void)snprintf(out_path, sizeof out_path, "%s/out", folder);
  seeds_load(index_path, seeds);
  for (i = first; i < first + files; i++) {
    seed_damage(seeds, index_path, i);
    for (command = 0; command < COMMANDS; command++) run(argv[1], i, command);
  }
  (void)unlink(index_path);
  (void)rmdir(folder);
  for (i = 0; i < SEEDS; i++) free(seeds[i].bytes);
  printf("# %u files, %u runs of %u commands, the slowest took %.2f s\n", files, runs, COMMANDS, slowest);
  printf("%sok 1 - damaged indexes through every command\n1..1\n", findings ? "not " : "");
  return findings != 0;
}
