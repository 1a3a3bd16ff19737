"""Fault: several processes share a total and compute while they hold its lock, so only one of
them works.

fixed: they compute first and hold the lock only to add their result.
twin: several processes wait at a queue for work that comes rarely, at a pace that the outside
world sets. They wait at a lock and at a pipe, but there is nothing else to do.
"""

import ctypes
import multiprocessing
import signal
import sys
import time

VARIANTS = ("sick", "fixed", "twin")
LIMIT_S = 30
PR_SET_PDEATHSIG = 1
MASK = 0x7FFFFFFF
PROCESSES = 4
STEPS = 6_000
TOTAL_ROUNDS = 36_000_000
OUTSIDE_PERCENT = 10
TWIN_TIME_MS = 4_000
ARRIVAL_MS = 30
ITEM_ROUNDS = 10_000

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


def compute_inside(lock, shared, first, steps, rounds):
    """Computes under the lock."""
    guard()
    for step in range(first, first + steps):
        value = mix(step, rounds * OUTSIDE_PERCENT // 100)
        with lock:
            shared.value = (shared.value + mix(value, rounds)) & MASK


def compute_outside(lock, shared, first, steps, rounds):
    """Computes first and takes the lock only to add."""
    guard()
    for step in range(first, first + steps):
        value = mix(mix(step, rounds * OUTSIDE_PERCENT // 100), rounds)
        with lock:
            shared.value = (shared.value + value) & MASK


def take_items(queue, results):
    """Computes the items that arrive, until an empty one comes."""
    guard()
    total = 0
    while (item := queue.get()) is not None:
        total += mix(item, ITEM_ROUNDS)
    results.put(total)


def run_all(function, args):
    """Starts a process for each tuple of arguments."""
    processes = [FORK.Process(target=function, args=each) for each in args]
    for process in processes:
        process.start()
    return processes


def share_lock(source, function):
    """Lets several processes add to one total."""
    processes = vary(source, PROCESSES, 25)
    steps = vary(source, STEPS, 40) // processes
    rounds = vary(source, TOTAL_ROUNDS, 15) // (steps * processes)
    lock, shared = FORK.Lock(), FORK.RawValue("Q", 0)
    args = [(lock, shared, number * steps, steps, rounds) for number in range(processes)]
    for process in run_all(function, args):
        process.join()
    return shared.value


def wait_for_items(source):
    """Passes an item to the waiting processes whenever one arrives."""
    processes = vary(source, PROCESSES, 25)
    arrival_ms = vary(source, ARRIVAL_MS, 40)
    queue, results = FORK.SimpleQueue(), FORK.SimpleQueue()
    started = run_all(take_items, [(queue, results)] * processes)
    for item in range(TWIN_TIME_MS // arrival_ms):
        time.sleep(arrival_ms / 1000)
        queue.put(item)
    for _ in started:
        queue.put(None)
    total = sum(results.get() for _ in started)
    for process in started:
        process.join()
    return total & MASK


def arguments():
    """Returns the variant and the seed, or explains the usage."""
    if len(sys.argv) != 3 or sys.argv[1] not in VARIANTS or not sys.argv[2].isdigit():
        print("usage: one_lock.py sick|fixed|twin SEED", file=sys.stderr)
        sys.exit(2)
    return sys.argv[1], int(sys.argv[2])


def main():
    variant, seed = arguments()
    guard()
    source = numbers(seed)
    if variant == "twin":
        print(wait_for_items(source))
    else:
        print(share_lock(source, compute_inside if variant == "sick" else compute_outside))


if __name__ == "__main__":
    main()
