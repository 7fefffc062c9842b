// SPDX-License-Identifier: GPL-2.0-only
/*
 * xfs.bpf.c: the layer "xfs": what XFS does inside a call of a traced thread: waiting for the
 * inode's lock, for room in the log, for the log's buffers, for metadata, allocating, and the rest.
 * The events that a read or a write begins with have no counterpart at their end: XFS ends with the
 * call. Waits are announced here and timed where the thread sleeps (sched.bpf.c).
 */
#include "wait.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* ---- the inode's lock -------------------------------------------------- */

#define XFS_IOLOCK_EXCL   1 /* of lock_flags (fs/xfs/xfs_inode.h) */
#define XFS_IOLOCK_SHARED 2

/*
 * A write tells of its want at xfs_ilock, and has the lock at its own event, or before that where
 * it updates the file's time (6.18: xfs_file_buffered_write() traces after xfs_ilock_iocb() and
 * xfs_file_write_checks()). On the way there lie a few hundred ns, with cold caches two thousand;
 * who took longer than this was made to wait, spinning or asleep.
 */
#define LOCK_IS_FREE_NS 3000

SEC("tp_btf/xfs_ilock")
int BPF_PROG(on_ilock, struct xfs_inode *ip, unsigned int lock_flags)
{
	struct hit h = {};
	struct ledger *l;

	/* most are for the other locks of an inode: nothing else is looked at for those */
	if (!(lock_flags & (XFS_IOLOCK_EXCL | XFS_IOLOCK_SHARED)))
		return 0;
	l = wait_ledger(&h);
	if (!l)
		return 0;
	if (l->wait.mode == WAIT_MODE_NONE && !l->wait.lock.at)
		mark_set(l, &l->wait.lock, bpf_ktime_get_ns());
	traced_end(&h);
	return 0;
}

/* The lock is there: if it was waited for, that is a part. */
static __always_inline void end_lock(struct ledger *l, __u64 now)
{
	__s64 waited = mark_end(l, &l->wait.lock, now);

	if (waited > LOCK_IS_FREE_NS)
		part_add(l, part_meet(l, WIRE_LAYER_XFS, WIRE_XFS_LOCK), waited);
}

SEC("tp_btf/xfs_update_time")
int BPF_PROG(on_update_time)
{
	struct hit h = {};
	struct ledger *l = wait_ledger(&h);

	if (!l)
		return 0;
	end_lock(l, bpf_ktime_get_ns());
	traced_end(&h);
	return 0;
}

/* ---- reads, writes and syncs ------------------------------------------- */

static __always_inline void enter_xfs(struct ledger *l, __u8 mode, __u64 mapping)
{
	__u64 now = bpf_ktime_get_ns();
	int first = l->wait.mode == WAIT_MODE_NONE;

	end_lock(l, now);
	l->wait.mode = mode;
	l->wait.mapping = mapping;
	if (first)
		span_push(l, WIRE_LAYER_XFS, WIRE_XFS_SELF, now);
}

static __always_inline int begin_rw(struct kiocb *iocb, __u8 mode)
{
	struct hit h = {};
	struct ledger *l = wait_ledger(&h);

	/* never NULL, but of a module's tracepoints the verifier does not believe that
	 * (838a10bd2ebf) */
	if (!l || !iocb)
		return 0;
	enter_xfs(l, mode, (__u64)iocb->ki_filp->f_mapping);
	traced_end(&h);
	return 0;
}

SEC("tp_btf/xfs_file_buffered_read")
int BPF_PROG(on_buffered_read, struct kiocb *iocb)
{
	return begin_rw(iocb, WAIT_MODE_BUFFERED_READ);
}

SEC("tp_btf/xfs_file_buffered_write")
int BPF_PROG(on_buffered_write, struct kiocb *iocb)
{
	return begin_rw(iocb, WAIT_MODE_BUFFERED_WRITE);
}

SEC("tp_btf/xfs_file_direct_read")
int BPF_PROG(on_direct_read, struct kiocb *iocb)
{
	return begin_rw(iocb, WAIT_MODE_DIRECT_READ);
}

SEC("tp_btf/xfs_file_direct_write")
int BPF_PROG(on_direct_write, struct kiocb *iocb)
{
	return begin_rw(iocb, WAIT_MODE_DIRECT_WRITE);
}

SEC("tp_btf/xfs_file_fsync")
int BPF_PROG(on_fsync, struct xfs_inode *ip)
{
	struct hit h = {};
	struct ledger *l = wait_ledger(&h);

	if (!l || !ip)
		return 0;
	enter_xfs(l, WAIT_MODE_SYNC, (__u64)ip->i_vnode.i_mapping);
	traced_end(&h);
	return 0;
}

/* ---- allocation -------------------------------------------------------- */

/*
 * Space, be it for data, an inode or the file system's own trees, comes from an allocation group.
 * What counts is the time from reading its header, which takes that buffer's lock, until the group
 * has given an extent and accounted for it: waiting for who allocates there already, and the work
 * on the trees of free space. Reads of metadata on the way are parts of their own. It does not
 * include groups that had nothing (only the last header read has an extent to follow), putting the
 * extent into the file, nor the mere reservation that a buffered write makes: its space is
 * allocated when it is written back, in the call of who does that. These two events stand there
 * from 6.1 to 6.18 (xfs_alloc_fix_freelist(), xfs_ag_resv_alloc_extent()).
 */
SEC("tp_btf/xfs_alloc_read_agf")
int BPF_PROG(on_group)
{
	struct hit h = {};
	struct ledger *l = wait_ledger(&h);

	if (!l)
		return 0;
	mark_set(l, &l->wait.alloc, bpf_ktime_get_ns());
	traced_end(&h);
	return 0;
}

SEC("tp_btf/xfs_ag_resv_alloc_extent")
int BPF_PROG(on_extent)
{
	struct hit h = {};
	struct ledger *l = wait_ledger(&h);
	__s64 own_ns;

	if (!l)
		return 0;
	own_ns = mark_end(l, &l->wait.alloc, bpf_ktime_get_ns());
	if (own_ns > 0)
		part_add(l, part_meet(l, WIRE_LAYER_XFS, WIRE_XFS_ALLOC), own_ns);
	traced_end(&h);
	return 0;
}

/* ---- the log ----------------------------------------------------------- */

static __always_inline int announce(__u32 sub, __u64 key)
{
	struct hit h = {};
	struct ledger *l = wait_ledger(&h);

	if (!l)
		return 0;
	wait_expect(l, WIRE_LAYER_XFS, sub, key);
	traced_end(&h);
	return 0;
}

SEC("tp_btf/xfs_log_grant_sleep")
int BPF_PROG(on_grant)
{
	return announce(WIRE_XFS_GRANT, 0);
}

SEC("tp_btf/xfs_log_cil_wait")
int BPF_PROG(on_cil_wait)
{
	return announce(WIRE_XFS_CIL, 0);
}

/* The log's writes are bios with the iclog as bi_private. */
SEC("tp_btf/xlog_iclog_wait_on")
int BPF_PROG(on_iclog_wait, struct xlog_in_core *iclog)
{
	return announce(WIRE_XFS_ICLOG, (__u64)iclog);
}

SEC("tp_btf/xfs_buf_iowait")
int BPF_PROG(on_buf_wait, struct xfs_buf *bp)
{
	return announce(WIRE_XFS_META, (__u64)bp);
}

/*
 * A forced log is first pushed out of the CIL by a worker, which is slept for without an event:
 * until the call ends, sleeps that nothing else announced are for that.
 */
SEC("tp_btf/xfs_log_force")
int BPF_PROG(on_force)
{
	struct hit h = {};
	struct ledger *l = wait_ledger(&h);

	if (!l)
		return 0;
	l->wait.base = part_meet(l, WIRE_LAYER_XFS, WIRE_XFS_FORCE);
	traced_end(&h);
	return 0;
}
