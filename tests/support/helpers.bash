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

# index_wordnet COLLECTION INDEX QUERIES: indexes the bundled collection, and writes 700 queries of 2 to 4 words of its
# documents
index_wordnet() {
  gpuir index -q --tsv --analyzer unicode "$1" -o "$2"
  awk -F '\t' '{ n = split($2, w, /[^a-z]+/); s = ""; k = 0
    for (i = 1; i <= n && k < 2 + NR % 3; i++) if (length(w[i]) > 1) { s = s (k++ ? " " : "") w[i] }
    if (k > 1) print s }' "$1" | head -n 700 >"$3"
}

needs_strace() { # which lets system calls fail
  strace -o /dev/null true 2>/dev/null || skip "no strace, or no ptrace(2) here"
}
