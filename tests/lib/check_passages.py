#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold dumped requests against what the process counted, xlator by xlator and fop by fop.

Given: e0.py's documents from two quiet moments, the monotonic time of the first one, and a dump of
all requests. Each fop that an xlator says ended between the two must be in the dump, in a request
or in the background, as often: nothing that copies of stacks did may be missing, however short they
live. What outlives its request's reply lies in parts in two records and is one passage here; that
no time is in both is check_dump.py's to say.
"""
import argparse
import json
import sys
from collections import Counter

KEPT = 0.002  # GlusterFS counts what ended without a lock


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def own_counts(path, xlators):
    """{(xlator, fop): calls that ended}, names as in the dump."""
    return Counter({(name, fop): figures["ended"] for x in load(path)["xlators"]
                    for name in xlators if x["id"].endswith("-" + name)
                    for fop, figures in x["stats"].items()})


def dumped(path, xlators, since):
    """The same, of frames begun since then, each once; and how many lay in users' requests."""
    counts, within, seen = Counter(), Counter(), set()
    with open(path, encoding="utf-8") as file:
        for line in file:
            request = json.loads(line)
            for frame in request["frames"]:
                key = (frame["addr"], frame["begin_raw"])
                if frame["xlator"] not in xlators or frame["begin_raw"] < since or \
                        not frame["end_raw"] or frame["copy_root"] or key in seen:
                    continue
                seen.add(key)
                counts[frame["xlator"], frame["op"]] += 1
                if request["root"] == "client":
                    within[frame["op"]] += 1
    return counts, within


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("mid")
    parser.add_argument("after")
    parser.add_argument("dump")
    parser.add_argument("--since", type=int, required=True, metavar="NS")
    parser.add_argument("--xlator", action="append", required=True)
    parser.add_argument("--within", action="append", default=[], metavar="FOP",
                        help="a fop that must be there inside requests")
    args = parser.parse_args()
    own = own_counts(args.after, args.xlator)
    own.subtract(own_counts(args.mid, args.xlator))
    counts, within = dumped(args.dump, args.xlator, args.since)
    wrong = [f"{xlator} {fop}: dumped {counts[xlator, fop]}, the process {own[xlator, fop]}"
             for xlator, fop in sorted(own.keys() | counts.keys())
             if abs(counts[xlator, fop] - own[xlator, fop]) > KEPT * own[xlator, fop]]
    wrong += [f"no {fop} inside any request" for fop in args.within if not within[fop]]
    print(f"{sum(counts.values())} passages, {sum(within.values())} of them in requests: "
          f"{dict(within)}")
    for line in wrong:
        print(f"wrong: {line}")
    return 1 if wrong or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
