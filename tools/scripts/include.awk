# include.awk - the header as those who work on it compile it: two files that name the room of each line.
#
#   awk -v to=FOLDER -f include.awk tools/header/*.h
#
# FOLDER/gpuir.h holds the interface and, where GPUIR_IMPLEMENTATION is defined, includes FOLDER/gpuir_rooms.h, which
# holds the implementation. Errors, breakpoints and coverage then name a room. A file that only uses the interface is
# not compiled again where a function's body changed. A file that is the same as before is left alone.

BEGIN { part = to "/gpuir.h.new" }
FNR == 1 { printf "#line 1 \"%s\"\n", FILENAME >part }
{ print >part }
/^#endif \/\* GPUIR_EXPERIMENTAL_H \*\/$/ {
  print "#if defined(GPUIR_IMPLEMENTATION) && !defined(GPUIR_IMPLEMENTED)\n#include \"gpuir_rooms.h\"\n#endif" >part
  part = to "/gpuir_rooms.h.new"
}
END {
  for (n = split("gpuir.h gpuir_rooms.h", name, " "); n; n--) {
    close(to "/" name[n] ".new")
    system("cd '" to "' && if cmp -s " name[n] ".new " name[n] "; then rm " name[n] ".new; else mv " name[n] ".new " name[n] "; fi")
  }
}
