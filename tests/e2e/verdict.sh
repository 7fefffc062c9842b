#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 400
# shellcheck disable=SC2153,SC2317 # bed.sh sets BED_<NAME>_*; functions are called through ok
#
# Verdicts: real bricks that are slow for one known reason each, and one that is not.
# How slow, where and under which load is drawn from a seed, so that thresholds which
# only fit one case are found: VERDICT_ROUNDS rounds (1) of all cases with BRICKTOP_SEED
# (fixed here; tests/soak/verdict.sh draws it). A case may be unsure, but must never be
# wrong and confident; with the fixed seed it must be right.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
e2e_begin
bed_xlators || skip_all "test xlators cannot be built here"

CGROUPS=/sys/fs/cgroup
SECS=${VERDICT_SECS:-4}
seed=${BRICKTOP_SEED:-4711}
RANDOM=$((seed % 32768))
diag "BRICKTOP_SEED=$seed"

# draw LOW HIGH: a number; pick WORD...: one of them. In DRAWN: a subshell would draw
# the same again.
draw() { DRAWN=$(($1 + (RANDOM * 32768 + RANDOM) % ($2 - $1 + 1))); }

pick()
{
	draw 1 $#
	DRAWN=${!DRAWN}
}

# ---- cgroups of the first version: CPU quotas and I/O limits ------------------

# cgroup_join CONTROLLER NAME PID: makes the group, puts the process in; GROUP is its
# folder. It is removed when its process has ended.
cgroup_join()
{
	GROUP=$CGROUPS/$1/bricktop-$2.$$
	mkdir "$GROUP" || return 1
	bed_on_exit cgroup_leave "$GROUP"
	echo "$3" >"$GROUP/cgroup.procs"
}

cgroup_leave()
{
	local pid

	while read -r pid; do
		echo "$pid" >"$(dirname "$1")/cgroup.procs"
	done <"$1/cgroup.procs"
	rmdir "$1"
} 2>/dev/null

# Whatever else runs here must not make every brick one that lacks a CPU.
first_on_cpus()
{
	cgroup_join cpu first $$ && echo 200000 >"$GROUP/cpu.shares"
}

# ---- one case ----------------------------------------------------------------

# mounted BRICK: a client whose every request is one of the brick's, in its page cache;
# direct BRICK: one whose O_DIRECT reaches the brick.
mounted() { bed_client "c$1" --direct-io "$1"; }
direct() { bed_client "c$1" "$1"; }

# load BRICK FIO-OPTION...: files laid out, then random I/O for the window.
prepare() { bed_fio_prepare "$(bed_get "c$1" MNT)" "load$1" --size=2m "${@:2}"; }

load()
{
	bed_fio "$(bed_get "c$1" MNT)" "load$1" --size=2m --time_based --runtime="$SECS" \
		"${@:2}"
}

# watch BRICK FIO-OPTION...: a report of the brick under that load.
watch()
{
	measure_attach "$1" "$(bed_get "$1" PID)" || return 1
	load "$@" || return 1
	measure_finish "$1" || return 1
	[ -z "${VERDICT_KEEP-}" ] || cp "$BED_DIR/$1.json" "$VERDICT_KEEP/$case-$seed-$round.json"
}

# Each case sets CASE (what was drawn) and WANTED (an extended regular expression over
# "cause subject"), and leaves a report of its brick.
case_xlator()
{
	local height op us jobs rw=randwrite

	pick iot top posix; height=$DRAWN
	pick writev readv; op=$DRAWN
	draw 500 5000; us=$DRAWN
	draw 1 6; jobs=$DRAWN
	[ "$op" = writev ] || rw=randread
	CASE="$op held $us us at $height, $jobs jobs"
	WANTED='^xlator (.*\+)?slow(\+.*)?$'
	bed_brick "$1" --at "$height" "slow delay delay-us $us ops $op" || return 1
	mounted "$1" && prepare "$1" --direct=0 --numjobs="$jobs" &&
		watch "$1" --direct=0 --numjobs="$jobs" --rw="$rw"
}

# Threads sleep: that one of them is too few is then not for lack of CPUs.
case_pool()
{
	local op jobs us rw=randwrite

	pick writev readv; op=$DRAWN
	draw 10 24; jobs=$DRAWN
	draw 50 250; us=$DRAWN
	CASE="one thread, $op of $us us and more, $jobs jobs"
	[ "$op" = writev ] || rw=randread
	WANTED='^io-threads-pool io-threads$'
	bed_brick "$1" --io-threads 1 --at posix "disk delay delay-us $us ops $op" || return 1
	mounted "$1" && prepare "$1" --direct=0 --numjobs="$jobs" &&
		watch "$1" --direct=0 --numjobs="$jobs" --rw="$rw"
}

case_cpu()
{
	local rw jobs quota

	pick randread randwrite randrw; rw=$DRAWN
	draw 4 12; jobs=$DRAWN
	draw 15 22; quota=$DRAWN
	CASE="$quota % of a CPU, $rw, $jobs jobs"
	WANTED='^cpu '
	bed_brick "$1" && mounted "$1" && prepare "$1" --direct=0 --numjobs="$jobs" &&
		cgroup_join cpu "$1" "$(bed_get "$1" PID)" || return 1
	echo $((quota * 1000)) >"$GROUP/cpu.cfs_quota_us"
	watch "$1" --direct=0 --numjobs="$jobs" --rw="$rw"
}

case_throttled()
{
	local jobs iops

	draw 1 8; jobs=$DRAWN
	draw 60 200; iops=$DRAWN
	CASE="$iops reads a second from the loop device, $jobs jobs"
	bed_brick "$1" && direct "$1" && prepare "$1" --numjobs="$jobs" &&
		cgroup_join blkio "$1" "$(bed_get "$1" PID)" || return 1
	echo "$(lsblk -dno MAJ:MIN "$(bed_get "$1" DEV)" | tr -d ' ') $iops" \
		>"$GROUP/blkio.throttle.read_iops_device"
	watch "$1" --numjobs="$jobs" --rw=randread || return 1
	# where the block layer is seen, the system call is not deep enough an answer
	WANTED='^syscall '
	measure_has_block "$1" && WANTED='^block-held '
	return 0
}

# More requests than there may be threads, all of which sleep in one xlator: that is
# what the queue is for, whatever its length.
case_sleepers()
{
	local jobs us

	draw 24 40; jobs=$DRAWN
	draw 2000 6000; us=$DRAWN
	CASE="$jobs jobs, 16 threads, writes held $us us"
	WANTED='^xlator (.*\+)?slow(\+.*)?$'
	bed_brick "$1" --at iot "slow delay delay-us $us ops writev" || return 1
	mounted "$1" && prepare "$1" --direct=0 --numjobs="$jobs" &&
		watch "$1" --direct=0 --numjobs="$jobs" --rw=randwrite
}

# Each write is synced: the flushes of the device, and the log's waits for them.
case_fsync()
{
	local jobs

	draw 2 6; jobs=$DRAWN
	CASE="fsync after each write, $jobs jobs"
	bed_brick "$1" && mounted "$1" && prepare "$1" --direct=0 --numjobs="$jobs" &&
		watch "$1" --direct=0 --numjobs="$jobs" --rw=randwrite --fsync=1 || return 1
	WANTED='^syscall '
	measure_has_block "$1" && WANTED='^(device|log) '
	return 0
}

measure_has_block()
{
	[ "$(measure_get "$1" '[.ops[].layers[] | select(.kind == "block")] | length')" -gt 0 ]
}

case_healthy()
{
	local rw jobs rate

	pick randread randwrite randrw; rw=$DRAWN
	draw 1 2; jobs=$DRAWN
	draw 20 100; rate=$DRAWN
	CASE="$rw, $jobs jobs of $rate a second"
	WANTED='^nothing-stands-out '
	bed_brick "$1" && mounted "$1" && prepare "$1" --direct=0 --numjobs="$jobs" &&
		watch "$1" --direct=0 --numjobs="$jobs" --rw="$rw" --rate_iops="$rate"
}

# ---- judging -----------------------------------------------------------------

declare -A count

# judge CASE BRICK: right, unsure (not right, but not sure) or wrong, of the first cause.
judge()
{
	local case=$1 got confidence shown result=wrong

	got=$(measure_get "$2" '.verdict[0] | "\(.cause) \(.subject)"')
	confidence=$(measure_get "$2" '.verdict[0].confidence')
	shown=$(measure_get "$2" '.verdict[] |
		"\(.cause) \(.subject) \(.share_pct) \(.confidence)"')
	if [[ $got =~ $WANTED ]]; then
		result=right
	elif [ "$confidence" != high ]; then
		result=unsure
	fi
	count[$result]=$((${count[$result]-0} + 1))
	diag "$result: $case ($CASE): ${shown//$'\n'/; }"
	isnt "$result" wrong "$case: not wrong with high confidence ($CASE)" ||
		diag "$(jq '.verdict' "$BED_DIR/$2.json")"
	ok "$case: each thread once, those of io-threads among them" jq -e '
		([.threads[].tid] | unique | length) == (.threads | length) and
		any(.threads[]; .pool == "io-threads" and .oncpu_pct > 0)' "$BED_DIR/$2.json"
	[ -n "${BRICKTOP_SEED-}" ] || is "$result" right "$case: the right cause"
}

# without such cgroups the machine has to be idle
first_on_cpus || diag "no CPU shares here"
read -ra cases <<<"${VERDICT_CASES:-xlator pool sleepers cpu throttled healthy}"
for ((round = 1; round <= ${VERDICT_ROUNDS:-1}; round++)); do
	for case in "${cases[@]}"; do
		ok "$case: measured" "case_$case" "$case$round" && judge "$case" "$case$round"
		bed_stop "c$case$round"
		bed_stop "$case$round"
	done
done
diag "right ${count[right]-0}, unsure ${count[unsure]-0}, wrong ${count[wrong]-0}"
done_testing
