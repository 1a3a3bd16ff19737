"""A probe for Python: creates units of concurrency for contend to measure. README.md describes the protocol.

    python3 python.py thread
"""

import asyncio
import gc
import os
import sys
import threading
from time import perf_counter_ns

try:
    import greenlet  # not in the standard library
except ImportError:
    greenlet = None

VERSION = "Python %d.%d.%d" % sys.version_info[:3]


def wrong(message, answer):
    return f"none message {message} was answered by {answer}"


class Units:
    """The units of one park. To add a kind of unit, derive a class and add it to KINDS."""

    Event = asyncio.Event

    def __init__(self, n):
        self.total = n
        self.waiting = self.ended = 0
        self.all_wait = self.Event()
        self.have_ended = self.Event()

    def count(self):
        self.waiting += 1
        if self.waiting == self.total:
            self.all_wait.set()

    def end(self):
        self.ended += 1
        if self.ended == self.total:
            self.have_ended.set()

    async def start(self, due):
        """Creates all units and returns when they wait. Timers end at `due`, in seconds of the loop's clock."""
        raise NotImplementedError

    async def wake(self):
        """Lets all units end and returns when they have ended. By default, waits until their timers end them."""
        await self.have_ended.wait()

    @staticmethod
    async def trips(m):
        """Exchanges m messages with one unit and returns the answer after `trips `. By default, units take none."""
        return "none a timer only fires, it takes no message"


class Threads(Units):
    Event = threading.Event

    def __init__(self, n):
        super().__init__(n)
        self.gate = threading.Lock()  # an Event would add a lock for each thread that waits
        self.gate.acquire()
        self.counting = threading.Lock()

    def unit(self):
        with self.counting:
            self.count()
        with self.gate:  # each unit passes the lock on to the next
            pass
        with self.counting:
            self.end()

    async def start(self, due):
        for _ in range(self.total):
            threading.Thread(target=self.unit, daemon=True).start()
        self.all_wait.wait()

    async def wake(self):
        self.gate.release()
        self.have_ended.wait()

    @staticmethod
    async def trips(m):
        there, back = threading.Lock(), threading.Lock()
        there.acquire()
        back.acquire()
        message = answer = None

        def unit():
            nonlocal answer
            for _ in range(m):
                there.acquire()
                answer = message
                back.release()

        threading.Thread(target=unit, daemon=True).start()
        began = perf_counter_ns()
        for message in range(m):
            there.release()
            back.acquire()
            if answer != message:
                return wrong(message, answer)
        return f"{m} {perf_counter_ns() - began}"


class Tasks(Units):
    async def unit(self, due):
        self.count()
        await asyncio.sleep(due - asyncio.get_running_loop().time())
        self.end()

    async def start(self, due):
        loop = asyncio.get_running_loop()
        for _ in range(self.total):
            loop.create_task(self.unit(due))
        await self.all_wait.wait()

    @staticmethod
    async def trips(m):
        there, back = asyncio.Queue(), asyncio.Queue()

        async def unit():
            for _ in range(m):
                back.put_nowait(await there.get())

        task = asyncio.get_running_loop().create_task(unit())
        began = perf_counter_ns()
        for message in range(m):
            there.put_nowait(message)
            answer = await back.get()
            if answer != message:
                return wrong(message, answer)
        took = perf_counter_ns() - began
        await task
        return f"{m} {took}"


class Timers(Units):
    async def start(self, due):
        loop = asyncio.get_running_loop()
        end = self.end  # one bound method for all timers
        for _ in range(self.total):
            loop.call_at(due, end)
            self.waiting += 1  # a timer runs no code before it is due


class Greenlets(Units):
    def __init__(self, n):
        super().__init__(n)
        self.hub = greenlet.getcurrent()
        self.units = [None] * n  # a greenlet without references would be ended

    def unit(self):
        self.count()
        self.hub.switch()
        self.end()

    async def start(self, due):
        unit = self.unit
        for i in range(self.total):
            self.units[i] = greenlet.greenlet(unit)
            self.units[i].switch()

    async def wake(self):
        for unit in self.units:
            unit.switch()

    @staticmethod
    async def trips(m):
        hub = greenlet.getcurrent()

        def unit(message):
            while True:
                message = hub.switch(message)

        switch = greenlet.greenlet(unit).switch
        began = perf_counter_ns()
        for message in range(m):
            answer = switch(message)
            if answer != message:
                return wrong(message, answer)
        return f"{m} {perf_counter_ns() - began}"


KINDS = {"thread": Threads, "asyncio": Tasks, "call_later": Timers, "greenlet": Greenlets}


class Probe:
    def __init__(self, kind):
        self.kind = kind
        self.units = None

    async def park(self, n, hold):
        due = asyncio.get_running_loop().time() + hold / 1000
        self.units = self.kind(n)
        began = perf_counter_ns()
        await self.units.start(due)
        took = perf_counter_ns() - began
        gc.collect()
        return f"parked {self.units.waiting} {took} -"

    async def wake(self):
        began = perf_counter_ns()
        early = self.units.ended
        await self.units.wake()
        return f"woken {early} {self.units.ended} {perf_counter_ns() - began}"

    async def rest(self):
        self.units = None
        gc.collect()
        return "rested -"

    async def trips(self, m):
        return f"trips {await self.kind.trips(m)}"

    async def answer(self, command):
        word, *numbers = command.split()
        commands = {"park": self.park, "wake": self.wake, "rest": self.rest, "trips": self.trips}
        return await commands[word](*map(int, numbers))

    async def serve(self):
        await self.park(100, 1)
        await self.wake()
        await self.rest()
        print(f"ready {VERSION}", flush=True)
        # Commands are read as events, so that timers also fire while no command arrives.
        commands = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(commands), sys.stdin
        )
        async for command in commands:
            print(await self.answer(command.decode()), flush=True)


async def main():
    status = 0
    try:
        name = " ".join(sys.argv[1:])
        if name not in KINDS:
            raise LookupError(f"no such kind of unit: {name}")
        if name == "greenlet" and not greenlet:
            raise LookupError("the module greenlet is not installed")
        await Probe(KINDS[name]).serve()
    except LookupError as why:
        print(why, file=sys.stderr, flush=True)
        status = 1
    except Exception as why:  # such as a RuntimeError, when the system refuses a thread
        print(f"{type(why).__name__}: {why}", file=sys.stderr, flush=True)
        status = 1
    os._exit(status)  # does not wait for the units


asyncio.run(main())
