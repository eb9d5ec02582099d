#!/usr/bin/env bash
# commit_check.sh [files | message FILE | install]: looks at what a commit changes, before CI does
#
#   files          the staged files, or if none is staged those that differ from HEAD: layout, shell, rooms, lines.
#                  The default, and what the hook pre-commit runs
#   message FILE   a commit's message: a subject of at most 72 characters, a blank line, a body. The hook commit-msg
#   install        makes both hooks of this clone
#
# Exit status 1 and a line for each finding. A tool that is missing is named, and what it would check is left out.
set -uo pipefail
cd "$(git rev-parse --show-toplevel)" || exit 2
found=0

finding() {
  echo "commit-check: $*" >&2
  found=1
}

# have TOOL WHAT: 1 if the tool that checks WHAT is missing
have() {
  command -v "$1" >/dev/null && return
  echo "commit-check: no $1: $2 is not checked" >&2
  return 1
}

changed_files() {
  if git diff --cached --quiet; then
    git diff --name-only --diff-filter=d HEAD
  else
    git diff --cached --name-only --diff-filter=d
  fi
}

check_layout() {
  have clang-format 'the layout of C' || return 0
  clang-format --dry-run -Werror "$@" 2>&1 | grep -m 5 error >&2
  [ "${PIPESTATUS[0]}" -eq 0 ] || finding "'make format' mends the layout"
}

check_shell() {
  have shellcheck 'what shells run' || return 0
  shellcheck -x -S "$1" "${@:2}" >&2 || finding "shellcheck has findings"
}

check_lines() {
  local file
  for file; do
    awk -v file="$file" 'length > 120 { print file ":" FNR ": over 120 columns"; n = 1 } END { exit n }' "$file" >&2 ||
      finding "$file has long lines"
  done
}

# A product and its rooms are committed together.
check_rooms() {
  local product
  for product in 'gpuir.h tools/header/*.h' 'gpuir_cuda.cu tools/cuda/*.cuh'; do
    # shellcheck disable=SC2086 # a pattern
    LC_ALL=C cat ${product#* } | cmp -s - "${product%% *}" ||
      finding "${product%% *} is not what its rooms make: 'make header'"
  done
  if ! have python3 'what banners say'; then return 0; fi
  python3 tests/e2e/house.py . uses >&2 || finding "a banner does not say what its room uses"
  python3 tests/e2e/house.py . ladder >&2 || finding "a room uses a later one"
}

check_files() {
  local c=() scripts=() bats=() rooms='' file
  while read -r file; do
    case $file in
      gpuir.h | gpuir_cuda.cu | tools/header/* | tools/cuda/*) rooms=yes ;;
    esac
    case $file in
      gpuir.h | gpuir_cuda.cu) ;;
      *.c | *.h | *.cc | *.cu | *.cuh) c+=("$file") ;;
      *.bats | *.bash) bats+=("$file") ;;
      *.sh | .ci/run | tests/run) scripts+=("$file") ;;
    esac
  done < <(changed_files)
  [ ${#c[@]} -eq 0 ] || { check_layout "${c[@]}" && check_lines "${c[@]}"; }
  [ ${#scripts[@]} -eq 0 ] || { check_shell style "${scripts[@]}" && check_lines "${scripts[@]}"; }
  [ ${#bats[@]} -eq 0 ] || check_shell warning "${bats[@]}"
  [ -z "$rooms" ] || check_rooms
}

# Comments, which git removes, are not looked at; a merge and a fixup say what git says.
check_message() {
  local subject body
  subject=$(grep -v '^#' "$1" | head -n 1)
  case $subject in 'Merge '* | 'fixup! '* | 'squash! '* | 'Revert '*) return ;; esac
  body=$(grep -v '^#' "$1" | tail -n +3 | grep -m 1 '[^[:space:]]')
  [ ${#subject} -gt 0 ] || finding "the message has no subject"
  [ ${#subject} -le 72 ] || finding "the subject has ${#subject} characters; 72 are shown"
  [ -z "$(grep -v '^#' "$1" | sed -n 2p)" ] || finding "the second line is not blank"
  [ -n "$body" ] || finding "the message has no body: say why"
}

# hook NAME ARGUMENTS: makes a hook that runs this script; one that somebody else made stays.
hook() {
  local file
  file=$(git rev-parse --git-path hooks)/$1
  mkdir -p "${file%/*}"
  if [ -e "$file" ] && ! grep -q commit_check.sh "$file"; then
    finding "$file is there already, and was left as it is"
    return
  fi
  printf '#!/bin/sh\nexec tools/scripts/commit_check.sh %s\n' "$2" >"$file"
  chmod +x "$file"
}

case ${1:-files} in
  files) check_files ;;
  message) check_message "$2" ;;
  install)
    hook pre-commit files
    # shellcheck disable=SC2016 # the hook expands it
    hook commit-msg 'message "$1"'
    ;;
  *)
    echo 'usage: commit_check.sh [files | message FILE | install]' >&2
    exit 2
    ;;
esac
exit $found
