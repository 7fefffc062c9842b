# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# bed_glusterd.sh: a managed volume for a test bed: glusterd, its bricks and a FUSE
# mount in a network and a mount namespace of their own, with a private /run,
# /var/lib/glusterd and /var/log/glusterfs, so that neither the host's glusterd nor
# another bed's is met. Needed only for what glusterd alone can do: `gluster volume
# profile`, and switching a client's graph with `gluster volume set`. Sourced by
# bed.sh; one managed volume in a bed.
#
#   bed_glusterd g1 --set "performance.write-behind off" || ...
#   bed_gluster volume profile "$BED_G1_VOLUME" start
#   bed_ns fio --directory="$BED_G1_MNT" ...
#
# Pids are those of the host; files inside are seen through /proc/$BED_NS_PID/root.

BED_NS_PID=
# not in 127/8, which glusterd does not take for a brick's host
BED_NS_ADDR=10.99.99.1

# bed_ns COMMAND...: inside the namespaces. The mount is visible only there.
bed_ns() { nsenter -t "$BED_NS_PID" -n -m -- "$@"; }

bed_gluster() { bed_ns gluster --mode=script "$@"; }

# bed_end_ns PID START: every process in the mount namespace that this process
# holds open. It was made for this bed, so all of them are ours.
bed_end_ns()
{
	local holder=$1 start=$2 ns proc pid victims=()

	bed_alive "$holder" "$start" || return 0
	ns=$(readlink "/proc/$holder/ns/mnt") || return 0
	[ "$ns" != "$(readlink /proc/self/ns/mnt)" ] || return 0
	for proc in /proc/[0-9]*; do
		pid=${proc#/proc/}
		[ "$(readlink "$proc/ns/mnt" 2>/dev/null)" = "$ns" ] || continue
		[ "$pid" = "$holder" ] || victims+=("$pid $(bed_start_time "$pid")")
	done
	# glusterd first: it starts its children again
	for pid in "${victims[@]}"; do
		kill -TERM "${pid% *}" 2>/dev/null
	done
	for pid in "${victims[@]}" "$holder $start"; do
		bed_end "${pid% *}" "${pid#* }" 2
	done
}

# The holder keeps the namespaces and sets them up; it is done when it has become
# `sleep`.
bed_make_ns()
{
	local name=$1 dir=$BED_DIR/$1.ns

	mkdir -p "$dir/lib" "$dir/log"
	# shellcheck disable=SC2016
	bed_launch "$name-ns" unshare --net --mount --propagation slave sh -euc '
		ip link set lo up
		ip addr add "$2/32" dev lo
		mount -t tmpfs tmpfs /run
		mkdir -p /var/lib/glusterd /var/log/glusterfs /run/gluster
		mount --bind "$1/lib" /var/lib/glusterd
		mount --bind "$1/log" /var/log/glusterfs
		: >"$1/ready"
		exec sleep infinity' sh "$dir" "$BED_NS_ADDR"
	BED_NS_PID=$(bed_get "$name-ns" PID)
	bed_record "ns $BED_NS_PID $(bed_get "$name-ns" START)"
	bed_poll 5 test -e "$dir/ready" || bed_fail "$name-ns" "no namespaces here"
}

bed_glusterd_ready()
{
	bed_gone "$(bed_get "$1" GLUSTERD)" || bed_gluster volume list >/dev/null 2>&1
}

bed_brick_pids()
{
	bed_ns sh -c "cat /run/gluster/vols/$1/*.pid" 2>/dev/null
}

bed_bricks_up()
{
	[ "$(bed_brick_pids "$1" | wc -l)" = "$2" ]
}

# bed_glusterd NAME [OPTION]...: a started and mounted volume on its own XFS. Sets
# _VOLUME, _MNT, _PID (the client), _BRICK_PID (all of them), _PATH (the first brick's).
#   --volume V          (default $BED_VOLUME)
#   --bricks N          (default 1)
#   --create "WORDS"    between volume name and bricks, e.g. "replica 2"
#   --set "KEY VALUE"   before the start; repeatable
bed_glusterd()
{
	local name=$1 volume=$BED_VOLUME count=1 create='' sets=() i set bricks=()

	shift
	while [ $# -gt 1 ]; do
		case $1 in
		--volume) volume=$2 ;;
		--bricks) count=$2 ;;
		--create) create=$2 ;;
		--set) sets+=("$2") ;;
		*) bed_say "unknown glusterd option '$1'"; return 1 ;;
		esac
		shift 2
	done
	bed_xfs "$name" || return 1
	bed_set "$name" VOLUME "$volume"
	bed_set "$name" PATH "$BED_DIR/$name.xfs/brick1"
	for ((i = 1; i <= count; i++)); do
		mkdir -p "$BED_DIR/$name.xfs/brick$i"
		bricks+=("$BED_NS_ADDR:$BED_DIR/$name.xfs/brick$i")
	done
	bed_make_ns "$name" || return 1
	bed_set "$name" LOG "$BED_DIR/$name.ns/log/glusterd.log"
	bed_launch "$name" nsenter -t "$BED_NS_PID" -n -m -- glusterd -N -p /run/glusterd.pid
	bed_set "$name" GLUSTERD "$(bed_get "$name" PID)"
	bed_poll 60 bed_glusterd_ready "$name" ||
		bed_fail "$name" "glusterd is not ready" || return 1
	# shellcheck disable=SC2086
	bed_gluster volume create "$volume" $create "${bricks[@]}" force >/dev/null ||
		bed_fail "$name" "no volume" || return 1
	for set in "${sets[@]}"; do
		# shellcheck disable=SC2086
		bed_gluster volume set "$volume" $set >/dev/null || return 1
	done
	bed_glusterd_up "$name" "$volume" "$count"
}

bed_glusterd_up()
{
	local name=$1 volume=$2 mnt=$BED_DIR/$1.mnt

	bed_gluster volume start "$volume" >/dev/null ||
		bed_fail "$name" "the volume does not start" || return 1
	bed_poll 10 bed_bricks_up "$volume" "$3" || bed_fail "$name" "no brick" || return 1
	bed_set "$name" BRICK_PID "$(bed_brick_pids "$volume" | tr '\n' ' ' | sed 's/ $//')"
	mkdir -p "$mnt"
	bed_set "$name" MNT "$mnt"
	bed_launch "$name" nsenter -t "$BED_NS_PID" -n -m -- glusterfs -N \
		--volfile-server="$BED_NS_ADDR" --volfile-id="$volume" "$mnt"
	bed_poll "$BED_TIMEOUT_SECS" bed_ns_answers "$name" ||
		bed_fail "$name" "the mount does not answer"
}

bed_ns_answers()
{
	local mnt

	mnt=$(bed_get "$1" MNT)
	bed_ns grep -qF " $mnt fuse" /proc/self/mounts &&
		bed_ns timeout 5 stat -f "$mnt" >/dev/null 2>&1
}
