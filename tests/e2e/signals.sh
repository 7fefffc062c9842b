#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 180
# shellcheck disable=SC2153,SC2317 # bed.sh sets BED_<NAME>_*; functions are called through ok
#
# However bricktop ends under load, it leaves nothing behind: not an instruction in the
# brick's code, not a program or link in the kernel, and a workload that checks every
# block it has written never notices. SIGINT, SIGTERM, SIGHUP end with a report;
# SIGKILL and a signal at any earlier moment, with whatever there is. Detaching many places
# is quick: at most a tenth of what perf uprobes take.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
e2e_begin
e2e_needs bpftool

# Writes, reads back and compares, again and again, until told to stop.
verify_load()
{
	local rounds=0

	while ! [ -e "$BED_DIR/enough" ]; do
		bed_fio "$BED_C1_MNT" verified --rw=randwrite --bsrange=4k-64k --size=2m \
			--randseed=$((4711 + rounds)) --verify=crc32c --verify_fatal=1 \
			--do_verify=1 --verify_state_save=0 --rate_iops=400 || return 1
		rounds=$((rounds + 1))
		echo $rounds >"$BED_DIR/rounds"
	done
}

# list_held NAME: its objects in the kernel, and its child, which keeps the kernel's statistics.
list_held()
{
	local pid

	attach_objects "$1" >"$BED_DIR/$1.objects"
	pid=$(pgrep -P "$(bed_get "$1" PID)" -x bricktop-stats)
	bed_set "$1" CHILD "$pid"
	bed_set "$1" CHILD_START "$(bed_start_time "${pid:-none}")"
}

# attached NAME: with probes in the brick and objects in the kernel, which are listed.
attached()
{
	attach_start "$1" "$BED_B1_VOLUME" -d 60 || return 1
	list_held "$1"
	[ "$(attach_left "$BED_DIR/$1.objects" | grep -c .)" -ge 4 ] && attach_probed "$BED_B1_PID"
}

child_gone() { ! bed_alive "$(bed_get "$1" CHILD)" "$(bed_get "$1" CHILD_START)"; }

# nothing_left NAME: the kernel finishes a killed process's links in its own time.
nothing_left()
{
	ok "$1: no instruction is left in the brick" bed_poll 20 attach_clean "$BED_B1_PID"
	ok "$1: no program or link is left in the kernel" \
		bed_poll 20 attach_nothing_left "$BED_DIR/$1.objects"
	like "$(bed_get "$1" CHILD)" '^[0-9]+$' "$1: there was a child"
	ok "$1: it has ended, too" bed_poll 20 child_gone "$1"
}

test_signal()
{
	ok "$1: attached" attached "$1" || return 1
	sleep 0.5
	attach_end "$1" "$1"
	is "$ATTACH_STATUS" 0 "$1: exit status"
	is "$ATTACH_ERR" '' "$1: no complaint"
	like "$(cat "$BED_DIR/$1.out")" 'sum check.*io-threads' "$1: a report"
	nothing_left "$1"
}

test_kill()
{
	ok "KILL: attached" attached KILL || return 1
	sleep 0.5
	attach_end KILL KILL 2>/dev/null
	is "$ATTACH_STATUS" 137 "KILL: exit status"
	nothing_left KILL
}

early_holds() { attach_objects early | grep -q "$1"; }

# Whatever it is doing by then: it ends, soon, and nothing is left. Programs are loaded before the
# first is linked.
test_early()
{
	local after

	for after in 0.02 0.1 0.3 0.6 1.2 prog link; do
		attach_launch early "$BED_B1_VOLUME" -d 60
		case $after in
		[0-9]*) sleep $after ;;
		*) ok "INT at the first $after" bed_poll 20 early_holds "$after" ;;
		esac
		list_held early
		kill -INT "$BED_EARLY_PID" 2>/dev/null
		ok "INT after $after: it ends" bed_poll 20 bed_gone "$BED_EARLY_PID" ||
			bed_end "$BED_EARLY_PID" "$BED_EARLY_START"
		ok "INT after $after: no instruction is left" bed_poll 20 attach_clean "$BED_B1_PID"
		ok "INT after $after: no program or link is left" \
			bed_poll 20 attach_nothing_left "$BED_DIR/early.objects"
		[ -z "$BED_EARLY_CHILD" ] ||
			ok "INT after $after: no child is left" bed_poll 20 child_gone early
	done
}

# end_timed NAME: TOOK_MS from SIGINT to its end.
end_timed()
{
	local begin

	begin=$(date +%s%3N)
	attach_end "$1"
	TOOK_MS=$(($(date +%s%3N) - begin))
}

test_detach()
{
	local multi TOOK_MS

	attached multi || return 1
	end_timed multi
	multi=$TOOK_MS
	export BRICKTOP_UPROBE=perf
	ok "perf uprobes: attached" attached perf
	unset BRICKTOP_UPROBE
	end_timed perf
	ok "perf uprobes: one link for each place" test \
		"$(grep -c link "$BED_DIR/perf.objects")" -gt \
		$(($(grep -c link "$BED_DIR/multi.objects") + 50))
	nothing_left perf
	note "detached in $multi ms, perf uprobes in $TOOK_MS ms"
	between "$multi" 0 $((TOOK_MS / 10)) "detaching takes at most a tenth of that"
}

{ bed_brick b1 && bed_client c1 b1; } || bail_out "no brick"
bed_fio "$BED_C1_MNT" verified --size=2m --rw=write || bail_out "no load"
ok "before: the brick's code is its files'" attach_clean "$BED_B1_PID"
verify_load &
load=$!
for signal in INT TERM HUP; do
	test_signal $signal
done
test_kill
test_early
: >"$BED_DIR/enough"
wait "$load"
is $? 0 "the verified load never failed"
between "$(cat "$BED_DIR/rounds")" 2 1e6 "it ran all the while"
ok "the brick is the same process" bed_alive "$BED_B1_PID" "$BED_B1_START"
test_detach || fail "detach times"
done_testing
