#!/usr/bin/env bash
# passages.sh INDEX QUERIES [MOUNT-QUERIES]: what passages cost on this machine. It prints, as a log for tools/results:
# the cost of the passages of a hit, and whether all words are shown (tests/e2e/passage_costs.c); and how long a program
# waits for the file of a new query in pass/ of a mount, open, read and close, by the first MOUNT-QUERIES (1,000) of
# QUERIES, each asked once, after as many that warm the index up. Programs are those of GPUIR_BUILD (default build).
set -eu
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(cd "${GPUIR_BUILD:-$root/build}" && pwd)
[ $# -ge 2 ] || {
  echo "usage: passages.sh INDEX QUERIES [MOUNT-QUERIES]" >&2
  exit 2
}
index=$(realpath "$1") queries=$(realpath "$2") n=${3:-1000}
work=$(mktemp -d /tmp/gpuir-passages-XXXXXX)
finish() {
  if grep -q " $work/m fuse" /proc/self/mounts; then fusermount3 -u "$work/m" || fusermount3 -u -z "$work/m"; fi
  rm -rf "$work"
}
trap finish EXIT

echo "command: tools/scripts/passages.sh ${index##*/} ${queries##*/} $n"
echo "commit: $(git -C "$root" describe --always --dirty --exclude='*' 2>/dev/null || echo unknown)"
echo "machine: $(sed -n 's/^model name[[:blank:]]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores," \
  "Linux $(uname -r)"
documents=$("$build/gpuir" stats --json "$index" | tr ',' '\n' | sed -n 's/.*"documents":\([0-9]*\).*/\1/p')
echo "index: $documents documents, $(stat -Lc %s "$index") bytes"
"$build/tests/e2e/passage_costs" "$index" "$queries"
mkdir "$work/m"
"$build/gpuirfs" "$index" "$work/m"
python3 - "$work/m" "$queries" "$n" <<'END'
import sys
import time
from urllib.parse import quote_plus

mount, queries, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
names = []
for line in open(queries, encoding="utf-8", errors="surrogateescape"):
    name = quote_plus(line.strip(), errors="surrogateescape")
    if name and len(name) < 250 and name not in names:
        names.append(name)
names = names[:n]


def ask(folder):
    took, size, failed = [], 0, 0
    for name in names:
        begun = time.perf_counter_ns()
        try:
            with open(f"{mount}/{folder}/{name}", "rb", buffering=0) as file:
                size += len(file.read())
        except OSError:
            failed += 1
            continue
        took.append((time.perf_counter_ns() - begun) / 1e6)
    took.sort()
    return took, size, failed


ask("query/@or")  # reads the lists that the others need
for folder in ("query/@or/@k=11", "pass/@k=11", "pass"):
    took, size, failed = ask(folder)
    if not took:
        sys.exit("no query was answered")
    p50, p90, p99 = (took[len(took) * part // 100] for part in (50, 90, 99))
    print(f"new {folder}: {len(took)} queries, ms: p50 {p50:.3f}, p90 {p90:.3f}, p99 {p99:.3f}, max {took[-1]:.3f};"
          f" bytes an answer {size // len(took)}, failed {failed}")
END
