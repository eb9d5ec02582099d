/* skipped.c - what was left out of an index, by kinds, and which option would read it. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

/* What files are that are no text, and the option that would make one of them; NULL: none is known. */
static const struct {
  const char *name, *option;
} kinds[READER_KINDS] = {{"text", NULL}, {"binary", NULL}, {"PDF", "--filter 'pdf=pdftotext - -'"},
    {"gzip", "--filter 'gz=zcat'"}, {"bzip2", "--filter 'bz2=bzcat'"}, {"xz", "--filter 'xz=xzcat'"},
    {"zstd", "--filter 'zst=zstdcat'"}, {"zip", NULL}};

/* Returns the option that would make a text of a file of the kind; NULL: none would. What is packed is read by itself
 * where its library is there, but for what is packed twice. */
static const char *option_of(size_t kind) {
  const int packed = kind >= READER_GZIP && kind <= READER_ZSTD;
  return packed && !unpack_missing((unpack_kind)(UNPACK_GZIP + (kind - READER_GZIP))) ? NULL : kinds[kind].option;
}

int cli_skip_file(cli_input *in, reader_kind kind, const char *name, int named) {
  in->binaries++;
  in->kinds[kind]++;
  if (named && kind == READER_BINARY)
    cli_error("%s: a binary file: its first bytes are no text in UTF-8, UTF-16 or Windows-1252 (--encoding)", name);
  else if (named && option_of(kind))
    cli_error("%s: a %s file, of which %s makes a text", name, kinds[kind].name, option_of(kind));
  else if (named || in->verbose) cli_error("%s: skipped: %s", name, kinds[kind].name);
  return named ? CLI_FAIL : 0;
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

static void put_option(cli_buf *b, uint64_t n, const char *option) {
  if (!n || !option) return;
  cli_buf_text(b, b->n ? ", " : "");
  cli_buf_text(b, option);
}

void cli_input_tell_skipped(const cli_input *in) {
  cli_buf b = {NULL, 0, 0}, options = {NULL, 0, 0};
  for (size_t i = READER_BINARY; i < READER_KINDS; i++) {
    put_count(&b, in->kinds[i], kinds[i].name, kinds[i].name);
    put_option(&options, in->kinds[i], option_of(i));
  }
  put_count(&b, in->hidden_skipped, "hidden", "hidden");
  put_option(&options, in->hidden_skipped, "--hidden");
  put_count(&b, in->ignored, "ignored", "ignored");
  put_option(&options, in->ignored, "--no-ignore");
  put_count(&b, in->links_skipped, "link", "links");
  put_option(&options, in->links_skipped, "--follow");
  put_count(&b, in->indexes_skipped, "index", "indexes");
  put_count(&b, in->special_skipped, "other", "other");
  put_count(&b, in->failed, "unreadable", "unreadable");
  put_count(&b, in->cut, "mail in part", "mails in part");
  put_count(&b, in->malformed, "malformed record", "malformed records");
  if (b.n && options.n)
    cli_error("skipped: %.*s; options that read more: %.*s", (int)b.n, b.p, (int)options.n, options.p);
  else if (b.n) cli_error("skipped: %.*s", (int)b.n, b.p);
  cli_buf_free(&b);
  cli_buf_free(&options);
}

void cli_input_tell_decoded(const cli_input *in) {
  cli_buf b = {NULL, 0, 0};
  for (int i = UNPACK_GZIP; i < UNPACK_KINDS; i++) {
    const char *name = kinds[READER_GZIP + (i - UNPACK_GZIP)].name;
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
