#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 120
# shellcheck disable=SC2153,SC2317 # bed.sh sets BED_<NAME>_*; functions are called through ok
#
# What goes away while it is measured, and the process stays: one of two bricks is
# detached from it, threads end. What they had done until then is in the report, to the
# operation, and the rest of the process goes on being counted.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
e2e_begin

write_to() { bed_fio "$(bed_get "$1" MNT)" "$2" --rw=randwrite --size=256k; }

is_measured() { ! bed_gone "$(bed_get "$1" MEASURER)"; }

test_brick()
{
	{ bed_mux m1 m2 && bed_client cm1 m1 && bed_client cm2 m2; } || bail_out "no two bricks"
	TARGET=$BED_M1_PATH ok "the one that stays: attached" measure_begin stays "$BED_M1_PID"
	TARGET=$BED_M2_PATH ok "the one that goes: attached" measure_begin goes "$BED_M1_PID"
	{ write_to cm1 stays1 && write_to cm2 goes1; } || bail_out "no load"
	sleep 1.2
	ok "a brick is detached" gf_attach -d "$BED_M1_SOCK" "$BED_M2_PATH"
	ok "load on the other one meanwhile" write_to cm1 stays2
	sleep 2.2
	ok "and afterwards" write_to cm1 stays3
	ok "the one that goes is still measured" is_measured goes
	for name in stays goes; do
		ok "$name: ends well" measure_end "$name"
		is "$(measure_get "$name" '.lost | .total - .wakes')" 0 "$name: nothing lost"
		is "$(measure_get "$name" .checks.sum_check_pct)" 100 "$name: all sums hold"
	done
	is "$(measure_get stays 'op("write").count')" 192 "stays: writes are fio's"
	is "$(measure_get stays '[op("write", "lookup", "create", "flush").coverage_pct] |
		unique | join(" ")')" 100 "stays: coverage"
	is "$(measure_get stays '.off | length')" 0 "stays: nothing is off"
	is "$(measure_get goes 'op("write").count')" 64 "goes: the writes until then are fio's"
	like "$(measure_get goes '.off[] | select(.what == "brick").reason')" \
		'was detached from its process' "goes: the report says so"
}

# Threads that are gone when the report is made: their calls are in nobody's ring.
test_threads()
{
	mkfifo "$BED_DIR/go"
	bed_launch calls python3 -c '
import os, sys, threading
def write(name):
    fd = os.open(name, os.O_CREAT | os.O_WRONLY, 0o600)
    for i in range(50):
        os.pwrite(fd, b"x" * 512, 512 * i)
    os.fsync(fd)
for line in open(sys.argv[2]):
    for i in range(8):
        thread = threading.Thread(target=write, args=(f"{sys.argv[1]}.{i}",))
        thread.start()
        thread.join()
    open(sys.argv[1] + ".done", "w").close()
    threading.Event().wait()
' "$BED_DIR/calls" "$BED_DIR/go"
	ok "threads: attached" measure_attach threads "$BED_CALLS_PID"
	echo >"$BED_DIR/go"
	bed_poll 20 test -e "$BED_DIR/calls.done" || bail_out "no calls"
	is "$(sed -n 's/^Threads:\t//p' "/proc/$BED_CALLS_PID/status")" 1 "threads: they have ended"
	ok "threads: the report" measure_finish threads
	for call in pwrite64:400 fsync:8; do
		is "$(measure_get threads "[.ops[] | select(.root == \"local\").layers[] |
			select(.id == \"${call%:*}\").count] | add")" "${call#*:}" \
			"threads: every ${call%:*} of theirs is the process's own"
	done
	is "$(measure_get threads '.lost | .total - .wakes')" 0 "threads: nothing lost"
}

test_brick
test_threads
done_testing
