#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judge a bricktop report by what the process counted itself in the same time.

Given: e0.py's documents from before and after, and the report (JSON). Each fop's requests, failures
and coverage must agree exactly (the process counts them at the first xlator below the root that
counts at all), and so must every xlator's passages and mean times, as far as the process keeps
them.
"""
import argparse
import json
import sys
from collections import defaultdict

REQUESTS = ("brick", "client")
# GlusterFS adds up its latencies without a lock, and loses a few in ten thousand
UNLOCKED = 0.002


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def short_id(xlator, volume):
    """An xlator's name without the volume's, as reports have it; a top io-stats by its type."""
    if xlator["id"].startswith(volume + "-"):
        return xlator["id"][len(volume) + 1:]
    if "/" in xlator["id"] or xlator["id"] == volume:
        return xlator["type"].split("/")[-1]
    return xlator["id"]


def differences(before, after, volume):
    """{xlator id: {fop: {figure: after - before}}}"""
    old = {x["addr"]: x["stats"] for x in before["xlators"]}
    out = {}
    for xlator in after["xlators"]:
        was = old.get(xlator["addr"], {})
        out[short_id(xlator, volume)] = {
            fop: {key: value - was.get(fop, {}).get(key, 0) for key, value in stats.items()}
            for fop, stats in xlator["stats"].items()}
    return out


class Judge:
    def __init__(self, args):
        before, after = load(args.before), load(args.after)
        self.args, self.report = args, load(args.report)
        self.own = differences(before, after, args.volume)
        self.root = short_id(after["xlators"][0], args.volume)
        # what had ended when discovery was known to have settled
        self.late = differences(load(args.mid), after, args.volume) if args.mid else self.own
        self.created = after["created"] - before["created"]
        self.top = next(short_id(x, args.volume) for x in after["xlators"][1:]
                        if any(f["wound"] for f in x["stats"].values()))
        self.wrong = []
        self.compared = 0
        self.failed = self.failures_unknown = 0

    def same(self, what, got, wanted, tolerance=0.0):
        self.compared += 1
        if abs(got - wanted) > tolerance * abs(wanted):
            self.wrong.append(f"{what}: bricktop {got}, the process {wanted}")

    def ops(self, roots=REQUESTS):
        return [o for o in self.report["ops"] if o["root"] in roots]

    def check_requests(self):
        walked, failed, coverage = defaultdict(int), defaultdict(int), {}
        for op in self.ops():
            if op["source"] == "walk":
                walked[op["op"]] += op["count"]
                failed[op["op"]] += op["errors"]
            coverage[op["op"]] = op["coverage_pct"]
        top = self.own[self.top]
        for fop, figures in sorted(top.items()):
            if not figures["wound"]:
                continue
            inner = self.args.inner.get(fop, 0)
            missing = figures["wound"] - walked[fop]
            if 0 < missing <= inner:
                print(f"{fop}: {missing} that no client has asked for")
                continue
            self.same(f"{fop} requests", walked[fop], figures["wound"])
            self.same(f"{fop} failed", failed[fop],
                      self.own[self.root].get(fop, {}).get("failed", 0))
            if coverage.get(fop) != 100:
                self.wrong.append(f"{fop} coverage_pct: {coverage.get(fop)}, wanted 100")
        for fop, count in walked.items():
            if count and not top.get(fop, {}).get("wound"):
                self.wrong.append(f"{fop}: {count} requests that the process did not count")
        for fop in self.args.expect:
            if not walked[fop]:
                self.wrong.append(f"{fop}: no request at all; there were {sorted(walked)}")

    def check_faults(self):
        for cause, count in self.report["lost"].items():
            # a machine may hide threads from tracing: then also the switch from one to another's
            if cause == "total":
                count -= self.report["lost"]["wakes"]
            if count and cause != "wakes" and cause not in self.args.allow_lost:
                self.wrong.append(f"lost {cause}: {count}")
        for op in self.report["ops"]:
            if op["root"] != "local" and op["sum_check_pct"] != 100:
                self.wrong.append(f"sum check of {op['root']} {op['op']}: {op['sum_check_pct']}")

    def rows(self):
        """{xlator: {fop: [count, total us, requests]}} of all requests and background stacks."""
        rows = defaultdict(lambda: defaultdict(lambda: [0, 0.0, 0]))
        for op in self.report["ops"]:
            for layer in op["layers"]:
                if layer["kind"] != "xlator" or op["source"] != "walk":
                    continue
                # xlators that share a frame are named together; it ends in the lowest
                row = rows[layer["id"].split("+")[-1]][op["op"]]
                row[0] += layer["count"]
                row[1] += layer["count"] * (layer["incl_us"]["mean"] or 0)
                row[2] += op["count"]
        return rows

    def check_xlators(self):
        """All passages of each xlator; of those that copy stacks the copies' roots count, too."""
        rows = self.rows()
        for name, own in sorted(self.own.items()):
            ended = sum(f["ended"] for f in own.values())
            if not ended or name in (self.root, *self.args.copies):
                continue
            count = sum(row[0] for row in rows[name].values())
            total_us = sum(row[1] for row in rows[name].values())
            own_us = sum(f["ns"] for f in own.values()) / 1000
            late = ended - sum(f["ended"] for f in self.late[name].values())
            # what ended before discovery had found its callback may lack; what outlives its
            # request's reply is entered twice, by its part before and its part after it
            most = ended * (1 + UNLOCKED) + self.report["checks"]["open"]
            self.compared += 1
            least = (ended - late) * (1 - UNLOCKED) - sum(self.args.inner.values())
            if not least <= count <= most:
                self.wrong.append(f"{name} passages: bricktop {count}, the process {ended}, "
                                  f"{late} of them early")
            if abs(count - ended) <= UNLOCKED * ended:
                self.same(f"{name} mean us", total_us / count, own_us / ended,
                          self.args.mean_pct / 100)
            if self.args.chain:
                self.check_fops(name, rows[name], own)
        if self.args.chain:
            self.same("total us of requests", sum(row[1] for row in rows[self.root].values()),
                      sum(f["ns"] for f in self.own[self.root].values()) / 1000,
                      self.args.mean_pct / 100)

    def check_fops(self, name, rows, own):
        """Fop by fop, where every request has passed once."""
        for fop, (count, total_us, requests) in sorted(rows.items()):
            own_fop = own.get(fop, {"ended": 0, "ns": 0})
            if count != requests or count < self.args.min_for_mean:
                continue
            self.same(f"{name} {fop} passages", count, own_fop["ended"], UNLOCKED)
            self.same(f"{name} {fop} mean us", total_us / count,
                      own_fop["ns"] / max(own_fop["ended"], 1) / 1000, self.args.mean_pct / 100)

    def failures(self):
        """{xlator: {fop: failed replies that came to it}}; None where a row does not know."""
        failed = defaultdict(lambda: defaultdict(int))
        for op in self.report["ops"]:
            if op["root"] == "local" or op["source"] != "walk":
                continue
            for layer in op["layers"]:
                if layer["kind"] != "xlator" or "/" not in layer["path"]:
                    continue
                above = failed[layer["path"].split("/")[-2].split("+")[-1]]
                if layer["errors"] is None or above[op["op"]] is None:
                    above[op["op"]] = None
                else:
                    above[op["op"]] += layer["errors"]
        return failed

    def check_failures(self):
        """GlusterFS counts a failed reply where it comes to, under what was asked there."""
        failed = self.failures()
        for name, own in sorted(self.own.items()):
            for fop in sorted(set(own) | set(failed[name])):
                got = failed[name][fop]
                self.failures_unknown += got is None
                if got is not None:
                    self.same(f"{name} {fop} failed replies", got,
                              own.get(fop, {}).get("failed", 0))
                    self.failed += got

    def check_stacks(self):
        """Stacks that were created: requests, copies of them, background, and what winds none."""
        checks = self.report["checks"]
        known = checks["walked"] + checks["copies"]
        print(f"stacks: {self.created} created, {known} accounted for, "
              f"{self.created - known} more")
        if self.args.max_unaccounted is not None and \
                self.created - known > self.args.max_unaccounted:
            self.wrong.append(f"stacks: {self.created - known} of {self.created} unaccounted")

    def show(self):
        for op in self.report["ops"]:
            print(f"{op['root']} {op['origin']} {op['op']}: {op['count']} ({op['source']}), "
                  f"{op['errors']} failed, coverage {op['coverage_pct']}")
        for line in self.wrong:
            print(f"wrong: {line}")
        print(f"requests counted at {self.top}; {self.compared} figures compared, "
              f"{len(self.wrong)} wrong")


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("report")
    parser.add_argument("--volume", required=True)
    parser.add_argument("--expect", action="append", default=[], metavar="FOP")
    parser.add_argument("--mid", metavar="FILE", help="e0.py's, from when discovery had settled")
    parser.add_argument("--chain", action="store_true", help="no stack is copied: by fop, too")
    parser.add_argument("--copies", action="append", default=[], metavar="X",
                        help="an xlator that copies stacks")
    parser.add_argument("--min-failed", type=int, metavar="REPLIES",
                        help="compare failed replies, xlator by xlator")
    parser.add_argument("--inner", action="append", default=[], metavar="FOP=N",
                        help="so many calls the process may have made by itself")
    parser.add_argument("--mean-pct", type=float, default=2.0)
    parser.add_argument("--min-for-mean", type=int, default=20, metavar="CALLS")
    parser.add_argument("--max-unaccounted", type=int, metavar="STACKS")
    parser.add_argument("--allow-lost", action="append", default=[], metavar="CAUSE")
    args = parser.parse_args()
    args.inner = {fop: int(n) for fop, n in (pair.split("=") for pair in args.inner)}
    return args


def main():
    args = parse_args()
    judge = Judge(args)
    judge.check_requests()
    judge.check_faults()
    judge.check_xlators()
    judge.check_stacks()
    if args.min_failed is not None:
        judge.check_failures()
        if judge.failed < args.min_failed:
            judge.wrong.append(f"{judge.failed} failed replies, wanted {args.min_failed}")
        print(f"failed replies: {judge.failed}, unknown in {judge.failures_unknown} rows")
    judge.show()
    return 1 if judge.wrong or not judge.compared else 0


if __name__ == "__main__":
    sys.exit(main())
