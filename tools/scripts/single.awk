# single.awk - makes one file of gpuir.h and xxHash's header: awk -f single.awk XXHASH.H GPUIR.H >gpuir.h
#
# xxHash's header takes the place of the line that includes it, with its licence, and the check that it is there goes.
FNR == NR { xxhash = xxhash $0 "\n"; next }
/^#ifdef __has_include$/ && !done { held = $0; next }
held != "" && /__has_include\(<xxhash\.h>\)/ { dropping = 1 }
held != "" && !dropping { print held; held = "" }
dropping { ends += /^#endif/; if (ends == 2) { dropping = 0; held = "" } next }
/^#include <xxhash\.h>$/ {
  print "/* ---- xxhash.h, of xxHash, as it is; its licence stands at its head ---- */"
  printf "%s", xxhash
  print "/* ---- the end of xxhash.h ---- */"
  done++
  next
}
{ print }
END {
  if (done == 1) exit 0
  print "single.awk: gpuir.h includes xxhash.h " done + 0 " times, not once" >"/dev/stderr"
  exit 1
}
