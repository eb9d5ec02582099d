/* 36_documents.c - what the names of documents say: lines at the end, endings of source files */
#include "private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct {
  const char *name;
  size_t path;
  int source;
} names[] = {{"", 0, 0}, {"a.c", 3, 1}, {"a.c:12", 3, 1}, {"a/b.C:51-100", 5, 1}, {"a.c:", 4, 0}, {"a.c:1-", 6, 0},
    {"a.c:-1", 6, 0}, {"12", 2, 0}, {":12", 0, 0}, {"1-2", 3, 0}, {"a.c:x1", 6, 0}, {".c", 2, 0}, {"x/.c", 4, 0},
    {"x/.c.py", 7, 1}, {"a.md", 4, 0}, {"a.", 2, 0}, {"a.c/b", 5, 0}, {"a.0123456789abcdef", 18, 0}, {"a.zsh", 5, 1},
    {"a.adb", 5, 1}, {"a.h++", 5, 1}, {"c", 1, 0}, {"a.c:1-2:3", 7, 0}};

static void test_names(void **state) {
  size_t i;
  (void)state;
  for (i = 0; i < sizeof names / sizeof *names; i++) {
    const char *name = names[i].name;
    char *copy = (char *)malloc(strlen(name) + 1); /* without a NUL, so that reading beyond shows */
    assert_non_null(copy);
    memcpy(copy, name, strlen(name));
    if (gpuir__path_of(copy, strlen(name)) != names[i].path) fail_msg("%s", name);
    if (gpuir__is_source(copy, strlen(name)) != names[i].source) fail_msg("%s", name);
    assert_int_equal(gpuir_is_source_name(copy, strlen(name)), names[i].source);
    free(copy);
  }
  assert_int_equal(gpuir_is_source_name(NULL, 0), 0);
}

/* All endings of sources, as people know them: what the list lacks, or has in another place, is not found. */
static const char sources[] =
    "adb ads agda asm astro awk bas bash bat bats c c++ cbl cc cjs cl clj cljc cljs cob coffee cpp cr cs "
    "csx cts cu cuh cxx d dart ebnf el elm erl ex exs f f03 f08 f77 f90 f95 fish for fs fsi fsx g4 gd "
    "glsl go gradle groovy h h++ hh hlsl hpp hrl hs hx hxx idr inc inl ino ipp java jl js jsx kt kts l "
    "lean lhs lisp lsp lua m metal mjs ml mli mm move mts nim nix nut pas php phtml pl pm pp proto ps1 "
    "psm1 purs py pyi pyw pyx r raku rb rkt rs s sass sc scala scm scss sh sml sol sql ss sv svelte "
    "swift tcl tf ts tsx v vala vb vhd vhdl vim vue wat wgsl y zig zsh";

static void test_endings(void **state) {
  const char *at = sources;
  unsigned n = 0;
  (void)state;
  for (; *at; at += *at == ' ', n++) {
    const size_t len = strcspn(at, " ");
    char word[GPUIR__LISTED];
    size_t i;
    assert_true(len + 1 < sizeof word);
    for (i = 0; i < len; i++) word[i] = (char)(at[i] >= 'a' && at[i] <= 'z' ? at[i] - 32 : at[i]);
    if (!gpuir__is_source_ending(at, len) || !gpuir__is_source_ending(word, len)) fail_msg("%.*s", (int)len, at);
    word[len] = '~';
    assert_int_equal(gpuir__is_source_ending(word, len + 1), 0);
    at += len;
  }
  assert_true(n > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_endings)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
