/* complete.c - gpuir completion: prints what lets a shell complete the commands, options and values of gpuir.
 *
 * All of it comes from the texts of gpuir help: a line of options has their names, a value in capital letters where one
 * follows, and what they do.
 */
#include "cli.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A part of a help text. */
typedef struct part {
  const char *p;
  size_t n;
} part;

typedef struct option {
  char letter; /* or 0 */
  part name; /* without "--"; empty: there is a letter only */
  part value; /* such as "FILE"; empty: it takes none */
  part does;
} option;

typedef struct command {
  part name, does;
  option options[64];
  size_t n;
} command;

static int is(part a, const char *b) { return a.n == strlen(b) && !memcmp(a.p, b, a.n); }

/* ---- reading of help texts -------------------------------------------------------------------- */

static part line_at(const char *text) {
  const part line = {text, strcspn(text, "\n")};
  return line;
}

static const char *next_line(const char *text) {
  text += strcspn(text, "\n");
  return *text ? text + 1 : text;
}

/* Returns what a description says first: up to a semicolon or a full stop, and no bracket that is left open. */
static part first_words(const char *p, const char *end) {
  const char *open = NULL;
  part d;
  while (p < end && *p == ' ') p++;
  d.p = p;
  for (; p < end; p++) {
    const int last = p + 1 == end || p[1] == ' ';
    if (*p == '(') open = p;
    if (*p == ')') open = NULL;
    if (!open && last && (*p == ';' || *p == '.')) break;
  }
  if (open) p = open;
  while (p > d.p && strchr(" ,:", p[-1])) p--;
  d.n = (size_t)(p - d.p);
  return d;
}

/* Returns the value that is named behind an option: one blank, and capital letters. */
static part value_at(const char *p, const char *end) {
  part v = {p, 0};
  if (end - p < 2 || *p != ' ' || p[1] == ' ') return v;
  const char *q = ++p;
  while (q < end && (isupper((unsigned char)*q) || *q == '=')) q++;
  if (q > p && (q == end || *q == ' ' || *q == ',')) v.p = p, v.n = (size_t)(q - p);
  return v;
}

/* Takes the options of a line. Returns what follows them. */
static const char *take_options(command *c, part line) {
  const char *p = line.p + 2, *end = line.p + line.n;
  char letter = 0;
  while (end - p > 1 && *p == '-' && c->n < sizeof c->options / sizeof *c->options) {
    option *o = &c->options[c->n];
    memset(o, 0, sizeof *o);
    const char *name = p;
    while (p < end && *p != ' ' && *p != ',') p++;
    o->value = value_at(p, end);
    if (o->value.n) p = o->value.p + o->value.n;
    if (name[1] != '-') {
      letter = name[1];
    } else {
      o->letter = letter;
      o->name.p = name + 2;
      while (o->name.n < (size_t)(end - o->name.p) && !strchr(" ,", o->name.p[o->name.n])) o->name.n++;
      c->n++;
      letter = 0;
    }
    while (p < end && (*p == ',' || *p == ' ') && (p[0] == ',' || p[-1] == ',')) p++;
  }
  return p;
}

/* Reads the options of a command from a part of its help. */
static void read_command(command *c, const char *help) {
  size_t from = c->n;
  for (const char *text = help; *text; text = next_line(text)) {
    const part line = line_at(text);
    const char *p = line.p;
    if (line.n < 4 || strncmp(p, "  ", 2)) {
      from = c->n;
      continue;
    }
    if (p[2] == '-') {
      if (c->n && c->options[c->n - 1].does.n) from = c->n;
      p = take_options(c, line);
    } else if (p[2] != ' ') {
      from = c->n;
    }
    /* options of one or more lines have one description, of which later lines are left out */
    const part does = first_words(p, line.p + line.n);
    for (; does.n && from < c->n; from++) c->options[from].does = does;
  }
}

/* Reads all commands: the table in the text of `gpuir help`, and the help of each. Returns how many there are. */
static size_t read_commands(command *list, size_t most) {
  size_t n = 0;
  for (const char *text = cli_help_text(NULL, 0); *text && n < most; text = next_line(text)) {
    const part line = line_at(text);
    char name[32];
    const size_t len = line.n > 2 ? strcspn(line.p + 2, " \n") : 0;
    if (strncmp(line.p, "  ", 2) || !len || len >= sizeof name) continue;
    memcpy(name, line.p + 2, len);
    name[len] = 0;
    if (!cli_help_text(name, 0)) continue;
    memset(&list[n], 0, sizeof list[n]);
    list[n].name.p = line.p + 2;
    list[n].name.n = len;
    list[n].does = first_words(line.p + 2 + len, line.p + line.n);
    for (size_t i = 0; cli_help_text(name, i); i++) read_command(&list[n], cli_help_text(name, i));
    n++;
  }
  return n;
}

/* ---- values ----------------------------------------------------------------------------------- */

/* Writes the words that an option's value can be, parted by blanks; nothing: they are not known. */
static void value_words(const option *o, cli_buf *out) {
  static const struct {
    const char *name, *words;
  } known[] = {{"mode", "and or andor"}, {"modes", "and or andor count"}, {"backend", "cpu gpu auto"},
      {"devices", "all"}, {"evaluator", "auto exhaustive"}, {"policy", "auto inter"},
      {"analyzer", "unicode ascii basic text"},
      {"codec", "bp128 vbyte pfd newpfd optpfd ef rice qs pfd-list parapfor lrc lrcseg seglrc hslrc auto"},
      {"freq-codec", "bp128 vbyte newpfd optpfd auto"},
      {"lang", "english german french spanish italian dutch portuguese swedish russian none"},
      {"stem", "english porter german french spanish italian dutch portuguese swedish russian"},
      {"order", "random name file: score: bisect"}, {"format", "ciff pisa"}};
  out->n = 0;
  if (is(o->name, "sort") && is(o->value, "KEY")) cli_buf_text(out, "term df cf"); /* in others it is a field */
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (is(o->name, known[i].name)) cli_buf_text(out, known[i].words);
  for (size_t i = 0; is(o->name, "intersection") && gpuir_intersection_name(i); i++) {
    if (i) cli_buf_char(out, ' ');
    cli_buf_text(out, gpuir_intersection_name(i));
  }
  cli_buf_char(out, 0);
}

/* Returns whether a value is a file or a folder. */
static int is_file(part value) {
  return is(value, "FILE") || is(value, "INDEX") || is(value, "FOLDER") || is(value, "DIR") || is(value, "F") ||
      is(value, "LIST") || is(value, "PATH");
}

/* Returns the words that a command's first operand can be; NULL: it is a file. */
static const char *operand_words(part name) {
  if (is(name, "lab")) return "codecs intersect search linearity all load plot report";
  if (is(name, "completion")) return "bash zsh fish";
  return NULL;
}

/* ---- the shells ------------------------------------------------------------------------------- */

static void print_part(part p) { (void)fwrite(p.p, 1, p.n, stdout); }

static void print_names(const command *list, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (i) putchar(' ');
    print_part(list[i].name);
  }
}

/* Prints the pattern of a case: the command and the option before the word. */
static void print_bash_option(part name, const option *o) {
  printf("    ");
  print_part(name);
  printf(",--");
  print_part(o->name);
  if (o->letter) {
    printf(" | ");
    print_part(name);
    printf(",-%c", o->letter);
  }
}

static void print_bash(const command *list, size_t n) {
  cli_buf words = {NULL, 0, 0};
  printf(
      "# bash completion of gpuir; made by: gpuir completion bash\n"
      "_gpuir() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} "
      "words=\n"
      "  COMPREPLY=()\n"
      "  if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    mapfile -t COMPREPLY < <(compgen -W '");
  print_names(list, n);
  printf(" --version --help' -- \"$cur\")\n    return\n  fi\n  case $command,$prev in\n    help,*) words='");
  print_names(list, n);
  printf("' ;;\n");
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j < list[i].n; j++) {
      const option *o = &list[i].options[j];
      if (!o->value.n) continue;
      value_words(o, &words);
      if (!words.p[0] && is_file(o->value)) continue;
      print_bash_option(list[i].name, o);
      if (words.p[0]) printf(") words='%s' ;;\n", words.p);
      else printf(") compopt +o default 2>/dev/null; return ;;\n");
    }
    if (operand_words(list[i].name)) {
      printf("    ");
      print_part(list[i].name);
      printf(",");
      print_part(list[i].name);
      printf(") words='%s' ;;\n", operand_words(list[i].name));
    }
  }
  printf("  esac\n  if [[ $cur == -* && ( -z $words || $prev != -* ) ]]; then\n    case $command in\n");
  for (size_t i = 0; i < n; i++) {
    printf("      ");
    print_part(list[i].name);
    printf(") words='");
    for (size_t j = 0; j < list[i].n; j++) {
      printf("%s--", j ? " " : "");
      print_part(list[i].options[j].name);
    }
    printf("' ;;\n");
  }
  printf(
      "    esac\n  fi\n"
      "  if [[ -n $words ]]; then mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\"); fi\n"
      "}\n"
      "complete -o default -o bashdefault -F _gpuir gpuir\n");
  cli_buf_free(&words);
}

/* Prints a text within single quotes, with a backslash before each of `marks`. */
static void print_quoted(part p, const char *marks) {
  for (size_t i = 0; i < p.n; i++) {
    if (p.p[i] == '\'') {
      printf("'\\''");
      continue;
    }
    if (strchr(marks, p.p[i])) putchar('\\');
    putchar(p.p[i]);
  }
}

static void print_zsh_option(const option *o, cli_buf *words) {
  printf("\n        ");
  if (o->letter)
    printf("'(-%c --%.*s)'{-%c%s,--%.*s%s}", o->letter, (int)o->name.n, o->name.p, o->letter, o->value.n ? "+" : "",
        (int)o->name.n, o->name.p, o->value.n ? "=" : "");
  else printf("'--%.*s%s", (int)o->name.n, o->name.p, o->value.n ? "=" : "");
  printf("%s[", o->letter ? "'" : "");
  print_quoted(o->does, "[]:\\");
  putchar(']');
  if (o->value.n) {
    value_words(o, words);
    printf(":%.*s:", (int)o->value.n, o->value.p);
    if (words->p[0]) printf("(%s)", words->p);
    else if (is_file(o->value)) printf("_files");
  }
  printf("' \\");
}

static void print_zsh(const command *list, size_t n) {
  cli_buf words = {NULL, 0, 0};
  printf(
      "#compdef gpuir\n"
      "# zsh completion of gpuir; made by: gpuir completion zsh\n"
      "_gpuir() {\n"
      "  local -a commands=(");
  for (size_t i = 0; i < n; i++) {
    printf("\n    '");
    print_part(list[i].name);
    putchar(':');
    print_quoted(list[i].does, ":\\");
    putchar('\'');
  }
  printf(
      ")\n"
      "  if ((CURRENT == 2)); then _describe -t commands command commands; return; fi\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case $words[1] in\n"
      "    help) _describe -t commands command commands ;;\n");
  for (size_t i = 0; i < n; i++) {
    if (is(list[i].name, "help")) continue;
    printf("    ");
    print_part(list[i].name);
    printf(") _arguments -s \\");
    for (size_t j = 0; j < list[i].n; j++) print_zsh_option(&list[i].options[j], &words);
    if (operand_words(list[i].name)) printf("\n        '1:what:(%s)' \\", operand_words(list[i].name));
    printf("\n        '*:file:_files' ;;\n");
  }
  printf(
      "  esac\n}\n"
      "if [[ $funcstack[1] == _gpuir ]]; then _gpuir \"$@\"; else compdef _gpuir gpuir; fi\n");
  cli_buf_free(&words);
}

static void print_fish(const command *list, size_t n) {
  cli_buf words = {NULL, 0, 0};
  printf("# fish completion of gpuir; made by: gpuir completion fish\n");
  for (size_t i = 0; i < n; i++) {
    printf("complete -c gpuir -n __fish_use_subcommand -f -a ");
    print_part(list[i].name);
    printf(" -d '");
    print_quoted(list[i].does, "\\");
    printf("'\n");
  }
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j < list[i].n; j++) {
      const option *o = &list[i].options[j];
      printf("complete -c gpuir -n '__fish_seen_subcommand_from %.*s'", (int)list[i].name.n, list[i].name.p);
      if (o->letter) printf(" -s %c", o->letter);
      printf(" -l %.*s", (int)o->name.n, o->name.p);
      value_words(o, &words);
      if (o->value.n && words.p[0]) printf(" -x -a '%s'", words.p);
      else if (o->value.n) printf(is_file(o->value) ? " -r" : " -x");
      printf(" -d '");
      print_quoted(o->does, "\\");
      printf("'\n");
    }
    if (operand_words(list[i].name))
      printf("complete -c gpuir -n '__fish_seen_subcommand_from %.*s' -f -a '%s'\n", (int)list[i].name.n,
          list[i].name.p, operand_words(list[i].name));
  }
  printf("complete -c gpuir -n '__fish_seen_subcommand_from help' -f -a '");
  print_names(list, n);
  printf("'\n");
  cli_buf_free(&words);
}

/* ---- the command ------------------------------------------------------------------------------ */

int cli_completion(int argc, char **argv) {
  static const cli_option options[] = {{0, NULL, 0, 0}};
  static const struct {
    const char *name;
    void (*print)(const command *list, size_t n);
  } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
  enum { MOST = 32 };
  cli_args a;
  int opt, code = CLI_USAGE;
  cli_args_start(&a, "completion", options, argc, argv);
  if ((opt = cli_next(&a)) != CLI_END) {
    code = opt == CLI_HELP ? cli_help("completion") : CLI_USAGE;
  } else if (a.noperands != 1) {
    code = cli_misuse("completion", a.noperands ? "one shell only" : "the shell is missing: bash, zsh or fish");
  } else {
    size_t i = 0;
    while (i < 3 && strcmp(shells[i].name, a.operands[0]) != 0) i++;
    if (i == 3) {
      code = cli_misuse("completion", "'%s' is none of bash, zsh and fish", a.operands[0]);
    } else {
      command *list = (command *)cli_resize(NULL, MOST, sizeof *list);
      shells[i].print(list, read_commands(list, MOST));
      free(list);
      code = cli_finish(CLI_OK);
    }
  }
  cli_args_free(&a);
  return code;
}
