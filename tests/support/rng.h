/* rng.h - numbers at random for the tests, from seeds, so that a failure repeats: splitmix64 (Steele, Lea and Flood,
 * "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014)
 */
#ifndef TESTS_RNG_H
#define TESTS_RNG_H

#include <stdint.h>

typedef struct rng {
  uint64_t s; /* the seed, then the state */
} rng;

static inline uint64_t rng_next(rng *r) {
  uint64_t z = r->s += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* Uniform in [0, n). */
static inline uint32_t rng_below(rng *r, uint32_t n) { return (uint32_t)(((rng_next(r) >> 32) * n) >> 32); }

/* Uniform in [0, 1). */
static inline double rng_unit(rng *r) { return (double)(rng_next(r) >> 11) / 9007199254740992.0; }

/* ---- one sequence for a whole program that draws from one thread ---- */

static rng rng_shared = {88172645463325252u};

static inline uint32_t rnd(void) { return (uint32_t)(rng_next(&rng_shared) >> 32); }

static inline uint32_t below(uint32_t n) { return rng_below(&rng_shared, n); }

/* A number of at most w bits, the extremes often. */
static inline uint32_t bits(unsigned w) {
  uint32_t most = (uint32_t)(((uint64_t)1 << w) - 1), r = rnd();
  return r % 16 == 0 ? most : r % 16 == 1 ? 0 : rnd() & most;
}

#endif
