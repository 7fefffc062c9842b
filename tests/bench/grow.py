#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How bricktop's cost grows, what its collector takes, and how fast it lets go. Each command prints
one line and exits 1 where an aim is missed.

usage: grow.py walk LABEL PID LOAD_PID WORK_DIR SECS    the walk's cost on this brick
       grow.py rate PID LOAD_PID WORK_DIR SECS          throughput without and with all layers
       grow.py stacks PID COUNTER_FILE GO_FILE COUNT WORK_DIR   many small stacks, counted exactly
       grow.py collector PID WORK_DIR SECS              CPU time and memory of the collector
       grow.py detach PID WORK_DIR                      uprobe-multi against perf uprobes
"""
import json
import os
import struct
import subprocess
import sys
import time

from sample import Bricktop, cpu_ns, cpu_per_op, interval, peak_rss_kib, programs, wait_for

CORE_PCT, RSS_KIB = 1.0, 32 * 1024
STACKS_HZ = 20000
DETACH_RATIO = 0.1


def walk_program(pid):
    """The BPF program of a bricktop that has run for most requests: the walk."""
    names = {}
    for number, (_, count) in programs(pid).items():
        shown = json.loads(subprocess.run(["bpftool", "-j", "prog", "show", "id", str(number)],
                                          check=True, capture_output=True, text=True).stdout)
        if shown.get("name", "").startswith("on_callback"):
            names[count] = number
    return names[max(names)]


def unsplit(report):
    """Losses of a report: all of them together, and requests that could not be split."""
    return report["lost"]["total"], report["checks"]["unsplit"]


def walk(label, pid, load, work, secs):
    pid, load, secs = int(pid), int(load), float(secs)
    before, _ = cpu_per_op(pid, load, secs)
    tool = Bricktop(pid, work, secs, args=("--layers", "none"))
    tool.wait_report()
    number = walk_program(tool.proc.pid)
    start = programs(tool.proc.pid)[number]
    cost, rate = cpu_per_op(pid, load, secs)
    end = programs(tool.proc.pid)[number]
    tool.interrupt()
    after, _ = cpu_per_op(pid, load, secs)
    report = tool.lines()[-1]
    lost, torn = unsplit(report)
    base = (before + after) / 2
    rows = max((len(op["layers"]) for op in report["ops"]), default=0)
    print(f"| {label} | {rows} | {base:.1f} | {cost:.1f} | {100 * (cost / base - 1):+.1f} % "
          f"| {(end[0] - start[0]) / (end[1] - start[1]) / 1000:.1f} | {rate:.0f} "
          f"| {lost} | {torn} |")
    return lost or torn


def rate(pid, load, work, secs):
    pid, load, secs, ratios = int(pid), int(load), float(secs), []
    lost = 0
    for _ in range(3):
        _, before = cpu_per_op(pid, load, secs)
        tool = Bricktop(pid, work, secs)
        tool.wait_report()
        _, during = cpu_per_op(pid, load, secs)
        tool.interrupt()
        lost += tool.lines()[-1]["lost"]["total"]
        _, after = cpu_per_op(pid, load, secs)
        ratios.append(2 * during / (before + after))
    mean, half = interval(ratios)
    print(f"as fast as it goes here, {after:.0f} op/s: with all layers {100 * mean:.1f} % of that "
          f"(+- {100 * half:.1f} %), {lost} lost")
    return lost


def stacks(pid, counter, go, count, work):
    def made():
        return struct.unpack("<QQ", open(counter, "rb").read(16))[1]

    tool = Bricktop(int(pid), work, 600)
    wait_for("bricktop's probes", lambda: programs(tool.proc.pid))
    time.sleep(2)
    start = time.monotonic()
    open(go, "w", encoding="utf-8").close()
    wait_for("the stacks", lambda: made() >= int(count), 120)
    secs = time.monotonic() - start
    time.sleep(0.2)
    tool.interrupt()
    report = tool.lines()[-1]
    lost, torn = unsplit(report)
    seen = sum(op["count"] for op in report["ops"] if op["root"] == "brick")
    hz = int(count) / secs
    print(f"{count} stacks of six frames at {hz:.0f} a second (aim {STACKS_HZ}): "
          f"{seen} accounted, {lost} lost, {torn} unsplit, core {report['cost']['core_pct']:.1f} %")
    return seen != int(count) or lost or torn or hz < STACKS_HZ


def collector(pid, work, secs):
    tool = Bricktop(int(pid), work, 600)
    wait_for("bricktop's probes", lambda: programs(tool.proc.pid))
    time.sleep(3)
    cpu, start = cpu_ns(tool.proc.pid), time.monotonic()
    time.sleep(float(secs))
    pct = (cpu_ns(tool.proc.pid) - cpu) / (time.monotonic() - start) / 1e7
    rss = peak_rss_kib(tool.proc.pid)
    tool.interrupt()
    print(f"collector at 1 Hz: {pct:.2f} % of a core (aim {CORE_PCT}), "
          f"at most {rss / 1024:.1f} MiB (aim {RSS_KIB / 1024:.0f})")
    return pct > CORE_PCT or rss > RSS_KIB


def detach(pid, work):
    """Seconds from SIGINT to the end, without those that a session without probes takes."""
    def last(args=(), env=None):
        tool = Bricktop(int(pid), work, 0.5, args, env)
        tool.wait_report()
        return tool.interrupt()

    nothing = min(last(("--memory-only",)) for _ in range(2))
    multi = min(last() for _ in range(2)) - nothing
    perf = last(env={"BRICKTOP_UPROBE": "perf"}) - nothing
    print(f"detaching takes {multi:.2f} s, with perf uprobes {perf:.2f} s: "
          f"{multi / perf:.3f} of it (aim {DETACH_RATIO})")
    return multi > DETACH_RATIO * perf


COMMANDS = {"walk": walk, "rate": rate, "stacks": stacks, "collector": collector, "detach": detach}
sys.exit(1 if COMMANDS[sys.argv[1]](*sys.argv[2:]) else 0)
