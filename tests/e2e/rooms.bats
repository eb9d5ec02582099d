#!/usr/bin/env bats
# gpuir.h and gpuir_cuda.cu are the concatenation of their rooms, and an edit of either side is never lost.

setup() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  cd "$BATS_TEST_TMPDIR" || exit
  mkdir -p tree/tools/header tree/tools/cuda && cd tree || exit
  printf '/* one */\nint a;\n' >tools/header/01-one.h
  printf '\n/* two */\nint b;\n' >tools/header/02-two.h
  printf '\n/* more */\nint c;\n' >tools/header/02b-more.h
  printf '/* cuda */\n' >tools/cuda/01-cuda.cuh
  rooms join
}

rooms() { "$root/tools/scripts/rooms.sh" "$1" build/header.stamp; }
agree() { cat tools/header/*.h | cmp - gpuir.h && cat tools/cuda/*.cuh | cmp - gpuir_cuda.cu; }
edit() { sed -i "s/int b;/$1/" "${2:-gpuir.h}"; }

@test "the committed header and CUDA unit are what their rooms make" {
  export LC_ALL=C
  cd "$root"
  cat tools/header/*.h | cmp - gpuir.h
  cat tools/cuda/*.cuh | cmp - gpuir_cuda.cu
}

@test "each room but the first begins with the blank line that parts it from the one before" {
  cd "$root"
  for room in tools/header/*.h tools/cuda/*.cuh; do
    [[ $room == */00-front.* ]] || [ -z "$(head -n 1 "$room")" ] || { echo "$room"; false; }
    [ "$(tail -c 1 "$room" | od -An -c)" = '  \n' ] || { echo "$room"; false; }
  done
}

@test "an edited room goes into the product" {
  agree
  edit 'int edited;' tools/header/02-two.h
  rooms header
  agree
  grep -q 'int edited;' gpuir.h
}

@test "a new room goes into the product in byte order of the names" {
  printf '\nint between;\n' >tools/header/01b-between.h
  rooms header
  agree
  sed -n 4p gpuir.h | grep -q 'int between;'
}

@test "an edited product is refused, and split takes it over" {
  edit 'int edited;\nint second;'
  before=$(cat gpuir.h)
  run rooms header
  echo "$output"
  [ "$status" -eq 1 ]
  [[ $output == *"it was edited."*tools/header/02-two.h*"make split"* ]]
  [[ $output != *01-one* && $output != *02b-more* ]]
  [ "$(cat gpuir.h)" = "$before" ]
  run rooms split
  [ "$output" = tools/header/02-two.h ]
  agree
  rooms header
}

@test "split finds the room of lines that are added, changed and removed" {
  for change in '1i int top;' '3i int behind;' '2,3d' '$a int last;' '3,5c int both;' '1,2d' '6d'; do
    rooms join
    sed -i "$change" gpuir.h
    cp gpuir.h wanted
    rooms split
    cmp gpuir.h wanted
    agree || { echo "after $change"; false; }
  done
}

@test "edits of both sides are refused with the rooms that differ, and nothing is written" {
  edit 'int product;'
  sed -i 's/int c;/int room;/' tools/header/02b-more.h
  cp gpuir.h wanted
  run rooms header
  echo "$output"
  [ "$status" -eq 1 ]
  [[ $output == *"so were its rooms"*02-two.h*02b-more.h* && $output != *01-one* ]]
  cmp gpuir.h wanted
  grep -q 'int room;' tools/header/02b-more.h
}

@test "without a stamp a product that differs is refused, one that agrees is not" {
  rm build/header.stamp
  rooms header
  [ -f build/header.stamp ]
  rm build/header.stamp
  edit 'int product;'
  run rooms header
  [ "$status" -eq 1 ]
  [[ $output == *"nothing tells which was edited"* ]]
  rooms join
  agree
}

@test "a tree that agrees is not written to" {
  touch -d '2001-01-01' gpuir.h gpuir_cuda.cu build/header.stamp tools/*/*
  rooms header
  [ -z "$(find . -type f -newermt 2001-01-02)" ]
}

@test "a tree that agrees works where no stamp can be written" {
  rm -r build
  : >build
  rooms header
  [ ! -s build ]
}
