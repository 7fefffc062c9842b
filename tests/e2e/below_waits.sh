#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 120
# shellcheck disable=SC2317 # functions are called through others
#
# What XFS does that it tells of by events: waits for its log, and allocation. A row is met
# as often as the trace event of the same process fires, and its time is where the load
# must have it: on the calls that allocate, not on those that leave it to others.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
. tests/lib/below.sh
below_begin
# small logs that mkfs makes of a small XFS; in a log of 64 MiB hardly anybody waits
below_mount small 300m --unsupported -m reflink=0,rmapbt=0 -l size=900b ||
	bail_out "no XFS with a small log"
below_mount middle 300m --unsupported -m reflink=0,rmapbt=0 -l size=4096b ||
	bail_out "no XFS with a log of 16 MiB"
below_mount one 300m --unsupported -m reflink=0,rmapbt=0 -d agcount=1 ||
	bail_out "no XFS with one allocation group"

LOG=(xfs/xfs_log_force '' xfs/xlog_iclog_wait_on '' xfs/xfs_log_grant_sleep ''
	xfs/xfs_log_cil_wait '' xfs/xfs_buf_iowait '')

log_waits()
{
	below_draw 1800 2200
	ok "$DRAWN creates with fsyncs of 8 threads on a small log" \
		below_traced_run log create "$BED_SMALL_MNT" 8 "$DRAWN" 0 -- "${LOG[@]}" \
		writeback/folio_wait_writeback ''
	below_met log xfs_log_force 'xfs log force' 10
	below_met log xlog_iclog_wait_on 'xfs log iclog' 10
	below_met log xfs_log_grant_sleep 'xfs log grant' 10
	below_met log xfs_log_cil_wait 'xfs log cil'
	below_met log xfs_buf_iowait 'xfs metadata read'
	below_met log folio_wait_writeback 'writeback wait'
	between "$(below_ratio "$(below_sum log 'xfs' self fsync)" \
		"$(below_sum log fsync incl)")" 0 0.2 "of an fsync's time the waits are named"
	ok "the rows add up" below_adds_up log
}

# A commit waits for the CIL where it has grown to a quarter of the log before the worker
# that empties it has run at all: it gets no CPU from these threads.
cil_waits()
{
	below_draw 4500 5500
	ok "$DRAWN creates, and no CPU for who writes the log" \
		below_traced_run cil burst "$BED_MIDDLE_MNT" 8 "$DRAWN" 0 -- "${LOG[@]}"
	below_met cil xfs_log_cil_wait 'xfs log cil' 1
	below_met cil xfs_log_grant_sleep 'xfs log grant'
	below_met cil xlog_iclog_wait_on 'xfs log iclog'
	between "$(below_sum cil 'xfs log cil' self)" 1 1e18 "they slept for it"
	ok "the rows add up" below_adds_up cil
}

# allocated NAME: what the process got is in its rows, as often and (by the trace's own
# clock, which stops a little later) as long as the kernel's events say.
allocated()
{
	local count ns

	read -r count ns < <(below_times "$1" between xfs_alloc_vextent_ xfs_alloc_vextent_finish)
	is "$(below_sum "$1" 'xfs allocation' calls)" "$count" \
		"$1: extents are counted as the kernel's events are"
	between "$(below_ratio "$(below_sum "$1" 'xfs allocation' self)" "$ns")" 0.5 1.02 \
		"$1: allocating takes what lies between them"
	ok "$1: the rows add up" below_adds_up "$1"
}

# The same appends three times: each allocates where it is written to the device.
allocation()
{
	local threads size event extents=(xfs/xfs_alloc_vextent_finish '')

	below_draw 3 8; threads=$DRAWN
	below_draw 1 8; size=$((DRAWN * 4096))
	for event in near_bno start_ag exact_bno this_ag first_ag; do
		extents+=("xfs/xfs_alloc_vextent_$event" '')
	done
	ok "O_DIRECT: $threads threads append $size bytes each time" below_traced_run direct \
		extend "$BED_ONE_MNT/direct" "$threads" 150 "$size" -- "${extents[@]}"
	allocated direct
	between "$(below_sum direct 'xfs allocation' calls write)" $((threads * 150)) 1e9 \
		"each write allocates"
	ok "buffered, and synced" below_traced_run synced \
		extend-synced "$BED_ONE_MNT/synced" "$threads" 30 "$size" -- "${extents[@]}"
	allocated synced
	between "$(below_sum synced 'xfs allocation' calls fsync)" "$threads" 1e9 \
		"what was only reserved is allocated by the fsync"
	is "$(below_sum synced 'xfs allocation' calls write)" 0 "... and not by the write"
	left_to_others "$threads" "$size" "${extents[@]}"
}

# left_to_others THREADS SIZE EVENT...: who writes back allocates, not who wrote.
left_to_others()
{
	below_start left extend-left "$BED_ONE_MNT/left" "$1" 100 "$2" &&
		attach_start left-look "$(bed_get left PID)" --json &&
		below_trace 0 "${@:3}"
	ok "buffered, and left to others" below_finish left
	sync -f "$BED_ONE_MNT"
	ok "whose extents are traced, too" below_traced left
	is "$(below_sum left 'xfs allocation' calls)" 0 "who only reserved allocates nothing"
	between "$(below_count left xfs_alloc_vextent_finish)" "$1" 1e9 "... but it is done"
}

log_waits
cil_waits
allocation
done_testing
