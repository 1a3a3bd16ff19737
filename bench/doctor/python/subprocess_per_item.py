"""Fault: the program starts an external command for each of many small items and waits for it.
Starting and ending a process costs far more than the work of an item.

fixed: the program checks the items itself.
twin: the program starts only two children, and both of them compute for a long time.
"""

import ctypes
import signal
import subprocess
import sys

VARIANTS = ("sick", "fixed", "twin")
LIMIT_S = 30
PR_SET_PDEATHSIG = 1
MASK = 0x7FFFFFFF
ITEMS = 2_200
ROUNDS = 1_200
TWIN_CHILDREN = 2
TWIN_ROUNDS = 38_000_000


def guard(child):
    """Ends this process after the time limit; a child also ends with its parent."""
    signal.alarm(LIMIT_S)
    if child:
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


def check_by_command():
    """Asks an external command whether all is well."""
    return subprocess.run(["true"]).returncode == 0


def check_in_process():
    """Gives the same answer without a process."""
    return True


def count_items(items, rounds, check):
    """Mixes each item and adds those that pass the check."""
    return sum(mix(item, rounds) for item in range(items) if check()) & MASK


def compute_in_children(seed, rounds):
    """Starts two children that compute, and adds their results."""
    command = [sys.executable, __file__, "twin", str(seed), str(rounds)]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(TWIN_CHILDREN)]
    return sum(int(child.communicate()[0]) for child in children) & MASK


def arguments():
    """Returns the variant and the seed, or explains the usage."""
    if len(sys.argv) != 3 or sys.argv[1] not in VARIANTS or not sys.argv[2].isdigit():
        print("usage: subprocess_per_item.py sick|fixed|twin SEED", file=sys.stderr)
        sys.exit(2)
    return sys.argv[1], int(sys.argv[2])


def main():
    if len(sys.argv) == 4:  # a child of the twin
        guard(child=True)
        print(mix(int(sys.argv[2]), int(sys.argv[3])))
        return
    variant, seed = arguments()
    guard(child=False)
    source = numbers(seed)
    items = vary(source, ITEMS, 20)
    rounds = vary(source, ROUNDS, 40)
    if variant == "twin":
        print(compute_in_children(seed, vary(source, TWIN_ROUNDS, 15)))
    else:
        check = check_by_command if variant == "sick" else check_in_process
        print(count_items(items, rounds, check))


if __name__ == "__main__":
    main()
