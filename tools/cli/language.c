/* language.c - the language of what is indexed, whose words are stemmed.
 *
 * Without stemming a question finds a tenth to a fifth less of what answers it, and with the wrong stemmer it finds
 * what it does not ask for. So English is looked for, by the share of its commonest words in the first MiB of text, and
 * other languages are to be said. The choice is made once, for all that an index will ever hold: it is written into the
 * index as its stemmer.
 */
#include "cli.h"

#include "../common/source.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LOOKED_AT ((size_t)1 << 20) /* bytes of text */
#define LONGEST 16u /* no word of the list is longer */

/* What was seen of the texts. */
typedef struct sample {
  size_t left; /* bytes that are still looked at */
  uint64_t words, common;
  const char *list[256]; /* of common words, ascending */
  size_t n;
  char *bytes; /* of the list */
} sample;

/* ---- words ---- */

static int by_word(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static void sample_open(sample *s) {
  const char *list = gpuir_stop_list("english-questions");
  memset(s, 0, sizeof *s);
  s->left = LOOKED_AT;
  s->bytes = cli_copy(list, strlen(list));
  for (char *p = strtok(s->bytes, " "); p; p = strtok(NULL, " ")) s->list[s->n++] = p;
}

/* Returns 1 for a letter, 2 for what is a letter in other languages or a digit, 0 for what parts words. */
static int kind_of(unsigned char c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return 1;
  return c >= 0x80 || (c >= '0' && c <= '9') ? 2 : 0;
}

/* Counts the words of a text, and those that are common. */
static void count_words(sample *s, const char *text, size_t len) {
  char word[LONGEST + 1];
  const char *key = word;
  for (size_t i = 0; i < len;) {
    size_t n = 0;
    int plain = 1, kind;
    for (; i < len && (kind = kind_of((unsigned char)text[i])) != 0; i++) {
      plain &= kind == 1;
      if (n < LONGEST) word[n] = (char)(text[i] | 0x20);
      n++;
    }
    i += !n;
    s->words += n != 0;
    if (!n || n > LONGEST || !plain) continue;
    word[n] = 0;
    s->common += bsearch(&key, s->list, s->n, sizeof *s->list, by_word) != NULL;
  }
}

/* ---- texts ---- */

/* Looks at the text of an open file; what is none, or cannot be read, is left out without a word: it is read later. */
static void sample_file(sample *s, int fd) {
  reader_kind kind;
  text_reader r;
  uint64_t lines;
  size_t len;
  char *text;
  cli_reader_open(&r, fd, LOOKED_AT);
  if (!reader_begin(&r, &kind) && kind == READER_TEXT)
    while (s->left && reader_lines(&r, 1, &text, &len, &lines) > 0) {
      if (len > s->left) len = s->left;
      count_words(s, text, len);
      s->left -= len;
    }
  reader_close(&r);
}

/* Looks at what the walk has opened. Only what can be read twice is looked at. */
static int on_entry(void *user, const gpuir_walk_entry *e) {
  sample *s = (sample *)user;
  if (cli_signal || !s->left) return GPUIR_E_CANCELLED;
  if (e->is_folder) return e->is_mount && source_is_gpuirfs(e->fd) ? GPUIR_WALK_LEAVE : GPUIR_WALK_TAKE;
  if (S_ISREG(e->st->st_mode)) sample_file(s, e->fd);
  return GPUIR_WALK_LEAVE;
}

/* Returns whether the texts of the operands, in byte order of their paths, are English. */
static int is_english(const cli_input *in, char **operands, int n) {
  const char **sorted = (const char **)cli_resize(NULL, (size_t)n + 1, sizeof *sorted);
  gpuir_walk_desc how;
  gpuir_error err;
  struct stat st;
  sample s;
  sample_open(&s);
  memset(&how, 0, sizeof how);
  how.hidden = in->hidden;
  how.follow = in->follow;
  how.no_ignore = in->no_ignore;
  how.open = on_entry;
  how.user = &s;
  for (int i = 0; i < n; i++) sorted[i] = operands[i];
  qsort(sorted, (size_t)n, sizeof *sorted, by_word);
  for (int i = 0; i < n && s.left && !cli_signal; i++)
    if (strcmp(sorted[i], "-") != 0 && !stat(sorted[i], &st) && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
      (void)gpuir_walk(sorted[i], &how, &err);
  free(sorted);
  free(s.bytes);
  return s.common && s.common * 10 >= s.words;
}

int cli_language_choose(cli_build *b, const cli_input *in, char **operands, int n) {
  gpuir_analyzer_desc *analyzer = &b->desc.analyzer;
#ifndef GPUIR_WITH_UTF8PROC
  if (!strcmp(analyzer->analyzer, "text")) {
    cli_error(
        "this build has no analyzer 'text', since utf8proc (libutf8proc-dev) was not there: --analyzer basic "
        "does without");
    return CLI_FAIL;
  }
#endif
  if (b->language || analyzer->stem || strcmp(analyzer->analyzer, "text") != 0) return CLI_OK;
#ifdef GPUIR_WITH_STEMMER
  if (is_english(in, operands, n)) analyzer->stem = "english";
  return cli_signal ? CLI_FAIL : CLI_OK;
#else
  (void)in, (void)operands, (void)n, (void)is_english;
  cli_error("this build cannot stem words, since libstemmer (libstemmer-dev) was not there: --lang none does without");
  return CLI_FAIL;
#endif
}

const char *cli_language_stemmer(const char *language) {
  static const char *const codes[][2] = {{"ar", "arabic"}, {"hy", "armenian"}, {"eu", "basque"}, {"ca", "catalan"},
      {"da", "danish"}, {"nl", "dutch"}, {"en", "english"}, {"fi", "finnish"}, {"fr", "french"}, {"de", "german"},
      {"el", "greek"}, {"hi", "hindi"}, {"hu", "hungarian"}, {"id", "indonesian"}, {"ga", "irish"}, {"it", "italian"},
      {"lt", "lithuanian"}, {"ne", "nepali"}, {"no", "norwegian"}, {"nb", "norwegian"}, {"pt", "portuguese"},
      {"ro", "romanian"}, {"ru", "russian"}, {"sr", "serbian"}, {"es", "spanish"}, {"sv", "swedish"}, {"ta", "tamil"},
      {"tr", "turkish"}, {"yi", "yiddish"}};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    if (!strcmp(language, codes[i][0])) return codes[i][1];
  return language;
}
