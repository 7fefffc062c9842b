/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * traced.bpf.h: whose hit it is. Hooks that every process of the host runs into ask here first: is
 * this a thread of a process that is looked at? For most of the host that is one look at an empty
 * row. Owns the counting and timing of those hits; knows nothing of what they are for.
 */
#ifndef BRICKTOP_TRACED_BPF_H
#define BRICKTOP_TRACED_BPF_H

#include "span.bpf.h"

/* A hit in a process that is traced. count: NULL where another process has its row. */
struct hit {
	struct wire_traced_hits *count;
	__u64 begin; /* of a hit that is timed; else 0 */
	__u16 local_target;
	__u8 is_plain; /* as in wire_traced */
	__u8 shift;    /* it stands for 1 << shift hits */
};

/* 1 where the process is traced: then h is filled but for its timing. */
static __always_inline int traced_find(__u32 tgid, struct hit *h)
{
	__u32 at = tgid % WIRE_TRACED_ROWS;
	struct wire_traced *row = bpf_map_lookup_elem(&traced, &at);
	struct wire_proc *proc;

	if (!row || !row->tgid)
		return 0;
	h->local_target = row->local_target;
	h->is_plain = row->is_plain;
	h->count = bpf_map_lookup_elem(&traced_hits, &at);
	if (row->tgid != tgid) {
		proc = proc_get(tgid);
		if (!proc)
			return 0;
		h->local_target = proc->local_target;
		h->is_plain = proc->root == WIRE_ROOT_LOCAL;
		h->count = NULL;
	}
	/* the compiler must test the pointer itself from here on, for the verifier */
	barrier_var(h->count);
	return 1;
}

static __always_inline int traced_find_current(struct hit *h)
{
	return traced_find(bpf_get_current_pid_tgid() >> 32, h);
}

/*
 * What the hits cost the process itself is measured: on all of an idle process, on some of a busy
 * one: on every nth, but scrambled, or a thread that always makes the same n calls a request would
 * have the same one timed.
 */
static __always_inline void traced_time(struct hit *h)
{
	__u32 scrambled, n;

	h->begin = 0;
	if (!h->count)
		return;
	n = (__u32)(h->count->calls + h->count->hits);
	h->shift = n < WIRE_TRACED_FIRST ? 0 : WIRE_TRACED_SHIFT;
	scrambled = n * 2654435769U;
	if (!h->shift || !(scrambled >> (32 - WIRE_TRACED_SHIFT)))
		h->begin = bpf_ktime_get_ns();
}

/* A hit of a tracepoint that is no system call's begin or end (those are counted as calls). */
static __always_inline void traced_count(struct hit *h)
{
	if (h->count)
		h->count->hits++;
	traced_time(h);
}

static __always_inline void traced_end(const struct hit *h)
{
	if (!h->begin)
		return;
	h->count->timed_ns += (bpf_ktime_get_ns() - h->begin) << h->shift;
	h->count->timed += 1ULL << h->shift;
}

#endif
