/* format.c - the bytes of files. */
#include "format.h"

#include "path.h"

void format_tsv_name(buf *b, const char *name, size_t len) {
  size_t i, plain = 0;
  for (i = 0; i < len; i++) {
    unsigned char c = (unsigned char)name[i];
    if (c >= 0x20 && c != 0x7F && c != '\\') continue;
    buf_put(b, name + plain, i - plain);
    plain = i + 1;
    if (c == '\t')
      buf_puts(b, "\\t");
    else if (c == '\n')
      buf_puts(b, "\\n");
    else if (c == '\r')
      buf_puts(b, "\\r");
    else if (c == '\\')
      buf_puts(b, "\\\\");
    else
      buf_printf(b, "\\x%02X", c);
  }
  buf_put(b, name + plain, len - plain);
}

/* Length of the UTF-8 character at s[0..n), n > 0; 0 when it is not one. */
static size_t utf8_length(const unsigned char *s, size_t n) {
  unsigned char low = 0x80, high = 0xBF;
  size_t need, i;
  if (s[0] < 0x80) return 1;
  if (s[0] >= 0xC2 && s[0] <= 0xDF)
    need = 2;
  else if (s[0] >= 0xE0 && s[0] <= 0xEF)
    need = 3;
  else if (s[0] >= 0xF0 && s[0] <= 0xF4)
    need = 4;
  else
    return 0;
  /* The second byte keeps out overlong forms, surrogates and what lies beyond U+10FFFF. */
  if (s[0] == 0xE0) low = 0xA0;
  if (s[0] == 0xED) high = 0x9F;
  if (s[0] == 0xF0) low = 0x90;
  if (s[0] == 0xF4) high = 0x8F;
  if (n < need || s[1] < low || s[1] > high) return 0;
  for (i = 2; i < need; i++)
    if ((s[i] & 0xC0) != 0x80) return 0;
  return need;
}

void format_json_name(buf *b, const char *name, size_t len) {
  const unsigned char *s = (const unsigned char *)name;
  size_t i = 0;
  while (i < len) {
    size_t n = utf8_length(s + i, len - i);
    if (n == 0) {
      buf_puts(b, "\xEF\xBF\xBD");
      n = 1;
    } else if (s[i] == '"' || s[i] == '\\') {
      buf_put(b, "\\", 1);
      buf_put(b, s + i, 1);
    } else if (s[i] < 0x20 || s[i] == 0x7F) {
      buf_printf(b, "\\u%04x", s[i]);
    } else if (s[i] == 0xC2 && s[i + 1] < 0xA0) {
      buf_printf(b, "\\u%04x", s[i + 1]);
    } else {
      buf_put(b, s + i, n);
    }
    i += n;
  }
}

int format_hits(buf *b, const gpuir_index *index, const gpuir_hit *hits, size_t n, int format) {
  size_t i;
  if (format == FORMAT_JSON) buf_puts(b, n ? "[\n" : "[]\n");
  for (i = 0; i < n && !b->error; i++) {
    gpuir_doc doc;
    if (format == FORMAT_PLAIN) {
      buf_number(b, hits[i].docid);
      buf_put(b, "\n", 1);
      continue;
    }
    if (gpuir_doc_get(index, hits[i].docid, &doc) != GPUIR_OK) return EIO;
    if (format == FORMAT_TSV) {
      buf_number(b, i + 1);
      buf_put(b, "\t", 1);
      buf_number(b, hits[i].docid);
      buf_printf(b, "\t%.6f\t", gpuir_score(hits[i]));
      format_tsv_name(b, doc.name, doc.name_len);
      buf_put(b, "\n", 1);
    } else {
      buf_puts(b, "{\"rank\": ");
      buf_number(b, i + 1);
      buf_puts(b, ", \"docid\": ");
      buf_number(b, hits[i].docid);
      buf_printf(b, ", \"score\": %.6f, \"name\": \"", gpuir_score(hits[i]));
      format_json_name(b, doc.name, doc.name_len);
      buf_puts(b, i + 1 < n ? "\"},\n" : "\"}\n]\n");
    }
  }
  return b->error;
}

int format_links(buf *b, const gpuir_index *index, const gpuir_hit *hits, size_t n, hit_link *links) {
  size_t i;
  for (i = 0; i < n && !b->error; i++) {
    char name[NAME_LIMIT + 1];
    gpuir_doc doc;
    if (gpuir_doc_get(index, hits[i].docid, &doc) != GPUIR_OK) return EIO;
    links[i].docid = hits[i].docid;
    links[i].name = b->len;
    buf_put(b, name, name_link(name, (uint32_t)i + 1, hits[i].docid, doc.name, doc.name_len) + 1);
  }
  return b->error;
}

typedef struct one_token {
  char text[GPUIR_MAX_TERM];
  size_t len;
  unsigned count;
} one_token;

static int take_token(void *sink, const char *token, size_t len) {
  one_token *t = sink;
  if (t->count++ == 0 && len <= sizeof t->text) {
    memcpy(t->text, token, len);
    t->len = len;
  }
  return 0;
}

int format_term(buf *b, const gpuir_index *index, const char *text, size_t len) {
  gpuir_term_info info;
  uint64_t id;
  if (gpuir_term_find(index, text, len, &id) != GPUIR_OK) {
    one_token token;
    token.len = 0;
    token.count = 0;
    if (gpuir_analyze(index, text, len, take_token, &token, NULL) != GPUIR_OK || token.count != 1)
      return ENOENT;
    if (gpuir_term_find(index, token.text, token.len, &id) != GPUIR_OK) return ENOENT;
  }
  if (gpuir_term_stats(index, id, &info) != GPUIR_OK) return EIO;
  buf_puts(b, "term\t");
  format_tsv_name(b, info.term, info.term_len);
  buf_printf(b, "\nid\t%llu\ndf\t%lu\ncf\t%llu\nidf\t%.6f\n", (unsigned long long)info.id,
             (unsigned long)info.df, (unsigned long long)info.cf, (double)info.idf);
  buf_printf(b, "codec\t%s\nfreq_codec\t%s\nblocks\t%lu\n", info.codec, info.freq_codec,
             (unsigned long)info.blocks);
  buf_printf(b, "docids_bytes\t%llu\nfreqs_bytes\t%llu\ndirectory_bytes\t%llu\nbytes\t%llu\n",
             (unsigned long long)info.docids_bytes, (unsigned long long)info.freqs_bytes,
             (unsigned long long)info.directory_bytes,
             (unsigned long long)(info.docids_bytes + info.freqs_bytes + info.directory_bytes));
  return b->error;
}
