# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# bed.sh: throwaway GlusterFS set-ups for tests, benches and the demo, in
# seconds. It owns a directory, loop devices, mounts and processes, each
# recorded in a state file before it is made, and takes all of them down again by
# that record: on exit, INT and TERM of the script that sources this file, or,
# after a SIGKILL, at the next bed_init. It knows nothing about bricktop.
#
# Every process is started in the foreground mode of GlusterFS, so its pid is
# known at once; every bed has a loopback address of its own, so that beds running
# side by side cannot take each other's ports.
#
#   . tests/lib/bed.sh
#   bed_init                                    || exit 77
#   bed_brick b1 --io-threads 16
#   bed_client c1 b1                            # plain FUSE mount of b1
#   fio --directory="$BED_C1_MNT" ...; echo "$BED_B1_PID $BED_B1_PATH"
#
# BED_XLATORS names a folder where build-xlator.sh has built our test xlators.
# For NAME (upper-cased here) are set: BED_<NAME>_PID, _VOLUME, _LOG, _VOL (the
# volfile), bricks also _PATH, _XFS, _DEV, _PORT, clients also _MNT.

BED_LIB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
BED_DIR=
BED_ADDR=
BED_NEXT_PORT=24100
BED_TIMEOUT_SECS=${BED_TIMEOUT_SECS:-20}

# shellcheck source=tests/lib/bed_volfile.sh
. "$BED_LIB/bed_volfile.sh"
# shellcheck source=tests/lib/bed_glusterd.sh
. "$BED_LIB/bed_glusterd.sh"

bed_say() { printf '# bed: %s\n' "$*" >&2; }

# bed_set NAME FIELD VALUE, bed_get NAME FIELD: the BED_<NAME>_<FIELD> variables.
bed_set()
{
	local name=${1^^}

	printf -v "BED_${name//[^A-Z0-9]/_}_$2" '%s' "$3"
}

bed_get()
{
	local name=${1^^}

	name=BED_${name//[^A-Z0-9]/_}_$2
	printf '%s' "${!name-}"
}

# bed_start_time PID: when it started, in clock ticks; with the pid it names a
# process for good. Nothing where there is no such process, or only its zombie.
bed_start_time()
{
	local stat

	stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
	stat=${stat##*) }
	[ "${stat%% *}" != Z ] || return 1
	# shellcheck disable=SC2086
	set -- $stat
	printf '%s' "${20}"
}

# bed_poll SECS COMMAND...: retries every 20 ms until it succeeds.
bed_poll()
{
	local deadline=$((SECONDS + $1 + 1))

	shift
	until "$@"; do
		[ "$SECONDS" -lt "$deadline" ] || return 1
		sleep 0.02
	done
}

bed_gone() { ! bed_start_time "$1" >/dev/null; }

# bed_alive PID START: this very process still runs.
bed_alive() { [ "$(bed_start_time "$1")" = "$2" ]; }

bed_mounted() { grep -qF " $1 " /proc/self/mounts; }

# ---- the record and the way back -------------------------------------------

bed_record() { printf '%s\n' "$*" >>"$BED_DIR/state"; }

# bed_end PID START [SECS]: TERM, and KILL after SECS. Never another process
# that got the same number.
bed_end()
{
	local pid=$1 start=$2

	bed_alive "$pid" "$start" || return 0
	kill -CONT "$pid" 2>/dev/null
	kill -TERM "$pid" 2>/dev/null
	bed_poll "${3:-2}" bed_gone "$pid" && return 0
	bed_alive "$pid" "$start" || return 0
	kill -KILL "$pid" 2>/dev/null
	bed_poll 3 bed_gone "$pid" || bed_say "process $pid does not end"
}

bed_umount()
{
	local i

	for ((i = 0; i < 50; i++)); do
		bed_mounted "$1" || return 0
		umount "$1" 2>/dev/null && return 0
		sleep 0.02
	done
	umount -l "$1" 2>/dev/null || bed_say "cannot unmount $1"
}

# bed_teardown DIR: undoes DIR/state from its last line to its first.
bed_teardown()
{
	local dir=$1 kind a b

	[ -f "$dir/state" ] || return 0
	while read -r kind a b; do
		case $kind in
		pid) bed_end "$a" "$b" ;;
		cont) bed_alive "$a" "$b" && kill -CONT "$a" ;;
		ns) bed_end_ns "$a" "$b" ;;
		mount) bed_umount "$a" ;;
		fuse) bed_mounted "$a" && umount -l "$a" 2>/dev/null ;;
		cgroup) bed_cgroup_end "$a" ;;
		write) echo "$b" >"$a" ;;
		esac
	done < <(tac "$dir/state")
	if grep -qF " $dir/" /proc/self/mounts; then
		bed_say "mounts are left below $dir"
		return 1
	fi
	[ -n "${BED_KEEP-}" ] && bed_say "kept: $dir" && return 0
	rm -rf --one-file-system "$dir"
}

# bed_write FILE VALUE [BACK [OLD]]: a setting of the host, until bed_unwrite FILE or the
# bed goes down: then OLD (what is in BACK now) is written to BACK (FILE).
declare -A BED_BACK

bed_write()
{
	local back=${3:-$1} old

	if [ -z "${BED_BACK[$1]-}" ]; then
		old=${4-$(cat "$back")} || return 1
		bed_record "write $back $old"
		BED_BACK[$1]="$back $old"
	fi
	echo "$2" >"$1"
}

bed_unwrite()
{
	local back old

	read -r back old <<<"${BED_BACK[$1]-}"
	[ -n "$back" ] && echo "$old" >"$back" && unset "BED_BACK[$1]"
}

# bed_cgroups CONTROLLER: where cgroup v1 has its groups; fails where there is none.
bed_cgroups()
{
	awk -v name="$1" '$3 == "cgroup" && ("," $4 ",") ~ ("," name ",") {
		print $2; found = 1; exit } END { exit !found }' /proc/self/mounts
}

# bed_cgroup CONTROLLER NAME: a group, empty; BED_<NAME>_CGROUP is its folder.
bed_cgroup()
{
	local root

	root=$(bed_cgroups "$1") || return 1
	bed_set "$2" CGROUP "$root/bricktop-$2-$$"
	bed_record "cgroup $(bed_get "$2" CGROUP)"
	mkdir "$(bed_get "$2" CGROUP)"
}

# bed_cgroup_end DIR: with it go its limits; who is in it goes to the group above.
bed_cgroup_end()
{
	local pid

	[ -d "$1" ] || return 0
	while read -r pid; do
		echo "$pid" >"$(dirname "$1")/cgroup.procs"
	done <"$1/cgroup.procs"
	rmdir "$1"
} 2>/dev/null

BED_HOOKS=()

# bed_on_exit COMMAND...: run before the bed goes down, last given first.
bed_on_exit() { BED_HOOKS+=("$(printf '%q ' "$@")"); }

bed_cleanup()
{
	local i

	set +e
	trap '' INT TERM
	for ((i = ${#BED_HOOKS[@]} - 1; i >= 0; i--)); do
		eval "${BED_HOOKS[i]}"
	done
	BED_HOOKS=()
	[ -n "$BED_DIR" ] && bed_teardown "$BED_DIR"
	BED_DIR=
	trap - INT TERM
}

# bed_sweep PARENT: beds whose script was killed before it could clean up.
bed_sweep()
{
	local dir owner start

	for dir in "$1"/bricktop-bed.*; do
		[ -f "$dir/owner" ] || continue
		read -r owner start <"$dir/owner"
		bed_alive "$owner" "$start" && continue
		bed_say "removing what a killed script left in $dir"
		bed_teardown "$dir"
	done
}

# bed_missing: prints why a bed cannot be made here; fails if it can.
bed_missing()
{
	local cmd

	[ "$(id -u)" = 0 ] || { echo "not root"; return; }
	for cmd in glusterfsd glusterfs mkfs.xfs fio ss losetup; do
		command -v "$cmd" >/dev/null || { echo "no $cmd here"; return; }
	done
	[ -c /dev/fuse ] || { echo "no /dev/fuse here"; return; }
	[ -e /dev/loop-control ] || { echo "no loop devices here"; return; }
	return 1
}

# bed_init: makes BED_DIR and installs the traps. Fails, with the reason on
# stderr, where beds are not possible. Twice is once.
bed_init()
{
	local why parent=${BED_TMPDIR:-${TMPDIR:-/tmp}}

	[ -z "$BED_DIR" ] || return 0
	if why=$(bed_missing); then
		bed_say "$why"
		return 1
	fi
	bed_sweep "$parent"
	BED_DIR=$(mktemp -d "$parent/bricktop-bed.XXXXXX") || return 1
	echo "$$ $(bed_start_time $$)" >"$BED_DIR/owner"
	: >"$BED_DIR/state"
	BED_ADDR=127.$((64 + ($$ >> 16) % 64)).$((($$ >> 8) & 255)).$(($$ & 255))
	# x.0 and x.255 are ordinary addresses of 127/8, except at its two ends
	BED_VOLUME=${BED_VOLUME:-perfvol$$}
	trap bed_cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
}

# ---- processes --------------------------------------------------------------

# bed_launch NAME COMMAND...: in a session of its own, recorded; sets _PID.
bed_launch()
{
	local name=$1 pid start

	shift
	setsid "$@" </dev/null >>"$BED_DIR/$name.out" 2>&1 &
	pid=$!
	disown "$pid"
	start=$(bed_start_time "$pid")
	bed_record "pid $pid $start"
	bed_set "$name" PID "$pid"
	bed_set "$name" START "$start"
}

bed_fail()
{
	local log

	bed_say "$1: $2"
	for log in "$(bed_get "$1" LOG)" "$BED_DIR/$1.out"; do
		[ -f "$log" ] && tail -n 15 "$log" >&2
	done
	return 1
}

# bed_stop NAME [SIGNAL]: ends that process (TERM) and waits until it is gone.
bed_stop()
{
	local pid

	pid=$(bed_get "$1" PID)
	bed_alive "$pid" "$(bed_get "$1" START)" || return 0
	kill "-${2:-TERM}" "$pid"
	bed_poll "$BED_TIMEOUT_SECS" bed_gone "$pid"
}

# bed_start NAME: runs a stopped brick again (same volfile, same port).
bed_start()
{
	bed_run_brick "$1" && bed_wait "$1"
}

# GlusterFS prints its graph when all of it is up.
bed_graph_up()
{
	bed_gone "$(bed_get "$1" PID)" ||
		grep -q '^Final graph' "$(bed_get "$1" LOG)" 2>/dev/null
}

# A brick listens before its xlators are up, and drops who comes that early.
bed_ready()
{
	bed_gone "$(bed_get "$1" PID)" && return 0
	bed_graph_up "$1" &&
		[ -n "$(ss -tlnH "sport = :$(bed_get "$1" PORT)" "src = $BED_ADDR")" ]
}

# bed_wait NAME: until a brick started with --async serves.
bed_wait()
{
	[ -n "$(bed_get "$1" PID)" ] || { bed_say "there is no brick '$1'"; return 1; }
	bed_poll "$BED_TIMEOUT_SECS" bed_ready "$1" ||
		bed_fail "$1" "the brick does not listen" || return 1
	bed_gone "$(bed_get "$1" PID)" || return 0
	bed_fail "$1" "the brick ended"
}

# bed_freeze NAME, bed_thaw NAME: that process stands still; so does who waits for it, until
# the bed goes down, before all else.
bed_freeze()
{
	bed_record "cont $(bed_get "$1" PID) $(bed_get "$1" START)"
	kill -STOP "$(bed_get "$1" PID)"
}

bed_thaw() { kill -CONT "$(bed_get "$1" PID)"; }

# ---- bricks -----------------------------------------------------------------

# bed_xfs NAME [SIZE]: an XFS on a loop device, mounted; sets _XFS and _DEV.
bed_xfs()
{
	local name=$1 img=$BED_DIR/$1.img dir=$BED_DIR/$1.xfs

	mkdir -p "$dir"
	bed_set "$name" XFS "$dir"
	if ! bed_mounted "$dir"; then
		truncate -s "${2:-4G}" "$img" || return 1
		mkfs.xfs -q -f -i size=512 "$img" || return 1
		bed_record "mount $dir"
		mount -o loop,noatime,inode64 "$img" "$dir" || return 1
	fi
	bed_set "$name" DEV "$(findmnt -nro SOURCE "$dir")"
}

bed_port()
{
	while [ -n "$(ss -tlnH "sport = :$BED_NEXT_PORT")" ]; do
		BED_NEXT_PORT=$((BED_NEXT_PORT + 1))
	done
	bed_set "$1" PORT "$BED_NEXT_PORT"
	BED_NEXT_PORT=$((BED_NEXT_PORT + 1))
}

bed_run_brick()
{
	local name=$1 log

	log=$(bed_get "$name" LOG)
	[ ! -f "$log" ] || mv "$log" "$log.old"
	bed_launch "$name" glusterfsd -N -f "$(bed_get "$name" VOL)" -l "$log" \
		-p "$BED_DIR/$name.pid" -S "$BED_DIR/$name.sock"
}

# bed_prepare NAME OPTIONS: file system, port and volfile of a brick.
bed_prepare()
{
	local name=$1

	bed_xfs "$name" || return 1
	bed_set "$name" PATH "$BED_DIR/$name.xfs/brick"
	bed_set "$name" VOL "$BED_DIR/$name.vol"
	bed_set "$name" LOG "$BED_DIR/$name.log"
	bed_set "$name" SOCK "$BED_DIR/$name.sock"
	mkdir -p "$BED_DIR/$name.xfs/brick"
	bed_brick_volfile "$@" >"$BED_DIR/$name.vol"
}

# bed_brick NAME [OPTION]...: a brick on its own XFS, listening on return.
#   --volume V          volume name (default $BED_VOLUME, unique to this bed)
#   --io-threads N      thread-count of io-threads (default 16)
#   --linux-aio         posix-aio in storage/posix
#   --posix "OPT VAL"   one more option of storage/posix; repeatable
#   --at HEIGHT "NAME TYPE [OPT VAL]..."   one more xlator; repeatable, each new
#                       one above those before. HEIGHT: posix (right above it), iot
#                       (right below io-threads), top (right above io-threads)
#   --pass N[:TYPE]     N pass-through xlators right below io-threads; TYPE
#                       defaults to our own test xlator (build-xlator.sh)
#   --async             return at once; bed_wait, or a client, waits
bed_brick()
{
	local name=$1 async=

	case " $* " in *" --async "*) async=1 ;; esac
	bed_port "$name"
	bed_prepare "$@" && bed_run_brick "$name" || return 1
	[ -n "$async" ] || bed_wait "$name"
}

# bed_mux NAME1 NAME2 [OPTION]...: two bricks, of volumes V and Vb, in one process
# (_PID is the same); the options go to both. The second is attached, as glusterd
# does it, through the first one's socket, and answers on the same port.
bed_mux()
{
	local one=$1 two=$2 volume

	shift 2
	bed_brick "$one" "$@" || return 1
	volume=$(bed_get "$one" VOLUME)
	bed_set "$two" PORT "$(bed_get "$one" PORT)"
	bed_prepare "$two" "$@" --volume "${volume}b" || return 1
	bed_poll "$BED_TIMEOUT_SECS" test -S "$(bed_get "$one" SOCK)" || return 1
	gf_attach "$(bed_get "$one" SOCK)" "$(bed_get "$two" VOL)" >"$BED_DIR/$two.out" 2>&1 ||
		bed_fail "$two" "gf_attach failed" || return 1
	bed_set "$two" PID "$(bed_get "$one" PID)"
	bed_set "$two" START "$(bed_get "$one" START)"
	bed_set "$two" LOG "$(bed_get "$one" LOG)"
}

# bed_stacks NAME [OPTION VALUE]...: a glusterfsd whose protocol/server is our
# stack-maker: it makes and ends call stacks of six frames by itself, with no network
# or disk. Options are those of tests/xlator/stack-maker.c: rate (20000 a second; 0 is
# as fast as it goes), threads (1), count, go-file, counter-file. The module stands
# in the server's file name in a mount namespace of the process alone.
bed_stacks()
{
	local name=$1 server

	bed_xlators || return 1
	cp "$BED_XLATORS/stack-maker.so" "$BED_XLATORS/bottom.so.$$" &&
		mv "$BED_XLATORS/bottom.so.$$" "$BED_XLATORS/bottom.so" || return 1
	server=$(glusterfsd --print-xlatordir)/protocol/server.so
	mkdir -p "$BED_DIR/$name.brick"
	bed_set "$name" PATH "$BED_DIR/$name.brick"
	bed_set "$name" VOL "$BED_DIR/$name.vol"
	bed_set "$name" LOG "$BED_DIR/$name.log"
	bed_stacks_volfile "$@" >"$BED_DIR/$name.vol"
	# shellcheck disable=SC2016
	bed_launch "$name" unshare --mount sh -euc '
		mount --bind "$1" "$2"
		exec glusterfsd -N -f "$3.vol" -l "$3.log" -p "$3.pid"' \
		sh "$BED_XLATORS/stack-maker.so" "$server" "$BED_DIR/$name"
	bed_poll "$BED_TIMEOUT_SECS" bed_graph_up "$name" ||
		bed_fail "$name" "the graph does not come up" || return 1
	bed_gone "$(bed_get "$name" PID)" || return 0
	bed_fail "$name" "the stack maker ended"
}

# ---- clients ----------------------------------------------------------------

# A mount answers once the client has heard from its bricks.
bed_answers()
{
	bed_gone "$(bed_get "$1" PID)" && return 0
	bed_mounted "$(bed_get "$1" MNT)" || return 1
	timeout 5 stat -f "$(bed_get "$1" MNT)" >/dev/null 2>&1 || return 1
	timeout 5 test -d "$(bed_get "$1" MNT)/."
}

# bed_client NAME [OPTION]... BRICK...: a FUSE mount, answering on return.
#   --kind plain|write-behind|replicate|disperse   (default plain: distribute
#                       over the bricks; disperse: redundancy 1)
#   --cluster "OPT VAL" one more option of replicate or disperse; repeatable
#   --direct-io         FUSE direct I/O: for the unaligned sizes posix-aio needs
#   --without X         leave out io-threads or io-stats
#   --at top "NAME TYPE [OPT VAL]..."   one more xlator right below io-stats
bed_client()
{
	local name=$1 mnt=$BED_DIR/$1.mnt brick args=() bricks

	bed_set "$name" VOL "$BED_DIR/$name.vol"
	bed_set "$name" LOG "$BED_DIR/$name.log"
	bed_set "$name" MNT "$mnt"
	bed_client_volfile "$@" >"$BED_DIR/$name.vol" || return 1
	bricks=$(bed_get "$name" BRICKS)
	for brick in $bricks; do
		bed_wait "$brick" || return 1
	done
	case " $* " in *" --direct-io "*) args=(--direct-io-mode=enable) ;; esac
	mkdir -p "$mnt"
	bed_record "fuse $mnt"
	bed_launch "$name" glusterfs -N "${args[@]}" -f "$BED_DIR/$name.vol" \
		-l "$BED_DIR/$name.log" -p "$BED_DIR/$name.pid" "$mnt"
	bed_poll "$BED_TIMEOUT_SECS" bed_answers "$name" ||
		bed_fail "$name" "the mount does not answer" || return 1
	bed_gone "$(bed_get "$name" PID)" || return 0
	bed_fail "$name" "the client ended"
}

# bed_delay_count FILE OP seen|delayed: what our delay xlator counted for a fop in
# its counter-file; fails, rather than say 0, where there is none.
bed_delay_count()
{
	local op table=0

	case $2 in
	read) op=12 ;;
	write) op=13 ;;
	flush) op=15 ;;
	fsync) op=16 ;;
	create) op=23 ;;
	lookup) op=27 ;;
	*) bed_say "no number known for fop '$2'"; return 1 ;;
	esac
	[ "$3" = seen ] || table=64
	[ -s "$1" ] || { bed_say "no counters in $1"; return 1; }
	od -An -t u8 -j $((8 * (table + op))) -N 8 "$1" | tr -d ' '
}

# ---- load -------------------------------------------------------------------

# bed_fio MNT JOB [FIO OPTION]...: fio with what a countable job needs: direct, at
# most 128 KiB a request, a fixed seed. The result is $BED_DIR/JOB.json. A job
# that reads writes its files first, uncounted: bed_fio_prepare does that apart.
# BED_FIO_IN=ns runs it inside the namespaces of bed_glusterd.
bed_fio()
{
	local mnt=$1 job=$2

	shift 2
	${BED_FIO_IN:+bed_ns} fio --name="$job" --directory="$mnt" --direct=1 \
		--randseed=4711 --thread=1 --output-format=json \
		--output="$BED_DIR/$job.json" --ioengine=psync --size=16m --bs=4k \
		--invalidate=0 --fallocate=none "$@" \
		>"$BED_DIR/$job.out" 2>&1 && return 0
	head -n 3 "$BED_DIR/$job.json" "$BED_DIR/$job.out" >&2
	return 1
}

# bed_fio_prepare MNT JOB [FIO OPTION]...: lays out the files of a job that reads,
# so that the job itself makes no request that its own count lacks.
bed_fio_prepare() { bed_fio "$@" --create_only=1 --rw=randread; }

# bed_fio_count JOB read|write: how many requests fio made, from its own result.
bed_fio_count()
{
	python3 - "$BED_DIR/$1.json" "$2" <<-'PY'
	import json, sys
	text = open(sys.argv[1]).read()
	jobs = json.loads(text[text.index("{"):])["jobs"]
	print(sum(job[sys.argv[2]]["total_ios"] for job in jobs))
	PY
}
