#!/usr/bin/env bats
# build/scale: where the answer is known without a simulation it gives that one, and the same seed gives the same.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup_file() {
  root=${GPUIR_ROOT:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
  build=${GPUIR_BUILD:-$root/build}
  export PATH="$build:$PATH"
}

setup() {
  cd "$BATS_TEST_TMPDIR" || exit
  # two queries: 2 ms on 10 million documents and 1 ms on one million; the second is ten times as slow
  printf 'or\t2000\nand\t9\nor\t20000\n' >large
  printf 'or\t1000\t1000\nor\t10000\t10000\n' >small
  printf 'or\t500\t1500\n' >uneven
  printf 'or\t2000\n' >even
}

# simulate OPTION...: one line; nothing happens that is not asked for
simulate() {
  scale large=large small=small slow=0 pause=0 network=50 rate=1 queries=200 "$@"
}

# column NAME LINE
column() {
  paste <(scale --head | tr '\t' '\n') <(tr '\t' '\n' <<<"$2") | awk -v name="$1" '$1 == name || $2 == name { print $NF }'
}

@test "one query at a time takes what the slowest shard does, and two messages" {
  line=$(simulate shards=10 documents=1e8)
  [ "$(column p99_ms "$line")" = 20.10 ] # 10 million documents a shard: as measured
  [ "$(column work_ms "$line")" = 11.000 ]
  [ "$(column hedged_% "$line")" = 0.00 ]
  line=$(simulate shards=10 documents=1e7)
  [ "$(column p99_ms "$line")" = 10.10 ]
  line=$(simulate shards=10 documents=1e9) # a straight line: 1 + 99 / 9 times the second query's 10 ms
  [ "$(column p99_ms "$line")" = 120.10 ]
  line=$(simulate large=even small=uneven shards=100 documents=1e9) # one of many shards is half as slow again
  [ "$(column p50_ms "$line")" = 3.10 ]
}

@test "utilisation is rate times work by cores, and cost is machines by rate" {
  line=$(simulate shards=3 replicas=2 cores=4 rate=100 queries=20000 documents=3e7 price=2)
  awk -v u="$(column utilisation_% "$line")" 'BEGIN { exit !(u > 13.2 && u < 14.3) }' # 100 * 11 ms / (2 * 4)
  [ "$(column cost_per_million "$line")" = 33.33 ]                                  # 6 * 2 / 3600 / 100 * 1e6
}

@test "queues are waited in: a queue of one server is as long as the formula says" {
  # M/D/1 at 50 %: the wait is half a service on average
  line=$(simulate large=even small=even shards=1 replicas=1 cores=1 rate=250 queries=100000 documents=1e7 network=0)
  awk -v m="$(column mean_ms "$line")" 'BEGIN { exit !(m > 2.94 && m < 3.06) }'
}

@test "hedging answers for replicas that are down, and hides pauses" {
  dead=$(simulate shards=20 documents=2e8 down=0.1 timeout=500000)
  hedged=$(simulate shards=20 documents=2e8 down=0.1 timeout=500000 hedge=30000)
  awk -v d="$(column p99_ms "$dead")" -v h="$(column p99_ms "$hedged")" 'BEGIN { exit !(d > 500 && h < 60) }'
  paused=$(simulate shards=100 documents=1e9 pause=0.001 pause_time=100000)
  hedged=$(simulate shards=100 documents=1e9 pause=0.001 pause_time=100000 hedge=25000)
  awk -v p="$(column p99_ms "$paused")" -v h="$(column p99_ms "$hedged")" 'BEGIN { exit !(p > 100 && h < 60) }'
}

@test "the same seed gives the same, another one another" {
  a=$(simulate rate=500 slow=0.01 pause=0.01 hedge=30000)
  [ "$a" = "$(simulate rate=500 slow=0.01 pause=0.01 hedge=30000)" ]
  [ "$a" != "$(simulate rate=500 slow=0.01 pause=0.01 hedge=30000 seed=2)" ]
}

@test "misuse and bad files" {
  fails 1 'usage' scale
  fails 1 'no such option, or no such value: sharts=1' scale sharts=1
  fails 1 'no such option, or no such value: shards=0' scale shards=0
  fails 1 'no such option, or no such value: rate=x' scale rate=x
  fails 1 'no such option, or no such value: seed=x' scale seed=x
  fails 1 'cannot open: nowhere' scale large=nowhere small=small
  fails 1 'no times of this mode: small' scale large=large small=small mode=and
  fails 1 'not the same queries as of the large shard: even' scale large=large small=even
  printf 'or\t1\t2\nor\t1\n' >bad
  fails 1 'lines of different numbers of ranks, or without any: bad' scale large=bad small=small
  printf 'or\t\n' >bad
  fails 1 'or without any: bad' scale large=bad small=small
}
