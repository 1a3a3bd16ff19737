# xargs compresses logs with xz, one after the other.
#
# fixed: xargs -P2.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need xz xargs

prepare() { split_log 120000 12; }
compress() { # number of processes
  printf '%s\0' "$folder"/log.?? | xargs -0 -n1 -P"$1" xz -6 --keep --force
}
sick() { compress 1; }
fixed() { compress 2; }

run "$@"
