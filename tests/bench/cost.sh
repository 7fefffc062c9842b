#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What bricktop costs the brick or process it watches, against nothing and against other
# tools, and how that grows. Some twenty minutes on an idle machine; it fails where an aim
# is missed. COST_ROUNDS (12) and COST_SECS (1: one slice) shorten or lengthen the
# comparisons, COST_ONLY names its parts (arms events block bystander growth rate stacks
# collector detach), COST_ARMS, by commas, the arms: of "arms" E0, E0+walk, walk and system
# calls, all layers, all layers and --slow, volume profile, bpftrace script, perf trace -s;
# of "block" device table, all layers of a process, biolatency script, xfsslower script; of
# "bystander" no layers, all layers.
# shellcheck disable=SC2153,SC2317 # bed.sh sets BED_<NAME>_*; functions run through aim
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/bed.sh
. "$here/../lib/bed.sh"

rounds=${COST_ROUNDS:-12}
secs=${COST_SECS:-1}
missed=0
load=
fio_args=()

bed_init || exit 77
work=$BED_DIR/work
mkdir -p "$work"

wants() { [ -z "${COST_ONLY-}" ] || [[ " $COST_ONLY " == *" $1 "* ]]; }

# aim COMMAND...: one part; remembers whether its aim was missed.
aim() { "$@" || missed=$((missed + 1)); }

# load_args MNT JOBS [FIO OPTION]...: fio_args, reads and writes of 4 KiB.
load_args()
{
	fio_args=(--name=bench --directory="$1" --numjobs="$2" --rw=randrw --bs=4k
		--size=8m --direct=1 --ioengine=psync --thread=1 --invalidate=0
		--fallocate=none --randseed=4711 "${@:3}")
}

# start_load MNT JOBS [FIO OPTION]...: such a load until stop_load; sets load.
start_load()
{
	load_args "$@"
	${BED_FIO_IN:+bed_ns} fio "${fio_args[@]}" --create_only=1 >"$work/fio.out" 2>&1 ||
		return 1
	if [ -n "${BED_FIO_IN-}" ]; then
		nsenter -t "$BED_NS_PID" -n -m -- fio "${fio_args[@]}" --time_based \
			--runtime=3600 >"$work/fio.out" 2>&1 &
	else
		fio "${fio_args[@]}" --time_based --runtime=3600 >"$work/fio.out" 2>&1 &
	fi
	load=$!
	sleep 1
}

stop_load()
{
	[ -z "$load" ] || kill "$load" 2>/dev/null
	wait "$load" 2>/dev/null
	load=
}
bed_on_exit stop_load

# The comparison, on a managed brick, whose volume can be profiled; without glusterd
# on one of our own, and without that arm.
compare()
{
	local profile=() inside pid mnt BED_FIO_IN=

	if bed_glusterd g1 --set "performance.write-behind off" \
		--set "performance.client-io-threads off" >/dev/null; then
		pid=$BED_G1_BRICK_PID mnt=$BED_G1_MNT BED_FIO_IN=ns
		inside="nsenter -t $BED_NS_PID -n -m -- gluster volume profile $BED_G1_VOLUME"
		profile=("$inside start" "$inside stop")
	else
		echo '# no managed volume here: no arm "volume profile"'
		bed_brick b1 && bed_client c1 b1 || return 1
		pid=$BED_B1_PID mnt=$BED_C1_MNT
	fi
	start_load "$mnt" 4 || return 1
	python3 "$here/cost.py" "$pid" "$load" "$work" "$rounds" "$secs" "${profile[@]}"
	set -- $?
	wants rate && aim python3 "$here/grow.py" rate "$pid" "$load" "$work" "$secs"
	stop_load
	return "$1"
}

# grow LABEL BRICK_OPTION...: a brick of that shape, the walk's cost, and away again.
grow_number=0
grow()
{
	local label=$1 status brick=g$((grow_number += 1))x

	shift
	bed_brick "$brick" "$@" && bed_client "c$brick" "$brick" &&
		start_load "$(bed_get "c$brick" MNT)" 8 || return 1
	python3 "$here/grow.py" walk "$label" "$(bed_get "$brick" PID)" "$load" "$work" "$secs"
	status=$?
	stop_load
	bed_stop "c$brick"
	bed_stop "$brick"
	return "$status"
}

growth()
{
	printf '\n| brick | rows | us/op | with the walk | | walk, us | op/s | lost | unsplit |\n'
	printf '|---|---|---|---|---|---|---|---|---|\n'
	aim grow "no more xlators" --pass 0
	aim grow "20 more xlators" --pass 20
	aim grow "53 more xlators" --pass 53
	aim grow "1 io-thread" --io-threads 1
	aim grow "8 io-threads" --io-threads 8
	aim grow "64 io-threads" --io-threads 64
}

stacks()
{
	local count=200000

	bed_stacks s1 rate 0 threads 2 count "$count" counter-file "$work/made" \
		go-file "$work/go" || return 1
	python3 "$here/grow.py" stacks "$BED_S1_PID" "$work/made" "$work/go" "$count" "$work"
}

# On a brick under load, at the default pace.
collector()
{
	bed_brick b2 && bed_client c2 b2 && start_load "$BED_C2_MNT" 4 || return 1
	wants collector && aim python3 "$here/grow.py" collector "$BED_B2_PID" "$work" 10
	wants detach && aim python3 "$here/grow.py" detach "$BED_B2_PID" "$work"
	stop_load
}

# Event by event, at the pace of the comparison's load.
events()
{
	bed_brick b3 && bed_client c3 b3 && start_load "$BED_C3_MNT" 4 || return 1
	python3 "$here/events.py" "$BED_B3_PID" "$load" "$work" 5
	set -- $?
	stop_load
	bed_stop c3
	bed_stop b3
	return "$1"
}

# block LABEL [FIO OPTION]...: no brick: the block path of a process on XFS, event by
# event, then beside other tools.
block()
{
	local label=$1 status=0

	start_load "$BED_X_XFS" 4 "${@:2}" || return 1
	printf '\n%s I/O of a plain process, event by event:\n' "$label"
	python3 "$here/events.py" "$load" "$load" "$work" 5 || status=1
	stop_load
	python3 "$here/block.py" "$label" "$BED_X_DEV" "$BED_X_XFS" "$work" "$rounds" "$secs" \
		fio "${fio_args[@]}" || status=1
	return "$status"
}

blocks()
{
	bed_xfs x 600M || return 1
	aim block direct
	aim block buffered --direct=0 --fsync=32
}

# Of a process that nobody looks at, while a brick is looked at that has nothing to do.
bystander()
{
	bed_brick b4 || return 1
	python3 "$here/bystander.py" "${BRICKTOP_BUILD:-${BRICKTOP%/*}}/tests/bench/getppid" \
		"$BED_B4_PID" "$work" "$rounds" "$secs"
	set -- $?
	bed_stop b4
	return "$1"
}

if wants arms; then aim compare; fi
if wants events; then aim events; fi
if wants block; then blocks || missed=$((missed + 1)); fi
if wants bystander; then aim bystander; fi
if wants growth; then growth; fi
printf '\n'
if wants stacks; then aim stacks; fi
if wants collector || wants detach; then aim collector; fi
exit $((missed > 0))
