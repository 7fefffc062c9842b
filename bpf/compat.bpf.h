/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * compat.bpf.h: one accessor for each thing that kernels keep in different places, chosen by BTF,
 * never by version. The commit that made the difference stands above each.
 */
#ifndef BRICKTOP_COMPAT_BPF_H
#define BRICKTOP_COMPAT_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* struct file of one of a task's descriptors, or NULL. */
static __always_inline struct file *compat_task_file(struct task_struct *task, unsigned int fd)
{
	struct files_struct *files = task->files;
	struct file *file = NULL;

	/* pointers that the verifier knows are followed without a helper's call */
	if (!files || fd >= files->fdt->max_fds)
		return NULL;
	bpf_probe_read_kernel(&file, sizeof(file), files->fdt->fd + fd);
	return file;
}

#define REQ_OP_MASK 0xff /* of cmd_flags and bi_opf; the bits of the flags differ among kernels */

enum rqf_flags___compat { __RQF_IO_STAT___compat = 8 };

/*
 * When a request was made; 0: not known. b8f762400ae8 (6.13) stamps only those that the queue's
 * statistics count, and leaves in the others what their tag's last user had; until then it was 0
 * where it was not taken. A flush of the device's cache has its stamp from blk_rq_init().
 */
static __always_inline __u64 compat_request_start(const struct request *rq)
{
	if (bpf_core_enum_value_exists(enum rqf_flags___compat, __RQF_IO_STAT___compat) &&
	    !((__u32)rq->rq_flags >>
		      bpf_core_enum_value(enum rqf_flags___compat, __RQF_IO_STAT___compat) &
	      1) &&
	    (rq->cmd_flags & REQ_OP_MASK) != REQ_OP_FLUSH)
		return 0;
	return rq->start_time_ns;
}

/* Number of the system call that a thread is in, from its saved registers. */
static __always_inline long compat_syscall_nr(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->orig_ax;
#elif defined(__TARGET_ARCH_arm64)
	return regs->syscallno;
#else
#error "no syscall number known for this architecture"
#endif
}

#endif
