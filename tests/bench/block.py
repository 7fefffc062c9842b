#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What watching the block path of a plain process on XFS costs, bricktop's device table and all its
layers beside bpftrace scripts in the manner of biolatency and xfsslower (by tracepoints, which work
where there are no kprobes). Requests end in whoever's context, so what counts is the whole host's
CPU time for each I/O of the load, interrupts, kernel threads and the tools' own included; beside it
the load's own. And whether they count right: a second, finite load between two points at which the
file system is frozen, by fio's own count and the kernel's. Exits 1 where bricktop's differ.

usage: block.py NAME DEVICE MOUNT_POINT WORK_DIR ROUNDS SECS FIO...    FIO: a command that ends
"""
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time

from arms import NONE, Arms, wanted, with_bricktop
from sample import Bpftrace, Bricktop, host_per_op, interval

SLOW_US = 10000
CALLS = ("pread64", "pwrite64", "fsync")
BIOLATENCY = """BEGIN { printf("ready\\n"); }
tracepoint:block:block_rq_issue { @start[args->dev, args->sector] = nsecs; }
tracepoint:block:block_rq_complete /@start[args->dev, args->sector]/ {
	@usecs[args->dev] = hist((nsecs - @start[args->dev, args->sector]) / 1000);
	delete(@start[args->dev, args->sector]);
}
END { clear(@start); }
"""
XFSSLOWER = """BEGIN { printf("ready\\n"); }
ENTER /pid == PID/ { @start[tid] = nsecs; }
EXIT /@start[tid]/ {
	$us = (nsecs - @start[tid]) / 1000;
	if ($us >= SLOW_US) {
		printf("%-16s %-7d %s %d bytes %d us\\n", comm, tid, probe, args->ret, $us);
	}
	delete(@start[tid]);
}
END { clear(@start); }
"""


def biolatency(_pid, _slow_us):
    return BIOLATENCY


def xfsslower(pid, slow_us):
    """Calls of the process that took that long, a line each."""
    enter, leave = (",\n".join(f"tracepoint:syscalls:sys_{side}_{call}" for call in CALLS)
                    for side in ("enter", "exit"))
    return (XFSSLOWER.replace("ENTER", enter).replace("EXIT", leave)
            .replace("PID", str(pid)).replace("SLOW_US", str(slow_us)))


class Load:
    """Fio on that mount point, and what can be attached beside it."""

    def __init__(self, device, mount, work, secs, fio):
        self.device, self.mount, self.work = device, mount, work
        self.secs, self.fio, self.pid = secs, fio, None

    @contextlib.contextmanager
    def steady(self):
        proc = subprocess.Popen([*self.fio, "--time_based", "--runtime=3600"],
                                stdout=subprocess.DEVNULL)
        self.pid = proc.pid
        try:
            time.sleep(1)
            yield
        finally:
            proc.terminate()
            proc.wait()

    def measure(self):
        host, own, rate = host_per_op(self.pid, self.secs)
        return {"host": host, "own": own, "rate": rate}

    def devices(self):
        return with_bricktop(self.measure, self.device, self.work, self.secs)

    def all_layers(self):
        return with_bricktop(self.measure, self.pid, self.work, self.secs)

    def bpftrace(self, script, slow_us):
        return Bpftrace(script(self.pid, slow_us), self.work)

    def scripted(self, script):
        tool = self.bpftrace(script, SLOW_US)
        figures = self.measure()
        tool.interrupt()
        return figures, None

    def arms(self):
        arms = {"device table": self.devices, "all layers of a process": self.all_layers}
        if shutil.which("bpftrace"):
            arms["biolatency script"] = lambda: self.scripted(biolatency)
            arms["xfsslower script"] = lambda: self.scripted(xfsslower)
        else:
            print("# no bpftrace here: its scripts are left out")
        return wanted(arms)

    # ---- counts -----------------------------------------------------------------

    def ready_bricktop(self, target):
        tool = Bricktop(target, self.work, 0.5)
        tool.wait_report()
        return tool

    def requests(self):
        """What the kernel has counted of this device."""
        path = f"/sys/block/{os.path.basename(self.device)}/stat"
        fields = open(path, encoding="ascii").read().split()
        return int(fields[0]) + int(fields[4])

    def freeze(self, how):
        subprocess.run(["fsfreeze", how, self.mount], check=True)

    def finite(self, start):
        """A load that ends, from its begin to its end under the tool that start() attaches: that
        tool, the calls that fio made and the requests that the device had."""
        go, out = os.path.join(self.work, "go"), os.path.join(self.work, "fio.json")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(go)
        proc = subprocess.Popen([*self.fio, "--output-format=json", f"--output={out}",
                                 f"--exec_prerun=until [ -e {go} ]; do sleep 0.05; done"],
                                cwd=self.work, stdout=subprocess.DEVNULL)
        self.pid = proc.pid
        self.freeze("-f")
        try:
            tool = start()
            before = self.requests()
        finally:
            self.freeze("-u")
            open(go, "w", encoding="utf-8").close()
        proc.wait()
        self.freeze("-f")
        try:
            made = self.requests() - before
            tool.interrupt()
        finally:
            self.freeze("-u")
        text = open(out, encoding="utf-8").read()
        jobs = json.loads(text[text.index("{"):])["jobs"]
        return tool, sum(job[op]["total_ios"] for job in jobs
                         for op in ("read", "write", "sync")), made

    def count_devices(self):
        tool, _, made = self.finite(lambda: self.ready_bricktop(self.device))
        name = os.path.basename(self.device)
        # a flush is a request, but only as what is waited for does the kernel count it with these
        return sum(op["count"] for report in tool.lines() for device in report["devices"]
                   if device["name"] == name for op in device["ops"]
                   if op["op"] in ("read", "write", "flush-wait", "write-zeroes")), made

    def count_calls(self):
        tool, calls, _ = self.finite(lambda: self.ready_bricktop(self.pid))
        return sum(op["count"] for report in tool.lines() for op in report["ops"]
                   if op["op"] in CALLS), calls

    def count_biolatency(self):
        tool, _, made = self.finite(lambda: self.bpftrace(biolatency, 0))
        number = os.stat(self.device).st_rdev
        shown = re.search(rf"^@usecs\[{os.major(number) << 20 | os.minor(number)}\]: *\n"
                          r"((?:[\[(].*\n)*)", tool.text(), re.M)
        return sum(int(count) for count in re.findall(r"^[\[(].*?[\])]\s+(\d+)", shown.group(1),
                                                      re.M)) if shown else 0, made

    def count_xfsslower(self):
        tool, calls, _ = self.finite(lambda: self.bpftrace(xfsslower, 0))
        return len(re.findall(r" us$", tool.text(), re.M)), calls


def count(load, names):
    """What each of these arms counted, and what there was by the kernel's count of requests and by
    fio's count of calls: {arm: (counted, of, what)}."""
    counts = {"device table": (load.count_devices, "requests"),
              "all layers of a process": (load.count_calls, "calls"),
              "biolatency script": (load.count_biolatency, "requests"),
              "xfsslower script": (load.count_xfsslower, "calls")}
    return {name: (*counts[name][0](), counts[name][1]) for name in names}


def row(bench, name, counted):
    cells = [name]
    for what in ("host", "own"):
        mean, low, high = bench.overhead(name, what)
        cells.append(f"{bench.mean(name, what):.1f}")
        cells.append(f"{mean:+.1f} % ({low:+.1f} ... {high:+.1f})")
    said = bench.said_pct(name)
    cells.append("-" if said is None else f"{said:+.1f} %")
    cells.append(f"{counted[0]} of {counted[1]} {counted[2]}")
    print(f"| {' | '.join(cells)} |")


def table(name, bench, counts):
    print("\nhost CPU: all that was not idle: load, interrupts, kernel threads, tools, others")
    print(f"\n| {name} I/O | host CPU, us/op | against none (95 %) | the process's, us/op "
          "| against none (95 %) | bricktop says | counted |\n|---|---|---|---|---|---|---|")
    cells = ["none"]
    for what in ("host", "own"):
        mean, half = interval(bench.values(NONE, what))
        cells += [f"{mean:.1f}", f"+- {100 * half / mean:.1f} %"]
    print(f"| {' | '.join(cells)} | | {bench.mean(NONE, 'rate'):.0f} op/s |")
    for arm in bench.ratios:
        row(bench, arm, counts[arm])
    wrong = [arm for arm, (counted, of, _) in counts.items()
             if counted != of and not arm.endswith("script")]
    if wrong:
        print(f"\nmissed: exact counts of {', '.join(wrong)}")
    return wrong


def main():
    name, device, mount, work, rounds, secs = sys.argv[1:7]
    load = Load(device, mount, work, float(secs), sys.argv[7:])
    arms = load.arms()
    if not arms:
        return
    counts = count(load, arms)
    with load.steady():
        bench = Arms(load.measure, arms)
        bench.run(int(rounds))
    sys.exit(1 if table(name, bench, counts) else 0)


main()
