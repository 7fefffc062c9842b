// SPDX-License-Identifier: GPL-2.0-only
/*
 * sched.bpf.c: the layer "sched", and the clock of every wait: a thread that leaves its CPU inside
 * a span is timed until it is back, and the time goes to what it slept for: to the wait that a
 * layer announced, to I/O, or to the run queue. sched_switch fires for every thread of the host:
 * whose it is is one look at an array.
 */
#include "aio.bpf.h"
#include "worker.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define STACK_KEY(task) ((__u64)(task)->stack)

/* Whose I/O ends the sleep that begins; 0: not known. */
static __always_inline __u64 io_key(const struct ledger_wait *w, struct task_struct *task)
{
	if (w->as == WAIT_AS_NEXT)
		return w->key;
	switch (w->mode) {
	case WAIT_MODE_BUFFERED_READ:
	case WAIT_MODE_BUFFERED_WRITE:
		return w->mapping;
	case WAIT_MODE_DIRECT_READ:
	case WAIT_MODE_DIRECT_WRITE:
		return (__u64)task;
	default:
		return STACK_KEY(task);
	}
}

/* From now on requests with this key are noted. */
static __always_inline void note_requests(__u64 key, __u32 local_target)
{
	struct io_notes *notes;
	__u32 zero = 0;

	if (!key || bpf_map_lookup_elem(&io_waited, &key))
		return;
	notes = bpf_map_lookup_elem(&io_nothing, &zero);
	if (notes && bpf_map_update_elem(&io_waited, &key, notes, BPF_NOEXIST) == -12 /* ENOMEM */)
		layer_drop(local_target, WIRE_LOST_MAP_FULL);
}

static __always_inline enum wait_as wait_kind(const struct ledger_wait *w, struct task_struct *task,
					      int voluntary)
{
	if (!voluntary)
		return WAIT_AS_RUNNABLE;
	if (w->next != NO_PART)
		return WAIT_AS_NEXT;
	if (BPF_CORE_READ_BITFIELD(task, in_iowait))
		return WAIT_AS_IO;
	if (w->base != NO_PART)
		return WAIT_AS_BASE;
	/* inside a read nothing else puts a thread to sleep than the inode's locks */
	if (w->mode == WAIT_MODE_BUFFERED_READ || w->mode == WAIT_MODE_DIRECT_READ)
		return WAIT_AS_LOCK;
	return WAIT_AS_OTHER;
}

static __always_inline void leave_cpu(struct task_struct *task, int voluntary, __u32 local_target)
{
	struct ledger *l = bpf_task_storage_get(&ledgers, task, NULL, 0);

	if (l)
		ledger_renew(l);
	if (!l || !l->depth)
		return;
	if (l->wait.slept_at) /* it is back from that one, and nothing told so */
		layer_drop(local_target, WIRE_LOST_WAKES);
	l->wait.as = wait_kind(&l->wait, task, voluntary);
	if (l->wait.as == WAIT_AS_NEXT || l->wait.as == WAIT_AS_IO) {
		l->wait.key = io_key(&l->wait, task);
		note_requests(l->wait.key, local_target);
	}
	l->wait.slept_at = bpf_ktime_get_ns();
}

/* ---- what I/O the sleep was for ---------------------------------------- */

/* Enter what lies inside a sleep, below part (NO_PART: below the innermost open span). */
static __always_inline void enter_below(struct ledger *l, __u32 part, __u32 layer, __u32 sub,
					__u64 ns)
{
	if (!ns)
		return;
	if (part != NO_PART)
		part_add_below(l, part, layer, sub, ns);
	else
		part_add(l, part_meet(l, layer, sub), ns);
}

/*
 * Split a sleep for I/O by where the requests were; each moment counts once, where it was last.
 * This function and end_sleep() are global: the verifier looks at each once, by itself.
 */
__noinline int split_io(struct ledger *l, __u64 until, __u32 part)
{
	struct io_notes *notes;
	struct io_sums sums = {};
	__u64 key, total, tail;

	if (!l)
		return 0;
	key = l->wait.key;
	total = until - l->wait.slept_at;
	notes = key ? bpf_map_lookup_elem(&io_waited, &key) : NULL;
	if (notes)
		io_unite(&sums, notes, l->wait.slept_at, until);
	if (!sums.last_done) {
		/* an announced wait says itself what it is for */
		if (part == NO_PART)
			enter_below(l, part, WIRE_LAYER_BLOCK, WIRE_BLK_ANY, total);
		return 0;
	}
	tail = until - sums.last_done;
	union_nest(&sums, total - tail);
	enter_below(l, part, WIRE_LAYER_BLOCK, WIRE_BLK_HELD, total - sums.any_ns - tail);
	enter_below(l, part, WIRE_LAYER_BLOCK, WIRE_BLK_QUEUE, sums.any_ns - sums.past_ns);
	enter_below(l, part, WIRE_LAYER_BLOCK, WIRE_BLK_ANY, sums.past_ns - sums.issued_ns);
	enter_below(l, part, WIRE_LAYER_BLOCK, WIRE_BLK_FLUSH, sums.issued_ns - sums.device_ns);
	enter_below(l, part, WIRE_LAYER_BLOCK, WIRE_BLK_DEVICE, sums.device_ns);
	enter_below(l, part, WIRE_LAYER_SCHED, WIRE_SCHED_WAKEUP, tail);
	return 0;
}

/* ---- back on a CPU ----------------------------------------------------- */

/* The sleep as a whole is a part; what I/O it was for lies below it. */
static __always_inline void end_wait(struct ledger *l, __u32 part, __u64 now, int io)
{
	part_add(l, part, now - l->wait.slept_at);
	if (io && part != NO_PART)
		split_io(l, now, part);
}

static __always_inline void end_io(struct ledger *l, __u64 now)
{
	if (l->wait.mode == WAIT_MODE_BUFFERED_READ)
		end_wait(l, part_meet(l, WIRE_LAYER_WRITEBACK, WIRE_WRITEBACK_READ), now, 1);
	else
		split_io(l, now, NO_PART);
}

__noinline int end_sleep(struct ledger *l, __u32 local_target)
{
	__u64 now = bpf_ktime_get_ns();

	if (!l || !l->depth)
		return 0;
	if (now < l->wait.slept_at)
		now = l->wait.slept_at;
	if (l->open[0].layer == WIRE_LAYER_THROTTLE && l->wait.as != WAIT_AS_RUNNABLE) {
		/* a throttled page fault is a span of its own, which ends with its sleep */
		l->wait.slept_at = 0;
		span_pop(l, WIRE_LAYER_THROTTLE, now, local_target);
		return 0;
	}
	switch (l->wait.as) {
	case WAIT_AS_RUNNABLE:
		part_add(l, part_meet(l, WIRE_LAYER_SCHED, WIRE_SCHED_PREEMPTED),
			 now - l->wait.slept_at);
		break;
	case WAIT_AS_NEXT:
		end_wait(l, l->wait.next, now, l->wait.key != 0);
		l->wait.next = NO_PART;
		break;
	case WAIT_AS_BASE:
		end_wait(l, l->wait.base, now, 0);
		break;
	case WAIT_AS_LOCK:
		end_wait(l, part_meet(l, WIRE_LAYER_XFS, WIRE_XFS_LOCK), now, 0);
		break;
	case WAIT_AS_IO:
		end_io(l, now);
		break;
	default:
		break;
	}
	l->wait.slept_at = 0;
	return 0;
}

/* A worker of io_uring was throttled: that is no span of its own. */
static __always_inline void end_worker_pause(struct ledger *l, struct task_struct *task)
{
	__u64 now = bpf_ktime_get_ns(), begin = l->wait.slept_at;

	l->depth = 0;
	l->wait.slept_at = 0;
	if (now > begin)
		aio_throttled(worker_request(task), now - begin);
}

static __always_inline int is_worker_pause(const struct ledger *l)
{
	return l->open[0].layer == WIRE_LAYER_THROTTLE && l->open[0].sub == WIRE_THROTTLE_WRITE &&
	       l->wait.as != WAIT_AS_RUNNABLE;
}

static __always_inline void take_cpu(struct task_struct *task, __u32 local_target)
{
	struct ledger *l = bpf_task_storage_get(&ledgers, task, NULL, 0);

	if (l)
		ledger_renew(l);
	if (!l || !l->depth || !l->wait.slept_at)
		return;
	if (is_worker_pause(l))
		end_worker_pause(l, task);
	else
		end_sleep(l, local_target);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	struct hit h = {};

	if (traced_find(prev->tgid, &h)) {
		traced_count(&h);
		leave_cpu(prev, !preempt && prev_state, h.local_target);
		traced_end(&h);
	}
	if (traced_find(next->tgid, &h)) {
		traced_count(&h);
		take_cpu(next, h.local_target);
		traced_end(&h);
	}
	return 0;
}
