# Fault: a loop starts two commands and two subshells for each line of its input, only to cut a
# field out of the line. Starting and ending processes takes nearly all the time.
#
# fixed: one awk cuts the fields of all lines.
# twin: one long awk computes. It starts no process and has nothing to share.

set -u
export LC_ALL=C

readonly LIMIT_S=30
readonly LINES_OF_INPUT=2000
readonly TWIN_ROUNDS=40000000

usage() {
  echo "usage: loop_of_commands.sh sick|fixed|twin SEED" >&2
  exit 2
}

# Sets `varied` to a number that differs from $1 by up to $2 percent. `state` is the state of a
# linear congruential generator.
vary() { # base, percent
  local span=$(($1 * $2 / 100))
  state=$(((state * 1103515245 + 12345) & 0x7fffffff))
  varied=$(($1 - span + (state >> 8) % (2 * span + 1)))
}

# Prints lines with three fields.
input() { # lines
  seq "$1" | awk '{ print "name" $1 "," $1 * 7919 % 1009 "," $1 }'
}

# Adds the second fields; starts processes for each line.
add_by_commands() {
  local line field sum=0
  while read -r line; do
    field=$(echo "$line" | cut -d, -f2)
    ((sum += field))
  done
  echo "$sum"
}

# Adds the second fields in one process.
add_by_awk() {
  awk -F, '{ sum += $2 } END { print sum + 0 }'
}

# Computes in one process.
compute() { # rounds
  awk -v rounds="$1" 'BEGIN {
    value = rounds
    for (i = 0; i < rounds; i++) value = (value * 16807) % 2147483647
    print value
  }'
}

main() {
  [[ $# -eq 2 && $1 =~ ^(sick|fixed|twin)$ && $2 =~ ^[0-9]+$ ]] || usage
  if [[ -z ${IN_LIMIT-} ]]; then # safety net: `timeout` ends this script and all its children
    IN_LIMIT=1 exec timeout -k 2 "$LIMIT_S" bash "$0" "$@"
  fi
  unset IN_LIMIT
  state=$((10#$2 + 1))
  vary "$LINES_OF_INPUT" 20
  case $1 in
    sick) input "$varied" | add_by_commands ;;
    fixed) input "$varied" | add_by_awk ;;
    twin)
      vary "$TWIN_ROUNDS" 15
      compute "$varied"
      ;;
  esac
}

main "$@"
