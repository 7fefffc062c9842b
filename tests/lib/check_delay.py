#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judge whether a known delay was attributed to who made it.

Given: request dumps without and with the delay, and the truth: which operation, at which xlator,
how long, and how many requests were delayed by the count of an independent witness. In the
delayed dump exactly so many requests must have a self time of at least the delay, all in that
xlator's frame; no other layer's median self time may move by 2 % of the delay. It measures
nothing.
"""
import argparse
import json
import statistics
import sys
from collections import defaultdict

import judged

MOVED = 0.02  # of the delay: what another layer's median may move by
# The machine can stall a request that was not delayed for as long; never the other way round.
STALLED = 0.01


def load(path, op):
    """-> [{layer: self time in ns}] of users' requests; a layer met twice is added up."""
    requests = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            if record["op"] != op or record["origin"] != "user":
                continue
            if record["unsplit"]:
                raise ValueError(f"an unsplit request ({record['unsplit']})")
            layers = defaultdict(int)
            for frame in record["frames"]:
                layers[frame["xlator"]] += frame["self"]
            for span in record["spans"]:
                if span["frame"] >= 0:
                    layers[span["sub"]] += span["self"]
            requests.append(layers)
    return requests


def median_us(requests, layer):
    return statistics.median(layers[layer] for layers in requests) / 1000


def judge(args, base, delayed):
    """Yields (is it well, text)."""
    delay_ns = args.delay_us * 1000
    slow = [layers for layers in delayed if layers[args.xlator] >= delay_ns]
    quick = [layers for layers in delayed if layers[args.xlator] < delay_ns]
    spare = max(1, int(STALLED * len(delayed)))
    yield (args.count <= len(slow) <= args.count + (spare if quick else 0),
           f"{len(slow)} of {len(delayed)} requests have {args.delay_us} us or more in "
           f"'{args.xlator}', {args.count} were delayed")
    if quick:
        moved = median_us(quick, args.xlator) - median_us(base, args.xlator)
        yield (abs(moved) < MOVED * args.delay_us,
               f"{args.xlator} of the others: {moved:+.1f} us")
    names = {name for layers in base + delayed for name in layers} - {args.xlator}
    yield len(names) >= args.min_layers, f"{len(names)} other layers: {sorted(names)}"
    for name in sorted(names):
        moved = median_us(delayed, name) - median_us(base, name)
        yield (abs(moved) < MOVED * args.delay_us,
               f"{name}: {moved:+.1f} us at {median_us(base, name):.1f} us")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("base", help="dump without the delay")
    parser.add_argument("delayed", help="dump with it")
    parser.add_argument("--op", required=True)
    parser.add_argument("--xlator", required=True, help="as the dump names the frame")
    parser.add_argument("--delay-us", type=int, required=True)
    parser.add_argument("--count", type=int, required=True, help="requests that were delayed")
    parser.add_argument("--min-layers", type=int, default=7)
    args = parser.parse_args()
    base, delayed = load(args.base, args.op), load(args.delayed, args.op)
    if not base or not delayed or not args.count:
        print(f"nothing to judge: {len(base)} and {len(delayed)} requests, {args.count} delayed")
        return 1
    return judged.show(judge(args, base, delayed))


if __name__ == "__main__":
    sys.exit(main())
