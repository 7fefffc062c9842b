#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2317 # functions are called through others
#
# kernel_guest.sh CELLS: what tests/matrix/kernels.sh runs in each guest: all programs
# load, asynchronous operations of a plain process are counted, a brick's report comes
# out by either kind of uprobe, its programs fire, and doctor's layers are the report's.
# Speaks TAP; what was found goes to CELLS, a line "row<TAB>value" each. No time is
# judged: nothing here is as fast as a machine.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/bed.sh
. tests/lib/measure.sh
. tests/lib/attach.sh
. tests/lib/below.sh

cells=$1
: >"$cells"
modprobe -a xfs fuse loop 2>/dev/null
BED_TIMEOUT_SECS=120
MEASURE_SECS=600

# cell ROW VALUE
cell() { printf '%s\t%s\n' "$1" "${2:--}" >>"$cells"; }

# said after each step, for who wonders where a run's minutes went
spent() { note "$SECONDS s: $1"; }

# words: the lines of stdin on one line.
words() { paste -sd ' ' -; }

# ---- doctor, and the programs ------------------------------------------------------

doctor() { jq -r "$1" "$BED_DIR/doctor"; }

test_doctor()
{
	local section

	"$BRICKTOP" doctor --json >"$BED_DIR/doctor"
	is $? 0 'doctor: all layers work' || diag "$("$BRICKTOP" doctor 2>&1 | head -n 40)"
	is "$(doctor .kernel)" "$(uname -r)" 'doctor: of this kernel'
	cell 'kernel' "$(uname -r)"
	for section in programs features; do
		cell "doctor: $section that do not work" \
			"$(doctor ".${section}[] | select(.state != \"works\") | .id" |
				sed 's/ /-/g' | words | grep . || echo none)"
	done
	cell 'doctor: hooks that this kernel lacks' \
		"$(doctor '.hooks[] | select(.state != "works") | .id' | sort -u | words |
			grep . || echo none)"
}

test_programs()
{
	local out n

	out=$("$BRICKTOP_BUILD/tests/unit/test_load" 2>&1)
	is $? 0 'all programs load' || diag "$(grep -A2 '^not ok' <<<"$out")"
	n=$(sed -n 's/^# loaded \(.*\) programs$/\1/p' <<<"$out")
	like "$n" '^[1-9][0-9]* of [1-9]' 'and are counted'
	cell 'programs that load' "$n"
	cell 'programs that do not: a variant for other kernels' \
		"$(sed -n 's/^# not loaded: \([^ ]*\) .*/\1/p' <<<"$out" | words |
			grep . || echo none)"
}

# fired: our loaded programs, as "name hits"; seen NAME: and keep them for the end.
fired()
{
	bpftool prog show --json | jq -r --arg names "$ours" '.[] |
		select(.name as $n | $names | split(" ") | index($n)) | "\(.name) \(.run_cnt // 0)"'
}

seen() { fired >"$BED_DIR/fired.$1"; }

# The kernel keeps 15 characters of a name.
own_programs()
{
	sed -n 's/^int BPF_PROG(\([a-z_0-9]*\).*/\1/p; s/^int \([a-z_0-9]*\)(.*ctx)$/\1/p' \
		bpf/*.bpf.c | cut -c 1-15 | sort -u | words
}

# What was attached in some step has fired in some step. What ends a session runs when its
# count cannot be read any more, and a CIL that is full is not to be had as slow as this is.
test_fired()
{
	local quiet

	quiet=$(cat "$BED_DIR"/fired.* | awk '{ n[$1] += $2 } END { for (p in n)
		if (n[p] == 0) print p }' | grep -vxE 'on_(flush|cil_wait)' | sort | words)
	is "$quiet" '' 'each program that was attached has fired'
	cell 'attached, and never fired' "${quiet:-none}"
}

# ---- what calls wait for, and devices ------------------------------------------------

# waits ROW NAME MODE ARGUMENT...: that load, with bricktop attached to it, has that row.
waits()
{
	local row=$1

	shift
	ok "$1: a load, and a report" below_run "$@"
	between "$(below_sum "$1" "$row" calls)" 1 1e9 "$1: '$row' is seen"
	cell "$row, times" "$(below_sum "$1" "$row" calls)"
	spent "$1"
}

test_waits()
{
	if ! below_mount small 299m --unsupported -m reflink=0,rmapbt=0 -l size=900b ||
		! below_mount middle 400m; then
		fail 'waits: two XFS'
		return
	fi
	waits 'xfs log grant' log create "$BED_SMALL_MNT" 8 150 0
	dd if=/dev/zero of="$BED_MIDDLE_MNT/sync" bs=1M count=2 conv=fsync 2>/dev/null
	waits 'writeback wait' sync behind "$BED_MIDDLE_MNT/sync" 1 4 1048576
	ok 'few dirty pages' below_dirty dirty $((1 << 20))
	waits throttle dirty dirty "$BED_MIDDLE_MNT/dirty" 1 64 131072
	waits 'throttle in a page fault' fault map "$BED_MIDDLE_MNT/map" 1 2048 4096
	bed_unwrite /proc/sys/vm/dirty_bytes
}

# A device of the device mapper takes bios, and lies on another one.
test_mapped()
{
	local dev mapped name=bricktop-$$

	modprobe dm-mod
	truncate -s 16M "$BED_DIR/below.img"
	dev=$(losetup -f --show "$BED_DIR/below.img")
	if ! dmsetup create "$name" --table "0 32768 linear $dev 0"; then
		fail 'mapped: a device'
		return
	fi
	# nobody makes /dev/mapper/NAME here
	mapped=$(dmsetup info -c --noheadings -o blkdevname "$name")
	ok 'mapped: attached' attach_start mapped "$mapped" --json
	ok 'mapped: writes' dd if=/dev/zero of="/dev/$mapped" bs=64k count=10 oflag=direct
	ok 'mapped: reads' dd if="/dev/$mapped" of=/dev/null bs=4k count=20 iflag=direct
	seen mapped
	attach_end mapped
	is "$(jq -c '.devices[0] | [.by, .stack[0]]' "$BED_DIR/mapped.out")" \
		"[\"bios\",\"$(basename "$dev")\"]" \
		'mapped: it is counted by bios, and what is below it named'
	is "$(jq -c '.devices[0].ops | map(select(.op == "read" or .op == "write") |
		[.op, .count, .bytes]) | sort' "$BED_DIR/mapped.out")" \
		'[["read",20,81920],["write",10,655360]]' 'mapped: reads and writes are those of dd'
	cell "reads and writes counted, of dd's, device mapper" "$(jq -r '.devices[0].ops |
		map(select(.op == "read" or .op == "write") | .count) | add' \
		"$BED_DIR/mapped.out") of 30"
	dmsetup remove "$name"
	losetup -d "$dev"
	spent 'mapped'
}

# ---- asynchronous operations -------------------------------------------------------

# A brick makes such where it is told to; fio's own are easier to count.
test_async()
{
	local layer op

	BELOW_LOOK=(-d "$MEASURE_SECS")
	if ! below_mount x 300m ||
		! dd if=/dev/zero of="$BED_X_MNT/file" bs=1M count=4 conv=fsync 2>/dev/null; then
		fail 'async: a file on an XFS'
		return
	fi
	ok 'async: a report of libaio and io_uring' below_async async "$BED_X_MNT/file" \
		--size=4m --io_size=1m --bs=4k --rw=randrw --direct=1 --iodepth=4 --fsync=32
	for layer in aio io_uring; do
		below_async_counted async "$layer"
		for op in read write; do
			cell "${op}s counted, of fio's, $layer" \
				"$(below_sum async "$layer $op" count "$layer $op") of $(
					below_fio_job async "$layer" ".$op.total_ios")"
		done
	done
	is "$(jq .lost.total "$BED_DIR/async.json")" 0 'async: nothing is lost'
}

# ---- a brick ------------------------------------------------------------------------

# Work for every layer: writes that are throttled, reads from the device, fsyncs.
work()
{
	local mnt

	mnt=$(bed_get c1 MNT)
	sync
	echo 3 >/proc/sys/vm/drop_caches
	bed_fio "$mnt" load --size=1m --numjobs=2 --rw=randrw --fsync=8 || return 1
	echo $((256 << 10)) >/proc/sys/vm/dirty_bytes
	bed_fio "$mnt" dirty --size=4m --bs=128k --rw=write
	echo 0 >/proc/sys/vm/dirty_bytes
	echo 20 >/proc/sys/vm/dirty_ratio
}

# samples KIND TITLE: passages of the layer's rows, in all operations.
samples()
{
	[ "$1" != aio ] || { below_sum async "$2 read" count; return; }
	jq --arg kind "$1" --arg id "$2" '[.ops[].layers[] |
		select(.kind == $kind or .id == $id) | .count] | add // 0' "$BED_DIR/$kind.json"
}

check_layers()
{
	local title of off silent=

	while read -r title of; do
		[ "$of" != host ] || continue
		[ "$(samples "$of" "$title")" -gt 0 ] || silent+=" $title"
	done < <(sed -n 's/^LAYER(//p' user/layers.def | tr -d '" )' | awk -F, '{ print $3, $4 }')
	silent=${silent# }
	cell "layers without samples, $kind" "${silent:-none}"
	# dirty pages are throttled, and writeback waited for, only where the disk is slow
	is "$(sed -E 's/\b(throttle|writeback)\b//g; s/^ *//; s/ *$//' <<<"$silent")" '' \
		"$kind: no layer is silent"
	# below a walk that is off the report does not list the rows one by one
	off=$(doctor '.layers[] | select(.state == "off") | .id')
	[[ $off != *walk* ]] || off=walk
	is "$(measure_get "$kind" '.off[].what' | grep -xF "$(doctor '.layers[].id')" | words)" \
		"$(words <<<"$off")" "$kind: what is off in the report is what doctor calls off"
	cell "layers of doctor that are in the report, $kind" \
		"$(doctor '[.layers[] | select(.state == "works")] | length') of $(
			doctor '.layers | length')"
}

check_counts()
{
	local op n

	for op in read write; do
		n=$(bed_fio_count load "$op")
		[ "$op" = read ] || n=$((n + $(bed_fio_count dirty write)))
		is "$(measure_get "$kind" "op(\"$op\") | .count")" "$n" "$kind: all ${op}s count"
		is "$(measure_get "$kind" "op(\"$op\") | .coverage_pct")" 100 \
			"$kind: ${op}s are covered"
		between "$(measure_get "$kind" "op(\"$op\") | .sum_check_pct")" 90 100 \
			"$kind: ${op}s add up"
		cell "${op}s counted, of fio's, $kind" \
			"$(measure_get "$kind" "op(\"$op\") | .count") of $n"
		cell "sum check % of ${op}s, $kind" \
			"$(measure_get "$kind" "op(\"$op\") | .sum_check_pct")"
	done
	cell "lost, $kind" "$(measure_get "$kind" .lost.total)"
}

# tails KIND: where frames are shared, their entries are probed.
tails()
{
	ok "$1: attached for tails" measure_attach "tails-$1" "$(bed_get b1 PID)" --split-tails ||
		return
	# which frames are shared is known when some were seen
	for _ in 1 2; do
		bed_fio "$(bed_get c1 MNT)" load --size=1m --numjobs=2 --rw=randrw --io_size=64k
		sleep 3
	done
	seen "tails-$1"
	ok "$1: a report with tails comes out" measure_finish "tails-$1"
	spent "$1: tails"
}

# report KIND: by uprobes of that kind.
report()
{
	local kind=$1 quiet

	[ "$kind" = multi ] || export BRICKTOP_UPROBE=perf
	measure_attach "$kind" "$(bed_get b1 PID)" || { fail "$kind: attach"; return; }
	spent "$kind: attached"
	ok "$kind: the load runs" work
	spent "$kind: load"
	seen "$kind"
	ok "$kind: a report comes out" measure_finish "$kind"
	cell "uprobes, asked for $kind" "$(measure_get "$kind" .probes.kind)"
	spent "$kind: report"
	check_counts
	check_layers
	quiet=$(awk '$2 == 0 { print $1 }' "$BED_DIR/fired.$kind" | sort -u | words)
	cell "programs that fired, $kind" "$(awk '$2 > 0 { n++ } END { print n + 0 }' \
		"$BED_DIR/fired.$kind") of $(wc -l <"$BED_DIR/fired.$kind")"
	cell "attached and had nothing to do, $kind" "${quiet:-none}"
	tails "$kind"
}

bed_init || bail_out 'no bed'
ours=$(own_programs)
BELOW_DONE=seen
echo 1 >/proc/sys/kernel/bpf_stats_enabled # all runs, not some as bricktop does
test_doctor
spent 'doctor'
test_programs
spent 'programs'
test_async
spent 'async'
test_waits
test_mapped
if bed_brick b1 && bed_client c1 b1 &&
	bed_fio_prepare "$(bed_get c1 MNT)" load --size=1m --numjobs=2 --bs=128k; then
	pass 'a brick and a client run'
	spent 'brick'
	report multi
	report perf
else
	fail 'a brick and a client run'
fi
test_fired
done_testing
