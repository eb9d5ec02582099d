#!/usr/bin/env bash
# readme.sh RESULTS [-u]: runs what stands in the fenced blocks of all READMEs, one file after the other and in order,
# in a folder that looks like the project's, and leaves in RESULTS for each command NNN.command, NNN.want, NNN.got
# (standard output, the folder being /home/you/gpuir), NNN.err, NNN.status. With -u it then writes what the console
# commands printed into the READMEs instead.
#
#   ```c              a program; saved under the name in its first line
#   ```console [TAG]  commands after `$ ` and what each prints
#   ```sh [TAG]       a script that must succeed; with the tag `long` only in long runs, with `setup` not here
#
# Where nothing can be mounted, commands that name mnt are left out (NNN.status is `skipped`).
set -euo pipefail
root=${GPUIR_ROOT:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
build=${GPUIR_BUILD:-$root/build}
mkdir -p "$1"
results=$(cd "$1" && pwd)
update=${2:-}

place=$results/place
mkdir -p "$place" "$results/home" "$results/blocks"
for entry in "$root"/*; do
  [[ ${entry##*/} == build ]] || ln -s "$entry" "$place/"
done
ln -s "$build" "$place/build"
cd "$place"
export HOME=$results/home PATH=$build:$PATH
unset MAKEFLAGS MAKELEVEL MFLAGS
# The copy has no history: make would write the commit of the build anew, and link programs that other tests run.
[[ ! -e $build/commit ]] || COMMIT=$(<"$build/commit")
export COMMIT=${COMMIT:-}

unmount() {
  if grep -q " $place/mnt fuse" /proc/self/mounts; then
    fusermount3 -u mnt || umount mnt || fusermount3 -u -z mnt
  fi
}
trap unmount EXIT

can_mount=
[[ -x $build/gpuirfs && -c /dev/fuse ]] && can_mount=1

n=0
# run WANT COMMAND
run() {
  local base
  n=$((n + 1))
  base=$results/$(printf '%03d' "$n")
  printf '%s\n' "$2" >"$base.command"
  printf '%s' "$1" >"$base.want"
  if [[ $2 == *mnt* && -z $can_mount ]]; then
    echo skipped >"$base.status"
    return
  fi
  local status=0
  bash -e -c "$2" >"$base.got" 2>"$base.err" </dev/null || status=$?
  sed -i "s|$place/|/home/you/gpuir/|g" "$base.got"
  echo "$status" >"$base.status"
  if [[ $2 == *gpuirfs* && $status -ne 0 ]] && grep -qi 'not permitted\|permission' "$base.err"; then
    can_mount=
    echo skipped >"$base.status"
  fi
}

readmes=(README.md examples/README.md tools/README.md tools/cli/MCP.md fuse/README.md tools/lab/README.md
  tools/peers/README.md tools/results/README.md)

# run_block BLOCK: a file that readme-blocks.awk made
run_block() {
  local name text want line
  case ${1##*/} in
    *.c)
      name=$(sed -n '1s|^/\* \([a-z0-9_-]*\.c\).*|\1|p' "$1")
      cp "$1" "$place/$name"
      ;;
    *.sh.setup) ;;
    *.sh.long) [[ -z ${GPUIR_LONG:-} ]] || run '' "$(cat "$1")" ;;
    *.sh) run '' "$(cat "$1")" ;;
    *.console*)
      text='' want=''
      while IFS= read -r line; do
        if [[ $line == '$ '* ]]; then
          [[ -z $text ]] || run "$want" "$text"
          text=${line#'$ '} want=''
        else
          want+=$line$'\n'
        fi
      done <"$1"
      [[ -z $text ]] || run "$want" "$text"
      ;;
  esac
}

for readme in "${readmes[@]}"; do
  blocks=$results/blocks/${readme//\//-}
  mkdir -p "$blocks"
  awk -v dir="$blocks" -f "$root/tools/scripts/readme-blocks.awk" "$root/$readme"
  for block in "$blocks"/[0-9]*; do
    [[ ! -e $block ]] || run_block "$block"
  done
done

[[ $update == -u ]] || exit 0
# Commands are numbered as they ran; a script in between has a number too.
last=0
for readme in "${readmes[@]}"; do
  awk -v dir="$results" -v n="$last" -v left="$results/last" '
    /^```/ { inside = !inside; console = inside && /^```console/; if (console) { print; next } }
    console && /^\$ / {
      print
      command = substr($0, 3)
      for (n++; (getline text < (f = sprintf("%s/%03d.command", dir, n))) > 0 && text != command; n++) close(f)
      close(f)
      while ((getline line < (f = sprintf("%s/%03d.got", dir, n))) > 0) print line
      close(f)
      next
    }
    console { next }
    { print }
    END { print n >left }
  ' "$root/$readme" >"$results/README.new"
  last=$(cat "$results/last")
  cp "$results/README.new" "$root/$readme"
done
