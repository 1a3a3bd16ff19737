# xz with two threads compresses a file.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need xz

prepare() { access_log 250000 >"$folder/log"; }
twin() { xz -6 -T2 --block-size=1MiB --stdout "$folder/log" >/dev/null; }

run "$@"
