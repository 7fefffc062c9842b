#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What watching a brick costs it: CPU time per operation with each tool attached, against none.
One brick under one steady load; arms.py says how the arms take turns and what is made of it. Beside
it stands what bricktop itself said, over the same seconds.

usage: cost.py PID LOAD_PID WORK_DIR ROUNDS SECS [PROFILE_ON PROFILE_OFF]
"""
import os
import shutil
import subprocess
import sys
import time

import fops
from arms import NONE, Arms, wanted, with_bricktop
from sample import Bpftrace, Tool, cpu_per_op, interval

SCRIPT = "bpftrace script"
ALL, SLOW = "all layers", "all layers and --slow"
AIMS_PCT = {"E0": 0.5, "E0+walk": 5.0, ALL: 15.0}


class Brick:
    """A brick under load, and what can be attached to it."""

    def __init__(self, pid, load, work, secs, profile):
        self.pid, self.load, self.work, self.secs = pid, load, work, secs
        self.profile = profile
        self.script = None

    def measure(self):
        cpu, rate = cpu_per_op(self.pid, self.load, self.secs)
        return {"cpu": cpu, "rate": rate}

    def bricktop(self, *args):
        return with_bricktop(self.measure, self.pid, self.work, self.secs, args)

    def e0(self):
        return self.bricktop("--memory-only")

    def walk(self):
        return self.bricktop("--layers", "none")

    def system_calls(self):
        return self.bricktop("--layers", "syscall")

    def all_layers(self):
        return self.bricktop()

    def slow(self):
        return self.bricktop("--slow", "50ms")

    def volume_profile(self):
        subprocess.run(self.profile[0], shell=True, check=True, stdout=subprocess.DEVNULL)
        time.sleep(0.3)
        figures = self.measure()
        subprocess.run(self.profile[1], shell=True, check=True, stdout=subprocess.DEVNULL)
        return figures, None

    def bpftrace(self):
        tool = Bpftrace(self.script, self.work, ("--unsafe", "-p", str(self.pid)))
        figures = self.measure()
        tool.interrupt()
        if "_us:" not in tool.text():
            raise SystemExit(f"bpftrace saw nothing: {tool.text()[-300:]}")
        return figures, None

    def perf_trace(self):
        out = os.path.join(self.work, "trace.out")
        tool = Tool(["perf", "trace", "-s", "-p", str(self.pid), "-o", out],
                    os.path.join(self.work, "perf.out"))
        time.sleep(1)
        figures = self.measure()
        tool.interrupt()
        if "pwrite64" not in open(out, encoding="utf-8", errors="replace").read():
            raise SystemExit("perf trace saw nothing")
        return figures, None

    def arms(self):
        arms = {"E0": self.e0, "E0+walk": self.walk, "walk and system calls": self.system_calls,
                ALL: self.all_layers, SLOW: self.slow}
        if self.profile:
            arms["volume profile"] = self.volume_profile
        if shutil.which("bpftrace"):
            self.script, count = fops.script(self.pid)
            print(f"# the bpftrace script has {count} probes")
            arms[SCRIPT] = self.bpftrace
        if shutil.which("perf"):
            arms["perf trace -s"] = self.perf_trace
        return wanted(arms)


def verdict(low, high, aim):
    """Of an aim in %, for an overhead that lies between low and high %."""
    if high <= aim:
        return "met"
    return "missed" if low > aim else "not decided"


def row(bench, name):
    """One line of the table, and whether an aim was missed."""
    mean, low, high = bench.overhead(name, "cpu")
    said, inside, aim = "-", "-", "-"
    added = bench.said_pct(name)
    if added is not None:
        said = f"{added:+.1f} %"
        inside = "yes" if low <= added <= high else "no"
    if name in AIMS_PCT:
        aim = f"{AIMS_PCT[name]} %: {verdict(low, high, AIMS_PCT[name])}"
    print(f"| {name} | {bench.mean(name, 'cpu'):.1f} | {mean:+.1f} % "
          f"| {low:+.1f} ... {high:+.1f} % | {said} | {inside} | {aim} |")
    return aim.endswith("missed")


def table(bench):
    mean, half = interval(bench.values(NONE, "cpu"))
    print("\n| arm | brick CPU, us/op | against none | 95 % | bricktop says | inside | aim |\n"
          "|---|---|---|---|---|---|---|")
    print(f"| none | {mean:.1f} | | +- {100 * half / mean:.1f} % | | | "
          f"{bench.mean(NONE, 'rate'):.0f} op/s |")
    missed = [name for name in bench.ratios if row(bench, name)]
    if SCRIPT in bench.ratios and "E0+walk" in bench.ratios:
        ours, theirs = (bench.overhead(name, "cpu")[0] for name in ("E0+walk", SCRIPT))
        print(f"\nper-layer numbers cost {ours:+.1f} % by bricktop's walk, "
              f"{theirs:+.1f} % by the bpftrace script")
        if ours > theirs:
            missed.append("cheapest with per-layer numbers")
    if {ALL, SLOW} <= bench.ratios.keys():
        mean, low, high = bench.beside(SLOW, ALL, "cpu")
        print(f"\nkeeping slow operations whole costs {mean:+.1f} % ({low:+.1f} ... {high:+.1f})")
        if low > 0:
            missed.append("--slow costs nothing beside all layers")
    return missed


def main():
    pid, load, work, rounds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    brick = Brick(pid, load, work, float(sys.argv[5]), sys.argv[6:8])
    bench = Arms(brick.measure, brick.arms())
    bench.run(rounds)
    missed = table(bench)
    if missed:
        print(f"\nmissed: {', '.join(missed)}")
    sys.exit(len(missed) > 0)


main()
