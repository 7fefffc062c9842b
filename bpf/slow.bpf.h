/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * slow.bpf.h: what is slow, and the ring that whole requests go through. The collector says from
 * how long on an operation is slow, and below what length nobody would show it any more: that one
 * is counted, and not written. Knows neither frames nor spans.
 */
#ifndef BRICKTOP_SLOW_BPF_H
#define BRICKTOP_SLOW_BPF_H

#include "slots.bpf.h"
#include "wire_slow.h"

/* A request has some kilobytes, a large directory's some hundreds. A page where none is wanted. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 23);
} events SEC(".maps");

/* By target. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, WIRE_MAX_TARGETS);
	__type(key, __u32);
	__type(value, struct wire_slow);
} slow SEC(".maps");

/* The row of an operation that took so long, if it is slow and to be written; else NULL. */
static __always_inline struct wire_slow_row *slow_find(__u32 target, __u32 row, __u64 incl_ns)
{
	struct wire_slow *s = bpf_map_lookup_elem(&slow, &target);
	__u64 at = row;

	if (!s)
		return NULL;
	/* what is checked must be the very register that forms the address */
	barrier_var(at);
	if (at >= WIRE_SLOW_ROWS)
		return NULL;
	barrier_var(at);
	if (incl_ns < s->row[at].limit_ns)
		return NULL;
	if (incl_ns < s->floor_ns[wire_slow_kind(at)]) {
		__sync_fetch_and_add(&s->row[at].passed, 1);
		return NULL;
	}
	return &s->row[at];
}

/* The ring had no room for it. */
static __always_inline void slow_drop(__u32 target, struct wire_slow_row *row)
{
	layer_drop(target, WIRE_LOST_RING_FULL);
	__sync_fetch_and_add(&row->dropped, 1);
}

#endif
