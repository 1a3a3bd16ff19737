# pigz with 16 threads on two CPUs compresses a file. Two threads would not be faster, because each block
# takes long.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need pigz

prepare() { access_log 900000 >"$folder/log"; }
twin() { pigz -9 -p16 <"$folder/log" >/dev/null; }

run "$@"
