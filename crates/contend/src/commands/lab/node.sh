#!/bin/sh
# Runs experiments on a node of Slurm.
#
# Usage: srun sh DIR/node.sh WORD...
#
# DIR is the work directory, which all nodes share. DIR/contend runs with the words, and leaves its record in DIR/NODE.json and
# its messages in DIR/NODE.log. DIR/step has the ID of the step, by which contend ends it, and DIR/count the number of nodes.

directory=${0%/*}
node=${SLURMD_NODENAME:-$(hostname)}
# Two tasks on a node would disturb each other.
set -C
: >"$directory/$node.log" || exit
set +C
printf '%s.%s' "$SLURM_JOB_ID" "$SLURM_STEP_ID" >"$directory/$node.step"
mv "$directory/$node.step" "$directory/step"
printf '%s\n' "$SLURM_STEP_NUM_NODES" >"$directory/$node.count"
mv "$directory/$node.count" "$directory/count"
# The directory of the machine that started the run need not exist here.
[ -d "$TMPDIR" ] || unset TMPDIR
exec "$directory/contend" "$@" --json "$directory/$node.json" </dev/null >/dev/null 2>"$directory/$node.log"
