# shellcheck shell=bash
# shellcheck disable=SC2034 # ATTACH_* are for the tests
# SPDX-License-Identifier: Apache-2.0
#
# attach.sh: runs `bricktop attach` beside what a test does to it: start it, know when
# its window has begun, end it by a signal. It owns the processes it starts and their
# outputs in $BED_DIR; bed.sh takes them down. It knows nothing about reports.
# Sourced after bed.sh and measure.sh, whose business are counts.
#
#   attach_start look "$BED_B1_VOLUME" --json || ...
#   bed_fio ...
#   attach_end look; jq . "$BED_DIR/look.out"; echo "$ATTACH_STATUS $ATTACH_ERR"

# attach_launch NAME ARGUMENT...: in the background; sets _PID and _START.
attach_launch()
{
	local name=$1 pid

	shift
	# not a bash function's subshell: the signals have to reach bricktop itself, and
	# a background job of a script would ignore SIGINT
	env --default-signal=INT "$BRICKTOP" attach "$@" >"$BED_DIR/$name.out" \
		2>"$BED_DIR/$name.err" </dev/null &
	pid=$!
	bed_set "$name" PID "$pid"
	bed_set "$name" START "$(bed_start_time "$pid")"
	bed_record "pid $pid $(bed_get "$name" START)"
}

# attach_start NAME ARGUMENT...: returns when the window has begun. Fails where
# bricktop ended instead; its complaint is shown.
attach_start()
{
	attach_launch "$@"
	bed_poll 60 measure_running "$(bed_get "$1" PID)" &&
		! bed_gone "$(bed_get "$1" PID)" && return
	cat "$BED_DIR/$1.err" >&2
	return 1
}

# attach_wait NAME: until it ends; ATTACH_STATUS is its exit status, ATTACH_ERR what
# it said on stderr.
attach_wait()
{
	wait "$(bed_get "$1" PID)"
	ATTACH_STATUS=$?
	ATTACH_ERR=$(cat "$BED_DIR/$1.err")
}

# attach_end NAME [SIGNAL]: ends it (INT) and waits.
attach_end()
{
	kill "-${2:-INT}" "$(bed_get "$1" PID)"
	attach_wait "$1"
}

# attach_objects NAME: ids of the BPF programs and links that it holds open, one a line
# ("prog 12", "link 34"): what has to be gone from the kernel when it is.
attach_objects()
{
	sed -n 's/^\(prog\|link\)_id:\t/\1 /p' "/proc/$(bed_get "$1" PID)/fdinfo/"* 2>/dev/null |
		sort -u
}

# attach_left FILE: those of a list of such ids that the kernel still has.
attach_left()
{
	{
		bpftool -j prog list | jq -r '.[] | "prog \(.id)"'
		bpftool -j link list | jq -r '.[] | "link \(.id)"'
	} | sort -u | comm -12 "$1" -
}

attach_nothing_left() { [ -z "$(attach_left "$1")" ]; }

# attach_probed PID: there are probes in that process's code.
attach_probed()
{
	"$BED_LIB/check_text.py" "$1" >/dev/null
	[ $? = 1 ]
}

# attach_clean PID: there are none.
attach_clean() { "$BED_LIB/check_text.py" "$1"; }
