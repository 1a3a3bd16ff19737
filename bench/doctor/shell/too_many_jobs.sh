# Fault: xargs runs 32 jobs at a time on two CPUs. Each job walks through its own memory in a random
# order. The memory of two jobs fits into the caches near the CPUs, that of 32 jobs does not.
#
# fixed: xargs runs two jobs at a time (-P 2).
# twin: xargs -P 2 runs the same kind of job, as many at a time as there are CPUs. There are many short ones, so
# that none of them is left alone for long, even if some are slower than others.

set -u
export LC_ALL=C

readonly LIMIT_S=30
readonly JOBS=32
readonly CELLS=16000
readonly STEPS=1000000
readonly TWIN_JOBS=16
readonly TWIN_STEPS=2500000

usage() {
  echo "usage: too_many_jobs.sh sick|fixed|twin SEED" >&2
  exit 2
}

# Sets `varied` to a number that differs from $1 by up to $2 percent. `state` is the state of a
# linear congruential generator.
vary() { # base, percent
  local span=$(($1 * $2 / 100))
  state=$(((state * 1103515245 + 12345) & 0x7fffffff))
  varied=$(($1 - span + (state >> 8) % (2 * span + 1)))
}

# Runs jobs and adds up their results.
run_jobs() { # number of processes, number of jobs, cells of memory, steps
  seq "$2" |
    xargs -P "$1" -n 1 awk 'BEGIN {
      cells = ARGV[1]
      for (i = 0; i < cells; i++) memory[i] = i
      value = ARGV[3]
      for (i = cells - 1; i > 0; i--) { # a shuffle that leaves one cycle through all cells
        value = (value * 16807) % 2147483647
        swap = memory[i]
        memory[i] = memory[value % i]
        memory[value % i] = swap
      }
      place = 0
      for (i = 0; i < ARGV[2]; i++) place = memory[place]
      print place
    }' "$3" "$4" |
    awk '{ sum += $1 } END { printf "%.0f\n", sum }'
}

main() {
  [[ $# -eq 2 && $1 =~ ^(sick|fixed|twin)$ && $2 =~ ^[0-9]+$ ]] || usage
  if [[ -z ${IN_LIMIT-} ]]; then # safety net: `timeout` ends this script and all its children
    IN_LIMIT=1 exec timeout -k 2 "$LIMIT_S" bash "$0" "$@"
  fi
  unset IN_LIMIT
  state=$((10#$2 + 1))
  vary "$CELLS" 20
  local cells=$varied
  vary "$STEPS" 20
  case $1 in
    sick) run_jobs 32 "$JOBS" "$cells" "$varied" ;;
    fixed) run_jobs 2 "$JOBS" "$cells" "$varied" ;;
    twin)
      vary "$TWIN_STEPS" 15
      run_jobs 2 "$TWIN_JOBS" "$cells" "$varied"
      ;;
  esac
}

main "$@"
