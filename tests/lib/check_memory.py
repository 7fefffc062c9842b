#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judge a report of the memory mode by what the process counted itself in the same time.

Given: e0.py's documents from before and after, and the report (JSON) of a graph without branches.
Every xlator and fop must have its count, its failed replies and its mean: both read the same
memory, each in its own way, so that nothing but the rounding of the mean may differ. Where xlators
share a row, its count is the largest of theirs, its mean the last one's; the root's count is of
the first xlator below that counts. A failed reply is counted where it arrives: a row's are those
that came to the row above, the root's its own; not known where that one had no such call.
"""
import argparse
import sys

from check_counts import differences, load, short_id

ROUNDED = 1e-3


class Judge:
    def __init__(self, args):
        before, after = load(args.before), load(args.after)
        self.own = differences(before, after, args.volume)
        self.top = next(short_id(x, args.volume) for x in after["xlators"][1:]
                        if any(f["wound"] for f in x["stats"].values()))
        self.report = load(args.report)
        self.seen = set()
        self.wrong = []
        self.compared = {"count": 0, "errors": 0, "mean": 0}
        self.failed = 0

    def same(self, figure, what, got, wanted, tolerance=0.0):
        self.compared[figure] += 1
        if got is None or abs(got - wanted) > tolerance * wanted:
            self.wrong.append(f"{what} {figure}: bricktop {got}, the process {wanted}")

    def figure(self, name, fop, key):
        return self.own.get(name, {}).get(fop, {}).get(key, 0)

    def check_row(self, op, row):
        fop, names, path = op["op"], row["id"].split("+"), row["path"].split("/")
        what, ended = f"{row['id']} {fop}", self.figure(names[-1], fop, "ended")
        above = path[-2].split("+")[-1] if len(path) > 1 else names[-1]
        self.seen.update((name, fop) for name in names)
        called = [self.top] if len(path) == 1 else names
        called = max(self.figure(name, fop, "wound") for name in called) or ended
        if called or len(path) > 1:
            self.same("count", what, row["count"], called)
        if row["errors"] is not None or fop in self.own[above]:
            self.same("errors", what, row["errors"], self.figure(above, fop, "failed"))
            self.failed += row["errors"] or 0
        if ended:
            self.same("mean", what, row["incl_us"]["mean"],
                      self.figure(names[-1], fop, "ns") / ended / 1000, ROUNDED)

    def check(self):
        for op in self.report["ops"]:
            if op["source"] != "memory":
                self.wrong.append(f"{op['op']}: from '{op['source']}'")
            for row in op["layers"]:
                self.check_row(op, row)
        for name, fops in sorted(self.own.items()):
            for fop, figures in sorted(fops.items()):
                if (figures["wound"] or figures["ended"]) and (name, fop) not in self.seen:
                    self.wrong.append(f"{name} {fop}: not in the report")
        for figure, count in self.compared.items():
            if not count:
                self.wrong.append(f"no {figure} was compared")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("report")
    parser.add_argument("--volume", required=True)
    parser.add_argument("--min-failed", type=int, default=0, metavar="REPLIES")
    args = parser.parse_args()
    judge = Judge(args)
    judge.check()
    if judge.failed < args.min_failed:
        judge.wrong.append(f"{judge.failed} failed replies, wanted {args.min_failed}")
    for line in judge.wrong:
        print(f"wrong: {line}")
    print(f"compared: {judge.compared}, {judge.failed} failed replies in all rows")
    return 1 if judge.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
