# Two workers in Python take a password out of a queue, hash it and store the result in one SQLite
# database (WAL mode). Each hashes inside of its transaction, so that the other one finds the database
# locked, sleeps for up to 100 ms and tries again, up to the busy time-out.
#
# fixed: the workers hash first, and store 50 results in one transaction.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need /usr/bin/python3

prepare() { :; }
sick() { /usr/bin/python3 "$here/hash_passwords.py" "$folder" 1; }
fixed() { /usr/bin/python3 "$here/hash_passwords.py" "$folder" 50; }

run "$@"
