/* histogram.c - log-linear histograms of times, to three digits. */
#include "load.h"

#include <math.h>
#include <stdlib.h>

static unsigned bucket_of(uint64_t v) {
  const unsigned shift = 53 - (unsigned)__builtin_clzll(v | 2047);
  return ((shift + 1) << 10) + (unsigned)(v >> shift) - 1024;
}

uint64_t load_bucket_end(unsigned bucket) {
  const unsigned shift = bucket < 2048 ? 0 : (bucket >> 10) - 1;
  const uint64_t sub = bucket < 2048 ? bucket : (bucket & 1023) + 1024;
  return ((sub + 1) << shift) - 1;
}

void load_record(load_histogram *h, uint64_t ns) {
  const uint64_t limit = ((uint64_t)1 << 41) - 1;
  if (ns > limit) ns = limit;
  h->counts[bucket_of(ns)]++;
  h->n++;
  h->sum += (double)ns;
  if (ns > h->most) h->most = ns;
}

uint64_t load_percentile(const load_histogram *h, double percent) {
  uint64_t at = (uint64_t)(percent / 100 * (double)h->n + 0.5), sum = 0;
  if (!h->n) return 0;
  if (!at) at = 1;
  for (unsigned i = 0; i < LOAD_BUCKETS; i++) {
    sum += h->counts[i];
    if (sum >= at) return load_bucket_end(i);
  }
  return h->most;
}

double load_mean(const load_histogram *h) { return h->n ? h->sum / (double)h->n : 0; }

/* Returns the percentile of a rank, from 1 on. */
static double value_at(const load_histogram *h, double rank) {
  const double n = (double)h->n;
  return (double)load_percentile(h, 100 * (rank < 1 ? 1 : rank > n ? n : rank) / n);
}

/* The mean over each value, as its bucket has it. */
static lab_spread mean_interval(const load_histogram *h) {
  double *values = (double *)cli_resize(NULL, (size_t)h->n, sizeof *values);
  size_t n = 0;
  for (unsigned i = 0; i < LOAD_BUCKETS; i++)
    for (uint64_t j = 0; j < h->counts[i]; j++) values[n++] = (double)load_bucket_end(i);
  lab_spread s = lab_bootstrap(values, n);
  s = lab_scaled(s, s.median > 0 ? load_mean(h) / s.median : 1);
  free(values);
  return s;
}

lab_spread load_interval(const load_histogram *h, double percent) {
  const double n = (double)h->n, p = percent / 100, spread = 1.96 * sqrt(n * p * (1 - p));
  lab_spread s = {0, 0, 0, h->n};
  if (!h->n) return s;
  if (percent < 0) return mean_interval(h);
  s.least = value_at(h, floor(n * p - spread));
  s.median = (double)load_percentile(h, percent);
  s.most = value_at(h, ceil(n * p + spread));
  return s;
}
