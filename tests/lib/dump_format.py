# SPDX-License-Identifier: Apache-2.0
"""dump_format.py: what a record of schema bricktop-request/1 must have for check_dump.py to add it
up: fields and their kinds. Shares no code with what writes the dump.
"""
SCHEMA = "bricktop-request/1"
TEXTS = {"target": str, "op": str, "root": str, "origin": str, "unsplit": str}
FRAME_INTS = ("i", "stack", "parent", "begin", "end", "begin_raw", "end_raw", "self", "incl")
FRAME_BOOLS = ("copy_root", "on_thread", "counted")
SPAN_INTS = ("frame", "begin", "end", "self")
EFFECTS = ("bytes", "failed")   # of frames; dumps of others need not have them


class Broken(Exception):
    """The record cannot be added up at all; args: kind, detail."""


def is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


def check_format(request):
    if not isinstance(request, dict) or request.get("schema") != SCHEMA:
        raise Broken("format", f"schema is not {SCHEMA}")
    for key, kind in TEXTS.items():
        if not isinstance(request.get(key), kind):
            raise Broken("format", f"'{key}' is missing or no text")
    for key in ("thread", "watermark"):
        if not is_int(request.get(key)) or request[key] < 0:
            raise Broken("format", f"'{key}' is missing or no whole number")
    if request["root"] not in ("brick", "client", "background"):
        raise Broken("format", f"unknown root '{request['root']}'")
    if request["origin"] not in ("user", "internal"):
        raise Broken("format", f"unknown origin '{request['origin']}'")
    for name, ints, bools in (("frames", FRAME_INTS, FRAME_BOOLS), ("spans", SPAN_INTS, ())):
        if not isinstance(request.get(name), list):
            raise Broken("format", f"'{name}' is missing or no list")
        for row in request[name]:
            check_row(name, row, ints, bools)
    if not request["frames"]:
        raise Broken("format", "no frame")
    for marks in request.get("marks", ()):
        check_row("marks", marks, ("frame", "made"), ())
        for mark in marks.get("kept", ()):
            check_row("kept", mark, ("time",), ())


def check_row(name, row, ints, bools):
    if not isinstance(row, dict):
        raise Broken("format", f"a row of '{name}' is no object")
    for key in ints:
        if not is_int(row.get(key)):
            raise Broken("format", f"'{key}' in '{name}' is missing or no whole number")
    for key in bools:
        if not isinstance(row.get(key), bool):
            raise Broken("format", f"'{key}' in '{name}' is missing or no boolean")
    for part in row.get("parts", ()):
        check_row("parts", part, ("parent", "self", "incl"), ())
    texts = {"frames": ("xlator",), "spans": ("layer", "sub"), "marks": ("this",),
             "kept": ("xlator",)}
    for key in texts.get(name, ("layer",)):
        if not isinstance(row.get(key), str) or not row[key]:
            raise Broken("format", f"'{key}' in '{name}' is missing or no text")
