# Shared parts of the scripts in this folder, which source it. A script defines `prepare`, which makes
# inputs and programs in `$folder`, and the variants; then it calls `run "$@"`.

set -eu
export LC_ALL=C

readonly LIMIT_S=60
# shellcheck disable=SC2034 # the scripts use it
here=$(dirname "${BASH_SOURCE[0]}")

# Ends the script with exit status 3.
skip() { # reason
  echo "${0##*/}: $1" >&2
  exit 3
}

# Skips the script if a program is missing.
need() { # programs
  local program
  for program; do
    command -v "$program" >/dev/null || skip "$program is missing"
  done
}

# Prints lines as in the log of a web server.
access_log() { # lines
  awk -v lines="$1" 'BEGIN {
    split("GET GET GET GET POST HEAD", method, " ")
    split("200 200 200 200 304 404 500", status, " ")
    split("index products/list products/detail cart images/logo.png static/app.js", page, " ")
    value = 1
    for (i = 0; i < lines; i++) {
      value = (value * 16807) % 2147483647
      printf "10.%d.%d.%d - - [12/Mar/2024:%02d:%02d:%02d +0000] \"%s /%s?id=%d&q=w%x HTTP/1.1\" %d %d\n",
        value % 4, value % 251, value % 199, i / 3600 % 24, i / 60 % 60, i % 60, method[value % 6 + 1],
        page[value % 5 + 1], value % 5003, value % 65521, status[value % 7 + 1], value % 20011
    }
  }'
}

# Splits the log of a web server into equal files, `$folder/log.00` and so on.
split_log() { # lines, files
  access_log "$1" | split --numeric-suffixes --lines $((($1 + $2 - 1) / $2)) - "$folder/log."
}

# Undoes what the script has done outside of its folder, if it defines `undo`, and removes the folder if
# it is a temporary one.
clean_up() {
  if declare -F undo >/dev/null; then undo; fi
  [[ -n ${REAL_FOLDER-} ]] || rm -rf "$folder"
}

# Runs a variant. Inputs and programs are made in a temporary folder, or in $REAL_FOLDER/SCRIPT, which
# stays: there, `prepare` makes them before.
run() { # variant, seed (without effect)
  if [[ $# -lt 1 || ! $1 =~ ^(prepare|sick|fixed|twin)$ ]] || ! declare -F "$1" >/dev/null; then
    echo "usage: ${0##*/} prepare|sick|fixed|twin" >&2
    exit 2
  fi
  if [[ -z ${IN_LIMIT-} ]]; then # safety net: `timeout` ends this script and all its children
    IN_LIMIT=1 exec timeout -k 2 "$LIMIT_S" bash "$0" "$@"
  fi
  unset IN_LIMIT
  trap 'exit 1' TERM INT
  if [[ -n ${REAL_FOLDER-} ]]; then
    folder=$REAL_FOLDER/$(basename "$0" .sh)
    mkdir -p "$folder"
  else
    folder=$(mktemp -d)
  fi
  trap clean_up EXIT
  if [[ ! -e $folder/ready ]]; then
    prepare
    : >"$folder/ready"
  fi
  [[ $1 == prepare ]] || "$1"
}
