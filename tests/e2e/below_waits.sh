#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 120
# shellcheck disable=SC2317 # functions are called through others
#
# Waits that the kernel announces by an event: the log's, dirty throttling (in write() and
# in page faults of a mapping), pages under writeback. Each is met as often as its own
# trace event fires in the process, and a throttled thread is charged what it slept, by
# the kernel's sched_switch events, not what it was told to ("pause").
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
. tests/lib/below.sh
e2e_begin
e2e_needs "$BELOW"
below_mount x 600m || bail_out "no XFS"
# the smallest log that mkfs makes of a small XFS; in a log of 64 MiB hardly anybody waits
below_mount small 300m --unsupported -m reflink=0,rmapbt=0 -l size=900b ||
	bail_out "no XFS with a small log"

# traced NAME MODE ARGUMENT... -- EVENT FILTER ...: a load under bricktop and a trace.
traced()
{
	local name=$1 load=()

	while [ "$1" != -- ]; do
		load+=("$1")
		shift
	done
	shift
	below_start "${load[@]}" && attach_start "$name-look" "$(bed_get "$name" PID)" --json &&
		below_trace "$(bed_get "$name" PID)" "$@" && below_finish "$name" &&
		below_traced "$name"
}

# met NAME EVENT ID: this row was met as often as the event was traced.
met()
{
	is "$(below_sum "$1" "$3" calls)" "$(below_count "$1" "$2")" \
		"$1: '$3' is met as often as $2 fires"
}

log_waits()
{
	local event

	ok "creates and fsyncs on a small log" traced log create "$BED_SMALL_MNT" 8 2000 -- \
		xfs/xfs_log_force '' xfs/xlog_iclog_wait_on '' xfs/xfs_log_grant_sleep '' \
		xfs/xfs_log_cil_wait '' xfs/xfs_buf_iowait '' writeback/folio_wait_writeback ''
	met log xfs_log_force 'xfs log force'
	met log xlog_iclog_wait_on 'xfs log iclog'
	met log xfs_log_grant_sleep 'xfs log grant'
	met log xfs_log_cil_wait 'xfs log cil'
	met log xfs_buf_iowait 'xfs metadata read'
	met log folio_wait_writeback 'writeback wait'
	for event in xlog_iclog_wait_on xfs_log_grant_sleep; do
		between "$(below_count log "$event")" 10 1e9 "$event fired"
	done
	between "$(below_ratio "$(below_sum log 'xfs' self fsync)" \
		"$(below_sum log fsync incl)")" 0 0.2 "of an fsync's time the waits are named"
	ok "the rows add up" below_adds_up log
}

# busy, idle: keep every CPU at work meanwhile. The trace lacks switches from an idle CPU to
# a thread (they come before the kernel lets itself be traced), and would know fewer sleeps.
busy()
{
	local n

	for ((n = $(nproc); n > 0; n--)); do
		nice -n 19 sh -c 'while :; do :; done' &
		loops+=($!)
	done
}

idle()
{
	[ ${#loops[@]} = 0 ] || kill "${loops[@]}"
	loops=()
}
loops=()
bed_on_exit idle

# slept NAME: ns that its thread slept right after it was told to.
slept()
{
	python3 - "$BED_DIR/$1.trace" <<-'PY'
	import re, sys
	told, out, total = None, None, 0
	for line in open(sys.argv[1]):
	    m = re.match(r".*-(\d+)\s+\[\d+\].* (\d+)\.(\d+): (\w+): (.*)", line)
	    if not m:
	        continue
	    ns, event, text = int(m[2]) * 10**9 + int(m[3]) * 10**(9 - len(m[3])), m[4], m[5]
	    if event == "balance_dirty_pages":
	        told, out = m[1], None
	    elif told and event == "sched_switch":
	        if f"prev_pid={told} " in text and "prev_state=R" not in text:
	            out = ns
	        elif f"next_pid={told} " in text and out:
	            total, told = total + ns - out, None
	print(total)
	PY
}

# throttled NAME ID CLOCK?: the row ID against the trace.
throttled()
{
	local paused

	paused=$(sed -n 's/.* balance_dirty_pages: .* pause=\([0-9]*\) .*/\1/p' \
		"$BED_DIR/$1.trace" | awk '{ n += $1 } END { print n * 1e6 }')
	met "$1" balance_dirty_pages "$2"
	between "$(below_count "$1" balance_dirty_pages)" 10 1e9 "$1: it was throttled"
	between "$(below_ratio "$(below_sum "$1" "$2" self)" "$(slept "$1")")" 0.99 1.01 \
		"$1: for as long as it slept"
	between "$(below_ratio "$paused" "$(below_sum "$1" "$2" self)")" 0.2 0.98 \
		"$1: which is longer than it was told to"
}

throttling()
{
	ok "the limit of dirty pages is set" below_dirty dirty 8388608
	ok "and that of the background" below_dirty dirty_background 4194304
	busy
	ok "writes of 128 KiB" traced write dirty "$BED_X_MNT/dirty" 100 -- \
		writeback/balance_dirty_pages 'pause > 0' sched/sched_switch ''
	throttled write throttle
	ok "the rows add up" below_adds_up write
	ok "page faults of a mapping" traced fault map "$BED_X_MNT/map" 80 -- \
		writeback/balance_dirty_pages 'pause > 0' sched/sched_switch ''
	idle
	throttled fault 'throttle in a page fault'
}

# The file's pages are another thread's: the one that syncs waits for their writing.
writeback_waits()
{
	ok "fsyncs behind a writer" traced sync sync "$BED_X_MNT/sync" 15 262144 -- \
		writeback/folio_wait_writeback ''
	met sync folio_wait_writeback 'writeback wait'
	between "$(below_sum sync 'writeback wait' count fsync)" 1 15 \
		"fsyncs wait for writeback"
	between "$(below_ratio "$(below_sum sync 'writeback wait' incl fsync)" \
		"$(below_sum sync fsync incl)")" 0.02 1 "it is part of their time"
	ok "the rows add up" below_adds_up sync
}

log_waits
writeback_waits
throttling
done_testing
