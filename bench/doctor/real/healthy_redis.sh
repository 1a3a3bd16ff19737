# redis-server waits for clients; one asks something now and then.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need redis-server redis-cli

prepare() { :; }
twin() {
  local i
  redis-server --port 0 --unixsocket "$folder/socket" --save '' --dir "$folder" >/dev/null &
  for ((i = 0; i < 8; i++)); do
    sleep 0.5
    redis-cli -s "$folder/socket" incr requests >/dev/null
  done
  redis-cli -s "$folder/socket" shutdown nosave
  wait
}

run "$@"
