# A program in Go parses a log with GOMAXPROCS=8 in a control group whose quota is one CPU. The kernel
# stops all its threads for a part of each period.
#
# fixed: GOMAXPROCS=1, as in the quota. The throughput is that of the quota in any case.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need go

prepare() {
  GO111MODULE=off go build -o "$folder/parse_log" "$here/parse_log.go"
  split_log 1600000 8
  make_group # fails here if it is not possible
}

# Makes a control group whose processes may use one CPU, until the end of the script; sets `$group`.
make_group() {
  local root=/sys/fs/cgroup name="contend-real-$$" limit
  [[ $EUID -eq 0 ]] || skip "only root can make a control group"
  if [[ -e $root/cgroup.controllers ]]; then
    grep -qw cpu "$root/cgroup.subtree_control" || skip "the CPU controller is not enabled"
    group=$root/$name
    limit=(cpu.max '100000 100000')
  else
    group=$root/cpu/$name
    limit=(cpu.cfs_quota_us 100000)
  fi
  mkdir "$group" 2>/dev/null || skip "cannot make a control group"
  echo "${limit[1]}" >"$group/${limit[0]}" || skip "cannot set a CPU quota"
}
undo() {
  [[ -z ${group-} ]] || rmdir "$group"
}
parse() { # GOMAXPROCS
  [[ -n ${group-} ]] || make_group
  (
    echo "$BASHPID" >"$group/cgroup.procs"
    GOMAXPROCS=$1 exec "$folder/parse_log" "$folder"/log.*
  )
}
sick() { parse 8; }
fixed() { parse 1; }

run "$@"
