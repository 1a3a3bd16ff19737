"""Hashes passwords in two processes and stores the results in a database: hash_passwords.py FOLDER BATCH

With a batch of 1, each password is hashed inside of a transaction of its own.
"""

import hashlib
import multiprocessing
import pathlib
import sqlite3
import sys

WORKERS = 2
PASSWORDS = 2_400
ROUNDS = 4_000
BUSY_TIMEOUT_S = 30


def hashed(name):
    """Returns a row."""
    return name, hashlib.pbkdf2_hmac("sha256", name.encode(), b"salt", ROUNDS).hex()


def work(path, worker, batch):
    """Stores every second row."""
    database = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    database.execute("PRAGMA synchronous = NORMAL")
    names = [f"user{number}" for number in range(worker, PASSWORDS, WORKERS)]
    for start in range(0, len(names), batch):
        part = names[start : start + batch]
        rows = map(hashed, part)
        if batch > 1:
            rows = list(rows)
        database.execute("BEGIN IMMEDIATE")
        database.executemany("INSERT INTO passwords VALUES (?, ?)", rows)
        database.execute("COMMIT")


def main():
    path, batch = pathlib.Path(sys.argv[1]) / "passwords.db", int(sys.argv[2])
    for file in path.parent.glob("passwords.db*"):
        file.unlink()
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE passwords (name TEXT PRIMARY KEY, hash TEXT)")
    workers = [
        multiprocessing.Process(target=work, args=(path, worker, batch)) for worker in range(WORKERS)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(database.execute("SELECT count(*) FROM passwords").fetchone()[0])


if __name__ == "__main__":
    main()
