# Four threads in Java count the words of a log in one map, which is a Collections.synchronizedMap.
#
# fixed: a ConcurrentHashMap.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need java javac

prepare() {
  javac -d "$folder" "$here/CountRequests.java"
  split_log 600000 4
}
count() { # kind of map
  java -XX:+UseSerialGC -Xmx512m -cp "$folder" CountRequests "$1" "$folder"/log.*
}
sick() { count synchronized; }
fixed() { count concurrent; }

run "$@"
