/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dump.bpf.h: whole requests, frames and spans with their raw stamps, for who wants to add them up
 * again. Costs nothing unless asked for.
 */
#ifndef BRICKTOP_DUMP_BPF_H
#define BRICKTOP_DUMP_BPF_H

#include "walk.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __s64);
} dump_left SEC(".maps");

struct dumper {
	struct walk *w;
	struct thread *t;
	struct bpf_dynptr *ptr;
	__u64 from;
};

static long dump_frame(__u32 i, struct dumper *d)
{
	struct walk_frame *f = walk_frame_at(d->w, i);
	struct wire_dump_frame out;

	if (!f)
		return 1;
	out = (struct wire_dump_frame){
		.addr = f->addr,
		.xlator = f->xlator,
		.begin_raw = f->begin_raw,
		.end_raw = f->end_raw,
		.begin = f->begin,
		.end = f->end,
		.covered = f->covered,
		.parent = f->parent,
		.layer = f->layer,
		.op = f->op,
		.stack = f->stack,
		.flags = f->flags,
	};
	bpf_dynptr_write(d->ptr, sizeof(struct wire_dump) + i * sizeof(out), &out, sizeof(out), 0);
	return 0;
}

static long dump_span(__u32 i, struct dumper *d)
{
	struct wire_span *span = &d->t->ring[(d->from + i) % WIRE_LEDGER];

	bpf_dynptr_write(d->ptr,
			 sizeof(struct wire_dump) + d->w->n * sizeof(struct wire_dump_frame) +
				 i * sizeof(*span),
			 span, sizeof(*span), 0);
	return 0;
}

/* Write the request just accounted, with the spans it looked at, as long as any are wanted. */
__noinline int dump_request(struct thread *t)
{
	__u32 zero = 0, n_spans;
	__s64 *left = bpf_map_lookup_elem(&dump_left, &zero);
	struct dumper d = { .t = t };
	struct wire_dump head;
	struct bpf_dynptr ptr;
	struct walk *w;

	if (!t || !left || *left <= 0 || __sync_fetch_and_add(left, -1) <= 0)
		return 0;
	w = &t->walk;
	n_spans = t->head - w->spans_from;
	if (n_spans > WIRE_LEDGER)
		n_spans = WIRE_LEDGER;
	d.w = w;
	d.ptr = &ptr;
	d.from = w->spans_from;
	head = (struct wire_dump){
		.tgid = w->tgid,
		.tid = w->tid,
		.target = w->target,
		.op = w->op,
		.root = w->root,
		.origin = w->origin,
		.unsplit = w->unsplit,
		.result = w->result,
		.watermark = w->watermark,
		.n_frames = w->n,
		.n_spans = n_spans,
	};
	if (bpf_ringbuf_reserve_dynptr(&events,
				       sizeof(head) + w->n * sizeof(struct wire_dump_frame) +
					       n_spans * sizeof(struct wire_span),
				       0, &ptr)) {
		layer_drop(w->target, WIRE_LOST_RING_FULL);
		bpf_ringbuf_discard_dynptr(&ptr, 0);
		return 0;
	}
	bpf_dynptr_write(&ptr, 0, &head, sizeof(head), 0);
	bpf_loop(w->n, dump_frame, &d, 0);
	bpf_loop(n_spans, dump_span, &d, 0);
	bpf_ringbuf_submit_dynptr(&ptr, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
