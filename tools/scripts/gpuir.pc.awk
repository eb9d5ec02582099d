# gpuir.pc.awk - fills in gpuir.pc.in: awk -f gpuir.pc.awk gpuir.pc.in >gpuir.pc
#
# @NAME@ becomes the variable NAME of the environment. pkg-config parts flags as a shell does, so a folder stands in
# quotes that it does not hold itself.
{
  while (match($0, /@[A-Z]+@/)) {
    value = ENVIRON[substr($0, RSTART + 1, RLENGTH - 2)]
    printf "%s%s", substr($0, 1, RSTART - 1), value
    $0 = substr($0, RSTART + RLENGTH)
  }
  print quoted($0)
}

# Puts a folder of the flags in single quotes if its path has a double quote.
function quoted(line) {
  if (line ~ /^Cflags/ && index(ENVIRON["INCLUDEDIR"], "\"")) gsub(/"/, "'", line)
  if (line ~ /^Libs:/ && index(ENVIRON["LIBDIR"], "\"")) gsub(/"/, "'", line)
  return line
}
