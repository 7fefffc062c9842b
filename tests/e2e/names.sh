#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 180
# shellcheck disable=SC2016,SC2153,SC2317 # eval; bed.sh sets BED_<NAME>_*; ok calls
#
# Names that only the brick's disk knows, while that disk does not answer: reports come all
# the same, one after the other and the last one, which says that names are missing; and
# bricktop ends and leaves nothing in the kernel, although who has asked the disk cannot.
# The disk is an image on a volume whose client is stopped.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
e2e_begin
e2e_needs bpftool fsfreeze

# Writes to a file with a name, and to one that has none any more.
start_writer()
{
	bed_launch writer python3 -c '
import os, sys, time
kept = os.open(sys.argv[1] + "/kept", os.O_CREAT | os.O_WRONLY)
gone = os.open(sys.argv[1] + "/gone", os.O_CREAT | os.O_WRONLY)
os.unlink(sys.argv[1] + "/gone")
print("ready", flush=True)
while True:
    os.pwrite(kept, b"x" * 512, 0)
    os.pwrite(gone, b"x" * 512, 0)
    time.sleep(0.05)' "$BED_C1_MNT"
	bed_poll 20 grep -q ready "$BED_DIR/writer.out"
}

# disk_of NAME CLIENT: what bed_brick takes for NAME's file system lies on that client's mount.
disk_of()
{
	local dir=$BED_DIR/$1.xfs image

	image=$(bed_get "$2" MNT)/$1.img
	mkdir "$dir" && truncate -s 512M "$image" && mkfs.xfs -q -i size=512 "$image" || return 1
	bed_record "mount $dir"
	mount -o loop,noatime "$image" "$dir"
}

# What is not in memory any more has to be read: first all has to be written, and not only to
# the log, or it stays.
forget()
{
	local i

	fsfreeze -f "$BED_B1_XFS" && fsfreeze -u "$BED_B1_XFS"
	for ((i = 0; i < 8; i++)); do
		echo 3 >/proc/sys/vm/drop_caches
	done
}

asker() { pgrep -P "$BED_NAMES_PID" -x bricktop-names; }

# It is in uninterruptible sleep, the same one for all reports.
hangs() { [ "$(ps -o state= -p "$1")" = D ]; }

is_hanging() { ASKER=$(asker) && hangs "$ASKER"; }

# late N: so many reports lack names.
late() { [ "$(jq 'select(.seen.names_late > 0) | 1' "$BED_DIR/names.out" | wc -l)" -ge "$1" ]; }

# reports FILTER: over all of them.
reports() { jq -s "$1" "$BED_DIR/names.out"; }

test_hang()
{
	ok "attached, a report a second" attach_start names "$BED_B1_PID" --json \
		--interval 1s -d 300s
	attach_objects names >"$BED_DIR/objects"
	ok "probes are in" test -s "$BED_DIR/objects"
	ok "reports in which no name is late" bed_poll 20 test -s "$BED_DIR/names.out"
	is "$(reports 'map(.seen.names_late) | unique == [0]')" true "while the disk answers"
	forget
	bed_freeze c0
	ok "who asks the disk hangs" bed_poll 30 is_hanging
	start=$(bed_start_time "$ASKER")
	bed_record "pid $ASKER $start"
	ok "reports go on" bed_poll 60 late 4
	is "$(asker)" "$ASKER" "one process hangs, not one for each report"
	kill -INT "$BED_NAMES_PID"
	ok "bricktop ends" bed_poll 60 bed_gone "$BED_NAMES_PID"
	attach_wait names
	is "$ATTACH_STATUS" 0 "well"
	ok "while the other one still hangs" eval 'bed_alive "$ASKER" "$start" && hangs "$ASKER"'
	ok "nothing is left in the kernel" bed_poll 10 attach_nothing_left "$BED_DIR/objects"
	is "$(reports '.[-1] | [.ops[] | select(.op == "write") | .count > 0] | any')" true \
		"the last report has its operations"
	is "$(reports 'map(select(.seen.names_late > 0) | .files | map(.path) |
		any(. == "/kept")) | all')" true "what is known from memory has its name"
	is "$(reports 'map(select(.seen.names_late > 0) | .files | map(select(.path == null and
		.writes > 0)) | length == 1) | all')" true "the other one its gfid"
	bed_thaw c0
	ok "once the disk answers the other one ends, too" bed_poll 30 bed_gone "$ASKER"
}

{ bed_brick b0 && bed_client c0 b0 && disk_of b1 c0; } || bail_out "no disk"
{ bed_brick b1 && bed_client c1 b1 && start_writer; } || bail_out "no load"
test_hang
done_testing
