"""Makes a thread wait for each primitive of Python or, if asked to, two threads compute. The thread's name
says which. Ends with its standard input, as its child does."""

import fcntl
import os
import queue
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time

HOUR = 3600


def start(name, wait):
    def run():
        # Python names threads of the operating system since version 3.14.
        with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as comm:
            comm.write(name)
        wait()
        os._exit(1)

    threading.Thread(target=run, daemon=True).start()


def compute():
    while True:
        pass


def wait_for(time_limit):
    condition = threading.Condition()
    with condition:
        condition.wait(time_limit)


def lock_file(path):
    with open(path) as again:
        fcntl.flock(again, fcntl.LOCK_EX)


def start_waits(file):
    held = threading.Lock()
    held.acquire()
    held_again = threading.RLock()
    held_again.acquire()
    start("lock", held.acquire)
    start("rlock", held_again.acquire)
    start("lock_timed", lambda: held.acquire(timeout=HOUR))
    start("condition", lambda: wait_for(None))
    start("cond_timed", lambda: wait_for(HOUR))
    start("event", threading.Event().wait)
    start("event_timed", lambda: threading.Event().wait(HOUR))
    start("semaphore", threading.Semaphore(0).acquire)
    start("barrier", threading.Barrier(2).wait)
    start("queue", queue.Queue().get)
    start("queue_timed", lambda: queue.Queue().get(timeout=HOUR))
    start("simple_queue", queue.SimpleQueue().get)
    start("join", threading.current_thread().join)
    start("sleep", lambda: time.sleep(HOUR))
    reader, _ = os.pipe()
    start("pipe", lambda: os.read(reader, 1))
    start("select", lambda: select.select([reader], [], []))
    own, peer = socket.socketpair()
    start("socket", lambda: (own.recv(1), peer))
    # A socket with a time limit polls first.
    timed, timed_peer = socket.socketpair()
    timed.settimeout(HOUR)
    start("socket_timed", lambda: (timed.recv(1), timed_peer))
    fcntl.flock(file, fcntl.LOCK_EX)
    start("flock", lambda: lock_file(file.name))
    child = subprocess.Popen(["cat"])
    start("child", child.wait)


with tempfile.NamedTemporaryFile() as held_file:
    if sys.argv[1:] == ["compute"]:
        start("compute_1", compute)
        start("compute_2", compute)
    else:
        start_waits(held_file)
    while os.read(0, 1):
        pass
os._exit(0)
