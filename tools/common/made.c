/* made.c - which bytes of a record those of a text were made of. */
#include "made.h"

#include "text.h"

void made_utf8(made_text *m, unsigned long c, const char *from) {
  char out[4];
  const size_t n = text_put_utf8(c, out);
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
