#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 150
# shellcheck disable=SC2317 # functions are called through others
#
# Waits for pages and for the device's cache. Who makes pages dirty too fast is throttled, in
# write() and in page faults of a mapping, on a fast device and on a slow one: as often as
# the trace event fires, and for as long as the thread slept by the kernel's sched_switch
# events (it was told to sleep less, as a rule: "pause"). A sync behind another thread's
# pages waits for their writing, a read for its pages, an fdatasync for a flush.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
. tests/lib/below.sh
below_begin
below_mount x 600m || bail_out "no XFS"

# paused NAME: ns that it was told to sleep.
paused()
{
	sed -n 's/.* balance_dirty_pages: .* pause=\([0-9]*\) .*/\1/p' "$BED_DIR/$1.trace" |
		awk '{ n += $1 } END { print n * 1e6 }'
}

# throttled NAME ID: the row ID against the trace.
# What the load prints of its clocks may be throttled, too, as a write. A sleep that was not
# seen to end is counted as lost: a page fault's with its row, of a write's the time.
throttled()
{
	local calls count lost ns self wakes

	read -r count ns < <(below_times "$1" slept balance_dirty_pages)
	read -r calls self < <(jq -r '[.ops[].layers[] | select(.kind == "throttle")] |
		[(map(.calls // .count) | add), (map(.self_us.mean * .count * 1000) | add)] |
		@tsv' "$BED_DIR/$1.json")
	read -r lost wakes < <(jq -r '.lost | [.unpaired, .wakes] | @tsv' "$BED_DIR/$1.json")
	is $((calls + lost)) "$(below_count "$1" balance_dirty_pages)" \
		"$1: it was throttled as often as balance_dirty_pages fires"
	between "$(below_sum "$1" "$2" calls)" "$((calls > 10 ? calls - 1 : 10))" "$calls" \
		"$1: all of it is '$2'"
	is "$count" $((calls + lost)) "$1: each time it slept"
	between $((lost + wakes)) 0 2 "$1: hardly any is lost"
	# a sleep that was not seen to end may be a long one
	between "$(below_ratio "$self" "$ns")" \
		"$(awk -v n=$((lost + wakes)) -v of="$count" 'BEGIN { print 0.99 - 3 * n / of }')" \
		1.01 "$1: for as long as it slept"
	note "$1: it was told to sleep $(below_ratio "$(paused "$1")" "$self") of that"
	ok "$1: the rows add up" below_adds_up "$1"
}

# throttling NAME MIB: a write and a mapping of that much.
throttling()
{
	local dirtied=(writeback/balance_dirty_pages 'pause > 0' sched/sched_switch '') size

	below_draw 8 48; size=$((DRAWN * 4096))
	below_busy
	ok "$1: writes of $size bytes" below_traced_run "$1-write" dirty "$BED_X_MNT/$1-write" 1 \
		$(($2 * 1048576 / size)) "$size" -- "${dirtied[@]}"
	ok "$1: page faults of a mapping" below_traced_run "$1-fault" map "$BED_X_MNT/$1-fault" \
		1 $(($2 * 256)) 4096 -- "${dirtied[@]}"
	below_idle
	throttled "$1-write" throttle
	throttled "$1-fault" 'throttle in a page fault'
}

throttled_writers()
{
	below_draw 6 10
	ok "the limit of dirty pages is $DRAWN MiB" below_dirty dirty $((DRAWN * 1048576))
	ok "and that of the background half of it" below_dirty dirty_background $((DRAWN * 524288))
	throttling fast 80
	below_draw 12 24
	below_slow "$BED_X_NUMBER" $((DRAWN * 1048576)) ||
		{ skip "no cgroup v1 blkio here" "a slow device" 14; return; }
	throttling slow 24
	below_fast
}

# kept NAME OP: the load's 8 calls were the slowest and are shown whole, most of it held back.
kept()
{
	local slow

	slow=$(jq -c --arg op "$2" '[.slow[] | select(.op == $op)] | .[:8]' "$BED_DIR/$1.json")
	is "$(jq -c '.slow_limits | [.slow >= 8, .slow == .shown, .lost]' "$BED_DIR/$1.json") $(
		jq length <<<"$slow")" '[true,true,0] 8' "$1: 8 slow ones, each $2"
	between "$(below_ratio "$(jq '[.[].incl_us] | add * 1000' <<<"$slow")" \
		"$(below_clock "$1" wall_ns)")" 0.97 1.001 "$1: as long as their own clock says"
	is "$(jq 'map(([.layers[].self_us] | add) + .more.self_us - .incl_us | fabs) |
		all(. < 0.02)' <<<"$slow")" true "$1: the rows of each add up to it"
	between "$(jq '([.[].layers[] | select(.id == "block held back") | .self_us] | add) /
		([.[].incl_us] | add)' <<<"$slow")" "$(below_least "$1" 0.8 8)" 1 \
		"$1: most of it is before there is a request"
	between "$(jq 'map(select([.layers[].id] | index("block device"))) | length' \
		<<<"$slow")" "$(jq '8 - .lost.wakes' "$BED_DIR/$1.json")" 8 \
		"$1: then the device has it"
}

# What a sync takes longer behind another thread's pages is the wait for their writing.
writeback_waits()
{
	local size

	below_draw 8 16; size=$((DRAWN * 131072))
	dd if=/dev/zero of="$BED_X_MNT/sync" bs="$size" count=1 conv=fsync 2>/dev/null
	below_draw 8 16
	below_slow "$BED_X_NUMBER" $((DRAWN * 1048576)) ||
		{ skip "no cgroup v1 blkio here" "syncs behind a writer" 6; return; }
	BELOW_LOOK=(--slow 50ms)
	ok "fsyncs behind a writer of $size bytes" below_traced_run sync behind \
		"$BED_X_MNT/sync" 1 8 "$size" -- writeback/folio_wait_writeback ''
	ok "8 O_DIRECT writes" below_run direct extend "$BED_X_MNT/direct" 1 8 1048576
	BELOW_LOOK=()
	below_fast
	kept sync fsync
	kept direct write
	below_met sync folio_wait_writeback 'writeback wait' 8
	between "$(below_sum sync 'writeback wait' count fsync)" 8 16 \
		"each of them waits for writeback"
	between "$(below_ratio "$(below_sum sync 'writeback wait' incl fsync)" \
		"$(jq -n "$(below_clock sync wall_ns) - $(below_clock sync quiet_ns)")")" \
		"$(below_least sync 0.9 8)" 1.02 \
		"what they take longer by their own clock is that wait"
	ok "the rows add up" below_adds_up sync
}

folio_reads()
{
	local count ns reads=300 wakes

	dd if=/dev/zero of="$BED_X_MNT/read" bs=1M count=64 conv=fsync 2>/dev/null
	below_draw 1 4
	below_busy
	ok "reads of what is not cached" below_traced_run read read "$BED_X_MNT/read" 1 $reads \
		$((DRAWN * 4096)) -- sched/sched_switch '' syscalls/sys_enter_pread64 '' \
		syscalls/sys_exit_pread64 ''
	below_idle
	read -r count ns < <(below_times read slept_in sys_pread64)
	wakes=$(jq .lost.wakes "$BED_DIR/read.json")
	between "$wakes" 0 3 "hardly any sleep has an end that nobody saw"
	# the trace lacks a switch as well now and then
	between $(($(below_sum read 'folio read' calls pread64) + wakes)) "$count" \
		$((count + 1)) "a read is met as often as the kernel had its thread wait"
	between "$count" $((reads * 2 / 3)) 1e9 "most reads had to wait"
	between "$(below_ratio "$(below_sum read 'folio read' incl pread64)" "$ns")" 0.93 1.07 \
		"for as long as it slept: of some 10 us, each event is a part of one apart"
	ok "the rows add up" below_adds_up read
}

# An fdatasync of an overwrite asks for nothing but a flush: a request without data. A log
# buffer is written with flushes around it, and waited for until they are done.
flushes()
{
	local device=$((${BED_X_NUMBER%:*} << 20 | ${BED_X_NUMBER#*:})) count ns

	dd if=/dev/zero of="$BED_X_MNT/flush" bs=1M count=16 conv=fsync 2>/dev/null
	below_draw 20 40
	ok "$DRAWN fdatasyncs of overwrites" below_traced_run -a flush flush "$BED_X_MNT/flush" \
		1 "$DRAWN" 16384 -- block/block_rq_complete "dev == $device" \
		block/block_rq_issue "dev == $device"
	is "$(below_path flush 'fdatasync/xfs/block flush' calls)" \
		"$(grep -cE ' block_rq_complete: [0-9,]* WS \(\) 0 \+ 0 ' "$BED_DIR/flush.trace")" \
		"a flush is waited for as often as one was asked for"
	between "$(below_path flush 'fdatasync/xfs/block flush' calls)" $((DRAWN - 2)) "$DRAWN" \
		"nearly each of them needs no more"
	read -r count ns < <(below_times flush requests FF)
	between "$(below_ratio "$(below_sum flush 'block flush' self)" "$ns")" 0.9 1.15 \
		"for as long as the device took for $count flushes"
	ok "the rows add up" below_adds_up flush
	ok "creates and fsyncs of one thread" below_traced_run fua create "$BED_X_MNT" 1 600 0 -- \
		xfs/xlog_iclog_wait_on ''
	below_met fua xlog_iclog_wait_on 'xfs log iclog' 5
	is "$(below_path fua 'fsync/xfs/xfs log iclog/block flush' count)" \
		"$(below_path fua 'fsync/xfs/xfs log iclog' count)" \
		"who waits for a log buffer waits for its flushes"
}

writeback_waits
folio_reads
flushes
throttled_writers
done_testing
