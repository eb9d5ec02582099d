#!/usr/bin/env bash
# demo.sh: indexes the WordNet entries that come with the project, mounts the index and runs the commands that the
# README shows, in a folder of its own under build/. It unmounts at the end, and also when something goes wrong.
# Where nothing can be mounted it says so and does the rest.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
demo=$root/build/demo
mnt=$demo/mnt

unmount() {
  if grep -q " $mnt fuse" /proc/self/mounts 2>/dev/null; then
    fusermount3 -u "$mnt" 2>/dev/null || umount "$mnt" 2>/dev/null || fusermount3 -u -z "$mnt"
  fi
}

# What an interrupted demo left behind goes first. Links make the README's relative paths work in the folder.
unmount
rm -rf "$demo"
mkdir -p "$demo/blocks"
trap unmount EXIT
trap 'exit 130' INT TERM
ln -s "$root"/{gpuir.h,tests,tools,examples} "$demo/"
export PATH=$root/build:$PATH
cd "$demo"
awk -v dir=blocks -f "$root/tools/scripts/readme-blocks.awk" "$root/README.md"

can_mount=yes
if [[ ! -x $root/build/gpuirfs ]]; then
  can_mount="gpuirfs was not built (libfuse3-dev is missing)"
elif [[ ! -c /dev/fuse ]]; then
  can_mount="this machine has no /dev/fuse"
elif ! command -v fusermount3 >/dev/null; then
  can_mount="fusermount3 is missing (package fuse3)"
fi

bold='' plain=''
if [[ -t 1 ]]; then bold=$'\e[1m' plain=$'\e[0m'; fi

echo "In $demo:"
for block in blocks/*.console.demo; do
  while IFS= read -r -u 3 line; do
    [[ $line == '$ '* ]] || continue
    command=${line#'$ '}
    if [[ $can_mount != yes && $command == *mnt* ]]; then
      continue
    fi
    printf '%s$ %s%s\n' "$bold" "$command" "$plain"
    if ! bash -c "$command" </dev/null; then
      if [[ $command == *gpuirfs* ]]; then
        can_mount="mounting is not allowed here"
        echo "($can_mount)"
      else
        echo "demo: failed: $command" >&2
        exit 1
      fi
    fi
  done 3<"$block"
done

if [[ $can_mount == yes ]]; then
  unmount
  echo "That was gpuir. The index is $demo/wordnet.gpuir; to look around in it:"
  echo "  build/gpuirfs build/demo/wordnet.gpuir build/demo/mnt && cat build/demo/mnt/README"
  echo "  fusermount3 -u build/demo/mnt"
else
  echo "The mounted part was left out: $can_mount."
  echo "The index is $demo/wordnet.gpuir."
fi
