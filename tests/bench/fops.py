# SPDX-License-Identifier: Apache-2.0
"""Writes the bpftrace script that somebody without symbols would write by hand to time reads and
writes in every xlator of a brick: uprobes at the fops and at the callbacks that they hand to the
xlator below. The fops are found by the relocated table that xlator_api names (GlusterFS 10), the
callbacks by the code addresses that a fop takes. Shares no code with bricktop.
"""
import os
import re
import subprocess

FOPS_FIELD, READV, WRITEV = 0x60, 12, 13


def run(*args):
    return subprocess.run(args, check=True, capture_output=True, text=True).stdout


def relocations(path):
    """Where the loader puts an address of the module itself: {place: address}."""
    found = re.findall(r"^([0-9a-f]+) +\S+ R_X86_64_RELATIVE +([0-9a-f]+)",
                       run("readelf", "-Wr", path), re.M)
    return {int(place, 16): int(addr, 16) for place, addr in found}


def fops(path, relocs):
    symbol = re.search(r"^\s*\d+: ([0-9a-f]+) .* xlator_api$",
                       run("readelf", "-W", "--dyn-syms", path), re.M)
    table = relocs.get(int(symbol.group(1), 16) + FOPS_FIELD) if symbol else None
    if table is None:
        return []
    places = (table + 8 * (fop - 1) for fop in (READV, WRITEV))
    return [relocs[place] for place in places if place in relocs]


def code_range(path):
    found = re.search(r"\.text +PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)",
                      run("readelf", "-WS", path))
    start = int(found.group(1), 16)
    return start, start + int(found.group(2), 16)


def callbacks(path, func, low, high):
    """Code addresses loaded by the function at func, up to its last return."""
    text = run("objdump", "-d", "--no-show-raw-insn", f"--start-address={func}",
               f"--stop-address={min(func + 0x1000, high)}", path)
    found = set()
    for line in text.splitlines():
        taken = re.search(r"lea .*# ([0-9a-f]+)", line)
        if taken and low <= int(taken.group(1), 16) < high:
            found.add(int(taken.group(1), 16))
        if re.search(r"\bret\b", line) and found:
            break
    return found


def modules(pid):
    paths = set()
    for line in open(f"/proc/{pid}/maps", encoding="utf-8"):
        path = line.split(maxsplit=5)[-1].strip()
        if "/xlator/" in path and os.path.exists(path):
            paths.add(path)
    return sorted(paths)


def script(pid):
    """The script, and how many probes it has."""
    parts, count = ['BEGIN { printf("ready\\n"); }'], 0
    for path in modules(pid):
        relocs = relocations(path)
        low, high = code_range(path)
        begins = fops(path, relocs)
        ends = set().union(*(callbacks(path, f, low, high) for f in begins)) - set(begins)
        name = os.path.basename(path)[:-3].replace("-", "_")
        if not begins or not ends:
            continue
        count += len(begins) + len(ends)
        parts.append(",\n".join(f"uprobe:{path}:{hex(a)}" for a in begins) +
                     f" {{ @{name}_begin[arg0] = nsecs; }}")
        parts.append(",\n".join(f"uprobe:{path}:{hex(a)}" for a in sorted(ends)) +
                     f" /@{name}_begin[arg0]/ {{ @{name}_us = hist((nsecs - "
                     f"@{name}_begin[arg0]) / 1000); delete(@{name}_begin[arg0]); }}")
    return "\n".join(parts) + "\n", count
