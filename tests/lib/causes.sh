# shellcheck shell=bash
# shellcheck disable=SC2034,SC2153 # CASE, WANTED, ALSO: for the test; bed.sh sets BED_<NAME>_*
# SPDX-License-Identifier: Apache-2.0
#
# causes.sh: how a case for the verdict is made: numbers drawn from a seed, a brick or a
# plain process under a load, limits on it, devices that are slow, a report of a few
# seconds. The cases themselves are in causes_brick.sh and causes_process.sh. It judges
# nothing. Sourced after e2e.sh.
#
#   cause_seed "4711 1 xlator"  # what is drawn from here on depends on that alone
#   cause_xlator x1             # $BED_DIR/x1.json, and CASE: what was drawn, WANTED: an
#                               # extended regular expression over "cause subject"; ALSO:
#                               # the same of a further one that has to be named, too
#   cause_end x1                # all that it made, but for the brick that cases share

CAUSE_SECS=${CAUSE_SECS:-3}
CAUSE_LIMIT=blkio.throttle.read_iops_device

cause_seed() { RANDOM=$(($(cksum <<<"$1" | cut -d ' ' -f 1) % 32768)); }

# draw NAME LOW HIGH: a number; pick NAME WORD...: one of them. Into that variable: a subshell
# would draw the same again.
draw() { printf -v "$1" %d $(($2 + (RANDOM * 32768 + RANDOM) % ($3 - $2 + 1))); }

pick()
{
	local -n picked=$1
	local number

	shift
	draw number 1 $#
	picked=${!number}
}

# ---- limits and devices --------------------------------------------------------

# cause_first: whatever else runs here must not make every brick one that lacks a CPU.
cause_first()
{
	bed_cgroup cpu first && echo $$ >"$BED_FIRST_CGROUP/cgroup.procs" &&
		echo 200000 >"$BED_FIRST_CGROUP/cpu.shares"
}

# cause_limit BED FILE VALUE: that process in a group of its own, with this limit.
cause_limit()
{
	bed_cgroup "${2%%.*}" "$1" &&
		bed_get "$1" PID >"$(bed_get "$1" CGROUP)/cgroup.procs" &&
		echo "$3" >"$(bed_get "$1" CGROUP)/$2"
}

# cause_dirty MIB: so much of the page cache may be dirty, half of it before it is written;
# cause_undirty STATUS: as before, and that status.
cause_dirty()
{
	below_dirty dirty $(($1 << 20)) && below_dirty dirty_background $(($1 << 19))
}

cause_undirty()
{
	bed_unwrite /proc/sys/vm/dirty_bytes
	bed_unwrite /proc/sys/vm/dirty_background_bytes
	return "$1"
}

# cause_queue_file BED FILE, cause_number BED: of its device: a setting, MAJOR:MINOR.
cause_queue_file()
{
	local dev

	dev=$(bed_get "$1" DEV)
	echo "/sys/block/${dev##*/}/$2"
}

cause_number() { cat "$(cause_queue_file "$1" dev)"; }

# cause_xfs BED SIZE [DIR [MKFS OPTION...]]: as bed_xfs, its image in DIR.
cause_xfs()
{
	local img=${3:-$BED_DIR}/$1.img dir=$BED_DIR/$1.xfs

	truncate -s "$2" "$img" && mkfs.xfs -q -f "${@:4}" "$img" >/dev/null 2>&1 &&
		mkdir "$dir" && bed_record "mount $dir" || return 1
	mount -o loop "$img" "$dir" || return 1
	bed_set "$1" XFS "$dir"
	bed_set "$1" DEV "$(findmnt -nro SOURCE "$dir")"
}

# cause_slow_xfs BED SIZE [MKFS OPTION...]: one whose device can be slow: a loop device
# whose file lies on another one, BED-below. A limit on that is time in the device here.
cause_slow_xfs()
{
	cause_xfs "$1-below" 600m && cause_xfs "$1" "$2" "$BED_DIR/$1-below.xfs" "${@:3}" &&
		losetup --direct-io=on "$(bed_get "$1" DEV)"
}

# ---- loads and reports ---------------------------------------------------------

# cause_mount BRICK FIO OPTION...: a client whose every request is one of the brick's, in
# its page cache (O_DIRECT reaches the brick's disk), and files for the load.
cause_mount()
{
	[ -n "$(bed_get "c$1" PID)" ] || bed_client "c$1" --direct-io "$1" || return 1
	bed_fio_prepare "$(bed_get "c$1" MNT)" "load$1" --size=2m "${@:2}"
}

# cause_watch BRICK FIO OPTION...: a report of the brick under that load.
cause_watch()
{
	measure_attach "$1" "$(bed_get "$1" PID)" || return 1
	bed_fio "$(bed_get "c$1" MNT)" "load$1" --size=2m --time_based \
		--runtime="$CAUSE_SECS" "${@:2}" || return 1
	measure_finish "$1"
}

# The brick that cases share; its bed is "plain".
cause_plain() { [ -n "$(bed_get plain PID)" ] || bed_brick plain; }

# cause_watch_plain NAME FIO OPTION...: its report, as NAME.json, and no limit on it.
cause_watch_plain()
{
	cause_watch plain "${@:2}" && mv "$BED_DIR/plain.json" "$BED_DIR/$1.json" &&
		cause_unlimit plain
}

cause_unlimit() { [ -z "$(bed_get "$1" CGROUP)" ] || bed_cgroup_end "$(bed_get "$1" CGROUP)"; }

# cause_fio BED FIO OPTION...: fio itself as the target, at work on BED's file system.
cause_fio()
{
	bed_launch "$1" fio --name="$1" --directory="$(bed_get "$1" XFS)" --thread=1 \
		--ioengine=psync --randseed=4711 --fallocate=none --time_based --runtime=600 \
		--bs=4k --size=2m --output="$BED_DIR/$1.fio" "${@:2}"
	bed_poll 20 cause_works "$1"
}

# Its files are laid out: the threads of its jobs run, beside its own and one for disks.
cause_works()
{
	local tasks

	bed_gone "$(bed_get "$1" PID)" && return
	tasks=("/proc/$(bed_get "$1" PID)/task"/*)
	[ ${#tasks[@]} -gt 2 ]
}

# cause_watch_process BED: a report of it at work, and its end.
cause_watch_process()
{
	measure_attach "$1" "$(bed_get "$1" PID)" || return 1
	sleep "$CAUSE_SECS"
	measure_finish "$1" && bed_stop "$1" KILL
}

# cause_end BED: its processes, its limits and its file systems.
cause_end()
{
	local bed

	cause_unlimit plain
	cause_unlimit "$1"
	for bed in "c$1" "$1"; do
		[ -z "$(bed_get "$bed" PID)" ] || bed_stop "$bed" KILL
	done
	bed_umount "$BED_DIR/c$1.mnt"
	for bed in "$1" "$1-below"; do
		bed_umount "$BED_DIR/$bed.xfs"
		rm -f "$BED_DIR/$bed.img"
	done
}
