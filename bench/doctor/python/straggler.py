"""Fault: a pool of two processes gets its items in an unlucky order. The last one is as large as
all the others together, so one process computes it alone while the other one waits.

fixed: the large item is split into parts, which the pool computes like any other item.
twin: the same pool computes items of the same size, so both processes end at the same time.
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
SMALL_ITEMS = 20
SMALL_TOTAL_ROUNDS = 16_000_000
LARGE_ROUNDS = 26_000_000
LARGE_PARTS = 12
TWIN_ITEMS = 40
TWIN_TOTAL_ROUNDS = 80_000_000


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


def compute(item):
    """Computes all parts of an item."""
    return sum(mix(value, rounds) for value, rounds in item)


def total(items):
    """Lets the pool compute the items in their order."""
    pool = multiprocessing.get_context("fork").Pool(PROCESSES, initializer=guard)
    with pool:
        results = pool.map(compute, items, chunksize=1)
        pool.close()
        pool.join()
    return sum(results) & MASK


def uneven_items(source):
    """Returns small items of one part each, and one large item of many parts at the end."""
    count = vary(source, SMALL_ITEMS, 40)
    small = vary(source, SMALL_TOTAL_ROUNDS, 30) // count
    large = vary(source, LARGE_ROUNDS, 15) // LARGE_PARTS
    items = [[(number, vary(source, small, 20))] for number in range(count)]
    return items + [[(count + part, large) for part in range(LARGE_PARTS)]]


def arguments():
    """Returns the variant and the seed, or explains the usage."""
    if len(sys.argv) != 3 or sys.argv[1] not in VARIANTS or not sys.argv[2].isdigit():
        print("usage: straggler.py sick|fixed|twin SEED", file=sys.stderr)
        sys.exit(2)
    return sys.argv[1], int(sys.argv[2])


def main():
    variant, seed = arguments()
    guard()
    source = numbers(seed)
    items = uneven_items(source)
    if variant == "fixed":
        items = [[part] for item in items for part in item]
    elif variant == "twin":
        count = 2 * vary(source, TWIN_ITEMS // 2, 40)
        items = [[(number, TWIN_TOTAL_ROUNDS // count)] for number in range(count)]
    print(total(items))


if __name__ == "__main__":
    main()
