# shellcheck shell=bash
# shellcheck disable=SC2034 # CASE, WANTED and ALSO are for the test
# SPDX-License-Identifier: Apache-2.0
#
# causes_process.sh: plain processes on XFS that are slow for one known reason each, and
# one that is not. The process is fio. Sourced after causes.sh, which says what a case is.

# Large writes to one file.
cause_lock()
{
	local jobs bs

	draw jobs 4 12
	pick bs 256k 512k 1m 2m
	CASE="$jobs threads write $bs to one file"
	WANTED='^inode-lock '
	cause_xfs "$1" 400m &&
		cause_fio "$1" --filename=one --size=64m --rw=randwrite --bs="$bs" \
			--numjobs="$jobs" && cause_watch_process "$1"
}

# Creates on the smallest log that mkfs makes of a small XFS, more than its device takes:
# the log has no room until what is in it has been written elsewhere. That is work of the
# kernel's own threads, so the limit is on everybody.
cause_log()
{
	local threads iops file number i

	draw threads 6 12
	draw iops 60 140
	CASE="$threads threads create on a log of 900 blocks, $iops writes a second"
	WANTED='^log '
	cause_slow_xfs "$1" 299m --unsupported -m reflink=0,rmapbt=0 -l size=900b || return 1
	for ((i = 0; i < threads; i++)); do
		mkdir "$BED_DIR/$1.xfs/$i"
	done
	number=$(cause_number "$1-below")
	file=$(bed_cgroups blkio)/blkio.throttle.write_iops_device || return 1
	bed_write "$file" "$number $iops" "$file" "$number 0" &&
		cause_fio "$1" --ioengine=filecreate --filesize=4k --nrfiles=15000 \
			--filename_format="\$jobnum/\$filenum" --numjobs="$threads" &&
		cause_watch_process "$1"
	i=$?
	bed_unwrite "$file"
	return "$i"
}

cause_throttle()
{
	local mib jobs bs

	draw mib 4 24
	draw jobs 1 4
	pick bs 64k 128k 256k
	CASE="$jobs threads write $bs, $mib MiB may be dirty"
	WANTED='^throttle '
	cause_xfs "$1" 4g && cause_dirty "$mib" &&
		cause_fio "$1" --size=600m --rw=write --bs="$bs" --numjobs="$jobs" &&
		cause_watch_process "$1"
	cause_undirty "$?"
}

# The kernel's workers write for it, and are held back. They take one write of a file at a
# time, so most of what an operation waits for is its turn.
cause_throttle_uring()
{
	local mib depth bs

	draw mib 4 24
	draw depth 2 16
	pick bs 64k 128k 256k
	CASE="io_uring writes $bs, $depth in flight, $mib MiB may be dirty"
	WANTED='^throttle |^aio io_uring write$'
	cause_xfs "$1" 4g && cause_dirty "$mib" &&
		cause_fio "$1" --size=600m --rw=write --bs="$bs" --ioengine=io_uring \
			--iodepth="$depth" && cause_watch_process "$1"
	cause_undirty "$?"
}

cause_device()
{
	local jobs iops

	draw jobs 1 6
	draw iops 120 400
	CASE="a device of $iops reads a second, $jobs jobs"
	WANTED='^device block device$'
	cause_slow_xfs "$1" 300m &&
		cause_fio "$1" --rw=randread --direct=1 --numjobs="$jobs" &&
		cause_limit "$1" "$CAUSE_LIMIT" "$(cause_number "$1-below") $iops" &&
		cause_watch_process "$1"
}

# More readers than the 128 requests that a loop device takes at a time: the others' wait
# in its scheduler.
cause_queue()
{
	local jobs iops file

	draw jobs 500 620
	draw iops 2000 4000
	CASE="$jobs readers, a device of $iops reads a second"
	WANTED='^block-queue '
	cause_slow_xfs "$1" 300m || return 1
	file=$(cause_queue_file "$1" queue/scheduler)
	bed_write "$file" mq-deadline "$file" none &&
		echo 1024 >"${file%/*}/nr_requests" &&
		cause_fio "$1" --filename=one --size=16m --rw=randread --direct=1 \
			--numjobs="$jobs" &&
		cause_limit "$1" "$CAUSE_LIMIT" "$(cause_number "$1-below") $iops" &&
		cause_watch_process "$1"
	jobs=$?
	bed_unwrite "$file"
	return "$jobs"
}

# One file of many lies on a slow device: reads of it are most of the time, and held back. The
# same inode number on the other device is not that file.
cause_file()
{
	local jobs iops files i names=slow/one

	draw jobs 2 4
	draw iops 20 40
	draw files 20 40
	CASE="$jobs jobs read $files files and one of $iops reads a second"
	WANTED='^block-held '
	ALSO='^file .*/one$' # what is slow there and where it lies are both true
	for ((i = 1; i <= files; i++)); do
		names+=:$i
	done
	cause_xfs "$1-below" 300m && cause_xfs "$1" 300m || return 1
	ln -s "$BED_DIR/$1-below.xfs" "$BED_DIR/$1.xfs/slow"
	cause_fio "$1" --filename="$names" --size=$(((files + 1) * 256))k --rw=randread \
		--direct=1 --numjobs="$jobs" &&
		cause_limit "$1" "$CAUSE_LIMIT" "$(cause_number "$1-below") $iops" &&
		cause_watch_process "$1"
}

# cause_async BED ENGINE: direct reads, so many in flight; its thread waits for any of them.
cause_async()
{
	local depth iops

	draw depth 1 8
	draw iops 120 240
	CASE="$2, $depth in flight, $iops reads a second of its device are allowed"
	WANTED='^block-held '
	cause_xfs "$1" 300m &&
		cause_fio "$1" --ioengine="$2" --iodepth="$depth" --rw=randread --direct=1 &&
		cause_limit "$1" "$CAUSE_LIMIT" "$(cause_number "$1") $iops" &&
		cause_watch_process "$1"
}

cause_libaio() { cause_async "$1" libaio; }
cause_io_uring() { cause_async "$1" io_uring; }

# It reads what is in the page cache, now and then.
cause_idler()
{
	local rate

	draw rate 100 2000
	CASE="a process that reads $rate cached blocks a second"
	WANTED='^nothing-stands-out '
	cause_xfs "$1" 300m &&
		cause_fio "$1" --rw=randread --invalidate=0 --rate_iops="$rate" &&
		cause_watch_process "$1"
}
