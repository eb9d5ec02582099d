/* mcp.h - what the files of `gpuir mcp` share.
 *
 * mcp.c          the command, its two threads and the protocol
 * mcp_message.c  a line of JSON-RPC, understood
 * mcp_tools.c    the tools: search, passages, read
 * mcp_install.c  the configurations of assistants that start it
 *
 * Source: modelcontextprotocol.io, specifications of 2025-06-18, 2025-03-26 and 2024-11-05.
 */
#ifndef GPUIR_CLI_MCP_H
#define GPUIR_CLI_MCP_H

#include "cli.h"

#include "../common/json.h"

#include <pthread.h>

/* What is read of a message. The names in mcp_message.c stand in the same order. */
enum {
  MCP_JSONRPC,
  MCP_ID,
  MCP_METHOD,
  MCP_RESULT, /* of an answer, which nobody has asked for */
  MCP_ERROR,
  MCP_PARAMS,
  MCP_VERSION,
  MCP_NAME,
  MCP_CURSOR,
  MCP_REQUEST, /* the id of what is cancelled */
  MCP_PROGRESS, /* the token of notifications of progress */
  MCP_ARGUMENTS,
  MCP_QUERY, /* the first of the arguments of tools */
  MCP_INDEX,
  MCP_MODE,
  MCP_K,
  MCP_OFFSET,
  MCP_TOKENS,
  MCP_DOCUMENT,
  MCP_PATH,
  MCP_VALUES
};

/* A value as it stands in the line; of a string what is between its quotes. raw NULL: it is not there. */
typedef struct mcp_value {
  json_kind kind;
  const char *raw;
  size_t len;
} mcp_value;

typedef struct mcp_message {
  mcp_value values[MCP_VALUES];
  mcp_value unknown; /* the name of an argument that no tool has */
  int cancelled;
} mcp_message;

/* A line with its messages. */
typedef struct mcp_job {
  struct mcp_job *next;
  char *line; /* that values stand in; NULL: it was too long to be kept */
  mcp_message *messages;
  size_t n;
  int batch; /* an array of messages, which is answered by an array */
  int error; /* MCP_E_ of the whole line, or 0 */
  const char *why;
} mcp_job;

/* Errors of JSON-RPC. */
enum { MCP_E_PARSE = -32700, MCP_E_REQUEST = -32600, MCP_E_METHOD = -32601, MCP_E_PARAMS = -32602 };

#define MCP_BATCH 100 /* messages of a line */

/* Understands a line, which it copies. Returns a job for mcp_job_free, which may say that the line is in error. */
mcp_job *mcp_read(const char *line, size_t len);
/* Returns a job that says so of a line that could not be kept. */
mcp_job *mcp_reject(const char *why);
void mcp_job_free(mcp_job *job);
/* Returns whether a value is this string. */
int mcp_is(const mcp_value *v, const char *text);
/* Returns whether two values are the same bytes of JSON. */
int mcp_equal(const mcp_value *a, const mcp_value *b);

/* An index that is served. */
typedef struct mcp_index {
  const char *path; /* as it was given */
  char *name; /* by which clients call it */
  gpuir_index *index;
  gpuir_searcher *searcher;
  struct stat file; /* of the index, or of the manifest of a live one, when it was opened */
  cli_passages passages;
} mcp_index;

/* What the two threads share. */
typedef struct mcp_server {
  mcp_index *indexes;
  size_t n;
  int version; /* of the protocol, as mcp.c counts them; -1: not agreed on yet */
  int wake[2]; /* a pipe: a byte in it ends the reading */
  pthread_mutex_t lock; /* of what follows */
  pthread_cond_t came, taken;
  mcp_job *first, **last; /* that wait; the first one is being answered */
  size_t waiting;
  const mcp_message *current; /* that is being answered */
  int ended; /* no further one comes */
  int cancel; /* of what is being answered; read and written atomically, as the next one */
  int stop; /* nothing is answered or written any more */
} mcp_server;

/* Opens an index, or opens it again if it has changed: then *opened stays, with a note, where that fails. CLI_OK, or
 * CLI_FAIL after a message, if there is none to stay. */
int mcp_index_open(mcp_server *s, mcp_index *x);
void mcp_index_close(mcp_index *x);

/* Returns the tools' names, descriptions and arguments, as an array of JSON. */
const char *mcp_tools(void);
/* Returns whether there is a tool of this name. */
int mcp_is_tool(const mcp_value *name);
/* Called when `done` of `all` steps of a call are done. */
typedef void (*mcp_progress)(void *arg, size_t done, size_t all);
/* Calls a tool; *text gets its answer, or says what was wrong. Returns whether it was. */
int mcp_call(mcp_server *s, const mcp_message *m, mcp_progress progress, void *arg, cli_buf *text);

/* Prints the configurations, with these indexes in them. Exit code. */
int mcp_install(char **paths, size_t n);

#endif
