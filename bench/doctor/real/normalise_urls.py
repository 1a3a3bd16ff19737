"""Counts the different addresses in the log of a web server: normalise_urls.py LOG [CHUNKSIZE]"""

import multiprocessing
import sys
import urllib.parse


def normalise(line):
    """Returns the path of a request and its parameters in order."""
    path = line.split('"')[1].split()[1]
    parts = urllib.parse.urlsplit(path)
    query = sorted(urllib.parse.parse_qsl(parts.query))
    return parts.path.lower() + "?" + urllib.parse.urlencode(query)


def main():
    chunk_size = int(sys.argv[2]) if len(sys.argv) > 2 else None
    with open(sys.argv[1]) as file:
        lines = file.readlines()
    with multiprocessing.Pool(2) as pool:
        print(len(set(pool.map(normalise, lines, chunksize=chunk_size))))


if __name__ == "__main__":
    main()
