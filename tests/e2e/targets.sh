#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 240
# shellcheck disable=SC2153,SC2317 # bed.sh sets BED_<NAME>_*; functions are called through ok
#
# What the target does while it is watched: it ends, is killed, comes back under a
# new pid, is stopped. There is always a report, in time; what was counted before is in
# it to the request, and the exit status tells where nobody was left; a brick that was
# named by its volume or its path is followed into its new process and counted on, one
# that was named by its pid too.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
e2e_begin

load() { bed_fio "$BED_C1_MNT" room --size=1m --rw=randrw; }

# figure NAME FILTER: of its JSON report.
figure() { jq -r "$2" "$BED_DIR/$1.out"; }

# users NAME OP: what it counted.
users()
{
	figure "$1" "[.ops[] | select(.root == \"brick\" and .op == \"$2\" and
		.origin == \"user\") | .count] | add // 0"
}

# test_end SIGNAL: the brick ends in the window and stays away.
test_end()
{
	ok "$1: attached" attach_start "gone$1" "$BED_B1_VOLUME" -d 60 --json || return 1
	ok "$1: attached once more" attach_start "text$1" "$BED_B1_PATH" -d 60 || return 1
	load
	bed_stop b1 "$1"
	sleep 1.5
	attach_end "gone$1"
	is "$ATTACH_STATUS" 1 "$1: the exit status says that it is gone"
	like "$ATTACH_ERR" "^bricktop: process $BED_B1_PID ended after [0-9.]+ s\$" \
		"$1: in one line"
	is "$(figure "gone$1" .target.gone)" true "$1: the report says that the process is gone"
	between "$(figure "gone$1" '.window.secs - .target.gone_after_secs')" 1.4 9 \
		"$1: and when it went"
	is "$(figure "gone$1" .target.restarts)" 0 "$1: and did not come back"
	for op in read write; do
		is "$(users "gone$1" $op)" "$(bed_fio_count room $op)" \
			"$1: all ${op}s before are counted"
	done
	is "$(figure "gone$1" '.lost | .total - .wakes')" 0 "$1: nothing is lost"
	# nobody comes back: it does not wait until the end
	bed_poll 25 bed_gone "$(bed_get "text$1" PID)" || fail "$1: the other one ends by itself"
	attach_wait "text$1"
	is "$ATTACH_STATUS" 1 "$1: the other one, too"
	like "$(cat "$BED_DIR/text$1.out")" 'the process ended after [0-9.]+ s' \
		"$1: and says it in words"
	ok "$1: the brick starts again" bed_start b1
	ok "$1: its client is back" bed_poll 20 client_is_back "$BED_C1_MNT"
}

# rights FILE: capabilities in force, to be had, to be inherited, and of files; no_new_privs.
rights()
{
	awk '/^Cap(Inh|Prm|Eff|Bnd|Amb)|^NoNewPrivs/ { printf "%s ", $2 }' "$1"
}

dropped() { [ "$(rights "/proc/$1/status")" = "$2" ]; }

# What is left once everything is in place: CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE,
# CAP_PERFMON, CAP_BPF, CAP_CHECKPOINT_RESTORE; of the thread that writes nothing; and
# CAP_SYS_ADMIN in a process apart, for the kernel's statistics.
test_rights()
{
	local none=0000000000000000 keep=000001c000080004 admin=0000000000200000 tid child

	bed_poll 10 dropped "$1" "$none $keep $keep $none $none 1 "
	is "$(rights "/proc/$1/status")" "$none $keep $keep $none $none 1 " \
		"attached: what reading needs is left, and nothing else"
	for tid in "/proc/$1/task/"*; do
		[ "$tid" != "/proc/$1/task/$1" ] || continue
		is "$(rights "$tid/status")" "$none $none $none $none $none 1 " \
			"attached: the thread that writes has no right"
	done
	child=$(cat "/proc/$1/task/$1/children")
	is "$(rights "/proc/${child% }/status")" "$none $admin $admin $none $none 1 " \
		"attached: the statistics are a process apart"
}

# test_restart NAME TARGET: the brick is killed and comes back within the window.
test_restart()
{
	local op before=() old=$BED_B1_PID

	ok "$1: attached" attach_start "$1" "$2" -d 60 --json || return 1
	load
	before=("$(bed_fio_count room read)" "$(bed_fio_count room write)")
	[ "$1" != volume ] || test_rights "$(bed_get "$1" PID)"
	bed_stop b1 KILL
	ok "$1: the brick comes back" bed_start b1
	isnt "$BED_B1_PID" "$old" "$1: under a new pid"
	ok "$1: and is probed" bed_poll 20 attach_probed "$BED_B1_PID" || return 1
	ok "$1: its client is back" bed_poll 20 client_is_back "$BED_C1_MNT"
	load
	attach_end "$1"
	is "$ATTACH_STATUS $ATTACH_ERR" '0 ' "$1: it ends well"
	is "$(figure "$1" '"\(.target.pid) \(.target.gone) \(.target.restarts)"')" \
		"$BED_B1_PID false 1" "$1: new pid, there, restarted once"
	is "$(users "$1" read)" $((before[0] + $(bed_fio_count room read))) \
		"$1: reads of both processes"
	is "$(users "$1" write)" $((before[1] + $(bed_fio_count room write))) \
		"$1: writes of both processes"
	is "$(figure "$1" '[.ops[] | select(.op == "write" and .root == "brick") | .layers[] |
		select(.kind == "xlator") | .count] | unique | length')" 1 \
		"$1: the same in every layer"
	is "$(figure "$1" '[.off[] | .what] | join(" ")')" '' "$1: nothing is off"
	is "$(figure "$1" '.lost | .total - .wakes')" 0 "$1: nothing is lost"
	ok "$1: no instruction is left in the new process" attach_clean "$BED_B1_PID"
}

# A stopped process answers nobody; only its memory and the kernel are asked.
test_stopped()
{
	local op

	ok "stopped: attached" attach_start stopped "$BED_B1_VOLUME" -d 60 --json || return 1
	load
	kill -STOP "$BED_B1_PID"
	for op in list "stuck $BED_B1_PID" "attach $BED_B1_PID -d 500ms" \
		"attach $BED_B1_PID -d 500ms --memory-only"; do
		# shellcheck disable=SC2086
		ok "stopped: $op" timeout 20 "$BRICKTOP" $op
	done
	kill -INT "$BED_STOPPED_PID"
	ok "stopped: it ends" bed_poll 15 bed_gone "$BED_STOPPED_PID" ||
		kill -KILL "$BED_STOPPED_PID"
	attach_wait stopped
	is "$ATTACH_STATUS $ATTACH_ERR" '0 ' "stopped: it ends well"
	is "$(users stopped write)" "$(bed_fio_count room write)" "stopped: with its report"
	ok "stopped: no instruction is left" attach_clean "$BED_B1_PID"
	kill -CONT "$BED_B1_PID"
	ok "stopped: the brick goes on" load
}

# A process that is no GlusterFS cannot come back: its end is the window's.
test_process()
{
	local pid

	# shellcheck disable=SC2016
	bed_launch plain bash -c 'while :; do echo x >"$1"; done' bash "$BED_B1_XFS/plain"
	pid=$BED_PLAIN_PID
	ok "process: attached" attach_start process "$pid" -d 60 --json || return 1
	sleep 0.5
	bed_stop plain KILL
	ok "process: its end is the end" bed_poll 10 bed_gone "$BED_PROCESS_PID" ||
		kill -KILL "$BED_PROCESS_PID"
	attach_wait process
	is "$ATTACH_STATUS" 0 "process: as processes do"
	is "$ATTACH_ERR" '' "process: without complaint"
	is "$(figure process .target.gone)" true "process: the report says that it is gone"
	between "$(figure process '[.ops[] | select(.root == "local" and .op == "openat") |
		.count] | add // 0')" 10 1e9 "process: its file operations are counted"
}

# A brick has its file system open: with the mount it is reported as the brick that it is.
test_mount()
{
	ok "mount: attached" attach_start mount "$BED_B1_XFS" -d 60 --json || return 1
	load
	attach_end mount
	is "$ATTACH_STATUS $ATTACH_ERR" '0 ' "mount: it ends well"
	is "$(figure mount '"\(.target.kind) \(.target.pid) \(.target.processes)"')" \
		$'xfs null 1\nbrick '"$BED_B1_PID"' null' "mount: with the brick on it"
	jq -c 'select(.target.kind == "brick")' "$BED_DIR/mount.out" >"$BED_DIR/its.out"
	for op in read write; do
		is "$(users its $op)" "$(bed_fio_count room $op)" "mount: ${op}s of the brick"
	done
	ok "mount: no instruction is left" attach_clean "$BED_B1_PID"
}

# One that does nothing with files, and is no GlusterFS.
test_idle()
{
	local out

	bed_launch idle sleep 60
	out=$("$BRICKTOP" attach "$BED_IDLE_PID" -d 500ms 2>&1)
	is $? 0 "idle process: exit status"
	like "$out" "^process sleep  pid $BED_IDLE_PID " "idle process: what it is"
	like "$out" 'it made no file operation in this window' "idle process: what it did"
	unlike "$out" "process's own memory" "idle process: no first table without statistics"
	like "$("$BRICKTOP" attach "$BED_IDLE_PID" -d 200ms --memory-only 2>&1)" \
		'nothing is known without probes' "idle process: nor without probes"
}

{ bed_brick b1 && bed_client c1 b1; } || bail_out "no brick"
load || bail_out "no load"
test_end TERM || fail "a brick that ends"
test_end KILL || fail "a brick that is killed"
test_restart volume "$BED_B1_VOLUME" || fail "followed by its volume"
test_restart path "$BED_B1_PATH" || fail "followed by its path"
test_restart pid "$BED_B1_PID" || fail "followed by its pid"
test_mount || fail "the mount of a brick"
test_stopped || fail "a stopped brick"
test_process || fail "a plain process"
test_idle
done_testing
