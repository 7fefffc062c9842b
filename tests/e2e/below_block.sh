#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 120
# shellcheck disable=SC2317 # functions are called through others
#
# The layer "block" as the waiting thread feels it, on an XFS whose device a cgroup
# limits: of what the limit adds to O_DIRECT reads, one at a time, all is time before
# there is a request. And the inode's lock: a writer that waits for a block to be read
# holds it, the others wait; writers that copy hold it, the others spin.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
. tests/lib/below.sh
e2e_begin
e2e_needs "$BELOW"
below_mount x 500m || bail_out "no XFS"
file=$BED_X_MNT/file

reads()
{
	local off

	below_limit "$BED_X_NUMBER" 0 || { skip "no cgroup v1 blkio here" "held back" 7; return; }
	ok "reads without a limit" below_run free direct-read "$file" 150
	below_limit "$BED_X_NUMBER" 100
	ok "reads with a limit" below_run held direct-read "$file" 150
	below_limit "$BED_X_NUMBER" 0
	off=$(jq -r '.off[]? | select(.what | IN("xfs", "block", "sched")) | .reason' \
		"$BED_DIR/held-look.out")
	is "$off" '' "nothing is off"
	between "$(below_ratio \
		"$(jq -n "$(below_sum held 'block held back' self) -
			$(below_sum free 'block held back' self)")" \
		"$(jq -n "$(below_clock held wall_ns) - $(below_clock free wall_ns)")")" 0.95 1.02 \
		"of what the limit adds, at least 95 % is time before there is a request"
	between "$(below_ratio "$(below_sum held pread64 incl pread64)" \
		"$(below_clock held wall_ns)")" 0.97 1.001 \
		"the reads are as long as their own clock says"
	ok "the rows add up" below_adds_up held
	between "$(below_sum free 'block device' count)" 140 150 "reads wait for the device"
}

# While somebody always has the lock, all the others wait: what the threads' clocks leave
# unexplained is all their time but that of one.
lock_waits()
{
	local name=$1

	shift
	ok "$name: writers on one file" below_run "$name" write "$file" "$@"
	between "$(below_ratio "$(below_sum "$name" 'xfs lock wait' self)" \
		"$(jq -n "$(below_clock "$name" wall_ns) - $(below_clock "$name" elapsed_ns)")")" \
		0.95 1.05 "$name: the lock wait is what their clocks leave unexplained"
	ok "$name: the rows add up" below_adds_up "$name"
}

locks()
{
	lock_waits spinning 2 150 1048576
	lock_waits three 3 60 1048576
	below_limit "$BED_X_NUMBER" 200 || { skip "no cgroup v1 blkio here" "asleep" 3; return; }
	sync "$file"
	echo 1 >/proc/sys/vm/drop_caches
	lock_waits asleep 8 20 100
	below_limit "$BED_X_NUMBER" 0
	ok "one thread alone" below_run alone write "$file" 1 200 131072
	between "$(below_ratio "$(below_sum alone 'xfs lock wait' self)" \
		"$(below_clock alone wall_ns)")" 0 0.02 "alone, there is next to no lock wait"
}

dd if=/dev/zero of="$file" bs=1M count=320 conv=fsync 2>/dev/null || bail_out "no file"
reads
locks
done_testing
