#!/usr/bin/env bats
# The layout of gpuir.h and of the CUDA units: the contents are true, and nothing is too long. See house.py.

setup() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  command -v python3 >/dev/null || skip "no python3"
}

house() { python3 "$root/tests/e2e/house.py" "$root" "$1"; }

@test "each tag of the contents has one banner, its entry points are defined there, its test exists" { house contents; }
@test "each part says what it is for, where to start and what tests it; parts are numbered in order" { house banners; }
@test "no function of gpuir.h and the CUDA units has over 70 lines" { house functions; }
@test "a room over 60 KB says why" { house sizes; }
@test "no room uses a later one, and no private function is declared ahead" { house ladder; }
@test "banners say which rooms a room uses, and where to start: nothing less and nothing more" { house uses; }
@test "these checks find what they look for" { house selftest; }
