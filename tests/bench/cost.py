#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What watching a brick costs it: CPU time per operation with each tool attached, against none.

One brick under one steady load; the arms take turns, each between two slices with nothing attached,
in reversed order every other round. A ratio is an arm's CPU per operation over the mean of its two
neighbours: what changes slowly is in all three. The machine has short fits as well, so slices are
short and many, and of the ratios' logarithms the trimmed mean is taken, with the interval that
resampling gives it. Beside it stands what bricktop itself said, over the same seconds.

usage: cost.py PID LOAD_PID WORK_DIR ROUNDS SECS [PROFILE_ON PROFILE_OFF]
"""
import math
import os
import shutil
import subprocess
import sys
import time

import fops
from sample import Bricktop, Tool, cpu_per_op, interval, trimmed_interval, wait_for

SCRIPT = "bpftrace script"
AIMS_PCT = {"E0": 0.5, "E0+walk": 5.0, "all layers": 15.0}


class Bench:
    def __init__(self, pid, load, work, secs, profile):
        self.pid, self.load, self.work, self.secs = pid, load, work, secs
        self.profile = profile
        self.script = os.path.join(work, "fops.bt")
        self.cost, self.ratio, self.meter, self.rate = {}, {}, {}, {}
        self.failed = {}

    def measure(self):
        return cpu_per_op(self.pid, self.load, self.secs)

    def bricktop(self, *args, env=None):
        tool = Bricktop(self.pid, self.work, self.secs, args, env)
        tool.wait_report()
        figures = self.measure()
        tool.interrupt()
        # the last report is of what is left of its interval: it counts by its length
        said = tool.lines()[1:]
        lost = sum(report["lost"]["total"] for report in said)
        if lost:
            print(f"# lost in this slice: {lost}")
        secs = [report["window"]["secs"] for report in said]
        return figures, sum(report["cost"]["target_pct"] * s
                            for report, s in zip(said, secs)) / sum(secs)

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
        tool = Tool(["bpftrace", "--unsafe", "-p", str(self.pid), self.script],
                    os.path.join(self.work, "bpftrace.out"))
        wait_for("bpftrace", lambda: tool.shows("ready"))
        time.sleep(0.3)
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
                "all layers": self.all_layers, "all layers and --slow": self.slow}
        if self.profile:
            arms["volume profile"] = self.volume_profile
        if shutil.which("bpftrace"):
            text, count = fops.script(self.pid)
            open(self.script, "w", encoding="utf-8").write(text)
            print(f"# the bpftrace script has {count} probes")
            arms[SCRIPT] = self.bpftrace
        if shutil.which("perf"):
            arms["perf trace -s"] = self.perf_trace
        wanted = [name for name in os.environ.get("COST_ARMS", "").split(",") if name]
        return {name: arm for name, arm in arms.items() if not wanted or name in wanted}

    def run(self, rounds):
        arms = list(self.arms().items())
        for number in range(rounds):
            before, rate = self.measure()
            self.note("none", before, rate)
            for name, arm in arms if number % 2 == 0 else arms[::-1]:
                (cost, rate), said = arm()
                self.note(name, cost, rate)
                after, rate = self.measure()
                self.note("none", after, rate)
                self.ratio.setdefault(name, []).append(math.log(2 * cost / (before + after)))
                if said is not None:
                    self.meter.setdefault(name, []).append(said)
                before = after
            print(f"# round {number + 1} of {rounds}", flush=True)

    def note(self, name, cost, rate):
        self.cost.setdefault(name, []).append(cost)
        self.rate.setdefault(name, []).append(rate)


def verdict(low, high, aim):
    """Of an aim in %, for an overhead that lies between low and high %."""
    if high <= aim:
        return "met"
    return "missed" if low > aim else "not decided"


def row(bench, name):
    """One line of the table, and whether an aim was missed."""
    mean, low, high = trimmed_interval(bench.ratio[name])
    low, high = 100 * (math.exp(low) - 1), 100 * (math.exp(high) - 1)
    said, inside, aim = "-", "-", "-"
    if name in bench.meter:
        share = sum(bench.meter[name]) / len(bench.meter[name]) / 100
        added = 100 * share / (1 - share)
        said = f"{added:+.1f} %"
        inside = "yes" if low <= added <= high else "no"
    if name in AIMS_PCT:
        aim = f"{AIMS_PCT[name]} %: {verdict(low, high, AIMS_PCT[name])}"
    print(f"| {name} | {sum(bench.cost[name]) / len(bench.cost[name]):.1f} "
          f"| {100 * (math.exp(mean) - 1):+.1f} % | {low:+.1f} ... {high:+.1f} % "
          f"| {said} | {inside} | {aim} |")
    return aim.endswith("missed")


def table(bench):
    mean, half = interval(bench.cost["none"])
    rate = bench.rate["none"]
    print("\n| arm | brick CPU, us/op | against none | 95 % | bricktop says | inside | aim |\n"
          "|---|---|---|---|---|---|---|")
    print(f"| none | {mean:.1f} | | +- {100 * half / mean:.1f} % | | | "
          f"{sum(rate) / len(rate):.0f} op/s |")
    missed = [name for name in bench.ratio if row(bench, name)]
    if SCRIPT in bench.ratio and "E0+walk" in bench.ratio:
        ours, theirs = (trimmed_interval(bench.ratio[n])[0] for n in ("E0+walk", SCRIPT))
        print(f"\nper-layer numbers cost {100 * (math.exp(ours) - 1):+.1f} % by bricktop's walk, "
              f"{100 * (math.exp(theirs) - 1):+.1f} % by the bpftrace script")
        if ours > theirs:
            missed.append("cheapest with per-layer numbers")
    return missed


def main():
    pid, load, work, rounds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    bench = Bench(pid, load, work, float(sys.argv[5]), sys.argv[6:8])
    bench.run(rounds)
    missed = table(bench)
    if missed:
        print(f"\nmissed: {', '.join(missed)}")
    sys.exit(len(missed) > 0)


main()
