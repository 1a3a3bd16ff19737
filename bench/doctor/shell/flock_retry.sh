# Fault: two background jobs share a lock file. Each one tries to lock it without blocking, and
# sleeps for 10 ms whenever the other one holds it. The lock is often free while a job sleeps.
#
# fixed: they block in flock, and the kernel wakes the next one as soon as the file is free.
# twin: a reader waits in a FIFO for lines of a writer that thinks between them.

set -u
export LC_ALL=C

readonly LIMIT_S=30
readonly TURNS=110
readonly LOCKED_ROUNDS=4000
readonly PREPARE_ROUNDS=4000
readonly POLL_S=0.01
readonly TWIN_TIME_MS=4000
readonly THINK_MS=40

usage() {
  echo "usage: flock_retry.sh sick|fixed|twin SEED" >&2
  exit 2
}

# Sets `varied` to a number that differs from $1 by up to $2 percent. `state` is the state of a
# linear congruential generator.
vary() { # base, percent
  local span=$(($1 * $2 / 100))
  state=$(((state * 1103515245 + 12345) & 0x7fffffff))
  varied=$(($1 - span + (state >> 8) % (2 * span + 1)))
}

# Mixes the bits of `value`; this is the work.
mix() { # rounds
  local round
  for ((round = 0; round < $1; round++)); do
    ((value = (value * 1103515245 + 12345) & 0x7fffffff))
  done
}

# Waits for the lock on descriptor 9 by trying again and again.
lock_by_retry() {
  until flock -n 9; do sleep "$POLL_S"; done
}

# Waits for the lock on descriptor 9 in the kernel.
lock_by_blocking() {
  flock 9
}

# Adds `value` to the number in the shared file.
add_value() {
  local total
  read -r total <"$folder/total"
  echo $(((total + value) & 0x7fffffff)) >"$folder/total"
}

# Prepares values and adds them under the lock; each turn has another length.
job() { # kind of lock, first value, turns, rounds under the lock, rounds before it
  local turn value=$2 state=$2 varied
  for ((turn = 0; turn < $3; turn++)); do
    vary "$5" 40
    mix "$varied"
    vary "$4" 40
    {
      "lock_by_$1"
      mix "$varied"
      add_value
    } 9>"$folder/lock"
  done
}

# Runs both jobs and prints the total.
share_file() { # kind of lock, turns, rounds under the lock, rounds before it
  echo 0 >"$folder/total"
  job "$1" 1 "$2" "$3" "$4" &
  job "$1" 2 "$2" "$3" "$4" &
  wait
  cat "$folder/total"
}

# Writes a line after each pause.
write_lines() { # lines, pause in milliseconds
  local line
  for ((line = 1; line <= $1; line++)); do
    sleep "0.0$2"
    echo "$line"
  done
}

# Reads the lines and prints their sum.
add_lines() {
  local line sum=0
  while read -r line; do ((sum += line)); done
  echo "$sum"
}

main() {
  [[ $# -eq 2 && $1 =~ ^(sick|fixed|twin)$ && $2 =~ ^[0-9]+$ ]] || usage
  if [[ -z ${IN_LIMIT-} ]]; then # safety net: `timeout` ends this script and all its children
    IN_LIMIT=1 exec timeout -k 2 "$LIMIT_S" bash "$0" "$@"
  fi
  unset IN_LIMIT
  state=$((10#$2 + 1))
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  trap 'exit 1' TERM INT
  vary "$TURNS" 20
  local turns=$varied
  vary "$LOCKED_ROUNDS" 25
  local locked=$varied
  vary "$PREPARE_ROUNDS" 25
  case $1 in
    sick) share_file retry "$turns" "$locked" "$varied" ;;
    fixed) share_file blocking "$turns" "$locked" "$varied" ;;
    twin)
      vary "$THINK_MS" 40
      mkfifo "$folder/lines"
      write_lines $((TWIN_TIME_MS / varied)) "$varied" >"$folder/lines" &
      add_lines <"$folder/lines"
      wait
      ;;
  esac
}

main "$@"
