/* mcp_install.c - gpuir mcp --install: prints what makes assistants start `gpuir mcp`. It writes no file: whose
 * configuration it is decides. */
#ifndef _GNU_SOURCE
#define _XOPEN_SOURCE 700 /* realpath, readlink */
#endif
#include "mcp.h"

#include "../common/text.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Appends a word of a shell's command. */
static void add_word(cli_buf *b, const char *s) {
  cli_buf_char(b, '\'');
  for (; *s; s++) {
    if (*s == '\'') cli_buf_text(b, "'\\''");
    else cli_buf_char(b, *s);
  }
  cli_buf_char(b, '\'');
}

/* Whether a path can stand in all of the configurations. */
static int is_plain(const char *path) {
  return cli_is_utf8(path, strlen(path)) && text_plain(TEXT_MESSAGE, path, strlen(path)) == strlen(path);
}

/* Appends the path of an index, as shells and as configurations have it. CLI_FAIL after a message. */
static int add_index(cli_buf *shell, cli_buf *list, const char *given) {
  char path[PATH_MAX];
  gpuir_index *index = cli_open(given);
  if (!index) return CLI_FAIL;
  gpuir_close(index);
  if (!realpath(given, path)) {
    cli_error("%s: %s", given, strerror(errno));
    return CLI_FAIL;
  }
  if (!is_plain(path)) {
    cli_error("%s: its path has characters that configurations cannot have", path);
    return CLI_FAIL;
  }
  cli_buf_char(shell, ' ');
  add_word(shell, path);
  cli_buf_text(list, ", ");
  cli_buf_json(list, path, strlen(path)); /* a string of JSON is one of TOML, too */
  return CLI_OK;
}

static void print_members(const char *title, const char *before, const char *command, const char *list,
    const char *after) {
  printf("# %s\n%s\"command\": %s, \"args\": [%s]%s\n\n", title, before, command, list, after);
}

static void print_all(const char *program, const char *command, const char *shell, const char *list) {
  printf("# Claude Code: run\nclaude mcp add gpuir -- %s mcp%s\n\n", program, shell);
  print_members(
      "Claude Desktop: claude_desktop_config.json; Cursor: ~/.cursor/mcp.json; Gemini CLI: "
      "~/.gemini/settings.json; Windsurf: ~/.codeium/windsurf/mcp_config.json",
      "{\"mcpServers\": {\"gpuir\": {", command, list, "}}}");
  print_members("VS Code: .vscode/mcp.json", "{\"servers\": {\"gpuir\": {\"type\": \"stdio\", ", command, list, "}}}");
  print_members("Zed: settings.json", "{\"context_servers\": {\"gpuir\": {\"source\": \"custom\", ", command, list,
      "}}}");
  printf("# Codex: ~/.codex/config.toml\n[mcp_servers.gpuir]\ncommand = %s\nargs = [%s]\n", command, list);
}

int mcp_install(char **paths, size_t n) {
  char program[PATH_MAX];
  cli_buf shell = {NULL, 0, 0}, list = {NULL, 0, 0}, command = {NULL, 0, 0}, word = {NULL, 0, 0};
  int code = CLI_OK;
  const ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
  snprintf(program + (len > 0 ? len : 0), sizeof program - (size_t)(len > 0 ? len : 0), "%s", len > 0 ? "" : "gpuir");
  cli_buf_text(&list, "\"mcp\"");
  for (size_t i = 0; i < n && !code; i++) code = add_index(&shell, &list, paths[i]);
  add_word(&word, program);
  cli_buf_json(&command, program, strlen(program));
  cli_buf_char(&word, 0);
  cli_buf_char(&command, 0);
  cli_buf_char(&shell, 0);
  cli_buf_char(&list, 0);
  if (!code) print_all(word.p, command.p, shell.p, list.p);
  cli_buf_free(&shell);
  cli_buf_free(&list);
  cli_buf_free(&command);
  cli_buf_free(&word);
  return code;
}
