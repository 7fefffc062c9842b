/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kept.bpf.h: copies of a request's stack that are gone before the request has its reply. Disperse
 * locks, reads sizes and writes in a copy each, and destroys it when that step is done: at the
 * reply only the last one is there to be read. So at each result of a copy whose original waits,
 * its frames are kept, and the walk of the request takes them back. Knows nothing of time
 * accounting.
 */
#ifndef BRICKTOP_KEPT_BPF_H
#define BRICKTOP_KEPT_BPF_H

#include "frames.bpf.h"

#define KEPT_FRAMES 96 /* of one request; beyond them it is unsplit */

struct kept_frame {
	__u64 addr, parent, xlator, begin, end; /* parent: address; 0: the root of its stack */
	__u16 op, layer, target;
	__u8 flags, node_flags;
};

struct kept {
	__u32 n;         /* frames, those that found no room included */
	__u32 last;      /* where the stack that was kept last begins */
	__u32 lost, pad; /* enum wire_loss + 1: a copy could not be read whole */
	__u64 at;        /* when a stack was kept last; 0: none is yet */
	struct kept_frame frame[KEPT_FRAMES];
};

/*
 * By the original's stack; as many as requests with copies are in flight at once. Not an LRU map:
 * that loses what is still wanted without a word, and before d4adf1c9ee77 (2025) the CPUs alone
 * take 128 of its entries each. Who takes one deletes it; what is never taken back (of a reply that
 * no probe sees) is swept out when there is no room.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 512);
	__type(key, struct mark_key);
	__type(value, struct kept);
} kept SEC(".maps");

struct kept_state {
	__u32 any, pad; /* 1: something was kept: where nothing ever was, no request need look */
	__u64 swept;    /* when what nobody takes back was looked for last */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kept_state);
} kept_states SEC(".maps");

static __always_inline int kept_are_any(void)
{
	__u32 zero = 0;
	struct kept_state *state = bpf_map_lookup_elem(&kept_states, &zero);

	return state && state->any;
}

/* An empty one to start from: too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kept);
} kept_blank SEC(".maps");

/* ---- making room ------------------------------------------------------- */

#define KEPT_SWEEP_NS 1000000000ULL   /* not more often: it looks at all there are */
#define KEPT_OLD_NS   300000000000ULL /* nobody takes it back any more, it seems */

struct sweeper {
	__u64 walk_since; /* requests that were begun before this are not accounted */
	__u64 old;        /* what was kept before this is given up */
};

static long sweep_kept(struct bpf_map *map, struct mark_key *key, struct kept *k, struct sweeper *s)
{
	__u64 at = k->at;

	if (!at || (at >= s->walk_since && at >= s->old))
		return 0;
	/* a request that waits so long may have its reply yet, and is incomplete then */
	if (at >= s->walk_since)
		layer_drop(WIRE_MAX_TARGETS, WIRE_LOST_MAP_FULL);
	bpf_map_delete_elem(&kept, key);
	return 0;
}

/* 1 where it is worth another try. A global function: verified by itself. */
__noinline int kept_sweep(__u64 now)
{
	__u32 zero = 0;
	struct kept_state *state = bpf_map_lookup_elem(&kept_states, &zero);
	struct sweeper s = { .old = now - KEPT_OLD_NS };
	__u64 swept;

	if (!state)
		return 0;
	swept = state->swept;
	if (now < swept + KEPT_SWEEP_NS ||
	    __sync_val_compare_and_swap(&state->swept, swept, now) != swept)
		return 0;
	s.walk_since = walk_since();
	if (now < KEPT_OLD_NS)
		s.old = 0;
	bpf_for_each_map_elem(&kept, sweep_kept, &s, 0);
	return 1;
}

/* ---- keeping ----------------------------------------------------------- */

struct keeper {
	struct walk *w;
	struct kept *k;
	__u32 at; /* where the stack's first frame goes */
};

static long keep_frame(__u32 i, struct keeper *r)
{
	struct walk_frame *f = walk_frame_at(r->w, i), *p;
	struct kept_frame *to;
	__u64 at = r->at + i;

	barrier_var(at);
	if (!f || at >= KEPT_FRAMES)
		return 1;
	barrier_var(at);
	to = &r->k->frame[at];
	p = walk_frame_at(r->w, f->parent);
	to->addr = f->addr;
	to->parent = p ? p->addr : 0;
	to->xlator = f->xlator;
	to->begin = f->begin_raw;
	to->end = f->end_raw;
	to->op = f->op;
	to->layer = f->layer;
	to->target = f->target;
	to->flags = f->flags & WIRE_FRAME_TAIL;
	to->node_flags = f->node_flags;
	return 0;
}

/* Where a stack's frames go: over what was kept of it after its result before, or behind all. */
static __always_inline __u32 kept_place(struct walk *w, struct kept *k)
{
	__u32 n = k->n, at;
	__u64 last = k->last;

	barrier_var(last);
	if (n && last < KEPT_FRAMES) {
		struct kept_frame *root = &k->frame[last];

		barrier_var(last);
		if (root->addr == w->frame[0].addr && root->begin == w->frame[0].begin_raw &&
		    __sync_val_compare_and_swap(&k->n, n, (__u32)last + w->n) == n)
			return last;
	}
	at = __sync_fetch_and_add(&k->n, w->n);
	k->last = at;
	return at;
}

static __always_inline struct kept *kept_get(struct walk *w, __u64 original)
{
	struct mark_key key = { .stack = original, .unique = w->unique, .tgid = w->tgid };

	return bpf_map_lookup_elem(&kept, &key);
}

static __always_inline struct kept *kept_make(struct walk *w, __u64 original, __u64 now)
{
	struct mark_key key = { .stack = original, .unique = w->unique, .tgid = w->tgid };
	struct kept *k = bpf_map_lookup_elem(&kept, &key), *blank;
	struct kept_state *state;
	__u32 zero = 0;

	if (k)
		return k;
	blank = bpf_map_lookup_elem(&kept_blank, &zero);
	state = bpf_map_lookup_elem(&kept_states, &zero);
	if (!blank || !state)
		return NULL;
	state->any = 1;
	if (bpf_map_update_elem(&kept, &key, blank, BPF_NOEXIST) == -7 /* E2BIG */ &&
	    kept_sweep(now))
		bpf_map_update_elem(&kept, &key, blank, BPF_NOEXIST);
	return bpf_map_lookup_elem(&kept, &key);
}

/*
 * Keep a copy (read into the walk as a stack of its own) of the request at w->original. A global
 * function: verified by itself.
 */
__noinline int kept_store(struct walk *w)
{
	struct keeper r = { .w = w };
	__u64 now = bpf_ktime_get_ns();

	if (!w)
		return 0;
	r.k = kept_make(w, w->original, now);
	if (!r.k) {
		layer_drop(w->frame[0].target, WIRE_LOST_MAP_FULL);
		return 0;
	}
	r.k->at = now;
	if (w->unsplit)
		r.k->lost = w->unsplit;
	r.at = kept_place(w, r.k);
	if (r.at + w->n > KEPT_FRAMES)
		r.k->lost = WIRE_LOST_FRAMES + 1;
	bpf_loop(w->n, keep_frame, &r, 0);
	return 0;
}

/* ---- taking back ------------------------------------------------------- */

struct taker {
	struct walk *w;
	struct kept *k;
	__u32 live;  /* frames of stacks that are still there */
	__u32 first; /* first frame of the stack being taken */
	__u32 skip;  /* 1: it is still there and was read */
};

struct twin {
	struct walk *w;
	const struct kept_frame *of;
	__u32 from, found;
};

static long search_twin(__u32 i, struct twin *t)
{
	struct walk_frame *f = walk_frame_at(t->w, t->from + i);

	if (!f)
		return 1;
	if (f->addr != t->of->addr || f->begin_raw != t->of->begin)
		return 0;
	t->found = 1;
	return 1;
}

/* The walk has this very frame: one of those that are still there, or taken already. */
static __always_inline int has_twin(struct walk *w, const struct kept_frame *of, __u32 from,
				    __u32 to)
{
	struct twin t = { .w = w, .of = of, .from = from };

	bpf_loop(to - from, search_twin, &t, 0);
	return t.found;
}

/*
 * Copies that were made one after the other share a place among the stacks: their frames began in
 * that order, which is all that the merging of stacks asks for.
 */
static __always_inline int can_join(const struct taker *t, __u64 begin)
{
	struct walk_frame *last = walk_frame_at(t->w, t->w->n - 1);

	return t->w->n > t->live && last && last->begin_raw && last->begin_raw <= begin;
}

static __always_inline void begin_stack(struct taker *t, __u64 begin)
{
	struct walk *w = t->w;
	__u64 s = w->n_stacks;

	t->first = w->n;
	if (can_join(t, begin)) {
		w->n_joined++;
		return;
	}
	barrier_var(s);
	if (s >= WIRE_MAX_STACKS) {
		walk_unsplit(w, WIRE_LOST_FRAMES);
		t->skip = 1;
		return;
	}
	barrier_var(s);
	w->stack[s] = 0;
	w->first[s] = w->n;
	w->n_stacks = s + 1;
}

static __always_inline void end_frame(struct walk *w)
{
	__u64 s = w->n_stacks;

	w->n++;
	barrier_var(s);
	if (s > WIRE_MAX_STACKS)
		return;
	barrier_var(s);
	w->first[s] = w->n;
}

static long take_frame(__u32 i, struct taker *t)
{
	struct walk *w = t->w;
	struct walk_frame *f;
	struct kept_frame *from;
	__u64 at = i;

	barrier_var(at);
	if (at >= KEPT_FRAMES)
		return 1;
	barrier_var(at);
	from = &t->k->frame[at];
	if (!from->parent) {
		t->skip = has_twin(w, from, 0, t->live);
		if (!t->skip)
			begin_stack(t, from->begin);
	}
	if (t->skip || (from->parent && has_twin(w, from, t->live, w->n)))
		return 0;
	f = walk_frame_at(w, w->n);
	if (!f) {
		walk_unsplit(w, WIRE_LOST_FRAMES);
		return 1;
	}
	__builtin_memset(f, 0, sizeof(*f));
	f->addr = from->addr;
	f->xlator = from->xlator;
	f->begin = f->begin_raw = from->begin;
	f->end_raw = from->end;
	f->op = from->op;
	f->layer = from->layer;
	f->target = from->target;
	f->flags = from->flags;
	f->node_flags = from->node_flags;
	f->stack = w->n_stacks - 1 + w->n_joined;
	link_parent(w, f, from->parent, t->first);
	end_frame(w);
	return 0;
}

/* Add to a request's walk what was kept of its copies. A global function: verified by itself. */
__noinline int kept_take(struct walk *w)
{
	struct taker t = { .w = w };
	struct mark_key key = {};

	if (!w || !kept_are_any())
		return 0;
	t.k = kept_get(w, w->stack[0]);
	if (!t.k)
		return 0;
	if (t.k->lost)
		walk_unsplit(w, t.k->lost - 1);
	t.live = w->n;
	bpf_loop(t.k->n, take_frame, &t, 0);
	key.stack = w->stack[0];
	key.unique = w->unique;
	key.tgid = w->tgid;
	bpf_map_delete_elem(&kept, &key);
	return 0;
}

#endif
