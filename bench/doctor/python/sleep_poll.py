"""Fault: two partners pass a number back and forth and find out by polling with sleeps of 1 ms
that it has arrived. An even seed uses two processes, an odd one two threads.

fixed: they pass the number through pipes, so that the kernel wakes the receiver at once.
twin: a scheduler thread sleeps just as often, but each time for its own period; then it does a
piece of periodic work. No partner decides when it goes on.
"""

import ctypes
import multiprocessing
import sched
import signal
import sys
import threading
import time

VARIANTS = ("sick", "fixed", "twin")
LIMIT_S = 30
PR_SET_PDEATHSIG = 1
MASK = 0x7FFFFFFF
POLL_S = 0.001
HANDOVERS = 1_500
ROUNDS = 4_500
TWIN_TIME_MS = 4_000
PERIOD_MS = 4
TICK_ROUNDS = 4_000

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


class PolledSlot:
    """Holds one number. The receiver polls it."""

    def __init__(self):
        self.slot = FORK.RawValue("q", -1)

    def put(self, value):
        self.slot.value = value

    def get(self):
        while self.slot.value < 0:
            time.sleep(POLL_S)
        value = self.slot.value
        self.slot.value = -1
        return value


class PipeSlot:
    """Passes numbers through a pipe. The receiver waits in the kernel."""

    def __init__(self):
        self.receiver, self.sender = FORK.Pipe(duplex=False)

    def put(self, value):
        self.sender.send(value)

    def get(self):
        return self.receiver.recv()


def partner(inbox, outbox, handovers, rounds, in_process):
    """Receives a number, mixes it and sends it back."""
    if in_process:
        guard()
    for _ in range(handovers):
        outbox.put(mix(inbox.get(), rounds))


def pass_back_and_forth(source, slot, in_process):
    """Runs both partners; this thread is one of them."""
    rounds = vary(source, ROUNDS, 40)
    handovers = vary(source, HANDOVERS, 20)
    there, back = slot(), slot()
    start = FORK.Process if in_process else threading.Thread
    other = start(target=partner, args=(there, back, handovers, rounds, in_process))
    other.start()
    value = handovers
    for _ in range(handovers):
        there.put(mix(value, rounds))
        value = back.get()
    other.join()
    return value


def tick_periodically(ticks, period_s, result):
    """Does a piece of work at the start of each period."""
    scheduler = sched.scheduler(time.monotonic, time.sleep)
    start = time.monotonic()

    def tick(number):
        result[0] = mix(result[0], TICK_ROUNDS)
        if number < ticks:
            scheduler.enterabs(start + number * period_s, 0, tick, (number + 1,))

    scheduler.enterabs(start, 0, tick, (1,))
    scheduler.run()


def arguments():
    """Returns the variant and the seed, or explains the usage."""
    if len(sys.argv) != 3 or sys.argv[1] not in VARIANTS or not sys.argv[2].isdigit():
        print("usage: sleep_poll.py sick|fixed|twin SEED", file=sys.stderr)
        sys.exit(2)
    return sys.argv[1], int(sys.argv[2])


def main():
    variant, seed = arguments()
    guard()
    source = numbers(seed)
    if variant == "twin":
        period_ms = vary(source, PERIOD_MS, 40)
        result = [seed]
        args = (TWIN_TIME_MS // period_ms, period_ms / 1000, result)
        timer = threading.Thread(target=tick_periodically, args=args)
        timer.start()
        timer.join()
        print(result[0])
    else:
        slot = PolledSlot if variant == "sick" else PipeSlot
        print(pass_back_and_forth(source, slot, in_process=seed % 2 == 0))


if __name__ == "__main__":
    main()
