# GNU parallel starts a job for each of many small files, which takes a few milliseconds.
#
# fixed: `parallel -X` gives each job many files.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need parallel sha256sum

prepare() {
  mkdir "$folder/files"
  access_log 12000 | split --suffix-length 4 --lines 10 - "$folder/files/"
}
hash_files() { # options of parallel
  find "$folder/files" -type f | parallel --will-cite -j2 "$@" sha256sum | sort | sha256sum
}
sick() { hash_files; }
fixed() { hash_files -X; }

run "$@"
