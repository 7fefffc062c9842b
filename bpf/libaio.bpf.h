/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libaio.bpf.h: what the calls of libaio tell: io_submit() which operations begin, and which have
 * completed when it is over; io_getevents() which ones the process knows of by now. For who traces
 * the calls (syscall.bpf.c). The kernel's side of an operation is aio.bpf.c's.
 */
#ifndef BRICKTOP_LIBAIO_BPF_H
#define BRICKTOP_LIBAIO_BPF_H

#include "aio.bpf.h"
#include "files.bpf.h"

#define AIO_BATCH 1024 /* operations of one call; beyond them it is counted as a loss */

/* What GlusterFS's posix hangs on its control blocks (posix-aio.c: struct posix_aio_cb, 4.0 to 11).
 */
#define POSIX_AIO_FRAME 0x40

/* One call: its arguments, and what is known of it. */
struct aio_call {
	__u64 at; /* of the array of control blocks, or of events */
	__u64 begin, now;
	__s64 accepted; /* of the control blocks; -1: not known yet */
	struct wire_proc *proc;
	__u32 tgid, target;
};

/* The operation of a control block, by its opcode (include/uapi/linux/aio_abi.h); 0: none of a
 * file. */
static __always_inline __u32 aio_sub(__u32 opcode)
{
	switch (opcode) {
	case IOCB_CMD_PREAD:
	case IOCB_CMD_PREADV:
		return WIRE_AIO_READ;
	case IOCB_CMD_PWRITE:
	case IOCB_CMD_PWRITEV:
		return WIRE_AIO_WRITE;
	case IOCB_CMD_FSYNC:
	case IOCB_CMD_FDSYNC:
		return WIRE_AIO_FSYNC;
	default:
		return 0;
	}
}

/*
 * What is looked at of a control block (struct iocb, from aio_lio_opcode on) and of an event
 * (struct io_event, from obj on): all of them would be more stack than the functions below have
 * together.
 */
struct aio_what {
	__u16 opcode;
	__s16 prio;
	__u32 fd;
};

struct aio_event {
	__u64 obj;
	__s64 res;
};

static __always_inline int read_what(__u64 block, struct aio_what *what)
{
	return bpf_probe_read_user(
		what, sizeof(*what),
		(const void *)(block + __builtin_offsetof(struct iocb, aio_lio_opcode)));
}

/* ---- io_submit --------------------------------------------------------- */

static __always_inline int read_block(const struct aio_call *c, __u32 i, struct aio_key *key)
{
	key->tgid = c->tgid;
	return bpf_probe_read_user(&key->id, 8, (const void *)(c->at + 8 * i)) || !key->id;
}

static long begin_op(__u32 i, struct aio_call *c)
{
	struct aio_key key = {};
	struct aio_what what;
	struct inode *inode;
	struct aio_op *op;
	__u32 sub;

	if (read_block(c, i, &key) || read_what(key.id, &what)) {
		layer_drop(c->target, WIRE_LOST_UNREADABLE);
		return 0;
	}
	sub = aio_sub(what.opcode);
	inode = sub ? file_inode_of_fd(what.fd) : NULL;
	if (!inode)
		return 0;
	op = aio_begin(&key, WIRE_LAYER_AIO, sub, c->begin, c->target);
	if (!op)
		return 0;
	aio_on_file(op, inode);
	if (c->proc && c->proc->root == WIRE_ROOT_LOCAL)
		aio_of_thread(op);
	else if (c->proc && c->proc->root == WIRE_ROOT_BRICK)
		bpf_probe_read_user(&op->frame, 8, (const void *)(key.id + POSIX_AIO_FRAME));
	return 0;
}

/* Those that no other thread has dealt with since. */
static long end_submission(__u32 i, struct aio_call *c)
{
	struct aio_key key = {};
	struct aio_op *op;

	if (read_block(c, i, &key))
		return 0;
	op = aio_find(&key);
	if (!op || op->done.span.begin != c->begin ||
	    op->done.tid != (__u32)bpf_get_current_pid_tgid())
		return 0;
	if (i >= c->accepted) {
		aio_forget(&key, op->kiocb);
		return 0;
	}
	aio_end_call(op, c->now);
	return 0;
}

static __always_inline int is_aio_on(void)
{
	__u32 zero = 0, *on = bpf_map_lookup_elem(&aio_on, &zero);

	return on && *on;
}

/* How many of a call's control blocks or events are looked at. */
static __always_inline __u32 batch(const struct aio_call *c, __u64 n)
{
	if (n <= AIO_BATCH)
		return n;
	layer_drop(c->target, WIRE_LOST_SKIPPED);
	return AIO_BATCH;
}

/*
 * io_submit() is entered; at: of its array. These are global functions: each is verified by itself.
 */
__noinline int aio_submit(__u64 at, __u64 n, __u64 begin, __u32 target)
{
	struct aio_call c = { .at = at, .begin = begin, .target = target };

	if (!is_aio_on())
		return 0;
	c.tgid = bpf_get_current_pid_tgid() >> 32;
	c.proc = proc_get(c.tgid);
	bpf_loop(batch(&c, n), begin_op, &c, 0);
	return 0;
}

/* ... and is over, with so many accepted. */
__noinline int aio_submitted(__u64 at, __u64 n, __u64 begin, __s64 accepted)
{
	struct aio_call c = { .at = at, .begin = begin, .accepted = accepted };

	if (!is_aio_on())
		return 0;
	c.now = bpf_ktime_get_ns();
	c.tgid = bpf_get_current_pid_tgid() >> 32;
	bpf_loop(n < AIO_BATCH ? n : AIO_BATCH, end_submission, &c, 0);
	return 0;
}

/* ---- io_getevents ------------------------------------------------------ */

/* An operation that nothing is known of was begun before bricktop came, if it is one of a file. */
static __always_inline void count_before(const struct aio_call *c, __u64 block)
{
	struct aio_what what;

	if (!read_what(block, &what) && aio_sub(what.opcode) && file_inode_of_fd(what.fd))
		layer_drop(c->target, WIRE_LOST_BEFORE);
}

static long reap_op(__u32 i, struct aio_call *c)
{
	struct aio_key key = { .tgid = c->tgid };
	struct aio_event event;
	struct aio_op *op;
	__u64 at = c->at + sizeof(struct io_event) * i;

	if (bpf_probe_read_user(&event, sizeof(event),
				(const void *)(at + __builtin_offsetof(struct io_event, obj)))) {
		layer_drop(c->target, WIRE_LOST_UNREADABLE);
		return 0;
	}
	key.id = event.obj;
	op = aio_find(&key);
	if (!op) {
		count_before(c, key.id);
		return 0;
	}
	aio_end_unseen(op, c->now);
	if (!op->entered) {
		aio_result(op, event.res);
		if (op->frame)
			aio_join(op, c->tgid, c->now);
		else
			aio_enter(op);
		if (op->frame && c->proc)
			c->proc->has_aio = 1;
	}
	aio_forget(&key, op->kiocb);
	return 0;
}

/* io_getevents() has returned so many events. */
__noinline int aio_reap(__u64 at, __u64 n, __u32 target)
{
	struct aio_call c = { .at = at, .target = target };

	if (!is_aio_on())
		return 0;
	c.now = bpf_ktime_get_ns();
	c.tgid = bpf_get_current_pid_tgid() >> 32;
	c.proc = proc_get(c.tgid);
	bpf_loop(batch(&c, n), reap_op, &c, 0);
	return 0;
}

#endif
