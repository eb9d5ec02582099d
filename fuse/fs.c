/* fs.c - the threads beside libfuse's workers, and the text of README and .stats. */
#include "fs.h"

#include "backend.h"
#include "guard.h"

#include "../tools/common/passages.h"
#include "../tools/common/skipped.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* ---- reloading ----------------------------------------------------------------------------------------- */

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

generation *fs_generation(fs *f, uint64_t id) {
  unsigned i;
  if (generation_id(f->now) == id) return f->now;
  for (i = 0; i < f->nolder; i++)
    if (generation_id(f->older[i].gen) == id) return f->older[i].gen;
  return NULL;
}

/* Takes generations that are to be kept no longer out of the list, oldest first. Called with the lock. */
static unsigned take_expired(fs *f, generation *gone[KEEP_MOST]) {
  const uint64_t time = now_ns();
  /* Those of an index file are large, and share nothing. */
  const unsigned least = generation_is_live(f->now) ? 1 : 0;
  unsigned n = 0;
  while (n + least < f->nolder) {
    const fs_older *oldest = &f->older[n];
    if (least && f->nolder - n < KEEP_MOST && time - oldest->replaced < KEEP_SECONDS * UINT64_C(1000000000)) break;
    gone[n++] = oldest->gen;
  }
  f->nolder -= n;
  memmove(f->older, f->older + n, f->nolder * sizeof *f->older);
  return n;
}

/* Has the kernel forget what is of other generations than those that are kept. Called with the lock. */
static void forget_others(fs *f) {
  const uint64_t newest = generation_id(f->now);
  cache_keep_generations(&f->cache, newest, f->nolder ? generation_id(f->older[0].gen) : newest);
  pthread_cond_signal(&f->to_notify);
}

/* Lets go of generations that are kept no longer. Called without the lock: the last reference closes an index. */
static void let_go(generation *const gone[], unsigned n) {
  unsigned i;
  for (i = 0; i < n; i++) generation_unref(gone[i]);
}

static void drop_expired(fs *f) {
  generation *gone[KEEP_MOST];
  unsigned n;
  pthread_mutex_lock(&f->lock);
  n = take_expired(f, gone);
  if (n) forget_others(f);
  pthread_mutex_unlock(&f->lock);
  let_go(gone, n);
}

/* Notes that the index was not loaded. `again`: nothing has changed since the last time, so it is not said twice. */
static void refuse(fs *f, const char *msg, int again) {
  int known;
  pthread_mutex_lock(&f->lock);
  known = again && strcmp(f->last_refused, msg) == 0;
  if (!known) {
    f->count.refused++;
    snprintf(f->last_refused, sizeof f->last_refused, "%s", msg);
  }
  pthread_mutex_unlock(&f->lock);
  if (!known) complain("not reloaded, the index in use stays: %s", msg);
}

/* Loads the index anew and makes it the current one, which only this thread does. A broken one is refused, and the old
 * one stays. */
static void reload(fs *f, int again) {
  generation *g, *before = f->now, *gone[KEEP_MOST];
  char msg[sizeof f->last_refused];
  unsigned n;
  if (generation_open(&f->config.open, before, &g, msg, sizeof msg) != 0) {
    refuse(f, msg, again);
    return;
  }
  pthread_mutex_lock(&f->lock);
  f->older[f->nolder].gen = generation_ref(before);
  f->older[f->nolder++].replaced = now_ns();
  f->now = g;
  f->count.reloads++;
  f->last_refused[0] = 0;
  n = take_expired(f, gone);
  forget_others(f);
  pthread_mutex_unlock(&f->lock);
  if (f->config.foreground && !generation_is_live(g)) complain("reloaded %s", f->config.index);
  generation_retire(before);
  generation_unref(before);
  let_go(gone, n);
}

/* What the reloader has seen of the index. */
typedef struct watch {
  file_sign loaded, tried;
  uint64_t next; /* when a live index may be loaded again */
} watch;

/* Whether the index is to be loaded now. `sign` is NULL if it is gone, which is no change: the loaded one goes on,
 * until there is another. */
static int is_due(const fs *f, const watch *w, const file_sign *sign, int asked) {
  const int live = generation_is_live(f->now), broken = generation_is_broken(f->now);
  const int changed = sign && !file_sign_equal(sign, &w->loaded);
  if (asked) return changed || !sign || !live || broken;
  if (now_ns() < w->next) return 0;
  /* A file of a live index may become whole again without a new manifest. */
  return (changed && !file_sign_equal(sign, &w->tried)) || (live && broken);
}

static void look(fs *f, watch *w, int asked) {
  file_sign sign;
  const int found = generation_sign(f->config.index, &sign) == 0;
  int again;
  if (!is_due(f, w, found ? &sign : NULL, asked)) return;
  again = !asked && found && file_sign_equal(&sign, &w->tried);
  if (found) w->tried = sign;
  if (generation_is_live(f->now)) w->next = now_ns() + LIVE_INTERVAL_NS;
  reload(f, again);
  w->loaded = *generation_file(f->now); /* only this thread changes it */
}

static void *reloader_main(void *arg) {
  fs *f = arg;
  watch w;
  w.loaded = w.tried = *generation_file(f->now);
  w.next = 0;
  pthread_mutex_lock(&f->lock);
  while (!f->quitting) {
    struct timespec until;
    int asked;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += RELOAD_INTERVAL_NS;
    if (until.tv_nsec >= 1000000000L) {
      until.tv_nsec -= 1000000000L;
      until.tv_sec++;
    }
    if (!f->reload_asked) pthread_cond_timedwait(&f->to_reload, &f->lock, &until);
    if (f->quitting) break;
    asked = f->reload_asked;
    f->reload_asked = 0;
    f->reloader_busy = 1;
    pthread_mutex_unlock(&f->lock);
    look(f, &w, asked);
    drop_expired(f);
    pthread_mutex_lock(&f->lock);
    f->reloader_busy = 0;
  }
  pthread_mutex_unlock(&f->lock);
  return NULL;
}

/* ---- telling the kernel -------------------------------------------------------------------------------- */

/* Dropping a name waits for its folder's lock, and busy processes leave it to this thread only now and then.
 * Dropping a folder as a whole needs the lock of the root alone, which nobody else wants. The kernel finds
 * the folders, and what is still good in them, again at the next look-up. */
static void drop_folders(fs *f) {
  static const char *const folders[] = {"query", "hits", "files", "pass", "grep", "doc", "term"};
  size_t i;
  for (i = 0; i < sizeof folders / sizeof *folders; i++)
    fuse_lowlevel_notify_inval_entry(f->session, FUSE_ROOT_ID, folders[i], strlen(folders[i]));
}

static void *notifier_main(void *arg) {
  fs *f = arg;
  pthread_mutex_lock(&f->lock);
  while (!f->notifier_stop) {
    char name[NAME_LIMIT + 1];
    uint64_t parent;
    size_t len;
    if (cache_many_waiting(&f->cache)) {
      cache_none_waiting(&f->cache);
      f->count.dropped_folders++;
      pthread_mutex_unlock(&f->lock);
      drop_folders(f);
      pthread_mutex_lock(&f->lock);
      continue;
    }
    if (!cache_next_waiting(&f->cache, &parent, name, &len)) {
      pthread_cond_wait(&f->to_notify, &f->lock);
      continue;
    }
    f->count.invalidated++;
    pthread_mutex_unlock(&f->lock);
    /* Waits while the kernel looks something up in that folder. "Not known" is as good as success. */
    fuse_lowlevel_notify_inval_entry(f->session, parent, name, len);
    pthread_mutex_lock(&f->lock);
  }
  pthread_mutex_unlock(&f->lock);
  return NULL;
}

static void notifier_end(fs *f) {
  if (f->notifier_joined) return;
  pthread_mutex_lock(&f->lock);
  f->notifier_stop = 1;
  pthread_cond_signal(&f->to_notify);
  pthread_mutex_unlock(&f->lock);
  pthread_join(f->notifier, NULL);
  f->notifier_joined = 1;
}

/* ---- signals ------------------------------------------------------------------------------------------- */

static void quit_searches(fs *f) {
  ticket *t;
  pthread_mutex_lock(&f->lock);
  f->quitting = 1;
  for (t = f->running; t; t = t->next) ticket_cancel(t);
  pthread_cond_signal(&f->to_reload);
  pthread_mutex_unlock(&f->lock);
}

static void wake(int sig) { (void)sig; }

static int has_left(fs *f) {
  int left;
  pthread_mutex_lock(&f->lock);
  left = f->loop_left;
  pthread_mutex_unlock(&f->lock);
  return left;
}

/* Ends a process whose workers do not come back: one may wait for a file system that does not answer, such as
 * one on the net. The mount is taken away first. Closing the device lets go of all who wait for an answer, also
 * while the kernel cannot end that worker yet. */
static void leave_stuck(fs *f) {
  complain("a request does not end: leaving without it");
  fuse_session_unmount(f->session); /* closes the device too */
  _exit(1);
}

static void *signals_main(void *arg) {
  fs *f = arg;
  const struct timespec moment = {0, 5000000};
  struct timespec begun, now;
  sigset_t set;
  int sig;
  sigemptyset(&set);
  sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  for (;;) {
    if (sigwait(&set, &sig) != 0 || has_left(f)) return NULL;
    if (sig != SIGHUP) break;
    pthread_mutex_lock(&f->lock);
    f->reload_asked = 1;
    pthread_cond_signal(&f->to_reload);
    pthread_mutex_unlock(&f->lock);
  }
  quit_searches(f);
  /* While the workers still answer: the notifier may be waiting for a look-up of theirs. */
  notifier_end(f);
  fuse_session_exit(f->session);
  /* The loop waits on a semaphore, which only a signal wakes; again, in case it was not waiting yet. */
  clock_gettime(CLOCK_MONOTONIC, &begun);
  while (!has_left(f)) {
    pthread_kill(f->main_thread, SIGUSR1);
    nanosleep(&moment, NULL);
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec - begun.tv_sec > LEAVE_SECONDS) leave_stuck(f);
  }
  return NULL;
}

int fs_threads_start(fs *f) {
  struct sigaction act;
  pthread_condattr_t attr;
  memset(&act, 0, sizeof act);
  sigemptyset(&act.sa_mask);
  act.sa_handler = wake; /* without SA_RESTART, so that it does wake */
  if (sigaction(SIGUSR1, &act, NULL) != 0) return errno;
  act.sa_handler = SIG_IGN;
  if (sigaction(SIGPIPE, &act, NULL) != 0) return errno;
  f->main_thread = pthread_self();
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&f->to_reload, &attr);
  pthread_condattr_destroy(&attr);
  pthread_cond_init(&f->to_notify, NULL);
  if (pthread_create(&f->notifier, NULL, notifier_main, f) != 0) return EAGAIN;
  if (pthread_create(&f->reloader, NULL, reloader_main, f) != 0) return EAGAIN;
  if (pthread_create(&f->signals, NULL, signals_main, f) != 0) return EAGAIN;
  return 0;
}

int fs_threads_stop(fs *f) {
  int busy;
  quit_searches(f);
  pthread_mutex_lock(&f->lock);
  f->loop_left = 1;
  busy = f->reloader_busy;
  pthread_mutex_unlock(&f->lock);
  pthread_kill(f->signals, SIGTERM);
  pthread_join(f->signals, NULL);
  notifier_end(f);
  /* Checking a large index cannot be called off; the end of the process ends it. */
  if (busy) return EBUSY;
  pthread_join(f->reloader, NULL);
  pthread_cond_destroy(&f->to_notify);
  pthread_cond_destroy(&f->to_reload);
  return 0;
}

/* ---- texts --------------------------------------------------------------------------------------------- */

void fs_said(fs *f, int kind, uid_t uid, const char *name, size_t len, const char *why) {
  fs_words *at = NULL;
  unsigned i;
  for (i = 0; i < SAID_USERS && !at; i++)
    if (f->said[kind][i].used && f->said[kind][i].uid == uid) at = &f->said[kind][i];
  if (!at) {
    at = &f->said[kind][f->next_user[kind]];
    f->next_user[kind] = (f->next_user[kind] + 1) % SAID_USERS;
  }
  at->used = 1;
  at->uid = uid;
  snprintf(at->name, sizeof at->name, "%.*s", (int)(len < NAME_LIMIT ? len : NAME_LIMIT), name);
  snprintf(at->why, sizeof at->why, "%s", why);
}

/* What .stats tells, as it was at one moment. */
typedef struct fs_picture {
  generation *now;
  fs_counters count;
  cache cache;
  uint64_t handles;
  unsigned kept;
  char fallback[160], refused[400];
  fs_words said[SAID_KINDS];
} fs_picture;

static void take_picture(fs *f, uid_t uid, fs_picture *p) {
  unsigned i, kind;
  pthread_mutex_lock(&f->lock);
  p->now = generation_ref(f->now);
  p->count = f->count;
  p->cache = f->cache;
  p->handles = f->handles;
  p->kept = 1 + f->nolder;
  memcpy(p->fallback, f->last_fallback, sizeof p->fallback);
  memcpy(p->refused, f->last_refused, sizeof p->refused);
  memset(p->said, 0, sizeof p->said);
  for (kind = 0; kind < SAID_KINDS; kind++)
    for (i = 0; i < SAID_USERS; i++)
      if (f->said[kind][i].used && f->said[kind][i].uid == uid) p->said[kind] = f->said[kind][i];
  pthread_mutex_unlock(&f->lock);
}

/* Adds a line, unless there is nothing to say. */
static void put_words(buf *b, const char *key, const char *words) {
  if (!words[0]) return;
  buf_puts(b, key);
  buf_puts(b, "\t");
  format_tsv_name(b, words, strlen(words));
  buf_puts(b, "\n");
}

static void put_said(buf *b, const char *key, const fs_words *said) {
  char words[NAME_LIMIT + WHY_SIZE + 4];
  if (!said->used) return;
  snprintf(words, sizeof words, "%s: %s", said->name, said->why);
  put_words(b, key, words);
}

/* Says what was left out of the index. */
static void put_skipped(buf *b, const char *index, const gpuir_index_info *info) {
  skipped_counts counts;
  byte_buf said;
  memset(&said, 0, sizeof said);
  skipped_of(&counts, index, info);
  skipped_say(&counts, &said);
  bytes_char(&said, 0);
  if (!said.failed) put_words(b, "skipped", said.p);
  bytes_free(&said);
}

void fs_stats(fs *f, uid_t uid, buf *b) {
  gpuir_index_info info;
  gpuir_pool_stats searches;
  fs_picture p;
  take_picture(f, uid, &p);
  engine_counters(f->engine, p.now, &searches);
  memset(&info, 0, sizeof info);
  guard_enter(generation_broken_flag(p.now));
  gpuir_index_get_info(generation_index(p.now), &info);
  guard_leave();
  put_words(b, "index", f->config.index);
  put_words(b, "backend",
      backend_present() && f->config.backend != BACKEND_CPU && !generation_is_live(p.now) ? "gpu" : "cpu");
#define LINE(name, value) buf_printf(b, name "\t%llu\n", (unsigned long long)(value))
  LINE("generation", generation_id(p.now));
  LINE("generations_kept", p.kept);
  LINE("broken", generation_is_broken(p.now));
  LINE("segments", info.segments);
  LINE("documents", info.documents);
  LINE("terms", info.terms);
  LINE("postings", info.postings);
  LINE("file_bytes", info.file_bytes);
  LINE("lookups", p.count.lookups);
  LINE("searches", p.count.searches);
  LINE("searches_running", searches.submitted - searches.completed - searches.waiting);
  LINE("searches_waiting", searches.waiting);
  LINE("searches_refused", searches.refused);
  LINE("searches_late", searches.missed);
  LINE("searches_cancelled", searches.cancelled);
  LINE("searches_helped", searches.joined);
  LINE("searches_by_gpu", searches.on_device);
  LINE("memo_hits", p.count.memo_hits);
  LINE("errors", p.count.errors);
  LINE("changed_sources", p.count.changed);
  LINE("expired", p.count.expired);
  LINE("interrupted", p.count.interrupted);
  LINE("gpu_fallbacks", p.count.fallbacks);
  LINE("reloads", p.count.reloads);
  LINE("refused", p.count.refused);
  LINE("cache_limit", p.cache.limit);
  LINE("cache_bytes", p.cache.listed_cost);
  LINE("leaving_bytes", p.cache.leaving_cost);
  LINE("nodes", p.cache.nodes);
  LINE("results", p.cache.results);
  LINE("evicted", p.cache.evicted);
  LINE("invalidated", p.count.invalidated);
  LINE("dropped_folders", p.count.dropped_folders);
  LINE("open_files", p.handles);
#undef LINE
  put_skipped(b, f->config.index, &info);
  put_words(b, "gpu_fallback_reason", p.fallback);
  put_words(b, "refused_reason", p.refused);
  put_said(b, "last_error", &p.said[SAID_ERROR]);
  put_said(b, "last_note", &p.said[SAID_NOTE]);
  generation_unref(p.now);
}

static const char *mode_name(int mode) {
  static const char *const modes[] = {"and", "or", "andor"};
  return modes[mode];
}

/* Returns what *b holds as a string, or NULL. */
static char *take_string(buf *b) {
  buf_put(b, "", 1); /* the final NUL */
  if (!b->error) return b->data;
  buf_free(b);
  return NULL;
}

char *fs_agents(const fs_config *config) {
  buf b;
  memset(&b, 0, sizeof b);
  b.max = 65536;
  buf_puts(&b,
      "# A search index as a folder: how to search with cat\n"
      "\n"
      "Reading a file runs the query that is its name. Nothing is ever written here.\n"
      "\n"
      "    cat 'pass/how+are+pages+reclaimed'    the best passages, each under path:first-last\n"
      "    cat 'grep/kswapd+reclaim'             the best lines, as path:line:text\n"
      "    cat 'query/kswapd+reclaim.paths'      the best files, a path a line\n"
      "    grep -r kswapd 'files/page+reclaim'   the best documents as files\n"
      "\n"
      "- Ask in words: `+` parts them, any of them will do, best answers come first. Rare words count most.\n"
      "- Words are looked up whole. `word*` stands for all words that begin so, `-word` excludes a word, "
      "and\n"
      "  `\"two+words\"` is a phrase where the index has positions. AND, OR, NOT and regular expressions "
      "mean nothing.\n"
      "- Write other bytes as %XX: a dot before tsv, json, paths, conf or html is %2E, a slash is %2F.\n"
      "- Only some documents: `ls by` has what they carry, `ls by/ext` its values, and `by/ext/c/pass/...` searches\n"
      "  those of value c. The same in an option: `pass/@ext=c,h/...`, `pass/@mtime=2024-01../...`, "
      "`@-dir=vendor`.\n"
      "  `query/@ext=c/+.paths` has no words: all of them. `@sort=-mtime` orders, `facet/ext/...` counts values.\n");
  buf_printf(&b,
      "- An answer is cut after %d tokens of four bytes. Options are folders: `pass/@tokens=3000/...`, `@context=5` "
      "(lines\n"
      "  around), `@and` (all words), `grep/@k=30/...` (documents: %lu else), `@rank=plain` (code by its words "
      "alone).\n",
      PASSAGES_TOKENS, (unsigned long)config->k);
  buf_puts(&b,
      "- Start with pass/, with four to eight words that the text itself would use; then read the file at the path, "
      "also\n"
      "  where `(changed since it was indexed)` stands. An error, or nothing found: `grep last_ .stats`; all else: "
      "README.\n");
  return take_string(&b);
}

char *fs_readme(const fs_config *config) {
  buf b;
  memset(&b, 0, sizeof b);
  b.max = 65536;
  buf_puts(&b,
      "This folder answers ranked text queries. Naming a file runs its query; listing a folder runs none.\n"
      "\n"
      "  cat pass/gpu+cuda               the best passages, each under path:first-last\n"
      "  cat grep/gpu+cuda               the best lines, as path:line:text\n"
      "  cat query/gpu+cuda              docIDs of the best documents, best first\n"
      "  cat query/gpu+cuda.paths        the paths of their files\n"
      "  cat query/gpu+-opencl.tsv       rank, docID, score and name; without 'opencl'\n"
      "  cat query/@or/@k=100/gpu+cuda   any of the words, the best 100\n"
      "  cat 'query/\"graphics+card\"'    a phrase; cat 'query/graph*': a prefix\n"
      "  grep -r cuda files/gpu+cuda     the best documents as files\n"
      "  ls -l hits/gpu+cuda             the same as links to the documents\n"
      "  head -n 5 hits/gpu+cuda/000001* the best document\n"
      "  cat doc/0                       document 0, or a link to its file\n"
      "  cat term/gpu                    in how many documents a term occurs, and how it is stored\n"
      "\n"
      "pass/<q>          passages, best documents first; sources that changed are named without text\n"
      "grep/<q>          their lines with words of the query\n"
      "query/<q>         one docID a line; an empty file when nothing matches\n"
      "query/<q>.paths   the path of each file once; of a document without one, that of doc/<docID>\n"
      "query/<q>.tsv     rank, docID, score, name; \\t \\n \\r \\\\ \\xhh stand for special characters\n"
      "query/<q>.json    an array of objects with the same four; BM25's score as bm25 where @rank=code holds\n"
      "files/<q>/        files 000001-<name> with the text of the documents\n"
      "hits/<q>/         links 000001-<name> to doc/<docID>, or to doc/<generation>.<docID>\n"
      "doc/<docID>       the stored text, a link to the source file, or its part of it\n"
      "doc/<generation>.<docID>  the same as the index was then: see below\n"
      "term/<t>          statistics of a term\n"
      ".stats .version   counters of the mount, and its version\n"
      "AGENTS.md         how a program searches here, in twenty lines\n"
      "\n"
      "<q> is one file name of at most 255 bytes. `+` parts words, `-` before a word excludes it,\n"
      "%XX stands for any byte (Python: urllib.parse.quote_plus). `-`, `@` and the suffix are read\n"
      "before %XX, so %2D, %40 and %2E are the plain characters. `\"` and `*` are the same as %22 and\n"
      "%2A: \"two+words\" is a phrase, -\"two+words\" excludes it, and word* stands for all words that\n"
      "begin so. Names that begin with `.`, and names such as index.html and *.conf, which servers and\n"
      "editors look for in every folder, are never queries.\n"
      "\n"
      "Options are folders in these, in any order, each at most once:\n"
      "  @and @or @andor   all words; any word; all, or any where too few documents have all\n"
      "  @k=N              at most N documents, best first\n"
      "  @rank=code @rank=plain   by names and definitions, as one searches program code, or by BM25 alone; by\n"
      "                    itself the first where half of the documents are source files\n"
      "  @cpu @gpu         who computes; the answer is the same\n"
      "  @tokens=N @bytes=N   pass/ and grep/: at most so much text, a token being 4 bytes; 0: no bound\n"
      "  @context=N        pass/ and grep/: N lines before and behind those with words of the query\n"
      "And, at most 16 on a path, which all must hold, what documents carry beside their text (`ls by`):\n"
      "  @ext=c,h @-dir=vendor    either value; none; of a path, with all below\n"
      "  @mtime=2024-01..2024-06  a range; 2024-01.. and ..2024-06; .. is any value\n"
      "  @where=<text>     what gpuir query -w takes, in the form of <q>\n"
      "  @sort=-mtime @collapse=dir @show=author,date   once each: in this order (- falls); of hits with the same\n"
      "                    value the best; values behind each hit of query/, in .tsv and .json\n"
      "`,` and `..` are %2C and %2E%2E in a value. Then <q> may be `+`: all such documents.\n");
  buf_puts(&b,
      "by/<column>/ lists values, of dates years, of paths the folders at the top; by/<column>/<value>/ has query/,\n"
      "hits/, files/, pass/, grep/, facet/ for the documents with it, and by/, which is not listed.\n"
      "by/mtime/2024-01..2024-06/ and by/ext/c,h/ are found by name.\n"
      "facet/<column>/<q> counts the values of all documents that match: count, tab, value; 20 or @k=N, 0 all;\n"
      "facet/dir:src/<q> folders in one, facet/mtime:month/<q> months, facet/size:0,1000/<q> ranges; .json too.\n");
  buf_printf(&b, "Without them: @%s/@k=%lu; in pass/, grep/, files/ and .paths @%s, and @tokens=%d.\n",
      mode_name(config->mode), (unsigned long)config->k, mode_name(config->sentences), PASSAGES_TOKENS);
  buf_printf(&b, "The largest N of @k= is %lu.\n\n", (unsigned long)config->max_k);
  buf_puts(&b,
      "Errors: EINVAL for a malformed name, a quote that is not closed, AND, OR or NOT, or a query without\n"
      "a word to look for, E2BIG for more than 64 words or a prefix of too many, ENAMETOOLONG for a name\n"
      "over 255 bytes, EROFS for writing, ENODATA for a document whose text is neither in the index nor on\n"
      "disk, EACCES for one whose source you may not read, EIO when the index file was cut short.\n"
      "`last_error` in .stats says in words why your last name failed, and `last_note` what the last\n"
      "answer does not show. When the index is replaced, or a live one changes, new results show within\n"
      "two seconds; open files keep what they had.\n"
      "\n"
      "The docIDs of a live index change. Its links in hits/ name the generation that they belong to, which\n"
      "stays for ten seconds after the next; then they are ESTALE, and never another document.\n");
  return take_string(&b);
}
