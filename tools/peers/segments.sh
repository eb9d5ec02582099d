#!/usr/bin/env bash
# segments.sh SOURCES WORK QUERIES [TSV]: what segments and deletions cost: a live index of SOURCES, every 25 lines of a
# file a document, in ten segments of like size with a tenth of the documents deleted, beside the same merged into one.
# Both answer QUERIES, one a line, by turns, five times; the fastest run of each counts. WORK takes both indexes.
# (`gpuir bench --sample 1000 --dump-queries QUERIES INDEX` draws queries from an index of the same files.)
set -euo pipefail
[[ $# -ge 3 && $# -le 4 ]] || { sed -n '2,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2; exit 2; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
sources=$(cd "$1" && pwd)
work=$2 queries=$3 tsv=${4:-/dev/stdout}
gpuir=$root/build/gpuir
mkdir -p "$work"
"${CC:-cc}" -O3 -DGPUIR_IMPLEMENTATION -I "$root" "$root/tools/peers/segments.c" -o "$work/segments" -lm -pthread
if [[ ! -e $work/merged/manifest ]]; then
  rm -rf "$work/ten" "$work/merged"
  find "$sources" -type f | LC_ALL=C sort >"$work/names"
  lines=$(xargs -d '\n' cat <"$work/names" | wc -l)
  "$work/segments" "$work/ten" 10 $((lines / 25)) 10 <"$work/names"
  cp -r "$work/ten" "$work/copy"
  "$gpuir" merge -q --all --memory 1024 "$work/copy"
  mv "$work/copy" "$work/merged"
fi
for ((round = 0; round < 5; round++)); do
  for which in ten merged; do
    "$gpuir" bench --queries "$queries" --threads 1 --tsv "$work/$which.$round" "$work/$which" >"$work/log"
  done
done
{
  printf '# gpuir %s, commit %s\n' "$("$gpuir" --version | awk 'NR == 1 { print $2 }')" \
    "$(git -C "$root" describe --always --dirty --exclude='*' 2>/dev/null || echo unknown)"
  printf '# machine: %s, %s processors\n' "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)"
  printf '# command: tools/peers/segments.sh SOURCES WORK QUERIES\n'
  "$gpuir" stats "$work/ten" | sed -n 's/^\(segments\|documents\|deleted\)  */# ten: \1 /p'
  printf 'mode\tten_mean_us\tten_p99_us\tmerged_mean_us\tmerged_p99_us\tmean_ratio\tp99_ratio\n'
  awk -F '\t' '
    /^#/ { next }
    $1 == "mode" { for (i = 1; i <= NF; i++) column[$i] = i; next }
    {
      which = FILENAME ~ /ten/ ? "ten" : "merged"
      mean = $column["mean_us"]; p99 = $column["p99_us"]
      if (!(($1, which) in least) || mean < least[$1, which]) least[$1, which] = mean
      if (!(($1, which) in last) || p99 < last[$1, which]) last[$1, which] = p99
      if (!($1 in seen)) { seen[$1] = 1; order[++n] = $1 }
    }
    END {
      for (i = 1; i <= n; i++) {
        m = order[i]
        printf "%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.3f\t%.3f\n", m, least[m, "ten"], last[m, "ten"], least[m, "merged"],
               last[m, "merged"], least[m, "ten"] / least[m, "merged"], last[m, "ten"] / last[m, "merged"]
      }
    }' "$work"/ten.[0-4] "$work"/merged.[0-4]
} >"$tsv"
