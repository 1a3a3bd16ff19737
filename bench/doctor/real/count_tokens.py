"""Counts the tokens in the modules of Python's library: count_tokens.py threads|processes WORKERS"""

import collections
import concurrent.futures
import pathlib
import sys
import sysconfig
import tokenize

MAX_FILES = 350


def count(path):
    """Returns the number of tokens of each type in a file."""
    with tokenize.open(path) as file:
        return collections.Counter(token.type for token in tokenize.generate_tokens(file.readline))


def main():
    kind, workers = sys.argv[1], int(sys.argv[2])
    executor = {
        "threads": concurrent.futures.ThreadPoolExecutor,
        "processes": concurrent.futures.ProcessPoolExecutor,
    }[kind]
    paths = sorted(pathlib.Path(sysconfig.get_path("stdlib")).rglob("*.py"))[:MAX_FILES]
    total = collections.Counter()
    with executor(workers) as pool:
        for counts in pool.map(count, paths):
            total += counts
    print(sum(total.values()))


if __name__ == "__main__":
    main()
