/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * worker.bpf.h: the threads that the kernel makes for a process to do what io_uring could not do at
 * once, and which request of io_uring one has in hand. Knows not what is done with that.
 */
#ifndef BRICKTOP_WORKER_BPF_H
#define BRICKTOP_WORKER_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define PF_IO_WORKER 0x00000010 /* of task_struct.flags (include/linux/sched.h) */

static __always_inline int is_io_worker(const struct task_struct *task)
{
	return task->flags & PF_IO_WORKER;
}

/*
 * The address of the io_kiocb; 0: of none. A worker's work lies inside of that (io_uring/io-wq.h:
 * io_worker.cur_work; include/linux/io_uring_types.h: io_kiocb.work).
 */
static __always_inline __u64 worker_request(const struct task_struct *task)
{
	struct io_worker *worker = task->worker_private;
	__u64 work;

	if (!bpf_core_type_exists(struct io_worker) || !worker)
		return 0;
	work = (__u64)BPF_CORE_READ(worker, cur_work);
	return work ? work - bpf_core_field_offset(struct io_kiocb, work) : 0;
}

#endif
