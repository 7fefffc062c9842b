#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damage a GlusterFS process's memory on purpose, and repair it.

  corrupt.py PID WHAT UNDO-FILE     damages one thing (list: see DAMAGES) and writes down what was
                                    there before
  corrupt.py PID repair UNDO-FILE   puts that back
  corrupt.py PID list -             names of what can be damaged

The process has to be stopped meanwhile, or be a throwaway. Layouts: those of e0.py, whose way
through the memory is used. It knows nothing about who reads the damage.
"""
import struct
import sys

import e0

NAME, TYPE, NEXT, CHILDREN = 0x00, 0x08, 0x18, 0x30
PREV = 0x08  # of a list_head
ALL_FRAMES_PREV = PREV
MYFRAMES = 0x6F8
UNMAPPED = 0xDEAD0000000
KERNEL = 0xFFFF888000000000


class Victim:
    def __init__(self, pid):
        self.memory = e0.Memory(pid)
        base, path = e0.load_address(pid, "/libglusterfs.so")
        self.code = base
        value, size = e0.find_symbol(f"/proc/{pid}/root{path}", "global_xlator")
        if size != e0.SIZE_OF_XLATOR:
            raise SystemExit("this release's layout is not known here")
        self.ctx = self.memory.word(base + value + e0.CTX)
        self.graph = self.memory.word(self.ctx + e0.ACTIVE)
        self.pool = self.memory.word(self.ctx + e0.POOL)
        self.xlators = [self.memory.word(self.graph + e0.GRAPH_FIRST)]
        while self.memory.word(self.xlators[-1] + NEXT):
            self.xlators.append(self.memory.word(self.xlators[-1] + NEXT))

    def child_list(self, index):
        return self.memory.word(self.xlators[index] + CHILDREN)

    def odd_path(self):
        """Where the brick's path is, and its first bytes with an escape among them."""
        for xlator in self.xlators:
            name = self.memory.word(xlator + NAME)
            text = bytearray(self.memory.read(name, 8))
            if text[0] == ord("/"):
                text[2:4] = b"\x1b["
                return name, struct.unpack("<Q", text)[0]
        raise SystemExit("no xlator is named by a path")

    def frame_link(self, index):
        """Of the oldest request in flight: the link of its oldest frame, or of a later one."""
        stack = self.memory.word(self.pool + ALL_FRAMES_PREV)
        if stack == self.pool:
            raise SystemExit("no request is in flight")
        link = self.memory.word(stack + MYFRAMES + PREV)
        for _ in range(index):
            link = self.memory.word(link + PREV)
        return link


# What: victim -> (address, word to put there).
DAMAGES = {
    "next-self": lambda v: (v.xlators[3] + NEXT, v.xlators[3]),
    "next-round": lambda v: (v.xlators[-1] + NEXT, v.xlators[0]),
    "next-unmapped": lambda v: (v.xlators[2] + NEXT, UNMAPPED),
    "next-kernel": lambda v: (v.xlators[2] + NEXT, KERNEL),
    "next-short": lambda v: (v.xlators[2] + NEXT, 0),
    "name-null": lambda v: (v.xlators[2] + NAME, 0),
    "name-unmapped": lambda v: (v.xlators[2] + NAME, UNMAPPED),
    "name-binary": lambda v: (v.xlators[2] + NAME, v.code),
    "type-null": lambda v: (v.xlators[2] + TYPE, 0),
    "type-binary": lambda v: (v.xlators[2] + TYPE, v.code),
    "children-self": lambda v: (v.child_list(1) + 8, v.child_list(1)),
    "children-up": lambda v: (v.xlators[-1] + CHILDREN, v.child_list(0)),
    "children-unmapped": lambda v: (v.xlators[2] + CHILDREN, UNMAPPED),
    "graph-first-odd": lambda v: (v.graph + e0.GRAPH_FIRST, 1),
    "graph-first-null": lambda v: (v.graph + e0.GRAPH_FIRST, 0),
    "active-wrong": lambda v: (v.ctx + e0.ACTIVE, v.pool),
    "pool-null": lambda v: (v.ctx + e0.POOL, 0),
    "pool-wrong": lambda v: (v.ctx + e0.POOL, v.graph),
    "stacks-unmapped": lambda v: (v.pool + ALL_FRAMES_PREV, UNMAPPED),
    "stacks-wrong": lambda v: (v.pool + ALL_FRAMES_PREV, v.ctx),
    "odd-path": lambda v: v.odd_path(),
    "frames-second": lambda v: (v.frame_link(0) + PREV, UNMAPPED),
    "frames-third": lambda v: (v.frame_link(1) + PREV, UNMAPPED),
    "frames-loop": lambda v: (v.frame_link(2) + PREV, v.frame_link(1)),
}


def write(pid, address, data):
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(address)
        memory.write(data)


def main():
    pid, what, undo = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    if what == "list":
        print("\n".join(DAMAGES))
        return
    if what == "repair":
        with open(undo, encoding="utf-8") as file:
            address, data = file.read().split()
        write(pid, int(address, 16), bytes.fromhex(data))
        return
    victim = Victim(pid)
    address, word = DAMAGES[what](victim)
    with open(undo, "w", encoding="utf-8") as file:
        file.write(f"{address:#x} {victim.memory.read(address, 8).hex()}\n")
    write(pid, address, struct.pack("<Q", word))


if __name__ == "__main__":
    main()
