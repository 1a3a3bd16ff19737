"""Fault: a thread answers small requests while two other threads compute in pure Python. A
client process paces the run: it waits for each answer. The answering thread needs the
interpreter lock, and the computing threads give it up only every 5 ms, so each answer is late.

fixed: a process of its own answers, so it needs no lock. The background threads still compute.
twin: three threads wait for clients that think between their requests. Nobody computes for long.
"""

import ctypes
import multiprocessing
import signal
import socket
import sys
import threading
import time

VARIANTS = ("sick", "fixed", "twin")
LIMIT_S = 30
PR_SET_PDEATHSIG = 1
MASK = 0x7FFFFFFF
COMPUTING_THREADS = 2
BACKGROUND_ROUNDS = 20_000
REQUESTS = 420
CLIENT_ROUNDS = 15_000
ANSWER_ROUNDS = 2_000
TWIN_CLIENTS = 3
TWIN_TIME_MS = 4_000
THINK_MS = 15

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


def client(end, requests, rounds, think_ms, result):
    """Sends requests one by one, and computes or thinks between them."""
    guard()
    value = requests
    for _ in range(requests):
        end.sendall(value.to_bytes(4, "little"))
        value = mix(int.from_bytes(end.recv(4), "little"), rounds)
        if think_ms:
            time.sleep(think_ms / 1000)
    result.value = value


def answer(end, requests, rounds):
    """Answers a number of requests."""
    for _ in range(requests):
        value = int.from_bytes(end.recv(4), "little")
        end.sendall(mix(value, rounds).to_bytes(4, "little"))


def answering_process(end, requests, rounds):
    """Answers in a process of its own."""
    guard()
    answer(end, requests, rounds)


def background(stop):
    """Computes for as long as the requests last."""
    value = 1
    while not stop.is_set():
        value = mix(value, BACKGROUND_ROUNDS)


def start_client(requests, rounds, think_ms):
    """Starts a client; returns its process, our end of the socket pair and its result."""
    ours, theirs = socket.socketpair()
    result = FORK.RawValue("I", 0)
    process = FORK.Process(target=client, args=(theirs, requests, rounds, think_ms, result))
    process.start()
    theirs.close()
    return process, ours, result


def paced(source, own_process):
    """Computes in the background while requests are answered."""
    requests = vary(source, REQUESTS, 20)
    client_rounds = vary(source, CLIENT_ROUNDS, 30)
    answer_rounds = vary(source, ANSWER_ROUNDS, 40)
    process, ours, result = start_client(requests, client_rounds, 0)
    stop = threading.Event()
    args = (ours, requests, answer_rounds)
    if own_process:
        answering = FORK.Process(target=answering_process, args=args)
    else:
        answering = threading.Thread(target=answer, args=args)
    answering.start()
    threads = [threading.Thread(target=background, args=(stop,)) for _ in range(COMPUTING_THREADS)]
    for thread in threads:
        thread.start()
    process.join()
    stop.set()
    for thread in [answering, *threads]:
        thread.join()
    return result.value


def thinking(source):
    """Answers clients that think."""
    clients, threads = [], []
    for _ in range(TWIN_CLIENTS):
        think_ms = vary(source, THINK_MS, 40)
        requests = TWIN_TIME_MS // think_ms
        clients.append((start_client(requests, 0, think_ms), requests))
    for (_, ours, _), requests in clients:
        threads.append(threading.Thread(target=answer, args=(ours, requests, ANSWER_ROUNDS)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    for (process, _, _), _ in clients:
        process.join()
    return sum(result.value for (_, _, result), _ in clients) & MASK


def arguments():
    """Returns the variant and the seed, or explains the usage."""
    if len(sys.argv) != 3 or sys.argv[1] not in VARIANTS or not sys.argv[2].isdigit():
        print("usage: gil_io.py sick|fixed|twin SEED", file=sys.stderr)
        sys.exit(2)
    return sys.argv[1], int(sys.argv[2])


def main():
    variant, seed = arguments()
    guard()
    source = numbers(seed)
    if variant == "twin":
        print(thinking(source))
    else:
        print(paced(source, own_process=variant == "fixed"))


if __name__ == "__main__":
    main()
