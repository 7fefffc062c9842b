# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# measure.sh: one bricktop investigation around a load, exact to the request: it is
# known when the window has begun, and the process's own counts are read right before
# and right after. Sourced after bed.sh; owns no bed and judges nothing.
#
#   measure_begin m1 "$BED_B1_PID" --dump-requests 1000="$BED_DIR/m1.dump"
#   ... load ...
#   measure_end m1        # $BED_DIR/m1.json, m1.before, m1.after, m1.err
#
# measure_attach and measure_finish leave those counts out: they are known for some
# releases of GlusterFS only.

BRICKTOP=${BRICKTOP:-build/bricktop}
MEASURE_SECS=${MEASURE_SECS:-300}

# measure_e0 PID FILE: what the process counts itself.
measure_e0() { python3 "$BED_LIB/e0.py" "$1" >"$2"; }

# measure_running PID: its window has begun: the timer of its loop is set, which is
# the last thing it does before it waits. Also where it has ended: the caller looks.
measure_running()
{
	bed_gone "$1" && return 0
	grep -hs '^it_value:' "/proc/$1/fdinfo/"* | grep -qv '(0, 0)'
}

# measure_attach NAME PID [ARGUMENT]...: returns when every request is counted.
measure_attach()
{
	local name=$1 pid=$2

	shift 2
	"$BRICKTOP" attach "${TARGET:-$pid}" --json -d "$MEASURE_SECS" "$@" \
		>"$BED_DIR/$name.json" 2>"$BED_DIR/$name.err" </dev/null &
	bed_set "$name" MEASURER $!
	bed_record "pid $! $(bed_start_time $!)"
	bed_poll 30 measure_running "$(bed_get "$name" MEASURER)" || return 1
	! bed_gone "$(bed_get "$name" MEASURER)" || { cat "$BED_DIR/$name.err" >&2; return 1; }
}

# measure_finish NAME: SIGINT ends the window; the status is bricktop's.
measure_finish()
{
	local status

	kill -INT "$(bed_get "$1" MEASURER)"
	wait "$(bed_get "$1" MEASURER)"
	status=$?
	[ "$status" = 0 ] || cat "$BED_DIR/$1.err" >&2
	return "$status"
}

# measure_begin, measure_end: the same, and what the process counts itself at both
# ends.
measure_begin()
{
	bed_set "$1" TARGET "$2"
	measure_e0 "$2" "$BED_DIR/$1.before" || return 1
	measure_attach "$@"
}

measure_end()
{
	local status

	measure_finish "$1"
	status=$?
	measure_e0 "$(bed_get "$1" TARGET)" "$BED_DIR/$1.after" || return 1
	return "$status"
}

# measure_get NAME FILTER: a jq filter over the report; `op("write")` are its rows of
# users' requests.
measure_get()
{
	jq -r 'def op($n): .ops[] | select(.op == $n and
		(.root == "brick" or .root == "client") and .origin == "user");
		def layer($n): .layers[] | select(.id == $n);
		'"$2" "$BED_DIR/$1.json"
}
