/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dump.bpf.h: whole requests, frames and spans with their raw stamps, for who wants to add them up
 * again. Costs nothing unless asked for.
 */
#ifndef BRICKTOP_DUMP_BPF_H
#define BRICKTOP_DUMP_BPF_H

#include "tails.bpf.h"

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
	struct ledger *l;
	struct bpf_dynptr *ptr;
	__u64 from;
	__u64 marks_at; /* offset of the marks in the record */
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
		.bytes = f->bytes,
		.failed = f->failed,
	};
	bpf_dynptr_write(d->ptr, sizeof(struct wire_dump) + i * sizeof(out), &out, sizeof(out), 0);
	return 0;
}

static long dump_span(__u32 i, struct dumper *d)
{
	struct wire_span *span;

	if (!d->l)
		return 1;
	span = &d->l->ring[(d->from + i) % WIRE_LEDGER];
	bpf_dynptr_write(d->ptr,
			 sizeof(struct wire_dump) + d->w->n * sizeof(struct wire_dump_frame) +
				 i * sizeof(*span),
			 span, sizeof(*span), 0);
	return 0;
}

static __always_inline void dump_mark_layers(struct dumper *d, const struct wire_entries *e,
					     __u64 at)
{
	__u32 i;

	for (i = 0; i < WIRE_TAIL_MARKS; i++) {
		struct wire_node *node = node_get(d->w->tgid, e->mark[i].xlator);
		__u16 layer = node ? node->layer : 0;

		bpf_dynptr_write(d->ptr, at + i * sizeof(layer), &layer, sizeof(layer), 0);
	}
}

/* What was recorded of a frame that was looked at, in one record behind the spans. */
static long dump_marks(__u32 i, struct dumper *d)
{
	struct walk_frame *f = walk_frame_at(d->w, i);
	struct wire_entries *e;
	__u64 at = d->marks_at;

	if (!f)
		return 1;
	if (!(f->flags & WIRE_FRAME_MARKED))
		return 0;
	at += d->w->marked_done++ * sizeof(struct wire_dump_marks);
	bpf_dynptr_write(d->ptr, at, &(__u64){ i | (__u64)f->this_layer << 16 }, 8, 0);
	at += offsetof(struct wire_dump_marks, entries);
	e = tails_get(d->w->tgid, f->addr);
	if (e) {
		bpf_dynptr_write(d->ptr, at, e, sizeof(*e), 0);
		dump_mark_layers(d, e, at - 2 * WIRE_TAIL_MARKS);
	} else {
		/* pushed out since it was looked at */
		__builtin_memset(d->w->raw, 0, sizeof(*e));
		bpf_dynptr_write(d->ptr, at, d->w->raw, sizeof(*e), 0);
	}
	return 0;
}

/* How the request failed: who judges it again must not believe which frame that is. */
static __always_inline void dump_error(const struct walk *w, struct wire_dump *head)
{
	struct wire_node *node = w->raiser ? node_get(w->tgid, w->raiser) : NULL;

	head->op_errno = w->op_errno;
	head->stack_error = w->stack_error;
	head->raiser = node ? node->layer : 0;
	head->raiser_known = !w->no_raiser;
}

/* Write the request just accounted, with the spans it looked at, as long as any are wanted. */
__noinline int dump_request(struct walk *w, struct ledger *l)
{
	__u32 zero = 0, n_spans;
	struct dumper d = { .w = w, .l = l };
	struct wire_dump head;
	struct bpf_dynptr ptr;
	__s64 *left;

	/* first, so that the verifier never sees the rest: dynptrs came with Linux 5.19 */
	if (!cfg.dump)
		return 0;
	left = bpf_map_lookup_elem(&dump_left, &zero);
	if (!w || !left || *left <= 0 || __sync_fetch_and_add(left, -1) <= 0)
		return 0;
	n_spans = l ? l->head - w->spans_from : 0;
	if (n_spans > WIRE_LEDGER)
		n_spans = WIRE_LEDGER;
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
		.n_marks = w->n_marked,
	};
	if (w->result < 0)
		dump_error(w, &head);
	d.marks_at = sizeof(head) + w->n * sizeof(struct wire_dump_frame) +
		     n_spans * sizeof(struct wire_span);
	if (bpf_ringbuf_reserve_dynptr(
		    &events, d.marks_at + w->n_marked * sizeof(struct wire_dump_marks), 0, &ptr)) {
		layer_drop(w->target, WIRE_LOST_RING_FULL);
		bpf_ringbuf_discard_dynptr(&ptr, 0);
		return 0;
	}
	bpf_dynptr_write(&ptr, 0, &head, sizeof(head), 0);
	bpf_loop(w->n, dump_frame, &d, 0);
	bpf_loop(n_spans, dump_span, &d, 0);
	w->marked_done = 0;
	if (cfg.split_tails)
		bpf_loop(w->n, dump_marks, &d, 0);
	bpf_ringbuf_submit_dynptr(&ptr, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
