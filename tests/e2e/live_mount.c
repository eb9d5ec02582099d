/* live_mount.c - writes a live index that is mounted, and reads the mount meanwhile; tests/e2e/livemount.bats runs it.
 *
 *   live_mount FOLDER write OP...
 *       create, create-bare (without stored text), add:NAME=TEXT, part:SOURCE:OFFSET:BYTES, line:SOURCE=TEXT,
 *       delete:NAME, merge, merge-all, and commit, which prints the generation that it made
 *   live_mount FOLDER reloads MOUNT PID ROUNDS
 *       commits ROUNDS times, merges now and then, and has the daemon PID load each commit, while documents of other
 *       generations are open. Each must keep its text. Prints how many maps of index files and descriptors the daemon
 *       had at most.
 *   live_mount FOLDER readers MOUNT PID PROCESSES READS
 *       the same beside PROCESSES that read READS documents, links and answers in all. Each must be that of the
 *       generation which it names, or ESTALE; one that names none, that of some generation.
 */
#define _GNU_SOURCE
#include "gpuir.h"
#include "stored.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NAMES = 60, WORDS = 12, HITS = 50, TEXT = 4096, PATH = 4096, OPEN = 8, ROUNDS = 40, SAVED = 64 };

static const char *folder, *mount_point;
static gpuir_live *live;
static gpuir_error why;

static void die(const char *what) {
  fprintf(stderr, "live_mount: %s: %s\n", what, why.msg[0] ? why.msg : strerror(errno));
  exit(2);
}

static uint32_t next_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*state >> 33);
}

static uint64_t hash_bytes(uint64_t h, const void *bytes, size_t n) { /* FNV-1a, never 0 */
  const unsigned char *p = bytes;
  if (!h) h = UINT64_C(14695981039346656037);
  while (n--) h = (h ^ *p++) * UINT64_C(1099511628211);
  return h | 1;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static void open_live(int create, int store) {
  gpuir_live_desc desc;
  memset(&desc, 0, sizeof desc);
  desc.settings.path = folder;
  desc.settings.store_text = store;
  desc.settings.positions = 1;
  desc.create = create;
  if (gpuir_live_open(&desc, &live, &why) != GPUIR_OK) die("gpuir_live_open");
}

/* Adds a document, which may stand for the first line of a file without the bytes where that is. */
static void add_text(const char *name, const char *source, const char *text) {
  gpuir_doc_desc doc;
  memset(&doc, 0, sizeof doc);
  doc.name = name;
  doc.name_len = strlen(name);
  doc.source = source;
  doc.source_len = source ? strlen(source) : 0;
  doc.first_line = doc.last_line = source != NULL;
  if (gpuir_live_add(live, &doc, text, strlen(text), &why) != GPUIR_OK) die("gpuir_live_add");
}

static void delete_name(const char *name) {
  if (gpuir_live_delete(live, GPUIR_BY_NAME, name, strlen(name), NULL, &why) != GPUIR_OK) die("gpuir_live_delete");
}

static void merge(int all) {
  if (gpuir_live_merge(live, all, NULL, &why) != GPUIR_OK) die("gpuir_live_merge");
}

/* Opens what the folder has. */
static gpuir_index *open_folder(void) {
  gpuir_index *index;
  if (gpuir_open(folder, NULL, &index, &why) != GPUIR_OK) die("gpuir_open");
  return index;
}

static uint64_t commit(void) {
  gpuir_index *index;
  gpuir_index_info info;
  if (gpuir_live_commit(live, &why) != GPUIR_OK) die("gpuir_live_commit");
  index = open_folder();
  gpuir_index_get_info(index, &info);
  gpuir_close(index);
  return info.generation;
}

/* Adds bytes of a file as a document that keeps only where they stand: "SOURCE:OFFSET:BYTES". */
static void add_part(char *where) {
  char *bytes = strrchr(where, ':'), *offset, text[TEXT];
  gpuir_doc_desc doc;
  int fd;
  *bytes++ = 0;
  offset = strrchr(where, ':');
  *offset++ = 0;
  memset(&doc, 0, sizeof doc);
  doc.name = doc.source = where;
  doc.name_len = doc.source_len = strlen(where);
  doc.first_line = doc.last_line = 1;
  doc.source_offset = strtoul(offset, NULL, 10);
  doc.source_bytes = strtoul(bytes, NULL, 10);
  fd = open(where, O_RDONLY);
  if (fd < 0 || pread(fd, text, doc.source_bytes, (off_t)doc.source_offset) != (ssize_t)doc.source_bytes) die(where);
  close(fd);
  if (gpuir_live_add(live, &doc, text, doc.source_bytes, &why) != GPUIR_OK) die("gpuir_live_add");
}

static void operate(char *op) {
  char *value = strchr(op, ':');
  if (value) *value++ = 0;
  if ((strcmp(op, "add") == 0 || strcmp(op, "line") == 0) && value && strchr(value, '=')) {
    char *text = strchr(value, '=');
    *text++ = 0;
    add_text(value, *op == 'l' ? value : NULL, text);
  } else if (strcmp(op, "part") == 0) {
    add_part(value);
  } else if (strcmp(op, "delete") == 0) {
    delete_name(value);
  } else if (strcmp(op, "merge") == 0 || strcmp(op, "merge-all") == 0) {
    merge(op[5] != 0);
  } else if (strcmp(op, "commit") == 0) {
    printf("%llu\n", (unsigned long long)commit());
  } else {
    die(op);
  }
}

static int do_write(int n, char **ops) {
  const int create = n > 0 && strncmp(ops[0], "create", 6) == 0;
  int i;
  open_live(create, create && strcmp(ops[0], "create") == 0);
  for (i = create; i < n; i++) operate(ops[i]);
  gpuir_live_close(live);
  return 0;
}

/* ---- snapshots ----------------------------------------------------------------------------------------- */

/* What one generation answers. */
typedef struct snapshot {
  uint64_t generation;
  uint32_t docids;
  uint64_t *texts; /* [docids] hashes; 0: deleted */
  uint64_t hits[WORDS]; /* of the documents and names that a word finds, in order */
  uint64_t ranks[WORDS]; /* of the documents alone */
} snapshot;

static snapshot *snapshots;
static size_t nsnapshots;

static uint64_t hash_hit(uint64_t h, uint32_t docid, const char *name, size_t len) {
  return hash_bytes(hash_bytes(h, &docid, sizeof docid), name, len);
}

static void take_hits(gpuir_index *index, snapshot *s) {
  gpuir_searcher *searcher;
  gpuir_hit hits[HITS];
  size_t n, i;
  unsigned w;
  if (gpuir_searcher_create(index, NULL, &searcher, &why) != GPUIR_OK) die("gpuir_searcher_create");
  for (w = 0; w < WORDS; w++) {
    char word[16];
    gpuir_query *query;
    snprintf(word, sizeof word, "w%u", w);
    if (gpuir_query_parse(index, NULL, word, strlen(word), &query, &why) != GPUIR_OK) die("gpuir_query_parse");
    if (gpuir_search(searcher, query, hits, HITS, &n) != GPUIR_OK) die("gpuir_search");
    gpuir_query_destroy(query);
    for (i = 0; i < n; i++) {
      gpuir_doc doc;
      char name[64];
      if (gpuir_doc_get(index, hits[i].docid, &doc) != GPUIR_OK) die("gpuir_doc_get");
      s->hits[w] = hash_hit(s->hits[w], hits[i].docid, name, gpuir_doc_name(&doc, name, sizeof name));
      s->ranks[w] = hash_bytes(s->ranks[w], &hits[i].docid, sizeof hits[i].docid);
    }
  }
  gpuir_searcher_destroy(searcher);
}

/* Records the folder's last commit. */
static void take_snapshot(void) {
  gpuir_index *index = open_folder();
  gpuir_index_info info;
  snapshot *s;
  char *text;
  size_t len;
  uint32_t i;
  gpuir_index_get_info(index, &info);
  snapshots = realloc(snapshots, (nsnapshots + 1) * sizeof *snapshots);
  if (!snapshots) die("memory");
  s = &snapshots[nsnapshots++];
  memset(s, 0, sizeof *s);
  s->generation = info.generation;
  s->docids = (uint32_t)info.docids;
  s->texts = calloc(s->docids + 1, sizeof *s->texts);
  if (!s->texts) die("memory");
  for (i = 0; i < s->docids; i++)
    if ((text = stored_text(index, i, &len))) {
      s->texts[i] = hash_bytes(0, text, len);
      free(text);
    }
  take_hits(index, s);
  gpuir_close(index);
}

static const snapshot *snapshot_of(uint64_t generation) {
  size_t i;
  for (i = nsnapshots; i-- > 0;)
    if (snapshots[i].generation == generation) return &snapshots[i];
  return NULL;
}

/* ---- the daemon ---------------------------------------------------------------------------------------- */

static unsigned long stat_value(const char *key) {
  char path[PATH], line[600];
  unsigned long value = 0;
  FILE *file;
  snprintf(path, sizeof path, "%s/.stats", mount_point);
  file = fopen(path, "r");
  if (!file) die(path);
  while (fgets(line, sizeof line, file)) {
    char *tab = strchr(line, '\t');
    if (tab && (size_t)(tab - line) == strlen(key) && memcmp(line, key, strlen(key)) == 0)
      value = strtoul(tab + 1, NULL, 10);
  }
  fclose(file);
  return value;
}

/* Has the daemon load the commit, and waits until it has. */
static void follow(pid_t pid, uint64_t generation) {
  const struct timespec moment = {0, 2000000};
  unsigned i;
  if (kill(pid, SIGHUP) != 0) die("kill");
  for (i = 0; stat_value("generation") != generation; i++) {
    if (i == 15000) die("the mount does not follow");
    nanosleep(&moment, NULL);
  }
}

/* Replaces some documents by others, deletes some, merges now and then, and commits. */
static uint64_t one_round(uint64_t *state) {
  static unsigned serial;
  unsigned n = 1 + next_random(state) % 6;
  while (n--) {
    char name[16], text[TEXT];
    unsigned words = 2 + next_random(state) % 8, at;
    snprintf(name, sizeof name, "d%u", next_random(state) % NAMES);
    delete_name(name);
    if (next_random(state) % 8 == 0) continue;
    at = (unsigned)snprintf(text, sizeof text, "serial%u", serial++);
    while (words--) at += (unsigned)snprintf(text + at, sizeof text - at, " w%u", next_random(state) % WORDS);
    add_text(name, NULL, text);
  }
  delete_name("always");
  add_text("always", NULL, "w0 w1 w2");
  if (next_random(state) % 3 == 0) merge(next_random(state) % 8 == 0);
  return commit();
}

/* Counts the maps of the folder's files, and the open descriptors, of the daemon. */
static void count_held(pid_t pid, unsigned *maps, unsigned *fds) {
  char path[64], line[PATH + 200];
  FILE *file;
  DIR *dir;
  snprintf(path, sizeof path, "/proc/%ld/maps", (long)pid);
  *maps = *fds = 0;
  file = fopen(path, "r");
  if (!file) die(path);
  while (fgets(line, sizeof line, file)) *maps += strstr(line, ".gpuir") != NULL;
  fclose(file);
  snprintf(path, sizeof path, "/proc/%ld/fd", (long)pid);
  dir = opendir(path);
  if (!dir) die(path);
  while (readdir(dir)) ++*fds;
  closedir(dir);
}

/* ---- reloads ------------------------------------------------------------------------------------------- */

/* Reads an open file from its start; returns the hash of its bytes. */
static uint64_t hash_file(int fd) {
  char text[TEXT];
  ssize_t n = pread(fd, text, sizeof text, 0);
  if (n < 0) die("reading an open file");
  return hash_bytes(0, text, (size_t)n);
}

/* Opens a document of the newest generation. */
static int open_some(const snapshot *s, uint64_t *state, uint64_t *want) {
  char path[PATH];
  uint32_t docid;
  int fd;
  do docid = next_random(state) % s->docids;
  while (!s->texts[docid]);
  snprintf(path, sizeof path, "%s/doc/%llu.%lu", mount_point, (unsigned long long)s->generation, (unsigned long)docid);
  fd = open(path, O_RDONLY);
  if (fd < 0) die(path);
  *want = s->texts[docid];
  return fd;
}

static int do_reloads(pid_t pid, unsigned rounds) {
  int fds[OPEN], i;
  uint64_t want[OPEN], state = 1;
  unsigned round, maps, held, most_maps = 0, most_fds = 0;
  open_live(0, 0);
  for (i = 0; i < OPEN; i++) fds[i] = -1;
  for (round = 0; round < rounds; round++) {
    const unsigned at = next_random(&state) % OPEN;
    follow(pid, one_round(&state));
    take_snapshot();
    if (fds[at] >= 0 && hash_file(fds[at]) != want[at]) die("an open file has another text");
    if (fds[at] >= 0) close(fds[at]);
    fds[at] = open_some(&snapshots[nsnapshots - 1], &state, &want[at]);
    count_held(pid, &maps, &held);
    if (maps > most_maps) most_maps = maps;
    if (held > most_fds) most_fds = held;
    if (stat_value("generations_kept") > 16) die("more than 16 generations");
  }
  for (i = 0; i < OPEN; i++) {
    if (fds[i] >= 0 && hash_file(fds[i]) != want[i]) die("an open file has another text");
    if (fds[i] >= 0) close(fds[i]);
  }
  gpuir_live_close(live);
  printf("%u reloads: at most %u maps, %u descriptors\n", rounds, most_maps, most_fds);
  return 0;
}

/* ---- readers ------------------------------------------------------------------------------------------- */

enum { A_FOLDER, A_LIST, A_NAMED, A_BARE, A_GONE, A_STALE, KINDS };
static const char *const kinds[KINDS] = {"folders", "lists", "documents", "bare docIDs", "deleted", "stale"};

/* One read: of a hits/ folder, a list of docIDs, a document by either name; or what it came to. */
typedef struct record {
  uint32_t kind, what; /* a word or a docID */
  uint64_t generation, hash;
} record;

typedef struct shared { /* between the processes */
  unsigned long reads, errors;
  int end;
} shared;

typedef struct reader {
  shared *with;
  FILE *log;
  uint64_t state;
  record saved[SAVED]; /* documents that links have named */
  unsigned nsaved;
} reader;

static void put_record(reader *r, uint32_t kind, uint32_t what, uint64_t generation, uint64_t hash) {
  record it;
  memset(&it, 0, sizeof it);
  it.kind = kind;
  it.what = what;
  it.generation = generation;
  it.hash = hash;
  if (fwrite(&it, sizeof it, 1, r->log) != 1) die("log");
  (void)__atomic_add_fetch(&r->with->reads, 1, __ATOMIC_SEQ_CST);
}

/* A failed read: ESTALE may be, and ENOENT where `gone`. */
static void put_failure(reader *r, const char *path, int gone) {
  if (errno == ESTALE || (gone && errno == ENOENT)) {
    put_record(r, errno == ESTALE ? A_STALE : A_GONE, 0, 0, 0);
    return;
  }
  if (__atomic_add_fetch(&r->with->errors, 1, __ATOMIC_SEQ_CST) < 10) perror(path);
}

/* Reads a whole file; -1 with errno. */
static ssize_t read_file(const char *path, char *text, size_t cap) {
  size_t n = 0;
  ssize_t got;
  int fd = open(path, O_RDONLY), saved;
  if (fd < 0) return -1;
  while ((got = read(fd, text + n, cap - n)) > 0) n += (size_t)got;
  saved = errno;
  close(fd);
  errno = saved;
  return got < 0 ? got : (ssize_t)n;
}

static void read_document(reader *r, uint64_t generation, uint32_t docid) {
  char path[PATH], text[TEXT];
  ssize_t n;
  if (generation)
    snprintf(path, sizeof path, "%s/doc/%llu.%lu", mount_point, (unsigned long long)generation, (unsigned long)docid);
  else snprintf(path, sizeof path, "%s/doc/%lu", mount_point, (unsigned long)docid);
  n = read_file(path, text, sizeof text);
  if (n < 0) put_failure(r, path, !generation);
  else put_record(r, generation ? A_NAMED : A_BARE, docid, generation, hash_bytes(0, text, (size_t)n));
}

static void read_list(reader *r, unsigned word) {
  char path[PATH], text[TEXT], *at = text;
  uint64_t hash = 0;
  ssize_t n;
  snprintf(path, sizeof path, "%s/query/@k=%u/w%u", mount_point, (unsigned)HITS, word);
  n = read_file(path, text, sizeof text - 1);
  if (n < 0) {
    put_failure(r, path, 0);
    return;
  }
  text[n] = 0;
  while (*at) {
    uint32_t docid = (uint32_t)strtoul(at, &at, 10);
    hash = hash_bytes(hash, &docid, sizeof docid);
    at += *at == '\n';
  }
  put_record(r, A_LIST, word, 0, hash);
}

/* Reads the links of an open hits/ folder: into docids by their rank, and names. 0 or -1 with errno. */
static int read_links(DIR *dir, uint64_t *generation, uint32_t docids[HITS], char names[HITS][32], unsigned *n) {
  struct dirent *e;
  *n = 0;
  while ((errno = 0, e = readdir(dir)) != NULL) {
    char target[256], *name;
    unsigned long rank = strtoul(e->d_name, &name, 10);
    unsigned long long of;
    unsigned long docid;
    ssize_t len;
    if (e->d_name[0] == '.') continue;
    len = readlinkat(dirfd(dir), e->d_name, target, sizeof target - 1);
    if (len < 0) return -1;
    target[len] = 0;
    if (rank < 1 || rank > HITS || sscanf(target, "../../../doc/%llu.%lu", &of, &docid) != 2 ||
        (*n && of != *generation)) {
      errno = EPROTO; /* links of one folder are of one generation */
      return -1;
    }
    *generation = of;
    docids[rank - 1] = (uint32_t)docid;
    snprintf(names[rank - 1], sizeof names[0], "%s", name + 1);
    ++*n;
  }
  return errno ? -1 : 0;
}

static void read_folder(reader *r, unsigned word) {
  uint32_t docids[HITS];
  char path[PATH], names[HITS][32];
  uint64_t generation = 0, hash = 0;
  unsigned n = 0, i;
  DIR *dir;
  snprintf(path, sizeof path, "%s/hits/@k=%u/w%u", mount_point, (unsigned)HITS, word);
  dir = opendir(path);
  if (!dir || read_links(dir, &generation, docids, names, &n) != 0) {
    put_failure(r, path, 0);
    if (dir) closedir(dir);
    return;
  }
  closedir(dir);
  for (i = 0; i < n; i++) hash = hash_hit(hash, docids[i], names[i], strlen(names[i]));
  put_record(r, A_FOLDER, word, generation, hash);
  for (i = 0; i < n && i < 3; i++) {
    record *to = &r->saved[r->nsaved < SAVED ? r->nsaved++ : next_random(&r->state) % SAVED];
    to->generation = generation;
    to->what = docids[i];
  }
}

/* One process: reads until it is told to end, or nobody is left to tell it. */
static void run_reader(reader *r, pid_t parent) {
  while (!__atomic_load_n(&r->with->end, __ATOMIC_SEQ_CST) && getppid() == parent) {
    const unsigned word = next_random(&r->state) % WORDS;
    const unsigned what = next_random(&r->state) % 8;
    if (what == 0 || !r->nsaved) {
      read_folder(r, word);
    } else if (what == 1) {
      read_list(r, word);
    } else if (what == 2) {
      read_document(r, 0, next_random(&r->state) % NAMES);
    } else {
      const record *it = &r->saved[next_random(&r->state) % r->nsaved];
      read_document(r, it->generation, it->what);
    }
  }
}

/* Whether a read was right. */
static int is_right(const record *it) {
  const snapshot *s = snapshot_of(it->generation);
  size_t i;
  if (it->kind == A_GONE || it->kind == A_STALE) return 1;
  if (it->kind == A_NAMED) return s && it->what < s->docids && s->texts[it->what] == it->hash;
  if (it->kind == A_FOLDER && it->generation) return s && s->hits[it->what] == it->hash;
  for (i = 0; i < nsnapshots; i++) {
    s = &snapshots[i];
    if (it->kind == A_BARE && it->what < s->docids && s->texts[it->what] == it->hash) return 1;
    if (it->kind != A_BARE && s->ranks[it->what] == (it->kind == A_LIST ? it->hash : 0)) return 1;
  }
  return 0;
}

/* Checks a process's reads; returns how many were wrong. */
static unsigned long check_log(FILE *log, unsigned long counts[KINDS]) {
  unsigned long wrong = 0;
  record it;
  rewind(log);
  while (fread(&it, sizeof it, 1, log) == 1) {
    counts[it.kind]++;
    if (is_right(&it)) continue;
    if (wrong++ < 10)
      fprintf(stderr, "wrong: %s %u of generation %llu\n", kinds[it.kind], (unsigned)it.what,
          (unsigned long long)it.generation);
  }
  return wrong;
}

static FILE *start_reader(shared *with, unsigned number) {
  FILE *log = tmpfile();
  static reader r;
  const pid_t parent = getpid();
  pid_t pid;
  if (!log) die("tmpfile");
  pid = fork();
  if (pid < 0) die("fork");
  if (pid) return log;
  r.with = with;
  r.log = log;
  r.state = number + 7;
  run_reader(&r, parent);
  if (fflush(log) != 0) die("log");
  _exit(0);
}

/* Writes until there are enough reads, and ends the readers. */
static void write_meanwhile(pid_t pid, shared *with, unsigned long reads) {
  uint64_t state = 2;
  unsigned rounds = 0;
  open_live(0, 0);
  while (rounds++ < ROUNDS || __atomic_load_n(&with->reads, __ATOMIC_SEQ_CST) < reads) {
    const uint64_t generation = one_round(&state);
    take_snapshot();
    follow(pid, generation);
  }
  gpuir_live_close(live);
  __atomic_store_n(&with->end, 1, __ATOMIC_SEQ_CST);
}

static int do_readers(pid_t pid, unsigned processes, unsigned long reads) {
  shared *with = mmap(NULL, sizeof *with, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  FILE **logs = calloc(processes, sizeof *logs);
  unsigned long counts[KINDS] = {0}, wrong = 0, failed = 0;
  unsigned i;
  int status;
  if (with == MAP_FAILED || !logs) die("memory");
  take_snapshot();
  for (i = 0; i < processes; i++) logs[i] = start_reader(with, i);
  write_meanwhile(pid, with, reads);
  for (i = 0; i < processes; i++) failed += wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  for (i = 0; i < processes; i++) wrong += check_log(logs[i], counts);
  printf("%lu reads", with->reads);
  for (i = 0; i < KINDS; i++) printf(", %lu %s", counts[i], kinds[i]);
  printf("; %lu generations, %lu wrong, %lu errors\n", (unsigned long)nsnapshots, wrong, with->errors);
  return wrong || failed || with->errors || !counts[A_NAMED] || !counts[A_FOLDER] || !counts[A_STALE];
}

int main(int argc, char **argv) {
  folder = argc > 2 ? argv[1] : NULL;
  if (argc > 3 && strcmp(argv[2], "write") == 0) return do_write(argc - 3, argv + 3);
  mount_point = argc > 4 ? argv[3] : NULL;
  if (argc == 6 && strcmp(argv[2], "reloads") == 0)
    return do_reloads((pid_t)atol(argv[4]), (unsigned)strtoul(argv[5], NULL, 10));
  if (argc == 7 && strcmp(argv[2], "readers") == 0)
    return do_readers((pid_t)atol(argv[4]), (unsigned)strtoul(argv[5], NULL, 10), strtoul(argv[6], NULL, 10));
  fputs("usage: see tests/e2e/live_mount.c\n", stderr);
  return 2;
}
