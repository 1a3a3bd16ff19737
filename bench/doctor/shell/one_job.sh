# Fault: xargs runs independent computing commands one after the other (-P 1), so one CPU idles.
#
# fixed: xargs runs two of them at a time (-P 2).
# twin: xargs -P 2 runs long commands of the same length, so both CPUs are busy until the end.

set -u
export LC_ALL=C

readonly LIMIT_S=30
readonly COMMANDS=16
readonly TOTAL_ROUNDS=40000000
readonly TWIN_COMMANDS=4
readonly TWIN_ROUNDS=20000000

usage() {
  echo "usage: one_job.sh sick|fixed|twin SEED" >&2
  exit 2
}

# Sets `varied` to a number that differs from $1 by up to $2 percent. `state` is the state of a
# linear congruential generator.
vary() { # base, percent
  local span=$(($1 * $2 / 100))
  state=$(((state * 1103515245 + 12345) & 0x7fffffff))
  varied=$(($1 - span + (state >> 8) % (2 * span + 1)))
}

# Runs commands that compute, and adds up their results.
run_commands() { # number of processes, number of commands, rounds of each command
  seq "$2" |
    xargs -P "$1" -n 1 awk 'BEGIN {
      value = ARGV[2]
      for (i = 0; i < ARGV[1]; i++) value = (value * 16807) % 2147483647
      printf "%.0f\n", value
    }' "$3" |
    awk '{ sum += $1 } END { printf "%.0f\n", sum }'
}

main() {
  [[ $# -eq 2 && $1 =~ ^(sick|fixed|twin)$ && $2 =~ ^[0-9]+$ ]] || usage
  if [[ -z ${IN_LIMIT-} ]]; then # safety net: `timeout` ends this script and all its children
    IN_LIMIT=1 exec timeout -k 2 "$LIMIT_S" bash "$0" "$@"
  fi
  unset IN_LIMIT
  state=$((10#$2 + 1))
  vary "$COMMANDS" 40
  local commands=$varied
  vary "$TOTAL_ROUNDS" 15
  case $1 in
    sick) run_commands 1 "$commands" $((varied / commands)) ;;
    fixed) run_commands 2 "$commands" $((varied / commands)) ;;
    twin)
      vary "$TWIN_ROUNDS" 15
      run_commands 2 "$TWIN_COMMANDS" "$varied"
      ;;
  esac
}

main "$@"
