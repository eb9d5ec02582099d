#!/usr/bin/env bats
# The analyzer `text` against a model in Python: 4,000 random texts and query words; in the long form 100,000.

root=${BATS_TEST_DIRNAME}/../..
bin=${GPUIR_BUILD:-$root/build}

@test "the tokens of random texts and query words are the model's" {
  local n=4000
  [ -z "${GPUIR_LONG-}" ] || n=100000
  run python3 "$root/tests/e2e/text.py" "$bin/tests/e2e/text_tokens" "$n"
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output == *compared ]]
}
