# Counts the tokens of Python's own library, in four threads of a ThreadPoolExecutor. Only one thread
# at a time can run code in Python.
#
# fixed: a ProcessPoolExecutor with two processes.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need /usr/bin/python3

prepare() { :; }
sick() { /usr/bin/python3 "$here/count_tokens.py" threads 4; }
fixed() { /usr/bin/python3 "$here/count_tokens.py" processes 2; }

run "$@"
