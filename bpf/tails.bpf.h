/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tails.bpf.h: frames that several xlators share. Who winds by tail (STACK_WIND_TAIL) hands its own
 * frame on, so GlusterFS stamps the whole chain as one. Probes at fop entries mark who was entered
 * with a frame and when; here such a frame becomes a chain of frames, each from its xlator's entry
 * to the common end, and the rest of the walk sees nothing special.
 *
 * Marks are kept by the frame's address and not by thread: a client winds on one thread and unwinds
 * on another. Only with cfg.split_tails; without it the verifier removes all of this.
 */
#ifndef BRICKTOP_TAILS_BPF_H
#define BRICKTOP_TAILS_BPF_H

#include "nodes.bpf.h"
#include "walk.bpf.h"

/* The collector makes it tiny where tails are not to be split. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct wire_entry_key);
	__type(value, struct wire_entries);
} entries SEC(".maps");

/* A fop was entered: fop(frame, this, ...). A mark that finds no room is missed by the walk. */
static __always_inline void tails_mark(__u32 tgid, __u64 frame, __u64 xlator)
{
	struct wire_entry_key key = { .frame = frame, .tgid = tgid };
	struct wire_entries *e = bpf_map_lookup_elem(&entries, &key);
	struct wire_mark *mark;

	if (!e) {
		struct wire_entries fresh = { .n = 1 };

		fresh.mark[0].xlator = xlator;
		fresh.mark[0].time = bpf_ktime_get_ns();
		bpf_map_update_elem(&entries, &key, &fresh, BPF_ANY);
		return;
	}
	mark = &e->mark[e->n % WIRE_TAIL_MARKS];
	mark->xlator = xlator;
	mark->time = bpf_ktime_get_ns();
	e->n++;
}

static __always_inline struct wire_entries *tails_get(__u32 tgid, __u64 frame)
{
	struct wire_entry_key key = { .frame = frame, .tgid = tgid };

	return bpf_map_lookup_elem(&entries, &key);
}

struct splitter {
	struct walk *w;
	const struct wire_entries *e;
	__u64 begin, end; /* the frame's own */
};

static __always_inline void tails_name(struct walk_frame *f, __u64 xlator,
				       const struct wire_node *node)
{
	f->xlator = xlator;
	f->layer = node->layer;
	f->target = node->target;
	f->node_flags = node->flags;
}

/* The next mark, oldest first: the first one names the frame, each later one adds a part to it. */
static long split_next(__u32 i, struct splitter *s)
{
	const struct wire_mark *mark = &s->e->mark[(s->e->n + i) % WIRE_TAIL_MARKS];
	struct walk *w = s->w;
	struct walk_frame *f, *above;
	struct wire_node *node;
	__u64 xlator = mark->xlator, time = mark->time;

	if (time < s->begin || time > s->end || xlator == w->tail_last)
		return 0;
	node = node_get(w->tgid, xlator);
	f = walk_frame_at(w, w->tail_last ? w->n : w->tail_at);
	above = walk_frame_at(w, w->n - 1);
	if (!node || !f || !above) {
		w->tail_last = 0;
		return 1;
	}
	if (w->tail_last) {
		*f = *above;
		f->parent = w->n - 1;
		f->begin = f->begin_raw = time;
		f->flags = (above->flags | WIRE_FRAME_TAIL) & ~WIRE_FRAME_MARKED;
		w->n++;
	}
	tails_name(f, xlator, node);
	w->tail_last = xlator;
	return 0;
}

/*
 * Split the newest frame of the walk. 0, or -1 where its marks do not lead from its begin to the
 * xlator it ended in: it stays whole, named by that one. A global function: verified by itself.
 */
__noinline int tails_split(struct walk *w)
{
	struct walk_frame *f;
	struct splitter s = {};

	if (!w)
		return -1;
	w->tail_at = w->n - 1;
	f = walk_frame_at(w, w->tail_at);
	if (!f)
		return -1;
	s.e = tails_get(w->tgid, f->addr);
	if (!s.e || !f->begin_raw)
		return -1;
	f->flags |= WIRE_FRAME_MARKED;
	f->this_layer = f->layer;
	w->n_marked++;
	/* where the ring has wrapped inside this frame's time, the first entries are gone */
	if (s.e->n > WIRE_TAIL_MARKS && s.e->mark[s.e->n % WIRE_TAIL_MARKS].time >= f->begin_raw)
		return -1;
	w->whole = *f;
	s.w = w;
	s.begin = f->begin_raw;
	s.end = f->end_raw ?: ~0ULL;
	w->tail_last = 0;
	bpf_loop(WIRE_TAIL_MARKS, split_next, &s, 0);
	if (w->tail_last == w->whole.xlator)
		return 0;
	w->n = w->tail_at + 1;
	*f = w->whole;
	return -1;
}

/* Of the parts of a parent's frame: the last whose xlator was entered before this child began. */
static __always_inline __u32 tails_parent(struct walk *w, __u32 parent, __u64 begin)
{
	__u32 i;

	for (i = 0; i < WIRE_TAIL_MARKS; i++) {
		struct walk_frame *p = walk_frame_at(w, parent);

		if (!p || !(p->flags & WIRE_FRAME_TAIL) || !begin || p->begin <= begin)
			break;
		parent = p->parent;
	}
	return parent;
}

#endif
