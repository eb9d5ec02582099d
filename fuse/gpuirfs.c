/* gpuirfs.c - main and its options: gpuirfs INDEX MOUNTPOINT, ranked text search as a folder. */
#include "backend.h"
#include "caller.h"
#include "fs.h"
#include "guard.h"

#include "../tools/common/source.h"
#include "../tools/common/text.h"

#include <fuse_opt.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { EXIT_TROUBLE = 1, EXIT_USAGE = 2 };
enum { REQUESTS = 64 }; /* of the kernel, at once */

typedef struct arguments {
  const char *index, *mountpoint;
  char *k, *max_k, *mode, *backend, *devices, *cache, *max_result, *searchers, *queue, *timeout, *source;
  int verify, nosource, partition, shared, foreground, help, version, extra;
  text_filters filters;
  int bad_filter;
} arguments;

enum { KEY_DEBUG = 1, KEY_SHARED, KEY_FILTER };

#define OPTION(text, field, value) \
  { text, offsetof(arguments, field), value }
static const struct fuse_opt options[] = {
    OPTION("k=%s", k, 0),
    OPTION("max_k=%s", max_k, 0),
    OPTION("mode=%s", mode, 0),
    OPTION("backend=%s", backend, 0),
    OPTION("devices=%s", devices, 0),
    OPTION("partition", partition, 1),
    OPTION("cache=%s", cache, 0),
    OPTION("max_result=%s", max_result, 0),
    OPTION("searchers=%s", searchers, 0),
    OPTION("queue=%s", queue, 0),
    OPTION("timeout=%s", timeout, 0),
    OPTION("source=%s", source, 0),
    OPTION("verify", verify, 1),
    OPTION("nosource", nosource, 1),
    OPTION("-f", foreground, 1),
    OPTION("--foreground", foreground, 1),
    OPTION("-h", help, 1),
    OPTION("--help", help, 1),
    OPTION("-V", version, 1),
    OPTION("--version", version, 1),
    {"-d", UINT_MAX, KEY_DEBUG}, /* not FUSE_OPT_KEY, whose offset some compilers warn of */
    {"debug", UINT_MAX, KEY_DEBUG},
    {"allow_other", UINT_MAX, KEY_SHARED},
    {"allow_root", UINT_MAX, KEY_SHARED},
    {"filter=", UINT_MAX, KEY_FILTER},
    FUSE_OPT_END,
};

static void print_help(FILE *out) {
  fputs(
      "Usage: gpuirfs [OPTION...] INDEX MOUNTPOINT\n"
      "Mounts a gpuir index as a folder: cat MOUNTPOINT/query/word1+word2 prints ranked docIDs.\n"
      "INDEX is an index file, or the folder of a live index, whose changes show within two seconds.\n"
      "\n"
      "  -f, --foreground    stay in the foreground\n"
      "  -d                  the same, and print what the kernel asks\n"
      "  -h, --help          print this\n"
      "  -V, --version       print versions\n"
      "  -o OPTION[,...]     mount options:\n"
      "      k=N             hits of a query without @k= (10)\n"
      "      max_k=N         the largest @k= (1000000)\n"
      "      mode=MODE       of a query without @and, @or, @andor (and; or in pass, grep, files)\n"
      "      backend=B       of a query without @cpu, @gpu: auto, cpu or gpu (auto)\n"
      "      devices=LIST    that answer with backend=gpu: as 0:1, or all (0)\n"
      "      partition       each of them holds a part of the documents\n"
      "      cache=MB        memory for answers that may be asked for again (64)\n"
      "      max_result=MB   the longest answer (256)\n"
      "      searchers=N     searches that run at once (one for each processor)\n"
      "      queue=N         searches that wait for these at most; more fail with EAGAIN (64, all that can)\n"
      "      timeout=SECONDS of one search, or of reading for one look-up (none)\n"
      "      source=DIR      where relative source paths start (the folder of INDEX)\n"
      "      filter=F        a filter of the index that may run: ENDING=PROGRAM, or auto\n"
      "      nosource        show stored text alone: no links to source files, no parts of them\n"
      "      verify          check all of the index before it is used\n"
      "      allow_other     let other users in, and further options of fusermount3\n"
      "\n"
      "Unmount with: fusermount3 -u MOUNTPOINT\n",
      out);
}

/* Takes a filter, which may be given more than once. */
static void take_filter(arguments *a, const char *value) {
  const char *why = filters_add(&a->filters, value);
  if (!why) return;
  complain("filter='%s': %s", value, why);
  a->bad_filter = 1;
}

static int on_argument(void *data, const char *arg, int key, struct fuse_args *rest) {
  arguments *a = data;
  (void)rest;
  if (key == KEY_DEBUG) {
    a->foreground = 1;
    return 1; /* libfuse wants it too */
  }
  if (key == KEY_SHARED) {
    a->shared = 1;
    return 1;
  }
  if (key == KEY_FILTER) {
    take_filter(a, strchr(arg, '=') + 1);
    return 0;
  }
  if (key != FUSE_OPT_KEY_NONOPT) return 1;
  if (!a->index) a->index = arg;
  else if (!a->mountpoint) a->mountpoint = arg;
  else a->extra = 1;
  return 0;
}

static int point_to_help(void) {
  fputs("Try 'gpuirfs --help'.\n", stderr);
  return EXIT_USAGE;
}

static int usage(const char *before, const char *what, const char *after) {
  complain("%s%s%s", before, what, after);
  return point_to_help();
}

/* Passes a line of libfuse on, which may say it in pieces. It names options and folders, which may hold anything. */
static void say_for_fuse(enum fuse_log_level level, const char *format, va_list args) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static const char own[] = "fuse: ";
  static char text[4096];
  static size_t n;
  const size_t skip = sizeof own - 1;
  (void)level;
  pthread_mutex_lock(&lock);
  vsnprintf(text + n, sizeof text - n, format, args);
  n += strlen(text + n);
  if (n == sizeof text - 1 || (n && text[n - 1] == '\n')) {
    while (n && text[n - 1] == '\n') text[--n] = 0;
    if (n) complain("%s", text + (strncmp(text, own, skip) ? 0 : skip));
    n = 0;
  }
  pthread_mutex_unlock(&lock);
}

/* A decimal number in [least, most]; NULL stands for the default. */
static int number(const char *text, const char *what, uint64_t otherwise, uint64_t least, uint64_t most,
    uint64_t *out) {
  uint64_t n = 0;
  const char *p = text;
  *out = otherwise;
  if (!text) return 0;
  for (; *p >= '0' && *p <= '9' && n <= most; p++) n = n * 10 + (uint64_t)(*p - '0');
  if (p == text || *p || n < least || n > most) {
    complain("%s=%s: not a number from %llu to %llu", what, text, (unsigned long long)least, (unsigned long long)most);
    return EXIT_USAGE;
  }
  *out = n;
  return 0;
}

/* An absolute path that keeps its links: an index may be replaced by turning a link. */
static char *absolute(const char *path) {
  char here[PATH_MAX];
  size_t n;
  char *out;
  if (path[0] == '/') return strdup(path);
  if (!getcwd(here, sizeof here)) return NULL;
  n = strlen(here) + strlen(path) + 2;
  out = malloc(n);
  if (out) snprintf(out, n, "%s/%s", here, path);
  return out;
}

/* The same of an index. A folder may be given as "folder/" or "folder/.", which are cut off: the path ends with its
 * name. */
static char *absolute_index(const char *path) {
  char *out = absolute(path);
  struct stat st;
  size_t n = out ? strlen(out) : 0;
  if (!out || stat(out, &st) != 0 || !S_ISDIR(st.st_mode)) return out;
  while (n > 1 && (out[n - 1] == '/' || (out[n - 1] == '.' && out[n - 2] == '/'))) n--;
  out[n] = 0;
  return out;
}

static int configure(const arguments *a, fs_config *c) {
  uint64_t k, max_k, cache_mb, result_mb, searchers, queue, timeout;
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  uint64_t several = processors > 0 ? (uint64_t)processors : 2;
  if (several > 64) several = 64;
  if (number(a->max_k, "max_k", 1000000, 1, LINKS_MAX, &max_k) || number(a->k, "k", 10, 0, max_k, &k) ||
      number(a->cache, "cache", 64, 1, 1 << 20, &cache_mb) ||
      number(a->max_result, "max_result", 256, 1, 4096, &result_mb) ||
      number(a->searchers, "searchers", several, 1, 256, &searchers) ||
      number(a->queue, "queue", REQUESTS, 1, REQUESTS, &queue) || number(a->timeout, "timeout", 0, 0, 86400, &timeout))
    return EXIT_USAGE;
  if (k > max_k) k = max_k; /* the default k, under a max_k that was set */
  c->mode = GPUIR_AND;
  if (a->mode && name_mode(a->mode, strlen(a->mode), &c->mode) != 0)
    return usage("mode=", a->mode, ": not one of and, or, andor");
  c->sentences = a->mode ? c->mode : GPUIR_OR;
  c->backend = BACKEND_AUTO;
  if (a->backend) {
    if (strcmp(a->backend, "cpu") == 0) c->backend = BACKEND_CPU;
    else if (strcmp(a->backend, "gpu") == 0) c->backend = BACKEND_GPU;
    else if (strcmp(a->backend, "auto") != 0) return usage("backend=", a->backend, ": not one of auto, cpu, gpu");
  }
  if (backend_devices(a->devices, a->partition))
    return usage("devices=", a->devices, ": neither all nor numbers, as in 0:1");
  c->k = (uint32_t)k;
  c->max_k = (uint32_t)max_k;
  c->cache_bytes = (size_t)cache_mb << 20;
  c->result_bytes = (size_t)result_mb << 20;
  c->nosource = a->nosource;
  c->filters = a->filters;
  c->shared = a->shared;
  c->foreground = a->foreground;
  c->index = absolute_index(a->index);
  if (c->index && a->source) c->source_base = absolute(a->source);
  if (!c->index || (a->source && !c->source_base)) {
    complain("%s: %s", a->source ? a->source : a->index, strerror(errno));
    return EXIT_TROUBLE;
  }
  c->open.path = c->index;
  c->open.base = c->source_base;
  c->open.verify = a->verify;
  c->timeout_ns = timeout * UINT64_C(1000000000);
  c->engine.searchers = (unsigned)searchers;
  c->engine.queue = (unsigned)queue;
  c->engine.timeout_ns = c->timeout_ns;
  return 0;
}

/* Ours come last, so that they hold whatever was asked for; fsname and subtype first, so that they may be
 * changed. */
static int add_mount_options(struct fuse_args *args, const char *index) {
  char *first = NULL, *fsname = malloc(strlen(index) + 8);
  int rc = -1;
  if (fsname) {
    sprintf(fsname, "fsname=%s", index);
    rc = fuse_opt_add_opt_escaped(&first, fsname);
    if (rc == 0) rc = fuse_opt_add_opt(&first, "subtype=gpuirfs");
    if (rc == 0) rc = fuse_opt_insert_arg(args, 1, first);
    if (rc == 0) rc = fuse_opt_insert_arg(args, 1, "-o");
    if (rc == 0) rc = fuse_opt_add_arg(args, "-oro,nosuid,nodev,noexec,default_permissions");
  }
  free(first);
  free(fsname);
  return rc;
}

static int loop(fs *f) {
  struct fuse_loop_config *config = fuse_loop_cfg_create();
  int rc;
  if (!config) return ENOMEM;
  /* More threads than searchers: those that wait for one must not keep interrupts waiting. */
  fuse_loop_cfg_set_max_threads(config, REQUESTS);
  fuse_loop_cfg_set_idle_threads(config, 16);
  rc = fuse_session_loop_mt(f->session, config);
  fuse_loop_cfg_destroy(config);
  return rc;
}

/* Tells somebody at a terminal what to do with a mount. */
static void greet(const char *mountpoint) {
  if (!isatty(STDOUT_FILENO)) return;
  printf("Mounted. Try: cat '");
  text_print(stdout, TEXT_MESSAGE, mountpoint, strlen(mountpoint));
  printf("/pass/some+words'. README there has all else; fusermount3 -u unmounts.\n");
  fflush(stdout);
}

/* Mounts and serves; the index is loaded and the options are right. */
static int serve(fs *f) {
  sigset_t handled;
  int rc;
  /* Blocked in every thread, for the one that waits for them; before the mount exists, so that no signal can
   * leave it behind. */
  sigemptyset(&handled);
  sigaddset(&handled, SIGHUP);
  sigaddset(&handled, SIGINT);
  sigaddset(&handled, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &handled, NULL);
  if (fuse_session_mount(f->session, f->config.mountpoint) != 0) return EXIT_TROUBLE; /* it has said why */
  rc = source_device(f->config.mountpoint, &f->device);
  if (rc == 0) greet(f->config.mountpoint);
  if (rc == 0) rc = fuse_daemonize(f->config.foreground);
  if (rc == 0) rc = fs_threads_start(f);
  if (rc) {
    complain("%s", rc > 0 ? strerror(rc) : "cannot detach");
    fuse_session_unmount(f->session);
    _exit(EXIT_TROUBLE); /* some threads may have started */
  }
  rc = loop(f);
  if (fs_threads_stop(f) != 0) { /* the reloader still reads the index, which must not be closed then */
    fuse_session_unmount(f->session);
    _exit(rc ? EXIT_TROUBLE : 0);
  }
  fuse_session_unmount(f->session);
  return rc ? EXIT_TROUBLE : 0;
}

/* Writes the folder to mount on to `out`. statvfs asks whatever is mounted there already; the kernel may still
 * know the attributes of a mount whose daemon has died, so that stat finds nothing wrong. */
static int find_mountpoint(const char *path, char out[PATH_MAX]) {
  struct stat st;
  struct statvfs mounted;
  if (!realpath(path, out) || stat(out, &st) != 0 || statvfs(out, &mounted) != 0) {
    if (errno == ENOTCONN) /* a daemon that was killed left it */
      complain("%s: what was mounted there has died: fusermount3 -u %s", path, path);
    else complain("%s: %s", path, strerror(errno));
    return EXIT_TROUBLE;
  }
  if (S_ISDIR(st.st_mode)) return 0;
  complain("%s: %s", path, strerror(ENOTDIR));
  return EXIT_TROUBLE;
}

/* Compares the filters that may run with those that the index was made with. Not 0 after a message. */
static int agree_filters(fs *f) {
  gpuir_index_info info;
  text_filters *given = &f->config.filters;
  if (!given->n && !given->automatic) return 0;
  if (f->config.nosource) return complain("filter=: nosource shows no text that it makes"), -1;
  if (gpuir_index_get_info(generation_index(f->now), &info) != GPUIR_OK) info.filters = "";
  return filters_agree(given, f->config.index, info.filters, "-o filter=", complain);
}

/* Loads the index and makes what serving needs; the mount point is known. */
static int prepare(fs *f) {
  char msg[400];
  int rc = caller_init();
  if (rc == 0) rc = guard_install();
  if (rc) {
    complain("%s", strerror(rc));
    return EXIT_TROUBLE;
  }
  f->engine = f->config.open.engine = engine_create(&f->config.engine);
  if (!f->engine) {
    complain("%s", strerror(ENOMEM));
    return EXIT_TROUBLE;
  }
  if (generation_open(&f->config.open, NULL, &f->now, msg, sizeof msg) != 0) {
    complain("%s", msg);
    return EXIT_TROUBLE;
  }
  if (agree_filters(f)) return EXIT_TROUBLE;
  f->texts = text_cache_create(f->config.cache_bytes < TEXT_CACHE_BYTES ? f->config.cache_bytes : TEXT_CACHE_BYTES,
      FILTER_FAILURE_SECONDS);
  f->readme = fs_readme(&f->config);
  f->agents = fs_agents(&f->config);
  if (!f->texts || !f->readme || !f->agents || cache_init(&f->cache, f->config.cache_bytes) != 0) {
    complain("%s", strerror(ENOMEM));
    return EXIT_TROUBLE;
  }
  f->readme_size = strlen(f->readme);
  f->agents_size = strlen(f->agents);
  f->version_size = (size_t)snprintf(f->version, sizeof f->version, "gpuirfs %s\n", gpuir_version());
  clock_gettime(CLOCK_REALTIME, &f->started);
  f->uid = getuid();
  f->gid = getgid();
  return 0;
}

static void release(fs *f, arguments *a) {
  unsigned i;
  if (f->session) fuse_session_destroy(f->session);
  cache_destroy(&f->cache);
  for (i = 0; i < f->nolder; i++) generation_unref(f->older[i].gen);
  generation_unref(f->now);
  engine_destroy(f->engine);
  text_cache_destroy(f->texts);
  filters_free(f->config.filters.n ? &f->config.filters : &a->filters);
  pthread_mutex_destroy(&f->lock);
  free(f->readme);
  free(f->agents);
  free(f->config.index);
  free(f->config.source_base);
  free(a->k), free(a->max_k), free(a->mode), free(a->backend), free(a->devices), free(a->cache), free(a->max_result);
  free(a->searchers), free(a->queue), free(a->timeout), free(a->source);
}

static int run(fs *f, struct fuse_args *args, const arguments *a) {
  char mountpoint[PATH_MAX];
  int rc;
  if (a->bad_filter) return point_to_help();
  if (!a->mountpoint || a->extra) return usage("it takes an index and a mount point", "", "");
  rc = configure(a, &f->config);
  if (rc) return rc;
  if (add_mount_options(args, f->config.index) != 0) return EXIT_TROUBLE;
  f->session = fuse_session_new(args, &fs_operations, sizeof fs_operations, f);
  if (!f->session) return point_to_help(); /* libfuse has said what is wrong */

  /* From here on the command is right; what fails is the world. */
  rc = find_mountpoint(a->mountpoint, mountpoint);
  f->config.mountpoint = mountpoint;
  if (rc == 0) rc = prepare(f);
  return rc ? rc : serve(f);
}

int main(int argc, char **argv) {
  struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
  arguments a;
  static fs f;
  int rc = EXIT_USAGE;
  memset(&a, 0, sizeof a);
  pthread_mutex_init(&f.lock, NULL);
  fuse_set_log_func(say_for_fuse);
  if (fuse_opt_parse(&args, &a, options, on_argument) == 0) {
    if (a.help || a.version) {
      if (a.help) print_help(stdout);
      else printf("gpuirfs %s (libfuse %s)\n", gpuir_version(), fuse_pkgversion());
      rc = fflush(stdout) == 0 ? 0 : EXIT_TROUBLE;
      if (rc) complain("standard output: %s", strerror(errno));
    } else {
      rc = run(&f, &args, &a);
    }
  }
  release(&f, &a);
  fuse_opt_free_args(&args);
  return rc;
}
