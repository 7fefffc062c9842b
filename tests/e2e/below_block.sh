#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 180
# shellcheck disable=SC2317 # functions are called through others
#
# The layer "block" as the waiting thread feels it, on an XFS whose device a cgroup
# limits: of what the limit adds to O_DIRECT reads, one at a time, all is time before
# there is a request. And the inode's lock: a writer that waits for a block to be read
# holds it, the others wait; writers that copy hold it, the others spin. The same reads by
# a queue that does not stamp its requests.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
. tests/lib/below.sh
below_begin
below_mount x 500m || bail_out "no XFS"
file=$BED_X_MNT/file

reads()
{
	local off count size

	below_limit "$BED_X_NUMBER" 0 || { skip "no cgroup v1 blkio here" "held back" 7; return; }
	below_draw 80 120; count=$DRAWN
	below_draw 1 16; size=$((DRAWN * 4096))
	ok "$count reads of $size bytes without a limit" \
		below_run free direct-read "$file" 1 "$count" "$size"
	below_draw 25 45
	below_limit "$BED_X_NUMBER" "$DRAWN"
	ok "reads with a limit of $DRAWN a second" \
		below_run held direct-read "$file" 1 "$count" "$size"
	below_limit "$BED_X_NUMBER" 0
	off=$(jq -r '.off[]? | select(.what | IN("xfs", "block", "sched")) | .reason' \
		"$BED_DIR/held-look.out")
	is "$off" '' "nothing is off"
	between "$(below_ratio \
		"$(jq -n "$(below_sum held 'block held back' self) -
			$(below_sum free 'block held back' self)")" \
		"$(jq -n "$(below_clock held wall_ns) - $(below_clock free wall_ns)")")" \
		"$(below_least held 0.95 "$count")" 1.05 \
		"of what the limit adds, at least 95 % is time before there is a request"
	between "$(below_ratio "$(below_sum held pread64 incl pread64)" \
		"$(below_clock held wall_ns)")" 0.97 1.001 \
		"the reads are as long as their own clock says"
	ok "the rows add up" below_adds_up held
	between "$(below_sum free 'block device' count)" $((count * 9 / 10)) "$count" \
		"reads wait for the device"
}

# unstamped SCHEDULER COUNT SIZE: held reads by a queue that keeps no statistics. The kernel does
# not stamp their begin, so what the limit adds may be called held back or, where nobody can
# know, a wait; never the time of the queue or the device.
unstamped()
{
	local added queue=/sys/block/$BED_X_DEV/queue

	bed_write "$queue/scheduler" "$1" "$queue/scheduler" none ||
		{ skip "no such scheduler here" "$1" 5; return; }
	below_draw 25 45
	below_limit "$BED_X_NUMBER" "$DRAWN"
	ok "$1: reads with a limit of $DRAWN a second" \
		below_run "$1" direct-read "$file" 1 "$2" "$3"
	below_limit "$BED_X_NUMBER" 0
	added=$(jq -n "$(below_clock "$1" wall_ns) - $(below_clock unheld wall_ns)")
	between "$(below_ratio "$(jq -n "$(below_sum "$1" 'block held back' self) +
		$(below_sum "$1" 'block wait' self)")" "$added")" 0.9 1.1 \
		"$1: what the limit adds is held back, or a wait"
	is "$(below_sum "$1" 'block queue' count)" 0 "$1: nobody knows of a queue"
	between "$(below_ratio "$(below_sum "$1" 'block device' self)" "$added")" 0 0.2 \
		"$1: nor is it the device's time"
	ok "$1: the rows add up" below_adds_up "$1"
}

stamps()
{
	local queue=/sys/block/$BED_X_DEV/queue count size

	below_limit "$BED_X_NUMBER" 0 || { skip "no cgroup v1 blkio here" "stamps" 11; return; }
	below_draw 40 60; count=$DRAWN
	below_draw 1 16; size=$((DRAWN * 4096))
	ok "$count reads of $size bytes without a limit" \
		below_run unheld direct-read "$file" 1 "$count" "$size"
	bed_write "$queue/iostats" 0
	unstamped none "$count" "$size"
	unstamped mq-deadline "$count" "$size"
	bed_unwrite "$queue/iostats"
	bed_unwrite "$queue/scheduler"
}

# lock_waits NAME THREADS WRITES SIZE: a call has the lock until it ends, so by the threads'
# own clocks it waited from its begin until the one before it ended.
lock_waits()
{
	ok "$1: $2 writers on one file, $3 times $4 bytes" below_run "$1" write "$file" "${@:2}"
	between "$(below_ratio "$(below_sum "$1" 'xfs lock wait' self)" \
		"$(below_clock "$1" queued_ns)")" 0.95 1.05 \
		"$1: the lock wait is what their clocks leave unexplained"
	ok "$1: the rows add up" below_adds_up "$1"
}

locks()
{
	local size threads

	below_draw 3 8; size=$((DRAWN * 131072))
	lock_waits spinning 2 150 "$size"
	below_draw 3 5
	lock_waits several "$DRAWN" 60 "$size"
	below_limit "$BED_X_NUMBER" 200 || { skip "no cgroup v1 blkio here" "asleep" 3; return; }
	sync "$file"
	echo 1 >/proc/sys/vm/drop_caches
	below_draw 5 10; threads=$DRAWN
	below_draw 10 2000
	lock_waits asleep "$threads" 20 "$DRAWN"
	below_limit "$BED_X_NUMBER" 0
	ok "one thread alone" below_run alone write "$file" 1 200 "$size"
	between "$(below_ratio "$(below_sum alone 'xfs lock wait' self)" \
		"$(below_clock alone wall_ns)")" 0 0.02 "alone, there is next to no lock wait"
}

dd if=/dev/zero of="$file" bs=1M count=320 conv=fsync 2>/dev/null || bail_out "no file"
reads
stamps
locks
done_testing
