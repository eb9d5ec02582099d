/* gpuir - ranked text search from the command line.
 *
 * This file holds main and the dispatch; the commands are in the other files of this folder, in ../exchange, ../reorder
 * and ../lab. The library is linked; that it has utf8proc and libstemmer is said by the same macros that it was
 * compiled with.
 */
#include "cli.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#ifdef GPUIR_WITH_STEMMER
#include <libstemmer.h>
#endif

void cli_print_build(FILE *f) {
  fprintf(f, "simd: %s\n", gpuir_simd_name(GPUIR_SIMD_AUTO));
#ifdef GPUIR_WITH_UTF8PROC
  fprintf(f, "analyzers: ascii, basic, unicode, text\n");
#else
  fprintf(f, "analyzers: ascii, basic\n");
#endif
#ifdef GPUIR_WITH_STEMMER
  {
    const char **name = sb_stemmer_list();
    fprintf(f, "stemmers:");
    for (size_t i = 0; name && name[i]; i++) fprintf(f, "%s %s", i ? "," : "", name[i]);
    fprintf(f, "\n");
  }
#else
  fprintf(f, "stemmers: none\n");
#endif
  fprintf(f, "backends: %s\n", cli_backends());
}

/* What packed files are read, and why others are not. */
static void print_packed(void) {
  static const char *const kinds[UNPACK_KINDS] = {NULL, "gzip", "bzip2", "xz", "zstd"};
  printf("packed files:");
  for (int i = UNPACK_GZIP; i < UNPACK_KINDS; i++) {
    const char *missing = unpack_missing((unpack_kind)i);
    printf("%s %s", i > UNPACK_GZIP ? "," : "", kinds[i]);
    if (missing) printf(" (off: %s: %s)", unpack_name((unpack_kind)i), missing);
  }
  printf("\n");
}

static int print_version(void) {
  printf("gpuir %s\n", gpuir_version());
  cli_print_build(stdout);
  print_packed();
  return cli_finish(CLI_OK);
}

/* A closed standard descriptor would be taken by the next file that is opened, and output meant
 * for it would go there. Fill the holes with something that fails when it is used. */
static void hold_standard_descriptors(void) {
  for (int fd = 0; fd < 3; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) < 0) _exit(CLI_FAIL);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    int (*run)(int, char **);
  } commands[] = {{"index", cli_index}, {"query", cli_query}, {"count", cli_count}, {"facets", cli_facets_command},
      {"stats", cli_stats}, {"terms", cli_terms}, {"verify", cli_verify}, {"explain", cli_explain},
      {"reorder", cli_reorder}, {"import", cli_import}, {"export", cli_export}, {"bench", cli_bench}, {"lab", cli_lab},
      {"serve", cli_serve}, {"add", cli_add}, {"delete", cli_delete}, {"merge", cli_merge},
      {"update", cli_update_command}, {"watch", cli_watch}, {"mcp", cli_mcp}, {"completion", cli_completion}};
  hold_standard_descriptors();
  (void)signal(SIGXFSZ, SIG_IGN); /* a file that grows too large is an error like others, after which one cleans up */
  if (argc < 2) {
    cli_error("a command is missing; try 'gpuir help'");
    return CLI_USAGE;
  }
  const char *name = argv[1];
  if (!strcmp(name, "--version") || !strcmp(name, "version")) return print_version();
  if (!strcmp(name, "help") && argc > 3) return cli_misuse("help", "one command at most");
  if (!strcmp(name, "--help") || !strcmp(name, "-h")) return cli_help(NULL);
  if (!strcmp(name, "help")) return cli_help(argc > 2 ? argv[2] : NULL);
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    if (!strcmp(name, commands[i].name)) return commands[i].run(argc - 2, argv + 2);
  cli_error("there is no command '%s'; try 'gpuir help'", name);
  return CLI_USAGE;
}
