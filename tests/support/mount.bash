# shellcheck shell=bash
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test is a subshell of its own; bats sets variables
# Loaded by the .bats files that mount: one mount of WordNet for a file, and what its tests share.

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  export root build=${GPUIR_BUILD:-$root/build}
  export gpuir=$build/gpuir fs=$build/gpuirfs
  export long=${GPUIR_TEST_LONG:-${GPUIR_LONG:-}}
  export tmp=$BATS_FILE_TMPDIR mnt=$BATS_FILE_TMPDIR/mnt
  export no_mount='' no_python=''
  command -v python3 >/dev/null || no_python="no python3"
  [ -x "$gpuir" ] || no_mount="gpuir was not built"
  mkdir "$mnt"
  if [ -z "$no_mount" ]; then
    "$gpuir" index -q --tsv --store --stem english "$root/tests/data/wordnet.tsv" -o "$tmp/wordnet.gpuir"
    if [ ! -x "$fs" ]; then
      no_mount="gpuirfs was not built"
    elif [ ! -c /dev/fuse ]; then
      no_mount="no /dev/fuse"
    elif ! command -v fusermount3 >/dev/null; then
      no_mount="no fusermount3"
    elif ! "$fs" "$tmp/wordnet.gpuir" "$mnt" 2>"$tmp/mount.err"; then
      # Only a machine that forbids mounting may skip: an index that fails to load must not.
      grep -q "fuse" "$tmp/mount.err" || return 1
      no_mount="mounting is not allowed: $(head -n 1 "$tmp/mount.err")"
    fi
  fi
}

setup() {
  [ -z "$no_mount" ] || skip "$no_mount"
  T=$BATS_TEST_TMPDIR
  fs_pid=
}

# Every mount of a file lies under its temporary folder. Some tests give theirs another type, which begins with fuse.
unmount_under() { # FOLDER
  local dir
  awk -v under="$1/" '$3 ~ /^fuse/ && index($2, under) == 1 { print $2 }' /proc/self/mounts |
    while read -r dir; do
      # By force where a request does not end: it lets go of all who wait.
      fusermount3 -u "$dir" 2>/dev/null || umount -f "$dir" 2>/dev/null || fusermount3 -u -z "$dir" 2>/dev/null ||
        umount -l "$dir" 2>/dev/null || true
    done
}

teardown() {
  [ -z "$no_mount" ] || return 0
  if [ -n "$fs_pid" ] && kill "$fs_pid" 2>/dev/null; then until_true 5 has_ended "$fs_pid" || true; fi
  unmount_under "$BATS_TEST_TMPDIR"
}

teardown_file() { unmount_under "$tmp"; }

needs_python() { [ -z "$no_python" ] || skip "$no_python"; }
not_mounted() { if is_mounted "$1"; then return 1; fi; }
is_mounted() { grep -q " $1 fuse.gpuirfs " /proc/self/mounts; }

# until_true SECONDS COMMAND...
until_true() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.05
  done
}

# A process that has ended, be it waited for or not.
has_ended() {
  local state
  [ -e "/proc/$1/stat" ] || return 0
  state=$(sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" 2>/dev/null) || return 0
  [ "$state" = Z ]
}

# serve INDEX MOUNTPOINT OPTION...: mounts in the foreground of a background job, so that its process is known.
serve() {
  local index=$1 dir=$2
  shift 2
  mkdir -p "$dir"
  "$fs" -f "$@" "$index" "$dir" >"$T/fs.log" 2>&1 3>&- 4>&- &
  fs_pid=$!
  until_true 10 is_mounted "$dir"
}

stat_of() { # NAME MOUNTPOINT
  awk -F '\t' -v name="$1" '$1 == name { print $2 }' "$2/.stats"
}

check() { python3 "$root/tests/support/fuse_check.py" "$@"; }
errno_of() { check errno "$@"; }

# as USER COMMAND...: runs it with this number as user and group, and without further groups
as() { setpriv --reuid="$1" --regid="$1" --clear-groups -- "${@:2}"; }

needs_users() {
  [ "$(id -u)" -eq 0 ] || skip "not root: no other users"
  command -v setpriv >/dev/null || skip "no setpriv"
}

# ends SECONDS COMMAND...: it ends by itself; its exit status is in $code, what it printed in $T/printed
ends() {
  local seconds=$1 pid
  shift
  "$@" >"$T/printed" 2>&1 3>&- 4>&- &
  pid=$!
  until_true "$seconds" has_ended "$pid" || {
    echo "does not end: $*"
    return 1
  }
  code=0
  wait "$pid" || code=$?
}
