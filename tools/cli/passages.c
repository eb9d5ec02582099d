/* passages.c - what passages of hits are to the command: where they go, and where paths start. */
#ifndef _GNU_SOURCE
#define _XOPEN_SOURCE 700 /* realpath */
#endif
#include "cli.h"

#include "../common/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MOST ((size_t)256 << 20) /* bytes of a source that are looked through */

static void put_out(void *file, const char *bytes, size_t n) { fwrite(bytes, 1, n, (FILE *)file); }

static int is_stopped(void *nobody) {
  (void)nobody;
  return cli_signal != 0;
}

/* Takes the text of a source that is no text itself. 0, or an errno value. */
static int filter_source(void *arg, const char *path, uint32_t docid, const gpuir_doc *doc, const char *reading,
    decoded *text) {
  cli_passages *c = (cli_passages *)arg;
  const text_filter *filter = filters_find(&c->filters, doc->source, doc->source_len, 0);
  source_limits limits;
  struct stat st;
  char why[FILTERS_WHY];
  int fd;
  (void)docid, (void)reading;
  if (!filter) return PASSAGES_FILTERED;
  memset(&limits, 0, sizeof limits);
  limits.most = FILTERS_BYTES;
  limits.stopped = is_stopped;
  limits.cache = c->cache;
  int rc = source_open(path, 0, &fd, &st);
  if (rc) return rc;
  rc = decode_filtered(filter, fd, &st, doc, &limits, text, why);
  (void)close(fd);
  if (rc != FILTERS_FAILED) return rc;
  cli_error("%s: no text: %s", path, why);
  return PASSAGES_TOLD;
}

static int read_source(void *arg, const char *path, uint32_t docid, const gpuir_doc *doc, const char *reading,
    decoded *text) {
  const cli_passages *c = (const cli_passages *)arg;
  source_limits limits;
  struct stat st;
  (void)docid;
  memset(&limits, 0, sizeof limits);
  limits.most = TEXT_MOST;
  limits.cache = c->cache;
  return decode_source(path, doc, reading, &limits, text, &st);
}

static void tell_missing(void *arg, const char *path, size_t len, const char *why) {
  (void)arg;
  cli_error("%.*s: %s", (int)len, path, why);
}

int cli_passages_try(cli_passages *c, const char *index, const char *base) {
  passages *p = &c->how;
  if (c->base) return ENOMEM; /* it failed before */
  c->base = base ? realpath(base, NULL) : source_home(index);
  if (!c->base) return errno;
  c->here = realpath(".", NULL);
  p->base = c->base;
  p->here = c->here;
  p->colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
  p->put = put_out;
  p->sink = stdout;
  p->read = read_source;
  p->filter = filter_source;
  p->filter_hint = c->hint ? c->hint : "; --filter makes it again";
  p->arg = c;
  p->missing = tell_missing;
  c->cache = text_cache_create(TEXT_CACHE_BYTES, 0);
  return c->cache && passages_open(p) == GPUIR_OK ? 0 : ENOMEM;
}

int cli_passages_open(cli_passages *c, const char *index, const char *base) {
  const int rc = cli_passages_try(c, index, base);
  if (!rc) return CLI_OK;
  if (c->base) cli_error("%s", gpuir_strerror(GPUIR_E_NOMEM));
  else cli_error("%s: %s", base ? base : index, strerror(rc));
  return CLI_FAIL;
}

void cli_passages_free(cli_passages *c) {
  passages_close(&c->how);
  free(c->base);
  free(c->here);
  free(c->hint);
  text_cache_destroy(c->cache);
  filters_free(&c->filters);
}

int cli_passages_hit(cli_passages *c, const gpuir_index *index, const gpuir_query *query, uint32_t docid,
    size_t hits_left) {
  gpuir_error err;
  int r;
  memset(&err, 0, sizeof err);
  r = passages_hit(&c->how, index, query, docid, hits_left, &err);
  if (!r) return CLI_OK;
  cli_error("%.*s: %s", (int)c->how.path_len, c->how.path ? c->how.path : "", err.code ? err.msg : gpuir_strerror(r));
  return CLI_FAIL;
}
