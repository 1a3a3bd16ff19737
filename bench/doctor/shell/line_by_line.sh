# Fault: dd copies a file in blocks of one byte. Each byte costs two system calls, and the kernel
# takes most of the CPU time.
#
# fixed: dd copies it in blocks of 64 KiB.
# twin: a producer writes a short line every 20 ms, and the consumer reads it at once. Only the
# producer's pace limits the rate.

set -u
export LC_ALL=C

readonly LIMIT_S=30
readonly FILE_BYTES=4500000
readonly TWIN_TIME_MS=4000
readonly PERIOD_MS=20

usage() {
  echo "usage: line_by_line.sh sick|fixed|twin SEED" >&2
  exit 2
}

# Sets `varied` to a number that differs from $1 by up to $2 percent. `state` is the state of a
# linear congruential generator.
vary() { # base, percent
  local span=$(($1 * $2 / 100))
  state=$(((state * 1103515245 + 12345) & 0x7fffffff))
  varied=$(($1 - span + (state >> 8) % (2 * span + 1)))
}

# Prints text until the reader has enough.
text() { # bytes
  yes 'a line of a text that is copied' | head -c "$1"
}

# Copies the text from file to file and prints its checksum.
copy() { # bytes, block size in bytes
  text "$1" >"$folder/from"
  dd bs="$2" if="$folder/from" of="$folder/to" 2>/dev/null
  cksum <"$folder/to"
}

# Prints a line in each period.
produce() { # lines, period in milliseconds
  local line
  for ((line = 1; line <= $1; line++)); do
    sleep "0.0$2"
    echo "line $line"
  done
}

# Reads line by line and prints the sum of their lengths.
consume() {
  local line sum=0
  while read -r line; do ((sum += ${#line})); done
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
  vary "$FILE_BYTES" 20
  local bytes=$varied
  vary "$PERIOD_MS" 40
  case $1 in
    sick) copy "$bytes" 1 ;;
    fixed) copy "$bytes" 65536 ;;
    twin) produce $((TWIN_TIME_MS / varied)) "$varied" | consume ;;
  esac
}

main "$@"
