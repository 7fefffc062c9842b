/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * join.bpf.h: a request's walk takes the operations that its frames waited for and that other
 * threads saw end (joined.bpf.h): each by the address of its frame. Knows nothing of how they are
 * entered.
 */
#ifndef BRICKTOP_JOIN_BPF_H
#define BRICKTOP_JOIN_BPF_H

#include "walk.bpf.h"

/* Frames are used again and again: an operation outside this use was of an earlier one. */
static __always_inline int is_of_frame(const struct joined *op, const struct walk_frame *f)
{
	return op->span.begin >= f->begin_raw && (!f->end_raw || op->reaped <= f->end_raw);
}

static __always_inline void take_join(struct walk *w, struct walk_frame *f, __u32 at,
				      struct joined *op)
{
	struct walk_join *j = walk_join_at(w, w->n_joins);

	if (!is_of_frame(op, f)) {
		joined_drop(op, f->target);
		return;
	}
	if (!j) {
		walk_unsplit(w, WIRE_LOST_FRAMES);
		return;
	}
	__builtin_memcpy(&j->op, op, sizeof(*op));
	j->frame = at;
	f->joined = ++w->n_joins;
}

/* From the innermost on: of xlators that share a frame it is the last one's. */
static long join_frame(__u32 i, struct walker *m)
{
	struct walk *w = m->w;
	__u32 at = w->n - 1 - i;
	struct walk_frame *f = walk_frame_at(w, at);
	struct joined_key key = { .tgid = w->tgid };
	struct joined *op;

	if (!f)
		return 1;
	if (!(f->node_flags & WIRE_NODE_AIO))
		return 0;
	key.frame = f->addr;
	op = bpf_map_lookup_elem(&joins, &key);
	if (!op)
		return 0;
	take_join(w, f, at, op);
	bpf_map_delete_elem(&joins, &key);
	return 0;
}

/* For a process that has such operations. A global function: verified by itself. */
__noinline int walk_join(struct walk *w)
{
	struct walker m = { .w = w };

	if (!w)
		return 0;
	bpf_loop(w->n, join_frame, &m, 0);
	return 0;
}

#endif
