# private.awk - gpuir.h for tests of its private functions, which one object defines for all of them:
#
#   awk -f private.awk -v define=1 gpuir.h >private.c    the implementation, its functions no longer static
#   awk -f private.awk gpuir.h >private.h                their declarations: a test includes it instead of gpuir.h
#
# Compiling the implementation takes seconds, and more than twenty programs need it. This relies on the layout that
# clang-format gives: a function begins in the first column, and so does the brace that ends it. Functions that are
# inline, and those that a macro makes, stay as they are, and so do tables, but for those whose size is written down.

BEGIN {
  print "#define GPUIR_IMPLEMENTATION"
  print "#pragma GCC diagnostic push"
  print "#pragma GCC diagnostic ignored \"-Wunused-function\""
  print "#line 1 \"gpuir.h\""
}

/^#if defined\(GPUIR_IMPLEMENTATION\) && !defined\(GPUIR_IMPLEMENTED\)/ { inside = 1 }

!part && /^[A-Z]/ { sub(/GPUIR__NOINLINE /, "static __attribute__((noinline)) ") }
!part && inside && /^([A-Z][A-Z0-9_]* )*static [^=;(]*\(/ && !/^[^(]* inline / { part = "function" }
!part && inside && /^([A-Z][A-Z0-9_]* )*static const [^(=]*\[[A-Za-z0-9_]+\] = / { part = "table" }
!part && inside && /^([A-Z][A-Z0-9_]* )*GPUIR_API / { part = "public" } # declared before

define && part ~ /function|table/ { sub(/static /, "") }
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

part == "table" ? /\};$/ : /^[^ ].*\}$|^\}$/ {
  part = body = ""
  printf "#line %d \"gpuir.h\"\n", NR + 1
}

END { print "#pragma GCC diagnostic pop" }
