# A backup: tar writes logs into a pipe, and one gzip -9 compresses them.
#
# fixed: pigz -9, which compresses in two threads.
# twin: gzip alone compresses a file.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need tar gzip pigz

prepare() { split_log 600000 20; }
sick() { tar --create --directory "$folder" . | gzip -9 >/dev/null; }
fixed() { tar --create --directory "$folder" . | pigz -9 -p2 >/dev/null; }
twin() { cat "$folder"/log.* >"$folder/all" && gzip -9 <"$folder/all" >/dev/null; }

run "$@"
