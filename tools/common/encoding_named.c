/* encoding_named.c - encodings that are called by a name, in a mail or by the caller: those of the Encoding Standard
 * (https://encoding.spec.whatwg.org, section 4.2), UTF-7 and two of DOS.
 *
 * The bytes of most of them are converted by iconv(3) of the C library. It knows many more, and has ended processes and
 * run for ever on bytes of some; a mail chooses what it says, so only names of this list are passed on.
 */
#include "encoding.h"

#include "text.h"

#include <errno.h>
#include <iconv.h>
#include <pthread.h>
#include <stdint.h>
#include <strings.h>

#define NAMED_OUT 4096 /* bytes that are converted at a time */

/* Names that iconv and people know, and others that files have. The order is stored in indexes: new ones go last. */
static const struct {
  const char *name, *others;
  int own; /* a text_encoding that needs no iconv; -1: none */
} names_of[] = {{"utf-8", "utf8 unicode-1-1-utf-8", ENCODING_UTF8},
    {"us-ascii", "ascii ansi_x3.4-1968 iso646-us", ENCODING_UTF8},
    {"windows-1252", "iso-8859-1 latin1 latin-1 l1 iso8859-1 iso_8859-1 cp1252 x-cp1252 cp819 ibm819",
        ENCODING_WINDOWS_1252},
    {"utf-16le", "utf-16 unicode ucs-2 iso-10646-ucs-2", ENCODING_UTF16_LE}, {"utf-16be", "", ENCODING_UTF16_BE},
    {"iso-8859-2", "latin2 l2 iso8859-2 iso_8859-2", -1}, {"iso-8859-3", "latin3 l3 iso8859-3", -1},
    {"iso-8859-4", "latin4 l4 iso8859-4", -1}, {"iso-8859-5", "cyrillic iso8859-5", -1},
    {"iso-8859-6", "arabic iso8859-6 iso-8859-6-i asmo-708", -1}, {"iso-8859-7", "greek iso8859-7", -1},
    {"iso-8859-8", "hebrew iso8859-8 iso-8859-8-i", -1}, {"iso-8859-10", "latin6 l6 iso8859-10", -1},
    {"iso-8859-13", "iso8859-13", -1}, {"iso-8859-14", "iso8859-14", -1},
    {"iso-8859-15", "latin9 l9 latin-9 iso8859-15", -1}, {"iso-8859-16", "iso8859-16", -1},
    {"windows-1250", "cp1250 x-cp1250", -1}, {"windows-1251", "cp1251 x-cp1251", -1}, {"windows-1253", "cp1253", -1},
    {"windows-1254", "cp1254 iso-8859-9 latin5 l5 iso8859-9", -1}, {"windows-1255", "cp1255", -1},
    {"windows-1256", "cp1256", -1}, {"windows-1257", "cp1257", -1}, {"windows-1258", "cp1258", -1},
    {"cp874", "windows-874 tis-620 iso-8859-11 dos-874", -1}, {"koi8-r", "koi8 koi", -1}, {"koi8-u", "koi8-ru", -1},
    {"macintosh", "mac x-mac-roman", -1}, {"mac-cyrillic", "x-mac-cyrillic x-mac-ukrainian", -1},
    {"cp866", "ibm866 866", -1}, {"cp437", "ibm437", -1}, {"cp850", "ibm850", -1}, {"gb18030", "", -1},
    {"gbk", "gb2312 eucgb2312_cn gb_2312-80 chinese x-gbk cp936", -1},
    {"big5-hkscs", "big5 cn-big5 big5_tw x-x-big5", -1}, {"euc-jp", "x-euc-jp", -1}, {"iso-2022-jp", "csiso2022jp", -1},
    {"cp932", "shift_jis shift-jis sjis x-sjis windows-31j ms_kanji", -1},
    {"cp949", "euc-kr ks_c_5601-1987 ksc5601 korean windows-949", -1}, {"utf-7", "unicode-1-1-utf-7", -1}};
#define NAMES ((int)(sizeof names_of / sizeof *names_of))

int encoding_find(const char *name, size_t n) {
  int i;
  for (i = 0; n && i < NAMES; i++) {
    const char *at = names_of[i].others;
    if (strlen(names_of[i].name) == n && !strncasecmp(names_of[i].name, name, n)) return i;
    for (; *at; at += strcspn(at, " "), at += *at == ' ')
      if (strcspn(at, " ") == n && !strncasecmp(at, name, n)) return i;
  }
  return -1;
}

const char *encoding_name(int found) { return found >= 0 && found < NAMES ? names_of[found].name : NULL; }

int encoding_fits(int found, const char *s, size_t n) {
  const int own = names_of[found].own;
  if (own == ENCODING_UTF16_LE || own == ENCODING_UTF16_BE) return encoding_is_utf16(s, n, own == ENCODING_UTF16_BE);
  return encoding_lacks_nul(s, n);
}

int encoding_own(int found) { return names_of[found].own; }

/* Opens the conversion. (iconv_t)-1: errno, ENOMEM, or the C library lacks it. */
static iconv_t open_named(int found) {
  const iconv_t from = iconv_open("UTF-8", names_of[found].name);
  if (from != (iconv_t)-1 || errno == ENOMEM) return from;
  return iconv_open("UTF-8", names_of[found].name); /* it calls a part missing for which there was no memory */
}

/* Opening a conversion loads a library, which takes longer than converting most mails: one of each is kept. */
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static iconv_t kept[NAMES]; /* NULL: none, or it is in use */

/* Takes the conversion that is kept, in its first state, or opens one. As open_named. */
static iconv_t take_converter(int found) {
  iconv_t from;
  (void)pthread_mutex_lock(&kept_lock);
  from = kept[found];
  kept[found] = NULL;
  (void)pthread_mutex_unlock(&kept_lock);
  if (!from) return open_named(found);
  (void)iconv(from, NULL, NULL, NULL, NULL);
  return from;
}

static void give_converter(int found, iconv_t from) {
  iconv_t other;
  (void)pthread_mutex_lock(&kept_lock);
  other = kept[found];
  kept[found] = from;
  (void)pthread_mutex_unlock(&kept_lock);
  if (other) (void)iconv_close(other);
}

int encoding_is_there(int found) {
  iconv_t from;
  if (names_of[found].own >= 0) return 1;
  from = take_converter(found);
  if (from == (iconv_t)-1) return 0;
  give_converter(found, from);
  return 1;
}

/* Appends U+FFFD, and passes over the byte that is of no character. */
static void pass_over(char **in, size_t *left, byte_buf *out) {
  bytes_add(out, "\xef\xbf\xbd", 3);
  ++*in;
  --*left;
}

/* Converts by iconv. */
static void convert_named(iconv_t from, const char *raw, size_t n, byte_buf *out) {
  char *in = (char *)(uintptr_t)raw; /* iconv does not write there */
  size_t left = n;
  int flushed = 0;
  while ((left || !flushed) && !out->failed) {
    char room[NAMED_OUT], *to = room;
    size_t free_room = sizeof room, had = left;
    const size_t said = left ? iconv(from, &in, &left, &to, &free_room) : iconv(from, NULL, NULL, &to, &free_room);
    const int why = said == (size_t)-1 ? errno : 0;
    flushed = !had;
    bytes_add(out, room, (size_t)(to - room));
    if (left && (why == EILSEQ || why == EINVAL || (left == had && to == room))) pass_over(&in, &left, out);
  }
}

int encoding_convert(int found, const char *raw, size_t n, byte_buf *out) {
  size_t mark = 0;
  iconv_t from;
  int form = names_of[found].own;
  if (form == ENCODING_UTF8 && !text_is_utf8(raw, n)) return ENCODING_OTHER;
  if (form >= 0) {
    if (form == ENCODING_UTF16_LE || form == ENCODING_UTF16_BE) {
      const int marked = encoding_guess(raw, n, &mark); /* a byte order mark says more than the name */
      if (mark == 2 && marked >= 0) form = marked;
      else mark = 0;
    }
    (void)encoding_decode((text_encoding)form, raw + mark, n - mark, 1, out);
    return 0;
  }
  from = take_converter(found);
  if (from == (iconv_t)-1) {
    if (errno == ENOMEM) out->failed = 1;
    return ENCODING_LACKING;
  }
  convert_named(from, raw, n, out);
  give_converter(found, from);
  return 0;
}
