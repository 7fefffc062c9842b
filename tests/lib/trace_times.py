#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often something happened to the threads of a trace, and how long it took in all.

    trace_times.py TRACE slept EVENT         sleeps that come right after EVENT
    trace_times.py TRACE slept_in CALL       in a system call (sys_NAME), those that nothing can
                                             interrupt (state D): for pages and I/O
    trace_times.py TRACE between BEGIN END   from the last event whose name begins with BEGIN to END
    trace_times.py TRACE requests RWBS       such requests, one at a time, at the device

Prints "COUNT NANOSECONDS". It knows nothing of what the events mean.
"""
import re
import sys

# an event is "name: text", a call "name(text", its end "name -> text"
LINE = re.compile(r".*-(\d+)\s+\[\d+\].* (\d+)\.(\d+): (\w+(?:: |\(| -> ))(.*)")
SWITCH = re.compile(r"prev_pid=(\d+) .*prev_state=(\S+) ==> .*next_pid=(\d+)\b")


def events(path):
    """-> (thread, ns, event, text) of each line"""
    with open(path, encoding="utf-8", errors="replace") as trace:
        for match in filter(None, map(LINE.match, trace)):
            yield match[1], int(match[2] + match[3].ljust(9, "0")), match[4].rstrip(": "), match[5]


def sleeps(trace, begin, end, states):
    """From an event begin to an event end, or to the first sleep."""
    told, out, count, total = set(), {}, 0, 0
    for thread, now, name, text in trace:
        if name == begin:
            told.add(thread)
        elif name == end:
            told.discard(thread)
        switch = SWITCH.search(text) if name == "sched_switch" else None
        if not switch:
            continue
        left, state, back = switch.groups()
        if left in told and state[0] in states:
            if not end:
                told.discard(left)
            out[left] = now
            count += 1
        total += now - out.pop(back, now)
    return count, total


def slept(trace, event):
    return sleeps(trace, event, None, "SDI")


def slept_in(trace, call):
    return sleeps(trace, call + "(", call + " ->", "D")


def between(trace, begin, end):
    begun, count, total = {}, 0, 0
    for thread, now, name, _ in trace:
        if name == end:
            total += now - begun.pop(thread, now)
            count += 1
        elif name.startswith(begin):
            begun[thread] = now
    return count, total


def requests(trace, rwbs):
    issued, count, total = None, 0, 0
    for _, now, name, text in trace:
        if text.split()[1:2] != [rwbs]:
            continue
        if name == "block_rq_issue":
            issued = now
        elif name == "block_rq_complete" and issued:
            total += now - issued
            count, issued = count + 1, None
    return count, total


WHAT = {"slept": slept, "slept_in": slept_in, "between": between, "requests": requests}
print(*WHAT[sys.argv[2]](events(sys.argv[1]), *sys.argv[3:]))
