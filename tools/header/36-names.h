
/* ========
 * [36-names]  what the names of documents say
 *
 * A document of a file is named by its path, and a chunk of it by the path with the chunk's lines behind: a/b.c:51-100.
 * Whether a file is a program's source is said by the ending of its name.
 *
 * Uses      [16-base].
 * Start at  gpuir__path_of, gpuir__is_source, gpuir__listed.
 * Tests     tests/unit/36_names.c
 * ======*/

/* Words of a list, ascending, each in so many bytes with the NULs behind it. */
#define GPUIR__LISTED 16

/* Endings of the names of source files: of programming languages, build scripts in one, style sheets, shaders and
 * descriptions of interfaces. Not those of data and of markup. */
static const char gpuir__sources[][GPUIR__LISTED] = {"adb", "ads", "agda", "asm", "astro", "awk", "bas", "bash", "bat",
    "bats", "c", "c++", "cbl", "cc", "cjs", "cl", "clj", "cljc", "cljs", "cob", "coffee", "cpp", "cr", "cs", "csx",
    "cts", "cu", "cuh", "cxx", "d", "dart", "ebnf", "el", "elm", "erl", "ex", "exs", "f", "f03", "f08", "f77", "f90",
    "f95", "fish", "for", "fs", "fsi", "fsx", "g4", "gd", "glsl", "go", "gradle", "groovy", "h", "h++", "hh", "hlsl",
    "hpp", "hrl", "hs", "hx", "hxx", "idr", "inc", "inl", "ino", "ipp", "java", "jl", "js", "jsx", "kt", "kts", "l",
    "lean", "lhs", "lisp", "lsp", "lua", "m", "metal", "mjs", "ml", "mli", "mm", "move", "mts", "nim", "nix", "nut",
    "pas", "php", "phtml", "pl", "pm", "pp", "proto", "ps1", "psm1", "purs", "py", "pyi", "pyw", "pyx", "r", "raku",
    "rb", "rkt", "rs", "s", "sass", "sc", "scala", "scm", "scss", "sh", "sml", "sol", "sql", "ss", "sv", "svelte",
    "swift", "tcl", "tf", "ts", "tsx", "v", "vala", "vb", "vhd", "vhdl", "vim", "vue", "wat", "wgsl", "y", "zig",
    "zsh"};

static inline char gpuir__small(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

/* Says whether a word, of which capitals count as small letters, is one of a list's n. */
static int gpuir__listed(const char (*list)[GPUIR__LISTED], size_t n, const char *word, size_t len) {
  char small[GPUIR__LISTED];
  size_t lo = 0, i;
  if (!len || len >= sizeof small) return 0;
  memset(small, 0, sizeof small);
  for (i = 0; i < len; i++) small[i] = gpuir__small(word[i]);
  while (n) {
    const size_t half = n / 2;
    int order = (int)(uint8_t)small[0] - (int)(uint8_t)list[lo + half][0]; /* mostly enough, without a call */
    if (!order) order = memcmp(small, list[lo + half], sizeof small);
    if (!order) return 1;
    if (order > 0) lo += half + 1;
    n = order > 0 ? n - half - 1 : half;
  }
  return 0;
}
#define GPUIR__LISTED_IN(list, word, len) gpuir__listed(list, sizeof(list) / sizeof(list)[0], word, len)

/* Returns how many of the digits are at the end of name[0..n). */
static size_t gpuir__digits_before(const char *name, size_t n) {
  size_t i = n;
  while (i && name[i - 1] >= '0' && name[i - 1] <= '9') i--;
  return n - i;
}

/* Returns the length of a document's name without the lines at its end: ":12", ":51-100". */
static size_t gpuir__path_of(const char *name, size_t n) {
  size_t digits = gpuir__digits_before(name, n), i = n - digits;
  if (!digits || !i) return n;
  if (name[i - 1] == ':') return i - 1;
  if (name[i - 1] != '-') return n;
  digits = gpuir__digits_before(name, i - 1);
  i -= 1 + digits;
  return digits && i && name[i - 1] == ':' ? i - 1 : n;
}

/* Finds the ending behind the last point of a file's name; one at its begin, as of .profile, begins none. Its length;
 * 0: there is none. */
static size_t gpuir__ending_of(const char *base, size_t n, const char **ending) {
  size_t i = n;
  while (i > 1 && base[i - 1] != '.') i--;
  *ending = base + i;
  return i > 1 ? n - i : 0;
}

/* Returns where the last component of a path begins. */
static size_t gpuir__base_of(const char *path, size_t n) {
  while (n && path[n - 1] != '/') n--;
  return n;
}

/* Says whether an ending is that of a source file. */
static int gpuir__is_source_ending(const char *ending, size_t n) { return GPUIR__LISTED_IN(gpuir__sources, ending, n); }

/* Says whether a document has the name of a source file. */
static int gpuir__is_source(const char *name, size_t n) {
  const char *ending;
  size_t base, len;
  n = gpuir__path_of(name, n);
  if (!n) return 0; /* a document without a name: name may be NULL */
  base = gpuir__base_of(name, n);
  len = gpuir__ending_of(name + base, n - base, &ending);
  return gpuir__is_source_ending(ending, len);
}

GPUIR_API int gpuir_is_source_name(const char *name, size_t len) { return name && gpuir__is_source(name, len); }
