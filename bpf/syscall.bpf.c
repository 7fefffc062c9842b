// SPDX-License-Identifier: GPL-2.0-only
/*
 * syscall.bpf.c: the layer "syscall": file system calls of the traced processes' threads, as the
 * outermost spans of the ledger. sys_enter and sys_exit fire for every call on the host, so whose
 * call it is is looked up before anything else, in one array row. (Per-syscall tracepoints go
 * through perf: dearer for each call that is watched, and detaching a hundred of them takes 8
 * seconds.)
 */
#include "libaio.bpf.h"
#include "submitting.bpf.h"
#include "uses.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* What is known of a call by its number; 0: not watched. */
static __always_inline __u32 syscall_entry(long nr)
{
	return nr >= 0 && nr < WIRE_SYS_NUMBERS ? cfg.syscalls[nr] : 0;
}

static __always_inline void begin_call(struct pt_regs *regs, __u32 entry, __u32 local_target)
{
	int by_fd = entry & WIRE_SYS_BY_FD;
	struct inode *inode = by_fd ? file_inode_of_fd(PT_REGS_PARM1_SYSCALL(regs)) : NULL;
	int counts = !by_fd || inode;
	struct ledger *l;

	l = counts ? ledger_make(local_target) : ledger_find();
	if (!l)
		return;
	ledger_renew(l);
	if (l->depth) {
		/* a thread makes one call at a time, and none in a page fault: the end of the
		 * earlier one was missed */
		layer_drop(local_target, WIRE_LOST_UNPAIRED);
		l->depth = 0;
		l->dropped = 0;
	}
	if (!counts)
		return;
	span_push(l, WIRE_LAYER_SYSCALL, entry, bpf_ktime_get_ns());
	l->current.file = inode ? BPF_CORE_READ(inode, i_ino) : 0;
	l->dev = inode ? BPF_CORE_READ(inode, i_sb, s_dev) : 0;
	if ((__u8)entry == WIRE_SYS_io_submit)
		aio_submit(PT_REGS_PARM3_SYSCALL(regs), PT_REGS_PARM2_SYSCALL(regs),
			   l->current.begin, local_target);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_enter, struct pt_regs *regs, long nr)
{
	struct hit h = {};
	__u32 entry;

	if (!traced_find_current(&h))
		return 0;
	if (h.count)
		h.count->calls++;
	entry = syscall_entry(nr);
	if (!entry || entry == WIRE_SYS_REAPS)
		return 0;
	traced_time(&h);
	begin_call(regs, entry, h.local_target);
	traced_end(&h);
	return 0;
}

/* Calls whose result is a number of bytes. */
static __always_inline int moves_bytes(__u32 sub)
{
	return (sub >= WIRE_SYS_pread64 && sub <= WIRE_SYS_write) ||
	       sub == WIRE_SYS_copy_file_range;
}

static __always_inline __u32 use_class(__u32 sub)
{
	switch (sub) {
	case WIRE_SYS_pread64:
	case WIRE_SYS_preadv:
	case WIRE_SYS_preadv2:
	case WIRE_SYS_readv:
	case WIRE_SYS_read:
		return WIRE_USE_READ;
	case WIRE_SYS_pwrite64:
	case WIRE_SYS_pwritev:
	case WIRE_SYS_pwritev2:
	case WIRE_SYS_writev:
	case WIRE_SYS_write:
		return WIRE_USE_WRITE;
	case WIRE_SYS_fsync:
	case WIRE_SYS_fdatasync:
	case WIRE_SYS_sync_file_range:
	case WIRE_SYS_syncfs:
	case WIRE_SYS_msync:
		return WIRE_USE_SYNC;
	}
	return WIRE_USE_OTHER;
}

/*
 * A plain process's call that has just ended (it is still in current): in the rows of its file and
 * of the thread. A global function: verified by itself.
 */
__noinline int use_call(struct ledger *l, __u32 sub, __u32 target)
{
	struct wire_use_key key = {};
	struct use use = {};
	struct wire_app app = {};
	char comm[16] = {};
	__u64 id[2];

	if (!l)
		return 0;
	use.dur_ns = l->current.end - l->current.begin;
	use.bytes = l->current.bytes;
	use.failed = l->current.failed;
	use.class = use_class(sub);
	app.pid = bpf_get_current_pid_tgid();
	app.uid = bpf_get_current_uid_gid();
	id[0] = l->current.file;
	id[1] = l->current.file ? l->dev : 0;
	key.target = target;
	key.kind = l->current.file ? WIRE_FILE_INODE : WIRE_FILE_NONE;
	__builtin_memcpy(key.id, id, sizeof(key.id));
	use_file(&key, &use, &app);
	key.kind = 1;
	__builtin_memcpy(key.id, &app, sizeof(key.id));
	bpf_get_current_comm(comm, sizeof(comm));
	use_app(&key, &use, comm);
	return 0;
}

static __always_inline void end_call(struct pt_regs *regs, __u32 entry, long ret,
				     const struct hit *h)
{
	struct ledger *l = ledger_find();
	__u64 now;

	if (entry == WIRE_SYS_REAPS) {
		if (ret > 0)
			aio_reap(PT_REGS_PARM4_SYSCALL(regs), ret, h->local_target);
		return;
	}
	if (l)
		ledger_renew(l);
	if (!l || !l->depth || l->open[0].layer != WIRE_LAYER_SYSCALL ||
	    l->open[0].sub != (__u8)entry)
		return; /* not a file, or begun before bricktop came */
	if ((__u8)entry == WIRE_SYS_io_submit)
		aio_submitted(PT_REGS_PARM3_SYSCALL(regs), PT_REGS_PARM2_SYSCALL(regs),
			      l->current.begin, ret);
	else if ((__u8)entry == WIRE_SYS_io_uring_enter)
		uring_end_submission(bpf_ktime_get_ns());
	if (ret < 0)
		l->current.failed = 1;
	else if (moves_bytes((__u8)entry))
		l->current.bytes = ret;
	now = bpf_ktime_get_ns();
	span_end_inner(l, now, h->local_target);
	if (!span_pop(l, WIRE_LAYER_SYSCALL, now, h->local_target) && h->is_plain)
		use_call(l, entry & 0xff, h->local_target);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_exit, struct pt_regs *regs, long ret)
{
	__u32 entry = syscall_entry(compat_syscall_nr(regs));
	struct hit h = {};

	if (!entry || !traced_find_current(&h))
		return 0;
	traced_time(&h);
	end_call(regs, entry, ret, &h);
	traced_end(&h);
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
	struct hit h = {};

	if (!traced_find_current(&h))
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
