#!/bin/sh
# Compares hand-offs measured by `contend lab` with those of lmbench, perf bench and cyclictest, in
# alternation. Needs two CPUs, jq, and Debian's lmbench (non-free), linux-perf and rt-tests;
# programs that are missing are skipped. See bench/cross-check.sh.
. "$(dirname "$0")/../cross-check.sh"

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
  measure "mechanism placement" handoff/mechanisms engine/cache-line engine/futex --budget 8 \
    --only partners=process --only placement=same-cpu --only placement=two-cpus --only placement=free \
    --only mechanism=pipe --only mechanism=sysv-semaphore --only mechanism=futex --only mechanism=spin \
    --only mechanism=sleep
}

pairs() {
  cat <<'PAIRS'
lat_pipe/same-cpu handoff/mechanisms/pipe/same-cpu 1 0
perf-pipe/same-cpu handoff/mechanisms/pipe/same-cpu 1 0
lat_ctx/same-cpu handoff/mechanisms/pipe/same-cpu 1 0
lat_pipe/two-cpus handoff/mechanisms/pipe/two-cpus 1 0
lat_ctx/two-cpus handoff/mechanisms/pipe/two-cpus 1 0
perf-pipe/free handoff/mechanisms/pipe/free 1 0
lat_sem/same-cpu handoff/mechanisms/sysv-semaphore/same-cpu 1 0
lat_sem/two-cpus handoff/mechanisms/sysv-semaphore/two-cpus 1 0
perf-futex-wake/free handoff/mechanisms/futex/two-cpus 1 0
cyclictest/free handoff/mechanisms/sleep/two-cpus 2 -1000000
engine/cache-line handoff/mechanisms/spin/two-cpus 2 0
engine/futex handoff/mechanisms/futex/two-cpus 2 0
PAIRS
}

cross_check
