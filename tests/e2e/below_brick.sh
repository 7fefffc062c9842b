#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 150
# shellcheck disable=SC2317 # functions are called through ok
#
# The layers below the system calls of a real brick, O_DIRECT and buffered: every request
# still adds up, part by part, by the checker's own reckoning of the dump, and the report
# hangs XFS and the block device under the calls of posix.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
. tests/lib/load.sh
e2e_begin
bed_brick b1 || bail_out "no brick"
bed_client c1 b1 || bail_out "no client"

# below OP KIND: passages of rows of that kind under OP's syscalls.
below()
{
	measure_get m1 "[op(\"$1\") | .layers[] | select(.kind == \"$2\" and
		(.path | test(\"posix.*/\"))) | .count] | add // 0"
}

# What must be met in their calls; more is, but not in every run.
parts=()
for part in "read: xfs" "read: block device" "read: folio read" "write: xfs" \
	"write: block device" "write: xfs allocation" "fsync: xfs allocation" \
	"fsync: writeback wait" "fsync: xfs log force" "fsync: xfs log iclog" \
	"fsync: block flush" "fallocate: xfs allocation"; do
	parts+=(--expect-part "$part")
done

appends()
{
	bed_fio "$BED_C1_MNT" append --rw=write --size=1m --bs=16k --fsync=16 &&
		bed_fio "$BED_C1_MNT" append-cached --rw=write --size=1m --bs=16k --fsync=16 \
			--direct=0
}

for job in data cached; do
	load_data_prepare "$BED_C1_MNT" "$job" || bail_out "no files"
done
# the brick has to read what is buffered from its device
sync "$BED_B1_XFS" && echo 1 >/proc/sys/vm/drop_caches
ok "bricktop attaches" measure_begin m1 "$(bed_get b1 PID)" \
	--dump-requests 100000="$BED_DIR/m1.dump"
ok "O_DIRECT reads and writes with fsync" load_data "$BED_C1_MNT" data
ok "buffered ones" load_data "$BED_C1_MNT" cached --direct=0
ok "appends, O_DIRECT and buffered" appends
ok "creates, renames, links, attributes" load_meta "$BED_C1_MNT"
ok "a report" measure_end m1
ok "every request adds up, with the parts of its calls" tests/lib/check_dump.py \
	"$BED_DIR/m1.dump" --min-requests 1000 --max-unsplit 0 "${parts[@]}"
for op in read write fsync; do
	between "$(below "$op" xfs)" 10 1e9 "$op: XFS lies below its calls"
done
between "$(below fsync block)" 10 1e9 "fsync: time at the block device"
is "$(measure_get m1 '[.ops[].layers[] | .reason // "" | select(. != "")] | length')" 0 \
	"every row hangs where it belongs"
is "$(measure_get m1 '.lost | .map_full + .unpaired + .absurd')" 0 "nothing is lost"
done_testing
