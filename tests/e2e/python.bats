#!/usr/bin/env bats
# The Python package: the wheel is built with a C compiler and no network, installed where nothing else is, and tested
# there (python_api.py); its README's program runs. In short runs the library is compiled without optimisation, and the
# command is the one that is built already; with GPUIR_LONG=1 all is as for users, also from the source distribution,
# and numpy and mypy are there.

bats_require_minimum_version 1.5.0

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  export root build PYTHONDONTWRITEBYTECODE=1
  cd "$BATS_FILE_TMPDIR" || return
  if ! python3 -c 'import sys, venv, pip; assert sys.version_info >= (3, 8)' 2>/dev/null; then
    echo "no Python 3.8 with venv and pip" >missing
    return
  fi
  if [ -z "${GPUIR_LONG:-}" ]; then export CFLAGS=-O0 GPUIR_PROGRAM=$build/gpuir; fi
  python3 -m venv --system-site-packages --without-pip env # pip is the system's: installing it takes seconds
  if [ -n "${GPUIR_LONG:-}" ]; then pip install -q numpy mypy || echo "no network: without numpy and mypy"; fi
  pip wheel -q --no-deps --no-index -w wheels "$root/tools/python"
  pip install -q --no-deps --no-index --no-compile --force-reinstall wheels/*.whl
}

pip() { env/bin/python -m pip "$@"; }

setup() {
  cd "$BATS_FILE_TMPDIR" || exit
  [ ! -e missing ] || skip "$(cat missing)"
}

@test "the wheel is for all Pythons, needs nothing, and has the command and the licences" {
  python3 -m zipfile -l wheels/gpuir-*-py3-none-*.whl >list
  for name in gpuir/libgpuir.so gpuir/bin/gpuir gpuir/py.typed licenses/LICENSE; do grep -q "$name" list; done
  [ -z "$(grep '^Requires-Dist' env/lib/python3*/site-packages/gpuir-*.dist-info/METADATA | grep -v extra)" ]
  [ "$(ldd env/lib/python3*/site-packages/gpuir/libgpuir.so | grep -cE 'stemmer|utf8proc')" -eq 0 ]
  env/bin/gpuir --version | grep -q '^gpuir '
  [ "$(env/bin/python -m gpuir --version)" = "$(env/bin/gpuir --version)" ]
  run env/bin/gpuir mount
  [ "$status" -eq 1 ]
  [[ $output == *gpuirfs* ]]
}

@test "the library exports the interface and nothing else" {
  nm -D --defined-only env/lib/python3*/site-packages/gpuir/libgpuir.so | awk '{ print $3 }' >names
  [ "$(grep -c '^gpuir_' names)" -gt 100 ]
  [ "$(grep -vc '^gpuir_' names)" -eq 0 ]
}

@test "the package does what it says" {
  env/bin/python "$BATS_TEST_DIRNAME/python_api.py" "$build/gpuir"
}

@test "the README's program prints what it shows" {
  awk '/^```python/ { inside = 1; next } /^```/ { inside = 0 } inside' "$root/tools/python/README.md" >readme.py
  awk '/^```text/ { inside = 1; next } /^```/ { inside = 0 } inside' "$root/tools/python/README.md" >want
  [ -s readme.py ]
  mkdir -p place
  (cd place && ../env/bin/python ../readme.py) | diff - want
}

@test "PyTerrier indexes CACM, retrieves from it, and ir_measures takes the run" {
  data=$root/../shared/data/cacm
  [ -f "$data/cacm.tar.gz" ] || skip "shared/data/cacm is not there"
  if ! env/bin/python -c 'import pyterrier, ir_measures' 2>/dev/null; then
    [ -n "${GPUIR_LONG:-}" ] || skip "no pyterrier and ir_measures; the long form installs them"
    pip install -q pyterrier ir-measures || skip "pyterrier and ir-measures cannot be had"
  fi
  env/bin/python "$BATS_TEST_DIRNAME/python_terrier.py" "$data" >said
  grep -q '^3204 documents, 64 topics: AP 0' said
}

@test "the same input gives the same wheel" {
  [ -z "${GPUIR_LONG:-}" ] && skip "in the long form"
  pip wheel -q --no-deps --no-index -w again "$root/tools/python"
  cmp wheels/*.whl again/*.whl
}

@test "types are strict" {
  env/bin/python -c 'import mypy' 2>/dev/null || skip "no mypy"
  packages=("$root/tools/python/gpuir")
  if env/bin/python -c 'import pyterrier' 2>/dev/null; then packages+=("$root/tools/python/pyterrier_gpuir"); fi
  env/bin/python -m mypy --strict --ignore-missing-imports --cache-dir=/dev/null "${packages[@]}"
}

@test "without network, what wheels for other systems need cannot be had, and that is said" {
  [ -n "${GPUIR_LONG:-}" ] || skip "in the long form"
  command -v apt-get >/dev/null || skip "no apt"
  unshare -rn true 2>/dev/null || skip "no network namespace may be made"
  mkdir apart
  cp "$root"/tools/python/*.{sh,py} apart/
  run unshare -rn apart/third.sh
  [ "$status" -eq 1 ]
  [[ ${lines[-1]} =~ ^third.sh:\ (Debian\'s\ source\ packages\ cannot\ be\ reached|apt\ knows\ no\ archive) ]]
  [ "$(cd apart && echo third*)" = third.sh ]
  run unshare -rn apart/wheels.sh out
  [ "$status" -eq 1 ]
  [[ ${lines[-1]} == *"third.sh fetches them" ]]
  mkdir apart/third
  run unshare -rn apart/wheels.sh out
  [ "$status" -eq 1 ]
  [ "${lines[-1]}" = "wheels.sh: the compiler cannot be had from PyPI" ]
  [ -z "$(ls out)" ]
}

@test "a source distribution has all that a wheel is built from" {
  [ -n "${GPUIR_LONG:-}" ] || skip "in the long form"
  mkdir -p tree/tools # the sources that are fetched go there: where they lie, wheels are built of them
  cp -r "$root/tools/python" tree/tools/
  ln -s "$root"/{gpuir.h,LICENSE} tree/
  ln -s "$root"/tools/{cli,common,exchange,reorder,lab} tree/tools/
  [ -d tree/tools/python/third ] || tree/tools/python/third.sh || skip "no sources of Debian's packages"
  python3 tree/tools/python/backend.py sdist sdists
  python3 -m venv alone
  alone/bin/pip install -q --no-deps --no-index sdists/gpuir-*.tar.gz
  alone/bin/gpuir --version | grep -qx 'analyzers: ascii, basic, unicode, text'
  alone/bin/python -c 'import gpuir; assert len(gpuir.index(["running dogs"], stem="english").search("run dog"))'
  for name in LICENSE LICENCE.xxhash LICENCE.utf8proc LICENCE.stemmer; do
    [ -n "$(find alone/lib -path "*/licenses/$name" -size +0)" ]
  done
}
