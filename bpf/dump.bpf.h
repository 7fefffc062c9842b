/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dump.bpf.h: whole requests, frames and spans with their raw stamps: for who wants to add them up
 * again, and those that were slow. Costs nothing unless asked for.
 */
#ifndef BRICKTOP_DUMP_BPF_H
#define BRICKTOP_DUMP_BPF_H

#include "tails.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __s64);
} dump_left SEC(".maps");

struct dumper {
	struct walk *w;
	struct ledger *l;
	struct overflow *o;
	struct bpf_dynptr *ptr;
	__u64 spans_at; /* offset of the spans in the record */
	__u64 joins_at; /* ... of those that were joined */
	__u64 marks_at; /* ... of the marks */
};

#define FRAMES_AT (sizeof(struct wire_dump) + sizeof(struct wire_who))

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
	bpf_dynptr_write(d->ptr, FRAMES_AT + i * sizeof(out), &out, sizeof(out), 0);
	return 0;
}

/* struct wire_span without its parts. */
struct dump_span_head {
	__u64 begin, end, bytes, file;
	__u32 claimed;
	__u16 frame;
	__u8 failed, n_parts;
	__u64 joined;
};
_Static_assert(sizeof(struct dump_span_head) + WIRE_SPAN_PARTS * sizeof(struct wire_span_part) ==
		       sizeof(struct wire_span),
	       "dump_span_head");

static __always_inline void dump_only_part(struct dumper *d, __u64 at, const struct span *span)
{
	struct wire_slot_key key = {};
	struct wire_span_part part = {
		.parent_part = 0xff,
		.calls = 1,
		.self_ns = span->end - span->begin,
		.incl_ns = span->end - span->begin,
	};

	span_key(span, &key);
	part.layer = key.layer;
	part.sub = key.sub;
	bpf_dynptr_write(d->ptr, at, &part, sizeof(part), 0);
}

static long dump_span(__u32 i, struct dumper *d)
{
	__u64 number = d->w->spans_from + i, at = d->spans_at;
	struct span_detail *detail;
	struct dump_span_head head = {};
	struct span *span;
	__u32 frame;

	if (!d->l)
		return 1;
	span = span_find(d->l, d->o, number);
	if (!span)
		return 0;
	at += d->w->spans_done++ * sizeof(struct wire_span);
	detail = span_detail(d->l, span, number);
	frame = span->state >> SPAN_FRAME_SHIFT & SPAN_NO_FRAME;
	head.begin = span->begin;
	head.end = span->end;
	head.bytes = span->bytes;
	head.file = detail ? detail->file : 0;
	head.claimed = span->state & SPAN_CLAIM_MASK;
	head.frame = frame == SPAN_NO_FRAME ? NO_FRAME : frame;
	head.failed = !!(span->state & SPAN_FAILED);
	head.n_parts = detail ? detail->n_parts : 1;
	bpf_dynptr_write(d->ptr, at, &head, sizeof(head), 0);
	at += sizeof(head);
	if (detail)
		bpf_dynptr_write(d->ptr, at, detail->part, sizeof(detail->part), 0);
	else
		dump_only_part(d, at, span);
	return 0;
}

/*
 * What a frame waited for, as two spans behind the thread's: the operation, and its result's lying
 * there.
 */
static long dump_join(__u32 i, struct dumper *d)
{
	__u64 at = d->joins_at + 2 * i * sizeof(struct wire_span);
	struct walk_join *j = walk_join_at(d->w, i);
	struct dump_span_head head = {};
	struct span lying = {};
	struct walk_frame *f;

	if (!j)
		return 1;
	f = walk_frame_at(d->w, j->frame);
	if (!f)
		return 0;
	head.begin = j->op.span.begin;
	head.end = j->op.span.end;
	head.bytes = j->op.span.bytes;
	head.file = j->op.detail.file;
	head.claimed = 1;
	head.frame = j->frame;
	head.failed = !!(j->op.span.state & SPAN_FAILED);
	head.n_parts = j->op.detail.n_parts;
	head.joined = f->addr;
	bpf_dynptr_write(d->ptr, at, &head, sizeof(head), 0);
	bpf_dynptr_write(d->ptr, at + sizeof(head), j->op.detail.part, sizeof(j->op.detail.part),
			 0);
	at += sizeof(struct wire_span);
	head.begin = lying.begin = j->op.span.end;
	head.end = lying.end = j->op.reaped;
	lying.state = WIRE_LAYER_AIO << SPAN_LAYER_SHIFT | WIRE_AIO_REAP << SPAN_SUB_SHIFT;
	head.bytes = head.file = 0;
	head.failed = 0;
	head.n_parts = 1;
	bpf_dynptr_write(d->ptr, at, &head, sizeof(head), 0);
	dump_only_part(d, at + sizeof(head), &lying);
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

static __always_inline void dump_head(const struct walk *w, __u8 wanted, struct wire_dump *head)
{
	*head = (struct wire_dump){
		.tgid = w->tgid,
		.tid = w->tid,
		.target = w->target,
		.op = w->op,
		.root = w->root,
		.origin = w->origin,
		.unsplit = w->unsplit,
		.wanted = wanted,
		.uncovered = w->uncovered,
		.result = w->result,
		.watermark = w->watermark,
		.n_frames = w->n,
		.n_spans = w->n_spans + 2 * w->n_joins,
		.n_marks = w->n_marked,
	};
	if (w->result < 0)
		dump_error(w, head);
}

/* One of so many that were asked for. */
static __always_inline int is_counted_out(void)
{
	__u32 zero = 0;
	__s64 *left = bpf_map_lookup_elem(&dump_left, &zero);

	return left && *left > 0 && __sync_fetch_and_add(left, -1) > 0;
}

static __always_inline struct wire_slow_row *dump_slow_row(const struct walk *w)
{
	const struct walk_frame *root = &w->frame[0];

	if (!(root->flags & WIRE_FRAME_COUNTED))
		return NULL;
	return slow_find(w->target, wire_slow_row(w->root, w->origin, w->op, 0),
			 root->end - root->begin);
}

/* Write the request just accounted, with the spans it looked at, if it is wanted. */
__noinline int dump_request(struct walk *w, struct ledger *l)
{
	struct dumper d = { .w = w, .l = l };
	struct wire_slow_row *slow_row = NULL;
	struct wire_dump head;
	struct bpf_dynptr ptr;
	__u8 wanted = 0;

	/* first, so that the verifier never sees the rest: dynptrs came with Linux 5.19 */
	if (!cfg.dump && !cfg.slow)
		return 0;
	if (!w)
		return 0;
	if (cfg.slow)
		slow_row = dump_slow_row(w);
	if (slow_row)
		wanted = WIRE_DUMP_SLOW;
	if (cfg.dump && is_counted_out())
		wanted |= WIRE_DUMP_ANY;
	if (!wanted)
		return 0;
	if (l)
		d.o = overflow_find(l);
	d.ptr = &ptr;
	dump_head(w, wanted, &head);
	d.spans_at = FRAMES_AT + w->n * sizeof(struct wire_dump_frame);
	d.joins_at = d.spans_at + w->n_spans * sizeof(struct wire_span);
	d.marks_at = d.joins_at + 2 * w->n_joins * sizeof(struct wire_span);
	if (bpf_ringbuf_reserve_dynptr(
		    &events, d.marks_at + w->n_marked * sizeof(struct wire_dump_marks), 0, &ptr)) {
		if (slow_row)
			slow_drop(w->target, slow_row);
		else
			layer_drop(w->target, WIRE_LOST_RING_FULL);
		bpf_ringbuf_discard_dynptr(&ptr, 0);
		return 0;
	}
	bpf_dynptr_write(&ptr, 0, &head, sizeof(head), 0);
	bpf_dynptr_write(&ptr, sizeof(head), &w->who, sizeof(w->who), 0);
	bpf_loop(w->n, dump_frame, &d, 0);
	w->spans_done = 0;
	if (l)
		bpf_loop(l->head - w->spans_from, dump_span, &d, 0);
	if (w->n_joins)
		bpf_loop(w->n_joins, dump_join, &d, 0);
	w->marked_done = 0;
	if (cfg.split_tails)
		bpf_loop(w->n, dump_marks, &d, 0);
	bpf_ringbuf_submit_dynptr(&ptr, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
