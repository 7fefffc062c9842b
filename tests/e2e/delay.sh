#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 240
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
#
# And the few that are held among many are those that --slow shows, whole. Here six of
# six thousand or so; DELAY_CASES=slow SLOW_REQUESTS=100000 SLOW_DELAYED=20 does more.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
e2e_begin
: "${DELAY_CASES:=delay gen slow passed local refused}"
: "${SLOW_REQUESTS:=6000}" "${SLOW_DELAYED:=6}" "${SLOW_DELAY_MS:=150}" "${SLOW_LIMIT_MS:=100}"
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

# ---- slow operations --------------------------------------------------------

late_brick()
{
	bed_brick slow --async --at iot "hold delay ops writev hold-file $BED_DIR/hold" \
		--at posix "late delay delay-us ${SLOW_DELAY_MS}000 ops readv,writev \
			delay-every $((SLOW_REQUESTS / SLOW_DELAYED)) \
			counter-file $BED_DIR/late log-file $BED_DIR/late.log"
}

late_load()
{
	bed_fio "$(bed_get c-slow MNT)" load-slow --size=1m --numjobs=2 --rw=randrw --direct=0 \
		--io_size=$((SLOW_REQUESTS * 2))k
}

# late_renamed: the load's two files get names that would do harm on a terminal; back: again.
late_renamed()
{
	local mnt i ugly=$'\e[31m\xff'

	mnt=$(bed_get c-slow MNT)
	for i in 0 1; do
		case ${1-} in
		'') mv "$mnt/load-slow.$i.0" "$mnt/late$i $ugly" || return 1 ;;
		back) mv "$mnt/late$i $ugly" "$mnt/load-slow.$i.0" || return 1 ;;
		esac
	done
}

# What the trees of reads and writes say of their file and application.
late_names()
{
	is "$(jq -c '[.slow[] | select(.root == "brick" and .origin == "user" and
		(.op == "read" or .op == "write")) | (.file.path | sub("^/late[01] "; "")) +
		" \(.application.comm) \(.application.uid) \(.covered)"] | unique' \
		"$BED_DIR/late-json.json")" '["?[31m? fio 0 true"]' \
		"slow: the files by their new names, harmless, and the application"
	is "$(jq '[.slow[].application.client | select(.)] | unique | length' \
		"$BED_DIR/late-json.json")" 1 "slow: and its client"
	like "$(cat "$BED_DIR/late-text.out")" \
		'/late[01] \?\[31m\?[[:space:]]+inode [0-9]+[[:space:]]+for pid [0-9]+ \(fio\)' \
		"slow: so says the text"
	is "$(tr -dc '\033\377' <"$BED_DIR/late-text.out" | wc -c)" 0 "slow: nothing harmful in it"
}

late_count()
{
	echo $(($(bed_delay_count "$BED_DIR/late" read delayed) +
		$(bed_delay_count "$BED_DIR/late" write delayed)))
}

# Those that were delayed, in both forms of the report.
test_late()
{
	local pid before count

	pid=$(bed_get slow PID)
	before=$(late_count) || return 1
	: >"$BED_DIR/late.log"
	attach_start late-text "$pid" --slow "${SLOW_LIMIT_MS}ms" -d 300 || return 1
	measure_attach late-json "$pid" --slow "${SLOW_LIMIT_MS}ms" || return 1
	ok "slow: $SLOW_REQUESTS requests, some of them delayed" late_load || return 1
	ok "slow: its files have other names now" late_renamed || return 1
	ok "slow: measured" measure_finish late-json || return 1
	attach_end late-text
	late_renamed back || return 1
	late_names
	count=$(($(late_count) - before))
	between "$count" 2 20 "slow: there were delays"
	ok "slow: those that were delayed are those shown, by the layer that did it" \
		tests/lib/check_slow.py "$BED_DIR/late-json.json" "$BED_DIR/late.log" \
		--layer access-control+late --limit-us "${SLOW_LIMIT_MS}000" \
		--delay-us "${SLOW_DELAY_MS}000" --count "$count" && note "$TAP_OUTPUT"
	is "$ATTACH_STATUS $(grep -c 'access-control+late   <-- most of the time' \
		"$BED_DIR/late-text.out")" "0 $count" "slow: so says the text"
	like "$(cat "$BED_DIR/late-text.out")" 'slow +[0-9]+ slower than '"$SLOW_LIMIT_MS"ms \
		"slow: and how many there are"
}

rss() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$1/status"; }

# Everything is slow, and memory is bounded all the same; beside it, limits by share.
test_all_slow()
{
	local pid before after

	pid=$(bed_get slow PID)
	measure_attach all-slow "$pid" --slow 0 || return 1
	measure_attach share "$pid" --slow p90 || return 1
	before=$(rss "$(bed_get all-slow MEASURER)")
	late_load || return 1
	sleep 1.1 # a tick
	late_load || return 1
	after=$(rss "$(bed_get all-slow MEASURER)")
	note "RSS with 20 shown of $((2 * SLOW_REQUESTS)) and more: $before kB, then $after kB"
	between $((after - before)) -1e6 2048 "slow 0: no more memory than before the load"
	ok "slow 0: measured" measure_finish all-slow || return 1
	ok "slow p90: measured" measure_finish share || return 1
	is "$(jq '[.slow_limits.ops[] | .ended - .slow] | unique | map(. == 0) | all' \
		"$BED_DIR/all-slow.json")" true "slow 0: all are slow"
	is "$(measure_get all-slow '[.slow[] | select(.root == "brick" and .origin == "user")] |
		length')" 20 "slow 0: the slowest are shown"
	is "$(measure_get all-slow '[.slow[] | select(.root == "brick" and .origin == "user") |
		.incl_us] | . == (sort | reverse)')" true "slow 0: slowest first"
	is "$(measure_get all-slow '.slow[0].incl_us == ([.ops[] | select(.root == "brick" and
		.origin == "user") | .incl_us.max] | max)')" true "slow 0: the first is the maximum"
	is "$(measure_get share '[.slow_limits.ops[] | select(.op == "write") |
		.slow > 0 and .slow < .ended and .limit_us > 0] | all')" true \
		"slow p90: some writes are slower than the limit found for them"
	is "$(measure_get share '[.slow[] | .limit_us > 0 and .incl_us >= .limit_us] | all')" \
		true "slow p90: what is shown is slower than its limit"
	is "$(measure_get share '[.slow_limits.ops[] | select(.ended < 100) | .limit_us] |
		unique - [null] | length')" 0 "slow p90: of a few nobody can say"
}

test_slow()
{
	late_brick || return 1
	ok "slow: more threads than requests" warm slow || return 1
	test_late || return 1
	[ "$SLOW_REQUESTS" -gt 10000 ] || test_all_slow || return 1
	bed_stop slow
}

# The walk in turns, of half a second each: layers are on for one, the walk for that and the
# next, and nothing for two. Each write has its reply 2.3 turns after its pwrite64: one that was
# seen is of a request that no walk met, and nobody's. The load goes on for some 20 turns, from a
# job's write to its next at another place among the four.
test_passed()
{
	local before

	bed_brick passed --async --at posix "late delay delay-us 1150000 ops writev delay-reply 1 \
		counter-file $BED_DIR/passed" || return 1
	bed_client c-passed --direct-io passed || return 1
	bed_fio "$BED_C_PASSED_MNT" passed-warm --size=4k --rw=write --direct=0 || return 1
	before=$(bed_delay_count "$BED_DIR/passed" write delayed) || return 1
	BRICKTOP_BUDGET=walk-turns measure_attach passed "$BED_PASSED_PID" --budget 50 || return 1
	ok "passed: writes whose replies are late" bed_fio "$BED_C_PASSED_MNT" passed --size=64k \
		--numjobs=8 --startdelay=0-1200ms --rw=randwrite --direct=0 --time_based \
		--runtime=11 || return 1
	ok "passed: measured" measure_finish passed || return 1
	between "$(($(bed_delay_count "$BED_DIR/passed" write delayed) - before))" 20 400 \
		"passed: so many of them"
	between "$(measure_get passed '.cost.walk_duty_pct | round')" 20 80 \
		"passed: the walk was off for a time"
	is "$(measure_get passed '[.ops[] | select(.root == "local") | select(.op == "pwrite64" or
		.op == "pread64") | .count] | add')" null \
		"passed: none of their calls is the process's own"
	bed_stop passed
}

# A process's own calls: three of them wait for who opens the other end of a fifo.
test_local()
{
	local i pid

	mkfifo "$BED_DIR/fifo" || return 1
	python3 - "$BED_DIR/fifo" "$BED_DIR/go" <<-'PY' &
	import os, sys, time
	while not os.path.exists(sys.argv[2]):
	    time.sleep(0.05)
	for _ in range(3):
	    os.close(os.open(sys.argv[1], os.O_RDONLY))
	    time.sleep(0.1)
	PY
	pid=$!
	attach_start local "$pid" --json --slow 200ms -d 60 || return 1
	: >"$BED_DIR/go"
	for ((i = 0; i < 3; i++)); do
		sleep 0.4
		: >"$BED_DIR/fifo"
	done
	attach_wait local
	is "$ATTACH_STATUS" 0 "local: the process has ended, and that is well"
	is "$(jq -c "[.slow[] | [.root, .op, .thread.tid, .incl_us >= 250000, (.layers |
		length), .layers[0].self_us == .incl_us]] | unique" "$BED_DIR/local.out")" \
		"[[\"local\",\"openat\",$pid,true,1,true]]" "local: slow calls are shown"
	is "$(jq -c '[.slow_limits.slow, .slow_limits.shown]' "$BED_DIR/local.out")" '[3,3]' \
		"local: all three of them"
}

refuses()
{
	local target=$1

	shift
	"$BRICKTOP" attach "$target" -d 1 "$@" >"$BED_DIR/refused.out" 2>"$BED_DIR/refused.err"
	is "$?" 1 "refused: $* of $target"
	like "$(cat "$BED_DIR/refused.err")" "^bricktop: $1 needs a brick or a client[^"$'\n'"]*$" \
		"in one line that says why"
	is "$(cat "$BED_DIR/refused.out")" "" "and before anything was measured"
}

# Where there are no requests, none can be kept whole.
test_refused()
{
	bed_xfs refused || return 1
	refuses "$(bed_get refused XFS)" --slow 1ms
	refuses "$(bed_get refused XFS)" --dump-requests "1=$BED_DIR/none"
	refuses "$(bed_get refused DEV)" --slow p99
	refuses $$ --dump-requests "1=$BED_DIR/none"
	nok "no file is made" test -e "$BED_DIR/none"
}

for case in $DELAY_CASES; do
	case $case in
	delay) test_kind delay || fail "our own translator" ;;
	gen) test_kind gen || fail "debug/delay-gen" ;;
	slow) test_slow || fail "slow operations" ;;
	passed) test_passed || fail "requests that no walk met" ;;
	local) test_local || fail "a process's own" ;;
	refused) test_refused || fail "refusals" ;;
	esac
done
done_testing
