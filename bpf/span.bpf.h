/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * span.bpf.h: each thread's stack of open spans. The accounting of spans lives here, once; which
 * spans there are is the layers' business. A span whose outermost has ended goes into the ledger.
 */
#ifndef BRICKTOP_SPAN_BPF_H
#define BRICKTOP_SPAN_BPF_H

#include "ledger.bpf.h"

static __always_inline void span_push(struct ledger *l, __u16 layer, __u8 sub, __u64 now)
{
	struct span_open *o;

	if (l->depth >= WIRE_SPAN_DEPTH) {
		l->dropped++;
		return;
	}
	if (l->depth == 0) {
		l->current.begin = now;
		l->current.bytes = 0;
		l->current.file = 0;
		l->current.frame = 0xffff;
		l->current.claimed = SPAN_ENTERED;
		l->current.failed = 0;
		l->current.n_parts = 0;
	}
	o = &l->open[l->depth % WIRE_SPAN_DEPTH];
	o->begin = now;
	o->children_ns = 0;
	o->layer = layer;
	o->sub = sub;
	o->part = l->current.n_parts;
	if (l->current.n_parts < WIRE_SPAN_PARTS) {
		struct wire_span_part *part = &l->current.part[l->current.n_parts++];

		part->layer = layer;
		part->sub = sub;
		part->parent_part = l->depth ? l->open[(l->depth - 1) % WIRE_SPAN_DEPTH].part :
					       0xff;
		part->calls = 1;
		part->self_ns = 0;
		part->incl_ns = 0;
	}
	l->depth++;
}

/* End the innermost open span, which must be one of this layer; returns 0, or -1 where it is not.
 */
static __always_inline int span_pop(struct ledger *l, __u16 layer, __u64 now, __u32 local_target)
{
	struct span_open *o;
	__u64 incl;

	if (l->dropped) {
		l->dropped--;
		layer_drop(local_target, WIRE_LOST_SKIPPED);
		return -1;
	}
	if (l->depth == 0)
		return -1;
	o = &l->open[(l->depth - 1) % WIRE_SPAN_DEPTH];
	if (o->layer != layer) {
		layer_drop(local_target, WIRE_LOST_UNPAIRED);
		return -1;
	}
	l->depth--;
	if (now < o->begin) {
		layer_drop(local_target, WIRE_LOST_ABSURD);
		return -1;
	}
	incl = now - o->begin;
	if (o->part < WIRE_SPAN_PARTS) {
		struct wire_span_part *part = &l->current.part[o->part];

		part->incl_ns += incl;
		part->self_ns += incl - o->children_ns;
	}
	if (l->depth) {
		l->open[(l->depth - 1) % WIRE_SPAN_DEPTH].children_ns += incl;
		return 0;
	}
	l->current.end = now;
	ledger_append(l, local_target);
	return 0;
}

#endif
