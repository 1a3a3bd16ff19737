"""Fault: a pool of threads computes in pure Python. The interpreter lock lets only one of them
run.

fixed: the same tasks in a pool of two processes, which need no common lock.
twin: two threads hash and compress large data. Both functions release the interpreter lock, so
the threads use both CPUs all the time and the program has nothing to gain.
"""

import ctypes
import hashlib
import multiprocessing
import signal
import sys
import zlib
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

VARIANTS = ("sick", "fixed", "twin")
LIMIT_S = 30
PR_SET_PDEATHSIG = 1
MASK = 0x7FFFFFFF
CPUS = 2
THREADS = 4
TASKS = 40
TOTAL_ROUNDS = 38_000_000
TWIN_TASKS = 30
TWIN_ROUNDS = 12_000_000
BLOCK_BYTES = 1 << 20


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


def digest(value, rounds):
    """Computes in C code that releases the interpreter lock."""
    key = hashlib.pbkdf2_hmac("sha256", value.to_bytes(4, "little"), b"salt", rounds)
    block = (key * (BLOCK_BYTES // len(key)))[: BLOCK_BYTES - value % 97]
    return zlib.crc32(zlib.compress(block)) & MASK


def total(executor, function, tasks, rounds):
    """Runs all tasks and combines their results."""
    with executor:
        return sum(executor.map(function, range(tasks), [rounds] * tasks)) & MASK


def arguments():
    """Returns the variant and the seed, or explains the usage."""
    if len(sys.argv) != 3 or sys.argv[1] not in VARIANTS or not sys.argv[2].isdigit():
        print("usage: gil_threads.py sick|fixed|twin SEED", file=sys.stderr)
        sys.exit(2)
    return sys.argv[1], int(sys.argv[2])


def main():
    variant, seed = arguments()
    guard()
    source = numbers(seed)
    threads = vary(source, THREADS, 25)
    tasks = vary(source, TASKS, 40)
    rounds = vary(source, TOTAL_ROUNDS, 15) // tasks
    if variant == "sick":
        print(total(ThreadPoolExecutor(threads), mix, tasks, rounds))
    elif variant == "fixed":
        fork = multiprocessing.get_context("fork")
        processes = ProcessPoolExecutor(CPUS, mp_context=fork, initializer=guard)
        print(total(processes, mix, tasks, rounds))
    else:
        tasks = 2 * vary(source, TWIN_TASKS, 40)
        print(total(ThreadPoolExecutor(CPUS), digest, tasks, TWIN_ROUNDS // tasks))


if __name__ == "__main__":
    main()
