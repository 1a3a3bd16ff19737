# Fault: one stage of a pipeline, sed with many expressions, needs one CPU all the time. The stages
# before and after it wait for it.
#
# fixed: two pipelines process one half of the lines each, so two seds share the work.
# twin: a pipeline of two stages that compute equally long. Both CPUs are busy.

set -u
export LC_ALL=C

readonly LIMIT_S=30
readonly LINES_OF_INPUT=1300000
readonly TWIN_LINES=300000
readonly TWIN_ROUNDS=100
readonly EDITS='
  s/([a-f]+)[^,]*,([0-9]+)/\2,\1/
  s/(12|34|56|78|90)+/<&>/g
  s/[aeiou][^aeiou]*,/:/g
  s/([0-9])[0-9]*([0-9]),/\2\1;/g
  s/(ab|cd|ef)*[g-z]+$/!/
'

usage() {
  echo "usage: slow_stage.sh sick|fixed|twin SEED" >&2
  exit 2
}

# Sets `varied` to a number that differs from $1 by up to $2 percent. `state` is the state of a
# linear congruential generator.
vary() { # base, percent
  local span=$(($1 * $2 / 100))
  state=$(((state * 1103515245 + 12345) & 0x7fffffff))
  varied=$(($1 - span + (state >> 8) % (2 * span + 1)))
}

# Prints lines with pseudo-random fields.
input() { # number of the first line, number of the last line
  awk -v first="$1" -v last="$2" 'BEGIN {
    for (i = first; i <= last; i++) {
      x = (i * 16807) % 2147483647
      print "abcdefgh" x ",field" x * 3 ",end" i ",cdab" x % 9973 ",efghij"
    }
  }'
}

# Edits each line; this is the work.
edit() {
  sed -E "$EDITS"
}

# Prints the number of lines and characters.
count() {
  awk '{ characters += length($0) } END { printf "%d %.0f\n", NR, characters }'
}

# Edits a range of lines in one pipeline.
process() { # number of the first line, number of the last line
  input "$1" "$2" | edit | count
}

# Processes two halves at the same time.
process_halves() { # lines
  process 1 $(($1 / 2)) &
  process $(($1 / 2 + 1)) "$1" &
  wait
}

# Adds up the counts of all pipelines.
add_counts() {
  awk '{ lines += $1; characters += $2 } END { printf "%d %.0f\n", lines, characters }'
}

# Two stages that mix each number for the same time.
mix_numbers() { # rounds
  awk -v rounds="$1" '{
    value = $1
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
  local lines=$varied
  case $1 in
    sick) process 1 "$lines" | add_counts ;;
    fixed) process_halves "$lines" | add_counts ;;
    twin)
      vary "$TWIN_LINES" 20
      seq "$varied" | mix_numbers "$TWIN_ROUNDS" | mix_numbers "$TWIN_ROUNDS" | cksum
      ;;
  esac
}

main "$@"
