"""Fault: processes share a small database file. Each one tries to lock it without blocking, and
sleeps for 2 ms whenever another one holds it. The lock is often free while those who want it
sleep.

fixed: they block in flock, and the kernel wakes the next one as soon as the file is free.
twin: a server waits in a selector for clients that think between their requests.
"""

import ctypes
import fcntl
import multiprocessing
import os
import selectors
import signal
import socket
import sys
import tempfile
import time

VARIANTS = ("sick", "fixed", "twin")
LIMIT_S = 30
PR_SET_PDEATHSIG = 1
MASK = 0x7FFFFFFF
RETRY_S = 0.002
TRANSACTIONS = 1_900
LOCKED_ROUNDS = 9_000
PREPARE_ROUNDS = 9_000
TWIN_CLIENTS = 3
TWIN_TIME_MS = 4_000
THINK_MS = 15
ANSWER_ROUNDS = 2_000

FORK = multiprocessing.get_context("fork")


def guard():
    """Ends this process after the time limit; a child also ends with its parent."""
    signal.alarm(LIMIT_S)
    if multiprocessing.parent_process():
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def numbers(seed):
    """Yields the numbers of a linear congruential generator."""
    state = seed + 1
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        yield state >> 33


def vary(source, base, percent):
    """Returns a number that differs from base by up to percent."""
    span = base * percent // 100
    return base - span + next(source) % (2 * span + 1)


def mix(value, rounds):
    """Mixes the bits of a number; this is the work."""
    for _ in range(rounds):
        value = (value * 1103515245 + 12345) & MASK
        value ^= value >> 7
    return value


def lock_by_retry(file):
    """Tries to lock the file until it succeeds."""
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(RETRY_S)


def lock_by_blocking(file):
    """Waits in the kernel for the lock."""
    fcntl.flock(file, fcntl.LOCK_EX)


def transact(path, lock, seed, transactions, locked, prepare):
    """Prepares values and adds them to the file in transactions of different lengths."""
    guard()
    source = numbers(seed)
    file = os.open(path, os.O_RDWR)
    for _ in range(transactions):
        value = mix(next(source), vary(source, prepare, 40))
        rounds = vary(source, locked, 40)
        lock(file)
        total = int.from_bytes(os.pread(file, 8, 0), "little") + mix(value, rounds)
        os.pwrite(file, (total & MASK).to_bytes(8, "little"), 0)
        fcntl.flock(file, fcntl.LOCK_UN)


def share_file(source, lock):
    """Starts the processes and returns the final total."""
    processes = 2 + next(source) % 2
    transactions = vary(source, TRANSACTIONS, 10) // processes
    locked = vary(source, LOCKED_ROUNDS, 25)
    prepare = vary(source, PREPARE_ROUNDS, 25)
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(8))
        file.flush()
        started = []
        for number in range(processes):
            args = (file.name, lock, next(source), transactions, locked, prepare)
            started.append(FORK.Process(target=transact, args=args))
            started[-1].start()
        for process in started:
            process.join()
        return int.from_bytes(os.pread(file.fileno(), 8, 0), "little")


def client(end, requests, think_ms):
    """Sends a request, reads the answer and thinks."""
    guard()
    for number in range(requests):
        end.sendall(number.to_bytes(4, "little"))
        end.recv(4)
        time.sleep(think_ms / 1000)


def serve(source):
    """Answers clients until all of them have ended."""
    selector = selectors.DefaultSelector()
    processes, total = [], 0
    for _ in range(TWIN_CLIENTS):
        ours, theirs = socket.socketpair()
        selector.register(ours, selectors.EVENT_READ)
        think_ms = vary(source, THINK_MS, 40)
        args = (theirs, TWIN_TIME_MS // think_ms, think_ms)
        processes.append(FORK.Process(target=client, args=args))
        processes[-1].start()
        theirs.close()
    while selector.get_map():
        for key, _ in selector.select():
            request = key.fileobj.recv(4)
            if request:
                total += mix(int.from_bytes(request, "little"), ANSWER_ROUNDS)
                key.fileobj.sendall((total & MASK).to_bytes(4, "little"))
            else:
                selector.unregister(key.fileobj)
    for process in processes:
        process.join()
    return total & MASK


def arguments():
    """Returns the variant and the seed, or explains the usage."""
    if len(sys.argv) != 3 or sys.argv[1] not in VARIANTS or not sys.argv[2].isdigit():
        print("usage: file_lock_retry.py sick|fixed|twin SEED", file=sys.stderr)
        sys.exit(2)
    return sys.argv[1], int(sys.argv[2])


def main():
    variant, seed = arguments()
    guard()
    source = numbers(seed)
    if variant == "twin":
        print(serve(source))
    else:
        print(share_file(source, lock_by_retry if variant == "sick" else lock_by_blocking))


if __name__ == "__main__":
    main()
