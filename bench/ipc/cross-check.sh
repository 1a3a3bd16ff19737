#!/bin/sh
# Compares messages and copies measured by `contend lab` with those of lmbench and perf bench, in
# alternation. Needs two CPUs, jq, and Debian's lmbench (non-free) and linux-perf; programs that are
# missing are skipped. See bench/cross-check.sh.
. "$(dirname "$0")/../cross-check.sh"

# Round trips in microseconds, bandwidths in megabytes a second of 64 KiB messages.
latency() { lm "$@" | awk '{ print 1000 * $1 }'; }
bandwidth() { lm "$@" | awk '$1 > 0 { print 65536 * 1000 / $1 }'; }

theirs() {
  for place in SINGLE:same-cpu UNIQUE:two-cpus; do
    scheduling=${place%:*}
    place=${place#*:}
    note "lat_pipe/$place" "$(latency "$scheduling" lat_pipe -N 3)"
    note "lat_unix/$place" "$(latency "$scheduling" lat_unix -N 3)"
    note "bw_pipe/$place" "$(bandwidth "$scheduling" bw_pipe -N 3 -m 65536 -M 50m)"
    # Without -M it moves 10 MiB; with -M it still reports 10 MiB, whatever the amount.
    note "bw_unix/$place" "$(bandwidth "$scheduling" bw_unix -N 3 -m 65536)"
  done
  if [ -x "$lmbench/lat_tcp" ]; then
    # The server daemonises.
    taskset -c 1 "$lmbench/lat_tcp" -s
    note lat_tcp/two-cpus "$(taskset -c 0 "$lmbench/lat_tcp" -N 3 localhost 2>&1 |
      awk '/microseconds/ { print 1000 * $(NF - 1) }')"
    "$lmbench/lat_tcp" -S localhost
  fi
  # lmbench's megabytes are 10^6 bytes, copied once: 104,857,600 bytes, the size of our file.
  note bw_mem/cp "$(lm DEFAULT bw_mem -N 3 64m cp | awk '$1 > 0 { print 104857600 * 1000 / $1 }')"
  if has perf; then
    note perf-pipe/same-cpu "$(taskset -c 0 perf bench sched pipe -l 50000 2>/dev/null |
      awk '/usecs\/op/ { print 1000 * $1 }')"
    note perf-pipe/free "$(perf bench sched pipe -l 50000 2>/dev/null |
      awk '/usecs\/op/ { print 1000 * $1 }')"
  fi
}

ours() {
  measure "mechanism placement" ipc/round-trip --budget 4 --set bytes=1 --set partners=process \
    --set mechanism=pipe,unix-stream,tcp,ring-spin,ring-futex --set placement=same-cpu,two-cpus,free
  measure "mechanism placement" ipc/one-way --budget 2 --set bytes=65536 --set partners=process \
    --set mechanism=pipe,unix-stream --set placement=same-cpu,two-cpus
  measure "" engine/cache-line engine/futex --budget 2
  # The time to copy the file in memory, at the price of the copy above.
  "$contend" lab run --no-store --no-progress --json "$folder/ours.json" copy/file --set way=mmap-memcpy \
    --set place=tmpfs --set cache=warm --set advice=none >/dev/null
  jq -r '.cases[0].metrics.at_memory.median | "copy/memory \(.)"' "$folder/ours.json" >>"$folder/round"
}

pairs() {
  cat <<'PAIRS'
lat_pipe/same-cpu ipc/round-trip/pipe/same-cpu 1 0
lat_pipe/two-cpus ipc/round-trip/pipe/two-cpus 1 0
perf-pipe/same-cpu ipc/round-trip/pipe/same-cpu 1 0
perf-pipe/free ipc/round-trip/pipe/free 1 0
lat_unix/same-cpu ipc/round-trip/unix-stream/same-cpu 1 0
lat_unix/two-cpus ipc/round-trip/unix-stream/two-cpus 1 0
lat_tcp/two-cpus ipc/round-trip/tcp/two-cpus 1 0
bw_pipe/same-cpu ipc/one-way/pipe/same-cpu 1 0
bw_pipe/two-cpus ipc/one-way/pipe/two-cpus 1 0
bw_unix/same-cpu ipc/one-way/unix-stream/same-cpu 1 0
bw_unix/two-cpus ipc/one-way/unix-stream/two-cpus 1 0
bw_mem/cp copy/memory 1 0
engine/cache-line ipc/round-trip/ring-spin/two-cpus 1 0
engine/futex ipc/round-trip/ring-futex/two-cpus 1 0
PAIRS
}

cross_check
