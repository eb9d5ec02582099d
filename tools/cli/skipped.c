/* skipped.c - what is left out of an index while it is made, and what is decoded. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

int cli_skip_file(cli_input *in, reader_kind kind, const char *name, int named) {
  cli_skip_again(in, kind);
  if (named && kind == READER_BINARY)
    cli_error("%s: a binary file: its first bytes are no text in UTF-8, UTF-16 or Windows-1252 (--encoding)", name);
  else if (named && skipped_option((int)kind))
    cli_error("%s: a %s file, of which %s makes a text", name, skipped_name((int)kind), skipped_option((int)kind));
  else if (named || in->verbose) cli_error("%s: skipped: %s", name, skipped_name((int)kind));
  return named ? CLI_FAIL : 0;
}

void cli_skip_again(cli_input *in, reader_kind kind) {
  in->binaries++;
  in->kinds[kind]++;
}

void cli_skip_entry(const cli_input *in, uint64_t *count, const char *path, const char *why) {
  ++*count;
  if (in->verbose) cli_error("%s: skipped: %s", path, why);
}

/* Appends a number of what was skipped. */
static void put_count(cli_buf *b, uint64_t n, const char *one, const char *many) {
  char said[CLI_COUNTED];
  if (!n) return;
  cli_buf_text(b, b->n ? ", " : "");
  cli_buf_text(b, cli_counted(n, one, many, said));
}

void cli_input_count_skipped(const cli_input *in, skipped_counts *counts) {
  memset(counts, 0, sizeof *counts);
  memcpy(counts->n, in->kinds, sizeof in->kinds);
  counts->n[SKIPPED_HIDDEN] = in->hidden_skipped;
  counts->n[SKIPPED_IGNORED] = in->ignored;
  counts->n[SKIPPED_LINKS] = in->links_skipped;
  counts->n[SKIPPED_INDEXES] = in->indexes_skipped;
  counts->n[SKIPPED_OTHER] = in->special_skipped;
  counts->n[SKIPPED_UNREADABLE] = in->failed;
  counts->n[SKIPPED_CUT] = in->cut;
  counts->n[SKIPPED_MALFORMED] = in->malformed;
}

void cli_input_tell_skipped(const cli_input *in) {
  byte_buf said;
  skipped_counts counts;
  memset(&said, 0, sizeof said);
  cli_input_count_skipped(in, &counts);
  skipped_say(&counts, &said);
  if (said.n) cli_error("skipped: %.*s", (int)said.n, said.p);
  bytes_free(&said);
}

void cli_input_tell_decoded(const cli_input *in) {
  cli_buf b = {NULL, 0, 0};
  for (int i = UNPACK_GZIP; i < UNPACK_KINDS; i++) {
    const char *name = skipped_name(READER_GZIP + (i - UNPACK_GZIP));
    put_count(&b, in->unpacked[i], name, name);
  }
  for (int i = CONVERT_ROFF; i < CONVERT_KINDS; i++)
    put_count(&b, in->converted[i], convert_name((convert_kind)i, 0), convert_name((convert_kind)i, 1));
  if (b.n) cli_error("decoded: %.*s; --raw reads files as they are", (int)b.n, b.p);
  cli_buf_free(&b);
}

uint64_t cli_input_skipped(const cli_input *in) {
  return in->binaries + in->hidden_skipped + in->ignored + in->links_skipped + in->indexes_skipped +
      in->special_skipped + in->failed + in->malformed;
}
