"""Runs parts of a job of contend as tasks of Apache Spark.

Usage: spark-submit --files /PATH/NAME[,JOB] spark.py JOB NAME BATCH JOBS MEMORY SHARED

NAME is the file name of the program contend, which Spark copies to its workers. The file todo.BATCH next to the file JOB has
the indices of the parts to run, one in each line. SHARED is what the workers share: the `directory` of JOB, or a `store`; then
Spark copies JOB, too.

Spark only schedules: each task starts `contend part`, which reads the files of the job by their paths, and writes the
output and the report of the attempt next to the file JOB, or to the store. A task fails if that program fails, and Spark then repeats it,
perhaps on another machine. Exit codes of the commands in the pipeline are part of the report, and fail no task.
"""

import os
import subprocess
import sys
import tempfile

from pyspark import SparkContext, SparkFiles, TaskContext

# Number of bytes from the end of a log that the error of a task shows.
SHOWN_BYTES = 2000


def attempt_at(job, name, batch, words, shared):
    """Returns a function that runs an attempt at a part."""

    def run(part):
        if shared == "directory":
            run_in(os.path.dirname(job), part, ["--plan", job])
            return
        # Spark removes this directory at the end of the application, also if this process is killed.
        with tempfile.TemporaryDirectory(dir=SparkFiles.getRootDirectory()) as scratch:
            run_in(scratch, part, ["--plan", SparkFiles.get(os.path.basename(job)), "--scratch", scratch])

    def run_in(folder, part, place):
        # Unique in this application, also if Spark repeats a task or runs it twice at the same time.
        number = (batch << 32) + TaskContext.get().taskAttemptId()
        program = SparkFiles.get(name)
        command = [program, "part", "--part", str(part), "--attempt", str(number), *words, *place]
        path = os.path.join(folder, f"{part}.{number}.log")
        with open(path, "w+b") as log:
            ended = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, check=False
            )
            if ended.returncode != 0:
                log.seek(max(0, log.tell() - SHOWN_BYTES))
                message = log.read().decode(errors="replace")
                raise RuntimeError(f"part {part}: exit code {ended.returncode}: {message}")

    return run


def main():
    job, name, batch, jobs, memory, shared = sys.argv[1:]
    with open(os.path.join(os.path.dirname(job), f"todo.{batch}"), encoding="ascii") as lines:
        parts = [int(line) for line in lines]
    context = SparkContext(appName=f"contend {os.path.basename(os.path.dirname(job))}")
    words = ["--jobs", jobs, "--memory", memory]
    run = attempt_at(job, name, int(batch), words, shared)
    context.parallelize(parts, len(parts)).foreach(run)
    context.stop()


if __name__ == "__main__":
    main()
