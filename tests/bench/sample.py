# SPDX-License-Identifier: Apache-2.0
"""What the benches measure with: CPU clocks, counts and sizes of processes, BPF programs' run times
and t intervals. Knows nothing of GlusterFS, nor of what is compared.
"""
import atexit
import json
import math
import os
import random
import re
import signal
import subprocess
import time

T_975 = [0, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14,
         2.13, 2.12, 2.11, 2.10, 2.09, 2.09]


def cpu_ns(pid):
    """CPU time of all threads of a process, ended ones included, to the nanosecond."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def io_calls(pid):
    """Read and write system calls of a process: what a synchronous load has asked for."""
    text = open(f"/proc/{pid}/io", encoding="ascii").read()
    fields = dict(line.split(": ") for line in text.splitlines())
    return int(fields["syscr"]) + int(fields["syscw"])


def peak_rss_kib(pid):
    text = open(f"/proc/{pid}/status", encoding="utf-8").read()
    return int(re.search(r"^VmHWM:\s+(\d+)", text, re.M).group(1))


def cpu_per_op(pid, load, secs):
    """CPU time of pid in us per operation of the load, and operations per second, for a while."""
    cpu, ops, start = cpu_ns(pid), io_calls(load), time.monotonic()
    time.sleep(secs)
    cpu, ops = cpu_ns(pid) - cpu, io_calls(load) - ops
    if ops < 50:
        raise SystemExit(f"the load made {ops} operations in {secs} s: it does not run")
    return cpu / ops / 1000, ops / (time.monotonic() - start)


def host_idle_ns():
    """Time in which CPUs of the host had nothing to run, waiting for I/O included. The kernel adds
    it up exactly, the other columns of /proc/stat only by its tick."""
    fields = open("/proc/stat", encoding="ascii").readline().split()
    return (int(fields[4]) + int(fields[5])) * 10**9 // os.sysconf("SC_CLK_TCK")


def host_per_op(load, secs):
    """CPU time in us per operation of the load, all of the host's and the load's own, and
    operations per second, for a while. The host's is that of interrupts, kernel threads and tools
    as well, and of whoever else runs here."""
    cpu, idle, ops, start = cpu_ns(load), host_idle_ns(), io_calls(load), time.monotonic()
    time.sleep(secs)
    cpu, idle, ops = cpu_ns(load) - cpu, host_idle_ns() - idle, io_calls(load) - ops
    wall = time.monotonic() - start
    busy = os.sysconf("SC_NPROCESSORS_ONLN") * wall * 1e9 - idle
    if ops < 50:
        raise SystemExit(f"the load made {ops} operations in {secs} s: it does not run")
    return busy / ops / 1000, cpu / ops / 1000, ops / wall


def programs(pid):
    """Run time and runs of each BPF program that a process holds: {id: (ns, count)}."""
    found = {}
    for entry in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            text = open(f"/proc/{pid}/fdinfo/{entry}", encoding="ascii").read()
        except OSError:
            continue
        fields = dict(re.findall(r"^(\w+):\s+(\S+)", text, re.M))
        if "run_cnt" in fields:
            found[int(fields["prog_id"])] = (int(fields["run_time_ns"]), int(fields["run_cnt"]))
    return found


def interval(values):
    """Mean and half width of its 95 % t interval; infinite where there is one value only."""
    n = len(values)
    mean = sum(values) / n
    if n < 2:
        return mean, math.inf
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1))
    return mean, T_975[min(n - 1, len(T_975) - 1)] * spread / math.sqrt(n)


def trimmed_mean(values, share=0.2):
    """Mean without that share of the values at each end: those of slices in which others ran."""
    values = sorted(values)
    cut = int(len(values) * share)
    kept = values[cut:len(values) - cut]
    return sum(kept) / len(kept)


def trimmed_interval(values, draws=4000):
    """Trimmed mean, and its 95 % interval by resampling (with a fixed seed); of fewer than six
    values nothing can be told, and it is infinite."""
    if len(values) < 6:
        return trimmed_mean(values), -math.inf, math.inf
    pick = random.Random(4711)
    means = sorted(trimmed_mean(pick.choices(values, k=len(values))) for _ in range(draws))
    return trimmed_mean(values), means[int(draws * 0.025)], means[int(draws * 0.975) - 1]


def wait_for(what, condition, secs=60):
    deadline = time.monotonic() + secs
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what}: not within {secs} s")
        time.sleep(0.02)


class Tool:
    """A tool under measurement: started, ready, interrupted; its output goes to a file."""

    def __init__(self, args, out, env=None):
        self.path = out
        self.file = open(out, "w", encoding="utf-8")
        self.proc = subprocess.Popen(args, stdout=self.file, stderr=subprocess.STDOUT,
                                     env=dict(os.environ, **(env or {})))
        atexit.register(self.end)

    def end(self):
        """Where the bench gives up, its tools must not go on."""
        if self.proc.poll() is None:
            self.proc.kill()

    def text(self):
        return open(self.path, encoding="utf-8", errors="replace").read()

    def shows(self, pattern):
        if self.proc.poll() is not None:
            raise SystemExit(f"{self.proc.args[0]} ended early: {self.text()[-500:]}")
        return re.search(pattern, self.text()) is not None

    def interrupt(self, secs=120):
        """Seconds from SIGINT to the end."""
        start = time.monotonic()
        self.proc.send_signal(signal.SIGINT)
        self.proc.wait(secs)
        self.file.close()
        return time.monotonic() - start


class Bpftrace(Tool):
    """A bpftrace script whose BEGIN prints "ready"; attached on return."""

    def __init__(self, script, work, options=()):
        path = os.path.join(work, "script.bt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        super().__init__(["bpftrace", *options, path], os.path.join(work, "bpftrace.out"))
        wait_for("bpftrace", lambda: self.shows("ready"))
        time.sleep(0.3)

    def interrupt(self, secs=120):
        # bpftrace 0.17 looks at its flag and then sleeps: a signal between the two is lost
        start = time.monotonic()
        while time.monotonic() - start < secs:
            try:
                super().interrupt(5)
                return time.monotonic() - start
            except subprocess.TimeoutExpired:
                continue
        raise SystemExit(f"bpftrace does not end within {secs} s")


class Bricktop(Tool):
    """`bricktop attach` with a report every so many seconds, each of its own window."""

    def __init__(self, pid, work, secs=3.0, args=(), env=None):
        self.reports = os.path.join(work, "reports.jsonl")
        if os.path.exists(self.reports):
            os.unlink(self.reports)
        command = [os.environ["BRICKTOP"], "attach", str(pid), "-d", "600s", "--interval",
                   f"{int(secs * 1000)}ms", "--json", "-o", self.reports, *args]
        super().__init__(command, os.path.join(work, "bricktop.out"), env)

    def lines(self):
        if self.proc.poll() not in (None, 0):
            raise SystemExit(f"bricktop ended: {self.text()[-500:]}")
        if not os.path.exists(self.reports):
            return []
        text = open(self.reports, encoding="utf-8").read()
        return [json.loads(line) for line in text.splitlines(True) if line.endswith("\n")]

    def wait_report(self, count=1):
        wait_for("bricktop's report", lambda: len(self.lines()) >= count)
