#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 180
# shellcheck disable=SC2153,SC2317 # bed.sh sets BED_<NAME>_*; functions are called through ok
#
# A GlusterFS process whose memory is damaged: pointers into nowhere, lists that never
# end, names that are none. Nothing hangs or dies of it: list shows the process with
# the check that failed, stuck and attach --memory-only refuse with that one line, attach
# falls back to what needs no layout; a session that is on already sees it through; a
# request whose frames cannot be read is counted as lost.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
e2e_begin
bed_xlators || skip_all "test xlators cannot be built here"
ulimit -c 0

corrupt() { tests/lib/corrupt.py "$BED_B1_PID" "$1" "$BED_DIR/undo"; }

quickly() { timeout 20 "$BRICKTOP" "$@" 2>&1; }

# refused NAME COMMAND...: status 1, one line that says which check failed.
refused()
{
	local name=$1 out

	shift
	out=$(quickly "$@")
	is $? 1 "$name: exit status"
	like "$out" "^bricktop: layout of [^"$'\n'"]* check '[a-z ]+' failed: [^"$'\n'"]+\$" \
		"$name: one line that names the check"
}

# The graph is broken for every look that anybody takes.
test_damage()
{
	local what=$1

	corrupt "$what" || { fail "$what: damaged"; return; }
	# in one line of its own, below the process's
	like "$(quickly list | tr '\n' '|')" \
		" $BED_B1_PID [^|]*\|[^|]*cannot be attached to: [^|]*check '" \
		"$what: list shows it, with the reason"
	case $what in
	*-wrong | *-self) refused "$what: stuck" stuck "$BED_B1_PID" ;;
	esac
	refused "$what: attach" attach "$BED_B1_PID" -d 200ms --memory-only
	corrupt repair
}

# Damaged when the session begins: system calls and threads are shown all the same.
test_fallback()
{
	local check="layout of .* check '[a-z ]+' failed: "

	kill -STOP "$BED_B1_PID"
	corrupt children-self
	refused 'fallback: requests' attach "$BED_B1_PID" -d 200ms --dump-requests \
		"1=$BED_DIR/fallback.dump"
	ok 'fallback: attached' attach_start fallback "$BED_B1_PID" -d 60 --json
	corrupt repair
	kill -CONT "$BED_B1_PID"
	bed_fio "$BED_C1_MNT" job --size=512k --rw=write
	attach_end fallback
	is "$ATTACH_STATUS" 0 'fallback: it ends well'
	like "$(head -n 1 <<<"$ATTACH_ERR")" "^bricktop: $check" 'fallback: the check is named'
	like "$(jq -r '.off[] | select(.what == "walk").reason' "$BED_DIR/fallback.out")" \
		"^$check" 'fallback: in the report, too'
	is "$(jq -r '"\(.target.kind) \(.target.pid)"' "$BED_DIR/fallback.out")" \
		"process $BED_B1_PID" 'fallback: it is a process like others'
	is "$(jq '[.ops[] | select(.root == "local" and .op == "pwrite64") | .count] | add' \
		"$BED_DIR/fallback.out")" 128 'fallback: its system calls are counted'
	ok 'fallback: its threads are shown' jq -e '.threads | length > 0' "$BED_DIR/fallback.out"
	ok 'fallback: no instruction is left' attach_clean "$BED_B1_PID"
}

users_writes()
{
	jq '[.ops[] | select(.root == "brick" and .op == "write" and
		.source == "walk") | .count] | add // 0' \
		"$BED_DIR/$1.out"
}

# Damaged in the middle of a window: that look is of no use, the next ones are.
test_meanwhile()
{
	local what=$1

	ok "$what, meanwhile: attached" attach_start "in-$what" "$BED_B1_PID" -d 60 --json ||
		return 1
	bed_fio "$BED_C1_MNT" job --size=512k --rw=write
	kill -STOP "$BED_B1_PID"
	corrupt "$what"
	sleep 2.2
	corrupt repair
	kill -CONT "$BED_B1_PID"
	bed_fio "$BED_C1_MNT" job --size=512k --rw=write
	attach_end "in-$what"
	is "$ATTACH_STATUS $ATTACH_ERR" '0 ' "$what, meanwhile: it ends well"
	is "$(users_writes "in-$what")" 256 "$what, meanwhile: all requests are counted"
	is "$(jq .target.gone "$BED_DIR/in-$what.out")" false "$what, meanwhile: it is not gone"
	is "$(jq -c '[.off[].what]' "$BED_DIR/in-$what.out")" '[]' \
		"$what, meanwhile: nothing is off any more"
	is "$(jq '[.ops[] | select(.op == "write" and .root == "brick") |
		.coverage_pct][0]' "$BED_DIR/in-$what.out")" 100 "$what, meanwhile: coverage"
	ok "$what, meanwhile: no instruction is left" attach_clean "$BED_B1_PID"
}

# Damaged when the report is made: what was read before is told, what would need a look
# now is not, and why.
test_at_end()
{
	ok "at the end: attached" attach_start at-end "$BED_B1_PID" -d 60 --json || return 1
	bed_fio "$BED_C1_MNT" job --size=512k --rw=write
	sleep 1.2
	kill -STOP "$BED_B1_PID"
	corrupt active-wrong
	sleep 1.2
	attach_end at-end
	corrupt repair
	kill -CONT "$BED_B1_PID"
	is "$ATTACH_STATUS $ATTACH_ERR" '0 ' "at the end: it ends well"
	is "$(users_writes at-end)" 128 "at the end: all requests are counted"
	is "$(jq -c '[.ops[] | select(.op == "write" and .root == "brick") |
		.coverage_pct, .in_flight]' "$BED_DIR/at-end.out")" '[null,null]' \
		"at the end: neither coverage nor what is in flight"
	like "$(jq -r '.off[] | select(.what == "memory").reason' "$BED_DIR/at-end.out")" \
		'^cannot be read' "at the end: and it says why"
}

# A brick's path may hold anything: it is measured, and its name does no harm.
test_odd_path()
{
	local out

	corrupt odd-path || { fail "odd path: damaged"; return; }
	out=$(quickly list)
	unlike "$out" $'\e' "odd path: list shows no escape"
	unlike "$out" "$BED_B1_PID [^|]*cannot be attached" "odd path: it can be attached to"
	out=$(quickly attach "$BED_B1_PID" -d 200ms)
	is $? 0 "odd path: it is measured"
	unlike "$out" $'\e' "odd path: the report has no escape"
	like "$out" $'\n'"brick [^ ]+:/.[?][[]" "odd path: but its name"
	corrupt repair
}

# is_whole_gone PID: its threads, too, which end after it is a zombie.
is_whole_gone() { [ "$(find "/proc/$1/task" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l)" -le 1 ]; }

# test_frames WHAT COUNTED CAUSE: a request is held while its list of frames is cut
# behind the first, or the second, or bent into a circle; the walk finds it so.
test_frames()
{
	local what=$1 writer pid=$BED_B1_PID

	ok "$what: attached" attach_start "$what" "$BED_B1_VOLUME" -d 60 --json || return 1
	: >"$BED_DIR/hold"
	bed_fio "$BED_C1_MNT" job --size=4k --rw=write 2>/dev/null &
	writer=$!
	ok "$what: a write is held" bed_poll 10 is_held
	ok "$what: damaged" corrupt "$what"
	# it comes from the other end of the list
	ok "$what: stuck still names it" is_held
	rm "$BED_DIR/hold"
	# the brick may die of it, but no sooner than it has called back
	bed_poll 10 walked "$what"
	bed_stop b1 KILL
	wait "$writer"
	bed_poll 10 is_whole_gone "$pid"
	attach_end "$what"
	is "$ATTACH_STATUS" 1 "$what: bricktop ends with it"
	like "$ATTACH_ERR" '^bricktop: process [0-9]+ ended after [0-9.]+ s$' "$what: and says so"
	is "$(jq ".lost.$3" "$BED_DIR/$what.out")" 1 "$what: lost: $3"
	is "$(jq ".lost | .total - .wakes" "$BED_DIR/$what.out")" 1 "$what: nothing else is lost"
	is "$(users_writes "$what")" "$2" "$what: requests counted"
	is "$(jq '[.ops[] | select(.op == "write" and .source == "walk") | .layers[] |
		select(.state == "on" and .kind == "xlator")] | length' \
		"$BED_DIR/$what.out")" 0 "$what: no layer gets any of it"
	ok "$what: a new brick starts" bed_start b1
	ok "$what: its client is back" bed_poll 20 client_is_back "$BED_C1_MNT"
}

is_held() { quickly stuck "$BED_B1_PID" | grep -q ' write .* in held '; }

# The held request has been answered: none is in flight, or the brick is gone.
walked()
{
	local out

	bed_gone "$BED_B1_PID" && return
	out=$(quickly stuck "$BED_B1_PID") && ! grep -q ' write ' <<<"$out"
}

{ bed_brick b1 --at posix "held delay ops writev hold-file $BED_DIR/hold" && bed_client c1 b1; } ||
	bail_out "no brick"
bed_fio "$BED_C1_MNT" job --size=512k --rw=write || bail_out "no load"
damages=$(tests/lib/corrupt.py "$BED_B1_PID" list - | grep -Ev '^(frames|odd)')
ok "there is something to damage" test "$(wc -l <<<"$damages")" -gt 15
kill -STOP "$BED_B1_PID"
for damage in $damages; do
	test_damage "$damage"
done
like "$(quickly list)" "brick +$BED_B1_VOLUME:$BED_B1_PATH +$BED_B1_PID " \
	"repaired, it is listed as before"
kill -CONT "$BED_B1_PID"
test_fallback || fail 'damaged as the session begins'
for damage in next-unmapped stacks-wrong; do
	test_meanwhile "$damage" || fail "$damage, meanwhile"
done
test_at_end || fail "damaged at the end"
test_odd_path
test_frames frames-second 0 unreadable || fail "no frame but the root's"
test_frames frames-third 1 unreadable || fail "frames that cannot be read"
test_frames frames-loop 1 frames || fail "frames in a circle"
done_testing
