# Counts words in two threads, in a program that is linked with musl. Its allocator has one lock for
# all threads, and the program allocates each word.
#
# fixed: the same program, linked with glibc, which has arenas.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need musl-gcc gcc

prepare() {
  musl-gcc -O2 -pthread -o "$folder/sick" "$here/count_words.c"
  gcc -O2 -pthread -o "$folder/fixed" "$here/count_words.c"
  access_log 600000 >"$folder/log"
}
sick() { "$folder/sick" 2 "$folder/log"; }
fixed() { "$folder/fixed" 2 "$folder/log"; }

run "$@"
