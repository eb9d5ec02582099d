/* filter.c - what filters are to the command: --filter, and messages of what failed. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OPTION "--filter "

int cli_filters_add(const cli_args *a, text_filters *f) {
  const char *why = filters_add(f, a->value);
  return why ? cli_misuse(a->command, "%s: '%s': %s", a->name, a->value, why) : 0;
}

int cli_filters_install(text_filters *f, int quiet) { return filters_install(f, quiet, cli_error) ? CLI_FAIL : CLI_OK; }

int cli_filters_agree(text_filters *f, const char *index, const char *marks) {
  return filters_agree(f, index, marks, OPTION, cli_error) ? CLI_FAIL : CLI_OK;
}

char *cli_filters_hint(const char *marks) {
  byte_buf b;
  cli_buf hint = {NULL, 0, 0};
  memset(&b, 0, sizeof b);
  filters_options(&b, marks, OPTION, " ");
  cli_buf_text(&hint, "; ");
  cli_buf_add(&hint, b.p ? b.p : "", b.n);
  cli_buf_text(&hint, b.n ? " makes it again" : "--filter makes it again");
  cli_buf_char(&hint, 0);
  bytes_free(&b);
  return hint.p;
}

static int is_stopped(void *nobody) {
  (void)nobody;
  return cli_signal != 0;
}

int cli_filter_run(const text_filter *filter, int fd, const char *name, byte_buf *text) {
  source_limits limits;
  char why[FILTERS_WHY];
  memset(&limits, 0, sizeof limits);
  limits.most = FILTERS_BYTES;
  limits.stopped = is_stopped;
  const int rc = filters_run(filter, fd, &limits, text, why);
  if (rc && rc != EINTR && name) cli_error("%s: no text: %s", name, rc == FILTERS_FAILED ? why : strerror(rc));
  return rc ? -1 : 0;
}
