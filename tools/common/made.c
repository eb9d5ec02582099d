/* made.c - which bytes of a record those of a text were made of. */
#include "made.h"

void made_utf8(made_text *m, unsigned long c, const char *from) {
  char out[4];
  size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4, i;
  static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
  for (i = n; i-- > 1; c >>= 6) out[i] = (char)(0x80 | (c & 0x3f));
  out[0] = (char)(first[n] | c);
  made_add(m, out, n, from);
}

size_t made_record(const made_text *m, size_t at) {
  const made_run *runs = (const made_run *)(const void *)m->runs.p;
  size_t low = 0, high = m->runs.n / sizeof *runs, record;
  if (!high) return at;
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    if (runs[middle].text <= at) low = middle;
    else high = middle;
  }
  record = runs[low].record + (at - runs[low].text);
  /* what an escape stands for may have more bytes than the next run leaves */
  if (low + 1 < m->runs.n / sizeof *runs && runs[low + 1].record > runs[low].record && record >= runs[low + 1].record)
    record = runs[low + 1].record - 1;
  return record;
}
