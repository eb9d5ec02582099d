/* shards.c - the files of a collection, a folder with shard-00000.gpuir, shard-00001.gpuir ...; join. */
#include "mpi.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEBIBYTE ((uint64_t)1 << 20)

static const char *const ends[] = {".part", ".new", ".gpuir"};

char *mpi_path(const char *folder, unsigned number, int what) {
  char name[40];
  cli_buf b = {NULL, 0, 0};
  cli_buf_text(&b, folder);
  (void)snprintf(name, sizeof name, "/shard-%05u%s", number, ends[what]);
  cli_buf_text(&b, name);
  cli_buf_char(&b, 0);
  return b.p;
}

/* Removes the files of shards from number `from` on, finished ones and others. */
static void remove_shards(const char *folder, unsigned from) {
  const size_t head = strlen("shard-"), digits = 5;
  struct dirent *d;
  DIR *dir = opendir(folder);
  while (dir && (d = readdir(dir)) != NULL) {
    const char *number = d->d_name + head;
    if (strncmp(d->d_name, "shard-", head) != 0 || strspn(number, "0123456789") != digits ||
        strtoul(number, NULL, 10) < from)
      continue;
    for (int what = MPI_PART; what <= MPI_SHARD; what++)
      if (!strcmp(number + digits, ends[what])) (void)unlinkat(dirfd(dir), d->d_name, 0);
  }
  if (dir) closedir(dir);
}

int mpi_prepare(const char *folder) {
  struct stat st;
  if (mkdir(folder, 0777) && (errno != EEXIST || stat(folder, &st) || !S_ISDIR(st.st_mode))) {
    cli_error("%s: cannot make the folder: %s", folder, strerror(errno));
    return CLI_FAIL;
  }
  if (cli_is_live(folder)) {
    cli_error("%s: a live index", folder);
    return CLI_FAIL;
  }
  for (int what = MPI_PART; what <= MPI_NEW; what++) { /* this rank's own: others may be at work */
    char *path = mpi_path(folder, (unsigned)mpi_rank, what);
    (void)unlink(path);
    free(path);
  }
  return CLI_OK;
}

/* Makes the names in a folder durable. */
static int sync_folder(const char *folder) {
  const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int bad = fd < 0 || (fsync(fd) && errno != EINVAL); /* some file systems have no such call */
  if (bad) cli_error("%s: cannot sync: %s", folder, strerror(errno));
  if (fd >= 0) close(fd);
  return bad ? CLI_FAIL : CLI_OK;
}

int mpi_publish(const char *folder, int code) {
  char *part = mpi_path(folder, (unsigned)mpi_rank, MPI_PART), *new = mpi_path(folder, (unsigned)mpi_rank, MPI_NEW);
  char *shard = mpi_path(folder, (unsigned)mpi_rank, MPI_SHARD);
  code = mpi_agree(code);
  if (!code && rename(new, shard)) {
    cli_error("%s: cannot rename the finished shard: %s", shard, strerror(errno));
    code = CLI_FAIL;
  }
  if (!code) code = sync_folder(folder);
  (void)unlink(part);
  if (code) (void)unlink(new);
  code = mpi_agree(code);
  if (!code && !mpi_rank) remove_shards(folder, (unsigned)mpi_ranks);
  free(part);
  free(new);
  free(shard);
  return code;
}

/* ---- opening ---- */

/* Opens this rank's shard. */
static int open_own(mpi_shard *s, const char *path) {
  if (access(path, F_OK) && errno == ENOENT && !mpi_rank) {
    cli_error("%s: not there: a collection is a folder that 'gpuir-mpi index' makes", path);
    return CLI_FAIL;
  }
  s->index = cli_open(path);
  if (!s->index) return CLI_FAIL;
  (void)gpuir_index_get_info(s->index, &s->info);
  if (!gpuir_shard_get_info(s->index, &s->place)) return CLI_OK;
  cli_error("%s: an index, but no shard of a collection", path);
  return CLI_FAIL;
}

/* Checks that this rank's shard and those of the others are one collection. */
static int check_own(const mpi_shard *s, const char *path) {
  gpuir_shard_info first = s->place;
  MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (s->place.identity[0] != first.identity[0] || s->place.identity[1] != first.identity[1] ||
      s->place.documents != first.documents || s->place.tokens != first.tokens) {
    cli_error("%s: of other statistics than shard 0: identity %016" PRIx64 "%016" PRIx64 ", not %016" PRIx64
              "%016" PRIx64,
        path, s->place.identity[1], s->place.identity[0], first.identity[1], first.identity[0]);
    return CLI_FAIL;
  }
  if (s->place.shard != (unsigned)mpi_rank || s->place.shards != first.shards) {
    cli_error("%s: shard %u of %u: of another division of the collection", path, s->place.shard, s->place.shards);
    return CLI_FAIL;
  }
  return CLI_OK;
}

/* Checks that this rank's documents follow those of the ranks before, where all have shards of as many. */
static int check_order(const mpi_shard *s, const char *path) {
  uint64_t before = 0;
  MPI_Exscan(&s->info.documents, &before, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (s->place.first == (mpi_rank ? before : 0)) return CLI_OK;
  cli_error("%s: begins with document %" PRIu64 ", and the shards before end with %" PRIu64 ": of another division",
      path, s->place.first, before);
  return CLI_FAIL;
}

int mpi_open(mpi_shard *s, const char *folder) {
  char *path = mpi_path(folder, (unsigned)mpi_rank, MPI_SHARD);
  unsigned shards;
  int code;
  memset(s, 0, sizeof *s);
  s->folder = folder;
  mpi_all_speak();
  code = mpi_rank ? CLI_OK : open_own(s, path); /* the first one tells how many there are */
  shards = s->place.shards;
  MPI_Bcast(&shards, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
  if (!mpi_rank && !code && shards != (unsigned)mpi_ranks) {
    char parts[CLI_COUNTED], ranks[CLI_COUNTED];
    cli_error("%s: %s, and %s: mpirun -n %u", folder, cli_counted(shards, "shard", "shards", parts),
        cli_counted((uint64_t)mpi_ranks, "rank", "ranks", ranks), shards);
    code = CLI_FAIL;
  }
  code = mpi_agree(code);
  if (!code) code = mpi_agree(mpi_rank ? open_own(s, path) : CLI_OK);
  if (!code) code = mpi_agree(check_own(s, path));
  if (!code) code = mpi_agree(check_order(s, path));
  mpi_first_speaks();
  free(path);
  return code;
}

void mpi_close(mpi_shard *s) {
  gpuir_close(s->index);
  s->index = NULL;
}

/* ---- documents of an index ---- */

int mpi_copy_documents(const gpuir_index *index, const char *input, uint32_t from, uint32_t to, gpuir_builder *builder,
    const char *output) {
  cli_copier copier;
  gpuir_error err;
  int status = GPUIR_OK;
  cli_copier_open(&copier, input, output);
  memset(&err, 0, sizeof err);
  for (uint32_t i = from; i < to && !status && !cli_signal; i++) {
    gpuir_doc doc;
    status = gpuir_doc_get(index, i, &doc);
    if (!status) status = cli_copier_add(&copier, index, i, &doc, builder, &err);
  }
  cli_copier_close(&copier);
  return status ? cli_fail(output, status, &err) : cli_signal ? CLI_FAIL : CLI_OK;
}

/* ---- join ---- */

typedef struct joined {
  const char *folder, *output;
  unsigned n;
  gpuir_index **shards;
  gpuir_term_info *terms; /* [n] at which each stands */
  uint64_t *ends; /* [n] terms */
  uint32_t *firsts; /* [n] documents before */
  uint32_t *docids, *tfs, *positions;
  size_t cap, positions_cap;
  int has_positions;
  gpuir_builder *builder;
} joined;

/* Opens shard `i` and checks it against the first. */
static int join_open(joined *j, unsigned i, gpuir_shard_info *first) {
  char *path = mpi_path(j->folder, i, MPI_SHARD);
  gpuir_shard_info place;
  gpuir_index_info info;
  int code = CLI_OK;
  j->shards[i] = cli_open_to_read_all(path);
  if (!j->shards[i] || gpuir_index_get_info(j->shards[i], &info)) {
    code = CLI_FAIL;
  } else if (gpuir_shard_get_info(j->shards[i], &place) || place.shard != i || place.shards != j->n ||
      memcmp(place.identity, first->identity, sizeof place.identity) != 0 || place.first != first->first) {
    cli_error("%s: of other statistics, or of another division, than shard 0", path);
    code = CLI_FAIL;
  } else {
    j->firsts[i] = (uint32_t)place.first;
    j->ends[i] = info.terms;
    first->first += info.documents; /* of the next one */
  }
  free(path);
  return code;
}

/* Opens all shards. */
static int join_open_all(joined *j, gpuir_shard_info *first) {
  char *path = mpi_path(j->folder, 0, MPI_SHARD);
  gpuir_index *index = cli_open(path);
  int code = index ? CLI_OK : CLI_FAIL;
  if (index && gpuir_shard_get_info(index, first)) {
    cli_error("%s: an index, but no shard of a collection", path);
    code = CLI_FAIL;
  }
  gpuir_close(index);
  free(path);
  if (code) return code;
  j->n = first->shards;
  j->shards = (gpuir_index **)cli_resize(NULL, j->n, sizeof *j->shards);
  memset(j->shards, 0, j->n * sizeof *j->shards);
  j->terms = (gpuir_term_info *)cli_resize(NULL, j->n, sizeof *j->terms);
  j->ends = (uint64_t *)cli_resize(NULL, j->n, sizeof *j->ends);
  j->firsts = (uint32_t *)cli_resize(NULL, j->n, sizeof *j->firsts);
  first->first = 0;
  for (unsigned i = 0; i < j->n && !code; i++) code = join_open(j, i, first);
  return code;
}

/* Moves to term `id` of a shard; behind the last one its length is 0. */
static int join_move(joined *j, unsigned i, uint64_t id) {
  const int status = id < j->ends[i] ? gpuir_term_get_info(j->shards[i], id, &j->terms[i]) : GPUIR_OK;
  if (status) return cli_fail(j->folder, status, NULL);
  if (id >= j->ends[i]) j->terms[i].term_len = 0;
  return CLI_OK;
}

static int compare(const gpuir_term_info *a, const gpuir_term_info *b) {
  const size_t n = a->term_len < b->term_len ? a->term_len : b->term_len;
  const int c = memcmp(a->term, b->term, n);
  return c ? c : a->term_len < b->term_len ? -1 : a->term_len > b->term_len;
}

/* Appends shard i's postings of its term to *n of `df` and *m of `cf`. */
static int join_list(joined *j, unsigned i, size_t *n, size_t *m) {
  const gpuir_term_info *t = &j->terms[i];
  int status = gpuir_term_postings(j->shards[i], t->id, j->docids + *n, j->tfs + *n);
  for (size_t k = *n; k < *n + t->df && !status; k++) j->docids[k] += j->firsts[i];
  if (!status && j->has_positions) status = gpuir_term_positions(j->shards[i], t->id, j->positions + *m, t->cf);
  *n += t->df;
  *m += (size_t)t->cf;
  return status;
}

/* Hands the least term's list to the builder, and moves its shards on. CLI_END behind the last term. */
static int join_term(joined *j, int *more) {
  gpuir_term_info least;
  gpuir_error err;
  size_t df = 0, cf = 0, n = 0, m = 0;
  int status = GPUIR_OK;
  memset(&err, 0, sizeof err);
  least.term_len = 0;
  for (unsigned i = 0; i < j->n; i++)
    if (j->terms[i].term_len && (!least.term_len || compare(&j->terms[i], &least) < 0)) least = j->terms[i];
  *more = least.term_len > 0;
  if (!*more) return CLI_OK;
  for (unsigned i = 0; i < j->n; i++) {
    if (!j->terms[i].term_len || compare(&j->terms[i], &least) != 0) continue;
    df += j->terms[i].df;
    cf += (size_t)j->terms[i].cf;
  }
  if (df > j->cap) {
    j->cap = df;
    j->docids = (uint32_t *)cli_resize(j->docids, df, 4);
    j->tfs = (uint32_t *)cli_resize(j->tfs, df, 4);
  }
  if (j->has_positions && cf > j->positions_cap)
    j->positions = (uint32_t *)cli_resize(j->positions, j->positions_cap = cf, 4);
  for (unsigned i = 0; i < j->n && !status; i++) {
    if (!j->terms[i].term_len || compare(&j->terms[i], &least) != 0) continue;
    status = join_list(j, i, &n, &m);
    if (!status && join_move(j, i, j->terms[i].id + 1)) return CLI_FAIL;
  }
  if (!status)
    status = gpuir_builder_add_list(j->builder, least.term, least.term_len, j->docids, j->tfs,
        j->has_positions ? j->positions : NULL, (uint32_t)df, &err);
  return status ? cli_fail(j->output, status, &err) : CLI_OK;
}

static int on_progress(void *user, const gpuir_progress *p) {
  (void)user;
  (void)p;
  return cli_signal != 0;
}

/* Writes the index. */
static int join_write(joined *j, uint64_t memory) {
  gpuir_builder_desc bd;
  gpuir_index_info info;
  gpuir_error err;
  int status, more = 1, code = CLI_OK;
  memset(&bd, 0, sizeof bd);
  memset(&err, 0, sizeof err);
  (void)gpuir_index_get_info(j->shards[0], &info);
  bd.path = j->output;
  bd.like = j->shards[0];
  bd.memory = memory;
  bd.store_text = info.has_text;
  bd.positions = j->has_positions = info.has_positions;
  bd.progress = on_progress;
  status = gpuir_builder_create(&bd, &j->builder, &err);
  if (status) return cli_fail(j->output, status, &err);
  cli_temporary_index(j->output);
  for (unsigned i = 0; i < j->n && !code; i++) {
    char *path = mpi_path(j->folder, i, MPI_SHARD);
    (void)gpuir_index_get_info(j->shards[i], &info);
    code = mpi_copy_documents(j->shards[i], path, 0, (uint32_t)info.documents, j->builder, j->output);
    free(path);
  }
  for (unsigned i = 0; i < j->n && !code; i++) code = join_move(j, i, 0);
  while (!code && more) code = cli_signal ? CLI_FAIL : join_term(j, &more);
  if (!code) {
    status = gpuir_builder_write(j->builder, NULL, &err);
    if (status) code = cli_fail(j->output, status, &err);
  }
  gpuir_builder_destroy(j->builder);
  cli_temporary(NULL);
  return code;
}

enum { O_MEMORY = 2, O_OUTPUT };

int mpi_join(int argc, char **argv) {
  static const cli_option options[] = {{O_MEMORY, "memory", 0, 1}, {O_OUTPUT, "output", 'o', 1}, {0, NULL, 0, 0}};
  gpuir_shard_info first;
  uint64_t megabytes = 512;
  joined j;
  cli_args a;
  int opt, bad = 0, code;
  memset(&j, 0, sizeof j);
  cli_args_start(&a, "join", options, argc, argv);
  while (!bad && (opt = cli_next(&a)) != CLI_END) {
    switch (opt) {
    case O_MEMORY: bad = cli_unsigned(&a, 1, (uint64_t)1 << 32, &megabytes); break;
    case O_OUTPUT: j.output = a.value; break;
    case CLI_HELP: cli_args_free(&a); return mpi_help();
    default: bad = 1; break;
    }
  }
  code = bad ? CLI_USAGE : CLI_OK;
  if (!code && (a.noperands != 1 || !j.output)) code = cli_misuse("join", "one folder of SHARDS, and -o INDEX");
  if (!code && mpi_ranks > 1) code = cli_misuse("join", "one process writes the index: do without mpirun");
  if (!code) {
    j.folder = a.operands[0];
    cli_catch_signals();
    code = join_open_all(&j, &first);
    if (!code) code = join_write(&j, megabytes * MEBIBYTE);
  }
  for (unsigned i = 0; j.shards && i < j.n; i++) gpuir_close(j.shards[i]);
  free(j.shards);
  free(j.terms);
  free(j.ends);
  free(j.firsts);
  free(j.docids);
  free(j.tfs);
  free(j.positions);
  cli_args_free(&a);
  return code;
}
