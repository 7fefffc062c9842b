#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_dump.py: the independent checker of `bricktop attach --dump-requests`.

It reads JSON lines of schema bricktop-request/1 and adds up every request again,
to the nanosecond, from nothing but the raw stamps: where copied stacks hang, where
a frame begins and ends after clipping, which frame a span belongs to, and each
frame's inclusive and self time. It shares no code with what wrote the dump and
must never be made to agree with it: where the two differ, one of them is wrong.

Only which frame is whose parent inside one stack is taken as given. A root that was
open when it was walked ends with the last of its own children. What begins after its
parent's end takes no time from it, and need not be counted, nor what is below. A
frame that hangs below another stack is a child of its own stack's copied root; where
that one hangs is found anew, and compared. Of two equal begins the deeper frame's is
the later.

A frame that several xlators share may be split into parts, each from the moment its
xlator was entered to the frame's end. Into which parts is found anew, from all that
is remembered of the frame's address: who was entered inside the frame's own time,
where these lead to the xlator that the frame ended in, and none may be missing.

Exit status: 0 all is right, 1 any mismatch, no request, or an expectation unmet.
"""
import argparse
import json
import sys
from collections import Counter

from dump_format import EFFECTS, Broken, check_format

MARKS_KEPT = 8                  # entries that are remembered of one frame


def union_ns(intervals, low, high):
    """Length of the union of the intervals inside [low, high]."""
    total, reach = 0, low
    for begin, end in sorted(intervals):
        begin, end = max(begin, reach), min(end, high)
        if end > begin:
            total += end - begin
            reach = end
    return total


def clipped_sum_ns(intervals, low, high):
    return sum(max(0, min(end, high) - max(begin, low)) for begin, end in intervals)


def shared_parts(marks, frame):
    """Into which (xlator, begin) a frame has to be split by its address's marks."""
    whole = [(marks["this"], frame["begin_raw"])]
    kept = sorted((mark["time"], mark["xlator"]) for mark in marks["kept"])
    inside = [(time, xlator) for time, xlator in kept
              if frame["begin_raw"] <= time and (time <= frame["end_raw"] or not frame["end_raw"])]
    is_cut = marks["made"] > MARKS_KEPT and len(inside) == len(kept) == MARKS_KEPT
    if is_cut or not inside or not frame["begin_raw"]:
        return whole
    parts = []
    for time, xlator in inside:
        if not parts or parts[-1][0] != xlator:
            parts.append((xlator, time if parts else frame["begin_raw"]))
    return parts if parts[-1][0] == marks["this"] else whole


class Node:
    """One frame: what the dump says (given) and what we find."""

    def __init__(self, given):
        self.given = given
        self.parent = None          # inside its stack
        self.hung_on = None         # in another stack, where the dump says so
        self.in_stack = []          # children inside its stack
        self.above = None           # in the request's tree, copies hung where they belong
        self.below = []
        self.begin = given["begin_raw"]
        self.end = given["end_raw"]
        self.clipped = False
        self.late = False           # begins after all of its parent's time
        self.marked = False
        self.depth = 0
        self.spans = []
        self.bytes = 0              # moved by its spans, later by those below, too

    def __str__(self):
        given = self.given
        return f"frame {given['i']} ({given['xlator']}, stack {given['stack']})"


class Request:
    """One record, added up again."""

    def __init__(self, record):
        self.record = record
        self.watermark = record["watermark"]
        self.mismatches = []
        self.split = 0              # frames that several xlators share, and are told apart
        self.raised = 0             # 1: it failed, and is known through whom
        self.nodes = {}
        for given in record["frames"]:
            if given["i"] in self.nodes:
                raise Broken("format", f"frame number {given['i']} occurs twice")
            self.nodes[given["i"]] = Node(given)

    def wrong(self, kind, what, got, wanted):
        self.mismatches.append((kind, f"{what}: dump says {got}, stamps say {wanted}"))

    def add_up(self):
        self.split_shared()
        self.link_stacks()
        self.find_begins()
        self.hang_copies()
        order = self.top_down()
        self.clip(order)
        self.place_spans(order)
        self.check_nodes(order)
        self.check_top(order)
        if all(key in self.top.given for key in EFFECTS):
            self.check_bytes(order)
            self.check_failed()

    # -- frames that are shared

    def split_shared(self):
        shared = {}
        for node in self.nodes.values():
            if node.given.get("tail"):
                self.add_part(shared, node)
            else:
                shared[node.given["i"]] = [node]
        for marks in self.record.get("marks", ()):
            parts = shared.get(marks["frame"])
            if parts is None:
                raise Broken("tail", f"marks of {marks['frame']}, which begins no frame")
            self.check_parts(marks, parts, shared_parts(marks, parts[0].given))
            parts[0].marked = True
            self.split += len(parts) > 1
        for parts in shared.values():
            if len(parts) > 1 and not parts[0].marked:
                self.wrong("tail", f"{parts[0]}", "split", "no mark")
        self.check_hung(shared)

    def add_part(self, shared, node):
        """Adds a part to its frame's; each lies below the one before it, at one address."""
        for parts in shared.values():
            last = parts[-1].given
            if last["i"] == node.given["parent"]:
                parts.append(node)
                for key in ("addr", "stack", "end_raw"):
                    if node.given[key] != last[key]:
                        self.wrong("tail", f"{key} of {node}", node.given[key], last[key])
                return
        raise Broken("tail", f"{node} is a part of no frame")

    def check_parts(self, marks, parts, wanted):
        got = [(part.given["xlator"], part.given["begin_raw"]) for part in parts]
        if got != wanted:
            self.wrong("tail", f"parts of {parts[0]}, which ended in {marks['this']}", got, wanted)

    def check_hung(self, shared):
        """What was wound from a shared frame hangs on the part that had begun by then."""
        part_of = {part.given["i"]: parts for parts in shared.values() for part in parts}
        for node in self.nodes.values():
            parts = part_of.get(node.given["parent"], ())
            begin = node.given["begin_raw"]
            if len(parts) < 2 or node.given.get("tail") or not begin:
                continue
            above = [p for p in parts if p is parts[0] or p.given["begin_raw"] <= begin][-1]
            if node.given["parent"] != above.given["i"]:
                self.wrong("tail", f"part above {node}", node.given["parent"], above.given["i"])

    # -- the tree

    def link_stacks(self):
        for node in self.nodes.values():
            up = node.given["parent"]
            if up < 0:
                continue
            node.parent = self.nodes.get(up)
            if node.parent is None:
                raise Broken("parent", f"{node} has a parent {up} that is not there")
            if node.parent.given["stack"] != node.given["stack"]:
                node.hung_on = node.parent
                node.parent = None if node.given["copy_root"] else self.copy_root_of(node)
            if node.parent is not None:
                node.parent.in_stack.append(node)
        for node in self.nodes.values():
            seen = set()
            while node is not None:
                if id(node) in seen:
                    raise Broken("parent", f"{node} is its own ancestor")
                seen.add(id(node))
                node = node.parent
        roots = [n for n in self.nodes.values() if n.parent is None]
        tops = [n for n in roots if not n.given["copy_root"]]
        if len(tops) != 1:
            raise Broken("parent", f"{len(tops)} frames without a parent, wanted one")
        for node in self.nodes.values():
            if node.given["copy_root"] and node.parent is not None:
                raise Broken("parent", f"{node} is a copy's root with a parent in its stack")
        stacks = Counter(n.given["stack"] for n in roots)
        if any(count > 1 for count in stacks.values()):
            raise Broken("parent", "a stack has two roots")
        self.top = tops[0]

    def copy_root_of(self, node):
        for other in self.nodes.values():
            if other.given["copy_root"] and other.given["stack"] == node.given["stack"]:
                return other
        raise Broken("parent", f"{node} has its parent in another stack, and is no copy")

    def find_begins(self):
        """A begin that the process left at 0: its earliest child's, else its parent's."""
        def from_below(node):
            below = [begin for begin in map(from_below, node.in_stack) if begin]
            if not node.begin and below:
                node.begin = min(below)
            return node.begin

        def from_above(node):
            if not node.begin and node.parent is not None:
                node.begin = node.parent.begin
            for child in node.in_stack:
                from_above(child)

        for node in self.nodes.values():
            if node.parent is None:
                from_below(node)
                from_above(node)
                if not node.begin:
                    raise Broken("begin", f"nothing tells when {node} began")

    def graft_of(self, copy):
        """The frame that a copied stack continues."""
        best = None
        for node in self.nodes.values():
            if (not node.given["copy_root"] and node.given["stack"] < copy.given["stack"] and
                    node.given["xlator"] == copy.given["xlator"] and
                    node.begin <= copy.begin and (best is None or node.begin > best.begin)):
                best = node
        if best is None:
            raise Broken("graft", f"no earlier frame is what {copy} was copied from")
        return best

    def hang_copies(self):
        for node in self.nodes.values():
            graft = None
            if node.given["copy_root"]:
                graft = self.graft_of(node)
            elif node.parent is not None:
                node.above = node.parent
                if node.parent.given["copy_root"]:
                    graft = node.above = self.graft_of(node.parent)
                node.above.below.append(node)
            if node.hung_on is not None and node.hung_on is not graft:
                self.wrong("graft", f"what {node} hangs on", node.hung_on, graft)

    def top_down(self):
        order = [self.top]
        for node in order:
            for child in node.below:
                child.depth = node.depth + 1
                order.append(child)
        return order

    def clip(self, order):
        for node in order:
            if node.above is None:
                node.end = max([node.end] + [child.end for child in node.in_stack])
            else:
                self.clip_to(node, node.above)
            if node.begin > node.end:
                self.wrong("negative", f"{node}", "an end before its begin", "neither")
                node.begin = node.end
        for node in order:
            node.begin = max(node.begin, min(self.watermark, node.end))

    @staticmethod
    def clip_to(node, up):
        if not node.end or node.end > up.end:
            node.end, node.clipped = up.end, True
            node.late = node.begin >= up.end
        if node.begin < up.begin:
            node.begin, node.clipped = up.begin, True
        node.late |= up.late
        if node.late:
            node.begin = node.end

    def place_spans(self, order):
        for span in self.record["spans"]:
            if span["end"] < span["begin"]:
                self.wrong("negative", "a span", "an end before its begin", "neither")
            if span.get("claimed") and span["frame"] < 0:
                continue  # an earlier request's, which ended on the same thread
            best, joined = None, span.get("joined")
            for node in order:
                # what other threads did is known by the frame that waited for it
                fits = node.given["addr"] == joined if joined else node.given["on_thread"]
                if (fits and node.begin <= span["begin"] and
                        span["end"] <= node.end and
                        (best is None or (node.begin, node.depth) > (best.begin, best.depth))):
                    best = node
            where = best.given["i"] if best else -1
            name = f"span {span['layer']}/{span['sub']} at {span['begin']}"
            if span["frame"] != where:
                self.wrong("span-frame", f"frame of {name}", span["frame"], where)
            if best:
                best.spans.append((span["begin"], span["end"]))
                best.bytes += span.get("bytes", 0)
            self.check_span(span, name)

    def check_span(self, span, name):
        """A span's own time: what its parts, one inside the other, leave of it."""
        total = span["end"] - span["begin"]
        parts = span.get("parts") or [{"parent": -1, "incl": total, "self": span["self"]}]
        if parts[0]["incl"] != total:
            self.wrong("span-self", f"time of {name}", parts[0]["incl"], total)
        if parts[0]["self"] != span["self"]:
            self.wrong("span-self", f"self time of {name}", span["self"], parts[0]["self"])
        for i, part in enumerate(parts):
            own = part["incl"] - sum(p["incl"] for p in parts if p["parent"] == i)
            if part["self"] != own:
                self.wrong("span-self", f"self time of part {i} of {name}", part["self"], own)
        self.check_span_parts(parts, total, name)

    def check_span_parts(self, parts, total, name):
        """One part is the span itself, every other lies in an earlier one, none is there twice."""
        seen = set()
        for i, part in enumerate(parts):
            if not (part["parent"] == -1 if i == 0 else 0 <= part["parent"] < i):
                self.wrong("span-part", f"what part {i} of {name} lies in", part["parent"],
                           "an earlier part")
            if part["self"] < 0 or part["incl"] > total:
                self.wrong("span-part", f"part {i} of {name}", f"{part['self']} of "
                           f"{part['incl']} ns", f"0 to {total} ns")
            if part.get("calls", 1) < 1:
                self.wrong("span-part", f"calls of part {i} of {name}", part["calls"], "1 or more")
            key = (part.get("layer"), part.get("sub"), part["parent"])
            if key in seen:
                self.wrong("span-part", f"part {i} of {name}", f"another {key}", "one part of all")
            seen.add(key)
        if sum(part["self"] for part in parts) != total:
            self.wrong("span-part", f"all parts of {name}", sum(p["self"] for p in parts), total)

    # -- the figures

    def parts(self, node):
        return [(child.begin, child.end) for child in node.below] + node.spans

    def is_counted(self, node):
        return not self.watermark or node.end > self.watermark

    def check_nodes(self, order):
        for node in self.nodes.values():
            if node.given["copy_root"] and node.given["counted"]:
                self.wrong("counted", f"{node}, root of a copy", True, False)
        for node in order:
            given, counted = node.given, self.is_counted(node)
            if given["counted"] != counted and not node.late:
                self.wrong("counted", f"counted of {node}", given["counted"], counted)
            if not given["counted"] or not counted:
                continue
            incl = node.end - node.begin
            union = union_ns(self.parts(node), node.begin, node.end)
            for kind, got, wanted in (("begin", given["begin"], node.begin),
                                      ("end", given["end"], node.end),
                                      ("incl", given["incl"], incl),
                                      ("self", given["self"], incl - union)):
                if got != wanted:
                    self.wrong(kind, f"{kind} of {node}", got, wanted)
            if given["incl"] != given["self"] + union:
                self.wrong("sum", f"self + union of {node}", given["self"] + union, given["incl"])
            if given["self"] < 0 or given["incl"] < 0:
                self.wrong("negative", f"{node}", "a negative time", "none")

    def check_top(self, order):
        """All self times and spans, less what ran in parallel, make the root's time."""
        if not self.is_counted(self.top):
            return
        total = 0
        for node in order:
            if not self.is_counted(node) or not node.given["counted"]:
                continue
            parts = self.parts(node)
            total += node.given["self"]
            total += clipped_sum_ns(node.spans, node.begin, node.end)
            total -= (clipped_sum_ns(parts, node.begin, node.end) -
                      union_ns(parts, node.begin, node.end))
        if total != self.top.given["incl"]:
            self.wrong("top", "all parts of the request", total, self.top.given["incl"])

    # -- bytes and errors

    def check_bytes(self, order):
        """What all calls below a frame moved, it moved."""
        for node in reversed(order):
            if node.above is not None:
                node.above.bytes += node.bytes
            if node.given["counted"] and node.given["bytes"] != node.bytes:
                self.wrong("bytes", f"bytes of {node}", node.given["bytes"], node.bytes)

    def check_failed(self):
        """The error of a request came back from the last frame of who raised it, up to the root."""
        record, failed = self.record, set()
        raiser = record.get("raiser") if record["result"] < 0 else ""
        if raiser is None:
            return
        if raiser and record["errno"] != record["stack_error"]:
            self.wrong("failed", "raiser of another error", raiser, "none")
        ended = [n for n in self.nodes.values()
                 if n.given["xlator"] == raiser and n.given["stack"] == self.top.given["stack"]
                 and n.given["end_raw"] and n.given["counted"]]
        node = max(ended, key=lambda n: n.given["i"], default=None)
        while node is not None:
            failed.add(node.given["i"])
            node = node.above
        self.raised += bool(failed)
        for node in self.nodes.values():
            got, wanted = node.given["failed"], node.given["i"] in failed
            if got != wanted:
                self.wrong("failed", f"failed of {node}", got, wanted)

    def has_parallel(self):
        return any(clipped_sum_ns(inner, node.begin, node.end) >
                   union_ns(inner, node.begin, node.end)
                   for node in self.nodes.values()
                   for inner in [[(c.begin, c.end) for c in node.below]])


class Summary:
    def __init__(self):
        self.counts = Counter()
        self.kinds = Counter()
        self.first = None
        self.xlators = Counter()
        self.owned = {}  # (thread, begin, end) of a span: line
        self.passages = {}  # one use of a frame: (begin, end, line) of what was counted of it
        self.ops = Counter()
        self.parts = Counter()

    def add_wrong(self, line_no, kind, detail, line):
        self.kinds[kind] += 1
        if self.first is None:
            self.first = (line_no, kind, detail, line.strip())

    def add_line(self, line_no, line):
        try:
            record = json.loads(line)
        except ValueError as error:
            self.counts["requests"] += 1
            self.add_wrong(line_no, "format", f"no JSON: {error}", line)
            return
        try:
            check_format(record)
            if record["unsplit"]:
                # its frames or spans are not all here: it cannot be added up
                self.counts["unsplit"] += 1
                self.counts[f"unsplit {record['unsplit']}"] += 1
                return
            self.counts["requests"] += 1
            request = Request(record)
            request.add_up()
        except Broken as broken:
            self.add_wrong(line_no, broken.args[0], broken.args[1], line)
            return
        for kind, detail in request.mismatches:
            self.add_wrong(line_no, kind, detail, line)
        self.add_spans(line_no, record, line)
        self.add_passages(line_no, record)
        self.add_request(request)

    def add_spans(self, line_no, record, line):
        """A span is of one request: no other may have it, too."""
        for span in record["spans"]:
            if span["frame"] < 0:
                continue
            key = (span.get("joined", record["thread"]), span["layer"], span["sub"],
                   span["begin"], span["end"])
            if key in self.owned:
                self.add_wrong(line_no, "span-twice", f"span at {key[3]} of {key[0]} is "
                               f"also of the request in line {self.owned[key]}", line)
            self.owned[key] = line_no

    def add_passages(self, line_no, record):
        for given in record["frames"]:
            if given["counted"] and given["end"] > given["begin"]:
                key = (record["target"], given["addr"], given["xlator"], given["begin_raw"])
                below = [f["end"] for f in record["frames"] if f["parent"] == given["i"]]
                top = given["parent"] < 0 and record["root"] != "background"  # till its child ends
                end = max(below) if top and below else given["end"]
                self.passages.setdefault(key, []).append((given["begin"], end, line_no))

    def check_passages(self):
        """What outlives a reply is counted in parts: no two may have the same time."""
        for (_, addr, xlator, _), parts in self.passages.items():
            parts.sort()
            for (_, end, other), (begin, _, line_no) in zip(parts, parts[1:]):
                if begin < end:
                    self.add_wrong(line_no, "frame-twice", f"{end - begin} ns of the frame at "
                                   f"{addr} ({xlator}) are also of line {other}", "")

    def add_request(self, request):
        nodes = [n for n in request.nodes.values() if not n.given["copy_root"]]
        self.ops[request.record["op"]] += 1
        self.counts["nodes"] += len(nodes)
        self.counts["copied stacks"] += len(request.nodes) - len(nodes)
        self.counts["spans"] += len(request.record["spans"])
        self.counts["spans placed"] += sum(len(n.spans) for n in nodes)
        self.counts["spans with parts"] += sum(len(s.get("parts", ())) > 1
                                               for s in request.record["spans"])
        self.parts.update({f"{request.record['op']}: {part.get('sub')}"
                           for span in request.record["spans"]
                           for part in span.get("parts", ())[1:]})
        self.counts["spans joined"] += sum(bool(s.get("joined")) and s["frame"] >= 0
                                           for s in request.record["spans"])
        self.counts["parallel"] += request.has_parallel()
        self.counts["frames split"] += request.split
        self.counts["failed"] += request.raised
        self.counts["clipped"] += any(n.clipped for n in nodes)
        self.counts["under a watermark"] += request.watermark > 0
        for name in {n.given["xlator"] for n in nodes if n.given["counted"]}:
            self.xlators[name] += 1

    def unmet(self, args):
        counts = self.counts
        if counts["requests"] < args.min_requests:
            yield f"{counts['requests']} requests, wanted at least {args.min_requests}"
        if args.max_unsplit is not None and counts["unsplit"] > args.max_unsplit:
            yield f"{counts['unsplit']} unsplit requests, wanted at most {args.max_unsplit}"
        for name in args.expect_xlator:
            if not self.xlators[name]:
                yield f"xlator '{name}' does not appear; there are {sorted(self.xlators)}"
        for name in args.expect_op:
            if not self.ops[name]:
                yield f"op '{name}' does not appear; there are {sorted(self.ops)}"
        for name in args.expect_part:
            if not self.parts[name]:
                yield f"no '{name}' lies in a call; there are {sorted(self.parts)}"
        for flag, count in (("parallel", "parallel"), ("clipped", "clipped"),
                            ("spans", "spans placed"), ("parts", "spans with parts"),
                            ("joined", "spans joined"),
                            ("copies", "copied stacks"), ("watermark", "under a watermark"),
                            ("tails", "frames split"), ("failed", "failed")):
            if getattr(args, f"expect_{flag}") and not counts[count]:
                yield f"no request with: {count}"

    def show(self):
        for name in ("requests", "unsplit", "nodes", "copied stacks", "spans", "spans placed",
                     "spans with parts", "spans joined", "parallel", "clipped", "under a watermark",
                     "frames split", "failed"):
            print(f"{name}: {self.counts[name]}")
        print("ops: " + ", ".join(f"{k} {v}" for k, v in sorted(self.ops.items())))
        print("xlators: " + ", ".join(f"{k} {v}" for k, v in sorted(self.xlators.items())))
        print("mismatches: " + (", ".join(f"{k} {v}" for k, v in sorted(self.kinds.items()))
                                or "0"))
        if self.first:
            line_no, kind, detail, line = self.first
            print(f"first mismatch: line {line_no}, {kind}: {detail}\n  {line[:8000]}")


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("dump", help="file of JSON lines, - for standard input")
    parser.add_argument("--min-requests", type=int, default=1, metavar="N")
    parser.add_argument("--max-unsplit", type=int, metavar="N")
    parser.add_argument("--expect-xlator", action="append", default=[], metavar="X")
    parser.add_argument("--expect-op", action="append", default=[], metavar="OP")
    parser.add_argument("--expect-part", action="append", default=[], metavar="OP: NAME",
                        help="a part inside a call of such a request, and that it adds up")
    for flag, text in (("parallel", "a node whose children overlap"),
                       ("clipped", "a frame clipped to its parent"),
                       ("spans", "a span that belongs to a frame"),
                       ("parts", "a span with other layers' parts in it"),
                       ("joined", "a span of another thread that a frame waited for"),
                       ("copies", "a copied stack"),
                       ("watermark", "a request above a watermark"),
                       ("tails", "a frame split among the xlators that share it"),
                       ("failed", "a request whose error came from a known xlator")):
        parser.add_argument(f"--expect-{flag}", action="store_true", help=text)
    return parser.parse_args()


def main():
    args = parse_args()
    summary = Summary()
    source = sys.stdin if args.dump == "-" else open(args.dump, encoding="utf-8")
    with source:
        for line_no, line in enumerate(source, 1):
            if line.strip():
                summary.add_line(line_no, line)
    summary.check_passages()
    summary.show()
    unmet = list(summary.unmet(args))
    for text in unmet:
        print(f"unmet: {text}")
    return 1 if unmet or summary.kinds or not summary.counts["requests"] else 0


if __name__ == "__main__":
    sys.exit(main())
