# shellcheck shell=bash
# shellcheck disable=SC2034 # CASE and WANTED are for the test
# SPDX-License-Identifier: Apache-2.0
#
# causes_brick.sh: bricks that are slow for one known reason each, and some that are not.
# Sourced after causes.sh, which says what a case is.

# ---- GlusterFS -----------------------------------------------------------------

cause_xlator()
{
	local height op us jobs rw=randwrite

	pick height iot top posix
	pick op writev readv
	draw us 500 5000
	draw jobs 1 6
	[ "$op" = writev ] || rw=randread
	CASE="$op held $us us at $height, $jobs jobs"
	WANTED='^xlator (.*\+)?slow(\+.*)?$'
	bed_brick "$1" --at "$height" "slow delay delay-us $us ops $op" &&
		cause_mount "$1" --direct=0 --numjobs="$jobs" &&
		cause_watch "$1" --direct=0 --numjobs="$jobs" --rw="$rw"
}

# Threads sleep: that one of them is too few is then not for lack of CPUs.
cause_pool()
{
	local op jobs us rw=randwrite

	pick op writev readv
	draw jobs 10 24
	draw us 50 250
	[ "$op" = writev ] || rw=randread
	CASE="one thread, $op of $us us and more, $jobs jobs"
	WANTED='^io-threads-pool io-threads$'
	bed_brick "$1" --io-threads 1 --at posix "disk delay delay-us $us ops $op" &&
		cause_mount "$1" --direct=0 --numjobs="$jobs" &&
		cause_watch "$1" --direct=0 --numjobs="$jobs" --rw="$rw"
}

# More requests than there may be threads, all of which sleep in one xlator: that is
# what the queue is for, whatever its length.
cause_sleepers()
{
	local jobs us

	draw jobs 24 40
	draw us 2000 6000
	CASE="$jobs jobs, 16 threads, writes held $us us"
	WANTED='^xlator (.*\+)?slow(\+.*)?$'
	bed_brick "$1" --at iot "slow delay delay-us $us ops writev" &&
		cause_mount "$1" --direct=0 --numjobs="$jobs" &&
		cause_watch "$1" --direct=0 --numjobs="$jobs" --rw=randwrite
}

# ---- CPU -----------------------------------------------------------------------

cause_cpu()
{
	local rw jobs quota

	pick rw randread randwrite randrw
	draw jobs 4 12
	draw quota 15 22
	CASE="$quota % of a CPU, $rw, $jobs jobs"
	WANTED='^cpu '
	cause_plain && cause_mount plain --direct=0 --numjobs="$jobs" &&
		cause_limit plain cpu.cfs_quota_us $((quota * 1000)) &&
		cause_watch_plain "$1" --direct=0 --numjobs="$jobs" --rw="$rw"
}

# Other processes on the CPU that the brick may use, which are before it.
cause_hogs()
{
	local rw jobs hogs i status

	pick rw randread randwrite randrw
	draw jobs 2 8
	draw hogs 1 4
	CASE="$hogs others of nice -12 on its CPU, $rw, $jobs jobs"
	WANTED='^cpu '
	bed_brick "$1" && cause_mount "$1" --direct=0 --numjobs="$jobs" || return 1
	taskset -apc 0 "$(bed_get "$1" PID)" >/dev/null || return 1
	for ((i = 1; i <= hogs; i++)); do
		bed_launch "hog$i" nice -n -12 taskset -c 0 sh -c 'while :; do :; done'
	done
	cause_watch "$1" --direct=0 --numjobs="$jobs" --rw="$rw"
	status=$?
	for ((i = 1; i <= hogs; i++)); do
		bed_stop "hog$i"
	done
	return "$status"
}

# ---- below posix ---------------------------------------------------------------

cause_held()
{
	local jobs iops

	draw jobs 1 8
	draw iops 120 240
	CASE="$iops reads a second of its device are allowed, $jobs jobs"
	WANTED='^block-held '
	cause_plain && cause_mount plain --numjobs="$jobs" &&
		cause_limit plain "$CAUSE_LIMIT" "$(cause_number plain) $iops" &&
		cause_watch_plain "$1" --numjobs="$jobs" --rw=randread
}

cause_device_brick()
{
	local jobs iops

	draw jobs 1 8
	draw iops 120 400
	CASE="a device of $iops reads a second, $jobs jobs"
	WANTED='^device block device$'
	cause_slow_xfs "$1" 300m && bed_brick "$1" && cause_mount "$1" --numjobs="$jobs" &&
		cause_limit "$1" "$CAUSE_LIMIT" "$(cause_number "$1-below") $iops" &&
		cause_watch "$1" --numjobs="$jobs" --rw=randread
}

# Each write is synced: the flushes of the device, and the log's waits for them.
cause_fsync()
{
	local jobs

	draw jobs 2 6
	CASE="fsync after each write, $jobs jobs"
	WANTED='^(device|log) '
	cause_plain && cause_mount plain --direct=0 --numjobs="$jobs" &&
		cause_watch_plain "$1" --direct=0 --numjobs="$jobs" --rw=randwrite --fsync=1
}

# lock_clients BRICK N: so many mounts, as folders 0, 1, ... of one, which is cBRICK's _MNT.
lock_clients()
{
	local i

	bed_set "c$1" MNT "$BED_DIR/c$1.all"
	mkdir "$BED_DIR/c$1.all"
	for ((i = 0; i < $2; i++)); do
		bed_client "c$1-$i" --direct-io "$1" &&
			ln -s "$(bed_get "c$1-$i" MNT)" "$BED_DIR/c$1.all/$i" || return 1
	done
}

# Parts of pages of one file that is not in the page cache: who writes one waits for the
# page to be read, with the file's lock; all the others wait for the lock. FUSE lets one
# write of a file pass at a time, so each comes from a client of its own.
cause_lock_brick()
{
	local jobs iops bs file i status

	draw jobs 4 7
	draw iops 150 300
	pick bs 512 1024 2048
	CASE="$jobs clients write $bs bytes to one file, $iops reads a second"
	WANTED='^inode-lock '
	bed_brick "$1" && lock_clients "$1" "$jobs" || return 1
	file=$(bed_get "$1" PATH)/shared
	dd if=/dev/zero of="$file" bs=1M count=64 conv=fdatasync status=none &&
		dd of="$file" oflag=nocache conv=notrunc,fdatasync count=0 status=none &&
		cause_limit "$1" "$CAUSE_LIMIT" "$(cause_number "$1") $iops" &&
		cause_watch "$1" --direct=0 --numjobs="$jobs" --bs="$bs" --size=64m \
			--rw=randwrite --filename_format="\$jobnum/shared"
	status=$?
	for ((i = 0; i < jobs; i++)); do
		bed_stop "c$1-$i" KILL
	done
	return "$status"
}

# What is dirty is written by the kernel's own threads, more slowly than clients write: a disk
# that takes it as fast as it comes would hold nobody back. A buffer that does not begin with a
# page reaches the brick as two writes that share one, which has to be read first.
cause_throttle_brick()
{
	local mib jobs rate

	draw mib 4 24
	draw jobs 1 4
	draw rate 10 40
	CASE="$jobs jobs write 128k, $mib MiB may be dirty, a device of $rate MiB a second"
	WANTED='^throttle '
	bed_brick "$1" &&
		cause_mount "$1" --direct=0 --numjobs="$jobs" --size=200m --bs=128k &&
		below_slow "$(cause_number "$1")" $((rate << 20)) && cause_dirty "$mib" &&
		cause_watch "$1" --direct=0 --numjobs="$jobs" --rw=write --bs=128k --size=200m \
			--iomem_align=4k
	rate=$?
	below_fast
	cause_undirty "$rate"
}

# ---- nothing -------------------------------------------------------------------

# Little is asked.
cause_healthy()
{
	local rw jobs rate bs

	pick rw randread randwrite randrw
	pick bs 4k 16k 64k
	draw jobs 1 2
	draw rate 60 150
	CASE="$rw of $bs, $jobs jobs of $rate a second"
	WANTED='^nothing-stands-out '
	cause_plain && cause_mount plain --direct=0 --numjobs="$jobs" --bs="$bs" &&
		cause_watch_plain "$1" --direct=0 --numjobs="$jobs" --rw="$rw" --bs="$bs" \
			--rate_iops="$rate"
}

# One request after another, as fast as it goes: what comes first is most of a little.
cause_busy()
{
	local rw bs

	pick rw randread randwrite randrw
	pick bs 4k 16k
	CASE="$rw of $bs, one after another"
	WANTED='^nothing-stands-out '
	cause_plain && cause_mount plain --direct=0 --bs="$bs" &&
		cause_watch_plain "$1" --direct=0 --rw="$rw" --bs="$bs"
}

cause_few()
{
	local rw rate

	pick rw randread randwrite
	draw rate 5 20
	CASE="$rw, $rate a second"
	WANTED='^not-enough-data '
	cause_plain && cause_mount plain --direct=0 &&
		cause_watch_plain "$1" --direct=0 --rw="$rw" --rate_iops="$rate"
}
