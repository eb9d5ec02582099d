/* text.c - what is escaped, how, and that an escape gives back what it stands for. */
#include "tools/common/text.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static size_t escaped(text_form form, const char *s, size_t n, char *out) {
  size_t used = 0;
  while (n) {
    size_t taken = text_plain(form, s, n), len;
    memcpy(out + used, s, taken);
    used += taken;
    s += taken;
    n -= taken;
    if (!n) break;
    taken = text_escape(form, s, n, out + used, &len);
    assert_in_range(taken, 1, n);
    assert_in_range(len, 1, TEXT_ESCAPE);
    used += len;
    s += taken;
    n -= taken;
  }
  out[used] = 0;
  return used;
}

static void check(text_form form, const char *in, size_t n, const char *want) {
  char out[1024], printed[1024];
  FILE *f = tmpfile();
  size_t len = escaped(form, in, n, out);
  assert_string_equal(out, want);
  assert_non_null(f);
  text_print(f, form, in, n);
  rewind(f);
  assert_int_equal(fread(printed, 1, sizeof printed, f), len);
  assert_memory_equal(printed, out, len);
  fclose(f);
}

static void check_all(const char *in, const char *tsv, const char *json, const char *message) {
  check(TEXT_TSV, in, strlen(in), tsv);
  check(TEXT_JSON, in, strlen(in), json);
  check(TEXT_MESSAGE, in, strlen(in), message);
}

static void escapes(void **state) {
  (void)state;
  check_all("", "", "", "");
  check_all("plain caf\xc3\xa9 \xf0\x9f\x98\x80", "plain caf\xc3\xa9 \xf0\x9f\x98\x80",
      "plain caf\xc3\xa9 \xf0\x9f\x98\x80", "plain caf\xc3\xa9 \xf0\x9f\x98\x80");
  check_all("a\tb\nc\rd\\e\"f", "a\\tb\\nc\\rd\\\\e\"f", "a\\u0009b\\u000ac\\u000dd\\\\e\\\"f", "a\tb\\nc\\rd\\e\"f");
  check_all("\x1b[31m\x7f\x07", "\\x1b[31m\\x7f\\x07", "\\u001b[31m\\u007f\\u0007", "\\x1b[31m\\x7f\\x07");
  check_all(
      "\xc2\x9b"
      "31m",
      "\\xc2\\x9b31m", "\\u009b31m", "\\xc2\\x9b31m");
  check_all(
      "\x9b"
      "31m",
      "\\x9b31m", "\\udc9b31m", "\\x9b31m");
  check_all("\xe2\x80\xaexe.txt", "\\xe2\\x80\\xaexe.txt", "\\u202exe.txt", "\\xe2\\x80\\xaexe.txt");
  check(TEXT_TSV, "a\0b", 3, "a\\x00b");
  check(TEXT_JSON, "a\0b", 3, "a\\u0000b");
}

static size_t encode(unsigned long c, char *out) {
  if (c < 0x80) {
    out[0] = (char)c;
    return 1;
  }
  if (c < 0x800) {
    out[0] = (char)(0xc0 | c >> 6);
    out[1] = (char)(0x80 | (c & 0x3f));
    return 2;
  }
  if (c < 0x10000) {
    out[0] = (char)(0xe0 | c >> 12);
    out[1] = (char)(0x80 | (c >> 6 & 0x3f));
    out[2] = (char)(0x80 | (c & 0x3f));
    return 3;
  }
  out[0] = (char)(0xf0 | c >> 18);
  out[1] = (char)(0x80 | (c >> 12 & 0x3f));
  out[2] = (char)(0x80 | (c >> 6 & 0x3f));
  out[3] = (char)(0x80 | (c & 0x3f));
  return 4;
}

/* Every character there is, against the list of the harmful ones. */
static void every_character(void **state) {
  static const struct {
    unsigned long first, last;
  } harmful[] = {{0, 0x1f}, {0x7f, 0x9f}, {0x61c, 0x61c}, {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
  unsigned long c;
  (void)state;
  for (c = 0; c <= 0x10ffff; c++) {
    char s[4];
    size_t n = encode(c, s), i;
    int harmless, want = 1;
    if (c >= 0xd800 && c <= 0xdfff) { /* a surrogate is no character */
      assert_int_equal(text_utf8(s, n), 0);
      continue;
    }
    for (i = 0; i < sizeof harmful / sizeof *harmful; i++)
      if (c >= harmful[i].first && c <= harmful[i].last) want = 0;
    assert_int_equal(text_next(s, n, &harmless), n);
    assert_int_equal(harmless, want);
    assert_int_equal(text_plain(TEXT_TSV, s, n), want && c != '\\' ? n : 0);
    for (i = 1; i < n; i++) assert_int_equal(text_utf8(s, i), 0); /* cut short */
  }
}

static void not_utf8(void **state) {
  static const char *const bad[] = {"\x80", "\xc3", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf",
      "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xf0\x9f\x98", "\xc2",
      "\xe2\x80"};
  size_t i, j;
  (void)state;
  for (i = 0; i < sizeof bad / sizeof *bad; i++) {
    char tsv[64] = "", json[64] = "";
    for (j = 0; bad[i][j]; j++) {
      sprintf(tsv + 4 * j, "\\x%02x", (unsigned char)bad[i][j]);
      sprintf(json + 6 * j, "\\udc%02x", (unsigned char)bad[i][j]);
    }
    assert_false(text_is_utf8(bad[i], strlen(bad[i])));
    check_all(bad[i], tsv, json, tsv);
  }
  assert_true(text_is_utf8("caf\xc3\xa9", 5));
}

static size_t unescape_tsv(const char *s, size_t n, char *out) {
  size_t used = 0, i = 0;
  while (i < n) {
    char c = s[i++];
    if (c == '\\') {
      c = s[i++];
      if (c == 'x') {
        char digits[3] = {s[i], s[i + 1], 0};
        c = (char)strtoul(digits, NULL, 16);
        i += 2;
      } else {
        c = c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : '\\';
      }
    }
    out[used++] = c;
  }
  return used;
}

static size_t unescape_json(const char *s, size_t n, char *out) {
  size_t used = 0, i = 0;
  while (i < n) {
    if (s[i] == '\\' && s[i + 1] == 'u') {
      const char digits[5] = {s[i + 2], s[i + 3], s[i + 4], s[i + 5], 0};
      const unsigned long c = strtoul(digits, NULL, 16);
      assert_true(c < 0xd800 || c > 0xdfff || (c >= 0xdc80 && c <= 0xdcff)); /* never a pair */
      if (c >= 0xdc80 && c <= 0xdcff) out[used++] = (char)(c & 0xff);
      else used += encode(c, out + used);
      i += 6;
    } else {
      i += s[i] == '\\';
      out[used++] = s[i++];
    }
  }
  return used;
}

/* Random bytes come back from TSV and JSON, and what is printed is always harmless UTF-8. */
static void round_trips(void **state) {
  uint64_t seed = 1;
  int round;
  (void)state;
  for (round = 0; round < 20000; round++) {
    static const char pieces[] = "\\\\\t\n\r\"\x7f\xc2\x9b\xe2\x80\xae\xe2\x81\xa6\xd8\x9c\xff\xf0\x9f\x98\x80xn";
    char in[64], out[64 * TEXT_ESCAPE + 1], back[64 * TEXT_ESCAPE];
    size_t n, i, len;
    int form;
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    n = (size_t)(seed >> 33) % sizeof in;
    for (i = 0; i < n; i++) {
      seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
      in[i] = (char)(round % 2 ? seed >> 40 : (unsigned char)pieces[(seed >> 40) % (sizeof pieces - 1)]);
    }
    for (form = TEXT_TSV; form <= TEXT_MESSAGE; form++) {
      len = escaped((text_form)form, in, n, out);
      for (i = 0; i < len;) {
        int harmless;
        i += text_next(out + i, len - i, &harmless);
        assert_true(harmless || (form == TEXT_MESSAGE && out[i - 1] == '\t'));
      }
    }
    len = escaped(TEXT_TSV, in, n, out);
    assert_int_equal(unescape_tsv(out, len, back), n);
    assert_memory_equal(back, in, n);
    len = escaped(TEXT_JSON, in, n, out);
    assert_int_equal(unescape_json(out, len, back), n);
    assert_memory_equal(back, in, n);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(escapes), cmocka_unit_test(every_character),
      cmocka_unit_test(not_utf8), cmocka_unit_test(round_trips)};
  return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
