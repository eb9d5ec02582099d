#!/usr/bin/env bash
# header_alone.sh [COMPILER...]: gpuir.h alone in an empty folder, as a table: standard, compiler, macros, and whether
# the declarations and the implementation compile without a warning, and a program links and runs.
#
# Without compilers named: gcc, clang and musl-gcc (Debian's musl-tools). Each macro that leaves something out is
# defined alone, and all of them together. A program is linked for each compiler and standard without macros, with all
# that leave something out, and with GPUIR_STATIC. The exit status is 1 if anything fails; its complaints are shown.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export CCACHE_DISABLE=1
# Only the header, and the one file of others that it asks for: musl's compiler does not look among the system's.
mkdir "$scratch/alone" "$scratch/xxhash"
cp "$root/gpuir.h" "$scratch/alone/"
ln -s /usr/include/xxhash.h "$scratch/xxhash/"
cd "$scratch/alone" || exit 2
printf '#include "gpuir.h"\nextern int unused;\n' >declarations.c
printf '#define GPUIR_IMPLEMENTATION\n#include "gpuir.h"\n' >implementation.c
cp implementation.c program.c
printf 'int main(void) { return gpuir_version_number() != GPUIR_VERSION_NUMBER; }\n' >>program.c
warnings=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)

# tried COMMAND...: prints ok, or FAILS and says why
tried() {
  if "$@" >"$scratch/said" 2>&1; then
    echo ok
  else
    echo FAILS
    grep -E 'error|warning|undefined' "$scratch/said" | head -n 3 >&2
  fi
}

mapfile -t parts < <(grep -ohE '^#if.*defined\(GPUIR_NO_[A-Z]+\)|^#ifn?def GPUIR_NO_[A-Z]+' gpuir.h |
  grep -oE 'GPUIR_NO_[A-Z]+' | sort -u)
less=("${parts[@]/#/-D}")
all="${less[*]}"
(($#)) || set -- gcc clang musl-gcc
failed=0
printf 'standard\tcompiler\tmacros\tdeclarations\timplementation\tprogram\n'
for compiler; do
  command -v "$compiler" >/dev/null || { echo "header_alone.sh: no $compiler" >&2 && continue; }
  for std in c99 c11 c++17; do
    how=("$compiler" "-std=$std" -I. -isystem ../xxhash)
    [[ $std != c++* ]] || how=("$compiler" -x c++ "-std=$std" -I. -isystem ../xxhash)
    # gcc looks up the text of each line for what it says of indentation; clang says the same at once.
    [[ $compiler == clang* ]] || how+=(-Wno-misleading-indentation)
    for macros in '' "${less[@]}" "$all" -DGPUIR_STATIC -DGPUIR_EXPERIMENTAL; do
      read -ra define <<<"$macros"
      declared=$(tried "${how[@]}" "${warnings[@]}" "${define[@]}" -fsyntax-only declarations.c)
      defined=$(tried "${how[@]}" "${warnings[@]}" "${define[@]}" -fsyntax-only implementation.c)
      linked=-
      if [[ $macros == '' || $macros == "$all" || $macros == -DGPUIR_STATIC ]]; then
        # A static program of musl runs where only another libc is.
        static=()
        [[ $compiler != musl* ]] || static=(-static)
        linked=$(tried "${how[@]}" -w -O0 "${define[@]}" "${static[@]}" program.c -o program -lm -pthread)
        [[ $linked != ok ]] || linked=$(tried ./program)
      fi
      [[ $declared$defined$linked != *FAILS* ]] || failed=1
      [[ $macros != "$all" ]] || macros=all
      macros=${macros#-DGPUIR_}
      printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$std" "$compiler" "${macros:--}" "$declared" "$defined" "$linked"
    done
  done
done
exit $failed
