/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * enter.bpf.h: a walked request becomes figures: once its intervals are placed and its spans are
 * claimed (walk.bpf.h), each node's self and inclusive time, errors and bytes are entered in their
 * rows, its spans in theirs, and how its sum check came out is counted.
 */
#ifndef BRICKTOP_ENTER_BPF_H
#define BRICKTOP_ENTER_BPF_H

#include "walk.bpf.h"

#define FAULTS_OF_SUM                                                                   \
	(1 << WIRE_CHECK_OUTSIDE | 1 << WIRE_CHECK_NEGATIVE | 1 << WIRE_CHECK_UNSPLIT | \
	 1 << WIRE_CHECK_ORPHAN)

static __always_inline void walk_key(const struct walk *w, struct wire_slot_key *key)
{
	__builtin_memset(key, 0, sizeof(*key));
	key->target = w->target;
	key->op = w->op;
	key->root = w->root;
	key->origin = w->origin;
}

static __always_inline int moves_data(const struct walk *w)
{
	return w->op == 12 || w->op == 13; /* GF_FOP_READ, GF_FOP_WRITE: op_ret is a length */
}

static __always_inline int is_same_key(const struct wire_slot_key *a, const struct wire_slot_key *b)
{
	const __u32 *x = (const __u32 *)a, *y = (const __u32 *)b;

	return x[0] == y[0] && x[1] == y[1] && x[2] == y[2];
}

/* slot_get(), by what the thread remembers at that place. */
static __always_inline struct wire_pool_slot *walk_slot(struct walk *w, __u32 place,
							const struct wire_slot_key *key)
{
	struct walk_row_memo *memo = &w->row[place % (2 * WALK_ROWS)];
	__u32 *at;

	if (memo->slot && is_same_key(&memo->key, key))
		return slot_at(memo->slot - 1);
	at = slot_number(key);
	if (!at)
		return NULL;
	memo->key = *key;
	memo->slot = *at + 1;
	return slot_at(*at);
}

/* A frame has the same row as that in its place in the request before, if that was one of the same
 * operation: its memory lies next to the last frame's. */
static __always_inline struct wire_pool_slot *walk_frame_slot(struct walk *w, __u32 at,
							      const struct wire_slot_key *key)
{
	return walk_slot(w, (key->op * 64 + at) % WALK_ROWS, key);
}

/* Of spans there are more or fewer each time. By the upper bits of a product with 2^32 / phi all of
 * the key counts (Knuth, 6.4). */
static __always_inline struct wire_pool_slot *walk_span_slot(struct walk *w,
							     const struct wire_slot_key *key)
{
	const __u32 *word = (const __u32 *)key;
	__u32 hash = ((word[0] * 31 + word[1]) * 31 + word[2]) * 2654435769U;

	return walk_slot(w, WALK_ROWS + (hash >> (32 - WALK_ROWS_SHIFT)), key);
}

/* What a frame below the root hands on to its parent, which is entered after it. */
static __always_inline void hand_up(const struct walk_frame *f, struct walk_frame *p)
{
	if (f->bytes)
		p->bytes += f->bytes;
	if (f->failed)
		p->failed = 1;
}

/*
 * Bytes and errors of a frame below the root, as far as they are known. What failed beside or below
 * the way of the request's error cannot be told, nor what failed in a copied stack, nor whether one
 * of several children failed and another did instead.
 */
static __always_inline void enter_effects(const struct walk *w, const struct walk_frame *f,
					  const struct walk_frame *p, struct wire_pool_slot *slot)
{
	if (f->failed)
		__sync_fetch_and_add(&slot->errors, 1);
	else if (w->result < 0 || f->stack || p->children > 1)
		__sync_fetch_and_add(&slot->no_errors, 1);
	if (w->no_bytes)
		__sync_fetch_and_add(&slot->no_bytes, 1);
	else if (f->bytes && moves_data(w))
		__sync_fetch_and_add(&slot->bytes, f->bytes);
}

/* Newest frame first: children before their parents. */
static long enter_frame(__u32 i, struct walker *m)
{
	struct walk *w = m->w;
	__u32 at = w->n - 1 - i;
	struct walk_frame *f = walk_frame_at(w, at), *p;
	struct wire_slot_key key;
	struct wire_pool_slot *slot;

	if (!f)
		return 1;
	if (!(f->flags & WIRE_FRAME_COUNTED))
		return 0;
	p = at ? walk_frame_at(w, f->parent) : NULL;
	if (p)
		hand_up(f, p);
	if (f->covered > f->end - f->begin) {
		w->faults |= 1 << WIRE_CHECK_NEGATIVE;
		layer_drop(w->target, WIRE_LOST_ABSURD);
		return 0;
	}
	walk_key(w, &key);
	key.layer = f->layer;
	key.sub = w->uncovered;
	if (p)
		key.parent = p->layer;
	slot = walk_frame_slot(w, at, &key);
	if (!slot)
		return 0;
	slot_add(slot, f->end - f->begin - f->covered, f->end - f->begin);
	if (p)
		enter_effects(w, f, p, slot);
	return 0;
}

struct blame {
	struct walk *w;
	__u32 found;
};

static long find_raiser(__u32 i, struct blame *b)
{
	__u32 at = b->w->n - 1 - i;
	struct walk_frame *f = walk_frame_at(b->w, at);

	if (!f)
		return 1;
	if (f->xlator != b->w->raiser || f->stack || !f->end_raw ||
	    !(f->flags & WIRE_FRAME_COUNTED))
		return 0;
	b->found = at;
	return 1;
}

/*
 * The request has failed: mark the frame that its error comes from, the last one of the xlator that
 * raised it; entering the frames carries the mark up to the root. A global function: verified by
 * itself.
 */
__noinline int walk_blame(struct walk *w)
{
	struct blame b = { .w = w, .found = NO_FRAME };
	struct walk_frame *f;

	if (!w || !w->raiser)
		return 0;
	bpf_loop(w->n, find_raiser, &b, 0);
	f = walk_frame_at(w, b.found);
	if (f)
		f->failed = 1;
	else
		w->no_raiser = 1;
	return 0;
}

struct claimed_span {
	struct walk *w;
	const struct span_detail *d;
	const struct wire_slot_key *base;
};

/* Parts inside the outermost one. */
static long enter_part(__u32 i, struct claimed_span *s)
{
	struct wire_slot_key key = *s->base;
	const struct wire_span_part *part = part_of(s->d, i + 1, &key);
	struct wire_pool_slot *slot;

	if (!part)
		return 1;
	slot = walk_span_slot(s->w, &key);
	if (slot)
		span_add_part(slot, part);
	return 0;
}

static __always_inline void enter_parts(struct walk *w, const struct span *span,
					const struct span_detail *d,
					const struct wire_slot_key *key)
{
	struct claimed_span s = { .w = w, .d = d, .base = key };
	struct wire_pool_slot *slot = walk_span_slot(w, key);

	if (slot)
		span_add(slot, span, d ? d->part[0].self_ns : span->end - span->begin);
	if (d && d->n_parts > 1)
		bpf_loop(d->n_parts - 1, enter_part, &s, 0);
}

static long enter_span(__u32 i, struct walker *m)
{
	struct walk *w = m->w;
	struct wire_slot_key key;
	struct walk_frame *f;
	struct span *span;
	__u32 state;

	if (!m->l)
		return 1;
	span = span_find(m->l, m->o, w->spans_from + i);
	if (!span)
		return 0;
	state = span->state;
	if ((state & SPAN_CLAIM_MASK) != SPAN_CLAIMED)
		return 0;
	span->state = state ^ SPAN_CLAIMED ^ SPAN_ENTERED;
	f = walk_frame_at(w, state >> SPAN_FRAME_SHIFT & SPAN_NO_FRAME);
	if (!f || w->unsplit || w->uncovered)
		return 0;
	walk_key(w, &key);
	key.parent = f->layer;
	span_key(span, &key);
	enter_parts(w, span, span_detail(m->l, span, w->spans_from + i), &key);
	return 0;
}

/* An operation that a frame waited for, and how long its result then lay there. */
static long enter_join(__u32 i, struct walker *m)
{
	struct walk *w = m->w;
	struct walk_join *j = walk_join_at(w, i);
	struct wire_pool_slot *slot;
	struct wire_slot_key key;
	struct walk_frame *f;
	__u64 lay;

	if (!j)
		return 1;
	f = walk_frame_at(w, j->frame);
	if (!f || !(f->flags & WIRE_FRAME_COUNTED))
		return 0;
	walk_key(w, &key);
	key.parent = f->layer;
	span_key(&j->op.span, &key);
	enter_parts(w, &j->op.span, &j->op.detail, &key);
	lay = j->op.reaped - j->op.span.end;
	if (!lay)
		return 0;
	walk_key(w, &key);
	key.parent = f->layer;
	key.layer = WIRE_LAYER_AIO;
	key.sub = WIRE_AIO_REAP;
	slot = walk_span_slot(w, &key);
	if (!slot)
		return 0;
	slot_add(slot, lay, lay);
	return 0;
}

/* The whole request as one piece that nothing could split; nothing where it ended before it began.
 */
static __always_inline struct wire_pool_slot *enter_unsplit(struct walk *w)
{
	struct walk_frame *root = &w->frame[0];
	struct wire_slot_key key;
	struct wire_pool_slot *slot = NULL;
	__u64 incl = root->end > root->begin ? root->end - root->begin : 0;

	layer_drop(w->target, w->unsplit - 1);
	if (!(root->flags & WIRE_FRAME_COUNTED))
		return slot;
	walk_key(w, &key);
	key.layer = WIRE_LAYER_UNATTRIBUTED;
	key.sub = w->uncovered;
	slot = slot_get(&key);
	if (slot)
		slot_add(slot, incl, incl);
	return slot;
}

static __always_inline void check_count(struct walk *w, enum wire_check check, __u64 by)
{
	__u32 i = w->target * WIRE_CHECKS + check;
	__u64 *n = bpf_map_lookup_elem(&checks, &i);

	if (n)
		__sync_fetch_and_add(n, by);
}

/* Count how the sum check came out, and what only the root knows: bytes and errors. */
static __always_inline void enter_checks(struct walk *w, struct wire_pool_slot *root)
{
	int holds = !(w->faults & FAULTS_OF_SUM);
	__u32 c;

	check_count(w, WIRE_CHECK_WALKED, 1);
	if (!holds)
		check_count(w, WIRE_CHECK_FAILED, 1);
	if (w->n_stacks > 1)
		check_count(w, WIRE_CHECK_COPIES, w->n_stacks - 1 + w->n_joined);
	for (c = WIRE_CHECK_OUTSIDE; c < WIRE_CHECK_COPIES; c++) {
		if (w->faults & 1 << c)
			check_count(w, c, 1);
	}
	if (!root)
		return;
	if (!holds)
		__sync_fetch_and_add(&root->more, -1);
	if (w->result < 0)
		__sync_fetch_and_add(&root->errors, 1);
	else if (moves_data(w))
		__sync_fetch_and_add(&root->bytes, w->result);
}

/*
 * Account a request whose frames have been read and linked. A global function: the verifier looks
 * at it once, by itself.
 */
__noinline int walk_account(struct walk *w, struct ledger *l)
{
	struct wire_pool_slot *root = NULL;
	struct walker m = { .w = w, .l = l };
	struct wire_slot_key key;
	__u32 s;

	if (!w)
		return 0;
	for (s = 0; s < WIRE_MAX_STACKS; s++)
		w->cursor[s] = w->first[s];
	w->thread_begin = ~0ULL;
	bpf_loop(w->n, find_thread_begin, &m, 0);
	w->uncovered = is_uncovered(w);
	if (w->uncovered)
		layer_drop(w->target, WIRE_LOST_SKIPPED);
	w->claim_frame = NO_FRAME;
	w->n_spans = 0;
	if (l) {
		m.o = overflow_find(l);
		walk_find_spans(&m);
	}
	w->spans_from = w->span_pos;
	bpf_loop(WIRE_MAX_FRAMES + WIRE_LEDGER + WIRE_OVERFLOW, merge_next, &m, 0);
	if (!w->unsplit) {
		/* first of all: where there is not room for all rows, there is for requests */
		walk_key(w, &key);
		key.layer = w->frame[0].layer;
		key.sub = w->uncovered;
		root = walk_frame_slot(w, 0, &key);
	}
	if (l)
		bpf_loop(l->head - w->spans_from, enter_span, &m, 0);
	if (w->unsplit) {
		root = enter_unsplit(w);
	} else {
		/* what neither this thread's calls nor joined operations moved, others did */
		w->no_bytes = moves_data(w) && w->has_ledger && w->result > (__s64)w->bytes;
		if (w->result < 0)
			walk_blame(w);
		if (w->n_joins && !w->uncovered)
			bpf_loop(w->n_joins, enter_join, &m, 0);
		bpf_loop(w->n, enter_frame, &m, 0);
	}
	enter_checks(w, root);
	return 0;
}

#endif
