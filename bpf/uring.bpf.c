// SPDX-License-Identifier: GPL-2.0-only
/*
 * uring.bpf.c: the layer "io_uring": its reads, writes and syncs of files, from when the kernel
 * takes one off the ring to when its result is on the other ring, whoever does it: the thread that
 * submits, the kernel's own of a polled ring, a worker. Which requests to the block device they
 * consist of is noted by aio.bpf.c.
 */
#include "files.bpf.h"
#include "submitting.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* The operation, by its opcode (include/uapi/linux/io_uring.h); 0: none of a file. */
static __always_inline __u32 uring_sub(__u8 opcode)
{
	switch (opcode) {
	case IORING_OP_READV:
	case IORING_OP_READ_FIXED:
	case IORING_OP_READ:
		return WIRE_URING_READ;
	case IORING_OP_WRITEV:
	case IORING_OP_WRITE_FIXED:
	case IORING_OP_WRITE:
		return WIRE_URING_WRITE;
	case IORING_OP_FSYNC:
		return WIRE_URING_FSYNC;
	default:
		return 0;
	}
}

static __always_inline int on_begin(struct io_kiocb *req)
{
	__u64 now = bpf_ktime_get_ns();
	struct aio_key key = { .id = (__u64)req };
	struct aio_op *op;
	struct hit h = {};
	__u32 sub;

	if (!traced_find_current(&h))
		return 0;
	traced_count(&h);
	uring_end_submission(now);
	sub = uring_sub(req->opcode);
	key.tgid = bpf_get_current_pid_tgid() >> 32;
	op = sub ? aio_begin(&key, WIRE_LAYER_URING, sub, now, h.local_target) : NULL;
	if (op) {
		if (h.is_plain)
			aio_of_thread(op);
		aio_take_off(op, &key, key.id);
		uring_begin_submission(&key);
	}
	traced_end(&h);
	return 0;
}

SEC("tp_btf/io_uring_submit_req")
int BPF_PROG(on_uring_begin__req, struct io_kiocb *req)
{
	return on_begin(req);
}

/* As it was called before 6.4. */
SEC("tp_btf/io_uring_submit_sqe")
int BPF_PROG(on_uring_begin__sqe, struct io_kiocb *req)
{
	return on_begin(req);
}

/* All is submitted, and the thread waits for results. */
SEC("tp_btf/io_uring_cqring_wait")
int BPF_PROG(on_uring_wait)
{
	struct hit h = {};

	if (!traced_find_current(&h))
		return 0;
	traced_count(&h);
	uring_end_submission(bpf_ktime_get_ns());
	traced_end(&h);
	return 0;
}

/*
 * A result goes to the ring, from whichever thread. req is NULL for results of none; the kernel
 * keeps the request until this is over.
 */
static __always_inline int on_end(struct io_kiocb *req, __s32 result)
{
	__u64 kiocb = (__u64)req;
	struct aio_flight *flight;
	struct inode *inode;
	struct aio_key key;
	struct aio_op *op = aio_of_kiocb(kiocb, &key, &flight);
	struct hit h = {};

	if (!flight) {
		if (req && traced_find_current(&h) && uring_sub(BPF_CORE_READ(req, opcode)) &&
		    file_inode_of(BPF_CORE_READ(req, file)))
			layer_drop(h.local_target, WIRE_LOST_BEFORE);
		return 0;
	}
	if (!op || op->layer != WIRE_LAYER_URING)
		return 0;
	/* a fixed file, and since 5.19 any, is looked up after the operation has begun */
	inode = file_inode_of(BPF_CORE_READ(req, file));
	if (inode && !aio_end(op, &flight->notes, bpf_ktime_get_ns())) {
		aio_on_file(op, inode);
		aio_result(op, result);
		aio_enter(op);
	}
	aio_forget(&key, kiocb);
	return 0;
}

/* The result was three arguments of its own before it became one; see on_throttle for the order. */
SEC("tp_btf/io_uring_complete")
int on_uring_end__7args(__u64 *ctx)
{
	return on_end((struct io_kiocb *)ctx[1], (__s32)ctx[3]);
}

SEC("tp_btf/io_uring_complete")
int on_uring_end__cqe(__u64 *ctx)
{
	return on_end((struct io_kiocb *)ctx[1], BPF_CORE_READ((struct io_uring_cqe *)ctx[2], res));
}
