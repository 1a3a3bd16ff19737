# A loop in bash takes three fields out of each line of a log with cut, sed and basename.
#
# fixed: one awk.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need awk

prepare() { access_log 600 >"$folder/log"; }
sick() {
  local line client path page
  while read -r line; do
    client=$(echo "$line" | cut -d' ' -f1)
    # shellcheck disable=SC2001 # that is the fault
    path=$(echo "$line" | sed 's/[^"]*"[A-Z]* \([^ ?]*\).*/\1/')
    page=$(basename "$path" .png)
    echo "$client $page"
  done <"$folder/log" | sort | uniq -c | wc -l
}
fixed() {
  awk '{
    sub(/\?.*/, "", $7)
    count = split($7, part, "/")
    sub(/\.png$/, "", part[count])
    print $1, part[count]
  }' "$folder/log" | sort | uniq -c | wc -l
}

run "$@"
