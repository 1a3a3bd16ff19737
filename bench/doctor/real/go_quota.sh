# A program in Go parses a log with GOMAXPROCS=8 in a control group whose quota is one CPU. The kernel
# stops all its threads for a part of each period.
#
# fixed: a quota of two CPUs. GOMAXPROCS=1 would not be faster: the throughput is that of the quota.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need go

prepare() {
  GO111MODULE=off go build -o "$folder/parse_log" "$here/parse_log.go"
  split_log 1600000 8
  make_group 1 # fails here if it is not possible
}

# Makes a control group whose processes may use a number of CPUs, until the end of the script; sets
# `$group`.
make_group() { # CPUs
  local root=/sys/fs/cgroup name="contend-real-$$" limit
  [[ $EUID -eq 0 ]] || skip "only root can make a control group"
  if [[ -e $root/cgroup.controllers ]]; then
    grep -qw cpu "$root/cgroup.subtree_control" || skip "the CPU controller is not enabled"
    group=$root/$name
    limit=(cpu.max "$1"'00000 100000')
  else
    group=$root/cpu/$name
    limit=(cpu.cfs_quota_us "$1"00000)
  fi
  mkdir "$group" 2>/dev/null || skip "cannot make a control group"
  echo "${limit[1]}" >"$group/${limit[0]}" || skip "cannot set a CPU quota"
}
undo() {
  [[ -z ${group-} ]] || rmdir "$group"
}
parse() { # CPUs of the quota
  [[ -z ${group-} ]] || rmdir "$group" # of `prepare`
  make_group "$1"
  (
    echo "$BASHPID" >"$group/cgroup.procs"
    GOMAXPROCS=8 exec "$folder/parse_log" "$folder"/log.*
  )
}
sick() { parse 1; }
fixed() { parse 2; }

run "$@"
