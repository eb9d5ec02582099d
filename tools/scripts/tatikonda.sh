#!/usr/bin/env bash
# tatikonda.sh [DIR]: measures Figures 4 to 7 of Tatikonda et al. (SIGIR 2011) on synthetic lists
#
# It uses 8 of all processors; no other work should go on beside it. It writes DIR/tatikonda.tsv (default
# build/lab/tatikonda), one chart a figure beside it, and prints the paper's claims beside what was measured. The
# programs are those of build/, or of build/carry/pool.tar.xz that pool_gpu.sh unpacks (POOL_WORK). CORES (1 2 4 8)
# and DOCUMENTS (4000000) make it smaller; BUDGET seconds (300) bound it: what they do not suffice for is left out, and
# said so; FIGURES (4 5a 5 6 7) puts the figures that matter most first. INDEX with its INDEX_QUERIES is taken instead
# of lists made here. With FIGURES=uneven, ORDERS ('path random=random:1'), each a name or a name and what
# `gpuir reorder --order` takes, are orders of its documents, in each of which one thread times what docp-ui and fgqp
# divide each query into, SURVEY (5) times: this needs no free processors. FIGURES=balance measures the throughput and
# latency of all policies in these orders. All figures are measured ROUNDS (1) times in turn; the median counts. Where
# the paper's text leaves something open, see tools/lab/README.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
dir=${1:-${OUT:-build/lab}/tatikonda} work=${POOL_WORK:-/tmp/pool-gpu} documents=${DOCUMENTS:-4000000}
budget=${BUDGET:-300} read_cores=${CORES:-1 2 4 8} n=${QUERIES_N:-3000} read_figures=${FIGURES:-4 5a 5 6 7}
orders=${ORDERS:-path random=random:1} rounds=${ROUNDS:-1}
n_rate=${QUERIES_RATE:-1000} # of a run at a rate, behind a second or more that warms up
read -ra cores <<<"$read_cores"
most=${cores[-1]}
if [ -x build/gpuir ] && [ -x build/synth ] && build/gpuir --version >/dev/null 2>&1; then
  PATH=$PWD/build:$PATH
else
  PATH=$work:$PATH
fi
export PATH
mkdir -p "$dir" "$work/t"
rm -f "$work/t/order-"*
tsv=$dir/tatikonda.tsv rows=$work/t/rows index=$work/t/index queries=$work/t/queries
: >"$rows"
: >"$work/t/surveys"

left() {
  ((SECONDS + $1 <= budget)) && return
  echo "LEFT OUT for lack of time: $2" >&2
  return 1
}

# load POLICY QUERIES OPTION...: runs it; rows are those of $log
load() {
  local policy=$1 file=$2
  shift 2
  log=$work/t/load-${policy//[:=]/-}.tsv
  gpuir lab load -o "$work/t" --queries "$n" "$@" "$policy" "$index" "$file" >"$work/t/out"
}
# of FIGURE [SERIES]: the last such value of the log
of() { awk -F '\t' -v f="$1" -v s="${2-}" '$1 == f && (s == "" || $2 == s) { v = $4 } END { print v }' "$log"; }
# put FIGURE SERIES X Y UNIT [LEAST MOST N]
put() {
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "$5" "${6:-$4}" "${7:-$4}" "${8:-1}" | tee -a "$rows"
}
# value FIGURE SERIES X: what was put last
value() {
  awk -F '\t' -v f="$1" -v s="$2" -v x="$3" '$1 == f && $2 == s && $3 == x { v = $4 } END { print v + 0 }' "$rows"
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.4g", b ? a / b : 0 }'; }

# Parts of what INTER answers on all cores: at these rates queries come, in each round at the same ones.
declare -A most_rate
parts=0.1,0.3,0.5,0.7,0.9

names=(INTER 'FGQP(5)' 'FGQP(150)' DOCP-UI DOCP-PI)
policies=(t-inter fgqp:beta=5 fgqp:beta=150 docp-ui docp-pi)

# cores_of C: Figures 4a and 4b on C cores; on one the paper has INTER alone
cores_of() {
  local i
  left 20 "Figure 4 on $1 cores" || return 0
  for i in "${!names[@]}"; do
    load "${policies[i]}" "$queries" --closed --threads "$1"
    put tatikonda-fig4a "${names[i]}" "$1" "$(of load-throughput)" queries/s
    put tatikonda-fig4b "${names[i]}" "$1" "$(of load-processing)" ms
    if [ "$1" = 1 ]; then break; fi
  done
}

# The claims are of one core and of all: these come first.
figure4() {
  local c b base linear
  cores_of "${cores[0]}"
  if [ "$most" != "${cores[0]}" ]; then cores_of "$most"; fi
  base=$(value tatikonda-fig4b INTER 1) linear=$(value tatikonda-fig4a INTER "$most")
  [ "$linear" != 0 ] || return 0
  for b in 5 150 10 25 50 100; do
    left 5 "Figure 4c at $b" || continue
    load "fgqp:beta=$b" "$queries" --closed --threads "$most"
    put tatikonda-fig4c-latency FGQP "$b" "$(ratio "$base" "$(of load-processing)")" "times"
    put tatikonda-fig4c 'PDTP against INTER' "$b" "$(awk -v t="$(of load-throughput)" -v l="$linear" \
      'BEGIN { print 100 * (1 - t / l) }')" %
    put tatikonda-fig4c 'PDTP against n times INTER-1' "$b" "$(awk -v t="$(of load-throughput)" \
      -v l="$(value tatikonda-fig4a INTER 1)" -v n="$most" 'BEGIN { print 100 * (1 - t / l / n) }')" %
  done
  for c in "${cores[@]:1}"; do
    if [ "$c" != "$most" ]; then cores_of "$c"; fi
  done
}

# rates FIGURE FILE POLICY/THREADS/PARTS...: mean latency from when a query is due, at PARTS of what INTER answers,
# those of a policy in one run
rates() {
  local figure=$1 file=$2 system policy threads parts name rate mean saturated
  shift 2
  left 10 "$figure" || return 0
  if [ -z "${most_rate[$figure]-}" ]; then
    load t-inter "$file" --closed --threads "$most"
    most_rate[$figure]=$(of load-throughput)
  fi
  for system in "$@"; do
    IFS=/ read -r policy threads parts <<<"$system"
    name=$(sed 's/t-inter/INTER/; s/docp-ui/DOCP-UI/; s/fgqp.*/FGQP/' <<<"$policy")-$threads
    left 12 "$figure: $name" || continue
    rate=$(awk -v a="${most_rate[$figure]}" -v p="$parts" 'BEGIN {
      for (i = split(p, part, ","); i; i--) all = sprintf("%.0f", a * part[i]) (all ? "," all : ""); print all }')
    load "$policy" "$file" --threads "$threads" --rate "$rate" --queries "$n_rate"
    while read -r rate mean saturated; do
      put "$figure" "$name${saturated:+ saturated}" "$rate" "$mean" ms
    done < <(awk 'NR > 1 { print $2, $4, /saturated/ ? "saturated" : "" }' "$work/t/out")
  done
}

# of_length N: the first N words of the queries that have so many
of_length() {
  awk -v n="$1" 'NF >= n && m++ < 4000 { for (i = 1; i <= n; i++) printf "%s%s", $i, i < n ? " " : "\n" }' \
    "$work/t/all" >"$queries-$1"
}

figure5a() {
  rates tatikonda-fig5a "$queries" "t-inter/$((most / 2 > 0 ? most / 2 : 1))/0.1,0.3,0.45,0.6" \
    "t-inter/$most/$parts" "fgqp:beta=5/$most/$parts" "docp-ui/$most/$parts"
}

figure5() {
  local terms i
  for terms in 2 10 4 6 8; do
    left 8 "Figures 5b and 5c, $terms terms" || continue
    of_length $terms
    for i in 0 1 3; do
      load "${policies[i]}" "$queries-$terms" --closed --threads "$most"
      put tatikonda-fig5b "${names[i]}" $terms "$(of load-processing)" ms
      put tatikonda-fig5c "${names[i]}" $terms "$(of load-throughput)" queries/s
    done
  done
}

figure6() {
  local terms
  for terms in 4 6; do
    of_length $terms
    rates tatikonda-fig6-$terms "$queries-$terms" "t-inter/$most/$parts" "fgqp:beta=5/$most/$parts" \
      "docp-ui/$most/$parts"
  done
}

figure7() {
  local b what base
  for b in 512 128 256 1024 2048; do
    left 4 "Figure 7 at $b" || continue
    load "fgqp:skip=$b" "$queries" --closed --threads "$most"
    for what in 'skips a list' 'tasks a query' S_avg O_avg creation; do
      put tatikonda-fig7-values "$what" "$b" "$(of load-tasks "$what")" \
        "$(awk -F '\t' -v w="$what" '$2 == w { print $5 }' "$log" | tail -n 1)"
      base=$(value tatikonda-fig7-values "$what" 512)
      put tatikonda-fig7 "$what" "$b" "$(ratio "$(value tatikonda-fig7-values "$what" "$b")" "$base")" \
        "times that of 512"
    done
  done
}

# order_of NAME[=ORDER]: makes the index of an order, $work/t/order-NAME
order_of() {
  local name=${1%%=*} order=${1#*=} made
  made=$work/t/order-$name
  [ ! -e "$made" ] || return 0
  if [ "$order" = "$name" ]; then cp "$INDEX" "$made"; else gpuir reorder -q --order "$order" "$INDEX" "$made"; fi
}

# All at once, before anything is timed.
make_orders() {
  local order
  for order in $orders; do order_of "$order" & done
  wait
}

# What unevenness costs, by processor time: docp-ui and fgqp on $most threads in orders of the documents in which ranges
# of docIDs differ. Intervals are over queries.
figureuneven() {
  local order policy name index
  make_orders
  for order in $orders; do
    order=${order%%=*} index=$work/t/order-$order
    left 30 "order $order" || continue
    for policy in DOCP-UI=docp-ui FGQP=fgqp:beta=5; do
      name=${policy%%=*}-$most
      load "${policy#*=}:survey=${SURVEY:-5}" "$queries" --closed --threads "$most"
      awk -F '\t' -v OFS='\t' -v s="$name" -v x="$order" '
        $1 == "load-divided" { print "tatikonda-uneven" ($2 == "latency" ? "-latency" : ""), s, x, $4, $5, $6, $7, $8 }
      ' "$log" | tee -a "$rows"
      sed -n "s/^# survey:/# $order, $name:/p" "$log" >>"$work/t/surveys"
    done
  done
}

# What unevenness costs on $most processors: how many times the throughput of INTER on one, and how many times sooner a
# query is answered than by it, in each order.
figurebalance() {
  local order index i throughput processing
  make_orders
  for order in $orders; do
    order=${order%%=*} index=$work/t/order-$order
    left 15 "balance, order $order" || continue
    load t-inter "$queries" --closed --threads 1
    throughput=$(of load-throughput) processing=$(of load-processing)
    for i in 0 1 3 4; do
      load "${policies[i]}" "$queries" --closed --threads "$most"
      put tatikonda-balance "${names[i]}-$most" "$order" "$(ratio "$(of load-throughput)" "$throughput")" \
        'times INTER-1'
      put tatikonda-balance-latency "${names[i]}-$most" "$order" "$(ratio "$processing" "$(of load-processing)")" \
        'times INTER-1'
    done
  done
}

# claim NAME PAPER OURS: of what was measured
claim() {
  [ "$3" != 0 ] || return 0
  put tatikonda-claims paper "$1" "$2" ''
  put tatikonda-claims ours "$1" "$3" ''
  printf '%-58s %10s %10s\n' "$1" "$2" "$3" >>"$work/t/table"
}

claims() {
  local one=${cores[0]} i paper=(7.9 '' 7.6 5.1 4.8) base
  printf '%-58s %10s %10s\n' "on $most cores" paper ours >"$work/t/table"
  base=$(value tatikonda-fig4a INTER "$one")
  for i in 0 2 3 4; do
    claim "throughput of ${names[i]} over INTER-1" "${paper[i]}" \
      "$(ratio "$(value tatikonda-fig4a "${names[i]}" "$most")" "$base")"
  done
  base=$(value tatikonda-fig4b INTER "$one")
  claim 'latency of INTER-1 over FGQP(5)' 5.75 "$(ratio "$base" "$(value tatikonda-fig4b 'FGQP(5)' "$most")")"
  claim 'latency of INTER-1 over FGQP(150)' 3.7 "$(ratio "$base" "$(value tatikonda-fig4b 'FGQP(150)' "$most")")"
  claim 'throughput lost by FGQP(5), %' 16 "$(value tatikonda-fig4c 'PDTP against n times INTER-1' 5)"
  claim 'throughput lost by FGQP(150), %' 3.3 "$(value tatikonda-fig4c 'PDTP against n times INTER-1' 150)"
  claim 'S_avg at 512' 10.2 "$(value tatikonda-fig7-values S_avg 512)"
  claim 'O_avg at 512' 0.97 "$(value tatikonda-fig7-values O_avg 512)"
  claim 'tasks made, % of wall time' 2 "$(value tatikonda-fig7-values creation 512)"
}

plots() {
  plot() { printf '# plot\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$@"; }
  plot tatikonda-fig4a lines '' 'Throughput by cores' cores 'queries a second' ''
  plot tatikonda-fig4b lines '' 'Mean time of processing by cores, saturated' cores milliseconds ''
  plot tatikonda-fig4c lines '' 'Throughput that beta costs' beta 'percent lost' ''
  plot tatikonda-fig4c-latency lines '' 'Latency that beta gains' beta 'times as fast as INTER-1' ''
  plot tatikonda-fig5a lines log-y 'Mean latency by arrivals' 'queries a second' milliseconds ''
  plot tatikonda-fig5b lines '' 'Mean time of processing by terms' terms milliseconds ''
  plot tatikonda-fig5c lines '' 'Throughput by terms' terms 'queries a second' ''
  plot tatikonda-fig6-4 lines log-y 'Mean latency of queries of 4 terms' 'queries a second' milliseconds ''
  plot tatikonda-fig6-6 lines log-y 'Mean latency of queries of 6 terms' 'queries a second' milliseconds ''
  plot tatikonda-fig7 lines log-x 'Skip blocks: what changes with their size' postings 'times that of 512' ''
  plot tatikonda-uneven bars '' "Throughput that the division permits, by the documents' order" '' 'times one thread' ''
  plot tatikonda-uneven-latency bars '' "Latency that the division permits, by the documents' order" '' \
    'times as fast as one thread' ''
  plot tatikonda-balance bars '' "Throughput by the documents' order" '' "times one processor's" ''
  plot tatikonda-balance-latency bars '' "Latency by the documents' order" '' "times as fast as on one processor" ''
  plot tatikonda-claims bars '' "The paper's claims and ours" '' '' 'paper,ours'
}

# medians: a value that was put in several rounds becomes their median, with the least and the greatest
medians() {
  awk -F '\t' -v OFS='\t' '{ key = $1 FS $2 FS $3; i = ++n[key]; if (i == 1) order[++keys] = key
      y[key, i] = $4; line[key] = $0; unit[key] = $5 }
    END { for (k = 1; k <= keys; k++) { key = order[k]; m = n[key]
        if (m == 1) { print line[key]; continue }
        for (i = 2; i <= m; i++) for (j = i; j > 1 && y[key, j - 1] + 0 > y[key, j] + 0; j--) {
          t = y[key, j]; y[key, j] = y[key, j - 1]; y[key, j - 1] = t }
        middle = m % 2 ? y[key, (m + 1) / 2] : (y[key, m / 2] + y[key, m / 2 + 1]) / 2
        print key, middle, unit[key], y[key, 1], y[key, m], m } }' "$rows" >"$rows.all"
  mv "$rows.all" "$rows"
}

# finish: writes what there is, also when the script is ended before its time
finish() {
  trap - EXIT TERM
  medians
  claims
  {
    sed -n '/^# \(corpus\|machine\|version\):/p' "$log"
    echo "# command: tools/scripts/tatikonda.sh, conjunctions of queries of two words or more," \
      "$n a run, $rounds rounds;" \
      "Figures 4, 5b, 5c and 7: all submitted at once, latency from when a thread takes a query;" \
      "Figures 5a and 6: $n_rate a run behind those of a second, one seed, latency from when a query is due;" \
      "orders: $orders"
    cat "$work/t/surveys"
    plots | awk -F '\t' 'NR == FNR { has[$1]; next } $2 in has' "$rows" -
    printf 'figure\tseries\tx\ty\tunit\tmin\tmax\tn\n'
    cat "$rows"
  } >"$tsv"
  gpuir lab plot -o "$dir" "$tsv"
  cat "$work/t/table"
}

if [ -n "${INDEX:-}" ]; then
  index=$INDEX
  cp "$INDEX_QUERIES" "$work/t/all"
else
  synth --documents "$documents" "$index" "$work/t/all" >/dev/null
fi
awk 'NF >= 2 && n++ < 4000' "$work/t/all" >"$queries"
trap finish EXIT
trap 'exit 143' TERM
for ((round = 0; round < rounds; round++)); do
  for f in $read_figures; do "figure$f"; done
done
