// SPDX-License-Identifier: GPL-2.0-only
/*
 * aio.bpf.c: the layer "aio": operations of libaio, as the kernel goes on with them. Here a control
 * block of the process gets one of the kernel's, which tells when it has completed: XFS's events do
 * inside io_submit(), where it is known what a kiocb is a part of. Also notes the requests to the
 * block device that direct I/O is made of, io_uring's (uring.bpf.c) too. Begin and end as the
 * process sees them are in the calls (libaio.bpf.h).
 */
#include "aio.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define MERGED_BIOS 64 /* bios of one request that are looked at */

/* ---- in io_submit() ---------------------------------------------------- */

/* The operation that this thread is submitting with that kiocb; NULL: it is in another call. */
static __always_inline struct aio_op *find_submitted(struct kiocb *iocb, struct aio_key *key)
{
	struct aio_kiocb *aio = (struct aio_kiocb *)iocb;
	struct ledger *l = ledger_find();

	if (!l || !l->depth || l->open[0].layer != WIRE_LAYER_SYSCALL ||
	    l->open[0].sub != WIRE_SYS_io_submit)
		return NULL;
	key->id = BPF_CORE_READ(aio, ki_res.obj);
	key->tgid = bpf_get_current_pid_tgid() >> 32;
	return aio_find(key);
}

static __always_inline int on_rw(struct kiocb *iocb, int direct)
{
	struct aio_key key = {};
	struct aio_op *op;
	struct hit h = {};

	/* never NULL, but of a module's tracepoints the verifier does not believe that
	 * (838a10bd2ebf); most are of a thread that waits, which nothing else is looked at for */
	if (!iocb || !iocb->ki_complete || !traced_find_current(&h))
		return 0;
	traced_count(&h);
	op = find_submitted(iocb, &key);
	if (op) {
		op->in_call = !direct;
		if (direct)
			aio_take_off(op, &key, (__u64)iocb);
	}
	traced_end(&h);
	return 0;
}

SEC("tp_btf/xfs_file_buffered_read")
int BPF_PROG(on_aio_buffered_read, struct kiocb *iocb)
{
	return on_rw(iocb, 0);
}

SEC("tp_btf/xfs_file_buffered_write")
int BPF_PROG(on_aio_buffered_write, struct kiocb *iocb)
{
	return on_rw(iocb, 0);
}

SEC("tp_btf/xfs_file_direct_read")
int BPF_PROG(on_aio_direct_read, struct kiocb *iocb)
{
	return on_rw(iocb, 1);
}

SEC("tp_btf/xfs_file_direct_write")
int BPF_PROG(on_aio_direct_write, struct kiocb *iocb)
{
	return on_rw(iocb, 1);
}

/* ---- requests, and the end of it all ----------------------------------- */

struct bios {
	struct request *rq;
	struct bio *bio;
};

static long note_bio(__u32 i, struct bios *b)
{
	struct bio *bio = b->bio;
	struct aio_flight *flight;
	struct iomap_dio *dio;
	__u64 kiocb;

	if (!bio)
		return 1;
	/* of anything else than direct I/O it is any number, and nobody's kiocb */
	dio = BPF_CORE_READ(bio, bi_private);
	kiocb = (__u64)BPF_CORE_READ(dio, iocb);
	flight = bpf_map_lookup_elem(&aio_flights, &kiocb);
	if (flight)
		io_note_request(&flight->notes, b->rq);
	b->bio = BPF_CORE_READ(bio, bi_next);
	return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_aio_request, struct request *rq, int error, unsigned int nr_bytes)
{
	struct bios b = { .rq = rq, .bio = rq->bio };

	/* only the last part of what completes in parts */
	if (b.bio && nr_bytes >= rq->__data_len)
		bpf_loop(MERGED_BIOS, note_bio, &b, 0);
	return 0;
}

/* In whatever context the last of its requests has completed. io_uring's have an end of their own.
 */
static __always_inline int on_done(struct kiocb *iocb, __s64 result)
{
	__u64 kiocb = (__u64)iocb;
	struct aio_flight *flight;
	struct aio_key key;
	struct aio_op *op = aio_of_kiocb(kiocb, &key, &flight);

	if (!op || op->layer != WIRE_LAYER_AIO)
		return 0;
	if (!aio_end(op, &flight->notes, bpf_ktime_get_ns())) {
		aio_result(op, result);
		if (!op->frame)
			aio_enter(op);
	}
	op->kiocb = 0;
	bpf_map_delete_elem(&aio_flights, &kiocb);
	return 0;
}

SEC("tp_btf/iomap_dio_complete")
int BPF_PROG(on_dio_done__tp, struct kiocb *iocb, int error, ssize_t ret)
{
	return iocb->ki_complete ? on_done(iocb, ret) : 0;
}

/* Before 6.6 the event is not there yet. */
SEC("fentry/iomap_dio_complete")
int BPF_PROG(on_dio_done__fentry, struct iomap_dio *dio)
{
	return on_done(dio->iocb, dio->error ?: dio->size);
}
