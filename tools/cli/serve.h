/* serve.h - what the files of `gpuir serve` share.
 *
 * serve.c   the command and its protocol
 * clients.c a socket and its clients: who is served, who waits, who has to go
 * stream.c  the requests of one client: many are answered at once, in the order in which they came
 */
#ifndef GPUIR_CLI_SERVE_H
#define GPUIR_CLI_SERVE_H

#include "cli.h"

#define SERVE_HITS 1000 /* that a request may ask for */
#define SERVE_CLIENTS 256u /* of a socket that are served at a time, half of them of one user at most */

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
  unsigned required; /* words that must match, which come first; the others only rank. 0: the mode tells */
  cli_buf query; /* in gpuir's own syntax */
  cli_buf where; /* with a NUL; n 0: there is none */
  int all; /* no word must match */
} serve_request;

/* Understands a line without its end. 0; -1: it has no exact answer here. Either way both texts are the caller's. */
int serve_parse(const char *line, size_t len, serve_request *request);

/* Why a client of a socket ended before its requests did. */
enum {
  SERVE_ENDED, /* it did not: its requests ended */
  SERVE_GONE, /* it went away while answers were due */
  SERVE_STALLED, /* it took no answers for too long */
  SERVE_IDLE, /* it was closed for others that waited */
  SERVE_REFUSED, /* too many of the same user waited already */
  SERVE_UNREADABLE, /* a request cannot be read */
  SERVE_FAILED, /* the server has no memory, thread or descriptor for it, or cannot read the index */
  SERVE_REASONS
};

/* What a client's stream tells the socket that it came from. */
typedef struct serve_client {
  uint64_t idle_since; /* read and written atomically: nothing is in flight since then; 0: something is */
  int reason; /* SERVE_..., once the stream has ended */
  char cause[200]; /* in words */
} serve_client;

/* Answers the requests of `in` on `out` until the input ends, or a signal comes. Exit code. Threads that it starts
 * leave signals to the caller's. Without a client (NULL) it prints what goes wrong, and waits without end for answers
 * to be taken. */
int serve_stream(const server *s, int in, int out, serve_client *client);

/* Serves the clients of a Unix socket until a signal comes. Exit code. */
int serve_socket(const server *s, const char *path);

#endif
