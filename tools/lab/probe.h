/* probe.h - the lists of a load's queries, one by one: what the schedulers that go list by list work on. */
#ifndef GPUIR_LAB_PROBE_H
#define GPUIR_LAB_PROBE_H

#include "load.h"

struct gpuir_cuda_lab;

/* A query's lists, from short to long. */
typedef struct load_members {
  uint32_t member[LAB_AND_TERMS]; /* in load_lists.list */
  unsigned k; /* 0: a word is unknown, and nothing is found */
} load_members;

/* The lists of all queries, each once. */
typedef struct load_lists {
  lab_list *list;
  size_t n;
  load_members *query; /* [setup->nqueries] */
  const lab_and **ands; /* the same lists within the index, with the weights of each query */
  lab_shelf *shelf;
  size_t nqueries;
  uint32_t longest;
} load_lists;

/* Reads them. `docs`: as arrays too; otherwise only their lengths. Exit code, after a message. */
int load_lists_read(const load_setup *setup, int docs, load_lists *lists);
void load_lists_free(load_lists *lists);
/* Lays the arrays out on a device, or the same in a codec, for runs of so many queries. Exit code, after a message. */
int load_lists_send(const load_lists *lists, const char *codec, const lab_gpu_size *size, int sent,
    struct gpuir_cuda_lab **gpu);

/* Decodes a list of a conjunction, which has list[i].df docIDs. */
void load_decode(const lab_and *a, unsigned list, uint32_t *docs);
/* Keeps those of docs[0..n), which ascend, that a list has: blocks are found by their last docIDs, and only those that
 * may have one are decoded. How many they are. */
uint32_t load_filter(const lab_and *a, unsigned list, uint32_t *docs, uint32_t n);
/* The k best of docs[0..n), which are in all lists, by looking each up in every list. Their number. */
size_t load_rank(const lab_and *a, const uint32_t *docs, uint32_t n, size_t k, gpuir_hit *hits);

#endif
