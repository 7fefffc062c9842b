# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# below.sh: an XFS on a loop device of its own, a load on it whose layer is known
# (below.c), bricktop attached to that process, and the kernel's own trace events counted
# beside it. It owns the device, the cgroup, the trace instance and the sysctls it sets,
# and bed.sh puts all of them back. It knows nothing about what is tested.
# Sourced after e2e.sh, or after what that sources. Threads, sizes and limits are drawn with
# BELOW_SEED, which is fixed in check and fresh in soak.

BELOW=${BRICKTOP_BUILD:-build}/tests/lib/below
BED_BELOW_CGROUP=
BELOW_TRACE=
BELOW_LOOPS=()
BELOW_VM_LOCK=
BELOW_LOOK=() # options of bricktop's
BELOW_DONE=:  # run with NAME when its load is done and bricktop still looks
BELOW_SEED=${BELOW_SEED:-4711}
RANDOM=$((BELOW_SEED % 32768))

# below_begin: how the tests of such loads begin, instead of e2e_begin.
below_begin()
{
	e2e_begin
	e2e_needs "$BELOW"
	diag "BELOW_SEED=$BELOW_SEED"
}

# shellcheck disable=SC2034 # for the tests
# below_draw LOW HIGH: a number, in DRAWN: a subshell would draw the same again.
below_draw() { DRAWN=$(($1 + (RANDOM * 32768 + RANDOM) % ($2 - $1 + 1))); }

# below_mount NAME SIZE [MKFS OPTION]...: BED_<NAME>_MNT, _DEV (loop7), _NUMBER (7:7).
below_mount()
{
	local name=$1 dir=$BED_DIR/$1 dev

	truncate -s "$2" "$dir.img" && mkfs.xfs -q -f "${@:3}" "$dir.img" >/dev/null 2>&1 &&
		mkdir "$dir" && bed_record "mount $dir" || return 1
	mount -o loop "$dir.img" "$dir" || return 1
	dev=$(findmnt -no SOURCE "$dir")
	bed_set "$name" MNT "$dir"
	bed_set "$name" DEV "${dev##*/}"
	bed_set "$name" NUMBER "$(cat "/sys/block/${dev##*/}/dev")"
}

# below_limit NUMBER IOPS: reads of that device, of the loads started from now on; 0: none.
below_limit()
{
	if [ -z "$BED_BELOW_CGROUP" ]; then
		bed_cgroup blkio below || return 1
	fi
	echo "$1 $2" >"$BED_BELOW_CGROUP/blkio.throttle.read_iops_device"
}

# below_slow NUMBER BYTES: what the kernel's own threads, and whoever else is in no group, may
# write to that device in a second; below_fast: as much as they like again.
below_slow()
{
	local limit

	limit=$(bed_cgroups blkio)/blkio.throttle.write_bps_device || return 1
	bed_write "$limit" "$1 $2" "$limit" "$1 0"
}

below_fast() { bed_unwrite "$(bed_cgroups blkio)/blkio.throttle.write_bps_device"; }

# below_dirty NAME BYTES: vm.NAME_bytes, for this test only, and only one test at a time. Of
# it and vm.NAME_ratio the one that is not in use reads 0: the other has to be put back.
below_dirty()
{
	local unit=bytes

	if [ -z "$BELOW_VM_LOCK" ]; then
		exec {BELOW_VM_LOCK}</proc/sys/vm/dirty_bytes
		flock "$BELOW_VM_LOCK" || return 1
	fi
	[ "$(cat "/proc/sys/vm/$1_bytes")" != 0 ] || unit=ratio
	bed_write "/proc/sys/vm/$1_bytes" "$2" "/proc/sys/vm/$1_$unit"
}

# ---- trace events -------------------------------------------------------

# below_trace PID [EVENT FILTER]...: these events of that process's threads; PID 0: of anybody.
below_trace()
{
	local pid=$1 at

	[ -d /sys/kernel/tracing/instances ] || mount -t tracefs tracefs /sys/kernel/tracing ||
		return 1
	BELOW_TRACE=/sys/kernel/tracing/instances/bricktop-below-$$
	mkdir "$BELOW_TRACE" 2>/dev/null && bed_on_exit below_untrace
	echo 0 >"$BELOW_TRACE/tracing_on"
	echo 0 >"$BELOW_TRACE/events/enable"
	echo >"$BELOW_TRACE/trace"
	echo 16384 >"$BELOW_TRACE/buffer_size_kb"
	echo 1 >"$BELOW_TRACE/options/event-fork"
	[ "$pid" = 0 ] && pid=
	echo "$pid" >"$BELOW_TRACE/set_event_pid" || return 1
	shift
	while [ $# -gt 1 ]; do
		at=$BELOW_TRACE/events/$1
		[ -z "$2" ] || echo "$2" >"$at/filter" || return 1
		echo 1 >"$at/enable" || return 1
		shift 2
	done
	echo 1 >"$BELOW_TRACE/tracing_on"
}

below_untrace()
{
	echo 0 >"$BELOW_TRACE/events/enable"
	rmdir "$BELOW_TRACE"
}

# below_traced NAME: what is in the trace; fails where some of it was overwritten.
below_traced()
{
	echo 0 >"$BELOW_TRACE/tracing_on"
	cat "$BELOW_TRACE/trace" >"$BED_DIR/$1.trace"
	awk '/^(overrun|dropped events):/ { n += $NF } END { exit n > 0 }' \
		"$BELOW_TRACE"/per_cpu/cpu*/stats
}

# below_count NAME EVENT: how often it was traced.
below_count() { grep -c " $2: " "$BED_DIR/$1.trace"; }

# below_times NAME WHAT...: "COUNT NS": see trace_times.py.
below_times() { "$BED_LIB/trace_times.py" "$BED_DIR/$1.trace" "${@:2}"; }

# below_busy, below_idle: keep every CPU at work meanwhile. A trace lacks switches from an
# idle CPU to a thread (they come before the kernel lets itself be traced), and would know
# fewer sleeps.
below_busy()
{
	local n

	bed_on_exit below_idle
	for ((n = $(nproc); n > 0; n--)); do
		nice -n 19 sh -c 'while :; do :; done' &
		BELOW_LOOPS+=($!)
	done
}

below_idle()
{
	[ ${#BELOW_LOOPS[@]} = 0 ] || kill "${BELOW_LOOPS[@]}"
	BELOW_LOOPS=()
}

# ---- a load under bricktop ----------------------------------------------

# below_met NAME EVENT ID [LEAST]: this row was met as often as the event was traced, and
# that was so often.
below_met()
{
	is "$(below_sum "$1" "$3" calls)" "$(below_count "$1" "$2")" \
		"$1: '$3' is met as often as $2 fires"
	[ -z "${4-}" ] || between "$(below_count "$1" "$2")" "$4" 1e9 "$1: $2 fired"
}

# below_launch NAME COMMAND...: a load of its own making, waiting for its start.
below_launch()
{
	local name=$1

	shift
	mkfifo "$BED_DIR/$name.go" || return 1
	(
		[ -z "$BED_BELOW_CGROUP" ] || echo "$BASHPID" >"$BED_BELOW_CGROUP/tasks"
		read -r _ <"$BED_DIR/$name.go"
		exec "$@" <<<go >"$BED_DIR/$name.clocks" 2>"$BED_DIR/$name.load-err"
	) &
	bed_set "$name" PID $!
	bed_record "pid $! $(bed_start_time $!)"
}

# below_start NAME MODE ARGUMENT...: below.c's load.
below_start() { below_launch "$1" "$BELOW" "${@:2}"; }

# below_fio_start NAME FILE OPTION... --name=JOB OPTION...: fio on a file that is there, as one
# process, waiting for its start; NAME.clocks will be its report.
below_fio_start()
{
	below_launch "$1" fio --filename="$2" --thread --randseed=1 --allow_file_create=0 \
		--output-format=json "${@:3}"
}

# below_fio: the same, and under bricktop.
below_fio() { below_fio_start "$@" && below_look "$1" && below_finish "$1"; }

# below_fio_job NAME JOB FILTER
below_fio_job()
{
	jq --arg job "$2" ".jobs[] | select(.jobname == \$job) | $3" "$BED_DIR/$1.clocks"
}

# below_async NAME FILE OPTION...: below_fio with two jobs, one after the other, all of whose
# operations are asynchronous; each is named as the layer that sees them.
below_async()
{
	below_fio "$@" --name=aio --ioengine=libaio --name=io_uring --stonewall \
		--ioengine=io_uring
}

# below_async_counted NAME LAYER: every read, write and sync of that job is there once. (fio has
# no asynchronous fsync in libaio.)
below_async_counted()
{
	local op syncs="$2 fsync"

	for op in read write; do
		is "$(jq -c --arg op "$2 $op" '[.ops[] | select(.op == $op)] |
			map(.count, .bytes, .errors)' "$BED_DIR/$1.json")" \
			"$(below_fio_job "$1" "$2" "[.$op.total_ios, .$op.io_bytes, 0] | tojson" |
				tr -d '"')" \
			"$1: all ${op}s of $2, and their bytes"
	done
	[ "$2" != aio ] || syncs=fsync
	is "$(below_sum "$1" "$syncs" count "$syncs")" \
		"$(below_fio_job "$1" "$2" .sync.total_ios)" "$1: all fsyncs of $2"
}

# below_look NAME: bricktop, on that load.
below_look() { attach_start "$1-look" "$(bed_get "$1" PID)" --json "${BELOW_LOOK[@]}"; }

# below_finish NAME: lets it run, waits for it, and ends bricktop; its report is NAME.json.
below_finish()
{
	local status pid

	pid=$(bed_get "$1" PID)
	echo >"$BED_DIR/$1.go"
	wait "$pid"
	status=$?
	"$BELOW_DONE" "$1"
	[ "$status" = 0 ] || cat "$BED_DIR/$1.load-err" >&2
	attach_end "$1-look"
	jq -c '.targets[0] // .' "$BED_DIR/$1-look.out" >"$BED_DIR/$1.json" || return 1
	[ "$status" = 0 ] && [ "$ATTACH_STATUS" = 0 ]
}

# below_run NAME LOAD ARGUMENT...: all of it, but for the trace.
below_run()
{
	below_start "$@" && below_look "$1" && below_finish "$1"
}

# below_traced_run [-a] NAME LOAD ARGUMENT... -- EVENT FILTER ...: and with the trace, of its
# process, or of anybody (-a).
below_traced_run()
{
	local anybody name load=()

	[ "$1" = -a ] && anybody=0 && shift
	name=$1
	while [ "$1" != -- ]; do
		load+=("$1")
		shift
	done
	shift
	below_start "${load[@]}" && below_look "$name" &&
		below_trace "${anybody:-$(bed_get "$name" PID)}" "$@" &&
		below_finish "$name" && below_traced "$name"
}

# below_clock NAME FIELD: what the load's own clocks saw.
below_clock() { jq ".$2" "$BED_DIR/$1.clocks"; }

# below_sum NAME ID FIELD [OP]: over all rows of that name, the time in ns (self, incl), or
# count, calls (an operation's own row has no calls, which is once each).
below_sum()
{
	jq --arg id "$2" --arg field "$3" --arg op "${4-}" '[.ops[] |
		select($op == "" or .op == $op) | .layers[] | select(.id == $id) |
		if $field == "self" or $field == "incl" then
			.[$field + "_us"].mean * .count * 1000
		elif $field == "calls" then .calls // .count
		else .[$field] end] | add // 0' "$BED_DIR/$1.json"
}

# below_path NAME PATH FIELD: of the row at that place alone.
below_path()
{
	jq --arg path "$2" --arg field "$3" '[.ops[] | select(.root == "local") | .layers[] |
		select(.path == $path)[$field]] | add // 0' "$BED_DIR/$1.json"
}

# below_ratio A B: A / B.
below_ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (b + 0 == 0) print "-"; else print a / b }'; }

# below_least NAME LOW COUNT: of COUNT sleeps at least LOW of the time is told, less where the
# end of some was not seen: those may be long ones.
below_least()
{
	jq --argjson low "$2" --argjson of "$3" '$low - 2 * .lost.wakes / $of' "$BED_DIR/$1.json"
}

# below_adds_up NAME: in no operation do the rows' own times make more or less than the
# calls' time, but for the rounding of the report: a mean has three decimals.
below_adds_up()
{
	jq -e '[.ops[] | select(.root == "local" and (.layers | length) > 1) |
		((.layers | map(.self_us.mean * .count) | add) -
			.layers[0].incl_us.mean * .layers[0].count | fabs) /
		((.layers | map(.count) | add) + .layers[0].count)] |
		length > 0 and all(. < 0.00051)' "$BED_DIR/$1.json"
}
