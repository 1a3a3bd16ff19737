# Fault: two background jobs take turns and hand over by flag files. Each of them polls for its
# flag with sleeps of 10 ms.
#
# fixed: they hand over through FIFOs, so the kernel wakes the next one at once.
# twin: a job samples the load every 100 ms while another one computes. The period is its own, and
# it ends when the other job ends.

set -u
export LC_ALL=C

readonly LIMIT_S=30
readonly TURNS=110
readonly ROUNDS=1500
readonly TWIN_ROUNDS=40000000
readonly POLL_S=0.01
readonly SAMPLE_S=0.1

usage() {
  echo "usage: sleep_wait.sh sick|fixed|twin SEED" >&2
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

# Raises and awaits flags in the form of files.
raise_file() { # flag, turn
  : >"$folder/$1.$2"
}
await_file() { # flag, turn
  until [[ -e $folder/$1.$2 ]]; do sleep "$POLL_S"; done
}

# Raises and awaits flags in the form of a line in a FIFO.
raise_fifo() { # flag, turn
  echo "$2" >&"${fifo[$1]}"
}
await_fifo() { # flag, turn
  local line
  read -r line <&"${fifo[$1]}"
}

# Opens a FIFO for each flag.
open_fifos() {
  declare -gA fifo
  local flag descriptor
  for flag in there back; do
    mkfifo "$folder/$flag"
    exec {descriptor}<>"$folder/$flag"
    fifo[$flag]=$descriptor
  done
}

# Computes and hands over; then waits until it is its turn again.
first_job() { # kind of flag, turns, rounds
  local turn value=1
  for ((turn = 0; turn < $2; turn++)); do
    mix "$3"
    "raise_$1" there "$turn"
    "await_$1" back "$turn"
  done
  echo "$value" >"$folder/first"
}

# Waits for its turn, computes and hands over.
second_job() { # kind of flag, turns, rounds
  local turn value=2
  for ((turn = 0; turn < $2; turn++)); do
    "await_$1" there "$turn"
    mix "$3"
    "raise_$1" back "$turn"
  done
  echo "$value" >"$folder/second"
}

# Runs both jobs and combines their results.
take_turns() { # kind of flag, turns, rounds
  first_job "$@" &
  second_job "$@" &
  wait
  echo "$(($(<"$folder/first") ^ $(<"$folder/second")))"
}

# Computes in one process, then leaves a mark.
compute() { # rounds
  awk -v rounds="$1" 'BEGIN {
    value = rounds
    for (i = 0; i < rounds; i++) value = (value * 16807) % 2147483647
    print value
  }'
  : >"$folder/end"
}

# Writes a sample of the load in each period.
sample() {
  local load rest
  until [[ -e $folder/end ]]; do
    read -r load rest </proc/loadavg
    echo "$load" >>"$folder/samples"
    sleep "$SAMPLE_S"
  done
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
  vary "$ROUNDS" 40
  case $1 in
    sick) take_turns file "$turns" "$varied" ;;
    fixed)
      open_fifos
      take_turns fifo "$turns" "$varied"
      ;;
    twin)
      vary "$TWIN_ROUNDS" 15
      sample &
      compute "$varied" &
      wait
      ;;
  esac
}

main "$@"
