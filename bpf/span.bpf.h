/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * span.bpf.h: each thread's stack of open spans. The accounting of spans lives here, once; which
 * spans there are is the layers' business. A span whose outermost has ended goes into the ledger.
 */
#ifndef BRICKTOP_SPAN_BPF_H
#define BRICKTOP_SPAN_BPF_H

#include "ledger.bpf.h"

/* ---- parts of the span in the making ----------------------------------- */

static __always_inline void span_start(struct ledger *l, __u64 now)
{
	l->current.begin = now;
	l->current.bytes = 0;
	l->current.file = 0;
	l->current.frame = 0xffff;
	l->current.claimed = SPAN_ENTERED;
	l->current.failed = 0;
	l->current.n_parts = 0;
	l->wait.slept_at = 0;
	l->wait.key = 0;
	l->wait.mapping = 0;
	l->wait.next = NO_PART;
	l->wait.base = NO_PART;
	l->wait.mode = 0;
	l->wait.lock.at = 0;
	l->wait.alloc.at = 0;
}

/*
 * Index of the part for this layer and sub inside that part, new or met before; NO_PART: there is
 * no room for another one, and its time stays in the part around it. A global function: the
 * verifier looks at it once, by itself.
 */
__noinline __u32 part_get(struct ledger *l, __u32 layer, __u32 sub, __u32 parent)
{
	struct wire_span_part *part;
	__u32 i;

	if (!l)
		return NO_PART;
	for (i = 0; i < WIRE_SPAN_PARTS; i++) {
		part = &l->current.part[i];
		if (i >= l->current.n_parts) {
			part->layer = layer;
			part->sub = sub;
			part->parent_part = parent;
			part->calls = 0;
			part->self_ns = 0;
			part->incl_ns = 0;
			l->current.n_parts = i + 1;
			return i;
		}
		if (part->layer == layer && part->sub == sub && part->parent_part == parent)
			return i;
	}
	return NO_PART;
}

static __always_inline struct wire_span_part *part_at(struct ledger *l, __u32 i)
{
	__u32 at = i;

	/* what is checked must be the very register that forms the address */
	barrier_var(at);
	if (at >= WIRE_SPAN_PARTS)
		return NULL;
	barrier_var(at);
	return &l->current.part[at];
}

static __always_inline struct span_open *span_innermost(struct ledger *l)
{
	return &l->open[(l->depth - 1) % WIRE_SPAN_DEPTH];
}

/* The part that the innermost open span is; NO_PART: none. */
static __always_inline __u32 span_part(struct ledger *l)
{
	return l->depth ? span_innermost(l)->part : NO_PART;
}

/* Part of a wait below the innermost open span, met once more; its time is added when it is known.
 */
static __always_inline __u32 part_meet(struct ledger *l, __u32 layer, __u32 sub)
{
	__u32 i = part_get(l, layer, sub, span_part(l));
	struct wire_span_part *part = part_at(l, i);

	if (part)
		part->calls++;
	return i;
}

/* What is over, inside a part that is over, too: it is taken out of that part's self time. */
static __always_inline void part_add_below(struct ledger *l, __u32 parent, __u32 layer, __u32 sub,
					   __u64 incl_ns)
{
	__u32 i = part_get(l, layer, sub, parent);
	struct wire_span_part *part = part_at(l, i), *up = part_at(l, parent);

	if (!part || !up)
		return;
	part->calls++;
	part->incl_ns += incl_ns;
	part->self_ns += incl_ns;
	up->self_ns -= incl_ns;
}

/* Time of a part below the innermost open span, which goes on. */
static __always_inline void part_add(struct ledger *l, __u32 i, __u64 incl_ns)
{
	struct wire_span_part *part = part_at(l, i);

	if (!part || !l->depth)
		return;
	part->incl_ns += incl_ns;
	part->self_ns += incl_ns;
	span_innermost(l)->children_ns += incl_ns;
}

static __always_inline void mark_set(struct ledger *l, struct ledger_mark *mark, __u64 now)
{
	mark->at = now;
	mark->children_ns = span_innermost(l)->children_ns;
}

/* What has passed since, but for what was told apart meanwhile; the mark is gone. */
static __always_inline __s64 mark_end(struct ledger *l, struct ledger_mark *mark, __u64 now)
{
	__s64 own_ns = now - mark->at - (span_innermost(l)->children_ns - mark->children_ns);

	if (!mark->at)
		return 0;
	mark->at = 0;
	return own_ns;
}

static __always_inline void span_push(struct ledger *l, __u16 layer, __u8 sub, __u64 now)
{
	struct wire_span_part *part;
	struct span_open *o;
	__u32 i;

	if (l->depth >= WIRE_SPAN_DEPTH) {
		l->dropped++;
		return;
	}
	if (l->depth == 0)
		span_start(l, now);
	i = part_get(l, layer, sub, span_part(l));
	o = &l->open[l->depth % WIRE_SPAN_DEPTH];
	o->begin = now;
	o->children_ns = 0;
	o->layer = layer;
	o->sub = sub;
	o->part = i;
	part = part_at(l, i);
	if (part)
		part->calls++;
	l->depth++;
}

/* End the innermost open span; 0, or -1 where it ends before it began. */
static __always_inline int span_end_innermost(struct ledger *l, __u64 now, __u32 local_target)
{
	struct span_open *o = span_innermost(l);
	struct wire_span_part *part = part_at(l, o->part);
	__u64 incl, below = o->children_ns;

	l->depth--;
	if (now < o->begin) {
		layer_drop(local_target, WIRE_LOST_ABSURD);
		return -1;
	}
	incl = now - o->begin;
	if (part) {
		part->incl_ns += incl;
		part->self_ns += incl - o->children_ns;
	}
	if (l->depth) {
		/* without a part of its own, all that is known is what lies below it */
		span_innermost(l)->children_ns += part ? incl : below;
		return 0;
	}
	if (l->wait.slept_at) /* the thread's return to a CPU was not seen */
		layer_drop(local_target, WIRE_LOST_WAKES);
	l->current.end = now;
	ledger_append(l, local_target);
	return 0;
}

/* End the innermost open span, which must be one of this layer; returns 0, or -1 where it is not.
 */
static __always_inline int span_pop(struct ledger *l, __u16 layer, __u64 now, __u32 local_target)
{
	if (l->dropped) {
		l->dropped--;
		layer_drop(local_target, WIRE_LOST_SKIPPED);
		return -1;
	}
	if (l->depth == 0)
		return -1;
	if (span_innermost(l)->layer != layer) {
		layer_drop(local_target, WIRE_LOST_UNPAIRED);
		return -1;
	}
	return span_end_innermost(l, now, local_target);
}

/* End all but the outermost span: layers whose end no event tells end with the call around them. */
static __always_inline void span_end_inner(struct ledger *l, __u64 now, __u32 local_target)
{
	__u32 i;

	l->dropped = 0;
	for (i = 1; i < WIRE_SPAN_DEPTH; i++) {
		if (l->depth <= 1)
			break;
		span_end_innermost(l, now, local_target);
	}
}

#endif
