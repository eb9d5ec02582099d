# private.awk - the header for tests of its private functions, which objects define for all of them:
#
#   awk -v define=1 -f private.awk gpuir.h >private.c         the implementation, its functions no longer static
#   awk -f private.awk tools/header/*.h >private.h            their declarations: a test includes it, not gpuir.h
#   awk -v room=tools/header/61-or.h -f private.awk tools/header/*.h >61-or.c
#                                                             one room's functions, and declarations of all others
#
# Compiling the implementation takes seconds, and more than twenty programs need it. Declarations carry neither #line nor
# comments: they stay the same while a function's body changes, so what includes them is not compiled again. This relies on the layout
# that clang-format gives: a function begins in the first column, and so does the brace that ends it. Functions that are
# inline, and those that a macro makes, stay as they are, and so do tables, but for those whose size is written down.

BEGIN {
  print "#define GPUIR_IMPLEMENTATION"
  print "#pragma GCC diagnostic push"
  for (n = split("function variable const-variable", kind, " "); n; n--)
    printf "#pragma GCC diagnostic ignored \"-Wunused-%s\"\n", kind[n]
  whole = define
}

FNR == 1 {
  define = whole || FILENAME == room
  if (define) printf "#line 1 \"%s\"\n", FILENAME
  else if (room && last == room) print "#line 1 \"private.h\""
  last = FILENAME
}

/^#if defined\(GPUIR_IMPLEMENTATION\) && !defined\(GPUIR_IMPLEMENTED\)/ { inside = 1 }

!part && /^[A-Z]/ { sub(/GPUIR__NOINLINE /, "static __attribute__((noinline)) ") }
!part && inside && /^([A-Z][A-Z0-9_]* )*static [^=;(]*\(/ && !/^[^(]* inline / { part = "function" }
!part && inside && /^([A-Z][A-Z0-9_]* )*static const [^(=]*\[[A-Za-z0-9_]+\] = / { part = "table" }
!part && inside && /^([A-Z][A-Z0-9_]* )*GPUIR_API / { part = "public" } # declared before

define && part ~ /function|table/ { sub(/static /, "") }
!define && !part && /^\/\*/ { comment = 1 }
comment {
  if (/\*\//) comment = 0
  next
}

define || !part {
  print
  part = ""
  next
}

# What comes before the body.
!body {
  line = $0
  body = part == "table" ? sub(/ = .*/, ";", line) : sub(/ \{.*/, ";", line)
  sub(/static /, "extern ", line)
  if (part != "public") print line
}

part == "table" ? /\};$/ : /^[^ ].*\}$|^\}$/ { part = body = "" }

END { print "#pragma GCC diagnostic pop" }
