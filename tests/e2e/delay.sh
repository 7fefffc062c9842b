#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 180
# shellcheck disable=SC2153,SC2317 # bed.sh sets BED_<NAME>_*; functions are called through ok
#
# Ground truth: an xlator that is known to delay carries the delay, all of it and alone.
# Writes are held 5 ms and every other read 2 ms, at two heights below io-threads:
# once writes high and reads low, once the other way round; by our own translator,
# which has a frame of its own, and by debug/delay-gen, which winds by tail and is
# shown as a group with what it shares a frame with. A third brick of the same graph
# without delays runs the same load at the same time, so that the machine's noise is
# in both. How many were delayed is counted by the translator, or by a library
# preloaded to delay-gen's process.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
e2e_begin
bed_xlators || skip_all "test xlators cannot be built here"

# spec KIND BRICK NAME none|write|read: an xlator of a volfile.
spec()
{
	local kind=$1 brick=$2 name=$3

	case $kind-$4 in
	delay-none) echo "$name delay" ;;
	delay-write) echo "$name delay delay-us 5000 ops writev counter-file $BED_DIR/$brick-$4" ;;
	delay-read) echo "$name delay delay-us 2000 delay-percent 50 ops readv counter-file" \
		"$BED_DIR/$brick-$4" ;;
	gen-none) echo "$name debug/delay-gen delay-percentage 0" ;;
	gen-write) echo "$name debug/delay-gen delay-percentage 100 delay-duration 5000" \
		"enable WRITE" ;;
	gen-read) echo "$name debug/delay-gen delay-percentage 50 delay-duration 2000" \
		"enable READ" ;;
	esac
}

# brick_of KIND NAME HIGH LOW: with one more xlator that can hold writes.
brick_of()
{
	local kind=$1 name=$2

	SLEEP_COUNTER=$BED_DIR/$name-sleeps \
		LD_PRELOAD=$BED_XLATORS/count-sleeps.so bed_brick "$name" --async \
		--at iot "$(spec "$kind" "$name" high "$3")" \
		--at iot "hold delay ops writev hold-file $BED_DIR/hold" \
		--at posix "$(spec "$kind" "$name" low "$4")"
}

threads_of() { grep -l iotwr "/proc/$1/task/"*/comm | wc -l; }

enough_threads() { [ "$(threads_of "$(bed_get "$1" PID)")" -ge 6 ]; }

# The threads of io-threads come by need, which writes that are held make: no request
# of the load must wait for a thread, in none of the bricks.
warm()
{
	local mnt burst status

	# through FUSE's direct I/O each request is one of the brick's, in its page cache
	bed_client "c-$1" --direct-io "$1" || return 1
	mnt=$(bed_get "c-$1" MNT)
	bed_fio_prepare "$mnt" "load-$1" --size=1m --bs=128k --numjobs=2 --direct=0 || return 1
	: >"$BED_DIR/hold"
	bed_fio "$mnt" "warm-$1" --size=4k --numjobs=16 --rw=randwrite --direct=0 &
	burst=$!
	bed_poll 10 enough_threads "$1"
	status=$?
	rm "$BED_DIR/hold"
	wait "$burst" && return "$status"
}

# counted BRICK KIND read|write: delayed so far, by the witness.
counted()
{
	local ms=5

	case $2 in
	delay) bed_delay_count "$BED_DIR/$1-$3" "$3" delayed ;;
	gen)
		[ "$3" = write ] || ms=2
		od -An -t u8 -j $((8 * ms)) -N 8 "$BED_DIR/$1-sleeps" | tr -d ' '
		;;
	esac
}

load()
{
	bed_fio "$(bed_get "c-$1" MNT)" "load-$1" --size=1m --numjobs=2 --rw=randrw \
		--rate_iops=80,80 --direct=0
}

# run KIND: the three bricks under load, side by side, each in a report of its own.
run()
{
	local kind=$1 brick op load loads=()

	for brick in base a b; do
		measure_begin "$kind-$brick" "$(bed_get "$kind$brick" PID)" \
			--dump-requests "100000=$BED_DIR/$kind-$brick.dump" || return 1
	done
	for brick in a b; do
		for op in read write; do
			before[$brick-$op]=$(counted "$kind$brick" "$kind" "$op") || return 1
		done
	done
	for brick in base a b; do
		load "$kind$brick" &
		loads+=($!)
	done
	for load in "${loads[@]}"; do
		wait "$load" || return 1
	done
	for brick in base a b; do
		measure_end "$kind-$brick" || return 1
	done
}

# judge KIND BRICK OP DELAY_US FRAME ROW: FRAME as dumps name it, ROW as reports do.
judge()
{
	local kind=$1 brick=$2 op=$3 delay=$4 count rows what

	what="$kind, $op by $6"
	count=$(($(counted "$kind$brick" "$kind" "$op") - before[$brick-$op]))
	# fio draws reads and writes alike, 512 in all
	between "$count" 80 350 "$what: there were delays"
	ok "$what: it has them all, and nobody else" tests/lib/check_delay.py \
		"$BED_DIR/$kind-base.dump" "$BED_DIR/$kind-$brick.dump" --op "$op" \
		--xlator "$5" --delay-us "$delay" --count "$count" && note "$TAP_OUTPUT"
	rows=$(measure_get "$kind-$brick" "op(\"$op\") | [.layers[] |
		select(.self_us.p90 > $delay / 2) | .id] | join(\" \")")
	is "$rows" "$6" "$what: so says the report"
	between "$(measure_get "$kind-$brick" "op(\"$op\") | layer(\"$6\") | .self_us.max")" \
		"$delay" 1e9 "$what: its maximum"
}

test_kind()
{
	local kind=$1 brick
	declare -A before

	for brick in "base none none" "a write read" "b read write"; do
		# shellcheck disable=SC2086
		brick_of "$kind" $kind$brick || return 1
		ok "$kind, ${brick%% *}: more threads than requests" warm "$kind${brick%% *}"
	done
	ok "$kind: measured" run "$kind" || return 1
	if [ "$kind" = delay ]; then
		judge delay a write 5000 high high
		judge delay a read 2000 low access-control+low
		judge delay b read 2000 high high
		judge delay b write 5000 low access-control+low
	else
		judge gen a write 5000 upcall high+upcall
		judge gen a read 2000 posix access-control+low+posix
		judge gen b read 2000 upcall high+upcall
		judge gen b write 5000 posix access-control+low+posix
	fi
	for brick in base a b; do
		bed_stop "$kind$brick"
	done
}

test_kind delay || fail "our own translator"
test_kind gen || fail "debug/delay-gen"
done_testing
