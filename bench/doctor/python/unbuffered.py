"""Fault: the program writes and reads a file with records of a few bytes, without a buffer. Each
record costs a system call, and the kernel takes most of the CPU time.

fixed: the same calls with a buffer of 64 KiB.
twin: the program reads unbuffered records of a few bytes from a pipe, but they come rarely: the
sender thinks between them. Each record has to be read at once.
"""

import ctypes
import multiprocessing
import os
import signal
import sys
import tempfile
import time

VARIANTS = ("sick", "fixed", "twin")
LIMIT_S = 30
PR_SET_PDEATHSIG = 1
MASK = 0x7FFFFFFF
UNBUFFERED = 0
BUFFER_BYTES = 65_536
RECORDS = 1_500_000
RECORD_BYTES = 6
TWIN_TIME_MS = 4_000
THINK_MS = 10

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


def write_records(path, buffering, records, size):
    """Writes records one by one."""
    kinds = [bytes((number * 7 + place) & 0xFF for place in range(size)) for number in range(256)]
    with open(path, "wb", buffering) as file:
        for number in range(records):
            file.write(kinds[number & 0xFF])


def read_records(path, buffering, size):
    """Reads records one by one and returns their sum."""
    total = 0
    with open(path, "rb", buffering) as file:
        while record := file.read(size):
            total = (total * 31 + record[0]) & MASK
    return total


def send_rarely(writer, records, size, think_ms):
    """Sends a record after each pause."""
    guard()
    for number in range(records):
        time.sleep(think_ms / 1000)
        os.write(writer, bytes([number & 0xFF] * size))


def receive(source, size):
    """Reads the records of a sender that thinks."""
    think_ms = vary(source, THINK_MS, 40)
    reader, writer = os.pipe()
    args = (writer, TWIN_TIME_MS // think_ms, size, think_ms)
    sender = FORK.Process(target=send_rarely, args=args)
    sender.start()
    os.close(writer)
    total = read_records(reader, UNBUFFERED, size)
    sender.join()
    return total


def arguments():
    """Returns the variant and the seed, or explains the usage."""
    if len(sys.argv) != 3 or sys.argv[1] not in VARIANTS or not sys.argv[2].isdigit():
        print("usage: unbuffered.py sick|fixed|twin SEED", file=sys.stderr)
        sys.exit(2)
    return sys.argv[1], int(sys.argv[2])


def main():
    variant, seed = arguments()
    guard()
    source = numbers(seed)
    records = vary(source, RECORDS, 20)
    size = vary(source, RECORD_BYTES, 40)
    if variant == "twin":
        print(receive(source, size))
        return
    buffering = UNBUFFERED if variant == "sick" else BUFFER_BYTES
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "records")
        write_records(path, buffering, records, size)
        print(read_records(path, buffering, size))


if __name__ == "__main__":
    main()
