# A server in Node.js checks passwords with pbkdf2Sync, in its event loop, for a client with eight
# connections.
#
# fixed: pbkdf2, which computes in the thread pool.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need node

prepare() { :; }
serve() { # function of the server
  node "$here/logins.mjs" "$1" "$folder/socket" &
  node "$here/logins.mjs" client "$folder/socket" 100
  wait
}
sick() { serve pbkdf2Sync; }
fixed() { serve pbkdf2; }

run "$@"
