/* main.c - gpuir-mpi: builds and searches an index in parts, one a rank, over MPI. */
#include "mpi.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

int mpi_rank, mpi_ranks;

static char with_rank[40];

void mpi_all_speak(void) { cli_name = with_rank; }

void mpi_first_speaks(void) { cli_name = mpi_rank ? NULL : "gpuir-mpi"; }

int mpi_agree(int code) {
  int worst = code;
  MPI_Allreduce(&code, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return worst;
}

cli_devices mpi_device(int backend) {
  const size_t count = backend == CLI_BACKEND_CPU ? 0 : cli_gpu_count();
  cli_devices d;
  MPI_Comm node;
  int local = 0;
  memset(&d, 0, sizeof d);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, mpi_rank, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &local);
  MPI_Comm_free(&node);
  if (count) d.of[d.n++] = (int)((size_t)local % count);
  return d;
}

int mpi_help(void) {
  if (mpi_rank) return CLI_OK;
  printf(
      "gpuir-mpi - an index in parts, one a process, built and searched over MPI\n"
      "\n"
      "  mpirun -n P gpuir-mpi index [OPTION...] INPUT... -o SHARDS\n"
      "  mpirun -n P gpuir-mpi split [--memory MB] INDEX -o SHARDS\n"
      "  gpuir-mpi join [--memory MB] SHARDS -o INDEX\n"
      "  mpirun -n P gpuir-mpi query [OPTION...] SHARDS [QUERY]\n"
      "  mpirun -n P gpuir-mpi facets -f COLUMN [OPTION...] SHARDS [QUERY]\n"
      "  mpirun -n P gpuir-mpi bench [OPTION...] SHARDS QUERIES\n"
      "\n"
      "index   builds P shards of documents that follow one another, in the folder SHARDS. The options are "
      "those\n"
      "        of 'gpuir index', but for --live and --json; each rank reads all inputs, of which - is none.\n"
      "split   makes P shards of an index.\n"
      "join    makes an index of all shards: the bytes that 'gpuir index' writes.\n"
      "query   answers as 'gpuir query' does on the whole index, by P ranks, each with its shard.\n"
      "          --mode and|or|andor, -k N, --k1 X, --b X, --no-operators, --backend cpu|gpu|auto,\n"
      "          --where WHERE, --sort NAME, --collapse NAME, --show NAMES,\n"
      "          --spell, --exact, --rank auto|plain|code, --scores,\n"
      "          --stop-query LANG, --prefix-postings N, --threads N (of each rank: 1),\n"
      "          --batch N (queries at a time: 1000), --tsv, --trec, --tag NAME, --topics FILE, --ids, --no-ids\n"
      "facets  counts as 'gpuir facets' does on the whole index, with its options.\n"
      "bench   measures rates and latencies: --modes and,or,andor, -k N, --repeat N, --threads N, "
      "--backend,\n"
      "          --alone N (queries one by one), --times FILE (what each rank spends on each), --ids, "
      "--no-ids\n"
      "\n"
      "A rank that fails ends the job and says why; no shard is then replaced.\n");
  return cli_finish(CLI_OK);
}

static int run(int argc, char **argv) {
  static const struct {
    const char *name;
    int (*run)(int, char **);
  } commands[] = {{"index", mpi_index}, {"split", mpi_split}, {"join", mpi_join}, {"query", mpi_query},
      {"bench", mpi_bench}, {"facets", mpi_facets}};
  if (argc < 2) {
    cli_error("a command is missing; try 'gpuir-mpi help'");
    return CLI_USAGE;
  }
  if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) return mpi_help();
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    if (!strcmp(argv[1], commands[i].name)) return commands[i].run(argc - 2, argv + 2);
  cli_error("there is no command '%s'; try 'gpuir-mpi help'", argv[1]);
  return CLI_USAGE;
}

int main(int argc, char **argv) {
  int code;
  (void)signal(SIGXFSZ, SIG_IGN); /* a file that grows too large is an error like others */
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &mpi_ranks);
  (void)snprintf(with_rank, sizeof with_rank, "gpuir-mpi: rank %d", mpi_rank);
  cli_program = "gpuir-mpi";
  (void)setvbuf(stderr, NULL, _IOLBF, BUFSIZ); /* a line of one rank is not cut by one of another */
  mpi_first_speaks();
  code = run(argc, argv);
  /* What a rank printed is all that there is to say: mpirun speaks of a job that fails once more. */
  MPI_Finalize();
  return code;
}
