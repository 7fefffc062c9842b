// SPDX-License-Identifier: GPL-2.0-only
/*
 * writeback.bpf.c: the layers "throttle" and "writeback": a thread that is made to wait because
 * there are too many dirty pages, or that waits for pages being written. Both are announced here;
 * how long the thread slept is measured (sched.bpf.c): the kernel's own figure, "pause", is what it
 * meant to sleep, which is 6 to 30 % less.
 */
#include "wait.bpf.h"
#include "worker.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/*
 * In a write it is the next sleep; where no call is open a span of its own: in a page fault, or of
 * io_uring's worker, whose sleep is a part of the operation that it has in hand (sched.bpf.c).
 */
static __always_inline void throttle(struct ledger *l, __u32 local_target)
{
	int worker = is_io_worker(bpf_get_current_task_btf());

	ledger_renew(l);
	if (l->depth && l->open[0].layer != WIRE_LAYER_THROTTLE) {
		wait_expect(l, WIRE_LAYER_THROTTLE, WIRE_THROTTLE_WRITE, 0);
		return;
	}
	if (l->depth) /* an earlier one, whose sleep was not seen to end */
		layer_drop(local_target, WIRE_LOST_UNPAIRED);
	l->depth = 0;
	span_push(l, WIRE_LAYER_THROTTLE, worker ? WIRE_THROTTLE_WRITE : WIRE_THROTTLE_FAULT,
		  bpf_ktime_get_ns());
}

static __always_inline int on_pause(long pause)
{
	struct hit h = {};
	struct ledger *l;

	if (pause <= 0 || !traced_find_current(&h))
		return 0; /* told, but not made to sleep */
	traced_count(&h);
	l = ledger_make(h.local_target);
	if (l)
		throttle(l, h.local_target);
	traced_end(&h);
	return 0;
}

/*
 * The dirty limits were arguments of their own before they became one structure; a kernel with that
 * has the verifier refuse the longer list, so it is tried first.
 */
SEC("tp_btf/balance_dirty_pages")
int on_throttle__12args(__u64 *ctx)
{
	return on_pause(ctx[10]);
}

SEC("tp_btf/balance_dirty_pages")
int on_throttle__8args(__u64 *ctx)
{
	return on_pause(ctx[6]);
}

/* Fires right before each sleep for a folio under writeback. */
SEC("tp_btf/folio_wait_writeback")
int BPF_PROG(on_wait, struct folio *folio, struct address_space *mapping)
{
	struct hit h = {};
	struct ledger *l = wait_ledger(&h);

	if (!l)
		return 0;
	wait_expect(l, WIRE_LAYER_WRITEBACK, WIRE_WRITEBACK_WAIT, (__u64)mapping);
	traced_end(&h);
	return 0;
}
