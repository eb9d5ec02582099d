#!/usr/bin/env bats
# The tables of fuse/README.md: what tools get of a mount, and what names of every form give.
# shellcheck disable=SC2154 # ../support/mount sets variables

load ../support/mount

@test "each tool that is installed, and each form of a name, gives what fuse/README.md says" {
  GPUIR_BUILD=$build "$root/tools/scripts/mount_tables.sh" >"$T/tables" 2>"$T/missing" || {
    grep FAILED "$T/tables"
    cat "$T/missing"
    false
  }
  [ "$(grep -c -v '^not installed' "$T/missing")" -eq 0 ]
  grep -vxFf "$root/fuse/README.md" "$T/tables" >"$T/others" || true
  cat "$T/others"
  [ ! -s "$T/others" ]
  [ "$(grep -c '^| ' "$T/tables")" -gt 80 ]
}

@test "a row that does not hold is told, and is a failure" {
  run "$root/tools/scripts/mount_tables.sh" nonsense
  [ "$status" -eq 2 ]
  sed "s,form 'query/planet+sun' ,form 'query/unicornx' ,; s,^root=.*,root=$root," "$root/tools/scripts/mount_tables.sh" >"$T/other.sh"
  GPUIR_BUILD=$build run bash "$T/other.sh" queries
  [ "$status" -eq 1 ]
  [[ $output == *'| `query/unicornx` | FAILED: status 0, '* ]]
}
