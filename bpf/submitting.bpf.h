/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * submitting.bpf.h: which operation of io_uring a thread is submitting: nothing tells when it is
 * through with one, but the next one, that it waits, or the end of its call. For who sees those.
 */
#ifndef BRICKTOP_SUBMITTING_BPF_H
#define BRICKTOP_SUBMITTING_BPF_H

#include "aio.bpf.h"

/* By thread. Where one is pushed out its operation counts as submitted until it completed. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct aio_key);
} submitting SEC(".maps");

static __always_inline void uring_begin_submission(const struct aio_key *key)
{
	__u32 tid = bpf_get_current_pid_tgid();

	bpf_map_update_elem(&submitting, &tid, key, BPF_ANY);
}

/* A global function: verified by itself. */
__noinline int uring_end_submission(__u64 now)
{
	__u32 tid = bpf_get_current_pid_tgid();
	struct aio_key *at = bpf_map_lookup_elem(&submitting, &tid), key;
	struct aio_op *op;

	if (!at || !at->id)
		return 0;
	key = *at;
	at->id = 0;
	op = aio_find(&key);
	if (op)
		aio_end_call(op, now);
	return 0;
}

#endif
