#!/bin/sh
# Sets hand-offs as `contend lab` measures them beside those of lmbench, perf bench and cyclictest, in
# alternation, and prints medians of both and of their ratio round by round. Needs two CPUs, jq, and
# Debian's lmbench (non-free), linux-perf and rt-tests; what is missing is left out.
#
# usage: cross-check.sh [ROUNDS]      (CONTEND=FILE for another contend than the built one)
set -eu
rounds=${1:-5}
here=$(cd "$(dirname "$0")/../.." && pwd)
contend=${CONTEND:-$here/target/release/contend}
lmbench=$(dirname "$(ls /usr/lib/lmbench/bin/*/lat_pipe 2>/dev/null | head -n 1)")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Theirs: name, value in nanoseconds.
note() { [ -n "$2" ] && echo "$1 $2" >>"$folder/round"; return 0; }
lm() { # scheduling, program and arguments; the last number it prints, in microseconds
  scheduling=$1
  shift
  [ -x "$lmbench/$1" ] || return 0
  LMBENCH_SCHED=$scheduling timeout -s KILL 60 "$lmbench/$@" 2>&1 |
    awk '{ for (i = 1; i <= NF; i++) if ($i ~ /^[0-9.]+$/) last = $i } END { if (last != "") print last }'
}
has() { command -v "$1" >/dev/null; }

theirs() {
  note lat_pipe/same-cpu "$(lm SINGLE lat_pipe -N 3 | awk '{ print 500 * $1 }')"
  note lat_pipe/two-cpus "$(lm UNIQUE lat_pipe -N 3 | awk '{ print 500 * $1 }')"
  note lat_ctx/same-cpu "$(lm SINGLE lat_ctx -N 3 -s 0 2 | awk '{ print 1000 * $1 }')"
  note lat_ctx/two-cpus "$(lm UNIQUE lat_ctx -N 3 -s 0 2 | awk '{ print 1000 * $1 }')"
  note lat_sem/same-cpu "$(lm SINGLE lat_sem -N 3 | awk '{ print 1000 * $1 }')"
  note lat_sem/two-cpus "$(lm UNIQUE lat_sem -N 3 | awk '{ print 1000 * $1 }')"
  if has perf; then
    note perf-pipe/same-cpu "$(taskset -c 0 perf bench sched pipe -l 50000 2>/dev/null |
      awk '/usecs\/op/ { print 500 * $1 }')"
    note perf-pipe/free "$(perf bench sched pipe -l 50000 2>/dev/null | awk '/usecs\/op/ { print 500 * $1 }')"
    note perf-futex-wake/free "$(perf bench futex wake -t 1 2>/dev/null |
      awk '/^Wokeup/ { print 1e6 * $7 }')"
  fi
  if has cyclictest; then
    note cyclictest/free "$(cyclictest -t1 -i1000 -l1000 -q 2>/dev/null |
      awk '/Avg:/ { sub(/.*Avg: */, ""); print 1000 * $1 }')"
  fi
}

ours() {
  # The sample of least interest is that of the first case: all are taken in turn, several times.
  "$contend" lab run handoff/mechanisms engine/cache-line engine/futex --no-store --no-progress --budget 8 \
    --only partners=process --only placement=same-cpu --only placement=two-cpus --only placement=free \
    --only mechanism=pipe --only mechanism=sysv-semaphore --only mechanism=futex --only mechanism=spin \
    --only mechanism=sleep --json "$folder/ours.json" >/dev/null
  jq -r '.cases[] | select(.median != null)
    | "\(.parameters.mechanism // .experiment)/\(.parameters.placement // "two-cpus") \(.median)"' \
    "$folder/ours.json" >>"$folder/round"
}

: >"$folder/all"
round=1
while [ "$round" -le "$rounds" ]; do
  : >"$folder/round"
  if [ $((round % 2)) -eq 1 ]; then theirs; ours; else ours; theirs; fi
  sed "s/^/$round /" "$folder/round" >>"$folder/all"
  round=$((round + 1))
done

# Pairs: theirs, ours, what ours has to be multiplied by and what then added, in nanoseconds.
cat >"$folder/pairs" <<'PAIRS'
lat_pipe/same-cpu pipe/same-cpu 1 0
perf-pipe/same-cpu pipe/same-cpu 1 0
lat_ctx/same-cpu pipe/same-cpu 1 0
lat_pipe/two-cpus pipe/two-cpus 1 0
lat_ctx/two-cpus pipe/two-cpus 1 0
perf-pipe/free pipe/free 1 0
lat_sem/same-cpu sysv-semaphore/same-cpu 1 0
lat_sem/two-cpus sysv-semaphore/two-cpus 1 0
perf-futex-wake/free futex/two-cpus 1 0
cyclictest/free sleep/two-cpus 2 -1000000
engine/cache-line/two-cpus spin/two-cpus 2 0
engine/futex/two-cpus futex/two-cpus 2 0
PAIRS
awk -v pairs="$folder/pairs" '
  function median(list, n,   i, j, t) {
    for (i = 2; i <= n; i++) for (j = i; j > 1 && list[j] < list[j - 1]; j--) {
      t = list[j]; list[j] = list[j - 1]; list[j - 1] = t
    }
    return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
  }
  { value[$1, $2] = $3; if ($1 > rounds) rounds = $1 }
  END {
    printf "%-26s %-26s %12s %12s %7s\n", "theirs", "ours", "ns", "ns", "ratio"
    while ((getline line < pairs) > 0) {
      split(line, f, " ")
      n = 0
      for (round = 1; round <= rounds; round++)
        if (value[round, f[1]] > 0 && (round, f[2]) in value) {
          n++
          theirs[n] = value[round, f[1]]
          ours[n] = f[3] * value[round, f[2]] + f[4]
          ratio[n] = ours[n] / theirs[n]
        }
      if (n) printf "%-26s %-26s %12.1f %12.1f %7.3f\n", f[1], f[2], median(theirs, n), median(ours, n), median(ratio, n)
    }
  }' "$folder/all"
