#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a GlusterFS process counts itself, read from its memory: a second source for the tests.

Prints one JSON document: call stacks created, and per xlator and fop the calls wound, the failed
replies and the latencies. Shares no code with bricktop and finds its way by other means: the
context by libglusterfs's exported `global_xlator`, the xlators from the graph's top through their
lists of children (bricktop follows the graph's list). Layouts: 10.2 to 10.5 only.
"""
import json
import struct
import sys

CTX, POOL, ACTIVE, ROOT = 0xF70, 0x220, 0x280, 0x288
GRAPH_FIRST = 0x20
CHILDREN, STATS, STAT_BYTES, FOPS = 0x30, 0xA8, 0x40, 59
SIZE_OF_XLATOR = 0x1020
FOP_NAMES = """null stat readlink mknod mkdir unlink rmdir symlink rename link truncate open read
write statfs flush fsync setxattr getxattr removexattr opendir fsyncdir access create ftruncate
fstat lk lookup readdir inodelk finodelk entrylk fentrylk xattrop fxattrop fgetxattr fsetxattr
rchecksum setattr fsetattr readdirp forget release releasedir getspec fremovexattr fallocate discard
zerofill ipc seek lease compound getactivelk setactivelk put icreate namelink copy_file_range
""".split()


class Memory:
    def __init__(self, pid):
        self.pid = pid
        self.file = open(f"/proc/{pid}/mem", "rb", buffering=0)

    def read(self, addr, size):
        self.file.seek(addr)
        data = self.file.read(size)
        if len(data) != size:
            raise SystemExit(f"short read at {addr:#x}")
        return data

    def word(self, addr):
        return struct.unpack("<Q", self.read(addr, 8))[0]

    def text(self, addr):
        return self.read(addr, 256).split(b"\0")[0].decode()


def load_address(pid, name):
    for line in open(f"/proc/{pid}/maps", encoding="utf-8"):
        fields = line.split()
        if len(fields) > 5 and name in fields[5] and int(fields[2], 16) == 0:
            return int(fields[0].split("-")[0], 16), fields[5]
    raise SystemExit(f"process {pid} does not map {name}")


def find_symbol(path, wanted):
    """Value and size of a symbol in .dynsym of an ELF64 file."""
    data = open(path, "rb").read()
    offset, size, count = (struct.unpack_from("<Q", data, 0x28)[0],
                           *struct.unpack_from("<HH", data, 0x3A))
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size) for i in range(count)]
    for section in sections:
        if section[1] != 11:  # SHT_DYNSYM
            continue
        strings = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], 24):
            name, _, _, _, value, length = struct.unpack_from("<IBBHQQ", data, at)
            end = data.index(b"\0", strings + name)
            if data[strings + name:end].decode() == wanted:
                return value, length
    raise SystemExit(f"{path} exports no {wanted}")


def children_of(memory, xlator):
    found, link = [], memory.word(xlator + CHILDREN)
    while link:
        found.append(memory.word(link))
        link = memory.word(link + 8)
    return found


def read_xlator(memory, addr):
    raw = memory.read(addr + STATS, STAT_BYTES * FOPS)
    stats = {}
    for fop in range(1, FOPS):
        wound, _, failed, _, _, _, total, count = struct.unpack_from("<8Q", raw, fop * STAT_BYTES)
        if wound or failed or count:
            stats[FOP_NAMES[fop]] = {"wound": wound, "failed": failed, "ns": total,
                                     "ended": count}
    return {"id": memory.text(memory.word(addr)), "type": memory.text(memory.word(addr + 8)),
            "addr": hex(addr), "stats": stats}


def main():
    memory = Memory(int(sys.argv[1]))
    base, path = load_address(memory.pid, "/libglusterfs.so")
    value, size = find_symbol(f"/proc/{memory.pid}/root{path}", "global_xlator")
    if size != SIZE_OF_XLATOR:
        raise SystemExit("this release's layout is not known here")
    ctx = memory.word(base + value + CTX)
    graph, root = memory.word(ctx + ACTIVE), memory.word(ctx + ROOT)
    todo = ([root] if root else []) + [memory.word(graph + GRAPH_FIRST)]
    xlators = []
    for addr in todo:
        xlators.append(read_xlator(memory, addr))
        # a client's root lists the tops of all its graphs; only the active one's counts here
        if addr != root:
            todo += [c for c in children_of(memory, addr) if c not in todo]
    pool = memory.word(ctx + POOL)
    print(json.dumps({"pid": memory.pid, "graph": hex(graph),
                      "created": memory.word(pool + 0x18), "now": memory.word(pool + 0x10),
                      "xlators": xlators}, indent=1))


if __name__ == "__main__":
    main()
