#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a process pays that nobody looks at: system calls are watched by hooks that every process of
the host runs into, and those of others are sent away at once. A loop of getppid() (getppid.c), the
cheapest call there is, in a process of its own; bricktop on a brick that has nothing to do. The
figure is the loop's own CPU time for a call.

usage: bystander.py GETPPID BRICK_PID WORK_DIR ROUNDS SECS
"""
import contextlib
import subprocess
import sys
import time

from arms import NONE, Arms, wanted, with_bricktop
from sample import cpu_ns, interval


class Bystander:
    def __init__(self, command, brick, work, secs):
        self.command, self.brick, self.work, self.secs = command, brick, work, secs
        self.loop = self.count = None

    @contextlib.contextmanager
    def running(self):
        path = f"{self.work}/calls"
        with open(path, "wb") as file:
            file.write(bytes(8))
        self.count = open(path, "rb")
        self.loop = subprocess.Popen([self.command, path])
        try:
            time.sleep(1)
            yield
        finally:
            self.loop.kill()
            self.loop.wait()
            self.count.close()

    def calls(self):
        self.count.seek(0)
        return int.from_bytes(self.count.read(8), sys.byteorder)

    def measure(self):
        cpu, calls = cpu_ns(self.loop.pid), self.calls()
        time.sleep(self.secs)
        cpu, calls = cpu_ns(self.loop.pid) - cpu, self.calls() - calls
        if calls < 10000:
            raise SystemExit(f"the loop made {calls} calls in {self.secs} s: it does not run")
        return {"call": cpu / calls}

    def bricktop(self, *args):
        # what the brick is said to pay, which does nothing, is not asked for
        return with_bricktop(self.measure, self.brick, self.work, self.secs, args)[0], None

    def arms(self):
        return wanted({"no layers": lambda: self.bricktop("--layers", "none"),
                       "all layers": self.bricktop})


def table(bench):
    mean, half = interval(bench.values(NONE, "call"))
    print("\n| a bystander's getppid() | ns/call | against none (95 %) | |\n|---|---|---|---|")
    print(f"| none | {mean:.0f} | +- {100 * half / mean:.1f} % | |")
    for name in bench.ratios:
        more = bench.overhead(name, "call")
        print(f"| {name} | {bench.mean(name, 'call'):.0f} "
              f"| {more[0]:+.1f} % ({more[1]:+.1f} ... {more[2]:+.1f}) "
              f"| {mean * more[0] / 100:+.0f} ns ({mean * more[1] / 100:+.0f} ... "
              f"{mean * more[2] / 100:+.0f}) |")


def main():
    command, brick, work, rounds, secs = sys.argv[1:6]
    bystander = Bystander(command, brick, work, float(secs))
    arms = bystander.arms()
    if not arms:
        return
    with bystander.running():
        bench = Arms(bystander.measure, arms)
        bench.run(int(rounds))
    table(bench)


main()
