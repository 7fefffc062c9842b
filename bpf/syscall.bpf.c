// SPDX-License-Identifier: GPL-2.0-only
/*
 * syscall.bpf.c: the layer "syscall": file system calls of the traced processes' threads, as the
 * outermost spans of the ledger. sys_enter and sys_exit fire for every call on the host, so whose
 * call it is is looked up before anything else, in one array row. (Per-syscall tracepoints go
 * through perf: dearer for each call that is watched, and detaching a hundred of them takes 8
 * seconds.)
 */
#include "span.bpf.h"

#include "compat.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define LAYER_SYSCALL 1 /* its row in user/layers.def */

#define S_IFMT  0170000
#define S_IFDIR 0040000
#define S_IFBLK 0060000
#define S_IFREG 0100000

/* 1 where a descriptor is a file in a file system; sockets, pipes and /dev/fuse are none. */
static __always_inline int is_file(unsigned int fd, __u64 *ret_ino)
{
	struct file *file = compat_task_file(bpf_get_current_task_btf(), fd);
	struct inode *inode;
	__u32 mode;

	if (!file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	mode = BPF_CORE_READ(inode, i_mode) & S_IFMT;
	if (mode != S_IFREG && mode != S_IFDIR && mode != S_IFBLK)
		return 0;
	*ret_ino = BPF_CORE_READ(inode, i_ino);
	return 1;
}

/* What is known of a call by its number; 0: not watched. */
static __always_inline __u32 syscall_entry(long nr)
{
	return nr >= 0 && nr < WIRE_SYS_NUMBERS ? cfg.syscalls[nr] : 0;
}

/*
 * The traced process that a hook was hit in, and how to tell its own file operations apart. For
 * most of the host that is one look at an empty row. count: NULL where the process's row was taken.
 */
struct hit {
	struct wire_traced_shard *count;
	__u32 local_target;
	__u64 begin; /* of a hit that is timed; else 0 */
	__u32 shift; /* it stands for 1 << shift hits */
};

static __always_inline int find_traced(struct hit *h)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32, at = tgid % WIRE_TRACED_ROWS;
	struct wire_traced *row = bpf_map_lookup_elem(&traced, &at);
	struct wire_proc *proc;

	if (!row || !row->tgid)
		return 0;
	h->local_target = row->local_target;
	h->count = &row->shard[bpf_get_smp_processor_id() % WIRE_MAX_SHARDS];
	if (row->tgid != tgid) {
		proc = proc_get(tgid);
		if (!proc)
			return 0;
		h->local_target = proc->local_target;
		h->count = NULL;
	}
	/* the compiler must test the pointer itself from here on, for the verifier */
	barrier_var(h->count);
	return 1;
}

/*
 * What the hits cost the process itself is measured: on all of an idle process, on some of a busy
 * one: on every nth, but scrambled, or a thread that always makes the same n calls a request would
 * have the same one timed.
 */
static __always_inline void hit_begin(struct hit *h)
{
	__u32 scrambled;

	h->begin = 0;
	if (!h->count)
		return;
	h->shift = h->count->calls < WIRE_TRACED_FIRST ? 0 : WIRE_TRACED_SHIFT;
	scrambled = (__u32)h->count->calls * 2654435769U;
	if (!h->shift || !(scrambled >> (32 - WIRE_TRACED_SHIFT)))
		h->begin = bpf_ktime_get_ns();
}

static __always_inline void hit_end(const struct hit *h)
{
	if (h->begin)
		__sync_fetch_and_add(&h->count->timed_ns, (bpf_ktime_get_ns() - h->begin)
								  << h->shift);
}

static __always_inline void begin_call(struct pt_regs *regs, __u32 entry, __u32 local_target)
{
	struct ledger *l;
	__u64 ino = 0;
	int counts = !(entry & WIRE_SYS_BY_FD) || is_file(PT_REGS_PARM1_SYSCALL(regs), &ino);

	l = counts ? ledger_make(local_target) : ledger_find();
	if (!l)
		return;
	if (l->depth) {
		/* a thread makes one call at a time: the end of the earlier one was missed */
		l->depth = 0;
		l->dropped = 0;
		layer_drop(local_target, WIRE_LOST_UNPAIRED);
	}
	if (!counts)
		return;
	span_push(l, LAYER_SYSCALL, entry, bpf_ktime_get_ns());
	l->current.file = ino;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_enter, struct pt_regs *regs, long nr)
{
	struct hit h;
	__u32 entry;

	if (!find_traced(&h))
		return 0;
	if (h.count)
		__sync_fetch_and_add(&h.count->calls, 1);
	entry = syscall_entry(nr);
	if (!entry)
		return 0;
	hit_begin(&h);
	begin_call(regs, entry, h.local_target);
	hit_end(&h);
	return 0;
}

/* Calls whose result is a number of bytes. */
static __always_inline int moves_bytes(__u32 sub)
{
	return (sub >= WIRE_SYS_pread64 && sub <= WIRE_SYS_writev) ||
	       sub == WIRE_SYS_copy_file_range;
}

static __always_inline void end_call(__u32 entry, long ret, __u32 local_target)
{
	struct ledger *l = ledger_find();

	if (!l || l->depth != 1 || l->open[0].layer != LAYER_SYSCALL ||
	    l->open[0].sub != (__u8)entry)
		return; /* not a file, or begun before bricktop came */
	if (ret < 0)
		l->current.failed = 1;
	else if (moves_bytes((__u8)entry))
		l->current.bytes = ret;
	span_pop(l, LAYER_SYSCALL, bpf_ktime_get_ns(), local_target);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_exit, struct pt_regs *regs, long ret)
{
	__u32 entry = syscall_entry(compat_syscall_nr(regs));
	struct hit h;

	if (!entry || !find_traced(&h))
		return 0;
	hit_begin(&h);
	end_call(entry, ret, h.local_target);
	hit_end(&h);
	return 0;
}

struct flush {
	struct ledger *l;
	struct overflow *o;
	__u64 head; /* as it began: on another CPU the thread goes on */
	__u32 target;
};

/* From the newest on. */
static long flush_span(__u32 i, struct flush *f)
{
	if (!f->l || i >= f->head)
		return 1;
	span_account_local(f->l, span_at(f->l, f->head - 1 - i), f->head - 1 - i, f->target);
	return 0;
}

static long flush_overflow(__u32 i, struct flush *f)
{
	__u32 at = i % WIRE_OVERFLOW;

	if (!f->l || !f->o)
		return 1;
	if (f->o->owner[at])
		span_account_local(f->l, &f->o->span[at], f->o->owner[at] - 1, f->target);
	return 0;
}

/* In this order: a span that leaves the ring meanwhile is met in the overflow. */
static __always_inline void flush(struct flush *f, struct task_struct *task)
{
	if (!f->l)
		return;
	f->head = f->l->head;
	bpf_loop(WIRE_LEDGER, flush_span, f, 0);
	f->o = bpf_task_storage_get(&overflows, task, NULL, 0);
	if (f->o)
		bpf_loop(WIRE_OVERFLOW, flush_overflow, f, 0);
}

/* A thread ends, and with it its ledger: what no request has claimed of that was the process's. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_thread_end, struct task_struct *task)
{
	struct flush f = {};
	struct hit h;

	if (!find_traced(&h))
		return 0;
	f.target = h.local_target;
	f.l = ledger_find();
	flush(&f, bpf_get_current_task_btf());
	return 0;
}

/*
 * At the end of a session: spans that are still in the rings and that no request claimed are their
 * process's own. Runs over all tasks, once, while the probes are still in: who takes a span first,
 * this or a walk, enters it.
 */
SEC("iter/task")
int on_flush(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct wire_proc *proc;
	struct flush f = {};

	if (!task)
		return 0;
	proc = proc_get(task->tgid);
	if (!proc)
		return 0;
	f.target = proc->local_target;
	f.l = bpf_task_storage_get(&ledgers, task, NULL, 0);
	flush(&f, task);
	return 0;
}
