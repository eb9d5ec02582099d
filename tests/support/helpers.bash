# shellcheck shell=bash
# Loaded by the .bats files.

# fails CODE CAUSE COMMAND...: it exits with CODE, prints nothing and says CAUSE (a part of it) on standard error
fails() {
  local code=$1 cause=$2
  shift 2
  run --separate-stderr "$@"
  # shellcheck disable=SC2154 # stderr is set by run
  if [ "$status" -ne "$code" ] || [ -n "$output" ] || [[ $stderr != *"$cause"* ]]; then
    printf 'command: %s\nstatus: %s, not %s\noutput: %s\nstderr: %s\nlacks: %s\n' \
      "$*" "$status" "$code" "$output" "$stderr" "$cause"
    return 1
  fi
}

# prints EXPECTED COMMAND...: it exits with 0, prints just this and nothing on standard error
prints() {
  local expected=$1
  shift
  run --separate-stderr "$@"
  if [ "$status" -ne 0 ] || [ "$output" != "$expected" ] || [ -n "$stderr" ]; then
    printf 'command: %s\nstatus: %s\noutput: %s\nexpected: %s\nstderr: %s\n' \
      "$*" "$status" "$output" "$expected" "$stderr"
    return 1
  fi
}
