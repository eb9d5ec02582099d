#!/usr/bin/env bats
# Files that are packed: gzip, bzip2, xz, Zstandard. They are read as the text that is packed in them.

# shellcheck disable=SC2154 # build and here are set there
load ../support/texts

setup() {
  cd "$BATS_TEST_TMPDIR" || exit
  kinds=()
  for kind in gzip bzip2 xz zstd; do ! command -v $kind >/dev/null || kinds+=("$kind"); done
}

@test "packed texts are read and shown with the lines of what is packed, whatever their names" {
  printf 'first\nthe wolf howls\nlast\n' >plain
  for kind in "${kinds[@]}"; do
    $kind -c plain >"one.$kind"
    $kind -c plain plain >"two.$kind" # members, one behind the other
  done
  rm plain
  gpuir index -q --analyzer ascii . -o ../i.gpuir
  gpuir index -q --analyzer ascii --chunk-lines 2 . -o ../c.gpuir
  for kind in "${kinds[@]}"; do
    gpuir query --grep --tokens 0 ../i.gpuir wolf | grep -Fx "one.$kind:2:the wolf howls"
    gpuir query --grep --tokens 0 ../i.gpuir wolf | grep -Fx "two.$kind:5:the wolf howls"
    gpuir query --grep -k 50 --tokens 0 ../c.gpuir wolf | grep -Fx "two.$kind:5:the wolf howls"
  done
  [ "$(gpuir query --grep --tokens 0 ../i.gpuir wolf | wc -l)" -eq $((3 * ${#kinds[@]})) ]
}

@test "packed tables, JSON, TREC, other encodings, standard input" {
  printf 'd1\tthe fox\nd2\tthe wolf\n' | gzip >t.gz
  printf '{"id":"j","contents":"a\\u0020wolf"}\n' | gzip >j.gz
  printf '<DOC>\n<DOCNO>T</DOCNO>\n<TEXT>\nwolf\n</TEXT>\n</DOC>\n' | gzip >trec.gz
  printf 'caf\xe9 wolf\n' | gzip >latin.gz
  printf '\xff\xfew\0o\0l\0f\0\n\0' | gzip >utf16.gz
  gpuir index -q --tsv t.gz -o t.gpuir
  gpuir index -q --jsonl j.gz -o j.gpuir
  gpuir index -q --trec trec.gz -o trec.gpuir
  gpuir index -q latin.gz utf16.gz -o e.gpuir
  prints $'t.gz:2-2\nthe wolf' gpuir query --passages t.gpuir wolf
  prints $'j.gz:1-1\na wolf' gpuir query --passages j.gpuir wolf
  prints 'trec.gz:4:wolf' gpuir query --grep trec.gpuir wolf
  prints 'latin.gz:1:café wolf' gpuir query --grep -k 1 e.gpuir wolf latin café
  gpuir query --grep e.gpuir wolf | grep -Fx 'utf16.gz:1:wolf'
  gpuir index -q --tsv - -o s.gpuir <t.gz
  prints $'1\t'"$(gpuir query --tsv -k 1 t.gpuir wolf | cut -f 2-)" gpuir query --tsv s.gpuir wolf
}

@test "the mount shows packed texts" {
  needs_fuse
  printf 'first\nthe wolf howls\n' | gzip >a.gz
  gpuir index -q --analyzer ascii a.gz -o i.gpuir
  mkdir m
  "$build/gpuirfs" "$PWD/i.gpuir" m
  [ "$(cat m/files/wolf/*)" = $'first\nthe wolf howls' ]
  [[ $(cat m/grep/wolf) == *'a.gz:2:the wolf howls' ]]
  [[ $(cat m/pass/wolf) == *'a.gz:1-2'*'the wolf howls'* ]]
  [ "$(cat m/doc/0)" = $'first\nthe wolf howls' ]
  printf 'other\n' | gzip >a.gz
  [[ $(cat m/pass/howls) == *'changed since it was indexed'* ]]
}

@test "a packed file has changed when its own bytes have; update reads it then, and only then" {
  mkdir d
  printf 'the wolf\n' | gzip >d/a.gz
  gpuir index -q --live --analyzer ascii d -o live
  touch -d '1 hour ago' d/a.gz
  gpuir update d -o live 2>&1 | grep -F '1 in its time alone'
  printf 'the fox\n' | gzip >d/a.gz
  prints 'd/a.gz (changed since it was indexed)' gpuir query --passages live wolf
  gpuir update d -o live 2>&1 | grep -F '1 changed'
  [ "$(gpuir count live wolf)" -eq 0 ]
  prints 'd/a.gz:1:the fox' gpuir query --grep live fox
  printf 'the fox\n' | gzip -1 >d/a.gz # the text is as it was, the file is not
  printf '\n' >>d/a.gz
  prints 'd/a.gz (changed since it was indexed)' gpuir query --passages live fox
}

@test "zeros behind the packed bytes are none, nor is what is no member; what ends too soon or is damaged is said" {
  mkdir d
  for kind in "${kinds[@]}"; do
    seq 20000 | $kind -c >whole
    { cat whole; head -c 512 /dev/zero; } >"d/zeros.$kind"
    { cat whole; echo and something else; } >"d/behind.$kind"
    head -c $(($(stat -c %s whole) - 9)) whole >"d/short.$kind"
    { head -c 3000 whole; head -c 200 /dev/zero; tail -c +3201 whole; } >"d/damaged.$kind"
    # from standard input that comes byte by byte, with zeros between two members
    { cat whole; head -c 64 /dev/zero; cat whole; } | gpuir index -q --lines - -o "$kind.gpuir"
    [ "$(gpuir count "$kind.gpuir" 20000)" -eq 2 ]
  done
  run -1 gpuir index -q "d/short.${kinds[0]}" -o x.gpuir
  run -3 gpuir index --analyzer ascii -v d -o i.gpuir
  for kind in "${kinds[@]}"; do
    [[ $output == *"d/short.$kind: its packed bytes end too soon"* ]]
    [[ $output == *"d/damaged.$kind: its packed bytes are damaged"* ]]
  done
  [[ $output == *"skipped: $((2 * ${#kinds[@]})) unreadable"* ]]
  [ "$(gpuir count i.gpuir 20000)" -eq $((2 * ${#kinds[@]})) ]
}

@test "packed binaries are left out as binaries, and what is packed twice is said" {
  mkdir d
  head -c 5000 /bin/sh | gzip >d/binary.gz
  echo wolf | gzip | gzip >d/twice.gz
  echo wolf >d/text
  printf 'BZh is how this text begins, and it is a text\n' >d/bzh
  run -0 gpuir index -v --analyzer ascii d -o i.gpuir
  [[ $output == *'d/binary.gz: skipped: binary'* ]]
  [[ $output == *'d/twice.gz: skipped: gzip'* ]]
  [ "$(gpuir count i.gpuir wolf)" -eq 1 ]
  [ "$(gpuir count i.gpuir bzh)" -eq 1 ]
}

@test "a file that unpacks to a thousand times its size ends by a limit" {
  command -v zstd >/dev/null || skip "no zstd"
  yes 'a line' | head -c 280000000 | zstd -q >bomb.zst
  run -1 gpuir index -q bomb.zst -o i.gpuir
  [[ $output == *'bomb.zst: it unpacks to more than a thousand times its size'* ]]
}

@test "a filter that was given for an ending comes first" {
  printf 'the wolf\n' | gzip >a.gz
  gpuir index -q --analyzer ascii --filter 'gz=echo other words' a.gz -o i.gpuir
  [ "$(gpuir count i.gpuir other)" -eq 1 ]
  [ "$(gpuir count i.gpuir wolf)" -eq 0 ]
}

# Makes dlopen find no library of this name.
without() {
  cat >without.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
void *dlopen(const char *name, int flags) {
  void *(*real)(const char *, int);
  void *found = dlsym(RTLD_NEXT, "dlopen");
  memcpy(&real, &found, sizeof real);
  return name && strstr(name, getenv("WITHOUT")) ? NULL : real(name, flags);
}
END
  ${CC:-cc} -shared -fPIC -o without.so without.c -ldl
  export WITHOUT=$1 LD_PRELOAD=$PWD/without.so
}

@test "without its library a packed file is named, with the option that reads it" {
  nm -D "$build/gpuir" | grep -q __asan && skip "not beside AddressSanitizer"
  printf 'the wolf\n' | gzip >a.gz
  gpuir index -q --analyzer ascii a.gz -o i.gpuir
  without libz.so
  [[ $(gpuir --version) == *'packed files: gzip (off: zlib: the library is not installed), bzip2'* ]]
  run -1 gpuir index -q a.gz -o x.gpuir
  [[ $output == *"a.gz: a gzip file, of which --filter 'gz=zcat' makes a text"* ]]
  prints 'a.gz (the library that decodes it is not installed)' gpuir query --passages i.gpuir wolf
}

@test "no library that unpacks is linked, and none is loaded by a query" {
  for program in gpuir gpuirfs; do
    [ -x "$build/$program" ] || continue
    run ! grep -E 'NEEDED.*lib(bz2|lzma|zstd)' <(readelf -d "$build/$program")
  done
  [ ! -x "$build/gpuirfs" ] || run ! grep -E 'NEEDED.*libz\.' <(readelf -d "$build/gpuirfs")
  [ ! -f "$build/gpuir.pc" ] || run ! grep -E 'bz2|lzma|zstd|-lz' "$build/gpuir.pc"
  echo wolf >a
  gpuir index -q a -o i.gpuir
  run ! grep -E 'calling init.*lib(bz2|lzma|zstd)' <(LD_DEBUG=files gpuir query i.gpuir wolf 2>&1)
}

@test "watch sees packed files and mail that come, change and go" {
  [ "$(uname)" = Linux ] || skip "no inotify"
  mkdir d
  printf 'a wolf\n' | gzip >d/a.gz
  gpuir index -q --live --no-names d -o live
  gpuir watch -q d -o live 2>err 3>&- &
  local pid=$! found=
  sleep 0.3
  printf 'a walrus\n' | gzip >d/new && mv d/new d/b.gz
  printf 'From: a\nSubject: =?utf-8?q?oct=6Fpus?=\n\nx\n' >d/mail
  printf 'a seal\n' | gzip >d/new && mv d/new d/a.gz
  for _ in $(seq 200); do
    if [ "$(for word in walrus octopus seal wolf; do gpuir count live $word; done | paste -sd ' ')" = '1 1 1 0' ]; then
      found=yes
      break
    fi
    sleep 0.1
  done 2>/dev/null
  kill $pid
  wait $pid
  [ "$found" = yes ]
  [ ! -s err ]
}
