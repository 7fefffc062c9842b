#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2317 # functions are called through others
#
# Asynchronous operations, by libaio and by io_uring, one and many at a time, buffered and
# direct, on an XFS of their own: as many as fio made, as long as fio's own clocks say, from
# their submission to their completion, and the file's and the thread's that they are of. On a
# device that a cgroup limits all is time before there is a request, but for what the kernel
# itself has as the device's. With few dirty pages allowed io_uring's workers are throttled,
# as often and as long as the kernel's events say, inside of the operations. Sizes, depths and
# limits are drawn.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
. tests/lib/below.sh
below_begin
below_mount x 500m || bail_out "no XFS"
file=$BED_X_MNT/file

# off NAME: what of the layers is off in its report.
off() { jq -r '.off[]? | select(.what | IN("aio", "io_uring", "xfs", "block")) | .reason' \
	"$BED_DIR/$1-look.out"; }

# lasted NAME LAYER CLOCK LOW: what fio calls an operation's latency begins before its
# submission and ends when fio has fetched the result: the operation lies inside it.
lasted()
{
	local op ratio

	for op in read write; do
		ratio=$(below_ratio "$(below_sum "$1" "$2 $op" incl "$2 $op")" \
			"$(below_fio_job "$1" "$2" ".$op | .$3_ns.mean * .total_ios")")
		note "$1: ${op}s of $2: $ratio of fio's $3"
		between "$ratio" "$4" 1.001 "$1: ${op}s of $2 lie inside fio's own figure"
	done
}

# used NAME: the file's row has them all, and their time; a thread's those of its job. (fio
# itself reads and writes a little, elsewhere.)
used()
{
	local jobs='.jobs[] | { reads: .read.total_ios, writes: .write.total_ios,
		syncs: .sync.total_ios, bytes: (.read.io_bytes + .write.io_bytes) }'
	local thread='"\(.writes) \(.syncs) \(.bytes / 4096 | floor)"' of_file

	of_file=".files[] | select(.inode == $(stat -c %i "$file") and .dev == \"$BED_X_NUMBER\")"
	is "$(jq -c "$of_file | [.reads, .writes, .syncs, .bytes]" "$BED_DIR/$1.json")" \
		"$(jq -c "[$jobs] | [map(.reads), map(.writes), map(.syncs), map(.bytes)] |
			map(add)" "$BED_DIR/$1.clocks")" "$1: the file has them all"
	between "$(jq "($of_file | .total_us) / ([.ops[] | select(.op |
		test(\"^(aio|io_uring) |^fsync\")) | .count * .incl_us.mean] | add)" \
		"$BED_DIR/$1.json")" 0.999 1.01 "$1: and their time"
	between "$(jq "($of_file | .share_pct) / .seen.files_pct" "$BED_DIR/$1.json")" 0.9 1 \
		"$1: which is nearly all that files have"
	is "$(jq -r "[.apps[] | select(.syncs > 0 and .uid == 0 and .comm == \"fio\") | $thread] |
		sort[]" "$BED_DIR/$1.json")" \
		"$(jq -r "[$jobs | $thread] | sort[]" "$BED_DIR/$1.clocks")" \
		"$1: and a thread those of its job"
}

# draw_load COUNT MOST: sets LOAD to options for so many operations of a size that is drawn,
# up to so many pages, in an order that is the seed's.
draw_load()
{
	below_draw 1 "$2"
	LOAD=(--size=32m --bs=$((DRAWN * 4096)) --io_size=$((DRAWN * 4096 * $1))
		--randseed="$BELOW_SEED")
}

# run NAME LOW OPTION...: LOW: how much of fio's latency is the operations', at the least;
# with many in flight they wait most of all until fio looks.
run()
{
	local name=$1 low=$2 clock=lat

	draw_load 512 8
	below_draw 30 70
	LOAD+=(--rw=randrw --rwmixread="$DRAWN")
	below_draw 20 60
	LOAD+=(--fsync="$DRAWN" "${@:3}")
	note "$name: ${LOAD[*]}"
	ok "$name: fio" below_async "$name" "$file" "${LOAD[@]}"
	is "$(off "$name")" '' "$name: nothing is off"
	is "$(jq -c '.lost | [.map_full, .unpaired, .skipped, .begun_before]' \
		"$BED_DIR/$name.json")" '[0,0,0,0]' "$name: no operation is lost"
	below_async_counted "$name" aio
	below_async_counted "$name" io_uring
	used "$name"
	lasted "$name" io_uring lat "$low"
	# buffered ones are done when io_submit() is, and then wait for fio
	[[ $name = direct* ]] || clock=slat
	lasted "$name" aio "$clock" "$low"
	ok "$name: the rows add up" below_adds_up "$name"
}

# Layers take turns off: what began while they were on is seen, and all else is missing.
in_turns()
{
	local layer

	draw_load 512 4
	below_draw 2 8
	BELOW_LOOK=(--budget 50)
	BRICKTOP_BUDGET=turns
	export BRICKTOP_BUDGET
	ok "in turns: fio" below_async turns "$file" "${LOAD[@]}" --rw=randread --direct=1 \
		--iodepth="$DRAWN" --time_based --runtime=4
	unset BRICKTOP_BUDGET
	BELOW_LOOK=()
	is "$(jq .lost.map_full "$BED_DIR/turns.json")" 0 "in turns: there is room for each"
	for layer in aio io_uring; do
		between "$(below_ratio "$(below_sum turns "$layer read" count "$layer read")" \
			"$(below_fio_job turns "$layer" .read.total_ios)")" 0.1 0.95 \
			"in turns: of $layer's reads a part"
	done
}

# slow ENGINE LAYER: each of its slowest operations names its file. (One engine a run: the other
# one's might be slower, all of them.)
slow()
{
	local name=slow-$1 layer=$2

	draw_load 64 8
	below_draw 1 8
	BELOW_LOOK=(--slow 0)
	ok "slow: fio" below_fio "$name" "$file" "${LOAD[@]}" --rw=randrw --direct=1 \
		--iodepth="$DRAWN" --name="$2" --ioengine="$1"
	BELOW_LOOK=()
	is "$(jq -c --arg layer "$layer" '[.slow[] |
		select(.op == $layer + " read" or .op == $layer + " write") | .ino] |
		[length > 0] + unique' "$BED_DIR/$name.json")" \
		"[true,$(stat -c %i "$file")]" "slow: operations of $layer are of the file"
}

# device_ms: for how long the device had reads, by the kernel's own account: each from when there
# is a request.
device_ms() { awk '{ print $4 }' "/sys/block/$BED_X_DEV/stat"; }

# held ENGINE LAYER: of limited reads all that is not the device's is time before a request.
held()
{
	local name=$1 layer=$2 ms

	draw_load 150 4
	below_draw 3 8
	LOAD+=(--rw=randread --direct=1 --iodepth="$DRAWN" --name="$2" --ioengine="$1")
	below_draw 80 120
	note "$layer: $DRAWN a second, ${LOAD[*]}"
	below_limit "$BED_X_NUMBER" "$DRAWN" ||
		{ skip "no cgroup v1 blkio here" "$layer: held back" 3; return; }
	ms=$(device_ms)
	ok "$layer: reads with a limit" below_fio "$name" "$file" "${LOAD[@]}"
	ms=$(($(device_ms) - ms))
	below_limit "$BED_X_NUMBER" 0
	between "$(below_ratio "$(below_sum "$name" 'block held back' self)" \
		"$(jq -n "$(below_sum "$name" "$layer read" incl) - $ms * 1000000")")" 0.95 1.05 \
		"$layer: but for $ms ms of the device's it is time before there is a request"
	between "$(below_ratio "$(below_sum "$name" "$layer read" incl)" \
		"$(below_fio_job "$name" "$layer" '.read | .lat_ns.mean * .total_ios')")" \
		0.95 1.001 "$layer: which is nearly all of fio's latency"
}

# throttled_fio FILE SIZE DEPTH: a trace does not follow a process to its workers.
throttled_fio()
{
	below_fio_start throttled "$1" --size=32m --bs="$2" --rw=write --loops=3 \
		--iodepth="$3" --name=io_uring --ioengine=io_uring && below_look throttled &&
		below_trace 0 writeback/balance_dirty_pages 'pause > 0 && comm ~ "iou-wrk*"' \
			sched/sched_switch '' &&
		below_finish throttled && below_traced throttled
}

throttled_workers()
{
	local calls count lost ns size

	below_draw 6 10
	ok "the limit of dirty pages is $DRAWN MiB" below_dirty dirty $((DRAWN * 1048576))
	ok "and that of the background half of it" below_dirty dirty_background $((DRAWN * 524288))
	below_draw 1 8; size=$((DRAWN * 65536))
	below_draw 2 8
	note "throttled: writes of $size, $DRAWN at a time"
	below_busy
	ok "throttled: fio" throttled_fio "$file" "$size" "$DRAWN"
	below_idle
	read -r count ns < <(below_times throttled slept balance_dirty_pages)
	calls=$(below_sum throttled throttle calls 'io_uring write')
	# ends that were not seen: any thread's, and of any sleep
	lost=$(jq '.lost | .unpaired + .wakes' "$BED_DIR/throttled.json")
	between "$count" 5 1e9 "throttled: $count times"
	between "$lost" 0 2 "throttled: hardly any is lost"
	between "$calls" $((count - lost)) "$count" "throttled: each is in an operation"
	between "$(below_ratio "$(below_sum throttled throttle self 'io_uring write')" "$ns")" \
		"$(awk -v n=$((count - calls)) -v of="$count" \
			'BEGIN { print 0.99 - 3 * n / of }')" 1.01 \
		"throttled: for as long as the workers slept"
	is "$(below_sum throttled 'throttle in a page fault' calls)" 0 \
		"throttled: none was a page fault"
	is "$(below_sum throttled 'io_uring write' count 'io_uring write')" \
		"$(below_fio_job throttled io_uring .write.total_ios)" "throttled: all writes"
	ok "throttled: the rows add up" below_adds_up throttled
}

dd if=/dev/zero of="$file" bs=1M count=32 conv=fsync 2>/dev/null || bail_out "no file"
below_draw 8 32; depth=$DRAWN
run direct-1 0.2 --direct=1 --iodepth=1
run direct-many 0.002 --direct=1 --iodepth="$depth"
run buffered-1 0.1 --iodepth=1
run buffered-many 0.002 --iodepth="$depth"
slow libaio aio
slow io_uring io_uring
in_turns
held libaio aio
held io_uring io_uring
throttled_workers
done_testing
