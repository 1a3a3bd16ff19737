# Compares measurements of `contend lab` with those of other programs, in alternation. The scripts
# `cross-check.sh` in the subfolders source this file, define the functions `theirs` and `ours`, which
# record names and values, and `pairs`, which prints what to compare, and then call `cross_check`.
#
# Usage of those scripts: cross-check.sh [ROUNDS]. CONTEND=FILE selects another contend than the one
# built here.
set -eu
rounds=${1:-5}
here=$(cd "$(dirname "$0")/../.." && pwd)
contend=${CONTEND:-$here/target/dist/contend}
lmbench=$(dirname "$(ls /usr/lib/lmbench/bin/*/lat_pipe 2>/dev/null | head -n 1)")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Records a value of the other program: name, and time in nanoseconds.
note() { [ -n "$2" ] && echo "$1 $2" >>"$folder/round"; return 0; }
lm() { # scheduling, program and arguments; the last number it prints, in microseconds
  scheduling=$1
  shift
  [ -x "$lmbench/$1" ] || return 0
  LMBENCH_SCHED=$scheduling timeout -s KILL 60 "$lmbench/$@" 2>&1 |
    awk '{ for (i = 1; i <= NF; i++) if ($i ~ /^[0-9.]+$/) last = $i } END { if (last != "") print last }'
}
has() { command -v "$1" >/dev/null; }

# Records the medians of the lab's cases. Takes the names of the parameters that distinguish them,
# then contend's arguments.
measure() { # names of parameters, arguments
  names=$1
  shift
  "$contend" lab run --no-store --no-progress --json "$folder/ours.json" "$@" >/dev/null
  jq -r --arg names "$names" '.cases[] | select(.median != null) | . as $case
    | [$names | split(" ")[] | $case.parameters[.] // empty | tostring] as $values
    | "\([$case.experiment] + $values | join("/")) \(.median)"' "$folder/ours.json" >>"$folder/round"
}

# Runs all rounds, and prints the medians of both values and of their ratio in each round. Each
# line of `pairs` has the names of the other program's value and of the lab's value, a factor for the
# lab's value, and a number of nanoseconds to add to it.
cross_check() {
  : >"$folder/all"
  round=1
  while [ "$round" -le "$rounds" ]; do
    : >"$folder/round"
    if [ $((round % 2)) -eq 1 ]; then theirs; ours; else ours; theirs; fi
    sed "s/^/$round /" "$folder/round" >>"$folder/all"
    round=$((round + 1))
  done
  pairs >"$folder/pairs"
  awk -v pairs="$folder/pairs" '
  function median(list, n,   i, j, t) {
    for (i = 2; i <= n; i++) for (j = i; j > 1 && list[j] < list[j - 1]; j--) {
      t = list[j]; list[j] = list[j - 1]; list[j - 1] = t
    }
    return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
  }
  { value[$1, $2] = $3; if ($1 > rounds) rounds = $1 }
  END {
    printf "%-26s %-26s %12s %12s %7s\n", "theirs", "ours", "ns", "ns", "ratio"
    while ((getline line < pairs) > 0) {
      split(line, f, " ")
      n = 0
      for (round = 1; round <= rounds; round++)
        if (value[round, f[1]] > 0 && (round, f[2]) in value) {
          n++
          theirs[n] = value[round, f[1]]
          ours[n] = f[3] * value[round, f[2]] + f[4]
          ratio[n] = ours[n] / theirs[n]
        }
      if (n) printf "%-26s %-26s %12.1f %12.1f %7.3f\n", f[1], f[2], median(theirs, n), median(ours, n), median(ratio, n)
    }
  }' "$folder/all"
}
