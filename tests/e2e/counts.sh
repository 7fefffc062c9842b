#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 180
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

begin_both() { measure_begin b1 "$BED_B1_PID" && measure_begin c1 "$BED_C1_PID"; }
end_both() { measure_end c1 && measure_end b1; }

test_data()
{
	local name op call

	ok "files laid out" load_data_prepare "$BED_C1_MNT" data
	ok "attached to brick and client" begin_both || bail_out "cannot attach"
	perf_begin
	ok "fio, 4k and 128k" load_data "$BED_C1_MNT" data
	perf_end
	ok "both reports" end_both
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
		is "$(measure_get "$name" .lost.total)" 0 "$name: nothing lost"
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
	ok "names, attributes, failures" load_meta "$BED_C1_MNT"
	ok "both reports again" end_both
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

test_data
test_meta
done_testing
