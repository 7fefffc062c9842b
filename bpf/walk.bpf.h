/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk.bpf.h: one request's accounting. From frames that were read (gluster.bpf.c) it resolves and
 * clips their intervals, charges each finished span of the thread to the innermost frame it ran in,
 * and forms the union of every node's children; enter.bpf.h makes figures of that. It knows frames
 * and spans, not how a process stores them.
 */
#ifndef BRICKTOP_WALK_BPF_H
#define BRICKTOP_WALK_BPF_H

#include "joined.bpf.h"
#include "ledger.bpf.h"

#define NO_FRAME 0xffff

/* A frame during a walk: as the process has it, and what the walk makes of it. */
struct walk_frame {
	__u64 addr, xlator, begin_raw, end_raw;
	__u64 begin, end;                   /* resolved and clipped */
	__u64 covered;                      /* union of its children so far */
	__u64 seg_begin, seg_end, prev_end; /* newest merged interval, end of the one before it */
	__u64 bytes;                        /* moved by the spans in it and below it */
	__u16 parent, layer, op, target;
	__u8 stack, flags, node_flags, hops;
	__u16 this_layer; /* WIRE_FRAME_MARKED: layer of the xlator it ended in */
	__u16 failed;     /* 1: the request's error came back through it */
	__u32 children;   /* entered below it */
	__u32 joined;     /* 1 + the number of the operation that it waited for; 0: none */
};

/* Operations that ended on another thread, and the frames that waited for them. */
#define WALK_JOINS (WIRE_MAX_JOINED / 2) /* two spans each, see dump.bpf.h */

struct walk_join {
	struct joined op;
	__u32 frame, pad;
};

/*
 * What a thread's requests need over and over is looked up once: rows by their key, xlators by
 * their place in a request. A row stays for good; nodes are of one generation.
 */
#define WALK_MEMOS      64
#define WALK_ROWS_SHIFT 8
#define WALK_ROWS       (1 << WALK_ROWS_SHIFT)

struct walk_row_memo {
	struct wire_slot_key key;
	__u32 slot; /* 1 + its number; 0: nothing yet */
};

struct walk_node_memo {
	__u64 xlator;
	__u32 generation; /* 0: nothing yet */
	__u16 target, layer, flags, pad;
};

/* Scratch of one thread: uprobe programs can be preempted. */
struct walk {
	__u32 n, n_stacks;
	__u32 n_joined;                   /* copies that share the place of an earlier one */
	__u32 first[WIRE_MAX_STACKS + 1]; /* frames of stack s: first[s] .. first[s + 1] - 1 */
	__u32 cursor[WIRE_MAX_STACKS];
	__u64 stack[WIRE_MAX_STACKS];
	__u64 pool, unique, watermark, now, thread_begin;
	__u64 span_pos, spans_from; /* numbers of spans: next, first looked at */
	__u32 n_spans, spans_done;  /* looked at, dumped */
	__u64 max_end;
	__u64 newest_mark;     /* where the newest pass of the root begins */
	__u32 newest, tail_at; /* frames: that the root wound last, that is being split */
	__u64 original;        /* of a copy: the stack of its request, which waits; 0: none does */
	__s64 result;
	__u64 raiser; /* result < 0: the xlator that raised that error; 0: the root did */
	__u64 bytes;  /* moved by all spans of the request */
	__s32 op_errno, stack_error;
	__u32 tgid, tid;
	__u32 max_hops;
	__u32 faults; /* bits 1 << enum wire_check */
	__u16 target, op;
	__u8 root, origin, unsplit, layout;
	__u64 tail_last;              /* newest xlator of the frame being split; 0: none yet */
	__u32 n_marked, marked_done;  /* frames with WIRE_FRAME_MARKED: all, dumped */
	__u64 done_stack, done_begin; /* request walked last, and the begin of its newest pass */
	__u32 has_ledger;             /* 1: the frames below the last hop ran on this thread */
	__u16 no_raiser;              /* 1: who raised the error is not known */
	__u16 no_bytes;               /* 1: what its frames moved is not known */
	__u32 generation;             /* of "nodes", as this walk began */
	__u32 claim_frame;            /* whose the span claimed last is; NO_FRAME: search */
	__u32 uncovered;              /* 1: layers were off while it ran (WIRE_SUB_UNCOVERED) */
	struct wire_who who;
	__u64 state;             /* of the request, in the process */
	__u64 itable;            /* inode table that was checked last, ... */
	__u64 itable_generation; /* ... with that generation of "nodes"; 0: none yet */
	__u32 n_joins, joins_pad;
	struct walk_join join[WALK_JOINS];
	struct walk_row_memo row[2 * WALK_ROWS];
	struct walk_node_memo node[WALK_MEMOS];
	__u8 raw[256];           /* one structure of the process, as read */
	struct walk_frame whole; /* the frame being split, as it was */
	struct walk_frame frame[WIRE_MAX_FRAMES];
};
_Static_assert(sizeof(struct walk) < 64800, "a task storage value has at most 64,800 bytes");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct walk);
} walks SEC(".maps");

/* What the callbacks of bpf_loop() get; it must lie on the stack. */
struct walker {
	struct walk *w;
	struct ledger *l;   /* NULL: the thread has none */
	struct overflow *o; /* NULL: likewise */
};

static __always_inline struct walk *walk_get(void)
{
	struct walk *w = bpf_task_storage_get(&walks, bpf_get_current_task_btf(), NULL,
					      BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!w)
		layer_drop(WIRE_MAX_TARGETS, WIRE_LOST_STORAGE);
	return w;
}

static __always_inline struct walk_frame *walk_frame_at(struct walk *w, __u32 i)
{
	__u64 at = i;

	/* what is checked must be the very register that forms the address */
	barrier_var(at);
	if (at >= WIRE_MAX_FRAMES)
		return NULL;
	barrier_var(at);
	return &w->frame[at];
}

static __always_inline void walk_unsplit(struct walk *w, enum wire_loss why)
{
	if (!w->unsplit)
		w->unsplit = why + 1;
	w->faults |= 1 << WIRE_CHECK_UNSPLIT;
}

/*
 * Add [b, e) to the union of p's children. Children come in order of their begin, but for a few
 * that two threads began at once: one that starts before the newest interval is taken as long as it
 * lies in the gap before it; what lies further back cannot be placed and leaves the request
 * unsplit.
 */
static __always_inline void walk_cover(struct walk *w, struct walk_frame *p, __u64 b, __u64 e)
{
	if (b < p->begin)
		b = p->begin;
	if (e > p->end)
		e = p->end;
	if (b >= e)
		return;
	if (!p->seg_end || b >= p->seg_end) {
		p->prev_end = p->seg_end ?: p->begin;
		p->seg_begin = b;
		p->seg_end = e;
		p->covered += e - b;
		return;
	}
	if (b < p->seg_begin) {
		if (b < p->prev_end) {
			walk_unsplit(w, WIRE_LOST_ORDER);
			return;
		}
		if (e < p->seg_begin) {
			p->covered += e - b;
			p->prev_end = e;
			return;
		}
		p->covered += p->seg_begin - b;
		p->seg_begin = b;
	}
	if (e > p->seg_end) {
		p->covered += e - p->seg_end;
		p->seg_end = e;
	}
}

/*
 * A pass ends with its root, or with the last of the root's own children where that has no end yet.
 * The next one over the same stack begins there: the root is stamped after the child.
 */
static __always_inline __u64 walk_end(const struct walk *w)
{
	return w->frame[0].end_raw > w->max_end ? w->frame[0].end_raw : w->max_end;
}

/* The root frame: as long as the process says, from the end of an earlier pass on. */
static __always_inline void walk_place_root(struct walk *w, struct walk_frame *f)
{
	f->end = walk_end(w);
	if (f->begin < w->watermark) {
		f->begin = w->watermark;
		f->flags |= WIRE_FRAME_CLIPPED;
	}
	if (f->end < f->begin) {
		w->faults |= 1 << WIRE_CHECK_NEGATIVE;
		walk_unsplit(w, WIRE_LOST_ABSURD);
		f->end = f->begin;
		return;
	}
	f->flags |= WIRE_FRAME_COUNTED;
}

/* Clip a frame to its parent's interval; what began after its parent's end is not on the path. */
static __always_inline void walk_clip(struct walk *w, struct walk_frame *f,
				      const struct walk_frame *p)
{
	f->end = f->end_raw;
	if (!f->end || f->end > p->end) {
		f->end = p->end;
		f->flags |= WIRE_FRAME_OPEN | WIRE_FRAME_CLIPPED;
		w->faults |= 1 << WIRE_CHECK_OPEN;
	}
	if (f->begin >= p->end && f->flags & WIRE_FRAME_OPEN)
		return;
	if (f->begin < p->begin) {
		if (p->begin > w->watermark)
			w->faults |= 1 << WIRE_CHECK_OUTSIDE;
		f->begin = p->begin;
		f->flags |= WIRE_FRAME_CLIPPED;
	}
	if (f->end < f->begin) {
		/* a second pass over a stack meets frames that ended before it began */
		if (!w->watermark || f->end_raw > w->watermark)
			w->faults |= 1 << WIRE_CHECK_NEGATIVE;
		return;
	}
	if (w->watermark && f->end_raw && f->end_raw <= w->watermark)
		return;
	f->flags |= WIRE_FRAME_COUNTED;
}

static __always_inline struct walk_join *walk_join_at(struct walk *w, __u32 i)
{
	__u64 at = i;

	/* what is checked must be the very register that forms the address */
	barrier_var(at);
	if (at >= WALK_JOINS)
		return NULL;
	barrier_var(at);
	return &w->join[at];
}

/* The operation that a frame waited for, until its result was fetched: before all that followed. */
static __always_inline void walk_cover_joined(struct walk *w, struct walk_frame *f)
{
	struct walk_join *j = walk_join_at(w, f->joined - 1);

	if (!j)
		return;
	walk_cover(w, f, j->op.span.begin, j->op.reaped);
	f->bytes += j->op.span.bytes;
	w->bytes += j->op.span.bytes;
}

static __always_inline void walk_place_frame(struct walk *w, __u32 i)
{
	struct walk_frame *f = walk_frame_at(w, i), *p;

	if (!f)
		return;
	if (i == 0) {
		walk_place_root(w, f);
		return;
	}
	p = walk_frame_at(w, f->parent);
	if (!p)
		return;
	if (f->flags & WIRE_FRAME_COPY_ROOT || !f->begin) {
		/* a copy's root stands for the frame it copies; begin 0: not even a child knew it
		 */
		f->begin = p->begin;
		f->flags |= WIRE_FRAME_DERIVED;
	}
	if (f->flags & WIRE_FRAME_COPY_ROOT) {
		f->end = p->end;
		return;
	}
	if (!(p->flags & WIRE_FRAME_COUNTED))
		return;
	walk_clip(w, f, p);
	if (f->flags & WIRE_FRAME_COUNTED) {
		p->children++;
		walk_cover(w, p, f->begin, f->end);
		if (f->joined)
			walk_cover_joined(w, f);
	}
}

/* ---- spans ------------------------------------------------------------- */

struct claim {
	struct walk *w;
	__u64 begin, end; /* of the span */
	__u64 best_begin;
	__u32 best;
	__u32 later; /* 1: frames were clipped to begin after it does */
};

static long claim_frame(__u32 i, struct claim *c)
{
	struct walk_frame *f = walk_frame_at(c->w, i);

	if (!f)
		return 1;
	if (!(f->flags & WIRE_FRAME_COUNTED) || f->hops != c->w->max_hops)
		return 0;
	if (f->begin > c->begin)
		c->later = 1;
	if (f->begin <= c->begin && f->end >= c->end && f->begin >= c->best_begin) {
		c->best = i;
		c->best_begin = f->begin;
	}
	return 0;
}

/*
 * Number of the innermost frame of this thread that contains a span; NO_FRAME: none. A thread's
 * spans follow each other, and frames are placed in order of their begin: as long as none was
 * placed since, the next span's frame is the last one's, if that contains it; frames that ended
 * before the last span did cannot.
 */
static __always_inline __u32 claim_find(struct walk *w, const struct span *span)
{
	struct claim c = { .w = w, .begin = span->begin, .end = span->end, .best = NO_FRAME };
	struct walk_frame *f = walk_frame_at(w, w->claim_frame);

	if (f && f->begin <= c.begin && f->end >= c.end)
		return w->claim_frame;
	bpf_loop(w->n, claim_frame, &c, 0);
	w->claim_frame = c.later ? NO_FRAME : c.best;
	return c.best;
}

static __always_inline void span_set_frame(struct span *span, __u32 frame)
{
	span->state = (span->state & ~(SPAN_NO_FRAME << SPAN_FRAME_SHIFT)) |
		      (frame & SPAN_NO_FRAME) << SPAN_FRAME_SHIFT;
}

/* Give a span to the innermost frame of this thread that contains it; none: it stays the thread's.
 */
static __always_inline void walk_claim(struct walk *w, struct span *span)
{
	struct walk_frame *f;
	__u32 at;

	if (span->state & SPAN_CLAIM_MASK) {
		span_set_frame(span, SPAN_NO_FRAME);
		return; /* of an earlier request, not of this one */
	}
	at = claim_find(w, span);
	f = walk_frame_at(w, at);
	if (!f || !span_take(span, SPAN_CLAIMED))
		return;
	span_set_frame(span, at);
	f->bytes += span->bytes;
	w->bytes += span->bytes;
	walk_cover(w, f, span->begin, span->end);
}

/* ---- all intervals of a request in order of their begin ---------------- */

/* The stack whose next frame began first; WIRE_MAX_STACKS: none is left. */
static __always_inline __u32 merge_pick(struct walk *w, __u64 *ret_begin)
{
	__u32 best = WIRE_MAX_STACKS, s;
	__u64 first = ~0ULL;

	for (s = 0; s < WIRE_MAX_STACKS; s++) {
		struct walk_frame *f;

		if (s >= w->n_stacks)
			break;
		if (w->cursor[s] >= w->first[s + 1])
			continue;
		f = walk_frame_at(w, w->cursor[s]);
		if (f && f->begin < first) {
			first = f->begin;
			best = s;
		}
	}
	*ret_begin = first;
	return best;
}

static long merge_next(__u32 i, struct walker *m)
{
	struct walk *w = m->w;
	struct span *span;
	__u64 first;
	__u32 s = merge_pick(w, &first);

	if (m->l && w->span_pos < m->l->head) {
		span = span_find(m->l, m->o, w->span_pos);
		if (!span) {
			w->span_pos++; /* another request's, and pushed out since */
			return 0;
		}
		if (s >= WIRE_MAX_STACKS || span->begin < first) {
			walk_claim(w, span);
			w->span_pos++;
			w->n_spans++;
			return 0;
		}
	}
	if (s >= WIRE_MAX_STACKS)
		return 1;
	w->claim_frame = NO_FRAME;
	walk_place_frame(w, w->cursor[s]++);
	return 0;
}

static long find_span(__u32 i, struct walker *m)
{
	struct walk *w = m->w;
	struct span *span;

	if (!m->l || !w->span_pos)
		return 1;
	span = span_find(m->l, m->o, w->span_pos - 1);
	if (span ? span->begin < w->thread_begin : !m->o)
		return 1;
	w->span_pos--;
	return 0;
}

/* Where in the ring this request's spans start: they ended after its part on this thread began. */
static __always_inline void walk_find_spans(struct walker *m)
{
	struct walk *w = m->w;

	w->span_pos = m->l->head;
	bpf_loop(WIRE_LEDGER + WIRE_OVERFLOW, find_span, m, 0);
	/* what was pushed out before an earlier pass ended is not missed in this one */
	if (m->l->evicted_end > w->thread_begin && m->l->evicted_end > w->watermark)
		walk_unsplit(w, WIRE_LOST_LEDGER);
}

/* Of a request without a ledger there are no spans that could be missed. */
static __always_inline int is_uncovered(const struct walk *w)
{
	__u64 since = layers_since();

	return w->has_ledger && (since == WIRE_DUTY_OFF || w->thread_begin < since);
}

static long find_thread_begin(__u32 i, struct walker *m)
{
	struct walk *w = m->w;
	struct walk_frame *f = walk_frame_at(w, i);

	if (!f || !w->has_ledger)
		return 1;
	if (f->hops == w->max_hops) {
		if (!(f->flags & WIRE_FRAME_COPY_ROOT))
			f->flags |= WIRE_FRAME_ON_THREAD;
		if (f->begin && f->begin < w->thread_begin)
			w->thread_begin = f->begin;
	}
	return 0;
}

#endif
