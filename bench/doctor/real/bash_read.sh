# A loop in bash adds up the bytes of the answers in a log. `read` takes one byte at a time from a pipe,
# because it must not read beyond the line.
#
# fixed: one awk.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need awk

prepare() { access_log 100000 >"$folder/log"; }
sick() {
  local line sum=0
  grep -v ' 500 ' "$folder/log" | {
    while read -r line; do sum=$((sum + ${line##* })); done
    echo "$sum"
  }
}
fixed() { grep -v ' 500 ' "$folder/log" | awk '{ sum += $NF } END { print sum }'; }

run "$@"
