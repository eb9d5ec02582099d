#!/usr/bin/env bats
# What the commands do with the files beside their output: planted names, permissions, lack of space and memory, signals.

load ../support/helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR" || return
  seq 1 3000 | sed 's/.*/all word& other&/' >text
  "$GPUIR_BUILD/gpuir" index -q --lines text -o good.gpuir
  "$GPUIR_BUILD/gpuir" export good.gpuir good.ciff
}

setup() {
  PATH=$GPUIR_BUILD:$PATH
  cd "$BATS_TEST_TMPDIR" || return
  ln -s "$BATS_FILE_TMPDIR"/{text,good.gpuir,good.ciff} .
}

# Each command that writes a file `out`.
writes() {
  case $1 in
    index) gpuir index -q --lines text -o out ;;
    import) gpuir import -q good.ciff -o out ;;
    reorder) gpuir reorder -q --order random good.gpuir out ;;
    export) gpuir export -q --format ciff good.gpuir out ;;
  esac
}
commands=(index import reorder export)

@test "links under temporary names are not followed, and hard links not written to" {
  for c in "${commands[@]}"; do
    echo 'keep me' >secret
    ln -s secret out.tmp
    for i in 0 1 2 3; do ln -s secret out.tmp.$i; done
    ln secret out.tmp.4
    writes "$c"
    [ "$(cat secret)" = 'keep me' ]
    [ -f out ]
    [ ! -L out ]
    [ "$c" != export ] || rm -f out.tmp.[0-4]
    [ -z "$(find . -name 'out.*')" ]
    rm -f out secret
  done
}

@test "a file keeps its mode; a new one has that of the umask" {
  umask 027
  for c in "${commands[@]}"; do
    writes "$c"
    [ "$(stat -c %a out)" = 640 ]
    chmod 600 out
    writes "$c"
    [ "$(stat -c %a out)" = 600 ]
    rm out
  done
}

@test "an index that is a link stays one" {
  for c in index import reorder; do
    mkdir -p sub
    ln -s sub/target out
    writes "$c"
    writes "$c"
    [ -L out ]
    gpuir verify sub/target
    rm -r out sub
  done
}

@test "a folder that others may write is told of once" {
  mkdir shared && chmod 777 shared && cd shared
  ln -s ../text ../good.gpuir ../good.ciff .
  for c in "${commands[@]}"; do
    writes "$c" 2>err
    [ "$(grep -c 'others may write' err)" -eq 1 ]
  done
  chmod 755 .
  for c in "${commands[@]}"; do
    writes "$c" 2>err
    [ ! -s err ]
  done
}

@test "a file that may not grow is an error, and leaves nothing" {
  for c in "${commands[@]}"; do
    echo old >out
    status=0
    (ulimit -f 16 && writes "$c") 2>err || status=$?
    [ "$status" -eq 1 ]
    grep -q 'too large' err
    [ "$(cat out)" = old ]
    [ -z "$(find . -name 'out.*')" ]
  done
}

@test "an export that was killed leaves nothing after the next one; two at a time are refused" {
  echo 'half an export' >out.tmp
  writes export
  [ -z "$(find . -name 'out.*')" ]
  exec 9>out.tmp
  flock 9
  run writes export
  [ "$status" -eq 1 ]
  [[ $output == *"somebody else is writing this file"* ]]
  [ -e out.tmp ]
}

@test "a command out of memory leaves no temporary file" {
  head -c 30000000 /dev/zero | tr '\0' a >line
  run bash -c 'ulimit -v 30000; gpuir index -q --threads 1 --memory 1 --lines line -o out'
  [ "$status" -eq 1 ]
  [[ $output == *"out of memory"* ]]
  [ -z "$(find . -name 'out*')" ]
}

@test "a list that many terms name is not read for each of them" {
  seq -f 'all word%g' 3000 >lines
  gpuir index -q --analyzer ascii --lines lines -o sound.gpuir
  word=$("$GPUIR_BUILD/tests/e2e/bomb" sound.gpuir bomb.gpuir)
  for command in 'verify bomb.gpuir' 'stats bomb.gpuir' 'export bomb.gpuir out.ciff' \
    'reorder --order random bomb.gpuir out.gpuir' 'lab codecs bomb.gpuir'; do
    # shellcheck disable=SC2086 # words
    fails 1 "its list" gpuir $command
  done
  [[ $word == word* && $word != word0 ]]
  [ "$(gpuir query --tsv -k 1 bomb.gpuir "$word" | cut -f 2)" = 0 ] # what it says is searched
}
