#!/usr/bin/env bats
# The analyzer `text` against a model in Python: 4,000 random texts and query words; in the long form 100,000.

bats_require_minimum_version 1.5.0
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

setup() {
  PATH=$bin:$PATH
  cd "$BATS_TEST_TMPDIR" || return 1
  mkdir -p d
}

# Builds i.gpuir of the files in d.
build() { gpuir index -q --analyzer text --positions -o i.gpuir "$@" d; }

names() { gpuir query --tsv "$@" | cut -f 4 | sort | xargs -r -n 1 basename | paste -sd ' '; }

@test "terms and exports leave out what the analyzer makes beside words" {
  echo "O'Reilly café" >d/a
  build
  [ "$(gpuir terms --tsv i.gpuir | cut -f 1 | paste -sd ' ')" = "cafe o oreilly reilly" ]
  [ "$(gpuir terms --all --tsv i.gpuir | wc -l)" -eq 6 ]
  [ "$(gpuir terms --prefix $'\xff' --tsv i.gpuir | wc -l)" -eq 2 ]
  run -2 gpuir terms --all i.gpuir cafe
  gpuir export -q i.gpuir x.ciff
  gpuir export i.gpuir p 2>said
  grep -q '4 terms, without those of pairs' said
  [ "$(wc -l <p.terms)" -eq 4 ]
  gpuir import -q --analyzer text x.ciff -o back.gpuir
  [ "$(gpuir terms --all --tsv back.gpuir | cut -f 1 | paste -sd ' ')" = "cafe o oreilly reilly" ]
  gpuir index -q -o u.gpuir d
  gpuir terms --tsv u.gpuir | cut -f 1 >plain
  gpuir terms --all --tsv u.gpuir | cut -f 1 | cmp - plain
}

@test "a prefix behind a connector: the terms before it are stems, its name is as typed" {
  echo "error_handling x" >d/a
  echo "errors handling x" >d/b
  build --stem english
  [ "$(names i.gpuir 'errors_handl*')" = a ]
  [ "$(names i.gpuir 'error_handling*')" = a ]
  [ "$(names i.gpuir 'error_ha*')" = a ]
  [ -z "$(names i.gpuir 'error_x*')" ]
  gpuir explain i.gpuir 0 'errors_handl* x' >said
  grep -q 'errors_handl\*' said
  run ! grep -q $'\xff' said
}

@test "of more words than a query may have, pairs are named as they were typed" {
  echo w{1..70} kept-pair >d/a
  build
  gpuir query --json -m or i.gpuir "$(echo w{1..66} kept-pair lost-Pair)" >said
  grep -q '"left_out":\[.*"lost-Pair"' said
  run ! grep -q $'\xff' said
  gpuir query -m or i.gpuir "$(echo w{1..61} kept-pair lost-Pair e-mail)" >said 2>&1
  run ! grep -q $'\xff' said
}
