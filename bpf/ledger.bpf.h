/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ledger.bpf.h: what a thread did: the ring of its finished spans, and who has them: a request's
 * walk takes its own, what no request takes was the process's own file operation and is entered
 * here. How a span comes about is span.bpf.h's business, whose it is the walk's.
 */
#ifndef BRICKTOP_LEDGER_BPF_H
#define BRICKTOP_LEDGER_BPF_H

#include "slow.bpf.h"

struct span_open {
	__u64 begin;
	__u64 children_ns; /* inclusive time of spans that ended inside this one */
	__u16 layer;
	__u8 sub, part;
	__u32 pad;
};

/* Who has a span: nobody, the walk under way, or it is done with (or not in the ring yet). */
enum { SPAN_FREE, SPAN_CLAIMED, SPAN_ENTERED, SPAN_CLAIM_MASK = 3 };

/* The rest of a span's state. The layer has 6 bits, the sub 8, frame and detail what they need. */
#define SPAN_FAILED       4
#define SPAN_LAYER_SHIFT  3
#define SPAN_SUB_SHIFT    9
#define SPAN_FRAME_SHIFT  17
#define SPAN_DETAIL_SHIFT 26
#define SPAN_NO_FRAME     0x1ff /* 9 bits */
#define SPAN_NO_DETAIL    0x3f  /* 6 bits */
_Static_assert(WIRE_LAYER_XLATOR <= 1 << (SPAN_SUB_SHIFT - SPAN_LAYER_SHIFT), "a layer's bits");
_Static_assert(WIRE_MAX_FRAMES <= SPAN_NO_FRAME, "a frame's bits");
_Static_assert(WIRE_DETAILS <= SPAN_NO_DETAIL, "a detail's bits");

/*
 * A finished outermost span. Reading a large directory makes some thousands of calls inside one
 * frame, almost all of one part, so that is all there is room for here: such a part is as long as
 * the span.
 */
struct span {
	__u64 begin, end;
	__u32 state;
	__u32 bytes; /* no call moves 2 GB */
};
_Static_assert(sizeof(struct span) == 24, "span");

/* What only some spans have: parts inside the outermost, a file whose bytes were moved. */
struct span_detail {
	__u64 file;
	__u32 owner; /* 1 + the number of the span that it belongs to; 0: none yet */
	__u32 n_parts;
	struct wire_span_part part[WIRE_SPAN_PARTS];
};

#define NO_PART 0xff

/* When something began that is a part only if its end is seen, too. */
struct ledger_mark {
	__u64 at;          /* 0: nothing has begun */
	__u64 children_ns; /* of the innermost open span, then */
};

/* What a thread waits for, or will if it sleeps (wait.bpf.h); begins anew with each outermost span.
 */
struct ledger_wait {
	__u64 slept_at;           /* since when it is off its CPU; 0: it is not */
	__u64 key;                /* of the I/O behind the wait that was announced; 0: none known */
	__u64 mapping;            /* of the file that the call is on */
	struct ledger_mark lock;  /* a write wants its inode's lock, and does not have it yet */
	struct ledger_mark alloc; /* an allocation group is asked for space */
	__u8 as;                  /* enum wait_as: what it is off its CPU for */
	__u8 next; /* part of a wait that was announced, for the next sleep; NO_PART */
	__u8 base; /* part of sleeps that nothing announced; NO_PART */
	__u8 mode; /* enum wait_mode: how the file is accessed */
	__u32 pad;
};

/* What a thread does and did; only made for threads that make a call which is watched. */
struct ledger {
	__u32 depth, dropped; /* open spans; pushes beyond WIRE_SPAN_DEPTH */
	struct span_open open[WIRE_SPAN_DEPTH];
	struct ledger_wait wait;
	struct wire_span current; /* the outermost open span in the making */
	__u64 head;               /* spans ever finished */
	__u64 evicted_end;        /* end of the newest span pushed out unclaimed */
	__u32 detail_next;        /* whose turn it is: details are used in turns, too */
	__u32 overflows;          /* 1: the thread has an overflow */
	__u32 tid;                /* whose it is */
	__u32 dev;                /* of current.file */
	__u64 passed;             /* spans before this one are of requests that no walk met */
	struct span_detail detail[WIRE_DETAILS];
	struct span ring[WIRE_LEDGER];
};
_Static_assert(sizeof(struct ledger) < 64800, "a task storage value has at most 64,800 bytes");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct ledger);
} ledgers SEC(".maps");

/*
 * Spans that were pushed out of the ring and that nobody has claimed: a request that made more
 * calls may be under way. Only for threads that push out any.
 */
struct overflow {
	__u32 owner[WIRE_OVERFLOW]; /* 1 + the number of the span; 0: none yet */
	struct span span[WIRE_OVERFLOW];
};
_Static_assert(sizeof(struct overflow) < 64800, "a task storage value has at most 64,800 bytes");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct overflow);
} overflows SEC(".maps");

/* ---- finding ----------------------------------------------------------- */

/* This thread's ledger, or NULL: it has none, or its storage is busy. */
static __always_inline struct ledger *ledger_find(void)
{
	return bpf_task_storage_get(&ledgers, bpf_get_current_task_btf(), NULL, 0);
}

static __always_inline struct ledger *ledger_make(__u32 local_target)
{
	struct ledger *l = bpf_task_storage_get(&ledgers, bpf_get_current_task_btf(), NULL,
						BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (l)
		l->tid = bpf_get_current_pid_tgid();
	else
		layer_drop(local_target, WIRE_LOST_STORAGE);
	return l;
}

/* When a thread comes back to its CPU, another one is still the current one. */
static __always_inline int is_current(const struct ledger *l)
{
	return l->tid == (__u32)bpf_get_current_pid_tgid();
}

/*
 * Of a span that was open while layers were off its end, or what was in it, is not known: it never
 * was. To be called before open spans are looked at.
 */
static __always_inline void ledger_renew(struct ledger *l)
{
	if (l->depth && l->open[0].begin < layers_since()) {
		l->depth = 0;
		l->dropped = 0;
	}
}

static __always_inline struct overflow *overflow_find(const struct ledger *l)
{
	if (!l->overflows || !is_current(l))
		return NULL;
	return bpf_task_storage_get(&overflows, bpf_get_current_task_btf(), NULL, 0);
}

static __always_inline struct span *span_at(struct ledger *l, __u64 number)
{
	return &l->ring[number % WIRE_LEDGER];
}

/* A span by its number, or NULL: it was pushed out and is done with. */
static __always_inline struct span *span_find(struct ledger *l, struct overflow *o, __u64 number)
{
	__u32 at = number % WIRE_OVERFLOW;

	if (l->head - number <= WIRE_LEDGER)
		return span_at(l, number);
	return o && o->owner[at] == (__u32)number + 1 ? &o->span[at] : NULL;
}

static __always_inline struct span_detail *detail_at(struct ledger *l, __u32 i)
{
	__u64 at = i;

	/* what is checked must be the very register that forms the address */
	barrier_var(at);
	if (at >= WIRE_DETAILS)
		return NULL;
	barrier_var(at);
	return &l->detail[at];
}

/*
 * The parts of a span, by its number; NULL: it has but the outermost. Of a span that nobody or a
 * walk under way has they are never lost: see detail_keep().
 */
static __always_inline struct span_detail *span_detail(struct ledger *l, const struct span *span,
						       __u64 number)
{
	struct span_detail *d = detail_at(l, span->state >> SPAN_DETAIL_SHIFT);

	return d && d->owner == (__u32)number + 1 ? d : NULL;
}

/* A part, and its row's key: base, which holds what the outermost part lies below, made its own. */
static __always_inline const struct wire_span_part *part_of(const struct span_detail *d, __u32 i,
							    struct wire_slot_key *key)
{
	const struct wire_span_part *part;
	__u64 at = i, up;

	barrier_var(at);
	if (at >= WIRE_SPAN_PARTS)
		return NULL;
	barrier_var(at);
	part = &d->part[at];
	key->layer = part->layer;
	key->sub = part->sub;
	up = part->parent_part;
	barrier_var(up);
	if (up < WIRE_SPAN_PARTS) {
		barrier_var(up);
		key->parent = d->part[up].layer;
		key->parent_sub = d->part[up].sub;
	}
	return part;
}

/* The row's key of a span's outermost part. */
static __always_inline void span_key(const struct span *span, struct wire_slot_key *key)
{
	key->layer = span->state >> SPAN_LAYER_SHIFT & 0x3f;
	key->sub = span->state >> SPAN_SUB_SHIFT & 0xff;
}

/* What the outermost part's row gets; self_ns: what the parts inside it leave. */
static __always_inline void span_add(struct wire_pool_slot *slot, const struct span *span,
				     __u64 self_ns)
{
	slot_add(slot, self_ns, span->end - span->begin);
	if (span->bytes)
		__sync_fetch_and_add(&slot->bytes, span->bytes);
	if (span->state & SPAN_FAILED)
		__sync_fetch_and_add(&slot->errors, 1);
}

static __always_inline void span_add_part(struct wire_pool_slot *slot,
					  const struct wire_span_part *part)
{
	slot_add(slot, part->self_ns, part->incl_ns);
	if (part->calls != 1)
		__sync_fetch_and_add(&slot->more, (__s64)part->calls - 1);
}

static __always_inline int is_free(const struct span *span)
{
	return (span->state & SPAN_CLAIM_MASK) == SPAN_FREE;
}

/* Take a span before who else is after it: a walk, the ring's next turn, the session's end. */
static __always_inline int span_take(struct span *span, __u32 as)
{
	__u32 was = span->state;

	return (was & SPAN_CLAIM_MASK) == SPAN_FREE &&
	       __sync_val_compare_and_swap(&span->state, was, was | as) == was;
}

struct local_span {
	const struct span_detail *d;
	const struct wire_slot_key *base;
};

/* Parts inside the outermost one. */
static long enter_local_part(__u32 i, struct local_span *s)
{
	struct wire_slot_key key = *s->base;
	const struct wire_span_part *part = part_of(s->d, i + 1, &key);
	struct wire_pool_slot *slot;

	if (!part)
		return 1;
	slot = slot_get(&key);
	if (slot)
		span_add_part(slot, part);
	return 0;
}

/* Of a slow operation of a process's own. */
struct local_record {
	struct wire_dump head;
	struct wire_who who; /* nobody's but the process's */
	struct wire_span span;
};

static __always_inline void write_local(struct local_record *out, __u32 tid,
					const struct span *span, const struct span_detail *d,
					const struct wire_slot_key *key)
{
	__builtin_memset(&out->head, 0, sizeof(out->head));
	__builtin_memset(&out->who, 0, sizeof(out->who));
	out->head.tid = tid;
	out->head.target = key->target;
	out->head.op = key->op;
	out->head.root = WIRE_ROOT_LOCAL;
	out->head.wanted = WIRE_DUMP_SLOW;
	out->head.n_spans = 1;
	out->span.begin = span->begin;
	out->span.end = span->end;
	out->span.bytes = span->bytes;
	out->span.file = d ? d->file : 0;
	out->span.claimed = SPAN_ENTERED;
	out->span.frame = 0xffff;
	out->span.failed = !!(span->state & SPAN_FAILED);
	out->span.n_parts = d ? d->n_parts : 1;
	out->span.joined = 0;
	if (d) {
		__builtin_memcpy(out->span.part, d->part, sizeof(d->part));
		return;
	}
	out->span.part[0] = (struct wire_span_part){
		.layer = key->layer,
		.sub = key->sub,
		.parent_part = 0xff,
		.calls = 1,
		.self_ns = span->end - span->begin,
		.incl_ns = span->end - span->begin,
	};
}

static __always_inline void keep_slow_local(__u32 tid, const struct span *span,
					    const struct span_detail *d,
					    const struct wire_slot_key *key)
{
	struct wire_slow_row *row;
	struct local_record *out;

	if (!cfg.slow)
		return;
	row = slow_find(key->target, wire_slow_row(WIRE_ROOT_LOCAL, key->origin, key->op, key->top),
			span->end - span->begin);
	if (!row)
		return;
	out = bpf_ringbuf_reserve(&events, sizeof(*out), 0);
	if (!out) {
		slow_drop(key->target, row);
		return;
	}
	write_local(out, tid, span, d, key);
	bpf_ringbuf_submit(out, BPF_RB_NO_WAKEUP);
}

/*
 * Enter an operation of a process's own: it stands for itself, each part under a row of its own
 * (root local, op = its outermost sub). d: its parts, or NULL. A global function: verified by
 * itself.
 */
__noinline int span_enter_local(struct span *span, struct span_detail *d, __u32 tid, __u32 target)
{
	struct wire_slot_key key = {};
	struct local_span s = { .d = d, .base = &key };
	struct wire_pool_slot *slot;

	if (!span)
		return 0;
	span_key(span, &key);
	key.target = target;
	key.root = WIRE_ROOT_LOCAL;
	key.op = key.sub;
	key.top = key.layer;
	slot = slot_get(&key);
	if (slot)
		span_add(slot, span, d ? d->part[0].self_ns : span->end - span->begin);
	if (d && d->n_parts > 1)
		bpf_loop(d->n_parts - 1, enter_local_part, &s, 0);
	keep_slow_local(tid, span, d, &key);
	return 0;
}

/*
 * A span that no request claimed is its process's own file operation. 1 where it was entered. A
 * global function: verified by itself.
 */
__noinline int span_account_local(struct ledger *l, struct span *span, __u64 number, __u32 target)
{
	if (!l || !span || !span_take(span, SPAN_ENTERED))
		return 0;
	if (number < l->passed) {
		layer_drop(target, WIRE_LOST_SKIPPED);
		return 0;
	}
	span_enter_local(span, span_detail(l, span, number), l->tid, target);
	return 1;
}

/* There is no room for a span any more: unclaimed it was local, or its request stays unsplit. */
static __always_inline void span_push_out(struct ledger *l, struct span *span, __u64 number,
					  __u32 local_target)
{
	if (span_account_local(l, span, number, local_target) && span->end > l->evicted_end)
		l->evicted_end = span->end;
}

/*
 * Not free before it is whole: the end of a session looks on from another CPU. Most often who was
 * there before is done with, and nobody looks.
 */
static __always_inline void span_set(struct span *span, __u64 begin, __u64 end, __u32 bytes,
				     __u32 state)
{
	if ((span->state & SPAN_CLAIM_MASK) != SPAN_ENTERED)
		__sync_lock_test_and_set(&span->state, state | SPAN_ENTERED);
	span->begin = begin;
	span->end = end;
	span->bytes = bytes;
	__sync_lock_test_and_set(&span->state, state);
}

/*
 * The ring's next turn needs the place of its oldest span. Until a request claims that it waits in
 * the overflow. A global function: verified by itself.
 */
__noinline int ledger_overflow(struct ledger *l, __u32 local_target)
{
	struct overflow *o;
	struct span *span, *to;
	__u64 number;
	__u32 at, state;

	if (!l)
		return 0;
	number = l->head - WIRE_LEDGER;
	at = number % WIRE_OVERFLOW;
	span = span_at(l, number);
	o = NULL;
	if (is_current(l))
		o = bpf_task_storage_get(&overflows, bpf_get_current_task_btf(), NULL,
					 BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!o) {
		span_push_out(l, span, number, local_target);
		return 0;
	}
	l->overflows = 1;
	to = &o->span[at];
	if (o->owner[at])
		span_push_out(l, to, o->owner[at] - 1, local_target);
	state = span->state;
	if (!span_take(span, SPAN_ENTERED))
		return 0;
	o->owner[at] = number + 1;
	span_set(to, span->begin, span->end, span->bytes, state);
	return 0;
}

/*
 * Keep what only some spans have of the newest one; 0 .. WIRE_DETAILS - 1: where. Parts that are
 * pushed out take their span with them if it still waits: it could not be split any more.
 */
static __always_inline __u32 detail_keep(struct ledger *l, __u32 local_target)
{
	__u32 at = l->detail_next;
	struct span_detail *d = detail_at(l, at);
	struct span *span;
	__u64 number;

	if (!d)
		return SPAN_NO_DETAIL;
	l->detail_next = at + 1 < WIRE_DETAILS ? at + 1 : 0;
	if (d->n_parts > 1) {
		number = l->head - ((__u32)l->head - (d->owner - 1));
		span = span_find(l, overflow_find(l), number);
		if (span)
			span_push_out(l, span, number, local_target);
	}
	d->owner = l->head + 1;
	d->file = l->current.file;
	d->n_parts = l->current.n_parts;
	if (d->n_parts > 1)
		__builtin_memcpy(d->part, l->current.part, sizeof(d->part));
	else
		d->part[0] = l->current.part[0];
	return at;
}

/* The outermost span has ended: remember it. */
static __always_inline void ledger_append(struct ledger *l, __u32 local_target)
{
	const struct wire_span *now = &l->current;
	struct span *at = span_at(l, l->head);
	__u32 state, detail = SPAN_NO_DETAIL;

	if (now->n_parts > 1 || (now->bytes && now->file))
		detail = detail_keep(l, local_target);
	if (l->head >= WIRE_LEDGER && is_free(at))
		ledger_overflow(l, local_target);
	state = now->part[0].layer << SPAN_LAYER_SHIFT | now->part[0].sub << SPAN_SUB_SHIFT |
		SPAN_NO_FRAME << SPAN_FRAME_SHIFT | detail << SPAN_DETAIL_SHIFT;
	if (now->failed)
		state |= SPAN_FAILED;
	span_set(at, now->begin, now->end, now->bytes, state);
	l->head++;
}

#endif
