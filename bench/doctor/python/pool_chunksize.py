"""Fault: a pool of processes maps a function over many tiny items and passes each item on its
own (chunksize=1), so that the messages between the processes cost more than the work.

fixed: each message carries 1000 items.
twin: the same pool and the same chunksize, but each item computes for a long time. The few
messages cost nothing, and both CPUs are busy.
"""

import ctypes
import multiprocessing
import signal
import sys

VARIANTS = ("sick", "fixed", "twin")
LIMIT_S = 30
PR_SET_PDEATHSIG = 1
MASK = 0x7FFFFFFF
PROCESSES = 2
ITEMS = 160_000
ROUNDS = 60
CHUNK_ITEMS = 1_000
TWIN_ITEMS = 60
TWIN_ROUNDS = 80_000_000


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


def mix(item):
    """Mixes the bits of the first number of an item; this is the work."""
    value, rounds = item
    for _ in range(rounds):
        value = (value * 1103515245 + 12345) & MASK
        value ^= value >> 7
    return value


def total(items, rounds, chunk_items):
    """Maps the work over all items."""
    pool = multiprocessing.get_context("fork").Pool(PROCESSES, initializer=guard)
    with pool:
        results = pool.map(mix, ((item, rounds) for item in range(items)), chunksize=chunk_items)
        pool.close()
        pool.join()
    return sum(results) & MASK


def arguments():
    """Returns the variant and the seed, or explains the usage."""
    if len(sys.argv) != 3 or sys.argv[1] not in VARIANTS or not sys.argv[2].isdigit():
        print("usage: pool_chunksize.py sick|fixed|twin SEED", file=sys.stderr)
        sys.exit(2)
    return sys.argv[1], int(sys.argv[2])


def main():
    variant, seed = arguments()
    guard()
    source = numbers(seed)
    items = vary(source, ITEMS, 20)
    rounds = vary(source, ROUNDS, 40)
    if variant == "twin":
        items = 2 * vary(source, TWIN_ITEMS, 40)
        print(total(items, TWIN_ROUNDS // items, 1))
    else:
        print(total(items, rounds, 1 if variant == "sick" else CHUNK_ITEMS))


if __name__ == "__main__":
    main()
