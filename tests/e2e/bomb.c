/* bomb.c - makes an index of whose terms all name one list, the longest: bomb IN OUT
 *
 * Such a file opens, and a search of it is right for what it says; reading every list of it would cost the product of
 * its terms and its documents. */
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include "../fuzz/structure.h"

int main(int argc, char **argv) {
  static uint8_t bytes[1 << 24];
  structure s;
  FILE *f = argc == 3 ? fopen(argv[1], "rb") : NULL;
  uint32_t i, n;
  if (!f) return 2;
  memset(&s, 0, sizeof s);
  s.bytes = bytes;
  s.len = fread(bytes, 1, sizeof bytes, f);
  (void)fclose(f);
  n = structure_sections(&s);
  for (i = 0; i < n; i++) {
    size_t length, at;
    uint8_t *records = structure_bytes(&s, structure_entry(&s, i), &length), *longest = records;
    if (structure_get32(structure_entry(&s, i)) != GPUIR__S_RECORDS) continue;
    for (at = 0; at < length; at += sizeof(gpuir__record))
      if (structure_get32(records + at) > structure_get32(longest)) longest = records + at;
    for (at = 0; at < length; at += sizeof(gpuir__record))
      if (records + at != longest) memcpy(records + at, longest, sizeof(gpuir__record));
  }
  structure_mend(&s);
  f = fopen(argv[2], "wb");
  return !f || fwrite(bytes, 1, s.len, f) != s.len || fclose(f);
}
