/* serve.h - what the files of `gpuir serve` share.
 *
 * serve.c   the command, its protocol, sockets
 * stream.c  the requests of one client: many are answered at once, in the order in which they came
 */
#ifndef GPUIR_CLI_SERVE_H
#define GPUIR_CLI_SERVE_H

#include "cli.h"

#define SERVE_HITS 1000 /* that a request may ask for */

/* What clients are served from. */
typedef struct server {
  const char *name; /* of the index */
  gpuir_index *index;
  gpuir_pool *pool;
  size_t window; /* requests of a client in flight at most: further ones are not read meanwhile */
  uint64_t deadline_ns; /* of a request from when it was read; 0: none */
} server;

/* A request, understood. */
typedef struct serve_request {
  size_t k; /* 0: nothing is ranked */
  int count;
  int mode;
  int optional; /* words without a plus beside words with one: they rank, but need not be there */
  cli_buf query; /* in gpuir's own syntax */
} serve_request;

/* Understands a line without its end. 0; -1: it has no exact answer here. Either way request->query is the caller's. */
int serve_parse(const char *line, size_t len, serve_request *request);

/* Answers the requests of `in` on `out` until the input ends, or a signal comes. Exit code. Threads that it starts
 * leave signals to the caller's. */
int serve_stream(const server *s, int in, int out);

#endif
