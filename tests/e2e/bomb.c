/* bomb.c - makes an index of whose terms one in sixteen names the same list, the longest: bomb IN OUT
 *
 * Such a file opens, and a search of it is right for what it says; reading every list of it would cost the product of
 * its terms and its documents. Prints a term that names another one's list. */
#include "private.h"

#include "../fuzz/structure.h"
#include "dictionary.h"

/* Gives the first term of each block the first long list, and all others one posting, so that none gives it away. */
static void all_one(void *user, uint64_t id, gpuir__record *r, gpuir__dict_page *now) {
  const gpuir__record *longest = (const gpuir__record *)user;
  if (id % GPUIR__DICT_BLOCK == 0) {
    now->longs = 0;
    *r = *longest;
  } else {
    memset(r, 0, sizeof *r);
    r->df = 1;
    r->freqs = 1;
  }
}

int main(int argc, char **argv) {
  static uint8_t bytes[1 << 24];
  structure s;
  FILE *f = argc == 3 ? fopen(argv[1], "rb") : NULL;
  gpuir_index *ix;
  gpuir__record longest;
  gpuir__walk w;
  if (!f) return 2;
  memset(&s, 0, sizeof s);
  memset(&longest, 0, sizeof longest);
  s.bytes = bytes;
  s.len = fread(bytes, 1, sizeof bytes, f);
  (void)fclose(f);
  if (gpuir_open(argv[1], NULL, &ix, NULL)) return 2;
  for (gpuir__walk_start(&w, gpuir__only(ix)); gpuir__walk_next(&w);) {
    if (w.record.df > longest.df) longest = w.record;
    if (w.id == 2 * GPUIR__DICT_BLOCK) (void)printf("%s\n", (const char *)w.term);
  }
  gpuir_close(ix);
  s.len = dictionary_rewrite(bytes, s.len, sizeof bytes - s.len, all_one, &longest);
  structure_mend(&s);
  f = fopen(argv[2], "wb");
  return !f || fwrite(bytes, 1, s.len, f) != s.len || fclose(f);
}
