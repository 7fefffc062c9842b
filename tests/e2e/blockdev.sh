#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: parallel
# bricktop: timeout 240
# shellcheck disable=SC2153 # bed.sh sets BED_<NAME>_*
# shellcheck disable=SC2317,SC2016 # functions are called through ok; $ of jq
#
# The table of the host's block devices: between two points at which nothing moves, its
# requests, bytes and merges are the kernel's own to the last one, and its times are the
# kernel's; a request that is done in parts is one request; a device without requests is
# counted by bios; the devices below a target are named, and no others are shown. Processes
# that have files open on a mount are reported with it, and no others.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
e2e_begin

# stat_of DEVICE: /sys/block/X/stat as one object, times in ms.
stat_of()
{
	jq -sc '{ read: .[0], read_merges: .[1], read_bytes: (.[2] * 512), read_ms: .[3],
		write: .[4], write_merges: .[5], write_bytes: (.[6] * 512), write_ms: .[7],
		discard: .[11], discard_merges: .[12], discard_bytes: (.[13] * 512),
		flush: .[15] }' "/sys/block/${1##*/}/stat"
}

# moved BEFORE AFTER KEY: how much a figure of stat_of has grown.
moved() { jq -n "$1 as \$b | $2 as \$a | \$a.$3 - \$b.$3"; }

# report NAME FILTER: of the first device's; op("x") is an operation of it, {} where it had none.
report()
{
	jq -r "def op(\$o): [.devices[0].ops[] | select(.op == \$o)][0] // {}; $2" \
		"$BED_DIR/$1.out"
}

# loop_on NAME FILE: a loop device of the test's own; sets _DEV.
loop_on()
{
	bed_set "$1" DEV "$(losetup -f --show "$2")"
	bed_on_exit losetup -d "$(bed_get "$1" DEV)"
}

freeze() { sync -f "$BED_DISK_XFS" && fsfreeze -f "$BED_DISK_XFS"; }
thaw() { fsfreeze -u "$BED_DISK_XFS"; }
thaw_left() { thaw 2>/dev/null; }

# Every kind of request: deep queues, small ones that are merged, flushes, FUA, discards.
make_requests()
{
	bed_fio "$BED_DISK_XFS" random --rw=randrw --bsrange=4k-128k --ioengine=libaio \
		--iodepth=16 --size=8m &&
		bed_fio "$BED_DISK_XFS" stream --rw=write --ioengine=libaio --iodepth=32 \
			--iodepth_batch_submit=32 --size=1m &&
		bed_fio "$BED_DISK_XFS" synced --rw=write --sync=dsync --size=256k --bs=16k &&
		bed_fio "$BED_DISK_XFS" buffered --direct=0 --rw=randwrite --fsync=64 --size=1m &&
		rm "$BED_DISK_XFS"/random.* && sync -f "$BED_DISK_XFS" && fstrim "$BED_DISK_XFS"
}

bed_xfs disk 600M || bail_out "no XFS"
disk=${BED_DISK_DEV##*/}

# ---- exact ------------------------------------------------------------------
bed_on_exit thaw_left
ok 'the file system is frozen' freeze
before=$(stat_of "$disk")
ok 'attach to the device' attach_start exact "$BED_DISK_DEV" --json -d 60
ok 'thawed' thaw
ok 'requests of every kind are made' make_requests
ok 'and frozen again' freeze
after=$(stat_of "$disk")
attach_end exact
is "$ATTACH_STATUS" 0 'bricktop ends well'
is "$ATTACH_ERR" '' '... without complaints'
thaw

is "$(report exact '.devices[0].name')" "$disk" 'the first device is the one named'
for group in read discard; do
	is "$(report exact "op(\"$group\").count")" "$(moved "$before" "$after" "$group")" \
		"$group: requests as the kernel counts them"
done
is "$(report exact '[op("write", "flush-wait", "write-zeroes") | .count // 0] | add')" \
	"$(moved "$before" "$after" write)" \
	'write: requests as the kernel counts them, empty flushes included'
is "$(report exact 'op("flush").count')" "$(moved "$before" "$after" flush)" \
	'flush: as the kernel counts them'
for group in read write discard; do
	is "$(report exact "op(\"$group\").bytes")" "$(moved "$before" "$after" "${group}_bytes")" \
		"$group: bytes are the kernel's"
	is "$(report exact "op(\"$group\").merges")" \
		"$(moved "$before" "$after" "${group}_merges")" "$group: merges are the kernel's"
done
isnt "$(report exact 'op("write").merges')" 0 '... and there were some'
isnt "$(report exact 'op("flush").count // 0')" 0 '... and flushes'
for op in read write; do
	is "$(report exact "op(\"$op\") | [.device_us.count, .size_bytes.count] | unique | @csv")" \
		"$(report exact "op(\"$op\").count")" "$op: every one has its time and its size"
	# the kernel's stamps may lie a little in the past: what was issued before it began is lost
	is "$(report exact ".lost.absurd as \$lost | op(\"$op\") |
		.queue_us.count <= .count and .queue_us.count + \$lost >= .count")" true \
		"... and its time in the queue, or is counted as lost"
	# the kernel's clock for it is read last, after the request's end was announced
	between "$(report exact "op(\"$op\") | .count * (.queue_us.mean + .device_us.mean) / 1000 /
		$(moved "$before" "$after" "${op}_ms")")" 0.75 1.02 \
		"$op: its times are the kernel's in sum"
	is "$(report exact "op(\"$op\") | .device_us |
		.p50 <= .p90 and .p90 <= .p99 and .p99 <= .max")" true "$op: quantiles are in order"
done
is "$(report exact 'op("write").errors + op("read").errors')" 0 'none failed'
is "$(report exact '.lost.map_full + .lost.unpaired')" 0 'none was lost'
is "$(report exact '.cost.tracepoint_hits > ([.devices[0].ops[].count] | add)')" true \
	'what it costs is counted: at least a hit for each request'
is "$(report exact '.ops')" '[]' 'no process is followed'

# ---- sequential -------------------------------------------------------------
truncate -s 64M "$BED_DISK_XFS/inner.img"
loop_on inner "$BED_DISK_XFS/inner.img"
inner=${BED_INNER_DEV##*/}
before=$(stat_of "$inner")
ok 'attach to a device that nothing is mounted from' attach_start order "$inner" --json -d 60
ok 'read from end to end' dd if="$BED_INNER_DEV" of=/dev/null bs=64k count=256 iflag=direct
ok 'write every other block' fio --name=holes --filename="$BED_INNER_DEV" --rw=write:8k --bs=8k \
	--direct=1 --size=16m --ioengine=psync
ok 'ask for nothing but a flush' dd if=/dev/zero of="$BED_INNER_DEV" bs=64k count=1 \
	conv=fsync,notrunc
attach_end order
after=$(stat_of "$inner")
isnt "$(report order 'op("flush-wait").count // 0')" 0 'it was waited for'
is "$(report order '[op("write", "flush-wait", "write-zeroes") | .count // 0] | add')" \
	"$(moved "$before" "$after" write)" '... which the kernel counts as a write'
is "$(report order 'op("flush-wait") | [.bytes, .size_bytes.mean, .device_us.mean] | @json')" \
	'[0,null,null]' 'it moves nothing, and is not given to the device'
between "$(report order 'op("read").sequential_pct')" 95 100 'a stream is sequential'
between "$(report order 'op("write").sequential_pct')" 0 5 'one with holes is not'
is "$(report order 'op("read").size_bytes | [.p50, .max] | @csv')" 65536,65536 'sizes are exact'
is "$(report order '.devices | map(.name) | .[:2] | @csv')" "\"$inner\",\"$disk\"" \
	'the device below it is shown next'
is "$(report order '.devices[0] | .stack[0]')" "$disk" '... and named'
is "$(report order '.devices[0] | .label')" "$BED_DISK_XFS/inner.img" 'a loop is named by its file'
is "$(report order '[.devices[] | .ops[].count] | min > 0')" true \
	'an operation that was not seen has no row'

# ---- in parts ---------------------------------------------------------------
truncate -s 1M "$BED_DIR/short.img"
loop_on short "$BED_DIR/short.img"
truncate -s 100K "$BED_DIR/short.img"
before=$(stat_of "$BED_SHORT_DEV")
ok 'attach to a loop whose file is too short' attach_start short "$BED_SHORT_DEV" --json -d 60
nok 'a read beyond the end of the file fails' dd if="$BED_SHORT_DEV" of=/dev/null bs=128k count=1 \
	iflag=direct
attach_end short
after=$(stat_of "$BED_SHORT_DEV")
is "$(moved "$before" "$after" read)" 1 'it was one request'
is "$(report short 'op("read") | [.count, .errors, .partial] | @csv')" 1,1,1 \
	'done in part, then failed: it counts once'
is "$(report short 'op("read").bytes')" "$(moved "$before" "$after" read_bytes)" \
	'with the bytes of both parts'
is "$(report short 'op("read").size_bytes.max')" 131072 'and its whole size'

# ---- by bios ----------------------------------------------------------------
if zram=$(cat /sys/class/zram-control/hot_add 2>/dev/null); then
	bed_on_exit eval "echo $zram >/sys/class/zram-control/hot_remove"
	bed_on_exit eval "echo 1 >/sys/block/zram$zram/reset"
	echo 64M >"/sys/block/zram$zram/disksize"
	before=$(stat_of "zram$zram")
	ok 'attach to a device that takes bios' attach_start bios "zram$zram" --json -d 60
	ok 'write to it' dd if=/dev/urandom of="/dev/zram$zram" bs=64k count=10 oflag=direct
	ok 'read from it' dd if="/dev/zram$zram" of=/dev/null bs=4k count=20 iflag=direct
	attach_end bios
	after=$(stat_of "zram$zram")
	is "$(report bios '.devices[0].by')" bios 'it is counted by bios'
	is "$(report bios 'op("write") | [.count, .bytes, .size_bytes.max] | @csv')" \
		10,655360,65536 'writes are those of dd'
	is "$(report bios 'op("read") | [.count, .bytes] | @csv')" 20,81920 'reads are those of dd'
	for group in read write; do
		is "$(report bios "op(\"$group\") | [.count, .bytes] | @csv")" \
			"$(printf '%s,%s' "$(moved "$before" "$after" "$group")" \
				"$(moved "$before" "$after" "${group}_bytes")")" \
			"$group: bios and bytes are the kernel's"
	done
	is "$(report bios 'op("read") | [.queue_us.mean, .device_us.count] | @json')" '[null,20]' \
		'it has no queue, and all of the time is its own'
	is "$(report bios '.devices | length')" 1 'nothing is below it'
	is "$(report bios '.lost.map_full + .lost.unpaired')" 0 'none was lost'
else
	skip 'no zram here' 'a device that takes bios'
fi

# ---- as text, and other targets ---------------------------------------------
ok 'attach to a mount, as text' attach_start text "$BED_DISK_XFS" -d 60
ok 'write to it' dd if=/dev/zero of="$BED_DISK_XFS/f" bs=64k count=64 oflag=direct
attach_end text
text=$(cat "$BED_DIR/text.out")
like "$text" "^xfs $BED_DISK_XFS +xfs on $BED_DISK_DEV" 'the mount stands above it'
like "$text" $'\n'"devices .*"$'\n'"$disk .* on .*busy [0-9.]+ %" 'the table is there'
like "$text" $'\n''  write +[0-9.,k]+ +[0-9.]+[kM]B +[0-9.]+kB +[0-9.]+[um]?s' 'with its rows'
unlike "$text" 'no operation finished|in this process|open files|pid ' 'and nothing of a process'

# ---- processes behind a mount -----------------------------------------------
# writer NAME DIRECTORY [FIO OPTION]...: a process with a file open there, which becomes a
# fio, the same process, when its FIFO says so. WRITER_IN=ns: where its mounts
# have other numbers.
writer()
{
	mkfifo "$BED_DIR/$1.go" && bed_launch "$1" ${WRITER_IN:+unshare -m} bash -c '
		exec 9>"$2/$1.held" && echo ready && read -r _ <"$3/$1.go" &&
			exec fio --name="$1" --directory="$2" --output="$3/$1.json" "${@:4}"' \
		bash "$1" "$2" "$BED_DIR" --output-format=json --thread=1 --ioengine=psync \
		--randseed=4711 --rw=randwrite --bs=4k --fallocate=none --invalidate=0 \
		"${@:3}" && bed_poll 10 test -s "$BED_DIR/$1.out"
}

# behind PID FILTER: of that process's report.
behind()
{
	jq -r --argjson pid "$1" "def writes: .ops[] | select(.op == \"pwrite64\");
		select(.target.pid == \$pid) | $2" "$BED_DIR/behind.out"
}

mkdir "$BED_DIR/elsewhere"
ok 'a process has a file open on the mount' writer one "$BED_DISK_XFS" --direct=1 --size=2m
WRITER_IN=ns ok 'so has another, in a mount namespace of its own' writer two "$BED_DISK_XFS" \
	--direct=1 --size=1m
ok 'a third one has not' writer three "$BED_DIR/elsewhere" --size=1m
ok 'attach to the mount' attach_start behind "$BED_DISK_XFS" --json -d 60
for name in one two three; do
	ok "$name goes to work" timeout 10 bash -c 'echo >"$1"' bash "$BED_DIR/$name.go"
done
for name in one two three; do
	ok "$name has done it" bed_poll 30 bed_gone "$(bed_get "$name" PID)"
done
nok 'the measurement goes on without them' bed_gone "$BED_BEHIND_PID"
attach_end behind
is "$ATTACH_STATUS $ATTACH_ERR" '0 ' 'it ends well'
is "$(jq -sr 'map(.target | [.kind, .pid // 0]) | sort | @json' "$BED_DIR/behind.out")" \
	"$(jq -nc --args '[["xfs", 0]] + ($ARGS.positional | map(["process", tonumber])) | sort' \
		"$BED_ONE_PID" "$BED_TWO_PID")" \
	'the mount and the two are reported'
is "$(jq -r 'select(.target.kind == "xfs") | [.target.processes, .devices[0].name] | @json' \
	"$BED_DIR/behind.out")" "[2,\"$disk\"]" 'the mount says how many these are'
for name in one two; do
	pid=$(bed_get "$name" PID)
	count=$(bed_fio_count "$name" write)
	is "$(behind "$pid" 'writes | [.count, .bytes] | @csv')" "$count,$((count * 4096))" \
		"$name: writes are those of fio"
	is "$(behind "$pid" '[writes.layers[] | select(.id == "xfs") | .count] | add')" "$count" \
		"$name: all of them in XFS"
	# one that is done before its thread goes to sleep for it was not waited for
	between "$(behind "$pid" '[writes.layers[] | select(.id == "block device") | .count] |
		add')" $((count * 9 / 10)) 1e9 "$name: which waited for the device"
	is "$(behind "$pid" '[.target.device, .target.gone, .devices[0].name] | @csv')" \
		"\"$BED_DISK_DEV\",true,\"$disk\"" "$name: its device is the mount's"
done

sleep 60 &
sleeper=$!
ok 'attach to a process' attach_start process "$sleeper" --json -d 60
dd if="$BED_INNER_DEV" of=/dev/null bs=64k count=16 iflag=direct 2>/dev/null
attach_end process
is "$(report process '[.devices[].name] | index("'"$inner"'") != null')" true \
	'whose devices are not known is shown all that did anything'
kill "$sleeper"

"$BRICKTOP" attach "$BED_DISK_DEV" --memory-only -d 0.1 >"$BED_DIR/memory.out" \
	2>"$BED_DIR/memory.err"
is "$?" 77 'without probes there is nothing to report'
like "$(cat "$BED_DIR/memory.out")" 'off +devices: --memory-only' '... and the report says why'

done_testing
