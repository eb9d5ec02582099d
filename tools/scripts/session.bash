# shellcheck shell=bash
# session.bash - what those scripts share that build programs here, carry them to another machine and measure there
#
# A script goes to the project's folder, sources this file, and sets these before it calls a function that reads them:
#
#   carry    the archive in which programs travel, FILE.tar.xz
#   work     a folder on the machine that measures: programs are unpacked to it, with what else the archive has
#   out      the folder of the logs; none: unset
#   budget   seconds from the script's beginning

# say WORD...: behind the seconds since the beginning
say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }

die() {
  say "FAILED: $*" >&2
  exit 1
}

# left SECONDS WHAT: whether so much time is left; says if WHAT is left out
left() {
  ((SECONDS + $1 <= budget)) && return
  say "LEFT OUT for lack of time: $2"
  return 1
}

# ---- on the machine that builds -----------------------------------------------------------------------------------

# static_make ARGUMENT...: make; programs are linked statically but for the C library
static_make() {
  local libs='-l:libutf8proc.a -l:libstemmer.a -lm -pthread'
  make -j2 GPU_ARCH="${GPU_ARCH:-90}" LIBS="$libs" TOOL_LIBS="-l:libz.a $libs" "$@"
}

# gather PROGRAM...: programs of build/session, stripped, and their commit, in the new folder build/session/carry
gather() {
  local folder=build/session/carry program
  rm -rf "$folder" && mkdir -p "$folder" && cp build/session/commit "$folder/" || return
  for program; do
    cp "build/session/$program" "$folder/" && strip "$folder/${program##*/}" || return
  done
}

# pack_up: that folder becomes the archive
pack_up() {
  mkdir -p "$(dirname "$carry")" && tar -c -C build/session/carry . | xz -6 -T2 >"$carry" && ls -l "$carry"
}

# ---- on the machine that measures ---------------------------------------------------------------------------------

# decompress: xz -dc, or python3 where there is no xz
decompress() {
  if command -v xz >/dev/null; then xz -dc; else
    python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.stdin.buffer), sys.stdout.buffer)'
  fi
}

# unpack: makes the folders, and finds the programs in the archive or, if there is none, in the folder of the build
unpack() {
  mkdir -p "$work" ${out:+"$out"} || return
  if [ -f "$carry" ]; then
    decompress <"$carry" | tar -x -C "$work" || return
    export PATH=$work:$PATH
  else
    export PATH=${GPUIR_BUILD:-$PWD/build}:$PATH
  fi
  gpuir --version >/dev/null
}

processor_name() { sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1; }

# device_name: the first device and its driver; nothing without a device
device_name() { nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1; }

# head_of SCRIPT: the head of a log: processor, device, commit, command
head_of() {
  local device
  device=$(device_name)
  echo "# $(processor_name), $(nproc) processors; ${device:-no GPU}; gpuir, commit" \
    "$(cat "$work/commit" "${GPUIR_BUILD:-build}/commit" 2>/dev/null | head -n 1); command: tools/scripts/$1"
}
