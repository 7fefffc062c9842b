#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 240
# shellcheck disable=SC2153,SC2317 # bed.sh sets BED_<NAME>_*; functions are called through ok
#
# Every request is counted, once, and its time is right: bricktop is attached to the
# brick and to its client before a load begins and until after it has ended. Second
# sources for the very same requests: fio (operations and bytes), the processes' own
# statistics (every operation, failures, each xlator's passages and means), and perf
# (system calls).
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
. tests/lib/load.sh
e2e_begin
e2e_needs perf

SYSCALLS="pread64 pwrite64 fsync fdatasync fgetxattr"
{ bed_brick b1 && bed_client c1 b1; } || bail_out "no set-up"

# judge NAME [OPTION]...: the report against the process's own counts.
judge()
{
	python3 tests/lib/check_counts.py "$BED_DIR/$1".{before,after,json} \
		--volume "$BED_VOLUME" --chain "${@:2}"
}

# fio_total FIELD DIRECTION JOB...: of all those jobs, from fio's own results.
fio_total()
{
	local field=$1 direction=$2 job

	shift 2
	for job in "$@"; do
		sed -n '/^{/,$p' "$BED_DIR/$job.json"
	done | jq -s "[.[].jobs[].$direction.$field] | add"
}

perf_begin()
{
	perf stat -x, -o "$BED_DIR/perf" -p "$BED_B1_PID" \
		-e "syscalls:sys_enter_${SYSCALLS// /,syscalls:sys_enter_}" &
	PERF=$!
	bed_record "pid $PERF $(bed_start_time "$PERF")"
	# its counters run when it waits for them to be read
	bed_poll 10 grep -q . "/proc/$PERF/wchan" && sleep 0.3
}

perf_end() { kill -INT "$PERF"; wait "$PERF"; }

perf_count() { awk -F, -v e="syscalls:sys_enter_$1" '$3 == e { print $1 }' "$BED_DIR/perf"; }

# syscall_rows NAME SYSCALL: calls in all of a report's rows.
syscall_rows()
{
	measure_get "$1" "[.ops[].layers[] | select(.kind == \"syscall\" and .id == \"$2\")
		.count] | add // 0"
}

# own_rows NAME OP CALL: requests whose own times are known, and rows of that call below.
own_rows()
{
	measure_get "$1" "op(\"$2\") | [.covered, (layer(\"$3\") | .count)] | @tsv"
}

# dumped OP CALL: of the dump's records of OP: all, and of those that were seen whole;
# of these, those with exactly one CALL in a frame; of the others, those without any.
dumped()
{
	jq -rs --arg op "$1" --arg call "$2" '[.[] | select(.op == $op and .origin == "user") |
		{ covered, n: [.spans[] | select(.frame >= 0 and .sub == $call)] | length }] |
		[length, ([.[] | select(.covered)] | length),
		([.[] | select(.covered and .n == 1)] | length),
		([.[] | select((.covered | not) and .n == 0)] | length)] | @tsv' \
		"$BED_DIR/requests"
}

begin_both() { measure_begin b1 "$BED_B1_PID" && measure_begin c1 "$BED_C1_PID"; }
end_both() { measure_end c1 && measure_end b1; }

# The memory mode beside it, of the same requests.
memory_begin() { measure_attach e0 "$BED_B1_PID" --memory-only; }

memory_judge()
{
	python3 tests/lib/check_memory.py "$BED_DIR"/{b1.before,b1.after,e0.json} \
		--volume "$BED_VOLUME" "$@"
}

test_data()
{
	local name op call

	ok "files laid out" load_data_prepare "$BED_C1_MNT" data
	ok "attached to brick and client" begin_both || bail_out "cannot attach"
	ok "and to the brick's memory alone" memory_begin || bail_out "cannot attach"
	perf_begin
	ok "fio, 4k and 128k" load_data "$BED_C1_MNT" data
	perf_end
	ok "the report from memory" measure_finish e0
	ok "both reports" end_both
	ok "memory: counts and means are the process's own" memory_judge
	for name in b1 c1; do
		for op in read write; do
			is "$(measure_get "$name" "op(\"$op\").count")" \
				"$(fio_total total_ios "$op" data-4k data-128k)" \
				"$name: ${op}s are fio's to the operation"
			is "$(measure_get "$name" "op(\"$op\").bytes")" \
				"$(fio_total io_bytes "$op" data-4k data-128k)" \
				"$name: and to the byte"
			is "$(measure_get "$name" "op(\"$op\").coverage_pct")" 100 \
				"$name: $op coverage"
			is "$(measure_get "$name" "op(\"$op\").sum_check_pct")" 100 \
				"$name: $op sum check"
		done
		is "$(measure_get "$name" '.lost | .total - .wakes')" 0 "$name: nothing lost"
		is "$(measure_get "$name" '.cost | [.duty_pct, .budget_pct] | @tsv')" $'100\t' \
			"$name: all layers on all the time, and no budget"
		ok "$name: all counts, passages and means are the process's own" \
			judge "$name" --expect fsync
	done
	for call in $SYSCALLS; do
		is "$(syscall_rows b1 "$call")" "$(perf_count "$call")" \
			"$call: perf counts the same"
	done
	is "$(measure_get b1 'op("write") | layer("pwrite64").count')" \
		"$(measure_get b1 'op("write").count')" "each write makes one pwrite64"
}

test_meta()
{
	local name

	ok "attached again" begin_both
	ok "and to the brick's memory alone" memory_begin
	ok "names, attributes, failures" load_meta "$BED_C1_MNT"
	ok "the report from memory" measure_finish e0
	ok "both reports again" end_both
	ok "memory: counts, failures and means are the process's own" memory_judge \
		--min-failed 12
	for name in b1 c1; do
		ok "$name: every operation as the process counts it" judge "$name" \
			--expect create --expect unlink --expect rename --expect link \
			--expect setxattr --expect getxattr --expect removexattr \
			--expect mkdir --expect rmdir --expect symlink --expect lookup
		between "$(measure_get "$name" '[op("lookup").errors] | add')" 12 1000 \
			"$name: lookups that fail are errors"
		is "$(measure_get "$name" \
			'[.ops[].in_flight // 0 | select(. < 0 or . > 64)] | length')" \
			0 "$name: requests in flight are a sane number"
		is "$(measure_get "$name" '.oldest')" null "$name: none is left in flight"
	done
}

# Layers take turns off, and what is shown is of the requests that they saw whole.
test_budget()
{
	local op call covered rows all whole right blind

	BRICKTOP_BUDGET=turns measure_begin b1 "$BED_B1_PID" --budget 50 \
		--slow 0 --dump-requests 4000="$BED_DIR/requests" || bail_out "cannot attach"
	ok "a load of some seconds" bed_fio "$BED_C1_MNT" data-4k --rw=randrw --numjobs=2 \
		--size=2m --fsync=64 --time_based --runtime=6
	ok "a report of layers that take turns off" measure_end b1
	is "$(measure_get b1 .cost.budget_pct)" 50 "the budget is in the report"
	between "$(measure_get b1 '.cost.duty_pct | round')" 20 80 "layers were on half of the time"
	for op in read:pread64 write:pwrite64; do
		call=${op#*:} op=${op%:*}
		is "$(measure_get b1 "op(\"$op\").count")" "$(fio_total total_ios "$op" data-4k)" \
			"${op}s are fio's to the operation"
		is "$(measure_get b1 "op(\"$op\").coverage_pct")" 100 "$op: coverage"
		is "$(measure_get b1 "op(\"$op\").sum_check_pct")" 100 "$op: sum check"
		is "$(measure_get b1 "op(\"$op\") | layer(\"server\").count - .count")" 0 \
			"$op: every passage is there"
		read -r covered rows < <(own_rows b1 "$op" "$call")
		between "$covered" 10 "$(($(measure_get b1 "op(\"$op\").count") - 10))" \
			"$op: some were seen whole, some not"
		is "$rows" "$covered" "$op: each of those has its $call, no other has"
		between "$(measure_get b1 "[op(\"$op\") | (.layers[].share_pct)] | add * 10 |
			round")" 995 1005 "$op: own times add up to the time of those"
		read -r all whole right blind < <(dumped "$op" "$call")
		is "$whole" "$right" "dump: $op: seen whole means one $call, of $all"
		between "$blind" 1 "$all" "dump: $op: of others some have none"
	done
	is "$(measure_get b1 '.lost | .total - .wakes - .skipped')" 0 "nothing else was lost"
	is "$(measure_get b1 .lost.skipped)" "$(measure_get b1 '[.ops[] |
		select(.source == "walk") | .count - .covered] | add')" \
		"all that were not seen whole are counted"
	is "$(measure_get b1 '[.slow[] | select(.covered == false) | .layers | length > 0] |
		any')" true "slow: some were not seen whole, and say so"
	ok "each dumped request adds up" python3 tests/lib/check_dump.py "$BED_DIR/requests"
	ok "all counts, passages and means are the process's own" judge b1 --expect fsync \
		--allow-lost total --allow-lost skipped
}

# turned NAME FIO_JOB: of a report whose walk took turns: a part of all requests, said as such.
turned()
{
	local name=$1 job=$2 op count total

	between "$(measure_get "$name" '.cost.walk_duty_pct | round')" 5 90 \
		"$name: the walk was off for a time"
	for op in read write; do
		count=$(measure_get "$name" "op(\"$op\").count")
		total=$(fio_total total_ios "$op" "$job")
		between "$count" 1 $((total - 1)) "$name: a part of fio's $total ${op}s is walked"
		between "$(measure_get "$name" "op(\"$op\").coverage_pct * $total / $count |
			round")" 99 101 "$name: $op: coverage says which part"
		is "$(measure_get "$name" "op(\"$op\").sum_check_pct")" 100 \
			"$name: $op: sum check"
		between "$(measure_get "$name" "op(\"$op\").rate_hz * .window.secs / $total * 100 |
			round")" 50 160 "$name: $op: the rate is that of all"
	done
	is "$(measure_get "$name" '[.ops[] | select(.root == "local") | select(.op == "pread64" or
		.op == "pwrite64")] | length')" 0 \
		"$name: what was not walked is not taken for the process's own"
	is "$(measure_get "$name" '[.off[].what | select(. == "call stacks" or
		. == "callbacks")] | length')" 0 "$name: and nobody searches for it"
	is "$(measure_get "$name" '.lost | .total - .wakes - .skipped')" 0 \
		"$name: nothing else was lost"
}

# Layers first, then the walk: all are in turn off and on again.
test_walk_turns()
{
	local op whole right

	BRICKTOP_BUDGET=walk-turns measure_begin b1 "$BED_B1_PID" --budget 50 \
		--dump-requests 4000="$BED_DIR/requests" || bail_out "cannot attach"
	ok "a load of some seconds" bed_fio "$BED_C1_MNT" data-4k --rw=randrw --numjobs=2 \
		--size=2m --fsync=64 --time_based --runtime=6
	ok "a report of a walk that takes turns" measure_end b1
	turned b1 data-4k
	for op in read:pread64 write:pwrite64; do
		read -r _ whole right _ < <(dumped "${op%:*}" "${op#*:}")
		is "$whole" "$right" "dump: ${op%:*}: seen whole means one ${op#*:}"
	done
	ok "each dumped request adds up" python3 tests/lib/check_dump.py "$BED_DIR/requests"
}

# A budget that not even the walk's probes keep to.
test_short()
{
	measure_attach short "$BED_B1_PID" --budget 0.1 || bail_out "cannot attach"
	ok "a load" bed_fio "$BED_C1_MNT" data-4k --rw=randrw --numjobs=2 --size=2m \
		--time_based --runtime=5
	ok "a report beyond its budget" measure_finish short
	between "$(measure_get short '.cost.duty_pct | round')" 0 70 "the layers went off"
	turned short data-4k
	like "$(measure_get short '.off[] | select(.what == "budget").reason')" \
		'the probes alone, while nothing is walked, take .* more than 0.1 %' \
		"it is said why"
}

test_data
test_meta
test_budget
test_walk_turns
test_short
done_testing
