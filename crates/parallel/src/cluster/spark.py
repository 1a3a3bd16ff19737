"""Runs parts of a job of contend as tasks of Apache Spark.

Usage: spark-submit --files /PATH/NAME spark.py JOB NAME BATCH JOBS MEMORY SHARED

NAME is the file name of the program contend, which Spark copies to its workers. The file todo.BATCH next to the file JOB has
the indices of the parts to run, one in each line. SHARED is what the workers share: the `directory` of JOB, or a `store`. Then each
task gets the contents of JOB, which has secrets, from this program, which must run on the machine that has JOB.

Spark only schedules: each task starts `contend part`, which reads the files of the job by their paths, and writes the
output and the report of the attempt next to the file JOB, or to the store. A task fails if that program fails, and Spark then repeats it,
perhaps on another machine. Exit codes of the commands in the pipeline are part of the report, and fail no task.
"""

import os
import random
import subprocess
import sys
import tempfile

from pyspark import SparkContext, SparkFiles, TaskContext

# Number of bytes from the end of a log that the error of a task shows.
SHOWN_BYTES = 2000
# Number of bits of the numbers that Spark gives to attempts of an application.
ATTEMPT_BITS = 20


def attempt_at(job, text, name, batch, words):
    """Returns a function that runs an attempt at a part. `text` has the contents of the job if the workers do not share its file."""
    # Another application may run the same batch, such as one that a person has started.
    application = random.randrange(1 << (32 - ATTEMPT_BITS))

    def run(part):
        if text is None:
            run_in(os.path.dirname(job), part, ["--plan", job])
            return
        # Spark removes its local directories when the application ends, also if this process is killed.
        local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None
        with tempfile.TemporaryDirectory(dir=local) as scratch:
            plan = os.path.join(scratch, "job.json")
            with open(plan, "wb", opener=private) as file:
                file.write(text.value)
            run_in(scratch, part, ["--plan", plan, "--scratch", scratch])

    def run_in(folder, part, place):
        # Unique in this application, also if Spark repeats a task or runs it twice at the same time.
        attempt = TaskContext.get().taskAttemptId()
        number = (batch << 32) + (application << ATTEMPT_BITS) + attempt % (1 << ATTEMPT_BITS)
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


def private(path, flags):
    """Opens a file that only this user can read."""
    return os.open(path, flags, 0o600)


def main():
    job, name, batch, jobs, memory, shared = sys.argv[1:]
    with open(os.path.join(os.path.dirname(job), f"todo.{batch}"), encoding="ascii") as lines:
        parts = [int(line) for line in lines]
    context = SparkContext(appName=f"contend {os.path.basename(os.path.dirname(job))}")
    text = None
    if shared == "store":
        with open(job, "rb") as file:
            text = context.broadcast(file.read())
    words = ["--jobs", jobs, "--memory", memory]
    run = attempt_at(job, text, name, int(batch), words)
    context.parallelize(parts, len(parts)).foreach(run)
    context.stop()


if __name__ == "__main__":
    main()
