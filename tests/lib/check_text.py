#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are there foreign instructions in a process's code?

Compares every executable mapping of a process with the file it maps, byte by byte, and prints
"FILE 0xOFFSET: 0xFILE-BYTE is 0xMEMORY-BYTE" for each difference: what a probe (or anything else)
has put there. Exit status 0: the code is the files', 1: it is not, 2: it could not be compared.
It knows nothing about who might have changed it.
"""
import argparse
import sys


def executable_maps(pid):
    """(start, end, file offset, path as this process can open it, name) of each."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            fields = line.rstrip("\n").split(maxsplit=5)
            if len(fields) < 6 or "x" not in fields[1] or not fields[5].startswith("/"):
                continue
            start, end = (int(number, 16) for number in fields[0].split("-"))
            # the mapping itself, also where the file's name is another file by now
            path = f"/proc/{pid}/map_files/{start:x}-{end:x}"
            yield start, end, int(fields[2], 16), path, fields[5]


def differences(pid):
    """-> (mappings compared, list of texts)"""
    found, compared = [], 0
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for start, end, offset, path, name in executable_maps(pid):
            with open(path, "rb") as file:
                file.seek(offset)
                wanted = file.read(end - start)
            memory.seek(start)
            got = memory.read(len(wanted))
            compared += 1
            if got == wanted:
                continue
            found += [f"{name} 0x{offset + i:x}: 0x{a:02x} is 0x{b:02x}"
                      for i, (a, b) in enumerate(zip(wanted, got)) if a != b]
    return compared, found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("pid", type=int)
    pid = parser.parse_args().pid
    try:
        compared, found = differences(pid)
    except OSError as error:
        print(f"cannot compare the code of process {pid}: {error}", file=sys.stderr)
        return 2
    if not compared:
        print(f"process {pid} has no mapped code", file=sys.stderr)
        return 2
    for text in found:
        print(text)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
