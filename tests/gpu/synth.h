/* synth.h - the generator of tools/synth for the GPU's tests and measurements; include after gpuir.h */
#ifndef TESTS_GPU_SYNTH_H
#define TESTS_GPU_SYNTH_H

#include "../../tools/synth/synth.h"

/* A list by itself, without topics, in the docIDs of d->documents; bursts by d->clustering. At most df + df / 4 + 64
 * postings; returns their number, which is df on average. */
static inline uint32_t synth_list(const synth_desc *d, uint32_t term, uint32_t df, uint32_t *docs, uint32_t *tfs) {
  synth_rng r = synth_stream(d->seed, SYNTH_OF_TFS, term);
  synth_gaps gaps;
  uint32_t n = 0;
  synth *s = (synth *)calloc(1, sizeof *s);
  if (!s) return 0;
  s->d = *d;
  synth_make_tables(s);
  gaps = synth_gaps_start(s, synth_stream(d->seed, SYNTH_OF_DOCS, term), (double)df / d->documents, d->documents);
  for (; gaps.next < gaps.end && n < df + df / 4 + 64; synth_gaps_step(&gaps)) {
    docs[n] = (uint32_t)gaps.next;
    tfs[n++] = s->tf[0][synth_below(&r, 4096)];
  }
  free(s);
  if (n) return n;
  docs[0] = term % d->documents;
  tfs[0] = 1;
  return 1;
}

/* Writes the index of a description. 0, or a status with *err. */
static inline int synth_generate(const synth_desc *d, const char *path, gpuir_error *err) {
  synth *s;
  int status = synth_open(d, &s, err);
  if (!status) status = synth_write(s, path, err);
  synth_close(s);
  return status;
}

#endif
