/* statistics.c - what the parts of a collection count together.
 *
 * Each term has an owner among the ranks, by its hash. Every rank sends its terms with their df to their owners, who
 * sum them up and send the sums back in the same order. The statistics' identity is a hash of the settings, of N and of
 * the lengths' sum, and of all terms with their df, whose hashes are summed: so it does not depend on the division. */
#include "mpi.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define CHUNK_TERMS ((uint64_t)1 << 20) /* that a rank sends at a time: at most 260 MB */

/* A term that this rank owns. */
typedef struct owned {
  uint64_t hash, df;
  size_t at; /* of its length and bytes in the texts */
} owned;

typedef struct exchange {
  const gpuir_index *part;
  uint64_t terms;
  unsigned char *out, *in; /* of one chunk: df, length, bytes */
  int *counts, *places, *counts_in, *places_in;
  /* what this rank owns, with a hash table: the number of a term, plus 1, or 0 */
  owned *terms_owned;
  size_t n, cap, *slots, nslots;
  cli_buf texts;
  size_t *came, ncame, came_cap; /* the terms that came: numbers of owned ones */
  int *numbers, *numbers_in; /* [chunk * ranks + rank] terms sent to, and come from, a rank */
} exchange;

/* Doubles the hash table. */
static void table_grow(exchange *x) {
  free(x->slots);
  x->nslots = x->nslots ? 2 * x->nslots : 1024;
  x->slots = (size_t *)cli_resize(NULL, x->nslots, sizeof *x->slots);
  memset(x->slots, 0, x->nslots * sizeof *x->slots);
  for (size_t i = 0; i < x->n; i++) {
    size_t j = (size_t)(x->terms_owned[i].hash & (x->nslots - 1));
    while (x->slots[j]) j = (j + 1) & (x->nslots - 1);
    x->slots[j] = i + 1;
  }
}

/* Returns the number of a term that this rank owns; a new one gets the next. */
static size_t table_find(exchange *x, const char *term, size_t len) {
  const uint64_t hash = XXH3_64bits(term, len);
  if (2 * (x->n + 1) > x->nslots) table_grow(x);
  for (size_t i = (size_t)(hash & (x->nslots - 1));; i = (i + 1) & (x->nslots - 1)) {
    const owned *o = x->slots[i] ? &x->terms_owned[x->slots[i] - 1] : NULL;
    if (o &&
        (o->hash != hash || (size_t)(unsigned char)x->texts.p[o->at] != len ||
            memcmp(x->texts.p + o->at + 1, term, len) != 0))
      continue;
    if (o) return x->slots[i] - 1;
    if (x->n == x->cap)
      x->terms_owned = (owned *)cli_resize(x->terms_owned, x->cap = x->cap ? 2 * x->cap : 1024, sizeof *x->terms_owned);
    x->terms_owned[x->n].hash = hash;
    x->terms_owned[x->n].df = 0;
    x->terms_owned[x->n].at = x->texts.n;
    cli_buf_char(&x->texts, (int)len);
    cli_buf_add(&x->texts, term, len);
    x->slots[i] = ++x->n;
    return x->n - 1;
  }
}

/* Lays out terms [from, to) by owner; 0, or the status of a term that cannot be read. */
static int pack(exchange *x, uint64_t from, uint64_t to, int *numbers) {
  size_t n = 0;
  memset(x->counts, 0, (size_t)mpi_ranks * sizeof *x->counts);
  memset(numbers, 0, (size_t)mpi_ranks * sizeof *numbers);
  for (int pass = 0; pass < 2; pass++) {
    for (uint64_t id = from; id < to; id++) {
      gpuir_term_info t;
      const int status = gpuir_term_get_info(x->part, id, &t);
      if (status) return status;
      const int owner = (int)(XXH3_64bits(t.term, t.term_len) % (unsigned)mpi_ranks);
      if (pass) {
        unsigned char *p = x->out + x->places[owner] + x->counts[owner];
        memcpy(p, &t.df, 4);
        p[4] = (unsigned char)t.term_len;
        memcpy(p + 5, t.term, t.term_len);
        numbers[owner]++;
      }
      x->counts[owner] += 5 + (int)t.term_len;
    }
    if (pass) break;
    for (int r = 0; r < mpi_ranks; r++) {
      x->places[r] = (int)n;
      n += (size_t)x->counts[r];
      x->counts[r] = 0;
    }
    x->out = (unsigned char *)cli_resize(x->out, n, 1);
  }
  return GPUIR_OK;
}

/* Takes the terms that came from rank `from`. */
static void take(exchange *x, int from, int *number) {
  const unsigned char *p = x->in + x->places_in[from], *end = p + x->counts_in[from];
  for (*number = 0; p < end; p += 5 + p[4], ++*number) {
    uint32_t df;
    const size_t at = table_find(x, (const char *)p + 5, p[4]);
    memcpy(&df, p, 4);
    x->terms_owned[at].df += df;
    if (x->ncame == x->came_cap)
      x->came = (size_t *)cli_resize(x->came, x->came_cap = x->came_cap ? 2 * x->came_cap : 4096, sizeof *x->came);
    x->came[x->ncame++] = at;
  }
}

/* Sends one chunk's terms to their owners; 0, or the first failure of any rank. */
static int send_terms(exchange *x, uint64_t chunk) {
  const uint64_t from = chunk * CHUNK_TERMS < x->terms ? chunk * CHUNK_TERMS : x->terms;
  const uint64_t to = from + CHUNK_TERMS < x->terms ? from + CHUNK_TERMS : x->terms;
  size_t n = 0;
  if (mpi_agree(pack(x, from, to, x->numbers + chunk * (unsigned)mpi_ranks) != 0)) return CLI_FAIL;
  MPI_Alltoall(x->counts, 1, MPI_INT, x->counts_in, 1, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < mpi_ranks; r++) {
    x->places_in[r] = (int)n;
    n += (size_t)x->counts_in[r];
  }
  if (mpi_agree(n > INT_MAX)) {
    cli_error("more terms than a message holds");
    return CLI_FAIL;
  }
  x->in = (unsigned char *)cli_resize(x->in, n, 1);
  MPI_Alltoallv(x->out, x->counts, x->places, MPI_BYTE, x->in, x->counts_in, x->places_in, MPI_BYTE, MPI_COMM_WORLD);
  return CLI_OK;
}

/* Sends the sums back, in the order in which the terms came, and puts those that come back where they belong. */
static void send_sums(exchange *x, uint64_t chunk, size_t *at, uint32_t *dfs) {
  const int *numbers = x->numbers + chunk * (unsigned)mpi_ranks,
            *numbers_in = x->numbers_in + chunk * (unsigned)mpi_ranks;
  const uint64_t from = chunk * CHUNK_TERMS;
  size_t sent = 0, got = 0;
  for (int r = 0; r < mpi_ranks; r++) {
    x->places_in[r] = (int)sent;
    x->places[r] = (int)got;
    sent += (size_t)numbers_in[r];
    got += (size_t)numbers[r];
  }
  uint32_t *sums = (uint32_t *)cli_resize(NULL, sent, sizeof *sums);
  uint32_t *own = (uint32_t *)cli_resize(NULL, got, sizeof *own);
  for (size_t i = 0; i < sent; i++) sums[i] = (uint32_t)x->terms_owned[x->came[(*at)++]].df;
  MPI_Alltoallv(sums, numbers_in, x->places_in, MPI_UINT32_T, own, numbers, x->places, MPI_UINT32_T, MPI_COMM_WORLD);
  for (uint64_t id = from; id < from + got; id++) {
    gpuir_term_info t;
    (void)gpuir_term_get_info(x->part, id, &t); /* as before */
    dfs[id] = own[x->places[XXH3_64bits(t.term, t.term_len) % (unsigned)mpi_ranks]++];
  }
  free(sums);
  free(own);
}

/* Adds the hash of each term that this rank owns, with its df, to sums[0..2). */
static void hash_terms(const exchange *x, uint64_t sums[2]) {
  for (size_t i = 0; i < x->n; i++) {
    const owned *o = &x->terms_owned[i];
    const XXH128_hash_t h = XXH3_128bits_withSeed(x->texts.p + o->at + 1, (unsigned char)x->texts.p[o->at], o->df);
    sums[0] += h.low64;
    sums[1] += h.high64;
  }
}

/* Makes the identity of the settings and of what has been counted: N, the lengths' sum, the number of terms, and the
 * sums of their hashes. */
static void identify(const gpuir_index_info *info, const uint64_t counted[5], uint64_t identity[2]) {
  cli_buf b = {NULL, 0, 0};
  const char *const settings[] = {info->analyzer, info->codec, info->freq_codec, info->tool};
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) cli_buf_add(&b, settings[i], strlen(settings[i]) + 1);
  cli_buf_add(&b, &info->k1, sizeof info->k1);
  cli_buf_add(&b, &info->b, sizeof info->b);
  cli_buf_char(&b, info->has_positions);
  cli_buf_char(&b, info->has_text);
  cli_buf_add(&b, counted, 5 * sizeof *counted);
  const XXH128_hash_t h = XXH3_128bits(b.p, b.n);
  identity[0] = h.low64;
  identity[1] = h.high64;
  cli_buf_free(&b);
}

/* Fills in what all ranks count together. */
static void count_all(const exchange *x, const gpuir_index_info *info, gpuir_shard_info *place) {
  uint64_t own[5] = {info->documents, info->tokens, x->n, 0, 0}, all[5], before = 0;
  hash_terms(x, own + 3);
  MPI_Allreduce(own, all, 5, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Exscan(own, &before, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  memset(place, 0, sizeof *place);
  place->documents = all[0];
  place->tokens = all[1];
  place->first = mpi_rank ? before : 0;
  place->shard = (uint32_t)mpi_rank;
  place->shards = (uint32_t)mpi_ranks;
  identify(info, all, place->identity);
}

/* Exchanges all terms. */
static int exchange_terms(exchange *x, uint64_t chunks, uint32_t *dfs) {
  const size_t ranks = (size_t)mpi_ranks;
  size_t at = 0;
  x->counts = (int *)cli_resize(NULL, 4 * ranks, sizeof(int));
  x->places = x->counts + ranks;
  x->counts_in = x->places + ranks;
  x->places_in = x->counts_in + ranks;
  x->numbers = (int *)cli_resize(NULL, (size_t)chunks * ranks, sizeof(int));
  x->numbers_in = (int *)cli_resize(NULL, (size_t)chunks * ranks, sizeof(int));
  for (uint64_t chunk = 0; chunk < chunks; chunk++) {
    const int code = send_terms(x, chunk);
    if (code) return code;
    for (int r = 0; r < mpi_ranks; r++) take(x, r, &x->numbers_in[chunk * ranks + (size_t)r]);
  }
  for (uint64_t chunk = 0; chunk < chunks; chunk++) send_sums(x, chunk, &at, dfs);
  return CLI_OK;
}

int mpi_count(const gpuir_index *part, gpuir_shard_info *place, uint32_t **dfs) {
  exchange x;
  gpuir_index_info info;
  uint64_t chunks, most = 0;
  memset(&x, 0, sizeof x);
  memset(&info, 0, sizeof info);
  (void)gpuir_index_get_info(part, &info);
  x.part = part;
  x.terms = info.terms;
  chunks = (info.terms + CHUNK_TERMS - 1) / CHUNK_TERMS;
  MPI_Allreduce(&chunks, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  *dfs = (uint32_t *)cli_resize(NULL, (size_t)info.terms, sizeof **dfs);
  const int code = exchange_terms(&x, most, *dfs);
  if (!code) count_all(&x, &info, place);
  free(x.out);
  free(x.in);
  free(x.counts);
  free(x.terms_owned);
  free(x.slots);
  free(x.came);
  free(x.numbers);
  free(x.numbers_in);
  cli_buf_free(&x.texts);
  return code;
}
