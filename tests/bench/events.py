#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each BPF program of bricktop takes, event by event: how often it runs for an operation of
the load, how long, and how many of those runs were in the target's own threads; the others are sent
away. The kernel's own statistics say how often and how long; whose threads they were a bpftrace
script counts, in a second slice, where there is a bpftrace.

usage: events.py PID LOAD_PID WORK_DIR SECS [BRICKTOP_OPTION]...
"""
import ctypes
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

from sample import Bpftrace, Bricktop, cpu_ns, io_calls, programs, wait_for

BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
BPF_ENABLE_STATS, RUN_TIME = 32, 0
NAME_BYTES = 15
SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bpf", "*.bpf.c")


def enable_stats():
    """The kernel counts runs and run times as long as this descriptor is open."""
    libc = ctypes.CDLL(None, use_errno=True)
    attr = ctypes.create_string_buffer(RUN_TIME.to_bytes(4, sys.byteorder), 128)
    fd = libc.syscall(BPF_SYSCALL, BPF_ENABLE_STATS, attr, 128)
    if fd < 0:
        raise SystemExit(f"BPF_ENABLE_STATS: {os.strerror(ctypes.get_errno())}")
    return fd


def sections():
    """Which layer's program hangs where: {name as the kernel shortens it: (layer, section)}."""
    found = {}
    for path in glob.glob(SOURCES):
        text = open(path, encoding="utf-8").read()
        for section, name in re.findall(r'^SEC\("([^"]+)"\)\nint (?:BPF_PROG\()?(\w+)', text, re.M):
            layer = os.path.basename(path).split(".")[0]
            if layer not in ("calibrate", "doctor"):
                found[name[:NAME_BYTES]] = (layer, section)
    return found


def names(numbers):
    found = {}
    for number in numbers:
        text = subprocess.run(["bpftool", "-j", "prog", "show", "id", str(number)], check=True,
                              capture_output=True, text=True).stdout
        found[number] = json.loads(text).get("name", "?")[:NAME_BYTES]
    return found


class Slice:
    """Differences over some seconds of load."""

    def __init__(self, pid, load, holder, secs):
        stats = enable_stats()
        before, cpu, ops = programs(holder), cpu_ns(pid), io_calls(load)
        time.sleep(secs)
        after, self.cpu, self.ops = programs(holder), cpu_ns(pid) - cpu, io_calls(load) - ops
        os.close(stats)
        self.runs = {n: (after[n][0] - was[0], after[n][1] - was[1]) for n, was in before.items()
                     if n in after}


def own_hits(pid, load, work, events, secs):
    """Of these tracepoints, how many hits an operation are in threads of this process."""
    if not shutil.which("bpftrace"):
        print("# no bpftrace here: whose threads were hit is not known")
        return {}
    script = ['BEGIN { printf("ready\\n"); }']
    for event in events:
        script.append(f"tracepoint:{event} /pid == {pid}/ {{ @[\"{event}\"] = count(); }}")
    tool = Bpftrace("\n".join(script), work)
    ops = io_calls(load)
    time.sleep(secs)
    tool.interrupt()
    ops = io_calls(load) - ops
    return {event: int(count) / ops for event, count in
            re.findall(r"@\[([\w:]+)\]: (\d+)", tool.text())}


def tracepoints():
    """Tracepoints by name: {name: group:name}."""
    found = {}
    text = subprocess.run(["bpftrace", "-l", "tracepoint:*"], check=True, capture_output=True,
                          text=True).stdout if shutil.which("bpftrace") else ""
    for group, name in re.findall(r"^tracepoint:(\w+):(\w+)$", text, re.M):
        if group != "syscalls":
            found[name] = f"{group}:{name}"
    return found


def table(rows, slice_, own):
    """rows: (layer, program, tracepoint or None, ns, runs), dearest first."""
    ops = slice_.ops
    print("\n| layer | program | runs/op | of its threads | ns/run | us/op | of its CPU |\n"
          "|---|---|---|---|---|---|---|")
    for layer, name, event, ns, runs in rows:
        whose = "-" if not event or not own else f"{own.get(event, 0):.2f}"
        print(f"| {layer} | {name} | {runs / ops:.2f} | {whose} | {ns / runs:.0f} "
              f"| {ns / ops / 1000:.3f} | {100 * ns / slice_.cpu:.2f} % |")
    total_ns, total_runs = sum(r[3] for r in rows), sum(r[4] for r in rows)
    print(f"| all | | {total_runs / ops:.2f} | | {total_ns / total_runs:.0f} "
          f"| {total_ns / ops / 1000:.3f} | {100 * total_ns / slice_.cpu:.2f} % |")
    print(f"\n{ops} operations, {slice_.cpu / ops / 1000:.1f} us of CPU time of the process each")


def main():
    pid, load, work, secs = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
    tool = Bricktop(pid, work, 600, sys.argv[5:])
    wait_for("bricktop's probes", lambda: programs(tool.proc.pid))
    time.sleep(3)
    name = names(programs(tool.proc.pid))
    measured = Slice(pid, load, tool.proc.pid, secs)
    tool.interrupt()
    known, events = sections(), tracepoints()
    rows = []
    for number, (ns, runs) in measured.runs.items():
        layer, section = known.get(name[number], ("?", ""))
        if runs:
            rows.append((layer, name[number], events.get(section.split("/")[-1]), ns, runs))
    rows.sort(key=lambda row: -row[3])
    own = own_hits(pid, load, work, sorted({row[2] for row in rows if row[2]}), secs)
    table(rows, measured, own)


main()
