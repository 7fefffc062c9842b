/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * aio.bpf.h: asynchronous operations under way, libaio's and io_uring's: from the call that submits
 * one to its completion, whichever thread that is on, and what of that time which requests to the
 * block device took. An operation is known by its control block; the kernel's own, a kiocb, leads
 * to it where no process is current. Owns their accounting; which events begin and end one is the
 * business of those who include this.
 */
#ifndef BRICKTOP_AIO_BPF_H
#define BRICKTOP_AIO_BPF_H

#include "joined.bpf.h"
#include "uses.bpf.h"
#include "wait.bpf.h"

/* Whose operation: id is the process's control block (libaio) or the kernel's request (io_uring).
 */
struct aio_key {
	__u64 id;
	__u32 tgid, pad;
};

struct aio_op {
	struct joined done;
	__u64 submitted; /* since when the call that submits it is over; 0: it is not yet */
	__u64 frame;     /* of a request that waits for it; 0: none does */
	__u64 kiocb;     /* the kernel's control block; 0: not known */
	__u64 throttled_ns;
	__u32 throttles; /* how often the worker that has it in hand was made to wait */
	__u16 target;
	__u8 layer, sub;
	__u8 in_call;  /* 1: it completes inside the call that submits it */
	__u8 entered;  /* 1: it is in the figures, and here only until its result is fetched */
	__u8 is_plain; /* 1: its process is no GlusterFS, and uid and comm are known */
	__u8 pad;
	__u32 dev; /* of the file, which is done.detail's */
	__u32 uid; /* of the thread that submits it, which is done.tid */
	char comm[16];
};

/*
 * Both push out the oldest where there is no room: an operation that is lost by that is counted
 * when it completes; where its kiocb is, it ends when the process fetches the result.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct aio_key);
	__type(value, struct aio_op);
} aio_ops SEC(".maps");

struct aio_flight {
	struct aio_key op;
	struct io_notes notes; /* requests to the block device that were for it */
};

/* By kiocb. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct aio_flight);
} aio_flights SEC(".maps");

/* Values with nothing in them: too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct aio_op);
} aio_no_op SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct aio_flight);
} aio_no_flight SEC(".maps");

/* 1 while the programs that see libaio's operations complete are attached: set by the collector. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} aio_on SEC(".maps");

/* Not one that was under way while layers were off: it was not seen whole. */
static __always_inline struct aio_op *aio_find(const struct aio_key *key)
{
	struct aio_op *op = bpf_map_lookup_elem(&aio_ops, key);

	return op && op->done.span.begin >= layers_since() ? op : NULL;
}

/* That of a kiocb is not found: was it pushed out? */
static __always_inline void aio_miss(const struct aio_key *key)
{
	if (!bpf_map_lookup_elem(&aio_ops, key))
		layer_drop(WIRE_MAX_TARGETS, WIRE_LOST_MAP_FULL);
}

/*
 * The operation under way that a kiocb is of, or NULL. *ret_flight NULL: the kiocb is of none that
 * was seen to begin.
 */
static __always_inline struct aio_op *aio_of_kiocb(__u64 kiocb, struct aio_key *ret_key,
						   struct aio_flight **ret_flight)
{
	struct aio_flight *flight = bpf_map_lookup_elem(&aio_flights, &kiocb);
	struct aio_op *op;

	*ret_flight = flight;
	if (!flight)
		return NULL;
	*ret_key = flight->op;
	op = aio_find(ret_key);
	if (op && op->kiocb == kiocb)
		return op;
	aio_miss(ret_key);
	bpf_map_delete_elem(&aio_flights, &kiocb);
	return NULL;
}

/* ---- end --------------------------------------------------------------- */

/* Time inside an operation, below its outermost part, in so many pieces. */
static __always_inline void add_parts(struct span_detail *d, __u32 layer, __u32 sub, __u64 ns,
				      __u32 calls)
{
	__u64 at = d->n_parts;

	barrier_var(at);
	if (!ns || at >= WIRE_SPAN_PARTS)
		return;
	barrier_var(at);
	d->part[at].layer = layer;
	d->part[at].sub = sub;
	d->part[at].parent_part = 0;
	d->part[at].calls = calls;
	d->part[at].self_ns = ns;
	d->part[at].incl_ns = ns;
	d->part[0].self_ns -= ns;
	d->n_parts = at + 1;
}

static __always_inline void add_part(struct span_detail *d, __u32 layer, __u32 sub, __u64 ns)
{
	add_parts(d, layer, sub, ns, 1);
}

/* Whoever has the operation of this kiocb in hand was made to wait for dirty pages. */
static __always_inline void aio_throttled(__u64 kiocb, __u64 ns)
{
	struct aio_flight *flight;
	struct aio_key key;
	struct aio_op *op = aio_of_kiocb(kiocb, &key, &flight);

	if (!op)
		return;
	op->throttled_ns += ns;
	op->throttles++;
}

/*
 * Split an operation's time; each moment counts once. While requests for it are in flight, several
 * perhaps, where the one furthest is; else, while its thread is in the call, submitting; later,
 * until the last of the requests has begun, it is held back. A worker that does it in the page
 * cache may be throttled. What is left is its own: completing, or in flight of which nothing is
 * known. A global function: verified by itself.
 */
__noinline int aio_split(struct aio_op *op, struct io_notes *notes)
{
	struct io_sums sums = {};
	struct span_detail *d;
	__u64 begin, end, called, early = 0, late = 0;

	if (!op)
		return 0;
	d = &op->done.detail;
	begin = op->done.span.begin;
	end = op->done.span.end;
	d->n_parts = 1;
	d->part[0].layer = op->layer;
	d->part[0].sub = op->sub;
	d->part[0].parent_part = NO_PART;
	d->part[0].calls = 1;
	d->part[0].incl_ns = d->part[0].self_ns = end - begin;
	called = op->submitted ?: end;
	if (called > end)
		called = end;
	if (notes && notes->n > IO_NOTES) {
		/* not all were kept: its time is not told apart */
		layer_drop(op->target, WIRE_LOST_SKIPPED);
		notes = NULL;
	}
	if (notes && notes->n) {
		io_unite(&sums, notes, begin, called);
		early = sums.any_ns;
		io_unite(&sums, notes, begin, end);
		if (sums.last_done > called)
			late = sums.last_done - called;
		if (early > sums.any_ns)
			early = sums.any_ns;
		union_nest(&sums, early + late);
	}
	add_part(d, op->layer, op->layer == WIRE_LAYER_URING ? WIRE_URING_SUBMIT : WIRE_AIO_SUBMIT,
		 called - begin - early);
	add_part(d, WIRE_LAYER_BLOCK, WIRE_BLK_HELD, late - (sums.any_ns - early));
	add_part(d, WIRE_LAYER_BLOCK, WIRE_BLK_QUEUE, sums.any_ns - sums.past_ns);
	add_part(d, WIRE_LAYER_BLOCK, WIRE_BLK_ANY, sums.past_ns - sums.issued_ns);
	add_part(d, WIRE_LAYER_BLOCK, WIRE_BLK_DEVICE, sums.device_ns);
	add_part(d, WIRE_LAYER_BLOCK, WIRE_BLK_FLUSH, sums.issued_ns - sums.device_ns);
	/* it may have begun while the submitting thread was still in its call */
	add_parts(d, WIRE_LAYER_THROTTLE, WIRE_THROTTLE_WRITE,
		  op->throttled_ns < d->part[0].self_ns ? op->throttled_ns : d->part[0].self_ns,
		  op->throttles);
	return 0;
}

/* What came of it, as the process gets it: bytes, or an error below 0. */
static __always_inline void aio_result(struct aio_op *op, __s64 result)
{
	op->done.span.bytes = result > 0 ? result : 0;
	if (result < 0)
		op->done.span.state |= SPAN_FAILED;
}

/* It has completed. 0, or -1: before it began. */
static __always_inline int aio_end(struct aio_op *op, struct io_notes *notes, __u64 now)
{
	struct span *span = &op->done.span;

	if (now < span->begin) {
		layer_drop(op->target, WIRE_LOST_ABSURD);
		return -1;
	}
	span->end = now;
	span->state = op->layer << SPAN_LAYER_SHIFT | op->sub << SPAN_SUB_SHIFT | SPAN_ENTERED;
	aio_split(op, notes);
	return 0;
}

/*
 * Its completion was not seen: that was now, at the latest, or within its call. Not told apart
 * where the call ends, as another thread may be here meanwhile.
 */
static __always_inline void aio_end_unseen(struct aio_op *op, __u64 now)
{
	__u64 called = op->submitted;

	if (op->done.span.end)
		return;
	if (op->in_call && called && called < now)
		now = called;
	if (aio_end(op, NULL, now))
		op->entered = 1;
}

static __always_inline __u32 aio_use_class(__u32 layer, __u32 sub)
{
	int is_uring = layer == WIRE_LAYER_URING;

	if (sub == (is_uring ? WIRE_URING_READ : WIRE_AIO_READ))
		return WIRE_USE_READ;
	if (sub == (is_uring ? WIRE_URING_WRITE : WIRE_AIO_WRITE))
		return WIRE_USE_WRITE;
	return WIRE_USE_SYNC;
}

/*
 * A plain process's operation that has completed: in the rows of its file and of the thread that
 * submitted it (where it completes anybody may be current). A global function: verified by itself,
 * and its stack is free again before the rest needs some.
 */
__noinline int aio_use(struct aio_op *op)
{
	struct wire_use_key key = {};
	struct use use = {};
	struct wire_app app = {};
	__u64 id[2];

	if (!op)
		return 0;
	use.dur_ns = op->done.span.end - op->done.span.begin;
	use.bytes = op->done.span.bytes;
	use.failed = !!(op->done.span.state & SPAN_FAILED);
	use.class = aio_use_class(op->layer, op->sub);
	app.pid = op->done.tid;
	app.uid = op->uid;
	id[0] = op->done.detail.file;
	id[1] = op->dev;
	key.target = op->target;
	key.kind = WIRE_FILE_INODE;
	__builtin_memcpy(key.id, id, sizeof(key.id));
	use_file(&key, &use, &app);
	key.kind = 1;
	__builtin_memcpy(key.id, &app, sizeof(key.id));
	use_app(&key, &use, op->comm);
	return 0;
}

static __always_inline void aio_enter(struct aio_op *op)
{
	op->entered = 1;
	if (op->is_plain)
		aio_use(op);
	joined_drop(&op->done, op->target);
}

/* Its control block is used anew: what has completed since was fetched without a call. */
static __always_inline void aio_outlive(struct aio_op *op)
{
	if (op->in_call && op->submitted)
		aio_end_unseen(op, op->submitted);
	if (!op->done.span.end)
		layer_drop(op->target, WIRE_LOST_UNPAIRED);
	else if (!op->entered)
		aio_enter(op);
}

/* ---- begin ------------------------------------------------------------- */

/* An operation begins. NULL where there is no room. */
static __always_inline struct aio_op *aio_begin(const struct aio_key *key, __u32 layer, __u32 sub,
						__u64 begin, __u32 target)
{
	__u32 zero = 0;
	struct aio_op *op = aio_find(key), *blank = bpf_map_lookup_elem(&aio_no_op, &zero);

	if (op)
		aio_outlive(op);
	if (!blank)
		return NULL;
	bpf_map_update_elem(&aio_ops, key, blank, BPF_ANY);
	/* as long as it has no begin it counts as one from before layers were on: see aio_find() */
	op = bpf_map_lookup_elem(&aio_ops, key);
	if (!op) {
		layer_drop(target, WIRE_LOST_MAP_FULL);
		return NULL;
	}
	op->done.span.begin = begin;
	op->layer = layer;
	op->sub = sub;
	op->target = target;
	op->done.tid = bpf_get_current_pid_tgid();
	return op;
}

static __always_inline void aio_on_file(struct aio_op *op, struct inode *inode)
{
	op->done.detail.file = BPF_CORE_READ(inode, i_ino);
	op->dev = BPF_CORE_READ(inode, i_sb, s_dev);
}

/* It is the current thread's, of a process that is no GlusterFS. */
static __always_inline void aio_of_thread(struct aio_op *op)
{
	op->is_plain = 1;
	op->uid = bpf_get_current_uid_gid();
	bpf_get_current_comm(op->comm, sizeof(op->comm));
}

/* The kernel's control block of an operation: from now on requests for it are noted. */
static __always_inline void aio_take_off(struct aio_op *op, const struct aio_key *key, __u64 kiocb)
{
	__u32 zero = 0;
	struct aio_flight *flight = bpf_map_lookup_elem(&aio_no_flight, &zero);

	if (!flight || op->kiocb == kiocb)
		return; /* met again: tried anew, or by the other way */
	bpf_map_update_elem(&aio_flights, &kiocb, flight, BPF_ANY);
	flight = bpf_map_lookup_elem(&aio_flights, &kiocb);
	if (!flight)
		return;
	flight->op = *key;
	op->kiocb = kiocb;
}

/* The thread is through with submitting it. */
static __always_inline void aio_end_call(struct aio_op *op, __u64 now)
{
	if (!op->submitted && op->done.tid == (__u32)bpf_get_current_pid_tgid())
		op->submitted = now;
}

/* An operation is over, or was never one. */
static __always_inline void aio_forget(const struct aio_key *key, __u64 kiocb)
{
	if (kiocb)
		bpf_map_delete_elem(&aio_flights, &kiocb);
	bpf_map_delete_elem(&aio_ops, key);
}

/* The request that waits for it comes for it, by the frame's address. */
static __always_inline void aio_join(struct aio_op *op, __u32 tgid, __u64 now)
{
	struct joined_key key = { .frame = op->frame, .tgid = tgid };
	struct joined *earlier = bpf_map_lookup_elem(&joins, &key);

	/* of an earlier use of the frame: nobody has come for that */
	if (earlier)
		joined_drop(earlier, op->target);
	op->done.reaped = now;
	if (bpf_map_update_elem(&joins, &key, &op->done, BPF_ANY)) {
		layer_drop(op->target, WIRE_LOST_MAP_FULL);
		joined_drop(&op->done, op->target);
	}
}

#endif
