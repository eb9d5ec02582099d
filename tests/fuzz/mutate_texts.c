/* mutate_texts.c - damages files of markup and packed files in many ways and reads them all the same
 *
 *   mutate_texts [N [FIRST]]   runs mutations FIRST .. FIRST+N-1 (2,000 from 0; 100,000 with GPUIR_LONG=1)
 *
 * To be compiled with -fsanitize=address,undefined. A mutation is determined by its number: when one fails, its number
 * is printed, and `mutate_texts 1 NUMBER` repeats it. The files are a notebook, a page of HTML, a man page and a file
 * of
 * mail, each as it is and packed by gzip, bzip2, xz and zstd, where these are installed; those that lack are named.
 * Mutations flip bits, set bytes, cut, repeat and exchange blocks, put in what the formats take for their own, and put
 * one file behind another. What documents.h asks of documents must hold, no mutation may take more than 20 seconds, and
 * all together no more than 1 GiB of memory, half of which the sanitizer keeps. */
#define _GNU_SOURCE /* as tools.h wants it */
#include "documents.h"

#include "rng.h"

#include <signal.h>
#include <sys/resource.h>

enum { TEXTS = 4, PACKINGS = 5, SEEDS = TEXTS * PACKINGS, MOST = 1 << 16 };

typedef struct seed {
  uint8_t bytes[MOST];
  size_t n; /* 0: it could not be packed */
} seed;

static seed seeds[SEEDS];
static unsigned long current;
static int error = 2; /* where messages go that matter */

static void report(void) {
  (void)dprintf(error, "mutate_texts: mutation %lu failed; repeat it by: mutate_texts 1 %lu\n", current, current);
}

static void on_end(int number) {
  static const char slow[] = "mutate_texts: a mutation took more than 20 seconds\n";
  if (number == SIGALRM) (void)!write(error, slow, sizeof slow - 1);
  report();
  _exit(1);
}

extern void __sanitizer_set_death_callback(void (*)(void));

static const char *const texts[TEXTS] = {
    "{\"cells\": [{\"cell_type\": \"markdown\", \"metadata\": {}, \"source\": [\"# wolf \\u00e9\\n\", \"and "
    "\\ud83d\\ude00 a dog\"]},\n"
    " {\"cell_type\": \"code\", \"execution_count\": 1, \"source\": \"print(1)\\nx = [1, 2]\", \"outputs\": "
    "[{\"output_type\":\n"
    " \"stream\", \"text\": [\"1\\n\"]}, {\"data\": {\"text/plain\": \"2\", \"image/png\": \"iVBORw0KGgo=\"}}]}],\n"
    " \"metadata\": {\"kernelspec\": {\"name\": \"python3\"}}, \"nbformat\": 4, \"nbformat_minor\": 5}\n",
    "<!DOCTYPE html>\n<html><head><title>Of wolves &amp; dogs</title><style>p { color: red }</style>\n"
    "<script>if (a < b) { c() }</script></head><body><h1>Caf&eacute; &#x1F600;</h1><p class=\"a>b\">in<b>side</b>\n"
    "<!-- not this --><table><tr><td>one<td>two</table><pre>a\n  b</pre><p>end</body></html>\n",
    ".TH WOLF 1 \"2026-01-01\"\n.SH NAME\nwolf \\- a \\fBdog\\fR\n.SH SYNOPSIS\n.B wolf\n[\\fI\\-x\\fR] \\(co \\*(lq\n"
    ".de XX\n..\n.TP\n.BR run (2)\nIt runs\\c\n.if n .br\n.ie t \\{\\\nno\n.\\}\n.EX\n  code\n.EE\n.TS\nl "
    "l.\na\tb\n.TE\n",
    "From a@b Thu Jan  1 00:00:00 2026\nFrom: =?koi8-r?q?=C9=CF?= <a@b>\nSubject: =?utf-8?b?d29sZg==?=\n "
    "=?utf-8?q?_dog?=\n"
    "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"b\"\n\n--b\nContent-Type: text/plain; "
    "charset=koi8-r\n"
    "Content-Transfer-Encoding: quoted-printable\n\nw=C9=\nx\n--b\nContent-Type: text/html\nContent-Transfer-Encoding: "
    "base64\n\n"
    "PHA+d29sZg==\n--b\nContent-Type: message/rfc822\n\nSubject: inner\n\ntext\n--b--\n\nFrom c@d Thu Jan  1 00:00:00 "
    "2026\n"
    "Subject: two\n\nthe end\n"};
static const char *const packers[PACKINGS] = {NULL, "gzip", "bzip2", "xz", "zstd"};

/* Packs a file by a program. 0; -1: that is not there. */
static int pack(const char *program, const char *from, seed *s) {
  char line[512];
  FILE *out;
  (void)snprintf(line, sizeof line, "%s -c <%s 2>/dev/null", program, from);
  out = popen(line, "r");
  s->n = out ? fread(s->bytes, 1, sizeof s->bytes, out) : 0;
  if (out && pclose(out)) s->n = 0;
  return s->n ? 0 : -1;
}

/* Makes the files that are damaged. */
static void make_seeds(void) {
  char path[] = "/tmp/gpuir-mutate-XXXXXX";
  const int fd = mkstemp(path);
  if (fd < 0) abort();
  for (int t = 0; t < TEXTS; t++) {
    const size_t n = strlen(texts[t]);
    seed *plain = &seeds[t * PACKINGS];
    memcpy(plain->bytes, texts[t], plain->n = n);
    if (ftruncate(fd, 0) || pwrite(fd, texts[t], n, 0) != (ssize_t)n) abort();
    for (int p = 1; p < PACKINGS; p++)
      if (pack(packers[p], path, plain + p) && !t) (void)printf("mutate_texts: no %s here\n", packers[p]);
  }
  (void)close(fd);
  (void)unlink(path);
}

/* What the formats take for their own, or for the end of something. */
static const char *const tokens[] = {"{", "}", "[", "]", "\"", "\\", "\\ud800", ",", ":", "null", "1e999", "<", ">",
    "</", "<script>", "<!--", "-->", "&#x110000;", "&", "\n.", "\\{", "\\}", "\\*[", ".de x\n", ".so x\n", "\n--b\n",
    "\n--b--\n", "=?utf-8?b?", "?=", "=\n", "Content-Type: multipart/mixed; boundary=b\n\n", "\nFrom ", "\r\n", "\xff",
    "\xef\xbb\xbf", "\x1f\x8b\x08", "BZh9",
    "\xfd"
    "7zXZ",
    "\x28\xb5\x2f\xfd"};

/* Puts n bytes in at a place; what goes beyond the room is lost. */
static void put_in(seed *s, size_t at, const void *bytes, size_t n) {
  if (n > sizeof s->bytes - s->n) return;
  memmove(s->bytes + at + n, s->bytes + at, s->n - at);
  memmove(s->bytes + at, bytes, n);
  s->n += n;
}

/* Damages one place. */
static void damage(seed *s, rng *r) {
  const size_t at = s->n ? rng_below(r, (uint32_t)s->n) : 0, room = s->n - at;
  const size_t n = room ? 1 + rng_below(r, (uint32_t)(room < 64 ? room : 64)) : 0;
  const char *token = tokens[rng_below(r, sizeof tokens / sizeof *tokens)];
  uint8_t block[64];
  uint32_t times;
  if (!room) return;
  switch (rng_below(r, 8)) {
  case 0: s->bytes[at] ^= (uint8_t)(1u << rng_below(r, 8)); break;
  case 1: s->bytes[at] = (uint8_t)rng_next(r); break;
  case 2: memset(s->bytes + at, (int)(rng_below(r, 3) * 127), n); break;
  case 3: /* a block goes */
    memmove(s->bytes + at, s->bytes + at + n, room - n);
    s->n -= n;
    break;
  case 4: /* a block, several times over */
    memcpy(block, s->bytes + at, n);
    for (times = 1 + rng_below(r, rng_below(r, 8) ? 3 : 300); times--;) put_in(s, at, block, n);
    break;
  case 5: s->n = at; break;
  default:
    for (times = 1 + rng_below(r, rng_below(r, 16) ? 2 : 2000); times--;) put_in(s, at, token, strlen(token));
  }
}

/* Runs the mutation of a number. */
static void run(unsigned long number) {
  static seed s;
  static uint8_t data[1 + sizeof s.bytes];
  rng r = {number};
  int is_any;
  do s = seeds[rng_below(&r, SEEDS)];
  while (!s.n);
  if (!rng_below(&r, 8)) put_in(&s, s.n, seeds[rng_below(&r, SEEDS)].bytes, 1 + rng_below(&r, 400));
  for (uint32_t times = 1 + rng_below(&r, rng_below(&r, 4) ? 3 : 30); times--;) damage(&s, &r);
  is_any = !rng_below(&r, 4); /* otherwise whole files or chunks; no encoding is said, as then nothing is unpacked */
  do data[0] = (uint8_t)rng_next(&r);
  while (data[0] & 32 || (!is_any && data[0] % 8 > 1));
  memcpy(data + 1, s.bytes, s.n);
  (void)read_any(data, 1 + s.n);
}

/* Checks that each file has documents as it is: otherwise this program tests nothing. */
static void check_seeds(void) {
  static uint8_t data[1 + MOST];
  for (int i = 0; i < SEEDS; i++) {
    memcpy(data + 1, seeds[i].bytes, seeds[i].n);
    if (!seeds[i].n || read_any(data, 1 + seeds[i].n)) continue;
    (void)fprintf(stderr, "mutate_texts: file %d is not read as it is\n", i);
    exit(2);
  }
}

int main(int argc, char **argv) {
  const char *is_long = getenv("GPUIR_LONG");
  const unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : is_long && *is_long ? 100000 : 2000;
  const unsigned long first = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
  const int messages = open("/dev/null", O_WRONLY | O_CLOEXEC);
  struct rusage used;
  error = dup(2);
  make_seeds();
  check_seeds();
  __sanitizer_set_death_callback(report);
  (void)signal(SIGALRM, on_end);
  (void)signal(SIGABRT, on_end);
  if (messages < 0 || error < 0) abort();
  (void)dup2(messages, 2); /* what is refused is refused with words */
  for (current = first; current < first + n; current++) {
    (void)alarm(20);
    if (n == 1) (void)dup2(error, 2);
    run(current);
  }
  (void)alarm(0);
  (void)getrusage(RUSAGE_SELF, &used);
  (void)printf("mutate_texts: %lu mutations, %ld MiB at most\n", n, used.ru_maxrss >> 10);
  return used.ru_maxrss >> 10 > 1024;
}
