// SPDX-License-Identifier: GPL-2.0-only
/*
 * syscall.bpf.c: the layer "syscall": file system calls of the traced processes' threads, as the
 * outermost spans of the ledger. sys_enter and sys_exit fire for every call on the host, so the
 * number is looked up before anything else: what is not watched costs some 40 ns. (Per-syscall
 * tracepoints go through perf: dearer for each call that is watched, and detaching a hundred of
 * them takes 8 seconds.)
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
	__u32 mode;

	if (!file)
		return 0;
	mode = BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT;
	*ret_ino = BPF_CORE_READ(file, f_inode, i_ino);
	return mode == S_IFREG || mode == S_IFDIR || mode == S_IFBLK;
}

/* What is known of a call by its number; 0: not watched. */
static __always_inline __u32 syscall_entry(long nr)
{
	return nr >= 0 && nr < WIRE_SYS_NUMBERS ? cfg.syscalls[nr] : 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_enter, struct pt_regs *regs, long nr)
{
	__u32 entry = syscall_entry(nr);
	struct wire_proc *proc;
	struct thread *t;
	__u64 ino = 0;

	if (!entry)
		return 0;
	proc = proc_get(bpf_get_current_pid_tgid() >> 32);
	if (!proc)
		return 0;
	if (entry & WIRE_SYS_BY_FD && !is_file(PT_REGS_PARM1_CORE_SYSCALL(regs), &ino))
		return 0;
	t = thread_get();
	if (!t)
		return 0;
	if (t->depth) {
		/* a thread makes one call at a time: the end of the earlier one was missed */
		t->depth = 0;
		layer_drop(proc->local_target, WIRE_LOST_UNPAIRED);
	}
	span_push(t, LAYER_SYSCALL, entry, bpf_ktime_get_ns());
	t->current.file = ino;
	return 0;
}

/* Calls whose result is a number of bytes. */
static __always_inline int moves_bytes(__u32 sub)
{
	return (sub >= WIRE_SYS_pread64 && sub <= WIRE_SYS_writev) ||
	       sub == WIRE_SYS_copy_file_range;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_exit, struct pt_regs *regs, long ret)
{
	__u32 entry = syscall_entry(compat_syscall_nr(regs));
	struct wire_proc *proc;
	struct thread *t;

	if (!entry)
		return 0;
	proc = proc_get(bpf_get_current_pid_tgid() >> 32);
	if (!proc)
		return 0;
	t = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), NULL, 0);
	if (!t || t->depth != 1 || t->open[0].layer != LAYER_SYSCALL ||
	    t->open[0].sub != (__u8)entry)
		return 0; /* not a file, or begun before bricktop came */
	if (ret < 0)
		t->current.failed = 1;
	else if (moves_bytes((__u8)entry))
		t->current.bytes = ret;
	span_pop(t, LAYER_SYSCALL, bpf_ktime_get_ns(), proc->local_target);
	return 0;
}

struct flush {
	struct thread *t;
	__u32 target;
};

static long flush_span(__u32 i, struct flush *f)
{
	struct wire_span *span = &f->t->ring[i % WIRE_LEDGER];

	if (i >= f->t->head || span->claimed)
		return 0;
	span->claimed = 1;
	span_account_local(span, f->target);
	return 0;
}

/*
 * At the end of a session: spans that are still in the rings and that no request claimed are their
 * process's own. Runs over all tasks, once, when nothing is attached any more.
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
	f.t = bpf_task_storage_get(&threads, task, NULL, 0);
	if (f.t)
		bpf_loop(WIRE_LEDGER, flush_span, &f, 0);
	return 0;
}
