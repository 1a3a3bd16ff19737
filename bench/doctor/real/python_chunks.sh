# Normalises the addresses of a log with multiprocessing.Pool.map and chunksize=1: each address is a
# message of its own.
#
# fixed: the chunk size that map chooses itself.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need /usr/bin/python3

prepare() { access_log 160000 >"$folder/log"; }
sick() { /usr/bin/python3 "$here/normalise_urls.py" "$folder/log" 1; }
fixed() { /usr/bin/python3 "$here/normalise_urls.py" "$folder/log"; }

run "$@"
