# sort with two threads sorts a large file.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need sort

prepare() { access_log 3000000 >"$folder/log"; }
twin() { sort --parallel=2 --buffer-size=512M --key=7 --output=/dev/null "$folder/log"; }

run "$@"
