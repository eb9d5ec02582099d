#!/usr/bin/env bats
# The scripts that carry programs to a machine with a GPU and measure there, on a processor that stands for the device.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  work=$BATS_TEST_TMPDIR/work out=$BATS_TEST_TMPDIR/out
  export STAND_IN=1 DOCUMENTS=20000 QUERIES=100 FEW=50 QUICK=1 WEB=$work/none DICT=$work/none BUDGET=60
  export OUT=$out SCHEDULERS_WORK=$work POOL_WORK=$work CARRY=$BATS_TEST_TMPDIR/carry.tar.xz
}

# shared WORDS: runs them in a shell that has what the scripts share
shared() { bash -c "set -euo pipefail; source '$root/tools/scripts/session.bash'; $1"; }

@test "schedulers.sh runs the steps for which there is time, and says which it leaves out" {
  export GPUIR_BUILD=$build STEPS='1:griffin_ratios 61:ao_live'
  run "$root/tools/scripts/schedulers.sh"
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output == *"self-check: exit status 0"*"LEFT OUT for lack of time: ao_live"*"done; exit status 0" ]]
  [[ $(head -n 1 "$out/schedulers.txt") == "# "*" processors; "*"; gpuir, commit "*"; command: tools/scripts/schedulers.sh" ]]
  grep -q '^load-latency' "$out"/schedulers/griffin-ratios/*.tsv
  [ ! -e "$out/schedulers/ao-live" ]
}

@test "programs come out of the archive that was carried, with their commit" {
  mkdir "$BATS_TEST_TMPDIR/programs"
  cp "$build"/{gpuir,synth} "$BATS_TEST_TMPDIR/programs"
  echo carried >"$BATS_TEST_TMPDIR/programs/commit"
  tar -c -C "$BATS_TEST_TMPDIR/programs" . | xz -0 >"$CARRY"
  GPUIR_BUILD=/nonexistent STEPS=99:none run "$root/tools/scripts/schedulers.sh"
  echo "$output"
  [ "$status" -eq 0 ]
  grep -q 'gpuir, commit carried;' "$out/schedulers.txt"
}

@test "without programs the scripts fail before they measure" {
  local script
  export GPUIR_BUILD=/nonexistent
  for script in schedulers pool_gpu; do
    run "$root/tools/scripts/$script.sh"
    [ "$status" -eq 1 ]
    [[ $output == *"FAILED: no programs: run '"*"$script.sh pack' where there is a compiler" ]]
    [ -z "$(find "$out" -type f)" ]
    run "$root/tools/scripts/$script.sh" nonsense
    [ "$status" -eq 2 ]
  done
}

@test "an archive is read without xz too, and a damaged one is an error" {
  head -c 100000 /dev/urandom >"$BATS_TEST_TMPDIR/bytes"
  xz -0 <"$BATS_TEST_TMPDIR/bytes" >"$CARRY"
  shared "command() { return 1; }; decompress <'$CARRY'" | cmp - "$BATS_TEST_TMPDIR/bytes"
  head -c 5000 "$CARRY" >"$CARRY.part" && mv "$CARRY.part" "$CARRY"
  run shared "carry='$CARRY' work='$work'; unpack || die 'not unpacked'"
  [ "$status" -eq 1 ]
  [[ $output == *"FAILED: not unpacked" ]]
}

@test "what is packed is what was gathered" {
  mkdir -p "$BATS_TEST_TMPDIR/project/build/session/sub"
  cd "$BATS_TEST_TMPDIR/project" || return
  cp "$build/synth" build/session/
  cp "$build/synth" build/session/sub/other
  echo abc >build/session/commit
  shared "carry='$CARRY'; gather synth sub/other && echo more >build/session/carry/more && pack_up" >/dev/null
  [ "$(tar -tJf "$CARRY" | sort | tr '\n' ' ')" = "./ ./commit ./more ./other ./synth " ]
  run shared "carry='$CARRY'; gather nothing"
  [ "$status" -eq 1 ]
}
