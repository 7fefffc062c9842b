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
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = NULL, **slot;

	if (fd >= BPF_CORE_READ(table, max_fds))
		return NULL;
	slot = BPF_CORE_READ(table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), slot + fd);
	return file;
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
