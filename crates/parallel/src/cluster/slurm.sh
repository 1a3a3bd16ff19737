#!/bin/sh
# Runs parts of a job of contend as a task of Slurm.
#
# Usage: sbatch --array=0-N slurm.sh WORK CONTEND BATCH JOBS MEMORY
#
# WORK is the work directory of the job, and CONTEND the program contend. The file WORK/todo.BATCH has the indices of the
# parts to run. A task takes a part by creating a directory for it, which only one task can do, and takes the next one
# until none is left. So the number of tasks does not depend on the number of parts.
#
# Slurm only schedules: `contend part` reads the files of the job by their paths, and writes the output and the report of the
# attempt into WORK. Exit codes of the commands in the pipeline are part of the report.

work=$1 contend=$2 batch=$3 jobs=$4 memory=$5
task=${SLURM_ARRAY_TASK_ID:-0} tasks=${SLURM_ARRAY_TASK_COUNT:-1}
# Different for each batch and task, and no two attempts at a part have the same.
attempt=$((batch * 4294967296 + task))
# Number of attempts that may fail one after the other. Then the parts are left to other machines.
most=3

cd "$work" || exit
todo=todo.$batch taken=taken.$batch failed=0
mkdir -p "$taken" || exit
# Each task begins at another place of the list, so that few of them try to take the same part.
first=$(($(wc -l <"$todo") * task / tasks))
{
    tail -n "+$((first + 1))" "$todo"
    head -n "$first" "$todo"
} | while read -r part; do
    if ! [ -e "$taken/$part" ] && mkdir "$taken/$part"; then
        :
    elif [ -e "$taken/$part" ]; then
        continue # another task has taken it
    else
        exit 1
    fi
    if "$contend" part --plan "$work/job.json" --part "$part" --attempt "$attempt" \
        --jobs "$jobs" --memory "$memory" </dev/null >/dev/null 2>"$part.$attempt.log"; then
        failed=0
    else
        failed=$((failed + 1))
        [ "$failed" -lt "$most" ] || exit 1
        # Other machines get time to take the next part.
        sleep "$((failed * 3))"
    fi
done
