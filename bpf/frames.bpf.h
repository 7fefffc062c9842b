/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * frames.bpf.h: a GlusterFS request's frames, read from the process and linked: stacks, their
 * copies, parents, begins that were wiped. Knows where GlusterFS keeps things (by the layout it is
 * told) and nothing of time accounting.
 *
 * Source: GlusterFS libglusterfs/src/glusterfs/stack.h (call_stack_t, call_frame_t, copy_frame).
 */
#ifndef BRICKTOP_FRAMES_BPF_H
#define BRICKTOP_FRAMES_BPF_H

#include "nodes.bpf.h"
#include "tails.bpf.h"
#include "walk.bpf.h"

enum { /* fields of call_stack_t that have never moved */
       STACK_NEXT = 0x00,
       STACK_PREV = 0x08,
       STACK_POOL = 0x10,
       STACK_CLIENT = 0x40,
       STACK_UNIQUE = 0x48,
       STACK_STATE = 0x50,
       STACK_UID = 0x58,
       STACK_PID = 0x60,
       STACK_HEAD_BYTES = 0x68,
       FRAME_ROOT = 0x00,
       FRAME_PARENT = 0x08,
       FRAME_LINK = 0x10,
       FRAME_LINK_PREV = 0x18,
       FRAME_BYTES = 0x98,
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 32);
	__type(key, __u32);
	__type(value, struct wire_layout);
} layouts SEC(".maps");

/* ---- reading the process ----------------------------------------------- */

static __always_inline __u64 raw_u64(const struct walk *w, __u32 off)
{
	return *(const __u64 *)(w->raw + (off & 0xf8));
}

static __always_inline __u32 raw_u32(const struct walk *w, __u32 off)
{
	return *(const __u32 *)(w->raw + (off & 0xfc));
}

/* A struct timespec inside w->raw, in ns. */
static __always_inline __u64 raw_time(const struct walk *w, __u32 off)
{
	return raw_u64(w, off) * 1000000000ULL + raw_u64(w, off + 8);
}

static __always_inline int read_stack(struct walk *w, __u64 stack)
{
	return bpf_probe_read_user(w->raw, STACK_HEAD_BYTES, (const void *)stack);
}

static __always_inline struct wire_layout *layout_get(const struct walk *w)
{
	__u32 i = w->layout;

	return bpf_map_lookup_elem(&layouts, &i);
}

/* ---- linking frames ---------------------------------------------------- */

struct search {
	struct walk *w;
	__u64 addr; /* of a frame, or an xlator */
	__u64 not_after, best_begin;
	__u32 from, found;
};

static long search_addr(__u32 i, struct search *s)
{
	struct walk_frame *f = walk_frame_at(s->w, s->from - i);

	if (!f)
		return 1;
	if (f->addr == s->addr) {
		s->found = s->from - i;
		return 1;
	}
	return 0;
}

/* Index of the parent among the frames of the stack read so far; most often the one just before. */
static __always_inline __u32 find_parent(struct walk *w, __u64 addr, __u32 first)
{
	struct search s = { .w = w, .addr = addr, .from = w->n - 1, .found = NO_FRAME };

	if (w->n > first)
		bpf_loop(w->n - first, search_addr, &s, 0);
	return s.found;
}

static long search_xlator(__u32 i, struct search *s)
{
	struct walk_frame *f = walk_frame_at(s->w, i);

	if (!f)
		return 1;
	if (f->xlator != s->addr || f->flags & WIRE_FRAME_COPY_ROOT)
		return 0;
	if (f->begin <= s->not_after && f->begin >= s->best_begin) {
		s->found = i;
		s->best_begin = f->begin;
	}
	return 0;
}

/* The frame that a copied stack continues: the latest one of the same xlator begun before it. */
static __always_inline __u32 find_original(struct walk *w, __u64 xlator, __u64 begin, __u32 first)
{
	struct search s = { .w = w, .addr = xlator, .not_after = begin, .found = NO_FRAME };

	bpf_loop(first, search_xlator, &s, 0);
	return s.found;
}

/*
 * Some xlators (io-stats without profiling) wipe their frame's begin: the earliest child's is the
 * best that is known. Through a few such frames in a row, if need be.
 */
static __always_inline void derive_begin(struct walk *w, const struct walk_frame *f)
{
	__u64 begin = f->begin;
	__u32 parent = f->parent, i;

	for (i = 0; i < 4 && begin; i++) {
		struct walk_frame *p = walk_frame_at(w, parent);

		if (!p || p->begin_raw || (p->begin && p->begin <= begin))
			return;
		p->begin = begin;
		p->flags |= WIRE_FRAME_DERIVED;
		parent = p->parent;
	}
}

static __always_inline void link_parent(struct walk *w, struct walk_frame *f, __u64 parent_addr,
					__u32 first)
{
	struct walk_frame *p;

	if (w->n == 0) {
		f->parent = NO_FRAME;
		return;
	}
	if (!parent_addr) {
		f->flags |= WIRE_FRAME_COPY_ROOT;
		f->parent = find_original(w, f->xlator, f->begin, first);
	} else {
		f->parent = find_parent(w, parent_addr, first);
		if (cfg.split_tails)
			f->parent = tails_parent(w, f->parent, f->begin);
	}
	p = walk_frame_at(w, f->parent);
	if (p && p->flags & WIRE_FRAME_COPY_ROOT) {
		f->parent = p->parent;
		p = walk_frame_at(w, f->parent);
	}
	if (!p) {
		f->parent = NO_FRAME;
		w->faults |= 1 << WIRE_CHECK_ORPHAN;
		walk_unsplit(w, WIRE_LOST_FRAMES);
		return;
	}
	f->hops = p->hops + !!(p->node_flags & WIRE_NODE_HOP && !(f->flags & WIRE_FRAME_COPY_ROOT));
	if (f->hops > w->max_hops)
		w->max_hops = f->hops;
	derive_begin(w, f);
	/* a pass ends when the last of the root's own children has */
	if (f->parent == 0 && f->stack == 0 && f->end_raw > w->max_end)
		w->max_end = f->end_raw;
}

struct reader {
	struct walk *w;
	const struct wire_layout *l;
	__u64 stack, head; /* head: address of the stack's list head myframes */
	__u64 at;          /* link of the frame to read next */
	__u32 s, first;
};

/* Split the frame just read, where entries of its fop are probed; not roots, which nobody winds. */
static __always_inline void split_shared(struct walk *w, const struct walk_frame *f,
					 const struct wire_node *node)
{
	if (w->n < 2 || f->flags & WIRE_FRAME_COPY_ROOT || f->op > 63 ||
	    !(node->marked >> f->op & 1) || f->begin_raw < walk_since())
		return; /* while the walk is off entries are not marked */
	if (tails_split(w) && f->begin_raw >= node->since_ns)
		layer_drop(node->target, WIRE_LOST_MARKS);
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} adopted SEC(".maps");

/*
 * A client takes a new graph into use within milliseconds, faster than that can be read: an xlator
 * of it that nobody knows yet gets a number of its own.
 */
static __always_inline struct wire_node *adopt_node(struct walk *w, __u64 xlator)
{
	struct wire_node_key key = { .xlator = xlator, .tgid = w->tgid };
	__u32 zero = 0, *n = bpf_map_lookup_elem(&adopted, &zero);
	struct wire_proc *proc = proc_get(w->tgid);
	struct wire_node fresh = {};

	if (!proc || proc->root != WIRE_ROOT_CLIENT || !xlator || !n || *n >= WIRE_MAX_ADOPTED)
		return NULL;
	fresh.target = proc->local_target;
	fresh.layer = WIRE_LAYER_ADOPTED + __sync_fetch_and_add(n, 1) % WIRE_MAX_ADOPTED;
	bpf_map_update_elem(&nodes, &key, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&nodes, &key);
}

/* Which xlator's a frame is. NULL: nobody's, or known without a look. */
static __always_inline struct wire_node *name_frame(struct walk *w, struct walk_frame *f)
{
	struct walk_node_memo *memo = &w->node[w->n % WALK_MEMOS];
	struct wire_node *node;

	/* what splits frames wants the node itself */
	if (!cfg.split_tails && memo->generation && memo->xlator == f->xlator &&
	    memo->generation == w->generation) {
		f->layer = memo->layer;
		f->target = memo->target;
		f->node_flags = memo->flags;
		return NULL;
	}
	node = node_get(w->tgid, f->xlator) ?: adopt_node(w, f->xlator);
	if (!node) {
		/* a client has one target; a brick's process may have several */
		f->target = w->n && w->root == WIRE_ROOT_CLIENT ? w->frame[0].target :
								  WIRE_MAX_TARGETS;
		walk_unsplit(w, WIRE_LOST_UNKNOWN);
		return NULL;
	}
	memo->xlator = f->xlator;
	memo->generation = w->generation;
	f->layer = memo->layer = node->layer;
	f->target = memo->target = node->target;
	f->node_flags = memo->flags = node->flags;
	return node;
}

/* Read one frame, oldest first. */
static long read_frame(__u32 i, struct reader *r)
{
	struct walk *w = r->w;
	struct walk_frame *f = walk_frame_at(w, w->n);
	struct wire_node *node;
	__u64 addr = r->at - FRAME_LINK;

	if (r->at == r->head)
		return 1;
	if (!f || i >= WIRE_MAX_STACK_FRAMES) {
		walk_unsplit(w, WIRE_LOST_FRAMES);
		return 1;
	}
	if (bpf_probe_read_user(w->raw, FRAME_BYTES, (const void *)addr) ||
	    raw_u64(w, FRAME_ROOT) != r->stack) {
		walk_unsplit(w, WIRE_LOST_UNREADABLE);
		return 1;
	}
	__builtin_memset(f, 0, sizeof(*f));
	f->addr = addr;
	f->xlator = raw_u64(w, r->l->frame_this);
	f->begin_raw = raw_time(w, r->l->frame_begin);
	f->end_raw = raw_time(w, r->l->frame_end);
	f->begin = f->begin_raw;
	f->op = raw_u32(w, r->l->frame_op);
	f->stack = r->s;
	node = name_frame(w, f);
	r->at = raw_u64(w, FRAME_LINK_PREV);
	if (r->at == addr + FRAME_LINK) {
		/* taken out of its list: the stack is being destroyed */
		walk_unsplit(w, WIRE_LOST_UNREADABLE);
		r->at = r->head;
	}
	link_parent(w, f, raw_u64(w, FRAME_PARENT), r->first);
	w->n++;
	if (cfg.split_tails && node)
		split_shared(w, f, node);
	return 0;
}

/* Read all frames of one stack into the walk. */
static __always_inline void read_frames(struct walk *w, const struct wire_layout *l, __u64 stack,
					__u32 s)
{
	struct reader r = { .w = w, .l = l, .stack = stack, .s = s, .first = w->n };

	r.head = stack + l->stack_myframes;
	if (bpf_probe_read_user(&r.at, sizeof(r.at), (const void *)(r.head + 8))) {
		walk_unsplit(w, WIRE_LOST_UNREADABLE);
		return;
	}
	bpf_loop(WIRE_MAX_STACK_FRAMES + 1, read_frame, &r, 0);
}

/*
 * Stacks accounted in part -> until when. The unique number tells a request from an earlier one
 * with a copy at the same address. What is pushed out may be counted twice.
 */
struct mark_key {
	__u64 stack, unique;
	__u32 tgid, pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct mark_key);
	__type(value, __u64);
} marks SEC(".maps");

/*
 * Copies that live on behind a request's reply are accounted from there on by themselves. Said
 * before the copy is read: what ends from now on finds the mark, what has ended is in this walk.
 * Not inlined: the frames' readers below need the stack.
 */
static __noinline void mark_copy(struct walk *w, __u64 stack)
{
	struct mark_key key = { .stack = stack, .unique = w->unique, .tgid = w->tgid };
	__u64 until = walk_end(w);

	bpf_map_update_elem(&marks, &key, &until, BPF_ANY);
}

struct follower {
	struct walk *w;
	const struct wire_layout *l;
	__u64 next, prev; /* prev: the stack read last */
};

/*
 * A copy that was taken out of the list just now is as good as one that was a moment earlier: its
 * time stays with who made it. What lies behind it, the stack before it knows.
 */
static __always_inline long skip_gone(struct follower *fo, __u64 gone)
{
	if (bpf_probe_read_user(&fo->next, sizeof(fo->next), (void *)(fo->prev + STACK_NEXT)) ||
	    fo->next == gone || fo->next == fo->prev) {
		walk_unsplit(fo->w, WIRE_LOST_UNREADABLE);
		return 1;
	}
	return 0;
}

/*
 * Replicate, disperse, write-behind and others go on in a copy of the stack, which copy_frame()
 * puts right behind the original, with its unique number but without its state and client.
 */
static long follow_copy(__u32 i, struct follower *fo)
{
	struct walk *w = fo->w;
	__u64 stack = fo->next;
	__u32 s = w->n_stacks;

	if (read_stack(w, stack) || raw_u64(w, STACK_POOL) != w->pool ||
	    raw_u64(w, STACK_UNIQUE) != w->unique || raw_u64(w, STACK_STATE) ||
	    raw_u64(w, STACK_CLIENT))
		return 1;
	fo->next = raw_u64(w, STACK_NEXT);
	if (fo->next == stack)
		return skip_gone(fo, stack);
	mark_copy(w, stack);
	if (s >= WIRE_MAX_STACKS) {
		walk_unsplit(w, WIRE_LOST_FRAMES);
		return 1;
	}
	/* what was checked is what all below must use */
	barrier_var(s);
	fo->prev = stack;
	w->stack[s] = stack;
	w->first[s] = w->n;
	read_frames(w, fo->l, stack, s);
	w->first[s + 1] = w->n;
	w->n_stacks = s + 1;
	return 0;
}

/* ---- one pass over a stack --------------------------------------------- */

/* Set up from the stack's head, which read_stack() has left in w->raw. */
static __always_inline void walk_begin(struct walk *w, __u64 stack, __u64 *ret_next)
{
	w->n = 0;
	w->n_stacks = 1;
	w->n_joined = 0;
	w->first[0] = 0;
	w->stack[0] = stack;
	w->pool = raw_u64(w, STACK_POOL);
	w->unique = raw_u64(w, STACK_UNIQUE);
	w->origin = (__s32)raw_u32(w, STACK_PID) < 0 ? WIRE_ORIGIN_INTERNAL : WIRE_ORIGIN_USER;
	w->watermark = 0;
	w->max_end = 0;
	w->max_hops = 0;
	w->faults = 0;
	w->unsplit = 0;
	w->n_marked = 0;
	w->n_joins = 0;
	w->generation = node_generation();
	w->bytes = 0;
	w->no_raiser = 0;
	w->raiser = 0;
	w->stack_error = 0;
	w->state = raw_u64(w, STACK_STATE);
	w->who = (struct wire_who){
		.client = raw_u64(w, STACK_CLIENT),
		.pid = raw_u32(w, STACK_PID),
		.uid = raw_u32(w, STACK_UID),
		.has_app = 1,
	};
	*ret_next = raw_u64(w, STACK_NEXT);
}

/*
 * A callback may have wound again (a lookup that is tried afresh): the new pass begins where the
 * earlier one ended, at the latest end of the root's children but the newest.
 */
struct passes {
	struct walk *w;
	__u64 newest_end, mark;
	__u32 newest;
};

static long find_passes(__u32 i, struct passes *p)
{
	struct walk_frame *f = walk_frame_at(p->w, i);

	if (!f)
		return 1;
	if (i == 0 || f->parent != 0 || f->stack != 0)
		return 0;
	if (p->newest_end > p->mark)
		p->mark = p->newest_end;
	p->newest_end = f->end_raw;
	p->newest = i;
	return 0;
}

/* Into w->newest and w->newest_mark. A global function: on Linux 6.1 walk_read() has no stack left.
 */
__noinline int walk_find_newest(struct walk *w)
{
	struct passes p = { .w = w };

	if (!w)
		return 0;
	bpf_loop(w->n, find_passes, &p, 0);
	w->newest = p.newest;
	w->newest_mark = p.mark;
	return 0;
}

/*
 * Who raised the error that the root was called back with. Frames keep no result, but a stack knows
 * the xlator that unwound last with another error than was known (and forgets it when something
 * succeeds): where that is this error, it has come from there; where it is another one, the root
 * itself has made it (a server whose look-up of the path failed).
 */
static __always_inline void read_error(struct walk *w, const struct wire_layout *l, __u64 stack)
{
	if (w->result >= 0)
		return;
	w->no_raiser = 1;
	if (!l->stack_err_xl ||
	    bpf_probe_read_user(w->raw, 16, (const void *)(stack + l->stack_err_xl)))
		return;
	w->stack_error = raw_u32(w, 8);
	w->raiser = w->stack_error == w->op_errno ? raw_u64(w, 0) : 0;
	/* an error without a number leaves no trace */
	w->no_raiser = !w->raiser && !w->op_errno;
}

/*
 * Read and link all frames of a stack and of its copies. 0; 1 where they are of a brick that is not
 * looked at, or of nobody known; -1 where there is nothing to account.
 */
__noinline int walk_read(struct walk *w, struct wire_layout *l, __u64 next, int is_top)
{
	struct follower fo = { .w = w, .l = l, .next = next };
	struct walk_frame *f;
	__u64 stack;
	__u32 op = 0;

	if (!w || !l)
		return -1;
	stack = w->stack[0];
	fo.prev = stack;
	read_frames(w, l, stack, 0);
	w->first[1] = w->n;
	if (w->n < 2) {
		/* not even who called back: nothing to account, but a request it was */
		if (is_top && w->unsplit)
			layer_drop(w->n ? w->frame[0].target : WIRE_MAX_TARGETS, w->unsplit - 1);
		return -1;
	}
	walk_find_newest(w);
	f = walk_frame_at(w, w->newest);
	if (!f || !w->newest)
		return -1;
	if (is_top) {
		/* one callback that ends in another, probed as well, is still one reply */
		if (w->done_stack == stack && w->done_begin == f->begin)
			return -1;
		w->done_stack = stack;
		w->done_begin = f->begin;
		w->watermark = w->newest_mark;
	}
	/* what the root wound last: a server looks names up in the very stack of a rename */
	if (!is_top || !f->op)
		bpf_probe_read_user(&op, sizeof(op), (const void *)(stack + l->stack_op));
	w->op = op ?: f->op;
	read_error(w, l, stack);
	w->target = is_top ? f->target : w->frame[0].target;
	if (w->target >= WIRE_MAX_TARGETS) {
		/* nobody knows whose; or of another brick in this process, not asked for */
		if (!f->layer)
			layer_drop(WIRE_MAX_TARGETS, WIRE_LOST_UNKNOWN);
		return 1;
	}
	/* behind an own stack lie others of the same request: each is accounted by itself */
	if (is_top && w->unique)
		bpf_loop(2 * WIRE_MAX_STACKS, follow_copy, &fo, 0);
	return 0;
}

#endif
