#!/usr/bin/env python3
"""A `spark-submit` for tests with many jobs, which keeps one application of Apache Spark running for all of them.

Usage: spark_submit.py --serve SOCKET MASTER CONTEND
       spark-submit [OPTION...] PATH/spark.py ARGUMENT...

The first form starts the application, and runs programs in it, one after the other, until standard input ends. The second form,
by a link of that name next to SOCKET, has a program run, and ends with its exit code. Starting an application takes some seconds;
that is all the difference to Spark's own program.
"""

import os
import runpy
import socket
import sys
import threading
import traceback

SOCKET_NAME = "spark.socket"


class Shared:
    """A SparkContext that programs cannot stop."""

    def __init__(self, context):
        self.context = context

    def __getattr__(self, name):
        return getattr(self.context, name)

    def stop(self):
        pass


def serve(path, master, contend):
    import pyspark

    context = pyspark.SparkContext(master=master, appName="tests of contend")
    context.addFile(contend)
    shared = Shared(context)
    pyspark.SparkContext = lambda **_: shared
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    print("ready", flush=True)
    threading.Thread(target=end_with_input, daemon=True).start()
    while True:
        client, _ = listener.accept()
        with client:
            words = client.makefile(encoding="utf-8").readline().rstrip("\n").split("\t")
            sys.argv = words
            try:
                runpy.run_path(words[0], run_name="__main__")
                answer = b"0\n"
            except BaseException:
                traceback.print_exc()
                answer = b"1\n"
            try:
                client.sendall(answer)
            except OSError:
                pass  # the client was ended, because all parts are complete


def end_with_input():
    sys.stdin.read()
    os._exit(0)


def submit(words):
    program = next(index for index, word in enumerate(words) if word.endswith("/spark.py"))
    path = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), SOCKET_NAME)
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        with server.makefile("rw", encoding="utf-8") as stream:
            stream.write("\t".join(words[program:]) + "\n")
            stream.flush()
            return int(stream.readline() or "1")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:])
    else:
        sys.exit(submit(sys.argv[1:]))
