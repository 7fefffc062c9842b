#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are the slow operations of a report those that a translator has delayed, each by its layer?

The delay translator's own log says when it held which fop. An operation that is shown holds such a
time in the row of that layer: one each, and that row is the one marked. One may be missing only
where the list is full of others that truly took longer. What else is shown must be something that
the machine itself held up: slow by its own figures, and in no way by that layer. Every tree must
add up to its operation.
"""
import argparse
import json
import sys

import judged

FOPS = {12: "read", 13: "write"}
KEPT = 20  # of a target's requests by users
CLOCKS_US = 500  # the wall clock may be slewed a little while the monotonic one is not


def load_log(path):
    with open(path, encoding="ascii") as lines:
        fields = [line.split() for line in lines]
    return [(int(begin) / 1000, int(end) / 1000, FOPS[int(fop)]) for begin, end, fop in fields]


def holds(op, layer, held):
    """This operation's row of the layer has the time in which the translator held a request."""
    begin, end, fop = held
    return op["op"] == fop and any(
        row["id"] == layer and
        op["start_unix_us"] + row["at_us"] <= begin + CLOCKS_US and
        op["start_unix_us"] + row["at_us"] + row["incl_us"] >= end - CLOCKS_US
        for row in op["layers"])


def longest(op):
    marked = [row for row in op["layers"] if row["longest"]]
    return marked[0] if len(marked) == 1 else {"id": "", "self_us": 0}


def judge_sum(op):
    parts = sum(row["self_us"] for row in op["layers"]) + op["more"]["self_us"]
    yield (abs(parts - op["incl_us"]) < 0.5 and not op["unsplit"],
           f"{op['op']} of {op['start']}: rows make {parts:.1f} of {op['incl_us']:.1f} us")


def is_pushed_off(shown, held):
    """Each of a list that is full took longer than that one was held."""
    return len(shown) == KEPT and all(op["incl_us"] >= held[1] - held[0] for op in shown)


def judge_log(args, limits, log):
    yield (limits["slow"] >= len(log) and not limits["lost"],
           f"{limits['slow']} slow, {limits['lost']} of them lost; {len(log)} delayed")
    yield len(log) == args.count > 0, f"{len(log)} in the log, {args.count} by the counter"


def judge(args, shown, log):
    delayed, missing = {}, 0
    for number, held in enumerate(log):
        found = [i for i, op in enumerate(shown) if holds(op, args.layer, held)]
        missing += not found
        yield (len(found) == 1 and found[0] not in delayed or
               not found and is_pushed_off(shown, held),
               f"{held[2]} held for {(held[1] - held[0]) / 1000:.1f} ms: shown as {found}")
        delayed.update((i, number) for i in found)
    for i, op in enumerate(shown):
        most = longest(op)
        yield (op["incl_us"] >= args.limit_us == op["limit_us"],
               f"{op['op']} of {op['start']} took {op['incl_us'] / 1000:.1f} ms")
        yield from judge_sum(op)
        if i in delayed:
            yield (most["id"] == args.layer and most["self_us"] >= args.delay_us,
                   f"  most of it in {most['id']}: {most['self_us'] / 1000:.1f} ms")
        else:
            yield (most["id"] != args.layer, f"  not delayed, and most of it in {most['id']}")
    spare = len(shown) - len(delayed)
    yield missing <= spare <= args.spare, \
        f"{spare} others that the machine held up, {missing} pushed off by them"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("report")
    parser.add_argument("log", help="of the translator")
    parser.add_argument("--layer", required=True, help="the translator, as the report calls it")
    parser.add_argument("--limit-us", type=int, required=True)
    parser.add_argument("--delay-us", type=int, required=True)
    parser.add_argument("--count", type=int, required=True, help="delays, by its counter")
    parser.add_argument("--spare", type=int, default=2,
                        help="others that may be slow: on a shared machine anything may")
    args = parser.parse_args()
    with open(args.report, encoding="utf-8") as report:
        report = json.load(report)
    log = load_log(args.log)
    shown = [op for op in report["slow"] if op["root"] == "brick" and op["origin"] == "user"]
    return judged.show([*judge_log(args, report["slow_limits"], log), *judge(args, shown, log)])


if __name__ == "__main__":
    sys.exit(main())
