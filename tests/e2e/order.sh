#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 120
# shellcheck disable=SC2153,SC2317 # bed.sh sets BED_<NAME>_*; functions are called through ok
#
# What the process's own memory says is with the reader before anything is put into
# the kernel: in the order of the system calls, the whole first table has been written to
# standard output when the first bpf(2) or perf_event_open(2) is made.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
e2e_begin
e2e_needs strace

# parts FILE: of a trace, what was written before the first call into the kernel's
# tracing, to FILE.before, and after it, to FILE.after; prints that call's name.
parts()
{
	python3 - "$1" <<-'PY'
	import re, sys
	name, text, first = sys.argv[1], {"before": b"", "after": b""}, ""
	for line in open(name, "rb"):
	    call = re.match(rb"(?:\[pid +)?(?:\d+ +)?(\w+)\((.*)$", line)
	    if not call:
	        continue
	    if call[1] in (b"bpf", b"perf_event_open"):
	        first = first or call[2].split(b",")[0].decode()
	    body = re.match(rb'1, "((?:\\x[0-9a-f]{2})*)"', call[2])
	    if call[1] == b"write" and body:
	        part = bytes.fromhex(body[1].replace(b"\\x", b"").decode())
	        text["after" if first else "before"] += part
	for part, data in text.items():
	    open(f"{name}.{part}", "wb").write(data)
	print(first)
	PY
}

traced()
{
	strace -f -xx -s 10000000 -e trace=bpf,perf_event_open,write -e signal=none -o "$1" \
		"$BRICKTOP" attach "${@:2}" >"$1.out"
}

{ bed_brick b1 && bed_client c1 b1; } || bail_out "no brick"
bed_fio "$BED_C1_MNT" load --rw=randrw --size=1m || bail_out "no load"

ok "attached under strace" traced "$BED_DIR/probes" "$BED_B1_VOLUME" -d 1
isnt "$(parts "$BED_DIR/probes")" '' "it goes into the kernel"
before=$(cat "$BED_DIR/probes.before")
like "$before" "no probe is in" "the first table says that no probe is in"
like "$before" "brick $BED_B1_VOLUME:" "and of which target it is"
for layer in server io-stats io-threads upcall locks; do
	like "$before" "(^|"$'\n'")  *$layer " "and has the layer $layer"
done
like "$before" $'\n''(write|read) ' "and the operations"
unlike "$before" 'sum check' "it is not the report of the probes"
like "$(cat "$BED_DIR/probes.after")" 'sum check' "that one comes behind"
is "$(cat "$BED_DIR/probes.before" "$BED_DIR/probes.after" | cksum)" \
	"$(cksum <"$BED_DIR/probes.out")" "nothing of the output was missed"

ok "the memory mode under strace" traced "$BED_DIR/memory" "$BED_B1_VOLUME" -d 1 --memory-only
is "$(parts "$BED_DIR/memory")" '' "it makes no such call at all"
like "$(cat "$BED_DIR/memory.before")" 'io-threads' "and reports"
done_testing
